//! Tests reading and writing of tiles, and the views that tiles and items index.

use kernel_primitives::element::Arithmetic;
use kernel_primitives::{Buffer, Complex, Dims, Result, Stream, bf16, f16};
use proptest::prelude::any;

use crate::kernels::{Flagged, Sixteen, Twelve, io as kernels};
use crate::support::{
    Arbitrary, Case, LENGTHS, OFFSETS, SHAPES, any_shape, cases, holds, stream, streams, threads, values,
};

mod broadcast;
mod windows;

/// Makes a buffer of arbitrary elements: `case.offset` elements, then `case.len` elements, and then a few more. Returns
/// the elements, too.
fn surrounded<T: Arbitrary>(stream: &Stream, case: Case, seed: u64) -> Result<(Buffer<T>, Vec<T>)> {
    let all = values::<T>(case.offset + case.len + 40, seed);
    Ok((stream.buffer_from(&all)?, all))
}

/// Copies slices at each case's offset, and checks that nothing around the target changes.
fn copies<T: Arbitrary, const NX: usize>(
    variant: usize,
    launch: impl Fn(&Stream, Dims, &Buffer<T>, &mut Buffer<T>, Case) -> Result<()>,
) -> Result<()> {
    let stream = stream()?;
    for case in cases(variant) {
        let (x, source) = surrounded::<T>(&stream, case, 1)?;
        // In some cases, the target is not aligned in the same way as the source.
        let target_case = Case { offset: (case.offset * 2 + variant) % 5, ..case };
        let (mut out, before) = surrounded::<T>(&stream, target_case, 2)?;
        launch(&stream, case.dims(NX, 5), &x, &mut out, case)?;
        let after = out.to_vec()?;
        let (start, end) = (target_case.offset, target_case.offset + case.len);
        assert_eq!(after[start..end], source[case.offset..case.offset + case.len], "{case:?}");
        assert_eq!(after[..start], before[..start], "written before the slice: {case:?}");
        assert_eq!(after[end..], before[end..], "written behind the slice: {case:?}");
    }
    Ok(())
}

macro_rules! copies {
    ($($name:ident: $t:ty, [$($nx:literal),*], $variant:literal;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            let mut variant = $variant;
            $(
                copies::<$t, $nx>(variant, |stream, dims, x, out, case| {
                    let target = (case.offset * 2 + variant) % 5;
                    kernels::copy::<$t, $nx>::launch(
                        stream,
                        dims,
                        x.slice(case.offset..case.offset + case.len)?,
                        out.slice_mut(target..target + case.len)?,
                    )
                })?;
                variant += 1;
            )*
            let _ = variant;
            Ok(())
        }
    )*};
}
copies! {
    slices_of_f32_are_copied_and_nothing_else: f32, [1, 2, 4, 8, 3], 0;
    slices_of_f64_are_copied_and_nothing_else: f64, [1, 2, 4, 8, 3], 5;
    slices_of_f16_are_copied_and_nothing_else: f16, [1, 2, 4, 8, 3], 10;
    slices_of_bf16_are_copied_and_nothing_else: bf16, [1, 2, 4, 8, 3], 15;
    slices_of_i32_are_copied_and_nothing_else: i32, [1, 2, 4, 8, 3], 20;
    slices_of_u32_are_copied_and_nothing_else: u32, [1, 2, 4, 8, 3], 25;
    slices_of_bool_are_copied_and_nothing_else: bool, [1, 2, 4, 8, 3], 30;
    slices_of_u8_are_copied_and_nothing_else: u8, [1, 2, 4, 8, 3, 16], 35;
    slices_of_i64_are_copied_and_nothing_else: i64, [1, 2, 4, 8, 3], 41;
    slices_of_12_byte_elements_are_copied_and_nothing_else: Twelve, [1, 2, 4, 8, 3], 46;
    slices_of_16_byte_elements_are_copied_and_nothing_else: Sixteen, [1, 2, 4, 8, 3], 51;
    slices_of_3_byte_elements_are_copied_and_nothing_else: [u8; 3], [4], 56;
    slices_of_elements_with_bools_are_copied_and_nothing_else: Flagged, [1, 4], 57;
}

