//! Partial results of runs.

use super::{Element, KernelParam};

/// The partial result of a part of a sequence of runs. A reduction or a scan by key chains such values, and
/// [`BySegment`](crate::functor::BySegment) combines them.
// The struct is packed, so that there is no padding for any `T`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, packed)]
pub struct Segmented<T: Copy> {
    /// The number of runs that begin in the part.
    pub heads: u64,
    /// The combination of the items since the beginning of the last of these runs, or of all items if none begins.
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
