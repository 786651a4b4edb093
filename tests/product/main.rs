//! Every algorithm with every type and operator that it is ready for, without an `instantiate!`, against plain Rust.
//!
//! Lengths are small and values are whole numbers that each type has: what is tested is that the kernels are there and fit the types.
//!
//! All types compile, which needs their kernels. One of them runs, and some pairs: the emulated kernels of each cost the compiler minutes.

use kernel_primitives::algorithms::*;
use kernel_primitives::element::FftFloat;
use kernel_primitives::functor::{
    Add, ArgMax, ArgMin, Comparator, Greater, GreaterThan, Identity, Less, LessThan, Max, MaxOf, Mean, Min, MinOf, Mul,
    NotEqual, Prod, Reducer, Sub, Sum, bind_second, of_pair,
};
use kernel_primitives::input::{counting, zip};
use kernel_primitives::{Buffer, Complex, Device, Element, KernelParam, Result, SortKey, Stream, bf16, f16};

/// A number, from and to what all types have in common.
trait Small: Element {
    fn of(n: i64) -> Self;
    fn get(self) -> f64;
}

macro_rules! small {
    ($($t:ty: |$n:ident| $of:expr, |$x:ident| $get:expr;)*) => {$(
        impl Small for $t {
            fn of($n: i64) -> Self {
                $of
            }
            fn get(self) -> f64 {
                let $x = self;
                $get
            }
        }
    )*};
}
small! {
    i8: |n| n as i8, |x| x as f64;
    i16: |n| n as i16, |x| x as f64;
    i32: |n| n as i32, |x| x as f64;
    i64: |n| n, |x| x as f64;
    u8: |n| n as u8, |x| x as f64;
    u16: |n| n as u16, |x| x as f64;
    u32: |n| n as u32, |x| x as f64;
    u64: |n| n as u64, |x| x as f64;
    f16: |n| f16::from_f64(n as f64), |x| x.to_f64();
    bf16: |n| bf16::from_f64(n as f64), |x| x.to_f64();
    f32: |n| n as f32, |x| x as f64;
    f64: |n| n as f64, |x| x;
}

const LEN: usize = 20;

/// Twenty numbers whose mean is 3.
const X: [i64; LEN] = [3, 1, 4, 1, 5, 5, 2, 6, 5, 3, 0, 5, 0, 2, 4, 4, 0, 7, 1, 2];

/// Runs of equal keys.
const KEYS: [i64; LEN] = [7, 7, 7, 2, 2, 9, 9, 9, 9, 9, 1, 2, 2, 3, 3, 3, 3, 3, 3, 0];

/// Segments, of which one is empty.
const OFFSETS: [u32; 5] = [0, 4, 4, 9, 20];

fn segments() -> impl Iterator<Item = std::ops::Range<usize>> {
    OFFSETS.windows(2).map(|ends| ends[0] as usize..ends[1] as usize)
}

/// Ranges of equal keys.
fn runs() -> Vec<std::ops::Range<usize>> {
    let mut begin = 0;
    let range = |run: &[i64]| {
        begin += run.len();
        begin - run.len()..begin
    };
    KEYS.chunk_by(|a, b| a == b).map(range).collect()
}

fn stream() -> Result<Stream> {
    Device::auto()?.stream()
}

fn buffer<T: Small>(stream: &Stream, x: &[i64]) -> Result<Buffer<T>> {
    stream.buffer_from(&x.iter().map(|&n| T::of(n)).collect::<Vec<_>>())
}

/// The first elements of a buffer are these numbers.
#[track_caller]
fn check<T: Small>(found: &Buffer<T>, expected: impl IntoIterator<Item = i64>) {
    let expected: Vec<f64> = expected.into_iter().map(|n| T::of(n).get()).collect();
    let found: Vec<f64> = found.to_vec().expect("the launch is right").into_iter().map(T::get).collect();
    assert_eq!(found[..expected.len()], expected, "{}", std::any::type_name::<T>());
}

/// What is up to each number, or before it.
fn scanned(x: &[i64], first: Option<i64>, op: fn(i64, i64) -> i64) -> Vec<i64> {
    let mut total = first;
    let step = |&n: &i64| {
        let before = total;
        total = Some(total.map_or(n, |total| op(total, n)));
        if first.is_some() { before } else { total }.expect("one of the two")
    };
    x.iter().map(step).collect()
}

