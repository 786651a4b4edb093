//! `#[device_function]`.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Error, FnArg, ItemFn, Path, Result, ReturnType, Token, Type};

use crate::environment::{Environment, PTX_FOLDER};
use crate::instance::flat_ident;
use crate::kernel::{at, docs, generated, internal};
use crate::names;
use crate::signature::Errors;

pub(crate) fn expand(arguments: TokenStream, item: TokenStream, environment: &Environment) -> Result<TokenStream> {
    let item: ItemFn = syn::parse2(item)
        .map_err(|error| Error::new(error.span(), format!("`#[device_function]` goes on a function: {error}")))?;
    let Facade(facade) = syn::parse2(arguments)?;
    let (params, result) = types(&item)?;
    Ok(Function { item, params, result, facade }.expand(environment))
}

/// The facade's path: `crate = path`, or nothing for `::kernel_primitives`.
struct Facade(TokenStream);

impl Parse for Facade {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if input.is_empty() {
            return Ok(Self(quote!(::kernel_primitives)));
        }
        let key = input.call(Ident::parse_any)?;
        if key != "crate" {
            return Err(Error::new(key.span(), "`#[device_function]` knows `crate = path`"));
        }
        input.parse::<Token![=]>()?;
        Ok(Self(input.call(Path::parse_mod_style)?.into_token_stream()))
    }
}

/// The types of the parameters and of the result, or every mistake in the signature. Which types are allowed is a trait's
/// matter, so that aliases are.
fn types(item: &ItemFn) -> Result<(Vec<Type>, Type)> {
    let mut errors = Errors::default();
    let sig = &item.sig;
    if let Some(token) = sig.asyncness {
        errors.at(token, "a device function is an ordinary function: remove `async`");
    }
    if let Some(token) = sig.unsafety {
        errors
            .at(token, "a device function is a safe function: remove `unsafe`, and write `unsafe` blocks in its body");
    }
    if let Some(token) = &sig.abi {
        errors
            .at(token, "a device function is an ordinary function: remove `extern`, the macro writes the PTX function");
    }
    if let Some(variadic) = &sig.variadic {
        errors.at(variadic, "a device function has a fixed number of parameters: remove `...`");
    }
    if !sig.generics.params.is_empty() {
        let message = "a device function is not generic, since it has one symbol in PTX: write one for each type, which \
                       may call a generic function";
        errors.at(&sig.generics, message);
    }
    if let Some(clause) = &sig.generics.where_clause {
        errors.at(clause, "a device function is not generic: remove `where`");
    }

    let mut params = Vec::new();
    for input in &sig.inputs {
        match input {
            FnArg::Receiver(receiver) => {
                errors.at(receiver, "a device function is a free function: replace `self` by a value");
            }
            FnArg::Typed(param) => {
                if let Some(attribute) = param.attrs.first() {
                    errors.at(attribute, "a device function has the same parameters everywhere: remove the attribute");
                }
                check_type(&param.ty, &mut errors);
                params.push((*param.ty).clone());
            }
        }
    }
    let result = match &sig.output {
        ReturnType::Type(_, ty) => {
            check_type(ty, &mut errors);
            Some((**ty).clone())
        }
        ReturnType::Default => None,
    };
    let missing = Error::new(sig.paren_token.span.join(), "a device function returns a value: write `-> f32`, say");
    if result.is_none() {
        errors.push(missing.clone());
    }
    errors.finish()?;
    Ok((params, result.ok_or(missing)?))
}

/// Types that could not stand where the expansion has them.
fn check_type(ty: &Type, errors: &mut Errors) {
    match ty {
        Type::Paren(inner) => check_type(&inner.elem, errors),
        Type::Group(inner) => check_type(&inner.elem, errors),
        Type::Reference(_) | Type::Ptr(_) | Type::Slice(_) => {
            errors.at(ty, "a device function takes and returns values: no references, pointers and slices");
        }
        Type::ImplTrait(_) | Type::Infer(_) | Type::Never(_) => {
            errors.at(ty, "a device function takes and returns `f32`, `f64`, `bool` and integers of 8 to 64 bits");
        }
        _ => {}
    }
}

