//! The arguments of `#[kernel(…)]`.

use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{AngleBracketedGenericArguments, Error, Path, Result, Token, parenthesized};

/// `instantiate(<f32>, …), equal_len(x, out), crate = path`, in any order.
#[derive(Default)]
pub(crate) struct Arguments {
    /// Where `instantiate` stands, if it does.
    pub(crate) instantiate: Option<Span>,
    /// The generic arguments of each instantiation.
    pub(crate) instances: Vec<AngleBracketedGenericArguments>,
    /// Groups of views that must have equal lengths.
    pub(crate) equal_len: Vec<Vec<Ident>>,
    /// The facade's path, if it is not `::kernel_primitives`.
    pub(crate) facade: Option<Path>,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut arguments = Self::default();
        while !input.is_empty() {
            let key = input.call(Ident::parse_any)?;
            match key.to_string().as_str() {
                "instantiate" => {
                    let list;
                    parenthesized!(list in input);
                    arguments.instantiate = Some(key.span());
                    let instances = Punctuated::<AngleBracketedGenericArguments, Token![,]>::parse_terminated(&list)?;
                    arguments.instances.extend(instances);
                }
                "equal_len" => {
                    let list;
                    parenthesized!(list in input);
                    let names = Punctuated::<Ident, Token![,]>::parse_terminated(&list)?;
                    if names.len() < 2 {
                        return Err(Error::new(key.span(), "`equal_len` names two views or more: `equal_len(x, out)`"));
                    }
                    arguments.equal_len.push(names.into_iter().collect());
                }
                "crate" => {
                    input.parse::<Token![=]>()?;
                    arguments.facade = Some(input.call(Path::parse_mod_style)?);
                }
                _ => {
                    let message = "`#[kernel]` knows `instantiate(<f32>, …)`, `equal_len(x, out)` and `crate = path`";
                    return Err(Error::new(key.span(), message));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(arguments)
    }
}
