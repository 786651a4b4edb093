//! Neighbours: shifts, differences and flags.

use kernel_primitives::block::{
    Border, HaloStorage, adjacent_difference_left, adjacent_difference_left_open, adjacent_difference_right,
    adjacent_difference_right_open, block_broadcast, block_load_halo, block_rotate, block_shift_down, block_shift_up,
    flag_heads, flag_heads_and_tails, flag_tails,
};
use kernel_primitives::functor::Sub;
use kernel_primitives::prelude::*;

use crate::kernels::{Compose, Triangular, Twelve};

/// Of each thread's first item: the one before, after, `by` further, and a thread's; of each item: the function of it and
/// its neighbour, with those beside the tile and without, and whether it begins or ends a run.
#[kernel(max_threads(1024), instantiate(<i32, Sub, 1>, <u8, Sub, 9>, <Triangular, Compose, 4>))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn beside<T: Element + PartialEq, F: BinaryFn<T, T, Output = T> + KernelParam, const N: usize>(
    cx: Block,
    by: u32,
    source: u32,
    x: Global<T>,
    mut moved: GlobalMut<[T; 4]>,
    mut out: GlobalMut<[T; 4], Tiles<N>>,
    mut flags: GlobalMut<[bool; 4], Tiles<N>>,
    f: F,
    mut shared: Shared<NeighbourStorage<T>>,
    mut all: Shared<RotateStorage<T>>,
) {
    for (tile, i) in cx.tiles::<N>(out.len()).zip(cx.items(moved.len())) {
        let mut items = init::<T, N>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        let before = if tile.start() > 0 { Some(x[tile.start() - 1]) } else { None };
        let after = x.get(tile.start() + tile.len());
        let (edge_before, edge_after) = (before.unwrap_or(T::ZERO), after.unwrap_or(T::ZERO));
        let up = block_shift_up(cx, &mut shared, items[0], edge_before);
        let down = block_shift_down(cx, &mut shared, items[0], edge_after);
        let rotated = block_rotate(cx, &mut all, items[0], by);
        moved.set(i, [up, down, rotated, block_broadcast(cx, &mut shared, items[0], source)]);
        let left = adjacent_difference_left(cx, &mut shared, &items, edge_before, f);
        let right = adjacent_difference_right(cx, &mut shared, &items, edge_after, f);
        let left_open = adjacent_difference_left_open(cx, &mut shared, &items, f);
        let right_open = adjacent_difference_right_open(cx, &mut shared, &items, f);
        let results: [[T; 4]; N] = core::array::from_fn(|i| [left[i], right[i], left_open[i], right_open[i]]);
        write_data(cx, out.tile(tile), &results);
        let differs = |a: T, b: T| a != b;
        let heads = flag_heads(cx, &mut shared, &items, before, differs);
        let tails = flag_tails(cx, &mut shared, &items, after, differs);
        let (open_heads, open_tails) = flag_heads_and_tails(cx, &mut shared, &items, None, None, differs);
        let results: [[bool; 4]; N] = core::array::from_fn(|i| [heads[i], tails[i], open_heads[i], open_tails[i]]);
        write_data(cx, flags.tile(tile), &results);
    }
}

