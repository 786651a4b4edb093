//! The exchange between devices before a product. A device's *halo* is the items of the vector that its rows read and that other devices
//! have.
//!
//! Each device first collects the items that other devices read in an *outbox*. The other devices copy their pieces from the outbox. The
//! uses of a buffer are ordered as uses of the whole buffer. If devices copied from the vector itself, the next write of the vector would
//! wait for all copies. Only the next product writes the outbox.
//!
//! A product takes outboxes and inputs, and gives them back when all of its work is enqueued. Its work uses them before the work of the
//! next product, because buffers order their uses, also if another thread enqueues the next product.

use std::any::Any;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::algorithms::Gather;
use crate::{Buffer, BufferSlice, Element, Result, SplitBuffer, Stream, algorithms};

/// The items that each device sends to other devices and receives from them.
pub(super) struct Exchange {
    outboxes: Vec<Outbox>,
    inputs: Vec<Input>,
    /// The [`Memory`] of enqueued products, for later products. Items may have any type.
    kept: Mutex<Vec<Box<dyn Any + Send + Sync>>>,
}

/// The items of a device that other devices read: a piece for each of them.
struct Outbox {
    len: usize,
    places: Vec<Places>,
}

/// Some items of a device, counted from the item `first`. Indices have 32 bits, and a device may have more items than these can number.
struct Places {
    first: usize,
    at: Buffer<u32>,
}

/// The items that the rows of a device read: the device's own items, and the pieces after them. Without pieces, it is the device's part of
/// the vector itself, and not a copy.
struct Input {
    len: usize,
    pieces: Vec<Piece>,
}

/// Items of an outbox that a device receives.
struct Piece {
    owner: usize,
    /// The range of the items in the outbox.
    from: Range<usize>,
    /// The range of the items in the input.
    to: Range<usize>,
}

/// An outbox and an input for each device. They are empty if a product does not need them.
pub(super) struct Memory<T> {
    outboxes: Vec<Buffer<T>>,
    inputs: Vec<Buffer<T>>,
}

impl Exchange {
    /// Plans the exchange for a vector with these bounds. `halos` has the items of other devices that each device reads, in ascending
    /// order.
    pub(super) fn new(streams: &[Stream], bounds: &[usize], halos: &[Vec<usize>]) -> Result<Self> {
        let (places, inputs) = plan(bounds, halos);
        let outboxes = places.into_iter().zip(streams).map(|(places, stream)| Outbox::new(stream, &places));
        Ok(Self { outboxes: outboxes.collect::<Result<_>>()?, inputs, kept: Mutex::default() })
    }

    /// Returns the streams of the devices that send or receive items.
    pub(super) fn streams_of<'s>(&self, streams: &'s [Stream]) -> impl Iterator<Item = &'s Stream> {
        let devices = self.outboxes.iter().zip(&self.inputs).zip(streams);
        devices.filter(|((sent, read), _)| sent.len > 0 || !read.pieces.is_empty()).map(|(_, stream)| stream)
    }

    /// Returns memory for one product: memory that an earlier product has given back, or new memory.
    pub(super) fn memory<T: Element>(&self, streams: &[Stream]) -> Result<Memory<T>> {
        let kept = {
            let mut kept = self.kept();
            let found = kept.iter().position(|memory| memory.is::<Memory<T>>());
            found.map(|at| kept.swap_remove(at))
        };
        if let Some(Ok(memory)) = kept.map(|kept| kept.downcast()) {
            return Ok(*memory);
        }
        let buffers = |lens: &mut dyn Iterator<Item = usize>| -> Result<Vec<Buffer<T>>> {
            lens.zip(streams).map(|(len, stream)| stream.buffer_uninit(len)).collect()
        };
        let outboxes = buffers(&mut self.outboxes.iter().map(|outbox| outbox.len))?;
        let inputs = buffers(&mut self.inputs.iter().map(|input| if input.pieces.is_empty() { 0 } else { input.len }))?;
        Ok(Memory { outboxes, inputs })
    }

    /// Keeps memory for the next product. All work that uses it must be enqueued.
    pub(super) fn keep<T: Element>(&self, memory: Memory<T>) {
        self.kept().push(Box::new(memory));
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Box<dyn Any + Send + Sync>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Collects the items that other devices read, on each device.
    pub(super) fn post<T, G>(&self, streams: &[Stream], x: &SplitBuffer<T>, memory: &mut Memory<T>) -> Result<()>
    where
        T: Element + Gather<u32, T, G>,
    {
        for (device, outbox) in self.outboxes.iter().enumerate() {
            let mut rest = memory.outboxes[device].as_mut_slice();
            for Places { first, at } in &outbox.places {
                let (these, after) = rest.split_at(at.len())?;
                algorithms::gather(&streams[device], x.part(device).slice(*first..)?, at, these)?;
                rest = after;
            }
        }
        Ok(())
    }

    /// Returns the items that the rows of a device read. All devices must have [posted](Self::post) before.
    pub(super) fn input<'m, T: Element>(
        &self,
        device: usize,
        stream: &Stream,
        own: BufferSlice<'m, T>,
        memory: &'m mut Memory<T>,
    ) -> Result<BufferSlice<'m, T>> {
        let pieces = &self.inputs[device].pieces;
        if pieces.is_empty() {
            return Ok(own);
        }
        let Memory { outboxes, inputs } = memory;
        let input = &mut inputs[device];
        if !own.is_empty() {
            input.slice_mut(..own.len())?.copy_from_device(stream, own)?;
        }
        for Piece { owner, from, to } in pieces {
            input.slice_mut(to.clone())?.copy_from_peer(stream, outboxes[*owner].slice(from.clone())?)?;
        }
        Ok(input.as_slice())
    }
}

