//! Tests products along the merge path: rows that begin and end at the edges of tiles, and runs of empty rows.

use kernel_primitives::algorithms::{Csr, SpmvMethod, spmv, spmv_by};
use kernel_primitives::functor::{Add, Axpby, Min, Overwrite, PlusTimes, Semiring};
use kernel_primitives::input::counting;
use kernel_primitives::kernels::device::csr_tile_steps;
use kernel_primitives::{Complex, Result, f16};

use crate::Host;
use crate::kernels::{CheckedSum, MeanProduct, Powers};
use crate::products::{dense, whole};
use crate::support::{Random, stream};

/// Returns lengths of rows near the edges of tiles of `tile` steps. There are entries before them, so that vectors begin elsewhere.
fn edges(tile: usize) -> Vec<Vec<usize>> {
    let mut all = Vec::new();
    let all_before: [Vec<usize>; 5] = [vec![], vec![1], vec![0, 2], vec![3, 0, 0], vec![4, 1, 1, 0, 1]];
    for before in all_before {
        // These are the steps of the rows before.
        let steps: usize = before.iter().map(|entries| entries + 1).sum();
        let left = tile - steps;
        let rows = [
            // The end of a row is the tile's last step, the step after it, or the step before it. Or a tile has only entries.
            vec![left - 1, 5, tile - 7, tile],
            vec![left, 0, 3],
            vec![left - 2, 1, tile],
            vec![left + 1, tile - 2, 0, 2],
            vec![left + tile - 1, 1],
            vec![left + 3 * tile, 9],
            // A tile begins or ends with the ends of empty rows, or has nothing else.
            [vec![left - 1], vec![0; tile], vec![2]].concat(),
            [vec![left], vec![0; 2 * tile - 1], vec![7], vec![0; tile]].concat(),
            [vec![0; left - 1], vec![1, 1, 1]].concat(),
            vec![0; left + 1],
            // There is one end for each entry.
            vec![1; 2 * tile],
            // Some tiles have few rows, in which many lanes have one row, and others have more. Some rows have a whole warp.
            vec![tile / 50; 60],
            vec![tile / 130; 120],
            [tile / 2, tile / 4, 0, 1, tile / 30, tile / 31, 3, tile / 64, 0, 9, 33, 2 * tile].into(),
            [vec![0; tile / 20], vec![tile / 6], vec![1; tile / 11], vec![tile / 50]].concat(),
        ];
        all.extend(rows.map(|rows| [before.clone(), rows].concat()));
    }
    all
}

/// In the first tile, the number of rows that end is a power of two, or one less. One more row goes on after the tile. Then there are tiles
/// without an end, and the last of these has vectors that are not whole.
fn powers(tile: usize) -> Vec<Vec<usize>> {
    let mut all = vec![vec![1, 2 * tile - 2], vec![1, 2 * tile - 6]];
    for ends in (0..=9).flat_map(|log| [(1 << log) - 1, 1 << log]).filter(|&ends| 2 * ends < tile) {
        let each = (tile / 2 / ends.max(1)).max(2) - 1;
        all.push([vec![each; ends], vec![2 * tile]].concat());
    }
    all
}

#[test]
fn rows_end_anywhere_at_the_edges_of_tiles() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(22);
    let tile = csr_tile_steps::<f32>();
    for lengths in edges(tile).into_iter().chain(powers(tile)) {
        let matrix = Host::of_lengths(8, lengths, &mut random, whole);
        let x: Vec<f32> = (0..8).map(|_| whole(random.bits())).collect();
        let mut a = matrix.on(&stream)?;
        a.set_method(SpmvMethod::MergePath)?;
        let mut y = stream.buffer_from(&vec![77.0f32; matrix.rows() + 1])?;
        spmv(&stream, &a, &stream.buffer_from(&x)?, &mut y)?;
        let found: Vec<f64> = y.to_vec()?.into_iter().map(f64::from).collect();
        let expected: Vec<f64> = dense(&matrix, &x).into_iter().chain([77.0]).collect();
        assert_eq!(found, expected);
    }
    Ok(())
}

