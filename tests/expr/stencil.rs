//! Tests stencils against plain loops.

use kernel_primitives::expr::*;
use kernel_primitives::{ExpressionErrorKind, Result};

use crate::{assert_error, numbers, stream};

/// Returns all boundaries that have elements outside.
pub(crate) fn boundaries() -> [Boundary<f64>; 5] {
    use Boundary::*;
    [Clamp, Periodic, Mirror, Symmetric, Constant(-7.0)]
}

/// Returns the element of a row at an index that may be outside.
pub(crate) fn at(row: &[f64], index: isize, boundary: Boundary<f64>) -> f64 {
    let (len, mut index) = (row.len() as isize, index);
    // The rule is applied until the index is inside.
    while !(0..len).contains(&index) {
        index = match (boundary, index < 0) {
            (Boundary::Clamp, low) => index + if low { 1 } else { -1 },
            (Boundary::Periodic, low) => index + if low { len } else { -len },
            (Boundary::Mirror, low) => {
                if low {
                    -index
                } else {
                    2 * len - 2 - index
                }
            }
            (Boundary::Symmetric, low) => {
                if low {
                    -index - 1
                } else {
                    2 * len - 1 - index
                }
            }
            (Boundary::Constant(value), _) => return value,
            (Boundary::Interior, _) => unreachable!("there is nothing outside"),
        };
    }
    row[index as usize]
}

#[test]
fn rows_go_on_as_the_boundary_says() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::from_slice(&stream, 4, &[1.0f64, 2.0, 3.0, 4.0])?;
    let expected = [
        [1.0, 1.0, 1.0, 1.0, 2.0, 3.0, 4.0, 4.0, 4.0, 4.0],
        [2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0],
        [4.0, 3.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0, 2.0, 1.0],
        [3.0, 2.0, 1.0, 1.0, 2.0, 3.0, 4.0, 4.0, 3.0, 2.0],
        [-7.0, -7.0, -7.0, 1.0, 2.0, 3.0, 4.0, -7.0, -7.0, -7.0],
    ];
    for (boundary, expected) in boundaries().into_iter().zip(expected) {
        for by in -3..=3 {
            let y = Tensor::uninit(&stream, 4)?;
            y.assign(stencil(&x, boundary, |n| n.at(by)))?;
            assert_eq!(y.to_vec()?, expected[(3 + by) as usize..][..4], "{boundary:?} {by}");
        }
    }
    Ok(())
}

