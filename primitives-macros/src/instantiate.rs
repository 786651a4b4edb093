//! `instantiate!`.

use std::collections::HashSet;

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, GenericArgument, Path, PathArguments, Result, Token, TypePath};

use crate::environment::Environment;
use crate::instance::Instance;
use crate::names;
use crate::row::{Asked, Rows};

pub(crate) fn expand(input: TokenStream, environment: &Environment) -> Result<TokenStream> {
    let Input { facade, paths } = syn::parse2(input)?;
    let (mut tokens, mut asked, mut entries) = (TokenStream::new(), Vec::new(), HashSet::new());
    for path in &paths {
        if let Some(algorithm) = algorithm(path, &facade) {
            asked.push(algorithm);
            continue;
        }
        let instance = instance(&facade, path)?;
        tokens.extend(one(&instance, environment));
        if !entries.insert(instance.entry) {
            let message = "an earlier kernel of this list has the same name and arguments, and so the same name in PTX: \
                           list each once, and instantiate this one in a module of its own if it is another";
            return Err(Error::new_spanned(path, message));
        }
    }
    // The table of algorithms says which kernels these have.
    tokens.extend(Rows { rest: TokenStream::new(), rows: Vec::new(), asked }.ask(&format_ident!("__group")));
    Ok(tokens)
}

/// `crate = path, ` if `kernel-primitives` is elsewhere, and the kernels.
struct Input {
    facade: TokenStream,
    paths: Punctuated<TypePath, Token![,]>,
}

impl Parse for Input {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut facade = quote!(::kernel_primitives);
        if input.peek(Token![crate]) && input.peek2(Token![=]) {
            input.parse::<Token![crate]>()?;
            input.parse::<Token![=]>()?;
            facade = input.call(Path::parse_mod_style)?.into_token_stream();
            input.parse::<Token![,]>()?;
        }
        Ok(Self { facade, paths: Punctuated::parse_terminated(input)? })
    }
}

fn one(instance: &Instance<'_>, environment: &Environment) -> TokenStream {
    let device = instance.device(environment);
    let host = instance.host(environment, "Instantiated", &quote!(__Tag));
    quote! {
        #device

        #[cfg(not(target_arch = "nvptx64"))]
        const _: () = {
            // Public, since it is inferred wherever the kernel is launched.
            #[allow(dead_code, missing_docs, unreachable_pub)]
            pub struct __Tag;
            #host
        };
    }
}

/// The row of the table that a path asks for, which ends with `algorithms::name<…>`.
fn algorithm(path: &TypePath, facade: &TokenStream) -> Option<Asked> {
    let segments: Vec<_> = path.path.segments.iter().collect();
    let [before @ .., module, last] = segments.as_slice() else { return None };
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    if path.qself.is_some() || module.ident != "algorithms" {
        return None;
    }
    let colon = &path.path.leading_colon;
    let facade = match before {
        [] => facade.clone(),
        [first, ..] => {
            let given = quote!(#colon #(#before)::*);
            // A module of the crate's own, unless the library is there.
            let is_own = ["crate", "self", "super"].iter().any(|own| first.ident == own);
            if is_own && given.to_string() != facade.to_string() {
                return None;
            }
            given
        }
    };
    Some(Asked { facade, algorithm: last.ident.clone(), arguments: arguments.args.iter().cloned().collect() })
}

pub(crate) fn instance<'a>(facade: &'a TokenStream, path: &TypePath) -> Result<Instance<'a>> {
    let form =
        "`instantiate!` takes a generic kernel with its arguments: `instantiate!(kernels::reduce::<f32, MyFn, 4>)`";
    let Some(last) = path.path.segments.last().filter(|_| path.qself.is_none()) else {
        return Err(Error::new_spanned(path, form));
    };
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return Err(Error::new_spanned(path, form));
    };
    if let Some(lifetime) = arguments.args.iter().find(|a| matches!(a, GenericArgument::Lifetime(_))) {
        return Err(Error::new_spanned(lifetime, "kernels have no lifetime parameters: leave it out"));
    }
    let shown = names::shown(arguments.args.to_token_stream());
    let kernel = names::unraw(&last.ident);
    Ok(Instance {
        facade,
        kernel: path.to_token_stream(),
        entry: names::entry(&kernel, &shown),
        shown: format!("{kernel}::<{shown}>"),
        params: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(input: TokenStream, entries: bool) -> String {
        let environment = Environment { entries, ..Environment::default() };
        expand(input, &environment).unwrap().to_string()
    }

    #[test]
    fn the_kernel_keeps_its_path_and_the_entry_gets_its_arguments() {
        let text = text(quote!(some_crate::kernels::reduce::<f32, MyFn, 4>), true);
        assert!(text.contains("for some_crate :: kernels :: reduce :: < f32 , MyFn , 4 >"));
        assert!(text.contains("\"reduce__f32_MyFn_4\""));
        assert!(text.contains("\"reduce::<f32, MyFn, 4>\""));
        assert!(text.contains("FlatParam < 31usize >") && !text.contains("FlatParam < 32usize >"));
    }

    #[test]
    fn entries_are_for_entry_packages_only() {
        assert!(!text(quote!(reduce::<f32>), false).contains("ptx-kernel"));
    }

    #[test]
    fn several_kernels_in_one_call() {
        assert_eq!(text(quote!(a::<f32>, crate::b::<f64>,), false).matches("fn info").count(), 2);
    }

    #[test]
    fn algorithms_are_looked_up_in_the_table_of_their_crate() {
        let text = text(quote!(a::<f32>, kp::algorithms::top_k<u8, Less>, algorithms::merge<u8, u8, Less>), false);
        let call = "kp :: __algorithm ! { top_k __group { { } [] [{ kp } top_k [u8 , Less] \
                    { :: kernel_primitives } merge [u8 , u8 , Less]] } }";
        assert!(text.ends_with(call) && text.matches("fn info").count() == 1, "{text}");
    }

    #[test]
    fn two_kernels_of_one_entry_are_an_error() {
        for input in [quote!(a::k::<f32>, b::k::<f32>), quote!(k::<{ !0 }>, k::<f32>, k::<0>), quote!(k::<f32>, k<f32>)]
        {
            let error = expand(input, &Environment::default()).unwrap_err().to_string();
            assert!(error.contains("in a module of its own"), "{error}");
        }
        text(quote!(a::k::<f32>, b::k::<f64>, a::j::<f32>, k::<{ -1 }>, k::<1>), false);
    }

    #[test]
    fn the_facade_can_be_elsewhere() {
        let text = text(quote!(crate = crate::inner::kp, crate::b::<f64>, some_crate::c::<f32>), true);
        assert!(text.contains("crate :: inner :: kp :: __private :: Instantiated"), "{text}");
        assert!(text.contains("for some_crate :: c :: < f32 >") && !text.contains(":: kernel_primitives"), "{text}");
    }

    #[test]
    fn a_kernel_without_arguments_is_an_error() {
        for input in [quote!(kernels::saxpy), quote!(<T as Trait>::saxpy)] {
            let error = expand(input, &Environment::default()).unwrap_err().to_string();
            assert!(error.contains("takes a generic kernel with its arguments"), "{error}");
        }
    }
}
