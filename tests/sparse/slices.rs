//! Tests matrices in slices against the same matrices in rows.

use kernel_primitives::algorithms::{Csr, Planned, Sell, spmv, spmv_by, spmv_with};
use kernel_primitives::functor::{Add, Axpby, Min, Overwrite, PlusTimes, Semiring};
use kernel_primitives::input::counting;
use kernel_primitives::{Device, EmulatorOptions, Error, Result, Stream, f16};

use crate::kernels::{CheckedSum, MeanProduct};
use crate::support::{Random, stream, streams};
use crate::{Host, lengths};

/// Returns a small whole number. Sums of products of such numbers are exact.
fn whole(bits: u64) -> f32 {
    (bits % 17) as f32 - 8.0
}

fn products(matrix: &Host<f32>, x: &[f32]) -> Vec<f32> {
    (0..matrix.rows()).map(|row| matrix.row(row).map(|(column, value)| value * x[column]).sum()).collect()
}

fn is_right(stream: &Stream, matrix: &Host<f32>, window: usize, random: &mut Random) -> Result<()> {
    let x: Vec<f32> = (0..matrix.columns).map(|_| whole(random.bits())).collect();
    let rows = matrix.rows();
    let in_rows = matrix.on(stream)?;
    let a = Sell::from_csr(stream, &in_rows, window)?;
    assert_eq!(a.to_coo()?, in_rows.to_coo()?);
    assert_eq!((a.rows(), a.columns(), a.entries()), (rows, matrix.columns, matrix.values.len()));

    // Each slice has the slots of its longest row. In each window, rows are in the order of descending lengths. They stay in the matrix's
    // order if this needs only few more slots than there are entries.
    let mut counts: Vec<usize> = (0..rows).map(|row| matrix.row(row).count()).collect();
    let slots =
        |counts: &[usize]| counts.chunks(32).map(|slice| 32 * slice.iter().max().expect("a row")).sum::<usize>();
    let (entries, without_row) = (matrix.values.len(), rows.next_multiple_of(32) - rows);
    let last = counts.chunks(32).last().and_then(|slice| slice.iter().max().copied()).unwrap_or(0);
    if slots(&counts) > entries + entries / 16 + without_row * last {
        for window in counts.chunks_mut(window.min(rows).max(1).next_multiple_of(32)) {
            window.sort_by(|a, b| b.cmp(a));
        }
    }
    assert_eq!(a.slots(), slots(&counts), "window {window}");

    let expected = products(matrix, &x);
    let there = stream.buffer_from(&x)?;
    // The memory after the rows is unchanged.
    let mut y = stream.buffer_from(&vec![77.0f32; rows + 1])?;
    spmv(stream, &a, &there, &mut y)?;
    let mut with_rest = expected.clone();
    with_rest.push(77.0);
    assert_eq!(y.to_vec()?, with_rest, "window {window}");

    let z = stream.buffer_from(&vec![3.0f32; rows])?;
    spmv_with(stream, &a, &there, PlusTimes, Axpby { alpha: -1.0, beta: 2.0 }, &z, &mut y)?;
    assert!(y.to_vec()?[..rows].iter().zip(&expected).all(|(found, product)| *found == 6.0 - product));
    Ok(())
}

/// Of the last slice, which has one short row, the lanes without a row do not count. Long rows elsewhere are not forgiven for it.
#[test]
fn rows_are_sorted_if_slices_before_the_last_waste_slots() -> Result<()> {
    let (stream, mut random) = (stream()?, Random::new(91));
    let lengths = [vec![100; 32], vec![50], vec![1; 31], vec![50], vec![1; 31], vec![1]].concat();
    let matrix = Host::of_lengths(120, lengths, &mut random, whole);
    assert_eq!(Sell::from_csr(&stream, &matrix.on(&stream)?, 4096)?.slots(), 4864);
    is_right(&stream, &matrix, 4096, &mut random)
}

#[test]
fn products_in_slices_are_those_in_rows() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(51);
    for kind in 0..18 {
        let columns = [300, 1, 77][kind % 3];
        let matrix = Host::of_lengths(columns, lengths(kind, &mut random), &mut random, whole);
        for window in [0, 1, 32, 33, 64, usize::MAX] {
            is_right(&stream, &matrix, window, &mut random)?;
        }
    }
    Ok(())
}

