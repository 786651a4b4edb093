//! Tests the library's own kernels in all their instantiations.

mod broadcast;
mod columns;
mod rows;

use kernel_primitives::functor::{Add, BinaryFn, Max, Min, Mul, Reducer};
use kernel_primitives::kernels::{block_reduce, map_binary};
use kernel_primitives::{Accumulate, Arithmetic, Buffer, Dims, Result, Stream, bf16, f16};

use crate::support::{Arbitrary, Case, LENGTHS, SHAPES, cases, stream, threads, values};

/// Combines slices at offsets, and checks the results and the elements around the target.
fn combines<T: Arbitrary, F: BinaryFn<T, Output = T>>(
    f: F,
    variant: usize,
    launch: impl Fn(&Stream, Case, &Buffer<T>, &Buffer<T>, &mut Buffer<T>) -> Result<()>,
) -> Result<()> {
    let stream = stream()?;
    for case in cases(variant) {
        let (x, y) = (values::<T>(case.len + 8, 1), values::<T>(case.len + 8, 2));
        let before = values::<T>(case.len + 8, 3);
        let mut out = stream.buffer_from(&before)?;
        launch(&stream, case, &stream.buffer_from(&x)?, &stream.buffer_from(&y)?, &mut out)?;
        let mut expected = before;
        for i in 0..case.len {
            expected[i + 2] = f.apply(x[i + case.offset], y[i + 1]);
        }
        assert_eq!(out.to_vec()?, expected, "{case:?}");
    }
    Ok(())
}

macro_rules! combined {
    ($($name:ident: $op:ident, $variant:literal;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            combined!(@types $op, $variant, [f32 4 0, f64 2 1, f16 8 2, bf16 8 3, i32 4 4, u32 4 5]);
            Ok(())
        }
    )*};
    (@types $op:ident, $variant:literal, [$($t:ident $nx:literal $k:literal),*]) => {$(
        combines::<$t, _>($op, $variant + $k, |stream, case, x, y, out| {
            let (offset, len) = (case.offset, case.len);
            map_binary::<$t, $t, $op, $nx>::launch(
                stream,
                case.dims($nx, 6),
                x.slice(offset..offset + len)?,
                y.slice(1..=len)?,
                out.slice_mut(2..len + 2)?,
                $op,
            )
        })?;
    )*};
}
combined! {
    elementwise_sums_of_slices: Add, 0;
    elementwise_products_of_slices: Mul, 6;
    elementwise_minima_of_slices: Min, 12;
    elementwise_maxima_of_slices: Max, 18;
}

#[test]
fn sanitize_elementwise_sums_by_the_number_of_items() -> Result<()> {
    let stream = stream()?;
    for len in [0, 1, 15, 1000] {
        let (x, y) = (values::<f32>(len, 1), values::<f32>(len, 2));
        let mut out = stream.buffer_zeroed(len)?;
        let dims = Dims::for_items(len).items_per_thread(4);
        map_binary::<f32, f32, Add, 4>::launch(
            &stream,
            dims,
            &stream.buffer_from(&x)?,
            &stream.buffer_from(&y)?,
            &mut out,
            Add,
        )?;
        assert_eq!(out.to_vec()?, x.iter().zip(&y).map(|(x, y)| x + y).collect::<Vec<_>>());
    }
    Ok(())
}

/// Reduces by several blocks, and compares each block's result with a fold.
fn reduces<T, R>(
    op: R,
    variant: usize,
    per_thread: usize,
    input: impl Fn(T) -> T,
    launch: impl Fn(&Stream, Dims, &Buffer<T>, usize, &mut Buffer<T::Accum>) -> Result<()>,
) -> Result<()>
where
    T: Arbitrary + Accumulate<Accum: std::fmt::Debug>,
    R: Reducer<T::Accum>,
{
    let stream = stream()?;
    for (k, case) in cases(variant).enumerate() {
        let blocks = 1 + k % 5;
        let x: Vec<T> = values::<T>(case.len + case.offset, 1).into_iter().map(&input).collect();
        let mut out = stream.buffer_from(&vec![T::Accum::ONE; blocks + 1])?;
        launch(&stream, Dims::new(blocks as u32, case.shape), &stream.buffer_from(&x)?, case.offset, &mut out)?;
        let found = out.to_vec()?;
        // The elements of a block are in its tiles. The blocks take tiles in turn.
        let tile = threads(case.shape) * per_thread;
        for (block, &found) in found[..blocks].iter().enumerate() {
            let tiles = x[case.offset..].chunks(tile).skip(block).step_by(blocks);
            let expected = tiles.flatten().fold(op.identity(), |a, b| op.apply(a, b.widen()));
            assert_eq!(found, expected, "{case:?}, block {block} of {blocks}");
        }
        assert_eq!(found[blocks], T::Accum::ONE, "written behind the slice");
    }
    Ok(())
}

