//! A program on a machine that has no NCCL.

#[test]
fn the_error_says_what_to_do() {
    // SAFETY: this is the only test of the process, and the harness reads no environment now.
    unsafe { std::env::set_var(primitives_nccl::LIBRARY_VARIABLE, "/nowhere/libnccl.so.2") };
    let error = primitives_nccl::load().expect_err("there is none");
    assert_eq!(error.library(), "/nowhere/libnccl.so.2");
    assert!(error.cause().contains("No such file"), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("cannot open NCCL `/nowhere/libnccl.so.2`: "), "{text}");
    assert!(text.ends_with("KERNEL_PRIMITIVES_LIBNCCL names this library: correct it, or unset it"), "{text}");
    assert_eq!(primitives_nccl::load().expect_err("still none"), error);
}
