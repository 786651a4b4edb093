//! What a checked emulator reports: each test runs a kernel with one fault, in plain and in shuffled orders, and the same
//! kernel without it. Always of the emulator: most of these faults do something unspecified on a GPU.

mod kernels;
mod page;

use kernel_primitives::simt::{Fault, FaultKind};
use kernel_primitives::{
    Accessor, Buffer, Device, Diagnosis, Dim3, Dims, EmulatorOptions, Error, KernelFault, MemoryPlace, Result, Stream,
};

const SEEDS: [Option<u64>; 6] = [None, Some(1), Some(2), Some(17), Some(400), Some(u64::MAX)];

fn emulator(seed: Option<u64>) -> Result<Stream> {
    let mut options = EmulatorOptions::default();
    (options.checked, options.seed) = (true, seed);
    options.deadlock_after = std::time::Duration::from_millis(50);
    Device::emulator_with(options).stream()
}

/// The line that a comment marks.
fn line(mark: &str) -> u32 {
    let marker = format!("// at: {mark}\n");
    let source = include_str!("diagnoses/kernels.rs");
    let at = source.find(&marker).unwrap_or_else(|| panic!("no line is marked with {marker}"));
    source[..at].lines().count() as u32
}

/// Runs the kernel `name` in all orders, right and not, and checks what all reports have.
fn diagnose(
    name: &str,
    launch: impl Fn(&Stream, bool) -> Result<()>,
    check: impl Fn(&KernelFault, Option<u64>),
) -> Result<()> {
    for seed in SEEDS {
        let stream = emulator(seed)?;
        launch(&stream, true)?;
        let fault = match launch(&stream, false) {
            Err(Error::Fault(fault)) => *fault,
            other => panic!("expected a fault of {name} with seed {seed:?}, got {other:?}"),
        };
        assert!(fault.kernel.starts_with(&format!("suite::diagnoses::kernels::{name}")), "{fault}");
        assert!(fault.file.replace('\\', "/").ends_with("tests/suite/diagnoses/kernels.rs"), "{fault}");
        assert_eq!(fault.seed, seed);
        let text = fault.to_string();
        assert!(text.contains(&format!("in `{}`", fault.kernel)), "{text}");
        assert!(text.contains(&format!("{}:{}:{}", fault.file, fault.line, fault.column)), "{text}");
        assert!(text.contains(&format!("by thread {} of block {}", fault.thread, fault.block)), "{text}");
        match seed {
            Some(seed) => assert!(text.ends_with(&format!("KERNEL_PRIMITIVES_SEED={seed} shows it again")), "{text}"),
            None => assert!(!text.contains("SEED"), "{text}"),
        }
        check(&fault, seed);
        // The next launch works.
        launch(&stream, true)?;
    }
    Ok(())
}

/// Checks a race: the two accesses in the order of the plain run, of which others may show the reverse; each as an action
/// and a thread and block of the plain order.
#[track_caller]
fn check_race(fault: &KernelFault, seed: Option<u64>, name: &str, accesses: [(&str, [u32; 2]); 2], memory: &str) {
    let Diagnosis::DataRace { earlier, action, memory: place } = &fault.diagnosis else { panic!("{fault}") };
    let Accessor { line: earlier_line, .. } = earlier;
    let mut found = [(earlier.action.to_string(), *earlier_line), (action.to_string(), fault.line)];
    let mut expected = accesses.map(|(action, _)| (action.to_owned(), line(&format!("{name} {action}"))));
    if seed.is_some() {
        found.sort();
        expected.sort();
    }
    assert_eq!(found, expected, "{fault}");
    assert_ne!((earlier.block, earlier.thread), (fault.block, fault.thread), "{fault}");
    if seed.is_none() {
        let expected = accesses.map(|(_, [block, thread])| (Dim3::new(block, 0, 0), Dim3::new(thread, 0, 0)));
        assert_eq!([(earlier.block, earlier.thread), (fault.block, fault.thread)], expected, "{fault}");
        assert_eq!(place.to_string(), memory);
    }
    let text = fault.to_string();
    assert!(text.starts_with("data race in ") && text.contains("\n  help: "), "{text}");
    assert!(text.contains(&format!("{}:{}:{}", earlier.file, earlier.line, earlier.column)), "{text}");
    assert!(text.contains(&format!("\n  memory: {place}\n")), "{text}");
}

