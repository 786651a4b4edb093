//! Tests devices, streams, events, buffers, and the checks before a launch.

use std::process::Command;

use kernel_primitives::functor::Add;
use kernel_primitives::kernels::map_binary;
use kernel_primitives::{Buffer, Device, Dim3, Dims, Error, Result, Stream};

use crate::kernels::{Flagged, Sixteen, io};
use crate::support::{stream, streams, threads, values};

mod launches;
mod streams;

#[test]
fn sanitize_copies_to_the_device_and_back() -> Result<()> {
    let stream = stream()?;
    let x = values::<u32>(1000, 1);
    let mut buffer = stream.buffer_from(&x)?;
    assert_eq!((buffer.len(), buffer.is_empty()), (1000, false));
    assert_eq!(buffer.to_vec()?, x);
    let mut host = vec![0; 1000];
    buffer.copy_to(&mut host)?;
    assert_eq!(host, x);
    let y = values::<u32>(1000, 2);
    buffer.copy_from(&y)?;
    assert_eq!(buffer.to_vec()?, y);
    assert_eq!(buffer.slice(10..20)?.to_vec()?, y[10..20]);
    buffer.slice_mut(5..=6)?.copy_from(&[7, 8])?;
    assert_eq!(buffer.slice(4..8)?.to_vec()?, [y[4], 7, 8, y[7]]);
    Ok(())
}

#[test]
fn copies_between_buffers_of_a_device() -> Result<()> {
    let stream = stream()?;
    let (x, y) = (values::<f32>(100, 1), values::<f32>(100, 2));
    let source = stream.buffer_from(&x)?;
    let mut target = stream.buffer_from(&y)?;
    target.slice_mut(10..40)?.copy_from_device(&stream, source.slice(3..33)?)?;
    let mut expected = y.clone();
    expected[10..40].copy_from_slice(&x[3..33]);
    assert_eq!(target.to_vec()?, expected);
    // This copies from one half of a buffer to the other.
    let (mut low, high) = target.as_mut_slice().split_at(50)?;
    assert_eq!((low.len(), high.len()), (50, 50));
    low.copy_from_device(&stream, high.as_slice())?;
    expected.copy_within(50.., 0);
    assert_eq!(target.to_vec()?, expected);
    let error = target.as_mut_slice().copy_from_device(&stream, source.slice(..99)?).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { first_len: 100, second_len: 99, .. }), "{error}");
    Ok(())
}

#[test]
fn lengths_of_host_and_device_that_differ_are_an_error() -> Result<()> {
    let stream = stream()?;
    let mut buffer = stream.buffer_zeroed::<u8>(10)?;
    for len in [0, 9, 11] {
        let errors = [buffer.copy_to(&mut vec![0; len]).unwrap_err(), buffer.copy_from(&vec![0; len]).unwrap_err()];
        for error in errors {
            let text = error.to_string();
            assert!(text.contains("10 elements") && text.contains(&len.to_string()), "{text}");
        }
    }
    assert_eq!(buffer.to_vec()?, [0; 10]);
    Ok(())
}

#[test]
fn sanitize_empty_buffers_are_buffers() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_from::<f32>(&[])?;
    let y = stream.buffer_zeroed::<f32>(0)?;
    let mut out = stream.buffer_uninit::<f32>(0)?;
    assert!(x.is_empty() && out.as_mut_slice().is_empty() && x.as_slice().is_empty());
    assert_eq!(x.to_vec()?, [0.0f32; 0]);
    assert_eq!(x.slice(0..0)?.to_vec()?, [0.0f32; 0]);
    x.copy_to(&mut [])?;
    out.copy_from(&[])?;
    for dims in [Dims::for_items(0), (1, 32).into(), (3, (7, 3)).into()] {
        map_binary::<f32, f32, Add, 4>::launch(&stream, dims, &x, &y, &mut out, Add)?;
    }
    assert_eq!(out.to_vec()?, [0.0f32; 0]);
    stream.synchronize()
}

