//! The placement of a kernel of several steps over a tensor, and the choice of its number of steps.

use std::sync::Arc;

use primitives_host::Result;

use super::stepped::Stepped;
use crate::expr::gpu::{self, StepsLaunch};
use crate::expr::graph::{Math, Op, View};
use crate::expr::layout::shape::{Layout, MAX_RANK, Shape};
use crate::expr::program::{Lowered, Program, What};
use crate::expr::ptx::PARAM_BYTES;
use crate::expr::ptx::steps::{LANES, Other, Outside, StepsForm, StepsParam, THREADS};

/// The values that are chosen for a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) width: usize,
    pub(crate) steps: usize,
    /// The number of rows of a chunk, or 0 for the number that suits.
    pub(crate) rows: usize,
}

/// The kernels of an assignment of steps.
pub(crate) struct Tiling {
    /// The form of the kernels. It has no number of steps yet, and no layouts of the operands.
    kernel: StepsForm,
    choice: Choice,
    multiprocessors: usize,
    /// The tensor's axes that are neither the axis of columns nor the axis of rows.
    batch: Vec<usize>,
}

/// A kernel of several steps from one memory to another.
pub(crate) struct StepsTile {
    pub(super) form: StepsForm,
    pub(super) lowered: Arc<Lowered>,
    /// The tensors that are read: the source, then the other inputs.
    pub(super) reads: Vec<Arc<View>>,
    /// The parameters, one word each, without the control.
    pub(super) words: Vec<u64>,
    pub(super) blocks: usize,
}

/// Axes are shorter than this, because twice an index has to fit in 32 bits.
const LONGEST: usize = 1 << 30;
/// There are fewer warps than this, because their numbers have 32 bits.
const MOST_WARPS: f64 = (1u64 << 31) as f64;
/// The numbers of rows that a chunk may have.
const CHUNKS: [usize; 15] = [16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096];

impl Tiling {
    /// Returns the kernels that take the least time. Returns `None` if passes of one step take less time, or if no kernel is possible.
    pub(super) fn new(lowered: &Lowered, stepped: &Stepped, count: usize, multiprocessors: usize) -> Option<Self> {
        let (mut kernel, batch) = kernel_form(lowered, stepped)?;
        let costs = Costs::new(&lowered.program, &kernel, &stepped.state.layout.shape);
        let mut best = costs.single(count);
        let mut chosen = None;
        for width in [2, 4, 8, 16] {
            for steps in 2..=count.min(16) {
                (kernel.width, kernel.steps) = (width, steps);
                let Some(cost) = costs.of(&kernel, count) else { break };
                if cost < best {
                    (best, chosen) = (cost, Some(Choice { width, steps, rows: 0 }));
                }
            }
        }
        chosen.map(|choice| Self { kernel, choice, multiprocessors, batch })
    }

    /// Returns the kernels that the caller chooses, if they are possible.
    #[cfg(test)]
    pub(super) fn chosen(lowered: &Lowered, stepped: &Stepped, choice: Choice) -> Option<Self> {
        let (mut kernel, batch) = kernel_form(lowered, stepped)?;
        (kernel.width, kernel.steps) = (choice.width, choice.steps);
        kernel.columns()?;
        Some(Self { kernel, choice, multiprocessors: 1, batch })
    }

    /// Returns the number of steps of each pass. These numbers differ by one at most.
    pub(super) fn steps_each(&self, count: usize) -> Vec<usize> {
        let passes = count.div_ceil(self.choice.steps);
        (0..passes).map(|pass| count / passes + usize::from(pass < count % passes)).collect()
    }
}

