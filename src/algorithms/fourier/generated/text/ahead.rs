//! Passes whose blocks stay: a block works on one tile after another, and copies its next tile to shared memory while it transforms one.
//!
//! A block has four lines of 4096 numbers of `f32`, or two lines of `f64`. The registers and the shared memory of a multiprocessor hold one
//! block. In an ordinary pass, such a block would load, compute and store in turn, and memory would be idle while it computes. Here, the
//! copy of the next tile begins when the threads have the present one in registers. An exchange moves the real parts and then the imaginary
//! parts, so that shared memory has room for the next tile.
//!
//! Two such passes make transforms of `4096 * 4096` numbers. Two blocks of a cluster can share lines of 8192 numbers ([`pair`]). Then two
//! passes make transforms of `8192 * 8192` numbers. The first pass reads columns, by a description of the matrix that the multiprocessor's
//! copies take ([`TileMap`](crate::__private::TileMap)), because the numbers of a row that are in a tile are only 32 bytes. It writes the
//! tiles of the second pass, one after another, in pieces of 128 or 64 bytes. The second pass reads its tiles whole. It multiplies the
//! numbers by the factors between the passes, whose roots come with the tile.
//!
//! The first pass takes its tiles in falling order. So the second pass begins with the matrix that the first one wrote last, part of which is
//! still in the cache.
//!
//! Neighbouring tiles share lines of 128 bytes of the matrix, which should be in the cache until both tiles have them. Blocks do not keep
//! step. If tiles are dealt out in advance, blocks drift apart. The more tiles there are, the farther they drift. So the blocks draw tickets
//! from a counter, unless their tiles are of `f32` and not shared: the next tile is always the first one that no block has. A block draws a
//! ticket when it begins a tile, and needs it when it has the tile in registers.
//!
//! - [`copies`]: the order of tiles, and their copies.
//! - [`two`]: the transform of a tile of `f32`, in two stages.
//! - [`three`]: the transform of a tile of `f64`, in three stages.
//! - [`pair`]: two blocks that share lines.
//! - [`numbers`]: numbers between registers and memory.
//!
//! Measured on an H200 (driver 580.159.04, cuFFT 12.0), in ms:
//!
//! | numbers | two ordinary passes | these | cuFFT |
//! |---|--:|--:|--:|
//! | 2^24, `f32` | 0.221 | 0.187 | 0.267 |
//! | 2^24, `f64` | 0.438 | 0.341 | 0.455 |
//! | 2^26, `f32` | 0.900 | 0.804 | 1.016 |

use std::fmt::Write;

use pair::Peer;

use super::code::{Code, Real};
use super::kernel::{BOUND, PARAMETERS, PassKernel, SCALE};
use super::module::module_of;
use crate::__private::TileAxis;
use crate::Complex;
use crate::element::root_of_unity;
use crate::expr::ptx::emit::{Class, Reg, op};
use crate::expr::ptx::target_of;

mod copies;
mod numbers;
mod pair;
#[cfg(test)]
mod tests;
mod three;
mod two;

/// The numbers of a line that a block has.
pub(in super::super) const LINE: u32 = 4096;

/// The threads of a block.
const THREADS: u32 = 256;

/// The bytes of a tile that a block has.
const TILE: u32 = 128 << 10;

/// The bytes of a row of the matrix that are in a tile of columns.
const PIECE: u32 = TILE / LINE;

/// The rows of the matrix that one copy takes.
const COPIED_ROWS: u32 = 256;

/// The copies of a tile of columns.
const COPIES: u32 = LINE / COPIED_ROWS;

/// The offset in shared memory of the parts that are exchanged. The tile is before them. After them are the barrier of the copies, the roots
/// of the stages, and the roots of the factors.
const EXCHANGE: u32 = TILE;

/// The bytes of the barrier of the copies, of the block's next turn, and of the barrier of received numbers.
const BARRIER: u32 = 32;

/// The offset of the block's next turn from the barrier. There are two places for it, which blocks of a cluster use by turns.
const NEXT: u32 = 8;

/// The offset of the barrier of received numbers from the barrier of the copies.
const RECEIVED: u32 = 16;

/// The bytes of a counter of tickets.
const COUNTER: u32 = 4;

/// The least PTX version with these copies, times ten, and the one with stores that are counted.
const VERSION: u32 = 80;
const COUNTED_VERSION: u32 = 81;

