//! Tests races between threads of a block, between warps, and between blocks.

use kernel_primitives::{Buffer, Diagnosis, Result, Stream};

use super::kernels::races as kernels;
use super::{check_race, diagnose, line, thread};

#[test]
fn a_read_without_a_barrier_after_the_write_is_a_race() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_zeroed(128)?;
        kernels::shared_write_read::launch(stream, (2, 64), right, &mut out)
    };
    diagnose("shared_write_read", launch, |fault, seed| {
        // Thread 0 reads before thread 1 writes.
        let accesses = [("read", [0, 0]), ("write", [0, 1])];
        check_race(fault, seed, "shared_write_read", accesses, "element 1 of `shared`");
        assert!(fault.to_string().starts_with("data race in shared memory in `"), "{fault}");
        assert!(fault.help.as_ref().is_some_and(|help| help.contains("put `cx.barrier()`")), "{fault}");
    })
}

#[test]
fn two_writes_of_one_word_of_shared_memory_are_a_race() -> Result<()> {
    let launch = |stream: &Stream, right| kernels::shared_write_write::launch(stream, (2, 64), right);
    diagnose("shared_write_write", launch, |fault, seed| {
        let accesses = [("write", [0, 0]), ("write", [0, 1])];
        check_race(fault, seed, "shared_write_write", accesses, "element 0 of `shared`");
    })
}

#[test]
fn a_write_without_a_barrier_after_the_read_is_a_race() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_zeroed(128)?;
        kernels::shared_read_write::launch(stream, (2, 64), right, &mut out)
    };
    diagnose("shared_read_write", launch, |fault, seed| {
        // Thread 63 reaches the barrier last and continues first. It reads the element that thread 0 writes after that.
        let accesses = [("read", [0, 63]), ("write", [0, 0])];
        check_race(fault, seed, "shared_read_write", accesses, "element 0 of `shared`");
    })
}

#[test]
fn races_are_found_by_the_byte() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_zeroed(64)?;
        kernels::shared_bytes::launch(stream, (1, 64), right, &mut out)
    };
    diagnose("shared_bytes", launch, |fault, seed| {
        let accesses = [("read", [0, 0]), ("write", [0, 1])];
        check_race(fault, seed, "shared_bytes", accesses, "element 1 of `shared`");
    })
}

#[test]
fn lanes_of_a_warp_race_without_a_warp_barrier_whatever_they_shuffle() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_zeroed(64)?;
        kernels::warp_without_sync::launch(stream, (1, 64), right, &mut out)
    };
    diagnose("warp_without_sync", launch, |fault, seed| {
        // Lane 31 reaches the shuffle last and continues first.
        let accesses = [("write", [0, 30]), ("read", [0, 31])];
        check_race(fault, seed, "warp_without_sync", accesses, "element 30 of `shared`");
        assert!(fault.help.as_ref().is_some_and(|help| help.contains("cx.sync_warp(mask)")), "{fault}");
    })
}

#[test]
fn a_warp_barrier_orders_the_lanes_of_its_mask_only() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_zeroed(32)?;
        kernels::warp_wrong_mask::launch(stream, (1, 32), right, &mut out)
    };
    diagnose("warp_wrong_mask", launch, |fault, seed| {
        let Diagnosis::DataRace { earlier, .. } = &fault.diagnosis else { panic!("{fault}") };
        assert_eq!(earlier.thread.x ^ fault.thread.x, 16, "{fault}");
        // The lower half continues before the upper half begins.
        let accesses = [("read", [0, 0]), ("write", [0, 16])];
        check_race(fault, seed, "warp_wrong_mask", accesses, "element 16 of `shared`");
    })
}

#[test]
fn an_atomic_races_with_a_plain_read() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_zeroed(2)?;
        kernels::atomic_against_plain::launch(stream, (2, 64), right, &mut out)?;
        assert_eq!(out.to_vec()?, [64, 64]);
        Ok(())
    };
    diagnose("atomic_against_plain", launch, |fault, seed| {
        let accesses = [("atomic update", [0, 63]), ("read", [0, 0])];
        check_race(fault, seed, "atomic_against_plain", accesses, "element 0 of `shared`");
        assert!(fault.help.as_ref().is_some_and(|help| help.contains("atomic")), "{fault}");
    })
}

