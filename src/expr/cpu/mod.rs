//! Programs on the CPU: instruction by instruction over chunks of elements that stay in the caches, on all cores.

mod chunk;
mod copies;
pub(super) mod fold;
mod kernels;
mod parallel;
mod plan;
mod sparse;

use primitives_host::Diagnosis;

pub(super) use copies::copy_run;
pub(super) use kernels::kernel;
use parallel::pieces;
pub(super) use sparse::sparse_product;

use super::dtype::DType;
use super::graph::Distribution;
use super::layout::nest::Nest;
use super::neighbours::neighbour::Shift;
use super::program::Program;

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
    pub(crate) placement: Placement,
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

/// Where a value is while a chunk is computed.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Register(usize),
    /// One value for all elements.
    Uniform(usize),
    /// In the memory of an operand that is contiguous.
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
    /// Elements of an input that are not contiguous.
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
    /// Elements of a result that is not contiguous, or whose memory is read too.
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

    fn operand_of(&self, memory: &Memory) -> usize {
        match memory.placement {
            Placement::Nested(operand) => operand,
            Placement::Gathered { .. } => unreachable!("only inputs that are not gathered are in the nest"),
        }
    }
}
