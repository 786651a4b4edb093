//! Tests matrices: arrays that are not matrices, and matrices of triplets.

use std::collections::BTreeMap;

use kernel_primitives::algorithms::{Coo, Csr, Sell, SpmvMethod, spmv};
use kernel_primitives::functor::Add;
use kernel_primitives::{Error, Result};

use crate::Host;
use crate::support::{Random, stream};

/// Returns the reason why arrays are not a matrix.
#[track_caller]
fn reason<T: std::fmt::Debug>(made: Result<T>) -> String {
    match made {
        Err(Error::SparseMatrix { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn arrays_that_are_no_matrix_are_errors_that_name_the_place_sanitize() -> Result<()> {
    let stream = stream()?;
    let made =
        |shape, offsets: &[u32], indices: &[u32], values: &[f32]| Csr::new(&stream, shape, offsets, indices, values);
    let cases: [(_, &[u32], &[u32], &[f32], _); 9] = [
        ((2, 2), &[0, 1], &[0], &[1.0], "a matrix of 2 rows has one offset more, but there are 2"),
        ((0, 2), &[], &[], &[], "a matrix of 0 rows has one offset more, but there are 0"),
        ((1, 2), &[0, 1], &[0, 1], &[1.0], "there are 2 column indices, but 1 values"),
        ((2, 2), &[1, 1, 2], &[0, 1], &[1.0; 2], "the first offset is 1, not 0"),
        ((0, 2), &[5], &[], &[], "the first offset is 5, not 0"),
        ((4, 2), &[0, 2, 1, 0, 2], &[0, 1], &[1.0; 2], "the offsets decrease from 2 at 1 to 1 at 2"),
        ((2, 2), &[0, 1, 3], &[0, 1], &[1.0; 2], "the last offset is 3, but there are 2 values"),
        ((2, 2), &[0, 1, 1], &[0, 1], &[1.0; 2], "the last offset is 1, but there are 2 values"),
        ((2, 3), &[0, 2, 4], &[0, 2, 3, 9], &[1.0; 4], "entry 2 is in column 3 of 3"),
    ];
    for (shape, offsets, indices, values, expected) in cases {
        assert_eq!(reason(made(shape, offsets, indices, values)), expected);
    }
    // This is far away from the first rows.
    let mut offsets: Vec<u32> = (0..=100_000).collect();
    offsets[77_777] = 3;
    let buffers = |offsets: &[u32]| -> Result<_> {
        Ok((stream.buffer_from(offsets)?, stream.buffer_zeroed::<u32>(100_000)?, stream.buffer_zeroed::<f32>(100_000)?))
    };
    let (there, indices, values) = buffers(&offsets)?;
    let made = Csr::from_buffers(&stream, (100_000, 1), there, indices, values);
    assert_eq!(reason(made), "the offsets decrease from 77776 at 77776 to 3 at 77777");
    Ok(())
}

/// There are more rows than the check has threads, so each thread adds up its measurements.
#[test]
fn offsets_that_decrease_by_much_are_errors_of_the_matrix() -> Result<()> {
    let stream = stream()?;
    let rows = 2048 * stream.device().properties().multiprocessors.max(1) as usize * 4;
    let offsets: Vec<u64> = (0..=rows).map(|row| if row % 2 == 0 { 0 } else { u64::MAX }).collect();
    let found = reason(Csr::<f32, u64>::new(&stream, (rows, 1), &offsets, &[], &[]));
    assert_eq!(found, "the offsets decrease from 18446744073709551615 at 1 to 0 at 2");
    Ok(())
}

#[test]
fn matrices_without_rows_columns_or_entries_are_matrices() -> Result<()> {
    let stream = stream()?;
    for (rows, columns) in [(0, 0), (0, 5), (5, 0), (3, 4)] {
        let a = Csr::<f32>::new(&stream, (rows, columns), &vec![0; rows + 1], &[], &[])?;
        assert_eq!((a.rows(), a.columns(), a.entries(), a.longest_row()), (rows, columns, 0, 0));
        let x = stream.buffer_zeroed::<f32>(columns)?;
        let mut y = stream.buffer_from(&vec![1.0f32; rows])?;
        spmv(&stream, &a, &x, &mut y)?;
        assert_eq!(y.to_vec()?, vec![0.0; rows]);
    }
    Ok(())
}

#[test]
fn a_method_is_told_and_taken() -> Result<()> {
    let stream = stream()?;
    let mut a = Csr::new(&stream, (1, 1), &[0u32, 1], &[0], &[2.0f32])?;
    for lanes in [0, 3, 64, u32::MAX] {
        let wrong = reason(a.set_method(SpmvMethod::Rows { lanes }));
        assert!(wrong.starts_with(&format!("{lanes} lanes cannot share a row")), "{wrong}");
    }
    a.set_method(SpmvMethod::MergePath)?;
    assert_eq!(a.method(), SpmvMethod::MergePath);
    Ok(())
}

/// Long rows get many lanes, and short rows get few. Rows that differ much get the merge path.
#[test]
fn the_lengths_of_rows_say_how_products_are_computed() -> Result<()> {
    let stream = stream()?;
    let method = |lengths: &[u32]| -> Result<SpmvMethod> {
        let ends = lengths.iter().scan(0, |end, length| {
            *end += length;
            Some(*end)
        });
        let offsets: Vec<u32> = [0].into_iter().chain(ends).collect();
        let entries = offsets[lengths.len()] as usize;
        Ok(Csr::new(&stream, (lengths.len(), 1), &offsets, &vec![0; entries], &vec![0.0f32; entries])?.method())
    };
    assert_eq!(method(&[1; 100_000])?, SpmvMethod::Rows { lanes: 1 });
    assert_eq!(method(&[500; 1000])?, SpmvMethod::Rows { lanes: 32 });
    let mut lengths = [2; 10_000];
    lengths[123] = 100_000;
    assert_eq!(method(&lengths)?, SpmvMethod::MergePath);
    Ok(())
}

#[test]
fn values_are_changed_in_place() -> Result<()> {
    let stream = stream()?;
    let mut a = Csr::new(&stream, (2, 2), &[0u32, 1, 2], &[1, 0], &[2.0f32, 3.0])?;
    a.values_mut().copy_from(&[5.0, 7.0])?;
    let (x, mut y) = (stream.buffer_from(&[1.0f32, 10.0])?, stream.buffer_zeroed::<f32>(2)?);
    spmv(&stream, &a, &x, &mut y)?;
    assert_eq!(y.to_vec()?, [50.0, 7.0]);
    let (offsets, indices, values) = a.into_buffers();
    assert_eq!((offsets.to_vec()?, indices.to_vec()?, values.to_vec()?), (vec![0, 1, 2], vec![1, 0], vec![5.0, 7.0]));
    Ok(())
}

#[test]
fn triplets_in_any_order_make_a_matrix_sanitize() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(21);
    for (rows, columns, len) in [(1, 1, 5), (7, 9, 0), (7, 9, 30), (100, 3, 1000), (1 << 20, 1 << 30, 500)] {
        let triplets: Vec<(u32, u32, f32)> = (0..len)
            .map(|_| (random.below(rows) as u32, random.below(columns) as u32, (random.below(9) as f32) - 4.0))
            .collect();
        let mut places = BTreeMap::<(u32, u32), f32>::new();
        for &(row, column, value) in &triplets {
            *places.entry((row, column)).or_insert(0.0) += value;
        }
        let offset = |row: u64| places.keys().filter(|&&(other, _)| u64::from(other) < row).count() as u32;
        let offsets: Vec<u32> = if rows > 1000 { Vec::new() } else { (0..=rows).map(offset).collect() };

        let row_indices = stream.buffer_from(&triplets.iter().map(|t| t.0).collect::<Vec<_>>())?;
        let column_indices = stream.buffer_from(&triplets.iter().map(|t| t.1).collect::<Vec<_>>())?;
        let values = stream.buffer_from(&triplets.iter().map(|t| t.2).collect::<Vec<_>>())?;
        let shape = (rows as usize, columns as usize);
        let a = Csr::from_triplets(&stream, shape, &row_indices, &column_indices, &values, Add)?;
        assert_eq!((a.rows(), a.columns()), shape);
        let found = a.offsets().to_vec()?;
        assert_eq!(found[rows as usize] as usize, places.len());
        if rows <= 1000 {
            assert_eq!(found, offsets);
        }
        assert_eq!(a.indices().to_vec()?, places.keys().map(|place| place.1).collect::<Vec<_>>());
        assert_eq!(a.values().to_vec()?, places.values().copied().collect::<Vec<_>>());
    }
    Ok(())
}

#[test]
fn triplets_that_are_no_matrix_are_errors_that_name_the_place() -> Result<()> {
    let stream = stream()?;
    let made = |shape, rows: &[u64], columns: &[u64], values: &[f64]| -> Result<Csr<f64, u64>> {
        let (rows, columns) = (stream.buffer_from(rows)?, stream.buffer_from(columns)?);
        Csr::from_triplets(&stream, shape, &rows, &columns, &stream.buffer_from(values)?, Add)
    };
    let cases: [(_, &[u64], &[u64], &[f64], _); 6] = [
        ((2, 3), &[0, 1, 2], &[0, 2, 9], &[1.0; 3], "triplet 2 is at (2, 9), outside 2 × 3"),
        ((2, 3), &[0, 1, 0], &[0, 3, 9], &[1.0; 3], "triplet 1 is at (1, 3), outside 2 × 3"),
        ((0, 0), &[0], &[0], &[1.0], "triplet 0 is at (0, 0), outside 0 × 0"),
        ((2, 3), &[0, 1], &[0], &[1.0], "there are 2 row indices, 1 column indices and 1 values"),
        ((1 << 32, 1 << 32), &[], &[], &[], "4294967296 × 4294967296 places are too many to be counted in 64 bits"),
        (
            (usize::MAX, 0),
            &[],
            &[],
            &[],
            "18446744073709551615 rows have 18446744073709551615 + 1 offsets, which are too many to be counted in 64 bits",
        ),
    ];
    for (shape, rows, columns, values, expected) in cases {
        assert_eq!(reason(made(shape, rows, columns, values)), expected);
    }
    Ok(())
}

#[test]
fn triplets_of_the_host_that_are_no_matrix_are_errors_of_their_call() -> Result<()> {
    let stream = stream()?;
    let triplets = Coo::<f32, u64>::new((1 << 40, 1 << 40))?;
    let Err(Error::SparseMatrix { call, reason }) = Csr::from_coo(&stream, &triplets, Add) else { panic!("a matrix") };
    let expected = "1099511627776 × 1099511627776 places are too many to be counted in 64 bits";
    assert_eq!((call, &*reason), ("Csr::from_coo", expected));
    Ok(())
}

/// A matrix may have more columns than indices can number, if its entries are in the first ones.
#[test]
fn columns_that_indices_cannot_number_are_an_error_of_the_copy() -> Result<()> {
    let stream = stream()?;
    let a = Csr::new(&stream, (1, 1 << 33), &[0u32, 1], &[7], &[1.0f32])?;
    let slices = Sell::from_csr(&stream, &a, 32)?;
    for (copy, name) in [(a.to_coo(), "Csr::to_coo"), (slices.to_coo(), "Sell::to_coo")] {
        let Err(Error::SparseMatrix { call, reason }) = &copy else { panic!("{copy:?}") };
        assert_eq!((*call, &**reason), (name, "indices of 32 bits cannot number 8589934592 columns"));
    }
    Ok(())
}

#[test]
fn transposed_matrices_have_the_columns_as_rows_sanitize() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(23);
    let lengths = |rows: usize, random: &mut Random| (0..rows).map(|_| random.below(9) as usize).collect::<Vec<_>>();
    for (rows, columns) in [(0, 0), (0, 5), (5, 0), (1, 1), (1, 70), (70, 1), (300, 77), (257, 256)] {
        let matrix = Host::of_lengths(columns, lengths(rows, &mut random), &mut random, |bits| bits as u16 as f32);
        let a = matrix.on(&stream)?;
        let expected_rows = (0..rows).flat_map(|row| matrix.row(row).map(move |_| row as u32));
        assert!(a.row_indices(&stream)?.to_vec()?.into_iter().eq(expected_rows));

        // A place may have several entries. They stay in their order.
        let mut expected = vec![Vec::new(); columns];
        for row in 0..rows {
            for (column, value) in matrix.row(row) {
                expected[column].push((row, value));
            }
        }
        let expected = expected
            .iter()
            .enumerate()
            .flat_map(|(column, entries)| entries.iter().map(move |&(row, value)| (column, row, value)));
        let transposed = a.transpose(&stream)?;
        assert_eq!((transposed.rows(), transposed.columns()), (columns, rows));
        assert!(transposed.to_coo()?.iter().eq(expected), "{rows} × {columns}");
    }
    Ok(())
}

#[test]
fn a_transposed_matrix_has_a_method_of_its_own() -> Result<()> {
    let stream = stream()?;
    // All entries are in one column.
    let offsets: Vec<u64> = (0..=40_000).collect();
    let a = Csr::new(&stream, (40_000, 20_000), &offsets, &[7; 40_000], &[1i32; 40_000])?;
    assert_eq!(a.method(), SpmvMethod::Rows { lanes: 1 });
    let transposed = a.transpose(&stream)?;
    assert_eq!((transposed.method(), transposed.longest_row()), (SpmvMethod::MergePath, 40_000));
    Ok(())
}

#[test]
fn matrices_that_are_too_large_are_not_transposed() -> Result<()> {
    let stream = stream()?;
    let a = Csr::<f32, u64>::new(&stream, (1, usize::MAX), &[0, 1], &[u64::MAX - 1], &[1.0])?;
    let found = reason(a.transpose(&stream));
    assert_eq!(found, "1 rows and 18446744073709551615 columns are too many to be numbered in 63 bits");
    Ok(())
}
