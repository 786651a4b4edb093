use super::*;
use crate::Device;
use crate::algorithms::transform;
use crate::functor::{Greater, Identity, Less};

crate::instantiate!(device::sort_sweep_pairs<u32, [u32; 5]>);

/// Three launches a pass, of which the last is the smallest: each takes up where the one before has ended.
#[test]
fn portions_continue_each_other() -> Result<()> {
    let stream = Device::emulator().stream()?;
    let tile = device::sort_tile_items(4, 4);
    let keys: Vec<u32> = (0..5 * tile as u32 - 100).map(|i| i.wrapping_mul(0x9e37_79b1) >> 12 << 7).collect();
    let values: Vec<u32> = (0..keys.len() as u32).collect();
    let (x, v) = (stream.buffer_from(&keys)?, stream.buffer_from(&values)?);
    let mut out = stream.buffer_zeroed::<u32>(keys.len())?;
    let mut values_out = stream.buffer_zeroed::<u32>(keys.len())?;

    let order = Order::of::<u32, Less>("sort_keys", 0..27)?;
    keys_in_portions(
        <u32 as SortKeys<()>>::kernels(),
        Run::on(&stream),
        x.as_slice(),
        (&mut out).into(),
        order,
        2 * tile + 1,
    )?;
    let mut expected = keys.clone();
    expected.sort_by_key(|key| key & 0x7ff_ffff);
    assert!(out.to_vec()? == expected);

    let order = Order::of::<u32, Greater>("sort_pairs", 9..32)?;
    let to = ((&mut out).into(), (&mut values_out).into());
    pairs_in_portions(
        <u32 as SortPairs<u32, ()>>::kernels(),
        Run::on(&stream),
        (x.as_slice(), Some(v.as_slice())),
        to,
        order,
        2 * tile + 1,
    )?;
    let mut expected = values;
    expected.sort_by_key(|&value| std::cmp::Reverse(keys[value as usize] >> 9));
    assert!(values_out.to_vec()? == expected);
    Ok(())
}

/// In the passes by the first and the third byte, all keys have one digit. Their launches have to go on where the ones before them ended, too.
#[test]
fn portions_of_passes_whose_keys_have_one_digit_continue_each_other() -> Result<()> {
    let stream = Device::emulator().stream()?;
    let tile = device::sort_tile_items(4, 4);
    let key = |i: u32| i.wrapping_mul(0x9e37_79b1) & 0xff00_ff00 | 0x0080_0001;
    let keys: Vec<u32> = (0..5 * tile as u32 - 100).map(key).collect();
    let values: Vec<u32> = (0..keys.len() as u32).collect();
    let (x, v) = (stream.buffer_from(&keys)?, stream.buffer_from(&values)?);
    for order in [Order::of::<u32, Less>("sort_pairs", 0..32)?, Order::of::<i32, Greater>("sort_pairs", 0..32)?] {
        let mut out = stream.buffer_uninit::<u32>(keys.len())?;
        let mut values_out = stream.buffer_uninit::<u32>(keys.len())?;
        let to = ((&mut out).into(), (&mut values_out).into());
        let from = (x.as_slice(), Some(v.as_slice()));
        let kernels = <u32 as SortPairs<u32, ()>>::kernels();
        pairs_in_portions(kernels, Run::on(&stream), from, to, order, 2 * tile + 1)?;
        let mut expected = values.clone();
        expected.sort_by_key(|&i| keys[i as usize] ^ order.turned as u32);
        assert!(values_out.to_vec()? == expected);
        assert!(out.to_vec()?.into_iter().eq(expected.iter().map(|&i| keys[i as usize])));

        let mut out = stream.buffer_uninit::<u32>(keys.len())?;
        let kernels = <u32 as SortKeys<()>>::kernels();
        keys_in_portions(kernels, Run::on(&stream), x.as_slice(), (&mut out).into(), order, 2 * tile + 1)?;
        assert!(out.to_vec()?.into_iter().eq(expected.iter().map(|&i| keys[i as usize])));
    }
    Ok(())
}

/// Each launch of a pass whose keys have one digit begins with a ticket that tells this digit. Others begin with zero.
#[test]
fn first_tickets_tell_which_digit_all_keys_have() -> Result<()> {
    let stream = Device::emulator().stream()?;
    let tile = device::sort_tile_items(4, 0);
    let key = |i: u32| i.wrapping_mul(0x9e37_79b1) & 0xff00_ff00 | 0x0080_0001;
    let x = stream.buffer_from(&(0..4 * tile as u32).map(key).collect::<Vec<_>>())?;
    let run = Run::on(&stream);
    for (order, [first, third]) in [
        (Order::of::<u32, Less>("sort_keys", 0..32)?, [0x01, 0x80]),
        (Order::of::<u32, Greater>("sort_keys", 0..32)?, [0xfe, 0x7f]),
    ] {
        let passes = Passes::of::<u32, ()>(&run, x.len(), 2 * tile + 1, order);
        let part = run.part();
        let mut memory = part.part().memory(&[bytes_of::<u64>(passes.words())])?;
        let shared = passes.begin(Entry::named::<()>(), &part, x.as_slice(), &mut memory.parts())?;
        let mut tickets = vec![7; shared.tickets.len()];
        shared.tickets.as_slice().copy_to(&mut tickets)?;
        let of = |digit: u32| (256 | digit) << 23;
        assert_eq!(tickets, [of(first), of(first), 0, 0, of(third), of(third), 0, 0]);
    }
    Ok(())
}

