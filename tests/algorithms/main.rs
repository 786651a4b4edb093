//! Tests the algorithms over whole buffers, with a module for each. Each test runs on the device that `KERNEL_PRIMITIVES_DEVICE` names. It
//! compares with a reference that is computed here in another way.
//!
//! Tests with `sanitize` in their names are small, for tools that slow the device down. The net has such tests of each algorithm, and tests
//! the errors of outputs that are too short. So an algorithm without special cases needs no module here.
//! The name of this binary, `algorithms`, is a part of its kernels' names. The build script knows it.

#![allow(unreachable_pub, reason = "a test binary exports nothing")]

use std::cmp::Ordering;

mod kernels;
mod runs;

mod calls;
mod chain;
mod histogram;
mod pipeline;
mod reduce;
mod scan;
mod segments;
mod select;
mod sorts;
#[allow(dead_code, reason = "each test binary uses a part")]
#[path = "../suite/support.rs"]
mod support;
mod transform;
mod unique;

/// Lengths near those of one thread, one block and one tile, and some of many tiles. The largest tiles have 26 624 items, in scans of
/// bytes. Scans of 20 000 items of four bytes have more tiles than a group of the chain.
pub const LENGTHS: [usize; 11] = [0, 1, 2, 31, 33, 1000, 1023, 4096, 4097, 20_000, 40_003];

/// Returns the places of `len` items in a stable order. One sort is compiled for the items of all types.
pub fn in_order(len: usize, order: &dyn Fn(usize, usize) -> Ordering) -> Vec<u32> {
    let mut places: Vec<u32> = (0..len as u32).collect();
    places.sort_by(|&i, &j| order(i as usize, j as usize));
    places
}

/// Returns the items at places.
pub fn at<T: Copy>(items: &[T], places: &[u32]) -> Vec<T> {
    places.iter().map(|&i| items[i as usize]).collect()
}
