//! Tests that captured sequences of launches do the same as the launches one by one.

use std::thread;

use kernel_primitives::functor::Add;
use kernel_primitives::kernels::map_binary;
use kernel_primitives::{Buffer, Device, Dims, Error, Graph, Result, Stream};

use crate::kernels::graph::{Weighted, affine, combine, first_launched_in_a_capture};
use crate::support::{Random, stream, streams, values};

mod refused;

/// One step of a program over several buffers of the same length.
#[derive(Clone, Copy, Debug)]
enum Step {
    Affine { a: u32, b: u32, data: usize },
    Combine { weight: u32, x: usize, y: usize, out: usize },
    Copy { to: usize, from: usize },
}

const BUFFERS: usize = 4;

/// Makes `count` random steps. Each step reads other buffers than it writes.
fn program(count: usize, seed: u64) -> Vec<Step> {
    let mut random = Random::new(seed);
    let mut steps = Vec::new();
    for _ in 0..count {
        let mut number = |end: usize| random.below(end as u64) as usize;
        let out = number(BUFFERS);
        let (x, y) = ((out + 1 + number(BUFFERS - 1)) % BUFFERS, (out + 1 + number(BUFFERS - 1)) % BUFFERS);
        let (a, b) = (number(1000) as u32, number(1000) as u32);
        steps.push(match number(3) {
            0 => Step::Affine { a, b, data: out },
            1 => Step::Combine { weight: a, x, y, out },
            _ => Step::Copy { to: out, from: x },
        });
    }
    steps
}

/// Runs the program on vectors, as the reference.
fn run_on_host(program: &[Step], data: &mut [Vec<u32>]) {
    for &step in program {
        match step {
            Step::Affine { a, b, data: at } => {
                data[at].iter_mut().for_each(|v| *v = a.wrapping_mul(*v).wrapping_add(b));
            }
            Step::Combine { weight, x, y, out } => {
                data[out] =
                    (data[x].iter().zip(&data[y])).map(|(x, y)| x.wrapping_add(weight.wrapping_mul(*y))).collect();
            }
            Step::Copy { to, from } => data[to] = data[from].clone(),
        }
    }
}

fn launch(stream: &Stream, program: &[Step], buffers: &mut [Buffer<u32>]) -> Result<()> {
    for &step in program {
        let (Step::Affine { data: written, .. } | Step::Combine { out: written, .. } | Step::Copy { to: written, .. }) =
            step;
        let (left, rest) = buffers.split_at_mut(written);
        let (target, right) = rest.split_first_mut().expect("an index of a buffer");
        let other = |at: usize| if at < written { &left[at] } else { &right[at - written - 1] };
        match step {
            Step::Affine { a, b, .. } => affine::launch(stream, (3, 96), a, b, target)?,
            Step::Combine { weight, x, y, .. } => {
                combine::<Weighted>::launch(stream, (2, 64), Weighted { weight }, other(x), other(y), target)?;
            }
            Step::Copy { from, .. } => target.as_mut_slice().copy_from_device(stream, other(from).as_slice())?,
        }
    }
    Ok(())
}

fn upload(stream: &Stream, data: &[Vec<u32>]) -> Result<Vec<Buffer<u32>>> {
    data.iter().map(|data| stream.buffer_from(data)).collect()
}

fn download(buffers: &[Buffer<u32>]) -> Result<Vec<Vec<u32>>> {
    buffers.iter().map(Buffer::to_vec).collect()
}

fn inputs(len: usize) -> Vec<Vec<u32>> {
    (0..BUFFERS).map(|number| values(len, number as u64)).collect()
}

