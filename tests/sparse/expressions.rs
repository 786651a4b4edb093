//! Tests products in expressions of tensors against plain loops.

use std::sync::atomic::{AtomicBool, Ordering};

use kernel_primitives::algorithms::{Csr, Run, Sell, SpmvMethod, Workspace, spmv};
use kernel_primitives::expr::{AxisSlice, Boundary, Tensor, sin, stencil};
use kernel_primitives::{Device, EmulatorOptions, Error, ExpressionErrorKind, Result, Stream};

use crate::products::whole;
use crate::support::{Random, stream, streams};
use crate::{Host, METHODS};

/// Returns the product by plain loops.
fn products(matrix: &Host<f32>, x: &[f32]) -> Vec<f32> {
    (0..matrix.rows()).map(|row| matrix.row(row).map(|(column, value)| value * x[column]).sum()).collect()
}

/// Makes a matrix with rows of several lengths, a vector, and the products. Some rows take several tiles of the merge path.
fn example() -> (Host<f32>, Vec<f32>, Vec<f32>) {
    let mut random = Random::new(71);
    let matrix = Host::of_lengths(20, [3, 0, 1000, 20, 5000, 1], &mut random, whole);
    let x: Vec<f32> = (0..20).map(|_| whole(random.bits())).collect();
    let expected = products(&matrix, &x);
    (matrix, x, expected)
}

/// Returns `f(row's product, row)` for all rows.
fn of(products: &[f32], f: impl Fn(f32, f32) -> f32) -> Vec<f32> {
    products.iter().enumerate().map(|(row, &product)| f(product, row as f32)).collect()
}

/// Returns a stream of an emulator that checks, or of one that does not.
fn emulator(checked: bool) -> Result<Stream> {
    let mut options = EmulatorOptions::default();
    options.checked = checked;
    Device::emulator_with(options).stream()
}

#[test]
fn products_with_factors_and_sums_are_those_of_loops_sanitize() -> Result<()> {
    let (matrix, x, products) = example();
    for stream in streams()? {
        let (mut a, x) = (matrix.on(&stream)?, Tensor::from_slice(&stream, 20, &x)?);
        let f = Tensor::from_slice(&stream, 6, &[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0])?;
        for method in METHODS {
            a.set_method(method)?;
            assert_eq!((&a * &x).tensor()?.to_vec()?, products, "{method:?}");
            assert_eq!((-(&a * &x) * 2.0).tensor()?.to_vec()?, of(&products, |p, _| -2.0 * p), "{method:?}");
            assert_eq!((&f - &a * &x).tensor()?.to_vec()?, of(&products, |p, f| f - p), "{method:?}");
            let both = 2.0 * (&a * &x) - 3.0 * &f;
            assert_eq!(both.tensor()?.to_vec()?, of(&products, |p, f| 2.0 * p - 3.0 * f), "{method:?}");
            let y = Tensor::from_slice(&stream, 6, &f.to_vec()?)?;
            (&y * 0.5 + &a * &x).assign_to(&y)?;
            assert_eq!(y.to_vec()?, of(&products, |p, f| 0.5 * f + p), "{method:?}");
        }
        let slices = Sell::from_csr(&stream, &a, 64)?;
        assert_eq!((&f - &slices * &x).tensor()?.to_vec()?, of(&products, |p, f| f - p), "in slices");
    }
    Ok(())
}

/// There are slices of equally long rows and of other rows, in the matrix's order and sorted.
#[test]
fn products_in_slices_are_those_of_loops() -> Result<()> {
    let mut random = Random::new(72);
    let sorted = (0..140).map(|row| if row % 3 == 0 { 20 } else { row % 5 }).collect();
    for lengths in [vec![3; 70], [vec![0; 32], vec![5; 40]].concat(), sorted] {
        let matrix = Host::of_lengths(20, lengths, &mut random, whole);
        let x: Vec<f32> = (0..20).map(|_| whole(random.bits())).collect();
        let products = products(&matrix, &x);
        let rows: Vec<f32> = (0..matrix.rows()).map(|row| row as f32).collect();
        for stream in streams()? {
            let (x, f) = (Tensor::from_slice(&stream, 20, &x)?, Tensor::from_slice(&stream, rows.len(), &rows)?);
            let a = Sell::from_csr(&stream, &matrix.on(&stream)?, 128)?;
            assert_eq!((&f - &a * &x).tensor()?.to_vec()?, of(&products, |p, f| f - p));
            (&f * 0.5 + &a * &x).assign_to(&f)?;
            assert_eq!(f.to_vec()?, of(&products, |p, f| 0.5 * f + p));
        }
    }
    Ok(())
}

