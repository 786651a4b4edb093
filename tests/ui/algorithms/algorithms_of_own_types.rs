//! Algorithms for types or functors without an instantiation: one for each shape of row in the table of algorithms. The message shows the
//! line to add. Its types are those of the call's bound, which a test in `tests/compile_fail.rs` reads for all algorithms.

use kernel_primitives::algorithms::*;
use kernel_primitives::input::reversed;
use kernel_primitives::prelude::*;
use kernel_primitives::{Buffer, Result, Stream};

#[derive(Clone, Copy, KernelParam)]
struct Larger;

impl BinaryFn<f32> for Larger {
    type Output = f32;
    fn apply(&self, a: f32, b: f32) -> f32 {
        if a < b { b } else { a }
    }
}

impl Reducer<f32> for Larger {
    fn identity(&self) -> f32 {
        f32::NEG_INFINITY
    }
}

/// The order of magnitudes.
#[derive(Clone, Copy, KernelParam)]
struct Nearer;

impl BinaryFn<f32> for Nearer {
    type Output = bool;
    fn apply(&self, a: f32, b: f32) -> bool {
        a.abs() < b.abs()
    }
}

#[derive(Clone, Copy, KernelParam)]
struct Ramp;

impl UnaryFn<u64> for Ramp {
    type Output = f32;
    fn apply(&self, i: u64) -> f32 {
        i as f32
    }
}

/// Buffers of a type.
struct Of<T: Element> {
    x: Buffer<T>,
    out: Buffer<T>,
}

fn transforms(s: &Stream, a: Of<f32>, b: Of<bool>, at: &Buffer<u32>) -> Result<()> {
    let (x, mut out) = (a.x, a.out);
    generate(s, Ramp, &mut out)?; //~ write `instantiate!(kernel_primitives::algorithms::generate<Ramp, f32>);`
    adjacent_difference(s, &x, Larger, &mut out)?; //~ write `instantiate!(kernel_primitives::algorithms::adjacent_difference<f32, Larger>);`
    let (x, mut out) = (b.x, b.out);
    gather(s, &x, at, &mut out)?; //~ write `instantiate!(kernel_primitives::algorithms::gather<bool, u32, bool>);`
    scatter(s, &x, at, &mut out)?; //~ write `instantiate!(kernel_primitives::algorithms::scatter<bool, u32>);`
    fill(s, true, &mut out) //~ write `instantiate!(kernel_primitives::algorithms::fill<bool>);`
}

fn segments(s: &Stream, Of { x, mut out }: Of<f32>, mut v: Of<u32>, offsets: &Buffer<u32>) -> Result<()> {
    segmented_inclusive_scan(s, &x, offsets, Larger, &mut out)?; //~ write `instantiate!(kernel_primitives::algorithms::segmented_inclusive_scan<f32, u32, Larger>);`
    segmented_sort_pairs(s, &x, &v.x, offsets, Nearer, &mut out, &mut v.out) //~ write `instantiate!(kernel_primitives::algorithms::segmented_sort_pairs<f32, u32, u32, Nearer>);`
}

fn sorted(s: &Stream, mut b: Of<bool>, Of { x, mut out }: Of<f32>, mut v: Of<u32>, count: &mut Buffer<u64>) -> Result<()> {
    unique(s, &b.x, &mut b.out, count)?; //~ write `instantiate!(kernel_primitives::algorithms::unique<bool>);`
    merge_pairs(s, (&x, &v.x), (&x, &v.x), Nearer, &mut out, &mut v.out) //~ write `instantiate!(kernel_primitives::algorithms::merge_pairs<f32, f32, u32, u32, Nearer>);`
}

fn counts(s: &Stream, x: &Buffer<f32>, counts: &mut Buffer<u64>) -> Result<()> {
    histogram_even(s, x, 0.0, 1.0, counts) //~ write `instantiate!(kernel_primitives::algorithms::histogram_even<f32, u64>);`
}

fn products(s: &Stream, a: &Csr<i32, u32>, Of { x, mut out }: Of<i32>) -> Result<()> {
    spmv(s, a, &x, &mut out) //~ write `instantiate!(kernel_primitives::algorithms::spmv<i32, i32, u32,
}

fn spectra(s: &Stream, plan: &FftPlan<f32>, Of { x, mut out }: Of<Complex<f32>>) -> Result<()> {
    fft(s, plan, reversed(&x), &mut out) //~ write `instantiate!(kernel_primitives::algorithms::fft<f32, Reversed<Span<
}

fn main() {}
