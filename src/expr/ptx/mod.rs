//! Writes programs as PTX.
//!
//! Each block of a kernel computes a tile of the results. Each thread takes a few vectors of the tile at a stride of the block, so that all
//! accesses of a warp are contiguous. A thread loads all its inputs, then computes, then stores.

mod arithmetic;
mod around;
mod casts;
pub(crate) mod emit;
mod fold;
mod memory;
mod neighbours;
mod params;
mod patch;
mod places;
mod random;
mod row_tile;
pub(crate) mod steps;
mod transpose;
mod values;
mod variant;
mod weighted;

use std::fmt::Write;

use emit::{Class, Emitter, Reg, op};
pub(crate) use fold::{LANES, WARPS};
pub(crate) use neighbours::most as most_around;
pub(crate) use params::Param;
pub(crate) use variant::{Folding, Kinds, Transpose, Variant, Way};

use neighbours::Field;

use super::dtype::DType;
use super::graph::Op;
use super::neighbours::neighbour::Rule;
use super::program::{Program, What};

/// Threads of a block, unless it is a large one.
pub(crate) const THREADS: usize = 256;

/// Returns the most elements that a thread computes at once. Divisions of integers take so many registers that 16 elements would spill
/// some.
pub(crate) fn most_computed(program: &Program) -> usize {
    if program.divides_integers() { 8 } else { usize::MAX }
}

/// The entry's name.
pub(crate) const ENTRY: &str = "kernel_primitives_expression";

/// Why there is no kernel for a program.
pub(crate) enum NoKernel {
    /// The function has no code for the architecture.
    NoCode(&'static str),
    /// The parameters take this many bytes, which is more than [`PARAM_BYTES`].
    Parameters(usize),
}

/// The most bytes that a kernel's parameters may take.
pub(crate) const PARAM_BYTES: usize = 4096;

/// Returns the architecture that the text for `arch` names as its target, and the version of PTX times ten.
pub(crate) fn target_of(arch: u32) -> (u32, u32) {
    let targets = [(120, 87), (100, 86), (90, 78), (89, 78), (86, 71), (80, 70), (75, 63)];
    targets.into_iter().find(|(target, _)| *target <= arch).unwrap_or((75, 63))
}

/// Returns the first instructions of kernels if launches of a stream may overlap, as for the library's kernels. They wait for the launch
/// before, and let the next launch start when all of their blocks have started. The wait does not order loads of constant memory contents
/// (`global.nc`).
pub(crate) fn overlap(target: u32) -> &'static str {
    if target >= 90 { "    griddepcontrol.wait;\n    griddepcontrol.launch_dependents;\n" } else { "" }
}

/// Returns the text of a kernel.
pub(crate) fn kernel(program: &Program, variant: &Variant, arch: u32, layout: u64) -> Result<String, NoKernel> {
    let (target, version) = target_of(arch);
    let mut kernel = Kernel {
        e: Emitter::new(target, version),
        program,
        variant,
        arguments: Vec::new(),
        uniform: vec![None; program.code.len()],
        fold_slots: 0,
        field: Field::of_kernel(program, variant),
    };
    let bytes = variant.param_bytes(program);
    if bytes > PARAM_BYTES {
        return Err(NoKernel::Parameters(bytes));
    }
    let params = kernel.take_params();
    kernel.write();
    let Kernel { mut e, fold_slots, .. } = kernel;
    let mut shared = String::new();
    if fold_slots > 0 {
        let _ = writeln!(
            shared,
            "    .shared .align 16 .b8 accumulators[{}];\n    .shared .align 4 .b32 arrived;",
            16 * fold_slots
        );
    }
    if let Some(missing) = e.missing {
        return Err(NoKernel::NoCode(missing));
    }
    // The variable is among the items of functions that panic.
    let panics = e.items.iter().any(|item| item.starts_with(".shared") && item.contains(" kp_control;"));
    e.body = e.body.replace(SET_CONTROL, if panics { STORE_CONTROL } else { "// no function panics:" });
    let mut text = format!(
        "// layout {layout:016x}\n.version {}.{}\n.target sm_{target}\n.address_size 64\n\n",
        e.version / 10,
        e.version % 10
    );
    for item in e.items.iter().copied().chain(e.tables.iter().map(String::as_str)) {
        text.push_str(item);
        text.push('\n');
    }
    // To save registers, ptxas would spill some registers at calls, and would recompute values of long programs. With 80 registers, these
    // programs have enough loads in flight. Row tiles take few registers anyway.
    let registers = if program.divides_integers() {
        ".minnctapersm 1\n"
    } else if program.code.len() > LONG && variant.row.is_none() {
        ".minnctapersm 3\n"
    } else if matches!(target, 90 | 100) && takes_few_registers(program, variant) {
        // This limits the kernel to 48 registers. Otherwise ptxas would take 56 to read more at once.
        ".minnctapersm 5\n"
    } else {
        ""
    };
    let _ = write!(
        text,
        "\n.visible .entry {ENTRY}(\n{params})\n.maxntid {}, 1, 1\n{registers}{{\n{}{shared}\n{}{}}}\n",
        variant.threads(),
        e.registers(),
        if e.body.contains("global.nc") { "" } else { overlap(target) },
        e.body
    );
    Ok(text)
}

