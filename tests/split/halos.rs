//! Tests stencils over split tensors bit for bit against those of one device.

use kernel_primitives::expr::*;
use kernel_primitives::functor::{LessThan, bind_second};
use kernel_primitives::{Devices, EmulatorOptions, Error, ExpressionErrorKind, Result, Split, SplitBuffer, split};

use crate::{all_splits, devices, splits, values};

/// The rules that take every distance below the extent.
const RULES: [Boundary<f32>; 5] =
    [Boundary::Clamp, Boundary::Periodic, Boundary::Mirror, Boundary::Symmetric, Boundary::Constant(0.3)];

fn floats(len: usize) -> Vec<f32> {
    values(len).into_iter().map(|x| x as f32 * 0.37).collect()
}

fn bits(values: Vec<f32>) -> Vec<u32> {
    values.into_iter().map(f32::to_bits).collect()
}

/// Makes a tensor with room for this number of rows around the rows of each device, or without room.
fn source(split: &Split, shape: &[usize], halo: Option<usize>) -> Result<SplitTensor<f32>> {
    let x = SplitTensor::from_slice(split, shape, &floats(shape.iter().product()))?;
    let Some(halo) = halo else { return Ok(x) };
    let roomy = SplitTensor::uninit_with_halo(split, shape, halo)?;
    roomy.copy_from(&x)?;
    Ok(roomy)
}

/// Checks that an expression of a tensor of shape `from`, with values of shape `to`, is the same as on one device. It does this for all of
/// the splits, and for rooms of several sizes around the shards.
fn check(splits: &[Split], [from, to]: [&[usize]; 2], value: &dyn Fn(Expr<f32>) -> Expr<f32>) -> Result<()> {
    let stream = devices(1)?[0].stream()?;
    let x = Tensor::from_slice(&stream, from, &floats(from.iter().product()))?;
    let y = Tensor::<f32>::uninit(&stream, to)?;
    y.assign(value(x.to_expr()))?;
    let expected = bits(y.to_vec()?);
    for split in splits {
        for halo in [None, Some(0), Some(1), Some(2), Some(7)] {
            let x = source(split, from, halo)?;
            let y = SplitTensor::<f32>::uninit(split, to)?;
            // This runs twice, so that the rows of the first run are not taken for those of the second.
            for _ in 0..2 {
                y.assign(value(x.to_expr()))?;
                assert_eq!(bits(y.to_vec()?), expected, "{split:?} {from:?} halo {halo:?}");
                x.copy_from(&x.resplit(split)?)?;
            }
            assert_eq!(bits(x.to_vec()?), bits(floats(x.len())), "the source stays as it is");
        }
    }
    Ok(())
}

#[test]
fn halos_of_vectors() -> Result<()> {
    let splits = all_splits()?;
    for n in [1, 2, 3, 4, 5, 7, 9, 16, 33] {
        let most = n as isize - 1;
        for rule in RULES {
            for (low, high) in [(1, 1), (2, 0), (0, 3), (most, most)] {
                let (low, high) = (low.min(most), high.min(most));
                check(&splits, [&[n], &[n]], &|x| {
                    &x * 0.5 + stencil(&x, rule, |at| at.at(-low) * 0.3 + at.at(0) - at.at(high) * at.at(-low / 2))
                })?;
            }
        }
    }
    Ok(())
}

#[test]
fn halos_of_matrices() -> Result<()> {
    let splits = all_splits()?;
    for rows in [1, 2, 3, 5, 8, 17] {
        for columns in [1, 2, 5] {
            let (up, left) = ((rows as isize - 1).min(3), (columns as isize - 1).min(1));
            for rule in RULES {
                check(&splits, [&[rows, columns], &[rows, columns]], &|x| {
                    stencil(&x, rule, |n| {
                        n.at([-up, left]) * 0.25
                            + n.at([0, -left])
                            + n.at([up / 2, 0]) * n.at([up, -left])
                            + n.at([0, 0])
                    })
                })?;
            }
        }
    }
    Ok(())
}

#[test]
fn halos_along_inner_axes_take_no_copies() -> Result<()> {
    let splits = splits(3)?;
    for rule in RULES {
        check(&splits, [&[7, 6], &[7, 6]], &|x| stencil(&x, rule, |n| n.at(-2) + n.at(3) * 0.1))?;
        check(&splits, [&[5, 80], &[5, 80]], &|x| convolve(&x, &floats(70), 30, rule))?;
    }
    let split = Split::even(&Devices::emulated(3)?)?;
    let (x, y) = (source(&split, &[7, 6], None)?, SplitTensor::uninit(&split, [7, 6])?);
    let before = peer_bytes(&split);
    y.assign(stencil(&x, Boundary::Periodic, |n| n.at(-1) + n.at(1)))?;
    assert_eq!(peer_bytes(&split), before);
    Ok(())
}

