//! The kernels that find the first few of many items by a limit.
//!
//! The first kernel reads the input once. It writes the first key of each segment, and from each block a sample of the first keys of its
//! threads. The second kernel takes a limit from the samples that at least `k` keys do not come after. It looks again at the segments whose
//! first key does not come after the limit, and writes the keys that do not. The last kernel sorts these: about twice `k` keys at most if
//! the input is in random order.
//!
//! The keys become records, which have their places in the input, so that no two are equal.

use kernel_primitives::block::{TopKFound, TopKStorage, block_top_k_before, block_top_k_by, block_top_k_records};
use kernel_primitives::functor::{KeyOrder, Turned};
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;
use kernel_primitives::warp::{Record, SortBits};

/// A key with its place in the input.
pub type TopKRecord<K> = <<K as SortKey>::Bits as SortBits>::Ranked;

/// The number of threads of a block of [`top_k_bests`](struct@top_k_bests) and [`top_k_before`](struct@top_k_before).
pub const TOP_K_BEST_THREADS: usize = 512;

/// The number of warps of such a block.
pub const TOP_K_BEST_WARPS: usize = TOP_K_BEST_THREADS / WARP as usize;

/// The number of threads of the block that sorts. It runs alone, so it has as many threads as a block can have.
pub const TOP_K_FOUND_THREADS: usize = 1024;

/// The number of candidates for which a block has room.
const CAPACITY: usize = 2048;

/// The number of candidates of a thread of [`top_k_before`](struct@top_k_before) for which there is room.
const ITEMS: usize = CAPACITY / TOP_K_BEST_THREADS;

/// The number of candidates of a thread that sorts.
const FOUND_ITEMS: usize = CAPACITY / TOP_K_FOUND_THREADS;

/// The number of segments to look at again that a block lists. If there are more, it looks at all of its segments.
const LISTED: usize = 1024;

/// The indices of the numbers of a block: of what it has counted, and the limit's place.
const COUNT: usize = 0;
const LIMIT: usize = 1;

/// The places of an input that has the vectors of `N` items of a warp in rows, one after the other. A segment has `ROWS` rows. `warps` warps
/// have the rows in turn, so that the first items of a sorted input are in the segments of several warps.
#[derive(Clone, Copy)]
struct Segments {
    warps: usize,
    /// The place of this lane's items in a row.
    own: usize,
}

impl Segments {
    /// The place of this lane's first item of a segment.
    #[inline(always)]
    fn first<const N: usize, const ROWS: usize>(self, segment: usize) -> usize {
        let warps = self.warps.max(1);
        (segment / warps * ROWS * warps + segment % warps) * (WARP as usize * N) + self.own
    }

    /// The distance of two rows of a segment.
    #[inline(always)]
    fn stride<const N: usize>(self) -> usize {
        self.warps * (WARP as usize * N)
    }
}

/// The number of items of a vector, up to 8, and of rows in a segment.
pub const fn top_k_rows<S: Source>() -> (usize, usize) {
    match S::VECTOR {
        16 | 8 => (8, 4),
        4 => (4, 4),
        2 => (2, 4),
        _ => (1, 8),
    }
}

/// Calls a function with the two numbers of [`top_k_rows`] as its last constants.
macro_rules! by_rows {
    ($f:ident::<$source:ty $(, $constant:tt)*>($($arg:expr),* $(,)?)) => {
        match const { top_k_rows::<$source>().0 } {
            8 => $f::<$source $(, $constant)*, 8, 4>($($arg),*),
            4 => $f::<$source $(, $constant)*, 4, 4>($($arg),*),
            2 => $f::<$source $(, $constant)*, 2, 4>($($arg),*),
            _ => $f::<$source $(, $constant)*, 1, 8>($($arg),*),
        }
    };
}

// PTX: top_k_bests__Span_f32 has 4 loads and 0 stores of 16 bytes.

