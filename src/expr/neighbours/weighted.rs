//! Weighted sums of many neighbours along one axis: a loop over a table of weights. If there are fewer neighbours, each is a term of a sum.

use std::sync::Arc;

use primitives_gpu::element::ConvertTo;

use super::neighbour::{Rule, Shift};
use crate::expr::dtype::{DType, ToWord, with_type};
use crate::expr::layout::nest::Apart;
use crate::expr::layout::shape::MAX_RANK;

/// The weights of neighbours along a view's innermost axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Taps {
    /// The distance of the first neighbour; the rest follow it. All distances are less than the extent.
    pub(crate) first: isize,
    /// The bits of the weights, in the type of the sum. There are at least two.
    pub(crate) weights: Arc<[u64]>,
    pub(crate) rule: Rule,
    /// Whether a product and its sum become a multiply-add.
    pub(crate) contracted: bool,
}

impl Taps {
    /// Returns the shift from an element to the neighbour of a weight, along the axes of the view.
    pub(crate) fn shift(&self, number: usize) -> Shift {
        let mut by = [0; MAX_RANK];
        by[0] = self.first + number as isize;
        Shift { by, rule: self.rule }
    }

    /// Returns the same shift along the axes of a nest.
    pub(crate) fn shift_along(&self, number: usize, apart: &[Option<Apart>; MAX_RANK]) -> Shift {
        self.shift(number).along(apart)
    }
}

/// Converts a value to another type. Value and result are given by their bits.
pub(crate) fn converted(word: u64, from: DType, to: DType) -> u64 {
    with_type!(from, T => with_type!(to, U => ConvertTo::<U>::convert(<T as ToWord>::from_word(word)).to_word()))
}
