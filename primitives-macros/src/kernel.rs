//! `#[kernel]`.

use std::collections::HashSet;

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{
    AngleBracketedGenericArguments, Attribute, Error, GenericArgument, GenericParam, ItemFn, Result, Visibility,
    parse_quote,
};

use crate::arguments::Arguments;
use crate::environment::Environment;
use crate::instance::{GENERIC_PARAMS, Instance};
use crate::names;
use crate::signature::{self, Kind, Param};

mod launch;
mod members;
#[cfg(test)]
mod tests;

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

/// A name of generated code. None of the user's variables can collide with it. Items have no hygiene: their names begin with `__`.
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
            let any_shape = self.arguments.threads.is_empty() && !self.arguments.one_dimensional;
            let statement = if any_shape {
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
        let allow = quote!(#[allow(non_camel_case_types, non_upper_case_globals, dead_code)]);
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

    /// The kernel itself, or with the arguments of one instantiation.
    fn instance(&self, arguments: Option<&AngleBracketedGenericArguments>) -> Instance<'_> {
        let (ident, name) = (&self.item.sig.ident, self.name());
        let Some(arguments) = arguments else {
            let (entry, shown) = (name.clone(), name);
            let params = Some(self.flat_types());
            return Instance { facade: &self.facade, kernel: quote!(#ident), entry, shown, params };
        };
        let shown = names::shown(arguments.args.to_token_stream());
        Instance {
            facade: &self.facade,
            kernel: quote!(#ident #arguments),
            entry: names::entry(&name, &shown),
            shown: format!("{name}::<{shown}>"),
            params: None,
        }
    }
}

/// Documentation, one attribute a line, as a doc comment has them.
pub(crate) fn docs(lines: &[&str]) -> TokenStream {
    let lines = lines.iter().map(|line| format!(" {line}"));
    quote!(#(#[doc = #lines])*)
}
