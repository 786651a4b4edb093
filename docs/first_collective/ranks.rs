use kernel_primitives::prelude::*;
use kernel_primitives::view::SharedStorage;

/// The shared memory of [`block_rank`]: a count for each of a block's warps, which are 32 at most.
pub struct RankStorage;

// SAFETY: words without values, which `block_rank` writes before it reads them.
unsafe impl SharedStorage for RankStorage {
    const BYTES: usize = 32 * size_of::<u32>();
    const ALIGN: usize = align_of::<u32>();
}

/// How many threads of lower rank have `flag`, and how many of the block have, in every thread.
#[inline(always)]
#[track_caller]
pub fn block_rank(cx: Block, shared: &mut Shared<RankStorage>, flag: bool) -> (u32, u32) {
    let votes = cx.ballot(cx.warp_mask(), flag);
    let in_warp = (votes & ((1 << cx.lane()) - 1)).count_ones();

    let counts = shared.array::<u32>(0, 32);
    if cx.lane() == 0 {
        // SAFETY: inside, since there are at most 32 warps; one lane a warp, at the warp's own place.
        unsafe { counts.store(cx.warp() as usize, votes.count_ones()) };
    }
    cx.barrier();
    let (mut before, mut total) = (0, 0);
    for warp in 0..cx.warps() {
        // SAFETY: as above; each warp has written its count before the barrier.
        let count = unsafe { counts.load(warp as usize) };
        if warp < cx.warp() {
            before += count;
        }
        total += count;
    }
    (before + in_warp, total)
}

/// `out[i]`: how many of the elements before `x[i]` that the block visits are not 0.
#[kernel]
pub fn ranks(cx: Block, x: Global<f32>, mut out: GlobalMut<u32>, mut shared: Shared<RankStorage>) {
    let mut before = 0;
    for tile in cx.tiles::<1>(x.len()) {
        let mut item = init::<f32, 1>(0.0);
        read_data(cx, &mut item, x.tile(tile));
        let (rank, total) = block_rank(cx, &mut shared, item[0] != 0.0);
        write_data(cx, out.tile(tile), &[before + rank]);
        before += total;
    }
}
