//! Histograms.

use kernel_primitives::algorithms::{histogram_even, histogram_ranges};
use kernel_primitives::f16;
use kernel_primitives::kernels::device::{HISTOGRAM_THREADS, HISTOGRAM_VECTORS};

use crate::case::{Case, Lengths};
use crate::data::items;
use crate::subject::{Short, Subject, exact, subject};

fn lengths(bytes: usize) -> Lengths {
    Lengths::near(&[HISTOGRAM_THREADS * HISTOGRAM_VECTORS * 16 / bytes, HISTOGRAM_THREADS])
}

/// Returns the number of bins: few, some, or more than there are counters for.
fn bins(case: &Case) -> usize {
    let mut param = case.param(7);
    let drawn = [1, 2, 3 + param.below(60), 256, 1000, 3000, 17_000][param.below(7)];
    case.usual([100, 17_000]).unwrap_or(drawn)
}

fn counted<T: Copy>(x: &[T], bins: usize, bin: impl Fn(T) -> Option<usize>) -> Vec<u64> {
    let mut counts = vec![0; bins];
    x.iter().filter_map(|&x| bin(x)).for_each(|bin| counts[bin] += 1);
    counts
}

/// Returns two ends among the values of the type.
fn ends(case: &Case, least: i64, greatest: i64) -> (i64, i64) {
    let mut param = case.param(8);
    if param.below(3) == 0 || case.usual([true; 2]).is_some() {
        return (least, greatest + 1);
    }
    let mut any = || least + (param.bits() % (greatest - least + 1) as u64) as i64;
    let (a, b) = (any(), any());
    (a.min(b), a.max(b) + 1)
}

pub fn subjects() -> Vec<Subject> {
    let mut all = Vec::new();
    macro_rules! even {
        ($($name:literal, $t:ident, $c:ty;)*) => {$(
            all.push(subject(
                &["histogram_even"],
                $name,
                lengths(size_of::<$t>()),
                |case| (items::<$t>(case, 0, case.len),),
                |case, (x,)| {
                    let (low, high) = ends(case, $t::MIN as i64, $t::MAX as i64);
                    let bins = bins(case);
                    let bin = |x: $t| {
                        let x = x as i64;
                        (low <= x && x < high).then(|| ((x - low) as u128 * bins as u128 / (high - low) as u128) as usize)
                    };
                    (exact(counted(x, bins, bin).into_iter().map(|count| count as $c).collect()),)
                },
                |case, place, (x,), (counts,)| {
                    let (low, high) = ends(case, $t::MIN as i64, $t::MAX as i64);
                    histogram_even(place.run(), x.get(), low, high, counts.exact())
                },
            ));
        )*};
    }
    even! { "u8, u32", u8, u32; "u16, u32", u16, u32; "u32, u32", u32, u32; "i32, u32", i32, u32; "i8, u64", i8, u64; }
    macro_rules! even_floats {
        ($($name:literal, $t:ident, $wide:ident, $from:expr;)*) => {$(
            all.push(subject(
                &["histogram_even"],
                $name,
                lengths(size_of::<$t>()),
                |case| (items::<$t>(case, 0, case.len),),
                |case, (x,)| {
                    let (low, high) = ends(case, -32_768, 32_767);
                    let (low, high) = ($wide::from($from(low as f32)), $wide::from($from(high as f32)));
                    let (bins, factor) = (bins(case), bins(case) as $wide / (high - low));
                    let bin = |x: $t| {
                        let x = $wide::from(x);
                        (low <= x && x < high).then(|| (((x - low) * factor) as usize).min(bins - 1))
                    };
                    (exact(counted(x, bins, bin).into_iter().map(|count| count as u32).collect()),)
                },
                |case, place, (x,), (counts,)| {
                    let (low, high) = ends(case, -32_768, 32_767);
                    histogram_even(place.run(), x.get(), $from(low as f32), $from(high as f32), counts.exact())
                },
            ));
        )*};
    }
    even_floats! { "f32, u32", f32, f32, f32::from; "f64, u32", f64, f64, f64::from; }
    all.push(half_bins());
    macro_rules! ranges {
        ($($name:literal, $t:ident;)*) => {$(
            all.push(subject(
                &["histogram_ranges"],
                $name,
                lengths(size_of::<$t>()),
                |case| {
                    let mut levels = items::<$t>(case, 1, bins(case) + 1);
                    #[allow(clippy::eq_op, reason = "NaN is not itself")]
                    levels.iter_mut().for_each(|x| if *x != *x { *x = 0 as $t });
                    levels.sort_by(|a, b| a.partial_cmp(b).expect("no NaN"));
                    (items::<$t>(case, 0, case.len), levels)
                },
                |case, (x, levels)| {
                    // This is the last level that is not above the item.
                    let bin = |x: $t| levels.partition_point(|&level| level <= x).checked_sub(1);
                    let inside = |x: $t| bin(x).filter(|&bin| bin < bins(case));
                    (exact(counted(x, bins(case), inside).into_iter().map(|count| count as u32).collect()),)
                },
                |_, place, (x, levels), (counts,)| histogram_ranges(place.run(), x.get(), levels.get(), counts.exact()),
            ));
        )*};
    }
    ranges! { "u8, u32", u8; "i32, u32", i32; "f32, u32", f32; "f64, u32", f64; }
    let shorts = |subject: Subject| match subject.covers[0] {
        "histogram_even" => subject.shorts(&[Short::Any]),
        "histogram_ranges" => subject.shorts(&[Short::Bins]),
        _ => subject,
    };
    all.into_iter().map(shorts).collect()
}

/// The items are halves, which are scaled in `f32`.
fn half_bins() -> Subject {
    let ends = |case: &Case| {
        let (low, high) = ends(case, -2000, 2000);
        (f16::from_f32(low as f32), f16::from_f32(high as f32 + 64.0))
    };
    subject(
        &["histogram_even"],
        "f16, u32",
        lengths(2),
        |case| (items::<f16>(case, 0, case.len),),
        move |case, (x,)| {
            let (low, high) = ends(case);
            let (bins, factor) = (bins(case), bins(case) as f32 / (high.to_f32() - low.to_f32()));
            let bin = |x: f16| {
                (low <= x && x < high).then(|| (((x.to_f32() - low.to_f32()) * factor) as usize).min(bins - 1))
            };
            (exact(counted(x, bins, bin).into_iter().map(|count| count as u32).collect()),)
        },
        move |case, place, (x,), (counts,)| {
            let (low, high) = ends(case);
            histogram_even(place.run(), x.get(), low, high, counts.exact())
        },
    )
}
