//! Views of split tensors: slices, and other shapes and orders of axes. Each element stays on its device.

use std::panic::Location;
use std::sync::Arc;

use primitives_host::{Error, ExpressionErrorKind, Result};

use super::tensor::{SplitTensor, splittable};
use super::view::{SplitView, row_elements, with_rows};
use crate::expr::dtype::Scalar;
use crate::expr::evaluate::mistake;
use crate::expr::layout::shape::{AxisSlice, IntoShape, IntoSlices, Layout, MAX_RANK, Shape};
use crate::expr::tensor::checked_shape;

impl<T: Scalar> SplitTensor<T> {
    /// Returns a view of slices along the leading axes, as [`Tensor::slice`](crate::expr::Tensor::slice) does. Each row stays on its
    /// device. So a slice of rows has a split of its own, and some devices may have no row of it.
    ///
    /// Two tensors of one expression are split in the same way if they have the same split and shape and their rows are sliced in the same
    /// way. [`resplit`](Self::resplit) copies a slice of rows to the usual split of its shape.
    ///
    /// ```
    /// use kernel_primitives::expr::{AxisSlice, SplitTensor};
    /// use kernel_primitives::{Devices, Split};
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let split = Split::even(&Devices::emulated(2)?)?;
    /// let x = SplitTensor::from_slice(&split, [4, 3], &Vec::from_iter(0..12))?;
    /// assert_eq!(x.slice((.., 1))?.to_vec()?, [1, 4, 7, 10]);
    /// let odd = x.slice((AxisSlice::from(1..).by(2), 1..))?;
    /// assert_eq!((odd.to_vec()?, odd.range(0), odd.range(1)), (vec![4, 5, 10, 11], 0..1, 1..2));
    ///
    /// odd.assign(&odd * 10)?;
    /// assert_eq!(x.to_vec()?, [0, 1, 2, 3, 40, 50, 6, 7, 8, 9, 100, 110]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A slice of some of the elements has no [room](Self::halo) for the rows around it.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Tensor::slice`](crate::expr::Tensor::slice). Returns [`Error::Expression`] of the kind `BadSplit` for a
    /// single index or a negative step along the outermost axis, because a slice keeps this axis, and the order of the devices.
    #[track_caller]
    pub fn slice(&self, slices: impl IntoSlices) -> Result<Self> {
        Ok(Self::of_view(sliced(Location::caller(), &self.view, slices.slices())?))
    }

