//! Kernels of several steps of a stencil. They read and write memory once.
//!
//! A warp has a strip of columns, and each lane has `width` columns side by side. The warp goes down the rows. It loads a row, and then
//! computes one row of each step. The row of step `s` is `s * reach` rows above, where all rows that it reads are known. Each step keeps
//! the rows of one footprint in registers. Neighbours in other lanes come by shuffles, so there is no shared memory and no barrier. The
//! outermost columns of a strip, and the rows before and after a warp's own rows, are the halo. Several warps compute the halo, and after
//! each step, less of it is right: the right part shrinks by the reach.
//!
//! Registers rotate by name. The loop's body has one phase for each row that a step keeps. In each phase, a new row takes the registers of
//! the oldest row. Results are copied there, because a result may be in a register of the step before, and that step's own row still needs
//! this register.
//!
//! Each step reads elements outside of the tensor by the rule. If all rows and columns of a warp are inside, which is the case nearly
//! everywhere, the code has no rule. Elsewhere, a row outside is chosen from the rows that the step keeps. Columns outside are a part of
//! the strip, and are set by shuffles after each step. A periodic tensor needs none of this, because its halo is loaded by the rule and is
//! then computed like all other places. For an interior stencil, the places around the interior keep their elements at every step.

mod levels;
mod rows;

use std::fmt::Write;

use super::emit::{Class, Emitter, Reg, op};
use super::{ENTRY, NoKernel, PARAM_BYTES, overlap, target_of};
use crate::expr::dtype::DType;
use crate::expr::neighbours::neighbour::Rule;
use crate::expr::program::{Program, What};

/// The number of lanes of a warp.
pub(crate) const LANES: usize = 32;
/// The number of threads of a block.
pub(crate) const THREADS: usize = 128;

/// The least number of blocks of a multiprocessor. Without this number, `ptxas` spills a few bytes to make room for one more block.
const BLOCKS: usize = 2;
/// The number of rows that are loaded ahead if a step keeps only one row.
const AHEAD: usize = 4;

/// The form of a kernel of steps; the program is apart from it. The first of two axes is that of columns, the second that of rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StepsForm {
    pub(crate) steps: usize,
    /// The number of columns of a lane. It is a power of two.
    pub(crate) width: usize,
    /// The largest distance of a neighbour on either side.
    pub(crate) reach: [usize; 2],
    pub(crate) outside: Outside,
    /// The axes, counted from the tensor's innermost axis.
    pub(crate) axes: [usize; 2],
    /// The number of other axes.
    pub(crate) batch: usize,
    pub(crate) dtype: DType,
    /// The input that is stepped, if it is read.
    pub(crate) state: Option<u32>,
    /// Whether rows are read and written as vectors. Then they consist of whole vectors.
    pub(crate) vector: bool,
    /// The other inputs, in order.
    pub(crate) others: Vec<Other>,
}

/// What happens at places outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Outside {
    /// Nothing is read there.
    Nothing,
    Rule(Rule),
    /// These numbers of places at the ends of both axes keep their elements.
    Frame {
        before: [usize; 2],
        after: [usize; 2],
    },
}

/// The layout of an input that is not stepped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Other {
    Single,
    /// The input is read as vectors along a row.
    Row,
    Strided,
}

/// A parameter of a kernel of steps. Operands are the source, the target, and the other inputs. Axes are columns, rows, and the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepsParam {
    Address(usize),
    /// The stride of an operand along an axis, in bytes.
    Stride(usize, usize),
    Extent(usize),
    /// The number of strips of columns. The next parameter is the number of chunks of rows. The tensor is cut into these.
    Strips,
    Chunks,
    /// The number of rows of a chunk.
    Rows,
    /// The number of warps of the whole grid.
    Warps,
    Scalar(usize),
    Control,
}

impl StepsForm {
    /// Returns the kernel's parameters, in order.
    pub(crate) fn words(&self, program: &Program) -> Vec<StepsParam> {
        let axes = 2 + self.batch;
        let mut words = Vec::new();
        for operand in 0..2 + self.others.len() {
            words.push(StepsParam::Address(operand));
            if operand < 2 || self.others[operand - 2] != Other::Single {
                words.extend((0..axes).map(|axis| StepsParam::Stride(operand, axis)));
            }
        }
        words.extend((0..axes).map(StepsParam::Extent));
        words.extend([StepsParam::Strips, StepsParam::Chunks, StepsParam::Rows, StepsParam::Warps]);
        words.extend((0..program.scalars.len()).map(StepsParam::Scalar));
        words.push(StepsParam::Control);
        words
    }

