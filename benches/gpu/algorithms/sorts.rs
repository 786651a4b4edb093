//! Sorts, of random keys, of eight distinct ones, and of one; and of a number of keys that is odd.

use kernel_primitives::algorithms::{Run, sort_keys, sort_pairs};
use kernel_primitives::functor::Less;
use kernel_primitives::prelude::*;
use kernel_primitives::{Buffer, Result};

use super::inputs::{Item, Repeated, random};
use super::{Bench, Case, EVERY, LARGE, MOST, SMALL, SOME, differs};

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    macro_rules! keys {
        ($name:literal, $t:ty, $input:literal, $sizes:expr) => {
            bench.sort_keys::<$t>("sort_keys", $name, $input, $sizes, |run, x, out| sort_keys(run, x, out, Less))?
        };
    }
    keys!("u32", u32, "", EVERY);
    keys!("f32", f32, "", MOST);
    keys!("i32", i32, "", SOME);
    keys!("u64", u64, "", MOST);
    keys!("i64", i64, "", SOME);
    keys!("f64", f64, "", SOME);
    keys!("f16", f16, "", SOME);
    keys!("u32", u32, "constant", LARGE);
    keys!("u32", u32, "few distinct", LARGE);
    keys!("u64", u64, "few distinct", LARGE);
    macro_rules! pairs {
        ($name:literal, $k:ty, $input:literal, $sizes:expr) => {
            bench.sort_pairs::<$k>("sort_pairs", $name, $input, $sizes, |run, x, out| {
                sort_pairs(run, x.0, x.1, out.0, out.1, Less)
            })?
        };
    }
    pairs!("u32_u32", u32, "", MOST);
    pairs!("f32_u32", f32, "", SOME);
    pairs!("u64_u32", u64, "", SOME);
    pairs!("u32_u32", u32, "constant", LARGE);
    pairs!("u32_u32", u32, "few distinct", LARGE);
    pairs!("u32_u32", u32, "odd length", SMALL);
    pairs!("u64_u32", u64, "odd length", SMALL);
    Ok(())
}

/// The key of a number, as an input of this name has it.
pub(super) fn key<K: Random>(input: &str, i: usize) -> K {
    match input {
        "" | "odd length" | "own order" => K::random(random(i)),
        "constant" => K::of(7),
        "few distinct" => K::of((random(i) % 8) as i64),
        other => panic!("no input is called {other}"),
    }
}

/// A key of any value, but for NaN and −0.
pub(super) trait Random: Item + SortKey {
    fn random(bits: u64) -> Self;
}

macro_rules! random {
    ($($t:ty: |$bits:ident| $key:expr;)*) => {$(
        impl Random for $t {
            fn random($bits: u64) -> Self {
                $key
            }
        }
    )*};
}
random! {
    u32: |bits| bits as Self;
    i32: |bits| bits as Self;
    u64: |bits| bits;
    i64: |bits| bits as Self;
    f32: |bits| bits as i32 as Self;
    f64: |bits| bits as i64 as Self;
    f16: |bits| Self::from_f32((bits % 130_000) as f32 / 2.0 - 32_500.0);
}

impl Bench<'_> {
    pub(super) fn sort_keys<K: Random>(
        &mut self,
        algorithm: &str,
        types: &str,
        input: &str,
        sizes: &[u32],
        ours: impl Fn(Run<'_>, &Buffer<K>, &mut Buffer<K>) -> Result<()>,
    ) -> Result<()> {
        for log2 in self.sizes(sizes) {
            let case = Case { algorithm, types, input, log2 };
            if !self.wants(case) {
                continue;
            }
            let (n, stream) = (case.len(), self.stream);
            let keys = Repeated::new(self.period(n), |i| key::<K>(input, i));
            let x = keys.buffer(stream, n, 0)?;
            let mut out = stream.buffer_uninit::<K>(n)?;
            let mut sorted = keys.0;
            sorted.sort_unstable_by_key(|key| key.to_sort_bits());
            self.row(
                case,
                2 * n * size_of::<K>(),
                &[x.address(), out.address()],
                &mut out,
                |run, out| ours(run, &x, out),
                |out, _| differs(out.as_slice(), |i| sorted[i / (n / sorted.len())]),
            )?;
        }
        Ok(())
    }

    /// With the place of each key as its value.
    pub(super) fn sort_pairs<K: Random>(
        &mut self,
        algorithm: &str,
        types: &str,
        input: &str,
        sizes: &[u32],
        ours: impl Fn(Run<'_>, (&Buffer<K>, &Buffer<u32>), (&mut Buffer<K>, &mut Buffer<u32>)) -> Result<()>,
    ) -> Result<()> {
        for log2 in self.sizes(sizes) {
            let case = Case { algorithm, types, input, log2 };
            if !self.wants(case) {
                continue;
            }
            let (n, period, stream) = (case.len(), self.period(case.len()), self.stream);
            let keys = Repeated::new(period, |i| key::<K>(input, i));
            let (x, places) = (keys.buffer(stream, n, 0)?, stream.buffer_from(&(0..n as u32).collect::<Vec<_>>())?);
            let mut out = (stream.buffer_uninit::<K>(n)?, stream.buffer_uninit::<u32>(n)?);
            let order = Order::new(&keys.0, n);
            self.row(
                case,
                2 * n * (size_of::<K>() + 4),
                &[x.address(), places.address(), out.0.address(), out.1.address()],
                &mut out,
                |run, out| ours(run, (&x, &places), (&mut out.0, &mut out.1)),
                |out, _| match differs(out.0.as_slice(), |i| keys.at(order.place(i)))? {
                    None => differs(out.1.as_slice(), |i| order.place(i) as u32),
                    wrong => Ok(wrong),
                },
            )?;
        }
        Ok(())
    }
}

/// The stable order of keys that repeat.
struct Order {
    /// The places of a period's keys, in order.
    places: Vec<u32>,
    /// In that order, where the group of equal keys begins that each is in, and how many there are in it.
    groups: Vec<(u32, u32)>,
    periods: usize,
}

impl Order {
    fn new<K: SortKey>(keys: &[K], len: usize) -> Self {
        let mut places: Vec<u32> = (0..keys.len() as u32).collect();
        let bits = |place: u32| keys[place as usize].to_sort_bits();
        places.sort_by_key(|&place| bits(place));
        let mut groups = Vec::with_capacity(places.len());
        for group in places.chunk_by(|&a, &b| bits(a) == bits(b)) {
            groups.resize(groups.len() + group.len(), (groups.len() as u32, group.len() as u32));
        }
        Self { places, groups, periods: len / keys.len() }
    }

    /// The place of what comes at `i` in the order of all.
    fn place(&self, i: usize) -> usize {
        // Each group has all its keys of the first period, then all of the second.
        let (start, size) = self.groups[i / self.periods];
        let (start, size) = (start as usize, size as usize);
        let within = i - start * self.periods;
        within / size * self.places.len() + self.places[start + within % size] as usize
    }
}