    /// Returns a view of the same elements in another shape, outermost axis first. Each element stays on its device. If a device would have
    /// only a part of a row of that shape, there is no such view. A view in another shape has no [room](Self::halo).
    ///
    /// ```
    /// use kernel_primitives::expr::SplitTensor;
    /// use kernel_primitives::{Devices, Split};
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let split = Split::even(&Devices::emulated(2)?)?;
    /// let x = SplitTensor::from_slice(&split, 12, &Vec::from_iter(0..12))?;
    /// let matrix = x.reshape([4, 3])?;
    /// assert_eq!((matrix.range(1), matrix.slice((.., 0))?.to_vec()?), (2..4, vec![0, 3, 6, 9]));
    /// assert!(x.reshape([3, 4]).is_err()); // the second row would be on two devices
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Tensor::reshape`](crate::expr::Tensor::reshape). Returns [`Error::Expression`] of the kind `BadSplit` if a
    /// row would be on several devices, and of the kind `BadShape` for a shape without axes, which has nothing to split.
    #[track_caller]
    pub fn reshape(&self, shape: impl IntoShape) -> Result<Self> {
        let shape = splittable(&shape, Some(self.len()))?;
        Ok(Self::of_view(reshaped(Location::caller(), &self.view, shape)?))
    }

    /// Returns a view with the axes in this order: axis `i` of the result is axis `axes[i]` of this tensor. Axis 0 stays the outermost.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] if `axes` is not an order of all axes. It is of the kind `BadSplit` if `axes` does not begin with axis
    /// 0.
    #[track_caller]
    pub fn permute(&self, axes: &[usize]) -> Result<Self> {
        let place = Location::caller();
        let whole = Layout::contiguous(self.shape()).permuted(axes).map_err(out_of_range(place))?;
        if axes[0] != 0 {
            let reason = format!(
                "a tensor of shape {} that is split along its outermost axis keeps this axis in its place: {axes:?} does not",
                self.shape()
            );
            return Err(bad_split(place, reason));
        }
        Ok(Self::of_view(viewed(&self.view, whole.shape, &|layout| layout.permuted(axes))))
    }

    /// Returns a view that repeats the elements of each row to a shape with the same number of rows and of axes. You can read a view that
    /// repeats elements, but you cannot assign to it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] if the tensor's shape does not broadcast to the given shape. It is of the kind `BadSplit` if rows
    /// would be repeated.
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl IntoShape) -> Result<Self> {
        let (place, own, shape) = (Location::caller(), self.shape(), checked_shape(&shape, None)?);
        let repeated = Layout::contiguous(own).repeated(&shape);
        repeated.map_err(|reason| mistake(place, ExpressionErrorKind::BadShape, reason, &[]))?;
        if shape.rank() != own.rank() || shape[0] != own[0] {
            return Err(bad_split(place, repeats_rows(&own, &shape)));
        }
        Ok(Self::of_view(viewed(&self.view, shape, &|layout| layout.repeated(&with_rows(shape, layout.shape[0])))))
    }

    /// Returns a view with a new axis of extent 1 before axis `axis`, or after all axes if `axis` is the number of axes.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Tensor::insert_axis`](crate::expr::Tensor::insert_axis). Returns [`Error::Expression`] of the kind
    /// `BadSplit` for axis 0, because the outermost axis is split.
    #[track_caller]
    pub fn insert_axis(&self, axis: usize) -> Result<Self> {
        let place = Location::caller();
        let whole = Layout::contiguous(self.shape()).with_axis(axis).map_err(out_of_range(place))?;
        if axis == 0 {
            let reason =
                format!("an axis before the outermost one of a tensor of shape {} has nothing to split", self.shape());
            return Err(bad_split(place, reason));
        }
        Ok(Self::of_view(viewed(&self.view, whole.shape, &|layout| layout.with_axis(axis))))
    }
}

/// Returns a view of slices along the leading axes, asked for at this place in the program.
fn sliced(place: &'static Location<'static>, view: &Arc<SplitView>, slices: Vec<AxisSlice>) -> Result<Arc<SplitView>> {
    let shape = view.shape;
    let whole = Layout::contiguous(shape).sliced(&slices).map_err(out_of_range(place))?;
    let rows = slices.first().copied().unwrap_or((..).into());
    let (start, count, step, stays) = rows.resolve(shape[0]).expect("the slices of the whole are right");
    if !stays {
        let reason = format!(
            "a single row of a tensor of shape {shape} is not split: slice a range of one row, or the `shard` that has it"
        );
        return Err(bad_split(place, reason));
    }
    let Ok(step) = usize::try_from(step) else {
        let reason = format!("a step of {step} along the outermost axis changes the order of the devices");
        return Err(bad_split(place, reason));
    };
    // This is the number of the slice's first row that is at a row of the whole tensor, or after it.
    let number = |row: usize| row.saturating_sub(start).div_ceil(step).min(count);
    let bounds: Vec<usize> = view.bounds.iter().map(|&row| number(row)).collect();
    let inner = [AxisSlice::from(..)].into_iter().chain(slices.into_iter().skip(1)).collect::<Vec<_>>();
    let shards = view.shards.iter().enumerate().map(|(device, shard)| {
        let (first, rows) = (bounds[device], bounds[device + 1] - bounds[device]);
        let begins = if rows == 0 { 0 } else { start + first * step - view.bounds[device] };
        let mut layout = shard.layout.sliced(&inner).expect("those of the whole are right").rows(begins, rows);
        // A step that is never taken may have any size.
        layout.strides[0] = layout.strides[0].wrapping_mul(step as isize);
        layout
    });
    Ok(of_layouts(view, bounds.clone(), whole.shape, shards.collect()))
}

