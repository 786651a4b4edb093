//! Numbers of threads and blocks that no launch can have.

use kernel_primitives::prelude::*;

const LARGE: usize = (1 << 32) + 32;

#[kernel(max_threads(0))]
fn none(_cx: Block) {}

#[kernel(max_threads(64), min_blocks(0))]
fn no_blocks(_cx: Block) {}

#[kernel(threads(LARGE))]
fn large(_cx: Block) {}

fn main() {}
//~? `max_threads` is above 0
//~? `min_blocks` is above 0
//~? `threads` is at most 1024 in all
