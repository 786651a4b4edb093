//! The passes of one axis.

use super::{Draft, Work};
use crate::algorithms::fourier::generated::choose::{Beside, OF_BYTES, Search};
use crate::algorithms::fourier::generated::layout;
use crate::algorithms::fourier::generated::pass::{Kind, LineAxis, LinePass, OuterFactors};
use crate::algorithms::fourier::generated::room::Limits;
use crate::algorithms::fourier::generated::text::code::Real;
use crate::algorithms::fourier::generated::text::convolution::{convolution, is_smooth};

/// The lengths of lines that together make a longer line.
const PARTS: std::ops::RangeInclusive<u32> = 16..=1 << 13;

/// An axis of an array: the number of coordinates before it, along it, and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Along {
    pub(super) outer: u32,
    pub(super) n: u32,
    pub(super) inner: u32,
}

impl Along {
    /// Returns the axis of an array whose numbers 32 bits can count.
    pub(super) fn new(shape: &[usize], axis: usize) -> Self {
        let product = |extents: &[usize]| extents.iter().product::<usize>() as u32;
        Self { outer: product(&shape[..axis]), n: shape[axis] as u32, inner: product(&shape[axis + 1..]) }
    }
}

/// Returns axes of lines, from extents and the distances of coordinates in the input and in the output. It leaves out axes with one
/// coordinate, but returns at least one axis.
pub(super) fn line_axes(all: &[(u32, u32, u32)]) -> Vec<LineAxis> {
    let mut axes: Vec<LineAxis> = Vec::with_capacity(all.len());
    for &(extent, input, output) in all {
        if extent > 1 {
            axes.push(LineAxis::new(extent, [input, output]));
        }
    }
    if axes.is_empty() {
        axes.push(LineAxis::new(1, [0; 2]));
    }
    axes
}

/// Sets the factors of a coordinate of lines, which has this distance in the input.
fn factors(pass: &mut LinePass, distance: u32, length: u32, of_input: bool) {
    // An axis of one coordinate is left out, because its factors are 1.
    let axis = pass.axes.iter().position(|axis| axis.strides[0] == distance);
    pass.factors = axis.map(|axis| OuterFactors { axis: axis as u8, length, of_input });
}

/// The parts of a length: of the first pass, of the second, and of the third.
struct Parts {
    cost: f64,
    parts: Vec<Search>,
}

/// Appends the passes of an axis. Returns `None` if its length has a large prime factor or is too long.
pub(super) fn append(drafts: &mut Vec<Draft>, real: Real, along: Along, limits: Limits) -> Option<()> {
    if !is_smooth(along.n) {
        let Along { outer, n, inner } = along;
        let axes = line_axes(&[(inner, 1, 1), (outer, n * inner, n * inner)]);
        let pass = convolution(real, n, &axes, [inner; 2], limits.room)?;
        drafts.push(Draft { work: Work::Pass(pass), moves: false });
        return Some(());
    }
    let of = |parts: Option<Parts>| parts.and_then(|parts| Some((parts.cost, parts.passes(along)?)));
    let one = of(whole(real, along, limits));
    let is_enough = along.inner == 1 && one.is_some();
    let two = if is_enough { None } else { of(two(real, along, limits)) };
    let three = if is_enough || two.as_ref().is_some_and(|(cost, _)| *cost <= 3.0 * OF_BYTES) {
        None
    } else {
        of(three(real, along, limits))
    };
    let (_, passes) = [one, two, three].into_iter().flatten().reduce(|a, b| if b.0 < a.0 { b } else { a })?;
    // If there are several passes, the last one transposes the matrix.
    let last = passes.len() - 1;
    let draft = |(i, pass)| Draft { work: Work::Pass(pass), moves: i > 0 && i == last };
    drafts.extend(passes.into_iter().enumerate().map(draft));
    Some(())
}

