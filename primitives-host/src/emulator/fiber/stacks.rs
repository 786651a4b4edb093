//! Stacks of lanes, reused over blocks and launches.
//!
//! A stack is a mapping of its own with a guard page below, so that a lane that recurses without end meets memory that it
//! cannot touch and not another lane; see `overflow.rs` for what happens then.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use corosensei::stack::{DefaultStack, Stack, StackPointer};

use super::overflow;

/// Stacks that exist at once in the process. Linux grants a process 65530 mappings and a stack takes two.
const LIMIT: usize = 28 * 1024;

/// Stacks that are kept for later launches.
const KEPT: usize = 8 * 1024;

/// Stacks that may be lost: those of lanes that used them up.
const LOSSES: usize = 8 * 1024;

/// How far the tops of stacks are spread, and the step from one to the next: an odd number of cache lines, about what a
/// lane touches between two waits. Mappings begin at pages; if stacks did too, the lanes of a block would push each other
/// out of a few sets of the first-level cache.
const SPREAD: usize = 4096;
const STEP: usize = 11 * 64;

/// A lane's stack.
pub(in crate::emulator) struct LaneStack {
    mapping: DefaultStack,
    /// How far below the mapping's end the stack begins.
    offset: usize,
}

// SAFETY: a part of a stack that has a guard page, with the same lower end. It holds the bytes asked for, because the
// mapping is longer than that by the reserve and by `SPREAD`; the offset keeps the alignment.
unsafe impl Stack for LaneStack {
    #[inline]
    fn base(&self) -> StackPointer {
        // SAFETY: an address inside the mapping, which does not begin at 0.
        unsafe { StackPointer::new_unchecked(self.mapping.base().get() - self.offset) }
    }

    #[inline]
    fn limit(&self) -> StackPointer {
        self.mapping.limit()
    }

    #[cfg(windows)]
    fn teb_fields(&self) -> corosensei::stack::StackTebFields {
        self.mapping.teb_fields()
    }

    #[cfg(windows)]
    fn update_teb_fields(&mut self, stack_limit: usize, guaranteed_stack_bytes: usize) {
        self.mapping.update_teb_fields(stack_limit, guaranteed_stack_bytes);
    }
}

struct Pool {
    /// The size of the stacks kept.
    bytes: usize,
    kept: Vec<LaneStack>,
    /// Stacks that exist: those in use, those kept and those lost.
    live: usize,
    lost: usize,
    /// The offset of the next new stack.
    offset: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { bytes: 0, kept: Vec::new(), live: 0, lost: 0, offset: 0 });

fn pool() -> MutexGuard<'static, Pool> {
    // Nothing panics while it holds the lock; if it did, the counts would still be true.
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A stack with room for `bytes`.
pub(in crate::emulator) fn take(bytes: usize) -> io::Result<LaneStack> {
    let mut pool = pool();
    if pool.lost >= LOSSES {
        return Err(io::Error::other(format!("{LOSSES} lanes of this process have used up their stacks")));
    }
    if pool.bytes == bytes
        && let Some(stack) = pool.kept.pop()
    {
        return Ok(stack);
    }
    pool.live += 1;
    pool.offset = (pool.offset + STEP) % SPREAD;
    let offset = pool.offset;
    drop(pool);
    let mapped = DefaultStack::new(overflow::RESERVE + bytes + SPREAD).and_then(|mapping| {
        overflow::close_reserve(mapping.limit().get())?;
        Ok(LaneStack { mapping, offset })
    });
    if mapped.is_err() {
        self::pool().live -= 1;
    }
    mapped
}

/// Gives back stacks that were taken with `bytes`.
pub(in crate::emulator) fn give_back(stacks: impl Iterator<Item = LaneStack>, bytes: usize) {
    // Declared first, so that it is unmapped after the lock is gone.
    let mut surplus = Vec::new();
    let mut pool = pool();
    if pool.bytes != bytes {
        surplus.append(&mut pool.kept);
        pool.bytes = bytes;
    }
    for stack in stacks {
        if pool.kept.len() < KEPT {
            pool.kept.push(stack);
        } else {
            surplus.push(stack);
        }
    }
    pool.live -= surplus.len();
}

/// Notes that a stack that was taken is never given back.
pub(in crate::emulator) fn lose() {
    pool().lost += 1;
}

/// How many more stacks of `bytes` a launch may take to have more blocks resident than it needs.
pub(in crate::emulator) fn room(bytes: usize) -> usize {
    let pool = pool();
    let kept = if pool.bytes == bytes { pool.kept.len() } else { 0 };
    kept + LIMIT.saturating_sub(pool.live)
}
