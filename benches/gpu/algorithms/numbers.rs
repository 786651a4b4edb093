//! Transformations, reductions, scans and differences.

use kernel_primitives::algorithms::{
    Run, adjacent_difference, exclusive_scan, fill, inclusive_scan, reduce, transform,
};
use kernel_primitives::functor::{Sub, Sum, of_pair};
use kernel_primitives::input::zip;
use kernel_primitives::prelude::*;
use kernel_primitives::{Buffer, BufferSlice, BufferSliceMut, Result};

use super::inputs::{Item, Repeated, Steps, random};
use super::{Bench, Case, EVERY, LARGE, MOST, SOME, Single, address, differs, from, from_mut};

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    macro_rules! types {
        ($($name:literal, $t:ty, $sum:ty, $sizes:expr, $sums:expr;)*) => {$(
            bench.transform::<$t>($name, "", $sizes, |run, x, y, out| transform(run, zip(x, y), of_pair(Add), out))?;
            bench.fill::<$t>($name, $sizes, |run, value, out| fill(run, value, out))?;
            bench.reduce::<$t, $sum>($name, "", $sums, |run, x, out| reduce(run, x, Sum, out))?;
            bench.scan::<$t, false>($name, "", $sums, |run, x, out| inclusive_scan(run, x, Add, out))?;
            bench.scan::<$t, true>($name, "", SOME, |run, x, out| exclusive_scan(run, x, <$t>::ZERO, Add, out))?;
            bench.difference::<$t>($name, SOME, |run, x, out| adjacent_difference(run, x, Sub, out))?;
        )*};
    }
    types! {
        "f32", f32, f32, EVERY, EVERY;
        "i32", i32, i32, SOME, EVERY;
        "f64", f64, f64, SOME, MOST;
        "i64", i64, i64, SOME, MOST;
        "f16", f16, f32, SOME, MOST;
    }
    bench.transform::<f32>("f32", "unaligned", LARGE, |run, x, y, out| transform(run, zip(x, y), of_pair(Add), out))?;
    bench.reduce::<f32, f32>("f32", "unaligned", LARGE, |run, x, out| reduce(run, x, Sum, out))?;
    bench.scan::<f32, false>("f32", "unaligned", LARGE, |run, x, out| inclusive_scan(run, x, Add, out))
}

