//! Reads and writes of a block's tile.

use kernel_primitives::io::{
    BroadcastConfig, Window, init_with_data_index, read_data_2d, read_data_bc, read_data_bc_2d, read_data_into,
    read_data_lens, read_data_reduce, write_data_2d, write_data_lens,
};
use kernel_primitives::prelude::*;

use super::Three;

/// Writes the items of a tile, read whole, into a part, beside their index, and with a number of items for each thread that the launch
/// gives.
#[kernel(equal_len(out, numbers, by_lens), instantiate(<u8, 16>, <Three, 3>, <f64, 2>))]
pub fn copied<T: Element, const NX: usize>(
    cx: Block,
    lens: u32,
    x: Global<T>,
    mut out: GlobalMut<T, Tiles<NX>>,
    mut numbers: GlobalMut<u64, Tiles<NX>>,
    mut by_lens: GlobalMut<T, Tiles<NX>>,
) {
    for tile in cx.tiles::<NX>(out.len()) {
        let mut items = init::<T, NX>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        let mut parts = [(T::ZERO, 7u8); NX];
        read_data_into(cx, &mut parts, x.tile(tile), |part| &mut part.0);
        let both = core::array::from_fn(|i| if i % 2 == 0 { items[i] } else { parts[i].0 });
        write_data(cx, out.tile(tile), &both);
        write_data(cx, numbers.tile(tile), &init_with_data_index::<u64, NX>(cx, tile.start()));
        let mut items = init::<T, NX>(T::ZERO);
        read_data_lens(cx, &mut items, x.tile(tile), lens as usize);
        // SAFETY: the number is that of the launch.
        unsafe { write_data_lens(cx, by_lens.tile(tile), &items, lens as usize) };
    }
}

/// A matrix's elements as one row of threads reads them, in all registers of all threads, which the window's rest leaves at
/// −1; what a reduction of its rows or columns reads; and the window written out again.
#[kernel(threads(WIDTH), instantiate(<32>, <7>))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn windows<const WIDTH: usize>(
    cx: Block,
    columns: u32,
    window: [u32; 2],
    kept_reduced: [u32; 2],
    strides: [u32; 3],
    first: u32,
    reduce_last: bool,
    x: Global<i32>,
    mut seen: GlobalMut<[[i64; 3]; 2]>,
    mut reduced: GlobalMut<[[i64; 3]; 2]>,
    mut copy: GlobalMut<i64>,
) {
    let [columns, first] = [columns, first].map(|number| number as usize);
    let [stride_x, kept_stride, reduced_stride] = strides.map(|stride| stride as usize);
    for i in cx.items(seen.len()) {
        let own = Window { columns: window[0] as usize, rows: window[1] as usize, stride_x, stride_y: columns };
        let mut items = [[-1i64; 3]; 2];
        read_data_2d(cx, &mut items, x, own);
        seen.set(i, items);
        // SAFETY: there is one block of one row, whose items are apart.
        unsafe { write_data_2d(cx, &mut copy, 0, &items, own) };
        let index = |kept: usize, reduced: usize| match reduce_last {
            true => kept * columns + reduced,
            false => reduced * columns + kept,
        };
        let mut items = [[-1i64; 3]; 2];
        let [kept, rows] = kept_reduced.map(|number| number as usize);
        let of = Window { columns: kept, rows, stride_x: kept_stride, stride_y: reduced_stride };
        read_data_reduce(cx, &mut items, x, first, index, of, |x| 2 * x as i64, reduce_last);
        reduced.set(i, items);
    }
}

/// Writes an input that is broadcast to the output, by tiles and by rows of threads.
#[kernel(instantiate(<Three, 4>))]
pub fn broadcast<T: Element, const NX: usize>(
    cx: Block,
    x: Global<T>,
    config: BroadcastConfig<u32>,
    long: BroadcastConfig<u64>,
    mut out: GlobalMut<T, Tiles<NX>>,
    mut by_rows: GlobalMut<[T; 4]>,
) {
    let (threads, total) = (cx.block_threads() as usize, out.len());
    for tile in cx.tiles::<NX>(total) {
        let mut items = init::<T, NX>(T::ZERO);
        read_data_bc(cx, &mut items, x, tile.start(), &config, total);
        write_data(cx, out.tile(tile), &items);
    }
    for i in cx.items(by_rows.len()) {
        let mut items = [[T::ZERO; 2]; 2];
        let first = (i.index() - cx.thread_rank() as usize) * 4;
        read_data_bc_2d(cx, &mut items, x, first, &long, total, threads, 2 * threads);
        by_rows.set(i, [items[0][0], items[0][1], items[1][0], items[1][1]]);
    }
}
