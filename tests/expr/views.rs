//! Tests views of tensors against those of `ndarray`.

use kernel_primitives::expr::*;
use kernel_primitives::{Error, ExpressionErrorKind, Result};
use ndarray::{Array1, ArrayD, ArrayViewD, Axis, Dimension, IxDyn, Slice};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::net::check_cases;
use crate::{assert_error, stream};

/// A step from a view to a view. Numbers are taken modulo their limits.
#[derive(Clone, Debug)]
enum Turn {
    Slice { axis: usize, start: usize, len: usize, step: isize },
    Index { axis: usize, at: usize },
    Transpose,
    Swap(usize, usize),
    Insert(usize),
    Repeat { axis: usize, times: usize },
}

fn turn() -> impl Strategy<Value = Turn> {
    let axis = || 0..9usize;
    prop_oneof![
        4 => (axis(), 0..9usize, 0..9usize, prop_oneof![Just(1isize), Just(2), Just(3), Just(-1), Just(-2)])
            .prop_map(|(axis, start, len, step)| Turn::Slice { axis, start, len, step }),
        1 => (axis(), 0..9usize).prop_map(|(axis, at)| Turn::Index { axis, at }),
        1 => Just(Turn::Transpose),
        2 => (axis(), axis()).prop_map(|(a, b)| Turn::Swap(a, b)),
        1 => axis().prop_map(Turn::Insert),
        1 => (axis(), 0..4usize).prop_map(|(axis, times)| Turn::Repeat { axis, times }),
    ]
}

impl Turn {
    fn tensor<T: Scalar>(&self, x: &Tensor<T>) -> Result<Tensor<T>> {
        let shape = x.shape();
        let rank = shape.rank();
        let on_axis = |axis: usize, slice: AxisSlice| {
            let mut slices = vec![AxisSlice::from(..); axis];
            slices.push(slice);
            x.slice(&slices[..])
        };
        match *self {
            Self::Slice { axis, start, len, step } if rank > 0 => {
                let axis = axis % rank;
                let (start, end) = bounds(shape[axis], start, len);
                let range = AxisSlice::from(start as isize..end as isize);
                // A backward slice is a slice of a slice, because Python's bounds would be the other way round.
                if step > 0 {
                    return on_axis(axis, range.by(step));
                }
                let forward = on_axis(axis, range)?;
                let mut slices = vec![AxisSlice::from(..); axis];
                slices.push(AxisSlice::from(..).by(step));
                forward.slice(&slices[..])
            }
            Self::Index { axis, at } if rank > 0 && shape[axis % rank] > 0 => {
                let axis = axis % rank;
                on_axis(axis, AxisSlice::from((at % shape[axis]) as isize))
            }
            Self::Transpose => Ok(x.t()),
            Self::Swap(a, b) if rank > 0 => {
                let mut axes: Vec<usize> = (0..rank).collect();
                axes.swap(a % rank, b % rank);
                x.permute(&axes)
            }
            Self::Insert(axis) if rank < 6 => x.insert_axis(axis % (rank + 1)),
            Self::Repeat { axis, times } if rank > 0 && shape[axis % rank] == 1 => {
                let mut to = shape.to_vec();
                to[axis % rank] = times;
                x.broadcast_to(to)
            }
            _ => Ok(x.clone()),
        }
    }

    /// Makes the same view of an array.
    fn array<T: Clone>(&self, x: ArrayD<T>) -> ArrayD<T> {
        let mut view = x.view();
        let rank = view.ndim();
        match *self {
            Self::Slice { axis, start, len, step } if rank > 0 => {
                let axis = axis % rank;
                let (start, end) = bounds(view.shape()[axis], start, len);
                view.slice_axis_inplace(Axis(axis), Slice::new(start as isize, Some(end as isize), step));
            }
            Self::Index { axis, at } if rank > 0 && view.shape()[axis % rank] > 0 => {
                let extent = view.shape()[axis % rank];
                view.index_axis_inplace(Axis(axis % rank), at % extent);
            }
            Self::Transpose => view = view.reversed_axes(),
            Self::Swap(a, b) if rank > 0 => view.swap_axes(a % rank, b % rank),
            Self::Insert(axis) if rank < 6 => view = view.insert_axis(Axis(axis % (rank + 1))),
            Self::Repeat { axis, times } if rank > 0 && view.shape()[axis % rank] == 1 => {
                let mut to = view.shape().to_vec();
                to[axis % rank] = times;
                return view.broadcast(to).unwrap().to_owned();
            }
            _ => {}
        }
        view.to_owned()
    }
}

