//! Tests gathers over devices, as algorithms and in expressions, against plain Rust.

use kernel_primitives::algorithms::{Gather, Scatter};
use kernel_primitives::expr::*;
use kernel_primitives::simt::FaultKind;
use kernel_primitives::{
    Counters, Devices, Diagnosis, Element, Error, ExpressionErrorKind, Result, Split, SplitBuffer, split,
};

use crate::kernels::Twelve;
use crate::{DEVICES, all_splits, devices, splits, values};

fn hash(i: usize) -> usize {
    (i as u32).wrapping_mul(2_654_435_761).rotate_left(13).wrapping_mul(2_246_822_519) as usize
}

/// Returns `len` indices of each kind, into `all` items.
fn kinds(len: usize, all: usize) -> Vec<(&'static str, Vec<u32>)> {
    let of = |index: &dyn Fn(usize) -> usize| (0..len).map(|i| index(i) as u32).collect::<Vec<u32>>();
    vec![
        ("random", of(&|i| hash(i) % all)),
        ("all of the first", of(&|_| 0)),
        ("all of the last", of(&|_| all - 1)),
        ("backwards", of(&|i| all - 1 - i % all)),
        ("few", of(&|i| hash(i) % 3 * (all - 1) / 2)),
    ]
}

/// Checks a gather of any items.
#[track_caller]
fn check<T, G, S>(split: &Split, host: &[T], indices: &[u32], what: &str) -> Result<()>
where
    T: Element + PartialEq + Gather<u32, T, G> + Scatter<u32, S>,
{
    let x = SplitBuffer::from_slice(split, host)?;
    let at = SplitBuffer::from_slice(split, indices)?;
    let mut out = SplitBuffer::uninit(split, indices.len())?;
    split::gather(&x, &at, &mut out)?;
    let expected: Vec<T> = indices.iter().map(|&index| host[index as usize]).collect();
    assert!(out.to_vec()? == expected, "{what}, {} of {}, {split:?}", indices.len(), host.len());
    Ok(())
}

#[test]
fn items_of_all_devices_by_any_indices() -> Result<()> {
    for split in all_splits()? {
        // A vector that is short compared with the indices is copied. A long vector takes an exchange.
        for (all, len) in [(1, 1), (7, 1), (9, 1000), (1000, 9), (2000, 300), (30_011, 3000)] {
            for (kind, indices) in kinds(len, all) {
                check(&split, &values(all), &indices, kind)?;
            }
        }
    }
    Ok(())
}

#[test]
fn items_of_any_type() -> Result<()> {
    for split in splits(3)? {
        let indices: Vec<u32> = (0..200).map(|i| hash(i) as u32 % 1000).collect();
        let host = || (0..1000).map(|i| hash(i) as u32);
        check(&split, &host().map(|x| x as u8).collect::<Vec<_>>(), &indices, "u8")?;
        check(&split, &host().map(|x| x as i16).collect::<Vec<_>>(), &indices, "i16")?;
        check(&split, &host().map(|x| x as f32).collect::<Vec<_>>(), &indices, "f32")?;
        check(&split, &host().map(f64::from).collect::<Vec<_>>(), &indices, "f64")?;
        check(
            &split,
            &host().map(|x| Twelve { a: x as f32, b: x, c: !x as i32 }).collect::<Vec<_>>(),
            &indices,
            "structs",
        )?;
    }
    Ok(())
}

#[test]
fn indices_of_64_bits_and_signed_ones() -> Result<()> {
    for split in splits(3)? {
        let host = values(2000);
        let x = SplitBuffer::from_slice(&split, &host)?;
        for len in [100, 5000] {
            let expected: Vec<i32> = (0..len).map(|i| host[hash(i) % 2000]).collect();
            let mut out = SplitBuffer::uninit(&split, len)?;
            let wide: Vec<u64> = (0..len).map(|i| hash(i) as u64 % 2000).collect();
            split::gather(&x, &SplitBuffer::from_slice(&split, &wide)?, &mut out)?;
            assert_eq!(out.to_vec()?, expected, "{split:?}");
            let signed: Vec<i64> = wide.iter().map(|&index| index as i64).collect();
            split::gather(&x, &SplitBuffer::from_slice(&split, &signed)?, &mut out)?;
            assert_eq!(out.to_vec()?, expected, "{split:?}");
        }
    }
    Ok(())
}

