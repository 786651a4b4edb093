//! Tests faults of several streams and launches: which stream gets a fault, and what works after it.

use kernel_primitives::algorithms::{Run, Workspace, sort_keys, sort_pairs};
use kernel_primitives::functor::Less;
use kernel_primitives::simt::FaultKind;
use kernel_primitives::{Buffer, Device, Dims, Error, KernelFault, Result, Stream};

use super::{
    check_culprit, check_panic, check_place, code_of, launched, marked_line, raised, run_expecting_fault, still_works,
};
use crate::kernels::faults as kernels;
use crate::support::{stream, streams};

#[test]
fn sanitize_a_fault_leaves_other_streams_alone() -> Result<()> {
    let device = Device::auto()?;
    let (one, other) = (device.stream()?, device.stream()?);
    let mut out: Buffer<u32> = other.buffer_from(&[3; 64])?;
    let early = launched(kernels::author_fault::launch(&one, (3, 32), 1));
    // Launches, synchronisations, copies and events of the other stream neither get the fault nor lose it.
    crate::kernels::graph::affine::launch(&other, (1, 64), 2, 1, &mut out)?;
    other.synchronize()?;
    other.record()?.synchronize()?;
    assert_eq!(out.to_vec()?, [7; 64]);
    assert_eq!(code_of(&one, early), 1);
    still_works(&one)?;
    still_works(&other)
}

#[test]
fn a_fault_ends_no_waits_on_other_streams() -> Result<()> {
    let device = Device::auto()?;
    let (waiting, other) = (device.stream()?, device.stream()?);
    // On a GPU, this takes a third of a second.
    let turns = if device.is_gpu() { 300_000 } else { 10 };
    let mut out = waiting.buffer_zeroed::<u64>(4)?;
    let mut none = other.buffer_zeroed::<u64>(4)?;
    kernels::wait_or_fault::launch(&waiting, (4, 1), 1, 0, &mut out)?;
    assert_eq!(out.to_vec()?, [1; 4]);
    kernels::wait_or_fault::launch(&waiting, (4, 1), turns, 0, &mut out)?;
    let early = launched(kernels::wait_or_fault::launch(&other, (4, 1), 0, 9, &mut none));
    assert_eq!(code_of(&other, early), 9);
    waiting.synchronize()?;
    assert_eq!(out.to_vec()?, [turns; 4], "no wait was ended");
    Ok(())
}

#[test]
fn each_stream_gets_the_fault_of_its_own_launch() -> Result<()> {
    let device = Device::auto()?;
    let streams = (0..40).map(|_| device.stream()).collect::<Result<Vec<_>>>()?;
    for round in 0..3 {
        let early: Vec<_> = streams
            .iter()
            .enumerate()
            .map(|(i, stream)| {
                // Every third stream has no launch.
                let launch = |code| launched(kernels::author_fault::launch(stream, (3, 32), code));
                if i % 3 == round { None } else { Some(launch(i as u64)) }
            })
            .collect();
        for (i, (stream, early)) in streams.iter().zip(early).enumerate().rev() {
            match early {
                Some(early) => assert_eq!(code_of(stream, early), i as u64),
                None => stream.synchronize()?,
            }
            stream.synchronize()?;
        }
    }
    Ok(())
}

#[test]
fn of_the_faults_on_a_stream_the_first_comes_back_and_names_its_launch() -> Result<()> {
    let stream = stream()?;
    let early = launched(kernels::author_fault::launch(&stream, (3, 32), 1));
    // If a GPU has not run the first launch yet, this launch is queued after it. Otherwise, the fault is this launch's
    // error.
    let second = early.or_else(|| launched(kernels::everyone_faults::launch(&stream, (3, 32))));
    let fault = second.unwrap_or_else(|| run_expecting_fault(&stream, |_| Ok(())));
    assert_eq!(fault.diagnosis, raised(FaultKind::User, [1, 0]));
    check_culprit(&fault);
    check_place(&stream, &fault, "author_fault")
}

#[test]
fn an_event_gives_the_fault_of_its_stream() -> Result<()> {
    let device = Device::auto()?;
    let (one, other) = (device.stream()?, device.stream()?);
    let (before, elsewhere) = (one.record()?, other.record()?);
    let early = launched(kernels::author_fault::launch(&one, (3, 32), 4));
    let after = one.record()?;
    elsewhere.synchronize()?;
    let result = early.map_or_else(|| after.since(&before).map(|_| ()), |fault| Err(Error::Fault(Box::new(fault))));
    assert_eq!(code_of(&one, launched(result)), 4);
    after.synchronize()?;
    other.wait(&after)?;
    still_works(&other)
}

#[test]
fn streams_that_are_dropped_take_their_faults_along() -> Result<()> {
    let device = Device::auto()?;
    for round in 0..20 {
        launched(kernels::author_fault::launch(&device.stream()?, (3, 32), round));
        // The driver may use the same stream again.
        let stream = device.stream()?;
        still_works(&stream)?;
    }
    Ok(())
}

