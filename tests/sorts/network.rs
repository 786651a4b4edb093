//! Tests the block's bitonic sorts, and the first few.

use kernel_primitives::functor::{Direction, Greater, Less};
use kernel_primitives::{Buffer, Result, Stream, bf16, f16};
use proptest::prelude::any;

use crate::kernels::network as kernels;
use crate::keys::{Case, Key, PATTERNS, Pattern, Sorted, any_case, cases, keys, raw};
use crate::support::{holds, stream, streams};

fn sorts<K: Key, O: Direction>(
    items: usize,
    threads: usize,
    streams: Vec<Stream>,
    launch: impl Fn(&Stream, (u32, u32, u32), &Buffer<K>, &mut Buffer<K>, O) -> Result<()>,
) -> Result<()> {
    let check = |stream: &Stream, case: Case| -> Result<()> {
        let x = keys::<K>(case.pattern, case.len, case.seed);
        let mut out = stream.buffer_zeroed(x.len())?;
        launch(stream, case.shape, &stream.buffer_from(&x)?, &mut out, O::default())?;
        let expected = Sorted::of(&x, case.tile, case.tile, O::DESCENDING);
        assert_eq!(raw(&out.to_vec()?), raw(&expected.apply(&x)), "{case:?}");
        Ok(())
    };
    for stream in streams {
        cases(items, threads).try_for_each(|case| check(&stream, case))?;
    }
    holds(8, any_case(items, threads.min(300) as u32), |case| check(&stream()?, case));
    Ok(())
}

macro_rules! sorted {
    ($($name:ident: $t:ty, $order:ident, $items:literal, $tile:literal, $streams:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            sorts::<$t, $order>($items, $tile / $items, $streams, |stream, shape, x, out, order| {
                kernels::block_sorted::<$t, $order, $items, $tile>::launch(stream, (1, shape), x, out, order)
            })
        }
    )*};
}
sorted! {
    sanitize_a_block_sorts_f32: f32, Less, 1, 1024, streams()?;
    a_block_sorts_u8: u8, Less, 2, 2048, vec![stream()?];
    a_block_sorts_i16_descending: i16, Greater, 4, 4096, vec![stream()?];
    a_block_sorts_u32: u32, Less, 8, 2048, streams()?;
    a_block_sorts_f64: f64, Less, 2, 2048, vec![stream()?];
    a_block_sorts_bool_descending: bool, Greater, 4, 4096, vec![stream()?];
    a_block_sorts_bf16_descending: bf16, Greater, 16, 1040, vec![stream()?];
}

/// Sorts keys with indices that descend from position to position, so that equal keys change places. The indices cross the ends of their
/// type, and some go from negative to positive.
fn sorts_with_index<K: Key, I: Key, O: Direction>(
    items: usize,
    threads: usize,
    launch: impl Fn(&Stream, (u32, u32, u32), &Buffer<K>, &Buffer<I>, &mut Buffer<K>, &mut Buffer<I>, O) -> Result<()>,
) -> Result<()> {
    let stream = stream()?;
    let check = |case: Case| -> Result<()> {
        let x = keys::<K>(case.pattern, case.len, case.seed);
        let step = if size_of::<I>() == 8 { 0x1_0000_0001 } else { 1 };
        let indices: Vec<I> =
            (0..x.len() as u64).map(|i| I::any((x.len() as u64 / 3).wrapping_sub(i).wrapping_mul(step))).collect();
        let (mut out, mut index_out) = (stream.buffer_zeroed(x.len())?, stream.buffer_zeroed(x.len())?);
        let (x_in, index_in) = (stream.buffer_from(&x)?, stream.buffer_from(&indices)?);
        launch(&stream, case.shape, &x_in, &index_in, &mut out, &mut index_out, O::default())?;
        let mut expected: Vec<(K, I)> = x.iter().copied().zip(indices).collect();
        for tile in expected.chunks_mut(case.tile) {
            tile.sort_by(|a, b| if O::DESCENDING { b.0.order(&a.0) } else { a.0.order(&b.0) }.then(a.1.order(&b.1)));
        }
        let (keys, indices): (Vec<K>, Vec<I>) = expected.into_iter().unzip();
        assert_eq!(raw(&out.to_vec()?), raw(&keys), "{case:?}");
        assert_eq!(raw(&index_out.to_vec()?), raw(&indices), "{case:?}");
        Ok(())
    };
    cases(items, threads).try_for_each(check)?;
    holds(8, any_case(items, threads.min(300) as u32), check);
    Ok(())
}

