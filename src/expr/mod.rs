//! Vector and tensor expressions that fuse into one kernel.

mod cpu;
pub(crate) mod dtype;
pub(crate) mod evaluate;
mod functions;
mod gpu;
pub(crate) mod graph;
pub(crate) mod nest;
mod operators;
pub(crate) mod program;
mod ptx;
pub(crate) mod shape;
mod tensor;

pub use dtype::{DType, Floating, Integral, Logical, Numeric, Promote, Scalar};
pub use functions::*;
pub use graph::{Expr, Operand, constant, scalar};
pub use shape::{AxisSlice, IntoShape, IntoSlices, MAX_RANK, Shape};
pub use tensor::Tensor;
