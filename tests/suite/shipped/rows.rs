//! Tests the shipped kernels in which each block has whole rows.

use kernel_primitives::functor::{
    AbsMax, All, Any, ArgMax, ArgMin, CountNonzero, L1, L2, LogSumExp, MaxOf, Mean, MinOf, PNorm, Prod, Reduction, Sum,
};
use kernel_primitives::kernels::{
    cumsum_rows, layer_norm_rows, reduce_higher_dim, reduce_row_dims, reduce_rows, row_dims, softmax_rows,
};
use kernel_primitives::{Accumulate, Buffer, Dims, Element, Result, Stream, bf16, f16};
use proptest::prelude::any;

use crate::support::{Arbitrary, Random, SHAPES, any_shape, holds, stream, streams, threads, values};

#[test]
fn blocks_for_rows_have_256_threads_at_most_and_fit_their_rows() {
    for columns in (0usize..300).chain([1024, 1025, 4096, 1 << 40]) {
        for per_thread in [0usize, 1, 4, 8] {
            let needed = columns.div_ceil(per_thread.max(1)).clamp(1, 256) as u32;
            let (width, warps) = (needed.next_power_of_two(), needed.div_ceil(32));
            let height = 256 / width;
            assert_eq!(
                reduce_row_dims(1000, columns, per_thread),
                Dims::new(1000u32.div_ceil(height), (width, height))
            );
            assert_eq!(row_dims(1000, columns, per_thread), Dims::new(1000, 32 * warps));
        }
    }
}

/// An element type of the kernels, which converts to and from `f64`.
trait Value: Accumulate + Copy {
    /// Half a unit in the last place of 1.
    const ROUNDING: f64;
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
}

macro_rules! values {
    ($($t:ty, $bits:literal, $from:expr, $to:expr;)*) => {$(
        impl Value for $t {
            const ROUNDING: f64 = 1.0 / (1u64 << $bits) as f64;
            fn from_f64(value: f64) -> Self { let f: fn(f64) -> $t = $from; f(value) }
            fn to_f64(self) -> f64 { let f: fn($t) -> f64 = $to; f(self) }
        }
    )*};
}
values! {
    f32, 24, |x| x as f32, |x| x.into();
    f64, 53, |x| x, |x| x;
    f16, 11, f16::from_f64, f16::to_f64;
    bf16, 8, bf16::from_f64, bf16::to_f64;
}

/// Rows and columns: one element, part of a thread's elements, part of a block's elements, and more than any block's
/// registers hold.
const MATRICES: [(usize, usize); 9] =
    [(1, 1), (5, 2), (3, 15), (7, 17), (4, 128), (3, 1000), (2, 1025), (2, 4096), (1, 70_000)];

/// Returns the launch that `row_dims` chooses, and a launch with another block shape.
fn dims(k: usize, rows: usize, columns: usize, per_thread: usize) -> [Dims; 2] {
    [row_dims(rows, columns, per_thread), Dims::new(1 + k as u32 % 3, shape(k))]
}

/// Returns the block shapes that the kernels take, in turn.
fn shape(k: usize) -> (u32, u32, u32) {
    let mut shapes = SHAPES.into_iter().filter(|&shape| threads(shape) <= 320).cycle();
    shapes.nth(k % SHAPES.len()).expect("endless")
}

fn close(found: f64, expected: f64, allowed: f64, what: impl Fn() -> String) {
    assert!((found - expected).abs() <= allowed, "{}: {found} is not {expected} within {allowed:e}", what());
}

fn random_matrix<T: Value>(rows: usize, columns: usize, scale: f64, shift: f64) -> Vec<T> {
    let mut random = Random::new((rows * columns) as u64);
    (0..rows * columns).map(|_| T::from_f64((random.unit() - 0.5) * scale + shift)).collect()
}

