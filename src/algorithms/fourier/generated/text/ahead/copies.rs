//! The order of tiles, and their copies to shared memory.
//!
//! Turns are the tiles in the order in which blocks take them. A block's first turn is its number. Its next turn is `n` after its last one, or
//! `n` after the ticket that it drew, if there are `n` blocks. One thread asks for the copies of a tile, and all threads wait for them at a
//! barrier in shared memory that counts their bytes.
//!
//! Two blocks that share lines take the same turns. The first turn is the number of the cluster, and the second turn is `n` after it, if there
//! are `n` clusters. The first block draws the tickets of both, and hands over a turn when both blocks meet. That is too late to ask for the
//! next tile, so it is the turn after the next one, `2 * n` after the ticket.

use std::fmt::Write;

use super::{COPIED_ROWS, COPIES, COUNTER, LINE, NEXT, PIECE, Side, THREADS, TILE, Tile, Writer};
use crate::algorithms::fourier::generated::text::code::{Number, Place};
use crate::expr::ptx::emit::{Class, Reg, op};

/// The bytes that one copy of a tile in a row takes.
const COPIED: u32 = 16384;

const _: () = assert!(COPIES * COPIED_ROWS == LINE && TILE.is_multiple_of(COPIED), "copies of whole tiles");

impl Writer<'_> {
    /// Copies the roots of the stages to shared memory.
    pub(super) fn keep_roots(&mut self, roots: Reg) {
        let (code, shape) = (&mut *self.code, self.shape);
        let from = code.address(roots, self.thread);
        let to = code.scaled_plus(self.thread, shape.number, self.shared);
        for first in (0..shape.roots).step_by(THREADS as usize) {
            let guard = (first + THREADS > shape.roots).then(|| code.below(self.thread, shape.roots - first));
            let offset = i64::from(first * shape.number);
            let root = Number::of(code.load(Place { space: "global.nc", address: from, offset, guard }));
            let offset = offset + i64::from(shape.roots_at());
            code.store(Place { space: "shared", address: to, offset, guard }, root);
        }
    }

    /// Returns the tile of a turn.
    pub(super) fn tile(&mut self, turn: Reg) -> Tile {
        let code = &mut *self.code;
        let number = match self.pass.side {
            Side::Columns => {
                let rest = code.e.op(Class::B32, "sub.u32", &[self.bound, turn]);
                code.e.op_with(Class::B32, "add.u32", &[rest], -1)
            }
            Side::Rows => turn,
        };
        let (matrix, group) = code.divided(number, self.pass.groups(), u32::MAX);
        Tile { number, matrix, group }
    }

    /// Returns the number after which a later turn is counted: the present turn, or a ticket, which one thread draws and has.
    pub(super) fn draw(&mut self, turn: Reg) -> Reg {
        let Some(counters) = self.counters else { return turn };
        let (code, drawer) = (&mut *self.code, self.drawer);
        let counter = COUNTER * u32::from(self.pass.side == Side::Rows);
        let ticket = code.e.reg(Class::B32);
        op!(code.e, "@{drawer} atom.global.add.u32 {ticket}, [{counters}+{counter}], 1;");
        ticket
    }

    /// Begins the copies of the next turn's tile. It is counted after `last`, unless two blocks share lines and know it. All threads have the
    /// present tile in registers.
    pub(super) fn taken(&mut self, last: Reg) {
        // The threads have read the tile. The copies that replace it come after that.
        op!(self.code.e, "fence.proxy.async.shared::cta;");
        self.code.barrier(false);
        if let Some(peer) = &self.peer {
            return self.ask(peer.next);
        }
        let next = self.code.e.op(Class::B32, "add.u32", &[last, self.clusters]);
        if self.counters.is_some() {
            // All threads have read the turn before. They read this one after the barriers of an exchange.
            op!(self.code.e, "@{} st.shared.u32 [{}+{NEXT}], {next};", self.leader, self.barrier);
        }
        self.ask(next);
    }

    /// Asks for the first tile.
    pub(super) fn begin_turns(&mut self, turn: Reg) {
        if let Some(peer) = &self.peer {
            op!(self.code.e, "add.u32 {}, {turn}, {};", peer.next, self.clusters);
        }
        self.ask(turn);
    }

    /// Makes the block's next turn the present one.
    pub(super) fn take_turn(&mut self, turn: Reg) {
        if self.peer.is_some() {
            self.take_shared_turn(turn);
        } else if self.counters.is_some() {
            op!(self.code.e, "ld.shared.u32 {turn}, [{}+{NEXT}];", self.barrier);
        } else {
            op!(self.code.e, "add.u32 {turn}, {turn}, {};", self.clusters);
        }
    }

    /// Begins the copies of the tile of a turn, if there is one.
    pub(super) fn ask(&mut self, turn: Reg) {
        let is_tile = self.code.e.op(Class::Pred, "setp.lt.u32", &[turn, self.bound]);
        let asks = self.code.e.op(Class::Pred, "and.pred", &[is_tile, self.leader]);
        let tile = self.tile(turn);
        let bytes = TILE + if self.pass.side == Side::Rows { self.shape.factor_bytes() } else { 0 };
        op!(self.code.e, "@{asks} mbarrier.arrive.expect_tx.shared::cta.b64 _, [{}], {bytes};", self.barrier);
        match self.pass.side {
            Side::Columns => self.copy_columns(asks, &tile),
            Side::Rows => self.copy_rows(asks, &tile),
        }
    }

    /// Copies the columns of a tile, some rows of a slice at a time.
    fn copy_columns(&mut self, asks: Reg, tile: &Tile) {
        let (code, shared, barrier, map) = (&mut *self.code, self.shared, self.barrier, self.input);
        let (of_slice, column) = (LINE / self.shape.slices, code.scaled(tile.group, PIECE / 8));
        let first = code.scaled(tile.matrix, of_slice);
        let (axes, rank) = match &self.peer {
            Some(peer) => (4, format!(", {}", peer.rank)),
            None => (3, String::new()),
        };
        for copy in 0..COPIES {
            let (slice, row) = (copy * COPIED_ROWS / of_slice, copy * COPIED_ROWS % of_slice);
            let (slice, row, to) = (code.integer(slice), code.plus(first, row), copy * COPIED_ROWS * PIECE);
            op!(
                code.e,
                "@{asks} cp.async.bulk.tensor.{axes}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [{shared}+{to}], [{map}, \
                 {{{column}{rank}, {slice}, {row}}}], [{barrier}];"
            );
        }
    }

    /// Copies the block's numbers of a tile, and the roots of its factors.
    fn copy_rows(&mut self, asks: Reg, tile: &Tile) {
        let [number, group] = [tile.number, tile.group].map(|tile| match &self.peer {
            Some(peer) => self.code.scaled_plus(tile, self.pass.cluster, peer.rank),
            None => tile,
        });
        let (code, shared, barrier, of_factors) =
            (&mut *self.code, self.shared, self.barrier, self.shape.factor_bytes());
        let mut from = |of: Reg, number: Reg, bytes: u32| {
            let after = code.e.op_with(Class::B64, "mul.wide.u32", &[number], bytes);
            code.e.op(Class::B64, "add.u64", &[of, after])
        };
        let numbers = from(self.input, number, TILE);
        let roots = from(self.factors, group, of_factors);
        let copies = (0..TILE).step_by(COPIED as usize).map(|at| (at, numbers, at, COPIED));
        for (to, from, at, bytes) in copies.chain([(self.shape.factors_at(), roots, 0, of_factors)]) {
            op!(
                code.e,
                "@{asks} cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{shared}+{to}], [{from}+{at}], {bytes}, \
                 [{barrier}];"
            );
        }
    }
}
