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
        // All bits are read before any is written, because the two may be the same.
        let copied: Vec<bool> = (from..from + len).map(|byte| other.has(byte)).collect();
        for (byte, written) in (to..).zip(copied) {
            match written {
                true => self.mark(byte..byte + 1),
                false => self.forget(byte),
            }
        }
    }

    fn has(&self, byte: usize) -> bool {
        self.is_whole() || self.bits()[byte / 64].load(Relaxed) >> (byte % 64) & 1 != 0
    }

    fn forget(&self, byte: usize) {
        if self.has(byte) {
            let word = &self.bits()[byte / 64];
            word.store(word.load(Relaxed) & !(1 << (byte % 64)), Relaxed);
            self.missing.store(self.missing.load(Relaxed) + 1, Relaxed);
        }
    }
}

/// The words that a range of bits touches, and the bits in each.
fn words(bits: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
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
}
