//! Tests that a kernel's mistake comes back as an error with its place, and that the next launch works.

use kernel_primitives::functor::BinaryFn;
use kernel_primitives::input::permutation;
use kernel_primitives::simt::{Fault, FaultKind};
use kernel_primitives::{Device, Diagnosis, Dim3, Dims, Error, KernelFault, Result, Stream};

use crate::kernels::faults as kernels;
use crate::support::{stream, streams};

mod divergence;
mod streams;

/// Returns the fault of a launch. On the emulator, it comes from the launch itself; on a GPU, from the synchronisation.
fn run_expecting_fault(stream: &Stream, launch: impl FnOnce(&Stream) -> Result<()>) -> KernelFault {
    match launch(stream).and_then(|()| stream.synchronize()) {
        Err(Error::Fault(fault)) => *fault,
        other => panic!("expected a fault, got {other:?}"),
    }
}

/// Returns the line of the kernel that a comment marks.
fn marked_line(name: &str) -> u32 {
    let marker = format!("// fault: {name}\n");
    let source = include_str!("kernels/faults.rs");
    let at = source.find(&marker).unwrap_or_else(|| panic!("no line is marked with {marker}"));
    source[..at].lines().count() as u32
}

/// Checks kernel, file and line, and that the stream still works.
fn check_place(stream: &Stream, fault: &KernelFault, name: &str) -> Result<()> {
    assert_eq!(fault.kernel, format!("suite::kernels::faults::{name}"));
    assert!(fault.file.replace('\\', "/").ends_with("tests/suite/kernels/faults.rs"), "{}", fault.file);
    assert_eq!(fault.line, marked_line(name), "{fault}");
    assert!(fault.column > 1, "{fault}");
    let text = fault.to_string();
    assert!(text.contains(&format!("faults.rs:{}:", fault.line)) && text.contains(name), "{text}");
    still_works(stream)
}

fn still_works(stream: &Stream) -> Result<()> {
    let mut out = stream.buffer_zeroed::<u64>(3)?;
    crate::kernels::io::store_block_ranks::launch(stream, (3, 40), &mut out)?;
    assert_eq!(out.to_vec()?, [0, 1, 2]);
    stream.synchronize()
}

/// Checks that the fault is from thread 5 of block 2.
fn check_culprit(fault: &KernelFault) {
    assert_eq!((fault.block, fault.thread), (Dim3::new(2, 0, 0), Dim3::new(5, 0, 0)));
}

fn raised(kind: FaultKind, args: [u64; 2]) -> Diagnosis {
    Diagnosis::Raised(Fault { kind, args })
}

/// Checks that the fault is a panic. Its message is known on the emulator.
fn check_panic(stream: &Stream, fault: &KernelFault, message_part: &str) {
    match &fault.diagnosis {
        Diagnosis::Panicked { message } if stream.device().is_gpu() => assert!(message.is_empty(), "{message}"),
        Diagnosis::Panicked { message } => assert!(message.contains(message_part), "{message}"),
        other => panic!("expected a panic, got {other:?}"),
    }
}

#[test]
fn a_read_outside_a_view_is_a_fault() -> Result<()> {
    for stream in streams()? {
        for (index, len) in [(128u64, 128usize), (u64::MAX, 128), (0, 0), (1 << 40, 5)] {
            let x = stream.buffer_zeroed::<f32>(len)?;
            let mut out = stream.buffer_zeroed(256)?;
            let fault = run_expecting_fault(&stream, |stream| {
                kernels::read_outside::launch(stream, (4, 64), index, &x, &mut out)
            });
            assert_eq!(fault.diagnosis, raised(FaultKind::OutOfBounds, [index, len as u64]));
            let view = if stream.device().is_gpu() { "the view" } else { "`x`" };
            let expected = format!("index {index} is out of bounds: {view} has {len} elements\n");
            assert!(fault.to_string().starts_with(&expected), "{fault}");
            check_culprit(&fault);
            check_place(&stream, &fault, "read_outside")?;
        }
    }
    Ok(())
}

