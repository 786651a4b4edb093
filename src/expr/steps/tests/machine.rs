//! A machine for kernels of steps: runs their PTX on the host, a warp at a time. All lanes of a warp take the same branches, which is
//! asserted, as are the places of all accesses.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;

use half::{bf16, f16};

const LANES: usize = 32;

/// A value of each lane, by its bits.
type Lanes = [u64; LANES];

/// What a lane computes of its operands.
type Operation = Box<dyn Fn(&[u64; 4]) -> u64>;

enum Argument {
    Register(usize),
    Number(u64),
    Parameter(usize),
    /// An address in a register, with an offset.
    Memory(usize, u64),
    /// Registers whose bits are one value, the low ones first.
    Several(Vec<usize>),
    Label(String),
    Thread,
    Block,
}

enum What {
    Return,
    Branch,
    /// Of elements of so many bytes, whose sign is extended, or not.
    Load(usize, bool),
    /// Of elements of so many bytes.
    Store(usize),
    Shuffle(Way),
    Compute(Operation),
}

/// Which lane a shuffle reads.
enum Way {
    Down,
    Up,
    Index,
}

struct Instruction {
    /// A predicate, and whether it is negated.
    guard: Option<(usize, bool)>,
    what: What,
    /// Of its type.
    bits: u32,
    arguments: Vec<Argument>,
    text: String,
}

/// A kernel, read once.
pub(super) struct Machine {
    code: Vec<Instruction>,
    labels: HashMap<String, usize>,
    registers: usize,
}

#[derive(Default)]
struct Reader {
    registers: HashMap<String, usize>,
}

impl Reader {
    fn register(&mut self, name: &str) -> usize {
        let next = self.registers.len();
        *self.registers.entry(name.to_owned()).or_insert(next)
    }

    fn argument(&mut self, text: &str) -> Argument {
        if let Some(inner) = text.strip_prefix('{') {
            let names = inner.trim_end_matches('}').split(',');
            return Argument::Several(names.map(|name| self.register(name.trim())).collect());
        }
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.trim_end_matches(']');
            if let Some(number) = inner.strip_prefix('a') {
                return Argument::Parameter(number.parse().expect("a parameter"));
            }
            let (name, offset) = inner.split_once('+').unwrap_or((inner, "0"));
            return Argument::Memory(self.register(name), offset.parse().expect("an offset"));
        }
        match text {
            "%tid.x" => Argument::Thread,
            "%ctaid.x" => Argument::Block,
            _ if text.starts_with('%') => Argument::Register(self.register(text)),
            _ if text.starts_with('L') => Argument::Label(text.into()),
            _ => match text.get(..2) {
                Some("0f" | "0d" | "0x") => {
                    Argument::Number(u64::from_str_radix(&text[2..], 16).expect("hexadecimal digits"))
                }
                _ => Argument::Number(text.parse::<i128>().expect("a number") as u64),
            },
        }
    }
}

/// The parts between commas that are in no braces.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.into_iter().filter(|part| !part.is_empty()).collect()
}

