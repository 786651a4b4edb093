//! Two devices: which are opened, what waits for what between them, and how memory gets from one to the other.

use std::thread;

use primitives_host::devices::{Devices, compute_capability, matching, memory, name};
use primitives_host::{Buffer, Error, Result, Stream};

use crate::fake::{Fake, fake};
use crate::support::{KERNEL, launch, soon};

/// Streams on both devices, with the number of devices as it was when the test ends.
fn streams(fake: &Fake) -> Result<[Stream; 2]> {
    fake.set("fake_devices", 2);
    let streams = Devices::choose(memory(0));
    fake.set("fake_devices", 1);
    let streams = streams?.streams()?;
    fake.log();
    Ok(streams.try_into().expect("two"))
}

#[test]
fn devices_that_a_filter_drops_are_not_opened() -> Result<()> {
    let (fake, _turn) = fake();
    fake.set("fake_devices", 2);
    let first = Devices::choose(compute_capability(9, 0));
    let log = fake.log();
    let (largest, second) = (Devices::choose(memory(2 << 30)), Devices::choose(name("fake 1")));
    let none = Devices::choose(name("fake") & matching(|device| device.number > 1));
    fake.set("fake_devices", 1);

    assert!(!log.iter().any(|line| line.starts_with("open")), "{log:#?}");
    assert_eq!(first?.iter().map(|device| device.ordinal()).collect::<Vec<_>>(), [Some(0)]);
    for one in [largest?, second?] {
        assert_eq!((one.len(), one[0].ordinal(), one.to_string()), (1, Some(1), "Fake 1 (GPU 1, sm_80)".to_owned()));
    }
    let error = none.expect_err("there are two").to_string();
    let expected = "there is no device that passes `(name(\"fake\") & matching(a closure))`: this machine has Fake 0 (0), Fake 1 (1)";
    assert_eq!(error, expected);
    Ok(())
}

#[test]
fn a_copy_between_devices_waits_for_the_writer_and_is_waited_for() -> Result<()> {
    let (fake, _turn) = fake();
    let [one, two] = streams(fake)?;
    let (mut x, mut y) = (one.buffer_from(&[1u32, 2, 3, 4])?, two.buffer_uninit::<u32>(3)?);
    launch(&one, &KERNEL, &[], &mut [&mut x])?;
    fake.log();
    y.as_mut_slice().copy_from_peer(&two, x.slice(1..)?)?;
    launch(&one, &KERNEL, &[], &mut [&mut x])?;
    let log = fake.log();
    let (source, target) = (fake.number(&one), fake.number(&two));
    let find = |line: String| log.iter().position(|known| known.starts_with(&line));
    let copy = find(format!("peer copy s{target}")).unwrap_or_else(|| panic!("{log:#?}"));
    let wait = find(format!("wait s{target} ")).unwrap_or_else(|| panic!("{log:#?}"));
    let waited = find(format!("wait s{source} ")).unwrap_or_else(|| panic!("{log:#?}"));
    let launch = find(format!("launch s{source}")).unwrap_or_else(|| panic!("{log:#?}"));
    assert!(wait < copy && copy < waited && waited < launch, "{log:#?}");
    assert_eq!(y.to_vec()?, [2, 3, 4]);
    fake.no_mistakes();
    Ok(())
}

#[test]
fn memory_is_opened_to_a_peer_once_and_only_if_that_can_be() -> Result<()> {
    let (fake, _turn) = fake();
    fake.set("fake_peer_access", 0);
    let copies = |fake: &Fake| -> Result<usize> {
        let [one, two] = streams(fake)?;
        let (x, mut y) = (one.buffer_from(&[7u32; 5])?, two.buffer_uninit::<u32>(5)?);
        fake.log();
        y.as_mut_slice().copy_from_peer(&two, x.as_slice())?;
        y.as_mut_slice().copy_from_peer(&two, x.as_slice())?;
        let cost = two.device().counters();
        assert_eq!((cost.peer_copies, cost.peer_bytes, cost.device_copies), (2, 40, 0));
        assert_eq!(y.to_vec()?, [7; 5]);
        Ok(fake.log().iter().filter(|line| line.starts_with("access by 1")).count())
    };
    let without = copies(fake);
    fake.set("fake_peer_access", 1);
    assert_eq!((without?, copies(fake)?), (0, 1));
    fake.no_mistakes();
    Ok(())
}

