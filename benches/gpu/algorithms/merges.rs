//! Merges, sorts by comparison, also of segments, and the first few of many.

use kernel_primitives::algorithms::{Run, merge, segmented_sort, sort_by, sort_pairs_by, top_k};
use kernel_primitives::functor::{Greater, Less};
use kernel_primitives::{Buffer, Result, f16};

use super::inputs::{Item, Repeated, random};
use super::sorts::{Random, key};
use super::{Bench, Case, LARGE, MOST, OWN, SOME, differs};
use crate::kernels::orders::OwnOrder;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    bench.sort_keys::<u32>("sort_by", "u32", "", MOST, |run, x, out| sort_by(run, x, Less, out))?;
    bench.sort_keys::<f32>("sort_by", "f32", "", SOME, |run, x, out| sort_by(run, x, Less, out))?;
    bench.sort_keys::<i64>("sort_by", "i64", "", SOME, |run, x, out| sort_by(run, x, Less, out))?;
    bench.sort_keys::<f16>("sort_by", "f16", "", SOME, |run, x, out| sort_by(run, x, Less, out))?;
    for input in ["constant", "few distinct"] {
        bench.sort_keys::<u32>("sort_by", "u32", input, LARGE, |run, x, out| sort_by(run, x, Less, out))?;
    }
    bench.sort_pairs::<u32>("sort_pairs_by", "u32_u32", "", SOME, |run, x, out| {
        sort_pairs_by(run, x.0, x.1, Less, out.0, out.1)
    })?;
    bench.sort_keys::<u32>("sort_by", "u32", OWN, MOST, |run, x, out| sort_by(run, x, OwnOrder, out))?;
    bench.sort_keys::<i64>("sort_by", "i64", OWN, SOME, |run, x, out| sort_by(run, x, OwnOrder, out))?;
    bench.sort_pairs::<u64>("sort_pairs_by", "u64_u32", "", SOME, |run, x, out| {
        sort_pairs_by(run, x.0, x.1, Less, out.0, out.1)
    })?;
    bench.sort_pairs::<u32>("sort_pairs_by", "u32_u32", OWN, SOME, |run, x, out| {
        sort_pairs_by(run, x.0, x.1, OwnOrder, out.0, out.1)
    })?;
    bench.merge::<u32>("u32", "", MOST, |run, a, b, out| merge(run, a, b, Less, out))?;
    bench.merge::<u32>("u32", OWN, SOME, |run, a, b, out| merge(run, a, b, OwnOrder, out))?;
    bench.merge::<f32>("f32", "", SOME, |run, a, b, out| merge(run, a, b, Less, out))?;
    bench.merge::<i64>("i64", "", SOME, |run, a, b, out| merge(run, a, b, Less, out))?;
    for (input, k, sizes) in [("", 100, MOST), ("k = 10", 10, LARGE), ("k = 1000", 1000, LARGE)] {
        bench.top_k::<f32>("f32", input, k, sizes, |run, x, out| top_k(run, x, k, Greater, out))?;
    }
    bench.segmented("segmented_sort", "", MOST, <[u32]>::sort_unstable, |run, x, offsets, out| {
        segmented_sort(run, x, offsets, Less, out)
    })
}

impl Bench<'_> {
    /// Of two halves: of each pair of neighbouring numbers, either has one.
    fn merge<T: Item>(
        &mut self,
        types: &str,
        input: &str,
        sizes: &[u32],
        ours: impl Fn(Run<'_>, &Buffer<T>, &Buffer<T>, &mut Buffer<T>) -> Result<()>,
    ) -> Result<()> {
        for log2 in self.sizes(sizes) {
            let case = Case { algorithm: "merge", types, input, log2 };
            if !self.wants(case) {
                continue;
            }
            let (n, stream) = (case.len(), self.stream);
            let half = |other: usize| {
                let items: Vec<T> =
                    (0..n / 2).map(|i| T::of((2 * i + (random(i) as usize ^ other) % 2) as i64)).collect();
                stream.buffer_from(&items)
            };
            let (a, b) = (half(0)?, half(1)?);
            let mut out = stream.buffer_uninit::<T>(n)?;
            self.row(
                case,
                2 * n * size_of::<T>(),
                &[a.address(), b.address(), out.address()],
                &mut out,
                |run, out| ours(run, &a, &b, out),
                |out, _| differs(out.as_slice(), |i| T::of(i as i64)),
            )?;
        }
        Ok(())
    }

    /// The largest few.
    fn top_k<K: Random>(
        &mut self,
        types: &str,
        input: &str,
        k: usize,
        sizes: &[u32],
        ours: impl Fn(Run<'_>, &Buffer<K>, &mut Buffer<K>) -> Result<()>,
    ) -> Result<()> {
        for log2 in self.sizes(sizes) {
            let case = Case { algorithm: "top_k", types, input, log2 };
            if !self.wants(case) {
                continue;
            }
            let (n, stream) = (case.len(), self.stream);
            let keys = Repeated::new(self.period(n), |i| key::<K>("", i));
            let x = keys.buffer(stream, n, 0)?;
            let mut out = stream.buffer_uninit::<K>(k)?;
            let mut sorted = keys.0;
            sorted.sort_unstable_by_key(|key| std::cmp::Reverse(key.to_sort_bits()));
            self.row(
                case,
                (n + k) * size_of::<K>(),
                &[x.address(), out.address(), k as u64],
                &mut out,
                |run, out| ours(run, &x, out),
                |out, _| differs(out.as_slice(), |i| sorted[i / (n / sorted.len())]),
            )?;
        }
        Ok(())
    }
}