#[test]
fn a_replay_does_what_the_launches_do() -> Result<()> {
    for (seed, stream) in streams()?.iter().enumerate() {
        let program = program(30, seed as u64);
        let mut expected = inputs(500);
        let mut direct = upload(stream, &expected)?;
        let mut replayed = upload(stream, &expected)?;
        let graph = stream.capture(|s| launch(s, &program, &mut replayed))?;
        assert_eq!(download(&replayed)?, expected, "a capture runs nothing");
        for _ in 0..3 {
            graph.launch(stream)?;
            launch(stream, &program, &mut direct)?;
            run_on_host(&program, &mut expected);
            assert_eq!(download(&direct)?, expected);
            assert_eq!(download(&replayed)?, expected);
        }
        let kernels = program.iter().filter(|step| !matches!(step, Step::Copy { .. })).count();
        assert_eq!(graph.launches(), kernels);
        assert!(format!("{graph:?}").contains(&format!("{kernels} launches on {}", stream.device())), "{graph:?}");
    }
    Ok(())
}

#[test]
fn sanitize_many_small_launches_are_one_graph() -> Result<()> {
    let stream = stream()?;
    let mut data = stream.buffer_from(&[1u32, 2, 3])?;
    let graph = stream.capture(|s| (0..100).try_for_each(|b| affine::launch(s, (1, 32), 3, b, &mut data)))?;
    assert_eq!(graph.launches(), 100);
    let mut expected = vec![1u32, 2, 3];
    for _ in 0..4 {
        graph.launch(&stream)?;
        for value in &mut expected {
            *value = (0..100).fold(*value, |v, b| v.wrapping_mul(3).wrapping_add(b));
        }
        assert_eq!(data.to_vec()?, expected);
    }
    Ok(())
}

#[test]
fn a_kernel_may_be_first_launched_in_a_capture() -> Result<()> {
    let stream = stream()?;
    let mut data = stream.buffer_from(&[5u32; 200])?;
    let graph = stream.capture(|s| first_launched_in_a_capture::launch(s, (2, 50), &mut data))?;
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    assert_eq!(data.to_vec()?, [7; 200]);
    Ok(())
}

#[test]
fn sanitize_replays_take_their_turns_on_all_streams_and_with_the_host() -> Result<()> {
    let device = Device::auto()?;
    let streams = (0..4).map(|_| device.stream()).collect::<Result<Vec<_>>>()?;
    let program = program(12, 9);
    let mut expected = inputs(20_000);
    let mut buffers = upload(&streams[0], &expected)?;
    let graph = streams[1].capture(|s| launch(s, &program, &mut buffers))?;
    for round in 0..12u32 {
        graph.launch(&streams[round as usize % 3])?;
        graph.launch(&streams[(round as usize + 1) % 3])?;
        run_on_host(&program, &mut expected);
        run_on_host(&program, &mut expected);
        // These launches on another stream read and write the graph's buffers.
        let between = [
            Step::Affine { a: 7, b: round, data: 2 },
            Step::Combine { weight: 5, x: 2, y: 1, out: 0 },
            Step::Copy { to: 3, from: 0 },
        ];
        launch(&streams[3], &between, &mut buffers)?;
        run_on_host(&between, &mut expected);
        if round % 3 == 0 {
            assert_eq!(download(&buffers)?, expected);
        }
        if round % 4 == 1 {
            let fresh = values(100, u64::from(round));
            buffers[1].slice_mut(50..150)?.copy_from(&fresh)?;
            expected[1][50..150].copy_from_slice(&fresh);
        }
    }
    assert_eq!(download(&buffers)?, expected);
    Ok(())
}

#[test]
fn emulators_of_all_kinds_replay_a_graph() -> Result<()> {
    let streams = streams()?;
    let mut data = streams[0].buffer_from(&[1u32; 70])?;
    let graph = streams[0].capture(|s| affine::launch(s, (2, 33), 2, 1, &mut data))?;
    for stream in &streams {
        graph.launch(stream)?;
    }
    assert_eq!(data.to_vec()?, [(2 << streams.len()) - 1; 70]);
    Ok(())
}

