//! Several devices of the emulator: chosen by filters and by the environment, each with memory of its own.

use std::process::Command;

use primitives_gpu::view::{Global, GlobalMut, LaunchBounds};
use primitives_host::__private::{KernelInfo, Launch};
use primitives_host::devices::{
    DeviceFilter, Devices, compute_capability, count, double_precision, emulated, environment, gpu, matching, memory,
    name, position,
};
use primitives_host::{
    Buffer, Device, DeviceProperties, Diagnosis, Dims, EmulatorOptions, Error, KernelFault, Result, Stream,
};

static KERNEL: KernelInfo = KernelInfo::new("reader", "reader", &[], 0, 0, LaunchBounds::NONE);

fn numbers(devices: &[Device]) -> Vec<usize> {
    devices.iter().map(|device| device.properties().number).collect()
}

#[track_caller]
fn keeps(filter: impl Into<DeviceFilter>, expected: &[usize]) {
    let devices = Devices::emulated(5).expect("five").filter(filter);
    let kept = match devices {
        Err(Error::NoSuchDevice { .. }) => Vec::new(),
        devices => numbers(&devices.expect("some, or none")),
    };
    assert_eq!(kept, expected);
}

#[test]
fn filters_combine() {
    let above = |least: usize| matching(move |device| device.number > least);
    keeps(count(2), &[0, 1]);
    keeps(count(9), &[0, 1, 2, 3, 4]);
    keeps(count(0), &[]);
    keeps(position(3), &[3]);
    keeps(position(5), &[]);
    keeps(above(2), &[3, 4]);
    // In the order in which they stand.
    keeps(above(1) & count(2), &[2, 3]);
    keeps(count(2) & above(0), &[1]);
    keeps(above(1) & above(2) & position(1), &[4]);
    keeps(count(1) | above(3), &[0, 4]);
    keeps(above(3) | count(1), &[0, 4]);
    keeps(!count(2), &[2, 3, 4]);
    keeps(!(count(1) | above(2)) & |device: &DeviceProperties| device.number != 2, &[1]);
    keeps(|device: &DeviceProperties| device.number % 2 == 1, &[1, 3]);
}

#[test]
fn filters_look_at_properties() {
    keeps(name("EMUL") & double_precision() & emulated(), &[0, 1, 2, 3, 4]);
    keeps(name("H200"), &[]);
    keeps(gpu(), &[]);
    // Without a limit there is as much as is asked for.
    keeps(memory(usize::MAX), &[0, 1, 2, 3, 4]);
    let mut options = EmulatorOptions::default();
    (options.memory_bytes, options.arch) = (Some(1 << 20), Some(80));
    let devices = Devices::emulated_with(2, options).expect("two");
    let keeps = |filter: DeviceFilter| devices.filter(filter).map_or(0, |devices| devices.len());
    assert_eq!((keeps(memory(1 << 20)), keeps(memory((1 << 20) + 1))), (2, 0));
    assert_eq!((keeps(compute_capability(8, 0)), keeps(compute_capability(8, 6))), (2, 0));
    assert_eq!(keeps(compute_capability(u32::MAX, 0)), 0);
}

#[test]
fn an_error_says_what_was_asked_for_and_what_there_is() {
    let none = Devices::emulated(2).expect("two").filter(name("H200") & !count(1) | position(7));
    let text = none.expect_err("no such device").to_string();
    let expected = "there is no device that passes `((name(\"H200\") & !count(1)) | position(7))`: this machine has \
                    emulator (0), emulator (1)";
    assert_eq!(text, expected);
    for wrong in [0, 1025, usize::MAX] {
        let text = Devices::emulated(wrong).expect_err("no such number").to_string();
        assert_eq!(text, format!("`Devices::emulated`: the emulator has 1 to 1024 devices, not {wrong}"));
    }
    let text = Devices::emulated_with(0, EmulatorOptions::default()).expect_err("no such number").to_string();
    assert!(text.starts_with("`Devices::emulated_with`: "), "{text}");
}

#[test]
fn a_list_has_each_device_once() -> Result<()> {
    let devices = Devices::emulated(3)?;
    let turned = Devices::new([devices[2].clone(), devices[0].clone()])?;
    assert_eq!(numbers(&turned), [2, 0]);
    assert_eq!(turned.to_string(), "device 2 of the emulator, device 0 of the emulator");
    // The same device by another handle.
    let twice = Devices::new([devices[0].clone(), devices[1].clone(), Device::emulator()]);
    let text = twice.expect_err("listed twice").to_string();
    assert_eq!(text, "`Devices::new`: the emulator is listed twice");
    let again = Devices::emulated(2)?;
    assert!(Devices::new([devices[1].clone(), again[1].clone()]).is_err());
    assert!(Devices::new([]).expect_err("empty").to_string().contains("empty"));
    Ok(())
}

