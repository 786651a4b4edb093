//! What goes wrong between members is an error at all of them, and soon.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use primitives_host::{Device, Devices, EmulatorOptions, Error, Group, GroupOptions, ReduceOp, Result, Stream};

use crate::{LONG, SHORT, address, assert_failure, failure, meet, members, members_within};

/// What a member calls.
type Call = fn(&Group, &Stream) -> Result<()>;

fn all_reduce(group: &Group, stream: &Stream) -> Result<()> {
    group.all_reduce(stream, &mut stream.buffer_from(&[1.0f32; 4])?, ReduceOp::Sum)
}

#[test]
fn calls_that_differ_are_errors_at_all_members() {
    let cases: [(Call, &str); 7] = [
        (|group, stream| group.barrier(stream), "`barrier`"),
        (
            |group, stream| group.all_reduce(stream, &mut stream.buffer_from(&[1.0f32; 4])?, ReduceOp::Max),
            "`all_reduce` by max of 4 f32",
        ),
        (
            |group, stream| group.all_reduce(stream, &mut stream.buffer_from(&[1.0f32; 5])?, ReduceOp::Sum),
            "`all_reduce` by sum of 5 f32",
        ),
        (
            |group, stream| group.all_reduce(stream, &mut stream.buffer_from(&[1u32; 4])?, ReduceOp::Sum),
            "`all_reduce` by sum of 4 u32",
        ),
        (
            |group, stream| {
                group.all_gather(stream, &stream.buffer_from(&[1.0f32; 4])?, &mut stream.buffer_zeroed(12)?)
            },
            "`all_gather` of 4 f32",
        ),
        (
            |group, stream| group.broadcast(stream, &mut stream.buffer_from(&[1.0f32; 4])?, 1),
            "`broadcast` from rank 1 of 4 f32",
        ),
        (
            |group, stream| group.all_to_all(stream, &stream.buffer_from(&[1i8; 6])?, &mut stream.buffer_zeroed(6)?),
            "`all_to_all` of 6 i8",
        ),
    ];
    for (call, words) in cases {
        let failures = members(3, |group| {
            let stream = group.device().stream().expect("a stream");
            let first = failure(if group.rank() == 1 { call(group, &stream) } else { all_reduce(group, &stream) });
            // The group has failed for good.
            let again = failure(group.barrier(&stream));
            let reason = |text: &str| text.split_once(": ").map(|(_, reason)| reason.to_owned());
            assert_eq!((first.0, reason(&first.1)), (again.0, reason(&again.1)));
            first
        });
        for (_, text) in failures {
            assert!(text.contains(words) && text.contains("`all_reduce` by sum of 4 f32"), "{text}");
            assert!(text.contains("rank 1"), "{text}");
        }
    }
}

#[test]
fn roots_that_differ_are_errors_at_all_members() {
    let start = Instant::now();
    members(3, |group| {
        let stream = group.device().stream().expect("a stream");
        let mut buffer = stream.buffer_from(&[1.0f32; 4]).expect("it");
        let result = group.broadcast(&stream, &mut buffer, usize::from(group.rank() == 2));
        assert_failure(result, Some(2), "rank 2 calls `broadcast` from rank 1 of 4 f32, and rank");
    });
    assert!(start.elapsed() < LONG / 2);
}

#[test]
fn messages_that_differ_are_errors_at_all_members() {
    members(3, |group| {
        let stream = group.device().stream().expect("a stream");
        let (small, mut large) =
            (stream.buffer_from(&[1u8; 4]).expect("it"), stream.buffer_from(&[1u8; 5]).expect("it"));
        let result = match group.rank() {
            0 => group.send(&stream, &small, 2),
            1 => group.barrier(&stream),
            _ => group.recv(&stream, &mut large, 0),
        };
        assert_failure(result, Some(2), "rank 0 sends 4 u8 to rank 2, which receives 5 u8");
    });
}