#[test]
fn elements_without_bytes_have_a_number() -> Result<()> {
    let stream = stream()?;
    let buffer = stream.buffer_from(&[[0f32; 0]; 5])?;
    assert_eq!((buffer.len(), buffer.to_vec()?.len(), buffer.slice(2..)?.len()), (5, 5, 3));
    assert_eq!(stream.buffer_zeroed::<[bool; 0]>(3)?.to_vec()?.len(), 3);
    Ok(())
}

#[test]
fn slices_outside_their_buffer_are_errors() -> Result<()> {
    let stream = stream()?;
    let mut buffer = stream.buffer_zeroed::<u16>(10)?;
    let out_of_range = |error: Error, start, end| match error {
        Error::OutOfRange { start: s, end: e, len: 10 } => assert_eq!((s, e), (start, end)),
        other => panic!("{other}"),
    };
    out_of_range(buffer.slice(0..11).err().unwrap(), 0, 11);
    out_of_range(buffer.slice(11..).err().unwrap(), 11, 10);
    out_of_range(buffer.slice(..=10).err().unwrap(), 0, 11);
    out_of_range(buffer.slice(usize::MAX..).err().unwrap(), usize::MAX, 10);
    #[allow(clippy::reversed_empty_ranges, reason = "it is the mistake")]
    let reversed = buffer.slice(5..4);
    out_of_range(reversed.err().unwrap(), 5, 4);
    out_of_range(buffer.slice_mut(3..12).err().unwrap(), 3, 12);
    out_of_range(buffer.as_mut_slice().split_at(11).err().unwrap(), 0, 11);
    assert!(buffer.slice(..=usize::MAX).is_err());
    assert_eq!(buffer.slice(10..)?.len(), 0);
    assert_eq!(buffer.slice(10..10)?.len(), 0);
    // A slice of a slice counts from its own start, and cannot go past its own end.
    let part = buffer.slice(4..8)?;
    assert_eq!(part.slice(1..)?.len(), 3);
    assert!(matches!(part.slice(..5).err(), Some(Error::OutOfRange { start: 0, end: 5, len: 4 })));
    Ok(())
}

