//! Pairs of passes that are one launch.
//!
//! A chunk of the array goes through both passes while it is in the cache of the second level.

use super::axes::{Along, line_axes};
use crate::algorithms::fourier::generated::choose::{Beside, Choice, Search};
use crate::algorithms::fourier::generated::layout;
use crate::algorithms::fourier::generated::pass::{LineAxis, LinePass, OuterFactors};
use crate::algorithms::fourier::generated::room::Limits;
use crate::algorithms::fourier::generated::text::code::Real;
use crate::algorithms::fourier::generated::text::fused::FusedPair;

/// The first pass is ahead by the cache divided by this.
const AHEAD: usize = 6;

/// The longest chunk whose input and output stay in the cache is the cache divided by this. For shorter ones, streaming takes registers and
/// gains nothing.
const CHUNK: usize = 24;

/// A chunk has several short transforms, or planes, up to the cache divided by this.
const TOGETHER: usize = 8 * CHUNK;

/// The shortest chunk is the cache divided by this. For shorter chunks, tickets and waits take longer than the cache saves.
const SHORTEST_CHUNK: usize = 2 * TOGETHER;

/// The longest chunk, whose input and output do not stay in the cache, is the cache divided by this.
const STREAMED: usize = 6;

/// The shortest and the longest line of a pair.
const SHORTEST: u32 = 16;
const LONGEST: u32 = 1024;

/// The bytes of neighbouring columns in a chunk.
const COLUMNS: u32 = 128;

/// The longest row beside such columns.
const LONGEST_ROW: u32 = 2048;

/// The way in which the chunks of an array go through a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chunks {
    /// The number of transforms, or planes, of a chunk.
    each: u32,
    count: u32,
    ahead: u32,
}

impl Chunks {
    /// Returns the chunks of `count` parts of `bytes` bytes, if chunks are short and long enough, and there are enough of them.
    fn new(count: u32, bytes: usize, limits: Limits) -> Option<Self> {
        if bytes > limits.cache / STREAMED {
            return None;
        }
        // A chunk has several short ones: as many as divide the number of all.
        let most = (limits.cache / TOGETHER / bytes).clamp(1, count as usize) as u32;
        let each = (1..=most).rev().find(|&each| count.is_multiple_of(each)).unwrap_or(1);
        let (count, bytes) = (count / each, bytes * each as usize);
        if bytes < limits.cache / SHORTEST_CHUNK {
            return None;
        }
        let ahead = (limits.cache / AHEAD / bytes).max(1) as u32;
        (count >= 4 * (ahead + 1)).then_some(Self { each, count, ahead })
    }

    /// Returns the number of chunks of the ring between the passes.
    fn ring(self, bytes: usize, limits: Limits) -> u32 {
        self.ahead + (limits.cache / AHEAD / 2 / (bytes * self.each as usize)).max(2) as u32
    }
}

/// Returns the cost of two passes in one launch. If the bytes that they move are the cost of both, it is followed by that of their
/// instructions.
fn cost([first, second]: &[Choice; 2]) -> [f64; 2] {
    [first.of_pair(second), first.cost + second.cost]
}

/// Returns the best choices of two searches whose blocks have the same threads.
fn matching([first, second]: [Search; 2]) -> Option<[Choice; 2]> {
    let others = second.by_threads();
    let all = first.by_threads().into_iter().filter_map(|(threads, a)| Some([a, others.get(&threads)?.clone()]));
    all.reduce(|best, pair| if cost(&pair) < cost(&best) { pair } else { best })
}

/// Returns the pair of two passes, whose chunks have this many bytes.
fn pair(
    [mut first, mut second]: [LinePass; 2],
    (chunks, bytes): (Chunks, usize),
    ring: u32,
    limits: Limits,
) -> Option<FusedPair> {
    second.fresh = true;
    (first.padded, second.padded) = (true, true);
    if bytes > limits.cache / CHUNK {
        (first.streamed[0], second.streamed[1]) = (true, true);
    }
    let blocks = first.blocks.min(second.blocks);
    let tiles = [first.tiles(), second.tiles()];
    let whole = tiles.iter().all(|tiles| tiles.is_multiple_of(chunks.count.into()) && *tiles < 1 << 30);
    let same = first.block_threads() == second.block_threads();
    let Chunks { count, ahead, .. } = chunks;
    // Passes have other layouts if `staged` changed.
    let fits = [&first, &second].into_iter().all(|pass| layout::memory(pass) <= limits.room.block_shared);
    (whole && same && fits).then_some(FusedPair { passes: [first, second], chunks: count, ahead, ring, blocks })
}

