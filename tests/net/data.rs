//! What items are like: data that breaks selection and balance.

use crate::case::{Case, Random};
use crate::items::Item;

/// How items follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    Constant,
    Sorted,
    Reversed,
    /// Up and down again.
    OrganPipe,
    Sawtooth,
    /// Two to five values in random order.
    Few,
    /// All alike but one.
    Outlier,
    /// Plateaus of winners, long and short, among losers.
    Bursts,
    /// Runs whose lengths are Zipf's.
    Zipf,
    /// One run of most items, and short ones around it.
    Giant,
    /// All bit patterns.
    Noise,
    /// NaN, ±0, infinities, subnormals, the least and the greatest, among others.
    Special,
}

impl Pattern {
    /// All, the simplest first.
    pub const ALL: [Self; 12] = [
        Self::Constant,
        Self::Sorted,
        Self::Reversed,
        Self::OrganPipe,
        Self::Sawtooth,
        Self::Few,
        Self::Outlier,
        Self::Bursts,
        Self::Zipf,
        Self::Giant,
        Self::Noise,
        Self::Special,
    ];
}

/// An item before its type is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Level {
    /// In an order, which types keep as far as they can.
    At(u16),
    /// Any bits.
    Bits(u64),
    /// The type's `n`th odd value.
    Special(u8),
}

