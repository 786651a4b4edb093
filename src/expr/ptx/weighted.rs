//! Weighted sums of many neighbours in kernels.
//!
//! The weights are a table in the kernel's constant memory. If all neighbours of a thread's vector are inside and contiguous, the thread
//! reads them vector by vector, each once, and adds the products of each element to all sums of its vector: 16 multiply-adds for each
//! access, with vectors of four. The weights for a vector are the weights for the vector before it, shifted by the vector's length. At the
//! ends of rows, and if neighbours are not contiguous, each neighbour is read by its index.

use std::fmt::Write;

use super::emit::{Class, Reg, op};
use super::{At, Kernel, Param, Way};
use crate::expr::dtype::DType;
use crate::expr::graph::Op;
use crate::expr::neighbours::neighbour::Rule;
use crate::expr::neighbours::weighted::Taps;

/// The most bytes of tables in constant memory.
const CONSTANT_BYTES: usize = 32 << 10;

/// A weighted sum that is not finished.
struct Sum<'a> {
    taps: &'a Taps,
    operand: usize,
    /// The numbers of spare elements in the operand's memory, before and after it along the axis of the sum.
    spare: [isize; 2],
    /// The type of the elements that are read, and the type of the sum.
    from: DType,
    dtype: DType,
    /// The name of the table, and the state space that it is in.
    table: String,
    space: &'static str,
    /// The number of entries of the table before the first weight.
    pad: usize,
    sums: Vec<Reg>,
}

/// The vectors that hold the neighbours of a thread's vector, of `width` elements.
#[derive(Clone, Copy)]
struct Span {
    width: usize,
    /// The distance to the first vector. It is a number of whole vectors.
    start: isize,
    /// The distance from there to the first neighbour of the vector's first element.
    pad: usize,
    weights: usize,
}

impl Span {
    fn new(taps: &Taps, width: usize) -> Self {
        let pad = taps.first.rem_euclid(width as isize);
        Self { width, start: taps.first - pad, pad: pad as usize, weights: taps.weights.len() }
    }

    /// Returns the number of vectors.
    fn vectors(self) -> usize {
        (self.pad + self.weights + self.width - 2) / self.width + 1
    }

    /// Returns the vectors whose elements all have a weight in every sum.
    fn full(self) -> std::ops::Range<usize> {
        let first = (self.pad + self.width - 1).div_ceil(self.width);
        first..((self.pad + self.weights) / self.width).max(first)
    }

    /// Returns whether an entry of the table is a weight.
    fn has(self, entry: usize) -> bool {
        (self.pad..self.pad + self.weights).contains(&entry)
    }
}

