//! Neighbours of elements: their positions, functions of neighbours, and weighted sums of many neighbours.

pub(super) mod neighbour;
pub(super) mod stencil;
#[cfg(test)]
mod tests;
pub(super) mod weighted;