    /// Returns the number of columns of the halo on either side of a strip. They are whole vectors.
    pub(crate) fn halo(&self) -> usize {
        (self.steps * self.reach[0]).next_multiple_of(self.width)
    }

    /// Returns the number of columns of a strip outside of its halo.
    pub(crate) fn columns(&self) -> Option<usize> {
        (LANES * self.width).checked_sub(2 * self.halo()).filter(|&columns| columns > 0)
    }

    /// Returns the number of rows that a step keeps.
    pub(crate) fn kept(&self) -> usize {
        2 * self.reach[1] + 1
    }

    /// Returns the number of phases of the loop.
    pub(crate) fn phases(&self) -> usize {
        if self.reach[1] == 0 { AHEAD } else { self.kept() }
    }
}

/// Returns the text of a kernel.
pub(crate) fn kernel(program: &Program, form: &StepsForm, arch: u32, layout: u64) -> Result<String, NoKernel> {
    let (target, version) = target_of(arch);
    let e = Emitter::new(target, version);
    let mut kernel =
        StepsKernel { e, program, form, arguments: Vec::new(), uniform: vec![None; program.code.len()], warp: None };
    let params = kernel.take_params()?;
    kernel.write();
    let e = kernel.e;
    if let Some(missing) = e.missing {
        return Err(NoKernel::NoCode(missing));
    }
    Ok(format!(
        "// layout {layout:016x}\n.version {}.{}\n.target sm_{target}\n.address_size 64\n\n\n.visible .entry {ENTRY}(\n{params})\n\
         .maxntid {THREADS}, 1, 1\n.minnctapersm {BLOCKS}\n{{\n{}\n{}{}}}\n",
        e.version / 10,
        e.version % 10,
        e.registers(),
        overlap(target),
        e.body
    ))
}

struct StepsKernel<'a> {
    e: Emitter,
    program: &'a Program,
    form: &'a StepsForm,
    arguments: Vec<(StepsParam, Reg)>,
    /// Values that are the same for all elements.
    uniform: Vec<Option<Reg>>,
    warp: Option<Warp>,
}

/// The values that a warp keeps for its whole run.
#[derive(Clone)]
struct Warp {
    /// The index of the lane's first column, and the index of the strip's first column.
    column: Reg,
    first_column: Reg,
    /// The first column of the strip outside of its halo, and the end of these columns.
    own: [Reg; 2],
    /// Whether the strip has columns that are outside, or that keep their elements.
    edge: Reg,
    /// The first row of the chunk, and the end of its rows.
    rows: [Reg; 2],
    /// The address of each operand, and its address at the lane's first column. It is `None` for single operands.
    bases: Vec<Option<(Reg, Reg)>>,
}