/// The places of numbers in an order; stable.
fn sorted(x: &[i64], descending: bool) -> Vec<usize> {
    let mut places: Vec<usize> = (0..x.len()).collect();
    places.sort_by_key(|&i| if descending { -x[i] } else { x[i] });
    places
}

fn at(x: &[i64], places: &[usize]) -> Vec<i64> {
    places.iter().map(|&i| x[i]).collect()
}

fn min(a: i64, b: i64) -> i64 {
    a.min(b)
}

fn max(a: i64, b: i64) -> i64 {
    a.max(b)
}

fn add(a: i64, b: i64) -> i64 {
    a + b
}

macro_rules! numbers {
    ($(#[$test:meta] $module:ident: $t:ty, |$n:ident| $bound:expr;)*) => {$(
        mod $module {
            use super::*;

            type T = $t;

            #[$test]
            fn transforms() -> Result<()> {
                let s = stream()?;
                let (x, mut out) = (buffer::<T>(&s, &X)?, s.buffer_zeroed::<T>(LEN)?);
                transform(&s, &x, Identity, &mut out)?;
                check(&out, X);
                transform(&s, zip(&x, &x), of_pair(Add), &mut out)?;
                check(&out, X.map(|n| n + n));
                transform(&s, zip(&x, &x), of_pair(Sub), &mut out)?;
                check(&out, [0; LEN]);
                transform(&s, zip(&x, &x), of_pair(Mul), &mut out)?;
                check(&out, X.map(|n| n * n));
                fill(&s, T::of(9), &mut out)?;
                check(&out, [9; LEN]);
                let places: Vec<u32> = (0..LEN as u32).rev().collect();
                let places = s.buffer_from(&places)?;
                gather(&s, &x, &places, &mut out)?;
                check(&out, X.into_iter().rev());
                let mut back = s.buffer_zeroed::<T>(LEN)?;
                scatter(&s, &out, &places, &mut back)?;
                check(&back, X);
                adjacent_difference(&s, &x, Sub, &mut out)?;
                check(&out, (0..LEN).map(|i| if i == 0 { X[0] } else { X[i] - X[i - 1] }));
                Ok(())
            }

            #[$test]
            fn reductions() -> Result<()> {
                let s = stream()?;
                let x = buffer::<T>(&s, &X)?;
                let few = buffer::<T>(&s, &[2, 3, 1, 4])?;
                macro_rules! one {
                    ($x:expr, $op:expr) => {{
                        let mut out = s.buffer_zeroed(1)?;
                        reduce(&s, $x, $op, &mut out)?;
                        out
                    }};
                }
                check(&one!(&x, Sum), [60]);
                check(&one!(&few, Prod), [24]);
                assert_eq!(one!(&x, Mean).to_vec()?[0].get(), 3.0);
                check(&one!(&x, MinOf), [0]);
                check(&one!(&x, MaxOf), [7]);
                let (least, most) = (one!(&x, ArgMin).to_vec()?[0], one!(&x, ArgMax).to_vec()?[0]);
                assert_eq!((least.value.get(), least.index(), most.value.get(), most.index()), (0.0, 10, 7.0, 17));

                let offsets = s.buffer_from(&OFFSETS)?;
                let mut sums = s.buffer_zeroed(4)?;
                segmented_reduce(&s, &x, &offsets, Sum, &mut sums)?;
                check(&sums, segments().map(|range| X[range].iter().sum()));
                // An empty segment has the type's limits.
                let ends = s.buffer_from(&[0u32, 4, 9, 20])?;
                let mut out = s.buffer_zeroed::<T>(3)?;
                let ranges = || segments().filter(|range| !range.is_empty());
                segmented_reduce(&s, &x, &ends, MinOf, &mut out)?;
                check(&out, ranges().map(|range| X[range].iter().copied().fold(9, min)));
                segmented_reduce(&s, &x, &ends, MaxOf, &mut out)?;
                check(&out, ranges().map(|range| X[range].iter().copied().fold(0, max)));
                Ok(())
            }

            #[$test]
            fn scans() -> Result<()> {
                let s = stream()?;
                let (x, mut out) = (buffer::<T>(&s, &X)?, s.buffer_zeroed::<T>(LEN)?);
                inclusive_scan(&s, &x, Add, &mut out)?;
                check(&out, scanned(&X, None, add));
                inclusive_scan(&s, &x, Min, &mut out)?;
                check(&out, scanned(&X, None, min));
                inclusive_scan(&s, &x, Max, &mut out)?;
                check(&out, scanned(&X, None, max));
                exclusive_scan(&s, &x, T::of(2), Add, &mut out)?;
                check(&out, scanned(&X, Some(2), add));
                let offsets = s.buffer_from(&OFFSETS)?;
                segmented_inclusive_scan(&s, &x, &offsets, Add, &mut out)?;
                check(&out, segments().flat_map(|range| scanned(&X[range], None, add)));
                segmented_exclusive_scan(&s, &x, &offsets, T::of(1), Add, &mut out)?;
                check(&out, segments().flat_map(|range| scanned(&X[range], Some(1), add)));
                Ok(())
            }

            #[$test]
            fn radix_sorts() -> Result<()> {
                let s = stream()?;
                let (x, mut out) = (buffer::<T>(&s, &X)?, s.buffer_zeroed::<T>(LEN)?);
                sort_keys(&s, &x, &mut out, Less)?;
                check(&out, at(&X, &sorted(&X, false)));
                sort_keys(&s, &x, &mut out, Greater)?;
                check(&out, at(&X, &sorted(&X, true)));
                Ok(())
            }

            #[$test]
            fn sorts_by_order() -> Result<()> {
                let s = stream()?;
                let (x, mut out) = (buffer::<T>(&s, &X)?, s.buffer_zeroed::<T>(LEN)?);
                let (offsets, mut from) = (s.buffer_from(&OFFSETS)?, s.buffer_zeroed::<u32>(LEN)?);
                macro_rules! order {
                    ($order:expr, $descending:literal) => {{
                        let places = sorted(&X, $descending);
                        sort_by(&s, &x, $order, &mut out)?;
                        check(&out, at(&X, &places));
                        let a = buffer::<T>(&s, &at(&X[..7], &sorted(&X[..7], $descending)))?;
                        let b = buffer::<T>(&s, &at(&X[7..], &sorted(&X[7..], $descending)))?;
                        merge(&s, &a, &b, $order, &mut out)?;
                        check(&out, at(&X, &places));
                        top_k(&s, &x, 3, $order, &mut out)?;
                        check(&out, at(&X, &places[..3]));
                        top_k_pairs(&s, &x, counting(0u32, LEN), 3, $order, &mut out, &mut from)?;
                        check(&from, places[..3].iter().map(|&i| i as i64));

                        segmented_sort(&s, &x, &offsets, $order, &mut out)?;
                        check(&out, segments().flat_map(|range| at(&X[range.clone()], &sorted(&X[range], $descending))));
                    }};
                }
                order!(Less, false);
                order!(Greater, true);
                Ok(())
            }

            #[$test]
            fn selections() -> Result<()> {
                let s = stream()?;
                let (x, mut out) = (buffer::<T>(&s, &X)?, s.buffer_zeroed::<T>(LEN)?);
                let mut count = s.buffer_zeroed::<u64>(1)?;
                let three = T::of(3);
                let kept = |predicate: fn(i64) -> bool| X.into_iter().filter(move |&n| predicate(n));
                select_if(&s, &x, bind_second(LessThan, three), &mut out, &mut count)?;
                check(&out, kept(|n| n < 3));
                select_if(&s, &x, bind_second(GreaterThan, three), &mut out, &mut count)?;
                check(&out, kept(|n| n > 3));
                select_if(&s, &x, bind_second(NotEqual, three), &mut out, &mut count)?;
                check(&out, kept(|n| n != 3));
                check(&count, [kept(|n| n != 3).count() as i64]);
                let flags = s.buffer_from(&X.map(|n| n % 2 == 0))?;
                select_flagged(&s, &x, &flags, &mut out, &mut count)?;
                check(&out, kept(|n| n % 2 == 0));
                partition(&s, &x, bind_second(LessThan, three), &mut out, &mut count)?;
                check(&out, kept(|n| n < 3).chain(kept(|n| n >= 3).collect::<Vec<_>>().into_iter().rev()));
                stable_partition(&s, &x, bind_second(LessThan, three), &mut out, &mut count)?;
                check(&out, kept(|n| n < 3).chain(kept(|n| n >= 3)));

                let keys = buffer::<T>(&s, &KEYS)?;
                let firsts = || runs().into_iter().map(|range| KEYS[range.start]);
                unique(&s, &keys, &mut out, &mut count)?;
                check(&out, firsts());
                let mut lengths = s.buffer_zeroed::<u32>(LEN)?;
                run_length_encode(&s, &keys, &mut out, &mut lengths, &mut count)?;
                check(&out, firsts());
                check(&lengths, runs().into_iter().map(|range| range.len() as i64));
                Ok(())
            }

            #[$test]
            fn bins_and_searches() -> Result<()> {
                let s = stream()?;
                let (x, mut counts) = (buffer::<T>(&s, &X)?, s.buffer_zeroed::<u32>(4)?);
                let counted = |range: std::ops::Range<i64>| X.iter().filter(|n| range.contains(n)).count() as i64;
                let bound = |$n: i64| $bound;
                histogram_even(&s, &x, bound(0), bound(8), &mut counts)?;
                check(&counts, (0..4).map(|bin| counted(2 * bin..2 * bin + 2)));
                let levels = [0, 1, 3, 4, 7];
                histogram_ranges(&s, &x, &buffer::<T>(&s, &levels)?, &mut counts)?;
                check(&counts, levels.windows(2).map(|ends| counted(ends[0]..ends[1])));

                let ascending = at(&X, &sorted(&X, false));
                let (items, mut places) = (buffer::<T>(&s, &ascending)?, s.buffer_zeroed::<u64>(LEN)?);
                lower_bound(&s, &items, &x, &mut places)?;
                check(&places, X.map(|n| ascending.iter().filter(|&&item| item < n).count() as i64));
                upper_bound(&s, &items, &x, &mut places)?;
                check(&places, X.map(|n| ascending.iter().filter(|&&item| item <= n).count() as i64));
                Ok(())
            }
        }
    )*};
}