#[test]
fn more_elements_than_can_be_counted_are_an_error_at_their_member() {
    members(2, |group| {
        let stream = group.device().stream().expect("a stream");
        let buffer = |len| stream.buffer_uninit::<[u8; 0]>(len).expect("no bytes");
        let (input, mut output) = (buffer(usize::MAX / 2 + 1), buffer(usize::MAX));
        let gathered = group.all_gather(&stream, &input, &mut output);
        assert_failure(gathered, Some(group.rank()), "are more than can be counted");
    });
}

#[test]
fn members_that_wait_for_each_other_are_told_at_once() {
    let start = Instant::now();
    members(2, |group| {
        let stream = group.device().stream().expect("a stream");
        let buffer = stream.buffer_from(&[1u8; 4]).expect("it");
        let sent = group.send(&stream, &buffer, 1 - group.rank());
        assert_failure(sent, None, "rank 0 in `send` of 4 u8 to rank 1, rank 1 in `send` of 4 u8 to rank 0");
    });
    assert!(start.elapsed() < LONG / 2);
}

pub(crate) fn a_member_that_does_not_come_is_named_when_time_is_over() {
    let over = Barrier::new(3);
    let start = Instant::now();
    members_within(3, SHORT, |group| {
        let stream = group.device().stream().expect("a stream");
        let waited = (group.rank() != 1).then(|| all_reduce(group, &stream));
        over.wait();
        match waited {
            Some(result) => {
                let part = "rank 1 did not come to `all_reduce` by sum of 4 f32 within 5s, in which rank";
                assert_failure(result, Some(1), part);
            }
            None => assert_failure(all_reduce(group, &stream), Some(1), "rank 1 did not come"),
        }
    });
    assert!(start.elapsed() < LONG / 2);
}

#[test]
fn a_member_that_leaves_is_an_error_only_if_somebody_waits_for_it() {
    let start = Instant::now();
    members(3, |group| {
        let stream = group.device().stream().expect("a stream");
        group.barrier(&stream).expect("all are there");
        let one = &mut stream.buffer_from(&[5u8]).expect("it");
        match group.rank() {
            0 => group.send(&stream, &*one, 2).expect("rank 2 is there"),
            1 => return,
            _ => group.recv(&stream, one, 0).expect("rank 0 is there"),
        }
        assert_failure(all_reduce(group, &stream), Some(1), "rank 1 has left the group");
    });
    assert!(start.elapsed() < LONG / 2);
}

#[test]
fn a_device_without_memory_is_an_error_at_its_member_and_at_who_waits_for_it() {
    let address = address();
    let member = |rank| -> Result<()> {
        let mut options = EmulatorOptions::default();
        options.memory_bytes = Some(if rank == 1 { 100 } else { 1000 });
        let device = Device::emulator_with(options);
        let made = Group::new(&device, &GroupOptions::new(rank, 2, &address))?;
        let stream = device.stream()?;
        let work = |group: Group| group.all_reduce(&stream, &mut stream.buffer_zeroed::<u8>(1000)?, ReduceOp::Sum);
        let result = work(made);
        // What the failure found is given back.
        stream.buffer_zeroed::<u8>(if rank == 1 { 100 } else { 1000 })?;
        result
    };
    let start = Instant::now();
    let [first, second] = thread::scope(|scope| {
        let other = scope.spawn(|| member(1));
        [member(0), other.join().expect("no panic")]
    });
    assert_failure(first, Some(1), "rank 1 has left the group, and rank 0 waits in `all_reduce`");
    assert!(matches!(second, Err(Error::Allocation { bytes: 1000, .. })), "{second:?}");
    assert!(start.elapsed() < LONG / 2);
}

