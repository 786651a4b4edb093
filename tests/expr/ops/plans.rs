//! Tests descriptors and plans: strides, refused values, and the devices where plans run.

use half::{bf16, f16};
use kernel_primitives::expr::*;
use kernel_primitives::ops::{Memory, Operator, Plan, TensorDesc};
use kernel_primitives::{Error, ExpressionErrorKind, Result};

use crate::cases::STRIDED;
use crate::{Sample, Wide, assert_error, assert_near, numbers, stream};

/// Returns the number of elements from the first to the last of a layout.
fn span(shape: &[usize], strides: &[isize]) -> usize {
    shape.iter().zip(strides).map(|(&extent, &stride)| (extent - 1) * stride as usize).sum::<usize>() + 1
}

fn strided<T: Sample>() -> Result<()> {
    let stream = stream()?;
    let mul = Operator::named("mul")?;
    for (shape, strides) in STRIDED {
        let descs = strides.map(|strides| {
            if strides.is_empty() {
                TensorDesc::contiguous(T::DTYPE, shape)
            } else {
                TensorDesc::new(T::DTYPE, shape, strides)
            }
        });
        let [a, b, c] = descs;
        let [a, b, c] = [a?, b?, c?];
        let lens = [a, b, c].map(|desc| span(shape, desc.strides()));
        let data: Vec<Vec<T>> = lens.iter().enumerate().map(|(i, &len)| numbers(len, i as u64)).collect();
        let at = |desc: &TensorDesc, mut i: usize| {
            let mut place = 0;
            for (&extent, &stride) in shape.iter().zip(desc.strides()).rev() {
                place += i % extent * stride as usize;
                i /= extent;
            }
            place
        };
        let count = shape.iter().product::<usize>();
        let product = |i: usize| {
            let (x, y) = (data[0][at(&a, i)], data[1][at(&b, i)]);
            T::of(Wide::Float(x.float() * y.float()))
        };
        let plan = Plan::new(&mul, &c, &[a, b])?;
        for _ in 0..2 {
            let (x, y) = (Memory::from_slice(&stream, &data[0])?, Memory::from_slice(&stream, &data[1])?);
            let z = Memory::from_slice(&stream, &data[2])?;
            plan.run(&stream, &z, &[x.at(0), y.at(0)])?;
            let mut expected = data[2].clone();
            (0..count).for_each(|i| expected[at(&c, i)] = product(i));
            assert_near(&z.to_vec()?, &expected, 0, &format!("{plan:?}"));
        }
        for (which, output) in [a, b].into_iter().enumerate() {
            let plan = Plan::new(&mul, &output, &[a, b]);
            if output.strides().contains(&0) {
                assert_error(plan, ExpressionErrorKind::BadStrides, &["repeats", "mul(x0, x1)"]);
                continue;
            }
            let memory = [Memory::from_slice(&stream, &data[0])?, Memory::from_slice(&stream, &data[1])?];
            plan?.run(&stream, &memory[which], &[memory[0].at(0), memory[1].at(0)])?;
            let mut expected = data[which].clone();
            (0..count).for_each(|i| expected[at(&output, i)] = product(i));
            assert_near(&memory[which].to_vec()?, &expected, 0, "in place");
        }
    }
    Ok(())
}

#[test]
fn strided_products() -> Result<()> {
    strided::<f16>()?;
    strided::<bf16>()?;
    strided::<f32>()?;
    strided::<f64>()
}

#[test]
fn plans_that_cannot_be() -> Result<()> {
    let f32s = |shape: &[usize]| TensorDesc::contiguous(DType::F32, shape);
    let mul = Operator::named("mul")?;
    let x = f32s(&[3, 4])?;
    assert_error(Operator::named("multiply"), ExpressionErrorKind::UnknownName, &["multiply"]);
    assert_error(Plan::new(&mul, &x, &[x]), ExpressionErrorKind::BadCount, &["1 inputs", "2"]);
    assert_error(
        Plan::new(&mul, &x, &[x, f32s(&[3])?]),
        ExpressionErrorKind::BadShape,
        &["mul(x0, x1)", "x1: f32[3]", "output: f32[3, 4]", "broadcast"],
    );
    assert_error(Plan::new(&mul, &x, &[x, f32s(&[1, 3, 4])?]), ExpressionErrorKind::BadShape, &["[1, 3, 4]"]);
    let repeated = TensorDesc::new(DType::F32, [3, 4], &[0, 1])?;
    assert_error(Plan::new(&mul, &repeated, &[x, x]), ExpressionErrorKind::BadStrides, &["repeats", "[0, 1]"]);
    assert_error(TensorDesc::new(DType::F32, [3, 4], &[1]), ExpressionErrorKind::BadStrides, &["[1]", "[3, 4]"]);
    assert_error(TensorDesc::contiguous(DType::F32, [1; 10]), ExpressionErrorKind::BadShape, &["at most 9"]);
    assert_error(TensorDesc::contiguous(DType::F32, [usize::MAX, 3]), ExpressionErrorKind::BadShape, &["counted"]);
    Ok(())
}

