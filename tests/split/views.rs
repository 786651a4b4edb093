//! Tests views of split tensors against the same views of a tensor of one device.

#![allow(clippy::reversed_empty_ranges, reason = "negative bounds count from the end")]

use kernel_primitives::expr::*;
use kernel_primitives::{Devices, ExpressionErrorKind, Result, Split};

use crate::errors::assert_error;
use crate::{all_splits, values};

/// Makes a split tensor, and a tensor of one device with the same elements.
fn both(split: &Split, shape: &[usize]) -> Result<(SplitTensor<i32>, Tensor<i32>)> {
    let data = values(shape.iter().product());
    let whole = Tensor::from_slice(&split.streams()[0], shape, &data)?;
    Ok((SplitTensor::from_slice(split, shape, &data)?, whole))
}

/// Checks the shape, the rows of each device, and all elements, for all ways to read them.
#[track_caller]
fn assert_same(view: &SplitTensor<i32>, expected: &Tensor<i32>) -> Result<()> {
    assert_eq!(view.shape(), expected.shape());
    let elements = expected.to_vec()?;
    assert_eq!(view.to_vec()?, elements);
    assert_eq!(view.to_tensor(expected.stream())?.to_vec()?, elements);
    assert_eq!(view.resplit(view.split())?.to_vec()?, elements);
    let mut parts = Vec::new();
    for (device, shard) in view.shards().enumerate() {
        assert_eq!(view.range(device).len(), shard.shape()[0]);
        parts.extend(shard.to_vec()?);
    }
    assert_eq!(parts, elements);
    let contiguous = view.contiguous()?;
    assert!(contiguous.is_contiguous());
    assert_eq!(contiguous.to_vec()?, elements);
    let copy = view.uninit_like::<i32>()?;
    copy.assign(view * 2 - element_index::<i32>())?;
    let doubled: Vec<i32> = elements.iter().zip(0..).map(|(x, i)| x * 2 - i).collect();
    assert_eq!(copy.to_vec()?, doubled);
    assert_eq!(view.sum().item()?, elements.iter().sum::<i32>());
    Ok(())
}

/// Returns slices of rows: contiguous rows, rows by steps, a single row, no rows, and rows beyond the end.
fn row_slices() -> Vec<AxisSlice> {
    let every = AxisSlice::from(..);
    let long = isize::MAX;
    let mut all = vec![every, (3..17).into(), (0..1).into(), (5..5).into(), (-4..).into(), (100..).into()];
    all.extend([every.by(3), AxisSlice::from(1..).by(2), AxisSlice::from(2..-2).by(7), AxisSlice::from(4..).by(long)]);
    all
}

#[test]
fn slices_are_those_of_one_device() -> Result<()> {
    for split in all_splits()? {
        for rows in [0, 1, 2, 19] {
            let (x, whole) = both(&split, &[rows, 3, 4])?;
            for slice in row_slices() {
                assert_same(&x.slice(slice)?, &whole.slice(slice)?)?;
                assert_same(&x.slice((slice, 1))?, &whole.slice((slice, 1))?)?;
                let (view, expected) = (x.slice((slice, .., 1..3))?, whole.slice((slice, .., 1..3))?);
                assert_same(&view, &expected)?;
                // This is a slice of a slice.
                let inner = (AxisSlice::from(1..).by(2), AxisSlice::from(..).by(-2));
                assert_same(&view.slice(inner)?, &expected.slice(inner)?)?;
            }
        }
        // There are no elements, for any number of rows.
        for shape in [[19, 0, 4], [19, 0, usize::MAX], [19, 4, 0]] {
            let (x, whole) = both(&split, &shape)?;
            assert_same(&x.slice(1..)?, &whole.slice(1..)?)?;
            assert_same(
                &x.slice((AxisSlice::from(2..).by(3), .., ..3))?,
                &whole.slice((AxisSlice::from(2..).by(3), .., ..3))?,
            )?;
            assert_same(&x.slice((2.., .., 0..0))?.slice(3..)?, &whole.slice((2.., .., 0..0))?.slice(3..)?)?;
            let (flat, of_whole) = (x.reshape([38, 0, 7])?, whole.reshape([38, 0, 7])?);
            assert_same(&flat.slice(1..)?, &of_whole.slice(1..)?)?;
        }
    }
    Ok(())
}

