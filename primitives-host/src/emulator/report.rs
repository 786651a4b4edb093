//! Errors of kernels, in words: who waits where, and for whom.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::rc::Rc;

use primitives_gpu::Dim3;
use primitives_gpu::simt::emulated::{Access, Space, WarpOp};
use primitives_gpu::simt::{Fault, FaultKind, Place, WARP};
use primitives_gpu::view::SharedParam;

use super::block::{BlockState, LaneState, same_place};
use super::launch::{Found, LaunchState};
use super::memory::{Earlier, Unwritten};
use super::panics;
use super::warp::OutsideMask;
use crate::error::Error;
use crate::fault::{Accessor, Diagnosis, KernelFault, MemoryAction, MemoryPlace, OutsideView};

/// Groups of lanes that one message names.
const GROUPS: usize = 6;

/// What happened, and what to do about it.
pub(super) struct Finding {
    diagnosis: Diagnosis,
    help: Option<String>,
}

impl Finding {
    fn new(diagnosis: Diagnosis, help: impl Into<String>) -> Self {
        Self { diagnosis, help: Some(help.into()) }
    }
}

impl From<Diagnosis> for Finding {
    fn from(diagnosis: Diagnosis) -> Self {
        let help = match diagnosis {
            Diagnosis::Raised(Fault { kind: FaultKind::OutOfBounds, .. }) => Some(
                "take indices from `cx.items(view.len())`, or compare them with the length; `get` gives an `Option`",
            ),
            Diagnosis::Raised(Fault { kind: FaultKind::TileOutOfBounds, .. }) => {
                Some("take tiles from `cx.tiles(view.len())` with the length of the view that they cut")
            }
            Diagnosis::Raised(Fault { kind: FaultKind::Misaligned, .. }) => {
                Some("start at a multiple of the vector's length, or use `read_items` or `write_items`, which test it")
            }
            Diagnosis::StackOverflow { .. } => {
                Some("raise `EmulatorOptions::stack_bytes`, or move large arrays to shared memory")
            }
            Diagnosis::Deadlock { .. } => Some(
                "let a thread that runs write what the loops wait for; a loop that waits for the host needs a larger \
                 `EmulatorOptions::deadlock_after`",
            ),
            _ => None,
        };
        Self { diagnosis, help: help.map(str::to_owned) }
    }
}

/// The fault of a lane.
pub(super) fn fault(block: &BlockState<'_>, lane: &LaneState, place: Place, finding: impl Into<Finding>) -> Found {
    let (file, line, column) = (place.file().to_owned(), place.line(), place.column());
    with_place(block, lane, file, line, column, finding.into())
}

/// The panic of a lane, which the panic hook has noted.
pub(super) fn panicked(block: &BlockState<'_>, lane: &LaneState, message: String) -> Found {
    let diagnosis = Diagnosis::Panicked { message };
    match panics::latest_place() {
        Some(place) => with_place(block, lane, place.file, place.line, place.column, diagnosis.into()),
        // Somebody replaced the hook.
        None => fault(block, lane, block.launch.place, diagnosis),
    }
}

/// The overflow of a lane's stack.
pub(super) fn overflowed(block: &BlockState<'_>, lane: &LaneState) -> Found {
    let limit = block.launch.options.stack_bytes();
    fault(block, lane, lane.place.get(), Diagnosis::StackOverflow { limit })
}

fn with_place(
    block: &BlockState<'_>,
    lane: &LaneState,
    file: String,
    line: u32,
    column: u32,
    finding: Finding,
) -> Found {
    let kernel = block.launch.kernel.to_owned();
    let Finding { diagnosis, help } = finding;
    let (seed, thread, block_index) = (block.launch.options.seed, lane.thread, block.index.get());
    let fault =
        KernelFault { kernel, block: block_index, thread, file, line, column, diagnosis, view: None, help, seed };
    Found { rank: block.rank.get(), error: Error::Fault(Box::new(fault)) }
}

/// Whether an error is a race.
pub(super) fn is_race(found: &Found) -> bool {
    matches!(&found.error, Error::Fault(fault) if matches!(fault.diagnosis, Diagnosis::DataRace { .. }))
}

/// Whether an error is that lanes wait for lanes that never come.
pub(super) fn is_divergence(found: &Found) -> bool {
    matches!(&found.error, Error::Fault(fault) if matches!(fault.diagnosis, Diagnosis::Divergence { .. }))
}

