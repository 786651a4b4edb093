//! Selections and partitions: half of the items kept, one in a hundred, or all.

use kernel_primitives::algorithms::{Run, partition, select_if};
use kernel_primitives::functor::{LessThan, bind_second};
use kernel_primitives::prelude::*;
use kernel_primitives::{Buffer, BufferSlice, BufferSliceMut, Result};

use super::inputs::{Item, Repeated, random};
use super::{Bench, Case, Counted, EVERY, LARGE, MOST, SOME, address, differs, from, from_mut};

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    macro_rules! select {
        ($name:literal, $t:ty, $input:literal, $sizes:expr) => {
            bench.choose::<$t, false>($name, $input, $sizes, |run, x, bound, out, count| {
                select_if(run, x, bind_second(LessThan, bound), out, count)
            })?
        };
    }
    select!("u32", u32, "", EVERY);
    select!("i32", i32, "", SOME);
    select!("f32", f32, "", MOST);
    select!("i64", i64, "", SOME);
    select!("f64", f64, "", SOME);
    select!("f16", f16, "", SOME);
    select!("u32", u32, "1 % kept", LARGE);
    select!("u32", u32, "constant", LARGE);
    select!("f32", f32, "unaligned", LARGE);
    macro_rules! partition {
        ($name:literal, $t:ty, $input:literal, $sizes:expr) => {
            bench.choose::<$t, true>($name, $input, $sizes, |run, x, bound, out, count| {
                partition(run, x, bind_second(LessThan, bound), out, count)
            })?
        };
    }
    partition!("u32", u32, "", MOST);
    partition!("f32", f32, "", SOME);
    partition!("u32", u32, "1 % kept", LARGE);
    Ok(())
}

impl Bench<'_> {
    /// Keeps what is less than a bound, and with `REST` puts the others behind it.
    fn choose<T: Item, const REST: bool>(
        &mut self,
        types: &str,
        input: &str,
        sizes: &[u32],
        ours: impl Fn(Run<'_>, BufferSlice<'_, T>, T, BufferSliceMut<'_, T>, &mut Buffer<u64>) -> Result<()>,
    ) -> Result<()> {
        // Of 1000 values.
        let bound = if input == "1 % kept" { 10 } else { 500 };
        let value = |i| if input == "constant" { 0 } else { (random(i) % 1000) as i64 };
        for log2 in self.sizes(sizes) {
            let case = Case { algorithm: if REST { "partition" } else { "select" }, types, input, log2 };
            if !self.wants(case) {
                continue;
            }
            let (n, offset, stream) = (case.len(), case.offset(), self.stream);
            let period = self.period(n);
            let x = Repeated::new(period, |i| T::of(value(i))).buffer(stream, n, offset)?;
            let (kept, others): (Vec<i64>, Vec<i64>) = (0..period).map(value).partition(|&value| value < bound);
            let count = n / period * kept.len();
            let mut out = Counted::new(stream, stream.buffer_uninit::<T>(n + offset)?)?;
            let buffers =
                [address(&x, offset), address(&out.items, offset), out.count.address(), bound as u64, self.host()];
            let bytes = (n + if REST { n } else { count }) * size_of::<T>();
            self.row(
                case,
                bytes,
                &buffers,
                &mut out,
                |run, out| {
                    let Counted { items, count } = out;
                    ours(run, from(&x, offset)?, T::of(bound), from_mut(items, offset)?, count)
                },
                |out, _| {
                    if let Some(wrong) = out.check(count)? {
                        return Ok(Some(wrong));
                    }
                    let items = from(&out.items, offset)?;
                    if let Some(wrong) = differs(items.slice(..count)?, |i| T::of(kept[i % kept.len()]))? {
                        return Ok(Some(wrong));
                    }
                    if !REST {
                        return Ok(None);
                    }
                    // The others are in reverse.
                    let rest = n - count;
                    differs(items.slice(count..)?, |i| T::of(others[(rest - 1 - i) % others.len()]))
                },
            )?;
        }
        Ok(())
    }
}
