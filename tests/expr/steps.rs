//! Tests steps of stencils against plain loops.

use half::{bf16, f16};
use kernel_primitives::expr::*;
use kernel_primitives::{Device, Error, ExpressionErrorKind, Result, Stream};

use crate::{Sample, Wide, assert_error, numbers, stream};

/// Returns the boundary with a number. Its constant is 2.
fn boundary<T: Sample>(number: usize) -> Boundary<T> {
    use Boundary::*;
    [Clamp, Periodic, Mirror, Symmetric, Constant(T::of(Wide::Int(2))), Interior][number]
}

const INTERIOR: usize = 5;

/// Returns the index that is read in place of an index that may be outside, or `None` for the constant.
fn index(mut at: isize, extent: usize, boundary: usize) -> Option<usize> {
    let extent = extent as isize;
    while !(0..extent).contains(&at) {
        at = match boundary {
            0 => at.clamp(0, extent - 1),
            1 => at.rem_euclid(extent),
            2 if at < 0 => -at,
            2 => 2 * (extent - 1) - at,
            3 if at < 0 => -1 - at,
            3 => 2 * extent - 1 - at,
            _ => return None,
        };
    }
    Some(at as usize)
}

/// A stencil of `offsets` along all axes, computed by loops.
struct Loops<'a> {
    shape: &'a [usize],
    offsets: &'a [Vec<isize>],
    boundary: usize,
}

impl Loops<'_> {
    fn place(&self, mut number: usize) -> Vec<usize> {
        let mut index = vec![0; self.shape.len()];
        for axis in (0..index.len()).rev() {
            index[axis] = number % self.shape[axis];
            number /= self.shape[axis];
        }
        index
    }

    /// Computes `count` steps. `f` makes a value from the neighbours and the place's number.
    fn steps<T: Sample>(&self, data: &[T], count: usize, f: impl Fn(&[T], usize) -> T) -> Vec<T> {
        let mut now = data.to_vec();
        for _ in 0..count {
            let value = |number: usize| {
                let place = self.place(number);
                let neighbour = |by: &Vec<isize>| {
                    let mut at = 0;
                    for ((&own, by), &extent) in place.iter().zip(by).zip(self.shape) {
                        match index(own as isize + by, extent, self.boundary) {
                            Some(inside) => at = at * extent + inside,
                            None if self.boundary == INTERIOR => return None,
                            None => return Some(T::of(Wide::Int(2))),
                        }
                    }
                    Some(now[at])
                };
                let neighbours: Option<Vec<T>> = self.offsets.iter().map(neighbour).collect();
                neighbours.map_or(now[number], |neighbours| f(&neighbours, number))
            };
            now = (0..now.len()).map(value).collect();
        }
        now
    }
}

/// Returns whether one step is refused.
fn is_refused(shape: &[usize], offsets: &[Vec<isize>], boundary: usize) -> bool {
    (0..shape.len()).any(|axis| {
        let along = || offsets.iter().map(|by| by[axis]);
        let (low, high) = (along().min().unwrap().min(0), along().max().unwrap().max(0));
        let (extent, farthest) = (shape[axis] as isize, high.max(-low));
        match boundary {
            2 => extent > 0 && farthest > extent - 1,
            3 => extent > 0 && farthest > extent,
            INTERIOR => high - low > 0 && high - low >= extent,
            _ => false,
        }
    })
}

