//! Shapes and strides from the tests of other projects.

use half::{bf16, f16};
use kernel_primitives::expr::*;
use kernel_primitives::{Error, ExpressionErrorKind, Result};
use ndarray::{ArrayD, ArrayViewD, IxDyn, ShapeBuilder, Zip};

use crate::{Sample, Wide, assert_near, numbers, stream};

/// Each row is `shape: a; b; c`. Strides are in elements. There are none if the elements are contiguous.
pub(crate) const STRIDED: [(&[usize], [&[isize]; 3]); 10] = [
    (&[13, 4], [&[], &[], &[]]),
    (&[13, 4], [&[10, 1], &[10, 1], &[10, 1]]),
    (&[13, 4], [&[0, 1], &[], &[]]),
    (&[13, 4, 4], [&[], &[], &[]]),
    (&[13, 4, 4], [&[20, 4, 1], &[20, 4, 1], &[20, 4, 1]]),
    (&[13, 4, 4], [&[4, 0, 1], &[0, 4, 1], &[]]),
    (&[16, 5632], [&[], &[], &[]]),
    (&[16, 5632], [&[13312, 1], &[13312, 1], &[13312, 1]]),
    (&[4, 4, 5632], [&[], &[], &[]]),
    (&[4, 4, 5632], [&[45056, 5632, 1], &[45056, 5632, 1], &[45056, 5632, 1]]),
];

/// An operand: its memory as a tensor, its memory on the host, and its strides.
struct Operand<T> {
    tensor: Tensor<T>,
    memory: Vec<T>,
    shape: Vec<usize>,
    strides: Vec<isize>,
}

impl<T: Sample> Operand<T> {
    fn new(stream: &kernel_primitives::Stream, shape: &[usize], strides: &[isize], seed: u64) -> Result<Self> {
        let strides = if strides.is_empty() {
            (0..shape.len()).map(|axis| shape[axis + 1..].iter().product::<usize>() as isize).collect()
        } else {
            strides.to_vec()
        };
        let len =
            shape.iter().zip(&strides).map(|(&extent, &stride)| (extent - 1) * stride as usize).sum::<usize>() + 1;
        let memory = numbers(len, seed);
        let tensor = Tensor::from_slice(stream, len, &memory)?.as_strided(shape, &strides)?;
        Ok(Self { tensor, memory, shape: shape.to_vec(), strides })
    }

    fn view(&self) -> ArrayViewD<'_, T> {
        let strides: Vec<usize> = self.strides.iter().map(|&stride| stride as usize).collect();
        ArrayViewD::from_shape(IxDyn(&self.shape).strides(IxDyn(&strides)), &self.memory).unwrap()
    }
}

fn product<T: Sample>(a: T, b: T) -> T {
    T::of(Wide::Float(a.float() * b.float()))
}

fn strided<T: Sample + Floating + Promote<T, Output = T>>() -> Result<()> {
    let stream = stream()?;
    for (shape, [a, b, c]) in STRIDED {
        let operands = || -> Result<_> {
            Ok((
                Operand::<T>::new(&stream, shape, a, 1)?,
                Operand::<T>::new(&stream, shape, b, 2)?,
                Operand::<T>::new(&stream, shape, c, 3)?,
            ))
        };
        let what = format!("{} {shape:?} {a:?} {b:?} {c:?}", T::DTYPE);
        let (x, y, z) = operands()?;
        let expected: Vec<T> =
            Zip::from(x.view()).and(y.view()).map_collect(|&a, &b| product(a, b)).into_iter().collect();
        z.tensor.assign(&x.tensor * &y.tensor)?;
        assert_near(&z.tensor.to_vec()?, &expected, 0, &what);
        for (output, other) in [(&x, &y), (&y, &x)] {
            let result = output.tensor.assign(&other.tensor * &output.tensor);
            if output.strides.contains(&0) {
                assert!(
                    matches!(result, Err(Error::Expression(e)) if e.kind == ExpressionErrorKind::BadStrides),
                    "{what}"
                );
            } else {
                result?;
                assert_near(&output.tensor.to_vec()?, &expected, 0, &format!("{what} in place"));
                // The memory between the elements is unchanged.
                if output.strides.last() == Some(&1) && output.memory.len() > expected.len() {
                    let all = output.tensor.as_strided(output.memory.len(), &[1])?.to_vec()?;
                    let gap = shape[shape.len() - 1] as isize;
                    let after = (gap < output.strides[shape.len() - 2]).then_some(gap as usize);
                    assert!(after.is_none_or(|at| all[at] == output.memory[at]), "{what}");
                }
                output.tensor.assign(&Tensor::from_slice(
                    &stream,
                    shape,
                    &output.view().iter().copied().collect::<Vec<_>>(),
                )?)?;
            }
        }
    }
    Ok(())
}

/// The pairs of shapes that broadcast.
const BROADCAST: [(&[usize], &[usize]); 11] = [
    (&[13, 17], &[13, 17]),
    (&[], &[]),
    (&[], &[13, 17]),
    (&[13, 17], &[]),
    (&[10, 3, 4], &[1]),
    (&[100], &[100]),
    (&[13, 17, 1], &[17, 17]),
    (&[2, 3, 100], &[100]),
    (&[10, 2, 11], &[10, 1, 11]),
    (&[10, 4, 2, 3], &[10, 4, 1, 3]),
    (&[2, 3, 100], &[1, 1, 100]),
];