#[test]
fn an_item_outside_an_input_is_a_fault() -> Result<()> {
    for stream in streams()? {
        let x = stream.buffer_zeroed::<f32>(128)?;
        let mut out = stream.buffer_zeroed(256)?;
        let fault =
            run_expecting_fault(&stream, |stream| kernels::input_outside::launch(stream, (4, 64), 128, &x, &mut out));
        assert_eq!(fault.diagnosis, raised(FaultKind::OutOfBounds, [128, 128]));
        assert_eq!(
            fault.view.clone().map(|view| (view.name, view.start)),
            (!stream.device().is_gpu()).then_some(("x", None))
        );
        check_culprit(&fault);
        check_place(&stream, &fault, "input_outside")?;
    }
    Ok(())
}

#[test]
fn an_index_of_a_permutation_outside_is_a_fault() -> Result<()> {
    for stream in streams()? {
        let x = stream.buffer_zeroed::<f32>(128)?;
        for index in [128, -1] {
            // Only the first thread has four items.
            let at = stream.buffer_from(&[0, 1, 2, index])?;
            let mut out = stream.buffer_zeroed(1)?;
            let fault = run_expecting_fault(&stream, |stream| {
                kernels::permuted_outside::launch(stream, (1, 32), permutation(&x, &at), &mut out)
            });
            assert_eq!(fault.diagnosis, raised(FaultKind::OutOfBounds, [i64::from(index) as u64, 128]));
            check_place(&stream, &fault, "permuted_outside")?;
        }
    }
    Ok(())
}

#[test]
fn a_read_outside_a_slice_is_a_fault_although_the_buffer_goes_on() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_zeroed::<f32>(100)?;
    let mut out = stream.buffer_zeroed(256)?;
    let fault = run_expecting_fault(&stream, |stream| {
        kernels::read_outside::launch(stream, (4, 64), 10, x.slice(20..30)?, &mut out)
    });
    assert_eq!(fault.diagnosis, raised(FaultKind::OutOfBounds, [10, 10]));
    Ok(())
}

#[test]
fn a_write_outside_a_view_is_a_fault_and_does_not_happen() -> Result<()> {
    for stream in streams()? {
        let mut out = stream.buffer_zeroed::<f32>(110)?;
        let target = out.slice_mut(..100)?;
        let fault = run_expecting_fault(&stream, |stream| kernels::write_outside::launch(stream, (4, 64), 105, target));
        let Diagnosis::Raised(Fault { kind: FaultKind::OutOfBounds, args: [index @ 100..105, 100] }) = fault.diagnosis
        else {
            panic!("{fault}");
        };
        assert_eq!((fault.block.x, fault.thread.x), (index as u32 / 64, index as u32 % 64));
        check_place(&stream, &fault, "write_outside")?;
        assert_eq!(out.to_vec()?[100..], [0.0; 10]);
    }
    Ok(())
}

#[test]
fn a_tile_that_ends_outside_its_view_is_a_fault() -> Result<()> {
    for stream in streams()? {
        let mut out = stream.buffer_zeroed::<f32>(110)?;
        let target = out.slice_mut(..100)?;
        let fault = run_expecting_fault(&stream, |stream| kernels::tile_outside::launch(stream, (1, 33), 103, target));
        assert_eq!(fault.diagnosis, raised(FaultKind::TileOutOfBounds, [103, 100]));
        check_place(&stream, &fault, "tile_outside")?;
        assert_eq!(out.to_vec()?[100..], [0.0; 10]);
    }
    Ok(())
}

#[test]
fn a_slice_outside_its_view_is_a_fault() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_zeroed::<f32>(10)?;
    let mut out = stream.buffer_zeroed(1)?;
    for (end, reported) in [(11u64, 11u64), (0, 1), (u64::MAX, u64::MAX)] {
        let fault =
            run_expecting_fault(&stream, |stream| kernels::slice_outside::launch(stream, (1, 1), end, &x, &mut out));
        assert_eq!(fault.diagnosis, raised(FaultKind::TileOutOfBounds, [reported, 10]));
        check_place(&stream, &fault, "slice_outside")?;
    }
    Ok(())
}

