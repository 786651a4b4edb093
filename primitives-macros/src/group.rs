//! The kernels of algorithms for some types: what `instantiate!` makes of algorithms' names.

use std::collections::HashMap;

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{Error, GenericArgument, Result};

use crate::environment::Environment;
use crate::instance::Instance;
use crate::names;
use crate::product::substitute;
use crate::row::{Row, Rows};

/// The calls with a row each. The last one has them all: a kernel that several of the algorithms launch is compiled once.
pub(crate) fn expand(input: TokenStream, environment: &Environment) -> Result<TokenStream> {
    let rows: Rows = syn::parse2(input)?;
    if !rows.asked.is_empty() {
        return Ok(rows.ask(&format_ident!("__group")));
    }
    let mut instances: Vec<Instance<'_>> = Vec::new();
    // By a kernel's name its place among the instances.
    let mut places = HashMap::new();
    let mut implementations = TokenStream::new();
    for (number, row) in rows.rows.iter().enumerate() {
        row.check()?;
        let facade = &row.asked.facade;
        let kernels: Vec<TokenStream> = row.kernels.iter().map(|kernel| row.kernel(kernel.to_token_stream())).collect();
        let mut entries = Vec::new();
        for (i, kernel) in kernels.iter().enumerate() {
            let place = *places.entry(names::shown(kernel.clone())).or_insert_with(|| {
                instances.push(row.instance(i, kernel));
                instances.len() - 1
            });
            entries.push(quote!(#facade::__private::Entry::grouped::<__Tag<#place>>()));
        }
        let mut given = row.params.iter().zip(&row.asked.arguments).map(|(name, argument)| row.short(name, argument));
        let (implementor, given) = (given.next(), given.collect::<Vec<_>>());
        let implemented = &row.implemented;
        implementations.extend(quote! {
            #[diagnostic::do_not_recommend]
            impl #facade::algorithms::#implemented<#(#given,)* __Tag<#number>> for #implementor {
                fn kernels() -> (#(#facade::__private::Entry<#kernels>,)*) {
                    (#(#entries,)*)
                }
            }
        });
    }
    let device = instances.iter().map(|instance| instance.device(environment));
    let host =
        instances.iter().enumerate().map(|(i, instance)| instance.host(environment, "Grouped", &quote!(__Tag<#i>)));
    Ok(quote! {
        #(#device)*

        #[cfg(not(target_arch = "nvptx64"))]
        const _: () = {
            // Public, since it is inferred wherever an algorithm is called: the number of a kernel, or of an algorithm.
            #[allow(dead_code, missing_docs, unreachable_pub)]
            pub struct __Tag<const NUMBER: usize>;
            #(#host)*
            #implementations
        };
    })
}

impl Row {
    fn check(&self) -> Result<()> {
        let (algorithm, arguments) = (&self.asked.algorithm, &self.asked.arguments);
        if arguments.len() == self.params.len() && !arguments.iter().any(|a| matches!(a, GenericArgument::Lifetime(_)))
        {
            return Ok(());
        }
        let message =
            format!("`{algorithm}` takes {} types here, and `{}` says which", self.params.len(), self.implemented);
        Err(Error::new(algorithm.span(), message))
    }

    /// One of the kernels, for the arguments.
    fn instance(&self, kernel: usize, tokens: &TokenStream) -> Instance<'_> {
        let (algorithm, arguments) = (&self.asked.algorithm, &self.asked.arguments);
        let name = |kernel: usize| self.kernels[kernel].path.segments.last().map(|last| names::unraw(&last.ident));
        let mut shown = name(kernel).unwrap_or_default();
        // Of a name that comes again, the second is its second.
        let earlier = (0..kernel).filter(|&other| name(other) == name(kernel)).count();
        if earlier > 0 {
            shown = format!("{shown}_{}", earlier + 1);
        }
        let all = names::shown(quote!(#(#arguments),*));
        Instance {
            facade: &self.asked.facade,
            kernel: tokens.clone(),
            entry: format!("{}__{shown}", names::entry(&algorithm.to_string(), &all)),
            shown: format!("{algorithm}::<{all}>::{shown}"),
            params: None,
        }
    }

    /// An argument as calls name it: the element for a span of it.
    fn short(&self, name: &str, argument: &GenericArgument) -> TokenStream {
        let facade = &self.asked.facade;
        let bound = self.bounds.iter().find(|(bounded, _)| bounded.to_string() == name).map(|(_, bound)| bound);
        match bound {
            Some(bound) if bound == "AsSource" => quote!(#facade::__algorithms::ShortSource<#argument>),
            Some(bound) if bound == "AsSink" => quote!(#facade::__algorithms::ShortSink<#argument>),
            _ => argument.to_token_stream(),
        }
    }

    /// A kernel of the row with the arguments in place of the parameters, and with the paths of the rest.
    fn kernel(&self, tokens: TokenStream) -> TokenStream {
        let facade = &self.asked.facade;
        substitute(tokens, &|name| {
            if let Some(at) = self.params.iter().position(|param| param == name) {
                return Some(self.asked.arguments[at].to_token_stream());
            }
            if ["true", "false", "u8", "u32", "u64"].contains(&name) {
                return None;
            }
            let ident = format_ident!("{name}", span = self.asked.algorithm.span());
            Some(quote!(#facade::__algorithms::#ident))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(given: TokenStream) -> Result<String> {
        let input = quote! {
            { {} [{ facade } sort_by [#given] SortBy [C] [Self: AsSource]
                [tiles<Of<Self>, C>, merge<Spans<Self>, Spans<Self>, C>, merge<u8, (), C>]]
                [{ facade } merge [#given]] }
            Merge [C] [Self: AsSource] [merge<Spans<Self>, Spans<Self>, C>]
        };
        let environment = Environment { entries: true, ..Environment::default() };
        expand(input, &environment).map(|tokens| tokens.to_string())
    }

    #[test]
    fn a_row_becomes_its_kernels_and_the_algorithms_trait() {
        let text = rows(quote!(u64, my::Order)).unwrap();
        for part in [
            "facade :: __algorithms :: tiles < facade :: __algorithms :: Of < u64 > , my :: Order >",
            "facade :: __algorithms :: merge < u8 , () , my :: Order >",
            "\"sort_by__u64_my_Order__tiles\"",
            "\"sort_by__u64_my_Order__merge\"",
            "\"sort_by__u64_my_Order__merge_2\"",
            "\"sort_by::<u64, my::Order>::tiles\"",
            "impl facade :: algorithms :: SortBy < my :: Order , __Tag < 0usize >> for facade :: __algorithms :: ShortSource < u64 >",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        // The merge of spans is the sort's too.
        assert_eq!(text.matches("ptx-kernel").count(), 3, "{text}");
        let shared = "impl facade :: algorithms :: Merge < my :: Order , __Tag < 1usize >>";
        let entry = "Entry :: grouped :: < __Tag < 1usize >> () ,) }";
        assert!(text.contains(shared) && text.contains(entry), "{text}");
    }

    #[test]
    fn a_row_that_is_still_wanted_is_asked_for() {
        let input = quote! {
            { {} [] [{ facade } sort_by [u64, Less] { other } merge [f32, Less]] } SortBy [C] [Self: AsSource] [tiles<Of<Self>, C>]
        };
        let text = expand(input, &Environment::default()).unwrap().to_string();
        assert!(
            text.starts_with("other :: __algorithm ! { merge __group { { } [{ facade } sort_by [u64 , Less] SortBy"),
            "{text}"
        );
    }

    #[test]
    fn too_few_arguments_are_an_error() {
        let error = rows(quote!(u64)).unwrap_err().to_string();
        assert!(error.contains("`sort_by` takes 2 types here"), "{error}");
    }
}
