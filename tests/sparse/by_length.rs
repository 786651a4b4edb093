//! Tests products by the length of each row: rows near the lengths at which other kernels take them, and several long rows in a warp.

use kernel_primitives::algorithms::{Csr, Run, SpmvMethod, Workspace, spmv, spmv_by, spmv_with};
use kernel_primitives::functor::{Add, Axpby, Min, Overwrite, PlusTimes, Semiring};
use kernel_primitives::input::counting;
use kernel_primitives::kernels::device::{CSR_FIRST_ENTRIES, CSR_SHARE, CSR_SHORT};
use kernel_primitives::{Complex, Element, Error, Result, Stream, f16};

use crate::Host;
use crate::kernels::{MeanProduct, Powers};
use crate::products::{dense, whole};
use crate::support::{Random, stream};

/// Returns lengths of rows near those at which other kernels take them.
fn edges() -> Vec<Vec<usize>> {
    const FIRST: usize = CSR_FIRST_ENTRIES;
    let steps = [31, 32, 33, 127, 128, 129, 1000];
    let giants = [CSR_SHARE + 1, 2 * CSR_SHARE - 1, 2 * CSR_SHARE, 2 * CSR_SHARE + 1];
    vec![
        vec![],
        vec![0; 200],
        vec![0, 1, FIRST - 1, FIRST, FIRST + 1, CSR_SHORT - 1, CSR_SHORT],
        [vec![CSR_SHORT, CSR_SHORT + 1], steps.to_vec(), vec![0, CSR_SHARE - 1, CSR_SHARE, 3]].concat(),
        // There is only one such row, at the beginning or the end of a warp and of a block.
        vec![CSR_SHARE],
        vec![CSR_SHARE + 1],
        [vec![2; 31], vec![CSR_SHARE + 1], vec![CSR_SHORT + 1], vec![2; 95], vec![CSR_SHARE + 1], vec![2]].concat(),
        // All lanes of a warp have long rows, or giant rows.
        [vec![1; 32], vec![40; 32], vec![3; 70], vec![17; 32]].concat(),
        [vec![1; 32], vec![CSR_SHARE + 1; 32], vec![3; 70]].concat(),
        // A warp has several giant rows, beside short and long rows.
        [vec![5, 0], giants.to_vec(), vec![100, 7, 5 * CSR_SHARE + 9, 20], giants.to_vec(), vec![0; 30]].concat(),
    ]
}

/// Makes the matrix, with products by the length of each row.
fn on<V: Element>(stream: &Stream, matrix: &Host<V>) -> Result<Csr<V>> {
    let mut a = matrix.on(stream)?;
    a.set_method(SpmvMethod::ByLength)?;
    assert_eq!(a.method(), SpmvMethod::ByLength);
    Ok(a)
}

fn items(count: usize, random: &mut Random) -> Vec<f64> {
    (0..count).map(|_| f64::from(whole(random.bits()))).collect()
}

#[test]
fn rows_of_any_lengths_have_their_products() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(41);
    for lengths in edges() {
        let matrix = Host::of_lengths(8, lengths, &mut random, |bits| f64::from(whole(bits)));
        let x = items(8, &mut random);
        let mut y = stream.buffer_from(&vec![77.0f64; matrix.rows() + 1])?;
        spmv(&stream, &on(&stream, &matrix)?, &stream.buffer_from(&x)?, &mut y)?;
        let expected: Vec<f64> = dense(&matrix, &x).into_iter().chain([77.0]).collect();
        assert_eq!(y.to_vec()?, expected);
    }
    Ok(())
}

/// The methods are set after the matrix was made, and it is made from another matrix.
#[test]
fn a_transposed_matrix_has_its_own_giant_rows() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(42);
    let lengths = (0..3000).map(|row| if row % 1000 == 7 { 9000 } else { row % 20 });
    let matrix = Host::of_lengths(2, lengths, &mut random, whole);
    let x: Vec<f32> = (0..3000).map(|_| whole(random.bits())).collect();
    let mut expected = [0.0f64; 2];
    for (row, &item) in x.iter().enumerate() {
        for (column, value) in matrix.row(row) {
            expected[column] += f64::from(value) * f64::from(item);
        }
    }
    let mut transposed = on(&stream, &matrix)?.transpose(&stream)?;
    transposed.set_method(SpmvMethod::ByLength)?;
    assert!(transposed.longest_row() > CSR_SHARE);
    let mut y = stream.buffer_zeroed::<f32>(2)?;
    spmv(&stream, &transposed, &stream.buffer_from(&x)?, &mut y)?;
    assert_eq!(y.to_vec()?.into_iter().map(f64::from).collect::<Vec<_>>(), expected);
    // A matrix that is made from its buffers is measured again.
    let (offsets, indices, values) = transposed.into_buffers();
    let mut again = Csr::from_buffers(&stream, (2, 3000), offsets, indices, values)?;
    again.set_method(SpmvMethod::ByLength)?;
    y.copy_from(&[0.0; 2])?;
    spmv(&stream, &again, &stream.buffer_from(&x)?, &mut y)?;
    assert_eq!(y.to_vec()?.into_iter().map(f64::from).collect::<Vec<_>>(), expected);
    Ok(())
}

