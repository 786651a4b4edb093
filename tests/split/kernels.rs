//! Instantiations for operators of the tests.

#[allow(dead_code, reason = "each test binary uses a part")]
#[path = "../suite/kernels/types.rs"]
pub mod types;

use kernel_primitives::prelude::*;

pub use types::*;

instantiate!(
    kernel_primitives::algorithms::inclusive_scan<Map<u32>, Compose>,
    kernel_primitives::algorithms::exclusive_scan<Map<u32>, Compose>,
);