/// Writes the first record of each segment of the input to `records`; then, from each block, `samples` records. These are every `step`th of
/// the first records of its threads, in order. `segments` is the number of segments of all warps, and a multiple of their number. Each warp
/// has at least one row of items. Also clears the `total` of the next kernel.
///
/// The order is that of keys that are [`Turned`] by `turned`.
#[kernel(launch(pub(crate)), threads(TOP_K_BEST_THREADS), one_dimensional, min_blocks(2))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn top_k_bests<S>(
    cx: Block,
    x: Input<S>,
    mut records: GlobalMut<TopKRecord<S::Item>>,
    total: GlobalMut<u32, Atomic>,
    segments: usize,
    samples: usize,
    step: usize,
    turned: u64,
    mut shared: Shared<TopKStorage<S::Item, TOP_K_BEST_THREADS>>,
) where
    S: Source<Item: SortKey>,
{
    let (block, blocks) = (cx.block_rank(), cx.grid_blocks());
    if block == 0 && cx.thread_rank() == 0 {
        total.at(0).store(0);
    }
    // Rows that follow each other are of different blocks.
    let warps = blocks * TOP_K_BEST_WARPS;
    let mut segment = cx.warp() as usize * blocks + block;
    let mut first = TopKRecord::<S::Item>::LAST;
    while segment < segments {
        let own = by_rows!(best_of::<S>(cx, x, warps, segment, Turned(turned)));
        first = first.one_of(own, false);
        let mut best = own;
        let mut distance = WARP / 2;
        while distance > 0 {
            best = best.one_of(cx.shuffle_xor(FULL_MASK, best, distance, WARP), false);
            distance /= 2;
        }
        if cx.lane() == 0 {
            // SAFETY: the warp's own element.
            unsafe { records.write(segment, best) };
        }
        segment += warps;
    }
    let sorted = block_top_k_records(cx, &mut shared, first, samples * step);
    let (rank, step) = (cx.thread_rank() as usize + 1, step.max(1));
    if rank.is_multiple_of(step) && rank / step <= samples {
        // The first samples of all blocks come first, so that they are of different threads of the next kernel.
        let at = (rank / step - 1) * blocks + block;
        // SAFETY: the thread's own element.
        unsafe { records.write(segments + at, sorted) };
    }
    cx.launch_dependents();
}

/// Returns the first record of this lane's items in a segment.
#[inline(always)]
fn best_of<S: Source<Item: SortKey>, const N: usize, const ROWS: usize>(
    cx: Block<'_>,
    x: Input<'_, S>,
    warps: usize,
    segment: usize,
    order: Turned,
) -> TopKRecord<S::Item> {
    let segments = Segments { warps, own: cx.lane() as usize * N };
    let first = segments.first::<N, ROWS>(segment);
    let stride = segments.stride::<N>();
    if let Some(rows) = x.vectors::<N, ROWS>(first, stride) {
        // Of equal keys, the first one stays.
        let (mut best, mut at) = (order.to_bits(rows[0][0]), 0u32);
        for (r, row) in rows.iter().enumerate() {
            for (i, &key) in row.iter().enumerate() {
                let bits = order.to_bits(key);
                if bits < best {
                    (best, at) = (bits, (r * N + i) as u32);
                }
            }
        }
        let at = at as usize;
        return best.ranked((first + at / N * stride + at % N) as u32);
    }
    let mut best = TopKRecord::<S::Item>::LAST;
    for r in 0..ROWS {
        for i in 0..N {
            let at = first + r * stride + i;
            if let Some(key) = x.get(at) {
                best = best.one_of(order.to_bits(key).ranked(at as u32), false);
            }
        }
    }
    best
}