/// Tests all boundaries, sizes and numbers of steps of one footprint. The weights are 1, −2, 3, …, and sums are in order.
fn holds<T>(offsets: &[&[isize]], shapes: &[&[usize]]) -> Result<()>
where
    T: Sample + Numeric + Promote<T, Output = T> + std::ops::Mul<Output = T> + std::ops::Sub<Output = T>,
{
    let stream = stream()?;
    for shape in shapes {
        let full = |by: &&[isize]| [vec![0; shape.len() - by.len()], by.to_vec()].concat();
        let offsets: Vec<Vec<isize>> = offsets.iter().map(full).collect();
        let data = numbers::<T>(shape.iter().product(), 7);
        let u = Tensor::from_slice(&stream, *shape, &data)?;
        let weight = |at: usize| T::of(Wide::Int(at as i128 + 1));
        for number in 0..=INTERIOR {
            let loops = Loops { shape, offsets: &offsets, boundary: number };
            let step = || {
                stencil(&u, boundary::<T>(number), |n| {
                    let terms = offsets.iter().enumerate().map(|(at, by)| n.at(by.clone()) * weight(at));
                    terms.reduce(|sum, term| sum - term).unwrap()
                })
            };
            for count in [0, 1, 2, 3, 5, 8] {
                let y = Tensor::uninit(&stream, *shape)?;
                let made = y.assign(step().steps(count));
                let what = format!("{shape:?} {offsets:?} boundary {number}, {count} steps");
                if is_refused(shape, &offsets, number) {
                    assert_error(made, ExpressionErrorKind::BadStencil, &[".steps("]);
                    continue;
                }
                made?;
                let f = |x: &[T], _| {
                    let terms = x.iter().enumerate().map(|(at, &x)| T::of((x * weight(at)).wide()));
                    terms.reduce(|sum, term| sum - term).unwrap()
                };
                let (got, expected) = (y.to_vec()?, loops.steps(&data, count, f));
                assert!(
                    got.iter().zip(&expected).all(|(a, &b)| a.distance(b) == 0),
                    "{what}: {got:?}, not {expected:?}"
                );
                assert!(y.ptx(step().steps(count), 90)?.contains(".entry"), "{what}");
            }
        }
    }
    Ok(())
}

const ROWS: &[&[usize]] = &[&[0], &[1], &[2], &[3], &[7], &[64], &[3, 33], &[0, 5]];
const PLANES: &[&[usize]] =
    &[&[0, 3], &[3, 0], &[1, 1], &[1, 9], &[9, 1], &[2, 3], &[5, 5], &[17, 40], &[2, 7, 9], &[2, 1, 3, 4]];

#[test]
fn steps_along_rows() -> Result<()> {
    holds::<f64>(&[&[-1], &[0], &[1]], ROWS)?;
    holds::<f32>(&[&[-2], &[3]], ROWS)?;
    holds::<f16>(&[&[1], &[0]], ROWS)?;
    holds::<bf16>(&[&[-1], &[1]], ROWS)
}

/// Values of floats grow, and overflow in the same way.
#[test]
fn steps_on_planes() -> Result<()> {
    holds::<f32>(&[&[-1, 0], &[1, 0], &[0, -1], &[0, 1], &[0, 0]], PLANES)?;
    holds::<f64>(&[&[-1, -1], &[1, 1], &[0, 2]], PLANES)?;
    // These are only shifts, up and down.
    holds::<f32>(&[&[1, 0]], PLANES)?;
    holds::<f32>(&[&[-1, 0]], PLANES)
}

#[test]
fn steps_in_volumes() -> Result<()> {
    let shapes: &[&[usize]] = &[&[0, 2, 2], &[1, 1, 1], &[2, 3, 4], &[5, 6, 7], &[2, 3, 4, 5]];
    holds::<f32>(&[&[-1, 0, 0], &[1, 0, 0], &[0, -1, 0], &[0, 1, 0], &[0, 0, -1], &[0, 0, 1], &[0, 0, 0]], shapes)
}

/// Integers wrap.
#[test]
fn steps_of_integers() -> Result<()> {
    let stream = stream()?;
    macro_rules! types {
        ($($t:ty),*) => {$({
            let (shape, offsets) = ([6usize, 11], [vec![-1isize, 0], vec![0, 1], vec![0, 0]]);
            let data: Vec<$t> = (0..66u32).map(|i| (i * i * 7919) as $t).collect();
            let u = Tensor::from_slice(&stream, shape, &data)?;
            let y = Tensor::uninit(&stream, shape)?;
            for number in 0..=INTERIOR {
                let step = stencil(&u, boundary::<$t>(number), |n| {
                    n.at(offsets[0].clone()) * n.at(offsets[1].clone()) + n.at(offsets[2].clone())
                });
                y.assign(step.steps(6))?;
                let loops = Loops { shape: &shape, offsets: &offsets, boundary: number };
                let f = |x: &[$t], _| x[0].wrapping_mul(x[1]).wrapping_add(x[2]);
                assert_eq!(y.to_vec()?, loops.steps(&data, 6, f));
            }
        })*};
    }
    types!(i8, i16, i32, i64, u8, u16, u32, u64);
    // This is rule 110 of cellular automata.
    let cells: Vec<bool> = (0..90).map(|i| i % 11 == 3).collect();
    let u = Tensor::from_slice(&stream, 90, &cells)?;
    let y = Tensor::uninit(&stream, 90)?;
    y.assign(stencil(&u, Boundary::Periodic, |n| (n.at(0) | n.at(1)) & !(n.at(-1) & n.at(0) & n.at(1))).steps(20))?;
    let loops = Loops { shape: &[90], offsets: &[vec![-1], vec![0], vec![1]], boundary: 1 };
    assert_eq!(y.to_vec()?, loops.steps(&cells, 20, |x, _| (x[1] | x[2]) & !(x[0] & x[1] & x[2])));
    Ok(())
}