numbers! {
    #[allow(dead_code)]
    of_i8: i8, |n| n;
    #[allow(dead_code)]
    of_i16: i16, |n| n;
    #[allow(dead_code)]
    of_i32: i32, |n| n;
    #[allow(dead_code)]
    of_i64: i64, |n| n as i128;
    #[allow(dead_code)]
    of_u8: u8, |n| n;
    #[allow(dead_code)]
    of_u16: u16, |n| n;
    #[allow(dead_code)]
    of_u32: u32, |n| n;
    #[allow(dead_code)]
    of_u64: u64, |n| n as i128;
    #[allow(dead_code)]
    of_f16: f16, |n| f16::of(n);
    #[allow(dead_code)]
    of_bf16: bf16, |n| bf16::of(n);
    #[test]
    of_f32: f32, |n| n as f32;
    #[allow(dead_code)]
    of_f64: f64, |n| n as f64;
}

fn radix_sort_of_pairs<K, V, Tag>() -> Result<()>
where
    K: Small + SortKey + SortPairs<V, Tag>,
    V: Small,
{
    let s = stream()?;
    let (x, mut out) = (buffer::<K>(&s, &X)?, s.buffer_zeroed::<K>(LEN)?);
    let (values, mut values_out) = (buffer::<V>(&s, &KEYS)?, s.buffer_zeroed::<V>(LEN)?);
    sort_pairs(&s, &x, &values, &mut out, &mut values_out, Less)?;
    check(&out, at(&X, &sorted(&X, false)));
    check(&values_out, at(&KEYS, &sorted(&X, false)));
    sort_pairs(&s, &x, &values, &mut out, &mut values_out, Greater)?;
    check(&out, at(&X, &sorted(&X, true)));
    check(&values_out, at(&KEYS, &sorted(&X, true)));
    Ok(())
}