/// These are the element types that no other test has, and some more.
#[test]
fn slices_of_elements_of_any_type_are_copied_and_nothing_else() {
    macro_rules! check {
        ($($cases:literal: $t:ty, $nx:literal;)*) => {$({
            let inputs = (any_shape(400), 1..4usize, 0..3000usize, [0..OFFSETS, 0..OFFSETS], any::<u64>());
            holds($cases, inputs, |(shape, blocks, len, [from, to], seed)| {
                let stream = stream()?;
                let (source, mut expected) = (values::<$t>(from + len + 3, seed), values::<$t>(to + len + 3, !seed));
                let (x, mut out) = (stream.buffer_from(&source)?, stream.buffer_from(&expected)?);
                let dims = Case { shape, len, offset: from }.dims($nx, blocks);
                let target = out.slice_mut(to..to + len)?;
                kernels::copy::<$t, $nx>::launch(&stream, dims, x.slice(from..from + len)?, target)?;
                expected[to..to + len].copy_from_slice(&source[from..from + len]);
                assert!(out.to_vec()? == expected);
                Ok(())
            });
        })*};
    }
    check! {
        8: i8, 16;
        8: i16, 8;
        8: u16, 4;
        8: u64, 2;
        8: Complex<f32>, 2;
        8: Complex<f64>, 3;
        16: f32, 4;
        16: Twelve, 3;
    }
}

#[test]
fn sanitize_unaligned_slices_are_copied() -> Result<()> {
    let stream = stream()?;
    let x = values::<f32>(600, 1);
    for (from, to, len) in [(0, 0, 512), (1, 0, 500), (0, 3, 511), (2, 2, 17), (3, 1, 0)] {
        let mut out = stream.buffer_from(&vec![-1.0f32; 600])?;
        let source = stream.buffer_from(&x)?;
        let target = out.slice_mut(to..to + len)?;
        kernels::copy::<f32, 4>::launch(&stream, (2, 65), source.slice(from..from + len)?, target)?;
        let mut expected = vec![-1.0; 600];
        expected[to..to + len].copy_from_slice(&x[from..from + len]);
        assert_eq!(out.to_vec()?, expected);
    }
    Ok(())
}

macro_rules! guarded {
    ($($t:ty, $nx:literal;)*) => {$({
        let stream = stream()?;
        for (k, shape) in SHAPES.into_iter().enumerate() {
            let tile = threads(shape) * $nx;
            for len in [0, 1, $nx - 1, $nx, tile / 2 + 1, tile - 1, tile, tile + 5] {
                let offset = (k + len) % 3;
                let x = values::<$t>(offset + len, 3);
                let before = <$t as Arbitrary>::arbitrary(77);
                let mut out = stream.buffer_zeroed(tile)?;
                let input = stream.buffer_from(&x)?;
                kernels::read_guarded::<$t, $nx>::launch(&stream, (1, shape), before, input.slice(offset..)?, &mut out)?;
                let mut expected = vec![before; tile];
                let read = len.min(tile);
                expected[..read].copy_from_slice(&x[offset..offset + read]);
                assert_eq!(out.to_vec()?, expected, "{shape:?}, {len} elements");
            }
        }
    })*};
}

#[test]
fn a_guarded_read_keeps_what_the_registers_held() -> Result<()> {
    guarded! {
        f32, 1;
        f32, 4;
        f16, 8;
        u8, 3;
        f64, 2;
        Twelve, 2;
    }
    Ok(())
}

macro_rules! doubled {
    ($($t:ty, $nx:literal, $variant:literal;)*) => {$({
        let stream = stream()?;
        for case in cases($variant) {
            let (mut data, before) = surrounded::<$t>(&stream, case, 4)?;
            let range = case.offset..case.offset + case.len;
            let target = data.slice_mut(range.clone())?;
            kernels::double_tiles::<$t, $nx>::launch(&stream, case.dims($nx, 4), target)?;
            let mut expected = before;
            expected[range].iter_mut().for_each(|v| *v = kernel_primitives::Arithmetic::add(*v, *v));
            assert_eq!(data.to_vec()?, expected, "{case:?}");
        }
    })*};
}