/// Returns whether rows that are computed in turn need few registers. They do if they read little except their neighbours, which have one
/// word each. Constants outside take predicates and more registers, and so does the distance to the other side of a periodic rule.
fn takes_few_registers(program: &Program, variant: &Variant) -> bool {
    variant.patch.is_some_and(|patch| patch.in_turn)
        && program.inputs.iter().all(|input| input.shifted)
        && !program.shifts.iter().any(|shift| matches!(shift.rule, Rule::Constant(_) | Rule::Periodic))
        && program.is_light()
        && program.code.iter().all(|one| one.dtype.size() <= 4)
}

/// The number of instructions of a long program.
const LONG: usize = 32;

/// A placeholder for the instruction that passes the stream's control to functions.
const SET_CONTROL: &str = "$control";

/// The instruction, in kernels that call functions that can panic.
const STORE_CONTROL: &str = "st.shared.b64 [kp_control],";

/// Returns whether threads of a kernel with this text can report a fault, and end.
pub(crate) fn can_fault(text: &str) -> bool {
    text.contains(STORE_CONTROL)
}

struct Kernel<'a> {
    e: Emitter,
    program: &'a Program,
    variant: &'a Variant,
    /// The registers of parameters.
    arguments: Vec<(Param, Vec<Reg>)>,
    /// Values that are the same for all elements.
    uniform: Vec<Option<Reg>>,
    /// Accumulators in shared memory.
    fold_slots: usize,
    field: Field<'a>,
}

/// The elements that a thread computes: addresses of operands, or values of indices.
#[derive(Clone)]
struct At {
    /// `None` for single operands.
    addresses: Vec<Option<Reg>>,
    offsets: Vec<usize>,
    /// The indices along the axes of the nest, if neighbours need them.
    index: Vec<Option<Reg>>,
}