impl StepsKernel<'_> {
    fn argument(&self, word: StepsParam) -> Reg {
        self.arguments.iter().find(|(known, _)| *known == word).expect("a parameter").1
    }

    fn extent(&self, axis: usize) -> Reg {
        self.argument(StepsParam::Extent(axis))
    }

    fn warp(&self) -> &Warp {
        self.warp.as_ref().expect("written first")
    }

    /// Loads the parameters. Returns their declarations.
    fn take_params(&mut self) -> Result<String, NoKernel> {
        let (mut text, mut bytes) = (String::new(), 0usize);
        let words = self.form.words(self.program);
        let last = words.len() - 1;
        for (i, word) in words.into_iter().enumerate() {
            let class = match word {
                StepsParam::Address(_) | StepsParam::Stride(..) | StepsParam::Control => Class::B64,
                StepsParam::Extent(_)
                | StepsParam::Strips
                | StepsParam::Chunks
                | StepsParam::Rows
                | StepsParam::Warps => Class::B32,
                StepsParam::Scalar(scalar) => match Class::of(self.program.scalars[scalar]) {
                    Class::Pred | Class::B16 => Class::B32,
                    class => class,
                },
            };
            bytes = bytes.next_multiple_of(class.param_bytes()) + class.param_bytes();
            let comma = if i == last { "" } else { "," };
            let _ = writeln!(text, "    .param .{} a{i}{comma}", class.ptx());
            let mut register = self.e.op_with(class, &format!("ld.param.{}", class.ptx()), &[], format_args!("[a{i}]"));
            match word {
                StepsParam::Address(_) => register = self.e.op(class, "cvta.to.global.u64", &[register]),
                StepsParam::Scalar(scalar) => {
                    let dtype = self.program.scalars[scalar];
                    register = match Class::of(dtype) {
                        Class::Pred => self.e.op_with(Class::Pred, "setp.ne.u32", &[register], 0),
                        Class::B16 => self.e.op(Class::B16, "cvt.u16.u32", &[register]),
                        _ => self.e.normalized(dtype, register),
                    };
                }
                _ => {}
            }
            self.arguments.push((word, register));
        }
        if bytes > PARAM_BYTES { Err(NoKernel::Parameters(bytes)) } else { Ok(text) }
    }

    fn write(&mut self) {
        let thread = self.e.op_with(Class::B32, "mov.u32", &[], "%tid.x");
        let block = self.e.op_with(Class::B32, "mov.u32", &[], "%ctaid.x");
        let lane = self.e.op_with(Class::B32, "and.b32", &[thread], LANES - 1);
        let number = self.e.op_with(Class::B32, "shr.u32", &[thread], LANES.ilog2());
        let first = self.e.op_with(Class::B32, "mul.lo.u32", &[block], THREADS / LANES);
        let number = self.e.op(Class::B32, "add.u32", &[number, first]);
        let warps = self.argument(StepsParam::Warps);
        let none = self.e.op(Class::Pred, "setp.ge.u32", &[number, warps]);
        let done = self.e.label();
        op!(self.e, "@{none} bra {done};");
        self.write_warp(number, lane);
        self.write_uniform();
        self.write_rows();
        self.e.place(&done);
        op!(self.e, "ret;");
    }

    /// Returns the quotient and the remainder.
    fn divide(&mut self, dividend: Reg, divisor: Reg) -> (Reg, Reg) {
        let class = Class::B32;
        let quotient = self.e.op(class, "div.u32", &[dividend, divisor]);
        let product = self.e.op(class, "mul.lo.u32", &[quotient, divisor]);
        (quotient, self.e.op(class, "sub.u32", &[dividend, product]))
    }

    /// Computes the warp's strip and chunk. The chunks of a strip follow each other. The outermost strips come first, because their rules
    /// take time.
    fn write_warp(&mut self, number: Reg, lane: Reg) {
        let class = Class::B32;
        let (rest, chunk) = self.divide(number, self.argument(StepsParam::Chunks));
        let (mut strip, mut batch) = (rest, Vec::new());
        for axis in (0..self.form.batch).rev() {
            let (rest, index) = self.divide(strip, self.extent(2 + axis));
            (strip, batch) = (rest, [vec![(axis, index)], batch].concat());
        }
        let strips = self.argument(StepsParam::Strips);
        let last = self.e.op_with(class, "sub.u32", &[strips], 1);
        let second = self.e.op_with(Class::Pred, "setp.eq.u32", &[strip], 1);
        let before = self.e.op_with(class, "sub.s32", &[strip], 1);
        let before = self.e.op_with(class, "max.s32", &[before], 0);
        let strip = self.e.op(class, "selp.b32", &[last, before, second]);

        let columns = self.form.columns().expect("some columns are no halo");
        let start = self.e.op_with(class, "mul.lo.s32", &[strip], columns);
        let first_column = self.e.op_with(class, "sub.s32", &[start], self.form.halo());
        let offset = self.e.op_with(class, "mul.lo.s32", &[lane], self.form.width);
        let column = self.e.op(class, "add.s32", &[first_column, offset]);
        let extent = self.extent(0);
        let end = self.e.op_with(class, "add.s32", &[start], columns);
        let own = [start, self.e.op(class, "min.s32", &[end, extent])];
        let (before, after) = match self.form.outside {
            Outside::Frame { before, after } => (before[0], after[0]),
            _ => (0, 0),
        };
        let low = self.e.op_with(Class::Pred, "setp.lt.s32", &[first_column], before);
        let past = self.e.op_with(class, "add.s32", &[first_column], LANES * self.form.width + after);
        let high = self.e.op(Class::Pred, "setp.gt.s32", &[past, extent]);
        let edge = self.e.op(Class::Pred, "or.pred", &[low, high]);

        let height = self.argument(StepsParam::Rows);
        let row = self.e.op(class, "mul.lo.s32", &[chunk, height]);
        let end = self.e.op(class, "add.s32", &[row, height]);
        let rows = [row, self.e.op(class, "min.s32", &[end, self.extent(1)])];

        let mut bases = Vec::new();
        for operand in 0..2 + self.form.others.len() {
            let mut base = self.argument(StepsParam::Address(operand));
            if operand >= 2 && self.form.others[operand - 2] == Other::Single {
                bases.push(None);
                continue;
            }
            for &(axis, index) in &batch {
                base = self.moved(base, index, StepsParam::Stride(operand, 2 + axis));
            }
            let at_column = self.moved(base, column, StepsParam::Stride(operand, 0));
            bases.push(Some((base, at_column)));
        }
        self.warp = Some(Warp { column, first_column, own, edge, rows, bases });
    }

    /// Returns an address, moved by `index` strides.
    fn moved(&mut self, address: Reg, index: Reg, stride: StepsParam) -> Reg {
        let stride = self.argument(stride);
        let index = self.e.op(Class::B64, "cvt.s64.s32", &[index]);
        self.e.op(Class::B64, "mad.lo.s64", &[index, stride, address])
    }

    /// Computes the values that are the same for all elements.
    fn write_uniform(&mut self) {
        for (at, instruction) in self.program.code.iter().enumerate() {
            self.uniform[at] = match instruction.what {
                What::Scalar(scalar) => Some(self.argument(StepsParam::Scalar(scalar as usize))),
                What::Constant(word) => Some(self.e.constant(instruction.dtype, word)),
                What::Load(input) if Some(input) != self.form.state => {
                    let other = self.other(input);
                    (self.form.others[other] == Other::Single).then(|| {
                        let address = self.argument(StepsParam::Address(2 + other));
                        self.e.load("global", instruction.dtype, address, 0, 1)[0]
                    })
                }
                What::Op(op) => {
                    let takes = instruction.takes();
                    let arguments: Option<Vec<Reg>> = takes.iter().map(|&value| self.uniform[value as usize]).collect();
                    let from =
                        takes.first().map_or(instruction.dtype, |&value| self.program.code[value as usize].dtype);
                    arguments.map(|arguments| self.e.compute(op, from, instruction.dtype, &arguments))
                }
                _ => None,
            };
        }
    }

    /// Returns the number of an input among the inputs that are not stepped.
    fn other(&self, input: u32) -> usize {
        input as usize - usize::from(self.form.state.is_some_and(|state| state < input))
    }

    /// Returns the class of registers that hold elements. For `bool`, these are not predicates, because predicates are few and cannot be
    /// shuffled.
    fn held_class(&self) -> Class {
        match Class::of(self.form.dtype) {
            Class::Pred => Class::B32,
            class => class,
        }
    }

    /// Returns a value as registers hold it.
    fn held(&mut self, value: Reg) -> Reg {
        match value.class {
            Class::Pred => self.e.op_with(Class::B32, "selp.b32", &[], format_args!("1, 0, {value}")),
            _ => value,
        }
    }

    /// Returns the value of a register that holds an element.
    fn value_of(&mut self, held: Reg) -> Reg {
        match self.form.dtype {
            DType::Bool => self.e.op_with(Class::Pred, "setp.ne.u32", &[held], 0),
            _ => held,
        }
    }

    /// Returns `a` if `which` is true, and `b` otherwise, as registers hold them.
    fn chosen(&mut self, which: Reg, a: Reg, b: Reg) -> Reg {
        self.e.op(a.class, &format!("selp.{}", a.class.ptx()), &[a, b, which])
    }

    fn copy(&mut self, to: Reg, from: Reg) {
        op!(self.e, "mov.{} {to}, {from};", to.class.ptx());
    }
}
