//! What goes wrong comes back as an error with its place, and leaves the emulator whole.

use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;

use primitives_gpu::Shared;
use primitives_gpu::simt::{Fault, FaultKind};
use primitives_gpu::view::Global;

use super::*;

#[test]
fn a_thread_that_returns_leaves_others_at_the_barrier() {
    for options in modes() {
        let line = here() + 5;
        let fault = fails(&options, 2, 33, |cx| {
            if cx.thread_rank() == 5 {
                return;
            }
            cx.barrier();
        });
        assert_eq!(
            divergence(&fault),
            "thread (0, 0, 0) and 31 more wait at a barrier that thread (5, 0, 0) never reached: it has finished"
        );
        assert_eq!((fault.line, fault.thread), (line, at(0)));
        assert!(fault.file.ends_with("faults.rs"), "{}", fault.file);
        assert_eq!(fault.kernel, "test");
    }
}

#[test]
fn a_finished_thread_is_an_error_though_others_spin() {
    for options in modes() {
        let fault = fails(&options, 1, 3, |cx| match cx.thread_rank() {
            0 => {}
            1 => cx.barrier(),
            _ => loop {
                cx.spin(20);
            },
        });
        assert!(divergence(&fault).contains("thread (0, 0, 0) has finished; thread (2, 0, 0) spins in"), "{fault}");
        assert_eq!(fault.thread, at(1));
    }
}

#[test]
#[allow(clippy::if_same_then_else, reason = "two places")]
fn barriers_in_different_places() {
    for options in modes() {
        let line = here() + 3;
        let fault = fails(&options, 1, (4, 4), |cx| {
            if cx.thread_idx().y < 1 {
                cx.barrier();
            } else {
                cx.barrier();
            }
        });
        let message = divergence(&fault);
        assert!(message.starts_with("the block's threads meet at different barriers: "), "{message}");
        assert!(message.contains("thread (0, 0, 0) and 3 more wait at the barrier in "), "{message}");
        assert!(message.contains(&format!("faults.rs:{line}:")), "{message}");
        assert!(message.contains("thread (0, 1, 0) and 11 more wait at the barrier in "), "{message}");
        assert!(message.contains(&format!("faults.rs:{}:", line + 2)), "{message}");
        assert_eq!((fault.line, fault.thread), (line, Dim3::new(0, 0, 0)));
    }
}

#[test]
fn a_lane_of_the_mask_that_never_comes() {
    for options in modes() {
        let fault = fails(&options, 1, 64, |cx| {
            if cx.thread_rank() == 40 {
                return;
            }
            cx.sync_warp(!0);
        });
        assert_eq!(
            divergence(&fault),
            "thread (32, 0, 0) and 30 more wait in a warp barrier over lanes 0xffffffff that thread (40, 0, 0) never \
             reached: it has finished"
        );
        let (ballot, barrier) = (here() + 3, here() + 5);
        let fault = fails(&options, 1, 8, |cx| {
            if cx.lane() < 4 {
                cx.ballot(0x1f, true);
            } else {
                cx.barrier();
            }
        });
        let message = divergence(&fault);
        assert!(
            message.starts_with(
                "thread (0, 0, 0) and 3 more wait in a ballot over lanes 0x0000001f that thread (4, 0, 0) never reached: \
                 it waits at the barrier in "
            ),
            "{message}"
        );
        assert!(message.contains(&format!("faults.rs:{barrier}:")), "{message}");
        assert_eq!(fault.line, ballot);
    }
}