/// Lengths of runs: of short ones many, of long ones few.
fn zipf(random: &mut Random) -> usize {
    let unit = (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
    ((1.0 / (unit + 1e-4)).powf(1.3) as usize).clamp(1, 20_000)
}

fn levels(case: &Case, column: u64, len: usize) -> Vec<Level> {
    use Level::{At, Bits, Special};
    let mut random = Random::new(case.seed.wrapping_mul(31).wrapping_add(column << 56));
    let scaled = |i: usize, of: usize| At((i as u64 * 65_535 / of.max(1) as u64) as u16);
    let any = |random: &mut Random| match random.below(3) {
        0 => Special(random.bits() as u8),
        _ => At(random.bits() as u16),
    };
    match case.pattern {
        Pattern::Constant => vec![any(&mut random); len],
        Pattern::Sorted => (0..len).map(|i| scaled(i, len)).collect(),
        Pattern::Reversed => (0..len).map(|i| scaled(len - i, len)).collect(),
        Pattern::OrganPipe => (0..len).map(|i| scaled(2 * i.min(len - i), len)).collect(),
        Pattern::Sawtooth => {
            let most = random.one_of(&[7, 100, 3000]);
            let period = 2 + random.below(most);
            (0..len).map(|i| scaled(i % period, period)).collect()
        }
        Pattern::Few => {
            let of: Vec<_> = (0..2 + random.below(4)).map(|_| any(&mut random)).collect();
            (0..len).map(|_| random.one_of(&of)).collect()
        }
        Pattern::Outlier => {
            let mut all = vec![any(&mut random); len];
            if len > 0 {
                all[random.below(len)] = any(&mut random);
            }
            all
        }
        Pattern::Bursts => {
            let losers = random.one_of(&[1u16, 20_000]);
            let up = random.below(2) == 0;
            let at = |height: u16| At(if up { height } else { !height });
            let mut all: Vec<_> = (0..len).map(|_| at(random.bits() as u16 % losers)).collect();
            let mut from = random.below(2) * random.below(len);
            for _ in 0..1 + random.below(5) {
                let height = 20_000 + 8_000 * random.below(5) as u16;
                let of = [random.below(500), 400, 1024, 2048, random.below(len)];
                let of = random.one_of(&of);
                let noise = random.one_of(&[1u16, 1, 7000]);
                for item in all.iter_mut().skip(from).take(of) {
                    *item = at(height + random.bits() as u16 % noise);
                }
                from = if random.below(2) == 0 { from + of } else { random.below(len) };
            }
            all
        }
        Pattern::Zipf => {
            let mut all = Vec::with_capacity(len);
            while all.len() < len {
                let (run, value) = (zipf(&mut random).min(len - all.len()), any(&mut random));
                all.extend(std::iter::repeat_n(value, run));
            }
            all
        }
        Pattern::Giant => {
            let [mut from, mut to] = [random.below(len + 1), random.below(len + 1)];
            if from > to {
                (from, to) = (to, from);
            }
            let giant = any(&mut random);
            (0..len).map(|i| if (from..to).contains(&i) { giant } else { any(&mut random) }).collect()
        }
        Pattern::Noise => (0..len).map(|_| Bits(random.bits())).collect(),
        Pattern::Special => (0..len)
            .map(|_| match random.below(4) {
                0 | 1 => Special(random.bits() as u8),
                2 => At(random.bits() as u16),
                _ => Bits(random.bits()),
            })
            .collect(),
    }
}

/// The items of a column of the input: of each number another.
pub fn items<T: Item>(case: &Case, column: u64, len: usize) -> Vec<T> {
    levels(case, column, len).into_iter().map(T::of).collect()
}

/// The same of small integers, also where the type has others: sums of them are exact in every order.
pub fn small<T: Item>(case: &Case, column: u64, len: usize) -> Vec<T> {
    levels(case, column, len).into_iter().map(T::small).collect()
}

/// The same from −1 to 1, whose sums are not exact.
pub fn reals(case: &Case, column: u64, len: usize) -> Vec<f64> {
    let real = |level| match level {
        Level::At(level) => level as f64 / 32_768.0 - 1.0,
        Level::Bits(bits) => (bits as i64) as f64 / (1u64 << 63) as f64,
        Level::Special(n) => 1.0 / (n as f64 + 3.0) - 0.2,
    };
    levels(case, column, len).into_iter().map(real).collect()
}

/// The same as `f32`.
pub fn floats(case: &Case, column: u64, len: usize) -> Vec<f32> {
    reals(case, column, len).iter().map(|&x| x as f32).collect()
}

/// The sums of the items up to each, and how far those of `f32` may be from them: threads of a warp at least add side by side.
pub fn sums(x: &[f32]) -> impl Iterator<Item = (f64, f64)> {
    let (mut sum, mut size) = (0.0, 0.0);
    x.iter().enumerate().map(move |(i, &x)| {
        (sum, size) = (sum + x as f64, size + x.abs() as f64);
        (sum, size * (i + 1).min(i / 32 + 128) as f64 * 2f64.powi(-24))
    })
}

/// The sum of all items, and how far one of `f32` may be from it.
pub fn sum(x: &[f32]) -> (f64, f64) {
    sums(x).last().unwrap_or_default()
}

/// Whether each item has a property: alike for long runs, for none, for all, at random.
pub fn flags(case: &Case, column: u64, len: usize) -> Vec<bool> {
    items::<bool>(case, column, len)
}

/// `0..len` in another order.
pub fn shuffled(case: &Case, column: u64, len: usize) -> Vec<usize> {
    let mut random = Random::new(case.seed ^ (column << 50));
    let mut all: Vec<usize> = (0..len).collect();
    match random.below(4) {
        0 => all.reverse(),
        1 => all.rotate_left(len / 3),
        _ => (1..len).for_each(|i| all.swap(i, random.below(i + 1))),
    }
    all
}

/// Offsets of segments of `len` items: one more than there are segments, whose number depends on the parameters alone.
pub fn offsets(case: &Case, len: usize) -> Vec<usize> {
    let mut of = case.param(77);
    let segments = match of.below(8) {
        0 => 0,
        1 => 1,
        2 => 2 + of.below(3),
        3 => len,
        4 => 2 * len + 3,
        _ => 1 + of.below(len / 3 + 2),
    }
    .min(9000);
    let mut random = Random::new(case.seed ^ 0x0ff5);
    let mut all: Vec<usize> = match random.below(6) {
        // Anywhere.
        0 | 1 => (0..=segments).map(|_| random.below(len + 1)).collect(),
        // Of like lengths.
        2 => (0..=segments).map(|i| i * len / segments.max(1)).collect(),
        // One has all.
        3 => {
            let at = random.below(segments + 1);
            (0..=segments).map(|i| if i <= at { 0 } else { len }).collect()
        }
        // Zipf's, as far as they go.
        4 => {
            let mut end = random.below(3).min(len);
            let mut all = vec![end];
            all.extend((0..segments).map(|_| {
                end = (end + zipf(&mut random) - 1).min(len);
                end
            }));
            all
        }
        // Close to each other.
        _ => {
            let from = random.below(len + 1);
            (0..=segments).map(|_| from + random.below((len - from).min(40) + 1)).collect()
        }
    };
    all.sort_unstable();
    if random.below(2) == 0 {
        all[0] = 0;
        all[segments] = if segments > 0 { len } else { 0 };
    }
    all
}

#[test]
fn offsets_ascend_and_their_number_is_that_of_the_parameters() {
    for seed in 0..3000 {
        let case = Case::draw(seed, &crate::case::Lengths::near(&[100]).most(300), true);
        let offsets = offsets(&case, case.len);
        assert!(offsets.is_sorted() && offsets.iter().all(|&at| at <= case.len), "{case}: {offsets:?}");
        assert_eq!(offsets.len(), super::data::offsets(&case.refill(1), case.len).len());
    }
}
