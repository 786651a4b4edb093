//! Tests inputs in memory and computed inputs against iterators of the host.

use kernel_primitives::functor::{Square, Sub, of_pair};
use kernel_primitives::input::{constant, counting, map, permutation};
use kernel_primitives::{Buffer, Device, Dims, Error, Result, Stream};

use crate::kernels::Twelve;
use crate::kernels::input as kernels;
use crate::support::{Arbitrary, Case, cases, stream, values};

/// Collects an input for each case, where `x` is at the case's offset, and compares with the result of `expected`.
fn check<T: Arbitrary, U: Arbitrary>(
    variant: usize,
    items: usize,
    launch: impl Fn(&Stream, Dims, &Buffer<T>, Case, &mut Buffer<U>) -> Result<()>,
    expected: impl Fn(&[T]) -> Vec<U>,
) -> Result<()> {
    let stream = stream()?;
    for case in cases(variant) {
        let all = values::<T>(case.offset + case.len + 7, variant as u64);
        let x = stream.buffer_from(&all)?;
        // The output has a few more elements than any input.
        let mut out = stream.buffer_from(&values::<U>(case.len + 3, 9))?;
        launch(&stream, case.dims(items, 5), &x, case, &mut out)?;
        let mut wanted = expected(&all[case.offset..case.offset + case.len]);
        wanted.resize(case.len + 3, U::ZERO);
        assert_eq!(out.to_vec()?, wanted, "{case:?}");
    }
    Ok(())
}

macro_rules! sources {
    ($($name:ident: $source:ty, $t:ty => $u:ty, $nx:literal, |$x:ident, $case:ident| $input:expr, |$items:ident| $expected:expr;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            use kernel_primitives::input::*;
            #[allow(unused_imports, reason = "not in every type")]
            use crate::kernels::input::Differences;
            check::<$t, $u>(
                $nx,
                $nx,
                |stream, dims, x, $case, out| {
                    let $x = x.slice($case.offset..$case.offset + $case.len)?;
                    kernels::collect::<$source, $u, $nx>::launch(stream, dims, $input, out)
                },
                |$items| $expected,
            )
        }
    )*};
}
sources! {
    a_span_is_the_elements_sanitize: Span<f32>, f32 => f32, 4, |x, case| x, |items| items.to_vec();
    a_span_one_by_one: Span<f32>, f32 => f32, 1, |x, case| &x, |items| items.to_vec();
    a_span_of_odd_items: Span<f32>, f32 => f32, 3, |x, case| x, |items| items.to_vec();
    a_span_of_bytes: Span<u8>, u8 => u8, 16, |x, case| x, |items| items.to_vec();
    a_span_of_structs: Span<Twelve>, Twelve => Twelve, 2, |x, case| x, |items| items.to_vec();
    a_map_applies_its_function: Map<Span<f32>, Square>, f32 => f32, 4, |x, case| map(x, Square),
        |items| items.iter().map(|x| x * x).collect();
    a_zip_pairs_as_many_as_both_have: Differences<i32>, i32 => i32, 4,
        |x, case| map(zip(x, x.slice(case.len / 3..)?), of_pair(Sub)),
        |items| items.iter().zip(&items[items.len() / 3..]).map(|(a, b)| a.wrapping_sub(*b)).collect();
    a_reversed_input_begins_at_the_end_sanitize: Reversed<Span<f32>>, f32 => f32, 4, |x, case| reversed(x),
        |items| items.iter().rev().copied().collect();
    a_strided_input_skips: Strided<Span<u16>>, u16 => u16, 2, |x, case| strided(x, 3),
        |items| items.iter().step_by(3).copied().collect();
    a_permutation_by_what_is_computed: Permutation<Span<u16>, Reversed<Counting<i64>>>, u16 => u16, 8,
        |x, case| permutation(x, reversed(counting(0i64, case.len))), |items| items.iter().rev().copied().collect();
    inputs_nest: Reversed<Strided<Differences<i32>>>, i32 => i32, 3,
        |x, case| reversed(strided(map(zip(x, x), of_pair(Sub)), 2)), |items| vec![0; items.len().div_ceil(2)];
}

#[test]
fn numbers_are_counted_and_constants_repeated_sanitize() -> Result<()> {
    use kernel_primitives::input::{Constant, Counting};
    let stream = stream()?;
    let mut out = stream.buffer_zeroed::<i32>(1000)?;
    kernels::collect::<Counting<i32>, i32, 4>::launch(&stream, (3, 65), counting(i32::MAX - 9, 999), &mut out)?;
    let mut expected: Vec<i32> = (0..999).map(|i| (i32::MAX - 9).wrapping_add(i)).collect();
    expected.push(0);
    assert_eq!(out.to_vec()?, expected);
    let mut out = stream.buffer_zeroed::<u64>(5)?;
    kernels::collect::<Counting<u64>, u64, 1>::launch(&stream, (1, 7), counting(1u64 << 40, usize::MAX), &mut out)?;
    assert_eq!(out.to_vec()?, [1 << 40, (1 << 40) + 1, (1 << 40) + 2, (1 << 40) + 3, (1 << 40) + 4]);
    let mut out = stream.buffer_zeroed::<f32>(6)?;
    kernels::collect::<Counting<f32>, f32, 4>::launch(&stream, (1, 32), counting(0.5f32, 6), &mut out)?;
    assert_eq!(out.to_vec()?, [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]);
    let mut out = stream.buffer_zeroed::<f64>(7)?;
    kernels::collect::<Constant<f64>, f64, 2>::launch(&stream, (2, 32), constant(-2.5f64, 5), &mut out)?;
    assert_eq!(out.to_vec()?, [-2.5, -2.5, -2.5, -2.5, -2.5, 0.0, 0.0]);
    Ok(())
}