#[test]
fn fewer_elements_than_blocks_is_a_fault() -> Result<()> {
    let stream = stream()?;
    let mut out = stream.buffer_zeroed::<u64>(4)?;
    let fault = run_expecting_fault(&stream, |stream| kernels::store_outside::launch(stream, (5, 32), &mut out));
    assert_eq!(fault.diagnosis, raised(FaultKind::OutOfBounds, [4, 4]));
    assert_eq!((fault.block, fault.thread), (Dim3::new(4, 0, 0), Dim3::new(0, 0, 0)));
    check_place(&stream, &fault, "store_outside")
}

#[test]
fn an_atomic_outside_its_view_is_a_fault() -> Result<()> {
    let stream = stream()?;
    let mut counts = stream.buffer_zeroed::<u32>(8)?;
    let fault = run_expecting_fault(&stream, |stream| kernels::atomic_outside::launch(stream, (4, 64), 8, &mut counts));
    assert_eq!(fault.diagnosis, raised(FaultKind::OutOfBounds, [8, 8]));
    check_culprit(&fault);
    check_place(&stream, &fault, "atomic_outside")
}

#[test]
fn an_index_outside_shared_memory_is_a_fault() -> Result<()> {
    let stream = stream()?;
    let mut out = stream.buffer_zeroed::<u32>(4)?;
    let fault = run_expecting_fault(&stream, |stream| kernels::shared_outside::launch(stream, (4, 64), 8, &mut out));
    assert_eq!(fault.diagnosis, raised(FaultKind::OutOfBounds, [8, 8]));
    check_culprit(&fault);
    check_place(&stream, &fault, "shared_outside")?;
    let dims = Dims::new(4, 64).shared_bytes(50);
    let fault = run_expecting_fault(&stream, |stream| kernels::rest_outside::launch(stream, dims, &mut out));
    assert_eq!(fault.diagnosis, raised(FaultKind::OutOfBounds, [12, 12]));
    check_place(&stream, &fault, "rest_outside")
}

#[test]
fn a_fault_of_the_authors_own_carries_its_code() -> Result<()> {
    for stream in streams()? {
        for code in [0, 42, u64::MAX] {
            let fault =
                run_expecting_fault(&stream, |stream| kernels::author_fault::launch(stream, ((2, 2), 64), code));
            assert_eq!(fault.diagnosis, raised(FaultKind::User, [code, 0]));
            // This is block 2 of a grid of 2 x 2.
            assert_eq!((fault.block, fault.thread), (Dim3::new(0, 1, 0), Dim3::new(5, 0, 0)));
            check_place(&stream, &fault, "author_fault")?;
        }
    }
    Ok(())
}

#[test]
fn a_failed_assertion_is_a_fault_with_its_place() -> Result<()> {
    for stream in streams()? {
        let fault = run_expecting_fault(&stream, |stream| kernels::failed_assertion::launch(stream, (4, (8, 4, 2)), 3));
        check_panic(&stream, &fault, "thread 5 is over 3");
        check_culprit(&fault);
        check_place(&stream, &fault, "failed_assertion")?;
        kernels::failed_assertion::launch(&stream, (4, 64), 6)?;
        stream.synchronize()?;
    }
    Ok(())
}

#[test]
fn an_index_outside_an_array_is_a_fault_with_its_place() -> Result<()> {
    let stream = stream()?;
    let mut out = stream.buffer_zeroed::<u32>(256)?;
    let fault = run_expecting_fault(&stream, |stream| kernels::slice_index::launch(stream, (4, 64), 3, &mut out));
    check_panic(&stream, &fault, "index out of bounds: the len is 3 but the index is 3");
    check_culprit(&fault);
    check_place(&stream, &fault, "slice_index")
}

#[test]
fn a_division_by_zero_is_a_fault_with_its_place() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_from(&vec![7i32; 256])?;
    let mut divisors = vec![2; 256];
    divisors[2 * 64 + 5] = 0;
    let mut out = stream.buffer_zeroed(256)?;
    let y = stream.buffer_from(&divisors)?;
    let fault =
        run_expecting_fault(&stream, |stream| kernels::integer_division::launch(stream, (4, 64), &x, &y, &mut out));
    check_panic(&stream, &fault, "divide by zero");
    check_culprit(&fault);
    check_place(&stream, &fault, "integer_division")?;
    let x = stream.buffer_from(&[i32::MIN])?;
    let y = stream.buffer_from(&[-1])?;
    let mut out = stream.buffer_zeroed(1)?;
    let fault =
        run_expecting_fault(&stream, |stream| kernels::integer_division::launch(stream, (1, 1), &x, &y, &mut out));
    check_panic(&stream, &fault, "overflow");
    check_place(&stream, &fault, "integer_division")
}

