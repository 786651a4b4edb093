//! Computes the values of trees in plain Rust. If an operator is only near its reference, it uses the value that the device computes.

use std::collections::HashMap;
use std::rc::Rc;

use kernel_primitives::Result;
use kernel_primitives::expr::*;
use kernel_primitives::functor::UnaryFn;
use kernel_primitives::thread::{NormalF32, NormalF64, Philox, UniformF32, UniformF64};
use proptest::prelude::*;

use super::build::Typed;
use super::{Kind, Node, Operands};
use crate::net::reference::{self, Compare, One};
use crate::net::with;
use crate::{Sample, Wide};

/// The values of nodes, over the shape.
pub(in crate::net) struct Interpreter<'a> {
    operands: &'a Operands<'a>,
    known: HashMap<*const Node, Rc<Vec<Wide>>>,
}

impl<'a> Interpreter<'a> {
    pub(in crate::net) fn new(operands: &'a Operands<'a>) -> Self {
        Self { operands, known: HashMap::new() }
    }

    pub(in crate::net) fn values(&mut self, node: &Rc<Node>) -> Result<Rc<Vec<Wide>>, TestCaseError> {
        if let Some(known) = self.known.get(&Rc::as_ptr(node)) {
            return Ok(known.clone());
        }
        let arguments =
            node.arguments.iter().map(|argument| self.values(argument)).collect::<Result<Vec<_>, TestCaseError>>()?;
        let values = Rc::new(self.of(node, &arguments)?);
        self.known.insert(Rc::as_ptr(node), values.clone());
        Ok(values)
    }

    fn of(&self, node: &Node, arguments: &[Rc<Vec<Wide>>]) -> Result<Vec<Wide>, TestCaseError> {
        let (dtype, shape) = (node.dtype, self.operands.shape);
        let count: usize = shape.iter().product();
        let map = |f: &dyn Fn(usize) -> Wide| (0..count).map(f).collect::<Vec<Wide>>();
        let at = |argument: usize, i: usize| arguments[argument][i];
        Ok(match node.kind {
            Kind::Leaf(leaf) => self.operands.leaves[leaf].values(),
            Kind::Number { value, .. } => map(&|_| reference::convert(value, dtype)),
            Kind::Index(None) => map(&|i| Wide::Int(i as i128)),
            Kind::Index(Some(axis)) => {
                let inner: usize = shape[axis + 1..].iter().product();
                map(&|i| Wide::Int((i / inner % shape[axis]) as i128))
            }
            Kind::Random { normal, seed } => {
                let of = |i: usize| random(dtype, normal, seed, i);
                let values = map(&of);
                if normal { self.as_computed(node, &[], &values, 64)? } else { values }
            }
            Kind::One(op) => {
                let values = map(&|i| reference::apply_one(op, dtype, at(0, i)));
                match op {
                    One::Approximate(_) => self.as_computed(node, arguments, &values, reference::ulps(dtype))?,
                    _ => values,
                }
            }
            Kind::Two(op) => {
                let values = map(&|i| reference::apply_two(op, dtype, at(0, i), at(1, i)));
                match reference::is_approximate(op, dtype) {
                    true => self.as_computed(node, arguments, &values, reference::ulps(dtype))?,
                    false => values,
                }
            }
            Kind::Compare(op) => map(&|i| reference::compare(op, at(0, i), at(1, i))),
            Kind::Cast => map(&|i| reference::convert(at(0, i), dtype)),
            Kind::IsNan => map(&|i| reference::compare(Compare::Ne, at(0, i), at(0, i))),
            Kind::Select => map(&|i| if reference::truth(at(0, i)) { at(1, i) } else { at(2, i) }),
            Kind::MulAdd => map(&|i| reference::mul_add(dtype, at(0, i), at(1, i), at(2, i))),
            Kind::Gather(table) => {
                let table = self.operands.tables[table].values();
                map(&|i| match at(0, i) {
                    Wide::Int(index) => table[index as usize],
                    Wide::Float(_) => unreachable!("by integers"),
                })
            }
        })
    }

    /// Returns the value that the device computes for a single operator. It is near `expected`, and with it, the rest is exact.
    fn as_computed(
        &self,
        node: &Node,
        arguments: &[Rc<Vec<Wide>>],
        expected: &[Wide],
        ulps: u64,
    ) -> Result<Vec<Wide>, TestCaseError> {
        with!(node.dtype, T => {
            let stream = self.operands.stream;
            let make = |values: &[Wide]| {
                let all: Vec<T> = values.iter().map(|&value| T::of(value)).collect();
                Tensor::from_slice(stream, all.len(), &all)
            };
            let result = Tensor::<T>::uninit(stream, self.operands.shape)?;
            let operands = arguments.iter().map(|values| make(values)?.reshape(self.operands.shape)).collect::<Result<Vec<_>>>()?;
            result.assign(match node.kind {
                Kind::One(op) => T::one(op, operands[0].to_expr()),
                Kind::Two(op) => T::two(op, operands[0].to_expr(), operands[1].to_expr()),
                Kind::Random { normal, seed } => T::random(normal, seed),
                _ => unreachable!("{node:?} is exact"),
            })?;
            let got = result.to_vec()?;
            for (i, (&got, &expected)) in got.iter().zip(expected).enumerate() {
                let of: Vec<_> = arguments.iter().map(|values| T::of(values[i])).collect();
                let expected = T::of(expected);
                prop_assert!(got.distance(expected) <= ulps, "{:?} of {of:?}: {got:?}, not {expected:?}", node.kind);
            }
            Ok(got.into_iter().map(Sample::wide).collect())
        })
    }
}

/// Returns the random number of an element, from Philox's draws.
fn random(dtype: DType, normal: bool, seed: u64, i: usize) -> Wide {
    let draw = |each: usize| Philox::new(seed, 0).skip((i / each) as u64).draw();
    Wide::Float(match (dtype, normal) {
        (DType::F32, false) => UniformF32.apply(draw(4))[i % 4].into(),
        (DType::F32, true) => NormalF32.apply(draw(4))[i % 4].into(),
        (_, false) => UniformF64.apply(draw(2))[i % 2],
        (_, true) => NormalF64.apply(draw(2))[i % 2],
    })
}
