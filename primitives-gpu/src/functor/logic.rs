//! Comparisons, truth values and bits.

use super::{functors, reducers};
use crate::element::{Bits, ConvertTo, Integer, Ordered};

functors! {
    /// Whether the two are equal: −0 and +0 are, NaN is not equal to itself.
    Equal: <T: PartialEq> BinaryFn<T, T> -> bool, |a, b| a == b;
    /// Whether the two differ.
    NotEqual: <T: PartialEq> BinaryFn<T, T> -> bool, |a, b| a != b;
    /// Whether the first is less; false with NaN. [`Less`](super::Less) is the total order that sorts use.
    LessThan: <T: Ordered> BinaryFn<T, T> -> bool, |a, b| a.less(b);
    /// Whether the first is less or equal; false with NaN.
    LessOrEqual: <T: Ordered> BinaryFn<T, T> -> bool, |a, b| a.less_or_equal(b);
    /// Whether the first is greater; false with NaN. [`Greater`](super::Greater) is the total order that sorts use.
    GreaterThan: <T: Ordered> BinaryFn<T, T> -> bool, |a, b| b.less(a);
    /// Whether the first is greater or equal; false with NaN.
    GreaterOrEqual: <T: Ordered> BinaryFn<T, T> -> bool, |a, b| b.less_or_equal(a);

    /// Whether both are true; of numbers, not 0. Identity `true`. Seed: `LogicalAndFunctor`.
    LogicalAnd: <T: ConvertTo<bool>> BinaryFn<T, T> -> bool, |a, b| a.convert() & b.convert();
    /// Whether one at least is true; of numbers, not 0. Identity `false`. Seed: `LogicalOrFunctor`.
    LogicalOr: <T: ConvertTo<bool>> BinaryFn<T, T> -> bool, |a, b| a.convert() | b.convert();
    /// Whether one alone is true; of numbers, not 0. Identity `false`.
    LogicalXor: <T: ConvertTo<bool>> BinaryFn<T, T> -> bool, |a, b| a.convert() ^ b.convert();
    /// Whether the argument is false; of numbers, 0.
    LogicalNot: <T: ConvertTo<bool>> UnaryFn<T> -> bool, |x| !x.convert();

    /// The bits that both have. Identity all ones.
    BitAnd: <T: Bits> BinaryFn<T, T> -> T, |a, b| a.and(b);
    /// The bits that either has. Identity 0.
    BitOr: <T: Bits> BinaryFn<T, T> -> T, |a, b| a.or(b);
    /// The bits that one of the two has. Identity 0.
    BitXor: <T: Bits> BinaryFn<T, T> -> T, |a, b| a.xor(b);
    /// The bits that the argument has not.
    BitNot: <T: Bits> UnaryFn<T> -> T, |x| x.not();
    /// The first shifted to the left by the second, taken as unsigned; beyond the width, 0.
    Shl: <T: Integer> BinaryFn<T, T> -> T where T: ConvertTo<u64>, |a, b| a.shl(amount(b));
    /// The first shifted to the right by the second, taken as unsigned; beyond the width, 0, or −1 of a negative number.
    Shr: <T: Integer> BinaryFn<T, T> -> T where T: ConvertTo<u64>, |a, b| a.shr(amount(b));

    /// The second if the first is true, else the third.
    Select: <T> TernaryFn<bool, T, T> -> T, |condition, a, b| if condition { a } else { b };
}

/// The amount of a shift, where what is too much stays so.
fn amount<T: ConvertTo<u64>>(by: T) -> u32 {
    let amount = by.convert().min(64) as u32;
    // LLVM 22 would take the comparison and the shift together for one shift by the low 32 bits of `by`.
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