/// Checks a read of what nothing has written.
#[track_caller]
fn check_unwritten(fault: &KernelFault, mark: &str, memory: &MemoryPlace) {
    assert_eq!(fault.diagnosis, Diagnosis::Unwritten { memory: memory.clone() }, "{fault}");
    assert_eq!(fault.line, line(mark), "{fault}");
    let text = fault.to_string();
    assert!(text.contains("memory that nothing has written") && text.contains(&format!("memory: {memory}")), "{text}");
}

fn raised(kind: FaultKind, args: [u64; 2]) -> Diagnosis {
    Diagnosis::Raised(Fault { kind, args })
}

fn argument(name: &'static str, element: usize, byte: usize) -> MemoryPlace {
    MemoryPlace::Argument { name, element, byte }
}

fn shared(name: &'static str, element: usize) -> MemoryPlace {
    MemoryPlace::Shared { name: Some(name), element: Some(element), byte: 0 }
}

fn thread(x: u32) -> Dim3 {
    Dim3::new(x, 0, 0)
}

#[test]
fn a_read_without_a_barrier_after_the_write_is_a_race() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_zeroed(128)?;
        kernels::shared_write_read::launch(stream, (2, 64), right, &mut out)
    };
    diagnose("shared_write_read", launch, |fault, seed| {
        // Thread 0 reads before thread 1 writes.
        let accesses = [("read", [0, 0]), ("write", [0, 1])];
        check_race(fault, seed, "shared_write_read", accesses, "element 1 of `shared`");
        assert!(fault.to_string().starts_with("data race in shared memory in `"), "{fault}");
        assert!(fault.help.as_ref().is_some_and(|help| help.contains("put `cx.barrier()`")), "{fault}");
    })
}

#[test]
fn two_writes_of_one_word_of_shared_memory_are_a_race() -> Result<()> {
    let launch = |stream: &Stream, right| kernels::shared_write_write::launch(stream, (2, 64), right);
    diagnose("shared_write_write", launch, |fault, seed| {
        let accesses = [("write", [0, 0]), ("write", [0, 1])];
        check_race(fault, seed, "shared_write_write", accesses, "element 0 of `shared`");
    })
}

#[test]
fn a_write_without_a_barrier_after_the_read_is_a_race() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_zeroed(128)?;
        kernels::shared_read_write::launch(stream, (2, 64), right, &mut out)
    };
    diagnose("shared_read_write", launch, |fault, seed| {
        // Thread 63 comes to the barrier last and goes on first: it reads what thread 0 writes then.
        let accesses = [("read", [0, 63]), ("write", [0, 0])];
        check_race(fault, seed, "shared_read_write", accesses, "element 0 of `shared`");
    })
}

#[test]
fn races_are_found_by_the_byte() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_zeroed(64)?;
        kernels::shared_bytes::launch(stream, (1, 64), right, &mut out)
    };
    diagnose("shared_bytes", launch, |fault, seed| {
        let accesses = [("read", [0, 0]), ("write", [0, 1])];
        check_race(fault, seed, "shared_bytes", accesses, "element 1 of `shared`");
    })
}

#[test]
fn lanes_of_a_warp_race_without_a_warp_barrier_whatever_they_shuffle() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_zeroed(64)?;
        kernels::warp_without_sync::launch(stream, (1, 64), right, &mut out)
    };
    diagnose("warp_without_sync", launch, |fault, seed| {
        // Lane 31 comes to the shuffle last and goes on first.
        let accesses = [("write", [0, 30]), ("read", [0, 31])];
        check_race(fault, seed, "warp_without_sync", accesses, "element 30 of `shared`");
        assert!(fault.help.as_ref().is_some_and(|help| help.contains("cx.sync_warp(mask)")), "{fault}");
    })
}

