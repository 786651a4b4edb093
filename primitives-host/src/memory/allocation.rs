//! Allocations on a device, and the order of their uses on several streams.

use std::mem;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError, TryLockResult};

use crate::Result;
use crate::device::Device;
use crate::launch::in_kernel;
use crate::memory::Memory;
#[cfg(feature = "cuda")]
use crate::memory::free_orphans;
use crate::memory::uses::Mode;
use crate::stream::{Stream, StreamInner};

/// An allocation on a device and the streams that have used it.
///
/// Work on one stream is always in order. If another stream uses an allocation, it waits: a read waits for the last write, and a write
/// waits for the last use on each stream; see `cuda/marks.rs`. The common case of one stream costs a comparison and a store.
#[allow(unreachable_pub, reason = "named by a sealed trait only")]
pub struct Allocation {
    memory: Memory,
    usage: Mutex<Usage>,
    /// The only stream that uses the allocation, or null. A thread that uses a buffer on a GPU holds the device's turn, so that no other
    /// thread reads this while it changes. `usage` keeps the stream alive.
    sole: AtomicPtr<StreamInner>,
    /// The positions of the sole stream's last read and last write.
    last: [AtomicU64; 2],
    /// The number of copies to the host that are under way.
    read_by_host: AtomicU32,
    /// Held while the host or the emulator accesses the bytes, and while a graph is enqueued. Borrows already separate most of these
    /// accesses, but a graph does not borrow its buffers, and tensors share memory.
    ///
    /// A copy to or from the host holds this lock until it is over, and no other lock. So only threads that use this memory wait for it.
    lock: RwLock<()>,
}

/// The held lock of an allocation.
pub(crate) enum Held<'a> {
    Read {
        _guard: RwLockReadGuard<'a, ()>,
    },
    Write {
        _guard: RwLockWriteGuard<'a, ()>,
    },
    /// The launch on the emulator whose kernel makes the call holds the lock until it ends.
    Outside,
}

