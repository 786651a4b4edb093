//! Tests bitonic sorts of groups of lanes.

use kernel_primitives::functor::{Direction, Greater, Less};
use kernel_primitives::{Buffer, Result, Stream, bf16, f16};

use crate::kernels::warp as kernels;
use crate::kernels::{Flagged, Twelve};
use crate::keys::{Case, Key, Sorted, any_case, cases, keys, raw};
use crate::support::{Arbitrary, holds, stream, streams, values};

/// Sorts groups of `group` positions in blocks of all shapes.
fn sorts<K: Key, O: Direction>(
    group: usize,
    items: usize,
    streams: Vec<Stream>,
    launch: impl Fn(&Stream, (u32, u32, u32), &Buffer<K>, &mut Buffer<K>, O) -> Result<()>,
) -> Result<()> {
    let check = |stream: &Stream, case: Case| -> Result<()> {
        let x = keys::<K>(case.pattern, case.len, case.seed);
        let mut out = stream.buffer_zeroed(x.len())?;
        launch(stream, case.shape, &stream.buffer_from(&x)?, &mut out, O::default())?;
        let expected = Sorted::of(&x, case.tile, group, O::DESCENDING);
        assert_eq!(raw(&out.to_vec()?), raw(&expected.apply(&x)), "{case:?}");
        Ok(())
    };
    for stream in streams {
        cases(items, 1024).try_for_each(|case| check(&stream, case))?;
    }
    holds(8, any_case(items, 200), |case| check(&stream()?, case));
    Ok(())
}

macro_rules! sorted {
    ($($name:ident: $t:ty, $order:ident, $width:literal, $items:literal, $streams:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            sorts::<$t, $order>($width * $items, $items, $streams, |stream, shape, x, out, order| {
                kernels::warp_sorted::<$t, $order, $width, $items>::launch(stream, (1, shape), x, out, order)
            })
        }
    )*};
}
sorted! {
    sanitize_a_warp_sorts_f32: f32, Less, 32, 1, streams()?;
    a_warp_sorts_u8_descending: u8, Greater, 32, 4, vec![stream()?];
    a_warp_sorts_i64: i64, Less, 32, 2, vec![stream()?];
    half_warps_sort_f64_descending: f64, Greater, 16, 4, vec![stream()?];
    eight_lanes_sort_bool: bool, Less, 8, 8, vec![stream()?];
    four_lanes_sort_i16: i16, Less, 4, 16, vec![stream()?];
    two_lanes_sort_u32_descending: u32, Greater, 2, 2, vec![stream()?];
    a_lane_sorts_bf16_alone: bf16, Less, 1, 8, vec![stream()?];
}

/// Sorts keys with indices that descend from position to position, so that equal keys change places.
fn sorts_with_index<K: Key, I: Key, O: Direction>(
    group: usize,
    items: usize,
    launch: impl Fn(&Stream, (u32, u32, u32), &Buffer<K>, &Buffer<I>, &mut Buffer<K>, &mut Buffer<I>, O) -> Result<()>,
) -> Result<()> {
    let stream = stream()?;
    for case in cases(items, 1024) {
        let x = keys::<K>(case.pattern, case.len, case.seed);
        let step = if size_of::<I>() == 8 { 0x1_0000_0001 } else { 1 };
        let index = |i: u64| I::any((x.len() as u64 / 3).wrapping_sub(i).wrapping_mul(step));
        let indices: Vec<I> = (0..x.len() as u64).map(index).collect();
        let mut out = stream.buffer_zeroed(x.len())?;
        let mut index_out = stream.buffer_zeroed(x.len())?;
        let (x_in, index_in) = (stream.buffer_from(&x)?, stream.buffer_from(&indices)?);
        launch(&stream, case.shape, &x_in, &index_in, &mut out, &mut index_out, O::default())?;
        let mut expected = Vec::new();
        for tile in x.iter().zip(&indices).collect::<Vec<_>>().chunks(case.tile) {
            for group in tile.chunks(group) {
                let mut group = group.to_vec();
                group.sort_by(|a, b| if O::DESCENDING { b.0.order(a.0) } else { a.0.order(b.0) }.then(a.1.order(b.1)));
                expected.extend(group.into_iter().map(|(key, index)| (key.raw(), index.raw())));
            }
        }
        let found: Vec<_> = raw(&out.to_vec()?).into_iter().zip(raw(&index_out.to_vec()?)).collect();
        assert_eq!(found, expected, "{case:?}");
    }
    Ok(())
}