#[test]
fn slices_are_seen_as_other_elements_if_size_and_alignment_fit() -> Result<()> {
    let stream = stream()?;
    let mut buffer = stream.buffer_from(&[0x0403_0201u32, 0x0807_0605, 0x0c0b_0a09, 0x100f_0e0d])?;
    assert_eq!(buffer.as_slice().reinterpret::<u8>()?.to_vec()?, (1..=16).collect::<Vec<u8>>());
    assert_eq!(buffer.as_slice().reinterpret::<u64>()?.to_vec()?, [0x0807_0605_0403_0201, 0x100f_0e0d_0c0b_0a09]);
    assert_eq!(buffer.as_slice().reinterpret::<[u16; 2]>()?.len(), 4);
    assert_eq!(buffer.as_slice().reinterpret::<Sixteen>()?.len(), 1);
    assert_eq!(buffer.slice(..0)?.reinterpret::<f64>()?.len(), 0);
    buffer.as_mut_slice().reinterpret::<u16>()?.into_slice(1..2)?.copy_from(&[0xffff])?;
    assert_eq!(buffer.slice(..1)?.to_vec()?, [0xffff_0201]);

    let reason = |error: Option<Error>| match error {
        Some(error @ Error::Reinterpret { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let text = reason(buffer.slice(..3)?.reinterpret::<u64>().err());
    assert!(
        text.contains("3 × u32") && text.contains("seen as u64") && text.contains("12 bytes are no multiple"),
        "{text}"
    );
    let text = reason(buffer.slice(1..3)?.reinterpret::<u64>().err());
    assert!(text.contains("alignment of 8"), "{text}");
    let bytes = stream.buffer_zeroed::<u8>(9)?;
    let text = reason(bytes.slice(1..9)?.reinterpret::<u32>().err());
    assert!(text.contains("alignment of 4"), "{text}");
    let text = reason(bytes.as_slice().reinterpret::<bool>().err());
    assert!(text.contains("not all bytes are values"), "{text}");
    reason(bytes.as_slice().reinterpret::<[bool; 3]>().err());
    reason(bytes.slice(..8)?.reinterpret::<Flagged>().err());
    // A bool's byte may be read, but not written.
    let mut flags = stream.buffer_from(&[true, false, true])?;
    assert_eq!(flags.as_slice().reinterpret::<u8>()?.to_vec()?, [1, 0, 1]);
    let text = reason(flags.as_mut_slice().reinterpret::<u8>().err());
    assert!(text.contains("no bool"), "{text}");
    Ok(())
}

#[test]
fn buffers_without_values_have_a_length_and_no_bad_bools() -> Result<()> {
    let stream = stream()?;
    let mut floats = stream.buffer_uninit::<f32>(100)?;
    floats.copy_from(&[1.0; 100])?;
    assert_eq!(floats.to_vec()?, [1.0; 100]);
    assert_eq!(stream.buffer_uninit::<bool>(100)?.to_vec()?, [false; 100]);
    assert_eq!(stream.buffer_uninit::<Flagged>(3)?.to_vec()?.len(), 3);
    Ok(())
}

#[test]
fn more_memory_than_can_be_addressed_is_an_error() -> Result<()> {
    let stream = stream()?;
    for len in [usize::MAX, usize::MAX / 8, isize::MAX as usize / 8] {
        let error = stream.buffer_zeroed::<f64>(len).expect_err("too much");
        let Error::Allocation { bytes, .. } = &error else { panic!("{error}") };
        assert_eq!(*bytes, len as u128 * 8);
        assert!(error.to_string().contains(&stream.device().to_string()), "{error}");
    }
    Ok(())
}

#[test]
fn lengths_near_the_largest_are_errors() -> Result<()> {
    let stream = stream()?;
    let device = stream.device();
    for len in [usize::MAX, usize::MAX / 2, isize::MAX as usize, isize::MAX as usize / 8, 1 << 58] {
        let errors = [
            device.pinned::<u64>(len).err(),
            stream.buffer_uninit::<u64>(len).err(),
            stream.buffer_zeroed::<[u16; 4]>(len).err(),
        ];
        for error in errors {
            let Some(Error::Allocation { bytes, .. }) = error else { panic!("{len}: {error:?}") };
            assert_eq!(bytes, len as u128 * 8);
        }
    }
    assert!(matches!(device.pinned::<u8>(isize::MAX as usize), Err(Error::Allocation { .. })));
    // There may be any number of elements without bytes.
    assert_eq!(device.pinned::<[u8; 0]>(usize::MAX)?.len(), usize::MAX);
    let mut none = stream.buffer_uninit::<[f32; 0]>(usize::MAX)?;
    assert_eq!((none.len(), none.to_vec()?.len()), (usize::MAX, usize::MAX));
    assert_eq!(none.slice(1..)?.len(), usize::MAX - 1);
    assert_eq!(none.slice(..=usize::MAX - 1)?.len(), usize::MAX);
    assert!(matches!(none.slice(..=usize::MAX), Err(Error::OutOfRange { .. })));
    assert_eq!(none.as_mut_slice().split_at(usize::MAX)?.1.len(), 0);
    let mut some = stream.buffer_zeroed::<u8>(4)?;
    for (start, end) in [(0, usize::MAX), (usize::MAX, usize::MAX), (1, usize::MAX), (usize::MAX - 1, 2)] {
        assert!(matches!(some.slice(start..end), Err(Error::OutOfRange { .. })), "{start}..{end}");
        assert!(matches!(some.slice(start..=end), Err(Error::OutOfRange { .. })), "{start}..={end}");
        assert!(some.slice_mut((std::ops::Bound::Excluded(start), std::ops::Bound::Included(end))).is_err());
    }
    Ok(())
}

#[test]
fn pinned_memory_is_a_slice_that_is_copied_from_and_to() -> Result<()> {
    let stream = stream()?;
    let mut pinned = stream.device().pinned::<f64>(1000)?;
    assert_eq!(*pinned, [0.0; 1000]);
    pinned.iter_mut().enumerate().for_each(|(i, v)| *v = i as f64);
    let buffer = stream.buffer_from(&pinned)?;
    pinned.fill(-1.0);
    assert_eq!(
        buffer.to_vec()?,
        (0..1000).map(|i| i as f64).collect::<Vec<_>>(),
        "the copy was made before the change"
    );
    let mut back = stream.device().pinned::<f64>(10)?;
    buffer.slice(5..15)?.copy_to(&mut back)?;
    assert_eq!(*back, [5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0]);
    assert_eq!(stream.device().pinned::<u8>(0)?.len(), 0);
    Ok(())
}

fn double(stream: &Stream, data: &mut Buffer<f32>) -> Result<()> {
    io::double_items::launch(stream, (8, 128), data)
}

#[test]
fn a_device_describes_itself() -> Result<()> {
    for device in [Device::auto()?, Device::emulator()] {
        let properties = device.properties();
        assert!(
            properties.max_block_threads >= 1024 && properties.max_block.x >= 1024 && properties.multiprocessors > 0
        );
        assert_eq!(properties.max_grid.x, i32::MAX as u32);
        assert_eq!(properties.compute_capability.is_some(), device.is_gpu());
        assert!(!properties.name.is_empty() && !device.reason().is_empty() && !device.reason().contains('\n'));
        assert!(!device.to_string().is_empty() && format!("{device:?}").contains(&device.to_string()));
    }
    assert!(!Device::emulator().is_gpu());
    assert_eq!(Dim3::new(3, 4, 5).at(Dim3::new(3, 4, 5).rank_of(Dim3::new(2, 1, 4))), Dim3::new(2, 1, 4));
    Ok(())
}

#[test]
fn without_a_gpu_its_device_is_an_error_that_says_why() {
    if Device::gpu_count() > 0 {
        return;
    }
    for device in [Device::gpu(), Device::gpu_at(3)] {
        let error = device.expect_err("there is none");
        let Error::NoGpu { reason, .. } = &error else { panic!("{error:?}") };
        assert!(reason.len() > 10 && !reason.contains('\n'), "{reason}");
    }
    let device = Device::auto().expect("the emulator, unless the environment asks for a GPU");
    assert!(!device.is_gpu());
}

#[test]
fn arguments_of_another_device_are_an_error() -> Result<()> {
    let Ok(gpu) = Device::gpu() else { return Ok(()) };
    let (stream, other) = (gpu.stream()?, Device::emulator().stream()?);
    let x = other.buffer_zeroed::<f32>(10)?;
    let mut out = stream.buffer_zeroed::<f32>(10)?;
    let error = io::copy::<f32, 4>::launch(&stream, (1, 32), &x, &mut out).unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, Error::WrongDevice { .. }) && text.contains("`x`") && text.contains("the emulator"),
        "{text}"
    );
    let error = out.as_mut_slice().copy_from_device(&stream, x.as_slice()).unwrap_err();
    assert!(matches!(error, Error::WrongDevice { .. }), "{error}");
    Ok(())
}

#[test]
fn emulators_with_different_options_share_buffers() -> Result<()> {
    let streams = streams()?;
    let mut data = streams[0].buffer_from(&vec![1.0f32; 100])?;
    for stream in &streams {
        double(stream, &mut data)?;
    }
    assert_eq!(data.to_vec()?, vec![2f32.powi(streams.len() as i32); 100]);
    Ok(())
}

/// Runs this program again with a value of the environment's variable, and returns what it prints about its device.
fn device_of_a_child(value: &str) -> String {
    let output = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "host::runtime::child_names_its_device", "--nocapture"])
        .env("SUITE_CHILD", "1")
        .env(kernel_primitives::DEVICE_VARIABLE, value)
        .output()
        .expect("this test runs again");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.split_once("child: ")).map(|(_, said)| said.to_owned());
    line.unwrap_or_else(|| panic!("{text}\n{}", String::from_utf8_lossy(&output.stderr)))
}

