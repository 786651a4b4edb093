//! What is remembered of each byte of memory: who wrote it last, and who has read it or accessed it atomically since.
//!
//! Memory is watched in *granules* of 1, 2, 4, 8 or 16 bytes, page by page as fine as the page's accesses need: a page of
//! floats has one [`Cell`] a float. The cell has room for the last write and one access after it; where several threads
//! read, the others are in a set of [`Group`]s of lanes.

use std::collections::HashMap;
use std::mem::{size_of, take};

use primitives_gpu::simt::emulated::AccessKind;
use primitives_gpu::simt::{Place, WARP};

use super::causality::Moment;
use crate::fault::MemoryAction as Action;

#[cfg(test)]
mod tests;

/// Bytes of a page.
pub(super) const PAGE: usize = 1024;

/// The largest granule, as a power of two.
const MAX_SHIFT: u32 = 4;

/// Groups of a set. Beyond, those of the earliest accesses are forgotten, of reads before others: a race with them alone is not found.
const MAX_GROUPS: usize = 128;

/// Bytes of cells that a thread keeps for its next launch.
const KEPT_BYTES: usize = 64 << 20;

impl Action {
    const ALL: [Self; 5] = [Self::Read, Self::Write, Self::AtomicRead, Self::AtomicWrite, Self::AtomicUpdate];

    #[inline]
    pub(in crate::emulator) fn of(kind: AccessKind) -> Self {
        match kind {
            AccessKind::Read => Self::Read,
            AccessKind::Write => Self::Write,
            AccessKind::AtomicRead(..) => Self::AtomicRead,
            AccessKind::AtomicWrite(..) => Self::AtomicWrite,
            AccessKind::AtomicUpdate(..) => Self::AtomicUpdate,
        }
    }

    #[inline]
    pub(super) fn reads(self) -> bool {
        matches!(self, Self::Read | Self::AtomicRead | Self::AtomicUpdate)
    }

    #[inline]
    fn changes_atomically(self) -> bool {
        matches!(self, Self::AtomicWrite | Self::AtomicUpdate)
    }

    /// Whether two accesses of one granule, without an order, are a race.
    #[inline(always)]
    fn conflicts(self, other: Self) -> bool {
        match (self, other) {
            (Self::Write, _) | (_, Self::Write) => true,
            (Self::Read, other) => other.changes_atomically(),
            (this, Self::Read) => this.changes_atomically(),
            _ => false,
        }
    }

    /// Whether what conflicts with `earlier` conflicts with this as well, so that this one stands for both.
    #[inline(always)]
    fn stands_for(self, earlier: Self) -> bool {
        self == earlier || earlier == Self::AtomicRead || self.changes_atomically() && earlier.changes_atomically()
    }
}

/// A place in the source by number; 0 is an unknown one.
type PlaceId = u16;

/// An access as a cell remembers it; its time is 0 if there is none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Past {
    time: u32,
    block: u32,
    /// Lane: 10 bits, action: 3 bits, place: 16 bits.
    packed: u32,
}

impl Past {
    const NONE: Self = Self { time: 0, block: 0, packed: 0 };

    #[inline(always)]
    pub(super) fn new(moment: Moment, action: Action, place: PlaceId) -> Self {
        let Moment { time, block, lane } = moment;
        Self { time, block, packed: lane | (action as u32) << 10 | (place as u32) << 13 }
    }

    #[inline(always)]
    fn is_some(self) -> bool {
        self.time != 0
    }

    #[inline(always)]
    pub(super) fn moment(self) -> Moment {
        Moment { time: self.time, block: self.block, lane: self.packed & 0x3ff }
    }

    #[inline(always)]
    pub(super) fn action(self) -> Action {
        Action::ALL[(self.packed >> 10 & 7) as usize]
    }

    #[inline(always)]
    pub(super) fn place(self) -> PlaceId {
        (self.packed >> 13) as PlaceId
    }
}

