//! Memory of others with an owner: that it goes after the work on it, shown by a driver that watches.

#[allow(dead_code, reason = "each test binary uses a part")]
mod fake;

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fake::fake;
use primitives_host::storage::Storage;
use primitives_host::{Buffer, Device, Error, Result, Stream};

/// Some memory, which notes when it is dropped.
struct Owner(Vec<u32>, Arc<AtomicUsize>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

fn adopt(stream: &Stream, count: &Arc<AtomicUsize>) -> Result<Buffer<u32>> {
    let mut owner = Owner(vec![0; 10], count.clone());
    let address = owner.0.as_mut_ptr().expose_provenance() as u64;
    // SAFETY: the memory is the vector's, which goes with the buffer; the driver takes it for the device's.
    unsafe { Buffer::from_raw_owned(stream, address, 10, owner) }
}

#[test]
fn an_owner_goes_after_the_work_on_all_streams() -> Result<()> {
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    assert_eq!(device.ordinal(), Some(0));
    let (one, two) = (device.stream()?, device.stream()?);
    let count = Arc::new(AtomicUsize::new(0));
    let x = adopt(&one, &count)?;
    let mut y = two.buffer_uninit::<u32>(10)?;
    fake.log();
    y.as_mut_slice().copy_from_device(&two, x.as_slice())?;
    assert!(fake.log().iter().any(|line| line.starts_with("wait")), "the second stream waits for the first");
    drop(x);
    let log = fake.log();
    let find = |begin: &str| log.iter().rposition(|line| line.starts_with(begin));
    // The first stream waits for the second, and the host for the first.
    assert!(find("wait").is_some() && find("wait") < find("synchronize"), "{log:#?}");
    assert!(!log.iter().any(|line| line.starts_with("free")), "the memory is not the library's: {log:#?}");
    assert_eq!(count.load(Ordering::SeqCst), 1);
    fake.no_mistakes();
    Ok(())
}

#[test]
fn an_owner_stays_while_others_capture_the_stream() -> Result<()> {
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    let stream = device.stream()?;
    let count = Arc::new(AtomicUsize::new(0));
    let x = adopt(&stream, &count)?;
    fake.capture(stream.as_raw(), true);
    drop(x);
    assert_eq!(count.load(Ordering::SeqCst), 0);
    fake.capture(stream.as_raw(), false);
    drop(device.stream()?.buffer_uninit::<u32>(1)?);
    assert_eq!(count.load(Ordering::SeqCst), 1, "an allocation frees what could not be");
    fake.no_mistakes();
    Ok(())
}

#[test]
fn a_buffer_that_is_dropped_frees_what_could_not_be() -> Result<()> {
    let (fake, _turn) = fake();
    let stream = Device::gpu()?.stream()?;
    let count = Arc::new(AtomicUsize::new(0));
    let (x, last) = (adopt(&stream, &count)?, stream.buffer_uninit::<u32>(10)?);
    fake.capture(stream.as_raw(), true);
    drop(x);
    fake.capture(stream.as_raw(), false);
    drop(last);
    assert_eq!(count.load(Ordering::SeqCst), 1);
    fake.no_mistakes();
    Ok(())
}

#[test]
fn a_device_goes_although_buffers_were_dropped_in_a_capture() -> Result<()> {
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    let stream = device.stream()?;
    let count = Arc::new(AtomicUsize::new(0));
    let (x, own) = (adopt(&stream, &count)?, stream.buffer_uninit::<u32>(10)?);
    fake.capture(stream.as_raw(), true);
    drop((x, own));
    fake.capture(stream.as_raw(), false);
    drop((stream, device));
    assert_eq!(count.load(Ordering::SeqCst), 1);
    assert_eq!(fake.log().last().map(String::as_str), Some("release"));
    fake.no_mistakes();
    Ok(())
}

/// Adopts a stream of others.
fn adopt_stream(raw: *mut c_void, count: &Arc<AtomicUsize>) -> Result<Stream> {
    let owner = Owner(Vec::new(), count.clone());
    // SAFETY: the driver keeps its streams; each is adopted once.
    unsafe { Stream::from_raw_owned(&Device::gpu()?, raw, owner) }
}

#[test]
fn the_owner_of_a_stream_goes_after_its_buffers_and_their_work() -> Result<()> {
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    let count = Arc::new(AtomicUsize::new(0));
    let stream = adopt_stream(fake.raw_stream(), &count)?;
    let x = stream.buffer_zeroed::<u32>(10)?;
    drop(stream);
    assert_eq!(count.load(Ordering::SeqCst), 0, "the buffer needs the stream");
    fake.log();
    drop(x);
    let log = fake.log();
    assert!(log.last().is_some_and(|line| line.starts_with("synchronize")), "{log:#?}");
    assert_eq!(count.load(Ordering::SeqCst), 1);

    assert!(adopt_stream(null_mut(), &count)?.as_raw().is_null(), "the legacy default stream");
    assert_eq!(count.load(Ordering::SeqCst), 2);
    let owner = Owner(Vec::new(), count.clone());
    // SAFETY: it is refused.
    let refused = unsafe { Stream::from_raw_owned(&Device::emulator(), null_mut(), owner) };
    assert!(matches!(refused, Err(Error::Adoption { .. })));
    assert_eq!(count.load(Ordering::SeqCst), 3, "with an error, at once");
    drop(device);
    fake.no_mistakes();
    Ok(())
}

#[test]
fn the_owner_of_a_stream_that_others_capture_stays() -> Result<()> {
    let (fake, _turn) = fake();
    let _device = Device::gpu()?;
    let count = Arc::new(AtomicUsize::new(0));
    let raw = fake.raw_stream();
    let stream = adopt_stream(raw, &count)?;
    fake.capture(raw, true);
    drop(stream);
    fake.capture(raw, false);
    assert_eq!(count.load(Ordering::SeqCst), 0);
    fake.no_mistakes();
    Ok(())
}

#[test]
fn memory_that_was_lent_is_freed_in_the_order_of_the_other_side() -> Result<()> {
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    let (own, others) = (device.stream()?, device.stream()?);
    let mut x = own.buffer_uninit::<u32>(10)?;
    x.as_mut_slice().set_zero(&own)?;
    let storage = Storage::of(x);
    fake.log();
    storage.lend("a test", &others, true)?;
    let log = fake.log();
    let waits = |log: &[String]| log.iter().filter(|line| line.starts_with("wait")).count();
    assert_eq!(waits(&log), 1, "the other side waits for the work here: {log:#?}");
    storage.use_on("a test", &others)?;
    drop(storage);
    let log = fake.log();
    let freed = log.iter().find(|line| line.starts_with("free")).expect("it is freed");
    assert!(*freed == format!("free s{}", fake.number(&others)), "on the stream of the other side: {log:#?}");
    assert!(!log.iter().any(|line| line.starts_with("synchronize")), "nobody waits: {log:#?}");

    let emulator = Device::emulator().stream()?;
    let storage = Storage::of(own.buffer_uninit::<u32>(10)?);
    assert!(matches!(storage.lend("a test", &emulator, true), Err(Error::WrongDevice { .. })));
    fake.capture(own.as_raw(), true);
    assert!(matches!(storage.lend("a test", &own, true), Err(Error::Capture { .. })));
    fake.capture(own.as_raw(), false);
    fake.no_mistakes();
    Ok(())
}
