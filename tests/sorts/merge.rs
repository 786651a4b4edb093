//! Tests merge sorts of a warp and a block.

use std::cmp::Ordering;

use kernel_primitives::functor::{Greater, Less};
use kernel_primitives::{Buffer, Result, Stream};

use crate::kernels::merge::{self as kernels, Always, ByMagnitude, ByMiddle};
use crate::kernels::{Flagged, Sixteen, Twelve};
use crate::keys::{Case, Key, Pattern, Sorted, any_fixed_case, fixed_cases, keys};
use crate::support::{Arbitrary, Random, holds, stream, streams, values};

fn ascending<K: Key>(a: &K, b: &K) -> Ordering {
    a.order(b)
}

fn descending<K: Key>(a: &K, b: &K) -> Ordering {
    b.order(a)
}

fn by_magnitude(a: &i32, b: &i32) -> Ordering {
    a.unsigned_abs().cmp(&b.unsigned_abs())
}

fn by_middle(a: &Twelve, b: &Twelve) -> Ordering {
    a.b.cmp(&b.b)
}

fn small_integers(case: Case) -> Vec<i32> {
    let mut random = Random::new(case.seed);
    keys::<i32>(case.pattern, case.len, case.seed)
        .into_iter()
        .map(|key| match case.pattern {
            Pattern::Random => random.below(41) as i32 - 20,
            _ => key,
        })
        .collect()
}

fn middles(case: Case) -> Vec<Twelve> {
    let mut keys = values::<Twelve>(case.len, case.seed);
    keys.iter_mut().for_each(|key| key.b %= 17);
    keys
}

fn any_keys<K: Key>(case: Case) -> Vec<K> {
    keys(case.pattern, case.len, case.seed)
}

/// Returns keys and their payloads as text, in which NaN equals itself.
fn text<T: std::fmt::Debug>(items: &[T]) -> Vec<String> {
    items.iter().map(|item| format!("{item:?}")).collect()
}

/// Sorts pairs in groups of `group` positions, in blocks of `threads`.
#[allow(clippy::too_many_arguments, reason = "the axes of the tests")]
fn sorts_pairs<K: kernel_primitives::Element + std::fmt::Debug, V: Arbitrary>(
    threads: usize,
    items: usize,
    group: usize,
    streams: Vec<Stream>,
    input: impl Fn(Case) -> Vec<K>,
    order: impl Fn(&K, &K) -> Ordering,
    launch: impl Fn(&Stream, u32, &Buffer<K>, &Buffer<V>, &mut Buffer<K>, &mut Buffer<V>) -> Result<()>,
) -> Result<()> {
    let check = |stream: &Stream, case: Case| -> Result<()> {
        let x = input(case);
        let payload = values::<V>(x.len(), 5);
        let (mut out, mut value_out) = (stream.buffer_zeroed(x.len())?, stream.buffer_zeroed(x.len())?);
        let (x_in, value_in) = (stream.buffer_from(&x)?, stream.buffer_from(&payload)?);
        launch(stream, threads as u32, &x_in, &value_in, &mut out, &mut value_out)?;
        let expected = Sorted::by(&x, case.tile, group, &order);
        assert_eq!(text(&out.to_vec()?), text(&expected.apply(&x)), "{case:?}");
        assert_eq!(value_out.to_vec()?, expected.apply(&payload), "{case:?}");
        Ok(())
    };
    for stream in streams {
        fixed_cases(items, threads).try_for_each(|case| check(&stream, case))?;
    }
    holds(8, any_fixed_case(items, threads), |case| check(&stream()?, case));
    Ok(())
}

macro_rules! sorted_pairs {
    ($($name:ident: $k:ty, $v:ty, $order:ident, $threads:literal, $items:literal, $streams:expr, $input:expr, $reference:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            sorts_pairs::<$k, $v>(
                $threads, $items, $threads * $items, $streams, $input, $reference,
                |stream, threads, x, value, out, value_out| {
                    type Kernel = kernels::merge_sorted_pairs<$k, $v, $order, $threads, $items>;
                    Kernel::launch(stream, (1, threads), x, value, out, value_out, $order)
                },
            )
        }
    )*};
}
sorted_pairs! {
    sanitize_merge_sort_of_pairs_of_f32: f32, u32, Less, 128, 4, streams()?, any_keys, ascending;
    merge_sort_by_magnitude_in_65_threads: i32, Sixteen, ByMagnitude, 65, 3, streams()?, small_integers, by_magnitude;
    merge_sort_by_a_field_in_33_threads: Twelve, u8, ByMiddle, 33, 2, vec![stream()?], middles, by_middle;
    merge_sort_of_pairs_of_u8_descending: u8, u32, Greater, 256, 8, vec![stream()?], any_keys, descending;
    merge_sort_in_one_thread: i64, Flagged, Less, 1, 5, vec![stream()?], any_keys, ascending;
    merge_sort_of_bool_in_the_largest_block: bool, u32, Less, 1024, 1, vec![stream()?], any_keys, ascending;
}

