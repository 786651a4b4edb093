//! Programs on the CPU: instruction by instruction over chunks of elements that stay in the caches, on all cores.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use primitives_gpu::element::{
    Arithmetic, Bits as _, ConvertTo, Divide, Float, Integer, Magnitude, Ordered, Quotient, Real,
};
use primitives_gpu::functor::UnaryFn;
use primitives_gpu::simt::{Fault, FaultKind};
use primitives_gpu::thread::{NormalF32, NormalF64, Philox, UniformF32, UniformF64};
use primitives_host::Diagnosis;

use super::dtype::{DType, with_type};
use super::graph::{Distribution, Math, Op};
use super::neighbour::{Shift, copy_neighbours};
use super::nest::Nest;
use super::parallel::pieces;
use super::program::{Program, What};

/// Elements of a chunk: a few registers of that many fit in a first-level cache, and while one chunk is computed the processor
/// fetches the next ahead, which it does for about a kilobyte of each operand.
pub(crate) const CHUNK: usize = 256;

/// Chunks that a core takes at once.
const CHUNKS_EACH: usize = 64;

/// A program with its operands: first those that are written, then those that are read.
pub(crate) struct Job {
    pub(crate) program: Program,
    /// Of the results, then of the inputs that are not gathered.
    pub(crate) nest: Nest,
    pub(crate) results: Vec<Memory>,
    pub(crate) inputs: Vec<Memory>,
    pub(crate) scalars: Vec<u64>,
}

/// Where an operand's elements are.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    /// Of the memory that offsets count in.
    pub(crate) address: u64,
    /// Bytes of an element.
    pub(crate) size: usize,
    /// The operand in the nest; of a gathered input (offset, stride, extent) instead.
    pub(crate) lie: Placement,
}

#[derive(Clone, Copy)]
pub(crate) enum Placement {
    Nested(usize),
    Gathered { offset: usize, stride: isize, extent: usize },
}

impl Memory {
    pub(super) fn at(&self, element: usize) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address as usize + element * self.size)
    }
}

/// Computes elements of the arguments: `None`, or what is wrong with them.
pub(super) type Kernel = Box<dyn Fn(&[*const u8], *mut u8, usize) -> Option<Diagnosis> + Send + Sync>;

/// A value of up to eight bytes, first byte first, aligned for every type.
#[derive(Clone, Copy, PartialEq)]
#[repr(align(8))]
struct Word([u8; 8]);

/// Registers that hold one value all the time; more than that are filled for each chunk.
const RESIDENT: usize = 16;

/// Where a value is while a chunk is computed.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Register(usize),
    /// One value for all elements.
    Uniform(usize),
    /// In the memory of an operand that lies in a row.
    Input(usize),
    Result(usize),
}

enum Step {
    Compute {
        kernel: Kernel,
        takes: Vec<Place>,
        to: Place,
    },
    /// One value for all elements, of so many bytes.
    Fill {
        uniform: usize,
        size: usize,
        to: usize,
    },
    /// What is wrong whatever the elements are.
    Fail(Diagnosis),
    /// Elements of an input that do not lie in a row.
    Pack {
        input: usize,
        to: usize,
    },
    /// Elements of an input beside the places.
    Neighbour {
        input: usize,
        /// Along the axes of the nest.
        shift: Shift,
        to: usize,
    },
    /// Weighted sums of an input's elements around the places.
    Weighted {
        input: usize,
        taps: usize,
        kernels: Box<WeightKernels>,
        /// Of the sums, of those before, of the elements, of these in the type of the sum, and of weights or products.
        registers: [usize; 5],
    },
    /// The places of an operand without memory.
    Index {
        operand: usize,
        to: usize,
    },
    Gather {
        input: usize,
        index: Place,
        dtype: DType,
        to: Place,
    },
    Random {
        distribution: Distribution,
        dtype: DType,
        seed: Place,
        element: Place,
        to: Place,
    },
    /// Elements of a result that does not lie in a row, or whose memory is read too.
    Unpack {
        from: Place,
        result: usize,
    },
}

/// What weighted sums are computed by.
struct WeightKernels {
    /// To the type of the sum, if that is another.
    cast: Option<Kernel>,
    /// By one weight.
    multiply: Kernel,
    add: Kernel,
    /// In place of both, of weights in a register.
    multiply_add: Option<Kernel>,
    /// Bytes of a sum.
    size: usize,
}

