//! Vector and tensor expressions that fuse into one kernel.

mod assignments;
mod call;
mod cpu;
pub(crate) mod dtype;
pub(crate) mod evaluate;
mod fold;
mod functions;
mod gpu;
pub(crate) mod graph;
pub(crate) mod nest;
mod operators;
pub(crate) mod program;
mod ptx;
mod reduce;
pub(crate) mod shape;
mod tensor;

pub use assignments::{Assignments, Prepared};
pub use call::{CallArguments, call};
pub use dtype::{DType, Floating, Integral, Logical, Numeric, Promote, Scalar};
pub use functions::*;
pub use graph::{Expr, Operand, constant, scalar};
pub use reduce::{Reduction, Reductions, Summed, dot};
pub use shape::{AxisSlice, IntoShape, IntoSlices, MAX_RANK, Shape};
pub use tensor::Tensor;
