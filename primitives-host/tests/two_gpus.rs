//! Copies between two GPUs. On a machine that has fewer, the tests pass without doing anything.
//!
//! `cargo test --release -p kernel-primitives-host --features cuda --test two_gpus -- --nocapture` prints how fast they are.

use std::thread;
use std::time::Instant;

use primitives_host::devices::{count, gpu};
use primitives_host::{Buffer, Devices, Error, Result, Split, SplitBuffer, Stream};

/// Streams on two GPUs, if there are two.
fn streams() -> Result<Option<[Stream; 2]>> {
    match Devices::choose(gpu() & count(2)) {
        Ok(devices) if devices.len() == 2 => Ok(devices.streams()?.try_into().ok()),
        Ok(_) | Err(Error::NoGpu { .. } | Error::NoSuchDevice { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

fn numbers(len: usize, seed: u32) -> Vec<u32> {
    (0..len as u32).map(|i| (i ^ seed).wrapping_mul(2_654_435_761)).collect()
}

#[test]
fn elements_come_as_they_were_written_before() -> Result<()> {
    let Some([one, two]) = streams()? else { return Ok(()) };
    for len in [1, 3, 1000, 1 << 20, 5_000_001] {
        let mut x = one.buffer_zeroed::<u32>(len)?;
        let mut y = two.buffer_zeroed::<u32>(len)?;
        for round in 0..3 {
            x.copy_from(&numbers(len, round))?;
            y.as_mut_slice().copy_from_peer(&two, x.as_slice())?;
            // What comes later waits for the copy.
            x.as_mut_slice().set_zero(&one)?;
            assert!(y.to_vec()? == numbers(len, round), "{len} {round}");
            x.as_mut_slice().copy_from_peer(&one, y.as_slice())?;
            y.as_mut_slice().set_zero(&two)?;
            assert!(x.to_vec()? == numbers(len, round), "{len} {round}");
        }
    }
    Ok(())
}

#[test]
fn buffers_go_while_the_copy_is_under_way() -> Result<()> {
    let Some([one, two]) = streams()? else { return Ok(()) };
    let mut all = Vec::new();
    for round in 0..20 {
        let x = one.buffer_from(&numbers(1 << 20, round))?;
        let mut y = two.buffer_uninit::<u32>(1 << 20)?;
        y.as_mut_slice().copy_from_peer(&two, x.as_slice())?;
        drop(x);
        // It may get the memory of `x`.
        one.buffer_zeroed::<u32>(1 << 20)?;
        all.push(y);
    }
    drop(one);
    for (round, y) in (0..).zip(all) {
        assert!(y.to_vec()? == numbers(1 << 20, round), "{round}");
    }
    Ok(())
}

#[test]
fn two_threads_copy_both_ways() -> Result<()> {
    let Some([one, two]) = streams()? else { return Ok(()) };
    let (a, b) = (one.buffer_from(&numbers(100_000, 1))?, two.buffer_from(&numbers(100_000, 2))?);
    let run = |stream: &Stream, from: &Buffer<u32>| -> Result<Vec<u32>> {
        let mut to = stream.buffer_uninit::<u32>(100_000)?;
        (0..1000).try_for_each(|_| to.as_mut_slice().copy_from_peer(stream, from.as_slice()))?;
        to.to_vec()
    };
    let (on_two, on_one) = thread::scope(|scope| {
        let other = scope.spawn(|| run(&two, &a));
        let here = run(&one, &b);
        (other.join().expect("no panic"), here)
    });
    assert!(on_two? == numbers(100_000, 1) && on_one? == numbers(100_000, 2));
    Ok(())
}

#[test]
fn split_buffers_change_their_split() -> Result<()> {
    let Some(streams) = streams()? else { return Ok(()) };
    let host = numbers(1_000_003, 5);
    let split = |weights: &[f64]| Split::of_streams(streams.clone(), weights);
    let mut x = SplitBuffer::from_slice(&split(&[1.0, 1.0])?, &host)?;
    for weights in [[3.0, 1.0], [1.0, 100.0], [100.0, 1.0], [1.0, 1.0]] {
        let mut y = SplitBuffer::zeroed(&split(&weights)?, host.len())?;
        y.copy_from_split(&x)?;
        x = y;
        assert!(x.to_vec()? == host, "{weights:?}");
    }
    Ok(())
}

#[test]
fn measured_weights_are_alike_on_gpus_that_are() -> Result<()> {
    let Some([one, two]) = streams()? else { return Ok(()) };
    if one.device().properties().name == two.device().properties().name {
        let split = Split::measured(&Devices::new([one.device().clone(), two.device().clone()])?)?;
        let first = split.ranges(1000).next().expect("two devices").len();
        assert!((400..=600).contains(&first), "{split:?}");
    }
    Ok(())
}

#[test]
fn how_fast_a_copy_is() -> Result<()> {
    let Some([one, two]) = streams()? else { return Ok(()) };
    let len = 1 << 28;
    let x = one.buffer_zeroed::<u32>(len)?;
    let mut y = two.buffer_zeroed::<u32>(len)?;
    let mut times = Vec::new();
    for _ in 0..7 {
        two.synchronize()?;
        let start = Instant::now();
        y.as_mut_slice().copy_from_peer(&two, x.as_slice())?;
        two.synchronize()?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    println!("{} to {}: {:.1} GB/s", one.device(), two.device(), (len * 4) as f64 / times[3] / 1e9);
    Ok(())
}
