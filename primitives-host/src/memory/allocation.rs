//! Allocations on a device, and the order of their uses on several streams.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::Result;
#[cfg(feature = "cuda")]
use crate::device::Backend;
use crate::device::Device;
use crate::launch::in_kernel;
use crate::memory::Memory;
use crate::memory::uses::Mode;
use crate::stream::{Stream, StreamInner};

/// An allocation on a device and the streams that have used it.
///
/// Work on one stream is in order by itself. When another stream comes to an allocation, it waits for the last use of those that
/// wrote it before (to read it), or of all that used it (to write it): see `cuda/marks.rs`. The common case of one stream costs a
/// comparison and a store.
#[allow(unreachable_pub, reason = "named by a sealed trait only")]
pub struct Allocation {
    memory: Memory,
    usage: Mutex<Usage>,
    /// The only stream that uses the allocation, or null. Who uses a buffer on a GPU holds the device's turn, so that nobody looks
    /// while this changes; `usage` keeps the stream alive.
    sole: AtomicPtr<StreamInner>,
    /// The positions of the sole stream's last read and last write.
    last: [AtomicU64; 2],
    /// How many copies to the host are under way.
    read_by_host: AtomicU32,
    /// Held while the host or the emulator accesses the bytes, and while a graph is put into a queue. Borrows keep most of
    /// this apart already; but a graph does not borrow what it uses, and tensors share it.
    ///
    /// A copy to or from the host holds it until it is over, and no other lock: who waits for it wants this very memory.
    lock: RwLock<()>,
}

/// An allocation's lock.
pub(crate) enum Held<'a> {
    Read {
        _guard: RwLockReadGuard<'a, ()>,
    },
    Write {
        _guard: RwLockWriteGuard<'a, ()>,
    },
    /// By the launch on the emulator whose kernel makes the call, until it ends.
    Outside,
}

/// The last uses of an allocation.
#[derive(Clone)]
struct Usage {
    writer: Use,
    /// Reads since, one a stream.
    readers: Vec<Use>,
}

/// A stream's last use: its position in the queue, which the stream may not have come to. 0 is before all work.
#[derive(Clone)]
struct Use {
    stream: Arc<StreamInner>,
    at: u64,
}

impl Allocation {
    /// New memory, which another stream waits for: the allocation, and what adopted memory is used for.
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

    /// Whether a copy to the host is under way. It stays so while the caller has the device's turn, or the lock to write.
    #[cfg(feature = "cuda")]
    pub(crate) fn is_read_by_host(&self) -> bool {
        self.read_by_host.load(Ordering::Relaxed) > 0
    }

    /// Orders what `stream` enqueues next after the earlier uses of this memory that it must not overlap. The caller holds the
    /// device's turn until that is enqueued.
    #[inline]
    pub(crate) fn enter(&self, stream: &Arc<StreamInner>, mode: Mode) -> Result<()> {
        if std::ptr::eq(self.sole.load(Ordering::Relaxed), Arc::as_ptr(stream)) {
            self.last[mode as usize].store(stream.next_position(), Ordering::Relaxed);
            return Ok(());
        }
        self.enter_after_others(stream, mode)
    }

    #[cold]
    fn enter_after_others(&self, stream: &Arc<StreamInner>, mode: Mode) -> Result<()> {
        // What others capture does not run now. When it does is for them to say, after whatever is in a queue by then.
        if self.memory.len() == 0 || stream.is_captured_by_others()? {
            return Ok(());
        }
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        self.note_last(&mut usage);
        self.sole.store(std::ptr::null_mut(), Ordering::Relaxed);
        match mode {
            Mode::Read => usage.read_on(stream)?,
            Mode::Write => usage.write_on(stream)?,
        }
        if usage.readers.is_empty() {
            self.last[Mode::Read as usize].store(0, Ordering::Relaxed);
            self.last[Mode::Write as usize].store(usage.writer.at, Ordering::Relaxed);
            self.sole.store(Arc::as_ptr(&usage.writer.stream).cast_mut(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Brings the sole stream's last uses into `usage`.
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
    /// Orders what `stream` enqueues next, which reads the memory, after all writes so far.
    fn read_on(&mut self, stream: &Arc<StreamInner>) -> Result<()> {
        let at = stream.next_position();
        match self.readers.iter_mut().find(|reader| Arc::ptr_eq(&reader.stream, stream)) {
            // Its earlier read has waited.
            Some(reader) => reader.at = at,
            None => {
                self.writer.is_before(stream)?;
                // A stream whose reads are done is not kept from being used again, by a buffer that many read and nobody writes. Not
                // asked each time, as all may be under way.
                if self.readers.len().is_power_of_two() {
                    let before = self.readers.len();
                    self.readers.retain(|reader| !reader.stream.is_done(reader.at));
                    if self.readers.len() < before {
                        // So is the write that they waited for. Who comes again does not wait for it.
                        self.writer.stream.note_done(self.writer.at);
                    }
                }
                self.readers.push(Use { stream: stream.clone(), at });
            }
        }
        Ok(())
    }

    /// Orders what `stream` enqueues next, which writes the memory, after all uses so far.
    fn write_on(&mut self, stream: &Arc<StreamInner>) -> Result<()> {
        self.all().try_for_each(|last| last.is_before(stream))?;
        self.readers.clear();
        self.writer = Use { stream: stream.clone(), at: stream.next_position() };
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
    /// The memory returns to its device in stream order: after all uses, without waiting here.
    fn drop(&mut self) {
        if self.memory.len() == 0 {
            return;
        }
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.note_last(&mut usage);
        let orphan = Orphan { memory: self.memory.clone(), usage };
        if !orphan.free() {
            #[cfg(feature = "cuda")]
            if let Backend::Cuda(context) = &self.device().backend {
                context.orphans.lock().unwrap_or_else(PoisonError::into_inner).push(orphan);
            }
        }
    }
}

/// An allocation whose owners are gone.
pub(crate) struct Orphan {
    memory: Memory,
    usage: Usage,
}

impl Orphan {
    /// Frees the memory after all uses, without waiting here. False if others capture one of the streams, in whose order nothing
    /// can be freed until they have done.
    pub(crate) fn free(&self) -> bool {
        if self.usage.all().any(|last| matches!(last.stream.is_captured_by_others(), Ok(true))) {
            return false;
        }
        let writer = &self.usage.writer.stream;
        for reader in &self.usage.readers {
            if reader.is_before(writer).is_err() {
                // The host waits instead. A stream that fails at that too is lost, and its work with it.
                let _ = reader.stream.synchronize();
            }
        }
        self.memory.free(writer);
        true
    }
}

/// A copy to the host under way, which launches that write the memory find in the device's turn.
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
