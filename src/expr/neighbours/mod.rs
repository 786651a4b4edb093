//! Neighbours of elements: where they are, functions of them, and weighted sums of many.

pub(super) mod neighbour;
pub(super) mod stencil;
pub(super) mod weighted;