#[test]
fn tiles_are_read_back_and_written_in_place() -> Result<()> {
    doubled! {
        f32, 4, 0;
        i32, 1, 1;
        f64, 3, 2;
        u8, 8, 3;
    }
    Ok(())
}

#[test]
fn sanitize_items_are_read_back_and_written_in_place() -> Result<()> {
    for stream in streams()? {
        for (grid, len) in [(1, 100), (3, 100), (2, 1000), (2, 0)] {
            let x = values::<f32>(len, 1);
            let mut data = stream.buffer_from(&x)?;
            kernels::double_items::launch(&stream, (grid, (7, 3)), &mut data)?;
            assert_eq!(data.to_vec()?, x.iter().map(|v| v * 2.0).collect::<Vec<_>>());
        }
    }
    Ok(())
}

#[test]
fn each_index_is_an_item_of_one_thread() -> Result<()> {
    let stream = stream()?;
    let grids = [(1, 1, 1), (3, 1, 1), (2, 3, 1), (2, 2, 2), (17, 1, 1)];
    for (k, shape) in SHAPES.into_iter().enumerate() {
        for (j, len) in LENGTHS.into_iter().enumerate() {
            let mut visits = stream.buffer_zeroed(len)?;
            kernels::visit_items::launch(&stream, (grids[(k + j) % 5], shape), &mut visits)?;
            assert!(visits.to_vec()?.iter().all(|&times| times == 1), "{shape:?}, {len}");
        }
    }
    Ok(())
}

macro_rules! visited {
    ($($nx:literal),*) => {$({
        let stream = stream()?;
        let grids = [(1, 1, 1), (3, 1, 1), (2, 3, 1), (2, 2, 2), (17, 1, 1)];
        for (k, shape) in SHAPES.into_iter().enumerate() {
            for (j, len) in LENGTHS.into_iter().enumerate() {
                let mut visits = stream.buffer_zeroed(len)?;
                kernels::visit_tiles::<$nx>::launch(&stream, (grids[(k + j + $nx) % 5], shape), &mut visits)?;
                assert!(visits.to_vec()?.iter().all(|&times| times == 1), "{shape:?}, {len}, {}", $nx);
            }
        }
    })*};
}

#[test]
fn each_index_is_in_one_tile() -> Result<()> {
    visited!(1, 2, 3, 4, 8);
    Ok(())
}

#[test]
fn tiles_of_more_than_2_to_the_32_elements() -> Result<()> {
    let stream = stream()?;
    let len = (1u64 << 34) + 12_345;
    let (grid, block) = (3u64, 32u64);
    let mut out = stream.buffer_zeroed(grid as usize)?;
    kernels::count_tiles::launch(&stream, (grid as u32, block as u32), len, &mut out)?;
    let found = out.to_vec()?;
    let tile = block * 65536;
    for (b, [tiles, elements, last]) in found.into_iter().enumerate() {
        let mine: Vec<u64> = (b as u64..len.div_ceil(tile)).step_by(grid as usize).collect();
        assert_eq!(tiles, mine.len() as u64);
        assert_eq!(elements, mine.iter().map(|t| tile.min(len - t * tile)).sum::<u64>());
        assert_eq!(last, mine.last().unwrap() * tile);
    }
    Ok(())
}