/// An error, with a race that came before it in the same block.
pub(super) fn with_race(mut found: Found, race: &Found) -> Found {
    let (Error::Fault(fault), Error::Fault(race)) = (&mut found.error, &race.error) else { return found };
    if let Diagnosis::DataRace { earlier, action, memory } = &race.diagnosis {
        let Accessor { action: first, thread, file, line, column, .. } = earlier;
        let help = fault.help.get_or_insert_default();
        let separator = if help.is_empty() { "" } else { "; " };
        let _ = write!(
            help,
            "{separator}accesses that it should part race for {memory}: the {first} by thread {thread} in \
             {file}:{line}:{column}, and the {action} by thread {} in {}:{}:{}",
            race.thread, race.file, race.line, race.column
        );
    }
    found
}

/// A fault that a lane has raised, of an access outside the view at the address `view`.
pub(super) fn raised(
    block: &BlockState<'_>,
    lane: &LaneState,
    place: Place,
    raised: Fault,
    view: Option<usize>,
) -> Found {
    let mut found = fault(block, lane, place, Diagnosis::from(raised));
    if let (Error::Fault(fault), Some(view)) = (&mut found.error, view) {
        fault.view = outside_view(block, view, raised.args[1] as usize);
    }
    found
}

/// The view of `len` elements from `address` on, as a parameter or a part of one.
fn outside_view(block: &BlockState<'_>, address: usize, len: usize) -> Option<OutsideView> {
    if let Some(byte) = block.shared_byte(address) {
        let param = shared_param(block, byte)?;
        let bytes = param.bytes.unwrap_or(block.launch.shared_bytes - param.offset);
        let is_whole = byte == param.offset && bytes.checked_div(param.element_bytes) == Some(len);
        let start = (!is_whole).then(|| shared_place(block, byte));
        return Some(OutsideView { name: param.name, start });
    }
    let arguments = block.launch.arguments;
    if let Some(whole) = arguments.iter().find(|argument| (argument.address, argument.len) == (address, len)) {
        return Some(OutsideView { name: whole.name, start: None });
    }
    match memory_place(block, Space::Global, address) {
        MemoryPlace::Argument { name, element, byte } => {
            Some(OutsideView { name, start: Some(MemoryPlace::Argument { name, element, byte }) })
        }
        _ => None,
    }
}

/// The kernel's parameter in which a byte of the block's shared memory is.
fn shared_param(block: &BlockState<'_>, byte: usize) -> Option<SharedParam> {
    block.launch.shared_params.iter().rfind(|param| param.offset <= byte).copied()
}

fn shared_place(block: &BlockState<'_>, byte: usize) -> MemoryPlace {
    let Some(SharedParam { name, offset, element_bytes, .. }) = shared_param(block, byte) else {
        return MemoryPlace::Shared { name: None, element: None, byte };
    };
    let byte = byte - offset;
    match byte.checked_div(element_bytes) {
        Some(element) => MemoryPlace::Shared { name: Some(name), element: Some(element), byte: byte % element_bytes },
        None => MemoryPlace::Shared { name: Some(name), element: None, byte },
    }
}

/// An access of a lane that races with an earlier one.
pub(super) fn race(block: &BlockState<'_>, lane: &LaneState, place: Place, access: Access, earlier: Earlier) -> Found {
    let launch = block.launch;
    let Earlier { action, moment, place: earlier_place, address } = earlier;
    let earlier = Accessor {
        action,
        block: launch.grid.at(moment.block as u64),
        thread: block.lanes[moment.lane as usize].thread,
        file: earlier_place.file().to_owned(),
        line: earlier_place.line(),
        column: earlier_place.column(),
    };
    let later = MemoryAction::of(access.kind);
    let atomic = |action| !matches!(action, MemoryAction::Read | MemoryAction::Write);
    let same_block = moment.block as u64 == block.rank.get();
    let help = if !same_block {
        "blocks run in no order: let each have elements of its own, or publish by a release (or `cx.fence(Scope::Device)` \
         before the store) and read after an acquire (or a fence after the load)"
            .to_owned()
    } else if atomic(action) != atomic(later) {
        format!("make both accesses atomic, or put `cx.barrier()` between the {action} and the {later}")
    } else if same_warp(block, lane, moment.lane) {
        format!("put `cx.barrier()`, or in one warp `cx.sync_warp(mask)`, between the {action} and the {later}")
    } else {
        format!("put `cx.barrier()` between the {action} and the {later}")
    };
    let memory = memory_place(block, access.space, address);
    fault(block, lane, place, Finding::new(Diagnosis::DataRace { earlier, action: later, memory }, help))
}

