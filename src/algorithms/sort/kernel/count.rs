//! Counts the digits of all passes, with one read of the keys.

use core::marker::PhantomData;

use kernel_primitives::prelude::*;
use kernel_primitives::view::SharedStorage;

use super::{DIGITS, Digit, SORT_THREADS, first_ticket_of};
use crate::algorithms::tile::{CONTROL, has_little_shared};

/// Counts how often each digit of each pass occurs, and adds the counts to `counts[pass * stride + digit]`. Pass `p` sorts by the eight
/// bits of `begin..end` from `begin + 8 * p`. The launch may have any number of blocks.
#[kernel(launch(pub(crate)), threads(SORT_THREADS), one_dimensional, min_blocks(2))]
pub fn count_digits<K: SortKey>(
    cx: Block,
    keys: Global<K>,
    counts: GlobalMut<u64, Atomic>,
    stride: usize,
    begin: u32,
    end: u32,
    turned: u64,
    shared: SharedSlice<u64>,
) {
    const { assert!(size_of::<K>() <= 8, "a key has up to 8 digits") };
    let bits = (begin, end, turned);
    let all = const { counters_bytes(size_of::<K>(), counter_copies(size_of::<K>())) };
    if has_little_shared(cx) && shared.len() * size_of::<u64>() < all {
        match const { counter_copies(size_of::<K>()) } {
            16 => count::<K, 8>(cx, keys, counts, stride, bits, &shared.storage()),
            _ => count::<K, 4>(cx, keys, counts, stride, bits, &shared.storage()),
        }
    } else {
        match const { counter_copies(size_of::<K>()) } {
            16 => count::<K, 16>(cx, keys, counts, stride, bits, &shared.storage()),
            _ => count::<K, 8>(cx, keys, counts, stride, bits, &shared.storage()),
        }
    }
}

/// Works as [`count_digits`](struct@count_digits), with `COPIES` copies of a counter next to each other. As many lanes have a copy of their
/// own.
fn count<K: SortKey, const COPIES: usize>(
    cx: Block<'_>,
    keys: Global<'_, K>,
    counts: GlobalMut<'_, u64, Atomic>,
    stride: usize,
    (begin, end, turned): (u32, u32, u64),
    shared: &Shared<'_, DigitCounts<K, COPIES>>,
) {
    let copies = COPIES;
    let digits = const { size_of::<K>() as u32 };
    let counters = shared.array::<u32>(0, size_of::<K>() * DIGITS * copies);
    let passes = end.saturating_sub(begin).div_ceil(8).clamp(1, digits);
    let thread = cx.thread_rank() as usize;

    let mut at = thread * 4;
    while at < passes as usize * DIGITS * copies {
        // SAFETY: inside; an element of this thread.
        unsafe { counters.store_items(at, &[0; 4]) };
        at += SORT_THREADS * 4;
    }
    cx.barrier();
    // Lanes with different copies never access the same bank, unless the difference of their digits is odd.
    let copy = cx.lane() as usize % copies;
    let own = shared.array::<u32>(copy * size_of::<u32>(), size_of::<K>() * DIGITS * copies - copy);
    let count = |key: K, passes: u32| {
        for pass in 0..digits {
            if pass < passes {
                let digit = Digit::of_bits(begin + 8 * pass, end, turned).of(key);
                // SAFETY: inside; atomic between the barriers.
                unsafe { own.at((pass as usize * DIGITS + digit as usize) * copies).fetch_add(1) };
            }
        }
    };
    if passes == digits {
        for_each_key(cx, keys, |key| count(key, digits));
    } else {
        for_each_key(cx, keys, |key| count(key, passes));
    }
    cx.barrier();
    let mut at = thread;
    while at < passes as usize * DIGITS {
        // All copies together may have counted more than 32 bits hold.
        let mut total = 0u64;
        for copy in 0..copies / 4 {
            // SAFETY: written before the barrier.
            let some = unsafe { counters.load_items::<4>(at * copies + copy * 4) };
            total += some[0] as u64 + some[1] as u64 + some[2] as u64 + some[3] as u64;
        }
        if total > 0 {
            counts.at(at / DIGITS * stride + at % DIGITS).fetch_add(total);
        }
        at += SORT_THREADS;
    }
}

/// Calls a function with each key of the thread. A thread reads about 64 bytes of keys at a time.
fn for_each_key<K: SortKey>(cx: Block<'_>, keys: Global<'_, K>, f: impl Fn(K)) {
    if const { size_of::<K>() > 4 } {
        for_each_of_tiles::<K, 8>(cx, keys, f);
    } else {
        for_each_of_tiles::<K, 12>(cx, keys, f);
    }
}

fn for_each_of_tiles<K: SortKey, const ITEMS: usize>(cx: Block<'_>, keys: Global<'_, K>, f: impl Fn(K)) {
    for tile in cx.tiles::<ITEMS>(keys.len()) {
        let mut items = [K::ZERO; ITEMS];
        load_striped(cx, &mut items, keys.tile(tile));
        let thread = cx.thread_rank() as usize;
        if tile.len() == SORT_THREADS * ITEMS {
            items.iter().for_each(|&item| f(item));
        } else {
            for (i, &item) in items.iter().enumerate() {
                if i * SORT_THREADS + thread < tile.len() {
                    f(item);
                }
            }
        }
    }
}

/// The shared memory of [`count_digits`](struct@count_digits): counters of all digits, in copies.
pub(crate) struct DigitCounts<K, const COPIES: usize>(PhantomData<K>);

// SAFETY: uninitialised elements.
unsafe impl<K: Element, const COPIES: usize> SharedStorage for DigitCounts<K, COPIES> {
    const BYTES: usize = counters_bytes(size_of::<K>(), COPIES);
    const ALIGN: usize = 16;
}

/// Returns the number of copies of a counter. All counters take up to 64 KiB.
const fn counter_copies(key: usize) -> usize {
    if key > 4 { 8 } else { 16 }
}

const fn counters_bytes(key: usize, copies: usize) -> usize {
    key * DIGITS * copies * size_of::<u32>()
}

/// Returns the bytes of shared memory of a launch of [`count_digits`](struct@count_digits) for keys of this size, on a device whose blocks
/// have `shared_bytes` bytes. If they have too little, there are half the copies.
pub const fn count_digits_bytes(key: usize, shared_bytes: usize) -> usize {
    let bytes = counters_bytes(key, counter_copies(key));
    if bytes + CONTROL <= shared_bytes { bytes } else { bytes / 2 }
}

/// Replaces the counts of each pass by the places where the keys of each digit begin. Each block has one pass and 256 threads. If all keys of
/// a pass have one digit, the first tickets of its launches say which one.
#[kernel(launch(pub(crate)), threads(DIGITS), one_dimensional)]
pub fn begin_digits(
    cx: Block,
    counts: GlobalMut<u64, Atomic>,
    stride: usize,
    tickets: GlobalMut<u32, Atomic>,
    launches: usize,
    mut shared: Shared<ScanStorage<u64>>,
) {
    let at = counts.at(cx.block_rank() * stride + cx.thread_rank() as usize);
    let count = at.load();
    let ([begin], all) = block_exclusive_scan(cx, &mut shared, &[count], Add);
    at.store(begin);
    if count == all {
        for launch in 0..launches {
            tickets.at(cx.block_rank() * launches + launch).store(first_ticket_of(cx.thread_rank()));
        }
    }
}
