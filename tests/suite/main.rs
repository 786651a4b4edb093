//! This test binary's folders mirror the crates. `device` is the twin of `primitives-gpu`, `host` is the twin of
//! `primitives-host`, and `shipped` tests the library's own kernels. Other modules concern several crates: `faults`,
//! the emulator's `diagnoses`, the `agreement` of machines, `reduction`, other projects' `cases`, and the macros
//! `renamed`. Each test runs on the device that `KERNEL_PRIMITIVES_DEVICE` names, and compares with a reference that is
//! computed here by other means.
//!
//! Tests with `sanitize` in their names are small and cover each facility once. They are for tools that slow the device
//! down.
//! The name of this binary, `suite`, is a part of its kernels' names. The build script knows it.

#![allow(unreachable_pub, reason = "a test binary exports nothing")]

mod kernels;

mod agreement;
mod cases;
mod device;
mod diagnoses;
mod driver;
mod faults;
mod host;
mod hygiene;
mod reduction;
mod renamed;
mod shipped;
mod support;
