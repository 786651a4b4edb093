//! Copies between tensors that are split in different ways, and from and to tensors of one device.

use std::panic::Location;
use std::sync::Arc;

use primitives_host::storage::{self, moves};
use primitives_host::{Error, ExpressionErrorKind, Result, Split, Stream};

use super::assign::assign;
use super::packed::{contiguous, memory, rows_of};
use super::tensor::{SplitTensor, splittable};
use super::view::{SplitView, row_elements};
use crate::expr::dtype::Scalar;
use crate::expr::evaluate::{mistake, overlaps};
use crate::expr::graph::View;
use crate::expr::layout::overlap::repeats;
use crate::expr::tensor::Tensor;

impl<T: Scalar> SplitTensor<T> {
    /// Copies the elements to a new tensor with another split. Rows that stay on their device are copied there, and all other rows are
    /// copied between devices.
    ///
    /// On GPUs, the copy is only enqueued. If a kernel has a fault, the copy takes what this kernel has left, and [`Split::synchronize`] of
    /// this tensor's split returns the fault.
    ///
    /// ```
    /// use kernel_primitives::expr::SplitTensor;
    /// use kernel_primitives::{Devices, Split};
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let devices = Devices::emulated(3)?;
    /// let x = SplitTensor::from_slice(&Split::even(&devices)?, [3, 2], &[1, 2, 3, 4, 5, 6])?;
    /// let y = x.resplit(&Split::weighted(&devices, &[1.0, 1.0, 4.0])?)?;
    /// assert_eq!((y.range(2), y.shard(2).to_vec()?), (1..3, vec![3, 4, 5, 6]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A [view](Self::slice) that is not contiguous is first copied on its devices.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Allocation`] if a device does not have enough memory, and [`Error::WrongDevice`] between GPUs and the emulator.
    #[track_caller]
    pub fn resplit(&self, split: &Split) -> Result<Self> {
        let copy = Self::uninit(split, self.shape())?;
        copy_rows::<T>((Location::caller(), "`SplitTensor::resplit`"), &copy.view, &self.view)?;
        Ok(copy)
    }

    /// Copies the elements of `other`, which must have the same shape, and may be split in any way. A row goes between devices only if its
    /// two devices differ.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] if the shapes differ, if the two have some elements in common at other places, or if this view repeats
    /// elements. Also returns the errors of [`resplit`](Self::resplit).
    #[track_caller]
    pub fn copy_from(&self, other: &Self) -> Result<()> {
        let place = Location::caller();
        let fail = |kind, reason| Err(mistake(place, kind, reason, &[]));
        if self.shape() != other.shape() {
            let reason = format!("a tensor of shape {} is not copied to one of shape {}", other.shape(), self.shape());
            return fail(ExpressionErrorKind::BadShape, reason);
        }
        if self.view.same_as(&other.view) && !self.view.shards.iter().any(|shard| repeats(&shard.layout)) {
            return Ok(());
        }
        if self.view.shards.iter().any(|to| other.view.shards.iter().any(|from| overlaps(to, from))) {
            let reason = "a tensor is not copied to elements of its own: make a copy first".into();
            return fail(ExpressionErrorKind::Overlap, reason);
        }
        let call = "`SplitTensor::copy_from`";
        if self.view.is_contiguous() {
            return copy_rows::<T>((place, call), &self.view, &other.view);
        }
        let copy = memory(self.split(), (self.shape(), &self.view.bounds), T::DTYPE, 0)?;
        copy_rows::<T>((place, call), &copy, &other.view)?;
        assign(place, &self.view, &rows_of(&copy))
    }

    /// Copies all elements to a new tensor on the device of a stream. The copy is enqueued as in [`resplit`](Self::resplit).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`resplit`](Self::resplit).
    #[track_caller]
    pub fn to_tensor(&self, stream: &Stream) -> Result<Tensor<T>> {
        let (all, row) = (Tensor::uninit(stream, self.shape())?, row_elements(&self.shape()));
        let own = contiguous(Location::caller(), &self.view)?;
        for (shard, bounds) in own.shards.iter().zip(own.bounds.windows(2)) {
            let (to, len) = ((&all.view, bounds[0] * row), (bounds[1] - bounds[0]) * row);
            copy::<T>("`SplitTensor::to_tensor`", to, (shard, 0), len)?;
        }
        Ok(all)
    }

    /// Copies the elements of a tensor of one device to a new split tensor. On GPUs, the copy is only enqueued. If a kernel that should
    /// have written the tensor has a fault, the stream of that kernel returns it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] for a tensor without axes, which has nothing to split, and the errors of [`resplit`](Self::resplit).
    #[track_caller]
    pub fn from_tensor(split: &Split, tensor: &Tensor<T>) -> Result<Self> {
        let shape = splittable(&tensor.shape(), None)?;
        let (all, row) = (tensor.contiguous()?, row_elements(&shape));
        Self::made(split, shape, &mut |_, stream, shape, rows| {
            let part = Tensor::uninit(stream, shape)?;
            let (from, len) = ((&all.view, rows.start * row), rows.len() * row);
            copy::<T>("`SplitTensor::from_tensor`", (&part.view, 0), from, len)?;
            Ok(part)
        })
    }
}

/// Copies the elements of a tensor to a contiguous tensor of the same shape. Both have the type `T`, and may be split in different ways.
pub(super) fn copy_rows<T: Scalar>(
    (place, call): (&'static Location<'static>, &'static str),
    to: &SplitView,
    from: &Arc<SplitView>,
) -> Result<()> {
    let (row, from) = (row_elements(&to.shape), contiguous(place, from)?);
    for one in moves(&to.bounds, &from.bounds) {
        let target = (&to.shards[one.to], (one.range.start - to.bounds[one.to]) * row);
        let source = (&from.shards[one.from], (one.range.start - from.bounds[one.from]) * row);
        copy::<T>(call, target, source, one.range.len() * row)?;
    }
    Ok(())
}

/// Copies `len` elements of one contiguous view to another, from and to the given element numbers. The elements have type `T`.
pub(super) fn copy<T: Scalar>(
    call: &'static str,
    to: (&Arc<View>, usize),
    from: (&Arc<View>, usize),
    len: usize,
) -> Result<(), Error> {
    if len == 0 {
        return Ok(());
    }
    let size = size_of::<T>();
    let byte = |(view, at): (&Arc<View>, usize)| (view.layout.offset + at) * size;
    let (target, source) = ((&*to.0.storage, byte(to)), (&*from.0.storage, byte(from)));
    if target.0.same_as(source.0) && target.1 == source.1 {
        return Ok(());
    }
    // SAFETY: a tensor of `T` has the memory of a buffer of `T`, and whole elements are copied.
    unsafe { storage::copy(call, &to.0.stream, target, source, len * size) }
}
