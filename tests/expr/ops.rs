//! Operators with descriptors.

use half::{bf16, f16};
use kernel_primitives::expr::*;
use kernel_primitives::ops::{Memory, Operator, Place, Plan, TensorDesc, Value};
use kernel_primitives::{Buffer, Error, ExpressionErrorKind, Result};

use crate::cases::STRIDED;
use crate::{Sample, Wide, assert_error, assert_near, numbers, stream};

/// Runs an operator on all of `inputs`, each one memory, with an output of type `O`.
fn apply<O: Sample>(operator: &Operator, len: usize, inputs: &[Memory]) -> Result<Vec<O>> {
    let stream = stream()?;
    let desc = |dtype| TensorDesc::contiguous(dtype, len);
    let descs = inputs.iter().map(|input| desc(input.dtype())).collect::<Result<Vec<_>>>()?;
    let plan = Plan::new(operator, &desc(O::DTYPE)?, &descs)?;
    let output = Memory::uninit(&stream, O::DTYPE, len)?;
    plan.run(&stream, &output, &inputs.iter().map(Place::from).collect::<Vec<_>>())?;
    output.to_vec()
}

/// The elements from the first to the last of a layout.
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

/// Pairs of samples, without such as divide by zero.
fn pairs<T: Sample>() -> (Vec<T>, Vec<T>) {
    let all = T::samples();
    let pairs = all.iter().flat_map(|&a| all.iter().map(move |&b| (a, b)));
    pairs.filter(|pair| T::DTYPE.is_float() || T::DTYPE == DType::Bool || pair.1.float() != 0.0).unzip()
}

fn same<T: Sample, O: Sample>(name: &str, expression: &dyn Fn(Expr<T>, Expr<T>) -> Expr<O>) -> Result<()> {
    let stream = stream()?;
    let (a, b) = pairs::<T>();
    let len = a.len();
    let operator = Operator::named(name)?;
    let memory = [Memory::from_slice(&stream, &a)?, Memory::from_slice(&stream, &b)?];
    let got = apply::<O>(&operator, len, &memory[..operator.arity()])?;
    let z = Tensor::uninit(&stream, len)?;
    let (x, y) = (Tensor::from_slice(&stream, len, &a)?, Tensor::from_slice(&stream, len, &b)?);
    z.assign(expression(x.expr(), y.expr()))?;
    assert_near(&got, &z.to_vec()?, 0, &format!("{name} of {}", T::DTYPE));
    Ok(())
}

#[test]
fn named_operators_are_those_of_expressions() -> Result<()> {
    macro_rules! check {
        ($($t:ident)*: unary $unary:tt, binary $binary:tt) => {$(check!(@one $t $unary $binary);)*};
        (@one $t:ident ($($unary:ident)*) ($($binary:ident)*)) => {
            $(same::<$t, _>(stringify!($unary), &|x, _| $unary(x))?;)*
            $(same::<$t, _>(stringify!($binary), &|x, y| $binary(x, y))?;)*
        };
    }
    check!(f16 bf16 f32 f64:
        unary (abs recip square sqrt rsqrt cbrt exp exp2 exp_m1 ln log2 log10 ln_1p sin cos tan sin_pi cos_pi asin acos atan sinh
            cosh tanh asinh acosh atanh erf erfc floor ceil trunc round round_ties_even is_nan sigmoid relu),
        binary (minimum maximum floor_div floor_rem pow atan2 hypot eq ne lt le gt ge));
    check!(i8 i16 i32 i64 u8 u16 u32 u64:
        unary (abs square relu), binary (minimum maximum floor_div floor_rem eq ne lt le gt ge));
    macro_rules! operators {
        ($($t:ident)*) => {$(
            same::<$t, _>("add", &|x, y| x + y)?;
            same::<$t, _>("sub", &|x, y| x - y)?;
            same::<$t, _>("mul", &|x, y| x * y)?;
            same::<$t, _>("div", &|x, y| x / y)?;
            same::<$t, _>("rem", &|x, y| x % y)?;
            same::<$t, _>("neg", &|x, _| -x)?;
            same::<$t, _>("copy", &|x, _| x)?;
            same::<$t, i16>("cast", &|x, _| x.cast())?;
        )*};
    }
    operators!(f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64);
    macro_rules! bits {
        ($($t:ident)*) => {$(
            same::<$t, _>("and", &|x, y| x & y)?;
            same::<$t, _>("or", &|x, y| x | y)?;
            same::<$t, _>("xor", &|x, y| x ^ y)?;
            same::<$t, _>("not", &|x, _| !x)?;
        )*};
    }
    bits!(bool i8 i16 i32 i64 u8 u16 u32 u64);
    macro_rules! shifts {
        ($($t:ident)*) => {$(
            same::<$t, _>("shl", &|x, y| x << y)?;
            same::<$t, _>("shr", &|x, y| x >> y)?;
        )*};
    }
    shifts!(i8 i16 i32 i64 u8 u16 u32 u64);
    Ok(())
}