/// Returns the pair of passes over the rows and the columns of planes of an array. A chunk has some of the planes. `along` gives the rows.
pub(super) fn planes(real: Real, [rows, n]: [usize; 2], along: Along, limits: Limits) -> Option<FusedPair> {
    let (rows, n) = (u32::try_from(rows).ok()?, u32::try_from(n).ok()?);
    if rows < 2 || n < 2 || rows > LONGEST || n > LONGEST {
        return None;
    }
    let plane = rows * n;
    let bytes = plane as usize * real.number() as usize;
    let chunks = Chunks::new(along.outer / rows, bytes, limits)?;
    let search = |n, beside| Search { real, n, beside, half: false, room: limits.room };
    let searches = [search(n, Beside::Elements), search(rows, Beside::Lines(n))];
    let [of_rows, of_columns] = matching(searches)?;
    let lines = rows * chunks.each;
    let axes = vec![LineAxis::new(lines, [n; 2]), LineAxis::new(chunks.count, [n * lines; 2])];
    let mut first = searches[0].pass(&of_rows, axes, [1; 2])?;
    // Staged lines have coordinates along one axis only.
    first.staged = false;
    let second = searches[1].pass(&of_columns, columns_of(n, plane, chunks), [n; 2])?;
    pair([first, second], (chunks, bytes), 0, limits)
}

/// Works as [`planes`], for real rows.
pub(super) fn real_planes(first: &LinePass, rows: usize, along: Along, limits: Limits) -> Option<FusedPair> {
    let (rows, n) = (u32::try_from(rows).ok()?, along.n);
    if !(2..=LONGEST).contains(&rows) || n > LONGEST {
        return None;
    }
    let (real, pairs, plane) = (first.real, first.length(), rows * n);
    let bytes = plane as usize * real.number() as usize;
    let chunks = Chunks::new(along.outer / rows, bytes, limits)?;
    let of_rows = Search { real, n: pairs, beside: Beside::Elements, half: true, room: limits.room };
    let searches = [of_rows, Search { real, n: rows, beside: Beside::Lines(n), half: false, room: limits.room }];
    let [of_rows, of_columns] = matching(searches)?;
    let lines = rows * chunks.each;
    let axes = vec![LineAxis::new(lines, [pairs, n]), LineAxis::new(chunks.count, [pairs * lines, n * lines])];
    let first = searches[0].pass(&of_rows, axes, [1; 2])?;
    let second = searches[1].pass(&of_columns, columns_of(n, plane, chunks), [n; 2])?;
    pair([first, second], (chunks, bytes), 0, limits)
}

/// Returns the axes of the columns of planes.
fn columns_of(n: u32, plane: u32, chunks: Chunks) -> Vec<LineAxis> {
    line_axes(&[(n, 1, 1), (chunks.each, plane, plane), (chunks.count, plane * chunks.each, plane * chunks.each)])
}

/// Returns the pair of passes over rows that a block cannot hold. Each row is a matrix of columns and rows, with a ring between the passes.
pub(super) fn long_rows(real: Real, along: Along, limits: Limits) -> Option<FusedPair> {
    let Along { outer, n, inner } = along;
    if inner != 1 {
        return None;
    }
    let bytes = n as usize * real.number() as usize;
    let chunks = Chunks::new(outer, bytes, limits)?;
    let search = |n, beside| Search { real, n, beside, half: false, room: limits.room };
    // A block that holds a line takes one pass.
    if search(n, Beside::Elements).best().is_some() {
        return None;
    }
    let mut best: Option<([Search; 2], [Choice; 2])> = None;
    for n1 in (SHORTEST..=LONGEST).filter(|&n1| n.is_multiple_of(n1) && (SHORTEST..=LONGEST).contains(&(n / n1))) {
        let searches = [search(n1, Beside::Lines(n / n1)), search(n / n1, Beside::Turned)];
        let Some(choices) = matching(searches) else { continue };
        if best.as_ref().is_none_or(|(_, known)| cost(&choices) < cost(known)) {
            best = Some((searches, choices));
        }
    }
    let (searches, choices) = best?;
    let [n1, n2] = [searches[0].n, searches[1].n];
    let ring = chunks.ring(bytes, limits);
    let of_chunk = n * chunks.each;
    let axes = |first: LineAxis, rings: [u32; 2]| -> Vec<LineAxis> {
        let transforms = (chunks.each > 1).then(|| LineAxis::new(chunks.each, [n; 2]));
        let all = LineAxis { rings, ..LineAxis::new(chunks.count, [of_chunk; 2]) };
        std::iter::once(first).chain(transforms).chain([all]).collect()
    };
    let first = searches[0].pass(&choices[0], axes(LineAxis::new(n2, [1; 2]), [0, ring]), [n2; 2])?;
    let mut second = searches[1].pass(&choices[1], axes(LineAxis::new(n1, [n2, 1]), [ring, 0]), [1, n1])?;
    second.factors = Some(OuterFactors { axis: 0, length: n, of_input: true });
    pair([first, second], (chunks, bytes), ring, limits)
}

