//! Watching memory in a checked launch: races, and reads of what nothing has written.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use primitives_gpu::simt::emulated::{Access, AccessKind, AsyncCopy, Space};
use primitives_gpu::simt::{Place, Scope};

use super::allocations;
use super::launch::LaunchState;
use crate::fault::MemoryAction as Action;

mod causality;
pub(super) mod copies;
mod shadow;

use causality::{BlockClock, Causality, Moment, Variables};
use copies::{Begun, Copies};
use shadow::{Order, Pages, Past, Places};

/// Bytes of memory outside all arguments that are watched together.
const FOREIGN: usize = 64 << 10;

/// An access that another one races with.
pub(super) struct Earlier {
    pub(super) action: Action,
    pub(super) moment: Moment,
    pub(super) place: Place,
    /// The byte where the two meet.
    pub(super) address: usize,
}

/// What is wrong with an access.
pub(super) enum Wrong {
    /// It races with an earlier one.
    Race(Earlier),
    /// It is of memory of another device, the one of this number.
    OtherDevice(usize),
}

/// What is wrong with an access, before its place is known.
enum Clash {
    /// It races with one that was noted for this byte.
    Past(Past, usize),
    OtherDevice(usize),
}

impl From<(Past, usize)> for Clash {
    fn from((past, address): (Past, usize)) -> Self {
        Self::Past(past, address)
    }
}

/// A read of bytes that nothing has written.
///
/// It is told at the block's next barrier or end: until then a write may show that it is half of a race.
#[derive(Clone, Copy)]
pub(super) struct Unwritten {
    pub(super) lane: u32,
    pub(super) place: Place,
    pub(super) space: Space,
    /// The first of the bytes.
    pub(super) address: usize,
}

/// Global memory during a launch, and what happens before what.
pub(super) struct LaunchMemory<'l> {
    launch: &'l LaunchState<'l>,
    state: RefCell<State>,
}

struct State {
    causality: Causality,
    /// The atomics in global memory.
    variables: Variables,
    places: Places,
    /// Of each of the launch's regions, made at the first access.
    regions: Box<[Option<Pages>]>,
    /// The region of the last access.
    recent: usize,
    /// Memory that is no argument's.
    foreign: HashMap<usize, Pages>,
}

impl State {
    #[inline(always)]
    fn make_room(&mut self) {
        self.causality.make_room(&mut self.variables);
    }
}

/// A block's shared memory, and its clock.
pub(super) struct BlockMemory {
    clock: Rc<BlockClock>,
    shared: RefCell<Pages>,
    unwritten: Cell<Option<Unwritten>>,
    /// What raw pointers may have written.
    exposed: RefCell<Vec<Range<usize>>>,
    copies: RefCell<Copies>,
}

/// The order of a lane's access.
struct LaneOrder<'a> {
    causality: &'a mut Causality,
    clock: &'a BlockClock,
    lane: u32,
}

impl Order for LaneOrder<'_> {
    #[inline(always)]
    fn is_plainly_before(&self, past: Past) -> bool {
        self.clock.is_plainly_before(past.moment(), self.lane)
    }

    #[inline(always)]
    fn is_before(&mut self, past: Past) -> bool {
        self.causality.is_before(past.moment(), self.clock, self.lane)
    }
}

impl BlockMemory {
    fn new(clock: Rc<BlockClock>, address: usize, len: usize) -> Self {
        Self {
            clock,
            shared: RefCell::new(Pages::new(address, len)),
            unwritten: Cell::new(None),
            exposed: RefCell::default(),
            copies: RefCell::new(Copies::new(address)),
        }
    }

    /// Begins the block that starts as number `ordinal`.
    pub(super) fn start(&mut self, ordinal: u64) {
        // Numbers above 2^32 would take years to come to, unlike ranks, which a seed shuffles.
        self.clock.start(ordinal as u32);
        self.shared.get_mut().clear();
        self.unwritten.set(None);
        self.exposed.get_mut().clear();
        self.copies.get_mut().clear();
    }

    /// Notes that a lane has begun a copy.
    pub(super) fn begin_copy(&self, lane: u32, copy: AsyncCopy, place: Place) {
        if let Ok(mut copies) = self.copies.try_borrow_mut() {
            copies.begin(lane, copy, place);
        }
    }

