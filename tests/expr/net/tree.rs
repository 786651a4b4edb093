//! Random trees: drawn without types, given types, built as expressions and interpreted.

use std::any::Any;
use std::collections::HashMap;
use std::rc::Rc;

use half::{bf16, f16};
use kernel_primitives::expr::*;
use kernel_primitives::functor::UnaryFn;
use kernel_primitives::kernels::functions::{sin_f32, sin_f64};
use kernel_primitives::thread::{NormalF32, NormalF64, Philox, UniformF32, UniformF64};
use kernel_primitives::{Result, Stream};
use proptest::prelude::*;

use super::layout::Lie;
use super::reference::{self, Approximate, COMPARE, Compare, One, Two};
use super::with;
use crate::{Sample, Wide};

/// What a generator draws. Any of it is an expression: numbers are taken modulo what there is, operands are cast.
#[derive(Clone, Debug)]
pub(super) enum Sketch {
    Leaf(u8),
    Number {
        dtype: u8,
        sample: u8,
        constant: bool,
    },
    Index(u8),
    Random {
        wide: bool,
        normal: bool,
        seed: u64,
    },
    One(u8, Box<Sketch>),
    Cast(u8, Box<Sketch>),
    IsNan(Box<Sketch>),
    Two(u8, Box<[Sketch; 2]>),
    /// Of one operand twice.
    Both(u8, Box<Sketch>),
    Compare(u8, Box<[Sketch; 2]>),
    Select(Box<[Sketch; 3]>),
    MulAdd(Box<[Sketch; 3]>),
    Gather(u8, Box<Sketch>),
}

pub(super) fn sketch() -> impl Strategy<Value = Sketch> {
    let leaf = prop_oneof![
        8 => any::<u8>().prop_map(Sketch::Leaf),
        2 => any::<(u8, u8, bool)>().prop_map(|(dtype, sample, constant)| Sketch::Number { dtype, sample, constant }),
        1 => any::<u8>().prop_map(Sketch::Index),
        1 => (any::<bool>(), any::<bool>(), prop_oneof![Just(0), Just(u64::MAX), any::<u64>()])
            .prop_map(|(wide, normal, seed)| Sketch::Random { wide, normal, seed }),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let two = || [inner.clone(), inner.clone()].prop_map(Box::new);
        let three = || [inner.clone(), inner.clone(), inner.clone()].prop_map(Box::new);
        prop_oneof![
            4 => (any::<u8>(), inner.clone()).prop_map(|(op, a)| Sketch::One(op, a.into())),
            2 => (any::<u8>(), inner.clone()).prop_map(|(dtype, a)| Sketch::Cast(dtype, a.into())),
            1 => inner.clone().prop_map(|a| Sketch::IsNan(a.into())),
            8 => (any::<u8>(), two()).prop_map(|(op, both)| Sketch::Two(op, both)),
            1 => (any::<u8>(), inner.clone()).prop_map(|(op, a)| Sketch::Both(op, a.into())),
            2 => (any::<u8>(), two()).prop_map(|(op, both)| Sketch::Compare(op, both)),
            2 => three().prop_map(Sketch::Select),
            1 => three().prop_map(Sketch::MulAdd),
            1 => (any::<u8>(), inner.clone()).prop_map(|(table, a)| Sketch::Gather(table, a.into())),
        ]
    })
}

/// A node with its type.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) dtype: DType,
    kind: Kind,
    arguments: Vec<Rc<Node>>,
}

#[derive(Clone, Debug)]
enum Kind {
    Leaf(usize),
    Number {
        value: Wide,
        constant: bool,
    },
    /// Of the whole, or along an axis.
    Index(Option<usize>),
    Random {
        normal: bool,
        seed: u64,
    },
    One(One),
    Two(Two),
    Compare(Compare),
    Cast,
    IsNan,
    Select,
    MulAdd,
    Gather(usize),
}

/// What leaves can be.
pub(super) struct Operands<'a> {
    pub(super) stream: &'a Stream,
    pub(super) shape: &'a [usize],
    /// Views that broadcast to the shape.
    pub(super) leaves: &'a [Lie],
    /// Vectors.
    pub(super) tables: &'a [Lie],
}

fn node(dtype: DType, kind: Kind, arguments: Vec<Rc<Node>>) -> Rc<Node> {
    Rc::new(Node { dtype, kind, arguments })
}

pub(super) fn cast(value: Rc<Node>, dtype: DType) -> Rc<Node> {
    if value.dtype == dtype { value } else { node(dtype, Kind::Cast, vec![value]) }
}

fn number(value: i128, dtype: DType) -> Rc<Node> {
    node(dtype, Kind::Number { value: Wide::Int(value), constant: false }, vec![])
}