impl WeightKernels {
    fn new(from: DType, to: DType, contracted: bool) -> Self {
        Self {
            cast: (from != to).then(|| kernel(Op::Cast, from, to)),
            multiply: kernel_of(Op::Mul, to, to, [false, true]),
            add: kernel(Op::Add, to, to),
            multiply_add: contracted.then(|| kernel(Op::MulAdd, to, to)),
            size: to.size(),
        }
    }
}

/// A job in steps.
pub(super) struct Plan<'a> {
    job: &'a Job,
    steps: Vec<Step>,
    /// Values that are the same for all elements.
    uniforms: Vec<Word>,
    /// Registers that hold one of them all the time, with the size of an element.
    resident: Vec<(usize, usize, usize)>,
    registers: usize,
    /// Where the results' values are.
    values: Vec<Place>,
}

impl Job {
    /// Computes all elements.
    pub(crate) fn run(&self) -> Result<(), Diagnosis> {
        let plan = self.plan();
        let elements = self.nest.elements;
        let piece = CHUNK * CHUNKS_EACH;
        if elements <= piece {
            return plan.pieces(&mut plan.registers(), 0..elements);
        }
        pieces(
            elements.div_ceil(piece),
            || plan.registers(),
            |registers, i| plan.pieces(registers, i * piece..((i + 1) * piece).min(elements)),
        )
    }

    fn lie(&self, memory: &Memory) -> usize {
        match memory.lie {
            Placement::Nested(operand) => operand,
            Placement::Gathered { .. } => unreachable!("only inputs that are not gathered are in the nest"),
        }
    }

