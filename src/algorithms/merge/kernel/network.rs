//! Merges of keys without values, in the order of their bits.
//!
//! Keys that are equal in this order have equal bits, so nobody can tell which of them was first, and a network may merge them. A thread
//! reads its part of the second run backwards, and then its part of the first run forwards. This sequence falls and then rises: it is
//! bitonic. A network sorts it in as many steps as its length has binary digits (Batcher, 1968). No read waits for another read, as it
//! does in a merge item by item.

use kernel_primitives::functor::{Comparator, Direction, Sort};
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::view::SharedArray;

use super::share::{is_by_value, put, write_out};
use super::{by_element, merge_tile_items};

mod stage;

use stage::{places, stage};

/// The number of threads of a block: half as many as of other merges, because a thread has registers for twice as many keys, and what
/// it does once for all of them is shared by more.
pub const NETWORK_THREADS: usize = 128;

/// The number of keys that a thread merges. It is odd, so that threads access the same bank only rarely.
const ITEMS: usize = 33;

/// An order of keys, and the type in which they are compared.
trait NetworkOrder<K> {
    /// The type that is sorted.
    type Bits: Element;

    fn of_key(key: K) -> Self::Bits;

    fn to_key(bits: Self::Bits) -> K;

    fn before(a: Self::Bits, b: Self::Bits) -> bool;

    /// Returns both in order.
    fn ordered(a: Self::Bits, b: Self::Bits) -> [Self::Bits; 2];
}

/// The order of the bits.
struct ByBits<O>(core::marker::PhantomData<O>);

impl<K: SortKey, O: Direction> NetworkOrder<K> for ByBits<O> {
    type Bits = K::Bits;

    #[inline(always)]
    fn of_key(key: K) -> K::Bits {
        key.to_plain_bits()
    }

    #[inline(always)]
    fn to_key(bits: K::Bits) -> K {
        K::from_plain_bits(bits)
    }

    #[inline(always)]
    fn before(a: K::Bits, b: K::Bits) -> bool {
        let (a, b) = (a.xor(K::TURNED), b.xor(K::TURNED));
        if O::DESCENDING { a > b } else { a < b }
    }

    #[inline(always)]
    fn ordered(a: K::Bits, b: K::Bits) -> [K::Bits; 2] {
        if <Self as NetworkOrder<K>>::before(b, a) { [b, a] } else { [a, b] }
    }
}

/// The order of the values, for keys of a range in which it is the same.
struct ByValue<O>(core::marker::PhantomData<O>);

impl<K: SortKey, O: Direction> NetworkOrder<K> for ByValue<O> {
    type Bits = K;

    #[inline(always)]
    fn of_key(key: K) -> K {
        key
    }

    #[inline(always)]
    fn to_key(bits: K) -> K {
        bits
    }

    #[inline(always)]
    fn before(a: K, b: K) -> bool {
        if O::DESCENDING { b.is_below(a) } else { a.is_below(b) }
    }

    #[inline(always)]
    fn ordered(a: K, b: K) -> [K; 2] {
        let [low, high] = a.low_and_high(b);
        if O::DESCENDING { [high, low] } else { [low, high] }
    }
}

