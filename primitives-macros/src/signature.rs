//! A kernel's signature: what is allowed in it, and what each parameter is.

use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Error, Expr, ExprLit, FnArg, GenericArgument, GenericParam, ItemFn, Lifetime, Lit, Meta, MetaNameValue, Pat,
    PathArguments, PathSegment, Result, ReturnType, Type,
};

use crate::names;

/// What a parameter is, by the last segment of its type's path.
pub(crate) enum Kind {
    /// `Block`: the token.
    Block,
    /// Anything else: passed by value.
    Value(Type),
    /// `Global<T>`.
    Global(Type),
    /// `Input<S>`.
    Input(Type),
    /// `Output<O>`.
    Output(Type),
    /// `GlobalMut<T>` or `GlobalMut<T, P>`.
    GlobalMut(Type),
    /// `Shared<S>`.
    Shared(Type),
    /// `SharedSlice<T>`.
    SharedSlice(Type),
}

/// A parameter.
pub(crate) struct Param {
    /// Its name, without `mut`.
    pub(crate) ident: Ident,
    /// Where its type stands.
    pub(crate) span: Span,
    /// What it is.
    pub(crate) kind: Kind,
}

impl Param {
    /// How many parameters of the PTX entry it is.
    pub(crate) fn flat(&self) -> usize {
        match self.kind {
            Kind::Value(_) | Kind::Input(_) | Kind::Output(_) => 1,
            Kind::Global(_) | Kind::GlobalMut(_) => 2,
            Kind::Block | Kind::Shared(_) | Kind::SharedSlice(_) => 0,
        }
    }
}

/// The parameters of a kernel, or every mistake in its signature.
pub(crate) fn parse(item: &ItemFn) -> Result<Vec<Param>> {
    let mut errors = Errors::default();
    check_function(item, &mut errors);

    let mut params = Vec::new();
    for input in &item.sig.inputs {
        match parameter(input) {
            Ok(param) => params.push(param),
            Err(error) => errors.push(error),
        }
    }
    errors.finish()?;
    check_order(item, &params)?;
    Ok(params)
}

/// All errors of a signature as one.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    pub(crate) fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }

    pub(crate) fn at(&mut self, place: impl ToTokens, message: &str) {
        self.push(Error::new_spanned(place, message));
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

fn check_function(item: &ItemFn, errors: &mut Errors) {
    let sig = &item.sig;
    if let Some(token) = sig.constness {
        errors.at(token, "a kernel is an ordinary function: remove `const`");
    }
    if let Some(token) = sig.asyncness {
        errors.at(token, "a kernel is an ordinary function: remove `async`, the launch is asynchronous already");
    }
    if let Some(token) = sig.unsafety
        && safety(item).is_empty()
    {
        errors.at(token, "an `unsafe` kernel says in its docs what a launch must keep: add a section `# Safety`");
    }
    if let Some(token) = &sig.abi {
        errors.at(token, "a kernel is an ordinary function: remove `extern`, the macro writes the PTX entry");
    }
    if let Some(variadic) = &sig.variadic {
        errors.at(variadic, "a kernel has a fixed number of parameters: remove `...`");
    }
    if let ReturnType::Type(_, ty) = &sig.output {
        errors.at(ty, "a kernel returns nothing: write its result to a `GlobalMut` parameter");
    }
    for generic in &sig.generics.params {
        match generic {
            GenericParam::Lifetime(lifetime) => {
                errors.at(lifetime, "a kernel has no lifetime parameters: leave lifetimes out, as in `x: Global<f32>`");
            }
            GenericParam::Type(ty) if ty.default.is_some() => {
                errors.at(
                    &ty.default,
                    "a kernel's type parameters have no defaults: list the type with `instantiate(<…>)`",
                );
            }
            GenericParam::Const(value) if value.default.is_some() => {
                errors.at(
                    &value.default,
                    "a kernel's constants have no defaults: list the value with `instantiate(<…>)`",
                );
            }
            GenericParam::Type(_) | GenericParam::Const(_) => {}
        }
    }
}

/// The lines of the section `# Safety` in a function's docs, without the heading. Docs that a macro such as `include_str!` writes
/// are not known here: they may have it.
pub(crate) fn safety(item: &ItemFn) -> Vec<String> {
    let mut text = String::new();
    let mut are_known = true;
    for attribute in item.attrs.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        match &attribute.meta {
            Meta::NameValue(MetaNameValue { value: Expr::Lit(ExprLit { lit: Lit::Str(part), .. }), .. }) => {
                text += &part.value();
                text.push('\n');
            }
            Meta::NameValue(_) => are_known = false,
            _ => {}
        }
    }
    let (mut section, mut is_code, mut is_inside) = (Vec::new(), false, false);
    for line in text.lines() {
        // Before the star, a line of `/** ... */`.
        let line = line.trim_start().strip_prefix("* ").unwrap_or(line.strip_prefix(' ').unwrap_or(line)).trim_end();
        is_code ^= line.trim_start().starts_with("```");
        // In code, such a line is one that the docs do not show.
        if !is_code && line.starts_with("# ") {
            is_inside = line == "# Safety";
        } else if is_inside {
            section.push(line.to_owned());
        }
    }
    // Without the empty lines around it.
    let is_text = |line: &String| !line.is_empty();
    let first = section.iter().position(is_text).unwrap_or(section.len());
    let end = section.iter().rposition(is_text).map_or(first, |last| last + 1);
    let section: Vec<String> = section.drain(first..end).collect();
    if section.is_empty() && !are_known {
        return vec!["As the docs of the kernel itself say.".to_owned()];
    }
    section
}