#[test]
fn runs_that_cannot_be() -> Result<()> {
    let stream = stream()?;
    let mul = Operator::named("mul")?;
    let x = TensorDesc::new(DType::F32, [3, 4], &[-4, 1])?;
    let plan = Plan::new(&mul, &TensorDesc::contiguous(DType::F32, [3, 4])?, &[x, x])?;
    let memory = Memory::from_slice(&stream, &[2.0f32; 24])?;
    let output = Memory::zeros(&stream, DType::F32, 12)?;
    let run = |a, b| plan.run(&stream, &output, &[a, b]);
    assert_error(run(memory.at(7), memory.at(8)), ExpressionErrorKind::OutOfRange, &["x0", "byte 28", "[-4, 1]"]);
    assert_error(run(memory.at(8), memory.at(21)), ExpressionErrorKind::OutOfRange, &["x1", "byte 84"]);
    assert_error(run(memory.at(8), memory.at_byte(33)), ExpressionErrorKind::OutOfRange, &["x1", "byte 33"]);
    assert_error(run(memory.at(8), memory.at(usize::MAX)), ExpressionErrorKind::OutOfRange, &["x1"]);
    let count = plan.run(&stream, &output, &[memory.at(8)]);
    assert_error(count, ExpressionErrorKind::BadCount, &["1 inputs", "2"]);
    let other = Memory::zeros(&stream, DType::F64, 24)?;
    assert_error(run(memory.at(8), other.at(8)), ExpressionErrorKind::BadDtype, &["x1", "f32", "f64"]);
    let overlap = plan.run(&stream, memory.at(4), &[memory.at(8), memory.at(20)]);
    assert_error(overlap, ExpressionErrorKind::Overlap, &["x0", "x0 * x1"]);
    assert_error(memory.to_vec::<f64>(), ExpressionErrorKind::BadDtype, &["f32", "f64"]);
    run(memory.at(8), memory.at(20))?;
    assert_eq!(output.to_vec::<f32>()?, [4.0; 12]);
    plan.check_workspace(0)?;
    if !stream.device().is_gpu() {
        let div = Plan::new(
            &Operator::named("div")?,
            &TensorDesc::contiguous(DType::I32, 3)?,
            &[TensorDesc::contiguous(DType::I32, 3)?; 2],
        )?;
        let zeros = Memory::zeros(&stream, DType::I32, 3)?;
        let error = div.run(&stream, &zeros, &[(&zeros).into(), (&zeros).into()]).unwrap_err();
        assert!(matches!(error, Error::Fault(_)), "{error}");
        let unwritten = Memory::uninit(&stream, DType::F32, 24)?;
        assert!(matches!(run(memory.at(8), unwritten.at(8)), Err(Error::Fault(_))));
    }
    Ok(())
}

#[test]
fn plans_are_shared_captured_and_run_on_tensors() -> Result<()> {
    let stream = stream()?;
    let desc = TensorDesc::contiguous(DType::I64, [2, 3])?;
    let turned = TensorDesc::new(DType::I64, [2, 3], &[-1, 2])?;
    let plan = Plan::new(&Operator::named("sub")?, &desc, &[desc, turned])?;
    let x = Tensor::from_slice(&stream, [2, 3], &[10i64, 20, 30, 40, 50, 60])?;
    let y = Memory::from_slice(&stream, &[0i64, 1, 2, 3, 4, 5])?;
    let expected = [9, 17, 25, 40, 48, 56];
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| -> Result<()> {
                    let stream = x.device().stream()?;
                    let z = Tensor::<i64>::zeros(&stream, [3, 2, 3])?;
                    for row in 0..3 {
                        plan.run(&stream, &z.slice(row)?, &[(&x).into(), y.at(1)])?;
                    }
                    assert_eq!(z.to_vec()?, [expected; 3].concat());
                    Ok(())
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap())
    })?;
    let z = Memory::zeros(&stream, DType::I64, 6)?;
    let graph = stream.capture(|captured| plan.run(captured, &z, &[(&x).into(), y.at(1)]))?;
    graph.launch(&stream)?;
    assert_eq!(z.to_vec::<i64>()?, expected);
    // If there are no elements, they may be anywhere.
    let nothing = TensorDesc::contiguous(DType::I64, [0, 3])?;
    let plan = Plan::new(&Operator::named("copy")?, &nothing, &[nothing])?;
    plan.run(&stream, z.at(6), &[z.at(6)])?;
    Ok(())
}

/// Impossible elements and strides are errors when they are described, before any use.
#[test]
fn descriptors_of_more_than_memory_holds() -> Result<()> {
    let new = |shape: &[usize], strides: &[isize]| TensorDesc::new(DType::F64, shape, strides);
    for (shape, strides) in [
        (&[3usize, 2][..], &[isize::MAX, 1][..]),
        (&[3, 2], &[isize::MIN, 1]),
        (&[2], &[isize::MIN]),
        (&[usize::MAX], &[1]),
        (&[usize::MAX], &[isize::MIN]),
        (&[1 << 40, 1 << 20], &[1 << 20, 1]),
    ] {
        assert_error(
            new(shape, strides),
            ExpressionErrorKind::BadStrides,
            &["larger than a memory", &format!("{shape:?}")],
        );
    }
    assert_error(TensorDesc::contiguous(DType::F64, 1usize << 61), ExpressionErrorKind::BadStrides, &["f64[2305843"]);
    // Strides that are never taken may have any size, and so may the number of repeated elements.
    let stream = stream()?;
    let x = Memory::from_slice(&stream, &[5.0f64])?;
    let y = Memory::zeros(&stream, DType::F64, 3)?;
    let add = Operator::named("add")?;
    let one = new(&[1, 1], &[isize::MIN, isize::MAX])?;
    let plan = Plan::new(&add, &new(&[1, 3], &[isize::MIN, 1])?, &[one, one])?;
    plan.run(&stream, &y, &[x.at(0), x.at(0)])?;
    assert_eq!(y.to_vec::<f64>()?, [10.0; 3]);
    let nothing = new(&[0, usize::MAX], &[isize::MIN, isize::MIN])?;
    Plan::new(&add, &nothing, &[nothing, one])?.run(&stream, &y, &[x.at(1), x.at(0)])?;
    new(&[usize::MAX], &[0])?;
    Ok(())
}
