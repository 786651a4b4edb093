//! Runs of equal keys: unique items, run lengths, and reductions and scans by key.

use std::ops::Range;

use kernel_primitives::algorithms::{Run, inclusive_scan_by_key, reduce_by_key, run_length_encode, unique};
use kernel_primitives::prelude::*;
use kernel_primitives::{Buffer, Result};

use super::inputs::{Item, Lengths, Runs, Steps};
use super::{Bench, Case, Counted, LARGE, MOST, SOME, Verdict, differs};

/// What runs of an input's name are; of those without a name, 16 items each.
fn lengths(input: &str) -> Lengths {
    match input {
        "" => Lengths::Fixed(16),
        "runs of 1000" => Lengths::Mean(1000),
        "constant" => Lengths::All,
        other => panic!("no input is called {other}"),
    }
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    for (input, sizes) in [("", MOST), ("runs of 1000", LARGE), ("constant", LARGE)] {
        bench.unique::<u32>("u32", input, sizes, |run, x, out, count| unique(run, x, out, count))?;
        bench.encode::<u32>("u32", input, sizes, |run, x, (items, lengths, count)| {
            run_length_encode(run, x, items, lengths, count)
        })?;
        bench.reduce_by_key::<u32, f32>("u32_f32", input, sizes, |run, (keys, values), (out, sums, count)| {
            reduce_by_key(run, keys, values, Add, out, sums, count)
        })?;
        bench.scan_by_key::<u32, f32>("u32_f32", input, sizes, |run, keys, values, out| {
            inclusive_scan_by_key(run, keys, values, Add, out)
        })?;
    }
    macro_rules! types {
        ($($name:literal, $t:ty;)*) => {$(
            bench.unique::<$t>($name, "", SOME, |run, x, out, count| unique(run, x, out, count))?;
        )*};
    }
    types! { "i32", i32; "i64", i64; "f32", f32; "f64", f64; "f16", f16; }
    bench.encode::<f32>("f32", "", SOME, |run, x, (items, lengths, count)| {
        run_length_encode(run, x, items, lengths, count)
    })?;
    bench.encode::<u64>("u64", "", SOME, |run, x, (items, lengths, count)| {
        run_length_encode(run, x, items, lengths, count)
    })?;
    bench.reduce_by_key::<u32, f64>("u32_f64", "", SOME, |run, (keys, values), (out, sums, count)| {
        reduce_by_key(run, keys, values, Add, out, sums, count)
    })?;
    bench.reduce_by_key::<u64, u32>("u64_u32", "", SOME, |run, (keys, values), (out, sums, count)| {
        reduce_by_key(run, keys, values, Add, out, sums, count)
    })?;
    bench.scan_by_key::<u32, u32>("u32_u32", "", SOME, |run, keys, values, out| {
        inclusive_scan_by_key(run, keys, values, Add, out)
    })
}

/// What a reduction by key writes.
type Reduced<'a, K, V> = (&'a mut Buffer<K>, &'a mut Buffer<V>, &'a mut Buffer<u64>);

