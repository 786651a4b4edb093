//! The beginnings of tiles of merges.
//!
//! A binary search in memory reads 64 bytes for each item that it looks at, because these items are far apart. So the threads of a block
//! first search among samples, which are items at equal distances. The samples of a block are in shared memory. There are two rounds of
//! samples: of all items among which the block's splits can be, and of the items between the block's first and last split. The search in
//! memory begins with three times the distance of the last samples. If a block has tiles of several merges, these are short, and there are no samples.
//!
//! If there are many tiles, some lanes of a warp search first. The others guess their splits between those of two lanes, and look at two
//! places beside the guess, in the hope that the split is between them. If the keys of both runs are evenly distributed, it mostly is.
//!
//! On an H200 (driver 580.159.04), a merge of 2^28 random keys of `u32` took 0.577 to 0.585 ms. It took 0.594 ms without guesses, and 0.615 ms
//! without samples.

use core::marker::PhantomData;

use kernel_primitives::functor::Comparator;
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;
use kernel_primitives::simt::WARP;
use kernel_primitives::view::{SharedArray, SharedStorage};

use super::{MergePass, Runs, is_first, require_runs};

/// The number of threads of a block of [`merge_splits`](struct@merge_splits).
pub const MERGE_SPLIT_THREADS: usize = 256;

/// The number of tiles from which some lanes search first. Fewer tiles would wait longer for two searches than memory takes.
const MANY: usize = 1 << 14;

/// The distance of the lanes that search first.
const LEADERS: u32 = 8;

/// The distance of the places that a lane looks at from its guess. Evenly distributed keys of a few tiles are mostly nearer.
const NEAR: usize = 64;

/// The shared memory of [`merge_splits`](struct@merge_splits), for keys of a type.
pub struct MergeSplitStorage<K>(PhantomData<K>);

impl<K> MergeSplitStorage<K> {
    /// The number of samples that the distance of samples is for.
    const SAMPLES: usize = match size_of::<K>() {
        0..=16 => 1024,
        bytes @ ..16384 => 16384 / bytes,
        _ => 1,
    };
    /// Each run can have one more, for the rest.
    const PLACES: usize = Self::SAMPLES + 2;
    /// The offset of the bounds of the block's first and last split.
    const BOUNDS: usize = (Self::PLACES * size_of::<K>()).next_multiple_of(16);
}

// SAFETY: uninitialised elements.
unsafe impl<K: Element> SharedStorage for MergeSplitStorage<K> {
    const BYTES: usize = Self::BOUNDS + 4 * size_of::<u64>();
    const ALIGN: usize = 16;
}

