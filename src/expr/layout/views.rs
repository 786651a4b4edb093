//! Layouts of views: slices, other shapes and other orders of axes of the same elements.

use super::shape::{AxisSlice, Layout, MAX_RANK, Shape};

/// The reason why a layout has no such view.
type Reason = String;

impl Layout {
    /// Returns the elements of slices along the leading axes.
    pub(crate) fn sliced(&self, slices: &[AxisSlice]) -> Result<Self, Reason> {
        let Self { shape, strides, mut offset } = *self;
        if slices.len() > shape.rank() {
            return Err(format!("{} slices of a tensor of shape {shape}", slices.len()));
        }
        let (mut extents, mut kept) = (Vec::new(), [0; MAX_RANK]);
        for (axis, &extent) in shape.iter().enumerate() {
            let slice = slices.get(axis).copied().unwrap_or((..).into());
            let resolved = slice.resolve(extent);
            let (start, count, step, stays) =
                resolved.ok_or_else(|| format!("axis {axis} of a tensor of shape {shape} has no {slice:?}"))?;
            // If there are no elements, the place does not matter, and may be outside.
            if !shape.contains(&0) {
                offset = offset.wrapping_add_signed(strides[axis].wrapping_mul(start as isize));
            }
            if stays {
                // A step that is never taken may have any size.
                kept[extents.len()] = strides[axis].wrapping_mul(step);
                extents.push(count);
            }
        }
        Ok(Self { shape: Shape::new(&extents).unwrap_or(shape), strides: kept, offset })
    }

    /// Returns `count` indices of the outermost axis, starting at `first`.
    pub(crate) fn rows(&self, first: usize, count: usize) -> Self {
        let Self { shape, strides, offset } = *self;
        // This is the same as in [`sliced`](Self::sliced).
        let by = if shape.contains(&0) { 0 } else { strides[0].wrapping_mul(first as isize) };
        let offset = offset.wrapping_add_signed(by);
        Self { shape: shape.map(|extents| extents[0] = count).unwrap_or(shape), strides, offset }
    }

    /// Returns the axes in another order: axis `i` of the result is axis `axes[i]` of this layout.
    pub(crate) fn permuted(&self, axes: &[usize]) -> Result<Self, Reason> {
        let Self { shape, strides, offset } = *self;
        let rank = shape.rank();
        if axes.len() != rank || (0..rank).any(|axis| !axes.contains(&axis)) {
            return Err(format!("{axes:?} is no order of the {rank} axes of a tensor of shape {shape}"));
        }
        let mut turned = [0; MAX_RANK];
        for (to, &from) in turned.iter_mut().zip(axes) {
            *to = strides[from];
        }
        let shape = shape.map(|extents| *extents = axes.iter().map(|&axis| extents[axis]).collect());
        Ok(Self { shape: shape.unwrap_or(Shape::SCALAR), strides: turned, offset })
    }

    /// Inserts a new axis of extent 1 before axis `axis`, or after all axes.
    pub(crate) fn with_axis(&self, axis: usize) -> Result<Self, Reason> {
        let Self { shape, mut strides, offset } = *self;
        let rank = shape.rank();
        let wider = if axis <= rank { shape.map(|extents| extents.insert(axis, 1)) } else { None };
        let wider = wider.ok_or_else(|| format!("a tensor of shape {shape} cannot have an axis inserted at {axis}"))?;
        strides[axis..=rank].rotate_right(1);
        strides[axis] = 0;
        Ok(Self { shape: wider, strides, offset })
    }

    /// Returns the same elements repeated to a shape.
    pub(crate) fn repeated(&self, shape: &Shape) -> Result<Self, Reason> {
        let reason = || format!("a tensor of shape {} does not broadcast to {shape}", self.shape);
        self.broadcast_to(shape).ok_or_else(reason)
    }

    /// Returns the same elements in another shape of the same size.
    pub(crate) fn reshaped(&self, shape: Shape) -> Result<Self, Reason> {
        self.in_shape(shape).ok_or_else(|| {
            format!(
                "a tensor of shape {} and strides {:?} cannot be seen in the shape {shape} without a copy: make one with \
                 `contiguous`",
                self.shape,
                &self.strides[..self.shape.rank()]
            )
        })
    }

    /// Works as [`reshaped`](Self::reshaped), but returns `None` if no strides describe the shape.
    fn in_shape(&self, shape: Shape) -> Option<Self> {
        if self.is_contiguous() {
            return Some(Self { shape, strides: shape.contiguous_strides(), offset: self.offset });
        }
        // Axes that continue each other are merged. Each new axis is a part of one of the merged axes.
        let mut merged: Vec<(usize, isize)> = Vec::new();
        for (&extent, &stride) in self.shape.iter().zip(&self.strides).filter(|(extent, _)| **extent != 1) {
            match merged.last_mut() {
                Some((all, last)) if *last == stride * extent as isize => (*all, *last) = (*all * extent, stride),
                _ => merged.push((extent, stride)),
            }
        }
        let mut strides = [0; MAX_RANK];
        let mut axis = shape.rank();
        for (extent, stride) in merged.into_iter().rev() {
            let mut taken = 1;
            while taken < extent {
                axis = axis.checked_sub(1)?;
                strides[axis] = stride * taken as isize;
                taken *= shape[axis];
            }
            if taken != extent {
                return None;
            }
        }
        Some(Self { shape, strides, offset: self.offset })
    }
}
