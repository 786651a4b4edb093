//! Tests copies with pinned memory that the host does not wait for.

use kernel_primitives::{Error, Result};

use crate::support::{stream, streams, values};

#[test]
fn what_is_uploaded_comes_back() -> Result<()> {
    for stream in streams()? {
        let (device, other) = (stream.device(), stream.device().stream()?);
        for len in [0, 1, 1000, 100_000] {
            let x = values::<u32>(len, len as u64);
            let mut host = device.pinned::<u32>(len)?;
            host.copy_from_slice(&x);
            let mut buffer = stream.buffer_uninit::<u32>(len)?;
            let upload = buffer.copy_from_async(&stream, host)?;
            // A copy on another stream comes after it. So does a copy that waits.
            let download = buffer.copy_to_async(&other, device.pinned(len)?)?;
            assert_eq!(buffer.to_vec()?, x);
            assert_eq!(*upload.wait()?, *x);
            assert_eq!(*download.wait()?, *x);
        }
    }
    Ok(())
}

#[test]
fn a_part_of_a_buffer_is_transferred_and_a_dropped_transfer_is_made() -> Result<()> {
    let stream = stream()?;
    let device = stream.device();
    let x = values::<f64>(300, 3);
    let mut buffer = stream.buffer_from(&x)?;
    let mut host = device.pinned::<f64>(100)?;
    host.fill(0.5);
    drop(buffer.slice_mut(100..200)?.copy_from_async(&stream, host)?);
    let tail = buffer.slice(150..250)?.copy_to_async(&stream, device.pinned(100)?)?.wait()?;
    assert_eq!((&tail[..50], &tail[50..]), (&[0.5; 50][..], &x[200..250]));
    assert_eq!(buffer.to_vec()?[..100], x[..100]);
    Ok(())
}

#[test]
fn transfers_that_cannot_begin_are_errors() -> Result<()> {
    let stream = stream()?;
    let device = stream.device();
    let mut buffer = stream.buffer_zeroed::<u32>(10)?;
    let short = buffer.copy_from_async(&stream, device.pinned(9)?).err().expect("9 and 10").to_string();
    assert_eq!(short, "kernel `copy_from_async`: the slice has 10 elements, but the host's has 9");
    let pinned = device.pinned(10)?;
    let captured = stream.capture(|stream| buffer.copy_to_async(stream, pinned).map(drop));
    assert!(matches!(captured, Err(Error::Capture { call: "`copy_to_async`", .. })));
    Ok(())
}

/// A buffer of `bool` may hold bytes that are not a `bool`, for example from a kernel of others.
#[test]
fn bytes_that_are_no_elements_are_not_given_to_the_host() -> Result<()> {
    let stream = stream()?;
    let device = stream.device();
    let mut host = device.pinned::<bool>(3)?;
    host[1] = true;
    let mut buffer = stream.buffer_zeroed::<bool>(3)?;
    buffer.copy_from_async(&stream, host)?.wait()?;
    assert_eq!(*buffer.copy_to_async(&stream, device.pinned(3)?)?.wait()?, [false, true, false]);
    Ok(())
}