#[test]
fn nothing_is_gathered_by_no_indices() -> Result<()> {
    for split in all_splits()? {
        for all in [0, 1, 100] {
            let x = SplitBuffer::from_slice(&split, &values(all))?;
            let mut out = SplitBuffer::<i32>::uninit(&split, 0)?;
            split::gather(&x, &SplitBuffer::<u32>::uninit(&split, 0)?, &mut out)?;
            assert_eq!(out.to_vec()?, []);
        }
    }
    Ok(())
}

/// Checks the error of a call, or of the work that it has left on devices.
#[track_caller]
fn assert_outside(split: &Split, result: Result<()>, what: &str) {
    let Err(Error::Fault(fault)) = result.and_then(|()| split.synchronize()) else { panic!("no fault: {what}") };
    let is_outside = match &fault.diagnosis {
        Diagnosis::Raised(raised) => raised.kind == FaultKind::OutOfBounds,
        _ => false,
    };
    assert!(is_outside, "{what}: {fault:?}");
}

#[test]
fn an_index_outside_is_a_fault() -> Result<()> {
    for count in DEVICES {
        let split = Split::even(&devices(count)?)?;
        for (all, len) in [(500, 40), (40, 500), (0, 3)] {
            for place in [0, len / 2, len - 1] {
                for outside in [all as u32, all as u32 + 1, u32::MAX] {
                    let mut indices = vec![0u32; len];
                    indices[place] = outside;
                    let x = SplitBuffer::from_slice(&split, &values(all))?;
                    let at = SplitBuffer::from_slice(&split, &indices)?;
                    let mut out = SplitBuffer::zeroed(&split, len)?;
                    let what = format!("{outside} of {all} at {place} of {len}, {count} devices");
                    assert_outside(&split, split::gather(&x, &at, &mut out), &what);
                }
            }
        }
        let x = SplitBuffer::from_slice(&split, &values(500))?;
        let at = SplitBuffer::from_slice(&split, &[0i64, -1, 3])?;
        let mut out = SplitBuffer::zeroed(&split, 3)?;
        assert_outside(&split, split::gather(&x, &at, &mut out), "a negative one");
        // The devices still work.
        check(&split, &values(500), &[499, 0, 7], "after a fault")?;
    }
    Ok(())
}

/// Returns the number of bytes that a call moves between devices, and of its copies to the host.
fn cost(devices: &Devices, call: impl FnOnce() -> Result<()>) -> Result<[u64; 2]> {
    let counters = || -> Vec<Counters> { devices.iter().map(|device| device.counters()).collect() };
    let before = counters();
    call()?;
    let since = counters().into_iter().zip(before).map(|(after, before)| after.since(before));
    Ok(since.fold([0; 2], |[bytes, copies], one| [bytes + one.peer_bytes, copies + one.device_to_host_copies]))
}

#[test]
fn only_what_is_asked_for_goes_between_devices() -> Result<()> {
    let devices = Devices::emulated(3)?;
    let split = Split::even(&devices)?;
    let since = |all: usize, indices: &[u32]| -> Result<[u64; 2]> {
        let (x, at) = (SplitBuffer::from_slice(&split, &values(all))?, SplitBuffer::from_slice(&split, indices)?);
        let mut out = SplitBuffer::uninit(&split, indices.len())?;
        cost(&devices, || split::gather(&x, &at, &mut out))
    };
    // Each device asks for two items of each device, four of which are elsewhere. It learns the number of items of each device, and so does
    // the host.
    let few: Vec<u32> = (0..18).map(|i| i % 6 / 2 * 300 + i).collect();
    assert_eq!(since(900, &few)?, [3 * 4 * (4 + 4), 3]);
    // All of a short input goes to each device, without a wait.
    let many: Vec<u32> = (0..900).map(|i| i % 9).collect();
    assert_eq!(since(9, &many)?, [3 * 6 * 4, 0]);
    Ok(())
}