macro_rules! sorted_in_warps {
    ($($name:ident: $k:ty, $v:ty, $order:ident, $width:literal, $threads:literal, $items:literal, $streams:expr, $input:expr,
        $reference:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            sorts_pairs::<$k, $v>(
                $threads, $items, $width * $items, $streams, $input, $reference,
                |stream, threads, x, value, out, value_out| {
                    type Kernel = kernels::warp_merged<$k, $v, $order, $width, $threads, $items>;
                    Kernel::launch(stream, (1, threads), x, value, out, value_out, $order)
                },
            )
        }
    )*};
}
sorted_in_warps! {
    sanitize_merge_sort_of_warps: f32, u32, Less, 32, 128, 3, streams()?, any_keys, ascending;
    merge_sort_of_eight_lanes_by_magnitude: i32, Sixteen, ByMagnitude, 8, 65, 4, vec![stream()?], small_integers, by_magnitude;
    merge_sort_of_half_warps_descending: u64, u32, Greater, 16, 40, 1, vec![stream()?], any_keys, descending;
}

fn sorts<K: Key>(
    threads: usize,
    items: usize,
    order: impl Fn(&K, &K) -> Ordering,
    group: usize,
    launch: impl Fn(&Stream, u32, &Buffer<K>, &mut Buffer<K>) -> Result<()>,
) -> Result<()> {
    let stream = stream()?;
    for case in fixed_cases(items, threads) {
        let x = keys::<K>(case.pattern, case.len, case.seed);
        let mut out = stream.buffer_zeroed(x.len())?;
        launch(&stream, threads as u32, &stream.buffer_from(&x)?, &mut out)?;
        let expected = Sorted::by(&x, case.tile, group, &order).apply(&x);
        assert_eq!(text(&out.to_vec()?), text(&expected), "{case:?}");
    }
    Ok(())
}

macro_rules! sorted {
    ($($name:ident: $k:ty, $order:ident, $threads:literal, $items:literal, $reference:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            sorts::<$k>($threads, $items, $reference, $threads * $items, |stream, threads, x, out| {
                kernels::merge_sorted::<$k, $order, $threads, $items>::launch(stream, (1, threads), x, out, $order)
            })
        }
    )*};
}
sorted! {
    merge_sort_of_i32: i32, Less, 128, 8, ascending;
    merge_sort_of_f64_descending: f64, Greater, 256, 4, descending;
    merge_sort_of_u16_in_seven_threads: u16, Less, 7, 16, ascending;
    sanitize_merge_sort_by_magnitude: i32, ByMagnitude, 48, 1, by_magnitude;
    sanitize_merge_sort_with_gaps_in_seven_threads: i32, ByMagnitude, 7, 16, by_magnitude;
    merge_sort_of_f64_with_gaps_in_65_threads: f64, Greater, 65, 8, descending;
}

#[test]
fn warps_merge_keys_alone() -> Result<()> {
    sorts::<i32>(96, 4, by_magnitude, 128, |stream, threads, x, out| {
        kernels::warp_merged_keys::launch(stream, (1, threads), x, out)
    })
}

#[test]
fn a_comparator_that_is_no_order_stays_in_bounds() -> Result<()> {
    let stream = stream()?;
    let x: Vec<u32> = (0..512).collect();
    let mut out = stream.buffer_zeroed(x.len())?;
    kernels::merge_sorted::<u32, Always, 64, 4>::launch(&stream, (1, 64), &stream.buffer_from(&x)?, &mut out, Always)?;
    assert!(out.to_vec()?.iter().all(|key| *key < 512));
    Ok(())
}

#[test]
fn a_merge_sort_in_a_block_of_another_size_is_a_fault() -> Result<()> {
    let stream = stream()?;
    let (x, mut out) = (stream.buffer_zeroed::<i32>(48)?, stream.buffer_zeroed::<i32>(48)?);
    let kernel = kernels::merge_sorted::<i32, ByMagnitude, 48, 1>::launch;
    let launched = kernel(&stream, (1, 47), &x, &mut out, ByMagnitude);
    let error = launched.and_then(|()| stream.synchronize()).unwrap_err().to_string();
    assert!(error.contains("47") && error.contains("48"), "{error}");
    Ok(())
}

#[test]
fn a_warp_merge_sort_in_a_block_of_another_size_is_a_fault() -> Result<()> {
    let stream = stream()?;
    for threads in [32, 64] {
        let (x, mut out) = (stream.buffer_zeroed::<i32>(256)?, stream.buffer_zeroed::<i32>(256)?);
        let launched = kernels::warp_merged_in_any_block::launch(&stream, (1, threads), &x, &mut out);
        let error = launched.and_then(|()| stream.synchronize()).unwrap_err().to_string();
        assert!(error.contains(&threads.to_string()) && error.contains("48"), "{error}");
    }
    Ok(())
}
