//! Computation on a thread's own registers.

use kernel_primitives::functor::{Add, Max};
use kernel_primitives::thread::{elementwise_binary, elementwise_unary};
use kernel_primitives::{Result, f16};

use crate::kernels::functor as kernels;
use crate::support::{cases, stream, values};

#[test]
fn functions_are_applied_item_by_item() {
    assert_eq!(elementwise_unary(&[1, 2, 3], |v: i32| v * v), [1, 4, 9]);
    assert_eq!(elementwise_unary(&[1.5f32, -2.5], |v: f32| v as i32), [1, -2]);
    assert_eq!(elementwise_unary(&[] as &[f32; 0], |v: f32| v), [0f32; 0]);
    assert_eq!(elementwise_binary(&[1, 5], &[4, 2], Max), [4, 5]);
    assert_eq!(elementwise_binary(&[f16::ONE], &[f16::ONE], Add), [f16::from_f32(2.0)]);
    assert_eq!(elementwise_binary(&[3u64, 4], &[1u8, 2], |a: u64, b: u8| a << b), [6, 16]);
}

#[test]
fn sanitize_closures_of_a_kernel_capture_its_parameters() -> Result<()> {
    let stream = stream()?;
    for case in cases(3).filter(|case| case.len < 5000) {
        let (x, y) = (values::<f32>(case.len, 1), values::<f32>(case.len, 2));
        let mut out = stream.buffer_zeroed(case.len)?;
        let (u, v) = (stream.buffer_from(&x)?, stream.buffer_from(&y)?);
        kernels::axpy_by_closures::launch(&stream, case.dims(4, 3), 3.0, &u, &v, &mut out)?;
        let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 3.0 * x + y).collect();
        assert_eq!(out.to_vec()?, expected, "{case:?}");
    }
    Ok(())
}

#[test]
fn sanitize_the_two_arguments_may_have_two_types() -> Result<()> {
    let stream = stream()?;
    for case in cases(4).filter(|case| case.len < 5000) {
        let (x, by) = (values::<u64>(case.len, 1), values::<u8>(case.len, 2));
        let mut out = stream.buffer_zeroed(case.len)?;
        let (u, v) = (stream.buffer_from(&x)?, stream.buffer_from(&by)?);
        kernels::shift_left::launch(&stream, case.dims(2, 3), &u, &v, &mut out)?;
        let expected: Vec<u64> = x.iter().zip(&by).map(|(x, by)| x.wrapping_shl(*by as u32)).collect();
        assert_eq!(out.to_vec()?, expected, "{case:?}");
    }
    Ok(())
}
