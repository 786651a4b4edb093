//! The kernels of a sparse product by minimum and sum.
//!
//! The file is compiled twice: as a module of the example, and for the GPU by the package's build script.

use kernel_primitives::functor::{Epilogue, Semiring};
use kernel_primitives::prelude::*;

/// The shortest of all ways that end with one more step. The items are floats: +∞, which means no way, stays +∞. Integers would wrap.
pub(crate) type MinPlus = Semiring<Min, Add>;

/// Keeps what is there where it is smaller.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct KeepSmaller;

impl Epilogue<f32> for KeepSmaller {
    type Output = f32;
    fn reads(&self) -> bool {
        true
    }
    fn apply(&self, total: f32, old: f32) -> f32 {
        total.min(old)
    }
}

instantiate!(kernel_primitives::algorithms::spmv<f32, f32, u32, MinPlus, KeepSmaller>);
