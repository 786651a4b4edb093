//! Chooses the kernels that make the transforms of an array, and the memory that each reads and writes. These are plain values, without any
//! device.
//!
//! | axis | passes |
//! |---|---|
//! | lines in a row that a block holds | one |
//! | lines side by side of which a block holds 32 bytes of neighbours, or what takes less time than two passes | one |
//! | a product of two such lengths | two: a matrix of columns and rows (Bailey, 1990) |
//! | a product of three | three: a matrix whose rows are matrices |
//!
//! A real array takes the transforms of its pairs of numbers, which are halved. The last stage of these makes the half spectrum. If a block
//! does not hold the pairs, a pass of its own makes it. Two passes are one launch, a [`FusedPair`], if they follow each other on a part of
//! the array that fits in the cache, such as some columns of a row of 2^26 numbers. Rows of 2^24 complex numbers, or 2^26 of `f32`, have
//! passes of their own ([`ahead`]), where blocks are large enough.

use std::fmt;

use super::pass::LinePass;
use super::room::Limits;
use super::text::ahead::{AheadPass, LINE, Side};
use super::text::butterfly::MOST_PRIME;
use super::text::code::Real;
use super::text::fused::FusedPair;
use super::text::spectrum::SpectrumPass;
use crate::algorithms::fourier::FftKind;

mod axes;
mod pairs;
#[cfg(test)]
mod tests;

use axes::Along;

/// An array has fewer numbers than this. Kernels count them by 32 bits, including those of a block that are after the array.
const MOST_NUMBERS: usize = 1 << 31;

/// A memory that passes read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum Area {
    Input,
    Output,
    /// One of two temporary arrays.
    Temporary(usize),
}

/// The work of a launch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum Work {
    Pass(LinePass),
    Pair(FusedPair),
    Spectrum(SpectrumPass),
    Ahead(AheadPass),
}

/// A launch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct Step {
    pub(in super::super) work: Work,
    pub(in super::super) from: Area,
    pub(in super::super) to: Area,
}

/// The launches of the transforms of an array, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Plan {
    pub(in super::super) steps: Vec<Step>,
    /// The numbers of the temporary arrays.
    pub(in super::super) temporary: [usize; 2],
    /// The numbers of the longest ring between two fused passes.
    pub(in super::super) ring: usize,
    /// The most counters of a launch, or of two passes that follow each other.
    pub(in super::super) counters: usize,
}

/// The reason why an array has no generated kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Refusal {
    /// It has too many numbers.
    Numbers,
    /// The length of an axis has a large prime factor, or is too long.
    Axis(usize),
    /// The real axis is not the last one of the array, its length is odd, or half of it has a large prime factor or is too long.
    RealAxis(usize),
    /// There are no numbers, or all axes have the length 1.
    Nothing,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Numbers => write!(f, "the array has {MOST_NUMBERS} numbers or more"),
            Self::Axis(axis) => {
                write!(
                    f,
                    "the length of axis {axis} has a prime factor above {MOST_PRIME} or takes more than three passes"
                )
            }
            Self::RealAxis(axis) => write!(
                f,
                "the real axis {axis} is not the last one of the array, has an odd length, or half of its length has a prime factor above \
                 {MOST_PRIME} or takes more than three passes"
            ),
            Self::Nothing => f.write_str("there is nothing to transform"),
        }
    }
}

/// Work that has no memory yet.
struct Draft {
    work: Work,
    /// Whether the places of results differ from those of the numbers that they are made of, so that one memory cannot have both.
    moves: bool,
}

