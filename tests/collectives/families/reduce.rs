//! Reductions of a block.

use super::{Compose, Last, Map, Triangular};
use kernel_primitives::functor::LogicalXor;
use kernel_primitives::prelude::*;
use kernel_primitives::view::Phases;

/// Writes for each thread: the block's reduction, the first thread's (the value itself in other threads), its group's and its column's.
#[kernel(max_threads(1024), instantiate(
    <f32, Add>, <u8, Last>, <i32, Min>, <f64, Max>, <u16, Add>, <f16, Min>, <i64, Add>, <Triangular, Compose>,
    <Map<u64>, Compose>, <[u64; 4], Each<Max>>, <i8, Min>, <i16, Max>, <u64, Add>, <bf16, Max>, <bool, LogicalXor>,
    <Complex<f32>, Add>, <Complex<f64>, Add>,
))]
pub fn all_forms<T: Element, R: Reducer<T> + KernelParam>(
    cx: Block,
    width: u32,
    x: Global<T>,
    mut out: GlobalMut<[T; 4]>,
    op: R,
    mut shared: Shared<ReduceStorage<T>>,
    mut columns: Shared<ColumnStorage<T>>,
) {
    for i in cx.items(out.len()) {
        let first = block_reduce_to_first(cx, &mut shared, x[i], op).unwrap_or(x[i]);
        let block = block_reduce(cx, &mut shared, x[i], op);
        let group = block_group_reduce(cx, &mut shared, x[i], op, width);
        let column = block_y_reduce(cx, &mut columns, x[i], op);
        out.set(i, [block, first, group, column]);
    }
}

/// Writes only the reductions of groups of `width` threads.
#[kernel(max_threads(1024), instantiate(<i32, Add>, <f64, Max>, <u8, Last>, <[u64; 4], Each<Max>>))]
pub fn in_groups<T: Element, R: Reducer<T> + KernelParam>(
    cx: Block,
    width: u32,
    x: Global<T>,
    mut out: GlobalMut<T>,
    op: R,
    mut shared: Shared<ReduceStorage<T>>,
) {
    for i in cx.items(out.len()) {
        out.set(i, block_group_reduce(cx, &mut shared, x[i], op, width));
    }
}

/// Writes the block's reduction and the first thread's (the value itself in other threads). One warp computes it for all, twice, and beside
/// a scan in the same memory.
#[kernel(max_threads(THREADS), instantiate(
    <f32, Add, 256>, <u8, Last, 1024>, <i32, Min, 512>, <f64, Max, 128>, <f16, Min, 160>, <i64, Add, 256>,
    <Triangular, Compose, 100>, <[u64; 4], Each<Max>, 64>,
))]
pub fn by_one_warp<T: Element, R: Reducer<T> + KernelParam, const THREADS: usize>(
    cx: Block,
    x: Global<T>,
    mut out: GlobalMut<[T; 5]>,
    op: R,
    mut shared: Shared<Phases<(ReduceStorage<T, THREADS>, ScanStorage<T, THREADS>)>>,
) {
    for i in cx.items(out.len()) {
        let block = block_reduce(cx, shared.phase::<ReduceStorage<T, THREADS>>(), x[i], op);
        let (_, total) = block_inclusive_scan(cx, shared.phase::<ScanStorage<T, THREADS>>(), &[x[i]], op);
        let first = block_reduce_to_first(cx, shared.phase::<ReduceStorage<T, THREADS>>(), x[i], op).unwrap_or(x[i]);
        let second = block_reduce_to_first(cx, shared.phase::<ReduceStorage<T, THREADS>>(), x[i], op).unwrap_or(x[i]);
        let again = block_reduce(cx, shared.phase::<ReduceStorage<T, THREADS>>(), x[i], op);
        out.set(i, [block, total, first, second, again]);
    }
}

/// Writes the reduction of the first `valid` items of each block's tile.
#[kernel(instantiate(<f32, Add, 1>, <u8, Last, 4>, <Triangular, Compose, 9>, <i32, Max, 11>))]
pub fn partial_tiles<T: Element, R: Reducer<T> + KernelParam, const N: usize>(
    cx: Block,
    valid: u64,
    x: Global<T>,
    mut out: GlobalMut<T, PerBlock>,
    op: R,
    mut shared: Shared<ReduceStorage<T>>,
) {
    let tile = cx.block_threads() as usize * N;
    let start = cx.block_rank() * tile;
    let mut items = init::<T, N>(T::ZERO);
    read_data(cx, &mut items, x.slice(start..start + tile));
    let total = block_reduce_partial(cx, &mut shared, &items, valid as usize, op);
    out.store(total);
}