macro_rules! division {
    ($($t:ident)*) => {$({
        for stream in streams()? {
            let x = stream.buffer_from(&[$t::MAX, 7, $t::MIN, 9, $t::MIN, 100])?;
            let y = stream.buffer_from(&[2, 2, $t::MAX, 3, (0 as $t).wrapping_sub(1), 99])?;
            let mut out = stream.buffer_zeroed(6)?;
            kernels::dividing::<$t>::launch(&stream, (2, 3), &x, &y, &mut out)?;
            let least = if $t::MIN == 0 { [0, 0] } else { [-1i64 as $t, $t::MIN] };
            assert_eq!(out.to_vec()?, [$t::MAX / 2 + 1, 3, least[0], 3, least[1], 1]);
            for dividend in [100, $t::MAX] {
                let mut divisors = vec![2; 256];
                divisors[2 * 64 + 5] = 0;
                let (x, y) = (stream.buffer_from(&[dividend; 256])?, stream.buffer_from(&divisors)?);
                let mut out = stream.buffer_zeroed(256)?;
                let fault = run_expecting_fault(&stream, |s| kernels::dividing::<$t>::launch(s, (4, 64), &x, &y, &mut out));
                assert_eq!(fault.diagnosis, raised(FaultKind::DivisionByZero, [0, 0]));
                assert_eq!(fault.kernel, concat!("suite::kernels::faults::dividing::<", stringify!($t), ">"));
                assert_eq!(fault.line, marked_line("dividing"), "{fault}");
                check_culprit(&fault);
                still_works(&stream)?;
            }
        }
    })*};
}

#[test]
fn sanitize_a_functor_that_divides_by_zero_is_a_fault_at_its_place() -> Result<()> {
    division!(i8 u8 i16 u16 i32 u32 i64 u64);
    Ok(())
}

#[test]
fn a_functor_that_divides_by_zero_outside_a_kernel_panics() {
    let panic = std::panic::catch_unwind(|| kernels::Dividing.apply(1u32, 0)).unwrap_err();
    assert_eq!(panic.downcast_ref::<String>().map(String::as_str), Some("integer division by zero"));
}

#[test]
fn an_unwrapped_none_is_a_fault_with_its_place() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_zeroed::<f32>(3)?;
    let mut out = stream.buffer_zeroed(256)?;
    let fault =
        run_expecting_fault(&stream, |stream| kernels::unwrapped_none::launch(stream, (4, 64), 3, &x, &mut out));
    check_panic(&stream, &fault, "an element");
    check_culprit(&fault);
    check_place(&stream, &fault, "unwrapped_none")
}

#[test]
fn a_fault_ends_the_waits_of_other_blocks() -> Result<()> {
    for stream in streams()? {
        let mut flag = stream.buffer_zeroed::<u32>(1)?;
        let fault =
            run_expecting_fault(&stream, |stream| kernels::fault_while_others_spin::launch(stream, (4, 64), &mut flag));
        assert_eq!(fault.diagnosis, raised(FaultKind::User, [7, 0]));
        check_culprit(&fault);
        check_place(&stream, &fault, "fault_while_others_spin")?;
    }
    Ok(())
}

#[test]
fn of_many_faults_one_is_reported_whole() -> Result<()> {
    for stream in streams()? {
        let fault = run_expecting_fault(&stream, |stream| kernels::everyone_faults::launch(stream, (64, 256)));
        assert_eq!(fault.diagnosis, raised(FaultKind::User, [fault.thread.x as u64, 0]));
        check_place(&stream, &fault, "everyone_faults")?;
    }
    Ok(())
}