macro_rules! sorted_with_index {
    ($($name:ident: $t:ty, $i:ty, $order:ident, $items:literal, $tile:literal;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            sorts_with_index::<$t, $i, $order>($items, $tile / $items, |stream, shape, x, index, out, index_out, order| {
                kernels::block_sorted_with_index::<$t, $i, $order, $items, $tile>::launch(
                    stream, (1, shape), x, index, out, index_out, order,
                )
            })
        }
    )*};
}
sorted_with_index! {
    sanitize_a_block_sorts_f32_descending_and_equal_keys_by_index: f32, u32, Greater, 2, 2048;
    a_block_sorts_i8_and_equal_keys_by_index: i8, u32, Less, 4, 2048;
    a_block_sorts_u16_and_equal_keys_by_index: u16, u32, Less, 8, 1024;
    a_block_sorts_i32_and_equal_keys_by_index: i32, u32, Less, 1, 1024;
    a_block_sorts_i64_descending_and_equal_keys_by_index: i64, u32, Greater, 4, 2048;
    a_block_sorts_f16_and_equal_keys_by_index: f16, u32, Less, 2, 2048;
    a_block_sorts_u64_and_equal_keys_by_index: u64, u32, Less, 2, 2048;
    sanitize_a_block_sorts_f32_with_indices_of_u64: f32, u64, Less, 2, 2048;
    a_block_sorts_u64_descending_with_indices_of_i64: u64, i64, Greater, 1, 512;
    a_block_sorts_u8_with_indices_of_i16: u8, i16, Less, 4, 1024;
    a_block_sorts_i32_descending_with_indices_of_u8: i32, u8, Greater, 2, 512;
    a_block_sorts_bf16_with_indices_of_usize: bf16, usize, Less, 8, 1024;
    a_block_sorts_f64_with_indices_of_i32: f64, i32, Less, 2, 512;
}

#[test]
fn a_block_larger_than_the_storage_is_a_fault() -> Result<()> {
    let stream = stream()?;
    let mut out = stream.buffer_zeroed::<f64>(3000)?;
    let x = stream.buffer_zeroed::<f64>(3000)?;
    // There are two items for each thread, and room for 2048.
    let shape = (512, 2, 1);
    kernels::block_sorted::<f64, Less, 2, 2048>::launch(&stream, (1, shape), &x, &mut out, Less)?;
    out.to_vec()?;
    let index = stream.buffer_zeroed::<u32>(1100)?;
    let mut index_out = stream.buffer_zeroed::<u32>(1100)?;
    let (x, mut out) = (stream.buffer_zeroed::<u16>(1100)?, stream.buffer_zeroed::<u16>(1100)?);
    let launched = kernels::block_sorted_with_index::<u16, u32, Less, 8, 1024>::launch(
        &stream,
        (1, 129),
        &x,
        &index,
        &mut out,
        &mut index_out,
        Less,
    );
    let error = launched.and_then(|()| stream.synchronize()).unwrap_err().to_string();
    assert!(error.contains("1032") && error.contains("1024"), "{error}");
    Ok(())
}