/// How a block works on numbers of a type.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// The bytes of a number.
    number: u32,
    /// The bytes of the parts that are exchanged.
    exchanged: u32,
    /// The number of roots of the stages.
    roots: u32,
    /// The number of roots of a line's factors.
    factors: u32,
    /// The number of slices of a tile of columns. A slice has every `slices`th row of the matrix. Copies lay the slices down one after the
    /// other.
    slices: u32,
}

impl Shape {
    const fn of(real: Real) -> Self {
        match real {
            Real::F32 => two::SHAPE,
            Real::F64 => three::SHAPE,
        }
    }

    /// The lines of a tile.
    const fn lines(self) -> u32 {
        PIECE / self.number
    }

    /// The bytes of the roots of a tile's factors.
    const fn factor_bytes(self) -> u32 {
        self.lines() * self.factors * self.number
    }

    /// The offsets in shared memory.
    const fn barrier_at(self) -> u32 {
        EXCHANGE + self.exchanged
    }

    const fn roots_at(self) -> u32 {
        self.barrier_at() + BARRIER
    }

    const fn factors_at(self) -> u32 {
        self.roots_at() + self.roots * self.number
    }

    const fn end(self) -> u32 {
        self.factors_at() + self.factor_bytes()
    }

    const fn is_aligned(self) -> bool {
        (self.barrier_at() | self.roots_at() | self.factors_at() | self.factor_bytes()).is_multiple_of(16)
    }
}

const _: () = assert!(two::SHAPE.end() <= 227 << 10 && three::SHAPE.end() <= 227 << 10, "the shared memory of a block");
const _: () = assert!(two::SHAPE.is_aligned() && three::SHAPE.is_aligned(), "alignment");

/// Which of two passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super::super) enum Side {
    /// Transforms the columns of each matrix, to the tiles of the second pass.
    Columns,
    /// Multiplies by the factors between the passes, transforms the lines of its tiles, and writes columns of each matrix.
    Rows,
}

/// A pass over lines of some matrices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super::super) struct AheadPass {
    pub(in super::super) real: Real,
    pub(in super::super) side: Side,
    /// The number of blocks that share lines: 1, or the 2 of a cluster, for `f32`. It is the same for both passes.
    pub(in super::super) cluster: u32,
    /// The number of lines of a matrix: a multiple of 4 for one block, and of 8 for two. It is the length of the other pass's lines.
    pub(in super::super) lines: u32,
    /// The number of matrices.
    pub(in super::super) count: u32,
    pub(in super::super) inverse: bool,
    pub(in super::super) scaled: bool,
}

impl AheadPass {
    fn shape(&self) -> Shape {
        Shape::of(self.real)
    }

    /// Returns the length of a line.
    pub(in super::super) fn length(&self) -> u32 {
        self.cluster * LINE
    }

    /// Returns the number of tiles.
    pub(in super::super) fn tiles(&self) -> u32 {
        self.count * self.groups()
    }

    /// Returns the number of tiles of a matrix.
    fn groups(&self) -> u32 {
        self.lines / self.shape().lines()
    }

    /// Returns the bytes of shared memory of a block.
    pub(in super::super) fn shared(&self) -> u32 {
        self.shape().end()
    }

    /// Returns the number of counters of 32 bits that both passes have together, which are 0 before the first pass. Each pass has one if its
    /// blocks draw tickets.
    pub(in super::super) fn counters(&self) -> u32 {
        if self.real == Real::F64 || self.cluster > 1 { 2 } else { 0 }
    }

    /// Returns whether blocks of a cluster count the bytes that they receive from each other. The rest meet a second time instead. A prototype
    /// took less time so on an H200.
    fn counts_received(&self) -> bool {
        self.cluster > 1 && self.side == Side::Rows
    }

    /// Returns the least PTX version of the kernel, times ten.
    pub(in super::super) fn ptx(&self) -> u32 {
        if self.counts_received() { COUNTED_VERSION } else { VERSION }
    }