/// Returns the plan of an array of a shape, with transforms along some axes. The last axis of the list is the one of a real array.
pub(in super::super) fn plan(
    real: Real,
    shape: &[usize],
    axes: &[usize],
    kind: FftKind,
    limits: Limits,
) -> Result<Plan, Refusal> {
    let items = shape.iter().try_fold(1usize, |all, &extent| all.checked_mul(extent));
    match items {
        Some(0) => return Err(Refusal::Nothing),
        Some(1..MOST_NUMBERS) => {}
        _ => return Err(Refusal::Numbers),
    }
    let last = axes[axes.len() - 1];
    let of_real = matches!(kind, FftKind::RealForward | FftKind::RealInverse);
    let inverse = matches!(kind, FftKind::Inverse | FftKind::RealInverse);
    // The shape of complex numbers.
    let mut numbers = shape.to_vec();
    if of_real {
        if last + 1 != shape.len() || !shape[last].is_multiple_of(2) {
            return Err(Refusal::RealAxis(last));
        }
        numbers[last] = shape[last] / 2 + 1;
    }
    let mut order = axes.to_vec();
    order.sort_unstable_by_key(|&axis| std::cmp::Reverse(axis));
    if kind == FftKind::RealInverse {
        order.rotate_left(1);
    }
    let mut drafts = Vec::new();
    let mut rest = &order[..];
    while let Some((&axis, others)) = rest.split_first() {
        rest = others;
        let along = Along::new(&numbers, axis);
        if of_real && axis == last {
            let Some(pass) = axes::half(real, shape[last], along, inverse, limits) else {
                spectrum(&mut drafts, real, Along { n: along.n - 1, ..along }, inverse, limits)
                    .ok_or(Refusal::RealAxis(last))?;
                continue;
            };
            let pair = others.first().filter(|&&next| next + 1 == axis && !inverse);
            match pair.and_then(|_| pairs::real_planes(&pass, numbers[axis - 1], along, limits)) {
                Some(pair) => {
                    rest = &others[1..];
                    drafts.push(Draft { work: Work::Pair(pair), moves: true });
                }
                None => drafts.push(Draft { work: Work::Pass(pass), moves: true }),
            }
            continue;
        }
        let next = others.first().filter(|&&next| next + 1 == axis && along.inner == 1);
        if let Some(pair) = next.and_then(|&next| pairs::planes(real, [numbers[next], numbers[axis]], along, limits)) {
            rest = &others[1..];
            drafts.push(Draft { work: Work::Pair(pair), moves: false });
            continue;
        }
        complex(&mut drafts, real, along, limits).ok_or(Refusal::Axis(axis))?;
    }
    if drafts.is_empty() {
        return Err(Refusal::Nothing);
    }
    for draft in &mut drafts {
        for pass in draft.work.passes_mut() {
            pass.inverse = inverse;
        }
    }
    let plan = placed(drafts, kind, numbers.iter().product());
    Ok(if kind == FftKind::RealForward { plan.halved() } else { plan })
}

/// Returns the plan whose passes [copy ahead](super::text::ahead), if there is one for the forward transforms along an axis of an array of
/// complex numbers. Its input must begin at a multiple of 16 bytes.
pub(in super::super) fn ahead(real: Real, shape: &[usize], axes: &[usize], limits: Limits) -> Option<Plan> {
    let numbers = shape.iter().try_fold(1usize, |all, &extent| all.checked_mul(extent))?;
    let &n = shape.last().filter(|_| axes == [shape.len() - 1])?;
    let cluster = [1, 2].into_iter().find(|cluster| n == ((LINE * cluster) as usize).pow(2))?;
    // Clusters that shared lines of `f64` took more time than ordinary passes on an H200.
    if numbers == 0 || numbers >= MOST_NUMBERS || (real == Real::F64 && cluster > 1) {
        return None;
    }
    let (lines, count) = (LINE * cluster, (numbers / n) as u32);
    let pass = |side| AheadPass { real, side, cluster, lines, count, inverse: false, scaled: false };
    let passes = [Side::Columns, Side::Rows].map(pass);
    if passes.iter().any(|pass| pass.shared() > limits.room.block_shared) {
        return None;
    }
    let between = Area::Temporary(0);
    let [columns, rows] = passes.map(Work::Ahead);
    let counters = columns.counters();
    let steps = vec![
        Step { work: columns, from: Area::Input, to: between },
        Step { work: rows, from: between, to: Area::Output },
    ];
    Some(Plan { steps, temporary: [numbers, 0], ring: 0, counters })
}

