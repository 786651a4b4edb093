//! Split barriers, and what nobody may leave out beside them.

use std::sync::atomic::Ordering::Relaxed;

use primitives_gpu::simt::FULL_MASK;
use primitives_gpu::view::{Parity, Shared, SplitBarriers};

use super::*;
use crate::emulator::watch::DEADLOCK_ROUNDS;

/// The parity of the first phase.
fn first() -> Parity {
    Parity::default()
}

/// The first warp arrives, the second waits.
fn hand_over(cx: Block<'_>, with_barrier: bool) {
    // SAFETY: the block's memory has no other view.
    let barriers = unsafe { Shared::<SplitBarriers<1>>::from_arena(cx, 0) };
    if cx.thread_rank() == 0 {
        barriers.begin(0, 1);
    }
    if with_barrier {
        cx.barrier();
    }
    if cx.warp() == 0 {
        barriers.arrive(0);
    } else {
        barriers.wait(0, Parity::default());
    }
}

#[test]
fn a_barrier_parts_the_beginning_of_a_split_barrier_from_its_use() {
    for arch in [75, 80, 90] {
        for options in [checked(), seeded(17), seeded(18)] {
            let options = EmulatorOptions { arch: Some(arch), ..options };
            go(&options, 2, 64, |cx| hand_over(cx, true)).unwrap();
            let fault = fails(&impatient(&options), 2, 64, |cx| hand_over(cx, false));
            assert!(matches!(fault.diagnosis, Diagnosis::DataRace { .. }), "{fault}");
        }
        // Unchecked, it is as if the barrier were there.
        go(&EmulatorOptions { arch: Some(arch), ..parallel() }, 2, 64, |cx| hand_over(cx, true)).unwrap();
    }
}

/// For lanes that wait for a barrier before it begins.
fn impatient(options: &EmulatorOptions) -> EmulatorOptions {
    EmulatorOptions { deadlock_after: std::time::Duration::from_millis(30), ..options.clone() }
}

/// Runs a kernel with a split barrier of `takes` warps and 128 words beside it in all orders and on all architectures: right, and not.
/// The architectures from `races_from` report a race if it is not.
fn check(
    threads: u32,
    takes: u32,
    races_from: u32,
    body: impl Fn(Block<'_>, &Shared<'_, SplitBarriers<1>>, &mut Shared<'_, [u32; 128]>, bool) + Sync,
) {
    let body = |cx: Block<'_>, right: bool| {
        // SAFETY: the two do not meet.
        let (barriers, mut words) =
            unsafe { (Shared::<SplitBarriers<1>>::from_arena(cx, 0), Shared::<[u32; 128]>::from_arena(cx, 16)) };
        if cx.thread_rank() == 0 {
            barriers.begin(0, takes);
        }
        cx.barrier();
        body(cx, &barriers, &mut words, right);
    };
    for arch in [75, 80, 90] {
        for options in [checked(), seeded(17), seeded(18), seeded(19)] {
            let options = EmulatorOptions { arch: Some(arch), ..options };
            go(&options, 2, threads, |cx| body(cx, true)).unwrap();
            if arch < races_from {
                go(&options, 2, threads, |cx| body(cx, false)).unwrap();
                continue;
            }
            let fault = fails(&options, 2, threads, |cx| body(cx, false));
            assert!(matches!(fault.diagnosis, Diagnosis::DataRace { .. }), "sm_{arch}: {fault}");
        }
        go(&EmulatorOptions { arch: Some(arch), ..parallel() }, 2, threads, |cx| body(cx, true)).unwrap();
    }
}

