//! Tests weighted sums of many neighbours, which are a loop, against plain loops.

use kernel_primitives::expr::*;
use kernel_primitives::{ExpressionErrorKind, Result};

use crate::stencil::{at, boundaries};
use crate::{assert_error, numbers, stream};

/// Returns the sums of a row, in the order of the weights.
fn sums(row: &[f64], weights: &[f64], origin: isize, boundary: Boundary<f64>) -> Vec<f64> {
    let value = |i: usize, k: usize| at(row, i as isize + k as isize - origin, boundary);
    let sum = |i| (1..weights.len()).fold(value(i, 0) * weights[0], |sum, k| sum + value(i, k) * weights[k]);
    (0..row.len()).map(sum).collect()
}

/// Works as [`sums`], with multiply-adds.
fn contracted(row: &[f64], weights: &[f64], origin: isize, boundary: Boundary<f64>) -> Vec<f64> {
    let value = |i: usize, k: usize| at(row, i as isize + k as isize - origin, boundary);
    let sum = |i| (1..weights.len()).fold(value(i, 0) * weights[0], |sum: f64, k| value(i, k).mul_add(weights[k], sum));
    (0..row.len()).map(sum).collect()
}

/// The lengths are near those where the loop begins, and where vectors and rows end. The origins are inside and outside the weights.
#[test]
fn many_weights() -> Result<()> {
    let stream = stream()?;
    for (len, count, origin) in [
        (66, 65, 0),
        (130, 65, 64),
        (130, 66, -64),
        (200, 67, 33),
        (300, 129, 200),
        (513, 256, 128),
        (700, 700, 699),
        (700, 350, 175),
    ] {
        let (data, weights) = (numbers::<f64>(len, 5), numbers::<f64>(count, 6));
        let x = Tensor::from_slice(&stream, len, &data)?;
        let y = Tensor::uninit(&stream, len)?;
        for boundary in boundaries() {
            y.assign(convolve(&x, &weights, origin, boundary))?;
            assert_eq!(
                y.to_vec()?,
                sums(&data, &weights, origin, boundary),
                "{count} of {len}, {origin}, {boundary:?}"
            );
            y.assign(convolve(&x, &weights, origin, boundary).contract())?;
            assert_eq!(y.to_vec()?, contracted(&data, &weights, origin, boundary), "contracted, {count} of {len}");
        }
    }
    Ok(())
}

/// The rows are a batch, and the source and the target have every order of axes in memory.
#[test]
fn many_weights_of_views() -> Result<()> {
    let stream = stream()?;
    let (rows, len, origin) = (3, 150, 40);
    let (data, weights) = (numbers::<f64>(rows * len, 7), numbers::<f64>(70, 8));
    let x = Tensor::from_slice(&stream, [rows, len], &data)?;
    let turned = Tensor::uninit(&stream, [len, rows])?;
    turned.assign(x.t())?;
    let wide = Tensor::zeros(&stream, [rows, 2 * len])?;
    let apart = wide.slice((.., AxisSlice::from(..).by(2)))?;
    apart.assign(&x)?;
    for boundary in boundaries() {
        let expected: Vec<f64> = data.chunks(len).flat_map(|row| sums(row, &weights, origin, boundary)).collect();
        for source in [&x, &turned.t(), &apart] {
            let y = Tensor::uninit(&stream, [rows, len])?;
            y.assign(convolve(source, &weights, origin, boundary))?;
            assert_eq!(y.to_vec()?, expected, "{boundary:?}");
            let y = Tensor::uninit(&stream, [len, rows])?;
            y.t().assign(convolve(source, &weights, origin, boundary))?;
            assert_eq!(y.t().to_vec()?, expected, "{boundary:?}, into columns");
        }
        // If the view is backwards, the last weight is that of the first element.
        let back: Vec<f64> = data
            .chunks(len)
            .flat_map(|row| sums(&row.iter().rev().copied().collect::<Vec<_>>(), &weights, origin, boundary))
            .collect();
        let y = Tensor::uninit(&stream, [rows, len])?;
        let reversed = x.slice((.., AxisSlice::from(..).by(-1)))?;
        y.assign(convolve(&reversed, &weights, origin, boundary))?;
        assert_eq!(y.to_vec()?, back, "{boundary:?}, backwards");
        let y = Tensor::uninit(&stream, [rows, len])?;
        y.slice((.., AxisSlice::from(..).by(-1)))?.assign(convolve(&reversed, &weights, origin, boundary))?;
        assert_eq!(y.slice((.., AxisSlice::from(..).by(-1)))?.to_vec()?, back, "{boundary:?}, both backwards");
    }
    Ok(())
}