#[test]
fn a_warp_barrier_orders_the_lanes_of_its_mask_only() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_zeroed(32)?;
        kernels::warp_wrong_mask::launch(stream, (1, 32), right, &mut out)
    };
    diagnose("warp_wrong_mask", launch, |fault, seed| {
        let Diagnosis::DataRace { earlier, .. } = &fault.diagnosis else { panic!("{fault}") };
        assert_eq!(earlier.thread.x ^ fault.thread.x, 16, "{fault}");
        // The lower half goes on before the upper one begins.
        let accesses = [("read", [0, 0]), ("write", [0, 16])];
        check_race(fault, seed, "warp_wrong_mask", accesses, "element 16 of `shared`");
    })
}

#[test]
fn an_atomic_races_with_a_plain_read() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_zeroed(2)?;
        kernels::atomic_against_plain::launch(stream, (2, 64), right, &mut out)?;
        assert_eq!(out.to_vec()?, [64, 64]);
        Ok(())
    };
    diagnose("atomic_against_plain", launch, |fault, seed| {
        let accesses = [("atomic update", [0, 63]), ("read", [0, 0])];
        check_race(fault, seed, "atomic_against_plain", accesses, "element 0 of `shared`");
        assert!(fault.help.as_ref().is_some_and(|help| help.contains("atomic")), "{fault}");
    })
}

#[test]
fn two_blocks_that_write_one_element_race() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_zeroed(40)?;
        kernels::blocks_share_an_element::launch(stream, (4, 32), right, out.slice_mut(10..20)?)
    };
    diagnose("blocks_share_an_element", launch, |fault, seed| {
        let accesses = [("write", [0, 0]), ("write", [1, 0])];
        check_race(fault, seed, "blocks_share_an_element", accesses, "element 0 of `out`");
        assert!(fault.to_string().starts_with("data race in global memory in `"), "{fault}");
        assert!(fault.help.as_ref().is_some_and(|help| help.contains("blocks run in no order")), "{fault}");
    })
}

#[test]
fn threads_of_a_block_race_in_global_memory_too() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_zeroed(128)?;
        kernels::global_write_read::launch(stream, (2, 64), right, &mut out)
    };
    diagnose("global_write_read", launch, |fault, seed| {
        let accesses = [("read", [0, 0]), ("write", [0, 1])];
        check_race(fault, seed, "global_write_read", accesses, "element 1 of `out`");
    })
}

/// Checks the race of a chain of blocks.
fn check_relay(
    name: &str,
    launch: impl Fn(&Stream, bool, &mut Buffer<u32>, &mut Buffer<u64>) -> Result<()>,
) -> Result<()> {
    let launch = |stream: &Stream, right| {
        let (mut flags, mut sums) = (stream.buffer_zeroed(20)?, stream.buffer_zeroed(20)?);
        launch(stream, right, &mut flags, &mut sums)?;
        let expected: Vec<u64> = (0..20).map(|block| block * (block + 1) / 2).collect();
        assert_eq!(sums.to_vec()?, expected);
        Ok(())
    };
    diagnose(name, launch, |fault, seed| {
        let accesses = [("write", [0, 0]), ("read", [1, 0])];
        check_race(fault, seed, "relay", accesses, "element 0 of `sums`");
    })
}

#[test]
fn a_look_back_needs_a_fence_before_the_flag() -> Result<()> {
    check_relay("look_back_without_fence", |stream, right, flags, sums| {
        kernels::look_back_without_fence::launch(stream, (20, 32), right, flags, sums)
    })
}

#[test]
fn a_look_back_needs_a_fence_after_the_flag() -> Result<()> {
    check_relay("look_back_without_second_fence", |stream, right, flags, sums| {
        kernels::look_back_without_second_fence::launch(stream, (20, 32), right, flags, sums)
    })
}

#[test]
fn a_fence_for_the_block_does_not_reach_another() -> Result<()> {
    check_relay("fence_too_narrow", |stream, right, flags, sums| {
        kernels::fence_too_narrow::launch(stream, (20, 32), right, flags, sums)
    })
}

#[test]
fn a_release_orders_nothing_without_an_acquire() -> Result<()> {
    check_relay("release_without_acquire", |stream, right, flags, sums| {
        kernels::release_without_acquire::launch(stream, (20, 32), right, flags, sums)
    })
}

#[test]
fn an_acquire_orders_nothing_without_a_release() -> Result<()> {
    check_relay("acquire_without_release", |stream, right, flags, sums| {
        kernels::acquire_without_release::launch(stream, (20, 32), right, flags, sums)
    })
}

