//! Tests pairs of keys and values.

use kernel_primitives::functor::{Comparator, Reducer};
use kernel_primitives::{KernelParam, SortKey};

use super::*;

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

/// Sorts with `Less`, or with `Greater`, which is descending.
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

/// Calls `f::<K, V, _, …>(…)` for each key with each value. `numbers` are all numbers.
macro_rules! each_pair {
    (|$k:ident, $v:ident| $call:expr; numbers $values:tt) => {
        with_numbers! { each_pair |$k, $v| $call; $values of }
    };
    (|$k:ident, $v:ident| $call:expr; $keys:tt numbers) => {
        with_numbers! { each_pair |$k, $v| $call; $keys }
    };
    (|$k:ident, $v:ident| $call:expr; $values:tt of $keys:tt) => {
        each_pair! { |$k, $v| $call; $keys $values }
    };
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

/// The calls of all pairs, which never run.
#[allow(dead_code)]
fn all_pairs() -> Result<()> {
    each_pair! { |K, V| radix_sort_of_pairs::<K, V, _>(); numbers numbers }
    each_pair! { |K, V| sorts_of_pairs_by_order::<K, V, Less, _, _>(Less, false); numbers [i32 u32 f32] }
    each_pair! { |K, V| sorts_of_pairs_by_order::<K, V, Greater, _, _>(Greater, true); numbers [i32 u32 f32] }
    each_pair! { |K, V| sorts_of_segments_with_values::<K, V, _, _>(); [i32 i64 u32 u64 f32 f64] [i32 u32 f32] }
    each_pair! { |K, V| firsts_of_runs::<K, V, _>(); [i32 i64 u32 u64] numbers }
    each_pair! { |K, V| sums_of_runs::<K, V, _, _, _>(); [i32 i64 u32 u64] numbers }
    each_pair! { |K, V| extremes_of_runs::<K, V, _, _>(); [i32 u32] numbers }
    Ok(())
}

/// Some pairs run. For each kernel, there are types that it was compiled for, and types that it also serves.
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
