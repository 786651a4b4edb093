//! Lanes and blocks that wait for memory to change.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Duration;

use primitives_gpu::view::{Atomic, GlobalMut};

use super::*;
use crate::emulator::watch::DEADLOCK_ROUNDS;

#[test]
fn a_lane_waits_for_another_of_its_block() {
    for options in modes() {
        let flag = atomics(1);
        go(&options, 1, 64, |cx| {
            if cx.thread_rank() < 40 {
                while flag[0].load(Acquire) != 24 {
                    cx.spin(20);
                }
            } else {
                flag[0].fetch_add(1, AcqRel);
            }
            cx.barrier();
        })
        .unwrap();
    }
}

/// Every block waits for the one before it, as single-pass scans do; the number of a block comes from a ticket or is its
/// rank.
fn chain(options: &EmulatorOptions, blocks: u32, threads: u32, ticket: bool) -> Result<(), Error> {
    let (next, state) = (atomics(1), atomics(blocks as usize));
    go(options, blocks, threads, |cx| {
        let number = if ticket {
            let taken = if cx.thread_rank() == 0 { next[0].fetch_add(1, Relaxed) } else { 0 };
            // Thread 0's number for all: the other threads contribute nothing to the count of set bits.
            (0..16).map(|bit| (cx.barrier_any(taken >> bit & 1 != 0) as u32) << bit).sum()
        } else {
            cx.block_rank() as u32
        };
        if cx.thread_rank() == 0 {
            let before = match number.checked_sub(1) {
                None => 0,
                Some(previous) => loop {
                    match state[previous as usize].load(Acquire) {
                        0 => cx.spin(20),
                        sum => break sum,
                    }
                },
            };
            state[number as usize].store(before + number + 1, Release);
        }
        cx.barrier();
        let sum = state[number as usize].load(Relaxed);
        assert_eq!(sum, (number + 1) * (number + 2) / 2);
    })
}

#[test]
fn blocks_wait_for_their_predecessors() {
    for options in modes() {
        chain(&options, 500, 33, true).unwrap();
        chain(&options, max_resident_blocks(33), 33, false).unwrap();
        chain(&options, max_resident_blocks(1024), 1024, false).unwrap();
        if options.seed.is_none() {
            chain(&options, 500, 33, false).unwrap();
        }
    }
    for seed in 0..100 {
        chain(&seeded(seed), 70, 5, seed % 2 == 0).unwrap();
    }
    for seed in 0..5 {
        chain(&seeded(seed), 30, 1024, true).unwrap();
    }
}

/// The order of ranks is none that a grid can count on.
#[test]
fn waiting_for_blocks_of_lower_rank_is_a_deadlock_in_some_orders() {
    let stuck = (0..4).filter(|&seed| {
        let options = EmulatorOptions { deadlock_after: Duration::from_millis(20), ..seeded(seed) };
        match chain(&options, 500, 33, false) {
            Ok(()) => false,
            Err(Error::Fault(fault)) if matches!(fault.diagnosis, Diagnosis::Deadlock { .. }) => true,
            Err(error) => panic!("{error}"),
        }
    });
    assert!(stuck.count() > 0);
}

#[test]
fn warps_wait_together() {
    // A look-back whose loop has a vote in it.
    for options in modes() {
        let blocks = max_resident_blocks(64);
        let state = atomics(blocks as usize);
        go(&options, blocks, 64, |cx| {
            let block = cx.block_rank();
            if cx.warp() == 0 {
                let from = block.saturating_sub(1 + cx.lane() as usize);
                while !cx.all(!0, block == 0 || state[from].load(Acquire) != 0) {
                    cx.spin(20);
                }
                if cx.lane() == 0 {
                    state[block].store(1, Release);
                }
            }
            cx.barrier();
        })
        .unwrap();
    }
}

