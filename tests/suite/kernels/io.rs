//! Kernels that move data.

use super::{Flagged, Sixteen, Twelve};
use kernel_primitives::functor::{Cast, Neg, compose};
use kernel_primitives::io::{
    BroadcastConfig, FastDivMod, IndexInt, Window, init_with_data_index, read_data_2d, read_data_bc, read_data_bc_2d,
    read_data_lens, read_data_reduce, write_data_2d, write_data_lens,
};
use kernel_primitives::prelude::*;
use kernel_primitives::view::Rows;

/// `out = x`, tile by tile.
#[kernel(equal_len(x, out), instantiate(
    <f32, 1>, <f32, 2>, <f32, 4>, <f32, 8>, <f32, 3>, <f64, 1>, <f64, 2>, <f64, 4>, <f64, 8>, <f64, 3>,
    <f16, 1>, <f16, 2>, <f16, 4>, <f16, 8>, <f16, 3>, <bf16, 1>, <bf16, 2>, <bf16, 4>, <bf16, 8>, <bf16, 3>,
    <i32, 1>, <i32, 2>, <i32, 4>, <i32, 8>, <i32, 3>, <u32, 1>, <u32, 2>, <u32, 4>, <u32, 8>, <u32, 3>,
    <bool, 1>, <bool, 2>, <bool, 4>, <bool, 8>, <bool, 3>, <u8, 1>, <u8, 2>, <u8, 4>, <u8, 8>, <u8, 3>, <u8, 16>,
    <i64, 1>, <i64, 2>, <i64, 4>, <i64, 8>, <i64, 3>, <Twelve, 1>, <Twelve, 2>, <Twelve, 4>, <Twelve, 8>, <Twelve, 3>,
    <Sixteen, 1>, <Sixteen, 2>, <Sixteen, 4>, <Sixteen, 8>, <Sixteen, 3>, <Flagged, 1>, <Flagged, 4>, <[u8; 3], 4>,
    <i8, 16>, <i16, 8>, <u16, 4>, <u64, 2>, <Complex<f32>, 2>, <Complex<f64>, 3>,
))]
pub fn copy<T: Element, const NX: usize>(cx: Block, x: Global<T>, mut out: GlobalMut<T, Tiles<NX>>) {
    for tile in cx.tiles::<NX>(out.len()) {
        let mut items = init::<T, NX>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        write_data(cx, out.tile(tile), &items);
    }
}

/// Reads `x` by one block into registers that hold `before`, and writes all registers.
#[kernel(instantiate(<f32, 1>, <f32, 4>, <f16, 8>, <u8, 3>, <f64, 2>, <Twelve, 2>))]
pub fn read_guarded<T: Element, const NX: usize>(cx: Block, before: T, x: Global<T>, mut out: GlobalMut<T, Tiles<NX>>) {
    for tile in cx.tiles::<NX>(out.len()) {
        let mut items = init::<T, NX>(before);
        read_data(cx, &mut items, x);
        write_data(cx, out.tile(tile), &items);
    }
}

/// `data *= 2`, in place.
#[kernel(instantiate(<f32, 4>, <i32, 1>, <f64, 3>, <u8, 8>))]
pub fn double_tiles<T: Number, const NX: usize>(cx: Block, mut data: GlobalMut<T, Tiles<NX>>) {
    for tile in cx.tiles::<NX>(data.len()) {
        let part = data.tile(tile);
        let mut items = init::<T, NX>(T::ONE);
        part.read(&mut items);
        let items = items.map(|item| item.add(item));
        write_data(cx, part, &items);
    }
}

/// `data *= 2`, in place, item by item.
#[kernel]
pub fn double_items(cx: Block, mut data: GlobalMut<f32>) {
    for i in cx.items(data.len()) {
        let value = data.get(i);
        data.set(i, value + value);
    }
}

/// Counts how often each index is visited as an item.
#[kernel]
pub fn visit_items(cx: Block, visits: GlobalMut<u32, Atomic>) {
    for i in cx.items(visits.len()) {
        visits.at(i.index()).fetch_add(1);
    }
}

/// Counts how often each index is visited in a tile.
#[kernel(instantiate(<1>, <2>, <3>, <4>, <8>))]
pub fn visit_tiles<const NX: usize>(cx: Block, visits: GlobalMut<u32, Atomic>) {
    for tile in cx.tiles::<NX>(visits.len()) {
        for k in 0..NX {
            let inside = cx.thread_rank() as usize * NX + k;
            if inside < tile.len() {
                visits.at(tile.start() + inside).fetch_add(1);
            }
        }
    }
}

