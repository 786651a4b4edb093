//! Sorts of a block, and the first few.

use kernel_primitives::block::{
    IndexedSortStorage, MergeSortStorage, SegmentedSortStorage, SortStorage, TopKStorage, block_merge_sort,
    block_merge_sort_pairs, block_segmented_merge_sort_pairs, block_sort, block_sort_with_index, block_top_k,
    block_top_k_by, block_top_k_of, block_top_k_of_sorted,
};
use kernel_primitives::functor::{Direction, Greater, Less};
use kernel_primitives::prelude::*;

use crate::kernels::Three;

/// The keys of each tile, sorted by a network, that with places, the first `k` with places, by merges, and with values.
#[kernel(max_threads(THREADS), instantiate(<f32, Three, Greater, 4, 1024, 256>, <i64, u32, Less, 2, 256, 100>))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn block_sorts<K, V, O, const ITEMS: usize, const TILE: usize, const THREADS: usize>(
    cx: Block,
    k: u32,
    x: Global<K>,
    values: Global<V>,
    mut out: GlobalMut<[K; 5], Tiles<ITEMS>>,
    mut places_out: GlobalMut<[u32; 2], Tiles<ITEMS>>,
    mut values_out: GlobalMut<V, Tiles<ITEMS>>,
    order: O,
    mut alone: Shared<SortStorage<K, TILE>>,
    mut indexed: Shared<IndexedSortStorage<K, TILE>>,
    mut merged: Shared<MergeSortStorage<THREADS, ITEMS, K>>,
    mut merged_pairs: Shared<MergeSortStorage<THREADS, ITEMS, K, V>>,
) where
    K: SortKey,
    V: Element,
    O: Direction + BinaryFn<K, Output = bool>,
{
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let mut keys = init::<K, ITEMS>(K::ZERO);
        let mut own = init::<V, ITEMS>(V::ZERO);
        read_data(cx, &mut keys, x.tile(tile));
        read_data(cx, &mut own, values.tile(tile));
        let (valid, first) = (tile.len(), cx.thread_rank() * ITEMS as u32);
        let places: [u32; ITEMS] = core::array::from_fn(|i| first + i as u32);
        let (mut all, mut all_places) = ([keys; 5], [places; 2]);
        block_sort::<ITEMS, TILE, K, O>(cx, &mut alone, &mut all[0], valid, order);
        block_sort_with_index::<ITEMS, TILE, K, O, u32>(
            cx,
            &mut indexed,
            &mut all[1],
            &mut all_places[0],
            valid,
            order,
        );
        block_top_k::<ITEMS, TILE, K, O>(cx, &mut indexed, &mut all[2], &mut all_places[1], valid, k as usize, order);
        block_merge_sort(cx, &mut merged, &mut all[3], valid, order);
        block_merge_sort_pairs(cx, &mut merged_pairs, &mut all[4], &mut own, valid, order);
        write_data(cx, out.tile(tile), &core::array::from_fn::<_, ITEMS, _>(|i| all.map(|keys| keys[i])));
        write_data(cx, places_out.tile(tile), &core::array::from_fn::<_, ITEMS, _>(|i| all_places.map(|own| own[i])));
        write_data(cx, values_out.tile(tile), &own);
    }
}

/// Sorts the segments of one block's tile. `ends` has the beginning and the end of each item's segment.
#[kernel(threads(128))]
pub fn segments_sorted(
    cx: Block,
    x: Global<u32>,
    ends: Global<[u32; 2]>,
    mut out: GlobalMut<u32, Tiles<4>>,
    mut places_out: GlobalMut<u32, Tiles<4>>,
    mut shared: Shared<SegmentedSortStorage<128, 4, u32, u32>>,
) {
    for tile in cx.tiles::<4>(out.len()) {
        let first = cx.thread_rank() * 4;
        let (mut keys, mut own) = (init::<u32, 4>(0), init::<[u32; 2], 4>([0; 2]));
        read_data(cx, &mut keys, x.tile(tile));
        read_data(cx, &mut own, ends.tile(tile));
        let mut places = [first, first + 1, first + 2, first + 3];
        let mut heads = 0;
        for i in 0..4 {
            heads |= ((own[i][0] == places[i]) as u32) << i;
        }
        let valid = tile.len();
        block_segmented_merge_sort_pairs(cx, &mut shared, &mut keys, &mut places, heads, own[0], valid, Less);
        write_data(cx, out.tile(tile), &keys);
        write_data(cx, places_out.tile(tile), &places);
    }
}

