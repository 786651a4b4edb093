//! Tests windows of two-dimensional data.

use kernel_primitives::element::ConvertTo;
use kernel_primitives::{Result, Stream, f16};

use crate::kernels::io as kernels;
use crate::support::{holds, stream, streams, values};

/// Windows as `[columns, rows, stride_x, stride_y]`: all data, no data, partial windows of each kind, wide steps, and
/// one row.
const WINDOWS: [[u32; 4]; 9] = [
    [64, 3, 16, 64],
    [0, 3, 16, 64],
    [64, 0, 16, 64],
    [37, 2, 16, 64],
    [5, 3, 1, 7],
    [1, 1, 1, 1],
    [64, 3, 21, 100],
    [40, 3, 40, 40],
    [100, 1, 33, 0],
];

macro_rules! two_dimensions {
    ($($name:ident, $written:ident: $t:ty, $u:ty, $w:ty, $nx:literal, $ny:literal, $before:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            let data = values::<$t>(600, 4);
            let check = |stream: &Stream, threads: u32, window: [u32; 4]| -> Result<()> {
                let x = stream.buffer_from(&data)?;
                let mut out = stream.buffer_zeroed::<[[$u; $nx]; $ny]>(threads as usize)?;
                kernels::read_2d::<$t, $u, $nx, $ny>::launch(stream, (1, threads), $before, &x, window, &mut out)?;
                let [columns, rows, stride_x, stride_y] = window.map(|n| n as usize);
                for (thread, found) in out.to_vec()?.iter().enumerate() {
                    for y in 0..$ny {
                        for x in 0..$nx {
                            let column = thread + x * stride_x;
                            let expected = if column < columns && y < rows {
                                ConvertTo::<$u>::convert(data[column + y * stride_y])
                            } else {
                                $before
                            };
                            assert_eq!(found[y][x], expected, "thread {thread} {window:?} [{y}][{x}]");
                        }
                    }
                }
                Ok(())
            };
            for stream in streams()? {
                for threads in [1u32, 7, 33, 64] {
                    WINDOWS.into_iter().try_for_each(|window| check(&stream, threads, window))?;
                }
            }
            let windows = [0..100u32, 0..4, 0..40, 0..160];
            holds(12, (1..100u32, windows), |(threads, window)| check(&stream()?, threads, window));
            Ok(())
        }

        #[test]
        fn $written() -> Result<()> {
            let stream = stream()?;
            for threads in [1u32, 7, 16] {
                // Rows and steps are so far apart that no two items overlap.
                for [columns, rows, stride_x, stride_y] in [[64, 3, 16, 64], [37, 2, 16, 40], [5, 3, 16, 64], [0, 1, 16, 64]] {
                    let mut out = stream.buffer_zeroed::<$w>(300)?;
                    let window = [columns, rows, stride_x, stride_y];
                    kernels::write_2d::<$w, $nx, $ny>::launch(&stream, (1, threads), 11, window, &mut out)?;
                    let mut expected = vec![0u32; 300];
                    for thread in 0..threads {
                        for (y, x) in (0..$ny).flat_map(|y| (0..$nx).map(move |x| (y, x))) {
                            let column = thread + x * stride_x;
                            if column < columns && y < rows {
                                expected[(11 + column + y * stride_y) as usize] = 1000 * thread + 10 * y + x;
                            }
                        }
                    }
                    let expected: Vec<$w> = expected.into_iter().map(|n| n as $w).collect();
                    assert_eq!(out.to_vec()?, expected, "{threads} threads, {window:?}");
                }
            }
            Ok(())
        }
    )*};
}
two_dimensions! {
    sanitize_one_item_is_read_in_a_window, sanitize_one_item_is_written_in_a_window: f32, f64, f32, 1, 1, -1.0;
    rows_are_read_in_a_window, rows_are_written_in_a_window: f32, f32, f32, 1, 3, -1.0;
    columns_are_read_and_converted, columns_are_written_and_converted: i32, f16, u64, 4, 1, f16::NEG_ONE;
    rows_and_columns_are_read_in_a_window, rows_and_columns_are_written_in_a_window: u8, i32, f64, 3, 2, -1;
}

#[test]
fn a_window_that_leaves_the_data_is_a_fault() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_from(&[1.0f32; 10])?;
    let mut out = stream.buffer_zeroed::<[[f64; 1]; 1]>(16)?;
    let result = kernels::read_2d::<f32, f64, 1, 1>::launch(&stream, (1, 16), 0.0, &x, [16, 1, 1, 1], &mut out);
    let error = result.and_then(|()| stream.synchronize()).unwrap_err().to_string();
    let view = if stream.device().is_gpu() { "the view" } else { "`x`" };
    assert!(error.contains(&format!("out of bounds: {view} has 10 elements")), "{error}");
    Ok(())
}
