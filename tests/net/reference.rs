//! The expected results of algorithms and collectives, by plain loops.

use std::cmp::Ordering::{self, Equal, Greater, Less};
use std::ops::Range;

use kernel_primitives::{SortKey, bf16, f16};

/// Returns the inclusive scan of the items.
pub fn inclusive<T: Copy>(x: &[T], op: impl Fn(T, T) -> T) -> Vec<T> {
    let mut total = None;
    let upto = x.iter().map(|&x| {
        let next = total.map_or(x, |total| op(total, x));
        total = Some(next);
        next
    });
    upto.collect()
}

/// Returns the exclusive scan of the items, starting with `first`.
pub fn exclusive<T: Copy>(x: &[T], first: T, op: impl Fn(T, T) -> T) -> Vec<T> {
    let mut total = first;
    let before = x.iter().map(|&x| {
        let before = total;
        total = op(total, x);
        before
    });
    before.collect()
}

/// Returns the ranges of successive items that are equal by `==`.
pub fn runs<T: PartialEq>(x: &[T]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for i in 0..x.len() {
        match runs.last_mut() {
            Some(run) if x[i - 1] == x[i] => run.end = i + 1,
            _ => runs.push(i..i + 1),
        }
    }
    runs
}

/// Returns the ranges between offsets, and those before the first and after the last offset. No range is empty.
pub fn parts(offsets: &[usize], len: usize) -> Vec<Range<usize>> {
    let ends = std::iter::once(0).chain(offsets.iter().copied()).chain([len]).collect::<Vec<_>>();
    ends.windows(2).map(|ends| ends[0]..ends[1]).filter(|part| !part.is_empty()).collect()
}

/// Returns the places of the items in a stable order.
pub fn order<T>(x: &[T], before: impl Fn(&T, &T) -> bool) -> Vec<usize> {
    places(x.len(), &|i, j| before(&x[i], &x[j]))
}

/// Returns `len` places, sorted. There is one sort for the items of all types.
fn places(len: usize, before: &dyn Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut places: Vec<usize> = (0..len).collect();
    places.sort_by(|&i, &j| match (before(i, j), before(j, i)) {
        (true, _) => Less,
        (_, true) => Greater,
        _ => Equal,
    });
    places
}

/// Returns the items at places.
pub fn at<T: Copy>(x: &[T], places: &[usize]) -> Vec<T> {
    places.iter().map(|&i| x[i]).collect()
}

/// A key with its order and its bits, which are found in another way than the library's.
pub trait Key: SortKey {
    fn order(&self, other: &Self) -> Ordering;

    /// Returns the bits in a range that sort like the values.
    fn digits(&self, bits: &Range<u32>) -> u64;
}

fn digits(all: u64, bits: &Range<u32>) -> u64 {
    let below = |end: u32| if end >= 64 { !0 } else { (1 << end) - 1 };
    (all & below(bits.end)) & !below(bits.start)
}

macro_rules! integers {
    ($($t:ident, $flip:expr;)*) => {$(
        impl Key for $t {
            fn order(&self, other: &Self) -> Ordering {
                self.cmp(other)
            }
            fn digits(&self, bits: &Range<u32>) -> u64 {
                digits((*self as i128 + $flip) as u64, bits)
            }
        }
    )*};
}
integers! { bool, 0; u8, 0; u16, 0; u32, 0; u64, 0; i8, 1 << 7; i16, 1 << 15; i32, 1 << 31; i64, 1 << 63; }

macro_rules! floats {
    ($($t:ident, $bits:ident;)*) => {$(
        impl Key for $t {
            /// Numbers come first, then NaN with a positive sign, then the other NaN.
            fn order(&self, other: &Self) -> Ordering {
                let class = |x: &Self| if x.is_nan() { 1 + x.is_sign_negative() as u32 } else { 0 };
                class(self).cmp(&class(other)).then(self.total_cmp(other))
            }
            /// The place in the order of `total_cmp`, turned round by the number of NaN with a sign.
            fn digits(&self, bits: &Range<u32>) -> u64 {
                let sign: $bits = 1 << ($bits::BITS - 1);
                let total = if self.is_sign_negative() { !self.to_bits() } else { self.to_bits() | sign };
                let negative_nans = $t::INFINITY.to_bits() ^ (sign - 1);
                digits(total.wrapping_sub(negative_nans) as u64, bits)
            }
        }
    )*};
}
floats! { f16, u16; bf16, u16; f32, u32; f64, u64; }
