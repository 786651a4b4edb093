//! The shipped kernels of which each block has whole rows.

use kernel_primitives::kernels::{layer_norm_rows, row_dims, softmax_rows};
use kernel_primitives::{Accumulate, Dims, Result, bf16, f16};

use crate::support::{Random, SHAPES, streams, threads};

/// A type of the kernels' elements, to and from `f64`.
trait Value: Accumulate + Copy {
    /// Half a unit in the last place of 1.
    const ROUNDING: f64;
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
}

macro_rules! values {
    ($($t:ty, $bits:literal, $from:expr, $to:expr;)*) => {$(
        impl Value for $t {
            const ROUNDING: f64 = 1.0 / (1u64 << $bits) as f64;
            fn from_f64(value: f64) -> Self { let f: fn(f64) -> $t = $from; f(value) }
            fn to_f64(self) -> f64 { let f: fn($t) -> f64 = $to; f(self) }
        }
    )*};
}
values! {
    f32, 24, |x| x as f32, |x| x.into();
    f64, 53, |x| x, |x| x;
    f16, 11, f16::from_f64, f16::to_f64;
    bf16, 8, bf16::from_f64, bf16::to_f64;
}

/// Rows and columns: one element, part of a thread's, part of a block, more than any block's registers hold.
const MATRICES: [(usize, usize); 9] =
    [(1, 1), (5, 2), (3, 15), (7, 17), (4, 128), (3, 1000), (2, 1025), (2, 4096), (1, 70_000)];

/// A launch of its own for each kind of block, and the one that `row_dims` chooses.
fn dims(k: usize, rows: usize, columns: usize, per_thread: usize) -> [Dims; 2] {
    let shapes: Vec<_> = SHAPES.into_iter().filter(|&shape| threads(shape) <= 384).collect();
    [row_dims(rows, columns, per_thread), Dims::new(1 + k as u32 % 3, shapes[k % shapes.len()])]
}

fn close(found: f64, expected: f64, allowed: f64, what: impl Fn() -> String) {
    assert!((found - expected).abs() <= allowed, "{}: {found} is not {expected} within {allowed:e}", what());
}

fn random_matrix<T: Value>(rows: usize, columns: usize, scale: f64, shift: f64) -> Vec<T> {
    let mut random = Random::new((rows * columns) as u64);
    (0..rows * columns).map(|_| T::from_f64((random.unit() - 0.5) * scale + shift)).collect()
}

macro_rules! softmaxes {
    ($($name:ident: $t:ty, $nx:literal, $rounds:literal;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            for stream in streams()? {
                for (k, (rows, columns)) in MATRICES.into_iter().enumerate() {
                    let data = random_matrix::<$t>(rows, columns, 20.0, 100.0);
                    let x = stream.buffer_from(&data)?;
                    for dims in dims(k, rows, columns, $rounds * $nx) {
                        let mut out = stream.buffer_zeroed::<$t>(data.len())?;
                        softmax_rows::<$t, $nx, $rounds>::launch(&stream, dims, rows, columns, &x, &mut out)?;
                        let found = out.to_vec()?;
                        for (row, found) in data.chunks(columns).zip(found.chunks(columns)) {
                            let max = row.iter().map(|x| x.to_f64()).fold(f64::MIN, f64::max);
                            let sum: f64 = row.iter().map(|x| (x.to_f64() - max).exp()).sum();
                            for (c, (x, found)) in row.iter().zip(found).enumerate() {
                                let expected = (x.to_f64() - max).exp() / sum;
                                // The result's own rounding, and some forty of the accumulation type.
                                let unit = <<$t as Accumulate>::Accum as Value>::ROUNDING;
                                let allowed = expected * (1.01 * <$t>::ROUNDING + 40.0 * unit) + 6e-8 * <$t>::ROUNDING / <f16>::ROUNDING;
                                close(found.to_f64(), expected, allowed, || format!("{rows} x {columns}, column {c}, {dims:?}"));
                            }
                        }
                    }
                }
            }
            Ok(())
        }
    )*};
}
softmaxes! {
    softmax_of_f32_rows: f32, 4, 8;
    softmax_of_f64_rows: f64, 2, 8;
    softmax_of_f16_rows: f16, 8, 4;
    softmax_of_bf16_rows: bf16, 8, 4;
}