/// Rows are about as long as chunks and vectors, or shorter than the stencil.
#[test]
fn rows_of_all_lengths() -> Result<()> {
    let stream = stream()?;
    for len in (0..20).chain([255, 256, 257, 1023, 16_384, 16_390]) {
        let data = numbers::<f64>(len, len as u64);
        let x = Tensor::from_slice(&stream, len, &data)?;
        let y = Tensor::uninit(&stream, len)?;
        for boundary in boundaries() {
            for [low, high] in [[0, 0], [-1, 1], [-2, 5], [-9, -8], [17, 33]] {
                let made = y.assign(stencil(&x, boundary, |n| n.at(low) - n.at(high) * 0.5));
                let longest = low.unsigned_abs().max(high.unsigned_abs());
                let refused = match boundary {
                    Boundary::Mirror => len > 0 && longest > len - 1,
                    Boundary::Symmetric => len > 0 && longest > len,
                    _ => false,
                };
                if refused {
                    assert_error(made, ExpressionErrorKind::BadStencil, &["mirror", &format!("[{len}]")]);
                    continue;
                }
                made?;
                let expected: Vec<f64> = (0..len as isize)
                    .map(|i| at(&data, i + low, boundary) - at(&data, i + high, boundary) * 0.5)
                    .collect();
                assert_eq!(y.to_vec()?, expected, "{len} {boundary:?} {low} {high}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_step_of_the_heat_equation_in_two_and_three_dimensions() -> Result<()> {
    let stream = stream()?;
    for shape in [[1, 37, 41], [5, 8, 300], [1, 1, 1]] {
        let [depth, height, width] = shape.map(|extent| extent as isize);
        let data = numbers::<f64>(shape.iter().product(), 3);
        let x = Tensor::from_slice(&stream, shape, &data)?;
        let y = Tensor::uninit(&stream, shape)?;
        let clamped = |z: isize, r: isize, c: isize| {
            let (z, r, c) = (z.clamp(0, depth - 1), r.clamp(0, height - 1), c.clamp(0, width - 1));
            data[((z * height + r) * width + c) as usize]
        };
        // If there are fewer offsets than axes, the stencil works on each matrix.
        y.assign(
            &x + 0.1
                * stencil(&x, Boundary::Clamp, |n| {
                    n.at([-1, 0]) + n.at([1, 0]) + n.at([0, -1]) + n.at([0, 1]) - n.at(0) * 4.0
                }),
        )?;
        let mut expected = Vec::new();
        let mut volume = Vec::new();
        for (z, r, c) in (0..depth).flat_map(|z| (0..height).flat_map(move |r| (0..width).map(move |c| (z, r, c)))) {
            let own = clamped(z, r, c);
            let flat = clamped(z, r - 1, c) + clamped(z, r + 1, c) + clamped(z, r, c - 1) + clamped(z, r, c + 1);
            expected.push(own + 0.1 * (flat - own * 4.0));
            volume.push(flat + (clamped(z - 1, r, c) + clamped(z + 1, r, c)));
        }
        assert_eq!(y.to_vec()?, expected);
        let flat = stencil(&x, Boundary::Clamp, |n| n.at([-1, 0]) + n.at([1, 0]) + n.at([0, -1]) + n.at([0, 1]));
        let deep = stencil(&x, Boundary::Clamp, |n| n.at([-1, 0, 0]) + n.at([1, 0, 0]));
        y.assign(flat + deep)?;
        assert_eq!(y.to_vec()?, volume);
    }
    Ok(())
}

#[test]
fn the_interior_is_smaller() -> Result<()> {
    let stream = stream()?;
    let data: Vec<i32> = (0..5 * 7).map(|i| i * i).collect();
    let x = Tensor::from_slice(&stream, [5, 7], &data)?;
    let inner = |n: &Neighbours<i32>| n.at([-1, 2]) - n.at([1, 0]);
    // One row is missing on each side, and two columns on the right.
    let y = Tensor::uninit(&stream, [3, 5])?;
    y.assign(stencil(&x, Boundary::Interior, inner) * 2)?;
    let expected: Vec<i32> = (1..4)
        .flat_map(|r| (0..5).map(move |c| (r, c)))
        .map(|(r, c)| 2 * (data[(r - 1) * 7 + c + 2] - data[(r + 1) * 7 + c]))
        .collect();
    assert_eq!(y.to_vec()?, expected);
    // The target is inside another tensor, as for a step of an equation.
    let frame = Tensor::from_slice(&stream, [5, 7], &[-1; 35])?;
    frame.slice((1..4, ..5))?.assign(stencil(&x, Boundary::Interior, inner))?;
    assert_eq!(frame.slice((1..4, ..5))?.to_vec()?, expected.iter().map(|y| y / 2).collect::<Vec<_>>());
    assert_eq!(frame.sum().item()?, expected.iter().sum::<i32>() / 2 - 20);
    let error = y.assign(stencil(&x, Boundary::Interior, |n| n.at([-3, 0]) + n.at([2, 0])));
    assert_error(error, ExpressionErrorKind::BadStencil, &["6 indices", "extent 5", "[5, 7]", "stencil(x0)"]);
    let large = Tensor::uninit(&stream, [5, 7])?;
    assert_error(
        large.assign(stencil(&x, Boundary::Interior, inner)),
        ExpressionErrorKind::BadShape,
        &["[3, 5]", "[5, 7]"],
    );
    Ok(())
}

/// The functions have comparisons and extremes, an expression, another tensor, and two stencils on one tensor.
#[test]
fn any_function_of_neighbours() -> Result<()> {
    let stream = stream()?;
    let data: Vec<u8> = (0..1000u32).map(|i| (i * i % 251) as u8).collect();
    let x = Tensor::from_slice(&stream, 1000, &data)?;
    let at = |i: usize, by: isize| data[(i as isize + by).rem_euclid(1000) as usize];
    let y = Tensor::uninit(&stream, 1000)?;
    y.assign(stencil(&x, Boundary::Periodic, |n| {
        let [a, b, c] = [-1, 0, 1].map(|by| n.at(by));
        maximum(minimum(&a, &b), minimum(maximum(a, b), c))
    }))?;
    let median = |i: usize| {
        let mut three = [at(i, -1), at(i, 0), at(i, 1)];
        three.sort_unstable();
        three[1]
    };
    assert_eq!(y.to_vec()?, (0..1000).map(median).collect::<Vec<_>>());

    let rises = Tensor::<bool>::uninit(&stream, 1000)?;
    rises.assign(stencil(&x, Boundary::Periodic, |n| gt(n.at(1), n.at(0))))?;
    assert_eq!(rises.to_vec()?, (0..1000).map(|i| at(i, 1) > at(i, 0)).collect::<Vec<_>>());
    // This is a stencil of `bool`, with a constant outside.
    let edges = Tensor::<bool>::uninit(&stream, 1000)?;
    edges.assign(stencil(&rises, Boundary::Constant(true), |n| n.at(-1) ^ n.at(0)))?;
    let rises = rises.to_vec()?;
    assert_eq!(edges.to_vec()?, (0..1000).map(|i| (i == 0 || rises[i - 1]) ^ rises[i]).collect::<Vec<_>>());

    let wide = Tensor::<i32>::uninit(&stream, 1000)?;
    wide.assign(
        stencil(x.cast::<i32>() * 3, Boundary::Periodic, |n| n.at(2) * x.cast::<i32>())
            - stencil(&x, Boundary::Clamp, |n| n.at(-1)).cast::<i32>()
            + x.cast::<i32>(),
    )?;
    let expected = |i: usize| {
        let own = i32::from(data[i]);
        3 * i32::from(at(i, 2)) * own - i32::from(data[i.saturating_sub(1)]) + own
    };
    assert_eq!(wide.to_vec()?, (0..1000).map(expected).collect::<Vec<_>>());
    Ok(())
}

/// There are more neighbours than a kernel has registers for.
#[test]
fn a_stencil_of_many_neighbours() -> Result<()> {
    let stream = stream()?;
    let (height, width) = (40isize, 50isize);
    let data: Vec<i64> = (0..2000i64).map(|i| i * 7919 % 1009).collect();
    let x = Tensor::from_slice(&stream, [40, 50], &data)?;
    let y = Tensor::uninit(&stream, [40, 50])?;
    let all = || (-6..=6isize).flat_map(|r| (-6..=6isize).map(move |c| [r, c]));
    let sum = || stencil(&x, Boundary::Constant(3), |n| all().map(|by| n.at(by)).reduce(|a, b| a + b).unwrap());
    y.assign(sum())?;
    let at = |r: isize, c: isize| {
        if (0..height).contains(&r) && (0..width).contains(&c) { data[(r * width + c) as usize] } else { 3 }
    };
    let expected: Vec<i64> = (0..height)
        .flat_map(|r| (0..width).map(move |c| (r, c)))
        .map(|(r, c)| all().map(|[down, right]| at(r + down, c + right)).sum())
        .collect();
    assert_eq!(y.to_vec()?, expected);
    assert!(y.ptx(sum(), 90)?.contains(".entry"));
    Ok(())
}

#[test]
fn a_residual_and_its_norm_are_one_launch_each() -> Result<()> {
    let stream = stream()?;
    let (u, f) = (numbers::<f64>(64 * 96, 1), numbers::<f64>(64 * 96, 2));
    let [tu, tf] = [&u, &f].map(|data| Tensor::from_slice(&stream, [64, 96], data).unwrap());
    let laplace = || {
        stencil(&tu, Boundary::Constant(0.0), |n| {
            n.at([-1, 0]) + n.at([1, 0]) + n.at([0, -1]) + n.at([0, 1]) - n.at(0) * 4.0
        })
    };
    let at = |r: usize, c: usize, down: isize, right: isize| {
        let (r, c) = (r as isize + down, c as isize + right);
        if (0..64).contains(&r) && (0..96).contains(&c) { u[(r * 96 + c) as usize] } else { 0.0 }
    };
    let residual: Vec<f64> = (0..64 * 96)
        .map(|i| {
            let (r, c) = (i / 96, i % 96);
            let around = at(r, c, -1, 0) + at(r, c, 1, 0) + at(r, c, 0, -1) + at(r, c, 0, 1);
            f[i] - (around - u[i] * 4.0)
        })
        .collect();
    let y = Tensor::uninit(&stream, [64, 96])?;
    y.assign(&tf - laplace())?;
    assert_eq!(y.to_vec()?, residual);
    let norm = residual.iter().map(|r| r * r).sum::<f64>().sqrt();
    let fused = (&tf - laplace()).norm().item()?;
    assert!((fused - norm).abs() < 1e-12 * norm, "{fused} {norm}");
    let columns = (&tf - laplace()).max().axes(&[0]).tensor()?.to_vec()?;
    for (c, &largest) in columns.iter().enumerate() {
        let expected = (0..64).map(|r| residual[r * 96 + c]).fold(f64::MIN, f64::max);
        assert_eq!(largest, expected, "column {c}");
    }
    Ok(())
}

/// Two tensors take turns, as in the equations of physics in time.
#[test]
fn prepared_stencils_run_again() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::from_slice(&stream, 5, &[0i32, 0, 1, 0, 0])?;
    let y = Tensor::zeros(&stream, 5)?;
    let sum = |of: &Tensor<i32>| stencil(of, Boundary::Periodic, |n| n.at(-1) + n.at(1));
    let (there, back) = (Prepared::new([y.to(sum(&x))])?, Prepared::new([x.to(sum(&y))])?);
    for _ in 0..2 {
        there.run()?;
        back.run()?;
    }
    assert_eq!(x.to_vec()?, steps(4));
    Ok(())
}

/// Returns the numbers of ways to each place in `count` steps on a ring of five.
fn steps(count: usize) -> Vec<i32> {
    let mut row = vec![0, 0, 1, 0, 0];
    for _ in 0..count {
        row = (0..5).map(|i| row[(i + 4) % 5] + row[(i + 1) % 5]).collect();
    }
    row
}

/// The widths are those of VexCL.
#[test]
fn convolutions_of_all_widths() -> Result<()> {
    let stream = stream()?;
    let data = numbers::<f64>(3000, 5);
    let x = Tensor::from_slice(&stream, 3000, &data)?;
    let y = Tensor::uninit(&stream, 3000)?;
    for width in (1..=64).chain([2048]) {
        let weights = numbers::<f64>(width, 6);
        // The origin is at the first weight, at the last, after the last, and between.
        let origin = [0, width as isize - 1, width as isize + 3, width as isize / 2][width % 4];
        let boundary = boundaries()[width % 5];
        y.assign(convolve(&x, &weights, origin, boundary))?;
        let term = |i: usize, k: usize| at(&data, i as isize + k as isize - origin, boundary) * weights[k];
        for (i, got) in y.to_vec()?.into_iter().enumerate() {
            let expected = (1..width).fold(term(i, 0), |sum, k| sum + term(i, k));
            assert_eq!(got, expected, "width {width}, element {i}");
        }
    }
    y.assign(convolve(&x, &[], 0, Boundary::Clamp))?;
    assert_eq!(y.to_vec()?, [0.0; 3000]);
    Ok(())
}

/// The type itself does not hold the partial sums of halves. The rows are a batch.
#[test]
fn convolutions_of_halves_are_summed_in_f32() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::from_slice(&stream, [2, 300], &[half::f16::from_f32(1.0); 600])?;
    let y = Tensor::uninit(&stream, [2, 300])?;
    let mut weights = vec![half::f16::from_f32(0.0625); 100];
    weights[0] = half::f16::from_f32(2048.0);
    y.assign(convolve(&x, &weights, 0, Boundary::Periodic))?;
    assert_eq!(y.to_vec()?, [half::f16::from_f32(2048.0 + 99.0 * 0.0625); 600]);
    Ok(())
}

#[test]
fn what_a_stencil_cannot_read() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::<f32>::zeros(&stream, [4, 5])?;
    let y = Tensor::<f32>::uninit(&stream, [4, 5])?;
    let refused =
        |value: Expr<f32>, parts: &[&str]| assert_error(y.assign(value), ExpressionErrorKind::BadStencil, parts);
    let left = |n: &Neighbours<f32>| n.at(-1);
    refused(stencil(&x, Boundary::Clamp, |n| n.at([0, 0, 1])), &["3 offsets", "[0, 0, 1]", "[4, 5]", "stencil(x0)"]);
    refused(stencil(&x, Boundary::Mirror, |n| n.at([4, 0])), &["4 away", "extent 4", "[4, 5]", "mirror"]);
    refused(stencil(&x, Boundary::Symmetric, |n| n.at(-6)) + 1.0, &["-6 away", "extent 5", "stencil(x0) + 1.0"]);
    // The source takes long to compute, or depends on the place.
    refused(stencil(sin(&x), Boundary::Clamp, left), &["`sin(x0)`", "tensor first"]);
    refused(stencil(&x * element_index::<f32>(), Boundary::Clamp, left), &["tensor first"]);
    refused(stencil(stencil(&x, Boundary::Clamp, left), Boundary::Clamp, left), &["`x0[0, -1]`", "tensor first"]);
    refused(stencil(&x * 2.0, Boundary::Constant(0.0), left), &["constant", "one first"]);
    let z = Tensor::<f32>::zeros(&stream, 3)?;
    refused(stencil(&x + &z, Boundary::Clamp, left), &["[4, 5]", "[3]", "broadcast"]);
    let mut kept = None;
    let inner = stencil(&x, Boundary::Interior, |n| kept.insert(n.at(0)).clone());
    y.assign(inner)?;
    refused(kept.unwrap(), &["outside of the stencil's function"]);
    // A reduction refuses it, too.
    let error = stencil(sin(&x), Boundary::Clamp, left).sum().item();
    assert_error(error, ExpressionErrorKind::BadStencil, &["sin(x0)"]);
    Ok(())
}

#[test]
fn a_stencil_in_place_is_refused() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::from_slice(&stream, 8, &[0i32, 1, 2, 3, 4, 5, 6, 7])?;
    let overlaps = |made| assert_error(made, ExpressionErrorKind::Overlap, &["overlaps", "stencil"]);
    overlaps(x.assign(stencil(&x, Boundary::Clamp, |n| n.at(1))));
    overlaps(x.assign(&x + stencil(&x, Boundary::Clamp, |n| n.at(0) + n.at(1))));
    overlaps(x.slice(4..)?.assign(
        stencil(&x, Boundary::Clamp, |n| n.at(1)).sum().tensor()?
            + stencil(x.slice(3..7)?, Boundary::Clamp, |n| n.at(-1)),
    ));
    assert!(Prepared::new([x.to(stencil(&x, Boundary::Clamp, |n| n.at(1)))]).is_err());
    assert_eq!(x.to_vec()?, [0, 1, 2, 3, 4, 5, 6, 7]);
    // The element itself is not a neighbour. Memory that is not read may be written.
    x.assign(stencil(&x, Boundary::Clamp, |n| n.at(0) + 1))?;
    x.slice(..4)?.assign(stencil(x.slice(4..)?, Boundary::Clamp, |n| n.at(1)))?;
    assert_eq!(x.to_vec()?, [6, 7, 8, 8, 5, 6, 7, 8]);
    Ok(())
}

