//! Tests products against dense products in `f64` and plain loops.

use kernel_primitives::algorithms::{
    Csr, CsrIndex, Run, SpmvMethod, Workspace, spmm, spmm_by, spmv, spmv_by, spmv_with,
};
use kernel_primitives::functor::{Add, Axpby, Epilogue, LogicalAnd, LogicalOr, Min, Overwrite, PlusTimes, Semiring};
use kernel_primitives::input::counting;
use kernel_primitives::kernels::device::csr_tile_steps;
use kernel_primitives::{BufferSliceMut, Complex, Element, Error, Result, Stream, f16};

use crate::kernels::{CheckedSum, FirstColumn};
use crate::support::{Random, stream, streams};
use crate::{Host, METHODS, lengths};

/// Returns the product with the dense matrix, in `f64`.
pub(crate) fn dense<V: Element + Into<f64>>(matrix: &Host<V>, x: &[V]) -> Vec<f64> {
    let columns = matrix.columns;
    let mut dense = vec![0.0; matrix.rows() * columns];
    for row in 0..matrix.rows() {
        for (column, value) in matrix.row(row) {
            dense[row * columns + column] += value.into();
        }
    }
    let x: Vec<f64> = x.iter().map(|&x| x.into()).collect();
    (0..matrix.rows()).map(|row| dense[row * columns..][..columns].iter().zip(&x).map(|(a, x)| a * x).sum()).collect()
}

/// Returns a small whole number. Sums of products of such numbers are exact.
pub(crate) fn whole(bits: u64) -> f32 {
    (bits % 17) as f32 - 8.0
}

macro_rules! products {
    ($($name:ident: $t:ty;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            let stream = stream()?;
            let mut random = Random::new(3);
            for kind in 0..18 {
                let columns = [300, 1, 77][kind % 3];
                let matrix = Host::of_lengths(columns, lengths(kind, &mut random), &mut random, |b| whole(b) as $t);
                let x: Vec<$t> = (0..columns).map(|_| whole(random.bits()) as $t).collect();
                let expected = dense(&matrix, &x);
                let mut a = matrix.on(&stream)?;
                let x = stream.buffer_from(&x)?;
                for method in METHODS.into_iter().chain([a.method()]) {
                    a.set_method(method)?;
                    // The memory after the rows is unchanged.
                    let mut y = stream.buffer_from(&vec![77 as $t; matrix.rows() + 1])?;
                    spmv(&stream, &a, &x, &mut y)?;
                    let found: Vec<f64> = y.to_vec()?.into_iter().map(f64::from).collect();
                    let expected: Vec<f64> = expected.iter().copied().chain([77.0]).collect();
                    assert_eq!(found, expected, "{kind}, {method:?}");
                }
            }
            Ok(())
        }
    )*};
}
products! {
    products_of_f32_are_those_of_dense_matrices: f32;
    products_of_f64_are_those_of_dense_matrices: f64;
}

#[test]
fn every_method_has_the_same_product_sanitize() -> Result<()> {
    let mut random = Random::new(1);
    let matrix = Host::of_lengths(40, [3, 0, 1000, 0, 0, 5, 40, 1, 0], &mut random, whole);
    let x: Vec<f32> = (0..40).map(|_| whole(random.bits())).collect();
    for stream in streams()? {
        let (mut a, x) = (matrix.on(&stream)?, stream.buffer_from(&x)?);
        for method in METHODS {
            a.set_method(method)?;
            let mut y = stream.buffer_zeroed::<f32>(9)?;
            spmv(&stream, &a, &x, &mut y)?;
            let found: Vec<f64> = y.to_vec()?.into_iter().map(f64::from).collect();
            assert_eq!(found, dense(&matrix, &x.to_vec()?), "{method:?}");
        }
    }
    Ok(())
}

