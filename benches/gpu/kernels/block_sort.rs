//! Each block loads a tile of keys once, and scrambles and sorts them several times: what is measured is the sort.

use kernel_primitives::block::{
    MergeSortStorage, RadixSortStorage, SortStorage, block_merge_sort, block_radix_sort, block_sort,
};
use kernel_primitives::functor::Less;
use kernel_primitives::prelude::*;

/// A key that is made another one by a few instructions, the same as on the peer's side.
pub trait Scramble: SortKey {
    fn scramble(self) -> Self;
}

#[inline(always)]
fn scramble_bits(bits: u32) -> u32 {
    let product = bits.wrapping_mul(0x9e37_79b1);
    product ^ product >> 15
}

impl Scramble for i32 {
    #[inline(always)]
    fn scramble(self) -> Self {
        scramble_bits(self as u32) as i32
    }
}

impl Scramble for f32 {
    /// Between 1 and 2, or -1 and -2: the peer knows no order of NaN.
    #[inline(always)]
    fn scramble(self) -> Self {
        f32::from_bits(scramble_bits(self.to_bits()) & 0x807f_ffff | 0x3f80_0000)
    }
}

#[inline(always)]
fn rounds<K: Scramble, const ITEMS: usize>(
    cx: Block,
    x: Global<K>,
    out: &mut GlobalMut<K, Tiles<ITEMS>>,
    rounds: u32,
    mut sort: impl FnMut(&mut [K; ITEMS]),
) {
    for tile in cx.tiles::<ITEMS>(x.len()) {
        let mut keys = init::<K, ITEMS>(K::ZERO);
        read_data(cx, &mut keys, x.tile(tile));
        let mut round = 0;
        while round < rounds {
            keys = elementwise_unary(&keys, |key: K| key.scramble());
            sort(&mut keys);
            round += 1;
        }
        write_data(cx, out.tile(tile), &keys);
    }
}

#[kernel(threads(THREADS), min_blocks(896 / THREADS), instantiate(
    <f32, 128, 4>, <f32, 128, 8>, <f32, 256, 4>, <f32, 256, 8>, <i32, 128, 4>, <i32, 128, 8>, <i32, 256, 4>, <i32, 256, 8>,
))]
pub fn radix<K: Scramble, const THREADS: usize, const ITEMS: usize>(
    cx: Block,
    x: Global<K>,
    n: u32,
    mut out: GlobalMut<K, Tiles<ITEMS>>,
    mut shared: Shared<RadixSortStorage<THREADS, ITEMS, K>>,
) {
    rounds(cx, x, &mut out, n, |keys| block_radix_sort(cx, &mut shared, keys, 0..32, Less));
}

#[kernel(threads(THREADS), min_blocks(1024 / THREADS), instantiate(
    <f32, 128, 4>, <f32, 128, 8>, <f32, 256, 4>, <f32, 256, 8>, <i32, 128, 4>, <i32, 128, 8>, <i32, 256, 4>, <i32, 256, 8>,
))]
pub fn merge<K: Scramble, const THREADS: usize, const ITEMS: usize>(
    cx: Block,
    x: Global<K>,
    n: u32,
    mut out: GlobalMut<K, Tiles<ITEMS>>,
    mut shared: Shared<MergeSortStorage<THREADS, ITEMS, K>>,
) {
    rounds(cx, x, &mut out, n, |keys| block_merge_sort(cx, &mut shared, keys, THREADS * ITEMS, Less));
}

#[kernel(threads(THREADS), instantiate(
    <f32, 128, 4, 512>, <f32, 128, 8, 1024>, <f32, 256, 4, 1024>, <f32, 256, 8, 2048>,
    <i32, 128, 4, 512>, <i32, 128, 8, 1024>, <i32, 256, 4, 1024>, <i32, 256, 8, 2048>,
))]
pub fn network<K: Scramble, const THREADS: usize, const ITEMS: usize, const TILE: usize>(
    cx: Block,
    x: Global<K>,
    n: u32,
    mut out: GlobalMut<K, Tiles<ITEMS>>,
    mut shared: Shared<SortStorage<K, TILE>>,
) {
    rounds(cx, x, &mut out, n, |keys| block_sort(cx, &mut shared, keys, TILE, Less));
}
