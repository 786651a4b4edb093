//! Kernels of the machine: indices, exchange between lanes, barriers and shared memory. Atomics, mathematics and the table
//! of its elementary functions have modules of their own.

pub mod atomics;
pub mod elementary;
pub mod math;

use super::{Sixteen, Triangular, Twelve};
use kernel_primitives::prelude::*;

/// What a thread knows about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Element)]
#[repr(C)]
pub struct Indices {
    pub thread: [u32; 3],
    pub block: [u32; 3],
    pub block_dim: [u32; 3],
    pub grid_dim: [u32; 3],
    pub thread_rank: u32,
    pub block_threads: u32,
    pub block_rank: u32,
    pub grid_blocks: u32,
    pub lane: u32,
    pub warp: u32,
    pub warps: u32,
    pub warp_lanes: u32,
    pub warp_mask: u32,
}

#[inline(always)]
fn array(d: Dim3) -> [u32; 3] {
    [d.x, d.y, d.z]
}

/// Writes what each thread knows about itself at its rank in the grid.
#[kernel]
pub fn indices(cx: Block, mut out: GlobalMut<Indices>) {
    for i in cx.items(out.len()) {
        out.set(
            i,
            Indices {
                thread: array(cx.thread_idx()),
                block: array(cx.block_idx()),
                block_dim: array(cx.block_dim()),
                grid_dim: array(cx.grid_dim()),
                thread_rank: cx.thread_rank(),
                block_threads: cx.block_threads(),
                block_rank: cx.block_rank() as u32,
                grid_blocks: cx.grid_blocks() as u32,
                lane: cx.lane(),
                warp: cx.warp(),
                warps: cx.warps(),
                warp_lanes: cx.warp_lanes(),
                warp_mask: cx.warp_mask(),
            },
        );
    }
}

/// Shuffles `x`, which has one value for each thread, by one mode. Round after round, the operand is 0, 1, 2 and so on.
#[kernel(instantiate(<u8>, <f16>, <f32>, <i64>, <Twelve>, <Sixteen>, <bool>, <[u8; 3]>, <Triangular>))]
pub fn shuffle<T: Element>(cx: Block, mode: u32, width: u32, x: Global<T>, mut out: GlobalMut<T>) {
    let mask = cx.warp_mask();
    let value = x[cx.thread_rank() as usize];
    for (round, i) in cx.items(out.len()).enumerate() {
        let operand = round as u32;
        let shuffled = match mode {
            0 => cx.shuffle(mask, value, operand, width),
            1 => cx.shuffle_up(mask, value, operand, width),
            2 => cx.shuffle_down(mask, value, operand, width),
            _ => cx.shuffle_xor(mask, value, operand, width),
        };
        out.set(i, shuffled);
    }
}

/// The lanes of a mask shuffle `x` upwards. Round after round, the distance is 0, 1, 2 and so on. Writes the value that comes, or else the
/// lane's own value, and whether one comes.
#[kernel(equal_len(out, came), instantiate(<u32>, <i64>, <[u8; 3]>))]
pub fn try_shuffle_up<T: Element>(
    cx: Block,
    mask: u32,
    width: u32,
    x: Global<T>,
    mut out: GlobalMut<T>,
    mut came: GlobalMut<bool>,
) {
    let value = x[cx.thread_rank() as usize];
    for (round, i) in cx.items(out.len()).enumerate() {
        let takes_part = mask >> cx.lane() & 1 == 1;
        let found = if takes_part { cx.try_shuffle_up(mask, value, round as u32, width) } else { None };
        out.set(i, found.unwrap_or(value));
        came.set(i, found.is_some());
    }
}

/// Each lane reads the lane that `from` names for it.
#[kernel]
pub fn gather_lanes(cx: Block, x: Global<u32>, from: Global<u32>, mut out: GlobalMut<u32>) {
    for i in cx.items(out.len()) {
        out.set(i, cx.shuffle(FULL_MASK, x[i], from[i], 32));
    }
}

/// The upper and the lower half of a warp work independently.
#[kernel]
pub fn half_warps(cx: Block, x: Global<u32>, mut out: GlobalMut<[u32; 4]>) {
    for i in cx.items(out.len()) {
        let found = if cx.lane() < 16 {
            let mask = 0x0000_ffff;
            [cx.shuffle_xor(mask, x[i], 15, 16), cx.ballot(mask, x[i].is_multiple_of(2)), cx.redux_add(mask, x[i]), 1]
        } else {
            let mask = 0xffff_0000;
            [cx.shuffle_down(mask, x[i], 1, 16), cx.ballot(mask, x[i].is_multiple_of(3)), cx.redux_max(mask, x[i]), 2]
        };
        out.set(i, found);
    }
}

