//! Tests expressions in threads of a pool that steals work.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kernel_primitives::expr::*;
use kernel_primitives::prelude::device_function;
use kernel_primitives::{Device, Devices, Error, Result, Split, Stream};
use rayon::prelude::*;

use super::stream;

/// A length that is enough for several threads.
const LEN: usize = 300_000;

/// Returns the result of `work` on four threads of rayon. Panics if there is no result after a minute. After a failure, the threads stay.
fn in_rayon<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, result) = mpsc::channel();
    thread::spawn(move || {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().expect("four threads");
        let _ = done.send(pool.install(work));
    });
    result.recv_timeout(Duration::from_secs(60)).expect("a thread waits for itself, or has panicked")
}

/// A thread that waits in rayon runs another task, which may need the same tensor.
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

/// A replay locks its memory as long as it runs.
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

/// Whether a thread has come to the first and to the second place of a test in which two threads meet, and whether they have missed
/// each other.
type Places = [AtomicBool; 3];

static OF_ASSIGNMENT: Places = [const { AtomicBool::new(false) }; 3];
static OF_REPLAY: Places = [const { AtomicBool::new(false) }; 3];

/// Returns whether expressions have a second thread. A machine of one core has none.
fn has_helper() -> bool {
    thread::available_parallelism().is_ok_and(|cores| cores.get() > 1)
}

/// Waits until another thread sets the flag, and returns whether it has. It does not panic, because rayon would end the process.
fn wait_for(flag: &AtomicBool) -> bool {
    let start = Instant::now();
    while !flag.load(SeqCst) && start.elapsed() < Duration::from_secs(40) {
        thread::yield_now();
    }
    flag.load(SeqCst)
}

/// At the first of two places, a thread says that it is there. Then it waits until another thread comes to the second place, which takes a
/// while.
fn come(places: &Places, second: bool) {
    places[second as usize].store(true, SeqCst);
    if second {
        thread::sleep(Duration::from_millis(300));
    } else {
        places[2].fetch_or(!wait_for(&places[1]), SeqCst);
    }
}

/// Numbers 1 and 2 are the places of one test, and 3 and 4 those of the other test.
#[device_function]
fn meet(x: u32) -> u32 {
    match x {
        1 | 2 => come(&OF_ASSIGNMENT, x == 2),
        3 | 4 => come(&OF_REPLAY, x == 4),
        _ => {}
    }
    x
}

/// A length that is enough for two threads that meet.
const MEETING: usize = 4 * 16_384;

/// A thread begins `first`. Another thread computes the second half of it, and the first thread has only to wait. Meanwhile, it must not
/// start one of the four tasks `then`, which need the same tensor.
fn waits_alone(
    places: &'static Places,
    first: impl FnOnce() -> Result<()> + Send + 'static,
    then: impl Fn() -> Result<()> + Clone + Send + 'static,
) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("two threads");
    let (done, result) = mpsc::channel();
    pool.spawn(move || _ = wait_for(&places[0]));
    let from_first = done.clone();
    pool.spawn(move || {
        let _ = from_first.send(first());
    });
    for _ in 0..4 {
        let (then, done) = (then.clone(), done.clone());
        pool.spawn(move || {
            let _ = done.send(then());
        });
    }
    // A drop would wait for threads that wait for themselves.
    std::mem::forget(pool);
    for task in 0..5 {
        let ended = result.recv_timeout(Duration::from_secs(60));
        ended.unwrap_or_else(|_| panic!("after {task} tasks a thread waits for itself")).expect("a task");
    }
    assert!(!places[2].load(SeqCst), "no thread has come to the second place");
}

/// Makes a tensor of zeros, with the two places of a test.
fn meeting(stream: &Stream, places: [u32; 2]) -> Result<Tensor<u32>> {
    let mut x = vec![0u32; MEETING];
    [x[0], x[MEETING / 2]] = places;
    Tensor::from_slice(stream, MEETING, &x)
}

#[test]
fn a_thread_that_waits_takes_no_other_task() -> Result<()> {
    if !has_helper() {
        println!("no second thread comes: this machine has one core");
        return Ok(());
    }
    let stream = Device::emulator().stream()?;
    let x = meeting(&stream, [1, 2])?;
    // The four tasks come after the assignment, which is under way when they begin.
    let expected: Vec<u32> = x.to_vec()?.into_iter().map(|x| x + 4).collect();
    let a = Arc::new(Tensor::<u32>::zeros(&stream, MEETING)?);
    let (first, then) = (Arc::clone(&a), Arc::clone(&a));
    waits_alone(&OF_ASSIGNMENT, move || first.assign(call(meet::info(), (x,))), move || then.add_assign(scalar(1u32)));
    assert_eq!(a.to_vec()?, expected);
    Ok(())
}

/// A replay holds the memory of its graph, and all tasks replay one graph.
#[test]
fn a_thread_that_waits_in_a_replay_takes_no_other_replay() -> Result<()> {
    if !has_helper() {
        println!("no second thread comes: this machine has one core");
        return Ok(());
    }
    let stream = Device::emulator().stream()?;
    let x = meeting(&stream, [3, 4])?;
    let a = Arc::new(Tensor::<u32>::zeros(&stream, MEETING)?);
    let graph = stream.capture(|s| a.on(s).add_assign(call(meet::info(), (&x,))))?;
    let replay = Arc::new(move || graph.launch(&stream));
    let first = Arc::clone(&replay);
    waits_alone(&OF_REPLAY, move || first(), move || replay());
    assert_eq!(a.to_vec()?, x.to_vec()?.into_iter().map(|x| 5 * x).collect::<Vec<_>>());
    Ok(())
}

