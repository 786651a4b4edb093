//! NCCL for the GPUs of one process: one thread enqueues for all of them.

use std::sync::{Arc, Mutex, PoisonError};

use primitives_gpu::Element;

use super::nccl::{address, uses};
use crate::cuda::{Communicator, Work};
use crate::memory::allocation::Displaced;
use crate::memory::buffer::Buffer;
use crate::memory::uses::Uses;
use crate::split::Split;
use crate::stream::Queue;
use crate::{Error, Result};

/// A communicator on each GPU of a split.
pub(super) struct Engine {
    communicators: Vec<Communicator>,
    split: Split,
    /// The failure after which there are no more calls; the communicators are then destroyed. The lock is held during a call, because NCCL
    /// takes the calls of a communicator one at a time.
    failure: Mutex<Option<String>>,
}

impl Engine {
    /// `None` in the emulator, if NCCL cannot be opened, or if a device does not have its primary context.
    pub(super) fn new(call: &'static str, split: &Split) -> Result<Option<Self>> {
        let contexts: Vec<_> = split.streams().iter().filter_map(|stream| stream.device().context()).collect();
        let is_for_nccl = !contexts.is_empty() && contexts.iter().all(|context| context.is_primary());
        if !is_for_nccl || !Communicator::is_there() {
            return Ok(None);
        }
        // In one process, NCCL writes into buffers of the peers.
        for owner in &contexts {
            contexts.iter().filter(|peer| !Arc::ptr_eq(owner, peer)).for_each(|peer| owner.let_access(peer));
        }
        let communicators =
            Communicator::new_all(&contexts).map_err(|reason| Error::Group { call, member: None, reason })?;
        Ok(Some(Self { communicators, split: split.clone(), failure: Mutex::default() }))
    }

    /// A call that changes a buffer of each member.
    pub(super) fn in_place<T: Element>(
        &self,
        call: &'static str,
        buffers: &[Buffer<T>],
        work: impl Fn(u64) -> Work,
    ) -> Result<()> {
        let of_member = |buffer: &Buffer<T>| (work(address(&buffer.as_slice().0)), uses(&[], &[buffer.allocation()]));
        self.run(call, buffers.iter().map(of_member).collect())
    }

    /// A call that reads a buffer of each member, and writes another one.
    pub(super) fn between<T: Element>(
        &self,
        call: &'static str,
        inputs: &[Buffer<T>],
        outputs: &[Buffer<T>],
        work: impl Fn(u64, u64) -> Work,
    ) -> Result<()> {
        let of_member = |(input, output): (&Buffer<T>, &Buffer<T>)| {
            let work = work(address(&input.as_slice().0), address(&output.as_slice().0));
            (work, uses(&[input.allocation()], &[output.allocation()]))
        };
        self.run(call, inputs.iter().zip(outputs).map(of_member).collect())
    }

    fn run(&self, call: &'static str, works: Vec<(Work, Uses)>) -> Result<()> {
        let mut displaced = Displaced::default();
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_none() && !works.iter().all(|(work, _)| work.is_empty()) {
            self.split.check_faults()?;
            *failure = self.enqueue(&works, &mut displaced)?.err();
            if failure.is_some() {
                // What was enqueued at some members waits for the others, and would do so for ever.
                // SAFETY: they are not destroyed: this is the first failure. This thread has their turn, and nobody uses them later.
                unsafe { Communicator::abort_all(&self.communicators) };
            }
        }
        failure.clone().map_or(Ok(()), |reason| Err(Error::Group { call, member: None, reason }))
    }

    /// Enqueues the work of all members. What NCCL says is the inner result.
    fn enqueue(&self, works: &[(Work, Uses)], displaced: &mut Displaced) -> Result<Result<(), String>> {
        let mut all = Uses::default();
        works.iter().for_each(|(_, uses)| all.append(uses));
        let _held = all.lock()?;
        // In the order in which copies between devices take them.
        let mut devices: Vec<_> = self.split.streams().iter().map(|stream| stream.device()).collect();
        devices.sort_by_key(|device| device.context().map(Arc::as_ptr).map(<*const _>::addr));
        let _turns: Vec<_> = devices.into_iter().map(|device| device.turn()).collect();
        let mut enqueued = Vec::new();
        for ((communicator, stream), (work, uses)) in self.communicators.iter().zip(self.split.streams()).zip(works) {
            uses.enter(&stream.0, displaced)?;
            let Queue::Cuda(queue) = &stream.0.queue else { unreachable!("a split over GPUs, without a capture") };
            enqueued.push((communicator, queue, work));
        }
        // SAFETY: there is no failure, so the communicators are not destroyed; this thread has their turn; each stream is of its
        // communicator's context. The uses keep the memory, and later work in its order.
        let result = unsafe { Communicator::enqueue_all(&enqueued) };
        enqueued.iter().for_each(|(_, queue, _)| queue.advance());
        Ok(result)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.failure.get_mut().unwrap_or_else(PoisonError::into_inner).is_some() {
            return;
        }
        for stream in self.split.streams() {
            // A stream that fails at that is lost, and its work with it.
            let _ = stream.0.drain();
        }
        // SAFETY: there is no failure, so they are not destroyed. Nobody uses them any more, and their work is over.
        unsafe { Communicator::destroy_all(&self.communicators) };
    }
}