/// Counts that the type of what is shifted does not hold are more than it has bits.
#[test]
fn shifts_by_counts_of_wider_types() -> Result<()> {
    let stream = stream()?;
    let counts = [0i64, 1, 7, 8, 255, 256, 257, 1 << 32, -1, -256, i64::MIN];
    let by = Memory::from_slice(&stream, &counts)?;
    for (name, expected) in [("shl", [-127i8, 2, -128]), ("shr", [-127, -64, -1])] {
        let x = Memory::from_slice(&stream, &[-127i8; 11])?;
        let rest = if name == "shl" { 0 } else { -1 };
        let expected = [&expected[..], &[rest; 8]].concat();
        assert_eq!(apply::<i8>(&Operator::named(name)?, 11, &[x, by.clone()])?, expected, "{name}");
    }
    Ok(())
}

#[test]
fn operators_of_three_inputs() -> Result<()> {
    let stream = stream()?;
    let which = Memory::from_slice(&stream, &[true, false, true])?;
    let (x, y) = (Memory::from_slice(&stream, &[1i8, 2, 3])?, Memory::from_slice(&stream, &[-0.5f32, 0.5, 2.5])?);
    let select = Operator::named("select")?;
    assert_eq!(apply::<f32>(&select, 3, &[which.clone(), x.clone(), y.clone()])?, [1.0, 0.5, 3.0]);
    let mul_add = Operator::named("mul_add")?;
    assert_eq!(apply::<f64>(&mul_add, 3, &[x.clone(), y.clone(), which])?, [0.5, 1.0, 8.5]);
    let clamp = Operator::named("clamp")?;
    assert_eq!(apply::<f32>(&clamp, 3, &[y.clone(), x.clone(), x])?, [1.0, 2.0, 3.0]);
    Ok(())
}

#[test]
fn every_operator_takes_a_type_or_says_that_it_does_not() -> Result<()> {
    let stream = stream()?;
    for name in Operator::names() {
        let operator = Operator::named(name)?;
        let mut taken = 0;
        for dtype in DType::ALL {
            let desc = TensorDesc::contiguous(dtype, [2, 3])?;
            let mut inputs = vec![desc; operator.arity()];
            if name == "select" {
                inputs[0] = TensorDesc::contiguous(DType::Bool, 3)?;
            }
            let output = match name {
                "is_nan" | "eq" | "ne" | "lt" | "le" | "gt" | "ge" => TensorDesc::contiguous(DType::Bool, [2, 3])?,
                _ => desc,
            };
            match Plan::new(&operator, &output, &inputs) {
                Ok(plan) => {
                    taken += 1;
                    let ones = Plan::new(&Operator::new("one", 0, |_| Value::scalar(true)), &desc, &[])?;
                    let memory: Vec<Memory> =
                        inputs.iter().map(|input| Memory::zeros(&stream, input.dtype(), 6)).collect::<Result<_>>()?;
                    for memory in memory.iter().filter(|memory| memory.dtype() == dtype) {
                        ones.run(&stream, memory, &[])?;
                    }
                    let result = Memory::uninit(&stream, output.dtype(), 6)?;
                    plan.run(&stream, &result, &memory.iter().map(Place::from).collect::<Vec<_>>())?;
                }
                Err(Error::Expression(error)) if error.kind == ExpressionErrorKind::BadDtype => {
                    let text = error.to_string();
                    assert!(text.contains(dtype.name()) && text.contains(name), "{text}");
                }
                Err(error) => return Err(error),
            }
        }
        assert!(taken >= 4, "{name} takes {taken} types");
    }
    Ok(())
}