fn check_order(item: &ItemFn, params: &[Param]) -> Result<()> {
    let wanted = "a kernel's first parameter is the block token: write `cx: Block`";
    match params.first() {
        None => return Err(Error::new(item.sig.paren_token.span.join(), wanted)),
        Some(first) if !matches!(first.kind, Kind::Block) => return Err(Error::new(first.span, wanted)),
        Some(_) => {}
    }
    if let Some(second) = params[1..].iter().find(|param| matches!(param.kind, Kind::Block)) {
        return Err(Error::new(second.span, "a kernel has one block token, its first parameter: remove this one"));
    }
    let mut slices = params.iter().filter(|param| matches!(param.kind, Kind::SharedSlice(_)));
    if let Some(second) = slices.nth(1) {
        let message =
            "a kernel has one `SharedSlice`, which is the rest of shared memory: write `Shared<[T; N]>` for the other";
        return Err(Error::new(second.span, message));
    }
    Ok(())
}

fn parameter(input: &FnArg) -> Result<Param> {
    let typed = match input {
        FnArg::Receiver(receiver) => {
            return Err(Error::new_spanned(receiver, "a kernel is a free function: replace `self` by `cx: Block`"));
        }
        FnArg::Typed(typed) => typed,
    };
    if let Some(attribute) = typed.attrs.iter().find(|a| a.path().is_ident("cfg") || a.path().is_ident("cfg_attr")) {
        let message = "a kernel has the same parameters in every build: put the `cfg` on two kernels";
        return Err(Error::new_spanned(attribute, message));
    }
    let ident = match &*typed.pat {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => pat.ident.clone(),
        pat => return Err(Error::new_spanned(pat, "a kernel's parameter is a name, as in `x: Global<f32>`")),
    };
    Ok(Param { ident, span: typed.ty.span(), kind: classify(&typed.ty)? })
}