static STREAM: OnceLock<Stream> = OnceLock::new();
static ERRORS: Mutex<Vec<Error>> = Mutex::new(Vec::new());

/// For 1, it waits for the stream that it runs on.
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

/// Runs `work` on a thread. Panics if there is no result after a minute. After a failure, the thread stays.
fn ends(work: impl FnOnce() -> Result<()> + Send + 'static) -> Result<()> {
    let (done, result) = mpsc::channel();
    thread::spawn(move || done.send(work()));
    result.recv_timeout(Duration::from_secs(60)).expect("the call waits for itself")
}

static AGAIN: OnceLock<Prepared> = OnceLock::new();
static BESIDE: OnceLock<[SplitTensor<u32>; 2]> = OnceLock::new();
static REFUSED: Mutex<Vec<Error>> = Mutex::new(Vec::new());

/// For 1, it runs the steps that it is a part of. For 2, it reads the split tensor beside each place that it is computed from.
#[device_function]
fn come_again(x: u32) -> u32 {
    let result = match x {
        1 => AGAIN.get().expect("the test sets it").run(),
        2 => {
            let [from, to] = BESIDE.get().expect("the test sets it");
            to.assign(stencil(from, Boundary::Clamp, |n| n.at(1)))
        }
        _ => Ok(()),
    };
    REFUSED.lock().expect("no panic").extend(result.err());
    x
}

#[test]
fn a_function_that_makes_the_call_that_it_is_a_part_of_gets_an_error() -> Result<()> {
    let stream = Device::emulator().stream()?;
    let (u, y) = (Tensor::from_slice(&stream, 3, &[1u32, 0, 0])?, Tensor::<u32>::zeros(&stream, 3)?);
    let step = call(come_again::info(), (stencil(&u, Boundary::Clamp, |n| n.at(-1)),));
    let steps = AGAIN.get_or_init(|| Prepared::new([y.to(step.steps(1))]).expect("steps"));
    ends(move || steps.run())?;
    assert_eq!(y.to_vec()?, [1, 1, 0]);

    let split = Split::even(&Devices::emulated(2)?)?;
    let [from, to, out] = [(); 3].map(|()| SplitTensor::<u32>::uninit_with_halo(&split, 4, 1).expect("memory"));
    from.assign(axis_index::<u32>(0))?; // The neighbours of 0, 1, 2, 3 are 1, 2, 3, 3.
    let value = call(come_again::info(), (stencil(&from, Boundary::Clamp, |n| n.at(1)) * 2u32,));
    BESIDE.get_or_init(|| [from, to]);
    let target = out.clone();
    ends(move || target.assign(value))?;
    assert_eq!(out.to_vec()?, [2, 4, 6, 6]);
    // There are two ones in `y`, and a two in `out`.
    let errors = REFUSED.lock().expect("no panic");
    assert!(errors.len() == 3 && errors.iter().all(|error| matches!(error, Error::InKernel { .. })), "{errors:?}");
    Ok(())
}

static STEPS: OnceLock<Prepared> = OnceLock::new();
/// The other thread, and what the function's own run returned.
type Runs = (JoinHandle<Result<()>>, Result<()>);

static RUNS: Mutex<Option<Runs>> = Mutex::new(None);

/// For 1, another thread runs steps into the tensor that this function computes. Then it runs them itself.
#[device_function]
fn run_beside_another(x: u32) -> u32 {
    if x == 1 {
        let run = || STEPS.get().expect("the test sets it").run();
        let other = thread::spawn(run);
        thread::sleep(Duration::from_millis(300));
        *RUNS.lock().expect("no panic") = Some((other, run()));
    }
    x
}

/// The other thread waits for the tensor. Meanwhile, it holds nothing that the function waits for.
#[test]
fn a_function_and_another_thread_run_the_same_steps() -> Result<()> {
    let device = Device::emulator();
    let (stream, beside) = (device.stream()?, device.stream()?);
    let (u, y) = (Tensor::from_slice(&stream, 3, &[5u32, 6, 7])?, Tensor::<u32>::zeros(&stream, 3)?);
    let steps = stencil(&u, Boundary::Clamp, |n| n.at(-1)).steps(2);
    STEPS.get_or_init(|| Prepared::new([y.to(steps)]).expect("steps"));
    let (x, target) = (Tensor::from_slice(&beside, 3, &[1u32, 0, 0])?, y.on(&beside));
    ends(move || target.assign(call(run_beside_another::info(), (x,))))?;
    let (other, own) = RUNS.lock().expect("no panic").take().expect("the function has run");
    assert!(matches!(own, Err(Error::InKernel { .. })), "{own:?}");
    ends(move || other.join().expect("no panic"))?;
    assert_eq!(y.to_vec()?, [5, 5, 5]);
    Ok(())
}
