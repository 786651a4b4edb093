//! Tiles in shared memory: their contents, and the loads that fill them.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::super::emit::{Class, Reg, op};
use super::super::{Kernel, Param, Way};
use super::{RowTile, Split, TileThread, VECTOR};
use crate::expr::dtype::DType;
use crate::expr::layout::nest::Apart;
use crate::expr::layout::shape::MAX_RANK;
use crate::expr::neighbours::neighbour::Rule;
use crate::expr::program::{Program, What};

/// A row of an input, together with the elements outside of the row, by a rule.
pub(super) struct StagedRow {
    pub(super) input: u32,
    pub(super) rule: Rule,
    pub(super) dtype: DType,
    /// The distance from the tile's first element to the first staged element. It is a number of whole vectors.
    pub(super) low: isize,
    /// The number of elements, which are whole vectors.
    len: usize,
    /// The offset of the row in the tile's shared memory.
    pub(super) offset: usize,
}

/// A value that windows pass on. There is one for each element of the tile.
pub(super) struct Passed {
    /// The number of the value's instruction.
    pub(super) at: usize,
    pub(super) dtype: DType,
    pub(super) offset: usize,
}

/// The shared memory of a tile.
pub(super) struct TileMemory {
    pub(super) staged: Vec<StagedRow>,
    pub(super) passed: Vec<Passed>,
    pub(super) bytes: usize,
}

impl TileMemory {
    pub(super) fn new(program: &Program, split: &Split, footprints: &Footprints, tile: RowTile) -> Self {
        let (mut staged, mut passed, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut take = |count: usize, dtype: DType| {
            let offset = bytes;
            bytes += (count * dtype.size()).next_multiple_of(VECTOR);
            offset
        };
        for (&(input, rule), &Footprint { low, high, .. }) in &footprints.0 {
            let dtype = program.inputs[input as usize].dtype;
            let vector = tile.vector(dtype.size());
            let low = low.div_euclid(vector as isize) * vector as isize;
            let len = (tile.len() + high.abs_diff(low)).next_multiple_of(vector);
            staged.push(StagedRow { input, rule, dtype, low, len, offset: take(len, dtype) });
        }
        for &at in &split.passed {
            let dtype = program.code[at].dtype;
            passed.push(Passed { at, dtype, offset: take(tile.len(), dtype) });
        }
        Self { staged, passed, bytes }
    }

    /// Returns the number of the staged row with the neighbours of an input by a rule, or with its own elements.
    pub(super) fn of(&self, input: u32, rule: Option<Rule>) -> usize {
        let holds = |staged: &StagedRow| staged.input == input && rule.is_none_or(|rule| staged.rule == rule);
        self.staged.iter().position(holds).expect("what windows read is staged")
    }
}

/// The elements of a row that are read for one element.
struct Footprint {
    /// The first and the last distance.
    low: isize,
    high: isize,
    /// The number of elements that are read.
    reads: usize,
}

impl Footprint {
    fn reach(&self) -> usize {
        self.high.abs_diff(self.low) + 1
    }
}

/// The footprint of each input and rule.
pub(super) struct Footprints(BTreeMap<(u32, Rule), Footprint>);

impl Footprints {
    /// Returns the length of the longest footprint: from the first to the last element that is read for one element.
    pub(super) fn reach(&self) -> usize {
        self.0.values().map(Footprint::reach).max().unwrap_or(0)
    }

    /// Returns whether at least half of the elements in each footprint are read.
    pub(super) fn are_dense(&self) -> bool {
        self.0.values().all(|footprint| 2 * footprint.reads >= footprint.reach())
    }

