//! Tests products by windows: numbers of rows near that of a block, windows near the largest that there is room for, and wider windows.

use kernel_primitives::algorithms::{Csr, Run, SpmvMethod, spmv, spmv_by, spmv_with};
use kernel_primitives::functor::{Add, Axpby, LogicalAnd, LogicalOr, Min, Overwrite, PlusTimes, Semiring};
use kernel_primitives::input::{Counting, Span, Zip, counting, zip};
use kernel_primitives::kernels::device::{CSR_WINDOW_LANES, CSR_WINDOW_ROWS, csr_window_room};
use kernel_primitives::{Complex, Element, Result, Stream, f16};

use crate::Host;
use crate::kernels::{FirstColumn, MarkedSum, MeanProduct, Powers};
use crate::products::whole;
use crate::support::{Random, stream, streams};

/// Makes rows with up to a number of entries, in any order, and some empty rows. Columns are up to `reach` before or after the row's
/// number.
fn band<V: Element>(
    (rows, most, reach): (usize, usize, usize),
    random: &mut Random,
    value: impl Fn(u64) -> V,
) -> Host<V> {
    let mut matrix = Host { columns: rows, offsets: vec![0], indices: Vec::new(), values: Vec::new() };
    for row in 0..rows {
        let (first, last) = (row.saturating_sub(reach), (row + reach).min(rows - 1));
        for _ in 0..random.below(most as u64 + 1) {
            matrix.indices.push((first as u64 + random.below((last - first + 1) as u64)) as u32);
            matrix.values.push(value(random.bits()));
        }
        matrix.offsets.push(matrix.values.len() as u32);
    }
    matrix
}

/// Makes a matrix of blocks of rows. Each block has the columns from the first to the last of its window, and others between them. Both
/// ends are in the middle of rows, and the last end comes first.
fn in_windows<V: Element>(
    columns: usize,
    windows: &[(usize, usize)],
    random: &mut Random,
    value: impl Fn(u64) -> V,
) -> Host<V> {
    let mut matrix = Host { columns, offsets: vec![0], indices: Vec::new(), values: Vec::new() };
    for &(first, last) in windows {
        let ends = (random.below(100), 100 + random.below(CSR_WINDOW_ROWS as u64 - 100));
        for row in 0..CSR_WINDOW_ROWS as u64 {
            for entry in 0..3 {
                let between = first as u64 + random.below((last - first + 1) as u64);
                let column = match entry {
                    1 if row == ends.0 => last as u64,
                    1 if row == ends.1 => first as u64,
                    _ => between,
                };
                matrix.indices.push(column as u32);
                matrix.values.push(value(random.bits()));
            }
            matrix.offsets.push(matrix.values.len() as u32);
        }
    }
    matrix
}

/// Returns windows near the largest that a block has room for, at even and odd places, and at both ends of the columns.
fn largest(room: usize) -> (usize, Vec<(usize, usize)>) {
    let columns = 2 * room + 33;
    let firsts = [0, 1, 16, 19, room, columns - room + 1, columns - room, columns - room - 1];
    let windows =
        firsts.into_iter().flat_map(|first| [1, 2, room - 17, room - 1, room, room + 1].map(|len| (first, len)));
    let windows = windows.filter(|(first, len)| first + len <= columns).map(|(first, len)| (first, first + len - 1));
    (columns, windows.chain([(0, columns - 1)]).collect())
}

/// Makes the matrix, with products by windows.
fn on<V: Element>(stream: &Stream, matrix: &Host<V>) -> Result<Csr<V>> {
    let mut a = matrix.on(stream)?;
    a.set_method(SpmvMethod::Window)?;
    assert_eq!(a.method(), SpmvMethod::Window);
    Ok(a)
}

fn double(bits: u64) -> f64 {
    f64::from(whole(bits))
}

fn items(count: usize, random: &mut Random) -> Vec<f64> {
    (0..count).map(|_| double(random.bits())).collect()
}

/// Returns the product by plain loops.
fn products(matrix: &Host<f64>, x: &[f64]) -> Vec<f64> {
    (0..matrix.rows()).map(|row| matrix.row(row).map(|(column, value)| value * x[column]).sum()).collect()
}