#[test]
fn other_views_are_those_of_one_device() -> Result<()> {
    for split in all_splits()? {
        for rows in [0, 1, 13] {
            let (x, whole) = both(&split, &[rows, 3, 4])?;
            assert_same(&x.permute(&[0, 2, 1])?, &whole.permute(&[0, 2, 1])?)?;
            assert_same(&x.insert_axis(1)?, &whole.insert_axis(1)?)?;
            assert_same(&x.insert_axis(3)?, &whole.insert_axis(3)?)?;
            assert_same(&x.reshape([rows, 12])?, &whole.reshape([rows, 12])?)?;
            assert_same(&x.reshape([rows * 3, 2, 2])?, &whole.reshape([rows * 3, 2, 2])?)?;
            assert_same(&x.reshape([rows * 3, 4])?.reshape([rows, 6, 2])?, &whole.reshape([rows, 6, 2])?)?;
            let (column, of_whole) = (x.slice((.., 1..2, 2..3))?, whole.slice((.., 1..2, 2..3))?);
            assert_same(&column.broadcast_to([rows, 5, 2])?, &of_whole.broadcast_to([rows, 5, 2])?)?;
            assert_same(&column.reshape(rows)?, &of_whole.reshape(rows)?)?;
        }
    }
    Ok(())
}

#[test]
fn views_are_assigned() -> Result<()> {
    for split in all_splits()? {
        let (x, whole) = both(&split, &[23, 4])?;
        let (y, other) = both(&split, &[23, 4])?;
        let slices = (AxisSlice::from(2..).by(3), 1..3);
        let (view, expected) = (x.slice(slices.clone())?, whole.slice(slices.clone())?);
        view.assign(y.slice(slices.clone())? * 3 + element_index::<i32>() - axis_index::<i32>(0))?;
        expected.assign(other.slice(slices)? * 3 + element_index::<i32>() - axis_index::<i32>(0))?;
        assert_same(&x, &whole)?;
        // One column is updated by another column, as in a tensor of one device.
        x.slice((.., 0))?.add_assign(x.slice((.., 3))?)?;
        whole.slice((.., 0))?.add_assign(whole.slice((.., 3))?)?;
        x.slice(7..9)?.fill(-1)?;
        whole.slice(7..9)?.fill(-1)?;
        assert_same(&x, &whole)?;
        // The rows come from any split.
        let (view, expected) = (x.slice((1..11, ..2))?, whole.slice((1..11, ..2))?);
        view.copy_from(&y.slice((12..22, 2..))?)?;
        expected.assign(other.slice((12..22, 2..))?)?;
        x.slice(11..)?.copy_from(&y.slice(..12)?)?;
        whole.slice(11..)?.assign(other.slice(..12)?)?;
        assert_same(&x, &whole)?;
    }
    Ok(())
}

#[test]
fn views_are_reduced() -> Result<()> {
    for split in all_splits()? {
        let (x, whole) = both(&split, &[31, 5])?;
        for slices in
            [(AxisSlice::from(..), AxisSlice::from(1..3)), (AxisSlice::from(4..).by(5), AxisSlice::from(..).by(-1))]
        {
            let (view, expected) = (x.slice([slices.0, slices.1])?, whole.slice([slices.0, slices.1])?);
            assert_eq!(view.max().axes(&[0]).tensor()?.to_vec()?, expected.max().axes(&[0]).tensor()?.to_vec()?);
            assert_eq!(view.sum().axes(&[1]).split_tensor()?.to_vec()?, expected.sum().axes(&[1]).tensor()?.to_vec()?);
            assert_eq!(view.arg_min().item()?, expected.arg_min().item()?);
        }
    }
    Ok(())
}