/// There are rows in their order, with the number of entries of their slices or fewer, and sorted rows. They have up to twice the number of
/// entries in flight, and more.
#[test]
fn rows_of_any_length_have_their_products_in_slices() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(57);
    for longest in (0..19).chain([33]) {
        let even = vec![longest; 70];
        let edges = (0..70).map(|row| longest - usize::from(row % 16 == 0 && longest > 0)).collect();
        let ragged = (0..140).map(|row| if row % 3 == 0 { longest } else { row % (longest + 1) }).collect();
        for lengths in [even, edges, ragged] {
            let matrix = Host::of_lengths(50, lengths, &mut random, whole);
            for window in [32, 128] {
                is_right(&stream, &matrix, window, &mut random)?;
            }
        }
    }
    Ok(())
}

/// Returns rows of matrices that stay in their order, with slices of equally long rows and of other rows, and of one matrix that is sorted.
/// Some rows are empty.
fn kinds_of_rows() -> [Vec<usize>; 4] {
    let edges = (0..90).map(|row| if row % 31 == 5 { 2 } else { 7 }).collect();
    let sorted = (0..140).map(|row| if row % 3 == 0 { 20 } else { row % 5 }).collect();
    [vec![3; 70], edges, [vec![0; 32], vec![5; 40], vec![0; 30]].concat(), sorted]
}

/// Items of slots without an entry may be NaN. So may a row's last entry, which such slots repeat.
#[test]
fn rows_beside_such_of_no_numbers_have_their_products_in_slices() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(58);
    for lengths in kinds_of_rows() {
        for odd in [f32::NAN, f32::INFINITY] {
            let mut matrix = Host::of_lengths(40, lengths.clone(), &mut random, whole);
            for row in (0..matrix.rows()).filter(|row| row % 2 == 0 && lengths[*row] > 0) {
                matrix.values[matrix.offsets[row + 1] as usize - 1] = odd;
            }
            let x: Vec<f32> = (0..40).map(|_| whole(random.bits()) + 9.0).collect();
            let a = Sell::from_csr(&stream, &matrix.on(&stream)?, 128)?;
            let mut y = stream.buffer_from(&vec![77.0f32; matrix.rows()])?;
            spmv(&stream, &a, &stream.buffer_from(&x)?, &mut y)?;
            for (row, (found, expected)) in y.to_vec()?.into_iter().zip(products(&matrix, &x)).enumerate() {
                let is_right = found == expected || found.is_nan() && expected.is_nan();
                assert!(is_right, "{row} of {} entries: {found}, {expected}", lengths[row]);
            }
        }
    }
    Ok(())
}

/// No slot without an entry is combined, even if its result is not used.
#[test]
fn an_operator_sees_the_entries_of_a_row_alone() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(59);
    for lengths in kinds_of_rows() {
        let mut matrix = Host::of_lengths(40, lengths, &mut random, |_| 1u32);
        let mut expected = Vec::new();
        for row in 0..matrix.rows() {
            let entries = matrix.offsets[row] as usize..matrix.offsets[row + 1] as usize;
            // Sums are as large as possible, with a large last entry.
            if let Some(last) = entries.clone().next_back() {
                matrix.values[last] = u32::MAX - (entries.len() as u32 - 1);
            }
            expected.push(if entries.is_empty() { 0 } else { u32::MAX });
        }
        let a = Sell::from_csr(&stream, &matrix.on(&stream)?, 128)?;
        let mut y = stream.buffer_from(&vec![7u32; matrix.rows()])?;
        spmv_by(&stream, &a, &stream.buffer_from(&[1u32; 40])?, CheckedSum, Overwrite, &mut y)?;
        assert_eq!(y.to_vec()?, expected);
    }
    Ok(())
}

