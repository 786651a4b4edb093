//! Shapes that no block can have.

use kernel_primitives::block::{
    ExchangeStorage, MergeSortStorage, RadixSortStorage, ReduceStorage, ScanStorage, SortStorage, TopKStorage,
    block_merge_sort, block_radix_sort, block_reduce_items, block_sort, block_top_k_of, blocked_to_striped, cumsum,
};
use kernel_primitives::functor::Less;
use kernel_primitives::prelude::*;
use kernel_primitives::warp::warp_sort;

#[kernel]
fn a_group_of_twelve_lanes(cx: Block) {
    let _ = warp_sort::<12, 2, _, _>(cx, &mut [1u32, 2], 24, Less);
}
//~? a group has 1, 2, 4, 8, 16 or 32 lanes

#[kernel]
fn part_of_a_warp(cx: Block, mut shared: Shared<RadixSortStorage<100, 4, u32>>) {
    block_radix_sort(cx, &mut shared, &mut [0; 4], 0..32, Less);
}
//~? a radix sort takes whole warps, at most 32

#[kernel]
fn seventeen_items(cx: Block, mut shared: Shared<RadixSortStorage<32, 17, u32>>) {
    block_radix_sort(cx, &mut shared, &mut [0; 17], 0..32, Less);
}
//~? a radix sort takes 1 to 16 items a thread

#[kernel]
fn seventeen_merged_items(cx: Block, mut shared: Shared<MergeSortStorage<32, 17, u32>>) {
    block_merge_sort(cx, &mut shared, &mut [0; 17], 32 * 17, Less);
}
//~? a merge sort takes 1 to 16 items a thread

#[kernel]
fn three_items_in_a_network(cx: Block, mut shared: Shared<SortStorage<u32, 96>>) {
    block_sort(cx, &mut shared, &mut [0; 3], 96, Less);
}
//~? a sorting network takes 1, 2, 4, 8 or 16 items a thread

#[kernel]
fn the_first_of_one_item(cx: Block, x: Global<u32>, mut shared: Shared<TopKStorage<u32, 64>>) {
    let _ = block_top_k_of::<1, 64, _, _>(cx, &mut shared, x, 1, Less);
}
//~? the first few of many keys take 2, 4, 8 or 16 items a thread

#[kernel]
fn the_first_by_three_items(cx: Block, x: Global<u32>, mut shared: Shared<TopKStorage<u32, 96>>) {
    let _ = block_top_k_of::<3, 96, _, _>(cx, &mut shared, x, 1, Less);
}
//~? the first few of many keys take 2, 4, 8 or 16 items a thread

#[kernel]
fn no_items(cx: Block, mut shared: Shared<ReduceStorage<f32>>) {
    let _ = block_reduce_items(cx, &mut shared, &[], Add);
}
//~? a collective has at least one item a thread

#[kernel]
fn sums_of_no_items(cx: Block, mut shared: Shared<ScanStorage<[u32; 0]>>) {
    let _ = cumsum(cx, &mut shared, [0u32; 0], Add);
}
//~? cumsum::<u32

#[kernel]
fn two_thousand_threads(cx: Block, mut shared: Shared<ExchangeStorage<u8, 2000, 1>>) {
    let _ = blocked_to_striped(cx, &mut shared, &[0; 1]);
}
//~? a block has 1 to 1024 threads

#[derive(Clone, Copy, Element)]
#[repr(C, align(32))]
struct Line([f32; 8]);

#[kernel]
fn elements_of_whole_lines(cx: Block, mut shared: Shared<ExchangeStorage<Line, 32, 1>>) {
    let _ = blocked_to_striped(cx, &mut shared, &[Line([0.0; 8])]);
}
//~? shared memory is aligned to 16 bytes at most

fn main() -> kernel_primitives::Result<()> {
    let stream = kernel_primitives::Device::emulator().stream()?;
    let x = stream.buffer_from(&[1u32])?;
    a_group_of_twelve_lanes::launch(&stream, (1, 32))?;
    part_of_a_warp::launch(&stream, (1, 100))?;
    seventeen_items::launch(&stream, (1, 32))?;
    seventeen_merged_items::launch(&stream, (1, 32))?;
    three_items_in_a_network::launch(&stream, (1, 32))?;
    the_first_of_one_item::launch(&stream, (1, 32), &x)?;
    no_items::launch(&stream, (1, 32))?;
    sums_of_no_items::launch(&stream, (1, 32))?;
    two_thousand_threads::launch(&stream, (1, 32))?;
    elements_of_whole_lines::launch(&stream, (1, 32))
}
