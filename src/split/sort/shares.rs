//! The share of each device: a piece of the sorted run of each device, one copy for each piece, and their merge.

use std::ops::Range;

use super::cuts::cuts;
use crate::algorithms::Gather;
use crate::functor::Comparator;
use crate::split::host::Call;
use crate::{Buffer, BufferSlice, BufferSliceMut, Device, Element, Error, Result, SplitBuffer, Stream, algorithms};

/// The sorted items of each device: one run for each device.
pub(super) struct Runs<'a, T> {
    streams: &'a [Stream],
    pub(super) runs: Vec<Buffer<T>>,
}

impl<'a, T: Element> Runs<'a, T> {
    /// Allocates room for the items of each device.
    pub(super) fn like(x: &'a SplitBuffer<T>) -> Result<Self> {
        let streams = x.split().streams();
        let mut runs = Vec::with_capacity(streams.len());
        for (device, stream) in streams.iter().enumerate() {
            runs.push(stream.buffer_uninit(x.range(device).len())?);
        }
        Ok(Self { streams, runs })
    }

    /// Returns the pieces of each device of `out`: a range of each run. Together they have exactly as many items as the device's part of
    /// `out` holds, for any distribution of the items.
    pub(super) fn pieces<C, G>(&self, call: Call, out: &SplitBuffer<T>, order: C) -> Result<Vec<Vec<Range<usize>>>>
    where
        T: Gather<u32, T, G>,
        C: Comparator<T>,
    {
        let mut lens = Vec::with_capacity(self.runs.len());
        for run in &self.runs {
            lens.push(run.len());
        }
        let ends = cuts(call, &lens, &out.bounds()[1..], |a, b| order.before(a, b), |places| self.look(places))?;
        Ok(between(lens.len(), ends))
    }

    /// Returns the items at given places of each run. All devices collect their items at the same time.
    fn look<G>(&self, places: &[Vec<usize>]) -> Result<Vec<Vec<T>>>
    where
        T: Gather<u32, T, G>,
    {
        let mut found = Vec::with_capacity(places.len());
        for (run, places) in places.iter().enumerate() {
            let stream = &self.streams[run];
            let mut items = stream.buffer_uninit(places.len())?;
            let mut rest = items.as_mut_slice();
            for (first, indices) in in_32_bits(places) {
                let (these, after) = rest.split_at(indices.len())?;
                algorithms::gather(stream, self.runs[run].slice(first..)?, &stream.buffer_from(&indices)?, these)?;
                rest = after;
            }
            found.push(items);
        }
        let mut items = Vec::with_capacity(found.len());
        for of_run in found {
            items.push(of_run.to_vec()?);
        }
        Ok(items)
    }

    /// Returns the piece of the run on the stream's own device, or `None` if the piece has no items.
    pub(super) fn own(&self, stream: &Stream, pieces: &[Range<usize>]) -> Result<Option<Own<'_, T>>> {
        let Some(run) = of_device(self.streams, stream.device()) else { return Ok(None) };
        let (piece, range) = (pieces[run].clone(), places(pieces, run));
        Ok(if piece.is_empty() { None } else { Some(Own { run, range, items: self.runs[run].slice(piece)? }) })
    }

    /// Copies the pieces of all runs to `target`, one after the other, except the piece of the run `without`. Each device begins with
    /// another run, so that they do not all read from one device.
    pub(super) fn collect(
        &self,
        stream: &Stream,
        (device, without): (usize, Option<usize>),
        pieces: &[Range<usize>],
        target: &mut BufferSliceMut<'_, T>,
    ) -> Result<()> {
        for i in 0..pieces.len() {
            let run = (device + i) % pieces.len();
            let piece = pieces[run].clone();
            if !piece.is_empty() && without != Some(run) {
                let mut target = BufferSliceMut::from(&mut *target).into_slice(places(pieces, run))?;
                target.copy_from_peer(stream, self.runs[run].slice(piece)?)?;
            }
        }
        Ok(())
    }
}

