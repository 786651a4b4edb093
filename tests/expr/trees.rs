//! Random expressions, against an interpreter.

use kernel_primitives::Result;
use kernel_primitives::expr::*;
use ndarray::ArrayD;
use proptest::prelude::*;

use crate::views::{Turn, extents, turn};
use crate::{Sample, assert_near, numbers, stream};

/// An expression whose operations are exact, or rounded once.
#[derive(Clone, Debug)]
enum Tree {
    /// One of the operands.
    Leaf(usize),
    Number(i8),
    Constant(i8),
    Index,
    One(One, Box<Tree>),
    Two(Two, Box<Tree>, Box<Tree>),
    /// Where the first is less than the second, the third, else the fourth.
    Select(Box<[Tree; 4]>),
    /// The tree, twice: `x + x` of one expression.
    Twice(Box<Tree>),
}

#[derive(Clone, Copy, Debug)]
enum One {
    Neg,
    Abs,
    Square,
    Relu,
    ThroughHalf,
    ThroughByte,
}

#[derive(Clone, Copy, Debug)]
enum Two {
    Add,
    Sub,
    Mul,
    Min,
    Max,
    Equal,
}

const OPERANDS: usize = 4;

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        6 => (0..OPERANDS).prop_map(Tree::Leaf),
        1 => any::<i8>().prop_map(Tree::Number),
        1 => any::<i8>().prop_map(Tree::Constant),
        1 => Just(Tree::Index),
    ];
    leaf.prop_recursive(6, 60, 4, |inner| {
        let one = prop::sample::select(
            [One::Neg, One::Abs, One::Square, One::Relu, One::ThroughHalf, One::ThroughByte].to_vec(),
        );
        let two = prop::sample::select([Two::Add, Two::Sub, Two::Mul, Two::Min, Two::Max, Two::Equal].to_vec());
        prop_oneof![
            2 => (one, inner.clone()).prop_map(|(op, a)| Tree::One(op, a.into())),
            5 => (two, inner.clone(), inner.clone()).prop_map(|(op, a, b)| Tree::Two(op, a.into(), b.into())),
            1 => [inner.clone(), inner.clone(), inner.clone(), inner.clone()]
                .prop_map(|trees| Tree::Select(trees.into())),
            1 => inner.prop_map(|a| Tree::Twice(a.into())),
        ]
    })
}

trait Value: Sample + Numeric + PartialOrd + Promote<Self, Output = Self> + std::ops::Neg {
    fn number(x: i8) -> Self;
    fn one(op: One, a: Self) -> Self;
    fn two(op: Two, a: Self, b: Self) -> Self;
    fn half(a: Expr<Self>) -> Expr<Self>;
}

impl Value for i32 {
    fn number(x: i8) -> Self {
        x.into()
    }
    fn one(op: One, a: Self) -> Self {
        match op {
            One::Neg => a.wrapping_neg(),
            One::Abs => a.wrapping_abs(),
            One::Square => a.wrapping_mul(a),
            One::Relu => a.max(0),
            One::ThroughHalf => a as i16 as i32,
            One::ThroughByte => a as i8 as i32,
        }
    }
    fn two(op: Two, a: Self, b: Self) -> Self {
        match op {
            Two::Add => a.wrapping_add(b),
            Two::Sub => a.wrapping_sub(b),
            Two::Mul => a.wrapping_mul(b),
            Two::Min => a.min(b),
            Two::Max => a.max(b),
            Two::Equal => (a == b).into(),
        }
    }
    fn half(a: Expr<Self>) -> Expr<Self> {
        a.cast::<i16>().cast()
    }
}

impl Value for f32 {
    fn number(x: i8) -> Self {
        x.into()
    }
    fn one(op: One, a: Self) -> Self {
        match op {
            One::Neg => -a,
            One::Abs => a.abs(),
            One::Square => a * a,
            One::Relu => a.max(0.0) + if a.is_nan() { a } else { 0.0 },
            One::ThroughHalf => half::f16::from_f32(a).to_f32(),
            One::ThroughByte => a as i8 as f32,
        }
    }
    fn two(op: Two, a: Self, b: Self) -> Self {
        // −0 is less than +0.
        let below = a < b || (a == b && a.is_sign_negative());
        match op {
            Two::Add => a + b,
            Two::Sub => a - b,
            Two::Mul => a * b,
            Two::Min | Two::Max if a.is_nan() || b.is_nan() => f32::NAN,
            Two::Min => {
                if below {
                    a
                } else {
                    b
                }
            }
            Two::Max => {
                if below {
                    b
                } else {
                    a
                }
            }
            Two::Equal => {
                if a == b {
                    1.0
                } else {
                    0.0
                }
            }
        }
    }
    fn half(a: Expr<Self>) -> Expr<Self> {
        a.cast::<half::f16>().cast()
    }
}

impl Tree {
    fn expr<T: Value>(&self, operands: &[Tensor<T>]) -> Expr<T> {
        match self {
            Self::Leaf(at) => operands[*at].clone().expr(),
            Self::Number(x) => scalar(T::number(*x)),
            Self::Constant(x) => constant(T::number(*x)),
            Self::Index => element_index(),
            Self::One(op, a) => {
                let a = a.expr(operands);
                match op {
                    One::Neg => -a,
                    One::Abs => a.abs(),
                    One::Square => a.square(),
                    One::Relu => a.relu(),
                    One::ThroughHalf => T::half(a),
                    One::ThroughByte => a.cast::<i8>().cast(),
                }
            }
            Self::Two(op, a, b) => {
                let (a, b) = (a.expr(operands), b.expr(operands));
                match op {
                    Two::Add => a + b,
                    Two::Sub => a - b,
                    Two::Mul => a * b,
                    Two::Min => a.minimum(b),
                    Two::Max => a.maximum(b),
                    Two::Equal => eq(a, b).cast(),
                }
            }
            Self::Select(trees) => {
                let [a, b, c, d] = &**trees;
                let [a, b, c, d] = [a, b, c, d].map(|tree| tree.expr(operands));
                select(a.lt(b), c, d)
            }
            Self::Twice(a) => {
                let a = a.expr(operands);
                &a + &a
            }
        }
    }

