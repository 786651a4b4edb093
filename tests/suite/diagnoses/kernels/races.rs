//! Kernels with one race each, and without it if `right`.

use kernel_primitives::prelude::*;
use kernel_primitives::simt::AtomicOrder::{self, Acquire, Relaxed, Release};

use super::{next, rank};

#[kernel]
pub fn shared_write_read(cx: Block, right: bool, mut out: GlobalMut<u32>, mut shared: Shared<[u32; 128]>) {
    for i in cx.items(out.len()) {
        shared.set(rank(cx), cx.thread_rank()); // at: shared_write_read write
        if right {
            cx.barrier();
        }
        out.set(i, shared.get(next(cx))); // at: shared_write_read read
    }
}

#[kernel]
pub fn shared_write_write(cx: Block, right: bool, mut shared: Shared<[u32; 128]>) {
    let slot = if right { rank(cx) } else { rank(cx) / 2 };
    shared.set(slot, 1); // at: shared_write_write write
}

/// The second barrier lets all threads read before the storage is used again.
#[kernel]
pub fn shared_read_write(cx: Block, right: bool, mut out: GlobalMut<u32>, mut shared: Shared<[u32; 128]>) {
    shared.set(rank(cx), 1);
    cx.barrier();
    let value = shared.get(next(cx)); // at: shared_read_write read
    if right {
        cx.barrier();
    }
    shared.set(rank(cx), 2); // at: shared_read_write write
    for i in cx.items(out.len()) {
        out.set(i, value);
    }
}

/// Two threads write bytes of one word. They share the word.
#[kernel]
pub fn shared_bytes(cx: Block, right: bool, mut out: GlobalMut<u32>, mut shared: Shared<[u8; 128]>) {
    shared.set(rank(cx), 1); // at: shared_bytes write
    if right {
        cx.barrier();
    }
    let value = shared.get(next(cx)); // at: shared_bytes read
    for i in cx.items(out.len()) {
        out.set(i, value as u32);
    }
}

#[kernel]
pub fn warp_without_sync(cx: Block, right: bool, mut out: GlobalMut<u32>, mut shared: Shared<[u32; 128]>) {
    shared.set(rank(cx), cx.lane()); // at: warp_without_sync write
    if right {
        cx.sync_warp(cx.warp_mask());
    }
    // A shuffle orders only its values.
    let _ = cx.shuffle_xor(cx.warp_mask(), 1, 1, 32);
    let value = shared.get(rank(cx) ^ 1); // at: warp_without_sync read
    for i in cx.items(out.len()) {
        out.set(i, value);
    }
}

#[kernel]
pub fn warp_wrong_mask(cx: Block, right: bool, mut out: GlobalMut<u32>, mut shared: Shared<[u32; 128]>) {
    shared.set(rank(cx), cx.lane()); // at: warp_wrong_mask write
    let half = if cx.lane() < 16 { 0x0000_ffff } else { 0xffff_0000 };
    cx.sync_warp(if right { FULL_MASK } else { half });
    let value = shared.get(rank(cx) ^ 16); // at: warp_wrong_mask read
    for i in cx.items(out.len()) {
        out.set(i, value);
    }
}

#[kernel]
pub fn atomic_against_plain(cx: Block, right: bool, mut out: GlobalMut<u32, PerBlock>, mut shared: Shared<[u32; 1]>) {
    if rank(cx) == 0 {
        shared.set(0, 0);
    }
    cx.barrier();
    shared.at(0).fetch_add(1); // at: atomic_against_plain atomic update
    if right {
        cx.barrier();
    }
    if rank(cx) == 0 {
        out.store(shared.get(0)); // at: atomic_against_plain read
    }
}

/// Each block has its own element if `right`. Otherwise all blocks have the same element.
#[kernel]
pub fn blocks_share_an_element(cx: Block, right: bool, mut out: GlobalMut<u64>) {
    if rank(cx) == 0 {
        let element = if right { cx.block_rank() } else { 0 };
        // SAFETY: the block has its own element, if `right`.
        unsafe { out.write(element, 1) }; // at: blocks_share_an_element write
    }
}

#[kernel]
pub fn global_write_read(cx: Block, right: bool, mut out: GlobalMut<u32>) {
    let first = cx.block_rank() * cx.block_threads() as usize;
    // SAFETY: the barrier orders the accesses, if `right`.
    unsafe {
        out.write(first + rank(cx), 1); // at: global_write_read write
        if right {
            cx.barrier();
        }
        let value = out.read(first + next(cx)); // at: global_write_read read
        cx.barrier();
        out.write(first + rank(cx), value);
    }
}

