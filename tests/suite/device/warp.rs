//! Tests collectives of a warp.

use kernel_primitives::functor::{Add, Max, Min, Mul, Reducer};
use kernel_primitives::{Buffer, Result, Stream, bf16, f16};

use crate::kernels::warp::{self as kernels, AddModulo};
use crate::kernels::{Compose, Last, Map, Triangular};
use crate::support::{Arbitrary, SHAPES, stream, streams, threads, values};

/// Reduces warps of every block shape in several rounds, and compares with a reduction in the order of the lanes.
fn warps_reduce<T: Arbitrary, R: Reducer<T>>(
    op: R,
    input: impl Fn(T) -> T,
    streams: Vec<Stream>,
    launch: impl Fn(&Stream, u32, (u32, u32, u32), &Buffer<T>, &mut Buffer<T>) -> Result<()>,
) -> Result<()> {
    for stream in streams {
        for (k, shape) in SHAPES.into_iter().enumerate() {
            let (block, grid) = (threads(shape), 1 + k % 3);
            let x: Vec<T> = values::<T>(block * grid * 2, k as u64).into_iter().map(&input).collect();
            let mut out = stream.buffer_zeroed(x.len())?;
            launch(&stream, grid as u32, shape, &stream.buffer_from(&x)?, &mut out)?;
            let mut expected = Vec::new();
            for warp in x.chunks(block).flat_map(|block| block.chunks(32)) {
                let total = warp.iter().copied().reduce(|a, b| op.apply(a, b)).unwrap();
                expected.extend(warp.iter().map(|_| total));
            }
            assert_eq!(out.to_vec()?, expected, "{shape:?}");
        }
    }
    Ok(())
}

macro_rules! warps {
    ($($name:ident: $t:ty, $op:ident, $streams:expr, $input:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            warps_reduce::<$t, _>($op, $input, $streams, |stream, grid, shape, x, out| {
                kernels::warp_reduced::<$t, $op>::launch(stream, (grid, shape), x, out, $op)
            })
        }
    )*};
}
warps! {
    sanitize_warp_sum_of_f32: f32, Add, vec![stream()?], |v| v;
    sanitize_warp_composition_of_maps: Map<u32>, Compose, streams()?, |v| v;
    warp_composition_of_16_byte_maps: Map<u64>, Compose, vec![stream()?], |v| v;
    warp_product_of_matrices: Triangular, Compose, vec![stream()?], |v| v;
    warp_last_in_lane_order: u8, Last, streams()?, |v| if v < 100 { 0 } else { v };
    warp_product_of_f64: f64, Mul, vec![stream()?], |v| if v > 9990.0 { -2.0 } else { 1.0 };
    warp_sum_of_f16: f16, Add, vec![stream()?], |v| f16::from_f32(v.to_f32() % 3.0);
    warp_maximum_of_bf16: bf16, Max, vec![stream()?], |v| v;
    warp_minimum_of_f16: f16, Min, vec![stream()?], |v| v;
    warp_minimum_of_i32: i32, Min, streams()?, |v| v;
    warp_sum_of_i32_wraps: i32, Add, vec![stream()?], |v| v;
    warp_maximum_of_u32: u32, Max, vec![stream()?], |v| v;
    warp_sum_of_u32_wraps: u32, Add, vec![stream()?], |v| v;
    warp_product_of_u32_wraps: u32, Mul, vec![stream()?], |v| v | 1;
    warp_sum_of_u8_wraps: u8, Add, vec![stream()?], |v| v;
    warp_minimum_of_i64: i64, Min, vec![stream()?], |v| v;
    warp_maximum_of_f32: f32, Max, vec![stream()?], |v| v;
}

#[test]
fn warp_reduction_by_a_functor_with_state() -> Result<()> {
    let op = AddModulo { modulus: 97 };
    warps_reduce::<u32, _>(
        op,
        |v| v % 97,
        streams()?,
        |stream, grid, shape, x, out| {
            kernels::warp_reduced::<u32, AddModulo>::launch(stream, (grid, shape), x, out, op)
        },
    )
}

#[test]
fn warp_maximum_propagates_nan_and_orders_zeros() -> Result<()> {
    let stream = stream()?;
    let mut x = vec![-0.0f32; 64];
    x[40] = f32::NAN;
    x[41] = f32::INFINITY;
    x[3] = 0.0;
    let mut out = stream.buffer_zeroed(64)?;
    kernels::warp_reduced::<f32, Max>::launch(&stream, (1, 64), &stream.buffer_from(&x)?, &mut out, Max)?;
    let found = out.to_vec()?;
    assert!(found[..32].iter().all(|v| v.to_bits() == 0), "+0 is the larger zero");
    assert!(found[32..].iter().all(|v| v.is_nan()));
    Ok(())
}

#[test]
fn sanitize_one_warp_reduces_alone() -> Result<()> {
    for stream in streams()? {
        for block in [64u32, 96, 40] {
            let x = values::<f32>(block as usize, 1);
            let mut out = stream.buffer_zeroed(x.len())?;
            kernels::second_warp_reduced::launch(&stream, (1, block), &stream.buffer_from(&x)?, &mut out)?;
            let sum: f32 = x[32..64.min(x.len())].iter().sum();
            let expected: Vec<f32> = (0..x.len()).map(|i| if i / 32 == 1 { sum } else { -1.0 }).collect();
            assert_eq!(out.to_vec()?, expected);
        }
    }
    Ok(())
}
