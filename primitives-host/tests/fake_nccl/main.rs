//! Groups on GPUs: what they ask of NCCL, and what they make of its failures, and of calls that never end. Shown by a driver and an NCCL that
//! watch.

#[allow(dead_code, reason = "each test binary uses a part")]
#[path = "../fake/mod.rs"]
mod fake;
#[path = "../ports/mod.rs"]
mod ports;
mod refusals;

use std::sync::{Barrier, MutexGuard, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use fake::{Fake, compile, fake};
use ports::address;
use primitives_gpu::bf16;
use primitives_host::{
    Buffer, Device, Devices, Error, Group, GroupOptions, ReduceOp, Result, Split, SplitGroup, Stream,
};

/// Longer than all that is not to end by it.
const LONG: Duration = Duration::from_secs(60);

/// What is to be over, and yet enough for threads to start on a busy machine.
const SHORT: Duration = Duration::from_secs(2);

/// The driver, NCCL, and the turn to use them. There are two devices.
fn fakes() -> (&'static Fake, &'static Fake, MutexGuard<'static, ()>) {
    static NCCL: OnceLock<Fake> = OnceLock::new();
    let (driver, turn) = fake();
    let nccl = NCCL.get_or_init(|| {
        let library = compile("nccl.c", concat!(env!("CARGO_CRATE_NAME"), "_libnccl.so"));
        // SAFETY: the other threads of this process wait for this one, or are the harness, which reads no environment now.
        unsafe { std::env::set_var("KERNEL_PRIMITIVES_LIBNCCL", &library) };
        Fake::open(&library)
    });
    nccl.log();
    driver.set("fake_devices", 2);
    driver.set("fake_hold_events", -1);
    driver.set("fake_full", -1);
    driver.set("fake_peer_access", 1);
    nccl.set("fake_failed_rank", -1);
    (driver, nccl, turn)
}

/// What a member of a group does.
type Member<'a, R> = &'a (dyn Fn(&Group, &Stream) -> R + Sync);

/// What each of so many members does, which have a device each.
fn members<R: Send>(size: usize, timeout: Duration, checked: bool, member: Member<'_, R>) -> Vec<Result<R>> {
    members_on(&(0..size).collect::<Vec<_>>(), timeout, checked, member)
}

/// What each of the members does that have these devices.
fn members_on<R: Send>(devices: &[usize], timeout: Duration, checked: bool, member: Member<'_, R>) -> Vec<Result<R>> {
    let (address, size) = (&address(), devices.len());
    let work = move |rank: usize| {
        let mut options = GroupOptions::new(rank, size, address);
        (options.timeout, options.checked) = (timeout, checked);
        let group = Group::new(&Device::gpu_at(devices[rank])?, &options)?;
        let stream = group.device().stream()?;
        Ok(member(&group, &stream))
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..size).map(|rank| scope.spawn(move || work(rank))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

fn all_reduce(group: &Group, stream: &Stream) -> Result<()> {
    group.all_reduce(stream, &mut stream.buffer_zeroed::<f32>(4)?, ReduceOp::Sum)
}

/// The error that waits for a stream, which comes soon.
#[track_caller]
fn error_of(stream: &Stream) -> Error {
    let until = Instant::now() + LONG / 2;
    loop {
        match stream.synchronize() {
            Err(error) => return error,
            Ok(()) if Instant::now() > until => panic!("no error"),
            Ok(()) => thread::sleep(Duration::from_millis(2)),
        }
    }
}

#[track_caller]
fn assert_failure(error: &Error, member: Option<usize>, part: &str) {
    let Error::Group { member: blamed, .. } = error else { panic!("{error}") };
    assert_eq!(*blamed, member, "{error}");
    assert!(error.to_string().contains(part), "no {part:?} in {error}");
}

/// The notes of one member, without its rank.
fn all_notes(log: &[String], rank: usize) -> Vec<&str> {
    let prefix = format!("{rank}: ");
    log.iter().filter_map(|line| line.strip_prefix(&prefix)).collect()
}

/// What a member of so many enqueues when its group is made.
fn connection(size: usize) -> Vec<String> {
    let messages = |peer| [format!("send 1 1 to {peer} at {peer}"), format!("receive 1 1 from {peer} at {peer}")];
    ["all reduce 1 1 by 0 in place".to_owned()].into_iter().chain((0..size).flat_map(messages)).collect()
}

/// The notes of a member of so many, without its rank, and without what has connected it.
fn notes(log: &[String], rank: usize, size: usize) -> Vec<&str> {
    let (mut notes, connection) = (all_notes(log, rank), connection(size));
    assert_eq!(notes.drain(1..1 + connection.len()).collect::<Vec<_>>(), connection);
    notes
}

#[test]
fn each_call_is_one_of_nccl() {
    let (_driver, nccl, _turn) = fakes();
    for checked in [false, true] {
        let results = members(2, LONG, checked, &|group, stream| -> Result<()> {
            let (rank, other) = (group.rank(), 1 - group.rank());
            let (x, mut y) = (stream.buffer_zeroed::<u32>(6)?, stream.buffer_zeroed::<u32>(6)?);
            let mut halves = stream.buffer_zeroed::<bf16>(5)?;
            group.all_reduce(stream, &mut halves, ReduceOp::Max)?;
            group.all_gather(stream, x.slice(..3)?, &mut y)?;
            group.reduce_scatter(stream, &x, ReduceOp::Product, y.slice_mut(..3)?)?;
            group.broadcast(stream, &mut y, 1)?;
            group.all_to_all(stream, &x, &mut y)?;
            group.send_recv(stream, &x, other, &mut y, other)?;
            match rank {
                0 => group.send(stream, x.slice(..1)?, other)?,
                _ => group.recv(stream, y.slice_mut(..1)?, other)?,
            }
            // Of nothing, none.
            group.all_reduce(stream, &mut stream.buffer_zeroed::<i8>(0)?, ReduceOp::Sum)?;
            group.barrier(stream)
        });
        results.into_iter().for_each(|result| result.expect("a group").expect("its calls"));
        let log = nccl.log();
        for rank in 0..2 {
            let other = 1 - rank;
            let message = match rank {
                0 => "send 4 1 to 1 at 0".to_owned(),
                _ => "receive 4 1 from 0 at 0".to_owned(),
            };
            let (start, all) =
                notes(&log, rank, 2).split_first().map(|(start, all)| (*start, all.to_vec())).expect("notes");
            assert!(start.starts_with("of 2 by ") && start.ends_with(" 7"), "{start}");
            let expected = [
                "all reduce 5 9 by 2 in place",
                "all gather 12 1",
                "reduce scatter 3 3 by 1",
                "broadcast 24 1 from 1 in place",
                "send 12 1 to 0 at 0",
                "receive 12 1 from 0 at 0",
                "send 12 1 to 1 at 12",
                "receive 12 1 from 1 at 12",
                &format!("send 24 1 to {other} at 0"),
                &format!("receive 24 1 from {other} at 0"),
                &message,
                "destroy",
            ];
            assert_eq!(all, expected);
        }
        let of = |rank| all_notes(&log, rank)[0].to_owned();
        assert_eq!(of(0), of(1), "one id");
    }
    assert_eq!(nccl.call::<i32>("fake_mistakes", None), 0);
}

#[test]
fn checked_calls_that_differ_are_errors_before_nccl_has_them() {
    let (_driver, nccl, _turn) = fakes();
    let results = members(2, LONG, true, &|group, stream| {
        let call = if group.rank() == 0 { all_reduce(group, stream) } else { group.barrier(stream) };
        call.expect_err("they differ")
    });
    for result in results {
        assert_failure(
            &result.expect("a group"),
            Some(1),
            "rank 1 calls `barrier`, and rank 0 `all_reduce` by sum of 4 f32",
        );
    }
    let log = nccl.log();
    for rank in 0..2 {
        assert_eq!(notes(&log, rank, 2)[1..], ["abort"], "{log:#?}");
    }
}

#[test]
fn an_error_of_nccl_at_one_member_ends_the_calls_of_all() {
    let (driver, nccl, _turn) = fakes();
    let enqueued = Barrier::new(2);
    let results = members(2, LONG, false, &|group, stream| {
        enqueued.wait();
        if group.rank() == 0 {
            driver.set("fake_hold_events", 0);
        }
        enqueued.wait();
        all_reduce(group, stream).expect("it is enqueued");
        enqueued.wait();
        nccl.set("fake_failed_rank", 1);
        let error = error_of(stream);
        assert_failure(&error, Some(1), "`all_reduce`: rank 1 has failed: NCCL failed: remote process exited");
        // The stream has told it once, and the group is of no use any more.
        stream.synchronize().expect("all is told");
        let again = all_reduce(group, stream).expect_err("the group has failed");
        assert_failure(&again, Some(1), "remote process exited");
        let nothing = group.all_reduce(stream, &mut stream.buffer_zeroed::<f32>(0).expect("a buffer"), ReduceOp::Sum);
        assert_failure(&nothing.expect_err("the group has failed"), Some(1), "remote process exited");
    });
    results.into_iter().for_each(|result| result.expect("a group"));
    let log = nccl.log();
    for rank in 0..2 {
        assert_eq!(notes(&log, rank, 2)[1..], ["all reduce 4 7 by 0 in place", "abort"], "{log:#?}");
    }
    assert_eq!(nccl.call::<i32>("fake_mistakes", None), 0);
}

#[test]
fn a_call_that_does_not_end_is_aborted_when_its_time_is_over() {
    let (driver, nccl, _turn) = fakes();
    let results = members(1, SHORT, false, &|group, stream| {
        let mut buffer = stream.buffer_zeroed::<f32>(4).expect("a buffer");
        // The stream comes to the call, and not past it.
        driver.set("fake_hold_events", 1);
        group.all_reduce(stream, &mut buffer, ReduceOp::Sum).expect("it is enqueued");
        assert_failure(&error_of(stream), Some(0), "rank 0 has waited in `all_reduce` for 2s");
    });
    results.into_iter().for_each(|result| result.expect("a group"));
    assert_eq!(notes(&nccl.log(), 0, 1)[2..], ["abort"]);
}

#[test]
fn a_call_that_waits_inside_nccl_is_aborted_when_its_time_is_over() {
    let (_driver, nccl, _turn) = fakes();
    let results = members(1, SHORT, false, &|group, stream| {
        nccl.set("fake_hold_calls", 1);
        let error = all_reduce(group, stream).expect_err("it is aborted");
        nccl.set("fake_hold_calls", 0);
        assert_failure(&error, Some(0), "rank 0 has waited in `all_reduce` for 2s");
    });
    results.into_iter().for_each(|result| result.expect("a group"));
    assert_eq!(notes(&nccl.log(), 0, 1)[1..], ["all reduce 4 7 by 0 in place", "abort"]);
}

#[test]
fn a_call_that_the_stream_has_not_come_to_has_its_time_before_it() {
    let (driver, nccl, _turn) = fakes();
    let results = members(1, SHORT, false, &|group, stream| {
        driver.set("fake_hold_events", 0);
        all_reduce(group, stream).expect("it is enqueued");
        thread::sleep(SHORT + Duration::from_millis(500));
        stream.synchronize().expect("no failure");
        driver.set("fake_hold_events", -1);
    });
    results.into_iter().for_each(|result| result.expect("a group"));
    assert_eq!(notes(&nccl.log(), 0, 1)[2..], ["destroy"]);
}

#[test]
fn what_nccl_refuses_is_an_error_at_all_members() {
    let (driver, nccl, _turn) = fakes();
    let ready = Barrier::new(2);
    let results = members(2, LONG, false, &|group, stream| {
        if group.rank() == 0 {
            driver.set("fake_hold_events", 0);
            all_reduce(group, stream).expect("it is enqueued");
            ready.wait();
            assert_failure(&error_of(stream), Some(1), "rank 1 has failed: ncclAllReduce failed: it went wrong");
        } else {
            ready.wait();
            nccl.set("fake_next_result", 1);
            let refused = all_reduce(group, stream).expect_err("it is refused");
            assert_failure(&refused, Some(1), "`all_reduce`: rank 1 has failed: ncclAllReduce failed: it went wrong");
        }
    });
    results.into_iter().for_each(|result| result.expect("a group"));
}

#[test]
fn a_member_that_panics_ends_the_calls_of_the_others() {
    let (driver, nccl, _turn) = fakes();
    let address = &address();
    let member = |rank| {
        let group =
            Group::new(&Device::gpu_at(rank).expect("it"), &GroupOptions::new(rank, 2, address)).expect("a group");
        let stream = group.device().stream().expect("a stream");
        (group, stream)
    };
    thread::scope(|scope| {
        let other = scope.spawn(move || {
            let _group = member(1);
            panic!("as the test wants");
        });
        let (group, stream) = member(0);
        driver.set("fake_hold_events", 0);
        // Of a member that compares calls, it may be an error at once.
        let error = all_reduce(&group, &stream).err().unwrap_or_else(|| error_of(&stream));
        assert_failure(&error, Some(1), "rank 1");
        assert!(other.join().is_err());
    });
    let log = nccl.log();
    assert!(all_notes(&log, 0).ends_with(&["abort"]) && all_notes(&log, 1).ends_with(&["abort"]), "{log:#?}");
}

#[test]
fn members_that_nccl_does_not_connect_are_errors_when_time_is_over() {
    let (_driver, nccl, _turn) = fakes();
    nccl.set("fake_hold_starts", 1);
    let start = Instant::now();
    let results = members(2, SHORT, false, &|_, _| ());
    nccl.set("fake_hold_starts", 0);
    // The threads that were left to themselves abort what nobody waits for.
    let mut ended = 0;
    while ended < 4 {
        ended += nccl.log().len();
        thread::sleep(Duration::from_millis(2));
    }
    for result in results {
        let error = result.expect_err("NCCL waits");
        assert!(error.to_string().contains("NCCL has not connected the members within 2s"), "{error}");
    }
    assert!(start.elapsed() < LONG / 2);
}

#[test]
fn members_whose_first_calls_do_not_end_are_errors_when_time_is_over() {
    let (_driver, nccl, _turn) = fakes();
    nccl.set("fake_hold_calls", 1);
    let results = members(1, SHORT, false, &|_, _| ());
    nccl.set("fake_hold_calls", 0);
    for result in results {
        assert_failure(&result.expect_err("NCCL waits"), Some(0), "rank 0 has waited in `Group::new` for 2s");
    }
    assert_eq!(all_notes(&nccl.log(), 0)[1..], ["all reduce 1 1 by 0 in place", "abort"]);
}

/// The calls for all devices leave the context of the last one current, and events are made in the current context.
#[test]
fn other_streams_wait_for_the_calls_of_a_group_of_devices() -> Result<()> {
    let (driver, _nccl, _turn) = fakes();
    let devices = Devices::new([Device::gpu_at(0)?, Device::gpu_at(1)?])?;
    let group = SplitGroup::new(&Split::even(&devices)?)?;
    let buffers = group.split().streams().iter().map(|stream| stream.buffer_zeroed::<f32>(4));
    let mut buffers = buffers.collect::<Result<Vec<_>>>()?;
    group.all_reduce(&mut buffers, ReduceOp::Sum)?;
    for (device, buffer) in devices.iter().zip(&mut buffers) {
        buffer.as_mut_slice().set_zero(&device.stream()?)?;
    }
    driver.no_mistakes();
    Ok(())
}

#[test]
fn one_thread_calls_for_all_devices_of_a_process() -> Result<()> {
    let (driver, nccl, _turn) = fakes();
    let devices = Devices::new([Device::gpu_at(1)?, Device::gpu_at(0)?])?;
    let group = SplitGroup::new(&Split::even(&devices)?)?;
    assert!(group.uses_nccl());
    let buffers = |len| -> Result<Vec<Buffer<f64>>> {
        group.split().streams().iter().map(|stream| stream.buffer_zeroed(len)).collect()
    };
    let (parts, mut all, large, mut small) = (buffers(2)?, buffers(4)?, buffers(4)?, buffers(2)?);
    group.all_reduce(&mut all, ReduceOp::Min)?;
    group.all_gather(&parts, &mut all)?;
    group.reduce_scatter(&large, ReduceOp::Sum, &mut small)?;
    group.broadcast(&mut all, 1)?;
    group.all_to_all(&large, &mut all)?;
    // Of nothing, none.
    let mut nothing = buffers(0)?;
    group.all_reduce(&mut nothing, ReduceOp::Sum)?;
    drop(group);
    let log = nccl.log();
    assert_eq!(log[..2], ["0: of all on 1", "1: of all on 0"]);
    let calls = [
        "begin",
        "0: all reduce 4 8 by 3 in place",
        "1: all reduce 4 8 by 3 in place",
        "end",
        "begin",
        "0: all gather 16 1",
        "1: all gather 16 1",
        "end",
        "begin",
        "0: reduce scatter 2 8 by 0",
        "1: reduce scatter 2 8 by 0",
        "end",
        "begin",
        "0: broadcast 32 1 from 1 in place",
        "1: broadcast 32 1 from 1 in place",
        "end",
    ];
    assert_eq!(log[2..][..calls.len()], calls);
    let rest = &log[2 + calls.len()..];
    assert_eq!((all_notes(rest, 0).len(), all_notes(rest, 1).len(), rest.len()), (5, 5, 14), "{rest:#?}");
    assert_eq!(rest[rest.len() - 4..], ["begin", "0: destroy", "1: destroy", "end"]);
    assert_eq!(nccl.call::<i32>("fake_mistakes", None), 0);
    driver.no_mistakes();
    Ok(())
}

#[test]
fn what_nccl_refuses_ends_a_group_of_devices() -> Result<()> {
    let (_driver, nccl, _turn) = fakes();
    let devices = Devices::new([Device::gpu_at(0)?, Device::gpu_at(1)?])?;
    let group = SplitGroup::new(&Split::even(&devices)?)?;
    let buffers = group.split().streams().iter().map(|stream| stream.buffer_zeroed::<f32>(4));
    let mut buffers = buffers.collect::<Result<Vec<_>>>()?;
    nccl.set("fake_next_result", 1);
    for _ in 0..2 {
        let refused = group.all_reduce(&mut buffers, ReduceOp::Sum).expect_err("it is refused");
        assert_failure(&refused, None, "`all_reduce`: ncclAllReduce failed: it went wrong");
    }
    let nothing = group.split().streams().iter().map(|stream| stream.buffer_zeroed::<f32>(0));
    let nothing = group.all_reduce(&mut nothing.collect::<Result<Vec<_>>>()?, ReduceOp::Sum);
    let refused = nothing.expect_err("the group has failed");
    assert_failure(&refused, None, "`all_reduce`: ncclAllReduce failed: it went wrong");
    drop(group);
    let log = nccl.log();
    let calls = ["begin", "0: all reduce 4 7 by 0 in place", "end", "begin", "0: abort", "1: abort", "end"];
    assert_eq!(log[2..], calls);
    assert_eq!(nccl.call::<i32>("fake_mistakes", None), 0);
    Ok(())
}