/// Makes bands whose numbers of rows are near those of a block and of a turn.
fn bands(random: &mut Random) -> Vec<Host<f64>> {
    let at_once = CSR_WINDOW_ROWS / 4;
    let rows = [1, 2, 7, 8, 9, at_once - 1, at_once, at_once + 1, CSR_WINDOW_ROWS - 1, CSR_WINDOW_ROWS];
    let more = [CSR_WINDOW_ROWS + 1, 2 * CSR_WINDOW_ROWS + at_once + 3];
    rows.into_iter().chain(more).map(|rows| band((rows, 40, 90), random, double)).collect()
}

#[test]
fn bands_of_any_numbers_of_rows_have_their_products() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(81);
    for matrix in bands(&mut random) {
        let x = items(matrix.columns, &mut random);
        let mut y = stream.buffer_from(&vec![77.0f64; matrix.rows() + 1])?;
        spmv(&stream, &on(&stream, &matrix)?, &stream.buffer_from(&x)?, &mut y)?;
        let expected: Vec<f64> = products(&matrix, &x).into_iter().chain([77.0]).collect();
        assert_eq!(y.to_vec()?, expected, "{} rows", matrix.rows());
    }
    Ok(())
}

#[test]
fn rows_of_any_lengths_have_their_products_sanitize() -> Result<()> {
    const STEP: usize = CSR_WINDOW_LANES;
    let mut random = Random::new(82);
    let lengths = [0, 1, STEP - 1, STEP, STEP + 1, 4 * STEP - 1, 4 * STEP, 4 * STEP + 1, 8 * STEP, 1000, 0, 3];
    for lengths in [vec![], vec![0; 700], lengths.to_vec(), [vec![0; CSR_WINDOW_ROWS], lengths.to_vec()].concat()] {
        let matrix = Host::of_lengths(50, lengths, &mut random, double);
        let x = items(50, &mut random);
        for stream in streams()? {
            let mut y = stream.buffer_from(&vec![77.0f64; matrix.rows()])?;
            spmv(&stream, &on(&stream, &matrix)?, &stream.buffer_from(&x)?, &mut y)?;
            assert_eq!(y.to_vec()?, products(&matrix, &x));
        }
    }
    Ok(())
}

#[test]
fn a_matrix_without_columns_has_no_windows() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(83);
    let matrix = Host::of_lengths(0, vec![0; 600], &mut random, double);
    let mut y = stream.buffer_from(&vec![77.0f64; 600])?;
    spmv(&stream, &on(&stream, &matrix)?, &stream.buffer_zeroed::<f64>(0)?, &mut y)?;
    assert_eq!(y.to_vec()?, [0.0; 600]);
    Ok(())
}

#[test]
fn windows_of_any_widths_have_their_products() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(84);
    let (columns, windows) = largest(csr_window_room::<Span<f64>>());
    let matrix = in_windows(columns, &windows, &mut random, double);
    let x = items(columns, &mut random);
    let expected = products(&matrix, &x);
    let a = on(&stream, &matrix)?;
    // This also holds if vectors of the items are not aligned.
    for skip in [0, 1] {
        let all = stream.buffer_from(&[vec![f64::NAN; skip], x.clone()].concat())?;
        let mut y = stream.buffer_from(&vec![77.0f64; matrix.rows()])?;
        spmv(&stream, &a, all.slice(skip..)?, &mut y)?;
        assert_eq!(y.to_vec()?, expected, "{skip}");
    }
    Ok(())
}