#[test]
fn halos_of_more_axes() -> Result<()> {
    let splits = splits(3)?;
    for shape in [[1, 2, 3, 2], [4, 2, 1, 3], [9, 3, 2, 2]] {
        let up = (shape[0] as isize - 1).min(2);
        for rule in RULES {
            check(&splits, [&shape, &shape], &|x| {
                stencil(&x, rule, |n| n.at([-up, 1, 0, -1]) + n.at([up, 0, 0, 1]) * 0.7 - n.at([0, -1, 0, 0]))
            })?;
        }
    }
    Ok(())
}

#[test]
fn halos_of_wide_sums() -> Result<()> {
    let splits = all_splits()?;
    for n in [80, 131] {
        for rule in RULES {
            for (weights, origin) in [(3, 1), (12, 0), (12, 11), (70, 35), (79, 0), (79, 78), (66, -3)] {
                check(&splits, [&[n], &[n]], &|x| {
                    let sum = convolve(&x, &floats(weights), origin, rule);
                    if origin % 2 == 0 { sum.contract() } else { sum }
                })?;
            }
        }
    }
    Ok(())
}

#[test]
fn halos_of_interior_stencils() -> Result<()> {
    let splits = all_splits()?;
    for rows in [3, 4, 6, 7, 20] {
        check(&splits, [&[rows], &[rows - 2]], &|x| stencil(&x, Boundary::Interior, |n| n.at(2) - n.at(0) * 0.4))?;
        check(&splits, [&[rows, 4], &[rows - 2, 2]], &|x| {
            stencil(&x, Boundary::Interior, |n| n.at([-1, 0]) + n.at([1, 1]) * 0.4 - n.at([0, -1]) * n.at([0, 0]))
        })?;
        check(&splits, [&[rows, 4], &[rows, 3]], &|x| stencil(&x, Boundary::Interior, |n| n.at(1) - n.at(0)))?;
        check(&splits, [&[rows, 2], &[rows, 2]], &|x| stencil(&x, Boundary::Interior, |n| n.at(0) * 2.0))?;
    }
    Ok(())
}

#[test]
fn stencils_of_arithmetic_and_of_several_boundaries() -> Result<()> {
    let splits = splits(3)?;
    for rows in [3, 6, 13] {
        check(&splits, [&[rows, 3], &[rows, 3]], &|x| {
            let sum = |boundary| stencil(&x * 2.0 + &x * &x, boundary, |n| n.at([-2, 0]) + n.at([1, 1]));
            sum(Boundary::Periodic) * sum(Boundary::Clamp) + stencil(&x, Boundary::Mirror, |n| n.at([2, 0])) - &x
        })?;
        check(&splits, [&[rows], &[rows]], &|x| {
            let outside = |value| stencil(&x, Boundary::Constant(value), |n| n.at(-1) - n.at(2));
            outside(1.0) * 0.5 + outside(-1.0) + stencil(&x, Boundary::Constant(5.0), |n| n.at(40))
        })?;
    }
    Ok(())
}

#[test]
fn rows_that_are_repeated_along_inner_axes() -> Result<()> {
    let stream = devices(1)?[0].stream()?;
    let (a, b) = (floats(9), floats(27));
    let value =
        |x: Expr<f32>, y: Expr<f32>| stencil(x + y, Boundary::Periodic, |n| n.at([-1, 1]) + n.at([2, -1]) * 0.3);
    let whole = Tensor::uninit(&stream, [9, 3])?;
    whole.assign(value(
        Tensor::from_slice(&stream, [9, 1], &a)?.to_expr(),
        Tensor::from_slice(&stream, [9, 3], &b)?.to_expr(),
    ))?;
    for split in splits(3)? {
        let y = SplitTensor::uninit(&split, [9, 3])?;
        let column = SplitTensor::from_slice(&split, [9, 1], &a)?;
        y.assign(value(column.to_expr(), source(&split, &[9, 3], Some(2))?.to_expr()))?;
        assert_eq!(bits(y.to_vec()?), bits(whole.to_vec()?), "{split:?}");
    }
    Ok(())
}