/// Appends the passes of an axis.
fn complex(drafts: &mut Vec<Draft>, real: Real, along: Along, limits: Limits) -> Option<()> {
    if along.n == 1 {
        return Some(());
    }
    match pairs::long_rows(real, along, limits) {
        Some(pair) => {
            drafts.push(Draft { work: Work::Pair(pair), moves: false });
            Some(())
        }
        None => {
            let begin = drafts.len();
            axes::append(drafts, real, along, limits)?;
            if drafts.len() - begin == 3
                && let Some((pair, rows)) = pairs::long_columns(real, along, limits)
            {
                drafts.truncate(begin);
                drafts.push(Draft { work: Work::Pair(pair), moves: false });
                drafts.push(Draft { work: Work::Pass(rows), moves: true });
            }
            Some(())
        }
    }
}

/// Appends the passes of the transforms of pairs of real numbers, and the pass of their half spectra.
fn spectrum(drafts: &mut Vec<Draft>, real: Real, pairs: Along, inverse: bool, limits: Limits) -> Option<()> {
    let Along { outer: lines, n, .. } = pairs;
    let pass = SpectrumPass { real, pairs: n, lines, inverse, halved: false, scaled: false, split: [false; 2] };
    let draft = Draft { work: Work::Spectrum(pass), moves: true };
    if inverse {
        drafts.push(draft);
        return complex(drafts, real, pairs, limits);
    }
    complex(drafts, real, pairs, limits)?;
    drafts.push(draft);
    Some(())
}

/// Gives each pass its memories, from the last to the first. A pass that moves numbers reads another memory than it writes.
fn placed(drafts: Vec<Draft>, kind: FftKind, numbers: usize) -> Plan {
    let mut plan = Plan::default();
    let mut to = Area::Output;
    // An output of real numbers is too short for half spectra, but not for the transforms of pairs.
    let turns = match kind {
        FftKind::RealInverse => [Area::Temporary(0), Area::Temporary(1)],
        _ => [Area::Temporary(0), Area::Output],
    };
    let first = drafts.len() - 1;
    for (i, Draft { work, moves }) in drafts.into_iter().rev().enumerate() {
        let between = match (moves, to == turns[0]) {
            (false, _) => to,
            (true, false) => turns[0],
            (true, true) => turns[1],
        };
        let from = if i == first { Area::Input } else { between };
        for area in [from, to] {
            if let Area::Temporary(which) = area {
                plan.temporary[which] = numbers;
            }
        }
        if let Work::Pair(pair) = &work {
            plan.ring = plan.ring.max(pair.ring_numbers());
        }
        plan.counters = plan.counters.max(work.counters());
        plan.steps.push(Step { work, from, to });
        to = between;
    }
    plan.steps.reverse();
    plan
}

impl Work {
    /// The passes, in order.
    pub(super) fn passes_mut(&mut self) -> &mut [LinePass] {
        match self {
            Self::Pass(pass) => std::slice::from_mut(pass),
            Self::Pair(pair) => &mut pair.passes,
            Self::Spectrum(_) | Self::Ahead(_) => &mut [],
        }
    }

    /// Returns the number of counters that the launch is given.
    pub(super) fn counters(&self) -> usize {
        match self {
            Self::Pair(pair) => pair.counters() as usize,
            Self::Ahead(pass) => pass.counters() as usize,
            Self::Pass(_) | Self::Spectrum(_) => 0,
        }
    }

    /// Returns whether the counters must be 0 before the launch. Of two passes that copy ahead, the second one has a counter that the first
    /// one leaves as it is.
    pub(super) fn begins_to_count(&self) -> bool {
        match self {
            Self::Ahead(pass) => pass.counters() > 0 && pass.side == Side::Columns,
            _ => self.counters() > 0,
        }
    }

