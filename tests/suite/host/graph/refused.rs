//! Tests calls that a graph cannot hold, and faults of replays.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kernel_primitives::simt::{Fault, FaultKind};
use kernel_primitives::{Device, Diagnosis, Error, Result, Stream};

use crate::kernels::graph::{Weighted, affine, combine, fault_unless_zero};
use crate::support::{stream, streams};

/// Checks that an error is an error of a capture, and names the call and what to do.
#[track_caller]
fn check_refused<T: std::fmt::Debug>(result: Result<T>, call: &str, way_out: &str) {
    match result {
        Err(error @ Error::Capture { .. }) => {
            let text = error.to_string();
            assert!(text.contains(call) && text.contains(way_out), "`{call}` … `{way_out}`: {text}");
        }
        other => panic!("expected a refusal of {call}, got {other:?}"),
    }
}

#[test]
fn what_a_graph_cannot_hold_is_an_error_that_says_what_to_do() -> Result<()> {
    let device = Device::auto()?;
    let (stream, other) = (device.stream()?, device.stream()?);
    let mut data = stream.buffer_from(&[1u32; 10])?;
    let mut untouched = stream.buffer_from(&[3u32; 10])?;
    let inner = stream.capture(|_| Ok(()))?;
    let event = stream.record()?;
    let mut clone = None;
    let graph = stream.capture(|s| {
        affine::launch(s, (1, 32), 2, 1, &mut data)?;
        check_refused(s.synchronize(), "`Stream::synchronize`", "that the graph was launched on");
        check_refused(s.record().map(|_| ()), "`Stream::record`", "on the stream that launches it");
        check_refused(s.wait(&event), "`Stream::wait`", "on the stream that launches it");
        check_refused(s.buffer_zeroed::<u32>(10), "allocation", "on another stream");
        check_refused(s.buffer_uninit::<u32>(10), "allocation", "on another stream");
        check_refused(s.buffer_from(&[1u32]), "allocation", "on another stream");
        check_refused(s.capture(|_| Ok(())), "`Stream::capture`", "captures already");
        check_refused(inner.launch(s), "`Graph::launch`", "launch the kernels themselves");
        check_refused(data.to_vec(), "`Buffer::copy_to`", "after a launch of the graph");
        check_refused(data.slice_mut(..1)?.copy_from(&[1]), "`Buffer::copy_from`", "before the capture");
        assert!(s.as_raw().is_null());
        assert!(format!("{s:?}").contains("captured"));

        // Calls outside the capture work as usual.
        assert_eq!(untouched.to_vec()?, [3; 10]);
        affine::launch(&other, (1, 32), 2, 0, &mut untouched)?;
        assert_eq!(untouched.to_vec()?, [6; 10]);
        let nested = other.capture(|t| affine::launch(t, (1, 32), 3, 0, &mut untouched))?;
        nested.launch(&other)?;
        assert_eq!(untouched.to_vec()?, [18; 10]);
        let temporary = other.buffer_from(&[4u32; 10])?;
        data.as_mut_slice().copy_from_device(s, temporary.as_slice())?;

        // If a launch is refused, it is not captured.
        let error = affine::launch(s, (1, 4096), 2, 1, &mut data).unwrap_err();
        assert!(matches!(error, Error::LaunchLimit { .. }), "{error}");
        let error = combine::<Weighted>::launch(
            s,
            (1, 1),
            Weighted { weight: 1 },
            &temporary,
            &temporary,
            data.slice_mut(1..)?,
        );
        assert!(matches!(error, Err(Error::LengthMismatch { .. })), "{error:?}");
        affine::launch(s, (1, 32), 5, 1, &mut data)?;
        clone = Some(s.clone());
        Ok(())
    })?;
    assert_eq!((data.to_vec()?, graph.launches()), (vec![1; 10], 2));
    graph.launch(&stream)?;
    assert_eq!(data.to_vec()?, [21; 10]);

    let clone = clone.expect("the closure ran");
    check_refused(affine::launch(&clone, (1, 32), 2, 1, &mut data), "a launch", "has ended");
    let copied = data.as_mut_slice().copy_from_device(&clone, untouched.as_slice());
    check_refused(copied, "a launch", "has ended");
    check_refused(clone.synchronize(), "`Stream::synchronize`", "that the graph was launched on");
    assert_eq!(data.to_vec()?, [21; 10]);
    Ok(())
}

