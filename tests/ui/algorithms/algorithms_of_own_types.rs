//! Each algorithm for a type or functor without an instantiation. The message shows the line to add.

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
struct Positive;

impl UnaryFn<f32> for Positive {
    type Output = bool;
    fn apply(&self, x: f32) -> bool {
        x > 0.0
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

fn scans(s: &Stream, Of { x, mut out }: Of<f32>, keys: &Buffer<u32>, offsets: &Buffer<u32>) -> Result<()> {
    inclusive_scan(s, &x, Larger, &mut out)?; //~ write `instantiate!(kernel_primitives::algorithms::inclusive_scan<f32, Larger>);`
    inclusive_scan_by_key(s, keys, &x, Larger, &mut out)?; //~ write `instantiate!(kernel_primitives::algorithms::inclusive_scan_by_key<u32, f32, Larger>);`
    exclusive_scan_by_key(s, keys, &x, 0.0, Larger, &mut out)?; //~ write `instantiate!(kernel_primitives::algorithms::exclusive_scan_by_key<u32, f32, Larger>);`
    segmented_inclusive_scan(s, &x, offsets, Larger, &mut out)?; //~ write `instantiate!(kernel_primitives::algorithms::segmented_inclusive_scan<f32, u32, Larger>);`
    segmented_exclusive_scan(s, &x, offsets, 0.0, Larger, &mut out) //~ write `instantiate!(kernel_primitives::algorithms::segmented_exclusive_scan<f32, u32, Larger>);`
}

fn reductions(s: &Stream, Of { x, mut out }: Of<f32>, offsets: &Buffer<u32>, mut keys: Of<u32>) -> Result<()> {
    use kernel_primitives::functor::ReduceBy;
    let mut count = s.buffer_zeroed::<u64>(1)?;
    segmented_reduce(s, &x, offsets, ReduceBy(Larger), &mut out)?; //~ write `instantiate!(kernel_primitives::algorithms::segmented_reduce<f32, u32, ReduceBy<Larger>>);`
    reduce_by_key(s, &keys.x, &x, Larger, &mut keys.out, &mut out, &mut count) //~ write `instantiate!(kernel_primitives::algorithms::reduce_by_key<u32, f32, Larger>);`
}

fn runs(s: &Stream, mut b: Of<bool>, mut x: Of<f32>, count: &mut Buffer<u64>) -> Result<()> {
    let mut lengths = s.buffer_zeroed::<u32>(9)?;
    run_length_encode(s, &b.x, &mut b.out, &mut lengths, &mut *count)?; //~ write `instantiate!(kernel_primitives::algorithms::run_length_encode<bool, u32>);`
    unique(s, &b.x, &mut b.out, &mut *count)?; //~ write `instantiate!(kernel_primitives::algorithms::unique<bool>);`
    unique_by_key(s, &b.x, &x.x, &mut b.out, &mut x.out, &mut *count) //~ write `instantiate!(kernel_primitives::algorithms::unique_by_key<bool, f32>);`
}

fn selections(s: &Stream, Of { x, mut out }: Of<f32>, flags: &Buffer<u8>, count: &mut Buffer<u64>) -> Result<()> {
    select_if(s, &x, Positive, &mut out, &mut *count)?; //~ write `instantiate!(kernel_primitives::algorithms::select_if<f32, Positive>);`
    select_flagged(s, &x, flags, &mut out, &mut *count)?; //~ write `instantiate!(kernel_primitives::algorithms::select_flagged<f32, u8>);`
    partition(s, &x, Positive, &mut out, &mut *count) //~ write `instantiate!(kernel_primitives::algorithms::partition<f32, Positive>);`
}

fn counts(s: &Stream, x: &Buffer<f32>, b: &Buffer<bool>, counts: &mut Buffer<u64>) -> Result<()> {
    histogram_even(s, x, 0.0, 1.0, &mut *counts)?; //~ write `instantiate!(kernel_primitives::algorithms::histogram_even<f32, u64>);`
    histogram_ranges(s, x, x, &mut *counts)?; //~ write `instantiate!(kernel_primitives::algorithms::histogram_ranges<f32, u64>);`
    lower_bound(s, b, b, &mut *counts)?; //~ write `instantiate!(kernel_primitives::algorithms::lower_bound<bool, bool>);`
    upper_bound(s, b, b, &mut *counts) //~ write `instantiate!(kernel_primitives::algorithms::upper_bound<bool, bool>);`
}

fn sorts(s: &Stream, mut b: Of<bool>, Of { x, mut out }: Of<f32>, mut v: Of<u32>, offsets: &Buffer<u32>) -> Result<()> {
    use kernel_primitives::functor::{Greater, Less};
    sort_keys(s, &b.x, &mut b.out, Less)?; //~ write `instantiate!(kernel_primitives::algorithms::sort_keys<bool>);`
    sort_by(s, &x, Nearer, &mut out)?; //~ write `instantiate!(kernel_primitives::algorithms::sort_by<f32, Nearer>);`
    sort_pairs_by(s, &x, &v.x, Nearer, &mut out, &mut v.out)?; //~ write `instantiate!(kernel_primitives::algorithms::sort_pairs_by<f32, u32, Nearer>);`
    merge(s, &x, &x, Nearer, &mut out)?; //~ write `instantiate!(kernel_primitives::algorithms::merge<f32, f32, Nearer>);`
    merge_pairs(s, (&x, &v.x), (&x, &v.x), Nearer, &mut out, &mut v.out)?; //~ write `instantiate!(kernel_primitives::algorithms::merge_pairs<f32, f32, u32, u32, Nearer>);`
    segmented_sort(s, &x, offsets, Nearer, &mut out)?; //~ write `instantiate!(kernel_primitives::algorithms::segmented_sort<f32, u32, Nearer>);`
    segmented_sort_pairs(s, &x, &v.x, offsets, Nearer, &mut out, &mut v.out)?; //~ write `instantiate!(kernel_primitives::algorithms::segmented_sort_pairs<f32, u32, u32, Nearer>);`
    top_k_pairs(s, &b.x, &v.x, 5, Greater, &mut b.out, &mut v.out) //~ write `instantiate!(kernel_primitives::algorithms::top_k_pairs<bool, u32,
}

fn products(s: &Stream, a: &Csr<i32, u32>, Of { x, mut out }: Of<i32>) -> Result<()> {
    spmv(s, a, &x, &mut out)?; //~ write `instantiate!(kernel_primitives::algorithms::spmv<i32, i32, u32,
    spmm(s, a, &x, 2, &mut out) //~ write `instantiate!(kernel_primitives::algorithms::spmm<i32, i32, u32,
}

fn spectra(s: &Stream, plan: &FftPlan<f32>, Of { x, mut out }: Of<Complex<f32>>) -> Result<()> {
    fft(s, plan, reversed(&x), &mut out) //~ write `instantiate!(kernel_primitives::algorithms::fft<f32, Reversed<Span<
}

fn main() {}