/// Reduces several items for each thread: along `x` and along `y`, each item by itself.
#[kernel(instantiate(<u32, Add, 2>, <f16, Max, 3>))]
pub fn item_by_item<T: Element, R: Reducer<T> + KernelParam, const N: usize>(
    cx: Block,
    x: Global<[T; N]>,
    mut along_x: GlobalMut<[T; N]>,
    mut along_y: GlobalMut<[T; N]>,
    op: R,
    mut shared: Shared<ReduceStorage<[T; N]>>,
    mut columns: Shared<ColumnStorage<[T; N]>>,
) {
    for i in cx.items(along_x.len()) {
        along_x.set(i, block_x_reduce(cx, &mut shared, x[i], Each(op)));
        along_y.set(i, block_y_reduce(cx, &mut columns, x[i], Each(op)));
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod tests {
    use kernel_primitives::functor::{Add, LogicalXor, Max, Min};
    use kernel_primitives::prelude::Each;
    use kernel_primitives::{Buffer, Complex, Reducer, Result, Stream, bf16, f16};
    use proptest::prelude::any;

    use crate::families::reduce as kernels;
    use crate::families::{Compose, Last, Map, Triangular};
    use crate::reference::{SHAPES, columns, total, with_other_types};
    use crate::support::{Arbitrary, any_shape, holds, stream, streams, threads, values};

    type Shape = (u32, u32, u32);

    fn a_block_reduces<T: Arbitrary, R: Reducer<T>>(
        op: &R,
        stream: &Stream,
        (shape, width, seed): (Shape, u32, u64),
        launch: impl Fn(&Stream, Shape, u32, &Buffer<T>, &mut Buffer<[T; 4]>) -> Result<()>,
    ) -> Result<()> {
        let block = threads(shape);
        let x: Vec<T> = values(block * 2, seed);
        let mut out = stream.buffer_zeroed(x.len())?;
        launch(stream, shape, width, &stream.buffer_from(&x)?, &mut out)?;
        let mut expected = Vec::new();
        for block in x.chunks(block) {
            let (sum, columns) = (total(block, op), columns(block, shape, op));
            expected.extend((0..block.len()).map(|i| {
                let group = block.chunks(width as usize).nth(i / width as usize).unwrap();
                [sum, if i == 0 { sum } else { block[i] }, total(group, op), columns[i]]
            }));
        }
        assert_eq!(out.to_vec()?, expected, "{shape:?}, groups of {width}");
        Ok(())
    }

    fn blocks_reduce<T: Arbitrary, R: Reducer<T>>(
        op: R,
        streams: Vec<Stream>,
        launch: impl Fn(&Stream, Shape, u32, &Buffer<T>, &mut Buffer<[T; 4]>) -> Result<()>,
    ) -> Result<()> {
        for stream in streams {
            for (k, shape) in SHAPES.into_iter().enumerate() {
                // Groups have whole warps, parts of warps, threads of several warps, one thread, or more threads than there are.
                let width = [64, 16, 50, 1, 2000, 96, 33, 8][k % 8];
                a_block_reduces(&op, &stream, (shape, width, k as u64), &launch)?;
            }
        }
        Ok(())
    }

    macro_rules! blocks {
        ($($name:ident: $t:ty, $r:ty, $op:expr, $streams:expr;)*) => {$(
            #[test]
            fn $name() -> Result<()> {
                blocks_reduce::<$t, $r>($op, $streams, |stream, shape, width, x, out| {
                    kernels::all_forms::<$t, $r>::launch(stream, (1, shape), width, x, out, $op)
                })
            }
        )*};
    }
    blocks! {
        sanitize_blocks_groups_and_columns_add: f32, Add, Add, vec![stream()?];
        blocks_groups_and_columns_keep_their_order: u8, Last, Last, streams()?;
        blocks_groups_and_columns_find_the_smallest: i32, Min, Min, vec![stream()?];
        blocks_groups_and_columns_find_the_largest_double: f64, Max, Max, vec![stream()?];
        blocks_groups_and_columns_add_shorts: u16, Add, Add, vec![stream()?];
        blocks_groups_and_columns_find_the_smallest_half: f16, Min, Min, vec![stream()?];
        blocks_groups_and_columns_add_longs: i64, Add, Add, vec![stream()?];
        sanitize_blocks_groups_and_columns_multiply_matrices: Triangular, Compose, Compose, streams()?;
        blocks_groups_and_columns_compose_maps: Map<u64>, Compose, Compose, vec![stream()?];
        blocks_groups_and_columns_of_32_bytes: [u64; 4], Each<Max>, Each(Max), vec![stream()?];
    }

    fn one_warp_reduces<T: Arbitrary, R: Reducer<T>, const THREADS: usize>(
        op: R,
        launch: impl Fn(&Stream, Shape, &Buffer<T>, &mut Buffer<[T; 5]>) -> Result<()>,
    ) -> Result<()> {
        for stream in streams()? {
            for (k, shape) in SHAPES.into_iter().filter(|&shape| threads(shape) <= THREADS).enumerate() {
                let block = threads(shape);
                let x: Vec<T> = values(block * 4, k as u64);
                let mut out = stream.buffer_zeroed(x.len())?;
                launch(&stream, shape, &stream.buffer_from(&x)?, &mut out)?;
                let mut expected = Vec::new();
                for block in x.chunks(block) {
                    let sum = total(block, &op);
                    expected.extend((0..block.len()).map(|i| {
                        let first = if i == 0 { sum } else { block[i] };
                        [sum, sum, first, first, sum]
                    }));
                }
                assert_eq!(out.to_vec()?, expected, "{shape:?}");
            }
        }
        Ok(())
    }

    macro_rules! one_warp {
        ($($name:ident: $t:ty, $r:ty, $op:expr, $threads:literal;)*) => {$(
            #[test]
            fn $name() -> Result<()> {
                one_warp_reduces::<$t, $r, $threads>($op, |stream, shape, x, out| {
                    kernels::by_one_warp::<$t, $r, $threads>::launch(stream, (2, shape), x, out, $op)
                })
            }
        )*};
    }
    one_warp! {
        sanitize_one_warp_adds_for_blocks_of_256: f32, Add, Add, 256;
        one_warp_keeps_the_order_of_blocks_of_1024: u8, Last, Last, 1024;
        one_warp_finds_the_smallest_of_512: i32, Min, Min, 512;
        one_warp_finds_the_largest_double: f64, Max, Max, 128;
        one_warp_finds_the_smallest_half_of_160: f16, Min, Min, 160;
        one_warp_adds_longs: i64, Add, Add, 256;
        sanitize_one_warp_multiplies_matrices_of_100: Triangular, Compose, Compose, 100;
        one_warp_reduces_32_bytes_a_thread: [u64; 4], Each<Max>, Each(Max), 64;
    }

    #[test]
    fn blocks_of_any_shape_reduce_elements_of_any_type() {
        macro_rules! check {
            ($($cases:literal: $t:ty, $op:ident;)*) => {$(
                holds($cases, (any_shape(400), 1..500u32, any::<u64>()), |case| {
                    a_block_reduces::<$t, $op>(&$op, &stream()?, case, |stream, shape, width, x, out| {
                        kernels::all_forms::<$t, $op>::launch(stream, (1, shape), width, x, out, $op)
                    })
                });
            )*};
        }
        with_other_types!(check);
    }

    fn tiles_reduce<T: Arbitrary, R: Reducer<T>, const N: usize>(
        op: R,
        launch: impl Fn(&Stream, Shape, u64, &Buffer<T>, &mut Buffer<T>) -> Result<()>,
    ) -> Result<()> {
        let check = |stream: &Stream, shape, valid: usize, seed| -> Result<()> {
            let tile = threads(shape) * N;
            let x: Vec<T> = values(tile * 2, seed);
            let mut out = stream.buffer_zeroed(2)?;
            let launched = launch(stream, shape, valid as u64, &stream.buffer_from(&x)?, &mut out);
            if valid > tile && !stream.device().is_gpu() {
                let error = launched.unwrap_err().to_string();
                assert!(error.contains(&format!("a size of {valid}; its limit is {tile}")), "{error}");
                return Ok(());
            }
            launched?;
            let expected: Vec<T> = x.chunks(tile).map(|tile| total(&tile[..valid.min(tile.len())], &op)).collect();
            assert_eq!(out.to_vec()?, expected, "{shape:?}, {valid} items");
            Ok(())
        };
        for stream in streams()? {
            for (k, shape) in SHAPES.into_iter().filter(|&shape| threads(shape) < 1024).enumerate() {
                let tile = threads(shape) * N;
                check(&stream, shape, [0, 1, tile / 2, tile - 1, tile, tile + 5][k % 6], k as u64)?;
            }
        }
        holds(12, (any_shape(200), 0..200 * N, any::<u64>()), |(shape, valid, seed)| {
            check(&stream()?, shape, valid, seed)
        });
        Ok(())
    }

    macro_rules! tiles {
        ($($name:ident: $t:ty, $op:ident, $n:literal;)*) => {$(
            #[test]
            fn $name() -> Result<()> {
                tiles_reduce::<$t, _, $n>($op, |stream, shape, valid, x, out| {
                    kernels::partial_tiles::<$t, $op, $n>::launch(stream, (2, shape), valid, x, out, $op)
                })
            }
        )*};
    }
    tiles! {
        sanitize_partial_tiles_add: f32, Add, 1;
        partial_tiles_of_4_keep_their_order: u8, Last, 4;
        partial_tiles_of_9_multiply_matrices: Triangular, Compose, 9;
        partial_tiles_of_11_find_the_largest: i32, Max, 11;
    }

    #[test]
    fn arrays_reduce_item_by_item() -> Result<()> {
        macro_rules! check {
            ($stream:ident, $shape:ident, $t:ty, $op:ident, $n:literal) => {
                let x: Vec<[$t; $n]> = values(threads($shape), 1);
                let (mut along_x, mut along_y) = ($stream.buffer_zeroed(x.len())?, $stream.buffer_zeroed(x.len())?);
                let input = $stream.buffer_from(&x)?;
                let launch = kernels::item_by_item::<$t, $op, $n>::launch;
                launch(&$stream, (1, $shape), &input, &mut along_x, &mut along_y, $op)?;
                let rows = x.chunks($shape.0 as usize);
                let rows: Vec<_> = rows.flat_map(|row| vec![total(row, &Each($op)); row.len()]).collect();
                assert_eq!(along_x.to_vec()?, rows, "{:?}", $shape);
                assert_eq!(along_y.to_vec()?, columns(&x, $shape, &Each($op)), "{:?}", $shape);
            };
        }
        let stream = stream()?;
        for shape in SHAPES.into_iter().filter(|&shape| threads(shape) <= 512) {
            check!(stream, shape, u32, Add, 2);
            check!(stream, shape, f16, Max, 3);
        }
        Ok(())
    }

    /// There are groups of every number of warps, in blocks of every number of warps. The last warp is whole or not.
    #[test]
    fn the_last_group_may_have_any_number_of_warps() -> Result<()> {
        let stream = stream()?;
        macro_rules! check {
            ($threads:ident, $width:ident: $($t:ty, $r:ty, $op:expr;)*) => {$({
                let x: Vec<$t> = values($threads, $width as u64);
                let mut out = stream.buffer_zeroed($threads)?;
                let input = stream.buffer_from(&x)?;
                kernels::in_groups::<$t, $r>::launch(&stream, (1, $threads as u32), $width as u32, &input, &mut out, $op)?;
                let groups = x.chunks($width).flat_map(|group| vec![total(group, &$op); group.len()]);
                assert_eq!(out.to_vec()?, groups.collect::<Vec<_>>(), "groups of {} in {}", $width, $threads);
            })*};
        }
        for warps in 1..=32 {
            for of_group in 1..=warps {
                let (threads, width) = (warps * 32 - if of_group % 3 == 2 { 7 } else { 0 }, of_group * 32);
                check!(threads, width: i32, Add, Add;);
                // These types have other alignments.
                if warps % of_group == 4 || warps % of_group == 8 {
                    check!(threads, width: f64, Max, Max; u8, Last, Last; [u64; 4], Each<Max>, Each(Max););
                }
            }
        }
        Ok(())
    }

    #[test]
    fn groups_of_no_threads_are_a_fault() -> Result<()> {
        let stream = stream()?;
        let mut out = stream.buffer_zeroed(32)?;
        let x = stream.buffer_from(&[1.0f32; 32])?;
        let launched = kernels::all_forms::<f32, Add>::launch(&stream, (1, 32), 0, &x, &mut out, Add);
        let error = launched.and_then(|()| stream.synchronize()).unwrap_err();
        assert!(error.to_string().contains("a size of 0; its limit is 32"), "{error}");
        Ok(())
    }
}