/// Results have 16 and 24 bytes, and a thread has fewer of them.
#[test]
fn wide_results_end_anywhere_at_the_edges_of_tiles() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(23);
    for lengths in edges(csr_tile_steps::<Complex<f64>>()) {
        let complex = |bits: u64| Complex::new(f64::from(whole(bits)), f64::from(whole(bits >> 20)));
        let matrix = Host::of_lengths(8, lengths, &mut random, complex);
        let x: Vec<Complex<f64>> = (0..8).map(|_| complex(random.bits())).collect();
        let sum = |row| matrix.row(row).map(|(column, value)| value * x[column]).sum();
        let expected: Vec<Complex<f64>> = (0..matrix.rows()).map(sum).collect();
        let mut a = matrix.on(&stream)?;
        a.set_method(SpmvMethod::MergePath)?;
        let mut y = stream.buffer_zeroed(matrix.rows())?;
        spmv(&stream, &a, &stream.buffer_from(&x)?, &mut y)?;
        assert_eq!(y.to_vec()?, expected);
    }
    for lengths in edges(csr_tile_steps::<[f64; 3]>()) {
        let matrix = Host::of_lengths(8, lengths, &mut random, |bits| f64::from(whole(bits)));
        let x: Vec<f64> = (0..8).map(|_| f64::from(whole(random.bits()))).collect();
        let sum = |row| {
            matrix.row(row).map(|(column, value)| value * x[column]).fold([0.0; 3], |[a, b, c], product| {
                [a + product, b + product * product, c + product * product * product]
            })
        };
        let expected: Vec<[f64; 3]> = (0..matrix.rows()).map(sum).collect();
        let mut a = matrix.on(&stream)?;
        a.set_method(SpmvMethod::MergePath)?;
        let mut y = stream.buffer_from(&vec![[77.0; 3]; matrix.rows()])?;
        spmv_by(&stream, &a, &stream.buffer_from(&x)?, Powers::<3>, Overwrite, &mut y)?;
        assert_eq!(y.to_vec()?, expected);
    }
    Ok(())
}

/// Rows that continue in other tiles have results that know the number of entries.
#[test]
fn rows_know_their_entries_at_the_edges_of_tiles() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(28);
    let tile = csr_tile_steps::<f64>();
    for lengths in edges(tile).into_iter().step_by(3).chain(powers(tile)) {
        let matrix = Host::of_lengths(8, lengths, &mut random, |bits| f64::from(whole(bits)));
        let x: Vec<f64> = (0..8).map(|_| f64::from(whole(random.bits()))).collect();
        let mean = |row: usize| {
            let sum: f64 = matrix.row(row).map(|(column, value)| value * x[column]).sum();
            sum / matrix.row(row).count().max(1) as f64
        };
        let expected: Vec<f64> = (0..matrix.rows()).map(mean).collect();
        let mut a = matrix.on(&stream)?;
        a.set_method(SpmvMethod::MergePath)?;
        let mut y = stream.buffer_from(&vec![77.0f64; matrix.rows()])?;
        spmv_by(&stream, &a, &stream.buffer_from(&x)?, MeanProduct, Overwrite, &mut y)?;
        assert_eq!(y.to_vec()?, expected);
    }
    Ok(())
}

#[test]
fn rows_with_indices_of_64_bits_end_anywhere_at_the_edges_of_tiles() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(30);
    let tile = csr_tile_steps::<f32>();
    for lengths in edges(tile).into_iter().step_by(3).chain(powers(tile)) {
        let matrix = Host::of_lengths(8, lengths, &mut random, whole);
        let x: Vec<f32> = (0..8).map(|column| column as f32).collect();
        let wide = |numbers: &[u32]| numbers.iter().map(|&number| u64::from(number)).collect::<Vec<_>>();
        let values: Vec<f16> = matrix.values.iter().map(|&value| f16::from_f32(value)).collect();
        let (offsets, indices) = (wide(&matrix.offsets), wide(&matrix.indices));
        let mut a = Csr::new(&stream, (matrix.rows(), 8), &offsets, &indices, &values)?;
        a.set_method(SpmvMethod::MergePath)?;
        let mut y = stream.buffer_from(&vec![77.0f32; matrix.rows()])?;
        spmv(&stream, &a, counting(0.0f32, 8), &mut y)?;
        let found: Vec<f64> = y.to_vec()?.into_iter().map(f64::from).collect();
        assert_eq!(found, dense(&matrix, &x));
    }
    Ok(())
}