/// Returns the pieces between each cut of the runs and the next.
fn between(runs: usize, cuts: Vec<Vec<usize>>) -> Vec<Vec<Range<usize>>> {
    let mut from = vec![0; runs];
    let pieces = cuts.into_iter().map(|to| {
        let pieces = from.iter().zip(&to).map(|(&from, &to)| from..to).collect();
        from = to;
        pieces
    });
    pieces.collect()
}

/// Returns ascending places as indices of 32 bits, each after a first place.
fn in_32_bits(places: &[usize]) -> Vec<(usize, Vec<u32>)> {
    let near = places.chunk_by(|a, b| a >> 32 == b >> 32);
    near.map(|near| (near[0] >> 32 << 32, near.iter().map(|&place| place as u32).collect())).collect()
}

/// Returns the first stream that is on a device.
fn of_device(streams: &[Stream], device: &Device) -> Option<usize> {
    streams.iter().position(|stream| stream.device().same_as(device))
}

/// Returns the range of the piece of a run, where all pieces are one after the other.
fn places(pieces: &[Range<usize>], run: usize) -> Range<usize> {
    let start = pieces[..run].iter().map(|piece| piece.len()).sum();
    start..start + pieces[run].len()
}

/// A piece of a device's own run.
pub(super) struct Own<'a, T> {
    pub(super) run: usize,
    /// The range of the piece among all pieces of the device.
    pub(super) range: Range<usize>,
    pub(super) items: BufferSlice<'a, T>,
}

/// Returns an error if the input and the result have different lengths.
pub(super) fn check_places<T: Element>(call: &'static str, x: &SplitBuffer<T>, out: &SplitBuffer<T>) -> Result<()> {
    if x.len() == out.len() {
        return Ok(());
    }
    Err(Error::Split { call, reason: format!("there are not as many places as items: {x:?} and {out:?}") })
}

/// Returns an error if a stream captures that has items, or places of the result.
pub(super) fn check_streams<T: Element>(call: &'static str, x: &SplitBuffer<T>, out: &SplitBuffer<T>) -> Result<()> {
    let advice = "a graph is of one device: sort before the capture, or after it";
    crate::split::not_captured(call, advice, filled_streams(x).chain(filled_streams(out)))
}

fn filled_streams<T: Element>(x: &SplitBuffer<T>) -> impl Iterator<Item = &Stream> {
    let streams = x.split().streams().iter().enumerate();
    streams.filter(|(device, _)| !x.range(*device).is_empty()).map(|(_, stream)| stream)
}

/// If one device has all items and all places of the result, returns its numbers in the two splits.
pub(super) fn only_device<T: Element, U: Element>(x: &SplitBuffer<T>, out: &SplitBuffer<U>) -> Option<(usize, usize)> {
    let (from, to) = (filled(x.bounds())?, filled(out.bounds())?);
    let same = x.split().streams()[from].device().same_as(out.split().streams()[to].device());
    same.then_some((from, to))
}

/// Returns the only device that has items.
fn filled(bounds: &[usize]) -> Option<usize> {
    let mut filled = (0..bounds.len() - 1).filter(|&device| bounds[device] < bounds[device + 1]);
    filled.next().filter(|_| filled.next().is_none())
}

/// The passes of merges by which a device makes one run from its pieces.
pub(super) struct Passes {
    /// The ends of the pieces that have items.
    ends: Vec<usize>,
    /// The number of passes of merges two by two.
    count: usize,
    /// Whether a second sort takes less time.
    pub(super) sort_again: bool,
}

