//! Tests steps of stencils on split tensors bit for bit against those of one device, and those of plain loops.

mod errors;

use half::f16;
use kernel_primitives::expr::*;
use kernel_primitives::functor::{LessThan, bind_second};
use kernel_primitives::{Devices, EmulatorOptions, Error, Result, Split, SplitBuffer, split};

use crate::{all_splits, devices, splits, values};

const COUNTS: [usize; 6] = [0, 1, 2, 3, 7, 16];

/// The numbers of rows around the shards of the state and of the target.
const ROOMS: [[Option<usize>; 2]; 4] = [[None, None], [Some(1), Some(3)], [None, Some(2)], [Some(3), None]];

trait Item: Numeric + Promote<Self, Output = Self> {
    fn of(number: i32) -> Self;
    fn bits(self) -> u64;
}

macro_rules! items {
    ($($t:ty: $x:ident => $of:expr, $bits:expr;)*) => {
        $(impl Item for $t {
            fn of($x: i32) -> Self { $of }
            fn bits(self) -> u64 { let $x = self; $bits }
        })*
    };
}

items! {
    f32: x => x as f32 * 0.37, x.to_bits().into();
    f64: x => f64::from(x) * 0.37, x.to_bits();
    f16: x => f16::from_f32(x as f32 * 0.01), x.to_bits().into();
    i64: x => i64::from(x) * 0x1357_9135_7913, x as u64;
}

fn numbers<T: Item>(len: usize) -> Vec<T> {
    values(len).into_iter().map(T::of).collect()
}

fn bits<T: Item>(values: Vec<T>) -> Vec<u64> {
    values.into_iter().map(T::bits).collect()
}

fn boundaries<T: Item>() -> [Boundary<T>; 6] {
    use Boundary::*;
    [Clamp, Periodic, Mirror, Symmetric, Constant(T::of(5)), Interior]
}

fn uninit<T: Item>(split: &Split, shape: &[usize], room: Option<usize>) -> Result<SplitTensor<T>> {
    match room {
        None => SplitTensor::uninit(split, shape),
        Some(rows) => SplitTensor::uninit_with_halo(split, shape, rows),
    }
}

fn tensor<T: Item>(split: &Split, shape: &[usize], data: &[T], room: Option<usize>) -> Result<SplitTensor<T>> {
    let x = uninit(split, shape, room)?;
    x.copy_from(&SplitTensor::from_slice(split, shape, data)?)?;
    Ok(x)
}

/// Makes a sum of neighbours at these distances along the outermost axis and the innermost axis, with weights 1, −2, 3, …
fn step<T: Item>(x: &Expr<T>, rank: usize, boundary: Boundary<T>, offsets: &[[isize; 2]]) -> Expr<T> {
    let weight = |at: usize| T::of(at as i32 + 1);
    stencil(x, boundary, |n| {
        let at = |by: &[isize; 2]| {
            let mut all = vec![0; rank];
            all[rank - 1] = by[1];
            all[0] = by[0];
            n.at(all)
        };
        let terms = offsets.iter().enumerate().map(|(number, by)| at(by) * weight(number));
        terms.reduce(|sum, term| sum - term).expect("some neighbours")
    })
}

/// Checks that steps are those of one device, or that they are refused as they are there.
#[track_caller]
fn agree<T: Item>(
    splits: &[Split],
    shape: &[usize],
    counts: &[usize],
    step: &dyn Fn(Expr<T>) -> Expr<T>,
) -> Result<()> {
    let stream = devices(1)?[0].stream()?;
    let data = numbers::<T>(shape.iter().product());
    let x = Tensor::from_slice(&stream, shape, &data)?;
    for &count in counts {
        let y = Tensor::<T>::uninit(&stream, shape)?;
        let expected = match y.assign(step(x.to_expr()).steps(count)) {
            Ok(()) => Ok(bits(y.to_vec()?)),
            // There is no room for the neighbours.
            Err(Error::Expression(error)) if data.len() <= 12 => Err(error.kind),
            Err(error) => return Err(error),
        };
        for split in splits {
            for [from, to] in ROOMS {
                let what = format!("{split:?} {shape:?}, {count} steps, room {from:?} and {to:?}");
                let (x, y) = (tensor(split, shape, &data, from)?, uninit::<T>(split, shape, to)?);
                match (y.assign(step(x.to_expr()).steps(count)), &expected) {
                    (Ok(()), Ok(expected)) => assert_eq!(bits(y.to_vec()?), *expected, "{what}"),
                    (Err(Error::Expression(error)), Err(kind)) => assert_eq!(error.kind, *kind, "{what}: {error}"),
                    (result, _) => panic!("{what}: {result:?}, not {expected:?}"),
                }
                assert_eq!(bits(x.to_vec()?), bits(data.clone()), "{what}: the stepped tensor stays as it is");
            }
        }
    }
    Ok(())
}

