//! Stacks of lanes that are threads: each comes with its thread.

use std::io;

/// A lane's stack.
pub(in crate::emulator) struct LaneStack {
    bytes: usize,
}

impl LaneStack {
    pub(in crate::emulator) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A stack with room for `bytes`.
pub(in crate::emulator) fn take(bytes: usize) -> io::Result<LaneStack> {
    Ok(LaneStack { bytes })
}

/// Gives back stacks that were taken with `bytes`.
pub(in crate::emulator) fn give_back(stacks: impl Iterator<Item = LaneStack>, _bytes: usize) {
    stacks.for_each(drop);
}

/// Notes that a stack that was taken is never given back.
pub(in crate::emulator) fn lose() {}

/// How many more stacks of `bytes` a launch may take to have more blocks resident than it needs.
pub(in crate::emulator) fn room(_bytes: usize) -> usize {
    u32::MAX as usize
}
