//! Tests reads of unwritten memory.

use kernel_primitives::{Device, Diagnosis, EmulatorOptions, MemoryPlace, Result, Stream};

use super::{argument, check_unwritten, diagnose, emulator, kernels, line, shared, thread};

#[test]
fn a_read_of_shared_memory_that_nothing_has_written_is_reported() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_zeroed(128)?;
        kernels::shared_unwritten::launch(stream, (2, 64), right, &mut out)
    };
    diagnose("shared_unwritten", launch, |fault, seed| {
        check_unwritten(fault, "shared_unwritten read", &shared("shared", 5));
        assert_eq!(fault.thread, thread(4));
        assert!(seed.is_some() || fault.block == thread(0));
        // The help names the thread that wrote the element next to it, and its place.
        let near = format!("element 4 of `shared`, by thread {}", thread(4));
        let help = fault.help.as_ref().unwrap();
        let place = format!("kernels.rs:{}:", line("shared_unwritten write"));
        assert!(help.contains(&near) && help.contains(&place), "{help}");
    })
}

#[test]
fn an_atomic_update_of_what_nothing_has_written_is_reported() -> Result<()> {
    let launch = |stream: &Stream, right| kernels::shared_unwritten_atomic::launch(stream, (1, 64), right);
    diagnose("shared_unwritten_atomic", launch, |fault, seed| {
        check_unwritten(fault, "shared_unwritten_atomic read", &shared("shared", 2));
        assert!(seed.is_some() || fault.thread == thread(63));
    })
}

#[test]
fn a_read_of_a_buffer_without_contents_is_reported() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let x = if right { stream.buffer_zeroed(100)? } else { stream.buffer_uninit(100)? };
        let mut out = stream.buffer_uninit::<f64>(100)?;
        kernels::read_all::<f64>::launch(stream, (2, 64), &x, &mut out)
    };
    diagnose("read_all::<f64>", launch, |fault, seed| {
        let element = (fault.block.x * 64 + fault.thread.x) as usize;
        check_unwritten(fault, "read_all read", &argument("x", element, 0));
        assert!(seed.is_some() || element == 0);
        assert!(fault.help.as_ref().is_some_and(|help| help.contains("buffer_zeroed")), "{fault}");
    })
}

#[test]
fn what_the_host_has_written_of_a_buffer_can_be_read() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut x = stream.buffer_uninit(100)?;
        let written = if right { 100 } else { 93 };
        x.slice_mut(..written)?.copy_from(&vec![1; written])?;
        let mut out = stream.buffer_uninit::<u32>(50)?;
        kernels::read_all::<u32>::launch(stream, (2, 16), x.slice(50..)?, &mut out)
    };
    diagnose("read_all::<u32>", launch, |fault, seed| {
        let Diagnosis::Unwritten { memory: MemoryPlace::Argument { element: 43..50, byte: 0, .. } } = &fault.diagnosis
        else {
            panic!("{fault}")
        };
        if seed.is_none() {
            check_unwritten(fault, "read_all read", &argument("x", 43, 0));
            assert_eq!((fault.block, fault.thread), (thread(0), thread(11)));
        }
    })
}

#[test]
fn a_word_of_which_some_bytes_are_written_is_reported_by_the_byte() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut x = stream.buffer_uninit::<u32>(8)?;
        x.slice_mut(..2)?.copy_from(&[1, 2])?;
        let bytes = stream.buffer_zeroed::<u8>(24)?;
        let written = if right { 24 } else { 15 };
        let target = x.slice_mut(2..)?.reinterpret::<u8>()?.into_slice(..written)?;
        kernels::read_all::<u8>::launch(stream, (1, 32), bytes.slice(..written)?, target)?;
        let mut out = stream.buffer_uninit::<u32>(6)?;
        kernels::read_all::<u32>::launch(stream, (1, 6), x.slice(2..)?, &mut out)
    };
    diagnose("read_all::<u32>", launch, |fault, seed| {
        if seed.is_none() {
            check_unwritten(fault, "read_all read", &argument("x", 3, 3));
            assert_eq!(fault.thread, thread(3));
        }
    })
}

#[test]
fn a_kernel_can_read_what_it_has_written_of_a_buffer_without_contents() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_uninit(64)?;
        kernels::write_half::launch(stream, (2, 32), right, &mut out)
    };
    diagnose("write_half", launch, |fault, seed| {
        let element = (fault.block.x * 32 + fault.thread.x) as usize;
        check_unwritten(fault, "write_half read", &argument("out", element, 0));
        assert_eq!(element % 2, 1);
        assert!(seed.is_some() || element == 1);
    })
}

#[test]
fn copies_carry_what_was_not_written() -> Result<()> {
    for in_graph in [false, true] {
        let launch = |stream: &Stream, right: bool| {
            let mut x = stream.buffer_uninit::<u32>(64)?;
            let written = if right { 64 } else { 30 };
            x.slice_mut(..written)?.copy_from(&vec![1; written])?;
            let (mut copy, mut out) = (stream.buffer_zeroed(64)?, stream.buffer_zeroed(64)?);
            let mut work = |stream: &Stream| {
                copy.as_mut_slice().copy_from_device(stream, x.as_slice())?;
                kernels::read_all::<u32>::launch(stream, (1, 64), &copy, &mut out)
            };
            if in_graph { stream.capture(work)?.launch(stream) } else { work(stream) }
        };
        diagnose("read_all::<u32>", launch, |fault, seed| {
            if seed.is_none() {
                check_unwritten(fault, "read_all read", &argument("x", 30, 0));
            }
        })?;
    }
    Ok(())
}

#[test]
fn an_unchecked_launch_counts_as_one_that_writes_all() -> Result<()> {
    let mut options = EmulatorOptions::default();
    options.checked = false;
    let unchecked = Device::emulator_with(options).stream()?;
    let x = unchecked.buffer_zeroed::<u32>(64)?;
    let (mut y, mut out) = (unchecked.buffer_uninit(64)?, unchecked.buffer_uninit(64)?);
    kernels::read_all::<u32>::launch(&unchecked, (1, 64), &x, &mut y)?;
    kernels::read_all::<u32>::launch(&emulator(None)?, (1, 64), &y, &mut out)
}
