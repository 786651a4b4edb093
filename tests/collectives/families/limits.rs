//! Limits: if a collective or a view cannot serve a call, there is a fault, and otherwise there is none.

use super::{Compose, Map};
use kernel_primitives::grid::Chain;
use kernel_primitives::input::Zip;
use kernel_primitives::output::SpanMut;
use kernel_primitives::prelude::*;
use kernel_primitives::view::{Parity, Phases, Rows, SplitBarriers};

#[kernel]
pub fn columns_of_64_threads(
    cx: Block,
    mut out: GlobalMut<u32, PerThread>,
    mut shared: Shared<ColumnStorage<u32, 64>>,
) {
    let total = block_y_reduce(cx, &mut shared, 1, Add);
    for i in cx.items(out.len()) {
        out.set(i, total);
    }
}

#[kernel]
pub fn sum_of_64_threads(cx: Block, mut out: GlobalMut<u32, PerThread>, mut shared: Shared<ReduceStorage<u32, 64>>) {
    let total = block_reduce(cx, &mut shared, 1, Add);
    for i in cx.items(out.len()) {
        out.set(i, total);
    }
}

#[kernel]
pub fn scan_of_64_threads(cx: Block, mut out: GlobalMut<u32, PerThread>, mut shared: Shared<ScanStorage<u32, 64>>) {
    let ([sum], _) = block_inclusive_scan(cx, &mut shared, &[1], Add);
    for i in cx.items(out.len()) {
        out.set(i, sum);
    }
}

#[kernel]
pub fn scan_after_of_64_threads(
    cx: Block,
    mut out: GlobalMut<u32, PerThread>,
    mut shared: Shared<ScanStorage<u32, 64>>,
) {
    let [sum] = block_inclusive_scan_after(cx, &mut shared, &[1], Add, |_| 0);
    for i in cx.items(out.len()) {
        out.set(i, sum);
    }
}

#[kernel]
pub fn broadcast_from(
    cx: Block,
    source: u32,
    mut out: GlobalMut<u32, PerThread>,
    mut shared: Shared<NeighbourStorage<u32>>,
) {
    let value = block_broadcast(cx, &mut shared, 7 * cx.thread_rank(), source);
    for i in cx.items(out.len()) {
        out.set(i, value);
    }
}

#[kernel]
pub fn vectors_from(cx: Block, first: u64, stride: u64, x: Global<u32>, mut out: GlobalMut<u32, PerThread>) {
    let mut vectors = [[7; 4]; 2];
    x.read_vectors(first as usize, stride as usize, &mut vectors);
    for i in cx.items(out.len()) {
        out.set(i, vectors[0][0] + vectors[1][3]);
    }
}

#[kernel]
pub fn announce_tile(cx: Block, tile: u64, tiles: u64, chain: GlobalMut<u64, Atomic>) {
    Chain::new(cx, &chain, tiles as usize).announce(tile as usize, 1u64);
}

/// Each thread writes four numbers, if there is room.
#[kernel]
pub fn write_fours(cx: Block, mut out: Output<SpanMut<u32>>) {
    let first = cx.thread_rank() as usize * 4;
    let items = core::array::from_fn(|i| (first + i) as u32);
    // SAFETY: each thread has places of its own.
    unsafe { out.write_items::<4>(first, &items) };
}

/// Writes a pair for each place that both outputs have.
#[kernel]
pub fn write_pairs(cx: Block, mut out: Output<Zip<SpanMut<u32>, SpanMut<u64>>>) {
    for i in cx.items(out.len()) {
        // SAFETY: each thread has places of its own.
        unsafe { out.write(i.index(), (i.index() as u32 + 1, i.index() as u64 + 2)) };
    }
}

/// Says whether a row of this number of columns is empty: 1 for a row, and 2 for a row by warps.
#[kernel]
pub fn empty_rows(cx: Block, columns: u64, mut x: GlobalMut<u32, Rows<4>>, mut out: GlobalMut<u32, PerBlock>) {
    let columns = columns as usize;
    let mut empty = 0;
    for row in cx.rows(1) {
        // SAFETY: the number of columns is the launch's.
        empty += unsafe { x.row(row, columns) }.is_empty() as u32;
        // SAFETY: as above, and nothing is accessed.
        empty += 2 * unsafe { x.row_by_warps::<2>(row, columns) }.is_empty() as u32;
    }
    out.store(empty);
}

