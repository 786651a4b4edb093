//! The kernels of `docs/debugging.md`, word for word.

use kernel_primitives::input::Span;
use kernel_primitives::prelude::*;

#[kernel]
pub fn rotate(cx: Block, mut out: GlobalMut<u32>, mut shared: Shared<[u32; 64]>) {
    let rank = cx.thread_rank() as usize;
    shared.set(rank, rank as u32);
    for i in cx.items(out.len()) {
        out.set(i, shared.get((rank + 1) % 64));
    }
}

#[kernel]
pub fn block_sums(cx: Block, x: Global<f32>, mut out: GlobalMut<f32>, mut shared: Shared<ReduceStorage<f32>>) {
    let rank = cx.block_rank() * 64 + cx.thread_rank() as usize;
    let sum = block_reduce(cx, &mut shared, x[rank], Add);
    if cx.thread_rank() == 0 {
        // SAFETY: it should be `cx.block_rank()`.
        unsafe { out.write(0, sum) };
    }
}

#[kernel]
pub fn running_sum(cx: Block, x: Global<f32>, flags: GlobalMut<u32, Atomic>, mut sums: GlobalMut<f32>) {
    let block = cx.block_rank();
    let mut sum = x[block];
    if block > 0 {
        while flags.at(block - 1).load() == 0 {
            cx.spin(20);
        }
        // SAFETY: written before the flag was set. Or was it?
        sum += unsafe { sums.read(block - 1) };
    }
    // SAFETY: this block's, which has one thread.
    unsafe { sums.write(block, sum) };
    flags.at(block).store(1);
}

#[kernel]
pub fn smooth(cx: Block, x: Global<f32>, mut out: GlobalMut<f32>, mut shared: Shared<[f32; 65]>) {
    let rank = cx.thread_rank() as usize;
    shared.set(rank, x[rank]);
    cx.barrier();
    for i in cx.items(out.len()) {
        out.set(i, 0.5 * (shared.get(rank) + shared.get(rank + 1)));
    }
}

#[kernel]
pub fn accumulate(cx: Block, x: Global<f32>, mut out: GlobalMut<f32>) {
    for i in cx.items(x.len()) {
        let sum = out.get(i) + x[i];
        out.set(i, sum);
    }
}

#[kernel]
pub fn reverse_256(cx: Block, x: Input<Span<f32>>, mut out: GlobalMut<f32>, shared: Shared<[f32; 256]>) {
    let (rank, staged) = (cx.thread_rank() as usize, shared.array::<f32>(0, 256));
    // SAFETY: four words for each of 64 threads.
    unsafe { x.copy::<4>(4 * rank, staged, 4 * rank) };
    cx.barrier();
    for i in cx.items(out.len()) {
        // SAFETY: somebody has copied it. But has it arrived?
        out.set(i, unsafe { staged.load(255 - i.index()) });
    }
}

#[kernel]
pub fn reverse_quads(cx: Block, x: Global<f32>, mut out: GlobalMut<[f32; 4]>) {
    for i in cx.items(out.len()) {
        // SAFETY: whole quads, from the first element on. But the first element may be anywhere.
        let [a, b, c, d] = unsafe { x.read_vector(4 * i.index()) };
        out.set(i, [d, c, b, a]);
    }
}

#[kernel]
pub fn differences(cx: Block, x: Global<f32>, mut out: GlobalMut<f32>) {
    for i in cx.items(out.len()) {
        out.set(i, x[i.index() + 1] - x[i]);
    }
}

#[kernel]
pub fn sums_of_halves(cx: Block, x: Global<f32>, mut out: GlobalMut<f32, PerBlock>, mut shared: Shared<[f32; 64]>) {
    let rank = cx.thread_rank() as usize;
    shared.set(rank, x[rank]);
    cx.barrier();
    if rank < 32 {
        let sum = shared.get(rank) + shared.get(rank + 32);
        cx.barrier();
        out.store(sum);
    }
}

#[kernel]
pub fn sum_of_64(cx: Block, x: Global<f32>, mut out: GlobalMut<f32, PerBlock>, mut shared: Shared<[f32; 64]>) {
    let rank = cx.thread_rank() as usize;
    shared.set(rank, x[rank]);
    cx.barrier();
    let mut step = 32;
    while step > 0 {
        if rank < step {
            shared.set(rank, shared.get(rank) + shared.get(rank + step));
            cx.barrier();
        }
        step /= 2;
    }
    out.store(shared.get(0));
}

#[kernel]
pub fn largest_of_pairs(cx: Block, x: Global<u32>, mut out: GlobalMut<u32>) {
    for tile in cx.tiles::<1>(out.len()) {
        let mut item = init::<u32, 1>(0);
        read_data(cx, &mut item, x.tile(tile));
        let other = cx.shuffle_xor(FULL_MASK, item[0], 1, 32);
        write_data(cx, out.tile(tile), &[item[0].max(other)]);
    }
}

#[kernel]
pub fn wait_for_all(cx: Block, count: GlobalMut<u32, Atomic>) {
    if cx.thread_rank() == 0 {
        count.at(0).fetch_add(1);
    }
    while count.at(0).load() < cx.grid_blocks() as u32 + 1 {
        cx.spin(100);
    }
}

#[kernel]
pub fn shares(cx: Block, x: Global<i32>, people: Global<i32>, mut out: GlobalMut<i32>) {
    for i in cx.items(out.len()) {
        assert!(x[i] >= 0, "debts are not shared");
        out.set(i, x[i] / people[i]);
    }
}
