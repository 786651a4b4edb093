//! Launches of reductions: their blocks, and the memory that blocks share.

use std::sync::Arc;

use primitives_gpu::element::ConvertTo;
use primitives_host::storage::{self, KeptFor, Storage};
use primitives_host::{Dims, Result, Stream};

use super::{KernelForm, Operands, Ready, choice, divisor, kernel};
use crate::expr::dtype::{ToWord, with_type};
use crate::expr::evaluate::Reduced;
use crate::expr::graph::View;
use crate::expr::program::Lowered;
use crate::expr::ptx::{self, Param, THREADS, Variant};

/// Reduces into a target on a GPU.
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "there is no GPU"))]
pub(crate) fn reduce(
    target: &Arc<View>,
    lowered: &Lowered,
    reduced: &Reduced,
    name: &dyn Fn() -> String,
) -> Result<()> {
    let targets = [target];
    let operands = Operands::new(&targets, lowered, &reduced.nest);
    let device = target.stream.device();
    let mut fold = operands.fold(reduced, device.properties().multiprocessors as usize);
    let kernel = kernel(&lowered.program, &KernelForm::Once(fold.variant.clone()), device, name)?;
    let folding = fold.variant.fold.expect("it folds");
    if folding.split {
        let at_once = storage::blocks_at_once(&target.stream, kernel.info, THREADS as u32)?;
        fold.parts = choice::even_parts(fold.blocks, fold.parts, at_once);
    }
    let shared = if folding.split { Some(Shared::of(&target.stream, kernel.can_fault, &fold)?) } else { None };
    let words = operands.fold_words(&fold, shared.as_ref());
    let grid = (
        operands.extent("the number of blocks", fold.blocks, name)?,
        operands.extent("the parts of a result", fold.parts, name)?,
    );
    let ready = Ready { info: kernel.info, words, dims: Dims::new(grid, THREADS as u32) };
    ready.launch_with(&targets, &lowered.inputs, shared.as_ref().and_then(|shared| shared.own.as_ref()))
}

/// Returns the text of a reduction's kernel for an architecture.
pub(crate) fn reduction_text(target: &Arc<View>, lowered: &Lowered, reduced: &Reduced, arch: u32) -> Result<String> {
    let targets = [target];
    let operands = Operands::new(&targets, lowered, &reduced.nest);
    let multiprocessors = target.stream.device().properties().multiprocessors as usize;
    KernelForm::Once(operands.fold(reduced, multiprocessors).variant).text(&lowered.program, arch)
}

/// The launch of a reduction.
struct FoldLaunch {
    variant: Variant,
    /// The number of groups of blocks with their own results, and the number of blocks in each group.
    blocks: usize,
    parts: usize,
    /// The number of rows of results, the number of vectors of columns, and the size of the input for each result, in vectors and in
    /// elements.
    rows: usize,
    columns: usize,
    depth: usize,
    elements: usize,
}

impl FoldLaunch {
    /// Returns the number of accumulators of the blocks that share results.
    fn accumulators(&self) -> usize {
        let in_columns = self.variant.fold.is_some_and(|fold| fold.ranks[2] > 0);
        let of_block = if in_columns { ptx::LANES * usize::from(self.variant.width) } else { 1 };
        self.blocks * self.parts * of_block
    }
}

/// The number of blocks that a multiprocessor gets if blocks share results.
const BLOCKS: usize = 8;

/// Bytes of an accumulator.
const ITEM: usize = 16;

/// The memory that blocks with the same results share. The counters are zero before each launch, and after it unless it has a fault.
struct Shared {
    counters: u64,
    accumulators: u64,
    /// The memory, if it is that of this launch alone.
    own: Option<Storage>,
}