/// Exchanges the memory of two storages, one of which is too small for what the other is used for then.
#[kernel]
pub fn exchanged_storages(
    cx: Block,
    what: u32,
    mut out: GlobalMut<u32, PerBlock>,
    large: Shared<Phases<(ReduceStorage<u32>, [u32; 256])>>,
    wide: Shared<ReduceStorage<u64>>,
    small: Shared<ReduceStorage<u32>>,
    other: Shared<[u32; 256]>,
) {
    // All of them have one lifetime now.
    let (mut large, mut wide, mut small, mut other) = (large, wide, small, other);
    // What is written beyond the smaller memory is in this array.
    other.set(cx.thread_rank() as usize, 1);
    match what {
        0 => {
            core::mem::swap(large.phase::<ReduceStorage<u32>>(), &mut small);
            large.phase::<[u32; 256]>().set(200, 7);
        }
        1 => {
            *large.phase::<ReduceStorage<u32>>() = small;
            large.phase::<[u32; 256]>().set(200, 7);
        }
        2 => {
            core::mem::swap(wide.phase::<ReduceStorage<u32>>(), &mut small);
            let _ = block_reduce(cx, &mut wide, 1, Add);
        }
        3 => {
            // As many bytes, but aligned to less.
            core::mem::swap(large.phase::<[u32; 256]>(), &mut other);
            let _ = block_reduce(cx, large.phase::<ReduceStorage<u32>>(), 1, Add);
        }
        4 => {
            core::mem::swap(large.phase::<[u32; 256]>(), &mut other);
            let _ = large.as_mut_ptr();
        }
        _ => {
            // As many bytes as before, or more.
            core::mem::swap(wide.phase::<ReduceStorage<u32>>(), large.phase::<ReduceStorage<u32>>());
            large.phase::<[u32; 256]>().set(cx.thread_rank() as usize, 7);
            let _ = block_reduce(cx, &mut wide, 1, Add);
        }
    }
    out.store(other.get(cx.thread_rank() as usize));
}

/// Takes a word of one of two storages.
#[kernel]
pub fn word_of_storage(cx: Block, of_words: bool, offset: u32, bytes: Shared<[u8; 64]>, words: Shared<[u32; 16]>) {
    if cx.thread_rank() == 0 {
        let offset = offset as usize;
        let _ = if of_words { words.array::<u32>(offset, 1) } else { bytes.array::<u32>(offset, 1) };
    }
}

#[kernel]
pub fn begin_split_barrier(cx: Block, warps: u32, barriers: Shared<SplitBarriers<1>>) {
    if cx.thread_rank() == 0 {
        barriers.begin(0, warps);
    }
}

/// The first warp waits for the second warp, phase after phase. In one phase, a lane of the second warp faults before it arrives.
#[kernel]
pub fn wait_for_a_warp_that_faults(cx: Block, barriers: Shared<SplitBarriers<1>>) {
    if cx.thread_rank() == 0 {
        barriers.begin(0, 1);
    }
    cx.barrier();
    if cx.warp() > 0 {
        // If one lane arrives for all lanes, it is this one.
        if cx.lane() == 0 {
            cx.fault(7);
        }
        return barriers.arrive(0);
    }
    let mut parity = Parity::default();
    for _ in 0..u32::MAX {
        barriers.wait(0, parity);
        parity = parity.other();
    }
}