/// Returns the form of a program's kernel, without its size and the layouts of the operands. Also returns the axes that are neither the
/// axis of columns nor the axis of rows. Returns `None` if the program has no such kernel.
fn kernel_form(lowered: &Lowered, stepped: &Stepped) -> Option<(StepsForm, Vec<usize>)> {
    let program = &lowered.program;
    let layout = &stepped.state.layout;
    let rank = layout.shape.rank();
    let plain = program.code.iter().all(|one| match one.what {
        What::Load(_) | What::Neighbour(..) | What::Scalar(_) | What::Constant(_) => true,
        What::Op(op) => is_plain(op) && !op.divides_integers(one.dtype),
        _ => false,
    });
    if !plain || rank == 0 || layout.shape.iter().any(|&extent| extent >= LONGEST) {
        return None;
    }
    let mut reaches = [0usize; MAX_RANK];
    for shift in &program.shifts {
        for (reach, by) in reaches.iter_mut().zip(shift.by) {
            *reach = (*reach).max(by.unsigned_abs());
        }
    }
    let outside = match (stepped.frame, &program.shifts[..]) {
        (Some(frame), _) => {
            for (reach, (&before, &after)) in reaches.iter_mut().zip(frame.before.iter().zip(&frame.after)) {
                *reach = (*reach).max(before).max(after);
            }
            // The axes are not known yet.
            Some(frame)
        }
        (None, shifts) if shifts.iter().any(|shift| shift.rule != shifts[0].rule) => return None,
        _ => None,
    };
    let along: Vec<usize> = (0..rank).filter(|&k| reaches[k] > 0).collect();
    let axes = match along[..] {
        [] | [0] => [0, 1],
        [rows] | [0, rows] => [0, rows],
        _ => return None,
    };
    let outside = match (outside, program.shifts.first()) {
        (Some(frame), _) => {
            let of = |frame: [usize; MAX_RANK]| axes.map(|axis| frame[axis]);
            Outside::Frame { before: of(frame.before), after: of(frame.after) }
        }
        (None, Some(shift)) => Outside::Rule(shift.rule),
        (None, None) => Outside::Nothing,
    };
    let state = lowered.inputs.iter().position(|view| view.same_as(&stepped.state)).map(|input| input as u32);
    let batch: Vec<usize> = (0..rank).filter(|&axis| !axes.contains(&(rank - 1 - axis))).collect();
    let form = StepsForm {
        steps: 1,
        width: 1,
        reach: axes.map(|axis| reaches[axis]),
        outside,
        axes,
        batch: batch.len(),
        dtype: stepped.state.dtype,
        state,
        vector: false,
        others: vec![Other::Strided; program.inputs.len() - usize::from(state.is_some())],
    };
    // Each parameter takes one word at most.
    (8 * form.words(program).len() <= PARAM_BYTES).then_some((form, batch))
}

/// Returns whether an operator takes a few instructions, and no call.
fn is_plain(op: Op) -> bool {
    match op {
        Op::Math(math) => {
            matches!(math, Math::Sqrt | Math::Floor | Math::Ceil | Math::Trunc | Math::Round | Math::RoundTiesEven)
        }
        op => !matches!(op, Op::Pow | Op::Atan2 | Op::Hypot | Op::Rem | Op::FloorDiv | Op::FloorRem),
    }
}

/// The costs of kernels. The unit is the time that a GPU takes for one instruction of one lane.
struct Costs {
    elements: f64,
    /// The number of columns, and the number of rows.
    extents: [usize; 2],
    /// The bytes of the source and the target for each element, and the bytes of the other inputs.
    moved: f64,
    others: f64,
    arithmetic: f64,
    instructions: usize,
}

impl Costs {
    /// The cost of a byte that is read or written. An H100 issues 28.7 T instructions of lanes in a second, and moves 3 TB.
    const BYTE: f64 = 9.5;
    /// The cost of a launch until its blocks run: 3 microseconds.
    const LAUNCH: f64 = 8.6e7;
    /// The most registers for the rows of all steps.
    const REGISTERS: usize = 116;
    /// The most instructions of a loop's body. It has to stay in the cache.
    const INSTRUCTIONS: usize = 6000;
    /// The number of rows of a chunk for the cost of the halo. [`chunk`] returns the real number.
    const ROWS: usize = 256;