fn broadcasts<T: Sample + Floating + Promote<T, Output = T>>() -> Result<()> {
    let stream = stream()?;
    let last: (&[usize], &[usize]) = (&[30, 3, 1, 5], &[30, 1, 4, 1]);
    for (a, b) in BROADCAST.into_iter().chain([last]) {
        let make =
            |shape: &[usize], seed| ArrayD::from_shape_vec(shape, numbers::<T>(shape.iter().product(), seed)).unwrap();
        let (x, y) = (make(a, 1), make(b, 2));
        let rank = a.len().max(b.len());
        let at = |shape: &[usize], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis]);
        let shape: Vec<usize> = (0..rank).map(|axis| at(a, axis).max(at(b, axis))).collect();
        let (wide_x, wide_y) = (x.broadcast(&shape[..]).unwrap(), y.broadcast(&shape[..]).unwrap());
        let expected: Vec<T> = Zip::from(wide_x).and(wide_y).map_collect(|&a, &b| product(a, b)).into_iter().collect();
        let x = Tensor::from_slice(&stream, a, x.as_slice().unwrap())?;
        let y = Tensor::from_slice(&stream, b, y.as_slice().unwrap())?;
        let z = Tensor::uninit(&stream, &shape[..])?;
        z.assign(&x * &y)?;
        assert_near(&z.to_vec()?, &expected, 0, &format!("{} {a:?} {b:?}", T::DTYPE));
        if shape == a {
            x.mul_assign(&y)?;
            assert_near(&x.to_vec()?, &expected, 0, &format!("{} {a:?} {b:?} in place", T::DTYPE));
        }
    }
    Ok(())
}

macro_rules! for_floats {
    ($($f:ident: $($name:ident $t:ident),*;)*) => { $($(
        #[test]
        fn $name() -> Result<()> {
            $f::<$t>()
        }
    )*)* };
}
for_floats! {
    strided: strided_f16 f16, strided_bf16 bf16, strided_f32 f32, strided_f64 f64;
    broadcasts: broadcasts_f16 f16, broadcasts_bf16 bf16, broadcasts_f32 f32, broadcasts_f64 f64;
    vexcl: vexcl_f16 f16, vexcl_bf16 bf16, vexcl_f32 f32, vexcl_f64 f64;
}

#[test]
fn a_target_is_not_broadcast() -> Result<()> {
    let stream = stream()?;
    for (target, value) in [(&[3, 4][..], [2, 3, 4]), (&[2, 1, 4], [2, 3, 4]), (&[5, 2, 1, 4], [2, 3, 4])] {
        let target = Tensor::<f32>::zeros(&stream, target)?;
        let value = Tensor::<f32>::zeros(&stream, value)?;
        let error = target.mul_assign(&value).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Expression(e) if e.kind == ExpressionErrorKind::BadShape), "{text}");
        assert!(text.contains(&value.shape().to_string()) && text.contains(&target.shape().to_string()), "{text}");
    }
    Ok(())
}

fn vexcl<T: Sample + Floating + Promote<T, Output = T>>() -> Result<()> {
    let stream = stream()?;
    let n = 1024;
    let t = |x: f64| T::of(Wide::Float(x));
    let (y_data, z_data) = (numbers::<T>(n, 1), numbers::<T>(n, 2));
    let (y, z) = (Tensor::from_slice(&stream, n, &y_data)?, Tensor::from_slice(&stream, n, &z_data)?);
    let x = Tensor::<T>::uninit(&stream, n)?;
    // The unit is the largest error of a result of 1 that is rounded once. The largest error is that of `5 sin(y) + z`: 5 times that of the
    // sine, and those of a product and a sum of up to 9. Sines of halves are computed in `f32`. Those of other types have 2 more units.
    let unit = 0.5 / t(1.0).distance(t(2.0)) as f64;
    let tolerance = if T::DTYPE.size() == 2 { 8.0 * unit } else { 20.0 * unit };
    let check = |expected: &dyn Fn(f64, f64, usize) -> f64, what: &str| -> Result<()> {
        for (i, x) in x.to_vec()?.into_iter().enumerate() {
            let expected = expected(y_data[i].float(), z_data[i].float(), i);
            assert!(
                (x.float() - expected).abs() <= tolerance * expected.abs().max(1.0),
                "{what} {i}: {x:?} {expected}"
            );
        }
        Ok(())
    };
    x.assign(sin(&y) * t(5.0) + &z)?;
    check(&|y, z, _| 5.0 * y.sin() + z, "5 sin(y) + z")?;
    x.assign(square(sin(&y)) + square(cos(&y)))?;
    check(&|_, _, _| 1.0, "sin² + cos²")?;
    let f = |x: Expr<T>| sin(x) * t(2.0);
    let g = |x: Expr<T>| exp(x * t(0.25));
    x.assign(f(f(y.clone() * t(1.0))))?;
    check(&|y, _, _| 2.0 * (2.0 * y.sin()).sin(), "f(f(y))")?;
    x.assign(g(f(y.clone() * t(1.0))))?;
    check(&|y, _, _| (0.5 * y.sin()).exp(), "g(f(y))")?;
    x.assign(sin(element_index::<T>() % t(64.0) * t(0.5)))?;
    check(&|_, _, i| (0.5 * (t(i as f64).float() % 64.0)).sin(), "sin(index / 2)")?;
    let s = square(&y) + t(25.0);
    x.assign(&s * (&y + &s))?;
    check(&|y, _, _| (y * y + 25.0) * (y + y * y + 25.0), "s (y + s)")?;
    let long = Tensor::<T>::zeros(&stream, n + 1)?;
    assert!(matches!(x.assign(&y + &long), Err(Error::Expression(e)) if e.kind == ExpressionErrorKind::BadShape));
    Ok(())
}
