//! Differences, flags, shifts and rotations.

use super::Twelve;
use kernel_primitives::prelude::*;

/// Writes for each thread: the value of the thread before, of the thread after, of the thread `by` further, and of thread 0 or the last.
#[kernel(instantiate(<u8>, <u32>, <Twelve>, <f64>))]
pub fn shifted<T: Element>(
    cx: Block,
    by: u32,
    edge: T,
    x: Global<T>,
    mut out: GlobalMut<[T; 5]>,
    mut shared: Shared<NeighbourStorage<T>>,
    mut all: Shared<RotateStorage<T>>,
) {
    for i in cx.items(out.len()) {
        let up = block_shift_up(cx, &mut shared, x[i], edge);
        let down = block_shift_down(cx, &mut shared, x[i], edge);
        let rotated = block_rotate(cx, &mut all, x[i], by);
        let first = block_broadcast(cx, &mut shared, x[i], 0);
        let last = block_broadcast(cx, &mut shared, x[i], cx.block_threads() - 1);
        out.set(i, [up, down, rotated, first, last]);
    }
}

/// Differences to both sides, with the neighbours' items at the edges and without.
#[kernel(instantiate(<i32, 1>, <i64, 4>, <u16, 9>))]
pub fn differences<T: Number, const N: usize>(
    cx: Block,
    x: Global<T>,
    mut out: GlobalMut<[T; 4], Tiles<N>>,
    mut shared: Shared<NeighbourStorage<T>>,
) {
    for tile in cx.tiles::<N>(out.len()) {
        let mut items = init::<T, N>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        let before = if tile.start() > 0 { x[tile.start() - 1] } else { T::ZERO };
        let end = tile.start() + tile.len();
        let after = x.get(end).unwrap_or(T::ZERO);
        let difference = |a: T, b: T| a.sub(b);
        let left = adjacent_difference_left(cx, &mut shared, &items, before, difference);
        let right = adjacent_difference_right(cx, &mut shared, &items, after, difference);
        let left_open = adjacent_difference_left_open(cx, &mut shared, &items, difference);
        let right_open = adjacent_difference_right_open(cx, &mut shared, &items, difference);
        let all: [[T; 4]; N] = core::array::from_fn(|i| [left[i], right[i], left_open[i], right_open[i]]);
        write_data(cx, out.tile(tile), &all);
    }
}