/// The neighbours of a view are in the view, for any elements around it in memory.
#[test]
fn stencils_read_views() -> Result<()> {
    for split in all_splits()? {
        let (x, whole) = both(&split, &[29, 6])?;
        let with_room = SplitTensor::<i32>::uninit_with_halo(&split, [29, 6], 2)?;
        with_room.assign(&x)?;
        for slice in
            [(AxisSlice::from(..), AxisSlice::from(1..5)), ((2..27).into(), (..).into()), ((3..).into(), (2..4).into())]
        {
            let expected = whole.slice([slice.0, slice.1])?;
            let result = Tensor::uninit(whole.stream(), expected.shape())?;
            for boundary in [Boundary::Clamp, Boundary::Periodic, Boundary::Mirror, Boundary::Constant(9)] {
                result.assign(stencil(&expected, boundary, |n| n.at([-2, 0]) * 3 + n.at([0, 1]) - n.at([1, -1])))?;
                for x in [&x, &with_room] {
                    let view = x.slice([slice.0, slice.1])?;
                    let target = view.uninit_like::<i32>()?;
                    target.assign(stencil(&view, boundary, |n| n.at([-2, 0]) * 3 + n.at([0, 1]) - n.at([1, -1])))?;
                    assert_eq!(target.to_vec()?, result.to_vec()?);
                    let read = stencil(&view, boundary, |n| n.at([-2, 0]) * 3 + n.at([0, 1]) - n.at([1, -1]));
                    assert_eq!(read.sum().item()?, result.sum().item()?);
                }
            }
            let inner = |n: &Neighbours<i32>| n.at([-1, 0]) + n.at([1, 1]) * 2;
            let interior = stencil(&expected, Boundary::Interior, inner).sum().item()?;
            assert_eq!(stencil(&x.slice([slice.0, slice.1])?, Boundary::Interior, inner).sum().item()?, interior);
        }
        assert_same(&with_room, &whole)?;
    }
    Ok(())
}

#[test]
fn steps_are_of_views() -> Result<()> {
    for split in all_splits()? {
        let (x, whole) = both(&split, &[25, 6])?;
        let (y, other) = both(&split, &[25, 6])?;
        let slices = [AxisSlice::from(1..24), AxisSlice::from(..).by(2)];
        for steps in [0, 1, 2, 5] {
            let sum = |n: &Neighbours<i32>| n.at([-1, 0]) - n.at([1, 0]) + n.at([0, 1]);
            let (from, to) = (x.slice(slices)?, y.slice(slices)?);
            to.assign(stencil(&from, Boundary::Periodic, sum).steps(steps))?;
            let (from, to) = (whole.slice(slices)?, other.slice(slices)?);
            to.assign(stencil(&from, Boundary::Periodic, sum).steps(steps))?;
            assert_same(&y, &other)?;
        }
    }
    Ok(())
}

#[test]
fn gathers_read_views() -> Result<()> {
    for split in all_splits()? {
        let (x, whole) = both(&split, &[40, 3])?;
        let index = SplitTensor::from_slice(&split, 500, &Vec::from_iter((0..500u32).map(|i| i * 7919 % 20)))?;
        let all = index.to_tensor(whole.stream())?;
        for slices in [(AxisSlice::from(20..), 1), (AxisSlice::from(..).by(2), 2)] {
            let (view, expected) = (x.slice(slices)?, whole.slice(slices)?);
            let (target, result) = (SplitTensor::uninit(&split, 500)?, Tensor::uninit(whole.stream(), 500)?);
            target.assign(gather(&view, &index) + gather(&view, &index / 2))?;
            result.assign(gather(&expected, &all) + gather(&expected, &all / 2))?;
            assert_same(&target, &result)?;
            // The indices are a view.
            let (target, result) = (target.slice(3..203)?, result.slice(3..203)?);
            target.assign(gather(&view, index.slice(3..203)?))?;
            result.assign(gather(&expected, all.slice(3..203)?))?;
            assert_same(&target, &result)?;
        }
    }
    Ok(())
}