macro_rules! softmaxes {
    ($($name:ident: $t:ty, $nx:literal, $rounds:literal;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            for stream in streams()? {
                for (k, (rows, columns)) in MATRICES.into_iter().enumerate() {
                    let data = random_matrix::<$t>(rows, columns, 20.0, 100.0);
                    let x = stream.buffer_from(&data)?;
                    for dims in dims(k, rows, columns, $rounds * $nx) {
                        let mut out = stream.buffer_zeroed::<$t>(data.len())?;
                        softmax_rows::<$t, $nx, $rounds>::launch(&stream, dims, rows, columns, &x, &mut out)?;
                        let found = out.to_vec()?;
                        for (row, found) in data.chunks(columns).zip(found.chunks(columns)) {
                            let max = row.iter().map(|x| x.to_f64()).fold(f64::MIN, f64::max);
                            let sum: f64 = row.iter().map(|x| (x.to_f64() - max).exp()).sum();
                            for (c, (x, found)) in row.iter().zip(found).enumerate() {
                                let expected = (x.to_f64() - max).exp() / sum;
                                // The error is the result's own rounding, and about forty roundings of the accumulation
                                // type.
                                let unit = <<$t as Accumulate>::Accum as Value>::ROUNDING;
                                let allowed = expected * (1.01 * <$t>::ROUNDING + 40.0 * unit) + 6e-8 * <$t>::ROUNDING / <f16>::ROUNDING;
                                close(found.to_f64(), expected, allowed, || format!("{rows} x {columns}, column {c}, {dims:?}"));
                            }
                        }
                    }
                }
            }
            Ok(())
        }
    )*};
}
softmaxes! {
    softmax_of_f32_rows: f32, 4, 8;
    softmax_of_f64_rows: f64, 2, 4;
    softmax_of_f16_rows: f16, 8, 4;
    softmax_of_bf16_rows: bf16, 8, 4;
    softmax_of_f16_rows_held_by_half_the_threads: f16, 8, 8;
}

#[test]
fn sanitize_softmax_of_extreme_rows() -> Result<()> {
    const INFINITY: f32 = f32::INFINITY;
    for stream in streams()? {
        let data = [
            [0.0, -INFINITY, 0.0, -INFINITY, -INFINITY],
            [f32::MAX, f32::MAX, f32::MIN, 0.0, 1.0],
            [-1e30, -1e30, -1e30, -1e30, -INFINITY],
            [1.0, f32::NAN, 2.0, 3.0, 4.0],
            [-INFINITY; 5],
            [1.0, INFINITY, 2.0, 3.0, 4.0],
        ];
        let x = stream.buffer_from(data.as_flattened())?;
        for dims in [row_dims(6, 5, 32), Dims::new(2, 2), Dims::new(6, 33)] {
            let mut out = stream.buffer_zeroed::<f32>(30)?;
            softmax_rows::<f32, 4, 8>::launch(&stream, dims, 6, 5, &x, &mut out)?;
            let found = out.to_vec()?;
            assert_eq!(found[..5], [0.5, 0.0, 0.5, 0.0, 0.0]);
            assert_eq!(found[5..10], [0.5, 0.5, 0.0, 0.0, 0.0]);
            assert_eq!(found[10..15], [0.25, 0.25, 0.25, 0.25, 0.0]);
            assert!(found[15..].iter().all(|x| x.is_nan()), "{found:?}");
        }
    }
    Ok(())
}

macro_rules! layer_norms {
    ($($name:ident: $t:ty, $nx:literal, $rounds:literal;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            for stream in streams()? {
                for (k, (rows, columns)) in MATRICES.into_iter().enumerate() {
                    let data = random_matrix::<$t>(rows, columns, 4.0, 3.0);
                    let scale = random_matrix::<$t>(1, columns, 2.0, 1.0);
                    let shift = random_matrix::<$t>(columns, 1, 2.0, 0.0);
                    let (x, a, b) = (stream.buffer_from(&data)?, stream.buffer_from(&scale)?, stream.buffer_from(&shift)?);
                    for dims in dims(k, rows, columns, $rounds * $nx) {
                        let mut out = stream.buffer_zeroed::<$t>(data.len())?;
                        layer_norm_rows::<$t, $nx, $rounds>::launch(&stream, dims, rows, columns, 1e-3, &x, &a, &b, &mut out)?;
                        let found = out.to_vec()?;
                        for (row, found) in data.chunks(columns).zip(found.chunks(columns)) {
                            let mean = row.iter().map(|x| x.to_f64()).sum::<f64>() / columns as f64;
                            let variance = row.iter().map(|x| (x.to_f64() - mean).powi(2)).sum::<f64>() / columns as f64;
                            let deviation = (variance + 1e-3).sqrt();
                            for c in 0..columns {
                                let (a, b) = (scale[c].to_f64(), shift[c].to_f64());
                                let normal = (row[c].to_f64() - mean) / deviation * a;
                                // The error comes from the rounding of the result, and of intermediate values as large
                                // as the mean and the summands.
                                let unit = <<$t as Accumulate>::Accum as Value>::ROUNDING;
                                let size = normal.abs() + b.abs() + 5.0 / deviation * a.abs();
                                let allowed = (normal + b).abs() * 1.01 * <$t>::ROUNDING + 30.0 * unit * size;
                                close(found[c].to_f64(), normal + b, allowed, || format!("{rows} x {columns}, column {c}, {dims:?}"));
                            }
                        }
                    }
                }
            }
            Ok(())
        }
    )*};
}
layer_norms! {
    layer_norm_of_f32_rows: f32, 4, 8;
    layer_norm_of_f64_rows: f64, 2, 4;
    layer_norm_of_f16_rows: f16, 8, 4;
    layer_norm_of_bf16_rows: bf16, 8, 4;
    layer_norm_of_f16_rows_held_by_half_the_threads: f16, 8, 8;
    layer_norm_of_bf16_rows_held_by_half_the_threads: bf16, 8, 8;
}

