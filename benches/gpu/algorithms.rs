//! Algorithms over whole buffers beside CUB's, small and large.

use kernel_primitives::algorithms::{Run, Workspace, inclusive_scan, reduce};
use kernel_primitives::functor::Sum;
use kernel_primitives::prelude::*;
use kernel_primitives::{Buffer, Device, Result, Stream};

use crate::harness::{Options, Report, compare};
use crate::peers::Peers;

/// Sizes where launches count and, last, one far beyond the cache, which the command line gives.
const SMALL: [u32; 3] = [10, 16, 20];

pub(crate) fn run(device: &Device, options: &Options, report: &mut Report) -> Result<()> {
    let stream = device.stream()?;
    let peers = options.peers.as_deref().map(Peers::open);
    let mut workspace = Workspace::with_capacity(&stream, 1 << 26)?;
    macro_rules! rows {
        ($($t:ident: |$i:ident| $value:expr, |$sum:ident| $exact:expr;)*) => {$(
            let x = stream.buffer_from(&(0..1usize << options.log2).map(|$i| $value).collect::<Vec<$t>>())?;
            for log2 in SMALL.into_iter().chain([options.log2]) {
                let row = Row { peers: peers.as_ref(), stream: &stream, log2, x: &x };
                row.measure(report, "reduce", stringify!($t), 1, 1.0, |x, out| {
                    reduce(Run::on(&stream).with(&mut workspace), x, Sum, out)
                }, |x, $sum: &[$t]| {
                    let total = x.iter().map(|&x| x as f64).sum::<f64>();
                    let $sum = $sum[0];
                    assert!($exact(total), "the sum is {} rather than {total}", $sum);
                })?;
                row.measure(report, "inclusive_scan", stringify!($t), 1 << log2, 2.0, |x, out| {
                    inclusive_scan(Run::on(&stream).with(&mut workspace), x, Add, out)
                }, |x, sums| {
                    let mut total = 0.0f64;
                    for (i, (&x, &$sum)) in x.iter().zip(sums).enumerate() {
                        total += x as f64;
                        assert!($exact(total), "sum {i} is {} rather than {total}", $sum);
                    }
                })?;
            }
        )*};
    }
    rows! {
        f32: |i| ((i * 7919) % 1021) as f32 / 1021.0 - 0.25, |sum| |total: f64| (sum as f64 - total).abs() <= 1e-4 * total.abs().max(1e3);
        f64: |i| ((i * 7919) % 1021) as f64 / 1021.0 - 0.25, |sum| |total: f64| (sum - total).abs() <= 1e-9 * total.abs().max(1e3);
        i32: |i| ((i * 7919) % 1021) as i32 % 7 - 3, |sum| |total: f64| sum as f64 == total;
        i64: |i| ((i * 7919) % 1021) as i64 - 510, |sum| |total: f64| sum as f64 == total;
    }
    Ok(())
}

struct Row<'a, T> {
    peers: Option<&'a Peers>,
    stream: &'a Stream,
    log2: u32,
    x: &'a Buffer<T>,
}

impl<T: Number> Row<'_, T> {
    /// Measures one algorithm on the first 2^log2 items; `traffic` is how often they cross to or from memory.
    #[allow(clippy::too_many_arguments, reason = "what a row is")]
    fn measure(
        &self,
        report: &mut Report,
        algorithm: &str,
        ty: &str,
        results: usize,
        traffic: f64,
        mut ours: impl FnMut(kernel_primitives::BufferSlice<'_, T>, &mut Buffer<T>) -> Result<()>,
        check: impl Fn(&[T], &[T]),
    ) -> Result<()> {
        let (stream, n) = (self.stream, 1usize << self.log2);
        let x = self.x.slice(..n)?;
        let (mut out, theirs) = (stream.buffer_zeroed::<T>(results)?, stream.buffer_zeroed::<T>(results)?);
        let cub = self.peers.map(|peers| peers.algorithm(&format!("{algorithm}_{ty}"), stream, n)).transpose()?;
        stream.synchronize()?;
        let raw = stream.as_raw();
        let from = self.x.address();
        let mut run_ours = || ours(x, &mut out);
        let mut run_cub = || {
            if let Some(cub) = &cub {
                cub(from, theirs.address(), raw);
            }
            Ok(())
        };
        let times = compare(stream, &mut [&mut run_ours, &mut run_cub])?;
        let x = x.to_vec()?;
        check(&x, &out.to_vec()?);
        let mut values = vec![("ms", times[0]), ("GB/s", traffic * (n * size_of::<T>()) as f64 / times[0] / 1e6)];
        if cub.is_some() {
            check(&x, &theirs.to_vec()?);
            values.extend([("CUB ms", times[1]), ("ratio to CUB", times[1] / times[0])]);
        }
        report.row(&format!("{algorithm} {ty} 2^{}", self.log2), &values);
        Ok(())
    }
}
