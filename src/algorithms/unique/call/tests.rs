use super::*;
use crate::input::Span;
use crate::simt::FaultKind;
use crate::{Device, Diagnosis, Error, Stream};

/// The kind of the fault that a launch ends with, and its numbers.
#[track_caller]
fn raised(stream: &Stream, launched: Result<()>) -> (FaultKind, [u64; 2]) {
    let launched = launched.and_then(|()| stream.synchronize());
    let Err(Error::Fault(fault)) = &launched else { panic!("{launched:?}") };
    let Diagnosis::Raised(raised) = &fault.diagnosis else { panic!("{fault}") };
    (raised.kind, raised.args)
}

/// A chain that says what is not so sends no item out of the output, wherever that is.
#[test]
fn what_a_chain_says_is_no_way_out_of_the_output() -> Result<()> {
    // Where the memory says which tile comes next, so that the first of all never comes.
    let device = Device::emulator();
    // All warps have whole parts.
    let StagedTiles { tile, batches, .. } = StagedTiles::new::<Span<u32>>(4, 20_000, 64);
    let len = 20_000usize.next_multiple_of(tile);
    let (blocks, of_warp) = (len / tile, tile / (device::STAGE_THREADS / 32));
    for before in [len as u64, 1 << 40, u64::MAX, u64::MAX - 30_000] {
        let stream = device.stream()?;
        let keys = stream.buffer_from(&(0..len as u32).collect::<Vec<u32>>())?;
        let words = crate::grid::Chain::<u64>::words(blocks);
        // All values of a launch with the number 7 are there, in two words each.
        let halves = [before as u32, (before >> 32) as u32];
        let values = (0..words).map(|word| 7 << 32 | if word == 0 { 1 } else { halves[(word - 1) % 2] as u64 });
        let mut chain = stream.buffer_from(&values.collect::<Vec<u64>>())?;
        let (mut out, mut count) = (stream.buffer_zeroed::<u32>(len)?, stream.buffer_zeroed::<u64>(1)?);
        let mut none = stream.buffer_zeroed::<u8>(0)?;
        let launched = device::unique_tiles::<Span<u32>, Constant<u8>, false>::launch(
            &stream,
            crate::Dims::new(blocks as u32, device::STAGE_THREADS as u32),
            &keys,
            constant(0u8, len),
            &mut out,
            &mut none,
            &mut count,
            &mut chain,
            7,
            batches,
        );
        let (kind, [place, limit]) = raised(&stream, launched);
        assert_eq!((kind, limit), (FaultKind::OutOfBounds, len as u64), "{before}");
        // The kernel looks before a warp writes, and names the place of its last item. In its stead the emulator would name the first.
        let is_last = (1..=blocks as u64)
            .map(|tiles| place.wrapping_add(1).wrapping_sub(before.wrapping_mul(tiles)))
            .any(|items| items > 0 && items.is_multiple_of(of_warp as u64));
        assert!(place == u64::MAX || is_last, "{before}: {place}");
    }
    Ok(())
}

/// Chains that are none of the grid, and fewer values than keys.
#[test]
fn shapes_that_do_not_fit_are_a_fault() -> Result<()> {
    let device = Device::auto()?;
    let len = 20_000;
    let tiles = StagedTiles::new::<Span<u32>>(device::unique_bytes::<Span<u32>, Span<u32>, true>(), len, 64);
    let blocks = tiles.len.div_ceil(tiles.tile);
    assert!(blocks > 2);
    let items: Vec<u32> = (0..len as u32).collect();
    let launched = |words: usize, values: usize| {
        let stream = device.stream()?;
        let (keys, values) = (stream.buffer_from(&items)?, stream.buffer_from(&items[..values])?);
        let [mut out, mut values_out] = [stream.buffer_zeroed::<u32>(len)?, stream.buffer_zeroed::<u32>(len)?];
        let (mut count, mut chain) = (stream.buffer_zeroed::<u64>(1)?, stream.buffer_zeroed::<u64>(words)?);
        let launched = device::unique_tiles::<Span<u32>, Span<u32>, true>::launch(
            &stream,
            crate::Dims::new(blocks as u32, device::STAGE_THREADS as u32),
            &keys,
            &values,
            &mut out,
            &mut values_out,
            &mut count,
            &mut chain,
            1,
            tiles.batches,
        );
        Ok::<_, Error>((launched, stream, [out, values_out]))
    };
    let words = crate::grid::Chain::<u64>::words(blocks);
    let (fits, _, outputs) = launched(words, len)?;
    fits?;
    for out in outputs {
        assert!(out.to_vec()? == items);
    }
    for (words, values) in [(0, len), (1, len), (blocks, len), (words - 1, len), (words, len - 1), (words, 0)] {
        let (result, stream, _) = launched(words, values)?;
        assert_eq!(raised(&stream, result).0, FaultKind::BadShape, "{words} words, {values} values");
    }
    Ok(())
}

/// A tile has no more batches than its block has memory for, whatever the launch says.
#[test]
fn more_batches_than_a_block_has_memory_for_are_not_read() -> Result<()> {
    let stream = Device::auto()?.stream()?;
    // Runs of three keys. The values count the items.
    let len = 100_000;
    let keys = stream.buffer_from(&(0..len as u32).map(|i| i / 3).collect::<Vec<u32>>())?;
    let values = stream.buffer_from(&(0..len as u32).collect::<Vec<u32>>())?;
    let untouched = vec![u32::MAX; len];
    // How many items of one tile an output has: multiples of `step`, in order.
    let written = |found: &[u32], step: u32| {
        let written = found.iter().position(|&item| item == u32::MAX).expect("one tile of several");
        assert!(written > 1000 && (0..written as u32).all(|i| found[i as usize] == i * step), "{written} items");
        assert!(found[written..].iter().all(|&item| item == u32::MAX));
        written as u64
    };
    for batches in [1000, u32::MAX] {
        let (mut out, mut none) = (stream.buffer_from(&untouched)?, stream.buffer_zeroed::<u8>(0)?);
        let (mut count, mut chain) = (stream.buffer_zeroed::<u64>(1)?, stream.buffer_zeroed::<u64>(0)?);
        device::unique_tiles::<Span<u32>, Constant<u8>, false>::launch(
            &stream,
            (1, device::STAGE_THREADS as u32),
            &keys,
            constant(0u8, len),
            &mut out,
            &mut none,
            &mut count,
            &mut chain,
            1,
            batches,
        )?;
        assert_eq!(count.to_vec()?, [written(&out.to_vec()?, 1)]);

        let [mut out, mut values_out] = [stream.buffer_from(&untouched)?, stream.buffer_from(&untouched)?];
        device::unique_tiles::<Span<u32>, Span<u32>, true>::launch(
            &stream,
            (1, device::STAGE_THREADS as u32),
            &keys,
            &values,
            &mut out,
            &mut values_out,
            &mut count,
            &mut chain,
            1,
            batches,
        )?;
        let kept = written(&out.to_vec()?, 1);
        assert_eq!((count.to_vec()?, written(&values_out.to_vec()?, 3)), (vec![kept], kept));
    }
    Ok(())
}
