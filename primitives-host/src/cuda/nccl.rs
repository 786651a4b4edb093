//! Communicators of NCCL, and what they enqueue.
//!
//! Errors are texts: what a group makes of them names the member.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::Arc;

use primitives_nccl::Nccl;
use primitives_nccl::sys::{ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t, ncclUniqueId};

use super::{Context, RawStream};

/// Bytes of what members find each other by.
pub(crate) const ID_BYTES: usize = 128;

/// A communicator: the part of a group that is on a GPU.
pub(crate) struct Communicator {
    nccl: &'static Nccl,
    raw: ncclComm_t,
    context: Arc<Context>,
    size: c_int,
}

// SAFETY: NCCL may be called from any thread. Calls that enqueue come one at a time, as `enqueue` asks for.
unsafe impl Send for Communicator {}
// SAFETY: as above.
unsafe impl Sync for Communicator {}

/// What is done with memory of the device, by addresses. Moves count bytes.
pub(crate) enum Work {
    /// In place.
    AllReduce { at: u64, count: usize, of: ncclDataType_t, op: ncclRedOp_t },
    /// So many bytes of each member.
    AllGather { from: u64, to: u64, bytes: usize },
    /// So many elements for each member.
    ReduceScatter { from: u64, to: u64, count: usize, of: ncclDataType_t, op: ncclRedOp_t },
    /// In place.
    Broadcast { at: u64, bytes: usize, root: usize },
    /// So many bytes for each member and from each.
    AllToAll { from: u64, to: u64, bytes: usize },
    /// To a member, from a member, or both.
    Exchange { send: Option<Message>, receive: Option<Message> },
}

impl Work {
    /// Whether there is nothing to do. Then it is so at all members.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::AllReduce { count, .. } | Self::ReduceScatter { count, .. } => *count == 0,
            Self::AllGather { bytes, .. } | Self::Broadcast { bytes, .. } | Self::AllToAll { bytes, .. } => *bytes == 0,
            Self::Exchange { send, receive } => send.is_none() && receive.is_none(),
        }
    }
}

/// Bytes for a member, or from one.
#[derive(Clone, Copy)]
pub(crate) struct Message {
    at: u64,
    bytes: usize,
    peer: usize,
}

impl Message {
    /// None of no bytes: nobody sends such, and nobody waits for it.
    pub(crate) fn new(at: u64, bytes: usize, peer: usize) -> Option<Self> {
        (bytes > 0).then_some(Self { at, bytes, peer })
    }
}

fn load() -> Result<&'static Nccl, String> {
    primitives_nccl::load().map_err(|error| error.to_string())
}

fn check(nccl: &Nccl, call: &str, result: ncclResult_t) -> Result<(), String> {
    match result {
        ncclResult_t::ncclSuccess => Ok(()),
        other => Err(format!("{call} failed: {}", nccl.describe(other))),
    }
}

/// An address of the device. The host does not access it.
fn pointer(address: u64) -> *mut c_void {
    without_provenance_mut(address as usize)
}

impl Communicator {
    /// What the members find each other by.
    pub(crate) fn unique_id() -> Result<[u8; ID_BYTES], String> {
        let nccl = load()?;
        let mut id = ncclUniqueId { internal: [0; ID_BYTES] };
        // SAFETY: the pointer is valid for the call.
        check(nccl, "ncclGetUniqueId", unsafe { nccl.ncclGetUniqueId(&raw mut id) })?;
        Ok(id.internal.map(|byte| byte.to_ne_bytes()[0]))
    }

    /// The member of this rank. Returns when all have made theirs.
    pub(crate) fn new(context: &Arc<Context>, rank: usize, size: usize, id: [u8; ID_BYTES]) -> Result<Self, String> {
        let nccl = load()?;
        let number =
            |number: usize| c_int::try_from(number).map_err(|_| format!("{number} is more than NCCL has members"));
        let (rank, size) = (number(rank)?, number(size)?);
        let id = ncclUniqueId { internal: id.map(|byte| c_char::from_ne_bytes([byte])) };
        let _relaxed = context.relaxed().map_err(|error| error.to_string())?;
        let mut raw = null_mut();
        // SAFETY: the pointer is valid for the call; the context is current.
        check(nccl, "ncclCommInitRank", unsafe { nccl.ncclCommInitRank(&raw mut raw, size, id, rank) })?;
        Ok(Self { nccl, raw, context: context.clone(), size })
    }

