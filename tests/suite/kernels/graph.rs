//! Kernels for graphs. Their results depend on what ran before them.

use kernel_primitives::prelude::*;

/// `data = a * data + b`, wrapping. The result of a chain of these kernels depends on their order.
#[kernel]
pub fn affine(cx: Block, a: u32, b: u32, mut data: GlobalMut<u32>) {
    for i in cx.items(data.len()) {
        let value = data.get(i);
        data.set(i, a.wrapping_mul(value).wrapping_add(b));
    }
}

/// `out = f(x, y)`, with a functor that has a value.
#[kernel(equal_len(x, y, out), instantiate(<Weighted>))]
pub fn combine<F: BinaryFn<u32, Output = u32> + KernelParam>(
    cx: Block,
    f: F,
    x: Global<u32>,
    y: Global<u32>,
    mut out: GlobalMut<u32>,
) {
    for i in cx.items(out.len()) {
        let at = i.index();
        out.set(i, f.apply(x[at], y[at]));
    }
}

/// `x + weight * y`, wrapping.
#[derive(Clone, Copy, Debug, KernelParam)]
#[repr(C)]
pub struct Weighted {
    pub weight: u32,
}

impl BinaryFn<u32> for Weighted {
    type Output = u32;
    #[inline(always)]
    fn apply(&self, x: u32, y: u32) -> u32 {
        x.wrapping_add(self.weight.wrapping_mul(y))
    }
}

/// Faults with the first element as its code, unless the element is zero.
#[kernel]
pub fn fault_unless_zero(cx: Block, codes: Global<u64>) {
    if cx.thread_rank() == 0 && codes[0] != 0 {
        cx.fault(codes[0]);
    }
}

/// Adds one to every element. Only one test launches it, and it does so in a capture. Thus its first launch, which
/// loads it, is in a capture.
#[kernel]
pub fn first_launched_in_a_capture(cx: Block, mut data: GlobalMut<u32>) {
    for i in cx.items(data.len()) {
        let value = data.get(i);
        data.set(i, value.wrapping_add(1));
    }
}
