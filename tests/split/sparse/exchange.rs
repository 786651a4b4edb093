//! Tests the exchange between devices, and the memory that it takes.

use kernel_primitives::algorithms::{self, SpmvMethod};
use kernel_primitives::split;
use kernel_primitives::{Counters, Devices, EmulatorOptions, Error, Result, Split, SplitBuffer, f16};

use super::{Host, matrices};
use crate::{splits, values};

/// Returns the counts of all devices of the emulator together during a call.
fn counted(devices: &Devices, call: impl FnOnce() -> Result<()>) -> Result<Counters> {
    let counters = || devices.iter().map(|device| device.counters()).collect::<Vec<_>>();
    let before = counters();
    call()?;
    let mut all = Counters::default();
    for (after, before) in counters().into_iter().zip(before) {
        let one = after.since(before);
        all.allocations += one.allocations;
        all.launches += one.launches;
        all.peer_copies += one.peer_copies;
        all.peer_bytes += one.peer_bytes;
        all.host_to_device_copies += one.host_to_device_copies;
        all.device_to_host_copies += one.device_to_host_copies;
    }
    Ok(all)
}

#[test]
fn only_what_rows_read_of_others_goes_between_devices() -> Result<()> {
    let devices = Devices::emulated(3)?;
    let even = Split::even(&devices)?;
    for host in matrices() {
        let mut a = host.split(&even, &host.values(f64::from))?;
        a.set_method(SpmvMethod::Rows { lanes: 4 })?;
        let x = SplitBuffer::from_slice(&even, &vec![1.0f64; host.columns])?;
        let mut y = SplitBuffer::uninit(&even, host.shape().0)?;
        split::spmv(&a, &x, &mut y)?;
        // The second product uses the memory of the first product.
        let cost = counted(&devices, || split::spmv(&a, &x, &mut y))?;
        let halos: usize = (0..3).map(|device| a.halo(device).len()).sum();
        assert_eq!(cost.peer_bytes, 8 * halos as u64, "{}", host.name);
        let copies = (cost.host_to_device_copies, cost.device_to_host_copies);
        assert_eq!((copies, cost.allocations), ((0, 0), 0), "{}", host.name);
        if host.name == "banded" {
            // Two rows on each side of a border are exchanged. Each device collects, and each multiplies.
            assert_eq!((halos, cost.peer_copies, cost.launches), (8, 4, 6));
        }
    }
    // Blocks on the diagonal need no items of other devices.
    let host = Host::new("blocks", (30, 30), |row| (row / 10 * 10..row / 10 * 10 + 10).collect());
    let a = host.split(&even, &host.values(f64::from))?;
    let (x, mut y) = (SplitBuffer::from_slice(&even, &[1.0f64; 30])?, SplitBuffer::uninit(&even, 30)?);
    assert_eq!(counted(&devices, || split::spmv(&a, &x, &mut y))?.peer_copies, 0);
    Ok(())
}