/// Lanes of one warp that did the same at the same time.
struct Group {
    /// One of them.
    one: Past,
    lanes: u32,
}

impl Group {
    #[inline]
    fn joins(&self, past: Past) -> bool {
        let warp = |past: Past| past.moment().lane / WARP;
        let rest = |past: Past| past.packed >> 10;
        (self.one.time, self.one.block) == (past.time, past.block)
            && warp(self.one) == warp(past)
            && rest(self.one) == rest(past)
    }

    #[inline]
    fn is_earlier_of(&self, past: Past) -> bool {
        self.one.block == past.block
            && self.one.action() == past.action()
            && self.one.moment().lane / WARP == past.moment().lane / WARP
    }

    #[inline]
    fn members(&self) -> impl Iterator<Item = Past> {
        let first = self.one.moment().lane / WARP * WARP;
        crate::emulator::warp::bits(self.lanes)
            .map(move |lane| Past { packed: self.one.packed & !0x3ff | (first + lane), ..self.one })
    }
}

/// Sets of accesses, by number.
#[derive(Default)]
pub(super) struct Sets {
    sets: Vec<Vec<Group>>,
    free: Vec<u32>,
}

impl Sets {
    fn add(&mut self, set: &mut u32, past: Past, current: u32) {
        if *set == 0 {
            *set = self.free.pop().unwrap_or_else(|| {
                self.sets.push(Vec::new());
                self.sets.len() as u32
            });
        }
        let groups = &mut self.sets[*set as usize - 1];
        let bit = 1 << (past.moment().lane % WARP);
        if let Some(group) = groups.last_mut()
            && group.joins(past)
        {
            group.lanes |= bit;
            return;
        }
        let mut joined = false;
        groups.retain_mut(|group| {
            if group.joins(past) {
                group.lanes |= bit;
                joined = true;
            } else if group.is_earlier_of(past) {
                // What its lane did earlier in the same way.
                group.lanes &= !bit;
            }
            group.lanes != 0
        });
        if joined {
            return;
        }
        if groups.len() == MAX_GROUPS {
            let oldest = |of: &dyn Fn(&Group) -> bool| groups.iter().position(of);
            let reads = |group: &Group| !group.one.action().changes_atomically();
            // A change is worth more than a read: it says that there is something to be read.
            let oldest = oldest(&|group| group.one.block != current && reads(group))
                .or_else(|| oldest(&reads))
                .or_else(|| oldest(&|group| group.one.block != current));
            groups.remove(oldest.unwrap_or(0));
        }
        groups.push(Group { one: past, lanes: bit });
    }

    fn clear(&mut self, set: &mut u32) {
        if *set != 0 {
            self.sets[*set as usize - 1].clear();
            self.free.push(take(set));
        }
    }

    fn copy(&mut self, set: u32) -> u32 {
        if set == 0 {
            return 0;
        }
        let mut copy = 0;
        for i in 0..self.sets[set as usize - 1].len() {
            let members: Vec<_> = self.sets[set as usize - 1][i].members().collect();
            members.into_iter().for_each(|past| self.add(&mut copy, past, past.block));
        }
        copy
    }

    fn reset(&mut self) {
        self.free.clear();
        for (set, number) in self.sets.iter_mut().zip(1..) {
            set.clear();
            self.free.push(number);
        }
    }
}

/// What is remembered of a granule.
#[derive(Clone, Copy)]
pub(super) struct Cell {
    /// The last plain write.
    write: Past,
    /// The last access after it.
    last: Past,
    /// The accesses between that `last` does not stand for: a number of [`Sets`], or 0.
    others: u32,
}

const _: () = assert!(size_of::<Cell>() == 28, "the documentation of the emulator tells it");

/// How a cell decides what is over.
pub(super) trait Order {
    /// By barriers alone; cheap.
    fn is_plainly_before(&self, past: Past) -> bool;
    /// At all.
    fn is_before(&mut self, past: Past) -> bool;
}

