//! The launch of a kernel from the host.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};

use super::{Kernel, at, docs, generated, internal, moved};
use crate::names;
use crate::signature::{self, Kind};

impl Kernel {
    pub(super) fn launch(&self) -> TokenStream {
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
            "What the machine cannot run, an empty block, blocks or a grid that the kernel's attribute does not allow, lengths that \
             differ where they must not, and the fault of an earlier launch on the stream. In the emulator a fault of this launch comes back from this call, on a GPU from the next \
             launch that finds it or the next call that waits."
                .to_owned(),
        ]);
        let safety = signature::safety(&self.item);
        if self.item.sig.unsafety.is_some() {
            lines.extend([String::new(), "# Safety".to_owned(), String::new()]);
            lines.extend(safety);
        }
        docs(&lines.iter().map(String::as_str).collect::<Vec<_>>())
    }
}
