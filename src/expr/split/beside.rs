//! What stencils read of a split tensor around the place that is computed.

use std::sync::Arc;

use crate::expr::graph::Inside;
use crate::expr::layout::shape::{Layout, Shape};
use crate::expr::neighbours::neighbour::{Rule, Shift};
use crate::expr::neighbours::weighted::Taps;

/// What a stencil reads of a split tensor for one place.
pub(crate) enum Beside {
    /// An element at a distance.
    Neighbour(Arc<Shift>),
    /// A weighted sum of elements along the innermost axis.
    Weighted(Arc<Taps>),
    /// An element at a distance, of an interior stencil, which has places for a part of the rows only.
    Inside(Box<Inside>),
}

impl Beside {
    /// The shape of its values, of a tensor of a shape.
    pub(super) fn shape(&self, whole: Shape) -> Shape {
        match self {
            Self::Inside(inside) => inside_shape(whole, inside),
            _ => whole,
        }
    }

    /// What is read for neighbours outside; `None` if there are none.
    pub(super) fn rule(&self) -> Option<Rule> {
        match self {
            Self::Neighbour(shift) => Some(shift.rule),
            Self::Weighted(taps) => Some(taps.rule),
            Self::Inside(_) => None,
        }
    }

    /// How many rows it reads before the first one that is computed, and after the last, of a tensor of a shape.
    pub(super) fn reach(&self, whole: Shape) -> [usize; 2] {
        let rank = whole.rank();
        let sides = |low: isize, high: isize| [low.min(0).unsigned_abs(), high.max(0).unsigned_abs()];
        match self {
            Self::Neighbour(shift) => sides(shift.by[rank - 1], shift.by[rank - 1]),
            Self::Weighted(taps) if rank == 1 => sides(taps.first, taps.first + taps.weights.len() as isize - 1),
            Self::Weighted(_) => [0; 2],
            // One row is each place's, wherever it is.
            Self::Inside(_) if whole[0] == 1 => [0; 2],
            Self::Inside(inside) => [0, inside.frame.before[rank - 1] + inside.frame.after[rank - 1]],
        }
    }

    /// In the text of an expression, of a tensor of that name.
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

/// Of some rows of a tensor, which are those that an interior stencil reads for its places, what it reads along the other axes.
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
