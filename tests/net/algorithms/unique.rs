//! The first of each run of equal items.

use kernel_primitives::algorithms::{unique, unique_by_key};

use super::select::lengths;
use crate::data::items;
use crate::kernels::Three;
use crate::reference::{at, runs};
use crate::subject::{Short, Subject, exact, subject};

pub fn subjects() -> Vec<Subject> {
    let mut all = Vec::new();
    macro_rules! subjects {
        ($($name:literal, $t:ty;)*) => {$(
            all.push(subject(
                &["unique"],
                $name,
                lengths::<$t>(),
                |case| (items::<$t>(case, 0, case.len),),
                |_, (x,)| {
                    let kept: Vec<$t> = runs(x).into_iter().map(|run| x[run.start]).collect();
                    let count = vec![kept.len() as u64];
                    (exact(kept), exact(count))
                },
                |_, place, (x,), (out, count)| unique(place.run(), x.get(), out.room(), count.room()),
            ));
        )*};
        ($($name:literal, $k:ty, $v:ty;)*) => {$(
            all.push(subject(
                &["unique_by_key"],
                $name,
                lengths::<$k>(),
                |case| (items::<$k>(case, 0, case.len), items::<$v>(case, 1, case.len)),
                |_, (keys, values)| {
                    let first: Vec<usize> = runs(keys).into_iter().map(|run| run.start).collect();
                    (exact(at(keys, &first)), exact(at(values, &first)), exact(vec![first.len() as u64]))
                },
                |_, place, (keys, values), (out, out_values, count)| {
                    unique_by_key(place.run(), keys.get(), values.get(), out.room(), out_values.room(), count.room())
                },
            ));
        )*};
    }
    subjects! { "f32", f32; "u64", u64; "Three", Three; }
    subjects! { "u32, f32", u32, f32; "u8, f64", u8, f64; }
    let shorts = |subject: Subject| match subject.covers[0] {
        "unique" => subject.shorts(&[Short::Fault]),
        "unique_by_key" => subject.shorts(&[Short::Fault, Short::Fault]),
        _ => subject,
    };
    all.into_iter().map(shorts).collect()
}