#[test]
fn sanitize_layer_norm_keeps_a_small_variance_beside_a_large_mean() -> Result<()> {
    for stream in streams()? {
        let data: Vec<f32> = (0..300).map(|i| 1e6 + (i % 3) as f32).collect();
        let (x, ones, zeros) =
            (stream.buffer_from(&data)?, stream.buffer_from(&[1.0f32; 150])?, stream.buffer_zeroed::<f32>(150)?);
        for dims in [row_dims(2, 150, 32), Dims::new(1, 7)] {
            let mut out = stream.buffer_zeroed::<f32>(300)?;
            layer_norm_rows::<f32, 4, 8>::launch(&stream, dims, 2, 150, 0.0, &x, &ones, &zeros, &mut out)?;
            let unit = (1.5f64).sqrt();
            for (i, found) in out.to_vec()?.into_iter().enumerate() {
                // The mean itself is rounded to a sixteenth.
                close(found.into(), ((i % 3) as f64 - 1.0) * unit, 0.08, || format!("element {i}"));
            }
        }
    }
    Ok(())
}

#[test]
fn a_matrix_larger_than_its_buffer_is_a_fault() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_from(&[1.0f32; 10])?;
    let mut out = stream.buffer_zeroed::<f32>(10)?;
    let result = softmax_rows::<f32, 4, 8>::launch(&stream, row_dims(3, 4, 32), 3, 4, &x, &mut out);
    let error = result.and_then(|()| stream.synchronize()).unwrap_err().to_string();
    let view = if stream.device().is_gpu() { "the view" } else { "`x`" };
    assert!(error.contains(&format!("ends at element 12, but {view} has 10")), "{error}");
    Ok(())
}

/// Rows and columns of running sums: Paddle's and InfiniCore's cases, and a row of several tiles for every block.
const CUMSUMS: [(usize, usize); 7] = [(30, 10), (5, 20), (1, 150), (1, 100), (20, 20), (16, 64), (1, 33_000)];

macro_rules! cumsums {
    ($($name:ident: $t:ty, $nx:literal, $rounds:literal;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            for stream in streams()? {
                for (k, (rows, columns)) in MATRICES.into_iter().chain(CUMSUMS).enumerate() {
                    let data = random_matrix::<$t>(rows, columns, 2.0, 0.0);
                    let x = stream.buffer_from(&data)?;
                    let [chosen, other] = [row_dims(rows, columns, $rounds * $nx), Dims::new(1 + rows as u32, shape(k))];
                    for (dims, exclusive) in [(chosen, false), (other, false), (other, true)] {
                        let mut out = stream.buffer_zeroed::<$t>(data.len())?;
                        if exclusive {
                            cumsum_rows::<$t, $nx, $rounds, true>::launch(&stream, dims, rows, columns, &x, &mut out)?;
                        } else {
                            cumsum_rows::<$t, $nx, $rounds, false>::launch(&stream, dims, rows, columns, &x, &mut out)?;
                        }
                        let found = out.to_vec()?;
                        for (row, found) in data.chunks(columns).zip(found.chunks(columns)) {
                            let (mut sum, mut size) = (0.0, 0.0);
                            for (c, (x, found)) in row.iter().zip(found).enumerate() {
                                let before = sum;
                                sum += x.to_f64();
                                size += x.to_f64().abs();
                                let expected = if exclusive { before } else { sum };
                                // The error is the result's own rounding, and about forty successive additions of the
                                // accumulation type.
                                let unit = <<$t as Accumulate>::Accum as Value>::ROUNDING;
                                let allowed = expected.abs() * 1.01 * <$t>::ROUNDING + 40.0 * unit * size;
                                let what = || format!("{rows} x {columns}, column {c}, {dims:?}, exclusive {exclusive}");
                                close(found.to_f64(), expected, allowed, what);
                            }
                        }
                    }
                }
            }
            Ok(())
        }
    )*};
}
cumsums! {
    cumsum_of_f32_rows: f32, 4, 8;
    cumsum_of_f64_rows: f64, 2, 4;
    cumsum_of_f16_rows: f16, 8, 4;
    cumsum_of_bf16_rows: bf16, 8, 4;
}

