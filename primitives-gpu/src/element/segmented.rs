//! Totals of runs.

use super::{Element, KernelParam};

/// What a part of a sequence of runs amounts to: the value that a reduction or a scan by key chains, combined by
/// [`BySegment`](crate::functor::BySegment).
// Packed, so that there is no padding whatever `T` is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, packed)]
pub struct Segmented<T: Copy> {
    /// How many runs begin in the part.
    pub heads: u64,
    /// The items since the last of them, combined; all, if none begins.
    pub total: T,
}

// SAFETY: `repr(C)`, of parameters.
unsafe impl<T: KernelParam> KernelParam for Segmented<T> {}
// SAFETY: packed, so that there is no padding; zeros are a value of both fields.
unsafe impl<T: Element> Element for Segmented<T> {
    const ZERO: Self = Self { heads: 0, total: T::ZERO };
    const ANY_BITS: bool = T::ANY_BITS;

    fn valid_bits(bytes: &[u8]) -> bool {
        T::ANY_BITS || T::valid_bits(&bytes[size_of::<u64>()..])
    }
}
