//! Kernels of the emulator that call the host's functions: what would wait for the kernel is an error, and the rest works.

use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use primitives_gpu::Block;
use primitives_gpu::view::LaunchBounds;
use primitives_host::__private::{KernelInfo, Launch};
use primitives_host::storage::{self, Storage};
use primitives_host::{Buffer, BufferSliceMut, Device, Diagnosis, Dims, EmulatorOptions, Error, Graph, Result, Stream};

static KERNEL: KernelInfo = KernelInfo::new("outer", "outer", &[], 0, 0, LaunchBounds::NONE);
static INNER: KernelInfo = KernelInfo::new("inner", "inner", &[], 0, 0, LaunchBounds::NONE);

/// Launches a kernel of one thread that reads and writes, and calls `body`.
fn launch(
    stream: &Stream,
    info: &'static KernelInfo,
    read: &[&Buffer<u32>],
    write: &mut [BufferSliceMut<'_, u32>],
    body: impl Fn() + Send + Sync + 'static,
) -> Result<()> {
    let mut launch = Launch::new(stream, info, Dims::new(1, 1));
    for &buffer in read {
        launch.read("x", buffer)?;
    }
    for slice in write {
        launch.write("out", slice)?;
    }
    // SAFETY: the kernel has no parameters.
    unsafe { launch.run(&mut [std::ptr::null_mut()], move |_| body()) }
}

/// Launches a kernel of one block of two threads.
fn launch_two(stream: &Stream, body: impl Fn(Block<'_>) + Send + Sync + 'static) -> Result<()> {
    let launch = Launch::new(stream, &KERNEL, Dims::new(1, 2));
    // SAFETY: the kernel has no parameters.
    unsafe { launch.run(&mut [std::ptr::null_mut()], body) }
}

/// Calls `f` while it holds the memory.
fn hold(memory: &Storage, f: impl FnOnce()) -> Result<()> {
    let body = |_: *mut u8| {
        f();
        Ok(())
    };
    storage::with_bytes("`hold`", Location::caller(), (memory, true), |_| Ok(()), body)
}

/// What a call returns that a lane of a launch makes. The launch is on `stream`, and uses the buffers.
fn in_kernel<R: Send + 'static>(
    stream: &Stream,
    read: &[&Buffer<u32>],
    write: &mut [BufferSliceMut<'_, u32>],
    call: impl Fn() -> R + Send + Sync + 'static,
) -> Result<R> {
    let result = Arc::new(Mutex::new(None));
    let to = result.clone();
    launch(stream, &KERNEL, read, write, move || *to.lock().unwrap() = Some(call()))?;
    let result = result.lock().unwrap().take();
    Ok(result.expect("the kernel has run"))
}

/// Runs a test, and ends the process if that hangs.
fn soon(test: impl FnOnce() -> Result<()> + Send) -> Result<()> {
    thread::scope(|scope| {
        let (done, result) = mpsc::channel();
        scope.spawn(move || done.send(test()));
        result.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| {
            eprintln!("\na kernel waits for itself");
            std::process::exit(1)
        })
    })
}

#[track_caller]
fn waits_for_itself<T>(result: Result<T>, kernel: &str, what: &str) {
    match result {
        Err(error @ Error::InKernel { .. }) => {
            let text = error.to_string();
            assert!(text.contains(&format!("`{kernel}`")) && text.contains(what), "{text}");
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("no error"),
    }
}

fn devices() -> [Device; 2] {
    [true, false].map(|checked| {
        let mut options = EmulatorOptions::default();
        (options.checked, options.threads) = (checked, 2);
        Device::emulator_with(options)
    })
}

const STREAM: &str = "the stream that it runs on";
const BUFFER: &str = "a buffer that it uses";

#[test]
fn a_lane_that_waits_for_its_own_stream_gets_an_error() -> Result<()> {
    soon(|| {
        for device in devices() {
            let stream = device.stream()?;
            let graph = Arc::new(stream.capture(|s| launch(s, &INNER, &[], &mut [], || ()))?);
            let of_stream = |call: fn(&Stream, &Graph) -> Result<()>| {
                let (stream, graph) = (stream.clone(), graph.clone());
                in_kernel(&stream.clone(), &[], &mut [], move || call(&stream, &graph))
            };
            waits_for_itself(of_stream(|stream, _| stream.synchronize())?, "outer", STREAM);
            waits_for_itself(of_stream(|stream, _| launch(stream, &INNER, &[], &mut [], || ()))?, "outer", STREAM);
            waits_for_itself(of_stream(|stream, graph| graph.launch(stream))?, "outer", STREAM);
            waits_for_itself(of_stream(|stream, _| stream.buffer_zeroed::<u32>(1).map(drop))?, "outer", STREAM);
            // Nothing is left behind.
            stream.synchronize()?;
            graph.launch(&stream)?;
            assert_eq!(stream.buffer_from(&[3u32])?.to_vec()?, [3]);
        }
        Ok(())
    })
}

#[test]
fn a_lane_of_a_graph_that_waits_for_its_stream_gets_an_error() -> Result<()> {
    soon(|| {
        let stream = Device::emulator().stream()?;
        let result = Arc::new(Mutex::new(None));
        let (to, own) = (result.clone(), stream.clone());
        let graph = stream
            .capture(|s| launch(s, &KERNEL, &[], &mut [], move || *to.lock().unwrap() = Some(own.synchronize())))?;
        graph.launch(&stream)?;
        waits_for_itself(result.lock().unwrap().take().expect("it has run"), "launch of a graph", STREAM);
        Ok(())
    })
}

#[test]
fn a_lane_that_waits_for_a_kernel_further_out_gets_an_error() -> Result<()> {
    soon(|| {
        for device in devices() {
            let (one, two) = (device.stream()?, device.stream()?);
            let (outer, inner) = (one.clone(), two.clone());
            let result = in_kernel(&one, &[], &mut [], move || {
                let outer = outer.clone();
                in_kernel(&inner, &[], &mut [], move || outer.synchronize())
            })?;
            waits_for_itself(result?, "outer", STREAM);
        }
        Ok(())
    })
}

#[test]
fn a_lane_that_waits_for_a_buffer_of_its_kernel_gets_an_error() -> Result<()> {
    soon(|| {
        for device in devices() {
            let (stream, other) = (device.stream()?, device.stream()?);
            let mut x = other.buffer_from(&[1u32, 2])?;
            let reads_x = other.capture(|s| launch(s, &INNER, &[&x], &mut [], || ()))?;
            let writes_x = other.capture(|s| launch(s, &INNER, &[], &mut [x.as_mut_slice()], || ()))?;
            let graphs = Arc::new((reads_x, writes_x));
            let calls = || {
                let (graphs, other) = (graphs.clone(), other.clone());
                move || (graphs.0.launch(&other), graphs.1.launch(&other))
            };
            let (reads, writes) = in_kernel(&stream, &[&x], &mut [], calls())?;
            // What the kernel reads, others may read.
            reads?;
            waits_for_itself(writes, "outer", BUFFER);
            let (reads, writes) = in_kernel(&stream, &[], &mut [x.as_mut_slice()], calls())?;
            waits_for_itself(reads, "outer", BUFFER);
            waits_for_itself(writes, "outer", BUFFER);
            assert_eq!(x.to_vec()?, [1, 2]);
        }
        Ok(())
    })
}

#[test]
fn a_lane_uses_other_streams_and_buffers_as_the_host_does() -> Result<()> {
    soon(|| {
        for device in devices() {
            let (stream, other) = (device.stream()?, device.stream()?);
            let call = move || {
                let mut x = other.buffer_from(&[5u32])?;
                launch(&other, &INNER, &[], &mut [x.as_mut_slice()], || ())?;
                other.record()?.synchronize()?;
                other.synchronize()?;
                x.to_vec()
            };
            assert_eq!(in_kernel(&stream, &[], &mut [], call)??, [5]);
        }
        Ok(())
    })
}

/// What a lane copies from `x` while another thread makes a call that waits for the lane's launch. The launch is on `stream`, and reads
/// some buffers.
fn while_a_call_waits(
    stream: &Stream,
    read: &[&Buffer<u32>],
    x: &Arc<Buffer<u32>>,
    call: impl FnOnce() -> Result<()> + Send,
) -> Result<Vec<u32>> {
    let (begun, x) = (Arc::new(Barrier::new(2)), x.clone());
    thread::scope(|scope| {
        let both = begun.clone();
        let waits = scope.spawn(move || {
            both.wait();
            call()
        });
        let copied = in_kernel(stream, read, &mut [], move || {
            begun.wait();
            // The other thread has time to come to its wait.
            thread::sleep(Duration::from_millis(200));
            x.to_vec()
        })?;
        waits.join().expect("no panic")?;
        copied
    })
}

#[test]
fn a_lane_uses_the_buffers_of_a_call_that_waits_for_its_stream() -> Result<()> {
    soon(|| {
        for device in devices() {
            let (stream, other) = (device.stream()?, device.stream()?);
            let mut x = other.buffer_from(&[1u32])?;
            let graph = other.capture(|s| launch(s, &INNER, &[], &mut [x.as_mut_slice()], || ()))?;
            let x = Arc::new(x);
            assert_eq!(while_a_call_waits(&stream, &[], &x, || graph.launch(&stream))?, [1]);
        }
        Ok(())
    })
}

#[test]
fn a_lane_uses_the_buffers_of_a_call_that_waits_for_another_buffer() -> Result<()> {
    soon(|| {
        for device in devices() {
            let (stream, other) = (device.stream()?, device.stream()?);
            let (mut x, mut y) = (other.buffer_from(&[1u32])?, other.buffer_from(&[2u32])?);
            let graph = other.capture(|s| launch(s, &INNER, &[], &mut [x.as_mut_slice(), y.as_mut_slice()], || ()))?;
            let (x, y) = (Arc::new(x), Arc::new(y));
            // One of the two is the first one that the graph locks.
            assert_eq!(while_a_call_waits(&stream, &[&x], &y, || graph.launch(&other))?, [2]);
            assert_eq!(while_a_call_waits(&stream, &[&y], &x, || graph.launch(&other))?, [1]);
        }
        Ok(())
    })
}

/// Another kernel has the buffer of the call, and waits for the stream.
#[test]
fn a_lane_that_launches_on_its_own_stream_waits_for_no_buffer_first() -> Result<()> {
    soon(|| {
        for device in devices() {
            let (stream, other) = (device.stream()?, device.stream()?);
            let mut y = other.buffer_from(&[1u32])?;
            let uses_y = Arc::new(other.capture(|s| launch(s, &INNER, &[], &mut [y.as_mut_slice()], || ()))?);
            let begun = Arc::new(Barrier::new(2));
            let (both, waited_for) = (begun.clone(), stream.clone());
            let holds_y = other.capture(|s| {
                launch(s, &INNER, &[], &mut [y.as_mut_slice()], move || {
                    both.wait();
                    waited_for.synchronize().unwrap();
                })
            })?;
            thread::scope(|scope| {
                let holds = scope.spawn(|| holds_y.launch(&other));
                let own = stream.clone();
                let result = in_kernel(&stream, &[], &mut [], move || {
                    begun.wait();
                    uses_y.launch(&own)
                })?;
                waits_for_itself(result, "outer", STREAM);
                holds.join().expect("no panic")
            })?;
        }
        Ok(())
    })
}

/// As the test before, for a copy.
#[test]
fn a_lane_that_copies_on_its_own_stream_waits_for_no_buffer_first() -> Result<()> {
    soon(|| {
        for device in devices() {
            let (stream, other) = (device.stream()?, device.stream()?);
            // Copies to the host are on the stream that has written the buffer.
            let mut y = stream.buffer_from(&[1u32])?;
            let begun = Arc::new(Barrier::new(2));
            let (both, waited_for) = (begun.clone(), stream.clone());
            let holds_y = other.capture(|s| {
                launch(s, &INNER, &[], &mut [y.as_mut_slice()], move || {
                    both.wait();
                    waited_for.synchronize().unwrap();
                })
            })?;
            thread::scope(|scope| {
                let holds = scope.spawn(|| holds_y.launch(&other));
                let result = in_kernel(&stream, &[], &mut [], move || {
                    begun.wait();
                    y.to_vec()
                })?;
                waits_for_itself(result, "outer", STREAM);
                holds.join().expect("no panic")
            })?;
        }
        Ok(())
    })
}

#[test]
fn a_graph_of_buffers_that_others_always_read_is_launched() -> Result<()> {
    soon(|| {
        let device = Device::emulator();
        let stream = device.stream()?;
        let (mut x, mut y) = (stream.buffer_from(&[1u32])?, stream.buffer_from(&[2u32])?);
        let graph = stream.capture(|s| launch(s, &INNER, &[], &mut [x.as_mut_slice(), y.as_mut_slice()], || ()))?;
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for (buffer, millis) in [(&x, 90), (&x, 130), (&y, 110), (&y, 150)] {
                let (queue, done) = (device.stream()?, &done);
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        let work = move || thread::sleep(Duration::from_millis(millis));
                        launch(&queue, &KERNEL, &[buffer], &mut [], work).unwrap();
                    }
                });
            }
            thread::sleep(Duration::from_millis(300));
            let begin = Instant::now();
            let result = graph.launch(&stream);
            done.store(true, Ordering::Relaxed);
            assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
            result
        })
    })
}

