//! Chooses the radices, threads and lines of a block.
//!
//! A pass is limited by the bytes that it moves, unless its instructions take longer or too few lines are in flight. The best choices were
//! measured on an H100: a thread makes one butterfly in each stage, the radices are similar, a thread has 7 to 16 numbers, a block has 100
//! to 250 threads, and a multiprocessor has three blocks or more. If neighbouring lines are contiguous, a block should have 128 bytes of
//! neighbours, even if that takes many threads.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::layout;
use super::pass::{Kind, Lanes, LineAxis, LinePass};
use super::room::{CONTROL, Room};
use super::text::butterfly::{self, MOST_RADIX};
use super::text::code::{Code, Number, Real};
use crate::simt::WARP;

/// The most threads of a block: first for several lines in a row, then for one line or for lines that are contiguous.
const MOST_THREADS: [u32; 2] = [512, 1024];

/// The most numbers of a thread.
const MOST_NUMBERS: u32 = 34;

/// The most lines of a block.
const MOST_LINES: u32 = 64;

/// The bytes of lines that should be in flight in a multiprocessor.
const UNDER_WAY: f64 = 65536.0;

/// The bytes that lanes along a line should access at once. If they access fewer, lines are staged.
const SIDE_BY_SIDE: u32 = 128;

/// The longest line that is staged.
const LONGEST_STAGED: u32 = 512;

/// The most stages for which all orders are tried.
const MOST_ORDERED: usize = 4;

/// The number of instructions for each number that take as long as the number's bytes.
pub(super) const OF_BYTES: f64 = 50.0;

/// The most shared memory of a small block: that of rows of 1024 numbers of `f64`. Rows of 4096 numbers took more time, and lengths between
/// were not measured.
const SMALL: u32 = 18 << 10;

/// The registers that a half spectrum takes in addition to those of its transform.
const OF_HALF: u32 = 16;

/// The lengths for which the cost does not find the best plan, with this plan: radices in order, threads of a line, and blocks of a
/// multiprocessor. They were measured on an H100.
const MEASURED: &[(Real, u32, &[u32], u32, u32)] = &[
    (Real::F32, 7200, &[30, 30, 8], 240, 2),
    (Real::F32, 8192, &[32, 16, 16], 256, 2),
    (Real::F32, 16384, &[32, 16, 32], 512, 1),
];

/// The items that are contiguous in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Beside {
    /// The elements of a line.
    Elements,
    /// This many lines.
    Lines(u32),
    /// This many lines, all of them in each block.
    Together(u32),
    /// The elements of a line in the input, and all lines in the output.
    Turned,
}

/// A block, and its cost: about the number of instructions for each number that would take the same time.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) cost: f64,
    /// The part of the cost that is due to short pieces of memory.
    pieces: f64,
    /// They are in falling order. For a half spectrum, the last one is the radix of its stage.
    radices: Vec<u32>,
    threads: u32,
    lines: u32,
    /// The number of blocks that a multiprocessor holds.
    blocks: u32,
}

impl Choice {
    /// Returns the cost of two passes in one launch. While a block waits for its turn, other blocks of its multiprocessor should work.
    pub(super) fn of_pair(&self, other: &Self) -> f64 {
        let blocks = self.blocks.min(other.blocks);
        (self.of_pass() + other.of_pass()) * (1.0 + 0.04 * f64::from(3u32.saturating_sub(blocks)))
    }

    /// Returns the cost of the pass among other passes. It is at least the cost of its bytes.
    pub(super) fn of_pass(&self) -> f64 {
        (self.cost / self.pieces).max(OF_BYTES) * self.pieces
    }

    pub(super) fn block_threads(&self) -> u32 {
        self.threads * self.lines
    }
}

/// The blocks to search for: for lines of `n` numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Search {
    pub(super) real: Real,
    pub(super) n: u32,
    pub(super) beside: Beside,
    /// Whether the last stage makes a half spectrum.
    pub(super) half: bool,
    pub(super) room: Room,
}

impl Search {
    /// Returns the choice with the least cost. Among equal costs, it is the one with the fewest threads.
    pub(super) fn best(&self) -> Option<Choice> {
        self.by_threads().into_values().min_by(order)
    }

    /// Returns the pass of the best choice whose layout fits into a block, over lines along some axes.
    pub(super) fn best_pass(&self, axes: &[LineAxis], elements: [u32; 2]) -> Option<LinePass> {
        let mut all: Vec<Choice> = self.by_threads().into_values().collect();
        all.sort_by(order);
        all.iter().find_map(|choice| self.pass(choice, axes.to_vec(), elements))
    }

