//! The table of what the library ships: algorithms multiplied by types and operators.

use std::collections::HashMap;

use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, GenericArgument, PathArguments, Result, Token, Type, TypePath, braced, bracketed};

/// A table:
///
/// ```text
/// numbers = [i32, u32, f32, f64];
/// moved = { i32: u32, f32: u32, f64: u64 };
/// for K in numbers, V in numbers as moved { sort_pairs<K, V> }
/// ```
///
/// A list has a name. A map says which type stands for another: `V in numbers as moved` takes each of the list for `V`, and the kernels
/// are those of the type that stands for it. After `share`, a line names kernels rather than algorithms.
pub(crate) struct Table {
    lists: HashMap<String, Vec<TokenStream>>,
    maps: HashMap<String, Vec<(Ident, Ident)>>,
    loops: Vec<Loop>,
}

/// `for K in numbers, V in [u32, u64] as moved { … }`
struct Loop {
    variables: Vec<Variable>,
    of_kernels: bool,
    body: TokenStream,
}

struct Variable {
    name: Ident,
    values: List,
    map: Option<Ident>,
}

enum List {
    Named(Ident),
    Of(Vec<TokenStream>),
}

/// An algorithm with its arguments, or a kernel.
pub(crate) struct Ready {
    pub(crate) is_kernel: bool,
    pub(crate) name: Ident,
    pub(crate) arguments: Vec<TokenStream>,
    /// The arguments whose kernels these are; mostly the same.
    pub(crate) kernels_of: Vec<TokenStream>,
}

impl Table {
    /// The types that stand for others, with them.
    pub(crate) fn stand_ins(&self) -> impl Iterator<Item = &(Ident, Ident)> {
        self.maps.values().flatten()
    }

    /// The lines, multiplied out.
    pub(crate) fn ready(&self) -> Result<Vec<Ready>> {
        let mut all = Vec::new();
        for &Loop { ref variables, of_kernels, ref body } in &self.loops {
            // By variable the value, and what stands for it.
            let mut choices = vec![HashMap::new()];
            for variable in variables {
                let values = self.values(variable)?;
                let with = |choice: &HashMap<String, _>, value: &(TokenStream, TokenStream)| {
                    let mut choice = choice.clone();
                    choice.insert(variable.name.to_string(), value.clone());
                    choice
                };
                choices = choices.iter().flat_map(|choice| values.iter().map(|value| with(choice, value))).collect();
            }
            for choice in choices {
                let own = paths(substitute(body.clone(), &|name| Some(choice.get(name)?.0.clone())))?;
                let kernels = paths(substitute(body.clone(), &|name| Some(choice.get(name)?.1.clone())))?;
                for ((name, arguments), (_, kernels_of)) in own.into_iter().zip(kernels) {
                    all.push(Ready { is_kernel: of_kernels, name, arguments, kernels_of });
                }
            }
        }
        Ok(all)
    }

    fn values(&self, variable: &Variable) -> Result<Vec<(TokenStream, TokenStream)>> {
        let unknown = |name: &Ident| Error::new(name.span(), "no list or map of this name stands above");
        let values = match &variable.values {
            List::Named(name) => self.lists.get(&name.to_string()).ok_or_else(|| unknown(name))?,
            List::Of(values) => values,
        };
        let map = match &variable.map {
            Some(name) => self.maps.get(&name.to_string()).ok_or_else(|| unknown(name))?,
            None => &Vec::new(),
        };
        let stands_for = |value: &TokenStream| {
            let entry = map.iter().find(|(one, _)| *one == value.to_string());
            entry.map_or_else(|| value.clone(), |(_, other)| other.to_token_stream())
        };
        Ok(values.iter().map(|value| (value.clone(), stands_for(value))).collect())
    }
}

/// The algorithms of a line, with their arguments.
fn paths(tokens: TokenStream) -> Result<Vec<(Ident, Vec<TokenStream>)>> {
    let paths = syn::parse::Parser::parse2(Punctuated::<TypePath, Token![,]>::parse_terminated, tokens)?;
    let one = |path: &TypePath| {
        let last = path.path.segments.last().filter(|_| path.path.segments.len() == 1);
        let last = last.ok_or_else(|| Error::new_spanned(path, "an algorithm's name with its arguments"))?;
        let arguments = match &last.arguments {
            PathArguments::AngleBracketed(arguments) => arguments.args.iter().collect::<Vec<&GenericArgument>>(),
            _ => Vec::new(),
        };
        Ok((last.ident.clone(), arguments.into_iter().map(ToTokens::to_token_stream).collect()))
    };
    paths.iter().map(one).collect()
}