/// The equation has a source, and coefficients of a row. Views have other layouts.
#[test]
fn other_tensors_are_read_in_their_places() -> Result<()> {
    let stream = stream()?;
    let shape = [9usize, 14];
    let (data, source, row) = (numbers::<f64>(126, 1), numbers::<f64>(126, 2), numbers::<f64>(14, 3));
    let turned: Vec<f64> = (0..126).map(|i| data[i % 9 * 14 + i / 9]).collect();
    let u = Tensor::from_slice(&stream, [14, 9], &turned)?.t();
    let [f, c] = [(&source, &shape[..]), (&row, &shape[1..])]
        .map(|(data, shape)| Tensor::from_slice(&stream, shape, data).unwrap());
    let memory = Tensor::<f64>::zeros(&stream, [18, 28])?;
    let y = memory.slice((AxisSlice::from(..).by(-2), AxisSlice::from(1..).by(2)))?;
    let offsets = [[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1]].map(|by| by.to_vec());
    for number in 0..INTERIOR {
        let lap = stencil(&u, boundary(number), |n| n.at([-1, 0]) + n.at([1, 0]) + n.at(-1) + n.at(1) - 4.0 * n.at(0));
        y.assign((&u + &c * lap + &f).steps(4))?;
        let loops = Loops { shape: &shape, offsets: &offsets, boundary: number };
        let step = |x: &[f64], i: usize| x[0] + row[i % 14] * (x[1] + x[2] + x[3] + x[4] - 4.0 * x[0]) + source[i];
        assert_eq!(y.to_vec()?, loops.steps(&data, 4, step), "{number}");
    }
    // The target is also read, in its own places.
    let y = Tensor::from_slice(&stream, shape, &source)?;
    y.assign((stencil(&u, Boundary::Clamp, |n| n.at([1, 0]) - n.at(1)) + &y).steps(5))?;
    let loops = Loops { shape: &shape, offsets: &[vec![1, 0], vec![0, 1]], boundary: 0 };
    assert_eq!(y.to_vec()?, loops.steps(&data, 5, |x, i| x[0] - x[1] + source[i]));
    Ok(())
}

/// The frame of an interior stencil keeps its elements. Other tensors in the step have the shape of the interior.
#[test]
fn an_interior_stencil_leaves_its_frame_alone() -> Result<()> {
    let stream = stream()?;
    let shape = [7usize, 8];
    let (data, source) = (numbers::<f32>(56, 4), numbers::<f32>(30, 5));
    let u = Tensor::from_slice(&stream, shape, &data)?;
    let f = Tensor::from_slice(&stream, [5, 6], &source)?;
    let y = Tensor::uninit(&stream, shape)?;
    let lap = || stencil(&u, Boundary::Interior, |n| n.at([-1, 0]) + n.at([1, 0]) + n.at(-1) + n.at(1) - 4.0 * n.at(0));
    let offsets = [[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1]].map(|by| by.to_vec());
    let loops = Loops { shape: &shape, offsets: &offsets, boundary: INTERIOR };
    let inner = u.slice((1..6, 1..7))?;
    for count in [1, 2, 5] {
        y.assign((&inner + lap() * 0.125 + &f).steps(count))?;
        let step = |x: &[f32], i: usize| {
            x[0] + (x[1] + x[2] + x[3] + x[4] - 4.0 * x[0]) * 0.125 + source[(i / 8 - 1) * 6 + i % 8 - 1]
        };
        assert_eq!(y.to_vec()?, loops.steps(&data, count, step));
    }
    // A factor of one element and a column of factors are read in their own places, beside all neighbours.
    let factor = Tensor::from_slice(&stream, 1, &[0.5f32])?;
    let column = Tensor::from_slice(&stream, [7, 1], &data[..7])?;
    y.assign(stencil(&u * &factor, Boundary::Interior, |n| n.at([-1, 0]) + n.at(1)).steps(3))?;
    let loops = Loops { shape: &shape, offsets: &[vec![-1, 0], vec![0, 1]], boundary: INTERIOR };
    assert_eq!(y.to_vec()?, loops.steps(&data, 3, |x, _| x[0] * 0.5 + x[1] * 0.5));
    y.assign(stencil(&u * &column, Boundary::Interior, |n| n.at(-1) + n.at(1)).steps(3))?;
    let loops = Loops { shape: &shape, offsets: &[vec![0, -1], vec![0, 1]], boundary: INTERIOR };
    assert_eq!(y.to_vec()?, loops.steps(&data, 3, |x, i| x[0] * data[i / 8] + x[1] * data[i / 8]));
    // Without steps, an interior stencil is smaller.
    assert_error(y.assign(lap()), ExpressionErrorKind::BadShape, &["[5, 6]", "[7, 8]"]);
    let small = Tensor::uninit(&stream, [5, 6])?;
    assert_error(small.assign(lap().steps(2)), ExpressionErrorKind::BadShape, &["[5, 6]", "[7, 8]", "steps(2)"]);
    Ok(())
}

