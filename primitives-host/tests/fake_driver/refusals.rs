//! What the runtime refuses while others capture, and what the driver refuses.

use std::ptr::null_mut;

use primitives_gpu::view::LaunchBounds;
use primitives_host::__private::{KernelInfo, Launch};
use primitives_host::{Buffer, Device, Dims, DriverError, Error, Result, Stream};

use crate::fake::fake;
use crate::support::{IMAGES, KERNEL, OTHER, launch, refused, soon};

#[test]
fn what_others_capture_stays_whole() -> Result<()> {
    static LATE: KernelInfo = KernelInfo::new("late", "late", IMAGES, 0, 0, LaunchBounds::NONE);
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    let raw = fake.raw_stream();
    {
        let other = device.stream()?;
        let own = device.stream()?;
        // SAFETY: the stream is never destroyed.
        let adopted = unsafe { Stream::from_raw_borrowed(&device, raw)? };
        for stream in [&adopted, &own] {
            let handle = stream.as_raw();
            let (mut x, mut y) = (stream.buffer_from(&[1u32; 10])?, other.buffer_from(&[2u32; 10])?);
            let mut z = stream.buffer_zeroed::<u32>(10)?;
            let dropped = stream.buffer_from(&[3u32])?;
            let event = other.record()?;
            let graph = other.capture(|s| launch(s, &KERNEL, &[&y], &mut []))?;
            launch(&other, &KERNEL, &[], &mut [&mut y])?;
            launch(stream, &KERNEL, &[], &mut [&mut z])?;
            assert!(!stream.is_capturing());
            fake.log();
            fake.capture(handle, true);
            assert!(stream.is_capturing() && !other.is_capturing());

            // What a graph can hold: with a kernel that is loaded now, and a buffer of another stream.
            launch(stream, if std::ptr::eq(stream, &own) { &OTHER } else { &LATE }, &[&y], &mut [&mut x])?;
            x.as_mut_slice().copy_from_device(stream, y.as_slice())?;
            x.as_mut_slice().set_zero(stream)?;
            let number = fake.number(stream);
            let mut log = fake.log();
            log.retain(|line| line != "load");
            assert_eq!(log, ["launch", "copy", "fill"].map(|what| format!("{what} s{number}")));

            // What it cannot hold.
            refused(stream.buffer_uninit::<u32>(1), "an allocation");
            refused(stream.buffer_from(&[1u32]), "an allocation");
            refused(stream.synchronize(), "`Stream::synchronize`");
            refused(stream.record(), "`Stream::record`");
            refused(stream.wait(&event), "`Stream::wait`");
            refused(graph.launch(stream), "`Graph::launch`");
            refused(x.to_vec(), "`Buffer::copy_to`");
            refused(x.copy_from(&[1; 10]), "`Buffer::copy_from`");
            // SAFETY: nothing is adopted.
            let adopted = unsafe { Buffer::<u32>::from_raw_borrowed(stream, 256, 1) };
            assert!(matches!(adopted, Err(Error::Adoption { .. })));
            refused(launch(&other, &KERNEL, &[&z], &mut []), "after its end");
            assert_eq!(stream.buffer_uninit::<u32>(0)?.len(), 0);
            // In whose order could it be freed?
            drop(dropped);

            // What has nothing to do with it goes on, in this thread and in others.
            let elsewhere = || -> Result<()> {
                let third = device.stream()?;
                let mut w = third.buffer_from(&[1u32; 10])?;
                launch(&third, &KERNEL, &[], &mut [&mut w])?;
                third.capture(|s| launch(s, &KERNEL, &[], &mut [&mut w]))?.launch(&third)?;
                third.record()?.synchronize()?;
                third.synchronize()?;
                assert_eq!(w.to_vec()?.len(), 10);
                assert_eq!(device.pinned::<u32>(10)?.len(), 10);
                event.synchronize()
            };
            elsewhere()?;
            soon(elsewhere)?;
            fake.no_mistakes();
            let freed = format!("free s{number}");
            assert!(!fake.log().contains(&freed));

            fake.capture(handle, false);
            assert!(!stream.is_capturing());
            stream.synchronize()?;
            launch(&other, &KERNEL, &[&z], &mut [])?;
            assert_eq!(x.to_vec()?, [0; 10]);
            drop(other.buffer_uninit::<u32>(1)?);
            assert!(fake.log().contains(&freed), "it was freed after the capture");
        }
    }
    fake.no_mistakes();
    Ok(())
}

#[test]
fn codes_that_are_newer_than_the_bindings_keep_their_names() -> Result<()> {
    let (fake, _turn) = fake();
    let stream = Device::gpu()?.stream()?;
    for (code, name) in [(912, "CUDA_ERROR_INVALID_CLUSTER_SIZE"), (5000, "CUDA error 5000")] {
        fake.set("fake_next_fill", code);
        match stream.buffer_zeroed::<u32>(1) {
            Err(error @ Error::Driver { .. }) => {
                assert_eq!(error.driver_code(), Some(code as u32));
                assert_eq!(error.driver_error().map(DriverError::name), Some(name));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(stream.buffer_zeroed::<u32>(1)?.to_vec()?, [0]);
    Ok(())
}

/// Launches a kernel over items, in blocks of any size.
fn launch_items(stream: &Stream, info: &'static KernelInfo, shared_bytes: usize) -> Result<()> {
    let dims = Dims::for_items(1000).shared_bytes(shared_bytes);
    // SAFETY: the driver runs nothing, and the kernel has no parameters.
    unsafe { Launch::new(stream, info, dims).run(&mut [null_mut()], |_| unreachable!("on a GPU")) }
}

#[test]
fn shared_memory_that_leaves_no_room_for_the_kernels_own_is_named() -> Result<()> {
    static LARGE: KernelInfo = KernelInfo::new("large", "large", IMAGES, 0, 0, LaunchBounds::NONE);
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    let (stream, most) = (device.stream()?, device.properties().max_shared_bytes);
    fake.set("fake_own_shared", 16);
    let result = launch_items(&stream, &LARGE, most);
    fake.set("fake_own_shared", 0);
    match result {
        Err(Error::LaunchLimit { what, asked, limit, .. }) => {
            assert!(what.starts_with("shared memory in bytes"), "{what}");
            assert_eq!((asked, limit), (most as u64, most as u64 - 16));
        }
        other => panic!("{other:?}"),
    }
    launch_items(&stream, &LARGE, most - 16)
}

#[test]
fn a_kernel_of_few_threads_is_launched_over_items() -> Result<()> {
    static SMALL: KernelInfo = KernelInfo::new("small", "small", IMAGES, 0, 0, LaunchBounds::new(None, Some(16), None));
    let (fake, _turn) = fake();
    let stream = Device::gpu()?.stream()?;
    fake.set("fake_most_threads", 16);
    let result = launch_items(&stream, &SMALL, 0);
    fake.set("fake_most_threads", 1024);
    result
}

#[test]
fn a_driver_that_is_too_old_is_an_error_for_every_context() {
    let (fake, _turn) = fake();
    fake.set("fake_version", 11_010);
    // SAFETY: the context is there as long as the process.
    let adopted = unsafe { Device::from_raw_context(fake.call("fake_other_context", None)) };
    fake.set("fake_version", 12_080);
    assert!(matches!(adopted, Err(Error::DriverTooOld { .. })), "{adopted:?}");
}