/// Items have 4 bytes, 1 byte, and 16 bytes.
#[test]
fn windows_of_small_and_large_items_have_their_products() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(85);
    let (columns, windows) = largest(csr_window_room::<Span<f32>>());
    let matrix = in_windows(columns, &windows, &mut random, whole);
    let x: Vec<f32> = (0..columns).map(|_| whole(random.bits())).collect();
    let sum = |row| matrix.row(row).map(|(column, value)| value * x[column]).sum();
    let expected: Vec<f32> = (0..matrix.rows()).map(sum).collect();
    let a = on(&stream, &matrix)?;
    for skip in 0..4 {
        let all = stream.buffer_from(&[vec![f32::NAN; skip], x.clone()].concat())?;
        let mut y = stream.buffer_zeroed::<f32>(matrix.rows())?;
        spmv(&stream, &a, all.slice(skip..)?, &mut y)?;
        assert_eq!(y.to_vec()?, expected, "{skip}");
    }

    let (columns, windows) = largest(csr_window_room::<Span<bool>>());
    let matrix = in_windows(columns, &windows, &mut random, |bits| bits % 4 < 3);
    let x: Vec<bool> = (0..columns).map(|_| random.below(3) == 0).collect();
    let (a, there) = (on(&stream, &matrix)?, stream.buffer_from(&x)?);
    let found = |row: usize| -> Vec<u64> {
        let found = matrix.row(row).filter(|&(column, value)| value && x[column]);
        found.map(|(column, _)| column as u64).collect()
    };
    let mut y = stream.buffer_zeroed::<bool>(matrix.rows())?;
    spmv_by(&stream, &a, &there, Semiring { plus: LogicalOr, times: LogicalAnd }, Overwrite, &mut y)?;
    assert_eq!(y.to_vec()?, (0..matrix.rows()).map(|row| !found(row).is_empty()).collect::<Vec<_>>());
    // The operator gets the column, and not a place in the window.
    let mut y = stream.buffer_zeroed::<u64>(matrix.rows())?;
    spmv_by(&stream, &a, &there, FirstColumn, Overwrite, &mut y)?;
    let first = |row| found(row).into_iter().min().unwrap_or(u64::MAX);
    assert_eq!(y.to_vec()?, (0..matrix.rows()).map(first).collect::<Vec<_>>());

    let complex = |bits: u64| Complex::new(double(bits), double(bits >> 20));
    let (columns, windows) = largest(csr_window_room::<Span<Complex<f64>>>());
    let matrix = in_windows(columns, &windows, &mut random, complex);
    let x: Vec<Complex<f64>> = (0..columns).map(|_| complex(random.bits())).collect();
    let sum = |row| matrix.row(row).map(|(column, value)| value * x[column]).sum();
    let expected: Vec<Complex<f64>> = (0..matrix.rows()).map(sum).collect();
    let mut y = stream.buffer_zeroed(matrix.rows())?;
    spmv(&stream, &on(&stream, &matrix)?, &stream.buffer_from(&x)?, &mut y)?;
    assert_eq!(y.to_vec()?, expected);
    Ok(())
}

/// Items are not elements, and each has bytes without a meaning.
#[test]
fn windows_of_pairs_have_their_products() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(86);
    let (columns, windows) = largest(csr_window_room::<Zip<Span<f64>, Span<bool>>>());
    let matrix = in_windows(columns, &windows, &mut random, double);
    let (x, marks) = (items(columns, &mut random), (0..columns).map(|_| random.below(2) == 0).collect::<Vec<_>>());
    let marked = |column: usize| if marks[column] { x[column] } else { 0.0 };
    let sum = |row| matrix.row(row).map(|(column, value)| value * marked(column)).sum();
    let expected: Vec<f64> = (0..matrix.rows()).map(sum).collect();
    let (there, marks) = (stream.buffer_from(&x)?, stream.buffer_from(&marks)?);
    let mut y = stream.buffer_zeroed::<f64>(matrix.rows())?;
    spmv_by(&stream, &on(&stream, &matrix)?, zip(&there, &marks), MarkedSum, Overwrite, &mut y)?;
    assert_eq!(y.to_vec()?, expected);
    Ok(())
}

/// The values are halves, which accumulate in `f32`, with indices of 64 bits and a computed vector.
#[test]
fn windows_have_wide_indices_and_computed_items() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(87);
    let (columns, windows) = largest(csr_window_room::<Counting<f32>>());
    let matrix = in_windows(columns, &windows, &mut random, |bits| f16::from_f32(whole(bits)));
    let wide = |numbers: &[u32]| numbers.iter().map(|&n| u64::from(n)).collect::<Vec<_>>();
    let (offsets, indices) = (wide(&matrix.offsets), wide(&matrix.indices));
    let mut a = Csr::new(&stream, (matrix.rows(), columns), &offsets, &indices, &matrix.values)?;
    a.set_method(SpmvMethod::Window)?;
    let sum = |row| matrix.row(row).map(|(column, value)| value.to_f32() * column as f32).sum();
    let expected: Vec<f32> = (0..matrix.rows()).map(sum).collect();
    let mut y = stream.buffer_zeroed::<f32>(matrix.rows())?;
    spmv(&stream, &a, counting(0.0f32, columns), &mut y)?;
    assert_eq!(y.to_vec()?, expected);
    Ok(())
}

