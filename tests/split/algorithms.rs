//! Tests algorithms over split buffers against plain Rust.

use kernel_primitives::expr::{Reductions, SplitTensor};
use kernel_primitives::functor::{Add, BinaryFn, GreaterThan, LessThan, Max, Min, bind_second};
use kernel_primitives::{Counters, Devices, Error, Result, Split, SplitBuffer, split};

use crate::kernels::{Compose, Map, SmallSum};
use crate::{all_splits, splits, values};

/// Returns the inclusive and the exclusive scan.
fn scanned<T: Copy>(x: &[T], first: T, op: impl Fn(T, T) -> T) -> (Vec<T>, Vec<T>) {
    let (mut upto, mut before, mut all) = (Vec::new(), Vec::new(), first);
    for &item in x {
        before.push(all);
        all = op(all, item);
        upto.push(all);
    }
    (upto, before)
}

#[test]
fn scans() -> Result<()> {
    for devices in all_splits()? {
        for len in [0, 1, 2, 7, 9, 1000, 30_011] {
            let host = values(len);
            let x = SplitBuffer::from_slice(&devices, &host)?;
            let mut out = SplitBuffer::uninit(&devices, len)?;
            let what = format!("{devices:?} {len}");
            split::inclusive_scan(&x, Add, &mut out)?;
            assert_eq!(out.to_vec()?, scanned(&host, 0, |a, b| a + b).0, "{what}");
            split::inclusive_scan(&x, Max, &mut out)?;
            assert_eq!(out.to_vec()?, scanned(&host, i32::MIN, i32::max).0, "{what}");
            split::inclusive_scan(&x, Min, &mut out)?;
            assert_eq!(out.to_vec()?, scanned(&host, i32::MAX, i32::min).0, "{what}");
            split::exclusive_scan(&x, 77, Add, &mut out)?;
            assert_eq!(out.to_vec()?, scanned(&host, 77, |a, b| a + b).1, "{what}");
            assert_eq!(x.to_vec()?, host);
        }
    }
    Ok(())
}

#[test]
fn a_scan_by_an_operator_that_does_not_commute_keeps_the_order() -> Result<()> {
    for devices in all_splits()? {
        for len in [1, 5, 2000, 40_000] {
            let map = |i: usize| Map { a: (i as u32 * 7919) % 1009 * 2 + 1, b: (i as u32 * 104_729) % 997 };
            let host: Vec<Map<u32>> = (0..len).map(map).collect();
            let one = Map { a: 1, b: 0 };
            let (upto, before) = scanned(&host, one, |f, g| Compose.apply(f, g));
            let x = SplitBuffer::from_slice(&devices, &host)?;
            let mut out = SplitBuffer::uninit(&devices, len)?;
            split::inclusive_scan(&x, Compose, &mut out)?;
            assert_eq!(out.to_vec()?, upto, "{devices:?} {len}");
            split::exclusive_scan(&x, one, Compose, &mut out)?;
            assert_eq!(out.to_vec()?, before, "{devices:?} {len}");
        }
    }
    Ok(())
}

#[test]
fn a_scan_copies_a_few_items_between_devices_and_none_to_the_host() -> Result<()> {
    let devices = Devices::emulated(3)?;
    let split = Split::even(&devices)?;
    let x = SplitBuffer::from_slice(&split, &values(3000))?;
    let mut out = SplitBuffer::uninit(&split, 3000)?;
    let counters = || -> Vec<Counters> { devices.iter().map(|device| device.counters()).collect() };
    let since = |scan: &mut dyn FnMut() -> Result<()>| -> Result<[u64; 2]> {
        let before = counters();
        scan()?;
        let since = counters().into_iter().zip(before).map(|(after, before)| after.since(before));
        Ok(since.fold([0; 2], |[bytes, copies], one| [bytes + one.peer_bytes / 4, copies + one.device_to_host_copies]))
    };
    // The second device receives the total of the first device. The third receives this total and that of the second.
    assert_eq!(since(&mut || split::inclusive_scan(&x, Add, &mut out))?, [3, 0]);
    assert_eq!(since(&mut || split::exclusive_scan(&x, 0, Add, &mut out))?, [6, 0]);
    Ok(())
}

#[test]
fn a_scan_over_devices_is_in_no_graph() -> Result<()> {
    let streams = Devices::emulated(2)?.streams()?;
    let two = || -> Result<Vec<_>> { streams.iter().map(|s| Ok((s.buffer_from(&[1i32, 2])?, 2))).collect() };
    let (x, out) = (two()?, two()?);
    let captured = streams[0].capture(|stream| {
        let split = Split::of_streams([stream.clone(), streams[1].clone()], &[1.0, 1.0])?;
        split::inclusive_scan(&SplitBuffer::of_parts(&split, x)?, Add, &mut SplitBuffer::of_parts(&split, out)?)
    });
    assert!(matches!(captured, Err(Error::Capture { call: "`split::inclusive_scan`", .. })), "{:?}", captured.err());
    Ok(())
}