impl Bench<'_> {
    fn transform<T: Item + Arithmetic>(
        &mut self,
        types: &str,
        input: &str,
        sizes: &[u32],
        ours: impl Fn(Run<'_>, BufferSlice<'_, T>, BufferSlice<'_, T>, BufferSliceMut<'_, T>) -> Result<()>,
    ) -> Result<()> {
        for log2 in self.sizes(sizes) {
            let case = Case { algorithm: "transform", types, input, log2 };
            if !self.wants(case) {
                continue;
            }
            let (n, offset, stream) = (case.len(), case.offset(), self.stream);
            let a = Repeated::new(self.period(n), |i| T::of((random(i) % 100) as i64));
            let b = Repeated::new(self.period(n), |i| T::of((random(i + n) % 100) as i64));
            let (x, y) = (a.buffer(stream, n, offset)?, b.buffer(stream, n, offset)?);
            let mut out = stream.buffer_uninit::<T>(n + offset)?;
            let buffers = [address(&x, offset), address(&y, offset), address(&out, offset)];
            self.row(
                case,
                3 * n * size_of::<T>(),
                &buffers,
                &mut out,
                |run, out| ours(run, from(&x, offset)?, from(&y, offset)?, from_mut(out, offset)?),
                |out, _| differs(from(out, offset)?, |i| a.at(i).add(b.at(i))),
            )?;
        }
        Ok(())
    }

    fn fill<T: Item>(
        &mut self,
        types: &str,
        sizes: &[u32],
        ours: impl Fn(Run<'_>, T, &mut Buffer<T>) -> Result<()>,
    ) -> Result<()> {
        for log2 in self.sizes(sizes) {
            let case = Case { algorithm: "fill", types, input: "", log2 };
            if !self.wants(case) {
                continue;
            }
            let n = case.len();
            let mut out = self.stream.buffer_uninit::<T>(n)?;
            self.row(
                case,
                n * size_of::<T>(),
                &[out.address(), 7],
                &mut out,
                |run, out| ours(run, T::of(7), out),
                |out, _| differs(out.as_slice(), |_| T::of(7)),
            )?;
        }
        Ok(())
    }

    fn reduce<T: Item, S: Item>(
        &mut self,
        types: &str,
        input: &str,
        sizes: &[u32],
        ours: impl Fn(Run<'_>, BufferSlice<'_, T>, &mut Buffer<S>) -> Result<()>,
    ) -> Result<()> {
        for log2 in self.sizes(sizes) {
            let case = Case { algorithm: "reduce", types, input, log2 };
            if !self.wants(case) {
                continue;
            }
            let (n, offset, stream) = (case.len(), case.offset(), self.stream);
            let steps = Steps::new(self.period(n));
            let x = steps.repeated::<T>().buffer(stream, n, offset)?;
            let mut out = Single(stream.buffer_uninit::<S>(1)?);
            let buffers = [address(&x, offset), out.0.address(), self.host()];
            self.row(
                case,
                n * size_of::<T>(),
                &buffers,
                &mut out,
                |run, out| ours(run, from(&x, offset)?, &mut out.0),
                |out, _| differs(out.0.as_slice(), |_| steps.sum(0..n)),
            )?;
        }
        Ok(())
    }

    fn scan<T: Item, const EXCLUSIVE: bool>(
        &mut self,
        types: &str,
        input: &str,
        sizes: &[u32],
        ours: impl Fn(Run<'_>, BufferSlice<'_, T>, BufferSliceMut<'_, T>) -> Result<()>,
    ) -> Result<()> {
        let algorithm = if EXCLUSIVE { "exclusive_scan" } else { "inclusive_scan" };
        for log2 in self.sizes(sizes) {
            let case = Case { algorithm, types, input, log2 };
            if !self.wants(case) {
                continue;
            }
            let (n, offset, stream) = (case.len(), case.offset(), self.stream);
            let steps = Steps::new(self.period(n));
            let x = steps.repeated::<T>().buffer(stream, n, offset)?;
            let mut out = stream.buffer_uninit::<T>(n + offset)?;
            let buffers = [address(&x, offset), address(&out, offset)];
            self.row(
                case,
                2 * n * size_of::<T>(),
                &buffers,
                &mut out,
                |run, out| ours(run, from(&x, offset)?, from_mut(out, offset)?),
                |out, _| differs(from(out, offset)?, |i| steps.sum(0..i + usize::from(!EXCLUSIVE))),
            )?;
        }
        Ok(())
    }

    fn difference<T: Item>(
        &mut self,
        types: &str,
        sizes: &[u32],
        ours: impl Fn(Run<'_>, &Buffer<T>, &mut Buffer<T>) -> Result<()>,
    ) -> Result<()> {
        for log2 in self.sizes(sizes) {
            let case = Case { algorithm: "adjacent_difference", types, input: "", log2 };
            if !self.wants(case) {
                continue;
            }
            let (n, stream) = (case.len(), self.stream);
            let period = self.period(n);
            let item = |i: usize| (random(i % period) % 100) as i64;
            let x = Repeated::new(period, |i| T::of(item(i))).buffer(stream, n, 0)?;
            let mut out = stream.buffer_uninit::<T>(n)?;
            let expected = |i: usize| T::of(if i == 0 { item(0) } else { item(i) - item(i - 1) });
            self.row(
                case,
                2 * n * size_of::<T>(),
                &[x.address(), out.address()],
                &mut out,
                |run, out| ours(run, &x, out),
                |out, _| differs(out.as_slice(), expected),
            )?;
        }
        Ok(())
    }
}
