//! Tests indices, exchange between lanes, barriers, atomics, shared memory and mathematics.

use kernel_primitives::{Dim3, Dims, Result, bf16, f16};

use crate::kernels::simt::{self as kernels, Indices};
use crate::kernels::{Sixteen, Triangular, Twelve};
use crate::support::{Arbitrary, Random, SHAPES, stream, streams, threads, values};

mod atomics;
mod math;

fn indices_are_right(grid: (u32, u32, u32), block: (u32, u32, u32)) -> Result<()> {
    let stream = stream()?;
    let (blocks, per_block) = (Dim3::from(grid).count() as usize, threads(block));
    let mut out = stream.buffer_zeroed::<Indices>(blocks * per_block)?;
    kernels::indices::launch(&stream, (grid, block), &mut out)?;
    let found = out.to_vec()?;
    let mut next = found.iter();
    let (gx, gy, gz) = grid;
    let (bx, by, bz) = block;
    let mut block_rank = 0;
    for block_z in 0..gz {
        for block_y in 0..gy {
            for block_x in 0..gx {
                let mut thread_rank = 0;
                for z in 0..bz {
                    for y in 0..by {
                        for x in 0..bx {
                            let warp = thread_rank / 32;
                            let warp_lanes = (per_block as u32 - warp * 32).min(32);
                            let expected = Indices {
                                thread: [x, y, z],
                                block: [block_x, block_y, block_z],
                                block_dim: [bx, by, bz],
                                grid_dim: [gx, gy, gz],
                                thread_rank,
                                block_threads: per_block as u32,
                                block_rank,
                                grid_blocks: blocks as u32,
                                lane: thread_rank % 32,
                                warp,
                                warps: (per_block as u32).div_ceil(32),
                                warp_lanes,
                                warp_mask: ((1u64 << warp_lanes) - 1) as u32,
                            };
                            assert_eq!(next.next(), Some(&expected));
                            thread_rank += 1;
                        }
                    }
                }
                block_rank += 1;
            }
        }
    }
    Ok(())
}

#[test]
fn sanitize_indices_in_three_dimensions() -> Result<()> {
    indices_are_right((3, 2, 2), (5, 3, 2))
}

#[test]
fn indices_in_every_block_shape() -> Result<()> {
    for (k, shape) in SHAPES.into_iter().enumerate() {
        indices_are_right([(1, 1, 1), (5, 1, 1), (3, 2, 1), (2, 2, 3)][k % 4], shape)?;
    }
    indices_are_right((1, 1, 3), (1, 1, 64))?;
    indices_are_right((2, 3, 1), (1, 1024, 1))
}

/// Computes the source lane as PTX's description of `shfl.sync` does, bit by bit. There is none outside of the segment.
fn shuffle_source(mode: u32, lane: u32, operand: u32, width: u32) -> Option<u32> {
    let b = operand & 31;
    let segment_mask = 32 - width;
    let clamp = if mode == 1 { 0 } else { 31 };
    let max_lane = (lane & segment_mask) | (clamp & !segment_mask & 31);
    let min_lane = lane & segment_mask;
    let (source, inside) = match mode {
        0 => {
            let j = min_lane | (b & !segment_mask & 31);
            (j, j <= max_lane)
        }
        1 => (lane.wrapping_sub(b), lane as i32 - b as i32 >= max_lane as i32),
        2 => (lane + b, lane + b <= max_lane),
        _ => (lane ^ b, lane ^ b <= max_lane),
    };
    inside.then_some(source)
}

