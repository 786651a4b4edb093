//! Memory that a stream keeps for its kernels.

use crate::Result;
#[cfg(feature = "cuda")]
use crate::stream::Queue;
use crate::stream::Stream;

/// Returns the address of `bytes` bytes that the stream keeps until it is dropped, for kernels whose blocks share values. It is allocated by
/// the first call, which clears its first `cleared` bytes.
///
/// The kernels of a stream run one after the other, so each of them can have all of the memory. A kernel that expects zeros must leave zeros.
///
/// Returns `None` if the stream captures, because a graph may run beside the stream. Also returns `None` on the emulator, and if the first
/// call asked for fewer bytes.
///
/// # Errors
/// Returns the errors of an allocation.
pub fn kept_memory(stream: &Stream, bytes: usize, cleared: usize) -> Result<Option<u64>> {
    #[cfg(feature = "cuda")]
    if let Queue::Cuda(queue) = &stream.0.queue {
        return queue.kept_memory(bytes, cleared);
    }
    let _ = (stream, bytes, cleared);
    Ok(None)
}