#[test]
fn buffers_that_do_not_fit() -> Result<()> {
    let devices = Devices::emulated(2)?;
    let (even, odd) = (Split::even(&devices)?, Split::weighted(&devices, &[3.0, 1.0])?);
    let x = SplitBuffer::from_slice(&even, &values(8))?;
    let four = SplitBuffer::from_slice(&even, &[0u32, 1, 2, 3])?;
    let wrong = |x: &SplitBuffer<i32>, at: &SplitBuffer<u32>, out: &mut SplitBuffer<i32>| -> String {
        split::gather(x, at, out).expect_err("what does not fit").to_string()
    };
    let start = "`split::gather`: the indices are split in another way than the result: ";
    for mut out in [SplitBuffer::zeroed(&even, 5)?, SplitBuffer::zeroed(&even, 3)?, SplitBuffer::zeroed(&odd, 4)?] {
        let text = wrong(&x, &four, &mut out);
        assert!(text.starts_with(start) && text.contains("0..2 on device 0"), "{text}");
    }
    let mut out = SplitBuffer::zeroed(&even, 4)?;
    let turned = Split::even(&Devices::new([devices[1].clone(), devices[0].clone()])?)?;
    for other in [turned, Split::even(&Devices::emulated(3)?)?] {
        let text = wrong(&SplitBuffer::from_slice(&other, &values(8))?, &four, &mut out);
        assert!(text.starts_with("`split::gather`: the input is on other devices than the indices: "), "{text}");
    }
    // The input may have any ranges.
    split::gather(&SplitBuffer::from_slice(&odd, &values(8))?, &four, &mut out)?;
    assert_eq!(out.to_vec()?, values(8)[..4]);
    Ok(())
}

#[test]
fn a_gather_over_devices_is_in_no_graph() -> Result<()> {
    let streams = Devices::emulated(2)?.streams()?;
    let parts = |items: &[i32]| -> Result<Vec<_>> {
        streams.iter().map(|stream| Ok((stream.buffer_from(items)?, items.len()))).collect()
    };
    let at: Vec<_> = streams.iter().map(|stream| Ok((stream.buffer_from(&[1u32])?, 1))).collect::<Result<_>>()?;
    let (x, out) = (parts(&[1, 2])?, parts(&[0])?);
    let captured = streams[0].capture(|stream| {
        let split = Split::of_streams([stream.clone(), streams[1].clone()], &[1.0, 1.0])?;
        let (x, at) = (SplitBuffer::of_parts(&split, x)?, SplitBuffer::of_parts(&split, at)?);
        split::gather(&x, &at, &mut SplitBuffer::of_parts(&split, out)?)
    });
    assert!(matches!(captured, Err(Error::Capture { call: "`split::gather`", .. })), "{:?}", captured.err());
    Ok(())
}

#[test]
fn expressions_gather_from_split_tensors() -> Result<()> {
    for split in all_splits()? {
        for (all, len) in [(1, 5), (5, 2000), (3000, 100), (2000, 2000)] {
            let host = values(all);
            let table = SplitTensor::from_slice(&split, all, &host)?;
            let indices: Vec<u32> = (0..len).map(|i| (hash(i) % all) as u32).collect();
            let index = SplitTensor::from_slice(&split, len, &indices)?;
            let y = SplitTensor::uninit(&split, len)?;
            let picked: Vec<i32> = indices.iter().map(|&index| host[index as usize]).collect();
            let what = format!("{len} of {all}, {split:?}");
            y.assign(gather(&table, &index) * 2 + 1)?;
            assert_eq!(y.to_vec()?, picked.iter().map(|x| 2 * x + 1).collect::<Vec<_>>(), "{what}");
            // The index is computed and has another type, and one gather is in another.
            y.assign(gather(&table, (all as u64 - 1) - index.cast::<u64>()) + gather(&table, &index))?;
            let both = indices.iter().map(|&i| host[all - 1 - i as usize] + host[i as usize]);
            assert_eq!(y.to_vec()?, both.collect::<Vec<_>>(), "{what}");
            y.assign(gather(&table, gather(&table, &index).abs().cast::<u32>() % all as u32))?;
            let twice = picked.iter().map(|x| host[x.unsigned_abs() as usize % all]);
            assert_eq!(y.to_vec()?, twice.collect::<Vec<_>>(), "{what}");
            // Reductions count over the whole tensor.
            assert_eq!(gather(&table, &index).sum().item()?, picked.iter().sum::<i32>(), "{what}");
            let largest = picked.iter().enumerate().rev().max_by_key(|(_, x)| **x).map(|(i, _)| i as u64);
            assert_eq!(Some(gather(&table, &index).arg_max().item()?), largest, "{what}");
            let backwards = gather(&table, (all - 1) as u64 - element_index::<u64>());
            assert_eq!(backwards.sum().over_split(&split, all).item()?, host.iter().sum::<i32>(), "{what}");
        }
    }
    Ok(())
}