/// Returns a view of the same elements in another shape, asked for at this place in the program.
fn reshaped(place: &'static Location<'static>, view: &Arc<SplitView>, shape: Shape) -> Result<Arc<SplitView>> {
    let (old, new) = (row_elements(&view.shape), row_elements(&shape));
    let bounds = if shape[0] == view.shape[0] {
        view.bounds.clone()
    } else if view.shape.elements() == Some(0) {
        view.split.bounds(shape[0])
    } else {
        if let Some(bound) = view.bounds.iter().find(|&bound| bound * old % new != 0) {
            let reason = format!(
                "a tensor of shape {} that is split as {} cannot be seen in the shape {shape}: element {}, the first of a device, \
                 would be inside a row of {new} elements",
                view.shape,
                view.describe(),
                bound * old
            );
            return Err(bad_split(place, reason));
        }
        view.bounds.iter().map(|bound| bound * old / new).collect()
    };
    // All devices with rows have the same strides. So the strides of a view of all rows in the other shape are right for each device.
    let shards = view.shards.iter();
    let strides =
        shards.clone().find(|shard| shard.layout.shape[0] > 0).map_or([0; MAX_RANK], |shard| shard.layout.strides);
    let whole = Layout { shape: view.shape, strides, offset: 0 }.reshaped(shape);
    let Layout { strides, .. } =
        whole.map_err(|reason| mistake(place, ExpressionErrorKind::BadStrides, reason, &[]))?;
    let layouts = shards.zip(bounds.windows(2)).map(|(shard, bounds)| Layout {
        shape: with_rows(shape, bounds[1] - bounds[0]),
        strides,
        offset: shard.layout.offset,
    });
    let layouts = layouts.collect();
    Ok(of_layouts(view, bounds, shape, layouts))
}

/// Returns a view whose rows are made from the rows of this view, each on its device. If the whole view is possible, its parts are, too.
fn viewed(view: &Arc<SplitView>, shape: Shape, f: &dyn Fn(&Layout) -> Result<Layout, String>) -> Arc<SplitView> {
    let layouts = view.shards.iter().map(|shard| f(&shard.layout).expect("that of the whole is right"));
    of_layouts(view, view.bounds.clone(), shape, layouts.collect())
}

/// Returns a view of the same memory. A view of the same elements in the same shape keeps the room around them.
fn of_layouts(view: &Arc<SplitView>, bounds: Vec<usize>, shape: Shape, layouts: Vec<Layout>) -> Arc<SplitView> {
    let own = view.shards.iter().map(|shard| &shard.layout);
    if shape == view.shape && bounds == view.bounds && own.eq(&layouts) {
        return view.clone();
    }
    let shards = view.shards.iter().zip(layouts).map(|(shard, layout)| shard.with_layout(layout)).collect();
    let (split, dtype) = (view.split.clone(), view.dtype);
    Arc::new(SplitView { split, shape, bounds, shards, dtype, halo: None, by_stencil: false })
}

/// Says why a tensor is not repeated.
pub(super) fn repeats_rows(own: &Shape, shape: &Shape) -> String {
    format!(
        "a tensor of shape {own} that is split along its outermost axis cannot be repeated over the rows of {shape}"
    )
}

fn out_of_range(place: &'static Location<'static>) -> impl FnOnce(String) -> Error {
    move |reason| mistake(place, ExpressionErrorKind::OutOfRange, reason, &[])
}

fn bad_split(place: &'static Location<'static>, reason: String) -> Error {
    mistake(place, ExpressionErrorKind::BadSplit, reason, &[])
}
