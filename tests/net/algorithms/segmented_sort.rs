//! Sorts of segments.

use kernel_primitives::algorithms::{segmented_sort, segmented_sort_pairs};
use kernel_primitives::functor::Less;
use kernel_primitives::kernels::device::{merge_tile_items, segment_sort_short_items, segment_sort_tile_items};

use crate::case::Lengths;
use crate::data::{items, offsets};
use crate::kernels::Flagged;
use crate::reference::{at, order};
use crate::subject::{Subject, exact, subject};

fn lengths(value: usize) -> Lengths {
    let (short, tile) = (segment_sort_short_items(4, value), segment_sort_tile_items(4, value));
    Lengths::near(&[short, 2 * short, tile, merge_tile_items(4, value), 64 * short]).most(64 * short + 2 * tile)
}

/// Returns the places of all items, with those of each segment in order.
fn places(x: &[u32], offsets: &[u32]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..x.len()).collect();
    for ends in offsets.windows(2) {
        let segment = ends[0] as usize..ends[1] as usize;
        let sorted = order(&x[segment.clone()], |a, b| a < b);
        sorted.into_iter().zip(segment.clone()).for_each(|(from, to)| places[to] = segment.start + from);
    }
    places
}

pub fn subjects() -> Vec<Subject> {
    let offsets = |case: &_, len| offsets(case, len).iter().map(|&at| at as u32).collect::<Vec<_>>();
    let all = vec![
        subject(
            &["segmented_sort"],
            "u32, u32, Less",
            lengths(0),
            move |case| (items::<u32>(case, 0, case.len), offsets(case, case.len)),
            |_, (x, offsets)| (exact(at(x, &places(x, offsets))),),
            |_, place, (x, offsets), (out,)| segmented_sort(place.run(), x.get(), offsets.get(), Less, out.room()),
        ),
        subject(
            &["segmented_sort_pairs"],
            "u32, u32, u32, Less",
            lengths(4),
            move |case| (items::<u32>(case, 0, case.len), items::<u32>(case, 1, case.len), offsets(case, case.len)),
            |_, (x, values, offsets)| {
                let places = places(x, offsets);
                (exact(at(x, &places)), exact(at(values, &places)))
            },
            |_, place, (x, values, offsets), (out, out_values)| {
                let (run, out, out_values) = (place.run(), out.room(), out_values.room());
                segmented_sort_pairs(run, x.get(), values.get(), offsets.get(), Less, out, out_values)
            },
        ),
        subject(
            &["segmented_sort_pairs"],
            "u32, Flagged, u32, Less",
            lengths(4),
            move |case| (items::<u32>(case, 0, case.len), items::<Flagged>(case, 1, case.len), offsets(case, case.len)),
            |_, (x, values, offsets)| {
                let places = places(x, offsets);
                (exact(at(x, &places)), exact(at(values, &places)))
            },
            |_, place, (x, values, offsets), (out, out_values)| {
                let (run, out, out_values) = (place.run(), out.room(), out_values.room());
                segmented_sort_pairs(run, x.get(), values.get(), offsets.get(), Less, out, out_values)
            },
        ),
    ];
    // The call lists the tiles of all segments in temporary memory.
    all.into_iter().map(|subject| subject.takes_memory(|_| true)).collect()
}
