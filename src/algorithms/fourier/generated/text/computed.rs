//! Lines of computed numbers: the input, the steps between two transforms, and the results are expressions.
//!
//! A block has whole lines. A second transform has the radices of the first one in reverse order. So its first stage has its numbers where
//! the last stage before left them: in the thread's registers, as in a [`convolution`](super::convolution). The expressions between the
//! transforms are computed there.

use std::fmt::Write;

use super::code::{Code, Number};
use super::kernel::{Frame, Here, Writer};
use super::module::module;
use crate::Complex;
use crate::algorithms::fourier::generated::layout::{bytes, numbers};
use crate::algorithms::fourier::generated::pass::{LinePass, Stage};
use crate::expr::dtype::DType;
use crate::expr::program::{Program, What};
use crate::expr::ptx::emit::{Class, Emitter, Reg, op};
use crate::expr::ptx::target_of;

/// A transform of numbers that a program computes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct ComputedTransform {
    pub(in super::super) inverse: bool,
    /// Whether results are multiplied by a factor, which the launch gives.
    pub(in super::super) scaled: bool,
    /// The values that are transformed: real and imaginary parts.
    pub(in super::super) takes: [u32; 2],
    /// The scalars of the program that stand for the results.
    pub(in super::super) gives: [u32; 2],
}

/// The places of an operand's elements, in bytes; or the values of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct ComputedOperand {
    /// The distance from a line to the next.
    pub(in super::super) line: i64,
    /// The distance from an element of a line to the next.
    pub(in super::super) element: i64,
    /// The operand whose elements come right after the elements of this one. Both are accessed together.
    pub(in super::super) beside: Option<u32>,
}

/// One or two transforms of lines in a row, with computed numbers. This is the identity of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct ComputedPass {
    /// The pass of the lines. They have one axis. Its extent only says whether the last block may lack lines; it need not be that of the
    /// launch.
    pub(in super::super) pass: LinePass,
    pub(in super::super) transforms: Vec<ComputedTransform>,
    pub(in super::super) program: Program,
    /// The values that are stored.
    pub(in super::super) results: Vec<u32>,
    /// The operands of the results, then of the inputs, then of the indices.
    pub(in super::super) operands: Vec<ComputedOperand>,
}

/// A kernel, and the values that its launches need. Its parameters are the address of the roots; the pass's [bound](LinePass::bound); the
/// scale of each transform; the addresses of operands, or the first values of indices; and the scalars of the program.
pub(in super::super) struct ComputedKernel {
    pub(in super::super) text: String,
    /// The bytes of shared memory that a launch has to give, if the kernel declares none.
    pub(in super::super) shared: u32,
    pub(in super::super) roots: Vec<Complex<f64>>,
}

/// The number of parameters before the scales.
const SCALES: usize = 2;

impl ComputedPass {
    /// Returns the number of parameters of the kernel.
    pub(in super::super) fn parameters(&self) -> usize {
        SCALES + self.transforms.len() + self.operands.len() + self.program.scalars.len()
    }
}

