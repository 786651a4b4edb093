//! Passes whose blocks stay: a block works on one tile after another, and copies its next tile to shared memory while it transforms one.
//!
//! A tile is four lines of 4096 numbers. A thread has 64 numbers of a line, so that two stages and one exchange make the transform. The
//! registers and the shared memory of a multiprocessor hold one block. In an ordinary pass, such a block would load, compute and store in
//! turn, and memory would be idle while it computes. Here, the copy of the next tile begins when the threads have the present one in
//! registers. The exchange moves the real parts and then the imaginary parts, so that shared memory has room for the next tile.
//!
//! Two such passes make transforms of `4096 * 4096` numbers. The first one reads columns, by a description of the matrix that the
//! multiprocessor's copies take ([`TileMap`](crate::__private::TileMap)), because the four numbers of a row are only 32 bytes. It writes
//! the tiles of the second pass, one after another, in pieces of 128 bytes. The second pass reads its tiles whole. It multiplies the
//! numbers by the factors between the passes, whose roots come with the tile.
//!
//! The first pass takes its tiles in falling order, so that the second pass begins with numbers that are still in the cache.
//!
//! Measured on an H200 (driver 580.159.04): 2^24 numbers take 0.189 ms (two ordinary passes 0.220, cuFFT 12.0 0.265).

use std::fmt::Write;

use super::butterfly;
use super::code::{Code, Number, Place, Real, Value};
use super::factors::stage_roots;
use super::kernel::{BOUND, PARAMETERS, PassKernel, SCALE};
use super::module::module_of;
use crate::Complex;
use crate::element::root_of_unity;
use crate::expr::ptx::emit::{Class, Reg, op};
use crate::expr::ptx::target_of;

#[cfg(test)]
mod tests;

/// The length of a line.
pub(in super::super) const LINE: u32 = 4096;

/// The numbers of a thread, and the radix of both stages.
const RADIX: u32 = 64;

/// The lines of a tile.
pub(in super::super) const LINES: u32 = 4;

/// The threads of a block.
const THREADS: u32 = LINES * LINE / RADIX;

/// The bytes of a number.
const NUMBER: u32 = 8;

/// The bytes of a tile.
const TILE: u32 = LINES * LINE * NUMBER;

/// The places of parts from a number of a thread to the next, in the exchange. Four are left out, so that the threads that read the numbers
/// of one line access different banks.
const ROW: u32 = THREADS + LINES;

/// The offsets in shared memory, after the tile: the parts that are exchanged, the barrier of the copies, the roots of the second stage,
/// and the roots of the factors.
const EXCHANGE: u32 = TILE;
const BARRIER: u32 = EXCHANGE + RADIX * ROW * 4;
const ROOTS: u32 = BARRIER + 16;
const FACTORS: u32 = ROOTS + (RADIX - 1) * RADIX * NUMBER;

/// The powers of two below the radix.
const BITS: u32 = RADIX.ilog2();

/// The roots of a line's factors: of its first numbers, of the powers of two of their distance, and two that are left out, so that lines
/// begin in different banks.
const FACTOR_ROW: u32 = RADIX + BITS + 2;

/// The bytes of shared memory of a block.
pub(in super::super) const SHARED: u32 = FACTORS + LINES * FACTOR_ROW * NUMBER;

const _: () = assert!(SHARED <= 227 << 10, "the shared memory of a block");
const _: () =
    assert!(BARRIER.is_multiple_of(16) && ROOTS.is_multiple_of(16) && FACTORS.is_multiple_of(16), "alignment");

/// The rows of the matrix that one copy takes.
pub(in super::super) const COPIED_ROWS: u32 = 256;

/// The bytes that one copy of a tile in a row takes.
const COPIED: u32 = 16384;

/// The least PTX version with these copies, times ten.
const VERSION: u32 = 80;

/// Which of two passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super::super) enum Side {
    /// Transforms the columns of each matrix, to the tiles of the second pass.
    Columns,
    /// Multiplies by the factors between the passes, transforms the lines of its tiles, and writes columns of each matrix.
    Rows,
}

/// A pass over lines of 4096 numbers of `f32`, of some matrices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super::super) struct AheadPass {
    pub(in super::super) side: Side,
    /// The number of lines of a matrix: a multiple of [`LINES`]. It is the length of the other pass's lines.
    pub(in super::super) lines: u32,
    /// The number of matrices.
    pub(in super::super) count: u32,
    pub(in super::super) inverse: bool,
    pub(in super::super) scaled: bool,
}

