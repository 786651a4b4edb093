//! Collectives of a warp.

use super::{Compose, Last, Map, Triangular, Twelve};
use kernel_primitives::functor::LogicalXor;
use kernel_primitives::prelude::*;

/// Writes for each thread: its group's reduction, its inclusive and exclusive scan there, and the group's total.
#[kernel(instantiate(
    <f32, Add>, <u32, Max>, <i32, Add>, <u8, Last>, <i64, Min>, <f64, Add>, <f16, Max>, <u16, Add>, <Triangular, Compose>,
    <Map<u64>, Compose>, <[u64; 4], Each<Add>>, <i8, Min>, <i16, Max>, <u64, Add>, <bf16, Max>, <bool, LogicalXor>,
    <Complex<f32>, Add>, <Complex<f64>, Add>,
))]
pub fn groups<T: Element, R: Reducer<T> + KernelParam>(
    cx: Block,
    width: u32,
    x: Global<T>,
    mut out: GlobalMut<[T; 4]>,
    op: R,
) {
    for i in cx.items(out.len()) {
        let reduced = warp_group_reduce(cx, x[i], op, width);
        let inclusive = warp_group_inclusive_scan(cx, x[i], op, width);
        let (exclusive, total) = warp_group_exclusive_scan(cx, x[i], op, width);
        out.set(i, [reduced, inclusive, exclusive, total]);
    }
}

/// Writes for each thread: the warp's inclusive and exclusive scan, the exclusive scan from 3, and the total.
#[kernel(instantiate(<i32, Add>, <Triangular, Compose>))]
pub fn warps_scanned<T: Element, R: Reducer<T> + KernelParam>(
    cx: Block,
    initial: T,
    x: Global<T>,
    mut out: GlobalMut<[T; 4]>,
    op: R,
) {
    for i in cx.items(out.len()) {
        let (exclusive, total) = warp_exclusive_scan(cx, x[i], op);
        let (from, same_total) = warp_exclusive_scan_from(cx, x[i], initial, op);
        let inclusive = warp_inclusive_scan(cx, x[i], op);
        let _ = same_total;
        out.set(i, [inclusive, exclusive, from, total]);
    }
}

/// Writes the same with a width that the compiler knows.
#[kernel(instantiate(<1>, <2>, <7>, <16>, <32>))]
pub fn groups_of<const WIDTH: u32>(cx: Block, x: Global<f32>, mut out: GlobalMut<f32>) {
    for i in cx.items(out.len()) {
        out.set(i, warp_group_reduce(cx, x[i], Add, WIDTH));
    }
}

/// Writes for each thread: its segment's reduction by heads, and by tails.
#[kernel(instantiate(<u32, Add>, <u8, Last>, <Triangular, Compose>))]
pub fn segments<T: Element, R: Reducer<T> + KernelParam>(
    cx: Block,
    flags: Global<u8>,
    x: Global<T>,
    mut out: GlobalMut<[T; 2]>,
    op: R,
) {
    for i in cx.items(out.len()) {
        let flag = flags[i] != 0;
        out.set(i, [warp_reduce_by_heads(cx, x[i], flag, op), warp_reduce_by_tails(cx, x[i], flag, op)]);
    }
}

/// Writes the value of one lane.
#[kernel(instantiate(<u8>, <Twelve>, <[Twelve; 3]>, <bool>))]
pub fn broadcast<T: Element>(cx: Block, source: u32, x: Global<T>, mut out: GlobalMut<T>) {
    for i in cx.items(out.len()) {
        out.set(i, warp_broadcast(cx, x[i], source));
    }
}