#[test]
fn the_last_block_sees_what_was_fenced_before_the_count() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let (mut count, mut parts) = (stream.buffer_zeroed(1)?, stream.buffer_zeroed(100)?);
        kernels::last_block::launch(stream, (100, 64), right, &mut count, &mut parts)?;
        assert_eq!(parts.to_vec()?, [2; 100]);
        Ok(())
    };
    diagnose("last_block", launch, |fault, seed| {
        let Diagnosis::DataRace { earlier, .. } = &fault.diagnosis else { panic!("{fault}") };
        assert_eq!(earlier.line, line("last_block write"), "{fault}");
        assert_eq!(fault.line, line("last_block read"), "{fault}");
        assert_ne!(earlier.block, fault.block, "{fault}");
        assert!(seed.is_some() || fault.block == thread(99), "{fault}");
    })
}

#[test]
fn a_lock_orders_what_it_guards_if_it_acquires_and_releases() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let (mut lock, mut count) = (stream.buffer_zeroed(1)?, stream.buffer_zeroed(1)?);
        kernels::locked_counter::launch(stream, (6, 40), right, &mut lock, &mut count)?;
        assert_eq!(count.to_vec()?, [240]);
        Ok(())
    };
    diagnose("locked_counter", launch, |fault, seed| {
        let accesses = [("write", [0, 0]), ("read", [0, 1])];
        check_race(fault, seed, "locked_counter", accesses, "element 0 of `count`");
    })
}

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
        // Who wrote next to it, and where.
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

#[test]
fn a_vector_access_that_is_not_aligned_is_reported() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let (x, mut out) = (stream.buffer_from(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])?, stream.buffer_zeroed(4)?);
        kernels::misaligned_vector::launch(stream, (1, 64), right, &x, &mut out)?;
        assert_eq!(out.to_vec()?, [5.0, 6.0, 7.0, 8.0]);
        Ok(())
    };
    diagnose("misaligned_vector", launch, |fault, _| {
        let Diagnosis::Raised(Fault { kind: FaultKind::Misaligned, args: [address, 16] }) = fault.diagnosis else {
            panic!("{fault}")
        };
        assert_eq!((address % 16, fault.line), (12, line("misaligned_vector read")));
        assert_eq!(fault.thread, thread(5));
        assert!(
            fault.help.is_some() && fault.to_string().contains("a vector access of 16 bytes is misaligned"),
            "{fault}"
        );
    })?;
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_zeroed(4)?;
        kernels::misaligned_vector_write::launch(stream, (1, 64), right, &mut out)?;
        assert_eq!(out.to_vec()?, [0.0, 0.0, 1.0, 2.0]);
        Ok(())
    };
    diagnose("misaligned_vector_write", launch, |fault, _| {
        assert_eq!(fault.line, line("misaligned_vector_write write"));
        assert!(fault.to_string().contains("a vector access of 8 bytes is misaligned"), "{fault}");
    })
}

#[test]
fn an_index_outside_is_reported() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let (x, mut out) = (stream.buffer_zeroed(64)?, stream.buffer_zeroed(64)?);
        kernels::out_of_bounds::launch(stream, (2, 32), right, &x, &mut out)
    };
    diagnose("out_of_bounds", launch, |fault, _| {
        assert_eq!(fault.diagnosis, raised(FaultKind::OutOfBounds, [64, 64]));
        assert_eq!((fault.block, fault.thread), (thread(1), thread(31)));
        assert_eq!(fault.line, line("out_of_bounds read"));
        assert!(fault.to_string().starts_with("index 64 is out of bounds: `x` has 64 elements\n"), "{fault}");
        assert!(fault.help.as_ref().is_some_and(|help| help.contains("cx.items(view.len())")), "{fault}");
    })
}

