//! Exchanges between arrangements, and loads and stores in them.

use kernel_primitives::prelude::*;

use crate::kernels::Three;

/// Writes, for each item, its place in the threads: striped and back, warp-striped and back, scattered to blocked and striped by rank, and
/// loaded and stored in both arrangements.
#[kernel(max_threads(THREADS), instantiate(
    <u8, 65, 16>, <f32, 128, 4>, <Three, 33, 5>, <f64, 1, 3>, <u8, 1024, 1>
))]
pub fn exchanged<T: Element, const THREADS: usize, const ITEMS: usize>(
    cx: Block,
    x: Global<T>,
    ranks: Global<u32>,
    mut out: GlobalMut<[T; 8], Tiles<ITEMS>>,
    mut striped_out: GlobalMut<T, Striped<ITEMS>>,
    mut warp_striped_out: GlobalMut<T, WarpStriped<ITEMS>>,
    mut shared: Shared<ExchangeStorage<T, THREADS, ITEMS>>,
) {
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let mut items = init::<T, ITEMS>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        let mut places = init::<u32, ITEMS>(0);
        read_data(cx, &mut places, ranks.tile(tile));
        let striped = blocked_to_striped(cx, &mut shared, &items);
        let from_striped = striped_to_blocked(cx, &mut shared, &striped);
        let warp_striped = blocked_to_warp_striped(cx, &mut shared, &items);
        let from_warp_striped = warp_striped_to_blocked(cx, &mut shared, &warp_striped);
        let blocked = scatter_to_blocked(cx, &mut shared, &items, &places);
        let scattered = scatter_to_striped(cx, &mut shared, &items, &places);
        let (mut loaded, mut warp_loaded) = (init::<T, ITEMS>(T::ZERO), init::<T, ITEMS>(T::ZERO));
        load_striped(cx, &mut loaded, x.tile(tile));
        load_warp_striped(cx, &mut warp_loaded, x.tile(tile));
        store_striped(cx, striped_out.tile(tile), &loaded);
        store_striped(cx, warp_striped_out.tile(tile), &warp_loaded);
        let results: [[T; 8]; ITEMS] = core::array::from_fn(|i| {
            [
                striped[i],
                from_striped[i],
                warp_striped[i],
                from_warp_striped[i],
                blocked[i],
                scattered[i],
                loaded[i],
                warp_loaded[i],
            ]
        });
        write_data(cx, out.tile(tile), &results);
    }
}

