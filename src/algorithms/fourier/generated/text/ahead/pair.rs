//! Lines of 8192 numbers that the two blocks of a cluster share.
//!
//! The first block has the even numbers of each line of a tile, and the second block has the odd ones. Each block transforms its numbers as
//! lines of 4096. If `E` and `O` are their results, the line's results `k` and `k + 4096` are `E[k] ± w^k * O[k]`, where `w` is a root of
//! unity of 8192. The first block computes these for the lower half of all `k`, and the second block for the upper half. So each block sends
//! half of its results to the other one, by stores to its shared memory.
//!
//! The results go where the parts of the last exchange were. So blocks meet after they have read these parts. At this meeting, a block
//! arrives early and waits late. There are two ways to wait for the results:
//!
//! - The blocks meet a second time.
//! - The stores count their bytes at a barrier in the other block's shared memory, as copies do (`st.async`).
//!
//! After a block has received the results of its last tile, the other block writes nothing to its shared memory. So it may end.

use std::fmt::Write;

use super::numbers::Results;
use super::{EXCHANGE, LINE, NEXT, RECEIVED, Shape, THREADS, TILE, Writer};
use crate::Complex;
use crate::algorithms::fourier::generated::text::butterfly;
use crate::algorithms::fourier::generated::text::code::{Code, Number, Place};
use crate::element::root_of_unity;
use crate::expr::ptx::emit::{Class, Reg, op};

/// The length of a line.
const WHOLE: u32 = 2 * LINE;

/// The bytes of the results that a block receives for a tile.
const RECEIVED_BYTES: u32 = TILE / 2;

/// The other block of a cluster, and what a block needs to share lines with it.
pub(super) struct Peer {
    /// The block's own number in the cluster.
    pub(super) rank: Reg,
    pub(super) is_first: Reg,
    /// The block's next turn.
    pub(super) next: Reg,
    /// The address of the other block's shared memory, and that of the thread's first place there.
    shared: Reg,
    place: Reg,
    /// The thread's first place in the block's own shared memory.
    own_place: Reg,
    /// The root for the thread's first result.
    root: [Reg; 2],
}

/// Returns the number of threads that have the same line of a tile.
const fn threads_of_line(shape: Shape) -> u32 {
    THREADS / shape.lines()
}

const fn has_room(shape: Shape) -> bool {
    RECEIVED_BYTES <= shape.exchanged
}

const _: () = assert!(has_room(super::two::SHAPE), "received results are in the exchange");

/// Returns the roots for the first results of the threads.
pub(super) fn roots(shape: Shape) -> impl Iterator<Item = Complex<f64>> {
    (0..threads_of_line(shape)).map(|k| root_of_unity(k as usize, WHOLE as usize))
}

impl Peer {
    /// Finds the other block. The thread is number `row` among those of its line.
    pub(super) fn new(code: &mut Code, shape: Shape, [shared, thread, row]: [Reg; 3], roots: Reg) -> Self {
        let rank = code.integer("%cluster_ctarank");
        let is_first = code.is_zero(rank);
        let other = code.e.op_with(Class::B32, "xor.b32", &[rank], 1);
        let of_other = code.e.op(Class::B32, "mapa.shared::cluster.u32", &[shared, other]);
        let [own_place, place] = [shared, of_other].map(|shared| code.scaled_plus(thread, shape.number, shared));
        let (address, offset) = (code.address(roots, row), i64::from(shape.roots * shape.number));
        let root = code.load(Place { space: "global.nc", address, offset, guard: None });
        let next = code.e.reg(Class::B32);
        Self { rank, is_first, next, shared: of_other, place, own_place, root }
    }
}

