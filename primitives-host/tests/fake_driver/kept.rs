//! The memory that a stream keeps for its kernels.

use std::ffi::c_int;
use std::thread;

use primitives_host::storage::{KeptFor, kept_memory, kept_words};
use primitives_host::{Device, Error, Result, Stream};

use crate::fake::{Fake, fake};

fn allocated(fake: &Fake) -> c_int {
    fake.call("fake_allocated", None)
}

#[test]
fn a_stream_keeps_memory_until_it_is_dropped() -> Result<()> {
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    let (one, two) = (device.stream()?, device.stream()?);
    let before = allocated(fake);
    fake.log();
    let first = kept_memory(&one, KeptFor::Results, 4096, 64)?.expect("nobody captures the stream");
    assert_eq!(fake.log(), ["allocate own".to_owned(), format!("fill s{}", fake.number(&one))]);
    // A second call asks the driver for nothing. A stream has memory of its own, and a clone of it has the same.
    let mut calls = Vec::new();
    for stream in [&one, &one.clone()] {
        calls.push((
            kept_memory(stream, KeptFor::Results, 4096, 64)?,
            kept_memory(stream, KeptFor::Results, 100, 64)?,
            kept_memory(stream, KeptFor::Results, 4097, 64)?,
        ));
    }
    assert_eq!(calls, [(Some(first), Some(first), None); 2]);
    assert_eq!(fake.log(), [""; 0]);
    assert_ne!(kept_memory(&two, KeptFor::Results, 4096, 64)?, Some(first));
    assert_eq!(allocated(fake) - before, 2);
    let number = fake.number(&one);
    fake.log();
    drop(one);
    assert!(fake.log().contains(&format!("free s{number}")));
    drop((two, device));
    assert_eq!(allocated(fake), before);
    fake.no_mistakes();
    Ok(())
}

#[test]
fn a_stream_that_captures_has_no_memory_for_kernels() -> Result<()> {
    let (fake, _turn) = fake();
    let stream = Device::gpu()?.stream()?;
    let before = allocated(fake);
    stream.capture(|captured| {
        assert_eq!(kept_memory(captured, KeptFor::Results, 4096, 64)?, None);
        assert!(kept_memory(&stream, KeptFor::Results, 4096, 64)?.is_some(), "this one does not capture");
        Ok(())
    })?;
    // Neither the memory that it has nor new memory.
    let raw = fake.raw_stream();
    // SAFETY: the driver keeps its streams; it is adopted once.
    let other = unsafe { Stream::from_raw_borrowed(stream.device(), raw)? };
    for stream in [&stream, &other] {
        fake.capture(stream.as_raw(), true);
        assert_eq!(kept_memory(stream, KeptFor::Results, 4096, 64)?, None);
        fake.capture(stream.as_raw(), false);
        assert!(kept_memory(stream, KeptFor::Results, 4096, 64)?.is_some());
    }
    assert_eq!(allocated(fake) - before, 2);
    // Memory of a stream that is dropped in a capture cannot be freed in its order, and stays in the pool.
    fake.capture(raw, true);
    drop(other);
    fake.capture(raw, false);
    assert_eq!(allocated(fake) - before, 2);
    fake.no_mistakes();
    Ok(())
}

#[test]
fn memory_that_cannot_be_allocated_or_cleared_is_not_kept() -> Result<()> {
    let (fake, _turn) = fake();
    let stream = Device::gpu()?.stream()?;
    let before = allocated(fake);
    fake.set("fake_full", 0);
    let full = kept_memory(&stream, KeptFor::Results, 4096, 64);
    fake.set("fake_full", -1);
    assert!(matches!(&full, Err(Error::Allocation { bytes: 4096, driver: Some(_), .. })), "{full:?}");
    fake.set("fake_next_fill", 1);
    let filled = kept_memory(&stream, KeptFor::Results, 4096, 64);
    assert!(matches!(&filled, Err(Error::Driver { call: "cuMemsetD8Async", .. })), "{filled:?}");
    assert_eq!(allocated(fake), before);
    assert!(kept_memory(&stream, KeptFor::Results, 4096, 64)?.is_some());
    fake.no_mistakes();
    Ok(())
}

#[test]
fn threads_that_ask_at_once_get_the_same_memory() -> Result<()> {
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    for _ in 0..20 {
        let stream = device.stream()?;
        let before = allocated(fake);
        let found = thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| kept_memory(&stream, KeptFor::Results, 4096, 64))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Result<Vec<_>>>()
        })?;
        assert!(found[0].is_some() && found.iter().all(|other| *other == found[0]), "{found:?}");
        assert_eq!(allocated(fake) - before, 1);
    }
    fake.no_mistakes();
    Ok(())
}

/// The address and the number of words for a launch.
fn found(stream: &Stream) -> Result<Option<(u64, u32)>> {
    Ok(kept_words(stream, 100)?.map(|kept| (kept.words.address(), kept.number)))
}

#[test]
fn words_are_cleared_once_and_numbered_for_each_launch() -> Result<()> {
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    let (one, two) = (device.stream()?, device.stream()?);
    let before = allocated(fake);
    fake.log();
    let first = kept_words(&one, 100)?.expect("nobody captures the stream");
    assert_eq!((first.words.len(), first.number), (100, 1));
    let stream = fake.number(&one);
    assert_eq!(fake.log(), ["allocate own".to_owned(), format!("fill s{stream}")]);
    let address = first.words.address();
    // Their launch is not enqueued yet.
    assert_eq!(found(&one)?, None);
    drop(first);
    // The words are not freed. Another purpose has other memory, and another stream other words.
    assert_eq!((found(&one)?, fake.log().is_empty()), (Some((address, 2)), true));
    assert_ne!(kept_memory(&one, KeptFor::Results, 800, 0)?, Some(address));
    assert!(found(&two)?.is_some_and(|(other, number)| other != address && number == 1));
    assert_eq!(allocated(fake) - before, 3);
    // Fewer words are a part of them.
    assert_eq!(kept_words(&one, 50)?.map(|kept| (kept.words.address(), kept.number)), Some((address, 3)));
    drop(one);
    assert_eq!(allocated(fake) - before, 1);
    fake.capture(two.as_raw(), true);
    assert_eq!(found(&two)?, None);
    fake.capture(two.as_raw(), false);
    two.capture(|captured| found(captured).map(|found| assert_eq!(found, None)))?;
    fake.no_mistakes();
    Ok(())
}