/// Lanes without an entry take no part. With this semiring, not even zeros would be right.
#[test]
fn shortest_paths_of_any_lengths_are_found() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(43);
    for lengths in edges() {
        let matrix = Host::of_lengths(8, lengths, &mut random, |bits| (bits % 90 + 1) as f32);
        let x: Vec<f32> = (0..8).map(|_| (random.below(50) + 1) as f32).collect();
        let least = |row| matrix.row(row).map(|(column, length)| length + x[column]).fold(f32::INFINITY, f32::min);
        let expected: Vec<f32> = (0..matrix.rows()).map(least).collect();
        let mut y = stream.buffer_zeroed::<f32>(matrix.rows())?;
        let shortest = Semiring { plus: Min, times: Add };
        spmv_by(&stream, &on(&stream, &matrix)?, &stream.buffer_from(&x)?, shortest, Overwrite, &mut y)?;
        assert_eq!(y.to_vec()?, expected);
    }
    Ok(())
}

#[test]
fn what_is_done_to_a_total_knows_the_rows_entries() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(44);
    for lengths in edges() {
        let matrix = Host::of_lengths(8, lengths, &mut random, |bits| f64::from(whole(bits)));
        let x = items(8, &mut random);
        let products = dense(&matrix, &x);
        let count = |row: usize| f64::from(matrix.offsets[row + 1] - matrix.offsets[row]).max(1.0);
        let expected: Vec<f64> = products.iter().enumerate().map(|(row, sum)| sum / count(row)).collect();
        let mut y = stream.buffer_zeroed::<f64>(matrix.rows())?;
        spmv_by(&stream, &on(&stream, &matrix)?, &stream.buffer_from(&x)?, MeanProduct, Overwrite, &mut y)?;
        assert_eq!(y.to_vec()?, expected);
    }
    Ok(())
}

#[test]
fn epilogues_read_the_result_or_another_vector_sanitize() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(45);
    let matrix = Host::of_lengths(8, [3, 0, 17, CSR_SHARE + 5, 16], &mut random, |bits| f64::from(whole(bits)));
    let x = items(8, &mut random);
    let (products, a, x) = (dense(&matrix, &x), on(&stream, &matrix)?, stream.buffer_from(&x)?);
    let old = [1.0f64, 2.0, 3.0, 4.0, 5.0];
    let mut y = stream.buffer_from(&old)?;
    spmv_by(&stream, &a, &x, PlusTimes, Axpby { alpha: 2.0, beta: -1.0 }, &mut y)?;
    let expected: Vec<f64> = products.iter().zip(old).map(|(product, old)| 2.0 * product - old).collect();
    assert_eq!(y.to_vec()?, expected);
    let (z, mut y) = (stream.buffer_from(&old)?, stream.buffer_from(&[f64::NAN; 5])?);
    spmv_with(&stream, &a, &x, PlusTimes, Axpby { alpha: -1.0, beta: 1.0 }, &z, &mut y)?;
    let expected: Vec<f64> = products.iter().zip(old).map(|(product, old)| old - product).collect();
    assert_eq!(y.to_vec()?, expected);
    Ok(())
}

/// The values are halves, which accumulate in `f32`, with indices of 64 bits and a computed vector.
#[test]
fn giant_rows_have_wide_indices_and_computed_vectors() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(46);
    for lengths in edges() {
        let matrix = Host::of_lengths(9, lengths, &mut random, |bits| f16::from_f32(whole(bits)));
        let wide = |numbers: &[u32]| numbers.iter().map(|&n| u64::from(n)).collect::<Vec<_>>();
        let (offsets, indices) = (wide(&matrix.offsets), wide(&matrix.indices));
        let mut a = Csr::new(&stream, (matrix.rows(), 9), &offsets, &indices, &matrix.values)?;
        a.set_method(SpmvMethod::ByLength)?;
        let sum = |row| matrix.row(row).map(|(column, value)| value.to_f32() * column as f32).sum();
        let expected: Vec<f32> = (0..matrix.rows()).map(sum).collect();
        let mut y = stream.buffer_zeroed::<f32>(matrix.rows())?;
        spmv(&stream, &a, counting(0.0f32, 9), &mut y)?;
        assert_eq!(y.to_vec()?, expected);
    }
    Ok(())
}

