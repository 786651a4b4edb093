//! The collectives of `primitives-gpu` in every order of lanes, with a function that does not commute.

use primitives_gpu::block::{ReduceStorage, block_reduce, block_x_reduce};
use primitives_gpu::warp::warp_reduce;
use primitives_gpu::{BinaryFn, Reducer, Shared};

use super::*;

/// The product of 2 × 2 matrices modulo a prime.
#[derive(Clone, Copy)]
struct Product;

type Matrix = [u16; 4];

impl BinaryFn<Matrix> for Product {
    type Output = Matrix;
    fn apply(&self, [a, b, c, d]: Matrix, [e, f, g, h]: Matrix) -> Matrix {
        let dot = |x: u16, y: u16, z: u16, w: u16| ((x as u64 * y as u64 + z as u64 * w as u64) % 65521) as u16;
        [dot(a, e, b, g), dot(a, f, b, h), dot(c, e, d, g), dot(c, f, d, h)]
    }
}

impl Reducer<Matrix> for Product {
    fn identity(&self) -> Matrix {
        [1, 0, 0, 1]
    }
}

fn value(block: usize, rank: u32) -> Matrix {
    let n = (block as u32 * 7919 + rank + 1) as u16;
    [n, n.wrapping_mul(3) % 101 + 1, n % 7 + 2, n.wrapping_mul(31) % 1009]
}

fn product(block: usize, ranks: std::ops::Range<u32>) -> Matrix {
    ranks.map(|rank| value(block, rank)).reduce(|a, b| Product.apply(a, b)).unwrap()
}

type Storage<'k> = Shared<'k, ReduceStorage<Matrix>>;

/// Runs `reduce` in blocks of all shapes. Each thread must get the product of the run of threads it belongs to; `runs`
/// tells their length, from a block's shape.
fn all_shapes(
    runs: impl Fn(Dim3) -> u32,
    reduce: impl for<'k> Fn(Block<'k>, &mut Storage<'k>, Matrix) -> Matrix + Sync,
) {
    let more = [
        (31, 1, 1),
        (48, 1, 1),
        (96, 1, 1),
        (127, 1, 1),
        (1000, 1, 1),
        (6, 6, 6),
        (40, 3, 1),
        (100, 10, 1),
        (33, 31, 1),
        (64, 3, 2),
        (64, 16, 1),
        (96, 5, 1),
        (512, 2, 1),
    ];
    for shape in SHAPES.into_iter().chain(more) {
        let (dim, blocks) = (Dim3::from(shape), 2);
        let (threads, run) = (dim.count() as u32, runs(dim));
        let expected: Vec<Vec<Matrix>> = (0..blocks)
            .map(|block| {
                let starts = (0..threads).step_by(run as usize);
                starts.map(|start| product(block, start..threads.min(start + run))).collect()
            })
            .collect();
        for options in modes().into_iter().chain((0..4).map(seeded)) {
            go(&options, blocks as u32, shape, |cx| {
                // SAFETY: the launch reserves 2048 bytes.
                let mut shared = unsafe { Shared::<ReduceStorage<Matrix>>::from_arena(cx, 0) };
                let (block, rank) = (cx.block_rank(), cx.thread_rank());
                for _ in 0..3 {
                    let total = reduce(cx, &mut shared, value(block, rank));
                    assert_eq!(total, expected[block][(rank / run) as usize]);
                }
            })
            .unwrap_or_else(|error| panic!("{shape:?}: {error}"));
        }
    }
}

#[test]
fn the_reducer_does_not_commute() {
    let (a, b) = (value(0, 0), value(0, 1));
    assert_ne!(Product.apply(a, b), Product.apply(b, a));
}

#[test]
fn warps_reduce_in_order() {
    all_shapes(|_| 32, |cx, _, value| warp_reduce(cx, value, Product));
}

#[test]
fn blocks_reduce_in_order() {
    all_shapes(|block| block.count() as u32, |cx, shared, value| block_reduce(cx, shared, value, Product));
}

#[test]
fn rows_reduce_in_order() {
    all_shapes(|block| block.x, |cx, shared, value| block_x_reduce(cx, shared, value, Product));
}
