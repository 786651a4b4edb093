//! Types that a kernel cannot take, and layouts that would differ on host and device.

use kernel_primitives::prelude::*;

#[derive(Clone, Copy)]
struct Half;

impl UnaryFn<f32> for Half {
    type Output = f32;
    fn apply(&self, x: f32) -> f32 {
        x / 2.0
    }
}

#[kernel]
fn functor(_cx: Block, _f: Half) {} //~ `Half` cannot be a kernel parameter

#[kernel]
fn choice(_cx: Block, _choice: Option<u32>) {} //~ `Option<u32>` cannot be a kernel parameter

#[kernel]
fn no_element(_cx: Block, _x: Global<Half>) {} //~ `Half` cannot be stored in device memory

#[derive(Clone, Copy, KernelParam)]
struct NoRepr { //~ add `#[repr(C)]`
    a: f32,
    b: f32,
}

#[derive(Clone, Copy, KernelParam)]
#[repr(C)]
struct Pointing {
    x: &'static f32, //~ `&'static f32` cannot be a kernel parameter
}

#[derive(Clone, Copy, Element)]
#[repr(C)]
struct Padded { //~ `Padded` has padding between its fields: reorder them or add explicit fields
    a: u8,
    b: u32,
}

#[derive(Clone, Copy, Element)]
#[repr(C)]
struct Choice(Option<u32>); //~ `Option<u32>` cannot be stored in device memory

fn main() {}