impl Cell {
    const NONE: Self = Self { write: Past::NONE, last: Past::NONE, others: 0 };

    /// Whether anything has written the granule while it was watched.
    #[inline]
    pub(super) fn is_written(&self, sets: &Sets) -> bool {
        let changes = |past: Past| past.is_some() && past.action().changes_atomically();
        self.write.is_some()
            || changes(self.last)
            || self.others != 0 && sets.sets[self.others as usize - 1].iter().any(|group| changes(group.one))
    }

    /// The last plain write.
    pub(super) fn writer(&self) -> Option<Past> {
        self.write.is_some().then_some(self.write)
    }

    /// Notes an access. An error is an earlier one that it races with.
    #[inline(always)]
    pub(super) fn note(
        &mut self,
        now: Past,
        action: Action,
        sets: &mut Sets,
        order: &mut impl Order,
    ) -> Result<(), Past> {
        if self.last == now || action == Action::Write && self.write == now && !self.last.is_some() {
            return Ok(());
        }
        if self.write.is_some() && !order.is_before(self.write) {
            return Err(self.write);
        }
        if self.last.is_some() {
            self.check_others(action, sets, order)?;
        }
        if action == Action::Write {
            self.write = now;
            self.last = Past::NONE;
            sets.clear(&mut self.others);
        } else {
            self.add(now, action, sets, order);
        }
        Ok(())
    }

    #[inline(always)]
    fn check_others(&self, action: Action, sets: &Sets, order: &mut impl Order) -> Result<(), Past> {
        if action.conflicts(self.last.action()) && !order.is_before(self.last) {
            return Err(self.last);
        }
        if self.others == 0 {
            return Ok(());
        }
        for group in &sets.sets[self.others as usize - 1] {
            if action.conflicts(group.one.action())
                && let Some(past) = group.members().find(|&past| !order.is_before(past))
            {
                return Err(past);
            }
        }
        Ok(())
    }

    /// Adds an access that is no plain write.
    #[inline(always)]
    fn add(&mut self, now: Past, action: Action, sets: &mut Sets, order: &impl Order) {
        if self.last.is_some() {
            if !(action.stands_for(self.last.action()) && order.is_plainly_before(self.last)) {
                sets.add(&mut self.others, self.last, now.block);
            } else if self.others != 0 {
                let groups = &mut sets.sets[self.others as usize - 1];
                groups.retain(|group| {
                    !(action.stands_for(group.one.action())
                        && group.members().all(|past| order.is_plainly_before(past)))
                });
                if groups.is_empty() {
                    sets.clear(&mut self.others);
                }
            }
        }
        self.last = now;
    }
}

/// The cells of a page of memory; none as long as nothing accesses it.
#[derive(Default)]
pub(super) struct Page {
    cells: Vec<Cell>,
    shift: u32,
}

thread_local! {
    /// Cells of earlier launches.
    static SPARE: std::cell::RefCell<Vec<Vec<Cell>>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// The granule, as a power of two, that `len` bytes from `start` on are made of.
#[inline(always)]
fn shift_of(start: usize, len: usize) -> u32 {
    (start | len).trailing_zeros().min(MAX_SHIFT)
}

impl Page {
    /// The cells of `len` bytes from `start` on, with the first one's number.
    #[inline(always)]
    pub(super) fn cells(&mut self, start: usize, len: usize, sets: &mut Sets) -> &mut [Cell] {
        let shift = shift_of(start, len);
        if self.cells.is_empty() || shift < self.shift {
            self.refine(shift, sets);
        }
        &mut self.cells[start >> self.shift..(start + len) >> self.shift]
    }

    /// The last plain write before the byte at `end` in this page, with its byte.
    pub(super) fn writer_before(&self, end: usize) -> Option<(usize, Past)> {
        let cells = self.cells.iter().take(end >> self.shift).enumerate().rev();
        cells.filter_map(|(i, cell)| Some((i << self.shift, cell.writer()?))).next()
    }

    #[cold]
    fn refine(&mut self, shift: u32, sets: &mut Sets) {
        let mut cells = SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten().unwrap_or_default();
        let count = PAGE >> shift;
        cells.clear();
        if self.cells.is_empty() {
            cells.resize(count, Cell::NONE);
        } else {
            let parts = 1 << (self.shift - shift);
            for &cell in &self.cells {
                cells.push(cell);
                for _ in 1..parts {
                    cells.push(Cell { others: sets.copy(cell.others), ..cell });
                }
            }
        }
        self.shift = shift;
        keep(std::mem::replace(&mut self.cells, cells));
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        keep(take(&mut self.cells));
    }
}

fn keep(cells: Vec<Cell>) {
    if cells.capacity() == 0 {
        return;
    }
    // A thread that is being torn down keeps none.
    let _ = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        if spare.len() * (PAGE / 4) * size_of::<Cell>() < KEPT_BYTES {
            spare.push(cells);
        }
    });
}

