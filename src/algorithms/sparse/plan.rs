//! The methods of products, and the choice among them, which depends on the lengths of a matrix's rows.

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
    /// 1, 2, 4, 8, 16 or 32 neighbouring lanes of a warp have a row. This is for rows of similar lengths. If the accumulator of a result
    /// has more than 256 bytes, 8 lanes have a row instead of 2 or 4.
    Rows {
        /// The number of lanes of a row.
        lanes: u32,
    },
    /// Each block has the same number of entries and ends of rows, wherever rows begin and end. This is for rows of very different lengths.
    /// If the accumulator of a result has more than about 112 bytes, not all GPUs have enough shared memory; then 32 lanes have a row
    /// instead.
    MergePath,
    /// A lane has a row of up to 16 entries, and a warp a row of up to 8192. Several blocks share a longer row, with 8192 entries each.
    /// This is for short rows with some long rows and a few giant rows among them. If the accumulator of a result has more than about 490
    /// bytes, 32 lanes have a row instead.
    ByLength,
    /// Four lanes have a row, and a block has 512 rows. A block copies a window of the vector to shared memory: the items from the first to
    /// the last column of its entries. It reads the items from there. The window also has the columns without an entry, so these items must
    /// be initialised. A block whose window has more than 40 KiB reads the vector directly. So do all blocks if the items of the vector are
    /// computed. This is for bands: rows of similar lengths whose columns are near each other, but not adjacent.
    Window,
}

impl SpmvMethod {
    /// Returns an error of this call if there is no kernel for the method.
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

/// The number of warps that a device has in flight: those of 128 multiprocessors. The number is the same for all devices, so that the
/// choice and the order in which entries are combined are the same, too.
const WARPS: f64 = 4096.0;

// The costs below are estimates, in steps. A step is the time in which each lane of a warp goes on by one entry.

/// A step of lanes that have a row each. Short rows lie in few cache lines, which the warp reads once.
const ALONE: f64 = 1.25;

/// The additional time of a step after the first entries of a row, whose reads are in flight together.
const LATER: f64 = 2.5;

/// The additional time of a step if several lanes have a row, divided by the number of lanes. Such a step reads as many places as the warp
/// has rows.
const SCATTERED: f64 = 2.0;

/// The factor by which these steps take longer if the items of `x` are so far apart that each is in a cache line of its own. Several lanes
/// of a row have more of these reads in flight.
const FAR: f64 = 1.5;

/// The beginning and the end of a row: its offsets, the combination of the lanes, and the result.
const ROW: f64 = 3.0;

/// The time to put 32 products into shared memory, of any rows.
const STAGE: f64 = 1.1;

/// The time of a step along rows in shared memory.
const ADD: f64 = 0.45;

/// The beginning and the end of a row in shared memory, for which the block waits.
const STAGED_ROW: f64 = 4.25;

/// The time that a warp waits for its block each further time, if shared memory cannot hold all entries of the block's rows at once.
const WAIT: f64 = 8.0;

/// The time of 32 entries along the merge path.
const MERGE: f64 = 2.1;

/// The time of 32 ends of rows along the merge path.
const MERGE_ROW: f64 = 1.0;

/// The other launch of the merge path, and its waits.
const SEARCH: f64 = 40.0;

/// The launch that adds the shares of giant rows, and the time of a share.
const SHARES: f64 = 47.0;

/// A step of the lanes of rows that read their items from a window.
const WINDOWED: f64 = 0.75;

/// The beginning and the end of a row with a window.
const WINDOWED_ROW: f64 = 1.5;

/// The time to copy 32 items of a window to shared memory.
const COPIED: f64 = 0.5;

/// The smallest number of entries for each column of a window. With fewer entries, a block reads more of the vector that it does not need.
const WORTH: f64 = 2.0;

/// The smallest number of columns for each entry, in the part of the window where the columns of a row lie. If columns are closer, the
/// lanes of a warp read few cache lines of the vector anyway.
const SPREAD: f64 = 4.0;

/// The smallest share of the windows that blocks must have room for.
const FITTING: f64 = 0.9;

/// A step of a warp in slices. It reads neighbouring entries, and each lane reads its own place of `x`.
const SLICED: f64 = 1.1;

/// The factor by which such a step takes longer if the items of `x` lie so that windows are worth it.
const APART: f64 = 2.0;

/// The beginning and the end of a slice: 32 rows, with their results.
const SLICE: f64 = 2.6;

/// The lengths of a matrix's rows, as a launch has measured them.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowLengths {
    rows: usize,
    entries: usize,
    longest: u64,
    /// The steps over all rows with one lane for each row, with two, with four, and so on.
    steps: [u64; CSR_WAYS],
    /// The steps of short rows with a lane for each row.
    short_steps: u64,
    /// The steps of longer rows with a warp for each row, including their beginnings and ends.
    long_steps: u64,
    /// The largest number of these steps that one warp has.
    most_steps: u64,
    /// The entries of giant rows.
    giant_entries: u64,
    /// The number of windows that blocks have room for, and the number of columns of these; `None` if windows were not measured.
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