#[test]
fn a_permutation_gathers_sanitize() -> Result<()> {
    use kernel_primitives::input::{Permutation, Span};
    let stream = stream()?;
    let (x, at) = (values::<f32>(4097, 1), values::<u32>(5000, 2));
    let at: Vec<u32> = at.iter().map(|i| i % 4097).collect();
    let mut out = stream.buffer_zeroed::<f32>(5000)?;
    kernels::collect::<Permutation<Span<f32>, Span<u32>>, f32, 4>::launch(
        &stream,
        (7, 96),
        permutation(&stream.buffer_from(&x)?, &stream.buffer_from(&at)?),
        &mut out,
    )?;
    assert_eq!(out.to_vec()?, at.iter().map(|&i| x[i as usize]).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn offsets_below_zero_come_before_every_index() -> Result<()> {
    use kernel_primitives::input::{Segments, Span, segments};
    let stream = stream()?;
    for (offsets, expected) in
        [([-2i32, -1, 3], [2, 2, 2, 3, 3]), ([-1, 0, 4], [2, 2, 2, 2, 3]), ([-3, -2, -1], [3; 5])]
    {
        let x = stream.buffer_from(&offsets)?;
        let mut out = stream.buffer_zeroed::<u32>(5)?;
        kernels::collect::<Segments<Span<i32>>, u32, 4>::launch(&stream, (1, 32), segments(&x, 5), &mut out)?;
        assert_eq!(out.to_vec()?, expected, "{offsets:?}");
        let x = stream.buffer_from(&offsets.map(|offset| offset as i8))?;
        kernels::collect::<Segments<Span<i8>>, u32, 1>::launch(&stream, (1, 32), segments(&x, 5), &mut out)?;
        assert_eq!(out.to_vec()?, expected, "{offsets:?}");
    }
    Ok(())
}

#[test]
fn vectors_lie_inside_or_are_none() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_from(&(100..164).collect::<Vec<u32>>())?;
    let mut out = stream.buffer_zeroed::<[u32; 3]>(1)?;
    let back = |by: usize| by.wrapping_neg();
    for (first, stride, expected) in [
        (0, 4, [1, 100, 107]),
        (60, 0, [1, 160, 163]),
        (56, 4, [1, 156, 163]),
        (0, 60, [1, 100, 163]),
        (57, 4, [0; 3]),
        (0, 61, [0; 3]),
        (64, back(4), [0; 3]),
        (60, back(4), [0; 3]),
        (8, back(8), [0; 3]),
        (usize::MAX, 1, [0; 3]),
        (0, usize::MAX / 2, [0; 3]),
        (64, usize::MAX, [0; 3]),
    ] {
        kernels::two_vectors::launch(&stream, (1, 1), first, stride, &x, &mut out)?;
        assert_eq!(out.to_vec()?, [expected], "from {first} on, {stride} apart");
    }
    Ok(())
}

/// The fields of the result of `strided` can be written.
#[test]
fn a_step_of_zero_is_one_however_it_is_made() -> Result<()> {
    use kernel_primitives::input::{Span, Strided, strided};
    let stream = stream()?;
    let x = stream.buffer_from(&[1u16, 2, 3])?;
    let mut all = strided(&x, 0);
    for step in [1, 0] {
        all.step = step;
        let mut out = stream.buffer_zeroed::<u16>(3)?;
        kernels::collect::<Strided<Span<u16>>, u16, 2>::launch(&stream, (1, 32), all, &mut out)?;
        assert_eq!(out.to_vec()?, [1, 2, 3]);
    }
    Ok(())
}

#[test]
fn an_input_of_another_length_is_an_error() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_zeroed::<f32>(10)?;
    let mut out = stream.buffer_zeroed::<f32>(11)?;
    let error = kernels::squares::launch(&stream, (1, 32), map(&x, Square), &mut out).unwrap_err();
    let Error::LengthMismatch { first_len: 10, second_len: 11, .. } = &error else { panic!("{error}") };
    assert!(error.to_string().contains("`x`") && error.to_string().contains("`out`"), "{error}");
    kernels::squares::launch(&stream, (1, 32), map(&x, Square), &mut out.slice_mut(..10)?)
}

#[test]
fn an_input_on_another_device_is_an_error() -> Result<()> {
    let Ok(gpu) = Device::gpu() else { return Ok(()) };
    let (stream, other) = (gpu.stream()?, Device::emulator().stream()?);
    let x = other.buffer_zeroed::<f32>(10)?;
    let mut out = stream.buffer_zeroed::<f32>(10)?;
    let error = kernels::squares::launch(&stream, (1, 32), map(&x, Square), &mut out).unwrap_err();
    assert!(matches!(error, Error::WrongDevice { .. }), "{error}");
    Ok(())
}

#[test]
fn a_graph_repeats_a_launch_on_an_input() -> Result<()> {
    let stream = stream()?;
    let mut x = stream.buffer_from(&[1.0f32, 2.0, 3.0])?;
    let mut out = stream.buffer_zeroed::<f32>(3)?;
    let graph = stream.capture(|stream| kernels::squares::launch(stream, (1, 32), map(&x, Square), &mut out))?;
    graph.launch(&stream)?;
    assert_eq!(out.to_vec()?, [1.0, 4.0, 9.0]);
    x.copy_from(&[4.0, 5.0, 6.0])?;
    graph.launch(&stream)?;
    assert_eq!(out.to_vec()?, [16.0, 25.0, 36.0]);
    Ok(())
}
