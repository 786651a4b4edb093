//! Lanes that use up their stacks.

use std::hint::black_box;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::*;

/// Recurses to a depth.
#[inline(never)]
fn dive(depth: u64) -> u64 {
    let frame = black_box([depth; 4]);
    if depth == 0 { frame[0] } else { dive(depth - 1) + black_box(frame[3]) }
}

/// Needs a stack of 400 KiB at once.
#[inline(never)]
fn sprawl(seed: u8) -> u8 {
    let frame = black_box([seed; 400 << 10]);
    frame[black_box(12345)]
}

#[track_caller]
fn assert_overflow(fault: &KernelFault, limit: usize) {
    assert_eq!(fault.diagnosis, Diagnosis::StackOverflow { limit });
    assert!(fault.file.ends_with("overflow.rs"), "{fault}");
}

#[test]
fn endless_recursion_names_the_lane() {
    for options in modes() {
        let fault = fails(&options, 4, 9, |cx| {
            if cx.block_rank() == 3 && cx.thread_rank() == 7 {
                dive(u64::MAX);
            }
        });
        assert_overflow(&fault, 256 << 10);
        assert_eq!((fault.block, fault.thread, fault.kernel.as_str()), (at(3), at(7), "test"));
    }
}

#[test]
fn the_place_is_where_the_lane_waited_last_or_the_kernel_begins() {
    for options in modes() {
        let line = here() + 1;
        let fault = fails(&options, 1, 40, |cx| {
            if cx.thread_rank() == 33 {
                dive(u64::MAX);
            }
            cx.barrier();
        });
        assert_overflow(&fault, 256 << 10);
        assert_eq!((fault.line, fault.thread), (line, at(33)));

        let line = here() + 3;
        let fault = fails(&options, 2, 40, |cx| {
            cx.sync_warp(cx.warp_mask());
            cx.barrier();
            if cx.block_rank() == 1 && cx.thread_rank() == 33 {
                dive(u64::MAX);
            }
            cx.barrier();
        });
        assert_overflow(&fault, 256 << 10);
        assert_eq!((fault.line, fault.block, fault.thread), (line, at(1), at(33)));
    }
}

#[test]
fn a_large_array() {
    for options in modes() {
        let fault = fails(&options, 1, 3, |cx| {
            if cx.thread_rank() == 2 {
                black_box(sprawl(1));
            }
        });
        assert_overflow(&fault, 256 << 10);
        assert_eq!(fault.thread, at(2));
    }
}

#[test]
fn a_larger_stack_holds_it() {
    let large = |options| EmulatorOptions { stack_bytes: 512 << 10, ..options };
    for options in modes().map(large) {
        go(&options, 2, 33, |cx| {
            assert_eq!(sprawl(cx.thread_rank() as u8), cx.thread_rank() as u8);
            cx.barrier();
            assert_eq!(dive(1000), 1000 * 1001 / 2);
        })
        .unwrap();
        let fault = fails(&options, 1, 1, |_| {
            dive(u64::MAX);
        });
        assert_overflow(&fault, 512 << 10);
    }
}

#[test]
fn recursion_that_waits() {
    let line = here() + 2;
    fn wait(cx: Block<'_>, depth: u64) -> u64 {
        cx.barrier();
        if depth == u64::MAX { 0 } else { wait(cx, depth + 1) + black_box(depth) }
    }
    for options in modes() {
        for threads in [1, 7, 70] {
            let fault = fails(&options, 3, threads, |cx| {
                wait(cx, 0);
            });
            assert_overflow(&fault, 256 << 10);
            assert_eq!(fault.line, line);
        }
    }
}

#[test]
fn a_lane_may_panic_at_its_limit() {
    /// Panics as deep as the stack lets it.
    #[inline(never)]
    fn panic_below(depth: u64) -> u64 {
        if depth == 0 { panic!("at {}", black_box(depth)) } else { panic_below(depth - 1) + black_box(depth) }
    }
    // Somewhere in this range the panic itself is what meets the limit.
    let mut panics = 0;
    for depth in (0..4096).step_by(3) {
        let options = EmulatorOptions { stack_bytes: 16 << 10, ..checked() };
        let fault = fails(&options, 1, 1, |_| {
            panic_below(depth);
        });
        match fault.diagnosis {
            Diagnosis::Panicked { message } => {
                assert_eq!(message, "at 0");
                panics = depth;
            }
            overflow => assert_eq!(overflow, Diagnosis::StackOverflow { limit: 16 << 10 }),
        }
    }
    assert!((1..4095).contains(&panics), "{panics}");
}

#[test]
fn other_lanes_are_unwound() {
    struct Owned<'a>(&'a AtomicU32);
    impl Drop for Owned<'_> {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Relaxed);
        }
    }
    for options in modes() {
        let owned = AtomicU32::new(0);
        let fault = fails(&options, 1, 64, |cx| {
            owned.fetch_add(1, Relaxed);
            let _owned = Owned(&owned);
            cx.barrier();
            if cx.thread_rank() == 5 {
                dive(u64::MAX);
            }
            cx.barrier();
        });
        assert_overflow(&fault, 256 << 10);
        assert_eq!(owned.load(Relaxed), 1, "what the lane itself owns is leaked");
    }
}