/// The tokens with others in place of names.
pub(crate) fn substitute(tokens: TokenStream, value: &impl Fn(&str) -> Option<TokenStream>) -> TokenStream {
    let one = |token| match token {
        TokenTree::Group(group) => Group::new(group.delimiter(), substitute(group.stream(), value)).into_token_stream(),
        TokenTree::Ident(ident) => value(&ident.to_string()).unwrap_or_else(|| quote!(#ident)),
        other => other.into_token_stream(),
    };
    tokens.into_iter().map(one).collect()
}

impl Parse for Table {
    fn parse(input: ParseStream) -> Result<Self> {
        let (mut lists, mut maps, mut loops) = (HashMap::new(), HashMap::new(), Vec::new());
        while !input.is_empty() {
            if input.peek(Token![for]) {
                loops.push(input.parse()?);
                continue;
            }
            let name = input.parse::<Ident>()?.to_string();
            input.parse::<Token![=]>()?;
            if input.peek(syn::token::Brace) {
                let inside;
                braced!(inside in input);
                let entry = |input: ParseStream| {
                    let one = input.parse()?;
                    input.parse::<Token![:]>()?;
                    Ok((one, input.parse()?))
                };
                maps.insert(name, inside.parse_terminated(entry, Token![,])?.into_iter().collect());
            } else {
                lists.insert(name, list(input)?);
            }
            input.parse::<Token![;]>()?;
        }
        Ok(Self { lists, maps, loops })
    }
}

impl Parse for Loop {
    fn parse(input: ParseStream) -> Result<Self> {
        input.parse::<Token![for]>()?;
        let variables = Punctuated::<Variable, Token![,]>::parse_separated_nonempty(input)?.into_iter().collect();
        let share: Option<Ident> = input.parse()?;
        if let Some(other) = share.as_ref().filter(|&share| share != "share") {
            return Err(Error::new(other.span(), "`share` before kernels, or nothing before algorithms"));
        }
        let body;
        braced!(body in input);
        Ok(Self { variables, of_kernels: share.is_some(), body: body.parse()? })
    }
}

impl Parse for Variable {
    fn parse(input: ParseStream) -> Result<Self> {
        let name = input.parse()?;
        input.parse::<Token![in]>()?;
        let values = match input.peek(syn::token::Bracket) {
            true => List::Of(list(input)?),
            false => List::Named(input.parse()?),
        };
        let map = input.parse::<Option<Token![as]>>()?.map(|_| input.parse()).transpose()?;
        Ok(Self { name, values, map })
    }
}

fn list(input: ParseStream) -> Result<Vec<TokenStream>> {
    let inside;
    bracketed!(inside in input);
    let item = |input: ParseStream| input.parse::<Type>().map(ToTokens::into_token_stream);
    Ok(inside.parse_terminated(item, Token![,])?.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;

    /// Each line as `sort_pairs<f32, i32> of f32, u32`.
    fn shown(tokens: TokenStream) -> Result<Vec<String>> {
        let of = |arguments: Vec<TokenStream>| names::shown(quote!(#(#arguments),*));
        let line = |Ready { is_kernel, name, arguments, kernels_of }: Ready| {
            let what = if is_kernel { "kernel " } else { "" };
            format!("{what}{name}<{}> of {}", of(arguments), of(kernels_of))
        };
        Ok(syn::parse2::<Table>(tokens)?.ready()?.into_iter().map(line).collect())
    }

    #[test]
    fn lists_are_multiplied_in_their_order() {
        let found = shown(quote! {
            floats = [f32, f64];
            for T in floats, R in [Add, Max] { scan<T, R>, copy<Zip<T, T>> }
            for T in [u8] { copy<T> }
        });
        let expected = [
            "scan<f32, Add> of f32, Add",
            "copy<Zip<f32, f32>> of Zip<f32, f32>",
            "scan<f32, Max> of f32, Max",
            "copy<Zip<f32, f32>> of Zip<f32, f32>",
            "scan<f64, Add> of f64, Add",
            "copy<Zip<f64, f64>> of Zip<f64, f64>",
            "scan<f64, Max> of f64, Max",
            "copy<Zip<f64, f64>> of Zip<f64, f64>",
            "copy<u8> of u8",
        ];
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn another_type_may_stand_for_one() {
        let found = shown(quote! {
            moved = { f32: u32 };
            for K in [f32, u32], V in [f32, u32] as moved { sort_pairs<K, V> }
            for T in [f32] as moved share { last<T> }
        });
        let expected = [
            "sort_pairs<f32, f32> of f32, u32",
            "sort_pairs<f32, u32> of f32, u32",
            "sort_pairs<u32, f32> of u32, u32",
            "sort_pairs<u32, u32> of u32, u32",
            "kernel last<f32> of u32",
        ];
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn a_list_or_map_that_is_not_there_is_an_error() {
        for table in [quote!(for T in numbers { copy<T> }), quote!(for T in [u8] as moved { copy<T> })] {
            let error = shown(table).unwrap_err().to_string();
            assert_eq!(error, "no list or map of this name stands above");
        }
    }
}
