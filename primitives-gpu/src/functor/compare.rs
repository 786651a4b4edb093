//! Orders, by which sorts compare.

use super::{BinaryFn, Sort};
use crate::element::{Bits, Element, KernelParam, SortKey};
use crate::warp::SortBits;

/// An order of `T`: `apply(a, b)` says whether `a` comes before `b`.
///
/// Every function of two `T` that returns `bool` implements it, including closures. It must be a strict weak order, as `<` is. Nothing
/// comes before itself. "Comes before" is transitive. "Comes neither before nor after" is transitive, too; a stable sort treats such items
/// as equal. If the function is not such an order, the result of a sort is unspecified, but its accesses stay in bounds.
///
/// Seed: `Comparator(first_value, second_value, monotonic_type)`, which compares by `>`; NaN makes its result undefined. See
/// [`compare_exchange`](crate::thread::compare_exchange).
///
/// ```
/// use kernel_primitives::functor::{Comparator, Greater, Less};
///
/// fn smallest<T: Copy>(items: &[T], order: impl Comparator<T>) -> Option<T> {
///     items.iter().copied().reduce(|a, b| if order.before(b, a) { b } else { a })
/// }
/// assert_eq!(smallest(&[2, -3, 1], Less), Some(-3));
/// assert_eq!(smallest(&[2, -3, 1], Greater), Some(2));
/// assert_eq!(smallest(&[2, -3, 1], |a: i32, b: i32| a.abs() < b.abs()), Some(1));
/// ```
pub trait Comparator<T>: BinaryFn<T, Output = bool> {
    /// Whether `a` comes before `b`.
    #[inline(always)]
    fn before(&self, a: T, b: T) -> bool {
        self.apply(a, b)
    }
}

impl<T, F: BinaryFn<T, Output = bool>> Comparator<T> for F {}

/// Ascending, in the total order of [`SortKey`]: −0 before +0, and NaN last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Less;

/// Descending, in the total order of [`SortKey`]: NaN first, and +0 before −0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Greater;

// SAFETY: zero-sized.
unsafe impl KernelParam for Less {}
// SAFETY: zero-sized.
unsafe impl KernelParam for Greater {}

macro_rules! orders {
    ($($name:ident: |$a:ident, $b:ident| $before:expr;)*) => {$(
        impl<T: SortKey> BinaryFn<T> for $name {
            type Output = bool;
            const IS_ORDER_OF_BITS: bool = true;
            #[inline(always)]
            fn apply(&self, a: T, b: T) -> bool {
                let ($a, $b) = (a.to_sort_bits(), b.to_sort_bits());
                $before
            }
            #[inline(always)]
            #[track_caller]
            fn have_sorted(&self, sort: impl Sort<T>) {
                sort.in_order::<Self>();
            }
        }
    )*};
}
orders! {
    Less: |a, b| a < b;
    Greater: |a, b| a > b;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Less {}
    impl Sealed for super::Greater {}
    impl Sealed for super::Turned {}
}

/// The direction of a sort by bits: [`Less`] or [`Greater`].
pub trait Direction: KernelParam + Default + sealed::Sealed {
    /// Whether the greatest key comes first.
    const DESCENDING: bool;

    /// The last key of the order, which fills partial tiles.
    ///
    /// ```
    /// use kernel_primitives::functor::{Direction, Greater, Less};
    /// assert_eq!(Less::last::<u8>(), 255);
    /// assert_eq!(Greater::last::<i32>(), i32::MIN);
    /// assert!(Less::last::<f32>().is_nan());
    /// assert!(Less::last::<bool>());
    /// ```
    #[inline(always)]
    fn last<K: SortKey>() -> K {
        K::from_sort_bits(if Self::DESCENDING { K::Bits::ZERO } else { K::greatest_bits() })
    }
}

impl Direction for Less {
    const DESCENDING: bool = false;
}

impl Direction for Greater {
    const DESCENDING: bool = true;
}

