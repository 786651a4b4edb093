//! Kernels of nothing, and what several tests do with them.

use std::ptr::null_mut;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use primitives_gpu::view::LaunchBounds;
use primitives_host::__private::{Images, KernelInfo, Launch};
use primitives_host::{Buffer, BufferSliceMut, Dims, Error, Result, Stream};

pub(crate) const IMAGES: Images = &[(90, "// layout 0000000000000000\n.version 8.0\n", None)];
pub(crate) static KERNEL: KernelInfo = KernelInfo::new("kernel", "kernel", IMAGES, 0, 0, LaunchBounds::NONE);
pub(crate) static OTHER: KernelInfo = KernelInfo::new("other", "other", IMAGES, 0, 0, LaunchBounds::NONE);

/// Launches a kernel that reads and writes.
pub(crate) fn launch(
    stream: &Stream,
    info: &'static KernelInfo,
    read: &[&Buffer<u32>],
    write: &mut [&mut Buffer<u32>],
) -> Result<()> {
    let mut launch = Launch::new(stream, info, Dims::new(1, 32));
    for &buffer in read {
        launch.read("x", buffer)?;
    }
    for buffer in write {
        launch.write("out", BufferSliceMut::from(&mut **buffer))?;
    }
    // SAFETY: the driver runs nothing, and the kernel has no parameters.
    unsafe { launch.run(&mut [null_mut()], |_| unreachable!("on a GPU")) }
}

/// The result of `work` on a thread of its own; a panic if there is none after some seconds.
#[track_caller]
pub(crate) fn soon<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| {
        let (done, result) = mpsc::channel();
        scope.spawn(move || done.send(work()));
        match result.recv_timeout(Duration::from_secs(20)) {
            Ok(result) => result,
            Err(_) => {
                eprintln!("\na thread waits for a lock that another one holds while it waits for the driver");
                std::process::exit(1);
            }
        }
    })
}

#[track_caller]
pub(crate) fn refused<T>(result: Result<T>, part: &str) {
    match result {
        Err(error @ Error::Capture { .. }) => assert!(error.to_string().contains(part), "`{part}`: {error}"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("no error, in spite of the capture: `{part}`"),
    }
}