/// Launches a look-back in which block 2 faults, so that every later block waits. If the fault did not end these waits,
/// they would never end.
fn fault_in_a_chain(
    launch: impl Fn(&Stream, Dims, &Buffer<u32>, &mut Buffer<u32>) -> Result<()>,
    check: impl Fn(&Stream, &KernelFault),
) -> Result<()> {
    for stream in streams()? {
        let blocks = if stream.device().is_gpu() { 2000 } else { 40 };
        let mut states = stream.buffer_zeroed::<u32>(blocks)?;
        let divisors = stream.buffer_from(&vec![4; blocks])?;
        let dims = Dims::new(blocks as u32, 64);
        launch(&stream, dims, &divisors, &mut states)?;
        assert_eq!(states.to_vec()?, vec![3; blocks]);

        let mut bad = vec![4; blocks];
        bad[2] = 0;
        let divisors = stream.buffer_from(&bad)?;
        states.copy_from(&vec![0; blocks])?;
        let fault = run_expecting_fault(&stream, |stream| launch(stream, dims, &divisors, &mut states));
        check(&stream, &fault);
        check_culprit(&fault);
        still_works(&stream)?;
        let divisors = stream.buffer_from(&vec![2; blocks])?;
        states.copy_from(&vec![0; blocks])?;
        launch(&stream, dims, &divisors, &mut states)?;
        assert_eq!(states.to_vec()?, vec![5; blocks]);
    }
    Ok(())
}

#[test]
fn a_functor_that_divides_by_zero_ends_the_waits_of_its_successors() -> Result<()> {
    let name = "division_in_a_chain";
    let check = |_: &Stream, fault: &KernelFault| {
        assert_eq!(fault.diagnosis, raised(FaultKind::DivisionByZero, [0, 0]));
        assert_eq!(
            (fault.kernel.as_str(), fault.line),
            (&*format!("suite::kernels::faults::{name}"), marked_line(name))
        );
    };
    fault_in_a_chain(|s, dims, x, y| kernels::division_in_a_chain::launch(s, dims, x, y), check)
}

#[test]
fn a_panic_ends_the_waits_of_its_successors() -> Result<()> {
    let check = |stream: &Stream, fault: &KernelFault| {
        check_panic(stream, fault, "a divisor");
        check_place(stream, fault, "panic_in_a_chain").unwrap();
    };
    fault_in_a_chain(|s, dims, x, y| kernels::panic_in_a_chain::launch(s, dims, x, y), check)
}

#[test]
fn buffers_can_be_read_after_a_fault() -> Result<()> {
    let stream = stream()?;
    let mut out = stream.buffer_zeroed::<f32>(256)?;
    run_expecting_fault(&stream, |stream| kernels::fault_at_the_end::launch(stream, (4, 64), &mut out));
    let found = out.to_vec()?;
    assert!(found.iter().all(|&v| v == 0.0 || v == 1.0));
    assert_eq!(found[2 * 64..3 * 64], [1.0; 64], "written before the barrier");
    still_works(&stream)
}

#[test]
fn faults_of_launches_from_many_threads_reach_their_launchers() -> Result<()> {
    let device = Device::auto()?;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8)
            .map(|number| {
                let device = &device;
                scope.spawn(move || -> Result<()> {
                    for round in 0..5 {
                        let streams = [device.stream()?, device.stream()?];
                        for (stream, code) in streams.iter().zip([number * 100 + round, 1000 + number * 100 + round]) {
                            let fault = run_expecting_fault(stream, |stream| {
                                kernels::author_fault::launch(stream, (3, 32), code)
                            });
                            assert_eq!(fault.diagnosis, raised(FaultKind::User, [code, 0]));
                            still_works(stream)?;
                        }
                        streams[0].synchronize()?;
                    }
                    Ok(())
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker panicked"))
    })
}

/// A sort that runs after a fault may end its waits for other tiles early. Keys whose places are not known then stay inside of the output.
#[test]
fn a_sort_after_a_fault_writes_nothing_outside_of_its_output() -> Result<()> {
    let stream = stream()?;
    let (len, around) = if stream.device().is_gpu() { (1 << 18, 1 << 14) } else { (20_000, 100) };
    let x: Vec<u32> = (0..len as u32).map(|i| i.wrapping_mul(0x9e37_79b1)).collect();
    let (keys, mut workspace) = (stream.buffer_from(&x)?, Workspace::new());
    let mut out = stream.buffer_from(&vec![77u32; len + 2 * around])?;
    let mut along = stream.buffer_from(&vec![77u32; len + 2 * around])?;
    let inside = around..around + len;
    let mut sort = |stream: &Stream| {
        let (mut out, mut along) = (out.slice_mut(inside.clone())?, along.slice_mut(inside.clone())?);
        sort_pairs(Run::on(stream).with(&mut workspace), &keys, &keys, &mut out, &mut along, Less)?;
        sort_keys(Run::on(stream).with(&mut workspace), &keys, &mut along, Less)
    };
    // This gives the workspace its memory.
    sort(&stream)?;
    // All launches are queued before the host can see the fault.
    let graph = stream.capture(|stream| {
        kernels::author_fault::launch(stream, (3, 32), 1)?;
        sort(stream)
    })?;
    for _ in 0..10 {
        let fault = graph.launch(&stream).and_then(|()| stream.synchronize());
        assert!(matches!(fault, Err(Error::Fault(_))), "{fault:?}");
        for found in [out.to_vec()?, along.to_vec()?] {
            assert!(found[..around].iter().chain(&found[around + len..]).all(|&x| x == 77));
        }
    }
    Ok(())
}
