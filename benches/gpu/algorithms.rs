//! Algorithms over whole buffers beside CUB's, small and large.

use kernel_primitives::algorithms::{
    Run, Workspace, inclusive_scan, reduce, reduce_by_key, select_if, sort_keys, sort_pairs,
};
use kernel_primitives::functor::{Less, LessThan, Sum, bind_second};
use kernel_primitives::prelude::*;
use kernel_primitives::{Buffer, Device, Result, Stream};

use crate::harness::{Options, Report, compare};
use crate::peers::Peers;

/// Sizes where launches count and, last, one far beyond the cache, which the command line gives.
const SMALL: [u32; 3] = [10, 16, 20];

pub(crate) fn run(device: &Device, options: &Options, report: &mut Report) -> Result<()> {
    let stream = device.stream()?;
    let peers = options.peers.as_deref().map(Peers::open);
    let mut rows = Rows {
        peers: peers.as_ref(),
        stream: &stream,
        report,
        workspace: Workspace::with_capacity(&stream, 1 << 26)?,
        sizes: SMALL.into_iter().chain([options.log2]).collect(),
    };
    rows.numbers::<f32>(
        "f32",
        |i| ((i * 7919) % 1021) as f32 / 1021.0 - 0.25,
        |sum, total| (sum as f64 - total).abs() <= 1e-4 * total.abs().max(1e3),
    )?;
    rows.numbers::<f64>(
        "f64",
        |i| ((i * 7919) % 1021) as f64 / 1021.0 - 0.25,
        |sum, total| (sum - total).abs() <= 1e-9 * total.abs().max(1e3),
    )?;
    rows.numbers::<i32>("i32", |i| ((i * 7919) % 1021) as i32 % 7 - 3, |sum, total| sum as f64 == total)?;
    rows.numbers::<i64>("i64", |i| ((i * 7919) % 1021) as i64 - 510, |sum, total| sum as f64 == total)?;
    rows.selections()?;
    rows.keys()?;
    rows.sorts::<u32>("u32", |bits| bits as u32)?;
    rows.sorts::<f32>("f32", |bits| (bits as i32) as f32)?;
    rows.sorts::<u64>("u64", |bits| bits)?;
    rows.pairs()
}

/// Random bits by a number.
fn random(i: usize) -> u64 {
    let mut z = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

struct Rows<'a> {
    peers: Option<&'a Peers>,
    stream: &'a Stream,
    report: &'a mut Report,
    workspace: Workspace,
    sizes: Vec<u32>,
}

