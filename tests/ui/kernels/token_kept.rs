//! The block token does not outlive its kernel.

use std::cell::Cell;

use kernel_primitives::prelude::*;

thread_local! {
    static TOKEN: Cell<Option<Block<'static>>> = const { Cell::new(None) };
    static VIEW: Cell<Option<Global<'static, f32>>> = const { Cell::new(None) };
}

#[kernel]
fn token_kept(cx: Block) {
    TOKEN.set(Some(cx)); //~ borrowed data escapes outside of function
}

#[kernel]
fn view_kept(_cx: Block, x: Global<f32>) {
    VIEW.set(Some(x)); //~ borrowed data escapes outside of function
}

fn main() {}