/// The device's counts show that a scale and a sum are not launches of their own. Other tests share the counts of a GPU.
#[test]
fn a_residual_takes_as_many_launches_as_the_product() -> Result<()> {
    let stream = Device::emulator().stream()?;
    let (matrix, x, _) = example();
    let (mut a, x) = (matrix.on(&stream)?, Tensor::from_slice(&stream, 20, &x)?);
    a.set_method(SpmvMethod::Rows { lanes: 4 })?;
    let [f, y] = [Tensor::<f32>::zeros(&stream, 6)?, Tensor::zeros(&stream, 6)?];
    let launches = |run: &dyn Fn() -> Result<()>| -> Result<u64> {
        let before = stream.device().counters().launches;
        run()?;
        Ok(stream.device().counters().launches - before)
    };
    assert_eq!(launches(&|| (&a * &x).assign_to(&y))?, 1);
    assert_eq!(launches(&|| (&f - &a * &x).assign_to(&y))?, 1);
    assert_eq!(launches(&|| (2.0 * (&a * &x) + 3.0 * &y).assign_to(&y))?, 1);
    assert_eq!(launches(&|| (&a * &x - &f * -1.0).assign_to(&y))?, 1);
    // Any other expression is computed before.
    assert_eq!(launches(&|| (&a * &x + sin(&f)).assign_to(&y))?, 2);
    // If blocks share a row, another launch adds up their shares, and scales and adds the result.
    let shared = Host::of_lengths(20, [3, 8193], &mut Random::new(74), whole);
    let (mut a, y) = (shared.on(&stream)?, Tensor::<f32>::zeros(&stream, 2)?);
    for method in [SpmvMethod::MergePath, SpmvMethod::ByLength] {
        a.set_method(method)?;
        assert_eq!(launches(&|| (&a * &x).assign_to(&y))?, 2, "{method:?}");
        assert_eq!(launches(&|| (2.0 * (&a * &x) + 3.0 * &y).assign_to(&y))?, 2, "{method:?}");
    }
    Ok(())
}

#[test]
fn a_product_has_the_bits_of_the_algorithm_except_where_nothing_is_checked() -> Result<()> {
    let mut random = Random::new(73);
    let unit = |bits: u64| bits as f32 / u64::MAX as f32 - 0.5;
    let matrix = Host::of_lengths(500, [3, 0, 1000, 20, 5000, 1], &mut random, unit);
    let x: Vec<f32> = (0..500).map(|_| unit(random.bits())).collect();
    let bits = |found: Vec<f32>| found.into_iter().map(f32::to_bits).collect::<Vec<_>>();
    let gpu = Some(stream()?).filter(|stream| stream.device().is_gpu());
    for stream in [emulator(true)?].into_iter().chain(gpu) {
        let (mut a, x) = (matrix.on(&stream)?, Tensor::from_slice(&stream, 500, &x)?);
        for method in METHODS {
            a.set_method(method)?;
            let mut y = stream.buffer_zeroed::<f32>(6)?;
            spmv(&stream, &a, x.as_slice().expect("it lies in a row"), &mut y)?;
            assert_eq!(bits((&a * &x).tensor()?.to_vec()?), bits(y.to_vec()?), "{method:?}");
        }
    }
    // This emulator adds up each row from the left.
    let stream = emulator(false)?;
    let (a, there) = (matrix.on(&stream)?, Tensor::from_slice(&stream, 500, &x)?);
    assert_eq!((&a * &there).tensor()?.to_vec()?, products(&matrix, &x));
    Ok(())
}

