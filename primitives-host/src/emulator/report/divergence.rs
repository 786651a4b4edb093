//! Barriers and warp operations that threads miss, and waits without an end.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::rc::Rc;

use primitives_gpu::Dim3;
use primitives_gpu::simt::emulated::WarpOp;
use primitives_gpu::simt::{Place, WARP};

use super::{BARRIER_HELP, Finding, GROUPS, MASK_HELP, OPERATION_HELP, fault};
use crate::emulator::block::{BlockState, LaneState, same_place};
use crate::emulator::launch::{Found, LaunchState};
use crate::emulator::warp::OutsideMask;
use crate::fault::Diagnosis;

fn divergence(message: String, help: &str) -> Finding {
    Finding::new(Diagnosis::Divergence { message }, help)
}

/// A warp operation whose mask is impossible.
pub(in crate::emulator) fn bad_mask(op: WarpOp, mask: u32, lane: u32, existing: u32) -> Finding {
    let op = operation(op);
    let message = if mask >> lane & 1 == 0 {
        format!("lane {lane} of the warp calls {op} over lanes {mask:#010x}, which do not contain it")
    } else {
        format!("{op} over lanes {mask:#010x} names lanes that do not exist: the warp has lanes {existing:#010x}")
    };
    divergence(message, MASK_HELP)
}

/// A shuffle whose segments do not divide the warp.
pub(in crate::emulator) fn bad_width(width: u32) -> Finding {
    let message = format!("a shuffle in segments of {width} lanes: the width is a power of two up to {WARP}");
    divergence(message, "segments divide the warp evenly: 1, 2, 4, 8, 16 or 32 lanes")
}

/// A shuffle that reads a lane which takes no part.
pub(in crate::emulator) fn outside_mask(mask: u32, outside: &OutsideMask) -> Finding {
    let OutsideMask { reader, source } = outside;
    let message =
        format!("in a shuffle over lanes {mask:#010x}, lane {reader} reads lane {source}, which takes no part");
    divergence(message, "lanes read lanes of the mask only: widen the mask, or let lanes at its ends read themselves")
}

/// What a lane does that does not run.
#[derive(Clone, Copy)]
enum Doing {
    NotStarted,
    Finished,
    Barrier(Place),
    Operation(WarpOp, u32, Place),
    Spinning(Place),
}

impl Doing {
    fn of(block: &BlockState<'_>, rank: u32) -> Self {
        let (warp, lane) = (&block.warps[(rank / WARP) as usize], &block.lanes[rank as usize]);
        let is_in = |set: u32| set >> (rank % WARP) & 1 != 0;
        let place = lane.place.get();
        if is_in(warp.finished.get()) {
            Self::Finished
        } else if is_in(warp.at_barrier.get()) {
            Self::Barrier(place)
        } else if is_in(warp.in_operation.get()) {
            Self::Operation(lane.exchange.op.get(), lane.mask.get(), place)
        } else if is_in(warp.spinning.get()) {
            Self::Spinning(place)
        } else {
            Self::NotStarted
        }
    }

    fn waits_for_lanes(self) -> bool {
        matches!(self, Self::Barrier(_) | Self::Operation(..))
    }

    fn place(self) -> Option<Place> {
        match self {
            Self::NotStarted | Self::Finished => None,
            Self::Barrier(place) | Self::Operation(_, _, place) | Self::Spinning(place) => Some(place),
        }
    }

    /// What orders and joins groups of lanes that do the same.
    fn key(self) -> (u8, &'static str, u32, u32, u32) {
        let (kind, mask) = match self {
            Self::NotStarted => (0, 0),
            Self::Finished => (1, 0),
            Self::Barrier(_) => (2, 0),
            Self::Operation(_, mask, _) => (3, mask),
            Self::Spinning(_) => (4, 0),
        };
        let (file, line, column) = self.place().map_or(("", 0, 0), |at| (at.file(), at.line(), at.column()));
        (kind, file, line, column, mask)
    }

