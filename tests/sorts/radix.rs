//! Tests the block's radix sorts.

use kernel_primitives::__private::Instantiated;
use kernel_primitives::functor::{Direction, Greater, Less};
use kernel_primitives::{Buffer, Result, Stream, bf16, f16};
use proptest::prelude::Strategy;

use crate::kernels::radix as kernels;
use crate::kernels::{Flagged, Sixteen, Twelve};
use crate::keys::{Case, Key, Sorted, any_fixed_case, fixed_cases, keys, raw};
use crate::support::{Arbitrary, holds, stream, streams, values};

/// Returns ranges of a key's bits: all, none, some in one digit, some in several.
fn bit_ranges(bits: u32) -> [(u32, u32); 5] {
    [(0, bits), (0, bits), (bits / 2, bits / 2), (bits / 4, bits.min(bits / 4 + 3)), (bits / 3, bits)]
}

/// Draws any range of a key's bits.
fn any_bits(bits: u32) -> impl Strategy<Value = (u32, u32)> {
    (0..=bits, 0..=bits).prop_map(|(a, b)| (a.min(b), a.max(b)))
}

/// Returns the value of some of a key's bits. If the whole key counts, the keys are checked against their own order.
fn digits<K: Key>(key: &K, (begin, end): (u32, u32)) -> u64
where
    K::Bits: Into<u64>,
{
    let bits: u64 = key.to_sort_bits().into();
    if begin == end { 0 } else { bits << (64 - end) >> (64 - end + begin) }
}

fn expected<K: Key, O: Direction>(x: &[K], case: Case, range: (u32, u32)) -> Sorted
where
    K::Bits: Into<u64>,
{
    if range == (0, K::SORT_BITS) {
        return Sorted::of(x, case.tile, case.tile, O::DESCENDING);
    }
    Sorted::by(x, case.tile, case.tile, |a, b| {
        let (a, b) = (digits(a, range), digits(b, range));
        if O::DESCENDING { b.cmp(&a) } else { a.cmp(&b) }
    })
}

/// Returns the keys of whole tiles, because the radix sort takes no partial tiles.
fn whole_tiles<K: Key>(case: Case) -> Vec<K> {
    keys(case.pattern, case.len.next_multiple_of(case.tile), case.seed)
}

fn sorts<K: Key, O: Direction>(
    threads: usize,
    items: usize,
    streams: Vec<Stream>,
    launch: impl Fn(&Stream, &Buffer<K>, (u32, u32), &mut Buffer<K>, O) -> Result<()>,
) -> Result<()>
where
    K::Bits: Into<u64>,
{
    let check = |stream: &Stream, case: Case, range| -> Result<()> {
        let x = whole_tiles::<K>(case);
        let mut out = stream.buffer_zeroed(x.len())?;
        launch(stream, &stream.buffer_from(&x)?, range, &mut out, O::default())?;
        let expected = expected::<K, O>(&x, case, range).apply(&x);
        assert_eq!(raw(&out.to_vec()?), raw(&expected), "bits {range:?} of {case:?}");
        Ok(())
    };
    for stream in streams {
        for (n, case) in fixed_cases(items, threads).enumerate() {
            check(&stream, case, bit_ranges(K::SORT_BITS)[n % 5])?;
        }
    }
    let inputs = (any_fixed_case(items, threads), any_bits(K::SORT_BITS));
    holds(8, inputs, |(case, range)| check(&stream()?, case, range));
    Ok(())
}

macro_rules! sorted {
    ($($name:ident: $t:ty, $order:ident, $threads:literal, $items:literal, $streams:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            sorts::<$t, $order>($threads, $items, $streams, |stream, x, (begin, end), out, order| {
                type Kernel = kernels::radix_sorted<$t, $order, $threads, $items>;
                Kernel::launch(stream, (1, $threads), x, begin, end, out, order)
            })
        }
    )*};
}
sorted! {
    sanitize_radix_sort_of_f32: f32, Less, 128, 4, streams()?;
    radix_sort_of_i32_descending: i32, Greater, 256, 8, vec![stream()?];
    radix_sort_of_u8_in_one_warp: u8, Less, 32, 16, vec![stream()?];
    radix_sort_of_i64_in_three_warps: i64, Less, 96, 3, streams()?;
    radix_sort_of_bf16_descending: bf16, Greater, 64, 1, vec![stream()?];
    radix_sort_of_bool_descending: bool, Greater, 64, 2, vec![stream()?];
}

