//! Tests contexts, streams and memory that others have made.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

use kernel_primitives::algorithms::{Run, Workspace, inclusive_scan, reduce};
use kernel_primitives::functor::{Add, Sum};
use kernel_primitives::interop::lend;
use kernel_primitives::simt::{Fault, FaultKind};
use kernel_primitives::{Buffer, Device, Diagnosis, Error, Result, Stream};

use crate::driver::Driver;
use crate::kernels::faults::author_fault;
use crate::kernels::graph::affine;
use crate::support::{stream, values};

/// Returns the device that the environment names, if it is a GPU, and the driver. The device's context is current.
fn gpu() -> Result<Option<(Device, Driver)>> {
    let device = Device::auto()?;
    if !device.is_gpu() {
        println!("nothing was adopted: {}", device.reason());
        return Ok(None);
    }
    let driver = Driver::open();
    // SAFETY: this is the device's context.
    unsafe { driver.cuCtxSetCurrent(device.as_raw_context()) };
    Ok(Some((device, driver)))
}

/// Makes a stream of the driver in the current context.
fn raw_stream(driver: &Driver) -> *mut c_void {
    let mut stream = null_mut();
    // SAFETY: the pointer is valid for the call.
    unsafe { driver.cuStreamCreate(&raw mut stream, 1) };
    stream
}