#[test]
fn a_graph_keeps_the_memory_of_its_buffers() -> Result<()> {
    let stream = stream()?;
    let mut out = stream.buffer_zeroed::<u32>(3000)?;
    let graph = {
        let x = stream.buffer_from(&values::<u32>(3000, 1))?;
        let mut between = stream.buffer_zeroed::<u32>(3000)?;
        stream.capture(|s| {
            let weighted = Weighted { weight: 2 };
            combine::<Weighted>::launch(s, (4, 64), weighted, &x, &x, &mut between)?;
            combine::<Weighted>::launch(s, (4, 64), weighted, &between, &x, &mut out)
        })?
    };
    // This memory would take the dropped buffers' place if they were freed.
    let others = (0..4).map(|_| stream.buffer_from(&[9u32; 3000])).collect::<Result<Vec<_>>>()?;
    for _ in 0..2 {
        graph.launch(&stream)?;
    }
    drop(graph);
    assert_eq!(out.to_vec()?, values::<u32>(3000, 1).iter().map(|v| v.wrapping_mul(5)).collect::<Vec<_>>());
    assert!(others.iter().all(|other| other.to_vec().is_ok_and(|found| found == [9; 3000])));
    Ok(())
}

#[test]
fn a_graph_has_the_parameters_of_its_capture_and_the_data_of_its_launch() -> Result<()> {
    let stream = stream()?;
    let mut x = stream.buffer_from(&[1u32, 2, 3, 4])?;
    let mut out = stream.buffer_zeroed::<u32>(2)?;
    let mut weighted = Weighted { weight: 10 };
    let graph = stream.capture(|s| {
        let (x, y) = (x.slice(..2)?, x.slice(2..)?);
        combine::<Weighted>::launch(s, Dims::for_items(2), weighted, x, y, &mut out)
    })?;
    weighted.weight = 20;
    graph.launch(&stream)?;
    assert_eq!((out.to_vec()?, weighted.weight), (vec![31, 42], 20));
    x.copy_from(&[5, 6, 7, 8])?;
    graph.launch(&stream)?;
    assert_eq!(out.to_vec()?, [75, 86]);
    Ok(())
}

#[test]
fn sanitize_parts_of_one_buffer_are_read_and_written_in_a_graph() -> Result<()> {
    for stream in streams()? {
        let mut data = stream.buffer_from(&[1u32, 2, 3, 4, 0, 0, 0, 0])?;
        let mut run = |stream: &Stream| {
            let (x, mut out) = data.as_mut_slice().split_at(4)?;
            combine::<Weighted>::launch(stream, (1, 32), Weighted { weight: 1 }, &x, &x, &mut out)?;
            let (mut x, out) = data.as_mut_slice().split_at(4)?;
            x.copy_from_device(stream, out.as_slice())
        };
        run(&stream)?;
        let graph = stream.capture(&mut run)?;
        graph.launch(&stream)?;
        graph.launch(&stream)?;
        assert_eq!(data.to_vec()?, [8, 16, 24, 32, 8, 16, 24, 32]);
    }
    Ok(())
}

#[test]
fn a_graph_of_nothing_can_be_launched() -> Result<()> {
    let stream = stream()?;
    let mut data = stream.buffer_from(&[1u32])?;
    let mut none = stream.buffer_zeroed::<u32>(0)?;
    let other = stream.buffer_zeroed::<u32>(0)?;
    let graph = stream.capture(|s| {
        affine::launch(s, (0, 32), 2, 1, &mut data)?;
        affine::launch(s, Dims::for_items(0), 2, 1, &mut none)?;
        none.as_mut_slice().copy_from_device(s, other.as_slice())
    })?;
    assert_eq!(graph.launches(), 0);
    graph.launch(&stream)?;
    stream.synchronize()?;
    assert_eq!(data.to_vec()?, [1]);
    Ok(())
}