/// The columns of one matrix are so far from each other that no window fits. Everything else is the same.
#[test]
fn sums_have_the_same_bits_with_windows_and_without() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(88);
    let unit = |bits: u64| bits as f64 / u64::MAX as f64 - 0.5;
    let near = band((1300, 60, 200), &mut random, unit);
    let x: Vec<f64> = (0..near.columns).map(|_| unit(random.bits())).collect();
    let apart = csr_window_room::<Span<f64>>();
    let mut far = near.clone();
    far.columns *= apart;
    far.indices.iter_mut().for_each(|column| *column *= apart as u32);
    let mut stretched = vec![f64::NAN; far.columns];
    stretched.iter_mut().step_by(apart).zip(&x).for_each(|(place, &item)| *place = item);
    let product = |matrix: &Host<f64>, x: &[f64]| -> Result<Vec<u64>> {
        let mut y = stream.buffer_zeroed::<f64>(matrix.rows())?;
        spmv(&stream, &on(&stream, matrix)?, &stream.buffer_from(x)?, &mut y)?;
        Ok(y.to_vec()?.into_iter().map(f64::to_bits).collect())
    };
    assert_eq!(product(&near, &x)?, product(&far, &stretched)?);
    Ok(())
}

/// Lanes without an entry take no part. With this semiring, not even zeros would be right.
#[test]
fn shortest_paths_in_bands_are_found() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(89);
    let matrix = band((1200, 30, 100), &mut random, |bits| (bits % 90 + 1) as f32);
    let x: Vec<f32> = (0..matrix.columns).map(|_| (random.below(50) + 1) as f32).collect();
    let least = |row| matrix.row(row).map(|(column, length)| length + x[column]).fold(f32::INFINITY, f32::min);
    let expected: Vec<f32> = (0..matrix.rows()).map(least).collect();
    let mut y = stream.buffer_zeroed::<f32>(matrix.rows())?;
    let shortest = Semiring { plus: Min, times: Add };
    spmv_by(&stream, &on(&stream, &matrix)?, &stream.buffer_from(&x)?, shortest, Overwrite, &mut y)?;
    assert_eq!(y.to_vec()?, expected);
    Ok(())
}

#[test]
fn what_is_done_to_a_total_knows_the_entries_of_the_row() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(90);
    for matrix in bands(&mut random) {
        let x = items(matrix.columns, &mut random);
        let count = |row: usize| f64::from(matrix.offsets[row + 1] - matrix.offsets[row]).max(1.0);
        let expected: Vec<f64> = products(&matrix, &x).iter().enumerate().map(|(row, sum)| sum / count(row)).collect();
        let mut y = stream.buffer_zeroed::<f64>(matrix.rows())?;
        spmv_by(&stream, &on(&stream, &matrix)?, &stream.buffer_from(&x)?, MeanProduct, Overwrite, &mut y)?;
        assert_eq!(y.to_vec()?, expected);
    }
    Ok(())
}

#[test]
fn epilogues_read_the_result_or_another_vector() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(91);
    let matrix = band((700, 30, 100), &mut random, double);
    let x = items(700, &mut random);
    let (products, a, x) = (products(&matrix, &x), on(&stream, &matrix)?, stream.buffer_from(&x)?);
    let old = items(700, &mut random);
    let mut y = stream.buffer_from(&old)?;
    spmv_by(&stream, &a, &x, PlusTimes, Axpby { alpha: 2.0, beta: -1.0 }, &mut y)?;
    let expected: Vec<f64> = products.iter().zip(&old).map(|(product, old)| 2.0 * product - old).collect();
    assert_eq!(y.to_vec()?, expected);
    let (z, mut y) = (stream.buffer_from(&old)?, stream.buffer_from(&[f64::NAN; 700])?);
    spmv_with(&stream, &a, &x, PlusTimes, Axpby { alpha: -1.0, beta: 1.0 }, &z, &mut y)?;
    let expected: Vec<f64> = products.iter().zip(&old).map(|(product, old)| old - product).collect();
    assert_eq!(y.to_vec()?, expected);
    Ok(())
}

