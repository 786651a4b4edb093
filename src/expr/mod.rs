//! Vector and tensor expressions that fuse into one kernel.

mod cpu;
mod dtype;
mod evaluate;
mod functions;
mod gpu;
mod graph;
mod nest;
mod operators;
mod program;
mod ptx;
mod shape;
mod tensor;

pub use dtype::{DType, Floating, Integral, Logical, Numeric, Promote, Scalar};
pub use functions::*;
pub use graph::{Expr, Operand, constant, scalar};
pub use shape::{AxisSlice, IntoShape, IntoSlices, MAX_RANK, Shape};
pub use tensor::Tensor;