impl Outbox {
    fn new(stream: &Stream, places: &[usize]) -> Result<Self> {
        let near = places.chunk_by(|a, b| a >> 32 == b >> 32).map(|near| {
            let first = near[0] >> 32 << 32;
            let at: Vec<u32> = near.iter().map(|place| (place - first) as u32).collect();
            Ok(Places { first, at: stream.buffer_from(&at)? })
        });
        Ok(Self { len: places.len(), places: near.collect::<Result<_>>()? })
    }
}

/// Returns the items that each device posts, and the input of each device.
fn plan(bounds: &[usize], halos: &[Vec<usize>]) -> (Vec<Vec<usize>>, Vec<Input>) {
    let mut posted = vec![Vec::new(); halos.len()];
    let inputs = halos.iter().enumerate().map(|(device, halo)| {
        let own = bounds[device + 1] - bounds[device];
        let (mut pieces, mut start) = (Vec::new(), 0);
        for (owner, bounds) in bounds.windows(2).enumerate() {
            let end = halo.partition_point(|&item| item < bounds[1]);
            if start < end {
                let places: &mut Vec<usize> = &mut posted[owner];
                let from = places.len()..places.len() + end - start;
                places.extend(halo[start..end].iter().map(|item| item - bounds[0]));
                pieces.push(Piece { owner, from, to: own + start..own + end });
                start = end;
            }
        }
        // Each device begins with the owner after it, so that they do not all copy from one device.
        let after = pieces.iter().position(|piece| piece.owner > device).unwrap_or(0);
        pieces.rotate_left(after);
        Input { len: own + halo.len(), pieces }
    });
    let inputs = inputs.collect();
    (posted, inputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_gets_its_halo_in_order() {
        let bounds = [0, 3, 3, 8, 10];
        let halos = [vec![4, 7, 8], vec![0, 2, 3, 9], vec![], vec![0, 1, 5]];
        let (posted, inputs) = plan(&bounds, &halos);
        assert_eq!(posted, [vec![0, 2, 0, 1], vec![], vec![1, 4, 0, 2], vec![0, 1]]);
        for (device, (halo, input)) in halos.iter().zip(&inputs).enumerate() {
            let own = bounds[device]..bounds[device + 1];
            let mut found = own.clone().map(Some).chain(halo.iter().map(|_| None)).collect::<Vec<_>>();
            assert_eq!(found.len(), input.len);
            for piece in &input.pieces {
                let items = posted[piece.owner][piece.from.clone()].iter().map(|place| bounds[piece.owner] + place);
                for (to, item) in piece.to.clone().zip(items) {
                    assert_eq!(found[to].replace(item), None, "{device}");
                }
            }
            assert!(found.into_iter().eq(own.chain(halo.iter().copied()).map(Some)), "{device}");
        }
        let owners = |device: usize| inputs[device].pieces.iter().map(|piece| piece.owner).collect::<Vec<_>>();
        assert_eq!([owners(0), owners(1), owners(2), owners(3)], [vec![2, 3], vec![2, 3, 0], vec![], vec![0, 2]]);
    }
}
