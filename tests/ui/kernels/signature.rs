//! Signatures that a kernel cannot have. Each message says what to write.

use kernel_primitives::prelude::*;

#[kernel]
fn no_token(x: Global<f32>) { //~ a kernel's first parameter is the block token: write `cx: Block`
    let _ = x;
}

#[kernel]
fn no_parameters() {} //~ write `cx: Block`

#[kernel]
fn result(_cx: Block, x: Global<f32>) -> f32 { //~ a kernel returns nothing: write its result to a `GlobalMut` parameter
    x[0]
}

#[kernel]
fn host_slice(_cx: Block, _x: &[f32]) {} //~ a kernel reads global memory through `Global<f32>`

#[kernel]
fn host_slice_to_write(_cx: Block, _x: &mut [f32]) {} //~ a kernel writes global memory through `GlobalMut<f32>`

#[kernel]
fn pointer(_cx: Block, _x: *mut f32) {} //~ not through a pointer

#[kernel]
fn reference(_cx: Block, _x: &f32) {} //~ pass `f32` by value

#[kernel]
fn opaque(_cx: Block, _f: impl UnaryFn<f32>) {} //~ write a type parameter

#[kernel(equal_len(x, y))] //~ `equal_len` names `Global`, `Input`, `GlobalMut` and `Output` parameters of the kernel
fn unknown_length(_cx: Block, x: Global<f32>) {
    let _ = x;
}

#[kernel(instantiate(<f32>))]
fn too_few_arguments<T: Element, const N: usize>(_cx: Block, _x: Global<[T; N]>) {}
//~^^ `too_few_arguments` has the parameters `<T, const N>`: list 2 arguments, not 1

#[kernel]
struct NotAFunction; //~ `#[kernel]` goes on a function

#[kernel(max_threads())] //~ `max_threads` takes a constant: `max_threads(256)`
fn no_constant(_cx: Block) {}

#[kernel(min_blocks(2))] //~ `min_blocks` needs `max_threads` or `threads` beside it
fn blocks_of_any_size(_cx: Block) {}

#[kernel(threads(1, 2, 3, 4))] //~ `threads` takes one to three extents
fn four_dimensions(_cx: Block) {}

#[kernel(threads(64), max_threads(64))] //~ `threads` says how many there are: remove `max_threads`
fn twice_bounded(_cx: Block) {}

#[kernel(one_dimensional, threads(8, 4))] //~ a block of a `one_dimensional` kernel has one extent: `threads(256)`
fn two_dimensions(_cx: Block) {}

#[kernel]
unsafe fn silent(_cx: Block) {} //~ an `unsafe` kernel says in its docs what a launch must keep: add a section `# Safety`

#[kernel(launch(crate))] //~ `launch` takes a visibility: `launch(pub(crate))`, or `launch()` for the module alone
fn no_visibility(_cx: Block) {}

fn main() {}
