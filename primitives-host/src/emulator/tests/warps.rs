//! Warp operations against what their definitions say, lane by lane.

use std::sync::atomic::Ordering::Relaxed;

use primitives_gpu::simt::{FULL_MASK, ShuffleMode};

use super::super::warp;
use super::*;

/// PTX's definition of `shfl.sync` in its own terms, with the clamp operand that CUDA passes.
fn ptx_source(mode: ShuffleMode, lane: u32, b: u32, width: u32) -> u32 {
    let c = (32 - width) << 8 | if matches!(mode, ShuffleMode::Up) { 0 } else { 31 };
    let (bval, cval, segmask) = ((b & 31) as i32, (c & 31) as i32, (c >> 8 & 31) as i32);
    let lane = lane as i32;
    let max_lane = (lane & segmask) | (cval & !segmask);
    let min_lane = lane & segmask;
    let (j, inside) = match mode {
        ShuffleMode::Up => (lane - bval, lane - bval >= max_lane),
        ShuffleMode::Down => (lane + bval, lane + bval <= max_lane),
        ShuffleMode::Xor => (lane ^ bval, lane ^ bval <= max_lane),
        ShuffleMode::Index => {
            let j = min_lane | (bval & !segmask);
            (j, j <= max_lane)
        }
    };
    if inside { j as u32 } else { lane as u32 }
}

#[test]
fn shuffles_read_the_lane_that_ptx_names() {
    for options in modes() {
        for width in [1, 2, 4, 8, 16, 32] {
            go(&options, 1, 64, |cx| {
                let lane = cx.lane();
                let value = |lane: u32| [cx.warp() * 100 + lane, !lane, 7, lane * lane];
                for operand in (0..40).chain([63, 1 << 31, u32::MAX]) {
                    let own = value(lane);
                    let expected = |mode| value(ptx_source(mode, lane, operand, width));
                    assert_eq!(cx.shuffle(FULL_MASK, own, operand, width), expected(ShuffleMode::Index));
                    assert_eq!(cx.shuffle_up(FULL_MASK, own, operand, width), expected(ShuffleMode::Up));
                    assert_eq!(cx.shuffle_down(FULL_MASK, own, operand, width), expected(ShuffleMode::Down));
                    assert_eq!(cx.shuffle_xor(FULL_MASK, own, operand, width), expected(ShuffleMode::Xor));
                }
            })
            .unwrap_or_else(|error| panic!("width {width}: {error}"));
        }
    }
}

#[test]
fn shuffle_operands_are_each_lanes_own() {
    for options in modes() {
        go(&options, 1, 32, |cx| {
            let lane = cx.lane();
            for step in 0..32 {
                let source = (lane * 7 + step) % 32;
                assert_eq!(cx.shuffle(FULL_MASK, lane as u64 * 3, source, 32), source as u64 * 3);
            }
        })
        .unwrap();
    }
}

#[test]
fn votes_matches_and_reductions() {
    for options in modes() {
        for threads in [1, 7, 32, 33, 65] {
            go(&options, 1, threads, |cx| {
                let (lane, mask) = (cx.lane(), cx.warp_mask());
                let lanes = || warp::bits(mask);
                let f = |lane: u32| lane.wrapping_mul(0x9e37_79b9) >> 7;
                assert_eq!(cx.ballot(mask, f(lane) % 3 == 0), lanes().filter(|&l| f(l) % 3 == 0).map(|l| 1 << l).sum());
                assert_eq!(cx.any(mask, f(lane) % 5 == 0), lanes().any(|l| f(l) % 5 == 0));
                assert_eq!(cx.all(mask, f(lane) % 5 < 4), lanes().all(|l| f(l) % 5 < 4));
                let equal = |l: u32, m: u32| f(l) % 4 == f(m) % 4;
                let matching = lanes().filter(|&l| equal(l, lane)).map(|l| 1 << l).sum();
                assert_eq!(cx.match_any(mask, (f(lane) % 4) as u64 | 1 << 40), matching);
                assert_eq!(cx.match_all(mask, f(lane) % 2), lanes().all(|l| f(l) % 2 == f(0) % 2));
                assert!(cx.match_all(mask, 9u8));
                let values = || lanes().map(f);
                assert_eq!(cx.redux_add(mask, f(lane) << 8), values().fold(0, |a: u32, b| a.wrapping_add(b << 8)));
                assert_eq!(cx.redux_min(mask, f(lane)), values().min().unwrap());
                assert_eq!(cx.redux_max(mask, f(lane)), values().max().unwrap());
                let signed = |v: u32| v as i32 - (1 << 24);
                assert_eq!(cx.redux_min(mask, signed(f(lane))), values().map(signed).min().unwrap());
                assert_eq!(cx.redux_max(mask, signed(f(lane))), values().map(signed).max().unwrap());
                assert_eq!(cx.redux_and(mask, f(lane)), values().reduce(|a, b| a & b).unwrap());
                assert_eq!(cx.redux_or(mask, f(lane)), values().reduce(|a, b| a | b).unwrap());
                assert_eq!(cx.redux_xor(mask, f(lane)), values().reduce(|a, b| a ^ b).unwrap());
                assert_ne!(cx.active_mask() & 1 << lane, 0);
            })
            .unwrap_or_else(|error| panic!("{threads} threads: {error}"));
        }
    }
}

