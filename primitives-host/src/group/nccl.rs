//! A member on a GPU: NCCL enqueues its calls, and a thread watches them.
//!
//! A kernel of NCCL waits on the GPU for the kernels of all other members, without a limit. So each member has a thread that checks NCCL,
//! the hub and the clock while calls are under way. At the first failure, the thread aborts the communicator, which ends the kernels. The
//! next wait for the stream of such a call returns the error. The hub tells the other members.

use std::collections::VecDeque;
use std::mem;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::failed;
use super::link::Link;
use super::message::{Failure, Request, Route};
use super::number::{ReduceOp, data_type};
use super::options::GroupOptions;
use crate::cuda::{Communicator, ID_BYTES, RawEvent, RawStream, Work};
use crate::device::Device;
use crate::memory::allocation::{Allocation, Displaced};
use crate::memory::slice::Part;
use crate::memory::uses::{Mode, Uses};
use crate::stream::{Queue, Stream, StreamInner};
use crate::{Error, Result};

/// The pause of the watching thread between checks.
const PAUSE: Duration = Duration::from_millis(20);

/// Its pause while no call is under way.
const IDLE: Duration = Duration::from_millis(200);

/// How long a call of NCCL may take to return before it is aborted, and how long the destruction of a communicator may take.
const GRACE: Duration = Duration::from_secs(5);

/// The largest group in which all pairs of members are connected at the start. In a larger group, this would take much memory.
const ALL_PAIRS: usize = 64;

/// A call on buffers.
pub(super) struct Call<'a> {
    pub(super) name: &'static str,
    pub(super) stream: &'a Stream,
    pub(super) route: Route,
    pub(super) work: Work,
    pub(super) uses: Uses,
}

/// The allocations that a call reads and writes.
pub(super) fn uses(read: &[&Arc<Allocation>], written: &[&Arc<Allocation>]) -> Uses {
    let mut uses = Uses::default();
    read.iter().for_each(|allocation| uses.add(allocation, Mode::Read));
    written.iter().for_each(|allocation| uses.add(allocation, Mode::Write));
    uses
}

/// The address of the first element.
pub(super) fn address<T>(part: &Part<'_, T>) -> u64 {
    part.allocation.address() + part.start as u64
}

/// The queue of a stream on a GPU.
fn queue(stream: &StreamInner) -> &RawStream {
    match &stream.queue {
        Queue::Cuda(queue) => queue,
        _ => unreachable!("a stream of another device, or a capture"),
    }
}

/// A member's communicator, and the thread that watches it.
pub(super) struct Engine {
    shared: Arc<Shared>,
    /// The watching thread, until the end.
    watch: Option<JoinHandle<()>>,
    /// Whether the members compare their calls.
    checked: bool,
    /// NCCL takes the calls of a communicator one at a time, in the same order as at the other members.
    turn: Mutex<()>,
}