#[test]
fn interior_of_a_repeated_row() -> Result<()> {
    let (a, b) = (floats(3), floats(15));
    let expected: Vec<f32> = (0..3).map(|c| (a[c] + b[c]) + (a[c] + b[12 + c])).collect();
    for split in splits(3)? {
        let x = SplitTensor::from_slice(&split, [1, 3], &a)?;
        let y = SplitTensor::from_slice(&split, [5, 3], &b)?;
        let out = SplitTensor::<f32>::uninit(&split, [1, 3])?;
        out.assign(stencil(&x + &y, Boundary::Interior, |n| n.at([-2, 0]) + n.at([2, 0])))?;
        assert_eq!(bits(out.to_vec()?), bits(expected.clone()), "{split:?}");
    }
    Ok(())
}

#[test]
fn stencils_of_results_that_are_split_in_a_way_of_their_own() -> Result<()> {
    let split = Split::even(&Devices::emulated(3)?)?;
    let all: Vec<f32> = (0..30).map(|i| i as f32).collect();
    let kept = split::select_if(&SplitBuffer::from_slice(&split, &all)?, bind_second(LessThan, 10.0f32))?;
    let (y, x) = (SplitTensor::from_buffer(kept), SplitTensor::from_slice(&split, 12, &all[..12])?);
    let inner = || stencil(&x, Boundary::Interior, |n| n.at(-1) + n.at(1));
    let whole = || stencil(&y, Boundary::Clamp, |n| n.at(1).clone());
    // The sum of 2 (i + 1), and of the next numbers.
    let expected = 110.0 + 54.0;
    assert_eq!((inner() + whole()).sum().item()?, expected);
    assert_eq!((whole() + inner()).sum().item()?, expected);
    Ok(())
}

