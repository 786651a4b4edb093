//! Tests the shipped sorts of rows.

use kernel_primitives::functor::{Direction, Greater, Less};
use kernel_primitives::kernels::{sort_rows, top_k_rows};
use kernel_primitives::{Buffer, Result, Stream, f16};

use crate::keys::{Key, PATTERNS, Sorted, keys, raw};
use crate::support::{stream, streams};

/// Sorts matrices of three rows, of lengths up to `tile`, by one block, by two and by three.
fn sorts<K: Key, O: Direction>(
    tile: usize,
    streams: Vec<Stream>,
    launch: impl Fn(&Stream, u32, &Buffer<K>, u32, &mut Buffer<K>, &mut Buffer<u32>, O) -> Result<()>,
) -> Result<()> {
    for stream in streams {
        for (n, columns) in [1, 31, 100, tile / 2 + 1, tile - 1, tile].into_iter().enumerate() {
            let x = keys::<K>(PATTERNS[n], 3 * columns, 7);
            let (mut out, mut indices) = (stream.buffer_zeroed(x.len())?, stream.buffer_zeroed(x.len())?);
            let blocks = 1 + n as u32 % 3;
            launch(&stream, blocks, &stream.buffer_from(&x)?, columns as u32, &mut out, &mut indices, O::default())?;
            let expected = Sorted::of(&x, columns, columns, O::DESCENDING);
            let positions: Vec<u32> = (0..x.len()).map(|i| (i % columns) as u32).collect();
            assert_eq!(raw(&out.to_vec()?), raw(&expected.apply(&x)), "{columns} columns, {:?}", PATTERNS[n]);
            assert_eq!(indices.to_vec()?, expected.apply(&positions), "{columns} columns, {:?}", PATTERNS[n]);
        }
    }
    Ok(())
}

macro_rules! sorted {
    ($($name:ident: $t:ty, $order:ident, $threads:literal, $items:literal, $streams:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            sorts::<$t, $order>($threads * $items, $streams, |stream, blocks, x, columns, out, indices, order| {
                let dims = (blocks, $threads);
                sort_rows::<$t, $order, $threads, $items>::launch(stream, dims, x, columns, out, indices, order)
            })
        }
    )*};
}
sorted! {
    sanitize_rows_of_f32_sort: f32, Less, 128, 8, streams()?;
    long_rows_of_f32_sort: f32, Less, 512, 8, vec![stream()?];
    rows_of_f32_sort_descending: f32, Greater, 128, 8, vec![stream()?];
    long_rows_of_f32_sort_descending: f32, Greater, 512, 8, vec![stream()?];
    rows_of_f16_sort: f16, Less, 128, 8, vec![stream()?];
    long_rows_of_f16_sort: f16, Less, 512, 8, vec![stream()?];
    rows_of_f16_sort_descending: f16, Greater, 128, 8, vec![stream()?];
    long_rows_of_f16_sort_descending: f16, Greater, 512, 8, vec![stream()?];
    rows_of_i32_sort: i32, Less, 128, 8, vec![stream()?];
    long_rows_of_i32_sort: i32, Less, 512, 8, vec![stream()?];
    rows_of_i64_sort: i64, Less, 256, 8, vec![stream()?];
    rows_of_f64_sort: f64, Less, 256, 8, vec![stream()?];
}

#[test]
fn rows_longer_than_a_block_holds_are_a_fault_that_says_the_limit() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_zeroed::<f32>(2050)?;
    let (mut out, mut indices) = (stream.buffer_zeroed(2050)?, stream.buffer_zeroed(2050)?);
    let kernel = sort_rows::<f32, Less, 128, 8>::launch;
    let launched = kernel(&stream, (2, 128), &x, 1025, &mut out, &mut indices, Less);
    let error = launched.and_then(|()| stream.synchronize()).unwrap_err().to_string();
    assert!(error.contains("1025") && error.contains("1024"), "{error}");
    Ok(())
}

