//! The library's own instantiations: the kernels of the table of what its algorithms are ready for.

use std::collections::{HashMap, HashSet};

use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Error, Result, TypePath};

use crate::environment::Environment;
use crate::instance::Instance;
use crate::product::{Ready, Table, substitute};
use crate::row::{Asked, Row, Rows};
use crate::{instantiate, names};

/// The first call, which asks for the rows of all algorithms in the table.
pub(crate) fn begin(table: TokenStream) -> Result<TokenStream> {
    let facade = quote!(::kernel_primitives);
    let mut known = HashSet::new();
    let ready = syn::parse2::<Table>(table.clone())?.ready()?;
    let algorithms = ready.into_iter().filter(|ready| !ready.is_kernel && known.insert(ready.name.to_string()));
    let asked = algorithms
        .map(|ready| Asked { facade: facade.clone(), algorithm: ready.name, arguments: Vec::new() })
        .collect();
    Ok(Rows { rest: table, rows: Vec::new(), asked }.ask(&format_ident!("__shipped_rows")))
}

/// The calls with a row each. The last one has them all.
pub(crate) fn expand(input: TokenStream, environment: &Environment) -> Result<TokenStream> {
    let rows: Rows = syn::parse2(input)?;
    if !rows.asked.is_empty() {
        return Ok(rows.ask(&format_ident!("__shipped_rows")));
    }
    let table: Table = syn::parse2(rows.rest)?;
    let rows: HashMap<String, Row> = rows.rows.into_iter().map(|row| (row.asked.algorithm.to_string(), row)).collect();
    let facade = quote!(::kernel_primitives);
    let mut tokens = TokenStream::new();
    for (one, other) in table.stand_ins() {
        tokens.extend(quote! {
            const _: () = ::core::assert!(
                ::core::mem::size_of::<#one>() == ::core::mem::size_of::<#other>()
                    && ::core::mem::align_of::<#one>() == ::core::mem::align_of::<#other>(),
                "a type that stands for another is laid out as that"
            );
        });
    }
    // All kernels by their names, in the order of the table, and those that stand for them. What one line shares is shared in all.
    let (mut kernels, mut order, mut checks) = (HashMap::new(), Vec::new(), Vec::new());
    for ready in table.ready()? {
        checks.extend(check(&rows, &ready));
        for (own, other) in kernels_of(&rows, &ready)? {
            let (name, other_name) = (names::shown(own.to_token_stream()), names::shown(other.to_token_stream()));
            let shared = (name != other_name).then_some((other, other_name));
            if !kernels.contains_key(&name) {
                order.push(name.clone());
            }
            let (_, known) = kernels.entry(name).or_insert((own, None));
            *known = known.take().or(shared);
        }
    }
    for name in &order {
        let (own, shared) = &kernels[name];
        let Some((other, other_name)) = shared else {
            let instance: Instance<'_> = instantiate::instance(&facade, own)?;
            let (device, host) =
                (instance.device(environment), instance.host(environment, "Instantiated", &quote!(())));
            tokens.extend(quote! {
                #device
                #[cfg(not(target_arch = "nvptx64"))]
                #host
            });
            continue;
        };
        if !matches!(kernels.get(other_name), Some((_, None))) {
            let message = format!("`{name}` has the kernel of `{other_name}`, which no line of the table compiles");
            return Err(Error::new_spanned(own, message));
        }
        tokens.extend(quote! {
            #[cfg(not(target_arch = "nvptx64"))]
            impl #facade::__private::Instantiated<()> for #own {
                fn info() -> &'static #facade::__private::KernelInfo {
                    const {
                        ::core::assert!(<#own>::__SHARED.1 == <#other>::__SHARED.1, "the same shared memory");
                    }
                    <#other as #facade::__private::Instantiated<()>>::info()
                }
            }
        });
    }
    tokens.extend(quote! {
        #[cfg(not(target_arch = "nvptx64"))]
        const _: () = {
            #[allow(dead_code)]
            fn ready() {
                #(#checks)*
            }
        };
    });
    Ok(tokens)
}

