use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::__private::{KernelInfo, Launch};
use crate::input::{counting, map};
use crate::view::LaunchBounds;
use crate::{Device, Dims, Result};

static KERNEL: KernelInfo = KernelInfo::new("heads", "heads", &[], 0, 0, LaunchBounds::NONE);

/// Offsets after `first`: 0, so many times 1, and 3.
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

/// The marks of the first four vectors at `first` in tiles that begin so many items before the input, with so many offsets at the second
/// item of the input that is there.
fn marks(empty: u64, lead: usize, first: usize) -> Result<u32> {
    let stream = Device::emulator().stream()?;
    let found = Arc::new(AtomicU32::new(0));
    let to = Arc::clone(&found);
    let body = move |cx: Block<'_>| {
        // SAFETY: the offsets are computed; the launch has the memory.
        let (offsets, shared) = unsafe {
            let first = first.saturating_sub(lead) as u64;
            let offsets = map(counting(0u64, empty as usize + 2), Empty { count: empty, first });
            (Input::from_raw(cx, offsets), Shared::<[u32; 64]>::from_arena(cx, 0))
        };
        let words = shared.array::<u32>(0, 64);
        let place = MarkWords { cx, words, first_word: 0, first, len: 128, lead };
        // SAFETY: a lane's own words, which the others access after they have waited.
        unsafe {
            for word in 0..2 {
                words.store(2 * cx.lane() as usize + word, 0);
            }
            cx.sync_warp(FULL_MASK);
            Offsets { offsets, items: first + 128 }.put::<4>(place);
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

/// Counted in 32 bits, 2^32 of them would be none.
#[test]
fn any_number_of_offsets_at_one_item_is_one_mark() -> Result<()> {
    for empty in [1, 31, 1 << 20, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, 1 << 40] {
        // The items 0, 1 and 3.
        assert_eq!(marks(empty, 0, 0)?, 0b1011, "{empty} empty segments");
    }
    Ok(())
}

/// Vectors of four items have a byte each.
#[test]
fn marks_are_where_the_tile_has_the_items() -> Result<()> {
    assert_eq!(marks(5, 1, 0)?, 0b0001_0000_0110);
    assert_eq!(marks(5, 3, 0)?, 0b0101_0000_1000);
    // The items before the input are before the first tile.
    for first in [128, 1 << 31, (1 << 32) - 128, 1 << 32, 1 << 40] {
        assert_eq!(marks(5, 0, first)?, 0b1011, "{first}");
        assert_eq!(marks(5, 3, first)?, 0b1011, "{first}");
    }
    Ok(())
}
