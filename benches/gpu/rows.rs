//! Kernels of rows and columns beside PyTorch, whose times come from `benches/peers/torch_peers.py`: measured on the same
//! machine just before, but in a process of its own, so that the samples of the two are not taken in turn.

use kernel_primitives::functor::{Less, Sum};
use kernel_primitives::kernels::{
    cumsum_rows, layer_norm_rows, reduce_higher_dim, reduce_row_dims, reduce_rows, row_dims, softmax_rows, sort_rows,
};
use kernel_primitives::{Accumulate, Device, Element, Result, Stream, f16};

use crate::harness::{Options, Report, compare};

struct Bench<'a> {
    stream: Stream,
    report: &'a mut Report,
}

impl Bench<'_> {
    /// Times `run`, which moves so many bytes.
    fn row(&mut self, name: &str, bytes: usize, mut run: impl FnMut(&Stream) -> Result<()>) -> Result<()> {
        let ms = compare(&self.stream, &mut [&mut || run(&self.stream)])?[0];
        self.report.row(name, &[("ms", ms), ("GB/s", bytes as f64 / ms / 1e6)]);
        Ok(())
    }
}

pub(crate) fn run(device: &Device, _: &Options, report: &mut Report) -> Result<()> {
    let mut bench = Bench { stream: device.stream()?, report };
    macro_rules! normalised {
        ($($name:literal: $t:ty, $nx:literal, $rounds:literal, $tolerance:literal;)*) => {$({
            const ROWS: usize = 16384;
            const COLUMNS: usize = 4096;
            let data: Vec<$t> = random(ROWS * COLUMNS).map(<$t as Value>::from_f64).collect();
            let scale: Vec<$t> = random(COLUMNS).map(<$t as Value>::from_f64).collect();
            let stream = bench.stream.clone();
            let (x, a) = (stream.buffer_from(&data)?, stream.buffer_from(&scale)?);
            let mut out = stream.buffer_zeroed::<$t>(data.len())?;
            let dims = row_dims(ROWS, COLUMNS, $nx * $rounds);
            let bytes = 2 * size_of_val(&data[..]);

            bench.row(concat!("softmax ", $name, " 16384x4096"), bytes, |stream| {
                softmax_rows::<$t, $nx, $rounds>::launch(stream, dims, ROWS, COLUMNS, &x, &mut out)
            })?;
            check_rows(&data, &out.to_vec()?, COLUMNS, ($tolerance, 1e-4), |row| {
                let sum: f64 = row.iter().map(|x| x.exp()).sum();
                row.iter().map(|x| x.exp() / sum).collect()
            });

            bench.row(concat!("layer norm ", $name, " 16384x4096"), bytes, |stream| {
                layer_norm_rows::<$t, $nx, $rounds>::launch(stream, dims, ROWS, COLUMNS, 1e-5, &x, &a, &a, &mut out)
            })?;
            check_rows(&data, &out.to_vec()?, COLUMNS, ($tolerance, 1.0), |row| {
                let mean = row.iter().sum::<f64>() / COLUMNS as f64;
                let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / COLUMNS as f64;
                let normal = row.iter().map(|x| (x - mean) / (variance + 1e-5).sqrt());
                normal.zip(&scale).map(|(x, a)| x * a.to_f64() + a.to_f64()).collect()
            });
        })*};
    }
    normalised! {
        "f32": f32, 4, 8, 1e-5;
        "f16": f16, 8, 8, 2e-3;
    }
    cumsum(&mut bench)?;
    sums(&mut bench)?;
    sort(&mut bench)
}

fn cumsum(bench: &mut Bench<'_>) -> Result<()> {
    const N: usize = 8192;
    let data: Vec<f32> = random(N * N).map(|x| x as f32).collect();
    let x = bench.stream.buffer_from(&data)?;
    let mut out = bench.stream.buffer_zeroed::<f32>(N * N)?;
    bench.row("cumsum dim 1 f32 8192x8192", 2 * size_of_val(&data[..]), |stream| {
        cumsum_rows::<f32, 4, 8, false>::launch(stream, row_dims(N, N, 32), N, N, &x, &mut out)
    })?;
    check_rows(&data, &out.to_vec()?, N, (1e-5, 50.0), |row| {
        row.iter()
            .scan(0.0, |sum, x| {
                *sum += x;
                Some(*sum)
            })
            .collect()
    });
    Ok(())
}

