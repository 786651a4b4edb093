//! Reading and writing tiles, and the views that tiles and items index.

use kernel_primitives::{Buffer, Dims, Result, Stream, bf16, f16};

use crate::kernels::io as kernels;
use crate::kernels::{Flagged, Sixteen, Twelve};
use crate::support::{Arbitrary, Case, LENGTHS, SHAPES, cases, stream, streams, threads, values};

/// A buffer with `case.offset` elements before `case.len` ones and a few behind, all arbitrary, and those elements.
fn surrounded<T: Arbitrary>(stream: &Stream, case: Case, seed: u64) -> Result<(Buffer<T>, Vec<T>)> {
    let all = values::<T>(case.offset + case.len + 40, seed);
    Ok((stream.buffer_from(&all)?, all))
}

/// Copies slices at each case's offset, and checks that nothing around the target changed.
fn copies<T: Arbitrary, const NX: usize>(
    variant: usize,
    launch: impl Fn(&Stream, Dims, &Buffer<T>, &mut Buffer<T>, Case) -> Result<()>,
) -> Result<()> {
    let stream = stream()?;
    for case in cases(variant) {
        let (x, source) = surrounded::<T>(&stream, case, 1)?;
        // The target lies elsewhere with respect to vectors than the source does, in some cases.
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
