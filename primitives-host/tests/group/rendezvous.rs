//! How members find each other, and what is wrong where they do not.

use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use primitives_host::{Device, Group, GroupOptions, Result};

use crate::{LONG, SHORT, address, assert_failure, failure, meet};

/// What members get that come at once: their ranks, and the sizes that they know of.
fn come(who: &[(usize, usize)], timeout: Duration) -> Vec<Result<Group>> {
    let address = address();
    let address = address.as_str();
    thread::scope(|scope| {
        let threads: Vec<_> =
            who.iter().map(|&(rank, size)| scope.spawn(move || meet(rank, size, address, timeout))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

pub(crate) fn a_member_that_never_comes_is_named() {
    let start = Instant::now();
    for result in come(&[(0, 3), (2, 3)], SHORT) {
        assert_failure(result, Some(1), "rank 1 of 3 did not come in time");
    }
    // Without rank 0, nobody knows of the others.
    for result in come(&[(1, 3), (2, 3)], Duration::from_millis(300)) {
        assert_failure(result, Some(0), "rank 0 of 3 did not answer rank");
    }
    assert!(start.elapsed() < LONG / 2);
}

#[test]
fn two_members_of_one_rank_are_named() {
    let start = Instant::now();
    for result in come(&[(0, 3), (1, 3), (1, 3)], LONG) {
        assert_failure(result, Some(1), "two members have rank 1: one at 127.0.0.1:");
    }
    assert!(start.elapsed() < LONG / 2);
}

#[test]
fn sizes_that_differ_are_named() {
    let start = Instant::now();
    for result in come(&[(0, 2), (1, 3)], LONG) {
        assert_failure(result, Some(1), "says that the group has 3 members, and rank 0 that it has 2");
    }
    assert!(start.elapsed() < LONG / 2);
}

pub(crate) fn a_group_may_be_made_where_one_has_failed() {
    let address = address();
    let start = Instant::now();
    let alone = meet(0, 2, &address, Duration::from_millis(300));
    assert_failure(alone, Some(1), "rank 1 of 2 did not come in time");
    meet(0, 1, &address, LONG).expect("a group, when nobody is told of the failure any more");
    assert!(start.elapsed() < LONG / 2);
}

pub(crate) fn there_is_one_rank_0() {
    let address = address();
    let (sender, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..2 {
            let (sender, address) = (sender.clone(), &address);
            scope.spawn(move || sender.send(meet(0, 2, address, LONG)).is_ok());
        }
        let second = results.recv().expect("one of the two");
        assert_failure(second, Some(0), "another member has rank 0 too, or another program listens there");
        meet(1, 2, &address, LONG).expect("a group with the first");
        results.recv().expect("the other one").expect("a group");
    });
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let start = Instant::now();
    assert_failure(meet(2, 2, &address(), LONG), Some(2), "there is no rank 2 in a group of 2");
    assert_failure(meet(0, 0, &address(), LONG), Some(0), "there is no rank 0 in a group of 0");
    assert_failure(meet(0, usize::MAX, &address(), LONG), Some(0), "a group has at most 1048576 members");
    assert_failure(meet(0, 1, &address(), Duration::ZERO), Some(0), "time-out");
    meet(0, 1, &address(), Duration::MAX).expect("a group of one, which waits for nobody");
    for wrong in
        ["no address", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:port", "127.0.0.1:99999", ":29500", "2001:db8::5000"]
    {
        for rank in 0..2 {
            assert_failure(meet(rank, 2, wrong, LONG), Some(rank), &format!("{wrong} is not a host and a port"));
        }
    }
    assert_failure(meet(0, 1, "192.0.2.1:29500", LONG), Some(0), "rank 0 cannot listen at 192.0.2.1:29500");
    assert!(start.elapsed() < LONG / 2);
}

#[test]
fn rank_0_may_come_last() {
    let address = address();
    let address = address.as_str();
    thread::scope(|scope| {
        let early = scope.spawn(move || meet(1, 2, address, LONG));
        thread::sleep(Duration::from_millis(100));
        meet(0, 2, address, LONG).expect("a group");
        early.join().expect("no panic").expect("a group");
    });
}

#[test]
fn strangers_do_not_disturb() {
    let address = address();
    let address = address.as_str();
    thread::scope(|scope| {
        let first = scope.spawn(move || meet(0, 2, address, LONG));
        let connect = || {
            loop {
                match TcpStream::connect(address) {
                    Ok(stream) => break stream,
                    Err(_) => thread::sleep(Duration::from_millis(5)),
                }
            }
        };
        let _silent = connect();
        drop(connect());
        connect().write_all(&[b'G'; 1000]).expect("somebody listens");
        meet(1, 2, address, LONG).expect("a group");
        first.join().expect("no panic").expect("a group");
    });
}

#[test]
fn groups_follow_each_other_at_one_address() {
    let address = address();
    let address = address.as_str();
    thread::scope(|scope| {
        let member = move |rank| -> Result<()> {
            let mut all = Vec::new();
            for _ in 0..5 {
                let group = meet(rank, 2, address, LONG)?;
                group.barrier(&group.device().stream()?)?;
                all.push(group);
            }
            // Those that came first are still there.
            all.iter().try_for_each(|group| group.barrier(&group.device().stream()?))
        };
        let other = scope.spawn(move || member(1));
        member(0).expect("groups");
        other.join().expect("no panic").expect("groups");
    });
}

#[test]
fn names_are_addresses_too() {
    let address = address().replace("127.0.0.1", "localhost");
    let address = address.as_str();
    thread::scope(|scope| {
        let other = scope.spawn(move || meet(1, 2, address, LONG));
        let group = meet(0, 2, address, LONG).expect("a group");
        let other = other.join().expect("no panic").expect("a group");
        assert_eq!((group.rank(), group.size(), other.rank(), other.size()), (0, 2, 1, 2));
    });
}

pub(crate) fn the_shortest_time_out_is_that_of_all() {
    let address = address();
    let address = address.as_str();
    let start = Instant::now();
    thread::scope(|scope| {
        let other = scope.spawn(move || meet(1, 2, address, SHORT));
        let mut options = GroupOptions::new(0, 2, address);
        options.timeout = LONG;
        let group = Group::new(&Device::emulator(), &options).expect("a group");
        let stream = group.device().stream().expect("a stream");
        let other = other.join().expect("no panic").expect("a group");
        assert!(failure(group.barrier(&stream)).1.contains("within 5s"));
        drop(other);
    });
    assert!(start.elapsed() < LONG / 2);
}
