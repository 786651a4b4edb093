//! Fits a line through points that two processes share. Each process adds up its own points, and the group adds the sums.
//!
//! ```text
//! cargo run --release --example two_processes
//! cargo run --release --example two_processes 4
//! torchrun --no-python --nproc-per-node 2 target/release/examples/two_processes
//! srun --ntasks 8 target/release/examples/two_processes
//! mpirun -n 2 -x KERNEL_PRIMITIVES_GROUP=127.0.0.1:15123 target/release/examples/two_processes
//! ```
//!
//! Without a launcher, the program starts itself as several processes of this machine. Each process has a GPU of its own. If there are
//! fewer GPUs than processes, all processes use the emulator. `KERNEL_PRIMITIVES_DEVICE=emulator` asks for that.

use std::env;
use std::net::TcpListener;
use std::process::{Child, Command, exit};

use kernel_primitives::expr::{Reductions, Tensor, element_index, sin};
use kernel_primitives::{DEVICE_VARIABLE, Device, Error, Group, GroupOptions, ReduceOp, Result};

/// The number of points of all processes.
const POINTS: usize = 1 << 20;

fn main() -> Result<()> {
    match GroupOptions::from_environment() {
        Ok(options) => member(&options),
        // No launcher has started this process.
        Err(Error::Group { .. }) => {
            match env::args_os().nth(1).map(|size| size.to_str().and_then(|size| size.parse::<usize>().ok())) {
                None => start(2),
                Some(Some(size @ 1..)) => start(size),
                Some(_) => {
                    eprintln!("usage: two_processes [processes], at least 1");
                    exit(2);
                }
            }
            Ok(())
        }
        Err(other) => Err(other),
    }
}

/// Starts `size` processes with the variables of torchrun, and waits for them.
fn start(size: usize) {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
    let program = env::current_exe().expect("the path of this program");
    let asked = env::var(DEVICE_VARIABLE).unwrap_or_default();
    let on_emulator = needs_emulator(size, Device::gpu_count(), &asked);
    if on_emulator {
        println!("there are fewer GPUs than processes: all processes use the emulator");
    }
    let member = |rank: usize| {
        let mut command = Command::new(&program);
        command.env("RANK", rank.to_string()).env("LOCAL_RANK", rank.to_string()).env("WORLD_SIZE", size.to_string());
        command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", free.port().to_string());
        if on_emulator {
            command.env(DEVICE_VARIABLE, "emulator");
        }
        command.spawn()
    };
    let mut members: Vec<Child> = Vec::new();
    let started = (0..size).try_for_each(|rank| member(rank).map(|member| members.push(member)));
    if let Err(error) = &started {
        eprintln!("process {} does not start: {error}", members.len());
        // The members would wait for it. One that has ended by itself need not be stopped.
        for member in &mut members {
            let _ = member.kill();
        }
    }
    let ends: Vec<bool> =
        members.into_iter().map(|mut member| member.wait().is_ok_and(|status| status.success())).collect();
    if started.is_err() || ends.contains(&false) {
        exit(1);
    }
}

/// Whether there are GPUs, but too few for all processes, and `asked` leaves the choice to the program.
fn needs_emulator(size: usize, gpus: usize, asked: &str) -> bool {
    (1..size).contains(&gpus) && matches!(asked, "" | "auto")
}

/// Runs one of the processes.
fn member(options: &GroupOptions) -> Result<()> {
    let group = Group::new(&options.device()?, options)?;
    let stream = group.device().stream()?;
    let (rank, size) = (group.rank(), group.size());
    let (first, end) = (POINTS * rank / size, POINTS * (rank + 1) / size);
    println!("rank {rank} of {size} on {}: points {first}..{end}", group.device());

    // The points are on a line with waves.
    let (x, y) = (Tensor::<f64>::uninit(&stream, end - first)?, Tensor::<f64>::uninit(&stream, end - first)?);
    x.assign((element_index::<f64>() + first as f64) / POINTS as f64)?;
    y.assign(&x * 3.0 + 2.0 + sin(&x * 40.0) * 0.1)?;

    let own = [x.sum().item()?, y.sum().item()?, (&x * &x).sum().item()?, (&x * &y).sum().item()?];
    let mut sums = stream.buffer_from(&own)?;
    group.all_reduce(&stream, &mut sums, ReduceOp::Sum)?;
    let sums = sums.to_vec()?;
    let (slope, intercept) = line([sums[0], sums[1], sums[2], sums[3]]);

    // All members get the same line.
    let mut lines = stream.buffer_zeroed::<f64>(2 * size)?;
    group.all_gather(&stream, &stream.buffer_from(&[slope, intercept])?, &mut lines)?;
    assert!(lines.to_vec()?.chunks_exact(2).all(|line| line == [slope, intercept]));
    if rank == 0 {
        println!("y = {slope:.6} x + {intercept:.6}");
        check(slope, intercept);
        println!("checked against the CPU");
    }
    // Rank 0 connects the other members, so no process may end before all are done.
    group.barrier(&stream)
}

/// The slope and the intercept of the least-squares line, from the sums of `x`, `y`, `x²` and `xy`.
fn line([x, y, xx, xy]: [f64; 4]) -> (f64, f64) {
    let n = POINTS as f64;
    let slope = (n * xy - x * y) / (n * xx - x * x);
    (slope, (y - slope * x) / n)
}

/// Compares the line with the one that a loop over all points gives.
fn check(slope: f64, intercept: f64) {
    let mut sums = [0.0; 4];
    for i in 0..POINTS {
        let x = i as f64 / POINTS as f64;
        let y = x * 3.0 + 2.0 + (x * 40.0).sin() * 0.1;
        for (sum, term) in sums.iter_mut().zip([x, y, x * x, x * y]) {
            *sum += term;
        }
    }
    let expected = line(sums);
    assert!((slope - expected.0).abs() < 1e-8 && (intercept - expected.1).abs() < 1e-8, "not {expected:?}");
}

#[cfg(test)]
mod tests {
    use super::needs_emulator;

    #[test]
    fn processes_use_the_emulator_if_there_are_fewer_gpus() {
        assert!(needs_emulator(2, 1, "") && needs_emulator(3, 2, "auto"));
        assert!(!needs_emulator(2, 0, "") && !needs_emulator(2, 2, "") && !needs_emulator(2, 1, "gpu"));
    }
}