/// Integers are exact. The test has every block shape, rows that start anywhere, and elements around the rows that do
/// not change.
#[test]
fn cumsum_of_integer_rows_in_slices() -> Result<()> {
    let stream = stream()?;
    for (k, shape) in SHAPES.into_iter().enumerate().filter(|(_, shape)| threads(*shape) <= 320) {
        for (offset, rows, columns) in [(0, 3, 500), (1, 2, 1003), (3, 5, 16), (4, 2, 4100), (0, 4, 0), (2, 1, 1)] {
            let data = values::<i32>(rows * columns + 8, k as u64);
            let x = stream.buffer_from(&data)?;
            let mut out = stream.buffer_from(&vec![7i32; data.len()])?;
            let (from, to) = (offset..offset + rows * columns, 2..2 + rows * columns);
            cumsum_rows::<i32, 4, 8, false>::launch(
                &stream,
                (rows as u32, shape),
                rows,
                columns,
                x.slice(from.clone())?,
                out.slice_mut(to.clone())?,
            )?;
            let mut expected = vec![7; data.len()];
            for (row, out) in data[from].chunks(columns.max(1)).zip(expected[to].chunks_mut(columns.max(1))) {
                let mut sum = 0i32;
                for (x, out) in row.iter().zip(out) {
                    sum = sum.wrapping_add(*x);
                    *out = sum;
                }
            }
            assert_eq!(out.to_vec()?, expected, "{rows} x {columns} from {offset} on, {shape:?}");
        }
    }
    Ok(())
}

#[test]
fn sanitize_cumsum_of_rows() -> Result<()> {
    for stream in streams()? {
        let data = values::<i64>(3 * 700, 1);
        let x = stream.buffer_from(&data)?;
        for dims in [row_dims(3, 700, 8), Dims::new(3, 65), Dims::new(4, 32)] {
            let mut out = stream.buffer_zeroed::<i64>(data.len())?;
            cumsum_rows::<i64, 2, 4, true>::launch(&stream, dims, 3, 700, &x, &mut out)?;
            for (row, found) in data.chunks(700).zip(out.to_vec()?.chunks(700)) {
                let mut sum = 0i64;
                for (x, found) in row.iter().zip(found) {
                    assert_eq!(*found, sum, "{dims:?}");
                    sum = sum.wrapping_add(*x);
                }
            }
        }
    }
    Ok(())
}

/// Reduces the rows of matrices at an offset, and compares with a fold of each row.
fn rows_reduce<T: Arbitrary, R: Reduction<T, Output: Element>>(
    op: R,
    per_thread: usize,
    input: impl Fn(T) -> T,
    close: impl Fn(R::Output, R::Output) -> bool,
    launch: impl Fn(&Stream, Dims, (usize, usize), &Buffer<T>, usize, &mut Buffer<R::Output>) -> Result<()>,
) -> Result<()> {
    let stream = stream()?;
    let paddle = [(30, 10), (1, 100), (1, 300), (1000, 3), (300, 1), (2, 0)];
    for (k, (rows, columns)) in MATRICES.into_iter().chain(paddle).enumerate() {
        let offset = [0, 0, 1, 4][k % 4];
        let x: Vec<T> = values::<T>(rows * columns + offset, k as u64).into_iter().map(&input).collect();
        let input = stream.buffer_from(&x)?;
        let own = Dims::new(rows as u32, shape(k));
        for dims in [reduce_row_dims(rows, columns, per_thread), own] {
            let mut out = stream.buffer_zeroed(rows)?;
            launch(&stream, dims, (rows, columns), &input, offset, &mut out)?;
            for (row, found) in out.to_vec()?.into_iter().enumerate() {
                let expected = op.of(&x[offset + row * columns..][..columns]);
                assert!(close(found, expected), "row {row} of {rows} x {columns} from {offset} on, {dims:?}");
            }
        }
    }
    Ok(())
}

