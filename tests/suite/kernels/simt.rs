//! The machine: indices, exchange between lanes, barriers, atomics, shared memory, mathematics.

use core::ops::{BitAnd, BitOr, BitXor};

use super::{Sixteen, Triangular, Twelve};
use kernel_primitives::prelude::*;
use kernel_primitives::simt::{AtomicElement, AtomicInt, AtomicOrder};

/// What a thread knows of itself.
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

/// Writes what each thread knows of itself at its rank in the grid.
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

/// Shuffles `x`, one value a thread, by one mode with the operands 0, 1, 2 and so on, a round each.
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

/// Each lane reads the lane that `from` names for it.
#[kernel]
pub fn gather_lanes(cx: Block, x: Global<u32>, from: Global<u32>, mut out: GlobalMut<u32>) {
    for i in cx.items(out.len()) {
        out.set(i, cx.shuffle(FULL_MASK, x[i], from[i], 32));
    }
}

/// The upper and the lower half of a warp, apart from each other.
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

/// Ballot, any, all, matches of a warp, and whether the active mask has this lane.
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

/// Sum, minimum, maximum, and, or, exclusive or of a warp.
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

/// As [`redux_unsigned`].
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

/// A barrier's count, all and any.
#[kernel]
pub fn barrier_votes(cx: Block, x: Global<u32>, mut out: GlobalMut<[u32; 3]>) {
    for i in cx.items(out.len()) {
        let odd = x[i] % 2 == 1;
        let found = [cx.barrier_count(odd), cx.barrier_all(odd) as u32, cx.barrier_any(odd) as u32];
        out.set(i, found);
    }
}

/// Reverses each warp's values through shared memory, with warp barriers only.
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
        // SAFETY: that thread has written its element before the barrier.
        out.set(i, unsafe { shared.get_written(threads - 1 - rank) });
        cx.barrier();
    }
}

/// Two storages whose sizes and alignments differ, of a block of at most 33 threads: neither touches the other.
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

/// The lengths of three storages and of the rest.
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

/// Reverses `x` through the shared memory that the launch asks for, by one block.
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

/// Rotates `x` by one place through 60 KB of static shared memory, by one block.
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

/// How many of `x` fall in each of 16 bins: counted in shared memory first.
#[kernel]
pub fn histogram(cx: Block, x: Global<u32>, counts: GlobalMut<u32, Atomic>, mut bins: Shared<[u32; 16]>) {
    if cx.thread_rank() == 0 {
        for bin in 0..bins.len() {
            bins.set(bin, 0);
        }
    }
    cx.barrier();
    for i in cx.items(x.len()) {
        bins.at(x[i] as usize % 16).fetch_add(1);
    }
    cx.barrier();
    let mut bin = cx.thread_rank() as usize;
    while bin < bins.len() {
        counts.at(bin).fetch_add(bins.get(bin));
        bin += cx.block_threads() as usize;
    }
}

#[inline(always)]
fn order_of(number: u32) -> AtomicOrder {
    match number {
        0 => AtomicOrder::Relaxed,
        1 => AtomicOrder::Acquire,
        2 => AtomicOrder::Release,
        _ => AtomicOrder::AcqRel,
    }
}

#[inline(always)]
fn scope_of(number: u32) -> Scope {
    match number {
        0 => Scope::Block,
        1 => Scope::Device,
        _ => Scope::System,
    }
}

