//! Formats that do not fit their values.

use kernel_primitives::prelude::*;

#[kernel]
fn too_few(cx: Block) {
    device_println!(cx, "{} {}", 1); //~ a `{}` of this format has no value behind the format
}

#[kernel]
fn too_many(cx: Block) {
    device_println!(cx, "{}", 1, 2); //~ a value behind this format has no `{}` in it
}

#[kernel]
fn named(cx: Block, x: u32) {
    device_println!(cx, "{x}", x); //~ with the values behind the format
}

fn main() {}
