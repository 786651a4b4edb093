//! Runs programs on the CPU. All cores run them instruction by instruction, over chunks of elements that stay in the caches.

mod chunk;
mod copies;
pub(super) mod fold;
mod kernels;
mod parallel;
mod plan;
mod sparse;

use primitives_host::Diagnosis;
use primitives_host::storage::Storage;

pub(super) use copies::copy_run;
pub(super) use kernels::kernel;
use parallel::pieces;
pub(super) use sparse::sparse_product;

use super::dtype::DType;
use super::graph::Distribution;
use super::layout::nest::Nest;
use super::neighbours::neighbour::Shift;
use super::program::Program;

/// The number of elements of a chunk. A few registers of this size fit in a first-level cache. While one chunk is computed, the processor
/// prefetches the next one; it prefetches about a kilobyte of each operand.
pub(crate) const CHUNK: usize = 256;

/// The number of chunks that a core takes at once.
const CHUNKS_EACH: usize = 64;

/// A program with its operands: first the results, then the inputs.
pub(crate) struct Job {
    pub(crate) program: Program,
    /// The nest of the results, then of the inputs that are not gathered.
    pub(crate) nest: Nest,
    pub(crate) results: Vec<Memory>,
    pub(crate) inputs: Vec<Memory>,
    /// The memories of the inputs that are gathered. The gathers themselves check that the elements they read have been written.
    pub(crate) gathered: Vec<Option<Storage>>,
    pub(crate) scalars: Vec<u64>,
}

/// The place of an operand's elements.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    /// The address of the memory in which offsets count.
    pub(crate) address: u64,
    /// The number of bytes of an element.
    pub(crate) size: usize,
    /// The operand in the nest. A gathered input has (offset, stride, extent) instead.
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

/// Computes elements of a chunk. It is a trait because each boxed `Fn` is compiled a second time, for calls that consume it.
pub(super) trait Compute: Send + Sync {
    /// Computes elements from the arguments. Returns a fault if an argument is invalid.
    ///
    /// # Safety
    /// Each argument has `len` elements of the type that the operator takes there, aligned, or one if it is uniform. There is room for
    /// `len` results, which nothing else uses.
    unsafe fn compute(&self, arguments: &[*const u8], to: *mut u8, len: usize) -> Option<Diagnosis>;
}

pub(super) type Kernel = Box<dyn Compute>;

/// A value of up to eight bytes, first byte first, aligned for every type.
#[derive(Clone, Copy, PartialEq)]
#[repr(align(8))]
struct Word([u8; 8]);

/// The place of a value while a chunk is computed.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Register(usize),
    /// The same value for all elements.
    Uniform(usize),
    /// The memory of a contiguous operand.
    Input(usize),
    Result(usize),
}

enum Step {
    Compute {
        kernel: Kernel,
        takes: Vec<Place>,
        to: Place,
    },
    /// Fills a register with one value for all elements.
    Fill {
        uniform: usize,
        size: usize,
        to: usize,
    },
    /// A fault that does not depend on the elements.
    Fail(Diagnosis),
    /// Copies elements of an input that are not contiguous to a register.
    Pack {
        input: usize,
        to: usize,
    },
    /// Copies neighbours from an input to a register.
    Neighbour {
        input: usize,
        /// The shift along the axes of the nest.
        shift: Shift,
        to: usize,
    },
    /// Computes weighted sums of an input's elements.
    Weighted {
        input: usize,
        taps: usize,
        kernels: Box<WeightKernels>,
        /// The registers of the sums, of the sums before, of the elements, of the elements in the type of the sum, and of weights or
        /// products.
        registers: [usize; 5],
    },
    /// Computes the values of an index.
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
    /// Copies elements to a result that is not contiguous, or whose memory is also read.
    Unpack {
        from: Place,
        result: usize,
    },
}

/// The kernels of weighted sums.
struct WeightKernels {
    /// Converts elements to the type of the sum, if the types differ.
    cast: Option<Kernel>,
    /// Multiplies by one weight.
    multiply: Kernel,
    add: Kernel,
    /// Replaces the product and the sum, with the weights in a register.
    multiply_add: Option<Kernel>,
    /// The size of a sum in bytes.
    size: usize,
}

/// The steps of a job.
pub(super) struct Plan<'a> {
    job: &'a Job,
    steps: Vec<Step>,
    /// Values that are the same for all elements.
    uniforms: Vec<Word>,
    /// Registers that always hold one of these values, with the size of an element.
    resident: Vec<(usize, usize, usize)>,
    registers: usize,
    /// The places of the results' values.
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