fn sorts_pairs<K: Key, V: Arbitrary, O: Direction>(
    threads: usize,
    items: usize,
    streams: Vec<Stream>,
    launch: impl Fn(&Stream, &Buffer<K>, &Buffer<V>, (u32, u32), &mut Buffer<K>, &mut Buffer<V>, O) -> Result<()>,
) -> Result<()>
where
    K::Bits: Into<u64>,
{
    let check = |stream: &Stream, case: Case, range| -> Result<()> {
        let x = whole_tiles::<K>(case);
        let payload = values::<V>(x.len(), 5);
        let (mut out, mut value_out) = (stream.buffer_zeroed(x.len())?, stream.buffer_zeroed(x.len())?);
        let (x_in, value_in) = (stream.buffer_from(&x)?, stream.buffer_from(&payload)?);
        launch(stream, &x_in, &value_in, range, &mut out, &mut value_out, O::default())?;
        let expected = expected::<K, O>(&x, case, range);
        assert_eq!(raw(&out.to_vec()?), raw(&expected.apply(&x)), "bits {range:?} of {case:?}");
        assert_eq!(value_out.to_vec()?, expected.apply(&payload), "bits {range:?} of {case:?}");
        Ok(())
    };
    for stream in streams {
        for (n, case) in fixed_cases(items, threads).enumerate() {
            check(&stream, case, bit_ranges(K::SORT_BITS)[n % 5])?;
        }
    }
    let inputs = (any_fixed_case(items, threads), any_bits(K::SORT_BITS));
    holds(8, inputs, |(case, range)| check(&stream()?, case, range));
    Ok(())
}

macro_rules! sorted_pairs {
    ($($name:ident: $t:ty, $v:ty, $order:ident, $threads:literal, $items:literal, $streams:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            sorts_pairs::<$t, $v, $order>(
                $threads, $items, $streams,
                |stream, x, value, (begin, end), out, value_out, order| {
                    type Kernel = kernels::radix_sorted_pairs<$t, $v, $order, $threads, $items>;
                    Kernel::launch(stream, (1, $threads), x, value, begin, end, out, value_out, order)
                },
            )
        }
    )*};
}
sorted_pairs! {
    sanitize_radix_sort_of_pairs_of_u32: u32, u32, Less, 128, 8, streams()?;
    radix_sort_of_pairs_of_f16_and_u8_descending: f16, u8, Greater, 64, 4, vec![stream()?];
    radix_sort_of_pairs_of_i8_and_twelve_bytes: i8, Twelve, Less, 96, 5, vec![stream()?];
    radix_sort_of_pairs_of_u16_in_the_largest_block: u16, u32, Greater, 1024, 1, vec![stream()?];
    radix_sort_of_pairs_of_f64_and_sixteen_bytes: f64, Sixteen, Less, 32, 3, vec![stream()?];
    radix_sort_of_pairs_of_u64_descending: u64, u32, Greater, 64, 2, vec![stream()?];
    radix_sort_of_pairs_of_i16_and_flags: i16, Flagged, Less, 256, 2, vec![stream()?];
}

#[test]
fn sanitize_radix_sort_to_striped() -> Result<()> {
    for stream in streams()? {
        for (n, case) in fixed_cases(4, 64).enumerate() {
            let x = whole_tiles::<i32>(case);
            let (begin, end) = bit_ranges(32)[n % 5];
            let (mut out, mut alone_out) = (stream.buffer_zeroed(x.len())?, stream.buffer_zeroed(x.len())?);
            let mut value_out = stream.buffer_zeroed::<u32>(x.len())?;
            let x_in = stream.buffer_from(&x)?;
            kernels::radix_sorted_to_striped::launch(
                &stream,
                (1, 64),
                &x_in,
                begin,
                end,
                &mut out,
                &mut alone_out,
                &mut value_out,
            )?;
            let expected = expected::<i32, Less>(&x, case, (begin, end));
            // Item `i` of thread `t`, which is written to `4 * t + i`, has position `64 * i + t`.
            let striped = |v: Vec<i32>| -> Vec<i32> {
                v.chunks(256).flat_map(|tile| (0..256).map(|at| tile[at % 4 * 64 + at / 4])).collect()
            };
            let keys = striped(expected.apply(&x));
            assert_eq!(out.to_vec()?, keys, "{case:?}");
            assert_eq!(alone_out.to_vec()?, keys, "{case:?}");
            let positions: Vec<i32> = (0..x.len() as i32).collect();
            let found: Vec<i32> = value_out.to_vec()?.into_iter().map(|v| v as i32).collect();
            assert_eq!(found, striped(expected.apply(&positions)), "{case:?}");
        }
    }
    Ok(())
}