/// The guard of a lock, or `None` if another thread holds the lock.
pub(crate) fn unless_taken<G>(guard: TryLockResult<G>) -> Option<G> {
    match guard {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// The last uses of an allocation.
#[derive(Clone)]
struct Usage {
    writer: Use,
    /// The reads after the last write, one for each stream.
    readers: Vec<Use>,
}

/// A stream's last use: its position in the queue. The stream may not have reached it. Position 0 is before all work.
#[derive(Clone)]
struct Use {
    stream: Arc<StreamInner>,
    at: u64,
}

/// Streams whose last clones a call has displaced. Dropping an adopted stream waits for its work and drops its owner, so a call declares
/// this before it takes locks and turns.
#[derive(Default)]
pub(crate) struct Displaced(Vec<StreamInner>);

impl Displaced {
    pub(crate) fn add(&mut self, stream: Arc<StreamInner>) {
        self.0.extend(Arc::into_inner(stream));
    }
}

impl Allocation {
    /// Wraps new memory. Other streams wait for its allocation, or for earlier uses of adopted memory.
    pub(crate) fn new(stream: &Stream, memory: Memory) -> Self {
        let at = if memory.len() > 0 {
            let _turn = stream.device().turn();
            stream.0.take_position()
        } else {
            0
        };
        let usage = Usage { writer: Use { stream: stream.0.clone(), at }, readers: Vec::new() };
        Self {
            memory,
            usage: Mutex::new(usage),
            sole: AtomicPtr::new(Arc::as_ptr(&stream.0).cast_mut()),
            last: [AtomicU64::new(0), AtomicU64::new(at)],
            read_by_host: AtomicU32::new(0),
            lock: RwLock::new(()),
        }
    }

    pub(crate) fn device(&self) -> &Device {
        self.memory.device()
    }

    pub(crate) fn address(&self) -> u64 {
        self.memory.address()
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Locks the bytes.
    ///
    /// # Errors
    /// Returns [`Error::InKernel`](crate::Error::InKernel) if a kernel on the emulator calls this whose launch has them locked otherwise.
    pub(crate) fn lock(&self, mode: Mode) -> Result<Held<'_>> {
        if let in_kernel::Access::Covered = in_kernel::access(self, mode)? {
            return Ok(Held::Outside);
        }
        Ok(match mode {
            Mode::Read => Held::Read { _guard: self.lock.read().unwrap_or_else(PoisonError::into_inner) },
            Mode::Write => Held::Write { _guard: self.lock.write().unwrap_or_else(PoisonError::into_inner) },
        })
    }

    /// Locks the bytes, or returns `None` if it would wait for another thread.
    ///
    /// # Errors
    /// Returns the errors of [`lock`](Self::lock).
    pub(crate) fn try_lock(&self, mode: Mode) -> Result<Option<Held<'_>>> {
        if let in_kernel::Access::Covered = in_kernel::access(self, mode)? {
            return Ok(Some(Held::Outside));
        }
        Ok(match mode {
            Mode::Read => unless_taken(self.lock.try_read()).map(|guard| Held::Read { _guard: guard }),
            Mode::Write => unless_taken(self.lock.try_write()).map(|guard| Held::Write { _guard: guard }),
        })
    }

    /// Whether a copy to the host is under way. The answer stays valid while the caller holds the device's turn, or the lock for writing.
    #[cfg(feature = "cuda")]
    pub(crate) fn is_read_by_host(&self) -> bool {
        self.read_by_host.load(Ordering::Relaxed) > 0
    }

    /// Orders the next work of `stream` after the earlier uses of this memory with which it must not overlap. The caller holds the device's
    /// turn until this work is enqueued, and drops what is displaced after that.
    #[inline]
    pub(crate) fn enter(&self, stream: &Arc<StreamInner>, mode: Mode, displaced: &mut Displaced) -> Result<()> {
        if std::ptr::eq(self.sole.load(Ordering::Relaxed), Arc::as_ptr(stream)) {
            self.last[mode as usize].store(stream.next_position(), Ordering::Relaxed);
            return Ok(());
        }
        self.enter_after_others(stream, mode, displaced)
    }

    #[cold]
    fn enter_after_others(&self, stream: &Arc<StreamInner>, mode: Mode, displaced: &mut Displaced) -> Result<()> {
        // Work that other code captures does not run now. That code is responsible for its order when it runs.
        if self.memory.len() == 0 || stream.is_captured_by_others()? {
            return Ok(());
        }
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        self.note_last(&mut usage);
        self.sole.store(std::ptr::null_mut(), Ordering::Relaxed);
        match mode {
            Mode::Read => usage.read_on(stream, displaced)?,
            Mode::Write => usage.write_on(stream, displaced)?,
        }
        if usage.readers.is_empty() {
            self.last[Mode::Read as usize].store(0, Ordering::Relaxed);
            self.last[Mode::Write as usize].store(usage.writer.at, Ordering::Relaxed);
            self.sole.store(Arc::as_ptr(&usage.writer.stream).cast_mut(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Copies the sole stream's last uses to `usage`.
    fn note_last(&self, usage: &mut Usage) {
        if self.sole.load(Ordering::Relaxed).is_null() {
            return;
        }
        let [read, write] = [Mode::Read, Mode::Write].map(|mode| self.last[mode as usize].load(Ordering::Relaxed));
        usage.writer.at = write;
        usage.readers.clear();
        if read > write {
            usage.readers.push(Use { stream: usage.writer.stream.clone(), at: read });
        }
    }

    pub(crate) fn writer(&self) -> Arc<StreamInner> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner).writer.stream.clone()
    }
}

impl Usage {
    /// Orders the next work of `stream`, which reads the memory, after all writes so far.
    fn read_on(&mut self, stream: &Arc<StreamInner>, displaced: &mut Displaced) -> Result<()> {
        let at = stream.next_position();
        match self.readers.iter_mut().find(|reader| Arc::ptr_eq(&reader.stream, stream)) {
            // An earlier read on this stream has waited already.
            Some(reader) => reader.at = at,
            None => {
                self.writer.is_before(stream)?;
                // If many streams read a buffer and none writes it, streams whose reads are done are forgotten, so that the buffer does not
                // keep them alive. This is not checked each time, because all reads may be under way.
                if self.readers.len().is_power_of_two() {
                    let before = self.readers.len();
                    let done = self.readers.extract_if(.., |reader| reader.stream.is_done(reader.at));
                    done.for_each(|reader| displaced.add(reader.stream));
                    if self.readers.len() < before {
                        // The write that they waited for is done too. A later read does not wait for it.
                        self.writer.stream.note_done(self.writer.at);
                    }
                }
                self.readers.push(Use { stream: stream.clone(), at });
            }
        }
        Ok(())
    }

    /// Orders the next work of `stream`, which writes the memory, after all uses so far.
    fn write_on(&mut self, stream: &Arc<StreamInner>, displaced: &mut Displaced) -> Result<()> {
        self.all().try_for_each(|last| last.is_before(stream))?;
        let writer = Use { stream: stream.clone(), at: stream.next_position() };
        displaced.add(mem::replace(&mut self.writer, writer).stream);
        self.readers.drain(..).for_each(|reader| displaced.add(reader.stream));
        Ok(())
    }

    fn all(&self) -> impl Iterator<Item = &Use> {
        self.readers.iter().chain([&self.writer])
    }
}

impl Use {
    /// Makes later work on `stream` wait for this use.
    fn is_before(&self, stream: &Arc<StreamInner>) -> Result<()> {
        if Arc::ptr_eq(&self.stream, stream) { Ok(()) } else { stream.wait_for(&self.stream, self.at) }
    }
}

impl Drop for Allocation {
    /// Returns the memory to its device in stream order: after all uses, without waiting here.
    fn drop(&mut self) {
        if self.memory.len() == 0 {
            return;
        }
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.note_last(&mut usage);
        let orphan = Orphan { memory: self.memory.clone(), usage };
        #[cfg(feature = "cuda")]
        if let Some(context) = self.device().context() {
            free_orphans(self.device());
            if orphan.is_captured() {
                return context.orphans.lock().unwrap_or_else(PoisonError::into_inner).push(orphan);
            }
        }
        orphan.free();
    }
}

/// An allocation that all its owners have dropped.
pub(crate) struct Orphan {
    memory: Memory,
    usage: Usage,
}

impl Orphan {
    /// Whether other code captures one of the streams. In the order of that stream, nothing can be freed before the capture ends.
    #[cfg(feature = "cuda")]
    pub(crate) fn is_captured(&self) -> bool {
        self.usage.all().any(|last| matches!(last.stream.is_captured_by_others(), Ok(true)))
    }

    /// Frees the memory after all uses, without waiting here. Nobody captures the streams.
    pub(crate) fn free(&self) {
        let writer = &self.usage.writer.stream;
        for reader in &self.usage.readers {
            if reader.is_before(writer).is_err() {
                // The host waits instead, and leaves faults to the next who asks. If this fails too, the stream and its work are lost.
                let _ = reader.stream.drain();
            }
        }
        self.memory.free(writer);
    }
}

/// A copy to the host that is under way. Launches that write the memory see it in the device's turn.
pub(crate) struct ReadByHost<'a>(&'a Allocation);

impl<'a> ReadByHost<'a> {
    pub(crate) fn new(allocation: &'a Allocation) -> Self {
        let _turn = allocation.device().turn();
        allocation.read_by_host.fetch_add(1, Ordering::Relaxed);
        Self(allocation)
    }
}

impl Drop for ReadByHost<'_> {
    fn drop(&mut self) {
        self.0.read_by_host.fetch_sub(1, Ordering::Release);
    }
}