/// What a child process finds with these variables.
#[track_caller]
fn in_child(variables: &[(&str, &str)]) -> String {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program);
    child.args(["--exact", "child", "--nocapture"]).env("DEVICES_CHILD", "1");
    for variable in ["KERNEL_PRIMITIVES_DEVICES", "KERNEL_PRIMITIVES_DEVICE", "TEST_DEVICES"] {
        child.env_remove(variable);
    }
    let output = child.envs(variables.iter().copied()).output().expect("a child");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.split_once("found: ")).map(|(_, found)| found.to_owned());
    line.unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn child() {
    if std::env::var_os("DEVICES_CHILD").is_some() {
        let found = Devices::choose(environment("TEST_DEVICES"));
        println!("\nfound: {}", found.map_or_else(|error| error.to_string(), |devices| devices.to_string()));
    }
}

#[test]
fn the_environment_names_devices() {
    let several = "KERNEL_PRIMITIVES_DEVICES";
    assert_eq!(in_child(&[(several, "emulator")]), "the emulator");
    assert_eq!(in_child(&[(several, "emulator:2")]), "device 0 of the emulator, device 1 of the emulator");
    assert_eq!(in_child(&[("KERNEL_PRIMITIVES_DEVICE", "emulator")]), "the emulator");
    // The one for several counts before the one for one.
    let both = [(several, "emulator:2"), ("KERNEL_PRIMITIVES_DEVICE", "gpu:7")];
    assert_eq!(in_child(&both), "device 0 of the emulator, device 1 of the emulator");
    let wrong = in_child(&[(several, "cpu")]);
    assert!(
        wrong.starts_with("the environment variable KERNEL_PRIMITIVES_DEVICES is `cpu`: `cpu` names no"),
        "{wrong}"
    );
    for value in ["gpu:1,gpu:2", "emulator:4"] {
        let wrong = in_child(&[("KERNEL_PRIMITIVES_DEVICE", value)]);
        let expected = format!(
            "the environment variable KERNEL_PRIMITIVES_DEVICE is `{value}`: it can be `auto`, `emulator`, `gpu` or `gpu:N`"
        );
        assert_eq!(wrong, expected);
    }
}

#[test]
fn a_variable_of_the_program_is_a_filter() {
    let with = |value| in_child(&[("KERNEL_PRIMITIVES_DEVICES", "emulator:4"), ("TEST_DEVICES", value)]);
    let all = ["0", "1", "2", "3"].map(|number| format!("device {number} of the emulator"));
    assert_eq!(with(""), all.join(", "));
    assert_eq!(with("count=2"), all[..2].join(", "));
    assert_eq!(with("name=emul|H200, position=0|3, double"), [&*all[0], &all[3]].join(", "));
    assert_eq!(with("memory=16G,capability=7.5,position=1"), all[1]);
    let none = with("gpu");
    assert!(
        none.starts_with("there is no device that passes `environment(\"TEST_DEVICES\"), which is \"gpu\",`"),
        "{none}"
    );
    let wrong = with("count=few");
    assert_eq!(wrong, "the environment variable TEST_DEVICES is `count=few`: `few` of `count` is no number");
}

/// Two streams on devices of their own, checked.
fn streams() -> Result<[Stream; 2]> {
    let mut options = EmulatorOptions::default();
    options.checked = true;
    Ok(Devices::emulated_with(2, options)?.streams()?.try_into().expect("two"))
}

#[test]
fn a_launch_does_not_take_another_devices_buffer() -> Result<()> {
    let [one, two] = streams()?;
    let x = one.buffer_from(&[1u32, 2])?;
    let wrong = Launch::new(&two, &KERNEL, Dims::new(1, 1)).read("x", &x).expect_err("another device");
    let expected =
        "kernel `reader` runs on device 1 of the emulator, but its argument `x` is on device 0 of the emulator";
    assert_eq!(wrong.to_string(), expected);
    // A device of that number is that device, however it was made.
    Launch::new(&Device::emulator().stream()?, &KERNEL, Dims::new(1, 1)).read("x", &x)?;
    Launch::new(&Devices::emulated(4)?[0].stream()?, &KERNEL, Dims::new(1, 1)).read("x", &x)?;
    Ok(())
}

