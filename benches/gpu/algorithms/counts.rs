//! Histograms, reductions and scans of segments, and searches.

use kernel_primitives::algorithms::{Run, histogram_even, lower_bound, segmented_inclusive_scan, segmented_reduce};
use kernel_primitives::functor::Sum;
use kernel_primitives::prelude::*;
use kernel_primitives::{Buffer, Result};

use super::inputs::{Item, Repeated, Steps, random};
use super::{Bench, Case, LARGE, MOST, SOME, differs};

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    for (input, sizes) in [("", MOST), ("constant", LARGE), ("few distinct", LARGE)] {
        bench.histogram::<u8>("u8", input, sizes, 256, |run, x, counts| histogram_even(run, x, 0, 256, counts))?;
        bench
            .histogram::<f32>("f32", input, sizes, 256, |run, x, counts| histogram_even(run, x, 0.0, 256.0, counts))?;
    }
    bench.histogram::<i32>("i32", "2048 bins", SOME, 2048, |run, x, counts| histogram_even(run, x, 0, 2048, counts))?;

    for (input, sizes) in [("", MOST), ("segments of 32", LARGE), ("segments of 1 to 1000000", LARGE)] {
        bench.segmented_reduce::<f32>("f32", input, sizes, |run, x, offsets, out| {
            segmented_reduce(run, x, offsets, Sum, out)
        })?;
    }
    bench
        .segmented_reduce::<i32>("i32", "", SOME, |run, x, offsets, out| segmented_reduce(run, x, offsets, Sum, out))?;
    bench
        .segmented_reduce::<f64>("f64", "", SOME, |run, x, offsets, out| segmented_reduce(run, x, offsets, Sum, out))?;

    let sums = |segment: &mut [u32]| {
        let mut sum = 0u32;
        for x in segment {
            sum = sum.wrapping_add(*x);
            *x = sum;
        }
    };
    for (input, sizes) in [
        ("", MOST),
        ("segments of 16", LARGE),
        ("segments of 256", LARGE),
        ("segments of 2^20", LARGE),
        ("segments of Zipf lengths", LARGE),
    ] {
        bench.segmented("segmented_scan", input, sizes, sums, |run, x, offsets, out| {
            segmented_inclusive_scan(run, x, offsets, Add, out)
        })?;
    }

    bench.lower_bound::<u32>("u32", MOST, |run, sorted, queries, out| lower_bound(run, sorted, queries, out))?;
    bench.lower_bound::<f64>("f64", &[16, 24], |run, sorted, queries, out| lower_bound(run, sorted, queries, out))?;
    bench.lower_bound::<u64>("u64", &[16, 24], |run, sorted, queries, out| lower_bound(run, sorted, queries, out))
}