/// Writes the records of the keys that may be among the first `k` to `found`, in any order, and adds their number to `total`: at most `k` of
/// each block, and at least `k` of all. `records` is what [`top_k_bests`](struct@top_k_bests) has written by `warps` warps; of the first
/// `samples` of the samples in any order, the last does not come before the `k`th key.
#[kernel(launch(pub(crate)), threads(TOP_K_BEST_THREADS), one_dimensional, min_blocks(1))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn top_k_before<S>(
    cx: Block,
    x: Input<S>,
    records: Global<TopKRecord<S::Item>>,
    mut found: GlobalMut<TopKRecord<S::Item>>,
    total: GlobalMut<u32, Atomic>,
    k: usize,
    segments: usize,
    warps: usize,
    samples: usize,
    turned: u64,
    mut limit: Shared<[<S::Item as SortKey>::Bits; 1]>,
    mut numbers: Shared<[u32; 2]>,
    mut list: Shared<[u32; LISTED]>,
    mut shared: Shared<TopKStorage<S::Item, CAPACITY>>,
) where
    S: Source<Item: SortKey>,
{
    let thread = cx.thread_rank() as usize;
    let mut sample = TopKRecord::<S::Item>::LAST;
    let mut at = segments + thread;
    while let Some(record) = records.get(at) {
        sample = sample.one_of(record, false);
        at += TOP_K_BEST_THREADS;
    }
    let sorted = block_top_k_records(cx, &mut shared, sample, samples);
    if thread + 1 == samples {
        let (bits, place) = <<S::Item as SortKey>::Bits as SortBits>::of_ranked(sorted);
        limit.set(0, bits);
        numbers.set(LIMIT, place);
    }
    if thread == 0 {
        numbers.set(COUNT, 0);
    }
    cx.barrier();
    // The record after it. No place is the last number of 32 bits.
    let end = limit.get(0).ranked(numbers.get(LIMIT).saturating_add(1));

    let own = segments.div_ceil(cx.grid_blocks());
    let begin = (cx.block_rank() * own).min(segments);
    let own = own.min(segments - begin);
    let mut at = thread;
    while at < own {
        if let Some(record) = records.get(begin + at)
            && record.precedes(end)
        {
            let place = numbers.at(COUNT).fetch_add(1) as usize;
            if place < LISTED {
                list.set(place, at as u32);
            }
        }
        at += TOP_K_BEST_THREADS;
    }
    cx.barrier();
    let listed = numbers.get(COUNT) as usize;
    let own = if listed <= LISTED {
        Own { begin, count: listed, list: Some(&list) }
    } else {
        Own { begin, count: own, list: None }
    };
    let limited = (k, Turned(turned), end);
    // The keys that are read ahead take registers.
    let kept = if const { size_of::<S::Item>() > 4 } {
        own.look::<S, 4>(cx, x, warps, limited, &mut shared)
    } else {
        own.look::<S, 8>(cx, x, warps, limited, &mut shared)
    };
    if thread == 0 {
        numbers.set(COUNT, total.at(0).fetch_add(kept.count()));
    }
    cx.barrier();
    let first = numbers.get(COUNT) as usize;
    let mut at = thread;
    while let Some(record) = kept.get(at as u32) {
        // SAFETY: the block's own elements, and of these the thread's.
        unsafe { found.write(first + at, record) };
        at += TOP_K_BEST_THREADS;
    }
    cx.launch_dependents();
}

/// The segments that a block looks at again.
struct Own<'s, 'k> {
    begin: usize,
    count: usize,
    /// The numbers of the segments, from `begin`, or all of them.
    list: Option<&'s Shared<'k, [u32; LISTED]>>,
}

impl Own<'_, '_> {
    /// Returns the records of the keys that come before the end: all of them, or the first `k`. A lane looks at `PART` items of a segment
    /// together.
    #[inline(always)]
    fn look<'a, S: Source<Item: SortKey>, const PART: usize>(
        &self,
        cx: Block<'a>,
        x: Input<'_, S>,
        warps: usize,
        (k, order, end): (usize, Turned, TopKRecord<S::Item>),
        shared: &'a mut Shared<'_, TopKStorage<S::Item, CAPACITY>>,
    ) -> TopKFound<'a, S::Item> {
        let parts = const { top_k_rows::<S>().0 * top_k_rows::<S>().1 / PART };
        let rounds = self.count.div_ceil(TOP_K_BEST_WARPS) * parts;
        block_top_k_before::<ITEMS, CAPACITY, PART, _, _>(cx, shared, rounds, k, order, end, |round: usize| {
            let at = round / parts * TOP_K_BEST_WARPS + cx.warp() as usize;
            if at >= self.count {
                return ([S::Item::ZERO; PART], [0; PART], 0);
            }
            let at = self.list.map_or(at, |list| list.get(at) as usize);
            by_rows!(part_of::<S, PART>(cx, x, warps, self.begin + at, round % parts))
        })
    }
}

