//! Neighbours in kernels.
//!
//! A thread reads each element around its vectors once, even if the element is a neighbour of several results. It reads elements at the
//! vectors' own indices along the innermost axis as vectors, in any row: each index along another axis is computed once, by the rule of the
//! boundary. It reads elements beside the vectors one by one, at indices that are computed in the same way.
//!
//! If several of these elements are in one aligned vector before or after the thread's own, the thread reads them one by one only at the
//! ends of rows. In all other places, which are nearly all, all neighbours are inside: addresses are at constant distances, and the thread
//! reads only vectors. Both ways join before the computation.
//!
//! If this takes too many registers, the thread reads each neighbour when it needs it, by its index.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::Range;

use super::around::Around;
use super::emit::{Class, Reg, op};
use super::{At, Kernel, Param, Variant, Way};
use crate::expr::layout::nest::{Apart, Nest};
use crate::expr::layout::shape::MAX_RANK;
use crate::expr::neighbours::neighbour::{Rule, Spare};
use crate::expr::program::{Program, What};

/// The most registers of 32 bits for the elements that are read around a vector.
const REGISTERS: usize = 96;

/// The most instructions of a kernel whose threads take several elements at once.
const INSTRUCTIONS: usize = 1024;

/// An element that is read around a thread's vectors, given by its distances from their first element along the axes of the nest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cell {
    pub(super) input: u32,
    pub(super) rule: Rule,
    pub(super) by: [isize; MAX_RANK],
}

/// The layouts of the operands whose neighbours are read, and the elements that a thread computes.
pub(super) struct Field<'a> {
    program: &'a Program,
    apart: &'a [Option<Apart>; MAX_RANK],
    /// The innermost axis of the nest.
    pub(super) inner: usize,
    /// The axis along which a thread has rows, and their number.
    rows: (usize, usize),
    /// The rule for each input's elements that are inside. Any rule is right; the rule of the input's neighbours shares most loads with
    /// them.
    rules: Vec<Rule>,
}

impl<'a> Field<'a> {
    /// Returns the field of a kernel.
    pub(super) fn of_kernel(program: &'a Program, variant: &'a Variant) -> Self {
        let inner = usize::from(variant.rank).saturating_sub(1);
        let rows = variant.patch.map_or((inner, 1), |patch| (patch.axis.into(), patch.rows.into()));
        Self::new(program, &variant.apart, inner, rows)
    }

    pub(super) fn new(
        program: &'a Program,
        apart: &'a [Option<Apart>; MAX_RANK],
        inner: usize,
        rows: (usize, usize),
    ) -> Self {
        let mut rules = vec![Rule::Clamp; program.inputs.len()];
        for one in &program.code {
            if let What::Neighbour(input, shift) = one.what {
                rules[input as usize] = program.shifts[shift as usize].rule;
            }
        }
        Self { program, apart, inner, rows, rules }
    }

    /// Returns the spare elements of an input's memory along an axis of the nest.
    pub(super) fn spare(&self, input: u32, axis: usize) -> [isize; 2] {
        Spare::along(self.program.inputs[input as usize].spare, self.apart, axis)
    }

    /// Returns the cell that an instruction reads for element `i` of a row's vector, or `None` if it reads no shifted input.
    fn cell(&self, what: What, row: usize, i: usize, width: usize) -> Option<Cell> {
        let (input, mut rule, mut by) = match what {
            What::Load(input) if self.program.inputs[input as usize].shifted => {
                (input, self.rules[input as usize], [0; MAX_RANK])
            }
            What::Neighbour(input, shift) => {
                let shift = self.program.shifts[shift as usize].along(self.apart);
                (input, shift.rule, shift.by)
            }
            _ => return None,
        };
        by[self.inner] += i as isize;
        by[self.rows.0] += row as isize;
        // Elements of the first vector itself are inside.
        if self.is_own(by[self.inner], width) && by[..self.inner].iter().all(|&by| by == 0) {
            rule = self.rules[input as usize];
        }
        Some(Cell { input, rule, by })
    }

    /// Returns whether a distance along the innermost axis is inside a vector.
    fn is_own(&self, along: isize, width: usize) -> bool {
        (0..width as isize).contains(&along)
    }

    pub(super) fn cells(&self, width: usize) -> BTreeSet<Cell> {
        self.cells_of(0..self.rows.1, width)
    }

    /// Returns the cells that some of a thread's rows need.
    fn cells_of(&self, rows: Range<usize>, width: usize) -> BTreeSet<Cell> {
        let elements = || rows.clone().flat_map(|row| (0..width).map(move |i| (row, i)));
        let code = self.program.code.iter();
        code.flat_map(|one| elements().filter_map(|(row, i)| self.cell(one.what, row, i, width))).collect()
    }

