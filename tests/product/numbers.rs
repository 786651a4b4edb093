//! Algorithms over numbers, and indices.

use super::*;

/// Calls over a type.
macro_rules! calls {
    (#[$test:meta] $t:ty) => {
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
            // An empty segment would have the type's limits.
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
            histogram_even(&s, &x, Whole::of(0), Whole::of(8), &mut counts)?;
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
    };
}
calls! { #[test] f32 }

/// The calls of these types never run.
macro_rules! compile {
    ([$($t:ty)*]) => {$(
        const _: () = {
            calls! { #[allow(dead_code)] $t }
        };
    )*};
}
with_numbers! { compile }

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