/// Returns this lane's items in a part of a segment, their places, and a bit for each item that the input has.
#[inline(always)]
fn part_of<S: Source<Item: SortKey>, const PART: usize, const N: usize, const ROWS: usize>(
    cx: Block<'_>,
    x: Input<'_, S>,
    warps: usize,
    segment: usize,
    part: usize,
) -> ([S::Item; PART], [u32; PART], u32) {
    let segments = Segments { warps, own: cx.lane() as usize * N };
    let stride = segments.stride::<N>();
    // A part of fewer items than a vector is a part of a row.
    let (row, in_row) = (part * PART / N, part * PART % N);
    let first = segments.first::<N, ROWS>(segment) + row * stride + in_row;
    let place = |i: usize| first + i / N * stride + i % N;
    let mut items = [S::Item::ZERO; PART];
    let mut bits = 0;
    if const { N <= PART } && place(PART - 1) < x.len() {
        let (vectors, _) = items.as_chunks_mut::<N>();
        for (m, vector) in vectors.iter_mut().enumerate() {
            // SAFETY: the part's last item is inside, and it is the one with the highest place.
            *vector = unsafe { x.items_inside(place(m * N)) };
        }
        bits = !0;
    } else {
        for (i, item) in items.iter_mut().enumerate() {
            if let Some(key) = x.get(place(i)) {
                *item = key;
                bits |= 1 << i;
            }
        }
    }
    (items, core::array::from_fn(|i| place(i) as u32), bits)
}

/// Sorts the first `k` of the first `total` records. The launch has one block.
#[kernel(launch(pub(crate)), threads(TOP_K_FOUND_THREADS), one_dimensional, min_blocks(1))]
pub fn top_k_found<K: SortKey>(
    cx: Block,
    records: Global<TopKRecord<K>>,
    total: Global<u32>,
    mut out: GlobalMut<K>,
    k: usize,
    turned: u64,
    mut shared: Shared<TopKStorage<K, CAPACITY>>,
) {
    let (found, _) = found_of(cx, records, total, k, turned, &mut shared);
    for (i, &key) in found.iter().enumerate() {
        let at = cx.thread_rank() as usize * FOUND_ITEMS + i;
        if at < k {
            // SAFETY: the thread's own element.
            unsafe { out.write(at, key) };
        }
    }
}

/// Works as [`top_k_found`](struct@top_k_found), and also writes the values of the keys, which it finds by their places.
#[kernel(launch(pub(crate)), threads(TOP_K_FOUND_THREADS), one_dimensional, min_blocks(1))]
pub fn top_k_found_pairs<K, X>(
    cx: Block,
    records: Global<TopKRecord<K>>,
    total: Global<u32>,
    values: Input<X>,
    mut out: GlobalMut<K>,
    mut values_out: GlobalMut<X::Item>,
    k: usize,
    turned: u64,
    mut shared: Shared<TopKStorage<K, CAPACITY>>,
) where
    K: SortKey,
    X: Source<Item: Element>,
{
    let (found, places) = found_of(cx, records, total, k, turned, &mut shared);
    for i in 0..FOUND_ITEMS {
        let at = cx.thread_rank() as usize * FOUND_ITEMS + i;
        if at < k
            && let Some(value) = values.get(places[i] as usize)
        {
            // SAFETY: the thread's own elements.
            unsafe {
                out.write(at, found[i]);
                values_out.write(at, value);
            }
        }
    }
}

/// Returns the first `k` keys with their places.
#[inline(always)]
fn found_of<K: SortKey>(
    cx: Block<'_>,
    records: Global<'_, TopKRecord<K>>,
    total: Global<'_, u32>,
    k: usize,
    turned: u64,
    shared: &mut Shared<'_, TopKStorage<K, CAPACITY>>,
) -> ([K; FOUND_ITEMS], [u32; FOUND_ITEMS]) {
    let (total, order) = (total.get(0).unwrap_or(0) as usize, Turned(turned));
    let rounds = total.div_ceil(CAPACITY);
    block_top_k_by::<FOUND_ITEMS, CAPACITY, FOUND_ITEMS, _, _>(cx, shared, rounds, k, order, |round: usize| {
        let (mut keys, mut places, mut bits) = ([K::ZERO; FOUND_ITEMS], [0; FOUND_ITEMS], 0u32);
        for i in 0..FOUND_ITEMS {
            let at = round * CAPACITY + i * TOP_K_FOUND_THREADS + cx.thread_rank() as usize;
            if at < total
                && let Some(record) = records.get(at)
            {
                let (own, place) = <K::Bits as SortBits>::of_ranked(record);
                (keys[i], places[i]) = (order.of_bits(own), place);
                bits |= 1 << i;
            }
        }
        (keys, places, bits)
    })
}
