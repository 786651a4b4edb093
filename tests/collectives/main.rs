//! Tests the collectives of a warp and a block, other than sorts, with a module for each. Each test runs on the device that
//! `KERNEL_PRIMITIVES_DEVICE` names. It compares with a reference that is computed here in another way.
//!
//! Tests with `sanitize` in their names are small, and cover each facility once, for tools that slow the device down.
//! The name of this binary, `collectives`, is a part of its kernels' names. The build script knows it.

#![allow(unreachable_pub, reason = "a test binary exports nothing")]

mod families;
mod reference;
#[allow(dead_code, reason = "each test binary uses a part")]
#[path = "../suite/support.rs"]
mod support;

// `support` takes the types from a module of this name.
use families as kernels;