/// Writes the ballot, any, all and the matches of a warp, and if the active mask has this lane.
#[kernel(instantiate(<u8>, <u32>, <i64>, <f64>))]
pub fn votes<T: Number>(cx: Block, x: Global<T>, mut out: GlobalMut<[u32; 6]>) {
    let mask = cx.warp_mask();
    for i in cx.items(out.len()) {
        let odd = x[i] != T::ZERO;
        let found = [
            cx.ballot(mask, odd),
            cx.any(mask, odd) as u32,
            cx.all(mask, odd) as u32,
            cx.match_any(mask, x[i]),
            cx.match_all(mask, x[i]) as u32,
            cx.active_mask() >> cx.lane() & 1,
        ];
        out.set(i, found);
    }
}

/// Writes the sum, minimum, maximum, and, or, and exclusive or of a warp.
#[kernel]
pub fn redux_unsigned(cx: Block, x: Global<u32>, mut out: GlobalMut<[u32; 6]>) {
    let mask = cx.warp_mask();
    for i in cx.items(out.len()) {
        let v = x[i];
        let found = [
            cx.redux_add(mask, v),
            cx.redux_min(mask, v),
            cx.redux_max(mask, v),
            cx.redux_and(mask, v),
            cx.redux_or(mask, v),
            cx.redux_xor(mask, v),
        ];
        out.set(i, found);
    }
}

/// Does the same as [`redux_unsigned`].
#[kernel]
pub fn redux_signed(cx: Block, x: Global<i32>, mut out: GlobalMut<[i32; 6]>) {
    let mask = cx.warp_mask();
    for i in cx.items(out.len()) {
        let v = x[i];
        let found = [
            cx.redux_add(mask, v),
            cx.redux_min(mask, v),
            cx.redux_max(mask, v),
            cx.redux_and(mask, v),
            cx.redux_or(mask, v),
            cx.redux_xor(mask, v),
        ];
        out.set(i, found);
    }
}

/// Writes the count, all and any of a barrier.
#[kernel]
pub fn barrier_votes(cx: Block, x: Global<u32>, mut out: GlobalMut<[u32; 3]>) {
    for i in cx.items(out.len()) {
        let odd = x[i] % 2 == 1;
        let found = [cx.barrier_count(odd), cx.barrier_all(odd) as u32, cx.barrier_any(odd) as u32];
        out.set(i, found);
    }
}

/// Reverses each warp's values through shared memory, with only warp barriers.
#[kernel]
pub fn reverse_warps(cx: Block, x: Global<u32>, mut out: GlobalMut<u32>, mut shared: Shared<[u32; 1024]>) {
    let mask = cx.warp_mask();
    let first = (cx.warp() * 32) as usize;
    let (lane, lanes) = (cx.lane() as usize, cx.warp_lanes() as usize);
    for i in cx.items(out.len()) {
        shared.set(first + lane, x[i]);
        cx.sync_warp(mask);
        out.set(i, shared.get(first + lanes - 1 - lane));
        cx.sync_warp(mask);
    }
}

/// Reverses each block's values through shared memory.
#[kernel(instantiate(<u8>, <bool>, <f16>, <f32>, <f64>, <Twelve>, <Sixteen>))]
pub fn reverse_blocks<T: Element>(cx: Block, x: Global<T>, mut out: GlobalMut<T>, mut shared: Shared<[T; 1024]>) {
    let (rank, threads) = (cx.thread_rank() as usize, cx.block_threads() as usize);
    for i in cx.items(out.len()) {
        shared.set(rank, x[i]);
        cx.barrier();
        // SAFETY: the other thread has written its element before the barrier.
        out.set(i, unsafe { shared.get_written(threads - 1 - rank) });
        cx.barrier();
    }
}

/// Uses storages with different sizes and alignments, in a block of at most 33 threads. None of them touches another.
#[kernel]
pub fn two_storages(
    cx: Block,
    mut out: GlobalMut<f64>,
    mut bytes: Shared<[u8; 33]>,
    mut wide: Shared<[f64; 33]>,
    mut more: Shared<[f16; 33]>,
) {
    let (rank, threads) = (cx.thread_rank() as usize, cx.block_threads() as usize);
    for i in cx.items(out.len()) {
        wide.set(rank, rank as f64 * 0.25);
        bytes.set(rank, rank as u8);
        more.set(rank, f16::ONE);
        cx.barrier();
        let other = threads - 1 - rank;
        out.set(i, bytes.get(other) as f64 * 1000.0 + wide.get(other) + (more.get(other) == f16::ONE) as u8 as f64);
        cx.barrier();
    }
}

