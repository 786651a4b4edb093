//! The lowest level of shared memory: arrays in storages, vectors, turns and phases.

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

/// Adds up what each thread has read from the next thread. The memory of the sum is that of the array, which other threads may still read:
/// the array's own barrier was before that.
#[kernel]
pub fn sum_after_array(
    cx: Block,
    mut out: GlobalMut<u32>,
    mut phases: Shared<Phases<(ReduceStorage<u32>, [u32; 256])>>,
) {
    let (rank, threads) = (cx.thread_rank() as usize, cx.block_threads() as usize);
    for i in cx.items(out.len()) {
        let own = phases.phase::<[u32; 256]>();
        own.set(rank, rank as u32);
        own.sync();
        let next = own.get((rank + 1) % threads);
        out.set(i, block_reduce(cx, phases.phase::<ReduceStorage<u32>>(), next, Add));
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

#[cfg(not(target_arch = "nvptx64"))]
mod tests {
    use kernel_primitives::prelude::*;
    use kernel_primitives::view::{Phases, SharedStorage};
    use kernel_primitives::{Buffer, Device, Diagnosis, EmulatorOptions, Error, Result, Stream};

    use crate::families::shared::{self as kernels, Halves};
    use crate::families::{Sixteen, Twelve};
    use crate::support::{Arbitrary, streams, values};

    fn mirrors<T: Arbitrary, const N: usize>(
        launch: impl Fn(&Stream, (u32, u32), &Buffer<T>, &mut Buffer<T>) -> Result<()>,
    ) -> Result<()> {
        for stream in streams()? {
            for threads in [1usize, 7, 32, 65, 256] {
                let x: Vec<T> = values(3 * threads * N, threads as u64);
                let mut out = stream.buffer_zeroed(x.len())?;
                launch(&stream, (2, threads as u32), &stream.buffer_from(&x)?, &mut out)?;
                let expected: Vec<T> =
                    x.chunks(threads * N).flat_map(|tile| tile.chunks(N).rev().flatten()).copied().collect();
                assert_eq!(out.to_vec()?, expected, "{threads} threads");
            }
        }
        Ok(())
    }

    macro_rules! mirrored {
        ($($name:ident: $t:ty, $n:literal;)*) => {$(
            #[test]
            fn $name() -> Result<()> {
                mirrors::<$t, $n>(|stream, dims, x, out| kernels::mirrored::<$t, $n>::launch(stream, dims, x, out))
            }
        )*};
    }
    mirrored! {
        arrays_move_16_bytes: u8, 16;
        arrays_move_3_bytes: u8, 3;
        arrays_move_4_halves: f16, 4;
        sanitize_arrays_move_4_floats: f32, 4;
        arrays_move_6_floats: f32, 6;
        arrays_move_2_doubles: f64, 2;
        arrays_move_2_elements_of_twelve_bytes: Twelve, 2;
        arrays_move_an_element_of_sixteen_bytes: Sixteen, 1;
    }

    #[test]
    fn sanitize_halves_take_turns_with_one_barrier_a_round() -> Result<()> {
        for stream in streams()? {
            for threads in [1usize, 33, 256] {
                // The low halves go back by one thread every fifth round.
                let (rounds, back) = (23, 4);
                let x: Vec<u32> = values(2 * threads, 1);
                let mut out = stream.buffer_zeroed(x.len())?;
                let dims = (2, threads as u32);
                kernels::passed_by_turns::launch(&stream, dims, rounds, &stream.buffer_from(&x)?, &mut out)?;
                let from = |block: &[u32], i: usize, steps: usize| block[(i + threads * 30 - steps) % threads];
                let expected: Vec<u32> = x
                    .chunks(threads)
                    .flat_map(|block| {
                        (0..threads).map(move |i| {
                            let (high, low) = (from(block, i, 23), from(block, i, 23 - back));
                            high & 0xffff_0000 | low & 0xffff
                        })
                    })
                    .collect();
                assert_eq!(out.to_vec()?, expected, "{threads} threads");
            }
        }
        Ok(())
    }

    #[test]
    fn sanitize_elements_and_collectives_share_memory() -> Result<()> {
        for stream in streams()? {
            for threads in [1usize, 31, 33, 100, 256] {
                let rounds = 5;
                let x: Vec<u32> = values(threads, 3);
                let mut out = stream.buffer_zeroed(threads)?;
                let input = stream.buffer_from(&x)?;
                kernels::elements_and_collectives::launch(
                    &stream,
                    (1, threads as u32),
                    rounds as u32,
                    &input,
                    &mut out,
                )?;
                let odd = x.iter().fold(false, |odd, x| odd ^ (x % 2 != 0)) as u32 * rounds as u32;
                let expected: Vec<_> = (0..threads).map(|i| [odd, x[(i + rounds) % threads]]).collect();
                assert_eq!(out.to_vec()?, expected, "{threads} threads");
            }
        }
        Ok(())
    }

    /// A checked emulator reports reads of an array that a collective's writes race with.
    #[test]
    fn a_collective_waits_for_the_accesses_of_an_array_that_had_its_memory() -> Result<()> {
        for stream in streams()? {
            for threads in [1usize, 33, 256] {
                let mut out = stream.buffer_zeroed::<u32>(threads)?;
                kernels::sum_after_array::launch(&stream, (1, threads as u32), &mut out)?;
                let sum = (threads * (threads - 1) / 2) as u32;
                assert_eq!(out.to_vec()?, vec![sum; threads], "{threads} threads");
            }
        }
        Ok(())
    }

    #[test]
    fn sanitize_elements_of_arrays_are_counted_atomically() -> Result<()> {
        for stream in streams()? {
            let mut out = stream.buffer_zeroed(200)?;
            kernels::counted::launch(&stream, (1, 200), &mut out)?;
            let mut counts = [0; 16];
            (0..200).for_each(|rank| counts[rank * rank % 16] += 1);
            assert_eq!(out.to_vec()?, (0..200).map(|i| counts[i % 16]).collect::<Vec<u32>>());
        }
        Ok(())
    }

    #[test]
    fn the_emulator_reports_what_an_array_leaves_unchecked() -> Result<()> {
        let stream = Device::emulator().stream()?;
        for (what, message) in
            [(0, "index 100 is out of bounds"), (1, "index 101 is out of bounds"), (2, "misaligned"), (3, "2052")]
        {
            let error =
                kernels::misused::launch(&stream, (1, 1), what).and_then(|()| stream.synchronize()).unwrap_err();
            assert!(error.to_string().contains(message), "{what}: {error}");
        }
        Ok(())
    }

    #[test]
    fn phases_are_as_large_as_the_largest() {
        type Any = Phases<(Halves<u8, 3>, Halves<f64, 1>, [u16; 5])>;
        assert_eq!((Any::BYTES, Any::ALIGN), (4096, 16));
        assert_eq!((<[u16; 5]>::BYTES, <[u16; 5]>::ALIGN), (10, 2));
    }

    /// Returns, for each thread of a block of `threads`, whether it has its mirror image's vectors.
    fn copies(stream: &Stream, threads: usize, waits: u32) -> Result<[bool; 2]> {
        let x: Vec<u32> = values(8 * threads, threads as u64);
        let mut out = stream.buffer_zeroed(x.len())?;
        kernels::copied::launch(stream, (1, threads as u32), &stream.buffer_from(&x)?, waits, &mut out)?;
        let found = out.to_vec()?;
        let of_half = |half: usize| half * 4 * threads..(half + 1) * 4 * threads;
        Ok([0, 1].map(|half| x[of_half(half)].chunks(4).rev().flatten().eq(&found[of_half(half)])))
    }

    #[test]
    fn sanitize_copies_are_there_after_a_wait() -> Result<()> {
        for stream in streams()? {
            for threads in [1, 32, 65, 256] {
                assert_eq!(copies(&stream, threads, 2)?, [true; 2], "{threads} threads");
            }
        }
        Ok(())
    }

    /// As on a GPU, a kernel that does not wait finds nothing, if the architecture has such copies. A checked emulator reports this.
    #[test]
    fn the_emulator_makes_copies_when_they_are_waited_for() -> Result<()> {
        for (arch, expected) in [
            (75, [[true; 2]; 3]),
            (80, [[false; 2], [true, false], [true; 2]]),
            (90, [[false; 2], [true, false], [true; 2]]),
        ] {
            for checked in [true, false] {
                let mut options = EmulatorOptions::default();
                (options.checked, options.arch) = (checked, Some(arch));
                let stream = Device::emulator_with(options).stream()?;
                for (waits, expected) in expected.into_iter().enumerate() {
                    let found = copies(&stream, 64, waits as u32);
                    if checked && expected != [true; 2] {
                        let Err(Error::Fault(fault)) = found else { panic!("sm_{arch}, {waits} waits") };
                        assert!(matches!(fault.diagnosis, Diagnosis::CopyUnderWay { .. }), "{fault}");
                    } else {
                        assert_eq!(found?, expected, "sm_{arch}, {waits} waits");
                    }
                }
            }
        }
        Ok(())
    }
}
