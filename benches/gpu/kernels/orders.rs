//! Sorts by an order of which the library does not know that it is the one of the keys' bits.

use kernel_primitives::functor::BinaryFn;
use kernel_primitives::prelude::*;

/// The order of the numbers.
#[derive(Clone, Copy, Debug, KernelParam)]
#[repr(C)]
pub struct OwnOrder;

impl<T: PartialOrd> BinaryFn<T> for OwnOrder {
    type Output = bool;
    #[inline(always)]
    fn apply(&self, a: T, b: T) -> bool {
        a < b
    }
}

instantiate!(
    kernel_primitives::algorithms::sort_by<u32, OwnOrder>,
    kernel_primitives::algorithms::sort_by<i64, OwnOrder>,
    kernel_primitives::algorithms::sort_pairs_by<u32, u32, OwnOrder>,
    kernel_primitives::algorithms::merge<u32, u32, OwnOrder>
);