fn reach(rows: usize, most: isize) -> isize {
    (rows as isize - 1).min(most)
}

#[test]
fn steps_of_vectors() -> Result<()> {
    let splits = all_splits()?;
    for n in [1, 2, 5, 17] {
        for boundary in boundaries() {
            let far = reach(n, 2);
            agree::<f32>(&splits, &[n], &COUNTS, &|x| {
                let around = step(&x, 1, boundary, &[[-1, -1], [far, far]]);
                // An interior stencil has fewer places.
                if boundary == Boundary::Interior { around } else { &x * 0.5 + around }
            })?;
        }
    }
    Ok(())
}

#[test]
fn steps_of_matrices() -> Result<()> {
    let splits = all_splits()?;
    let far = |rows| reach(rows, 3);
    for rows in [1, 3, 13] {
        for boundary in boundaries() {
            let offsets = [[-1, 0], [0, -1], [0, 0], [far(rows) / 2, 1]];
            agree::<f32>(&splits, &[rows, 4], &COUNTS, &|x| step(&x, 2, boundary, &offsets))?;
        }
    }
    // Neighbours are only before a place, or only after it.
    for boundary in boundaries() {
        agree::<f32>(&splits, &[9, 3], &[1, 2, 5], &|x| step(&x, 2, boundary, &[[-2, 0], [0, 1]]))?;
        agree::<f32>(&splits, &[9, 3], &[1, 2, 5], &|x| step(&x, 2, boundary, &[[3, 0], [0, 0]]))?;
    }
    Ok(())
}

#[test]
fn steps_of_all_types() -> Result<()> {
    fn of<T: Item>() -> Result<()> {
        let splits = splits(3)?;
        for boundary in boundaries::<T>() {
            agree(&splits, &[11], &COUNTS, &|x| step(&x, 1, boundary, &[[-1, -1], [0, 0], [2, 2]]))?;
            agree(&splits, &[7, 2, 3], &COUNTS, &|x| step(&x, 3, boundary, &[[-1, 1], [0, 0], [1, -1]]))?;
        }
        Ok(())
    }
    of::<f64>()?;
    of::<f16>()?;
    of::<i64>()
}

#[test]
fn steps_along_inner_axes() -> Result<()> {
    for boundary in boundaries() {
        agree::<f32>(&splits(3)?, &[5, 6], &COUNTS, &|x| step(&x, 2, boundary, &[[0, -2], [0, 3]]))?;
    }
    let split = Split::even(&Devices::emulated(3)?)?;
    let (x, y) = (tensor::<f32>(&split, &[7, 6], &numbers(42), None)?, uninit(&split, &[7, 6], None)?);
    let before = peer_bytes(&split);
    y.assign(step(&x.to_expr(), 2, Boundary::Periodic, &[[0, 1], [0, -1]]).steps(6))?;
    assert_eq!(peer_bytes(&split), before);
    Ok(())
}

/// An axis with one index makes a stencil that reads only each place.
#[test]
fn steps_without_neighbours() -> Result<()> {
    let splits = all_splits()?;
    for boundary in boundaries() {
        agree::<f32>(&splits, &[6], &COUNTS, &|x| stencil(&x, boundary, |n| n.at(0) * 0.5 + 1.0))?;
    }
    for boundary in [Boundary::Clamp, Boundary::Periodic, Boundary::Symmetric, Boundary::Constant(2.0)] {
        agree::<f32>(&splits, &[5, 1], &[1, 3], &|x| stencil(&x, boundary, |n| n.at(1) - 0.5))?;
    }
    Ok(())
}

/// Returns the index that is read in place of an index that may be outside, or `None` for the constant.
fn index(at: isize, extent: usize, boundary: usize) -> Option<usize> {
    let extent = extent as isize;
    let at = match boundary {
        0 => at.clamp(0, extent - 1),
        1 => at.rem_euclid(extent),
        2 if at < 0 => -at,
        2 if at >= extent => 2 * (extent - 1) - at,
        3 if at < 0 => -1 - at,
        3 if at >= extent => 2 * extent - 1 - at,
        _ => at,
    };
    (0..extent).contains(&at).then_some(at as usize)
}