impl Writer<'_> {
    /// Lets the other block write to the memory of the exchange, if two share lines. The turn after the next one is counted after `last`.
    pub(super) fn leave_exchange(&mut self, last: Reg) {
        if self.peer.is_none() {
            return;
        }
        if self.pass.counts_received() {
            let (leader, barrier, bytes) = (self.leader, self.barrier, RECEIVED_BYTES);
            op!(self.code.e, "@{leader} mbarrier.arrive.expect_tx.shared::cta.b64 _, [{barrier}+{RECEIVED}], {bytes};");
            self.hand_over_turn(last);
        }
        op!(self.code.e, "barrier.cluster.arrive.release.aligned;");
    }

    /// Writes code for each block of the cluster.
    fn by_rank(&mut self, is_first: Reg, mut write: impl FnMut(&mut Self, usize)) {
        let [second, end] = [(); 2].map(|()| self.code.e.label());
        op!(self.code.e, "@!{is_first} bra.uni {second};");
        write(self, 0);
        op!(self.code.e, "bra.uni {end};");
        self.code.e.place(&second);
        write(self, 1);
        self.code.e.place(&end);
    }

    /// Sends half of some results to the other block.
    pub(super) fn send(&mut self, results: &Results) {
        let Some(&Peer { is_first, place, .. }) = self.peer.as_ref() else { return };
        let half = results.numbers.len() / 2;
        self.by_rank(is_first, |writer, rank| {
            // Here, the assembler does not move the transform past it.
            op!(writer.code.e, "barrier.cluster.wait.acquire.aligned;");
            // The lower half is for the first block.
            let sent = &results.numbers[(1 - rank) * half..][..half];
            for (i, &number) in (0u32..).zip(sent) {
                writer.send_number(place, received_at(i, writer.shape), number);
            }
        });
    }

    /// Sends a number to an offset from an address in the other block's shared memory.
    fn send_number(&mut self, address: Reg, offset: u32, number: Number) {
        let Some(&Peer { shared, .. }) = self.peer.as_ref() else { return };
        if !self.pass.counts_received() {
            let place = Place { space: "shared::cluster", address, offset: offset.into(), guard: None };
            return self.code.store(place, number);
        }
        let (re, im) = (self.code.register(number.re), self.code.register(number.im));
        let (barrier, t) = (self.shape.barrier_at() + RECEIVED, self.code.real.ptx());
        op!(
            self.code.e,
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.{t} [{address}+{offset}], {{{re}, {im}}}, [{shared}+{barrier}];"
        );
    }

    /// Waits for the results of the other block.
    fn receive(&mut self, last: Reg) {
        if !self.pass.counts_received() {
            self.hand_over_turn(last);
            op!(self.code.e, "barrier.cluster.arrive.release.aligned;");
            op!(self.code.e, "barrier.cluster.wait.acquire.aligned;");
            return;
        }
        let parity = self.code.e.op_with(Class::B32, "xor.b32", &[self.phase], 1);
        let (wait, are_there) = (self.code.e.label(), self.code.e.reg(Class::Pred));
        self.code.e.place(&wait);
        op!(
            self.code.e,
            "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 {are_there}, [{}+{RECEIVED}], {parity};",
            self.barrier
        );
        op!(self.code.e, "@!{are_there} bra {wait};");
    }

    /// Gives both blocks the turn after the next one, which is counted after `last`. They read it after the next meeting. Both have read the
    /// turn before the last one, which was in the same place.
    fn hand_over_turn(&mut self, last: Reg) {
        let Some(&Peer { shared, .. }) = self.peer.as_ref() else { return };
        let (code, drawer) = (&mut *self.code, self.drawer);
        let turn = code.scaled_plus(self.clusters, 2, last);
        let [own, other] = [self.barrier, shared].map(|base| code.scaled_plus(self.phase, 4, base));
        op!(code.e, "@{drawer} st.shared.u32 [{own}+{NEXT}], {turn};");
        op!(code.e, "@{drawer} st.shared::cluster.u32 [{other}+{}], {turn};", self.shape.barrier_at() + NEXT);
    }

    /// Makes the next turn the present one, and takes the turn after it.
    pub(super) fn take_shared_turn(&mut self, turn: Reg) {
        let Some(&Peer { next, .. }) = self.peer.as_ref() else { return };
        let place = self.code.scaled_plus(self.phase, 4, self.barrier);
        op!(self.code.e, "mov.u32 {turn}, {next};");
        op!(self.code.e, "ld.shared.u32 {next}, [{place}+{NEXT}];");
    }

    /// Combines the results that were sent, and writes the line's results. The turn after the next one is counted after `last`.
    pub(super) fn combine(&mut self, address: Reg, results: &Results, last: Reg) {
        let Some(&Peer { is_first, own_place, root, .. }) = self.peer.as_ref() else { return };
        self.receive(last);
        self.by_rank(is_first, |writer, rank| {
            let half = results.numbers.len() / 2;
            for (received, i) in (0u32..).zip(rank * half..(rank + 1) * half) {
                let other = Number::of(writer.shared_number(own_place, received_at(received, writer.shape)));
                let (even, odd) = if rank == 0 { (results.numbers[i], other) } else { (other, results.numbers[i]) };
                let k = results.element(i as u32);
                let odd = writer.code.multiply(odd, root);
                let odd = butterfly::times_root(writer.code, odd, k as usize, WHOLE as usize);
                let sums = [writer.code.add_number(even, odd), writer.code.sub_number(even, odd)];
                writer.give(address, k, sums[0]);
                writer.give(address, k + LINE, sums[1]);
            }
        });
    }
}

/// Returns the offset of a number that a thread receives, from its first place.
fn received_at(number: u32, shape: Shape) -> u32 {
    EXCHANGE + number * THREADS * shape.number
}