#[test]
fn many_faults_one_after_another_are_all_reported() -> Result<()> {
    let stream = stream()?;
    for code in 0..50 {
        let fault = run_expecting_fault(&stream, |stream| kernels::author_fault::launch(stream, (3, 32), code));
        assert_eq!(fault.diagnosis, raised(FaultKind::User, [code, 0]));
    }
    still_works(&stream)
}

/// Returns the fault of a launch that is not waited for, if there is one yet. On the emulator, the launch has already
/// ended.
fn launched(result: Result<()>) -> Option<KernelFault> {
    match result {
        Ok(()) => None,
        Err(Error::Fault(fault)) => Some(*fault),
        Err(other) => panic!("{other}"),
    }
}

/// Returns the code of the user's fault that [`launched`] returned, or otherwise of the fault that the next
/// synchronisation returns.
fn code_of(stream: &Stream, early: Option<KernelFault>) -> u64 {
    let fault = early.unwrap_or_else(|| run_expecting_fault(stream, |_| Ok(())));
    let Diagnosis::Raised(Fault { kind: FaultKind::User, args: [code, 0] }) = fault.diagnosis else {
        panic!("{fault}")
    };
    code
}

/// [`faulting_launches_leak_nothing`] runs this in a process of its own, where nothing else uses the device.
#[test]
fn child_faults_often() -> Result<()> {
    if std::env::var_os("SUITE_CHILD").is_none() {
        return Ok(());
    }
    let device = Device::auto()?;
    let round = |launches: u64| -> Result<()> {
        let (stream, other) = (device.stream()?, device.stream()?);
        let mut out = stream.buffer_zeroed::<u64>(3)?;
        for i in 0..launches {
            if i % 100 == 50 {
                let early = launched(kernels::author_fault::launch(&stream, (3, 32), i));
                assert_eq!(code_of(&stream, early), i);
            } else {
                crate::kernels::io::store_block_ranks::launch(&stream, (3, 32), &mut out)?;
            }
            if i % 1000 == 999 {
                still_works(&other)?;
            }
        }
        assert_eq!(out.to_vec()?, [0, 1, 2]);
        other.synchronize()
    };
    // This round loads the kernels, and allocates the memory that is kept.
    round(1000)?;
    let mut seen = Vec::new();
    // Other processes also take memory for some seconds, and free it. But leaked memory is missing after every round.
    for _ in 0..40 {
        let before = (device.counters(), handles(), free_memory(&device));
        round(10_000)?;
        let cost = device.counters().since(before.0);
        assert_eq!((cost.launches, cost.allocations, cost.device_to_host_copies), (10_000 + 10, 1 + 10, 1 + 10));
        let after = (handles(), free_memory(&device));
        if after.0 == before.1 && after.1 >= before.2 {
            return Ok(());
        }
        seen.push(((before.1, before.2), after));
    }
    panic!("files and threads, free memory of the device, before and after: {seen:?}");
}

/// Returns the numbers of open files and threads of this process, if the system has them. It takes the least of several
/// counts, because a finished thread may exist for a moment more.
fn handles() -> (usize, usize) {
    let count = |folder: &str| std::fs::read_dir(folder).map_or(0, Iterator::count);
    let fewest = |folder: &str| {
        let looks = (0..50).map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            count(folder)
        });
        looks.min().expect("some looks")
    };
    (fewest("/proc/self/fd"), fewest("/proc/self/task"))
}

/// Returns the free bytes of the device's memory as the driver reports them, and 0 for the emulator.
fn free_memory(device: &Device) -> usize {
    let context = device.as_raw_context();
    if context.is_null() {
        return 0;
    }
    let (mut free, mut total) = (0, 0);
    let driver = crate::driver::Driver::open();
    // SAFETY: this is the device's context; the pointers are valid for the call.
    unsafe {
        driver.cuCtxSetCurrent(context);
        driver.cuMemGetInfo_v2(&raw mut free, &raw mut total);
    }
    free
}

#[test]
fn faulting_launches_leak_nothing() {
    let output = std::process::Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "faults::child_faults_often", "--nocapture"])
        .env("SUITE_CHILD", "1")
        .output()
        .expect("this test runs again");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
