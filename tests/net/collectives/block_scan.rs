//! Scans of a block.

use kernel_primitives::functor::{Add, BinaryFn, Reducer};

use super::{Shape, blocks, total};
use crate::case::{Case, Lengths};
use crate::data::{items, small};
use crate::items::Item;
use crate::kernels::scan::block_scans;
use crate::kernels::{Compose, Latest, Map, Three};
use crate::reference::{exclusive, inclusive};
use crate::subject::{Subject, equal, subject};

const COVERS: &[&str] = &[
    "block_inclusive_scan",
    "block_exclusive_scan",
    "block_inclusive_scan_from",
    "block_exclusive_scan_from",
    "block_inclusive_scan_after",
    "block_exclusive_scan_after",
    "cumsum",
    "block_inclusive_scan_rounds",
    "block_exclusive_scan_rounds",
    "block_exclusive_scan_rounds_after",
];

/// Returns, for each register of each thread, the number of its item in the tile, in two rounds of two items.
fn in_rounds(threads: usize) -> Vec<usize> {
    let of_thread = |thread: usize| {
        let (warp, lane) = (thread / 32 * 32, thread % 32);
        let lanes = (threads - warp).min(32);
        (0..4).map(move |i| warp * 4 + (i / 2 * lanes + lane) * 2 + i % 2)
    };
    (0..threads).flat_map(of_thread).collect()
}

/// Returns the values that a tile's items get. Items that a partial tile lacks are zeros.
fn forms<T: Item>(
    items: &[T],
    threads: usize,
    (initial, identity): (T, T),
    op: impl Fn(T, T) -> T + Copy,
) -> Vec<[T; 11]> {
    let mut x = items.to_vec();
    x.resize(threads * 4, T::ZERO);
    let sum = total(&x, op).expect("no block is empty");
    let after = |before: T| {
        let before = exclusive(&x, before, op);
        (before.iter().zip(&x).map(|(&before, &x)| op(before, x)).collect::<Vec<_>>(), before)
    };
    let (upto, before) = (inclusive(&x, op), exclusive(&x, identity, op));
    let ((upto_from, before_from), (upto_after, before_after)) = (after(initial), after(sum));
    let (stripes, rounds) = (super::striped(threads, 4), in_rounds(threads));
    let results = (0..items.len()).map(|i| {
        let (stripe, round) = (stripes[i], rounds[i]);
        [
            upto[i],
            before[i],
            upto_from[i],
            before_from[i],
            upto_after[i],
            before_after[i],
            sum,
            upto[stripe],
            upto_from[round],
            before_from[round],
            before_after[round],
        ]
    });
    results.collect()
}

/// Returns the most threads of a block.
const fn most(threads: usize) -> usize {
    if threads == 0 { 1024 } else { threads }
}

fn lengths(case: &Case, most: usize) -> usize {
    case.len % (12 * Shape::of(case, most).threads() + 2)
}

pub fn subjects() -> Vec<Subject> {
    let mut all = Vec::new();
    macro_rules! forms_of {
        ($($name:literal, $t:ty, $op:ident, $threads:literal, $plain:expr, $items:ident;)*) => {$(
            all.push(subject(
                COVERS,
                $name,
                Lengths::near(&[128, 512, 1024]).most(5000),
                |case| ($items::<$t>(case, 0, lengths(case, most($threads))),),
                |case, (x,)| {
                    let threads = Shape::of(case, most($threads)).threads();
                    let with = ($items::<$t>(&case.fixed(), 9, 1)[0], Reducer::<$t>::identity(&$op));
                    (equal(x.chunks(threads * 4).flat_map(|tile| forms(tile, threads, with, $plain)).collect()),)
                },
                |case, place, (x,), (out,)| {
                    let (shape, initial) = (Shape::of(case, most($threads)), $items::<$t>(&case.fixed(), 9, 1)[0]);
                    block_scans::<$t, $op, $threads>::launch(
                        place.stream, shape.dims(blocks(case)), initial, x.get(), out.exact(), $op,
                    )
                },
            ));
        )*};
    }
    forms_of! {
        "f32, Add", f32, Add, 0, |a, b| a + b, small;
        "Three, Latest", Three, Latest, 0, |a, b| Latest.apply(a, b), items;
        "Map<u64>, Compose, 256", Map<u64>, Compose, 256, |a, b| Compose.apply(a, b), items;
    }
    all
}
