//! Expressions in threads of a pool that steals work.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use kernel_primitives::expr::*;
use kernel_primitives::prelude::device_function;
use kernel_primitives::{Device, Error, Result, Stream};
use rayon::prelude::*;

use super::stream;

/// Enough for several threads.
const LEN: usize = 300_000;

/// The result of `work` on four threads of rayon; a panic if it has none after a minute. The threads of a failure stay.
fn in_rayon<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, result) = mpsc::channel();
    thread::spawn(move || {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().expect("four threads");
        let _ = done.send(pool.install(work));
    });
    result.recv_timeout(Duration::from_secs(60)).expect("a thread waits for itself, or has panicked")
}

/// A thread that waits in rayon runs another task, which may want the same tensor.
#[test]
fn tasks_of_rayon_share_tensors() -> Result<()> {
    const TASKS: usize = 200;
    let stream = stream()?;
    let (a, b) = (Tensor::<i32>::zeros(&stream, LEN)?, Tensor::from_slice(&stream, LEN, &vec![2; LEN])?);
    let total = Tensor::<i32>::zeros(&stream, [1usize; 0])?;
    in_rayon(move || {
        (0..TASKS).into_par_iter().try_for_each(|task| match task % 4 {
            0 => rayon::join(|| a.add_assign(scalar(1)), || b.assign(&b * 1)).0,
            1 => b.sum().assign_to(&total),
            _ => a.add_assign(scalar(1)),
        })?;
        assert_eq!(a.to_vec()?, vec![TASKS as i32 * 3 / 4; LEN]);
        assert_eq!(total.item()?, 2 * LEN as i32);
        Ok(())
    })
}

/// A replay locks what it uses for as long as it runs.
#[test]
fn tasks_of_rayon_replay_one_graph() -> Result<()> {
    let stream = stream()?;
    let a = Tensor::<i32>::zeros(&stream, LEN)?;
    let graph = stream.capture(|s| a.on(s).add_assign(scalar(1)))?;
    in_rayon(move || {
        (0..100).into_par_iter().try_for_each(|_| graph.launch(&stream))?;
        assert_eq!(a.to_vec()?, vec![100; LEN]);
        Ok(())
    })
}

static FIRST: AtomicBool = AtomicBool::new(false);
static SECOND: AtomicBool = AtomicBool::new(false);

fn wait_for(flag: &AtomicBool) {
    let start = Instant::now();
    while !flag.load(SeqCst) && start.elapsed() < Duration::from_secs(2) {
        thread::yield_now();
    }
}

/// Of 1 it says that it is there and waits for another thread to come to a 2, which takes a while.
#[device_function]
fn meet(x: u32) -> u32 {
    match x {
        1 => {
            FIRST.store(true, SeqCst);
            wait_for(&SECOND);
        }
        2 => {
            SECOND.store(true, SeqCst);
            thread::sleep(Duration::from_millis(300));
        }
        _ => {}
    }
    x
}

/// An assignment of which another thread has the second half, while its own has nothing left but to wait: it must not take up one of
/// the tasks that want the same tensor.
#[test]
fn a_thread_that_waits_takes_no_other_task() -> Result<()> {
    const LEN: usize = 4 * 16_384;
    let stream = Device::emulator().stream()?;
    let mut x = vec![0u32; LEN];
    (x[0], x[LEN / 2]) = (1, 2);
    let x = Tensor::from_slice(&stream, LEN, &x)?;
    let a = Arc::new(Tensor::<u32>::zeros(&stream, LEN)?);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("two threads");
    let (done, result) = mpsc::channel();
    pool.spawn(|| wait_for(&FIRST));
    let (target, first) = (Arc::clone(&a), done.clone());
    pool.spawn(move || {
        target.assign(call(meet::info(), (x,))).expect("the assignment");
        let _ = first.send(());
    });
    for _ in 0..4 {
        let (target, done) = (Arc::clone(&a), done.clone());
        pool.spawn(move || {
            target.add_assign(scalar(1u32)).expect("a sum");
            let _ = done.send(());
        });
    }
    // Its end would wait for threads that wait for themselves.
    std::mem::forget(pool);
    for task in 0..5 {
        assert!(result.recv_timeout(Duration::from_secs(60)).is_ok(), "after {task} tasks a thread waits for itself");
    }
    Ok(())
}

static STREAM: OnceLock<Stream> = OnceLock::new();
static ERRORS: Mutex<Vec<Error>> = Mutex::new(Vec::new());

/// Of 1 it waits for the stream that it runs on.
#[device_function]
fn wait_for_itself(x: u32) -> u32 {
    if x == 1 {
        let result = STREAM.get().expect("the test sets it").synchronize();
        ERRORS.lock().expect("no panic").extend(result.err());
    }
    x
}

/// The wait is an error on each thread that computes a part of the assignment.
#[test]
fn a_function_that_waits_for_its_own_stream_gets_an_error() -> Result<()> {
    let stream = STREAM.get_or_init(|| Device::emulator().stream().expect("a stream"));
    let mut x = vec![0u32; LEN];
    let ones = [0, LEN / 3, LEN / 2, LEN - 1];
    ones.iter().for_each(|&at| x[at] = 1);
    let x = Tensor::from_slice(stream, LEN, &x)?;
    let (done, result) = mpsc::channel();
    thread::spawn(move || {
        done.send(
            Tensor::uninit(STREAM.get().unwrap(), LEN).and_then(|y| y.assign(call(wait_for_itself::info(), (&x,)))),
        )
    });
    result.recv_timeout(Duration::from_secs(60)).expect("the assignment waits for itself")?;
    let errors = ERRORS.lock().expect("no panic");
    assert!(
        errors.len() == ones.len() && errors.iter().all(|error| matches!(error, Error::InKernel { .. })),
        "{errors:?}"
    );
    Ok(())
}