struct Shared {
    communicator: Communicator,
    link: Arc<Link>,
    rank: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    under_way: VecDeque<UnderWay>,
    /// The call whose thread is inside NCCL, and since when.
    called: Option<(&'static str, Instant)>,
    failure: Option<Failure>,
    is_closing: bool,
}

/// Work in a stream.
struct UnderWay {
    call: &'static str,
    /// Not a handle: this may be dropped while the state is locked, and the drop of a handle may wait.
    stream: Arc<StreamInner>,
    begin: RawEvent,
    end: RawEvent,
    /// When the watching thread saw that the stream had reached the work.
    begun: Option<Instant>,
}

impl UnderWay {
    /// Whether the work has ended. An error is a failure of the work.
    fn is_over(&mut self, rank: usize, timeout: Duration) -> Result<bool, Failure> {
        let fail = |reason: String| Failure::of(rank, reason);
        let is_done =
            |event: &RawEvent| event.is_done().map_err(|error| fail(format!("rank {rank} has failed: {error}")));
        if is_done(&self.end)? {
            return Ok(true);
        }
        if self.begun.is_none() && is_done(&self.begin)? {
            self.begun = Some(Instant::now());
        }
        match self.begun {
            Some(begun) if begun.elapsed() >= timeout => Err(has_waited(rank, self.call, timeout)),
            _ => Ok(false),
        }
    }
}

/// The failure of a call that has not ended in time.
fn has_waited(rank: usize, call: &str, timeout: Duration) -> Failure {
    let reason = format!("rank {rank} has waited in {call} for {timeout:?}: not all members have come to it");
    Failure::of(rank, reason)
}

impl Engine {
    /// Creates the communicator of a member. The members of the group have met.
    pub(super) fn new(device: &Device, options: &GroupOptions, link: &Arc<Link>) -> Result<Self, Failure> {
        let (rank, size, checked) = (options.rank, options.size, options.checked);
        let fail = |reason: String| {
            let failure = Failure::of(rank, format!("rank {rank} on {device}: {reason}"));
            link.fail(&failure);
            failure
        };
        let Some(context) = device.context().cloned() else { return Err(fail("this is no GPU".into())) };
        if !context.is_primary() {
            return Err(fail("NCCL works in the primary context of a GPU, and the device has another one".into()));
        }
        let sent = if rank == 0 { Communicator::unique_id().map_err(fail)?.to_vec() } else { Vec::new() };
        let call =
            format!("`Group::new` on GPUs, with calls that are {}", if checked { "checked" } else { "not checked" });
        let route = Route::Broadcast { root: 0 };
        let id = link.call(Request { route, call, expects: String::new(), bytes: sent })?;
        let id: [u8; ID_BYTES] = id.try_into().map_err(|_| fail("this is no id of NCCL's".into()))?;
        // Other members may be threads of this process, and their devices are open by now. NCCL lets their GPUs write into buffers here.
        context.let_access_of_all();

        // NCCL waits for all members. If one of them is gone, the thread that waits is abandoned.
        let (sender, made) = mpsc::channel();
        let make = move || {
            let made = sender.send(Communicator::new(&context, rank, size, id));
            if let Err(mpsc::SendError(Ok(late))) = made {
                // SAFETY: nobody else has it, and nobody waits for it any more.
                unsafe { late.abort() };
            }
        };
        thread::Builder::new().name("group start".into()).spawn(make).map_err(|error| fail(error.to_string()))?;
        let until = Instant::now() + link.timeout();
        let communicator = loop {
            match made.recv_timeout(PAUSE) {
                Ok(made) => {
                    break made.map_err(fail)?;
                }
                Err(RecvTimeoutError::Disconnected) => return Err(fail("the thread that calls NCCL has ended".into())),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(failure) = link.failure() {
                return Err(failure);
            }
            if Instant::now() >= until {
                return Err(fail(format!("NCCL has not connected the members within {:?}", link.timeout())));
            }
        };
        let (link, state, changed) = (link.clone(), Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { communicator, link, rank, state, changed });
        let watched = shared.clone();
        let watch = thread::Builder::new().name("group watch".into()).spawn(move || watched.watch());
        let watch = watch.map_err(|error| {
            // SAFETY: nobody else has it.
            unsafe { shared.communicator.abort() };
            fail(error.to_string())
        })?;
        let engine = Self { shared, watch: Some(watch), checked, turn: Mutex::default() };
        let connected = engine.connect(device, size).map_err(|error| match error {
            Error::Group { reason, member, .. } => Failure { reason, member },
            other => Failure::of(rank, format!("rank {rank} on {device}: {other}")),
        });
        connected.map_err(|failure| engine.shared.fail(failure))?;
        Ok(engine)
    }

    /// Makes NCCL connect the members. NCCL does so inside their first calls, and waits there for all of them. In a later call, this member
    /// would hold the device's turn during the wait, and its other work would wait too.
    fn connect(&self, device: &Device, size: usize) -> Result<()> {
        let (call, stream) = ("`Group::new`", device.stream()?);
        // A byte for each member, and one from each.
        let memory = stream.buffer_zeroed::<u8>(2 * size)?;
        let from = address(&memory.as_slice().0);
        let sum = Work::AllReduce { at: from, count: 1, of: data_type::<u8>(), op: ReduceOp::Sum.of_nccl() };
        // SAFETY: nobody else has the engine, the stream or the memory, which is freed in the stream's order.
        unsafe { self.enqueue(call, &stream, &sum)? };
        if size <= ALL_PAIRS {
            let pairs = Work::AllToAll { from, to: from + size as u64, bytes: 1 };
            // SAFETY: as above.
            unsafe { self.enqueue(call, &stream, &pairs)? };
        }
        stream.synchronize()
    }

    /// Enqueues a call. `what` describes everything that must be the same at all members.
    pub(super) fn run(&self, call: &Call<'_>, what: impl FnOnce() -> [String; 2]) -> Result<()> {
        let mut displaced = Displaced::default();
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.checked {
            let [sent, expects] = what();
            let request = Request { route: call.route, call: sent, expects, bytes: Vec::new() };
            self.shared.link.call(request).map_err(|failure| failed(call.name, failure))?;
        }
        if call.work.is_empty() {
            let failure = self.shared.state().failure.clone();
            return failure.map_or(Ok(()), |failure| Err(failed(call.name, failure)));
        }
        let _held = call.uses.lock()?;
        let _device = call.stream.device().turn();
        call.uses.enter(&call.stream.0, &mut displaced)?;
        // SAFETY: this thread has the turn. The uses keep the memory, and later work in its order.
        let enqueued = unsafe { self.enqueue(call.name, call.stream, &call.work) };
        queue(&call.stream.0).advance();
        enqueued
    }

    /// Enqueues work. From then on, the watching thread watches it.
    ///
    /// # Safety
    /// That of [`Communicator::enqueue`], but for the end of the communicator.
    unsafe fn enqueue(&self, call: &'static str, stream: &Stream, work: &Work) -> Result<()> {
        let (queue, of_call) = (queue(&stream.0), |failure| failed(call, failure));
        let begin = queue.record()?;
        self.shared.begin(call).map_err(of_call)?;
        // SAFETY: there is no failure, so the communicator is not destroyed until `end`, unless this is inside for too long: then it is
        // aborted, which NCCL takes from another thread, to bring this one back. The rest is the caller's contract.
        let enqueued = unsafe { self.shared.communicator.enqueue(queue, work) };
        let end = enqueued.and_then(|()| queue.record().map_err(|error| error.to_string()));
        let under_way = end.map(|end| UnderWay { call, stream: stream.0.clone(), begin, end, begun: None });
        self.shared.end(under_way).map_err(of_call)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a call of NCCL.
    fn begin(&self, call: &'static str) -> Result<(), Failure> {
        let mut state = self.state();
        match &state.failure {
            Some(failure) => Err(failure.clone()),
            None => {
                state.called = Some((call, Instant::now()));
                Ok(())
            }
        }
    }

    /// Ends a call of NCCL, and records the work that it has enqueued.
    fn end(&self, under_way: Result<UnderWay, String>) -> Result<(), Failure> {
        let mut state = self.state();
        state.called = None;
        let rank = self.rank;
        match under_way {
            Ok(under_way) if state.failure.is_none() => state.under_way.push_back(under_way),
            Ok(_) => {}
            Err(reason) => {
                state.failure.get_or_insert(Failure::of(rank, format!("rank {rank} has failed: {reason}")));
            }
        }
        self.changed.notify_all();
        state.failure.clone().map_or(Ok(()), Err)
    }

    /// Records a failure, unless there already is one, so that the watching thread ends all calls. Returns the recorded failure.
    fn fail(&self, failure: Failure) -> Failure {
        let mut state = self.state();
        let failure = state.failure.get_or_insert(failure).clone();
        self.changed.notify_all();
        failure
    }

    /// Watches the calls until the member is closed and no call is left.
    fn watch(&self) {
        let mut state = self.state();
        loop {
            if state.failure.is_none() {
                state.failure = self.look(&mut state);
            }
            if let Some(failure) = state.failure.clone() {
                return self.abort(state, &failure);
            }
            if state.is_closing && state.under_way.is_empty() {
                return;
            }
            // A later failure is reported by the next call, which changes the state.
            let pause = if state.under_way.is_empty() && state.called.is_none() { IDLE } else { PAUSE };
            let waited = self.changed.wait_timeout(state, pause);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns a failure, if there is one.
    fn look(&self, state: &mut State) -> Option<Failure> {
        if let Some(failure) = self.link.failure() {
            return Some(failure);
        }
        // SAFETY: this thread destroys it, or whoever waits for the end of this thread.
        if let Some(reason) = unsafe { self.communicator.error() } {
            return Some(Failure::of(self.rank, format!("rank {} has failed: {reason}", self.rank)));
        }
        let (mut failure, timeout) = (None, self.link.timeout());
        // The first call between two members connects them, and waits for both.
        if let Some((call, since)) = state.called
            && since.elapsed() >= timeout
        {
            failure = Some(has_waited(self.rank, call, timeout));
        }
        state.under_way.retain_mut(|one| match one.is_over(self.rank, timeout) {
            Ok(is_over) => !is_over,
            Err(why) => {
                failure.get_or_insert(why);
                true
            }
        });
        failure
    }

    /// Ends all calls with a failure.
    fn abort(&self, mut state: MutexGuard<'_, State>, failure: &Failure) {
        // The streams get the failure before the calls end, so that a thread that waits for a stream finds it.
        let under_way = mem::take(&mut state.under_way);
        for one in &under_way {
            queue(&one.stream).fail(failed(one.call, failure.clone()));
        }
        self.link.fail(failure);
        // NCCL checks for an abort in all of its waits. But if the wait ends soon, no thread is inside NCCL during the abort.
        let until = Instant::now() + GRACE;
        while state.called.is_some() && Instant::now() < until {
            state = self.changed.wait_timeout(state, PAUSE).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        // SAFETY: it is aborted once, by this thread. With a failure, no call begins, and the engine does not destroy it.
        unsafe { self.communicator.abort() };
        // Only after the abort: dropping the last clone of a stream may wait for its work.
        drop(under_way);
    }
}

impl Drop for Engine {
    /// Waits for the calls that are under way. The time-out of each starts when its stream reaches it.
    fn drop(&mut self) {
        let shared = &self.shared;
        {
            let mut state = shared.state();
            state.is_closing = true;
            if thread::panicking() {
                let reason = format!("rank {} has panicked", shared.rank);
                state.failure.get_or_insert(Failure::of(shared.rank, reason));
            }
            shared.changed.notify_all();
        }
        let is_watched = self.watch.take().is_some_and(|watch| watch.join().is_ok());
        if !is_watched || shared.state().failure.is_some() {
            return;
        }
        // The destruction may wait for other members. Then the thread is abandoned.
        let (sender, destroyed) = mpsc::channel();
        let shared = shared.clone();
        let destroy = move || {
            // SAFETY: the thread that watches has ended without a failure, so it is not aborted, and its work is over. The engine is gone.
            unsafe { shared.communicator.destroy() };
            let _ = sender.send(());
        };
        if thread::Builder::new().name("group end".into()).spawn(destroy).is_ok() {
            let _ = destroyed.recv_timeout(GRACE);
        }
    }
}