#[test]
fn steps_are_those_of_loops() -> Result<()> {
    const OFFSETS: [[isize; 2]; 4] = [[-2, 0], [1, 1], [0, -1], [0, 0]];
    let [rows, columns] = [12usize, 5];
    let data = numbers::<i64>(rows * columns);
    for (number, boundary) in boundaries::<i64>().into_iter().enumerate() {
        let one = |state: &[i64]| -> Vec<i64> {
            let at = |place: usize| -> i64 {
                let mut sum = 0i64;
                for (term, [down, right]) in OFFSETS.into_iter().enumerate() {
                    let row = index((place / columns) as isize + down, rows, number);
                    let column = index((place % columns) as isize + right, columns, number);
                    let value = match (row, column) {
                        (Some(row), Some(column)) => state[row * columns + column],
                        // This is a place of the frame.
                        _ if number == 5 => return state[place],
                        _ => i64::of(5),
                    };
                    let product = value.wrapping_mul(i64::of(term as i32 + 1));
                    sum = if term == 0 { product } else { sum.wrapping_sub(product) };
                }
                sum
            };
            (0..rows * columns).map(at).collect()
        };
        for count in COUNTS {
            let expected = (0..count).fold(data.clone(), |state, _| one(&state));
            for split in all_splits()? {
                for [from, to] in ROOMS {
                    let shape = [rows, columns];
                    let (x, y) = (tensor(&split, &shape, &data, from)?, uninit(&split, &shape, to)?);
                    y.assign(step(&x.to_expr(), 2, boundary, &OFFSETS).steps(count))?;
                    assert_eq!(y.to_vec()?, expected, "{split:?} {boundary:?}, {count} steps, {from:?} {to:?}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn places_count_over_the_whole() -> Result<()> {
    let splits = all_splits()?;
    for boundary in [Boundary::Mirror, Boundary::Interior] {
        agree::<f64>(&splits, &[10, 3], &[1, 2, 5], &|x| {
            let index = element_index::<f64>() * 0.01 + axis_index::<f64>(0) - axis_index::<f64>(1);
            step(&x, 2, boundary, &[[-1, 0], [1, 0], [0, 1]]) * 0.25 + index + uniform::<f64>(7)
        })?;
    }
    Ok(())
}

#[test]
fn sums_of_many_weights_and_several_boundaries() -> Result<()> {
    let splits = splits(3)?;
    let weights: Vec<f32> = numbers(70).into_iter().map(|x: f32| x * 1e-3).collect();
    for boundary in &boundaries()[..5] {
        agree::<f32>(&splits, &[90], &[1, 2, 3], &|x| convolve(&x, &weights, 30, *boundary))?;
        agree::<f32>(&splits, &[5, 80], &[1, 4], &|x| convolve(&x, &weights, 69, *boundary).contract())?;
    }
    agree::<f32>(&splits, &[13, 3], &COUNTS, &|x| {
        let sum = |boundary| step(&x, 2, boundary, &[[-2, 0], [1, 1]]);
        sum(Boundary::Periodic) * 0.1 + sum(Boundary::Clamp) * 0.2 - &x
    })?;
    // These neighbours are outside for every place.
    agree::<f32>(&splits, &[7], &COUNTS, &|x| {
        stencil(&x, Boundary::Constant(0.5), |n| n.at(-1) * 0.5 + n.at(40))
            - stencil(&x * 0.1, Boundary::Clamp, |n| n.at(2))
    })
}

/// Other tensors beside the stepped tensor have its shape, or are a column or the target itself.
#[test]
fn other_tensors_are_read_in_their_places() -> Result<()> {
    let stream = devices(1)?[0].stream()?;
    let shape = [11usize, 4];
    let (data, source, column) = (numbers::<f32>(44), numbers::<f32>(88)[44..].to_vec(), numbers::<f32>(11));
    let value = |x: Expr<f32>, f: Expr<f32>, c: Expr<f32>, boundary| {
        &x + (step(&x, 2, boundary, &[[-1, 0], [1, 0], [0, 1]]) + f) * (c * 1e-3)
    };
    let [x, f, c] = [(&shape[..], &data), (&shape, &source), (&[11, 1], &column)]
        .map(|(shape, data)| Tensor::from_slice(&stream, shape, data).expect("a tensor").to_expr());
    for boundary in &boundaries()[..5] {
        for count in COUNTS {
            let one = Tensor::uninit(&stream, shape)?;
            one.assign(value(x.clone(), f.clone(), c.clone(), *boundary).steps(count))?;
            let expected = bits(one.to_vec()?);
            for split in splits(3)? {
                for [from, to] in ROOMS {
                    let x = tensor(&split, &shape, &data, from)?.to_expr();
                    let f = tensor(&split, &shape, &source, to)?;
                    let c = tensor(&split, &[11, 1], &column, None)?.to_expr();
                    let y = uninit(&split, &shape, to)?;
                    y.assign(value(x.clone(), f.to_expr(), c.clone(), *boundary).steps(count))?;
                    assert_eq!(bits(y.to_vec()?), expected, "{split:?} {boundary:?} {count}");
                    // The target keeps the elements that are read until the last step.
                    f.assign(value(x, f.to_expr(), c, *boundary).steps(count))?;
                    assert_eq!(bits(f.to_vec()?), expected, "{split:?} {boundary:?} {count}, of the target");
                }
            }
        }
    }
    Ok(())
}

/// The other tensors have the shape of the interior, and are split like tensors of that shape.
#[test]
fn other_tensors_beside_an_interior_stencil() -> Result<()> {
    let stream = devices(1)?[0].stream()?;
    for (shape, offsets, inner) in [
        ([12usize, 5], [[-1, 0], [1, 0], [0, -1], [0, 1]], [10usize, 3]),
        ([9, 3], [[0, 0], [3, 0], [1, 0], [2, 0]], [6, 3]),
        ([7, 3], [[-5, 0], [0, 0], [1, 0], [-1, 0]], [1, 3]),
        ([7, 4], [[0, 0], [0, 1], [0, -1], [0, 0]], [7, 2]),
    ] {
        let (data, source) = (numbers::<f32>(shape.iter().product()), numbers::<f32>(inner.iter().product()));
        let column = numbers::<f32>(inner[0]);
        let value = |x: Expr<f32>, f: Expr<f32>, c: Expr<f32>| {
            step(&x, 2, Boundary::Interior, &offsets) * 0.25 + &f * &f + c + axis_index::<f32>(0)
        };
        let [x, f, c] = [(&shape[..], &data), (&inner, &source), (&[inner[0], 1], &column)]
            .map(|(shape, data)| Tensor::from_slice(&stream, shape, data).expect("a tensor").to_expr());
        for count in COUNTS {
            let one = Tensor::uninit(&stream, shape)?;
            one.assign(value(x.clone(), f.clone(), c.clone()).steps(count))?;
            for split in all_splits()? {
                for [from, to] in ROOMS {
                    let x = tensor(&split, &shape, &data, from)?.to_expr();
                    let f = tensor(&split, &inner, &source, to)?.to_expr();
                    let c = tensor(&split, &[inner[0], 1], &column, None)?.to_expr();
                    let y = uninit(&split, &shape, to)?;
                    y.assign(value(x, f, c).steps(count))?;
                    assert_eq!(bits(y.to_vec()?), bits(one.to_vec()?), "{split:?} {shape:?} {count} {from:?} {to:?}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn steps_that_gather() -> Result<()> {
    let stream = devices(1)?[0].stream()?;
    let (data, table) = (numbers::<f32>(14), numbers::<f32>(9));
    let value = |x: Expr<f32>, item: Expr<f32>| step(&x, 1, Boundary::Periodic, &[[1, 1], [-1, -1]]) * 0.5 + item;
    let which = |x: &Expr<f32>| (x.cast::<i32>() & 7).cast::<u32>();
    let (x, t) = (Tensor::from_slice(&stream, 14, &data)?.to_expr(), Tensor::from_slice(&stream, 9, &table)?);
    let one = Tensor::uninit(&stream, 14)?;
    one.assign(value(x.clone(), gather(&t, which(&x))).steps(5))?;
    for split in splits(3)? {
        let (x, t) = (tensor(&split, &[14], &data, None)?.to_expr(), SplitTensor::from_slice(&split, 9, &table)?);
        let y = uninit(&split, &[14], Some(1))?;
        y.assign(value(x.clone(), gather(&t, which(&x))).steps(5))?;
        assert_eq!(bits(y.to_vec()?), bits(one.to_vec()?), "{split:?}");
    }
    Ok(())
}

#[test]
fn steps_of_results_that_are_split_in_a_way_of_their_own() -> Result<()> {
    let split = Split::even(&Devices::emulated(3)?)?;
    let all: Vec<f32> = (0..30).map(|i| i as f32).collect();
    let kept = split::select_if(&SplitBuffer::from_slice(&split, &all)?, bind_second(LessThan, 13.0f32))?;
    let x = SplitTensor::from_buffer(kept);
    let one = Tensor::from_slice(&split.streams()[0], 13, &all[..13])?;
    for boundary in boundaries() {
        for count in COUNTS {
            let value = |x: Expr<f32>| step(&x, 1, boundary, &[[-2, -2], [1, 1]]).steps(count);
            let (y, expected) = (x.uninit_like::<f32>()?, Tensor::uninit(&split.streams()[0], 13)?);
            y.assign(value(x.to_expr()))?;
            expected.assign(value(one.to_expr()))?;
            assert_eq!(bits(y.to_vec()?), bits(expected.to_vec()?), "{boundary:?} {count}");
        }
    }
    Ok(())
}

#[test]
fn tensors_without_elements() -> Result<()> {
    for boundary in boundaries() {
        for shape in [[0, 3], [3, 0], [0, 0]] {
            agree::<f32>(&splits(3)?, &shape, &[0, 1, 4], &|x| step(&x, 2, boundary, &[[-1, 0], [1, 0]]))?;
        }
    }
    // Even the most steps take no time here.
    let split = Split::even(&Devices::emulated(3)?)?;
    let (x, y) = (tensor::<f32>(&split, &[0, 3], &[], None)?, uninit(&split, &[0, 3], None)?);
    y.assign(step(&x.to_expr(), 2, Boundary::Clamp, &[[-1, 0]]).steps(1 << 24))
}

fn peer_bytes(split: &Split) -> usize {
    split.streams().iter().map(|stream| stream.device().counters().peer_bytes as usize).sum()
}

#[test]
fn a_step_is_a_kernel_and_the_rows_around_shards() -> Result<()> {
    let split = Split::even(&Devices::emulated(4)?)?;
    let launches = || split.streams().iter().map(|stream| stream.device().counters().launches).sum::<u64>();
    for ([from, to], copies) in [([Some(1), Some(1)], 0), ([None, Some(1)], 1), ([Some(2), None], 0), ([None, None], 1)]
    {
        let shape = [40, 5];
        let (x, y) = (tensor::<f32>(&split, &shape, &numbers(200), from)?, uninit(&split, &shape, to)?);
        let before = (peer_bytes(&split), launches());
        y.assign(step(&x.to_expr(), 2, Boundary::Periodic, &[[-1, 0], [1, 0]]).steps(16))?;
        // Two rows of each device are copied, with 5 elements each. Each device has a kernel.
        assert_eq!(peer_bytes(&split) - before.0, 16 * 8 * 5 * 4, "{from:?} {to:?}");
        assert_eq!(launches() - before.1, 4 * (16 + copies), "{from:?} {to:?}");
    }
    Ok(())
}

#[test]
fn memory_of_their_own_is_that_of_two_tensors() -> Result<()> {
    const LEN: usize = 40_000;
    let step = |x: &SplitTensor<f32>| step(&x.to_expr(), 2, Boundary::Mirror, &[[-1, 0], [1, 0], [0, 1]]) * 0.1;
    let mut results = Vec::new();
    for (room, own) in [(None, 2), (Some(1), 1)] {
        let mut options = EmulatorOptions::default();
        // The memory is enough for the state and the target, for temporary memory, and a little more.
        options.memory_bytes = Some(LEN / 2 * 4 * (2 * (2 + own) + 1) / 2);
        let split = Split::even(&Devices::emulated_with(2, options)?)?;
        let shape = [LEN / 100, 100];
        let (x, y) = (uninit(&split, &shape, room)?, uninit(&split, &shape, room)?);
        x.assign(element_index::<f32>() * 1e-3)?;
        for count in 1..6 {
            y.assign(step(&x).steps(count))?;
        }
        results.push(bits(y.to_vec()?));
    }
    assert_eq!(results[0], results[1]);
    Ok(())
}

#[test]
fn threads_step_one_tensor() -> Result<()> {
    let split = Split::even(&devices(3)?)?;
    let x = tensor::<f32>(&split, &[30], &numbers(30), Some(2))?;
    let steps = |boundary| -> Result<Vec<u64>> {
        let y = uninit(&split, &[30], Some(2))?;
        y.assign(step(&x.to_expr(), 1, boundary, &[[-2, -2], [2, 2]]).steps(6))?;
        Ok(bits(y.to_vec()?))
    };
    let expected: Vec<_> = boundaries().into_iter().map(steps).collect::<Result<_>>()?;
    std::thread::scope(|scope| {
        let all = boundaries().into_iter().zip(&expected).map(|(boundary, expected)| {
            scope.spawn(move || -> Result<()> {
                for _ in 0..10 {
                    assert_eq!(steps(boundary)?, *expected);
                }
                Ok(())
            })
        });
        let all: Vec<_> = all.collect();
        all.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })
}
