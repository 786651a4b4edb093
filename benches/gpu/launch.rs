//! What a launch costs the host.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::sync::OnceLock;
use std::time::Instant;

use kernel_primitives::__private::{Instantiated, KernelInfo};
use kernel_primitives::kernels::map_binary;
use kernel_primitives::prelude::*;
use kernel_primitives::{Device, Result, Stream};
use libloading::Library;

use crate::harness::{Report, median};

/// The driver's own functions, as a program has them that links with it.
#[allow(non_snake_case, reason = "the driver's names")]
struct Driver {
    cuModuleLoadData: unsafe extern "C" fn(*mut *mut c_void, *const c_void) -> c_int,
    cuModuleGetFunction: unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const c_char) -> c_int,
    cuLaunchKernel: LaunchKernel,
}

/// Function; grid and block; bytes of shared memory; stream; parameters; extra.
type LaunchKernel = unsafe extern "C" fn(
    *mut c_void,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    *mut c_void,
    *mut *mut c_void,
    *mut *mut c_void,
) -> c_int;

fn driver() -> &'static Driver {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    DRIVER.get_or_init(|| {
        // SAFETY: the driver, which the library has loaded already; it stays for good. The functions' signatures are right.
        unsafe {
            let library = ManuallyDrop::new(Library::new("libcuda.so.1").expect("a driver where there is a GPU"));
            Driver {
                cuModuleLoadData: *library.get(b"cuModuleLoadData\0").expect("a function of every driver"),
                cuModuleGetFunction: *library.get(b"cuModuleGetFunction\0").expect("a function of every driver"),
                cuLaunchKernel: *library.get(b"cuLaunchKernel\0").expect("a function of every driver"),
            }
        }
    })
}

type Sum = map_binary<f32, f32, Add, 4>;

/// From the call to the result, the first time: load the kernel, launch, wait.
pub(crate) fn first(device: &Device, report: &mut Report) -> Result<()> {
    let stream = device.stream()?;
    let x = stream.buffer_from(&[1.0f32; 1024])?;
    let mut out = stream.buffer_zeroed::<f32>(1024)?;
    stream.synchronize()?;
    let begin = Instant::now();
    Sum::launch(&stream, (1, 256), &x, &x, &mut out, Add)?;
    stream.synchronize()?;
    let first = begin.elapsed();
    assert_eq!(out.to_vec()?, [2.0; 1024]);

    // The same kernel compiled by the driver from PTX: what a device without a cubin pays. The name is changed, so that no
    // cache of the driver knows it.
    let info = <Sum as Instantiated<_>>::info();
    let ptx = ptx_of(info, device).replace("\n.address_size", &format!("\n// {:?}\n.address_size", Instant::now()));
    let begin = Instant::now();
    load(&ptx);
    let compiled = begin.elapsed();
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    report.row("first launch", &[("ms", ms(first)), ("PTX load ms", ms(compiled))]);
    Ok(())
}

fn ptx_of(info: &KernelInfo, device: &Device) -> String {
    let (major, minor) = device.properties().compute_capability.unwrap_or_default();
    let fits = info.images().iter().filter(|image| image.0 <= major * 10 + minor);
    fits.max_by_key(|image| image.0).map_or_else(String::new, |image| image.1.to_owned())
}

/// Loads PTX into the current context, which is the runtime's.
fn load(ptx: &str) -> *mut c_void {
    let text = CString::new(ptx).expect("PTX is text");
    let mut module = std::ptr::null_mut();
    // SAFETY: the text is terminated; the pointers are valid for the call.
    assert_eq!(unsafe { (driver().cuModuleLoadData)(&raw mut module, text.as_ptr().cast()) }, 0);
    module
}