#[test]
fn sanitize_softmax_of_extreme_rows() -> Result<()> {
    const INFINITY: f32 = f32::INFINITY;
    for stream in streams()? {
        let data = [
            [0.0, -INFINITY, 0.0, -INFINITY, -INFINITY],
            [f32::MAX, f32::MAX, f32::MIN, 0.0, 1.0],
            [-1e30, -1e30, -1e30, -1e30, -INFINITY],
            [1.0, f32::NAN, 2.0, 3.0, 4.0],
            [-INFINITY; 5],
            [1.0, INFINITY, 2.0, 3.0, 4.0],
        ];
        let x = stream.buffer_from(data.as_flattened())?;
        for dims in [row_dims(6, 5, 32), Dims::new(2, 2), Dims::new(6, 33)] {
            let mut out = stream.buffer_zeroed::<f32>(30)?;
            softmax_rows::<f32, 4, 8>::launch(&stream, dims, 6, 5, &x, &mut out)?;
            let found = out.to_vec()?;
            assert_eq!(found[..5], [0.5, 0.0, 0.5, 0.0, 0.0]);
            assert_eq!(found[5..10], [0.5, 0.5, 0.0, 0.0, 0.0]);
            assert_eq!(found[10..15], [0.25, 0.25, 0.25, 0.25, 0.0]);
            assert!(found[15..].iter().all(|x| x.is_nan()), "{found:?}");
        }
    }
    Ok(())
}

macro_rules! layer_norms {
    ($($name:ident: $t:ty, $nx:literal, $rounds:literal;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            for stream in streams()? {
                for (k, (rows, columns)) in MATRICES.into_iter().enumerate() {
                    let data = random_matrix::<$t>(rows, columns, 4.0, 3.0);
                    let scale = random_matrix::<$t>(1, columns, 2.0, 1.0);
                    let shift = random_matrix::<$t>(columns, 1, 2.0, 0.0);
                    let (x, a, b) = (stream.buffer_from(&data)?, stream.buffer_from(&scale)?, stream.buffer_from(&shift)?);
                    for dims in dims(k, rows, columns, $rounds * $nx) {
                        let mut out = stream.buffer_zeroed::<$t>(data.len())?;
                        layer_norm_rows::<$t, $nx, $rounds>::launch(&stream, dims, rows, columns, 1e-3, &x, &a, &b, &mut out)?;
                        let found = out.to_vec()?;
                        for (row, found) in data.chunks(columns).zip(found.chunks(columns)) {
                            let mean = row.iter().map(|x| x.to_f64()).sum::<f64>() / columns as f64;
                            let variance = row.iter().map(|x| (x.to_f64() - mean).powi(2)).sum::<f64>() / columns as f64;
                            let deviation = (variance + 1e-3).sqrt();
                            for c in 0..columns {
                                let (a, b) = (scale[c].to_f64(), shift[c].to_f64());
                                let normal = (row[c].to_f64() - mean) / deviation * a;
                                // Rounding of the result, and of intermediate values of up to the mean's and the summands' size.
                                let unit = <<$t as Accumulate>::Accum as Value>::ROUNDING;
                                let size = normal.abs() + b.abs() + 5.0 / deviation * a.abs();
                                let allowed = (normal + b).abs() * 1.01 * <$t>::ROUNDING + 30.0 * unit * size;
                                close(found[c].to_f64(), normal + b, allowed, || format!("{rows} x {columns}, column {c}, {dims:?}"));
                            }
                        }
                    }
                }
            }
            Ok(())
        }
    )*};
}
layer_norms! {
    layer_norm_of_f32_rows: f32, 4, 8;
    layer_norm_of_f64_rows: f64, 2, 8;
    layer_norm_of_f16_rows: f16, 8, 4;
    layer_norm_of_bf16_rows: bf16, 8, 4;
}

#[test]
fn sanitize_layer_norm_keeps_a_small_variance_beside_a_large_mean() -> Result<()> {
    for stream in streams()? {
        let data: Vec<f32> = (0..300).map(|i| 1e6 + (i % 3) as f32).collect();
        let (x, ones, zeros) =
            (stream.buffer_from(&data)?, stream.buffer_from(&[1.0f32; 150])?, stream.buffer_zeroed::<f32>(150)?);
        for dims in [row_dims(2, 150, 32), Dims::new(1, 7)] {
            let mut out = stream.buffer_zeroed::<f32>(300)?;
            layer_norm_rows::<f32, 4, 8>::launch(&stream, dims, 2, 150, 0.0, &x, &ones, &zeros, &mut out)?;
            let unit = (1.5f64).sqrt();
            for (i, found) in out.to_vec()?.into_iter().enumerate() {
                // The mean itself is rounded to a sixteenth.
                close(found.into(), ((i % 3) as f64 - 1.0) * unit, 0.08, || format!("element {i}"));
            }
        }
    }
    Ok(())
}

#[test]
fn a_matrix_larger_than_its_buffer_is_a_fault() -> Result<()> {
    let stream = crate::support::stream()?;
    let x = stream.buffer_from(&[1.0f32; 10])?;
    let mut out = stream.buffer_zeroed::<f32>(10)?;
    let result = softmax_rows::<f32, 4, 8>::launch(&stream, row_dims(3, 4, 32), 3, 4, &x, &mut out);
    let error = result.and_then(|()| stream.synchronize()).unwrap_err().to_string();
    assert!(error.contains("ends at element 12, but the view has 10"), "{error}");
    Ok(())
}