    pub(super) fn plan(&self) -> Plan<'_> {
        let code = &self.program.code;
        let mut last_use = vec![0; code.len()];
        for (at, instruction) in code.iter().enumerate() {
            for &value in instruction.takes() {
                last_use[value as usize] = at;
            }
        }
        for &result in &self.program.results {
            last_use[result as usize] = code.len();
        }
        let mut plan = Plan {
            job: self,
            steps: Vec::new(),
            uniforms: Vec::new(),
            resident: Vec::new(),
            registers: 0,
            values: Vec::new(),
        };
        let operands = self.nest.operands.len();
        let mut indices = operands - self.program.indices().count()..operands;
        let mut places: Vec<Place> = Vec::with_capacity(code.len());
        let mut free: Vec<usize> = Vec::new();
        for (at, instruction) in code.iter().enumerate() {
            let mut takes: Vec<Place> = instruction.takes().iter().map(|&value| places[value as usize]).collect();
            let dtype_of = |argument: usize| code[instruction.arguments[argument] as usize].dtype;
            let place = match instruction.what {
                What::Load(input) => {
                    let memory = &self.inputs[input as usize];
                    let lie = self.lie(memory);
                    if self.nest.is_linear(lie) {
                        Place::Input(input as usize)
                    } else if self.nest.is_single(lie) {
                        // SAFETY: an element of the input, which is read only while this runs or written after.
                        let word = unsafe { read_word(memory.at(self.nest.operands[lie].offset), memory.size) };
                        plan.uniform(word.to_le_bytes())
                    } else {
                        let to = plan.register(&mut free);
                        plan.steps.push(Step::Pack { input: input as usize, to });
                        Place::Register(to)
                    }
                }
                What::Neighbour(input, shift) => {
                    let to = plan.register(&mut free);
                    let shift = self.program.shifts[shift as usize].along(&self.nest.apart);
                    plan.steps.push(Step::Neighbour { input: input as usize, shift, to });
                    Place::Register(to)
                }
                What::Weighted(input, taps) => {
                    let (input, taps) = (input as usize, taps as usize);
                    let registers = [0; 5].map(|_| plan.register(&mut free));
                    free.extend(&registers[1..]);
                    let (from, contracted) = (self.program.inputs[input].dtype, self.program.taps[taps].contracted);
                    let kernels = Box::new(WeightKernels::new(from, instruction.dtype, contracted));
                    plan.steps.push(Step::Weighted { input, taps, kernels, registers });
                    Place::Register(registers[0])
                }
                What::Scalar(scalar) => plan.uniform(self.scalars[scalar as usize].to_le_bytes()),
                What::Constant(word) => plan.uniform(word.to_le_bytes()),
                What::Index(_) => {
                    let to = plan.register(&mut free);
                    let operand = indices.next().expect("an operand for each");
                    plan.steps.push(Step::Index { operand, to });
                    Place::Register(to)
                }
                What::Gather(input) => {
                    plan.spread(&mut takes[0], dtype_of(0).size(), &mut free);
                    let to = plan.result(at, &mut free);
                    plan.steps.push(Step::Gather { input: input as usize, index: takes[0], dtype: dtype_of(0), to });
                    to
                }
                What::Random(distribution) => {
                    for (argument, place) in takes.iter_mut().enumerate() {
                        plan.spread(place, dtype_of(argument).size(), &mut free);
                    }
                    let to = plan.result(at, &mut free);
                    let (seed, element, dtype) = (takes[0], takes[1], instruction.dtype);
                    plan.steps.push(Step::Random { distribution, dtype, seed, element, to });
                    to
                }
                What::Call(function) => {
                    for (argument, place) in takes.iter_mut().enumerate() {
                        plan.spread(place, dtype_of(argument).size(), &mut free);
                    }
                    let to = plan.result(at, &mut free);
                    let kernel: Kernel = Box::new(move |arguments, to, len| {
                        // SAFETY: values of the function's types, of the chunk's length.
                        let run = || unsafe { function.0.run(arguments, to, len) };
                        let panic = catch_unwind(AssertUnwindSafe(run)).err()?;
                        let text = panic.downcast_ref::<&str>().map(|&text| text.into());
                        let message = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
                        Some(Diagnosis::Panicked { message })
                    });
                    plan.steps.push(Step::Compute { kernel, takes: takes.clone(), to });
                    to
                }
                What::Op(op) if takes.iter().all(|place| matches!(place, Place::Uniform(_))) => {
                    let mut arguments = [std::ptr::null(); super::graph::MAX_ARGUMENTS];
                    for (argument, place) in arguments.iter_mut().zip(&takes) {
                        if let Place::Uniform(uniform) = *place {
                            *argument = plan.uniforms[uniform].0.as_ptr();
                        }
                    }
                    let mut result = 0u64;
                    let to = std::ptr::from_mut(&mut result).cast();
                    match kernel(op, dtype_of(0), instruction.dtype)(&arguments, to, 1) {
                        None => plan.uniform(result.to_ne_bytes()),
                        Some(fault) => {
                            plan.steps.push(Step::Fail(fault));
                            plan.uniform([0; 8])
                        }
                    }
                }
                What::Op(op) => {
                    let mut uniform = [false; 2];
                    for (argument, place) in takes.iter_mut().enumerate() {
                        match (op.arity(), &place) {
                            (2, Place::Uniform(_)) => uniform[argument] = true,
                            _ => plan.spread(place, dtype_of(argument).size(), &mut free),
                        }
                    }
                    let to = plan.result(at, &mut free);
                    let kernel = kernel_of(op, dtype_of(0), instruction.dtype, uniform);
                    plan.steps.push(Step::Compute { kernel, takes: takes.clone(), to });
                    to
                }
            };
            places.push(place);
            // The registers of values that are used no more, and those that were filled for this alone.
            let dead = |&value: &u32| (last_use[value as usize] == at).then(|| places[value as usize]);
            let filled =
                takes.iter().zip(instruction.takes()).filter(|(take, value)| **take != places[**value as usize]);
            for place in instruction.takes().iter().filter_map(dead).chain(filled.map(|(take, _)| *take)) {
                if let Place::Register(register) = place
                    && !plan.resident.iter().any(|resident| resident.0 == register)
                    && !free.contains(&register)
                {
                    free.push(register);
                }
            }
        }
        let mut unpacks = Vec::new();
        for (result, &value) in self.program.results.iter().enumerate() {
            let mut from = places[value as usize];
            if result >= self.results.len() {
                plan.spread(&mut from, code[value as usize].dtype.size(), &mut free);
            } else if from != Place::Result(result) {
                // An element that another result overwrites is read before.
                if let Place::Input(input) = from
                    && (0..self.results.len())
                        .any(|other| other != result && self.results[other].address == self.inputs[input].address)
                {
                    let to = plan.register(&mut free);
                    plan.steps.push(Step::Pack { input, to });
                    from = Place::Register(to);
                }
                unpacks.push(Step::Unpack { from, result });
            }
            plan.values.push(from);
        }
        plan.steps.extend(unpacks);
        plan
    }

    /// Whether a result's elements lie in a row, in memory that no other operand has.
    fn is_direct(&self, result: usize) -> bool {
        let Some(memory) = self.results.get(result) else { return false };
        let others = self.results.iter().enumerate().filter(|(other, _)| *other != result).map(|(_, memory)| memory);
        self.nest.is_linear(self.lie(memory)) && others.chain(&self.inputs).all(|other| other.address != memory.address)
    }
}

