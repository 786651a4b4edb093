//! Patches: the arrangement of threads if there are neighbours along several axes.
//!
//! Without patches, the threads of a block are in a row along the innermost axis, and other blocks read the rows above and below: a stencil
//! of five points reads each element three times from the second-level cache, and a stencil of seven points five times. With patches, a
//! thread takes a vector in each of a few rows. Most neighbours of these rows are the same, and stay in registers. The threads of a block
//! are arranged along up to three axes, so the first-level cache has most of the elements that several of them read. If an axis is not a
//! multiple of the rows of a thread, the last thread reads other rows again in place of those past the end, and does not store them.
//!
//! The kernel reads all elements of the rows before it computes, if this leaves enough threads on a multiprocessor. Otherwise, if ptxas can
//! move the loads freely and no thread has rows past the end, the loads of each row are written before the row's own instructions.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::around::Around;
use super::emit::{Class, Reg, op};
use super::neighbours::Field;
use super::{At, Kernel, Param, THREADS, Variant, Way};
use crate::expr::layout::nest::Nest;
use crate::expr::layout::shape::MAX_RANK;
use crate::expr::program::Program;

/// The arrangement of a block's threads along the axes of a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Patch {
    /// The number of threads along each axis. They are powers of two, and their product is [`THREADS`].
    threads: [u16; MAX_RANK],
    /// The axis along which a thread takes several rows.
    pub(super) axis: u8,
    /// The number of these rows.
    pub(super) rows: u8,
    /// Whether each row's neighbours are read after the rows before it are computed, because the neighbours of all rows would take too many
    /// registers.
    pub(super) in_turn: bool,
}

impl Patch {
    /// Returns the number of elements of a block along an axis. Along the innermost axis, it is the number of vectors.
    fn tile(&self, axis: usize) -> usize {
        let rows = if axis == usize::from(self.axis) { self.rows.into() } else { 1 };
        usize::from(self.threads[axis]) * rows
    }

    /// Returns the number of blocks along an axis with this number of elements. Along the innermost axis, `extent` is the number of
    /// vectors.
    pub(crate) fn blocks(&self, axis: usize, extent: usize) -> usize {
        extent.div_ceil(self.tile(axis))
    }

    /// Returns the patches of a program's threads, if there are neighbours along an axis other than the innermost.
    fn new(program: &Program, nest: &Nest, width: usize) -> Option<Self> {
        /// The most registers of 32 bits for the elements that several rows read at once. With more registers, a multiprocessor would have
        /// two blocks in place of four.
        const REGISTERS: usize = 48;
        /// The most registers for the elements that rows read in turn. Only one row needs the elements of rows along another axis.
        const IN_TURN: usize = 64;
        /// The most instructions of several rows.
        const INSTRUCTIONS: usize = 512;
        /// The number of threads that keep any GPU busy.
        const BUSY: usize = 1 << 17;
        let inner = nest.rank - 1;
        let mut outer: Vec<usize> = nest.apart.iter().flatten().map(|apart| apart.axis.into()).collect();
        outer.retain(|&axis| axis != inner);
        outer.sort_by_key(|&axis| std::cmp::Reverse(axis));
        let axis = *outer.first()?;
        let around = |rows: usize| {
            let field = Field::new(program, &nest.apart, inner, (axis, rows));
            let cells = field.cells(width);
            (field.registers(&cells), field.is_narrow(&cells, width))
        };
        // If no rows are past the end, there are no branches between rows.
        let in_turn = |rows: usize, narrow: bool| narrow && outer.len() > 1 && nest.extents[axis].is_multiple_of(rows);
        let fits = |rows: usize| {
            let (registers, narrow) = around(rows);
            rows <= nest.extents[axis]
                && (rows == 1 || width * rows <= super::most_computed(program))
                && nest.elements / (width * rows) >= BUSY
                && program.code.len() * width * rows <= INSTRUCTIONS
                && registers <= if in_turn(rows, narrow) { IN_TURN } else { REGISTERS }
        };
        let rows = [4, 2].into_iter().find(|&rows| fits(rows)).unwrap_or(1);
        let in_turn = rows > 1 && around(rows).0 > REGISTERS;
        // A row takes the most lanes for which at most a third of the lanes are idle.
        let vectors = nest.extents[inner] / width;
        let fills = |&lanes: &usize| vectors.next_multiple_of(lanes) <= vectors + vectors / 2;
        let lanes = [32, 16, 8, 4, 2].into_iter().find(fills).unwrap_or(1);
        let mut threads = [1u16; MAX_RANK];
        threads[inner] = lanes as u16;
        // The rest of the threads are along other axes, in a shape as close to a cube as possible. If those axes are short, the threads are
        // along the innermost axis.
        let mut patch = Self { threads, axis: axis as u8, rows: rows as u8, in_turn };
        for _ in 0..(THREADS / lanes).ilog2() {
            let open = |&axis: &usize| patch.tile(axis) < nest.extents[axis];
            let next = outer.iter().copied().take(2).filter(open).min_by_key(|&axis| patch.tile(axis));
            patch.threads[next.unwrap_or(inner)] *= 2;
        }
        Some(patch)
    }
}

