//! The kernels of merges.
//!
//! A block makes a tile of the result. Two diagonals cut the *merge path*, and the cuts say where in both runs the tile's items come from:
//! a cut is the number of items of the first run among the result's first `d` items. Then the items are in shared memory. There, each
//! thread finds its own part by the same search, and merges it item by item (Green, McColl and Bader, 2012). Keys of up to four bytes in
//! the order of their bits, without values, are merged by a [`network`] instead.

use core::marker::PhantomData;

use kernel_primitives::functor::{BinaryFn, Comparator};
use kernel_primitives::input::{Source, Span};
use kernel_primitives::prelude::*;
use kernel_primitives::view::SharedStorage;

use crate::algorithms::search::kernel::warp_bound;

mod network;
mod pieces;
mod share;
mod splits;

pub use network::NETWORK_THREADS;
use pieces::{copy_run, places, stage};
pub(crate) use share::{Share, place_of_item, put, write_out};
pub use splits::{MERGE_SPLIT_THREADS, MergeSplitStorage, merge_splits};

/// The number of threads of a block of [`merge_tiles_pairs`](struct@merge_tiles_pairs), of merges of segments, and of
/// [`merge_tiles`](struct@merge_tiles) without a network.
pub const MERGE_THREADS: usize = 256;

/// Returns the number of threads of a block of [`merge_tiles`](struct@merge_tiles), by keys and comparator.
pub const fn merge_threads<K, C: Comparator<K>>() -> usize {
    if merges_by_network::<K, C>() { NETWORK_THREADS } else { MERGE_THREADS }
}

/// Returns the least number of blocks of a multiprocessor. A thread of a network has registers for its keys. Of others, a multiprocessor has
/// as many as it can: with 2^28 keys of four bytes, this kernel then takes a tenth less time on an H200 than with half as many. With keys of
/// eight bytes it takes 3 percent less, but a sort of 2^20 takes a quarter more.
const fn merge_blocks<K, C: Comparator<K>>() -> usize {
    if merges_by_network::<K, C>() {
        1024 / NETWORK_THREADS
    } else if size_of::<K>() <= 4 {
        2048 / MERGE_THREADS
    } else {
        1024 / MERGE_THREADS
    }
}

/// Returns whether [`merge_tiles`](struct@merge_tiles) merges keys by a network. For wider keys, a network takes more instructions.
const fn merges_by_network<K, C: Comparator<K>>() -> bool {
    <C as BinaryFn<K>>::IS_ORDER_OF_BITS && size_of::<K>() <= 4
}

/// Returns the number of items of a thread of merges and merge sorts, by the bytes of keys and values. It is a power of two.
pub(crate) const fn items(key: usize, value: usize) -> usize {
    match if key > value { key } else { value } {
        0..=4 => 16,
        5..=8 => 8,
        9..=16 => 4,
        17..=32 => 2,
        _ => 1,
    }
}

/// Returns the number of items that a thread merges, for a tile of `items` items for each thread. It is odd, so threads that look at the
/// same item of their own, or take the same step of a search, access the same bank only rarely. The last threads have no items.
const fn merged_items(items: usize) -> usize {
    if items > 2 { items + 1 } else { items }
}

/// Returns the number of items of a tile of [`merge_tiles`](struct@merge_tiles) whose keys and values have these sizes, or size 0 for keys
/// alone. It is a power of two.
pub const fn merge_tile_items(key: usize, value: usize) -> usize {
    MERGE_THREADS * items(key, value)
}

/// No value.
pub(crate) type Nothing = [u8; 0];

/// The number of elements of a vector of 16 bytes, or one.
const fn vector<T: Element>() -> usize {
    <Span<T> as Source>::VECTOR
}

/// Calls a function with the number of elements in a vector, as its first constant.
macro_rules! by_element {
    ($t:ty, $f:ident::<$($g:ty),*; VECTOR $(, $constant:tt)*>($($arg:expr),* $(,)?)) => {
        match const { <kernel_primitives::input::Span<$t> as kernel_primitives::input::Source>::VECTOR } {
            16 => $f::<$($g,)* 16 $(, $constant)*>($($arg),*),
            8 => $f::<$($g,)* 8 $(, $constant)*>($($arg),*),
            4 => $f::<$($g,)* 4 $(, $constant)*>($($arg),*),
            2 => $f::<$($g,)* 2 $(, $constant)*>($($arg),*),
            _ => $f::<$($g,)* 1 $(, $constant)*>($($arg),*),
        }
    };
}
pub(crate) use by_element;