/// Shuffles in a block of `block` threads, with all modes, widths and operands.
fn shuffles_follow_ptx<T: Arbitrary>(
    block: usize,
    operands: usize,
    launch: impl Fn(
        &kernel_primitives::Stream,
        usize,
        u32,
        u32,
        &kernel_primitives::Buffer<T>,
        &mut kernel_primitives::Buffer<T>,
    ) -> Result<()>,
) -> Result<()> {
    let stream = stream()?;
    let x = values::<T>(block, 7);
    let input = stream.buffer_from(&x)?;
    for mode in 0..4 {
        for width in [1, 2, 4, 8, 16, 32] {
            let mut out = stream.buffer_zeroed::<T>(block * operands)?;
            launch(&stream, block, mode, width, &input, &mut out)?;
            for (i, value) in out.to_vec()?.into_iter().enumerate() {
                let (operand, thread) = (i / block, i % block);
                let source = shuffle_source(mode, thread as u32 % 32, operand as u32, width);
                let source = source.map_or(thread, |lane| thread / 32 * 32 + lane as usize);
                assert_eq!(value, x[source], "mode {mode}, width {width}, operand {operand}, thread {thread}");
            }
        }
    }
    Ok(())
}

macro_rules! shuffles {
    ($($name:ident: $t:ty, $block:literal, $operands:literal;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            shuffles_follow_ptx::<$t>($block, $operands, |stream, block, mode, width, x, out| {
                kernels::shuffle::<$t>::launch(stream, (1, block as u32), mode, width, x, out)
            })
        }
    )*};
}
shuffles! {
    sanitize_shuffles_of_4_bytes_in_all_modes_and_widths: f32, 64, 4;
    shuffles_of_4_bytes_by_all_operands: f32, 64, 40;
    shuffles_of_1_byte: u8, 32, 40;
    shuffles_of_bool: bool, 32, 5;
    shuffles_of_2_bytes: f16, 96, 33;
    shuffles_of_3_bytes: [u8; 3], 32, 33;
    shuffles_of_8_bytes: i64, 32, 33;
    shuffles_of_12_bytes_with_floats: Twelve, 32, 33;
    shuffles_of_12_bytes: Triangular, 64, 9;
    shuffles_of_16_bytes: Sixteen, 32, 33;
}

/// The sources of all lanes of a mask are in the mask, up to a width.
const MASKS: [(u32, u32); 6] =
    [(u32::MAX, 32), (0x0000_ffff, 32), (0x0000_0fff, 32), (0xffff_0000, 16), (0x00ff_ff00, 8), (0x0f0f_00f0, 4)];

#[test]
fn a_lane_of_a_mask_knows_if_a_value_comes_from_below() -> Result<()> {
    const BLOCK: usize = 64;
    let stream = stream()?;
    macro_rules! check {
        ($($t:ty),*) => {$(
            let x = values::<$t>(BLOCK, 9);
            let input = stream.buffer_from(&x)?;
            for (mask, widest) in MASKS {
                for width in [1, 2, 4, 8, 16, 32].into_iter().filter(|&width| width <= widest) {
                    let mut out = stream.buffer_zeroed::<$t>(BLOCK * 40)?;
                    let mut came = stream.buffer_zeroed::<bool>(BLOCK * 40)?;
                    let dims = (1u32, BLOCK as u32);
                    kernels::try_shuffle_up::<$t>::launch(&stream, dims, mask, width, &input, &mut out, &mut came)?;
                    for (i, found) in out.to_vec()?.into_iter().zip(came.to_vec()?).enumerate() {
                        let (by, thread) = ((i / BLOCK) as u32, i % BLOCK);
                        let lane = thread as u32 % 32;
                        let source = if mask >> lane & 1 == 1 { shuffle_source(1, lane, by, width) } else { None };
                        let value = x[source.map_or(thread, |lane| thread / 32 * 32 + lane as usize)];
                        let what = format!("mask {mask:#x}, width {width}, by {by}, thread {thread}");
                        assert_eq!(found, (value, source.is_some()), "{what}");
                    }
                }
            }
        )*};
    }
    check!(u32, i64, [u8; 3]);
    Ok(())
}

#[test]
fn sanitize_each_lane_shuffles_from_a_lane_of_its_choice() -> Result<()> {
    let stream = stream()?;
    let x = values::<u32>(256, 1);
    let mut random = Random::new(2);
    let from: Vec<u32> = (0..256).map(|_| random.below(32) as u32).collect();
    let mut out = stream.buffer_zeroed(256)?;
    kernels::gather_lanes::launch(&stream, (2, 128), &stream.buffer_from(&x)?, &stream.buffer_from(&from)?, &mut out)?;
    let expected: Vec<u32> = (0..256).map(|i| x[i / 32 * 32 + from[i] as usize]).collect();
    assert_eq!(out.to_vec()?, expected);
    Ok(())
}