    /// The verb and what follows it, for one lane or several.
    fn text(self, one: bool) -> String {
        let (has, waits, spins) = if one { ("has", "waits", "spins") } else { ("have", "wait", "spin") };
        match self {
            Self::NotStarted => format!("{has} not come so far"),
            Self::Finished => format!("{has} finished"),
            Self::Barrier(place) => format!("{waits} at the barrier in {place}"),
            Self::Operation(op, mask, place) => {
                format!("{waits} in {} over lanes {mask:#010x} in {place}", operation(op))
            }
            Self::Spinning(place) => format!("{spins} in {place}"),
        }
    }
}

fn operation(op: WarpOp) -> &'static str {
    match op {
        WarpOp::Sync => "a warp barrier",
        WarpOp::Shuffle { .. } => "a shuffle",
        WarpOp::Ballot => "a ballot",
        WarpOp::MatchAny | WarpOp::MatchAll => "a match",
        WarpOp::Redux(_) => "a warp reduction",
    }
}

/// Lanes that do the same, by rank.
struct Group {
    doing: Doing,
    ranks: Vec<u32>,
}

impl Group {
    fn subject(&self, block: &BlockState<'_>) -> String {
        let first = block.lanes[self.ranks[0] as usize].thread;
        match self.ranks.len() {
            1 => format!("thread {first}"),
            n => format!("thread {first} and {} more", n - 1),
        }
    }

    fn is_one(&self) -> bool {
        self.ranks.len() == 1
    }

    /// "thread (5, 0, 0) and 2 more have finished".
    fn sentence(&self, block: &BlockState<'_>) -> String {
        format!("{} {}", self.subject(block), self.doing.text(self.is_one()))
    }
}

/// The groups of lanes that do the same, the group of the first lane first.
fn groups(block: &BlockState<'_>, ranks: impl Iterator<Item = u32>) -> Vec<Group> {
    let mut groups = BTreeMap::new();
    for rank in ranks {
        let doing = Doing::of(block, rank);
        groups.entry(doing.key()).or_insert_with(|| Group { doing, ranks: Vec::new() }).ranks.push(rank);
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|group| group.ranks[0]);
    groups
}

/// Sentences about groups, as many as a message bears.
fn sentences(block: &BlockState<'_>, groups: &[Group]) -> String {
    let mut text = String::new();
    for (i, group) in groups.iter().take(GROUPS).enumerate() {
        let _ = write!(text, "{}{}", if i == 0 { "" } else { "; " }, group.sentence(block));
    }
    if groups.len() > GROUPS {
        let _ = write!(text, "; and {} more groups", groups.len() - GROUPS);
    }
    text
}

/// Lanes of a block wait for lanes that never come.
pub(in crate::emulator) fn stuck(block: &BlockState<'_>) -> Found {
    let all = || 0..block.launch.threads;
    // The lanes that are missing where lane `rank` waits, if it does.
    let missing = |rank: u32| -> Option<Vec<u32>> {
        let doing = Doing::of(block, rank);
        match doing {
            Doing::Barrier(_) => Some(all().filter(|&lane| Doing::of(block, lane).key() != doing.key()).collect()),
            Doing::Operation(_, mask, _) => {
                let arrived = block.leader_of(rank).map_or(0, |leader| leader.arrived.get());
                let first = rank / WARP * WARP;
                Some((0..WARP).filter(|&lane| (mask & !arrived) >> lane & 1 != 0).map(|lane| first + lane).collect())
            }
            _ => None,
        }
    };
    let mut waiting = all().filter(|&rank| Doing::of(block, rank).waits_for_lanes());
    // If some lanes have finished, those who wait for them are the story; the others may only be held up by these.
    let misses_finished = |rank: u32| {
        missing(rank).is_some_and(|lanes| lanes.iter().any(|&lane| matches!(Doing::of(block, lane), Doing::Finished)))
    };
    let rank = waiting.clone().find(|&rank| misses_finished(rank)).or_else(|| waiting.next()).unwrap_or(0);

    let doing = Doing::of(block, rank);
    let waiters = Group { doing, ranks: all().filter(|&lane| same_group(block, rank, lane)).collect() };
    let missing = groups(block, missing(rank).unwrap_or_default().into_iter());
    let what = match doing {
        Doing::Operation(op, mask, _) => format!("in {} over lanes {mask:#010x}", operation(op)),
        _ => "at a barrier".to_owned(),
    };
    let who = waiters.subject(block);
    let wait = if waiters.is_one() { "waits" } else { "wait" };
    let message = match &missing[..] {
        [group] => {
            let pronoun = if group.is_one() { "it" } else { "they" };
            let (subject, does) = (group.subject(block), group.doing.text(group.is_one()));
            format!("{who} {wait} {what} that {subject} never reached: {pronoun} {does}")
        }
        groups => {
            let count: usize = groups.iter().map(|group| group.ranks.len()).sum();
            format!("{who} {wait} {what} that {count} threads never reached: {}", sentences(block, groups))
        }
    };
    let lane = &block.lanes[rank as usize];
    let help = if matches!(doing, Doing::Operation(..)) { OPERATION_HELP } else { BARRIER_HELP };
    fault(block, lane, lane.place.get(), divergence(message, help))
}

