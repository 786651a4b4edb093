//! Tests the sorts of a warp, of a block and of rows, with a module for each. Each test runs on the device that `KERNEL_PRIMITIVES_DEVICE`
//! names, and compares with the sorts of the standard library.
//!
//! Tests with `sanitize` in their names are small, and cover each facility once, for tools that slow the device down.
//! The name of this binary, `sorts`, is a part of its kernels' names. The build script knows it.

#![allow(unreachable_pub, reason = "a test binary exports nothing")]

mod kernels;

mod keys;
mod merge;
mod network;
mod radix;
mod rows;
#[allow(dead_code, reason = "each test binary uses a part")]
#[path = "../suite/support.rs"]
mod support;
mod top_k;
mod warp;