impl Drop for Page {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The pages of a stretch of memory.
#[derive(Default)]
pub(super) struct Pages {
    /// The number of the first page.
    first: usize,
    pages: Vec<Page>,
    pub(super) sets: Sets,
}

impl Pages {
    pub(super) fn new(address: usize, len: usize) -> Self {
        let (first, end) = (address / PAGE, (address + len).div_ceil(PAGE));
        Self { first, pages: (first..end).map(|_| Page::default()).collect(), sets: Sets::default() }
    }

    /// Visits the cells of `len` bytes from `address` on; `visit` gets each with its address.
    #[inline(always)]
    pub(super) fn visit<E>(
        &mut self,
        address: usize,
        len: usize,
        mut visit: impl FnMut(&mut Cell, &mut Sets, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut at = address;
        while at < address + len {
            let (number, start) = (at / PAGE, at % PAGE);
            let part = (address + len - at).min(PAGE - start);
            let page = &mut self.pages[number - self.first];
            let cells = page.cells(start, part, &mut self.sets);
            let granule = part / cells.len();
            for cell in cells {
                visit(cell, &mut self.sets, at)?;
                at += granule;
            }
        }
        Ok(())
    }

    /// The last plain write of the nearest byte before `address` that has one, with its address.
    pub(super) fn writer_before(&self, address: usize) -> Option<(usize, Past)> {
        (self.first..=address / PAGE).rev().find_map(|number| {
            let end = if number == address / PAGE { address % PAGE } else { PAGE };
            let (byte, past) = self.pages[number - self.first].writer_before(end)?;
            Some((number * PAGE + byte, past))
        })
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.pages.iter_mut().for_each(Page::clear);
        self.sets.reset();
    }
}

/// Places in the source, by number.
pub(super) struct Places {
    places: Vec<Place>,
    numbers: HashMap<usize, PlaceId>,
    /// The places seen last, by a few bits of their addresses.
    recent: [(usize, PlaceId); 64],
}

impl Places {
    pub(super) fn new(unknown: Place) -> Self {
        Self { places: vec![unknown], numbers: HashMap::new(), recent: [(0, 0); 64] }
    }

    #[inline(always)]
    pub(super) fn number(&mut self, place: Place) -> PlaceId {
        let address = std::ptr::from_ref(place).addr();
        let slot = address / 8 % 64;
        if self.recent[slot].0 == address { self.recent[slot].1 } else { self.look_up(place, slot) }
    }

    #[cold]
    fn look_up(&mut self, place: Place, slot: usize) -> PlaceId {
        let address = std::ptr::from_ref(place).addr();
        let number = *self.numbers.entry(address).or_insert_with(|| match PlaceId::try_from(self.places.len()) {
            Ok(number) => {
                self.places.push(place);
                number
            }
            Err(_) => 0,
        });
        self.recent[slot] = (address, number);
        number
    }

    pub(super) fn place(&self, number: PlaceId) -> Place {
        self.places[number as usize]
    }
}
