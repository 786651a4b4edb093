//! Which bytes of an allocation have been written, for the emulator.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// One bit for each byte: whether anything has written the byte.
///
/// A thread that changes it holds the allocation's lock, or is its only owner. So the atomics need no read-modify-write operations.
pub(crate) struct Written {
    len: usize,
    /// The number of bytes that nothing has written.
    missing: AtomicUsize,
    /// Allocated when some bytes are written and some are not.
    bits: OnceLock<Box<[AtomicU64]>>,
}

impl Written {
    /// For an allocation of `len` bytes, of which none is written.
    pub(crate) fn none(len: usize) -> Self {
        Self { len, missing: AtomicUsize::new(len), bits: OnceLock::new() }
    }

    /// Whether all bytes have been written.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        self.missing.load(Relaxed) == 0
    }

    fn bits(&self) -> &[AtomicU64] {
        self.bits.get_or_init(|| {
            let bits = if self.is_whole() { !0 } else { 0 };
            (0..self.len.div_ceil(64)).map(|_| AtomicU64::new(bits)).collect()
        })
    }

    /// Notes that `bytes` were written.
    pub(crate) fn mark(&self, bytes: Range<usize>) {
        if self.is_whole() || bytes.is_empty() {
            return;
        }
        if bytes == (0..self.len) && self.bits.get().is_none() {
            return self.missing.store(0, Relaxed);
        }
        let mut new = 0;
        for (word, mask) in words(bytes) {
            let word = &self.bits()[word];
            let before = word.load(Relaxed);
            new += (mask & !before).count_ones() as usize;
            word.store(before | mask, Relaxed);
        }
        self.missing.store(self.missing.load(Relaxed) - new, Relaxed);
    }

    /// Notes that all bytes were written.
    pub(crate) fn mark_all(&self) {
        self.mark(0..self.len);
    }

    /// The first of `bytes` that nothing has written.
    pub(crate) fn first_missing(&self, bytes: Range<usize>) -> Option<usize> {
        if self.is_whole() {
            return None;
        }
        words(bytes).find_map(|(word, mask)| {
            let missing = mask & !self.bits()[word].load(Relaxed);
            (missing != 0).then(|| word * 64 + missing.trailing_zeros() as usize)
        })
    }

    /// Notes that `len` bytes, starting at `to`, were copied from the bytes of `other`, starting at `from`.
    pub(crate) fn copy(&self, to: usize, other: &Self, from: usize, len: usize) {
        if other.first_missing(from..from + len).is_none() {
            return self.mark(to..to + len);
        }
        let (bits, others) = (self.bits(), other.bits());
        let (mut new, mut lost) = (0, 0);
        let copy = |(word, mask): (usize, u64)| {
            // The first byte of the word that is copied to.
            let first = word * 64 + mask.trailing_zeros() as usize;
            let copied = bits_from(others, from + (first - to)) << (first % 64) & mask;
            let before = bits[word].load(Relaxed);
            new += (copied & !before).count_ones() as usize;
            lost += (before & mask & !copied).count_ones() as usize;
            bits[word].store(before & !mask | copied, Relaxed);
        };
        // The two may be the same. So each word is read before it is written.
        match from < to {
            true => words(to..to + len).rev().for_each(copy),
            false => words(to..to + len).for_each(copy),
        }
        self.missing.store(self.missing.load(Relaxed) + lost - new, Relaxed);
    }
}

/// 64 bits, from bit `start` on. Those after the last word are 0.
fn bits_from(words: &[AtomicU64], start: usize) -> u64 {
    let word = |at: usize| words.get(at).map_or(0, |word| word.load(Relaxed));
    let (at, shift) = (start / 64, start % 64);
    // Two shifts, because there is none by 64 bits.
    word(at) >> shift | word(at + 1) << 1 << (63 - shift)
}

/// The words that a range of bits touches, and the bits in each.
fn words(bits: Range<usize>) -> impl DoubleEndedIterator<Item = (usize, u64)> {
    let Range { start, end } = bits;
    let words = if start < end { start / 64..(end - 1) / 64 + 1 } else { 0..0 };
    words.map(move |word| {
        let (low, high) = (start.max(word * 64) - word * 64, end.min(word * 64 + 64) - word * 64);
        (word, (!0 >> (64 - (high - low))) << low)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_as_written_when_they_were() {
        let written = Written::none(200);
        assert_eq!(written.first_missing(0..200), Some(0));
        written.mark(0..60);
        written.mark(70..200);
        assert_eq!((written.first_missing(0..60), written.first_missing(70..200)), (None, None));
        assert_eq!((written.first_missing(50..80), written.first_missing(65..66)), (Some(60), Some(65)));
        assert!(!written.is_whole());
        written.mark(58..72);
        assert!(written.is_whole());
        assert_eq!(written.first_missing(0..200), None);
    }

    #[test]
    fn copies_bring_what_was_written_and_what_was_not() {
        let (from, to) = (Written::none(128), Written::none(300));
        from.mark(10..20);
        to.mark_all();
        to.copy(100, &from, 5, 20);
        assert_eq!(to.first_missing(0..300), Some(100));
        assert_eq!(to.first_missing(105..300), Some(115));
        assert_eq!((to.first_missing(105..115), to.first_missing(120..300)), (None, None));
        // Within one allocation, over itself.
        to.copy(101, &to, 100, 20);
        assert_eq!((to.first_missing(101..300), to.first_missing(106..116)), (Some(101), None));
        assert_eq!(to.first_missing(106..300), Some(116));
        assert_eq!(to.first_missing(121..300), None);
        to.mark_all();
        assert!(to.is_whole());
    }
    /// An allocation of 300 bytes, some of which are written.
    fn some(seed: u64) -> Written {
        let written = Written::none(300);
        let chosen = |byte: u64| (byte + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62 != 0;
        (0..300).filter(|&byte| chosen(byte as u64)).for_each(|byte| written.mark(byte..byte + 1));
        written
    }

    /// Whether each byte is written.
    fn bytes(written: &Written) -> Vec<bool> {
        (0..written.len).map(|byte| written.first_missing(byte..byte + 1).is_none()).collect()
    }

    #[test]
    fn copies_from_and_to_all_places_bring_each_byte() {
        let places = [0, 1, 5, 31, 63, 64, 65, 70];
        for (to, from) in places.into_iter().flat_map(|to| places.map(|from| (to, from))) {
            for len in [0, 1, 3, 63, 64, 65, 130, 230] {
                let source = some(1);
                for target in [None, Some(some(2))] {
                    let target = target.as_ref().unwrap_or(&source);
                    let mut expected = bytes(target);
                    expected[to..to + len].copy_from_slice(&bytes(&source)[from..from + len]);
                    target.copy(to, &source, from, len);
                    assert_eq!(bytes(target), expected, "{len} bytes, from {from} to {to}");
                    let missing = expected.iter().filter(|&&written| !written).count();
                    assert_eq!(target.missing.load(Relaxed), missing, "{len} bytes, from {from} to {to}");
                }
            }
        }
    }
}