impl Operands<'_> {
    /// The expression of a sketch.
    pub(super) fn typed(&self, sketch: &Sketch) -> Rc<Node> {
        match sketch {
            Sketch::Leaf(at) if !self.leaves.is_empty() => {
                let at = usize::from(*at) % self.leaves.len();
                node(self.leaves[at].dtype, Kind::Leaf(at), vec![])
            }
            Sketch::Leaf(_) => number(3, DType::I32),
            Sketch::Number { dtype, sample, constant } => {
                let dtype = super::dtype(*dtype);
                let value = with!(dtype, T => {
                    let all = <T as Sample>::samples();
                    all[usize::from(*sample) % all.len()].wide()
                });
                node(dtype, Kind::Number { value, constant: *constant }, vec![])
            }
            Sketch::Index(at) => {
                let at = usize::from(*at) % (self.shape.len() + 1);
                node(DType::U64, Kind::Index(at.checked_sub(1)), vec![])
            }
            Sketch::Random { wide, normal, seed } => {
                node(if *wide { DType::F64 } else { DType::F32 }, Kind::Random { normal: *normal, seed: *seed }, vec![])
            }
            Sketch::One(op, a) => {
                let a = self.typed(a);
                node(a.dtype, Kind::One(reference::one(a.dtype, *op)), vec![a])
            }
            Sketch::Cast(dtype, a) => cast(self.typed(a), super::dtype(*dtype)),
            Sketch::IsNan(a) => {
                let a = self.typed(a);
                if a.dtype.is_float() { node(DType::Bool, Kind::IsNan, vec![a]) } else { a }
            }
            Sketch::Two(op, both) => {
                let [a, b] = &**both;
                two(*op, self.typed(a), self.typed(b))
            }
            Sketch::Both(op, a) => {
                let a = self.typed(a);
                two(*op, a.clone(), a)
            }
            Sketch::Compare(op, both) => {
                let [a, b] = both.each_ref().map(|sketch| self.typed(sketch));
                let b = cast(b, a.dtype);
                node(DType::Bool, Kind::Compare(COMPARE[usize::from(*op) % COMPARE.len()]), vec![a, b])
            }
            Sketch::Select(all) => {
                let [which, a, b] = all.each_ref().map(|sketch| self.typed(sketch));
                let (which, b) = (cast(which, DType::Bool), cast(b, a.dtype));
                node(a.dtype, Kind::Select, vec![which, a, b])
            }
            Sketch::MulAdd(all) => {
                let [a, b, c] = all.each_ref().map(|sketch| self.typed(sketch));
                let dtype = if a.dtype.is_float() { a.dtype } else { DType::F32 };
                node(dtype, Kind::MulAdd, vec![cast(a, dtype), cast(b, dtype), cast(c, dtype)])
            }
            Sketch::Gather(table, index) => {
                let index = self.typed(index);
                if self.tables.is_empty() {
                    return index;
                }
                let at = usize::from(*table) % self.tables.len();
                // Inside the table: a `u8` counts few enough elements.
                let index =
                    if index.dtype.is_integer() && index.dtype != DType::I8 { index } else { cast(index, DType::U8) };
                let len = number(self.tables[at].places.len() as i128, index.dtype);
                let inside = node(index.dtype, Kind::Two(Two::FloorRem), vec![index, len]);
                node(self.tables[at].dtype, Kind::Gather(at), vec![inside])
            }
        }
    }
}

/// An operator of two values, of the first one's type. No integer is divided by zero.
fn two(op: u8, a: Rc<Node>, b: Rc<Node>) -> Rc<Node> {
    let (dtype, mut b) = (a.dtype, cast(b, a.dtype));
    let op = reference::two(dtype, op);
    if dtype.is_integer() && matches!(op, Two::Div | Two::Rem | Two::FloorDiv | Two::FloorRem) {
        let zero = node(DType::Bool, Kind::Compare(Compare::Eq), vec![b.clone(), number(0, dtype)]);
        b = node(dtype, Kind::Select, vec![zero, number(1, dtype), b]);
    }
    node(dtype, Kind::Two(op), vec![a, b])
}

/// A type with its operators as expressions.
pub(super) trait Typed: Sample + Promote<Self, Output = Self> {
    fn one(op: One, a: Expr<Self>) -> Expr<Self>;
    fn two(op: Two, a: Expr<Self>, b: Expr<Self>) -> Expr<Self>;
    fn is_nan(_: Expr<Self>) -> Expr<bool> {
        unreachable!("of floats")
    }
    fn mul_add(_: [Expr<Self>; 3]) -> Expr<Self> {
        unreachable!("of floats")
    }
    fn gather<U: Scalar>(_: &Tensor<U>, _: Expr<Self>) -> Expr<U> {
        unreachable!("by integers")
    }
    fn random(_normal: bool, _seed: u64) -> Expr<Self> {
        unreachable!("of `f32` and `f64`")
    }
}