impl Plan<'_> {
    /// A register that is free.
    fn register(&mut self, free: &mut Vec<usize>) -> usize {
        free.pop().unwrap_or_else(|| {
            self.registers += 1;
            self.registers - 1
        })
    }

    fn uniform(&mut self, bytes: [u8; 8]) -> Place {
        self.uniforms.push(Word(bytes));
        Place::Uniform(self.uniforms.len() - 1)
    }

    /// Where the value of an instruction goes: the last that reads or writes a result's memory writes it at once.
    fn result(&mut self, at: usize, free: &mut Vec<usize>) -> Place {
        let result = self.job.program.results.iter().position(|&value| value as usize == at);
        match result.filter(|&result| self.job.is_direct(result)) {
            Some(result) => Place::Result(result),
            None => Place::Register(self.register(free)),
        }
    }

    /// Puts a uniform value of elements of so many bytes into a register.
    fn spread(&mut self, place: &mut Place, size: usize, free: &mut Vec<usize>) {
        let Place::Uniform(uniform) = *place else { return };
        let value = self.uniforms[uniform];
        let known = self.resident.iter().find(|known| self.uniforms[known.1] == value && known.2 == size);
        let register = match known {
            Some(known) => known.0,
            None if self.resident.len() < RESIDENT => {
                // Never given back: it holds its value for all chunks.
                self.registers += 1;
                self.resident.push((self.registers - 1, uniform, size));
                self.registers - 1
            }
            None => {
                let to = self.register(free);
                self.steps.push(Step::Fill { uniform, size, to });
                to
            }
        };
        *place = Place::Register(register);
    }

    pub(super) fn registers(&self) -> Vec<u64> {
        let mut registers = vec![0u64; self.registers * CHUNK];
        for &(register, uniform, size) in &self.resident {
            let to = registers[register * CHUNK..].as_mut_ptr().cast::<u8>();
            // SAFETY: the register's elements.
            unsafe { copy_run(self.uniforms[uniform].0.as_ptr(), 0, to, 1, CHUNK, size) };
        }
        registers
    }

    fn pieces(&self, registers: &mut [u64], places: Range<usize>) -> Result<(), Diagnosis> {
        let mut start = places.start;
        while start < places.end {
            let end = (start + CHUNK).min(places.end);
            self.chunk(registers.as_mut_ptr(), start..end)?;
            start = end;
        }
        Ok(())
    }

    /// The values of the first result, of the chunk that was computed last.
    pub(super) fn value(&self, registers: *mut u64, places: Range<usize>) -> *const u8 {
        match self.values[0] {
            // SAFETY: of a register in the plan.
            Place::Register(number) => unsafe { registers.add(number * CHUNK).cast() },
            Place::Input(input) => {
                let memory = &self.job.inputs[input];
                memory.at(self.job.nest.operands[self.job.lie(memory)].offset + places.start)
            }
            Place::Result(_) | Place::Uniform(_) => unreachable!("it is spread, and there is no memory for it"),
        }
    }

    /// Computes at most [`CHUNK`] elements.
    pub(super) fn chunk(&self, registers: *mut u64, places: Range<usize>) -> Result<(), Diagnosis> {
        let (job, len) = (self.job, places.len());
        // SAFETY: of a register in the plan.
        let register = |number: usize| unsafe { registers.add(number * CHUNK).cast::<u8>() };
        let linear = |memory: &Memory| memory.at(job.nest.operands[job.lie(memory)].offset + places.start);
        let at = |place: Place| match place {
            Place::Register(number) => register(number),
            Place::Uniform(uniform) => self.uniforms[uniform].0.as_ptr().cast_mut(),
            Place::Input(input) => linear(&job.inputs[input]),
            Place::Result(result) => linear(&job.results[result]),
        };
        for step in &self.steps {
            match step {
                Step::Compute { kernel, takes, to } => {
                    let mut arguments = [std::ptr::null::<u8>(); super::graph::MAX_ARGUMENTS];
                    for (argument, &place) in arguments.iter_mut().zip(takes) {
                        *argument = at(place);
                    }
                    if let Some(fault) = kernel(&arguments, at(*to), len) {
                        return Err(fault);
                    }
                }
                Step::Pack { input, to } => {
                    let (memory, to) = (&job.inputs[*input], register(*to));
                    job.nest.runs(job.lie(memory), places.clone(), |first, element, stride, len| {
                        // SAFETY: elements of the input, and of the register, which has the chunk's length.
                        unsafe {
                            copy_run(memory.at(element), stride, to.add(first * memory.size), 1, len, memory.size);
                        }
                    });
                }
                Step::Neighbour { input, shift, to } => {
                    let memory = &job.inputs[*input];
                    let lie = &job.nest.operands[job.lie(memory)];
                    // SAFETY: the input was checked to broadcast to the nest's shape, of which the axes of its shifts stay apart; the
                    // register has the chunk's length.
                    unsafe { copy_neighbours(&job.nest, lie, memory, shift, places.clone(), register(*to)) };
                }
                Step::Weighted { input, taps, kernels, registers } => {
                    let (memory, taps) = (&job.inputs[*input], &job.program.taps[*taps]);
                    let lie = &job.nest.operands[job.lie(memory)];
                    let [to, other, value, wide, term] = registers.map(register);
                    let count = taps.weights.len();
                    for (k, weight) in taps.weights.iter().enumerate() {
                        let (shift, weight) =
                            (taps.shift_along(k, &job.nest.apart), std::ptr::from_ref(weight).cast::<u8>());
                        // SAFETY: as of a neighbour.
                        unsafe { copy_neighbours(&job.nest, lie, memory, &shift, places.clone(), value) };
                        let mut x = value.cast_const();
                        if let Some(cast) = &kernels.cast {
                            cast(&[x], wide, len);
                            x = wide;
                        }
                        // In turn, so that the last is the sum.
                        let (sum, before) = if (count - k) % 2 == 1 { (to, other) } else { (other, to) };
                        let before = before.cast_const();
                        match &kernels.multiply_add {
                            _ if k == 0 => {
                                (kernels.multiply)(&[x, weight], sum, len);
                            }
                            Some(multiply_add) => {
                                // SAFETY: a register, and a weight, which is of the sum's type.
                                unsafe { copy_run(weight, 0, term, 1, len, kernels.size) };
                                multiply_add(&[x, term.cast_const(), before], sum, len);
                            }
                            None => {
                                (kernels.multiply)(&[x, weight], term, len);
                                (kernels.add)(&[before, term.cast_const()], sum, len);
                            }
                        }
                    }
                }
                Step::Fill { uniform, size, to } => {
                    // SAFETY: of the chunk's length.
                    unsafe { copy_run(self.uniforms[*uniform].0.as_ptr(), 0, register(*to), 1, len, *size) };
                }
                Step::Fail(fault) => return Err(fault.clone()),
                Step::Unpack { from, result } => {
                    let step = isize::from(!matches!(from, Place::Uniform(_)));
                    let (memory, from) = (&job.results[*result], at(*from));
                    job.nest.runs(job.lie(memory), places.clone(), |first, element, stride, len| {
                        // SAFETY: elements of the value, and of the result; both may be one element in its place.
                        unsafe {
                            let from = from.add(first * memory.size * step as usize);
                            copy_run(from, step, memory.at(element), stride, len, memory.size);
                        }
                    });
                }
                Step::Index { operand, to } => {
                    // SAFETY: a register of a chunk's length, and its alignment.
                    let to = unsafe { std::slice::from_raw_parts_mut(register(*to).cast::<u64>(), len) };
                    job.nest.runs(*operand, places.clone(), |first, index, stride, len| {
                        for (i, to) in to[first..first + len].iter_mut().enumerate() {
                            *to = index.wrapping_add_signed(stride * i as isize) as u64;
                        }
                    });
                }
                Step::Gather { input, index, dtype, to } => {
                    let (index, to) = (at(*index), at(*to));
                    let memory = &job.inputs[*input];
                    // SAFETY: values of that type, of the chunk's length.
                    if let Some(fault) = unsafe { gather(memory, index, *dtype, to, len) } {
                        return Err(fault);
                    }
                }
                Step::Random { distribution, dtype, seed, element, to } => {
                    let (seeds, elements, to) = (at(*seed).cast::<u64>(), at(*element).cast::<u64>(), at(*to));
                    // SAFETY: of the chunk's length, all three.
                    unsafe {
                        let (seeds, elements) =
                            (std::slice::from_raw_parts(seeds, len), std::slice::from_raw_parts(elements, len));
                        match (distribution, dtype) {
                            (Distribution::Uniform, DType::F64) => random(UniformF64, seeds, elements, to.cast()),
                            (Distribution::Normal, DType::F64) => random(NormalF64, seeds, elements, to.cast()),
                            (Distribution::Uniform, _) => random(UniformF32, seeds, elements, to.cast()),
                            (Distribution::Normal, _) => random(NormalF32, seeds, elements, to.cast()),
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// # Safety
/// `size` readable bytes.
unsafe fn read_word(from: *const u8, size: usize) -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: the caller's.
    unsafe { from.copy_to_nonoverlapping(bytes.as_mut_ptr(), size) };
    u64::from_le_bytes(bytes)
}

/// Copies elements at strides.
///
/// # Safety
/// So many elements of that size and its alignment at both; elements of the two are apart, or the same in the same place.
pub(super) unsafe fn copy_run(
    from: *const u8,
    from_stride: isize,
    to: *mut u8,
    to_stride: isize,
    len: usize,
    size: usize,
) {
    /// # Safety
    /// As above.
    unsafe fn each<T: Copy>(from: *const u8, from_stride: isize, to: *mut u8, to_stride: isize, len: usize) {
        let (from, to) = (from.cast::<T>(), to.cast::<T>());
        // SAFETY: the caller's.
        unsafe {
            match (from_stride, to_stride) {
                (1, 1) => from.copy_to(to, len),
                (0, 1) => std::slice::from_raw_parts_mut(to, len).fill(from.read()),
                _ => {
                    for i in 0..len as isize {
                        to.offset(i * to_stride).write(from.offset(i * from_stride).read());
                    }
                }
            }
        }
    }
    // SAFETY: the caller's.
    unsafe {
        match size {
            1 => each::<u8>(from, from_stride, to, to_stride, len),
            2 => each::<u16>(from, from_stride, to, to_stride, len),
            4 => each::<u32>(from, from_stride, to, to_stride, len),
            _ => each::<u64>(from, from_stride, to, to_stride, len),
        }
    }
}

/// # Safety
/// `len` indices of `dtype`, an integer type, and room for as many elements.
unsafe fn gather(memory: &Memory, index: *const u8, dtype: DType, to: *mut u8, len: usize) -> Option<Diagnosis> {
    let Placement::Gathered { offset, stride, extent } = memory.lie else { unreachable!("a gathered input") };
    for i in 0..len {
        // SAFETY: the caller's; the index is inside the input.
        unsafe {
            let word = read_word(index.add(i * dtype.size()), dtype.size());
            let shift = 64 - 8 * dtype.size() as u32;
            let at = if dtype.is_signed() { ((word << shift) as i64 >> shift) as u64 } else { word };
            if at >= extent as u64 {
                return Some(Fault { kind: FaultKind::OutOfBounds, args: [at, extent as u64] }.into());
            }
            let from = memory.at(offset.wrapping_add_signed(stride * at as isize));
            copy_run(from, 0, to.add(i * memory.size), 1, 1, memory.size);
        }
    }
    None
}

/// Random numbers of elements. Neighbours come of one draw, which is made once.
///
/// # Safety
/// Room for as many numbers as there are elements.
unsafe fn random<T: Copy, const N: usize>(
    distribution: impl UnaryFn<[u32; 4], Output = [T; N]>,
    seeds: &[u64],
    elements: &[u64],
    to: *mut T,
) {
    let mut drawn: Option<((u64, u64), [T; N])> = None;
    for (i, (&seed, &element)) in seeds.iter().zip(elements).enumerate() {
        let (place, at) = ((seed, element / N as u64), (element % N as u64) as usize);
        let numbers = match drawn {
            Some((known, numbers)) if known == place => numbers,
            _ => distribution.apply(Philox::new(seed, 0).skip(place.1).draw()),
        };
        drawn = Some((place, numbers));
        // SAFETY: the caller's.
        unsafe { to.add(i).write(numbers[at]) };
    }
}

fn map1<A: Copy + 'static, O: 'static>(f: impl Fn(A) -> O + Send + Sync + 'static) -> Kernel {
    Box::new(move |arguments, to, len| {
        // SAFETY: values of these types, of the chunk's length; the result's memory is nobody else's.
        let (a, to) = unsafe {
            (
                std::slice::from_raw_parts(arguments[0].cast::<A>(), len),
                std::slice::from_raw_parts_mut(to.cast::<O>(), len),
            )
        };
        for (to, &a) in to.iter_mut().zip(a) {
            *to = f(a);
        }
        None
    })
}

/// Of arguments of the chunk's length; of a single value each, where `uniform` says so, of which one is none.
fn map2<A: Copy + 'static, B: Copy + 'static, O: 'static>(
    uniform: [bool; 2],
    f: impl Fn(A, B) -> O + Send + Sync + 'static,
) -> Kernel {
    macro_rules! kernel {
        ($a:ident, $b:ident, $to:ident, $len:ident => $body:expr) => {
            Box::new(move |arguments: &[*const u8], to: *mut u8, $len: usize| {
                // SAFETY: as in `map1`.
                let $to = unsafe { std::slice::from_raw_parts_mut(to.cast::<O>(), $len) };
                let ($a, $b) = (arguments[0].cast::<A>(), arguments[1].cast::<B>());
                $body
                None
            })
        };
    }
    /// # Safety
    /// So many values.
    unsafe fn all<'a, T>(values: *const T, len: usize) -> &'a [T] {
        // SAFETY: the caller's.
        unsafe { std::slice::from_raw_parts(values, len) }
    }
    match uniform {
        [true, _] => kernel!(a, b, to, len => {
            // SAFETY: as in `map1`.
            let (a, b) = unsafe { (a.read(), all(b, len)) };
            for (to, &b) in to.iter_mut().zip(b) {
                *to = f(a, b);
            }
        }),
        [false, true] => kernel!(a, b, to, len => {
            // SAFETY: as in `map1`.
            let (a, b) = unsafe { (all(a, len), b.read()) };
            for (to, &a) in to.iter_mut().zip(a) {
                *to = f(a, b);
            }
        }),
        [false, false] => kernel!(a, b, to, len => {
            // SAFETY: as in `map1`.
            let (a, b) = unsafe { (all(a, len), all(b, len)) };
            for ((to, &a), &b) in to.iter_mut().zip(a).zip(b) {
                *to = f(a, b);
            }
        }),
    }
}

fn map3<A: Copy + 'static, B: Copy + 'static, O: 'static>(f: impl Fn(A, B, B) -> O + Send + Sync + 'static) -> Kernel {
    Box::new(move |arguments, to, len| {
        // SAFETY: as in `map1`.
        let (a, b, c, to) = unsafe {
            (
                std::slice::from_raw_parts(arguments[0].cast::<A>(), len),
                std::slice::from_raw_parts(arguments[1].cast::<B>(), len),
                std::slice::from_raw_parts(arguments[2].cast::<B>(), len),
                std::slice::from_raw_parts_mut(to.cast::<O>(), len),
            )
        };
        for (((to, &a), &b), &c) in to.iter_mut().zip(a).zip(b).zip(c) {
            *to = f(a, b, c);
        }
        None
    })
}

/// A quotient: a division of integers by zero is a fault.
fn quotient<T: Divisor>(uniform: [bool; 2], f: impl Fn(T, T) -> T + Send + Sync + 'static) -> Kernel {
    let kernel = map2(uniform, f);
    if !T::INTEGER {
        return kernel;
    }
    Box::new(move |arguments, to, len| {
        // SAFETY: as in `map2`.
        let divisors =
            unsafe { std::slice::from_raw_parts(arguments[1].cast::<T>(), if uniform[1] { 1 } else { len }) };
        if divisors.contains(&T::ZERO) {
            return Some(Fault { kind: FaultKind::DivisionByZero, args: [0; 2] }.into());
        }
        kernel(arguments, to, len)
    })
}

trait Divisor: Quotient + 'static {
    const INTEGER: bool;
}
macro_rules! divisors {
    ($($integer:literal: $($t:ty),*;)*) => { $($(impl Divisor for $t { const INTEGER: bool = $integer; })*)* };
}
divisors! {
    true: i8, i16, i32, i64, u8, u16, u32, u64;
    false: half::f16, half::bf16, f32, f64;
}

/// Calls the body with `$T` as the type, which is one of a list.
macro_rules! among {
    ($dtype:expr, numbers, $T:ident => $body:expr) => {
        among!(@ $dtype, $T => $body; I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64,
            F16 half::f16, BF16 half::bf16, F32 f32, F64 f64)
    };
    ($dtype:expr, integers, $T:ident => $body:expr) => {
        among!(@ $dtype, $T => $body; I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64)
    };
    ($dtype:expr, bits, $T:ident => $body:expr) => {
        among!(@ $dtype, $T => $body; Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64)
    };
    ($dtype:expr, floats, $T:ident => $body:expr) => {
        among!(@ $dtype, $T => $body; F16 half::f16, BF16 half::bf16, F32 f32, F64 f64)
    };
    (@ $dtype:expr, $T:ident => $body:expr; $($variant:ident $t:ty),*) => {
        match $dtype {
            $(DType::$variant => {
                type $T = $t;
                $body
            })*
            #[allow(unreachable_patterns, reason = "some lists are whole")]
            other => unreachable!("an operator on {other}, which its bounds exclude"),
        }
    };
}

/// What computes an operator whose first argument is of type `from`.
pub(super) fn kernel(op: Op, from: DType, to: DType) -> Kernel {
    kernel_of(op, from, to, [false; 2])
}

/// As [`kernel`]; of an operator of two arguments, one of which may be the same for all elements: a single value.
fn kernel_of(op: Op, from: DType, to: DType, uniform: [bool; 2]) -> Kernel {
    match op {
        Op::Neg => among!(from, numbers, T => map1(|a: T| Arithmetic::neg(a))),
        Op::Not => among!(from, bits, T => map1(|a: T| primitives_gpu::element::Bits::not(a))),
        Op::Abs => among!(from, numbers, T => map1(|a: T| a.magnitude())),
        Op::Recip => among!(from, floats, T => map1(|a: T| Divide::divide(<T as Arithmetic>::ONE, a))),
        Op::Cast => with_type!(from, T => with_type!(to, U => map1(|a: T| ConvertTo::<U>::convert(a)))),
        Op::IsNan => among!(from, numbers, T => map1(|a: T| a.unordered())),
        Op::Math(function) => among!(from, floats, T => math::<T>(function)),
        Op::Add => among!(from, numbers, T => map2(uniform, |a: T, b: T| Arithmetic::add(a, b))),
        Op::Sub => among!(from, numbers, T => map2(uniform, |a: T, b: T| Arithmetic::sub(a, b))),
        Op::Mul => among!(from, numbers, T => map2(uniform, |a: T, b: T| Arithmetic::mul(a, b))),
        Op::Div => among!(from, numbers, T => quotient(uniform, |a: T, b: T| a.divide(b))),
        Op::Rem => among!(from, numbers, T => quotient(uniform, |a: T, b: T| a.trunc_remainder(b))),
        Op::FloorDiv => among!(from, numbers, T => quotient(uniform, |a: T, b: T| a.floor_divide(b))),
        Op::FloorRem => among!(from, numbers, T => quotient(uniform, |a: T, b: T| a.floor_remainder(b))),
        Op::Min => with_type!(from, T => map2(uniform, |a: T, b: T| Ordered::minimum(a, b))),
        Op::Max => with_type!(from, T => map2(uniform, |a: T, b: T| Ordered::maximum(a, b))),
        Op::And => among!(from, bits, T => map2(uniform, |a: T, b: T| a.and(b))),
        Op::Or => among!(from, bits, T => map2(uniform, |a: T, b: T| a.or(b))),
        Op::Xor => among!(from, bits, T => map2(uniform, |a: T, b: T| a.xor(b))),
        Op::Shl => {
            among!(from, integers, T => map2(uniform, |a: T, b: T| Integer::shl(a, shift(b))))
        }
        Op::Shr => {
            among!(from, integers, T => map2(uniform, |a: T, b: T| Integer::shr(a, shift(b))))
        }
        Op::Eq => with_type!(from, T => map2(uniform, |a: T, b: T| a == b)),
        Op::Ne => with_type!(from, T => map2(uniform, |a: T, b: T| a != b)),
        Op::Lt => with_type!(from, T => map2(uniform, |a: T, b: T| a.less(b))),
        Op::Le => with_type!(from, T => map2(uniform, |a: T, b: T| a.less_or_equal(b))),
        Op::Pow => among!(from, floats, T => map2(uniform, |a: T, b: T| Real::powf(a, b))),
        Op::Atan2 => among!(from, floats, T => map2(uniform, |a: T, b: T| Real::atan2(a, b))),
        Op::Hypot => among!(from, floats, T => map2(uniform, |a: T, b: T| Real::hypot(a, b))),
        Op::Select => with_type!(to, T => map3(|which: bool, a: T, b: T| if which { a } else { b })),
        Op::MulAdd => among!(from, floats, T => map3(|a: T, b: T, c: T| Float::mul_add(a, b, c))),
    }
}

/// Bits to shift by: a negative number, or one that a word does not hold, is more than there are.
fn shift(by: impl TryInto<u32>) -> u32 {
    by.try_into().unwrap_or(u32::MAX)
}

fn math<T: Real + 'static>(function: Math) -> Kernel {
    macro_rules! functions {
        ($($variant:ident $method:ident),* $(,)?) => {
            match function {
                $(Math::$variant => map1(|a: T| Real::$method(a)),)*
            }
        };
    }
    functions! {
        Sqrt sqrt, Rsqrt rsqrt, Cbrt cbrt, Exp exp, Exp2 exp2, ExpM1 exp_m1, Ln ln, Log2 log2, Log10 log10, Ln1p ln_1p,
        Sin sin, Cos cos, Tan tan, SinPi sin_pi, CosPi cos_pi, Asin asin, Acos acos, Atan atan, Sinh sinh, Cosh cosh,
        Tanh tanh, Asinh asinh, Acosh acosh, Atanh atanh, Erf error_function, Erfc error_function_complement, Floor floor, Ceil ceil, Trunc trunc,
        Round round, RoundTiesEven round_ties_even,
    }
}
