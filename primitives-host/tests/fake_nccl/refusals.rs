//! What keeps a process from becoming a member: NCCL, the GPU, its memory.

use std::thread;
use std::time::{Duration, Instant};

use primitives_host::{Device, Devices, Error, GroupOptions, ReduceOp, Result, Split, SplitBuffer, SplitGroup};

use crate::fake::fake;
use crate::{LONG, all_reduce, assert_failure, fakes, members, members_on};

/// Not a test, but what the process of the next one does.
#[test]
fn a_process_without_nccl() {
    if std::env::var_os("WITHOUT_NCCL").is_none() {
        return;
    }
    let (driver, _turn) = fake();
    driver.set("fake_devices", 2);
    for result in members(2, LONG, false, &|_, _| ()) {
        let error = result.expect_err("there is no NCCL");
        let Error::Group { member: Some(_), reason, .. } = &error else { panic!("{error}") };
        assert!(reason.contains(": cannot open NCCL `/nowhere/libnccl.so.2`"), "{error}");
    }
}

#[test]
fn without_nccl_all_members_are_told_what_is_missing() {
    alone("a_process_without_nccl", &[("WITHOUT_NCCL", "1"), ("KERNEL_PRIMITIVES_LIBNCCL", "/nowhere/libnccl.so.2")]);
}

/// Not a test, but what the process of the next one does.
#[test]
fn a_process_with_an_old_nccl() {
    if std::env::var_os("FAKE_NCCL_VERSION").is_none() {
        return;
    }
    let (_driver, nccl, _turn) = fakes();
    for result in members(2, LONG, false, &|_, _| ()) {
        let error = result.expect_err("it is too old");
        let Error::Group { member: Some(_), reason, .. } = &error else { panic!("{error}") };
        assert!(reason.contains("its version is 2.18.5, which is older than 2.20"), "{error}");
    }
    assert!(nccl.log().is_empty());
}

#[test]
fn with_an_old_nccl_all_members_are_told_its_version() {
    alone("a_process_with_an_old_nccl", &[("FAKE_NCCL_VERSION", "21805")]);
}

/// Not a test, but what the processes of the next one do.
#[test]
fn a_process_that_asks_for_a_gpu() {
    let Ok(expected) = std::env::var("EXPECTED_GPU") else { return };
    let (driver, _turn) = fake();
    driver.set("fake_devices", 2);
    let mut options = GroupOptions::new(5, 6, "127.0.0.1:1");
    options.local_rank = 3;
    let device = options.device().expect("a GPU");
    assert_eq!(device.ordinal().expect("a GPU").to_string(), expected);
}

#[test]
fn the_local_rank_chooses_a_gpu_unless_the_user_does() {
    for (asked, expected) in [("", "1"), ("auto", "1"), ("gpu", "1"), ("gpu:0", "0")] {
        alone("a_process_that_asks_for_a_gpu", &[("KERNEL_PRIMITIVES_DEVICE", asked), ("EXPECTED_GPU", expected)]);
    }
}

/// Runs a test of this file in a process of its own, with these variables.
fn alone(test: &str, variables: &[(&str, &str)]) {
    let mut process = std::process::Command::new(std::env::current_exe().expect("this test"));
    process.args(["--exact", &format!("refusals::{test}"), "--nocapture"]).envs(variables.iter().copied());
    let output = process.output().expect("a process");
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success() && text.contains("1 passed"), "{variables:?}: {text}");
}

#[test]
fn members_on_one_gpu_are_named_before_nccl_is_called() {
    let (_driver, nccl, _turn) = fakes();
    let start = Instant::now();
    let results = members_on(&[1, 0, 1], LONG, false, &|_, _| ());
    let errors = results.into_iter().map(|result| result.expect_err("two have one"));
    for error in errors {
        assert_failure(&error, Some(2), " have one GPU, 0000:08:00.0: each member needs a GPU to itself");
        let text = error.to_string();
        assert!(text.contains("rank 0 at 127.0.0.1:") && text.contains(" and rank 2 at 127.0.0.1:"), "{text}");
    }
    assert!(nccl.log().is_empty() && start.elapsed() < LONG / 2);
}

#[test]
fn members_of_one_process_let_each_other_access_their_memory_if_that_can_be() {
    let (driver, _nccl, _turn) = fakes();
    for (can, expected) in [(0, &[][..]), (1, &["access by 0", "access by 1"])] {
        driver.set("fake_peer_access", can);
        driver.log();
        let results = members(2, LONG, false, &|group, stream| all_reduce(group, stream));
        results.into_iter().for_each(|result| result.expect("a group").expect("NCCL goes another way"));
        let mut log = driver.log();
        log.retain(|line| line.starts_with("access by"));
        log.sort();
        assert_eq!(log, expected);
    }
}

#[test]
fn a_gpu_without_memory_is_an_error_at_all_members() -> Result<()> {
    let (driver, nccl, _turn) = fakes();
    // Their contexts, and what these have allocated, are there from before to after.
    let _devices = [Device::gpu_at(0)?, Device::gpu_at(1)?];
    let allocated = || driver.call::<i32>("fake_allocated", None);
    let (before, start) = (allocated(), Instant::now());
    driver.set("fake_full", 1);
    // The first may have its group before it is told.
    let results = members(2, LONG, false, &|group, stream| {
        loop {
            if let Err(error) = all_reduce(group, stream).and_then(|()| stream.synchronize()) {
                return error;
            }
            assert!(start.elapsed() < LONG / 2, "no error");
            thread::sleep(Duration::from_millis(2));
        }
    });
    driver.set("fake_full", -1);
    for result in results {
        assert_failure(
            &result.unwrap_or_else(|error| error),
            Some(1),
            "rank 1 on Fake 1 (GPU 1, sm_80): 4 bytes cannot be allocated",
        );
    }
    assert_eq!((allocated(), nccl.call::<i32>("fake_mistakes", None)), (before, 0));
    Ok(())
}

#[test]
fn a_gpu_without_memory_is_an_error_of_a_split_and_leaves_nothing_on_the_other() -> Result<()> {
    let (driver, _nccl, _turn) = fakes();
    let split = Split::even(&Devices::new([Device::gpu_at(0)?, Device::gpu_at(1)?])?)?;
    let group = SplitGroup::new(&split)?;
    let allocated = || driver.call::<i32>("fake_allocated", None);
    let before = allocated();
    driver.set("fake_full", 1);
    let refused = SplitBuffer::<u8>::zeroed(&split, 16).map(drop);
    driver.set("fake_full", -1);
    let Err(Error::Allocation { bytes: 8, device, .. }) = &refused else { panic!("{refused:?}") };
    assert!(device.starts_with("Fake 1 (GPU 1"), "{device}");
    assert_eq!(allocated(), before);
    // The devices and the group go on.
    let parts = SplitBuffer::<u8>::zeroed(&split, 16)?.into_parts();
    let mut buffers: Vec<_> = parts.into_iter().map(|(buffer, _)| buffer).collect();
    group.all_reduce(&mut buffers, ReduceOp::Sum)
}