#[test]
fn sanitize_slices_of_a_view_and_elements_that_may_be_missing() -> Result<()> {
    let stream = stream()?;
    let x = values::<u32>(100, 1);
    let input = stream.buffer_from(&x)?;
    for (start, end) in [(0, 100), (0, 0), (100, 100), (13, 57), (99, 100)] {
        let mut out = stream.buffer_zeroed(120)?;
        kernels::get_of_slice::launch(&stream, (2, 33), start as u64, end as u64, 7, &input, &mut out)?;
        let part = &x[start..end];
        let expected: Vec<u32> = (0..120).map(|i| part.get(i).copied().unwrap_or(7)).collect();
        assert_eq!(out.to_vec()?, expected);
    }
    let doubles = stream.buffer_zeroed::<f64>(9)?;
    let mut lengths = stream.buffer_zeroed(1)?;
    kernels::slice_lengths::launch(&stream, (1, 1), &doubles, &mut lengths)?;
    assert_eq!(lengths.to_vec()?, [[9, 9, 7, 3, 3, 1000]]);
    Ok(())
}

#[test]
fn sanitize_each_block_stores_its_element() -> Result<()> {
    for stream in streams()? {
        for grid in [(1, 1, 1), (100, 1, 1), (3, 5, 2)] {
            let blocks = threads(grid);
            let mut out = stream.buffer_zeroed(blocks + 2)?;
            kernels::store_block_ranks::launch(&stream, (grid, (7, 3)), out.slice_mut(1..=blocks)?)?;
            let expected: Vec<u64> = [0].into_iter().chain(0..blocks as u64).chain([0]).collect();
            assert_eq!(out.to_vec()?, expected);
        }
    }
    Ok(())
}

#[test]
fn registers_count_their_elements() -> Result<()> {
    let stream = stream()?;
    for case in cases(3).filter(|case| case.len > 0) {
        let dims = |nx| case.dims(nx, 3);
        let mut floats = stream.buffer_zeroed::<f32>(case.len)?;
        kernels::indices::<f32, 4>::launch(&stream, dims(4), &mut floats)?;
        assert_eq!(floats.to_vec()?, (0..case.len).map(|i| i as f32).collect::<Vec<_>>(), "{case:?}");
        let mut bytes = stream.buffer_zeroed::<u8>(case.len)?;
        kernels::indices::<u8, 3>::launch(&stream, dims(3), &mut bytes)?;
        assert_eq!(bytes.to_vec()?, (0..case.len).map(|i| i as u8).collect::<Vec<_>>(), "{case:?}");
        let mut halves = stream.buffer_zeroed::<f16>(case.len)?;
        kernels::indices::<f16, 8>::launch(&stream, dims(8), &mut halves)?;
        assert_eq!(halves.to_vec()?, (0..case.len).map(|i| f16::from_f64(i as f64)).collect::<Vec<_>>(), "{case:?}");
    }
    Ok(())
}

