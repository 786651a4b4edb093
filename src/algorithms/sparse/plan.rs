//! How a product is computed: chosen from the lengths of a matrix's rows.

use super::wrong;
use crate::kernels::device::{
    CSR_CHUNK, CSR_DECREASING, CSR_FIRST, CSR_FIRST_ENTRIES, CSR_GIANT_ENTRIES, CSR_LAST, CSR_LONG_STEPS, CSR_LONGEST,
    CSR_MOST_STEPS, CSR_OUTSIDE, CSR_SHORT, CSR_SHORT_STEPS, CSR_STAGED_LANES, CSR_STEPS, CSR_THREADS, CSR_UNSEEN,
    CSR_WAYS, CSR_WINDOW_LANES, CSR_WINDOW_ROWS, CSR_WINDOW_THREADS,
};
use crate::simt::WARP;
use crate::{Element, Result};

/// How [`spmv`](super::spmv()) computes a product with a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SpmvMethod {
    /// Neighbouring lanes of a warp have a row: 1, 2, 4, 8, 16 or 32 of them. For rows of similar lengths. If results accumulate in more than
    /// 256 bytes, 8 lanes in place of 2 and 4.
    Rows {
        /// How many lanes.
        lanes: u32,
    },
    /// Each block has as many entries and ends of rows as the others, wherever rows begin and end. For rows of very different lengths. If
    /// results accumulate in more than some 112 bytes, for which not all GPUs have enough shared memory, 32 lanes have a row in its place.
    MergePath,
    /// A lane has a row of up to 16 entries, and a warp one of up to 8192. Blocks share longer rows, 8192 entries each. For short rows with some
    /// long ones and few giant ones among them. If results accumulate in more than some 490 bytes, 32 lanes have a row in its place.
    ByLength,
    /// Four lanes have a row, and a block has 512 rows. It copies the items of the vector from the first to the last column of its entries to
    /// shared memory, each once, and reads them from there: also those of columns between them that have no entry, which must be initialised.
    /// A block for which these are more than 40 KiB reads the vector itself, and so do all if the vector's items are computed. For bands: rows of
    /// similar lengths whose columns lie near each other, but not side by side.
    Window,
}

impl SpmvMethod {
    /// An error of this call unless there is a kernel for it.
    pub(crate) fn check(self, call: &'static str) -> Result<()> {
        match self {
            Self::Rows { lanes } if !lanes.is_power_of_two() || lanes > WARP => {
                let reason = format!("{lanes} lanes cannot share a row: 1, 2, 4, 8, 16 or 32 can");
                Err(wrong(call, reason))
            }
            _ => Ok(()),
        }
    }
}

/// Warps that a device has under way: those of 128 multiprocessors. The choice is the same on all devices, so that the order in which
/// entries are combined is the same, too.
const WARPS: f64 = 4096.0;

// The costs below are in steps: the time of a warp in which each lane goes on by one entry. They are estimates.

/// A step of lanes that have a row each. Short rows lie in few lines, which the warp reads once.
const ALONE: f64 = 1.25;

/// What a step after a row's first entries adds, which are under way together.
const LATER: f64 = 2.5;

/// A step of several lanes a row reads at as many places as there are rows in the warp. This is what that adds, by the number of lanes.
const SCATTERED: f64 = 2.0;

/// How much longer these take if the items of `x` lie all over it, so that each is in a line of its own: several lanes a row have more of them
/// under way.
const FAR: f64 = 1.5;

/// The begin and the end of a row: offsets, combination of the lanes, result.
const ROW: f64 = 3.0;

/// The time until 32 products are in shared memory, whatever rows they are of.
const STAGE: f64 = 1.1;

/// The time of a step along rows in shared memory.
const ADD: f64 = 0.45;

/// The begin and the end of a row in shared memory, for which the block waits.
const STAGED_ROW: f64 = 4.25;

/// The time of each further wait of a warp for its block, if the entries of the block's rows are more than it has room for.
const WAIT: f64 = 8.0;

/// The time of 32 entries along the merge path.
const MERGE: f64 = 2.1;

/// The time of 32 ends of rows along the merge path.
const MERGE_ROW: f64 = 1.0;

/// The merge path's other launch, and its waits.
const SEARCH: f64 = 40.0;

/// The launch that adds up the shares of giant rows, and the time of a share.
const SHARES: f64 = 47.0;

/// A step of the lanes of rows whose items come from windows.
const WINDOWED: f64 = 0.75;

/// The begin and the end of a row with a window.
const WINDOWED_ROW: f64 = 1.5;

/// The time until 32 items of a window are in shared memory.
const COPIED: f64 = 0.5;

/// For each column of a window, so many entries at least: the fewer there are, the more of the vector is read in vain.
const WORTH: f64 = 2.0;

