//! Copies between allocations, of one device or of two.

use std::sync::{Arc, MutexGuard};

use crate::device::{Backend, Device};
use crate::memory::allocation::{Allocation, Displaced};
use crate::memory::uses::{Mode, Uses};
use crate::stream::{Queue, Stream};
use crate::{Error, Result};

/// Why a copy between devices cannot be part of a capture.
const OF_ONE_DEVICE: &str = "a graph is of one device: copy before its launch, or after it";

/// An allocation, and the first byte of a range in it.
pub(crate) type Place<'a> = (&'a Arc<Allocation>, usize);

/// Copies bytes on a stream of the target's device. The copy waits for all earlier uses of the target, and for all earlier writes of the
/// source on any device. Both ranges must be inside their allocations.
pub(crate) fn copy(
    call: &'static str,
    stream: &Stream,
    (target, to): Place<'_>,
    (source, from): Place<'_>,
    bytes: usize,
) -> Result<()> {
    let elsewhere = |argument: &str, allocation: &Allocation| Error::WrongDevice {
        kernel: call.trim_matches('`').into(),
        argument: argument.into(),
        stream: stream.device().to_string(),
        buffer: allocation.device().to_string(),
    };
    if !target.device().same_as(stream.device()) {
        return Err(elsewhere("the target", target));
    }
    let is_near = source.device().same_as(stream.device());
    if source.device().is_gpu() != stream.device().is_gpu() {
        return Err(elsewhere("the source", source));
    }
    let mut uses = Uses::default();
    uses.add(target, Mode::Write);
    uses.add(source, Mode::Read);
    match &stream.0.queue {
        Queue::Capture(recording) if is_near => {
            return recording.add(|recorded| recorded.copy(&uses, (target, to), (source, from), bytes));
        }
        Queue::Capture(_) => return Err(Error::Capture { call, advice: OF_ONE_DEVICE }),
        #[cfg(feature = "cuda")]
        Queue::Cuda(queue) if !is_near => queue.not_captured(call, OF_ONE_DEVICE)?,
        _ => {}
    }
    #[cfg(feature = "cuda")]
    if let (false, Backend::Cuda(owner), Backend::Cuda(peer)) =
        (is_near, &source.device().backend, &stream.device().backend)
    {
        owner.let_access(peer);
    }
    stream.0.check_copy(bytes)?;
    let mut displaced = Displaced::default();
    let _held = uses.lock()?;
    let _turns = turns(stream.device(), source.device());
    uses.enter(&stream.0, &mut displaced)?;
    target.memory().copy(&stream.0, to, source.memory(), from, bytes)
}

/// Takes the turns of two devices, which may be the same. All threads take them in one order, so that no two threads wait for each other.
fn turns<'a>(one: &'a Device, other: &'a Device) -> [Option<MutexGuard<'a, ()>>; 2] {
    let place = |device: &Device| match &device.backend {
        Backend::Emulator(_) => 0,
        #[cfg(feature = "cuda")]
        Backend::Cuda(context) => Arc::as_ptr(context).addr(),
    };
    match place(one).cmp(&place(other)) {
        std::cmp::Ordering::Less => [one.turn(), other.turn()],
        std::cmp::Ordering::Equal => [one.turn(), None],
        std::cmp::Ordering::Greater => [other.turn(), one.turn()],
    }
}
