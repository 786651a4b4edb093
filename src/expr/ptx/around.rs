//! The positions of the neighbours of a thread's vectors: their indices along each axis, by the rule of the boundary, and the addresses of
//! their rows. Each is computed once.

use std::collections::BTreeMap;

use super::emit::{Class, Reg};
use super::neighbours::Cell;
use super::{At, Kernel, Param};
use crate::expr::neighbours::neighbour::Rule;

/// An axis, a distance along it, the rule, and the number of spare elements at both ends.
type AlongAxis = (usize, isize, Rule, [isize; 2]);

/// The indices and addresses around a vector that are computed already.
#[derive(Default)]
pub(super) struct Around {
    /// The index at a distance along an axis, and whether it is inside, if that matters.
    indices: BTreeMap<AlongAxis, (Reg, Option<Reg>)>,
    /// The address of a row's first element, and whether the row is inside.
    rows: BTreeMap<Cell, (Reg, Option<Reg>)>,
}

impl Kernel<'_> {
    /// Returns the address of the first element of a cell's row.
    pub(super) fn row_around(
        &mut self,
        mut cell: Cell,
        place: &At,
        width: usize,
        around: &mut Around,
    ) -> (Reg, Option<Reg>) {
        let inner = self.field.inner;
        cell.by[inner] = 0;
        if let Some(&known) = around.rows.get(&cell) {
            return known;
        }
        let operand = self.operand_of(cell.input);
        let (mut address, mut inside) = (self.argument(Param::Operand(operand))[0], None);
        for axis in 0..inner {
            let (index, index_inside) = self.index_around(axis, cell, place, width, around);
            address = self.indexed(operand, axis, address, index);
            inside = self.both(inside, index_inside);
        }
        around.rows.insert(cell, (address, inside));
        (address, inside)
    }

    /// Returns the index that is read along an axis for a cell.
    pub(super) fn index_around(
        &mut self,
        axis: usize,
        cell: Cell,
        place: &At,
        width: usize,
        around: &mut Around,
    ) -> (Reg, Option<Reg>) {
        let (by, rule, spare) = (cell.by[axis], cell.rule, self.field.spare(cell.input, axis));
        let key = (axis, by, rule, spare);
        if let Some(&known) = around.indices.get(&key) {
            return known;
        }
        let index = place.index[axis].expect("an index along each axis");
        let own = if axis == self.field.inner { width as isize } else { 1 };
        let s = self.signed();
        let named = |name: &str| format!("{name}.{s}");
        let class = index.class;
        let at = if by == 0 { index } else { self.e.op_with(class, &named("add"), &[index], by) };
        let known = if (0..own).contains(&by) {
            (at, None)
        } else {
            let (low, extent) = (by < 0, self.argument(Param::Extent(axis))[0]);
            let last = |kernel: &mut Self| kernel.e.op_with(class, &named("sub"), &[extent], 1);
            // For rows past the end, which are not stored, a neighbour may need more than one step of the rule. Any element will do.
            let far = self.variant.patch.is_some_and(|patch| patch.rows > 1 && axis == usize::from(patch.axis)) && !low;
            match rule {
                // The spare elements contain everything that is read for elements inside.
                _ if spare != [0; 2] => {
                    let at = if far {
                        let last = self.e.op_with(class, &named("add"), &[extent], spare[1] - 1);
                        self.e.op(class, &named("min"), &[at, last])
                    } else {
                        at
                    };
                    (at, None)
                }
                Rule::Clamp | Rule::Constant(_) => {
                    let nearest = if low {
                        self.e.op_with(class, &named("max"), &[at], 0)
                    } else {
                        let last = last(self);
                        self.e.op(class, &named("min"), &[at, last])
                    };
                    let inside = matches!(rule, Rule::Constant(_)).then(|| {
                        if low {
                            self.e.op_with(Class::Pred, &named("setp.ge"), &[at], 0)
                        } else {
                            self.e.op(Class::Pred, &named("setp.lt"), &[at, extent])
                        }
                    });
                    (nearest, inside)
                }
                Rule::Periodic => {
                    let (name, outside) = if low {
                        ("add", self.e.op_with(Class::Pred, &named("setp.lt"), &[at], 0))
                    } else {
                        ("sub", self.e.op(Class::Pred, &named("setp.ge"), &[at, extent]))
                    };
                    let turned = self.e.op(class, &named(name), &[at, extent]);
                    let turned = self.e.op(class, &format!("selp.{}", class.ptx()), &[turned, at, outside]);
                    let at = if far {
                        let last = last(self);
                        self.e.op(class, &named("min"), &[turned, last])
                    } else {
                        turned
                    };
                    (at, None)
                }
                Rule::Mirror | Rule::Symmetric => {
                    let image = if low {
                        // For the symmetric rule, this is −1 − at.
                        let name = if rule == Rule::Mirror { named("neg") } else { format!("not.{}", class.ptx()) };
                        self.e.op(class, &name, &[at])
                    } else {
                        let twice = self.e.op(class, &named("add"), &[extent, extent]);
                        let twice =
                            self.e.op_with(class, &named("sub"), &[twice], 1 + isize::from(rule == Rule::Mirror));
                        self.e.op(class, &named("sub"), &[twice, at])
                    };
                    let image = self.e.op(class, &named(if low { "max" } else { "min" }), &[at, image]);
                    (if far { self.e.op_with(class, &named("max"), &[image], 0) } else { image }, None)
                }
            }
        };
        around.indices.insert(key, known);
        known
    }
}
