//! One test binary, whose modules mirror the source: `simt`, `io`, `input`, `thread`, `warp`, `block`, `functor`,
//! `element`, the `shipped` kernels with `rows`, `columns` and `broadcast`, other projects' `cases`, the `agreement` of
//! machines, the `runtime`, `graph`, `printing`, the `images`, `faults`, `adoption` with the `driver`, and the emulator's `diagnoses`. Each
//! test runs on the device that `KERNEL_PRIMITIVES_DEVICE` names, and compares with a reference that is computed here by
//! other means.
//!
//! Tests with `sanitize` in their names are small, and cover each facility once, for tools that slow the device down.
//! The name of this binary, `suite`, is a part of its kernels' names: the build script knows it.

#![allow(unreachable_pub, reason = "a test binary exports nothing")]

mod kernels;

mod adoption;
mod agreement;
mod block;
mod broadcast;
mod cases;
mod columns;
mod diagnoses;
mod driver;
mod element;
mod faults;
mod functor;
mod graph;
#[cfg(feature = "cuda")]
mod images;
mod input;
mod io;
mod launches;
mod printing;
mod reduction;
mod renamed;
mod rows;
mod runtime;
mod shipped;
mod simt;
mod support;
mod thread;
mod transfers;
mod warp;
