//! Builds trees as expressions. Each type has its operators, and each node is built once.

use std::any::Any;
use std::collections::HashMap;
use std::rc::Rc;

use half::{bf16, f16};
use kernel_primitives::expr::*;
use kernel_primitives::kernels::functions::{sin_f32, sin_f64};

use super::{Kind, Node, Operands};
use crate::Sample;
use crate::elementary::elementary;
use crate::net::reference::{Approximate, Compare, One, Two};
use crate::net::with;

/// A type, with its operators as expressions.
pub(in crate::net) trait Typed: Sample + Promote<Self, Output = Self> {
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

macro_rules! approximate {
    ($($name:ident $variant:ident $method:ident $functions:tt $limits:tt $reference:expr;)*) => {
        fn approximate<T: Floating>(function: Approximate, x: Expr<T>) -> Expr<T> {
            match function {
                Approximate::Rsqrt => rsqrt(x),
                Approximate::SinPi => sin_pi(x),
                Approximate::CosPi => cos_pi(x),
                $(Approximate::$variant => $name(x),)*
                Approximate::Call => unreachable!("of one type"),
            }
        }
    };
}
elementary!(approximate);

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
                    One::Approximate(Approximate::Call) => { let $x = a; $call }
                    One::Approximate(function) => approximate(function, a),
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

/// Returns the same value, with the same type under another name.
fn same<A: 'static, B: 'static>(value: A) -> B {
    *(Box::new(value) as Box<dyn Any>).downcast().expect("one type")
}

/// The expressions of nodes. Each is built once.
pub(in crate::net) struct Builder<'a> {
    operands: &'a Operands<'a>,
    built: HashMap<*const Node, Box<dyn Any>>,
}

impl<'a> Builder<'a> {
    pub(in crate::net) fn new(operands: &'a Operands<'a>) -> Self {
        Self { operands, built: HashMap::new() }
    }

    pub(in crate::net) fn expr<T: Typed>(&mut self, node: &Rc<Node>) -> Expr<T> {
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
