//! Programs on the CPU: instruction by instruction over chunks of elements that stay in the caches, on all cores.

use std::ops::Range;

use primitives_gpu::element::{
    Arithmetic, Bits as _, ConvertTo, Divide, Float, Integer, Magnitude, Ordered, Quotient, Real,
};
use primitives_gpu::functor::UnaryFn;
use primitives_gpu::simt::{Fault, FaultKind};
use primitives_gpu::thread::{NormalF32, NormalF64, Philox, UniformF32, UniformF64};
use rayon::prelude::*;

use super::dtype::{Bits, DType, with_type};
use super::graph::{Distribution, Math, Op};
use super::nest::Nest;
use super::program::{Program, What};
use super::shape::Shape;

/// Elements of a chunk: a few registers of that many `f64` fit in a first-level cache.
pub(crate) const CHUNK: usize = 1024;

/// Chunks that a core takes at once.
const CHUNKS_EACH: usize = 16;

/// A program with its operands: first those that are written, then those that are read.
pub(crate) struct Job {
    pub(crate) program: Program,
    /// The results' shape.
    pub(crate) shape: Shape,
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
pub(super) type Kernel = Box<dyn Fn(&[*const u8], *mut u8, usize) -> Option<Fault> + Send + Sync>;

/// Where a value is while a chunk is computed.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Register(usize),
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
    /// Elements of an input that do not lie in a row.
    Pack {
        input: usize,
        to: usize,
    },
    Index {
        axis: Option<u8>,
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

/// A job in steps.
pub(super) struct Plan<'a> {
    job: &'a Job,
    steps: Vec<Step>,
    /// Registers that hold one value all the time, with that value and its size.
    uniform: Vec<(usize, u64, usize)>,
    registers: usize,
    /// Where the results' values are.
    values: Vec<Place>,
}

impl Job {
    /// Computes all elements.
    pub(crate) fn run(&self) -> Result<(), Fault> {
        let plan = self.plan();
        let elements = self.nest.elements;
        let piece = CHUNK * CHUNKS_EACH;
        if elements <= piece {
            return plan.pieces(&mut plan.registers(), 0..elements);
        }
        (0..elements.div_ceil(piece)).into_par_iter().try_for_each_init(
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
        let mut plan = Plan { job: self, steps: Vec::new(), uniform: Vec::new(), registers: 0, values: Vec::new() };
        let mut places: Vec<Place> = Vec::with_capacity(code.len());
        let mut free: Vec<usize> = Vec::new();
        for (at, instruction) in code.iter().enumerate() {
            let takes: Vec<Place> = instruction.takes().iter().map(|&value| places[value as usize]).collect();
            let mut register = |plan: &mut Plan<'_>| {
                free.pop().unwrap_or_else(|| {
                    plan.registers += 1;
                    plan.registers - 1
                })
            };
            let uniform = |plan: &mut Plan<'_>, word| {
                // Never given back: it holds its value for all chunks.
                plan.registers += 1;
                plan.uniform.push((plan.registers - 1, word, instruction.dtype.size()));
                Place::Register(plan.registers - 1)
            };
            // A result that is computed last of what reads or writes its memory goes there at once.
            let to = |plan: &mut Plan<'_>, register: &mut dyn FnMut(&mut Plan<'_>) -> usize| {
                let result = self.program.results.iter().position(|&value| value as usize == at);
                match result.filter(|&result| self.is_direct(result)) {
                    Some(result) => Place::Result(result),
                    None => Place::Register(register(plan)),
                }
            };
            let place = match instruction.what {
                What::Load(input) => {
                    let memory = &self.inputs[input as usize];
                    let lie = self.lie(memory);
                    if self.nest.is_linear(lie) {
                        Place::Input(input as usize)
                    } else if self.nest.is_single(lie) {
                        // SAFETY: an element of the input, which is read only while this runs or written after.
                        let word = unsafe { read_word(memory.at(self.nest.operands[lie].offset), memory.size) };
                        uniform(&mut plan, word)
                    } else {
                        let to = register(&mut plan);
                        plan.steps.push(Step::Pack { input: input as usize, to });
                        Place::Register(to)
                    }
                }
                What::Scalar(scalar) => uniform(&mut plan, self.scalars[scalar as usize]),
                What::Constant(word) => uniform(&mut plan, word),
                What::Index(axis) => {
                    let to = register(&mut plan);
                    plan.steps.push(Step::Index { axis, to });
                    Place::Register(to)
                }
                What::Gather(input) => {
                    let to = to(&mut plan, &mut register);
                    let dtype = code[instruction.arguments[0] as usize].dtype;
                    plan.steps.push(Step::Gather { input: input as usize, index: takes[0], dtype, to });
                    to
                }
                What::Random(distribution) => {
                    let to = to(&mut plan, &mut register);
                    let (seed, element, dtype) = (takes[0], takes[1], instruction.dtype);
                    plan.steps.push(Step::Random { distribution, dtype, seed, element, to });
                    to
                }
                What::Call(function) => {
                    let to = to(&mut plan, &mut register);
                    let kernel: Kernel = Box::new(move |arguments, to, len| {
                        // SAFETY: values of the function's types, of the chunk's length.
                        unsafe { function.0.run(arguments, to, len) };
                        None
                    });
                    plan.steps.push(Step::Compute { kernel, takes, to });
                    to
                }
                What::Op(op) => {
                    let to = to(&mut plan, &mut register);
                    let from = code[instruction.arguments[0] as usize].dtype;
                    plan.steps.push(Step::Compute { kernel: kernel(op, from, instruction.dtype), takes, to });
                    to
                }
            };
            places.push(place);
            for &value in instruction.takes() {
                if last_use[value as usize] == at
                    && let Place::Register(register) = places[value as usize]
                    && !plan.uniform.iter().any(|uniform| uniform.0 == register)
                    && !free.contains(&register)
                {
                    free.push(register);
                }
            }
        }
        for (result, &value) in self.program.results.iter().enumerate() {
            let from = places[value as usize];
            plan.values.push(from);
            if result < self.results.len() && from != Place::Result(result) {
                plan.steps.push(Step::Unpack { from, result });
            }
        }
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
    pub(super) fn registers(&self) -> Vec<u64> {
        let mut registers = vec![0u64; self.registers * CHUNK];
        for &(register, word, size) in &self.uniform {
            let to = registers[register * CHUNK..].as_mut_ptr().cast::<u8>();
            for i in 0..CHUNK {
                // SAFETY: inside the register.
                unsafe { write_word(to.add(i * size), word, size) };
            }
        }
        registers
    }

