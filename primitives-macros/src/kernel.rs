//! `#[kernel]`.

use std::collections::HashSet;

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    AngleBracketedGenericArguments, Attribute, Error, Expr, GenericArgument, GenericParam, ItemFn, Result, Visibility,
    parse_quote,
};

use crate::arguments::Arguments;
use crate::environment::Environment;
use crate::instance::{GENERIC_PARAMS, Instance, flat_ident};
use crate::names;
use crate::signature::{self, Kind, Param};

pub(crate) fn expand(arguments: TokenStream, item: TokenStream, environment: &Environment) -> Result<TokenStream> {
    let item: ItemFn = syn::parse2(item)
        .map_err(|error| Error::new(error.span(), format!("`#[kernel]` goes on a function: {error}")))?;
    let arguments: Arguments = syn::parse2(arguments)?;
    let params = signature::parse(&item)?;
    let facade = match &arguments.facade {
        Some(path) => path.to_token_stream(),
        None => quote!(::kernel_primitives),
    };
    let kernel = Kernel { item, params, arguments, facade };
    kernel.check()?;
    kernel.expand(environment)
}

struct Kernel {
    item: ItemFn,
    params: Vec<Param>,
    arguments: Arguments,
    facade: TokenStream,
}

/// A name of generated code, which nothing of the user's can collide with.
pub(crate) fn internal(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// A place of the user's with the hygiene of generated code: errors point there, lints know better.
pub(crate) fn at(span: Span) -> Span {
    span.resolved_at(Span::mixed_site())
}

/// The tokens, at a place of the user's.
fn moved(tokens: &TokenStream, span: Span) -> TokenStream {
    tokens
        .clone()
        .into_iter()
        .map(|mut token| {
            token.set_span(token.span().located_at(span));
            token
        })
        .collect()
}

/// Tokens as if the macro had written them. Otherwise an item that begins with them counts as the user's, and lints such
/// as `unsafe_code` look into it.
pub(crate) fn generated(tokens: impl ToTokens) -> TokenStream {
    let set = |mut token: TokenTree| {
        if let TokenTree::Group(group) = &token {
            token = Group::new(group.delimiter(), generated(group.stream())).into();
        }
        token.set_span(Span::call_site());
        token
    };
    tokens.into_token_stream().into_iter().map(set).collect()
}

impl Kernel {
    /// The number of parameters of the entry that PTX may see.
    fn flat(&self) -> usize {
        self.params.iter().map(Param::flat).sum()
    }

    fn is_generic(&self) -> bool {
        !self.item.sig.generics.params.is_empty()
    }

    /// The kernel's name without `r#`.
    fn name(&self) -> String {
        names::unraw(&self.item.sig.ident)
    }

    /// What the signature alone does not show: the arguments of the attribute against it.
    fn check(&self) -> Result<()> {
        let sig = &self.item.sig;
        if let Some(span) = self.arguments.instantiate
            && !self.is_generic()
        {
            let message = format!("`{}` is not generic: remove `instantiate`", sig.ident);
            return Err(Error::new(span, message));
        }
        if self.is_generic() && self.flat() > GENERIC_PARAMS {
            let message = format!(
                "a generic kernel has at most {GENERIC_PARAMS} parameters, where a view counts twice, and this one has {}: \
                 gather values in a struct with `#[derive(KernelParam)]`",
                self.flat(),
            );
            return Err(Error::new(sig.ident.span(), message));
        }
        for name in self.arguments.equal_len.iter().flatten() {
            let param = self.params.iter().find(|param| param.ident == *name);
            if param.is_none_or(|param| {
                matches!(param.kind, Kind::Block | Kind::Value(_) | Kind::Shared(_) | Kind::SharedSlice(_))
            }) {
                let message = "`equal_len` names `Global`, `Input`, `GlobalMut` and `Output` parameters of the kernel";
                return Err(Error::new(name.span(), message));
            }
        }
        let mut entries = HashSet::new();
        for instance in &self.arguments.instances {
            self.check_instance(instance)?;
            if !entries.insert(self.instance(Some(instance)).entry) {
                let message = "this instantiation has the name of an earlier one: list each once, by distinct names";
                return Err(Error::new_spanned(instance, message));
            }
        }
        Ok(())
    }

    fn check_instance(&self, instance: &AngleBracketedGenericArguments) -> Result<()> {
        for argument in &instance.args {
            match argument {
                GenericArgument::Type(_) | GenericArgument::Const(_) => {}
                other => return Err(Error::new_spanned(other, "an instantiation lists types and constants")),
            }
        }
        let generics = &self.item.sig.generics.params;
        if instance.args.len() != generics.len() {
            let list = generics.iter().map(|generic| match generic {
                GenericParam::Const(value) => format!("const {}", value.ident),
                GenericParam::Type(ty) => ty.ident.to_string(),
                GenericParam::Lifetime(lifetime) => lifetime.lifetime.to_string(),
            });
            let message = format!(
                "`{}` has the parameters `<{}>`: list {} arguments, not {}",
                self.item.sig.ident,
                list.collect::<Vec<_>>().join(", "),
                generics.len(),
                instance.args.len(),
            );
            return Err(Error::new_spanned(instance, message));
        }
        Ok(())
    }

    fn expand(&self, environment: &Environment) -> Result<TokenStream> {
        let function = self.function();
        let ty = self.ty();
        let members = self.members();
        let entry_members = self.entry_members();
        let cfgs = self.attributes("cfg");

        let instances = match self.is_generic() {
            false => vec![self.instance(None)],
            true => self.arguments.instances.iter().map(|instance| self.instance(Some(instance))).collect(),
        };
        let instances = instances.iter().map(|instance| {
            let device = instance.device(environment);
            // The kernel is local, so that no tag is needed.
            let host = instance.host(environment, "Instantiated", &quote!(()));
            quote! {
                #device
                #[cfg(not(target_arch = "nvptx64"))]
                #host
            }
        });
        let instances = quote!(#(#instances)*);
        // The attributes of a conditional kernel hold for all that is generated beside it.
        let instances = if cfgs.is_empty() || instances.is_empty() {
            instances
        } else {
            quote!(#(#cfgs)* const _: () = { #instances };)
        };
        Ok(quote! {
            #function
            #ty
            #members
            #entry_members
            #instances
        })
    }

    fn attributes(&self, name: &str) -> Vec<&Attribute> {
        self.item.attrs.iter().filter(|attribute| attribute.path().is_ident(name)).collect()
    }

    /// The function as it was written, to be inlined. Who may not launch the kernel may not call it either.
    fn function(&self) -> TokenStream {
        let mut item = self.item.clone();
        item.vis = self.launch_vis().clone();
        if let Some(token) = self.params.first() {
            let token = &token.ident;
            let statement = if self.arguments.threads.is_empty() {
                // The token is a parameter by rule, not by need: a kernel of views alone leaves it.
                parse_quote!(let _ = #token;)
            } else {
                // Of a launch it holds, and the compiler knows: it is for kernels that call this one.
                let (facade, ident) = (&self.facade, &item.sig.ident);
                let turbofish = item.sig.generics.split_for_impl().1.as_turbofish().to_token_stream();
                parse_quote!(#facade::view::require_threads(#token, #ident #turbofish::__BOUNDS);)
            };
            item.block.stmts.insert(0, statement);
        }
        let inline = self.attributes("inline").is_empty().then(|| quote!(#[inline(always)]));
        quote! {
            #inline
            #[allow(
                dead_code,
                elided_lifetimes_in_paths,
                clippy::inline_always,
                clippy::too_many_arguments,
                clippy::needless_pass_by_value,
                clippy::extra_unused_type_parameters
            )]
            #item
        }
    }

    /// The type of the same name, which the launcher is a method of.
    fn ty(&self) -> TokenStream {
        let (vis, ident) = (generated(&self.item.vis), &self.item.sig.ident);
        let attributes = self.attributes("cfg").into_iter().chain(self.attributes("doc"));
        let docs = self.type_docs();
        let allow = quote!(#[allow(non_camel_case_types, dead_code)]);
        if !self.is_generic() {
            return quote! {
                #(#attributes)*
                #docs
                #allow
                #vis enum #ident {}
            };
        }
        // The type has the kernel's parameters without their bounds, which are those of its methods. Braces, since a
        // unit or tuple struct would take the function's name.
        let generics = self.item.sig.generics.params.iter().map(|generic| match generic {
            GenericParam::Const(value) => {
                let (name, ty) = (&value.ident, &value.ty);
                quote!(const #name: #ty)
            }
            GenericParam::Type(ty) => ty.ident.to_token_stream(),
            GenericParam::Lifetime(lifetime) => lifetime.to_token_stream(),
        });
        let types = self.item.sig.generics.type_params().map(|ty| &ty.ident);
        quote! {
            #(#attributes)*
            #docs
            #allow
            #vis struct #ident<#(#generics),*> {
                _never: ::core::convert::Infallible,
                _types: ::core::marker::PhantomData<fn(#(#types),*)>,
            }
        }
    }

    fn type_docs(&self) -> TokenStream {
        let arguments = self.params.iter().filter_map(|param| {
            let name = &param.ident;
            match param.kind {
                Kind::Value(_) | Kind::Input(_) => Some(name.to_string()),
                Kind::Global(_) => Some(format!("&{name}")),
                Kind::GlobalMut(_) | Kind::Output(_) => Some(format!("&mut {name}")),
                _ => None,
            }
        });
        let arguments =
            ["&stream".into(), "dims".into()].into_iter().chain(arguments).collect::<Vec<String>>().join(", ");
        let name = self.item.sig.ident.to_string();
        let generics = self.item.sig.generics.params.iter().map(|generic| match generic {
            GenericParam::Const(value) => value.ident.to_string(),
            GenericParam::Type(ty) => ty.ident.to_string(),
            GenericParam::Lifetime(lifetime) => lifetime.lifetime.to_string(),
        });
        let path = match self.is_generic() {
            true => format!("{name}::<{}>", generics.collect::<Vec<_>>().join(", ")),
            false => name,
        };
        let call = match self.item.sig.unsafety {
            Some(_) => format!("unsafe {{ {path}::launch({arguments}) }}?;"),
            None => format!("{path}::launch({arguments})?;"),
        };
        let private = match self.launch_vis() {
            Visibility::Public(_) => None,
            _ if self.arguments.launch.is_none() => None,
            Visibility::Restricted(only) => Some(names::shown(only.to_token_stream())),
            Visibility::Inherited => Some("private".to_owned()),
        };
        let private = private
            .map(|vis| format!("`launch` is `{vis}`: what the kernel relies on is prepared by those who call it."));
        let mut lines = vec!["", "# Launch", ""];
        lines.extend(private.iter().flat_map(|line| [line.as_str(), ""]));
        lines.extend(["```text", &call, "```"]);
        docs(&lines)
    }

    /// Who may launch the kernel.
    fn launch_vis(&self) -> &Visibility {
        self.arguments.launch.as_ref().unwrap_or(&self.item.vis)
    }

    /// The storage of `Shared` parameters, the function's call from flat parameters, and the launcher.
    fn members(&self) -> TokenStream {
        let (ident, vis) = (&self.item.sig.ident, generated(&self.item.vis));
        let (impl_generics, ty_generics, where_clause) = self.item.sig.generics.split_for_impl();
        let cfgs = self.attributes("cfg");
        let shared = self.shared();
        let shared_params = self.shared_params();
        let layout = self.layout();
        let bounds = self.bounds();
        let body = self.body();
        let launch = self.launch();
        let entry = self.entry();
        quote! {
            #(#cfgs)*
            #[allow(dead_code, unused_unsafe, clippy::all, clippy::pedantic, clippy::undocumented_unsafe_blocks)]
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
                assert!(
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
        quote! {
            #facade::view::Layout = #facade::view::Layout::of::<()>("kernel, control") #(#parts)*;
        }
    }

    /// The extents of a block, the most threads of one, and the fewest blocks a multiprocessor; 0 where the attribute says
    /// nothing.
    fn bounds(&self) -> TokenStream {
        let facade = &self.facade;
        let value = |given: Option<&Expr>| given.map_or(quote!(0), ToTokens::to_token_stream);
        let extents = &self.arguments.threads;
        let rest = if extents.is_empty() { quote!(0) } else { quote!(1) };
        let [x, y, z] = [0, 1, 2].map(|i| extents.get(i).map_or(rest.clone(), ToTokens::to_token_stream));
        let (threads, blocks) = (value(self.arguments.max_threads.as_ref()), value(self.arguments.min_blocks.as_ref()));
        quote! {
            #facade::view::LaunchBounds = #facade::view::LaunchBounds::new(
                [(#x) as u32, (#y) as u32, (#z) as u32],
                (#threads) as u32,
                (#blocks) as u32,
            );
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
    fn flat_params(&self) -> TokenStream {
        let types = self.flat_types();
        let names = (0..types.len()).map(flat_ident);
        quote!(#(#names: #types),*)
    }

    fn flat_types(&self) -> Vec<TokenStream> {
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
    fn padding(&self) -> std::ops::Range<usize> {
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

    /// The types of the entry's parameters, for entries in this crate and in others.
    fn entry_members(&self) -> TokenStream {
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

    fn launch(&self) -> TokenStream {
        let (facade, vis) = (&self.facade, generated(&self.item.vis));
        let private = quote!(#facade::__private);
        let (stream, dims, launch, cx) = (internal("stream"), internal("dims"), internal("launch"), internal("cx"));
        let entry = internal("entry");

        let mut inputs = Vec::new();
        let mut views = TokenStream::new();
        let mut locals = TokenStream::new();
        let mut pushed = Vec::new();
        let mut passed = Vec::new();
        for (i, param) in self.params.iter().enumerate() {
            let (name, span) = (&param.ident, at(param.span));
            let (view, address, len) =
                (internal(&format!("view{i}")), internal(&format!("address{i}")), internal(&format!("len{i}")));
            let text = names::unraw(name);
            match &param.kind {
                Kind::Value(ty) => {
                    inputs.push(quote!(#name: #ty));
                    pushed.push(quote_spanned!(span=> #private::param::<#ty>(&#name)));
                    passed.push(name.to_token_stream());
                    continue;
                }
                Kind::Input(ty) => {
                    let facade = moved(facade, span);
                    inputs.push(quote_spanned!(span=> #name: impl #facade::InputArg<#ty>));
                    views.extend(quote_spanned!(span=> let #view = #launch.input::<#ty>(#text, #name)?;));
                    pushed.push(quote!(#private::param(&#view)));
                    passed.push(view.to_token_stream());
                    continue;
                }
                Kind::Output(ty) => {
                    let facade = moved(facade, span);
                    inputs.push(quote_spanned!(span=> #name: impl #facade::OutputArg<#ty>));
                    views.extend(quote_spanned!(span=> let #view = #launch.output::<#ty>(#text, #name)?;));
                    pushed.push(quote!(#private::param(&#view)));
                    passed.push(view.to_token_stream());
                    continue;
                }
                Kind::Global(ty) => {
                    let facade = moved(facade, span);
                    inputs.push(quote_spanned!(span=> #name: impl #facade::ReadArg<#ty>));
                    views.extend(quote_spanned!(span=> let #view = #launch.read::<#ty>(#text, #name)?;));
                }
                Kind::GlobalMut(ty) => {
                    let facade = moved(facade, span);
                    inputs.push(quote_spanned!(span=> #name: impl #facade::WriteArg<#ty>));
                    views.extend(quote_spanned!(span=> let #view = #launch.write::<#ty>(#text, #name)?;));
                }
                Kind::Block | Kind::Shared(_) | Kind::SharedSlice(_) => continue,
            }
            locals.extend(quote!(let (#address, #len) = (#view.address(), #view.len());));
            pushed.push(quote!(#private::param(&#address)));
            pushed.push(quote!(#private::param(&#len)));
            passed.push(quote!(#view.address()));
            passed.push(quote!(#view.len()));
        }
        let equal_lengths = self.arguments.equal_len.iter().map(|group| {
            let pairs = group.iter().map(|name| {
                let i = self.params.iter().position(|param| param.ident == *name).expect("checked");
                let (text, view) = (names::unraw(name), internal(&format!("view{i}")));
                match &self.params[i].kind {
                    Kind::Input(_) => quote!((#text, #facade::input::Source::len(&#view))),
                    Kind::Output(_) => quote!((#text, #facade::output::Sink::len(&#view))),
                    _ => quote!((#text, #view.len())),
                }
            });
            quote!(#launch.equal_lengths(&[#(#pairs),*])?;)
        });

        let (generic, bound, tag) = if self.is_generic() {
            (quote!(<__Tag>), quote!(where Self: #private::Instantiated<__Tag>), quote!(__Tag))
        } else {
            (TokenStream::new(), TokenStream::new(), quote!(()))
        };
        let docs = self.launch_docs();
        let (launch_vis, unsafety) = (generated(self.launch_vis()), generated(self.item.sig.unsafety));
        let names = self.params.iter().filter_map(|param| match param.kind {
            Kind::Block | Kind::Shared(_) | Kind::SharedSlice(_) => None,
            _ => Some(&param.ident),
        });
        let call = quote!(Self::launch_entry(#entry, #stream, #dims, #(#names),*));
        let call = match unsafety.is_empty() {
            true => call,
            // SAFETY: of the generated code: what the kernel demands, the caller of `launch` keeps.
            false => quote!(unsafe { #call }),
        };
        quote! {
            /// What the host knows of the kernel: its names, and its code by architecture.
            #[cfg(not(target_arch = "nvptx64"))]
            #vis fn info #generic() -> &'static #facade::KernelInfo #bound {
                <Self as #private::Instantiated<#tag>>::info()
            }

            #docs
            #[cfg(not(target_arch = "nvptx64"))]
            #launch_vis #unsafety fn launch #generic(
                #stream: &#facade::Stream,
                #dims: impl ::core::convert::Into<#facade::Dims>,
                #(#inputs),*
            ) -> #facade::Result<()>
            #bound
            {
                let #entry = #private::Entry::<Self>::named::<#tag>();
                #call
            }

            // As `launch`, of a kernel that is known by its description.
            #[doc(hidden)]
            #[cfg(not(target_arch = "nvptx64"))]
            #[allow(unused_mut, elided_lifetimes_in_paths)]
            #launch_vis #unsafety fn launch_entry(
                #entry: #private::Entry<Self>,
                #stream: &#facade::Stream,
                #dims: impl ::core::convert::Into<#facade::Dims>,
                #(#inputs),*
            ) -> #facade::Result<()> {
                let mut #launch =
                    #private::Launch::new(#stream, #entry.info(), ::core::convert::Into::into(#dims));
                #views
                #(#equal_lengths)*
                #locals
                // SAFETY: the parameters are those of the entry, in its order; the views are of buffers that `launch` keeps, and
                // are the same in the body. What an unsafe kernel demands, the caller keeps. The closure owns what it is given, since a capture keeps it.
                unsafe {
                    #launch.run(
                        // The last one is the runtime's own.
                        &mut [#(#pushed,)* #private::param(&())],
                        // SAFETY: as said above.
                        move |#cx: #facade::Block<'_>| unsafe { Self::__body(#cx, #(#passed),*) },
                    )
                }
            }
        }
    }

    fn launch_docs(&self) -> TokenStream {
        let mut lines = vec![
            "Launches the kernel on `stream`, with the grid and the blocks that `dims` describes; does not wait for its end."
                .to_owned(),
            String::new(),
        ];
        for param in &self.params {
            let name = &param.ident;
            let (what, ty, from) = match &param.kind {
                Kind::Value(ty) => ("the value", ty, ""),
                Kind::Input(ty) => ("read, items of the source", ty, "; a buffer, or what `input` builds"),
                Kind::Output(ty) => ("written, places of the sink", ty, "; a mutable buffer, or what `output` builds"),
                Kind::Global(ty) => ("read, elements", ty, "; a buffer, or a slice of one"),
                Kind::GlobalMut(ty) => ("written, elements", ty, "; a mutable buffer, or a mutable slice of one"),
                Kind::Block | Kind::Shared(_) | Kind::SharedSlice(_) => continue,
            };
            lines.push(format!("* `{name}`: {what} of type `{}`{from}", names::shown(ty.to_token_stream())));
        }
        for group in &self.arguments.equal_len {
            let names = group.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>();
            lines.extend([String::new(), format!("The lengths of {} are equal.", names.join(", "))]);
        }
        lines.extend([
            String::new(),
            "# Errors".to_owned(),
            String::new(),
            "What the machine cannot run, an empty block, lengths that differ where they must not, and the fault of an \
             earlier launch on the stream. A fault of this one comes back from the next call that waits for it."
                .to_owned(),
        ]);
        let safety = signature::safety(&self.item);
        if self.item.sig.unsafety.is_some() {
            lines.extend([String::new(), "# Safety".to_owned(), String::new()]);
            lines.extend(safety);
        }
        docs(&lines.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The kernel itself, or with the arguments of one instantiation.
    fn instance(&self, arguments: Option<&AngleBracketedGenericArguments>) -> Instance<'_> {
        let (ident, name) = (&self.item.sig.ident, self.name());
        let Some(arguments) = arguments else {
            let (entry, shown) = (name.clone(), name);
            return Instance { facade: &self.facade, kernel: quote!(#ident), entry, shown, params: self.flat() };
        };
        let shown = names::shown(arguments.args.to_token_stream());
        Instance {
            facade: &self.facade,
            kernel: quote!(#ident #arguments),
            entry: names::entry(&name, &shown),
            shown: format!("{name}::<{shown}>"),
            params: GENERIC_PARAMS,
        }
    }
}

/// Documentation, one attribute a line, as a doc comment has them.
pub(crate) fn docs(lines: &[&str]) -> TokenStream {
    let lines = lines.iter().map(|line| format!(" {line}"));
    quote!(#(#[doc = #lines])*)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(arguments: TokenStream, item: TokenStream) -> String {
        let environment = Environment { entries: true, images: ["saxpy".to_owned()].into() };
        let tokens = expand(arguments, item, &environment).unwrap();
        syn::parse2::<syn::File>(tokens.clone()).expect("items");
        tokens.to_string()
    }

    fn error(arguments: TokenStream, item: TokenStream) -> String {
        expand(arguments, item, &Environment::default()).unwrap_err().to_string()
    }

    fn contains(text: &str, tokens: TokenStream) -> bool {
        text.contains(&tokens.to_string())
    }

    #[test]
    fn a_view_is_two_parameters_of_the_entry_and_shared_memory_none() {
        let text = text(
            quote!(),
            quote!(
                fn saxpy(cx: Block, a: f32, mut s: Shared<[u8; 4]>, x: Global<f64>, r: SharedSlice<u8>) {}
            ),
        );
        assert!(
            contains(
                &text,
                quote!(fn __entry(p0: f32, p1: *mut f64, p2: usize, control: *const ::kernel_primitives::simt::FaultControl))
            ),
            "{text}"
        );
        assert!(contains(&text, quote!(FlatParam<2usize> for saxpy { type Type = usize; })), "{text}");
        assert!(!contains(&text, quote!(FlatParam<3usize>)), "{text}");
        assert!(contains(&text, quote!(a: f32, x: impl ::kernel_primitives::ReadArg<f64>)), "{text}");
    }

    #[test]
    fn every_parameter_is_a_part_of_the_layout() {
        let text = text(
            quote!(),
            quote!(
                fn k(cx: Block, a: f32, x: Global<f64>, s: Shared<[u8; 4]>, o: GlobalMut<u8, Atomic>, f: Functor) {}
            ),
        );
        for part in [
            quote!(.with("a", 1usize, ::kernel_primitives::view::value_layout::<f32>())),
            quote!(.with("x", 2usize, ::kernel_primitives::view::view_layout::<f64>())),
            quote!(.with("s", Self::__SHARED.0[0usize], ::kernel_primitives::view::storage_layout::<[u8; 4]>())),
            quote!(.with("o", 4usize, ::kernel_primitives::view::view_layout::<u8>())),
            quote!(.with("f", 5usize, ::kernel_primitives::view::value_layout::<Functor>())),
        ] {
            assert!(contains(&text, part.clone()), "{part} is not in {text}");
        }
    }

    #[test]
    fn a_concrete_kernel_is_an_empty_enum_with_an_entry() {
        let text = text(
            quote!(),
            quote!(
                pub(crate) fn saxpy(cx: Block) {}
            ),
        );
        assert!(
            contains(
                &text,
                quote!(
                    pub(crate) enum saxpy {}
                )
            ),
            "{text}"
        );
        assert!(
            contains(
                &text,
                quote!(unsafe extern "ptx-kernel" fn entry(control: *const ::kernel_primitives::simt::FaultControl,))
            ),
            "{text}"
        );
        assert!(contains(&text, quote!("/", ::core::module_path!(), "/", "saxpy", ".rs")), "{text}");
        assert!(contains(&text, quote!(Instantiated<()> for saxpy)), "{text}");
    }

    #[test]
    fn a_generic_kernel_has_what_is_listed() {
        let item = quote!(
            fn sum<T: Element, const N: usize>(cx: Block, x: Global<T>)
            where
                T: Copy,
            {
            }
        );
        let listed = text(quote!(instantiate(<f32, 4>, <f64, { 1 + 1 }>)), item.clone());
        assert!(contains(&listed, quote!(struct sum<T, const N: usize>)), "{listed}");
        assert!(contains(&listed, quote!(Instantiated<()> for sum<f64, { 1 + 1 }>)), "{listed}");
        assert!(listed.contains("\"sum__f32_4\"") && listed.contains("\"sum::<f64, { 1 + 1 }>\""), "{listed}");
        assert!(
            contains(&listed, quote!(FlatParam<31usize> for sum<T, N> where T: Copy, { type Type = (); })),
            "{listed}"
        );
        let unlisted = text(quote!(), item);
        assert!(!unlisted.contains("ptx-kernel") && !unlisted.contains("static INFO"), "{unlisted}");
    }

    #[test]
    fn a_launch_has_its_own_visibility_and_the_rest_that_of_the_kernel() {
        let item = quote!(
            pub fn sum<T: Element>(cx: Block, x: Global<T>) {}
        );
        for (arguments, launch, shown) in [
            (quote!(), quote!(pub fn launch<__Tag>), None),
            (quote!(launch(pub)), quote!(pub fn launch<__Tag>), None),
            (quote!(launch(pub(crate))), quote!(pub(crate) fn launch<__Tag>), Some("`launch` is `pub(crate)`:")),
            (
                quote!(launch(pub(in crate::sums))),
                quote!(pub(in crate::sums) fn launch<__Tag>),
                Some("`launch` is `pub(in crate::sums)`:"),
            ),
            (
                quote!(launch()),
                quote!(#[cfg(not(target_arch = "nvptx64"))] fn launch<__Tag>),
                Some("`launch` is `private`:"),
            ),
        ] {
            let text = text(arguments.clone(), item.clone());
            assert!(contains(&text, launch), "{arguments}: {text}");
            assert!(contains(&text, quote!(pub fn info<__Tag>)), "{arguments}: {text}");
            assert!(contains(&text, quote!(pub struct sum<T>)), "{arguments}: {text}");
            assert_eq!(contains(&text, quote!(pub fn sum<)), shown.is_none(), "{arguments}: {text}");
            assert_eq!(text.contains("`launch` is"), shown.is_some(), "{arguments}: {text}");
            assert!(shown.is_none_or(|shown| text.contains(shown)), "{arguments}: {text}");
        }
    }

    #[test]
    fn the_launch_of_an_unsafe_kernel_is_unsafe_and_says_why() {
        let text = text(
            quote!(),
            quote!(
                /// Reads.
                ///
                /// # Safety
                /// `at` is inside.
                pub unsafe fn one(cx: Block, x: Global<f32>, at: u32) {}
            ),
        );
        assert!(contains(&text, quote!(pub unsafe fn launch)), "{text}");
        assert!(text.contains("unsafe { one::launch(&stream, dims, &x, at) }?;"), "{text}");
        // Of the function, of the type, and of the launch.
        assert_eq!(text.matches("# Safety").count(), 3, "{text}");
        assert_eq!(text.matches("`at` is inside.").count(), 3, "{text}");
    }

    #[test]
    fn the_facade_can_be_elsewhere() {
        let text = text(
            quote!(crate = crate::inner),
            quote!(
                fn saxpy(cx: Block, x: Global<f32>, a: u8) {}
            ),
        );
        assert!(
            contains(&text, quote!(impl crate::inner::ReadArg<f32>)) && !text.contains(":: kernel_primitives"),
            "{text}"
        );
    }

    #[test]
    fn a_condition_holds_for_everything() {
        let text = text(
            quote!(),
            quote!(
                #[cfg(feature = "x")]
                fn saxpy(cx: Block, a: u8) {}
            ),
        );
        // The function, the type, its methods, the entry's parameter, and the entry with the information.
        assert_eq!(text.matches("feature").count(), 5, "{text}");
    }

    #[test]
    fn mistakes_in_the_arguments_say_what_is_wrong() {
        let plain = quote!(
            fn k(cx: Block, x: Global<f32>, a: u32) {}
        );
        let generic = quote!(
            fn k<T: Element, const N: usize>(cx: Block, x: Global<T>) {}
        );
        let bodiless = quote!(
            fn k(cx: Block);
        );
        for (arguments, item, fragment) in [
            (quote!(instantiate(<f32>)), &plain, "`k` is not generic"),
            (quote!(equal_len(x)), &plain, "two views or more"),
            (quote!(equal_len(x, a)), &plain, "names `Global`, `Input`, `GlobalMut` and `Output` parameters"),
            (quote!(equal_len(x, y)), &plain, "names `Global`, `Input`, `GlobalMut` and `Output` parameters"),
            (quote!(block(256)), &plain, "`#[kernel]` knows"),
            (quote!(launch(crate)), &plain, "`launch` takes a visibility"),
            (quote!(launch(pub(crate), 2)), &plain, "`launch` takes a visibility"),
            (quote!(instantiate(<f32>)), &generic, "has the parameters `<T, const N>`: list 2 arguments, not 1"),
            (quote!(instantiate(<'static, f32>)), &generic, "types and constants"),
            (quote!(instantiate(<f32, 2>, <f32, { 2 }>)), &generic, "list each once"),
            (
                quote!(),
                &quote!(
                    struct S;
                ),
                "goes on a function",
            ),
            (quote!(), &bodiless, "goes on a function"),
        ] {
            let error = error(arguments.clone(), item.clone());
            assert!(error.contains(fragment), "{arguments}: {error}");
        }
    }

    #[test]
    fn a_generic_kernel_has_a_limit_and_a_concrete_one_has_none() {
        let views = (0..17).map(|i| quote::format_ident!("x{i}")).collect::<Vec<_>>();
        let error = error(quote!(), quote!(fn k<T: Element>(cx: Block, #(#views: Global<T>),*) {}));
        assert!(error.contains("at most 32 parameters") && error.contains("has 34"), "{error}");
        text(quote!(), quote!(fn k(cx: Block, #(#views: Global<f32>),*) {}));
    }
}
