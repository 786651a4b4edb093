//! Tests assignments in captured graphs.

use kernel_primitives::expr::*;
use kernel_primitives::{Error, Result};

use crate::stream;

#[test]
fn assignments_are_captured_and_run_again() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::from_slice(&stream, 1000, &[1.0f32; 1000])?;
    let y = Tensor::from_slice(&stream, 1000, &[0.0f32; 1000])?;
    let graph = stream.capture(|captured| {
        let (x, y) = (x.on(captured), y.on(captured));
        y.assign(&x * 3.0 + &y)?;
        x.add_assign(scalar(1.0f32))
    })?;
    assert_eq!(graph.launches(), 2);
    assert_eq!(y.to_vec()?, [0.0; 1000]);
    for _ in 0..3 {
        graph.launch(&stream)?;
    }
    assert_eq!(x.to_vec()?, [4.0; 1000]);
    assert_eq!(y.to_vec()?, [18.0; 1000]);
    Ok(())
}

#[test]
fn a_graph_keeps_what_it_uses() -> Result<()> {
    let stream = stream()?;
    let y = Tensor::from_slice(&stream, [2, 2], &[0i32; 4])?;
    let graph = {
        let x = Tensor::from_slice(&stream, 2, &[1, 2])?;
        stream.capture(|captured| y.on(captured).t().add_assign(&x))?
    };
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    assert_eq!(y.to_vec()?, [2, 2, 4, 4]);
    Ok(())
}

#[test]
fn streams_wait_for_each_other() -> Result<()> {
    let first = stream()?;
    let second = first.device().stream()?;
    let x = Tensor::from_slice(&first, 100_003, &vec![1u32; 100_003])?;
    let y = x.on(&second);
    for _ in 0..20 {
        x.add_assign(scalar(1u32))?;
        y.mul_assign(scalar(2u32))?;
    }
    let expected = (0..20).fold(1u32, |x, _| x.wrapping_add(1).wrapping_mul(2));
    assert!(x.to_vec()?.into_iter().all(|x| x == expected));
    Ok(())
}

/// There are so many elements that blocks share each result.
#[test]
fn reductions_are_captured_and_run_again() -> Result<()> {
    let stream = stream()?;
    let (rows, columns) = (3, 400_000);
    let x = Tensor::<u64>::zeros(&stream, [rows, columns])?;
    let sums = Tensor::<u64>::zeros(&stream, rows)?;
    let total = Tensor::<u64>::zeros(&stream, [1usize; 0])?;
    let graph = stream.capture(|captured| {
        let x = x.on(captured);
        x.add_assign(axis_index::<u64>(0) + 1)?;
        x.sum().axes(&[1]).assign_to(&sums.on(captured))?;
        (&x * 2).sum().assign_to(&total.on(captured))
    })?;
    for round in 1..4 {
        graph.launch(&stream)?;
        let of_row = |row: u64| round * row * columns as u64;
        assert_eq!(sums.to_vec()?, [of_row(1), of_row(2), of_row(3)]);
        assert_eq!(total.item()?, 2 * of_row(6));
    }
    Ok(())
}

/// A fault ends only some of the blocks that share a result.
#[test]
fn a_captured_reduction_is_right_after_a_fault() -> Result<()> {
    let stream = stream()?;
    let columns = 400_000;
    let table = Tensor::from_slice(&stream, 4, &[1u64, 10, 100, 1000])?;
    let index = Tensor::<u32>::zeros(&stream, columns)?;
    let total = Tensor::<u64>::zeros(&stream, [1usize; 0])?;
    let graph = stream.capture(|captured| gather(&table, index.on(captured)).sum().assign_to(&total.on(captured)))?;
    graph.launch(&stream)?;
    assert_eq!(total.item()?, columns as u64);
    for first in [0, columns / 3, columns - 1] {
        index.assign(select(eq(element_index::<u64>(), scalar(first as u64)), scalar(4u32), scalar(1u32)))?;
        let fault = graph.launch(&stream).and_then(|()| stream.synchronize());
        assert!(matches!(fault, Err(Error::Fault(_))), "{fault:?}");
        for value in [1u32, 2, 3] {
            index.assign(scalar(value))?;
            graph.launch(&stream)?;
            assert_eq!(total.item()?, columns as u64 * 10u64.pow(value), "after a fault at {first}");
        }
    }
    Ok(())
}

