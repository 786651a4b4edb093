//! A library that is too old.

mod fake;

#[test]
fn an_old_version_is_refused() {
    // It lacks functions, too, which is not what is wrong with it.
    fake::compile(&["-DVERSION=2604", "-DLACKS_SEND"]);
    let error = primitives_nccl::load().expect_err("an old one");
    assert_eq!(error.cause(), "its version is 2.6.4, which is older than 2.20");
}
