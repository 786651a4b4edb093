//! Tests operators by name: their results and their types.

use half::{bf16, f16};
use kernel_primitives::expr::*;
use kernel_primitives::ops::{Memory, OperandStart, Operator, Plan, TensorDesc, Value};
use kernel_primitives::{Error, ExpressionErrorKind, Result};

use super::apply;
use crate::{Sample, assert_error, assert_near, stream};

/// Returns pairs of samples, without those that divide by zero.
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
    // These tables also make the expressions and the operators.
    macro_rules! check {
        (Floating $($f:tt)*) => { check!(@of (f16 bf16 f32 f64) $($f)*) };
        ($class:ident $($f:tt)*) => { check!(@of (f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64) $($f)*) };
        (@of ($($t:ident)*) $name:ident $f:tt) => {$(same::<$t, _>(stringify!($name), &check!(@closure $name $f))?;)*};
        (@closure $name:ident (x)) => { |x, _| $name(x) };
        (@closure $name:ident (x, y)) => { |x, y| $name(x, y) };
    }
    macro_rules! functions {
        ($($(#[$doc:meta])* $name:ident($x:ident) $class:ident -> $out:ident = $node:expr;)*) => {
            $(check!($class $name (x));)*
        };
    }
    macro_rules! pair_functions {
        ($($(#[$doc:meta])* $name:ident $op:ident $class:ident -> $out:ident;)*) => {$(check!($class $name (x, y));)*};
    }
    kernel_primitives::__functions!(functions);
    kernel_primitives::__pair_functions!(pair_functions);
    check!(Scalar gt (x, y));
    check!(Scalar ge (x, y));
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

/// A count that does not fit in the type of the shifted value is more than the number of bits.
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
                    plan.run(&stream, &result, &memory.iter().map(OperandStart::from).collect::<Vec<_>>())?;
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
fn errors_name_the_operator_that_was_called() -> Result<()> {
    let u64s = TensorDesc::contiguous(DType::U64, 3)?;
    let i64s = TensorDesc::contiguous(DType::I64, 3)?;
    for inputs in [[u64s, i64s, u64s], [u64s, u64s, i64s]] {
        let plan = Plan::new(&Operator::named("clamp")?, &u64s, &inputs);
        assert_error(plan, ExpressionErrorKind::BadDtype, &["`clamp` takes no u64 together with i64"]);
    }
    Ok(())
}
