//! Memory that a stream keeps for its kernels.

#[cfg(any(feature = "cuda", test))]
use std::sync::Mutex;
use std::sync::MutexGuard;

#[cfg(any(feature = "cuda", test))]
use crate::memory::allocation::unless_taken;
#[cfg(feature = "cuda")]
use crate::stream::Queue;
use crate::stream::Stream;
use crate::{Buffer, Result};

/// What a stream keeps memory for.
#[derive(Clone, Copy)]
pub enum KeptFor {
    /// The counters and the accumulators of blocks that share results.
    Results,
    /// The words of [`kept_words`].
    Words,
}

/// Returns the address of `bytes` bytes that the stream keeps until it is dropped, for kernels whose blocks share values. They are allocated
/// by the first call for this purpose, which clears the first `cleared` bytes.
///
/// The kernels of a stream run one after the other, so each of them can have all of the memory. A kernel that expects zeros must leave zeros.
///
/// Returns `None` if the stream captures, because a graph may run beside the stream. Also returns `None` on the emulator, and if the first
/// call asked for fewer bytes.
///
/// # Errors
/// Returns the errors of an allocation.
pub fn kept_memory(stream: &Stream, purpose: KeptFor, bytes: usize, cleared: usize) -> Result<Option<u64>> {
    #[cfg(feature = "cuda")]
    if let Queue::Cuda(queue) = &stream.0.queue {
        return queue.kept_memory(purpose, bytes, cleared);
    }
    let _ = (stream, purpose, bytes, cleared);
    Ok(None)
}

/// Words that a stream keeps, for one launch. No other thread gets them until this is dropped.
pub struct KeptWords<'s> {
    /// The words. They were zero before the first number. Between launches, they have what earlier launches left.
    pub words: Buffer<u64>,
    /// The number of the launch, from 1. It is larger than those of earlier launches, until the words are cleared again.
    pub number: u32,
    _turn: MutexGuard<'s, u32>,
}

/// Returns `len` words that the stream keeps until it is dropped, for a launch that the caller enqueues before it drops the result. If a
/// kernel leaves its number in each word that it writes, later kernels find out that the word is not theirs.
///
/// Returns `None` as [`kept_memory`] does, and if another thread has the words.
///
/// # Errors
/// Returns the errors of an allocation.
pub fn kept_words(stream: &Stream, len: usize) -> Result<Option<KeptWords<'_>>> {
    #[cfg(feature = "cuda")]
    if let (Queue::Cuda(queue), bytes) = (&stream.0.queue, 8 * len) {
        let Some(address) = queue.kept_memory(KeptFor::Words, bytes, bytes)? else { return Ok(None) };
        let Some(turn) = queue.numbers.next(|| queue.fill_zero(address, bytes))? else { return Ok(None) };
        // SAFETY: the stream frees the memory, and the buffer keeps the stream. Only work of the stream uses the memory.
        let words = unsafe { Buffer::from_raw_borrowed(stream, address, len)? };
        return Ok(Some(KeptWords { words, number: *turn, _turn: turn }));
    }
    let _ = (stream, len);
    Ok(None)
}

/// The numbers of the launches that use a memory.
#[cfg(any(feature = "cuda", test))]
#[derive(Default)]
pub(crate) struct Numbers(Mutex<u32>);

#[cfg(any(feature = "cuda", test))]
impl Numbers {
    /// Returns the next number, or `None` if another thread has one. After the last number, this function calls `clear`, and begins with 1
    /// again.
    pub(crate) fn next(&self, clear: impl FnOnce() -> Result<()>) -> Result<Option<MutexGuard<'_, u32>>> {
        let Some(mut last) = unless_taken(self.0.try_lock()) else { return Ok(None) };
        if *last == u32::MAX {
            clear()?;
            *last = 0;
        }
        *last += 1;
        Ok(Some(last))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::Error;

    #[test]
    fn memory_is_cleared_after_its_last_number() -> Result<()> {
        let (numbers, cleared) = (Numbers::default(), Cell::new(0));
        let next = || {
            let turn = numbers.next(|| {
                cleared.set(cleared.get() + 1);
                Ok(())
            })?;
            Ok::<_, Error>(turn.map(|number| *number))
        };
        assert_eq!((next()?, next()?, cleared.get()), (Some(1), Some(2), 0));
        *numbers.0.lock().expect("no panic") = u32::MAX - 1;
        assert_eq!((next()?, cleared.get()), (Some(u32::MAX), 0));
        // What is not cleared gets no number.
        let failing = numbers.next(|| Err(Error::Capture { call: "a memset", advice: "" }));
        assert!(failing.is_err());
        drop(failing);
        assert_eq!((next()?, next()?, cleared.get()), (Some(1), Some(2), 1));
        // A launch with a lower number must not come after one with a higher number.
        let turn = numbers.next(|| Ok(()))?;
        assert_eq!(
            (turn.map(|number| (*number, next().is_ok_and(|next| next.is_none()))), next()?),
            (Some((3, true)), Some(4))
        );
        Ok(())
    }
}
