//! Barriers and their votes.

use std::sync::atomic::Ordering::Relaxed;

use super::*;

#[test]
fn barriers_separate_writes_from_reads() {
    for options in modes() {
        for shape in SHAPES {
            let threads = shape.0 * shape.1 * shape.2;
            let memory = atomics(threads as usize);
            go(&options, 1, shape, |cx| {
                let rank = cx.thread_rank();
                for step in 1..=5 {
                    memory[rank as usize].store(step * 1000 + rank, Relaxed);
                    cx.barrier();
                    let other = (rank + step) % threads;
                    assert_eq!(memory[other as usize].load(Relaxed), step * 1000 + other);
                    cx.barrier();
                }
            })
            .unwrap_or_else(|error| panic!("{shape:?}: {error}"));
        }
    }
}

#[test]
fn votes_count_all_threads() {
    for options in modes() {
        for shape in SHAPES {
            let threads = shape.0 * shape.1 * shape.2;
            go(&options, 2, shape, |cx| {
                let rank = cx.thread_rank();
                for modulus in 1..5 {
                    let yes = (0..threads).filter(|rank| rank % modulus == 0).count() as u32;
                    assert_eq!(cx.barrier_count(rank % modulus == 0), yes);
                    assert_eq!(cx.barrier_all(rank % modulus == 0), yes == threads);
                    assert_eq!(cx.barrier_any(rank % modulus == modulus - 1), threads >= modulus);
                    assert!(cx.barrier_all(rank < threads));
                    assert!(!cx.barrier_any(rank >= threads));
                }
            })
            .unwrap_or_else(|error| panic!("{shape:?}: {error}"));
        }
    }
}

#[test]
fn indices_name_every_thread_once() {
    for options in modes() {
        for shape in SHAPES {
            let grid = Dim3::new(3, 2, 2);
            let block = Dim3::from(shape);
            let threads = block.count() as usize;
            let seen = atomics(12 * threads);
            go(&options, grid, shape, |cx| {
                assert_eq!((cx.grid_dim(), cx.block_dim()), (grid, block));
                assert_eq!(block.rank_of(cx.thread_idx()), cx.thread_rank() as u64);
                let rank = grid.rank_of(cx.block_idx()) as usize * threads + cx.thread_rank() as usize;
                seen[rank].fetch_add(1, Relaxed);
            })
            .unwrap();
            assert!(seen.iter().all(|count| count.load(Relaxed) == 1), "{shape:?}");
        }
    }
}