    fn pieces(&self, registers: &mut [u64], places: Range<usize>) -> Result<(), Fault> {
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
            Place::Result(_) => unreachable!("there is no memory for it"),
        }
    }

    /// Computes at most [`CHUNK`] elements.
    pub(super) fn chunk(&self, registers: *mut u64, places: Range<usize>) -> Result<(), Fault> {
        let (job, len) = (self.job, places.len());
        // SAFETY: of a register in the plan.
        let register = |number: usize| unsafe { registers.add(number * CHUNK).cast::<u8>() };
        let linear = |memory: &Memory| memory.at(job.nest.operands[job.lie(memory)].offset + places.start);
        let at = |place: Place| match place {
            Place::Register(number) => register(number),
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
                Step::Unpack { from, result } => {
                    let (memory, from) = (&job.results[*result], at(*from));
                    job.nest.runs(job.lie(memory), places.clone(), |first, element, stride, len| {
                        // SAFETY: elements of the value, and of the result; both may be one element in its place.
                        unsafe {
                            copy_run(from.add(first * memory.size), 1, memory.at(element), stride, len, memory.size);
                        }
                    });
                }
                Step::Index { axis, to } => {
                    // SAFETY: a register of a chunk's length, and its alignment.
                    let to = unsafe { std::slice::from_raw_parts_mut(register(*to).cast::<u64>(), len) };
                    let (below, extent) = match *axis {
                        None => (1, usize::MAX),
                        Some(axis) => {
                            let axis = usize::from(axis);
                            (job.shape[axis + 1..].iter().product(), job.shape[axis])
                        }
                    };
                    for (to, place) in to.iter_mut().zip(places.clone()) {
                        *to = (place / below % extent) as u64;
                    }
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
                    let (seed, element, to) = (at(*seed).cast::<u64>(), at(*element).cast::<u64>(), at(*to));
                    for i in 0..len {
                        // SAFETY: of the chunk's length, all three.
                        unsafe {
                            let word = random(*distribution, *dtype, seed.add(i).read(), element.add(i).read());
                            write_word(to.add(i * dtype.size()), word, dtype.size());
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

/// # Safety
/// `size` writable bytes.
unsafe fn write_word(to: *mut u8, word: u64, size: usize) {
    let bytes = word.to_le_bytes();
    // SAFETY: the caller's.
    unsafe { bytes.as_ptr().copy_to_nonoverlapping(to, size) };
}

/// Copies elements at strides.
///
/// # Safety
/// So many elements of that size and its alignment at both; elements of the two are apart, or the same in the same place.
unsafe fn copy_run(from: *const u8, from_stride: isize, to: *mut u8, to_stride: isize, len: usize, size: usize) {
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
unsafe fn gather(memory: &Memory, index: *const u8, dtype: DType, to: *mut u8, len: usize) -> Option<Fault> {
    let Placement::Gathered { offset, stride, extent } = memory.lie else { unreachable!("a gathered input") };
    for i in 0..len {
        // SAFETY: the caller's; the index is inside the input.
        unsafe {
            let word = read_word(index.add(i * dtype.size()), dtype.size());
            let shift = 64 - 8 * dtype.size() as u32;
            let at = if dtype.is_signed() { ((word << shift) as i64 >> shift) as u64 } else { word };
            if at >= extent as u64 {
                return Some(Fault { kind: FaultKind::OutOfBounds, args: [at, extent as u64] });
            }
            let from = memory.at(offset.wrapping_add_signed(stride * at as isize));
            copy_run(from, 0, to.add(i * memory.size), 1, 1, memory.size);
        }
    }
    None
}

/// The random number of an element, as bits.
pub(crate) fn random(distribution: Distribution, dtype: DType, seed: u64, element: u64) -> u64 {
    let draw = |each: u64| (Philox::new(seed, 0).skip(element / each).draw(), (element % each) as usize);
    match (distribution, dtype) {
        (Distribution::Uniform, DType::F64) => UniformF64.apply(draw(2).0)[draw(2).1].to_word(),
        (Distribution::Normal, DType::F64) => NormalF64.apply(draw(2).0)[draw(2).1].to_word(),
        (Distribution::Uniform, _) => UniformF32.apply(draw(4).0)[draw(4).1].to_word(),
        (Distribution::Normal, _) => NormalF32.apply(draw(4).0)[draw(4).1].to_word(),
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

fn map2<A: Copy + 'static, B: Copy + 'static, O: 'static>(f: impl Fn(A, B) -> O + Send + Sync + 'static) -> Kernel {
    Box::new(move |arguments, to, len| {
        // SAFETY: as in `map1`.
        let (a, b, to) = unsafe {
            (
                std::slice::from_raw_parts(arguments[0].cast::<A>(), len),
                std::slice::from_raw_parts(arguments[1].cast::<B>(), len),
                std::slice::from_raw_parts_mut(to.cast::<O>(), len),
            )
        };
        for ((to, &a), &b) in to.iter_mut().zip(a).zip(b) {
            *to = f(a, b);
        }
        None
    })
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
fn quotient<T: Divisor>(f: impl Fn(T, T) -> T + Send + Sync + 'static) -> Kernel {
    let kernel = map2(f);
    Box::new(move |arguments, to, len| {
        // SAFETY: as in `map1`.
        let divisors = unsafe { std::slice::from_raw_parts(arguments[1].cast::<T>(), len) };
        if T::INTEGER && divisors.contains(&T::ZERO) {
            return Some(Fault { kind: FaultKind::DivisionByZero, args: [0; 2] });
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

/// How far to shift: a negative count is more than any width.
fn count_of(count: impl TryInto<u32>) -> u32 {
    count.try_into().unwrap_or(u32::MAX)
}

/// What computes an operator whose first argument is of type `from`.
pub(super) fn kernel(op: Op, from: DType, to: DType) -> Kernel {
    match op {
        Op::Neg => among!(from, numbers, T => map1(|a: T| Arithmetic::neg(a))),
        Op::Not => among!(from, bits, T => map1(|a: T| primitives_gpu::element::Bits::not(a))),
        Op::Abs => among!(from, numbers, T => map1(|a: T| a.magnitude())),
        Op::Recip => among!(from, floats, T => map1(|a: T| Divide::divide(<T as Arithmetic>::ONE, a))),
        Op::Cast => with_type!(from, T => with_type!(to, U => map1(|a: T| ConvertTo::<U>::convert(a)))),
        Op::IsNan => among!(from, numbers, T => map1(|a: T| a.unordered())),
        Op::Math(function) => among!(from, floats, T => math::<T>(function)),
        Op::Add => among!(from, numbers, T => map2(|a: T, b: T| Arithmetic::add(a, b))),
        Op::Sub => among!(from, numbers, T => map2(|a: T, b: T| Arithmetic::sub(a, b))),
        Op::Mul => among!(from, numbers, T => map2(|a: T, b: T| Arithmetic::mul(a, b))),
        Op::Div => among!(from, numbers, T => quotient(|a: T, b: T| a.divide(b))),
        Op::Rem => among!(from, numbers, T => quotient(|a: T, b: T| a.trunc_remainder(b))),
        Op::FloorDiv => among!(from, numbers, T => quotient(|a: T, b: T| a.floor_divide(b))),
        Op::FloorRem => among!(from, numbers, T => quotient(|a: T, b: T| a.floor_remainder(b))),
        Op::Min => with_type!(from, T => map2(|a: T, b: T| Ordered::minimum(a, b))),
        Op::Max => with_type!(from, T => map2(|a: T, b: T| Ordered::maximum(a, b))),
        Op::And => among!(from, bits, T => map2(|a: T, b: T| a.and(b))),
        Op::Or => among!(from, bits, T => map2(|a: T, b: T| a.or(b))),
        Op::Xor => among!(from, bits, T => map2(|a: T, b: T| a.xor(b))),
        Op::Shl => {
            among!(from, integers, T => map2(|a: T, b: T| Integer::shl(a, count_of(b))))
        }
        Op::Shr => {
            among!(from, integers, T => map2(|a: T, b: T| Integer::shr(a, count_of(b))))
        }
        Op::Eq => with_type!(from, T => map2(|a: T, b: T| a == b)),
        Op::Ne => with_type!(from, T => map2(|a: T, b: T| a != b)),
        Op::Lt => with_type!(from, T => map2(|a: T, b: T| a.less(b))),
        Op::Le => with_type!(from, T => map2(|a: T, b: T| a.less_or_equal(b))),
        Op::Pow => among!(from, floats, T => map2(|a: T, b: T| Real::powf(a, b))),
        Op::Atan2 => among!(from, floats, T => map2(|a: T, b: T| Real::atan2(a, b))),
        Op::Hypot => among!(from, floats, T => map2(|a: T, b: T| Real::hypot(a, b))),
        Op::Select => with_type!(to, T => map3(|which: bool, a: T, b: T| if which { a } else { b })),
        Op::MulAdd => among!(from, floats, T => map3(|a: T, b: T, c: T| Float::mul_add(a, b, c))),
    }
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
        Sin sin, Cos cos, Tan tan, Asin asin, Acos acos, Atan atan, Sinh sinh, Cosh cosh, Tanh tanh, Asinh asinh, Acosh acosh,
        Atanh atanh, Erf erf, Erfc erfc, Floor floor, Ceil ceil, Trunc trunc, Round round, RoundTiesEven round_ties_even,
    }
}
