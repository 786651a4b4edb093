//! Tests reductions of another dimension than the last.

use kernel_primitives::functor::{
    All, Any, ArgMax, ArgMin, FirstPass, L2, LastPass, MaxOf, Mean, MinOf, Reduction, Sum,
};
use kernel_primitives::kernels::reduce_higher_dim;
use kernel_primitives::{Buffer, Dims, Element, Result, Stream, bf16, f16};

use crate::support::{Arbitrary, SHAPES, stream, streams, threads, values};

type Shape = [usize; 3];

/// Shapes `[outer, reduced, inner]`: single elements, Paddle's cases, rows of whole vectors and other rows, and few
/// columns with many rows.
const TENSORS: [Shape; 16] = [
    [1, 1, 1],
    [1, 5, 60],
    [1, 1, 600],
    [3, 2, 120],
    [120, 6, 10],
    [8, 3, 50],
    [8, 90, 24],
    [2, 17, 7],
    [1, 1000, 33],
    [3, 129, 128],
    [1, 5000, 4],
    [70, 3, 1],
    [200, 1, 1],
    [1, 4096, 12],
    [2, 0, 9],
    [0, 3, 9],
];

/// Reduces each column by a fold.
fn folds<T: Arbitrary, R: Reduction<T>>(op: &R, [outer, reduced, inner]: Shape, x: &[T]) -> Vec<R::Output> {
    let column = |o: usize, i: usize| (0..reduced).map(|r| x[(o * reduced + r) * inner + i]).collect::<Vec<_>>();
    (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))).map(|(o, i)| op.of(&column(o, i))).collect()
}

/// How a launch reduces: as `run` chooses, in one pass by blocks of a shape, or in two passes with a number of parts.
#[derive(Clone, Copy, Debug)]
enum Passes {
    Chosen,
    One((u32, u32, u32)),
    Two(u32, (u32, u32, u32)),
}

/// Returns the launch for a shape, a block, the items of each thread, and the number of parts.
fn dims([outer, _, inner]: Shape, block: (u32, u32, u32), items: usize, parts: u32) -> Dims {
    let blocks = inner.div_ceil(block.0 as usize * items).max(1) * outer.div_ceil(block.2 as usize).max(1);
    // The grid has one block more than it needs.
    Dims::new((blocks as u32 + 1, parts), block)
}

fn columns_reduce<T: Arbitrary, R: Reduction<T, Output: Element>>(
    op: R,
    stream: &Stream,
    input: impl Fn(T) -> T,
    close: impl Fn(R::Output, R::Output) -> bool,
    launch: impl Fn(&Stream, Passes, Shape, &Buffer<T>, usize, &mut Buffer<R::Output>) -> Result<()>,
) -> Result<()> {
    let shapes: Vec<_> = SHAPES.into_iter().filter(|shape| threads(*shape) <= 256).collect();
    for (k, tensor) in TENSORS.into_iter().enumerate() {
        let offset = [0, 0, 4, 1][k % 4];
        let [outer, reduced, inner] = tensor;
        let x: Vec<T> = values::<T>(outer * reduced * inner + offset, k as u64).into_iter().map(&input).collect();
        let expected = folds(&op, tensor, &x[offset..]);
        let buffer = stream.buffer_from(&x)?;
        let shape = shapes[k % shapes.len()];
        for passes in [Passes::Chosen, Passes::One(shape), Passes::Two(1 + k as u32 % 4, shape)] {
            let mut out = stream.buffer_zeroed(outer * inner)?;
            launch(stream, passes, tensor, &buffer, offset, &mut out)?;
            for (i, (found, expected)) in out.to_vec()?.into_iter().zip(&expected).enumerate() {
                assert!(close(found, *expected), "element {i} of {tensor:?} from {offset} on, {passes:?}");
            }
        }
    }
    Ok(())
}

macro_rules! column_reductions {
    ($($name:ident: $t:ty, $op:ident, $nx:literal, $streams:expr, $input:expr, $close:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            for stream in $streams {
                columns_reduce::<$t, _>($op, &stream, $input, $close, |stream, passes, shape, x, offset, out| {
                    type Accum = <$op as Reduction<$t>>::Accum;
                    let [outer, reduced, inner] = shape;
                    let x = x.slice(offset..)?;
                    match passes {
                        Passes::Chosen => reduce_higher_dim::<$t, $op, $nx>::run(stream, shape, x, out, $op),
                        Passes::One(block) => {
                            let dims = dims(shape, block, $nx, 1);
                            reduce_higher_dim::<$t, $op, $nx>::launch(stream, dims, outer, reduced, inner, x, out, $op)
                        }
                        Passes::Two(parts, block) => {
                            let mut partial = stream.buffer_uninit::<Accum>(outer * parts as usize * inner)?;
                            let first = FirstPass($op);
                            reduce_higher_dim::<$t, FirstPass<$op>, $nx>::launch(
                                stream, dims(shape, block, $nx, parts), outer, reduced, inner, x, &mut partial, first,
                            )?;
                            let last = LastPass::<$op, $t>::new($op, reduced as u64);
                            reduce_higher_dim::<Accum, LastPass<$op, $t>, $nx>::launch(
                                stream, dims(shape, block, $nx, 1), outer, parts as usize, inner, &partial, out, last,
                            )
                        }
                    }
                })?;
            }
            Ok(())
        }
    )*};
}
column_reductions! {
    // Small integers are exact in any order.
    sums_of_f32_columns: f32, Sum, 4, streams()?, |v| v % 100.0, |a, b| a == b;
    sums_of_f64_columns: f64, Sum, 2, [stream()?], |v| v, |a, b| a == b;
    sums_of_f16_columns_in_f32: f16, Sum, 8, [stream()?], |v| v, |a, b| a == b;
    sums_of_bf16_columns_in_f32: bf16, Sum, 8, [stream()?], |v| v, |a, b| a == b;
    sums_of_i32_columns: i32, Sum, 4, [stream()?], |v| v, |a, b| a == b;
    means_of_f32_columns: f32, Mean, 4, [stream()?], |v| v % 100.0, |a: f32, b: f32| a == b || a.is_nan() && b.is_nan();
    maxima_of_f32_columns: f32, MaxOf, 4, [stream()?], |v| v, |a, b| a == b;
    minima_of_f32_columns: f32, MinOf, 4, [stream()?], |v| v, |a, b| a == b;
    places_of_maxima_of_f32_columns: f32, ArgMax, 4, [stream()?], |v| v % 50.0, |a, b| a == b;
    places_of_minima_of_f32_columns: f32, ArgMin, 4, [stream()?], |v| v % 50.0, |a, b| a == b;
    norms_of_f32_columns: f32, L2, 4, [stream()?], |v| v % 8.0, |a, b| a == b;
    columns_with_any_true: bool, Any, 4, [stream()?], |v| v, |a, b| a == b;
    columns_of_true_only: bool, All, 4, [stream()?], |v| v, |a, b| a == b;
}

