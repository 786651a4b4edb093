//! Asynchronous copies to shared memory, and those that nobody has waited for.

use primitives_gpu::GlobalMut;
use primitives_gpu::input::{Input, Span};
use primitives_gpu::view::{RawView, Shared, SharedArray};

use super::*;
use crate::fault::{Accessor, MemoryAction};

const THREADS: u32 = 64;

/// What a kernel that copies has.
struct Parts<'k> {
    cx: Block<'k>,
    rank: usize,
    /// Four words a thread, from 1 on.
    x: Input<'k, Span<u32>>,
    /// The same memory.
    source: GlobalMut<'k, u32>,
    staged: SharedArray<'k, u32>,
}

impl Parts<'_> {
    /// Begins to copy the thread's words.
    #[track_caller]
    fn copy(&self) {
        self.copy_of(self.rank);
    }

    /// Begins to copy the words of a thread.
    #[track_caller]
    fn copy_of(&self, of: usize) {
        // SAFETY: inside, and no other thread's, unless it is what a test is about.
        assert!(unsafe { self.x.copy::<4>(4 * of, self.staged, 4 * of) });
    }

    /// Reads the words of a thread.
    #[track_caller]
    fn read(&self, of: usize) -> [u32; 4] {
        // SAFETY: inside.
        unsafe { self.staged.load_items::<4>(4 * of) }
    }

    #[track_caller]
    fn check(&self, of: usize) {
        assert_eq!(self.read(of), [1, 2, 3, 4].map(|i| i + 4 * of as u32));
    }
}

