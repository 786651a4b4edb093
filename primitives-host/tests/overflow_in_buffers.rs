//! Lanes that use up their stacks while they make and drop buffers: the launch fails or the process ends. No lock is kept that others
//! wait for. What a lane runs on the host has a stack of its own.

#![cfg(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
#![cfg(not(any(miri, emulator_thread_fibers)))]

use std::env;
use std::hint::black_box;
use std::os::unix::process::ExitStatusExt;
use std::panic::Location;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use primitives_gpu::view::LaunchBounds;
use primitives_host::__private::{KernelInfo, Launch};
use primitives_host::storage::{self, Storage, StorageUse};
use primitives_host::{Device, Diagnosis, Dims, EmulatorOptions, Error, KernelFault, Result, Stream};

static KERNEL: KernelInfo = KernelInfo::new("kernel", "kernel", &[], 0, 0, LaunchBounds::NONE);

/// Uses up the stack: after so many small frames, by frames that make a buffer and drop it.
#[inline(never)]
fn dive(small: u64, stream: &Stream) -> u64 {
    let frame = black_box([small; 4]);
    if small == 0 {
        drop(stream.buffer_uninit::<u8>(1));
    }
    if black_box(false) {
        return 0;
    }
    dive(small.saturating_sub(1), stream) + black_box(frame[3])
}

/// What a child does: such a launch, and then an allocation.
fn overflow(small: u64) -> Result<()> {
    let mut options = EmulatorOptions::default();
    options.stack_bytes = 32 << 10;
    let (stream, other) = (Device::emulator_with(options).stream()?, Device::emulator().stream()?);
    let launch = Launch::new(&stream, &KERNEL, Dims::new(1, 1));
    // SAFETY: the kernel has no parameters.
    let done = unsafe { launch.run(&mut [std::ptr::null_mut()], move |_| _ = black_box(dive(small, &other))) };
    let overflows = |fault: &KernelFault| matches!(fault.diagnosis, Diagnosis::StackOverflow { .. });
    assert!(matches!(&done, Err(Error::Fault(fault)) if overflows(fault)), "{done:?}");
    Device::emulator().stream()?.buffer_zeroed::<u8>(1).map(drop)
}

#[test]
fn a_lane_that_overflows_while_it_makes_a_buffer_keeps_nobody_waiting() -> Result<()> {
    const SMALL: &str = "OVERFLOW_IN_BUFFERS_SMALL";
    if let Some(small) = env::var(SMALL).ok().and_then(|small| small.parse().ok()) {
        return overflow(small);
    }
    let test = "a_lane_that_overflows_while_it_makes_a_buffer_keeps_nobody_waiting";
    // Each overflows somewhere else.
    for small in 0..24 {
        let mut child = Command::new(env::current_exe().expect("this program"))
            .args(["--exact", test])
            .env(SMALL, small.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a child");
        let begin = Instant::now();
        while child.try_wait().expect("a child").is_none() {
            if begin.elapsed() > Duration::from_secs(60) {
                child.kill().expect("it runs");
                panic!("{small}: the child waits for ever");
            }
            sleep(Duration::from_millis(5));
        }
        let output = child.wait_with_output().expect("a child");
        let [said, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        // A panic ends neither with success nor with a signal.
        let failed_launch = output.status.success() && said.contains("1 passed");
        let ended = output.status.signal().is_some() && said.contains("running 1 test");
        assert!(failed_launch || ended, "{small}: {}\n{said}\n{errors}", output.status);
    }
    Ok(())
}

/// Takes more stack than a lane has.
#[inline(never)]
fn take_100_kib() {
    _ = black_box([0u8; 100 << 10]);
}

/// Launches a kernel of one lane with little stack, which calls `body`.
fn on_a_small_stack(body: impl Fn() + Send + Sync + 'static) -> Result<()> {
    let mut options = EmulatorOptions::default();
    options.stack_bytes = 64 << 10;
    let stream = Device::emulator_with(options).stream()?;
    let launch = Launch::new(&stream, &KERNEL, Dims::new(1, 1));
    // SAFETY: the kernel has no parameters.
    unsafe { launch.run(&mut [std::ptr::null_mut()], move |_| body()) }
}

/// Runs work on the host that writes the memory and takes much stack.
fn run_on_host(stream: &Stream, memory: &Storage) -> Result<()> {
    let uses = vec![StorageUse { storage: memory, write: true, ranges: Box::new(|f| f(0..4)), name: "x" }];
    let body = || {
        take_100_kib();
        Ok(())
    };
    // SAFETY: it accesses nothing.
    unsafe { storage::run_on_host(stream, "host", Location::caller(), uses, body) }
}

#[test]
fn work_of_the_host_in_a_lane_has_a_stack_of_its_own() -> Result<()> {
    let stream = Device::emulator().stream()?;
    let x = Storage::of(stream.buffer_from(&[1u32])?);
    let graph = stream.capture(|s| run_on_host(s, &x))?;
    let (queue, written) = (stream.clone(), x.clone());
    on_a_small_stack(move || {
        run_on_host(&queue, &written).expect("there is room");
        graph.launch(&queue).expect("there is room");
    })?;
    // Nobody has them any more.
    stream.synchronize()?;
    x.lend("`lend`", &stream, true)
}