    /// Returns whether windows may be worth it for values of type `V`. It knows only the lengths of the rows, and assumes that windows are
    /// as narrow as possible.
    pub(super) fn may_suit_windows<V: Element>(&self) -> bool {
        // A cache line holds many items of fewer bytes, so a warp reads few lines.
        size_of::<V>() >= 4 && self.windowed(self.narrowest()).is_some_and(|time| time < self.best().0)
    }

    /// Sets the number of windows that blocks have room for, and the number of columns of these.
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

    /// Returns whether slices take fewer steps than the best method, and have at most `most_slots` slots. Their rows are sorted in windows
    /// of `window` rows.
    pub(super) fn suit_slices(&self, window: usize, most_slots: u64) -> bool {
        let lanes = f64::from(WARP);
        // In a window, lengths descend. So all slices of a window together waste at most as many slots as one slice of the longest row.
        let wasted = self.rows.div_ceil(window) as f64 * self.longest as f64;
        let steps = self.entries as f64 / lanes + wasted;
        let slices = (self.rows as f64 / lanes).ceil().max(1.0);
        let (time, method) = self.best();
        let step = if method == SpmvMethod::Window { SLICED * APART } else { SLICED };
        let work = step * steps + SLICE * slices;
        self.entries > 0 && lanes * steps <= most_slots as f64 && work / WARPS + (self.longest as f64) < time
    }

    /// The number of lanes that takes the fewest steps if all rows have the same number of lanes.
    pub(super) fn lanes(&self) -> u32 {
        self.best_rows().1
    }

    /// The number of blocks that have a window each.
    fn blocks(&self) -> f64 {
        self.rows.div_ceil(CSR_WINDOW_ROWS) as f64
    }

    /// The smallest number of columns of a window that is worth it: the rows of its block, and the columns that `SPREAD` adds.
    fn narrowest(&self) -> f64 {
        (self.rows as f64 + SPREAD * self.entries as f64 / self.rows.max(1) as f64 * self.blocks())
            / self.blocks().max(1.0)
    }

    /// The time with windows of `columns` columns on average, or `None` if they are not worth it.
    fn windowed(&self, columns: f64) -> Option<f64> {
        const WAY: usize = CSR_WINDOW_LANES.trailing_zeros() as usize;
        let items = columns * self.blocks();
        if self.rows == 0 || columns < self.narrowest() || (self.entries as f64) < WORTH * items {
            return None;
        }
        let lanes = CSR_WINDOW_LANES as f64;
        let batches = (self.rows as f64 * lanes / f64::from(WARP)).ceil();
        let work = WINDOWED * self.steps[WAY] as f64 + WINDOWED_ROW * batches + COPIED * items / f64::from(WARP);
        // If there are few blocks, they have fewer warps than a device can have in flight.
        let warps = self.blocks() * (CSR_WINDOW_THREADS as f64 / f64::from(WARP));
        Some(work / warps.min(WARPS) + self.longest as f64 / lanes)
    }

    /// The time of the method that takes the fewest steps, and that method.
    fn best(&self) -> (f64, SpmvMethod) {
        let path = (self.with_misses(MERGE) * self.entries as f64 + MERGE_ROW * self.rows as f64) / f64::from(WARP);
        let mut best = (path / WARPS + SEARCH, SpmvMethod::MergePath);
        let (time, lanes) = self.best_rows();
        if time < best.0 {
            best = (time, SpmvMethod::Rows { lanes });
        }
        // Without long rows, this is the same as a lane for each row.
        if self.longest > CSR_SHORT as u64 {
            let batches = (self.rows as f64 / f64::from(WARP)).ceil();
            let shared = self.giant_entries as f64 / f64::from(WARP);
            let work = self.alone(self.short_steps, batches) + self.long_steps as f64 + shared;
            let giants = if self.giant_entries > 0 { SHARES } else { 0.0 };
            // One warp has to process its long rows alone.
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

    /// The work of `steps` steps of lanes that have a row each, in `batches` batches of a warp.
    fn alone(&self, steps: u64, batches: f64) -> f64 {
        let later = (steps as f64 - CSR_FIRST_ENTRIES as f64 * batches).max(0.0);
        self.with_misses(steps as f64 * ALONE + later * LATER) + ROW * batches
    }

    /// The time of steps. It is longer if almost no block has its columns in a window.
    fn with_misses(&self, time: f64) -> f64 {
        let is_far = self.windows.is_some_and(|(fitting, _)| (fitting as f64) < 0.1 * self.blocks());
        time * if is_far { FAR } else { 1.0 }
    }

    /// The number of lanes for each row that takes the fewest steps, and the time.
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
            // All warps share the work, and one warp has the longest row alone.
            let time = work / WARPS + self.longest as f64 / lanes;
            if time < best.0 {
                best = (time, 1 << way);
            }
        }
        best
    }
}

/// Returns what is wrong with the offsets and the columns, or `None`.
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
