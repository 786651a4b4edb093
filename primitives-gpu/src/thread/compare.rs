//! The steps of sorting networks.

use crate::functor::Comparator;

/// Puts two items in order: swaps them if the second comes before the first. Equal items stay in their places.
///
/// Seed: `Comparator` with `Swap`.
///
/// ```
/// use kernel_primitives::functor::Less;
/// use kernel_primitives::thread::compare_exchange;
///
/// let (mut a, mut b) = (2, 1);
/// compare_exchange(&mut a, &mut b, &Less);
/// assert_eq!((a, b), (1, 2));
/// ```
#[inline(always)]
pub fn compare_exchange<T: Copy>(first: &mut T, second: &mut T, order: &impl Comparator<T>) {
    compare_exchange_pairs(first, second, &mut (), &mut (), order);
}

/// Works as [`compare_exchange`] for two keys, and moves their values with them. Seed: `ComparatorWithIndex`.
///
/// ```
/// use kernel_primitives::functor::Less;
/// use kernel_primitives::thread::compare_exchange_pairs;
/// let (mut keys, mut values) = ([3, 1], ['a', 'b']);
/// let ([k, l], [v, w]) = (&mut keys, &mut values);
/// compare_exchange_pairs(k, l, v, w, &Less);
/// assert_eq!((keys, values), ([1, 3], ['b', 'a']));
/// ```
pub fn compare_exchange_pairs<K: Copy, V: Copy>(
    first: &mut K,
    second: &mut K,
    first_value: &mut V,
    second_value: &mut V,
    order: &impl Comparator<K>,
) {
    // Selections rather than a branch around swaps.
    let ((a, b), (v, w)) = ((*first, *second), (*first_value, *second_value));
    let swap = order.before(b, a);
    (*first, *second) = if swap { (b, a) } else { (a, b) };
    (*first_value, *second_value) = if swap { (w, v) } else { (v, w) };
}

/// Returns the largest power of two that is not greater than `n`, or 1 for 0. Seed: `GetLastPow2(n)`.
///
/// ```
/// use kernel_primitives::thread::last_pow2;
/// assert_eq!([0, 1, 2, 3, 100, u32::MAX].map(last_pow2), [1, 1, 2, 2, 64, 1 << 31]);
/// ```
#[inline(always)]
pub const fn last_pow2(n: u32) -> u32 {
    1 << (31 - (n | 1).leading_zeros())
}