/// Tells if two results are equal, or are close for sums of about a hundred thousand terms.
trait Close {
    fn close(self, other: Self) -> bool;
}
impl Close for f32 {
    fn close(self, other: Self) -> bool {
        self == other || (self - other).abs() <= 1e-4 * other.abs() || self.is_nan() && other.is_nan()
    }
}

macro_rules! row_reductions {
    ($($name:ident: $t:ty, $op:ident $({ $p:literal })?: $ty:ty, $nx:literal, $input:expr, $close:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            let op = $op $({ p: $p })?;
            rows_reduce::<$t, _>(op, 4 * $nx, $input, $close, |stream, dims, (rows, columns), x, offset, out| {
                reduce_rows::<$t, $ty, $nx>::launch(stream, dims, rows, columns, x.slice(offset..)?, out, op)
            })
        }
    )*};
}
row_reductions! {
    // Small integers are exact in any order.
    sums_of_f32_rows: f32, Sum: Sum, 4, |v| v % 100.0, |a, b| a == b;
    sums_of_f64_rows: f64, Sum: Sum, 2, |v| v, |a, b| a == b;
    sums_of_f16_rows_in_f32: f16, Sum: Sum, 8, |v| v, |a, b| a == b;
    sums_of_bf16_rows_in_f32: bf16, Sum: Sum, 8, |v| v, |a, b| a == b;
    sums_of_i32_rows: i32, Sum: Sum, 4, |v| v, |a, b| a == b;
    sums_of_i64_rows: i64, Sum: Sum, 2, |v| v, |a, b| a == b;
    means_of_f32_rows: f32, Mean: Mean, 4, |v| v % 100.0, Close::close;
    means_of_f16_rows: f16, Mean: Mean, 8, |v| v, Close::close;
    products_of_f32_rows: f32, Prod: Prod, 4, |v| if v > 0.0 { -1.0 } else { 1.0 }, |a, b| a == b;
    l1_norms_of_f32_rows: f32, L1: L1, 4, |v| v % 100.0, |a, b| a == b;
    l2_norms_of_f32_rows: f32, L2: L2, 4, |v| v % 8.0, |a, b| a == b;
    p_norms_of_f32_rows: f32, PNorm { 3.0 }: PNorm<f32>, 4, |v| v % 8.0, Close::close;
    log_sum_exps_of_f32_rows: f32, LogSumExp: LogSumExp, 4, |v| v / 100.0, Close::close;
    minima_of_f32_rows: f32, MinOf: MinOf, 4, |v| v, |a, b| a == b;
    maxima_of_f32_rows: f32, MaxOf: MaxOf, 4, |v| v, |a, b| a == b;
    maxima_of_f16_rows: f16, MaxOf: MaxOf, 8, |v| v, |a, b| a == b;
    minima_of_i32_rows: i32, MinOf: MinOf, 4, |v| v, |a, b| a == b;
    maxima_of_i32_rows: i32, MaxOf: MaxOf, 4, |v| v, |a, b| a == b;
    largest_magnitudes_of_f32_rows: f32, AbsMax: AbsMax, 4, |v| v, |a, b| a == b;
    sanitize_places_of_minima_of_f32_rows: f32, ArgMin: ArgMin, 4, |v| v % 50.0, |a, b| a == b;
    places_of_maxima_of_f32_rows: f32, ArgMax: ArgMax, 4, |v| v % 50.0, |a, b| a == b;
    places_of_maxima_of_i32_rows: i32, ArgMax: ArgMax, 4, |v| v % 50, |a, b| a == b;
    rows_with_any_true: bool, Any: Any, 4, |v| v, |a, b| a == b;
    rows_of_true_only: bool, All: All, 4, |_| true, |a, b| a == b;
    counts_of_true_in_rows: bool, CountNonzero: CountNonzero, 4, |v| v, |a, b| a == b;
    rows_with_any_nonzero_f32: f32, Any: Any, 4, |v| if v > 990.0 { v } else { 0.0 }, |a, b| a == b;
    rows_of_nonzero_f32_only: f32, All: All, 4, |v| if v > 999.0 { 0.0 } else { 1.0 }, |a, b| a == b;
}