/// The sums are in larger expressions, with other neighbours of the same tensor, and in reductions.
#[test]
fn many_weights_fuse() -> Result<()> {
    let stream = stream()?;
    let (len, origin, boundary) = (400, 100, Boundary::Periodic);
    let (data, weights) = (numbers::<f64>(len, 9), numbers::<f64>(200, 10));
    let x = Tensor::from_slice(&stream, len, &data)?;
    let y = Tensor::uninit(&stream, len)?;
    let sums = sums(&data, &weights, origin, boundary);
    let sum = || convolve(&x, &weights, origin, boundary);
    y.assign(&x - sum() * 2.0 + stencil(&x, Boundary::Clamp, |n| n.at(-1)) + sum())?;
    let expected: Vec<f64> = (0..len).map(|i| data[i] - sums[i] * 2.0 + data[i.saturating_sub(1)] + sums[i]).collect();
    assert_eq!(y.to_vec()?, expected);
    let greatest = sums.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    assert_eq!(sum().max().item()?, greatest);
    // For arithmetic, and for the interior, each weight is a term.
    y.assign(convolve(&x * 1.0, &weights, origin, boundary))?;
    assert_eq!(y.to_vec()?, sums);
    let z = Tensor::uninit(&stream, len - 199)?;
    z.assign(convolve(&x, &weights, 0, Boundary::Interior))?;
    assert_eq!(z.to_vec()?[..], self::sums(&data, &weights, 0, boundary)[..len - 199]);
    Ok(())
}

/// Integers wrap. Signs of zeros and values that are not finite are those of the terms.
#[test]
fn many_weights_of_other_types() -> Result<()> {
    let stream = stream()?;
    let bytes: Vec<u8> = (0..200).map(|i| (i * 37 % 251) as u8).collect();
    let weights: Vec<u8> = (0..100).map(|i| (i * 11 % 253) as u8).collect();
    let y = Tensor::uninit(&stream, 200)?;
    y.assign(convolve(&Tensor::from_slice(&stream, 200, &bytes)?, &weights, 0, Boundary::Clamp).contract())?;
    let term = |i: usize, k: usize| bytes[(i + k).min(199)].wrapping_mul(weights[k]);
    let expected: Vec<u8> = (0..200).map(|i| (0..100).fold(0u8, |sum, k| sum.wrapping_add(term(i, k)))).collect();
    assert_eq!(y.to_vec()?, expected);

    let mut data = vec![-0.0f32; 128];
    data[127] = f32::INFINITY;
    let y = Tensor::uninit(&stream, 128)?;
    y.assign(convolve(&Tensor::from_slice(&stream, 128, &data)?, &[1.0; 65], 64, Boundary::Constant(-0.0)))?;
    let sums = y.to_vec()?;
    assert!(sums[..127].iter().all(|sum| sum.to_bits() == (-0.0f32).to_bits()), "{sums:?}");
    assert_eq!(sums[127], f32::INFINITY);
    Ok(())
}

/// The code does not grow with the weights.
#[test]
fn many_weights_are_a_loop() -> Result<()> {
    let stream = stream()?;
    let [x, y] = [0; 2].map(|_| Tensor::<f32>::zeros(&stream, 1 << 14).unwrap());
    for boundary in
        [Boundary::Clamp, Boundary::Periodic, Boundary::Mirror, Boundary::Symmetric, Boundary::Constant(1.0)]
    {
        let text = |count: usize| y.ptx(convolve(&x, &vec![0.5f32; count], 32, boundary).contract(), 90);
        let (few, many) = (text(65)?, text(2048)?);
        assert!(many.lines().count() <= few.lines().count() + 600, "{}", many.lines().count());
        assert_eq!(many.matches(".const .align 16 .b32 ").count(), 1);
        // Each vector of elements takes 16 multiply-adds.
        assert!(many.contains("ld.const.v4.b32") && many.contains("ld.global.v4.b32"));
    }
    Ok(())
}

#[test]
fn many_weights_that_a_sum_cannot_have() -> Result<()> {
    let stream = stream()?;
    let [x, y] = [0; 2].map(|_| Tensor::<f64>::zeros(&stream, 100).unwrap());
    let weights = vec![1.0; 101];
    let error = y.assign(convolve(&x, &weights, 0, Boundary::Mirror));
    assert_error(error, ExpressionErrorKind::BadStencil, &["100 away", "extent 100", "mirror"]);
    let error = x.assign(convolve(&x, &weights[..65], 0, Boundary::Clamp));
    assert_error(error, ExpressionErrorKind::Overlap, &["convolve(x0, 65 weights from 0)", "stencil"]);
    // The weights are wider than the tensor.
    y.assign(convolve(&x, &weights, 50, Boundary::Clamp))?;
    assert_eq!(y.to_vec()?, [0.0; 100]);
    let none = Tensor::<f64>::zeros(&stream, 0)?;
    Tensor::uninit(&stream, 0)?.assign(convolve(&none, &weights, 50, Boundary::Clamp))
}