impl Bench<'_> {
    fn unique<T: Item>(
        &mut self,
        types: &str,
        input: &str,
        sizes: &[u32],
        ours: impl Fn(Run<'_>, &Buffer<T>, &mut Buffer<T>, &mut Buffer<u64>) -> Result<()>,
    ) -> Result<()> {
        for log2 in self.sizes(sizes) {
            let case = Case { algorithm: "unique", types, input, log2 };
            if !self.wants(case) {
                continue;
            }
            let (n, stream) = (case.len(), self.stream);
            let runs = Runs::new(n, self.period(n), lengths(input));
            let x = runs.keys::<T>().buffer(stream, n, 0)?;
            let mut out = Counted::new(stream, stream.buffer_uninit::<T>(n)?)?;
            let buffers = [x.address(), out.items.address(), out.count.address(), self.host()];
            self.row(
                case,
                (n + runs.count()) * size_of::<T>(),
                &buffers,
                &mut out,
                |run, out| ours(run, &x, &mut out.items, &mut out.count),
                |out, _| match out.check(runs.count())? {
                    None => differs(out.items.slice(..runs.count())?, |run| runs.key(run)),
                    wrong => Ok(wrong),
                },
            )?;
        }
        Ok(())
    }

    fn encode<T: Item>(
        &mut self,
        types: &str,
        input: &str,
        sizes: &[u32],
        ours: impl Fn(Run<'_>, &Buffer<T>, Reduced<'_, T, u32>) -> Result<()>,
    ) -> Result<()> {
        for log2 in self.sizes(sizes) {
            let case = Case { algorithm: "run_length_encode", types, input, log2 };
            if !self.wants(case) {
                continue;
            }
            let (n, stream) = (case.len(), self.stream);
            let runs = Runs::new(n, self.period(n), lengths(input));
            let x = runs.keys::<T>().buffer(stream, n, 0)?;
            let mut out = Counted::new(stream, (stream.buffer_uninit::<T>(n)?, stream.buffer_uninit::<u32>(n)?))?;
            let (items, lengths) = (out.items.0.address(), out.items.1.address());
            let buffers = [x.address(), items, lengths, out.count.address(), self.host()];
            self.row(
                case,
                n * size_of::<T>() + runs.count() * (size_of::<T>() + 4),
                &buffers,
                &mut out,
                |run, out| ours(run, &x, (&mut out.items.0, &mut out.items.1, &mut out.count)),
                |out, _| runs.check(out, |range| range.len() as u32),
            )?;
        }
        Ok(())
    }

    fn reduce_by_key<K: Item, V: Item>(
        &mut self,
        types: &str,
        input: &str,
        sizes: &[u32],
        ours: impl Fn(Run<'_>, (&Buffer<K>, &Buffer<V>), Reduced<'_, K, V>) -> Result<()>,
    ) -> Result<()> {
        for log2 in self.sizes(sizes) {
            let case = Case { algorithm: "reduce_by_key", types, input, log2 };
            if !self.wants(case) {
                continue;
            }
            let (n, stream) = (case.len(), self.stream);
            let runs = Runs::new(n, self.period(n), lengths(input));
            let steps = Steps::new(self.period(n));
            let keys = runs.keys::<K>().buffer(stream, n, 0)?;
            let values = steps.repeated::<V>().buffer(stream, n, 0)?;
            let mut out = Counted::new(stream, (stream.buffer_uninit::<K>(n)?, stream.buffer_uninit::<V>(n)?))?;
            let (firsts, sums) = (out.items.0.address(), out.items.1.address());
            let buffers = [keys.address(), values.address(), firsts, sums, out.count.address(), self.host()];
            self.row(
                case,
                (n + runs.count()) * (size_of::<K>() + size_of::<V>()),
                &buffers,
                &mut out,
                |run, out| ours(run, (&keys, &values), (&mut out.items.0, &mut out.items.1, &mut out.count)),
                |out, _| runs.check(out, |range| steps.sum(range)),
            )?;
        }
        Ok(())
    }

    fn scan_by_key<K: Item, V: Item>(
        &mut self,
        types: &str,
        input: &str,
        sizes: &[u32],
        ours: impl Fn(Run<'_>, &Buffer<K>, &Buffer<V>, &mut Buffer<V>) -> Result<()>,
    ) -> Result<()> {
        for log2 in self.sizes(sizes) {
            let case = Case { algorithm: "scan_by_key", types, input, log2 };
            if !self.wants(case) {
                continue;
            }
            let (n, stream) = (case.len(), self.stream);
            let runs = Runs::new(n, self.period(n), lengths(input));
            let steps = Steps::new(self.period(n));
            let keys = runs.keys::<K>().buffer(stream, n, 0)?;
            let values = steps.repeated::<V>().buffer(stream, n, 0)?;
            let mut out = stream.buffer_uninit::<V>(n)?;
            self.row(
                case,
                n * (size_of::<K>() + 2 * size_of::<V>()),
                &[keys.address(), values.address(), out.address()],
                &mut out,
                |run, out| ours(run, &keys, &values, out),
                |out, _| differs(out.as_slice(), |i| steps.sum(runs.start_of(i)..i + 1)),
            )?;
        }
        Ok(())
    }
}

impl Runs {
    /// What is wrong with the first keys of runs, and with what there is of each run.
    fn check<K: Item, V: Item>(
        &self,
        out: &Counted<(Buffer<K>, Buffer<V>)>,
        value: impl Fn(Range<usize>) -> V,
    ) -> Verdict {
        if let Some(wrong) = out.check(self.count())? {
            return Ok(Some(wrong));
        }
        if let Some(wrong) = differs(out.items.0.slice(..self.count())?, |run| self.key(run))? {
            return Ok(Some(wrong));
        }
        differs(out.items.1.slice(..self.count())?, |run| value(self.range(run)))
    }
}
