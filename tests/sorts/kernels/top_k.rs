//! The first few of any number of keys.

use kernel_primitives::block::{TopKStorage, block_top_k_by, block_top_k_of, block_top_k_of_sorted};
use kernel_primitives::functor::{Direction, Greater, Less};
use kernel_primitives::prelude::*;

/// Finds the first `k` of all keys, in one of several ways. If `way` is 0, it reads them itself; if it is 1, they are read in rounds; if it
/// is 2, they are taken as sorted sequences, each with a key in turn.
#[kernel(max_threads(256), instantiate(<f32, Greater, 8, 2048, 8>, <u64, Less, 2, 128, 3>, <i16, Less, 4, 400, 16>))]
pub fn top_of<K: SortKey, O: Direction, const ITEMS: usize, const TILE: usize, const READ: usize>(
    cx: Block,
    x: Global<K>,
    k: u32,
    way: u32,
    mut out: GlobalMut<K, Tiles<ITEMS>>,
    mut index_out: GlobalMut<u32, Tiles<ITEMS>>,
    order: O,
    mut shared: Shared<TopKStorage<K, TILE>>,
) {
    let threads = cx.block_threads() as usize;
    let rounds = x.len().div_ceil(threads * READ);
    let read = |round: usize| {
        let first = round * threads * READ + cx.thread_rank() as usize;
        let mut keys = init::<K, READ>(K::ZERO);
        let mut bits = 0;
        for (i, key) in keys.iter_mut().enumerate() {
            if let Some(found) = x.get(first + i * threads) {
                *key = found;
                bits |= 1 << i;
            }
        }
        (keys, core::array::from_fn(|i| (first + i * threads) as u32), bits)
    };
    let (keys, indices) = match way {
        0 => block_top_k_of(cx, &mut shared, x, k as usize, order),
        1 => block_top_k_by(cx, &mut shared, rounds, k as usize, order, read),
        _ => block_top_k_of_sorted(cx, &mut shared, rounds, k as usize, order, read),
    };
    for tile in cx.tiles::<ITEMS>(out.len()) {
        write_data(cx, out.tile(tile), &keys);
        write_data(cx, index_out.tile(tile), &indices);
    }
}

/// Works as [`top_of`], with a source that changes. It gives no keys when it is asked how many come before the `k`th, and all keys when
/// they are to be added.
#[kernel(max_threads(64))]
pub fn top_of_a_changing_source(cx: Block, k: u32, mut out: GlobalMut<u32>, mut shared: Shared<TopKStorage<u32, 512>>) {
    let asked = core::cell::Cell::new(0u32);
    let (keys, _): ([u32; 8], _) = block_top_k_by(cx, &mut shared, 8, k as usize, Greater, |round: usize| {
        asked.set(asked.get() + 1);
        let keys: [u32; 8] = core::array::from_fn(|i| (round * 512 + i) as u32 + cx.thread_rank() * 8);
        (keys, keys, if asked.get() % 2 == 1 { (cx.thread_rank() == 0) as u32 } else { 0xff })
    });
    for i in cx.items(out.len()) {
        out.set(i, keys[0]);
    }
}
