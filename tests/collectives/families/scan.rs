//! Scans of a block.

use super::{Compose, Last, Map, Triangular};
use kernel_primitives::functor::LogicalXor;
use kernel_primitives::prelude::*;

/// Computes every form of scan, each to its own output: inclusive, exclusive, both from `initial`, and both after a prefix that is the
/// total. The total itself comes last. With `THREADS`, one warp scans for all.
#[kernel(max_threads(if THREADS == 0 { 1024 } else { THREADS }), instantiate(
    <f32, Add, 1, 0>, <u8, Last, 4, 0>, <i32, Add, 9, 0>, <f64, Max, 2, 0>, <u16, Add, 3, 0>, <f16, Min, 8, 0>,
    <i64, Add, 1, 0>, <Triangular, Compose, 4, 0>, <Map<u64>, Compose, 2, 0>, <[u64; 4], Each<Max>, 1, 0>,
    <f32, Add, 1, 256>, <u8, Last, 4, 1024>, <i32, Add, 9, 512>, <f16, Min, 8, 160>, <i64, Add, 1, 256>,
    <Triangular, Compose, 4, 128>, <[u64; 4], Each<Max>, 1, 64>,
    <i8, Add, 4, 0>, <i16, Min, 2, 0>, <u32, Max, 1, 0>, <u64, Add, 2, 0>, <bf16, Max, 8, 0>, <bool, LogicalXor, 3, 0>,
    <Complex<f32>, Add, 2, 0>, <Complex<f64>, Add, 1, 0>, <bf16, Max, 3, 320>, <Complex<f64>, Add, 2, 320>,
))]
pub fn all_forms<T: Element, R: Reducer<T> + KernelParam, const N: usize, const THREADS: usize>(
    cx: Block,
    initial: T,
    x: Global<T>,
    mut out: GlobalMut<[T; 7], Tiles<N>>,
    op: R,
    mut shared: Shared<ScanStorage<T, THREADS>>,
) {
    for tile in cx.tiles::<N>(out.len()) {
        let mut items = init::<T, N>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        let (inclusive, total) = block_inclusive_scan(cx, &mut shared, &items, op);
        let (exclusive, _) = block_exclusive_scan(cx, &mut shared, &items, op);
        let (inclusive_from, _) = block_inclusive_scan_from(cx, &mut shared, &items, initial, op);
        let inclusive_after = block_inclusive_scan_after(cx, &mut shared, &items, op, |total| total);
        let (exclusive_from, _) = block_exclusive_scan_from(cx, &mut shared, &items, initial, op);
        let exclusive_after = block_exclusive_scan_after(cx, &mut shared, &items, op, |total| total);
        let results: [[T; 7]; N] = core::array::from_fn(|i| {
            [
                inclusive[i],
                exclusive[i],
                inclusive_from[i],
                exclusive_from[i],
                inclusive_after[i],
                exclusive_after[i],
                total,
            ]
        });
        write_data(cx, out.tile(tile), &results);
    }
}

/// Computes the seed's scan, in the striped arrangement.
#[kernel(max_threads(1024), instantiate(<u32, Add, 1>, <u32, Add, 2>, <Triangular, Compose, 3>))]
pub fn striped<T: Element, R: Reducer<T> + KernelParam, const N: usize>(
    cx: Block,
    x: Global<T>,
    mut out: GlobalMut<[T; N]>,
    op: R,
    mut shared: Shared<ScanStorage<[T; N]>>,
) {
    for i in cx.items(out.len()) {
        let (rank, threads) = (cx.thread_rank() as usize, cx.block_threads() as usize);
        let items = core::array::from_fn(|item| x[(i.index() - rank) * N + item * threads + rank]);
        out.set(i, cumsum(cx, &mut shared, items, op));
    }
}

/// Carries a value from tile to tile through the prefix callback, which runs in one warp.
#[kernel]
pub fn carried(cx: Block, x: Global<u32>, mut out: GlobalMut<u32, Tiles<4>>, mut shared: Shared<ScanStorage<u32>>) {
    let mut carry = 0u32;
    for tile in cx.tiles::<4>(out.len()) {
        let mut items = init::<u32, 4>(0);
        read_data(cx, &mut items, x.tile(tile));
        let sums = block_inclusive_scan_after(cx, &mut shared, &items, Add, |total| {
            let before = carry;
            carry = carry.wrapping_add(total);
            before
        });
        write_data(cx, out.tile(tile), &sums);
    }
}

/// Scans in blocks of up to 64 threads.
#[kernel]
pub fn sums_of_64(cx: Block, x: Global<u32>, mut out: GlobalMut<u32>, mut shared: Shared<ScanStorage<u32, 64>>) {
    for i in cx.items(out.len()) {
        let ([sum], _) = block_inclusive_scan(cx, &mut shared, &[x[i]], Add);
        out.set(i, sum);
    }
}

