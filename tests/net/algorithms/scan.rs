//! Scans, and differences, which are their inverse.

use kernel_primitives::algorithms::{adjacent_difference, exclusive_scan, inclusive_scan};
use kernel_primitives::functor::{Add, BinaryFn, Max, Min, Mul, Sub};
use kernel_primitives::input::{Source, Span, reversed};
use kernel_primitives::kernels::device::{
    DIFFERENCE_VECTORS, ScanTiles, scan_pipeline_tile, scan_threads, scan_vector, warp_items,
};
use kernel_primitives::{Element, f16};

use crate::case::Lengths;
use crate::data::{floats, items, small, sums, sums_before};
use crate::kernels::{Compose, Latest, Map, Three, Triangular};
use crate::reference::{exclusive, inclusive};
use crate::subject::{Subject, alike, equal, exact, near, subject};

/// Returns lengths near vectors, rounds of a block, whole tiles, and tiles of the pipeline.
fn lengths<T: Element>() -> Lengths {
    let (round, pipeline) = (scan_threads::<Span<T>>() * scan_vector::<Span<T>>(), scan_pipeline_tile::<Span<T>>());
    let tile = ScanTiles::new::<Span<T>>(1 << 20, 1).tile;
    Lengths::near(&[round, 2 * round, tile, pipeline.max(tile), 2 * pipeline.max(tile)])
}

macro_rules! scans {
    ($($call:ident $name:literal, $t:ty, $op:expr, $plain:expr, $items:ident, $want:ident;)*) => {
        vec![$(scans!(@$call $name, $t, $op, $plain, $items, $want)),*]
    };
    (@inclusive_scan $name:literal, $t:ty, $op:expr, $plain:expr, $items:ident, $want:ident) => {
        subject(
            &["inclusive_scan"],
            $name,
            lengths::<$t>(),
            |case| ($items::<$t>(case, 0, case.len),),
            |_, (x,)| ($want(inclusive(x, $plain)),),
            |_, place, (x,), (out,)| inclusive_scan(place.run(), x.get(), $op, out.room()),
        )
    };
    (@exclusive_scan $name:literal, $t:ty, $op:expr, $plain:expr, $items:ident, $want:ident) => {
        subject(
            &["exclusive_scan"],
            $name,
            lengths::<$t>(),
            |case| ($items::<$t>(case, 0, case.len),),
            |case, (x,)| ($want(exclusive(x, $items::<$t>(&case.fixed(), 9, 1)[0], $plain)),),
            |case, place, (x,), (out,)| {
                exclusive_scan(place.run(), x.get(), $items::<$t>(&case.fixed(), 9, 1)[0], $op, out.room())
            },
        )
    };
}

pub fn subjects() -> Vec<Subject> {
    let mut all = scans! {
        inclusive_scan "f32, Add", f32, Add, |a, b| a + b, small, exact;
        inclusive_scan "f64, Add", f64, Add, |a, b| a + b, small, exact;
        inclusive_scan "i32, Add", i32, Add, i32::wrapping_add, items, exact;
        inclusive_scan "u64, Add", u64, Add, u64::wrapping_add, items, exact;
        inclusive_scan "f32, Max", f32, Max, maximum, items, alike;
        inclusive_scan "i32, Min", i32, Min, i32::min, items, exact;
        inclusive_scan "f16, Max", f16, Max, maximum_of_halves, items, alike;
        inclusive_scan "Triangular, Compose", Triangular, Compose, |a, b| Compose.apply(a, b), items, exact;
        exclusive_scan "f32, Add", f32, Add, |a, b| a + b, small, exact;
        exclusive_scan "u32, Add", u32, Add, u32::wrapping_add, items, exact;
        exclusive_scan "i64, Add", i64, Add, i64::wrapping_add, items, exact;
        exclusive_scan "Map<u64>, Compose", Map<u64>, Compose, |a, b| Compose.apply(a, b), items, exact;
        exclusive_scan "Three, Latest", Three, Latest, |a, b| Latest.apply(a, b), items, exact;
    };
    all.push(subject(
        &["inclusive_scan"],
        "Reversed<i32>, Add",
        lengths::<i32>(),
        |case| (items::<i32>(case, 0, case.len),),
        |_, (x,)| (exact(inclusive(&x.iter().rev().copied().collect::<Vec<_>>(), i32::wrapping_add)),),
        |_, place, (x,), (out,)| inclusive_scan(place.run(), reversed(x.get()), Add, out.room()),
    ));
    all.push(subject(
        &["inclusive_scan"],
        "f32, Add, reals",
        lengths::<f32>(),
        |case| (floats(case, 0, case.len),),
        |_, (x,)| (near::<f32>(sums(x).collect()),),
        |_, place, (x,), (out,)| inclusive_scan(place.run(), x.get(), Add, out.room()),
    ));
    all.push(subject(
        &["exclusive_scan"],
        "f32, Add, reals",
        lengths::<f32>(),
        |case| (floats(case, 0, case.len),),
        |_, (x,)| (near::<f32>(sums_before(0.3, x)),),
        |_, place, (x,), (out,)| exclusive_scan(place.run(), x.get(), 0.3, Add, out.room()),
    ));
    macro_rules! differences {
        ($($name:literal, $t:ty, $f:ident, $plain:expr, $items:ident;)*) => {$(
            all.push(subject(
                &["adjacent_difference"],
                $name,
                Lengths::near(&[warp_items(DIFFERENCE_VECTORS, Span::<$t>::VECTOR), 8 * warp_items(DIFFERENCE_VECTORS, Span::<$t>::VECTOR)]),
                |case| ($items::<$t>(case, 0, case.len),),
                |_, (x,)| {
                    let plain: fn($t, $t) -> $t = $plain;
                    (equal((0..x.len()).map(|i| if i == 0 { x[0] } else { plain(x[i], x[i - 1]) }).collect()),)
                },
                |_, place, (x,), (out,)| adjacent_difference(place.run(), x.get(), $f, out.room()),
            ));
        )*};
    }
    differences! {
        "f32, Sub", f32, Sub, |a, b| a - b, items;
        "f64, Sub", f64, Sub, |a, b| a - b, items;
        "i32, Sub", i32, Sub, i32::wrapping_sub, items;
        "u32, Sub", u32, Sub, u32::wrapping_sub, items;
        "u8, Sub", u8, Sub, u8::wrapping_sub, items;
        "u8, Mul", u8, Mul, u8::wrapping_mul, items;
    }
    all
}

/// Returns the larger value, or NaN if there is one. +0 is more than −0.
fn maximum(a: f32, b: f32) -> f32 {
    match (a.is_nan() || b.is_nan(), a.total_cmp(&b).is_lt()) {
        (true, _) => f32::NAN,
        (_, true) => b,
        _ => a,
    }
}

fn maximum_of_halves(a: f16, b: f16) -> f16 {
    f16::from_f32(maximum(a.into(), b.into()))
}