#[test]
fn a_buffer_that_another_device_reads_is_freed_after_that() -> Result<()> {
    let (fake, _turn) = fake();
    let [one, two] = streams(fake)?;
    let (source, target) = (fake.number(&one), fake.number(&two));
    let (x, mut y) = (one.buffer_from(&[1u32; 8])?, two.buffer_uninit::<u32>(8)?);
    y.as_mut_slice().copy_from_peer(&two, x.as_slice())?;
    fake.log();
    // The device, its stream and the buffer go, and the copy is in the other device's queue.
    drop(one);
    drop(x);
    let log = fake.log();
    let find =
        |line: String| log.iter().position(|known| known.starts_with(&line)).unwrap_or_else(|| panic!("{log:#?}"));
    assert!(find(format!("wait s{source} ")) < find(format!("free s{source}")), "{log:#?}");
    assert!(!log.iter().any(|line| line.contains(&format!("free s{target}"))), "{log:#?}");
    assert_eq!(y.to_vec()?, [1; 8]);
    fake.no_mistakes();
    Ok(())
}

#[test]
fn copies_both_ways_at_once_do_not_wait_for_each_other() -> Result<()> {
    let (fake, _turn) = fake();
    let [one, two] = streams(fake)?;
    let rounds = |to: &Stream, target: &mut Buffer<u32>, source: &Buffer<u32>| -> Result<()> {
        (0..500).try_for_each(|_| target.as_mut_slice().copy_from_peer(to, source.as_slice()))
    };
    let (a, b) = (one.buffer_from(&[1u32; 4])?, two.buffer_from(&[2u32; 4])?);
    let (mut on_one, mut on_two) = (one.buffer_uninit::<u32>(4)?, two.buffer_uninit::<u32>(4)?);
    soon(|| {
        thread::scope(|scope| {
            let other = scope.spawn(|| rounds(&two, &mut on_two, &a));
            rounds(&one, &mut on_one, &b)?;
            other.join().expect("no panic")
        })
    })?;
    assert_eq!((on_one.to_vec()?, on_two.to_vec()?), (vec![2; 4], vec![1; 4]));
    fake.no_mistakes();
    Ok(())
}

#[test]
fn a_copy_between_devices_is_no_part_of_a_capture() -> Result<()> {
    let (fake, _turn) = fake();
    let [one, two] = streams(fake)?;
    let (mut x, mut y) = (one.buffer_from(&[1u32; 4])?, two.buffer_zeroed::<u32>(4)?);
    let captured = two.capture(|stream| y.as_mut_slice().copy_from_peer(stream, x.as_slice()));
    assert!(matches!(captured, Err(Error::Capture { call: "`copy_from_peer`", .. })), "{:?}", captured.err());
    // By others.
    fake.capture(two.as_raw(), true);
    let refused = y.as_mut_slice().copy_from_peer(&two, x.as_slice());
    fake.capture(two.as_raw(), false);
    assert!(matches!(refused, Err(Error::Capture { .. })), "{refused:?}");
    // What a capture by others writes on the source's device.
    fake.capture(one.as_raw(), true);
    launch(&one, &KERNEL, &[], &mut [&mut x])?;
    let refused = y.as_mut_slice().copy_from_peer(&two, x.as_slice());
    fake.capture(one.as_raw(), false);
    assert!(matches!(refused, Err(Error::Capture { call: "a wait of another stream", .. })), "{refused:?}");
    assert_eq!(y.to_vec()?, [0; 4]);
    // The stream must be of the target's device.
    let wrong = y.as_mut_slice().copy_from_peer(&one, x.as_slice());
    assert!(wrong.expect_err("another device").to_string().contains("the target is on Fake 1"));
    fake.no_mistakes();
    Ok(())
}