impl Kernel<'_> {
    fn argument(&self, param: Param) -> &[Reg] {
        let found = self.arguments.iter().find(|(known, _)| *known == param);
        found.map_or(&[], |(_, registers)| registers)
    }

    /// Loads the parameters; returns their declarations.
    fn take_params(&mut self) -> String {
        let (mut text, mut number) = (String::new(), 0);
        let params = self.variant.params(self.program);
        let last = params.len() - 1;
        for (i, param) in params.into_iter().enumerate() {
            let classes = self.variant.classes(self.program, param);
            let count = classes.len();
            let mut registers = Vec::new();
            for (k, class) in classes.into_iter().enumerate() {
                let comma = if i == last && k + 1 == count { "" } else { "," };
                let _ = writeln!(text, "    .param .{} a{number}{comma}", class.ptx());
                let register =
                    self.e.op_with(class, &format!("ld.param.{}", class.ptx()), &[], format_args!("[a{number}]"));
                // Addresses are global addresses. They are converted once, here.
                let global = k == 0
                    && match param {
                        Param::Operand(operand) => operand < self.memories(),
                        Param::Gathered(_) | Param::Partials | Param::Counters => true,
                        _ => false,
                    };
                registers.push(if global { self.e.op(class, "cvta.to.global.u64", &[register]) } else { register });
                number += 1;
            }
            if let Param::Scalar(scalar) = param {
                let dtype = self.program.scalars[scalar];
                registers[0] = match Class::of(dtype) {
                    Class::Pred => self.e.op_with(Class::Pred, "setp.ne.u32", &[registers[0]], 0),
                    Class::B16 => self.e.op(Class::B16, "cvt.u16.u32", &[registers[0]]),
                    _ => self.e.normalized(dtype, registers[0]),
                };
            }
            self.arguments.push((param, registers));
        }
        text
    }

    /// Writes the kernel's body.
    fn write(&mut self) {
        self.write_uniform();
        if let Some(fold) = self.variant.fold {
            return self.write_folding(fold);
        }
        if let Some(transpose) = self.variant.transpose {
            return self.write_transposing(transpose);
        }
        if let Some(patch) = self.variant.patch {
            return self.write_patches(patch);
        }
        if let Some(tile) = self.variant.row {
            return self.write_row_tiles(tile);
        }
        let (width, vectors) = (usize::from(self.variant.width), usize::from(self.variant.vectors));
        let linear = self.variant.rank == 0;
        let (tile, threads) = (self.variant.tile(), self.variant.threads());
        let count = self.argument(Param::Count)[0];
        let block = self.e.op_with(Class::B32, "mov.u32", &[], "%ctaid.x");
        let thread = self.e.op_with(Class::B32, "mov.u32", &[], "%tid.x");
        let start = self.e.op_with(Class::B64, "mul.wide.u32", &[block], tile);
        let thread = self.e.op(Class::B64, "cvt.u64.u32", &[thread]);
        if tile == threads {
            // Each thread has at most one element.
            let place = self.e.op(Class::B64, "add.u64", &[start, thread]);
            let outside = self.e.op(Class::Pred, "setp.ge.u64", &[place, count]);
            let done = self.e.label();
            op!(self.e, "@{outside} bra {done};");
            let at = if linear { self.linear(place) } else { self.nested(place) };
            self.compute(&[at], width);
            self.e.place(&done);
            op!(self.e, "ret;");
            return;
        }
        let end = self.e.op_with(Class::B64, "add.u64", &[start], tile);
        let partial = self.e.op(Class::Pred, "setp.gt.u64", &[end, count]);
        let tail = self.e.label();
        op!(self.e, "@{partial} bra {tail};");
        // In a whole tile, everything is loaded before anything is computed.
        let first = if linear {
            self.e.op_with(Class::B64, "mad.lo.u64", &[thread], format_args!("{width}, {start}"))
        } else {
            self.e.op(Class::B64, "add.u64", &[start, thread])
        };
        let places: Vec<At> = if linear {
            let base = self.linear(first);
            (0..vectors).map(|v| self.further(&base, v * threads * width)).collect()
        } else {
            (0..vectors)
                .map(|v| {
                    let place =
                        if v == 0 { first } else { self.e.op_with(Class::B64, "add.u64", &[first], v * threads) };
                    self.nested(place)
                })
                .collect()
        };
        self.compute(&places, width);
        op!(self.e, "ret;");
        // The last tile may be short. It is computed element by element if the elements are contiguous, and vector by vector otherwise.
        self.e.place(&tail);
        let (again, done) = (self.e.label(), self.e.label());
        let place = self.e.op(Class::B64, "add.u64", &[start, thread]);
        self.e.place(&again);
        let outside = self.e.op(Class::Pred, "setp.ge.u64", &[place, count]);
        op!(self.e, "@{outside} bra {done};");
        let at = if linear { self.linear(place) } else { self.nested(place) };
        self.compute(&[at], if linear { 1 } else { width });
        op!(self.e, "add.u64 {place}, {place}, {threads};");
        op!(self.e, "bra {again};");
        self.e.place(&done);
        op!(self.e, "ret;");
    }

    /// Returns the number of operands with memory. The operands after them are indices.
    fn memories(&self) -> usize {
        self.variant.operands.len() - self.program.indices().count()
    }

    /// Bytes of an element.
    fn size(&self, operand: usize) -> usize {
        if operand < self.memories() { self.dtype(operand).size() } else { 1 }
    }

    fn dtype(&self, operand: usize) -> DType {
        let results = self.program.results.len();
        if operand < results {
            return self.program.code[self.program.results[operand] as usize].dtype;
        }
        let mut loads = self.program.inputs.iter().filter(|input| !input.gathered);
        loads.nth(operand - results).expect("an operand").dtype
    }

    /// Returns the operand of an input that is not gathered.
    fn operand_of(&self, input: u32) -> usize {
        let before = self.program.inputs[..input as usize].iter().filter(|input| !input.gathered).count();
        self.program.results.len() + before
    }

    /// Computes the values that are the same for all elements.
    fn write_uniform(&mut self) {
        // Functions that panic find the stream's control here.
        let control = self.argument(Param::Control)[0];
        op!(self.e, "{SET_CONTROL} {control};");
        for (at, instruction) in self.program.code.iter().enumerate() {
            let value = match instruction.what {
                What::Scalar(scalar) => Some(self.argument(Param::Scalar(scalar as usize))[0]),
                What::Constant(word) => Some(self.e.constant(instruction.dtype, word)),
                What::Load(input) => {
                    let operand = self.operand_of(input);
                    (self.variant.operands[operand] == Way::Single).then(|| {
                        let address = self.argument(Param::Operand(operand))[0];
                        self.e.load("global", instruction.dtype, address, 0, 1)[0]
                    })
                }
                What::Op(op) => {
                    let arguments: Option<Vec<Reg>> =
                        instruction.takes().iter().map(|&value| self.uniform[value as usize]).collect();
                    let from = instruction.takes().first().map(|&value| self.program.code[value as usize].dtype);
                    // A value that can fault is computed only by threads that need it.
                    match (arguments, from) {
                        (Some(arguments), Some(from)) if !op.divides_integers(instruction.dtype) => {
                            let from = if op == Op::Select { instruction.dtype } else { from };
                            Some(self.e.compute(op, from, instruction.dtype, &arguments))
                        }
                        _ => None,
                    }
                }
                _ => None,
            };
            self.uniform[at] = value;
        }
    }
}