fn same_warp(block: &BlockState<'_>, lane: &LaneState, other: u32) -> bool {
    let first = other / WARP * WARP;
    block.lanes[first as usize..].iter().take(WARP as usize).any(|member| std::ptr::eq(member, lane))
}

fn memory_place(block: &BlockState<'_>, space: Space, address: usize) -> MemoryPlace {
    if space == Space::Shared {
        return shared_place(block, address - block.shared_address());
    }
    let bytes = |argument: &&super::Argument| argument.address..argument.address + argument.len * argument.size;
    match block.launch.arguments.iter().find(|argument| bytes(argument).contains(&address)) {
        Some(argument) => {
            let offset = address - argument.address;
            let (element, byte) = (offset / argument.size, offset % argument.size);
            MemoryPlace::Argument { name: argument.name, element, byte }
        }
        None => MemoryPlace::Global { address },
    }
}

/// The first read of bytes that nothing has written, if a block has made one.
pub(super) fn unwritten(block: &BlockState<'_>) -> Option<Found> {
    let (launch, memory) = block.memory.as_ref()?;
    let Unwritten { lane, place, space, address } = memory.unwritten()?;
    let near = launch.writer_before(memory, space, address).map(|near| {
        let (near_memory, index) =
            (memory_place(block, space, near.address), block.launch.grid.at(near.moment.block as u64));
        let thread = block.lanes[near.moment.lane as usize].thread;
        format!(
            "; the nearest before it that was written is {near_memory}, by thread {thread} of block {index} in {}",
            near.place
        )
    });
    let help = match space {
        Space::Shared => {
            "shared memory starts undefined: let a thread write it, and put `cx.barrier()` before the read"
        }
        Space::Global => "the buffer was made without contents: write all that is read, or make it by `buffer_zeroed`",
    };
    let help = format!("{help}{}", near.unwrap_or_default());
    let diagnosis = Diagnosis::Unwritten { memory: memory_place(block, space, address) };
    Some(fault(block, &block.lanes[lane as usize], place, Finding::new(diagnosis, help)))
}

const BARRIER_HELP: &str = "every thread of the block must come to the same barriers: move this one out of the branch or \
                            the loop that only some threads take";

const OPERATION_HELP: &str = "all lanes of the mask must come to the same call: move it out of the branch, or take the mask \
                              of those that enter the branch, by `cx.ballot` before it";

const MASK_HELP: &str = "the mask names the lanes that take part: `cx.warp_mask()` has those that exist";

fn divergence(message: String, help: &str) -> Finding {
    Finding::new(Diagnosis::Divergence { message }, help)
}

/// A warp operation whose mask is impossible.
pub(super) fn bad_mask(op: WarpOp, mask: u32, lane: u32, existing: u32) -> Finding {
    let op = operation(op);
    let message = if mask >> lane & 1 == 0 {
        format!("lane {lane} of the warp calls {op} over lanes {mask:#010x}, which do not contain it")
    } else {
        format!("{op} over lanes {mask:#010x} names lanes that do not exist: the warp has lanes {existing:#010x}")
    };
    divergence(message, MASK_HELP)
}

/// A shuffle whose segments do not divide the warp.
pub(super) fn bad_width(width: u32) -> Finding {
    let message = format!("a shuffle in segments of {width} lanes: the width is a power of two up to {WARP}");
    divergence(message, "segments divide the warp evenly: 1, 2, 4, 8, 16 or 32 lanes")
}

/// A shuffle that reads a lane which takes no part.
pub(super) fn outside_mask(mask: u32, outside: &OutsideMask) -> Finding {
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
pub(super) fn stuck(block: &BlockState<'_>) -> Found {
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
pub(super) fn mixed_barrier(block: &BlockState<'_>) -> Found {
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
pub(super) fn mixed_operation(block: &BlockState<'_>, leader: &LaneState, newcomer: &LaneState) -> Found {
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
pub(super) fn deadlock(launch: &LaunchState<'_>, resident: &[Rc<BlockState<'_>>]) -> Found {
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