    pub(super) fn new(program: &Program, split: &Split, apart: &[Option<Apart>; MAX_RANK]) -> Self {
        let inner = apart[0].map_or(0, |apart| usize::from(apart.axis));
        let mut footprints: BTreeMap<(u32, Rule), Footprint> = BTreeMap::new();
        let mut add = |row: (u32, Rule), low: isize, high: isize| {
            let known = footprints.entry(row).or_insert(Footprint { low, high, reads: 0 });
            (known.low, known.high) = (known.low.min(low), known.high.max(high));
            known.reads += high.abs_diff(low) + 1;
        };
        let mut own = Vec::new();
        for (one, _) in program.code.iter().zip(&split.window).filter(|(_, window)| **window) {
            match one.what {
                What::Neighbour(input, shift) => {
                    let shift = program.shifts[shift as usize].along(apart);
                    add((input, shift.rule), shift.by[inner], shift.by[inner]);
                }
                What::Weighted(input, number) => {
                    let taps = &program.taps[number as usize];
                    add((input, taps.rule), taps.first, taps.first + taps.weights.len() as isize - 1);
                }
                What::Load(input) => own.push(input),
                _ => {}
            }
        }
        for input in own {
            // The element is inside, so any rule is right.
            let rule = footprints.keys().find(|(of, _)| *of == input).map_or(Rule::Clamp, |(_, rule)| *rule);
            let known = footprints.entry((input, rule)).or_insert(Footprint { low: 0, high: 0, reads: 0 });
            (known.low, known.high) = (known.low.min(0), known.high.max(0));
            known.reads += 1;
        }
        Self(footprints)
    }
}

/// Returns the type in which this number of elements of some bytes is copied, and how many values of that type there are. A single element
/// is one value.
fn words(count: usize, size: usize) -> (DType, usize) {
    match (count, count * size) {
        (1, 8) => (DType::U64, 1),
        (_, 1) => (DType::U8, 1),
        (_, 2) => (DType::U16, 1),
        (_, bytes) => (DType::U32, bytes / 4),
    }
}

/// The source and the target of a copy by a tile's threads.
struct RowSource {
    operand: usize,
    /// The address of the input's row.
    row: Reg,
    /// The index of the first staged element, which may be outside.
    first: Reg,
    /// The address in shared memory of that element.
    to: Reg,
    threads: usize,
}

impl Kernel<'_> {
    /// Loads a tile with its halo into shared memory.
    pub(super) fn stage(&mut self, staged: &StagedRow, tile: RowTile, place: &TileThread) {
        let inner = usize::from(self.variant.rank) - 1;
        let operand = self.operand_of(staged.input);
        let mut row = self.argument(Param::Operand(operand))[0];
        for axis in 0..inner {
            row = self.indexed(operand, axis, row, place.index[axis].expect("an index along each axis"));
        }
        let start = place.index[inner].expect("an index along each axis");
        let first = self.e.op_with(Class::B32, "add.s32", &[start], staged.low);
        let to = self.e.op_with(Class::B32, "add.u32", &[place.shared], staged.offset);
        let source = RowSource { operand, row, first, to, threads: tile.threads.into() };
        let (border, both) = (self.e.label(), self.e.label());
        let extent = self.argument(Param::Extent(inner))[0];
        let [before, after] = self.field.spare(staged.input, inner);
        let last = self.e.op_with(Class::B32, "sub.s32", &[extent], staged.len as isize - after);
        let low = self.e.op_with(Class::Pred, "setp.lt.s32", &[first], -before);
        let high = self.e.op(Class::Pred, "setp.gt.s32", &[first, last]);
        let outside = self.e.op(Class::Pred, "or.pred", &[low, high]);
        op!(self.e, "@{outside} bra {border};");
        let vector = if tile.aligned { tile.vector(staged.dtype.size()) } else { 1 };
        self.stage_inside(staged, &source, place.thread, vector);
        op!(self.e, "bra {both};");
        self.e.place(&border);
        self.stage_anywhere(staged, &source, place.thread);
        self.e.place(&both);
    }

