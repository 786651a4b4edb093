//! Tests collectives of a block.

use kernel_primitives::functor::{Add, Max, Min, Mul, Reducer};
use kernel_primitives::simt::{Fault, FaultKind};
use kernel_primitives::{BinaryFn, Buffer, ConvertTo, Diagnosis, Dims, Error, Result, Stream, bf16, f16};

use crate::kernels::block as kernels;
use crate::kernels::{Compose, Last, Map, Triangular};
use crate::support::{Arbitrary, SHAPES, stream, streams, threads, values};

/// More shapes: rows of one and a half warps, rows across three warps, and rows of several whole warps.
const MORE: [(u32, u32, u32); 8] =
    [(48, 2, 1), (70, 3, 1), (64, 3, 1), (96, 5, 2), (31, 33, 1), (1, 77, 1), (2, 3, 64), (512, 2, 1)];

/// Reduces blocks of every shape in groups of `row` threads. Several rounds use one storage.
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

/// Compacts tiles of several blocks, with a partial last tile, and compares with a filter on the host.
fn tiles_compact<T: Arbitrary + ConvertTo<f64>, const N: usize>(
    below: f64,
    launch: impl Fn(&Stream, u32, (u32, u32, u32), &Buffer<T>, &mut Buffer<T>, &mut Buffer<u32>) -> Result<()>,
) -> Result<()> {
    for stream in streams()? {
        for (k, shape) in SHAPES.into_iter().enumerate() {
            let tile = threads(shape) * N;
            let len = 5 * tile - tile / 3 - 1;
            let x = values::<T>(len, k as u64);
            // Elements that are not written keep their old values.
            let old = values::<T>(len, !(k as u64));
            let (mut out, mut counts) = (stream.buffer_from(&old)?, stream.buffer_zeroed::<u32>(len.div_ceil(tile))?);
            launch(&stream, 2, shape, &stream.buffer_from(&x)?, &mut out, &mut counts)?;
            let (out, counts) = (out.to_vec()?, counts.to_vec()?);
            for (((x, old), out), count) in x.chunks(tile).zip(old.chunks(tile)).zip(out.chunks(tile)).zip(counts) {
                let mut expected: Vec<T> =
                    x.iter().copied().filter(|&item| ConvertTo::<f64>::convert(item) < below).collect();
                let kept = expected.len();
                expected.extend(&old[kept..]);
                // Each thread adds the number of the whole tile.
                assert_eq!(count as usize, kept * threads(shape), "{shape:?}");
                let bits = |items: &[T]| items.iter().map(|&item| format!("{item:?}")).collect::<Vec<_>>();
                assert_eq!(bits(out), bits(&expected), "{shape:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_compaction_keeps_what_is_marked_in_its_order() -> Result<()> {
    tiles_compact::<u32, 1>(2e9, |s, grid, block, x, out, counts| {
        kernels::compacted::<u32, 1>::launch(s, (grid, block), 2e9, x, out, counts)
    })?;
    tiles_compact::<u32, 4>(1e9, |s, grid, block, x, out, counts| {
        kernels::compacted::<u32, 4>::launch(s, (grid, block), 1e9, x, out, counts)
    })?;
    tiles_compact::<u8, 3>(300.0, |s, grid, block, x, out, counts| {
        kernels::compacted::<u8, 3>::launch(s, (grid, block), 300.0, x, out, counts)
    })?;
    tiles_compact::<f64, 2>(0.0, |s, grid, block, x, out, counts| {
        kernels::compacted::<f64, 2>::launch(s, (grid, block), 0.0, x, out, counts)
    })
}

#[test]
fn each_row_has_one_result_of_its_block_or_its_warp() -> Result<()> {
    for stream in streams()? {
        for (rows, columns, grid, block) in
            [(1, 1, 1, 32), (7, 100, 3, 64), (10, 33, 20, 48), (5, 0, 2, 96), (64, 65, 4, 100)]
        {
            let x = values::<u32>(rows * columns, rows as u64);
            let total = |row: usize| x[row * columns..][..columns].iter().fold(0u32, |sum, &x| sum.wrapping_add(x));
            let expected: Vec<u32> = (0..rows).map(total).collect();
            let input = stream.buffer_from(&x)?;
            let mut out = stream.buffer_uninit::<u32>(rows)?;
            kernels::row_totals::launch(&stream, Dims::for_blocks(rows).block(block), columns, &input, &mut out)?;
            assert_eq!(out.to_vec()?, expected);
            let mut out = stream.buffer_uninit::<u32>(rows)?;
            kernels::row_totals::launch(&stream, (grid, block), columns, &input, &mut out)?;
            assert_eq!(out.to_vec()?, expected);
            let mut out = stream.buffer_uninit::<u32>(rows)?;
            kernels::warp_row_totals::launch(&stream, (grid, block), rows, columns, &input, &mut out)?;
            assert_eq!(out.to_vec()?, expected);
        }
        // There are more rows than elements.
        let x = stream.buffer_zeroed::<u32>(12)?;
        let mut out = stream.buffer_zeroed::<u32>(3)?;
        let launched = kernels::warp_row_totals::launch(&stream, (1, 64), 4, 3, &x, &mut out);
        let Err(Error::Fault(fault)) = launched.and_then(|()| stream.synchronize()) else { panic!("a fault") };
        let expected = Fault { kind: FaultKind::OutOfBounds, args: [3, 3] };
        assert_eq!(fault.diagnosis, Diagnosis::Raised(expected), "{fault}");
    }
    Ok(())
}

#[test]
fn more_blocks_than_a_grid_has_are_an_error_of_the_launch() -> Result<()> {
    let stream = stream()?;
    let (x, mut out) = (stream.buffer_zeroed::<u32>(1)?, stream.buffer_zeroed::<u32>(1)?);
    let dims = Dims::for_blocks(1 << 40).block(32);
    let launched = kernels::row_totals::launch(&stream, dims, 1, &x, &mut out);
    assert!(
        matches!(&launched, Err(Error::LaunchLimit { what: "the grid's x dimension", asked, .. }) if *asked == 1 << 40),
        "{launched:?}"
    );
    // A grid without blocks is not launched.
    kernels::row_totals::launch(&stream, Dims::for_blocks(0), 1, &x, &mut out)
}