#[test]
fn a_grid_barrier_brings_all_blocks_together() {
    for options in modes() {
        for (blocks, threads) in [(2, 64), (16, 256), (300, 7), (8, 1024)] {
            assert!(blocks <= max_resident_blocks(threads));
            let (arrived, data) = (atomics(3), atomics(blocks as usize));
            go(&options, blocks, threads, |cx| {
                for (step, arrived) in arrived.iter().enumerate() {
                    if cx.thread_rank() == 0 {
                        data[cx.block_rank()].store(step as u32 * 1000 + cx.block_rank() as u32, Relaxed);
                        arrived.fetch_add(1, AcqRel);
                        while arrived.load(Acquire) != blocks {
                            cx.spin(20);
                        }
                    }
                    cx.barrier();
                    // A block that is ahead may have written for the next step.
                    let other = (cx.block_rank() + 1 + step) % blocks as usize;
                    assert!(data[other].load(Relaxed) >= step as u32 * 1000 + other as u32);
                }
            })
            .unwrap_or_else(|error| panic!("{blocks} blocks of {threads}: {error}"));
        }
    }
}

#[test]
fn a_lock_lets_everybody_in() {
    for options in modes() {
        let (lock, count) = (atomics(1), atomics(1));
        go(&options, 20, 40, |cx| {
            while lock[0].compare_exchange(0, 1, AcqRel, Relaxed).is_err() {
                cx.spin(20);
            }
            let seen = count[0].load(Relaxed);
            cx.spin(20);
            count[0].store(seen + 1, Relaxed);
            lock[0].store(0, Release);
        })
        .unwrap();
        assert_eq!(count[0].load(Relaxed), 800);
    }
}

fn impatient(options: EmulatorOptions) -> EmulatorOptions {
    EmulatorOptions { deadlock_after: Duration::from_millis(30), ..options }
}

#[track_caller]
fn deadlock(fault: &KernelFault) -> &str {
    match &fault.diagnosis {
        Diagnosis::Deadlock { message } => message,
        other => panic!("expected a deadlock, got {other:?}"),
    }
}

#[test]
fn a_deadlock_ends_with_an_error() {
    for options in modes() {
        let flag = atomics(1);
        let line = here() + 5;
        let fault = fails(&impatient(options), 3, 40, |cx| {
            if cx.block_rank() == 1 && cx.thread_rank() >= 38 {
                // Nobody sets it.
                while flag[0].load(Relaxed) == 0 {
                    cx.spin(20);
                }
            }
            cx.barrier();
        });
        let message = deadlock(&fault);
        assert_eq!((fault.line, fault.block, fault.thread), (line, at(1), at(38)), "{fault}");
        assert!(message.contains("thread (38, 0, 0) and 1 more spin in"), "{message}");
        assert!(message.contains("thread (0, 0, 0) and 37 more wait at the barrier in"), "{message}");
    }
}

#[test]
fn a_deadlock_with_a_vote_in_the_loop() {
    for options in modes() {
        let flag = atomics(1);
        let fault = fails(&impatient(options), 1, 32, |cx| {
            while !cx.all(!0, flag[0].load(Relaxed) != 0) {
                cx.spin(20);
            }
        });
        deadlock(&fault);
    }
}

#[test]
fn more_blocks_than_can_be_resident_wait_for_each_other() {
    let arrived = atomics(1);
    let fault = fails(&impatient(checked()), 2000, 1024, |cx| {
        if cx.thread_rank() == 0 {
            arrived[0].fetch_add(1, AcqRel);
            while arrived[0].load(Acquire) != 2000 {
                cx.spin(20);
            }
        }
        cx.barrier();
    });
    let message = deadlock(&fault);
    assert!(message.contains("blocks have not started"), "{message}");
}