#[test]
fn results_in_slices_know_how_many_entries_their_row_has() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(60);
    for lengths in kinds_of_rows() {
        let matrix = Host::of_lengths(40, lengths, &mut random, |bits| f64::from(whole(bits)));
        let x: Vec<f64> = (0..40).map(|_| f64::from(whole(random.bits()))).collect();
        let mean = |row: usize| {
            let sum: f64 = matrix.row(row).map(|(column, value)| value * x[column]).sum();
            sum / matrix.row(row).count().max(1) as f64
        };
        let a = Sell::from_csr(&stream, &matrix.on(&stream)?, 128)?;
        let mut y = stream.buffer_from(&vec![77.0f64; matrix.rows()])?;
        spmv_by(&stream, &a, &stream.buffer_from(&x)?, MeanProduct, Overwrite, &mut y)?;
        assert_eq!(y.to_vec()?, (0..matrix.rows()).map(mean).collect::<Vec<_>>());
    }
    Ok(())
}

#[test]
fn indices_of_64_bits_have_products_in_slices() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(61);
    for lengths in kinds_of_rows() {
        let matrix = Host::of_lengths(40, lengths, &mut random, whole);
        let x: Vec<f32> = (0..40).map(|column| column as f32).collect();
        let (offsets, indices): (Vec<u64>, Vec<u64>) = (
            matrix.offsets.iter().map(|&at| at.into()).collect(),
            matrix.indices.iter().map(|&at| at.into()).collect(),
        );
        let values: Vec<f16> = matrix.values.iter().map(|&value| f16::from_f32(value)).collect();
        let a = Csr::new(&stream, (matrix.rows(), 40), &offsets, &indices, &values)?;
        let slices = Sell::from_csr(&stream, &a, 128)?;
        assert_eq!(slices.to_coo()?, a.to_coo()?);
        let mut y = stream.buffer_from(&vec![77.0f32; matrix.rows()])?;
        spmv(&stream, &slices, counting(0.0f32, 40), &mut y)?;
        assert_eq!(y.to_vec()?, products(&matrix, &x));
    }
    Ok(())
}

#[test]
fn slices_have_products_on_every_device_sanitize() -> Result<()> {
    let mut random = Random::new(52);
    for stream in streams()? {
        for (columns, rows) in [(0, vec![0; 5]), (40, vec![]), (40, vec![3, 0, 70, 0, 5]), (9, vec![1; 33])] {
            let matrix = Host::of_lengths(columns, rows, &mut random, whole);
            is_right(&stream, &matrix, 64, &mut random)?;
        }
    }
    Ok(())
}

#[test]
fn a_large_matrix_of_middling_rows_is_planned_in_slices() -> Result<()> {
    let mut options = EmulatorOptions::default();
    options.checked = false;
    let stream = Device::emulator_with(options).stream()?;
    let rows = 300_000u32;
    let offsets: Vec<u32> = (0..=rows).map(|row| 11 * row).collect();
    let indices: Vec<u32> = (0..11 * rows).map(|entry| entry % 50).collect();
    let a = Csr::new(&stream, (rows as usize, 50), &offsets, &indices, &vec![1.0f32; indices.len()])?;
    let a = Planned::new(&stream, a)?;
    assert!(matches!(a, Planned::Slices(_)));
    let mut y = stream.buffer_zeroed::<f32>(rows as usize)?;
    spmv(&stream, &a, &stream.buffer_from(&[1.0f32; 50])?, &mut y)?;
    assert!(y.to_vec()?.iter().all(|&sum| sum == 11.0));
    Ok(())
}

#[test]
fn a_planned_matrix_has_its_products_in_either_format() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(56);
    let giant = (0..300).map(|row| if row == 7 { 20_000 } else { 3 });
    for lengths in [vec![20; 200], vec![], giant.collect()] {
        let matrix = Host::of_lengths(50, lengths, &mut random, whole);
        let x: Vec<f32> = (0..50).map(|_| whole(random.bits())).collect();
        let planned = Planned::new(&stream, matrix.on(&stream)?)?;
        assert!(matches!(planned, Planned::Rows(_)));
        for a in [planned, Planned::Slices(Sell::from_csr(&stream, &matrix.on(&stream)?, 64)?)] {
            let mut y = stream.buffer_zeroed::<f32>(matrix.rows())?;
            spmv(&stream, &a, &stream.buffer_from(&x)?, &mut y)?;
            assert_eq!(y.to_vec()?, products(&matrix, &x));
        }
    }
    Ok(())
}