/// Whoever promises that an access lies inside is not believed: without a check there would be memory of others, or of nobody.
#[test]
fn an_access_that_was_promised_to_lie_inside_is_reported() -> Result<()> {
    for how in [0, 1, 2, 3, 5, 6] {
        let launch = |stream: &Stream, right| {
            let (x, mut out) = (stream.buffer_from(&[7u32; 128])?, stream.buffer_zeroed(128)?);
            kernels::outside_by_contract::launch(stream, (1, 32), right, how, x.slice(..64)?, out.slice_mut(..64)?)
        };
        diagnose("outside_by_contract", launch, |fault, _| {
            let index = if how == 2 { 1 << 40 } else { 64 };
            assert_eq!(fault.diagnosis, raised(FaultKind::OutOfBounds, [index, 64]), "{how}: {fault}");
            assert_eq!(fault.line, line(&format!("outside_by_contract {how}")), "{how}: {fault}");
        })?;
    }
    Ok(())
}

#[test]
fn a_vector_that_was_promised_to_be_aligned_is_reported() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let (x, mut out) = (stream.buffer_from(&[7u32; 64])?, stream.buffer_zeroed(64)?);
        kernels::misaligned_by_contract::launch(stream, (1, 32), right, &x, &mut out)
    };
    diagnose("misaligned_by_contract", launch, |fault, _| {
        assert_eq!(fault.line, line("misaligned_by_contract read"));
        assert!(fault.to_string().contains("a vector access of 16 bytes is misaligned"), "{fault}");
    })
}

/// Checks a report of diverged lanes: parts of its message and of the help.
#[track_caller]
fn check_divergence(fault: &KernelFault, mark: &str, parts: &[&str], advice: &str) {
    let Diagnosis::Divergence { message } = &fault.diagnosis else { panic!("{fault}") };
    assert!(parts.iter().all(|part| message.contains(part)), "{fault}");
    assert_eq!(fault.line, line(mark), "{fault}");
    assert!(fault.help.as_ref().is_some_and(|help| help.contains(advice)), "{fault}");
}

#[test]
fn a_barrier_that_some_threads_never_reach_is_reported() -> Result<()> {
    let launch = |stream: &Stream, right| kernels::partial_barrier::launch(stream, (2, 64), right);
    diagnose("partial_barrier", launch, |fault, _| {
        let parts = ["at a barrier that thread (40, 0, 0) and 23 more never reached: they have finished"];
        check_divergence(fault, "partial_barrier barrier", &parts, "out of the branch");
        assert_eq!(fault.thread, thread(0));
    })
}

/// A reduction whose barrier only those reach who still add. The threads that miss it race with those that wait.
#[test]
fn a_barrier_in_a_branch_is_reported_with_the_race_that_comes_of_it() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_zeroed(2)?;
        kernels::barrier_in_branch::launch(stream, (2, 64), right, &mut out)
    };
    diagnose("barrier_in_branch", launch, |fault, seed| {
        let parts = ["thread (0, 0, 0) and ", " wait at a barrier that ", " never reached: ", "have finished"];
        check_divergence(fault, "barrier_in_branch barrier", &parts, "out of the branch");
        let help = fault.help.as_ref().unwrap();
        let places =
            ["write", "read"].map(|access| format!("kernels.rs:{}:", line(&format!("barrier_in_branch {access}"))));
        assert!(help.contains("race for element 0 of `shared`: ") || seed.is_some(), "{help}");
        assert!(help.contains(" race for ") && help.contains(&places[0]) && help.contains(&places[1]), "{help}");
        if seed.is_none() {
            assert!(fault.to_string().starts_with(
                "thread (0, 0, 0) and 31 more wait at a barrier that thread (32, 0, 0) and 31 more never reached: they have finished\n"
            ), "{fault}");
        }
    })?;
    let launch = |stream: &Stream, right| kernels::two_barriers_in_branches::launch(stream, (2, 64), right);
    diagnose("two_barriers_in_branches", launch, |fault, _| {
        let one = format!("kernels.rs:{}:", line("two_barriers_in_branches one"));
        let other = format!("kernels.rs:{}:", line("two_barriers_in_branches other"));
        let Diagnosis::Divergence { message } = &fault.diagnosis else { panic!("{fault}") };
        assert!(
            message.contains("different barriers") && message.contains(&one) && message.contains(&other),
            "{fault}"
        );
        assert!(fault.help.as_ref().is_some_and(|help| help.contains(" race for element ")), "{fault}");
    })
}

