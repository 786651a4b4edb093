//! The share of a thread of a tile in shared memory. Also the functions that put items into the tile and write them from it.

use kernel_primitives::functor::{Comparator, Direction, Sort};
use kernel_primitives::prelude::*;

use super::vector;

/// The next item of a run.
#[derive(Clone, Copy)]
struct Head<K> {
    at: u32,
    key: K,
}

/// The runs that a block merges, in shared memory.
pub(crate) struct Share<'k, K, V> {
    pub(crate) keys: SharedArray<'k, K>,
    pub(crate) values: SharedArray<'k, V>,
    pub(crate) key_places: [u32; 2],
    pub(crate) value_places: [u32; 2],
    pub(crate) lens: [u32; 2],
}

impl<K: Element, V: Element> Share<'_, K, V> {
    /// Merges the items from `diagonal`. Items after the end are unspecified.
    ///
    /// # Safety
    /// There is an item at least, and all of them may be read.
    pub(crate) unsafe fn merge<C: Comparator<K>, const ITEMS: usize>(
        &self,
        diagonal: u32,
        order: &C,
        keys: &mut [K; ITEMS],
        values: &mut [V; ITEMS],
    ) {
        order.have_sorted(ThreadMerge { share: self, diagonal, keys, values });
    }

    /// Works as [`merge`](Self::merge).
    ///
    /// # Safety
    /// As there.
    unsafe fn merge_by<C: Comparator<K>, const ITEMS: usize>(
        &self,
        diagonal: u32,
        order: &C,
        keys: &mut [K; ITEMS],
        values: &mut [V; ITEMS],
    ) {
        let [a, b] = self.lens;
        let diagonal = diagonal.min(a + b);
        // Places are in bytes, because a step of bytes needs no multiplication.
        let bytes = const { SharedArray::<K>::STEP };
        // SAFETY: of items only.
        let key = |at: u32| unsafe { self.keys.load_at(at as usize) };
        let (mut at, mut high) = (diagonal.saturating_sub(b), diagonal.min(a));
        let first = self.key_places[0] * bytes;
        let opposite = (self.key_places[1] + diagonal).wrapping_sub(1).wrapping_mul(bytes);
        while at < high {
            let half = (at + high) / 2;
            let way = half * bytes;
            if order.before(key(opposite - way), key(first + way)) {
                high = half;
            } else {
                at = half + 1;
            }
        }
        // A run without items gets the place of the other run. Threads always read, up to the last item of both runs, including the items
        // between the runs.
        let begins = [
            if a > 0 { self.key_places[0] } else { self.key_places[1] },
            if b > 0 { self.key_places[1] } else { self.key_places[0] },
        ];
        let to_value = [
            if a > 0 { self.value_places[0] } else { self.value_places[1] }.wrapping_sub(begins[0]),
            if b > 0 { self.value_places[1] } else { self.value_places[0] }.wrapping_sub(begins[1]),
        ];
        let ends = [(begins[0] + a) * bytes, (begins[1] + b) * bytes];
        let last = if b > 0 { ends[1] } else { ends[0] } - bytes;
        // SAFETY: of items only.
        let head = |at: u32| Head { at, key: unsafe { self.keys.load_at(at.min(last) as usize) } };
        let mut first = head((begins[0] + at) * bytes);
        let mut second = head((begins[1] + diagonal - at) * bytes);
        for i in 0..ITEMS {
            let take_second = (second.at < ends[1]) & ((first.at >= ends[0]) | order.before(second.key, first.key));
            let taken = if take_second { second } else { first };
            keys[i] = taken.key;
            // After the end, there is no item to take.
            if size_of::<V>() > 0 && (i as u32) < a + b - diagonal {
                let to_value = if take_second { to_value[1] } else { to_value[0] };
                // SAFETY: of items only.
                values[i] = unsafe { self.values.load((taken.at / bytes).wrapping_add(to_value) as usize) };
            }
            let next = head(taken.at + bytes);
            second = if take_second { next } else { second };
            first = if take_second { first } else { next };
        }
    }
}

/// Returns whether the keys of two runs, which are in order, can be compared [by value](SortKey::is_by_value). All threads get the same
/// result.
///
/// # Safety
/// The items of both runs may be read.
pub(super) unsafe fn is_by_value<K: SortKey, O: Direction>(
    keys: SharedArray<'_, K>,
    places: [u32; 2],
    lens: [u32; 2],
) -> bool {
    // SAFETY: of items only.
    let key = |place: u32| unsafe { keys.load(place as usize) };
    let mut all = true;
    for (&place, &len) in places.iter().zip(&lens) {
        if len > 0 {
            let (first, last) = (key(place), key(place + len - 1));
            all &= if O::DESCENDING { K::is_by_value(last, first) } else { K::is_by_value(first, last) };
        }
    }
    all
}

