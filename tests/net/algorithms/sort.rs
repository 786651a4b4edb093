//! Sorts by digits and by comparators.

use kernel_primitives::algorithms::{
    sort_by, sort_keys, sort_keys_by_bits, sort_pairs, sort_pairs_by, sort_pairs_by_bits,
};
use kernel_primitives::functor::{Greater, Less};
use kernel_primitives::input::counting;
use kernel_primitives::kernels::device::{merge_sort_tile_items, merge_tile_items, sort_tile_items};
use kernel_primitives::{Result, SortKey, f16};

use crate::case::{Case, Lengths};
use crate::data::items;
use crate::kernels::{ByKey, Flagged, Three, Twelve};
use crate::reference::{Key, at, order};
use crate::subject::{Subject, exact, subject};

/// Returns the bits to sort by, which are mostly all bits.
fn bits<K: SortKey>(case: &Case) -> std::ops::Range<u32> {
    let (mut param, all) = (case.param(3), K::SORT_BITS as usize);
    if let Some((start, end)) = case.usual([(0, all), (all.min(3), all.min(21))]) {
        return start as u32..end as u32;
    }
    let start = [0, 0, 0, param.below(all + 1)][param.below(4)];
    let end = [all, all, all, start + param.below(all - start + 1)][param.below(4)];
    start as u32..end as u32
}

/// Returns the places of keys in the order of some of their bits.
fn places<K: Key>(x: &[K], bits: std::ops::Range<u32>, descending: bool) -> Vec<usize> {
    let before: &dyn Fn(&K, &K) -> bool =
        if bits == (0..K::SORT_BITS) { &|a, b| a.order(b).is_lt() } else { &|a, b| a.digits(&bits) < b.digits(&bits) };
    if descending { order(x, |a, b| before(b, a)) } else { order(x, before) }
}

macro_rules! by_order {
    ($case:expr, |$order:ident| $call:expr) => {
        if descending($case) {
            let $order = Greater;
            $call
        } else {
            let $order = Less;
            $call
        }
    };
}

fn descending(case: &Case) -> bool {
    case.param(4).below(2) == 1
}

