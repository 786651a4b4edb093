//! How tensors lie: shapes and strides, the loops over operands, and what views have in common.

pub(crate) mod nest;
pub(crate) mod overlap;
pub(crate) mod shape;
