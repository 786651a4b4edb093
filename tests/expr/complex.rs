//! Tests complex numbers in expressions against those of the host.

use kernel_primitives::expr::*;
use kernel_primitives::{Complex, ExpressionErrorKind, Result};

use crate::{assert_error, stream};

/// Numbers whose sums and products are exact.
fn numbers(len: usize) -> Vec<Complex<f64>> {
    (0..len).map(|i| Complex::new(i as f64 * 0.5 - 3.0, 2.0 - (i % 5) as f64)).collect()
}

#[test]
fn operators_are_those_of_complex_numbers() -> Result<()> {
    let stream = stream()?;
    let (x, y) = (numbers(12), numbers(4));
    let (a, b) = (ComplexTensor::from_slice(&stream, [3, 4], &x)?, ComplexTensor::from_slice(&stream, 4, &y)?);
    let out = ComplexTensor::<f64>::zeros(&stream, [3, 4])?;
    let value = (&a * &b - &a).conj() + (-&b).times(scalar(2.0f64));
    assign_all([out.re().to(value.re), out.im().to(value.im)])?;
    let expected: Vec<_> = x.iter().zip(y.iter().cycle()).map(|(x, y)| (x * y - x).conj() - y * 2.0).collect();
    assert_eq!(out.to_vec()?, expected);

    let norms = Tensor::<f64>::zeros(&stream, [3, 4])?;
    norms.assign((&a + ComplexExpr::real(scalar(1.0f64))).contract().norm_squared())?;
    let expected: Vec<f64> = x.iter().map(|x| (x + 1.0).norm_sqr()).collect();
    assert_eq!(norms.to_vec()?, expected);
    Ok(())
}

#[test]
fn parts_are_views_of_one_memory() -> Result<()> {
    let stream = stream()?;
    let x = ComplexTensor::from_buffer(&stream, [2, 2], stream.buffer_from(&numbers(4))?)?;
    assert_eq!(format!("{:?}", x.shape()), "[2, 2]");
    assign_all([x.re().to(x.im()), x.im().to(x.re())])?;
    let graph = stream.capture(|captured| x.on(captured).re().add_assign(scalar(1.0f64)))?;
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    let expected: Vec<_> = numbers(4).iter().map(|x| Complex::new(x.im + 2.0, x.re)).collect();
    assert_eq!(x.to_vec()?, expected);
    assert_eq!(x.clone().im().to_vec()?, numbers(4).iter().map(|x| x.re).collect::<Vec<_>>());
    let nothing = ComplexTensor::<f32>::zeros(&stream, [3, 0])?;
    assert!(nothing.to_vec()?.is_empty() && nothing.im().to_vec()?.is_empty());
    let one = ComplexTensor::from_slice(&stream, 1, &[Complex::new(2.0f32, 3.0)])?;
    assert_eq!((one.re().to_vec()?, one.im().item()?), (vec![2.0], 3.0));
    Ok(())
}

#[test]
fn other_numbers_than_a_shape_has_are_errors() -> Result<()> {
    let stream = stream()?;
    let kind = ExpressionErrorKind::BadShape;
    assert_error(ComplexTensor::from_slice(&stream, [3, 2], &numbers(4)), kind, &["[3, 2]", "4"]);
    assert_error(ComplexTensor::from_buffer(&stream, 5, stream.buffer_from(&numbers(4))?), kind, &["[5]", "4"]);
    assert_error(ComplexTensor::<f32>::zeros(&stream, [usize::MAX, 3]), kind, &["more elements than can be counted"]);
    Ok(())
}