/// Results have 24 and 264 bytes, of which fewer are in flight.
#[test]
fn wide_results_of_bands_are_combined() -> Result<()> {
    fn powers<const N: usize>(matrix: &Host<f64>, x: &[f64]) -> Vec<[f64; N]> {
        let sum = |row| {
            matrix.row(row).fold([0.0; N], |mut sums: [f64; N], (column, value)| {
                let mut power = 1.0;
                for sum in &mut sums {
                    power *= value * x[column];
                    *sum += power;
                }
                sums
            })
        };
        (0..matrix.rows()).map(sum).collect()
    }
    let stream = stream()?;
    let mut random = Random::new(92);
    let matrix = band((600, 40, 100), &mut random, |bits| double(bits).clamp(-1.0, 1.0));
    let x: Vec<f64> = items(600, &mut random).into_iter().map(|item| item.clamp(-1.0, 1.0)).collect();
    let (a, there) = (on(&stream, &matrix)?, stream.buffer_from(&x)?);
    let mut y = stream.buffer_from(&vec![[77.0; 3]; matrix.rows()])?;
    spmv_by(&stream, &a, &there, Powers::<3>, Overwrite, &mut y)?;
    assert_eq!(y.to_vec()?, powers::<3>(&matrix, &x));
    let mut y = stream.buffer_from(&vec![[77.0; 33]; matrix.rows()])?;
    spmv_by(&stream, &a, &there, Powers::<33>, Overwrite, &mut y)?;
    assert_eq!(y.to_vec()?, powers::<33>(&matrix, &x));
    Ok(())
}

#[test]
fn large_bands_are_multiplied_by_windows_unless_told_otherwise() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(93);
    // Rows have 12 entries. Those of one block are within about 800 columns.
    let rows = 1 << 16;
    let mut matrix = Host::of_lengths(rows, vec![12; rows], &mut random, whole);
    for (entry, column) in matrix.indices.iter_mut().enumerate() {
        *column = ((entry / 12) as u32 + *column % 300).min(rows as u32 - 1);
    }
    let mut a = matrix.on(&stream)?;
    assert_eq!(a.method(), SpmvMethod::Window);
    let x: Vec<f32> = (0..rows).map(|_| whole(random.bits())).collect();
    let sum = |row| matrix.row(row).map(|(column, value)| value * x[column]).sum();
    let expected: Vec<f32> = (0..rows).map(sum).collect();
    let there = stream.buffer_from(&x)?;
    let mut y = stream.buffer_zeroed::<f32>(rows)?;
    spmv(&stream, &a, &there, &mut y)?;
    assert_eq!(y.to_vec()?, expected);
    // Another method is set, and then this one again.
    for method in [SpmvMethod::Rows { lanes: 8 }, SpmvMethod::Window] {
        a.set_method(method)?;
        y.copy_from(&vec![77.0; rows])?;
        spmv(&stream, &a, &there, &mut y)?;
        assert_eq!(y.to_vec()?, expected, "{method:?}");
    }
    // The same number of columns is anywhere, so no window fits.
    for column in &mut matrix.indices {
        *column = (*column * 7919) % rows as u32;
    }
    assert_ne!(matrix.on(&stream)?.method(), SpmvMethod::Window);
    Ok(())
}

#[test]
fn a_transposed_band_has_its_own_windows() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(94);
    let matrix = band((900, 20, 100), &mut random, whole);
    let x: Vec<f32> = (0..900).map(|_| whole(random.bits())).collect();
    let mut expected = [0.0f32; 900];
    for (row, &item) in x.iter().enumerate() {
        for (column, value) in matrix.row(row) {
            expected[column] += value * item;
        }
    }
    let mut transposed = on(&stream, &matrix)?.transpose(&stream)?;
    transposed.set_method(SpmvMethod::Window)?;
    let mut y = stream.buffer_zeroed::<f32>(900)?;
    spmv(&stream, &transposed, &stream.buffer_from(&x)?, &mut y)?;
    assert_eq!(y.to_vec()?, expected);
    Ok(())
}