#[test]
fn a_gather_has_the_shape_of_its_places() -> Result<()> {
    let splits = splits(3)?;
    for split in &splits {
        let host: Vec<f64> = (0..500).map(|i| f64::from(i) / 3.0).collect();
        // The vector has another split than the results.
        let table = SplitTensor::from_slice(&splits[1], 500, &host)?;
        let columns = SplitTensor::from_slice(split, [7, 1], &[3u8, 1, 4, 1, 5, 9, 2])?;
        let y = SplitTensor::uninit(split, [7, 11])?;
        // The index repeats along an axis, and counts over the whole tensor.
        y.assign(gather(&table, columns.cast::<u64>() * 2 + element_index::<u64>() * 5))?;
        let at = |row: usize, column: usize| [3, 1, 4, 1, 5, 9, 2][row] * 2 + (row * 11 + column) * 5;
        let expected: Vec<f64> = (0..77).map(|i| host[at(i / 11, i % 11)]).collect();
        assert_eq!(y.to_vec()?, expected, "{split:?}");
        let sums = gather(&table, columns.cast::<u64>() + axis_index::<u64>(1)).sum().over_split(split, [7, 11]);
        let row = |row: usize| (0..11).map(|i| host[[3, 1, 4, 1, 5, 9, 2][row] + i]).sum::<f64>();
        let expected: Vec<f64> = (0..7).map(row).collect();
        let sums = sums.axes(&[1]).split_tensor()?.to_vec()?;
        assert!(sums.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-9), "{sums:?} {expected:?}");
    }
    Ok(())
}

#[test]
fn truth_values_and_neighbours_are_gathered() -> Result<()> {
    for split in splits(3)? {
        let flags: Vec<bool> = (0..600).map(|i| hash(i).is_multiple_of(3)).collect();
        let table = SplitTensor::from_slice(&split, 600, &flags)?;
        let indices: Vec<u32> = (0..50).map(|i| (hash(i) % 600) as u32).collect();
        let index = SplitTensor::from_slice(&split, 50, &indices)?;
        let y = SplitTensor::uninit(&split, 50)?;
        y.assign(gather(&table, &index))?;
        assert_eq!(y.to_vec()?, indices.iter().map(|&i| flags[i as usize]).collect::<Vec<_>>());
        // The index is the element that a stencil reads beside each place.
        y.assign(gather(&table, stencil(&index, Boundary::Periodic, |n| n.at(1))))?;
        let next = (0..50).map(|i| flags[indices[(i + 1) % 50] as usize]);
        assert_eq!(y.to_vec()?, next.collect::<Vec<_>>());
    }
    Ok(())
}

