//! A kernel's thread does not share its token and views with other threads.

use kernel_primitives::prelude::*;

#[kernel]
fn into_another_thread(cx: Block) {
    std::thread::scope(|scope| {
        scope.spawn(|| cx.barrier()); //~ between threads safely
    });
}

#[kernel]
fn a_view_into_another_thread(_cx: Block, x: Global<f32>) {
    std::thread::scope(|scope| {
        scope.spawn(move || x.len()); //~ between threads safely
    });
}

fn main() {}