impl Typed for bool {
    fn one(_: One, a: Expr<Self>) -> Expr<Self> {
        !a
    }
    fn two(op: Two, a: Expr<Self>, b: Expr<Self>) -> Expr<Self> {
        match op {
            Two::And => a & b,
            Two::Or => a | b,
            Two::Xor => a ^ b,
            Two::Min => minimum(a, b),
            Two::Max => a.maximum(b),
            other => unreachable!("{other:?}"),
        }
    }
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Typed for $t {
            fn one(op: One, a: Expr<Self>) -> Expr<Self> {
                match op {
                    One::Neg => -a,
                    One::Abs => a.abs(),
                    One::Square => a.square(),
                    One::Relu => relu(a),
                    One::Not => !a,
                    other => unreachable!("{other:?}"),
                }
            }
            fn two(op: Two, a: Expr<Self>, b: Expr<Self>) -> Expr<Self> {
                match op {
                    Two::Add => a + b,
                    Two::Sub => a - b,
                    Two::Mul => a * b,
                    Two::Div => a / b,
                    Two::Rem => a % b,
                    Two::FloorDiv => floor_div(a, b),
                    Two::FloorRem => floor_rem(a, b),
                    Two::Min => minimum(a, b),
                    Two::Max => maximum(a, b),
                    Two::And => a & b,
                    Two::Or => a | b,
                    Two::Xor => a ^ b,
                    Two::Shl => a << b,
                    Two::Shr => a >> b,
                    other => unreachable!("{other:?}"),
                }
            }
            fn gather<U: Scalar>(table: &Tensor<U>, index: Expr<Self>) -> Expr<U> {
                gather(table, index)
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! floats {
    ($($t:ty: |$x:ident| $call:expr, |$normal:ident, $seed:ident| $random:expr;)*) => {$(
        impl Typed for $t {
            fn one(op: One, a: Expr<Self>) -> Expr<Self> {
                match op {
                    One::Neg => -a,
                    One::Abs => a.abs(),
                    One::Square => a.square(),
                    One::Relu => relu(a),
                    One::Recip => recip(a),
                    One::Sqrt => sqrt(a),
                    One::Floor => a.floor(),
                    One::Ceil => a.ceil(),
                    One::Trunc => a.trunc(),
                    One::Round => a.round(),
                    One::RoundTiesEven => a.round_ties_even(),
                    One::Approximate(function) => match function {
                        Approximate::Rsqrt => rsqrt(a),
                        Approximate::Cbrt => cbrt(a),
                        Approximate::Exp => exp(a),
                        Approximate::Exp2 => exp2(a),
                        Approximate::ExpM1 => exp_m1(a),
                        Approximate::Ln => ln(a),
                        Approximate::Log2 => log2(a),
                        Approximate::Log10 => log10(a),
                        Approximate::Ln1p => ln_1p(a),
                        Approximate::Sin => sin(a),
                        Approximate::Cos => cos(a),
                        Approximate::Tan => tan(a),
                        Approximate::SinPi => sin_pi(a),
                        Approximate::CosPi => cos_pi(a),
                        Approximate::Asin => asin(a),
                        Approximate::Acos => acos(a),
                        Approximate::Atan => atan(a),
                        Approximate::Sinh => sinh(a),
                        Approximate::Cosh => cosh(a),
                        Approximate::Tanh => tanh(a),
                        Approximate::Asinh => asinh(a),
                        Approximate::Acosh => acosh(a),
                        Approximate::Atanh => atanh(a),
                        Approximate::Erf => erf(a),
                        Approximate::Erfc => erfc(a),
                        Approximate::Call => { let $x = a; $call }
                    },
                    One::Not => unreachable!("of a float"),
                }
            }
            fn two(op: Two, a: Expr<Self>, b: Expr<Self>) -> Expr<Self> {
                match op {
                    Two::Add => a + b,
                    Two::Sub => a - b,
                    Two::Mul => a * b,
                    Two::Div => a / b,
                    Two::Rem => a % b,
                    Two::FloorDiv => floor_div(a, b),
                    Two::FloorRem => floor_rem(a, b),
                    Two::Min => minimum(a, b),
                    Two::Max => maximum(a, b),
                    Two::Pow => pow(a, b),
                    Two::Atan2 => atan2(a, b),
                    Two::Hypot => hypot(a, b),
                    other => unreachable!("{other:?}"),
                }
            }
            fn is_nan(a: Expr<Self>) -> Expr<bool> {
                is_nan(a)
            }
            fn mul_add([a, b, c]: [Expr<Self>; 3]) -> Expr<Self> {
                mul_add(a, b, c)
            }
            fn random($normal: bool, $seed: u64) -> Expr<Self> {
                $random
            }
        }
    )*};
}
floats! {
    f16: |x| sin(x), |_n, _s| unreachable!("of halves");
    bf16: |x| sin(x), |_n, _s| unreachable!("of halves");
    f32: |x| call(sin_f32::info(), (x,)), |n, s| if n { normal(s) } else { uniform(s) };
    f64: |x| call(sin_f64::info(), (x,)), |n, s| if n { normal(s) } else { uniform(s) };
}

/// The same value, of the same type under another name.
fn same<A: 'static, B: 'static>(value: A) -> B {
    *(Box::new(value) as Box<dyn Any>).downcast().expect("one type")
}

/// Expressions of nodes, each built once.
pub(super) struct Builder<'a> {
    operands: &'a Operands<'a>,
    built: HashMap<*const Node, Box<dyn Any>>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(operands: &'a Operands<'a>) -> Self {
        Self { operands, built: HashMap::new() }
    }

    pub(super) fn expr<T: Typed>(&mut self, node: &Rc<Node>) -> Expr<T> {
        if let Some(known) = self.built.get(&Rc::as_ptr(node)) {
            return known.downcast_ref::<Expr<T>>().expect("the node's type").clone();
        }
        let expr = self.of::<T>(node);
        self.built.insert(Rc::as_ptr(node), Box::new(expr.clone()));
        expr
    }

    fn of<T: Typed>(&mut self, node: &Rc<Node>) -> Expr<T> {
        let arguments = &node.arguments;
        match node.kind {
            Kind::Leaf(at) => self.operands.leaves[at].view::<T>().expr(),
            Kind::Number { value, constant: true } => constant(T::of(value)),
            Kind::Number { value, .. } => scalar(T::of(value)),
            Kind::Index(None) => same(element_index::<u64>()),
            Kind::Index(Some(axis)) => same(axis_index::<u64>(axis)),
            Kind::Random { normal, seed } => T::random(normal, seed),
            Kind::One(op) => T::one(op, self.expr(&arguments[0])),
            Kind::Two(op) => T::two(op, self.expr(&arguments[0]), self.expr(&arguments[1])),
            Kind::Compare(op) => with!(arguments[0].dtype, U => {
                let (a, b) = (self.expr::<U>(&arguments[0]), self.expr::<U>(&arguments[1]));
                same(match op {
                    Compare::Eq => eq(a, b),
                    Compare::Ne => ne(a, b),
                    Compare::Lt => lt(a, b),
                    Compare::Le => le(a, b),
                    Compare::Gt => gt(a, b),
                    Compare::Ge => a.ge(b),
                })
            }),
            Kind::Cast => with!(arguments[0].dtype, U => self.expr::<U>(&arguments[0]).cast::<T>()),
            Kind::IsNan => with!(arguments[0].dtype, U => same(<U as Typed>::is_nan(self.expr::<U>(&arguments[0])))),
            Kind::Select => {
                select(self.expr::<bool>(&arguments[0]), self.expr::<T>(&arguments[1]), self.expr::<T>(&arguments[2]))
            }
            Kind::MulAdd => T::mul_add([0, 1, 2].map(|i| self.expr(&arguments[i]))),
            Kind::Gather(at) => with!(arguments[0].dtype, U => {
                let index = self.expr::<U>(&arguments[0]);
                U::gather(self.operands.tables[at].view::<T>(), index)
            }),
        }
    }
}

/// The values of nodes, over the shape.
pub(super) struct Interpreter<'a> {
    operands: &'a Operands<'a>,
    known: HashMap<*const Node, Rc<Vec<Wide>>>,
}

impl<'a> Interpreter<'a> {
    pub(super) fn new(operands: &'a Operands<'a>) -> Self {
        Self { operands, known: HashMap::new() }
    }

    pub(super) fn values(&mut self, node: &Rc<Node>) -> Result<Rc<Vec<Wide>>, TestCaseError> {
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

    /// What the device computes of an operator alone, which is near `expected`: with that, the rest is exact.
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

/// The number of an element, of Philox's draws.
fn random(dtype: DType, normal: bool, seed: u64, i: usize) -> Wide {
    let draw = |each: usize| Philox::new(seed, 0).skip((i / each) as u64).draw();
    Wide::Float(match (dtype, normal) {
        (DType::F32, false) => UniformF32.apply(draw(4))[i % 4].into(),
        (DType::F32, true) => NormalF32.apply(draw(4))[i % 4].into(),
        (_, false) => UniformF64.apply(draw(2))[i % 2],
        (_, true) => NormalF64.apply(draw(2))[i % 2],
    })
}
