//! Two passes in one launch. They work on a part of the array at a time, so that the numbers between them stay in the cache of the second
//! level.
//!
//! A counter gives out tickets. Each ticket is a tile of one of the passes, and a block takes one ticket. The first tickets are some chunks
//! of the first pass, so that it is ahead. Then each pass has one chunk in turn. Then the rest of the second pass follows. A tile of the
//! second pass waits until the first pass has done all tiles of its chunk. The numbers between the passes are in a ring of chunks, or in
//! the output, if the second pass replaces them. In a ring, a tile of the first pass waits until the second pass has done the chunk that
//! had its place before. A ticket waits only for smaller tickets, in whatever order blocks start. So no block waits forever.
//!
//! Measured on an H100 (driver 580.159.04), whose cache has 50 MB: the first pass should be 8 MiB ahead, and the ring has 4 MiB more, or
//! two chunks. 1024 transforms of 2^16 numbers of `f32` take 0.530 ms (two launches 0.726, cuFFT 12.0 0.771), and an array of 256^3 takes
//! 0.222 ms (0.280, 0.309). If the first pass is less ahead, tiles wait for tiles in flight. If it is more ahead, the cache is too small.

use std::fmt::Write;

use super::code::Code;
use super::kernel::{Frame, Writer, outer_roots};
use super::module::module;
use crate::Complex;
use crate::algorithms::fourier::generated::layout::bytes;
use crate::algorithms::fourier::generated::pass::LinePass;
use crate::expr::ptx::emit::{Class, Reg, op};
use crate::expr::ptx::target_of;

#[cfg(test)]
mod tests;

/// Two passes that are launched together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super::super) struct FusedPair {
    /// Both passes have the same number of threads in a block. The input of the second one is [`fresh`](LinePass::fresh).
    pub(in super::super) passes: [LinePass; 2],
    /// The number of chunks. Each chunk has the same number of tiles of the first pass, in their order, and the same number of the second.
    pub(in super::super) chunks: u32,
    /// The number of chunks by which the first pass is ahead.
    pub(in super::super) ahead: u32,
    /// The number of chunks of the ring between the passes, or 0 if there is none.
    pub(in super::super) ring: u32,
    /// The number of blocks that a multiprocessor should hold.
    pub(in super::super) blocks: u32,
}

impl FusedPair {
    /// Returns the numbers of the ring, or 0 if there is none.
    pub(in super::super) fn ring_numbers(&self) -> usize {
        let chunk = self.passes[1].axes.iter().find(|axis| axis.rings[0] > 0).map_or(0, |axis| axis.strides[0]);
        self.ring as usize * chunk as usize
    }

    /// Returns the number of counters of 32 bits: one for tickets, then one of each chunk for the tiles that the first pass has done, and
    /// then one of each chunk for those that the second pass has done.
    pub(in super::super) fn counters(&self) -> u32 {
        1 + 2 * self.chunks
    }
}

/// A kernel, and the values that its launch needs. Its parameters are the addresses of the input, of the numbers between the passes, and of
/// the output; for each pass, the roots of its stages and the roots of its factors; the counters, which are 0 before the launch; and the
/// factor of the results.
pub(in super::super::super) struct FusedKernel {
    pub(in super::super) text: String,
    pub(in super::super) blocks: u64,
    pub(in super::super) threads: u32,
    pub(in super::super) shared: u32,
    pub(in super::super) roots: [Vec<Complex<f64>>; 2],
    pub(in super::super) outer_roots: [Vec<Complex<f64>>; 2],
}

/// The work of a block.
struct Ticket {
    chunk: Reg,
    /// The tile of the chunk.
    tile: Reg,
    /// Whether the tile is of the second pass.
    second: Reg,
}