#[test]
fn what_has_the_factor_zero_takes_no_part_however_it_lies() -> Result<()> {
    let (matrix, x, products) = example();
    for stream in streams()? {
        let (a, x) = (matrix.on(&stream)?, Tensor::from_slice(&stream, 20, &x)?);
        let table = Tensor::from_slice(&stream, [6, 2], &[f32::NAN; 12])?;
        let column = table.slice((.., 0))?;
        for f in [column.contiguous()?, column, Tensor::from_slice(&stream, [], &[f32::NAN])?] {
            assert_eq!((&a * &x + 0.0 * &f).tensor()?.to_vec()?, products, "{f:?}");
            assert_eq!((&a * &x - &f * 0.0).tensor()?.to_vec()?, products, "{f:?}");
        }
        let (y, long) = (Tensor::<f32>::zeros(&stream, 6)?, Tensor::<f32>::zeros(&stream, 20)?);
        assert!(matches!((&a * &x + 0.0 * &long).assign_to(&y), Err(Error::Expression(_))));
    }
    Ok(())
}

#[test]
fn any_expression_is_added_and_broadcasts() -> Result<()> {
    let stream = stream()?;
    let (matrix, x, products) = example();
    let (a, x) = (matrix.on(&stream)?, Tensor::from_slice(&stream, 20, &x)?);
    let f = Tensor::from_slice(&stream, 6, &[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0])?;
    let one = Tensor::from_slice(&stream, [], &[10.0f32])?;
    assert_eq!((&a * &x + &f * &f).tensor()?.to_vec()?, of(&products, |p, f| p + f * f));
    assert_eq!((&one - &a * &x).tensor()?.to_vec()?, of(&products, |p, _| 10.0 - p));
    let y = Tensor::from_slice(&stream, 6, &f.to_vec()?)?;
    (&y * &y + &f - &a * &x).assign_to(&y)?;
    assert_eq!(y.to_vec()?, of(&products, |p, f| f * f + f - p));
    // This reads the target's elements in other places.
    y.assign(&f)?;
    (&a * &x + &y.slice(AxisSlice::from(..).by(-1))?).assign_to(&y)?;
    assert_eq!(y.to_vec()?, of(&products, |p, f| p + 5.0 - f));
    Ok(())
}

#[test]
fn a_vector_that_is_negated_very_often_is_added() -> Result<()> {
    let stream = emulator(false)?;
    let (matrix, x, products) = example();
    let (a, x) = (matrix.on(&stream)?, Tensor::from_slice(&stream, 20, &x)?);
    let f = Tensor::from_slice(&stream, 6, &[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0])?;
    let mut value = -f;
    for _ in 0..100_000 {
        value = -value;
    }
    assert_eq!((&a * &x + &value).tensor()?.to_vec()?, of(&products, |p, f| p - f));
    assert_eq!((&a * &x - &value).tensor()?.to_vec()?, of(&products, |p, f| p + f));
    Ok(())
}

/// Vectors are not contiguous, and several are in one memory.
#[test]
fn views_are_multiplied_added_and_assigned_to() -> Result<()> {
    let stream = stream()?;
    let (matrix, x, products) = example();
    let a = matrix.on(&stream)?;
    let pairs: Vec<f32> = x.iter().flat_map(|&item| [item, f32::NAN]).collect();
    let x = Tensor::from_slice(&stream, [20, 2], &pairs)?.slice((.., 0))?;
    // There are three columns: the added vector, other elements, and the results.
    let table = Tensor::from_slice(&stream, [6, 3], &(0..18).map(|at| at as f32).collect::<Vec<_>>())?;
    (&table.slice((.., 0))? - &a * &x).assign_to(&table.slice((.., 2))?)?;
    let found = table.to_vec()?;
    for (row, &product) in products.iter().enumerate() {
        let first = 3.0 * row as f32;
        assert_eq!(found[3 * row..3 * row + 3], [first, first + 1.0, first - product]);
    }
    // There are rows of one memory: the vector, the added vector, and the results.
    let mut all = vec![7.0f32; 60];
    all[..20].copy_from_slice(&x.to_vec()?);
    let all = Tensor::from_slice(&stream, [3, 20], &all)?;
    let (first, f, y) = (all.slice(0)?, all.slice((1, ..6))?, all.slice((2, ..6))?);
    (&f - &a * &first).assign_to(&y)?;
    assert_eq!(y.to_vec()?, of(&products, |p, _| 7.0 - p));
    assert_eq!(all.slice((2, 6..))?.to_vec()?, [7.0; 14]);
    Ok(())
}

