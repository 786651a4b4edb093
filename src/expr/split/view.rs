//! The part of split tensors that expressions know.

use std::sync::Arc;

use primitives_host::Split;

use super::halo::Halo;
use crate::expr::dtype::DType;
use crate::expr::graph::View;
use crate::expr::layout::shape::Shape;

/// A tensor whose rows, along its outermost axis, are on several devices.
pub(crate) struct SplitView {
    pub(crate) split: Split,
    /// The shape, with at least one axis.
    pub(crate) shape: Shape,
    /// The first row of each device, and the number of rows.
    pub(crate) bounds: Vec<usize>,
    /// The rows of each device. They are contiguous, except in some views.
    pub(crate) shards: Vec<Arc<View>>,
    pub(crate) dtype: DType,
    /// Room around the shards, if there is any.
    pub(super) halo: Option<Arc<Halo>>,
    /// Whether a stencil reads it in the place that is computed, for its steps.
    pub(crate) by_stencil: bool,
}

impl SplitView {
    /// Returns the same elements, read by a stencil in the computed place.
    pub(crate) fn read_by_stencil(&self) -> Self {
        let Self { split, shape, bounds, shards, dtype, halo, .. } = self;
        let (split, bounds, shards, halo) = (split.clone(), bounds.clone(), shards.clone(), halo.clone());
        Self { split, shape: *shape, bounds, shards, dtype: *dtype, halo, by_stencil: true }
    }

    /// Returns whether both have the same elements.
    pub(crate) fn same_as(&self, other: &Self) -> bool {
        let (a, b) = (&self.shards, &other.shards);
        self.shape == other.shape && a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same_as(b))
    }

    /// Returns whether the rows of each device are contiguous.
    pub(super) fn is_contiguous(&self) -> bool {
        self.shards.iter().all(|shard| shard.layout.is_contiguous())
    }

    /// Returns whether one device has all rows.
    pub(super) fn is_on_one(&self) -> bool {
        self.bounds.windows(2).any(|bounds| bounds[1] - bounds[0] == self.shape[0])
    }

    /// Returns a text that says which rows are on which device.
    pub(crate) fn describe(&self) -> String {
        self.split.describe(&self.bounds)
    }

    pub(super) fn rows(&self) -> Rows<'_> {
        Rows { split: &self.split, bounds: &self.bounds }
    }

    /// Returns the number of rows for which there is room around the rows of each device.
    pub(super) fn room(&self) -> usize {
        self.halo.as_ref().map_or(0, |halo| halo.rows)
    }
}

/// The split of the rows for which an expression is computed.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) split: &'a Split,
    pub(super) bounds: &'a [usize],
}

impl Rows<'_> {
    /// Returns whether each row is on the same device in both.
    pub(super) fn are_those_of(&self, other: Rows<'_>) -> bool {
        self.bounds == other.bounds && self.split.has_devices_of(other.split)
    }

    /// Says why rows with this split do not match the rows of another tensor.
    pub(super) fn differ_from(&self, other: &SplitView) -> String {
        format!(
            "tensors are split in two ways, as {} and as {}: copy one by `resplit`",
            self.describe(),
            other.describe()
        )
    }

    /// Returns the devices that have rows. Each comes with its first row and its number of rows.
    pub(super) fn shards(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let ranges = self.bounds.windows(2).map(|bounds| (bounds[0], bounds[1] - bounds[0]));
        ranges.enumerate().map(|(device, (first, rows))| (device, first, rows)).filter(|(.., rows)| *rows > 0)
    }

    /// Works as [`shards`](Self::shards). If there are no rows, it returns the first device, so that mistakes are still found.
    pub(super) fn shards_or_first(&self) -> Vec<(usize, usize, usize)> {
        let mut shards: Vec<_> = self.shards().collect();
        if shards.is_empty() {
            shards.push((0, 0, 0));
        }
        shards
    }

    pub(super) fn describe(&self) -> String {
        self.split.describe(self.bounds)
    }
}

/// Returns a shape with another number of rows.
pub(super) fn with_rows(shape: Shape, rows: usize) -> Shape {
    shape.map(|extents| extents[0] = rows).unwrap_or(shape)
}

/// Returns the number of elements of a row.
pub(super) fn row_elements(shape: &Shape) -> usize {
    // If there are no rows, a row may have more elements than can be counted.
    shape.iter().skip(1).fold(1usize, |all, &extent| all.saturating_mul(extent))
}