    /// Returns the axes of the matrices whose columns are copied: along a row, from slice to slice, and along the rows of a slice, of all
    /// matrices. If two blocks share columns, each has every second row, and the second axis is from block to block.
    pub(in super::super) fn axes(&self) -> Vec<TileAxis> {
        let (Shape { number, slices, .. }, cluster) = (self.shape(), self.cluster);
        let row = u64::from(self.lines * number);
        let rows = u64::from(self.count) * u64::from(LINE / slices);
        let mut axes = vec![
            TileAxis { extent: row / 8, stride: 8, tile: PIECE / 8 },
            TileAxis { extent: slices.into(), stride: row * u64::from(cluster), tile: 1 },
            TileAxis { extent: rows, stride: row * u64::from(cluster * slices), tile: COPIED_ROWS },
        ];
        if cluster > 1 {
            axes.insert(1, TileAxis { extent: cluster.into(), stride: row, tile: 1 });
        }
        axes
    }

    /// Returns the tables of the kernel: its roots, and those of the factors.
    pub(in super::super) fn tables(&self) -> Vec<Vec<Complex<f64>>> {
        vec![self.roots(), self.factors()]
    }

    /// Returns the roots of the stages. If two blocks share lines, the roots with which they combine their results are after these.
    fn roots(&self) -> Vec<Complex<f64>> {
        let mut roots: Vec<_> = match self.real {
            Real::F32 => two::roots().collect(),
            Real::F64 => three::roots().collect(),
        };
        debug_assert_eq!(roots.len(), self.shape().roots as usize);
        if self.cluster > 1 {
            roots.extend(pair::roots(self.shape()));
        }
        roots
    }

    /// Returns the roots of the factors: for each tile of a matrix, for each block that shares it, and for each line.
    fn factors(&self) -> Vec<Complex<f64>> {
        if self.side == Side::Columns {
            return Vec::new();
        }
        let exponents = |rank: u32| -> Vec<u32> {
            match self.real {
                Real::F32 => two::exponents(self.cluster, rank).collect(),
                Real::F64 => three::exponents().collect(),
            }
        };
        let exponents: Vec<Vec<u32>> = (0..self.cluster).map(exponents).collect();
        debug_assert!(exponents.iter().all(|list| list.len() == self.shape().factors as usize));
        let n = self.length() as usize * self.lines as usize;
        let root = |line: u32, exponent: u32| root_of_unity(line as usize * exponent as usize % n, n);
        let of_lines = |first: u32, list: &[u32]| -> Vec<Complex<f64>> {
            let lines = first..first + self.shape().lines();
            lines.flat_map(|line| list.iter().map(move |&exponent| root(line, exponent))).collect()
        };
        let tiles = (0..self.lines).step_by(self.shape().lines() as usize);
        let of_tile = |first: u32| exponents.iter().flat_map(move |list| of_lines(first, list));
        tiles.flat_map(of_tile).collect()
    }
}

/// Returns the kernel of a pass. Its parameters are those of other passes, with the address of the counters after the tables if there are
/// any. For columns, the first one is the description of the matrices, and not an address. A launch may have fewer clusters than there are
/// tiles.
pub(in super::super::super) fn ahead(pass: &AheadPass, arch: u32) -> PassKernel {
    debug_assert!(pass.cluster == 1 || pass.real == Real::F32, "{pass:?}");
    let (target, version) = target_of(arch);
    let mut code = Code::new(pass.real, target, version.max(pass.ptx()));
    code.cluster = pass.cluster;
    let input = match pass.side {
        Side::Columns => {
            let map = code.e.op_with(Class::B64, "mov.b64", &[], "a0");
            code.e.op(Class::B64, "cvta.param.u64", &[map])
        }
        Side::Rows => code.pointer_parameter(0),
    };
    let [output, roots, factors] = [1, 2, 3].map(|number| code.pointer_parameter(number));
    let counters = (pass.counters() > 0).then(|| code.pointer_parameter(BOUND));
    let more = usize::from(counters.is_some());
    let bound = code.integer_parameter(BOUND + more);
    code.scale = pass.scaled.then(|| code.real_parameter(SCALE + more));
    let shape = pass.shape();
    let thread = code.integer("%tid.x");
    let shared = code.integer("numbers");
    let leader = code.is_zero(thread);
    let phase = code.e.reg(Class::B32);
    let barrier = code.plus(shared, shape.barrier_at());
    let line = code.e.op_with(Class::B32, "and.b32", &[thread], shape.lines() - 1);
    let row = code.quotient(thread, shape.lines(), THREADS);
    let clusters = code.integer(if pass.cluster > 1 { "%nclusterid.x" } else { "%nctaid.x" });
    let peer = (pass.cluster > 1).then(|| Peer::new(&mut code, shape, [shared, thread, row], roots));
    let drawer = peer.as_ref().map_or(leader, |peer| code.e.op(Class::Pred, "and.pred", &[leader, peer.is_first]));
    Writer {
        code: &mut code,
        pass,
        shape,
        input,
        output,
        factors,
        counters,
        bound,
        thread,
        shared,
        leader,
        barrier,
        phase,
        line,
        row,
        clusters,
        drawer,
        peer,
    }
    .write(roots);
    let first = match pass.side {
        Side::Columns => ".param .align 64 .b8 a0[128]",
        Side::Rows => ".param .u64 a0",
    };
    let others = (1..=PARAMETERS + more).map(|number| format!(".param .u64 a{number}"));
    let parameters = std::iter::once(first.to_owned()).chain(others).collect();
    let (text, shared) = module_of(&code, parameters, (THREADS, 1), pass.shared());
    PassKernel {
        text,
        blocks: u64::from(pass.tiles()) * u64::from(pass.cluster),
        threads: THREADS,
        shared,
        // They are long, so they are apart.
        roots: Vec::new(),
        outer_roots: Vec::new(),
    }
}

