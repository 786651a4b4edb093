//! Scans of a block.

use kernel_primitives::functor::{Add, Max, Min};
use kernel_primitives::prelude::Each;
use kernel_primitives::{Buffer, Reducer, Result, Stream, f16};

use crate::kernels::scan as kernels;
use crate::kernels::{Compose, Last, Map, Triangular};
use crate::reference::{SHAPES, exclusive, inclusive, total};
use crate::support::{Arbitrary, stream, streams, threads, values};

type Shape = (u32, u32, u32);

fn blocks_scan<T: Arbitrary, R: Reducer<T>, const N: usize>(
    op: R,
    streams: Vec<Stream>,
    launch: impl Fn(&Stream, Shape, T, &Buffer<T>, &mut Buffer<[T; 7]>) -> Result<()>,
) -> Result<()> {
    for stream in streams {
        for (k, shape) in SHAPES.into_iter().enumerate() {
            let tile = threads(shape) * N;
            // The last of three tiles is partial. Its missing items are zeros.
            let x: Vec<T> = values(tile * 2 + tile.div_ceil(3), k as u64);
            let initial = values::<T>(1, 99)[0];
            let mut out = stream.buffer_zeroed(x.len())?;
            launch(&stream, shape, initial, &stream.buffer_from(&x)?, &mut out)?;
            let mut expected = Vec::new();
            for items in x.chunks(tile) {
                let mut full = items.to_vec();
                full.resize(tile, T::ZERO);
                let sum = total(&full, &op);
                let upto = inclusive(items, &op);
                let before = exclusive(items, op.identity(), &op);
                let before_from = exclusive(items, initial, &op);
                let before_after = exclusive(items, sum, &op);
                expected.extend((0..items.len()).map(|i| {
                    let (from, after) = (before_from[i], before_after[i]);
                    [upto[i], before[i], op.apply(from, items[i]), from, op.apply(after, items[i]), after, sum]
                }));
            }
            assert!(out.to_vec()? == expected, "{shape:?}");
        }
    }
    Ok(())
}

macro_rules! scans {
    ($($name:ident: $t:ty, $r:ty, $n:literal, $op:expr, $streams:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            blocks_scan::<$t, $r, $n>($op, $streams, |stream, shape, initial, x, out| {
                kernels::all_forms::<$t, $r, $n>::launch(stream, (2, shape), initial, x, out, $op)
            })
        }
    )*};
}
scans! {
    sanitize_blocks_scan_a_float_a_thread: f32, Add, 1, Add, vec![stream()?];
    sanitize_blocks_scan_4_items_a_thread_in_order: u8, Last, 4, Last, streams()?;
    blocks_scan_9_integers_a_thread: i32, Add, 9, Add, vec![stream()?];
    blocks_scan_for_the_largest_of_2_doubles_a_thread: f64, Max, 2, Max, vec![stream()?];
    blocks_scan_3_shorts_a_thread: u16, Add, 3, Add, vec![stream()?];
    blocks_scan_for_the_smallest_of_8_halves_a_thread: f16, Min, 8, Min, vec![stream()?];
    blocks_scan_a_long_a_thread: i64, Add, 1, Add, vec![stream()?];
    blocks_scan_4_matrices_a_thread: Triangular, Compose, 4, Compose, streams()?;
    blocks_scan_2_maps_of_16_bytes_a_thread: Map<u64>, Compose, 2, Compose, vec![stream()?];
    blocks_scan_32_bytes_a_thread: [u64; 4], Each<Max>, 1, Each(Max), vec![stream()?];
}

fn blocks_scan_stripes<T: Arbitrary, R: Reducer<T>, const N: usize>(
    op: R,
    launch: impl Fn(&Stream, Shape, &Buffer<T>, &mut Buffer<[T; N]>) -> Result<()>,
) -> Result<()> {
    for stream in streams()? {
        for shape in SHAPES {
            let block = threads(shape);
            let x: Vec<T> = values(block * N * 2, 7);
            let mut out = stream.buffer_zeroed(block * 2)?;
            launch(&stream, shape, &stream.buffer_from(&x)?, &mut out)?;
            let mut expected = Vec::new();
            for tile in x.chunks(block * N) {
                let sums = inclusive(tile, &op);
                expected.extend((0..block).map(|t| -> [T; N] { core::array::from_fn(|i| sums[i * block + t]) }));
            }
            assert!(out.to_vec()? == expected, "{shape:?}");
        }
    }
    Ok(())
}

#[test]
fn cumsum_of_one_item_a_thread() -> Result<()> {
    blocks_scan_stripes::<u32, _, 1>(Add, |stream, shape, x, out| {
        kernels::striped::<u32, Add, 1>::launch(stream, (1, shape), x, out, Add)
    })
}

#[test]
fn sanitize_cumsum_of_two_items_a_thread() -> Result<()> {
    blocks_scan_stripes::<u32, _, 2>(Add, |stream, shape, x, out| {
        kernels::striped::<u32, Add, 2>::launch(stream, (1, shape), x, out, Add)
    })
}

#[test]
fn cumsum_of_three_matrices_a_thread() -> Result<()> {
    blocks_scan_stripes::<Triangular, _, 3>(Compose, |stream, shape, x, out| {
        kernels::striped::<Triangular, Compose, 3>::launch(stream, (1, shape), x, out, Compose)
    })
}

#[test]
fn sanitize_a_prefix_carries_from_tile_to_tile() -> Result<()> {
    for stream in streams()? {
        for block in [7u32, 32, 65, 256] {
            let x: Vec<u32> = values(3001, 2);
            let mut out = stream.buffer_zeroed(x.len())?;
            kernels::carried::launch(&stream, (1, block), &stream.buffer_from(&x)?, &mut out)?;
            assert_eq!(out.to_vec()?, inclusive(&x, &Add), "blocks of {block}");
        }
    }
    Ok(())
}
