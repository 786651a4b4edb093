//! Binary searches.

use std::cmp::Ordering;

use kernel_primitives::algorithms::{lower_bound, upper_bound};
use kernel_primitives::bf16;

use crate::case::{Case, Lengths};
use crate::data::items;
use crate::items::Item;
use crate::subject::{Subject, exact, subject};

/// Returns ascending items, with NaN after all numbers, and queries among them, which may be NaN.
fn inputs<T: Item + PartialOrd>(case: &Case) -> (Vec<T>, Vec<T>) {
    let mut sorted = items::<T>(case, 0, case.len);
    #[allow(clippy::eq_op, reason = "NaN is not itself")]
    let is_nan = |x: &T| *x != *x;
    sorted.sort_by(|a, b| is_nan(a).cmp(&is_nan(b)).then(a.partial_cmp(b).unwrap_or(Ordering::Equal)));
    let queries = case.usual([case.len; 2]).unwrap_or_else(|| case.param(10).below(case.len + 70));
    (sorted, items::<T>(case, case.param(9).below(2) as u64, queries))
}

pub fn subjects() -> Vec<Subject> {
    let mut all = Vec::new();
    macro_rules! subjects {
        ($($call:ident $name:literal, $t:ty, |$item:ident, $query:ident| $before:expr;)*) => {$(
            all.push(subject(
                &[stringify!($call)],
                $name,
                Lengths { most: 5000, ..Lengths::near(&[256, 1024]) },
                inputs::<$t>,
                |_, (sorted, queries)| {
                    let place = |&$query: &$t| sorted.partition_point(|&$item| $before) as u64;
                    (exact(queries.iter().map(place).collect()),)
                },
                |_, place, (sorted, queries), (out,)| $call(place.run(), sorted.get(), queries.get(), out.room()),
            ));
        )*};
    }
    subjects! {
        lower_bound "f32", f32, |item, query| item < query;
        lower_bound "u64", u64, |item, query| item < query;
        lower_bound "bf16", bf16, |item, query| item < query;
        // NaN comes after all items.
        upper_bound "f64", f64, |item, query| item <= query || query.is_nan();
        upper_bound "i32", i32, |item, query| item <= query;
    }
    all
}
