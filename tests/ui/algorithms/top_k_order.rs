//! The first few items of a type that the library has no kernels for. The message shows the line to add. If the library
//! has kernels for a type, it has them for both orders.

use kernel_primitives::algorithms::{top_k, top_k_pairs};
use kernel_primitives::functor::{Greater, Less};
use kernel_primitives::input::{counting, reversed};
use kernel_primitives::{Buffer, Result, Stream};

fn either_order(stream: &Stream, x: &Buffer<u32>, y: &Buffer<i32>) -> Result<()> {
    let (mut out, mut places) = (stream.buffer_zeroed::<u32>(9)?, stream.buffer_zeroed::<u32>(9)?);
    top_k(stream, x, 5, Greater, &mut out)?;
    top_k(stream, x, 5, Less, &mut out)?;
    top_k_pairs(stream, x, counting(0u32, 9), 5, Greater, &mut out, &mut places)?;
    top_k_pairs(stream, x, counting(0u32, 9), 5, Less, &mut out, &mut places)?;
    let mut out = stream.buffer_zeroed::<i32>(9)?;
    top_k(stream, y, 5, Greater, &mut out)?;
    top_k(stream, y, 5, Less, &mut out)
}

fn another_type(stream: &Stream, x: &Buffer<bool>, out: &mut Buffer<bool>) -> Result<()> {
    top_k(stream, x, 5, Greater, out) //~ write `instantiate!(kernel_primitives::algorithms::top_k<bool, kernel_primitives::functor::Greater>);` in your kernel module
}

fn another_input(stream: &Stream, x: &Buffer<u64>, out: &mut Buffer<u64>) -> Result<()> {
    top_k(stream, reversed(x), 5, Less, out) //~ write `instantiate!(kernel_primitives::algorithms::top_k<Reversed<Span<u64>>, kernel_primitives::functor::Less>);` in your kernel module
}

fn main() {}
