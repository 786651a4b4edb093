//! Groups in the emulator: of threads, and of processes.

mod collectives;
mod devices;
mod failures;
mod processes;
mod rendezvous;

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::Duration;

use primitives_host::{Device, Error, Group, GroupOptions, Result};

/// Longer than all that is not to end by it.
const LONG: Duration = Duration::from_secs(60);

/// An address that nobody listens at. Its port is below those that systems hand out.
fn address() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = (std::process::id() % 200) as u16 * 40;
    loop {
        let port = 16_000 + (first + NEXT.fetch_add(1, Ordering::Relaxed)) % 8_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return format!("127.0.0.1:{port}");
        }
    }
}

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