/// Runs two lanes that get a value.
fn exchanges(options: &EmulatorOptions, body: impl Fn(Block<'_>) -> u32 + Sync) -> KernelFault {
    fails(options, 1, 2, |cx| {
        body(cx);
    })
}

#[test]
fn lanes_that_meet_in_different_operations() {
    for options in modes() {
        let line = here() + 2;
        let fault = exchanges(&options, |cx| match cx.lane() {
            0 => cx.shuffle(3, 1u32, 0, 32),
            _ => cx.ballot(3, true),
        });
        let message = divergence(&fault);
        assert!(message.contains("lanes 0x00000003 meet in different operations"), "{message}");
        assert!(fault.line == line || fault.line == line + 1);
    }
}

#[test]
fn impossible_masks_and_widths() {
    for options in modes() {
        let fault = fails(&options, 1, 1, |cx| cx.sync_warp(!1));
        assert_eq!(
            divergence(&fault),
            "lane 0 of the warp calls a warp barrier over lanes 0xfffffffe, which do not contain it"
        );
        let fault = fails(&options, 1, 36, |cx| {
            if cx.warp() == 1 {
                cx.sync_warp(!0);
            }
        });
        assert_eq!(
            divergence(&fault),
            "a warp barrier over lanes 0xffffffff names lanes that do not exist: the warp has lanes 0x0000000f"
        );
        for width in [0, 12, 64] {
            let fault = fails(&options, 1, 36, |cx| {
                cx.shuffle(cx.warp_mask(), 1u8, 0, width);
            });
            let expected = format!("a shuffle in segments of {width} lanes: the width is a power of two up to 32");
            assert_eq!(divergence(&fault), expected);
        }
    }
}

#[test]
fn a_shuffle_from_outside_the_mask() {
    for options in modes() {
        let line = here() + 3;
        let fault = fails(&options, 1, 32, |cx| {
            if cx.lane() < 8 {
                cx.shuffle_down(0xff, cx.lane(), 1, 32);
            }
        });
        assert_eq!(divergence(&fault), "in a shuffle over lanes 0x000000ff, lane 7 reads lane 8, which takes no part");
        assert_eq!((fault.line, fault.thread), (line, at(7)));
    }
}

#[test]
fn a_panic_has_its_message_and_place() {
    for options in modes() {
        let line = here() + 4;
        let fault = fails(&options, (2, 3), (8, 8), |cx| {
            cx.barrier();
            if cx.block_rank() == 4 && cx.thread_rank() == 42 {
                panic!("value {}", cx.thread_rank());
            }
            cx.barrier();
        });
        assert_eq!(fault.diagnosis, Diagnosis::Panicked { message: "value 42".to_owned() });
        assert_eq!((fault.block, fault.thread, fault.line), (Dim3::new(0, 2, 0), Dim3::new(2, 5, 0), line));
        assert!(fault.file.ends_with("faults.rs"));
        let fault = fails(&options, 1, 1, |cx| {
            let values = [1, 2, 3];
            assert_eq!(values[cx.block_threads() as usize + 2], 0);
        });
        assert!(matches!(fault.diagnosis, Diagnosis::Panicked { message } if message.contains("index out of bounds")));
    }
}

#[test]
fn a_panic_that_the_kernel_catches_is_none() {
    go(&checked(), 1, 64, |cx| {
        let caught = std::panic::catch_unwind(|| panic!("inner"));
        assert!(caught.is_err());
        cx.barrier();
    })
    .unwrap();
}

#[test]
fn faults_end_the_launch() {
    for options in modes() {
        let after = atomics(1);
        let line = here() + 4;
        let fault = fails(&options, 1, 64, |cx| {
            cx.barrier();
            if cx.thread_rank() == 33 {
                cx.fault(77);
            }
            cx.barrier();
            after[0].fetch_add(1, Relaxed);
        });
        assert_eq!(fault.diagnosis, Diagnosis::Raised(Fault { kind: FaultKind::User, args: [77, 0] }));
        assert_eq!((fault.thread, fault.line), (at(33), line));
        assert_eq!(after[0].load(Relaxed), 0);
    }
}

#[test]
fn an_index_outside_shared_memory() {
    let line = here() + 4;
    let fault = fails(&checked(), 1, 32, |cx| {
        // SAFETY: the launch reserves 2048 bytes.
        let mut shared = unsafe { Shared::<[u32; 32]>::from_arena(cx, 0) };
        shared.set(cx.lane() as usize + 1, 0);
    });
    assert_eq!(fault.diagnosis, Diagnosis::Raised(Fault { kind: FaultKind::OutOfBounds, args: [32, 32] }));
    assert_eq!((fault.thread, fault.line), (at(31), line));
}

#[test]
fn a_failed_launch_drops_what_its_lanes_own() {
    struct Owned<'a>(&'a AtomicU32);
    impl Drop for Owned<'_> {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Relaxed);
        }
    }
    for options in modes() {
        let owned = AtomicU32::new(0);
        let fault = fails(&options, 4, 64, |cx| {
            owned.fetch_add(1, Relaxed);
            let _owned = Owned(&owned);
            cx.barrier();
            if cx.thread_rank() == 7 {
                cx.fault(1);
            }
            cx.barrier();
        });
        assert!(matches!(fault.diagnosis, Diagnosis::Raised(_)));
        assert_eq!(owned.load(Relaxed), 0);
    }
}