/// Computes every scan of items that warps have side by side: the inclusive scan, the exclusive scan from a first value, and the exclusive
/// scan after the total of all. Each item is computed from its place.
#[kernel(max_threads(1024))]
pub fn scans_of_rounds(
    cx: Block,
    mut inclusive: GlobalMut<Map<u64>>,
    mut exclusive: GlobalMut<Map<u64>>,
    mut after: GlobalMut<Map<u64>>,
    mut totals: GlobalMut<Map<u64>, PerThread>,
    mut shared: Shared<ScanStorage<Map<u64>>>,
) {
    const ROUNDS: usize = 3;
    let (warp, lane, lanes) = (cx.warp() as usize, cx.lane() as usize, cx.warp_lanes() as usize);
    let place = |round: usize, i: usize| warp * 32 * 2 * ROUNDS + (round * lanes + lane) * 2 + i;
    let item = |place: usize| Map { a: 2 * (place % 5) as u64 + 1, b: place as u64 };
    let items: [[_; 2]; ROUNDS] = core::array::from_fn(|round| core::array::from_fn(|i| item(place(round, i))));
    let first = Map { a: 3, b: 1 };
    let (to_each, total) = block_inclusive_scan_rounds(cx, &mut shared, &items, first, Compose);
    let (before_each, _) = block_exclusive_scan_rounds(cx, &mut shared, &items, first, Compose);
    let after_all = block_exclusive_scan_rounds_after(cx, &mut shared, &items, Compose, |total| total);
    for round in 0..ROUNDS {
        for i in 0..2 {
            // SAFETY: each thread has places of its own.
            unsafe {
                inclusive.write(place(round, i), to_each[round][i]);
                exclusive.write(place(round, i), before_each[round][i]);
                after.write(place(round, i), after_all[round][i]);
            }
        }
    }
    for i in cx.items(totals.len()) {
        totals.set(i, total);
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod tests {
    use kernel_primitives::functor::BinaryFn;
    use kernel_primitives::grid::Chain;
    use kernel_primitives::input::zip;
    use kernel_primitives::simt::{Fault, FaultKind};
    use kernel_primitives::{BufferSliceMut, Diagnosis, Error, Result, Stream};

    use crate::families::{Compose, Map, limits as kernels};
    use crate::support::{SHAPES, stream, threads};

    /// Returns the fault that a launch raises: at once in the emulator, and later on a GPU.
    #[track_caller]
    fn raised(stream: &Stream, launched: Result<()>) -> Fault {
        match launched.and_then(|()| stream.synchronize()) {
            Err(Error::Fault(fault)) => match fault.diagnosis {
                Diagnosis::Raised(fault) => fault,
                other => panic!("another fault: {other:?}"),
            },
            other => panic!("no fault: {other:?}"),
        }
    }

    #[test]
    fn a_block_of_more_threads_than_its_storage_is_for_is_a_fault() -> Result<()> {
        let stream = stream()?;
        type Launch = fn(&Stream, u32, BufferSliceMut<'_, u32>) -> Result<()>;
        type Expected = fn(u32, u32) -> u32;
        let collectives: [(&str, Launch, Expected); 4] = [
            ("columns", |stream, y, out| kernels::columns_of_64_threads::launch(stream, (1, (32, y)), out), |y, _| y),
            ("sum", |stream, y, out| kernels::sum_of_64_threads::launch(stream, (1, (32, y)), out), |y, _| 32 * y),
            ("scan", |stream, y, out| kernels::scan_of_64_threads::launch(stream, (1, (32, y)), out), |_, i| i + 1),
            (
                "after",
                |stream, y, out| kernels::scan_after_of_64_threads::launch(stream, (1, (32, y)), out),
                |_, i| i + 1,
            ),
        ];
        for (name, launch, expected) in collectives {
            for y in [1, 2] {
                let mut out = stream.buffer_zeroed::<u32>(32 * y as usize)?;
                launch(&stream, y, out.as_mut_slice())?;
                assert_eq!(out.to_vec()?, (0..32 * y).map(|i| expected(y, i)).collect::<Vec<_>>(), "{name}");
            }
            let mut out = stream.buffer_zeroed::<u32>(96)?;
            let fault = raised(&stream, launch(&stream, 3, out.as_mut_slice()));
            assert_eq!(fault, Fault { kind: FaultKind::BadShape, args: [96, 64] }, "{name}");
        }
        Ok(())
    }

    #[test]
    fn a_broadcast_from_outside_the_block_is_a_fault() -> Result<()> {
        let stream = stream()?;
        for threads in [1, 40, 64] {
            let mut out = stream.buffer_zeroed::<u32>(threads as usize)?;
            kernels::broadcast_from::launch(&stream, (1, threads), threads - 1, &mut out)?;
            assert_eq!(out.to_vec()?, vec![7 * (threads - 1); threads as usize]);
            for source in [threads, u32::MAX] {
                let fault = raised(&stream, kernels::broadcast_from::launch(&stream, (1, threads), source, &mut out));
                assert_eq!(fault, Fault { kind: FaultKind::OutOfBounds, args: [source as u64, threads as u64] });
            }
        }
        Ok(())
    }

    #[test]
    fn vectors_at_places_that_are_none_of_vectors_are_a_fault() -> Result<()> {
        let stream = stream()?;
        let x = stream.buffer_from(&(0..64u32).collect::<Vec<_>>())?;
        let mut out = stream.buffer_zeroed::<u32>(1)?;
        for (first, stride, expected) in [(0, 4, 7), (8, 32, 8 + 43), (60, 4, 60 + 7), (64, 8, 14)] {
            kernels::vectors_from::launch(&stream, (1, 1), first, stride, &x, &mut out)?;
            assert_eq!(out.to_vec()?, [expected], "{first} {stride}");
        }
        let reach = u32::MAX as u64 / 2;
        for (first, stride, len) in [(2, 4, 64), (0, 6, 64), (0, 4, 63), (0, reach + 1, 64), (0, 1 << 40, 64)] {
            let launched = kernels::vectors_from::launch(&stream, (1, 1), first, stride, x.slice(..len)?, &mut out);
            let fault = raised(&stream, launched);
            assert_eq!(fault, Fault { kind: FaultKind::BadShape, args: [stride, reach] }, "{first} {stride} {len}");
        }
        Ok(())
    }

    #[test]
    fn a_tile_that_its_chain_has_not_is_a_fault_although_there_is_memory() -> Result<()> {
        let stream = stream()?;
        let mut chain = stream.buffer_zeroed::<u64>(Chain::<u64>::words(100))?;
        kernels::announce_tile::launch(&stream, (1, 32), 6, 7, &mut chain)?;
        for tile in [7, 8, 1 << 40] {
            let fault = raised(&stream, kernels::announce_tile::launch(&stream, (1, 32), tile, 7, &mut chain));
            assert_eq!(fault, Fault { kind: FaultKind::OutOfBounds, args: [tile, 7] });
        }
        Ok(())
    }

    #[test]
    fn items_are_written_as_far_as_there_is_room_sanitize() -> Result<()> {
        let stream = stream()?;
        for len in [0, 1, 3, 4, 5, 127, 128, 129] {
            let mut buffer = stream.buffer_from(&[77u32; 140])?;
            kernels::write_fours::launch(&stream, (1, 32), &mut buffer.slice_mut(1..1 + len)?)?;
            let expected = (0..140).map(|i| if (1..1 + len.min(128)).contains(&i) { i as u32 - 1 } else { 77 });
            assert_eq!(buffer.to_vec()?, expected.collect::<Vec<_>>(), "{len}");
        }
        Ok(())
    }

    #[test]
    fn outputs_side_by_side_are_as_long_as_the_shorter_one() -> Result<()> {
        let stream = stream()?;
        for (one, two) in [(40, 50), (50, 40), (0, 50), (50, 0), (50, 50)] {
            let (mut a, mut b) = (stream.buffer_zeroed::<u32>(one)?, stream.buffer_zeroed::<u64>(two)?);
            kernels::write_pairs::launch(&stream, (1, 32), zip(&mut a, &mut b))?;
            let place = |i: usize, add: usize| if i < one.min(two) { i + add } else { 0 };
            assert!(a.to_vec()?.into_iter().eq((0..one).map(|i| place(i, 1) as u32)), "{one} and {two}");
            assert!(b.to_vec()?.into_iter().eq((0..two).map(|i| place(i, 2) as u64)), "{one} and {two}");
        }
        Ok(())
    }

    #[test]
    fn rows_without_columns_are_empty() -> Result<()> {
        let stream = stream()?;
        let mut x = stream.buffer_zeroed::<u32>(64)?;
        let mut out = stream.buffer_zeroed::<u32>(1)?;
        for (columns, expected) in [(0, 3), (1, 0), (64, 0)] {
            kernels::empty_rows::launch(&stream, (1, 64), columns, &mut x, &mut out)?;
            assert_eq!(out.to_vec()?, [expected], "{columns} columns");
        }
        Ok(())
    }

    #[test]
    fn memory_that_was_exchanged_for_less_is_a_fault() -> Result<()> {
        let stream = stream()?;
        let mut out = stream.buffer_zeroed::<u32>(1)?;
        for (what, args) in [(0, [1024, 512]), (1, [1024, 512]), (2, [1024, 512]), (3, [16, 4]), (4, [16, 4])] {
            let fault = raised(&stream, kernels::exchanged_storages::launch(&stream, (1, 64), what, &mut out));
            assert_eq!(fault, Fault { kind: FaultKind::BadShape, args }, "{what}");
        }
        kernels::exchanged_storages::launch(&stream, (1, 64), 5, &mut out)?;
        assert_eq!(out.to_vec()?, [1]);
        Ok(())
    }

    #[test]
    fn a_part_of_a_storage_that_is_not_aligned_is_a_fault_with_its_own_numbers() -> Result<()> {
        let stream = stream()?;
        kernels::word_of_storage::launch(&stream, (1, 32), true, 60)?;
        for (of_words, offset, args) in [(true, 62, [66, 64]), (true, 2, [2, 4]), (false, 0, [4, 1])] {
            let fault = raised(&stream, kernels::word_of_storage::launch(&stream, (1, 32), of_words, offset));
            assert_eq!(fault, Fault { kind: FaultKind::BadShape, args }, "{offset}");
        }
        Ok(())
    }

    #[test]
    fn a_split_barrier_is_for_some_warps_and_no_more_than_there_are() -> Result<()> {
        let stream = stream()?;
        let begun = |warps: u32, threads: u32| kernels::begin_split_barrier::launch(&stream, (1, threads), warps);
        for warps in [0, 3, u32::MAX] {
            let fault = raised(&stream, begun(warps, 64));
            assert_eq!(fault, Fault { kind: FaultKind::BadShape, args: [warps as u64, 2] });
        }
        // The block's last warp is not whole.
        for (warps, threads, whole) in [(1, 48, 64), (2, 97, 128)] {
            let fault = raised(&stream, begun(warps, threads));
            assert_eq!(fault, Fault { kind: FaultKind::BadShape, args: [threads as u64, whole] });
        }
        for warps in [1, 2] {
            kernels::begin_split_barrier::launch(&stream, (1, 64), warps)?;
        }
        stream.synchronize()
    }

    /// This holds even if one lane of a warp could learn of the fault before the others.
    #[test]
    fn a_warp_that_waits_at_a_split_barrier_ends_when_another_one_faults() -> Result<()> {
        let stream = stream()?;
        let fault = raised(&stream, kernels::wait_for_a_warp_that_faults::launch(&stream, (1, 64)));
        assert_eq!((fault.kind, fault.args[0]), (FaultKind::User, 7));
        Ok(())
    }

    #[test]
    fn rounds_of_items_are_scanned_in_blocks_of_any_shape_sanitize() -> Result<()> {
        let stream = stream()?;
        for shape in SHAPES {
            let count = threads(shape);
            let mut buffers = [6 * count, 6 * count, 6 * count, count].map(|len| stream.buffer_zeroed::<Map<u64>>(len));
            let [Ok(inclusive), Ok(exclusive), Ok(after), Ok(totals)] = &mut buffers else { panic!("no memory") };
            kernels::scans_of_rounds::launch(
                &stream,
                (1, shape),
                &mut *inclusive,
                &mut *exclusive,
                &mut *after,
                &mut *totals,
            )?;
            let items: Vec<_> = (0..6 * count as u64).map(|place| Map { a: 2 * (place % 5) + 1, b: place }).collect();
            let total = items.iter().copied().reduce(|a, b| Compose.apply(a, b)).expect("a thread");
            let scanned = |first: Map<u64>| {
                let mut sum = first;
                let after = items.iter().map(|&item| {
                    sum = Compose.apply(sum, item);
                    sum
                });
                std::iter::once(first).chain(after).collect::<Vec<_>>()
            };
            let from = scanned(Map { a: 3, b: 1 });
            assert!(inclusive.to_vec()? == from[1..], "{shape:?}");
            assert!(exclusive.to_vec()? == from[..items.len()], "{shape:?}");
            assert!(after.to_vec()? == scanned(total)[..items.len()], "{shape:?}");
            assert!(totals.to_vec()? == vec![total; count], "{shape:?}");
        }
        Ok(())
    }
}