/// Values that are in the output before the sort go on from launch to launch, too.
#[test]
fn portions_of_values_in_the_output_continue_each_other() -> Result<()> {
    let stream = Device::emulator().stream()?;
    let tile = device::sort_tile_items(4, 4);
    let keys: Vec<u32> = (0..5 * tile as u32 - 100).map(|i| i.wrapping_mul(0x9e37_79b1) >> 12 << 7).collect();
    let mut expected: Vec<u32> = (0..keys.len() as u32).collect();
    let x = stream.buffer_from(&keys)?;
    let (mut out, mut values_out) = (stream.buffer_zeroed::<u32>(keys.len())?, stream.buffer_from(&expected)?);
    let order = Order::of::<u32, Greater>("sort_pairs_by", 0..32)?;
    let to = ((&mut out).into(), (&mut values_out).into());
    let kernels = <u32 as SortPairs<u32, ()>>::kernels();
    pairs_in_portions(kernels, Run::on(&stream), (x.as_slice(), None), to, order, 2 * tile + 1)?;
    expected.sort_by_key(|&value| std::cmp::Reverse(keys[value as usize]));
    assert!(values_out.to_vec()? == expected);
    assert!(out.to_vec()?.into_iter().eq(expected.iter().map(|&value| keys[value as usize])));
    Ok(())
}

/// What another thread writes between the launches of a sort does not send keys or values out of the output, wherever they were to go.
#[test]
fn keys_that_were_written_after_they_were_counted_stay_inside() -> Result<()> {
    let device = Device::auto()?;
    let order = Order::of::<u32, Less>("sort_keys", 0..8)?;
    let tile = device::sort_tile_items(4, 4);
    let cases = [2 * tile, 2 * tile - 7, tile + 2].into_iter().flat_map(|len| {
        [0, 5, 1 << 40, u64::MAX - 1].into_iter().flat_map(move |begins| [(len, begins, false), (len, begins, true)])
    });
    // With another second key, the pass does not only copy.
    for ((len, begins, with_values), second) in cases.flat_map(|case| [(case, 3), (case, 4)]) {
        let stream = device.stream()?;
        let mut around = stream.buffer_from(&vec![77u32; 2 * len])?;
        let mut values_around = stream.buffer_from(&vec![77u32; 2 * len])?;
        let run = Run::on(&stream);
        let mut keys = vec![3u32; len];
        keys[1] = second;
        let keys = stream.buffer_from(&keys)?;
        let passes = Passes::of::<u32, u32>(&run, len, SORT_PORTION, order);
        let part = run.part();
        let mut memory = run.memory(&[bytes_of::<u64>(passes.words())])?;
        let mut shared = passes.begin(Entry::named::<()>(), &part, keys.as_slice(), &mut memory.parts())?;
        let mut counts = vec![begins; passes.parts()[0]];
        // The one key of digit 4 goes where no key of digit 3 goes.
        counts[4] = if begins == 0 { len as u64 - 1 } else { 0 };
        shared.counts.copy_from(&counts)?;
        let mut out = around.slice_mut(len / 2..len / 2 + len)?;
        let mut values_out = values_around.slice_mut(len / 2..len / 2 + len)?;
        let launched = passes.each(|step| {
            let Common { counts, states, tickets } = &mut shared;
            let dims = passes.dims(step.pass.tiles);
            if with_values {
                let (out, values_out) = (&mut out, &mut values_out);
                device::sort_sweep_pairs::<u32, u32>::launch(
                    &stream, dims, &keys, out, &keys, values_out, counts, states, tickets, step.pass,
                )
            } else {
                device::sort_sweep::<u32>::launch(&stream, dims, &keys, &mut out, counts, states, tickets, step.pass)
            }
        });
        let launched = launched.and_then(|()| stream.synchronize());
        if begins == 0 {
            launched?;
        } else {
            let Err(Error::Fault(fault)) = &launched else { panic!("{begins}: {launched:?}") };
            let crate::Diagnosis::Raised(raised) = &fault.diagnosis else { panic!("{fault}") };
            assert_eq!(raised.kind, crate::simt::FaultKind::BadShape, "{fault}");
        }
        for found in [around.to_vec()?, values_around.to_vec()?] {
            assert!(found[..len / 2].iter().chain(&found[len / 2 + len..]).all(|&key| key == 77));
        }
    }
    Ok(())
}

