//! Expressions against plain Rust and `ndarray`, on the device that the environment chooses.

use kernel_primitives::expr::*;
use kernel_primitives::{Device, Result};

#[test]
fn the_five_operand_expression() -> Result<()> {
    let stream = Device::auto()?.stream()?;
    for n in [0, 1, 3, 1000, 1024, 100_003] {
        let data = |k: usize| (0..n).map(|i| ((i * (k + 3)) % 17) as f32 * 0.25 - 1.0).collect::<Vec<_>>();
        let make = |k| Tensor::from_slice(&stream, n, &data(k));
        let (a, b, c, d, e, f) = (make(0)?, make(1)?, make(2)?, make(3)?, make(4)?, make(5)?);
        a.assign(&b + &c * &d + sin(&e) * &f + 10.0)?;
        let (b, c, d, e, f) = (data(1), data(2), data(3), data(4), data(5));
        for (i, a) in a.to_vec()?.into_iter().enumerate() {
            let expected = b[i] + c[i] * d[i] + e[i].sin() * f[i] + 10.0;
            assert!((a - expected).abs() <= 2e-6 * expected.abs(), "{i}: {a} {expected}");
        }
    }
    Ok(())
}

#[test]
fn broadcasts_and_views() -> Result<()> {
    let stream = Device::auto()?.stream()?;
    let x = Tensor::from_slice(&stream, [3, 4], &(0..12).map(|i| i as f64).collect::<Vec<_>>())?;
    let row = Tensor::from_slice(&stream, 4, &[10.0f64, 20.0, 30.0, 40.0])?;
    let column = Tensor::from_slice(&stream, [3, 1], &[1i32, 2, 3])?;
    let y = Tensor::uninit(&stream, [3, 4])?;
    y.assign(&x * &column + &row)?;
    let expected: Vec<f64> = (0..12).map(|i| i as f64 * (i / 4 + 1) as f64 + (i % 4 + 1) as f64 * 10.0).collect();
    assert_eq!(y.to_vec()?, expected);
    y.t().assign(x.t() + 1.0)?;
    assert_eq!(y.to_vec()?, (0..12).map(|i| i as f64 + 1.0).collect::<Vec<_>>());
    let z = Tensor::zeros(&stream, [4, 3])?;
    z.assign(x.t())?;
    assert_eq!(z.to_vec()?, (0..12).map(|i| (i % 3 * 4 + i / 3) as f64).collect::<Vec<_>>());
    z.add_assign(&z)?;
    assert_eq!(z.t().to_vec()?, (0..12).map(|i| 2.0 * i as f64).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn mistakes_show_the_expression_the_shapes_and_the_place() -> Result<()> {
    let stream = Device::auto()?.stream()?;
    let x = Tensor::from_slice(&stream, [3, 4], &[0.0f32; 12])?;
    let y = Tensor::from_slice(&stream, 5, &[0.0f32; 5])?;
    let error = x.assign(&x + sin(&y) * 2.0).unwrap_err().to_string();
    for part in ["x0 + sin(x1) * 2.0", "x0: f32[3, 4]", "x1: f32[5]", "main.rs:", "broadcast"] {
        assert!(error.contains(part), "{error}");
    }
    let error = x.slice((.., 1..))?.assign(x.slice((.., ..3))?).unwrap_err().to_string();
    assert!(error.contains("overlaps"), "{error}");
    Ok(())
}