#[test]
fn sanitize_half_warps_exchange_apart() -> Result<()> {
    for stream in streams()? {
        let x = values::<u32>(64, 3).into_iter().map(|v| v % 1000).collect::<Vec<_>>();
        let mut out = stream.buffer_zeroed(64)?;
        kernels::half_warps::launch(&stream, (1, 64), &stream.buffer_from(&x)?, &mut out)?;
        for (i, found) in out.to_vec()?.into_iter().enumerate() {
            let (warp, lane) = (i / 32 * 32, i % 32);
            let half = if lane < 16 { warp..warp + 16 } else { warp + 16..warp + 32 };
            let ballot =
                |f: &dyn Fn(u32) -> bool| half.clone().filter(|&j| f(x[j])).fold(0u32, |mask, j| mask | 1 << (j % 32));
            let expected = if lane < 16 {
                [x[warp + (lane ^ 15)], ballot(&|v| v % 2 == 0), x[half.clone()].iter().sum(), 1]
            } else {
                let below = if lane == 31 { i } else { i + 1 };
                [x[below], ballot(&|v| v % 3 == 0), *x[half.clone()].iter().max().unwrap(), 2]
            };
            assert_eq!(found, expected, "thread {i}");
        }
    }
    Ok(())
}

macro_rules! votes {
    ($($name:ident: $t:ty, $value:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            let stream = stream()?;
            for (block, modulus) in [(32, 2), (45, 3), (7, 1), (1, 2), (64, 1_000_000), (256, 5), (33, 1)] {
                let value: fn(u64) -> $t = $value;
                let mut random = Random::new(block);
                let x: Vec<$t> = (0..block).map(|_| value(random.below(modulus))).collect();
                let mut out = stream.buffer_zeroed(x.len())?;
                kernels::votes::<$t>::launch(&stream, (1, block as u32), &stream.buffer_from(&x)?, &mut out)?;
                let found = out.to_vec()?;
                for (w, warp) in x.chunks(32).enumerate() {
                    let mask = |f: &dyn Fn($t) -> bool| {
                        warp.iter().enumerate().fold(0u32, |mask, (j, &v)| mask | (f(v) as u32) << j)
                    };
                    let set = mask(&|v| v != 0 as $t);
                    let all = mask(&|_| true);
                    for (lane, &v) in warp.iter().enumerate() {
                        let equal = mask(&|other| other == v);
                        let expected =
                            [set, (set != 0) as u32, (set == all) as u32, equal, (equal == all) as u32, 1];
                        assert_eq!(found[w * 32 + lane], expected, "block {block}, warp {w}, lane {lane}");
                    }
                }
            }
            Ok(())
        }
    )*};
}
votes! {
    sanitize_votes_and_matches_of_4_bytes: u32, |v| v as u32;
    votes_and_matches_of_1_byte: u8, |v| v as u8;
    votes_and_matches_of_8_bytes: i64, |v| (v as i64) << 33;
    votes_and_matches_of_8_byte_floats: f64, |v| v as f64 / 4.0;
}

#[test]
fn sanitize_integer_reductions_of_a_warp() -> Result<()> {
    for stream in streams()? {
        for block in [32, 33, 7, 1, 100, 256] {
            let x = values::<u32>(block, block as u64);
            let signed: Vec<i32> = x.iter().map(|&v| v as i32).collect();
            let mut unsigned_out = stream.buffer_zeroed(block)?;
            let mut signed_out = stream.buffer_zeroed(block)?;
            let dims = (1, block as u32);
            kernels::redux_unsigned::launch(&stream, dims, &stream.buffer_from(&x)?, &mut unsigned_out)?;
            kernels::redux_signed::launch(&stream, dims, &stream.buffer_from(&signed)?, &mut signed_out)?;
            let (unsigned_out, signed_out) = (unsigned_out.to_vec()?, signed_out.to_vec()?);
            for i in 0..block {
                let range = i / 32 * 32..(i / 32 * 32 + 32).min(block);
                let (u, s) = (&x[range.clone()], &signed[range]);
                let all = |f: fn(u32, u32) -> u32| u.iter().copied().reduce(f).unwrap();
                let (and, or, xor) = (all(|a, b| a & b), all(|a, b| a | b), all(|a, b| a ^ b));
                let sum = all(u32::wrapping_add);
                assert_eq!(unsigned_out[i], [sum, all(u32::min), all(u32::max), and, or, xor]);
                let (min, max) = (*s.iter().min().unwrap(), *s.iter().max().unwrap());
                assert_eq!(signed_out[i], [sum as i32, min, max, and as i32, or as i32, xor as i32]);
            }
        }
    }
    Ok(())
}

