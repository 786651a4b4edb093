//! Computes the steps of one phase: one row of each step.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::super::emit::{Class, Reg, op};
use super::{Outside, StepsKernel};
use crate::expr::neighbours::neighbour::Rule;
use crate::expr::program::What;

/// The rows and elements that a step reads.
struct Level<'a> {
    /// The rows that the step before keeps, by number.
    ring: &'a [Vec<Reg>],
    phase: usize,
    /// The row that is computed.
    row: Reg,
    /// The rows at a distance, with the rule applied.
    rows: BTreeMap<isize, Vec<Reg>>,
    /// Elements of other lanes: by row, lane and element.
    shuffled: BTreeMap<(isize, isize, usize), Reg>,
}

/// The columns of a lane in a strip that has columns outside.
struct Edge {
    inside: Vec<Reg>,
    /// For each column, the lane and the element that are read in its place.
    lanes: Vec<Reg>,
    elements: Vec<Reg>,
}

impl StepsKernel<'_> {
    /// Computes a row of each step. Keeps the rows for the next step, and stores the row of the last step. `newest` is the row that was
    /// loaded.
    pub(super) fn write_levels(&mut self, rings: &[Vec<Vec<Reg>>], phase: usize, newest: Reg) {
        let alike = match self.form.outside {
            Outside::Nothing | Outside::Rule(Rule::Periodic) => self.form.others.is_empty(),
            _ => false,
        };
        if alike {
            return self.write_all(rings, phase, newest, false);
        }
        let (steps, reach) = (self.form.steps, self.form.reach[1]);
        let (slow, done) = (self.e.label(), self.e.label());
        // The fast code needs all rows that are read to be inside.
        let low = self.e.op_with(Class::Pred, "setp.lt.s32", &[newest], (steps + 1) * reach);
        let high = self.e.op(Class::Pred, "setp.ge.s32", &[newest, self.extent(1)]);
        let edge = self.warp().edge;
        for which in [low, high, edge] {
            op!(self.e, "@{which} bra {slow};");
        }
        self.write_all(rings, phase, newest, false);
        op!(self.e, "bra {done};");
        self.e.place(&slow);
        self.write_all(rings, phase, newest, true);
        self.e.place(&done);
    }

    fn write_all(&mut self, rings: &[Vec<Vec<Reg>>], phase: usize, newest: Reg, slow: bool) {
        let (steps, reach, kept) = (self.form.steps, self.form.reach[1], self.form.kept());
        let ghosts = match self.form.outside {
            Outside::Rule(rule) if rule != Rule::Periodic => self.form.reach[0] > 0,
            _ => false,
        };
        let edge = (slow && ghosts && steps > 1).then(|| self.edge());
        for step in 1..=steps {
            let row = self.e.op_with(Class::B32, "sub.s32", &[newest], step * reach);
            let mut level =
                Level { ring: &rings[step - 1], phase, row, rows: BTreeMap::new(), shuffled: BTreeMap::new() };
            let mut values = self.results(&mut level, slow);
            if slow {
                self.keep_frame(&level, &mut values);
            }
            if step == steps {
                let values: Vec<Reg> = values.into_iter().map(|value| self.value_of(value)).collect();
                self.store_row(row, &values);
                break;
            }
            if let Some(edge) = &edge {
                self.set_outside(edge, &mut values);
            }
            for (&to, &value) in rings[step][phase % kept].iter().zip(&values) {
                self.copy(to, value);
            }
        }
    }

    /// Returns the results of a step, as registers hold them.
    fn results(&mut self, level: &mut Level<'_>, slow: bool) -> Vec<Reg> {
        let width = self.form.width;
        let mut values: Vec<Vec<Reg>> = Vec::with_capacity(self.program.code.len());
        for (at, instruction) in self.program.code.iter().enumerate() {
            if let Some(value) = self.uniform[at] {
                values.push(vec![value]);
                continue;
            }
            values.push(match instruction.what {
                What::Load(input) if Some(input) == self.form.state => self.neighbours(level, [0, 0], slow),
                What::Load(input) => {
                    let row = level.row;
                    self.load_other(self.other(input), instruction.dtype, row, slow)
                }
                What::Neighbour(_, shift) => {
                    let by = &self.program.shifts[shift as usize].by;
                    let along = |axis: usize| by.get(axis).copied().unwrap_or(0);
                    let by = self.form.axes.map(along);
                    self.neighbours(level, by, slow)
                }
                What::Op(op) => {
                    let takes = instruction.takes();
                    let from =
                        takes.first().map_or(instruction.dtype, |&value| self.program.code[value as usize].dtype);
                    (0..width)
                        .map(|i| {
                            let of = |&value: &u32| {
                                let all = &values[value as usize];
                                if all.len() == 1 { all[0] } else { all[i] }
                            };
                            let arguments: Vec<Reg> = takes.iter().map(of).collect();
                            self.e.compute(op, from, instruction.dtype, &arguments)
                        })
                        .collect()
                }
                _ => unreachable!("kernels of steps have no such instruction"),
            });
        }
        let result = &values[self.program.results[0] as usize];
        let each: Vec<Reg> = (0..width).map(|i| if result.len() == 1 { result[0] } else { result[i] }).collect();
        each.into_iter().map(|value| self.held(value)).collect()
    }

    /// Returns the elements at a distance along columns and rows.
    fn neighbours(&mut self, level: &mut Level<'_>, [across, down]: [isize; 2], slow: bool) -> Vec<Reg> {
        let width = self.form.width as isize;
        let row = self.row_at(level, down, slow);
        (0..width)
            .map(|i| {
                let (lane, element) = ((i + across).div_euclid(width), (i + across).rem_euclid(width) as usize);
                let held = match level.shuffled.get(&(down, lane, element)) {
                    _ if lane == 0 => row[element],
                    Some(&known) => known,
                    None => {
                        let way = if lane > 0 { "down" } else { "up" };
                        let last = if lane > 0 { 31 } else { 0 };
                        let by = format!("{}, {last}", lane.unsigned_abs());
                        let value = self.shuffle(way, row[element], &by);
                        level.shuffled.insert((down, lane, element), value);
                        value
                    }
                };
                self.value_of(held)
            })
            .collect()
    }

    /// Reads a value of another lane. `by` says which lane, and what happens if this lane does not exist.
    fn shuffle(&mut self, way: &str, value: Reg, by: &str) -> Reg {
        let name = format!("shfl.sync.{way}.b32");
        let by = format!("{by}, 0xffffffff");
        match value.class {
            Class::B16 => {
                let word = self.e.op(Class::B32, "cvt.u32.u16", &[value]);
                let word = self.e.op_with(Class::B32, &name, &[word], by);
                self.e.op(Class::B16, "cvt.u16.u32", &[word])
            }
            class @ (Class::B64 | Class::F64) => {
                let (low, high, whole) = (self.e.reg(Class::B32), self.e.reg(Class::B32), self.e.reg(class));
                op!(self.e, "mov.b64 {{{low}, {high}}}, {value};");
                let [low, high] = [low, high].map(|half| self.e.op_with(Class::B32, &name, &[half], &by));
                op!(self.e, "mov.b64 {whole}, {{{low}, {high}}};");
                whole
            }
            class => self.e.op_with(class, &name, &[value], by),
        }
    }

    /// Returns the row at a distance from the computed row, as the step before has it. For a row outside, it is the row that the rule
    /// reads.
    fn row_at(&mut self, level: &mut Level<'_>, down: isize, slow: bool) -> Vec<Reg> {
        if let Some(row) = level.rows.get(&down) {
            return row.clone();
        }
        let (kept, reach) = (self.form.kept() as isize, self.form.reach[1] as isize);
        // The newest row is `reach` below the computed row.
        let of = |by: isize| &level.ring[(level.phase as isize + by - reach).rem_euclid(kept) as usize];
        let mut row = of(down).clone();
        if let (Outside::Rule(rule), true) = (self.form.outside, slow && down != 0 && self.form.outside != PERIODIC) {
            let at = self.e.op_with(Class::B32, "add.s32", &[level.row], down);
            if let Rule::Constant(word) = rule {
                let (inside, constant) = (self.is_inside(at, 1), self.e.constant(self.form.dtype, word));
                let constant = self.held(constant);
                row = row.into_iter().map(|value| self.chosen(inside, value, constant)).collect();
            } else {
                let read = self.index(at, 1);
                let by = self.e.op(Class::B32, "sub.s32", &[read, level.row]);
                for other in (-reach..=reach).filter(|&other| other != down) {
                    let is = self.e.op_with(Class::Pred, "setp.eq.s32", &[by], other);
                    row = row.into_iter().zip(of(other)).map(|(value, &other)| self.chosen(is, other, value)).collect();
                }
            }
        }
        level.rows.insert(down, row.clone());
        row
    }

    fn edge(&mut self) -> Edge {
        let mut edge = Edge { inside: Vec::new(), lanes: Vec::new(), elements: Vec::new() };
        let width = self.form.width;
        for element in 0..width {
            let column = self.column(element);
            edge.inside.push(self.is_inside(column, 0));
            if matches!(self.form.outside, Outside::Rule(Rule::Constant(_))) {
                continue;
            }
            let read = self.index(column, 0);
            let first = self.warp().first_column;
            let place = self.e.op(Class::B32, "sub.s32", &[read, first]);
            edge.lanes.push(self.e.op_with(Class::B32, "shr.s32", &[place], width.ilog2()));
            edge.elements.push(self.e.op_with(Class::B32, "and.b32", &[place], width - 1));
        }
        edge
    }

    /// Sets the columns outside to the values that the rule reads there.
    fn set_outside(&mut self, edge: &Edge, values: &mut [Reg]) {
        let before = values.to_vec();
        for (element, value) in values.iter_mut().enumerate() {
            let outside = match self.form.outside {
                Outside::Rule(Rule::Constant(word)) => {
                    let constant = self.e.constant(self.form.dtype, word);
                    self.held(constant)
                }
                _ => {
                    let lane = format!("{}, 31", edge.lanes[element]);
                    let mut found = self.shuffle("idx", before[0], &lane);
                    for (number, &other) in before.iter().enumerate().skip(1) {
                        let other = self.shuffle("idx", other, &lane);
                        let is = self.e.op_with(Class::Pred, "setp.eq.s32", &[edge.elements[element]], number);
                        found = self.chosen(is, other, found);
                    }
                    found
                }
            };
            *value = self.chosen(edge.inside[element], *value, outside);
        }
    }

    /// Keeps the elements around an interior unchanged.
    fn keep_frame(&mut self, level: &Level<'_>, values: &mut [Reg]) {
        let Outside::Frame { before, after } = self.form.outside else { return };
        let own = (level.phase + self.form.kept() - self.form.reach[1]) % self.form.kept();
        let outside = |kernel: &mut Self, at: Reg, axis: usize| {
            let low = kernel.e.op_with(Class::Pred, "setp.lt.s32", &[at], before[axis]);
            let end = kernel.e.op_with(Class::B32, "sub.s32", &[kernel.extent(axis)], after[axis]);
            let high = kernel.e.op(Class::Pred, "setp.ge.s32", &[at, end]);
            kernel.e.op(Class::Pred, "or.pred", &[low, high])
        };
        let row = outside(self, level.row, 1);
        for (element, value) in values.iter_mut().enumerate() {
            let column = self.column(element);
            let column = outside(self, column, 0);
            let keeps = self.e.op(Class::Pred, "or.pred", &[row, column]);
            *value = self.chosen(keeps, level.ring[own][element], *value);
        }
    }
}

const PERIODIC: Outside = Outside::Rule(Rule::Periodic);