/// The columns of a row lie in a part of the window that has so many columns an entry at least. Where they are closer, the lanes of a warp
/// read few lines of the vector anyway.
const SPREAD: f64 = 4.0;

/// The share of windows at least that blocks have room for.
const FITTING: f64 = 0.9;

/// A step of a warp in slices, which reads neighbouring entries, and goes its own way to `x`.
const SLICED: f64 = 1.1;

/// How much longer such a step takes if the items of `x` lie so that windows are worth it.
const APART: f64 = 2.0;

/// The begin and the end of a slice: 32 rows, with their results.
const SLICE: f64 = 2.6;

/// The lengths of a matrix's rows, as a launch measured them.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowLengths {
    rows: usize,
    entries: usize,
    longest: u64,
    /// The steps over all rows for one lane a row, for two, for four, ….
    steps: [u64; CSR_WAYS],
    /// The steps of short rows with a lane a row.
    short_steps: u64,
    /// The steps of longer rows with a warp a row, with what their begins and ends take.
    long_steps: u64,
    /// The most of these that one warp has.
    most_steps: u64,
    /// The entries of giant rows.
    giant_entries: u64,
    /// How many windows blocks have room for, and how many columns these have; nothing if they were not looked at.
    windows: Option<(u64, u64)>,
}

impl RowLengths {
    pub(super) fn of(rows: usize, entries: usize, found: &[u64; CSR_UNSEEN.len()]) -> Self {
        let mut steps = [0; CSR_WAYS];
        steps.copy_from_slice(&found[CSR_STEPS..CSR_SHORT_STEPS]);
        Self {
            rows,
            entries,
            longest: found[CSR_LONGEST],
            steps,
            short_steps: found[CSR_SHORT_STEPS],
            long_steps: found[CSR_LONG_STEPS],
            most_steps: found[CSR_MOST_STEPS],
            giant_entries: found[CSR_GIANT_ENTRIES],
            windows: None,
        }
    }

    /// Whether windows may be worth it for values `V`, by the lengths alone: if they are as narrow as they may be.
    pub(super) fn may_suit_windows<V: Element>(&self) -> bool {
        // A line has so many smaller items that a warp reads few lines.
        size_of::<V>() >= 4 && self.windowed(self.narrowest()).is_some_and(|time| time < self.best().0)
    }

    /// Notes how many windows blocks have room for, and how many columns these have.
    pub(super) fn measured(&mut self, fitting: (u64, u64)) {
        self.windows = Some(fitting);
    }

    pub(super) fn longest(&self) -> u64 {
        self.longest
    }

    /// The entries of all giant rows.
    pub(super) fn giant_entries(&self) -> usize {
        self.giant_entries as usize
    }

    /// The method that takes the fewest steps.
    pub(super) fn method(&self) -> SpmvMethod {
        self.best().1
    }

    /// Whether slices whose rows are sorted in windows of so many take fewer steps than the method, and have at most so many slots.
    pub(super) fn suit_slices(&self, window: usize, most_slots: u64) -> bool {
        let lanes = f64::from(WARP);
        // In a window, lengths descend, so that all its slices waste as many slots as one of the longest row has at most.
        let wasted = self.rows.div_ceil(window) as f64 * self.longest as f64;
        let steps = self.entries as f64 / lanes + wasted;
        let slices = (self.rows as f64 / lanes).ceil().max(1.0);
        let (time, method) = self.best();
        let step = if method == SpmvMethod::Window { SLICED * APART } else { SLICED };
        let work = step * steps + SLICE * slices;
        self.entries > 0 && lanes * steps <= most_slots as f64 && work / WARPS + (self.longest as f64) < time
    }

    /// The lanes that take the fewest steps if all rows have as many.
    pub(super) fn lanes(&self) -> u32 {
        self.best_rows().1
    }

    /// The number of blocks that have a window each.
    fn blocks(&self) -> f64 {
        self.rows.div_ceil(CSR_WINDOW_ROWS) as f64
    }

    /// The fewest columns of a window that is worth it: the rows of its block, and what the spread adds.
    fn narrowest(&self) -> f64 {
        (self.rows as f64 + SPREAD * self.entries as f64 / self.rows.max(1) as f64 * self.blocks())
            / self.blocks().max(1.0)
    }

    /// The time with windows of so many columns in the mean; nothing if they are not worth it.
    fn windowed(&self, columns: f64) -> Option<f64> {
        const WAY: usize = CSR_WINDOW_LANES.trailing_zeros() as usize;
        let items = columns * self.blocks();
        if self.rows == 0 || columns < self.narrowest() || (self.entries as f64) < WORTH * items {
            return None;
        }
        let lanes = CSR_WINDOW_LANES as f64;
        let batches = (self.rows as f64 * lanes / f64::from(WARP)).ceil();
        let work = WINDOWED * self.steps[WAY] as f64 + WINDOWED_ROW * batches + COPIED * items / f64::from(WARP);
        // Few blocks do not have all warps that a device can have under way.
        let warps = self.blocks() * (CSR_WINDOW_THREADS as f64 / f64::from(WARP));
        Some(work / warps.min(WARPS) + self.longest as f64 / lanes)
    }