macro_rules! reduced {
    ($($name:ident: $op:ident, $t:ident, $nx:literal, $variant:literal, $input:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            reduces::<$t, _>($op, $variant, $nx, $input, |stream, dims, x, offset, out| {
                let blocks = out.len() - 1;
                let target = out.slice_mut(..blocks)?;
                block_reduce::<$t, $op, $nx>::launch(stream, dims, x.slice(offset..)?, target, $op)
            })
        }
    )*};
}
reduced! {
    // Small integers are exact in any order.
    sums_of_f32_by_blocks: Add, f32, 4, 0, |v| v % 100.0;
    sums_of_f64_by_blocks: Add, f64, 2, 1, |v| v;
    sums_of_f16_by_blocks_in_f32: Add, f16, 8, 2, |v| v;
    sums_of_bf16_by_blocks_in_f32: Add, bf16, 8, 3, |v| v;
    sums_of_i32_by_blocks: Add, i32, 4, 4, |v| v;
    sums_of_u32_by_blocks: Add, u32, 4, 5, |v| v;
    products_of_f32_by_blocks: Mul, f32, 4, 6, |v| if v > 0.0 { -1.0 } else { 1.0 };
    products_of_f64_by_blocks: Mul, f64, 2, 7, |v| if v > 9990.0 { -2.0 } else { 1.0 };
    products_of_f16_by_blocks_in_f32: Mul, f16, 8, 8, |v| if v > f16::ZERO { -f16::ONE } else { f16::ONE };
    products_of_bf16_by_blocks_in_f32: Mul, bf16, 8, 9, |v| if v > bf16::ZERO { -bf16::ONE } else { bf16::ONE };
    products_of_i32_by_blocks: Mul, i32, 4, 10, |v| v | 1;
    products_of_u32_by_blocks: Mul, u32, 4, 11, |v| v | 1;
    maxima_of_f32_by_blocks: Max, f32, 4, 12, |v| v;
    maxima_of_f64_by_blocks: Max, f64, 2, 13, |v| v;
    maxima_of_f16_by_blocks_in_f32: Max, f16, 8, 14, |v| v;
    maxima_of_bf16_by_blocks_in_f32: Max, bf16, 8, 15, |v| v;
    maxima_of_i32_by_blocks: Max, i32, 4, 16, |v| v;
    maxima_of_u32_by_blocks: Max, u32, 4, 17, |v| v;
    minima_of_f32_by_blocks: Min, f32, 4, 18, |v| v;
    minima_of_f64_by_blocks: Min, f64, 2, 19, |v| v;
    minima_of_f16_by_blocks_in_f32: Min, f16, 8, 20, |v| v;
    minima_of_bf16_by_blocks_in_f32: Min, bf16, 8, 21, |v| v;
    minima_of_i32_by_blocks: Min, i32, 4, 22, |v| v;
    minima_of_u32_by_blocks: Min, u32, 4, 23, |v| v;
}

#[test]
fn sanitize_a_sum_in_two_launches() -> Result<()> {
    let stream = stream()?;
    for (len, shape) in LENGTHS.into_iter().zip(SHAPES).filter(|(len, _)| *len < 5000) {
        let x = values::<i32>(len, 4);
        let input = stream.buffer_from(&x)?;
        let mut partials = stream.buffer_zeroed(7)?;
        let mut total = stream.buffer_zeroed(1)?;
        block_reduce::<i32, Add, 4>::launch(&stream, (7, shape), &input, &mut partials, Add)?;
        block_reduce::<i32, Add, 4>::launch(&stream, (1, shape), &partials, &mut total, Add)?;
        assert_eq!(total.to_vec()?, [x.iter().fold(0i32, |a, b| a.wrapping_add(*b))]);
    }
    Ok(())
}

#[test]
fn a_reduction_of_nan_is_nan() -> Result<()> {
    let stream = stream()?;
    let mut x = values::<f32>(5000, 1);
    x[4321] = f32::NAN;
    let input = stream.buffer_from(&x)?;
    let mut out = stream.buffer_zeroed(1)?;
    block_reduce::<f32, Max, 4>::launch(&stream, (1, 256), &input, &mut out, Max)?;
    assert!(out.to_vec()?[0].is_nan());
    block_reduce::<f32, Min, 4>::launch(&stream, (1, 65), &input, &mut out, Min)?;
    assert!(out.to_vec()?[0].is_nan());
    Ok(())
}

#[test]
fn a_sum_of_no_items_is_positive_zero() -> Result<()> {
    let stream = stream()?;
    let (x, mut parts) = (stream.buffer_zeroed::<f32>(0)?, stream.buffer_from(&[1.0f32; 3])?);
    let mut total = stream.buffer_from(&[1.0f32])?;
    block_reduce::<f32, Add, 4>::launch(&stream, (3, 64), &x, &mut parts, Add)?;
    block_reduce::<f32, Add, 4>::launch(&stream, (1, 64), &parts, &mut total, Add)?;
    assert_eq!(total.to_vec()?[0].to_bits(), 0);
    // Of items that are -0, the sum is -0, also where some blocks have no item.
    let x = stream.buffer_from(&[-0.0f32; 5])?;
    block_reduce::<f32, Add, 4>::launch(&stream, (3, 64), &x, &mut parts, Add)?;
    block_reduce::<f32, Add, 4>::launch(&stream, (1, 64), &parts, &mut total, Add)?;
    assert_eq!(total.to_vec()?[0].to_bits(), 1 << 31);
    Ok(())
}