/// With `Less` or `Greater`, which is descending.
fn sorts_of_pairs_by_order<K, V, O, A, B>(order: O, descending: bool) -> Result<()>
where
    K: Small + SortKey + SortPairsBy<V, O, A> + MergePairs<K, V, V, O, B>,
    V: Small,
    O: Comparator<K> + KernelParam,
{
    let s = stream()?;
    let (x, mut out) = (buffer::<K>(&s, &X)?, s.buffer_zeroed::<K>(LEN)?);
    let (values, mut values_out) = (buffer::<V>(&s, &KEYS)?, s.buffer_zeroed::<V>(LEN)?);
    let places = sorted(&X, descending);
    sort_pairs_by(&s, &x, &values, order, &mut out, &mut values_out)?;
    check(&out, at(&X, &places));
    check(&values_out, at(&KEYS, &places));

    let first = sorted(&X[..7], descending);
    let second: Vec<usize> = sorted(&X[7..], descending).into_iter().map(|i| 7 + i).collect();
    let [a, b] =
        [&first, &second].map(|places| (buffer::<K>(&s, &at(&X, places)), buffer::<V>(&s, &at(&KEYS, places))));
    merge_pairs(&s, (&a.0?, &a.1?), (&b.0?, &b.1?), order, &mut out, &mut values_out)?;
    check(&out, at(&X, &places));
    check(&values_out, at(&KEYS, &places));
    Ok(())
}