impl Parts {
    /// Returns the passes, if they all fit into blocks.
    fn passes(&self, along: Along) -> Option<Vec<LinePass>> {
        let Along { outer, n, inner } = along;
        let whole = n * inner;
        Some(match &self.parts[..] {
            [search] => {
                let axes = match inner {
                    1 => vec![LineAxis::new(outer, [n; 2])],
                    _ => line_axes(&[(inner, 1, 1), (outer, whole, whole)]),
                };
                vec![search.best_pass(&axes, [inner; 2])?]
            }
            [first, second] => {
                let row = second.n * inner;
                let axes = line_axes(&[(row, 1, 1), (outer, whole, whole)]);
                let columns = first.best_pass(&axes, [row; 2])?;
                let axes = line_axes(&[(inner, 1, 1), (first.n, row, inner), (outer, whole, whole)]);
                let mut rows = second.best_pass(&axes, [inner, first.n * inner])?;
                factors(&mut rows, row, n, true);
                vec![columns, rows]
            }
            [first, second, third] => {
                // The rows of the first matrix are matrices.
                let (row, part) = (second.n * third.n, third.n * inner);
                let axes = line_axes(&[(inner, 1, 1), (row, inner, inner), (outer, whole, whole)]);
                let mut columns = first.best_pass(&axes, [row * inner; 2])?;
                factors(&mut columns, inner, n, false);
                let axes = line_axes(&[(part, 1, 1), (outer * first.n, row * inner, row * inner)]);
                let middle = second.best_pass(&axes, [part; 2])?;
                let all = first.n * second.n;
                let axes = line_axes(&[
                    (inner, 1, 1),
                    (first.n, row * inner, inner),
                    (second.n, part, first.n * inner),
                    (outer, whole, whole),
                ]);
                let mut rows = third.best_pass(&axes, [inner, all * inner])?;
                factors(&mut rows, part, row, true);
                vec![columns, middle, rows]
            }
            _ => unreachable!("one, two or three passes"),
        })
    }
}

/// Returns the search with the cost of its best choice, if it has one.
fn found(search: Search) -> Option<(Search, f64)> {
    Some((search, search.best()?.of_pass()))
}

/// Returns the parts of one pass.
fn whole(real: Real, along: Along, limits: Limits) -> Option<Parts> {
    let beside = if along.inner == 1 { Beside::Elements } else { Beside::Lines(along.inner) };
    let (search, cost) = found(Search { real, n: along.n, beside, half: false, room: limits.room })?;
    Some(Parts { cost, parts: vec![search] })
}

/// Returns the parts of two passes, with the factors that take the least time together.
fn two(real: Real, along: Along, limits: Limits) -> Option<Parts> {
    let Along { n, inner, .. } = along;
    let search = |n: u32, beside: Beside| found(Search { real, n, beside, half: false, room: limits.room });
    let mut best: Option<Parts> = None;
    for first in PARTS.filter(|&first| n.is_multiple_of(first) && PARTS.contains(&(n / first))) {
        let second = n / first;
        // The factors must have similar sizes.
        if first > 16 * second || second > 4 * first {
            continue;
        }
        let beside = if inner == 1 { Beside::Turned } else { Beside::Lines(inner) };
        let Some(columns) = search(first, Beside::Lines(second * inner)) else { continue };
        let Some(rows) = search(second, beside) else { continue };
        let cost = columns.1 + rows.1;
        if best.as_ref().is_none_or(|best| cost < best.cost) {
            best = Some(Parts { cost, parts: vec![columns.0, rows.0] });
        }
    }
    best
}

/// Returns the parts of three passes.
fn three(real: Real, along: Along, limits: Limits) -> Option<Parts> {
    let Along { n, inner, .. } = along;
    let mut best: Option<Parts> = None;
    for first in PARTS.filter(|&first| n.is_multiple_of(first)) {
        let rest = n / first;
        // The first factor must be near the cube root.
        let (cube, rest_of) = (u64::from(first).pow(3), u64::from(n));
        if cube > 64 * rest_of || 64 * cube < rest_of {
            continue;
        }
        let search = Search { real, n: first, beside: Beside::Lines(rest * inner), half: false, room: limits.room };
        let (Some(columns), Some(rows)) = (found(search), two(real, Along { n: rest, ..along }, limits)) else {
            continue;
        };
        let cost = columns.1 + rows.cost;
        if best.as_ref().is_none_or(|best| cost < best.cost) {
            let parts = std::iter::once(columns.0).chain(rows.parts).collect();
            best = Some(Parts { cost, parts });
        }
    }
    best
}

/// Returns the pass between a real array and its half spectrum. The array has `n` numbers in a row, and the half spectrum has the shape of
/// `along`.
pub(super) fn half(real: Real, n: usize, along: Along, inverse: bool, limits: Limits) -> Option<LinePass> {
    let pairs = u32::try_from(n / 2).ok()?;
    let search = Search { real, n: pairs, beside: Beside::Elements, half: true, room: limits.room };
    let axes = vec![LineAxis::new(along.outer, [pairs, along.n])];
    let mut pass = search.best_pass(&axes, [1; 2])?;
    if inverse {
        // The pass is reversed.
        pass.radices.reverse();
        pass.kind = Kind::RealInverse;
        pass.axes[0].strides.reverse();
    }
    (layout::memory(&pass) <= limits.room.block_shared).then_some(pass)
}