impl Rows<'_> {
    fn numbers<T: Measured>(
        &mut self,
        ty: &str,
        value: impl Fn(usize) -> T,
        equal: impl Fn(T, f64) -> bool,
    ) -> Result<()> {
        let stream = self.stream;
        for log2 in self.sizes.clone() {
            let n = 1usize << log2;
            let items: Vec<T> = (0..n).map(&value).collect();
            let x = stream.buffer_from(&items)?;
            let (mut out, theirs) = (stream.buffer_zeroed::<T>(1)?, stream.buffer_zeroed::<T>(1)?);
            let total = items.iter().map(|&x| x.number()).sum::<f64>();
            self.row("reduce", ty, log2, n * size_of::<T>(), &[x.address(), theirs.address()], &mut |run| {
                T::sum(run, &x, &mut out)
            })?;
            assert!(equal(out.to_vec()?[0], total) && equal(theirs.to_vec()?[0], total) | self.peers.is_none());

            let (mut out, theirs) = (stream.buffer_zeroed::<T>(n)?, stream.buffer_zeroed::<T>(n)?);
            self.row(
                "inclusive_scan",
                ty,
                log2,
                2 * n * size_of::<T>(),
                &[x.address(), theirs.address()],
                &mut |run| T::sums(run, &x, &mut out),
            )?;
            let mut total = 0.0;
            let (out, theirs) = (out.to_vec()?, theirs.to_vec()?);
            for i in 0..n {
                total += items[i].number();
                assert!(equal(out[i], total) && equal(theirs[i], total) | self.peers.is_none(), "sum {i}");
            }
        }
        Ok(())
    }

    /// Half of the items are kept.
    fn selections(&mut self) -> Result<()> {
        let stream = self.stream;
        for log2 in self.sizes.clone() {
            let n = 1usize << log2;
            let items: Vec<u32> = (0..n).map(|i| random(i) as u32).collect();
            let x = stream.buffer_from(&items)?;
            let (mut out, theirs) = (stream.buffer_zeroed::<u32>(n)?, stream.buffer_zeroed::<u32>(n)?);
            let (mut count, their_count) = (stream.buffer_zeroed::<u64>(1)?, stream.buffer_zeroed::<u64>(1)?);
            let buffers = [x.address(), theirs.address(), their_count.address()];
            self.row("select", "u32", log2, 6 * n, &buffers, &mut |run| {
                select_if(run, &x, bind_second(LessThan, 1 << 31), &mut out, &mut count)
            })?;
            let mut expected: Vec<u32> = items.into_iter().filter(|&x| x < 1 << 31).collect();
            assert_eq!(count.to_vec()?, [expected.len() as u64]);
            expected.resize(n, 0);
            assert!(out.to_vec()? == expected && (self.peers.is_none() || theirs.to_vec()? == expected));
        }
        Ok(())
    }

    /// Runs of 16 equal keys.
    fn keys(&mut self) -> Result<()> {
        let stream = self.stream;
        for log2 in self.sizes.clone() {
            let n = 1usize << log2;
            let keys = stream.buffer_from(&(0..n).map(|i| i as u32 / 16).collect::<Vec<_>>())?;
            let values = stream.buffer_from(&(0..n).map(|i| (i % 9) as f32).collect::<Vec<_>>())?;
            let ours = (
                &mut stream.buffer_zeroed::<u32>(n)?,
                &mut stream.buffer_zeroed::<f32>(n)?,
                &mut stream.buffer_zeroed::<u64>(1)?,
            );
            let theirs =
                (stream.buffer_zeroed::<u32>(n)?, stream.buffer_zeroed::<f32>(n)?, stream.buffer_zeroed::<u64>(1)?);
            let buffers =
                [keys.address(), values.address(), theirs.0.address(), theirs.1.address(), theirs.2.address()];
            self.row("reduce_by_key", "u32_f32", log2, 8 * n + n / 2, &buffers, &mut |run| {
                reduce_by_key(run, &keys, &values, Add, &mut *ours.0, &mut *ours.1, &mut *ours.2)
            })?;
            assert_eq!(ours.2.to_vec()?, [n as u64 / 16]);
            let sums: Vec<f32> =
                (0..n / 16).map(|run| (run * 16..run * 16 + 16).map(|i| (i % 9) as f32).sum()).collect();
            assert!(
                ours.1.to_vec()?[..n / 16] == sums && (self.peers.is_none() || theirs.1.to_vec()?[..n / 16] == sums)
            );
        }
        Ok(())
    }

    fn sorts<K: SortMeasured>(&mut self, ty: &str, key: impl Fn(u64) -> K) -> Result<()> {
        let stream = self.stream;
        for log2 in self.sizes.clone() {
            let n = 1usize << log2;
            let keys: Vec<K> = (0..n).map(|i| key(random(i))).collect();
            let x = stream.buffer_from(&keys)?;
            let (mut out, theirs) = (stream.buffer_zeroed::<K>(n)?, stream.buffer_zeroed::<K>(n)?);
            // One read and one write a digit of 8 bits, and one read to count them.
            let bytes = (2 * size_of::<K>() + 1) * n * size_of::<K>();
            self.row("sort_keys", ty, log2, bytes, &[x.address(), theirs.address()], &mut |run| {
                K::sort(run, &x, &mut out)
            })?;
            let out = out.to_vec()?;
            // In order, and the same items: by a sum that mixes their bits.
            let mixed =
                |keys: &[K]| keys.iter().fold(0u64, |sum, key| sum.wrapping_add(random(K::number(*key) as usize)));
            assert!(out.is_sorted_by_key(|key| key.to_sort_bits()) && mixed(&out) == mixed(&keys));
            assert!(self.peers.is_none() || theirs.to_vec()? == out);
        }
        Ok(())
    }

    fn pairs(&mut self) -> Result<()> {
        let stream = self.stream;
        for log2 in self.sizes.clone() {
            let n = 1usize << log2;
            let keys = stream.buffer_from(&(0..n).map(|i| random(i) as u32).collect::<Vec<_>>())?;
            let values = stream.buffer_from(&(0..n as u32).collect::<Vec<_>>())?;
            let (mut keys_out, mut values_out) = (stream.buffer_zeroed::<u32>(n)?, stream.buffer_zeroed::<u32>(n)?);
            let theirs = (stream.buffer_zeroed::<u32>(n)?, stream.buffer_zeroed::<u32>(n)?);
            let buffers = [keys.address(), values.address(), theirs.0.address(), theirs.1.address()];
            self.row("sort_pairs", "u32_u32", log2, 4 * n + 4 * 16 * n, &buffers, &mut |run| {
                sort_pairs(run, &keys, &values, &mut keys_out, &mut values_out, Less, 0..32)
            })?;
            // Keys in order, equal ones in the order of their values, and each with its own.
            let (keys, values) = (keys_out.to_vec()?, values_out.to_vec()?);
            assert!((1..n).all(|i| (keys[i - 1], values[i - 1]) < (keys[i], values[i])));
            assert!((0..n).all(|i| keys[i] == random(values[i] as usize) as u32));
            assert!(self.peers.is_none() || theirs.1.to_vec()? == values);
        }
        Ok(())
    }

    /// Measures ours beside CUB's on its buffers; `bytes` cross to or from memory.
    fn row(
        &mut self,
        algorithm: &str,
        ty: &str,
        log2: u32,
        bytes: usize,
        buffers: &[u64],
        ours: &mut dyn FnMut(Run<'_>) -> Result<()>,
    ) -> Result<()> {
        let (stream, n) = (self.stream, 1usize << log2);
        let cub =
            self.peers.map(|peers| peers.algorithm(&format!("{algorithm}_{ty}"), stream, n, buffers)).transpose()?;
        stream.synchronize()?;
        let workspace = &mut self.workspace;
        let mut run_ours = || ours(Run::on(stream).with(workspace));
        let mut run_cub = || {
            if let Some(cub) = &cub {
                cub();
            }
            Ok(())
        };
        let times = compare(stream, &mut [&mut run_ours, &mut run_cub])?;
        let mut values = vec![("ms", times[0]), ("GB/s", bytes as f64 / times[0] / 1e6)];
        if cub.is_some() {
            values.extend([("CUB ms", times[1]), ("ratio to CUB", times[1] / times[0])]);
        }
        self.report.row(&format!("{algorithm} {ty} 2^{log2}"), &values);
        Ok(())
    }
}

