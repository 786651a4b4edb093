//! Grids, shared memory, launches beside and inside each other.

use std::sync::atomic::Ordering::Relaxed;

use primitives_gpu::Shared;
use primitives_gpu::simt::{Fault, FaultKind};

use super::*;

/// The second has more blocks than anything could be done for each of.
#[test]
fn the_largest_grids_start_at_once() {
    for options in modes() {
        for grid in [Dim3::from(0x7fff_ffff), Dim3::new(0x7fff_ffff, 65535, 65535)] {
            let fault = fails(&options, grid, 32, |cx| {
                assert_eq!(cx.block_rank() as u64, grid.rank_of(cx.block_idx()));
                cx.fault(1)
            });
            assert_eq!(fault.diagnosis, Diagnosis::Raised(Fault { kind: FaultKind::User, args: [1, 0] }));
            assert!(grid.rank_of(fault.block) < if options.seed.is_none() { 4096 } else { grid.count() });
        }
    }
}

/// A seed lets a block of any rank be the first.
#[test]
fn a_race_in_a_block_of_high_rank_names_this_block() {
    let grid = Dim3::new(0x7fff_ffff, 65535, 1);
    for seed in [1, 2, 3] {
        let fault = fails(&seeded(seed), grid, 2, |cx| {
            // SAFETY: the launch reserves 2048 bytes.
            let mut shared = unsafe { Shared::<[u32; 4]>::from_arena(cx, 0) };
            shared.set(0, cx.thread_rank());
        });
        assert!(grid.rank_of(fault.block) > u32::MAX as u64, "another seed tests more: {}", fault.block);
        match &fault.diagnosis {
            Diagnosis::DataRace { earlier, .. } => assert_eq!(earlier.block, fault.block),
            other => panic!("{other:?}"),
        }
        assert!(fault.help.is_some_and(|help| help.contains("cx.barrier()")));
    }
}

#[test]
fn an_empty_grid_is_no_work() {
    go(&checked(), 0, 32, |_| panic!()).unwrap();
    go(&parallel(), (3, 0), 32, |_| panic!()).unwrap();
}

#[test]
fn a_block_is_at_most_1024_threads() {
    let error = go(&checked(), 1, (32, 33), |_| {}).unwrap_err();
    assert!(matches!(error, Error::LaunchLimit { asked: 1056, limit: 1024, .. }), "{error}");
}

#[test]
fn blocks_have_shared_memory_of_their_own() {
    for options in modes() {
        go(&options, 50, 40, |cx| {
            // SAFETY: the launch reserves 2048 bytes.
            let mut shared = unsafe { Shared::<[u64; 256]>::from_arena(cx, 0) };
            assert!(shared.as_mut_ptr().addr().is_multiple_of(16));
            let rank = cx.thread_rank() as usize;
            cx.barrier();
            shared.set(rank, cx.block_rank() as u64 * 1000 + rank as u64);
            cx.barrier();
            let other = (rank + 1) % 40;
            assert_eq!(shared.get(other), cx.block_rank() as u64 * 1000 + other as u64);
        })
        .unwrap();
    }
}

#[test]
fn checked_blocks_find_no_zeros_in_shared_memory() {
    let launch = Launch {
        kernel: "test",
        place: Location::caller(),
        grid: 5.into(),
        block: 1.into(),
        device: 0,
        shared_params: &[],
        shared_bytes: 40,
        regions: Vec::new(),
        arguments: Vec::new(),
    };
    run(&launch, &checked(), &|cx| {
        // SAFETY: the launch reserves 40 bytes.
        let mut shared = unsafe { Shared::<[u8; 40]>::from_arena(cx, 0) };
        // By a raw pointer, which is not watched: a read would be reported.
        let address = shared.as_mut_ptr().cast::<u8>();
        for i in 0..40 {
            // SAFETY: inside the storage.
            assert_eq!(unsafe { address.add(i).read() }, 1);
            shared.set(i, 9);
        }
    })
    .unwrap();
}