/// Writes the number of tiles of `len` elements, the number of elements in them, and the start of the last tile. The
/// elements need no memory.
#[kernel]
pub fn count_tiles(cx: Block, len: u64, mut out: GlobalMut<[u64; 3], PerBlock>) {
    let mut found = [0; 3];
    for tile in cx.tiles::<65536>(len as usize) {
        found = [found[0] + 1, found[1] + tile.len() as u64, tile.start() as u64];
    }
    out.store(found);
}

/// `out[i] = x[start..end].get(i)`, or `none` if there is no such element.
#[kernel]
pub fn get_of_slice(cx: Block, start: u64, end: u64, none: u32, x: Global<u32>, mut out: GlobalMut<u32>) {
    let part = x.slice(start as usize..end as usize);
    for i in cx.items(out.len()) {
        out.set(i, part.get(i.index()).unwrap_or(none));
    }
}

/// Writes the length of `x`, and of its slices by each kind of range.
#[kernel]
pub fn slice_lengths(_cx: Block, x: Global<f64>, mut out: GlobalMut<[u64; 6], PerBlock>) {
    let lengths = [x, x.slice(..), x.slice(2..), x.slice(..3), x.slice(1..=3), x.slice(4..4)];
    out.store(lengths.map(|part| part.len() as u64 + part.is_empty() as u64 * 1000));
}

/// `out[b]` is the rank of block `b`.
#[kernel]
pub fn store_block_ranks(cx: Block, mut out: GlobalMut<u64, PerBlock>) {
    out.store(cx.block_rank() as u64);
}

/// `out[i] = i`, converted to each type.
#[kernel(instantiate(<f32, 4>, <u8, 3>, <i64, 1>, <f16, 8>, <f64, 2>))]
pub fn indices<T: Element, const NX: usize>(cx: Block, mut out: GlobalMut<T, Tiles<NX>>)
where
    usize: ConvertTo<T>,
{
    for tile in cx.tiles::<NX>(out.len()) {
        write_data(cx, out.tile(tile), &init_with_data_index(cx, tile.start()));
    }
}

/// Writes the registers of all threads after [`read_data_2d`]: `out[thread][y][x]`.
#[kernel(instantiate(<f32, f64, 1, 1>, <f32, f32, 1, 3>, <i32, f16, 4, 1>, <u8, i32, 3, 2>))]
pub fn read_2d<T, U, const NX: usize, const NY: usize>(
    cx: Block,
    before: U,
    x: Global<T>,
    window: [u32; 4],
    mut out: GlobalMut<[[U; NX]; NY]>,
) where
    T: Element + ConvertTo<U>,
    U: Element,
{
    for i in cx.items(out.len()) {
        let mut items = [[before; NX]; NY];
        read_data_2d(cx, &mut items, x, to_window(window));
        out.set(i, items);
    }
}

/// Writes `1000 * thread + 10 * y + x` for each of a thread's items, starting at `first`.
#[kernel(instantiate(<f32, 1, 1>, <f32, 1, 3>, <u64, 4, 1>, <f64, 3, 2>))]
pub fn write_2d<U: Element, const NX: usize, const NY: usize>(
    cx: Block,
    first: u32,
    window: [u32; 4],
    mut out: GlobalMut<U>,
) where
    u32: ConvertTo<U>,
{
    let items = core::array::from_fn(|y| core::array::from_fn(|x| 1000 * cx.thread_rank() + 10 * y as u32 + x as u32));
    // SAFETY: the launch has one block of one row, and a window whose items do not overlap.
    unsafe { write_data_2d::<u32, U, _, NX, NY>(cx, &mut out, first as usize, &items, to_window(window)) };
}

fn to_window([columns, rows, stride_x, stride_y]: [u32; 4]) -> Window {
    Window { columns: columns as usize, rows: rows as usize, stride_x: stride_x as usize, stride_y: stride_y as usize }
}

/// `out[i]` is the element of `x` that is broadcast there.
#[kernel(instantiate(<f32, u32, 1>, <f32, u64, 4>, <u8, u32, 16>, <f16, u32, 8>, <Twelve, u64, 2>))]
pub fn broadcast<T: Element, I: IndexInt, const NX: usize>(
    cx: Block,
    x: Global<T>,
    config: BroadcastConfig<I>,
    mut out: GlobalMut<T, Tiles<NX>>,
) {
    for tile in cx.tiles::<NX>(out.len()) {
        let mut items = init::<T, NX>(T::ZERO);
        read_data_bc(cx, &mut items, x, tile.start(), &config, out.len());
        write_data(cx, out.tile(tile), &items);
    }
}

