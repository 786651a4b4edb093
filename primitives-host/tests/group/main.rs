//! Groups in the emulator: of threads, and of processes.

mod collectives;
mod devices;
mod failures;
#[path = "../ports/mod.rs"]
mod ports;
mod processes;
mod rendezvous;

use std::thread;
use std::time::Duration;

use ports::address;
use primitives_host::{Device, Error, Group, GroupOptions, Result};

/// Longer than all that is not to end by it.
const LONG: Duration = Duration::from_secs(60);

/// What is to be over, and yet enough for threads to start on a busy machine.
const SHORT: Duration = Duration::from_secs(5);

/// Meets the others.
fn meet(rank: usize, size: usize, address: &str, timeout: Duration) -> Result<Group> {
    let mut options = GroupOptions::new(rank, size, address);
    options.timeout = timeout;
    Group::new(&Device::emulator(), &options)
}

/// What each of so many threads does with its group.
fn members_within<R: Send>(size: usize, timeout: Duration, member: impl Fn(&Group) -> R + Sync) -> Vec<R> {
    let address = address();
    let (address, member) = (address.as_str(), &member);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..size)
            .map(|rank| scope.spawn(move || member(&meet(rank, size, address, timeout).expect("a group"))))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

fn members<R: Send>(size: usize, member: impl Fn(&Group) -> R + Sync) -> Vec<R> {
    members_within(size, LONG, member)
}

/// The member to blame, and the text. A panic if there is no such error.
#[track_caller]
fn failure<T>(result: Result<T>) -> (Option<usize>, String) {
    match result {
        Err(error @ Error::Group { member, .. }) => (member, error.to_string()),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("no error"),
    }
}

#[track_caller]
fn assert_failure<T>(result: Result<T>, member: Option<usize>, part: &str) {
    let (blamed, text) = failure(result);
    assert_eq!(blamed, member, "{text}");
    assert!(text.contains(part), "no {part:?} in {text}");
}
