//! What the runtime asks of the driver, in which order, and what it never asks: shown by a driver that watches.
//!
//! It is compiled here with the C compiler that rustc links with, and runs no kernels. What they compute is for the tests of
//! `kernel-primitives` on a GPU.

mod fake;

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use fake::fake;
use primitives_gpu::view::LaunchBounds;
use primitives_host::__private::{Images, KernelInfo, Launch};
use primitives_host::storage::{self, Storage};
use primitives_host::{Buffer, BufferSliceMut, Device, Dims, DriverError, Error, Result, Stream};

const IMAGES: Images = &[(90, "// layout 0000000000000000\n.version 8.0\n", None)];
static KERNEL: KernelInfo = KernelInfo::new("kernel", "kernel", IMAGES, 0, 0, LaunchBounds::NONE);
static OTHER: KernelInfo = KernelInfo::new("other", "other", IMAGES, 0, 0, LaunchBounds::NONE);

/// Launches a kernel that reads and writes.
fn launch(
    stream: &Stream,
    info: &'static KernelInfo,
    read: &[&Buffer<u32>],
    write: &mut [&mut Buffer<u32>],
) -> Result<()> {
    let mut launch = Launch::new(stream, info, Dims::new(1, 32));
    for &buffer in read {
        launch.read("x", buffer)?;
    }
    for buffer in write {
        launch.write("out", BufferSliceMut::from(&mut **buffer))?;
    }
    // SAFETY: the driver runs nothing, and the kernel has no parameters.
    unsafe { launch.run(&mut [null_mut()], |_| unreachable!("on a GPU")) }
}

/// The result of `work` on a thread of its own; a panic if there is none after some seconds.
#[track_caller]
fn soon<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| {
        let (done, result) = mpsc::channel();
        scope.spawn(move || done.send(work()));
        match result.recv_timeout(Duration::from_secs(20)) {
            Ok(result) => result,
            Err(_) => {
                eprintln!("\na thread waits for a lock that another one holds while it waits for the driver");
                std::process::exit(1);
            }
        }
    })
}

#[track_caller]
fn refused<T>(result: Result<T>, part: &str) {
    match result {
        Err(error @ Error::Capture { .. }) => assert!(error.to_string().contains(part), "`{part}`: {error}"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("no error, in spite of the capture: `{part}`"),
    }
}

#[test]
fn a_wait_is_for_the_last_use_of_the_buffer() -> Result<()> {
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    let (one, two) = (device.stream()?, device.stream()?);
    let (mut x, mut y) = (one.buffer_uninit::<u32>(10)?, one.buffer_uninit::<u32>(10)?);
    let mut z = two.buffer_uninit::<u32>(10)?;
    launch(&one, &KERNEL, &[], &mut [&mut x])?;
    fake.log();
    for round in 0..3 {
        launch(&one, &KERNEL, &[], &mut [&mut x])?;
        launch(&one, &KERNEL, &[], &mut [&mut y])?;
        launch(&two, &KERNEL, &[&x], &mut [&mut z])?;
        let log = fake.log();
        let find = |begin: &str| {
            log.iter().position(|line| line.starts_with(begin)).unwrap_or_else(|| panic!("{begin}: {log:#?}"))
        };
        let launches: Vec<_> = (0..log.len()).filter(|&at| log[at].starts_with("launch")).collect();
        let [first, second, third] = launches[..] else { panic!("{log:#?}") };
        let waits: Vec<_> = log.iter().filter(|line| line.starts_with("wait")).collect();
        // From the second round on the write of `x` waits for its reader.
        assert_eq!(waits.len(), if round == 0 { 1 } else { 2 }, "{log:#?}");
        let event = waits.last().and_then(|wait| wait.split(' ').next_back()).expect("its event");
        let recorded = find(&format!("record {event} "));
        assert!(first < recorded && recorded < second && second < third, "{log:#?}");
        assert!(!log.iter().any(|line| line.ends_with("with time")), "{log:#?}");
    }
    // A read needs no wait for a read, and a second one on the same stream none at all.
    launch(&one, &KERNEL, &[&x], &mut [])?;
    launch(&two, &KERNEL, &[&x], &mut [])?;
    assert!(!fake.log().iter().any(|line| line.starts_with("wait")));
    fake.no_mistakes();
    Ok(())
}

#[test]
fn a_stream_that_nobody_waits_for_is_soon_without_marks() -> Result<()> {
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    let (one, two) = (device.stream()?, device.stream()?);
    let mut x = one.buffer_uninit::<u32>(10)?;
    for _ in 0..100 {
        launch(&one, &KERNEL, &[], &mut [&mut x])?;
    }
    fake.log();
    for _ in 0..100 {
        launch(&one, &KERNEL, &[], &mut [&mut x])?;
    }
    assert!(fake.log().iter().all(|line| line.starts_with("launch")), "a launch is that and nothing else");
    // One that others wait for has them again.
    launch(&two, &KERNEL, &[&x], &mut [])?;
    let log = fake.log();
    assert!(log[0].starts_with("record") && log[1].starts_with("wait") && log[2].starts_with("launch"), "{log:#?}");
    // What the host has waited for, nobody waits for.
    launch(&one, &KERNEL, &[], &mut [&mut x])?;
    one.synchronize()?;
    fake.log();
    launch(&two, &KERNEL, &[&x], &mut [])?;
    assert!(!fake.log().iter().any(|line| line.starts_with("wait")));
    fake.no_mistakes();
    Ok(())
}

#[test]
fn nobody_waits_while_a_kernel_is_loaded_or_a_buffer_copied() -> Result<()> {
    static LATE: KernelInfo = KernelInfo::new("late", "late", IMAGES, 0, 0, LaunchBounds::NONE);
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    let (one, two) = (device.stream()?, device.stream()?);
    let (mut x, mut y) = (one.buffer_from(&[1u32; 10])?, two.buffer_from(&[2u32; 10])?);
    launch(&two, &OTHER, &[], &mut [&mut y])?;
    let wait = || {
        while fake.call::<c_int>("fake_held", None) == 0 {
            thread::yield_now();
        }
    };

    fake.set("fake_hold_loads", 1);
    thread::scope(|scope| {
        let loading = scope.spawn(|| launch(&one, &LATE, &[], &mut [&mut x]));
        wait();
        soon(|| launch(&two, &OTHER, &[], &mut [&mut y]))?;
        // The same stream is free, too.
        soon(|| launch(&one, &OTHER, &[], &mut [&mut y]))?;
        fake.set("fake_hold_loads", 0);
        loading.join().expect("no panic")
    })?;

    for to_host in [true, false] {
        fake.set("fake_hold_copies", 1);
        thread::scope(|scope| {
            let copying = scope.spawn(|| if to_host { x.to_vec().map(drop) } else { x.copy_from(&[3; 10]) });
            wait();
            soon(|| launch(&two, &OTHER, &[], &mut [&mut y]))?;
            soon(|| launch(&one, &OTHER, &[], &mut [&mut y]))?;
            soon(|| device.stream()?.buffer_uninit::<u32>(5).map(drop))?;
            fake.set("fake_hold_copies", 0);
            copying.join().expect("no panic")
        })?;
    }
    assert_eq!(x.to_vec()?, [3; 10]);
    fake.no_mistakes();
    Ok(())
}

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
        assert!(error.to_string().contains("the emulator"), "{error}");
    }
    fake.no_mistakes();
    Ok(())
}

