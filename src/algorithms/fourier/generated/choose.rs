//! Which radices, threads and lines a block has for lines that lie in a row.
//!
//! The time of a pass is that of its bytes, unless its instructions take longer or too few lines are under way. What is best was measured
//! on an H100: one butterfly a thread and stage, radices of like size, 7 to 16 numbers a thread, 100 to 250 threads a block, three blocks
//! or more a multiprocessor.

use std::sync::OnceLock;

use super::butterfly::{self, MOST_RADIX};
use super::code::{Code, Number, Real};
use super::layout;
use super::pass::{Kind, Lanes, LineAxis, LinePass};

/// What a multiprocessor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct Room {
    /// Bytes of shared memory, of all blocks and of one.
    pub(super) shared: u32,
    pub(super) registers: u32,
    pub(super) blocks: u32,
}

impl Room {
    /// That of sm_90.
    pub(super) const H100: Self = Self { shared: 227 << 10, registers: 1 << 16, blocks: 32 };
}

/// Shared memory that a block takes for itself.
const CONTROL: u32 = 1 << 10;

/// Threads of a block, of several lines and of one.
const MOST_THREADS: [u32; 2] = [512, 1024];

/// Numbers of a thread.
const MOST_NUMBERS: u32 = 34;

/// Bytes of lines that should be under way in a multiprocessor.
const UNDER_WAY: f64 = 65536.0;

/// Bytes that lanes along a line should access at once, or lines are staged.
const SIDE_BY_SIDE: u32 = 128;

/// The longest line that is staged.
const LONGEST_STAGED: u32 = 512;

/// Stages whose orders are all looked at.
const MOST_ORDERED: usize = 4;

/// Lengths whose best plan the cost does not find: radices in order, threads of a line, blocks of a multiprocessor. Measured on an H100.
const MEASURED: &[(Real, u32, &[u32], u32, u32)] = &[
    (Real::F32, 7200, &[30, 30, 8], 240, 2),
    (Real::F32, 8192, &[32, 16, 16], 256, 2),
    (Real::F32, 16384, &[32, 16, 32], 512, 1),
];

#[derive(Clone, Debug)]
struct Choice {
    cost: f64,
    radices: Vec<u32>,
    threads: u32,
    lines: u32,
    /// Blocks that a multiprocessor holds.
    blocks: u32,
}

/// A pass over `count` lines in a row, if their length has no prime factor above [`MOST_PRIME`](butterfly::MOST_PRIME) and a block holds
/// one.
pub(in super::super) fn rows(real: Real, n: u32, count: u32, room: Room) -> Option<LinePass> {
    let mut best: Option<Choice> = None;
    for radices in sequences(n) {
        for threads in thread_counts(n, &radices) {
            for lines in 1..=64 {
                let Some(choice) = choice(real, n, &radices, threads, lines, room) else { continue };
                let block = choice.threads * choice.lines;
                let is_better = |best: &Choice| {
                    let (a, b) = ((choice.cost * 100.0).round(), (best.cost * 100.0).round());
                    a < b || a == b && block < best.threads * best.lines
                };
                if best.as_ref().is_none_or(is_better) {
                    best = Some(choice);
                }
            }
        }
    }
    let Choice { mut radices, mut threads, mut lines, mut blocks, .. } = best?;
    let measured = MEASURED.iter().find(|measured| (measured.0, measured.1) == (real, n) && room == Room::H100);
    if let Some(&(_, _, order, of_line, of_multiprocessor)) = measured {
        (radices, threads, lines, blocks) = (order.to_vec(), of_line, 1, of_multiprocessor);
    }
    let pass = LinePass {
        real,
        radices,
        threads,
        lines,
        blocks,
        axes: vec![LineAxis::new(count, [n; 2])],
        elements: [1; 2],
        lanes: [Lanes::Along; 2],
        kind: Kind::Complex,
        inverse: false,
        factors: None,
        staged: threads * real.number() < SIDE_BY_SIDE && n <= LONGEST_STAGED,
        padded: false,
        fresh: false,
    };
    Some(if measured.is_some() { pass } else { ordered(pass) })
}

/// Radices with a product, in falling order: the fewest, or one more.
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