/// Merges the keys of both runs of a tile into `out`, from `first`. `own` are the runs' pieces in their inputs, each a first item and a
/// length.
///
/// # Safety
/// Both runs have items, at most a tile. `keys` has room for them, for the vectors at their ends, and for `ITEMS` keys more. `begins` has
/// an element for each thread. Nobody else accesses this memory or the tile's places of the result.
pub(super) unsafe fn merge_tile<'k, S, T, C>(
    cx: Block<'k>,
    (a, b): (Input<'_, S>, Input<'_, T>),
    own: [(usize, usize); 2],
    (keys, begins): (SharedArray<'k, S::Item>, SharedArray<'k, u16>),
    order: &C,
    (out, first): (&mut GlobalMut<'_, S::Item>, usize),
) where
    S: Source<Item: Element>,
    T: Source<Item = S::Item>,
    C: Comparator<S::Item>,
{
    let (lens, places) = (own.map(|(_, len)| len as u32), places::<S::Item>(&own));
    // SAFETY: the caller's contract; barriers before, between and after. The keys, and the other items of their vectors, are written before
    // a barrier; the places after them, and `begins`, are for the merge alone.
    unsafe {
        by_element!(S::Item, stage::<S, T; VECTOR>(cx, (a, b), own, keys, places));
        a.wait_for_copies();
        cx.barrier();
        let mut merged = [S::Item::ZERO; ITEMS];
        order.have_sorted(BlockMerge { keys, places, lens, cx, begins, merged: &mut merged });
        cx.barrier();
        by_element!(S::Item, put::<S::Item; VECTOR, ITEMS>(cx, keys, &merged));
        cx.barrier();
        by_element!(S::Item, write_out::<S::Item; VECTOR, ITEMS>(cx, keys, out, first, lens[0] + lens[1]));
    }
}

/// A block's merge before the comparator is known. Its maker is responsible for the contract of
/// [`merge_in_order`](Self::merge_in_order).
struct BlockMerge<'a, 'k, K> {
    keys: SharedArray<'k, K>,
    places: [u32; 2],
    lens: [u32; 2],
    cx: Block<'k>,
    begins: SharedArray<'k, u16>,
    merged: &'a mut [K; ITEMS],
}

impl<K: Element> Sort<K> for BlockMerge<'_, '_, K> {
    fn by(self, _: &impl Comparator<K>) {
        unreachable!("a network is for an order of bits");
    }

    #[inline(always)]
    #[track_caller]
    fn in_order<O: Direction>(self)
    where
        K: SortKey,
    {
        const { assert!(size_of::<K::Bits>() == size_of::<K>(), "keys have no more than the bits they are sorted by") };
        // SAFETY: the contract of the maker.
        unsafe {
            if K::BY_VALUE && is_by_value::<K, O>(self.keys, self.places, self.lens) {
                self.merge_in_order::<ByValue<O>>();
            } else {
                self.merge_in_order::<ByBits<O>>();
            }
        }
    }
}

impl<'k, K: Element> BlockMerge<'_, 'k, K> {
    /// Merges the keys. Each thread of the block gets `ITEMS` keys of the result. Keys after the end are unspecified.
    ///
    /// # Safety
    /// Both runs have items, and the second is before the first. They may be read, with everything between them. There are `ITEMS` places
    /// after the first, and `begins` has an element for each thread. Nobody else accesses these until the barrier after the call.
    unsafe fn merge_in_order<O: NetworkOrder<K>>(self) {
        const {
            assert!(ITEMS <= NETWORK_THREADS, "a thread writes each place after the end");
            assert!(ITEMS * NETWORK_THREADS <= u16::MAX as usize, "the beginning of a thread has 16 bits");
            assert!(merge_tile_items(size_of::<K>(), 0) <= ITEMS * NETWORK_THREADS, "threads merge the whole tile");
        }
        let Self { keys, places: [first_place, second_place], lens: [a, b], cx, begins, merged } = self;
        let thread = cx.thread_rank();
        let before = |a: K, b: K| O::before(O::of_key(a), O::of_key(b));
        let diagonal = (thread * ITEMS as u32).min(a + b);
        // SAFETY: of items, and of the thread's own element and places; the caller's contract.
        let begin = unsafe {
            // The keys after the end, which threads at the end merge too.
            if thread < ITEMS as u32 {
                let [first, second] = [first_place + a, second_place + b].map(|end| keys.load(end as usize - 1));
                let last = if before(first, second) { second } else { first };
                keys.store((first_place + a + thread) as usize, last);
            }
            let begin = split(keys, [first_place, second_place], [a, b], diagonal, before);
            begins.store(thread as usize, begin as u16);
            begin
        };
        cx.barrier();
        let next = thread as usize + 1;
        // SAFETY: written before the barrier.
        let end = if next < NETWORK_THREADS { unsafe { begins.load(next) as u32 } } else { a };
        // If the runs are in no order, parts may be longer than they can be, or end before they begin. Even then, only the items and the
        // places after them are read.
        let len = (a + b - diagonal).min(ITEMS as u32);
        let of_first = end.wrapping_sub(begin).min(len);
        let of_second = len - of_first;
        let bytes = const { size_of::<K>() };
        let first = ((first_place + begin) as usize).wrapping_sub(of_second as usize).wrapping_mul(bytes);
        let second = ((second_place + diagonal - begin + of_second) as usize).wrapping_sub(1).wrapping_mul(bytes);
        let mut own = [<O::Bits as Element>::ZERO; ITEMS];
        #[allow(clippy::needless_range_loop, reason = "iterators keep the array in local memory")]
        for i in 0..ITEMS {
            // The same distance from either, so that it is part of the instruction.
            let (way, back) = (i * bytes, 2 * i * bytes);
            let from = if (i as u32) < of_second { second.wrapping_sub(back) } else { first };
            // SAFETY: of the items, of what is between the runs, or of the places after them, all written before the barrier.
            own[i] = O::of_key(unsafe { keys.load_at(from.wrapping_add(way)) });
        }
        sort_bitonic::<O, K>(&mut own);
        for i in 0..ITEMS {
            merged[i] = O::to_key(own[i]);
        }
    }
}