impl Variant {
    /// Arranges the threads in patches, if the program has neighbours along several axes.
    pub(crate) fn patched(mut self, program: &Program, nest: &Nest) -> Self {
        if self.wide {
            return self;
        }
        self.patch = Patch::new(program, nest, self.width.into());
        if self.patch.is_some() {
            // Every operand has an index along each axis.
            for way in self.operands.iter_mut().filter(|way| **way == Way::Linear) {
                *way = Way::Row;
            }
        }
        self
    }
}

impl Kernel<'_> {
    /// Writes the body after the parameters.
    pub(super) fn write_patches(&mut self, patch: Patch) {
        let (inner, width) = (usize::from(self.variant.rank) - 1, usize::from(self.variant.width));
        let (axis, rows) = (usize::from(patch.axis), usize::from(patch.rows));
        let mut block = self.e.op_with(Class::B32, "mov.u32", &[], "%ctaid.x");
        let mut thread = self.e.op_with(Class::B32, "mov.u32", &[], "%tid.x");
        let done = self.e.label();
        let (mut index, mut outside) = (vec![None; MAX_RANK], None);
        for at in (0..=inner).rev() {
            let mut tile = block;
            if at > 0 {
                (block, tile) = self.divide(block, Param::Divisor(at));
            }
            let threads = patch.threads[at];
            let mut place = tile;
            if threads > 1 {
                let lane = self.e.op_with(Class::B32, "and.b32", &[thread], threads - 1);
                thread = self.e.op_with(Class::B32, "shr.u32", &[thread], threads.ilog2());
                let first = self.e.op_with(Class::B32, "mul.lo.u32", &[tile], threads);
                place = self.e.op(Class::B32, "add.u32", &[first, lane]);
            }
            let each = if at == inner { width } else { patch.tile(at) / usize::from(threads) };
            if each > 1 {
                place = self.e.op_with(Class::B32, "mul.lo.u32", &[place], each);
            }
            if patch.tile(at) > 1 {
                let extent = self.argument(Param::Extent(at))[0];
                let beyond = self.e.op(Class::Pred, "setp.ge.u32", &[place, extent]);
                outside = Some(outside.map_or(beyond, |outside| self.e.op(Class::Pred, "or.pred", &[outside, beyond])));
            }
            index[at] = Some(place);
        }
        if let Some(outside) = outside {
            op!(self.e, "@{outside} bra {done};");
        }
        let places = self.rows_of(&index, axis, rows);
        if patch.in_turn {
            self.write_in_turn(&places, width);
            self.e.place(&done);
            op!(self.e, "ret;");
            return;
        }
        let cells = self.read_around(&places[0], width);
        let mut values: Vec<_> =
            places.iter().enumerate().map(|(row, place)| self.loaded_of(&cells, row, place, width)).collect();
        for (row, (place, values)) in places.iter().zip(&mut values).enumerate() {
            if row > 0 {
                let first = index[axis].expect("an index along each axis");
                let extent = self.argument(Param::Extent(axis))[0];
                let at = self.e.op_with(Class::B32, "add.s32", &[first], row);
                let outside = self.e.op(Class::Pred, "setp.ge.s32", &[at, extent]);
                op!(self.e, "@{outside} bra {done};");
            }
            self.store(values, place, width);
        }
        self.e.place(&done);
        op!(self.e, "ret;");
    }

    /// Writes rows one after the other. No row is past the end, so there are no branches between rows, and ptxas has one block of
    /// instructions to order.
    fn write_in_turn(&mut self, places: &[At], width: usize) {
        // The elements at the places themselves are loaded first, because the results may be stored there.
        let mut values: Vec<_> = places.iter().map(|place| self.loaded_alone(place, width)).collect();
        let (mut around, mut cells) = (Around::default(), BTreeMap::new());
        for (row, (place, values)) in places.iter().zip(&mut values).enumerate() {
            self.read_around_row(row, &places[0], width, &mut around, &mut cells);
            self.add_around(values, &cells, row, width);
            self.store(values, place, width);
        }
    }

    /// Returns the places of a thread's rows along an axis. For rows past the end, it returns the place of the last row.
    fn rows_of(&mut self, index: &[Option<Reg>], axis: usize, rows: usize) -> Vec<At> {
        let mut base = index.to_vec();
        let first = base[axis].take().expect("an index along each axis");
        let last = if rows > 1 {
            let extent = self.argument(Param::Extent(axis))[0];
            Some(self.e.op_with(Class::B32, "sub.s32", &[extent], 1))
        } else {
            None
        };
        let base = self.placed(base, None);
        let mut places = Vec::with_capacity(rows);
        for row in 0..rows {
            let at = match last {
                Some(last) if row > 0 => {
                    let at = self.e.op_with(Class::B32, "add.s32", &[first], row);
                    self.e.op(Class::B32, "min.s32", &[at, last])
                }
                _ => first,
            };
            let mut place = base.clone();
            place.index[axis] = Some(at);
            for (operand, address) in place.addresses.iter_mut().enumerate() {
                *address = address.map(|address| self.indexed(operand, axis, address, at));
            }
            places.push(place);
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::super::neighbours::most;
    use super::*;
    use crate::expr::dtype::DType;
    use crate::expr::graph::{MAX_ARGUMENTS, Op};
    use crate::expr::layout::nest::Axes;
    use crate::expr::layout::shape::{Layout, Shape};
    use crate::expr::program::{Instruction, What};

    fn patch(extents: &[usize], apart: u16, width: usize) -> (Option<Patch>, Nest) {
        let shape = Shape::new(extents).unwrap();
        let dense = Layout::contiguous(shape);
        let nest = Nest::keeping(&shape, [&dense, &dense].into_iter(), Axes(apart)).unwrap();
        (Patch::new(&Program::default(), &nest, width), nest)
    }

    /// Threads are listed with the outermost axis first, and then the number of rows.
    #[test]
    fn patches_are_nearly_cubes_of_whole_warps() {
        let threads = |extents: &[usize], apart, width| {
            let (patch, nest) = patch(extents, apart, width);
            patch.map(|patch| (patch.threads[..nest.rank].to_vec(), patch.rows))
        };
        assert_eq!(threads(&[1 << 20], 0b1, 4), None);
        assert_eq!(threads(&[16384, 16384], 0b11, 4), Some((vec![8, 32], 4)));
        assert_eq!(threads(&[768, 768, 768], 0b111, 4), Some((vec![4, 2, 32], 4)));
        // There are neighbours along the outer axis only.
        assert_eq!(threads(&[768, 768, 768], 0b100, 4), Some((vec![8, 32], 4)));
        // There are rows of 9 vectors, few rows, or few elements.
        assert_eq!(threads(&[1 << 14, 1 << 8, 36], 0b11, 4), Some((vec![1, 64, 4], 4)));
        assert_eq!(threads(&[1 << 12, 3, 1 << 12], 0b11, 4), Some((vec![1, 2, 128], 2)));
        assert_eq!(threads(&[64, 64], 0b11, 4), Some((vec![16, 16], 1)));
    }

    #[test]
    fn threads_divide_few_integers() {
        let shape = Shape::new(&[1 << 14, 1 << 14]).unwrap();
        let dense = Layout::contiguous(shape);
        let nest = Nest::keeping(&shape, [&dense, &dense].into_iter(), Axes(0b11)).unwrap();
        let of = |op, dtype| {
            let code = vec![Instruction { what: What::Op(op), dtype, arguments: [0; MAX_ARGUMENTS] }];
            let program = Program { code, ..Program::default() };
            let rows = [1, 2, 4, 8, 16].map(|width| Patch::new(&program, &nest, width).unwrap().rows);
            (most(&program, &nest), rows)
        };
        for division in [Op::Div, Op::Rem, Op::FloorDiv, Op::FloorRem] {
            assert_eq!(of(division, DType::U8), (8, [4, 4, 2, 1, 1]));
            assert_eq!(of(division, DType::F16), (16, [4; 5]));
        }
        assert_eq!(of(Op::Add, DType::U8), (16, [4; 5]));
    }

    #[test]
    fn blocks_cover_every_axis() {
        for extents in [&[16384, 16384][..], &[5, 1 << 10, 3, 4092], &[1 << 14, 1 << 8, 36], &[7, 3, 2, 1]] {
            for apart in [0b10, 0b11, 0b110, 0b111] {
                let (patch, nest) = patch(extents, apart, 1);
                let Some(patch) = patch else { continue };
                assert_eq!(patch.threads.iter().map(|&threads| usize::from(threads)).product::<usize>(), THREADS);
                for axis in 0..nest.rank {
                    let (tile, blocks) = (patch.tile(axis), patch.blocks(axis, nest.extents[axis]));
                    assert!(blocks * tile >= nest.extents[axis] && (blocks - 1) * tile < nest.extents[axis]);
                }
            }
        }
    }
}