#[test]
fn a_reduction_over_no_lanes_names_the_mask_on_all_architectures() {
    for arch in [75, 80, 90] {
        let options = EmulatorOptions { arch: Some(arch), ..checked() };
        let line = here() + 1;
        let fault = fails(&options, 1, 32, |cx| _ = cx.redux_add(0, 1u32));
        assert!(divergence(&fault).contains("over lanes 0x00000000, which do not contain it"), "{fault}");
        assert_eq!(fault.line, line);
    }
}

/// No shuffle would report the width.
#[test]
fn elements_of_no_bytes_have_segments_of_any_width() {
    for options in modes() {
        go(&options, 1, 32, |cx| {
            for (width, inside) in [(8, cx.lane() % 8 >= 3), (32, cx.lane() >= 3), (0, cx.lane() >= 3)] {
                assert_eq!(cx.try_shuffle_up(FULL_MASK, [0u32; 0], 3, width).is_some(), inside, "{width}");
            }
        })
        .unwrap();
    }
}

#[test]
fn masks_run_different_numbers_of_operations() {
    for seed in 0..20 {
        go(&seeded(seed), 1, 96, |cx| {
            // Three interleaved masks a warp, each with its own number of rounds, then all together, twice over.
            let lane = cx.lane();
            let mask = (0..32).filter(|l| l % 3 == lane % 3).map(|l| 1u32 << l).sum::<u32>();
            for turn in 0..2 {
                for round in 0..5 * (lane % 3) + cx.warp() {
                    let source = (lane % 3 + 3 * (round % 10)).min(31 - (31 - lane % 3) % 3);
                    assert_eq!(cx.shuffle(mask, lane + 100 * round, source, 32), source + 100 * round);
                    assert_eq!(cx.ballot(mask, true), mask);
                }
                cx.sync_warp(FULL_MASK);
                assert_eq!(cx.redux_add(FULL_MASK, lane), 31 * 16, "turn {turn}");
            }
        })
        .unwrap();
    }
}

#[test]
fn a_lane_can_serve_another_mask_while_one_waits_for_it() {
    for seed in 0..20 {
        go(&seeded(seed), 1, 3, |cx| {
            // Lane 0 waits for lane 1, which first meets lane 2.
            match cx.lane() {
                0 => assert_eq!(cx.ballot(0b011, true), 0b011),
                1 => {
                    assert_eq!(cx.redux_add(0b110, 1u32), 3);
                    assert_eq!(cx.ballot(0b011, true), 0b011);
                }
                _ => assert_eq!(cx.redux_add(0b110, 2u32), 3),
            }
        })
        .unwrap_err();
        // The same from one place each, as the rule wants it.
        go(&seeded(seed), 1, 3, |cx| {
            let pair = |mask: u32| if mask >> cx.lane() & 1 != 0 { cx.redux_add(mask, 1u32) } else { 2 };
            assert_eq!(pair(0b110), 2);
            assert_eq!(pair(0b011), 2);
            assert_eq!(pair(0b101), 2);
        })
        .unwrap();
    }
}

#[test]
fn shuffles_move_every_width_of_element() {
    go(&checked(), 1, 32, |cx| {
        let lane = cx.lane();
        let next = (lane + 1) % 32;
        assert_eq!(cx.shuffle(FULL_MASK, lane as u8, next, 32), next as u8);
        assert_eq!(cx.shuffle(FULL_MASK, lane as f64, next, 32), next as f64);
        assert_eq!(cx.shuffle(FULL_MASK, [lane as u16; 5], next, 32), [next as u16; 5]);
        assert_eq!(cx.shuffle(FULL_MASK, [lane as f32; 4], next, 32), [next as f32; 4]);
        assert!(cx.shuffle(FULL_MASK, next == 0, next, 32) == (lane == 30));
    })
    .unwrap();
}

#[test]
fn seeds_change_the_order_of_lanes() {
    let order = |options: &EmulatorOptions| {
        let (next, order) = (AtomicU32::new(0), atomics(64));
        go(options, 1, 64, |cx| {
            cx.barrier();
            order[next.fetch_add(1, Relaxed) as usize].store(cx.thread_rank(), Relaxed);
        })
        .unwrap();
        order.into_iter().map(AtomicU32::into_inner).collect::<Vec<_>>()
    };
    assert_eq!(order(&seeded(1)), order(&seeded(1)));
    assert_ne!(order(&seeded(1)), order(&seeded(2)));
    assert_ne!(order(&seeded(1)), order(&checked()));
}
