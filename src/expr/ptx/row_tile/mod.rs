//! Row tiles: wide stencils along the innermost axis, with a sliding window in registers.
//!
//! A tile is a part of one row. Its threads load the tile and the halo on both sides into shared memory, as vectors. Each thread then
//! computes a few consecutive elements: it reads its window from shared memory, each element once. The elements of a thread form an odd
//! number of vectors, so that the lanes of a warp read from different banks without padding. Values that the rest of the program needs go
//! through shared memory to the threads that store them, so that all accesses of global memory are contiguous.
//!
//! With `w` weights, `e` elements in each thread and `v` elements in a vector, the cost for each element is: 2 `w` instructions of
//! arithmetic, or `w` if contracted; `(w + e - 1) / (v e)` vector loads from shared memory, each of which takes 4 cycles of a warp; and
//! about 3 more loads and stores for the tile and the results. With 33 weights of `f32`, `e = 10` and `v = 2`, this is 66 instructions of
//! arithmetic for 2 loads: arithmetic and memory are the limits. No instruction computes an address in the window, because all distances are
//! constants. Only tiles at the ends of rows have code for the boundary.

mod split;
mod stage;
#[cfg(test)]
mod tests;
mod window;

use std::fmt::Write;

use super::emit::{Class, Reg, op};
use super::{At, Kernel, Kinds, Param, THREADS, Variant, Way};
use crate::expr::layout::nest::{Apart, Nest};
use crate::expr::layout::shape::MAX_RANK;
use crate::expr::program::{Program, What};
use split::Split;
use stage::{Footprints, TileMemory};

/// The number of lanes of a warp.
const LANES: usize = 32;
/// The number of bytes of a vector.
const VECTOR: usize = 16;

/// The arrangement of a block's threads along rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RowTile {
    /// The number of threads of a tile. They are whole warps.
    pub(super) threads: u16,
    /// The number of consecutive elements that a thread computes.
    pub(super) each: u8,
    /// Whether tiles are loaded as vectors, because rows are aligned.
    pub(super) aligned: bool,
}

impl RowTile {
    /// Returns the numbers of elements that a thread can compute, the fastest first, if the largest staged elements have this number of bytes,
    /// and the longest footprint is `reach` elements. Narrow footprints leave memory as the limit, and short loads of many threads are fastest
    /// there. Wide ones take fewer loads from shared memory if a thread computes more elements. The numbers are those of an H200.
    fn each_of(bytes: usize, reach: usize) -> &'static [usize] {
        match (bytes, reach) {
            (8, ..=12) => &[3],
            (8, ..=40) => &[5, 3],
            (8, ..=64) => &[10, 5, 3],
            (8, _) => &[6, 3],
            (4, ..=12) => &[6],
            (4, ..=48) => &[10, 6],
            (4, _) => &[12, 10, 6],
            (2, ..=64) => &[24, 20, 12, 8],
            (_, ..=64) => &[24, 8],
            _ => &[8],
        }
    }

    /// Returns the number of elements of a type that are read at once.
    fn vector(&self, bytes: usize) -> usize {
        (VECTOR / bytes).min(most_at_once(self.each.into()))
    }

    /// Returns the number of elements of a tile.
    fn len(&self) -> usize {
        usize::from(self.threads) * usize::from(self.each)
    }

    /// Returns the number of tiles of a row.
    pub(crate) fn tiles(&self, extent: usize) -> usize {
        extent.div_ceil(self.len())
    }

    /// Returns the number of tiles of a block.
    fn in_block(&self) -> usize {
        THREADS / usize::from(self.threads)
    }

    /// Returns the number of blocks for this number of tiles.
    pub(crate) fn blocks(&self, tiles: usize) -> usize {
        tiles.div_ceil(self.in_block())
    }
}

/// Returns the largest power of two that divides a number of elements.
fn most_at_once(each: usize) -> usize {
    1 << each.trailing_zeros()
}

/// Returns the number of bytes of the largest staged elements. Returns `None` if the program's neighbours are along other axes.
fn staged_bytes(program: &Program, nest: &Nest) -> Option<usize> {
    let alone = |apart: &Apart| usize::from(apart.axis) + 1 == nest.rank && !apart.backwards;
    if !nest.apart[0].as_ref().is_some_and(alone) || nest.apart[1..].iter().any(Option::is_some) {
        return None;
    }
    program.inputs.iter().filter(|input| input.shifted).map(|input| input.dtype.size()).max()
}

