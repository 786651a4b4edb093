//! Plans: the steps of a program over a chunk, and the place of each value.

use super::copies::{copy_run, read_word};
use super::kernels::{kernel, kernel_of};
use super::{CHUNK, Job, Place, Plan, Step, WeightKernels, Word};
use crate::expr::dtype::DType;
use crate::expr::graph::{MAX_ARGUMENTS, Op};
use crate::expr::program::What;

/// The most registers that always hold one value. All others are filled for each chunk.
const RESIDENT: usize = 16;

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

impl Job {
    pub(in crate::expr) fn plan(&self) -> Plan<'_> {
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
                    let operand = self.operand_of(memory);
                    if self.nest.is_linear(operand) {
                        Place::Input(input as usize)
                    } else if self.nest.is_single(operand) {
                        // SAFETY: this is an element of the input. While this runs, it is only read, and it may be written afterwards.
                        let word = unsafe { read_word(memory.at(self.nest.operands[operand].offset), memory.size) };
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
                    plan.steps.push(Step::Compute { kernel: Box::new(function), takes: takes.clone(), to });
                    to
                }
                What::Op(op) if takes.iter().all(|place| matches!(place, Place::Uniform(_))) => {
                    let mut arguments = [std::ptr::null(); MAX_ARGUMENTS];
                    for (argument, place) in arguments.iter_mut().zip(&takes) {
                        if let Place::Uniform(uniform) = *place {
                            *argument = plan.uniforms[uniform].0.as_ptr();
                        }
                    }
                    let mut result = 0u64;
                    let to = std::ptr::from_mut(&mut result).cast();
                    // SAFETY: these are values of the arguments' types, and a word for the result.
                    match unsafe { kernel(op, dtype_of(0), instruction.dtype).compute(&arguments, to, 1) } {
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
            // These are the registers of values that are not used any more, and the registers that were filled only for this step.
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
                // An element that another result overwrites must be read before.
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

    /// Returns whether a result's elements are contiguous, in memory that no other operand uses.
    fn is_direct(&self, result: usize) -> bool {
        let Some(memory) = self.results.get(result) else { return false };
        let others = self.results.iter().enumerate().filter(|(other, _)| *other != result).map(|(_, memory)| memory);
        self.nest.is_linear(self.operand_of(memory))
            && others.chain(&self.inputs).all(|other| other.address != memory.address)
    }
}

impl Plan<'_> {
    /// Takes a free register.
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

    /// Returns the place for the value of an instruction. The last instruction that reads or writes a result's memory writes the result
    /// directly.
    fn result(&mut self, at: usize, free: &mut Vec<usize>) -> Place {
        let result = self.job.program.results.iter().position(|&value| value as usize == at);
        match result.filter(|&result| self.job.is_direct(result)) {
            Some(result) => Place::Result(result),
            None => Place::Register(self.register(free)),
        }
    }

    /// Fills a register with a uniform value of elements of `size` bytes.
    fn spread(&mut self, place: &mut Place, size: usize, free: &mut Vec<usize>) {
        let Place::Uniform(uniform) = *place else { return };
        let value = self.uniforms[uniform];
        let known = self.resident.iter().find(|known| self.uniforms[known.1] == value && known.2 == size);
        let register = match known {
            Some(known) => known.0,
            None if self.resident.len() < RESIDENT => {
                // The register is never freed: it holds its value for all chunks.
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

    pub(in crate::expr) fn registers(&self) -> Vec<u64> {
        let mut registers = vec![0u64; self.registers * CHUNK];
        for &(register, uniform, size) in &self.resident {
            let to = registers[register * CHUNK..].as_mut_ptr().cast::<u8>();
            // SAFETY: these are the register's elements.
            unsafe { copy_run(self.uniforms[uniform].0.as_ptr(), 0, to, 1, CHUNK, size) };
        }
        registers
    }
}
