//! `out = x + y` beside CUB's DeviceTransform, and the share of the copy bandwidth.

use kernel_primitives::kernels::map_binary;
use kernel_primitives::prelude::*;
use kernel_primitives::{Device, Dims, Result, Stream};

use crate::harness::{Options, Report, compare};
use crate::peers::Peers;

pub(crate) fn run(device: &Device, options: &Options, report: &mut Report) -> Result<()> {
    let stream = device.stream()?;
    let peers = options.peers.as_deref().map(Peers::open);
    macro_rules! rows {
        ($($name:literal, $t:ty, $items:literal, $value:expr;)*) => {$(
            type_row::<$t>($name, &stream, options, peers.as_ref(), report, $value, |stream, n, x, y, out| {
                let dims = Dims::for_items(n).items_per_thread($items);
                map_binary::<$t, $t, Add, $items>::launch(stream, dims, x, y, out, Add)
            })?;
        )*};
    }
    rows! {
        "f32", f32, 4, |i| (i % 1021) as f32 / 7.0;
        "f64", f64, 2, |i| (i % 1021) as f64 / 7.0;
        "f16", f16, 8, |i| f16::from_f32((i % 1021) as f32 / 7.0);
        "bf16", bf16, 8, |i| bf16::from_f32((i % 1021) as f32 / 7.0);
    }
    Ok(())
}

type Buffer<T> = kernel_primitives::Buffer<T>;

fn type_row<T: Number>(
    name: &str,
    stream: &Stream,
    options: &Options,
    peers: Option<&Peers>,
    report: &mut Report,
    value: fn(usize) -> T,
    add: impl Fn(&Stream, usize, &Buffer<T>, &Buffer<T>, &mut Buffer<T>) -> Result<()>,
) -> Result<()> {
    let log2 = options.log2.min(28);
    let n = 1usize << log2;
    let (a, b): (Vec<T>, Vec<T>) = (0..n).map(|i| (value(i), value(i * 7 + 3))).unzip();
    let (x, y) = (stream.buffer_from(&a)?, stream.buffer_from(&b)?);
    let mut ours = stream.buffer_zeroed::<T>(n)?;
    let theirs = stream.buffer_zeroed::<T>(n)?;
    let mut copy = stream.buffer_zeroed::<T>(n)?;
    stream.synchronize()?;

    let cub = peers.map(|peers| peers.transform_add(name));
    let raw = stream.as_raw();
    let mut run_ours = || add(stream, n, &x, &y, &mut ours);
    let mut run_copy = || copy.as_mut_slice().copy_from_device(stream, x.as_slice());
    let mut run_cub = || {
        if let Some(cub) = &cub {
            cub(x.address(), y.address(), theirs.address(), n, raw);
        }
        Ok(())
    };
    let times = compare(stream, &mut [&mut run_ours, &mut run_cub, &mut run_copy])?;

    let result = ours.to_vec()?;
    for i in 0..n {
        assert!(result[i] == kernel_primitives::Arithmetic::add(a[i], b[i]), "{name}: wrong sum at {i}");
    }
    if cub.is_some() {
        assert!(theirs.to_vec()? == result, "{name}: CUB disagrees");
    }
    let bytes = (n * size_of::<T>()) as f64;
    let bandwidth = 3.0 * bytes / times[0] / 1e6;
    let copied = 2.0 * bytes / times[2] / 1e6;
    let mut values =
        vec![("ms", times[0]), ("GB/s", bandwidth), ("copy GB/s", copied), ("of copy", bandwidth / copied)];
    if cub.is_some() {
        values.extend([("CUB ms", times[1]), ("ratio to CUB", times[1] / times[0])]);
    }
    report.row(&format!("elementwise add {name} 2^{log2}"), &values);
    Ok(())
}
