//! After which of the driver's codes a context is lost, and which one of two: shown by a driver that returns them. Apart from
//! `fake_driver/`, because the process loses its contexts here.

#[allow(dead_code, reason = "each test binary uses a part")]
mod fake;

use fake::{Fake, fake};
use primitives_host::{Device, Devices, Error, Result, Stream};

/// Codes after which CUDA's documentation wants the process to end, and uncorrectable errors of memory and links; some are newer than
/// the bindings that the driver's names were first taken from.
const FATAL: [i32; 15] = [214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911];

/// Codes after which the context goes on, the neighbours of the others among them, and numbers that nobody has named.
const OTHERS: [i32; 16] = [1, 2, 201, 218, 219, 221, 222, 225, 701, 709, 720, 801, 809, 812, 999, 5000];

#[test]
fn the_drivers_own_number_tells_whether_the_context_is_lost() -> Result<()> {
    let (fake, _turn) = fake();
    for code in FATAL {
        let device = Device::gpu()?;
        let stream = device.stream()?;
        let mut x = stream.buffer_zeroed::<u32>(10)?;
        fake.set("fake_next_fill", code);
        let first = x.as_mut_slice().set_zero(&stream);
        // Every call says so from then on.
        for result in [first, x.as_mut_slice().set_zero(&stream), stream.synchronize(), x.to_vec().map(drop)] {
            match result {
                Err(error @ Error::ContextLost { .. }) => assert_eq!(error.driver_code(), Some(code as u32), "{error}"),
                other => panic!("{code}: {other:?}"),
            }
        }
    }
    let device = Device::gpu()?;
    let stream = device.stream()?;
    let mut x = stream.buffer_zeroed::<u32>(10)?;
    for code in OTHERS {
        fake.set("fake_next_fill", code);
        match x.as_mut_slice().set_zero(&stream) {
            Err(error @ Error::Driver { .. }) => assert_eq!(error.driver_code(), Some(code as u32), "{error}"),
            other => panic!("{code}: {other:?}"),
        }
        x.as_mut_slice().set_zero(&stream)?;
    }
    fake.no_mistakes();
    Ok(())
}

/// Streams on two GPUs, with the number of devices as it was.
fn streams(fake: &Fake) -> Result<[Stream; 2]> {
    fake.set("fake_devices", 2);
    let devices = Devices::all();
    fake.set("fake_devices", 1);
    Ok(devices?.streams()?.try_into().expect("two"))
}

#[track_caller]
fn assert_lost(result: Result<()>, number: i32) {
    match result {
        Err(Error::ContextLost { device, .. }) => assert!(device.contains(&format!("(GPU {number}, ")), "{device}"),
        other => panic!("GPU {number} is lost: {other:?}"),
    }
}

#[test]
fn the_loss_of_one_gpu_is_not_that_of_another() -> Result<()> {
    let (fake, _turn) = fake();
    let [one, two] = streams(fake)?;
    let (mut x, mut y) = (one.buffer_zeroed::<u32>(4)?, two.buffer_zeroed::<u32>(4)?);
    // Read by the one that will be lost.
    x.as_mut_slice().copy_from_peer(&one, y.as_slice())?;
    fake.set("fake_next_fill", 700);
    assert_lost(x.as_mut_slice().set_zero(&one), 0);
    assert_lost(y.as_mut_slice().copy_from_peer(&two, x.as_slice()), 0);
    y.as_mut_slice().set_zero(&two)?;
    assert_eq!(y.to_vec()?, [0; 4]);
    fake.no_mistakes();
    Ok(())
}

#[test]
fn a_copy_between_gpus_that_fails_is_the_loss_of_the_one_that_the_driver_refuses() -> Result<()> {
    let (fake, _turn) = fake();
    for lost in [0, 1] {
        let [one, two] = streams(fake)?;
        let (mut x, mut y) = (one.buffer_zeroed::<u32>(4)?, two.buffer_zeroed::<u32>(4)?);
        fake.set("fake_refused", lost);
        fake.set("fake_next_copy", 719);
        assert_lost(y.as_mut_slice().copy_from_peer(&two, x.as_slice()), lost);
        fake.set("fake_refused", -1);
        // All that the other one has goes on.
        let (stream, buffer) = if lost == 0 { (&two, &mut y) } else { (&one, &mut x) };
        buffer.as_mut_slice().set_zero(stream)?;
        assert_eq!(buffer.to_vec()?, [0; 4]);
    }
    fake.no_mistakes();
    Ok(())
}

#[test]
fn a_wait_for_an_event_of_a_lost_gpu_is_the_loss_of_that_gpu() -> Result<()> {
    let (fake, _turn) = fake();
    let [one, two] = streams(fake)?;
    let event = one.record()?;
    fake.set("fake_refused", 0);
    fake.set("fake_next_wait", 700);
    assert_lost(two.wait(&event), 0);
    fake.set("fake_refused", -1);
    // Nothing is asked of the driver any more.
    assert_lost(two.wait(&event), 0);
    let mut y = two.buffer_zeroed::<u32>(4)?;
    y.as_mut_slice().set_zero(&two)?;
    assert_eq!(y.to_vec()?, [0; 4]);
    fake.no_mistakes();
    Ok(())
}