/// Rows are within a tile of the merge path, over a few tiles, over more tiles than a thread adds up, and over more than a block has
/// threads.
#[test]
fn rows_over_many_tiles_are_added_up() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(5);
    let tile = csr_tile_steps::<f64>();
    let longest = 257 * tile;
    let lengths = [0, 5, 2000, 3, 0, 20_000, 0, 0, 1, longest, 7, 16 * tile, 17 * tile, tile, tile - 1, 0];
    let matrix = Host::of_lengths(50, lengths, &mut random, |bits| whole(bits) as f64);
    let x: Vec<f64> = (0..50).map(|_| f64::from(whole(random.bits()))).collect();
    let mut a = matrix.on(&stream)?;
    assert_eq!((a.longest_row(), a.method()), (longest, SpmvMethod::MergePath));
    let (x_there, mut y) = (stream.buffer_from(&x)?, stream.buffer_zeroed::<f64>(16)?);
    spmv(&stream, &a, &x_there, &mut y)?;
    assert_eq!(y.to_vec()?, dense(&matrix, &x));
    // Empty rows have tiles of their own, before and after the entries.
    let lengths = (0..4000).map(|row| if row == 2000 { 4000 } else { 0 });
    let matrix = Host::of_lengths(50, lengths, &mut random, |bits| whole(bits) as f64);
    a = matrix.on(&stream)?;
    a.set_method(SpmvMethod::MergePath)?;
    let mut y = stream.buffer_from(&vec![7.0f64; 4000])?;
    spmv(&stream, &a, &x_there, &mut y)?;
    assert_eq!(y.to_vec()?, dense(&matrix, &x));
    Ok(())
}

/// The values are halves, which accumulate in `f32`, with indices of 64 bits and a computed vector.
#[test]
fn halves_take_wide_indices_and_computed_vectors() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(7);
    let matrix = Host::of_lengths(60, [3, 0, 2000, 60, 1], &mut random, |bits| f16::from_f32(whole(bits)));
    let wide = |numbers: &[u32]| numbers.iter().map(|&n| u64::from(n)).collect::<Vec<_>>();
    let (offsets, indices) = (wide(&matrix.offsets), wide(&matrix.indices));
    let mut a = Csr::new(&stream, (5, 60), &offsets, &indices, &matrix.values)?;
    let expected: Vec<f32> =
        (0..5).map(|row| matrix.row(row).map(|(column, value)| value.to_f32() * column as f32).sum()).collect();
    for method in METHODS {
        a.set_method(method)?;
        let mut y = stream.buffer_zeroed::<f32>(5)?;
        spmv(&stream, &a, counting(0.0f32, 60), &mut y)?;
        assert_eq!(y.to_vec()?, expected, "{method:?}");
    }
    Ok(())
}

#[test]
fn complex_matrices_have_products() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(8);
    let complex = |bits: u64| Complex::new(f64::from(whole(bits)), f64::from(whole(bits >> 20)));
    let matrix = Host::of_lengths(30, [3, 0, 1500, 30], &mut random, complex);
    let x: Vec<Complex<f64>> = (0..30).map(|_| complex(random.bits())).collect();
    let expected: Vec<Complex<f64>> =
        (0..4).map(|row| matrix.row(row).map(|(column, value)| value * x[column]).sum()).collect();
    let (mut a, x) = (matrix.on(&stream)?, stream.buffer_from(&x)?);
    for method in METHODS {
        a.set_method(method)?;
        let mut y = stream.buffer_zeroed(4)?;
        spmv(&stream, &a, &x, &mut y)?;
        assert_eq!(y.to_vec()?, expected, "{method:?}");
    }
    Ok(())
}