    /// Returns the best choice for each number of threads of a block.
    pub(super) fn by_threads(&self) -> BTreeMap<u32, Choice> {
        let mut all: BTreeMap<u32, Choice> = BTreeMap::new();
        // No block has the threads for a longer line.
        if self.n > MOST_NUMBERS * MOST_THREADS[1] {
            return all;
        }
        for radices in sequences(self.n).into_iter().flat_map(|radices| self.last_ones(radices)) {
            for threads in thread_counts(self.n, &radices, self.half) {
                for lines in self.line_counts() {
                    let Some(choice) = self.choice(&radices, threads, lines) else { continue };
                    let known = all.get(&choice.block_threads());
                    if known.is_none_or(|known| order(&choice, known).is_lt()) {
                        all.insert(choice.block_threads(), choice);
                    }
                }
            }
        }
        all
    }

    /// Returns the radices. For a half spectrum, it returns one list for each radix that its stage can have, with this radix last.
    fn last_ones(&self, radices: Vec<u32>) -> Vec<Vec<u32>> {
        if !self.half {
            return vec![radices];
        }
        let mut last = radices.clone();
        last.dedup();
        last.retain(|radix| (self.n / radix).is_multiple_of(2));
        let moved = |radix: u32| {
            let mut radices = radices.clone();
            radices.remove(radices.iter().position(|&other| other == radix).expect("it is one of them"));
            radices.push(radix);
            radices
        };
        last.into_iter().map(moved).collect()
    }

    fn line_counts(&self) -> Vec<u32> {
        match self.beside {
            Beside::Elements => (1..=MOST_LINES).collect(),
            Beside::Turned => (0..=MOST_LINES.ilog2()).map(|bits| 1 << bits).collect(),
            Beside::Together(lines) => vec![lines],
            Beside::Lines(lines) => {
                let powers = (0..=MOST_LINES.ilog2()).map(|bits| 1 << bits);
                powers.filter(|&power| power < lines).chain((lines <= MOST_LINES).then_some(lines)).collect()
            }
        }
    }

    /// Returns the block with these radices, threads of a line and lines, with its cost.
    fn choice(&self, radices: &[u32], threads: u32, lines: u32) -> Option<Choice> {
        let Self { real, n, beside, half, room } = *self;
        let (block, number) = (threads * lines, real.number());
        let in_a_row = beside == Beside::Elements;
        if block > MOST_THREADS[usize::from(lines == 1 || !in_a_row)] || beside == Beside::Turned && radices.len() < 2 {
            return None;
        }
        let words = number / 8;
        let last = radices.len() - 1;
        let many = |i: usize| {
            let apart = n / radices[i];
            if half && i == last { 2 * (apart / 2).div_ceil(threads) } else { apart.div_ceil(threads) }
        };
        let numbers = (0..=last).map(|i| many(i) * radices[i]).max()?;
        if numbers > MOST_NUMBERS {
            return None;
        }
        // The fraction of the butterflies of all threads that exist.
        let used = |i: usize| f64::from(n / radices[i]) / f64::from(threads * many(i));
        let stage = |i: usize| {
            let exchanges = 5 * u32::from(i > 0) + 5 * u32::from(i < last);
            (f64::from(instructions(radices[i])) / f64::from(radices[i]) + f64::from(exchanges)) / used(i)
        };
        let mut cost = 6.0 + (0..=last).map(stage).sum::<f64>();
        if (0..=last).any(|i| used(i) < 1.0) {
            cost *= 1.12;
        }
        let warps = block.next_multiple_of(WARP);
        let mut blocks = (room.registers / (warps * self.registers(radices, numbers))).min(room.blocks);
        if blocks == 0 {
            if room.registers / warps < 2 * numbers * words + 28 {
                return None;
            }
            (blocks, cost) = (1, cost * 1.1);
        }
        blocks = blocks.min(room.threads / warps);
        if radices.len() > 1 {
            let shared = lines * (n + n / 8) * number;
            if shared > room.block_shared {
                return None;
            }
            blocks = blocks.min(room.shared / (shared + CONTROL));
        }
        if blocks == 0 {
            return None;
        }
        let under_way = f64::from(blocks * lines) * f64::from(n * number);
        let enough = match (in_a_row, words) {
            (false, _) => 16,
            (true, 1) => 14,
            (true, _) => 12,
        };
        cost *= f64::from(warps) / f64::from(block);
        cost *= 1.0 + 0.02 * f64::from(numbers.saturating_sub(enough));
        cost *= 1.0 + 0.6 * ((UNDER_WAY - under_way) / UNDER_WAY).max(0.0);
        if in_a_row {
            cost *= 1.0 + 0.06 * f64::from(4u32.saturating_sub(blocks));
            cost *= 1.0 + 0.04 * f64::from(block.saturating_sub(256)) / 256.0;
        }
        if beside == Beside::Turned && words > 1 {
            // A block that is alone waits for memory twice. This was measured for `f64`, on an H200.
            cost *= 1.0 + 0.06 * f64::from(2u32.saturating_sub(blocks));
        }
        let pieces = self.pieces(threads, lines, numbers);
        Some(Choice { cost: cost * pieces, pieces, radices: radices.to_vec(), threads, lines, blocks })
    }

