//! Tests the lowest level of shared memory: arrays in storages, vectors, turns and phases.

use kernel_primitives::prelude::*;
use kernel_primitives::view::{Phases, SharedStorage};
use kernel_primitives::{Buffer, Device, Diagnosis, EmulatorOptions, Error, Result, Stream};

use crate::kernels::shared::{self as kernels, Halves};
use crate::kernels::{Sixteen, Twelve};
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
            kernels::elements_and_collectives::launch(&stream, (1, threads as u32), rounds as u32, &input, &mut out)?;
            let odd = x.iter().fold(false, |odd, x| odd ^ (x % 2 != 0)) as u32 * rounds as u32;
            let expected: Vec<_> = (0..threads).map(|i| [odd, x[(i + rounds) % threads]]).collect();
            assert_eq!(out.to_vec()?, expected, "{threads} threads");
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
        let error = kernels::misused::launch(&stream, (1, 1), what).and_then(|()| stream.synchronize()).unwrap_err();
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