    /// Returns whether few cells are beside the vectors' own indices: one on each side of a row, as in stencils of nearest neighbours.
    pub(super) fn is_narrow(&self, cells: &BTreeSet<Cell>, width: usize) -> bool {
        let mut beside: BTreeMap<Cell, [usize; 2]> = BTreeMap::new();
        for &cell in cells.iter().filter(|cell| !self.is_own(cell.by[self.inner], width)) {
            let (mut row, after) = (cell, cell.by[self.inner] > 0);
            row.by[self.inner] = 0;
            beside.entry(row).or_default()[usize::from(after)] += 1;
        }
        beside.values().flatten().all(|&count| count <= 1)
    }

    /// Returns the number of registers that cells take.
    pub(super) fn registers(&self, cells: &BTreeSet<Cell>) -> usize {
        cells.iter().map(|cell| self.program.inputs[cell.input as usize].dtype.size().div_ceil(4)).sum()
    }
}

/// Returns the most elements that a thread of a program with neighbours takes.
pub(crate) fn most(program: &Program, nest: &Nest) -> usize {
    let field = Field::new(program, &nest.apart, nest.rank - 1, (nest.rank - 1, 1));
    // With many weights, a round of the loop has the square of this number of products.
    let widest = super::most_computed(program).min(if program.taps.is_empty() { 16 } else { 8 });
    let fits = |&width: &usize| {
        width <= widest
            && program.code.len() * width <= INSTRUCTIONS
            && field.registers(&field.cells(width)) <= REGISTERS
    };
    [16, 8, 4, 2].into_iter().find(fits).unwrap_or(1)
}

impl Variant {
    /// Adapts the variant to the neighbours of a program, if it has any.
    pub(crate) fn shifted(mut self, program: &Program, nest: &Nest) -> Self {
        // The distance of a spare neighbour may exceed the axis.
        let is_far = |spare: Spare| spare.before.max(spare.after) >= 1 << 30;
        self.wide |= program.inputs.iter().any(|input| input.spare.is_some_and(is_far));
        if program.shifts.is_empty() {
            return self;
        }
        self.vectors = 1;
        let loads = program.inputs.iter().filter(|input| !input.gathered);
        for (input, operand) in loads.zip(program.results.len()..) {
            if input.shifted {
                // Each operand needs an address, from which neighbours have distances.
                self.operands[operand] = match nest.operands[operand].strides[nest.rank - 1] {
                    1 => Way::Row,
                    0 => Way::Repeated,
                    _ => Way::Strided,
                };
            }
        }
        self
    }
}