macro_rules! sorted_with_index {
    ($($name:ident: $t:ty, $i:ty, $order:ident, $width:literal, $items:literal;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            sorts_with_index::<$t, $i, $order>($width * $items, $items, |stream, shape, x, index, out, index_out, order| {
                kernels::warp_sorted_with_index::<$t, $i, $order, $width, $items>::launch(
                    stream, (1, shape), x, index, out, index_out, order,
                )
            })
        }
    )*};
}
sorted_with_index! {
    a_warp_sorts_u16_and_equal_keys_by_index: u16, u32, Less, 32, 2;
    sanitize_a_warp_sorts_f32_descending_and_equal_keys_by_index: f32, u32, Greater, 32, 4;
    eight_lanes_sort_u64_and_equal_keys_by_index: u64, u32, Less, 8, 2;
    a_warp_sorts_f32_with_indices_of_i64: f32, i64, Less, 32, 1;
    four_lanes_sort_u64_descending_with_indices_of_u64: u64, u64, Greater, 4, 2;
    half_warps_sort_i16_with_indices_of_i8: i16, i8, Less, 16, 4;
    a_warp_sorts_bool_descending_with_indices_of_u16: bool, u16, Greater, 32, 2;
}

/// Sorts pairs and compares with a stable sort.
fn sorts_pairs<K: Key, V: Arbitrary, O: Direction>(
    group: usize,
    items: usize,
    launch: impl Fn(&Stream, (u32, u32, u32), &Buffer<K>, &Buffer<V>, &mut Buffer<K>, &mut Buffer<V>, O) -> Result<()>,
) -> Result<()> {
    let stream = stream()?;
    for case in cases(items, 1024) {
        let x = keys::<K>(case.pattern, case.len, case.seed);
        let payload = values::<V>(x.len(), 5);
        let (mut out, mut value_out) = (stream.buffer_zeroed(x.len())?, stream.buffer_zeroed(x.len())?);
        let (x_in, value_in) = (stream.buffer_from(&x)?, stream.buffer_from(&payload)?);
        launch(&stream, case.shape, &x_in, &value_in, &mut out, &mut value_out, O::default())?;
        let expected = Sorted::of(&x, case.tile, group, O::DESCENDING);
        assert_eq!(raw(&out.to_vec()?), raw(&expected.apply(&x)), "{case:?}");
        assert_eq!(value_out.to_vec()?, expected.apply(&payload), "{case:?}");
    }
    Ok(())
}

macro_rules! sorted_pairs {
    ($($name:ident: $t:ty, $v:ty, $order:ident, $width:literal, $items:literal;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            sorts_pairs::<$t, $v, $order>($width * $items, $items, |stream, shape, x, value, out, value_out, order| {
                kernels::warp_sorted_pairs::<$t, $v, $order, $width, $items>::launch(
                    stream, (1, shape), x, value, out, value_out, order,
                )
            })
        }
    )*};
}
sorted_pairs! {
    sanitize_a_warp_sorts_pairs_of_i8_and_u32: i8, u32, Less, 32, 1;
    a_warp_sorts_pairs_of_f16_and_twelve_bytes_descending: f16, Twelve, Greater, 32, 4;
    half_warps_sort_pairs_of_u32_and_flags: u32, Flagged, Less, 16, 2;
    four_lanes_sort_pairs_of_i32_and_u8_descending: i32, u8, Greater, 4, 8;
}