#[test]
fn sanitize_column_sums_in_two_passes() -> Result<()> {
    for stream in streams()? {
        for inner in [4, 6] {
            let x = values::<i32>(700 * inner, 5);
            let mut out = stream.buffer_zeroed(inner)?;
            reduce_higher_dim::<i32, Sum, 4>::run(&stream, [1, 700, inner], &stream.buffer_from(&x)?, &mut out, Sum)?;
            assert_eq!(out.to_vec()?, folds(&Sum, [1, 700, inner], &x));
        }
    }
    Ok(())
}

/// This is Paddle's minimum over axes 2 and 4 of six. It reduces one dimension after the other.
#[test]
fn a_minimum_over_two_dimensions_apart() -> Result<()> {
    let stream = stream()?;
    let dims = [2, 4, 3, 5, 6, 10];
    let x = values::<f32>(dims.iter().product(), 9);
    let mut first = stream.buffer_zeroed(2 * 4 * 3 * 5 * 10)?;
    let mut second = stream.buffer_zeroed(2 * 4 * 5 * 10)?;
    let input = stream.buffer_from(&x)?;
    reduce_higher_dim::<f32, MinOf, 4>::run(&stream, [2 * 4 * 3 * 5, 6, 10], &input, &mut first, MinOf)?;
    reduce_higher_dim::<f32, MinOf, 4>::run(&stream, [2 * 4, 3, 5 * 10], &first, &mut second, MinOf)?;
    let mut expected = vec![f32::INFINITY; 400];
    for (i, &value) in x.iter().enumerate() {
        let (f, d, ab) = (i % 10, i / 60 % 5, i / 900);
        let place = &mut expected[(ab * 5 + d) * 10 + f];
        *place = place.min(value);
    }
    assert_eq!(second.to_vec()?, expected);
    Ok(())
}

#[test]
fn a_tensor_larger_than_its_buffer_is_a_fault() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_from(&[1.0f32; 23])?;
    let mut out = stream.buffer_zeroed::<f32>(6)?;
    let result = reduce_higher_dim::<f32, Sum, 4>::run(&stream, [2, 4, 3], &x, &mut out, Sum);
    let error = result.and_then(|()| stream.synchronize()).unwrap_err().to_string();
    let view = if stream.device().is_gpu() { "the view" } else { "`x`" };
    assert!(error.contains(&format!("ends at element 24, but {view} has 23")), "{error}");
    Ok(())
}

#[test]
fn a_tensor_of_more_elements_than_can_be_counted_is_a_fault() -> Result<()> {
    // A GPU would run all 2^31 blocks.
    let stream = kernel_primitives::Device::emulator().stream()?;
    let x = stream.buffer_from(&[1.0f32; 6])?;
    let mut out = stream.buffer_zeroed::<f32>(6)?;
    let result = reduce_higher_dim::<f32, Sum, 4>::run(&stream, [1 << 33, 1, 1 << 33], &x, &mut out, Sum);
    let error = result.unwrap_err().to_string();
    assert!(error.contains("`x` has 6"), "{error}");
    // These have no elements.
    let (x, mut out) = (stream.buffer_zeroed::<f32>(0)?, stream.buffer_zeroed::<f32>(0)?);
    for shape in [[0, usize::MAX, 7], [usize::MAX, 5, 0]] {
        reduce_higher_dim::<f32, Sum, 4>::run(&stream, shape, &x, &mut out, Sum)?;
    }
    Ok(())
}

#[test]
fn fewer_blocks_than_columns_take_are_a_fault() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_from(&[1.0f32; 72])?;
    let mut out = stream.buffer_zeroed::<f32>(36)?;
    // There are two tiles of columns for each of three outer elements, but blocks for only two outer elements.
    let result = reduce_higher_dim::<f32, Sum, 4>::launch(&stream, (5, (2, 2)), 3, 2, 12, &x, &mut out, Sum);
    let error = result.and_then(|()| stream.synchronize()).unwrap_err().to_string();
    assert!(error.contains("asked for a size of 3; its limit is 2"), "{error}");
    Ok(())
}