pub fn subjects() -> Vec<Subject> {
    let mut all = Vec::new();
    macro_rules! keys {
        ($($name:literal, $k:ty;)*) => {$(
            all.push(subject(
                &["sort_keys", "sort_keys_by_bits"],
                $name,
                Lengths::near(&[sort_tile_items(size_of::<$k>(), 0)]),
                |case| (items::<$k>(case, 0, case.len),),
                |case, (x,)| (exact(at(x, &places(x, bits::<$k>(case), descending(case)))),),
                |case, place, (x,), (out,)| -> Result<()> {
                    let (run, bits) = (place.run(), bits::<$k>(case));
                    by_order!(case, |order| match bits == (0..<$k>::SORT_BITS) {
                        true => sort_keys(run, x.get(), out.room(), order),
                        false => sort_keys_by_bits(run, x.get(), out.room(), order, bits),
                    })
                },
            ));
        )*};
    }
    keys! { "u32", u32; "i32", i32; "f32", f32; "u64", u64; "i64", i64; "f64", f64; "f16", f16; "u8", u8; "bool", bool; }
    macro_rules! pairs {
        ($($name:literal, $k:ty, $v:ty;)*) => {$(
            all.push(subject(
                &["sort_pairs", "sort_pairs_by_bits"],
                $name,
                Lengths::near(&[sort_tile_items(size_of::<$k>(), size_of::<$v>())]),
                |case| (items::<$k>(case, 0, case.len), items::<$v>(case, 1, case.len)),
                |case, (x, values)| {
                    let places = places(x, bits::<$k>(case), descending(case));
                    (exact(at(x, &places)), exact(at(values, &places)))
                },
                |case, place, (x, values), (out, out_values)| -> Result<()> {
                    let (run, bits) = (place.run(), bits::<$k>(case));
                    let (out, out_values) = (out.room(), out_values.room());
                    by_order!(case, |order| match bits == (0..<$k>::SORT_BITS) {
                        true => sort_pairs(run, x.get(), values.get(), out, out_values, order),
                        false => sort_pairs_by_bits(run, x.get(), values.get(), out, out_values, order, bits),
                    })
                },
            ));
        )*};
    }
    pairs! {
        "f32, u32", f32, u32;
        "u64, u32", u64, u32;
        "u32, u64", u32, u64;
        "u32, Twelve", u32, Twelve;
        "u32, Flagged", u32, Flagged;
    }
    macro_rules! by {
        ($($name:literal, $k:ty, $order:ident, $before:expr;)*) => {$(
            all.push(subject(
                &["sort_by"],
                $name,
                Lengths::near(&[
                    merge_sort_tile_items(size_of::<$k>(), 0),
                    merge_tile_items(size_of::<$k>(), 0),
                    sort_tile_items(size_of::<$k>(), 0),
                ]),
                |case| (items::<$k>(case, 0, case.len),),
                |_, (x,)| (exact(at(x, &order(x, $before))),),
                |_, place, (x,), (out,)| sort_by(place.run(), x.get(), $order, out.room()),
            ));
        )*};
    }
    by! {
        "u32, Less", u32, Less, |a, b| a < b;
        "f32, Greater", f32, Greater, |a, b| b.order(a).is_lt();
        "i64, Greater", i64, Greater, |a, b| a > b;
        "f16, Less", f16, Less, |a, b| a.order(b).is_lt();
        "u8, Greater", u8, Greater, |a, b| a > b;
        "Three, ByKey", Three, ByKey, |a, b| a.key < b.key;
    }
    macro_rules! pairs_in_memory_by {
        ($($name:literal, $k:ty, $v:ty, $order:ident, $before:expr;)*) => {$(
            all.push(subject(
                &["sort_pairs_by"],
                $name,
                Lengths::near(&[
                    merge_sort_tile_items(size_of::<$k>(), size_of::<$v>()),
                    merge_tile_items(size_of::<$k>(), size_of::<$v>()),
                    sort_tile_items(size_of::<$k>(), size_of::<$v>()),
                ]),
                |case| (items::<$k>(case, 0, case.len), items::<$v>(case, 1, case.len)),
                |_, (x, values)| {
                    let places = order(x, $before);
                    (exact(at(x, &places)), exact(at(values, &places)))
                },
                |_, place, (x, values), (out, out_values)| {
                    sort_pairs_by(place.run(), x.get(), values.get(), $order, out.room(), out_values.room())
                },
            ));
        )*};
    }
    pairs_in_memory_by! {
        "u32, u32, Less", u32, u32, Less, |a, b| a < b;
        "f64, i32, Greater", f64, i32, Greater, |a, b| b.order(a).is_lt();
        "u32, Flagged, Less", u32, Flagged, Less, |a, b| a < b;
    }
    macro_rules! pairs_by {
        ($($name:literal, $k:ty, $order:ident, $before:expr;)*) => {$(
            all.push(subject(
                &["sort_pairs_by"],
                $name,
                Lengths::near(&[merge_sort_tile_items(size_of::<$k>(), 4), merge_tile_items(size_of::<$k>(), 4)]),
                |case| (items::<$k>(case, 0, case.len),),
                |_, (x,)| {
                    let places = order(x, $before);
                    (exact(at(x, &places)), exact(places.iter().map(|&i| i as u32).collect()))
                },
                |_, place, (x,), (out, places)| {
                    let x = x.get();
                    sort_pairs_by(place.run(), x, counting(0u32, x.len()), $order, out.room(), places.room())
                },
            ));
        )*};
    }
    pairs_by! {
        "u32, Counting<u32>, Less", u32, Less, |a, b| a < b;
        "f32, Counting<u32>, Greater", f32, Greater, |a, b| b.order(a).is_lt();
        "Three, Counting<u32>, ByKey", Three, ByKey, |a, b| a.key < b.key;
    }
    all
}