/// Calls a function with the number of items of a thread as its last constant.
macro_rules! by_items {
    ($k:ty, $v:ty, $f:ident::<$($g:ty),*; ITEMS>($($arg:expr),* $(,)?)) => {
        match const { $crate::algorithms::merge::kernel::items(size_of::<$k>(), size_of::<$v>()) } {
            16 => $f::<$($g,)* 16>($($arg),*),
            8 => $f::<$($g,)* 8>($($arg),*),
            4 => $f::<$($g,)* 4>($($arg),*),
            2 => $f::<$($g,)* 2>($($arg),*),
            _ => $f::<$($g,)* 1>($($arg),*),
        }
    };
}
pub(crate) use by_items;

/// Calls a function with the number of items that a thread merges as its last constant.
macro_rules! by_merged_items {
    ($k:ty, $v:ty, $f:ident::<$($g:ty),*; ITEMS>($($arg:expr),* $(,)?)) => {
        match const { merged_items(items(size_of::<$k>(), size_of::<$v>())) } {
            17 => $f::<$($g,)* 17, MERGE_THREADS>($($arg),*),
            9 => $f::<$($g,)* 9, MERGE_THREADS>($($arg),*),
            5 => $f::<$($g,)* 5, MERGE_THREADS>($($arg),*),
            2 => $f::<$($g,)* 2, MERGE_THREADS>($($arg),*),
            _ => $f::<$($g,)* 1, MERGE_THREADS>($($arg),*),
        }
    };
}

/// The shared memory of a tile: the two splits, the keys of both runs, and the values.
pub struct MergeStorage<K, V = [u8; 0]>(PhantomData<(K, V)>);

impl<K: Element, V: Element> MergeStorage<K, V> {
    pub(crate) const KEYS: usize = 2 * size_of::<u64>();
    /// The bytes of the beginnings of threads' parts, where values would be. Only networks have them.
    const BEGINS: usize = if size_of::<K>() <= 4 { NETWORK_THREADS * size_of::<u16>() } else { 0 };
    pub(crate) const VALUES: usize = Self::KEYS + (Self::places::<K>() * size_of::<K>()).next_multiple_of(16);

    /// The places for a tile, and for the items that threads merge after it. Each run has up to a vector more at both ends.
    const fn places<T: Element>() -> usize {
        MERGE_THREADS * merged_items(items(size_of::<K>(), size_of::<V>())) + 4 * vector::<T>()
    }
}

// SAFETY: uninitialised elements.
unsafe impl<K: Element, V: Element> SharedStorage for MergeStorage<K, V> {
    const BYTES: usize =
        Self::VALUES + if size_of::<V>() > 0 { Self::places::<V>() * size_of::<V>() } else { Self::BEGINS };
    const ALIGN: usize = 16;
}

/// The runs that a pass of merges merges.
#[derive(Clone, Copy, Debug, KernelParam)]
#[repr(C)]
pub struct MergePass {
    /// The number of items of a run, or 0 if each input is one run.
    pub run: usize,
    /// The number of the first items of a run that are needed. Later items are neither read nor written, except the rest of a vector.
    pub keep: usize,
}

impl MergePass {
    /// One run is the whole of one input, and the other run is the whole of another input.
    pub const INPUTS: Self = Self { run: 0, keep: usize::MAX };
}

/// Two runs that are merged, and the beginning of their result.
#[derive(Clone, Copy)]
struct Runs {
    out: usize,
    /// The beginning of each run in its input.
    begins: [usize; 2],
    lens: [usize; 2],
}

impl Runs {
    /// Returns the runs of the result's item `first`: both inputs, or a pair of successive runs of one input.
    fn at(first: usize, [a, b]: [usize; 2], MergePass { run, keep }: MergePass) -> Self {
        if run == 0 {
            Self { out: 0, begins: [0, 0], lens: [a, b] }
        } else {
            let begin = (first & !(2 * run - 1)).min(a);
            let middle = (begin + run).min(a);
            let lens = [middle - begin, run.min(a - middle)].map(|len| len.min(keep));
            Self { out: begin, begins: [begin, middle], lens }
        }
    }