/// Writes the registers of all threads after [`read_data_bc_2d`] has read a whole output.
#[kernel]
pub fn broadcast_2d(
    cx: Block,
    x: Global<u32>,
    config: BroadcastConfig<u32>,
    first: u32,
    total: u32,
    strides: [u32; 2],
    mut out: GlobalMut<[[u32; 3]; 2]>,
) {
    let [stride_x, stride_y] = strides.map(|stride| stride as usize);
    for i in cx.items(out.len()) {
        let mut items = [[u32::MAX; 3]; 2];
        read_data_bc_2d(cx, &mut items, x, first as usize, &config, total as usize, stride_x, stride_y);
        out.set(i, items);
    }
}

/// Writes the registers of all threads after [`read_data_reduce`] has read a matrix of `columns` columns, negated.
#[kernel]
pub fn read_to_reduce(
    cx: Block,
    x: Global<i32>,
    columns: u32,
    first: u32,
    window: [u32; 4],
    reduce_last: bool,
    mut out: GlobalMut<[[i64; 2]; 3]>,
) {
    let columns = columns as usize;
    for i in cx.items(out.len()) {
        let mut items = [[1i64; 2]; 3];
        let index = |kept: usize, reduced: usize| match reduce_last {
            true => kept * columns + reduced,
            false => reduced * columns + kept,
        };
        let window = to_window(window);
        read_data_reduce(
            cx,
            &mut items,
            x,
            first as usize,
            index,
            window,
            compose(Neg, Cast::<i64>::new()),
            reduce_last,
        );
        out.set(i, items);
    }
}

/// `out = x + 1`, with `lens` items for each thread, by one block.
#[kernel]
pub fn increment_lens(cx: Block, lens: u32, x: Global<u32>, mut out: GlobalMut<u32, Tiles<8>>) {
    for tile in cx.tiles::<8>(out.len()) {
        let mut items = init::<u32, 8>(0);
        read_data_lens(cx, &mut items, x.tile(tile), lens as usize);
        // SAFETY: the number is an argument of the launch.
        unsafe { write_data_lens(cx, out.tile(tile), &items.map(|item| item + 1), lens as usize) };
    }
}

/// `out = x + x`. Each row is written in rounds of items, and each item is written twice: first `x`, then `x + x`.
#[kernel(equal_len(x, out), instantiate(<f32, 4>, <f64, 3>, <u8, 16>, <f16, 1>))]
pub fn double_rows<T: Number, const NX: usize>(cx: Block, columns: u32, x: Global<T>, mut out: GlobalMut<T, Rows<NX>>) {
    let columns = columns as usize;
    for row in cx.rows(out.len() / columns) {
        // SAFETY: the number of columns is an argument of the launch.
        let mut to = unsafe { out.row(row, columns) };
        let from = x.row(row.index(), columns);
        let mut round = 0;
        while to.first(round) < to.len() {
            let mut items = init::<T, NX>(T::ZERO);
            from.read_items(to.first(round), &mut items);
            to.set_items(round, &items);
            let mut again = init::<T, NX>(T::ZERO);
            to.get_items(round, &mut again);
            for (item, other) in items.iter_mut().zip(again) {
                *item = item.add(other);
            }
            to.set_items(round, &items);
            round += 1;
        }
    }
}

/// Writes the quotients and the remainders by one divisor.
#[kernel(equal_len(x, out), instantiate(<u32>, <u64>))]
pub fn divided<I: IndexInt + Element>(cx: Block, x: Global<I>, by: FastDivMod<I>, mut out: GlobalMut<[I; 2]>) {
    for i in cx.items(out.len()) {
        let (quotient, remainder) = by.div_mod(x[i]);
        out.set(i, [quotient, remainder]);
    }
}

/// Writes a round of each row, and a tile of each row by warps.
#[kernel]
pub fn write_rounds(
    cx: Block,
    round: usize,
    columns: usize,
    mut out: GlobalMut<u32, Rows<4>>,
    mut by_warps: GlobalMut<u32, Rows<4>>,
) {
    for row in cx.rows(out.len() / columns) {
        // SAFETY: the number of columns is an argument of the launch.
        let mut to = unsafe { out.row(row, columns) };
        to.set_items(round, &[1; 4]);
        to.set_vectors(round, &[[1; 4]; 1]);
        // SAFETY: as above, and no other arrangement was used before.
        let mut to = unsafe { by_warps.row_by_warps::<2>(row, columns) };
        to.set_vectors(round, &[[1; 4]; 2]);
    }
}
