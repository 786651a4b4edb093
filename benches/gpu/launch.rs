//! What a launch costs the host.

use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::time::Instant;

use kernel_primitives::__private::Instantiated;
use kernel_primitives::algorithms::{Run, Workspace, reduce};
use kernel_primitives::expr::{Reductions, Tensor};
use kernel_primitives::kernels::map_binary;
use kernel_primitives::prelude::*;
use kernel_primitives::{Buffer, Device, Result, Stream, functor};
use primitives_cuda_driver::sys::{
    self, CUfunction, CUlaunchAttribute, CUlaunchAttributeID, CUlaunchConfig, CUmodule, CUresult,
};

use crate::harness::{Options, Report, median};

type Sum = map_binary<f32, f32, Add, 4>;

pub(crate) fn run(device: &Device, _: &Options, report: &mut Report) -> Result<()> {
    first(device, report)?;
    overhead(device, report)?;
    memory(device, report)?;
    graph(device, report)
}

/// From the call to the result, the first time: load the kernel, launch, wait.
fn first(device: &Device, report: &mut Report) -> Result<()> {
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
    let ptx = ptx_of(device).replace("\n.address_size", &format!("\n// {:?}\n.address_size", Instant::now()));
    let begin = Instant::now();
    load(&ptx);
    let compiled = begin.elapsed();
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    report.row("first launch", &[("ms", ms(first)), ("PTX load ms", ms(compiled))]);
    Ok(())
}

fn ptx_of(device: &Device) -> &'static str {
    <Sum as Instantiated<_>>::info().ptx(device).expect("the kernel has code for the GPU that it has run on")
}

/// Loads PTX into the current context, which is the runtime's.
fn load(ptx: &str) -> CUmodule {
    let text = CString::new(ptx).expect("PTX is text");
    let mut module = null_mut();
    // SAFETY: the text is terminated; the pointers are valid for the call, which has no options.
    let code = unsafe { sys::cuModuleLoadDataEx(&raw mut module, text.as_ptr().cast(), 0, null_mut(), null_mut()) };
    assert_eq!(code, CUresult::CUDA_SUCCESS);
    module
}

/// The driver's function of the kernel, in a module of its own.
fn function_of(ptx: &str) -> CUfunction {
    let entry = CString::new(<Sum as Instantiated<_>>::info().entry().replace("::", "__")).expect("a name");
    let mut function = null_mut();
    // SAFETY: the module is loaded; the pointers are valid for the call.
    let code = unsafe { sys::cuModuleGetFunction(&raw mut function, load(ptx), entry.as_ptr()) };
    assert_eq!(code, CUresult::CUDA_SUCCESS);
    function
}