/// Every atomic operation with every value of `x`, on 16 elements; at block scope on 16 elements a block.
///
/// 0: sum, 1: minimum, 2: maximum, 3: and, 4: or, 5: exclusive or, 6: exchange, 7: the sum of what the exchanges returned,
/// 8: sum by compare-and-exchange, 9: the sum of what `fetch_max(0)` on an element that stays 5 returned, 10: stored.
#[kernel(instantiate(<u32>, <i32>, <u64>, <i64>))]
pub fn update_integers<T>(cx: Block, order: u32, scope: u32, x: Global<T>, cells: GlobalMut<T, Atomic>)
where
    T: AtomicInt + Number + Ord + BitAnd<Output = T> + BitOr<Output = T> + BitXor<Output = T>,
{
    let (order, scope) = (order_of(order), scope_of(scope));
    let base = if matches!(scope, Scope::Block) { cx.block_rank() * 16 } else { 0 };
    let cell = |k: usize| cells.at(base + k).order(order).scope(scope);
    for i in cx.items(x.len()) {
        let value = x[i];
        cell(0).fetch_add(value);
        cell(1).fetch_min(value);
        cell(2).fetch_max(value);
        cell(3).fetch_and(value);
        cell(4).fetch_or(value);
        cell(5).fetch_xor(value);
        let before = cell(6).exchange(value);
        cell(7).fetch_add(before);
        loop {
            let before = cell(8).load();
            if cell(8).compare_exchange(before, before.add(value)) == before {
                break;
            }
        }
        let five = cell(11).fetch_max(T::ZERO);
        cell(9).fetch_add(five);
        cell(10).store(T::ONE);
    }
}

/// 0: sum, 6: exchange, 7: the sum of what the exchanges returned, 8: sum by compare-and-exchange, 10: stored.
#[kernel(instantiate(<f32>, <f64>))]
pub fn update_floats<T>(cx: Block, order: u32, scope: u32, x: Global<T>, cells: GlobalMut<T, Atomic>)
where
    T: AtomicElement + Number,
{
    let (order, scope) = (order_of(order), scope_of(scope));
    let base = if matches!(scope, Scope::Block) { cx.block_rank() * 16 } else { 0 };
    let cell = |k: usize| cells.at(base + k).order(order).scope(scope);
    for i in cx.items(x.len()) {
        let value = x[i];
        cell(0).fetch_add(value);
        let before = cell(6).exchange(value);
        cell(7).fetch_add(before);
        loop {
            let before = cell(8).load();
            if cell(8).compare_exchange(before, before.add(value)) == before {
                break;
            }
        }
        cell(10).store(T::ONE);
    }
}

/// One thread compares and exchanges once.
#[kernel(instantiate(<f32>, <i64>))]
pub fn compare_exchange_once<T: AtomicElement>(
    cx: Block,
    expected: T,
    new: T,
    cell: GlobalMut<T, Atomic>,
    mut before: GlobalMut<T, PerBlock>,
) {
    if cx.thread_rank() == 0 {
        let found = cell.at(0).compare_exchange(expected, new);
        before.store(found);
    }
}

/// Adds `values` to elements, a thread each: to `cells`, in whose halves the elements are, and to a copy in shared memory. Writes what
/// was in the second half, and what shared memory has afterwards.
#[kernel(equal_len(values, out), instantiate(<f32>, <f64>))]
pub fn add_once<T: AtomicElement>(
    cx: Block,
    values: Global<T>,
    cells: GlobalMut<T, Atomic>,
    mut out: GlobalMut<[T; 2]>,
    shared: Shared<[T; 32]>,
) {
    for i in cx.items(out.len()) {
        let (at, value) = (i.index(), values[i]);
        shared.at(at).store(cells.at(at).load());
        // An atomic whose result nobody takes is another instruction.
        cells.at(at).fetch_add(value);
        let before = cells.at(out.len() + at).fetch_add(value);
        shared.at(at).fetch_add(value);
        out.set(i, [before, shared.at(at).load()]);
    }
}

/// Each thread of the grid takes a ticket and marks it.
#[kernel]
pub fn take_tickets(_cx: Block, counter: GlobalMut<u32, Atomic>, taken: GlobalMut<u32, Atomic>) {
    let ticket = counter.at(0).fetch_add(1);
    taken.at(ticket as usize).fetch_add(1);
}