impl Shared {
    fn of(stream: &Stream, can_fault: bool, fold: &FoldLaunch) -> Result<Self> {
        /// A stream keeps accumulators for blocks of columns with so many elements in a vector: all types of four bytes or more.
        const WIDTH: usize = 4;
        let blocks = BLOCKS * stream.device().properties().multiprocessors as usize;
        // Each result has two blocks or more.
        let counters = (4 * blocks / 2).next_multiple_of(ITEM);
        let most = blocks * ptx::LANES * WIDTH;
        let fits = 4 * fold.blocks <= counters && fold.accumulators() <= most;
        let kept = if can_fault || !fits {
            None
        } else {
            storage::kept_memory(stream, KeptFor::Results, counters + ITEM * most, counters)?
        };
        if let Some(kept) = kept {
            return Ok(Self { counters: kept, accumulators: kept + counters as u64, own: None });
        }
        let counters = fold.blocks.next_multiple_of(4) / 2;
        let words = counters + ITEM / 8 * fold.accumulators();
        let mut memory = storage::temporary::<u64>(stream, words)?;
        // The graph of a capture keeps the memory, and each of its launches clears the counters.
        memory.slice_mut(..counters)?.set_zero(stream)?;
        let address = memory.address();
        Ok(Self { counters: address, accumulators: address + 8 * counters as u64, own: Some(Storage::of(memory)) })
    }
}

impl Operands<'_> {
    /// Chooses the launch of a reduction.
    fn fold(&self, reduced: &Reduced, multiprocessors: usize) -> FoldLaunch {
        let Reduced { nest, ranks, spec } = reduced;
        let extent = |axes: std::ops::Range<usize>| nest.extents[axes].iter().product::<usize>();
        let [outer, middle, inner] = *ranks;
        let (rows, elements) = (extent(0..outer), extent(outer..outer + middle));
        let columns = extent(outer + middle..nest.rank);
        let program = &self.lowered.program;
        let most = if program.shifts.is_empty() { 16 } else { ptx::most_around(program, nest) };
        let (variant, rest) = Variant::folding(nest, &self.sizes, &self.addresses, self.kinds(), *ranks, most);
        let mut variant = variant.shifted(program, nest);
        let width = usize::from(variant.width);
        let in_columns = inner > 0;
        let (depth, vectors) = if in_columns { (elements, columns / width) } else { (elements / width, 1) };
        // A short row gets about one lane for each of its vectors.
        let few = !in_columns && depth <= 4 * ptx::LANES && rows > 1;
        let lanes = if few { depth.next_power_of_two().clamp(1, ptx::LANES) } else { 0 };
        let blocks = match (in_columns, lanes) {
            (true, _) => rows * vectors.div_ceil(ptx::LANES),
            (false, 0) => rows,
            (false, lanes) => rows.div_ceil(THREADS / lanes),
        };
        // There are enough blocks for a device that holds as many threads as it can, and each has some work.
        let threads = if in_columns { ptx::WARPS } else { THREADS };
        let most = depth / (threads * usize::from(variant.vectors)).max(1);
        let parts = if few { 1 } else { (BLOCKS * multiprocessors / blocks.max(1)).min(most).clamp(1, 65535) };
        let split = parts > 1;
        let ranks = ranks.map(|rank| rank as u8);
        variant.fold = Some(ptx::Folding { spec: *spec, ranks, lanes: lanes as u8, split, rest });
        FoldLaunch { variant, blocks, parts, rows, columns: vectors, depth, elements }
    }

    /// Returns the parameters of a reduction without the control, one word each.
    fn fold_words(&self, fold: &FoldLaunch, shared: Option<&Shared>) -> Vec<u64> {
        let program = &self.lowered.program;
        let dtype = program.code[program.results[0] as usize].dtype;
        let mut words = Vec::with_capacity(32);
        for param in fold.variant.params(program) {
            match param {
                Param::Rows => words.push(fold.rows as u64),
                Param::Depth => words.push(fold.depth as u64),
                Param::Elements => words.push(fold.elements as u64),
                Param::Columns => words.push(fold.columns as u64),
                Param::Tiles(_) => words.extend(divisor(fold.columns.div_ceil(ptx::LANES))),
                Param::Size => {
                    words.push(with_type!(dtype, T => ConvertTo::<T>::convert(fold.elements as u64).to_word()))
                }
                Param::Counters => words.push(shared.map_or(0, |shared| shared.counters)),
                Param::Partials => words.push(shared.map_or(0, |shared| shared.accumulators)),
                param => self.word(param, &fold.variant, 0, &mut words),
            }
        }
        words
    }
}