/// Each block passes a value to the next block, as in a single-pass scan.
#[inline(always)]
fn relay(
    cx: Block<'_>,
    flags: &GlobalMut<'_, u32, Atomic>,
    sums: &mut GlobalMut<'_, u64>,
    [store, load]: [AtomicOrder; 2],
    [before, after]: [Option<Scope>; 2],
) {
    if rank(cx) != 0 {
        return;
    }
    let block = cx.block_rank();
    let mut sum = block as u64;
    if block > 0 {
        while flags.at(block - 1).order(load).load() == 0 {
            cx.spin(20);
        }
        if let Some(scope) = after {
            cx.fence(scope);
        }
        // SAFETY: it was written before the flag was stored, if the orders and scopes suffice.
        sum += unsafe { sums.read(block - 1) }; // at: relay read
    }
    // SAFETY: only this block writes it.
    unsafe { sums.write(block, sum) }; // at: relay write
    if let Some(scope) = before {
        cx.fence(scope);
    }
    flags.at(block).order(store).store(1);
}

#[kernel]
pub fn look_back_without_fence(cx: Block, right: bool, flags: GlobalMut<u32, Atomic>, mut sums: GlobalMut<u64>) {
    let fence = Some(Scope::Device).filter(|_| right);
    relay(cx, &flags, &mut sums, [Relaxed, Relaxed], [fence, Some(Scope::Device)]);
}

#[kernel]
pub fn look_back_without_second_fence(cx: Block, right: bool, flags: GlobalMut<u32, Atomic>, mut sums: GlobalMut<u64>) {
    let fence = Some(Scope::Device).filter(|_| right);
    relay(cx, &flags, &mut sums, [Relaxed, Relaxed], [Some(Scope::Device), fence]);
}

#[kernel]
pub fn fence_too_narrow(cx: Block, right: bool, flags: GlobalMut<u32, Atomic>, mut sums: GlobalMut<u64>) {
    let scope = if right { Scope::Device } else { Scope::Block };
    relay(cx, &flags, &mut sums, [Relaxed, Acquire], [Some(scope), None]);
}

#[kernel]
pub fn release_without_acquire(cx: Block, right: bool, flags: GlobalMut<u32, Atomic>, mut sums: GlobalMut<u64>) {
    let load = if right { Acquire } else { Relaxed };
    relay(cx, &flags, &mut sums, [Release, load], [None, None]);
}

#[kernel]
pub fn acquire_without_release(cx: Block, right: bool, flags: GlobalMut<u32, Atomic>, mut sums: GlobalMut<u64>) {
    let store = if right { Release } else { Relaxed };
    relay(cx, &flags, &mut sums, [store, Acquire], [None, None]);
}

/// The last block adds the values that all blocks have stored. Each thread reads after the counter's update and a
/// barrier.
#[kernel]
pub fn last_block(
    cx: Block,
    right: bool,
    count: GlobalMut<u32, Atomic>,
    mut parts: GlobalMut<u64>,
    mut last: Shared<[u32; 1]>,
) {
    let (block, blocks) = (cx.block_rank(), cx.grid_blocks());
    if rank(cx) == 0 {
        // SAFETY: only this block writes it.
        unsafe { parts.write(block, 1) }; // at: last_block write
        if right {
            cx.fence(Scope::Device);
        }
        let before = count.at(0).fetch_add(1);
        cx.fence(Scope::Device);
        last.set(0, (before as usize + 1 == blocks) as u32);
    }
    cx.barrier();
    if last.get(0) == 1 {
        let mut part = rank(cx);
        while part < blocks {
            // SAFETY: the value was stored before its block counted, if `right`.
            let value = unsafe { parts.read(part) }; // at: last_block read
            // SAFETY: only this thread writes it.
            unsafe { parts.write(part, value + 1) };
            part += cx.block_threads() as usize;
        }
    }
}

/// Has a lock around a plain counter.
#[kernel]
pub fn locked_counter(cx: Block, right: bool, lock: GlobalMut<u32, Atomic>, mut count: GlobalMut<u64>) {
    let (take, leave) = if right { (Acquire, Release) } else { (Relaxed, Relaxed) };
    while lock.at(0).order(take).compare_exchange(0, 1) != 0 {
        cx.spin(20);
    }
    // SAFETY: one thread at a time has the lock. The accesses are ordered if `right`.
    unsafe {
        let value = count.read(0); // at: locked_counter read
        count.write(0, value + 1); // at: locked_counter write
    }
    lock.at(0).order(leave).store(0);
}