/// Each block adds its number from 1 on to what the block before it left: by release and acquire, or by fences.
#[kernel]
pub fn relay(cx: Block, by_fence: bool, flags: GlobalMut<u32, Atomic>, mut sums: GlobalMut<u64, PerBlock>) {
    if cx.thread_rank() != 0 {
        return;
    }
    let rank = cx.block_rank();
    let mut before = 0;
    if rank > 0 {
        let flag = flags.at(rank - 1);
        if by_fence {
            while flag.load() == 0 {
                cx.spin(20);
            }
            cx.fence(Scope::Device);
        } else {
            while flag.order(AtomicOrder::Acquire).load() == 0 {
                cx.spin(20);
            }
        }
        // SAFETY: written before the flag was released.
        before = unsafe { sums.read(rank - 1) };
    }
    sums.store(before + rank as u64 + 1);
    if by_fence {
        cx.fence(Scope::Device);
        flags.at(rank).store(1);
    } else {
        flags.at(rank).order(AtomicOrder::Release).store(1);
    }
}

/// A function of [`Real`] by its number in the test's table.
#[kernel(equal_len(x, y, z, out), instantiate(<f32>, <f64>))]
pub fn math<T: Real>(cx: Block, which: u32, x: Global<T>, y: Global<T>, z: Global<T>, mut out: GlobalMut<T>) {
    for i in cx.items(out.len()) {
        let (a, b, c) = (x[i], y[i], z[i]);
        let value = match which {
            0 => a.sqrt(),
            1 => a.rsqrt(),
            2 => a.cbrt(),
            3 => a.exp(),
            4 => a.exp2(),
            5 => a.exp_m1(),
            6 => a.ln(),
            7 => a.log2(),
            8 => a.log10(),
            9 => a.ln_1p(),
            10 => a.powf(b),
            11 => a.sin(),
            12 => a.cos(),
            13 => a.tan(),
            14 => a.asin(),
            15 => a.acos(),
            16 => a.atan(),
            17 => a.atan2(b),
            18 => a.sinh(),
            19 => a.cosh(),
            20 => a.tanh(),
            21 => a.hypot(b),
            22 => a.abs(),
            23 => a.floor(),
            24 => a.ceil(),
            25 => a.trunc(),
            26 => a.round_ties_even(),
            27 => a.round(),
            28 => a.mul_add(b, c),
            29 => a.copysign(b),
            30 => a.acosh(),
            31 => a.asinh(),
            32 => a.atanh(),
            33 => a.error_function(),
            34 => a.error_function_complement(),
            35 => a.tgamma(),
            _ => a.lgamma(),
        };
        out.set(i, value);
    }
}

/// Quotients, and products plus sums in two roundings.
#[kernel(equal_len(x, y, out))]
pub fn divide_f32(cx: Block, x: Global<f32>, y: Global<f32>, mut out: GlobalMut<[f32; 2]>) {
    for i in cx.items(out.len()) {
        out.set(i, [x[i] / y[i], x[i] * y[i] + x[i]]);
    }
}

/// As [`divide_f32`].
#[kernel(equal_len(x, y, out))]
pub fn divide_f64(cx: Block, x: Global<f64>, y: Global<f64>, mut out: GlobalMut<[f64; 2]>) {
    for i in cx.items(out.len()) {
        out.set(i, [x[i] / y[i], x[i] * y[i] + x[i]]);
    }
}

/// The extents of the block and this thread's rank, in blocks of exactly 8 by `ROWS`.
#[kernel(threads(8, ROWS), instantiate(<4>, <3>))]
pub fn exact<const ROWS: usize>(cx: Block, mut out: GlobalMut<[u32; 4]>) {
    for i in cx.items(out.len()) {
        let d = cx.block_dim();
        out.set(i, [d.x, d.y, d.z, cx.thread_rank()]);
    }
}

/// Which block each item's thread is in, blocks of at most twice `WARPS` warps.
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

/// Parameters by value, of every size, beside views.
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
