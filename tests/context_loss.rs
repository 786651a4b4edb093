//! Tests that after a fatal fault of the hardware, every call says that the device is lost and why, and that a new process works.
//!
//! The loss happens in a child process, because this process would have no GPU any more. The emulator has nothing to lose. There, these
//! tests say so, and check that it still works.

use std::ffi::c_void;
use std::process::Command;
use std::ptr::null_mut;

use kernel_primitives::kernels::map_binary;
use kernel_primitives::prelude::*;
use kernel_primitives::{Buffer, Device, Dims, Error, Result, Stream};

#[allow(unreachable_pub, reason = "a module of two test binaries")]
#[path = "suite/driver.rs"]
mod driver;
use driver::Driver;

/// The task of a child.
const TASK: &str = "CONTEXT_LOSS_CHILD";

/// Kernels that no library would have. One stores outside all memory, and one stops.
const PTX: &std::ffi::CStr = c"
.version 6.3
.target sm_70
.address_size 64
.visible .entry store()
{
    .reg .b64 %address;
    .reg .b32 %value;
    mov.b64 %address, 16;
    mov.b32 %value, 1;
    st.global.b32 [%address], %value;
    ret;
}
.visible .entry stop()
{
    trap;
}
";

/// Runs a test of this file in a child. Returns the text that it wrote to its standard error.
fn child(test: &str, task: &str) -> String {
    let output = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", test, "--nocapture"])
        .env(TASK, task)
        .output()
        .expect("this test runs again");
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{task}: {}\n{said}\n{errors}", output.status);
    errors.into_owned()
}

fn add(stream: &Stream, x: &Buffer<f32>, out: &mut Buffer<f32>) -> Result<()> {
    map_binary::<f32, f32, Add, 4>::launch(stream, Dims::for_items(x.len()).items_per_thread(4), x, x, out, Add)
}

/// Launches on the device that the environment names.
fn works() -> Result<()> {
    let stream = Device::auto()?.stream()?;
    let (x, mut out) = (stream.buffer_from(&[1.0f32; 100])?, stream.buffer_zeroed(100)?);
    add(&stream, &x, &mut out)?;
    assert_eq!(out.to_vec()?, [2.0; 100]);
    stream.synchronize()
}

#[test]
fn a_lost_device_is_an_error_of_every_call_and_a_new_process_has_it_again() -> Result<()> {
    if std::env::var_os(TASK).is_some() {
        return Ok(());
    }
    let device = Device::auto()?;
    if !device.is_gpu() {
        println!("nothing was lost: {}, and the emulator has no context", device.reason());
        assert!(device.as_raw_context().is_null());
        return works();
    }
    for task in ["store", "stop"] {
        // Drops are silent.
        assert_eq!(child("child_loses_its_device", task), "");
        child("child_launches", task);
    }
    // The fault of a child does not affect this process.
    works()
}

#[test]
fn child_launches() -> Result<()> {
    if std::env::var_os(TASK).is_some() { works() } else { Ok(()) }
}

#[test]
fn child_loses_its_device() -> Result<()> {
    let Ok(task) = std::env::var(TASK) else { return Ok(()) };
    let device = Device::gpu()?;
    let (stream, other) = (device.stream()?, device.stream()?);
    let (x, mut out) = (stream.buffer_from(&[1.0f32; 100])?, stream.buffer_zeroed::<f32>(100)?);
    let mut pinned = device.pinned::<f32>(100)?;
    let graph = stream.capture(|s| add(s, &x, &mut out))?;
    let (before, after) = (stream.record()?, stream.record()?);
    graph.launch(&other)?;
    other.synchronize()?;

    lose(&device, &stream, &task);
    let text = lost(stream.synchronize());
    assert!(text.contains(&device.to_string()) && text.contains("CUDA_ERROR_"), "{text}");
    assert!(text.contains("start it again") && text.contains("child process"), "{text}");
    if task == "store" {
        assert!(text.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{text}");
    }

    // Every call on every stream names the same cause.
    let same = |error: String| assert_eq!(error, text);
    for stream in [&stream, &other] {
        same(lost(stream.synchronize()));
        same(lost(add(stream, &x, &mut out)));
        same(lost(stream.buffer_zeroed::<u8>(1)));
        same(lost(stream.buffer_from(&[1.0])));
        same(lost(stream.record()));
        same(lost(stream.wait(&before)));
        same(lost(graph.launch(stream)));
        same(lost(stream.capture(|_| Ok(()))));
    }
    same(lost(x.to_vec()));
    same(lost(x.copy_to(&mut pinned)));
    same(lost(out.copy_from(&pinned)));
    same(lost(out.as_mut_slice().copy_from_device(&other, x.as_slice())));
    same(lost(after.synchronize()));
    same(lost(after.since(&before)));
    same(lost(device.stream()));
    same(lost(device.pinned::<u8>(1)));
    // SAFETY: the call adopts nothing.
    same(lost(unsafe { Stream::from_raw_borrowed(&device, null_mut()) }));
    // Host memory still belongs to the process.
    pinned.fill(1.0);
    assert_eq!(*pinned, [1.0; 100]);

    // There is a new context, or the reason why there is none. The emulator is never used silently.
    match Device::auto() {
        Ok(again) => {
            assert!(again.is_gpu());
            works()?;
        }
        Err(Error::ContextLost { device: label, error, .. }) => {
            assert_eq!(label, device.to_string());
            assert!(text.contains(&error.to_string()), "{error}");
        }
        Err(other) => panic!("{other}"),
    }
    drop((graph, before, after, x, out, pinned, other, stream, device));
    Ok(())
}

/// Launches a kernel with a fault that is fatal for the device.
fn lose(device: &Device, stream: &Stream, kernel: &str) {
    let driver = Driver::open();
    let name = std::ffi::CString::new(kernel).expect("a name");
    let (mut module, mut function): (*mut c_void, *mut c_void) = (null_mut(), null_mut());
    // SAFETY: the pointers are valid for the calls, and the kernel has no parameters. The kernel ends the use of the device in this
    // process, as intended.
    unsafe {
        driver.cuCtxSetCurrent(device.as_raw_context());
        driver.cuModuleLoadData(&raw mut module, PTX.as_ptr().cast());
        driver.cuModuleGetFunction(&raw mut function, module, name.as_ptr());
        driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream.as_raw(), null_mut(), null_mut());
    }
}

/// Returns the text of the error, which says that the device is lost.
#[track_caller]
fn lost<T>(result: Result<T>) -> String {
    match result {
        Err(error @ Error::ContextLost { .. }) => error.to_string(),
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("no error"),
    }
}
