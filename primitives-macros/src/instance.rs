//! A kernel without open generics, as the device and the host need it: a PTX entry, or the information that a launch
//! starts from.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};

use crate::environment::{Environment, PTX_FOLDER};
use crate::kernel::internal;

/// Parameters that the entry of a generic kernel has, filled up with `()`, which PTX does not see. An instantiation
/// in another crate knows the kernel's path only, and this is how it knows the number of parameters.
pub(crate) const GENERIC_PARAMS: usize = 32;

/// A kernel with its generic arguments.
pub(crate) struct Instance<'a> {
    /// The facade's path.
    pub(crate) facade: &'a TokenStream,
    /// The kernel's type.
    pub(crate) kernel: TokenStream,
    /// The last component of the entry's name.
    pub(crate) entry: String,
    /// The last component of the name that people read.
    pub(crate) shown: String,
    /// The types of the entry's parameters, where the kernel's signature is known. Those of a generic kernel are in `FlatParam`.
    pub(crate) params: Option<Vec<TokenStream>>,
}

/// The identifier of the `i`th parameter of generated functions, which no parameter of the user's can collide with.
pub(crate) fn flat_ident(i: usize) -> Ident {
    format_ident!("p{i}", span = Span::mixed_site())
}

impl Instance<'_> {
    /// The entry, if this build wants entries.
    pub(crate) fn device(&self, environment: &Environment) -> Option<TokenStream> {
        if !environment.entries {
            return None;
        }
        let Self { facade, kernel, entry, .. } = self;
        let types = self.params.clone().unwrap_or_else(|| {
            (0..GENERIC_PARAMS).map(|i| quote!(<#kernel as #facade::view::FlatParam<#i>>::Type)).collect()
        });
        let params = (0..types.len()).map(flat_ident).collect::<Vec<_>>();
        Some(quote! {
            #[cfg(target_arch = "nvptx64")]
            const _: () = {
                // For the builder, which writes it into the kernel's module.
                // SAFETY: the path is a name that nothing else has.
                #[unsafe(export_name = ::core::concat!(::core::module_path!(), "::", #entry, "::__layout"))]
                static __LAYOUT: [u8; 16] = <#kernel>::__LAYOUT.digits();

                // As above.
                // SAFETY: as above.
                #[unsafe(export_name = ::core::concat!(::core::module_path!(), "::", #entry, "::__bounds"))]
                static __BOUNDS: [u8; 48] = <#kernel>::__BOUNDS.digits(<#kernel>::__SHARED.1);

                // # Safety
                // The launch passes the kernel's parameters.
                //
                // SAFETY: the kernel's path is a name that no other entry has.
                #[unsafe(export_name = ::core::concat!(::core::module_path!(), "::", #entry))]
                #[allow(improper_ctypes_definitions, clippy::all)]
                unsafe extern "ptx-kernel" fn __entry(
                    #(#params: #types,)*
                    control: *const #facade::simt::FaultControl,
                ) {
                    // SAFETY: the launch's parameters.
                    unsafe { <#kernel>::__entry(#(#params,)* control) }
                }
            };
        })
    }

    /// The information, as an implementation of `Instantiated` or `Grouped`, under a `tag` that makes it local to the crate.
    pub(crate) fn host(&self, environment: &Environment, implemented: &str, tag: &TokenStream) -> TokenStream {
        let Self { facade, kernel, entry, shown, .. } = self;
        let function = internal("__images");
        let images = environment.images.contains(entry).then(|| {
            quote! {
                // Inlined, it would be copied into the metadata of the crate.
                #[inline(never)]
                fn #function() -> #facade::__private::Images {
                    ::core::include!(::core::concat!(
                        ::core::env!(#PTX_FOLDER), "/", ::core::module_path!(), "/", #entry, ".rs"
                    ))
                }
            }
        });
        let with_images = images.as_ref().map(|_| quote!(.with_images(#function)));
        let implemented = format_ident!("{implemented}");
        quote! {
            impl #facade::__private::#implemented<#tag> for #kernel {
                fn info() -> &'static #facade::__private::KernelInfo {
                    #images
                    static __INFO: #facade::__private::KernelInfo = #facade::__private::KernelInfo::new(
                        ::core::concat!(::core::module_path!(), "::", #shown),
                        ::core::concat!(::core::module_path!(), "::", #entry),
                        &[],
                        <#kernel>::__SHARED.1,
                        <#kernel>::__LAYOUT.hash(),
                        <#kernel>::__BOUNDS,
                    )
                    .with_shared_params(<#kernel>::__SHARED_PARAMS)
                    .with_carveout(<#kernel>::__CARVEOUT)
                    #with_images;
                    &__INFO
                }
            }
        }
    }
}