#[test]
fn buffers_of_nothing_are_made_in_a_capture() -> Result<()> {
    for stream in streams()? {
        let before = stream.device().counters();
        let mut data = stream.buffer_from(&[1u32, 2, 3])?;
        let mut kept = None;
        let graph = stream.capture(|s| {
            let (mut none, also) = (s.buffer_uninit::<u32>(0)?, s.buffer_zeroed::<u32>(0)?);
            let weighted = Weighted { weight: 2 };
            combine::<Weighted>::launch(s, (1, 32), weighted, &also, &s.buffer_from(&[])?, &mut none)?;
            none.as_mut_slice().copy_from_device(s, also.as_slice())?;
            none.as_mut_slice().set_zero(s)?;
            assert_eq!(also.to_vec()?, [0u32; 0]);
            assert_eq!(s.buffer_zeroed::<[bool; 0]>(7)?.len(), 7);
            affine::launch(s, (1, 32), 2, 1, &mut data)?;
            kept = Some(none);
            Ok(())
        })?;
        graph.launch(&stream)?;
        graph.launch(&stream)?;
        assert_eq!(data.to_vec()?, [7, 11, 15]);
        let mut kept = kept.expect("the closure ran");
        drop(graph);
        affine::launch(&stream, (1, 32), 2, 1, &mut kept)?;
        kept.copy_from(&[])?;
        assert_eq!(kept.to_vec()?, [0u32; 0]);
        if !stream.device().is_gpu() {
            assert_eq!(stream.device().counters().since(before).allocations, 1);
        }
    }
    Ok(())
}

#[test]
fn hosts_and_replays_in_many_threads_see_whole_results() -> Result<()> {
    const LEN: usize = 20_000;
    const REPLAYS: u32 = 50;
    for stream in streams()? {
        let device = stream.device().clone();
        let mut data = stream.buffer_from(&vec![0u32; LEN])?;
        let mut copy = stream.buffer_zeroed::<u32>(LEN)?;
        let graph = stream.capture(|s| affine::launch(s, (3, 100), 1, 1, &mut data))?;
        let (data, graph) = (&data, &graph);
        thread::scope(|scope| -> Result<()> {
            let writers: Vec<_> = (0..2)
                .map(|_| {
                    let stream = device.stream();
                    scope.spawn(move || stream.and_then(|stream| (0..REPLAYS).try_for_each(|_| graph.launch(&stream))))
                })
                .collect();
            for round in 0..10 {
                let found = match round % 2 {
                    0 => data.to_vec()?,
                    _ => {
                        copy.as_mut_slice().copy_from_device(&stream, data.as_slice())?;
                        copy.to_vec()?
                    }
                };
                assert!(found.iter().all(|v| *v == found[0]), "a replay was seen half done");
            }
            writers.into_iter().try_for_each(|writer| writer.join().expect("a writer panicked"))
        })?;
        assert_eq!(data.to_vec()?, [2 * REPLAYS; LEN]);
    }
    Ok(())
}

#[test]
fn a_graph_of_another_device_is_an_error() -> Result<()> {
    let Ok(gpu) = Device::gpu() else { return Ok(()) };
    let (stream, other) = (gpu.stream()?, Device::emulator().stream()?);
    for (one, two) in [(&stream, &other), (&other, &stream)] {
        let error = one.capture(|_| Ok(()))?.launch(two).unwrap_err();
        assert!(matches!(error, Error::WrongDevice { .. }) && error.to_string().contains("graph"), "{error}");
    }
    let x = other.buffer_zeroed::<u32>(10)?;
    let mut out = stream.buffer_zeroed::<u32>(10)?;
    let error = stream.capture(|s| combine::<Weighted>::launch(s, (1, 32), Weighted { weight: 1 }, &x, &x, &mut out));
    assert!(matches!(error, Err(Error::WrongDevice { .. })), "{error:?}");
    Ok(())
}