fn classify(ty: &Type) -> Result<Kind> {
    let error = |message: &str| Err(Error::new_spanned(ty, message));
    let text = |ty: &Type| names::shown(ty.to_token_stream());
    match ty {
        Type::Group(group) => return classify(&group.elem),
        Type::Paren(paren) => return classify(&paren.elem),
        Type::Reference(reference) => {
            let view = if reference.mutability.is_some() { ("writes", "GlobalMut") } else { ("reads", "Global") };
            let element = match &*reference.elem {
                Type::Slice(slice) => text(&slice.elem),
                _ => {
                    let message = format!(
                        "a kernel takes no references, which point to host memory: pass `{}` by value, or a `{}<…>`",
                        text(&reference.elem),
                        view.1,
                    );
                    return error(&message);
                }
            };
            return error(&format!("a kernel {} global memory through `{}<{element}>`", view.0, view.1));
        }
        Type::Slice(slice) => {
            return error(&format!("a kernel reads global memory through `Global<{}>`", text(&slice.elem)));
        }
        Type::Ptr(pointer) => {
            let view = if pointer.mutability.is_some() { "GlobalMut" } else { "Global" };
            let element = text(&pointer.elem);
            return error(&format!(
                "a kernel reaches global memory through `{view}<{element}>`, not through a pointer"
            ));
        }
        _ => {}
    }
    let mut finder = ImplTrait(None);
    finder.visit_type(ty);
    if let Some(place) = finder.0 {
        let message =
            "a kernel's types have names: write a type parameter, as in `fn kernel<F: UnaryFn<f32>>(…, f: F)`";
        return Err(Error::new(place, message));
    }
    let Type::Path(path) = ty else { return Ok(Kind::Value(ty.clone())) };
    let Some(last) = path.path.segments.last().filter(|_| path.qself.is_none()) else {
        return Ok(Kind::Value(ty.clone()));
    };
    Ok(match last.ident.to_string().as_str() {
        "Block" => {
            view_arguments(last, 0..=0, "`Block`")?;
            Kind::Block
        }
        "Global" => Kind::Global(view_arguments(last, 1..=1, "its element type: `Global<f32>`")?.remove(0)),
        "Input" => Kind::Input(view_arguments(last, 1..=1, "its source type: `Input<Span<f32>>`")?.remove(0)),
        "Output" => Kind::Output(view_arguments(last, 1..=1, "its sink type: `Output<SpanMut<f32>>`")?.remove(0)),
        "GlobalMut" => {
            let expected = "its element type, and a partition if it is not `PerThread`: `GlobalMut<f32>`";
            Kind::GlobalMut(view_arguments(last, 1..=2, expected)?.remove(0))
        }
        "Shared" => {
            Kind::Shared(storage(view_arguments(last, 1..=1, "its storage type: `Shared<[f32; 256]>`")?.remove(0))?)
        }
        "SharedSlice" => {
            Kind::SharedSlice(view_arguments(last, 1..=1, "its element type: `SharedSlice<f32>`")?.remove(0))
        }
        _ => Kind::Value(ty.clone()),
    })
}

/// The storage type of a `Shared`, which a scalar is not. One error here stands for those of all places that need a storage.
fn storage(ty: Type) -> Result<Type> {
    const SCALARS: [&str; 15] =
        ["u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize", "f16", "bf16", "f32", "f64", "bool"];
    let message = match &ty {
        Type::Path(path) if path.path.get_ident().is_some_and(|ident| SCALARS.iter().any(|scalar| ident == scalar)) => {
            let scalar = names::shown(ty.to_token_stream());
            format!(
                "`{scalar}` is no storage of shared memory: write an array, `Shared<[{scalar}; 1]>`, or the storage of a \
                 collective, such as `Shared<ReduceStorage<{scalar}>>`"
            )
        }
        Type::Slice(slice) => {
            format!(
                "shared memory of a length that the launch says is a `SharedSlice<{}>`",
                names::shown(slice.elem.to_token_stream())
            )
        }
        _ => return Ok(ty),
    };
    Err(Error::new_spanned(ty, message))
}

/// The type arguments of a view; a lifetime before them is `'_`.
fn view_arguments(segment: &PathSegment, count: std::ops::RangeInclusive<usize>, expected: &str) -> Result<Vec<Type>> {
    let mut types = Vec::new();
    let mut others = false;
    if let PathArguments::AngleBracketed(arguments) = &segment.arguments {
        for argument in &arguments.args {
            match argument {
                GenericArgument::Lifetime(Lifetime { ident, .. }) if ident == "_" => {}
                GenericArgument::Lifetime(lifetime) => {
                    return Err(Error::new_spanned(
                        lifetime,
                        "a kernel's views live as long as the launch: write `'_` or nothing",
                    ));
                }
                GenericArgument::Type(ty) => types.push(ty.clone()),
                _ => others = true,
            }
        }
    } else if !segment.arguments.is_none() {
        others = true;
    }
    if others || !count.contains(&types.len()) {
        let message = match &*segment.ident.to_string() {
            "Block" => "the block token has no type arguments: write `Block`".into(),
            name => format!("`{name}` needs {expected}"),
        };
        return Err(Error::new_spanned(segment, message));
    }
    Ok(types)
}