#[test]
fn what_is_on_the_lost_stack_stays() {
    let kept = Mutex::new(Vec::new());
    for round in 0..20 {
        let fault = fails(&modes()[round % 4], 1, 33, |cx| {
            let value = AtomicUsize::new(round);
            if cx.thread_rank() == 3 {
                kept.lock().unwrap().push(std::ptr::from_ref(&value).expose_provenance());
                dive(u64::MAX);
            }
        });
        assert_overflow(&fault, 256 << 10);
    }
    for (round, &address) in kept.lock().unwrap().iter().enumerate() {
        // SAFETY: a variable that was never dropped, on a stack that is never used again.
        let value = unsafe { &*std::ptr::with_exposed_provenance::<AtomicUsize>(address) };
        assert_eq!(value.fetch_add(1, Relaxed), round);
    }
}

/// Of the smallest stacks: each that is lost stays, with all that the lane has touched of it.
#[test]
fn launches_go_on_after_a_thousand_overflows() {
    for round in 0..1000 {
        let options = EmulatorOptions { stack_bytes: 16 << 10, ..modes()[round % 4].clone() };
        let fault = fails(&options, 2, 4, |cx| {
            if cx.block_rank() == 1 && cx.thread_rank() == (round % 4) as u32 {
                dive(u64::MAX);
            }
        });
        assert_overflow(&fault, 16 << 10);
        go(&options, 2, 33, |cx| assert_eq!(cx.barrier_count(true), 33)).unwrap();
    }
}

/// Each has stacks of another size, by which its fault is told from those of the others.
#[test]
fn launches_of_several_threads_at_once() {
    std::thread::scope(|scope| {
        for limit in [64 << 10, 128 << 10, 192 << 10, 256 << 10] {
            scope.spawn(move || {
                for options in modes() {
                    let options = EmulatorOptions { stack_bytes: limit, ..options };
                    let fault = fails(&options, 64, 32, |_| {
                        dive(u64::MAX);
                    });
                    assert_overflow(&fault, limit);
                    // Blocks that start one after another, in the order of their ranks, end with the first.
                    let blocks = if options.checked && options.seed.is_none() { 1 } else { 64 };
                    assert!(fault.block.x < blocks && fault.thread.x < 32, "{fault}");
                }
            });
        }
    });
}

/// Runs a test of this file alone, in a process of its own that knows its part by an environment variable.
fn in_child(test: &str) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("emulator::tests::overflow::{test}"), "--nocapture", "--test-threads=1"])
        .env("OVERFLOW_TEST_CHILD", "1")
        .output()
        .unwrap()
}

fn is_child() -> bool {
    std::env::var_os("OVERFLOW_TEST_CHILD").is_some()
}

/// A launch that overflows, so that the handler is there.
fn overflow() {
    fails(&checked(), 1, 1, |_| {
        dive(u64::MAX);
    });
}

#[test]
fn a_thread_that_overflows_is_the_standard_librarys() {
    if is_child() {
        overflow();
        let thread = std::thread::Builder::new().name("ordinary".to_owned()).stack_size(256 << 10);
        thread.spawn(|| dive(u64::MAX)).unwrap().join().unwrap();
        unreachable!("the process ends");
    }
    let output = in_child("a_thread_that_overflows_is_the_standard_librarys");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("thread 'ordinary'") && errors.contains("has overflowed its stack"), "{errors}");
    assert_eq!(output.status.signal(), Some(libc::SIGABRT));
}

#[test]
fn other_faults_are_the_handlers_before() {
    extern "C" fn handler(_signal: i32, info: *mut libc::siginfo_t, _context: *mut std::ffi::c_void) {
        // SAFETY: the system's arguments; the process ends with a status.
        unsafe { libc::_exit(if (*info).si_addr().addr() == 64 { 42 } else { 43 }) };
    }

    if is_child() {
        let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut std::ffi::c_void) = handler;
        // SAFETY: zeros are a `sigaction`, and the handler has the signature of its flag.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut());
        }
        overflow();
        let _ = go(&checked(), 1, 1, |_| {
            // SAFETY: none: this faults.
            unsafe { std::ptr::without_provenance_mut::<u8>(64).write_volatile(1) };
        });
        unreachable!("the process ends");
    }
    let output = in_child("other_faults_are_the_handlers_before");
    assert_eq!(output.status.code(), Some(42), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_lane_that_overflows_as_it_unwinds_ends_the_process() {
    struct Deep;
    impl Drop for Deep {
        fn drop(&mut self) {
            dive(u64::MAX);
        }
    }
    if is_child() {
        let _ = go(&checked(), 1, 1, |_| {
            let _deep = Deep;
            panic!();
        });
        unreachable!("the process ends");
    }
    let output = in_child("a_lane_that_overflows_as_it_unwinds_ends_the_process");
    assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_lane_that_waits_in_vain_as_it_unwinds_ends_the_process() {
    struct Waits<'c>(Block<'c>, &'c AtomicU32);
    impl Drop for Waits<'_> {
        fn drop(&mut self) {
            // Nobody sets it.
            while self.1.load(Relaxed) == 0 {
                self.0.spin(20);
            }
        }
    }
    if is_child() {
        let flag = atomics(1);
        let options = EmulatorOptions { deadlock_after: std::time::Duration::from_millis(30), ..checked() };
        let _ = go(&options, 1, 2, |cx| {
            let _waits = (cx.thread_rank() == 0).then(|| Waits(cx, &flag[0]));
            cx.barrier();
            if cx.thread_rank() == 1 {
                cx.fault(7);
            }
            cx.barrier();
        });
        unreachable!("the process ends");
    }
    let output = in_child("a_lane_that_waits_in_vain_as_it_unwinds_ends_the_process");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("thread (0, 0, 0) of block (0, 0, 0) waits in "), "{errors}");
    assert_eq!(output.status.signal(), Some(libc::SIGABRT));
}