    /// Returns the least and the greatest possible number of items of the first run among the result's first `diagonal` items.
    #[inline(always)]
    fn bounds(&self, diagonal: usize) -> [usize; 2] {
        [diagonal.saturating_sub(self.lens[1]), diagonal.min(self.lens[0])]
    }
}

/// Faults unless the number of items of a run is a power of two and `b` has all items of `a`, because one input is given twice.
#[track_caller]
fn require_runs(cx: Block<'_>, a: usize, b: usize, MergePass { run, .. }: MergePass) {
    if run > 0 {
        cx.require_at_most(run & (run - 1), 0);
        cx.require_at_most(a, b);
    }
}

/// Returns whether item `at` of the first run comes before the opposite item of the second run. The diagonal lies between the two items.
///
/// # Safety
/// `at` is within the bounds of the diagonal, and not the last.
unsafe fn is_first<S, T, C>(a: Input<S>, b: Input<T>, runs: &Runs, diagonal: usize, at: usize, order: &C) -> bool
where
    S: Source,
    T: Source<Item = S::Item>,
    C: Comparator<S::Item>,
{
    // SAFETY: both are inside.
    unsafe {
        let [first] = a.items_inside::<1>(runs.begins[0] + at);
        let [second] = b.items_inside::<1>(runs.begins[1] + diagonal - 1 - at);
        !order.before(second, first)
    }
}

/// The shared memory of a multiprocessor for merges of tiles, and for the kernel that sorts the first tiles of
/// [`sort_by`](kernel_primitives::algorithms::sort_by), so that a multiprocessor need not divide its memory anew between the two. The threads'
/// searches use the cache that is left. On an H200 (driver 580.159.04), a sort of 2^20 keys took 0.0575 ms, and 0.085 ms if this was less than
/// the four blocks of a sort of four-byte keys have, which is 137 KiB.
pub(crate) const fn merge_carveout<K: Element>() -> usize {
    carveout::<K, Nothing>(if size_of::<K>() == 4 { 160 << 10 } else { 128 << 10 })
}

/// Returns the least shared memory of a multiprocessor, or that of four blocks if it is more. Each block has a kilobyte that the device takes.
const fn carveout<K: Element, V: Element>(least: usize) -> usize {
    let blocks = 4 * (MergeStorage::<K, V>::BYTES + 1024);
    if blocks > least { blocks } else { least }
}

// PTX: merge_tiles__Span_u32_Span_u32_Less has 12 loads and 15 stores of 16 bytes, staged.

/// Merges sorted runs two by two. The merge is stable. Each block makes a tile of [`merge_tile_items`] items of the result.
///
/// If `pass.run` is 0, all items of `a` are one run and all items of `b` are the other, and `out` has a place for each item. Otherwise, the
/// runs are in `a`, each with `pass.run` items except the last one. This number is a multiple of the tile and a power of two. `b` is `a`
/// again, and `out` may be shorter. `splits` are the results of [`merge_splits`](struct@merge_splits), or are empty. If they are empty, the
/// warps of the block search themselves.
#[kernel(
    launch(pub(crate)),
    threads(merge_threads::<S::Item, C>()),
    one_dimensional,
    min_blocks(merge_blocks::<S::Item, C>()),
    carveout(merge_carveout::<S::Item>())
)]
pub fn merge_tiles<S, T, C>(
    cx: Block,
    a: Input<S>,
    b: Input<T>,
    mut out: GlobalMut<S::Item>,
    splits: Global<u64>,
    pass: MergePass,
    order: C,
    shared: Shared<MergeStorage<S::Item>>,
) where
    S: Source<Item: Element>,
    T: Source<Item = S::Item>,
    C: Comparator<S::Item> + KernelParam,
{
    let values = None::<Values<Span<Nothing>, Span<Nothing>>>;
    if const { merges_by_network::<S::Item, C>() } {
        tile::<S, T, Span<Nothing>, Span<Nothing>, C, 1, { NETWORK_THREADS }>(
            cx,
            (a, b),
            &mut out,
            values,
            splits,
            pass,
            &order,
            &shared,
        );
    } else {
        by_merged_items!(S::Item, Nothing, tile::<S, T, Span<Nothing>, Span<Nothing>, C; ITEMS>(cx, (a, b), &mut out, values, splits, pass, &order, &shared));
    }
}

