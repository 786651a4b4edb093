//! What is allocated and freed: how often, when and by whom.

use std::ffi::c_int;
use std::thread;

use primitives_host::{Device, Error, Result, Stream};

use crate::fake::fake;
use crate::support::{KERNEL, OTHER, launch};

#[test]
fn memory_is_from_a_pool_of_the_librarys_own() -> Result<()> {
    let (fake, _turn) = fake();
    let stream = Device::gpu()?.stream()?;
    let mut x = stream.buffer_zeroed::<u32>(10)?;
    stream.capture(|s| launch(s, &KERNEL, &[], &mut [&mut x]))?.launch(&stream)?;
    drop((x, stream));
    let log = fake.log();
    assert!(log.contains(&"allocate own".to_owned()) && !log.contains(&"allocate default".to_owned()), "{log:#?}");
    // The driver takes settings of another pool for a mistake.
    fake.no_mistakes();
    Ok(())
}

#[test]
fn a_device_goes_after_the_work_of_its_streams() -> Result<()> {
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    let (one, two) = (device.stream()?, device.stream()?);
    let mut x = one.buffer_uninit::<u32>(10)?;
    launch(&one, &KERNEL, &[], &mut [&mut x])?;
    launch(&two, &KERNEL, &[&x], &mut [])?;
    fake.call::<()>("fake_busy", Some(one.as_raw()));
    fake.call::<()>("fake_busy", Some(two.as_raw()));
    drop((one, x, device, two));
    assert_eq!(fake.log().last().map(String::as_str), Some("release"));
    // The driver takes it for a mistake to free, before that, what a kernel reports faults to.
    fake.no_mistakes();
    Ok(())
}

/// A fault that nobody has asked for goes with its stream, also if the kernel faults after the drop has begun.
#[test]
fn a_fault_of_a_stream_that_is_dropped_is_not_one_of_the_next_stream() -> Result<()> {
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    let raw = fake.raw_stream();
    // SAFETY: the driver keeps its streams; it is adopted once at a time.
    let adopt = || unsafe { Stream::from_raw_borrowed(&device, raw) };
    let first = adopt()?;
    fake.set("fake_next_fault", 1);
    launch(&first, &KERNEL, &[], &mut [])?;
    drop(first);
    let second = adopt()?;
    launch(&second, &KERNEL, &[], &mut [])?;
    second.synchronize()?;
    fake.no_mistakes();
    Ok(())
}

/// The copy of the data waits for the stream.
#[test]
fn a_buffer_from_data_of_the_host_returns_a_fault_and_a_buffer_without_data_does_not() -> Result<()> {
    let (fake, _turn) = fake();
    let stream = Device::gpu()?.stream()?;
    fake.set("fake_next_fault", 1);
    launch(&stream, &KERNEL, &[], &mut [])?;
    // The kernel ends, so that the fault is there for whoever looks.
    assert_eq!(fake.call::<c_int>("cuStreamSynchronize", Some(stream.as_raw())), 0);
    drop((stream.buffer_zeroed::<u32>(10)?, stream.buffer_uninit::<u32>(10)?));
    let found = stream.buffer_from(&[1u32]);
    assert!(matches!(found, Err(Error::Fault(_))), "{:?}", found.err());
    stream.synchronize()?;
    fake.no_mistakes();
    Ok(())
}

#[test]
fn buffers_of_nothing_need_no_driver() -> Result<()> {
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    let (stream, other) = (device.stream()?, device.stream()?);
    let mut kept = None;
    fake.log();
    stream.capture(|s| {
        let mut none = s.buffer_uninit::<u32>(0)?;
        assert_eq!((none.len(), s.buffer_zeroed::<u64>(0)?.to_vec()?.len()), (0, 0));
        let also = s.buffer_from::<u32>(&[])?;
        launch(s, &KERNEL, &[&also], &mut [&mut none])?;
        none.as_mut_slice().copy_from_device(s, also.as_slice())?;
        none.as_mut_slice().set_zero(s)?;
        kept = Some(none);
        Ok(())
    })?;
    let mut kept = kept.expect("the closure ran");
    launch(&other, &KERNEL, &[&kept], &mut [])?;
    launch(&stream, &KERNEL, &[], &mut [&mut kept])?;
    kept.copy_from(&[])?;
    assert_eq!(kept.to_vec()?, [0; 0]);
    drop((kept, device.pinned::<u8>(0)?));
    let log = fake.log();
    assert_eq!(log.iter().filter(|line| line.starts_with("allocate")).count(), 1, "that of the graph: {log:#?}");
    assert!(!log.iter().any(|line| line.starts_with("wait")), "{log:#?}");
    fake.no_mistakes();
    Ok(())
}