/// A statement that compiles only if the trait of the algorithm holds for the arguments of a line: there are kernels for them. It does not
/// check what calls ask for beyond that; `tests/product` calls many algorithms with the types of the table.
fn check(rows: &HashMap<String, Row>, ready: &Ready) -> Option<TokenStream> {
    let Ready { is_kernel, name, arguments, .. } = ready;
    let (first, others) = arguments.split_first().filter(|_| !is_kernel)?;
    let implemented = &rows[&name.to_string()].implemented;
    // An error then shows the line of the table.
    Some(quote_spanned! {name.span()=>
        let _ = <#first as ::kernel_primitives::algorithms::#implemented<#(#others,)* ()>>::kernels;
    })
}

/// The kernels of a line, for its arguments and for what stands for them.
fn kernels_of(rows: &HashMap<String, Row>, ready: &Ready) -> Result<Vec<(TypePath, TypePath)>> {
    let Ready { is_kernel, name, arguments, kernels_of } = ready;
    if *is_kernel {
        let of = |arguments: &[TokenStream]| syn::parse2(quote!(#name<#(#arguments),*>));
        return Ok(vec![(of(arguments)?, of(kernels_of)?)]);
    }
    let row = &rows[&name.to_string()];
    let both = |kernel| Ok((kernel_of(row, kernel, name, arguments)?, kernel_of(row, kernel, name, kernels_of)?));
    row.kernels.iter().map(both).collect()
}

/// The kernel for some arguments, with the types that the names of the table stand for.
fn kernel_of(row: &Row, kernel: &TypePath, algorithm: &Ident, arguments: &[TokenStream]) -> Result<TypePath> {
    if arguments.len() != row.params.len() {
        let message = format!("`{algorithm}` takes {} types here", row.params.len());
        return Err(Error::new(algorithm.span(), message));
    }
    let value = |name: &str| row.params.iter().position(|param| param == name).map(|at| arguments[at].clone());
    syn::parse2(resolved(substitute(kernel.to_token_stream(), &value))?)
}

/// The tokens with sources, sinks and items in place of `Of<…>`, `To<…>`, `Item<…>` and `Spans<…>`. So that equal types are equal
/// tokens: two algorithms may name one kernel in two ways, and it is compiled once.
fn resolved(tokens: TokenStream) -> Result<TokenStream> {
    let mut out = TokenStream::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => {
                out.extend([TokenTree::Group(Group::new(group.delimiter(), resolved(group.stream())?))]);
            }
            TokenTree::Ident(name) if ["Of", "To", "Item", "Spans"].iter().any(|known| name == known) => {
                tokens.next();
                let mut depth = 1;
                let inside = tokens.by_ref().take_while(|token| {
                    if let TokenTree::Punct(punct) = token {
                        depth += match punct.as_char() {
                            '<' => 1,
                            '>' => -1,
                            _ => 0,
                        };
                    }
                    depth > 0
                });
                let inside = inside.collect();
                out.extend(meaning(&name, resolved(inside)?)?);
            }
            other => out.extend([other]),
        }
    }
    Ok(out)
}

