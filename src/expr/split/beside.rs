//! The elements of a split tensor that stencils read around the computed element.

use std::sync::Arc;

use crate::expr::graph::Inside;
use crate::expr::layout::shape::{Layout, Shape};
use crate::expr::neighbours::neighbour::{Rule, Shift};
use crate::expr::neighbours::weighted::Taps;

/// The elements that a stencil reads of a split tensor for one result.
pub(crate) enum Beside {
    /// An element at a distance.
    Neighbour(Arc<Shift>),
    /// A weighted sum of elements along the innermost axis.
    Weighted(Arc<Taps>),
    /// An element at a distance, for an interior stencil, which has results for a part of the rows only.
    Inside(Box<Inside>),
}

impl Beside {
    /// Returns the shape of the values, if the tensor has shape `whole`.
    pub(super) fn shape(&self, whole: Shape) -> Shape {
        match self {
            Self::Inside(inside) => inside_shape(whole, inside),
            _ => whole,
        }
    }

    /// Returns the rule for neighbours outside, or `None` if there are no such neighbours.
    pub(super) fn rule(&self) -> Option<Rule> {
        match self {
            Self::Neighbour(shift) => Some(shift.rule),
            Self::Weighted(taps) => Some(taps.rule),
            Self::Inside(_) => None,
        }
    }

    /// Returns how many rows the stencil reads before the first computed row, and after the last one, if the tensor has shape `whole`.
    pub(super) fn reach(&self, whole: Shape) -> [usize; 2] {
        let rank = whole.rank();
        let sides = |low: isize, high: isize| [low.min(0).unsigned_abs(), high.max(0).unsigned_abs()];
        match self {
            Self::Neighbour(shift) => sides(shift.by[rank - 1], shift.by[rank - 1]),
            Self::Weighted(taps) if rank == 1 => sides(taps.first, taps.first + taps.weights.len() as isize - 1),
            Self::Weighted(_) => [0; 2],
            // A tensor of one row repeats this row for all results.
            Self::Inside(_) if whole[0] == 1 => [0; 2],
            Self::Inside(inside) => [0, inside.frame.before[rank - 1] + inside.frame.after[rank - 1]],
        }
    }

    /// Returns the text in an expression, for a tensor with this name.
    pub(crate) fn describe(&self, name: &str, rank: usize) -> String {
        match self {
            Self::Neighbour(shift) => format!("{name}{:?}", shift.offsets(rank)),
            Self::Weighted(taps) => format!("convolve({name}, {} weights from {})", taps.weights.len(), taps.first),
            Self::Inside(inside) => {
                format!("{name}{:?}", inside.by[..rank].iter().rev().collect::<Vec<_>>())
            }
        }
    }
}

fn inside_shape(whole: Shape, Inside { frame, .. }: &Inside) -> Shape {
    let rank = whole.rank();
    let shape = whole.map(|extents| {
        for (axis, extent) in extents.iter_mut().enumerate().filter(|(_, extent)| **extent != 1) {
            let k = rank - 1 - axis;
            *extent = extent.saturating_sub(frame.before[k].saturating_add(frame.after[k]));
        }
    });
    shape.unwrap_or(whole)
}

/// Returns the part of `rows` that an interior stencil reads along the other axes. `rows` are the rows that it reads.
pub(super) fn inside_rows(rows: Layout, inside: &Inside) -> Layout {
    let Layout { shape, strides, mut offset } = rows;
    let (rank, is_empty, count) = (shape.rank(), shape.contains(&0), shape[0]);
    for axis in (1..rank).filter(|&axis| shape[axis] != 1 && !is_empty) {
        let k = rank - 1 - axis;
        let first = (inside.frame.before[k] as isize).wrapping_add(inside.by[k]);
        offset = offset.wrapping_add_signed(strides[axis].wrapping_mul(first));
    }
    let shape = inside_shape(shape, inside).map(|extents| extents[0] = count).unwrap_or(shape);
    Layout { shape, strides, offset }
}
