//! Tests stencils that read elements in the memory around a view. A machine for PTX runs the kernels, and the CPU runs the same stencils.
//! The results are compared with loops.

use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;

use primitives_host::{Device, Result};
use ptx_machine::Machine;

use crate::expr::Tensor;
use crate::expr::dtype::{DType, ToWord};
use crate::expr::evaluate::{evaluate, prepare};
use crate::expr::gpu::Operands;
use crate::expr::gpu::text::KernelText;
use crate::expr::graph::{Kind, Node, Op, View, arguments, function_of_two, node};
use crate::expr::layout::shape::{Layout, MAX_RANK, Shape};
use crate::expr::neighbours::neighbour::{Rule, Shift, Spare};
use crate::expr::neighbours::weighted::Taps;
use crate::expr::program::lower;

/// The number of elements of memory before and after all rows, as around shards.
const PAD: usize = 32;

/// Rows, with spare rows before and after them.
struct Rows {
    rows: usize,
    columns: usize,
    before: usize,
    data: Vec<i32>,
    view: Arc<View>,
}

impl Rows {
    fn new(shape: &[usize], [before, after]: [usize; 2]) -> Result<Self> {
        let (rows, columns) = (shape[0], shape.get(1).copied().unwrap_or(1));
        let stream = Device::emulator().stream()?;
        let all = (before + rows + after) * columns + 2 * PAD;
        let data: Vec<i32> = (0..all as i32).map(|i| i.wrapping_mul(0x3579_1357) >> 7).collect();
        let memory = Tensor::from_slice(&stream, all, &data)?.view;
        let shape = Shape::new(shape).expect("few axes");
        let layout = Layout { offset: PAD + before * columns, ..Layout::contiguous(shape) };
        let spare = Some(Spare { axis: shape.rank() as u8 - 1, before, after });
        let (storage, stream) = (memory.storage.clone(), memory.stream.clone());
        let view = Arc::new(View { storage, stream, layout, dtype: DType::I32, spare, origin: None });
        Ok(Self { rows, columns, before, data, view })
    }

    /// Returns the element at distances from a place, by the definition of the rule along columns.
    fn at(&self, place: usize, [up, left]: [isize; 2], rule: Rule) -> i32 {
        let (row, column) = ((place / self.columns) as isize + up, (place % self.columns) as isize + left);
        let columns = self.columns as isize;
        let column = match rule {
            Rule::Clamp => column.clamp(0, columns - 1),
            Rule::Periodic => column.rem_euclid(columns),
            Rule::Constant(word) if !(0..columns).contains(&column) => return word as i32,
            _ => column,
        };
        self.data[PAD + ((row + self.before as isize) * columns + column) as usize]
    }

    /// Returns a sum over neighbours. Each is multiplied by its number.
    fn sum(&self, by: &[[isize; 2]], rule: Rule) -> Arc<Node> {
        let terms = by.iter().zip(1..).map(|(&[up, left], number)| {
            let mut shift = Shift { by: [0; MAX_RANK], rule };
            (shift.by[0], shift.by[self.view.layout.shape.rank() - 1]) =
                if self.view.layout.shape.rank() == 1 { (up, up) } else { (left, up) };
            let kind = match [up, left] {
                [0, 0] => Kind::View(self.view.clone()),
                _ => Kind::Neighbour(self.view.clone(), Arc::new(shift)),
            };
            let factor = node(Kind::Scalar(i32::to_word(number)), DType::I32, arguments([]));
            function_of_two(Op::Mul, node(kind, DType::I32, arguments([])), factor)
        });
        terms.reduce(|sum, term| function_of_two(Op::Add, sum, term)).expect("a neighbour")
    }

    #[track_caller]
    fn check(&self, value: &Arc<Node>, expected: impl Fn(usize) -> i32) -> Result<()> {
        let expected: Vec<i32> = (0..self.rows * self.columns).map(expected).collect();
        let bytes_of =
            |view: &View| -> Range<u64> { view.storage.address()..view.storage.address() + view.storage.len() as u64 };
        let stream = &self.view.stream;
        let target = Tensor::<i32>::zeros(stream, self.view.layout.shape)?;
        evaluate(Location::caller(), &[&target.view], std::slice::from_ref(value))?;
        assert_eq!(target.to_vec()?, expected, "on the CPU");
        for tiles in [false, true] {
            let target = Tensor::<i32>::zeros(stream, self.view.layout.shape)?;
            let (lowered, targets) = (lower([value]), [&target.view]);
            let nest = prepare(Location::caller(), &targets, &lowered, &|| vec![value])?;
            let KernelText { text, mut words, blocks, threads, .. } =
                Operands::new(&targets, &lowered, &nest).written(tiles, 90)?;
            words.push(0);
            let reads: Vec<_> = lowered.inputs.iter().map(|view| bytes_of(view)).collect();
            let machine = Machine::new(&text).parting();
            // SAFETY: the memory is that of tensors of this thread, which are alive.
            unsafe { machine.run(blocks, threads, &words, &reads, &[bytes_of(&target.view)]) };
            assert!(target.to_vec()? == expected, "{:?} by tiles {tiles}:\n{text}", self.view.layout.shape);
        }
        Ok(())
    }
}

