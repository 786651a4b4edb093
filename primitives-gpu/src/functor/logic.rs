//! Comparisons, logical and bitwise functions.

use super::{functors, reducers};
use crate::element::{Bits, ConvertTo, Integer, Ordered};

functors! {
    /// Whether the arguments are equal. −0 equals +0, and NaN does not equal itself.
    Equal: <T: PartialEq> BinaryFn<T, T> -> bool, |a, b| a == b;
    /// Whether the arguments differ.
    NotEqual: <T: PartialEq> BinaryFn<T, T> -> bool, |a, b| a != b;
    /// Whether the first argument is less than the second. It is false with NaN. Sorts use the total order [`Less`](super::Less).
    LessThan: <T: Ordered> BinaryFn<T, T> -> bool, |a, b| a.less(b);
    /// Whether the first argument is less than or equal to the second. It is false with NaN.
    LessOrEqual: <T: Ordered> BinaryFn<T, T> -> bool, |a, b| a.less_or_equal(b);
    /// Whether the first argument is greater than the second. It is false with NaN. Sorts use the total order [`Greater`](super::Greater).
    GreaterThan: <T: Ordered> BinaryFn<T, T> -> bool, |a, b| b.less(a);
    /// Whether the first argument is greater than or equal to the second. It is false with NaN.
    GreaterOrEqual: <T: Ordered> BinaryFn<T, T> -> bool, |a, b| b.less_or_equal(a);

    /// Whether both arguments are true. A number is true if it is not 0. The identity is `true`. Seed: `LogicalAndFunctor`.
    LogicalAnd: <T: ConvertTo<bool>> BinaryFn<T, T> -> bool, |a, b| a.convert() & b.convert();
    /// Whether at least one argument is true. A number is true if it is not 0. The identity is `false`. Seed: `LogicalOrFunctor`.
    LogicalOr: <T: ConvertTo<bool>> BinaryFn<T, T> -> bool, |a, b| a.convert() | b.convert();
    /// Whether exactly one argument is true. A number is true if it is not 0. The identity is `false`.
    LogicalXor: <T: ConvertTo<bool>> BinaryFn<T, T> -> bool, |a, b| a.convert() ^ b.convert();
    /// Whether the argument is false. A number is false if it is 0.
    LogicalNot: <T: ConvertTo<bool>> UnaryFn<T> -> bool, |x| !x.convert();

    /// The bits that are set in both arguments. The identity has all bits set.
    BitAnd: <T: Bits> BinaryFn<T, T> -> T, |a, b| a.and(b);
    /// The bits that are set in at least one argument. The identity is 0.
    BitOr: <T: Bits> BinaryFn<T, T> -> T, |a, b| a.or(b);
    /// The bits that are set in exactly one argument. The identity is 0.
    BitXor: <T: Bits> BinaryFn<T, T> -> T, |a, b| a.xor(b);
    /// The bits that are not set in the argument.
    BitNot: <T: Bits> UnaryFn<T> -> T, |x| x.not();
    /// The first argument shifted left by the second, which counts as unsigned. If the second is the width or more, the result is 0.
    Shl: <T: Integer> BinaryFn<T, T> -> T where T: ConvertTo<u64>, |a, b| a.shl(amount(b));
    /// The first argument shifted right by the second, which counts as unsigned. If the second is the width or more, the result is 0, or −1
    /// for a negative number.
    Shr: <T: Integer> BinaryFn<T, T> -> T where T: ConvertTo<u64>, |a, b| a.shr(amount(b));

    /// The second argument if the first is true, otherwise the third.
    Select: <T> TernaryFn<bool, T, T> -> T, |condition, a, b| if condition { a } else { b };
}

/// The amount of a shift. An amount that is too large stays too large.
fn amount<T: ConvertTo<u64>>(by: T) -> u32 {
    let amount = by.convert().min(64) as u32;
    // LLVM 22 would combine the comparison and the shift to one shift by the low 32 bits of `by`.
    #[cfg(target_arch = "nvptx64")]
    let amount = crate::simt::nvptx::opaque(amount);
    amount
}

reducers! {
    LogicalAnd: , bool, true;
    LogicalOr: , bool, false;
    LogicalXor: , bool, false;
    BitAnd: Bits, T, T::ALL, And;
    BitOr: Bits, T, T::ZERO, Or;
    BitXor: Bits, T, T::ZERO, Xor;
}