/// How many threads a line may have: so that they have some whole butterflies of a stage.
fn thread_counts(n: u32, radices: &[u32]) -> Vec<u32> {
    let mut counts: Vec<u32> = radices
        .iter()
        .flat_map(|radix| (1..=16).map(move |many| radix * many))
        .filter(|numbers| (4..=MOST_NUMBERS).contains(numbers))
        .map(|numbers| n.div_ceil(numbers))
        .chain([1])
        .filter(|&threads| threads <= MOST_THREADS[1])
        .collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// Instructions of a butterfly.
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

/// The cost of a block of so many threads and lines, in instructions a number.
fn choice(real: Real, n: u32, radices: &[u32], threads: u32, lines: u32, room: Room) -> Option<Choice> {
    let (block, number) = (threads * lines, real.number());
    if block > MOST_THREADS[usize::from(lines == 1)] {
        return None;
    }
    let words = number / 8;
    let numbers = radices.iter().map(|radix| (n / radix).div_ceil(threads) * radix).max()?;
    if numbers > MOST_NUMBERS {
        return None;
    }
    // Of all threads' butterflies, those that are there.
    let used = |radix: u32| f64::from(n / radix) / f64::from(threads * (n / radix).div_ceil(threads));
    let last = radices.len() - 1;
    let stage = |(i, &radix): (usize, &u32)| {
        let exchanges = 5 * u32::from(i > 0) + 5 * u32::from(i < last);
        (f64::from(instructions(radix)) / f64::from(radix) + f64::from(exchanges)) / used(radix)
    };
    let mut cost = 6.0 + radices.iter().enumerate().map(stage).sum::<f64>();
    if radices.iter().any(|&radix| used(radix) < 1.0) {
        cost *= 1.12;
    }
    // Registers of a thread, and the blocks that there are then.
    let large = u32::from(radices.iter().any(|&radix| radix > 16));
    let registers = if (numbers, words, large) == (16, 1, 0) {
        // As measured: without spills.
        64
    } else {
        (2 * numbers * words + 40 + large * if words == 1 { 24 } else { 32 }).next_multiple_of(8).min(255)
    };
    let warps = block.div_ceil(32) * 32;
    let mut blocks = (room.registers / (warps * registers)).min(room.blocks);
    if blocks == 0 {
        if room.registers / warps < 2 * numbers * words + 28 {
            return None;
        }
        (blocks, cost) = (1, cost * 1.1);
    }
    if radices.len() > 1 {
        let shared = lines * (n + n / 8) * number;
        blocks = blocks.min(room.shared / (shared + CONTROL));
    }
    if blocks == 0 {
        return None;
    }
    let under_way = f64::from(blocks * lines * n * number);
    let many = if words == 1 { 14 } else { 12 };
    cost *= f64::from(warps) / f64::from(block);
    cost *= 1.0 + 0.02 * f64::from(numbers.saturating_sub(many));
    cost *= 1.0 + 0.06 * f64::from(4u32.saturating_sub(blocks));
    cost *= 1.0 + 0.6 * ((UNDER_WAY - under_way) / UNDER_WAY).max(0.0);
    cost *= 1.0 + 0.04 * f64::from(block.saturating_sub(256)) / 256.0;
    if threads * number < SIDE_BY_SIDE {
        // Blocks with many large lines take their registers for waiting.
        cost *= if numbers > 16 && n > MOST_RADIX { 1.3 } else { 1.04 };
    }
    Some(Choice { cost, radices: radices.to_vec(), threads, lines, blocks })
}

/// With the order of the radices that takes the fewest accesses of shared memory, and of roots.
fn ordered(pass: LinePass) -> LinePass {
    if pass.radices.len() > MOST_ORDERED {
        return pass;
    }
    let mut best: Option<(u32, LinePass)> = None;
    let mut radices = pass.radices.clone();
    orders(&mut radices, 0, &mut |radices| {
        let pass = LinePass { radices: radices.to_vec(), ..pass.clone() };
        let roots: u32 = pass.stages()[1..].iter().map(|stage| pass.butterflies(stage) * (stage.radix - 1)).sum();
        let cost = layout::accesses(&pass) + 2 * roots;
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, pass));
        }
    });
    best.map_or(pass, |(_, pass)| pass)
}

/// Calls `f` with all orders of the radices from `from` on.
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
