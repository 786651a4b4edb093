//! Rows of the table of algorithms: `__algorithm!` knows them, and gives one at a time to the macro that asks for it.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{GenericArgument, Result, Token, TypePath, braced, bracketed};

/// An algorithm whose row is wanted, with the arguments that it is for.
pub(crate) struct Asked {
    pub(crate) facade: TokenStream,
    pub(crate) algorithm: Ident,
    pub(crate) arguments: Vec<GenericArgument>,
}

impl Parse for Asked {
    fn parse(input: ParseStream) -> Result<Self> {
        let facade;
        braced!(facade in input);
        let facade = facade.parse()?;
        let algorithm = input.parse()?;
        let arguments;
        bracketed!(arguments in input);
        let arguments = Punctuated::<GenericArgument, Token![,]>::parse_terminated(&arguments)?.into_iter().collect();
        Ok(Self { facade, algorithm, arguments })
    }
}

impl ToTokens for Asked {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { facade, algorithm, arguments } = self;
        tokens.extend(quote!({ #facade } #algorithm [#(#arguments),*]));
    }
}

/// What the table says of an algorithm.
pub(crate) struct Row {
    pub(crate) asked: Asked,
    /// The algorithm's trait, which the first argument implements, with the others.
    pub(crate) implemented: Ident,
    /// The parameters' names: `Self`, and those of the trait.
    pub(crate) params: Vec<String>,
    /// What the trait demands of its parameters.
    pub(crate) bounds: Vec<(TokenStream, Ident)>,
    pub(crate) kernels: Vec<TypePath>,
}

impl Row {
    /// The row of what was asked.
    fn parse(asked: Asked, input: ParseStream) -> Result<Self> {
        let implemented = input.parse()?;
        let params;
        bracketed!(params in input);
        let params = Punctuated::<Ident, Token![,]>::parse_terminated(&params)?;
        let params = ["Self".to_owned()].into_iter().chain(params.iter().map(Ident::to_string)).collect();
        let inside;
        bracketed!(inside in input);
        let bound = |input: ParseStream| {
            let bounded: syn::Type = input.parse()?;
            input.parse::<Token![:]>()?;
            Ok((bounded.to_token_stream(), input.parse()?))
        };
        let bounds = inside.parse_terminated(bound, Token![,])?.into_iter().collect();
        let kernels;
        bracketed!(kernels in input);
        let kernels = Punctuated::<TypePath, Token![,]>::parse_terminated(&kernels)?.into_iter().collect();
        Ok(Self { asked, implemented, params, bounds, kernels })
    }
}

impl ToTokens for Row {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { asked, implemented, params, bounds, kernels } = self;
        let params = params.iter().skip(1).map(|name| quote::format_ident!("{name}"));
        let bounds = bounds.iter().map(|(bounded, bound)| quote!(#bounded: #bound));
        tokens.extend(quote!(#asked #implemented [#(#params),*] [#(#bounds),*] [#(#kernels),*]));
    }
}

/// Rows that are collected: those that are there, and those that are still asked for. `rest` is for who wants them.
pub(crate) struct Rows {
    pub(crate) rest: TokenStream,
    pub(crate) rows: Vec<Row>,
    pub(crate) asked: Vec<Asked>,
}

impl Rows {
    /// The call of `__algorithm!` for the first row that is asked for, which calls the macro `then` with it.
    pub(crate) fn ask(&self, then: &Ident) -> TokenStream {
        let Self { rest, rows, asked } = self;
        let Some(Asked { facade, algorithm, .. }) = asked.first() else { return TokenStream::new() };
        quote!(#facade::__algorithm! { #algorithm #then { { #rest } [#(#rows)*] [#(#asked)*] } })
    }
}

impl Parse for Rows {
    /// What [`ask`](Self::ask) has said, and the row.
    fn parse(input: ParseStream) -> Result<Self> {
        let state;
        braced!(state in input);
        let rest;
        braced!(rest in state);
        let rest = rest.parse()?;
        let there;
        bracketed!(there in state);
        let mut rows = Vec::new();
        while !there.is_empty() {
            let asked = there.parse()?;
            rows.push(Row::parse(asked, &there)?);
        }
        let inside;
        bracketed!(inside in state);
        let mut asked = Vec::<Asked>::new();
        while !inside.is_empty() {
            asked.push(inside.parse()?);
        }
        rows.push(Row::parse(asked.remove(0), input)?);
        Ok(Self { rest, rows, asked })
    }
}
