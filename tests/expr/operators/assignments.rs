//! Tests indices, updates in place, and several assignments at once.

use half::f16;
use kernel_primitives::Result;
use kernel_primitives::expr::*;

use crate::stream;

#[test]
fn indices_are_of_the_target() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::<u64>::zeros(&stream, [3, 4, 5])?;
    x.assign(element_index())?;
    assert_eq!(x.to_vec()?, (0..60).collect::<Vec<_>>());
    x.assign(axis_index::<u64>(0) * 100 + axis_index::<u64>(1) * 10 + axis_index::<u64>(2))?;
    assert_eq!(x.to_vec()?, (0..60).map(|i| i / 20 * 100 + i / 5 % 4 * 10 + i % 5).collect::<Vec<_>>());
    // The indices are right for any layout of the target.
    let turned = x.permute(&[2, 0, 1])?.slice((AxisSlice::from(..).by(-1), 1..))?;
    turned.assign(element_index())?;
    assert_eq!(turned.to_vec()?, (0..40).collect::<Vec<_>>());
    // They are also right if the operands determine the order, and with tiles.
    let square = Tensor::<u64>::zeros(&stream, [100, 100])?;
    square.assign(element_index())?;
    let sum = Tensor::<u64>::zeros(&stream, [100, 100])?;
    let counted = || element_index::<u64>() * 2 + axis_index::<u64>(0) * 3 + axis_index::<u64>(1) * 5;
    let expected = |i: u64, j: u64| (i * 100 + j) * 2 + i * 3 + j * 5;
    for (target, at) in [(sum.clone(), [100, 1]), (sum.t(), [1, 100])] {
        target.assign(square.t() + counted())?;
        let all = sum.to_vec()?;
        for (i, j) in (0..100).flat_map(|i| (0..100).map(move |j| (i, j))) {
            assert_eq!(all[i * at[0] + j * at[1]], (j * 100 + i) as u64 + expected(i as u64, j as u64));
        }
    }
    let part = sum.slice((3..90, 1..))?;
    part.assign(axis_index::<u64>(1) * 1000 + axis_index::<u64>(0))?;
    assert_eq!(part.slice(80)?.to_vec()?, (0..99).map(|j| j * 1000 + 80).collect::<Vec<u64>>());
    let f = Tensor::<f16>::zeros(&stream, 4)?;
    f.assign(element_index::<f16>() * f16::from_f32(0.5))?;
    assert_eq!(f.to_vec()?, [0.0, 0.5, 1.0, 1.5].map(f16::from_f32));
    let one = Tensor::<i8>::zeros(&stream, [1usize; 0])?;
    one.assign(element_index::<i8>() + 3)?;
    assert_eq!(one.item()?, 3);
    Ok(())
}

#[test]
fn updates_in_place() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::from_slice(&stream, 4, &[1i64, 2, 3, 4])?;
    let y = Tensor::from_slice(&stream, 1, &[3u8])?;
    x.mul_assign(&y)?;
    x.add_assign(&x)?;
    x.sub_assign(scalar(1i64))?;
    x.div_assign(y.cast::<i16>() - 1)?;
    assert_eq!(x.to_vec()?, [2, 5, 8, 11]);
    x.fill(-1)?;
    assert_eq!(x.to_vec()?, [-1; 4]);
    Ok(())
}

#[test]
fn assignments_together() -> Result<()> {
    let stream = stream()?;
    let n = 5000;
    let (a, b) = (crate::numbers::<f32>(n, 1), crate::numbers::<f32>(n, 2));
    let x = Tensor::from_slice(&stream, [50, 100], &a)?;
    let y = Tensor::from_slice(&stream, [50, 100], &b)?;
    let less = Tensor::<bool>::uninit(&stream, [50, 100])?;
    let turned = Tensor::<f64>::zeros(&stream, [100, 50])?;
    let sum = &x + &y;
    // Each value is computed from the elements before the call.
    assign_all([x.to(&sum * 2.0f32), y.to(&x - &y), less.to(lt(&x, &y)), turned.t().to(sum.cast::<f64>())])?;
    let (x, y, less, turned) = (x.to_vec()?, y.to_vec()?, less.to_vec()?, turned.t().to_vec()?);
    for i in 0..n {
        let (a, b) = (a[i], b[i]);
        let expected = ((a + b) * 2.0, a - b, a < b, f64::from(a + b));
        assert_eq!((x[i], y[i], less[i], turned[i]), expected, "element {i}");
    }
    // The values are swapped, and one value is assigned twice.
    let (x, y) = (Tensor::from_slice(&stream, 2, &[1, 2])?, Tensor::from_slice(&stream, 2, &[3, 4])?);
    assign_all([x.to(&y), y.to(&x)])?;
    assert_eq!((x.to_vec()?, y.to_vec()?), (vec![3, 4], vec![1, 2]));
    let value = &x * 2;
    assign_all([x.to(&value), y.to(value)])?;
    assert_eq!((x.to_vec()?, y.to_vec()?), (vec![6, 8], vec![6, 8]));
    assign_all([])?;
    let error = assign_all([x.to(scalar(1)), x.to(scalar(2))]).unwrap_err().to_string();
    assert!(error.contains("two targets of one kernel overlap") && error.contains("assignments.rs:"), "{error}");
    let error = assign_all([x.to(scalar(1)), x.slice(0)?.to(scalar(2))]).unwrap_err().to_string();
    assert!(error.contains("one shape"), "{error}");
    Ok(())
}
