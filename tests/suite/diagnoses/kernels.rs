//! Kernels with one fault each, and without it if `right`. The comments `at: …` mark the lines that a report names, in
//! the order of the words. The kernels are only for the emulator, and their names differ from those that a `cuda` build
//! compiles to PTX.

pub mod races;

use kernel_primitives::input::Span;
use kernel_primitives::prelude::*;

#[inline(always)]
fn rank(cx: Block<'_>) -> usize {
    cx.thread_rank() as usize
}

/// Returns the next thread of the block.
#[inline(always)]
fn next(cx: Block<'_>) -> usize {
    (rank(cx) + 1) % cx.block_threads() as usize
}

#[kernel]
pub fn shared_unwritten(cx: Block, right: bool, mut out: GlobalMut<u32>, mut shared: Shared<[u32; 128]>) {
    if right || rank(cx) != 5 {
        shared.set(rank(cx), 7); // at: shared_unwritten write
    }
    cx.barrier();
    let value = shared.get(next(cx)); // at: shared_unwritten read
    for i in cx.items(out.len()) {
        out.set(i, value);
    }
}

#[kernel]
pub fn shared_unwritten_atomic(cx: Block, right: bool, mut shared: Shared<[u32; 4]>) {
    if right && rank(cx) == 0 {
        shared.set(2, 0);
    }
    cx.barrier();
    shared.at(2).fetch_add(1); // at: shared_unwritten_atomic read
}

/// Reads all elements.
#[kernel(equal_len(x, out), instantiate(<u8>, <u32>, <f64>))]
pub fn read_all<T: Element>(cx: Block, x: Global<T>, mut out: GlobalMut<T>) {
    for i in cx.items(out.len()) {
        out.set(i, x[i]); // at: read_all read
    }
}

/// Writes every other element, and then reads all elements.
#[kernel]
pub fn write_half(cx: Block, right: bool, mut out: GlobalMut<u32>) {
    for i in cx.items(out.len()) {
        if right || i.index() % 2 == 0 {
            out.set(i, 1);
        }
        let value = out.get(i); // at: write_half read
        out.set(i, value);
    }
}

#[kernel]
pub fn misaligned_vector(cx: Block, right: bool, x: Global<f32>, mut out: GlobalMut<f32>) {
    if rank(cx) == 5 {
        // SAFETY: element 4 of a buffer is aligned to 16 bytes; element 3 is not.
        let items = unsafe { x.read_vector::<4>(if right { 4 } else { 3 }) }; // at: misaligned_vector read
        // SAFETY: as above, and only this thread writes it.
        unsafe { out.write_vector(0, &items) };
    }
}

#[kernel]
pub fn misaligned_complex(cx: Block, right: bool, x: Global<Complex<f32>>, mut out: GlobalMut<Complex<f32>>) {
    if rank(cx) == 5 {
        if right {
            // SAFETY: only this thread writes it.
            unsafe { out.write(0, x[0]) };
            return;
        }
        // SAFETY: an element of the slice is 4 bytes after a boundary of 8.
        let [item] = unsafe { x.read_vector::<1>(0) }; // at: misaligned_complex read
        // SAFETY: as above.
        unsafe { out.write(0, item) };
    }
}

#[kernel]
pub fn misaligned_vector_write(cx: Block, right: bool, mut out: GlobalMut<f32>) {
    if rank(cx) == 5 {
        // SAFETY: only this thread writes it; element 2 is aligned to 8 bytes.
        unsafe { out.write_vector(if right { 2 } else { 1 }, &[1.0, 2.0]) }; // at: misaligned_vector_write write
    }
}

#[kernel]
pub fn out_of_bounds(cx: Block, right: bool, x: Global<f32>, mut out: GlobalMut<f32>) {
    for i in cx.items(out.len()) {
        let index = if right { i.index() } else { i.index() + 1 };
        out.set(i, x[index]); // at: out_of_bounds read
    }
}