/// Returns the passes of rows that take three: a pair for their columns, which a block cannot hold, and a pass for their rows. A chunk has
/// some neighbouring columns. Each column is a matrix of columns and rows, with a ring between the passes.
///
/// On an H200 (driver 580.159.04), 2^26 numbers of `f64` took 1.55 ms, and 1.73 ms by three launches. What bounds the pair is the cache, at
/// 90 % of its throughput: both passes still move all numbers between the multiprocessors and the cache.
pub(super) fn long_columns(real: Real, along: Along, limits: Limits) -> Option<(FusedPair, LinePass)> {
    let Along { outer, n, inner: 1 } = along else { return None };
    let beside = COLUMNS / real.number();
    let search = |n, beside| Search { real, n, beside, half: false, room: limits.room };
    // The longest columns that the cache holds.
    let mut rows = (beside..=LONGEST_ROW).step_by(beside as usize).filter(|&row| n.is_multiple_of(row));
    rows.find_map(|row| {
        let (columns, count) = (n / row, row / beside);
        let bytes = columns as usize * COLUMNS as usize;
        let chunks = Chunks::new(count, bytes, limits).filter(|chunks| chunks.each == 1)?;
        let parts = (SHORTEST..=LONGEST).filter(|&n1| columns.is_multiple_of(n1)).map(|n1| [n1, columns / n1]);
        let parts = parts.filter(|[_, n2]| (SHORTEST..=LONGEST).contains(n2));
        let searches = parts.map(|parts| parts.map(|n| search(n, Beside::Together(beside))));
        let all = searches.filter_map(|searches| Some((searches, matching(searches)?)));
        let (searches, choices) =
            all.reduce(|best, other| if cost(&other.1) < cost(&best.1) { other } else { best })?;
        let [n1, n2] = searches.map(|search| search.n);
        let (least, of_chunk) = (chunks.ring(bytes, limits), columns * beside);
        // The chunk of the next row that takes a place of the ring is as far ahead as in the same row.
        let ring = (least..=count).find(|&ring| outer == 1 || count.is_multiple_of(ring))?;
        let axes = |lines: LineAxis, strides: [u32; 2], rings: [u32; 2], of_row: [u32; 2]| {
            let chunks = LineAxis { rings, ..LineAxis::new(count, strides) };
            let rows = (outer > 1).then(|| LineAxis::new(outer, of_row));
            [LineAxis::new(beside, [1; 2]), lines, chunks].into_iter().chain(rows).collect()
        };
        let first = axes(LineAxis::new(n2, [row, beside]), [beside, of_chunk], [0, ring], [n, 0]);
        let first = searches[0].pass(&choices[0], first, [n2 * row, n2 * beside])?;
        let second = axes(LineAxis::new(n1, [n2 * beside, row]), [of_chunk, beside], [ring, 0], [0, n]);
        let mut second = searches[1].pass(&choices[1], second, [beside, n1 * row])?;
        second.factors = Some(OuterFactors { axis: 1, length: columns, of_input: true });
        let pair = pair([first, second], (Chunks { count: count * outer, ..chunks }, bytes), ring, limits)?;
        let axes = line_axes(&[(columns, row, 1), (outer, n, n)]);
        let mut rows = search(row, Beside::Turned).best_pass(&axes, [1, columns])?;
        rows.factors = Some(OuterFactors { axis: 0, length: n, of_input: true });
        Some((pair, rows))
    })
}
