//! Runs of equal items, for tests of algorithms by runs.

use crate::support::Random;

/// The lengths of runs.
#[derive(Clone, Copy, Debug)]
pub enum Runs {
    /// Each run has one item.
    One,
    /// Each run has sixteen items.
    Sixteen,
    /// Runs have one to forty items, at random.
    Random,
    /// All items are one run.
    All,
    /// There are a few items at either end, and one run of all others.
    Huge,
}

impl Runs {
    pub const ALL: [Self; 5] = [Self::One, Self::Sixteen, Self::Random, Self::All, Self::Huge];
}

/// Returns the lengths of runs of `len` items in all.
pub fn lengths(runs: Runs, len: usize, seed: u64) -> Vec<usize> {
    let mut random = Random::new(seed);
    let (mut lengths, mut rest) = (Vec::new(), len);
    while rest > 0 {
        let next = match runs {
            Runs::One => 1,
            Runs::Sixteen => 16,
            Runs::Random => 1 + random.below(40) as usize,
            Runs::All => len,
            Runs::Huge if rest > len.saturating_sub(5) || rest <= 5 => 1,
            Runs::Huge => rest - 5,
        };
        lengths.push(next.min(rest));
        rest -= next.min(rest);
    }
    lengths
}

/// Repeats the result of `of` for the number of each run by the run's length. Neighbours must differ.
pub fn repeated<T: Copy>(lengths: &[usize], of: impl Fn(usize) -> T) -> Vec<T> {
    lengths.iter().enumerate().flat_map(|(run, &len)| std::iter::repeat_n(of(run), len)).collect()
}
