//! Tests the reports of a checked emulator. Each test runs a kernel with one fault in plain and in shuffled orders, and
//! the same kernel without the fault. The tests are only for the emulator, because most of these faults do something
//! unspecified on a GPU.

use kernel_primitives::simt::{Fault, FaultKind};
use kernel_primitives::{
    Accessor, Complex, Device, Diagnosis, Dim3, Dims, EmulatorOptions, Error, KernelFault, MemoryPlace, Result, Stream,
};

mod examples;
mod kernels;
mod page;
mod races;
mod unwritten;

const SEEDS: [Option<u64>; 6] = [None, Some(1), Some(2), Some(17), Some(400), Some(u64::MAX)];

fn emulator(seed: Option<u64>) -> Result<Stream> {
    let mut options = EmulatorOptions::default();
    (options.checked, options.seed) = (true, seed);
    options.deadlock_after = std::time::Duration::from_millis(50);
    Device::emulator_with(options).stream()
}

/// Returns the line that a comment marks, in either file of kernels.
fn line(mark: &str) -> u32 {
    let marker = format!("// at: {mark}\n");
    let sources = [include_str!("diagnoses/kernels.rs"), include_str!("diagnoses/kernels/races.rs")];
    let mut found = sources.iter().filter_map(|source| Some(source[..source.find(&marker)?].lines().count() as u32));
    found.next().unwrap_or_else(|| panic!("no line is marked with {marker}"))
}

/// Runs the kernel `name` in all orders, with and without its fault, and checks the common parts of all reports.
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
        let file = fault.file.replace('\\', "/");
        let is_of = |module: &str| {
            fault.kernel.starts_with(&format!("suite::diagnoses::{module}::{name}"))
                && file.ends_with(&format!("tests/suite/diagnoses/{}.rs", module.replace("::", "/")))
        };
        assert!(is_of("kernels") || is_of("kernels::races"), "{fault}");
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

/// Checks a race. The two accesses are in the order of the plain run; other runs may have them in reverse. Each access
/// has an action, and its block and thread in the plain run.
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

/// Checks a report of a read of unwritten memory.
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
    // A complex number moves by one access, which is wider than the alignment of its parts.
    let launch = |stream: &Stream, right| {
        let (parts, mut out) = (stream.buffer_from(&[1.0f32, 2.0, 3.0])?, stream.buffer_zeroed(1)?);
        let x = parts.slice(1..)?.reinterpret::<Complex<f32>>()?;
        kernels::misaligned_complex::launch(stream, (1, 64), right, x, &mut out)?;
        assert_eq!(out.to_vec()?, [Complex::new(2.0, 3.0)]);
        Ok(())
    };
    diagnose("misaligned_complex", launch, |fault, _| {
        assert_eq!(fault.line, line("misaligned_complex read"));
        assert!(fault.to_string().contains("a vector access of 8 bytes is misaligned"), "{fault}");
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

/// Blocks that several OS threads run have no order that a seed repeats.
#[test]
fn only_a_launch_on_one_os_thread_says_that_its_seed_shows_the_fault_again() -> Result<()> {
    for (checked, threads, repeats) in [(true, 2, true), (false, 1, true), (false, 2, false)] {
        let mut options = EmulatorOptions::default();
        (options.checked, options.threads, options.seed) = (checked, threads, Some(17));
        let stream = Device::emulator_with(options).stream()?;
        let (x, mut out) = (stream.buffer_zeroed(64)?, stream.buffer_zeroed(64)?);
        let launch = kernels::out_of_bounds::launch(&stream, (2, 32), false, &x, &mut out);
        let Err(Error::Fault(fault)) = launch else { panic!("no fault") };
        assert_eq!(fault.seed, repeats.then_some(17));
        assert_eq!(fault.to_string().contains("SEED=17 shows it again"), repeats, "{fault}");
    }
    Ok(())
}

/// The emulator also checks accesses that the caller promised to be inside. Without this check, they would reach memory
/// of others, or no memory.
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

/// Checks a report of diverged lanes by parts of its message and of its help.
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

/// In this reduction, only threads that still add reach the barrier. The threads that miss it race with the threads
/// that wait.
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

/// After a race, a block continues, to find if a barrier is missed. But it does not continue for ever.
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
