//! Damaged input: valid input with random mistakes, and random bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Numbers that are too large in some places.
const NUMBERS: [&str; 10] = [
    "0",
    "-1",
    "255",
    "65536",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "1000000000000000000000000000000000000000",
];

/// Bytes that readers of text forget.
const BYTES: [&[u8]; 16] = [
    b"\0",
    b"\r\n",
    b"\r",
    b"\n",
    b"\t",
    b" ",
    b"\xEF\xBB\xBF",
    b"\xFF\xFE",
    b"\xC3",
    b"\xED\xA0\x80",
    "\u{2028}é😀".as_bytes(),
    b"\x1B[2J",
    b"\"",
    b"\\",
    b"'",
    b"#",
];

/// A repeatable source of mistakes (splitmix64).
pub(crate) struct Damage(u64);

impl Damage {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// Returns a number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Returns a number of any size: a small one, a power of two or a neighbour of one, or any number.
    pub(crate) fn number(&mut self) -> u64 {
        match self.below(4) {
            0 => self.below(10) as u64,
            1 => (1u64 << self.below(64)).wrapping_sub(1),
            2 => (1u64 << self.below(64)).wrapping_add(self.below(2) as u64),
            _ => self.next() >> self.below(64),
        }
    }

    /// Returns random bytes.
    pub(crate) fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most + 1)).map(|_| self.next() as u8).collect()
    }

    /// Returns one of the valid inputs with a few mistakes, or sometimes random bytes. `words` are the words of the format.
    pub(crate) fn damaged(&mut self, valid: &[&[u8]], words: &[&str]) -> Vec<u8> {
        if self.below(16) == 0 {
            return self.bytes(400);
        }
        let mut bytes = self.one_of(valid).to_vec();
        for _ in 0..self.below(4) + 1 {
            self.mistake(&mut bytes, valid, words);
        }
        bytes
    }

    fn mistake(&mut self, bytes: &mut Vec<u8>, valid: &[&[u8]], words: &[&str]) {
        let at = self.below(bytes.len() + 1);
        let end = at + self.below((bytes.len() - at).min(64) + 1);
        let inserted = match self.below(12) {
            // The end or the beginning is missing.
            0 => return bytes.truncate(at),
            1 => return drop(bytes.drain(..at)),
            2 => return drop(bytes.drain(at..end)),
            3 => bytes[at..end].repeat(self.below(3) + 1),
            4 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << self.below(8);
                }
                return;
            }
            // This replaces a number of the input, if there is one.
            5 | 6 => {
                let digit = |i: &usize| bytes[*i].is_ascii_digit();
                let digits: Vec<usize> = (0..bytes.len()).filter(digit).collect();
                if !digits.is_empty() {
                    let start = self.one_of(&digits);
                    let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                    let number = self.one_of(&NUMBERS);
                    bytes.splice(start..start + length, number.bytes());
                }
                return;
            }
            7 => self.one_of(&BYTES).to_vec(),
            8 | 9 if !words.is_empty() => self.one_of(words).as_bytes().to_vec(),
            // This adds deep nesting, or a long line.
            10 => self.one_of(&["{", "[", "(", "}", "x", "0", "/*", "\""]).repeat(1 << self.below(14)).into_bytes(),
            _ => {
                let other = self.one_of(valid);
                let from = self.below(other.len() + 1);
                let to = from + self.below(other.len() - from + 1);
                other[from..to].to_vec()
            }
        };
        bytes.splice(at..at, inserted);
    }
}

/// Returns the number of inputs of a property. `KERNEL_PRIMITIVES_NET_CASES` sets a larger number.
pub(crate) fn cases(few: u64) -> u64 {
    let cases =
        std::env::var("KERNEL_PRIMITIVES_NET_CASES").map_or(few, |cases| cases.parse().expect("a number of cases"));
    assert!(cases > 0, "KERNEL_PRIMITIVES_NET_CASES is 0, so nothing is tested");
    cases
}

/// Returns the number at which the inputs of a test begin. `KERNEL_PRIMITIVES_NET_SEED` sets another number.
pub(crate) fn seed() -> u64 {
    std::env::var("KERNEL_PRIMITIVES_NET_SEED").map_or(1, |seed| seed.parse().expect("a seed"))
}

/// Tries a property with many inputs. Names the input for which it panics, or for which it returns an error.
pub(crate) fn try_all<T: std::fmt::Debug>(
    few: u64,
    input: impl Fn(&mut Damage) -> T,
    property: impl Fn(&T) -> Result<(), String>,
) {
    for case in 0..cases(few) {
        let input = input(&mut Damage::new(seed().wrapping_mul(0x1_0000_0001).wrapping_add(case)));
        match catch_unwind(AssertUnwindSafe(|| property(&input))) {
            Ok(Ok(())) => {}
            Ok(Err(what)) => panic!("case {case}: {what}\nof {input:?}"),
            Err(_) => panic!("case {case}: a panic\nof {input:?}"),
        }
    }
}

/// Bytes that are shown as text.
#[derive(Clone)]
pub(crate) struct Shown(pub(crate) Vec<u8>);

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}
