//! Shapes of blocks, and what the references of collectives share.

use kernel_primitives::{Dim3, Dims};

use crate::case::{Case, Lengths};

/// A block's shape, in one to three dimensions.
#[derive(Clone, Copy)]
pub struct Shape(u32, u32, u32);

impl Shape {
    /// Makes a shape with at most `most` threads.
    pub fn of(case: &Case, most: usize) -> Self {
        let mut param = case.param(20);
        let threads = match param.below(10) {
            0..6 => 1 + param.below(130),
            6..9 => param.one_of(&[1, 7, 31, 32, 33, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 416, 544]),
            _ => 1 + param.below(most),
        };
        let threads = threads.min(most);
        match param.below(3) {
            0 => Self(threads as u32, 1, 1),
            by => {
                let x = 1 + param.below(threads);
                let y = if by == 1 { threads / x } else { 1 + param.below(threads / x) };
                Self(x as u32, y as u32, ((threads / (x * y)).min(64)) as u32)
            }
        }
    }

    /// Makes a shape with exactly `threads` threads.
    pub fn exactly(case: &Case, threads: usize) -> Self {
        let mut param = case.param(20);
        let mut divisor = |of: usize| {
            let divisors: Vec<usize> = (1..=of).filter(|by| of.is_multiple_of(*by)).collect();
            if param.below(2) == 0 { of } else { param.one_of(&divisors) }
        };
        let x = divisor(threads);
        let y = divisor(threads / x);
        let z = threads / (x * y);
        // A block has at most 64 layers.
        if z > 64 { Self(threads as u32, 1, 1) } else { Self(x as u32, y as u32, z as u32) }
    }

    pub fn threads(self) -> usize {
        Dim3::from((self.0, self.1, self.2)).count() as usize
    }

    pub fn dims(self, blocks: usize) -> Dims {
        Dims::new(blocks as u32, (self.0, self.1, self.2))
    }

    pub fn x(self) -> usize {
        self.0 as usize
    }

    pub fn y(self) -> usize {
        self.1 as usize
    }
}

/// Returns the number of blocks: one or two.
pub fn blocks(case: &Case) -> usize {
    1 + case.param(21).below(2)
}

/// Returns lengths of a few blocks' tiles.
pub fn lengths(tile: usize) -> Lengths {
    Lengths::near(&[tile, 2 * tile]).most(4 * tile)
}

/// Returns all items, combined.
pub fn total<T: Copy>(x: &[T], op: impl Fn(T, T) -> T) -> Option<T> {
    x.iter().copied().reduce(op)
}

/// Returns, for each item of each thread, its number in the tile, in the striped arrangement.
pub fn striped(threads: usize, items: usize) -> Vec<usize> {
    (0..threads).flat_map(|thread| (0..items).map(move |i| i * threads + thread)).collect()
}
