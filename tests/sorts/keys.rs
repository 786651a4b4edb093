//! Keys to sort, in patterns that are difficult for sorts, and their expected order.

use std::cmp::Ordering;

use kernel_primitives::{SortKey, bf16, f16};
use proptest::prelude::{Strategy, any};

use crate::support::{Random, SHAPES, any_shape};

/// A key with its order and its bits, which are found in another way than the library's.
pub trait Key: SortKey + std::fmt::Debug {
    /// Makes a key with any bits.
    fn any(bits: u64) -> Self;
    /// Returns the total order that the library promises.
    fn order(&self, other: &Self) -> Ordering;
    /// Returns the bits that tell two keys apart.
    fn raw(&self) -> u64;
    /// Returns keys at the limits of the type.
    fn special() -> Vec<Self>;
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Key for $t {
            fn any(bits: u64) -> Self { bits as $t }
            fn order(&self, other: &Self) -> Ordering { self.cmp(other) }
            fn raw(&self) -> u64 { *self as u64 }
            fn special() -> Vec<Self> { vec![0, 1, <$t>::MAX, <$t>::MIN, <$t>::MAX - 1, <$t>::MIN + 1] }
        }
    )*};
}
integers!(u8, u16, u32, u64, usize, i8, i16, i32, i64);

impl Key for bool {
    fn any(bits: u64) -> Self {
        bits & 1 != 0
    }
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }
    fn raw(&self) -> u64 {
        *self as u64
    }
    fn special() -> Vec<Self> {
        vec![true, false]
    }
}

macro_rules! floats {
    ($($t:ident, $bits:ident;)*) => {$(
        impl Key for $t {
            fn any(bits: u64) -> Self { $t::from_bits(bits as $bits) }
            fn order(&self, other: &Self) -> Ordering {
                // Numbers come first, then NaN with a positive sign, then the other NaN.
                let class = |v: &Self| if v.is_nan() { 1 + v.is_sign_negative() as u32 } else { 0 };
                class(self).cmp(&class(other)).then(self.total_cmp(other))
            }
            fn raw(&self) -> u64 { self.to_bits() as u64 }
            fn special() -> Vec<Self> {
                let sign: $bits = 1 << ($bits::BITS - 1);
                let nan = $t::NAN.to_bits() & !sign;
                let infinity = $t::INFINITY.to_bits();
                let bits = [0, 1, 2, infinity, infinity - 1, infinity + 1, nan, nan + 1];
                bits.into_iter().flat_map(|b| [$t::from_bits(b), $t::from_bits(b | sign)]).collect()
            }
        }
    )*};
}
floats! { f16, u16; bf16, u16; f32, u32; f64, u64; }

/// The pattern of the keys of a test.
#[derive(Clone, Copy, Debug)]
pub enum Pattern {
    Random,
    Constant,
    Few,
    Sorted,
    Reversed,
    Special,
}

pub const PATTERNS: [Pattern; 6] = {
    use Pattern::*;
    [Random, Constant, Few, Sorted, Reversed, Special]
};

