//! `#[derive(KernelParam)]` and `#[derive(Element)]`.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Data, DeriveInput, Error, Field, Fields, GenericParam, Ident, Index, Path, Result, WherePredicate, parse_quote,
};

use crate::names;

pub(crate) fn kernel_param(input: TokenStream) -> Result<TokenStream> {
    let derive = Derive::parse(input, "KernelParam")?;
    if !derive.fields.is_empty() {
        derive.check_repr()?;
    }
    let facade = &derive.facade;
    Ok(derive.kernel_param(&quote!(#facade::view::value_layout)))
}

pub(crate) fn element(input: TokenStream) -> Result<TokenStream> {
    let derive = Derive::parse(input, "Element")?;
    if derive.fields.is_empty() {
        let message = "an element of device memory has a size: give the struct a field";
        return Err(Error::new_spanned(&derive.input.ident, message));
    }
    derive.check_repr()?;
    let facade = &derive.facade;
    let element = quote!(#facade::Element);
    let ident = &derive.input.ident;
    // An element is a parameter as well. Where its fields are elements they are parameters.
    let kernel_param = derive.kernel_param(&quote!(#facade::view::element_layout));
    let generics = derive.generics(&element);
    let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();

    let types = derive.fields.iter().map(|field| &field.ty).collect::<Vec<_>>();
    let message = format!("`{ident}` has padding between its fields: reorder them or add explicit fields");
    // At the struct's name.
    let span = ident.span().resolved_at(Span::mixed_site());
    let assertion = |ty: TokenStream| {
        quote_spanned! {span=>
            ::core::assert!(
                ::core::mem::size_of::<#ty>() == 0 #(+ ::core::mem::size_of::<#types>())*,
                #message
            );
        }
    };
    // Generic types are checked when they are used, others at once.
    let (check_now, check_later) = if derive.input.generics.params.is_empty() {
        let assertion = assertion(ident.to_token_stream());
        (quote!(const _: () = { #assertion };), TokenStream::new())
    } else {
        (TokenStream::new(), assertion(quote!(Self)))
    };
    let zeros = derive.fields.iter().enumerate().map(|(i, field)| {
        let (name, ty) = (member(i, field), &field.ty);
        quote!(#name: <#ty as #element>::ZERO)
    });
    let names = derive.fields.iter().enumerate().map(|(i, field)| member(i, field));
    Ok(quote! {
        #kernel_param
        #check_now

        // SAFETY: the layout is `repr(C)` or `repr(transparent)`, or the derive has failed. The values below demand that the
        // fields are elements, and the assertion that no padding is between them.
        #[automatically_derived]
        unsafe impl #impl_generics #element for #ident #ty_generics #where_clause {
            const ZERO: Self = {
                #check_later
                Self { #(#zeros),* }
            };
            const ANY_BITS: bool = {
                #check_later
                true #(&& <#types as #element>::ANY_BITS)*
            };

            fn valid_bits(bytes: &[u8]) -> bool {
                true #(&& <#types as #element>::valid_bits(
                    &bytes[::core::mem::offset_of!(Self, #names)..][..::core::mem::size_of::<#types>()]
                ))*
            }
        }
    })
}

struct Derive {
    input: DeriveInput,
    fields: Fields,
    name: &'static str,
    /// Where `kernel-primitives` is.
    facade: TokenStream,
}

impl Derive {
    fn parse(input: TokenStream, name: &'static str) -> Result<Self> {
        let input: DeriveInput = syn::parse2(input)?;
        let fields = match &input.data {
            Data::Struct(data) => data.fields.clone(),
            Data::Enum(data) => {
                let message = format!("`{name}` is for structs: pass an enum as an integer");
                return Err(Error::new_spanned(data.enum_token, message));
            }
            Data::Union(data) => {
                let message = format!("`{name}` is for structs: write a struct, or pass the bits as an integer");
                return Err(Error::new_spanned(data.union_token, message));
            }
        };
        if let Some(lifetime) = input.generics.lifetimes().next() {
            let message = format!("`{name}` is for types without lifetimes: references point to host memory");
            return Err(Error::new_spanned(lifetime, message));
        }
        let facade = facade(&input)?;
        Ok(Self { input, fields, name, facade })
    }

    /// The layout is the same for every compiler.
    fn check_repr(&self) -> Result<()> {
        let mut fixed = false;
        for attribute in self.input.attrs.iter().filter(|attribute| attribute.path().is_ident("repr")) {
            attribute.parse_nested_meta(|meta| {
                fixed |= meta.path.is_ident("C") || meta.path.is_ident("transparent");
                if meta.input.peek(syn::token::Paren) {
                    meta.input.parse::<proc_macro2::TokenTree>()?;
                }
                Ok(())
            })?;
        }
        if fixed {
            return Ok(());
        }
        let message = format!("`{}` needs a layout that host and device share: add `#[repr(C)]`", self.name);
        Err(Error::new_spanned(&self.input.ident, message))
    }

    fn is_open(&self, field: &Field) -> bool {
        let names = self.input.generics.params.iter().filter_map(|param| match param {
            GenericParam::Type(ty) => Some(&ty.ident),
            GenericParam::Const(value) => Some(&value.ident),
            GenericParam::Lifetime(_) => None,
        });
        let mut finder = Mentions { names: names.collect(), found: false };
        finder.visit_type(&field.ty);
        finder.found
    }

    /// The generics, where fields whose types are open have the trait.
    fn generics(&self, bound: &TokenStream) -> syn::Generics {
        let mut generics = self.input.generics.clone();
        for field in self.fields.iter().filter(|field| self.is_open(field)) {
            let ty = &field.ty;
            let predicate: WherePredicate = parse_quote!(#ty: #bound);
            generics.make_where_clause().predicates.push(predicate);
        }
        generics
    }

    /// An implementation of `KernelParam`. The layouts of fields whose types are fixed are those that the function
    /// `layout_of_fixed` gives, which demands a trait of them, with errors at the types.
    fn kernel_param(&self, layout_of_fixed: &TokenStream) -> TokenStream {
        let ident = &self.input.ident;
        let facade = &self.facade;
        let kernel_param = quote!(#facade::KernelParam);
        let generics = self.generics(&kernel_param);
        let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
        let fields = self.fields.iter().enumerate().map(|(i, field)| {
            let (member, ty) = (member(i, field), &field.ty);
            let name = names::shown(member.to_token_stream());
            let span = ty.span().resolved_at(Span::mixed_site());
            let layout = match self.is_open(field) {
                true => quote_spanned!(span=> <#ty as #kernel_param>::LAYOUT),
                false => quote_spanned!(span=> #layout_of_fixed::<#ty>()),
            };
            quote!(.with(#name, ::core::mem::offset_of!(Self, #member), #layout))
        });
        quote! {
            // SAFETY: the layout is `repr(C)`, `repr(transparent)` or empty, or the derive has failed; all fields have the trait,
            // by the where clause or by `checks`.
            #[automatically_derived]
            unsafe impl #impl_generics #kernel_param for #ident #ty_generics #where_clause {
                const LAYOUT: #facade::view::Layout =
                    #facade::view::Layout::of::<Self>("struct") #(#fields)*;
            }
        }
    }
}

/// What `#[kernel_primitives(crate = path)]` says, or else `::kernel_primitives`.
fn facade(input: &DeriveInput) -> Result<TokenStream> {
    let mut facade = None;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("kernel_primitives")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(meta.error("`#[kernel_primitives(…)]` knows `crate = path`"));
            }
            if facade.is_some() {
                return Err(meta.error("`crate` is given twice: remove one"));
            }
            facade = Some(meta.value()?.call(Path::parse_mod_style)?.into_token_stream());
            Ok(())
        })?;
    }
    Ok(facade.unwrap_or_else(|| quote!(::kernel_primitives)))
}

fn member(i: usize, field: &Field) -> TokenStream {
    match &field.ident {
        Some(name) => name.to_token_stream(),
        None => Index::from(i).to_token_stream(),
    }
}

/// Whether a type mentions a generic parameter.
struct Mentions<'a> {
    names: Vec<&'a Ident>,
    found: bool,
}

impl<'ast> Visit<'ast> for Mentions<'_> {
    fn visit_ident(&mut self, ident: &'ast Ident) {
        self.found |= self.names.contains(&ident);
    }

    fn visit_macro(&mut self, node: &'ast syn::Macro) {
        self.found = true;
        visit::visit_macro(self, node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Expand = fn(TokenStream) -> Result<TokenStream>;

    #[test]
    fn the_facade_can_be_elsewhere() {
        for expand in [kernel_param as Expand, element] {
            let text = expand(quote!(
                #[repr(C)]
                #[kernel_primitives(crate = crate::inner::kp)]
                struct P<T> {
                    a: T,
                    b: f32,
                }
            ))
            .unwrap()
            .to_string();
            let kernel_param = quote!(crate::inner::kp::KernelParam for P<T>).to_string();
            assert!(text.contains(&kernel_param) && !text.contains(":: kernel_primitives"), "{text}");
        }
    }

    #[test]
    fn mistakes_say_what_to_write() {
        let (param, both): (&[Expand], &[Expand]) = (&[kernel_param], &[kernel_param, element]);
        let cases: &[(&[Expand], TokenStream, &str)] = &[
            (
                both,
                quote!(
                    enum E {
                        A,
                        B,
                    }
                ),
                "is for structs",
            ),
            (both, quote!(union U { a: u8, b: i8 }), "is for structs"),
            (
                both,
                quote!(
                    #[repr(C)]
                    #[kernel_primitives(path = kp)]
                    struct P(f32);
                ),
                "knows `crate = path`",
            ),
            (
                both,
                quote!(
                    #[repr(C)]
                    #[kernel_primitives(crate = a, crate = b)]
                    struct P(f32);
                ),
                "given twice",
            ),
            (
                both,
                quote!(
                    struct P {
                        a: f32,
                    }
                ),
                "add `#[repr(C)]`",
            ),
            (
                both,
                quote!(
                    #[repr(align(16))]
                    struct P(f32);
                ),
                "add `#[repr(C)]`",
            ),
            (
                both,
                quote!(
                    #[repr(C)]
                    struct P<'a>(&'a f32);
                ),
                "without lifetimes",
            ),
            (
                &[element],
                quote!(
                    #[repr(C)]
                    struct P;
                ),
                "has a size",
            ),
        ];
        for (expands, input, fragment) in cases {
            for expand in *expands {
                let error = expand(input.clone()).unwrap_err().to_string();
                assert!(error.contains(fragment), "{input}: {error}");
            }
        }
        for input in [
            quote!(
                struct F;
            ),
            quote!(
                struct F {}
            ),
            quote!(
                #[repr(C, align(8))]
                struct F(u8);
            ),
        ] {
            assert!(param[0](input.clone()).is_ok(), "{input}");
        }
    }

    #[test]
    fn open_fields_are_bounds_and_fixed_fields_are_checks() {
        let text = kernel_param(quote!(
            #[repr(C)]
            struct P<T, const N: usize> {
                a: [T; 2],
                b: f32,
                c: [u8; N],
            }
        ));
        let text = text.unwrap().to_string();
        let bound = ":: kernel_primitives :: KernelParam";
        assert!(text.contains(&format!("where [T ; 2] : {bound} , [u8 ; N] : {bound}")), "{text}");
        assert!(text.contains("value_layout :: < f32 >") && !text.contains("value_layout :: < [T"), "{text}");
    }

    #[test]
    fn padding_of_a_generic_element_is_asserted_by_its_constants() {
        let text = element(quote!(
            #[repr(C)]
            struct P<T>(T, u8);
        ))
        .unwrap()
        .to_string();
        assert_eq!(text.matches("has padding between its fields").count(), 2, "{text}");
        let text = element(quote!(
            #[repr(C)]
            struct P(u32, u8);
        ))
        .unwrap()
        .to_string();
        assert_eq!(text.matches("has padding between its fields").count(), 1, "{text}");
    }
}
