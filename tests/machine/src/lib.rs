//! A machine for kernels of expressions. It runs their PTX on the host, one warp at a time. It asserts the addresses of all accesses, and
//! that shared memory is written before it is read. Lanes of a warp must take the same branches, unless they may part. If they part, the
//! lanes that are farthest back go on first. Blocks of a cluster share their memory and meet at a barrier.

mod memory;
mod operations;
mod reader;
mod run;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

pub use memory::TestMap;
use memory::{Cluster, SharedMemory, WINDOW};
use operations::{Operation, bits, cut, operation, signed};
use reader::{Argument, Reader, parts, table};

const LANES: usize = 32;

/// The value of each lane, as bits.
type Lanes = [u64; LANES];

enum What {
    Return,
    Branch,
    /// A barrier for the block's threads. `WarpBarrier` is one for the warp's threads.
    Barrier,
    WarpBarrier,
    /// The arrival at the barrier of a cluster, and the wait there.
    Arrive,
    Meet,
    /// A load of elements of this number of bytes. The flag says whether their sign is extended.
    Load(Space, usize, bool),
    /// A store of elements of this number of bytes.
    Store(Space, usize),
    /// An addition to a 32-bit integer in global memory. The flag says whether there is a result.
    Add(bool),
    Shuffle(Way),
    /// A copy from global to shared memory, of contiguous bytes or of a tile of an array. It is done when a thread has looked for it in vain.
    Copy(bool),
    /// A store of elements of this number of bytes to a block of the cluster, which is counted at a barrier there.
    Send(usize),
    /// The announcement of the bytes of copies at a barrier, which one thread makes.
    Announce,
    /// A look at whether the copies of a phase are done.
    Wait,
    /// The beginning of a barrier, or an order of copies. It does nothing here.
    Nothing,
    Compute(Operation),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Space {
    Global,
    Shared,
    /// Shared memory of a block of the cluster.
    Cluster,
    Constant,
}

/// The lane that a shuffle reads.
enum Way {
    Down,
    Up,
    Index,
}

struct Instruction {
    /// A predicate, and whether it is negated.
    guard: Option<(usize, bool)>,
    what: What,
    /// The number of bits of its type.
    bits: u32,
    arguments: Vec<Argument>,
    text: String,
}

/// A kernel that was read once.
pub struct Machine {
    code: Vec<Instruction>,
    labels: HashMap<String, usize>,
    registers: usize,
    /// The addresses of variables in shared memory and of constants.
    variables: HashMap<String, u64>,
    shared: usize,
    /// The number of blocks of a cluster.
    cluster: usize,
    constants: Vec<Vec<u64>>,
    parting: bool,
    conflicts: Cell<usize>,
}

impl Machine {
    /// Reads the text of a kernel. It panics at an instruction that expressions do not have.
    pub fn new(text: &str) -> Self {
        let body = &text[text.find("\n{\n").expect("a body") + 3..];
        let (mut reader, mut code, mut labels) = (Reader::default(), Vec::new(), HashMap::new());
        let (mut variables, mut constants) = (HashMap::new(), Vec::new());
        for line in text.lines().filter(|line| line.starts_with(".const") || line.starts_with(".global")) {
            let (name, words) = table(line);
            variables.insert(name, words.as_ptr().expose_provenance() as u64);
            constants.push(words);
        }
        let mut shared = 0;
        let of_cluster = text.lines().find_map(|line| line.strip_prefix(".reqnctapercluster "));
        let cluster = of_cluster.map_or(1, |list| parts(list)[0].parse().expect("a number of blocks"));
        for line in body.lines().map(str::trim) {
            if let Some(label) = line.strip_suffix(':') {
                labels.insert(label.to_owned(), code.len());
                continue;
            }
            // There is one launch at a time, so it has no launch to wait for.
            let is_code = |line: &&str| ![".reg", "//", "griddepcontrol"].iter().any(|start| line.starts_with(start));
            let Some(line) = line.strip_suffix(';').filter(is_code) else { continue };
            if let Some(declared) = line.strip_prefix(".shared .align 16 .b8 ") {
                let (name, len) = declared.trim_end_matches(']').split_once('[').expect("an array");
                variables.insert(name.to_owned(), shared as u64);
                shared += len.parse::<usize>().expect("a length");
                continue;
            }
            let (guard, rest) = match line.strip_prefix('@') {
                None => (None, line),
                Some(guarded) => {
                    let (name, rest) = guarded.split_once(' ').expect("an instruction");
                    (Some((reader.register(name.trim_start_matches('!')), name.starts_with('!'))), rest)
                }
            };
            let (name, list) = rest.split_once(' ').unwrap_or((rest, ""));
            let name: Vec<&str> = name.split('.').collect();
            let what = what_is(&name).unwrap_or_else(|| panic!("no instruction {line}"));
            let arguments = parts(list).into_iter().map(|part| reader.argument(part)).collect();
            let bits = bits(name[name.len() - 1]);
            code.push(Instruction { guard, what, bits, arguments, text: line.into() });
        }
        let (registers, conflicts) = (reader.registers(), Cell::new(0));
        Self { code, labels, registers, variables, shared, cluster, constants, parting: false, conflicts }
    }