impl Variant {
    /// Returns the variant with row tiles, for operands with these sizes, addresses and kinds. Returns `None` if row tiles are not
    /// possible, or if they would be slower and `always` is not set.
    pub(crate) fn row_tiled(
        program: &Program,
        nest: &Nest,
        (sizes, addresses, kinds): (&[usize], &[u64], Kinds),
        always: bool,
    ) -> Option<Self> {
        /// The shortest footprint for which row tiles are faster.
        const NARROW: usize = 9;
        /// The most instructions of a thread.
        const INSTRUCTIONS: usize = 4096;
        /// The most shared memory of a block. A kernel may have 48 KiB on every architecture, and functions that panic need a part of it.
        const BYTES: usize = (48 << 10) - VECTOR;
        let bytes = staged_bytes(program, nest)?;
        let of = |most: usize| Self::of(nest, sizes, addresses, kinds, most);
        let split = Split::new(program, &split::uniform(program, &of(1).operands))?;
        let footprints = Footprints::new(program, &split, &nest.apart);
        let reach = footprints.reach();
        if !always && (reach < NARROW || !footprints.are_dense()) {
            return None;
        }
        let mut each = RowTile::each_of(bytes, reach).iter().copied();
        let each = each.find(|each| program.code.len() * each <= INSTRUCTIONS)?;
        let mut variant = of(most_at_once(each)).shifted(program, nest);
        if variant.wide {
            return None;
        }
        let (inner, extent) = (nest.rank - 1, nest.extents[nest.rank - 1]);
        for way in variant.operands.iter_mut().filter(|way| **way == Way::Linear) {
            *way = Way::Row;
        }
        let aligned = |operand: usize| {
            let strides = &nest.operands[operand].strides;
            let whole = |stride: &isize| (stride * sizes[operand] as isize) % VECTOR as isize == 0;
            strides[inner] == 1 && addresses[operand] % VECTOR as u64 == 0 && strides[..inner].iter().all(whole)
        };
        let loads = program.inputs.iter().filter(|input| !input.gathered).zip(program.results.len()..);
        let aligned = loads.filter(|(input, _)| input.shifted).all(|(_, operand)| aligned(operand));
        let choice = |threads: usize| {
            let tile = RowTile { threads: threads as u16, each: each as u8, aligned };
            let memory = TileMemory::new(program, &split, &footprints, tile);
            let tiles = tile.tiles(extent);
            let cost = tiles * (tile.len() * reach + VECTOR * (tile.len() + reach));
            let pays = tiles * tile.len() <= 2 * extent;
            (memory.bytes * tile.in_block() <= BYTES && (always || pays)).then_some((cost, tile))
        };
        let (_, tile) = [256, 128, 64, 32].into_iter().filter_map(choice).min_by_key(|(cost, _)| *cost)?;
        variant.row = Some(tile);
        Some(variant)
    }
}

/// The place of a thread.
struct TileThread {
    /// The thread's number in the tile, its number in the warp, and the number of the warp's first thread.
    thread: Reg,
    lane: Reg,
    warp: Reg,
    /// The indices of the tile's first element along the axes.
    index: Vec<Option<Reg>>,
    /// The address of the tile's shared memory.
    shared: Reg,
}

