//! Groups in the emulator: of threads, and of processes.
//!
//! What is made to go wrong, here, in `fake_nccl/` and in `fake_driver/`. Each is an error at the members that wait, which names the member, long
//! before the tests' time-out, unless it says otherwise.
//!
//! | what | tests |
//! |---|---|
//! | a process is killed | `a_killed_process_is_an_error_at_the_others`, `a_process_that_is_killed_while_the_others_wait_ends_their_waiting`, `the_end_of_rank_0_is_an_error_at_the_others` |
//! | a member is missing, when members meet and in a call | `a_member_that_never_comes_is_named`, `a_member_that_does_not_come_is_named_when_time_is_over` |
//! | calls, lengths, types or operations differ | `calls_that_differ_are_errors_at_all_members`, `messages_that_differ_are_errors_at_all_members`, `checked_calls_that_differ_are_errors_before_nccl_has_them` |
//! | roots differ | `roots_that_differ_are_errors_at_all_members` |
//! | two members have one rank | `two_members_of_one_rank_are_named`, `there_is_one_rank_0` |
//! | a rank is out of range | `options_that_make_no_sense_are_refused`, `a_mistake_of_one_member_leaves_the_group_as_it_is` |
//! | sizes differ | `sizes_that_differ_are_named` |
//! | two members have one GPU | `members_on_one_gpu_are_named_before_nccl_is_called` |
//! | NCCL is missing | `without_nccl_all_members_are_told_what_is_missing` |
//! | NCCL is too old | `with_an_old_nccl_all_members_are_told_its_version` |
//! | NCCL fails, refuses or never ends a call | `an_error_of_nccl_at_one_member_ends_the_calls_of_all`, `what_nccl_refuses_is_an_error_at_all_members`, `what_nccl_refuses_ends_a_group_of_devices`, `a_call_that_does_not_end_is_aborted_when_its_time_is_over`, `a_call_that_waits_inside_nccl_is_aborted_when_its_time_is_over` |
//! | no peer access: no error, data goes through the host | `members_of_one_process_let_each_other_access_their_memory_if_that_can_be`, `memory_is_opened_to_a_peer_once_and_only_if_that_can_be` |
//! | one device is out of memory, of a group | `a_device_without_memory_is_an_error_at_its_member_and_at_who_waits_for_it`, `a_gpu_without_memory_is_an_error_at_all_members` |
//! | one device is out of memory, of a split | `a_gpu_without_memory_is_an_error_of_a_split_and_leaves_nothing_on_the_other` |
//! | a member's thread panics | `a_thread_that_panics_is_an_error_at_the_others`, `a_member_that_panics_ends_the_calls_of_the_others` |
//! | a member leaves | `a_member_that_leaves_is_an_error_only_if_somebody_waits_for_it` |
//! | all wait for each other: names nobody | `members_that_wait_for_each_other_are_told_at_once` |
//! | buffers of calls that failed are freed | `failures_leave_no_buffers` |

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

/// What takes as long as a limit of time, and computes nothing: side by side.
#[test]
fn what_waits_until_a_time_is_over() {
    thread::scope(|scope| {
        for (name, test) in WAITING {
            let run = thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, test);
            run.expect("a thread");
        }
    });
}

macro_rules! named {
    ($($module:ident::$test:ident),* $(,)?) => { [$((stringify!($test), $module::$test as fn())),*] };
}

const WAITING: [(&str, fn()); 5] = named![
    failures::a_member_that_does_not_come_is_named_when_time_is_over,
    rendezvous::a_group_may_be_made_where_one_has_failed,
    rendezvous::a_member_that_never_comes_is_named,
    rendezvous::the_shortest_time_out_is_that_of_all,
    rendezvous::there_is_one_rank_0,
];

#[test]
fn each_failure_of_the_table_has_its_tests() {
    let sources = [
        include_str!("failures.rs"),
        include_str!("processes.rs"),
        include_str!("rendezvous.rs"),
        include_str!("../fake_nccl/main.rs"),
        include_str!("../fake_nccl/refusals.rs"),
        include_str!("../fake_driver/peers.rs"),
    ];
    let rows = include_str!("main.rs").lines().filter(|line| line.starts_with("//! | ") && line.contains('`'));
    let tests: Vec<&str> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
    assert!(tests.len() > 20, "{tests:?}");
    let is_missing = |test: &&&str| {
        let head = format!("#[test]\nfn {test}(");
        !sources.iter().any(|source| source.contains(&head)) && !WAITING.iter().any(|(name, _)| *name == **test)
    };
    let missing: Vec<_> = tests.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "no tests: {missing:#?}");
}