/// Starts and ends of runs, with the neighbours' items at the edges and without.
#[kernel(instantiate(<u8, 1>, <u32, 4>, <Twelve, 9>))]
pub fn flagged<T: Element + PartialEq, const N: usize>(
    cx: Block,
    x: Global<T>,
    mut out: GlobalMut<[bool; 4], Tiles<N>>,
    mut shared: Shared<NeighbourStorage<T>>,
) {
    for tile in cx.tiles::<N>(out.len()) {
        let mut items = init::<T, N>(T::ZERO);
        read_data(cx, &mut items, x.tile(tile));
        let before = if tile.start() > 0 { Some(x[tile.start() - 1]) } else { None };
        let after = x.get(tile.start() + tile.len());
        let differs = |a: T, b: T| a != b;
        let heads = flag_heads(cx, &mut shared, &items, before, differs);
        let tails = flag_tails(cx, &mut shared, &items, after, differs);
        let (open_heads, open_tails) = flag_heads_and_tails(cx, &mut shared, &items, None, None, differs);
        let all: [[bool; 4]; N] = core::array::from_fn(|i| [heads[i], tails[i], open_heads[i], open_tails[i]]);
        write_data(cx, out.tile(tile), &all);
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod tests {
    use kernel_primitives::{Buffer, Number, Result, Stream};
    use proptest::prelude::any;

    use crate::families::Twelve;
    use crate::families::neighbours as kernels;
    use crate::reference::SHAPES;
    use crate::support::{Arbitrary, any_shape, holds, stream, streams, threads, values};

    type Shape = (u32, u32, u32);

    fn a_block_shifts<T: Arbitrary>(
        stream: &Stream,
        (shape, by, seed): (Shape, u32, u64),
        launch: impl Fn(&Stream, Shape, u32, T, &Buffer<T>, &mut Buffer<[T; 5]>) -> Result<()>,
    ) -> Result<()> {
        let block = threads(shape);
        let (x, edge) = (values::<T>(block * 2, seed), values::<T>(1, 77)[0]);
        let mut out = stream.buffer_zeroed(x.len())?;
        launch(stream, shape, by, edge, &stream.buffer_from(&x)?, &mut out)?;
        let mut expected = Vec::new();
        for block in x.chunks(block) {
            let n = block.len();
            expected.extend((0..n).map(|i| {
                let up = if i > 0 { block[i - 1] } else { edge };
                let down = if i + 1 < n { block[i + 1] } else { edge };
                [up, down, block[(i + by as usize) % n], block[0], block[n - 1]]
            }));
        }
        assert_eq!(out.to_vec()?, expected, "{shape:?} by {by}");
        Ok(())
    }

    fn shifts<T: Arbitrary>(
        streams: Vec<Stream>,
        launch: impl Fn(&Stream, Shape, u32, T, &Buffer<T>, &mut Buffer<[T; 5]>) -> Result<()>,
    ) -> Result<()> {
        for stream in streams {
            for (k, shape) in SHAPES.into_iter().enumerate() {
                a_block_shifts(&stream, (shape, [0, 1, 5, 31, 1000][k % 5], k as u64), &launch)?;
            }
        }
        holds(8, (any_shape(400), 0..900u32, any::<u64>()), |case| a_block_shifts(&stream()?, case, &launch));
        Ok(())
    }

    macro_rules! shifts {
        ($($name:ident: $t:ty, $streams:expr;)*) => {$(
            #[test]
            fn $name() -> Result<()> {
                shifts::<$t>($streams, |stream, shape, by, edge, x, out| {
                    kernels::shifted::<$t>::launch(stream, (1, shape), by, edge, x, out)
                })
            }
        )*};
    }
    shifts! {
        bytes_are_shifted: u8, vec![stream()?];
        sanitize_integers_are_shifted: u32, streams()?;
        elements_of_12_bytes_are_shifted: Twelve, vec![stream()?];
        doubles_are_shifted: f64, vec![stream()?];
    }

    fn differ<T: Arbitrary + Number, const N: usize>(
        launch: impl Fn(&Stream, Shape, &Buffer<T>, &mut Buffer<[T; 4]>) -> Result<()>,
    ) -> Result<()> {
        for stream in streams()? {
            for shape in SHAPES.into_iter().filter(|&shape| threads(shape) <= 256) {
                let tile = threads(shape) * N;
                let x: Vec<T> = values(tile * 3, 8);
                let mut out = stream.buffer_zeroed(x.len())?;
                launch(&stream, shape, &stream.buffer_from(&x)?, &mut out)?;
                let expected: Vec<[T; 4]> = (0..x.len())
                    .map(|i| {
                        let left = x[i].sub(if i > 0 { x[i - 1] } else { T::ZERO });
                        let right = x[i].sub(if i + 1 < x.len() { x[i + 1] } else { T::ZERO });
                        let open_left = if i % tile == 0 { x[i] } else { left };
                        let open_right = if i % tile == tile - 1 { x[i] } else { right };
                        [left, right, open_left, open_right]
                    })
                    .collect();
                assert!(out.to_vec()? == expected, "{shape:?}");
            }
        }
        Ok(())
    }

    #[test]
    fn sanitize_differences_of_an_integer_a_thread() -> Result<()> {
        differ::<i32, 1>(|stream, shape, x, out| kernels::differences::<i32, 1>::launch(stream, (2, shape), x, out))
    }

    #[test]
    fn differences_of_4_longs_a_thread() -> Result<()> {
        differ::<i64, 4>(|stream, shape, x, out| kernels::differences::<i64, 4>::launch(stream, (2, shape), x, out))
    }

    #[test]
    fn differences_of_9_shorts_a_thread() -> Result<()> {
        differ::<u16, 9>(|stream, shape, x, out| kernels::differences::<u16, 9>::launch(stream, (2, shape), x, out))
    }

    fn flags<T: Arbitrary, const N: usize>(
        launch: impl Fn(&Stream, Shape, &Buffer<T>, &mut Buffer<[bool; 4]>) -> Result<()>,
    ) -> Result<()> {
        for stream in streams()? {
            for shape in SHAPES.into_iter().filter(|&shape| threads(shape) <= 256) {
                let tile = threads(shape) * N;
                // There are three values, in runs.
                let few: Vec<T> = values(3, 8);
                let x: Vec<T> = values::<u8>(tile * 3, 9).into_iter().map(|v| few[(v % 3) as usize]).collect();
                let mut out = stream.buffer_zeroed(x.len())?;
                launch(&stream, shape, &stream.buffer_from(&x)?, &mut out)?;
                let expected: Vec<[bool; 4]> = (0..x.len())
                    .map(|i| {
                        let head = i == 0 || x[i - 1] != x[i];
                        let tail = i + 1 == x.len() || x[i + 1] != x[i];
                        [head, tail, head || i % tile == 0, tail || i % tile == tile - 1]
                    })
                    .collect();
                assert!(out.to_vec()? == expected, "{shape:?}");
            }
        }
        Ok(())
    }

    #[test]
    fn flags_of_a_byte_a_thread() -> Result<()> {
        flags::<u8, 1>(|stream, shape, x, out| kernels::flagged::<u8, 1>::launch(stream, (2, shape), x, out))
    }

    #[test]
    fn sanitize_flags_of_4_integers_a_thread() -> Result<()> {
        flags::<u32, 4>(|stream, shape, x, out| kernels::flagged::<u32, 4>::launch(stream, (2, shape), x, out))
    }

    #[test]
    fn flags_of_9_elements_of_12_bytes_a_thread() -> Result<()> {
        flags::<Twelve, 9>(|stream, shape, x, out| kernels::flagged::<Twelve, 9>::launch(stream, (2, shape), x, out))
    }
}
