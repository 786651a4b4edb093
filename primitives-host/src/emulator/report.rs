//! Errors of kernels, in words: who waits where, and for whom.

use std::fmt::Write;

use primitives_gpu::simt::emulated::{Access, Space};
use primitives_gpu::simt::{Fault, FaultKind, Place, WARP};
use primitives_gpu::view::SharedParam;

use super::block::{BlockState, LaneState};
use super::launch::Found;
use super::memory::copies::Begun;
use super::memory::{Earlier, Unwritten};
use super::panics;
use crate::error::Error;
use crate::fault::{Accessor, Diagnosis, KernelFault, MemoryAction, MemoryPlace, OutsideView};

mod divergence;

pub(super) use divergence::{bad_mask, bad_width, deadlock, mixed_barrier, mixed_operation, outside_mask, stuck};

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
        None => fault(block, lane, block.launch.place, diagnosis),
    }
}

/// The overflow of a lane's stack.
pub(super) fn overflowed(block: &BlockState<'_>, lane: &LaneState) -> Found {
    let limit = block.launch.options.stack_bytes();
    fault(block, lane, lane.place.get(), Diagnosis::StackOverflow { limit })
}

/// A wait of a lane for others, in a closure for whose time the host keeps something for the lane.
pub(super) fn waits_in_closure(block: &BlockState<'_>, lane: &LaneState) -> Found {
    let message = "a thread waits for others in a closure that holds memory or captures".to_owned();
    let help = "end the closure before the wait: on the emulator, the others run on the same thread of the host, which has the memory \
                locked";
    fault(block, lane, lane.place.get(), Finding::new(Diagnosis::Panicked { message }, help))
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
    let (thread, block_index) = (lane.thread, block.index.get());
    // Blocks of several workers run in an order that no seed repeats.
    let seed = block.launch.options.seed.filter(|_| block.launch.workers == 1);
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
    let mut whole = block.launch.arguments.iter().filter(|argument| (argument.address, argument.len) == (address, len));
    if let Some(first) = whole.next() {
        // One buffer may be several arguments, and all empty buffers have one address.
        return whole.next().is_none().then_some(OutsideView { name: first.name, start: None });
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
        block: launch.index_of(moment.block as u64),
        thread: block.lanes[moment.lane as usize].thread,
        file: earlier_place.file().to_owned(),
        line: earlier_place.line(),
        column: earlier_place.column(),
    };
    let later = MemoryAction::of(access.kind);
    let atomic = |action| !matches!(action, MemoryAction::Read | MemoryAction::Write);
    let same_block = moment.block as u64 == block.ordinal.get();
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

/// An access of a lane to what a copy has yet to write, or a write of what it has yet to read, with the first such byte.
pub(super) fn early(
    block: &BlockState<'_>,
    lane: &LaneState,
    place: Place,
    access: Access,
    (copy, address): (&Begun, usize),
) -> Found {
    let owner = &block.lanes[copy.lane as usize];
    let action = MemoryAction::of(access.kind);
    let help = if std::ptr::eq(owner, lane) {
        format!("call `wait_for_copies` between the copy and the {action}")
    } else {
        let thread = owner.thread;
        format!("let thread {thread} call `wait_for_copies`, and put `cx.barrier()` between that and the {action}")
    };
    let copy = Accessor {
        action: if access.space == Space::Shared { MemoryAction::Write } else { MemoryAction::Read },
        block: block.index.get(),
        thread: owner.thread,
        file: copy.place.file().to_owned(),
        line: copy.place.line(),
        column: copy.place.column(),
    };
    let memory = memory_place(block, access.space, address);
    fault(block, lane, place, Finding::new(Diagnosis::CopyUnderWay { copy, action, memory }, help))
}

/// An access of a lane to memory of another device, the one of this number.
pub(super) fn other_device(
    block: &BlockState<'_>,
    lane: &LaneState,
    place: Place,
    access: Access,
    owner: usize,
) -> Found {
    let (action, memory) = (MemoryAction::of(access.kind), memory_place(block, access.space, access.address));
    let help = "copy the elements to this device first, with `BufferSliceMut::copy_from_peer`";
    let diagnosis = Diagnosis::OtherDevice { action, memory, device: block.launch.device, owner };
    fault(block, lane, place, Finding::new(diagnosis, help))
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
            (memory_place(block, space, near.address), block.launch.index_of(near.moment.block as u64));
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