#[test]
fn what_a_warp_did_before_it_arrived_is_there_for_who_waited() {
    for takes in [1, 2, 31] {
        check(32 * (takes + 1), takes, u32::MAX, |cx, barriers, words, _| {
            let lane = cx.lane() as usize;
            for round in 0..4 {
                let parity = if round % 2 == 0 { first() } else { first().other() };
                if cx.warp() < takes {
                    if cx.warp() < 4 {
                        words.set(32 * cx.warp() as usize + lane, round);
                    }
                    barriers.arrive(0);
                } else {
                    barriers.wait(0, parity);
                    for warp in 0..takes.min(4) as usize {
                        assert_eq!(words.get(32 * warp + 31 - lane), round);
                    }
                }
                cx.barrier();
            }
        });
    }
}

/// `mbarrier` orders the lanes that arrive before those that wait, and no others.
#[test]
fn lanes_of_a_warp_that_arrives_are_not_ordered() {
    check(32, 1, 80, |cx, barriers, words, right| {
        let lane = cx.lane() as usize;
        words.set(lane, cx.lane());
        barriers.arrive(0);
        if right {
            cx.sync_warp(FULL_MASK);
        }
        assert!(!right || words.get(31 - lane) == 31 - cx.lane());
        let _ = words.get(31 - lane);
    });
}

#[test]
fn lanes_of_a_warp_that_waits_are_not_ordered() {
    check(64, 1, 80, |cx, barriers, words, right| {
        let lane = cx.lane() as usize;
        if cx.warp() == 0 {
            return barriers.arrive(0);
        }
        words.set(lane, cx.lane());
        barriers.wait(0, first());
        if right {
            cx.sync_warp(FULL_MASK);
        }
        let _ = words.get(31 - lane);
    });
}

/// Of one warp, each lane has to arrive after what the others read.
#[test]
fn who_arrives_learns_nothing_of_those_that_arrived() {
    check(64, 2, 75, |cx, barriers, words, right| {
        let lane = cx.lane() as usize;
        if cx.warp() == 0 {
            words.set(lane, cx.lane());
        }
        barriers.arrive(0);
        if right {
            barriers.wait(0, first());
        }
        if cx.warp() == 1 {
            let _ = words.get(lane);
        }
    });
}

#[test]
fn who_waits_for_a_phase_learns_nothing_of_the_next() {
    check(96, 2, 80, |cx, barriers, words, right| {
        let lane = cx.lane() as usize;
        if cx.warp() == 2 {
            barriers.wait(0, first());
            if !right && cx.arch() >= 800 {
                let _ = words.get(lane);
            }
            return;
        }
        barriers.arrive(0);
        if cx.warp() == 0 {
            barriers.wait(0, first());
            words.set(lane, cx.lane());
            barriers.arrive(0);
        }
    });
}

/// Two warps hand on to each other for more phases than a deadlock takes rounds, and all that they change are the barriers.
#[test]
fn handing_on_by_split_barriers_is_no_deadlock() {
    const FULL: usize = 0;
    const EMPTY: usize = 1;
    for (arch, options) in [75, 80].into_iter().flat_map(|arch| modes().map(|options| (arch, options))) {
        let options = EmulatorOptions { arch: Some(arch), deadlock_after: std::time::Duration::ZERO, ..options };
        // The emulator does not see this word.
        let slot = atomics(1);
        go(&options, 1, 64, |cx| {
            // SAFETY: the block's memory has no other view.
            let barriers = unsafe { Shared::<SplitBarriers<2>>::from_arena(cx, 0) };
            if cx.thread_rank() == 0 {
                barriers.begin(FULL, 1);
                barriers.begin(EMPTY, 1);
            }
            cx.barrier();
            let mut parity = first();
            for phase in 0..DEADLOCK_ROUNDS as u32 * 5 / 4 {
                if cx.warp() == 0 {
                    // Before the first phase is over, the one before counts as over.
                    barriers.wait(EMPTY, parity.other());
                    slot[0].store(phase, Relaxed);
                    barriers.arrive(FULL);
                } else {
                    barriers.wait(FULL, parity);
                    assert_eq!(slot[0].load(Relaxed), phase);
                    barriers.arrive(EMPTY);
                }
                parity = parity.other();
            }
        })
        .unwrap();
    }
}