/// Writes the lengths of two storages and of the rest.
#[kernel]
pub fn storage_lengths(
    _cx: Block,
    mut out: GlobalMut<[u32; 4], PerBlock>,
    a: Shared<[u8; 5]>,
    b: Shared<[f64; 3]>,
    rest: SharedSlice<f32>,
) {
    out.store([a.len() as u32, b.len() as u32, rest.len() as u32, rest.is_empty() as u32]);
}

/// Reverses `x` by one block, through the shared memory that the launch asks for.
#[kernel(instantiate(<u8>, <f32>, <f64>, <Twelve>))]
pub fn reverse_rest<T: Element>(
    cx: Block,
    x: Global<T>,
    mut out: GlobalMut<T>,
    mut front: Shared<[u8; 5]>,
    mut rest: SharedSlice<T>,
) {
    if cx.thread_rank() < 5 {
        front.set(cx.thread_rank() as usize, 0xff);
    }
    for i in cx.items(rest.len()) {
        rest.set(i.index(), x[i]);
    }
    cx.barrier();
    for i in cx.items(out.len()) {
        out.set(i, rest.get(rest.len() - 1 - i.index()));
    }
}

/// Rotates `x` by one place by one block, through 60 KB of static shared memory.
#[kernel]
pub fn rotate_large(cx: Block, x: Global<f32>, mut out: GlobalMut<f32>, mut shared: Shared<[f32; 15000]>) {
    for i in cx.items(shared.len()) {
        shared.set(i.index(), x[i]);
    }
    cx.barrier();
    for i in cx.items(out.len()) {
        out.set(i, shared.get((i.index() + 1) % shared.len()));
    }
}

/// Writes the extents of the block and the thread's rank, in blocks of exactly 8 by `ROWS`.
#[kernel(threads(8, ROWS), instantiate(<4>, <3>))]
pub fn exact<const ROWS: usize>(cx: Block, mut out: GlobalMut<[u32; 4]>) {
    for i in cx.items(out.len()) {
        let d = cx.block_dim();
        out.set(i, [d.x, d.y, d.z, cx.thread_rank()]);
    }
}

/// Writes the block of each item's thread, in blocks of at most twice `WARPS` warps.
#[kernel(max_threads(64 * WARPS), min_blocks(2), instantiate(<1>, <2>))]
pub fn bounded<const WARPS: usize>(cx: Block, mut out: GlobalMut<u32>) {
    for i in cx.items(out.len()) {
        out.set(i, cx.block_rank() as u32);
    }
}

/// Does nothing, in any shape.
#[kernel]
pub fn nothing(cx: Block) {
    let _ = cx;
}

/// Takes parameters by value, of every size, beside views.
#[kernel]
#[allow(clippy::too_many_arguments, reason = "it is about many parameters")]
pub fn parameters(
    _cx: Block,
    a: u8,
    b: f64,
    c: bool,
    d: [u16; 3],
    mut out: GlobalMut<f64, PerBlock>,
    e: Twelve,
    f: i64,
    g: f16,
    h: Add,
    i: (),
) {
    let () = i;
    let sum = a as f64 + b + c as u8 as f64 + d[0] as f64 + d[1] as f64 * 2.0 + d[2] as f64 * 4.0;
    let sum = h.apply(sum, e.a as f64 + e.b as f64 + e.c as f64);
    out.store(h.apply(sum, f as f64 + g.to_f32() as f64));
}

/// Rotates `x` by two places in one block of 64 threads: by one in an array, and by one in the same memory as a storage.
#[kernel(threads(64))]
pub fn rotate_twice(cx: Block, x: Global<u32>, mut out: GlobalMut<u32>, mut rest: SharedSlice<u32>) {
    let rank = cx.thread_rank() as usize;
    rest.set(rank, x[rank]);
    cx.barrier();
    let next = rest.get((rank + 1) % 64);
    let mut storage = rest.storage::<RotateStorage<u32, 64>>();
    let after_next = block_rotate(cx, &mut storage, next, 1);
    for i in cx.items(64) {
        out.set(i, after_next);
    }
}
