//! The order of work: what waits for what, and what waits for nothing.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::thread;
use std::time::Duration;

use primitives_gpu::view::LaunchBounds;
use primitives_host::__private::{Images, KernelInfo};
use primitives_host::storage::{self, Storage};
use primitives_host::{Device, Dims, Result, Stream};

use crate::fake::fake;
use crate::support::{IMAGES, KERNEL, OTHER, launch, soon};

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

/// A kernel that waits by itself for the launch before.
static WAITING: KernelInfo = KernelInfo::new("waiting", "waiting", WAITS, 0, 0, LaunchBounds::NONE);
const WAITS: Images = &[(90, "// layout 0000000000000000\n.version 8.0\ngriddepcontrol.wait;\n", None)];

#[test]
fn only_kernels_that_wait_begin_before_the_launch_before_has_ended() -> Result<()> {
    let (fake, _turn) = fake();
    let stream = Device::gpu()?.stream()?;
    let mut x = stream.buffer_uninit::<u32>(10)?;
    fake.log();
    for info in [&KERNEL, &WAITING, &WAITING, &KERNEL] {
        launch(&stream, info, &[], &mut [&mut x])?;
    }
    // A capture of others gets plain launches.
    fake.capture(stream.as_raw(), true);
    launch(&stream, &WAITING, &[], &mut [&mut x])?;
    fake.capture(stream.as_raw(), false);
    let log = fake.log();
    let overlapping: Vec<_> =
        log.iter().filter(|line| line.starts_with("launch")).map(|line| line.ends_with(", overlapping")).collect();
    assert_eq!(overlapping, [false, true, true, false, false], "{log:#?}");
    Ok(())
}

#[test]
fn a_kernel_is_loaded_with_the_division_of_memory_that_it_prefers() -> Result<()> {
    const fn info(bytes: Option<usize>) -> KernelInfo {
        KernelInfo::new("kernel", "kernel", IMAGES, 0, 0, LaunchBounds::NONE).with_carveout(bytes)
    }
    static SOME: KernelInfo = info(Some(100 << 10));
    static ANY: KernelInfo = info(None);
    // No device has as much.
    static ALL: KernelInfo = info(Some(1 << 20));
    static NONE: KernelInfo = info(Some(0));
    let (fake, _turn) = fake();
    let stream = Device::gpu()?.stream()?;
    let mut x = stream.buffer_uninit::<u32>(10)?;
    fake.log();
    for info in [&SOME, &ANY, &SOME, &ALL, &NONE] {
        launch(&stream, info, &[], &mut [&mut x])?;
    }
    let mut log = fake.log();
    log.retain(|line| !line.contains("event") && !line.starts_with("record"));
    let launched = format!("launch s{}", fake.number(&stream));
    let expected = ["load", "carveout 43", &launched, "load", &launched, &launched];
    let others = ["load", "carveout 100", &launched, "load", "carveout 0", &launched];
    assert_eq!(log, [expected, others].concat());
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

/// A buffer or a graph may have the last clone of a stream. One of other code is waited for when that goes.
#[test]
fn nobody_waits_while_the_last_use_of_an_adopted_stream_goes() -> Result<()> {
    let (fake, _turn) = fake();
    let device = Device::gpu()?;
    let (one, two) = (device.stream()?, device.stream()?);
    let (mut x, mut y) = (one.buffer_uninit::<u32>(10)?, two.buffer_uninit::<u32>(10)?);
    let graph = one.capture(|s| launch(s, &KERNEL, &[], &mut []))?;
    launch(&two, &OTHER, &[], &mut [&mut y])?;
    for by_graph in [false, true] {
        // SAFETY: the driver keeps its streams; it is adopted once.
        let adopted = unsafe { Stream::from_raw_borrowed(&device, fake.raw_stream())? };
        if by_graph {
            graph.launch(&adopted)?;
        } else {
            launch(&adopted, &KERNEL, &[&x], &mut [])?;
        }
        drop(adopted);
        fake.set("fake_hold_waits", 1);
        thread::scope(|scope| {
            let displacing =
                scope.spawn(|| if by_graph { graph.launch(&one) } else { launch(&one, &KERNEL, &[], &mut [&mut x]) });
            while fake.call::<c_int>("fake_held", None) == 0 {
                thread::yield_now();
            }
            soon(|| launch(&two, &OTHER, &[], &mut [&mut y]))?;
            // The same stream is free, too.
            soon(|| launch(&one, &OTHER, &[], &mut [&mut y]))?;
            fake.set("fake_hold_waits", 0);
            displacing.join().expect("no panic")
        })?;
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
