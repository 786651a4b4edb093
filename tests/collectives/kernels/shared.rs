//! The floor of shared memory.

use core::marker::PhantomData;

use super::{Sixteen, Twelve};
use kernel_primitives::functor::LogicalXor;
use kernel_primitives::input::Span;
use kernel_primitives::prelude::*;
use kernel_primitives::view::{Phases, SharedStorage};

/// Two halves of `N` elements for each of 256 threads.
pub struct Halves<T, const N: usize>(PhantomData<T>);

// SAFETY: these are uninitialised elements.
unsafe impl<T: Element, const N: usize> SharedStorage for Halves<T, N> {
    const BYTES: usize = 2 * 256 * N * size_of::<T>();
    const ALIGN: usize = 16;
}

/// Reads each thread's items from its mirror image in the block, by vectors.
#[kernel(instantiate(<u8, 16>, <u8, 3>, <f16, 4>, <f32, 4>, <f32, 6>, <f64, 2>, <Twelve, 2>, <Sixteen, 1>))]
pub fn mirrored<T: Element, const N: usize>(
    cx: Block,
    x: Global<T>,
    mut out: GlobalMut<T, Tiles<N>>,
    mut shared: Shared<Halves<T, N>>,
) {
    let threads = cx.block_threads() as usize;
    for tile in cx.tiles::<N>(out.len()) {
        let mut items = init::<T, N>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        shared.enter();
        let array = shared.array::<T>(0, 256 * N);
        // SAFETY: each thread writes its own elements, and reads another's after the barrier.
        let items = unsafe {
            array.store_items(cx.thread_rank() as usize * N, &items);
            cx.barrier();
            array.load_items::<N>((threads - 1 - cx.thread_rank() as usize) * N)
        };
        write_data(cx, out.tile(tile), &items);
    }
}

/// Passes each thread's value on to the next thread, `rounds` times, by turns in two halves. Each round has one barrier.
#[kernel]
pub fn passed_by_turns(
    cx: Block,
    rounds: u32,
    x: Global<u32>,
    mut out: GlobalMut<u32>,
    mut shared: Shared<Phases<(Halves<u32, 1>, Halves<u16, 1>)>>,
) {
    let (rank, threads) = (cx.thread_rank() as usize, cx.block_threads() as usize);
    for i in cx.items(out.len()) {
        let mut value = x[i];
        for round in 0..rounds {
            // Sometimes there is another kind of use in between.
            if round % 5 == 4 {
                let other = shared.phase::<Halves<u16, 1>>();
                other.enter();
                let array = other.array::<u16>(0, 256);
                // SAFETY: each thread writes its own element, and reads another's after the barrier.
                value = unsafe {
                    array.store(rank, value as u16);
                    cx.barrier();
                    value & 0xffff_0000 | array.load((rank + 1) % threads) as u32
                };
            }
            let halves = shared.phase::<Halves<u32, 1>>();
            let half = halves.enter_double_buffered(1024);
            let array = halves.array::<u32>(half, 256);
            // SAFETY: each thread writes its own element, and reads another's after the barrier.
            value = unsafe {
                array.store(rank, value);
                cx.barrier();
                array.load((rank + threads - 1) % threads)
            };
        }
        out.set(i, value);
    }
}

/// Bytes, a reduction and words, one after the other in one memory.
type ElementsAndReduction = Phases<([u8; 1024], ReduceStorage<bool>, [u32; 256])>;

/// Uses the same memory by turns for bytes that threads write by themselves, and for a collective. The only barrier in between is the
/// collective's own. It writes the number of threads with an odd number, and the next thread's number.
#[kernel]
pub fn elements_and_collectives(
    cx: Block,
    rounds: u32,
    x: Global<u32>,
    mut out: GlobalMut<[u32; 2]>,
    mut shared: Shared<ElementsAndReduction>,
) {
    let (rank, threads) = (cx.thread_rank() as usize, cx.block_threads() as usize);
    for i in cx.items(out.len()) {
        let (mut odd, mut next) = (0, x[i]);
        for _ in 0..rounds {
            let bytes = shared.phase::<[u8; 1024]>();
            for k in 0..4 {
                bytes.set(4 * rank + k, 0xfe);
            }
            odd += block_reduce(cx, shared.phase::<ReduceStorage<bool>>(), next % 2 != 0, LogicalXor) as u32;
            let words = shared.phase::<[u32; 256]>();
            words.set(rank, next);
            cx.barrier();
            next = words.get((rank + 1) % threads);
            // Elements of another type follow at once.
            shared.phase::<[u8; 1024]>().set(rank, 1);
        }
        out.set(i, [odd, next]);
    }
}

/// Counts the threads of the block with each remainder, in an array's elements.
#[kernel]
pub fn counted(cx: Block, mut out: GlobalMut<u32>, mut shared: Shared<Halves<u32, 1>>) {
    shared.enter();
    let counts = shared.array::<u32>(512, 16);
    // SAFETY: barriers are between the initialisation, the atomic updates and the reads.
    unsafe {
        if cx.thread_rank() < 16 {
            counts.store(cx.thread_rank() as usize, 0);
        }
        cx.barrier();
        counts.at((cx.thread_rank() * cx.thread_rank() % 16) as usize).fetch_add(1);
        cx.barrier();
        for i in cx.items(out.len()) {
            out.set(i, counts.load(i.index() % 16));
        }
    }
}

/// Makes false promises about an array. `what` says which.
#[kernel]
pub fn misused(cx: Block, what: u32, shared: Shared<Halves<u32, 1>>) {
    let array = shared.array::<u32>(0, 100);
    // SAFETY: this is not sound. The kernel runs in the emulator, which reports it.
    unsafe {
        match what {
            0 => array.store(100, 1),
            1 => {
                array.store_items::<4>(98, &[1; 4]);
            }
            2 => {
                array.store_items::<4>(6, &[1; 4]);
            }
            _ => {
                shared.array::<u32>(2048 - 396, 100);
            }
        }
    }
    let _ = cx;
}

/// Copies each thread's two vectors of four items to shared memory from its mirror image in the block. Each vector is a group, and all
/// first vectors come before all second ones. Each thread waits for none of its groups, for the first, or for both.
#[kernel]
pub fn copied(
    cx: Block,
    x: Input<Span<u32>>,
    waits: u32,
    mut out: GlobalMut<u32>,
    mut shared: Shared<Phases<(Halves<u32, 4>,)>>,
) {
    let (rank, threads) = (cx.thread_rank() as usize, cx.block_threads() as usize);
    let halves = shared.phase::<Halves<u32, 4>>();
    halves.enter();
    let array = halves.array::<u32>(0, 2 * 256 * 4);
    for half in 0..2 {
        let at = 4 * (half * threads + rank);
        // SAFETY: these are this thread's elements, which others read after the barrier.
        unsafe { x.copy::<4>(at, array, at) };
        x.group_copies();
    }
    match waits {
        0 => {}
        1 => x.wait_for_copies_but_last(),
        _ => x.wait_for_copies(),
    }
    cx.barrier();
    for half in 0..2 {
        // SAFETY: the kernel has these elements for itself, if it has waited for them.
        let items = unsafe { array.load_items::<4>(4 * (half * threads + threads - 1 - rank)) };
        for (i, item) in items.into_iter().enumerate() {
            // SAFETY: this is this thread's place.
            unsafe { out.write(4 * (half * threads + rank) + i, item) };
        }
    }
}
