//! Tests runs of equal keys over devices against plain Rust.

use kernel_primitives::functor::{Add, BinaryFn, Max};
use kernel_primitives::{Devices, Error, Result, Split, SplitBuffer, split};

use crate::kernels::{Compose, Map, SmallSum};
use crate::{all_splits, splits};

/// Returns the first key of each run, and the combined value of the run.
fn reduced<K: Copy + PartialEq, V: Copy>(keys: &[K], values: &[V], op: impl Fn(V, V) -> V) -> (Vec<K>, Vec<V>) {
    let mut runs: Vec<(K, V)> = Vec::new();
    for (at, (&key, &value)) in keys.iter().zip(values).enumerate() {
        match runs.last_mut() {
            Some((_, before)) if keys[at - 1] == key => *before = op(*before, value),
            _ => runs.push((key, value)),
        }
    }
    runs.into_iter().unzip()
}

/// Returns keys in runs of these lengths, in turn.
fn keys(len: usize, lengths: &[usize]) -> Vec<u32> {
    let runs = lengths.iter().cycle().zip(0u32..).flat_map(|(&length, run)| vec![run % 5; length]);
    runs.take(len).collect()
}

#[test]
fn runs_that_go_over_devices_are_one() -> Result<()> {
    let kinds: [&[usize]; 6] = [&[1], &[2, 1], &[3, 1, 7], &[1000, 1, 1, 400], &[100_000], &[999, 1]];
    for devices in all_splits()? {
        for len in [0, 1, 2, 7, 9, 1000, 9001] {
            for lengths in kinds {
                let what = format!("{devices:?} {len} {lengths:?}");
                let (keys, values): (Vec<u32>, Vec<i32>) = keys(len, lengths).into_iter().zip(1..).unzip();
                let (x, v) = (SplitBuffer::from_slice(&devices, &keys)?, SplitBuffer::from_slice(&devices, &values)?);
                let (runs, sums) = split::reduce_by_key(&x, &v, Add)?;
                let expected = reduced(&keys, &values, |a, b| a + b);
                assert_eq!((runs.to_vec()?, sums.to_vec()?), expected, "{what}");
                assert!(runs.is_split_as(&sums));
                let (runs, most) = split::reduce_by_key(&x, &v, Max)?;
                assert_eq!((runs.to_vec()?, most.to_vec()?), reduced(&keys, &values, i32::max), "{what}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_run_is_on_the_device_of_its_last_item() -> Result<()> {
    let devices = Split::even(&Devices::emulated(4)?)?;
    let keys = SplitBuffer::from_slice(&devices, &[1u32, 1, 2, 2, 2, 2, 2, 3])?;
    let values = SplitBuffer::from_slice(&devices, &[1u32, 2, 3, 4, 5, 6, 7, 8])?;
    let (runs, sums) = split::reduce_by_key(&keys, &values, Add)?;
    let ranges: Vec<_> = (0..4).map(|device| runs.range(device)).collect();
    assert_eq!(ranges, [0..1, 1..1, 1..1, 1..3]);
    assert_eq!(sums.to_vec()?, [3, 25, 8]);
    Ok(())
}

#[test]
fn an_operator_that_does_not_commute_keeps_the_order() -> Result<()> {
    for devices in all_splits()? {
        for lengths in [&[1][..], &[700], &[3, 2000, 1], &[100_000]] {
            let keys = keys(5000, lengths);
            let map = |i: u32| Map { a: i * 7919 % 1009 * 2 + 1, b: i * 104_729 % 997 };
            let maps: Vec<Map<u32>> = (0..5000).map(map).collect();
            let (x, v) = (SplitBuffer::from_slice(&devices, &keys)?, SplitBuffer::from_slice(&devices, &maps)?);
            let (runs, all) = split::reduce_by_key(&x, &v, Compose)?;
            let expected = reduced(&keys, &maps, |f, g| Compose.apply(f, g));
            assert_eq!((runs.to_vec()?, all.to_vec()?), expected, "{devices:?} {lengths:?}");
        }
    }
    Ok(())
}

#[test]
fn zeros_are_equal_and_nan_is_not() -> Result<()> {
    for devices in splits(2)?.into_iter().chain(splits(8)?) {
        let keys = [-0.0f32, 0.0, -0.0, 0.0, f32::NAN, f32::NAN, 0.0, -0.0, 1.0];
        let ones = [1.0f32; 9];
        let (x, v) = (SplitBuffer::from_slice(&devices, &keys)?, SplitBuffer::from_slice(&devices, &ones)?);
        let (runs, counts) = split::reduce_by_key(&x, &v, Add)?;
        assert_eq!(counts.to_vec()?, [4.0, 1.0, 1.0, 2.0, 1.0], "{devices:?}");
        // The key of a run is its first key.
        let bits: Vec<u32> = runs.to_vec()?.into_iter().map(f32::to_bits).collect();
        let expected = [-0.0, f32::NAN, f32::NAN, 0.0, 1.0].map(f32::to_bits);
        assert_eq!(bits, expected, "{devices:?}");
    }
    Ok(())
}

#[test]
fn values_that_are_on_other_devices_than_their_keys() -> Result<()> {
    let devices = Devices::emulated(2)?;
    let (even, odd) = (Split::even(&devices)?, Split::weighted(&devices, &[3.0, 1.0])?);
    let (x, v) = (SplitBuffer::from_slice(&even, &[1u32; 4])?, SplitBuffer::from_slice(&odd, &[1u32; 4])?);
    let Err(error @ Error::Split { .. }) = split::reduce_by_key(&x, &v, Add) else { panic!("no error") };
    assert_eq!(
        error.to_string(),
        "`split::reduce_by_key`: the keys are split in another way than the values: SplitBuffer<u32>(0..2 on device 0 of the \
         emulator, 2..4 on device 1 of the emulator) and SplitBuffer<u32>(0..3 on device 0 of the emulator, 3..4 on device 1 \
         of the emulator)"
    );
    Ok(())
}

#[test]
fn an_operator_that_panics_is_a_fault_on_any_number_of_devices() -> Result<()> {
    for count in [1, 2] {
        let devices = Split::even(&Devices::emulated(count)?)?;
        // Each of the two devices has one item, so only the host combines them.
        let x = SplitBuffer::from_slice(&devices, &[5u32, 5])?;
        let v = SplitBuffer::from_slice(&devices, &[6u32, 6])?;
        let result = split::reduce_by_key(&x, &v, SmallSum).map(|_| ());
        assert!(matches!(result, Err(Error::Fault(_))), "{count}: {result:?}");
    }
    Ok(())
}

#[test]
fn a_run_over_all_devices_takes_few_copies() -> Result<()> {
    let devices = Devices::emulated(4)?;
    let split = Split::even(&devices)?;
    let x = SplitBuffer::from_slice(&split, &[7u32; 4000])?;
    let v = SplitBuffer::from_slice(&split, &[1u32; 4000])?;
    let before: Vec<_> = devices.iter().map(|device| device.counters()).collect();
    let (runs, sums) = split::reduce_by_key(&x, &v, Add)?;
    let cost: Vec<_> = devices.iter().zip(before).map(|(device, before)| device.counters().since(before)).collect();
    // These are a count, two keys, and a value.
    assert!(cost.iter().all(|cost| cost.device_to_host_copies <= 4), "{cost:?}");
    // The run is written to the device where it ends.
    let written: Vec<_> = cost.iter().map(|cost| cost.host_to_device_copies).collect();
    assert_eq!(written[3], written[0] + 2, "{cost:?}");
    assert_eq!((runs.to_vec()?, sums.to_vec()?), (vec![7], vec![4000]));
    Ok(())
}