impl AheadPass {
    /// Returns the number of tiles.
    pub(in super::super) fn tiles(&self) -> u32 {
        self.count * (self.lines / LINES)
    }

    /// Returns the roots of the factors, for each line of a matrix.
    fn factors(&self) -> Vec<Complex<f64>> {
        let n = LINE as usize * self.lines as usize;
        let row = |line: usize| {
            let exponents = (0..RADIX).chain((0..BITS).map(|bit| RADIX << bit)).chain([0; 2]);
            exponents.map(move |exponent| root_of_unity(line * exponent as usize % n, n))
        };
        match self.side {
            Side::Columns => Vec::new(),
            Side::Rows => (0..self.lines as usize).flat_map(row).collect(),
        }
    }
}

/// Returns the kernel of a pass. Its parameters are those of other passes. For columns, the first one is the description of the matrices,
/// and not an address. A launch may have fewer blocks than there are tiles.
pub(in super::super::super) fn ahead(pass: &AheadPass, arch: u32) -> PassKernel {
    let (target, version) = target_of(arch);
    let mut code = Code::new(Real::F32, target, version.max(VERSION));
    let input = match pass.side {
        Side::Columns => {
            let map = code.e.op_with(Class::B64, "mov.b64", &[], "a0");
            code.e.op(Class::B64, "cvta.param.u64", &[map])
        }
        Side::Rows => code.pointer_parameter(0),
    };
    let [output, roots, factors] = [1, 2, 3].map(|number| code.pointer_parameter(number));
    let bound = code.integer_parameter(BOUND);
    code.scale = pass.scaled.then(|| code.real_parameter(SCALE));
    let thread = code.integer("%tid.x");
    let shared = code.integer("numbers");
    let leader = code.is_zero(thread);
    let barrier = code.plus(shared, BARRIER);
    let line = code.e.op_with(Class::B32, "and.b32", &[thread], LINES - 1);
    let row = code.quotient(thread, LINES, THREADS);
    Writer { code: &mut code, pass, input, output, factors, bound, thread, shared, leader, barrier, line, row }
        .write(roots);
    let first = match pass.side {
        Side::Columns => ".param .align 64 .b8 a0[128]",
        Side::Rows => ".param .u64 a0",
    };
    let others = (1..=PARAMETERS).map(|number| format!(".param .u64 a{number}"));
    let parameters = std::iter::once(first.to_owned()).chain(others).collect();
    let (text, shared) = module_of(&code, parameters, (THREADS, 1), SHARED);
    let roots = stage_roots(RADIX, RADIX).collect();
    PassKernel { text, blocks: pass.tiles().into(), threads: THREADS, shared, roots, outer_roots: pass.factors() }
}

