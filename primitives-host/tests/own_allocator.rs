//! Lanes that use up their stacks in a program whose allocator is its own: the process ends and says why. It does not leave the
//! allocator in the midst of its work, where the next allocation would wait for ever.

#![cfg(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
#![cfg(not(any(miri, emulator_thread_fibers)))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use primitives_gpu::view::LaunchBounds;
use primitives_host::__private::{KernelInfo, Launch};
use primitives_host::{Device, Dims, Result};

/// Cuts blocks from one large piece of memory, under a lock, and never takes one back.
struct Cutter(Mutex<(usize, usize)>);

const PIECE: usize = 1 << 30;

#[global_allocator]
static CUTTER: Cutter = Cutter(Mutex::new((0, 0)));

/// Whether the allocator is to need more stack than any lane has.
static DIVES: AtomicBool = AtomicBool::new(false);

#[inline(never)]
fn dive(depth: u64) -> u64 {
    let frame = black_box([depth; 4]);
    if depth == 0 { frame[0] } else { dive(depth - 1) + black_box(frame[3]) }
}

// SAFETY: blocks of a piece that is never freed, each handed out once, aligned and inside.
unsafe impl GlobalAlloc for Cutter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let mut rest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if DIVES.load(Relaxed) {
            dive(u64::MAX);
        }
        if rest.0 == 0 {
            // SAFETY: the layout has a size.
            let piece = unsafe { System.alloc(Layout::from_size_align(PIECE, 4096).unwrap()) };
            assert!(!piece.is_null());
            *rest = (piece.expose_provenance(), piece.addr() + PIECE);
        }
        let start = rest.0.next_multiple_of(layout.align());
        if start + layout.size() > rest.1 {
            return std::ptr::null_mut();
        }
        rest.0 = start + layout.size();
        std::ptr::with_exposed_provenance_mut(start)
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

/// What a child is to do.
const TASK: &str = "OWN_ALLOCATOR_CHILD";

static KERNEL: KernelInfo = KernelInfo::new("kernel", "kernel", &[], 0, 0, LaunchBounds::NONE);

fn launch(body: fn()) -> Result<()> {
    let stream = Device::emulator().stream()?;
    // SAFETY: the kernel has no parameters.
    unsafe { Launch::new(&stream, &KERNEL, Dims::new(2, 32)).run(&mut [std::ptr::null_mut()], move |_| body()) }
}

/// Runs this test in a child, which ends by itself.
fn ends_with_a_message(test: &str, task: &str) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(TASK, task)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("{task}: the child waits for ever");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{task}: {}\n{errors}", output.status);
    assert!(errors.contains("an allocator of its own"), "{task}: {errors}");
}

#[test]
fn a_lane_that_uses_up_its_stack_ends_the_process() {
    match std::env::var(TASK).as_deref() {
        Ok("in the allocator") => {
            let _ = launch(|| {
                DIVES.store(true, Relaxed);
                black_box(Box::new(1));
            });
            DIVES.store(false, Relaxed);
            black_box(Box::new(1));
        }
        // Where it is cannot be told from the allocator.
        Ok("in the kernel") => _ = launch(|| _ = black_box(dive(u64::MAX))),
        _ => ["in the allocator", "in the kernel"]
            .into_iter()
            .for_each(|task| ends_with_a_message("a_lane_that_uses_up_its_stack_ends_the_process", task)),
    }
}

#[test]
fn kernels_run_that_do_not_use_it_up() {
    launch(|| assert_eq!(dive(500), 500 * 501 / 2)).unwrap();
    launch(|| drop(black_box(vec![1u8; 1000]))).unwrap();
}
