//! The places of the numbers of lines in shared memory between two stages, chosen by its banks.

use super::pass::{Kind, Lanes, LinePass, Stage};
use super::text::code::Real;
use crate::simt::WARP;

/// The bytes that the shared memory of a multiprocessor moves at a time.
const WAVEFRONT: u32 = 128;

/// The number of threads whose accesses are counted.
const JUDGED: u32 = 128;

/// The places of numbers. Element `e` of the line `c` is at `c * pitch + p` or at `p * lines + c`, where `p = e + left_out * (e / run)`. A
/// run has `radix * done` elements: those among which one butterfly of the stage before writes its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Whether neighbouring lines are contiguous.
    pub(super) across: bool,
    pub(super) left_out: u32,
    pub(super) pitch: u32,
    /// The number of places of all lines.
    pub(super) numbers: u32,
}

/// Returns the layouts of a pass, one for each stage except the last.
pub(super) fn layouts(pass: &LinePass) -> Vec<Layout> {
    let stages = pass.stages();
    let mut layouts: Vec<Layout> = exchanges(pass, &stages).map(|(_, layout)| layout).collect();
    if pass.is_of_warps() && pass.lines > 1 {
        // Warps do not wait for each other, so a line must have the same memory in all exchanges.
        let lanes = WAVEFRONT / pass.real.number();
        let top = layouts.iter().zip(&stages[1..]).map(|(layout, stage)| top(pass, stage, layout.left_out)).max();
        let mut pitch = top.unwrap_or(1);
        while pitch % lanes != pass.threads % lanes {
            pitch += 1;
        }
        for layout in &mut layouts {
            (layout.across, layout.pitch, layout.numbers) = (false, pitch, pass.lines * pitch);
        }
    }
    layouts
}

/// Returns the bytes of shared memory that a pass takes.
pub(super) fn memory(pass: &LinePass) -> u32 {
    bytes(numbers(pass), pass.real)
}

/// Returns the numbers of shared memory that a pass takes.
pub(super) fn numbers(pass: &LinePass) -> u32 {
    let pitch = match pass.kind {
        _ if pass.staged => pass.staged_pitch(),
        Kind::Rader => pass.ordered_pitch(),
        _ => 0,
    };
    let back = pass.back().map_or(Vec::new(), |back| layouts(&back));
    layouts(pass).iter().chain(&back).map(|layout| layout.numbers).fold(pass.lines * pitch, u32::max)
}

/// Returns the accesses of shared memory that a warp's numbers take in all exchanges.
pub(super) fn accesses(pass: &LinePass) -> u32 {
    exchanges(pass, &pass.stages()).map(|(accesses, _)| accesses).sum()
}

/// Returns, for each exchange between two stages of a pass, the number of accesses that a warp's numbers take, and the layout.
fn exchanges<'p>(pass: &'p LinePass, stages: &'p [Stage]) -> impl Iterator<Item = (u32, Layout)> + 'p {
    stages.windows(2).enumerate().map(move |(before, stages)| {
        // The first exchange may change the lanes.
        let lanes = [pass.lanes[usize::from(before > 0)], pass.lanes[1]];
        search(pass, [&stages[0], &stages[1]], lanes)
    })
}

/// Returns the number of places of a line, if `left_out` places are left out after each run before a stage.
fn top(pass: &LinePass, next: &Stage, left_out: u32) -> u32 {
    (pass.length() / next.done - 1) * (next.done + left_out) + next.done
}

/// Returns the layout with the fewest accesses, and then the least memory. Also returns the number of accesses that a warp's numbers take.
fn search(pass: &LinePass, [stage, next]: [&Stage; 2], lanes: [Lanes; 2]) -> (u32, Layout) {
    let banks = WAVEFRONT / pass.real.number();
    let ways: &[bool] = match lanes {
        _ if pass.lines == 1 || pass.is_of_warps() => &[false],
        [Lanes::Across, Lanes::Across] => &[true, false],
        _ => &[false, true],
    };
    // Without conflicts, each access moves all banks.
    let least = pass.butterflies(stage) * stage.radix + pass.butterflies(next) * next.radix;
    let least = least * (WARP / banks);
    let mut best: Option<(u32, Layout)> = None;
    for &across in ways {
        for left_out in 0..banks {
            let top = top(pass, next, left_out);
            let pitches = if across || pass.lines == 1 { top..top + 1 } else { top..top + banks };
            let places = Places::new(pass, [stage, next], lanes, left_out);
            for pitch in pitches {
                let layout = Layout { across, left_out, pitch, numbers: pass.lines * if across { top } else { pitch } };
                // The first layout has no place left out.
                if best.is_some() && bytes(layout.numbers, pass.real) > pass.shared {
                    break;
                }
                let cost = places.cost(&layout, pass, banks);
                if best.is_none_or(|(least, chosen)| (cost, layout.numbers) < (least, chosen.numbers)) {
                    best = Some((cost, layout));
                }
                if cost <= least {
                    return (cost, layout);
                }
            }
        }
    }
    best.expect("a layout")
}

/// The line and the element that a lane accesses, if it accesses any.
type Place = Option<(u32, u32)>;

/// The places where lanes access lines.
struct Places {
    /// The number of such accesses, and the place of each lane.
    accesses: Vec<(u32, Vec<Place>)>,
}

impl Places {
    fn new(pass: &LinePass, [stage, next]: [&Stage; 2], lanes: [Lanes; 2], left_out: u32) -> Self {
        let mut accesses = Vec::new();
        for first in (0..pass.block_threads().min(JUDGED)).step_by(WARP as usize) {
            for (stage, lanes, writes) in [(stage, lanes[0], true), (next, lanes[1], false)] {
                // The results of a butterfly, and of the next butterflies, have the same distance for all lanes.
                let many = pass.butterflies(stage);
                let judged = many.min(2);
                for i in 0..judged {
                    let of_lane = |thread: u32| {
                        let (line, thread) = pass.place(lanes, thread);
                        let b = pass.butterfly(stage, thread, i)?;
                        let run = if writes { stage.radix * stage.done } else { next.done };
                        let element = if writes { b / stage.done * run + b % stage.done } else { b };
                        Some((line, element + left_out * (element / run)))
                    };
                    let last = (first + WARP).min(pass.block_threads());
                    accesses.push((many * stage.radix / judged, (first..last).map(of_lane).collect()));
                }
            }
        }
        Self { accesses }
    }

    /// Returns the accesses of a warp. Each counts as often as different numbers of its lanes are in one bank.
    fn cost(&self, layout: &Layout, pass: &LinePass, banks: u32) -> u32 {
        let mut cost = 0;
        let mut seen: Vec<u32> = Vec::new();
        for (count, lanes) in &self.accesses {
            for group in lanes.chunks(banks as usize) {
                seen.clear();
                let mut in_bank = [0u32; WARP as usize];
                for &(line, place) in group.iter().flatten() {
                    let at = if layout.across { place * pass.lines + line } else { line * layout.pitch + place };
                    if !seen.contains(&at) {
                        seen.push(at);
                        in_bank[(at % banks) as usize] += 1;
                    }
                }
                cost += count * in_bank.iter().max().copied().unwrap_or(0);
            }
        }
        cost.div_ceil(pass.block_threads().min(JUDGED).div_ceil(WARP))
    }
}

/// Returns the bytes of shared memory for this many numbers.
pub(super) fn bytes(numbers: u32, real: Real) -> u32 {
    numbers * real.number()
}