/// The same for pairs, whose tiles are larger. On an H200 (driver 580.159.04), a sort of 2^20 pairs took 0.089 ms, and 0.122 ms with the
/// driver's choice.
pub(crate) const fn merge_pairs_carveout<K: Element, V: Element>() -> usize {
    carveout::<K, V>(160 << 10)
}

/// Works as [`merge_tiles`](struct@merge_tiles), with a value for each key. A value goes to the place of its key.
#[kernel(
    launch(pub(crate)),
    threads(MERGE_THREADS),
    one_dimensional,
    min_blocks(4),
    equal_len(out, values_out),
    carveout(merge_pairs_carveout::<S::Item, X::Item>())
)]
pub fn merge_tiles_pairs<S, T, X, Y, C>(
    cx: Block,
    a: Input<S>,
    b: Input<T>,
    a_values: Input<X>,
    b_values: Input<Y>,
    mut out: GlobalMut<S::Item>,
    mut values_out: GlobalMut<X::Item>,
    splits: Global<u64>,
    pass: MergePass,
    order: C,
    shared: Shared<MergeStorage<S::Item, X::Item>>,
) where
    S: Source<Item: Element>,
    T: Source<Item = S::Item>,
    X: Source<Item: Element>,
    Y: Source<Item = X::Item>,
    C: Comparator<S::Item> + KernelParam,
{
    cx.require_at_most(a.len(), a_values.len());
    cx.require_at_most(b.len(), b_values.len());
    let values = Some((a_values, b_values, &mut values_out));
    by_merged_items!(S::Item, X::Item, tile::<S, T, X, Y, C; ITEMS>(cx, (a, b), &mut out, values, splits, pass, &order, &shared));
}

/// The values of both runs, and of the result.
type Values<'v, 'i, 'k, X, Y> = (Input<'i, X>, Input<'i, Y>, &'v mut GlobalMut<'k, <X as Source>::Item>);

