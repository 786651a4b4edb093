//! What a block's lanes call.

use std::sync::atomic::{Ordering, fence};
use std::thread::panicking;

use primitives_gpu::simt::emulated::{Access, AccessKind, AsyncCopy, Lane, Machine, Space, WarpOp};
use primitives_gpu::simt::{BarrierVote, Fault, Place, Scope, WARP};

use super::{AFTER_RACE, BlockState, MOVES, same_place};
use crate::emulator::memory::Wrong;
use crate::emulator::{report, warp};
use crate::launch::in_kernel;

/// In a lane that unwinds, the destructors may still call these. They get some result at once: nobody looks at the values
/// of a failed launch, and a suspended lane would leave its thread's state of unwinding to the others.
impl Machine for BlockState<'_> {
    #[inline]
    fn barrier(&self, lane: &Lane<'_>, vote: BarrierVote, predicate: bool, place: Place) -> u32 {
        if panicking() {
            return 0;
        }
        let rank = lane.thread_rank;
        let state = &self.lanes[rank as usize];
        let (number, bit) = ((rank / WARP) as usize, 1 << (rank % WARP));
        state.place.set(place);
        self.note_changes(lane);

        let barrier = &self.barrier;
        let arrived = barrier.arrived.get() + 1;
        if arrived == 1 {
            barrier.first.set((vote, place));
            barrier.votes.set(0);
            barrier.mixed.set(false);
        } else {
            let (first_vote, first_place) = barrier.first.get();
            if vote != first_vote || !same_place(place, first_place) {
                barrier.mixed.set(true);
            }
        }
        let votes = barrier.votes.get() + predicate as u32;
        if arrived < self.launch.threads {
            barrier.arrived.set(arrived);
            barrier.votes.set(votes);
            let waiting = &self.warps[number].at_barrier;
            waiting.set(waiting.get() | bit);
            self.suspend(state);
            return barrier.result.get();
        }

        barrier.arrived.set(0);
        let mut is_unwritten = false;
        if let Some((launch, memory)) = &self.memory {
            launch.barrier(memory);
            is_unwritten = memory.unwritten().is_some();
        }
        if barrier.mixed.get() || is_unwritten {
            let waiting = &self.warps[number].at_barrier;
            waiting.set(waiting.get() | bit);
            let untold = if barrier.mixed.get() { None } else { self.untold() };
            self.fail(state, || untold.unwrap_or_else(|| report::mixed_barrier(self)));
        }
        if self.has_race() {
            self.go_on_after_race(state, AFTER_RACE);
        }
        barrier.result.set(match vote {
            BarrierVote::None => 0,
            BarrierVote::Count => votes,
            BarrierVote::All => (votes == arrived) as u32,
            BarrierVote::Any => (votes > 0) as u32,
        });
        for (number, warp) in self.warps().iter().enumerate() {
            let waiting = warp.at_barrier.take();
            if waiting != 0 {
                self.make_ready(number, waiting);
            }
        }
        // A checked lane shows that it gets on by what it writes, so that a wait with a barrier in its loop is seen.
        if !lane.checked {
            self.note_progress();
        }
        // In a closure that holds memory, a lane cannot let others go first.
        if self.random.is_some() && !in_kernel::is_in_closure() {
            // Or the last to come would always be the first to go.
            self.make_ready(number, bit);
            self.suspend(state);
        }
        barrier.result.get()
    }

    #[inline]
    fn warp_op(&self, lane: &Lane<'_>, mask: u32, op: WarpOp, value: u128, place: Place) -> u128 {
        if panicking() {
            return value;
        }
        let rank = lane.thread_rank;
        let state = &self.lanes[rank as usize];
        let (number, bit) = ((rank / WARP) as usize, 1u32 << (rank % WARP));
        let warp = &self.warps[number];
        if self.has_race() {
            self.go_on_after_race(state, 1);
        }
        if mask & bit == 0 || mask & !warp.existing.get() != 0 {
            self.fail(state, || {
                report::fault(self, state, place, report::bad_mask(op, mask, rank % WARP, warp.existing.get()))
            });
        }
        if let WarpOp::Shuffle { width, .. } = op
            && (!width.is_power_of_two() || width > WARP)
        {
            self.fail(state, || report::fault(self, state, place, report::bad_width(width)));
        }
        state.place.set(place);
        state.mask.set(mask);
        state.exchange.op.set(op);
        state.exchange.value.set(value);

        let first = number * WARP as usize;
        let mut leaders = warp::bits(warp.leaders.get());
        match leaders.find(|&lane| self.lanes[first + lane as usize].mask.get() == mask) {
            None if mask == bit => {}
            None => {
                state.arrived.set(bit);
                warp.leaders.set(warp.leaders.get() | bit);
                warp.in_operation.set(warp.in_operation.get() | bit);
                self.suspend(state);
                return state.exchange.result.get();
            }
            Some(leader_lane) => {
                let leader = &self.lanes[first + leader_lane as usize];
                if !same_place(place, leader.place.get()) || !warp::same_operation(op, leader.exchange.op.get()) {
                    self.fail(state, || report::mixed_operation(self, leader, state));
                }
                let arrived = leader.arrived.get() | bit;
                if arrived != mask {
                    leader.arrived.set(arrived);
                    warp.in_operation.set(warp.in_operation.get() | bit);
                    self.suspend(state);
                    return state.exchange.result.get();
                }
                warp.leaders.set(warp.leaders.get() & !(1 << leader_lane));
            }
        }

        let exchange = |lane: u32| &self.lanes[first + lane as usize].exchange;
        if let Err(outside) = warp::perform(mask, exchange) {
            let reader = &self.lanes[first + outside.reader as usize];
            self.fail(state, || report::fault(self, reader, reader.place.get(), report::outside_mask(mask, &outside)));
        }
        if op == WarpOp::Sync
            && let Some((launch, memory)) = &self.memory
        {
            launch.sync_warp(memory, number as u32, mask, warp.existing.get());
        }
        warp.in_operation.set(warp.in_operation.get() & !mask);
        let others = mask & !bit;
        // In a closure that holds memory, a lane cannot let others go first.
        if self.random.is_some() && !in_kernel::is_in_closure() {
            self.make_ready(number, mask);
            self.suspend(state);
        } else if others != 0 {
            self.make_ready(number, others);
        }
        state.exchange.result.get()
    }

    /// Only the lane itself: lanes run one by one, and any set that contains the caller is allowed.
    fn active_mask(&self, lane: &Lane<'_>) -> u32 {
        1 << (lane.thread_rank % WARP)
    }

    fn spin(&self, lane: &Lane<'_>, place: Place) {
        if panicking() {
            return self.spin_in_vain(lane, place);
        }
        let rank = lane.thread_rank;
        let state = &self.lanes[rank as usize];
        state.place.set(place);
        if self.has_race() {
            // It may wait for what other blocks do.
            self.go_on_after_race(state, AFTER_RACE);
        }
        if !state.spun.get().is_some_and(|before| same_place(before, place)) {
            state.spun.set(Some(place));
            if self.moves.get() < MOVES {
                self.moves.set(self.moves.get() + 1);
                self.changed.set(true);
            }
        }
        self.note_changes(lane);
        let spinning = &self.warps[(rank / WARP) as usize].spinning;
        spinning.set(spinning.get() | 1 << (rank % WARP));
        self.suspend(state);
    }

    fn fence(&self, lane: &Lane<'_>, scope: Scope, _place: Place) {
        fence(Ordering::SeqCst);
        if let Some((launch, memory)) = &self.memory {
            launch.fence(memory, lane.thread_rank, scope);
        }
    }

    #[inline]
    fn access(&self, lane: &Lane<'_>, access: Access, place: Place) {
        if access.kind == AccessKind::Write {
            self.note_progress();
        }
        if self.has_race() {
            if !panicking() {
                self.go_on_after_race(&self.lanes[lane.thread_rank as usize], 1);
            }
            return;
        }
        if let Some((launch, memory)) = &self.memory {
            if let Some((copy, address)) = memory.disturbed_copy(access)
                && !panicking()
            {
                let state = &self.lanes[lane.thread_rank as usize];
                self.fail(state, || report::early(self, state, place, access, (&copy, address)));
            }
            if let Err(wrong) = launch.access(memory, lane.thread_rank, access, place)
                && !panicking()
            {
                let state = &self.lanes[lane.thread_rank as usize];
                match wrong {
                    Wrong::Race(earlier) => self.raced(state, place, access, earlier),
                    Wrong::OtherDevice(number) => {
                        self.fail(state, || report::other_device(self, state, place, access, number));
                    }
                }
            }
        }
    }

    fn begin_copy(&self, lane: &Lane<'_>, copy: AsyncCopy, place: Place) {
        if let Some((_, memory)) = &self.memory {
            memory.begin_copy(lane.thread_rank, copy, place);
        }
    }

    fn finish_copy(&self, lane: &Lane<'_>, copy: AsyncCopy) {
        if let Some((_, memory)) = &self.memory {
            memory.finish_copy(lane.thread_rank, copy);
        }
    }

    fn expose(&self, _lane: &Lane<'_>, space: Space, address: usize, len: usize) {
        if let Some((launch, memory)) = &self.memory {
            launch.expose(memory, space, address..address + len);
        }
    }

    fn print(&self, _lane: &Lane<'_>, line: &str) {
        println!("{line}");
    }

    fn fault(&self, lane: &Lane<'_>, fault: Fault, view: Option<usize>, place: Place) -> ! {
        let state = &self.lanes[lane.thread_rank as usize];
        self.fail(state, || report::raised(self, state, place, fault, view))
    }
}
