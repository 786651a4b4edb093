//! The kernels of merges.
//!
//! A block makes a tile of the result. Where in both runs the tile's items come from is where two diagonals cut the *merge
//! path*: of the result's first `d` items, how many are of the first run. The items lie in shared memory then, where each thread
//! finds its own part by the same search and merges it one item after the other (Green, McColl and Bader, 2012).

use core::marker::PhantomData;

use kernel_primitives::functor::Comparator;
use kernel_primitives::input::{Source, Span};
use kernel_primitives::prelude::*;
use kernel_primitives::view::SharedStorage;

use crate::algorithms::search::kernel::warp_bound;

mod share;

pub(crate) use share::{Share, place_of_item, put, write_out};

/// Threads of a block of [`merge_tiles`](struct@merge_tiles).
pub const MERGE_THREADS: usize = 256;

/// Threads of a block of [`merge_splits`](struct@merge_splits).
pub const MERGE_SPLIT_THREADS: usize = 256;

/// Items of a thread of merges and merge sorts, whose keys and values have so many bytes: a power of two.
pub(crate) const fn items(key: usize, value: usize) -> usize {
    match if key > value { key } else { value } {
        0..=4 => 16,
        5..=8 => 8,
        9..=16 => 4,
        17..=32 => 2,
        _ => 1,
    }
}

/// Items that a thread merges, of a tile of so many a thread: an odd number, so that threads which look at the same item of their
/// own, or take the same step of a search, meet in few banks. The last threads have none.
const fn merged_items(items: usize) -> usize {
    if items > 2 { items + 1 } else { items }
}

/// Items of a tile of [`merge_tiles`](struct@merge_tiles) whose keys and values have these sizes; 0 for keys alone. A power of two.
pub const fn merge_tile_items(key: usize, value: usize) -> usize {
    MERGE_THREADS * items(key, value)
}

/// No value.
pub(crate) type Nothing = [u8; 0];

/// Elements of a vector of 16 bytes, or one.
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
            17 => $f::<$($g,)* 17>($($arg),*),
            9 => $f::<$($g,)* 9>($($arg),*),
            5 => $f::<$($g,)* 5>($($arg),*),
            2 => $f::<$($g,)* 2>($($arg),*),
            _ => $f::<$($g,)* 1>($($arg),*),
        }
    };
}

/// The shared memory of a tile: the two splits, the keys of both runs, and the values.
pub struct MergeStorage<K, V = [u8; 0]>(PhantomData<(K, V)>);

impl<K: Element, V: Element> MergeStorage<K, V> {
    pub(crate) const KEYS: usize = 2 * size_of::<u64>();
    pub(crate) const VALUES: usize = Self::KEYS + (Self::places::<K>() * size_of::<K>()).next_multiple_of(16);

    /// Of a tile and what threads merge after it; each run has up to a vector more at either end.
    const fn places<T: Element>() -> usize {
        MERGE_THREADS * merged_items(items(size_of::<K>(), size_of::<V>())) + 4 * vector::<T>()
    }
}

// SAFETY: uninitialised elements.
unsafe impl<K: Element, V: Element> SharedStorage for MergeStorage<K, V> {
    const BYTES: usize = Self::VALUES + Self::places::<V>() * size_of::<V>();
    const ALIGN: usize = 16;
}

/// What a pass of merges merges.
#[derive(Clone, Copy, Debug, KernelParam)]
#[repr(C)]
pub struct MergePass {
    /// Items of a run, or 0 if each input is one.
    pub run: usize,
    /// How many of the first items of a run are wanted: nothing after them is read or written but the rest of a vector.
    pub keep: usize,
}

impl MergePass {
    /// All of one input and all of another.
    pub const INPUTS: Self = Self { run: 0, keep: usize::MAX };
}

/// Two runs that are merged, and where their result begins.
#[derive(Clone, Copy)]
struct Runs {
    out: usize,
    /// Where each begins in its input.
    begins: [usize; 2],
    lens: [usize; 2],
}