/// Returns the kernel, or the name of a device function that has no code for the architecture.
pub(in super::super) fn computed(form: &ComputedPass, arch: u32) -> Result<ComputedKernel, &'static str> {
    let pass = &form.pass;
    let (target, version) = target_of(arch);
    let mut code = Code::new(pass.real, target, version);
    let table = code.pointer_parameter(0);
    let bound = code.integer_parameter(1);
    let thread = code.integer("%tid.x");
    let tile = code.integer("%ctaid.x");
    let shared = code.integer("numbers");
    // The expressions access the input and the output.
    let frame = Frame { parameters: [table; 4], bound, scale: None, thread, tile, shared };
    let back = LinePass { radices: pass.radices.iter().rev().copied().collect(), ..pass.clone() };
    let mut roots = Vec::new();
    let mut here = Writer::new(&mut code, pass, frame, &mut roots).here(pass.lanes[0]);
    let operands = ThreadOperands::new(&mut code, form, &here);
    let mut given: Option<Given> = None;
    for (at, transform) in form.transforms.iter().enumerate() {
        let pass = if at == 0 { pass } else { &back };
        if at > 0 && pass.radices.len() > 1 {
            // These exchanges have other layouts than the earlier ones, so the same memory may have lines of other warps.
            code.barrier(false);
        }
        let mut writer = Writer::new(&mut code, pass, frame, &mut roots);
        let turned = |number: Number| if transform.inverse { number.exchanged() } else { number };
        let stage = writer.first_stage();
        let taken = operands.compute(&mut writer, &here, &stage, &transform.takes, given.as_ref());
        let mut x: Vec<Number> = taken.iter().map(|parts| turned(Number::of([parts[0], parts[1]]))).collect();
        writer.transform(&mut here, &mut x);
        let scale = transform.scaled.then(|| writer.code.real_parameter(SCALES + at));
        let numbers = x.into_iter().map(|number| writer.code.scaled_number(turned(number), scale)).collect();
        given = Some(Given { scalars: transform.gives, numbers });
    }
    let last = if form.transforms.len() == 1 { pass } else { &back };
    let mut writer = Writer::new(&mut code, last, frame, &mut roots);
    let stage = writer.last_stage();
    let stored = operands.compute(&mut writer, &here, &stage, &form.results, given.as_ref());
    operands.store(&mut writer, &here, &stage, &stored);
    op!(code.e, "ret;");
    if let Some(missing) = code.e.missing {
        return Err(missing);
    }
    let memory = bytes(numbers(pass).max(numbers(&back)), pass.real);
    let (text, shared) = module(&code, form.parameters(), (pass.block_threads(), pass.blocks), memory);
    Ok(ComputedKernel { text, shared, roots })
}

/// The results of a transform, and the scalars of the program that stand for them.
struct Given {
    scalars: [u32; 2],
    /// The numbers of a thread's elements, in order.
    numbers: Vec<Number>,
}

/// The values that a thread has for the operands.
struct ThreadOperands<'a> {
    form: &'a ComputedPass,
    /// The addresses of the thread's first elements, or the values of indices there.
    bases: Vec<Reg>,
    /// For each instruction of the program, its value if it is the same for all elements.
    uniform: Vec<Option<Reg>>,
}

/// Returns the prefix of an instruction that only threads with a true predicate run.
fn guarded(guard: Option<Reg>) -> String {
    guard.map_or(String::new(), |guard| format!("@{guard} "))
}

/// Loads an element, in threads with a true predicate.
fn load(e: &mut Emitter, dtype: DType, guard: Option<Reg>, address: Reg, offset: i64) -> Reg {
    let (guard, class) = (guarded(guard), Class::of(dtype));
    let narrow = match dtype {
        DType::Bool | DType::U8 => "u8",
        DType::U16 => "u16",
        DType::I8 => "s8",
        DType::I16 => "s16",
        _ => class.ptx(),
    };
    let to = e.reg(if dtype == DType::Bool { Class::B32 } else { class });
    op!(e, "{guard}ld.global.{narrow} {to}, [{address}+{offset}];");
    if dtype == DType::Bool { e.op_with(Class::Pred, "setp.ne.u32", &[to], 0) } else { to }
}

