//! The kinds of items: data that is difficult for selection and balance.

use crate::case::{Case, Random};
use crate::items::Item;

/// The pattern of successive items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    Constant,
    Sorted,
    Reversed,
    /// Values go up and down again.
    OrganPipe,
    Sawtooth,
    /// There are two to five values in random order.
    Few,
    /// All values are equal except one.
    Outlier,
    /// There are plateaus of winners, long and short, among losers.
    Bursts,
    /// There are runs whose lengths have Zipf's distribution.
    Zipf,
    /// There is one run of most items, and short runs around it.
    Giant,
    /// All bit patterns occur.
    Noise,
    /// There are NaN, ±0, infinities, subnormals, the least and the greatest values, among others.
    Special,
}

impl Pattern {
    /// All patterns, the simplest first.
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
    /// A place in an order, which types keep as far as they can.
    At(u16),
    /// Any bits.
    Bits(u64),
    /// The `n`th special value of the type.
    Special(u8),
}

/// Returns lengths of runs: many short runs, and few long runs.
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

/// Returns the items of a column of the input. Each column number has other items.
pub fn items<T: Item>(case: &Case, column: u64, len: usize) -> Vec<T> {
    levels(case, column, len).into_iter().map(T::of).collect()
}

/// Returns small integers in the same way, even if the type has other values. Their sums are exact in every order.
pub fn small<T: Item>(case: &Case, column: u64, len: usize) -> Vec<T> {
    levels(case, column, len).into_iter().map(T::small).collect()
}

/// Returns numbers from −1 to 1 in the same way, whose sums are not exact.
pub fn reals(case: &Case, column: u64, len: usize) -> Vec<f64> {
    let real = |level| match level {
        Level::At(level) => level as f64 / 32_768.0 - 1.0,
        Level::Bits(bits) => (bits as i64) as f64 / (1u64 << 63) as f64,
        Level::Special(n) => 1.0 / (n as f64 + 3.0) - 0.2,
    };
    levels(case, column, len).into_iter().map(real).collect()
}

/// Returns the same numbers as `f32`.
pub fn floats(case: &Case, column: u64, len: usize) -> Vec<f32> {
    reals(case, column, len).iter().map(|&x| x as f32).collect()
}

/// Returns the sums of the items up to each item, and the largest error of sums in `f32`. At least the threads of a warp add side by side.
pub fn sums(x: &[f32]) -> impl Iterator<Item = (f64, f64)> {
    let (mut sum, mut size) = (0.0, 0.0);
    x.iter().enumerate().map(move |(i, &x)| {
        (sum, size) = (sum + x as f64, size + x.abs() as f64);
        (sum, size * (i + 1).min(i / 32 + 128) as f64 * 2f64.powi(-24))
    })
}

/// Returns the sum of all items, and the largest error of a sum in `f32`.
pub fn sum(x: &[f32]) -> (f64, f64) {
    sums(x).last().unwrap_or_default()
}

/// Returns `first` and the sums of the items before each item, and the largest errors, as [`sums`].
pub fn sums_before(first: f32, x: &[f32]) -> Vec<(f64, f64)> {
    let all: Vec<f32> = std::iter::once(first).chain(x.iter().copied()).collect();
    sums(&all).take(x.len()).collect()
}

/// Returns whether each item has a property: for long runs, for no item, for all items, or at random.
pub fn flags(case: &Case, column: u64, len: usize) -> Vec<bool> {
    items::<bool>(case, column, len)
}

/// Returns `0..len` in another order.
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

/// Returns offsets of segments of `len` items. There is one more than there are segments, whose number depends only on the parameters.
pub fn offsets(case: &Case, len: usize) -> Vec<usize> {
    let mut of = case.param(77);
    let drawn = match of.below(8) {
        0 => 0,
        1 => 1,
        2 => 2 + of.below(3),
        3 => len,
        4 => 2 * len + 3,
        _ => 1 + of.below(len / 3 + 2),
    };
    // Usual segments have 50 items on average, or there is one segment, which is anywhere.
    let segments = case.usual([len.div_ceil(50), 1]).unwrap_or(drawn).min(9000);
    let mut random = Random::new(case.seed ^ 0x0ff5);
    let kind = random.below(6);
    let mut all: Vec<usize> = match case.usual([[0, 2][kind % 2], 0]).unwrap_or(kind) {
        // The offsets are anywhere.
        0 | 1 => (0..=segments).map(|_| random.below(len + 1)).collect(),
        // The segments have similar lengths.
        2 => (0..=segments).map(|i| i * len / segments.max(1)).collect(),
        // One segment has all items.
        3 => {
            let at = random.below(segments + 1);
            (0..=segments).map(|i| if i <= at { 0 } else { len }).collect()
        }
        // The lengths have Zipf's distribution, as far as the items suffice.
        4 => {
            let mut end = random.below(3).min(len);
            let mut all = vec![end];
            all.extend((0..segments).map(|_| {
                end = (end + zipf(&mut random) - 1).min(len);
                end
            }));
            all
        }
        // The offsets are close to each other.
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

#[test]
fn usual_segments_have_most_items() {
    for seed in 0..100 {
        let case = Case::draw(seed, &crate::case::Lengths::near(&[100]), true).shaped(0);
        for len in [900, 20_160, 70_001] {
            let offsets = offsets(&case, len);
            assert_eq!(offsets.len(), len.div_ceil(50) + 1);
            assert!(offsets.windows(2).all(|ends| ends[1] - ends[0] < len / 2), "{case}: {offsets:?}");
            assert!(offsets[offsets.len() - 1] - offsets[0] > len / 2, "{case}: {offsets:?}");
        }
    }
}