/// Returns `len` keys in a pattern.
pub fn keys<K: Key>(pattern: Pattern, len: usize, seed: u64) -> Vec<K> {
    let mut random = Random::new(seed);
    let special = K::special();
    let mut keys: Vec<K> = (0..len)
        .map(|_| match pattern {
            Pattern::Constant => K::any(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            Pattern::Few => K::any(random.below(5) * 0x0f0f_0f0f_0f0f_0f0f),
            Pattern::Special => special[random.below(special.len() as u64) as usize],
            _ => K::any(random.bits()),
        })
        .collect();
    match pattern {
        Pattern::Sorted => keys.sort_by(Key::order),
        Pattern::Reversed => keys.sort_by(|a, b| b.order(a)),
        _ => {}
    }
    keys
}

/// Returns the bits of keys, which tell NaN and zeros apart.
pub fn raw<K: Key>(keys: &[K]) -> Vec<u64> {
    keys.iter().map(Key::raw).collect()
}

/// Returns lengths near a tile of `tile` items in pieces of `piece` items: none, one, partial, full, and several tiles.
pub fn lengths(tile: usize, piece: usize) -> Vec<usize> {
    let mut lengths = vec![0, 1, 2, piece, piece + 1, tile / 2 + 1, tile - 1, tile, 2 * tile + tile / 3];
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// The source of each item in a sort of groups, which tiles may cut short.
pub struct Sorted(Vec<usize>);

impl Sorted {
    /// Computes the stable sort of groups of `group` keys in tiles of `tile` keys.
    pub fn of<K: Key>(keys: &[K], tile: usize, group: usize, descending: bool) -> Self {
        Self::by(keys, tile, group, |a, b| if descending { b.order(a) } else { a.order(b) })
    }

    /// Computes the stable sort of groups by any order.
    pub fn by<K>(keys: &[K], tile: usize, group: usize, order: impl Fn(&K, &K) -> Ordering) -> Self {
        let mut positions: Vec<usize> = (0..keys.len()).collect();
        for group in positions.chunks_mut(tile).flat_map(|tile| tile.chunks_mut(group)) {
            group.sort_by(|&i, &j| order(&keys[i], &keys[j]));
        }
        Self(positions)
    }

    /// Returns the items in their order.
    pub fn apply<T: Copy>(&self, items: &[T]) -> Vec<T> {
        self.0.iter().map(|&i| items[i]).collect()
    }
}

/// A combination of a block's shape, a length and a pattern.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub shape: (u32, u32, u32),
    /// The number of items of a block.
    pub tile: usize,
    pub len: usize,
    pub pattern: Pattern,
    pub seed: u64,
}

/// Draws any pattern.
fn any_pattern() -> impl Strategy<Value = Pattern> {
    proptest::sample::select(&PATTERNS[..])
}

/// Draws any case for blocks of run-time shape with up to `threads` threads.
pub fn any_case(items: usize, threads: u32) -> impl Strategy<Value = Case> {
    (any_shape(threads), 0..4000usize, any_pattern(), any::<u64>()).prop_map(move |(shape, len, pattern, seed)| {
        let tile = crate::support::threads(shape) * items;
        Case { shape, tile, len: len % (3 * tile + 1), pattern, seed }
    })
}

/// Draws any case for blocks of a fixed shape.
pub fn any_fixed_case(items: usize, threads: usize) -> impl Strategy<Value = Case> {
    let tile = threads * items;
    (0..=2 * tile + 1, any_pattern(), any::<u64>()).prop_map(move |(len, pattern, seed)| Case {
        shape: (threads as u32, 1, 1),
        tile,
        len,
        pattern,
        seed,
    })
}

/// Returns cases for blocks of run-time shape with up to `threads` threads: each shape with two lengths, and every length with several
/// patterns.
pub fn cases(items: usize, threads: usize) -> impl Iterator<Item = Case> {
    let shapes = SHAPES.into_iter().filter(move |&shape| crate::support::threads(shape) <= threads);
    shapes.enumerate().flat_map(move |(k, shape)| {
        let tile = crate::support::threads(shape) * items;
        let lengths = lengths(tile, items);
        [k, k + 4].map(|l| Case {
            shape,
            tile,
            len: lengths[l % lengths.len()],
            pattern: PATTERNS[(k + l / 4) % PATTERNS.len()],
            seed: k as u64,
        })
    })
}

/// Returns cases for blocks of a fixed shape: every length with two patterns.
pub fn fixed_cases(items: usize, threads: usize) -> impl Iterator<Item = Case> {
    let tile = threads * items;
    lengths(tile, items).into_iter().enumerate().flat_map(move |(k, len)| {
        [k, k + 3].map(|l| Case {
            shape: (threads as u32, 1, 1),
            tile,
            len,
            pattern: PATTERNS[l % PATTERNS.len()],
            seed: l as u64,
        })
    })
}