/// The number 1 is not neutral for complex numbers: (inf + 0i)(1 + 0i) has the part 0 · inf.
#[test]
fn factors_of_one_and_of_zero_do_not_multiply() -> Result<()> {
    let stream = stream()?;
    let c = Complex::<f64>::new;
    let values = [c(1e300, 0.0), c(0.0, -3.0)];
    let mut a = Csr::new(&stream, (2, 1), &[0u32, 1, 2], &[0, 0], &values)?;
    let x = stream.buffer_from(&[c(1e300, 0.0)])?;
    for method in METHODS {
        a.set_method(method)?;
        let mut y = stream.buffer_zeroed(2)?;
        spmv(&stream, &a, &x, &mut y)?;
        let expected = [c(f64::INFINITY, 0.0), c(0.0, -3.0 * 1e300)];
        assert_eq!(y.to_vec()?, expected, "{method:?}");
    }
    let bits = |z: Complex<f64>| (z.re.to_bits(), z.im.to_bits());
    let total = c(-0.0, -2.0);
    assert_eq!(bits(Axpby::OVERWRITE.apply(total, c(7.0, 7.0))), bits(total));
    let nothing = Axpby { alpha: 0.0, beta: 0.0 };
    assert_eq!(nothing.apply(f64::NAN, f64::NAN), 0.0);
    assert_eq!(Axpby { beta: 2.0, ..nothing }.apply(f64::NAN, 3.0), 6.0);
    let kept = Axpby { alpha: c(2.0, 0.0), beta: c(1.0, 0.0) }.apply(c(0.0, 0.0), c(f64::INFINITY, 0.0));
    assert_eq!(kept, c(f64::INFINITY, 0.0));
    Ok(())
}

/// Makes a graph, by the edges that lead to each vertex.
fn graph<V: Element>(value: impl Fn(u64) -> V) -> Host<V> {
    let mut random = Random::new(11);
    let degrees: Vec<usize> = (0..200).map(|_| random.below(4) as usize).collect();
    Host::of_lengths(200, degrees, &mut random, value)
}

/// Relaxes edges until nothing changes, as in the algorithm of Bellman and Ford.
#[test]
fn min_and_plus_find_shortest_paths() -> Result<()> {
    let stream = stream()?;
    let edges = graph(|bits| (bits % 90 + 1) as f32);
    let mut expected = vec![f32::INFINITY; 200];
    expected[0] = 0.0;
    for _ in 0..200 {
        for row in 0..200 {
            for (column, length) in edges.row(row) {
                expected[row] = expected[row].min(expected[column] + length);
            }
        }
    }
    let mut a = edges.on(&stream)?;
    let shortest = Semiring { plus: Min, times: Add };
    for method in METHODS {
        a.set_method(method)?;
        let mut distances = vec![f32::INFINITY; 200];
        distances[0] = 0.0;
        for _ in 0..200 {
            let (x, mut y) = (stream.buffer_from(&distances)?, stream.buffer_zeroed::<f32>(200)?);
            spmv_by(&stream, &a, &x, shortest, Overwrite, &mut y)?;
            let next: Vec<f32> = distances.iter().zip(y.to_vec()?).map(|(&old, new)| old.min(new)).collect();
            if next == distances {
                break;
            }
            distances = next;
        }
        assert_eq!(distances, expected, "{method:?}");
    }
    Ok(())
}

#[test]
fn or_and_and_find_neighbours_and_an_index_is_the_column() -> Result<()> {
    let stream = stream()?;
    let edges = graph(|bits| bits % 8 > 0);
    let mut random = Random::new(12);
    let x: Vec<bool> = (0..200).map(|_| random.below(3) == 0).collect();
    let reached: Vec<bool> = (0..200).map(|row| edges.row(row).any(|(column, edge)| edge & x[column])).collect();
    let first = |row| edges.row(row).filter(|&(column, edge)| edge & x[column]).map(|(column, _)| column as u64).min();
    let parents: Vec<u64> = (0..200).map(|row| first(row).unwrap_or(u64::MAX)).collect();
    let (mut a, x) = (edges.on(&stream)?, stream.buffer_from(&x)?);
    for method in METHODS {
        a.set_method(method)?;
        let mut y = stream.buffer_zeroed::<bool>(200)?;
        spmv_by(&stream, &a, &x, Semiring { plus: LogicalOr, times: LogicalAnd }, Overwrite, &mut y)?;
        assert_eq!(y.to_vec()?, reached, "{method:?}");
        let mut y = stream.buffer_zeroed::<u64>(200)?;
        spmv_by(&stream, &a, &x, FirstColumn, Overwrite, &mut y)?;
        assert_eq!(y.to_vec()?, parents, "{method:?}");
    }
    Ok(())
}

