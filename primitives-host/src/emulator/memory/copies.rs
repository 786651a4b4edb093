//! Asynchronous copies to shared memory that are under way: until its thread has waited for one, nobody may access what it writes,
//! nor write what it reads.

use std::collections::HashMap;

use primitives_gpu::simt::Place;
use primitives_gpu::simt::emulated::{Access, AccessKind, AsyncCopy, Space};

/// Bytes of a line. A copy has 4, 8 or 16 bytes and is aligned to as many, so that it lies in one line.
const LINE: usize = 16;

/// What a copy writes or reads.
#[derive(Clone, Copy)]
pub(in crate::emulator) struct Begun {
    /// Who began it.
    pub(in crate::emulator) lane: u32,
    /// Where.
    pub(in crate::emulator) place: Place,
    start: usize,
    len: usize,
}

impl Begun {
    /// The first byte that it shares with `len` bytes from `start` on.
    fn meets(&self, start: usize, len: usize) -> Option<usize> {
        let first = self.start.max(start);
        (first < (self.start + self.len).min(start + len)).then_some(first)
    }
}

/// The copies of a block's lanes.
#[derive(Default)]
pub(super) struct Copies {
    under_way: usize,
    /// Where shared memory begins.
    address: usize,
    /// What they write, by the line of shared memory. Made at the first copy.
    to: Vec<Vec<Begun>>,
    /// What they read, by the line.
    from: HashMap<usize, Vec<Begun>>,
}

impl Copies {
    /// Of a block with the shared memory at `address`.
    pub(super) fn new(address: usize) -> Self {
        Self { address, ..Self::default() }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        if self.under_way > 0 {
            self.under_way = 0;
            self.to.iter_mut().for_each(Vec::clear);
            self.from.clear();
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn begin(&mut self, lane: u32, copy: AsyncCopy, place: Place) {
        let AsyncCopy { to, from, bytes } = copy;
        self.under_way += 1;
        let line = (to - self.address) / LINE;
        if self.to.len() <= line {
            self.to.resize_with(line + 1, Vec::new);
        }
        self.to[line].push(Begun { lane, place, start: to, len: bytes });
        self.from.entry(from / LINE).or_default().push(Begun { lane, place, start: from, len: bytes });
    }

    #[cold]
    #[inline(never)]
    pub(super) fn finish(&mut self, lane: u32, copy: AsyncCopy) {
        let AsyncCopy { to, from, bytes } = copy;
        let remove = |copies: &mut Vec<Begun>, start| {
            let at = copies.iter().position(|copy| (copy.lane, copy.start, copy.len) == (lane, start, bytes));
            if let Some(at) = at {
                copies.swap_remove(at);
            }
        };
        self.under_way = self.under_way.saturating_sub(1);
        if let Some(line) = self.to.get_mut((to - self.address) / LINE) {
            remove(line, to);
        }
        if let Some(line) = self.from.get_mut(&(from / LINE)) {
            remove(line, from);
            if line.is_empty() {
                self.from.remove(&(from / LINE));
            }
        }
    }

    /// The copy that an access comes too early for, with the first byte where the two meet.
    #[inline(always)]
    pub(super) fn disturbed_by(&self, access: Access) -> Option<(Begun, usize)> {
        if self.under_way == 0 { None } else { self.find(access) }
    }

    #[inline(never)]
    fn find(&self, access: Access) -> Option<(Begun, usize)> {
        let Access { kind, space, address, len } = access;
        if space == Space::Global && matches!(kind, AccessKind::Read | AccessKind::AtomicRead(..)) {
            return None;
        }
        (address / LINE..(address + len).div_ceil(LINE)).find_map(|line| {
            let copies = match space {
                Space::Shared => self.to.get(line - self.address / LINE),
                Space::Global => self.from.get(&line),
            };
            copies?.iter().find_map(|&copy| Some((copy, copy.meets(address, len)?)))
        })
    }
}
