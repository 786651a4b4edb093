//! Inputs, and what their results follow from.
//!
//! An input of more than some millions of items repeats its first ones: it is then made on the device by copies, and each result,
//! however large, follows from a small one on the CPU. Numbers are small integers in whatever type, so that sums are exact in any
//! order, and results can be compared for equality.

use std::fmt::Debug;
use std::ops::Range;

use kernel_primitives::{Buffer, Element, Result, Stream, f16};

/// Random bits by a number (splitmix64).
pub(super) fn random(i: usize) -> u64 {
    let mut z = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// What is measured with.
pub(super) trait Item: Element + PartialEq + Debug {
    /// The number as one of this type.
    fn of(number: i64) -> Self;

    /// The one of these bits, in the lower part of a word.
    fn from_word(word: u64) -> Self;
}

macro_rules! items {
    ($($t:ty: |$number:ident| $of:expr, |$word:ident| $from:expr;)*) => {$(
        impl Item for $t {
            fn of($number: i64) -> Self {
                $of
            }
            fn from_word($word: u64) -> Self {
                $from
            }
        }
    )*};
}
items! {
    u8: |x| x as Self, |word| word as Self;
    u32: |x| x as Self, |word| word as Self;
    i32: |x| x as Self, |word| word as Self;
    u64: |x| x as Self, |word| word;
    i64: |x| x, |word| word as Self;
    f32: |x| x as Self, |word| Self::from_bits(word as u32);
    f64: |x| x as Self, |word| Self::from_bits(word);
    f16: |x| Self::from_f32(x as f32), |word| Self::from_bits(word as u16);
}

/// The first items of an input, which repeats them.
pub(super) struct Repeated<T>(pub(super) Vec<T>);

impl<T: Item> Repeated<T> {
    pub(super) fn new(period: usize, item: impl Fn(usize) -> T) -> Self {
        Self((0..period).map(item).collect())
    }

    pub(super) fn at(&self, i: usize) -> T {
        self.0[i % self.0.len()]
    }

    /// A buffer of so many items after an offset.
    pub(super) fn buffer(&self, stream: &Stream, len: usize, offset: usize) -> Result<Buffer<T>> {
        let mut buffer = stream.buffer_uninit::<T>(len + offset)?;
        let mut filled = self.0.len();
        assert!(filled <= len && len.is_multiple_of(filled), "an input of whole periods");
        buffer.slice_mut(offset..offset + filled)?.copy_from(&self.0)?;
        while filled < len {
            let more = filled.min(len - filled);
            let (done, rest) = buffer.slice_mut(offset..)?.split_at(filled)?;
            rest.into_slice(..more)?.copy_from_device(stream, done.as_slice().slice(..more)?)?;
            filled += more;
        }
        Ok(buffer)
    }
}

/// Numbers whose sums stay small, from wherever they are summed: each is the step from one random number of 0 to 7 to the next,
/// and one more at the first of a period, by which all is not nothing.
pub(super) struct Steps {
    items: Vec<i64>,
    /// The sum of the items before each.
    sums: Vec<i64>,
}

impl Steps {
    pub(super) fn new(period: usize) -> Self {
        let level = |i: usize| (random(i) % 8) as i64;
        let items: Vec<i64> =
            (0..period).map(|i| level(i) - level((i + period - 1) % period) + i64::from(i == 0)).collect();
        let sums = items
            .iter()
            .scan(0, |sum, step| {
                *sum += step;
                Some(*sum - step)
            })
            .collect();
        Self { items, sums }
    }

    /// The sum of the items of a range.
    pub(super) fn sum<T: Item>(&self, range: Range<usize>) -> T {
        let before = |end: usize| (end / self.sums.len()) as i64 + self.sums[end % self.sums.len()];
        T::of(before(range.end) - before(range.start))
    }

    pub(super) fn repeated<T: Item>(&self) -> Repeated<T> {
        Repeated(self.items.iter().map(|&step| T::of(step)).collect())
    }
}

/// How an input of runs is cut.
#[derive(Clone, Copy)]
pub(super) enum Lengths {
    /// All of one length.
    Fixed(usize),
    /// Uniform from 1, of this mean.
    Mean(usize),
    /// One run of all.
    All,
}

/// Runs of equal keys that fill an input; of more than a period, those of the first one again.
pub(super) struct Runs {
    period: usize,
    len: usize,
    /// Where each run of a period begins, and the period's end.
    bounds: Vec<usize>,
    /// The run of each item of a period.
    run_of: Vec<u32>,
}

impl Runs {
    pub(super) fn new(len: usize, period: usize, lengths: Lengths) -> Self {
        let mut bounds = vec![0];
        let mut end = 0;
        while end < period {
            end += match lengths {
                Lengths::Fixed(length) => length,
                Lengths::Mean(mean) => random(bounds.len()) as usize % (2 * mean - 1) + 1,
                Lengths::All => period,
            };
            bounds.push(end.min(period));
        }
        let run_of = (1..).zip(bounds.windows(2)).flat_map(|(run, ends)| vec![run - 1; ends[1] - ends[0]]).collect();
        Self { period, len, bounds, run_of }
    }

    fn runs(&self) -> usize {
        self.bounds.len() - 1
    }

    /// Whether the runs of neighbouring periods are one.
    fn is_one(&self) -> bool {
        self.runs() == 1
    }

    /// How many runs there are.
    pub(super) fn count(&self) -> usize {
        if self.is_one() { 1 } else { self.len / self.period * self.runs() }
    }

    /// The key of a run, another one than those of its neighbours.
    pub(super) fn key<T: Item>(&self, run: usize) -> T {
        let run = run % self.runs();
        let last = run > 0 && run + 1 == self.runs();
        T::of(if last { 1000 } else { run as i64 % 1000 })
    }

    /// The items of a run.
    pub(super) fn range(&self, run: usize) -> Range<usize> {
        if self.is_one() {
            return 0..self.len;
        }
        let (before, run) = (run / self.runs() * self.period, run % self.runs());
        before + self.bounds[run]..before + self.bounds[run + 1]
    }

    /// Where the run of an item begins.
    pub(super) fn start_of(&self, i: usize) -> usize {
        if self.is_one() {
            0
        } else {
            i / self.period * self.period + self.bounds[self.run_of[i % self.period] as usize]
        }
    }

    pub(super) fn keys<T: Item>(&self) -> Repeated<T> {
        Repeated::new(self.period, |i| self.key(self.run_of[i] as usize))
    }
}