impl Runs {
    /// Those that the result's item `first` is of: of both inputs, or of the one input's runs, each second and the one before it.
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

    /// How many of the result's first `diagonal` items are of the first run, at least and at most.
    #[inline(always)]
    fn bounds(&self, diagonal: usize) -> [usize; 2] {
        [diagonal.saturating_sub(self.lens[1]), diagonal.min(self.lens[0])]
    }
}

/// A fault unless runs are of a power of two of items and, since one input is given twice, `b` has all that `a` has.
#[track_caller]
fn require_runs(cx: Block<'_>, a: usize, b: usize, MergePass { run, .. }: MergePass) {
    if run > 0 {
        cx.require_at_most(run & (run - 1), 0);
        cx.require_at_most(a, b);
    }
}

/// Whether of two items that a diagonal lies between, the `at`th of the first run and its opposite, the first run's comes first.
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

/// Finds where the tiles of [`merge_tiles`](struct@merge_tiles), of `tile` items, begin: of each, how many items of its first run come
/// before. A thread a tile.
#[kernel(launch(pub(crate)), threads(MERGE_SPLIT_THREADS))]
pub fn merge_splits<S, T, C>(
    cx: Block,
    a: Input<S>,
    b: Input<T>,
    mut splits: GlobalMut<u64>,
    pass: MergePass,
    tile: usize,
    order: C,
) where
    S: Source<Item: Element>,
    T: Source<Item = S::Item>,
    C: Comparator<S::Item> + KernelParam,
{
    require_runs(cx, a.len(), b.len(), pass);
    for i in cx.items(splits.len()) {
        let first = i.index() * tile;
        let runs = Runs::at(first, [a.len(), b.len()], pass);
        let diagonal = first - runs.out;
        let [mut at, mut end] = runs.bounds(diagonal);
        while at < end {
            let half = at + (end - at) / 2;
            // SAFETY: within the bounds.
            if unsafe { is_first(a, b, &runs, diagonal, half, &order) } {
                at = half + 1;
            } else {
                end = half;
            }
        }
        splits.set(i, at as u64);
    }
}

// PTX: merge_tiles__Span_u32_Span_u32_Less has 12 loads and 15 stores of 16 bytes, staged.

/// Merges sorted runs two by two; stable. A tile of [`merge_tile_items`] of the result a block.
///
/// If `pass.run` is 0, the items of `a` and those of `b` are one run each, and `out` has a place for all. Else the runs
/// lie in `a`, of so many items each but the last one, a multiple of the tile and a power of two, and `b` is `a` again;
/// `out` may be shorter. `splits` are those of [`merge_splits`](struct@merge_splits), or none: then the block's warps
/// search themselves.
#[kernel(launch(pub(crate)), threads(MERGE_THREADS), min_blocks(4))]
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
    by_merged_items!(S::Item, Nothing, tile::<S, T, Span<Nothing>, Span<Nothing>, C; ITEMS>(cx, (a, b), &mut out, values, splits, pass, &order, &shared));
}