/// Scans −0 in all places. It writes the scan in rounds from the identity, the value before a warp's first lane, the sum of no values, and
/// the sum of values that do not fill the block.
#[kernel]
pub fn zeros(
    cx: Block,
    x: Global<f32>,
    mut out: GlobalMut<[f32; 4]>,
    mut scans: Shared<ScanStorage<f32>>,
    mut sums: Shared<ReduceStorage<f32>>,
) {
    for i in cx.items(out.len()) {
        let items = [[x[2 * i.index()], x[2 * i.index() + 1]]; 2];
        let (rounds, _) = block_inclusive_scan_rounds(cx, &mut scans, &items, Add.identity(), Add);
        let (before, _) = warp_group_exclusive_scan(cx, x[i], Add, 5);
        let none = block_reduce_partial(cx, &mut sums, &items[0], 0, Add);
        let some = block_reduce_partial(cx, &mut sums, &items[0], 37, Add);
        out.set(i, [rounds[1][1], before, none, some]);
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod tests {
    use kernel_primitives::__private::Instantiated;
    use kernel_primitives::functor::{Add, LogicalXor, Max, Min};
    use kernel_primitives::prelude::Each;
    use kernel_primitives::{Buffer, Complex, Reducer, Result, Stream, bf16, f16};
    use proptest::prelude::any;

    use crate::families::scan as kernels;
    use crate::families::{Compose, Last, Map, Triangular};
    use crate::reference::{SHAPES, exclusive, inclusive, total};
    use crate::support::{Arbitrary, any_shape, holds, stream, streams, threads, values};

    type Shape = (u32, u32, u32);

    /// Scans `len` items in tiles. The last tile may be partial, and its missing items are zeros.
    fn a_block_scans<T: Arbitrary, R: Reducer<T>, const N: usize>(
        op: &R,
        stream: &Stream,
        (shape, len, seed): (Shape, usize, u64),
        launch: impl Fn(&Stream, Shape, T, &Buffer<T>, &mut Buffer<[T; 7]>) -> Result<()>,
    ) -> Result<()> {
        let tile = threads(shape) * N;
        let x: Vec<T> = values(len, seed);
        let initial = values::<T>(1, seed ^ 99)[0];
        let mut out = stream.buffer_zeroed(x.len())?;
        launch(stream, shape, initial, &stream.buffer_from(&x)?, &mut out)?;
        let mut expected = Vec::new();
        for items in x.chunks(tile) {
            let mut full = items.to_vec();
            full.resize(tile, T::ZERO);
            let sum = total(&full, op);
            let upto = inclusive(items, op);
            let before = exclusive(items, op.identity(), op);
            let before_from = exclusive(items, initial, op);
            let before_after = exclusive(items, sum, op);
            expected.extend((0..items.len()).map(|i| {
                let (from, after) = (before_from[i], before_after[i]);
                [upto[i], before[i], op.apply(from, items[i]), from, op.apply(after, items[i]), after, sum]
            }));
        }
        assert!(out.to_vec()? == expected, "{len} items in {shape:?}");
        Ok(())
    }

    fn blocks_scan<T: Arbitrary, R: Reducer<T>, const N: usize, const THREADS: usize>(
        op: R,
        streams: Vec<Stream>,
        launch: impl Fn(&Stream, Shape, T, &Buffer<T>, &mut Buffer<[T; 7]>) -> Result<()>,
    ) -> Result<()> {
        for stream in streams {
            let fits = |&shape: &Shape| THREADS == 0 || threads(shape) <= THREADS;
            for (k, shape) in SHAPES.into_iter().filter(fits).enumerate() {
                let tile = threads(shape) * N;
                let len = tile * 2 + tile.div_ceil(3);
                a_block_scans::<T, R, N>(&op, &stream, (shape, len, k as u64), &launch)?;
            }
        }
        Ok(())
    }

    macro_rules! scans {
        ($($name:ident: $t:ty, $r:ty, $n:literal, $threads:literal, $op:expr, $streams:expr;)*) => {$(
            #[test]
            fn $name() -> Result<()> {
                blocks_scan::<$t, $r, $n, $threads>($op, $streams, |stream, shape, initial, x, out| {
                    kernels::all_forms::<$t, $r, $n, $threads>::launch(stream, (2, shape), initial, x, out, $op)
                })
            }
        )*};
    }
    scans! {
        sanitize_blocks_scan_a_float_a_thread: f32, Add, 1, 0, Add, vec![stream()?];
        sanitize_blocks_scan_4_items_a_thread_in_order: u8, Last, 4, 0, Last, streams()?;
        blocks_scan_9_integers_a_thread: i32, Add, 9, 0, Add, vec![stream()?];
        blocks_scan_for_the_largest_of_2_doubles_a_thread: f64, Max, 2, 0, Max, vec![stream()?];
        blocks_scan_3_shorts_a_thread: u16, Add, 3, 0, Add, vec![stream()?];
        blocks_scan_for_the_smallest_of_8_halves_a_thread: f16, Min, 8, 0, Min, vec![stream()?];
        blocks_scan_a_long_a_thread: i64, Add, 1, 0, Add, vec![stream()?];
        blocks_scan_4_matrices_a_thread: Triangular, Compose, 4, 0, Compose, streams()?;
        blocks_scan_2_maps_of_16_bytes_a_thread: Map<u64>, Compose, 2, 0, Compose, vec![stream()?];
        blocks_scan_32_bytes_a_thread: [u64; 4], Each<Max>, 1, 0, Each(Max), vec![stream()?];
        sanitize_one_warp_scans_for_blocks_of_256: f32, Add, 1, 256, Add, vec![stream()?];
        one_warp_scans_in_order_for_blocks_of_1024: u8, Last, 4, 1024, Last, streams()?;
        one_warp_scans_9_integers_a_thread: i32, Add, 9, 512, Add, vec![stream()?];
        one_warp_scans_halves_for_blocks_of_160: f16, Min, 8, 160, Min, vec![stream()?];
        one_warp_scans_longs: i64, Add, 1, 256, Add, vec![stream()?];
        sanitize_one_warp_scans_matrices_in_order: Triangular, Compose, 4, 128, Compose, streams()?;
        one_warp_scans_32_bytes_a_thread: [u64; 4], Each<Max>, 1, 64, Each(Max), vec![stream()?];
    }

    /// These are the element types that no other test has, and two types whose order counts.
    #[test]
    fn blocks_of_any_shape_scan_elements_of_any_type() {
        macro_rules! check {
            ($($cases:literal: $t:ty, $r:ty, $n:literal, $threads:literal, $op:expr;)*) => {$(
                holds($cases, (any_shape(if $threads == 0 { 400 } else { $threads }), 0..2000usize, any::<u64>()), |case| {
                    a_block_scans::<$t, $r, $n>(&$op, &stream()?, case, |stream, shape, initial, x, out| {
                        kernels::all_forms::<$t, $r, $n, $threads>::launch(stream, (2, shape), initial, x, out, $op)
                    })
                });
            )*};
        }
        check! {
            16: u8, Last, 4, 0, Last;
            16: Triangular, Compose, 4, 0, Compose;
            6: i8, Add, 4, 0, Add;
            6: i16, Min, 2, 0, Min;
            6: u32, Max, 1, 0, Max;
            6: u64, Add, 2, 0, Add;
            6: bf16, Max, 8, 0, Max;
            6: bool, LogicalXor, 3, 0, LogicalXor;
            6: Complex<f32>, Add, 2, 0, Add;
            6: Complex<f64>, Add, 1, 0, Add;
            6: bf16, Max, 3, 320, Max;
            6: Complex<f64>, Add, 2, 320, Add;
        }
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

    #[test]
    fn a_block_larger_than_its_scans_storage_is_a_fault() -> Result<()> {
        let stream = stream()?;
        let mut out = stream.buffer_zeroed(96)?;
        let x = stream.buffer_from(&[1u32; 96])?;
        let launched = kernels::sums_of_64::launch(&stream, (1, 96), &x, &mut out);
        let error = launched.and_then(|()| stream.synchronize()).unwrap_err();
        assert!(error.to_string().contains("a size of 96; its limit is 64"), "{error}");
        Ok(())
    }

    /// Sums of −0 are −0, for any order of combination. The value before the first item is +0.
    #[test]
    fn sums_keep_a_negative_zero_sanitize() -> Result<()> {
        fn check<const THREADS: usize, Tag>(stream: &Stream, shape: (u32, u32, u32)) -> Result<()>
        where
            kernels::all_forms<f32, Add, 1, THREADS>: Instantiated<Tag>,
        {
            let x = stream.buffer_from(&vec![-0.0f32; threads(shape)])?;
            let mut out = stream.buffer_zeroed(threads(shape))?;
            kernels::all_forms::<f32, Add, 1, THREADS>::launch(stream, (1, shape), -0.0, &x, &mut out, Add)?;
            for (i, found) in out.to_vec()?.into_iter().enumerate() {
                // These are the inclusive scan, the exclusive scan, both from −0, both after the total, and the total.
                let before = if i == 0 { 0.0 } else { -0.0 };
                let expected = [-0.0, before, -0.0, -0.0, -0.0, -0.0, -0.0f32];
                assert_eq!(found.map(f32::to_bits), expected.map(f32::to_bits), "thread {i} of {shape:?}");
            }
            Ok(())
        }
        for stream in streams()? {
            for shape in SHAPES {
                check::<0, _>(&stream, shape)?;
                if threads(shape) <= 256 {
                    check::<256, _>(&stream, shape)?;
                }
            }
            // Rounds, and all that is nothing.
            let mut out = stream.buffer_from(&[[7.0f32; 4]; 100])?;
            kernels::zeros::launch(&stream, (1, 100), &stream.buffer_from(&[-0.0f32; 400])?, &mut out)?;
            for (i, found) in out.to_vec()?.into_iter().enumerate() {
                let before = if i % 32 % 5 == 0 { 0.0 } else { -0.0 };
                assert_eq!(found.map(f32::to_bits), [-0.0, before, 0.0, -0.0f32].map(f32::to_bits), "thread {i}");
            }
        }
        Ok(())
    }
}
