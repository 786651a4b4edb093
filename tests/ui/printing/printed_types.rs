//! Values that a kernel cannot print.

use kernel_primitives::prelude::*;

#[derive(Clone, Copy)]
struct Pair(f32, f32);

#[kernel]
fn a_struct(cx: Block) {
    device_println!(cx, "{}", Pair(1.0, 2.0)); //~ `Pair` cannot be printed from a kernel
}

#[kernel]
fn a_text(cx: Block) {
    device_println!(cx, "{}", "text"); //~ cannot be printed from a kernel
}

fn main() {}
