//! Tests operators with descriptors.

mod closures;
mod memory;
mod named;
mod plans;

use kernel_primitives::Result;
use kernel_primitives::ops::{Memory, OperandStart, Operator, Plan, TensorDesc};

use crate::{Sample, stream};

/// Runs an operator on all of `inputs`, one memory for each, with an output of type `O`.
fn apply<O: Sample>(operator: &Operator, len: usize, inputs: &[Memory]) -> Result<Vec<O>> {
    let stream = stream()?;
    let desc = |dtype| TensorDesc::contiguous(dtype, len);
    let descs = inputs.iter().map(|input| desc(input.dtype())).collect::<Result<Vec<_>>>()?;
    let plan = Plan::new(operator, &desc(O::DTYPE)?, &descs)?;
    let output = Memory::uninit(&stream, O::DTYPE, len)?;
    plan.run(&stream, &output, &inputs.iter().map(OperandStart::from).collect::<Vec<_>>())?;
    output.to_vec()
}