    /// Whether NCCL can be opened.
    pub(crate) fn is_there() -> bool {
        load().is_ok()
    }

    /// The members on these GPUs of this process, in this order.
    pub(crate) fn new_all(contexts: &[&Arc<Context>]) -> Result<Vec<Self>, String> {
        let nccl = load()?;
        let number = |context: &&Arc<Context>| c_int::try_from(context.ordinal()).map_err(|error| error.to_string());
        let numbers = contexts.iter().map(number).collect::<Result<Vec<c_int>, String>>()?;
        let Some(first) = contexts.first() else { return Ok(Vec::new()) };
        let _relaxed = first.relaxed().map_err(|error| error.to_string())?;
        let (mut all, size) = (vec![null_mut(); numbers.len()], numbers.len() as c_int);
        // SAFETY: so many pointers and numbers; the contexts are open.
        let result = unsafe { nccl.ncclCommInitAll(all.as_mut_ptr(), size, numbers.as_ptr()) };
        check(nccl, "ncclCommInitAll", result)?;
        let member =
            |(raw, context): (ncclComm_t, &&Arc<Context>)| Self { nccl, raw, context: Arc::clone(context), size };
        Ok(all.into_iter().zip(contexts).map(member).collect())
    }

    /// Enqueues the work of all members, by one thread.
    ///
    /// # Safety
    /// That of [`enqueue`](Self::enqueue), for each.
    pub(crate) unsafe fn enqueue_all(all: &[(&Self, &RawStream, &Work)]) -> Result<(), String> {
        let Some((first, ..)) = all.first() else { return Ok(()) };
        // The end of the group does the work of all.
        let _relaxed = first.context.relaxed().map_err(|error| error.to_string())?;
        first.grouped(|| {
            // SAFETY: the caller's contract.
            all.iter().try_for_each(|(member, stream, work)| unsafe { member.enqueue(stream, work) })
        })
    }

    /// Destroys the communicators of all members, by one thread.
    ///
    /// # Safety
    /// That of [`destroy`](Self::destroy), for each.
    pub(crate) unsafe fn destroy_all(all: &[Self]) {
        let Some(first) = all.first() else { return };
        let _relaxed = first.context.relaxed().ok();
        // There is nobody to tell of an error.
        let _ = first.grouped(|| {
            // SAFETY: the caller's contract.
            all.iter().for_each(|member| unsafe { member.destroy() });
            Ok(())
        });
    }

    /// Ends what is under way at all members, by one thread. The communicators are destroyed.
    ///
    /// # Safety
    /// That of [`abort`](Self::abort), for each.
    pub(crate) unsafe fn abort_all(all: &[Self]) {
        let Some(first) = all.first() else { return };
        let _relaxed = first.context.relaxed().ok();
        // There is nobody to tell of an error.
        let _ = first.grouped(|| {
            // SAFETY: the caller's contract.
            all.iter().for_each(|member| unsafe { member.abort() });
            Ok(())
        });
    }

    /// What has gone wrong since.
    ///
    /// # Safety
    /// The communicator is not destroyed.
    pub(crate) unsafe fn error(&self) -> Option<String> {
        let mut error = ncclResult_t::ncclSuccess;
        // SAFETY: the caller's contract; the pointer is valid for the call.
        let result = unsafe { self.nccl.ncclCommGetAsyncError(self.raw, &raw mut error) };
        // A call of another thread may be under way.
        if error == ncclResult_t::ncclInProgress {
            error = ncclResult_t::ncclSuccess;
        }
        check(self.nccl, "ncclCommGetAsyncError", result).and_then(|()| check(self.nccl, "NCCL", error)).err()
    }

