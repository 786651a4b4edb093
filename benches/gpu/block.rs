//! Reductions and scans of a block beside CUB's BlockReduce and BlockScan: 64 rounds on a thread's items in registers.

use kernel_primitives::prelude::*;
use kernel_primitives::{Buffer, Device, Dims, Result, Stream};

use crate::harness::{Options, Report, compare};
use crate::kernels::block::{reduce, reduce_to_first, scan};
use crate::peers::{BlockPeer, Peers};

const ROUNDS: u32 = 64;

/// Items of a launch: enough for several waves of blocks.
const LEN: usize = 1 << 22;

pub(crate) fn run(device: &Device, options: &Options, report: &mut Report) -> Result<()> {
    let stream = device.stream()?;
    let peers = options.peers.as_deref().map(Peers::open);
    // f32 sums are near each other, i32 sums the same: both wrap.
    let near = |a: f32, b: f32| (a - b).abs() <= 1e-3 * a.abs().max(1e-20);
    let same = |a: i32, b: i32| a == b;
    let float = |i: usize| (i * 7919 % 1021) as f32 / 1021.0;
    let integer = |i: usize| (i * 7919 % 1021) as i32 - 500;
    macro_rules! rows {
        (@ $threads:literal, $kind:literal, $kernel:ident, [$($peer:literal)*], $t:ident, $items:literal, $factor:expr, $value:ident, $equal:ident) => {
            let factor: $t = $factor($threads * $items);
            let name = format!("block {} {} {}x{}", $kind, stringify!($t), $threads, $items);
            let peers: Vec<_> = peers.iter()
                .flat_map(|peers| [$($peer),*].map(|kind| peers.block::<$t>(kind, stringify!($t), $threads, $items)))
                .collect();
            row::<$t>(&name, &stream, report, &peers, factor, $value, $equal, |stream, x, out| {
                let dims = Dims::new((LEN / ($threads * $items)) as u32, $threads);
                $kernel::<$t, $threads, $items>::launch(stream, dims, ROUNDS, factor, x, out)
            })?;
        };
        ($($kind:literal $kernel:ident [$($peer:literal)*] $t:ident $items:literal, $factor:expr, $value:ident, $equal:ident;)*) => {$(
            rows!(@ 128, $kind, $kernel, [$($peer)*], $t, $items, $factor, $value, $equal);
            rows!(@ 256, $kind, $kernel, [$($peer)*], $t, $items, $factor, $value, $equal);
        )*};
    }
    rows! {
        "reduce to first" reduce_to_first ["reduce_to_first"] f32 4, |_: u32| 0.0, float, near;
        "reduce to first" reduce_to_first ["reduce_to_first"] f32 8, |_: u32| 0.0, float, near;
        "reduce to first" reduce_to_first ["reduce_to_first"] i32 4, |_: u32| 0, integer, same;
        "reduce to first" reduce_to_first ["reduce_to_first"] i32 8, |_: u32| 0, integer, same;
        "reduce to all" reduce ["reduce"] f32 4, |_: u32| 0.0, float, near;
        "reduce to all" reduce ["reduce"] f32 8, |_: u32| 0.0, float, near;
        "reduce to all" reduce ["reduce"] i32 4, |_: u32| 0, integer, same;
        "reduce to all" reduce ["reduce"] i32 8, |_: u32| 0, integer, same;
        "scan" scan ["scan_raking" "scan_warps"] f32 4, |tile: u32| 1.0 / tile as f32, float, near;
        "scan" scan ["scan_raking" "scan_warps"] f32 8, |tile: u32| 1.0 / tile as f32, float, near;
        "scan" scan ["scan_raking" "scan_warps"] i32 4, |_: u32| 3, integer, same;
        "scan" scan ["scan_raking" "scan_warps"] i32 8, |_: u32| 3, integer, same;
    }
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "called by one macro")]
fn row<T: Number>(
    name: &str,
    stream: &Stream,
    report: &mut Report,
    peers: &[BlockPeer<T>],
    factor: T,
    value: impl Fn(usize) -> T,
    equal: impl Fn(T, T) -> bool,
    launch: impl Fn(&Stream, &Buffer<T>, &mut Buffer<T>) -> Result<()>,
) -> Result<()> {
    let x = stream.buffer_from(&(0..LEN).map(value).collect::<Vec<T>>())?;
    let mut ours = stream.buffer_zeroed::<T>(LEN)?;
    let theirs = stream.buffer_zeroed::<T>(LEN)?;
    stream.synchronize()?;

    let mut times = Vec::new();
    let mut ms = f64::INFINITY;
    let raw = stream.as_raw();
    for peer in peers {
        let mut run_ours = || launch(stream, &x, &mut ours);
        let mut run_peer = || {
            peer(ROUNDS, factor, x.address(), theirs.address(), LEN, raw);
            Ok(())
        };
        let pair = compare(stream, &mut [&mut run_ours, &mut run_peer])?;
        ms = ms.min(pair[0]);
        times.push(pair[1]);
        let (a, b) = (ours.to_vec()?, theirs.to_vec()?);
        for i in 0..LEN {
            assert!(equal(a[i], b[i]), "{name}: CUB disagrees at {i}");
        }
    }
    if peers.is_empty() {
        ms = compare(stream, &mut [&mut || launch(stream, &x, &mut ours)])?[0];
    }
    let mut values = vec![("ms", ms), ("items/ns", LEN as f64 * f64::from(ROUNDS) / ms / 1e6)];
    let best = times.into_iter().fold(f64::INFINITY, f64::min);
    if best.is_finite() {
        values.extend([("CUB ms", best), ("ratio to CUB", best / ms)]);
    }
    report.row(name, &values);
    Ok(())
}
