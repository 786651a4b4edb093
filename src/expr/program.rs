//! Turns a graph into a program: a list of instructions, each of which is computed once.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;

use primitives_host::ExpressionErrorKind;

use super::call::FunctionRef;
use super::dtype::DType;
use super::graph::{Distribution, Kind, MAX_ARGUMENTS, Node, Op, View};
use super::layout::nest::Axes;
use super::layout::shape::{Layout, MAX_RANK, Shape};
use super::neighbours::neighbour::{Shift, Spare};
use super::neighbours::weighted::Taps;

/// A program. It computes the elements of the outputs from the elements of the inputs. A kernel is identified by its program and the
/// layouts of its operands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Program {
    pub(crate) code: Vec<Instruction>,
    pub(crate) inputs: Vec<Input>,
    /// The types of the scalars.
    pub(crate) scalars: Vec<DType>,
    /// The distances from the element that is computed to its neighbours.
    pub(crate) shifts: Vec<Shift>,
    /// The weights of weighted sums.
    pub(crate) taps: Vec<Arc<Taps>>,
    /// The values that are results, in the order of the roots.
    pub(crate) results: Vec<u32>,
}

/// An input of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Input {
    pub(crate) dtype: DType,
    /// Whether it is read at computed indices. Otherwise, it is read at the results' index.
    pub(crate) gathered: bool,
    /// Whether it is also read at a distance from the results' index.
    pub(crate) shifted: bool,
    /// The elements around the view in its memory.
    pub(crate) spare: Option<Spare>,
}

/// Computes one value. Arguments are the numbers of earlier values, unless the instruction says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Instruction {
    pub(crate) what: What,
    pub(crate) dtype: DType,
    pub(crate) arguments: [u32; MAX_ARGUMENTS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum What {
    /// The element of this input at the results' index.
    Load(u32),
    /// The element of this input at the index that the argument gives. The input has one axis and is not broadcast.
    Gather(u32),
    /// The element of this input at a distance: the number of the shift.
    Neighbour(u32, u32),
    /// A weighted sum of elements of this input: the number of its weights.
    Weighted(u32, u32),
    /// This scalar.
    Scalar(u32),
    /// This value.
    Constant(u64),
    /// The number of the element, or its index along an axis of the results' shape.
    Index(Option<usize>),
    Op(Op),
    /// A random number of a distribution. The arguments are the seed and the element's number.
    Random(Distribution),
    Call(FunctionRef),
}

impl Instruction {
    /// Returns the numbers of the values that it takes.
    pub(crate) fn takes(&self) -> &[u32] {
        let count = match self.what {
            What::Load(_) | What::Neighbour(..) | What::Weighted(..) => 0,
            What::Scalar(_) | What::Constant(_) | What::Index(_) => 0,
            What::Gather(_) => 1,
            What::Random(_) => 2,
            What::Call(function) => function.0.code().params().len(),
            What::Op(op) => op.arity(),
        };
        &self.arguments[..count]
    }
}

impl Op {
    /// Returns whether it divides integers. Then a division by zero is a fault.
    pub(crate) fn divides_integers(self, dtype: DType) -> bool {
        self.divides() && dtype.is_integer()
    }

    pub(crate) fn divides(self) -> bool {
        matches!(self, Self::Div | Self::Rem | Self::FloorDiv | Self::FloorRem)
    }

    pub(crate) fn arity(self) -> usize {
        match self {
            Self::Neg | Self::Not | Self::Abs | Self::Recip | Self::Cast | Self::IsNan | Self::Math(_) => 1,
            Self::Select | Self::MulAdd => 3,
            _ => 2,
        }
    }
}

impl Program {
    /// Returns the indices that the program uses. In a nest, they are operands without memory, after all other operands.
    pub(crate) fn indices(&self) -> impl Iterator<Item = Option<usize>> {
        self.code.iter().filter_map(|instruction| match instruction.what {
            What::Index(axis) => Some(axis),
            _ => None,
        })
    }

    /// Returns the layouts of the indices in the results' shape. They describe elements whose offsets are the indices' values.
    pub(crate) fn index_layouts(&self, shape: &Shape) -> impl Iterator<Item = Layout> {
        let countable = shape.elements().is_some();
        self.indices().filter(move |_| countable).map(|axis| {
            let mut layout = Layout::contiguous(*shape);
            if let Some(axis) = axis {
                layout.strides = [0; MAX_RANK];
                layout.strides[axis] = 1;
            }
            layout
        })
    }

    /// Returns the axes along which the program reads neighbours.
    pub(crate) fn shifted(&self) -> Axes {
        self.shifts.iter().fold(Axes::default(), |all, shift| Axes(all.0 | shift.axes().0))
    }

    /// Returns the parts of a view that the program reads, if the view is the input with this number. It is the whole view, unless the
    /// program reads only neighbours or weighted sums of neighbours. Which elements a gather reads is known only when it runs.
    pub(crate) fn parts(&self, input: usize, view: &Layout) -> Vec<Layout> {
        let mut parts = Vec::new();
        let spare = self.inputs[input].spare;
        for (instruction, _) in self.code.iter().zip(self.needed()).filter(|(_, needed)| *needed) {
            match instruction.what {
                What::Load(of) if of as usize == input => return vec![*view],
                What::Neighbour(of, shift) if of as usize == input => {
                    parts.push(self.shifts[shift as usize].part_of(view, spare));
                }
                What::Weighted(of, number) if of as usize == input => {
                    let taps = &self.taps[number as usize];
                    let last = taps.weights.len() - 1;
                    if let Some(spare) = spare.filter(|spare| spare.axis == 0) {
                        return vec![spare.around(view)];
                    }
                    if (taps.first..=taps.first + last as isize).contains(&0) {
                        return vec![*view];
                    }
                    // All neighbours are on one side. Together, the nearest and the farthest neighbour read everything that the neighbours
                    // between them read.
                    parts.extend([0, last].map(|number| taps.shift(number).part_of(view, spare)));
                }
                _ => {}
            }
        }
        parts
    }

    /// Returns which values the results depend on. All other values are there only for their shapes.
    fn needed(&self) -> Vec<bool> {
        self.needed_by(&self.results)
    }

    /// Returns these values and all values that they depend on.
    pub(crate) fn needed_by(&self, values: &[u32]) -> Vec<bool> {
        let mut needed = vec![false; self.code.len()];
        for &value in values {
            needed[value as usize] = true;
        }
        for (at, instruction) in self.code.iter().enumerate().rev() {
            if needed[at] {
                instruction.takes().iter().for_each(|&value| needed[value as usize] = true);
            }
        }
        needed
    }

    /// Returns whether all its instructions are short.
    pub(crate) fn is_light(&self) -> bool {
        self.code.iter().all(|one| match one.what {
            What::Load(_) | What::Neighbour(..) | What::Scalar(_) | What::Constant(_) => true,
            What::Op(op) => !matches!(op, Op::Math(_) | Op::Pow | Op::Atan2 | Op::Hypot) && !op.divides(),
            _ => false,
        })
    }

    pub(crate) fn divides_integers(&self) -> bool {
        let divides = |one: &Instruction| matches!(one.what, What::Op(op) if op.divides_integers(one.dtype));
        self.code.iter().any(divides)
    }
}

/// A program with its inputs and scalars.
pub(crate) struct Lowered {
    pub(crate) program: Program,
    pub(crate) inputs: Vec<Arc<View>>,
    /// The operands that are given later. If there are any, all inputs are given later.
    pub(crate) parameters: Vec<u32>,
    pub(crate) scalars: Vec<u64>,
    /// The mistake in the expression, if there is one.
    pub(crate) wrong: Option<(ExpressionErrorKind, Arc<str>)>,
}

impl Lowered {
    /// Returns the inputs that are not gathered from.
    pub(crate) fn loaded(&self) -> impl Iterator<Item = &Arc<View>> {
        let inputs = self.program.inputs.iter().zip(&self.inputs);
        inputs.filter(|(input, _)| !input.gathered).map(|(_, view)| view)
    }
}

/// Returns the program that computes `roots`.
pub(crate) fn lower<'a>(roots: impl IntoIterator<Item = &'a Arc<Node>>) -> Lowered {
    lower_numbers(roots, false)
}

