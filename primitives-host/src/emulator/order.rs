//! The order in which blocks start, and the random choices of a seeded launch.

use std::cell::Cell;

use super::EmulatorOptions;

/// The architectures from which on kernels choose otherwise: compute capabilities times ten.
const ARCHS: [u32; 3] = [75, 80, 90];

/// The architecture that a launch takes the place of, its compute capability times 100: the one it is told, or one of a seed's choice, or
/// the last.
pub(super) fn arch(options: &EmulatorOptions) -> u32 {
    let drawn = || match options.seed {
        Some(seed) => ARCHS[Random::new(seed, u64::MAX).below(ARCHS.len() as u32) as usize],
        None => ARCHS[ARCHS.len() - 1],
    };
    options.arch.unwrap_or_else(drawn).saturating_mul(10)
}

/// A small generator of repeatable choices (SplitMix64).
pub(super) struct Random(Cell<u64>);

impl Random {
    /// The choices number `stream` of a seed: streams of one seed have nothing to do with each other.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let random = Self(Cell::new(seed));
        random.0.set(random.next() ^ stream.wrapping_mul(0xd134_2543_de82_ef95));
        random
    }

    #[inline]
    fn next(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which is not 0.
    #[inline]
    pub(super) fn below(&self, limit: u32) -> u32 {
        (((self.next() >> 32) * limit as u64) >> 32) as u32
    }

    /// The position of one of the bits set in `mask`, which is not 0.
    #[inline]
    pub(super) fn bit(&self, mask: u32) -> u32 {
        position(mask, self.below(mask.count_ones()))
    }
}

/// The position of the bit of `mask` that has `rank` set bits below it. There are more than `rank` bits.
///
/// It has no branches: they would depend on chance.
#[inline]
fn position(mask: u32, mut rank: u32) -> u32 {
    // The numbers of bits set in each pair of bits, in each four, and so on.
    let twos = mask - (mask >> 1 & 0x5555_5555);
    let fours = (twos & 0x3333_3333) + (twos >> 2 & 0x3333_3333);
    let eights = (fours + (fours >> 4)) & 0x0f0f_0f0f;
    let sixteens = (eights + (eights >> 8)) & 0x00ff_00ff;
    let mut at = 0;
    for (counts, width) in [(sixteens, 16), (eights, 8), (fours, 4), (twos, 2), (mask, 1)] {
        let below = counts >> at & ((1 << width) - 1);
        let is_above = u32::from(rank >= below);
        rank -= below * is_above;
        at += width * is_above;
    }
    at
}

/// From the order of starting to the blocks' ranks.
///
/// Without a seed blocks start in rank order. With one, in any order, since CUDA promises none: a block that waits for one
/// of which it does not know that it has started may wait for ever, once all that can be resident do.
pub(super) struct Order {
    seed: Option<u64>,
    blocks: u64,
    /// Bits of half a number: numbers of two halves are at least as many as blocks, and less than four times as many, or four.
    half: u32,
}

impl Order {
    pub(super) fn new(seed: Option<u64>, blocks: u64) -> Self {
        let bits = u64::BITS - blocks.saturating_sub(1).leading_zeros();
        Self { seed, blocks, half: bits.div_ceil(2) }
    }

    /// The rank of the block that starts as number `ordinal`, which is one of the grid's.
    pub(super) fn rank(&self, ordinal: u64) -> u64 {
        let Some(seed) = self.seed else {
            return ordinal;
        };
        // The way from a number of the grid through those beyond it comes back to the grid, to a rank that no other comes to.
        let mut rank = ordinal;
        loop {
            rank = self.permuted(seed, rank);
            if rank < self.blocks {
                return rank;
            }
        }
    }

    /// A permutation of all numbers of two halves, by rounds that change one half by the other (a Feistel network).
    fn permuted(&self, seed: u64, number: u64) -> u64 {
        let mask = (1 << self.half) - 1;
        let (mut high, mut low) = (number >> self.half, number & mask);
        for round in 0..4 {
            let change = Random::new(seed ^ round, low).next();
            (high, low) = (low, high ^ change & mask);
        }
        high << self.half | low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_any_architecture() {
        let arch_of = |seed, arch| {
            let mut options = EmulatorOptions::default();
            (options.seed, options.arch) = (seed, arch);
            super::arch(&options)
        };
        let mut drawn: Vec<u32> = (0..100).map(|seed| arch_of(Some(seed), None)).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn, [750, 800, 900]);
        assert_eq!((arch_of(None, None), arch_of(Some(1), Some(86))), (900, 860));
    }

    #[test]
    fn every_bit_has_its_rank() {
        let random = Random::new(5, 0);
        for mask in
            (0..2000).map(|i| random.next() as u32 & random.next() as u32 >> (i % 32)).chain([1, 1 << 31, u32::MAX])
        {
            let bits: Vec<u32> = (0..32).filter(|bit| mask >> bit & 1 != 0).collect();
            let found: Vec<u32> = (0..mask.count_ones()).map(|rank| position(mask, rank)).collect();
            assert_eq!(found, bits, "{mask:#x}");
        }
    }

    #[test]
    fn every_block_starts_once() {
        for blocks in [1, 2, 3, 4, 5, 11, 16, 17, 700, 1000, 1024] {
            for seed in [None, Some(0), Some(7)] {
                let order = Order::new(seed, blocks);
                let mut ranks: Vec<u64> = (0..blocks).map(|i| order.rank(i)).collect();
                ranks.sort_unstable();
                assert!(ranks.into_iter().eq(0..blocks), "{blocks} blocks, seed {seed:?}");
            }
        }
    }

    #[test]
    fn a_seed_changes_the_order_and_repeats_it() {
        let ranks = |seed| {
            let order = Order::new(Some(seed), 64);
            (0..64).map(|i| order.rank(i)).collect::<Vec<_>>()
        };
        assert_eq!(ranks(1), ranks(1));
        assert_ne!(ranks(1), ranks(2));
        assert_ne!(ranks(1), (0..64).collect::<Vec<_>>());
    }

    #[test]
    fn any_block_comes_at_any_time() {
        for blocks in [2, 3, 10] {
            let mut came = vec![0u64; blocks as usize];
            for seed in 0..200 {
                let order = Order::new(Some(seed), blocks);
                (0..blocks).for_each(|i| came[i as usize] |= 1 << order.rank(i));
            }
            assert!(came.iter().all(|&ranks| ranks == (1 << blocks) - 1), "{blocks} blocks: {came:?}");
        }
    }

    #[test]
    fn the_last_block_of_the_largest_grid_has_a_rank() {
        let blocks = u64::MAX;
        assert_eq!(Order::new(None, blocks).rank(blocks - 1), blocks - 1);
        assert!(Order::new(Some(3), blocks).rank(blocks - 1) < blocks);
    }

    #[test]
    fn every_bit_of_a_mask_is_chosen() {
        let random = Random::new(1, 1);
        let mask = 0x8001_0110;
        let seen = (0..200).fold(0, |seen, _| seen | 1 << random.bit(mask));
        assert_eq!(seen, mask);
    }
}