/// A block goes on after a race, to see whether a barrier is missed; not for ever.
#[test]
fn a_race_is_reported_although_the_kernel_never_ends_after_it() -> Result<()> {
    for spin in [false, true] {
        let launch = |stream: &Stream, right| kernels::race_before_a_wait::launch(stream, (1, 64), right, spin);
        diagnose("race_before_a_wait", launch, |fault, _| {
            assert!(matches!(&fault.diagnosis, Diagnosis::DataRace { .. }), "{fault}");
        })?;
    }
    Ok(())
}

#[test]
fn a_race_beside_an_unwritten_read_is_no_divergence_at_a_barrier_of_all() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_zeroed(1)?;
        kernels::race_after_unwritten::launch(stream, (1, 64), right, &mut out)
    };
    diagnose("race_after_unwritten", launch, |fault, _| {
        assert!(matches!(&fault.diagnosis, Diagnosis::DataRace { .. }), "{fault}");
        assert_eq!(fault.line, line("race_after_unwritten write"), "{fault}");
    })
}

#[test]
fn an_access_outside_shared_memory_names_the_parameter() -> Result<()> {
    let run = |which| {
        let launch = move |stream: &Stream, right| {
            let mut out = stream.buffer_zeroed(1)?;
            kernels::outside_shared::launch(stream, Dims::new(1, 1).shared_bytes(21), right, which, &mut out)
        };
        move |text: &str, name: &str, start: Option<MemoryPlace>| {
            diagnose("outside_shared", launch, |fault, _| {
                assert_eq!(fault.view.clone().map(|view| (view.name, view.start)), Some((name, start.clone())));
                assert!(fault.to_string().starts_with(&format!("{text}\n")), "{fault}");
                assert_eq!(fault.line, line(&format!("outside_shared {which}")), "{fault}");
            })
        }
    };
    run(0)("index 4 is out of bounds: `second` has 4 elements", "second", None)?;
    run(1)("index 10 is out of bounds: `rest` has 10 elements", "rest", None)?;
    let text = "index 2 is out of bounds: the view from element 1 of `second` on has 2 elements";
    run(2)(text, "second", Some(shared("second", 1)))
}

#[test]
fn a_read_of_the_rest_of_shared_memory_names_it() -> Result<()> {
    let stream = emulator(None)?;
    let mut out = stream.buffer_zeroed(1)?;
    let dims = Dims::new(1, 1).shared_bytes(21);
    let Err(Error::Fault(fault)) = kernels::outside_shared::launch(&stream, dims, true, 3, &mut out) else {
        panic!("a read of what nothing has written is a fault");
    };
    check_unwritten(&fault, "outside_shared unwritten", &shared("rest", 0));
    Ok(())
}

#[test]
fn a_view_that_is_a_part_of_an_argument_is_named_by_its_start() -> Result<()> {
    let stream = emulator(None)?;
    let (x, mut out) = (stream.buffer_zeroed::<f32>(6)?, stream.buffer_zeroed::<f32>(4)?);
    let launch = kernels::outside_a_row::launch(&stream, (1, 32), &x, &mut out);
    let Err(Error::Fault(fault)) = launch else { panic!("a fault") };
    let text = "index 3 is out of bounds: the view from element 3 of `x` on has 3 elements\n";
    assert!(fault.to_string().starts_with(text), "{fault}");
    Ok(())
}

#[test]
fn threads_that_meet_at_different_barriers_are_reported_with_both_places() -> Result<()> {
    let launch = |stream: &Stream, right| kernels::different_barriers::launch(stream, (2, 64), right);
    diagnose("different_barriers", launch, |fault, _| {
        let other = format!("kernels.rs:{}:", line("different_barriers other"));
        check_divergence(fault, "different_barriers one", &["different barriers", &other], "same barriers");
    })
}

#[test]
fn a_shuffle_that_some_lanes_never_reach_is_reported() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_zeroed(32)?;
        kernels::divergent_shuffle::launch(stream, (1, 32), right, &mut out)
    };
    diagnose("divergent_shuffle", launch, |fault, _| {
        let parts = ["in a shuffle over lanes 0xffffffff that thread (16, 0, 0) and 15 more never reached"];
        check_divergence(fault, "divergent_shuffle shuffle", &parts, "cx.ballot");
    })
}