/// A typed launch against the driver's `cuLaunchKernel` with the same kernel and arguments, host time each.
pub(crate) fn overhead(device: &Device, report: &mut Report) -> Result<()> {
    const LAUNCHES: u32 = 500; // below the depth of the driver's queue
    const ROUNDS: usize = 41;
    let stream = device.stream()?;
    let n = 1024usize;
    let x = stream.buffer_from(&vec![1.0f32; n])?;
    let y = stream.buffer_from(&vec![2.0f32; n])?;
    let mut out = stream.buffer_zeroed::<f32>(n)?;
    Sum::launch(&stream, (1, 256), &x, &y, &mut out, Add)?;
    stream.synchronize()?;

    let info = <Sum as Instantiated<_>>::info();
    let module = load(&ptx_of(info, device));
    let entry = CString::new(info.entry().replace("::", "__")).expect("a name");
    let mut function = std::ptr::null_mut();
    // SAFETY: the module is loaded; the pointers are valid for the call.
    assert_eq!(unsafe { (driver().cuModuleGetFunction)(&raw mut function, module, entry.as_ptr()) }, 0);
    let (launch, raw_stream) = (driver().cuLaunchKernel, stream.as_raw());
    let (x_address, y_address, out_address) = (x.address(), y.address(), out.address());
    let raw_launch = || {
        // The last is the functor, which has no bytes, but a parameter.
        let values = [&x_address, &(n as u64), &y_address, &(n as u64), &out_address, &(n as u64), &0];
        let mut params = values.map(|value| std::ptr::from_ref(value).cast_mut().cast::<c_void>());
        // SAFETY: the kernel's parameters in order; the buffers outlive the launch.
        let code = unsafe {
            let null = std::ptr::null_mut();
            launch(function, 1, 1, 1, 256, 1, 1, 0, raw_stream, params.as_mut_ptr(), null)
        };
        assert_eq!(code, 0);
    };

    let (mut typed, mut raw) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS + 4 {
        // Each is the first of the two in every other round.
        for is_typed in [round % 2 == 0, round % 2 == 1] {
            let begin = Instant::now();
            if is_typed {
                for _ in 0..LAUNCHES {
                    Sum::launch(&stream, (1, 256), &x, &y, &mut out, Add)?;
                }
            } else {
                (0..LAUNCHES).for_each(|_| raw_launch());
            }
            let time = begin.elapsed().as_secs_f64() * 1e6 / f64::from(LAUNCHES);
            stream.synchronize()?;
            if round >= 4 {
                if is_typed { typed.push(time) } else { raw.push(time) }
            }
        }
    }
    assert_eq!(out.to_vec()?, vec![3.0; n]);
    let (typed, raw) = (median(typed), median(raw));
    report.row("launch, host time", &[("µs", typed), ("driver µs", raw), ("ratio", typed / raw)]);
    Ok(())
}

/// Small launches one by one against the same launches as a graph, host time each.
pub(crate) fn graph(device: &Device, report: &mut Report) -> Result<()> {
    const LAUNCHES: usize = 100;
    const ROUNDS: usize = 41;
    let stream = device.stream()?;
    let n = 1024usize;
    let one = stream.buffer_from(&vec![1.0f32; n])?;
    let (mut x, mut y) = (stream.buffer_zeroed::<f32>(n)?, stream.buffer_zeroed::<f32>(n)?);
    // Each launch needs the result of the one before it.
    let mut launches = |stream: &Stream| {
        for _ in 0..LAUNCHES / 2 {
            Sum::launch(stream, (1, 256), &x, &one, &mut y, Add)?;
            Sum::launch(stream, (1, 256), &y, &one, &mut x, Add)?;
        }
        Ok(())
    };
    let graph = stream.capture(&mut launches)?;
    assert_eq!(graph.launches(), LAUNCHES);
    let host_time = |run: &mut dyn FnMut() -> Result<()>| -> Result<f64> {
        let begin = Instant::now();
        run()?;
        let time = begin.elapsed();
        stream.synchronize()?;
        Ok(time.as_secs_f64() * 1e6)
    };
    let (mut direct, mut replayed) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS + 4 {
        for is_graph in [round % 2 == 0, round % 2 == 1] {
            let time = if is_graph {
                host_time(&mut || graph.launch(&stream))?
            } else {
                host_time(&mut || launches(&stream))?
            };
            if round >= 4 {
                if is_graph { replayed.push(time) } else { direct.push(time) }
            }
        }
    }
    assert_eq!(x.to_vec()?, vec![(2 * LAUNCHES * (ROUNDS + 4)) as f32; n]);
    let (direct, replayed) = (median(direct), median(replayed));
    let name = format!("graph of {LAUNCHES} launches, host time");
    report.row(&name, &[("µs", replayed), ("one by one µs", direct), ("ratio", replayed / direct)]);
    assert!(replayed <= direct / 2.0, "a graph takes {replayed:.1} µs, its launches {direct:.1} µs");
    Ok(())
}
