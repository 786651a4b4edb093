//! Tests products with several vectors against products with each vector.

use kernel_primitives::algorithms::{Csr, spmm, spmm_by, spmm_with};
use kernel_primitives::functor::{Add, Axpby, Conjugate, Min, OfEntry, Overwrite, PlusTimes, Semiring};
use kernel_primitives::input::counting;
use kernel_primitives::{Complex, Error, Result, f16};

use crate::support::{Random, stream, streams};
use crate::{Host, METHODS, lengths};

/// Returns a small whole number. Sums of products of such numbers are exact.
fn whole(bits: u64) -> f32 {
    (bits % 17) as f32 - 8.0
}

/// Returns the products with each vector, by plain loops.
fn products(matrix: &Host<f32>, x: &[f32], vectors: usize) -> Vec<f32> {
    let mut all = Vec::new();
    for row in 0..matrix.rows() {
        for vector in 0..vectors {
            all.push(matrix.row(row).map(|(column, value)| value * x[column * vectors + vector]).sum());
        }
    }
    all
}

#[test]
fn several_vectors_have_the_products_of_each() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(41);
    for (kind, vectors) in [1, 2, 3, 4, 7, 8, 16, 31, 32, 33, 64, 100, 128, 129, 256, 300, 512].into_iter().enumerate()
    {
        let columns = [30, 1, 77][kind % 3];
        let matrix = Host::of_lengths(columns, lengths(kind, &mut random), &mut random, whole);
        let x: Vec<f32> = (0..columns * vectors).map(|_| whole(random.bits())).collect();
        let expected = products(&matrix, &x, vectors);
        let (mut a, x) = (matrix.on(&stream)?, stream.buffer_from(&x)?);
        for method in METHODS {
            a.set_method(method)?;
            // The memory after the rows is unchanged.
            let mut y = stream.buffer_from(&vec![77.0f32; expected.len() + 1])?;
            spmm(&stream, &a, &x, vectors, &mut y)?;
            let (last, found) = y.to_vec()?.split_last().map(|(last, found)| (*last, found.to_vec())).expect("one");
            assert_eq!((found, last), (expected.clone(), 77.0), "{vectors} vectors, {kind}, {method:?}");
        }
    }
    Ok(())
}