/// Launches a kernel of one thread that reads one element or writes it, by its address.
fn access(stream: &Stream, address: u64, write: bool) -> Result<()> {
    let body = move |cx: primitives_gpu::Block<'_>| {
        let address = address as usize;
        // SAFETY: memory of eight elements, that the test keeps and that nobody else uses.
        unsafe {
            if write {
                let pointer = std::ptr::with_exposed_provenance_mut::<u32>(address);
                let mut view: GlobalMut<'_, u32> = GlobalMut::from_raw(cx, pointer, 8);
                view.write(5, 9);
            } else {
                let view = Global::from_raw(cx, std::ptr::with_exposed_provenance::<u32>(address), 8);
                assert_eq!(view.get(5), Some(6));
            }
        }
    };
    // SAFETY: the kernel has no parameters.
    unsafe { Launch::new(stream, &KERNEL, Dims::new(1, 1)).run(&mut [std::ptr::null_mut()], body) }
}

#[track_caller]
fn fault(result: Result<()>) -> KernelFault {
    match result {
        Err(Error::Fault(fault)) => *fault,
        other => panic!("no fault: {other:?}"),
    }
}

#[test]
fn an_access_of_another_devices_memory_by_address_is_reported() -> Result<()> {
    let [one, two] = streams()?;
    let x: Buffer<u32> = one.buffer_from(&[1, 2, 3, 4, 5, 6, 7, 8])?;
    access(&one, x.address(), false)?;
    let found = fault(access(&two, x.address(), false));
    let text = found.to_string();
    assert!(matches!(found.diagnosis, Diagnosis::OtherDevice { device: 1, owner: 0, .. }), "{text}");
    assert!(text.starts_with("read on device 1 of memory that is device 0's in `reader`"), "{text}");
    assert!(text.contains(file!()) && text.contains("copy_from_peer"), "{text}");
    let found = fault(access(&two, x.address(), true));
    assert!(found.to_string().starts_with("write on device 1 of memory that is device 0's"), "{found}");
    // Nothing was written.
    assert_eq!(x.to_vec()?, [1, 2, 3, 4, 5, 6, 7, 8]);
    // Nor is it its own device's fault.
    access(&one, x.address(), true)?;
    assert_eq!(x.to_vec()?[5], 9);
    Ok(())
}

#[test]
fn a_kernel_of_one_device_launches_on_another() -> Result<()> {
    let [one, two] = streams()?;
    let x: Buffer<u32> = two.buffer_from(&[1, 2, 3, 4, 5, 6, 7, 8])?;
    // Accesses are those of the inner launch, and its device's memory counts.
    for (outer, inner, owns) in [(&one, &two, true), (&two, &one, false)] {
        let (inner, address) = (inner.clone(), x.address());
        let body = move |_: primitives_gpu::Block<'_>| match access(&inner, address, false) {
            Ok(()) => assert!(owns),
            other => {
                assert!(!owns && matches!(fault(other).diagnosis, Diagnosis::OtherDevice { device: 0, owner: 1, .. }))
            }
        };
        // SAFETY: the kernel has no parameters.
        unsafe { Launch::new(outer, &KERNEL, Dims::new(1, 1)).run(&mut [std::ptr::null_mut()], body) }?;
    }
    Ok(())
}

#[test]
fn copies_go_between_devices_and_are_counted() -> Result<()> {
    let [one, two] = streams()?;
    let x = one.buffer_from(&[1u16, 2, 3, 4])?;
    let mut y = two.buffer_zeroed::<u16>(6)?;
    let before = [&one, &two].map(|stream| stream.device().counters());
    y.slice_mut(1..4)?.copy_from_peer(&two, x.slice(1..)?)?;
    let cost = two.device().counters().since(before[1]);
    assert_eq!((cost.peer_copies, cost.peer_bytes, cost.device_copies), (1, 6, 0));
    assert_eq!(one.device().counters().since(before[0]), primitives_host::Counters::default());
    assert_eq!(y.to_vec()?, [0, 2, 3, 4, 0, 0]);
    // Of one device it is a copy as any other, and of nothing it is none.
    let mut z = two.buffer_uninit::<u16>(2)?;
    z.as_mut_slice().copy_from_peer(&two, y.slice(2..4)?)?;
    z.slice_mut(2..)?.copy_from_peer(&two, x.slice(4..)?)?;
    let cost = two.device().counters().since(before[1]);
    assert_eq!((cost.peer_copies, cost.device_copies, z.to_vec()?), (1, 1, vec![3, 4]));
    Ok(())
}

