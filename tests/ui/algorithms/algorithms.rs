//! Algorithms for types and functors without an instantiation. The message shows the line to add. It has the functor of
//! the call, and not the only functor that has an instantiation.

use kernel_primitives::algorithms::{FftPlan, exclusive_scan, reduce, rfft, select_if, sort_pairs, transform};
use kernel_primitives::functor::{Less, ReduceBy};
use kernel_primitives::input::Span;
use kernel_primitives::prelude::*;
use kernel_primitives::{Buffer, Result, Stream};

#[derive(Clone, Copy, Debug, PartialEq, Element)]
#[repr(C)]
struct Mat2([f32; 4]);

#[derive(Clone, Copy, KernelParam)]
struct Multiply;

impl BinaryFn<Mat2> for Multiply {
    type Output = Mat2;
    fn apply(&self, a: Mat2, b: Mat2) -> Mat2 {
        let ([a, b, c, d], [e, f, g, h]) = (a.0, b.0);
        Mat2([a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h])
    }
}

impl Reducer<Mat2> for Multiply {
    fn identity(&self) -> Mat2 {
        Mat2([1.0, 0.0, 0.0, 1.0])
    }
}

#[derive(Clone, Copy, KernelParam)]
struct Half;

impl UnaryFn<f32> for Half {
    type Output = f32;
    fn apply(&self, x: f32) -> f32 {
        x / 2.0
    }
}

fn a_function(stream: &Stream, x: &Buffer<f32>, out: &mut Buffer<f32>) -> Result<()> {
    transform(stream, x, Half, out) //~ write `instantiate!(kernel_primitives::algorithms::transform<f32, Half, f32>);` in your kernel module
}

fn a_half_spectrum_of_complex_numbers(
    stream: &Stream,
    plan: &FftPlan<f32>,
    x: &Buffer<Complex<f32>>,
    out: &mut Buffer<Complex<f32>>,
) -> Result<()> {
    rfft(stream, plan, x, out) //~ the trait bound `kernel_primitives::Complex<f32>: ConvertTo<f32>` is not satisfied
}

fn an_operator(stream: &Stream, x: &Buffer<Mat2>, out: &mut Buffer<Mat2>) -> Result<()> {
    exclusive_scan(stream, x, Multiply.identity(), Multiply, out) //~ write `instantiate!(kernel_primitives::algorithms::exclusive_scan<Mat2, Multiply>);` in your kernel module
}

instantiate!(kernel_primitives::kernels::device::reduce_tiles<Span<f32>, ReduceBy<Larger>>);

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

fn a_kernel_by_its_own_name(stream: &Stream, x: &Buffer<f32>, out: &mut Buffer<f32>) -> Result<()> {
    reduce(stream, x, ReduceBy(Larger), out) //~ kernels that `instantiate!` makes by their own names
    //~^ write `instantiate!(kernel_primitives::algorithms::reduce<f32, ReduceBy<Larger>>);` in your kernel module
}

fn values(stream: &Stream, keys: &Buffer<u32>, values: &Buffer<Mat2>) -> Result<()> {
    let (mut sorted, mut out) = (stream.buffer_zeroed::<u32>(9)?, stream.buffer_zeroed::<Mat2>(9)?);
    sort_pairs(stream, keys, values, &mut sorted, &mut out, Less) //~ write `instantiate!(kernel_primitives::algorithms::sort_pairs<u32, Mat2>);` in your kernel module
}

fn an_operator_in_place_of_its_reduction(stream: &Stream, x: &Buffer<f32>, out: &mut Buffer<f32>) -> Result<()> {
    reduce(stream, x, Add, out) //~ a sum is `Sum`, a product `Prod`
    //~^ algorithm has no kernels
}

fn a_closure(stream: &Stream, x: &Buffer<f32>, out: &mut Buffer<f32>, count: &mut Buffer<u64>) -> Result<()> {
    select_if(stream, x, |x: f32| x > 0.0, out, count) //~ a closure is none, since a GPU's kernels are compiled apart
    //~^ in place of a closure, which has no name, write a struct
}

fn main() {}