/// [`contract`](Expr::contract) makes a new graph around the neighbours.
#[test]
fn contraction_inside_of_an_interior_stencil() -> Result<()> {
    let stream = stream()?;
    let [a, b, c] = [2.0f32, 3.0, 5.0].map(|value| Tensor::from_slice(&stream, 4, &[value; 4]).unwrap());
    let y = Tensor::uninit(&stream, 3)?;
    y.assign(stencil(&a * &b + &c, Boundary::Interior, |n| (n.at(0) * 2.0 + n.at(1)).contract()))?;
    assert_eq!(y.to_vec()?, [33.0; 3]);
    Ok(())
}

#[test]
fn a_stencil_has_the_shape_of_what_it_reads() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::from_slice(&stream, 4, &[1.0f32; 4])?;
    let w = Tensor::from_slice(&stream, 1, &[10.0f32])?;
    // These neighbours are outside for every place.
    let outside = || stencil(&x, Boundary::Constant(3.0), |n| n.at(9));
    let nothing = |boundary| stencil(&x, boundary, |_| constant(5i64));
    assert_eq!(outside().sum().item()?, 12.0);
    assert_eq!((outside() * &w).sum().item()?, 120.0);
    for boundary in [Boundary::Clamp, Boundary::Constant(3.0), Boundary::Interior] {
        assert_eq!(nothing(boundary).sum().item()?, 20);
    }
    assert_eq!(convolve(&x, &[], 0, Boundary::Clamp).sum().item()?, 0.0);
    let y = Tensor::uninit(&stream, 7)?;
    for boundary in [Boundary::Clamp, Boundary::Constant(3.0)] {
        assert_error(y.assign(stencil(&x, boundary, |n| n.at(9))), ExpressionErrorKind::BadShape, &["[4]", "[7]"]);
    }
    Ok(())
}

