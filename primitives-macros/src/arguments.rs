//! The arguments of `#[kernel(…)]`.

use std::collections::BTreeSet;

use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{AngleBracketedGenericArguments, Error, Expr, Path, Result, Token, Visibility, parenthesized};

/// `instantiate(<f32>, …), equal_len(x, out), threads(N), max_threads(N), min_blocks(N), one_dimensional, carveout(N), launch(pub(crate)), crate = path`,
/// in any order.
#[derive(Default)]
pub(crate) struct Arguments {
    /// Where `instantiate` stands, if it does.
    pub(crate) instantiate: Option<Span>,
    /// The generic arguments of each instantiation.
    pub(crate) instances: Vec<AngleBracketedGenericArguments>,
    /// Groups of views that must have equal lengths.
    pub(crate) equal_len: Vec<Vec<Ident>>,
    /// The extents of every block, in threads: up to three.
    pub(crate) threads: Vec<Expr>,
    /// The most threads that a block has.
    pub(crate) max_threads: Option<Expr>,
    /// Blocks that a multiprocessor should hold at once.
    pub(crate) min_blocks: Option<Expr>,
    /// Whether blocks and grid have one dimension.
    pub(crate) one_dimensional: bool,
    /// The shared memory that the kernel prefers a multiprocessor to have, in bytes.
    pub(crate) carveout: Option<Expr>,
    /// Who may launch the kernel, if not whoever sees it.
    pub(crate) launch: Option<Visibility>,
    /// The facade's path, if it is not `::kernel_primitives`.
    pub(crate) facade: Option<Path>,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let (mut arguments, mut given) = (Self::default(), BTreeSet::new());
        while !input.is_empty() {
            let key = input.call(Ident::parse_any)?;
            let name = key.to_string();
            let is_list = ["instantiate", "equal_len"].contains(&name.as_str());
            match name.as_str() {
                _ if !is_list && !given.insert(name.clone()) => {
                    return Err(Error::new(key.span(), format!("`{name}` is given twice: remove one")));
                }
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
                "threads" => {
                    let list;
                    parenthesized!(list in input);
                    let extents = Punctuated::<Expr, Token![,]>::parse_terminated(&list)?;
                    if !(1..=3).contains(&extents.len()) {
                        let message = "`threads` takes one to three extents: `threads(256)`, `threads(32, 8)`";
                        return Err(Error::new(key.span(), message));
                    }
                    arguments.threads = extents.into_iter().collect();
                }
                "max_threads" => arguments.max_threads = Some(one_constant(&key, input)?),
                "min_blocks" => arguments.min_blocks = Some(one_constant(&key, input)?),
                "one_dimensional" => arguments.one_dimensional = true,
                "carveout" => arguments.carveout = Some(one_constant(&key, input)?),
                "launch" => {
                    let visibility;
                    parenthesized!(visibility in input);
                    let wrong = "`launch` takes a visibility: `launch(pub(crate))`, or `launch()` for the module alone";
                    arguments.launch = Some(visibility.parse()?);
                    if !visibility.is_empty() {
                        return Err(visibility.error(wrong));
                    }
                }
                "crate" => {
                    input.parse::<Token![=]>()?;
                    arguments.facade = Some(input.call(Path::parse_mod_style)?);
                }
                _ => {
                    let message = "`#[kernel]` knows `instantiate(<f32>, …)`, `equal_len(x, out)`, `threads(256)`, \
                                   `max_threads(256)`, `min_blocks(2)`, `one_dimensional`, `carveout(65536)`, `launch(pub(crate))` and \
                                   `crate = path`";
                    return Err(Error::new(key.span(), message));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        if let (Some(threads), false) = (&arguments.max_threads, arguments.threads.is_empty()) {
            return Err(Error::new_spanned(threads, "`threads` says how many there are: remove `max_threads`"));
        }
        if let (true, Some(extent)) = (arguments.one_dimensional, arguments.threads.get(1)) {
            return Err(Error::new_spanned(
                extent,
                "a block of a `one_dimensional` kernel has one extent: `threads(256)`",
            ));
        }
        if let (Some(blocks), None, true) =
            (&arguments.min_blocks, &arguments.max_threads, arguments.threads.is_empty())
        {
            return Err(Error::new_spanned(blocks, "`min_blocks` needs `max_threads` or `threads` beside it"));
        }
        Ok(arguments)
    }
}

/// `(N)`, an expression of the kernel's constants.
fn one_constant(key: &Ident, input: ParseStream<'_>) -> Result<Expr> {
    let constant;
    parenthesized!(constant in input);
    if constant.is_empty() {
        return Err(Error::new(key.span(), format!("`{key}` takes a constant: `{key}(256)`")));
    }
    let value = constant.parse()?;
    if !constant.is_empty() {
        return Err(constant.error(format!("`{key}` takes one constant")));
    }
    Ok(value)
}