    fn new(program: &Program, form: &StepsForm, shape: &Shape) -> Self {
        let size = form.dtype.size();
        let ops = program.code.iter().filter(|one| matches!(one.what, What::Op(_))).count();
        let shuffles = program.shifts.iter().filter(|shift| shift.by[form.axes[0]] != 0).count();
        // Values of 64 bits take two instructions each.
        let words = size.div_ceil(4);
        let inputs = program.inputs.iter().enumerate().filter(|&(input, _)| Some(input as u32) != form.state);
        Self {
            elements: shape.elements().unwrap_or(usize::MAX) as f64,
            extents: form.axes.map(|k| extent(shape, k)),
            moved: 2.0 * size as f64,
            others: inputs.map(|(_, input)| input.dtype.size()).sum::<usize>() as f64,
            arithmetic: (words * (ops + shuffles + 1)) as f64,
            instructions: ops + program.shifts.len() + 1,
        }
    }

    /// Returns the cost of passes of one step.
    fn single(&self, count: usize) -> f64 {
        let each = (self.moved + self.others) * Self::BYTE + self.arithmetic;
        count as f64 * (self.elements * each + Self::LAUNCH)
    }

    /// Returns the cost of kernels with the number of steps in their form. Returns `None` if there is no such kernel.
    fn of(&self, form: &StepsForm, count: usize) -> Option<f64> {
        let columns = form.columns()?;
        let words = form.width * form.dtype.size().div_ceil(4);
        let registers = (form.steps * form.kept() + form.phases()) * words;
        let instructions = form.steps * form.width * form.phases() * self.instructions;
        if registers > Self::REGISTERS || instructions > Self::INSTRUCTIONS || form.width * form.dtype.size() > 32 {
            return None;
        }
        let strips = self.extents[0].div_ceil(columns);
        // A batch has many pairs of axes.
        let pairs = self.elements / (self.extents[0] * self.extents[1]) as f64;
        if pairs * (strips * self.extents[1].div_ceil(CHUNKS[0])) as f64 >= MOST_WARPS {
            return None;
        }
        let lanes = (strips * LANES * form.width) as f64 / self.extents[0] as f64;
        let rows = self.extents[1].clamp(1, Self::ROWS) as f64;
        let halo = 1.0 + (2 * form.steps * form.reach[1]) as f64 / rows;
        let steps = form.steps as f64;
        let each = self.moved * Self::BYTE + steps * (0.5 * self.others * Self::BYTE + self.arithmetic);
        let passes = count.div_ceil(form.steps) as f64;
        Some(passes * (self.elements * lanes * halo * each + Self::LAUNCH))
    }
}

/// Returns the extent along an axis that is counted from the innermost axis. Returns 1 if there is no such axis.
fn extent(shape: &[usize], from_innermost: usize) -> usize {
    shape.len().checked_sub(from_innermost + 1).map_or(1, |axis| shape[axis])
}

/// Returns the number of rows of a chunk for which all chunks of all strips together take the least time.
fn chunk(rows: usize, halo: usize, strips: usize, multiprocessors: usize) -> usize {
    /// The number of warps of a multiprocessor at a time.
    const WARPS: usize = 12;
    let slots = (multiprocessors * WARPS).max(1);
    let time = |chunk: usize| {
        let warps = strips.saturating_mul(rows.div_ceil(chunk));
        warps.div_ceil(slots).saturating_mul(chunk.min(rows) + halo)
    };
    CHUNKS.into_iter().min_by_key(|&chunk| time(chunk)).expect("there are some")
}