/// The first `k` of all keys, by one block: those in memory, those that threads read, and those of sorted sequences.
#[kernel(max_threads(1024), instantiate(<f32, Greater, 4, 512>, <u64, Less, 2, 256>))]
pub fn first_of_all<K, O, const ITEMS: usize, const TILE: usize>(
    cx: Block,
    k: u32,
    x: Global<K>,
    sorted: Global<K>,
    mut out: GlobalMut<[K; 3], Tiles<ITEMS>>,
    mut places_out: GlobalMut<[u32; 3], Tiles<ITEMS>>,
    order: O,
    mut shared: Shared<TopKStorage<K, TILE>>,
) where
    K: SortKey,
    O: Direction,
{
    let (k, round) = (k as usize, cx.block_threads() as usize * ITEMS);
    let rounds = x.len().div_ceil(round);
    let read = |x: Global<'_, K>, round_no: usize| {
        let at = round_no * round + cx.thread_rank() as usize * ITEMS;
        let mut keys = init::<K, ITEMS>(K::ZERO);
        let mut count = 0;
        for (i, key) in keys.iter_mut().enumerate() {
            if let Some(found) = x.get(at + i) {
                *key = found;
                count |= 1 << i;
            }
        }
        (keys, core::array::from_fn::<u32, ITEMS, _>(|i| (at + i) as u32), count)
    };
    let (a, a_places) = block_top_k_of::<ITEMS, TILE, K, O>(cx, &mut shared, x, k, order);
    let (b, b_places) =
        block_top_k_by::<ITEMS, TILE, ITEMS, K, O>(cx, &mut shared, rounds, k, order, |at: usize| read(x, at));
    let (c, c_places) =
        block_top_k_of_sorted::<ITEMS, TILE, ITEMS, K, O>(cx, &mut shared, rounds, k, order, |at: usize| {
            read(sorted, at)
        });
    for tile in cx.tiles::<ITEMS>(out.len()) {
        write_data(cx, out.tile(tile), &core::array::from_fn::<_, ITEMS, _>(|i| [a[i], b[i], c[i]]));
        let places = core::array::from_fn::<_, ITEMS, _>(|i| [a_places[i], b_places[i], c_places[i]]);
        write_data(cx, places_out.tile(tile), &places);
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub use host::subjects;

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    use kernel_primitives::Dims;
    use kernel_primitives::functor::{Greater, Less};

    use super::{block_sorts, first_of_all, segments_sorted};
    use crate::case::{Case, Lengths};
    use crate::data::{items, offsets};
    use crate::kernels::Three;
    use crate::reference::{Key, at, order, parts};
    use crate::shape::{Shape, blocks};
    use crate::subject::{Subject, exact, subject};

    const SORTS: &[&str] =
        &["block_sort", "block_sort_with_index", "block_top_k", "block_merge_sort", "block_merge_sort_pairs"];

    const FIRST: &[&str] = &["block_top_k_of", "block_top_k_by", "block_top_k_of_sorted"];

    /// Each of the tile's first keys, which all sorts have alike: the first few of more than those are not said.
    fn k(case: &Case, tile: usize) -> usize {
        [tile, 1 + case.param(31).below(tile)][case.param(32).below(2)]
    }

    /// Returns a number of at most half of a block's items.
    fn few(case: &Case, most: usize) -> usize {
        let mut param = case.param(33);
        [most, param.below(most + 1), 1, 0][param.below(4)]
    }

    pub fn subjects() -> Vec<Subject> {
        let mut all = Vec::new();
        macro_rules! sorts_of {
            ($($name:literal, $k:ty, $v:ty, $order:ident, $items:literal, $tile:literal, $threads:literal, $before:expr;)*) => {$(
                all.push(subject(
                    SORTS,
                    $name,
                    Lengths::near(&[$threads * $items]).most(3 * $threads * $items),
                    |case| {
                        // Of the whole tile in one call of two, of the first few of one tile in the other.
                        let tile = $threads * $items;
                        let len = if k(case, tile) == tile { case.len } else { case.len.min(tile).min(k(case, tile)) };
                        (items::<$k>(case, 0, len), items::<$v>(case, 1, len))
                    },
                    |_, (x, values)| {
                        let tile = $threads * $items;
                        let (mut keys, mut places_out, mut values_out) = (Vec::new(), Vec::new(), Vec::new());
                        for (x, values) in x.chunks(tile).zip(values.chunks(tile)) {
                            let places: Vec<usize> = order(x, $before);
                            keys.extend(at(x, &places).into_iter().map(|key| [key; 5]));
                            places_out.extend(places.iter().map(|&i| [i as u32; 2]));
                            values_out.extend(at(values, &places));
                        }
                        (exact(keys), exact(places_out), exact(values_out))
                    },
                    |case, place, (x, values), (out, places, values_out)| {
                        type Kernel = block_sorts<$k, $v, $order, $items, $tile, $threads>;
                        let shape = Shape::exactly(case, $threads);
                        let k = k(case, $threads * $items) as u32;
                        Kernel::launch(
                            place.stream, shape.dims(blocks(case)), k, x.get(), values.get(), out.exact(),
                            places.exact(), values_out.exact(), $order,
                        )
                    },
                ));
            )*};
        }
        sorts_of! {
            "f32, Three, Greater, 4, 1024, 256", f32, Three, Greater, 4, 1024, 256, |a: &f32, b: &f32| b.order(a).is_lt();
            "i64, u32, Less, 2, 256, 100", i64, u32, Less, 2, 256, 100, |a, b| a < b;
        }
        macro_rules! first_of {
            ($($name:literal, $k:ty, $order:ident, $items:literal, $tile:literal, $before:expr;)*) => {$(
                all.push(subject(
                    FIRST,
                    $name,
                    Lengths::near(&[$tile, 4 * $tile]).most(20 * $tile),
                    |case| {
                        let x = items::<$k>(case, 0, case.len);
                        let sorted = at(&x, &order(&x, $before));
                        (x, sorted)
                    },
                    |case, (x, _)| {
                        let k = few(case, Shape::of(case, $tile / $items).threads() * $items / 2);
                        let places: Vec<usize> = order(x, $before).into_iter().take(k).collect();
                        let keys = at(x, &places).into_iter().map(|key| [key; 3]);
                        let places = places.iter().enumerate().map(|(nth, &at)| [at as u32, at as u32, nth as u32]);
                        (exact(keys.collect()), exact(places.collect()))
                    },
                    |case, place, (x, sorted), (out, places)| {
                        let shape = Shape::of(case, $tile / $items);
                        let k = few(case, shape.threads() * $items / 2) as u32;
                        first_of_all::<$k, $order, $items, $tile>::launch(
                            place.stream, shape.dims(1), k, x.get(), sorted.get(), out.exact(), places.exact(), $order,
                        )
                    },
                ));
            )*};
        }
        first_of! {
            "f32, Greater, 4, 512", f32, Greater, 4, 512, |a: &f32, b: &f32| b.order(a).is_lt();
            "u64, Less, 2, 256", u64, Less, 2, 256, |a, b| a < b;
        }
        all.push(segments());
        all
    }

    /// The segments are in one tile.
    fn segments() -> Subject {
        let ranges = |case: &Case| parts(&offsets(case, case.len), case.len);
        subject(
            &["block_segmented_merge_sort_pairs"],
            "u32, u32, 128, 4",
            Lengths::near(&[512]).most(512),
            move |case| {
                let ends =
                    ranges(case).into_iter().flat_map(|part| vec![[part.start as u32, part.end as u32]; part.len()]);
                (items::<u32>(case, 0, case.len), ends.collect::<Vec<_>>())
            },
            move |case, (x, _)| {
                let sorted = |part: std::ops::Range<usize>| {
                    let places = order(&x[part.clone()], |a, b| a < b);
                    places.into_iter().map(move |i| part.start + i)
                };
                let places: Vec<usize> = ranges(case).into_iter().flat_map(sorted).collect();
                (exact(at(x, &places)), exact(places.iter().map(|&i| i as u32).collect()))
            },
            |_, place, (x, ends), (out, places)| {
                let dims = Dims::new(1, 128);
                segments_sorted::launch(place.stream, dims, x.get(), ends.get(), out.exact(), places.exact())
            },
        )
    }
}