struct Function {
    item: ItemFn,
    params: Vec<Type>,
    result: Type,
    facade: TokenStream,
}

impl Function {
    fn expand(&self, environment: &Environment) -> TokenStream {
        let (function, ty, info) = (self.function(), self.ty(), self.info(environment));
        let device = environment.entries.then(|| self.device());
        quote! {
            #function
            #ty
            #info
            #device
        }
    }

    /// The function's name without `r#`.
    fn name(&self) -> String {
        names::unraw(&self.item.sig.ident)
    }

    fn attributes(&self, name: &str) -> Vec<&Attribute> {
        self.item.attrs.iter().filter(|attribute| attribute.path().is_ident(name)).collect()
    }

    /// The function as it was written.
    fn function(&self) -> TokenStream {
        let item = &self.item;
        let inline = self.attributes("inline").is_empty().then(|| quote!(#[inline]));
        quote! {
            #inline
            #[allow(dead_code)]
            #item
        }
    }

    /// The type of the same name, which the information is a method of.
    fn ty(&self) -> TokenStream {
        let (vis, ident) = (generated(&self.item.vis), &self.item.sig.ident);
        let attributes = self.attributes("cfg").into_iter().chain(self.attributes("doc"));
        let docs = docs(&[
            "",
            "# Device function",
            "",
            "`info()` has its names, its code for the GPU, and the function itself.",
        ]);
        quote! {
            #(#attributes)*
            #docs
            #[allow(non_camel_case_types, dead_code)]
            #vis enum #ident {}
        }
    }

    fn info(&self, environment: &Environment) -> TokenStream {
        let Self { params, result, facade, .. } = self;
        let (vis, ident, name) = (generated(&self.item.vis), &self.item.sig.ident, self.name());
        let cfgs = self.attributes("cfg");
        let images = if environment.images.contains(&name) {
            quote! {
                ::core::include!(::core::concat!(
                    ::core::env!(#PTX_FOLDER), "/", ::core::module_path!(), "/", #name, ".rs"
                ))
            }
        } else {
            quote!(&[])
        };
        let value = |ty: &Type| quote_spanned!(at(ty.span())=> <#ty as #facade::FunctionValue>::TYPE);
        let param_types = params.iter().map(value);
        let result_type = value(result);
        let (path, symbol, info) = (internal("__PATH"), internal("__SYMBOL"), internal("__INFO"));
        quote! {
            #(#cfgs)*
            #[cfg(not(target_arch = "nvptx64"))]
            #[allow(dead_code, clippy::all, clippy::pedantic)]
            impl #ident {
                /// What the host knows of the function: its names, its code by architecture, and the function itself.
                #vis fn info() -> &'static #facade::FunctionInfo<fn(#(#params),*) -> #result> {
                    const #path: &str = ::core::concat!(::core::module_path!(), "::", #name);
                    const #symbol: [u8; #path.len()] = #facade::__private::symbol(#path);
                    static #info: #facade::FunctionInfo<fn(#(#params),*) -> #result> = #facade::FunctionInfo::new(
                        #ident,
                        #facade::FunctionCode::new(
                            #path,
                            match ::core::str::from_utf8(&#symbol) {
                                ::core::result::Result::Ok(symbol) => symbol,
                                ::core::result::Result::Err(_) => #path,
                            },
                            &[#(#param_types),*],
                            #result_type,
                            #images,
                        ),
                    );
                    &#info
                }
            }
        }
    }

    /// The PTX function.
    fn device(&self) -> TokenStream {
        let Self { params, result, .. } = self;
        let (ident, name, cfgs) = (&self.item.sig.ident, self.name(), self.attributes("cfg"));
        let idents = (0..params.len()).map(flat_ident).collect::<Vec<_>>();
        // Functions have no hygiene: the name must not hide the user's.
        let entry = internal("__device_function");
        quote! {
            #(#cfgs)*
            #[cfg(target_arch = "nvptx64")]
            const _: () = {
                // SAFETY: the path is a name that nothing else has.
                #[unsafe(export_name = ::core::concat!(::core::module_path!(), "::", #name))]
                #[allow(improper_ctypes_definitions, clippy::all)]
                extern "C" fn #entry(#(#idents: #params),*) -> #result {
                    #ident(#(#idents),*)
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(arguments: TokenStream, item: TokenStream) -> String {
        let environment = Environment { entries: true, images: ["smooth".to_owned()].into() };
        let tokens = expand(arguments, item, &environment).unwrap();
        syn::parse2::<syn::File>(tokens.clone()).expect("items");
        tokens.to_string()
    }

    #[test]
    fn a_function_has_a_type_with_its_information_and_a_ptx_function() {
        let text = text(
            quote!(),
            quote!(
                pub fn smooth(x: f32, (mut n): u8) -> f32 {
                    x
                }
            ),
        );
        for part in [
            quote!(
                pub enum smooth {}
            ),
            quote!(pub fn info() -> &'static ::kernel_primitives::FunctionInfo<fn(f32, u8) -> f32>),
            quote!(&[
                <f32 as ::kernel_primitives::FunctionValue>::TYPE,
                <u8 as ::kernel_primitives::FunctionValue>::TYPE
            ]),
            quote!(
                extern "C" fn __device_function(p0: f32, p1: u8) -> f32 {
                    smooth(p0, p1)
                }
            ),
            quote!("/", ::core::module_path!(), "/", "smooth", ".rs"),
        ] {
            assert!(text.contains(&part.to_string()), "{part} is not in {text}");
        }
    }

    #[test]
    fn the_facade_can_be_elsewhere_and_a_condition_holds_for_everything() {
        let text = text(
            quote!(crate = crate::inner),
            quote!(
                #[cfg(feature = "x")]
                fn other(x: f32) -> f32 {
                    x
                }
            ),
        );
        assert!(!text.contains(":: kernel_primitives") && !text.contains("include"), "{text}");
        assert_eq!(text.matches("feature").count(), 4, "{text}");
    }

    #[test]
    fn every_mistake_is_one_sentence_that_says_what_to_write() {
        for (arguments, item, fragment) in [
            (
                quote!(),
                quote!(
                    struct S;
                ),
                "goes on a function",
            ),
            (
                quote!(inline),
                quote!(
                    fn f() -> f32 {
                        0.0
                    }
                ),
                "knows `crate = path`",
            ),
            (
                quote!(),
                quote!(
                    fn f(x: f32) {}
                ),
                "returns a value",
            ),
            (
                quote!(),
                quote!(
                    fn f<T>(x: T) -> T {
                        x
                    }
                ),
                "not generic",
            ),
            (
                quote!(),
                quote!(
                    fn f(x: f32) -> f32
                    where
                        f32: Copy,
                    {
                        x
                    }
                ),
                "remove `where`",
            ),
            (
                quote!(),
                quote!(
                    fn f(x: &f32) -> f32 {
                        *x
                    }
                ),
                "no references",
            ),
            (
                quote!(),
                quote!(
                    fn f(x: impl Copy) -> f32 {
                        0.0
                    }
                ),
                "integers of 8 to 64 bits",
            ),
            (
                quote!(),
                quote!(
                    fn f(&self) -> f32 {
                        0.0
                    }
                ),
                "replace `self`",
            ),
            (
                quote!(),
                quote!(
                    async fn f() -> f32 {
                        0.0
                    }
                ),
                "remove `async`",
            ),
            (
                quote!(),
                quote!(
                    unsafe fn f() -> f32 {
                        0.0
                    }
                ),
                "remove `unsafe`",
            ),
            (
                quote!(),
                quote!(
                    extern "C" fn f() -> f32 {
                        0.0
                    }
                ),
                "remove `extern`",
            ),
            (
                quote!(),
                quote!(
                    fn f(#[cfg(test)] x: f32) -> f32 {
                        0.0
                    }
                ),
                "same parameters",
            ),
        ] {
            let error = expand(arguments, item.clone(), &Environment::default()).unwrap_err();
            assert!(error.into_iter().any(|error| error.to_string().contains(fragment)), "{item}: {fragment}");
        }
    }
}
