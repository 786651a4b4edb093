//! Tests matrices of triplets, their transposes and their products against those of the crate `sprs`.

use kernel_primitives::algorithms::{Coo, Csr, Sell, spmm, spmv};
use kernel_primitives::functor::Add;
use kernel_primitives::{Result, Stream};
use sprs::{CsMat, TriMat};

use crate::METHODS;
use crate::products::whole;
use crate::support::{Random, stream, streams};

/// Returns a matrix of `sprs` as offsets, columns and values.
fn arrays(matrix: &CsMat<f64>) -> (Vec<u32>, Vec<u32>, Vec<f64>) {
    assert!(matrix.is_csr());
    let numbers = |all: &[usize]| all.iter().map(|&number| number as u32).collect();
    (numbers(&matrix.proper_indptr()), numbers(matrix.indices()), matrix.data().to_vec())
}

/// Returns the product of `sprs`.
fn product(matrix: &CsMat<f64>, x: &[f64]) -> Vec<f64> {
    let mut y = vec![0.0; matrix.rows()];
    sprs::prod::mul_acc_mat_vec_csr(matrix.view(), x, &mut y[..]);
    y
}

/// Checks triplets at random places, some at equal places. Values are small whole numbers, so that sums are exact. Combined values may be
/// zero.
fn is_right(stream: &Stream, shape: (usize, usize), count: usize, random: &mut Random) -> Result<()> {
    let (mut ours, mut theirs) = (Coo::<f64>::new(shape)?, TriMat::new(shape));
    // Most triplets are in a few rows, so that lengths differ.
    let crowded = 1 + random.below(shape.0.max(1) as u64);
    for at in 0..if shape.0 == 0 || shape.1 == 0 { 0 } else { count } {
        let rows = if at % 3 == 0 { shape.0 as u64 } else { crowded };
        let (row, column) = (random.below(rows) as usize, random.below(shape.1 as u64) as usize);
        let value = f64::from(whole(random.bits()));
        ours.push(row, column, value)?;
        theirs.add_triplet(row, column, value);
    }
    let theirs: CsMat<f64> = theirs.to_csr();
    let ours = Csr::from_coo(stream, &ours, Add)?;
    is_same(stream, ours, &theirs, random)?;
    let ours = Csr::from_coo(stream, &coo_of(&theirs)?, Add)?;
    is_same(stream, ours.transpose(stream)?, &theirs.transpose_view().to_csr(), random)
}

fn coo_of(matrix: &CsMat<f64>) -> Result<Coo<f64>> {
    let mut triplets = Coo::new(matrix.shape())?;
    for (&value, (row, column)) in matrix.iter() {
        triplets.push(row, column, value)?;
    }
    Ok(triplets)
}

/// Checks that the entries are the same, and that the products are the same by each method, in slices, and with several vectors.
fn is_same(stream: &Stream, mut ours: Csr<f64>, theirs: &CsMat<f64>, random: &mut Random) -> Result<()> {
    let found = (ours.offsets().to_vec()?, ours.indices().to_vec()?, ours.values().to_vec()?);
    assert_eq!(found, arrays(theirs), "{:?}", theirs.shape());

    let (rows, columns) = theirs.shape();
    let x: Vec<f64> = (0..columns).map(|_| f64::from(whole(random.bits()))).collect();
    let expected = product(theirs, &x);
    let there = stream.buffer_from(&x)?;
    let slices = Sell::from_csr(stream, &ours, 64)?;
    let mut y = stream.buffer_zeroed::<f64>(rows)?;
    spmv(stream, &slices, &there, &mut y)?;
    assert_eq!(y.to_vec()?, expected, "{:?} in slices", theirs.shape());
    // These are the vector and its double.
    let both: Vec<f64> = x.iter().flat_map(|&item| [item, 2.0 * item]).collect();
    let both = stream.buffer_from(&both)?;
    let doubled: Vec<f64> = expected.iter().flat_map(|&sum| [sum, 2.0 * sum]).collect();
    for method in METHODS {
        ours.set_method(method)?;
        let mut y = stream.buffer_zeroed::<f64>(rows)?;
        spmv(stream, &ours, &there, &mut y)?;
        assert_eq!(y.to_vec()?, expected, "{:?}, {method:?}", theirs.shape());
        let mut y = stream.buffer_zeroed::<f64>(2 * rows)?;
        spmm(stream, &ours, &both, 2, &mut y)?;
        assert_eq!(y.to_vec()?, doubled, "two vectors, {:?}, {method:?}", theirs.shape());
    }
    Ok(())
}

#[test]
fn triplets_transposes_and_products_are_those_of_sprs() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(61);
    let shapes = [(1, 1), (7, 300), (300, 7), (40, 40), (1000, 33), (5, 2000), (0, 4), (4, 0)];
    for (at, shape) in shapes.into_iter().cycle().take(24).enumerate() {
        let count = [0, 1, 50, 900, 5000][at % 5];
        is_right(&stream, shape, count, &mut random)?;
    }
    Ok(())
}

#[test]
fn small_matrices_are_those_of_sprs_on_every_device_sanitize() -> Result<()> {
    let mut random = Random::new(62);
    for stream in streams()? {
        for (shape, count) in [((9, 5), 60), ((3, 40), 7)] {
            is_right(&stream, shape, count, &mut random)?;
        }
    }
    Ok(())
}