impl Kernel<'_> {
    /// Returns the weighted sums at the elements of a vector.
    pub(super) fn weighted(&mut self, input: u32, number: u32, dtype: DType, place: &At, width: usize) -> Vec<Reg> {
        let program = self.program;
        let taps = &program.taps[number as usize];
        let apart = self.variant.apart[0].expect("the innermost axis stays apart");
        let (axis, inner) = (usize::from(apart.axis), usize::from(self.variant.rank) - 1);
        let operand = self.operand_of(input);
        let span = Span::new(taps, self.variant.width.into());
        let (table, space) = self.table(number, (span.pad, span.vectors() * span.width), dtype);
        let sums = (0..width).map(|_| self.zero_of_sum(dtype)).collect();
        let from = program.inputs[input as usize].dtype;
        let spare = self.field.spare(input, axis);
        let sum = Sum { taps, operand, spare, from, dtype, table, space, pad: span.pad, sums };
        let in_row = axis == inner && !apart.backwards && self.variant.operands[operand] == Way::Row;
        let (border, both) = (self.e.label(), self.e.label());
        if in_row && span.width == width {
            let inside = self.span_inside(span, place, axis, sum.spare);
            op!(self.e, "@!{inside} bra {border};");
            self.sum_vectors(&sum, span, place);
            op!(self.e, "bra {both};");
        }
        self.e.place(&border);
        self.sum_anywhere(&sum, place, axis, apart.backwards);
        self.e.place(&both);
        sum.sums
    }

    /// Returns the initial value of a sum. Negative zero leaves every product that is added unchanged.
    pub(super) fn zero_of_sum(&mut self, dtype: DType) -> Reg {
        let zero = match dtype {
            DType::F32 => u64::from((-0f32).to_bits()),
            DType::F64 => (-0f64).to_bits(),
            _ => 0,
        };
        self.e.constant(dtype, zero)
    }

    /// Returns the name of a table of weights, which is declared once, and its state space. The table has `len` entries, and the weights
    /// begin at the entry `first`.
    pub(super) fn table(&mut self, number: u32, (first, len): (usize, usize), dtype: DType) -> (String, &'static str) {
        let lengths = self.program.taps.iter().map(|taps| taps.weights.len() + 2 * usize::from(self.variant.width));
        let space = if 8 * lengths.sum::<usize>() <= CONSTANT_BYTES { "const" } else { "global" };
        let name = format!("weights{number}_{dtype}");
        let start = format!(".{space} .align 16 .b{} {name}[", 8 * dtype.size());
        if !self.e.tables.iter().any(|table| table.starts_with(&start)) {
            let mut entries = vec![0u64; len];
            let weights = &self.program.taps[number as usize].weights;
            entries[first..][..weights.len()].copy_from_slice(weights);
            let entries: Vec<String> = entries.iter().map(u64::to_string).collect();
            self.e.tables.push(format!("{start}{}] = {{{}}};", entries.len(), entries.join(", ")));
        }
        (name, space)
    }

    fn span_inside(&mut self, span: Span, place: &At, axis: usize, [before, after]: [isize; 2]) -> Reg {
        let (index, s) = (place.index[axis].expect("an index along each axis"), self.signed());
        let extent = self.argument(Param::Extent(axis))[0];
        let low = self.e.op_with(Class::Pred, &format!("setp.ge.{s}"), &[index], -span.start - before);
        let end = span.start + (span.vectors() * span.width) as isize - after;
        let last = self.e.op_with(extent.class, &format!("sub.{s}"), &[extent], end);
        let high = self.e.op(Class::Pred, &format!("setp.le.{s}"), &[index, last]);
        self.e.op(Class::Pred, "and.pred", &[low, high])
    }

    /// Adds the product of an element and a weight to a sum of a type.
    pub(super) fn add_product(&mut self, (contracted, dtype): (bool, DType), to: Reg, value: Reg, weight: Reg) {
        let new = if contracted {
            self.e.compute(Op::MulAdd, dtype, dtype, &[value, weight, to])
        } else {
            let product = self.e.compute(Op::Mul, dtype, dtype, &[value, weight]);
            self.e.compute(Op::Add, dtype, dtype, &[to, product])
        };
        op!(self.e, "mov.{} {to}, {new};", to.class.ptx());
    }

    fn converted(&mut self, sum: &Sum, value: Reg) -> Reg {
        if sum.from == sum.dtype { value } else { self.e.cast(sum.from, sum.dtype, value) }
    }

    /// Adds the products of a vector's elements. `weight` returns the weight of an element in a sum, if there is one.
    fn add_vector(&mut self, sum: &Sum, values: &[Reg], weight: impl Fn(usize, usize) -> Option<Reg>) {
        for (element, &value) in values.iter().enumerate() {
            let value = self.converted(sum, value);
            for to in 0..values.len() {
                if let Some(weight) = weight(element, to) {
                    self.add_product((sum.taps.contracted, sum.dtype), sum.sums[to], value, weight);
                }
            }
        }
    }

    /// Computes the sums if all neighbours are inside and contiguous.
    fn sum_vectors(&mut self, sum: &Sum, span: Span, place: &At) {
        /// The most multiply-adds of a round of the loop.
        const PRODUCTS: usize = 128;
        let (width, full) = (span.width, span.full());
        let (x_bytes, w_bytes) = (width * sum.from.size(), width * sum.dtype.size());
        let address = place.addresses[sum.operand].expect("no single operand");
        let x = self.e.op_with(Class::B64, "add.s64", &[address], span.start * sum.from.size() as isize);
        let w = self.e.op_with(Class::B64, "mov.u64", &[], &sum.table);
        let unrolled = (PRODUCTS / (width * width)).clamp(1, 16);
        let rounds = full.len() / unrolled;
        self.sum_some(sum, span, (x, w), 0..full.start);
        if rounds > 0 {
            let start = full.start;
            let x = self.e.op_with(Class::B64, "add.s64", &[x], start * x_bytes);
            let end = self.e.op_with(Class::B64, "add.s64", &[x], rounds * unrolled * x_bytes);
            let w = self.e.op_with(Class::B64, "add.s64", &[w], start * w_bytes);
            let before = if width == 1 {
                Vec::new()
            } else {
                let last = self.e.op_with(Class::B64, "sub.s64", &[w], w_bytes);
                self.e.load(sum.space, sum.dtype, last, 0, width)
            };
            let again = self.e.label();
            self.e.place(&again);
            let mut old = before.clone();
            for vector in 0..unrolled {
                let values = self.e.load("global", sum.from, x, vector * x_bytes, width);
                let new = self.e.load(sum.space, sum.dtype, w, vector * w_bytes, width);
                self.add_vector(sum, &values, |element, to| {
                    Some(if element >= to { new[element - to] } else { old[width + element - to] })
                });
                old = new;
            }
            for (&to, from) in before.iter().zip(old).skip(1) {
                op!(self.e, "mov.{} {to}, {from};", to.class.ptx());
            }
            op!(self.e, "add.s64 {x}, {x}, {};", unrolled * x_bytes);
            op!(self.e, "add.s64 {w}, {w}, {};", unrolled * w_bytes);
            let more = self.e.op(Class::Pred, "setp.ne.u64", &[x, end]);
            op!(self.e, "@{more} bra {again};");
        }
        self.sum_some(sum, span, (x, w), full.start + rounds * unrolled..span.vectors());
    }

    /// Adds some vectors without a loop. It leaves out entries of the table that are not weights.
    fn sum_some(&mut self, sum: &Sum, span: Span, (x, w): (Reg, Reg), vectors: std::ops::Range<usize>) {
        let width = span.width;
        let (x_bytes, w_bytes) = (width * sum.from.size(), width * sum.dtype.size());
        if vectors.is_empty() {
            return;
        }
        let mut old = match vectors.start.checked_sub(1) {
            Some(before) if width > 1 => self.e.load(sum.space, sum.dtype, w, before * w_bytes, width),
            _ => Vec::new(),
        };
        for vector in vectors {
            let values = self.e.load("global", sum.from, x, vector * x_bytes, width);
            let new = self.e.load(sum.space, sum.dtype, w, vector * w_bytes, width);
            self.add_vector(sum, &values, |element, to| {
                let entry = (vector * width + element).checked_sub(to).filter(|&entry| span.has(entry))?;
                Some(if entry >= vector * width { new[element - to] } else { old[width + element - to] })
            });
            old = new;
        }
    }

    /// Computes the sums of neighbours that are read by their indices, weight by weight.
    fn sum_anywhere(&mut self, sum: &Sum, place: &At, axis: usize, backwards: bool) {
        let (inner, s, operand) = (usize::from(self.variant.rank) - 1, self.signed(), sum.operand);
        let add = format!("add.{s}");
        let class = self.argument(Param::Extent(axis))[0].class;
        let mut row = self.argument(Param::Operand(operand))[0];
        for other in (0..=inner).filter(|&other| other != axis && other != inner) {
            row = self.indexed(operand, other, row, place.index[other].expect("an index along each axis"));
        }
        // For each element, this has the address of its neighbours' row, and its index along the axis.
        let mut elements = Vec::new();
        for i in 0..sum.sums.len() {
            let first = place.index[inner].expect("an index along each axis");
            let at = if i == 0 { first } else { self.e.op_with(class, &add, &[first], i) };
            elements.push(match axis == inner {
                true => (row, at),
                false => {
                    let row = self.indexed(operand, inner, row, at);
                    (row, place.index[axis].expect("an index along each axis"))
                }
            });
        }
        let outside = match sum.taps.rule {
            Rule::Constant(word) => Some(self.e.constant(sum.from, word)),
            _ => None,
        };
        let sign = if backwards { -1 } else { 1 };
        let (first, count) = (sign * sum.taps.first, sum.taps.weights.len() as isize);
        let by = self.e.op_with(class, &format!("mov.{}", class.ptx()), &[], first);
        let table = self.e.op_with(Class::B64, "mov.u64", &[], &sum.table);
        let w = self.e.op_with(Class::B64, "add.s64", &[table], sum.pad * sum.dtype.size());
        let again = self.e.label();
        self.e.place(&again);
        let weight = self.e.load(sum.space, sum.dtype, w, 0, 1)[0];
        for (to, (row, index)) in elements.into_iter().enumerate() {
            let at = self.e.op(class, &add, &[index, by]);
            let (at, inside) = self.turned_back(sum.taps.rule, at, axis, sum.spare);
            let address = self.indexed(operand, axis, row, at);
            let mut value = self.e.load("global", sum.from, address, 0, 1)[0];
            if let (Some(inside), Some(outside)) = (inside, outside) {
                value = self.e.select(sum.from, inside, value, outside);
            }
            let value = self.converted(sum, value);
            self.add_product((sum.taps.contracted, sum.dtype), sum.sums[to], value, weight);
        }
        op!(self.e, "{add} {by}, {by}, {sign};");
        op!(self.e, "add.s64 {w}, {w}, {};", sum.dtype.size());
        let more = self.e.op_with(Class::Pred, &format!("setp.ne.{s}"), &[by], first + sign * count);
        op!(self.e, "@{more} bra {again};");
    }

    /// Returns the index that is read in place of an index on either side. Also returns whether the index is inside, if this matters. Spare
    /// elements contain everything that is read for places inside.
    pub(super) fn turned_back(&mut self, rule: Rule, at: Reg, axis: usize, spare: [isize; 2]) -> (Reg, Option<Reg>) {
        if spare != [0; 2] {
            return (at, None);
        }
        let (class, s, extent) = (at.class, self.signed(), self.argument(Param::Extent(axis))[0]);
        let named = |name: &str| format!("{name}.{s}");
        match rule {
            Rule::Clamp | Rule::Constant(_) => {
                let last = self.e.op_with(class, &named("sub"), &[extent], 1);
                let low = self.e.op_with(class, &named("max"), &[at], 0);
                let near = self.e.op(class, &named("min"), &[low, last]);
                let inside =
                    matches!(rule, Rule::Constant(_)).then(|| self.e.op(Class::Pred, &named("setp.eq"), &[near, at]));
                (near, inside)
            }
            Rule::Periodic => {
                let select = format!("selp.{}", class.ptx());
                let before = self.e.op_with(Class::Pred, &named("setp.lt"), &[at], 0);
                let after = self.e.op(Class::Pred, &named("setp.ge"), &[at, extent]);
                let up = self.e.op(class, &named("add"), &[at, extent]);
                let down = self.e.op(class, &named("sub"), &[at, extent]);
                let at = self.e.op(class, &select, &[up, at, before]);
                (self.e.op(class, &select, &[down, at, after]), None)
            }
            Rule::Mirror | Rule::Symmetric => {
                let mirror = rule == Rule::Mirror;
                let name = if mirror { named("neg") } else { format!("not.{}", class.ptx()) };
                let image = self.e.op(class, &name, &[at]);
                let at = self.e.op(class, &named("max"), &[at, image]);
                let twice = self.e.op(class, &named("add"), &[extent, extent]);
                let twice = self.e.op_with(class, &named("sub"), &[twice], 1 + isize::from(mirror));
                let image = self.e.op(class, &named("sub"), &[twice, at]);
                (self.e.op(class, &named("min"), &[at, image]), None)
            }
        }
    }
}