#[test]
fn more_valid_items_than_there_are_count_as_all_and_the_emulator_tells() -> Result<()> {
    let stream = stream()?;
    for sort in 0..7 {
        let group = if sort < 3 { 32 } else { 64 };
        let sorted: Vec<u32> = if sort < 3 { (32..64).chain(0..32).collect() } else { (0..64).collect() };
        let mut out = stream.buffer_zeroed::<u32>(64)?;
        kernels::sorted_first::launch(&stream, (1, 64), sort, group, &mut out)?;
        assert_eq!(out.to_vec()?, sorted, "sort {sort}");
        let launched = kernels::sorted_first::launch(&stream, (1, 64), sort, group + 1, &mut out);
        if stream.device().is_gpu() {
            assert_eq!(out.to_vec()?, sorted, "sort {sort}");
            continue;
        }
        let error = launched.unwrap_err().to_string();
        assert!(error.contains(&format!("a size of {}; its limit is {group}", group + 1)), "sort {sort}: {error}");
    }
    Ok(())
}

/// Finds the first `k` of each tile in blocks of all shapes, for `k` from 1 to the tile.
fn finds_the_first<K: Key, O: Direction>(
    items: usize,
    threads: usize,
    streams: Vec<Stream>,
    launch: impl Fn(&Stream, (u32, u32, u32), &Buffer<K>, u32, &mut Buffer<K>, &mut Buffer<u32>, O) -> Result<()>,
) -> Result<()> {
    let check = |stream: &Stream, case: Case, k: usize| -> Result<()> {
        let x = keys::<K>(case.pattern, case.len, case.seed);
        let (mut out, mut index_out) = (stream.buffer_zeroed(x.len())?, stream.buffer_zeroed(x.len())?);
        launch(stream, case.shape, &stream.buffer_from(&x)?, k as u32, &mut out, &mut index_out, O::default())?;
        let expected = Sorted::of(&x, case.tile, case.tile, O::DESCENDING);
        let positions: Vec<u32> = (0..x.len() as u32).collect();
        let firsts =
            |v: Vec<u64>| -> Vec<u64> { v.chunks(case.tile).flat_map(|tile| tile.iter().take(k)).copied().collect() };
        let wide = |v: Vec<u32>| firsts(v.into_iter().map(u64::from).collect());
        assert_eq!(firsts(raw(&out.to_vec()?)), firsts(raw(&expected.apply(&x))), "{k} of {case:?}");
        assert_eq!(wide(index_out.to_vec()?), wide(expected.apply(&positions)), "{k} of {case:?}");
        Ok(())
    };
    for stream in streams {
        for (n, case) in cases(items, threads).enumerate() {
            let pattern = if n % 3 == 0 { Pattern::Few } else { PATTERNS[n % PATTERNS.len()] };
            let k = [1, 3, 10, 32, 100, case.tile / 2, case.tile][n % 7].clamp(1, case.tile);
            check(&stream, Case { pattern, ..case }, k)?;
            if n % 5 == 0 {
                check(&stream, Case { pattern, ..case }, [0, u32::MAX as usize][n % 2])?;
            }
        }
    }
    holds(8, (any_case(items, threads.min(300) as u32), any::<usize>()), |(case, k)| {
        check(&stream()?, case, 1 + k % case.tile)
    });
    Ok(())
}

macro_rules! first {
    ($($name:ident: $t:ty, $order:ident, $items:literal, $tile:literal, $streams:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            finds_the_first::<$t, $order>($items, $tile / $items, $streams, |stream, shape, x, k, out, index, order| {
                kernels::block_top::<$t, $order, $items, $tile>::launch(stream, (1, shape), x, k, out, index, order)
            })
        }
    )*};
}
first! {
    sanitize_a_block_finds_the_largest_f32: f32, Greater, 4, 4096, streams()?;
    a_block_finds_the_smallest_i32: i32, Less, 1, 1024, vec![stream()?];
    a_block_finds_the_smallest_u64: u64, Less, 2, 2048, vec![stream()?];
    a_block_finds_the_largest_f16: f16, Greater, 8, 2048, vec![stream()?];
}