#[test]
fn steps_that_there_are_not() -> Result<()> {
    let stream = stream()?;
    let [u, v, y] = [0; 3].map(|_| Tensor::<f32>::zeros(&stream, [4, 5]).unwrap());
    let left = |x: &Tensor<f32>| stencil(x, Boundary::Clamp, |n| n.at(-1));
    let refused =
        |value: Expr<f32>, parts: &[&str]| assert_error(y.assign(value), ExpressionErrorKind::BadStencil, parts);
    refused((left(&u) + left(&v)).steps(2), &["several tensors beside each place", "[4, 5]", "x0[0, -1] + x1[0, -1]"]);
    refused(stencil(&u * &v, Boundary::Clamp, |n| n.at(1)).steps(2), &["several tensors"]);
    refused((&u * 2.0).steps(3), &["no stencil", "(x0 * 2.0).steps(3)"]);
    refused((left(&u) + u.slice(0)?).steps(2), &["otherwise than by the stencil", "[5]"]);
    refused((left(&u) + gather(&u.reshape(20)?, element_index::<u32>())).steps(2), &["otherwise"]);
    refused(left(&u).steps(2).steps(3), &["steps of steps"]);
    refused(left(&u).steps(2) * 2.0, &["assignment of their own"]);
    refused(left(&u).steps(usize::MAX), &["at most"]);
    let inner = stencil(&u, Boundary::Interior, |n| n.at(-1) + n.at(1));
    let of_inner = |boundary| stencil(inner.clone() * 2.0, boundary, |n| n.at(0) + n.at(1));
    for boundary in [Boundary::Clamp, Boundary::Interior] {
        refused(of_inner(boundary).steps(2), &["interior stencil", "inner one to a tensor"]);
    }
    refused(
        (stencil(&u, Boundary::Interior, |n| n.at(1)) + stencil(&u, Boundary::Interior, |n| n.at(-1))).steps(2),
        &["footprints"],
    );
    refused(stencil(&u, Boundary::Mirror, |n| n.at(5)).steps(2), &["mirror"]);
    refused(stencil(&u, Boundary::Interior, |n| n.at(-3) + n.at(2)).steps(2), &["no place"]);
    let wide = Tensor::<f64>::zeros(&stream, [4, 5])?;
    let cast = left(&u).cast::<f64>().steps(2);
    assert_error(wide.assign(cast), ExpressionErrorKind::BadStencil, &["f64 of f32"]);
    let overlaps = |made| assert_error(made, ExpressionErrorKind::Overlap, &["overlaps"]);
    for count in [1, 2, 9] {
        overlaps(u.assign(left(&u).steps(count)));
    }
    u.assign(left(&u).steps(0))?;
    assert_error(
        assign_all([y.to(left(&u).steps(2)), v.to(&u * 2.0)]),
        ExpressionErrorKind::BadStencil,
        &["assignment of their own"],
    );
    assert_error(left(&u).steps(2).sum().item(), ExpressionErrorKind::BadStencil, &["assign them to a tensor"]);
    // The places around the interior are written, too.
    let (square, repeated) = (u.slice((..3, ..3))?, Tensor::<f32>::zeros(&stream, 7)?.as_strided([3, 3], &[1, 2])?);
    let cross = stencil(&square, Boundary::Interior, |n| n.at([-1, -1]) + n.at([1, 1]));
    assert_error(repeated.assign(cross.steps(2)), ExpressionErrorKind::BadStrides, &["repeats"]);
    let row = Tensor::<f32>::zeros(&stream, 5)?;
    assert_error(y.assign(left(&row).steps(2)), ExpressionErrorKind::BadShape, &["[5]", "[4, 5]"]);
    Ok(())
}

