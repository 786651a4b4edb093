//! Vector and tensor expressions that fuse into one kernel.
//!
//! Write arithmetic on [`Tensor`]s as in NumPy. An assignment of an expression is exactly one kernel. It reads every input once, and writes
//! no intermediate results. [Steps](Expr::steps), [products with sparse matrices](SparseProduct) and [gathers](gather) from split tensors
//! may take more kernels. On a GPU, the tensors, numbers and strides of an expression take at most 4096 bytes of parameters, such as 500
//! numbers of eight bytes; more are an [`Error::LaunchLimit`](crate::Error::LaunchLimit).
//!
//! ```
//! use kernel_primitives::Device;
//! use kernel_primitives::expr::{Reductions, Tensor, sin};
//!
//! # fn main() -> kernel_primitives::Result<()> {
//! let stream = Device::auto()?.stream()?;
//! let vector = |values: [f32; 4]| Tensor::from_slice(&stream, 4, &values);
//! let (b, c, d) = (vector([1.0, 2.0, 3.0, 4.0])?, vector([5.0; 4])?, vector([2.0; 4])?);
//! let (e, f) = (vector([0.0; 4])?, vector([7.0; 4])?);
//!
//! let a = Tensor::uninit(&stream, 4)?;
//! a.assign(&b + &c * &d + sin(&e) * &f + 10.0)?;
//! assert_eq!(a.to_vec()?, [21.0, 22.0, 23.0, 24.0]);
//!
//! assert_eq!((&a * &b).sum().item()?, 230.0); // one kernel too, without a temporary
//! # Ok(())
//! # }
//! ```
//!
//! # What an expression can have
//!
//! | | |
//! |---|---|
//! | leaves | [`Tensor`]s and views of them, [`SplitTensor`]s, numbers, [`scalar`], [`constant`], [`element_index`], [`axis_index`], [`uniform`], [`normal`] |
//! | operators | `+ - * / %` and `-`, on numbers; `& \| ^ !`, on `bool` and integers; `<< >>`, on integers |
//! | comparisons | [`eq`], [`ne`], [`lt`], [`le`], [`gt`], [`ge`], which give `bool`; [`select`] |
//! | functions | those of [`Functions`] and [`PairFunctions`], free or as methods: `sin(&x)`, `x.sin()`, `x.cast::<f64>()` |
//! | elements of a vector by index | [`gather`] |
//! | complex numbers | [`ComplexExpr`], a pair of expressions; [`ComplexTensor`] |
//! | neighbours | [`stencil`] and [`convolve`], with a rule for neighbours outside the tensor: [`Boundary`]; [`steps`](Expr::steps) of a stencil |
//! | sparse matrices | `&a * &x` of a [`Csr`](crate::algorithms::Csr), a [`Sell`](crate::algorithms::Sell) or a [`Planned`](crate::algorithms::Planned) and a vector, with a factor and a sum around it: [`SparseProduct`] |
//! | your own functions | closures over [`Expr`], which are traced, and [device functions](call) of a kernel module |
//!
//! A function that is generic over its number type takes an [`Expr`] as well as an `f64`. One call with an [`Expr`] returns the expression
//! of all its operations. [`assign_all`] computes several results in one kernel, and [`Prepared`] repeats such an assignment at a low cost.
//! [`Reductions`] reduces an expression to a value, or along axes; another expression cannot contain the reduction, see below.
//!
//! # Rules
//!
//! **Types.** Operands of two types are converted to their common type; see [`DType`]. Results are assigned to tensors of the same type;
//! [`cast`](Functions::cast) converts. A number takes the type of the operand that it is combined with.
//!
//! **Values.** The traits of [`element`](crate::element) define the value of each operation. Each operation rounds to its type. No
//! operation is contracted unless you call [`contract`](Expr::contract). Integers wrap, `/` and `%` of integers truncate, and a division of
//! integers by zero is an [`Error::Fault`](crate::Error::Fault). All operations except the elementary functions give the same bits on a GPU
//! and on the CPU.
//!
//! **Shapes.** NumPy's rules hold: the shapes of the operands broadcast to the target's shape, and in a reduction to each other. An
//! expression may read its target at the element that it computes, as in `x.assign(&x * 2.0)`. Any other overlap is an error.
//!
//! **Reductions.** The kernel of a reduction also computes the expression inside it. A reduction inside an expression does not compile:
//! compute the reduction first, into a tensor by [`tensor`](ReductionExpr::tensor) or to a number by [`item`](ReductionExpr::item).
//! [`keep_axes`](ReductionExpr::keep_axes) gives the tensor a shape that broadcasts; its example is a softmax in three kernels.
//!
//! # How it runs
//!
//! On a GPU, the host writes the kernel's PTX at the first evaluation of an expression of its form, and the driver compiles it. This needs
//! no toolkit. A later evaluation of the same form, with other tensors and numbers, reuses the kernel. The form of an expression is its
//! operations, the equality of its tensors, and the layouts of the tensors in memory.
//!
//! The kernel accesses contiguous elements in vectors of 16 bytes. It reads transposed tensors by tiles, through shared memory. For other
//! layouts it computes addresses from strides, which are parameters of the launch. [`Tensor::ptx`] shows the kernel. A [`Prepared`]
//! assignment has its own kernel, which contains its numbers as constants.
//!
//! On the emulator's device, expressions are not emulated: the CPU's cores compute them, in chunks that stay in the caches.
//! [`Counters`](crate::Counters) count each evaluation as a launch there, too.

mod assignments;
mod call;
mod complex;
mod contract;
mod cpu;
pub(crate) mod describe;
pub(crate) mod dtype;
pub(crate) mod evaluate;
mod functions;
mod gpu;
pub(crate) mod graph;
pub(crate) mod layout;
mod neighbours;
mod operators;
pub(crate) mod program;
pub(crate) mod ptx;
mod reduce;
mod sparse;
mod split;
mod steps;
mod tensor;

pub use assignments::{Assignment, Prepared, assign_all};
pub use call::{CallArguments, call};
pub use complex::{ComplexExpr, ComplexOperand, ComplexTensor};
pub use dtype::{DType, Floating, Integral, Logical, Numeric, Promote, Scalar};
pub use functions::*;
pub use graph::{Expr, Operand, constant, scalar};
pub use layout::shape::{AxisSlice, IntoShape, IntoSlices, MAX_RANK, Shape};
pub use neighbours::stencil::{Boundary, IntoOffsets, Neighbours, convolve, stencil};
pub use reduce::{ReductionExpr, Reductions, Summed, dot};
pub use sparse::{SparseProduct, SparseSum};
pub use split::SplitTensor;
pub(crate) use split::{Wanted, vector_of};
pub use tensor::Tensor;
