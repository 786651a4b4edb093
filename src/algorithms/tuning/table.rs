//! The table of tuning values, and the values that were measured to be better on an architecture.

use std::fmt;

/// Classes of items by their size in bytes: one, two, up to four, up to eight, and more.
pub(super) const CLASSES: [usize; 5] = [1, 2, 4, 8, 16];

/// The values that a parameter can have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    /// Threads of a block: a multiple of a warp.
    Threads,
    /// A number from the first to the second, inclusive.
    Range(u32, u32),
}

impl Rule {
    fn accepts(self, value: u32) -> bool {
        match self {
            Self::Threads => value > 0 && value <= 1024 && value.is_multiple_of(32),
            Self::Range(least, most) => (least..=most).contains(&value),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threads => write!(f, "a multiple of 32 up to 1024"),
            Self::Range(least, most) => write!(f, "a number from {least} to {most}"),
        }
    }
}

/// A row of the table: one parameter.
pub(super) struct Row {
    name: &'static str,
    about: &'static str,
    /// A value for each of the [`CLASSES`].
    pub(super) values: [u32; CLASSES.len()],
    pub(super) rule: Rule,
    candidates: &'static [u32],
    rows: &'static [&'static str],
}

/// The table. A row has a parameter, its values for every architecture, the values that are possible, the candidates that tuning tries, and
/// the rows of the benchmarks that it tries them on.
macro_rules! table {
    ($($parameter:ident $name:literal $about:literal $values:expr, $rule:expr, $candidates:expr, $rows:expr;)*) => {
        /// A value that can be tuned. The host uses it when it launches the kernels of an algorithm, so one compilation of a kernel serves
        /// all values.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Parameter {
            $(#[doc = concat!("`", $name, "`: ", $about, ".")] $parameter,)*
        }

        impl Parameter {
            /// All parameters, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$parameter,)*];
        }

        pub(super) const TABLE: [Row; Parameter::ALL.len()] = [$(
            Row { name: $name, about: $about, values: $values, rule: $rule, candidates: $candidates, rows: $rows },
        )*];
    };
}

use Rule::{Range, Threads};

const BLOCKS: Rule = Range(1, 64);

table! {
    TransformThreads "transform.threads" "the most threads of a block of `transform` and similar algorithms, by the bytes of a result"
        [256; 5], Threads, &[64, 128, 256, 512, 1024], &["transform", "fill", "generate", "gather"];
    DifferenceThreads "difference.threads" "the most threads of a block of `adjacent_difference`"
        [256; 5], Threads, &[64, 128, 256, 512, 1024], &["adjacent_difference"];
    ScatterThreads "scatter.threads" "the most threads of a block of `scatter`"
        [256; 5], Threads, &[64, 128, 256, 512, 1024], &["scatter"];
    SearchThreads "search.threads" "the threads of a block of `lower_bound` and `upper_bound`"
        [256; 5], Threads, &[64, 128, 256, 512, 1024], &["lower_bound"];
    ReduceBlocks "reduce.blocks" "the most blocks of `reduce`"
        [792; 5], Range(1, 65535), &[528, 792, 1024, 1056, 2048, 4096], &["reduce"];
    ReduceAlone "reduce.alone" "the most rounds, of 8192 items of four bytes, that `reduce` gives to one block"
        [1; 5], Range(1, 1024), &[1, 2, 4, 8], &["reduce"];
    ScanTiles "scan.tiles" "the number of tiles below which `inclusive_scan` and `exclusive_scan` make tiles smaller"
        [1, 64, 128, 64, 1], Range(1, 65535), &[1, 64, 128, 256, 512], &["inclusive_scan", "exclusive_scan"];
    ScanPipeline "scan.pipeline" "the least number of tiles of 28 KiB for which `inclusive_scan` and `exclusive_scan` of items in memory use a pipeline"
        [1024, 1024, 1024, 4096, 4096], Range(2, 1 << 31), &[512, 1024, 2048, 4096, 8192],
        &["inclusive_scan", "exclusive_scan"];
    ScanSegments "scan.segments" "the most items for which scans of short segments use some lanes, a warp or a block for each segment, by the bytes of an item"
        [1 << 20, 1 << 20, 1 << 20, 1 << 19, 1 << 18], Range(0, 1 << 31),
        &[0, 1 << 14, 1 << 16, 1 << 18, 1 << 19, 1 << 20, 1 << 22], &["segmented_scan"];
    RunTiles "run.tiles" "the number of tiles below which scans by key or of segments, and `run_length_encode` make tiles smaller, by the bytes of a key, or of an item of a segment"
        [256; 5], Range(1, 65535), &[64, 128, 192, 256, 384, 512],
        &["scan_by_key", "run_length_encode", "segmented_scan"];
    ReduceByKeyTiles "reduce_by_key.tiles" "the number of tiles of `reduce_by_key` that run at a time, by the bytes of a key: their sizes are those that take the least time then"
        [792; 5], Range(1, 65535), &[132, 264, 396, 528, 792, 1056], &["reduce_by_key"];
    SelectBlocks "select.blocks" "the tiles of each multiprocessor in one round of `select_if`, `partition` and similar algorithms, which take as few rounds as possible"
        [4; 5], BLOCKS, &[1, 2, 3, 4, 6, 8], &["select", "partition"];
    UniqueBlocks "unique.blocks" "the tiles of each multiprocessor in one round of `unique` and `unique_by_key`, by the bytes of a key"
        [4; 5], BLOCKS, &[1, 2, 3, 4, 6, 8], &["unique"];
    HistogramBlocks "histogram.blocks" "the most blocks of each multiprocessor in histograms"
        [3; 5], BLOCKS, &[1, 2, 3, 4, 6], &["histogram_even"];
    HistogramCopies "histogram.copies" "the most copies of a block's counters in histograms, rounded down to a power of two"
        [32; 5], Range(1, 32), &[4, 8, 16, 32], &["histogram_even"];
    SortBlocks "sort.blocks" "the most blocks of each multiprocessor that count digits in sorts by digits, by the bytes of a key"
        [2; 5], BLOCKS, &[1, 2, 3, 4], &["sort_keys", "sort_pairs"];
    SortDigits "sort_by.digits" "the least length from which on `sort_by` and `sort_pairs_by` sort numbers in memory by digits, with `Less` or `Greater`, by the bytes of a key"
        [1 << 15, 1 << 15, 1 << 18, (1 << 21) + 1, 1 << 31], Range(0, 1 << 31),
        &[0, 1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 20, (1 << 21) + 1, 1 << 22, 1 << 31],
        &["sort_by", "sort_pairs_by"];
    MergeSearching "merge.searching" "the most tiles for which each tile of `merge`, and of a sort by merges, finds its own place"
        [1024; 5], Range(0, 1 << 20), &[256, 512, 1024, 2048, 4096, 16_384, 1 << 20],
        &["merge"];
    TopKBlocks "top_k.blocks" "the most blocks of each multiprocessor in `top_k`"
        [2; 5], BLOCKS, &[1, 2, 3, 4], &["top_k"];
    TopKTiles "top_k.tiles" "the least number of tiles of 2048 items for a block of `top_k`"
        [8; 5], Range(2, 1024), &[2, 4, 8, 16, 32], &["top_k"];
}

