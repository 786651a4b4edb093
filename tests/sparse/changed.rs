//! Tests products and copies of matrices that a launch has changed since they were checked. There may be errors, faults or wrong numbers,
//! but no access outside.

use kernel_primitives::algorithms::{Csr, Sell, SpmvMethod, spmv, transform};
use kernel_primitives::functor::Identity;
use kernel_primitives::simt::FaultKind;
use kernel_primitives::{Buffer, Diagnosis, Error, Graph, Result, Stream};

use crate::products::{dense, whole};
use crate::support::{Random, stream};
use crate::{Host, METHODS};

/// Returns a buffer with `before`, and a graph that changes it to `after`.
fn changing(stream: &Stream, before: &[u32], after: &[u32]) -> Result<(Buffer<u32>, Graph)> {
    let (mut buffer, after) = (stream.buffer_zeroed::<u32>(before.len())?, stream.buffer_from(after)?);
    // The kernel is loaded now, and not while the stream captures.
    transform(stream, &after, Identity, &mut buffer)?;
    let graph = stream.capture(|stream| transform(stream, &after, Identity, &mut buffer))?;
    buffer.copy_from(before)?;
    Ok((buffer, graph))
}

/// Makes rows over several tiles and several chunks. The last chunk ends inside a vector.
fn matrix(random: &mut Random) -> Host<f32> {
    let lengths = (0..900).map(|row| if row == 500 { 2503 } else { row % 10 });
    let matrix = Host::of_lengths(40, lengths, random, whole);
    assert_eq!(matrix.values.len() % 4, 1);
    matrix
}

#[test]
fn a_column_outside_counts_as_the_last_one() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(26);
    let mut matrix = matrix(&mut random);
    let x: Vec<f32> = (0..40).map(|_| whole(random.bits())).collect();
    let after: Vec<u32> = (0u32..)
        .zip(&matrix.indices)
        .map(|(entry, &column)| [column, 40 + entry, u32::MAX - entry, column][entry as usize % 4])
        .collect();
    let there = stream.buffer_from(&x)?;
    let (indices, change) = changing(&stream, &matrix.indices, &after)?;
    let (offsets, values) = (stream.buffer_from(&matrix.offsets)?, stream.buffer_from(&matrix.values)?);
    let mut a = Csr::from_buffers(&stream, (matrix.rows(), 40), offsets, indices, values)?;
    change.launch(&stream)?;
    matrix.indices = after.iter().map(|&column| column.min(39)).collect();
    let expected = dense(&matrix, &x);
    for method in METHODS {
        a.set_method(method)?;
        let mut y = stream.buffer_zeroed::<f32>(matrix.rows())?;
        spmv(&stream, &a, &there, &mut y)?;
        let found: Vec<f64> = y.to_vec()?.into_iter().map(f64::from).collect();
        assert_eq!(found, expected, "{method:?}");
    }
    Ok(())
}

#[test]
fn a_column_outside_is_an_error_of_the_copy_to_the_host() -> Result<()> {
    let stream = stream()?;
    let (indices, change) = changing(&stream, &[1], &[7])?;
    let (offsets, values) = (stream.buffer_from(&[0u32, 1])?, stream.buffer_from(&[1.0f32])?);
    let a = Csr::from_buffers(&stream, (1, 2), offsets, indices, values)?;
    change.launch(&stream)?;
    let slices = Sell::from_csr(&stream, &a, 32)?;
    for (copy, name) in [(a.to_coo(), "Csr::to_coo"), (slices.to_coo(), "Sell::to_coo")] {
        let Err(Error::SparseMatrix { call, reason }) = &copy else { panic!("{copy:?}") };
        assert_eq!((*call, &**reason), (name, "(0, 7) is outside 1 × 2"));
    }
    Ok(())
}

/// Computes a product of a matrix whose offsets were changed, before or after the method was chosen. Returns `y`, or the error.
fn product(matrix: &Host<f32>, after: &[u32], method: SpmvMethod, before: bool) -> Result<Vec<f32>> {
    let stream = stream()?;
    let (offsets, change) = changing(&stream, &matrix.offsets, after)?;
    let (indices, values) = (stream.buffer_from(&matrix.indices)?, stream.buffer_from(&matrix.values)?);
    let mut a = Csr::from_buffers(&stream, (matrix.rows(), 40), offsets, indices, values)?;
    if before {
        change.launch(&stream)?;
    }
    a.set_method(method)?;
    change.launch(&stream)?;
    let mut y = stream.buffer_from(&vec![77.0f32; matrix.rows() + 1])?;
    spmv(&stream, &a, &stream.buffer_from(&[1.0f32; 40])?, &mut y)?;
    y.to_vec()
}

#[test]
fn offsets_that_are_none_lead_to_no_access_outside() -> Result<()> {
    let mut random = Random::new(27);
    let matrix = matrix(&mut random);
    let (places, entries) = (matrix.offsets.len(), matrix.values.len() as u32);
    let ends = |end: &dyn Fn(usize) -> u32| (0..places).map(end).collect::<Vec<u32>>();
    let at_random: Vec<u32> = (0..places).map(|_| random.below(2 * u64::from(entries)) as u32).collect();
    let all = [
        ends(&|_| 0),
        ends(&|_| entries),
        ends(&|_| u32::MAX),
        ends(&|place| matrix.offsets[places - 1 - place]),
        ends(&|place| if place % 2 == 0 { 0 } else { u32::MAX }),
        ends(&|place| if place % 2 == 0 { entries } else { 0 }),
        ends(&|place| if place + 1 == places { u32::MAX } else { matrix.offsets[place] }),
        ends(&|place| matrix.offsets[place].saturating_add(3)),
        at_random,
    ];
    for (number, after) in all.iter().enumerate() {
        let late = [SpmvMethod::MergePath, SpmvMethod::Window].map(|method| (method, true));
        for (method, before) in METHODS.map(|method| (method, false)).into_iter().chain(late) {
            match product(&matrix, after, method, before) {
                Ok(y) => assert_eq!(y[matrix.rows()], 77.0, "{number}, {method:?}"),
                Err(Error::Fault(fault)) => match fault.diagnosis {
                    // Entries are not inside, and any of the checks may come first.
                    Diagnosis::Raised(raised) => assert!(
                        matches!(raised.kind, FaultKind::TileOutOfBounds | FaultKind::OutOfBounds),
                        "{number}, {method:?}: {raised:?}"
                    ),
                    // Two rows have the same end, or the same step of the path.
                    Diagnosis::DataRace { .. } | Diagnosis::Unwritten { .. } => {}
                    other => panic!("{number}, {method:?}: {other:?}"),
                },
                Err(other) => return Err(other),
            }
        }
    }
    Ok(())
}