#[test]
fn a_view_of_all_elements_keeps_its_room() -> Result<()> {
    let split = Split::even(&Devices::emulated(3)?)?;
    let x = SplitTensor::<f32>::uninit_with_halo(&split, [9, 4], 2)?;
    assert_eq!((x.slice(..)?.halo(), x.reshape([9, 4])?.halo(), x.slice(1..)?.halo()), (2, 2, 0));
    Ok(())
}

#[test]
fn views_that_change_the_order_of_devices() -> Result<()> {
    let split = Split::even(&Devices::emulated(3)?)?;
    let x = SplitTensor::<i32>::zeros(&split, [6, 4])?;
    let bad = ExpressionErrorKind::BadSplit;
    assert_error(x.slice(2), bad, &["a single row of a tensor of shape [6, 4] is not split", "`shard`"]);
    assert_error(x.slice(AxisSlice::from(..).by(-1)), bad, &["a step of -1 along the outermost axis"]);
    assert_error(x.permute(&[1, 0]), bad, &["keeps this axis in its place", "[1, 0]"]);
    assert_error(x.insert_axis(0), bad, &["an axis before the outermost one"]);
    assert_error(x.broadcast_to([2, 6, 4]), bad, &["cannot be repeated over the rows of [2, 6, 4]"]);
    assert_error(x.slice(..1)?.broadcast_to([6, 4]), bad, &["shape [1, 4]", "over the rows of [6, 4]"]);
    let parts = ["0..2 on device 0 of the emulator", "in the shape [2, 12]", "element 8", "a row of 12 elements"];
    assert_error(x.reshape([2, 12]), bad, &parts);
    Ok(())
}

#[test]
fn views_that_no_tensor_has() -> Result<()> {
    let split = Split::even(&Devices::emulated(2)?)?;
    let x = SplitTensor::<i32>::zeros(&split, [6, 4])?;
    let out = ExpressionErrorKind::OutOfRange;
    assert_error(x.slice((.., 4)), out, &["axis 1 of a tensor of shape [6, 4]"]);
    assert_error(x.slice(6), out, &["axis 0 of a tensor of shape [6, 4]"]);
    assert_error(x.slice(AxisSlice::from(..).by(0)), out, &["axis 0"]);
    assert_error(x.slice((.., .., 0)), out, &["3 slices of a tensor of shape [6, 4]"]);
    assert_error(x.permute(&[0, 0]), out, &["[0, 0] is no order of the 2 axes"]);
    assert_error(x.insert_axis(3), out, &["axis inserted at 3"]);
    assert_error(x.broadcast_to([6, 5]), ExpressionErrorKind::BadShape, &["[6, 4] does not broadcast to [6, 5]"]);
    assert_error(x.reshape([5, 4]), ExpressionErrorKind::BadShape, &["20 elements, but there are 24"]);
    assert_error(x.slice((.., ..2))?.reshape(12), ExpressionErrorKind::BadStrides, &["contiguous"]);
    // The result is the same as on one device, although each of the devices has a single row.
    let steps =
        SplitTensor::<i32>::zeros(&Split::even(&Devices::emulated(3)?)?, [6, 4])?.slice(AxisSlice::from(..).by(2))?;
    assert_error(
        steps.reshape(12),
        ExpressionErrorKind::BadStrides,
        &["shape [3, 4] and strides [8, 1]", "shape [12]"],
    );
    let repeated = x.slice((.., ..1))?.broadcast_to([6, 4])?;
    assert_error(repeated.copy_from(&repeated), ExpressionErrorKind::Overlap, &[]);
    let other = SplitTensor::<i32>::zeros(&split, [6, 4])?;
    let sum = stencil(&other, Boundary::Interior, |n| n.at([0, -1]) + n.at([0, 1]));
    assert_error(repeated.assign(sum.clone().steps(1)), ExpressionErrorKind::BadStrides, &["repeats elements"]);
    assert_error(repeated.assign(sum.steps(3)), ExpressionErrorKind::BadStrides, &["repeats elements"]);
    let (column, index) = (x.slice((.., 0))?, SplitTensor::<u32>::zeros(&split, 6)?);
    assert_error(column.assign(gather(&column, &index)), ExpressionErrorKind::Overlap, &["what a gather reads"]);
    assert_error(repeated.assign(&x), ExpressionErrorKind::BadStrides, &["repeats elements"]);
    let zeros = SplitTensor::zeros(&split, [6, 4])?;
    assert_error(repeated.copy_from(&zeros), ExpressionErrorKind::BadStrides, &["repeats elements"]);
    Ok(())
}

