//! Selections and partitions.

use kernel_primitives::Element;
use kernel_primitives::algorithms::{partition, select_flagged, select_if, stable_partition};
use kernel_primitives::functor::{GreaterThan, Identity, LessThan, bind_second};
use kernel_primitives::input::Span;
use kernel_primitives::kernels::device::StagedTiles;

use crate::case::{Case, Lengths};
use crate::data::{flags, items};
use crate::items::Item;
use crate::kernels::{OddKey, Three};
use crate::subject::{Short, Subject, exact, subject};

/// Returns lengths near tiles of many items and of few.
pub fn lengths<T: Element>() -> Lengths {
    let tile = |len| StagedTiles::new::<Span<T>>(size_of::<T>(), len, 1).tile;
    Lengths::near(&[tile(1 << 22), tile(1), tile(3000)])
}

/// Returns the value that items are compared with.
fn limit<T: Item>(case: &Case) -> T {
    let drawn = [100, 30_000, 32_768, 60_000][case.param(1).below(4)];
    T::of(crate::data::Level::At(case.usual([30_000, 32_768]).unwrap_or(drawn)))
}

/// Returns the items for which `kept` is true, in order, and the other items.
fn parted<T: Copy>(x: &[T], kept: impl Fn(usize) -> bool) -> [Vec<T>; 2] {
    [true, false].map(|which| (0..x.len()).filter(|&i| kept(i) == which).map(|i| x[i]).collect())
}

fn reversed<T>(mut x: Vec<T>) -> Vec<T> {
    x.reverse();
    x
}

macro_rules! selections {
    ($($call:ident $name:literal, $t:ty, |$case:ident| $predicate:expr, |$x:ident| $kept:expr, |$yes:ident, $no:ident| $out:expr;)*) => {
        vec![$(subject(
            &[stringify!($call)],
            $name,
            lengths::<$t>(),
            |case| (items::<$t>(case, 0, case.len),),
            |$case, (x,)| {
                let [$yes, $no] = parted(x, |i| { let $x = x[i]; $kept });
                let count = vec![$yes.len() as u64];
                (exact($out), exact(count))
            },
            |$case, place, (x,), (out, count)| $call(place.run(), x.get(), $predicate, out.room(), count.room()),
        )),*]
    };
}

pub fn subjects() -> Vec<Subject> {
    let mut all = selections! {
        select_if "f32, LessThan", f32, |case| bind_second(LessThan, limit::<f32>(case)),
            |x| x < limit::<f32>(case), |yes, _no| yes;
        select_if "i32, GreaterThan", i32, |case| bind_second(GreaterThan, limit::<i32>(case)),
            |x| x > limit::<i32>(case), |yes, _no| yes;
        select_if "Three, OddKey", Three, |_case| OddKey, |x| x.key % 2 == 1, |yes, _no| yes;
        partition "u32, LessThan", u32, |case| bind_second(LessThan, limit::<u32>(case)),
            |x| x < limit::<u32>(case), |yes, no| [yes, reversed(no)].concat();
        partition "bool, Identity", bool, |_case| Identity, |x| x, |yes, no| [yes, reversed(no)].concat();
        stable_partition "f32, LessThan", f32, |case| bind_second(LessThan, limit::<f32>(case)),
            |x| x < limit::<f32>(case), |yes, no| [yes, no].concat();
    };
    all.push(subject(
        &["select_flagged"],
        "u32, bool",
        lengths::<u32>(),
        |case| (items::<u32>(case, 0, case.len), flags(case, 1, case.len)),
        |_, (x, flags)| {
            let [kept, _] = parted(x, |i| flags[i]);
            let count = vec![kept.len() as u64];
            (exact(kept), exact(count))
        },
        |_, place, (x, flags), (out, count)| {
            select_flagged(place.run(), x.get(), flags.get(), out.room(), count.room())
        },
    ));
    all.push(subject(
        &["select_flagged"],
        "u64, u8",
        lengths::<u64>(),
        // There are more flags than items, or fewer.
        |case| {
            let flags = case.len + case.param(2).below(5);
            (items::<u64>(case, 0, case.len + 2), items::<u8>(case, 1, flags).iter().map(|x| x & 3).collect::<Vec<_>>())
        },
        |_, (x, flags)| {
            let [kept, _] = parted(&x[..x.len().min(flags.len())], |i| flags[i] != 0);
            let count = vec![kept.len() as u64];
            (exact(kept), exact(count))
        },
        |_, place, (x, flags), (out, count)| {
            select_flagged(place.run(), x.get(), flags.get(), out.room(), count.room())
        },
    ));
    let shorts = |subject: Subject| match subject.covers[0] {
        "select_if" | "select_flagged" => subject.shorts(&[Short::Fault]),
        _ => subject,
    };
    all.into_iter().map(shorts).collect()
}