    /// Returns the parameters after the addresses. If results are multiplied by a factor, `scale` has its bits.
    pub(super) fn words(&self, scale: u64) -> Vec<u64> {
        match self {
            Self::Pass(pass) => vec![pass.bound().into(), scale],
            Self::Spectrum(pass) => vec![pass.bound().into(), scale],
            Self::Ahead(pass) => vec![pass.tiles().into(), scale],
            Self::Pair(_) => vec![scale],
        }
    }
}

impl Plan {
    /// Returns the least PTX version, times ten, of passes that copy ahead. It is 0 if there are none.
    pub(super) fn ptx(&self) -> u32 {
        let of_step = |step: &Step| match &step.work {
            Work::Ahead(pass) => pass.ptx(),
            _ => 0,
        };
        self.steps.iter().map(of_step).max().unwrap_or(0)
    }

    /// Returns the most blocks that share memory in a launch.
    pub(super) fn cluster(&self) -> u32 {
        let of_step = |step: &Step| match &step.work {
            Work::Ahead(pass) => pass.cluster,
            _ => 1,
        };
        self.steps.iter().map(of_step).max().unwrap_or(1)
    }

    /// Returns the plan whose results are multiplied by a factor. The last launch gives the factor.
    pub(in super::super) fn scaled(mut self) -> Self {
        match self.steps.last_mut().map(|step| &mut step.work) {
            Some(Work::Pass(pass)) => pass.scaled = true,
            Some(Work::Pair(pair)) => pair.passes[1].scaled = true,
            Some(Work::Spectrum(pass)) => pass.scaled = true,
            Some(Work::Ahead(pass)) => pass.scaled = true,
            None => {}
        }
        self
    }

    /// Returns the plan for an input, or an output, whose numbers may not be aligned to their size.
    pub(in super::super) fn split(mut self, [input, output]: [bool; 2]) -> Self {
        for Step { work, from, to } in &mut self.steps {
            let is_split = |area| area == Area::Input && input || area == Area::Output && output;
            let ends = [is_split(*from), is_split(*to)];
            match work {
                Work::Pass(pass) => pass.split = ends,
                Work::Spectrum(pass) => pass.split = ends,
                // It is for aligned numbers only.
                Work::Ahead(_) => debug_assert_eq!(ends, [false; 2]),
                // The ring is between both passes, or the memory that the second pass replaces.
                Work::Pair(pair) => {
                    let between = pair.ring == 0 && ends[1];
                    (pair.passes[0].split, pair.passes[1].split) = ([ends[0], between], [between, ends[1]]);
                }
            }
        }
        self
    }

    /// Returns the plan whose first launch halves the numbers that it reads. For a real array, these are its pairs of numbers.
    fn halved(mut self) -> Self {
        match self.steps.first_mut().map(|step| &mut step.work) {
            Some(Work::Pass(pass)) => pass.halved = true,
            Some(Work::Pair(pair)) => pair.passes[0].halved = true,
            Some(Work::Spectrum(pass)) => pass.halved = true,
            // Passes that copy ahead are for complex numbers.
            Some(Work::Ahead(_)) | None => {}
        }
        self
    }

    /// Returns the plan for real numbers as complex ones. It computes all results, and no half spectrum.
    pub(in super::super) fn of_reals(mut self) -> Self {
        if let Some(pass) = self.steps.first_mut().and_then(|step| step.work.passes_mut().first_mut()) {
            pass.of_reals = true;
        }
        self
    }

    /// Returns the plan of the inverse transforms.
    pub(in super::super) fn inverse(mut self) -> Self {
        for step in &mut self.steps {
            if let Work::Ahead(pass) = &mut step.work {
                pass.inverse = true;
            }
            for pass in step.work.passes_mut() {
                pass.inverse = true;
            }
        }
        self
    }
}
