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
    // The sums of CUB's atomics are the same in each run for whole numbers only, and ours for all.
    rows! {
        "reduce to first" reduce_to_first ["reduce_to_first_warps" "reduce_to_first_raking" "reduce_to_first_commutative"] f32 4, |_: u32| 0.0, float, near;
        "reduce to first" reduce_to_first ["reduce_to_first_warps" "reduce_to_first_raking" "reduce_to_first_commutative"] f32 8, |_: u32| 0.0, float, near;
        "reduce to first" reduce_to_first ["reduce_to_first_warps" "reduce_to_first_raking" "reduce_to_first_commutative" "reduce_to_first_atomics"] i32 4, |_: u32| 0, integer, same;
        "reduce to first" reduce_to_first ["reduce_to_first_warps" "reduce_to_first_raking" "reduce_to_first_commutative" "reduce_to_first_atomics"] i32 8, |_: u32| 0, integer, same;
        "reduce to all" reduce ["reduce_warps" "reduce_raking" "reduce_commutative"] f32 4, |_: u32| 0.0, float, near;
        "reduce to all" reduce ["reduce_warps" "reduce_raking" "reduce_commutative"] f32 8, |_: u32| 0.0, float, near;
        "reduce to all" reduce ["reduce_warps" "reduce_raking" "reduce_commutative" "reduce_atomics"] i32 4, |_: u32| 0, integer, same;
        "reduce to all" reduce ["reduce_warps" "reduce_raking" "reduce_commutative" "reduce_atomics"] i32 8, |_: u32| 0, integer, same;
        "scan" scan ["scan_warps" "scan_raking" "scan_memoize"] f32 4, |tile: u32| 1.0 / tile as f32, float, near;
        "scan" scan ["scan_warps" "scan_raking" "scan_memoize"] f32 8, |tile: u32| 1.0 / tile as f32, float, near;
        "scan" scan ["scan_warps" "scan_raking" "scan_memoize"] i32 4, |_: u32| 3, integer, same;
        "scan" scan ["scan_warps" "scan_raking" "scan_memoize"] i32 8, |_: u32| 3, integer, same;
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
    let outs: Vec<Buffer<T>> = peers.iter().map(|_| stream.buffer_zeroed(LEN)).collect::<Result<_>>()?;
    stream.synchronize()?;

    let raw = stream.as_raw();
    let mut run_ours = || launch(stream, &x, &mut ours);
    let runs = peers.iter().zip(&outs).map(|(peer, out)| {
        let (x, out) = (x.address(), out.address());
        move || {
            peer(ROUNDS, factor, x, out, LEN, raw);
            Ok(())
        }
    });
    let mut runs: Vec<_> = runs.collect();
    let mut contenders: Vec<&mut dyn FnMut() -> Result<()>> = vec![&mut run_ours];
    contenders.extend(runs.iter_mut().map(|run| run as &mut dyn FnMut() -> Result<()>));
    let times = compare(stream, &mut contenders)?;
    let found = ours.to_vec()?;
    for out in &outs {
        if let Some(at) = found.iter().zip(out.to_vec()?).position(|(&a, b)| !equal(a, b)) {
            report.failure(format!("{name}: CUB disagrees at {at}"));
        }
    }
    let ms = times[0];
    let mut values = vec![("ms", ms), ("items/ns", LEN as f64 * f64::from(ROUNDS) / ms / 1e6)];
    let best = times[1..].iter().copied().fold(f64::INFINITY, f64::min);
    if best.is_finite() {
        values.extend([("CUB ms", best), ("ratio to CUB", best / ms)]);
    }
    report.row(name, &values);
    Ok(())
}