impl<'a> ThreadOperands<'a> {
    fn new(code: &mut Code, form: &'a ComputedPass, here: &Here) -> Self {
        let program = &form.program;
        let e = &mut code.e;
        let first = SCALES + form.transforms.len();
        let line = e.op(Class::B64, "cvt.u64.u32", &[here.coordinates[0]]);
        let element = e.op(Class::B64, "cvt.u64.u32", &[here.thread]);
        let memories = form.results.len() + program.inputs.len();
        let mut bases = Vec::with_capacity(form.operands.len());
        let mut begins = Vec::with_capacity(form.operands.len());
        for (number, operand) in form.operands.iter().enumerate() {
            let mut base = e.op_with(Class::B64, "ld.param.u64", &[], format_args!("[a{}]", first + number));
            if number < memories {
                base = e.op(Class::B64, "cvta.to.global.u64", &[base]);
            }
            begins.push(base);
            for (index, stride) in [(line, operand.line), (element, operand.element)] {
                if stride != 0 {
                    base = e.op_with(Class::B64, "mad.lo.s64", &[index], format_args!("{stride}, {base}"));
                }
            }
            bases.push(base);
        }
        let is_given = |at: usize| form.transforms.iter().any(|transform| transform.gives.contains(&(at as u32)));
        let mut uniform: Vec<Option<Reg>> = Vec::with_capacity(program.code.len());
        for (at, instruction) in program.code.iter().enumerate() {
            let value = match instruction.what {
                _ if is_given(at) => None,
                What::Constant(word) => Some(e.constant(instruction.dtype, word)),
                What::Scalar(scalar) => {
                    let number = first + form.operands.len() + scalar as usize;
                    let class = match Class::of(instruction.dtype) {
                        Class::Pred | Class::B16 => Class::B32,
                        class => class,
                    };
                    let name = format!("ld.param.{}", class.ptx());
                    let word = e.op_with(class, &name, &[], format_args!("[a{number}]"));
                    Some(match Class::of(instruction.dtype) {
                        Class::Pred => e.op_with(Class::Pred, "setp.ne.u32", &[word], 0),
                        Class::B16 => e.op(Class::B16, "cvt.u16.u32", &[word]),
                        _ => e.normalized(instruction.dtype, word),
                    })
                }
                What::Load(input) => {
                    let number = form.results.len() + input as usize;
                    let ComputedOperand { line, element, .. } = form.operands[number];
                    ((line, element) == (0, 0)).then(|| load(e, instruction.dtype, None, begins[number], 0))
                }
                What::Op(op) => {
                    let takes = instruction.takes();
                    let arguments: Option<Vec<Reg>> = takes.iter().map(|&value| uniform[value as usize]).collect();
                    let from = program.code[takes[0] as usize].dtype;
                    arguments.map(|arguments| e.compute(op, from, instruction.dtype, &arguments))
                }
                _ => None,
            };
            uniform.push(value);
        }
        Self { form, bases, uniform }
    }

    /// Returns the elements of a thread in a stage: their distances from the thread's first element, and which threads have them.
    fn places(writer: &mut Writer<'_>, here: &Here, stage: &Stage) -> Vec<(i64, Option<Reg>)> {
        let mut places = Vec::new();
        for i in 0..writer.pass.butterflies(stage) {
            let (_, guard) = writer.butterfly(here, stage, i);
            let guard = writer.code.both(guard, here.there);
            places.extend((0..stage.radix).map(|k| (writer.element(stage, i, k), guard)));
        }
        places
    }

    /// Computes some values for all elements of a thread in a stage. It loads all operands before it computes a value.
    fn compute(
        &self,
        writer: &mut Writer<'_>,
        here: &Here,
        stage: &Stage,
        wanted: &[u32],
        given: Option<&Given>,
    ) -> Vec<Vec<Reg>> {
        let code = &self.form.program.code;
        let needed = self.form.program.needed_by(wanted);
        let places = Self::places(writer, here, stage);
        let mut all: Vec<Vec<Option<Reg>>> = places.iter().map(|_| self.uniform.clone()).collect();
        for (values, &(distance, guard)) in all.iter_mut().zip(&places) {
            for at in (0..code.len()).filter(|&at| needed[at]) {
                if let (What::Load(input), None) = (code[at].what, values[at]) {
                    self.load(writer, values, &needed, (at, input), (distance, guard));
                }
            }
        }
        for (number, (values, &(distance, _))) in all.iter_mut().zip(&places).enumerate() {
            if let Some(Given { scalars, numbers }) = given {
                for (&scalar, part) in scalars.iter().zip([numbers[number].re, numbers[number].im]) {
                    values[scalar as usize] = Some(writer.code.register(part));
                }
            }
            for at in (0..code.len()).filter(|&at| needed[at]) {
                if values[at].is_none() {
                    values[at] = Some(self.value(&mut writer.code.e, values, at, distance));
                }
            }
        }
        let value = |values: &Vec<Option<Reg>>, &which: &u32| values[which as usize].expect("it was computed");
        all.iter().map(|values| wanted.iter().map(|which| value(values, which)).collect()).collect()
    }