    fn value<T: Value>(&self, operands: &[T], index: usize) -> T {
        match self {
            Self::Leaf(at) => operands[*at],
            Self::Number(x) | Self::Constant(x) => T::number(*x),
            Self::Index => T::of(crate::Wide::Int(index as i128)),
            Self::One(op, a) => T::one(*op, a.value(operands, index)),
            Self::Two(op, a, b) => T::two(*op, a.value(operands, index), b.value(operands, index)),
            Self::Select(trees) => {
                let [a, b, c, d] = &**trees;
                let [a, b, c, d] = [a, b, c, d].map(|tree| tree.value(operands, index));
                if a < b { c } else { d }
            }
            Self::Twice(a) => {
                let a = a.value(operands, index);
                T::two(Two::Add, a, a)
            }
        }
    }
}

/// Operands that broadcast to one shape: each a view with some axes of extent 1, or without the outermost.
fn check<T: Value>(tree: &Tree, shape: &[usize], lies: &[(u8, Vec<Turn>)], target: &[Turn], seed: u64) -> Result<()> {
    let stream = stream()?;
    let (mut tensors, mut arrays) = (Vec::new(), Vec::new());
    for (at, (narrow, turns)) in lies.iter().enumerate() {
        let mut own: Vec<usize> = shape.to_vec();
        for (axis, extent) in own.iter_mut().enumerate() {
            if narrow >> axis & 1 != 0 {
                *extent = 1;
            }
        }
        own.drain(..(usize::from(*narrow) >> 5).min(own.len()));
        let (tensor, array) = lie::<T>(&stream, &own, turns, seed + at as u64)?;
        arrays.push(array.broadcast(shape).unwrap().as_standard_layout().into_owned());
        tensors.push(tensor);
    }
    let (y, mut expected) = lie::<T>(&stream, shape, target, 99)?;
    y.assign(tree.expr(&tensors))?;
    for (index, result) in expected.iter_mut().enumerate() {
        let operands: Vec<T> = arrays.iter().map(|array| array.as_slice().unwrap()[index]).collect();
        *result = tree.value(&operands, index);
    }
    assert_near(&y.to_vec()?, &expected.into_iter().collect::<Vec<_>>(), 0, &format!("{tree:?}"));
    Ok(())
}

/// A tensor of this shape that is a view of a larger one, and its elements.
fn lie<T: Value>(
    stream: &kernel_primitives::Stream,
    shape: &[usize],
    turns: &[Turn],
    seed: u64,
) -> Result<(Tensor<T>, ArrayD<T>)> {
    // Each turn of an axis has a larger array to be cut from.
    let mut steps = vec![(0, 1, false); shape.len()];
    let mut order: Vec<usize> = (0..shape.len()).collect();
    for turn in turns {
        match *turn {
            Turn::Slice { axis, start, step, .. } if !shape.is_empty() => {
                steps[axis % shape.len()] = (start, step.unsigned_abs(), step < 0);
            }
            Turn::Swap(a, b) if !shape.is_empty() => order.swap(a % shape.len(), b % shape.len()),
            Turn::Transpose => order.reverse(),
            _ => {}
        }
    }
    let whole: Vec<usize> = order.iter().map(|&axis| steps[axis].0 + shape[axis] * steps[axis].1).collect();
    let data = numbers::<T>(whole.iter().product(), seed);
    let x = Tensor::from_slice(stream, &whole, &data)?;
    let slices: Vec<AxisSlice> = order
        .iter()
        .map(|&axis| {
            let (start, step, _) = steps[axis];
            AxisSlice::from(start as isize..).by(step as isize)
        })
        .collect();
    let mut back = vec![0; shape.len()];
    for (at, &axis) in order.iter().enumerate() {
        back[axis] = at;
    }
    let mut view = x.slice(&slices[..])?.permute(&back)?;
    let flips: Vec<AxisSlice> = steps.iter().map(|step| AxisSlice::from(..).by(if step.2 { -1 } else { 1 })).collect();
    view = view.slice(&flips[..])?;
    assert_eq!(view.shape()[..], *shape);
    let array = ArrayD::from_shape_vec(shape, view.to_vec()?).unwrap();
    Ok((view, array))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn random_expressions(
        tree in tree(),
        shape in extents(),
        lies in prop::collection::vec((any::<u8>(), prop::collection::vec(turn(), 0..4)), OPERANDS),
        target in prop::collection::vec(turn(), 0..4),
        seed in 0..1000u64,
    ) {
        check::<i32>(&tree, &shape, &lies, &target, seed)?;
        check::<f32>(&tree, &shape, &lies, &target, seed)?;
    }

    #[test]
    fn random_expressions_of_long_vectors(tree in tree(), len in 1000..6000usize, seed in 0..1000u64) {
        let lies: Vec<_> = (0..OPERANDS).map(|at| (at as u8 / 3, Vec::new())).collect();
        check::<i32>(&tree, &[len], &lies, &[], seed)?;
        check::<f32>(&tree, &[len], &lies, &[], seed)?;
    }
}
