//! Kernels with atomics and the order of memory.

use core::ops::{BitAnd, BitOr, BitXor};

use kernel_primitives::prelude::*;
use kernel_primitives::simt::{AtomicElement, AtomicInt, AtomicOrder};

/// Counts the items of `x` in each of 16 bins. Each block counts in shared memory first.
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

/// Calls every atomic operation with every value of `x`, on 16 elements. At block scope, each block has 16 elements of
/// its own.
///
/// The elements are: 0: sum, 1: minimum, 2: maximum, 3: and, 4: or, 5: exclusive or, 6: exchange, 7: the sum of the
/// results of the exchanges, 8: sum by compare-and-exchange, 9: the sum of the results of `fetch_max(0)` on an element
/// that is always 5, 10: stored.
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

/// The elements are: 0: sum, 6: exchange, 7: the sum of the results of the exchanges, 8: sum by compare-and-exchange,
/// 10: stored.
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

/// Adds `values` to elements, one element for each thread. The elements are in both halves of `cells`, and in a copy in
/// shared memory. Writes the old values of the second half, and the new values in shared memory.
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
        // An atomic without a used result is another instruction.
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

/// Each block adds its number, counted from 1, to the sum of the block before it. The order comes from release and
/// acquire, or from fences.
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
        // SAFETY: it was written before the flag was released.
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
