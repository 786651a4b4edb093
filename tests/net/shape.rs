//! Shapes of blocks, and what the references of collectives share.

use std::ops::Range;

use kernel_primitives::{Dim3, Dims};

use crate::case::{Case, Lengths};

/// The parameters of a case for these kinds of blocks: one thread, a partial warp, two dimensions, and the largest block. These cases have
/// one block for three tiles, so that storage is used again.
pub const CORNERS: Range<u64> = 2..6;

/// A block's shape, in one to three dimensions.
#[derive(Clone, Copy)]
pub struct Shape(u32, u32, u32);

impl Shape {
    /// Makes a shape with at most `most` threads, which is at least 85.
    pub fn of(case: &Case, most: usize) -> Self {
        match case.params {
            2 => return Self(1, 1, 1),
            3 => return Self(45, 1, 1),
            4 => return Self(17, 5, 1),
            5 => return Self(most as u32, 1, 1),
            _ => {}
        }
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
        if CORNERS.contains(&case.params) {
            let y = if case.params == 4 { (2..=threads).find(|y| threads.is_multiple_of(*y)) } else { None };
            let y = y.unwrap_or(1);
            return Self((threads / y) as u32, y as u32, 1);
        }
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
    if CORNERS.contains(&case.params) { 1 } else { 1 + case.param(21).below(2) }
}

/// Returns the number of tiles: one to three.
pub fn tiles(case: &Case) -> usize {
    if CORNERS.contains(&case.params) { 3 } else { 1 + case.param(26).below(3) }
}

/// Returns the length of up to three tiles, or of a little more.
pub fn len(case: &Case, tile: usize) -> usize {
    if CORNERS.contains(&case.params) { 3 * tile - 1 } else { case.len % (3 * tile + 2) }
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

#[test]
fn the_first_cases_have_all_kinds_of_blocks() {
    let case = |params| Case { params, ..Case::draw(1, &lengths(100), false) };
    for most in [128, 256, 1024] {
        let shapes: Vec<Shape> = CORNERS.map(|params| Shape::of(&case(params), most)).collect();
        let has = |kind: &dyn Fn(&Shape) -> bool| shapes.iter().any(kind);
        assert!(has(&|shape| shape.threads() == 1));
        assert!(has(&|shape| shape.threads() % 32 > 0 && shape.threads() > 32));
        assert!(has(&|shape| shape.x() > 1 && shape.y() > 1));
        assert!(has(&|shape| shape.threads() == most));
        assert!(shapes.iter().all(|shape| shape.threads() <= most));
    }
    for threads in [1, 7, 65, 128, 1024] {
        let shapes: Vec<Shape> = CORNERS.map(|params| Shape::exactly(&case(params), threads)).collect();
        assert!(shapes.iter().all(|shape| shape.threads() == threads));
        assert!(threads == 1 || shapes.iter().any(|shape| shape.y() > 1));
    }
    for params in CORNERS {
        assert!(blocks(&case(params)) < tiles(&case(params)));
    }
}