impl Bench<'_> {
    /// Of numbers from 0, a bin each.
    fn histogram<T: Item>(
        &mut self,
        types: &str,
        input: &str,
        sizes: &[u32],
        bins: usize,
        ours: impl Fn(Run<'_>, &Buffer<T>, &mut Buffer<u32>) -> Result<()>,
    ) -> Result<()> {
        for log2 in self.sizes(sizes) {
            let case = Case { algorithm: "histogram_even", types, input, log2 };
            if !self.wants(case) {
                continue;
            }
            let (n, period, stream) = (case.len(), self.period(case.len()), self.stream);
            let bin = |i| match input {
                "constant" => 7,
                "few distinct" => random(i) as usize % 8,
                _ => random(i) as usize % bins,
            };
            let mut counts = vec![0; bins];
            (0..period).for_each(|i| counts[bin(i)] += (n / period) as u32);
            let x = Repeated::new(period, |i| T::of(bin(i) as i64)).buffer(stream, n, 0)?;
            let mut out = stream.buffer_uninit::<u32>(bins)?;
            self.row(
                case,
                n * size_of::<T>() + bins * 4,
                &[x.address(), out.address(), bins as u64, bins as u64],
                &mut out,
                |run, out| ours(run, &x, out),
                |out, _| differs(out.as_slice(), |i| counts[i]),
            )?;
        }
        Ok(())
    }

    /// Segments of 1024 items, unless the input's name says otherwise.
    fn segmented_reduce<T: Item>(
        &mut self,
        types: &str,
        input: &str,
        sizes: &[u32],
        ours: impl Fn(Run<'_>, &Buffer<T>, &Buffer<u32>, &mut Buffer<T>) -> Result<()>,
    ) -> Result<()> {
        for log2 in self.sizes(sizes) {
            let case = Case { algorithm: "segmented_reduce", types, input, log2 };
            if !self.wants(case) {
                continue;
            }
            let (n, stream) = (case.len(), self.stream);
            let mut offsets = vec![0u32];
            let mut end = 0;
            while end < n {
                end += match input {
                    "" => 1024,
                    "segments of 32" => 32,
                    _ => random(offsets.len()) as usize % 1_000_000 + 1,
                };
                offsets.push(end.min(n) as u32);
            }
            let segments = offsets.len() - 1;
            let steps = Steps::new(self.period(n));
            let (x, ends) = (steps.repeated::<T>().buffer(stream, n, 0)?, stream.buffer_from(&offsets)?);
            let mut out = stream.buffer_uninit::<T>(segments)?;
            self.row(
                case,
                n * size_of::<T>() + offsets.len() * 4 + segments * size_of::<T>(),
                &[x.address(), ends.address(), out.address(), segments as u64],
                &mut out,
                |run, out| ours(run, &x, &ends, out),
                |out, _| differs(out.as_slice(), |i| steps.sum(offsets[i] as usize..offsets[i + 1] as usize)),
            )?;
        }
        Ok(())
    }

    /// What makes as many items of those of segments: `result` does so in their place. A segment has 1024 items, unless the input's
    /// name says otherwise.
    pub(super) fn segmented(
        &mut self,
        algorithm: &str,
        input: &str,
        sizes: &[u32],
        result: impl Fn(&mut [u32]),
        ours: impl Fn(Run<'_>, &Buffer<u32>, &Buffer<u32>, &mut Buffer<u32>) -> Result<()>,
    ) -> Result<()> {
        for log2 in self.sizes(sizes) {
            let case = Case { algorithm, types: "u32", input, log2 };
            if !self.wants(case) {
                continue;
            }
            let (n, stream) = (case.len(), self.stream);
            let length = |segment: usize| match input {
                "" => 1024,
                "segments of 16" => 16,
                "segments of 256" => 256,
                "segments of 2^20" => 1 << 20,
                // Of `k` items or more with a chance of one in `k`.
                _ => (1 << 20) / (1 + random(segment) as usize % (1 << 20)),
            };
            // A segment ends with each period.
            let period = self.period(n).max(length(0).min(n));
            let (mut ends, mut end) = (vec![0], 0);
            while end < period {
                end = (end + length(ends.len())).min(period);
                ends.push(end);
            }
            let keys = Repeated::new(period, |i| random(i) as u32);
            let x = keys.buffer(stream, n, 0)?;
            let mut expected = keys.0;
            ends.windows(2).for_each(|ends| result(&mut expected[ends[0]..ends[1]]));
            let periods = (0..n).step_by(period);
            let offsets = periods.flat_map(|first| ends[1..].iter().map(move |end| (first + end) as u32));
            let offsets: Vec<u32> = [0].into_iter().chain(offsets).collect();
            let ends = stream.buffer_from(&offsets)?;
            let mut out = stream.buffer_uninit::<u32>(n)?;
            self.row(
                case,
                2 * n * 4 + offsets.len() * 4,
                &[x.address(), ends.address(), out.address(), (offsets.len() - 1) as u64],
                &mut out,
                |run, out| ours(run, &x, &ends, out),
                |out, _| differs(out.as_slice(), |i| expected[i % expected.len()]),
            )?;
        }
        Ok(())
    }

    /// As many random numbers as there are sorted ones, all even numbers from 0.
    fn lower_bound<T: Item>(
        &mut self,
        types: &str,
        sizes: &[u32],
        ours: impl Fn(Run<'_>, &Buffer<T>, &Buffer<T>, &mut Buffer<u64>) -> Result<()>,
    ) -> Result<()> {
        for log2 in self.sizes(sizes) {
            let case = Case { algorithm: "lower_bound", types, input: "", log2 };
            if !self.wants(case) {
                continue;
            }
            let (n, period, stream) = (case.len(), self.period(case.len()), self.stream);
            let sorted = stream.buffer_from(&(0..n).map(|i| T::of(2 * i as i64)).collect::<Vec<_>>())?;
            let query = |i: usize| random(i % period) as usize % (2 * n);
            let queries = Repeated::new(period, |i| T::of(query(i) as i64)).buffer(stream, n, 0)?;
            let mut out = stream.buffer_uninit::<u64>(n)?;
            self.row(
                case,
                n * (2 * size_of::<T>() + 8),
                &[sorted.address(), queries.address(), out.address()],
                &mut out,
                |run, out| ours(run, &sorted, &queries, out),
                |out, _| differs(out.as_slice(), |i| query(i).div_ceil(2) as u64),
            )?;
        }
        Ok(())
    }
}