    /// Ends what is under way, at this member. The communicator is destroyed.
    ///
    /// # Safety
    /// It is not destroyed before, and nobody uses it later. Who is inside a call of NCCL comes back with an error.
    pub(crate) unsafe fn abort(&self) {
        if let Ok(_relaxed) = self.context.relaxed() {
            // SAFETY: the caller's contract. There is nobody to tell of an error.
            unsafe { self.nccl.ncclCommAbort(self.raw) };
        }
    }

    /// Destroys the communicator, when what its work has sent is received.
    ///
    /// # Safety
    /// It is not destroyed before, nobody uses it now or later, and its work is over.
    pub(crate) unsafe fn destroy(&self) {
        if let Ok(_relaxed) = self.context.relaxed() {
            // SAFETY: the caller's contract. There is nobody to tell of an error.
            unsafe { self.nccl.ncclCommDestroy(self.raw) };
        }
    }

    /// Enqueues work.
    ///
    /// # Safety
    /// The communicator is not destroyed, and nobody else enqueues for it meanwhile. The stream is of its context. The memory is alive until the
    /// stream has come past the work, and until then nobody else writes what it reads, nor uses what it writes.
    pub(crate) unsafe fn enqueue(&self, stream: &RawStream, work: &Work) -> Result<(), String> {
        let _relaxed = self.context.relaxed().map_err(|error| error.to_string())?;
        let (nccl, comm, stream) = (self.nccl, self.raw, stream.raw().cast::<c_void>());
        let byte = ncclDataType_t::ncclUint8;
        let send = |Message { at, bytes, peer }: Message| {
            // SAFETY: the caller's contract.
            let result = unsafe { nccl.ncclSend(pointer(at), bytes, byte, peer as c_int, comm, stream) };
            check(nccl, "ncclSend", result)
        };
        let receive = |Message { at, bytes, peer }: Message| {
            // SAFETY: the caller's contract.
            let result = unsafe { nccl.ncclRecv(pointer(at), bytes, byte, peer as c_int, comm, stream) };
            check(nccl, "ncclRecv", result)
        };
        match *work {
            Work::AllReduce { at, count, of, op } => {
                let at = pointer(at);
                // SAFETY: the caller's contract; NCCL reduces in place.
                check(nccl, "ncclAllReduce", unsafe { nccl.ncclAllReduce(at, at, count, of, op, comm, stream) })
            }
            Work::AllGather { from, to, bytes } => {
                let (from, to) = (pointer(from), pointer(to));
                // SAFETY: the caller's contract.
                check(nccl, "ncclAllGather", unsafe { nccl.ncclAllGather(from, to, bytes, byte, comm, stream) })
            }
            Work::ReduceScatter { from, to, count, of, op } => {
                let (from, to) = (pointer(from), pointer(to));
                // SAFETY: the caller's contract.
                let result = unsafe { nccl.ncclReduceScatter(from, to, count, of, op, comm, stream) };
                check(nccl, "ncclReduceScatter", result)
            }
            Work::Broadcast { at, bytes, root } => {
                let at = pointer(at);
                // SAFETY: the caller's contract; NCCL broadcasts in place.
                let result = unsafe { nccl.ncclBroadcast(at, at, bytes, byte, root as c_int, comm, stream) };
                check(nccl, "ncclBroadcast", result)
            }
            Work::AllToAll { from, to, bytes } => self.grouped(|| {
                (0..self.size as usize).try_for_each(|peer| {
                    let first = (peer * bytes) as u64;
                    send(Message { at: from + first, bytes, peer })?;
                    receive(Message { at: to + first, bytes, peer })
                })
            }),
            Work::Exchange { send: sent, receive: received } => self.grouped(|| {
                sent.map_or(Ok(()), send)?;
                received.map_or(Ok(()), receive)
            }),
        }
    }

    /// Makes calls as one, whose messages do not wait for each other.
    fn grouped(&self, calls: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
        // SAFETY: the function has no arguments.
        check(self.nccl, "ncclGroupStart", unsafe { self.nccl.ncclGroupStart() })?;
        let made = calls();
        // SAFETY: as above. A group that was begun is ended, whatever its calls say.
        let ended = check(self.nccl, "ncclGroupEnd", unsafe { self.nccl.ncclGroupEnd() });
        made.and(ended)
    }
}