#[test]
fn pinned_memory_is_freed_once_and_by_its_owner() -> Result<()> {
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    fake.log();
    let mut pinned = device.pinned::<u32>(1000)?;
    pinned.fill(7);
    let buffer = device.stream()?.buffer_from(&pinned)?;
    buffer.copy_to(&mut pinned)?;
    assert_eq!(*pinned, [7; 1000]);
    assert!(!fake.log().contains(&"free host".to_owned()), "it is in use");
    drop(pinned);
    assert_eq!(fake.log(), ["free host"]);
    Ok(())
}

/// What threads make, use and drop in all orders is freed once, and no thread waits for ever.
#[test]
fn threads_use_and_drop_everything_in_all_orders() -> Result<()> {
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    let shared = device.stream()?;
    let mut common = shared.buffer_zeroed::<u32>(10)?;
    let graph = shared.capture(|s| launch(s, &KERNEL, &[], &mut [&mut common]))?;
    let (graph, common, shared) = (&graph, &common, &shared);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..8u32)
            .map(|seed| {
                let device = device.clone();
                scope.spawn(move || -> Result<()> {
                    let mut state = seed + 1;
                    let mut random = move |end: usize| {
                        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        (state >> 8) as usize % end
                    };
                    let mut streams = vec![device.stream()?, shared.clone()];
                    let mut buffers = vec![streams[0].buffer_zeroed::<u32>(10)?];
                    let mut graphs = Vec::new();
                    let mut events = Vec::new();
                    for _ in 0..2000 {
                        let stream = streams[random(streams.len())].clone();
                        let at = random(buffers.len());
                        match random(14) {
                            0 => streams.push(device.stream()?),
                            1 if streams.len() > 1 => drop(streams.swap_remove(random(streams.len()))),
                            2 => buffers.push(stream.buffer_uninit(random(3) * 10)?),
                            3 if buffers.len() > 1 => drop(buffers.swap_remove(at)),
                            4 => graphs.push(stream.capture(|s| launch(s, &OTHER, &[], &mut [&mut buffers[at]]))?),
                            5 if !graphs.is_empty() => drop(graphs.swap_remove(random(graphs.len()))),
                            6 if !graphs.is_empty() => graphs[random(graphs.len())].launch(&stream)?,
                            7 => graph.launch(&stream)?,
                            8 => launch(&stream, &KERNEL, &[common], &mut [&mut buffers[at]])?,
                            9 => events.push(stream.record()?),
                            10 if !events.is_empty() => stream.wait(&events.swap_remove(random(events.len())))?,
                            11 => drop(common.to_vec()?),
                            12 => {
                                let host = vec![1; buffers[at].len()];
                                buffers[at].copy_from(&host)?;
                            }
                            _ => launch(&stream, &KERNEL, &[], &mut [&mut buffers[at]])?,
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no panic"))
    })?;
    fake.log();
    fake.no_mistakes();
    Ok(())
}

#[test]
fn the_modules_of_a_context_go_with_it() -> Result<()> {
    let (fake, _turn) = fake();
    // Of a context that others have made, and of the primary one. Each time all is loaded anew.
    for round in 0..6 {
        let device = if round % 2 == 0 {
            // SAFETY: the context is there as long as the process.
            unsafe { Device::from_raw_context(fake.call("fake_other_context", None))? }
        } else {
            Device::gpu()?
        };
        let stream = device.stream()?;
        let mut x = stream.buffer_zeroed::<u32>(10)?;
        fake.log();
        for info in [&KERNEL, &OTHER, &KERNEL] {
            launch(&stream, info, &[], &mut [&mut x])?;
        }
        // Work may be under way when the last handle goes.
        fake.call::<()>("fake_busy", Some(stream.as_raw()));
        drop((x, stream, device));
        let log = fake.log();
        let count = |what: &str| log.iter().filter(|line| *line == what).count();
        assert_eq!((count("load"), count("unload")), (2, 2), "{log:#?}");
        assert_eq!(count("release") + count("destroy"), round % 2, "{log:#?}");
    }
    // The driver takes it for a mistake to unload what may run.
    fake.no_mistakes();
    Ok(())
}
