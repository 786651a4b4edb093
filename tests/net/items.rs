//! The types of items.

use std::fmt::Debug;

use kernel_primitives::functor::Indexed;
use kernel_primitives::{Complex, Element, bf16, f16};

use crate::data::Level::{self, At, Bits, Special};
use crate::kernels::{Flagged, Map, Three, Triangular, Twelve};

/// A type of items.
pub trait Item: Element + PartialEq + Debug {
    /// Makes the value of a level. If the type has an order, higher levels never have lower values.
    fn of(level: Level) -> Self;

    /// Makes the value of a level in the same way; for floats, it is a small integer.
    fn small(level: Level) -> Self {
        Self::of(level)
    }

    /// Returns whether both have the same bits.
    fn same(&self, other: &Self) -> bool {
        self == other
    }

    /// Returns the value that is beside results.
    fn beside(i: usize) -> Self {
        Self::of(Bits((i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }
}

macro_rules! integers {
    ($($t:ident, $unsigned:ident, $scale:expr;)*) => {$(
        impl Item for $t {
            fn of(level: Level) -> Self {
                match level {
                    At(level) => ((($scale as fn(u16) -> $unsigned)(level)) as $t).wrapping_add($t::MIN),
                    Bits(bits) => bits as $t,
                    Special(n) => [0, 1, $t::MAX, $t::MIN, $t::MAX - 1, $t::MIN + 1, (0 as $t).wrapping_sub(1), 2][n as usize % 8],
                }
            }
        }
    )*};
}
integers! {
    u8, u8, |level| (level >> 8) as u8;
    i8, u8, |level| (level >> 8) as u8;
    u16, u16, |level| level;
    i16, u16, |level| level;
    u32, u32, |level| level as u32 * 0x1_0001;
    i32, u32, |level| level as u32 * 0x1_0001;
    u64, u64, |level| level as u64 * 0x1_0001_0001_0001;
    i64, u64, |level| level as u64 * 0x1_0001_0001_0001;
}

/// Makes a small integer, or −0.
fn small(level: Level) -> f32 {
    match level {
        At(level) => (level % 17) as f32 - 8.0,
        Bits(bits) => (bits % 17) as f32 - 8.0,
        Special(n) => [-0.0, 0.0, -0.0, 1.0, -1.0, 8.0, -8.0, 3.0][n as usize % 8],
    }
}

macro_rules! floats {
    ($($t:ident, $bits:ident, $from:expr;)*) => {$(
        impl Item for $t {
            fn of(level: Level) -> Self {
                match level {
                    At(level) => ($from as fn(f32) -> $t)(level as f32 - 32_768.0),
                    Bits(bits) => $t::from_bits(bits as $bits),
                    Special(n) => [
                        $t::NAN, -$t::NAN, $from(0.0), $from(-0.0), $t::INFINITY, $t::NEG_INFINITY, $t::from_bits(1),
                        -$t::from_bits(1), $t::MAX, $t::MIN, $t::MIN_POSITIVE, $from(1.0),
                    ][n as usize % 12],
                }
            }

            fn small(level: Level) -> Self {
                $from(small(level))
            }

            fn same(&self, other: &Self) -> bool {
                self.to_bits() == other.to_bits()
            }
        }
    )*};
}
floats! {
    f16, u16, f16::from_f32;
    bf16, u16, bf16::from_f32;
    f32, u32, |x| x;
    f64, u64, f64::from;
}

impl Item for bool {
    fn of(level: Level) -> Self {
        match level {
            At(level) => level >= 1 << 15,
            Bits(bits) => bits >> 63 != 0,
            Special(n) => n % 2 == 0,
        }
    }
}

impl Item for Complex<f32> {
    fn of(level: Level) -> Self {
        let Triangular { x, y, .. } = Item::of(level);
        Self::new((x % 17) as f32 - 8.0, (y % 15) as f32 - 7.0)
    }
}

impl Item for Three {
    fn of(level: Level) -> Self {
        let key = u8::of(level);
        match level {
            At(level) => Self { key, rest: [level as u8, 7] },
            Bits(bits) => Self { key, rest: [(bits >> 8) as u8, (bits >> 16) as u8] },
            Special(n) => Self { key, rest: [n, 0] },
        }
    }
}

impl Item for Triangular {
    fn of(level: Level) -> Self {
        let x = u32::of(level);
        Self { x, y: x.rotate_left(9) ^ 5, z: x.wrapping_mul(77) }
    }
}

impl Item for Twelve {
    fn of(level: Level) -> Self {
        let b = u32::of(level);
        Self { a: (b % 1000) as f32, b, c: b.rotate_left(11) as i32 }
    }
}

impl Item for Flagged {
    fn of(level: Level) -> Self {
        let x = u32::of(level);
        Self { flags: [x.is_multiple_of(2), x.is_multiple_of(3)], value: (x >> 16) as u16 }
    }
}

impl Item for Map<u32> {
    fn of(level: Level) -> Self {
        let a = u32::of(level);
        Self { a: a | 1, b: a.rotate_left(13) }
    }
}

impl Item for Map<u64> {
    fn of(level: Level) -> Self {
        let a = u64::of(level);
        Self { a: a | 1, b: a.rotate_left(27) }
    }
}

impl<T: Item> Item for Indexed<T> {
    fn of(level: Level) -> Self {
        Self::new(T::of(level), 77)
    }

    fn same(&self, other: &Self) -> bool {
        self.index() == other.index() && self.value.same(&other.value)
    }
}

/// Each place of the array has another value.
impl<T: Item, const N: usize> Item for [T; N] {
    fn of(level: Level) -> Self {
        std::array::from_fn(|i| match level {
            Bits(bits) => T::of(Bits(bits.rotate_left(11 * i as u32))),
            At(level) => T::of(At(level.rotate_left(i as u32))),
            special => T::of(special),
        })
    }

    fn small(level: Level) -> Self {
        [T::small(level); N]
    }

    fn same(&self, other: &Self) -> bool {
        self.iter().zip(other).all(|(a, b)| a.same(b))
    }
}