/// Sorts keys that fall and then rise. The items that are missing to a power of two would be last, and would stay there.
fn sort_bitonic<O: NetworkOrder<K>, K>(items: &mut [O::Bits; ITEMS]) {
    let step = |items: &mut [O::Bits; ITEMS], distance: usize| {
        for i in 0..ITEMS {
            if i & distance == 0 && i + distance < ITEMS {
                [items[i], items[i + distance]] = O::ordered(items[i], items[i + distance]);
            }
        }
    };
    const { assert!(ITEMS <= 64, "there is a step for each binary digit of an index") };
    step(items, 32);
    step(items, 16);
    step(items, 8);
    step(items, 4);
    step(items, 2);
    step(items, 1);
}

/// Returns how many of the first `diagonal` keys of the result are of the first run. This is between the least and the largest possible
/// number, even if the runs are in no order.
///
/// All threads take the same steps. These are odd, so that threads access few keys, or keys in different banks.
///
/// # Safety
/// All keys of both runs may be read, and there are at least `diagonal`.
unsafe fn split<K: Element>(
    keys: SharedArray<'_, K>,
    places: [u32; 2],
    [a, b]: [u32; 2],
    diagonal: u32,
    before: impl Fn(K, K) -> bool,
) -> u32 {
    let bytes = const { size_of::<K>() };
    // SAFETY: of items only.
    let key = |at: usize| unsafe { keys.load_at(at) };
    let least = diagonal.saturating_sub(b);
    // How many more there can be. Then the end of the keys that are of the first run, and the opposite place, in bytes.
    let mut room = diagonal.min(a) - least;
    let mut first = (places[0] + least) as usize * bytes;
    let mut second = (places[1] + diagonal - least) as usize * bytes;
    for i in 0..STEPS {
        let step = const { steps(1 << (NETWORK_THREADS * ITEMS / 2).ilog2()) }[i];
        let way = step as usize * bytes;
        if step > 0 && step <= room && !before(key(second - way), key(first + way - bytes)) {
            first += way;
            second -= way;
            room -= step;
        }
    }
    diagonal.min(a) - room
}

/// The most steps of a search: more than any tile takes.
const STEPS: usize = 16;

/// Returns the steps of a search for a number up to `most`, which is the sum of some of them. Each step is the sum of the steps after it, or
/// one more.
const fn steps(most: u32) -> [u32; STEPS] {
    let (mut steps, mut rest, mut i) = ([0; STEPS], most, 0);
    while rest > 0 {
        // Odd, if `most` is a power of two.
        let step = if rest > 2 { rest / 2 + 1 } else { 1 };
        let (below, above) = (step - 1, rest - step);
        steps[i] = step;
        rest = if below > above { below } else { above };
        i += 1;
    }
    steps
}

#[cfg(test)]
mod tests;