#[test]
fn fewer_blocks_than_rows_are_a_fault() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_from(&[1.0f32; 12])?;
    let mut out = stream.buffer_zeroed::<f32>(12)?;
    let launches = [
        cumsum_rows::<f32, 4, 8, false>::launch(&stream, (2, 32), 3, 4, &x, &mut out)
            .and_then(|()| stream.synchronize()),
        reduce_rows::<f32, Sum, 4>::launch(&stream, (1, (4, 2)), 3, 4, &x, &mut out, Sum)
            .and_then(|()| stream.synchronize()),
    ];
    for launch in launches {
        let error = launch.unwrap_err().to_string();
        assert!(error.contains("asked for a size of 3; its limit is 2"), "{error}");
    }
    Ok(())
}

/// The items are integers, so that each order of additions gives the same sum.
#[test]
fn rows_and_columns_of_any_matrix_are_summed() {
    let inputs = (1..6usize, 0..3000usize, any_shape(320), 0..5usize, any::<u64>());
    holds(16, inputs, |(rows, columns, shape, offset, seed)| {
        let stream = stream()?;
        let data = values::<i32>(offset + rows * columns, seed);
        let (x, matrix) = (stream.buffer_from(&data)?, &data[offset..]);
        let total = |items: &mut dyn Iterator<Item = i32>| items.fold(0, i32::wrapping_add);

        let mut sums = stream.buffer_zeroed(rows)?;
        let dims = Dims::new(rows as u32, shape);
        reduce_rows::<i32, Sum, 4>::launch(&stream, dims, rows, columns, x.slice(offset..)?, &mut sums, Sum)?;
        let row = |r: usize| &matrix[r * columns..][..columns];
        assert_eq!(sums.to_vec()?, (0..rows).map(|r| total(&mut row(r).iter().copied())).collect::<Vec<_>>());

        let mut running = stream.buffer_zeroed(rows * columns)?;
        cumsum_rows::<i32, 4, 8, true>::launch(&stream, dims, rows, columns, x.slice(offset..)?, &mut running)?;
        let before = |r: usize| row(r).iter().scan(0i32, |sum, &x| Some(std::mem::replace(sum, sum.wrapping_add(x))));
        assert!(running.to_vec()?.into_iter().eq((0..rows).flat_map(before)));

        let mut sums = stream.buffer_zeroed(columns)?;
        reduce_higher_dim::<i32, Sum, 4>::run(&stream, [1, rows, columns], x.slice(offset..)?, &mut sums, Sum)?;
        let column = |c: usize| total(&mut (0..rows).map(|r| row(r)[c]));
        assert_eq!(sums.to_vec()?, (0..columns).map(column).collect::<Vec<_>>());
        Ok(())
    });
}

/// Running sums of −0 are −0, in any number of tiles. Exclusive sums begin with +0.
#[test]
fn sums_along_rows_keep_a_negative_zero_sanitize() -> Result<()> {
    let stream = stream()?;
    for columns in [1, 3, 64, 1000, 1001, 20_000] {
        let (rows, dims) = (2, row_dims(2, columns, 32));
        let x = stream.buffer_from(&vec![-0.0f32; rows * columns])?;
        let mut out = stream.buffer_from(&vec![1.0f32; rows * columns])?;
        cumsum_rows::<f32, 4, 8, false>::launch(&stream, dims, rows, columns, &x, &mut out)?;
        assert!(out.to_vec()?.iter().all(|x| x.to_bits() == 1 << 31), "{columns} columns");
        cumsum_rows::<f32, 4, 8, true>::launch(&stream, dims, rows, columns, &x, &mut out)?;
        assert!(out.to_vec()?.iter().all(|x| x.to_bits() == 0), "{columns} columns, exclusive");
    }
    Ok(())
}
