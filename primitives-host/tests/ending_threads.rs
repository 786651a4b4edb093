//! Threads that end: while their variables are destroyed, one after the other, the last of them may still use the library.

use std::cell::RefCell;
use std::sync::Mutex;
use std::thread;

use primitives_gpu::view::LaunchBounds;
use primitives_host::__private::{KernelInfo, Launch};
use primitives_host::{Buffer, Device, Diagnosis, Dims, Error, Result, Stream};

static KERNEL: KernelInfo = KernelInfo::new("kernel", "kernel", &[], 0, 0, LaunchBounds::NONE);

/// A value that makes a call when it is dropped.
struct AtEnd(Box<dyn Fn()>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        (self.0)();
    }
}

thread_local! {
    static LAST: RefCell<Option<AtEnd>> = const { RefCell::new(None) };
}

/// Runs a thread that makes a call in the drop of the last of its variables. `begin` returns the call.
fn on_a_thread(begin: impl FnOnce() -> Result<Box<dyn Fn()>> + Send) -> Result<()> {
    thread::scope(|scope| {
        let thread = scope.spawn(|| -> Result<()> {
            // Variables are destroyed in the reverse order of their first uses. The library's come after this one.
            LAST.set(None);
            let call = begin()?;
            LAST.set(Some(AtEnd(call)));
            Ok(())
        });
        // This waits for the ends of the variables, too.
        thread.join().expect("no panic")
    })
}

#[test]
fn a_thread_that_ends_copies_its_buffers() -> Result<()> {
    static SEEN: Mutex<Vec<u32>> = Mutex::new(Vec::new());
    fn copy(x: &Buffer<u32>) -> Result<()> {
        let mut seen = SEEN.lock().expect("no panic");
        seen.extend(x.to_vec()?);
        seen.extend(x.device().stream()?.buffer_from(&[3u32])?.to_vec()?);
        Ok(())
    }
    on_a_thread(|| {
        let x = Device::emulator().stream()?.buffer_from(&[1u32, 2])?;
        Ok(Box::new(move || copy(&x).expect("copies")))
    })?;
    assert_eq!(*SEEN.lock().expect("no panic"), [1, 2, 3]);
    Ok(())
}

#[test]
fn a_kernel_of_a_thread_that_ends_panics() -> Result<()> {
    static SEEN: Mutex<Vec<Result<()>>> = Mutex::new(Vec::new());
    fn launch(stream: &Stream) {
        let launch = Launch::new(stream, &KERNEL, Dims::new(1, 1));
        // SAFETY: the kernel has no parameters.
        let done = unsafe { launch.run(&mut [std::ptr::null_mut()], |_| panic!("as it should")) };
        SEEN.lock().expect("no panic").push(done);
    }
    on_a_thread(|| {
        let stream = Device::emulator().stream()?;
        launch(&stream);
        Ok(Box::new(move || launch(&stream)))
    })?;
    let seen = SEEN.lock().expect("no panic");
    assert_eq!(seen.len(), 2);
    for done in seen.iter() {
        let Err(Error::Fault(fault)) = done else { panic!("{done:?}") };
        assert_eq!(fault.diagnosis, Diagnosis::Panicked { message: "as it should".into() });
    }
    Ok(())
}