/// No place without an entry of the row is combined, even if its result is not used. The sum of each row is as large as possible.
#[test]
fn an_operator_sees_the_entries_of_a_row_alone_by_every_method() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(32);
    let mut matrix = Host::of_lengths(8, (0..40).chain([0, 129, 1]), &mut random, |_| 1u32);
    let mut expected = Vec::new();
    for ends in matrix.offsets.windows(2) {
        if let Some(last) = (ends[0]..ends[1]).next_back() {
            matrix.values[last as usize] = u32::MAX - (ends[1] - ends[0] - 1);
        }
        expected.push(if ends[0] == ends[1] { 0 } else { u32::MAX });
    }
    let mut a = matrix.on(&stream)?;
    for method in METHODS {
        a.set_method(method)?;
        let mut y = stream.buffer_from(&vec![77u32; matrix.rows()])?;
        spmv_by(&stream, &a, &stream.buffer_from(&[1u32; 8])?, CheckedSum, Overwrite, &mut y)?;
        assert_eq!(y.to_vec()?, expected, "{method:?}");
        // A lane has one vector, four neighbours, or two groups of four.
        for vectors in [1, 3, 4, 8, 256] {
            let x = stream.buffer_from(&vec![1u32; 8 * vectors])?;
            let mut y = stream.buffer_from(&vec![77u32; matrix.rows() * vectors])?;
            spmm_by(&stream, &a, &x, vectors, CheckedSum, Overwrite, &mut y)?;
            let all: Vec<u32> = expected.iter().flat_map(|&sum| vec![sum; vectors]).collect();
            assert_eq!(y.to_vec()?, all, "{vectors} vectors, {method:?}");
        }
    }
    Ok(())
}

#[test]
fn results_are_scaled_and_added_and_y_is_read_only_where_it_counts() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(13);
    let matrix = Host::of_lengths(20, [3, 0, 1000, 20, 1, 0], &mut random, whole);
    let x: Vec<f32> = (0..20).map(|_| whole(random.bits())).collect();
    let products = dense(&matrix, &x);
    let (mut a, x) = (matrix.on(&stream)?, stream.buffer_from(&x)?);
    for method in METHODS {
        a.set_method(method)?;
        let mut y = stream.buffer_from(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
        spmv_by(&stream, &a, &x, PlusTimes, Axpby { alpha: -2.0, beta: 0.5 }, &mut y)?;
        let expected: Vec<f64> =
            products.iter().enumerate().map(|(row, p)| -2.0 * p + 0.5 * (row as f64 + 1.0)).collect();
        assert_eq!(y.to_vec()?.into_iter().map(f64::from).collect::<Vec<_>>(), expected, "{method:?}");

        let mut y = stream.buffer_from(&[f32::NAN; 6])?;
        spmv_by(&stream, &a, &x, PlusTimes, Axpby { alpha: 3.0, beta: 0.0 }, &mut y)?;
        let expected: Vec<f64> = products.iter().map(|p| 3.0 * p).collect();
        assert_eq!(y.to_vec()?.into_iter().map(f64::from).collect::<Vec<_>>(), expected, "{method:?}");
    }
    Ok(())
}