struct Writer<'a> {
    code: &'a mut Code,
    pass: &'a AheadPass,
    shape: Shape,
    /// The address of the description of the matrices, or of the tiles.
    input: Reg,
    output: Reg,
    factors: Reg,
    /// The address of the counters of tickets, if blocks draw tickets.
    counters: Option<Reg>,
    bound: Reg,
    thread: Reg,
    shared: Reg,
    leader: Reg,
    /// The address of the barrier of the copies.
    barrier: Reg,
    /// The number of tiles that have come, modulo 2.
    phase: Reg,
    /// The thread's line of the tile, and its number among the threads of the line.
    line: Reg,
    row: Reg,
    /// The number of clusters. Blocks that do not share lines count as clusters.
    clusters: Reg,
    /// Whether the thread draws the tickets.
    drawer: Reg,
    /// The other block of the cluster, if two share lines.
    peer: Option<Peer>,
}

/// A tile: its number, its matrix, and its number in the matrix.
struct Tile {
    number: Reg,
    matrix: Reg,
    group: Reg,
}

impl Writer<'_> {
    fn write(mut self, roots: Reg) {
        op!(self.code.e, "@{} mbarrier.init.shared::cta.b64 [{}], 1;", self.leader, self.barrier);
        if self.pass.counts_received() {
            op!(self.code.e, "@{} mbarrier.init.shared::cta.b64 [{}+{RECEIVED}], 1;", self.leader, self.barrier);
        }
        op!(self.code.e, "fence.mbarrier_init.release.cluster;");
        self.keep_roots(roots);
        self.code.barrier(false);
        // The first access to the other block's memory may come before the blocks meet for a tile. By then, the other block has begun.
        let begins_together = self.pass.counts_received();
        if begins_together {
            op!(self.code.e, "barrier.cluster.arrive.release.aligned;");
        }
        let (turn, phase) = (self.code.e.reg(Class::B32), self.phase);
        op!(self.code.e, "mov.u32 {turn}, {};", if self.peer.is_some() { "%clusterid.x" } else { "%ctaid.x" });
        op!(self.code.e, "mov.u32 {phase}, 0;");
        self.begin_turns(turn);
        if begins_together {
            op!(self.code.e, "barrier.cluster.wait.acquire.aligned;");
        }
        let [again, wait, end] = [(); 3].map(|()| self.code.e.label());
        self.code.e.place(&again);
        let is_over = self.code.e.op(Class::Pred, "setp.ge.u32", &[turn, self.bound]);
        op!(self.code.e, "@{is_over} bra {end};");
        self.code.e.place(&wait);
        let is_there = self.code.e.reg(Class::Pred);
        op!(self.code.e, "mbarrier.try_wait.parity.shared::cta.b64 {is_there}, [{}], {phase};", self.barrier);
        op!(self.code.e, "@!{is_there} bra {wait};");
        op!(self.code.e, "xor.b32 {phase}, {phase}, 1;");
        let (tile, last) = (self.tile(turn), self.draw(turn));
        match self.pass.real {
            Real::F32 => self.two_stages(&tile, last),
            Real::F64 => self.three_stages(&tile, last),
        }
        self.take_turn(turn);
        op!(self.code.e, "bra {again};");
        self.code.e.place(&end);
        op!(self.code.e, "ret;");
    }
}