    /// Notes that a lane has waited for a copy.
    pub(super) fn finish_copy(&self, lane: u32, copy: AsyncCopy) {
        if let Ok(mut copies) = self.copies.try_borrow_mut() {
            copies.finish(lane, copy);
        }
    }

    /// The copy under way that an access comes too early for, with the first byte where the two meet.
    #[inline(always)]
    pub(super) fn disturbed_copy(&self, access: Access) -> Option<(Begun, usize)> {
        self.copies.try_borrow().ok()?.disturbed_by(access)
    }

    /// The first read of what nothing has written, if there was one.
    #[inline(always)]
    pub(super) fn unwritten(&self) -> Option<Unwritten> {
        self.unwritten.get()
    }
}

impl<'l> LaunchMemory<'l> {
    pub(super) fn new(launch: &'l LaunchState<'l>) -> Self {
        let state = State {
            causality: Causality::default(),
            variables: Variables::new(),
            places: Places::new(launch.place),
            regions: launch.regions.iter().map(|_| None).collect(),
            recent: 0,
            foreign: HashMap::new(),
        };
        Self { launch, state: RefCell::new(state) }
    }

    /// The memory of a block of so many threads, with the shared memory at `address`.
    pub(super) fn block(&self, threads: u32, address: usize, len: usize) -> BlockMemory {
        BlockMemory::new(self.state.borrow_mut().causality.clock(threads), address, len)
    }

    /// Notes that all lanes of a block have met.
    #[inline(always)]
    pub(super) fn barrier(&self, block: &BlockMemory) {
        self.with(|state| state.causality.barrier(&block.clock));
    }

    /// Notes that the lanes of a mask have met.
    pub(super) fn sync_warp(&self, block: &BlockMemory, warp: u32, mask: u32, existing: u32) {
        self.with(|state| state.causality.sync_warp(&block.clock, warp, mask, existing));
    }

    pub(super) fn fence(&self, block: &BlockMemory, lane: u32, scope: Scope) {
        self.with(|state| state.causality.fence(&block.clock, lane, scope));
    }

    /// The state, unless a lane that overflowed its stack has left it as it was: then the launch has failed.
    #[inline(always)]
    fn with(&self, f: impl FnOnce(&mut State)) {
        if let Ok(mut state) = self.state.try_borrow_mut() {
            state.make_room();
            f(&mut state);
        }
    }

    /// Notes that raw pointers may write bytes, unseen, from now on.
    pub(super) fn expose(&self, block: &BlockMemory, space: Space, bytes: Range<usize>) {
        match space {
            Space::Shared => block.exposed.borrow_mut().push(bytes),
            Space::Global => {
                if let Some(region) = self.launch.regions.iter().find(|region| region.contains(bytes.start)) {
                    let end = bytes.end.min(region.address + region.len);
                    region.written.mark(bytes.start - region.address..end - region.address);
                }
            }
        }
    }

    /// Notes an access.
    #[inline(always)]
    pub(super) fn access(&self, block: &BlockMemory, lane: u32, access: Access, place: Place) -> Result<(), Wrong> {
        let Ok(mut state) = self.state.try_borrow_mut() else { return Ok(()) };
        let state = &mut *state;
        state.make_room();
        let found = match access.space {
            Space::Shared => self.shared_access(state, block, lane, access, place).map_err(Clash::from),
            Space::Global => self.global_access(state, block, lane, access, place),
        };
        match found {
            Ok(()) => Ok(()),
            Err(Clash::Past(past, address)) => {
                let place = state.places.place(past.place());
                Err(Wrong::Race(Earlier { action: past.action(), moment: past.moment(), place, address }))
            }
            Err(Clash::OtherDevice(number)) => Err(Wrong::OtherDevice(number)),
        }
    }

    /// The device in whose memory a byte lies that is no argument's, if that is another one than the launch's.
    #[cold]
    #[inline(never)]
    fn other_device(&self, address: usize) -> Option<usize> {
        allocations::device_of(address).filter(|device| *device != self.launch.device)
    }