impl StepsTile {
    /// Makes a kernel of `steps` steps from a source to a target. Both have the shape of the stepped tensor.
    pub(super) fn new(
        lowered: &Arc<Lowered>,
        kernel: &Tiling,
        stepped: &Stepped,
        steps: usize,
        [source, target]: [&Arc<View>; 2],
    ) -> Self {
        let mut form = StepsForm { steps, width: kernel.choice.width, ..kernel.kernel.clone() };
        let shape = &source.layout.shape;
        let rank = shape.rank();
        // The other inputs are at the places that are computed.
        let inner = stepped.inner(source);
        let inputs = lowered.program.inputs.iter().zip(&lowered.inputs).enumerate();
        let others: Vec<Arc<View>> =
            inputs.filter(|(at, _)| Some(*at as u32) != form.state).map(|(_, (_, view))| view.clone()).collect();
        let mut operands = vec![Lying::new(source, &source.layout), Lying::new(target, &target.layout)];
        for view in &others {
            let layout = view.layout.broadcast_to(&inner.layout.shape).expect("it was checked to");
            let mut lying = Lying::new(view, &layout);
            if let Outside::Frame { before, .. } = form.outside {
                for (axis, before) in form.axes.into_iter().zip(before) {
                    let by = lying.stride(rank, axis).wrapping_mul(before as isize);
                    lying.address = lying.address.wrapping_sub(by as u64);
                }
            }
            operands.push(lying);
        }
        let extents = form.axes.map(|k| extent(shape, k));
        let width = form.width;
        let in_vectors = |lying: &Lying| {
            let bytes = (width * lying.size).min(16);
            let outer = (0..rank).filter(|&axis| axis + 1 != rank && shape[axis] > 1);
            width > 1
                && extents[0].is_multiple_of(width)
                && lying.stride(rank, 0) == lying.size as isize
                && lying.address.is_multiple_of(bytes as u64)
                && outer.map(|axis| lying.strides[axis]).all(|stride| stride % bytes as isize == 0)
        };
        form.vector = operands[..2].iter().all(in_vectors);
        form.others = operands[2..]
            .iter()
            .map(|lying| match lying {
                lying if lying.strides[..rank].iter().all(|&stride| stride == 0) => Other::Single,
                lying if in_vectors(lying) => Other::Row,
                _ => Other::Strided,
            })
            .collect();

        let batch: usize = kernel.batch.iter().map(|&axis| shape[axis]).product();
        let strips = extents[0].div_ceil(form.columns().expect("some columns are no halo"));
        let rows = match kernel.choice.rows {
            0 => chunk(extents[1], 2 * steps * form.reach[1], strips * batch, kernel.multiprocessors),
            rows => rows,
        };
        let chunks = extents[1].div_ceil(rows);
        let warps = strips * batch * chunks;
        let axis_of = |axis: usize| match axis {
            0 | 1 => form.axes[axis],
            axis => rank - 1 - kernel.batch[axis - 2],
        };
        let words = form.words(&lowered.program).into_iter().filter_map(|word| {
            Some(match word {
                StepsParam::Address(operand) => operands[operand].address,
                StepsParam::Stride(operand, axis) => operands[operand].stride(rank, axis_of(axis)) as u64,
                StepsParam::Extent(axis) => extent(shape, axis_of(axis)) as u64,
                StepsParam::Strips => strips as u64,
                StepsParam::Chunks => chunks as u64,
                StepsParam::Rows => rows as u64,
                StepsParam::Warps => warps as u64,
                StepsParam::Scalar(scalar) => lowered.scalars[scalar],
                StepsParam::Control => return None,
            })
        });
        let words = words.collect();
        let reads = std::iter::once(source.clone()).chain(others).collect();
        Self { form, lowered: lowered.clone(), reads, words, blocks: warps.div_ceil(THREADS / LANES) }
    }

    pub(super) fn launch(&self, target: &Arc<View>, name: &str) -> Result<()> {
        let Self { form, lowered, reads, words, blocks } = self;
        gpu::launch_steps(StepsLaunch { program: &lowered.program, form, target, reads, words, blocks: *blocks }, name)
    }

    pub(super) fn text(&self, arch: u32) -> Result<String> {
        gpu::steps_text(&self.lowered.program, &self.form, arch)
    }
}

/// The address and the strides of an operand.
struct Lying {
    address: u64,
    /// The strides in bytes along the tensor's axes. A stride is 0 along an axis with a single index.
    strides: [isize; MAX_RANK],
    size: usize,
}

impl Lying {
    fn new(view: &View, layout: &Layout) -> Self {
        let size = view.dtype.size();
        let mut strides = layout.strides;
        for (axis, stride) in strides.iter_mut().enumerate() {
            let several = layout.shape.get(axis).is_some_and(|&extent| extent > 1);
            *stride = if several { stride.wrapping_mul(size as isize) } else { 0 };
        }
        Self { address: view.storage.address() + (layout.offset * size) as u64, strides, size }
    }

    /// Returns the stride along an axis that is counted from the innermost axis.
    fn stride(&self, rank: usize, from_innermost: usize) -> isize {
        rank.checked_sub(from_innermost + 1).map_or(0, |axis| self.strides[axis])
    }
}