/// Writes the elements of a window of a matrix.
#[kernel(max_threads(1024), instantiate(<u8>, <Twelve>))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn window<T: Element>(
    cx: Block,
    extents: [u32; 2],
    first: [i32; 2],
    window: [u32; 2],
    border: u32,
    outside: T,
    x: Global<T>,
    mut out: GlobalMut<T>,
    mut shared: Shared<HaloStorage<T, 512>>,
) {
    let border = match border {
        0 => Border::Clamp,
        1 => Border::Periodic,
        2 => Border::Mirror,
        3 => Border::Symmetric,
        _ => Border::Constant(outside),
    };
    let (extents, window) = (extents.map(|extent| extent as usize), window.map(|extent| extent as usize));
    // The storage is used again. The elements of the first window are replaced.
    for down in [1, 0] {
        let first = [first[0] as isize + down, first[1] as isize];
        let elements = block_load_halo(cx, &mut shared, x, extents, first, window, border);
        for i in cx.items(out.len()) {
            out.set(i, elements.at([i.index() / window[1], i.index() % window[1]]));
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub use host::subjects;

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    use kernel_primitives::functor::{BinaryFn, Sub};

    use super::{beside, window};
    use crate::case::{Case, Lengths};
    use crate::data::items;
    use crate::items::Item;
    use crate::kernels::{Compose, Triangular, Twelve};
    use crate::shape::{Shape, blocks, tiles};
    use crate::subject::{Subject, exact, subject};

    const COVERS: &[&str] = &[
        "block_shift_up",
        "block_shift_down",
        "block_rotate",
        "block_broadcast",
        "adjacent_difference_left",
        "adjacent_difference_right",
        "adjacent_difference_left_open",
        "adjacent_difference_right_open",
        "flag_heads",
        "flag_tails",
        "flag_heads_and_tails",
    ];

    /// Returns the length of whole tiles of a block.
    fn len(case: &Case, items: usize) -> usize {
        Shape::of(case, 1024).threads() * items * tiles(case)
    }

    /// Returns the distance of a rotation, and the thread whose value all threads get.
    fn moves(case: &Case) -> [usize; 2] {
        let threads = Shape::of(case, 1024).threads();
        [case.param(27).below(2 * threads), case.param(28).below(threads)]
    }

    /// Returns the values that the first items of a tile's threads get, also with those beside the tile.
    fn moved<T: Item>(x: &[T], tile: std::ops::Range<usize>, items: usize, [by, source]: [usize; 2]) -> Vec<[T; 4]> {
        let own: Vec<T> = x[tile.clone()].iter().step_by(items).copied().collect();
        let before = tile.start.checked_sub(1).map_or(T::ZERO, |i| x[i]);
        let after = x.get(tile.end).copied().unwrap_or(T::ZERO);
        let up = |i: usize| if i > 0 { own[i - 1] } else { before };
        let down = |i: usize| own.get(i + 1).copied().unwrap_or(after);
        (0..own.len()).map(|i| [up(i), down(i), own[(i + by) % own.len()], own[source]]).collect()
    }

    /// A window of a matrix, and the rule for elements outside of the matrix, by number.
    struct Surroundings {
        extents: [usize; 2],
        first: [i32; 2],
        window: [usize; 2],
        border: u32,
    }

    impl Surroundings {
        fn of(case: &Case) -> Self {
            let mut param = case.param(31);
            let columns = 1 + param.below(matrix(case).min(30));
            let extents = [matrix(case) / columns, columns];
            let first = [0; 2].map(|_| param.below(80) as i32 - 40);
            let window = [param.below(17), param.below(31)];
            Self { extents, first, window, border: param.below(5) as u32 }
        }

        /// Returns the elements of the window. Each index is looked up in one period of the endless tensor.
        fn read<T: Item>(&self, x: &[T], outside: T) -> Vec<T> {
            let [rows, columns] = self.extents.map(|extent| {
                let (up, down) = (0..extent, (0..extent).rev());
                match self.border {
                    1 => up.collect::<Vec<_>>(),
                    2 => up.chain(down.skip(1).take(extent.saturating_sub(2))).collect(),
                    3 => up.chain(down).collect(),
                    _ => up.collect(),
                }
            });
            let look_up = |period: &[usize], at: i32| match self.border {
                0 => Some(period[at.clamp(0, period.len() as i32 - 1) as usize]),
                4 => period.get(usize::try_from(at).ok()?).copied(),
                _ => Some(period[at.rem_euclid(period.len() as i32) as usize]),
            };
            let [height, width] = self.window.map(|extent| extent as i32);
            let indices = (0..height).flat_map(|y| (0..width).map(move |column| (y, column)));
            let read = |(y, column): (i32, i32)| {
                let row = look_up(&rows, self.first[0] + y)?;
                Some(x[row * self.extents[1] + look_up(&columns, self.first[1] + column)?])
            };
            indices.map(|index| read(index).unwrap_or(outside)).collect()
        }
    }

    /// Returns the number of elements of a matrix.
    fn matrix(case: &Case) -> usize {
        case.len.max(1)
    }

    pub fn subjects() -> Vec<Subject> {
        let mut all = Vec::new();
        macro_rules! windows {
            ($($name:literal, $t:ty;)*) => {$(
                all.push(subject(
                    &["block_load_halo"],
                    $name,
                    Lengths::near(&[64, 300]).most(1000),
                    |case| (items::<$t>(case, 0, matrix(case)),),
                    |case, (x,)| (exact(Surroundings::of(case).read(x, items::<$t>(&case.fixed(), 1, 1)[0])),),
                    |case, place, (x,), (out,)| {
                        let Surroundings { extents, first, window: size, border } = Surroundings::of(case);
                        let (extents, size) = (extents.map(|extent| extent as u32), size.map(|extent| extent as u32));
                        let (dims, outside) = (Shape::of(case, 1024).dims(blocks(case)), items::<$t>(&case.fixed(), 1, 1)[0]);
                        window::<$t>::launch(place.stream, dims, extents, first, size, border, outside, x.get(), out.exact())
                    },
                ));
            )*};
        }
        windows! {
            "u8, a window", u8;
            "Twelve, a window", Twelve;
        }
        macro_rules! of {
            ($($name:literal, $t:ty, $op:ident, $n:literal, $plain:expr;)*) => {$(
                all.push(subject(
                    COVERS,
                    $name,
                    Lengths::near(&[256]).most(1000),
                    |case| (items::<$t>(case, 0, len(case, $n)),),
                    |case, (x,)| {
                        let tile = Shape::of(case, 1024).threads() * $n;
                        let tiles = (0..x.len()).step_by(tile).map(|first| first..first + tile);
                        let f: fn($t, $t) -> $t = $plain;
                        let zero = <$t as kernel_primitives::Element>::ZERO;
                        let (before, after) = (|i: usize| (i > 0).then(|| x[i - 1]), |i: usize| x.get(i + 1).copied());
                        let (opens, closes) = (|i: usize| i % tile == 0, |i: usize| i % tile == tile - 1);
                        let differences = (0..x.len()).map(|i| {
                            let [left, right] = [before(i), after(i)].map(|other| f(x[i], other.unwrap_or(zero)));
                            [left, right, if opens(i) { x[i] } else { left }, if closes(i) { x[i] } else { right }]
                        });
                        let flags = (0..x.len()).map(|i| {
                            let [head, tail] = [before(i), after(i)].map(|other| other.is_none_or(|other| other != x[i]));
                            [head, tail, head || opens(i), tail || closes(i)]
                        });
                        let (differences, flags) = (differences.collect(), flags.collect());
                        (exact(tiles.flat_map(|tile| moved(x, tile, $n, moves(case))).collect()), exact(differences), exact(flags))
                    },
                    |case, place, (x,), (moved, out, flags)| {
                        let [by, source] = moves(case).map(|number| number as u32);
                        let dims = Shape::of(case, 1024).dims(blocks(case));
                        beside::<$t, $op, $n>::launch(
                            place.stream, dims, by, source, x.get(), moved.exact(), out.exact(), flags.exact(), $op,
                        )
                    },
                ));
            )*};
        }
        of! {
            "i32, Sub, 1", i32, Sub, 1, i32::wrapping_sub;
            "u8, Sub, 9", u8, Sub, 9, u8::wrapping_sub;
            "Triangular, Compose, 4", Triangular, Compose, 4, |a, b| Compose.apply(a, b);
        }
        all
    }
}
