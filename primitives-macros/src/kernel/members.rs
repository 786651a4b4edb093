//! What the kernel's type has: the layout of its parameters, its body from flat ones, and the entry in PTX.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::Expr;
use syn::spanned::Spanned;

use super::{Kernel, at, generated, internal};
use crate::instance::{GENERIC_PARAMS, flat_ident};
use crate::names;
use crate::signature::Kind;

impl Kernel {
    /// The storage of `Shared` parameters, the function's call from flat parameters, and the launcher.
    pub(super) fn members(&self) -> TokenStream {
        let (ident, vis) = (&self.item.sig.ident, generated(&self.item.vis));
        let (impl_generics, ty_generics, where_clause) = self.item.sig.generics.split_for_impl();
        let cfgs = self.attributes("cfg");
        let shared = self.shared();
        let shared_params = self.shared_params();
        let layout = self.layout();
        let bounds = self.bounds();
        let carveout = match &self.arguments.carveout {
            Some(bytes) => quote_spanned!(bytes.span()=> ::core::option::Option::Some({
                let bytes: usize = #bytes;
                bytes
            })),
            None => quote!(::core::option::Option::None),
        };
        let body = self.body();
        let launch = self.launch();
        let entry = self.entry();
        quote! {
            #(#cfgs)*
            // Of its names, the function says what there is to say.
            #[allow(
                dead_code,
                unused_unsafe,
                deprecated,
                non_snake_case,
                non_upper_case_globals,
                non_camel_case_types,
                clippy::all,
                clippy::pedantic,
                clippy::undocumented_unsafe_blocks
            )]
            impl #impl_generics #ident #ty_generics #where_clause {
                #[doc(hidden)]
                #vis const __SHARED: #shared
                #[cfg(not(target_arch = "nvptx64"))]
                #[doc(hidden)]
                #vis const __SHARED_PARAMS: #shared_params
                #[doc(hidden)]
                #vis const __LAYOUT: #layout
                #[doc(hidden)]
                #vis const __BOUNDS: #bounds
                #[doc(hidden)]
                #vis const __CARVEOUT: ::core::option::Option<usize> = #carveout;
                #[doc(hidden)]
                #[inline(always)]
                #vis #body
                #[cfg(target_arch = "nvptx64")]
                #[doc(hidden)]
                #[inline(always)]
                #vis #entry
                #launch
            }
        }
    }

    /// The offsets of `Shared` and `SharedSlice` parameters, and the bytes of the former, which are no more than the largest
    /// architecture has. What the device at hand has is the launch's business.
    fn shared(&self) -> TokenStream {
        let facade = &self.facade;
        let storages = self.params.iter().filter_map(|param| match &param.kind {
            Kind::Shared(storage) => Some((storage, at(param.span))),
            _ => None,
        });
        let mut end = quote!(0usize);
        let mut steps = TokenStream::new();
        let mut offsets = Vec::new();
        for (i, (storage, span)) in storages.enumerate() {
            let (offset, next) = (internal(&format!("offset{i}")), internal(&format!("end{i}")));
            steps.extend(quote_spanned! {span=>
                let (#offset, #next) = #facade::view::arena_layout::<#storage>(#end);
                ::core::assert!(
                    #next <= 227 * 1024,
                    "the `Shared` parameters of a kernel take more than the 227 KiB that any block has: fewer threads, items or bins"
                );
            });
            end = next.to_token_stream();
            offsets.push(offset);
        }
        let count = offsets.len();
        quote! {
            ([usize; #count], usize) = {
                #steps
                ([#(#offsets),*], usize::next_multiple_of(#end, 16))
            };
        }
    }

    /// The names of `Shared` and `SharedSlice` parameters and where they are, for reports.
    fn shared_params(&self) -> TokenStream {
        let facade = &self.facade;
        let mut storages = 0usize;
        let params = self.params.iter().filter_map(|param| {
            let (name, span) = (names::unraw(&param.ident), at(param.span));
            match &param.kind {
                Kind::Shared(ty) => {
                    storages += 1;
                    let storage = storages - 1;
                    Some(quote_spanned! {span=>
                        #facade::view::SharedParam::storage::<#ty>(#name, Self::__SHARED.0[#storage])
                    })
                }
                Kind::SharedSlice(ty) => {
                    Some(quote_spanned!(span=> #facade::view::SharedParam::rest::<#ty>(#name, Self::__SHARED.1)))
                }
                _ => None,
            }
        });
        quote!(&'static [#facade::view::SharedParam] = &[#(#params),*];)
    }

    /// The layout of the parameters, shared memory included, that host and device compare.
    fn layout(&self) -> TokenStream {
        let facade = &self.facade;
        let mut storages = 0usize;
        let parts = self.params.iter().enumerate().map(|(i, param)| {
            let (name, span) = (names::unraw(&param.ident), at(param.span));
            match &param.kind {
                Kind::Block => quote!(),
                Kind::Value(ty) => quote_spanned!(span=> .with(#name, #i, #facade::view::value_layout::<#ty>())),
                Kind::Input(ty) => {
                    quote_spanned!(span=> .with(#name, #i, <#ty as #facade::input::Source>::LAYOUT))
                }
                Kind::Output(ty) => {
                    quote_spanned!(span=> .with(#name, #i, <#ty as #facade::output::Sink>::LAYOUT))
                }
                Kind::Global(ty) | Kind::GlobalMut(ty) => {
                    quote_spanned!(span=> .with(#name, #i, #facade::view::view_layout::<#ty>()))
                }
                Kind::Shared(ty) => {
                    storages += 1;
                    let storage = storages - 1;
                    quote_spanned! {span=>
                        .with(#name, Self::__SHARED.0[#storage], #facade::view::storage_layout::<#ty>())
                    }
                }
                Kind::SharedSlice(ty) => {
                    quote!(.with(#name, Self::__SHARED.1, #facade::view::Layout::of::<#ty>("rest")))
                }
            }
        });
        // No directive of PTX says so, and the host alone checks it.
        let kind = if self.arguments.one_dimensional { "kernel of one dimension, control" } else { "kernel, control" };
        quote! {
            #facade::view::Layout = #facade::view::Layout::of::<()>(#kind) #(#parts)*;
        }
    }

    /// The extents of a block, the most threads of one, and the fewest blocks a multiprocessor, `None` where the attribute says nothing;
    /// and whether there is one dimension.
    fn bounds(&self) -> TokenStream {
        let facade = &self.facade;
        let value = |given: Option<&Expr>| match given {
            Some(number) => quote!(::core::option::Option::Some((#number) as u64)),
            None => quote!(::core::option::Option::None),
        };
        let extents = &self.arguments.threads;
        let [x, y, z] = [0, 1, 2].map(|i| extents.get(i).map_or(quote!(1), ToTokens::to_token_stream));
        let extents = if extents.is_empty() {
            quote!(::core::option::Option::None)
        } else {
            quote!(::core::option::Option::Some([(#x) as u64, (#y) as u64, (#z) as u64]))
        };
        let one_dimension = self.arguments.one_dimensional.then(|| quote!(.with_one_dimension()));
        let (threads, blocks) = (value(self.arguments.max_threads.as_ref()), value(self.arguments.min_blocks.as_ref()));
        quote! {
            #facade::view::LaunchBounds = #facade::view::LaunchBounds::new(#extents, #threads, #blocks)#one_dimension;
        }
    }

    /// The call of the function with views made of flat parameters. It demands of each type what its place demands, in
    /// every build and at the type's place in the source.
    fn body(&self) -> TokenStream {
        let (facade, function) = (&self.facade, &self.item.sig.ident);
        let turbofish = self.item.sig.generics.split_for_impl().1.as_turbofish().to_token_stream();
        let cx = internal("cx");
        let (mut flat, mut storages) = (0, 0usize);
        let mut next = || {
            flat += 1;
            flat_ident(flat - 1)
        };
        // Functions have no hygiene: their names must not hide the kernel's.
        let (value, input, output) = (internal("__value"), internal("__input"), internal("__output"));
        let (global, global_mut) = (internal("__global"), internal("__global_mut"));
        let (shared, shared_slice) = (internal("__shared"), internal("__shared_slice"));
        let calls = self.params.iter().map(|param| {
            let span = at(param.span);
            match &param.kind {
                Kind::Block => quote!(#cx),
                Kind::Value(ty) => {
                    let p = next();
                    quote_spanned!(span=> #value::<#ty>(#p))
                }
                Kind::Input(ty) => {
                    let p = next();
                    quote_spanned!(span=> #input::<#ty>(#cx, #p))
                }
                Kind::Output(ty) => {
                    let p = next();
                    quote_spanned!(span=> #output::<#ty>(#cx, #p))
                }
                Kind::Global(ty) => {
                    let (address, len) = (next(), next());
                    quote_spanned!(span=> #global::<#ty>(#cx, #address, #len))
                }
                Kind::GlobalMut(ty) => {
                    let (address, len) = (next(), next());
                    quote_spanned!(span=> #global_mut::<#ty, _>(#cx, #address, #len))
                }
                Kind::Shared(ty) => {
                    storages += 1;
                    let i = storages - 1;
                    quote_spanned!(span=> #shared::<#ty>(#cx, const { Self::__SHARED.0[#i] }))
                }
                Kind::SharedSlice(ty) => {
                    quote_spanned!(span=> #shared_slice::<#ty>(#cx, const { Self::__SHARED.1 }))
                }
            }
        });
        let calls = calls.collect::<Vec<_>>();
        let params = self.flat_params();
        let has = |wanted: fn(&Kind) -> bool| self.params.iter().any(|param| wanted(&param.kind));
        let mut helpers = TokenStream::new();
        if has(|kind| matches!(kind, Kind::Value(_))) {
            helpers.extend(quote! {
                #[inline(always)]
                fn #value<T: #facade::KernelParam>(value: T) -> T {
                    value
                }
            });
        }
        if has(|kind| matches!(kind, Kind::Input(_))) {
            helpers.extend(quote! {
                // # Safety
                // As what it calls.
                #[inline(always)]
                unsafe fn #input<'k, S: #facade::input::Source>(cx: #facade::Block<'k>, source: S) -> #facade::Input<'k, S> {
                    // SAFETY: the caller's.
                    unsafe { #facade::Input::from_raw(cx, source) }
                }
            });
        }
        if has(|kind| matches!(kind, Kind::Output(_))) {
            helpers.extend(quote! {
                // # Safety
                // As what it calls.
                #[inline(always)]
                unsafe fn #output<'k, O: #facade::output::Sink>(cx: #facade::Block<'k>, sink: O) -> #facade::Output<'k, O> {
                    // SAFETY: the caller's.
                    unsafe { #facade::Output::from_raw(cx, sink) }
                }
            });
        }
        if has(|kind| matches!(kind, Kind::Global(_))) {
            helpers.extend(quote! {
                // # Safety
                // As what it calls.
                #[inline(always)]
                unsafe fn #global<'k, T: #facade::Element>(
                    cx: #facade::Block<'k>,
                    address: *mut T,
                    len: usize,
                ) -> #facade::Global<'k, T> {
                    // SAFETY: the caller's.
                    unsafe { #facade::Global::from_raw(cx, address, len) }
                }
            });
        }
        if has(|kind| matches!(kind, Kind::GlobalMut(_))) {
            helpers.extend(quote! {
                // # Safety
                // As what it calls.
                #[inline(always)]
                unsafe fn #global_mut<'k, T: #facade::Element, P: #facade::view::Partition>(
                    cx: #facade::Block<'k>,
                    address: *mut T,
                    len: usize,
                ) -> #facade::GlobalMut<'k, T, P> {
                    // SAFETY: the caller's.
                    unsafe { #facade::GlobalMut::from_raw(cx, address, len) }
                }
            });
        }
        if has(|kind| matches!(kind, Kind::Shared(_))) {
            helpers.extend(quote! {
                // # Safety
                // As what it calls.
                #[inline(always)]
                unsafe fn #shared<'k, S: #facade::view::SharedStorage>(
                    cx: #facade::Block<'k>,
                    offset: usize,
                ) -> #facade::Shared<'k, S> {
                    // SAFETY: the caller's.
                    unsafe { #facade::Shared::from_arena(cx, offset) }
                }
            });
        }
        if has(|kind| matches!(kind, Kind::SharedSlice(_))) {
            helpers.extend(quote! {
                // # Safety
                // As what it calls.
                #[inline(always)]
                unsafe fn #shared_slice<'k, T: #facade::Element>(
                    cx: #facade::Block<'k>,
                    offset: usize,
                ) -> #facade::view::SharedSlice<'k, T> {
                    // SAFETY: the caller's.
                    unsafe { #facade::view::SharedSlice::from_arena(cx, offset) }
                }
            });
        }
        quote! {
            // # Safety
            // The parameters are the kernel's: buffers as `Global::from_raw` and `GlobalMut::from_raw` want them, and the launch
            // reserves the kernel's shared memory. What an unsafe kernel demands holds.
            unsafe fn __body(#cx: #facade::Block<'_>, #params) {
                #helpers
                // SAFETY: the views are made of the caller's parameters, which are what the kernel itself demands.
                unsafe { #function #turbofish(#(#calls),*) }
            }
        }
    }

    /// The declarations `p0: f32, p1: *mut f32, p2: usize`.
    pub(super) fn flat_params(&self) -> TokenStream {
        let types = self.flat_types();
        let names = (0..types.len()).map(flat_ident);
        quote!(#(#names: #types),*)
    }

    pub(super) fn flat_types(&self) -> Vec<TokenStream> {
        let mut types = Vec::new();
        for param in &self.params {
            match &param.kind {
                Kind::Value(ty) | Kind::Input(ty) | Kind::Output(ty) => types.push(ty.to_token_stream()),
                Kind::Global(ty) | Kind::GlobalMut(ty) => types.extend([quote!(*mut #ty), quote!(usize)]),
                Kind::Block | Kind::Shared(_) | Kind::SharedSlice(_) => {}
            }
        }
        types
    }

    /// Parameters of a generic kernel's entry that fill it up.
    pub(super) fn padding(&self) -> std::ops::Range<usize> {
        let flat = self.flat();
        flat..if self.is_generic() { GENERIC_PARAMS } else { flat }
    }

    /// What a PTX entry calls.
    fn entry(&self) -> TokenStream {
        let facade = &self.facade;
        let mut params = self.flat_params();
        for i in self.padding() {
            let name = flat_ident(i);
            let comma = (i > 0).then(|| quote!(,));
            params.extend(quote!(#comma #name: ()));
        }
        let comma = (!params.is_empty()).then(|| quote!(,));
        let names = (0..self.flat()).map(flat_ident);
        let control = internal("control");
        quote! {
            // # Safety
            // As `__body`, in a kernel's entry.
            unsafe fn __entry(#params #comma #control: *const #facade::simt::FaultControl) {
                // SAFETY: the caller's; an entry is where a thread gets its token.
                unsafe { Self::__body(#facade::Block::new(#control, Self::__BOUNDS), #(#names),*) }
            }
        }
    }

    /// The types of the entry's parameters, for entries of a generic kernel in this crate and in others.
    pub(super) fn entry_members(&self) -> TokenStream {
        if !self.is_generic() {
            // Its only entry names the types. They may be more private than the kernel, and those of a public trait may not.
            return TokenStream::new();
        }
        let (facade, ident) = (&self.facade, &self.item.sig.ident);
        let (impl_generics, ty_generics, where_clause) = self.item.sig.generics.split_for_impl();
        let cfgs = self.attributes("cfg");
        let padding = self.padding().map(|_| quote!(()));
        let impls = self.flat_types().into_iter().chain(padding).enumerate().map(|(i, ty)| {
            quote! {
                #(#cfgs)*
                #[cfg(target_arch = "nvptx64")]
                impl #impl_generics #facade::view::FlatParam<#i> for #ident #ty_generics #where_clause {
                    type Type = #ty;
                }
            }
        });
        quote!(#(#impls)*)
    }
}
