//! Kernels for other projects' cases, made of primitives.

use kernel_primitives::functor::Mul;
use kernel_primitives::io::{Window, read_data_2d, write_data_2d};
use kernel_primitives::prelude::*;

/// `out = a · b` of tensors `[outer, rows, columns]`, each with its own strides of outer elements and of rows. A block
/// has one row of threads, and handles whole outer elements.
#[kernel(instantiate(<f32>, <f64>, <f16>, <bf16>))]
pub fn strided_product<T: Number + ConvertTo<T>>(
    cx: Block,
    shape: [u32; 3],
    strides: [[u32; 2]; 3],
    a: Global<T>,
    b: Global<T>,
    mut out: GlobalMut<T>,
) {
    let [outers, rows, columns] = shape.map(|extent| extent as usize);
    let width = cx.block_threads() as usize;
    let mut outer = cx.block_rank();
    while outer < outers {
        for row in (0..rows).step_by(2) {
            for column in (0..columns).step_by(width * 4) {
                let first = |k: usize| {
                    let [outer_stride, row_stride] = strides[k].map(|stride| stride as usize);
                    outer * outer_stride + row * row_stride + column
                };
                let window = |k: usize| Window {
                    columns: columns - column,
                    rows: rows - row,
                    stride_x: width,
                    stride_y: strides[k][1] as usize,
                };
                let (mut x, mut y) = ([[T::ZERO; 4]; 2], [[T::ZERO; 4]; 2]);
                read_data_2d(cx, &mut x, a.slice(first(0)..), window(0));
                read_data_2d(cx, &mut y, b.slice(first(1)..), window(1));
                let products = [elementwise_binary(&x[0], &y[0], Mul), elementwise_binary(&x[1], &y[1], Mul)];
                // SAFETY: the output's rows do not overlap, and each belongs to one block.
                unsafe { write_data_2d(cx, &mut out, first(2), &products, window(2)) };
            }
        }
        outer += cx.grid_blocks();
    }
}

/// `a = a · b`.
#[kernel(equal_len(a, b), instantiate(<f32>, <f64>, <f16>, <bf16>))]
pub fn product_in_place<T: Number>(cx: Block, mut a: GlobalMut<T, Tiles<4>>, b: Global<T>) {
    for tile in cx.tiles::<4>(b.len()) {
        let part = a.tile(tile);
        let (mut x, mut y) = (init::<T, 4>(T::ZERO), init::<T, 4>(T::ZERO));
        part.read(&mut x);
        read_data(cx, &mut y, b.tile(tile));
        write_data(cx, part, &elementwise_binary(&x, &y, Mul));
    }
}

/// Writes the running sums along the second of three dimensions, with strides for input and output. If `reversed`, sums
/// run from the end; if `exclusive`, a sum leaves its own item out. Each block handles whole lines.
#[kernel]
pub fn running_sums(
    cx: Block,
    shape: [u32; 3],
    strides: [[u32; 3]; 2],
    reversed: u32,
    exclusive: u32,
    x: Global<f64>,
    mut out: GlobalMut<f64>,
    mut shared: Shared<ScanStorage<f64>>,
) {
    let [outer, len, inner] = shape.map(|extent| extent as usize);
    let tile = cx.block_threads() as usize * 2;
    let mut line = cx.block_rank();
    while line < outer * inner {
        let mut carry = 0.0;
        for start in (0..len).step_by(tile) {
            let at = |k: usize, i: usize| {
                let place = start + cx.thread_rank() as usize * 2 + i;
                let along = if reversed != 0 { len.wrapping_sub(1 + place) } else { place };
                let [outer_stride, stride, inner_stride] = strides[k].map(|stride| stride as usize);
                (place < len).then(|| line / inner * outer_stride + along * stride + line % inner * inner_stride)
            };
            let items = [0, 1].map(|i| at(0, i).and_then(|index| x.get(index)).unwrap_or(0.0));
            let after = |total: f64| {
                let before = carry;
                carry += total;
                before
            };
            let sums = if exclusive != 0 {
                block_exclusive_scan_after(cx, &mut shared, &items, Add, after)
            } else {
                block_inclusive_scan_after(cx, &mut shared, &items, Add, after)
            };
            for (i, sum) in sums.into_iter().enumerate() {
                if let Some(index) = at(1, i) {
                    // SAFETY: each element of a line belongs to one thread, and each line to one block.
                    unsafe { out.write(index, sum) };
                }
            }
        }
        line += cx.grid_blocks();
    }
}
