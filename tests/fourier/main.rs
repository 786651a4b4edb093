//! Tests Fourier transforms of arrays. Each test runs on the device that `KERNEL_PRIMITIVES_DEVICE` names, and compares with the sum of the
//! definition, in double precision.
//!
//! Tests with `sanitize` in their names are small, and cover each facility once, for tools that slow the device down.
//! The name of this binary, `fourier`, is a part of its kernels' names. The build script knows it.

#![allow(unreachable_pub, reason = "a test binary exports nothing")]

mod kernels;

mod accuracy;
mod calls;
mod captures;
mod chain;
mod limits;
mod long;
mod paths;
mod real;
mod reference;
#[allow(dead_code, reason = "each test binary uses a part")]
#[path = "../suite/support.rs"]
mod support;
mod transforms;
