//! Weighted sums of many neighbours along one axis: a loop over a table of weights, where fewer are terms of a sum each.

use std::sync::Arc;

use primitives_gpu::element::ConvertTo;

use super::neighbour::{Rule, Shift};
use crate::expr::dtype::{DType, ToWord, with_type};
use crate::expr::layout::nest::Apart;
use crate::expr::layout::shape::MAX_RANK;

/// The weights of neighbours along a view's innermost axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Taps {
    /// How far away the first neighbour is; the others follow it. All are less than the extent away.
    pub(crate) first: isize,
    /// By their bits, in the type of the sum. They are more than one.
    pub(crate) weights: Arc<[u64]>,
    pub(crate) rule: Rule,
    /// Whether a product and its sum are a multiply-add.
    pub(crate) contracted: bool,
}

impl Taps {
    /// From a place to the neighbour of a weight, along the axes of the view.
    pub(crate) fn shift(&self, number: usize) -> Shift {
        let mut by = [0; MAX_RANK];
        by[0] = self.first + number as isize;
        Shift { by, rule: self.rule }
    }

    /// The same along the axes of a nest.
    pub(crate) fn shift_along(&self, number: usize, apart: &[Option<Apart>; MAX_RANK]) -> Shift {
        self.shift(number).along(apart)
    }
}

/// A value in another type, by their bits.
pub(crate) fn converted(word: u64, from: DType, to: DType) -> u64 {
    with_type!(from, T => with_type!(to, U => ConvertTo::<U>::convert(<T as ToWord>::from_word(word)).to_word()))
}
