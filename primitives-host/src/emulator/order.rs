//! The order in which blocks start, and the random choices of a seeded launch.

use std::cell::Cell;

/// A small generator of repeatable choices (SplitMix64).
pub(super) struct Random(Cell<u64>);

impl Random {
    /// The choices number `stream` of a seed: streams of one seed have nothing to do with each other.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let random = Self(Cell::new(seed));
        random.0.set(random.next() ^ stream.wrapping_mul(0xd134_2543_de82_ef95));
        random
    }

    fn next(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub(super) fn below(&self, limit: u32) -> u32 {
        (((self.next() >> 32) * limit as u64) >> 32) as u32
    }

    /// The position of one of the bits set in `mask`, which is not 0.
    pub(super) fn bit(&self, mask: u32) -> u32 {
        let mut rest = mask;
        for _ in 0..self.below(mask.count_ones()) {
            rest &= rest - 1;
        }
        rest.trailing_zeros()
    }
}

/// From the order of starting to the blocks' ranks.
///
/// Without a seed blocks start in rank order. With one, each run of `window` ranks is shuffled in itself. A block may
/// wait for blocks of lower rank, as single-pass algorithms do, and gets on as long as all blocks between can be
/// resident together: so the window is at most what can be resident.
pub(super) struct Order {
    seed: Option<u64>,
    window: u64,
    blocks: u64,
    /// Which window `shuffled` belongs to.
    current: Option<u64>,
    /// Ranks, relative to the window's first.
    shuffled: Vec<u32>,
}

impl Order {
    pub(super) fn new(seed: Option<u64>, window: u32, blocks: u64) -> Self {
        Self { seed, window: window.max(1) as u64, blocks, current: None, shuffled: Vec::new() }
    }

    /// The rank of the block that starts as number `ordinal`.
    pub(super) fn rank(&mut self, ordinal: u64) -> u64 {
        let Some(seed) = self.seed else {
            return ordinal;
        };
        let window = ordinal / self.window;
        let first = window * self.window;
        if self.current != Some(window) {
            let len = self.window.min(self.blocks - first) as u32;
            let random = Random::new(seed, window);
            self.shuffled.clear();
            self.shuffled.extend(0..len);
            for i in (1..len).rev() {
                self.shuffled.swap(i as usize, random.below(i + 1) as usize);
            }
            self.current = Some(window);
        }
        first + self.shuffled[(ordinal - first) as usize] as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_starts_once() {
        for (window, blocks) in [(1, 5), (4, 1), (4, 4), (4, 11), (64, 1000), (1024, 700)] {
            for seed in [None, Some(0), Some(7)] {
                let mut order = Order::new(seed, window, blocks);
                let mut ranks: Vec<u64> = (0..blocks).map(|i| order.rank(i)).collect();
                ranks.sort_unstable();
                assert!(ranks.into_iter().eq(0..blocks), "window {window}, {blocks} blocks, seed {seed:?}");
            }
        }
    }

    #[test]
    fn a_seed_changes_the_order_and_repeats_it() {
        let ranks = |seed| {
            let mut order = Order::new(Some(seed), 64, 64);
            (0..64).map(|i| order.rank(i)).collect::<Vec<_>>()
        };
        assert_eq!(ranks(1), ranks(1));
        assert_ne!(ranks(1), ranks(2));
        assert_ne!(ranks(1), (0..64).collect::<Vec<_>>());
    }

    #[test]
    fn the_last_block_of_the_largest_grid_has_a_rank() {
        let blocks = u64::MAX;
        assert_eq!(Order::new(None, 16, blocks).rank(blocks - 1), blocks - 1);
        let rank = Order::new(Some(3), 16, blocks).rank(blocks - 1);
        assert!(rank >= blocks - 16 && rank < blocks);
    }

    #[test]
    fn every_bit_of_a_mask_is_chosen() {
        let random = Random::new(1, 1);
        let mask = 0x8001_0110;
        let seen = (0..200).fold(0, |seen, _| seen | 1 << random.bit(mask));
        assert_eq!(seen, mask);
    }
}