/// The results have 16 and 24 bytes, of which fewer are in flight, and 264 bytes.
#[test]
fn wide_results_of_any_lengths_are_combined() -> Result<()> {
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
    let mut random = Random::new(47);
    for lengths in edges() {
        let complex = |bits: u64| Complex::new(f64::from(whole(bits)), f64::from(whole(bits >> 20)));
        let matrix = Host::of_lengths(8, lengths.clone(), &mut random, complex);
        let x: Vec<Complex<f64>> = (0..8).map(|_| complex(random.bits())).collect();
        let sum = |row| matrix.row(row).map(|(column, value)| value * x[column]).sum();
        let expected: Vec<Complex<f64>> = (0..matrix.rows()).map(sum).collect();
        let mut y = stream.buffer_zeroed(matrix.rows())?;
        spmv(&stream, &on(&stream, &matrix)?, &stream.buffer_from(&x)?, &mut y)?;
        assert_eq!(y.to_vec()?, expected);

        let matrix = Host::of_lengths(8, lengths, &mut random, |bits| f64::from(whole(bits)).clamp(-1.0, 1.0));
        let x: Vec<f64> = items(8, &mut random).into_iter().map(|item| item.clamp(-1.0, 1.0)).collect();
        let (a, there) = (on(&stream, &matrix)?, stream.buffer_from(&x)?);
        let mut y = stream.buffer_from(&vec![[77.0; 3]; matrix.rows()])?;
        spmv_by(&stream, &a, &there, Powers::<3>, Overwrite, &mut y)?;
        assert_eq!(y.to_vec()?, powers::<3>(&matrix, &x));
        let mut y = stream.buffer_from(&vec![[77.0; 33]; matrix.rows()])?;
        spmv_by(&stream, &a, &there, Powers::<33>, Overwrite, &mut y)?;
        assert_eq!(y.to_vec()?, powers::<33>(&matrix, &x));
    }
    Ok(())
}

#[test]
fn products_without_giant_rows_are_captured_without_a_workspace() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(48);
    for (longest, workspace) in [(CSR_SHARE, false), (3 * CSR_SHARE, true)] {
        let matrix = Host::of_lengths(8, [5, longest, 0, 20], &mut random, |bits| f64::from(whole(bits)));
        let (a, mut memory) = (on(&stream, &matrix)?, Workspace::new());
        let (mut x, mut y) = (stream.buffer_zeroed::<f64>(8)?, stream.buffer_zeroed::<f64>(4)?);
        // This loads the kernels, and the workspace gets its memory.
        spmv(Run::on(&stream).with(&mut memory), &a, &x, &mut y)?;
        let graph = stream.capture(|stream| {
            let run = if workspace { Run::on(stream).with(&mut memory) } else { Run::on(stream) };
            spmv(run, &a, &x, &mut y)
        })?;
        for _ in 0..2 {
            let new = items(8, &mut random);
            x.copy_from(&new)?;
            graph.launch(&stream)?;
            assert_eq!(y.to_vec()?, dense(&matrix, &new));
        }
    }
    Ok(())
}

/// Some rows are not giant any more, or have become giant. The results are wrong numbers, or a fault.
#[test]
fn giant_rows_that_were_changed_lead_to_no_access_outside() -> Result<()> {
    const LEN: u32 = 20_000;
    let before: [&[u32]; 2] = [&[0, 0, 19_000, 19_005, LEN], &[0, 5_000, 10_000, 15_000, LEN]];
    let after: [&[u32]; 7] = [
        &[0, 5_000, 10_000, 15_000, LEN],
        &[0, 0, 0, 0, LEN],
        &[0, LEN, LEN, LEN, LEN],
        &[u32::MAX; 5],
        &[0, 0, u32::MAX, 5, LEN],
        &[LEN, 19_000, 9_000, 0, 0],
        &[0, LEN - 1, u32::MAX, 7, u32::MAX],
    ];
    for (before, after) in before.into_iter().flat_map(|before| after.map(|after| (before, after))) {
        // A fault belongs to its stream.
        let stream = stream()?;
        let (mut offsets, after) = (stream.buffer_from(before)?, stream.buffer_from(after)?);
        let change = stream.capture(|stream| offsets.as_mut_slice().copy_from_device(stream, after.as_slice()))?;
        let (indices, values) =
            (stream.buffer_from(&vec![1u32; LEN as usize])?, stream.buffer_from(&vec![1.0f32; LEN as usize])?);
        let mut a = Csr::from_buffers(&stream, (4, 3), offsets, indices, values)?;
        a.set_method(SpmvMethod::ByLength)?;
        change.launch(&stream)?;
        let mut around = stream.buffer_from(&[77.0f32; 24])?;
        let x = stream.buffer_from(&[1.0f32; 3])?;
        match spmv(&stream, &a, &x, around.slice_mut(10..14)?).and_then(|()| stream.synchronize()) {
            Ok(()) => {}
            Err(Error::Fault(fault)) => {
                let raised = matches!(fault.diagnosis, kernel_primitives::Diagnosis::Raised(_));
                assert!(raised, "{before:?}, {fault}");
            }
            Err(error) => return Err(error),
        }
        let found = around.to_vec()?;
        assert!(found[..10].iter().chain(&found[14..]).all(|&item| item == 77.0), "{before:?}: {found:?}");
    }
    Ok(())
}