#[test]
fn several_host_threads_launch_at_once() {
    std::thread::scope(|scope| {
        for n in 0..6 {
            scope.spawn(move || {
                for options in modes() {
                    let sum = AtomicU32::new(0);
                    go(&options, 20, 100 + n, |cx| {
                        cx.barrier();
                        sum.fetch_add(1, Relaxed);
                    })
                    .unwrap();
                    assert_eq!(sum.load(Relaxed), 20 * (100 + n));
                    fails(&options, 2, 33, |cx| cx.fault(n as u64));
                }
            });
        }
    });
}

#[test]
fn a_lane_launches_a_kernel() {
    for options in modes() {
        let sum = AtomicU32::new(0);
        go(&options, 2, 3, |cx| {
            cx.barrier();
            go(&options, 4, 50, |inner| {
                inner.barrier();
                sum.fetch_add(1 + cx_free(inner), Relaxed);
            })
            .unwrap();
            cx.barrier();
            assert!(matches!(go(&options, 1, 1, |inner| inner.fault(5)), Err(Error::Fault(_))));
        })
        .unwrap();
        assert_eq!(sum.load(Relaxed), 2 * 3 * 4 * 50);
    }
}

fn cx_free(cx: Block<'_>) -> u32 {
    cx.block_dim().z - 1
}

#[test]
fn a_destructor_launches_while_its_thread_unwinds() {
    struct Launches<'a>(&'a AtomicU32);
    impl Drop for Launches<'_> {
        fn drop(&mut self) {
            go(&checked(), 2, 64, |cx| {
                self.0.fetch_add(cx.barrier_count(true), Relaxed);
            })
            .unwrap();
        }
    }
    let sum = AtomicU32::new(0);
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _launches = Launches(&sum);
        std::panic::resume_unwind(Box::new(()));
    }));
    assert!(unwound.is_err());
    assert_eq!(sum.load(Relaxed), 2 * 64 * 64);
}

#[test]
fn lanes_have_the_stack_that_was_asked_for() {
    fn deep(cx: Block<'_>, left: usize) -> u32 {
        let frame = std::hint::black_box([left as u8; 1024]);
        if left == 0 { cx.barrier_count(true) } else { deep(cx, left - 1) + (frame[0] as u32 >> 8) }
    }
    let options = EmulatorOptions { stack_bytes: 1 << 20, ..checked() };
    go(&options, 2, 64, |cx| assert_eq!(deep(cx, 500), 64)).unwrap();
    go(&checked(), 2, 64, |cx| assert_eq!(deep(cx, 20), 64)).unwrap();
    go(&EmulatorOptions { stack_bytes: 0, ..checked() }, 1, 1, |_| {}).unwrap();
}

#[test]
fn lanes_keep_what_they_hold_while_they_wait() {
    for options in modes() {
        go(&options, 2, 65, |cx| {
            let first = cx.thread_rank() + 100 * cx.block_rank() as u32;
            let (mut whole, mut real) = ([0; 24], [0.0; 24]);
            for round in 0..20 {
                for i in 0..24 {
                    whole[i] += first * i as u32;
                    real[i] += (first * i as u32) as f64;
                }
                if round % 3 == cx.thread_rank() / 32 {
                    cx.sync_warp(cx.warp_mask());
                }
                cx.barrier();
            }
            for i in 0..24 {
                assert_eq!((whole[i], real[i]), (20 * first * i as u32, (20 * first * i as u32) as f64));
            }
        })
        .unwrap();
    }
}

#[test]
fn a_backtrace_ends_where_the_lane_begins() {
    go(&checked(), 1, 64, |cx| {
        cx.barrier();
        if cx.thread_rank() % 31 == 0 {
            assert_ne!(std::backtrace::Backtrace::force_capture().to_string(), "");
        }
        cx.barrier();
    })
    .unwrap();
}

#[test]
fn every_order_of_blocks_is_complete() {
    for seed in 0..100 {
        let seen = atomics(300);
        go(&seeded(seed), 300, 3, |cx| {
            seen[cx.block_rank()].fetch_add(1, Relaxed);
        })
        .unwrap();
        assert!(seen.iter().all(|count| count.load(Relaxed) == 3));
    }
}