#[test]
fn sanitize_barriers_count_all_and_any() -> Result<()> {
    for stream in streams()? {
        for shape in SHAPES {
            let block = threads(shape);
            for kind in 0..4 {
                // The values are all odd, all even, one odd, or arbitrary. There are two rounds.
                let mut x: Vec<u32> = (0..2 * block as u32).map(|i| [1, 2, 2 * i, i * i / 3][kind]).collect();
                if kind == 2 {
                    x[block / 2] = 1;
                }
                let mut out = stream.buffer_zeroed(x.len())?;
                kernels::barrier_votes::launch(&stream, (1, shape), &stream.buffer_from(&x)?, &mut out)?;
                for (round, found) in out.to_vec()?.chunks(block).enumerate() {
                    let odd = x[round * block..][..block].iter().filter(|&v| v % 2 == 1).count() as u32;
                    let expected = [odd, (odd == block as u32) as u32, (odd > 0) as u32];
                    assert!(found.iter().all(|&found| found == expected), "{shape:?}, kind {kind}, {expected:?}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn sanitize_warp_barriers_order_shared_memory() -> Result<()> {
    for stream in streams()? {
        for shape in SHAPES {
            let block = threads(shape);
            let x = values::<u32>(block * 3, 11);
            let mut out = stream.buffer_zeroed(x.len())?;
            kernels::reverse_warps::launch(&stream, (1, shape), &stream.buffer_from(&x)?, &mut out)?;
            let mut expected = x.clone();
            expected.chunks_mut(block).for_each(|round| round.chunks_mut(32).for_each(<[u32]>::reverse));
            assert_eq!(out.to_vec()?, expected, "{shape:?}");
        }
    }
    Ok(())
}

macro_rules! reversed {
    ($($t:ty),*) => {$({
        for stream in streams()? {
            for (k, shape) in SHAPES.into_iter().enumerate() {
                let block = threads(shape);
                let x = values::<$t>(block * (2 + k % 3), k as u64);
                let mut out = stream.buffer_zeroed(x.len())?;
                kernels::reverse_blocks::<$t>::launch(&stream, (1 + k as u32 % 2, shape), &stream.buffer_from(&x)?, &mut out)?;
                // With two blocks and an odd number of rounds, only the first block has the last round.
                let mut expected = x.clone();
                expected.chunks_mut(block).for_each(<[$t]>::reverse);
                assert_eq!(out.to_vec()?, expected, "{shape:?}");
            }
        }
    })*};
}

#[test]
fn shared_memory_holds_elements_of_every_size() -> Result<()> {
    reversed!(u8, bool, f16, f32, f64, Twelve, Sixteen);
    Ok(())
}

#[test]
fn sanitize_two_storages_do_not_overlap() -> Result<()> {
    for block in [1, 7, 32, 33] {
        let stream = stream()?;
        let mut out = stream.buffer_zeroed(2 * block)?;
        kernels::two_storages::launch(&stream, (1, block as u32), &mut out)?;
        let expected: Vec<f64> = (0..2 * block)
            .map(|i| {
                let other = (block - 1 - i % block) as f64;
                other * 1000.0 + other * 0.25 + 1.0
            })
            .collect();
        assert_eq!(out.to_vec()?, expected);
    }
    Ok(())
}

#[test]
fn the_rest_of_shared_memory_is_what_the_launch_asks_for() -> Result<()> {
    let stream = stream()?;
    for bytes in [0, 3, 4, 7, 400, 48 * 1024, 100 * 1024] {
        let mut out = stream.buffer_zeroed(1)?;
        kernels::storage_lengths::launch(&stream, Dims::new(1, 32).shared_bytes(bytes), &mut out)?;
        let [a, b, rest, empty] = out.to_vec()?[0];
        assert_eq!((a, b), (5, 3));
        assert_eq!((rest as usize, empty == 1), (bytes / 4, bytes < 4), "{bytes} bytes");
    }
    Ok(())
}

macro_rules! rest_reversed {
    ($($t:ty),*) => {$({
        let stream = stream()?;
        for (bytes, block) in [(0, 32), (48, 7), (12_000, 256), (47 * 1024, 1024), (100 * 1024, 256), (200 * 1024, 33)] {
            let len = bytes / size_of::<$t>();
            let x = values::<$t>(len, 5);
            let mut out = stream.buffer_zeroed(len)?;
            let dims = Dims::new(1, block).shared_bytes(bytes);
            kernels::reverse_rest::<$t>::launch(&stream, dims, &stream.buffer_from(&x)?, &mut out)?;
            let expected: Vec<$t> = x.into_iter().rev().collect();
            assert_eq!(out.to_vec()?, expected, "{bytes} bytes");
        }
    })*};
}

#[test]
fn the_rest_of_shared_memory_can_be_larger_than_48_kib() -> Result<()> {
    rest_reversed!(u8, f32, f64, Twelve);
    Ok(())
}

#[test]
fn sanitize_the_rest_of_shared_memory_begins_aligned() -> Result<()> {
    let stream = stream()?;
    let x = values::<f64>(20, 1);
    let mut out = stream.buffer_zeroed(20)?;
    kernels::reverse_rest::<f64>::launch(
        &stream,
        Dims::new(1, 32).shared_bytes(160),
        &stream.buffer_from(&x)?,
        &mut out,
    )?;
    assert_eq!(out.to_vec()?, x.into_iter().rev().collect::<Vec<_>>());
    Ok(())
}

#[test]
fn static_shared_memory_can_be_larger_than_48_kib() -> Result<()> {
    let stream = stream()?;
    let x = values::<f32>(15_000, 1);
    let mut out = stream.buffer_zeroed(15_000)?;
    kernels::rotate_large::launch(&stream, (1, 512), &stream.buffer_from(&x)?, &mut out)?;
    let mut expected = x;
    expected.rotate_left(1);
    assert_eq!(out.to_vec()?, expected);
    Ok(())
}

#[test]
fn parameters_of_every_size_arrive() -> Result<()> {
    let stream = stream()?;
    let mut out = stream.buffer_zeroed(1)?;
    let twelve = Twelve { a: 0.5, b: 4_000_000_000, c: -3 };
    kernels::parameters::launch(
        &stream,
        (1, 1),
        200,
        0.25,
        true,
        [1, 2, 60_000],
        &mut out,
        twelve,
        -(1 << 40),
        f16::from_f32(0.125),
        kernel_primitives::functor::Add,
        (),
    )?;
    let expected = 200.0 + 0.25 + 1.0 + 1.0 + 4.0 + 240_000.0 + (0.5 + 4e9 - 3.0) + (0.125 - (1u64 << 40) as f64);
    assert_eq!(out.to_vec()?, [expected]);
    let _ = bf16::ZERO;
    Ok(())
}

#[test]
fn an_array_that_becomes_a_storage_has_a_barrier_between_sanitize() -> Result<()> {
    let stream = stream()?;
    let x: Vec<u32> = (0..64).collect();
    let mut out = stream.buffer_zeroed::<u32>(64)?;
    kernels::rotate_twice::launch(&stream, Dims::new(1, 64).shared_bytes(256), &stream.buffer_from(&x)?, &mut out)?;
    assert!(out.to_vec()?.into_iter().eq((0..64).map(|i| (i + 2) % 64)));
    Ok(())
}