/// An order of keys by their bits: a [`Direction`], or [`Turned`] bits, which a kernel gets from its launch.
pub trait KeyOrder: Copy + sealed::Sealed {
    /// The bits whose ascending order is the order of the keys.
    fn to_bits<K: SortKey>(self, key: K) -> K::Bits;
    /// The key with these [bits](KeyOrder::to_bits). Bits that no key has count as 0.
    fn of_bits<K: SortKey>(self, bits: K::Bits) -> K;
}

impl<O: Direction> KeyOrder for O {
    #[inline(always)]
    fn to_bits<K: SortKey>(self, key: K) -> K::Bits {
        let bits = key.to_sort_bits();
        if O::DESCENDING { bits.inverted() } else { bits }
    }

    #[inline(always)]
    fn of_bits<K: SortKey>(self, bits: K::Bits) -> K {
        let bits = if O::DESCENDING { bits.inverted() } else { bits };
        K::from_sort_bits(bits.and(K::greatest_bits()))
    }
}

/// The order of keys after an exclusive or of their bits with a number.
///
/// So one kernel sorts in both directions, and sorts integers with and without a sign, because it uses their bits without a change.
///
/// ```
/// use kernel_primitives::functor::{Greater, KeyOrder, Less, Turned};
///
/// let bits_of = |order: Turned, key: i32| order.to_bits(key);
/// assert!(bits_of(Turned::of::<i32, Less>(), -1) < bits_of(Turned::of::<i32, Less>(), 1));
/// assert!(bits_of(Turned::of::<i32, Greater>(), -1) > bits_of(Turned::of::<i32, Greater>(), 1));
/// // An `i32` is turned as its bits are as a `u32`.
/// assert_eq!(bits_of(Turned::of::<i32, Less>(), -1), Turned::of::<i32, Less>().to_bits(u32::MAX));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turned(
    /// The number, which a kernel takes as a parameter.
    pub u64,
);

impl Turned {
    /// The order of these keys in a direction.
    pub fn of<K: SortKey, O: Direction>() -> Self {
        Self(K::TURNED.xor(if O::DESCENDING { K::Bits::ALL } else { K::Bits::ZERO }).to_word())
    }
}

impl KeyOrder for Turned {
    #[inline(always)]
    fn to_bits<K: SortKey>(self, key: K) -> K::Bits {
        key.to_plain_bits().xor(SortBits::of_word(self.0))
    }

    #[inline(always)]
    fn of_bits<K: SortKey>(self, bits: K::Bits) -> K {
        K::from_plain_bits(bits.xor(SortBits::of_word(self.0)).and(K::greatest_bits()))
    }
}

/// An order of pairs of a value and its index. It compares values, and, if neither value comes before the other, indices.
///
/// No two items with different indices are equal in this order, so a network becomes stable. Seed: `ComparatorWithIndex`, which moves the
/// index, but does not compare it.
///
/// ```
/// use kernel_primitives::functor::{ByIndex, Comparator, Greater};
///
/// let order = ByIndex(Greater);
/// assert!(order.before((2.0f32, 7), (1.0, 3)));
/// assert!(order.before((2.0f32, 3), (2.0, 7)) && !order.before((2.0f32, 7), (2.0, 3)));
/// ```
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct ByIndex<C>(pub C);

// SAFETY: transparent over a parameter.
unsafe impl<C: KernelParam> KernelParam for ByIndex<C> {}

impl<T: Copy, I: Copy + PartialOrd, C: Comparator<T>> BinaryFn<(T, I)> for ByIndex<C> {
    type Output = bool;
    #[inline(always)]
    fn apply(&self, (a, i): (T, I), (b, j): (T, I)) -> bool {
        // There is one call: of two equal values, the one with the smaller index comes first, so only the other value must be tested.
        if i < j { !self.0.before(b, a) } else { self.0.before(a, b) }
    }
}