    /// Returns the registers of a thread that has this many numbers.
    fn registers(&self, radices: &[u32], numbers: u32) -> u32 {
        let words = self.real.number() / 8;
        let large = radices.iter().any(|&radix| radix > 16);
        if (numbers, words, large, self.half) == (16, 1, false, false) {
            // This was measured; there are no spills.
            return 64;
        }
        let of_half = if self.half { OF_HALF * words } else { 0 };
        let of_large = match (large, words) {
            (false, _) => 0,
            (true, 1) => 24,
            (true, _) => 32,
        };
        (2 * numbers * words + 40 + of_large + of_half).next_multiple_of(8).min(255)
    }

    /// Returns the cost factor of a block's accesses. It depends on the length of the pieces of memory that have the block's numbers. A
    /// thread has `numbers` numbers.
    fn pieces(&self, threads: u32, lines: u32, numbers: u32) -> f64 {
        let Self { real, n, beside, half, .. } = *self;
        let number = real.number();
        let along = u64::from(threads * number);
        match beside {
            Beside::Elements if half => of_pieces(along),
            // Blocks with many large lines use the registers to wait for memory.
            Beside::Elements if along < u64::from(SIDE_BY_SIDE) => {
                if numbers > 16 && n > MOST_RADIX {
                    1.3
                } else {
                    1.04
                }
            }
            Beside::Elements => 1.0,
            // All numbers of a block are in a row, or the pieces of each element are.
            Beside::Lines(all) if lines == all => of_pieces(along * u64::from(lines)),
            Beside::Lines(_) | Beside::Together(_) => of_pieces(u64::from(lines * number)),
            // The cache puts together the pieces that are written.
            Beside::Turned => {
                let written = 1.0 + 0.6 * (of_pieces(u64::from(lines * number)) - 1.0);
                f64::midpoint(of_pieces(along), written)
            }
        }
    }

    /// Returns the pass of a choice, over lines along some axes, if its layout fits into a block.
    pub(super) fn pass(&self, choice: &Choice, axes: Vec<LineAxis>, elements: [u32; 2]) -> Option<LinePass> {
        let Self { real, n, beside, half, room } = *self;
        let Choice { radices, threads, lines, blocks, .. } = choice.clone();
        let lanes = match beside {
            Beside::Elements => [Lanes::Along; 2],
            Beside::Lines(_) | Beside::Together(_) => [Lanes::Across; 2],
            Beside::Turned => [Lanes::Along, Lanes::Across],
        };
        let in_a_row = beside == Beside::Elements && !half && elements == [1; 2];
        let mut pass = LinePass {
            real,
            radices,
            threads,
            lines,
            blocks,
            axes,
            elements,
            lanes,
            kind: if half { Kind::RealForward } else { Kind::Complex },
            inverse: false,
            factors: None,
            staged: in_a_row && threads * real.number() < SIDE_BY_SIDE && n <= LONGEST_STAGED,
            padded: false,
            fresh: false,
            streamed: [false; 2],
            scaled: false,
            shared: 0,
            split: [false; 2],
            of_reals: false,
            halved: false,
        };
        let measured = MEASURED.iter().find(|measured| (measured.0, measured.1) == (real, n) && room == Room::of(90));
        match measured.filter(|_| in_a_row) {
            Some(&(_, _, order, of_line, of_multiprocessor)) => {
                (pass.radices, pass.threads) = (order.to_vec(), of_line);
                (pass.lines, pass.blocks) = (1, of_multiprocessor);
                pass.shared = shared_of(room, of_multiprocessor);
            }
            None => {
                pass.shared = shared_of(room, blocks);
                pass = ordered(pass);
            }
        }
        (layout::memory(&pass) <= room.block_shared).then_some(pass)
    }
}

/// Returns the shared memory of a multiprocessor for passes whose blocks are small. With more, there are more blocks at a time, and they
/// wait longer for memory. On an H200 (driver 580.159.04), rows of 1024 numbers of `f64` took 6 % less time than with the driver's choice,
/// and shorter rows up to 1 % less. Convolutions took more time.
pub(super) fn carveout(pass: &LinePass) -> Option<usize> {
    let is_small = (1..=SMALL).contains(&layout::memory(pass)) && !pass.is_convolution();
    is_small.then_some(100 << 10)
}

/// Returns the bytes of shared memory that each block has, if a multiprocessor has this many blocks.
fn shared_of(room: Room, blocks: u32) -> u32 {
    (room.shared / blocks - CONTROL).min(room.block_shared)
}