impl Passes {
    /// Returns the passes for these pieces, if a second sort takes as long as `most` passes of merges.
    pub(super) fn of(pieces: &[Range<usize>], most: usize) -> Self {
        let mut ends = Vec::new();
        for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
            ends.push(ends.last().unwrap_or(&0) + piece.len());
        }
        let count = ends.len().max(1).next_power_of_two().ilog2() as usize;
        Self { ends, count, sort_again: count > most }
    }

    /// Returns whether the pieces already are one run.
    pub(super) fn is_done(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of items of all pieces.
    pub(super) fn items(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns the number of items of the copy. Passes write the copy and the result alternately.
    pub(super) fn copied(&self) -> usize {
        if self.is_done() { 0 } else { self.items() }
    }

    /// Returns whether the pieces start in the copy, so that the last pass writes the result.
    pub(super) fn begin_in_copy(&self) -> bool {
        self.sort_again || !self.count.is_multiple_of(2)
    }

    /// Calls `merge` for each merge. It passes whether the inputs are in the copy, and two adjacent ranges. The second range may be empty.
    pub(super) fn each(&self, mut merge: impl FnMut(bool, Range<usize>, Range<usize>) -> Result<()>) -> Result<()> {
        let (mut ends, mut in_copy) = (self.ends.clone(), self.begin_in_copy());
        while ends.len() > 1 {
            let mut start = 0;
            let mut merged = Vec::new();
            for pair in ends.chunks(2) {
                let (middle, end) = (pair[0], pair[pair.len() - 1]);
                merge(in_copy, start..middle, middle..end)?;
                merged.push(end);
                start = end;
            }
            (ends, in_copy) = (merged, !in_copy);
        }
        Ok(())
    }
}

/// The slices that a merge reads and writes.
pub(super) struct Ends<'v, T> {
    pub(super) a: BufferSlice<'v, T>,
    pub(super) b: BufferSlice<'v, T>,
    pub(super) to: BufferSliceMut<'v, T>,
}

impl<'v, T: Element> Ends<'v, T> {
    pub(super) fn of(
        copy: &'v mut BufferSliceMut<'_, T>,
        out: &'v mut BufferSliceMut<'_, T>,
        in_copy: bool,
        a: Range<usize>,
        b: Range<usize>,
    ) -> Result<Self> {
        let (from, to): (_, BufferSliceMut<'v, T>) =
            if in_copy { (copy.as_slice(), out.into()) } else { (out.as_slice(), copy.into()) };
        let to = to.into_slice(a.start..b.end)?;
        Ok(Self { a: from.slice(a)?, b: from.slice(b)?, to })
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;

    #[test]
    fn merges_make_one_run_in_the_result() -> Result<()> {
        for runs in 0..20usize {
            // Some pieces are empty.
            let pieces: Vec<Range<usize>> = (0..runs).map(|run| 10 * run..10 * run + run * 5 % 7).collect();
            let lens: Vec<usize> = pieces.iter().map(|piece| piece.len()).filter(|&len| len > 0).collect();
            let passes = Passes::of(&pieces, 5);
            let mut bounds: Vec<Range<usize>> = Vec::new();
            for len in &lens {
                let start = bounds.last().map_or(0, |last| last.end);
                bounds.push(start..start + len);
            }
            let (mut last, mut merged, mut count) = (passes.begin_in_copy(), Vec::new(), 0);
            passes.each(|in_copy, a, b| {
                if in_copy != last {
                    (last, bounds, count) = (in_copy, std::mem::take(&mut merged), count + 1);
                }
                assert!(bounds.contains(&a) && (b.is_empty() || bounds.contains(&b)) && a.end == b.start);
                merged.push(a.start..b.end);
                Ok(())
            })?;
            if lens.len() > 1 {
                assert_eq!((merged.as_slice(), last), (slice::from_ref(&(0..passes.items())), true), "{runs}");
                assert_eq!(count + 1, lens.len().next_power_of_two().ilog2());
            } else {
                assert!(passes.is_done() && !passes.begin_in_copy());
            }
            assert_eq!(passes.items(), lens.iter().sum::<usize>());
        }
        assert!(Passes::of(&[0..1, 0..1, 0..1], 1).sort_again && !Passes::of(&[0..1, 0..1], 1).sort_again);
        Ok(())
    }
}
