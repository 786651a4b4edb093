//! The steps of sorting networks.

use core::mem::swap;

use crate::functor::Comparator;

/// As [`compare_exchange`](super::compare_exchange) of two keys, and their values go with them. Seed: `ComparatorWithIndex`.
///
/// ```
/// use kernel_primitives::functor::Less;
/// use kernel_primitives::thread::compare_exchange_pairs;
/// let (mut keys, mut values) = ([3, 1], ['a', 'b']);
/// let ([k, l], [v, w]) = (&mut keys, &mut values);
/// compare_exchange_pairs(k, l, v, w, &Less);
/// assert_eq!((keys, values), ([1, 3], ['b', 'a']));
/// ```
#[inline(always)]
pub fn compare_exchange_pairs<K: Copy, V: Copy>(
    first: &mut K,
    second: &mut K,
    first_value: &mut V,
    second_value: &mut V,
    order: &impl Comparator<K>,
) {
    if order.before(*second, *first) {
        swap(first, second);
        swap(first_value, second_value);
    }
}

/// The largest power of two that is not above `n`; 1 for 0. Seed: `GetLastPow2(n)`.
///
/// ```
/// use kernel_primitives::thread::last_pow2;
/// assert_eq!([0, 1, 2, 3, 100, u32::MAX].map(last_pow2), [1, 1, 2, 2, 64, 1 << 31]);
/// ```
#[inline(always)]
pub const fn last_pow2(n: u32) -> u32 {
    1 << (31 - (n | 1).leading_zeros())
}