    #[inline(always)]
    fn shared_access(
        &self,
        state: &mut State,
        block: &BlockMemory,
        lane: u32,
        access: Access,
        place: Place,
    ) -> Result<(), (Past, usize)> {
        let Ok(mut shared) = block.shared.try_borrow_mut() else { return Ok(()) };
        let Access { kind, space, address, len } = access;
        let action = Action::of(kind);
        let clock = &block.clock;
        let now = Past::new(clock.now(lane), action, state.places.number(place));
        let mut order = LaneOrder { causality: &mut state.causality, clock, lane };
        let mut unwritten = None;
        shared.visit(address, len, |cell, sets, at| {
            if action.reads() && !cell.is_written(sets) && unwritten.is_none() {
                unwritten = Some(at);
            }
            cell.note(now, action, sets, &mut order).map_err(|past| (past, at))
        })?;
        if let Some(at) = unwritten {
            let exposed = block.exposed.borrow().iter().any(|bytes| bytes.contains(&at));
            if !exposed && block.unwritten.get().is_none() {
                block.unwritten.set(Some(Unwritten { lane, place, space, address: at }));
            }
        }
        if is_atomic(kind) {
            state.causality.atomic(&mut clock.variables.borrow_mut(), clock, lane, kind, space, address);
        }
        Ok(())
    }

    #[inline(always)]
    fn global_access(
        &self,
        state: &mut State,
        block: &BlockMemory,
        lane: u32,
        access: Access,
        place: Place,
    ) -> Result<(), Clash> {
        let Access { kind, space, address, len } = access;
        let action = Action::of(kind);
        let clock = &block.clock;
        let regions = self.launch.regions;
        if !regions.get(state.recent).is_some_and(|region| region.contains(address)) {
            state.recent = regions.iter().position(|region| region.contains(address)).unwrap_or(usize::MAX);
        }
        let region = regions.get(state.recent);
        if let Some(region) = region {
            if !region.written.is_whole() {
                let start = address - region.address;
                if action.reads()
                    && block.unwritten.get().is_none()
                    && let Some(missing) = region.written.first_missing(start..start + len)
                {
                    let address = region.address + missing;
                    block.unwritten.set(Some(Unwritten { lane, place, space, address }));
                }
                if action != Action::Read && action != Action::AtomicRead {
                    region.written.mark(start..start + len);
                }
            }
            if !region.writable {
                // Nobody can write what a launch borrows to read.
                return Ok(());
            }
        }
        let now = Past::new(clock.now(lane), action, state.places.number(place));
        let mut order = LaneOrder { causality: &mut state.causality, clock, lane };
        let mut visit = |pages: &mut Pages, address, len| {
            pages.visit(address, len, |cell, sets, at| {
                cell.note(now, action, sets, &mut order).map_err(|past| (past, at))
            })
        };
        match region {
            Some(region) => {
                let pages = &mut state.regions[state.recent];
                visit(pages.get_or_insert_with(|| Pages::new(region.address, region.len)), address, len)?;
            }
            None => {
                if let Some(device) = self.other_device(address) {
                    return Err(Clash::OtherDevice(device));
                }
                let mut at = address;
                while at < address + len {
                    let first = at / FOREIGN * FOREIGN;
                    let part = (address + len).min(first + FOREIGN) - at;
                    let pages = state.foreign.entry(first).or_insert_with(|| Pages::new(first, FOREIGN));
                    visit(pages, at, part)?;
                    at += part;
                }
            }
        }
        if is_atomic(kind) {
            state.causality.atomic(&mut state.variables, clock, lane, kind, space, address);
        }
        Ok(())
    }

    /// The last write of bytes shortly before `address`, with its first byte.
    pub(super) fn writer_before(&self, block: &BlockMemory, space: Space, address: usize) -> Option<Earlier> {
        let state = self.state.try_borrow().ok()?;
        let (address, past) = match space {
            Space::Shared => block.shared.try_borrow().ok()?.writer_before(address)?,
            Space::Global => {
                let region = self.launch.regions.iter().position(|region| region.contains(address))?;
                state.regions[region].as_ref()?.writer_before(address)?
            }
        };
        let place = state.places.place(past.place());
        Some(Earlier { action: past.action(), moment: past.moment(), place, address })
    }
}

#[inline]
fn is_atomic(kind: AccessKind) -> bool {
    !matches!(kind, AccessKind::Read | AccessKind::Write)
}