fn refused<T>(result: Result<T>, part: &str) {
    match result {
        Err(error @ Error::Adoption { .. }) => assert!(error.to_string().contains(part), "`{part}`: {error}"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("adopted, in spite of `{part}`"),
    }
}

#[test]
fn the_emulator_adopts_nothing_and_says_what_to_do() -> Result<()> {
    let device = Device::emulator();
    let stream = device.stream()?;
    let mut bytes = [0u32; 4];
    // SAFETY: nothing is adopted.
    unsafe {
        refused(Stream::from_raw(&device, null_mut()), "`Device::stream`");
        refused(Stream::from_raw_borrowed(&device, null_mut()), "`Device::stream`");
        let address = (&raw mut bytes).addr() as u64;
        refused(Buffer::<u32>::from_raw(&stream, address, 4), "`Stream::buffer_from`");
        refused(Buffer::<u32>::from_raw_borrowed(&stream, address, 4), "`Stream::buffer_from`");
    }
    assert!(device.as_raw_context().is_null() && stream.as_raw().is_null());
    Ok(())
}

#[test]
fn what_is_lent_comes_back_after_its_last_use() -> Result<()> {
    let stream = Device::emulator().stream()?;
    let mut values = vec![1u32, 2, 3];
    let (address, len) = (values.as_mut_ptr().expose_provenance() as u64, values.len());
    let (owner, loan) = lend(values);
    // SAFETY: the memory is that of the vector, which goes with the buffer and which nobody else has.
    let mut data = unsafe { Buffer::<u32>::from_raw_owned(&stream, address, len, owner)? };
    let graph = stream.capture(|stream| affine::launch(stream, (1, 32), 2, 1, &mut data))?;
    let loan = loan.take_back().expect_err("the buffer has it");
    drop(data);
    let loan = loan.take_back().expect_err("the graph has it");
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    drop(graph);
    assert_eq!(loan.take_back().expect("it is over"), [7, 11, 15]);
    // Without the claim, it is dropped.
    let value = Arc::new(5);
    let (owner, loan) = lend(Arc::clone(&value));
    drop(loan);
    assert_eq!(Arc::strong_count(&value), 2);
    drop(owner);
    assert_eq!(Arc::strong_count(&value), 1);
    Ok(())
}

#[test]
fn no_context_is_no_device() {
    // SAFETY: the function checks for null first.
    match unsafe { Device::from_raw_context(null_mut()) } {
        Err(Error::Adoption { reason, .. }) => assert!(reason.contains("null"), "{reason}"),
        Err(Error::NoGpu { .. }) => assert_eq!(Device::gpu_count(), 0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_capture_adopts_no_memory() -> Result<()> {
    let part = if Device::auto()?.is_gpu() { "on another" } else { "captures" };
    stream()?.capture(|s| {
        // SAFETY: nothing is adopted.
        refused(unsafe { Buffer::<u32>::from_raw(s, 256, 1) }, part);
        Ok(())
    })?;
    Ok(())
}

#[test]
fn sanitize_the_primary_context_is_the_device_itself() -> Result<()> {
    let Some((device, _)) = gpu()? else { return Ok(()) };
    // SAFETY: the context is alive.
    let same = unsafe { Device::from_raw_context(device.as_raw_context())? };
    assert_eq!((same.as_raw_context(), same.properties()), (device.as_raw_context(), device.properties()));
    // Data of one device can be used on the other.
    let mut data = device.stream()?.buffer_from(&[1u32, 2, 3])?;
    affine::launch(&same.stream()?, (1, 32), 2, 1, &mut data)?;
    drop(device);
    assert_eq!(data.to_vec()?, [3, 5, 7]);
    Ok(())
}

#[test]
fn another_context_is_a_device_and_stays_when_that_goes() -> Result<()> {
    let Some((primary, driver)) = gpu()? else { return Ok(()) };
    let (mut context, mut ordinal) = (null_mut(), 0);
    // SAFETY: the pointers are valid for the calls.
    unsafe {
        driver.cuDeviceGet(&raw mut ordinal, 0);
        driver.cuCtxCreate_v2(&raw mut context, 0, ordinal);
    }
    {
        // SAFETY: the context is destroyed below, after the end of this block.
        let [one, same] = unsafe { [Device::from_raw_context(context)?, Device::from_raw_context(context)?] };
        assert!(one.reason().contains("adopted") && one.as_raw_context() == context);
        let (stream, other) = (one.stream()?, same.stream()?);
        let mut data = stream.buffer_from(&[1u32, 2, 3])?;
        affine::launch(&other, (1, 32), 2, 1, &mut data)?;
        assert_eq!(data.to_vec()?, [3, 5, 7]);
        let graph = stream.capture(|s| affine::launch(s, (1, 32), 2, 1, &mut data))?;
        graph.launch(&other)?;
        assert_eq!(data.to_vec()?, [7, 11, 15]);

        // This is another device than the GPU's own device.
        let elsewhere = primary.stream()?;
        let error = affine::launch(&elsewhere, (1, 32), 2, 1, &mut data).unwrap_err();
        assert!(matches!(error, Error::WrongDevice { .. }), "{error}");
        // SAFETY: the stream is alive.
        refused(unsafe { Stream::from_raw_borrowed(&one, elsewhere.as_raw()) }, "another context");

        let early = author_fault::launch(&stream, (3, 32), 5).err();
        check_code(early.or_else(|| stream.synchronize().err()), 5);
        other.synchronize()?;
    }
    // SAFETY: the context is alive, and nothing of it is used after this.
    unsafe {
        driver.cuCtxSetCurrent(context);
        let mut address = 0;
        driver.cuMemAlloc_v2(&raw mut address, 256);
        driver.cuMemFree_v2(address);
        driver.cuCtxDestroy_v2(context);
    }
    Ok(())
}

fn check_code(error: Option<Error>, code: u64) {
    let Some(Error::Fault(fault)) = error else { panic!("{error:?}") };
    assert_eq!(fault.kernel, "suite::kernels::faults::author_fault");
    assert_eq!(fault.diagnosis, Diagnosis::Raised(Fault { kind: FaultKind::User, args: [code, 0] }));
}

#[test]
fn sanitize_a_stream_of_others_orders_their_work_and_ours_and_has_its_faults() -> Result<()> {
    let Some((device, driver)) = gpu()? else { return Ok(()) };
    let raw = raw_stream(&driver);
    let mut address = 0;
    // SAFETY: the pointer is valid for the call.
    unsafe { driver.cuMemAlloc_v2(&raw mut address, 4 * 1000) };
    {
        // SAFETY: the stream and the memory are freed below, after these objects.
        let (stream, mut data) = unsafe {
            let stream = Stream::from_raw_borrowed(&device, raw)?;
            let data = Buffer::<u32>::from_raw_borrowed(&stream, address, 1000)?;
            (stream, data)
        };
        assert_eq!((stream.as_raw(), data.address(), data.len()), (raw, address, 1000));
        for round in 0..20 {
            // SAFETY: this is the buffer's memory, and the call is in the order of the buffer's stream.
            unsafe { driver.cuMemsetD32Async(address, round, 1000, raw) };
            affine::launch(&stream, (4, 256), 3, 1, &mut data)?;
            if round % 5 == 0 {
                assert_eq!(data.to_vec()?, vec![3 * round + 1; 1000]);
            }
        }
        // Another stream waits for this one, because of the buffer.
        let other = device.stream()?;
        affine::launch(&other, (4, 256), 1, 1, &mut data)?;
        assert_eq!(data.to_vec()?, vec![3 * 19 + 2; 1000]);

        author_fault::launch(&stream, (3, 32), 6)?;
        other.synchronize()?;
        check_code(stream.synchronize().err(), 6);
        affine::launch(&stream, (4, 256), 0, 8, &mut data)?;
    }
    let mut host = [0u32; 1000];
    // SAFETY: both still exist, and nothing uses them.
    unsafe {
        driver.cuCtxSetCurrent(device.as_raw_context());
        driver.cuStreamSynchronize(raw);
        driver.cuMemcpyDtoH_v2(host.as_mut_ptr().cast(), address, 4 * 1000);
        driver.cuMemFree_v2(address);
        driver.cuStreamDestroy_v2(raw);
    }
    assert_eq!(host, [8; 1000]);
    Ok(())
}

#[test]
fn the_legacy_default_stream_can_be_borrowed() -> Result<()> {
    let Some((device, _)) = gpu()? else { return Ok(()) };
    // SAFETY: this stream always exists.
    let stream = unsafe { Stream::from_raw_borrowed(&device, null_mut())? };
    let mut data = stream.buffer_from(&[1u32, 2, 3])?;
    affine::launch(&stream, (1, 32), 2, 1, &mut data)?;
    assert_eq!(data.to_vec()?, [3, 5, 7]);
    Ok(())
}

#[test]
fn what_is_adopted_as_ones_own_is_freed() -> Result<()> {
    let Some((device, driver)) = gpu()? else { return Ok(()) };
    let total = device.properties().memory_bytes.expect("a GPU has memory");
    let bytes = total / 16;
    for round in 0..40u32 {
        let raw = raw_stream(&driver);
        // SAFETY: the stream and the memory are the driver's, and nobody else uses them after this.
        let (stream, mut data) = unsafe {
            let stream = Stream::from_raw(&device, raw)?;
            let mut address = 0;
            driver.cuMemAllocAsync(&raw mut address, bytes, raw);
            driver.cuMemsetD32Async(address, round, 100, raw);
            (stream.clone(), Buffer::<u32>::from_raw(&stream, address, 100)?)
        };
        affine::launch(&stream, (1, 128), 1, 1, &mut data)?;
        assert_eq!(data.to_vec()?, [round + 1; 100]);
    }
    Ok(())
}

#[test]
fn addresses_that_make_no_sense_are_errors() -> Result<()> {
    let Some((device, _)) = gpu()? else { return Ok(()) };
    let stream = device.stream()?;
    let buffer = stream.buffer_zeroed::<u32>(4)?;
    // SAFETY: nothing is adopted.
    unsafe {
        refused(Buffer::<u32>::from_raw_borrowed(&stream, 0, 4), "null");
        refused(Buffer::<u32>::from_raw_borrowed(&stream, buffer.address() + 2, 1), "not aligned to 4 bytes");
        refused(
            Buffer::<u64>::from_raw_borrowed(&stream, buffer.address(), usize::MAX / 4),
            "more than can be addressed",
        );
    }
    Ok(())
}

#[test]
fn settings_of_the_default_pool_are_left_to_others() -> Result<()> {
    let Some((device, driver)) = gpu()? else { return Ok(()) };
    assert_eq!(device.stream()?.buffer_from(&[1u32; 1000])?.to_vec()?, [1; 1000]);
    let (mut pool, mut threshold) = (null_mut(), u64::MAX);
    // SAFETY: the pointers are valid for the calls; the attribute is the release threshold.
    unsafe {
        driver.cuDeviceGetDefaultMemPool(&raw mut pool, 0);
        driver.cuMemPoolGetAttribute(pool, 4, (&raw mut threshold).cast());
    }
    assert_eq!(threshold, 0, "the driver's default");
    Ok(())
}

fn not_captured<T>(result: Result<T>, part: &str) {
    match result {
        Err(error @ Error::Capture { .. }) => assert!(error.to_string().contains(part), "`{part}`: {error}"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("captured: `{part}`"),
    }
}

#[test]
fn what_others_capture_is_right_at_each_launch() -> Result<()> {
    const LEN: usize = 30_000;
    let Some((device, driver)) = gpu()? else { return Ok(()) };
    let elsewhere = || -> Result<()> {
        let stream = device.stream()?;
        let mut data = stream.buffer_from(&[1u32; 100])?;
        affine::launch(&stream, (1, 128), 2, 1, &mut data)?;
        stream.capture(|s| affine::launch(s, (1, 128), 2, 1, &mut data))?.launch(&stream)?;
        stream.record()?.synchronize()?;
        assert_eq!(data.to_vec()?, [7; 100]);
        assert_eq!(device.pinned::<u64>(1000)?.len(), 1000);
        Ok(())
    };
    // A stream of others and a stream of the library capture in the strictest mode. In this mode, no thread may make
    // calls that are unsafe during a capture.
    let raw = raw_stream(&driver);
    // SAFETY: the stream is destroyed below, after this.
    let adopted = unsafe { Stream::from_raw_borrowed(&device, raw)? };
    for stream in [adopted, device.stream()?] {
        let raw = stream.as_raw();
        let other = device.stream()?;
        let mut x = other.buffer_zeroed::<u32>(LEN)?;
        let mut sums = stream.buffer_zeroed::<u32>(LEN)?;
        let mut total = stream.buffer_zeroed::<u32>(1)?;
        let mut workspace = Workspace::with_capacity(&stream, 1 << 20)?;
        let dropped = stream.buffer_from(&[5u32; 1000])?;
        let event = other.record()?;
        // A workspace numbers its launches. These numbers are not captured, and they continue.
        for _ in 0..3 {
            inclusive_scan(Run::on(&stream).with(&mut workspace), &x, Add, &mut sums)?;
        }
        let (mut graph, mut launched) = (null_mut(), null_mut());
        // SAFETY: the stream is alive.
        unsafe { driver.cuStreamBeginCapture_v2(raw, 0) };
        assert!(stream.is_capturing() && !other.is_capturing());
        inclusive_scan(Run::on(&stream).with(&mut workspace), &x, Add, &mut sums)?;
        reduce(Run::on(&stream).with(&mut workspace), &sums, Sum, &mut total)?;
        affine::launch(&stream, (1, 32), 1, 1, &mut total)?;
        not_captured(stream.buffer_uninit::<u32>(1), "an allocation");
        not_captured(stream.synchronize(), "`Stream::synchronize`");
        not_captured(stream.record().map(drop), "`Stream::record`");
        not_captured(stream.wait(&event), "`Stream::wait`");
        not_captured(sums.to_vec(), "`Buffer::copy_to`");
        not_captured(affine::launch(&other, (1, 32), 1, 1, &mut sums), "after its end");
        drop(dropped);
        elsewhere()?;
        std::thread::scope(|scope| scope.spawn(elsewhere).join().expect("no panic"))?;
        // SAFETY: the stream is captured; the pointers are valid for the calls. The driver fails if the capture is not
        // whole.
        unsafe {
            driver.cuCtxSetCurrent(device.as_raw_context());
            driver.cuStreamEndCapture(raw, &raw mut graph);
            driver.cuGraphInstantiate_v2(&raw mut launched, graph, null_mut(), null_mut(), 0);
        }
        assert!(!stream.is_capturing());
        for seed in 0..4 {
            let host = values::<u32>(LEN, seed);
            x.copy_from(&host)?;
            // SAFETY: the buffers are alive, and in the order of the stream.
            unsafe { driver.cuGraphLaunch(launched, raw) };
            let expected: Vec<u32> = host
                .iter()
                .scan(0u32, |sum, x| {
                    *sum = sum.wrapping_add(*x);
                    Some(*sum)
                })
                .collect();
            assert_eq!(sums.to_vec()?, expected);
            assert_eq!(total.to_vec()?, [expected.iter().fold(1, |sum: u32, x| sum.wrapping_add(*x))]);
            if seed == 1 {
                inclusive_scan(Run::on(&stream).with(&mut workspace), &x, Add, &mut sums)?;
            }
        }
        stream.synchronize()?;
        // SAFETY: both were made above, are destroyed once, and have finished.
        unsafe {
            driver.cuGraphExecDestroy(launched);
            driver.cuGraphDestroy(graph);
        }
    }
    // SAFETY: nothing uses it after this.
    unsafe { driver.cuStreamDestroy_v2(raw) };
    Ok(())
}
