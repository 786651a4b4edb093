//! What the runtime asks of the driver, in which order, and what it never asks: shown by a driver that watches.
//!
//! It is compiled here with the C compiler that rustc links with, and runs no kernels. What they compute is for the tests of
//! `kernel-primitives` on a GPU.

#[path = "../fake/mod.rs"]
mod fake;
mod kept;
mod lifetimes;
mod order;
mod peers;
mod refusals;
mod support;
mod transfers;

/// What it lacks is an error of the runtime, which a test could take for what it looks for.
#[test]
fn the_driver_that_watches_has_all_functions_that_are_called() {
    let called = include_str!("../../../cuda-driver/src/sys.rs").split("    fn ").skip(1);
    let called: Vec<&str> =
        called.filter_map(|rest| rest.split('(').next()).filter(|name| name.starts_with("cu")).collect();
    assert!(called.len() > 50, "{called:?}");
    let source = include_str!("../fake/driver.c");
    let lacking: Vec<_> = called.iter().filter(|name| !source.contains(&format!("\nint {name}("))).collect();
    assert!(lacking.is_empty(), "tests/fake/driver.c has no {lacking:?}");
}
