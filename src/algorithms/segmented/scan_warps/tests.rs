use super::*;
use crate::__private::{KernelInfo, Launch};
use crate::input::{Counting, counting};
use crate::view::LaunchBounds;
use crate::{Device, Dims, Result};

static KERNEL: KernelInfo = KernelInfo::new("ends", "ends", &[], 0, 0, LaunchBounds::NONE);

/// The number of items of the input, and of elements on both sides of the output.
const LEN: usize = 1000;
const GUARD: usize = 16;

/// Returns the result of a block for a segment from `begin` to `end` that the whole block scans, whatever these are. The segments of the
/// block have eight lanes each.
fn of_block(begin: u64, end: u64) -> Result<Vec<u32>> {
    let stream = Device::emulator().stream()?;
    let mut around = stream.buffer_from(&vec![77u32; LEN + 2 * GUARD])?;
    let mut out = around.slice_mut(GUARD..GUARD + LEN)?;
    let dims = Dims::new(1, SEGMENT_SCAN_WARPS_THREADS as u32);
    let mut launch = Launch::new(&stream, &KERNEL, dims.shared_bytes(8 * BOUNDS + 64 + 4 * TOTALS));
    let to = launch.write("out", &mut out)?;
    let body = move |cx: Block<'_>| {
        // SAFETY: the input is computed; the launch has the memory, of which each view has its own.
        let (x, mut out, bounds, words, totals) = unsafe {
            (
                Input::from_raw(cx, counting(1u32, LEN)),
                to.global_mut(cx),
                Shared::<[u64; BOUNDS]>::from_arena(cx, 0),
                Shared::<[u32; WARPS]>::from_arena(cx, 8 * BOUNDS),
                Shared::<[u32; TOTALS]>::from_arena(cx, 8 * BOUNDS + 64),
            )
        };
        let (bounds, of_block) = (bounds.array::<u64>(0, BOUNDS), words.array::<u32>(0, WARPS));
        if cx.thread_rank() == 0 {
            // SAFETY: inside; the others read them after a barrier.
            unsafe {
                bounds.store(0, begin);
                bounds.store(1, end);
                for warp in 0..WARPS {
                    of_block.store(warp, (warp == 0) as u32);
                }
            }
        }
        let segments = BlockSegments {
            lane_bits: 3,
            own: [0, 0],
            of_lanes: true,
            of_warp: 0,
            is_of_block: true,
            of_block,
            bounds,
        };
        let scan = SegmentScan::<Counting<u32>, Add, 4>::new(cx, x, (0, false), Add, &out);
        scan.segments::<8, 4>(&segments, totals.array::<u32>(0, TOTALS), &mut out);
    };
    // SAFETY: the kernel has no parameters.
    unsafe { launch.run(&mut [std::ptr::null_mut()], body)? };
    let found = around.to_vec()?;
    assert!(found[..GUARD].iter().chain(&found[GUARD + LEN..]).all(|&item| item == 77), "{begin}..{end}");
    Ok(found[GUARD..GUARD + LEN].to_vec())
}

/// On a GPU, a lane that finds a wrong offset leaves. Then its block takes old values from shared memory as the ends of the segment.
#[test]
fn no_segment_of_a_block_leads_outside() -> Result<()> {
    let len = LEN as u64;
    for (begin, end) in [
        (0, len),
        (7, 900),
        (0, len + 1),
        (7, len + 1),
        (len - 1, 1 << 40),
        (3, u64::MAX),
        (len + 5, len + 9),
        (u64::MAX - 1, u64::MAX),
        (u64::MAX, 3),
    ] {
        let inside = begin.min(len) as usize..end.min(len) as usize;
        let mut sum = 0;
        let expected: Vec<u32> = (0..LEN)
            .map(|i| {
                let is_inside = inside.contains(&i);
                sum += if is_inside { i as u32 + 1 } else { 0 };
                if is_inside { sum } else { 77 }
            })
            .collect();
        assert!(of_block(begin, end)? == expected, "{begin}..{end}");
    }
    Ok(())
}