fn bounds(extent: usize, start: usize, len: usize) -> (usize, usize) {
    let start = start % (extent + 1);
    (start, (start + len).min(extent))
}

fn extents() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![1 => Just(0usize), 3 => Just(1), 12 => 2..8usize], 0..5)
}

fn iota(shape: &[usize]) -> ArrayD<i32> {
    ArrayD::from_shape_vec(shape, (0..shape.iter().product::<usize>() as i32).collect()).unwrap()
}

fn elements<T: Copy>(x: ArrayViewD<'_, T>) -> Vec<T> {
    x.iter().copied().collect()
}

/// Checks a property of many random cases that are quick.
fn check<S: Strategy>(cases: S, property: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    check_cases(200, cases, property);
}

fn turns(most: usize) -> impl Strategy<Value = Vec<Turn>> {
    prop::collection::vec(turn(), 0..most)
}

#[test]
fn turned_views_are_read_as_arrays_are() {
    check((extents(), turns(6)), |(shape, turns)| {
        let stream = stream()?;
        let mut array = iota(&shape);
        let mut x = Tensor::from_slice(&stream, &shape, array.as_slice().unwrap())?;
        for turn in &turns {
            (x, array) = (turn.tensor(&x)?, turn.array(array));
            prop_assert_eq!(&*x.shape(), array.shape());
        }
        prop_assert_eq!(x.to_vec()?, elements(array.view()));
        let sum = Tensor::uninit(&stream, x.shape())?;
        sum.assign(&x * 3 + element_index::<i32>())?;
        let expected: Vec<i32> = array.iter().zip(0..).map(|(x, i)| x * 3 + i).collect();
        prop_assert_eq!(sum.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn turned_views_are_written_as_arrays_are() {
    check((extents(), turns(6)), |(shape, turns)| {
        let stream = stream()?;
        // The view of an array of places says where the elements of the view come from.
        let mut places = iota(&shape);
        let x = Tensor::from_slice(&stream, &shape, places.as_slice().unwrap())?;
        let mut expected = elements(places.view());
        let mut view = x.clone();
        for turn in turns.iter().filter(|turn| !matches!(turn, Turn::Repeat { .. })) {
            (view, places) = (turn.tensor(&view)?, turn.array(places));
        }
        let value = Array1::from_iter((0..places.len() as i32).map(|i| -i - 1));
        view.assign(&Tensor::from_slice(&stream, view.shape(), value.as_slice().unwrap())?)?;
        for (place, value) in places.iter().zip(&value) {
            expected[*place as usize] = *value;
        }
        prop_assert_eq!(x.to_vec()?, &expected[..]);
        // The view can also be read and written in one call.
        view.mul_assign(scalar(2))?;
        for place in &places {
            expected[*place as usize] *= 2;
        }
        prop_assert_eq!(x.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn views_in_another_shape_have_the_same_elements() {
    check((extents(), turns(3), prop::collection::vec(1..9usize, 0..4)), |(shape, turns, cuts)| {
        let stream = stream()?;
        let mut array = iota(&shape);
        let mut x = Tensor::from_slice(&stream, &shape, array.as_slice().unwrap())?;
        for turn in &turns {
            (x, array) = (turn.tensor(&x)?, turn.array(array));
        }
        // The extents are factors of the number of elements, and the rest.
        let mut rest = x.len();
        let mut to = vec![1; 0];
        for cut in cuts {
            if rest > 0 && rest % cut == 0 {
                to.push(cut);
                rest /= cut;
            }
        }
        to.push(rest);
        if let Ok(y) = x.reshape(&to) {
            prop_assert_eq!(y.to_vec()?, elements(array.view()));
        } else {
            prop_assert!(!x.is_contiguous());
        }
        let y = x.contiguous()?.reshape(&to)?;
        prop_assert_eq!(&*y.shape(), &to[..]);
        prop_assert_eq!(y.to_vec()?, elements(array.view()));
        Ok(())
    });
}

/// Returns whether a number occurs twice.
fn repeats(mut places: Vec<i32>) -> bool {
    places.sort_unstable();
    places.windows(2).any(|pair| pair[0] == pair[1])
}

#[test]
fn any_strides_inside_the_memory() {
    let strategy = (prop::collection::vec(0..6usize, 0..4), prop::collection::vec(-7..8isize, 4), 0..60usize);
    check(strategy, |(extents, strides, start)| {
        let stream = stream()?;
        let x = Tensor::from_slice(&stream, 60, &iota(&[60]).into_raw_vec_and_offset().0)?;
        let strides = &strides[..extents.len()];
        let array = ArrayD::from_shape_fn(IxDyn(&extents), |index| {
            let at = index.slice().iter().zip(strides).map(|(&i, &stride)| i as isize * stride).sum::<isize>();
            (start as isize + at) as i32
        });
        let inside = array.iter().all(|at| (0..60).contains(at));
        let view = x.slice(start as isize..)?.as_strided(&extents, strides);
        prop_assert_eq!(view.is_ok(), inside);
        if let Ok(view) = view {
            let places = elements(array.view());
            prop_assert_eq!(view.to_vec()?, &places[..]);
            // The view can be assigned to if and only if no two indices mean one element.
            match view.assign(element_index::<i32>()) {
                Ok(()) => {
                    prop_assert!(!repeats(places));
                    prop_assert_eq!(view.to_vec()?, (0..view.len() as i32).collect::<Vec<_>>());
                }
                Err(Error::Expression(error)) => {
                    prop_assert!(repeats(places) && error.kind == ExpressionErrorKind::BadStrides, "{error}");
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    });
}

#[test]
fn views_of_one_memory_are_copied_rightly_or_refused() {
    check((turns(4), turns(4)), |(from, to)| {
        let stream = stream()?;
        let mut source = iota(&[4, 5, 3]);
        let x = Tensor::from_slice(&stream, [4, 5, 3], source.as_slice().unwrap())?;
        let mut target = source.clone();
        let mut expected = elements(source.view());
        let (mut read, mut write) = (x.clone(), x.clone());
        for turn in &from {
            (read, source) = (turn.tensor(&read)?, turn.array(source));
        }
        for turn in &to {
            (write, target) = (turn.tensor(&write)?, turn.array(target));
        }
        // It is refused if and only if the shapes do not fit, a place is written twice, or an element is read at the place of another
        // element.
        let places = elements(target.view());
        let values = source.broadcast(target.shape()).map(elements);
        let mut mistakes = Vec::new();
        if repeats(places.clone()) {
            mistakes.push(ExpressionErrorKind::BadStrides);
        }
        match &values {
            None => mistakes.push(ExpressionErrorKind::BadShape),
            Some(values) if *values != places && values.iter().any(|place| places.contains(place)) => {
                mistakes.push(ExpressionErrorKind::Overlap);
            }
            Some(_) => {}
        }
        match write.assign(&read + 100) {
            Ok(()) => {
                prop_assert!(mistakes.is_empty(), "no error, but {mistakes:?}");
                for (place, value) in places.iter().zip(values.expect("shapes that fit")) {
                    expected[*place as usize] = value + 100;
                }
            }
            Err(Error::Expression(error)) => {
                prop_assert!(mistakes.contains(&error.kind), "{error}, not {mistakes:?}");
            }
            Err(error) => return Err(error.into()),
        }
        prop_assert_eq!(x.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn slices_beyond_the_ends() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::from_slice(&stream, [2, 5], &iota(&[2, 5]).into_raw_vec_and_offset().0)?;
    assert_eq!(x.slice((.., -2..))?.to_vec()?, [3, 4, 8, 9]);
    assert_eq!(x.slice((5.., ..))?.shape()[..], [0, 5]);
    assert_eq!(x.slice((5.., 3))?.to_vec()?, [0; 0]);
    assert_eq!(x.slice((.., AxisSlice::from(isize::MIN..isize::MAX).by(isize::MAX)))?.to_vec()?, [0, 5]);
    assert_eq!(x.slice((.., AxisSlice::from(..).by(isize::MIN)))?.to_vec()?, [4, 9]);
    assert_eq!(x.slice(-1)?.to_vec()?, [5, 6, 7, 8, 9]);
    Ok(())
}

#[test]
fn tensors_without_elements() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::<f32>::zeros(&stream, [3, 0, 2])?;
    assert!(x.is_empty() && x.is_contiguous());
    x.assign(&x + 1.0)?;
    x.assign(Tensor::from_slice(&stream, 2, &[1.0f32, 2.0])?)?;
    assert_eq!(x.to_vec()?, [0.0; 0]);
    let view = x.slice((.., .., 1))?;
    assert_eq!(view.to_vec()?, [0.0; 0]);
    assert_eq!(view.t().contiguous()?.shape()[..], [0, 3]);
    assert_eq!(x.slice((2.., .., 1..))?.reshape([0, 7])?.to_vec()?, [0.0; 0]);
    Ok(())
}

/// The extents do not fit in an `isize`. There are no elements, or one element is repeated.
#[test]
fn extents_beyond_what_memory_holds() -> Result<()> {
    let stream = stream()?;
    let most = usize::MAX;
    let x = Tensor::<f64>::zeros(&stream, [0, most])?;
    assert_eq!(x.slice((.., ..))?.shape()[..], [0, most]);
    assert_eq!(x.slice((.., -5..))?.shape()[..], [0, 5]);
    assert_eq!(x.slice((.., AxisSlice::from(..).by(-2)))?.shape()[..], [0, most / 2 + 1]);
    assert_eq!(x.slice((.., -1))?.to_vec()?, [0.0; 0]);
    x.assign(x.t().t() * 2.0)?;
    assert_eq!(x.reshape([most, 0, 7])?.to_vec()?, [0.0; 0]);
    let one = Tensor::from_slice(&stream, 1, &[7u8])?;
    let many = one.broadcast_to(most)?;
    assert_eq!(many.slice(AxisSlice::from(-3..).by(2))?.to_vec()?, [7, 7]);
    assert_eq!(many.slice(-1)?.item()?, 7);
    assert_eq!(many.slice(AxisSlice::from(..).by(isize::MIN))?.to_vec()?, [7, 7]);
    assert!(matches!(many.to_vec(), Err(Error::Allocation { .. })));
    assert!(matches!(many.fill(1), Err(Error::Expression(e)) if e.kind == ExpressionErrorKind::BadStrides));
    let too_many = |result: Result<Tensor<u8>>| {
        assert_error(result, ExpressionErrorKind::BadShape, &[&most.to_string(), "counted"]);
    };
    too_many(many.broadcast_to([2, most]));
    too_many(Tensor::zeros(&stream, [most, 2]));
    too_many(Tensor::zeros(&stream, [most / 2, 2, 3]).or_else(|_| one.as_strided([most, most], &[0, 0])));
    assert!(matches!(Tensor::<f64>::zeros(&stream, most), Err(Error::Allocation { .. })));
    assert!(matches!(Tensor::<u8>::uninit(&stream, most / 2), Err(Error::Allocation { .. })));
    // These are reductions of no elements, and of more than can be counted.
    assert_error(
        x.sum().axes(&[1]).over(&stream, [0, most]).keep_axes().assign_to(&Tensor::zeros(&stream, [1, 1])?),
        ExpressionErrorKind::BadShape,
        &["[0, 1]", "[1, 1]"],
    );
    assert_eq!(x.sum().item()?, 0.0);
    let y = Tensor::<u8>::zeros(&stream, [0, most, 2])?;
    assert_error(y.max().axes(&[0]).tensor(), ExpressionErrorKind::BadShape, &["counted"]);
    assert_error((&many + one.broadcast_to([3, 1])?).max().item(), ExpressionErrorKind::BadShape, &["counted"]);
    Ok(())
}

/// The views have the same places by other strides of an axis of extent 1, or no places at all.
#[test]
fn targets_are_read_in_their_places_whatever_the_strides() -> Result<()> {
    let stream = stream()?;
    let m = Tensor::from_slice(&stream, [3, 4], &Vec::from_iter(0..12))?;
    let (column, again) = (m.slice((.., 1..2))?, m.slice((.., 1))?.insert_axis(1)?);
    assert_ne!(column.strides(), again.strides());
    column.assign(&again * 10)?;
    assert_eq!(m.to_vec()?, [0, 10, 2, 3, 4, 50, 6, 7, 8, 90, 10, 11]);
    assign_all([column.to(&again + 1), m.slice((.., 2..3))?.to(&again)])?;
    assert_eq!(m.to_vec()?, [0, 11, 10, 3, 4, 51, 50, 7, 8, 91, 90, 11]);
    // If there are no elements, none is repeated, and none overlaps.
    let nothing = m.slice(..0)?.slice((.., 0..1))?.broadcast_to([0, 5])?;
    nothing.assign(m.slice((0, 0..1))?)?;
    nothing.fill(1)?;
    // These strides pass each other without meeting.
    let woven = m.as_strided([3, 2], &[2, 3])?;
    woven.assign(element_index::<i32>())?;
    assert_eq!(woven.to_vec()?, [0, 1, 2, 3, 4, 5]);
    assert_error(m.as_strided([3, 2], &[2, 4])?.fill(0), ExpressionErrorKind::BadStrides, &["[2, 4]", "repeats"]);
    Ok(())
}

/// Even columns are apart from odd columns in a matrix of any size.
#[test]
fn woven_views_do_not_overlap() -> Result<()> {
    let stream = stream()?;
    let x = Tensor::<u32>::uninit(&stream, [300, 400])?;
    x.assign(element_index::<u32>())?;
    let by = |start: isize| x.slice((.., AxisSlice::from(start..).by(2)));
    by(0)?.assign(by(1)? * 2)?;
    let expected = |i: u32| if i.is_multiple_of(2) { (i + 1) * 2 } else { i };
    assert_eq!(x.to_vec()?, Vec::from_iter((0..120_000).map(expected)));
    assert_error(by(0)?.assign(x.slice((.., ..200))?), ExpressionErrorKind::Overlap, &["overlaps"]);
    Ok(())
}

#[test]
fn buffers_become_tensors_and_slices_of_tensors() -> Result<()> {
    let stream = stream()?;
    let buffer = stream.buffer_from(&[1u16, 2, 3, 4, 5, 6])?;
    let x = Tensor::from_buffer(&stream, [2, 3], buffer)?;
    assert_eq!(x.slice(1)?.as_slice().unwrap().to_vec()?, [4, 5, 6]);
    assert!(x.t().as_slice().is_none());
    assert_eq!(format!("{x:?}"), format!("Tensor<u16>([2, 3] on {})", x.device()));
    assert_eq!((x.len(), x.dtype(), x.strides()), (6, DType::U16, &[3, 1][..]));
    drop(x);
    Ok(())
}

/// Rows and columns are broadcast over many short lines, and over a few long lines.
#[test]
fn long_and_short_lines() -> Result<()> {
    let stream = stream()?;
    for (rows, columns) in [(1, 70_001), (70_001, 1), (3, 30_011), (30_011, 3), (257, 255)] {
        let at = |i: usize, j: usize| (i * 31 + j * 7) as f32;
        let full: Vec<f32> = (0..rows * columns).map(|k| at(k / columns, k % columns)).collect();
        let x = Tensor::from_slice(&stream, [rows, columns], &full)?;
        let row = Tensor::from_slice(&stream, columns, &(0..columns).map(|j| j as f32).collect::<Vec<_>>())?;
        let column = Tensor::from_slice(&stream, [rows, 1], &(0..rows).map(|i| i as f32).collect::<Vec<_>>())?;
        let y = Tensor::uninit(&stream, [columns, rows])?;
        y.t().assign(&x * 2.0 + &row - &column)?;
        let expected: Vec<f32> = (0..columns * rows)
            .map(|k| (k % rows, k / rows))
            .map(|(i, j)| at(i, j) * 2.0 + j as f32 - i as f32)
            .collect();
        assert_eq!(y.to_vec()?, expected);
    }
    Ok(())
}

#[test]
fn a_slice_to_write_is_of_the_only_view() -> Result<()> {
    let stream = stream()?;
    let mut x = Tensor::from_slice(&stream, [2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    // Enqueued work is not a view.
    x.add_assign(scalar(1.0f32))?;
    x.as_slice_mut().expect("the only view").copy_from(&[7.0; 6])?;
    x.mul_assign(scalar(2.0f32))?;
    assert_eq!(x.to_vec()?, [14.0; 6]);

    let clone = x.clone();
    assert!(x.as_slice_mut().is_none());
    drop(clone);
    let mut row = x.slice((1, ..))?;
    assert!(x.as_slice_mut().is_none() && row.as_slice_mut().is_none());
    let expression = &x * 2.0;
    drop(x);
    assert!(row.as_slice_mut().is_none());
    drop(expression);
    // Only the row is left. It is in the middle of its memory.
    assert_eq!(row.as_slice_mut().expect("the only view").len(), 3);
    row.as_slice_mut().expect("the only view").copy_from(&[1.0, 2.0, 3.0])?;
    assert_eq!(row.to_vec()?, [1.0, 2.0, 3.0]);

    let mut column = Tensor::<f32>::zeros(&stream, [3, 2])?.slice((.., 0))?;
    assert!(column.as_slice_mut().is_none());
    Ok(())
}

#[test]
fn a_prepared_assignment_and_another_stream_have_a_view_and_a_graph_has_none() -> Result<()> {
    let stream = stream()?;
    let mut x = Tensor::<f32>::zeros(&stream, 4)?;
    let prepared = Prepared::new([x.to(scalar(1.0f32))])?;
    assert!(x.as_slice_mut().is_none());
    drop(prepared);
    let elsewhere = x.on(&stream);
    assert!(x.as_slice_mut().is_none());
    drop(elsewhere);
    let graph = stream.capture(|captured| x.on(captured).add_assign(scalar(1.0f32)))?;
    x.as_slice_mut().expect("the only view").copy_from(&[1.0, 2.0, 3.0, 4.0])?;
    graph.launch(&stream)?;
    assert_eq!(x.to_vec()?, [2.0, 3.0, 4.0, 5.0]);
    Ok(())
}