#[test]
fn vectors_of_two_types_have_memory_of_their_own() -> Result<()> {
    let devices = Devices::emulated(3)?;
    let even = Split::even(&devices)?;
    let host = &matrices()[0];
    let x: Vec<f32> = values(host.columns).into_iter().map(|value| (value % 30) as f32).collect();
    let expected = host.product(&host.values(f64::from), &x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
    let mut a = host.split(&even, &host.values(|value| value as f32))?;
    a.set_method(SpmvMethod::Rows { lanes: 4 })?;
    let singles = SplitBuffer::from_slice(&even, &x)?;
    let halves = SplitBuffer::from_slice(&even, &x.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>())?;
    for turn in 0..3 {
        let results = || SplitBuffer::<f32>::uninit(&even, host.shape().0);
        let (mut of_singles, mut of_halves) = (results()?, results()?);
        let cost = counted(&devices, || {
            split::spmv(&a, &singles, &mut of_singles)?;
            split::spmv(&a, &halves, &mut of_halves)
        })?;
        assert_eq!(cost.allocations == 0, turn > 0, "{turn}: {cost:?}");
        for found in [of_singles, of_halves] {
            assert!(found.to_vec()?.into_iter().map(f64::from).eq(expected.iter().copied()), "{turn}");
        }
    }
    Ok(())
}

#[test]
fn a_product_that_finds_no_memory_begins_nothing_and_keeps_nothing() -> Result<()> {
    const LEN: usize = 1000;
    let mut options = EmulatorOptions::default();
    options.memory_bytes = Some(100_000);
    let even = Split::even(&Devices::emulated_with(2, options)?)?;
    // Each device reads all items of the other one.
    let host = Host::new("other half", (2 * LEN, 2 * LEN), |row| vec![(row + LEN) % (2 * LEN)]);
    let mut a = host.split(&even, &vec![2.0f64; 2 * LEN])?;
    a.set_method(SpmvMethod::Rows { lanes: 1 })?;
    let x: Vec<f64> = (0..2 * LEN).map(|at| at as f64).collect();
    let there = SplitBuffer::from_slice(&even, &x)?;
    let mut y = SplitBuffer::from_slice(&even, &vec![7.0f64; 2 * LEN])?;
    // Each device has an outbox of 8000 bytes and an input of 16000 bytes. The first device has memory for both once, and the second device
    // has memory only for the outbox.
    let mut full = Vec::new();
    for (stream, left) in even.streams().iter().zip([30, 20]) {
        let mut all = Vec::new();
        while let Ok(some) = stream.buffer_uninit::<u8>(LEN) {
            all.push(some);
        }
        all.truncate(all.len() - left);
        full.push(all);
    }
    for _ in 0..3 {
        let error = split::spmv(&a, &there, &mut y).expect_err("no memory");
        let is_of_second = |device: &str| device == "device 1 of the emulator";
        assert!(matches!(&error, Error::Allocation { bytes: 16_000, device, .. } if is_of_second(device)), "{error}");
        assert!(y.to_vec()?.iter().all(|&y| y == 7.0));
    }
    full.pop();
    split::spmv(&a, &there, &mut y)?;
    assert_eq!(y.to_vec()?, host.product(&vec![2.0; 2 * LEN], &x));
    Ok(())
}

/// Products of other threads do not overwrite the items that a product sends.
#[test]
fn threads_multiply_by_one_matrix() -> Result<()> {
    let host = &matrices()[0];
    for devices in splits(3)? {
        let a = &host.split(&devices, &host.values(|value| value as f32))?;
        let devices = &devices;
        let x = |thread: usize| values(211).into_iter().map(move |value| ((value + thread as i32 * 7) % 30) as f32);
        std::thread::scope(|scope| {
            let threads = [0, 1, 2].map(|thread| {
                scope.spawn(move || -> Result<()> {
                    let there = SplitBuffer::from_slice(devices, &x(thread).collect::<Vec<_>>())?;
                    let mut expected = None;
                    for _ in 0..8 {
                        let mut y = SplitBuffer::uninit(devices, 211)?;
                        split::spmv(a, &there, &mut y)?;
                        let found = y.to_vec()?;
                        assert_eq!(expected.get_or_insert_with(|| found.clone()), &found, "{thread}");
                    }
                    let stream = devices.streams()[0].device().stream()?;
                    let one = host.one(&stream, &host.values(|value| value as f32))?;
                    let (x, mut y) = (stream.buffer_from(&there.to_vec()?)?, stream.buffer_uninit::<f32>(211)?);
                    algorithms::spmv(&stream, &one, &x, &mut y)?;
                    assert_eq!(expected, Some(y.to_vec()?), "{thread}");
                    Ok(())
                })
            });
            threads.into_iter().try_for_each(|thread| thread.join().expect("a thread"))
        })?;
    }
    Ok(())
}