/// Finds the beginnings of the tiles of [`merge_tiles`](struct@super::merge_tiles), of `tile` items: for each tile, the number of items of
/// its first run that come before it. Each thread has one tile.
#[kernel(launch(pub(crate)), threads(MERGE_SPLIT_THREADS))]
pub fn merge_splits<S, T, C>(
    cx: Block,
    a: Input<S>,
    b: Input<T>,
    mut splits: GlobalMut<u64>,
    pass: MergePass,
    tile: usize,
    order: C,
    shared: Shared<MergeSplitStorage<S::Item>>,
) where
    S: Source<Item: Element>,
    T: Source<Item = S::Item>,
    C: Comparator<S::Item> + KernelParam,
{
    require_runs(cx, a.len(), b.len(), pass);
    let first = cx.block_rank() * MERGE_SPLIT_THREADS;
    if first >= splits.len() {
        return;
    }
    let last = (first + MERGE_SPLIT_THREADS).min(splits.len()) - 1;
    let of_tile = |tile_number: usize| {
        let item = tile_number * tile;
        let runs = Runs::at(item, [a.len(), b.len()], pass);
        // A tile after the last item that is kept begins at the end.
        (runs, (item - runs.out).min(runs.lens[0] + runs.lens[1]))
    };
    let (of_first, first_diagonal) = of_tile(first);
    let (of_last, last_diagonal) = of_tile(last);
    let own = (first + cx.thread_rank() as usize).min(last);
    let (runs, diagonal) = of_tile(own);
    let is_before = |at: usize| {
        // SAFETY: within the bounds of the diagonal, and not the last.
        unsafe { is_first(a, b, &runs, diagonal, at, &order) }
    };
    let search = |[mut at, mut end]: [usize; 2]| {
        while at < end {
            let half = at + (end - at) / 2;
            if is_before(half) {
                at = half + 1;
            } else {
                end = half;
            }
        }
        at
    };
    let mut split = 0;
    if of_first.out == of_last.out {
        // All tiles of the block are of one merge.
        let ends = [first_diagonal, last_diagonal];
        let all = Window::between(ends, ends.map(|diagonal| runs.bounds(diagonal)));
        let places = shared.array::<S::Item>(0, const { MergeSplitStorage::<S::Item>::PLACES });
        let samples = Samples::take(cx, (a, b), &runs, all, places);
        let bounds = shared.array::<u64>(const { MergeSplitStorage::<S::Item>::BOUNDS }, 4);
        // One thread finds each, so that all threads have the same window, whatever the comparator answers.
        if cx.thread_rank() < 2 {
            let diagonal = if cx.thread_rank() == 0 { first_diagonal } else { last_diagonal };
            let [least, most] = samples.bounds(diagonal, &runs, &order);
            // SAFETY: the thread's own elements.
            unsafe { bounds.store_items(2 * cx.thread_rank() as usize, &[least as u64, most as u64]) };
        }
        cx.barrier();
        // SAFETY: they were written before the barrier, and are not written again.
        let found = [0, 2].map(|place| unsafe { bounds.load_items::<2>(place) });
        let window = Window::between(ends, found.map(|bounds| bounds.map(|bound| bound as usize)));
        let samples = Samples::take(cx, (a, b), &runs, window, places);
        let [mut at, mut end] = samples.bounds(diagonal, &runs, &order);
        let before = cx.lane() / LEADERS * LEADERS;
        let after = (before + LEADERS).min(WARP - 1);
        let is_leader = splits.len() < MANY || [before, after].contains(&cx.lane());
        if is_leader {
            split = search([at, end]);
        }
        // The splits and the diagonals of both leaders.
        let of_leaders =
            |value: usize| [before, after].map(|lane| cx.shuffle(FULL_MASK, value as u64, lane, WARP) as usize);
        let ([least, most], [begin, stop]) = (of_leaders(split), of_leaders(diagonal));
        if !is_leader {
            let guess = least + most.saturating_sub(least) * (diagonal - begin) / (stop - begin).max(1);
            let mut look = |place: usize| {
                if at <= place && place < end {
                    if is_before(place) {
                        at = place + 1;
                    } else {
                        end = place;
                    }
                }
            };
            look(guess.saturating_sub(NEAR));
            look(guess + NEAR);
            split = search([at, end]);
        }
    } else {
        split = search(runs.bounds(diagonal));
    }
    if let Some(own) = cx.items(splits.len()).next() {
        splits.set(own, split as u64);
    }
}

/// The items of both runs between the splits of two diagonals, counted from the beginnings of the runs.
#[derive(Clone, Copy)]
struct Window {
    begins: [usize; 2],
    ends: [usize; 2],
}

impl Window {
    /// Returns the items between two diagonals, from the bounds of both splits. The first diagonal is not after the last one.
    fn between([first, last]: [usize; 2], [of_first, of_last]: [[usize; 2]; 2]) -> Self {
        let begins = [of_first[0], first - of_first[1]];
        let ends = [of_last[1], last - of_last[0]];
        // If the comparator is not an order, ends can come before beginnings.
        Self { begins, ends: [ends[0].max(begins[0]), ends[1].max(begins[1])] }
    }