#[test]
fn a_mask_of_lanes_that_do_not_exist_is_reported() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_zeroed(40)?;
        kernels::absent_lanes::launch(stream, (1, 40), right, &mut out)
    };
    diagnose("absent_lanes", launch, |fault, seed| {
        let parts = ["a ballot over lanes 0xffffffff names lanes that do not exist: the warp has lanes 0x000000ff"];
        check_divergence(fault, "absent_lanes ballot", &parts, "cx.warp_mask()");
        assert!(seed.is_some() || fault.thread == thread(32), "{fault}");
    })
}

#[test]
fn a_shuffle_from_a_lane_outside_its_mask_is_reported() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_zeroed(32)?;
        kernels::shuffle_from_outside::launch(stream, (1, 32), right, &mut out)
    };
    diagnose("shuffle_from_outside", launch, |fault, _| {
        let parts = ["over lanes 0x0000ffff, lane 15 reads lane 16, which takes no part"];
        check_divergence(fault, "shuffle_from_outside shuffle", &parts, "widen the mask");
        assert_eq!(fault.thread, thread(15));
    })
}

#[test]
fn a_wait_for_what_nobody_writes_is_reported() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut flag = stream.buffer_zeroed(1)?;
        kernels::deadlock::launch(stream, (2, 32), right, &mut flag)
    };
    diagnose("deadlock", launch, |fault, _| {
        assert!(matches!(&fault.diagnosis, Diagnosis::Deadlock { message } if message.contains("spin")), "{fault}");
        assert_eq!(fault.line, line("deadlock spin"));
        assert!(fault.help.as_ref().is_some_and(|help| help.contains("deadlock_after")), "{fault}");
    })
}

#[cfg(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
#[test]
fn a_lane_that_uses_up_its_stack_is_reported() -> Result<()> {
    let launch = |stream: &Stream, right| kernels::stack_overflow::launch(stream, (1, 64), right);
    diagnose("stack_overflow", launch, |fault, _| {
        assert_eq!(fault.diagnosis, Diagnosis::StackOverflow { limit: 256 << 10 });
        assert_eq!(fault.thread, thread(5));
        assert!(fault.help.as_ref().is_some_and(|help| help.contains("stack_bytes")), "{fault}");
    })
}

#[test]
fn a_panic_is_reported_with_its_message() -> Result<()> {
    let launch = |stream: &Stream, right| kernels::panics::launch(stream, (1, 64), right);
    diagnose("panics", launch, |fault, _| {
        assert_eq!(fault.diagnosis, Diagnosis::Panicked { message: "thread 5 of 64".into() });
        assert_eq!((fault.thread, fault.line), (thread(5), line("panics panic")));
    })
}

#[test]
fn a_division_by_zero_is_reported() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let (x, mut out) = (stream.buffer_zeroed(32)?, stream.buffer_zeroed(32)?);
        kernels::division::launch(stream, (1, 32), right, &x, &mut out)
    };
    diagnose("division", launch, |fault, _| {
        assert!(fault.to_string().contains("divide by zero"), "{fault}");
        assert_eq!(fault.line, line("division division"));
    })
}

#[test]
fn a_fault_of_the_authors_own_is_reported() -> Result<()> {
    let launch = |stream: &Stream, right| kernels::own_fault::launch(stream, (1, 64), right);
    diagnose("own_fault", launch, |fault, _| {
        assert_eq!(fault.diagnosis, raised(FaultKind::User, [42, 0]));
        assert_eq!((fault.thread, fault.line), (thread(5), line("own_fault fault")));
    })
}

/// A block of code of the page, without the lines that the page hides, and the report below it.
struct Example {
    code: String,
    report: std::ops::Range<usize>,
}

/// The kernels of the page and where their reports are.
fn examples(page: &str) -> Vec<Example> {
    let mut examples = Vec::new();
    let mut rest = 0;
    while let Some(at) = page[rest..].find("```\n\n```text\n") {
        let end = rest + at;
        let begin = page[..end].rfind("```\n").unwrap() + "```\n".len();
        let code =
            page[begin..end].lines().filter(|line| !line.starts_with("# ")).map(|line| format!("{line}\n")).collect();
        let report = end + "```\n\n```text\n".len();
        rest = report + page[report..].find("```").unwrap();
        examples.push(Example { code, report: report..rest });
    }
    examples
}