    /// Copies a row that is inside, vector by vector, with several vectors at once.
    fn stage_inside(&mut self, staged: &StagedRow, source: &RowSource, thread: Reg, vector: usize) {
        const AT_ONCE: usize = 8;
        let (inner, size) = (usize::from(self.variant.rank) - 1, staged.dtype.size());
        let (bytes, count) = (vector * size, staged.len / vector);
        let (dtype, several) = words(vector, size);
        let rounds: Vec<usize> = (0..count.div_ceil(source.threads)).collect();
        let index = self.e.op_with(Class::B32, "mad.lo.s32", &[thread], format_args!("{vector}, {}", source.first));
        let from = self.indexed(source.operand, inner, source.row, index);
        let to = self.e.op_with(Class::B32, "mad.lo.u32", &[thread], format_args!("{bytes}, {}", source.to));
        let in_row = self.variant.operands[source.operand] == Way::Row;
        for some in rounds.chunks(AT_ONCE) {
            let mut values = Vec::new();
            for &round in some {
                let begin = round * source.threads;
                let (mut from, mut to, mut offset) = (from, to, begin * bytes);
                if begin + source.threads > count {
                    // Several threads copy the last vectors.
                    let own = self.e.op_with(Class::B32, "add.u32", &[thread], begin);
                    let own = self.e.op_with(Class::B32, "min.u32", &[own], count - 1);
                    let index =
                        self.e.op_with(Class::B32, "mad.lo.s32", &[own], format_args!("{vector}, {}", source.first));
                    from = self.indexed(source.operand, inner, source.row, index);
                    to = self.e.op_with(Class::B32, "mad.lo.u32", &[own], format_args!("{bytes}, {}", source.to));
                    offset = 0;
                } else if !in_row && round > 0 {
                    let index = self.e.op_with(Class::B32, "add.s32", &[index], begin * vector);
                    from = self.indexed(source.operand, inner, source.row, index);
                }
                let loaded = self.e.load("global", dtype, from, if in_row { offset } else { 0 }, several);
                values.push((to, offset, loaded));
            }
            for (to, offset, values) in values {
                self.e.store("shared", dtype, to, offset, &values);
            }
        }
    }

    /// Copies a row of which some elements are outside. The tile's threads copy each element by its index, in a loop.
    fn stage_anywhere(&mut self, staged: &StagedRow, source: &RowSource, thread: Reg) {
        const AT_ONCE: usize = 4;
        let inner = usize::from(self.variant.rank) - 1;
        let (size, extent) = (staged.dtype.size(), self.argument(Param::Extent(inner))[0]);
        let spare = self.field.spare(staged.input, inner);
        let last = self.e.op_with(Class::B32, "sub.s32", &[extent], 1 - spare[1]);
        let outside = match staged.rule {
            Rule::Constant(word) => Some(self.e.constant(staged.dtype, word)),
            _ => None,
        };
        let (again, own) = (self.e.label(), self.e.op(Class::B32, "mov.b32", &[thread]));
        let round = self.e.op_with(Class::B32, "mov.b32", &[], 0);
        self.e.place(&again);
        let mut values = Vec::new();
        for number in 0..AT_ONCE {
            // Several threads copy the last element.
            let element = self.e.op_with(Class::B32, "add.u32", &[own], number * source.threads);
            let element = self.e.op_with(Class::B32, "min.u32", &[element], staged.len - 1);
            let at = self.e.op(Class::B32, "add.s32", &[source.first, element]);
            let (at, inside) = self.turned_back(staged.rule, at, inner, spare);
            // Places past the halo are more than one step of the rule away. Any element will do for them.
            let at = self.e.op_with(Class::B32, "max.s32", &[at], -spare[0]);
            let at = self.e.op(Class::B32, "min.s32", &[at, last]);
            let from = self.indexed(source.operand, inner, source.row, at);
            let to = self.e.op_with(Class::B32, "mad.lo.u32", &[element], format_args!("{size}, {}", source.to));
            values.push((to, inside, self.e.load("global", staged.dtype, from, 0, 1)[0]));
        }
        for (to, inside, value) in values {
            let value = match (inside, outside) {
                (Some(inside), Some(outside)) => self.e.select(staged.dtype, inside, value, outside),
                _ => value,
            };
            self.e.store("shared", staged.dtype, to, 0, &[value]);
        }
        let step = AT_ONCE * source.threads;
        op!(self.e, "add.u32 {own}, {own}, {step};");
        op!(self.e, "add.u32 {round}, {round}, {step};");
        let more = self.e.op_with(Class::Pred, "setp.lt.u32", &[round], staged.len);
        op!(self.e, "@{more} bra {again};");
    }
}
