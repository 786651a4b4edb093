//! Atomic additions of subnormal floats, as GPUs make them: seen on an H100, `atom.global.add.f32` flushes and `atom.shared.add.f32`
//! does not.

use primitives_gpu::view::{Atomic, GlobalMut, SharedSlice};

use super::*;

/// What an addition leaves in global and in shared memory.
fn sums(element: f32, value: f32) -> [f32; 2] {
    let global = AtomicU32::new(element.to_bits());
    let shared = AtomicU32::new(0);
    go(&checked(), 1, 1, |cx| {
        // SAFETY: one element, which lives longer than the launch and is accessed by atomics.
        let view = unsafe { GlobalMut::<f32, Atomic>::from_raw(cx, global.as_ptr().cast(), 1) };
        assert_eq!(view.at(0).fetch_add(value).to_bits(), element.to_bits());
        // SAFETY: the block's memory has no other view.
        let arena = unsafe { SharedSlice::<f32>::from_arena(cx, 0) };
        arena.at(0).store(element);
        arena.at(0).fetch_add(value);
        shared.store(arena.at(0).load().to_bits(), std::sync::atomic::Ordering::Relaxed);
    })
    .unwrap();
    [global, shared].map(|bits| f32::from_bits(bits.into_inner()))
}

#[test]
fn subnormal_floats_are_zeros_for_additions_in_global_memory_alone() {
    const SMALLEST: f32 = f32::MIN_POSITIVE;
    let tiny = SMALLEST / 4.0;
    for (element, value, global, shared) in [
        // A result that is subnormal, of numbers that are not.
        (1.5 * SMALLEST, -SMALLEST, 0.0, 0.5 * SMALLEST),
        (-1.5 * SMALLEST, SMALLEST, -0.0, -0.5 * SMALLEST),
        // Subnormal numbers, whose sum is none, or another number than without them.
        (3.0 * tiny, 3.0 * tiny, 0.0, 1.5 * SMALLEST),
        (-tiny, -tiny, -0.0, -2.0 * tiny),
        (SMALLEST, tiny, SMALLEST, 1.25 * SMALLEST),
        (tiny, SMALLEST, SMALLEST, 1.25 * SMALLEST),
        (1.0, 2.0, 3.0, 3.0),
        (f32::INFINITY, tiny, f32::INFINITY, f32::INFINITY),
    ] {
        let found = sums(element, value);
        assert_eq!(found.map(f32::to_bits), [global, shared].map(f32::to_bits), "{element:e} + {value:e}: {found:?}");
    }
}
