//! The floor of shared memory.

use core::marker::PhantomData;

use super::{Sixteen, Twelve};
use kernel_primitives::prelude::*;
use kernel_primitives::view::{Phases, SharedStorage};

/// Two halves of `N` elements for each of 256 threads.
pub struct Halves<T, const N: usize>(PhantomData<T>);

// SAFETY: uninitialised elements.
unsafe impl<T: Element, const N: usize> SharedStorage for Halves<T, N> {
    const BYTES: usize = 2 * 256 * N * size_of::<T>();
    const ALIGN: usize = 16;
}

/// Each thread's items from its mirror image in the block, by vectors.
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

/// Each thread's value passed on to the next thread, `rounds` times, by turns in two halves: one barrier a round.
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
            // Now and then another kind of use in between.
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
            let half = halves.enter_by_turns(1024);
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

/// How many threads of the block have each remainder, counted in an array's elements.
#[kernel]
pub fn counted(cx: Block, mut out: GlobalMut<u32>, mut shared: Shared<Halves<u32, 1>>) {
    shared.enter();
    let counts = shared.array::<u32>(512, 16);
    // SAFETY: barriers lie between the initialisation, the atomic updates and the reads.
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

/// Lies about an array: `what` says how.
#[kernel]
pub fn misused(cx: Block, what: u32, shared: Shared<Halves<u32, 1>>) {
    let array = shared.array::<u32>(0, 100);
    // SAFETY: none: the kernel runs in the emulator, which reports it.
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