#[test]
fn distances_at_the_ends_of_what_counts() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::from_slice(&stream, 1, &[1.0f32])?.broadcast_to([usize::MAX])?;
    let y = Tensor::uninit(&stream, 1)?;
    y.assign(stencil(&x, Boundary::Interior, |n| n.at(-isize::MAX) + n.at(isize::MAX)))?;
    assert_eq!(y.to_vec()?, [2.0]);
    // This is the weight of the element i + 1 + 2^63.
    let x = Tensor::from_slice(&stream, 3, &[0i32, 1, 2])?;
    let y = Tensor::uninit(&stream, 3)?;
    let far = convolve(&x, &[0, 1], isize::MIN, Boundary::Periodic);
    assert_error(y.assign(far), ExpressionErrorKind::BadStencil, &["weight 0", "origin", "far away"]);
    Ok(())
}

/// A thread of a reduction takes the same number of elements as a thread of an assignment. It has the code twice: for several vectors, and
/// for the last one.
#[test]
fn reductions_of_wide_stencils_have_short_kernels() -> Result<()> {
    let stream = stream()?;
    let [x, y] = [0; 2].map(|_| Tensor::<u8>::zeros(&stream, 4096).unwrap());
    // The row is backwards, because rows that are forwards are assigned from tiles in shared memory.
    let x = x.slice(AxisSlice::from(..).by(-1))?;
    let all = || convolve(&x, &[1u8; 512], 0, Boundary::Clamp);
    let (assigned, summed) = (y.ptx(all(), 90)?.lines().count(), all().sum().ptx(90)?.lines().count());
    assert!(summed < 3 * assigned, "{summed} lines of a sum, {assigned} of an assignment");
    Ok(())
}

#[test]
fn a_neighbour_that_is_kept_elsewhere_is_not_read() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::from_slice(&stream, 4, &[1.0f32; 4])?;
    let mut kept = None;
    let five = |kept: &mut Option<Expr<f32>>| {
        stencil(&x, Boundary::Clamp, |n| {
            *kept = Some(n.at(1));
            constant(5i64)
        })
    };
    assert_eq!(five(&mut kept).sum().item()?, 20);
    let y = Tensor::uninit(&stream, 7)?;
    assert!(y.assign(five(&mut kept)).is_err());
    Ok(())
}