/// Breaks the rules of the unsafe access that `how` names.
#[kernel]
pub fn outside_by_contract(
    cx: Block,
    right: bool,
    how: u32,
    x: Input<Span<u32>>,
    mut out: GlobalMut<u32>,
    shared: Shared<[u32; 8]>,
) {
    if rank(cx) != 5 {
        return;
    }
    let first = if right { 56 } else { 61 + how as usize % 2 * 3 };
    let staged = shared.array::<u32>(0, 8);
    // SAFETY: 56 to 60 are inside and aligned. The others are the mistakes that the test needs.
    unsafe {
        let items = match how {
            0 => x.items_inside::<4>(first),  // at: outside_by_contract 0
            1 => x.vector_inside::<4>(first), // at: outside_by_contract 1
            2 => x.items_inside::<1>(if right { 63 } else { 1 << 40 }).map(|x| [x; 4])[0], // at: outside_by_contract 2
            3 => {
                x.copy_vector_inside::<4>(first, staged, 0); // at: outside_by_contract 3
                x.wait_for_copies();
                staged.load_items::<4>(0)
            }
            _ => [1; 4],
        };
        match how {
            5 => out.write_vector_inside(first, &items), // at: outside_by_contract 5
            6 => out.write_unchecked(first + 3, 1),      // at: outside_by_contract 6
            _ => {
                out.write_items(0, &items);
            }
        }
    }
}

/// Reads a vector that is aligned only if `right`.
#[kernel]
pub fn misaligned_by_contract(cx: Block, right: bool, x: Input<Span<u32>>, mut out: GlobalMut<u32>) {
    if rank(cx) == 5 {
        // SAFETY: 4 to 8 are inside, and aligned; 3 to 7 are not.
        let items = unsafe { x.vector_inside::<4>(if right { 4 } else { 3 }) }; // at: misaligned_by_contract read
        // SAFETY: only this thread writes it.
        unsafe { out.write_items(0, &items) };
    }
}

#[kernel]
pub fn partial_barrier(cx: Block, right: bool) {
    if right || rank(cx) < 40 {
        cx.barrier(); // at: partial_barrier barrier
    }
}

/// Adds in halves. Threads that no longer add skip the loop's barriers.
#[kernel]
pub fn barrier_in_branch(cx: Block, right: bool, mut out: GlobalMut<u32, PerBlock>, mut shared: Shared<[u32; 64]>) {
    shared.set(rank(cx), 1);
    cx.barrier();
    let mut step = 32;
    while step > 0 {
        if rank(cx) < step {
            shared.set(rank(cx), shared.get(rank(cx)) + shared.get(rank(cx) + step)); // at: barrier_in_branch write
            if !right {
                cx.barrier(); // at: barrier_in_branch barrier
            }
        }
        if right {
            cx.barrier();
        }
        step /= 2;
    }
    out.store(shared.get(63) * shared.get(0)); // at: barrier_in_branch read
}

/// Has a barrier in a branch, too, but the other threads reach a different barrier.
#[kernel]
pub fn two_barriers_in_branches(cx: Block, right: bool, mut shared: Shared<[u32; 64]>) {
    shared.set(rank(cx), 1);
    cx.barrier();
    if rank(cx) < 32 {
        shared.set(rank(cx), 2);
        if !right {
            cx.barrier(); // at: two_barriers_in_branches one
        }
    }
    if right {
        cx.barrier();
    }
    let old = shared.get(rank(cx) % 32);
    if right || rank(cx) >= 32 {
        cx.barrier(); // at: two_barriers_in_branches other
    }
    shared.set(rank(cx), old);
}

/// Has a race. After it, the second thread waits for a value that no thread writes, with or without `spin`.
#[kernel]
pub fn race_before_a_wait(cx: Block, right: bool, spin: bool, mut shared: Shared<[u32; 1]>) {
    if rank(cx) == 0 {
        shared.set(0, 0);
    }
    cx.barrier();
    if right {
        return;
    }
    let is_first = shared.get(0) == 0;
    shared.set(0, 1);
    while !is_first && shared.get(0) == 1 {
        if spin {
            cx.spin(20);
        }
    }
}

/// Reads unwritten memory and has a race, before a barrier that all threads reach.
#[kernel]
pub fn race_after_unwritten(cx: Block, right: bool, out: GlobalMut<u32, Atomic>, mut shared: Shared<[u32; 2]>) {
    if right {
        return;
    }
    if rank(cx) == 0 {
        out.at(0).store(shared.get(0));
    }
    shared.set(1, rank(cx) as u32); // at: race_after_unwritten write
    cx.barrier();
}