/// Writes each tile's marked items before the items that were in their places. Then it writes the values that every thread finds in its own
/// places.
#[kernel(max_threads(1024), equal_len(x, keep, out, again), instantiate(<u8, 16>, <f64, 1>, <i32, 4>, <Three, 3>))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn compacted<T: Element, const N: usize>(
    cx: Block,
    x: Global<T>,
    keep: Global<bool>,
    mut out: GlobalMut<T, Tiles<N>>,
    mut again: GlobalMut<T, Tiles<N>>,
    counts: GlobalMut<u32, Atomic>,
    mut shared: Shared<ScanStorage<u32>>,
) {
    for tile in cx.tiles::<N>(x.len()) {
        let (mut items, mut marks) = (init::<T, N>(T::ZERO), [false; N]);
        read_data(cx, &mut items, x.tile(tile));
        read_data(cx, &mut marks, keep.tile(tile));
        write_data(cx, out.tile(tile), &items);
        let kept = block_compact(cx, &mut shared, &items, &marks, out.tile(tile));
        let mut found = init::<T, N>(T::ZERO);
        out.tile(tile).read(&mut found);
        write_data(cx, again.tile(tile), &found);
        if cx.thread_rank() == 0 {
            counts.at(tile.start() / (N * cx.block_threads() as usize)).store(kept);
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub use host::subjects;

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    use super::{compacted, exchanged};
    use crate::case::{Case, Lengths};
    use crate::data::{items, shuffled};
    use crate::items::Item;
    use crate::kernels::Three;
    use crate::shape::{Shape, blocks, len as length, striped};
    use crate::subject::{Subject, exact, subject};

    const COVERS: &[&str] = &[
        "blocked_to_striped",
        "striped_to_blocked",
        "blocked_to_warp_striped",
        "warp_striped_to_blocked",
        "scatter_to_blocked",
        "scatter_to_striped",
        "load_striped",
        "load_warp_striped",
        "store_striped",
    ];

    /// Returns, for each item of each thread, its number in the tile, in the warp-striped arrangement.
    pub fn warp_striped(threads: usize, items: usize) -> Vec<usize> {
        let of_thread = |thread: usize| {
            let (warp, lane) = (thread / 32 * 32, thread % 32);
            let lanes = (threads - warp).min(32);
            (0..items).map(move |i| warp * items + i * lanes + lane)
        };
        (0..threads).flat_map(of_thread).collect()
    }

    /// Returns the length of whole tiles, because a scatter has a rank for each item.
    fn len(case: &Case, tile: usize) -> usize {
        case.len.div_ceil(tile).min(3) * tile
    }

    /// Returns the ranks of each tile's items.
    fn ranks(case: &Case, tile: usize) -> Vec<u32> {
        let tiles = 0..len(case, tile) / tile;
        tiles.flat_map(|n| shuffled(case, 5 + n as u64, tile)).map(|rank| rank as u32).collect()
    }

    fn exchanges<T: Item>(x: &[T], ranks: &[u32], (threads, items): (usize, usize)) -> Vec<[T; 8]> {
        let (stripes, warp_stripes) = (striped(threads, items), warp_striped(threads, items));
        let mut scattered = x.to_vec();
        ranks.iter().zip(x).for_each(|(&rank, &x)| scattered[rank as usize] = x);
        let results = (0..x.len()).map(|i| {
            let (stripe, warp_stripe) = (stripes[i], warp_stripes[i]);
            [x[stripe], x[i], x[warp_stripe], x[i], scattered[i], scattered[stripe], x[stripe], x[warp_stripe]]
        });
        results.collect()
    }

    /// Returns each tile of `x` with its marked items first. The places after these keep their items. Also returns the number of marked
    /// items of each tile.
    fn compact<T: Item>(x: &[T], keep: &[bool], tile: usize) -> (Vec<T>, Vec<u32>) {
        let (mut out, mut counts) = (Vec::new(), Vec::new());
        for (x, keep) in x.chunks(tile).zip(keep.chunks(tile)) {
            let kept: Vec<T> = x.iter().zip(keep).filter(|(_, keep)| **keep).map(|(&x, _)| x).collect();
            counts.push(kept.len() as u32);
            out.extend(kept.iter().chain(&x[kept.len()..]));
        }
        (out, counts)
    }

    pub fn subjects() -> Vec<Subject> {
        let mut all = Vec::new();
        macro_rules! compactions_of {
            ($($name:literal, $t:ty, $items:literal;)*) => {$(
                all.push(subject(
                    &["block_compact"],
                    $name,
                    Lengths::near(&[128 * $items]).most(1000 * $items),
                    |case| {
                        let len = length(case, Shape::of(case, 1024).threads() * $items);
                        let keep = shuffled(case, 1, len).into_iter().map(|n| n % 3 != 0).collect();
                        (items::<$t>(case, 0, len), keep)
                    },
                    |case, (x, keep): &(Vec<$t>, Vec<bool>)| {
                        let (out, counts) = compact(x, keep, Shape::of(case, 1024).threads() * $items);
                        (exact(out.clone()), exact(out), exact(counts))
                    },
                    |case, place, (x, keep), (out, again, counts)| {
                        compacted::<$t, $items>::launch(
                            place.stream, Shape::of(case, 1024).dims(blocks(case)), x.get(), keep.get(), out.exact(),
                            again.exact(), counts.exact(),
                        )
                    },
                ));
            )*};
        }
        compactions_of! {
            "u8, 16", u8, 16;
            "f64, 1", f64, 1;
            "i32, 4", i32, 4;
            "Three, 3", Three, 3;
        }
        macro_rules! exchanges_of {
            ($($name:literal, $t:ty, $threads:literal, $items:literal;)*) => {$(
                all.push(subject(
                    COVERS,
                    $name,
                    Lengths::near(&[$threads * $items]).most(3 * $threads * $items),
                    |case| {
                        let tile = $threads * $items;
                        (items::<$t>(case, 0, len(case, tile)), ranks(case, tile))
                    },
                    |_, (x, ranks)| {
                        let tile = $threads * $items;
                        let tiles = x.chunks(tile).zip(ranks.chunks(tile));
                        let all = tiles.flat_map(|(x, ranks)| exchanges(x, ranks, ($threads, $items))).collect();
                        (exact(all), exact(x.clone()), exact(x.clone()))
                    },
                    |case, place, (x, ranks), (out, striped, warp_striped)| {
                        exchanged::<$t, $threads, $items>::launch(
                            place.stream, Shape::exactly(case, $threads).dims(blocks(case)), x.get(), ranks.get(),
                            out.exact(), striped.exact(), warp_striped.exact(),
                        )
                    },
                ));
            )*};
        }
        exchanges_of! {
            "u8, 65, 16", u8, 65, 16;
            "f32, 128, 4", f32, 128, 4;
            "Three, 33, 5", Three, 33, 5;
            "f64, 1, 3", f64, 1, 3;
            "u8, 1024, 1", u8, 1024, 1;
        }
        all
    }
}