/// This is not a test. [`device_of_a_child`] runs it in a child. Only a child's environment is set, because to change
/// that of a process with other threads is unsound.
#[test]
fn child_names_its_device() {
    if std::env::var_os("SUITE_CHILD").is_some() {
        match Device::auto() {
            Ok(device) => println!("\nchild: {device:?}"),
            Err(error) => println!("\nchild: error: {error}"),
        }
    }
}

#[test]
fn the_environment_names_the_device() {
    let emulator = device_of_a_child("emulator");
    assert!(emulator.contains("emulator") && emulator.contains("KERNEL_PRIMITIVES_DEVICE asks for it"), "{emulator}");
    assert!(!device_of_a_child("").contains("error") && !device_of_a_child("auto").contains("error"));
    let gpu = device_of_a_child("gpu");
    if Device::gpu_count() == 0 {
        assert!(gpu.contains("error: no GPU: "), "the strict form does not fall back: {gpu}");
        assert!(device_of_a_child("gpu:0").contains("error: no GPU: "));
    } else {
        assert!(!gpu.contains("error"), "{gpu}");
        let missing = device_of_a_child("gpu:99");
        assert!(missing.contains("error: ") && missing.contains("99"), "{missing}");
    }
}

#[test]
fn a_device_that_makes_no_sense_is_an_error_that_says_what_does() {
    for value in
        ["cuda", "GPU", "gpu:", "gpu:x", "gpu:-1", "gpu 1", "emulator:2", " gpu", "gpu:99999999999999999999999"]
    {
        let said = device_of_a_child(value);
        assert!(said.contains(&format!("KERNEL_PRIMITIVES_DEVICE is `{value}`")), "{said}");
        assert!(said.contains("`gpu:N`") && said.contains("`emulator`"), "{said}");
    }
}