#[test]
fn results_are_converted_to_the_same_kind_or_a_higher_one() -> Result<()> {
    let add = Operator::named("add")?;
    let plan = |a, b, out| {
        let desc = |dtype| TensorDesc::contiguous(dtype, 4);
        Plan::new(&add, &desc(out)?, &[desc(a)?, desc(b)?])
    };
    for (a, b, out) in [
        (DType::F16, DType::F32, DType::BF16),
        (DType::I32, DType::U8, DType::I8),
        (DType::U8, DType::U16, DType::I64),
        (DType::I64, DType::I8, DType::F16),
        (DType::Bool, DType::U8, DType::F64),
    ] {
        plan(a, b, out)?;
    }
    for (a, b, out) in [
        (DType::F16, DType::F32, DType::I32),
        (DType::I32, DType::I32, DType::U32),
        (DType::U8, DType::U8, DType::Bool),
    ] {
        assert_error(plan(a, b, out), ExpressionErrorKind::BadDtype, &["cast", out.name(), "add(x0, x1)"]);
    }
    assert_error(plan(DType::I8, DType::U64, DType::F64), ExpressionErrorKind::BadDtype, &["i8", "u64", "cast"]);
    assert_error(plan(DType::Bool, DType::Bool, DType::I8), ExpressionErrorKind::BadDtype, &["numbers", "bool"]);
    let stream = stream()?;
    let (x, y) = (Memory::from_slice(&stream, &[200u8, 100])?, Memory::from_slice(&stream, &[100i8, -100])?);
    assert_eq!(apply::<f16>(&add, 2, &[x.clone(), y.clone()])?, [300.0, 0.0].map(f16::from_f32));
    assert_eq!(apply::<i8>(&add, 2, &[x, y])?, [44, 0]);
    Ok(())
}