/// As [`merge_tiles`](struct@merge_tiles), with a value a key that goes where its key goes.
#[kernel(launch(pub(crate)), threads(MERGE_THREADS), min_blocks(4), equal_len(out, values_out))]
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
fn tile<S, T, X, Y, C, const ITEMS: usize>(
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
    // With a comparator that is no order, the splits may say anything within their bounds, and in memory anything.
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
                by_element!(S::Item, copy_run::<S; VECTOR>(cx, a, own(0), out, first));
            } else {
                by_element!(S::Item, copy_run::<T; VECTOR>(cx, b, own(1), out, first));
            }
            if let Some((a_values, b_values, out)) = values {
                if lens[1] == 0 {
                    by_element!(X::Item, copy_run::<X; VECTOR>(cx, a_values, own(0), out, first));
                } else {
                    by_element!(X::Item, copy_run::<Y; VECTOR>(cx, b_values, own(1), out, first));
                }
            }
        }
        return;
    }

    // Both runs lie in shared memory as on their boundaries in the input.
    let key_places = places::<S::Item>(&[own(0), own(1)]);
    let value_places = places::<X::Item>(&[own(0), own(1)]);
    // SAFETY: there is room for both runs, with what is left of the vectors at their ends; barriers come before and after.
    unsafe {
        by_element!(S::Item, stage::<S; VECTOR>(cx, a, own(0), keys, key_places[0]));
        by_element!(S::Item, stage::<T; VECTOR>(cx, b, own(1), keys, key_places[1]));
        if let Some((a_values, b_values, _)) = &values {
            by_element!(X::Item, stage::<X; VECTOR>(cx, *a_values, own(0), in_values, value_places[0]));
            by_element!(X::Item, stage::<Y; VECTOR>(cx, *b_values, own(1), in_values, value_places[1]));
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

/// Where two pieces of inputs, each a first item and a length, begin in shared memory, so that vectors of both lie on their boundaries.
fn places<T: Element>([a, b]: &[(usize, usize); 2]) -> [u32; 2] {
    let vector = const { vector::<T>() };
    let skip = [a.0 % vector, b.0 % vector];
    let second = (skip[0] + a.1).next_multiple_of(vector);
    [skip[0] as u32, (second + skip[1]) as u32]
}

/// Begins to copy a piece of an input to shared memory, from `place`, by vectors of `N`, also what they have at its ends.
///
/// # Safety
/// There is room, and nobody else accesses it until a barrier after [`Input::wait_for_copies`].
unsafe fn stage<S: Source<Item: Element>, const N: usize>(
    cx: Block<'_>,
    x: Input<'_, S>,
    (first, len): (usize, usize),
    to: SharedArray<'_, S::Item>,
    place: u32,
) {
    let skip = first % N;
    let (first, place) = (first - skip, place as usize - skip);
    let len = if len == 0 { 0 } else { skip + len } as u32;
    let mut at = cx.thread_rank() * N as u32;
    // One look at all vectors, so that there is little more to do for each than to copy it.
    if x.len().saturating_sub(first) >= len.next_multiple_of(N as u32) as usize && x.is_aligned::<N>(first) {
        while at < len {
            // SAFETY: inside and aligned; the caller's contract.
            unsafe { x.copy_vector_inside::<N>(first + at as usize, to, place + at as usize) };
            at += (MERGE_THREADS * N) as u32;
        }
        return;
    }
    while at < len {
        let from = first + at as usize;
        // SAFETY: the caller's contract.
        unsafe {
            if !x.copy::<N>(from, to, place + at as usize) {
                for i in 0..N {
                    to.store(place + at as usize + i, x.get(from + i).unwrap_or(S::Item::ZERO));
                }
            }
        }
        at += (MERGE_THREADS * N) as u32;
    }
}

/// Copies a piece of a run to `out`, from `first`, by vectors of `N`.
///
/// # Safety
/// Nobody else accesses these places of the result, nor those of the last vector after them.
unsafe fn copy_run<S: Source<Item: Element>, const N: usize>(
    cx: Block<'_>,
    x: Input<'_, S>,
    (from, len): (usize, usize),
    out: &mut GlobalMut<'_, S::Item>,
    first: usize,
) {
    const AT_ONCE: usize = 4;
    let stride = const { MERGE_THREADS * N };
    let mut at = cx.thread_rank() as usize * N;
    if len == AT_ONCE * stride
        && let Some(vectors) = x.vectors::<N, AT_ONCE>(from + at, stride)
    {
        for (i, items) in vectors.iter().enumerate() {
            // SAFETY: the caller's contract.
            unsafe { out.write_items(first + at + i * stride, items) };
        }
        return;
    }
    while at < len {
        let items = match x.items::<N>(from + at) {
            Some(items) => items,
            None => core::array::from_fn(|i| x.get(from + at + i).unwrap_or(S::Item::ZERO)),
        };
        // SAFETY: the caller's contract.
        unsafe { out.write_items(first + at, &items) };
        at += stride;
    }
}
