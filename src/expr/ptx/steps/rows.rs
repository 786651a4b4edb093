//! The rows of a warp: the loop over the rows, their loads and their stores.

use std::fmt::Write;

use super::super::emit::{Class, Reg, op};
use super::{Other, Outside, StepsKernel, StepsParam};
use crate::expr::dtype::DType;
use crate::expr::neighbours::neighbour::Rule;

impl StepsKernel<'_> {
    /// Writes the loop over the rows.
    pub(super) fn write_rows(&mut self) {
        let (class, width, phases) = (self.held_class(), self.form.width, self.form.phases());
        let (steps, reach) = (self.form.steps, self.form.reach[1]);
        let kept = self.form.kept();
        let rows = |kernel: &mut Self, count: usize| -> Vec<Vec<Reg>> {
            (0..count).map(|_| (0..width).map(|_| kernel.zero(class)).collect()).collect()
        };
        // Each step has the rows that it keeps. Other rows are loaded ahead.
        let rings: Vec<Vec<Vec<Reg>>> = (0..steps).map(|_| rows(self, kept)).collect();
        let ahead = rows(self, phases);
        let [start, end] = self.warp().rows;
        let row = self.e.op_with(Class::B32, "sub.s32", &[start], steps * reach);
        let last = self.e.op_with(Class::B32, "add.s32", &[end], steps * reach);
        for (phase, into) in ahead.iter().enumerate() {
            let at = self.e.op_with(Class::B32, "add.s32", &[row], phase);
            self.load_row(at, last, into);
        }
        let (again, done) = (self.e.label(), self.e.label());
        self.e.place(&again);
        for (phase, ahead) in ahead.iter().enumerate() {
            for (&to, &from) in rings[0][phase % kept].iter().zip(ahead) {
                self.copy(to, from);
            }
            let at = self.e.op_with(Class::B32, "add.s32", &[row], phases);
            self.load_row(at, last, ahead);
            self.write_levels(&rings, phase, row);
            op!(self.e, "add.s32 {row}, {row}, 1;");
            let over = self.e.op(Class::Pred, "setp.ge.s32", &[row, last]);
            op!(self.e, "@{over} bra {done};");
        }
        op!(self.e, "bra {again};");
        self.e.place(&done);
    }

    fn zero(&mut self, class: Class) -> Reg {
        match class {
            Class::F32 => self.e.constant(DType::F32, 0),
            Class::F64 => self.e.constant(DType::F64, 0),
            class => self.e.op_with(class, &format!("mov.{}", class.ptx()), &[], 0),
        }
    }

    /// Returns the index that the rule reads in place of an index. It is always inside.
    pub(super) fn index(&mut self, at: Reg, axis: usize) -> Reg {
        let (class, extent) = (Class::B32, self.extent(axis));
        let rule = match self.form.outside {
            Outside::Rule(rule) => rule,
            _ => Rule::Clamp,
        };
        let mut at = at;
        match rule {
            Rule::Periodic => {
                let rest = self.e.op(class, "rem.s32", &[at, extent]);
                let negative = self.e.op_with(Class::Pred, "setp.lt.s32", &[rest], 0);
                let up = self.e.op(class, "add.s32", &[rest, extent]);
                return self.e.op(class, "selp.b32", &[up, rest, negative]);
            }
            Rule::Mirror | Rule::Symmetric => {
                let mirror = rule == Rule::Mirror;
                let image = self.e.op(class, if mirror { "neg.s32" } else { "not.b32" }, &[at]);
                at = self.e.op(class, "max.s32", &[at, image]);
                let twice = self.e.op(class, "add.s32", &[extent, extent]);
                let twice = self.e.op_with(class, "sub.s32", &[twice], 1 + usize::from(mirror));
                let image = self.e.op(class, "sub.s32", &[twice, at]);
                at = self.e.op(class, "min.s32", &[at, image]);
            }
            Rule::Clamp | Rule::Constant(_) => {}
        }
        let last = self.e.op_with(class, "sub.s32", &[extent], 1);
        let near = self.e.op_with(class, "max.s32", &[at], 0);
        self.e.op(class, "min.s32", &[near, last])
    }

    /// Returns the column of a lane's element.
    pub(super) fn column(&mut self, element: usize) -> Reg {
        let first = self.warp().column;
        if element == 0 { first } else { self.e.op_with(Class::B32, "add.s32", &[first], element) }
    }

    /// Returns whether an index is inside.
    pub(super) fn is_inside(&mut self, at: Reg, axis: usize) -> Reg {
        let extent = self.extent(axis);
        // Negative indices are large as unsigned numbers.
        self.e.op(Class::Pred, "setp.lt.u32", &[at, extent])
    }

    /// Loads the row `at` of the source, unless it is `last` or after it. If the row is outside, it loads a row inside.
    fn load_row(&mut self, at: Reg, last: Reg, into: &[Reg]) {
        let (dtype, vector) = (self.form.dtype, self.form.vector);
        let (slow, done) = (self.e.label(), self.e.label());
        let edge = self.warp().edge;
        let past = self.e.op(Class::Pred, "setp.ge.s32", &[at, last]);
        op!(self.e, "@{past} bra {done};");
        let inside = self.is_inside(at, 1);
        op!(self.e, "@!{inside} bra {slow};");
        op!(self.e, "@{edge} bra {slow};");
        let values = self.load_inside(0, dtype, at, vector);
        self.hold(into, values);
        op!(self.e, "bra {done};");
        self.e.place(&slow);
        let row = self.index(at, 1);
        let mut values = Vec::new();
        for element in 0..into.len() {
            let column = self.column(element);
            let read = self.index(column, 0);
            let value = self.load_at(0, dtype, row, read);
            values.push(match self.form.outside {
                Outside::Rule(Rule::Constant(word)) => {
                    let (inside, constant) = (self.is_inside(column, 0), self.e.constant(dtype, word));
                    self.e.select(dtype, inside, value, constant)
                }
                _ => value,
            });
        }
        self.hold(into, values);
        self.e.place(&done);
    }

    fn hold(&mut self, into: &[Reg], values: Vec<Reg>) {
        for (&to, value) in into.iter().zip(values) {
            let held = self.held(value);
            self.copy(to, held);
        }
    }

    /// Loads a lane's elements of a row of an operand. All are inside.
    fn load_inside(&mut self, operand: usize, dtype: DType, row: Reg, vector: bool) -> Vec<Reg> {
        let (_, at_column) = self.warp().bases[operand].expect("no single operand");
        let mut address = self.moved(at_column, row, StepsParam::Stride(operand, 1));
        if vector {
            return self.e.load("global", dtype, address, 0, self.form.width);
        }
        let stride = self.argument(StepsParam::Stride(operand, 0));
        (0..self.form.width)
            .map(|element| {
                if element > 0 {
                    address = self.e.op(Class::B64, "add.s64", &[address, stride]);
                }
                self.e.load("global", dtype, address, 0, 1)[0]
            })
            .collect()
    }

    /// Loads an element of an operand.
    fn load_at(&mut self, operand: usize, dtype: DType, row: Reg, column: Reg) -> Reg {
        let (base, _) = self.warp().bases[operand].expect("no single operand");
        let address = self.moved(base, row, StepsParam::Stride(operand, 1));
        let address = self.moved(address, column, StepsParam::Stride(operand, 0));
        self.e.load("global", dtype, address, 0, 1)[0]
    }

    /// Loads the elements of a row of an input that is not stepped. `slow` says that some elements may be outside.
    pub(super) fn load_other(&mut self, other: usize, dtype: DType, row: Reg, slow: bool) -> Vec<Reg> {
        let operand = 2 + other;
        if !slow {
            return self.load_inside(operand, dtype, row, self.form.others[other] == Other::Row);
        }
        let row = self.index_of_other(row, 1);
        (0..self.form.width)
            .map(|element| {
                let column = self.column(element);
                let column = self.index_of_other(column, 0);
                self.load_at(operand, dtype, row, column)
            })
            .collect()
    }

    /// Returns the index at which other inputs are read for an index. For a frame, it is inside the frame.
    fn index_of_other(&mut self, at: Reg, axis: usize) -> Reg {
        let Outside::Frame { before, after } = self.form.outside else { return self.index(at, axis) };
        let last = self.e.op_with(Class::B32, "sub.s32", &[self.extent(axis)], 1 + after[axis]);
        let near = self.e.op_with(Class::B32, "max.s32", &[at], before[axis]);
        self.e.op(Class::B32, "min.s32", &[near, last])
    }

    /// Stores a row of the last step, if it is a row of the chunk.
    pub(super) fn store_row(&mut self, row: Reg, values: &[Reg]) {
        let (dtype, [start, end], first) = (self.form.dtype, self.warp().own, self.warp().rows[0]);
        let skip = self.e.label();
        let before = self.e.op(Class::Pred, "setp.lt.s32", &[row, first]);
        op!(self.e, "@{before} bra {skip};");
        let (_, at_column) = self.warp().bases[1].expect("a result lies somewhere");
        let mut address = self.moved(at_column, row, StepsParam::Stride(1, 1));
        let each = if self.form.vector { values.len() } else { 1 };
        let stride = self.argument(StepsParam::Stride(1, 0));
        for (number, values) in values.chunks(each).enumerate() {
            let column = self.column(number * each);
            let past = self.e.op(Class::Pred, "setp.ge.s32", &[column, start]);
            let own = self.e.reg(Class::Pred);
            op!(self.e, "setp.lt.and.s32 {own}, {column}, {end}, {past};");
            if number > 0 {
                address = self.e.op(Class::B64, "add.s64", &[address, stride]);
            }
            let text = self.e.body.len();
            self.e.store("global", dtype, address, 0, values);
            // Lanes of the halo do not store. The warp stays together.
            let stores = self.e.body.split_off(text).replace("    st.", &format!("    @{own} st."));
            self.e.body.push_str(&stores);
        }
        self.e.place(&skip);
    }
}