#[test]
fn closures_are_operators() -> Result<()> {
    let stream = stream()?;
    // 1 / (2 − x) of any type of floats; the numbers have the type of x.
    let f = Operator::new("f", 1, |x| 1 / (2.0 - &x[0]) % 8 + (-&x[0]).exp() * (&x[0] - &x[0]));
    let data = [0.0, 1.0, 1.5, 1.75];
    let expected = [0.5, 1.0, 2.0, 4.0];
    let x = Memory::from_slice(&stream, &data.map(f16::from_f64))?;
    assert_eq!(apply::<f16>(&f, 4, &[x])?, expected.map(f16::from_f64));
    let x = Memory::from_slice(&stream, &data)?;
    assert_eq!(apply::<f64>(&f, 4, &[x])?, expected);
    let desc = TensorDesc::contiguous(DType::I32, 4)?;
    assert_error(Plan::new(&f, &desc, &[desc]), ExpressionErrorKind::BadDtype, &["exp", "i32", "f(x0)"]);
    let half = Operator::new("half", 1, |x| &x[0] * 0.5);
    assert_error(Plan::new(&half, &desc, &[desc]), ExpressionErrorKind::BadDtype, &["0.5", "i32"]);
    let cast = Operator::new("cast", 1, |x| (x[0].cast(DType::F64) * 0.5).floor().cast(DType::I8));
    let x = Memory::from_slice(&stream, &[5, -5, 300])?;
    assert_eq!(apply::<i32>(&cast, 3, &[x])?, [2, -3, 127]);
    // An input that is not used, and one that is used often.
    let last = Operator::new("last", 3, |x| &x[2] + &x[2] * &x[2]);
    let x = Memory::from_slice(&stream, &[1u32, 2, 3])?;
    assert_eq!(apply::<u32>(&last, 3, &[x.clone(), x.clone(), x])?, [2, 6, 12]);
    Ok(())
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
fn operands_of_many_types_in_one_memory() -> Result<()> {
    let stream = stream()?;
    let mut bytes = vec![0u8; 64];
    bytes[..8].copy_from_slice(&[1.5f32, -2.0].map(f32::to_le_bytes).concat());
    bytes[8..12].copy_from_slice(&[3i16, 4].map(i16::to_le_bytes).concat());
    let arena = Memory::from_slice(&stream, &bytes)?;
    let desc = |dtype| TensorDesc::contiguous(dtype, 2);
    let add = Plan::new(&Operator::named("add")?, &desc(DType::F64)?, &[desc(DType::F32)?, desc(DType::I16)?])?;
    add.run(&stream, arena.at(16), &[arena.at(0), arena.at(8)])?;
    bytes[16..32].copy_from_slice(&[4.5f64, 2.0].map(f64::to_le_bytes).concat());
    assert_eq!(arena.to_vec::<u8>()?, bytes);
    let onto = add.run(&stream, arena.at(8), &[arena.at(0), arena.at(8)]);
    assert_error(onto, ExpressionErrorKind::Overlap, &["x1"]);
    assert_error(
        add.run(&stream, arena.at(20), &[arena.at(0), arena.at(8)]),
        ExpressionErrorKind::OutOfRange,
        &["byte 20"],
    );
    let not = Plan::new(&Operator::named("not")?, &desc(DType::Bool)?, &[desc(DType::Bool)?])?;
    assert_error(not.run(&stream, arena.at(0), &[arena.at(8)]), ExpressionErrorKind::BadDtype, &["bool", "u8"]);
    Ok(())
}

/// Memory of the library begins on boundaries of 256 bytes; adopted memory, which the emulator has none of, anywhere.
#[test]
fn adopted_bytes_begin_between_two_elements() -> Result<()> {
    let stream = stream()?;
    if !stream.device().is_gpu() {
        return Ok(());
    }
    let owner = stream.buffer_from(&[1u8; 256])?;
    // SAFETY: inside memory that outlives it, and on this stream.
    let bytes = unsafe { Buffer::<u8>::from_raw_borrowed(&stream, owner.address() + 1, 64)? };
    let memory = Memory::from_buffer(bytes);
    let copy = |dtype| {
        Plan::new(&Operator::named("copy")?, &TensorDesc::contiguous(dtype, 4)?, &[TensorDesc::contiguous(dtype, 4)?])
    };
    let out = Memory::zeros(&stream, DType::F32, 4)?;
    assert_error(
        copy(DType::F32)?.run(&stream, &out, &[memory.at(0)]),
        ExpressionErrorKind::OutOfRange,
        &["x0", "boundary"],
    );
    assert_error(
        copy(DType::F32)?.run(&stream, memory.at(0), &[(&out).into()]),
        ExpressionErrorKind::OutOfRange,
        &["output"],
    );
    assert_error(copy(DType::F32)?.run(&stream, &out, &[memory.at(2)]), ExpressionErrorKind::OutOfRange, &["x0"]);
    let bytes = Memory::zeros(&stream, DType::U8, 4)?;
    copy(DType::U8)?.run(&stream, &bytes, &[memory.at(0)])?;
    assert_eq!(bytes.to_vec::<u8>()?, [1; 4]);
    stream.synchronize()
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
    // Of nothing, anywhere.
    let nothing = TensorDesc::contiguous(DType::I64, [0, 3])?;
    let plan = Plan::new(&Operator::named("copy")?, &nothing, &[nothing])?;
    plan.run(&stream, z.at(6), &[z.at(6)])?;
    Ok(())
}

/// What elements and strides cannot be is said when they are described, whatever is done with them.
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
    // Strides that are never taken, and elements that are repeated, may be any.
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

/// A closure can keep a value, and use it where the input is of another type, or is none.
#[test]
fn values_of_another_operator() -> Result<()> {
    let kept = std::sync::Arc::new(std::sync::Mutex::new(None));
    let keep = kept.clone();
    let first = Operator::new("first", 2, move |x| {
        *keep.lock().unwrap() = Some(x[1].clone());
        x[0].clone()
    });
    let (narrow, wide) = (TensorDesc::contiguous(DType::F32, 4)?, TensorDesc::contiguous(DType::F64, 4)?);
    Plan::new(&first, &wide, &[wide, wide])?;
    let stale = kept.lock().unwrap().clone().unwrap();
    let second = Operator::new("second", 2, move |x| x[1].cast(DType::F64) + &stale);
    for inputs in [[narrow; 2], [wide, narrow]] {
        let plan = Plan::new(&second, &wide, &inputs);
        assert_error(plan, ExpressionErrorKind::BadDtype, &["`second`", "another plan"]);
    }
    // Of the same number and type too.
    for inputs in [[wide; 2], [narrow, wide]] {
        let plan = Plan::new(&second, &wide, &inputs);
        assert_error(plan, ExpressionErrorKind::BadDtype, &["`second`", "another plan"]);
    }
    // What is no input is of no plan.
    let scale = Value::scalar(2.0f64);
    let doubled = Operator::new("doubled", 1, move |x| &x[0] * &scale);
    Plan::new(&doubled, &wide, &[wide])?;
    Plan::new(&doubled, &wide, &[wide])?;
    let stale = kept.lock().unwrap().take().unwrap();
    let third = Operator::new("third", 1, move |_| stale.clone());
    assert_error(Plan::new(&third, &wide, &[wide]), ExpressionErrorKind::BadDtype, &["`third`"]);
    Ok(())
}

#[test]
fn numbers_that_a_type_does_not_hold() -> Result<()> {
    let desc = TensorDesc::contiguous(DType::F16, 4)?;
    let scaled = Operator::new("scaled", 1, |x| &x[0] * 1e6);
    assert_error(Plan::new(&scaled, &desc, &[desc]), ExpressionErrorKind::BadDtype, &["1000000 is no f16"]);
    for (dtype, least, end) in [
        (DType::U8, 0.0f64, 256.0f64),
        (DType::I16, -32768.0, 32768.0),
        (DType::I64, -9223372036854775808.0, 9223372036854775808.0),
        (DType::U64, 0.0, 18446744073709551616.0),
    ] {
        let desc = TensorDesc::contiguous(dtype, 4)?;
        let plan = |number: f64| Plan::new(&Operator::new("sum", 1, move |x| &x[0] + number), &desc, &[desc]);
        let last = f64::from_bits(end.to_bits() - 1);
        for (number, holds) in [(least, true), (end, false), (2.0 * end, false), (f64::INFINITY, false)] {
            assert_eq!(plan(number).is_ok(), holds, "{number} as {dtype}");
        }
        // The largest whole number of a float below the end, if it is one.
        assert_eq!(plan(last).is_ok(), last.fract() == 0.0, "{last} as {dtype}");
        assert!(plan(f64::NAN).is_err(), "{dtype}");
    }
    let endless = Operator::new("endless", 1, |x| &x[0] * f64::INFINITY + 0.1);
    Plan::new(&endless, &desc, &[desc])?;
    Ok(())
}

/// Operands of several types in one memory are apart if their bytes are, and one where they have the same size.
#[test]
fn records_in_one_memory() -> Result<()> {
    let stream = stream()?;
    let bytes: Vec<u8> = (0..6u8).flat_map(|i| [i, 0, 0, 0, 100 + i, 1, 2, 3]).collect();
    let memory = Memory::from_slice(&stream, &bytes)?;
    let words = TensorDesc::new(DType::I32, 6, &[2])?;
    let marks = TensorDesc::new(DType::U8, 6, &[8])?;
    let add = Plan::new(&Operator::named("add")?, &words, &[words, marks])?;
    add.run(&stream, memory.at_byte(0), &[memory.at_byte(0), memory.at_byte(4)])?;
    let expected: Vec<u8> = (0..6u8).flat_map(|i| [100 + 2 * i, 0, 0, 0, 100 + i, 1, 2, 3]).collect();
    assert_eq!(memory.to_vec::<u8>()?, expected);
    // Another type of the same size, in place.
    let floats = TensorDesc::new(DType::F32, 6, &[2])?;
    let cast = Plan::new(&Operator::named("cast")?, &floats, &[words])?;
    cast.run(&stream, memory.at_byte(0), &[memory.at_byte(0)])?;
    let of = |i: u8| f32::from(100 + 2 * i).to_le_bytes();
    let expected: Vec<u8> = (0..6u8).flat_map(|i| [of(i), [100 + i, 1, 2, 3]].concat()).collect();
    assert_eq!(memory.to_vec::<u8>()?, expected);
    let overlap = add.run(&stream, memory.at_byte(0), &[memory.at_byte(0), memory.at_byte(3)]);
    assert_error(overlap, ExpressionErrorKind::Overlap, &["x1"]);
    Ok(())
}
