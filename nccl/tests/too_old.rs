//! A library that is too old.

mod fake;

#[test]
fn an_old_version_is_refused() {
    fake::compile(&["-DVERSION=21903"]);
    let error = primitives_nccl::load().expect_err("an old one");
    assert_eq!(error.cause(), "its version is 2.19.3, which is older than 2.20");
}