/// Says whether each lane has one `delta` below it in its segment, of whose value of no bytes it asks.
#[kernel]
pub fn lanes_below(cx: Block, delta: u32, width: u32, mut out: GlobalMut<u32>) {
    for i in cx.items(out.len()) {
        let below = cx.try_shuffle_up(cx.warp_mask(), [0u32; 0], delta, width);
        out.set(i, below.is_some() as u32);
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod tests {
    use kernel_primitives::functor::{Add, LogicalXor, Max, Min};
    use kernel_primitives::prelude::Each;
    use kernel_primitives::{Buffer, Complex, Device, Reducer, Result, Stream, bf16, f16};
    use proptest::prelude::any;

    use crate::families::warp as kernels;
    use crate::families::{Compose, Last, Map, Triangular, Twelve};
    use crate::reference::{exclusive, inclusive, total, with_other_types};
    use crate::support::{Arbitrary, Random, holds, stream, streams, values};

    /// Widths of groups: those of CUB, and others.
    const WIDTHS: [u32; 10] = [1, 2, 3, 4, 7, 9, 16, 17, 31, 32];

    const BLOCKS: [u32; 6] = [1, 7, 32, 65, 96, 128];

    type Launch<'f, T> = &'f dyn Fn(&Stream, u32, u32, &Buffer<T>, &mut Buffer<[T; 4]>) -> Result<()>;

    fn groups_of_a_block_combine<T: Arbitrary, R: Reducer<T>>(
        op: &R,
        stream: &Stream,
        (block, width, seed): (u32, u32, u64),
        launch: Launch<'_, T>,
    ) -> Result<()> {
        let x: Vec<T> = values(block as usize * 2, seed);
        let mut out = stream.buffer_zeroed(x.len())?;
        launch(stream, block, width, &stream.buffer_from(&x)?, &mut out)?;
        let mut expected = Vec::new();
        for group in x.chunks(block as usize).flat_map(|b| b.chunks(32)).flat_map(|w| w.chunks(width as usize)) {
            let (sum, upto) = (total(group, op), inclusive(group, op));
            let before = exclusive(group, op.identity(), op);
            expected.extend((0..group.len()).map(|i| [sum, upto[i], before[i], sum]));
        }
        assert_eq!(out.to_vec()?, expected, "blocks of {block}, groups of {width}");
        Ok(())
    }

    fn groups_combine<T: Arbitrary, R: Reducer<T>>(op: R, streams: Vec<Stream>, launch: Launch<'_, T>) -> Result<()> {
        for stream in streams {
            for (k, block) in BLOCKS.into_iter().enumerate() {
                for width in WIDTHS {
                    groups_of_a_block_combine(&op, &stream, (block, width, k as u64), launch)?;
                }
            }
        }
        Ok(())
    }

    macro_rules! groups {
        ($($name:ident: $t:ty, $r:ty, $op:expr, $streams:expr;)*) => {$(
            #[test]
            fn $name() -> Result<()> {
                groups_combine::<$t, $r>($op, $streams, &|stream, block, width, x, out| {
                    kernels::groups::<$t, $r>::launch(stream, (1, block), width, x, out, $op)
                })
            }
        )*};
    }
    groups! {
        sanitize_groups_of_lanes_add_floats: f32, Add, Add, streams()?;
        groups_of_lanes_find_the_largest: u32, Max, Max, vec![stream()?];
        groups_of_lanes_add_integers: i32, Add, Add, vec![stream()?];
        groups_of_lanes_keep_their_order: u8, Last, Last, streams()?;
        groups_of_lanes_find_the_smallest: i64, Min, Min, vec![stream()?];
        groups_of_lanes_add_doubles: f64, Add, Add, vec![stream()?];
        groups_of_lanes_find_the_largest_half: f16, Max, Max, vec![stream()?];
        groups_of_lanes_add_shorts: u16, Add, Add, vec![stream()?];
        sanitize_groups_of_lanes_multiply_matrices: Triangular, Compose, Compose, vec![stream()?];
        groups_of_lanes_compose_maps_of_16_bytes: Map<u64>, Compose, Compose, vec![stream()?];
        groups_of_lanes_add_32_bytes: [u64; 4], Each<Add>, Each(Add), vec![stream()?];
    }

    #[test]
    fn groups_of_any_width_combine_elements_of_any_type() {
        macro_rules! check {
            ($($cases:literal: $t:ty, $op:ident;)*) => {$(
                holds($cases, (1..200u32, 1..=32u32, any::<u64>()), |case| {
                    groups_of_a_block_combine::<$t, $op>(&$op, &stream()?, case, &|stream, block, width, x, out| {
                        kernels::groups::<$t, $op>::launch(stream, (1, block), width, x, out, $op)
                    })
                });
            )*};
        }
        with_other_types!(check);
    }

    fn warps_scan<T: Arbitrary, R: Reducer<T>>(
        op: R,
        initial: T,
        launch: impl Fn(&Stream, u32, &Buffer<T>, &mut Buffer<[T; 4]>) -> Result<()>,
    ) -> Result<()> {
        for stream in streams()? {
            for block in BLOCKS {
                let x: Vec<T> = values(block as usize * 2, 3);
                let mut out = stream.buffer_zeroed(x.len())?;
                launch(&stream, block, &stream.buffer_from(&x)?, &mut out)?;
                let mut expected = Vec::new();
                for warp in x.chunks(block as usize).flat_map(|b| b.chunks(32)) {
                    let (upto, before) = (inclusive(warp, &op), exclusive(warp, op.identity(), &op));
                    let (from, sum) = (exclusive(warp, initial, &op), total(warp, &op));
                    expected.extend((0..warp.len()).map(|i| [upto[i], before[i], from[i], sum]));
                }
                assert_eq!(out.to_vec()?, expected, "blocks of {block}");
            }
        }
        Ok(())
    }

    #[test]
    fn sanitize_warps_scan_integers() -> Result<()> {
        warps_scan::<i32, _>(Add, 3, |stream, block, x, out| {
            kernels::warps_scanned::<i32, Add>::launch(stream, (1, block), 3, x, out, Add)
        })
    }

    #[test]
    fn warps_scan_matrices() -> Result<()> {
        let initial = Triangular { x: 5, y: 7, z: 11 };
        warps_scan::<Triangular, _>(Compose, initial, |stream, block, x, out| {
            kernels::warps_scanned::<Triangular, Compose>::launch(stream, (1, block), initial, x, out, Compose)
        })
    }

    #[test]
    fn widths_may_be_constants() -> Result<()> {
        let stream = stream()?;
        let x: Vec<f32> = values(70, 4);
        let input = stream.buffer_from(&x)?;
        macro_rules! check {
            ($($width:literal)*) => {$(
                let mut out = stream.buffer_zeroed(x.len())?;
                kernels::groups_of::<$width>::launch(&stream, (1, 70), &input, &mut out)?;
                let groups = x.chunks(32).flat_map(|warp| warp.chunks($width));
                let expected: Vec<f32> = groups.flat_map(|group| vec![total(group, &Add); group.len()]).collect();
                assert_eq!(out.to_vec()?, expected, "groups of {}", $width);
            )*};
        }
        check!(1 2 7 16 32);
        Ok(())
    }

    #[test]
    fn a_width_of_none_or_more_than_a_warp_is_a_fault() -> Result<()> {
        let stream = stream()?;
        let x = stream.buffer_from(&[1u32; 32])?;
        for width in [0, 33] {
            let mut out = stream.buffer_zeroed(32)?;
            let launched = kernels::groups::<u32, Max>::launch(&stream, (1, 32), width, &x, &mut out, Max);
            let error = launched.and_then(|()| stream.synchronize()).unwrap_err();
            assert!(error.to_string().contains(&format!("a size of {width}; its limit is 32")), "{error}");
        }
        Ok(())
    }

    fn segments_of_a_block_combine<T: Arbitrary, R: Reducer<T>>(
        op: &R,
        stream: &Stream,
        (block, every, seed): (u32, u64, u64),
        launch: impl Fn(&Stream, u32, &Buffer<u8>, &Buffer<T>, &mut Buffer<[T; 2]>) -> Result<()>,
    ) -> Result<()> {
        let x: Vec<T> = values(block as usize, seed);
        let mut random = Random::new(every ^ seed);
        let flags: Vec<u8> = x.iter().map(|_| (random.below(every) == 0) as u8).collect();
        let mut out = stream.buffer_zeroed(x.len())?;
        launch(stream, block, &stream.buffer_from(&flags)?, &stream.buffer_from(&x)?, &mut out)?;
        let (mut by_heads, mut by_tails) = (Vec::new(), Vec::new());
        for (warp, flags) in x.chunks(32).zip(flags.chunks(32)) {
            for (tails, results) in [(false, &mut by_heads), (true, &mut by_tails)] {
                let mut start = 0;
                for end in 1..=warp.len() {
                    let last = end == warp.len() || flags[if tails { end - 1 } else { end }] != 0;
                    if last {
                        results.extend(vec![total(&warp[start..end], op); end - start]);
                        start = end;
                    }
                }
            }
        }
        let expected: Vec<[T; 2]> = by_heads.into_iter().zip(by_tails).map(|(head, tail)| [head, tail]).collect();
        assert_eq!(out.to_vec()?, expected, "blocks of {block}, a flag in {every}");
        Ok(())
    }

    fn segments_combine<T: Arbitrary, R: Reducer<T>>(
        op: R,
        launch: impl Fn(&Stream, u32, &Buffer<u8>, &Buffer<T>, &mut Buffer<[T; 2]>) -> Result<()>,
    ) -> Result<()> {
        for stream in streams()? {
            for (block, every) in [(1, 1), (7, 2), (32, 1), (32, 3), (65, 40), (96, 9), (128, 1000)] {
                segments_of_a_block_combine(&op, &stream, (block, every, 5), &launch)?;
            }
        }
        holds(12, (1..200u32, 1..40u64, any::<u64>()), |case| {
            segments_of_a_block_combine(&op, &stream()?, case, &launch)
        });
        Ok(())
    }

    macro_rules! segments {
        ($($name:ident: $t:ty, $op:ident;)*) => {$(
            #[test]
            fn $name() -> Result<()> {
                segments_combine::<$t, _>($op, |stream, block, flags, x, out| {
                    kernels::segments::<$t, $op>::launch(stream, (1, block), flags, x, out, $op)
                })
            }
        )*};
    }
    segments! {
        sanitize_segments_of_a_warp_add: u32, Add;
        segments_of_a_warp_keep_their_order: u8, Last;
        segments_of_a_warp_multiply_matrices: Triangular, Compose;
    }

    #[test]
    fn a_lane_of_each_warp_is_broadcast() -> Result<()> {
        macro_rules! check {
            ($stream:ident, $source:ident, $($t:ty),*) => {$(
                let x: Vec<$t> = values(64, 6);
                let mut out = $stream.buffer_zeroed(64)?;
                kernels::broadcast::<$t>::launch(&$stream, (1, 64), $source, &$stream.buffer_from(&x)?, &mut out)?;
                let expected: Vec<$t> = (0..64).map(|i| x[i / 32 * 32 + $source as usize]).collect();
                assert_eq!(out.to_vec()?, expected);
            )*};
        }
        for stream in streams()? {
            for source in [0, 5, 31] {
                check!(stream, source, u8, Twelve, [Twelve; 3], bool);
            }
        }
        Ok(())
    }

    #[test]
    fn values_of_no_bytes_come_from_lanes_below_in_the_segment() -> Result<()> {
        for stream in streams()? {
            for (delta, width) in [(0, 32), (1, 32), (31, 32), (1, 8), (7, 8), (1, 1)] {
                let mut out = stream.buffer_zeroed::<u32>(64)?;
                kernels::lanes_below::launch(&stream, (1, 64), delta, width, &mut out)?;
                let expected: Vec<_> = (0..64).map(|lane| (lane % width >= delta) as u32).collect();
                assert_eq!(out.to_vec()?, expected, "{delta} below of {width}");
            }
        }
        Ok(())
    }

    #[test]
    fn a_broadcast_from_a_lane_that_no_warp_has_is_a_fault_in_the_emulator() -> Result<()> {
        let stream = Device::emulator().stream()?;
        let x = stream.buffer_from(&[7u8; 32])?;
        for source in [32, 33, u32::MAX] {
            let mut out = stream.buffer_zeroed::<u8>(32)?;
            let launched = kernels::broadcast::<u8>::launch(&stream, (1, 32), source, &x, &mut out);
            let error = launched.and_then(|()| stream.synchronize()).unwrap_err();
            assert!(error.to_string().contains(&format!("a size of {source}; its limit is 31")), "{error}");
        }
        Ok(())
    }
}