#[test]
fn every_shape_of_lanes_has_the_same_products_sanitize() -> Result<()> {
    let mut random = Random::new(42);
    let matrix = Host::of_lengths(40, [3, 0, 300, 0, 0, 5, 40, 1, 0], &mut random, whole);
    for stream in streams()? {
        let mut a = matrix.on(&stream)?;
        for vectors in [1, 3, 16, 70] {
            let x: Vec<f32> = (0..40 * vectors).map(|_| whole(random.bits())).collect();
            let (expected, x) = (products(&matrix, &x, vectors), stream.buffer_from(&x)?);
            for method in METHODS {
                a.set_method(method)?;
                let mut y = stream.buffer_zeroed::<f32>(9 * vectors)?;
                spmm(&stream, &a, &x, vectors, &mut y)?;
                assert_eq!(y.to_vec()?, expected, "{vectors} vectors, {method:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn vectors_need_not_be_aligned_for_one_access_sanitize() -> Result<()> {
    let mut random = Random::new(47);
    let complex = |bits: u64| Complex::new(whole(bits), whole(bits >> 20));
    let matrix = Host::of_lengths(30, [3, 0, 200, 30], &mut random, complex);
    let real = Host::of_lengths(30, [3, 0, 200, 30], &mut random, whole);
    for stream in streams()? {
        let (a, of_real) = (matrix.on(&stream)?, real.on(&stream)?);
        for vectors in [1, 2, 3, 4, 8, 512] {
            let parts: Vec<f32> = (0..1 + 60 * vectors).map(|_| whole(random.bits())).collect();
            let (all, apart) = (stream.buffer_from(&parts)?, stream.buffer_from(&parts[1..])?);
            let (mut found, mut products) = (Vec::new(), Vec::new());
            for x in [all.slice(1..)?, apart.slice(..)?] {
                let mut y = stream.buffer_zeroed::<Complex<f32>>(4 * vectors)?;
                let op = OfEntry { function: Conjugate, reduction: PlusTimes };
                spmm_by(&stream, &a, x.reinterpret::<Complex<f32>>()?, vectors, op, Overwrite, &mut y)?;
                found.push(y.to_vec()?);
                let mut y = stream.buffer_zeroed::<f32>(4 * vectors)?;
                spmm(&stream, &of_real, x.slice(..30 * vectors)?, vectors, &mut y)?;
                products.push(y.to_vec()?);
            }
            assert_eq!(found[0], found[1], "{vectors}");
            assert_eq!(products[0], products[1], "{vectors}");
            assert_eq!(products[0], self::products(&real, &parts[1..], vectors), "{vectors}");
        }
    }
    Ok(())
}

#[test]
fn results_are_scaled_and_added() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(43);
    let matrix = Host::of_lengths(20, [3, 0, 100, 20], &mut random, whole);
    let x: Vec<f32> = (0..60).map(|_| whole(random.bits())).collect();
    let (a, there) = (matrix.on(&stream)?, stream.buffer_from(&x)?);
    let mut y = stream.buffer_from(&(0..12).map(|at| at as f32).collect::<Vec<_>>())?;
    spmm_by(&stream, &a, &there, 3, PlusTimes, Axpby { alpha: -2.0, beta: 0.5 }, &mut y)?;
    let expected: Vec<f32> =
        products(&matrix, &x, 3).iter().enumerate().map(|(at, product)| -2.0 * product + 0.5 * at as f32).collect();
    assert_eq!(y.to_vec()?, expected);
    Ok(())
}

/// The test computes `F - A X` with a separate `F`. The old elements of `Y` are not read.
#[test]
fn residuals_of_several_vectors_read_others_and_not_the_results_sanitize() -> Result<()> {
    let mut random = Random::new(45);
    let matrix = Host::of_lengths(20, [3, 0, 100, 20], &mut random, whole);
    for stream in streams()? {
        let mut a = matrix.on(&stream)?;
        for vectors in [3, 40] {
            let x: Vec<f32> = (0..20 * vectors).map(|_| whole(random.bits())).collect();
            let f: Vec<f32> = (0..4 * vectors + 1).map(|at| at as f32).collect();
            let products = products(&matrix, &x, vectors);
            let expected: Vec<f32> = products.iter().zip(&f).map(|(product, f)| f - product).collect();
            let (x, f) = (stream.buffer_from(&x)?, stream.buffer_from(&f)?);
            for method in METHODS {
                a.set_method(method)?;
                let mut y = stream.buffer_from(&vec![f32::NAN; 4 * vectors])?;
                let axpby = Axpby { alpha: -1.0, beta: 1.0 };
                spmm_with(&stream, &a, &x, vectors, PlusTimes, axpby, &f, &mut y)?;
                assert_eq!(y.to_vec()?, expected, "{vectors} vectors, {method:?}");
            }
            let short = stream.buffer_zeroed::<f32>(4 * vectors - 1)?;
            let mut y = stream.buffer_zeroed::<f32>(4 * vectors)?;
            let error = spmm_with(&stream, &a, &x, vectors, PlusTimes, Axpby::OVERWRITE, &short, &mut y).unwrap_err();
            assert!(matches!(error, Error::LengthMismatch { first_len, .. } if first_len == 4 * vectors), "{error}");
            assert!(error.to_string().contains("spmm_with"), "{error}");
        }
    }
    Ok(())
}

/// A function of each entry makes the conjugates of a transposed matrix.
#[test]
fn adjoint_matrices_have_products() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(46);
    let complex = |bits: u64| Complex::new(whole(bits), whole(bits >> 20));
    let matrix = Host::of_lengths(30, [3, 0, 200, 30], &mut random, complex);
    let x: Vec<Complex<f32>> = (0..8).map(|_| complex(random.bits())).collect();
    let mut expected = vec![Complex::new(0.0f32, 0.0); 60];
    for row in 0..4 {
        for (column, value) in matrix.row(row) {
            for vector in 0..2 {
                expected[column * 2 + vector] += Complex::new(value.re, -value.im) * x[row * 2 + vector];
            }
        }
    }
    let mut transposed = Host { columns: 4, offsets: vec![0], indices: Vec::new(), values: Vec::new() };
    for column in 0..30 {
        let entries = (0..4).flat_map(|row| matrix.row(row).map(move |(at, value)| (at, row, value)));
        for (_, row, value) in entries.filter(|&(at, ..)| at == column) {
            transposed.indices.push(row as u32);
            transposed.values.push(value);
        }
        transposed.offsets.push(transposed.values.len() as u32);
    }
    let transposed = transposed.on(&stream)?;
    let mut y = stream.buffer_zeroed::<Complex<f32>>(60)?;
    let adjoint = OfEntry { function: Conjugate, reduction: PlusTimes };
    spmm_by(&stream, &transposed, &stream.buffer_from(&x)?, 2, adjoint, Overwrite, &mut y)?;
    assert_eq!(y.to_vec()?, expected);
    Ok(())
}

/// This is a step of shortest paths from several vertices at once. A row without entries has the identity.
#[test]
fn any_semiring_has_products_with_several_vectors() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(44);
    let matrix = Host::of_lengths(30, [3, 0, 50, 1, 8], &mut random, |bits| (bits % 90 + 1) as f32);
    let x: Vec<f32> = (0..30 * 5).map(|_| (random.below(50)) as f32).collect();
    let (mut a, there) = (matrix.on(&stream)?, stream.buffer_from(&x)?);
    let mut expected = Vec::new();
    for row in 0..5 {
        for vector in 0..5 {
            let ways = matrix.row(row).map(|(column, length)| length + x[column * 5 + vector]);
            expected.push(ways.fold(f32::INFINITY, f32::min));
        }
    }
    for method in METHODS {
        a.set_method(method)?;
        let mut y = stream.buffer_zeroed::<f32>(25)?;
        spmm_by(&stream, &a, &there, 5, Semiring { plus: Min, times: Add }, Overwrite, &mut y)?;
        assert_eq!(y.to_vec()?, expected, "{method:?}");
    }
    Ok(())
}

#[test]
fn halves_take_wide_indices_and_computed_vectors() -> Result<()> {
    let stream = stream()?;
    let a = Csr::new(&stream, (2, 3), &[0u64, 2, 3], &[0, 2, 1], &[1.0, 2.0, 3.0].map(f16::from_f32))?;
    let mut y = stream.buffer_zeroed::<f32>(4)?;
    // These are the vectors 0, 2, 4 and 1, 3, 5.
    spmm(&stream, &a, counting(0.0f32, 6), 2, &mut y)?;
    assert_eq!(y.to_vec()?, [8.0, 11.0, 6.0, 9.0]);
    Ok(())
}

#[test]
fn lengths_that_do_not_fit_are_errors_and_no_vectors_are_none() -> Result<()> {
    let stream = stream()?;
    let a = Csr::new(&stream, (2, 3), &[0u32, 1, 2], &[0, 2], &[1.0f32, 2.0])?;
    let mut y = stream.buffer_from(&[7.0f32; 4])?;
    let x = stream.buffer_zeroed::<f32>(6)?;
    for (vectors, needed) in [(1, 3), (3, 9), (0, 0), (usize::MAX, usize::MAX)] {
        let error = spmm(&stream, &a, &x, vectors, &mut y).unwrap_err();
        assert!(
            matches!(error, Error::LengthMismatch { first_len, second_len: 6, .. } if first_len == needed),
            "{error}"
        );
    }
    let error = spmm(&stream, &a, &x, 2, &mut stream.buffer_zeroed(3)?).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { first_len: 4, second_len: 3, .. }), "{error}");
    spmm(&stream, &a, &stream.buffer_zeroed::<f32>(0)?, 0, &mut y)?;
    assert_eq!(y.to_vec()?, [7.0; 4]);
    Ok(())
}
