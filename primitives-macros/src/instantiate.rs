//! `instantiate!`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Error, GenericArgument, PathArguments, Result, Token, TypePath};

use crate::environment::Environment;
use crate::instance::{GENERIC_PARAMS, Instance};
use crate::names;

pub(crate) fn expand(input: TokenStream, environment: &Environment) -> Result<TokenStream> {
    let paths = Punctuated::<TypePath, Token![,]>::parse_terminated.parse2(input)?;
    paths.iter().map(|path| one(path, environment)).collect()
}

fn one(path: &TypePath, environment: &Environment) -> Result<TokenStream> {
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
    let facade = quote!(::kernel_primitives);
    let instance = Instance {
        facade: &facade,
        kernel: path.to_token_stream(),
        entry: names::entry(&kernel, &shown),
        shown: format!("{kernel}::<{shown}>"),
        params: GENERIC_PARAMS,
    };
    let device = instance.device(environment);
    let host = instance.host(environment, &quote!(Tag));
    Ok(quote! {
        #device

        #[cfg(not(target_arch = "nvptx64"))]
        const _: () = {
            // Public, since it is inferred wherever the kernel is launched.
            #[allow(dead_code, missing_docs, unreachable_pub)]
            pub struct Tag;
            #host
        };
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
    fn a_kernel_without_arguments_is_an_error() {
        for input in [quote!(kernels::saxpy), quote!(<T as Trait>::saxpy)] {
            let error = expand(input, &Environment::default()).unwrap_err().to_string();
            assert!(error.contains("takes a generic kernel with its arguments"), "{error}");
        }
    }
}
