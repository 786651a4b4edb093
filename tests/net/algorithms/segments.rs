//! Reductions and scans of segments.

use kernel_primitives::Element;
use kernel_primitives::algorithms::{segmented_exclusive_scan, segmented_inclusive_scan, segmented_reduce};
use kernel_primitives::functor::{Add, Any, BinaryFn, MaxOf, Sum};
use kernel_primitives::input::Span;
use kernel_primitives::kernels::device::{
    SEGMENT_ENDS_THREADS, SEGMENT_PAIRS, SegmentScanItems, segment_scan_warp_items, segment_tile_items,
    segment_warp_items,
};

use crate::case::Lengths;
use crate::data::{floats, items, offsets, small, sum, sums, sums_before};
use crate::kernels::{Compose, Triangular};
use crate::reference::{exclusive, inclusive, parts};
use crate::subject::{Subject, alike, equal, exact, near, subject};

/// Converts offsets to numbers on the device, and back.
macro_rules! as_offsets {
    ($offsets:expr, $o:ty) => {
        $offsets.iter().map(|&at| at as $o).collect::<Vec<_>>()
    };
}

/// Returns lengths near large and small tiles, the few items of a warp, and more than a block takes.
fn of_scans<T: Element>() -> Lengths {
    let [large, small] = [1, 1 << 15].map(|enough| SegmentScanItems::<Span<T>>::tiles(1 << 22, enough).tile);
    let warp = segment_scan_warp_items::<Span<T>>();
    Lengths::near(&[large, small, warp, 8 * warp])
}

pub fn subjects() -> Vec<Subject> {
    let mut all = Vec::new();
    macro_rules! reductions {
        ($($name:literal, $t:ty, $o:ty, $op:expr, $items:ident, $want:ident, |$x:ident| $of:expr;)*) => {$(
            all.push(subject(
                &["segmented_reduce"],
                $name,
                Lengths::near(&[
                    segment_warp_items::<Span<$t>>(), segment_tile_items::<Span<$t>>(), SEGMENT_PAIRS,
                    // More than these take more than one launch.
                    1 << 16, (1 << 16) + segment_tile_items::<Span<$t>>(), SEGMENT_ENDS_THREADS,
                ]),
                |case| ($items::<$t>(case, 0, case.len), as_offsets!(offsets(case, case.len), $o)),
                |_, (x, offsets)| {
                    let of = |$x: &[$t]| $of;
                    ($want(offsets.windows(2).map(|ends| of(&x[ends[0] as usize..ends[1] as usize])).collect()),)
                },
                |_, place, (x, offsets), (out,)| segmented_reduce(place.run(), x.get(), offsets.get(), $op, out.room()),
            ));
        )*};
    }
    reductions! {
        "f32, u32, Sum", f32, u32, Sum, small, equal, |x| x.iter().sum::<f32>();
        "f64, u32, Sum", f64, u32, Sum, small, equal, |x| x.iter().sum::<f64>();
        "i32, u32, Sum", i32, u32, Sum, items, exact, |x| x.iter().fold(0i32, |a, &b| a.wrapping_add(b));
        "f32, u64, Sum", f32, u64, Sum, small, equal, |x| x.iter().sum::<f32>();
        "f32, u32, MaxOf", f32, u32, MaxOf, items, alike, |x| largest(x);
        "bool, u32, Any", bool, u32, Any, items, exact, |x| x.iter().any(|&x| x);
    }
    all.push(subject(
        &["segmented_reduce"],
        "f32, u32, Sum, reals",
        Lengths::near(&[segment_warp_items::<Span<f32>>(), segment_tile_items::<Span<f32>>(), 1 << 16]),
        |case| (floats(case, 0, case.len), as_offsets!(offsets(case, case.len), u32)),
        |_, (x, offsets)| {
            let of = |ends: &[u32]| sum(&x[ends[0] as usize..ends[1] as usize]);
            (near::<f32>(offsets.windows(2).map(of).collect()),)
        },
        |_, place, (x, offsets), (out,)| segmented_reduce(place.run(), x.get(), offsets.get(), Sum, out.room()),
    ));
    macro_rules! scans {
        ($($name:literal, $t:ty, $o:ty, $op:expr, $plain:expr, $items:ident;)*) => {$(
            all.push(subject(
                &["segmented_inclusive_scan"],
                $name,
                of_scans::<$t>(),
                |case| ($items::<$t>(case, 0, case.len), as_offsets!(offsets(case, case.len), $o)),
                |_, (x, offsets)| {
                    let upto = parts(&as_offsets!(offsets, usize), x.len()).into_iter();
                    (exact::<$t>(upto.flat_map(|part| inclusive(&x[part], $plain)).collect()),)
                },
                |_, place, (x, offsets), (out,)| {
                    segmented_inclusive_scan(place.run(), x.get(), offsets.get(), $op, out.room())
                },
            ));
        )*};
        (exclusive $($name:literal, $t:ty, $o:ty, $first:expr, $op:expr, $plain:expr, $items:ident;)*) => {$(
            all.push(subject(
                &["segmented_exclusive_scan"],
                $name,
                of_scans::<$t>(),
                |case| ($items::<$t>(case, 0, case.len), as_offsets!(offsets(case, case.len), $o)),
                |_, (x, offsets)| {
                    let before = parts(&as_offsets!(offsets, usize), x.len()).into_iter();
                    (exact::<$t>(before.flat_map(|part| exclusive(&x[part], $first, $plain)).collect()),)
                },
                |_, place, (x, offsets), (out,)| {
                    segmented_exclusive_scan(place.run(), x.get(), offsets.get(), $first, $op, out.room())
                },
            ));
        )*};
    }
    scans! {
        "f32, u32, Add", f32, u32, Add, |a, b| a + b, small;
        "Triangular, u64, Compose", Triangular, u64, Compose, |a, b| Compose.apply(a, b), items;
    }
    scans! {
        exclusive
        "u32, u32, Add", u32, u32, 5, Add, u32::wrapping_add, items;
        "f32, u32, Add", f32, u32, -0.0, Add, |a, b| a + b, small;
    }
    all.push(subject(
        &["segmented_inclusive_scan"],
        "f32, u32, Add, reals",
        of_scans::<f32>(),
        |case| (floats(case, 0, case.len), as_offsets!(offsets(case, case.len), u32)),
        |_, (x, offsets)| {
            let parts = parts(&as_offsets!(offsets, usize), x.len()).into_iter();
            (near::<f32>(parts.flat_map(|part| sums(&x[part])).collect()),)
        },
        |_, place, (x, offsets), (out,)| segmented_inclusive_scan(place.run(), x.get(), offsets.get(), Add, out.room()),
    ));
    all.push(subject(
        &["segmented_exclusive_scan"],
        "f32, u32, Add, reals",
        of_scans::<f32>(),
        |case| (floats(case, 0, case.len), as_offsets!(offsets(case, case.len), u32)),
        |_, (x, offsets)| {
            let parts = parts(&as_offsets!(offsets, usize), x.len()).into_iter();
            (near::<f32>(parts.flat_map(|part| sums_before(0.3, &x[part])).collect()),)
        },
        |_, place, (x, offsets), (out,)| {
            segmented_exclusive_scan(place.run(), x.get(), offsets.get(), 0.3, Add, out.room())
        },
    ));
    all
}

/// Returns the greatest number, NaN if there is one, or −∞ for no numbers.
fn largest(x: &[f32]) -> f32 {
    if x.iter().any(|x| x.is_nan()) {
        return f32::NAN;
    }
    x.iter().copied().max_by(f32::total_cmp).unwrap_or(f32::NEG_INFINITY)
}