    /// The time of the method that takes the fewest steps, and that.
    fn best(&self) -> (f64, SpmvMethod) {
        let path = (self.with_misses(MERGE) * self.entries as f64 + MERGE_ROW * self.rows as f64) / f64::from(WARP);
        let mut best = (path / WARPS + SEARCH, SpmvMethod::MergePath);
        let (time, lanes) = self.best_rows();
        if time < best.0 {
            best = (time, SpmvMethod::Rows { lanes });
        }
        // Without long rows it is as a lane a row.
        if self.longest > CSR_SHORT as u64 {
            let batches = (self.rows as f64 / f64::from(WARP)).ceil();
            let shared = self.giant_entries as f64 / f64::from(WARP);
            let work = self.alone(self.short_steps, batches) + self.long_steps as f64 + shared;
            let giants = if self.giant_entries > 0 { SHARES } else { 0.0 };
            // One warp has its long rows to itself.
            let time = work / WARPS + self.most_steps as f64 + giants;
            if time < best.0 {
                best = (time, SpmvMethod::ByLength);
            }
        }
        if let Some((fitting, columns)) = self.windows
            && fitting as f64 >= FITTING * self.blocks()
            && let Some(time) = self.windowed(columns as f64 / fitting as f64)
            && time < best.0
        {
            best = (time, SpmvMethod::Window);
        }
        best
    }

    /// The work of so many steps of lanes that have a row each, in batches of a warp.
    fn alone(&self, steps: u64, batches: f64) -> f64 {
        let later = (steps as f64 - CSR_FIRST_ENTRIES as f64 * batches).max(0.0);
        self.with_misses(steps as f64 * ALONE + later * LATER) + ROW * batches
    }

    /// The time of steps, which is longer if nearly no block's columns are in a window.
    fn with_misses(&self, time: f64) -> f64 {
        let is_far = self.windows.is_some_and(|(fitting, _)| (fitting as f64) < 0.1 * self.blocks());
        time * if is_far { FAR } else { 1.0 }
    }

    /// The lanes a row that take the fewest steps, and their time.
    fn best_rows(&self) -> (f64, u32) {
        let mut best = (f64::INFINITY, WARP);
        for (way, &steps) in self.steps.iter().enumerate() {
            let lanes = f64::from(1u32 << way);
            let batches = (self.rows as f64 * lanes / f64::from(WARP)).ceil().max(1.0);
            let work = if way == 0 {
                self.alone(steps, batches)
            } else if 1 << way <= CSR_STAGED_LANES {
                let of_block = self.entries as f64 / batches * (CSR_THREADS as f64 / f64::from(WARP));
                let waits = (of_block / CSR_CHUNK as f64 - 1.0).max(0.0);
                let staged = self.entries as f64 / f64::from(WARP) * STAGE;
                staged + steps as f64 * ADD + (STAGED_ROW + WAIT * waits) * batches
            } else {
                steps as f64 * (1.0 + SCATTERED / lanes) + ROW * batches
            };
            // All warps share the work, and one has the longest row to itself.
            let time = work / WARPS + self.longest as f64 / lanes;
            if time < best.0 {
                best = (time, 1 << way);
            }
        }
        best
    }
}

/// What is wrong with the offsets and the columns, if something is.
pub(super) fn fault(
    found: &[u64; CSR_UNSEEN.len()],
    columns: usize,
    entries: usize,
    offset: impl Fn(usize) -> Result<u64>,
    column: impl Fn(usize) -> Result<u64>,
) -> Result<Option<String>> {
    if found[CSR_FIRST] != 0 {
        return Ok(Some(format!("the first offset is {}, not 0", found[CSR_FIRST])));
    }
    if found[CSR_DECREASING] != u64::MAX {
        let row = found[CSR_DECREASING] as usize;
        let (begin, end) = (offset(row)?, offset(row + 1)?);
        return Ok(Some(format!("the offsets decrease from {begin} at {row} to {end} at {}", row + 1)));
    }
    if found[CSR_LAST] != entries as u64 {
        return Ok(Some(format!("the last offset is {}, but there are {entries} values", found[CSR_LAST])));
    }
    if found[CSR_OUTSIDE] != u64::MAX {
        let entry = found[CSR_OUTSIDE] as usize;
        return Ok(Some(format!("entry {entry} is in column {} of {columns}", column(entry)?)));
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