/// Returns the kernel of two passes.
pub(in super::super::super) fn fused(pair: &FusedPair, arch: u32) -> FusedKernel {
    let [first, second] = &pair.passes;
    debug_assert!(first.block_threads() == second.block_threads() && first.real == second.real && second.fresh);
    debug_assert!(pair.ahead >= 1 && pair.ahead < pair.chunks && (pair.ring == 0 || pair.ring > pair.ahead));
    let tiles = [first, second].map(|pass| {
        let tiles = u32::try_from(pass.tiles()).expect("32 bits count tiles");
        debug_assert!(tiles.is_multiple_of(pair.chunks), "chunks are of whole tiles");
        tiles / pair.chunks
    });
    let (target, version) = target_of(arch);
    let mut code = Code::new(first.real, target, version);
    let parameters = [0, 1, 2, 3, 4, 5, 6, 7].map(|number| code.pointer_parameter(number));
    let [input, between, output, roots_1, outer_1, roots_2, outer_2, counters] = parameters;
    let thread = code.integer("%tid.x");
    let shared = code.integer("numbers");
    let leader = code.is_zero(thread);
    let ticket = take(&mut code, pair, tiles, counters, leader);
    // The counters of the chunk are after the tickets.
    let bytes_on = code.e.op_with(Class::B64, "mul.wide.u32", &[ticket.chunk], COUNTER);
    let chunk = code.e.op(Class::B64, "add.u64", &[counters, bytes_on]);
    let done = [COUNTER, COUNTER * (1 + pair.chunks)].map(i64::from);
    let of_second = code.e.label();
    op!(code.e, "@{} bra {of_second};", ticket.second);
    if pair.ring > 0 {
        // The tile waits for the chunk that had this place of the ring before. The first chunks find the ring empty.
        let (empty, free) = (code.below(ticket.chunk, pair.ring), code.e.label());
        op!(code.e, "@{empty} bra {free};");
        let before = done[1] - i64::from(COUNTER * pair.ring);
        wait(&mut code, leader, (chunk, before), tiles[1]);
        code.e.place(&free);
    }
    let mut roots = [Vec::new(), Vec::new()];
    let [roots_of_first, roots_of_second] = &mut roots;
    let tile = code.scaled_plus(ticket.chunk, tiles[0], ticket.tile);
    let bound = code.integer(first.bound());
    let frame = Frame { parameters: [input, between, roots_1, outer_1], bound, scale: None, thread, tile, shared };
    let numbers_1 = Writer::new(&mut code, first, frame, roots_of_first).write();
    finish(&mut code, leader, (chunk, done[0]));
    op!(code.e, "ret;");

    code.e.place(&of_second);
    wait(&mut code, leader, (chunk, done[0]), tiles[0]);
    let tile = code.scaled_plus(ticket.chunk, tiles[1], ticket.tile);
    let (bound, scale) = (code.integer(second.bound()), second.scaled.then(|| code.real_parameter(parameters.len())));
    let frame = Frame { parameters: [between, output, roots_2, outer_2], bound, scale, thread, tile, shared };
    let numbers_2 = Writer::new(&mut code, second, frame, roots_of_second).write();
    if pair.ring > 0 {
        finish(&mut code, leader, (chunk, done[1]));
    }
    op!(code.e, "ret;");

    // The shared memory must also have room for the ticket.
    let memory = bytes(numbers_1.max(numbers_2).max(2), first.real);
    let threads = first.block_threads();
    let (text, shared) = module(&code, parameters.len() + 1, (threads, pair.blocks), memory);
    FusedKernel {
        text,
        blocks: u64::from(pair.chunks) * u64::from(tiles[0] + tiles[1]),
        threads,
        shared,
        roots,
        outer_roots: [outer_roots(first), outer_roots(second)],
    }
}

/// The bytes of a counter.
const COUNTER: u32 = 4;

/// Takes the ticket of the block, and computes its work.
fn take(code: &mut Code, pair: &FusedPair, tiles: [u32; 2], counters: Reg, leader: Reg) -> Ticket {
    let got = code.e.reg(Class::B32);
    op!(code.e, "@{leader} atom.global.add.u32 {got}, [{counters}], 1;");
    let place = code.integer("numbers");
    op!(code.e, "@{leader} st.shared.u32 [{place}], {got};");
    code.barrier(false);
    let ticket = code.e.op_with(Class::B32, "ld.shared.u32", &[], format_args!("[{place}]"));
    // No thread writes this place before all threads have read it.
    code.barrier(false);
    // First come the tickets of the first pass alone, and then those of both passes.
    let (lead, period) = (pair.ahead * tiles[0], tiles[0] + tiles[1]);
    let both = (pair.chunks - pair.ahead) * period;
    let early = code.below(ticket, lead);
    let (early_chunk, early_tile) = code.divided(ticket, tiles[0], u32::MAX);
    let rest = code.e.op_with(Class::B32, "sub.u32", &[ticket], lead);
    let (round, at) = code.divided(rest, period, u32::MAX);
    let before_second = code.below(at, tiles[0]);
    let ahead = code.plus(round, pair.ahead);
    let at_second = code.e.op_with(Class::B32, "sub.u32", &[at], tiles[0]);
    let not_late = code.below(ticket, lead + both);
    let late = code.e.op_with(Class::B32, "sub.u32", &[rest], both);
    let (late_chunk, late_tile) = code.divided(late, tiles[1], u32::MAX);
    let late_chunk = code.plus(late_chunk, pair.chunks - pair.ahead);
    let mut select = |early_one: Reg, first: Reg, second: Reg, late_one: Reg| {
        let middle = code.e.op(Class::B32, "selp.b32", &[first, second, before_second]);
        let all = code.e.op(Class::B32, "selp.b32", &[middle, late_one, not_late]);
        code.e.op(Class::B32, "selp.b32", &[early_one, all, early])
    };
    let chunk = select(early_chunk, ahead, round, late_chunk);
    let tile = select(early_tile, at, at_second, late_tile);
    // The tickets of the first pass are the early ones, and those at the beginning of a round.
    let in_round = code.e.op(Class::Pred, "and.pred", &[before_second, not_late]);
    let first = code.e.op(Class::Pred, "or.pred", &[early, in_round]);
    let second = code.e.op(Class::Pred, "not.pred", &[first]);
    Ticket { chunk, tile, second }
}

/// Makes the block wait until a counter is at least `count`.
fn wait(code: &mut Code, leader: Reg, (counter, offset): (Reg, i64), count: u32) {
    let (again, on) = (code.e.label(), code.e.label());
    op!(code.e, "@!{leader} bra {on};");
    code.e.place(&again);
    let value = code.e.op_with(Class::B32, "ld.acquire.gpu.global.u32", &[], format_args!("[{counter}+{offset}]"));
    let less = code.below(value, count);
    op!(code.e, "@{less} bra {again};");
    code.e.place(&on);
    code.barrier(false);
}

/// Counts a tile after the whole block has written it.
fn finish(code: &mut Code, leader: Reg, (counter, offset): (Reg, i64)) {
    code.barrier(false);
    op!(code.e, "@{leader} red.release.gpu.global.add.u32 [{counter}+{offset}], 1;");
}
