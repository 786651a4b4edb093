//! Reads and writes of a block's tile.

use kernel_primitives::io::{
    BroadcastConfig, Window, init_with_data_index, read_data_2d, read_data_bc, read_data_bc_2d, read_data_into,
    read_data_lens, read_data_reduce, write_data_2d, write_data_lens,
};
use kernel_primitives::prelude::*;

use crate::kernels::Three;

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

#[cfg(not(target_arch = "nvptx64"))]
pub use host::subjects;

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    use kernel_primitives::__private::Instantiated;
    use kernel_primitives::Dims;
    use kernel_primitives::io::BroadcastConfig;

    use super::{broadcast, copied, windows};
    use crate::case::{Case, Lengths};
    use crate::data::items;
    use crate::items::Item;
    use crate::kernels::Three;
    use crate::shape::{Shape, blocks};
    use crate::subject::{Subject, exact, start_of, subject};

    const COPIES: &[&str] = &[
        "read_data",
        "write_data",
        "init",
        "init_with_data_index",
        "read_data_into",
        "read_data_lens",
        "write_data_lens",
    ];

    const WINDOWS: &[&str] = &["read_data_2d", "write_data_2d", "read_data_reduce"];

    const BROADCASTS: &[&str] = &["read_data_bc", "read_data_bc_2d"];

    pub fn subjects() -> Vec<Subject> {
        let mut all = Vec::new();
        macro_rules! copies {
            ($($name:literal, $t:ty, $items:literal;)*) => {$(
                all.push(subject(
                    COPIES,
                    $name,
                    Lengths::near(&[128 * $items]).most(1000 * $items),
                    |case| (items::<$t>(case, 0, case.len),),
                    |case, (x,)| {
                        let (threads, lens) = (Shape::of(case, 1024).threads(), case.param(35).below($items + 1));
                        let by_lens = x.chunks(threads * $items).enumerate().flat_map(|(n, tile)| {
                            // Places that no thread writes are unchanged.
                            let first = start_of(case.place, 2) + n * threads * $items;
                            let beside = move |i: usize| <$t as Item>::beside(first + i);
                            (0..tile.len()).map(move |i| if i < threads * lens { tile[i] } else { beside(i) })
                        });
                        (exact(x.clone()), exact((0..x.len() as u64).collect()), exact(by_lens.collect()))
                    },
                    |case, place, (x,), (out, numbers, by_lens)| {
                        let (shape, lens) = (Shape::of(case, 1024), case.param(35).below($items + 1) as u32);
                        copied::<$t, $items>::launch(
                            place.stream, shape.dims(blocks(case)), lens, x.get(), out.exact(), numbers.exact(),
                            by_lens.exact(),
                        )
                    },
                ));
            )*};
        }
        copies! { "u8, 16", u8, 16; "Three, 3", Three, 3; "f64, 2", f64, 2; }
        all.push(window::<32, _>("i32, 32"));
        all.push(window::<7, _>("i32, 7"));
        all.push(broadcasts());
        all
    }

    /// A matrix, the window of it that is read and copied, and the part of it that is read for a reduction.
    #[derive(Clone, Copy)]
    struct Matrix {
        rows: usize,
        columns: usize,
        window: [usize; 2],
        kept_reduced: [usize; 2],
        strides: [usize; 3],
        first: usize,
        reduce_last: bool,
    }

    impl Matrix {
        fn of(case: &Case, width: usize) -> Self {
            let mut param = case.param(36);
            let [rows, columns] = [1 + param.below(40), 1 + param.below(150)];
            let reduce_last = param.below(2) == 0;
            let [most_kept, most_reduced] = if reduce_last { [rows, columns] } else { [columns, rows] };
            let first = param.below(most_reduced + 1);
            Self {
                rows,
                columns,
                window: [param.below(columns + 1), param.below(rows + 1)],
                kept_reduced: [param.below(most_kept + 1), param.below(most_reduced - first + 1)],
                strides: [width + param.below(3), 1 + param.below(50), 1 + param.below(50)],
                first,
                reduce_last,
            }
        }
    }

    fn window<const WIDTH: usize, Tag>(name: &'static str) -> Subject
    where
        windows<WIDTH>: Instantiated<Tag>,
        Tag: 'static,
    {
        let numbers = |numbers: [usize; 2]| numbers.map(|number| number as u32);
        subject(
            WINDOWS,
            name,
            Lengths::near(&[32]).most(100),
            |case| {
                let Matrix { rows, columns, .. } = Matrix::of(case, WIDTH);
                (items::<i32>(case, 0, rows * columns),)
            },
            |case, (x,)| {
                let of = Matrix::of(case, WIDTH);
                let mut copy: Vec<i64> = (0..x.len()).map(|i| i64::beside(start_of(case.place, 2) + i)).collect();
                let each = |item: &mut dyn FnMut(usize, usize, usize) -> i64| -> Vec<[[i64; 3]; 2]> {
                    (0..WIDTH).map(|t| [0, 1].map(|row| [0, 1, 2].map(|i| item(t, row, i)))).collect()
                };
                let seen = each(&mut |thread, row, i| {
                    let column = thread + i * of.strides[0];
                    if column >= of.window[0] || row >= of.window[1] {
                        return -1;
                    }
                    let at = row * of.columns + column;
                    copy[at] = x[at].into();
                    copy[at]
                });
                let reduced = each(&mut |thread, row, i| {
                    let (own_kept, own_reduced) = if of.reduce_last { (0, thread) } else { (thread, 0) };
                    let (kept, reduced) = (own_kept + i * of.strides[1], own_reduced + row * of.strides[2]);
                    if kept >= of.kept_reduced[0] || reduced >= of.kept_reduced[1] {
                        return -1;
                    }
                    let reduced = of.first + reduced;
                    let (row, column) = if of.reduce_last { (kept, reduced) } else { (reduced, kept) };
                    2 * i64::from(x[row * of.columns + column])
                });
                (exact(seen), exact(reduced), exact(copy))
            },
            move |case, place, (x,), (seen, reduced, copy)| {
                let of = Matrix::of(case, WIDTH);
                let strides = of.strides.map(|stride| stride as u32);
                windows::<WIDTH>::launch(
                    place.stream,
                    (1, WIDTH as u32),
                    of.columns as u32,
                    numbers(of.window),
                    numbers(of.kept_reduced),
                    strides,
                    of.first as u32,
                    of.reduce_last,
                    x.get(),
                    seen.exact(),
                    reduced.exact(),
                    copy.exact(),
                )
            },
        )
    }

    /// Returns the shapes of an output and of an input that is broadcast to it.
    fn shapes(case: &Case) -> (Vec<usize>, Vec<usize>) {
        let mut param = case.param(37);
        let output: Vec<usize> = (0..1 + param.below(4)).map(|_| 1 + param.below(9)).collect();
        let input = output.iter().map(|&extent| if param.below(2) == 0 { 1 } else { extent }).collect::<Vec<_>>();
        let missing = param.below(output.len());
        (output, input[missing..].to_vec())
    }

    fn broadcasts() -> Subject {
        let total = |case: &Case| shapes(case).0.iter().product::<usize>();
        subject(
            BROADCASTS,
            "Three, 4",
            Lengths::near(&[32]).most(100),
            |case| (items::<Three>(case, 0, shapes(case).1.iter().product()),),
            move |case, (x,)| {
                let (output, input) = shapes(case);
                // Items are numbered by coordinates, the fastest first.
                let item = |mut index: usize| {
                    let (mut at, mut stride) = (0, 1);
                    for (axis, &extent) in output.iter().rev().enumerate() {
                        let own = input.iter().rev().nth(axis).copied().unwrap_or(1);
                        at += if own == 1 { 0 } else { index % extent * stride };
                        (index, stride) = (index / extent, stride * own);
                    }
                    x[at]
                };
                let (total, threads) = (total(case), Shape::of(case, 256).threads());
                let rows = total.div_ceil(4 * threads) * threads;
                let of_thread = |i: usize| {
                    let first = i / threads * 4 * threads + i % threads;
                    let zero = <Three as kernel_primitives::Element>::ZERO;
                    [0, 1, 2, 3].map(|n| first + n * threads).map(|at| if at < total { item(at) } else { zero })
                };
                (exact((0..total).map(item).collect()), exact((0..rows).map(of_thread).collect()))
            },
            |case, place, (x,), (out, by_rows)| {
                let (output, input) = shapes(case);
                let config = BroadcastConfig::new(&output, &input).expect("the shapes fit");
                let long = BroadcastConfig::new(&output, &input).expect("the shapes fit");
                let dims = Dims::new(blocks(case) as u32, Shape::of(case, 256).threads() as u32);
                broadcast::<Three, 4>::launch(place.stream, dims, x.get(), config, long, out.exact(), by_rows.exact())
            },
        )
    }
}