struct ImplTrait(Option<Span>);

impl<'ast> Visit<'ast> for ImplTrait {
    fn visit_type_impl_trait(&mut self, node: &'ast syn::TypeImplTrait) {
        self.0.get_or_insert(node.span());
        visit::visit_type_impl_trait(self, node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_str;

    fn kinds(signature: &str) -> String {
        let item = parse_str(&format!("fn k{signature} {{}}")).unwrap();
        let kind = |param: &Param| match &param.kind {
            Kind::Block => "token".into(),
            Kind::Value(ty) => format!("value {}", names::shown(ty.to_token_stream())),
            Kind::Global(ty) => format!("read {}", names::shown(ty.to_token_stream())),
            Kind::Input(ty) => format!("items {}", names::shown(ty.to_token_stream())),
            Kind::Output(ty) => format!("places {}", names::shown(ty.to_token_stream())),
            Kind::GlobalMut(ty) => format!("write {}", names::shown(ty.to_token_stream())),
            Kind::Shared(ty) => format!("shared {}", names::shown(ty.to_token_stream())),
            Kind::SharedSlice(ty) => format!("rest {}", names::shown(ty.to_token_stream())),
        };
        parse(&item).unwrap().iter().map(kind).collect::<Vec<_>>().join(" | ")
    }

    fn errors(function: &str) -> Vec<String> {
        let item = parse_str(function).unwrap();
        parse(&item).err().expect("a mistake").into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn parameters_are_classified_by_the_last_segment() {
        assert_eq!(kinds("(cx: Block)"), "token");
        assert_eq!(
            kinds("(cx: Block<'_>, a: f32, x: Global<f32>, mut out: view::GlobalMut<'_, Pair<f32>, Tiles<4>>)"),
            "token | value f32 | read f32 | write Pair<f32>"
        );
        assert_eq!(
            kinds("<T, const N: usize>(_cx: kp::Block, mut s: Shared<[T; N]>, r: SharedSlice<u8>, op: my::Functor<T>)"),
            "token | shared [T; N] | rest u8 | value my::Functor<T>"
        );
        assert_eq!(kinds("<S: Source>(cx: Block, x: input::Input<S>, f: f32)"), "token | items S | value f32");
        assert_eq!(kinds("<O: Sink>(cx: Block, mut out: Output<'_, O>)"), "token | places O");
        assert_eq!(kinds("(cx: Block, a: (f32), b: [u32; 4], c: ())"), "token | value f32 | value [u32; 4] | value ()");
    }

    #[test]
    fn every_mistake_is_one_sentence_that_says_what_to_write() {
        let cases = [
            ("fn k() {}", "write `cx: Block`"),
            ("fn k(x: Global<f32>) {}", "write `cx: Block`"),
            ("fn k(cx: Block, dx: Block) {}", "remove this one"),
            ("fn k(cx: Block<f32>) {}", "write `Block`"),
            ("fn k(cx: Block, x: Input) {}", "`Input` needs its source type: `Input<Span<f32>>`"),
            ("fn k(cx: Block, out: Output) {}", "`Output` needs its sink type: `Output<SpanMut<f32>>`"),
            ("fn k(cx: Block) -> f32 {}", "returns nothing"),
            ("async fn k(cx: Block) {}", "remove `async`"),
            ("unsafe fn k(cx: Block) {}", "add a section `# Safety`"),
            ("/// # Safety\nunsafe fn k(cx: Block) {}", "add a section `# Safety`"),
            ("/// ```\n/// # Safety\n/// one\n/// ```\nunsafe fn k(cx: Block) {}", "add a section `# Safety`"),
            ("extern \"C\" fn k(cx: Block) {}", "remove `extern`"),
            ("const fn k(cx: Block) {}", "remove `const`"),
            ("fn k(&self, cx: Block) {}", "replace `self`"),
            ("unsafe extern \"C\" fn k(cx: Block, ...) {}", "remove `...`"),
            ("fn k(cx: Block, f: impl UnaryFn<f32>) {}", "write a type parameter"),
            ("fn k(cx: Block, f: Wrapper<impl UnaryFn<f32>>) {}", "write a type parameter"),
            ("fn k(cx: Block, x: &[f32]) {}", "a kernel reads global memory through `Global<f32>`"),
            ("fn k(cx: Block, x: &mut [Vec2<f32>]) {}", "a kernel writes global memory through `GlobalMut<Vec2<f32>>`"),
            ("fn k(cx: Block, x: [f32]) {}", "through `Global<f32>`"),
            ("fn k(cx: Block, x: &Params) {}", "pass `Params` by value"),
            ("fn k(cx: Block, x: *mut f32) {}", "through `GlobalMut<f32>`"),
            ("fn k(cx: Block, (a, b): (f32, f32)) {}", "is a name"),
            ("fn k(cx: Block, _: f32) {}", "is a name"),
            ("fn k<'a>(cx: Block<'a>) {}", "no lifetime parameters"),
            ("fn k(cx: Block, x: Global<'static, f32>) {}", "write `'_` or nothing"),
            ("fn k(cx: Block, a: SharedSlice<f32>, b: SharedSlice<u8>) {}", "one `SharedSlice`"),
            ("fn k<T = f32>(cx: Block, a: T) {}", "no defaults"),
            ("fn k<const N: usize = 4>(cx: Block) {}", "no defaults"),
            ("fn k(cx: Block, x: Global) {}", "`Global` needs its element type"),
            ("fn k(cx: Block, x: GlobalMut<f32, Atomic, 4>) {}", "`GlobalMut` needs its element type"),
            ("fn k(cx: Block, x: Shared) {}", "`Shared` needs its storage type"),
            ("fn k(cx: Block, x: Shared<u32>) {}", "write an array, `Shared<[u32; 1]>`"),
            ("fn k(cx: Block, x: Shared<'_, f16>) {}", "such as `Shared<ReduceStorage<f16>>`"),
            ("fn k(cx: Block, x: Shared<[u32]>) {}", "is a `SharedSlice<u32>`"),
            ("fn k(cx: Block, #[cfg(test)] x: f32) {}", "same parameters"),
        ];
        for (function, fragment) in cases {
            let errors = errors(function);
            assert!(errors.iter().any(|error| error.contains(fragment)), "{function}: {errors:?}");
        }
    }

    #[test]
    fn the_safety_section_ends_where_another_begins() {
        let item = parse_str(
            "/// Reads.\n///\n/// # Safety\n///\n/// `at` is inside,\n/// always.\n///\n/// # Notes\n/// None.\nunsafe fn k(cx: Block) {}",
        );
        assert_eq!(safety(&item.unwrap()), ["`at` is inside,", "always."]);
        let item = parse_str("/** Reads.\n *\n * # Safety\n * `at` is inside.\n */\nunsafe fn k(cx: Block) {}");
        assert_eq!(safety(&item.unwrap())[0], "`at` is inside.");
        let item = parse_str("#[doc = include_str!(\"k.md\")]\nunsafe fn k(cx: Block) {}");
        assert_eq!(safety(&item.unwrap()), ["As the docs of the kernel itself say."]);
        let item = parse_str("/// Reads.\n#[doc(hidden)]\nunsafe fn k(cx: Block) {}");
        assert!(safety(&item.unwrap()).is_empty());
    }

    #[test]
    fn all_mistakes_of_a_signature_are_reported_together() {
        assert_eq!(errors("async fn k<'a>(cx: Block, x: &[f32], y: *const u8) -> u32 {}").len(), 5);
    }
}
