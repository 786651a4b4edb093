//! Reductions and scans of the wrong type, or by functors that are not reductions.

use kernel_primitives::block::{ReduceStorage, ScanStorage, block_inclusive_scan, block_reduce};
use kernel_primitives::functor::{ArgMax, L2, LogSumExp, Max, Mean, Reduction, Sub, Sum};
use kernel_primitives::kernels::reduce_rows;
use kernel_primitives::prelude::*;

#[kernel]
fn of_another_type_than_the_storage(cx: Block, mut shared: Shared<ReduceStorage<f32>>) {
    block_reduce(cx, &mut shared, 1.0f64, Add); //~ mismatched types
}

#[kernel]
fn by_a_function_without_an_identity(cx: Block, mut shared: Shared<ScanStorage<f32>>) {
    block_inclusive_scan(cx, &mut shared, &[1.0f32], Sub); //~ cannot reduce `f32`
}

#[kernel]
fn by_a_reduction_in_place_of_its_reducer(cx: Block, mut shared: Shared<ReduceStorage<f32>>) {
    block_reduce(cx, &mut shared, 1.0f32, Mean); //~ cannot reduce `f32`
}

#[kernel]
fn of_complex_numbers_by_their_order(cx: Block, mut shared: Shared<ReduceStorage<Complex<f32>>>) {
    block_reduce(cx, &mut shared, Complex::<f32>::ONE, Max); //~ Complex<f32>: Ordered` is not satisfied
}

fn of_what_has_no_sum() {
    Sum.of(&["a", "b"]); //~ `&str: Accumulate` is not satisfied
}

fn of_integers_by_a_logarithm() {
    LogSumExp.of(&[1, 2]); //~ is not satisfied
}

fn a_functor_is_no_reduction() {
    fn reduces<R: Reduction<f32>>(_: R) {}
    reduces(L2);
    reduces(Add); //~ is no reduction of `f32`
}

fn main() -> kernel_primitives::Result<()> {
    let stream = kernel_primitives::Device::emulator().stream()?;
    let x = stream.buffer_from(&[1.0f32; 8])?;
    let mut out = stream.buffer_zeroed::<f32>(2)?;
    // The result has a value and an index.
    reduce_rows::<f32, ArgMax, 4>::launch(&stream, (1, 32), 2, 4, &x, &mut out, ArgMax)?; //~ does not take `&mut Buffer<f32>`
    Ok(())
}
