//! Runs the steps of a plan over a chunk of elements.

use std::ops::Range;

use primitives_gpu::functor::UnaryFn;
use primitives_gpu::simt::{Fault, FaultKind};
use primitives_gpu::thread::{NormalF32, NormalF64, Philox, UniformF32, UniformF64};
use primitives_host::storage::Storage;
use primitives_host::{Diagnosis, MemoryPlace};

use super::copies::{copy_run, read_word};
use super::{CHUNK, Memory, Place, Placement, Plan, Step};
use crate::expr::dtype::DType;
use crate::expr::graph::{Distribution, MAX_ARGUMENTS};
use crate::expr::neighbours::neighbour::copy_neighbours;

impl Plan<'_> {
    pub(super) fn pieces(&self, registers: &mut [u64], places: Range<usize>) -> Result<(), Diagnosis> {
        let mut start = places.start;
        while start < places.end {
            let end = (start + CHUNK).min(places.end);
            self.chunk(registers.as_mut_ptr(), start..end)?;
            start = end;
        }
        Ok(())
    }

    /// Returns the values of the first result for the latest chunk.
    pub(in crate::expr) fn value(&self, registers: *mut u64, places: Range<usize>) -> *const u8 {
        match self.values[0] {
            // SAFETY: the register is one of the plan's.
            Place::Register(number) => unsafe { registers.add(number * CHUNK).cast() },
            Place::Input(input) => {
                let memory = &self.job.inputs[input];
                memory.at(self.job.nest.operands[self.job.operand_of(memory)].offset + places.start)
            }
            Place::Result(_) | Place::Uniform(_) => unreachable!("it is spread, and there is no memory for it"),
        }
    }

    /// Computes at most [`CHUNK`] elements.
    pub(in crate::expr) fn chunk(&self, registers: *mut u64, places: Range<usize>) -> Result<(), Diagnosis> {
        let (job, len) = (self.job, places.len());
        // SAFETY: the register is one of the plan's.
        let register = |number: usize| unsafe { registers.add(number * CHUNK).cast::<u8>() };
        let linear = |memory: &Memory| memory.at(job.nest.operands[job.operand_of(memory)].offset + places.start);
        let at = |place: Place| match place {
            Place::Register(number) => register(number),
            Place::Uniform(uniform) => self.uniforms[uniform].0.as_ptr().cast_mut(),
            Place::Input(input) => linear(&job.inputs[input]),
            Place::Result(result) => linear(&job.results[result]),
        };
        for step in &self.steps {
            match step {
                Step::Compute { kernel, takes, to } => {
                    let mut arguments = [std::ptr::null::<u8>(); MAX_ARGUMENTS];
                    for (argument, &place) in arguments.iter_mut().zip(takes) {
                        *argument = at(place);
                    }
                    // SAFETY: the arguments have the chunk's elements, or one if the kernel was made for a uniform. No other value uses the
                    // result's place.
                    if let Some(fault) = unsafe { kernel.compute(&arguments, at(*to), len) } {
                        return Err(fault);
                    }
                }
                Step::Pack { input, to } => {
                    let (memory, to) = (&job.inputs[*input], register(*to));
                    job.nest.runs(job.operand_of(memory), places.clone(), |first, element, stride, len| {
                        // SAFETY: these are elements of the input and of the register, which has the chunk's length.
                        unsafe {
                            copy_run(memory.at(element), stride, to.add(first * memory.size), 1, len, memory.size);
                        }
                    });
                }
                Step::Neighbour { input, shift, to } => {
                    let memory = &job.inputs[*input];
                    let operand = &job.nest.operands[job.operand_of(memory)];
                    let shift = (shift, job.program.inputs[*input].spare);
                    // SAFETY: the input was checked to broadcast to the nest's shape, in which the axes of its shifts stay apart. Its
                    // memory has the spare elements of its view. The register has the chunk's length.
                    unsafe { copy_neighbours(&job.nest, operand, memory, shift, places.clone(), register(*to)) };
                }
                Step::Weighted { input, taps, kernels, registers } => {
                    let (memory, taps) = (&job.inputs[*input], &job.program.taps[*taps]);
                    let spare = job.program.inputs[*input].spare;
                    let operand = &job.nest.operands[job.operand_of(memory)];
                    let [to, other, value, wide, term] = registers.map(register);
                    let count = taps.weights.len();
                    for (k, weight) in taps.weights.iter().enumerate() {
                        let (shift, weight) =
                            (taps.shift_along(k, &job.nest.apart), std::ptr::from_ref(weight).cast::<u8>());
                        // SAFETY: the reasons are those of a neighbour.
                        unsafe { copy_neighbours(&job.nest, operand, memory, (&shift, spare), places.clone(), value) };
                        let mut x = value.cast_const();
                        if let Some(cast) = &kernels.cast {
                            // SAFETY: these are registers, which have the chunk's length.
                            unsafe { cast.compute(&[x], wide, len) };
                            x = wide;
                        }
                        // Two registers alternate, so that the last one is the sum.
                        let (sum, before) = if (count - k) % 2 == 1 { (to, other) } else { (other, to) };
                        let before = before.cast_const();
                        // SAFETY: these are registers, which have the chunk's length, and a weight, which has the sum's type.
                        unsafe {
                            match &kernels.multiply_add {
                                _ if k == 0 => {
                                    kernels.multiply.compute(&[x, weight], sum, len);
                                }
                                Some(multiply_add) => {
                                    copy_run(weight, 0, term, 1, len, kernels.size);
                                    multiply_add.compute(&[x, term.cast_const(), before], sum, len);
                                }
                                None => {
                                    kernels.multiply.compute(&[x, weight], term, len);
                                    kernels.add.compute(&[before, term.cast_const()], sum, len);
                                }
                            }
                        }
                    }
                }
                Step::Fill { uniform, size, to } => {
                    // SAFETY: the register has the chunk's length.
                    unsafe { copy_run(self.uniforms[*uniform].0.as_ptr(), 0, register(*to), 1, len, *size) };
                }
                Step::Fail(fault) => return Err(fault.clone()),
                Step::Unpack { from, result } => {
                    let step = isize::from(!matches!(from, Place::Uniform(_)));
                    let (memory, from) = (&job.results[*result], at(*from));
                    job.nest.runs(job.operand_of(memory), places.clone(), |first, element, stride, len| {
                        // SAFETY: these are elements of the value and of the result. Both may be the same element, in its own place.
                        unsafe {
                            let from = from.add(first * memory.size * step as usize);
                            copy_run(from, step, memory.at(element), stride, len, memory.size);
                        }
                    });
                }
                Step::Index { operand, to } => {
                    // SAFETY: the register has the chunk's length, and is aligned.
                    let to = unsafe { std::slice::from_raw_parts_mut(register(*to).cast::<u64>(), len) };
                    job.nest.runs(*operand, places.clone(), |first, index, stride, len| {
                        for (i, to) in to[first..first + len].iter_mut().enumerate() {
                            *to = index.wrapping_add_signed(stride * i as isize) as u64;
                        }
                    });
                }
                Step::Gather { input, index, dtype, to } => {
                    let (index, to) = (at(*index), at(*to));
                    let memory = (&job.inputs[*input], job.gathered[*input].as_ref());
                    // SAFETY: the values have that type, and the chunk's length.
                    if let Some(fault) = unsafe { gather(memory, index, *dtype, to, len) } {
                        return Err(fault);
                    }
                }
                Step::Random { distribution, dtype, seed, element, to } => {
                    let (seeds, elements, to) = (at(*seed).cast::<u64>(), at(*element).cast::<u64>(), at(*to));
                    // SAFETY: all three have the chunk's length.
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
/// There must be `len` indices of `dtype`, an integer type, and room for `len` elements.
unsafe fn gather(
    (memory, storage): (&Memory, Option<&Storage>),
    index: *const u8,
    dtype: DType,
    to: *mut u8,
    len: usize,
) -> Option<Diagnosis> {
    let Placement::Gathered { offset, stride, extent } = memory.placement else { unreachable!("a gathered input") };
    for i in 0..len {
        // SAFETY: the caller's contract; the index is inside the input.
        unsafe {
            let word = read_word(index.add(i * dtype.size()), dtype.size());
            let shift = 64 - 8 * dtype.size() as u32;
            let at = if dtype.is_signed() { ((word << shift) as i64 >> shift) as u64 } else { word };
            if at >= extent as u64 {
                return Some(Fault { kind: FaultKind::OutOfBounds, args: [at, extent as u64] }.into());
            }
            let element = offset.wrapping_add_signed(stride * at as isize);
            let bytes = element * memory.size..(element + 1) * memory.size;
            if let Some(byte) = storage.and_then(|storage| storage.first_unwritten(bytes)) {
                return Some(Diagnosis::Unwritten {
                    memory: MemoryPlace::Argument { name: "a tensor", element: 0, byte },
                });
            }
            copy_run(memory.at(element), 0, to.add(i * memory.size), 1, 1, memory.size);
        }
    }
    None
}

/// Computes random numbers of elements. Neighbouring elements share a draw, which is computed once.
///
/// # Safety
/// There must be room for one number for each element.
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
        // SAFETY: the caller's contract.
        unsafe { to.add(i).write(numbers[at]) };
    }
}