#[test]
fn gathers_that_an_expression_cannot_have() -> Result<()> {
    #[track_caller]
    fn refused<T>(result: Result<T>, kind: ExpressionErrorKind, part: &str) {
        let Err(error) = result else { panic!("no error: {part}") };
        let text = error.to_string();
        let Error::Expression(error) = error else { panic!("{text}") };
        assert!(error.kind == kind && text.contains(part) && text.contains(file!()), "{text}");
    }
    let devices = Devices::emulated(2)?;
    let split = Split::even(&devices)?;
    let y = SplitTensor::<i32>::zeros(&split, 40)?;
    let index = SplitTensor::<u32>::zeros(&split, 40)?;
    let matrix = SplitTensor::<i32>::zeros(&split, [3, 4])?;
    refused(y.assign(gather(&matrix, &index)), ExpressionErrorKind::BadShape, "a vector, not a tensor of shape [3, 4]");
    refused(y.assign(gather(&y, &index)), ExpressionErrorKind::Overlap, "overlaps");
    let turned = Split::even(&Devices::new([devices[1].clone(), devices[0].clone()])?)?;
    let there = SplitTensor::<i32>::zeros(&turned, 40)?;
    refused(y.assign(gather(&there, &index)), ExpressionErrorKind::BadSplit, "0..20 on device 1");
    let table = SplitTensor::from_slice(&split, 500, &values(500))?;
    let short = SplitTensor::<u32>::zeros(&split, 39)?;
    refused(y.assign(gather(&table, &short)), ExpressionErrorKind::BadShape, "[39]");
    refused(y.assign(gather(&table, axis_index::<u32>(1))), ExpressionErrorKind::OutOfRange, "axis 1");
    let one = Tensor::<i32>::zeros(&split.streams()[0], 40)?;
    refused(one.assign(gather(&table, element_index::<u32>())), ExpressionErrorKind::BadSplit, "to_tensor");
    let no_shape = gather(&table, element_index::<u32>()).sum().item();
    refused(no_shape, ExpressionErrorKind::BadSplit, "over_split");
    // Indices outside are faults in all ways of reading.
    for all in [500, 20] {
        let table = SplitTensor::<i32>::zeros(&split, all)?;
        for outside in [all as i32, -1] {
            let mut indices = [0; 40];
            indices[33] = outside;
            let index = SplitTensor::from_slice(&split, 40, &indices)?;
            assert_outside(&split, y.assign(gather(&table, &index)), "an assignment");
        }
    }
    y.assign(gather(&table, &index))?;
    assert_eq!(y.to_vec()?, [values(1)[0]; 40]);
    Ok(())
}

