//! Operators with descriptors, for code that knows its types only at run time.
//!
//! A [`TensorDesc`] describes an operand: its element type, its shape and its strides. A [`Plan`] is made from an [`Operator`] and the
//! descriptors of its output and inputs. It checks them once, and owns everything that follows from them. A plan can run any number of
//! times, each time with other memory. It copies nothing to the device, and needs no workspace.
//!
//! ```
//! use kernel_primitives::Device;
//! use kernel_primitives::expr::DType;
//! use kernel_primitives::ops::{Memory, Operator, Plan, TensorDesc};
//!
//! # fn main() -> kernel_primitives::Result<()> {
//! let stream = Device::auto()?.stream()?;
//! let row = TensorDesc::contiguous(DType::F32, 3)?;
//! let matrix = TensorDesc::new(DType::F32, [2, 3], &[4, 1])?; // with a gap after each row
//! let out = TensorDesc::contiguous(DType::F64, [2, 3])?;
//! let plan = Plan::new(&Operator::named("mul")?, &out, &[matrix, row])?;
//!
//! let x = Memory::from_slice(&stream, &[1.0f32, 2.0, 3.0, 0.0, 4.0, 5.0, 6.0, 0.0])?;
//! let y = Memory::from_slice(&stream, &[10.0f32, 20.0, 30.0, 40.0])?;
//! let z = Memory::zeros(&stream, DType::F64, 6)?;
//! plan.run(&stream, &z, &[x.at(0), y.at(1)])?; // of `y`, from its second element on
//! assert_eq!(z.to_vec::<f64>()?, [20.0, 60.0, 120.0, 80.0, 150.0, 240.0]);
//! # Ok(())
//! # }
//! ```
//!
//! Seed: `Descriptor::create` and `calculate`. The seed's status codes are the kinds of [`ExpressionError`](crate::ExpressionError).

mod memory;
mod operator;
mod plan;
mod value;

pub use memory::{Memory, OperandStart};
pub use operator::Operator;
pub use plan::{Plan, TensorDesc};
pub use value::Value;
