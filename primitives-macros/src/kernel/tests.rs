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
    assert!(
        contains(
            &text,
            quote!(
                extern "ptx-kernel" fn __entry(
                    p0: f32,
                    p1: *mut f64,
                    p2: usize,
                    control: *const ::kernel_primitives::simt::FaultControl,
                )
            )
        ),
        "{text}"
    );
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
            quote!(unsafe extern "ptx-kernel" fn __entry(control: *const ::kernel_primitives::simt::FaultControl,))
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
    assert!(contains(&listed, quote!(FlatParam<31usize> for sum<T, N> where T: Copy, { type Type = (); })), "{listed}");
    let unlisted = text(quote!(), item);
    assert!(!unlisted.contains("ptx-kernel") && !unlisted.contains("static __INFO"), "{unlisted}");
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
    // The function, the type, its methods, and the entry with the information.
    assert_eq!(text.matches("feature").count(), 4, "{text}");
}

#[test]
fn a_condition_holds_for_every_parameter_of_a_generic_kernel() {
    let text = text(
        quote!(),
        quote!(
            #[cfg(feature = "x")]
            fn sum<T: Element>(cx: Block, x: Global<T>) {}
        ),
    );
    // The function, the type, its methods, and the parameters of entries, of which there are none here.
    assert_eq!(text.matches("feature").count(), 3 + GENERIC_PARAMS, "{text}");
}

#[test]
fn types_of_a_concrete_kernel_are_in_no_public_trait() {
    let text = text(
        quote!(),
        quote!(
            pub fn halve(cx: Block, op: Halve, x: Global<Point>, y: Input<Mine>) {}
        ),
    );
    assert!(!text.contains("FlatParam"), "{text}");
    assert!(
        contains(
            &text,
            quote!(
                extern "ptx-kernel" fn __entry(
                    p0: Halve,
                    p1: *mut Point,
                    p2: usize,
                    p3: Mine,
                    control: *const ::kernel_primitives::simt::FaultControl,
                )
            )
        ),
        "{text}"
    );
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
        (quote!(one_dimensional, one_dimensional), &plain, "`one_dimensional` is given twice"),
        (quote!(threads(32, 8), one_dimensional, threads(64)), &plain, "`threads` is given twice"),
        (quote!(launch(), launch(pub)), &plain, "`launch` is given twice"),
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