/// A thread's merge before the comparator is known. Its maker is responsible for the contract of [`Share::merge`].
struct ThreadMerge<'a, 'k, K, V, const ITEMS: usize> {
    share: &'a Share<'k, K, V>,
    diagonal: u32,
    keys: &'a mut [K; ITEMS],
    values: &'a mut [V; ITEMS],
}

impl<K: Element, V: Element, const ITEMS: usize> Sort<K> for ThreadMerge<'_, '_, K, V, ITEMS> {
    #[inline(always)]
    #[track_caller]
    fn by(self, order: &impl Comparator<K>) {
        let Self { share, diagonal, keys, values } = self;
        // SAFETY: the contract of who made it.
        unsafe { share.merge_by(diagonal, order, keys, values) };
    }

    #[inline(always)]
    #[track_caller]
    fn in_order<O: Direction>(self)
    where
        K: SortKey,
    {
        let Self { share, diagonal, keys, values } = self;
        // SAFETY: the contract of who made it.
        unsafe {
            if K::BY_VALUE && is_by_value::<K, O>(share.keys, share.key_places, share.lens) {
                let order = |a: K, b: K| if O::DESCENDING { b.is_below(a) } else { a.is_below(b) };
                share.merge_by(diagonal, &order, keys, values);
            } else {
                let order = |a: K, b: K| {
                    let (a, b) = (a.to_sort_bits(), b.to_sort_bits());
                    if O::DESCENDING { a > b } else { a < b }
                };
                share.merge_by(diagonal, &order, keys, values);
            }
        }
    }
}

/// Returns the place of a vector of a tile in shared memory, if a thread has `ITEMS` items. Threads write four vectors each, and neighbours
/// read neighbouring vectors. In both cases, eight vectors that are accessed at once are in different banks. If `ITEMS` is odd, this is
/// also true for single items.
#[inline(always)]
fn place_of_vector<const ITEMS: usize>(vector: u32) -> u32 {
    if const { ITEMS.is_multiple_of(2) } { vector ^ (vector >> 3 & 3) } else { vector }
}

/// Returns the place of an item.
#[inline(always)]
pub(crate) fn place_of_item<T: Element, const ITEMS: usize>(item: u32) -> usize {
    let vector = const { vector::<T>() as u32 };
    (place_of_vector::<ITEMS>(item / vector) * vector + item % vector) as usize
}

/// Puts each thread's items of a tile, blocked, at the places where [`write_out`] finds them.
///
/// # Safety
/// The array has a place for each item, and nobody else accesses it until the next barrier.
pub(crate) unsafe fn put<T: Element, const N: usize, const ITEMS: usize>(
    cx: Block<'_>,
    array: SharedArray<'_, T>,
    items: &[T; ITEMS],
) {
    if size_of::<T>() == 0 {
        return;
    }
    // SAFETY: the caller's contract.
    unsafe {
        if const { ITEMS.is_multiple_of(N) } {
            let (vectors, _) = items.as_chunks::<N>();
            for (k, vector) in vectors.iter().enumerate() {
                let at = cx.thread_rank() * const { (ITEMS / N) as u32 } + k as u32;
                array.store_items(place_of_vector::<ITEMS>(at) as usize * N, vector);
            }
        } else {
            for (i, &item) in items.iter().enumerate() {
                array.store(place_of_item::<T, ITEMS>(cx.thread_rank() * ITEMS as u32 + i as u32), item);
            }
        }
    }
}

/// Writes the `len` items of a tile to `out`, from `first`. Neighbouring threads write neighbouring vectors. It may also write the places
/// after `len` in the last vector, which nobody needs.
///
/// # Safety
/// All items were [`put`] before a barrier, and nobody else accesses them or the places of the result.
pub(crate) unsafe fn write_out<T: Element, const N: usize, const ITEMS: usize>(
    cx: Block<'_>,
    array: SharedArray<'_, T>,
    out: &mut GlobalMut<'_, T>,
    first: usize,
    len: u32,
) {
    let vector = |k: usize| k as u32 * cx.block_threads() + cx.thread_rank();
    // SAFETY: the caller's contract.
    let items = |vector: u32| unsafe { array.load_items::<N>(place_of_vector::<ITEMS>(vector) as usize * N) };
    // All vectors are checked at once, so that little more than the write remains for each.
    if out.len().saturating_sub(first) >= len.next_multiple_of(N as u32) as usize && out.is_aligned::<N>(first) {
        for k in 0..const { ITEMS.div_ceil(N) } {
            let vector = vector(k);
            if vector * (N as u32) < len {
                // SAFETY: inside and aligned; the caller's contract.
                unsafe { out.write_vector_inside(first + vector as usize * N, &items(vector)) };
            }
        }
        return;
    }
    for k in 0..const { ITEMS.div_ceil(N) } {
        let vector = vector(k);
        if vector * (N as u32) < len {
            // SAFETY: the caller's contract.
            unsafe { out.write_items(first + vector as usize * N, &items(vector)) };
        }
    }
}
