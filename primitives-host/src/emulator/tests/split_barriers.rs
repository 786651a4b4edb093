//! Split barriers, and what nobody may leave out beside them.

use primitives_gpu::view::{Parity, Shared, SplitBarriers};

use super::*;

/// The first warp arrives, the second waits.
fn hand_over(cx: Block<'_>, with_barrier: bool) {
    // SAFETY: the block's memory has no other view.
    let barriers = unsafe { Shared::<SplitBarriers<1>>::from_arena(cx, 0) };
    if cx.thread_rank() == 0 {
        barriers.begin(0, 1);
    }
    if with_barrier {
        cx.barrier();
    }
    if cx.warp() == 0 {
        barriers.arrive(0);
    } else {
        barriers.wait(0, Parity::default());
    }
}

#[test]
fn a_barrier_parts_the_beginning_of_a_split_barrier_from_its_use() {
    for options in [checked(), seeded(17), seeded(18)] {
        go(&options, 2, 64, |cx| hand_over(cx, true)).unwrap();
        let fault = fails(&impatient(&options), 2, 64, |cx| hand_over(cx, false));
        assert!(matches!(fault.diagnosis, Diagnosis::DataRace { .. }), "{fault}");
    }
    // Unchecked, it is as if the barrier were there.
    go(&parallel(), 2, 64, |cx| hand_over(cx, true)).unwrap();
}

/// For lanes that wait for a barrier before it begins.
fn impatient(options: &EmulatorOptions) -> EmulatorOptions {
    EmulatorOptions { deadlock_after: std::time::Duration::from_millis(30), ..options.clone() }
}
