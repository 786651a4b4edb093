//! A library that lacks a function.

mod fake;

#[test]
fn a_missing_function_is_named() {
    fake::compile(&["-DLACKS_SEND"]);
    let error = primitives_nccl::load().expect_err("a function is missing");
    assert_eq!(error.cause(), "it has no function ncclSend");
}