/// Whether two lanes wait together.
fn same_group(block: &BlockState<'_>, a: u32, b: u32) -> bool {
    let same = Doing::of(block, a).key() == Doing::of(block, b).key();
    let by_warp = matches!(Doing::of(block, a), Doing::Operation(..));
    same && (!by_warp || a / WARP == b / WARP)
}

/// All lanes have come to a barrier, but not to the same one.
pub(in crate::emulator) fn mixed_barrier(block: &BlockState<'_>) -> Found {
    let groups = groups(block, 0..block.launch.threads);
    let message = match &groups[..] {
        // One place and several votes: a function that passes its caller's place on.
        [group] => format!("{}, but ask for different votes", group.sentence(block)),
        groups => format!("the block's threads meet at different barriers: {}", sentences(block, groups)),
    };
    let lane = &block.lanes[0];
    fault(block, lane, lane.place.get(), divergence(message, BARRIER_HELP))
}

/// Lanes of one mask have come to different operations.
pub(in crate::emulator) fn mixed_operation(block: &BlockState<'_>, leader: &LaneState, newcomer: &LaneState) -> Found {
    let mask = leader.mask.get();
    let (one, other) = (leader.exchange.op.get(), newcomer.exchange.op.get());
    let mut message = format!(
        "lanes {mask:#010x} meet in different operations: thread {} waits in {} in {}, thread {} comes to {} in {}",
        leader.thread,
        operation(one),
        leader.place.get(),
        newcomer.thread,
        operation(other),
        newcomer.place.get(),
    );
    if same_place(leader.place.get(), newcomer.place.get()) {
        let _ = write!(message, " ({one:?} and {other:?})");
    }
    fault(block, leader, leader.place.get(), divergence(message, OPERATION_HELP))
}

/// All that is left of a launch, as far as one worker sees it, waits in spin loops.
pub(in crate::emulator) fn deadlock(launch: &LaunchState<'_>, resident: &[Rc<BlockState<'_>>]) -> Found {
    let mut blocks: Vec<_> = resident.iter().collect();
    blocks.sort_by_key(|block| block.rank.get());
    let mut message = String::from("nothing changes any more");
    let mut first: Option<(&BlockState<'_>, u32)> = None;
    for (i, block) in blocks.iter().enumerate() {
        let mut groups = groups(block, 0..launch.threads);
        groups.retain(|group| group.doing.place().is_some());
        let spinning = groups.iter().find(|group| matches!(group.doing, Doing::Spinning(_)));
        if first.is_none() {
            first = spinning.map(|group| (&***block, group.ranks[0]));
        }
        if i < GROUPS {
            let index: Dim3 = block.index.get();
            let _ =
                write!(message, "{} in block {index} {}", if i == 0 { ":" } else { ";" }, sentences(block, &groups));
        }
    }
    if blocks.len() > GROUPS {
        let _ = write!(message, "; and {} more blocks wait", blocks.len() - GROUPS);
    }
    let unclaimed = launch.unclaimed();
    if unclaimed > 0 {
        let _ = write!(
            message,
            "; {unclaimed} blocks have not started, since at most {} blocks of {} threads are resident together",
            launch.max_resident, launch.threads
        );
    }
    let (block, rank) = first.unwrap_or((blocks[0], 0));
    let lane = &block.lanes[rank as usize];
    fault(block, lane, lane.place.get(), Diagnosis::Deadlock { message })
}