#[test]
fn a_wrong_copy_between_devices_is_an_error() -> Result<()> {
    let [one, two] = streams()?;
    let x = one.buffer_from(&[1u32, 2, 3])?;
    let mut y = two.buffer_zeroed::<u32>(3)?;
    let mut copy = |stream: &Stream, len: usize| y.as_mut_slice().copy_from_peer(stream, x.slice(..len)?);
    assert!(matches!(copy(&two, 2), Err(Error::LengthMismatch { first_len: 3, second_len: 2, .. })));
    let error = copy(&one, 3).expect_err("the source's stream").to_string();
    assert_eq!(
        error,
        "kernel `copy_from_peer` runs on device 0 of the emulator, but its argument the target is on device 1 of the emulator"
    );
    let captured = two.capture(|stream| copy(stream, 3));
    assert!(matches!(captured, Err(Error::Capture { call: "`copy_from_peer`", .. })));
    let wrong = y.as_mut_slice().copy_from_device(&two, x.as_slice());
    assert!(matches!(wrong, Err(Error::WrongDevice { .. })));
    let wrong = y.copy_from_async(&one, one.device().pinned(3)?).err().expect("another device").to_string();
    assert!(wrong.starts_with("kernel `copy_from_async` runs on device 0 of the emulator"), "{wrong}");
    assert_eq!(y.to_vec()?, [0; 3]);
    Ok(())
}

#[test]
fn what_is_unwritten_stays_so_in_a_copy() -> Result<()> {
    let [one, two] = streams()?;
    let mut x = one.buffer_uninit::<u32>(8)?;
    x.slice_mut(..5)?.copy_from(&[1, 2, 3, 4, 5])?;
    let mut y = two.buffer_zeroed::<u32>(8)?;
    y.as_mut_slice().copy_from_peer(&two, x.as_slice())?;
    let view = y.as_slice();
    let mut launch = Launch::new(&two, &KERNEL, Dims::new(1, 1));
    let raw = launch.read("y", view)?;
    // SAFETY: the view comes from this launch, and the kernel has no parameters.
    let result = unsafe {
        launch.run(&mut [std::ptr::null_mut()], move |cx| {
            let view = raw.global(cx);
            assert_eq!((view[4], view.get(6).is_some()), (5, true));
        })
    };
    assert!(matches!(fault(result).diagnosis, Diagnosis::Unwritten { .. }));
    Ok(())
}

#[test]
fn a_device_has_no_more_memory_than_its_options_allow() -> Result<()> {
    let mut options = EmulatorOptions::default();
    options.memory_bytes = Some(1000);
    let streams = Devices::emulated_with(2, options.clone())?.streams()?;
    let x = streams[0].buffer_zeroed::<u8>(600)?;
    let error = streams[0].buffer_zeroed::<u8>(401).expect_err("too much").to_string();
    assert_eq!(
        error,
        "401 bytes cannot be allocated on device 0 of the emulator: 400 bytes are left of what its options allow"
    );
    // Another one has its own, and what is dropped is there again.
    let y = streams[1].buffer_zeroed::<u8>(1000)?;
    let z = streams[0].buffer_zeroed::<u8>(400)?;
    assert!(streams[0].buffer_zeroed::<u8>(1).is_err());
    // So has one of another call.
    Devices::emulated_with(2, options)?[0].stream()?.buffer_zeroed::<u8>(1000)?;
    drop((x, y));
    assert!(streams[0].buffer_zeroed::<u8>(600).is_ok() && z.len() == 400);
    assert!(streams[1].buffer_zeroed::<u64>(usize::MAX / 8).is_err());
    assert!(streams[1].buffer_zeroed::<u8>(1000).is_ok());
    Ok(())
}

#[test]
fn buffers_keep_their_device() -> Result<()> {
    let (x, mut y) = {
        let streams = Devices::emulated(3)?.streams()?;
        (streams[2].buffer_from(&[5u64, 6])?, streams[1].buffer_zeroed::<u64>(2)?)
    };
    assert_eq!((x.device().to_string(), y.device().properties().number), ("device 2 of the emulator".to_owned(), 1));
    let stream = y.device().stream()?;
    y.as_mut_slice().copy_from_peer(&stream, x.as_slice())?;
    drop(x);
    assert_eq!(y.to_vec()?, [5, 6]);
    Ok(())
}