/// The numbers of reduced elements, of rows and of columns do not fit in 32 bits. The memory needs a GPU.
#[test]
fn reductions_beyond_32_bits() -> Result<()> {
    let stream = stream()?;
    let n = (1usize << 33) + 100;
    let x = match Tensor::<u8>::uninit(&stream, if stream.device().is_gpu() { n } else { 0 }) {
        Err(Error::Allocation { .. }) => return Ok(()),
        x => x?,
    };
    if x.is_empty() {
        return Ok(());
    }
    x.assign((element_index::<u64>() % 251).cast::<u8>())?;
    let (cycles, rest) = (n as u64 / 251, n as u64 % 251);
    assert_eq!(x.cast::<u64>().sum().item()?, cycles * 125 * 251 + rest * (rest - 1) / 2);
    let at = |i: usize| (i % 251) as u8;
    let half = n / 2;
    let rows = x.reshape([half, 2])?.max().axes(&[1]).tensor()?;
    let columns = x.reshape([2, half])?.max().axes(&[0]).tensor()?;
    for start in [0, (1 << 31) - 20, (1 << 32) - 20, half - 40] {
        let part = start as isize..start as isize + 40;
        let expected = |f: &dyn Fn(usize) -> u8| (start..start + 40).map(f).collect::<Vec<u8>>();
        assert_eq!(rows.slice(part.clone())?.to_vec()?, expected(&|i| at(2 * i).max(at(2 * i + 1))));
        assert_eq!(columns.slice(part)?.to_vec()?, expected(&|i| at(i).max(at(i + half))));
    }
    Ok(())
}

/// The numbers of vectors and of elements do not fit in 31 bits. The memory needs a GPU.
#[test]
fn assignments_beyond_31_bits() -> Result<()> {
    let stream = stream()?;
    for n in [(1usize << 31) + 16, (1 << 31) + 4] {
        let uninit = || Tensor::<u8>::uninit(&stream, if stream.device().is_gpu() { n } else { 0 });
        let (x, y) = match (uninit(), uninit()) {
            (Err(Error::Allocation { .. }), _) | (_, Err(Error::Allocation { .. })) => return Ok(()),
            (x, y) => (x?, y?),
        };
        if x.is_empty() {
            return Ok(());
        }
        x.assign((element_index::<u64>() % 251).cast::<u8>())?;
        y.assign(&x.slice(AxisSlice::from(..).by(-1))?)?;
        for start in [0, n / 2, (1 << 31) - 40, n - 40] {
            let expected: Vec<u8> = (start..start + 40).map(|i| ((n - 1 - i) % 251) as u8).collect();
            let part = start as isize..start as isize + 40;
            assert_eq!(y.slice(part)?.to_vec()?, expected, "{n} elements, from {start} on");
        }
    }
    Ok(())
}

/// Kernels of few values have larger blocks for very long vectors.
#[test]
fn very_long_vectors() -> Result<()> {
    let stream = stream()?;
    let n = (1 << 24) + 77;
    let x = Tensor::<u32>::uninit(&stream, n)?;
    x.assign(element_index::<u32>())?;
    let y = Tensor::<u32>::zeros(&stream, n)?;
    y.assign(&x * 3 + 1)?;
    for (i, y) in y.to_vec()?.into_iter().enumerate() {
        assert_eq!(y, i as u32 * 3 + 1);
    }
    Ok(())
}