/// Has two storages and the rest, and indexes one of them out of bounds.
#[kernel]
pub fn outside_shared(
    cx: Block,
    right: bool,
    which: u32,
    mut out: GlobalMut<u64>,
    _first: Shared<[u8; 3]>,
    mut second: Shared<[u64; 4]>,
    mut rest: SharedSlice<u16>,
) {
    let past = usize::from(!right);
    for i in cx.items(out.len()) {
        out.set(i, 0);
        match which {
            0 => second.set(3 + past, 1), // at: outside_shared 0
            1 => rest.set(9 + past, 1),   // at: outside_shared 1
            // SAFETY: this is the mistake that the test needs.
            2 => unsafe { second.array::<u64>(8, 2).store(1 + past, 1) }, // at: outside_shared 2
            _ => out.set(i, u64::from(rest.get(0))),                      // at: outside_shared unwritten
        }
    }
}

#[kernel]
pub fn outside_a_row(cx: Block, x: Global<f32>, mut out: GlobalMut<f32>) {
    for i in cx.items(out.len()) {
        out.set(i, x.row(1, 3)[i.index()]);
    }
}

#[kernel]
pub fn different_barriers(cx: Block, right: bool) {
    if right || rank(cx) < 40 {
        cx.barrier(); // at: different_barriers one
    } else {
        cx.barrier(); // at: different_barriers other
    }
}

#[kernel]
pub fn divergent_shuffle(cx: Block, right: bool, mut out: GlobalMut<u32>) {
    for i in cx.items(out.len()) {
        if right || cx.lane() < 16 {
            out.set(i, cx.shuffle_xor(FULL_MASK, cx.lane(), 1, 32)); // at: divergent_shuffle shuffle
        }
    }
}

/// Uses a full mask in a warp of eight lanes.
#[kernel]
pub fn absent_lanes(cx: Block, right: bool, mut out: GlobalMut<u32>) {
    for i in cx.items(out.len()) {
        let mask = if right { cx.warp_mask() } else { FULL_MASK };
        out.set(i, cx.ballot(mask, true)); // at: absent_lanes ballot
    }
}

/// Lane 15 reads lane 16, which is not in the mask.
#[kernel]
pub fn shuffle_from_outside(cx: Block, right: bool, mut out: GlobalMut<u32>) {
    for i in cx.items(out.len()) {
        let (mask, lower) = if cx.lane() < 16 { (0x0000_ffff, true) } else { (0xffff_0000, false) };
        let width = if right { 16 } else { 32 };
        if lower {
            out.set(i, cx.shuffle_down(mask, cx.lane(), 1, width)); // at: shuffle_from_outside shuffle
        }
    }
}

#[kernel]
pub fn deadlock(cx: Block, right: bool, flag: GlobalMut<u32, Atomic>) {
    if right && cx.block_rank() == 0 && rank(cx) == 0 {
        flag.at(0).store(1);
    }
    while flag.at(0).load() == 0 {
        cx.spin(100); // at: deadlock spin
    }
}

/// Needs far more stack than a lane has.
#[inline(never)]
fn deep(depth: u32) -> u64 {
    let frame = core::hint::black_box([depth as u64; 32]);
    if depth == 0 { frame[0] } else { deep(depth - 1) + core::hint::black_box(frame)[31] }
}

#[kernel]
pub fn stack_overflow(cx: Block, right: bool) {
    // at: stack_overflow begin
    if rank(cx) == 5 {
        core::hint::black_box(deep(if right { 10 } else { 100_000 }));
    }
}

#[kernel]
pub fn panics(cx: Block, right: bool) {
    assert!(right || rank(cx) != 5, "thread {} of {}", rank(cx), cx.block_threads()); // at: panics panic
}

#[kernel]
pub fn division(cx: Block, right: bool, x: Global<i32>, mut out: GlobalMut<i32>) {
    for i in cx.items(out.len()) {
        let divisor = x[i] + right as i32;
        out.set(i, 100 / divisor); // at: division division
    }
}

#[kernel]
pub fn own_fault(cx: Block, right: bool) {
    if !right && rank(cx) == 5 {
        cx.fault(42); // at: own_fault fault
    }
}
