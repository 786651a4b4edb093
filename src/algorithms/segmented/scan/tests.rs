use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::__private::{KernelInfo, Launch};
use crate::input::{counting, map};
use crate::view::LaunchBounds;
use crate::{Device, Dims, Result};

static KERNEL: KernelInfo = KernelInfo::new("heads", "heads", &[], 0, 0, LaunchBounds::NONE);

/// The offsets after `first`: 0, then 1 `empty` times, and then 3.
#[derive(Clone, Copy, Debug, KernelParam)]
#[repr(C)]
struct Empty {
    count: u64,
    first: u64,
}

impl UnaryFn<u64> for Empty {
    type Output = u64;
    fn apply(&self, i: u64) -> u64 {
        let after = match i {
            0 => 0,
            _ if i <= self.count => 1,
            _ => 3,
        };
        self.first + after
    }
}

/// Returns the marks of the first four vectors of a warp's part that begins at the item `first`. There are `empty` offsets at its second
/// item.
fn marks(empty: u64, first: usize) -> Result<u32> {
    let stream = Device::emulator().stream()?;
    let found = Arc::new(AtomicU32::new(0));
    let to = Arc::clone(&found);
    let body = move |cx: Block<'_>| {
        // SAFETY: the offsets are computed; the launch has the memory.
        let (offsets, shared) = unsafe {
            let offsets = map(counting(0u64, empty as usize + 2), Empty { count: empty, first: first as u64 });
            (Input::from_raw(cx, offsets), Shared::<[u32; 64]>::from_arena(cx, 0))
        };
        let (heads, words) = (shared.array::<u8>(0, 256), shared.array::<u32>(0, 64));
        let part = MarkedPart { cx, start: first, heads, words, first_vector: 0 };
        // SAFETY: a lane's own words, which the others access after they have waited.
        unsafe {
            for word in 0..2 {
                words.store(2 * cx.lane() as usize + word, 0);
            }
            cx.sync_warp(FULL_MASK);
            Offsets { offsets, items: first + 128 }.mark_offsets::<4, 1>(part);
            cx.sync_warp(FULL_MASK);
            if cx.lane() == 0 {
                to.store(words.load(0), Relaxed);
            }
        }
    };
    let launch = Launch::new(&stream, &KERNEL, Dims::new(1, 32).shared_bytes(256));
    // SAFETY: the kernel has no parameters.
    unsafe { launch.run(&mut [std::ptr::null_mut()], body)? };
    Ok(found.load(Relaxed))
}

/// If they were counted in 32 bits, 2^32 empty segments would be none.
#[test]
fn any_number_of_offsets_at_one_item_is_one_mark() -> Result<()> {
    for empty in [1, 31, 1 << 20, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, 1 << 40] {
        // These are the items 0, 1 and 3.
        assert_eq!(marks(empty, 0)?, 0b1011, "{empty} empty segments");
    }
    Ok(())
}

#[test]
fn marks_are_where_the_part_has_the_items() -> Result<()> {
    for first in [128, 1 << 31, (1 << 32) - 128, 1 << 32, 1 << 40] {
        assert_eq!(marks(5, first)?, 0b1011, "{first}");
    }
    Ok(())
}