struct Writer<'a> {
    code: &'a mut Code,
    pass: &'a AheadPass,
    /// The address of the description of the matrices, or of the tiles.
    input: Reg,
    output: Reg,
    factors: Reg,
    bound: Reg,
    thread: Reg,
    shared: Reg,
    leader: Reg,
    /// The address of the barrier of the copies.
    barrier: Reg,
    /// The thread's line of the tile, and its number among the threads of the line.
    line: Reg,
    row: Reg,
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
        op!(self.code.e, "fence.mbarrier_init.release.cluster;");
        self.keep_roots(roots);
        self.code.barrier(false);
        let (at, phase) = (self.code.e.reg(Class::B32), self.code.e.reg(Class::B32));
        op!(self.code.e, "mov.u32 {at}, %ctaid.x;");
        op!(self.code.e, "mov.u32 {phase}, 0;");
        let blocks = self.code.integer("%nctaid.x");
        self.ask(at);
        let [again, wait, end] = [(); 3].map(|()| self.code.e.label());
        self.code.e.place(&again);
        let is_over = self.code.e.op(Class::Pred, "setp.ge.u32", &[at, self.bound]);
        op!(self.code.e, "@{is_over} bra {end};");
        self.code.e.place(&wait);
        let is_there = self.code.e.reg(Class::Pred);
        op!(self.code.e, "mbarrier.try_wait.parity.shared::cta.b64 {is_there}, [{}], {phase};", self.barrier);
        op!(self.code.e, "@!{is_there} bra {wait};");
        op!(self.code.e, "xor.b32 {phase}, {phase}, 1;");

        let tile = self.tile(at);
        let mut x = self.take();
        let factors = (self.pass.side == Side::Rows).then(|| self.take_factors());
        // The threads have read the tile. The copies that replace it come after that.
        op!(self.code.e, "fence.proxy.async.shared::cta;");
        self.code.barrier(false);
        let next = self.code.e.op(Class::B32, "add.u32", &[at, blocks]);
        self.ask(next);
        if let Some((first, powers)) = factors {
            multiply(self.code, &mut x, &powers, first, 0);
        }
        let x = butterfly::transform(self.code, &x);
        let mut x = self.exchange(&x);
        self.multiply_by_roots(&mut x);
        let x = butterfly::transform(self.code, &x);
        self.give(&tile, &x);
        op!(self.code.e, "mov.u32 {at}, {next};");
        op!(self.code.e, "bra {again};");
        self.code.e.place(&end);
        op!(self.code.e, "ret;");
    }

    /// Copies the roots of the second stage to shared memory.
    fn keep_roots(&mut self, roots: Reg) {
        let (code, all) = (&mut *self.code, (RADIX - 1) * RADIX);
        let from = code.address(roots, self.thread);
        let to = code.scaled_plus(self.thread, NUMBER, self.shared);
        for first in (0..all).step_by(THREADS as usize) {
            let guard = (first + THREADS > all).then(|| code.below(self.thread, all - first));
            let offset = i64::from(first * NUMBER);
            let root = Number::of(code.load(Place { space: "global.nc", address: from, offset, guard }));
            code.store(Place { space: "shared", address: to, offset: offset + i64::from(ROOTS), guard }, root);
        }
    }

    /// Returns the tile of a turn.
    fn tile(&mut self, turn: Reg) -> Tile {
        let code = &mut *self.code;
        let number = match self.pass.side {
            Side::Columns => {
                let rest = code.e.op(Class::B32, "sub.u32", &[self.bound, turn]);
                code.e.op_with(Class::B32, "add.u32", &[rest], -1)
            }
            Side::Rows => turn,
        };
        let (matrix, group) = code.divided(number, self.pass.lines / LINES, u32::MAX);
        Tile { number, matrix, group }
    }

    /// Begins the copies of the tile of a turn, if there is one.
    fn ask(&mut self, turn: Reg) {
        let is_tile = self.code.e.op(Class::Pred, "setp.lt.u32", &[turn, self.bound]);
        let asks = self.code.e.op(Class::Pred, "and.pred", &[is_tile, self.leader]);
        let Tile { number, matrix, group } = self.tile(turn);
        let (shared, barrier) = (self.shared, self.barrier);
        let of_factors = LINES * FACTOR_ROW * NUMBER;
        let bytes = TILE + if self.pass.side == Side::Rows { of_factors } else { 0 };
        let code = &mut *self.code;
        op!(code.e, "@{asks} mbarrier.arrive.expect_tx.shared::cta.b64 _, [{barrier}], {bytes};");
        let by = "mbarrier::complete_tx::bytes";
        match self.pass.side {
            Side::Columns => {
                let column = code.scaled(group, LINES);
                for first in (0..LINE).step_by(COPIED_ROWS as usize) {
                    let (row, to) = (code.integer(first), first * LINES * NUMBER);
                    op!(
                        code.e,
                        "@{asks} cp.async.bulk.tensor.3d.shared::cluster.global.tile.{by} [{shared}+{to}], [{}, {{{column}, {row}, \
                         {matrix}}}], [{barrier}];",
                        self.input
                    );
                }
            }
            Side::Rows => {
                let mut from = |of: Reg, number: Reg, bytes: u32| {
                    let after = code.e.op_with(Class::B64, "mul.wide.u32", &[number], bytes);
                    code.e.op(Class::B64, "add.u64", &[of, after])
                };
                let (numbers, roots) = (from(self.input, number, TILE), from(self.factors, group, of_factors));
                let copies = (0..TILE).step_by(COPIED as usize).map(|at| (at, numbers, at, COPIED));
                for (to, from, at, bytes) in copies.chain([(FACTORS, roots, 0, of_factors)]) {
                    op!(
                        code.e,
                        "@{asks} cp.async.bulk.shared::cluster.global.{by} [{shared}+{to}], [{from}+{at}], {bytes}, [{barrier}];"
                    );
                }
            }
        }
    }

    /// Exchanges the parts of a number, if the transform is inverse.
    fn directed(&self, number: Number) -> Number {
        if self.pass.inverse { number.exchanged() } else { number }
    }

    /// Reads the thread's numbers of the tile.
    fn take(&mut self) -> Vec<Number> {
        let address = self.code.scaled_plus(self.thread, NUMBER, self.shared);
        let place = |k: u32| Place { space: "shared", address, offset: i64::from(k * THREADS * NUMBER), guard: None };
        (0..RADIX)
            .map(|k| {
                let number = Number::of(self.code.load(place(k)));
                self.directed(number)
            })
            .collect()
    }

    /// Reads the roots of the factors: that of the thread's first number, and those of the powers of two of the distance.
    fn take_factors(&mut self) -> ([Reg; 2], Vec<[Reg; 2]>) {
        let code = &mut *self.code;
        let of_line = code.scaled_plus(self.line, FACTOR_ROW * NUMBER, self.shared);
        let of_thread = code.scaled_plus(self.row, NUMBER, of_line);
        let mut root = |address: Reg, at: u32| {
            code.load(Place { space: "shared", address, offset: i64::from(FACTORS + at * NUMBER), guard: None })
        };
        let first = root(of_thread, 0);
        (first, (0..BITS).map(|bit| root(of_line, RADIX + bit)).collect())
    }

    /// Exchanges the results of the first stage for the numbers of the second one.
    fn exchange(&mut self, x: &[Number]) -> Vec<Number> {
        let code = &mut *self.code;
        let to = code.scaled_plus(self.thread, 4, self.shared);
        let place = code.scaled_plus(self.row, ROW, self.line);
        let from = code.scaled_plus(place, 4, self.shared);
        let parts: [fn(&Number) -> Value; 2] = [|x| x.re, |x| x.im];
        let [re, im] = [0, 1].map(|part| {
            if part == 1 {
                code.barrier(false);
            }
            for (k, number) in x.iter().enumerate() {
                let value = code.register(parts[part](number));
                op!(code.e, "st.shared.f32 [{to}+{}], {value};", EXCHANGE + k as u32 * ROW * 4);
            }
            code.barrier(false);
            let part = |k: u32| {
                code.e.op_with(Class::F32, "ld.shared.f32", &[], format_args!("[{from}+{}]", EXCHANGE + k * LINES * 4))
            };
            (0..RADIX).map(part).collect::<Vec<Reg>>()
        });
        re.into_iter().zip(im).map(|(re, im)| Number::of([re, im])).collect()
    }

    fn multiply_by_roots(&mut self, x: &mut [Number]) {
        let code = &mut *self.code;
        let address = code.scaled_plus(self.row, NUMBER, self.shared);
        for (k, number) in x.iter_mut().enumerate().skip(1) {
            let offset = i64::from(ROOTS + (k as u32 - 1) * RADIX * NUMBER);
            let root = code.load(Place { space: "shared", address, offset, guard: None });
            *number = code.multiply(*number, root);
        }
    }

    /// Writes the results. Result `k` is number `row + 64 * k` of the line.
    fn give(&mut self, tile: &Tile, x: &[Number]) {
        let (code, lines) = (&mut *self.code, self.pass.lines);
        let begin = code.scaled(tile.matrix, LINE * lines);
        let line = code.scaled_plus(tile.group, LINES, self.line);
        let index = match self.pass.side {
            // Four rows of the matrix are a tile of the second pass, in which the four numbers of a column are neighbours.
            Side::Columns => {
                let of_tile = code.quotient(self.row, LINES, RADIX);
                let in_tile = code.e.op_with(Class::B32, "and.b32", &[self.row], LINES - 1);
                let place = code.scaled_plus(of_tile, lines, line);
                code.scaled_plus(place, LINES, in_tile)
            }
            Side::Rows => code.scaled_plus(self.row, lines, line),
        };
        let index = code.e.op(Class::B32, "add.u32", &[begin, index]);
        let address = code.address(self.output, index);
        for (k, &number) in x.iter().enumerate() {
            let number = if self.pass.inverse { number.exchanged() } else { number };
            let offset = i64::from(RADIX * lines * NUMBER) * k as i64;
            code.store(Place { space: "global", address, offset, guard: None }, number);
        }
    }
}

/// Multiplies the numbers by their factors. Number `k` has the product of `prefix` and of the powers for the bits of `k`. The products are
/// made along a binary tree, walked depth first, so that few of them are alive.
fn multiply(code: &mut Code, x: &mut [Number], powers: &[[Reg; 2]], prefix: [Reg; 2], k: usize) {
    let Some((&power, lower)) = powers.split_last() else {
        x[k] = code.multiply(x[k], prefix);
        return;
    };
    multiply(code, x, lower, prefix, k);
    let product = code.multiply(Number::of(prefix), power);
    let product = [code.register(product.re), code.register(product.im)];
    multiply(code, x, lower, product, k + (1 << lower.len()));
}
