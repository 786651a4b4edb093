//! Layouts of tensors: shapes and strides, the loops over operands, and overlaps of views.

pub(crate) mod nest;
pub(crate) mod overlap;
pub(crate) mod shape;
pub(crate) mod views;