#[test]
fn a_graph_may_be_dropped_while_it_runs_and_outlive_its_stream() -> Result<()> {
    let device = Device::auto()?;
    let mut data = device.stream()?.buffer_from(&vec![1u32; 100_000])?;
    let graph =
        device.stream()?.capture(|s| (0..20).try_for_each(|_| affine::launch(s, (100, 128), 3, 1, &mut data)))?;
    let expected = |rounds: u32| (0..20 * rounds).fold(1u32, |v, _| v.wrapping_mul(3).wrapping_add(1));
    graph.launch(&device.stream()?)?;
    graph.launch(&device.stream()?)?;
    drop(graph);
    assert_eq!(data.to_vec()?, vec![expected(2); 100_000]);
    Ok(())
}

#[test]
fn graphs_can_be_shared_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<Graph>();
}

/// [`counters_tell_what_was_done`] runs this in a process of its own, where nothing else uses the device.
#[test]
fn child_counts() -> Result<()> {
    if std::env::var_os("SUITE_CHILD").is_none() {
        return Ok(());
    }
    let stream = stream()?;
    let device = stream.device();
    let mut before = device.counters();
    let mut cost = || {
        let now = device.counters();
        let cost = now.since(before);
        before = now;
        cost
    };

    let x = stream.buffer_from(&[1.0f32; 100])?;
    let mut out = stream.buffer_zeroed::<f32>(100)?;
    let made = cost();
    assert_eq!((made.allocations, made.host_to_device_copies, made.host_to_device_bytes), (2, 1, 400));
    assert_eq!((made.launches, made.device_to_host_copies, made.synchronizations), (0, 0, 0));

    let dims = Dims::for_items(100).items_per_thread(4);
    map_binary::<f32, f32, Add, 4>::launch(&stream, dims, &x, &x, &mut out, Add)?;
    let mut expected = cost();
    assert_eq!(expected.launches, 1);
    expected.launches = 0;
    assert_eq!(expected, Default::default(), "a launch is that and nothing else");

    let graph = stream.capture(|s| {
        (0..5).try_for_each(|_| map_binary::<f32, f32, Add, 4>::launch(s, dims, &x, &x, &mut out, Add))?;
        out.slice_mut(..10)?.copy_from_device(s, x.slice(..10)?)
    })?;
    assert_eq!(cost(), Default::default(), "a capture does nothing to the device");
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    let mut expected = cost();
    assert_eq!(expected.graph_launches, 2);
    expected.graph_launches = 0;
    assert_eq!(expected, Default::default(), "a replay is that and nothing else");

    stream.synchronize()?;
    let (start, end) = (stream.record()?, stream.record()?);
    end.synchronize()?;
    end.since(&start)?;
    assert_eq!(cost().synchronizations, 3);

    out.slice_mut(..50)?.copy_from(&[2.0; 50])?;
    out.slice_mut(10..20)?.copy_from_device(&stream, x.slice(..10)?)?;
    assert_eq!(out.slice(5..15)?.to_vec()?, [2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    out.slice(..0)?.to_vec()?;
    map_binary::<f32, f32, Add, 4>::launch(&stream, (0, 32), &x, &x, &mut out, Add)?;
    let copied = cost();
    assert_eq!((copied.host_to_device_copies, copied.host_to_device_bytes), (1, 200));
    assert_eq!((copied.device_to_host_copies, copied.device_to_host_bytes), (1, 40));
    assert_eq!((copied.device_copies, copied.launches, copied.synchronizations), (1, 0, 0));
    Ok(())
}

#[test]
fn counters_tell_what_was_done() {
    let output = std::process::Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "host::graph::child_counts", "--nocapture"])
        .env("SUITE_CHILD", "1")
        .output()
        .expect("this test runs again");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn emulators_count_for_themselves_and_their_clones() -> Result<()> {
    let (one, other) = (Device::emulator(), Device::emulator());
    let clone = one.clone();
    one.stream()?.buffer_zeroed::<u32>(1)?;
    clone.stream()?.buffer_zeroed::<u32>(1)?;
    assert_eq!((one.counters(), other.counters().allocations), (clone.counters(), 0));
    assert_eq!(one.counters().allocations, 2);
    Ok(())
}
