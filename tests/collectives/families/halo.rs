//! Windows of tensors in shared memory.

use super::Twelve;
use kernel_primitives::block::{Border, HaloStorage, block_load_halo};
use kernel_primitives::prelude::*;

/// Returns the border with a number.
fn border<T>(number: u32, outside: T) -> Border<T> {
    match number {
        0 => Border::Clamp,
        1 => Border::Periodic,
        2 => Border::Mirror,
        3 => Border::Symmetric,
        _ => Border::Constant(outside),
    }
}

/// Writes the elements of a window, and of the window that begins one index further along each axis, with the same storage.
#[kernel(max_threads(1024), instantiate(<u8>, <u32>, <Twelve>, <f64>))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn windows<T: Element>(
    cx: Block,
    extents: [u32; 3],
    first: [i64; 3],
    window: [u32; 3],
    number: u32,
    outside: T,
    x: Global<T>,
    mut out: GlobalMut<T>,
    mut next: GlobalMut<T>,
    mut shared: Shared<HaloStorage<T, 600>>,
) {
    let (extents, border) = (extents.map(|extent| extent as usize), border(number, outside));
    let window = window.map(|extent| extent as usize);
    let index = |i: usize| [i / (window[1] * window[2]), i / window[2] % window[1], i % window[2]];
    let begin = first.map(|at| at as isize);
    let elements = block_load_halo(cx, &mut shared, x, extents, begin, window, border);
    for i in cx.items(out.len()) {
        out.set(i, elements.at(index(i.index())));
    }
    let begin = first.map(|at| at as isize + 1);
    let elements = block_load_halo(cx, &mut shared, x, extents, begin, window, border);
    for i in cx.items(next.len()) {
        next.set(i, elements.at(index(i.index())));
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod tests {
    use kernel_primitives::simt::{Fault, FaultKind};
    use kernel_primitives::{Buffer, Diagnosis, Error, Result, Stream};
    use proptest::prelude::any;

    use crate::families::Twelve;
    use crate::families::halo as kernels;
    use crate::support::{Arbitrary, any_shape, holds, stream, streams, values};

    type Shape = (u32, u32, u32);

    /// A window of a tensor.
    #[derive(Clone, Copy, Debug)]
    struct Case {
        shape: Shape,
        extents: [u32; 3],
        first: [i64; 3],
        window: [u32; 3],
        border: u32,
    }

    /// Returns the index that is read in place of another one. It applies the rule until the index is inside.
    fn inside(mut at: i64, extent: i64, border: u32) -> Option<i64> {
        while !(0..extent).contains(&at) {
            let low = at < 0;
            at = match border {
                0 => at + if low { 1 } else { -1 },
                1 => at + if low { extent } else { -extent },
                2 if extent == 1 => 0,
                2 if low => -at,
                2 => 2 * extent - 2 - at,
                3 if low => -at - 1,
                3 => 2 * extent - 1 - at,
                _ => return None,
            };
        }
        Some(at)
    }

    fn expected<T: Arbitrary>(case: Case, x: &[T], outside: T, further: i64) -> Vec<T> {
        let Case { extents, first, window, border, .. } = case;
        let mut all = Vec::new();
        for z in 0..window[0] {
            for y in 0..window[1] {
                for column in 0..window[2] {
                    let place = [z, y, column].into_iter().enumerate().try_fold(0, |place, (axis, at)| {
                        let extent = i64::from(extents[axis]);
                        let at = inside(first[axis] + i64::from(at) + further, extent, border)?;
                        Some(place * extent + at)
                    });
                    all.push(place.map_or(outside, |place| x[place as usize]));
                }
            }
        }
        all
    }

    fn loads<T: Arbitrary>(
        stream: &Stream,
        case: Case,
        launch: impl Fn(&Stream, Case, T, &Buffer<T>, [&mut Buffer<T>; 2]) -> Result<()>,
    ) -> Result<()> {
        let elements: u32 = case.extents.iter().product();
        let (x, outside) = (values::<T>(elements as usize, 3), values::<T>(1, 77)[0]);
        let count: u32 = case.window.iter().product();
        let [mut out, mut next] = [0; 2].map(|_| stream.buffer_zeroed(count as usize).unwrap());
        launch(stream, case, outside, &stream.buffer_from(&x)?, [&mut out, &mut next])?;
        assert!(out.to_vec()? == expected(case, &x, outside, 0), "{case:?}");
        assert!(next.to_vec()? == expected(case, &x, outside, 1), "{case:?}, further on");
        Ok(())
    }

    fn windows<T: Arbitrary>(
        streams: Vec<Stream>,
        launch: impl Fn(&Stream, Case, T, &Buffer<T>, [&mut Buffer<T>; 2]) -> Result<()>,
    ) -> Result<()> {
        for stream in streams {
            for border in 0..5 {
                // These are a tile with its halo at a corner, in the middle, all around, and far away.
                for (extents, first, window) in [
                    ([1, 20, 30], [0, -1, -2], [1, 10, 20]),
                    ([6, 7, 8], [2, 2, 2], [3, 3, 3]),
                    ([3, 2, 1], [-1, -1, -1], [5, 4, 3]),
                    ([2, 3, 4], [-50, 40, 9], [2, 2, 40]),
                ] {
                    loads(&stream, Case { shape: (32, 2, 1), extents, first, window, border }, &launch)?;
                }
            }
        }
        let strategy = (
            any_shape(300),
            [1..9u32, 1..9, 1..40],
            [-30..30i64, -30..30, -60..60],
            [0..6u32, 0..6, 0..16],
            any::<u32>(),
        );
        holds(40, strategy, |(shape, extents, first, window, border)| {
            loads(&stream()?, Case { shape, extents, first, window, border: border % 5 }, &launch)
        });
        Ok(())
    }

    macro_rules! windows {
        ($($name:ident: $t:ty, $streams:expr;)*) => {$(
            #[test]
            fn $name() -> Result<()> {
                windows::<$t>($streams, |stream, case, outside, x, [out, next]| {
                    let Case { shape, extents, first, window, border } = case;
                    kernels::windows::<$t>::launch(stream, (1, shape), extents, first, window, border, outside, x, out, next)
                })
            }
        )*};
    }
    windows! {
        windows_of_bytes: u8, vec![stream()?];
        sanitize_windows_of_integers: u32, streams()?;
        windows_of_elements_of_12_bytes: Twelve, vec![stream()?];
        windows_of_doubles: f64, vec![stream()?];
    }

    #[test]
    fn windows_that_do_not_fit_are_faults() -> Result<()> {
        let stream = stream()?;
        let x = stream.buffer_zeroed::<u32>(60)?;
        let far = i64::MAX;
        for (extents, first, window, args) in [
            // The windows are larger than the storage, have more elements than can be counted or none, or go past the largest index.
            ([3, 4, 5], 0, [1, 20, 31], [620, 600]),
            ([3, 4, 6], 0, [1, 1, 1], [72, 60]),
            ([3, 0, 5], 0, [1, 1, 1], [0, 60]),
            ([3, 4, 5], far - 1, [1, 1, 2], [far as u64 - 1, 2]),
        ] {
            let first = [0, 0, first];
            let [mut out, mut next] = [0; 2].map(|_| stream.buffer_zeroed(1).unwrap());
            let launched = kernels::windows::<u32>::launch(
                &stream,
                (1, 64),
                extents,
                first,
                window,
                0,
                0,
                &x,
                &mut out,
                &mut next,
            );
            let fault = match launched.and_then(|()| stream.synchronize()) {
                Err(Error::Fault(fault)) => fault.diagnosis,
                other => panic!("no fault: {other:?}"),
            };
            let expected = Fault { kind: FaultKind::BadShape, args };
            assert!(matches!(fault, Diagnosis::Raised(fault) if fault == expected), "{fault:?}");
        }
        Ok(())
    }

    /// The tensors have elements or none, and each border decides the elements outside.
    #[test]
    fn windows_without_elements_read_nothing() -> Result<()> {
        let stream = stream()?;
        for border in 0..5 {
            for (extents, window) in
                [([2, 3, 4], [2, 0, 3]), ([2, 0, 4], [0, 5, 3]), ([0; 3], [0; 3]), ([2, 0, 4], [0, u32::MAX, 1])]
            {
                let elements = extents.iter().product::<u32>() as usize;
                let [x, mut out, mut next] = [elements, 0, 0].map(|len| stream.buffer_zeroed::<u32>(len).unwrap());
                let (first, dims) = ([-1, 2, 5], (1, 64));
                kernels::windows::<u32>::launch(
                    &stream, dims, extents, first, window, border, 9, &x, &mut out, &mut next,
                )?;
                stream.synchronize()?;
            }
        }
        Ok(())
    }

    /// The windows are far from the tensor, where indices are near the limits of their type.
    #[test]
    fn windows_far_away() -> Result<()> {
        let stream = stream()?;
        let (extents, window) = ([1, 1, 5], [1, 1, 4]);
        let x = stream.buffer_from(&[1u32, 2, 3, 4, 5])?;
        for (border, first, expected) in [
            (0, i64::MIN, [1; 4]),
            (0, i64::MAX - 5, [5; 4]),
            // The remainders of the first index by 5, by 8 and by 10 are 2, 0 and 2.
            (1, i64::MIN, [3, 4, 5, 1]),
            (2, i64::MIN, [1, 2, 3, 4]),
            (3, i64::MIN, [3, 4, 5, 5]),
            (4, i64::MIN, [9; 4]),
            (4, i64::MAX - 5, [9; 4]),
        ] {
            let [mut out, mut next] = [0; 2].map(|_| stream.buffer_zeroed(4).unwrap());
            let (first, dims) = ([0, 0, first], (1, 64));
            kernels::windows::<u32>::launch(&stream, dims, extents, first, window, border, 9, &x, &mut out, &mut next)?;
            assert_eq!(out.to_vec()?, expected, "border {border}, {first:?}");
        }
        Ok(())
    }
}