impl Kernel<'_> {
    /// Writes the body after the parameters.
    pub(super) fn write_row_tiles(&mut self, tile: RowTile) {
        let uniform: Vec<bool> = self.uniform.iter().map(Option::is_some).collect();
        let split = Split::new(self.program, &uniform).expect("what the tiles were chosen for");
        let footprints = Footprints::new(self.program, &split, &self.variant.apart);
        let memory = TileMemory::new(self.program, &split, &footprints, tile);
        let inner = usize::from(self.variant.rank) - 1;
        let done = self.e.label();
        let (place, number) = self.tile_place(tile, &memory, &done);
        for staged in &memory.staged {
            self.stage(staged, tile, &place);
        }
        self.synchronize(tile, number);
        // Warps past the end of the row have nothing to compute.
        let start = place.index[inner].expect("an index along each axis");
        let each = usize::from(tile.each);
        let start = self.e.op_with(Class::B32, "mad.lo.u32", &[place.warp], format_args!("{each}, {start}"));
        let extent = self.argument(Param::Extent(inner))[0];
        let outside = self.e.op(Class::Pred, "setp.ge.s32", &[start, extent]);
        op!(self.e, "@{outside} bra {done};");
        self.pass_windows(&split, &memory, tile, &place);
        op!(self.e, "bar.warp.sync 0xffffffff;");
        self.store_rest(&split, &memory, tile, &place, start);
        self.e.place(&done);
        op!(self.e, "ret;");
    }

    /// Returns the place of a thread, and the number of its tile in the block if there are several tiles. Threads past the last tile branch
    /// to `done`.
    fn tile_place(&mut self, tile: RowTile, memory: &TileMemory, done: &str) -> (TileThread, Option<Reg>) {
        let (threads, inner) = (usize::from(tile.threads), usize::from(self.variant.rank) - 1);
        let block = self.e.op_with(Class::B32, "mov.u32", &[], "%ctaid.x");
        let mut thread = self.e.op_with(Class::B32, "mov.u32", &[], "%tid.x");
        op!(self.e, ".shared .align 16 .b8 row_tiles[{}];", memory.bytes * tile.in_block());
        let mut shared = self.e.op_with(Class::B32, "mov.u32", &[], "row_tiles");
        let (mut rest, mut number) = (block, None);
        if tile.in_block() > 1 {
            let of = self.e.op_with(Class::B32, "shr.u32", &[thread], threads.ilog2());
            thread = self.e.op_with(Class::B32, "and.b32", &[thread], threads - 1);
            shared = self.e.op_with(Class::B32, "mad.lo.u32", &[of], format_args!("{}, {shared}", memory.bytes));
            rest = self.e.op_with(Class::B32, "mad.lo.u32", &[block], format_args!("{}, {of}", tile.in_block()));
            let count = self.argument(Param::Count)[0];
            let count = self.e.op(Class::B32, "cvt.u32.u64", &[count]);
            let outside = self.e.op(Class::Pred, "setp.ge.u32", &[rest, count]);
            op!(self.e, "@{outside} bra {done};");
            number = Some(of);
        }
        let mut index = vec![None; MAX_RANK];
        for axis in (1..=inner).rev() {
            let (quotient, remainder) = self.divide(rest, Param::Divisor(axis));
            index[axis] = Some(remainder);
            rest = quotient;
        }
        index[0] = Some(rest);
        let in_row = index[inner].expect("an index along each axis");
        index[inner] = Some(self.e.op_with(Class::B32, "mul.lo.u32", &[in_row], tile.len()));
        let lane = self.e.op_with(Class::B32, "and.b32", &[thread], LANES - 1);
        let warp = self.e.op(Class::B32, "sub.u32", &[thread, lane]);
        (TileThread { thread, lane, warp, index, shared }, number)
    }

    /// Waits for the threads of a tile.
    fn synchronize(&mut self, tile: RowTile, number: Option<Reg>) {
        match number {
            _ if usize::from(tile.threads) == LANES => op!(self.e, "bar.warp.sync 0xffffffff;"),
            Some(number) => op!(self.e, "bar.sync {number}, {};", tile.threads),
            None => op!(self.e, "bar.sync 0;"),
        }
    }

    /// Computes the values that need no neighbours, vector by vector along the row, and stores the results. `start` is the index of the
    /// warp's first element.
    fn store_rest(&mut self, split: &Split, memory: &TileMemory, tile: RowTile, place: &TileThread, start: Reg) {
        let (inner, width) = (usize::from(self.variant.rank) - 1, usize::from(self.variant.width));
        let (each, step) = (usize::from(tile.each), LANES * width);
        let first = self.e.op_with(Class::B32, "mad.lo.u32", &[place.lane], format_args!("{width}, {start}"));
        let begin = self.e.op_with(Class::B32, "mul.lo.u32", &[place.warp], each);
        let begin = self.e.op_with(Class::B32, "mad.lo.u32", &[place.lane], format_args!("{width}, {begin}"));
        let passed: Vec<Reg> = memory
            .passed
            .iter()
            .map(|passed| {
                let size = passed.dtype.size();
                let from = self.e.op_with(Class::B32, "mad.lo.u32", &[begin], format_args!("{size}, {}", place.shared));
                self.e.op_with(Class::B32, "add.u32", &[from], passed.offset)
            })
            .collect();
        let (partial, done) = (self.e.label(), self.e.label());
        let extent = self.argument(Param::Extent(inner))[0];
        let end = self.e.op_with(Class::B32, "add.s32", &[start], LANES * each);
        let cut = self.e.op(Class::Pred, "setp.gt.s32", &[end, extent]);
        op!(self.e, "@{cut} bra {partial};");
        let places = self.row_places(place, first, (each / width, step));
        let rounds: Vec<usize> = (0..places.len()).map(|round| round * step).collect();
        let at_once = self.places_at_once(split, memory);
        for (places, rounds) in places.chunks(at_once).zip(rounds.chunks(at_once)) {
            self.store_places(split, memory, places, &passed, rounds);
        }
        op!(self.e, "bra {done};");
        // At the end of the row, the loop takes only the vectors inside.
        self.e.place(&partial);
        let again = self.e.label();
        self.e.place(&again);
        let outside = self.e.op(Class::Pred, "setp.ge.s32", &[first, extent]);
        op!(self.e, "@{outside} bra {done};");
        let places = self.row_places(place, first, (1, step));
        self.store_places(split, memory, &places, &passed, &[0]);
        op!(self.e, "add.s32 {first}, {first}, {step};");
        for (&passed, value) in passed.iter().zip(&memory.passed) {
            op!(self.e, "add.u32 {passed}, {passed}, {};", step * value.dtype.size());
        }
        let more = self.e.op(Class::Pred, "setp.lt.s32", &[first, end]);
        op!(self.e, "@{more} bra {again};");
        self.e.place(&done);
    }

    /// Returns the number of places for which all values are loaded before anything is computed.
    fn places_at_once(&self, split: &Split, memory: &TileMemory) -> usize {
        /// The most registers of 32 bits that loads fill at once. A single place may take more.
        const REGISTERS: usize = 96;
        let loads = |at: &usize| {
            split.rest[*at] && self.uniform[*at].is_none() && matches!(self.program.code[*at].what, What::Load(_))
        };
        let loaded = (0..self.program.code.len()).filter(loads).map(|at| self.program.code[at].dtype);
        let passed = memory.passed.iter().map(|value| value.dtype);
        let registers: usize = loaded.chain(passed).map(|dtype| dtype.size().div_ceil(4)).sum();
        (REGISTERS / (registers * usize::from(self.variant.width))).max(1)
    }

    /// Returns `count` places of a row, `step` elements apart, starting at an index.
    fn row_places(&mut self, place: &TileThread, first: Reg, (count, step): (usize, usize)) -> Vec<At> {
        let inner = usize::from(self.variant.rank) - 1;
        let mut index = place.index.clone();
        index[inner] = Some(first);
        let base = self.placed(index.clone(), None);
        let in_rows = self.variant.operands.iter().all(|way| !matches!(way, Way::Strided));
        (0..count)
            .map(|round| {
                if round == 0 {
                    return base.clone();
                }
                if !in_rows {
                    let mut index = index.clone();
                    index[inner] = Some(self.e.op_with(Class::B32, "add.u32", &[first], round * step));
                    return self.placed(index, None);
                }
                let moved = |operand: usize| match self.variant.operands[operand] {
                    Way::Row => round * step * self.size(operand),
                    _ => 0,
                };
                At { offsets: (0..base.offsets.len()).map(moved).collect(), ..base.clone() }
            })
            .collect()
    }

    /// Returns the values that the rest loads at a place, and the uniform values.
    fn loaded_rest(&mut self, split: &Split, place: &At, width: usize) -> Vec<Vec<Reg>> {
        (0..self.program.code.len())
            .map(|at| {
                let one = self.program.code[at];
                match (self.uniform[at], one.what) {
                    (Some(value), _) => vec![value],
                    (None, What::Load(input)) if split.rest[at] => self.load(input, one.dtype, place, width),
                    _ => Vec::new(),
                }
            })
            .collect()
    }

    /// Loads, computes and stores a vector at each place. The values from windows start at the addresses `passed`, plus the number of
    /// elements in `further` for each place.
    fn store_places(&mut self, split: &Split, memory: &TileMemory, places: &[At], passed: &[Reg], further: &[usize]) {
        let width = usize::from(self.variant.width);
        let mut values: Vec<Vec<Vec<Reg>>> = Vec::with_capacity(places.len());
        for (place, further) in places.iter().zip(further) {
            let mut loaded = self.loaded_rest(split, place, width);
            for (value, &address) in memory.passed.iter().zip(passed) {
                let offset = further * value.dtype.size();
                loaded[value.at] = self.e.load("shared", value.dtype, address, offset, width);
            }
            values.push(loaded);
        }
        for (place, values) in places.iter().zip(&mut values) {
            for at in 0..values.len() {
                if values[at].is_empty() && split.rest[at] {
                    values[at] = self.value(at, values, place, width);
                }
            }
            self.store_results(values, place, width);
        }
    }
}