impl Machine {
    pub(super) fn new(text: &str) -> Self {
        let body = &text[text.find("\n{\n").expect("a body") + 3..];
        let (mut reader, mut code, mut labels) = (Reader::default(), Vec::new(), HashMap::new());
        for line in body.lines().map(str::trim) {
            if let Some(label) = line.strip_suffix(':') {
                labels.insert(label.to_owned(), code.len());
                continue;
            }
            let Some(line) = line.strip_suffix(';').filter(|line| !line.starts_with(".reg")) else { continue };
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
        Self { code, labels, registers: reader.registers.len() }
    }

    /// Runs all blocks, of so many threads, with these parameters. Accesses are of bytes in `reads` or `writes`.
    pub(super) fn run(
        &self,
        blocks: usize,
        threads: usize,
        words: &[u64],
        reads: &[Range<u64>],
        writes: &[Range<u64>],
    ) {
        for block in 0..blocks {
            for first in (0..threads).step_by(LANES) {
                self.warp(&Launch { block, first, words, reads, writes });
            }
        }
    }

    fn warp(&self, launch: &Launch<'_>) {
        let mut registers: Vec<Lanes> = vec![[0; LANES]; self.registers];
        let mut at = 0;
        while let Some(instruction) = self.code.get(at) {
            at += 1;
            let active: [bool; LANES] = std::array::from_fn(|lane| {
                instruction.guard.is_none_or(|(register, not)| (registers[register][lane] != 0) != not)
            });
            match &instruction.what {
                What::Return => return,
                What::Branch => {
                    assert!(active.iter().all(|&one| one == active[0]), "lanes part at {}", instruction.text);
                    let Some(Argument::Label(label)) = instruction.arguments.first() else { panic!("a label") };
                    if active[0] {
                        at = self.labels[label];
                    }
                }
                _ => launch.step(instruction, &active, &mut registers),
            }
        }
    }
}

struct Launch<'a> {
    block: usize,
    first: usize,
    words: &'a [u64],
    reads: &'a [Range<u64>],
    writes: &'a [Range<u64>],
}

/// A value's low bits.
fn cut(value: u64, bits: u32) -> u64 {
    if bits == 64 { value } else { value & ((1 << bits) - 1) }
}

fn signed(value: u64, bits: u32) -> i64 {
    ((value << (64 - bits)) as i64) >> (64 - bits)
}

/// The bits of a type, `s32` say.
fn bits(name: &str) -> u32 {
    name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(1)
}

fn what_is(name: &[&str]) -> Option<What> {
    let last = *name.last()?;
    let size = bits(last) as usize / 8;
    Some(match name {
        ["ret"] => What::Return,
        ["bra"] => What::Branch,
        ["ld", "global", ..] => What::Load(size, last.starts_with('s')),
        ["st", "global", ..] => What::Store(size),
        ["shfl", "sync", "down", _] => What::Shuffle(Way::Down),
        ["shfl", "sync", "up", _] => What::Shuffle(Way::Up),
        ["shfl", "sync", "idx", _] => What::Shuffle(Way::Index),
        _ => What::Compute(operation(name)?),
    })
}

