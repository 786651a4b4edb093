//! Vector and tensor expressions that fuse into one kernel.
//!
//! Write arithmetic on [`Tensor`]s as in NumPy. An assignment of an expression, however long, is exactly one kernel: it reads every
//! input once, and writes nothing in between.
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
//! | a table by index | [`gather`] |
//! | complex numbers | [`ComplexExpr`], a pair of expressions; [`ComplexTensor`] |
//! | neighbours | [`stencil`] and [`convolve`], with a rule for those outside: [`Boundary`]; [`steps`](Expr::steps) of them |
//! | sparse matrices | `&a * &x` of a [`Csr`](crate::algorithms::Csr), a [`Sell`](crate::algorithms::Sell) or a [`Planned`](crate::algorithms::Planned) and a vector, with a factor and a sum around it: [`SparseProduct`] |
//! | functions of one's own | closures over [`Expr`], which are traced, and [device functions](call) of a kernel module |
//!
//! A function that is generic over what it adds and multiplies takes an [`Expr`] as it takes an `f64`. Called once, it returns the
//! expression of all that it does. [`assign_all`] computes several results in one kernel, and [`Prepared`] does so often.
//! [`Reductions`] reduces an expression to a value, or along axes; the result is no part of another expression, see below.
//!
//! # Rules
//!
//! **Types.** Operands of two types are converted to their common type, see [`DType`]. Results are assigned to tensors of their own
//! type; [`cast`](Functions::cast) converts. A number has the type of what it is combined with.
//!
//! **Values.** The traits of [`element`](crate::element) define them. Each operation rounds to its type, and nothing is contracted
//! unless you [ask](Expr::contract) for it. Integers wrap, `/` and `%` of integers truncate, and a division of integers by zero is
//! an [`Error::Fault`](crate::Error::Fault). All but the elementary functions give the same bits on a GPU and on the CPU.
//!
//! **Shapes.** NumPy's rules hold: the shapes of what is read broadcast to the target's, and in a reduction to each other. A target may
//! be read in its own places, `x.assign(&x * 2.0)`. Any other overlap is an error.
//!
//! **Reductions.** An expression inside a reduction is computed in the reduction's kernel. A reduction inside an expression does not
//! compile: compute it before, into a tensor by [`tensor`](ReductionExpr::tensor) or to a number by [`item`](ReductionExpr::item).
//! [`keep_axes`](ReductionExpr::keep_axes) gives the tensor a shape that broadcasts; its example is a softmax in three kernels.
//!
//! # How it runs
//!
//! On a GPU, the host writes the kernel's PTX the first time that an expression of its form is evaluated, and the driver compiles it: no
//! toolkit is needed. Another evaluation of the same form, with other tensors and numbers, finds the kernel. Two forms differ by their
//! operations, by which of their tensors are the same, and by how the tensors lie in memory.
//!
//! The kernel accesses contiguous elements by 16 bytes. It reads transposed tensors by tiles, through shared memory. For other layouts it
//! computes addresses from strides that are parameters of the launch. [`Tensor::ptx`] shows the kernel. A [`Prepared`] assignment has a
//! kernel of its own, with its numbers in it.
//!
//! On the emulator's device, expressions are not emulated: the CPU's cores compute them, in chunks that stay in the caches.
//! [`Counters`](crate::Counters) count them as launches there, too.

mod assignments;
mod call;
mod complex;
mod contract;
mod cpu;
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
#[cfg(test)]
pub(crate) mod tests;

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
