//! Sorts and ranks of a block by digits.

use kernel_primitives::block::{
    RadixRankStorage, RadixSortStorage, block_radix_rank, block_radix_sort, block_radix_sort_pairs,
    block_radix_sort_pairs_to_striped, block_radix_sort_to_striped,
};
use kernel_primitives::functor::{Direction, Greater, Less};
use kernel_primitives::prelude::*;

use crate::kernels::Three;

/// Sorts the keys of each whole tile by some of their bits: alone and with values, blocked and striped.
#[kernel(threads(THREADS), instantiate(<f32, Three, Less, 128, 4>, <i16, u32, Greater, 64, 3>))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn radix_sorts<K: SortKey, V: Element, O: Direction, const THREADS: usize, const ITEMS: usize>(
    cx: Block,
    begin: u32,
    end: u32,
    x: Global<K>,
    values: Global<V>,
    mut out: GlobalMut<[K; 4], Tiles<ITEMS>>,
    mut values_out: GlobalMut<[V; 2], Tiles<ITEMS>>,
    order: O,
    mut shared: Shared<RadixSortStorage<THREADS, ITEMS, K>>,
    mut shared_pairs: Shared<RadixSortStorage<THREADS, ITEMS, K, V>>,
) {
    for tile in cx.tiles::<ITEMS>(out.len()) {
        let mut keys = init::<K, ITEMS>(K::ZERO);
        let mut own = init::<V, ITEMS>(V::ZERO);
        read_data(cx, &mut keys, x.tile(tile));
        read_data(cx, &mut own, values.tile(tile));
        let ([mut a, mut b, mut c, mut d], [mut v, mut w]) = ([keys; 4], [own; 2]);
        block_radix_sort::<THREADS, ITEMS, K, O>(cx, &mut shared, &mut a, begin..end, order);
        block_radix_sort_to_striped::<THREADS, ITEMS, K, O>(cx, &mut shared, &mut b, begin..end, order);
        block_radix_sort_pairs::<THREADS, ITEMS, K, V, O>(cx, &mut shared_pairs, &mut c, &mut v, begin..end, order);
        block_radix_sort_pairs_to_striped::<THREADS, ITEMS, K, V, O>(
            cx,
            &mut shared_pairs,
            &mut d,
            &mut w,
            begin..end,
            order,
        );
        write_data(cx, out.tile(tile), &core::array::from_fn::<_, ITEMS, _>(|i| [a[i], b[i], c[i], d[i]]));
        write_data(cx, values_out.tile(tile), &core::array::from_fn::<_, ITEMS, _>(|i| [v[i], w[i]]));
    }
}

/// Writes the place of each byte of a tile, and for each digit its number of items and the place of the first one.
#[kernel(threads(256))]
pub fn ranked(
    cx: Block,
    x: Global<u8>,
    mut places: GlobalMut<u32, WarpStriped<4>>,
    mut digits: GlobalMut<[u32; 3]>,
    mut shared: Shared<RadixRankStorage<256>>,
) {
    for (tile, digit) in cx.tiles::<4>(x.len()).zip(cx.items(digits.len())) {
        let mut items = [0u8; 4];
        load_warp_striped(cx, &mut items, x.tile(tile));
        let mut counted = u32::MAX;
        let ranked = block_radix_rank(cx, &mut shared, &items.map(u32::from), |count| counted = count);
        store_striped(cx, places.tile(tile), &ranked.places);
        digits.set(digit, [ranked.count, ranked.start, counted]);
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub use host::subjects;

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    use kernel_primitives::SortKey;
    use kernel_primitives::functor::{Greater, Less};

    use super::{radix_sorts, ranked};
    use crate::case::{Case, Lengths};
    use crate::data::items;
    use crate::kernels::Three;
    use crate::reference::{Key, at, order};
    use crate::shape::{blocks, striped};
    use crate::subject::{Subject, exact, subject};

    const COVERS: &[&str] = &[
        "block_radix_sort",
        "block_radix_sort_pairs",
        "block_radix_sort_to_striped",
        "block_radix_sort_pairs_to_striped",
    ];

    /// Returns the bits of the key: all bits, or some.
    fn bits<K: SortKey>(case: &Case) -> std::ops::Range<u32> {
        let (mut param, all) = (case.param(34), K::SORT_BITS as usize);
        let start = [0, 0, param.below(all + 1)][param.below(3)];
        start as u32..[all, start + param.below(all - start + 1)][param.below(2)] as u32
    }

    pub fn subjects() -> Vec<Subject> {
        let mut all = Vec::new();
        macro_rules! sorts_of {
            ($($name:literal, $k:ty, $v:ty, $order:ident, $threads:literal, $items:literal, $descending:literal;)*) => {$(
                all.push(subject(
                    COVERS,
                    $name,
                    Lengths::near(&[$threads * $items]).most(3 * $threads * $items),
                    |case| {
                        let len = case.len.next_multiple_of($threads * $items);
                        (items::<$k>(case, 0, len), items::<$v>(case, 1, len))
                    },
                    |case, (x, values)| {
                        let (bits, stripes) = (bits::<$k>(case), striped($threads, $items));
                        let (mut keys, mut values_out) = (Vec::new(), Vec::new());
                        for (x, values) in x.chunks($threads * $items).zip(values.chunks($threads * $items)) {
                            let places = order(x, |a, b| {
                                let (a, b) = if $descending { (b, a) } else { (a, b) };
                                a.digits(&bits) < b.digits(&bits)
                            });
                            let (x, values) = (at(x, &places), at(values, &places));
                            keys.extend((0..x.len()).map(|i| [x[i], x[stripes[i]], x[i], x[stripes[i]]]));
                            values_out.extend((0..x.len()).map(|i| [values[i], values[stripes[i]]]));
                        }
                        (exact(keys), exact(values_out))
                    },
                    |case, place, (x, values), (out, values_out)| {
                        let std::ops::Range { start, end } = bits::<$k>(case);
                        radix_sorts::<$k, $v, $order, $threads, $items>::launch(
                            place.stream, (blocks(case) as u32, $threads), start, end, x.get(), values.get(), out.exact(),
                            values_out.exact(), $order,
                        )
                    },
                ));
            )*};
        }
        sorts_of! {
            "f32, Three, Less, 128, 4", f32, Three, Less, 128, 4, false;
            "i16, u32, Greater, 64, 3", i16, u32, Greater, 64, 3, true;
        }
        all.push(subject(
            &["block_radix_rank"],
            "u8, 256, 4",
            Lengths::near(&[1024]).most(1024),
            |case| (items::<u8>(case, 0, 1024),),
            |_, (x,)| {
                let mut places = vec![0; x.len()];
                order(x, |a, b| a < b).into_iter().enumerate().for_each(|(place, i)| places[i] = place as u32);
                let below = |digit: usize| x.iter().filter(|&&x| (x as usize) < digit).count() as u32;
                let digits = (0..256)
                    .map(|digit| [below(digit + 1) - below(digit), below(digit), below(digit + 1) - below(digit)]);
                (exact(places), exact(digits.collect()))
            },
            |_, place, (x,), (places, digits)| {
                ranked::launch(place.stream, (1, 256), x.get(), places.exact(), digits.exact())
            },
        ));
        all
    }
}