/// The streams that launches of the log were on.
fn streams_of(log: &[String]) -> std::collections::BTreeSet<&str> {
    log.iter().filter_map(|line| line.strip_prefix("launch ")).collect()
}

#[test]
fn streams_that_have_read_a_long_lived_buffer_are_used_again() -> Result<()> {
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    let (writer, busy) = (device.stream()?, device.stream()?);
    let mut x = writer.buffer_zeroed::<u32>(10)?;
    fake.log();
    for _ in 0..50 {
        launch(&device.stream()?, &KERNEL, &[&x], &mut [])?;
    }
    let log = fake.log();
    assert!(streams_of(&log).len() <= 4, "{:?}", streams_of(&log));

    // Reads that are under way are waited for, however many came after.
    launch(&busy, &KERNEL, &[&x], &mut [])?;
    fake.call::<()>("fake_busy", Some(busy.as_raw()));
    for _ in 0..50 {
        launch(&device.stream()?, &KERNEL, &[&x], &mut [])?;
    }
    let read = fake.log();
    launch(&writer, &KERNEL, &[], &mut [&mut x])?;
    let log = [read, fake.log()].concat();
    let event_of = |line: &String| {
        line.strip_prefix("record ")?.split_once(' ').map(|(event, on)| (event.to_owned(), on.to_owned()))
    };
    let recorded: Vec<_> =
        log.iter().filter_map(event_of).filter(|(_, on)| *on == format!("s{}", fake.number(&busy))).collect();
    let waits = |event: &str| log.contains(&format!("wait s{} {event}", fake.number(&writer)));
    assert!(recorded.iter().any(|(event, _)| waits(event)), "{log:#?}");
    busy.synchronize()?;
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

#[test]
fn a_shared_handle_writes_after_a_copy_to_the_host_is_over() -> Result<()> {
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    let (one, two) = (device.stream()?, device.stream()?);
    let shared = Storage::of(one.buffer_from(&[1u32; 10])?);
    let write = || {
        // SAFETY: the driver runs nothing, and the kernel has no parameters.
        unsafe { storage::launch(&two, &KERNEL, Dims::new(1, 32), [(&shared, true)].into_iter(), &mut [null_mut()]) }
    };
    write()?;
    fake.log();
    fake.set("fake_hold_copies", 1);
    thread::scope(|scope| {
        // SAFETY: it was a buffer of these.
        let copying = scope.spawn(|| unsafe { shared.as_slice::<u32>() }.to_vec());
        while fake.call::<c_int>("fake_held", None) == 0 {
            thread::yield_now();
        }
        let writing = scope.spawn(write);
        thread::sleep(Duration::from_millis(100));
        let log = fake.log();
        fake.set("fake_hold_copies", 0);
        assert!(!log.iter().any(|line| line.starts_with("launch")), "a copy is under way: {log:#?}");
        assert_eq!(copying.join().expect("no panic")?, [1; 10]);
        writing.join().expect("no panic")
    })?;
    assert!(fake.log().iter().any(|line| line.starts_with("launch")));
    fake.no_mistakes();
    Ok(())
}
