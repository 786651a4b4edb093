//! The loads, the computation and the stores of a thread.

use std::collections::BTreeMap;

use super::around::Around;
use super::emit::{Class, Reg};
use super::neighbours::Cell;
use super::{At, Kernel, Param, Way};
use crate::expr::dtype::DType;
use crate::expr::program::What;

impl Kernel<'_> {
    /// Returns the values that are loaded at a place, for each instruction. It has no values for instructions that are not loaded yet.
    pub(super) fn loaded(&mut self, place: &At, width: usize) -> Vec<Vec<Reg>> {
        let cells = self.read_around(place, width);
        self.loaded_of(&cells, 0, place, width)
    }

    /// Works as [`loaded`](Self::loaded) at a row's place, with the cells that were read around a thread's rows.
    pub(super) fn loaded_of(
        &mut self,
        cells: &BTreeMap<Cell, Reg>,
        row: usize,
        place: &At,
        width: usize,
    ) -> Vec<Vec<Reg>> {
        let mut values = Vec::with_capacity(self.program.code.len());
        for (at, instruction) in self.program.code.iter().enumerate() {
            values.push(match (self.uniform[at], instruction.what) {
                (Some(value), _) => vec![value],
                (None, what @ What::Load(input)) => match self.of_cells(what, cells, row, width) {
                    Some(values) => values,
                    None => self.load(input, instruction.dtype, place, width),
                },
                (None, what @ What::Neighbour(..)) => self.of_cells(what, cells, row, width).unwrap_or_default(),
                _ => Vec::new(),
            });
        }
        values
    }

    /// Returns the values at a place of inputs that have no neighbours, and the values that are the same for all elements.
    pub(super) fn loaded_alone(&mut self, place: &At, width: usize) -> Vec<Vec<Reg>> {
        let mut values = Vec::with_capacity(self.program.code.len());
        for (at, instruction) in self.program.code.iter().enumerate() {
            values.push(match (self.uniform[at], instruction.what) {
                (Some(value), _) => vec![value],
                (None, What::Load(input)) if !self.program.inputs[input as usize].shifted => {
                    self.load(input, instruction.dtype, place, width)
                }
                _ => Vec::new(),
            });
        }
        values
    }

    /// Adds a row's values from the cells that were read around a thread's rows.
    pub(super) fn add_around(&self, values: &mut [Vec<Reg>], cells: &BTreeMap<Cell, Reg>, row: usize, width: usize) {
        for (values, instruction) in values.iter_mut().zip(&self.program.code) {
            if values.is_empty() {
                *values = self.of_cells(instruction.what, cells, row, width).unwrap_or_default();
            }
        }
    }

    /// Computes the values that are not loaded.
    pub(super) fn fill(&mut self, values: &mut [Vec<Reg>], place: &At, width: usize) {
        let mut around = Around::default();
        for at in 0..self.program.code.len() {
            if values[at].is_empty() {
                values[at] = match self.program.code[at].what {
                    what @ What::Neighbour(..) => self.neighbours(what, place, width, &mut around),
                    What::Weighted(input, number) => {
                        self.weighted(input, number, self.program.code[at].dtype, place, width)
                    }
                    _ => self.value(at, values, place, width),
                };
            }
        }
    }

    /// Loads, computes and stores the elements at some places, `width` elements at each place.
    pub(super) fn compute(&mut self, places: &[At], width: usize) {
        let mut values: Vec<Vec<Vec<Reg>>> = places.iter().map(|place| self.loaded(place, width)).collect();
        for (place, values) in places.iter().zip(&mut values) {
            self.store(values, place, width);
        }
    }

    /// Computes the values that are not loaded, and stores the results.
    pub(super) fn store(&mut self, values: &mut [Vec<Reg>], place: &At, width: usize) {
        self.fill(values, place, width);
        self.store_results(values, place, width);
    }

    /// Stores the results.
    pub(super) fn store_results(&mut self, values: &[Vec<Reg>], place: &At, width: usize) {
        for (operand, &result) in self.program.results.iter().enumerate() {
            let address = place.addresses[operand].expect("a result lies somewhere");
            let mut elements = values[result as usize].clone();
            let dtype = self.program.code[result as usize].dtype;
            if elements.len() == 1 {
                elements = vec![elements[0]; width];
            }
            if self.variant.operands[operand] == Way::Strided && width > 1 {
                unreachable!("vectors are for results in a row");
            }
            self.e.store("global", dtype, address, place.offsets[operand], &elements);
        }
    }

    pub(super) fn load(&mut self, input: u32, dtype: DType, place: &At, width: usize) -> Vec<Reg> {
        let operand = self.operand_of(input);
        let (address, offset) = (place.addresses[operand].expect("no single operand"), place.offsets[operand]);
        match self.variant.operands[operand] {
            Way::Linear | Way::Row | Way::Same(_) => self.e.load("global", dtype, address, offset, width),
            Way::Transposed => self.e.load("shared", dtype, address, offset, 1),
            Way::Strided if width > 1 => {
                let mut address = address;
                (0..width)
                    .map(|i| {
                        if i > 0 {
                            address = self.strided(operand, address);
                        }
                        self.e.load("global", dtype, address, 0, 1)[0]
                    })
                    .collect()
            }
            _ => self.e.load("global", dtype, address, offset, 1),
        }
    }

    /// Returns the values of an instruction: one for all elements, or one for each of `width` elements.
    pub(super) fn value(&mut self, at: usize, values: &[Vec<Reg>], place: &At, width: usize) -> Vec<Reg> {
        let instruction = &self.program.code[at];
        match instruction.what {
            What::Random(distribution) => return self.random(distribution, instruction, values, width),
            What::Index(_) => return self.index(at, place, width),
            _ => {}
        }
        let takes = instruction.takes();
        let varies = takes.iter().any(|&value| values[value as usize].len() > 1);
        if let What::Op(op) = instruction.what
            && op.divides_integers(instruction.dtype)
        {
            self.e.check_divisors(&values[takes[1] as usize]);
        }
        (0..if varies { width } else { 1 })
            .map(|i| {
                let arguments: Vec<Reg> = takes
                    .iter()
                    .map(|&value| {
                        let all = &values[value as usize];
                        if all.len() == 1 { all[0] } else { all[i] }
                    })
                    .collect();
                let from = takes.first().map_or(instruction.dtype, |&value| self.program.code[value as usize].dtype);
                match instruction.what {
                    What::Op(op) => self.e.compute(op, from, instruction.dtype, &arguments),
                    What::Gather(input) => self.gather(input, instruction.dtype, from, arguments[0]),
                    What::Call(function) => self.e.function(function.0.code(), &arguments),
                    _ => unreachable!("loaded before"),
                }
            })
            .collect()
    }

    /// Returns the operand of the index that the instruction at `at` is.
    pub(super) fn operand_of_index(&self, at: usize) -> usize {
        let before = self.program.code[..at].iter().filter(|one| matches!(one.what, What::Index(_))).count();
        self.memories() + before
    }

    /// Returns the values of the index that the instruction at `at` is. It is one value if all are the same.
    pub(super) fn index(&mut self, at: usize, place: &At, width: usize) -> Vec<Reg> {
        let operand = self.operand_of_index(at);
        let Some(mut first) = place.addresses[operand] else { return vec![self.argument(Param::Operand(operand))[0]] };
        if place.offsets[operand] > 0 {
            first = self.e.op_with(Class::B64, "add.u64", &[first], place.offsets[operand]);
        }
        let mut values = vec![first];
        match self.variant.operands[operand] {
            Way::Linear | Way::Row => {
                values.extend((1..width).map(|i| self.e.op_with(Class::B64, "add.u64", &[first], i)));
            }
            Way::Strided => {
                for i in 1..width {
                    let next = self.strided(operand, values[i - 1]);
                    values.push(next);
                }
            }
            Way::Single | Way::Same(_) | Way::Repeated | Way::Transposed => {}
        }
        values
    }

    /// Returns the address of the next element along the innermost axis.
    fn strided(&mut self, operand: usize, address: Reg) -> Reg {
        let inner = usize::from(self.variant.rank) - 1;
        let stride = self.argument(Param::Stride(operand, inner))[0];
        let stride = if self.variant.wide { stride } else { self.e.op(Class::B64, "cvt.s64.s32", &[stride]) };
        self.e.op(Class::B64, "add.s64", &[address, stride])
    }

    fn gather(&mut self, input: u32, dtype: DType, index_type: DType, index: Reg) -> Reg {
        let (address, stride, extent) = match *self.argument(Param::Gathered(input as usize)) {
            [address, stride, extent] => (address, stride, extent),
            _ => unreachable!("three parameters"),
        };
        let index = self.e.cast(index_type, if index_type.is_signed() { DType::I64 } else { DType::U64 }, index);
        self.e.check_index(index, extent);
        let address = self.e.op(Class::B64, "mad.lo.s64", &[index, stride, address]);
        self.e.load("global", dtype, address, 0, 1)[0]
    }
}