#[test]
fn selections_stay_where_they_were_found() -> Result<()> {
    for devices in all_splits()? {
        for len in [0, 1, 2, 7, 1000, 30_011] {
            let host = values(len);
            let x = SplitBuffer::from_slice(&devices, &host)?;
            for limit in [-600, -100, 0, 450, 600] {
                let kept = split::select_if(&x, bind_second(LessThan, limit))?;
                let of = |part: &[i32]| part.iter().copied().filter(|&x| x < limit).collect::<Vec<_>>();
                assert_eq!(kept.to_vec()?, of(&host), "{devices:?} {len} {limit}");
                for (device, range) in devices.ranges(len).enumerate() {
                    assert_eq!(kept.part(device).to_vec()?, of(&host[range]), "{devices:?} {len} {limit}");
                }
                let mut even = SplitBuffer::zeroed(&devices, kept.len())?;
                even.copy_from_split(&kept)?;
                assert_eq!(even.to_vec()?, of(&host));
            }
        }
    }
    Ok(())
}

#[test]
fn what_was_selected_goes_on() -> Result<()> {
    for devices in splits(3)? {
        let host = values(1000);
        let x = SplitBuffer::from_slice(&devices, &host)?;
        let kept = split::select_if(&x, bind_second(GreaterThan, 100))?;
        let expected: Vec<i32> = host.into_iter().filter(|&x| x > 100).collect();
        // The selection of a selection, and a scan, have the split of the first selection.
        let again = split::select_if(&kept, bind_second(LessThan, 300))?;
        assert_eq!(again.to_vec()?, expected.iter().copied().filter(|&x| x < 300).collect::<Vec<_>>());
        let tensor = SplitTensor::from_buffer(kept);
        let sums = tensor.uninit_like::<i32>()?;
        sums.assign(&tensor * 2 + 1)?;
        assert_eq!(sums.to_vec()?, expected.iter().map(|x| 2 * x + 1).collect::<Vec<_>>());
        assert_eq!(tensor.sum().item()?, expected.iter().sum::<i32>());
        assert_eq!(
            tensor.arg_max().item()?,
            expected.iter().position(|x| Some(x) == expected.iter().max()).unwrap() as u64
        );
        assert_eq!(tensor.resplit(&devices)?.to_vec()?, expected);
    }
    Ok(())
}

#[test]
fn histograms_are_summed() -> Result<()> {
    for devices in all_splits()? {
        for len in [0, 1, 7, 30_011] {
            let host = values(len);
            let x = SplitBuffer::from_slice(&devices, &host)?;
            let mut expected = vec![0u32; 13];
            for &x in &host {
                if (-500..500).contains(&x) {
                    expected[((x + 500) as usize * 13) / 1000] += 1;
                }
            }
            let counts = split::histogram_even::<_, u32, _>(&x, -500, 500, 13)?;
            assert_eq!(counts.to_vec()?, expected, "{devices:?} {len}");
            assert_eq!(counts.device().to_string(), devices.streams()[0].device().to_string());
            let levels = [-1000, -3, 0, 10, 10, 504];
            let between = |bounds: &[i32]| host.iter().filter(|x| (bounds[0]..bounds[1]).contains(x)).count() as u32;
            let expected: Vec<u32> = levels.windows(2).map(between).collect();
            assert_eq!(split::histogram_ranges::<_, u32, _>(&x, &levels)?.to_vec()?, expected, "{devices:?} {len}");
        }
    }
    Ok(())
}

#[test]
fn wrong_arguments() -> Result<()> {
    let devices = Devices::emulated(2)?;
    let (even, odd) = (Split::even(&devices)?, Split::weighted(&devices, &[3.0, 1.0])?);
    let x = SplitBuffer::from_slice(&even, &[1i32, 2, 3, 4])?;
    let text = |result: Result<()>| match result {
        Err(error @ Error::Split { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let wrong = text(split::inclusive_scan(&x, Add, &mut SplitBuffer::zeroed(&odd, 4)?));
    assert_eq!(
        wrong,
        "`split::inclusive_scan`: the input is split in another way than the result: SplitBuffer<i32>(0..2 on device 0 of the \
         emulator, 2..4 on device 1 of the emulator) and SplitBuffer<i32>(0..3 on device 0 of the emulator, 3..4 on device 1 \
         of the emulator)"
    );
    text(split::exclusive_scan(&x, 0, Add, &mut SplitBuffer::zeroed(&even, 5)?));
    assert!(matches!(split::histogram_even::<_, u32, _>(&x, 0, 10, 0), Err(Error::Bins { .. })));
    assert!(matches!(split::histogram_even::<_, u32, _>(&x, 5, 5, 3), Err(Error::Bins { .. })));
    assert!(matches!(split::histogram_ranges::<_, u32, _>(&x, &[3]), Err(Error::Bins { .. })));
    // A new split is the same if its devices and ranges are the same.
    let mut out = SplitBuffer::zeroed(&Split::weighted(&devices, &[5.0, 5.0])?, 4)?;
    split::inclusive_scan(&x, Add, &mut out)?;
    assert_eq!(out.to_vec()?, [1, 3, 6, 10]);
    Ok(())
}

#[test]
fn an_operator_that_panics_is_a_fault_on_any_number_of_devices() -> Result<()> {
    for count in [1, 2] {
        let devices = Split::even(&Devices::emulated(count)?)?;
        // On both devices, the sum of the device's own items is not too large.
        let x = SplitBuffer::from_slice(&devices, &[6u32, 0])?;
        let result = split::exclusive_scan(&x, 5, SmallSum, &mut SplitBuffer::uninit(&devices, 2)?);
        assert!(matches!(result, Err(Error::Fault(_))), "{count}: {result:?}");
    }
    Ok(())
}
