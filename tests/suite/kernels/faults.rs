//! Kernels that do something wrong. The comments `fault: …` mark the lines that a fault names.

use kernel_primitives::input::{Permutation, Span};
use kernel_primitives::prelude::*;
use kernel_primitives::simt;

/// Returns true in the thread that makes the mistake: thread 5 of block 2.
#[inline(always)]
fn culprit(cx: Block<'_>) -> bool {
    cx.block_rank() == 2 && cx.thread_rank() == 5
}

#[kernel]
pub fn read_outside(cx: Block, index: u64, x: Global<f32>, mut out: GlobalMut<f32>) {
    for i in cx.items(out.len()) {
        if culprit(cx) {
            out.set(i, x[index as usize]); // fault: read_outside
        }
    }
}

#[kernel]
pub fn write_outside(cx: Block, len: u64, mut out: GlobalMut<f32>) {
    for i in cx.items(len as usize) {
        out.set(i, 1.0); // fault: write_outside
    }
}

#[kernel]
pub fn tile_outside(cx: Block, len: u64, mut out: GlobalMut<f32, Tiles<4>>) {
    for tile in cx.tiles::<4>(len as usize) {
        write_data(cx, out.tile(tile), &[1.0; 4]); // fault: tile_outside
    }
}

#[kernel]
pub fn slice_outside(_cx: Block, end: u64, x: Global<f32>, mut out: GlobalMut<u64, PerBlock>) {
    let part = x.slice(1..end as usize); // fault: slice_outside
    out.store(part.len() as u64);
}

#[kernel]
pub fn store_outside(_cx: Block, mut out: GlobalMut<u64, PerBlock>) {
    out.store(1); // fault: store_outside
}

#[kernel]
pub fn atomic_outside(cx: Block, index: u64, counts: GlobalMut<u32, Atomic>) {
    if culprit(cx) {
        counts.at(index as usize).fetch_add(1); // fault: atomic_outside
    }
}

#[kernel]
pub fn shared_outside(cx: Block, index: u64, mut out: GlobalMut<u32, PerBlock>, mut shared: Shared<[u32; 8]>) {
    if culprit(cx) {
        shared.set(index as usize, 1); // fault: shared_outside
    }
    out.store(1);
}

#[kernel]
pub fn rest_outside(cx: Block, mut out: GlobalMut<u32, PerBlock>, rest: SharedSlice<u32>) {
    if culprit(cx) {
        out.store(rest.get(rest.len())); // fault: rest_outside
    }
}

#[kernel]
pub fn author_fault(cx: Block, code: u64) {
    if culprit(cx) {
        cx.fault(code); // fault: author_fault
    }
}

#[kernel]
pub fn failed_assertion(cx: Block, limit: u32) {
    if culprit(cx) {
        assert!(cx.thread_rank() < limit, "thread {} is over {limit}", cx.thread_rank()); // fault: failed_assertion
    }
}

#[kernel]
pub fn slice_index(cx: Block, index: u64, mut out: GlobalMut<u32>) {
    let table = [cx.thread_rank(), 2, 3];
    for i in cx.items(out.len()) {
        if culprit(cx) {
            out.set(i, table[index as usize]); // fault: slice_index
        }
    }
}

#[kernel]
pub fn input_outside(cx: Block, index: u64, x: Input<Span<f32>>, mut out: GlobalMut<f32>) {
    for i in cx.items(out.len()) {
        if culprit(cx) {
            out.set(i, x.at(index as usize)); // fault: input_outside
        }
    }
}

#[kernel]
pub fn permuted_outside(cx: Block, x: Input<Permutation<Span<f32>, Span<i32>>>, mut out: GlobalMut<f32>) {
    for i in cx.items(out.len()) {
        if let Some(item) = x.get(i.index()) {
            out.set(i, item);
        }
        let items = x.items::<4>(i.index()); // fault: permuted_outside
        out.set(i, items.map_or(0.0, |[a, ..]| a));
    }
}

#[kernel]
pub fn integer_division(cx: Block, x: Global<i32>, y: Global<i32>, mut out: GlobalMut<i32>) {
    for i in cx.items(out.len()) {
        out.set(i, x[i] / y[i]); // fault: integer_division
    }
}

/// The quotient, plus the remainder if `x` is the greatest value. It has no block token, so a fault names the line that
/// applies it.
#[derive(Clone, Copy, KernelParam)]
pub struct Dividing;

impl<T: Number + simt::DivideInt> BinaryFn<T> for Dividing {
    type Output = T;
    fn apply(&self, x: T, y: T) -> T {
        let rest = if x == T::GREATEST { simt::remainder(x, y) } else { T::ZERO };
        rest.add(simt::divide(x, y))
    }
}

#[kernel(instantiate(<i8>, <u8>, <i16>, <u16>, <i32>, <u32>, <i64>, <u64>))]
pub fn dividing<T: Number + simt::DivideInt>(cx: Block, x: Global<T>, y: Global<T>, mut out: GlobalMut<T>) {
    for i in cx.items(out.len()) {
        out.set(i, Dividing.apply(x[i], y[i])); // fault: dividing
    }
}

