//! Copies that the host does not wait for.

use std::ffi::c_int;

use primitives_host::{Device, Error, Result};

use crate::fake::fake;

/// A copy that the host does not wait for is in the order of the streams, and keeps its memory until it is over.
#[test]
fn transfers_are_in_the_streams_order_and_keep_their_memory() -> Result<()> {
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    let (one, other) = (device.stream()?, device.stream()?);
    let mut buffer = one.buffer_zeroed::<u32>(1000)?;
    let mut host = device.pinned::<u32>(1000)?;
    host.fill(7);
    let before = device.counters();
    fake.log();
    let upload = buffer.copy_from_async(&one, host)?;
    let log = fake.log();
    let mark = format!("s{}", fake.number(&one));
    assert!(log.iter().any(|line| line == &format!("upload {mark}")), "{log:?}");
    assert!(!log.iter().any(|line| line.starts_with("synchronize") || line == "free host"), "{log:?}");
    // Another stream waits for it.
    let download = buffer.copy_to_async(&other, device.pinned(1000)?)?;
    let log = fake.log();
    let waited = log.iter().position(|line| line.starts_with(&format!("wait s{} ", fake.number(&other))));
    let copied = log.iter().position(|line| line == &format!("download s{}", fake.number(&other)));
    assert!(waited.is_some() && waited < copied, "{log:?}");
    upload.wait()?;
    assert_eq!(*download.wait()?, [7; 1000]);
    let cost = device.counters().since(before);
    assert_eq!((cost.host_to_device_bytes, cost.device_to_host_bytes, cost.synchronizations), (4000, 4000, 2));
    Ok(())
}

#[test]
fn a_transfer_that_is_dropped_waits_and_then_frees_its_memory() -> Result<()> {
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    let stream = device.stream()?;
    let mut buffer = stream.buffer_zeroed::<u32>(1000)?;
    let upload = buffer.copy_from_async(&stream, device.pinned(1000)?)?;
    fake.log();
    drop(upload);
    let log = fake.log();
    let waited = log.iter().position(|line| line.starts_with("await e"));
    let freed = log.iter().position(|line| line == "free host");
    assert!(waited.is_some() && waited < freed, "{log:?}");
    // Nothing of a transfer is left behind where it cannot begin.
    let others = device.pinned::<u32>(999)?;
    assert!(matches!(buffer.copy_from_async(&stream, others), Err(Error::LengthMismatch { .. })));
    assert!(fake.log().contains(&"free host".to_owned()));
    fake.capture(stream.as_raw(), true);
    let captured = buffer.copy_from_async(&stream, device.pinned(1000)?);
    fake.capture(stream.as_raw(), false);
    assert!(matches!(captured, Err(Error::Capture { call: "`copy_from_async`", .. })));
    assert_eq!(fake.call::<c_int>("fake_mistakes", None), 0);
    Ok(())
}

/// What the driver does not take is not waited for, and the stream's fault is left to who asks for it.
#[test]
fn a_transfer_that_the_driver_refuses_gives_its_memory_back_at_once() -> Result<()> {
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    let stream = device.stream()?;
    let mut buffer = stream.buffer_zeroed::<u32>(1000)?;
    let host = device.pinned(1000)?;
    fake.set("fake_next_copy", 1);
    fake.log();
    let refused = buffer.copy_from_async(&stream, host);
    assert!(matches!(refused, Err(Error::Driver { call: "cuMemcpyHtoDAsync_v2", .. })));
    assert_eq!(fake.log(), ["free host"]);
    fake.no_mistakes();
    Ok(())
}

#[test]
fn pinned_memory_of_the_emulator_is_not_for_a_gpu() -> Result<()> {
    let (fake, _turn) = fake();
    let stream = Device::gpu()?.stream()?;
    let mut buffer = stream.buffer_zeroed::<u32>(1000)?;
    for refused in [
        buffer.copy_from_async(&stream, Device::emulator().pinned(1000)?),
        buffer.copy_to_async(&stream, Device::emulator().pinned(1000)?),
    ] {
        let error = refused.err().expect("ordinary memory");
        assert!(matches!(&error, Error::WrongDevice { argument, .. } if argument == "host"), "{error}");
        let text = error.to_string();
        assert!(text.starts_with("kernel `copy_") && text.contains("the emulator"), "{text}");
    }
    fake.no_mistakes();
    Ok(())
}