/// Unused slots take no part. With this semiring, not even zeros would be right.
#[test]
fn any_semiring_has_products_in_slices() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(53);
    let matrix = Host::of_lengths(30, [3, 0, 50, 1, 8], &mut random, |bits| (bits % 90 + 1) as f32);
    let x: Vec<f32> = (0..30).map(|_| random.below(50) as f32).collect();
    let expected: Vec<f32> = (0..5)
        .map(|row| matrix.row(row).map(|(column, length)| length + x[column]).fold(f32::INFINITY, f32::min))
        .collect();
    let a = Sell::from_csr(&stream, &matrix.on(&stream)?, 32)?;
    let mut y = stream.buffer_zeroed::<f32>(5)?;
    spmv_by(&stream, &a, &stream.buffer_from(&x)?, Semiring { plus: Min, times: Add }, Overwrite, &mut y)?;
    assert_eq!(y.to_vec()?, expected);
    Ok(())
}

/// The last slices have no slots. Their rows begin at the end of the slices before them, or after it.
#[test]
fn rows_without_entries_in_the_last_slices_have_the_identity_sanitize() -> Result<()> {
    let mut random = Random::new(55);
    for stream in streams()? {
        for (with, without) in [(0, 1), (0, 33), (32, 2), (40, 30), (64, 64)] {
            let lengths = [vec![3; with], vec![0; without]].concat();
            let matrix = Host::of_lengths(9, lengths, &mut random, whole);
            for window in [32, usize::MAX] {
                is_right(&stream, &matrix, window, &mut random)?;
                let a = Sell::from_csr(&stream, &matrix.on(&stream)?, window)?;
                let (x, mut y) = (stream.buffer_zeroed::<f32>(9)?, stream.buffer_zeroed::<f32>(with + without)?);
                spmv_by(&stream, &a, &x, Semiring { plus: Min, times: Add }, Overwrite, &mut y)?;
                assert!(y.to_vec()?[with..].iter().all(|&found| found == f32::INFINITY), "{with}, {without}, {window}");
            }
        }
    }
    Ok(())
}

#[test]
fn sums_of_floats_have_the_same_bits_on_every_device_and_window() -> Result<()> {
    let mut random = Random::new(54);
    let unit = |bits: u64| bits as f32 / u64::MAX as f32 - 0.5;
    let matrix = Host::of_lengths(500, (0..300).map(|row| row * 7 % 90), &mut random, unit);
    let x: Vec<f32> = (0..500).map(|_| unit(random.bits())).collect();
    let mut all = Vec::new();
    for stream in streams()? {
        for window in [32, 300] {
            let a: Csr<f32> = matrix.on(&stream)?;
            let a = Sell::from_csr(&stream, &a, window)?;
            let mut y = stream.buffer_zeroed::<f32>(300)?;
            spmv(&stream, &a, &stream.buffer_from(&x)?, &mut y)?;
            all.push(y.to_vec()?.into_iter().map(f32::to_bits).collect::<Vec<_>>());
        }
    }
    assert!(all.iter().all(|bits| *bits == all[0]));
    Ok(())
}

#[test]
fn slices_of_a_matrix_that_was_written_after_it_was_checked_have_no_more_than_their_slots() -> Result<()> {
    let stream = stream()?;
    let (mut offsets, bad) = (stream.buffer_from(&[0u32, 1, 2])?, stream.buffer_from(&[0u32, 1, 4])?);
    let graph = stream.capture(|stream| offsets.as_mut_slice().copy_from_device(stream, bad.as_slice()))?;
    let (indices, values) = (stream.buffer_from(&[0u32, 0])?, stream.buffer_from(&[1.0f32; 2])?);
    let a = Csr::from_buffers(&stream, (2, 1), offsets, indices, values)?;
    graph.launch(&stream)?;
    // On a GPU, a fault is known when a call waits for the kernel.
    match Sell::from_csr(&stream, &a, 32).and_then(|slices| slices.to_coo()) {
        Ok(triplets) => assert!(triplets.iter().count() <= 2),
        Err(Error::Fault(_)) => {}
        Err(other) => return Err(other),
    }
    Ok(())
}