#[kernel]
pub fn unwrapped_none(cx: Block, index: u64, x: Global<f32>, mut out: GlobalMut<f32>) {
    for i in cx.items(out.len()) {
        if culprit(cx) {
            out.set(i, x.get(index as usize).expect("an element")); // fault: unwrapped_none
        }
    }
}

/// Block 2 faults while the other blocks wait for a flag that it never writes.
#[kernel]
pub fn fault_while_others_spin(cx: Block, flag: GlobalMut<u32, Atomic>) {
    if culprit(cx) {
        cx.fault(7); // fault: fault_while_others_spin
    }
    while flag.at(0).load() == 0 {
        cx.spin(100);
    }
}

/// Each block waits for the block before it, and divides before the next block may continue, as in a look-back.
#[kernel]
pub fn division_in_a_chain(cx: Block, divisors: Global<u32>, states: GlobalMut<u32, Atomic>) {
    let block = cx.block_rank();
    if cx.thread_rank() == 5 {
        while block > 0 && states.at(block - 1).load() == 0 {
            cx.spin(100);
        }
        states.at(block).store(1 + Dividing.apply(8, divisors[block])); // fault: division_in_a_chain
    }
}

/// Does the same as [`division_in_a_chain`], with a panic.
#[kernel]
pub fn panic_in_a_chain(cx: Block, divisors: Global<u32>, states: GlobalMut<u32, Atomic>) {
    let block = cx.block_rank();
    if cx.thread_rank() == 5 {
        while block > 0 && states.at(block - 1).load() == 0 {
            cx.spin(100);
        }
        let quotient = 8u32.checked_div(divisors[block]).expect("a divisor"); // fault: panic_in_a_chain
        states.at(block).store(1 + quotient);
    }
}

/// Faults at once if there is a code. Otherwise it waits for `turns` turns, and then writes that nothing ended it
/// early.
#[kernel]
pub fn wait_or_fault(cx: Block, turns: u64, code: u64, mut out: GlobalMut<u64, PerBlock>) {
    if code != 0 {
        cx.fault(code); // fault: wait_or_fault
    }
    for _ in 0..turns {
        cx.spin(1000);
    }
    out.store(turns);
}

/// Every thread faults. One of them is reported.
#[kernel]
pub fn everyone_faults(cx: Block) {
    cx.fault(cx.thread_rank() as u64); // fault: everyone_faults
}

/// Faults after writes by other threads.
#[kernel]
pub fn fault_at_the_end(cx: Block, mut out: GlobalMut<f32>) {
    for i in cx.items(out.len()) {
        out.set(i, 1.0);
    }
    cx.barrier();
    if culprit(cx) {
        cx.fault(1);
    }
}

/// Only the first `threads` threads reach the barrier.
#[kernel]
pub fn divergent_barrier(cx: Block, threads: u32) {
    if cx.thread_rank() < threads {
        cx.barrier(); // fault: divergent_barrier
    }
}

/// Uses two barriers where there must be one.
#[kernel]
pub fn two_barriers(cx: Block) {
    if cx.thread_rank() == 0 {
        cx.barrier(); // fault: two_barriers
    } else {
        cx.barrier();
    }
}

/// Shuffles with a mask whose last lane never arrives.
#[kernel]
pub fn missing_lane(cx: Block, mut out: GlobalMut<u32>) {
    for i in cx.items(out.len()) {
        if cx.lane() != 31 {
            let value = cx.shuffle_xor(FULL_MASK, cx.lane(), 1, 32); // fault: missing_lane
            out.set(i, value);
        }
    }
}

/// Shuffles with a mask that does not contain the calling lane.
#[kernel]
pub fn own_lane_outside_mask(cx: Block, mut out: GlobalMut<u32>) {
    for i in cx.items(out.len()) {
        let value = cx.shuffle(1, cx.lane(), 0, 32); // fault: own_lane_outside_mask
        out.set(i, value);
    }
}

/// Uses a full mask in a partial warp.
#[kernel]
pub fn full_mask_in_partial_warp(cx: Block, mut out: GlobalMut<u32>) {
    for i in cx.items(out.len()) {
        let value = cx.ballot(FULL_MASK, true); // fault: full_mask_in_partial_warp
        out.set(i, value);
    }
}

/// Shuffles in segments of `width` lanes.
#[kernel]
pub fn odd_width(cx: Block, width: u32, mut out: GlobalMut<u32>) {
    for i in cx.items(out.len()) {
        let value = cx.shuffle_xor(FULL_MASK, cx.lane(), 1, width); // fault: odd_width
        out.set(i, value);
    }
}

/// Waits for a flag that no thread sets.
#[kernel]
pub fn endless_wait(cx: Block, flag: GlobalMut<u32, Atomic>) {
    while flag.at(0).load() == 0 {
        cx.spin(100); // fault: endless_wait
    }
}
