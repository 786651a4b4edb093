//! Reductions and scans of runs of equal keys.

use kernel_primitives::algorithms::{exclusive_scan_by_key, inclusive_scan_by_key, reduce_by_key, run_length_encode};
use kernel_primitives::functor::{Add, BinaryFn};
use kernel_primitives::input::Span;
use kernel_primitives::kernels::device::{ReduceByKeyStorage, RunLengthItems, ScanByKeyItems};

use crate::case::Lengths;
use crate::data::{floats, items, small, sum, sums, sums_before};
use crate::kernels::{Compose, Map, Three, Triangular};
use crate::reference::{exclusive, inclusive, runs};
use crate::subject::{Short, Subject, exact, near, subject};

pub fn subjects() -> Vec<Subject> {
    let mut all = Vec::new();
    macro_rules! reductions {
        ($($name:literal, $k:ty, $v:ty, $op:expr, $plain:expr, $items:ident;)*) => {$(
            all.push(subject(
                &["reduce_by_key"],
                $name,
                Lengths::near(&[
                    ReduceByKeyStorage::<Span<$k>, Span<$v>>::tiles(1 << 22, 1).tile,
                    ReduceByKeyStorage::<Span<$k>, Span<$v>>::tiles(1, 1 << 15).tile,
                ]),
                |case| (items::<$k>(case, 0, case.len), $items::<$v>(case, 1, case.len)),
                |_, (keys, values)| {
                    let (mut out_keys, mut out_values) = (Vec::new(), Vec::new());
                    for run in runs(keys) {
                        out_keys.push(keys[run.start]);
                        let plain: fn($v, $v) -> $v = $plain;
                        out_values.push(values[run].iter().copied().reduce(plain).expect("no run is empty"));
                    }
                    let count = vec![out_keys.len() as u64];
                    (exact(out_keys), exact(out_values), exact(count))
                },
                |_, place, (keys, values), (out, sums, count)| {
                    reduce_by_key(place.run(), keys.get(), values.get(), $op, out.room(), sums.room(), count.room())
                },
            ));
        )*};
    }
    reductions! {
        "u32, f32, Add", u32, f32, Add, |a, b| a + b, small;
        "u32, u32, Add", u32, u32, Add, u32::wrapping_add, items;
        "u8, Triangular, Compose", u8, Triangular, Compose, |a, b| Compose.apply(a, b), items;
        "Three, u64, Add", Three, u64, Add, u64::wrapping_add, items;
    }
    all.push(subject(
        &["reduce_by_key"],
        "u32, f32, Add, reals",
        Lengths::near(&[ReduceByKeyStorage::<Span<u32>, Span<f32>>::tiles(1 << 22, 1).tile]),
        |case| (items::<u32>(case, 0, case.len), floats(case, 1, case.len)),
        |_, (keys, values)| {
            let (runs, count) = (runs(keys), vec![runs(keys).len() as u64]);
            let first = runs.iter().map(|run| keys[run.start]).collect();
            (exact(first), near::<f32>(runs.into_iter().map(|run| sum(&values[run])).collect()), exact(count))
        },
        |_, place, (keys, values), (out, sums, count)| {
            reduce_by_key(place.run(), keys.get(), values.get(), Add, out.room(), sums.room(), count.room())
        },
    ));
    macro_rules! encodings {
        ($($name:literal, $t:ty, $l:ty;)*) => {$(
            all.push(subject(
                &["run_length_encode"],
                $name,
                Lengths::near(&[
                    RunLengthItems::<Span<$t>>::tiles(1 << 22, 1).tile,
                    RunLengthItems::<Span<$t>>::tiles(1, 1 << 15).tile,
                ]),
                |case| (items::<$t>(case, 0, case.len),),
                |_, (x,)| {
                    let runs = runs(x);
                    let first = runs.iter().map(|run| x[run.start]).collect();
                    let lengths = runs.iter().map(|run| run.len() as $l).collect();
                    (exact::<$t>(first), exact::<$l>(lengths), exact(vec![runs.len() as u64]))
                },
                |_, place, (x,), (out, lengths, count)| {
                    run_length_encode(place.run(), x.get(), out.room(), lengths.room(), count.room())
                },
            ));
        )*};
    }
    encodings! {
        "f32, u32", f32, u32;
        "u64, u32", u64, u32;
        "bool, u64", bool, u64;
    }
    macro_rules! scans {
        ($($name:literal, $k:ty, $v:ty, $op:expr, $plain:expr, $items:ident;)*) => {$(
            all.push(subject(
                &["inclusive_scan_by_key"],
                $name,
                Lengths::near(&[
                    ScanByKeyItems::<Span<$k>, Span<$v>>::tiles(1 << 22, 1).tile,
                    ScanByKeyItems::<Span<$k>, Span<$v>>::tiles(1, 1 << 15).tile,
                ]),
                |case| (items::<$k>(case, 0, case.len), $items::<$v>(case, 1, case.len)),
                |_, (keys, values)| {
                    let upto = runs(keys).into_iter().flat_map(|run| inclusive(&values[run], $plain));
                    (exact::<$v>(upto.collect()),)
                },
                |_, place, (keys, values), (out,)| {
                    inclusive_scan_by_key(place.run(), keys.get(), values.get(), $op, out.room())
                },
            ));
        )*};
        (exclusive $($name:literal, $k:ty, $v:ty, $first:expr, $op:expr, $plain:expr, $items:ident;)*) => {$(
            all.push(subject(
                &["exclusive_scan_by_key"],
                $name,
                Lengths::near(&[
                    ScanByKeyItems::<Span<$k>, Span<$v>>::tiles(1 << 22, 1).tile,
                    ScanByKeyItems::<Span<$k>, Span<$v>>::tiles(1, 1 << 15).tile,
                ]),
                |case| (items::<$k>(case, 0, case.len), $items::<$v>(case, 1, case.len)),
                |_, (keys, values)| {
                    let before = runs(keys).into_iter().flat_map(|run| exclusive(&values[run], $first, $plain));
                    (exact::<$v>(before.collect()),)
                },
                |_, place, (keys, values), (out,)| {
                    exclusive_scan_by_key(place.run(), keys.get(), values.get(), $first, $op, out.room())
                },
            ));
        )*};
    }
    scans! {
        "u32, f32, Add", u32, f32, Add, |a, b| a + b, small;
        "u64, Map<u32>, Compose", u64, Map<u32>, Compose, |a, b| Compose.apply(a, b), items;
    }
    scans! {
        exclusive
        "i32, f32, Add", i32, f32, -0.0, Add, |a, b| a + b, small;
        "u32, u32, Add", u32, u32, 77, Add, u32::wrapping_add, items;
    }
    all.push(subject(
        &["inclusive_scan_by_key"],
        "u32, f32, Add, reals",
        Lengths::near(&[ScanByKeyItems::<Span<u32>, Span<f32>>::tiles(1 << 22, 1).tile]).most(20_000),
        |case| (items::<u32>(case, 0, case.len), floats(case, 1, case.len)),
        |_, (keys, values)| (near::<f32>(runs(keys).into_iter().flat_map(|run| sums(&values[run])).collect()),),
        |_, place, (keys, values), (out,)| {
            inclusive_scan_by_key(place.run(), keys.get(), values.get(), Add, out.room())
        },
    ));
    all.push(subject(
        &["exclusive_scan_by_key"],
        "u32, f32, Add, reals",
        Lengths::near(&[ScanByKeyItems::<Span<u32>, Span<f32>>::tiles(1 << 22, 1).tile]).most(20_000),
        |case| (items::<u32>(case, 0, case.len), floats(case, 1, case.len)),
        |_, (keys, values)| {
            let before = runs(keys).into_iter().flat_map(|run| sums_before(0.3, &values[run]));
            (near::<f32>(before.collect()),)
        },
        |_, place, (keys, values), (out,)| {
            exclusive_scan_by_key(place.run(), keys.get(), values.get(), 0.3, Add, out.room())
        },
    ));
    let shorts = |subject: Subject| match subject.covers[0] {
        "reduce_by_key" | "run_length_encode" => subject.shorts(&[Short::Fault, Short::Fault]),
        _ => subject,
    };
    all.into_iter().map(shorts).collect()
}