    /// Loads an element. If the element of the operand beside it is needed, loads both.
    fn load(
        &self,
        writer: &mut Writer<'_>,
        values: &mut [Option<Reg>],
        needed: &[bool],
        (at, input): (usize, u32),
        (distance, guard): (i64, Option<Reg>),
    ) {
        let code = &self.form.program.code;
        let number = self.form.results.len() + input as usize;
        let operand = &self.form.operands[number];
        let (address, offset, e) = (self.bases[number], distance * operand.element, &mut writer.code.e);
        let load_of = |beside: u32| {
            let input = beside as usize - self.form.results.len();
            code.iter().position(|other| other.what == What::Load(input as u32))
        };
        if let Some(other) = operand.beside.and_then(load_of).filter(|&other| needed[other] && values[other].is_none())
        {
            let class = Class::of(code[at].dtype);
            let [re, im] = [(); 2].map(|()| e.reg(class));
            op!(e, "{}ld.global.v2.{} {{{re}, {im}}}, [{address}+{offset}];", guarded(guard), class.ptx());
            (values[at], values[other]) = (Some(re), Some(im));
            return;
        }
        // The operand before this one may load both.
        let before = |one: &ComputedOperand| one.beside == Some(number as u32);
        if let Some(other) = self.form.operands.iter().position(before).and_then(|other| load_of(other as u32))
            && needed[other]
            && values[other].is_none()
            && let What::Load(input) = code[other].what
        {
            return self.load(writer, values, needed, (other, input), (distance, guard));
        }
        values[at] = Some(load(e, code[at].dtype, guard, address, offset));
    }

    /// Returns the value of an instruction whose arguments are known.
    fn value(&self, e: &mut Emitter, values: &[Option<Reg>], at: usize, distance: i64) -> Reg {
        let code = &self.form.program.code;
        let instruction = &code[at];
        match instruction.what {
            What::Index(_) => {
                let before = code[..at].iter().filter(|one| matches!(one.what, What::Index(_))).count();
                let number = self.form.results.len() + self.form.program.inputs.len() + before;
                let by = distance * self.form.operands[number].element;
                e.op_with(Class::B64, "add.s64", &[self.bases[number]], by)
            }
            What::Op(op) => {
                let takes = instruction.takes();
                let arguments: Vec<Reg> =
                    takes.iter().map(|&value| values[value as usize].expect("arguments come before")).collect();
                e.compute(op, code[takes[0] as usize].dtype, instruction.dtype, &arguments)
            }
            _ => unreachable!("the host refused it, or another transform gives it"),
        }
    }

    /// Stores the results, which have the type of the transforms.
    fn store(&self, writer: &mut Writer<'_>, here: &Here, stage: &Stage, results: &[Vec<Reg>]) {
        let (places, t) = (Self::places(writer, here, stage), writer.pass.real.ptx());
        for (results, &(distance, guard)) in results.iter().zip(&places) {
            let (guard, e) = (guarded(guard), &mut writer.code.e);
            let mut stored = vec![false; results.len()];
            for (number, &value) in results.iter().enumerate() {
                let operand = &self.form.operands[number];
                if let Some(other) = operand.beside {
                    let (address, offset) = (self.bases[number], distance * operand.element);
                    let other = other as usize;
                    op!(e, "{guard}st.global.v2.{t} [{address}+{offset}], {{{value}, {}}};", results[other]);
                    (stored[number], stored[other]) = (true, true);
                }
            }
            for (number, &value) in results.iter().enumerate().filter(|(number, _)| !stored[*number]) {
                let (address, offset) = (self.bases[number], distance * self.form.operands[number].element);
                op!(e, "{guard}st.global.{t} [{address}+{offset}], {value};");
            }
        }
    }
}