/// If a step reads the target beside its places, it reads the elements from before the step.
#[test]
fn a_step_reads_views_of_its_target() -> Result<()> {
    for split in all_splits()? {
        for steps in [1, 3] {
            let (x, whole) = both(&split, &[9, 6])?;
            let far = |n: &Neighbours<i32>| n.at([0, -3]) + n.at([0, 0]);
            let (t, target) =
                (SplitTensor::from_slice(&split, [9, 6], &[1000; 54])?, Tensor::uninit(whole.stream(), [9, 6])?);
            target.fill(1000)?;
            t.assign((stencil(&x, Boundary::Interior, far) + t.slice((.., ..3))?).steps(steps))?;
            target.assign((stencil(&whole, Boundary::Interior, far) + target.slice((.., ..3))?).steps(steps))?;
            assert_same(&t, &target)?;
            // The stepped tensor is where the places are.
            let sum = |n: &Neighbours<i32>| n.at([0, 1]) - n.at([-1, -1]);
            let inner = (1.., 1..-1);
            t.assign((stencil(&x, Boundary::Interior, sum) + x.slice(inner.clone())?).steps(steps))?;
            target.assign((stencil(&whole, Boundary::Interior, sum) + whole.slice(inner)?).steps(steps))?;
            assert_same(&t, &target)?;
        }
    }
    Ok(())
}

/// Only the first column of a view is written, and only this column is read.
#[test]
fn stencils_read_no_more_than_they_need() -> Result<()> {
    let split = Split::even(&Devices::emulated(3)?)?;
    let x = SplitTensor::<i32>::uninit(&split, [6, 4])?;
    x.slice((.., ..1))?.fill(7)?;
    let (view, y) = (x.slice((.., ..3))?, SplitTensor::<i32>::uninit(&split, [6, 1])?);
    y.assign(stencil(&view, Boundary::Interior, |n| n.at([0, -2]) + n.at([0, -2])))?;
    assert_eq!(y.to_vec()?, [14; 6]);
    // A mistake is found before anything is copied.
    let clamped = stencil(&view, Boundary::Clamp, |n| n.at([1, 0]));
    assert_error(clamped.sum().split_tensor(), ExpressionErrorKind::BadSplit, &["use `tensor`"]);
    Ok(())
}

/// No order of the copies would be right.
#[test]
fn a_copy_to_elements_of_its_own() -> Result<()> {
    let split = Split::even(&Devices::emulated(2)?)?;
    let x = SplitTensor::from_slice(&split, 8, &values(8))?;
    let before = x.to_vec()?;
    let (first, last) = (x.slice(..7)?, x.slice(1..)?);
    assert_error(last.copy_from(&first), ExpressionErrorKind::Overlap, &["a copy first"]);
    assert_error(last.assign(&first), ExpressionErrorKind::BadSplit, &["0..3", "0..4", "resplit"]);
    x.copy_from(&x.slice(..)?)?;
    assert_eq!(x.to_vec()?, before);
    last.copy_from(&first.resplit(&split)?)?;
    assert_eq!(x.to_vec()?[1..], before[..7]);
    Ok(())
}

#[test]
fn rows_of_one_device_alone() -> Result<()> {
    let split = Split::even(&Devices::emulated(3)?)?;
    let x = SplitTensor::from_slice(&split, 9, &values(9))?;
    let last = x.slice(7..)?;
    assert_eq!([0, 1, 2].map(|device| last.range(device)), [0..0, 0..0, 0..2]);
    assert_eq!(last.shard(2).device().to_string(), split.streams()[2].device().to_string());
    assert_eq!(last.to_vec()?, values(9)[7..]);
    Ok(())
}