#[test]
fn buffers_streams_and_devices_can_be_shared_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<Device>();
    check::<Stream>();
    check::<Buffer<f32>>();
    check::<kernel_primitives::Event>();
    check::<kernel_primitives::PinnedBuffer<f32>>();
    check::<Error>();
    assert_eq!(threads((16, 2, 2)), 64);
}

#[test]
fn a_slice_is_set_to_zero_alone_and_again_by_a_graph() -> Result<()> {
    let stream = stream()?;
    let x = values::<u8>(100, 1);
    let mut buffer = stream.buffer_from(&x)?;
    buffer.slice_mut(3..50)?.set_zero(&stream)?;
    buffer.slice_mut(100..)?.set_zero(&stream)?;
    let zeros = |from: usize, to: usize| [&x[..from], &vec![0; to - from], &x[to..]].concat();
    assert_eq!(buffer.to_vec()?, zeros(3, 50));
    let mut flags = stream.buffer_from(&[true; 9])?;
    flags.slice_mut(1..3)?.set_zero(&stream)?;
    assert_eq!(flags.to_vec()?[..4], [true, false, false, true]);
    // The graph sets memory to zero that was never written.
    let mut sums = stream.buffer_uninit::<u64>(5)?;
    let graph = stream.capture(|stream| {
        buffer.slice_mut(7..9)?.set_zero(stream)?;
        sums.as_mut_slice().set_zero(stream)
    })?;
    for _ in 0..2 {
        buffer.copy_from(&x)?;
        graph.launch(&stream)?;
        assert_eq!(buffer.to_vec()?, zeros(7, 9));
    }
    assert_eq!(sums.to_vec()?, [0; 5]);
    let other = Device::emulator().stream()?;
    if stream.device().is_gpu() {
        let error = buffer.as_mut_slice().set_zero(&other).unwrap_err();
        assert!(matches!(error, Error::WrongDevice { .. }), "{error}");
    }
    Ok(())
}
