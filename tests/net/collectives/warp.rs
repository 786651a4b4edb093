//! Collectives of a warp.

use kernel_primitives::block::{MergeSortStorage, warp_merge_sort, warp_merge_sort_pairs};
use kernel_primitives::functor::{Direction, Greater, Less, LogicalXor};
use kernel_primitives::prelude::*;
use kernel_primitives::warp::{warp_sort, warp_sort_pairs, warp_sort_with_index};

use crate::kernels::{Compose, Latest, Map, Three, Twelve};

/// Of each thread: its warp's reduction, inclusive and exclusive scan, that after a value, and total; the same of its group,
/// its segment by heads and by tails, and a lane's value.
#[kernel(max_threads(1024), instantiate(<f32, Add>, <Three, Latest>, <Map<u64>, Compose>, <bool, LogicalXor>))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn warp_forms<T: Element, R: Reducer<T> + KernelParam>(
    cx: Block,
    width: u32,
    source: u32,
    initial: T,
    flags: Global<bool>,
    x: Global<T>,
    mut out: GlobalMut<[T; 12]>,
    op: R,
) {
    for i in cx.items(out.len()) {
        let (value, flag) = (x[i], flags[i]);
        let (exclusive, total) = warp_exclusive_scan(cx, value, op);
        let (after, _) = warp_exclusive_scan_from(cx, value, initial, op);
        let (of_group, group_total) = warp_group_exclusive_scan(cx, value, op, width);
        let forms = [
            warp_reduce(cx, value, op),
            warp_inclusive_scan(cx, value, op),
            exclusive,
            after,
            total,
            warp_group_reduce(cx, value, op, width),
            warp_group_inclusive_scan(cx, value, op, width),
            of_group,
            group_total,
            warp_reduce_by_heads(cx, value, flag, op),
            warp_reduce_by_tails(cx, value, flag, op),
            warp_broadcast(cx, value, source),
        ];
        out.set(i, forms);
    }
}