    /// Returns the machine for kernels in which the lanes of a warp part.
    pub fn parting(self) -> Self {
        Self { parting: true, ..self }
    }

    /// Returns how often lanes waited for a bank of shared memory, in all runs so far.
    pub fn conflicts(&self) -> usize {
        self.conflicts.get()
    }
}

/// The values that all warps of a launch have in common.
struct Given<'a> {
    blocks: usize,
    threads: usize,
    /// The parameters.
    words: &'a [u64],
    reads: &'a [Range<u64>],
    writes: &'a [Range<u64>],
    constants: Vec<Range<u64>>,
}

/// The surroundings of a warp.
struct Launch<'a> {
    machine: &'a Machine,
    given: &'a Given<'a>,
    block: usize,
    /// The number of its first thread in the block.
    first: usize,
    cluster: Rc<Cluster>,
}

fn what_is(name: &[&str]) -> Option<What> {
    let last = *name.last()?;
    let size = bits(last) as usize / 8;
    Some(match name {
        ["ret"] => What::Return,
        ["bra"] | ["bra", "uni"] => What::Branch,
        ["bar", "sync"] => What::Barrier,
        ["bar", "warp", "sync"] => What::WarpBarrier,
        ["barrier", "cluster", "arrive", "release", "aligned"] => What::Arrive,
        ["barrier", "cluster", "wait", "acquire", "aligned"] => What::Meet,
        ["ld", "acquire", "gpu", "global", ..] => What::Load(Space::Global, size, last.starts_with('s')),
        ["atom", "global", "add", "u32"] => What::Add(true),
        ["red", "release", "gpu", "global", "add", "u32"] => What::Add(false),
        ["ld", space @ ("global" | "shared" | "const"), ..] => What::Load(space_of(space), size, last.starts_with('s')),
        ["st", "async", "weak", "shared::cluster", "mbarrier::complete_tx::bytes", ..] => What::Send(size),
        ["st", space @ ("global" | "shared" | "shared::cluster"), ..] => What::Store(space_of(space), size),
        ["cp", "async", "bulk", "tensor", ..] => What::Copy(true),
        ["cp", "async", "bulk", ..] => What::Copy(false),
        ["mbarrier", "try_wait", ..] => What::Wait,
        ["mbarrier", "arrive", "expect_tx", ..] => What::Announce,
        ["mbarrier", "init", ..] | ["fence", ..] => What::Nothing,
        ["shfl", "sync", "down", _] => What::Shuffle(Way::Down),
        ["shfl", "sync", "up", _] => What::Shuffle(Way::Up),
        ["shfl", "sync", "idx", _] => What::Shuffle(Way::Index),
        _ => What::Compute(operation(name)?),
    })
}

/// Returns the address of a barrier in shared memory, as a lane has it.
fn barrier(argument: &Argument, lane: usize, registers: &[Lanes]) -> u64 {
    let &Argument::Memory(register, offset) = argument else { panic!("an address in shared memory") };
    cut(registers[register][lane].wrapping_add(offset), 32)
}

fn space_of(name: &str) -> Space {
    match name {
        "global" => Space::Global,
        "shared" => Space::Shared,
        "shared::cluster" => Space::Cluster,
        _ => Space::Constant,
    }
}