#[test]
fn a_capture_that_fails_leaves_nothing_behind() -> Result<()> {
    let stream = stream()?;
    let mut data = stream.buffer_from(&[1u32; 10])?;
    let error = stream.capture(|s| {
        affine::launch(s, (1, 32), 2, 1, &mut data)?;
        affine::launch(s, (1, 0), 2, 1, &mut data)
    });
    assert!(matches!(error, Err(Error::EmptyBlock { .. })), "{error:?}");

    let mut clone = None;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        stream.capture(|s| {
            affine::launch(s, (1, 32), 2, 1, &mut data)?;
            clone = Some(s.clone());
            std::panic::resume_unwind(Box::new("of the closure"));
        })
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"of the closure"));
    check_refused(affine::launch(&clone.expect("it ran"), (1, 32), 2, 1, &mut data), "a launch", "has ended");

    // This thread can copy and capture again.
    assert_eq!(data.to_vec()?, [1; 10]);
    let graph = stream.capture(|s| affine::launch(s, (1, 32), 2, 1, &mut data))?;
    graph.launch(&stream)?;
    assert_eq!(data.to_vec()?, [3; 10]);
    Ok(())
}

#[test]
fn a_fault_of_a_replay_comes_back_and_the_graph_works_again() -> Result<()> {
    for stream in streams()? {
        let mut codes = stream.buffer_from(&[0u64])?;
        let (mut before, mut after) = (stream.buffer_from(&[1u32; 40])?, stream.buffer_from(&[1u32; 40])?);
        let graph = stream.capture(|s| {
            affine::launch(s, (1, 64), 2, 0, &mut before)?;
            fault_unless_zero::launch(s, (1, 32), &codes)?;
            affine::launch(s, (1, 64), 2, 0, &mut after)
        })?;
        let mut faults = 0;
        for (round, code) in [0, 77, 0, 78, 79].into_iter().enumerate() {
            codes.copy_from(&[code])?;
            match graph.launch(&stream).and_then(|()| stream.synchronize()) {
                Ok(()) => assert_eq!(code, 0),
                Err(Error::Fault(fault)) => {
                    assert_eq!(fault.diagnosis, Diagnosis::Raised(Fault { kind: FaultKind::User, args: [code, 0] }));
                    assert_eq!(fault.kernel, "suite::kernels::graph::fault_unless_zero");
                    faults += 1;
                }
                Err(other) => panic!("{other}"),
            }
            assert_eq!(before.to_vec()?, [2 << round; 40]);
            // The emulator stops at the fault. A GPU's queue continues.
            let skipped = if stream.device().is_gpu() { 0 } else { faults };
            assert_eq!(after.to_vec()?, [2 << (round - skipped); 40]);
        }
        assert_eq!(faults, 3);
    }
    Ok(())
}

#[test]
fn sanitize_a_replay_faults_on_the_stream_that_it_was_launched_on() -> Result<()> {
    let device = Device::auto()?;
    let (one, two, host) = (device.stream()?, device.stream()?, device.stream()?);
    let mut codes = host.buffer_from(&[7u64])?;
    let graph = one.capture(|s| fault_unless_zero::launch(s, (2, 64), &codes))?;
    // On a GPU, the synchronisation returns the fault; on the emulator, the launch returns it.
    let launch = |stream: &Stream| graph.launch(stream).err().map(code_of_fault);
    let wait = |stream: &Stream| stream.synchronize().err().map(code_of_fault);

    for _ in 0..3 {
        let (early, later) = (launch(&one), launch(&two));
        assert_eq!(early.or_else(|| wait(&one)), Some(7));
        assert_eq!(later.or_else(|| wait(&two)), Some(7));
    }
    // The second launch has no fault. It is on another stream, or on the same one.
    for (faulting, other) in [(&one, &two), (&two, &one), (&one, &one)] {
        codes.copy_from(&[9])?;
        let early = launch(faulting);
        if std::ptr::eq(faulting, other) {
            assert_eq!(early.or_else(|| wait(faulting)), Some(9));
            codes.copy_from(&[0])?;
            assert_eq!((launch(other), wait(other)), (None, None));
            continue;
        }
        codes.copy_from(&[0])?;
        assert_eq!((launch(other), wait(other)), (None, None));
        assert_eq!(early.or_else(|| wait(faulting)), Some(9));
    }
    codes.copy_from(&[5])?;
    let early = launch(&one);
    drop(graph);
    assert_eq!((early.or_else(|| wait(&one)), wait(&two)), (Some(5), None));
    Ok(())
}

/// Returns the code of the user's fault, in the kernel of the test above.
fn code_of_fault(error: Error) -> u64 {
    let Error::Fault(fault) = error else { panic!("{error}") };
    assert_eq!(fault.kernel, "suite::kernels::graph::fault_unless_zero");
    assert!(fault.file.replace('\\', "/").ends_with("tests/suite/kernels/graph.rs") && fault.line > 1, "{fault}");
    assert_eq!(fault.thread, kernel_primitives::Dim3::new(0, 0, 0));
    match fault.diagnosis {
        Diagnosis::Raised(Fault { kind: FaultKind::User, args: [code, _] }) => code,
        other => panic!("{other:?}"),
    }
}