/// A pass of which only the first tile runs has not written the second one, and the emulator knows it for large values, too.
#[test]
#[cfg(debug_assertions)]
fn what_a_pass_did_not_write_does_not_count_as_written() -> Result<()> {
    let stream = Device::emulator().stream()?;
    let order = Order::of::<u32, Less>("sort_pairs", 0..8)?;
    let run = Run::on(&stream);
    let tile = device::sort_tile_items(4, 20);
    let keys = stream.buffer_from(&vec![3u32; 2 * tile])?;
    let values = stream.buffer_from(&vec![[1u32; 5]; 2 * tile])?;
    let (mut out, mut values_out) = (stream.buffer_uninit::<u32>(2 * tile)?, stream.buffer_uninit(2 * tile)?);
    let passes = Passes::of::<u32, [u32; 5]>(&run, 2 * tile, SORT_PORTION, order);
    let part = run.part();
    let mut memory = run.memory(&[bytes_of::<u64>(passes.words())])?;
    let mut shared = passes.begin(Entry::named::<()>(), &part, keys.as_slice(), &mut memory.parts())?;
    passes.each(|step| {
        let Common { counts, states, tickets } = &mut shared;
        let (out, values_out) = (&mut out, &mut values_out);
        device::sort_sweep_pairs::<u32, [u32; 5]>::launch(
            &stream,
            passes.dims(1),
            &keys,
            out,
            &values,
            values_out,
            counts,
            states,
            tickets,
            step.pass,
        )
    })?;
    stream.synchronize()?;
    let mut written = vec![[0; 5]; tile];
    values_out.slice(..tile)?.copy_to(&mut written)?;
    assert!(written.iter().all(|&value| value == [1; 5]));
    for rest in [out.slice(tile..)?, values_out.slice(tile..)?.reinterpret()?] {
        let error = stream.buffer_uninit(rest.len()).and_then(|mut to| {
            transform(&stream, rest, Identity, &mut to)?;
            stream.synchronize()
        });
        let Err(Error::Fault(fault)) = &error else { panic!("{error:?}") };
        assert!(matches!(fault.diagnosis, crate::Diagnosis::Unwritten { .. }), "{fault}");
    }
    Ok(())
}

/// What one block with this ticket writes, of two tiles of equal keys into a buffer of 77. All rows of states say that they count their
/// tile, which has none of a digit.
fn of_ticket(ticket: u32) -> Result<[Vec<u32>; 2]> {
    let stream = Device::auto()?.stream()?;
    let order = Order::of::<u32, Less>("sort_keys", 0..8)?;
    let run = Run::on(&stream);
    let tile = device::sort_tile_items(4, 0);
    let keys = stream.buffer_from(&vec![3u32; 2 * tile])?;
    let mut out = stream.buffer_from(&vec![77u32; 2 * tile])?;
    let passes = Passes::of::<u32, ()>(&run, 2 * tile, SORT_PORTION, order);
    let part = run.part();
    let mut memory = run.memory(&[bytes_of::<u64>(passes.words())])?;
    let mut shared = passes.begin(Entry::named::<()>(), &part, keys.as_slice(), &mut memory.parts())?;
    let mut tickets = vec![0; shared.tickets.len()];
    tickets[0] = ticket;
    shared.tickets.copy_from(&tickets)?;
    shared.states.copy_from(&vec![1 << 30; shared.states.len()])?;
    passes.each(|step| {
        device::sort_sweep::<u32>::launch(
            &stream,
            passes.dims(1),
            &keys,
            &mut out,
            &mut shared.counts,
            &mut shared.states,
            &mut shared.tickets,
            step.pass,
        )
    })?;
    stream.synchronize()?;
    let mut first = out.to_vec()?;
    let second = first.split_off(tile);
    Ok([first, second])
}

/// Whatever stands before the first tile's state, the walk over the tiles before ends there.
#[test]
fn a_tile_counts_no_more_tiles_before_it_than_there_are() -> Result<()> {
    let [first, second] = of_ticket(1)?;
    assert!(first.iter().all(|&key| key == 3) && second.iter().all(|&key| key == 77));
    Ok(())
}

#[test]
fn a_ticket_beyond_the_tiles_is_a_fault() {
    // The lower 23 bits count tiles, whether or not the upper ones say that all keys have one digit.
    for ticket in [2, 3, i32::MAX as u32, (1 << 31) + 2, (256 | 3) << 23 | 2, u32::MAX - 1, u32::MAX] {
        let result = of_ticket(ticket);
        assert!(matches!(result, Err(Error::Fault(_))), "{ticket}: {result:?}");
    }
}