impl Launch<'_> {
    /// Returns the number of the block in its cluster.
    fn rank(&self) -> usize {
        self.block % self.machine.cluster
    }

    /// Returns the block's own shared memory.
    fn shared(&self) -> &RefCell<SharedMemory> {
        &self.cluster.blocks[self.rank()]
    }

    fn bytes(&self, space: Space, address: u64, size: usize, write: bool) -> *mut u8 {
        let (window, from) = match space {
            Space::Cluster => (address / WINDOW, address % WINDOW),
            _ => (0, address),
        };
        let to = from + size as u64;
        let is_aligned = space == Space::Constant || address.is_multiple_of(size as u64);
        assert!(is_aligned, "an access of {size} bytes at {address:#x}");
        if matches!(space, Space::Shared | Space::Cluster) {
            let rank = if space == Space::Shared { self.rank() } else { window as usize - 1 };
            let mut shared = self.cluster.blocks[rank].borrow_mut();
            assert!(shared.lives, "an access to the shared memory of a block that has not begun, or has ended");
            let range = from as usize..to as usize;
            assert!(range.end <= shared.bytes.len(), "an access outside of shared memory, to {from:#x}");
            if write {
                shared.written[range.clone()].fill(true);
            }
            let has_value = shared.written[range.clone()].iter().all(|&written| written);
            assert!(has_value, "shared memory at {from:#x} has no value");
            return shared.bytes[range].as_mut_ptr();
        }
        let inside = |range: &Range<u64>| range.start <= from && to <= range.end;
        let ranges = match space {
            Space::Constant => &self.given.constants[..],
            _ if write => self.given.writes,
            _ => self.given.reads,
        };
        // Tables that are too long for constant memory are in global memory.
        let known = ranges.iter().any(inside) || !write && self.given.constants.iter().any(inside);
        assert!(known, "an access outside, to {from:#x} of {ranges:#x?}");
        std::ptr::with_exposed_provenance_mut(address as usize)
    }

    /// Counts how often lanes wait for banks. Lanes that access 128 bytes in all are served at once.
    fn count_conflicts(&self, addresses: &[u64], size: usize) {
        let words = (size / 4).max(1);
        for lanes in addresses.chunks(LANES / words) {
            let (mut known, mut len, mut of_bank) = ([0u64; LANES], 0, [0usize; LANES]);
            for word in lanes.iter().flat_map(|address| (0..words as u64).map(move |word| address / 4 + word)) {
                let count = &mut of_bank[word as usize % LANES];
                if *count == 0 || !known[..len].contains(&word) {
                    (*count, known[len], len) = (*count + 1, word, len + 1);
                }
            }
            let most = of_bank.into_iter().max().unwrap_or(0);
            self.machine.conflicts.set(self.machine.conflicts.get() + most.saturating_sub(1));
        }
    }

    fn values(&self, argument: &Argument, bits: u32, registers: &[Lanes]) -> Lanes {
        match argument {
            Argument::Register(register) => registers[*register],
            Argument::Number(number) => [*number; LANES],
            Argument::Variable(name) => [self.machine.variables[name]; LANES],
            Argument::Parameter(number) => [self.given.words[*number]; LANES],
            Argument::Thread => std::array::from_fn(|lane| (self.first + lane) as u64),
            Argument::Block => [self.block as u64; LANES],
            Argument::Blocks => [self.given.blocks as u64; LANES],
            Argument::Rank => [self.rank() as u64; LANES],
            Argument::Cluster => [(self.block / self.machine.cluster) as u64; LANES],
            Argument::Clusters => [(self.given.blocks / self.machine.cluster) as u64; LANES],
            Argument::Several(parts) => {
                let each = bits / parts.len() as u32;
                let whole = |lane: usize| {
                    parts.iter().rev().fold(0u64, |all, &part| (all << each) | cut(registers[part][lane], each))
                };
                std::array::from_fn(whole)
            }
            Argument::Memory(..) | Argument::Tile(..) | Argument::Label(_) => panic!("no value"),
        }
    }

    fn step(&self, instruction: &Instruction, active: &[bool; LANES], registers: &mut [Lanes]) {
        let Instruction { what, bits, arguments, text, .. } = instruction;
        // All lanes read before any lane writes.
        let mut operands = [[0u64; LANES]; 4];
        if matches!(what, What::Shuffle(_) | What::Compute(_)) {
            for (operand, argument) in operands.iter_mut().zip(&arguments[1..]) {
                *operand = self.values(argument, *bits, registers);
            }
        }
        let results: Lanes = match what {
            What::Load(space, size, is_signed) => {
                return self.access((&arguments[..], *space), *size, Some(*is_signed), active, registers);
            }
            What::Store(space, size) => return self.access((&arguments[..], *space), *size, None, active, registers),
            What::Send(size) => return self.send(arguments, *size, active, registers),
            What::Add(has_result) => return self.add(arguments, *has_result, active, registers),
            What::Copy(of_tile) => return self.copy(arguments, *of_tile, active, registers),
            What::Announce => {
                let bytes = self.values(&arguments[2], 32, registers);
                for lane in (0..LANES).filter(|&lane| active[lane]) {
                    self.shared().borrow_mut().announce(barrier(&arguments[1], lane, registers), bytes[lane] as i64);
                }
                return;
            }
            What::Nothing => return,
            What::Wait => {
                let (parity, mut shared) = (self.values(&arguments[2], 32, registers), self.shared().borrow_mut());
                std::array::from_fn(|lane| {
                    let barrier = barrier(&arguments[1], lane, registers);
                    let phases = shared.phases(barrier);
                    shared.complete(barrier);
                    u64::from(phases % 2 != parity[lane])
                })
            }
            What::Shuffle(way) => std::array::from_fn(|lane| {
                let by = operands[1][lane] as usize;
                let from = match way {
                    Way::Down if lane + by < LANES => lane + by,
                    Way::Up if lane >= by => lane - by,
                    Way::Index => by % LANES,
                    _ => lane,
                };
                cut(operands[0][from], 32)
            }),
            What::Compute(operation) => {
                // Loops over lanes are faster than functions of arrays, which are not inlined.
                let ([a, b, c, d], mut results) = (&operands, [0; LANES]);
                for (lane, result) in results.iter_mut().enumerate() {
                    *result = operation(&[a[lane], b[lane], c[lane], d[lane]]);
                }
                results
            }
            What::Return | What::Branch | What::Barrier | What::WarpBarrier | What::Arrive | What::Meet => {
                unreachable!("the warp's own")
            }
        };
        match &arguments[0] {
            Argument::Register(to) => {
                for lane in (0..LANES).filter(|&lane| active[lane]) {
                    registers[*to][lane] = results[lane];
                }
            }
            Argument::Several(parts) => {
                let each = bits / parts.len() as u32;
                for (number, &part) in parts.iter().enumerate() {
                    for lane in (0..LANES).filter(|&lane| active[lane]) {
                        registers[part][lane] = cut(results[lane] >> (each * number as u32), each);
                    }
                }
            }
            _ => panic!("no result in {text}"),
        }
    }

    /// Lanes copy from global to shared memory, one after the other.
    fn copy(&self, arguments: &[Argument], of_tile: bool, active: &[bool; LANES], registers: &[Lanes]) {
        let Argument::Memory(to, offset) = arguments[0] else { panic!("an address in shared memory") };
        for lane in (0..LANES).filter(|&lane| active[lane]) {
            let to = cut(registers[to][lane].wrapping_add(offset), 32);
            let pieces: Vec<(u64, usize)> = match &arguments[1] {
                Argument::Memory(from, offset) if !of_tile => {
                    let from = registers[*from][lane].wrapping_add(*offset);
                    vec![(from, self.values(&arguments[2], 32, registers)[lane] as usize)]
                }
                Argument::Tile(map, place) if of_tile => {
                    let map = registers[*map][lane];
                    // SAFETY: the test's description, which is alive.
                    let map = unsafe { &*std::ptr::with_exposed_provenance::<TestMap>(map as usize) };
                    let place: Vec<u64> = place.iter().map(|&register| registers[register][lane]).collect();
                    map.pieces(&place)
                }
                _ => panic!("what is copied"),
            };
            let mut copied = Vec::new();
            for (from, bytes) in pieces {
                assert!(to.is_multiple_of(16) && bytes.is_multiple_of(16), "a copy that is not aligned");
                for k in (0..bytes as u64).step_by(16) {
                    let from = self.bytes(Space::Global, from + k, 16, false);
                    // SAFETY: these are bytes of a buffer, as was asserted. Nothing writes them meanwhile.
                    copied.extend_from_slice(unsafe { std::slice::from_raw_parts(from, 16) });
                }
            }
            let counted_at = barrier(arguments.last().expect("a barrier"), lane, registers);
            self.shared().borrow_mut().begin(counted_at, to as usize, copied);
        }
    }

    /// Stores to a block of the cluster. The bytes are counted at a barrier there.
    fn send(&self, arguments: &[Argument], size: usize, active: &[bool; LANES], registers: &mut [Lanes]) {
        let Argument::Several(list) = &arguments[1] else { panic!("registers") };
        let bytes = (size * list.len()) as i64;
        self.access((&arguments[..2], Space::Cluster), size, None, active, registers);
        for lane in (0..LANES).filter(|&lane| active[lane]) {
            let [to, barrier] = [0, 2].map(|which| barrier(&arguments[which], lane, registers));
            assert_eq!(to / WINDOW, barrier / WINDOW, "the barrier of another block");
            let block = &self.cluster.blocks[(barrier / WINDOW) as usize - 1];
            block.borrow_mut().arrived(barrier % WINDOW, bytes);
        }
    }

    /// Adds to memory, one lane after the other.
    fn add(&self, arguments: &[Argument], has_result: bool, active: &[bool; LANES], registers: &mut [Lanes]) {
        let (to, rest) = match arguments {
            [Argument::Register(to), rest @ ..] if has_result => (Some(*to), rest),
            rest => (None, rest),
        };
        let [Argument::Memory(address, offset), by] = rest else { panic!("an address, and what is added") };
        let by = self.values(by, 32, registers);
        for lane in (0..LANES).filter(|&lane| active[lane]) {
            let at = registers[*address][lane].wrapping_add(*offset);
            let memory = self.bytes(Space::Global, at, 4, true).cast::<u32>();
            // SAFETY: these are bytes of a buffer, as the assertion says, at a multiple of 4. Nothing else uses them meanwhile.
            let before = unsafe {
                let before = memory.read();
                memory.write(before.wrapping_add(by[lane] as u32));
                before
            };
            if let Some(to) = to {
                registers[to][lane] = before.into();
            }
        }
    }

    /// Runs a load, with or without the extension of the sign, or a store.
    fn access(
        &self,
        (arguments, space): (&[Argument], Space),
        size: usize,
        load: Option<bool>,
        active: &[bool; LANES],
        registers: &mut [Lanes],
    ) {
        let (&[Argument::Memory(address, offset), ref list] | &[ref list, Argument::Memory(address, offset)]) =
            arguments
        else {
            panic!("an address, and what is there")
        };
        let list = match list {
            Argument::Several(list) => &list[..],
            Argument::Register(one) => std::slice::from_ref(one),
            _ => panic!("registers"),
        };
        let is_shared = matches!(space, Space::Shared | Space::Cluster);
        if is_shared {
            let lanes = (0..LANES).filter(|&lane| active[lane]);
            let addresses: Vec<u64> =
                lanes.map(|lane| cut(registers[address][lane].wrapping_add(offset), 32)).collect();
            self.count_conflicts(&addresses, size * list.len());
        }
        for lane in (0..LANES).filter(|&lane| active[lane]) {
            let at = registers[address][lane].wrapping_add(offset);
            let at = if is_shared { cut(at, 32) } else { at };
            let memory = self.bytes(space, at, size * list.len(), load.is_none());
            for (number, &register) in list.iter().enumerate() {
                let value = &mut registers[register][lane];
                let mut word = value.to_le_bytes();
                // SAFETY: these are bytes of a tensor, a table or shared memory, as the assertion says. Nothing else uses them meanwhile.
                unsafe {
                    let memory = memory.add(number * size);
                    match load {
                        None => memory.copy_from_nonoverlapping(word.as_ptr(), size),
                        Some(_) => {
                            word = [0; 8];
                            memory.copy_to_nonoverlapping(word.as_mut_ptr(), size);
                        }
                    }
                }
                if let Some(is_signed) = load {
                    let loaded = u64::from_le_bytes(word);
                    *value = if is_signed { cut(signed(loaded, 8 * size as u32) as u64, 32) } else { loaded };
                }
            }
        }
    }
}