#[test]
fn with_a_workspace_a_sum_is_captured_and_launched_again() -> Result<()> {
    let stream = stream()?;
    let (matrix, x, products) = example();
    let (mut a, x) = (matrix.on(&stream)?, Tensor::from_slice(&stream, 20, &x)?);
    a.set_method(SpmvMethod::MergePath)?;
    let [f, y] = [Tensor::zeros(&stream, 6)?, Tensor::<f32>::zeros(&stream, 6)?];
    let mut workspace = Workspace::new();
    (&f - &a * &x).assign_on(Run::on(&stream).with(&mut workspace), &y)?;
    let graph = stream
        .capture(|stream| (&f.on(stream) - &a * &x.on(stream)).assign_on(Run::on(stream).with(&mut workspace), &y))?;
    for level in [3.0f32, 8.0] {
        f.fill(level)?;
        graph.launch(&stream)?;
        assert_eq!(y.to_vec()?, of(&products, |p, _| level - p));
    }
    Ok(())
}

/// The graph keeps the copies of vectors, the results for a target that is not contiguous, and the merge path's memory.
#[test]
fn products_of_views_are_captured_by_all_methods() -> Result<()> {
    let (matrix, x, products) = example();
    for stream in streams()? {
        let mut a = matrix.on(&stream)?;
        let pairs: Vec<f32> = x.iter().flat_map(|&item| [item, f32::NAN]).collect();
        let column = Tensor::from_slice(&stream, [20, 2], &pairs)?.slice((.., 0))?;
        let table = Tensor::<f32>::zeros(&stream, [6, 2])?;
        // The vector and the result are in one memory.
        let mut both = vec![0.0f32; 40];
        both[..20].copy_from_slice(&x);
        let both = Tensor::from_slice(&stream, [2, 20], &both)?;
        let (of_column, of_both) = (table.slice((.., 1))?, both.slice((1, ..6))?);
        for method in METHODS {
            a.set_method(method)?;
            let graph = stream.capture(|stream| {
                (&a * &column.on(stream)).assign_on(stream, &of_column)?;
                (&a * &both.slice(0)?.on(stream) + sin(&of_both)).assign_on(stream, &of_both)
            })?;
            for _ in 0..2 {
                table.fill(7.0)?;
                of_both.fill(0.0)?;
                graph.launch(&stream)?;
                assert_eq!(of_column.to_vec()?, products, "{method:?}");
                assert_eq!(table.slice((.., 0))?.to_vec()?, [7.0; 6], "{method:?}");
                assert_eq!(of_both.to_vec()?, products, "{method:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_sum_that_fails_leaves_its_target_as_it_was() -> Result<()> {
    let stream = emulator(true)?;
    let (matrix, x, _) = example();
    let (mut a, x) = (matrix.on(&stream)?, Tensor::from_slice(&stream, 20, &x)?);
    a.set_method(SpmvMethod::MergePath)?;
    let [f, y] = [Tensor::<f32>::zeros(&stream, 6)?, Tensor::<f32>::zeros(&stream, 6)?];
    y.fill(7.0)?;
    // The workspace has no memory, and a capture allocates no memory for it.
    let graph = stream.capture(|stream| {
        let mut workspace = Workspace::new();
        let made = (&a * &x.on(stream) + sin(&f)).assign_on(Run::on(stream).with(&mut workspace), &y);
        assert!(matches!(made, Err(Error::Capture { .. })), "{made:?}");
        Ok(())
    })?;
    graph.launch(&stream)?;
    assert_eq!(y.to_vec()?, [7.0; 6]);
    // Nothing has written this vector.
    assert!(matches!((&a * &Tensor::<f32>::uninit(&stream, 20)? + sin(&f)).assign_to(&y), Err(Error::Fault(_))));
    assert_eq!(y.to_vec()?, [7.0; 6]);
    Ok(())
}

#[test]
fn a_fault_of_a_copied_vector_names_the_callers_line() -> Result<()> {
    let stream = Device::emulator().stream()?;
    let (matrix, ..) = example();
    let (a, y) = (matrix.on(&stream)?, Tensor::<f32>::zeros(&stream, 6)?);
    let x = Tensor::<f32>::uninit(&stream, [20, 2])?.slice((.., 0))?;
    match (&a * &x).assign_to(&y) {
        Err(Error::Fault(fault)) => assert!(fault.file.ends_with("expressions.rs"), "{fault}"),
        other => panic!("{other:?}"),
    }
    Ok(())
}

#[test]
fn items_that_no_entry_reads_need_not_be_there() -> Result<()> {
    for stream in streams()? {
        let a = Csr::new(&stream, (1, 3), &[0u32, 2], &[0, 1], &[2.0f32, 3.0])?;
        let x = Tensor::<f32>::uninit(&stream, 3)?;
        x.slice(..2)?.fill(1.0)?;
        assert_eq!((&a * &x).tensor()?.to_vec()?, [5.0]);
    }
    Ok(())
}

/// The assignments take turns on two streams. So a copy on the stream of the last one has no order with the next one by itself.
#[test]
fn a_copy_to_the_host_has_the_results_of_one_assignment() -> Result<()> {
    let stream = stream()?;
    let (len, turns) = if stream.device().is_gpu() { (1 << 20, 3000) } else { (1 << 10, 20) };
    let offsets: Vec<u32> = (0..=len as u32).collect();
    let mut a = Csr::new(&stream, (len, len), &offsets, &offsets[..len], &vec![1.0f32; len])?;
    a.set_method(SpmvMethod::MergePath)?;
    let all = |item: f32| Tensor::from_slice(&stream, len, &vec![item; len]);
    let (xs, y) = ([all(1.0)?, all(2.0)?], Tensor::<f32>::zeros(&stream, len)?);
    let on = [stream.clone(), stream.device().stream()?];
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| -> Result<()> {
            while !done.load(Ordering::Relaxed) {
                let found = y.to_vec()?;
                assert!(found.iter().all(|&item| item == found[0]), "a mix of two assignments");
            }
            Ok(())
        });
        let written = (0..turns).try_for_each(|turn| (&a * &xs[turn % 2]).assign_on(&on[turn / 2 % 2], &y));
        done.store(true, Ordering::Relaxed);
        reader.join().expect("the reader").and(written)
    })
}

#[test]
fn shapes_that_do_not_fit_and_overlaps_are_errors() -> Result<()> {
    let stream = stream()?;
    let (matrix, x, _) = example();
    let (a, x) = (matrix.on(&stream)?, Tensor::from_slice(&stream, 20, &x)?);
    let kind = |made: Result<()>| match made {
        Err(Error::Expression(error)) => error.kind,
        other => panic!("{other:?}"),
    };
    let [y, long] = [Tensor::<f32>::zeros(&stream, 6)?, Tensor::zeros(&stream, 20)?];
    assert_eq!(kind((&a * &y).assign_to(&y)), ExpressionErrorKind::BadShape);
    assert_eq!(kind((&a * &x).assign_to(&long)), ExpressionErrorKind::BadShape);
    assert_eq!(kind((&a * &x.reshape([4, 5])?).assign_to(&y)), ExpressionErrorKind::BadShape);
    assert_eq!(kind((&a * &x + &long).assign_to(&y)), ExpressionErrorKind::BadShape);
    assert_eq!(kind((&a * &x).assign_to(&x.slice(..6)?)), ExpressionErrorKind::Overlap);
    // In place of a neighbour that is always outside is a constant with the shape of what it is a neighbour in.
    let outside = |of: &Tensor<f32>, value| stencil(of, Boundary::Constant(value), |n| n.at(50));
    assert_eq!(kind((&a * &x + outside(&long, 2.0) * &y).assign_to(&y)), ExpressionErrorKind::BadShape);
    // Nothing was written.
    assert_eq!(y.to_vec()?, [0.0; 6]);
    let nan = Tensor::from_slice(&stream, 6, &[f32::NAN; 6])?;
    assert!((&a * &x + outside(&nan, 0.0) * &nan).tensor()?.to_vec()?.iter().all(|y| y.is_nan()));
    let message = (&a * &x).assign_to(&long).unwrap_err().to_string();
    assert!(message.contains("the target of a matrix of 6 × 20 has the shape [6], not [20]"), "{message}");
    Ok(())
}

#[test]
fn a_matrix_without_rows_or_columns_has_its_product() -> Result<()> {
    let stream = stream()?;
    let mut random = Random::new(72);
    for (columns, rows) in [(0, 4), (5, 0)] {
        let a = Host::of_lengths(columns, vec![0; rows], &mut random, whole).on(&stream)?;
        let (x, f) = (Tensor::<f32>::zeros(&stream, columns)?, Tensor::<f32>::zeros(&stream, rows)?);
        f.fill(2.0)?;
        assert_eq!((&f - &a * &x).tensor()?.to_vec()?, vec![2.0; rows]);
    }
    Ok(())
}

/// On an unchecked emulator, the CPU's cores compute a product. If a graph has damaged the matrix, there is still no access outside.
#[test]
fn a_damaged_matrix_is_no_way_out_of_a_product_on_the_cpu() -> Result<()> {
    const LEN: usize = 2000;
    let good: Vec<u32> = (0..=LEN as u32).collect();
    // Every second row ends at the bad offset, and the next row begins there.
    let ends = |bad: u32| -> Vec<u32> { (0..=LEN as u32).map(|at| if at % 2 == 1 { bad } else { at }).collect() };
    let backwards: Vec<u32> = good.iter().rev().copied().collect();
    let bad_offsets = [ends(u32::MAX), ends(LEN as u32 + 1), ends(0), backwards].map(|bad| (bad, vec![0u32; LEN]));
    let bad_columns = [u32::MAX, LEN as u32].map(|bad| (good.clone(), vec![bad; LEN]));
    for (offsets_after, columns_after) in bad_offsets.into_iter().chain(bad_columns) {
        for stream in streams()? {
            let (mut offsets, mut columns) = (stream.buffer_from(&good)?, stream.buffer_from(&[0u32; LEN])?);
            let (bad_offsets, bad_columns) = (stream.buffer_from(&offsets_after)?, stream.buffer_from(&columns_after)?);
            let graph = stream.capture(|stream| {
                offsets.as_mut_slice().copy_from_device(stream, bad_offsets.as_slice())?;
                columns.as_mut_slice().copy_from_device(stream, bad_columns.as_slice())
            })?;
            let a = Csr::from_buffers(&stream, (LEN, LEN), offsets, columns, stream.buffer_from(&[1.0f32; LEN])?)?;
            // An item from around the vector would show.
            let around = Tensor::from_slice(&stream, LEN + 20, &[f32::NAN; LEN + 20])?;
            let x = around.slice(10..LEN as isize + 10)?;
            x.fill(1.0)?;
            assert_eq!((&a * &x).tensor()?.to_vec()?, [1.0; LEN]);
            graph.launch(&stream)?;
            match (&a * &x).tensor().and_then(|y| y.to_vec()) {
                Ok(found) => assert!(found.iter().all(|item| item.is_finite()), "an item from outside"),
                Err(Error::Fault(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}