impl Launch<'_> {
    fn bytes(&self, address: u64, size: usize, write: bool) -> *mut u8 {
        let (from, to) = (address, address + size as u64);
        let inside = |range: &Range<u64>| range.start <= from && to <= range.end;
        let ranges = if write { self.writes } else { self.reads };
        assert!(ranges.iter().any(inside), "an access outside, to {from:#x} of {ranges:#x?}");
        assert!(address.is_multiple_of(size as u64), "an access of {size} bytes at {address:#x}");
        std::ptr::with_exposed_provenance_mut(address as usize)
    }

    fn values(&self, argument: &Argument, bits: u32, registers: &[Lanes]) -> Lanes {
        match argument {
            Argument::Register(register) => registers[*register],
            Argument::Number(number) => [*number; LANES],
            Argument::Parameter(number) => [self.words[*number]; LANES],
            Argument::Thread => std::array::from_fn(|lane| (self.first + lane) as u64),
            Argument::Block => [self.block as u64; LANES],
            Argument::Several(parts) => {
                let each = bits / parts.len() as u32;
                let whole = |lane: usize| {
                    parts.iter().rev().fold(0u64, |all, &part| (all << each) | cut(registers[part][lane], each))
                };
                std::array::from_fn(whole)
            }
            Argument::Memory(..) | Argument::Label(_) => panic!("no value"),
        }
    }

    fn step(&self, instruction: &Instruction, active: &[bool; LANES], registers: &mut [Lanes]) {
        let Instruction { what, bits, arguments, text, .. } = instruction;
        // All lanes read before any writes.
        let mut operands = [[0u64; LANES]; 4];
        if matches!(what, What::Shuffle(_) | What::Compute(_)) {
            for (operand, argument) in operands.iter_mut().zip(&arguments[1..]) {
                *operand = self.values(argument, *bits, registers);
            }
        }
        let results: Lanes = match what {
            What::Load(size, is_signed) => return self.access(arguments, *size, Some(*is_signed), active, registers),
            What::Store(size) => return self.access(arguments, *size, None, active, registers),
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
                std::array::from_fn(|lane| operation(&operands.each_ref().map(|operand| operand[lane])))
            }
            What::Return | What::Branch => unreachable!("the warp's own"),
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
                    registers[part] = results.map(|value| cut(value >> (each * number as u32), each));
                }
            }
            _ => panic!("no result in {text}"),
        }
    }

    /// A load, which extends the sign or does not; or a store.
    fn access(
        &self,
        arguments: &[Argument],
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
        for lane in (0..LANES).filter(|&lane| active[lane]) {
            let memory = self.bytes(registers[address][lane] + offset, size * list.len(), load.is_none());
            for (number, &register) in list.iter().enumerate() {
                let value = &mut registers[register][lane];
                let mut word = value.to_le_bytes();
                // SAFETY: bytes of a tensor, as was asserted; nothing else uses it meanwhile.
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

fn single(word: u64) -> f32 {
    f32::from_bits(word as u32)
}

fn half(word: u64) -> f32 {
    f16::from_bits(word as u16).to_f32()
}

/// Of the first two operands.
type Comparison = Box<dyn Fn(&[u64; 4]) -> Option<Ordering>>;

/// The comparison of a type.
fn comparison(dtype: &str) -> Comparison {
    let width = bits(dtype);
    match dtype {
        "f32" => Box::new(|x| single(x[0]).partial_cmp(&single(x[1]))),
        "f64" => Box::new(|x| f64::from_bits(x[0]).partial_cmp(&f64::from_bits(x[1]))),
        _ if dtype.starts_with('s') => Box::new(move |x| Some(signed(x[0], width).cmp(&signed(x[1], width)))),
        _ => Box::new(move |x| Some(cut(x[0], width).cmp(&cut(x[1], width)))),
    }
}

fn operation(name: &[&str]) -> Option<Operation> {
    let last = *name.last()?;
    let width = bits(last);
    let of_single = |f: fn(&[u64; 4]) -> f32| -> Operation { Box::new(move |x| f(x).to_bits().into()) };
    let of_double = |f: fn(&[u64; 4]) -> f64| -> Operation { Box::new(move |x| f(x).to_bits()) };
    let of_half = |f: fn(&[u64; 4]) -> f32| -> Operation { Box::new(move |x| f16::from_f32(f(x)).to_bits().into()) };
    let operation: Operation = match name {
        ["ld", "param", ..] | ["mov", ..] => Box::new(move |x| cut(x[0], width)),
        ["cvta", ..] => Box::new(|x| x[0]),
        ["selp", ..] => Box::new(|x| if x[2] != 0 { x[0] } else { x[1] }),
        ["setp", compare, rest @ ..] => {
            let is: fn(Option<Ordering>) -> bool = match *compare {
                "eq" => |order| order == Some(Ordering::Equal),
                "ne" | "neu" => |order| order != Some(Ordering::Equal),
                "lt" => |order| order == Some(Ordering::Less),
                "le" => |order| order.is_some_and(Ordering::is_le),
                "gt" => |order| order == Some(Ordering::Greater),
                "ge" => |order| order.is_some_and(Ordering::is_ge),
                "nan" => |order| order.is_none(),
                _ => return None,
            };
            let (compared, and) = (comparison(last), rest[0] == "and");
            Box::new(move |x| u64::from(is(compared(x)) && (!and || x[2] != 0)))
        }
        ["not", "pred"] => Box::new(|x| u64::from(x[0] == 0)),
        ["and", _] => Box::new(|x| x[0] & x[1]),
        ["or", _] => Box::new(|x| x[0] | x[1]),
        ["xor", _] => Box::new(|x| x[0] ^ x[1]),
        ["not", _] => Box::new(move |x| cut(!x[0], width)),
        ["shl", _] => Box::new(move |x| cut(x[0] << x[1], width)),
        ["shr", t] if t.starts_with('s') => Box::new(move |x| cut((signed(x[0], width) >> x[1]) as u64, width)),
        ["shr", _] => Box::new(move |x| cut(x[0], width) >> x[1]),
        ["bfe", "u32"] => Box::new(|x| cut(x[0] >> x[1], x[2] as u32)),
        ["bfe", "s32"] => Box::new(|x| cut(signed(x[0] >> x[1], x[2] as u32) as u64, 32)),
        ["bfi", _] => Box::new(|x| {
            let mask = ((1u64 << x[3]) - 1) << x[2];
            (x[1] & !mask) | ((x[0] << x[2]) & mask)
        }),
        ["cvt", "f32", "f16"] => of_single(|x| half(x[0])),
        ["cvt", "rn", "f16", "f32"] => of_half(|x| single(x[0])),
        ["cvt", "rn", "bf16", "f32"] => Box::new(|x| bf16::from_f32(single(x[0])).to_bits().into()),
        ["cvt", to, from] if !to.starts_with('f') && !from.starts_with('f') => {
            let (from_bits, to_bits, is_signed) = (bits(from), bits(to).max(32), from.starts_with('s'));
            Box::new(move |x| {
                let value = if is_signed { signed(x[0], from_bits) as u64 } else { cut(x[0], from_bits) };
                cut(value, to_bits)
            })
        }
        ["add", "rn", "f32"] => of_single(|x| single(x[0]) + single(x[1])),
        ["sub", "rn", "f32"] => of_single(|x| single(x[0]) - single(x[1])),
        ["mul", "rn", "f32"] => of_single(|x| single(x[0]) * single(x[1])),
        ["add", "rn", "f64"] => of_double(|x| f64::from_bits(x[0]) + f64::from_bits(x[1])),
        ["sub", "rn", "f64"] => of_double(|x| f64::from_bits(x[0]) - f64::from_bits(x[1])),
        ["mul", "rn", "f64"] => of_double(|x| f64::from_bits(x[0]) * f64::from_bits(x[1])),
        ["add", "rn", "f16"] => of_half(|x| half(x[0]) + half(x[1])),
        ["sub", "rn", "f16"] => of_half(|x| half(x[0]) - half(x[1])),
        ["mul", "rn", "f16"] => of_half(|x| half(x[0]) * half(x[1])),
        ["add", _] => Box::new(move |x| cut(x[0].wrapping_add(x[1]), width)),
        ["sub", _] => Box::new(move |x| cut(x[0].wrapping_sub(x[1]), width)),
        ["mul", "lo", _] => Box::new(move |x| cut(x[0].wrapping_mul(x[1]), width)),
        ["mad", "lo", _] => Box::new(move |x| cut(x[0].wrapping_mul(x[1]).wrapping_add(x[2]), width)),
        ["div", "u32"] => Box::new(|x| cut(x[0], 32) / cut(x[1], 32)),
        ["rem", "s32"] => Box::new(|x| cut((signed(x[0], 32) % signed(x[1], 32)) as u64, 32)),
        ["neg", "s32"] => Box::new(|x| cut(x[0].wrapping_neg(), 32)),
        ["max", "s32"] => Box::new(|x| cut(signed(x[0], 32).max(signed(x[1], 32)) as u64, 32)),
        ["min", "s32"] => Box::new(|x| cut(signed(x[0], 32).min(signed(x[1], 32)) as u64, 32)),
        _ => return None,
    };
    Some(operation)
}
