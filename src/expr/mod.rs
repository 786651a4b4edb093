//! Vector and tensor expressions that fuse into one kernel.
//!
//! Arithmetic on [`Tensor`]s is written as in NumPy, and an assignment of an expression, however long, is exactly one kernel: every
//! input is read once, nothing in between is written.
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
//! | leaves | [`Tensor`]s and views of them, numbers, [`scalar`], [`constant`], [`element_index`], [`axis_index`], [`uniform`], [`normal`] |
//! | operators | `+ - * / %` and `-`, on numbers; `& \| ^ !`, on `bool` and integers; `<< >>`, on integers |
//! | comparisons | [`eq`], [`ne`], [`lt`], [`le`], [`gt`], [`ge`], which give `bool`; [`select`] |
//! | functions | those of [`Functions`] and [`PairFunctions`], free or as methods: `sin(&x)`, `x.sin()`, `x.cast::<f64>()` |
//! | a table by index | [`gather`] |
//! | functions of one's own | closures over [`Expr`], which are traced, and [device functions](call) of a kernel module |
//!
//! A function that is generic over what it adds and multiplies takes an [`Expr`] as it takes an `f64`: called once, it leaves the
//! expression of all that it does. [`assign_all`] computes several results in one kernel, [`Prepared`] does so often, and
//! [`Reductions`] reduces an expression to a value or along axes.
//!
//! # Rules
//!
//! Types: operands of two types are converted to their common type, see [`DType`]; results are assigned to tensors of their own type,
//! and [`cast`](Functions::cast) converts. Numbers have the type of what they are combined with.
//!
//! Values: those of [`element`](crate::element)'s traits. Each operation rounds to its type, and nothing is contracted unless one
//! [asks](Expr::contract); integers wrap, `/` and `%` of integers truncate, and a division of integers by zero is an
//! [`Error::Fault`](crate::Error::Fault). All but the elementary functions gives the same bits on a GPU and on the CPU.
//!
//! Shapes: those of NumPy. The shapes of what is read broadcast to that of the target. A target may be read in its own places,
//! `x.assign(&x * 2.0)`; any other overlap is an error.
//!
//! # How it runs
//!
//! On a GPU the host writes the kernel's PTX when an expression of this form comes first, and the driver compiles it: no toolkit is
//! needed. Another evaluation of the same form, with other tensors and numbers, finds the kernel; forms differ by the operations, which
//! of the tensors are the same, and how they lie in memory. Elements in a row are accessed by 16 bytes; tensors that lie turned
//! are read by tiles through shared memory; else places are computed with multiplications, of values that travel with the launch.
//! [`Tensor::ptx`] shows the kernel. [`Prepared`] assignments, made often, have a kernel of their own with their numbers in it.
//!
//! On the emulator's device expressions are not emulated: the CPU's cores compute them in chunks that stay in the caches.

mod assignments;
mod call;
mod contract;
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

pub use assignments::{Assignment, Prepared, assign_all};
pub use call::{CallArguments, call};
pub use dtype::{DType, Floating, Integral, Logical, Numeric, Promote, Scalar};
pub use functions::*;
pub use graph::{Expr, Operand, constant, scalar};
pub use reduce::{Reduction, Reductions, Summed, dot};
pub use shape::{AxisSlice, IntoShape, IntoSlices, MAX_RANK, Shape};
pub use tensor::Tensor;