/// The test computes `f - A x` with a separate `f`, for rows in one tile and rows in many tiles.
#[test]
fn residuals_read_another_vector_and_not_the_result_sanitize() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(17);
    let matrix = Host::of_lengths(20, [3, 0, 1000, 20, 20_000, 0], &mut random, whole);
    let x: Vec<f32> = (0..20).map(|_| whole(random.bits())).collect();
    let products = dense(&matrix, &x);
    let (mut a, x) = (matrix.on(&stream)?, stream.buffer_from(&x)?);
    let f = stream.buffer_from(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])?;
    for method in METHODS {
        a.set_method(method)?;
        let mut y = stream.buffer_from(&[f32::NAN; 6])?;
        spmv_with(&stream, &a, &x, PlusTimes, Axpby { alpha: -1.0, beta: 1.0 }, &f, &mut y)?;
        let expected: Vec<f64> = products.iter().enumerate().map(|(row, p)| row as f64 + 1.0 - p).collect();
        assert_eq!(y.to_vec()?.into_iter().map(f64::from).collect::<Vec<_>>(), expected, "{method:?}");

        // `f` is a part of a buffer, and another part is the result.
        let mut both = stream.buffer_from(&[2.0f32; 12])?;
        let (z, mut y) = both.as_mut_slice().split_at(6)?;
        spmv_with(&stream, &a, &x, PlusTimes, Axpby { alpha: 1.0, beta: -1.0 }, z.as_slice(), &mut y)?;
        let found: Vec<f64> = both.to_vec()?[6..].iter().map(|&y| y.into()).collect();
        assert_eq!(found, products.iter().map(|p| p - 2.0).collect::<Vec<_>>(), "{method:?}");
    }
    let short = stream.buffer_zeroed::<f32>(5)?;
    let mut y = stream.buffer_zeroed::<f32>(6)?;
    let error = spmv_with(&stream, &a, &x, PlusTimes, Axpby::OVERWRITE, &short, &mut y).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { first_len: 6, second_len: 5, .. }), "{error}");
    assert!(error.to_string().contains("spmv_with"), "{error}");
    Ok(())
}

/// This holds for each method, on every device, and in every order of its blocks.
#[test]
fn sums_of_floats_have_the_same_bits_on_every_device_and_run() -> Result<()> {
    let mut random = Random::new(14);
    let unit = |bits: u64| bits as f32 / u64::MAX as f32 - 0.5;
    let lengths: Vec<usize> = (0..200).map(|row| if row == 40 { 29_000 } else { row % 50 }).collect();
    let matrix = Host::of_lengths(1000, lengths, &mut random, unit);
    let x: Vec<f32> = (0..1000).map(|_| unit(random.bits())).collect();
    let products = || -> Result<Vec<Vec<u32>>> {
        let mut all = Vec::new();
        for stream in streams()? {
            let (mut a, x) = (matrix.on(&stream)?, stream.buffer_from(&x)?);
            let mut bits = vec![format!("{:?}", a.method()).len() as u32];
            for method in METHODS {
                a.set_method(method)?;
                let mut y = stream.buffer_zeroed::<f32>(200)?;
                spmv(&stream, &a, &x, &mut y)?;
                bits.extend(y.to_vec()?.into_iter().map(f32::to_bits));
            }
            all.push(bits);
        }
        Ok(all)
    };
    let (first, second) = (products()?, products()?);
    assert!(first.iter().chain(&second).all(|bits| *bits == first[0]));
    Ok(())
}

#[test]
fn with_a_workspace_a_product_is_captured_and_launched_again() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(15);
    let matrix = Host::of_lengths(20, [5000, 0, 7, 30_000], &mut random, whole);
    let mut a = matrix.on(&stream)?;
    let (mut x, mut y) = (stream.buffer_zeroed::<f32>(20)?, stream.buffer_zeroed::<f32>(4)?);
    for method in [SpmvMethod::Rows { lanes: 32 }, SpmvMethod::MergePath, SpmvMethod::ByLength] {
        a.set_method(method)?;
        let mut workspace = Workspace::new();
        spmv(Run::on(&stream).with(&mut workspace), &a, &x, &mut y)?;
        let graph = stream.capture(|stream| spmv(Run::on(stream).with(&mut workspace), &a, &x, &mut y))?;
        for _ in 0..2 {
            let items: Vec<f32> = (0..20).map(|_| whole(random.bits())).collect();
            x.copy_from(&items)?;
            graph.launch(&stream)?;
            let found: Vec<f64> = y.to_vec()?.into_iter().map(f64::from).collect();
            assert_eq!(found, dense(&matrix, &items), "{method:?}");
        }
    }
    Ok(())
}