/// The values that differ on an architecture: its compute capability, the parameter, the bytes of the class and the value. They were
/// measured there by the command of [`Tuning`](super::Tuning).
pub(super) const MEASURED: &[((u32, u32), Parameter, usize, u32)] = &[
    // An H200: `benches/results/tuning-h200.json`.
    (SM_90, Parameter::ScatterThreads, 4, 128),
    (SM_90, Parameter::SearchThreads, 4, 128),
    (SM_90, Parameter::HistogramBlocks, 1, 2),
    (SM_90, Parameter::TopKTiles, 4, 4),
];

const SM_90: (u32, u32) = (9, 0);

impl Parameter {
    pub(super) fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The name in the table and in files, such as `reduce.blocks`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// A description in one line.
    pub fn about(self) -> &'static str {
        self.row().about
    }

    /// The values that are worth trying on a GPU.
    pub fn candidates(self) -> &'static [u32] {
        self.row().candidates
    }

    /// The rows of the benchmarks on which the candidates are tried.
    #[doc(hidden)]
    pub fn rows(self) -> &'static [&'static str] {
        self.row().rows
    }

    /// Returns what is wrong with a value.
    pub(super) fn check(self, value: u32) -> Result<(), String> {
        let rule = self.row().rule;
        if rule.accepts(value) { Ok(()) } else { Err(format!("it is {rule}")) }
    }

    /// The parameter with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|parameter| parameter.name() == name)
    }
}

/// The class of items of `bytes` bytes.
pub(super) fn class(bytes: usize) -> usize {
    CLASSES.iter().position(|&most| bytes <= most).unwrap_or(CLASSES.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_values_that_kernels_accept() {
        for &parameter in Parameter::ALL {
            let row = parameter.row();
            assert!(row.values.iter().chain(row.candidates).all(|&value| row.rule.accepts(value)), "{}", row.name);
            assert!(row.values.iter().all(|value| row.candidates.contains(value)), "{}: itself is tried too", row.name);
            assert!(row.candidates.is_sorted() && !row.rows.is_empty(), "{}", row.name);
            assert_eq!(Parameter::named(row.name), Some(parameter));
        }
        for &(capability, parameter, bytes, value) in MEASURED {
            let row = parameter.row();
            assert!(row.rule.accepts(value) && CLASSES.contains(&bytes), "{capability:?} {} {value}", row.name);
            assert_ne!(row.values[class(bytes)], value, "{}: as everywhere", row.name);
            let orders = matches!(
                parameter,
                Parameter::ReduceBlocks
                    | Parameter::ReduceAlone
                    | Parameter::ScanTiles
                    | Parameter::ScanPipeline
                    | Parameter::ScanSegments
                    | Parameter::RunTiles
                    | Parameter::ReduceByKeyTiles
            );
            assert!(!orders, "{}: results are the same on all architectures", row.name);
        }
    }
}
