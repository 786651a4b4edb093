//! Which kernels make the transforms of an array, and which memory each reads and writes: values alone, without any device.
//!
//! | axis | passes |
//! |---|---|
//! | lines in a row that a block holds | one |
//! | lines side by side of which a block holds 32 bytes of neighbours, or what takes less time than two passes | one |
//! | a product of two such lengths | two: a matrix of columns and rows (Bailey, 1990) |
//! | a product of three | three: a matrix whose rows are matrices |
//!
//! Real arrays take the transforms of their pairs, whose last stage makes the half spectrum, or a further pass where a block does not hold them.
//! Two passes that follow each other on a part of the array that fits in the cache are one launch, a [`FusedPair`].

use std::fmt;

use super::pass::LinePass;
use super::room::Limits;
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

/// Numbers of an array. Kernels count them by 32 bits, and those of a block that lie after the array, too.
const MOST_NUMBERS: usize = 1 << 31;

/// A memory that passes read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum Area {
    Input,
    Output,
    /// One of two temporary arrays.
    Temporary(usize),
}

/// What a launch does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum Work {
    Pass(LinePass),
    Pair(FusedPair),
    Spectrum(SpectrumPass),
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
    /// Numbers of the temporary arrays.
    pub(in super::super) temporary: [usize; 2],
    /// Numbers of the longest ring between two fused passes.
    pub(in super::super) ring: usize,
    /// The most counters of fused passes.
    pub(in super::super) counters: usize,
}

/// Why an array has no generated kernels.
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

/// Work to be placed.
struct Draft {
    work: Work,
    /// Whether results have other places than what they are made of, so that both cannot be in one memory.
    moves: bool,
}

/// The plan of an array of a shape, with transforms along some axes, the last one of which is that of a real array.
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
    // Of complex numbers.
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
    Ok(placed(drafts, kind, numbers.iter().product()))
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
        None => axes::append(drafts, real, along, limits),
    }
}

/// Appends the passes of the transforms of pairs of real numbers, and that of their half spectra.
fn spectrum(drafts: &mut Vec<Draft>, real: Real, pairs: Along, inverse: bool, limits: Limits) -> Option<()> {
    let pass = SpectrumPass { real, pairs: pairs.n, lines: pairs.outer, inverse, scaled: false, split: [false; 2] };
    let draft = Draft { work: Work::Spectrum(pass), moves: true };
    if inverse {
        drafts.push(draft);
        return complex(drafts, real, pairs, limits);
    }
    complex(drafts, real, pairs, limits)?;
    drafts.push(draft);
    Some(())
}

/// With the memories of each. Going back from the output, a pass that moves numbers reads another memory than it writes.
fn placed(drafts: Vec<Draft>, kind: FftKind, numbers: usize) -> Plan {
    let mut plan = Plan::default();
    let mut to = Area::Output;
    // An output of real numbers is too short for half spectra. The transforms of pairs fit.
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
            plan.counters = plan.counters.max(pair.counters() as usize);
        }
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
            Self::Spectrum(_) => &mut [],
        }
    }

    /// The parameters after the addresses. If results are multiplied by a factor, `scale` has its bits.
    pub(super) fn words(&self, scale: u64) -> Vec<u64> {
        match self {
            Self::Pass(pass) => vec![pass.bound().into(), scale],
            Self::Spectrum(pass) => vec![pass.bound().into(), scale],
            Self::Pair(_) => vec![scale],
        }
    }
}

impl Plan {
    /// With results multiplied by a factor, which the last launch gives.
    pub(in super::super) fn scaled(mut self) -> Self {
        match self.steps.last_mut().map(|step| &mut step.work) {
            Some(Work::Pass(pass)) => pass.scaled = true,
            Some(Work::Pair(pair)) => pair.passes[1].scaled = true,
            Some(Work::Spectrum(pass)) => pass.scaled = true,
            None => {}
        }
        self
    }

    /// That of an input, or an output, whose numbers may lie between two whole ones.
    pub(in super::super) fn split(mut self, [input, output]: [bool; 2]) -> Self {
        for Step { work, from, to } in &mut self.steps {
            let is_split = |area| area == Area::Input && input || area == Area::Output && output;
            let ends = [is_split(*from), is_split(*to)];
            match work {
                Work::Pass(pass) => pass.split = ends,
                Work::Spectrum(pass) => pass.split = ends,
                // Between both is the ring, or what the second one replaces.
                Work::Pair(pair) => {
                    let between = pair.ring == 0 && ends[1];
                    (pair.passes[0].split, pair.passes[1].split) = ([ends[0], between], [between, ends[1]]);
                }
            }
        }
        self
    }

    /// That of real numbers, as complex ones. All are there: no half spectrum.
    pub(in super::super) fn of_reals(mut self) -> Self {
        if let Some(pass) = self.steps.first_mut().and_then(|step| step.work.passes_mut().first_mut()) {
            pass.of_reals = true;
        }
        self
    }

    /// That of the inverse transforms.
    pub(in super::super) fn inverse(mut self) -> Self {
        for pass in self.steps.iter_mut().flat_map(|step| step.work.passes_mut()) {
            pass.inverse = true;
        }
        self
    }
}