/// Returns the program that computes `roots` with scalars as constants.
pub(crate) fn lower_fixed<'a>(roots: impl IntoIterator<Item = &'a Arc<Node>>) -> Lowered {
    lower_numbers(roots, true)
}

fn lower_numbers<'a>(roots: impl IntoIterator<Item = &'a Arc<Node>>, fixed: bool) -> Lowered {
    let mut lowering = Lowering {
        fixed,
        done: FastMap::default(),
        values: FastMap::default(),
        lowered: Lowered {
            program: Program::default(),
            inputs: Vec::new(),
            parameters: Vec::new(),
            scalars: Vec::new(),
            wrong: None,
        },
    };
    for root in roots {
        let result = lowering.value(root);
        lowering.lowered.program.results.push(result);
    }
    lowering.lowered
}

struct Lowering {
    /// Whether scalars are constants.
    fixed: bool,
    /// The values of nodes, by address.
    done: FastMap<*const Node, u32>,
    /// The values of instructions.
    values: FastMap<Instruction, u32>,
    lowered: Lowered,
}

impl Lowering {
    /// Returns the value of a node. The values of its arguments come first. It works without recursion, because graphs may be deep.
    fn value(&mut self, root: &Arc<Node>) -> u32 {
        let mut open: Vec<&Arc<Node>> = vec![root];
        while let Some(&node) = open.last() {
            if self.done.contains_key(&Arc::as_ptr(node)) {
                open.pop();
                continue;
            }
            let before = open.len();
            open.extend(node.arguments().rev().filter(|argument| !self.done.contains_key(&Arc::as_ptr(argument))));
            if open.len() == before {
                let value = self.instruction(node);
                self.done.insert(Arc::as_ptr(node), value);
                open.pop();
            }
        }
        self.done[&Arc::as_ptr(root)]
    }