#[test]
fn failures_leave_no_buffers() {
    const BYTES: usize = 120;
    // Each takes all the memory of its device.
    let calls: [Call; 4] = [
        |group, stream| group.all_reduce(stream, &mut stream.buffer_zeroed::<u8>(BYTES)?, ReduceOp::Sum),
        |group, stream| group.broadcast(stream, &mut stream.buffer_zeroed::<u8>(BYTES)?, group.rank()),
        |group, stream| {
            let (input, mut output) =
                (stream.buffer_zeroed::<u8>(BYTES / 3)?, stream.buffer_zeroed::<u8>(2 * BYTES / 3)?);
            group.all_gather(stream, &input, &mut output)
        },
        |group, stream| group.send(stream, &stream.buffer_zeroed::<u8>(BYTES)?, 1 - group.rank()),
    ];
    let address = address();
    for call in calls {
        let member = |rank| -> Result<()> {
            let mut options = EmulatorOptions::default();
            options.memory_bytes = Some(BYTES);
            let device = Device::emulator_with(options);
            let group = Group::new(&device, &GroupOptions::new(rank, 2, &address))?;
            let stream = device.stream()?;
            // Of members that call the same, the barrier ends it.
            let first = if rank == 0 { call(&group, &stream) } else { Ok(()) };
            let failed = first.and_then(|()| group.barrier(&stream));
            let again = call(&group, &stream);
            assert_eq!(failure(failed).0, failure(again).0);
            stream.buffer_zeroed::<u8>(BYTES).map(drop)
        };
        thread::scope(|scope| {
            let other = scope.spawn(|| member(1));
            member(0).expect("all memory is there");
            other.join().expect("no panic").expect("all memory is there");
        });
    }
}

#[test]
fn a_thread_that_panics_is_an_error_at_the_others() {
    let address = address();
    let at = address.clone();
    let other = thread::spawn(move || {
        let _group = meet(1, 2, &at, LONG).expect("a group");
        panic!("as the test wants");
    });
    let group = meet(0, 2, &address, LONG).expect("a group");
    let stream = group.device().stream().expect("a stream");
    assert_failure(all_reduce(&group, &stream), Some(1), "is gone");
    assert!(other.join().is_err());
}

#[test]
fn a_mistake_of_one_member_leaves_the_group_as_it_is() {
    let results = members(2, |group| -> Result<()> {
        let stream = group.device().stream()?;
        if group.rank() == 0 {
            let (input, mut output) = (stream.buffer_zeroed::<f32>(3)?, stream.buffer_zeroed::<f32>(5)?);
            let gathered = group.all_gather(&stream, &input, &mut output);
            assert!(matches!(gathered, Err(Error::LengthMismatch { first_len: 5, second_len: 6, .. })), "{gathered:?}");
            let scattered = group.reduce_scatter(&stream, &output, ReduceOp::Sum, &mut stream.buffer_zeroed(3)?);
            assert!(
                matches!(scattered, Err(Error::LengthMismatch { first_len: 5, second_len: 6, .. })),
                "{scattered:?}"
            );
            assert_failure(group.all_to_all(&stream, &input, &mut output), Some(0), "3 elements are no multiple");
            assert_failure(group.broadcast(&stream, &mut output, 2), Some(0), "there is no rank 2 in a group of 2");
            assert_failure(group.send(&stream, &input, 0), Some(0), "rank 0 sends to itself");
            assert_failure(group.recv(&stream, &mut output, 7), Some(0), "there is no rank 7");
            for (to, from) in [(0, 1), (1, 0)] {
                let half = group.send_recv(&stream, &input, to, &mut output, from);
                assert_failure(half, Some(0), "rank 0 is to send to itself and to receive from itself, or neither");
            }
            let own = group.send_recv(&stream, &input, 0, &mut output, 0);
            assert!(matches!(own, Err(Error::LengthMismatch { first_len: 5, second_len: 3, .. })), "{own:?}");

            let captured = stream.capture(|stream| group.barrier(stream)).map(drop);
            assert!(matches!(captured, Err(Error::Capture { .. })), "{captured:?}");
            let elsewhere = Devices::emulated(2)?[1].stream()?;
            let mut theirs = elsewhere.buffer_zeroed::<f32>(1)?;
            for (stream, argument) in [(&stream, "the buffer"), (&elsewhere, "the group")] {
                match group.all_reduce(stream, &mut theirs, ReduceOp::Sum) {
                    Err(Error::WrongDevice { argument: named, .. }) => assert_eq!(named, argument),
                    other => panic!("{other:?}"),
                }
            }
        }
        group.barrier(&stream)?;
        all_reduce(group, &stream)
    });
    results.into_iter().for_each(|result| result.expect("all is well"));
}