#[test]
fn launches_of_one_graph_do_not_overlap() -> Result<()> {
    static NOW: AtomicUsize = AtomicUsize::new(0);
    static MOST: AtomicUsize = AtomicUsize::new(0);
    soon(|| {
        for device in devices() {
            let stream = device.stream()?;
            let graph = stream.capture(|s| {
                launch(s, &KERNEL, &[], &mut [], || {
                    MOST.fetch_max(NOW.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    // The other launch has time to begin.
                    thread::sleep(Duration::from_millis(200));
                    NOW.fetch_sub(1, Ordering::SeqCst);
                })
            })?;
            thread::scope(|scope| {
                let threads = [0, 1].map(|_| scope.spawn(|| graph.launch(&device.stream()?)));
                threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
            })?;
        }
        assert_eq!(MOST.load(Ordering::SeqCst), 1);
        Ok(())
    })
}

/// A graph of no buffers, on another stream.
#[test]
fn a_lane_of_a_graph_that_launches_the_graph_gets_an_error() -> Result<()> {
    soon(|| {
        for device in devices() {
            let (stream, other) = (device.stream()?, device.stream()?);
            let (own, result) = (Arc::new(OnceLock::<Graph>::new()), Arc::new(Mutex::new(None)));
            let (graph, to) = (Arc::downgrade(&own), result.clone());
            let captured = stream.capture(|s| {
                launch(s, &KERNEL, &[], &mut [], move || {
                    let graph = graph.upgrade().expect("it is launched");
                    *to.lock().unwrap() = graph.get().map(|graph| graph.launch(&other));
                })
            })?;
            own.get_or_init(|| captured).launch(&stream)?;
            let launched = result.lock().unwrap().take().expect("it has run");
            waits_for_itself(launched, "launch of a graph", BUFFER);
        }
        Ok(())
    })
}

#[track_caller]
fn waits_in_closure(done: &Result<()>) {
    let expected = "a thread waits for others in a closure that holds memory or captures";
    let is_expected = |of: &Diagnosis| matches!(of, Diagnosis::Panicked { message } if message == expected);
    assert!(matches!(done, Err(Error::Fault(fault)) if is_expected(&fault.diagnosis)), "{done:?}");
}

/// A thread of the host runs both lanes, and what one of them holds is the thread's.
#[test]
fn a_lane_does_not_wait_for_others_in_a_closure_that_holds_memory() -> Result<()> {
    soon(|| {
        for device in devices() {
            let (stream, other) = (device.stream()?, device.stream()?);
            let [a, b] = [other.buffer_from(&[1u32])?, other.buffer_from(&[2u32])?].map(Storage::of);
            let (of_zero, of_one) = (a.clone(), b.clone());
            let done = launch_two(&stream, move |cx| {
                let meet = || cx.barrier();
                if cx.thread_rank() == 0 {
                    hold(&of_zero, meet).expect("nobody has it");
                    meet();
                } else {
                    let twice = || {
                        meet();
                        meet();
                    };
                    hold(&of_one, twice).expect("nobody has it");
                    hold(&of_zero, || ()).expect("nobody has it any more");
                }
            });
            waits_in_closure(&done);
            // The memory is free again.
            hold(&a, || ())?;
            hold(&b, || ())?;
        }
        Ok(())
    })
}

#[test]
fn a_lane_does_not_wait_for_others_in_a_closure_that_captures() -> Result<()> {
    soon(|| {
        for device in devices() {
            let (stream, other) = (device.stream()?, device.stream()?);
            let done = launch_two(&stream, move |cx| {
                let meet = |_: &Stream| {
                    cx.sync_warp(cx.warp_mask());
                    Ok(())
                };
                other.capture(meet).expect("a capture of nothing");
            });
            waits_in_closure(&done);
        }
        Ok(())
    })
}

#[test]
fn lanes_wait_for_others_between_closures_and_inside_those_of_the_host() -> Result<()> {
    soon(|| {
        for device in devices() {
            let (stream, other) = (device.stream()?, device.stream()?);
            let [a, b] = [other.buffer_from(&[1u32])?, other.buffer_from(&[2u32])?].map(Storage::of);
            let mut done = Ok(());
            hold(&a, || {
                done = launch_two(&stream, move |cx| {
                    hold(&b, || ()).expect("nobody has it");
                    cx.barrier();
                    hold(&b, || ()).expect("nobody has it");
                    cx.sync_warp(cx.warp_mask());
                });
            })?;
            done?;
        }
        Ok(())
    })
}

/// Such a thread waits for nobody, also if a seed draws the thread that goes on.
#[test]
fn a_thread_alone_may_wait_in_a_closure_that_holds_memory() -> Result<()> {
    soon(|| {
        for seed in [None, Some(1), Some(2)] {
            let mut options = EmulatorOptions::default();
            options.seed = seed;
            let device = Device::emulator_with(options);
            let (stream, other) = (device.stream()?, device.stream()?);
            let memory = Storage::of(other.buffer_from(&[1u32])?);
            let alone = move |cx: Block<'_>| {
                let meet = || {
                    cx.barrier();
                    cx.sync_warp(1);
                };
                hold(&memory, meet).expect("nobody has it");
            };
            // SAFETY: the kernel has no parameters.
            unsafe { Launch::new(&stream, &KERNEL, Dims::new(1, 1)).run(&mut [std::ptr::null_mut()], alone)? };
        }
        Ok(())
    })
}