/// Runs a kernel on words of memory.
#[track_caller]
fn launch(options: &EmulatorOptions, body: impl Fn(Parts<'_>) + Sync) -> Result<(), Error> {
    #[repr(align(16))]
    struct Words([u32; 4 * THREADS as usize]);
    let mut words = Words(std::array::from_fn(|i| i as u32 + 1));
    let view = RawView::new(words.0.as_mut_ptr(), words.0.len());
    go(options, 1, THREADS, |cx| {
        // SAFETY: the memory is there until the launch is over; the block's has no other view.
        let (x, source, shared) = unsafe {
            let source = GlobalMut::from_raw(cx, view.address(), view.len());
            (Input::from_raw(cx, Span::new(view)), source, Shared::<[u32; 4 * THREADS as usize]>::from_arena(cx, 0))
        };
        let staged = shared.array::<u32>(0, 4 * THREADS as usize);
        body(Parts { cx, rank: cx.thread_rank() as usize, x, source, staged });
    })
}

/// Options for an architecture, in several orders.
fn orders(arch: u32) -> [EmulatorOptions; 4] {
    [checked(), seeded(17), seeded(18), seeded(19)].map(|options| EmulatorOptions { arch: Some(arch), ..options })
}

/// Runs a kernel that does not wait as it should, and one that does. From sm_80 the first one has a fault, with these two actions and
/// help; before, copies are made at once, and it has none.
#[track_caller]
fn check(actions: [MemoryAction; 2], help: &str, body: impl Fn(Parts<'_>, bool) + Sync) {
    for arch in [75, 80, 90] {
        for options in orders(arch) {
            launch(&options, |parts| body(parts, true)).unwrap();
            if arch < 80 {
                launch(&options, |parts| body(parts, false)).unwrap();
                continue;
            }
            let Err(Error::Fault(fault)) = launch(&options, |parts| body(parts, false)) else { panic!("sm_{arch}") };
            let Diagnosis::CopyUnderWay { copy: Accessor { action: copy, .. }, action, .. } = &fault.diagnosis else {
                panic!("sm_{arch}: {fault}")
            };
            assert_eq!([*copy, *action], actions, "{fault}");
            assert!(fault.help.as_ref().is_some_and(|text| text.contains(help)), "{fault}");
            assert!(fault.file.ends_with("copies.rs"), "{fault}");
        }
        launch(&EmulatorOptions { arch: Some(arch), ..parallel() }, |parts| body(parts, true)).unwrap();
    }
}

const OWN: &str = "call `wait_for_copies` between the copy and the ";
const OTHER: &str = "call `wait_for_copies`, and put `cx.barrier()` between that and the ";

#[test]
fn a_thread_waits_before_it_reads_what_it_copied() {
    check([MemoryAction::Write, MemoryAction::Read], OWN, |parts, right| {
        parts.copy();
        if right {
            parts.x.wait_for_copies();
        }
        let words = parts.read(parts.rank);
        parts.x.wait_for_copies();
        assert!(!right || words[0] == 4 * parts.rank as u32 + 1);
    });
}

#[test]
fn a_thread_waits_before_it_writes_where_it_copies() {
    check([MemoryAction::Write, MemoryAction::Write], OWN, |parts, right| {
        parts.copy();
        if right {
            parts.x.wait_for_copies();
        }
        // SAFETY: the thread's own.
        unsafe { parts.staged.store(4 * parts.rank + 3, 0) };
        parts.x.wait_for_copies();
    });
}

#[test]
fn a_thread_waits_before_it_copies_to_the_same_place_again() {
    check([MemoryAction::Write, MemoryAction::Write], OWN, |parts, right| {
        parts.copy();
        if right {
            parts.x.wait_for_copies();
        }
        parts.copy();
        parts.x.wait_for_copies();
        parts.check(parts.rank);
    });
}

#[test]
fn a_thread_waits_before_it_writes_what_it_copies() {
    check([MemoryAction::Read, MemoryAction::Write], OWN, |mut parts, right| {
        parts.copy();
        if right {
            parts.x.wait_for_copies();
        }
        // SAFETY: the thread's own.
        unsafe { parts.source.write(4 * parts.rank, 4 * parts.rank as u32 + 1) };
        parts.x.wait_for_copies();
        parts.check(parts.rank);
    });
}

#[test]
fn others_read_after_the_wait_and_a_barrier() {
    check([MemoryAction::Write, MemoryAction::Read], OTHER, |parts, right| {
        parts.copy();
        if right {
            parts.x.wait_for_copies();
        }
        parts.cx.barrier();
        let words = parts.read(THREADS as usize - 1 - parts.rank);
        // Too late, and ordered after the read.
        parts.cx.barrier();
        parts.x.wait_for_copies();
        assert!(!right || words[1] == 4 * (THREADS - 1) - 4 * parts.rank as u32 + 2);
    });
}

/// What others copied stays under way after they have ended.
#[test]
fn others_read_after_a_wait_that_comes_at_all() {
    check([MemoryAction::Write, MemoryAction::Read], OTHER, |parts, right| {
        if parts.rank < 32 {
            parts.copy();
            if right {
                parts.x.wait_for_copies();
            }
        }
        parts.cx.barrier();
        if parts.rank >= 32 {
            let _ = parts.read(parts.rank - 32);
        }
    });
}

#[test]
fn others_write_what_was_copied_after_the_wait_and_a_barrier() {
    check([MemoryAction::Read, MemoryAction::Write], OTHER, |mut parts, right| {
        parts.copy();
        if right {
            parts.x.wait_for_copies();
        }
        parts.cx.barrier();
        let other = THREADS as usize - 1 - parts.rank;
        // SAFETY: of no other thread.
        unsafe { parts.source.write(4 * other, 4 * other as u32 + 1) };
        parts.cx.barrier();
        parts.x.wait_for_copies();
        parts.check(parts.rank);
    });
}

#[test]
fn a_wait_for_all_but_the_last_group_leaves_that_under_way() {
    check([MemoryAction::Write, MemoryAction::Read], OWN, |parts, right| {
        if parts.rank % 2 == 1 {
            return;
        }
        let own = [parts.rank, parts.rank + 1];
        for rank in own {
            parts.copy_of(rank);
            parts.x.group_copies();
        }
        parts.x.wait_for_copies_but_last();
        parts.check(own[0]);
        if right {
            parts.x.wait_for_copies();
        }
        let _ = parts.read(own[1]);
    });
}

/// A barrier after the wait is missing: a race with the copy, which is over.
#[test]
fn others_race_with_a_copy_without_a_barrier_after_the_wait() {
    for arch in [75, 80, 90] {
        for options in orders(arch) {
            let run = |right: bool| {
                launch(&options, |parts| {
                    parts.copy();
                    parts.cx.barrier();
                    parts.x.wait_for_copies();
                    if right || parts.cx.arch() < 800 {
                        parts.cx.barrier();
                    }
                    parts.check(THREADS as usize - 1 - parts.rank);
                })
            };
            run(true).unwrap();
            match run(false) {
                Ok(()) => assert_eq!(arch, 75),
                Err(Error::Fault(fault)) => {
                    let diagnosis = &fault.diagnosis;
                    assert!(
                        matches!(diagnosis, Diagnosis::DataRace { .. } | Diagnosis::CopyUnderWay { .. }),
                        "{fault}"
                    );
                    assert!(fault.help.as_ref().is_some_and(|help| help.contains("cx.barrier()")), "{fault}");
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// A block begins with nothing under way, whatever the block before it in the same memory has left.
#[test]
fn copies_end_with_their_block() {
    for options in orders(90) {
        let words = [7u32; 4];
        let view = RawView::new(words.as_ptr().cast_mut(), 4);
        go(&options, 20, 1, |cx| {
            // SAFETY: as above; nobody writes the words.
            let (x, shared) = unsafe { (Input::from_raw(cx, Span::new(view)), Shared::<[u32; 4]>::from_arena(cx, 0)) };
            let staged = shared.array::<u32>(0, 4);
            // SAFETY: inside.
            unsafe {
                staged.store_items(0, &[cx.block_rank() as u32; 4]);
                assert_eq!(staged.load(3), cx.block_rank() as u32);
                x.copy::<4>(0, staged, 0);
            }
        })
        .unwrap();
    }
}
