//! Groups of processes: this test is started again as each of them.

use std::env;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use primitives_host::{Group, ReduceOp, Result, Stream};

use crate::{LONG, address, assert_failure, meet};

/// What a process that this test starts does.
const ROLE: &str = "GROUP_TEST_ROLE";

/// A process, which ends at the latest with this.
struct Member(Option<Child>);

impl Member {
    fn start(role: &str, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env::current_exe().expect("this test"));
        command.args(["--exact", "processes::member_of_a_test", "--nocapture"]);
        command.env(ROLE, role).env("KERNEL_PRIMITIVES_DEVICE", "emulator").envs(variables.iter().copied());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(Some(command.spawn().expect("a process")))
    }

    /// As torchrun starts it.
    fn of(role: &str, rank: usize, size: usize, address: &str) -> Self {
        let (host, port) = address.rsplit_once(':').expect("an address");
        let (rank, size) = (rank.to_string(), size.to_string());
        let variables = [("RANK", &*rank), ("WORLD_SIZE", &size), ("MASTER_ADDR", host), ("MASTER_PORT", port)];
        Self::start(role, &variables)
    }

    fn kill(&mut self) {
        self.0.as_mut().expect("it runs").kill().expect("it runs");
    }

    #[track_caller]
    fn succeeds(mut self) {
        let Output { status, stdout, stderr } = self.0.take().expect("it runs").wait_with_output().expect("an end");
        let text = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        assert!(status.success() && text.contains("1 passed"), "{text}");
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The sum of 1, 2 and so on to the size.
fn sum(group: &Group, stream: &Stream) -> Result<()> {
    let mut buffer = stream.buffer_from(&[group.rank() as u32 + 1])?;
    group.all_reduce(stream, &mut buffer, ReduceOp::Sum)?;
    let size = group.size() as u32;
    assert_eq!(buffer.to_vec()?, [size * (size + 1) / 2]);
    Ok(())
}

/// Not a test, but what the processes of the others do.
#[test]
fn member_of_a_test() {
    let Ok(role) = env::var(ROLE) else { return };
    let group = Group::from_environment().expect("a group");
    let stream = group.device().stream().expect("a stream");
    sum(&group, &stream).expect("a sum");
    match role.as_str() {
        "computes" => group.barrier(&stream).expect("all come"),
        // Until it is killed.
        "sleeps" => thread::sleep(2 * LONG),
        "loses rank 1" => assert_failure(sum(&group, &stream), Some(1), "rank 1 at 127.0.0.1:"),
        other => panic!("{other}"),
    }
}

#[test]
fn processes_find_each_other_by_the_variables_of_launchers() {
    let address = address();
    let (host, port) = address.rsplit_once(':').expect("an address");
    let start = |rank: &str, launcher: [&str; 2], more: &[(&str, &str)]| {
        let variables = [(launcher[0], rank), (launcher[1], "4"), ("MASTER_ADDR", host), ("MASTER_PORT", port)];
        Member::start("computes", &[&variables[..], more].concat())
    };
    // One group has one launcher; but each of them would do.
    let all = [
        start("3", ["RANK", "WORLD_SIZE"], &[("LOCAL_RANK", "3")]),
        start("2", ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"], &[]),
        start("1", ["PMI_RANK", "PMI_SIZE"], &[]),
        start("0", ["SLURM_PROCID", "SLURM_NTASKS"], &[("SLURM_JOB_NODELIST", "elsewhere[1-2]")]),
    ];
    all.into_iter().for_each(Member::succeeds);
}

#[test]
fn a_killed_process_is_an_error_at_the_others() {
    let address = address();
    let mut killed = Member::of("sleeps", 1, 3, &address);
    let other = Member::of("loses rank 1", 2, 3, &address);
    let group = meet(0, 3, &address, LONG).expect("a group");
    let stream = group.device().stream().expect("a stream");
    sum(&group, &stream).expect("all are there");
    let start = Instant::now();
    killed.kill();
    assert_failure(sum(&group, &stream), Some(1), "is gone: its process has ended");
    assert!(start.elapsed() < LONG / 2);
    other.succeeds();
}

#[test]
fn a_process_that_is_killed_while_the_others_wait_ends_their_waiting() {
    let address = address();
    let mut killed = Member::of("sleeps", 1, 2, &address);
    let group = meet(0, 2, &address, LONG).expect("a group");
    let stream = group.device().stream().expect("a stream");
    sum(&group, &stream).expect("all are there");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| sum(&group, &stream));
        thread::sleep(Duration::from_millis(100));
        killed.kill();
        assert_failure(waiting.join().expect("no panic"), Some(1), "is gone");
    });
}

#[test]
fn the_end_of_rank_0_is_an_error_at_the_others() {
    let address = address();
    let mut killed = Member::of("sleeps", 0, 2, &address);
    let group = meet(1, 2, &address, LONG).expect("a group");
    let stream = group.device().stream().expect("a stream");
    sum(&group, &stream).expect("all are there");
    let start = Instant::now();
    killed.kill();
    assert_failure(sum(&group, &stream), Some(0), "rank 0 is gone, its process has ended");
    assert_failure(group.barrier(&stream), Some(0), "rank 0 is gone");
    assert!(start.elapsed() < LONG / 2);
}