#[allow(clippy::too_many_arguments, reason = "a part of the kernel")]
fn tile<S, T, X, Y, C, const ITEMS: usize, const THREADS: usize>(
    cx: Block<'_>,
    (a, b): (Input<'_, S>, Input<'_, T>),
    out: &mut GlobalMut<'_, S::Item>,
    values: Option<Values<'_, '_, '_, X, Y>>,
    splits: Global<'_, u64>,
    pass: MergePass,
    order: &C,
    shared: &Shared<'_, MergeStorage<S::Item, X::Item>>,
) where
    S: Source<Item: Element>,
    T: Source<Item = S::Item>,
    X: Source<Item: Element>,
    Y: Source<Item = X::Item>,
    C: Comparator<S::Item>,
{
    type Storage<S, X> = MergeStorage<<S as Source>::Item, <X as Source>::Item>;
    let keys = shared.array::<S::Item>(Storage::<S, X>::KEYS, Storage::<S, X>::places::<S::Item>());
    let in_values = shared.array::<X::Item>(Storage::<S, X>::VALUES, Storage::<S, X>::places::<X::Item>());
    let tile = const { merge_tile_items(size_of::<S::Item>(), size_of::<X::Item>()) };
    let first = cx.block_rank() * tile;
    if first >= out.len() {
        return;
    }
    require_runs(cx, a.len(), b.len(), pass);
    let runs = Runs::at(first, [a.len(), b.len()], pass);
    let begin = first - runs.out;
    let all = runs.lens[0] + runs.lens[1];
    if begin >= all.min(pass.keep) {
        return;
    }
    let end = (begin + tile).min(all);

    let [from, to] = if splits.is_empty() {
        let ends = shared.array::<u64>(0, 2);
        if cx.warp() < 2 {
            let diagonal = if cx.warp() == 0 { begin } else { end };
            let [least, most] = runs.bounds(diagonal);
            // SAFETY: within the bounds.
            let found =
                warp_bound(cx, most - least, |at| unsafe { is_first(a, b, &runs, diagonal, least + at, order) });
            if cx.lane() == 0 {
                // SAFETY: the warp's own element.
                unsafe { ends.store(cx.warp() as usize, (least + found) as u64) };
            }
        }
        cx.barrier();
        // SAFETY: written before the barrier.
        unsafe { ends.load_items::<2>(0) }
    } else {
        let split = |tile: usize| splits.get(tile).unwrap_or(0);
        [split(cx.block_rank()), if end == all { runs.lens[0] as u64 } else { split(cx.block_rank() + 1) }]
    };
    // If the comparator is not an order, the splits may have any value within their bounds. In memory, they may have any value at all.
    let len = (end - begin) as u32;
    let [least, most] = runs.bounds(begin);
    let from = (from as usize).max(least).min(most);
    let to = (to as usize).max(from).min(from + len as usize);
    let own = |run: usize| {
        if run == 0 {
            (runs.begins[0] + from, to - from)
        } else {
            (runs.begins[1] + begin - from, end - to - (begin - from))
        }
    };
    let lens = [own(0).1 as u32, own(1).1 as u32];
    if lens[0] == 0 || lens[1] == 0 {
        // Of one run: as in all merges of what is sorted already, and of long runs of equal keys.
        // SAFETY: the tile's places in the result are its own.
        unsafe {
            if lens[1] == 0 {
                by_element!(S::Item, copy_run::<S; VECTOR, THREADS>(cx, a, own(0), out, first));
            } else {
                by_element!(S::Item, copy_run::<T; VECTOR, THREADS>(cx, b, own(1), out, first));
            }
            if let Some((a_values, b_values, out)) = values {
                if lens[1] == 0 {
                    by_element!(X::Item, copy_run::<X; VECTOR, THREADS>(cx, a_values, own(0), out, first));
                } else {
                    by_element!(X::Item, copy_run::<Y; VECTOR, THREADS>(cx, b_values, own(1), out, first));
                }
            }
        }
        return;
    }

    if const { THREADS == NETWORK_THREADS } {
        let begins = shared.array::<u16>(Storage::<S, X>::VALUES, NETWORK_THREADS);
        // SAFETY: both runs have items; the tile's places in the result, and all of the shared memory, are its own.
        unsafe { network::merge_tile(cx, (a, b), [own(0), own(1)], (keys, begins), order, (out, first)) };
        return;
    }
    // In shared memory, both runs have the same alignment to vectors as in the input.
    let key_places = places::<S::Item>(&[own(0), own(1)]);
    let value_places = places::<X::Item>(&[own(0), own(1)]);
    // SAFETY: there is room for both runs, with what is left of the vectors at their ends; barriers come before and after.
    unsafe {
        by_element!(S::Item, stage::<S; VECTOR, THREADS>(cx, a, own(0), keys, key_places[0]));
        by_element!(S::Item, stage::<T; VECTOR, THREADS>(cx, b, own(1), keys, key_places[1]));
        if let Some((a_values, b_values, _)) = &values {
            by_element!(X::Item, stage::<X; VECTOR, THREADS>(cx, *a_values, own(0), in_values, value_places[0]));
            by_element!(X::Item, stage::<Y; VECTOR, THREADS>(cx, *b_values, own(1), in_values, value_places[1]));
        }
    }
    a.wait_for_copies();
    cx.barrier();

    let mut own_keys = [S::Item::ZERO; ITEMS];
    let mut own_values = [X::Item::ZERO; ITEMS];
    // SAFETY: the places were written before the barrier, and are next written after another.
    unsafe {
        let share = Share { keys, values: in_values, key_places, value_places, lens };
        share.merge(cx.thread_rank() * ITEMS as u32, order, &mut own_keys, &mut own_values);
    }
    cx.barrier();
    // SAFETY: barriers before, between and after; the tile's places in the result are its own.
    unsafe {
        by_element!(S::Item, put::<S::Item; VECTOR, ITEMS>(cx, keys, &own_keys));
        by_element!(X::Item, put::<X::Item; VECTOR, ITEMS>(cx, in_values, &own_values));
        cx.barrier();
        by_element!(S::Item, write_out::<S::Item; VECTOR, ITEMS>(cx, keys, out, first, len));
        if let Some((_, _, out)) = values {
            by_element!(X::Item, write_out::<X::Item; VECTOR, ITEMS>(cx, in_values, out, first, len));
        }
    }
}
