//! Collectives of a block.

use kernel_primitives::functor::{Add, Max, Min, Mul, Reducer};
use kernel_primitives::{BinaryFn, Buffer, Result, Stream, bf16, f16};

use crate::kernels::block as kernels;
use crate::kernels::{Compose, Last, Map, Triangular};
use crate::support::{Arbitrary, SHAPES, stream, streams, threads, values};

/// Shapes beside the common ones: rows of a warp and a half, rows across three warps, rows of several whole warps.
const MORE: [(u32, u32, u32); 8] =
    [(48, 2, 1), (70, 3, 1), (64, 3, 1), (96, 5, 2), (31, 33, 1), (1, 77, 1), (2, 3, 64), (512, 2, 1)];

/// Reduces every block shape, several rounds on one storage, in groups of `row` threads of each shape.
fn blocks_reduce<T: Arbitrary, R: Reducer<T>>(
    op: R,
    row: fn((u32, u32, u32)) -> usize,
    input: impl Fn(T) -> T,
    streams: Vec<Stream>,
    launch: impl Fn(&Stream, u32, (u32, u32, u32), &Buffer<T>, &mut Buffer<T>) -> Result<()>,
) -> Result<()> {
    for stream in streams {
        for (k, shape) in SHAPES.into_iter().chain(MORE).enumerate() {
            let (block, grid) = (threads(shape), 1 + k % 2);
            let x: Vec<T> = values::<T>(block * grid * 3, k as u64).into_iter().map(&input).collect();
            let mut out = stream.buffer_zeroed(x.len())?;
            launch(&stream, grid as u32, shape, &stream.buffer_from(&x)?, &mut out)?;
            let mut expected = Vec::new();
            for row in x.chunks(row(shape)) {
                let total = row.iter().copied().reduce(|a, b| op.apply(a, b)).unwrap();
                expected.extend(row.iter().map(|_| total));
            }
            assert_eq!(out.to_vec()?, expected, "{shape:?}");
        }
    }
    Ok(())
}

macro_rules! blocks {
    ($($block:ident, $rows:ident: $t:ty, $op:ident, $streams:expr, $input:expr;)*) => {$(
        #[test]
        fn $block() -> Result<()> {
            blocks_reduce::<$t, _>($op, threads, $input, $streams, |stream, grid, shape, x, out| {
                kernels::block_reduced::<$t, $op>::launch(stream, (grid, shape), x, out, $op)
            })
        }

        #[test]
        fn $rows() -> Result<()> {
            blocks_reduce::<$t, _>($op, |shape| shape.0 as usize, $input, $streams, |stream, grid, shape, x, out| {
                kernels::rows_reduced::<$t, $op>::launch(stream, (grid, shape), x, out, $op)
            })
        }
    )*};
}
blocks! {
    sanitize_block_sum_of_f32, sanitize_row_sums_of_f32: f32, Add, vec![stream()?], |v| v;
    sanitize_block_composition_of_maps, sanitize_row_compositions_of_maps: Map<u32>, Compose, streams()?, |v| v;
    block_composition_of_16_byte_maps, row_compositions_of_16_byte_maps: Map<u64>, Compose, vec![stream()?], |v| v;
    block_product_of_matrices, row_products_of_matrices: Triangular, Compose, vec![stream()?], |v| v;
    block_last_in_rank_order, row_lasts_in_rank_order: u8, Last, streams()?, |v| if v < 200 { 0 } else { v };
    block_product_of_f64, row_products_of_f64: f64, Mul, vec![stream()?], |v| if v > 9900.0 { -2.0 } else { 1.0 };
    block_maximum_of_f16, row_maxima_of_f16: f16, Max, vec![stream()?], |v| v;
    block_minimum_of_bf16, row_minima_of_bf16: bf16, Min, vec![stream()?], |v| v;
    block_minimum_of_f64, row_minima_of_f64: f64, Min, vec![stream()?], |v| v;
    block_minimum_of_i32, row_minima_of_i32: i32, Min, vec![stream()?], |v| v;
    block_sum_of_i32_wraps, row_sums_of_i32_wrap: i32, Add, streams()?, |v| v;
    block_maximum_of_u32, row_maxima_of_u32: u32, Max, vec![stream()?], |v| v;
    block_product_of_u32_wraps, row_products_of_u32_wrap: u32, Mul, vec![stream()?], |v| v | 1;
    block_sum_of_u8_wraps, row_sums_of_u8_wrap: u8, Add, vec![stream()?], |v| v;
    block_maximum_of_i64, row_maxima_of_i64: i64, Max, vec![stream()?], |v| v;
}

#[test]
fn sanitize_collectives_take_turns_on_one_storage() -> Result<()> {
    for stream in streams()? {
        for shape in SHAPES.into_iter().chain(MORE) {
            let block = threads(shape);
            let x: Vec<u32> = values(block * 4, 8);
            let mut out = stream.buffer_zeroed(x.len())?;
            kernels::mixed_reductions::launch(&stream, (2, shape), &stream.buffer_from(&x)?, &mut out)?;
            for (round, found) in x.chunks(block).zip(out.to_vec()?.chunks(block)) {
                let sum = round.iter().fold(0u32, |a, b| a.wrapping_add(*b));
                let map = round.iter().map(|&v| Map { a: v | 1, b: v }).reduce(|f, g| Compose.apply(f, g)).unwrap();
                for (row, found) in round.chunks(shape.0 as usize).zip(found.chunks(shape.0 as usize)) {
                    let expected = [sum, *row.iter().max().unwrap(), map.a ^ map.b, sum];
                    assert!(found.iter().all(|&found| found == expected), "{shape:?}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn block_sum_of_f32_is_close_for_any_values_and_the_same_again() -> Result<()> {
    let stream = stream()?;
    let mut random = crate::support::Random::new(3);
    for shape in SHAPES {
        let x: Vec<f32> = (0..threads(shape)).map(|_| (random.unit() * 2.0 - 1.0) as f32 * 1e3).collect();
        let input = stream.buffer_from(&x)?;
        let mut results = Vec::new();
        for _ in 0..2 {
            let mut out = stream.buffer_zeroed(x.len())?;
            kernels::block_reduced::<f32, Add>::launch(&stream, (1, shape), &input, &mut out, Add)?;
            results.push(out.to_vec()?);
        }
        assert_eq!(results[0], results[1]);
        let first = results[0][0].to_bits();
        assert!(results[0].iter().all(|result| result.to_bits() == first), "{shape:?}: the threads differ");
        let exact: f64 = x.iter().map(|&v| v as f64).sum();
        let magnitude: f64 = x.iter().map(|&v| v.abs() as f64).sum();
        // A tree of at most ten levels rounds each addition by half a unit.
        let allowed = magnitude * 10.0 * f32::EPSILON as f64 / 2.0;
        assert!((results[0][0] as f64 - exact).abs() <= allowed, "{shape:?}: {} is not {exact}", results[0][0]);
    }
    Ok(())
}