/// A typed launch against the call of the driver that it makes, with the same kernel and arguments, host time each. If other code has the
/// handle of the stream, a launch also asks whether that code captures the stream.
fn overhead(device: &Device, report: &mut Report) -> Result<()> {
    const LAUNCHES: u32 = 500; // below the depth of the driver's queue
    const ROUNDS: usize = 41;
    let n = 1024usize;
    let (own, shared) = (device.stream()?, device.stream()?);
    let operands = |stream: &Stream| -> Result<[Buffer<f32>; 3]> {
        Ok([stream.buffer_from(&vec![1.0; n])?, stream.buffer_from(&vec![2.0; n])?, stream.buffer_zeroed(n)?])
    };
    let ([x, y, mut out], [x_shared, y_shared, mut out_shared]) = (operands(&own)?, operands(&shared)?);

    let ptx = ptx_of(device);
    let function = function_of(ptx);
    // As the runtime: a kernel that waits by itself for the launch before may begin earlier.
    let waits = ptx.contains("griddepcontrol.wait;");
    let mut attribute = CUlaunchAttribute {
        id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        pad: [0; 4],
        programmaticStreamSerializationAllowed: 1,
        rest: [0; 15],
    };
    let config = CUlaunchConfig {
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 256,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: shared.as_raw().cast(),
        attrs: &raw mut attribute,
        numAttrs: 1,
    };
    let (x_address, y_address, out_address) = (x_shared.address(), y_shared.address(), out_shared.address());
    let raw_launch = || {
        // The functor has no bytes, and is no parameter. The last one is the address for reports of faults, of which this kernel has none.
        let values = [&x_address, &(n as u64), &y_address, &(n as u64), &out_address, &(n as u64), &0];
        let mut params = values.map(|value| std::ptr::from_ref(value).cast_mut().cast::<c_void>());
        let params = params.as_mut_ptr();
        // SAFETY: the kernel's parameters in order; the buffers outlive the launch, and a kernel that may begin early waits.
        let code = unsafe {
            if waits {
                sys::cuLaunchKernelEx(&raw const config, function, params, null_mut())
            } else {
                sys::cuLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, config.hStream, params, null_mut())
            }
        };
        assert_eq!(code, CUresult::CUDA_SUCCESS);
    };
    shared.synchronize()?;
    raw_launch();
    shared.synchronize()?;
    assert_eq!(out_shared.to_vec()?, vec![3.0; n], "the driver's own call");
    out_shared.copy_from(&vec![0.0; n])?;

    let mut times = [const { Vec::new() }; 3];
    for round in 0..ROUNDS + 4 {
        // Each is the first of the three in some rounds.
        for which in (0..3).map(|at| (at + round) % 3) {
            let begin = Instant::now();
            match which {
                0 => (0..LAUNCHES).for_each(|_| raw_launch()),
                1 => (0..LAUNCHES).try_for_each(|_| Sum::launch(&own, (1, 256), &x, &y, &mut out, Add))?,
                _ => (0..LAUNCHES)
                    .try_for_each(|_| Sum::launch(&shared, (1, 256), &x_shared, &y_shared, &mut out_shared, Add))?,
            }
            let time = begin.elapsed().as_secs_f64() * 1e6 / f64::from(LAUNCHES);
            own.synchronize()?;
            shared.synchronize()?;
            if round >= 4 {
                times[which].push(time);
            }
        }
    }
    assert_eq!((out.to_vec()?, out_shared.to_vec()?), (vec![3.0; n], vec![3.0; n]));
    let [raw, typed, on_shared] = times.map(median);
    let call = if waits { "cuLaunchKernelEx" } else { "cuLaunchKernel" };
    report.row_of(
        "launch, host time",
        &[("driver's call", call)],
        &[("µs", typed), ("driver µs", raw), ("ratio", typed / raw), ("µs on a stream that others have", on_shared)],
    );
    Ok(())
}

/// Calls whose blocks share results in memory, host time each: a reduction with a workspace and without one, and the sum of a tensor.
fn memory(device: &Device, report: &mut Report) -> Result<()> {
    const CALLS: u32 = 200;
    const ROUNDS: usize = 41;
    const N: usize = 1 << 16;
    let stream = device.stream()?;
    let x = stream.buffer_from(&vec![1.0f32; N])?;
    let tensor = Tensor::from_slice(&stream, N, &vec![1.0f32; N])?;
    let (mut sums, mut workspace) = ([stream.buffer_zeroed::<f32>(1)?, stream.buffer_zeroed(1)?], Workspace::new());
    let [first, second] = &mut sums;
    let sum = tensor.sum().tensor()?;
    let mut calls: [&mut dyn FnMut() -> Result<()>; 3] = [
        &mut || reduce(Run::on(&stream).with(&mut workspace), &x, functor::Sum, &mut *first),
        &mut || reduce(&stream, &x, functor::Sum, &mut *second),
        &mut || tensor.sum().assign_to(&sum),
    ];
    let mut times = [const { Vec::new() }; 3];
    for round in 0..ROUNDS + 4 {
        for which in (0..3).map(|at| (at + round) % 3) {
            let begin = Instant::now();
            (0..CALLS).try_for_each(|_| calls[which]())?;
            let time = begin.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS);
            stream.synchronize()?;
            if round >= 4 {
                times[which].push(time);
            }
        }
    }
    for sum in [&sums[0].to_vec()?, &sums[1].to_vec()?, &sum.to_vec()?] {
        assert_eq!(*sum, [N as f32]);
    }
    let [kept, alone, of_tensor] = times.map(median);
    report.row(
        "reduction of 2^16, host time",
        &[("µs", alone), ("µs with a workspace", kept), ("µs of a tensor", of_tensor)],
    );
    Ok(())
}

/// Small launches one by one against the same launches as a graph, host time each.
fn graph(device: &Device, report: &mut Report) -> Result<()> {
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
    Ok(())
}