#[test]
fn destructors_may_use_the_block_while_a_lane_unwinds() {
    struct Late<'k>(Block<'k>);
    impl Drop for Late<'_> {
        fn drop(&mut self) {
            self.0.barrier();
            self.0.ballot(!0, true);
            self.0.spin(20);
        }
    }
    for options in modes() {
        let fault = fails(&options, 2, 64, |cx| {
            let _late = Late(cx);
            cx.barrier();
            assert!(cx.thread_rank() != 9, "nine");
            cx.barrier();
        });
        assert_eq!(fault.diagnosis, Diagnosis::Panicked { message: "nine".to_owned() });
    }
}

#[test]
fn a_kernel_that_catches_unwinding_ends_too() {
    for options in modes() {
        let fault = fails(&options, 1, 64, |cx| {
            if cx.thread_rank() == 9 {
                cx.fault(3);
            }
            for _ in 0..3 {
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| cx.barrier()));
            }
        });
        assert!(matches!(fault.diagnosis, Diagnosis::Raised(_)));
    }
}

#[test]
fn the_emulator_works_after_every_fault() {
    for seed in 0..100 {
        let options = if seed % 3 == 0 { parallel() } else { seeded(seed) };
        let threads = 1 + (seed * 37 % 300) as u32;
        fails(&options, 3, threads, |cx| {
            cx.barrier();
            if cx.thread_rank() as u64 == seed % threads as u64 {
                match seed % 3 {
                    0 => panic!(),
                    1 => cx.fault(seed),
                    _ => return cx.barrier_any(true).then_some(()).unwrap(),
                }
            }
            if cx.block_threads() == 1 {
                cx.fault(0);
            }
            cx.barrier();
        });
        go(&options, 3, threads, |cx| assert_eq!(cx.barrier_count(true), threads)).unwrap();
    }
}

#[test]
fn what_a_lane_makes_of_its_end_hides_no_fault() {
    // Blocks start in the order of their ranks, so block 0 waits when block 1 faults.
    let fault = fails(&checked(), 2, 1, |cx| {
        if cx.block_rank() == 1 {
            cx.fault(7);
        }
        let wait = || -> () {
            loop {
                cx.spin(20);
            }
        };
        let _ = catch_unwind(AssertUnwindSafe(wait));
        panic!("the wait has ended");
    });
    assert_eq!(fault.diagnosis, Diagnosis::Raised(Fault { kind: FaultKind::User, args: [7, 0] }));
    assert_eq!(fault.block, at(1));
}

#[test]
fn arguments_that_are_equal_are_not_taken_for_each_other() {
    let view_of = |names: &[&'static str]| {
        let argument = |&name| super::super::Argument { name, address: 256, len: 0, size: 4 };
        let launch = Launch {
            kernel: "test",
            place: Location::caller(),
            grid: 1.into(),
            block: 1.into(),
            device: 0,
            shared_bytes: 0,
            shared_params: &[],
            regions: Vec::new(),
            arguments: names.iter().map(argument).collect(),
        };
        let result = run(&launch, &checked(), &|cx| {
            // SAFETY: it has no elements.
            let y = unsafe { Global::<u32>::from_raw(cx, std::ptr::without_provenance(256), 0) };
            std::hint::black_box(y[0]);
        });
        let Err(Error::Fault(fault)) = result else { panic!("{result:?}") };
        fault.view.map(|view| view.name)
    };
    assert_eq!(view_of(&["y"]), Some("y"));
    assert_eq!(view_of(&["x", "y"]), None);
}