fn sorts_of_segments_with_values<K, V, A, B>() -> Result<()>
where
    K: Small + SortKey + SegmentedSortPairs<V, u32, Less, A> + SegmentedSortPairs<V, u32, Greater, B>,
    V: Small,
{
    let s = stream()?;
    let (x, mut out) = (buffer::<K>(&s, &X)?, s.buffer_zeroed::<K>(LEN)?);
    let (values, mut values_out) = (buffer::<V>(&s, &KEYS)?, s.buffer_zeroed::<V>(LEN)?);
    let offsets = s.buffer_from(&OFFSETS)?;
    let places = |descending| {
        segments()
            .flat_map(move |range| sorted(&X[range.clone()], descending).into_iter().map(move |i| range.start + i))
    };
    segmented_sort_pairs(&s, &x, &values, &offsets, Less, &mut out, &mut values_out)?;
    check(&out, places(false).map(|i| X[i]));
    check(&values_out, places(false).map(|i| KEYS[i]));
    segmented_sort_pairs(&s, &x, &values, &offsets, Greater, &mut out, &mut values_out)?;
    check(&out, places(true).map(|i| X[i]));
    check(&values_out, places(true).map(|i| KEYS[i]));
    Ok(())
}

fn firsts_of_runs<K, V, Tag>() -> Result<()>
where
    K: Small + PartialEq + UniqueByKey<V, Tag>,
    V: Small,
{
    let s = stream()?;
    let (keys, mut out) = (buffer::<K>(&s, &KEYS)?, s.buffer_zeroed::<K>(LEN)?);
    let (values, mut values_out) = (buffer::<V>(&s, &X)?, s.buffer_zeroed::<V>(LEN)?);
    let mut count = s.buffer_zeroed::<u64>(1)?;
    unique_by_key(&s, &keys, &values, &mut out, &mut values_out, &mut count)?;
    check(&out, runs().into_iter().map(|range| KEYS[range.start]));
    check(&values_out, runs().into_iter().map(|range| X[range.start]));
    Ok(())
}

fn sums_of_runs<K, V, A, B, C>() -> Result<()>
where
    K: Small + PartialEq + ReduceByKey<V, Add, A> + InclusiveScanByKey<V, Add, B> + ExclusiveScanByKey<V, Add, C>,
    V: Small,
    Add: Reducer<V>,
{
    reduction_of_runs::<K, V, Add, A>(Add, add)?;
    let s = stream()?;
    let (keys, x, mut out) = (buffer::<K>(&s, &KEYS)?, buffer::<V>(&s, &X)?, s.buffer_zeroed::<V>(LEN)?);
    inclusive_scan_by_key(&s, &keys, &x, Add, &mut out)?;
    check(&out, runs().into_iter().flat_map(|range| scanned(&X[range], None, add)));
    exclusive_scan_by_key(&s, &keys, &x, V::of(1), Add, &mut out)?;
    check(&out, runs().into_iter().flat_map(|range| scanned(&X[range], Some(1), add)));
    Ok(())
}