    fn instruction(&mut self, node: &Arc<Node>) -> u32 {
        let mut arguments = [0; MAX_ARGUMENTS];
        for (number, argument) in arguments.iter_mut().zip(node.arguments()) {
            *number = self.done[&Arc::as_ptr(argument)];
        }
        let what = match &node.kind {
            Kind::View(view) => What::Load(self.input(view, false)),
            Kind::Parameter(number) => What::Load(self.parameter(*number, node.dtype)),
            Kind::Gather(view) => What::Gather(self.input(view, true)),
            Kind::Scalar(word) if self.fixed => What::Constant(*word),
            Kind::Scalar(word) => {
                // There is a scalar for each node, and not for each value, because the kernel must not depend on whether two values are
                // equal.
                let Lowered { program, scalars, .. } = &mut self.lowered;
                program.scalars.push(node.dtype);
                scalars.push(*word);
                What::Scalar(scalars.len() as u32 - 1)
            }
            Kind::Constant(word) => What::Constant(*word),
            Kind::Index(axis) => What::Index(*axis),
            Kind::Op(op) => What::Op(*op),
            Kind::Random(distribution) => What::Random(*distribution),
            Kind::Call(function) => What::Call(*function),
            Kind::Neighbour(view, shift) => {
                let (input, shift) = self.shifted(view, **shift);
                What::Neighbour(input, shift)
            }
            Kind::Weighted(view, taps) => {
                // This is a neighbour that is not the element itself. The others are along the same axis.
                let (input, _) = self.shifted(view, taps.shift(usize::from(taps.first == 0)));
                let known = &mut self.lowered.program.taps;
                let number = known.iter().position(|known| known == taps).unwrap_or_else(|| {
                    known.push(taps.clone());
                    known.len() - 1
                });
                What::Weighted(input, number as u32)
            }
            Kind::Split(_) | Kind::SplitBeside(..) | Kind::SplitGather(_) => {
                let reason = "a tensor that is split over devices is read for a split one alone: assign to one, or collect it by \
                              `to_tensor` first";
                self.lowered.wrong.get_or_insert((ExpressionErrorKind::BadSplit, reason.into()));
                What::Constant(0)
            }
            Kind::Steps(_) => {
                let reason = "steps are an assignment of their own: assign them to a tensor first";
                self.lowered.wrong.get_or_insert((ExpressionErrorKind::BadStencil, reason.into()));
                What::Constant(0)
            }
            Kind::Wrong(kind, reason) => {
                self.lowered.wrong.get_or_insert((*kind, reason.clone()));
                What::Constant(0)
            }
        };
        let instruction = Instruction { what, dtype: node.dtype, arguments };
        let code = &mut self.lowered.program.code;
        *self.values.entry(instruction).or_insert_with(|| {
            code.push(instruction);
            code.len() as u32 - 1
        })
    }

    /// Returns the numbers of an input and of the shift at which it is read.
    fn shifted(&mut self, view: &Arc<View>, shift: Shift) -> (u32, u32) {
        let input = self.input(view, false);
        let Program { inputs, shifts, .. } = &mut self.lowered.program;
        inputs[input as usize].shifted = true;
        let known = shifts.iter().position(|known| *known == shift);
        let shift = known.unwrap_or_else(|| {
            shifts.push(shift);
            shifts.len() - 1
        });
        (input, shift as u32)
    }

    fn parameter(&mut self, number: u32, dtype: DType) -> u32 {
        let Lowered { program, parameters, .. } = &mut self.lowered;
        let at = parameters.iter().position(|&known| known == number).unwrap_or_else(|| {
            program.inputs.push(Input { dtype, gathered: false, shifted: false, spare: None });
            parameters.push(number);
            parameters.len() - 1
        });
        at as u32
    }

    fn input(&mut self, view: &Arc<View>, gathered: bool) -> u32 {
        let Lowered { program, inputs, .. } = &mut self.lowered;
        let known = (0..inputs.len()).find(|&at| program.inputs[at].gathered == gathered && inputs[at].same_as(view));
        let at = known.unwrap_or_else(|| {
            program.inputs.push(Input { dtype: view.dtype, gathered, shifted: false, spare: None });
            inputs.push(view.clone());
            inputs.len() - 1
        });
        if let Some(spare) = view.spare {
            let known = &mut program.inputs[at].spare;
            *known = Some(known.map_or(spare, |known| known.with(spare)));
        }
        at as u32
    }
}

pub(crate) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FastHasher>>;

/// A hash that takes few instructions, for keys that no attacker chooses.
#[derive(Default)]
pub(crate) struct FastHasher(u64);

impl FastHasher {
    #[inline]
    fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for FastHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
    }
    fn write_u8(&mut self, value: u8) {
        self.word(value.into());
    }
    fn write_u32(&mut self, value: u32) {
        self.word(value.into());
    }
    fn write_u64(&mut self, value: u64) {
        self.word(value);
    }
    fn write_usize(&mut self, value: usize) {
        self.word(value as u64);
    }
    fn write_isize(&mut self, value: isize) {
        self.word(value as u64);
    }
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}