#[test]
fn sanitize_what_a_reduction_combines_is_read_along_either_dimension() -> Result<()> {
    let stream = stream()?;
    let (rows, columns) = (40usize, 30usize);
    let data: Vec<i32> = (0..(rows * columns) as i32).collect();
    let x = stream.buffer_from(&data)?;
    for shape in [(32, 2, 1), (7, 3, 1), (1, 16, 1)] {
        for reduce_last in [true, false] {
            let (kept, reduced) = if reduce_last { (rows, columns) } else { (columns, rows) };
            let first = 3;
            let window = [kept as u32, (reduced - first) as u32, 17, 11];
            let mut out = stream.buffer_zeroed::<[[i64; 2]; 3]>(threads(shape))?;
            let columns32 = columns as u32;
            kernels::read_to_reduce::launch(
                &stream,
                (1, shape),
                &x,
                columns32,
                first as u32,
                window,
                reduce_last,
                &mut out,
            )?;
            for (rank, found) in out.to_vec()?.into_iter().enumerate() {
                let (tx, ty) = (rank % shape.0 as usize, rank / shape.0 as usize);
                let (own_kept, own_reduced) = if reduce_last { (ty, tx) } else { (tx, ty) };
                for (y, x) in (0..3).flat_map(|y| (0..2).map(move |x| (y, x))) {
                    let (k, r) = (own_kept + x * 17, own_reduced + y * 11);
                    let expected = if k < kept && r < reduced - first {
                        let (row, column) = if reduce_last { (k, r + first) } else { (r + first, k) };
                        -((row * columns + column) as i64)
                    } else {
                        1
                    };
                    assert_eq!(found[y][x], expected, "{shape:?} thread {rank} [{y}][{x}] {reduce_last}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn the_number_of_items_can_be_known_at_run_time() -> Result<()> {
    let stream = stream()?;
    let data = values::<u32>(80, 2).into_iter().map(|v| v >> 1).collect::<Vec<_>>();
    let x = stream.buffer_from(&data)?;
    for lens in 0..=8 {
        let mut out = stream.buffer_zeroed::<u32>(80)?;
        kernels::increment_lens::launch(&stream, (1, 10), lens, &x, &mut out)?;
        let written = lens as usize * 10;
        let expected: Vec<u32> = (0..80).map(|i| if i < written { data[i] + 1 } else { 0 }).collect();
        assert_eq!(out.to_vec()?, expected, "{lens} items a thread");
    }
    let mut out = stream.buffer_zeroed::<u32>(80)?;
    let result = kernels::increment_lens::launch(&stream, (1, 10), 9, &x, &mut out);
    let error = result.and_then(|()| stream.synchronize()).unwrap_err().to_string();
    assert!(error.contains("size of 9; its limit is 8"), "{error}");
    Ok(())
}

macro_rules! rows {
    ($($name:ident: $t:ty, $nx:literal;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            for stream in streams()? {
                for (k, columns) in [1usize, 2, 3, 15, 16, 64, 100, 1000].into_iter().enumerate() {
                    let data = values::<$t>(columns * 9, k as u64);
                    let x = stream.buffer_from(&data)?;
                    let mut out = stream.buffer_zeroed::<$t>(data.len())?;
                    kernels::double_rows::<$t, $nx>::launch(&stream, (4, SHAPES[k]), columns as u32, &x, &mut out)?;
                    let expected: Vec<$t> = data.iter().map(|&v| Arithmetic::add(v, v)).collect();
                    assert_eq!(out.to_vec()?, expected, "{columns} columns");
                }
            }
            Ok(())
        }
    )*};
}
rows! {
    sanitize_rows_are_read_and_written: f32, 4;
    rows_of_f64_are_read_and_written: f64, 3;
    rows_of_bytes_are_read_and_written: u8, 16;
    rows_of_halves_are_read_and_written: f16, 1;
}

/// A round that is after the end of each row must not be a round of another thread.
#[test]
fn rounds_that_a_row_does_not_have_are_not_written() -> Result<()> {
    let stream = stream()?;
    for (round, written, by_warps) in [(0, 256, 512), (3, 256, 0), (4, 0, 0), (1 << 20, 0, 0)] {
        check_rounds(&stream, round, written, by_warps)?;
    }
    // With 256 elements in a round and 512 in a tile, the positions of these rounds overflow to the start of the row,
    // or of the next round.
    for round in [1 << 56, (1 << 56) + 1, 1 << 55, (1 << 55) + 1, usize::MAX / 256, usize::MAX / 512 + 1, usize::MAX] {
        check_rounds(&stream, round, 0, 0)?;
    }
    Ok(())
}

/// Checks the number of written elements in each row, for blocks of 64 threads with four elements each, and for warps
/// with two rounds.
#[track_caller]
fn check_rounds(stream: &Stream, round: usize, written: usize, by_warps: usize) -> Result<()> {
    let columns = 1024;
    let mut rows = [stream.buffer_zeroed::<u32>(3 * columns)?, stream.buffer_zeroed::<u32>(3 * columns)?];
    let [out, warps] = &mut rows;
    kernels::write_rounds::launch(stream, (2, 64), round, columns, out, warps)?;
    for (rows, written) in rows.iter().zip([written, by_warps]) {
        for row in rows.to_vec()?.chunks(columns) {
            assert_eq!(row.iter().sum::<u32>() as usize, written, "round {round}");
        }
    }
    Ok(())
}