fn extremes_of_runs<K, V, A, B>() -> Result<()>
where
    K: Small + PartialEq + ReduceByKey<V, Min, A> + ReduceByKey<V, Max, B>,
    V: Small,
    Min: Reducer<V>,
    Max: Reducer<V>,
{
    reduction_of_runs::<K, V, Min, A>(Min, min)?;
    reduction_of_runs::<K, V, Max, B>(Max, max)
}

fn reduction_of_runs<K, V, R, Tag>(op: R, same: fn(i64, i64) -> i64) -> Result<()>
where
    K: Small + PartialEq + ReduceByKey<V, R, Tag>,
    V: Small,
    R: Reducer<V> + KernelParam,
{
    let s = stream()?;
    let (keys, mut firsts) = (buffer::<K>(&s, &KEYS)?, s.buffer_zeroed::<K>(LEN)?);
    let (x, mut out, mut count) = (buffer::<V>(&s, &X)?, s.buffer_zeroed::<V>(LEN)?, s.buffer_zeroed::<u64>(1)?);
    reduce_by_key(&s, &keys, &x, op, &mut firsts, &mut out, &mut count)?;
    check(&firsts, runs().into_iter().map(|range| KEYS[range.start]));
    check(&out, runs().into_iter().map(|range| X[range].iter().copied().reduce(same).expect("a run has items")));
    check(&count, [runs().len() as i64]);
    Ok(())
}

/// Calls `f::<K, V, _, …>(…)` for each key with each value.
macro_rules! each_pair {
    (|$k:ident, $v:ident| $call:expr; [$($key:ty)*] $values:tt) => {
        $(each_pair! { @ |$k, $v| $call; $key, $values })*
    };
    (@ |$k:ident, $v:ident| $call:expr; $key:ty, [$($value:ty)*]) => {
        $({
            type $k = $key;
            type $v = $value;
            $call?;
        })*
    };
}

/// All pairs compile, which needs their kernels.
#[allow(dead_code)]
fn all_pairs() -> Result<()> {
    each_pair! {
        |K, V| radix_sort_of_pairs::<K, V, _>();
        [i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64] [i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64]
    }
    each_pair! {
        |K, V| sorts_of_pairs_by_order::<K, V, Less, _, _>(Less, false);
        [i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64] [i32 u32 f32]
    }
    each_pair! {
        |K, V| sorts_of_pairs_by_order::<K, V, Greater, _, _>(Greater, true);
        [i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64] [i32 u32 f32]
    }
    each_pair! { |K, V| sorts_of_segments_with_values::<K, V, _, _>(); [i32 i64 u32 u64 f32 f64] [i32 u32 f32] }
    each_pair! {
        |K, V| firsts_of_runs::<K, V, _>();
        [i32 i64 u32 u64] [i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64]
    }
    each_pair! {
        |K, V| sums_of_runs::<K, V, _, _, _>();
        [i32 i64 u32 u64] [i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64]
    }
    each_pair! {
        |K, V| extremes_of_runs::<K, V, _, _>();
        [i32 u32] [i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64]
    }
    Ok(())
}

/// Some of them run: of each kernel types that it was compiled for, and types that it serves too.
#[test]
fn pairs_are_sorted_by_digits() -> Result<()> {
    radix_sort_of_pairs::<f32, u32, _>()?;
    radix_sort_of_pairs::<i32, f32, _>()?;
    radix_sort_of_pairs::<i8, f16, _>()
}

#[test]
fn pairs_are_sorted_by_order() -> Result<()> {
    sorts_of_pairs_by_order::<f32, i32, Less, _, _>(Less, false)?;
    sorts_of_pairs_by_order::<u32, u32, Greater, _, _>(Greater, true)
}

#[test]
fn segments_are_sorted_with_values() -> Result<()> {
    sorts_of_segments_with_values::<i32, f32, _, _>()
}

#[test]
fn runs_have_a_first_sums_and_extremes() -> Result<()> {
    firsts_of_runs::<i32, bf16, _>()?;
    sums_of_runs::<i64, i16, _, _, _>()?;
    extremes_of_runs::<i32, f64, _, _>()
}