/// Types with shipped sums.
trait Measured: Number {
    /// For comparisons.
    fn number(self) -> f64;
    fn sum(run: Run<'_>, x: &Buffer<Self>, out: &mut Buffer<Self>) -> Result<()>;
    fn sums(run: Run<'_>, x: &Buffer<Self>, out: &mut Buffer<Self>) -> Result<()>;
}

macro_rules! measured {
    ($($t:ty)*) => {$(
        impl Measured for $t {
            fn number(self) -> f64 {
                self as f64
            }
            fn sum(run: Run<'_>, x: &Buffer<Self>, out: &mut Buffer<Self>) -> Result<()> {
                reduce(run, x, Sum, out)
            }
            fn sums(run: Run<'_>, x: &Buffer<Self>, out: &mut Buffer<Self>) -> Result<()> {
                inclusive_scan(run, x, Add, out)
            }
        }
    )*};
}
measured! { f32 f64 i32 i64 }

/// Types with a shipped sort.
trait SortMeasured: SortKey + PartialEq {
    fn number(self) -> u64;
    fn sort(run: Run<'_>, x: &Buffer<Self>, out: &mut Buffer<Self>) -> Result<()>;
}

macro_rules! sorted {
    ($($t:ty)*) => {$(
        impl SortMeasured for $t {
            fn number(self) -> u64 {
                self.to_sort_bits() as u64
            }
            fn sort(run: Run<'_>, x: &Buffer<Self>, out: &mut Buffer<Self>) -> Result<()> {
                sort_keys(run, x, out, Less, 0..Self::SORT_BITS)
            }
        }
    )*};
}
sorted! { u32 f32 u64 }
