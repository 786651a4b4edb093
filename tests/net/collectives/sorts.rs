//! Sorts of a block, and the first few.

use kernel_primitives::Dims;
use kernel_primitives::functor::{Greater, Less};

use super::{Shape, blocks};
use crate::case::{Case, Lengths};
use crate::data::{items, offsets};
use crate::kernels::Three;
use crate::kernels::sorts::{block_sorts, first_of_all, segments_sorted};
use crate::reference::{Key, at, order, parts};
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
            let ends = ranges(case).into_iter().flat_map(|part| vec![[part.start as u32, part.end as u32]; part.len()]);
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