#[test]
fn two_blocks_that_write_one_element_race() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_zeroed(40)?;
        kernels::blocks_share_an_element::launch(stream, (4, 32), right, out.slice_mut(10..20)?)
    };
    diagnose("blocks_share_an_element", launch, |fault, seed| {
        let accesses = [("write", [0, 0]), ("write", [1, 0])];
        check_race(fault, seed, "blocks_share_an_element", accesses, "element 0 of `out`");
        assert!(fault.to_string().starts_with("data race in global memory in `"), "{fault}");
        assert!(fault.help.as_ref().is_some_and(|help| help.contains("blocks run in no order")), "{fault}");
    })
}

#[test]
fn threads_of_a_block_race_in_global_memory_too() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let mut out = stream.buffer_zeroed(128)?;
        kernels::global_write_read::launch(stream, (2, 64), right, &mut out)
    };
    diagnose("global_write_read", launch, |fault, seed| {
        let accesses = [("read", [0, 0]), ("write", [0, 1])];
        check_race(fault, seed, "global_write_read", accesses, "element 1 of `out`");
    })
}

/// Checks the race of a chain of blocks.
fn check_relay(
    name: &str,
    launch: impl Fn(&Stream, bool, &mut Buffer<u32>, &mut Buffer<u64>) -> Result<()>,
) -> Result<()> {
    let launch = |stream: &Stream, right| {
        let (mut flags, mut sums) = (stream.buffer_zeroed(20)?, stream.buffer_zeroed(20)?);
        launch(stream, right, &mut flags, &mut sums)?;
        let expected: Vec<u64> = (0..20).map(|block| block * (block + 1) / 2).collect();
        assert_eq!(sums.to_vec()?, expected);
        Ok(())
    };
    diagnose(name, launch, |fault, seed| {
        let accesses = [("write", [0, 0]), ("read", [1, 0])];
        check_race(fault, seed, "relay", accesses, "element 0 of `sums`");
    })
}

#[test]
fn a_look_back_needs_a_fence_before_the_flag() -> Result<()> {
    check_relay("look_back_without_fence", |stream, right, flags, sums| {
        kernels::look_back_without_fence::launch(stream, (20, 32), right, flags, sums)
    })
}

#[test]
fn a_look_back_needs_a_fence_after_the_flag() -> Result<()> {
    check_relay("look_back_without_second_fence", |stream, right, flags, sums| {
        kernels::look_back_without_second_fence::launch(stream, (20, 32), right, flags, sums)
    })
}

#[test]
fn a_fence_for_the_block_does_not_reach_another() -> Result<()> {
    check_relay("fence_too_narrow", |stream, right, flags, sums| {
        kernels::fence_too_narrow::launch(stream, (20, 32), right, flags, sums)
    })
}

#[test]
fn a_release_orders_nothing_without_an_acquire() -> Result<()> {
    check_relay("release_without_acquire", |stream, right, flags, sums| {
        kernels::release_without_acquire::launch(stream, (20, 32), right, flags, sums)
    })
}

#[test]
fn an_acquire_orders_nothing_without_a_release() -> Result<()> {
    check_relay("acquire_without_release", |stream, right, flags, sums| {
        kernels::acquire_without_release::launch(stream, (20, 32), right, flags, sums)
    })
}

#[test]
fn the_last_block_sees_what_was_fenced_before_the_count() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let (mut count, mut parts) = (stream.buffer_zeroed(1)?, stream.buffer_zeroed(100)?);
        kernels::last_block::launch(stream, (100, 64), right, &mut count, &mut parts)?;
        assert_eq!(parts.to_vec()?, [2; 100]);
        Ok(())
    };
    diagnose("last_block", launch, |fault, seed| {
        let Diagnosis::DataRace { earlier, .. } = &fault.diagnosis else { panic!("{fault}") };
        assert_eq!(earlier.line, line("last_block write"), "{fault}");
        assert_eq!(fault.line, line("last_block read"), "{fault}");
        assert_ne!(earlier.block, fault.block, "{fault}");
        assert!(seed.is_some() || fault.block == thread(99), "{fault}");
    })
}

#[test]
fn a_lock_orders_what_it_guards_if_it_acquires_and_releases() -> Result<()> {
    let launch = |stream: &Stream, right| {
        let (mut lock, mut count) = (stream.buffer_zeroed(1)?, stream.buffer_zeroed(1)?);
        kernels::locked_counter::launch(stream, (6, 40), right, &mut lock, &mut count)?;
        assert_eq!(count.to_vec()?, [240]);
        Ok(())
    };
    diagnose("locked_counter", launch, |fault, seed| {
        let accesses = [("write", [0, 0]), ("read", [0, 1])];
        check_race(fault, seed, "locked_counter", accesses, "element 0 of `count`");
    })
}