const RULES: [Rule; 3] = [Rule::Clamp, Rule::Periodic, Rule::Constant(77)];

fn sum_of(rows: &Rows, by: &[[isize; 2]], rule: Rule, place: usize) -> i32 {
    let terms = by.iter().zip(1i32..).map(|(&by, number)| number.wrapping_mul(rows.at(place, by, rule)));
    terms.fold(0, i32::wrapping_add)
}

#[test]
fn rows_around_those_that_are_computed() -> Result<()> {
    let by = [[-2, 0], [0, 1], [0, 0], [1, -1], [1, 0], [-1, -2]];
    for shape in [[1, 8], [2, 3], [5, 64], [9, 1], [33, 100], [1, 1]] {
        for reach in [[2, 1], [3, 3]] {
            let rows = Rows::new(&shape, reach)?;
            let left = |left: isize| if shape[1] > 2 { left } else { 0 };
            let by = by.map(|[up, by]| [up, left(by)]);
            for rule in RULES {
                rows.check(&rows.sum(&by, rule), |place| sum_of(&rows, &by, rule, place))?;
            }
        }
    }
    Ok(())
}

#[test]
fn rows_of_threads_that_have_several() -> Result<()> {
    let by = [[-1, 0], [1, 0], [0, -1], [0, 1], [0, 0]];
    // One number of rows is a multiple of a thread's rows, and the other is not.
    for count in [1028, 1027] {
        let rows = Rows::new(&[count, 2048], [1, 1])?;
        rows.check(&rows.sum(&by, Rule::Clamp), |place| sum_of(&rows, &by, Rule::Clamp, place))?;
    }
    Ok(())
}

/// The device has a small part of a long vector.
#[test]
fn neighbours_farther_than_an_axis_is_long() -> Result<()> {
    let stream = Device::emulator().stream()?;
    let memory = Tensor::<u8>::zeros(&stream, 64)?.view;
    let target = Tensor::<u8>::zeros(&stream, 64)?.view;
    let by: isize = 3 << 30;
    let layout = Layout::contiguous(Shape::new(&[1 << 29]).expect("an axis"));
    let spare = Some(Spare { axis: 0, before: 0, after: by as usize });
    let (storage, own) = (memory.storage.clone(), memory.stream.clone());
    let view = Arc::new(View { storage, stream: own, layout, dtype: DType::U8, spare, origin: None });
    let mut shift = Shift { by: [0; MAX_RANK], rule: Rule::Clamp };
    shift.by[0] = by;
    let taps = Taps { first: by, weights: [1, 2, 3].into(), rule: Rule::Clamp, contracted: false };
    for kind in [Kind::Neighbour(view.clone(), Arc::new(shift)), Kind::Weighted(view, Arc::new(taps))] {
        let value = node(kind, DType::U8, arguments([]));
        let target = target.with_layout(layout);
        let (lowered, targets) = (lower([&value]), [&target]);
        let nest = prepare(Location::caller(), &targets, &lowered, &|| vec![&value])?;
        for tiles in [false, true] {
            let KernelText { text, .. } = Operands::new(&targets, &lowered, &nest).written(tiles, 90)?;
            let far: Vec<&str> = text.lines().filter(|line| line.contains(&by.to_string())).collect();
            assert!(!far.is_empty() && far.iter().all(|line| line.contains("64")), "{far:?} in\n{text}");
        }
    }
    Ok(())
}

#[test]
fn elements_around_vectors() -> Result<()> {
    for len in [1, 2, 7, 64, 1000, 4096] {
        for [low, high] in [[-1, 1], [-2, 5], [0, 9], [-16, 16]] {
            let rows = Rows::new(&[len], [-low as usize, high as usize])?;
            let by: Vec<[isize; 2]> = (low..=high).map(|by| [by, 0]).collect();
            for rule in RULES {
                rows.check(&rows.sum(&by, rule), |place| sum_of(&rows, &by, rule, place))?;
            }
        }
    }
    Ok(())
}

#[test]
fn weighted_sums_around_vectors() -> Result<()> {
    for len in [1, 5, 64, 1000, 4096] {
        for first in [-70, -35, 0, 3] {
            let weights: Vec<i32> = (0..71).map(|k| k * 3 - 50).collect();
            let last = first + weights.len() as isize - 1;
            let rows = Rows::new(&[len], [first.min(0).unsigned_abs(), last.max(0) as usize])?;
            for rule in RULES {
                let words = weights.iter().map(|&weight| i32::to_word(weight)).collect();
                let taps = Taps { first, weights: words, rule, contracted: false };
                let value = node(Kind::Weighted(rows.view.clone(), Arc::new(taps)), DType::I32, arguments([]));
                rows.check(&value, |place| {
                    let terms = weights.iter().zip(first..);
                    let terms = terms.map(|(&weight, by)| weight.wrapping_mul(rows.at(place, [by, 0], rule)));
                    terms.fold(0, i32::wrapping_add)
                })?;
            }
        }
    }
    Ok(())
}
