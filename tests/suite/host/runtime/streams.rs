//! Tests streams, threads and events.

use std::thread;

use kernel_primitives::{Device, Result};

use super::double;
use crate::kernels::io;
use crate::support::{stream, values};

#[test]
fn sanitize_streams_that_use_one_buffer_take_turns() -> Result<()> {
    let device = Device::auto()?;
    let (one, two) = (device.stream()?, device.stream()?);
    let mut data = one.buffer_from(&vec![1.0f32; 10_000])?;
    let mut copy = two.buffer_zeroed::<f32>(10_000)?;
    for round in 0..10 {
        double(&one, &mut data)?;
        double(&two, &mut data)?;
        // The other stream reads, and then a write must wait for this read.
        io::copy::<f32, 4>::launch(&one, (4, 128), &data, &mut copy)?;
        double(&two, &mut data)?;
        assert_eq!(copy.to_vec()?, vec![8f32.powi(round) * 4.0; 10_000]);
    }
    assert_eq!(data.to_vec()?, vec![8f32.powi(10); 10_000]);
    Ok(())
}

/// The first stream is busy with other buffers. `primitives-host/tests/fake_driver/` tests that no stream waits for
/// these buffers, because it sees what waits for what.
#[test]
fn a_stream_reads_what_another_one_wrote_before_its_other_work() -> Result<()> {
    let device = Device::auto()?;
    let (one, two) = (device.stream()?, device.stream()?);
    let (len, times) = if device.is_gpu() { (64 << 20, 100) } else { (100, 10) };
    let x = values::<f32>(1000, 1);
    let mut data = one.buffer_from(&x)?;
    let (mut a, b) = (one.buffer_zeroed::<f32>(len)?, one.buffer_from(&vec![1.5f32; len])?);
    let mut out = two.buffer_zeroed::<f32>(1000)?;
    double(&one, &mut data)?;
    for _ in 0..times {
        a.as_mut_slice().copy_from_device(&one, b.as_slice())?;
    }
    io::copy::<f32, 4>::launch(&two, (1, 128), &data, &mut out)?;
    assert_eq!(out.to_vec()?, x.iter().map(|v| v * 2.0).collect::<Vec<_>>());
    assert_eq!(a.slice(len - 2..)?.to_vec()?, [1.5; 2]);
    Ok(())
}

#[test]
fn many_readers_on_many_streams_before_one_writer() -> Result<()> {
    let device = Device::auto()?;
    let streams = (0..6).map(|_| device.stream()).collect::<Result<Vec<_>>>()?;
    let x = values::<f32>(5000, 1);
    let mut data = streams[0].buffer_from(&x)?;
    let mut copies = streams.iter().map(|stream| stream.buffer_zeroed::<f32>(5000)).collect::<Result<Vec<_>>>()?;
    for (stream, copy) in streams.iter().zip(&mut copies) {
        io::copy::<f32, 4>::launch(stream, (3, 128), &data, copy)?;
    }
    double(&streams[3], &mut data)?;
    for copy in &copies {
        assert_eq!(copy.to_vec()?, x);
    }
    assert_eq!(data.to_vec()?, x.iter().map(|v| v * 2.0).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn threads_launch_at_once_on_their_own_streams_and_on_one() -> Result<()> {
    let device = Device::auto()?;
    let shared = device.stream()?;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..8)
            .map(|number| {
                let (device, shared) = (&device, &shared);
                scope.spawn(move || -> Result<()> {
                    let own = device.stream()?;
                    let stream = if number % 2 == 0 { shared } else { &own };
                    let mut data = stream.buffer_from(&vec![number as f32; 1000])?;
                    for _ in 0..20 {
                        double(stream, &mut data)?;
                    }
                    assert_eq!(data.to_vec()?, vec![number as f32 * 2f32.powi(20); 1000]);
                    stream.synchronize()
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker panicked"))
    })
}

#[test]
fn threads_read_one_buffer_at_once() -> Result<()> {
    let device = Device::auto()?;
    let x = values::<f32>(3000, 5);
    let input = device.stream()?.buffer_from(&x)?;
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| -> Result<()> {
                let stream = device.stream()?;
                for _ in 0..10 {
                    let mut out = stream.buffer_zeroed(3000)?;
                    io::copy::<f32, 4>::launch(&stream, (2, 256), &input, &mut out)?;
                    assert_eq!(out.to_vec()?, x);
                }
                Ok(())
            });
        }
    });
    Ok(())
}

#[test]
fn sanitize_buffers_are_dropped_while_work_is_queued() -> Result<()> {
    let device = Device::auto()?;
    let (one, two) = (device.stream()?, device.stream()?);
    for round in 0..20 {
        let x = vec![round as f32; 20_000];
        let mut out = two.buffer_zeroed::<f32>(20_000)?;
        {
            let mut data = one.buffer_from(&x)?;
            double(&one, &mut data)?;
            io::copy::<f32, 4>::launch(&two, (8, 128), &data, &mut out)?;
        }
        // This memory would take the dropped buffer's place if that were freed too early.
        let other = one.buffer_from(&vec![-1.0f32; 20_000])?;
        assert_eq!(out.to_vec()?, vec![round as f32 * 2.0; 20_000]);
        drop(other);
    }
    let mut data = one.buffer_from(&[1.0f32; 100])?;
    double(&one, &mut data)?;
    drop(one);
    assert_eq!(data.to_vec()?, [2.0; 100], "a buffer outlives the caller's stream");
    Ok(())
}

#[test]
fn events_mark_points_and_measure_time() -> Result<()> {
    let device = Device::auto()?;
    let (one, two) = (device.stream()?, device.stream()?);
    let mut data = one.buffer_from(&vec![1.0f32; 50_000])?;
    let began = std::time::Instant::now();
    let start = one.record()?;
    for _ in 0..5 {
        double(&one, &mut data)?;
    }
    let end = one.record()?;
    two.wait(&end)?;
    end.synchronize()?;
    let around = began.elapsed();
    let (there, back) = (end.since(&start)?, start.since(&start)?);
    assert!(there > back && back.is_zero(), "{there:?}");
    // Both events are between the two times of the host's clock. A GPU has a clock of its own.
    assert!(there <= 2 * around, "{there:?}, of {around:?} on the host");
    two.synchronize()
}

#[test]
fn clones_of_a_stream_are_one_queue() -> Result<()> {
    let one = stream()?;
    let two = one.clone();
    let mut data = one.buffer_from(&vec![1.0f32; 5000])?;
    for _ in 0..5 {
        double(&one, &mut data)?;
        double(&two, &mut data)?;
    }
    drop(one);
    two.synchronize()?;
    assert_eq!(data.to_vec()?, vec![1024.0; 5000]);
    assert_eq!(data.device().is_gpu(), two.device().is_gpu());
    Ok(())
}

#[test]
fn a_stream_that_waits_for_an_event_does_not_synchronize_the_program() -> Result<()> {
    let device = Device::emulator();
    let (one, two) = (device.stream()?, device.stream()?);
    let event = one.record()?;
    let before = device.counters();
    two.wait(&event)?;
    assert_eq!(device.counters().since(before), Default::default());
    Ok(())
}