    fn lens(&self) -> [usize; 2] {
        [self.ends[0] - self.begins[0], self.ends[1] - self.begins[1]]
    }
}

/// The samples of a window: every item of both runs whose number in the window is a multiple of `apart`.
struct Samples<'k, K> {
    places: SharedArray<'k, K>,
    window: Window,
    apart: usize,
    /// The number of samples of each run. Those of the second run come after those of the first one.
    counts: [usize; 2],
}

impl<'k, K: Element> Samples<'k, K> {
    /// Reads the samples. All threads of the block call it, and may use the samples after it. The window is within both runs.
    fn take<S, T>(
        cx: Block<'_>,
        (a, b): (Input<'_, S>, Input<'_, T>),
        runs: &Runs,
        window: Window,
        places: SharedArray<'k, K>,
    ) -> Self
    where
        S: Source<Item = K>,
        T: Source<Item = K>,
    {
        let lens = window.lens();
        let apart = (lens[0] + lens[1]).div_ceil(const { MergeSplitStorage::<K>::SAMPLES }).max(1);
        let counts = lens.map(|len| len.div_ceil(apart));
        for place in (cx.thread_rank() as usize..counts[0] + counts[1]).step_by(MERGE_SPLIT_THREADS) {
            // SAFETY: the sample is in the window, which is within the runs; the thread's own place, after a barrier if it was read before.
            unsafe {
                let [item] = if place < counts[0] {
                    a.items_inside::<1>(runs.begins[0] + window.begins[0] + place * apart)
                } else {
                    b.items_inside::<1>(runs.begins[1] + window.begins[1] + (place - counts[0]) * apart)
                };
                places.store(place, item);
            }
        }
        cx.barrier();
        Self { places, window, apart, counts }
    }

    /// Returns the least and the greatest possible number of items of the first run before a diagonal, whose split is in the window.
    ///
    /// Let `i` of the first run's samples and `j` of the second run's samples be the first `i + j` samples in order, and let the diagonal be
    /// less than one sample's distance after `(i + j) * apart`. Sample `i - 1` of the first run comes before sample `j` of the second run.
    /// If it were after the diagonal, at least `(j + 1) * apart` items of the second run would be before the diagonal, and sample `j` among
    /// them. So the split is after it. In the same way, sample `j - 1` of the second run is before the diagonal. So at most
    /// `(i + 2) * apart - 2` items of the first run are.
    fn bounds(&self, diagonal: usize, runs: &Runs, order: &impl Comparator<K>) -> [usize; 2] {
        let Self { places, window: Window { begins, ends }, apart, counts } = *self;
        let before = (diagonal.saturating_sub(begins[0] + begins[1]) / apart).min(counts[0] + counts[1]);
        let [mut i, mut end] = [before.saturating_sub(counts[1]), before.min(counts[0])];
        while i < end {
            let half = i + (end - i) / 2;
            // SAFETY: `before - counts[1] <= half < before` and `half < counts[0]`, so both are samples; a barrier came after they were
            // written, and another one comes before they are written again.
            let [first, second] = unsafe { [half, counts[0] + before - 1 - half].map(|place| places.load(place)) };
            if order.before(second, first) {
                end = half;
            } else {
                i = half + 1;
            }
        }
        let least = if i > 0 { begins[0] + (i - 1) * apart + 1 } else { begins[0] };
        let most = if before > i { begins[0] + (i + 2) * apart - 2 } else { ends[0] };
        let least = least.max(diagonal.saturating_sub(ends[1]));
        let most = most.min(ends[0]).min(diagonal.saturating_sub(begins[1]));
        // If the comparator is not an order, these are any numbers.
        let [least_of_all, most_of_all] = runs.bounds(diagonal);
        let most = most.min(most_of_all).max(least_of_all);
        [least.max(least_of_all).min(most), most]
    }
}