/// What a name of the table stands for, of an element, which is a name alone, or of a source or sink.
fn meaning(name: &Ident, of: TokenStream) -> Result<TokenStream> {
    let is_element = of.clone().into_iter().count() == 1;
    let item = || {
        // Of the sources in the table that have one type, it is their items' type.
        let path: TypePath = syn::parse2(of.clone())?;
        match path.path.segments.last().map(|last| (last.ident.to_string(), &last.arguments)) {
            _ if is_element => Ok(of.clone()),
            Some((source, syn::PathArguments::AngleBracketed(arguments))) if source == "Counting" => {
                Ok(arguments.args.to_token_stream())
            }
            _ => Err(Error::new_spanned(&of, "the items of this source are not known here")),
        }
    };
    Ok(match name.to_string().as_str() {
        "Of" if is_element => quote!(Span<#of>),
        "To" if is_element => quote!(SpanMut<#of>),
        "Item" => item()?,
        "Spans" => {
            let item = item()?;
            quote!(Span<#item>)
        }
        _ => of,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table's kernels, given the rows of two algorithms.
    fn text(table: TokenStream) -> Result<String> {
        let input = quote! {
            { { #table } [{ f } sort [] Sort [V] [] [tiles<Of<Self>, Spans<V>>, last<Item<V>>]] [{ f } merge []] }
            Merge [V] [] [tiles<Spans<Self>, Of<V>>, splits<To<Self>, true>]
        };
        let environment = Environment { entries: true, ..Environment::default() };
        expand(input, &environment).map(|tokens| tokens.to_string())
    }

    #[test]
    fn all_rows_are_asked_for_once() {
        let call = begin(quote!(for T in [u8, u16] { sort<T, T>, merge<T, T> })).unwrap().to_string();
        assert!(call.starts_with(":: kernel_primitives :: __algorithm ! { sort __shipped_rows"), "{call}");
        assert_eq!((call.matches("} sort []").count(), call.matches("} merge []").count()), (1, 1), "{call}");
    }

    #[test]
    fn a_kernel_of_two_algorithms_is_compiled_once() {
        let text = text(quote!(for T in [u8] { sort<T, Counting<u32>>, sort<T, u32>, merge<T, u32> })).unwrap();
        assert_eq!(text.matches("ptx-kernel").count(), 3, "{text}");
        for kernel in ["tiles < Span < u8 > , Span < u32 > >", "last < u32 >", "splits < SpanMut < u8 > , true >"] {
            assert!(text.contains(&format!("Instantiated < () > for {kernel}")), "{kernel}: {text}");
        }
    }

    #[test]
    fn a_kernel_serves_the_types_that_another_stands_for() {
        let text = text(quote! {
            moved = { f32: u32 };
            for T in [u8], V in [f32, u32] as moved { sort<T, V> }
        });
        let text = text.unwrap();
        assert_eq!(text.matches("ptx-kernel").count(), 2, "{text}");
        let shared = "< last < u32 > as :: kernel_primitives :: __private :: Instantiated < () >> :: info ()";
        assert!(text.contains("Instantiated < () > for last < f32 >") && text.contains(shared), "{text}");
    }

    #[test]
    fn the_trait_is_checked_for_each_type_and_not_for_what_stands_for_it() {
        let text = text(quote! {
            moved = { f32: u32 };
            for T in [u8], V in [f32, u32] as moved { sort<T, V> }
            for V in [f32] as moved share { last<V> }
        });
        let text = text.unwrap();
        for value in ["f32", "u32"] {
            let check =
                format!("let _ = < u8 as :: kernel_primitives :: algorithms :: Sort < {value} , () >> :: kernels ;");
            assert_eq!(text.matches(&check).count(), 1, "{text}");
        }
        assert_eq!(text.matches(":: kernels ;").count(), 2, "{text}");
    }

    #[test]
    fn a_kernel_that_is_shared_is_shared_in_all_lines() {
        let text = text(quote! {
            moved = { f32: u32 };
            for V in [u32, f32] { sort<u8, V> }
            for V in [f32] as moved share { last<V> }
        });
        let text = text.unwrap();
        assert_eq!(text.matches("ptx-kernel").count(), 3, "{text}");
        assert_eq!(text.matches("Instantiated < () > for last < f32 >").count(), 1, "{text}");
    }

    #[test]
    fn a_kernel_that_nothing_compiles_serves_nothing() {
        let error = text(quote! {
            moved = { f32: u32 };
            for V in [f32] as moved { sort<u8, V> }
        });
        let error = error.unwrap_err().to_string();
        assert!(error.contains("which no line of the table compiles"), "{error}");
    }
}