/// The keys of each group of `WIDTH` lanes, sorted by a network, that with places, with values, by merges, and with values.
#[kernel(max_threads(THREADS), instantiate(<f32, Twelve, Greater, 32, 96, 4>, <u8, u32, Less, 8, 65, 2>))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn warp_sorts<K, V, O, const WIDTH: u32, const THREADS: usize, const ITEMS: usize>(
    cx: Block,
    x: Global<K>,
    values: Global<V>,
    mut out: GlobalMut<[K; 5], Tiles<ITEMS>>,
    mut places_out: GlobalMut<u32, Tiles<ITEMS>>,
    mut values_out: GlobalMut<[V; 2], Tiles<ITEMS>>,
    order: O,
    mut shared: Shared<MergeSortStorage<THREADS, ITEMS, K>>,
    mut shared_pairs: Shared<MergeSortStorage<THREADS, ITEMS, K, V>>,
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
        // These are the tile's positions in this lane's group.
        let first = (cx.thread_rank() & !(WIDTH - 1)) as usize * ITEMS;
        let valid = tile.len().saturating_sub(first).min(WIDTH as usize * ITEMS);
        let (mut all, mut all_values) = ([keys; 5], [own; 2]);
        let own = cx.thread_rank() * ITEMS as u32;
        let mut places: [u32; ITEMS] = core::array::from_fn(|i| own + i as u32);
        warp_sort::<WIDTH, ITEMS, K, O>(cx, &mut all[0], valid, order);
        warp_sort_with_index::<WIDTH, ITEMS, K, O, u32>(cx, &mut all[1], &mut places, valid, order);
        warp_sort_pairs::<WIDTH, ITEMS, K, V, O>(cx, &mut all[2], &mut all_values[0], valid, order);
        warp_merge_sort::<WIDTH, THREADS, ITEMS, K, O>(cx, &mut shared, &mut all[3], valid, order);
        let [_, merged] = &mut all_values;
        warp_merge_sort_pairs::<WIDTH, THREADS, ITEMS, K, V, O>(
            cx,
            &mut shared_pairs,
            &mut all[4],
            merged,
            valid,
            order,
        );
        write_data(cx, out.tile(tile), &core::array::from_fn::<_, ITEMS, _>(|i| all.map(|keys| keys[i])));
        write_data(cx, places_out.tile(tile), &places);
        write_data(cx, values_out.tile(tile), &core::array::from_fn::<_, ITEMS, _>(|i| all_values.map(|own| own[i])));
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub use host::subjects;

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    use kernel_primitives::functor::{Add, BinaryFn, Greater, Less, LogicalXor, Reducer};

    use super::{warp_forms, warp_sorts};
    use crate::case::{Case, Lengths};
    use crate::data::{flags, items, small};
    use crate::items::Item;
    use crate::kernels::{Compose, Latest, Map, Three, Twelve};
    use crate::reference::{Key, at, exclusive, inclusive, order};
    use crate::shape::{Shape, blocks, lengths, total};
    use crate::subject::{Subject, equal, exact, subject};

    const FORMS: &[&str] = &[
        "warp_reduce",
        "warp_group_reduce",
        "warp_inclusive_scan",
        "warp_exclusive_scan",
        "warp_exclusive_scan_from",
        "warp_group_inclusive_scan",
        "warp_group_exclusive_scan",
        "warp_reduce_by_heads",
        "warp_reduce_by_tails",
        "warp_broadcast",
    ];

    const SORTS: &[&str] =
        &["warp_sort", "warp_sort_with_index", "warp_sort_pairs", "warp_merge_sort", "warp_merge_sort_pairs"];

    /// Returns the number of lanes of a group.
    fn width(case: &Case) -> usize {
        let mut param = case.param(22);
        [1 + param.below(32), 32, 16, 9, 7, 2, 1][param.below(7)]
    }

    /// Returns a lane that every warp has.
    fn source(case: &Case, shape: Shape) -> usize {
        let fewest = if shape.threads().is_multiple_of(32) { 32 } else { shape.threads() % 32 };
        case.param(23).below(fewest)
    }

    /// Returns the values that each thread of one warp gets.
    fn forms<T: Item>(
        x: &[T],
        flags: &[bool],
        (width, source): (usize, usize),
        (initial, identity): (T, T),
        op: impl Fn(T, T) -> T + Copy,
    ) -> Vec<[T; 12]> {
        let all = total(x, op).expect("no warp is empty");
        let (upto, before, after) = (inclusive(x, op), exclusive(x, identity, op), exclusive(x, initial, op));
        let segment = |begins: &dyn Fn(usize) -> bool, lane: usize| {
            let from = (1..=lane).rev().find(|&i| begins(i)).unwrap_or(0);
            let to = (lane + 1..x.len()).find(|&i| begins(i)).unwrap_or(x.len());
            total(&x[from..to], op).expect("the lane is in it")
        };
        let of_lane = |lane: usize| {
            let first = lane / width * width;
            let group = &x[first..(first + width).min(x.len())];
            let of_group = total(group, op).expect("the lane is in it");
            let (group_upto, group_before) = (inclusive(group, op), exclusive(group, identity, op));
            let heads = segment(&|i| flags[i], lane);
            let tails = segment(&|i| flags[i - 1], lane);
            let own = lane - first;
            [
                all,
                upto[lane],
                before[lane],
                after[lane],
                all,
                of_group,
                group_upto[own],
                group_before[own],
                of_group,
                heads,
                tails,
                x[source],
            ]
        };
        (0..x.len()).map(of_lane).collect()
    }

    pub fn subjects() -> Vec<Subject> {
        let mut all = Vec::new();
        macro_rules! forms_of {
            ($($name:literal, $t:ty, $op:ident, $r:ty, $plain:expr, $items:ident;)*) => {$(
                all.push(subject(
                    FORMS,
                    $name,
                    lengths(1024),
                    |case| {
                        let len = Shape::of(case, 1024).threads() * blocks(case);
                        ($items::<$t>(case, 0, len), flags(case, 1, len))
                    },
                    |case, (x, flags)| {
                        let shape = Shape::of(case, 1024);
                        let (initial, identity) = ($items::<$t>(&case.fixed(), 9, 1)[0], Reducer::<$t>::identity(&$op));
                        let of_block = |(x, flags): (&[$t], &[bool])| -> Vec<[$t; 12]> {
                            let of = (width(case), source(case, shape));
                            let warps = x.chunks(32).zip(flags.chunks(32));
                            warps.flat_map(|(x, flags)| forms(x, flags, of, (initial, identity), $plain)).collect()
                        };
                        let blocks = x.chunks(shape.threads()).zip(flags.chunks(shape.threads()));
                        (equal(blocks.flat_map(of_block).collect()),)
                    },
                    |case, place, (x, flags), (out,)| {
                        let (shape, initial) = (Shape::of(case, 1024), $items::<$t>(&case.fixed(), 9, 1)[0]);
                        warp_forms::<$t, $r>::launch(
                            place.stream, shape.dims(blocks(case)), width(case) as u32, source(case, shape) as u32, initial,
                            flags.get(), x.get(), out.exact(), $op,
                        )
                    },
                ));
            )*};
        }
        forms_of! {
            "f32, Add", f32, Add, Add, |a, b| a + b, small;
            "Three, Latest", Three, Latest, Latest, |a, b| Latest.apply(a, b), items;
            "Map<u64>, Compose", Map<u64>, Compose, Compose, |a, b| Compose.apply(a, b), items;
            "bool, LogicalXor", bool, LogicalXor, LogicalXor, |a, b| a != b, items;
        }
        macro_rules! sorts_of {
            ($($name:literal, $k:ty, $v:ty, $order:ident, $width:literal, $threads:literal, $items:literal, $before:expr;)*) => {$(
                all.push(subject(
                    SORTS,
                    $name,
                    Lengths::near(&[$threads * $items, $width * $items]).most(3 * $threads * $items),
                    |case| (items::<$k>(case, 0, case.len), items::<$v>(case, 1, case.len)),
                    |_, (x, values)| {
                        let threads = $threads;
                        let (mut keys, mut places_out, mut values_out) = (Vec::new(), Vec::new(), Vec::new());
                        for (x, values) in x.chunks(threads * $items).zip(values.chunks(threads * $items)) {
                            for (group, x) in x.chunks($width * $items).enumerate() {
                                let first = group * $width * $items;
                                let places: Vec<usize> = order(x, $before);
                                keys.extend(at(x, &places).into_iter().map(|key| [key; 5]));
                                places_out.extend(places.iter().map(|&i| (first + i) as u32));
                                values_out.extend(places.iter().map(|&i| [values[first + i]; 2]));
                            }
                        }
                        (exact(keys), exact(places_out), exact(values_out))
                    },
                    |case, place, (x, values), (out, places, values_out)| {
                        type Kernel = warp_sorts<$k, $v, $order, $width, $threads, $items>;
                        let dims = Shape::exactly(case, $threads).dims(blocks(case));
                        Kernel::launch(
                            place.stream, dims, x.get(), values.get(), out.exact(), places.exact(),
                            values_out.exact(), $order,
                        )
                    },
                ));
            )*};
        }
        sorts_of! {
            "f32, Twelve, Greater, 32, 96, 4", f32, Twelve, Greater, 32, 96, 4, |a: &f32, b: &f32| b.order(a).is_lt();
            "u8, u32, Less, 8, 65, 2", u8, u32, Less, 8, 65, 2, |a, b| a < b;
        }
        all
    }
}
