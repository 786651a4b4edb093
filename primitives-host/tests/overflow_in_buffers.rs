//! Lanes that use up their stacks while they make and drop buffers: the launch fails or the process ends. No lock is kept that others
//! wait for.

#![cfg(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
#![cfg(not(any(miri, emulator_thread_fibers)))]

use std::env;
use std::hint::black_box;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use primitives_gpu::view::LaunchBounds;
use primitives_host::__private::{KernelInfo, Launch};
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