#[test]
fn products_by_windows_are_captured_without_a_workspace() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(95);
    let matrix = band((600, 20, 100), &mut random, double);
    let a = on(&stream, &matrix)?;
    let (mut x, mut y) = (stream.buffer_zeroed::<f64>(600)?, stream.buffer_zeroed::<f64>(600)?);
    // The kernel is loaded.
    spmv(&stream, &a, &x, &mut y)?;
    let graph = stream.capture(|stream| spmv(Run::on(stream), &a, &x, &mut y))?;
    for _ in 0..2 {
        let new = items(600, &mut random);
        x.copy_from(&new)?;
        graph.launch(&stream)?;
        assert_eq!(y.to_vec()?, products(&matrix, &new));
    }
    Ok(())
}

/// Columns are outside of a window or of the vector, or rows have other entries. The results are wrong numbers.
#[test]
fn matrices_that_were_changed_lead_to_no_access_outside_of_windows() -> Result<()> {
    const ROWS: usize = 600;
    let stream = stream()?;
    let mut random = Random::new(96);
    let before = band((ROWS, 20, 30), &mut random, whole);
    let entries = before.values.len() as u32;
    let ends = |end: &dyn Fn(usize) -> u32| (0..=ROWS).map(end).collect::<Vec<u32>>();
    let columns = |column: &dyn Fn(u32) -> u32| before.indices.iter().map(|&old| column(old)).collect::<Vec<u32>>();
    let same = || (before.offsets.clone(), before.indices.clone());
    let all = [
        (same().0, columns(&|_| 0)),
        (same().0, columns(&|_| ROWS as u32 - 1)),
        (same().0, columns(&|_| ROWS as u32)),
        (same().0, columns(&|_| u32::MAX)),
        (same().0, columns(&|old: u32| old.wrapping_sub(300))),
        (ends(&|_| 0), same().1),
        (ends(&|_| entries), same().1),
        (ends(&|_| u32::MAX), same().1),
        (ends(&|place| before.offsets[ROWS - place]), same().1),
        (ends(&|place| before.offsets[(place + 550) % (ROWS + 1)]), same().1),
        (ends(&|place| if place % 2 == 0 { 0 } else { entries }), columns(&|old: u32| old ^ 0x5555_5555)),
        (ends(&|place| before.offsets[place].saturating_add(3)), same().1),
    ];
    // Windows are found before the change, or after it.
    for (number, (after, late)) in all.iter().flat_map(|after| [(after, false), (after, true)]).enumerate() {
        let (mut offsets, mut indices) = (stream.buffer_from(&before.offsets)?, stream.buffer_from(&before.indices)?);
        let (new_offsets, new_indices) = (stream.buffer_from(&after.0)?, stream.buffer_from(&after.1)?);
        let change = stream.capture(|stream| {
            offsets.as_mut_slice().copy_from_device(stream, new_offsets.as_slice())?;
            indices.as_mut_slice().copy_from_device(stream, new_indices.as_slice())
        })?;
        let values = stream.buffer_from(&before.values)?;
        let mut a = Csr::from_buffers(&stream, (ROWS, ROWS), offsets, indices, values)?;
        if late {
            change.launch(&stream)?;
        }
        a.set_method(SpmvMethod::Window)?;
        if !late {
            change.launch(&stream)?;
        }
        let mut around = stream.buffer_from(&[77.0f32; ROWS + 20])?;
        let x = stream.buffer_from(&[1.0f32; ROWS])?;
        spmv(&stream, &a, &x, around.slice_mut(10..ROWS + 10)?)?;
        let found = around.to_vec()?;
        assert!(found[..10].iter().chain(&found[ROWS + 10..]).all(|&item| item == 77.0), "{number}: {found:?}");
    }
    Ok(())
}
