//! What the runtime asks of the driver, in which order, and what it never asks: shown by a driver that watches.
//!
//! It is compiled here with the C compiler that rustc links with, and runs no kernels. What they compute is for the tests of
//! `kernel-primitives` on a GPU.

#[path = "../fake/mod.rs"]
mod fake;
mod lifetimes;
mod order;
mod peers;
mod refusals;
mod support;
mod transfers;