#[test]
fn only_what_needs_the_room_around_shards_has_it() -> Result<()> {
    const LEN: usize = 40_000;
    let mut options = EmulatorOptions::default();
    // The memory is enough for two tensors, and a little more.
    options.memory_bytes = Some(LEN / 2 * 4 * 5 / 2);
    let split = Split::even(&Devices::emulated_with(2, options)?)?;
    let tensor = || SplitTensor::<f32>::uninit_with_halo(&split, [LEN / 100, 100], 1);
    let (x, y) = (tensor()?, tensor()?);
    x.assign(element_index::<f32>())?;
    y.assign(stencil(&x, Boundary::Mirror, |n| n.at([0, 1])) + stencil(&x, Boundary::Clamp, |n| n.at([-1, 0])))?;
    let expected = |i: usize| {
        let (row, column) = (i / 100, i % 100);
        let mirrored = if column == 99 { 98 } else { column + 1 };
        (row * 100 + mirrored + row.saturating_sub(1) * 100 + column) as f32
    };
    assert_eq!(y.to_vec()?, (0..LEN).map(expected).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn all_types() -> Result<()> {
    for split in splits(3)? {
        let bytes = SplitTensor::from_slice(&split, 7, &[1u8, 2, 3, 4, 5, 6, 7])?;
        let out = SplitTensor::<u8>::uninit(&split, 7)?;
        out.assign(stencil(&bytes, Boundary::Clamp, |n| n.at(-1) + n.at(1)))?;
        assert_eq!(out.to_vec()?, [3, 4, 6, 8, 10, 12, 13]);
        let flags = SplitTensor::<bool>::uninit_with_halo(&split, 5, 1)?;
        flags.assign(eq(element_index::<u64>() % 2, scalar(0u64)))?;
        let both = SplitTensor::<bool>::uninit(&split, 5)?;
        both.assign(stencil(&flags, Boundary::Constant(true), |n| n.at(-1) & n.at(1)))?;
        assert_eq!(both.to_vec()?, [false, true, false, true, false]);
        let wide = SplitTensor::from_slice(&split, [3, 1], &[1.0f64, 2.0, 4.0])?;
        let sums = SplitTensor::<f64>::uninit(&split, [3, 1])?;
        sums.assign(stencil(&wide, Boundary::Periodic, |n| n.at([-1, 0]) + n.at([0, 0]) * 0.5))?;
        assert_eq!(sums.to_vec()?, [4.5, 2.0, 4.0]);
    }
    Ok(())
}

#[test]
fn halos_of_what_is_reduced() -> Result<()> {
    let stream = devices(1)?[0].stream()?;
    for rows in [1, 2, 5, 12] {
        let host: Vec<i64> = values(rows * 4).into_iter().map(i64::from).collect();
        let up = (rows as isize - 1).min(2);
        let whole = Tensor::from_slice(&stream, [rows, 4], &host)?;
        let value = |x: Expr<i64>| stencil(&x, Boundary::Periodic, |n| n.at([-up, 1]) * n.at([up / 2, 0])) - &x;
        let one = value(whole.to_expr());
        for split in all_splits()? {
            let roomy = SplitTensor::uninit_with_halo(&split, [rows, 4], 2)?;
            let plain = SplitTensor::from_slice(&split, [rows, 4], &host)?;
            roomy.copy_from(&plain)?;
            for x in [roomy, plain] {
                let all = value(x.to_expr());
                assert_eq!(all.sum().item()?, one.sum().item()?, "{split:?} {rows}");
                assert_eq!(all.arg_max().item()?, one.arg_max().item()?);
                assert_eq!(all.min().axes(&[0]).tensor()?.to_vec()?, one.min().axes(&[0]).tensor()?.to_vec()?);
                assert_eq!(all.sum().axes(&[1]).split_tensor()?.to_vec()?, one.sum().axes(&[1]).tensor()?.to_vec()?);
                // These are stencils only, and their shape is that of their places.
                let inner = |x: Expr<i64>| stencil(x, Boundary::Interior, |n| n.at([up, 0]) - n.at([0, 1]) * 3);
                let (all, one) = (inner(x.to_expr()), inner(whole.to_expr()));
                assert_eq!(all.sum().item()?, one.sum().item()?, "{split:?} {rows}");
                assert_eq!(all.max().axes(&[1]).split_tensor()?.to_vec()?, one.max().axes(&[1]).tensor()?.to_vec()?);
            }
        }
    }
    Ok(())
}

#[test]
fn tensors_without_elements() -> Result<()> {
    for split in splits(3)? {
        for shape in [[0, 3], [3, 0], [0, 0]] {
            for halo in [None, Some(2)] {
                let (x, y) = (source(&split, &shape, halo)?, SplitTensor::<f32>::uninit(&split, shape)?);
                y.assign(stencil(&x, Boundary::Clamp, |n| n.at([-1, 0]) + n.at([1, 0])))?;
                assert_eq!(stencil(&x, Boundary::Periodic, |n| n.at([1, 0])).sum().item()?, 0.0);
            }
        }
        let empty = SplitTensor::<u8>::uninit_with_halo(&split, [usize::MAX, 0], 3)?;
        assert_eq!(stencil(&empty, Boundary::Clamp, |n| n.at([-1, 0])).sum().item()?, 0);
        // There may be room for any number of rows.
        for shape in [[5, 0], [0, 5]] {
            let empty = SplitTensor::<u8>::uninit_with_halo(&split, shape, usize::MAX)?;
            let beside = stencil(&empty, Boundary::Clamp, |n| n.at([1, 0]) + n.at([0, 1]));
            assert_eq!(beside.sum().item()?, 0, "{shape:?}");
        }
    }
    Ok(())
}

fn peer_bytes(split: &Split) -> usize {
    split.streams().iter().map(|stream| stream.device().counters().peer_bytes as usize).sum()
}

#[test]
fn only_rows_around_shards_go_between_devices() -> Result<()> {
    let split = Split::even(&Devices::emulated(4)?)?;
    let copied = |x: &SplitTensor<f32>, boundary, by: isize| -> Result<usize> {
        let y = SplitTensor::uninit(&split, x.shape())?;
        let before = peer_bytes(&split);
        y.assign(stencil(x, boundary, |n| n.at([-by, 0]) + n.at([by, 0])))?;
        Ok((peer_bytes(&split) - before) / 4 / 5)
    };
    for halo in [None, Some(1), Some(4)] {
        let x = source(&split, &[40, 5], halo)?;
        // Two rows cross each of the three borders. If the boundary is periodic, two more go around the tensor.
        assert_eq!(copied(&x, Boundary::Clamp, 1)?, 6, "{halo:?}");
        assert_eq!(copied(&x, Boundary::Periodic, 1)?, 8, "{halo:?}");
        assert_eq!(copied(&x, Boundary::Mirror, 4)?, 24, "{halo:?}");
    }
    let (x, y) = (source(&split, &[40, 5], Some(1))?, SplitTensor::<f32>::uninit(&split, [40, 5])?);
    let launches = || split.streams().iter().map(|stream| stream.device().counters().launches).sum::<u64>();
    let before = launches();
    y.assign(stencil(&x, Boundary::Periodic, |n| n.at([-1, 0]) + n.at([1, 0])))?;
    assert_eq!(launches() - before, 4);
    Ok(())
}

#[test]
fn many_steps_are_those_of_one_device() -> Result<()> {
    let stream = devices(1)?[0].stream()?;
    let shape = [23, 9];
    let step = |x: Expr<f32>| {
        let around =
            stencil(&x, Boundary::Constant(0.0), |n| n.at([-1, 0]) + n.at([1, 0]) + n.at([0, -1]) + n.at([0, 1]));
        &x + (around - &x * 4.0) * 0.2
    };
    let (mut now, mut next) = (Tensor::from_slice(&stream, shape, &floats(207))?, Tensor::uninit(&stream, shape)?);
    for _ in 0..40 {
        next.assign(step(now.to_expr()))?;
        std::mem::swap(&mut now, &mut next);
    }
    let expected = bits(now.to_vec()?);
    for split in all_splits()? {
        let (mut now, mut next) = (source(&split, &shape, Some(1))?, SplitTensor::uninit_with_halo(&split, shape, 1)?);
        for _ in 0..40 {
            next.assign(step(now.to_expr()))?;
            std::mem::swap(&mut now, &mut next);
        }
        assert_eq!(bits(now.to_vec()?), expected, "{split:?}");
    }
    Ok(())
}

#[test]
fn threads_share_the_room_around_shards() -> Result<()> {
    let split = Split::even(&devices(3)?)?;
    let x = source(&split, &[30], Some(2))?;
    let sum = |boundary| stencil(&x, boundary, |n| n.at(-2) + n.at(2)).cast::<f64>().max().item();
    let expected: Vec<f64> = RULES.into_iter().map(sum).collect::<Result<_>>()?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = RULES
            .into_iter()
            .zip(&expected)
            .map(|(rule, expected)| {
                scope.spawn(move || -> Result<()> {
                    for _ in 0..20 {
                        assert_eq!(sum(rule)?, *expected);
                    }
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })
}

#[test]
fn stencils_that_do_not_fit() -> Result<()> {
    let devices = Devices::emulated(2)?;
    let split = Split::even(&devices)?;
    let other = Split::weighted(&devices, &[1.0, 3.0])?;
    let fails = |result: Result<()>, kind, part: &str| {
        let Err(Error::Expression(error)) = result else { panic!("{result:?}") };
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.reason.contains(part) && error.file.ends_with("halos.rs"), "{error}");
    };
    for halo in [None, Some(1)] {
        let (x, y) = (source(&split, &[8], halo)?, SplitTensor::<f32>::zeros(&split, 8)?);
        let beside = |x: &SplitTensor<f32>| stencil(x, Boundary::Clamp, |n| n.at(-1) + n.at(1));
        fails(x.assign(beside(&x)), ExpressionErrorKind::Overlap, "read a copy");
        let elsewhere = SplitTensor::<f32>::zeros(&other, 8)?;
        fails(elsewhere.assign(beside(&x)), ExpressionErrorKind::BadSplit, "resplit");
        let shorter = SplitTensor::<f32>::zeros(&split, 7)?;
        fails(shorter.assign(beside(&x)), ExpressionErrorKind::BadShape, "[7]");
        let rows = SplitTensor::<f32>::zeros(&split, [3, 8])?;
        fails(rows.assign(beside(&x)), ExpressionErrorKind::BadSplit, "cannot be repeated");
        let whole = Tensor::<f32>::zeros(&split.streams()[0], 8)?;
        fails(whole.assign(beside(&x)), ExpressionErrorKind::BadSplit, "to_tensor");
        fails(whole.assign(beside(&x).steps(2)), ExpressionErrorKind::BadSplit, "to_tensor");
        let far = stencil(&x, Boundary::Mirror, |n| n.at(8));
        fails(y.assign(far), ExpressionErrorKind::BadStencil, "mirror");
        fails(
            y.assign(stencil(&x, Boundary::Interior, |n| n.at(8) - n.at(0))),
            ExpressionErrorKind::BadStencil,
            "inside",
        );
        let inner = stencil(&x, Boundary::Interior, |n| n.at(1) - n.at(0));
        fails(y.assign(inner), ExpressionErrorKind::BadShape, "[7]");
    }
    let huge = SplitTensor::<f64>::uninit_with_halo(&split, 4, usize::MAX);
    assert!(matches!(huge, Err(Error::Allocation { .. })), "{huge:?}");
    // Elements that nothing has written are found in any place.
    let unwritten = SplitTensor::<f32>::uninit_with_halo(&split, 8, 2)?;
    let y = SplitTensor::<f32>::zeros(&split, 8)?;
    assert!(matches!(y.assign(stencil(&unwritten, Boundary::Clamp, |n| n.at(-1) + n.at(1))), Err(Error::Fault(_))));
    Ok(())
}