#[test]
fn indices_are_generated() -> Result<()> {
    let s = stream()?;
    let (mut indices, mut fewer) = (s.buffer_zeroed::<u64>(LEN)?, s.buffer_zeroed::<u32>(LEN)?);
    generate(&s, Identity, &mut indices)?;
    check(&indices, 0..LEN as i64);
    transform(&s, counting(5u32, LEN), Identity, &mut fewer)?;
    check(&fewer, 5..5 + LEN as i64);
    Ok(())
}

#[test]
fn sparse_matrices_are_multiplied() -> Result<()> {
    fn product<T: Small + PartialEq>(
        multiply: impl FnOnce(Stream, &[T], &Buffer<T>, &mut Buffer<T>) -> Result<()>,
    ) -> Result<()> {
        let s = stream()?;
        let (x, mut out) = (buffer::<T>(&s, &X)?, s.buffer_zeroed::<T>(3)?);
        multiply(s.clone(), &[2, 1, 1, 3, 2].map(T::of), &x, &mut out)?;
        check(&out, [2 * X[1] + X[4], 0, X[0] + 3 * X[7] + 2 * X[19]]);
        Ok(())
    }
    const ROWS: [u32; 4] = [0, 2, 2, 5];
    const COLUMNS: [u32; 5] = [1, 4, 0, 7, 19];
    product::<f32>(|s, values, x, out| spmv(&s, &Csr::new(&s, (3, LEN), &ROWS, &COLUMNS, values)?, x, out))?;
    product::<f64>(|s, values, x, out| spmv(&s, &Csr::new(&s, (3, LEN), &ROWS, &COLUMNS, values)?, x, out))?;
    product::<f32>(|s, values, x, out| spmm(&s, &Csr::new(&s, (3, LEN), &ROWS, &COLUMNS, values)?, x, 1, out))?;
    product::<f64>(|s, values, x, out| spmm(&s, &Csr::new(&s, (3, LEN), &ROWS, &COLUMNS, values)?, x, 1, out))
}

#[test]
fn arrays_are_transformed() -> Result<()> {
    fn sums<T: Small + FftFloat + PartialEq>(
        transform: impl FnOnce(Stream, &FftPlan<T>, &Buffer<T>, &mut Buffer<Complex<T>>, &mut Buffer<T>) -> Result<()>,
    ) -> Result<()> {
        let s = stream()?;
        let plan = FftPlan::<T>::new(&s, &[LEN], &[0])?.scaled(T::of(1), T::from_f64(1.0 / LEN as f64));
        let (x, mut same) = (buffer::<T>(&s, &X)?, s.buffer_zeroed(LEN)?);
        let mut spectrum = s.buffer_zeroed(plan.items())?;
        transform(s.clone(), &plan, &x, &mut spectrum, &mut same)?;
        assert!((spectrum.to_vec()?[0].re.get() - 60.0).abs() < 1e-4);
        assert!(same.to_vec()?.iter().zip(X).all(|(same, x)| (same.get() - x as f64).abs() < 1e-4));
        Ok(())
    }
    macro_rules! transforms {
        ($($t:ty)*) => {$(
            sums::<$t>(|s, plan, x, spectrum, same| {
                let mut half = s.buffer_zeroed(plan.half_items())?;
                rfft(&s, plan, x, &mut half)?;
                irfft(&s, plan, &half, same)?;
                fft(&s, plan, x, &mut *spectrum)?;
                ifft_in_place(&s, plan, &mut *spectrum)?;
                let again = s.buffer_from(&spectrum.to_vec()?)?;
                fft(&s, plan, &again, spectrum)
            })?;
        )*};
    }
    transforms!(f32 f64);
    Ok(())
}

#[test]
fn every_algorithm_with_kernels_is_called() {
    let rows = include_str!("../../src/kernels/table.rs").lines();
    let names = rows.filter_map(|line| line.trim().strip_prefix('(')?.strip_suffix(" $then:ident $given:tt) => {"));
    let missing: Vec<_> = names.filter(|name| !include_str!("main.rs").contains(&format!(" {name}(&s, "))).collect();
    assert!(missing.is_empty(), "no call of {missing:?}");
}
