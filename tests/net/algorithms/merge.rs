//! Merges of two sorted inputs.

use kernel_primitives::algorithms::{merge, merge_pairs};
use kernel_primitives::functor::{Greater, Less};
use kernel_primitives::kernels::device::merge_tile_items;

use crate::case::{Case, Lengths};
use crate::data::items;
use crate::items::Item;
use crate::kernels::{ByKey, Three};
use crate::reference::{Key, at, order};
use crate::subject::{Subject, exact, subject};

/// Returns two sorted inputs. Each has any part of the items, and seldom none.
fn inputs<T: Item>(case: &Case, before: impl Fn(&T, &T) -> bool) -> (Vec<T>, Vec<T>) {
    let mut param = case.param(5);
    let (len, any) = (case.len, param.below(case.len + 1));
    let drawn = [0, len, len / 3, len / 2, any, any, any, any][param.below(8)];
    let first = case.usual([len / 3, len / 2]).unwrap_or(drawn);
    let sorted = |column: u64, len: usize| {
        let x = items::<T>(case, column, len);
        at(&x, &order(&x, &before))
    };
    (sorted(0, first), sorted(1, case.len - first))
}

/// Merges two inputs. Of equal items, those of the first input come first.
fn merged<T: Copy>(a: &[T], b: &[T], before: impl Fn(&T, &T) -> bool) -> (Vec<T>, Vec<usize>) {
    let both = [a, b].concat();
    let places = order(&both, before);
    (at(&both, &places), places)
}

pub fn subjects() -> Vec<Subject> {
    let mut all = Vec::new();
    macro_rules! merges {
        ($($name:literal, $k:ty, $order:ident, $before:expr;)*) => {$(
            all.push(subject(
                &["merge"],
                $name,
                Lengths::near(&[merge_tile_items(size_of::<$k>(), 0)]),
                |case| inputs::<$k>(case, $before),
                |_, (a, b)| (exact(merged(a, b, $before).0),),
                |_, place, (a, b), (out,)| merge(place.run(), a.get(), b.get(), $order, out.room()),
            ));
            all.push(subject(
                &["merge_pairs"],
                $name,
                Lengths::near(&[merge_tile_items(size_of::<$k>(), 4)]),
                |case| {
                    let (a, b) = inputs::<$k>(case, $before);
                    let values = |from: usize, len: usize| (from..from + len).map(|i| i as u32 * 3).collect::<Vec<_>>();
                    let (first, second) = (values(0, a.len()), values(a.len(), b.len()));
                    (a, b, first, second)
                },
                |_, (a, b, ..)| {
                    let (keys, places) = merged(a, b, $before);
                    (exact(keys), exact(places.iter().map(|&i| i as u32 * 3).collect()))
                },
                |_, place, (a, b, first, second), (out, out_values)| {
                    let pairs = ((a.get(), first.get()), (b.get(), second.get()));
                    merge_pairs(place.run(), pairs.0, pairs.1, $order, out.room(), out_values.room())
                },
            ));
        )*};
    }
    merges! {
        "u32, Less", u32, Less, |a, b| a < b;
        "f32, Greater", f32, Greater, |a, b| b.order(a).is_lt();
        "Three, ByKey", Three, ByKey, |a, b| a.key < b.key;
    }
    all
}