#[test]
fn a_matrix_without_elements_has_nothing_to_sort() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_zeroed::<f32>(0)?;
    let (mut out, mut indices) = (stream.buffer_zeroed(0)?, stream.buffer_zeroed(0)?);
    for columns in [0, 5] {
        sort_rows::<f32, Less, 128, 8>::launch(&stream, (1, 128), &x, columns, &mut out, &mut indices, Less)?;
        top_k_rows::<f32, Less, 128, 8, 1024>::launch(&stream, (1, 128), &x, columns, 0, &mut out, &mut indices, Less)?;
    }
    assert!(out.to_vec()?.is_empty());
    Ok(())
}

/// Finds the first few of three rows. Their lengths are from one element to several cuts.
fn finds_the_first<K: Key, O: Direction>(
    tile: usize,
    streams: Vec<Stream>,
    launch: impl Fn(&Stream, u32, &Buffer<K>, [u32; 2], &mut Buffer<K>, &mut Buffer<u32>, O) -> Result<()>,
) -> Result<()> {
    for stream in streams {
        for (n, columns) in [1, 7, tile / 2, tile + 1, 5 * tile + 3, 9 * tile].into_iter().enumerate() {
            // In reverse order, every read has better keys, and each read is followed by a cut.
            let pattern = PATTERNS[(n + 5) % PATTERNS.len()];
            let x = keys::<K>(pattern, 3 * columns, 7);
            let k = [1, 5, tile / 2, 100, 32, 1][n].min(columns);
            let (mut out, mut indices) = (stream.buffer_zeroed(3 * k)?, stream.buffer_zeroed(3 * k)?);
            let blocks = 1 + n as u32 % 3;
            let sizes = [columns as u32, k as u32];
            launch(&stream, blocks, &stream.buffer_from(&x)?, sizes, &mut out, &mut indices, O::default())?;
            let expected = Sorted::of(&x, columns, columns, O::DESCENDING);
            let firsts =
                |v: Vec<u64>| -> Vec<u64> { v.chunks(columns).flat_map(|row| row.iter().take(k)).copied().collect() };
            let positions: Vec<u64> = (0..x.len()).map(|i| (i % columns) as u64).collect();
            assert_eq!(raw(&out.to_vec()?), firsts(raw(&expected.apply(&x))), "{k} of {columns}, {pattern:?}");
            let found: Vec<u64> = indices.to_vec()?.into_iter().map(u64::from).collect();
            assert_eq!(found, firsts(expected.apply(&positions)), "{k} of {columns}, {pattern:?}");
        }
    }
    Ok(())
}

macro_rules! first {
    ($($name:ident: $t:ty, $order:ident, $threads:literal, $items:literal, $tile:literal, $streams:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            finds_the_first::<$t, $order>($tile, $streams, |stream, blocks, x, [columns, k], out, indices, order| {
                let dims = (blocks, $threads);
                type Kernel = top_k_rows<$t, $order, $threads, $items, $tile>;
                Kernel::launch(stream, dims, x, columns, k, out, indices, order)
            })
        }
    )*};
}
first! {
    sanitize_the_smallest_f32_of_rows: f32, Less, 128, 8, 1024, streams()?;
    the_largest_f32_of_rows: f32, Greater, 128, 8, 1024, vec![stream()?];
    the_smallest_f32_of_long_rows: f32, Less, 256, 8, 2048, vec![stream()?];
    the_largest_f32_of_long_rows: f32, Greater, 256, 8, 2048, vec![stream()?];
    the_smallest_f16_of_long_rows: f16, Less, 256, 8, 2048, vec![stream()?];
    the_largest_f16_of_long_rows: f16, Greater, 256, 8, 2048, vec![stream()?];
    the_smallest_i32_of_long_rows: i32, Less, 256, 8, 2048, vec![stream()?];
    the_largest_i32_of_long_rows: i32, Greater, 256, 8, 2048, vec![stream()?];
}

#[test]
fn more_than_half_a_tile_is_a_fault_that_says_the_limit() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_zeroed::<f32>(2000)?;
    let (mut out, mut indices) = (stream.buffer_zeroed(513)?, stream.buffer_zeroed(513)?);
    let kernel = top_k_rows::<f32, Less, 128, 8, 1024>::launch;
    let launched = kernel(&stream, (1, 128), &x, 2000, 513, &mut out, &mut indices, Less);
    let error = launched.and_then(|()| stream.synchronize()).unwrap_err().to_string();
    assert!(error.contains("513") && error.contains("512"), "{error}");
    Ok(())
}