#[test]
fn a_radix_sort_in_a_block_of_another_size_is_a_fault() -> Result<()> {
    let stream = stream()?;
    let (x, mut out) = (stream.buffer_zeroed::<f32>(512)?, stream.buffer_zeroed::<f32>(512)?);
    let launched = kernels::radix_sorted::<f32, Less, 128, 4>::launch(&stream, (1, 96), &x, 0, 32, &mut out, Less);
    let error = launched.and_then(|()| stream.synchronize()).unwrap_err().to_string();
    assert!(error.contains("96") && error.contains("128"), "{error}");
    Ok(())
}

fn ranks_of_bytes<const THREADS: usize, const ITEMS: usize, Tag>(stream: &Stream, x: &[u8]) -> Result<()>
where
    kernels::radix_ranked<THREADS, ITEMS>: Instantiated<Tag>,
{
    let mut places = stream.buffer_zeroed::<u32>(x.len())?;
    let [mut counts, mut starts, mut early] = [(); 3].map(|()| stream.buffer_zeroed::<u32>(256).unwrap());
    kernels::radix_ranked::<THREADS, ITEMS>::launch(
        stream,
        (1, THREADS as u32),
        &stream.buffer_from(x)?,
        &mut places,
        &mut counts,
        &mut starts,
        &mut early,
    )?;
    let mut order: Vec<usize> = (0..x.len()).collect();
    order.sort_by_key(|&i| x[i]);
    let places = places.to_vec()?;
    assert!(order.iter().map(|&i| places[i]).eq(0..x.len() as u32), "{THREADS} × {ITEMS}: {places:?}");
    let below = |digit: usize| x.iter().filter(|&&x| (x as usize) < digit).count() as u32;
    assert_eq!(starts.to_vec()?, (0..256).map(below).collect::<Vec<_>>());
    let expected: Vec<u32> = (0..256).map(|digit| below(digit + 1) - below(digit)).collect();
    assert_eq!(counts.to_vec()?, expected);
    assert_eq!(early.to_vec()?, expected);
    Ok(())
}

#[test]
fn radix_ranks_are_places_by_the_digit_sanitize() -> Result<()> {
    for stream in streams()? {
        ranks_of_bytes::<256, 1, _>(&stream, &values(256, 1))?;
        ranks_of_bytes::<256, 1, _>(&stream, &[255; 256])?;
        ranks_of_bytes::<1024, 5, _>(&stream, &values::<u8>(5120, 2).iter().map(|x| x & 0x81).collect::<Vec<_>>())?;
    }
    Ok(())
}

#[test]
fn radix_ranks_of_the_largest_tile_fit_their_counters() -> Result<()> {
    ranks_of_bytes::<512, 16, _>(&stream()?, &[7; 8192])?;
    ranks_of_bytes::<512, 16, _>(&stream()?, &values(8192, 3))
}

#[test]
fn bits_beyond_the_key_are_a_fault_and_an_empty_range_is_none() -> Result<()> {
    let stream = stream()?;
    let x: Vec<u32> = values(1024, 6);
    let (input, value) = (stream.buffer_from(&x)?, stream.buffer_from(&x)?);
    let (mut out, mut value_out) = (stream.buffer_zeroed::<u32>(1024)?, stream.buffer_zeroed::<u32>(1024)?);
    type Sort = kernels::radix_sorted_pairs<u32, u32, Less, 128, 8>;
    for (begin, end) in [(32, 32), (0, 0), (40, 7)] {
        Sort::launch(&stream, (1, 128), &input, &value, begin, end, &mut out, &mut value_out, Less)?;
        assert_eq!(out.to_vec()?, x, "bits {begin} to {end}");
    }
    let launched = Sort::launch(&stream, (1, 128), &input, &value, 0, 40, &mut out, &mut value_out, Less);
    let error = launched.and_then(|()| stream.synchronize()).unwrap_err().to_string();
    assert!(error.contains("a size of 40; its limit is 32"), "{error}");
    Ok(())
}

#[test]
fn a_digit_of_more_than_eight_bits_is_a_fault() -> Result<()> {
    let stream = stream()?;
    let mut digits: Vec<u32> = values::<u8>(512, 7).into_iter().map(u32::from).collect();
    let mut places = stream.buffer_zeroed::<u32>(512)?;
    kernels::digits_ranked::launch(&stream, (1, 256), &stream.buffer_from(&digits)?, &mut places)?;
    let mut order: Vec<usize> = (0..512).collect();
    order.sort_by_key(|&i| digits[i]);
    let found = places.to_vec()?;
    assert!(order.iter().map(|&i| found[i]).eq(0..512));
    digits[300] = 256;
    let launched = kernels::digits_ranked::launch(&stream, (1, 256), &stream.buffer_from(&digits)?, &mut places);
    let error = launched.and_then(|()| stream.synchronize()).unwrap_err().to_string();
    assert!(error.contains("a size of 256; its limit is 255"), "{error}");
    Ok(())
}