fn sums(bench: &mut Bench<'_>) -> Result<()> {
    const N: usize = 16384;
    let data: Vec<f32> = random(N * N).map(|x| x as f32).collect();
    let x = bench.stream.buffer_from(&data)?;
    let mut out = bench.stream.buffer_zeroed::<f32>(N)?;
    let bytes = size_of_val(&data[..]);

    bench.row("sum dim 1 f32 16384x16384", bytes, |stream| {
        reduce_rows::<f32, Sum, 4>::launch(stream, reduce_row_dims(N, N, 16), N, N, &x, &mut out, Sum)
    })?;
    let found = out.to_vec()?;
    for row in some(N) {
        let expected = data[row * N..][..N].iter().map(|&x| f64::from(x)).sum();
        close(found[row], expected, 1e-2, "sum of a row", row);
    }

    bench.row("sum dim 0 f32 16384x16384", bytes, |stream| {
        reduce_higher_dim::<f32, Sum, 4>::run(stream, [1, N, N], &x, &mut out, Sum)
    })?;
    let found = out.to_vec()?;
    for column in some(N) {
        let expected = data[column..].iter().step_by(N).map(|&x| f64::from(x)).sum();
        close(found[column], expected, 1e-2, "sum of a column", column);
    }
    Ok(())
}

fn sort(bench: &mut Bench<'_>) -> Result<()> {
    const ROWS: usize = 16384;
    const COLUMNS: usize = 4096;
    let data: Vec<f32> = random(ROWS * COLUMNS).map(|x| x as f32).collect();
    let x = bench.stream.buffer_from(&data)?;
    let mut keys = bench.stream.buffer_zeroed::<f32>(data.len())?;
    let mut indices = bench.stream.buffer_zeroed::<u32>(data.len())?;
    bench.row("sort dim 1 f32 16384x4096", 3 * size_of_val(&data[..]), |stream| {
        let dims = (ROWS as u32, 512);
        sort_rows::<f32, Less, 512, 8>::launch(stream, dims, &x, COLUMNS as u32, &mut keys, &mut indices, Less)
    })?;
    let (keys, indices) = (keys.to_vec()?, indices.to_vec()?);
    for row in some(ROWS) {
        let range = row * COLUMNS..(row + 1) * COLUMNS;
        let row = &data[range.clone()];
        let mut expected: Vec<u32> = (0..COLUMNS as u32).collect();
        expected.sort_by(|&a, &b| row[a as usize].total_cmp(&row[b as usize]));
        assert!(indices[range.clone()] == expected, "wrong order");
        assert!(keys[range].iter().zip(expected).all(|(key, i)| *key == row[i as usize]), "wrong keys");
    }
    Ok(())
}

/// An element to and from `f64`.
trait Value: Accumulate + Element {
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
}
impl Value for f32 {
    fn from_f64(value: f64) -> Self {
        value as f32
    }
    fn to_f64(self) -> f64 {
        self.into()
    }
}
impl Value for f16 {
    fn from_f64(value: f64) -> Self {
        f16::from_f64(value)
    }
    fn to_f64(self) -> f64 {
        f16::to_f64(self)
    }
}

/// Uniform numbers from −1 to 1 (splitmix64).
fn random(len: usize) -> impl Iterator<Item = f64> {
    (0..len as u64).map(|i| {
        let z = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    })
}

/// The rows, or columns, whose results are checked.
fn some(count: usize) -> [usize; 4] {
    [0, 1, count / 2 + 3, count - 1]
}

/// Compares some rows with a reference: relative to the expected value, or to `size` if that is larger.
fn check_rows<T: Value>(
    data: &[T],
    found: &[T],
    columns: usize,
    (tolerance, size): (f64, f64),
    reference: impl Fn(&[f64]) -> Vec<f64>,
) {
    for row in some(data.len() / columns) {
        let range = row * columns..(row + 1) * columns;
        let x: Vec<f64> = data[range.clone()].iter().map(|x| x.to_f64()).collect();
        for (found, expected) in found[range].iter().zip(reference(&x)) {
            close(found.to_f64(), expected, tolerance * expected.abs().max(size), "row", row);
        }
    }
}

fn close(found: impl Into<f64>, expected: f64, allowed: f64, what: &str, place: usize) {
    let found = found.into();
    assert!((found - expected).abs() <= allowed, "{what} {place}: {found} is not {expected} within {allowed:e}");
}