/// Compares choices by cost, rounded to a hundredth of an instruction, and then by threads.
fn order(a: &Choice, b: &Choice) -> Ordering {
    let hundredths = |choice: &Choice| (choice.cost * 100.0).round();
    hundredths(a).total_cmp(&hundredths(b)).then(a.block_threads().cmp(&b.block_threads()))
}

/// Returns the cost of an access to pieces of this many bytes, relative to an access to whole lines of the cache. It was measured on an
/// H100, with contiguous neighbouring lines.
fn of_pieces(bytes: u64) -> f64 {
    match bytes {
        256.. => 1.0,
        128.. => 1.014,
        64.. => 1.1,
        32.. => 1.35,
        16.. => 3.0,
        _ => 5.0,
    }
}

/// Returns a pass over `count` lines in a row, if their length has no prime factor above [`MOST_PRIME`](butterfly::MOST_PRIME) and a block
/// holds a line.
#[cfg(test)]
pub(super) fn rows(real: Real, n: u32, count: u32, room: Room) -> Option<LinePass> {
    let search = Search { real, n, beside: Beside::Elements, half: false, room };
    search.best_pass(&[LineAxis::new(count, [n; 2])], [1; 2])
}

/// Returns the lists of radices whose product is `n`, in falling order. They have the least number of radices, or one more.
fn sequences(n: u32) -> Vec<Vec<u32>> {
    fn look(n: u32, most: u32, radices: &mut Vec<u32>, all: &mut Vec<Vec<u32>>) {
        if n == 1 {
            return all.push(radices.clone());
        }
        for radix in (2..=most.min(n)).rev().filter(|&radix| n.is_multiple_of(radix)) {
            radices.push(radix);
            look(n / radix, radix, radices, all);
            radices.pop();
        }
    }
    let mut all = Vec::new();
    if n > 1 {
        look(n, MOST_RADIX, &mut Vec::new(), &mut all);
    }
    let least = all.iter().map(Vec::len).min().unwrap_or(0);
    all.retain(|radices| radices.len() <= least + 1);
    all
}

/// Returns the numbers of threads that a line may have: those that have whole butterflies of a stage.
fn thread_counts(n: u32, radices: &[u32], half: bool) -> Vec<u32> {
    let of_half = radices.last().filter(|_| half).map(|last| n / last / 2);
    let mut counts: Vec<u32> = radices
        .iter()
        .flat_map(|radix| (1..=16).map(move |many| radix * many))
        .filter(|numbers| (4..=MOST_NUMBERS).contains(numbers))
        .map(|numbers| n.div_ceil(numbers))
        .chain([1])
        .chain(of_half)
        .filter(|&threads| threads <= MOST_THREADS[1])
        .collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// Returns the number of instructions of a butterfly.
fn instructions(radix: u32) -> u32 {
    static COUNTS: OnceLock<Vec<u32>> = OnceLock::new();
    let counts = COUNTS.get_or_init(|| {
        (0..=MOST_RADIX)
            .map(|radix| {
                let mut code = Code::new(Real::F32, 90, 78);
                let x: Vec<Number> =
                    (0..radix).map(|_| Number::of([(); 2].map(|()| code.e.reg(Real::F32.class())))).collect();
                butterfly::transform(&mut code, &x);
                code.e.body.lines().count() as u32
            })
            .collect()
    });
    counts[radix as usize]
}

/// Returns the pass with the order of radices that takes the fewest accesses of shared memory and of roots. The radix of a half spectrum
/// stays last.
fn ordered(pass: LinePass) -> LinePass {
    if pass.radices.len() > MOST_ORDERED {
        return pass;
    }
    let last = if pass.kind == Kind::Complex { None } else { pass.radices.last().copied() };
    let mut best: Option<(u32, LinePass)> = None;
    let mut radices = pass.radices[..pass.radices.len() - usize::from(last.is_some())].to_vec();
    orders(&mut radices, 0, &mut |radices| {
        let radices = radices.iter().copied().chain(last).collect();
        let pass = LinePass { radices, ..pass.clone() };
        let roots: u32 = pass.stages()[1..].iter().map(|stage| pass.butterflies(stage) * (stage.radix - 1)).sum();
        let cost = layout::accesses(&pass) + 2 * roots;
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, pass));
        }
    });
    best.map_or(pass, |(_, pass)| pass)
}

/// Calls `f` with each order of the radices from index `from`.
fn orders(radices: &mut [u32], from: usize, f: &mut impl FnMut(&[u32])) {
    if from + 1 >= radices.len() {
        return f(radices);
    }
    for i in from..radices.len() {
        if !radices[from..i].contains(&radices[i]) {
            radices.swap(from, i);
            orders(radices, from + 1, f);
            radices.swap(from, i);
        }
    }
}
