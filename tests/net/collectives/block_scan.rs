//! Scans of a block.

use kernel_primitives::block::{
    block_exclusive_scan_rounds, block_exclusive_scan_rounds_after, block_inclusive_scan_rounds,
};
use kernel_primitives::prelude::*;

use crate::kernels::{Compose, Latest, Map, Three};

/// Of each item: the scans, from a value, after the total, and the total; and of other arrangements the striped one's scan and
/// those in rounds.
#[kernel(max_threads(1024), instantiate(<f32, Add, 0>, <Three, Latest, 0>, <Map<u64>, Compose, 256>))]
pub fn block_scans<T: Element, R: Reducer<T> + KernelParam, const THREADS: usize>(
    cx: Block,
    initial: T,
    x: Global<T>,
    mut out: GlobalMut<[T; 11], Tiles<4>>,
    op: R,
    mut shared: Shared<ScanStorage<T, THREADS>>,
    mut striped: Shared<ScanStorage<[T; 4]>>,
    mut rounds: Shared<ScanStorage<T>>,
) {
    let (rank, threads) = (cx.thread_rank() as usize, cx.block_threads() as usize);
    for tile in cx.tiles::<4>(out.len()) {
        let from = x.tile(tile);
        let mut items = init::<T, 4>(T::ZERO);
        read_data(cx, &mut items, from);
        let (inclusive, total) = block_inclusive_scan(cx, &mut shared, &items, op);
        let (exclusive, _) = block_exclusive_scan(cx, &mut shared, &items, op);
        let (inclusive_from, _) = block_inclusive_scan_from(cx, &mut shared, &items, initial, op);
        let (exclusive_from, _) = block_exclusive_scan_from(cx, &mut shared, &items, initial, op);
        let inclusive_after = block_inclusive_scan_after(cx, &mut shared, &items, op, |total| total);
        let exclusive_after = block_exclusive_scan_after(cx, &mut shared, &items, op, |total| total);
        let at = |place: usize| from.get(place).unwrap_or(T::ZERO);
        let in_stripes = cumsum(cx, &mut striped, core::array::from_fn(|i| at(i * threads + rank)), op);
        // Two rounds of two items.
        let (warp, lanes) = (rank - cx.lane() as usize, cx.warp_lanes() as usize);
        let place = |round: usize, item: usize| warp * 4 + (round * lanes + cx.lane() as usize) * 2 + item;
        let own: [[T; 2]; 2] = core::array::from_fn(|r| core::array::from_fn(|i| at(place(r, i))));
        let (inclusive_rounds, _) = block_inclusive_scan_rounds(cx, &mut rounds, &own, initial, op);
        let (exclusive_rounds, _) = block_exclusive_scan_rounds(cx, &mut rounds, &own, initial, op);
        let rounds_after = block_exclusive_scan_rounds_after(cx, &mut rounds, &own, op, |total| total);
        let results: [[T; 11]; 4] = core::array::from_fn(|i| {
            [
                inclusive[i],
                exclusive[i],
                inclusive_from[i],
                exclusive_from[i],
                inclusive_after[i],
                exclusive_after[i],
                total,
                in_stripes[i],
                inclusive_rounds[i / 2][i % 2],
                exclusive_rounds[i / 2][i % 2],
                rounds_after[i / 2][i % 2],
            ]
        });
        write_data(cx, out.tile(tile), &results);
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub use host::subjects;

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    use kernel_primitives::functor::{Add, BinaryFn, Reducer};

    use super::block_scans;
    use crate::case::Lengths;
    use crate::data::{items, small};
    use crate::items::Item;
    use crate::kernels::{Compose, Latest, Map, Three};
    use crate::reference::{exclusive, inclusive};
    use crate::shape::{Shape, blocks, len, striped, total};
    use crate::subject::{Subject, equal, subject};

    const COVERS: &[&str] = &[
        "block_inclusive_scan",
        "block_exclusive_scan",
        "block_inclusive_scan_from",
        "block_exclusive_scan_from",
        "block_inclusive_scan_after",
        "block_exclusive_scan_after",
        "cumsum",
        "block_inclusive_scan_rounds",
        "block_exclusive_scan_rounds",
        "block_exclusive_scan_rounds_after",
    ];

    /// Returns, for each register of each thread, the number of its item in the tile, in two rounds of two items.
    fn in_rounds(threads: usize) -> Vec<usize> {
        let of_thread = |thread: usize| {
            let (warp, lane) = (thread / 32 * 32, thread % 32);
            let lanes = (threads - warp).min(32);
            (0..4).map(move |i| warp * 4 + (i / 2 * lanes + lane) * 2 + i % 2)
        };
        (0..threads).flat_map(of_thread).collect()
    }

    /// Returns the values that a tile's items get. Items that a partial tile lacks are zeros.
    fn forms<T: Item>(
        items: &[T],
        threads: usize,
        (initial, identity): (T, T),
        op: impl Fn(T, T) -> T + Copy,
    ) -> Vec<[T; 11]> {
        let mut x = items.to_vec();
        x.resize(threads * 4, T::ZERO);
        let sum = total(&x, op).expect("no block is empty");
        let after = |before: T| {
            let before = exclusive(&x, before, op);
            (before.iter().zip(&x).map(|(&before, &x)| op(before, x)).collect::<Vec<_>>(), before)
        };
        let (upto, before) = (inclusive(&x, op), exclusive(&x, identity, op));
        let ((upto_from, before_from), (upto_after, before_after)) = (after(initial), after(sum));
        let (stripes, rounds) = (striped(threads, 4), in_rounds(threads));
        let results = (0..items.len()).map(|i| {
            let (stripe, round) = (stripes[i], rounds[i]);
            [
                upto[i],
                before[i],
                upto_from[i],
                before_from[i],
                upto_after[i],
                before_after[i],
                sum,
                upto[stripe],
                upto_from[round],
                before_from[round],
                before_after[round],
            ]
        });
        results.collect()
    }

    /// Returns the most threads of a block.
    const fn most(threads: usize) -> usize {
        if threads == 0 { 1024 } else { threads }
    }

    pub fn subjects() -> Vec<Subject> {
        let mut all = Vec::new();
        macro_rules! forms_of {
            ($($name:literal, $t:ty, $op:ident, $threads:literal, $plain:expr, $items:ident;)*) => {$(
                all.push(subject(
                    COVERS,
                    $name,
                    Lengths::near(&[128, 512, 1024]).most(5000),
                    |case| ($items::<$t>(case, 0, len(case, 4 * Shape::of(case, most($threads)).threads())),),
                    |case, (x,)| {
                        let threads = Shape::of(case, most($threads)).threads();
                        let with = ($items::<$t>(&case.fixed(), 9, 1)[0], Reducer::<$t>::identity(&$op));
                        (equal(x.chunks(threads * 4).flat_map(|tile| forms(tile, threads, with, $plain)).collect()),)
                    },
                    |case, place, (x,), (out,)| {
                        let (shape, initial) = (Shape::of(case, most($threads)), $items::<$t>(&case.fixed(), 9, 1)[0]);
                        block_scans::<$t, $op, $threads>::launch(
                            place.stream, shape.dims(blocks(case)), initial, x.get(), out.exact(), $op,
                        )
                    },
                ));
            )*};
        }
        forms_of! {
            "f32, Add", f32, Add, 0, |a, b| a + b, small;
            "Three, Latest", Three, Latest, 0, |a, b| Latest.apply(a, b), items;
            "Map<u64>, Compose, 256", Map<u64>, Compose, 256, |a, b| Compose.apply(a, b), items;
        }
        all
    }
}