#[test]
fn lengths_that_do_not_fit_are_errors() -> Result<()> {
    let stream = stream()?;
    let a = Csr::new(&stream, (2, 3), &[0u32, 1, 2], &[0, 2], &[1.0f32, 2.0])?;
    let mut y = stream.buffer_zeroed::<f32>(2)?;
    let error = spmv(&stream, &a, &stream.buffer_zeroed::<f32>(4)?, &mut y).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { first_len: 3, second_len: 4, .. }), "{error}");
    let x = stream.buffer_zeroed::<f32>(3)?;
    let error = spmv(&stream, &a, &x, &mut stream.buffer_zeroed(1)?).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { first_len: 2, second_len: 1, .. }), "{error}");
    Ok(())
}

/// A graph that was captured before may write offsets and columns after they were checked. There is still no access outside.
fn written_after_it_was_checked<V: Element, I: CsrIndex>(
    one: V,
    of: impl Fn(u64) -> I,
    product: impl Fn(&Stream, &Csr<V, I>, &mut BufferSliceMut<'_, f32>) -> Result<()>,
) -> Result<()> {
    const LEN: usize = 3000;
    let good: Vec<I> = (0..=LEN as u64).map(&of).collect();
    let most = of(if I::WIDTH == 32 { u32::MAX.into() } else { u64::MAX });
    let bad_offsets = [vec![most; LEN + 1], good.iter().rev().copied().collect(), vec![of(9); LEN + 1]];
    let bad_columns = [vec![most; LEN], vec![of(LEN as u64); LEN]];
    let cases = bad_offsets.into_iter().map(|bad| (bad, vec![of(0); LEN]));
    let cases = cases.chain(bad_columns.into_iter().map(|bad| (good.clone(), bad)));
    for (case, (bad_offsets, bad_columns)) in cases.enumerate() {
        for method in METHODS {
            // A fault belongs to its stream.
            let stream = stream()?;
            let (mut offsets, mut columns) = (stream.buffer_from(&good)?, stream.buffer_from(&[of(0); LEN])?);
            let (bad_offsets, bad_columns) = (stream.buffer_from(&bad_offsets)?, stream.buffer_from(&bad_columns)?);
            let graph = stream.capture(|stream| {
                offsets.as_mut_slice().copy_from_device(stream, bad_offsets.as_slice())?;
                columns.as_mut_slice().copy_from_device(stream, bad_columns.as_slice())
            })?;
            let values = stream.buffer_from(&[one; LEN])?;
            let mut a = Csr::from_buffers(&stream, (LEN, LEN), offsets, columns, values)?;
            a.set_method(method)?;
            graph.launch(&stream)?;
            let mut around = stream.buffer_from(&[77.0f32; LEN + 20])?;
            let mut y = around.slice_mut(10..LEN + 10)?;
            match product(&stream, &a, &mut y).and_then(|()| stream.synchronize()) {
                Ok(()) => {}
                Err(Error::Fault(fault)) => {
                    let panicked = matches!(fault.diagnosis, kernel_primitives::Diagnosis::Panicked { .. });
                    assert!(!panicked, "{case}, {method:?}: {fault}");
                }
                Err(error) => return Err(error),
            }
            let found = around.to_vec()?;
            assert!(found[..10].iter().chain(&found[LEN + 10..]).all(|&item| item == 77.0), "{case}, {method:?}");
        }
    }
    Ok(())
}

#[test]
fn a_matrix_that_was_written_after_it_was_checked_is_no_way_out() -> Result<()> {
    written_after_it_was_checked(
        1.0f32,
        |index| index as u32,
        |stream, a, y| spmv(stream, a, &stream.buffer_from(&vec![1.0f32; a.columns()])?, y),
    )
}

#[test]
fn nor_is_one_with_wide_indices() -> Result<()> {
    written_after_it_was_checked(
        f16::ONE,
        |index| index,
        |stream, a: &Csr<f16, u64>, y| spmv(stream, a, counting(0.0f32, a.columns()), y),
    )
}

#[test]
fn nor_with_several_vectors() -> Result<()> {
    written_after_it_was_checked(
        1.0f32,
        |index| index as u32,
        |stream, a, y| spmm(stream, a, &stream.buffer_from(&vec![1.0f32; a.columns()])?, 1, y),
    )
}