#[test]
fn a_short_vector_is_copied_once_for_all_gathers_of_it() -> Result<()> {
    let devices = Devices::emulated(3)?;
    let split = Split::even(&devices)?;
    let table = SplitTensor::from_slice(&split, 9, &values(9))?;
    let indices: Vec<u32> = (0..900).map(|i| i % 9).collect();
    let index = SplitTensor::from_slice(&split, 900, &indices)?;
    let y = SplitTensor::<i32>::uninit(&split, 900)?;
    let bytes = || devices.iter().map(|device| device.counters().peer_bytes).sum::<u64>();
    let before = bytes();
    y.assign(gather(&table, &index) + gather(&table, 8 - index.cast::<u32>()))?;
    assert_eq!(bytes() - before, 3 * 6 * 4);
    let host = values(9);
    assert_eq!(y.to_vec()?, indices.iter().map(|&i| host[i as usize] + host[8 - i as usize]).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn the_items_of_a_gather_that_is_used_twice_are_copied_once() -> Result<()> {
    let devices = Devices::emulated(3)?;
    let split = Split::even(&devices)?;
    let host = values(900);
    let indices: Vec<u32> = (0..18).map(|i| i % 6 / 2 * 300 + i).collect();
    let table = SplitTensor::from_slice(&split, 900, &host)?;
    let index = SplitTensor::from_slice(&split, 18, &indices)?;
    let y = SplitTensor::<i32>::uninit(&split, 18)?;
    let picked = gather(&table, &index);
    let once = cost(&devices, || y.assign(&picked * 2))?;
    assert!(once[0] > 0, "no items are elsewhere");
    assert_eq!(cost(&devices, || y.assign(&picked + &picked))?, once);
    assert_eq!(cost(&devices, || y.assign(&picked + (&picked * 2 - &picked)))?, once);
    assert_eq!(y.to_vec()?, indices.iter().map(|&i| 2 * host[i as usize]).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn a_fault_of_an_index_names_the_call() -> Result<()> {
    let split = Split::even(&Devices::emulated(2)?)?;
    let table = SplitTensor::<i32>::zeros(&split, 500)?;
    let index = SplitTensor::from_slice(&split, 4, &[0u32, 1, 2, 500])?;
    let y = SplitTensor::<i32>::zeros(&split, 4)?;
    let Err(Error::Fault(fault)) = y.assign(gather(&table, &index)) else { panic!("no fault") };
    assert_eq!((&*fault.kernel, &*fault.file), ("expr::gather", file!()));
    Ok(())
}

#[test]
fn references_to_tables_are_tables() -> Result<()> {
    let split = Split::even(&Devices::emulated(2)?)?;
    let stream = &split.streams()[0];
    let one = Tensor::from_slice(stream, 3, &[5, 6, 7])?;
    let (y, many) = (Tensor::<i32>::uninit(stream, 1)?, SplitTensor::from_slice(&split, 3, &[5, 6, 7])?);
    let z = SplitTensor::<i32>::uninit(&split, 2)?;
    for (one, many) in &[(&one, &many), (&one, &many)] {
        y.assign(gather(one, constant(2u32)))?;
        assert_eq!(y.to_vec()?, [7]);
        z.assign(gather(many, element_index::<u32>() + 1))?;
        assert_eq!(z.to_vec()?, [6, 7]);
    }
    Ok(())
}

#[test]
fn items_of_one_device_are_asked_for_by_all() -> Result<()> {
    let split = Split::even(&devices(3)?)?;
    let (streams, host) = (split.streams(), values(1000));
    for owner in 0..streams.len() {
        let part = |device: usize| if device == owner { &host[..] } else { &[] };
        let parts = streams.iter().enumerate().map(|(at, stream)| Ok((stream.buffer_from(part(at))?, part(at).len())));
        let x = SplitBuffer::of_parts(&split, parts.collect::<Result<_>>()?)?;
        let indices: Vec<u32> = (0..31).map(|i| hash(i) as u32 % 1000).collect();
        let mut out = SplitBuffer::uninit(&split, 31)?;
        split::gather(&x, &SplitBuffer::from_slice(&split, &indices)?, &mut out)?;
        assert_eq!(out.to_vec()?, indices.iter().map(|&i| host[i as usize]).collect::<Vec<_>>());
        let (table, index) = (SplitTensor::from_buffer(x), SplitTensor::from_slice(&split, 31, &indices)?);
        let y = SplitTensor::uninit(&split, 31)?;
        y.assign(gather(&table, &index))?;
        assert_eq!(y.to_vec()?, out.to_vec()?);
    }
    Ok(())
}

#[test]
fn an_expression_that_gathers_over_devices_is_in_no_graph() -> Result<()> {
    let streams = Devices::emulated(2)?.streams()?;
    let parts = |items: &[i32]| -> Result<Vec<_>> {
        streams.iter().map(|stream| Ok((stream.buffer_from(items)?, items.len()))).collect()
    };
    let at: Vec<_> = streams.iter().map(|stream| Ok((stream.buffer_from(&[1u32])?, 1))).collect::<Result<_>>()?;
    let (x, y) = (parts(&[1, 2])?, parts(&[0])?);
    let captured = streams[0].capture(|stream| {
        let split = Split::of_streams([stream.clone(), streams[1].clone()], &[1.0, 1.0])?;
        let (x, at) = (SplitBuffer::of_parts(&split, x)?, SplitBuffer::of_parts(&split, at)?);
        let (x, at) = (SplitTensor::from_buffer(x), SplitTensor::from_buffer(at));
        SplitTensor::from_buffer(SplitBuffer::of_parts(&split, y)?).assign(gather(&x, &at))
    });
    assert!(matches!(captured, Err(Error::Capture { .. })), "{:?}", captured.err());
    Ok(())
}