/// The launch of a kernel of the page.
fn run_example(kernel: &str, stream: &Stream) -> Result<()> {
    let x = stream.buffer_from(&[1.0f32; 65])?;
    let mut out = stream.buffer_zeroed::<f32>(65)?;
    let mut words = stream.buffer_zeroed::<u32>(64)?;
    match kernel {
        "rotate" => page::rotate::launch(stream, (1, 64), &mut words),
        "block_sums" => {
            page::block_sums::launch(stream, (1, 64), &x, &mut out)?;
            page::block_sums::launch(stream, (2, 64), &stream.buffer_from(&[1.0; 128])?, &mut out)
        }
        "running_sum" => page::running_sum::launch(stream, (10, 1), &x, &mut words, &mut out),
        "smooth" => page::smooth::launch(stream, (1, 64), &x, out.slice_mut(..64)?),
        "accumulate" => page::accumulate::launch(stream, (1, 64), &x, &mut stream.buffer_uninit(65)?),
        "reverse_quads" => {
            let mut quads = stream.buffer_zeroed(16)?;
            page::reverse_quads::launch(stream, (1, 16), x.slice(..64)?, &mut quads)?;
            page::reverse_quads::launch(stream, (1, 16), x.slice(1..)?, &mut quads)
        }
        "differences" => page::differences::launch(stream, (1, 65), &x, &mut out),
        "sums_of_halves" => page::sums_of_halves::launch(stream, (1, 64), &x, &mut out),
        "sum_of_64" => page::sum_of_64::launch(stream, (1, 64), &x, &mut out),
        "largest_of_pairs" => {
            page::largest_of_pairs::launch(stream, (1, 64), &stream.buffer_zeroed(64)?, &mut words)?;
            page::largest_of_pairs::launch(stream, (1, 48), &stream.buffer_zeroed(64)?, words.slice_mut(..48)?)
        }
        "wait_for_all" => page::wait_for_all::launch(stream, (2, 32), &mut words),
        "shares" => {
            let (people, amounts) = (stream.buffer_zeroed::<i32>(64)?, stream.buffer_zeroed::<i32>(64)?);
            page::shares::launch(stream, (1, 64), &amounts, &people, &mut stream.buffer_uninit(64)?)
        }
        other => panic!("the page has a kernel {other} that no test launches"),
    }
}

/// To write the reports into the page: `UPDATE_DEBUGGING_PAGE=1 cargo test --test suite the_page`.
#[test]
fn the_page_on_debugging_shows_what_is_reported() -> Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/debugging.md");
    let mut text = include_str!("../../docs/debugging.md").replace('\r', "");
    let source = include_str!("diagnoses/page.rs").replace('\r', "");
    let update = std::env::var_os("UPDATE_DEBUGGING_PAGE").is_some();
    let examples = examples(&text);
    assert_eq!(examples.len(), source.matches("#[kernel]").count());
    // From the end, so that the places of the others stay.
    for Example { code, report } in examples.into_iter().rev() {
        let begin = source.find(&code).unwrap_or_else(|| panic!("not in page.rs:\n{code}"));
        let lines_before = source[..begin].lines().count() as u32;
        let kernel = code.split("fn ").nth(1).and_then(|rest| rest.split('(').next()).expect("a function");
        let Err(Error::Fault(fault)) = run_example(kernel, &emulator(None)?) else { panic!("{kernel} has no fault") };
        let mut shown = format!("{fault:?}").trim_start().replace("suite::diagnoses::page::", "my_crate::kernels::");
        // The page counts lines from the kernel's first one.
        let file = fault.file.as_str();
        for line in (1..=source.lines().count() as u32).rev() {
            let here = format!("src/kernels.rs:{}:", line.wrapping_sub(lines_before));
            shown = shown.replace(&format!("{file}:{line}:"), &here);
        }
        if update {
            text.replace_range(report, &shown);
        } else {
            assert_eq!(text[report], shown, "of {kernel}; the test tells how to update the page");
        }
    }
    if update {
        std::fs::write(path, text).expect("the page is written");
    }
    Ok(())
}