/// These steps have no kernels of several steps: divisions of integers, tables, weights in a loop, numbers of places.
#[test]
fn steps_of_what_takes_one_pass_each() -> Result<()> {
    let stream = stream()?;
    let data: Vec<i32> = (0..300).map(|i| i * 31 % 97 - 40).collect();
    let u = Tensor::from_slice(&stream, 300, &data)?;
    let y = Tensor::uninit(&stream, 300)?;
    let loops = |offsets: &[Vec<isize>], count, f: &dyn Fn(&[i32], usize) -> i32| {
        Loops { shape: &[300], offsets, boundary: 1 }.steps(&data, count, f)
    };
    let two = [vec![-1], vec![2]];
    y.assign((stencil(&u, Boundary::Periodic, |n| n.at(-1) / 3 + n.at(2)) + axis_index::<i32>(0)).steps(3))?;
    assert_eq!(y.to_vec()?, loops(&two, 3, &|x, i| x[0] / 3 + x[1] + i as i32));
    y.assign(convolve(&u, &[1; 100], 50, Boundary::Periodic).steps(2))?;
    let hundred: Vec<Vec<isize>> = (-50..50).map(|by| vec![by]).collect();
    assert_eq!(y.to_vec()?, loops(&hundred, 2, &|x, _| x.iter().fold(0i32, |sum, x| sum.wrapping_add(*x))));
    let fault = y
        .assign(stencil(&u, Boundary::Periodic, |n| n.at(1) / (n.at(0) - n.at(0))).steps(2))
        .and_then(|()| stream.synchronize());
    assert!(matches!(fault, Err(Error::Fault(_))), "{fault:?}");
    Ok(())
}

#[test]
fn steps_are_prepared_and_captured() -> Result<()> {
    let stream = stream()?;
    let ring = |count: usize| -> Vec<i32> {
        (0..count).fold(vec![0, 0, 1, 0, 0], |row, _| (0..5).map(|i| row[(i + 4) % 5] + row[(i + 1) % 5]).collect())
    };
    let [x, y] = [vec![0, 0, 1, 0, 0], vec![0; 5]].map(|data| Tensor::from_slice(&stream, 5, &data).unwrap());
    let sum = |of: &Tensor<i32>| stencil(of, Boundary::Periodic, |n| n.at(-1) + n.at(1));
    let (there, back) = (Prepared::new([y.to(sum(&x).steps(3))])?, Prepared::new([x.to(sum(&y).steps(2))])?);
    assert!(there.ptx(90)?.contains(".entry") && format!("{there:?}").contains("steps(3)"));
    for round in 1..3 {
        there.run()?;
        back.run()?;
        assert_eq!(x.to_vec()?, ring(5 * round));
    }
    let graph = stream.capture(|captured| {
        let (x, y) = (x.on(captured), y.on(captured));
        y.assign(sum(&x).steps(3))?;
        x.assign(sum(&y).steps(2))
    })?;
    for round in 3..5 {
        graph.launch(&stream)?;
        assert_eq!(x.to_vec()?, ring(5 * round));
    }
    Ok(())
}

/// On a GPU, a kernel takes several steps. On the emulator, each step is a pass.
#[test]
fn all_devices_agree() -> Result<()> {
    let (device, emulator) = (stream()?, Device::emulator().stream()?);
    let shape = [301usize, 517];
    let data: Vec<f32> = (0..shape[0] * shape[1]).map(|i| (i * 7 % 31) as f32 - 15.0).collect();
    let all = |stream: &Stream, number: usize, width: usize| -> Result<Vec<f32>> {
        let u = Tensor::from_slice(stream, shape, &data)?.slice((.., ..width as isize))?;
        let y = Tensor::zeros(stream, [shape[0], width])?;
        let lap = stencil(&u, boundary(number), |n| n.at([-1, 0]) + n.at([2, 0]) + n.at(-1) + n.at(1) - 4.0 * n.at(0));
        y.assign((lap * 0.125).steps(11))?;
        y.to_vec()
    };
    for number in 0..=INTERIOR {
        for width in [517, 512, 3] {
            assert!(all(&device, number, width)? == all(&emulator, number, width)?, "{number}, {width}");
        }
    }
    Ok(())
}