/// No place without an entry of the row is combined, even if its result is not used. Sums are as large as possible.
#[test]
fn an_operator_sees_the_entries_of_a_row_alone_at_the_edges_of_tiles() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(31);
    let tile = csr_tile_steps::<u32>();
    for lengths in edges(tile).into_iter().step_by(3).chain(powers(tile)) {
        let mut matrix = Host::of_lengths(8, lengths, &mut random, |_| 1u32);
        let mut expected = Vec::new();
        for ends in matrix.offsets.windows(2) {
            if let Some(last) = (ends[0]..ends[1]).next_back() {
                matrix.values[last as usize] = u32::MAX - (ends[1] - ends[0] - 1);
            }
            expected.push(if ends[0] == ends[1] { 0 } else { u32::MAX });
        }
        let mut a = matrix.on(&stream)?;
        a.set_method(SpmvMethod::MergePath)?;
        let mut y = stream.buffer_from(&vec![77u32; matrix.rows()])?;
        spmv_by(&stream, &a, &stream.buffer_from(&[1u32; 8])?, CheckedSum, Overwrite, &mut y)?;
        assert_eq!(y.to_vec()?, expected);
    }
    Ok(())
}

/// Places of a tile without an entry take no part. With this semiring, not even zeros would be right.
#[test]
fn shortest_paths_end_anywhere_at_the_edges_of_tiles() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(25);
    for lengths in edges(csr_tile_steps::<f32>()) {
        let matrix = Host::of_lengths(8, lengths, &mut random, |bits| (bits % 90 + 1) as f32);
        let x: Vec<f32> = (0..8).map(|_| (random.below(50) + 1) as f32).collect();
        let least = |row| matrix.row(row).map(|(column, length)| length + x[column]).fold(f32::INFINITY, f32::min);
        let expected: Vec<f32> = (0..matrix.rows()).map(least).collect();
        let mut a = matrix.on(&stream)?;
        a.set_method(SpmvMethod::MergePath)?;
        let mut y = stream.buffer_zeroed::<f32>(matrix.rows())?;
        let shortest = Semiring { plus: Min, times: Add };
        spmv_by(&stream, &a, &stream.buffer_from(&x)?, shortest, Overwrite, &mut y)?;
        assert_eq!(y.to_vec()?, expected);
    }
    Ok(())
}

/// This also holds if a tile has only the ends of empty rows.
#[test]
fn empty_rows_become_what_the_epilogue_makes_of_nothing() -> Result<()> {
    let stream = stream()?;
    let tile = csr_tile_steps::<f32>();
    let mut random = Random::new(24);
    let lengths = [vec![0; 3 * tile], vec![3], vec![0; tile + 5], vec![2 * tile + 1], vec![0; 2 * tile]].concat();
    let matrix = Host::of_lengths(8, lengths, &mut random, whole);
    let (rows, x) = (matrix.rows(), vec![1.0f32; 8]);
    let mut a = Csr::new(&stream, (rows, 8), &matrix.offsets, &matrix.indices, &matrix.values)?;
    a.set_method(SpmvMethod::MergePath)?;
    let old: Vec<f32> = (0..rows).map(|row| (row % 100) as f32).collect();
    let mut y = stream.buffer_from(&old)?;
    spmv_by(&stream, &a, &stream.buffer_from(&x)?, PlusTimes, Axpby { alpha: 2.0, beta: -1.0 }, &mut y)?;
    let products = dense(&matrix, &x);
    let expected: Vec<f64> = products.iter().zip(&old).map(|(product, &old)| 2.0 * product - f64::from(old)).collect();
    assert_eq!(y.to_vec()?.into_iter().map(f64::from).collect::<Vec<_>>(), expected);
    Ok(())
}
