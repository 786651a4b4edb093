//! Tests operators by closures: their results, and the values that they cannot keep or hold.

use half::f16;
use kernel_primitives::expr::*;
use kernel_primitives::ops::{Memory, Operator, Plan, TensorDesc, Value};
use kernel_primitives::{ExpressionErrorKind, Result};

use super::apply;
use crate::{assert_error, stream};

#[test]
fn closures_are_operators() -> Result<()> {
    let stream = stream()?;
    // This is 1 / (2 − x) for any type of floats. The numbers have the type of x.
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
    // One input is not used, and one is used often.
    let last = Operator::new("last", 3, |x| &x[2] + &x[2] * &x[2]);
    let x = Memory::from_slice(&stream, &[1u32, 2, 3])?;
    assert_eq!(apply::<u32>(&last, 3, &[x.clone(), x.clone(), x])?, [2, 6, 12]);
    Ok(())
}

#[test]
fn the_bits_that_are_not_set() -> Result<()> {
    let stream = stream()?;
    let flipped = Operator::new("flipped", 1, |x| x[0].not());
    let x = Memory::from_slice(&stream, &[0, -1, 5, i32::MIN])?;
    assert_eq!(apply::<i32>(&flipped, 4, &[x])?, [-1, 0, -6, i32::MAX]);
    let x = Memory::from_slice(&stream, &[0u8, 0xaa, 0xff])?;
    assert_eq!(apply::<u8>(&flipped, 3, &[x])?, [0xff, 0x55, 0]);
    let x = Memory::from_slice(&stream, &[true, false])?;
    assert_eq!(apply::<bool>(&flipped, 2, &[x])?, [false, true]);
    let desc = TensorDesc::contiguous(DType::F32, 4)?;
    assert_error(Plan::new(&flipped, &desc, &[desc]), ExpressionErrorKind::BadDtype, &["`not`", "f32"]);
    Ok(())
}

/// A closure can keep a value, and use it if the input has another type, or if there is no input.
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
    // The value is also refused if the input has the same number and type.
    for inputs in [[wide; 2], [narrow, wide]] {
        let plan = Plan::new(&second, &wide, &inputs);
        assert_error(plan, ExpressionErrorKind::BadDtype, &["`second`", "another plan"]);
    }
    // A value that is not an input does not belong to a plan.
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
        // This is the largest whole number of a float below the end, if it is a whole number.
        assert_eq!(plan(last).is_ok(), last.fract() == 0.0, "{last} as {dtype}");
        assert!(plan(f64::NAN).is_err(), "{dtype}");
    }
    let endless = Operator::new("endless", 1, |x| &x[0] * f64::INFINITY + 0.1);
    Plan::new(&endless, &desc, &[desc])?;
    Ok(())
}