/// One block runs, for the emulator, until the other one has looked in vain more often than a deadlock takes.
#[test]
fn a_long_wait_is_no_deadlock_while_another_worker_runs() {
    let (flag, looks) = (atomics(1), AtomicU64::new(0));
    go(&hasty(parallel()), 2, 1, |cx| {
        if cx.block_rank() == 0 {
            while looks.load(Relaxed) < DEADLOCK_ROUNDS * 5 / 4 {
                std::thread::sleep(Duration::from_millis(1));
            }
            flag[0].store(1, Release);
        } else {
            while flag[0].load(Acquire) == 0 {
                looks.fetch_add(1, Relaxed);
                cx.spin(20);
            }
        }
    })
    .unwrap();
}

/// Words as a kernel's argument has them.
fn view<'k>(cx: Block<'k>, words: &'k [AtomicU32]) -> GlobalMut<'k, u32, Atomic> {
    // SAFETY: so many words, which are accessed by atomics.
    unsafe { GlobalMut::from_raw(cx, words[0].as_ptr(), words.len()) }
}

/// Gives up as soon as it may.
fn hasty(options: EmulatorOptions) -> EmulatorOptions {
    EmulatorOptions { deadlock_after: Duration::ZERO, ..options }
}

/// Two threads hand on to each other for many more rounds than a deadlock takes, and all that they change are atomics.
#[test]
fn handing_on_by_atomics_is_no_deadlock() {
    type HandOn = fn(GlobalMut<'_, u32, Atomic>, u32);
    let ways: [HandOn; 3] = [
        |count, _| _ = count.at(0).fetch_add(1),
        |count, turn| _ = count.at(0).compare_exchange(turn, turn + 1),
        |count, turn| count.at(0).store(turn + 1),
    ];
    for (options, hand_on) in modes().into_iter().flat_map(|options| ways.map(|way| (options.clone(), way))) {
        let count = atomics(1);
        go(&hasty(options), 1, 64, |cx| {
            let number = cx.warp();
            if cx.lane() == 0 {
                for turn in (number..20_000).step_by(2) {
                    while view(cx, &count).at(0).load() != turn {
                        cx.spin(20);
                    }
                    hand_on(view(cx, &count), turn);
                }
            }
        })
        .unwrap();
        assert_eq!(count[0].load(Relaxed), 20_000);
    }
}

/// A loop can look often at first, and then seldom, with a place for each.
#[test]
fn a_loop_that_waits_in_two_places_is_a_deadlock() {
    for options in modes() {
        let flag = atomics(1);
        let fault = fails(&hasty(options), 2, 40, |cx| {
            let mut turns = 0u32;
            while view(cx, &flag).at(0).load() == 0 {
                turns = turns.wrapping_add(1);
                if turns.is_multiple_of(4) {
                    cx.spin(200);
                } else {
                    cx.spin(20);
                }
            }
        });
        assert!(deadlock(&fault).contains("spin in"), "{fault}");
    }
}

/// In other launches, each barrier may come after a store.
#[test]
fn a_loop_with_a_barrier_that_waits_in_vain_is_a_deadlock_in_checked_launches() {
    for options in [checked(), seeded(17)] {
        let flag = atomics(1);
        let fault = fails(&hasty(options), 1, 40, |cx| {
            while !cx.barrier_any(view(cx, &flag).at(0).load() != 0) {
                cx.spin(20);
            }
        });
        deadlock(&fault);
    }
}

#[test]
fn a_lock_that_is_never_released_is_a_deadlock() {
    type Try = fn(GlobalMut<'_, u32, Atomic>) -> u32;
    let ways: [Try; 3] = [
        |lock| lock.at(0).exchange(1),
        |lock| lock.at(0).compare_exchange(0, 1),
        // What it leaves is what was there.
        |lock| lock.at(0).fetch_or(1),
    ];
    for (options, lock_word) in modes().into_iter().flat_map(|options| ways.map(|way| (options.clone(), way))) {
        let lock = atomics(1);
        let fault = fails(&hasty(options), 1, 64, |cx| {
            while lock_word(view(cx, &lock)) != 0 {
                cx.spin(20);
            }
        });
        assert!(deadlock(&fault).contains("62 more spin"), "{fault}");
    }
}
