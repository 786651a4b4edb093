//! The operations and the number types of reductions over a group.

use std::fmt;

use primitives_gpu::{Number, bf16, f16};

/// The operation of a reduction over the members of a [`Group`](crate::Group): NCCL's `ncclRedOp_t`.
///
/// Integers wrap. In the emulator, values are combined in the order of the ranks, and minimum and maximum propagate NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReduceOp {
    /// The sum.
    Sum,
    /// The product.
    Product,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
}

/// `sum`, `product`, `min` or `max`.
impl fmt::Display for ReduceOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sum => "sum",
            Self::Product => "product",
            Self::Min => "min",
            Self::Max => "max",
        })
    }
}

impl ReduceOp {
    /// Combines two values.
    fn apply<T: Number>(self, a: T, b: T) -> T {
        match self {
            Self::Sum => a.add(b),
            Self::Product => a.mul(b),
            Self::Min => a.minimum(b),
            Self::Max => a.maximum(b),
        }
    }

    /// NCCL's value for the operation.
    #[cfg(feature = "cuda")]
    pub(super) fn of_nccl(self) -> primitives_nccl::sys::ncclRedOp_t {
        use primitives_nccl::sys::ncclRedOp_t;
        match self {
            Self::Sum => ncclRedOp_t::ncclSum,
            Self::Product => ncclRedOp_t::ncclProd,
            Self::Min => ncclRedOp_t::ncclMin,
            Self::Max => ncclRedOp_t::ncclMax,
        }
    }

    /// Combines consecutive parts of equal length, element by element, into the first part.
    pub(super) fn combine<T: Number>(self, parts: &mut [T], len: usize) {
        let Some((first, others)) = parts.split_at_mut_checked(len).filter(|_| len > 0) else { return };
        for part in others.chunks_exact(len) {
            first.iter_mut().zip(part).for_each(|(a, b)| *a = self.apply(*a, *b));
        }
    }
}

mod sealed {
    #[allow(unreachable_pub, reason = "sealed")]
    pub trait Sealed {
        #[cfg(feature = "cuda")]
        const DATA_TYPE: primitives_nccl::sys::ncclDataType_t;
    }
}

/// A number type that the members of a [`Group`](crate::Group) can reduce. These are the types of NCCL: `i8`, `u8`, `i32`, `u32`, `i64`,
/// `u64`, `f16`, `bf16`, `f32` and `f64`.
#[diagnostic::on_unimplemented(
    message = "a group does not reduce `{Self}`",
    label = "no number of NCCL's",
    note = "the types are i8, u8, i32, u32, i64, u64, f16, bf16, f32 and f64"
)]
pub trait GroupNumber: Number + sealed::Sealed {}

macro_rules! numbers {
    ($($t:ty: $name:ident;)*) => {$(
        impl sealed::Sealed for $t {
            #[cfg(feature = "cuda")]
            const DATA_TYPE: primitives_nccl::sys::ncclDataType_t = primitives_nccl::sys::ncclDataType_t::$name;
        }
        impl GroupNumber for $t {}
    )*};
}
numbers! {
    i8: ncclInt8;
    u8: ncclUint8;
    i32: ncclInt32;
    u32: ncclUint32;
    i64: ncclInt64;
    u64: ncclUint64;
    f16: ncclFloat16;
    bf16: ncclBfloat16;
    f32: ncclFloat32;
    f64: ncclFloat64;
}

/// NCCL's value for the type.
#[cfg(feature = "cuda")]
pub(super) fn data_type<T: GroupNumber>() -> primitives_nccl::sys::ncclDataType_t {
    <T as sealed::Sealed>::DATA_TYPE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_combined_element_by_element() {
        let combined = |op: ReduceOp| {
            let mut parts = [1i8, 100, -3, 100, 2, 5];
            op.combine(&mut parts, 2);
            [parts[0], parts[1]]
        };
        assert_eq!(combined(ReduceOp::Sum), [0, -51]);
        assert_eq!(combined(ReduceOp::Product), [-6, 80]);
        assert_eq!(combined(ReduceOp::Min), [-3, 5]);
        assert_eq!(combined(ReduceOp::Max), [2, 100]);
        let mut nan = [1.0f32, f32::NAN, 2.0];
        ReduceOp::Max.combine(&mut nan, 1);
        assert!(nan[0].is_nan());
        ReduceOp::Sum.combine::<f32>(&mut [], 0);
    }
}