impl Kernel<'_> {
    /// Reads all cells around a thread's vectors, the first of which is at `place`. Reads nothing if this takes too many registers.
    pub(super) fn read_around(&mut self, place: &At, width: usize) -> BTreeMap<Cell, Reg> {
        if self.program.shifts.is_empty() {
            return BTreeMap::new();
        }
        let cells = self.field.cells(width);
        if self.field.registers(&cells) > REGISTERS {
            return BTreeMap::new();
        }
        if self.field.is_narrow(&cells, width) {
            return self.read_anywhere(&cells, place, width, &mut Around::default()).into_iter().collect();
        }
        let mut registers = BTreeMap::new();
        for &cell in &cells {
            registers.insert(cell, self.e.reg(Class::of(self.program.inputs[cell.input as usize].dtype)));
        }
        let (border, both) = (self.e.label(), self.e.label());
        let Some(inside) = self.all_inside(&cells, place, width) else {
            return self.read_inside(&cells, place, width).into_iter().collect();
        };
        op!(self.e, "@!{inside} bra {border};");
        let values = self.read_inside(&cells, place, width);
        self.keep(&registers, values);
        op!(self.e, "bra {both};");
        self.e.place(&border);
        let values = self.read_anywhere(&cells, place, width, &mut Around::default());
        self.keep(&registers, values);
        self.e.place(&both);
        registers
    }

    /// Reads the cells that a row needs and the rows before it did not need. Rows are in the order along their axis; `place` is that of the
    /// first row.
    pub(super) fn read_around_row(
        &mut self,
        row: usize,
        place: &At,
        width: usize,
        around: &mut Around,
        cells: &mut BTreeMap<Cell, Reg>,
    ) {
        let axis = self.field.rows.0;
        let mut new: BTreeMap<isize, BTreeSet<Cell>> = BTreeMap::new();
        for cell in self.field.cells_of(row..row + 1, width) {
            if !cells.contains_key(&cell) {
                new.entry(cell.by[axis]).or_default().insert(cell);
            }
        }
        for new in new.values() {
            cells.extend(self.read_anywhere(new, place, width, around));
        }
    }

    fn keep(&mut self, registers: &BTreeMap<Cell, Reg>, values: Vec<(Cell, Reg)>) {
        for (cell, value) in values {
            let to = registers[&cell];
            op!(self.e, "mov.{} {to}, {value};", to.class.ptx());
        }
    }

    /// Returns the values of an instruction for the elements of a row's vector, from the cells that were read around a thread's rows.
    pub(super) fn of_cells(
        &self,
        what: What,
        cells: &BTreeMap<Cell, Reg>,
        row: usize,
        width: usize,
    ) -> Option<Vec<Reg>> {
        (0..width).map(|i| cells.get(&self.field.cell(what, row, i, width)?).copied()).collect()
    }

    /// Returns the values of an instruction for the elements of a vector, read one by one.
    pub(super) fn neighbours(&mut self, what: What, place: &At, width: usize, around: &mut Around) -> Vec<Reg> {
        (0..width)
            .map(|i| {
                let cell = self.field.cell(what, 0, i, width).expect("a neighbour");
                self.read_cell(cell, place, width, around)
            })
            .collect()
    }

    /// Returns `s32`, or `s64` if element numbers need it.
    pub(super) fn signed(&self) -> &'static str {
        if self.variant.wide { "s64" } else { "s32" }
    }

    /// Returns a predicate that says whether all cells are inside or spare, or `None` if they always are.
    fn all_inside(&mut self, cells: &BTreeSet<Cell>, place: &At, width: usize) -> Option<Reg> {
        let (inner, s) = (self.field.inner, self.signed());
        let axes: BTreeSet<usize> = self.variant.apart.iter().flatten().map(|apart| apart.axis.into()).collect();
        let mut all: Option<Reg> = None;
        for axis in axes {
            let along = || cells.iter().map(|cell| (cell.by[axis], self.field.spare(cell.input, axis)));
            let low = along().map(|(by, [before, _])| by + before).min().unwrap_or(0);
            let high = along().map(|(by, [_, after])| by - after).max().unwrap_or(0);
            let index = place.index[axis].expect("an index along each axis that stays apart");
            let own = if axis == inner { width as isize } else { 1 };
            let mut sides = Vec::new();
            if low < 0 {
                sides.push(self.e.op_with(Class::Pred, &format!("setp.ge.{s}"), &[index], -low));
            }
            if high >= own {
                let extent = self.argument(Param::Extent(axis))[0];
                let end = self.e.op_with(extent.class, &format!("sub.{s}"), &[extent], high);
                sides.push(self.e.op(Class::Pred, &format!("setp.lt.{s}"), &[index, end]));
            }
            for side in sides {
                all = self.both(all, Some(side));
            }
        }
        all
    }

    pub(super) fn both(&mut self, a: Option<Reg>, b: Option<Reg>) -> Option<Reg> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.e.op(Class::Pred, "and.pred", &[a, b])),
            (a, b) => a.or(b),
        }
    }

    /// Returns `address`, moved by some steps of an operand along an axis.
    fn stepped(&mut self, operand: usize, axis: usize, address: Reg, steps: isize) -> Reg {
        let Some(&stride) = self.argument(Param::Stride(operand, axis)).first() else { return address };
        let name = if self.variant.wide { "mad.lo.s64" } else { "mad.wide.s32" };
        self.e.op_with(Class::B64, name, &[stride], format_args!("{steps}, {address}"))
    }

    /// Reads cells that are all inside.
    fn read_inside(&mut self, cells: &BTreeSet<Cell>, place: &At, width: usize) -> Vec<(Cell, Reg)> {
        let inner = self.field.inner;
        // The cells by input and row, then by the distance along the row. Several rules may share a distance.
        let mut rows: BTreeMap<(u32, [isize; MAX_RANK]), BTreeMap<isize, Vec<Cell>>> = BTreeMap::new();
        for &cell in cells {
            let (mut row, along) = (cell.by, cell.by[inner]);
            row[inner] = 0;
            rows.entry((cell.input, row)).or_default().entry(along).or_default().push(cell);
        }
        let mut values = Vec::new();
        for ((input, row), along) in rows {
            let (operand, dtype) = (self.operand_of(input), self.program.inputs[input as usize].dtype);
            let size = dtype.size();
            let mut address = place.addresses[operand].expect("no single operand");
            for axis in (0..inner).filter(|&axis| row[axis] != 0) {
                address = self.stepped(operand, axis, address, row[axis]);
            }
            let mut read: BTreeMap<isize, Reg> = BTreeMap::new();
            match self.variant.operands[operand] {
                Way::Row => {
                    let block = |at: isize| at.div_euclid(width as isize);
                    let first = along.first_key_value().map_or(0, |(&at, _)| block(at) * width as isize);
                    if first != 0 {
                        address = self.e.op_with(Class::B64, "add.s64", &[address], first * size as isize);
                    }
                    let blocks: BTreeSet<isize> = along.keys().map(|&at| block(at)).collect();
                    for number in blocks {
                        let start = number * width as isize;
                        let offset = |at: isize| (at - first) as usize * size;
                        let needed: Vec<isize> =
                            along.range(start..start + width as isize).map(|(&at, _)| at).collect();
                        if let [only] = needed[..] {
                            read.insert(only, self.e.load("global", dtype, address, offset(only), 1)[0]);
                            continue;
                        }
                        let vector = self.e.load("global", dtype, address, offset(start), width);
                        read.extend((start..).zip(vector));
                    }
                }
                way => {
                    for &at in along.keys() {
                        let moves = at != 0 && way == Way::Strided;
                        let address = if moves { self.stepped(operand, inner, address, at) } else { address };
                        read.insert(at, self.e.load("global", dtype, address, 0, 1)[0]);
                    }
                }
            }
            for (at, cells) in along {
                values.extend(cells.into_iter().map(|cell| (cell, read[&at])));
            }
        }
        values
    }

    /// Reads cells, some of which may be outside. Cells at the vectors' own indices along the innermost axis are read as vectors.
    fn read_anywhere(
        &mut self,
        cells: &BTreeSet<Cell>,
        place: &At,
        width: usize,
        around: &mut Around,
    ) -> Vec<(Cell, Reg)> {
        let inner = self.field.inner;
        let mut rows: BTreeMap<Cell, Vec<Cell>> = BTreeMap::new();
        for &cell in cells {
            let mut row = cell;
            row.by[inner] = 0;
            rows.entry(row).or_default().push(cell);
        }
        let mut values = Vec::new();
        for (row, cells) in rows {
            let operand = self.operand_of(row.input);
            let (own, beside): (Vec<Cell>, Vec<Cell>) =
                cells.into_iter().partition(|cell| (0..width as isize).contains(&cell.by[inner]));
            if own.len() > 1 && self.variant.operands[operand] == Way::Row {
                let dtype = self.program.inputs[row.input as usize].dtype;
                let (address, inside) = self.row_around(row, place, width, around);
                let index = place.index[inner].expect("an index along each axis");
                let address = self.indexed(operand, inner, address, index);
                let vector = self.e.load(self.space_around(), dtype, address, 0, width);
                for cell in own {
                    let value = vector[cell.by[inner] as usize];
                    values.push((cell, self.or_constant(cell, value, inside)));
                }
            } else {
                let read = |cell| (cell, self.read_cell(cell, place, width, around));
                values.extend(own.into_iter().map(read));
            }
            for cell in beside {
                values.push((cell, self.read_cell(cell, place, width, around)));
            }
        }
        values
    }

    /// Returns the state space of loads of neighbours. If ptxas should move the loads of a row before the stores of another row, this space
    /// says that nothing writes there.
    fn space_around(&self) -> &'static str {
        if self.variant.patch.is_some_and(|patch| patch.in_turn) { "global.nc" } else { "global" }
    }

    /// Returns the value that was read for a cell, or the constant of its rule if the cell is not inside.
    fn or_constant(&mut self, cell: Cell, value: Reg, inside: Option<Reg>) -> Reg {
        match (cell.rule, inside) {
            (Rule::Constant(word), Some(inside)) => {
                let dtype = self.program.inputs[cell.input as usize].dtype;
                let constant = self.e.constant(dtype, word);
                self.e.select(dtype, inside, value, constant)
            }
            _ => value,
        }
    }

    /// Reads a cell that may be outside.
    fn read_cell(&mut self, cell: Cell, place: &At, width: usize, around: &mut Around) -> Reg {
        let inner = self.field.inner;
        let (operand, dtype) = (self.operand_of(cell.input), self.program.inputs[cell.input as usize].dtype);
        let (row, row_inside) = self.row_around(cell, place, width, around);
        let (index, index_inside) = self.index_around(inner, cell, place, width, around);
        let address = self.indexed(operand, inner, row, index);
        let value = self.e.load(self.space_around(), dtype, address, 0, 1)[0];
        let inside = self.both(row_inside, index_inside);
        self.or_constant(cell, value, inside)
    }

    /// Returns `address`, moved to an index of an operand along an axis.
    pub(super) fn indexed(&mut self, operand: usize, axis: usize, address: Reg, index: Reg) -> Reg {
        let name = if self.variant.wide { "mad.lo.s64" } else { "mad.wide.s32" };
        if let Some(&stride) = self.argument(Param::Stride(operand, axis)).first() {
            return self.e.op(Class::B64, name, &[index, stride, address]);
        }
        if self.variant.operands[operand] == Way::Row {
            let size = self.size(operand);
            return self.e.op_with(Class::B64, name, &[index], format_args!("{size}, {address}"));
        }
        address
    }
}
