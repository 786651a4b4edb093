//! Random trees. They are drawn without types, get types, and are built as expressions and interpreted.

mod build;
mod interpret;

use std::rc::Rc;

use kernel_primitives::Stream;
use kernel_primitives::expr::DType;
use proptest::prelude::*;

pub(super) use build::Builder;
pub(super) use interpret::Interpreter;

use super::layout::Lie;
use super::reference::{self, COMPARE, Compare, One, Two};
use super::with;
use crate::{Sample, Wide};

/// The form that a generator draws. Every form is an expression: numbers are taken modulo their limits, and operands are cast.
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
    /// An operator of one operand twice.
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
    /// The number in the whole, or the index along an axis.
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

/// The operands that leaves can be.
pub(super) struct Operands<'a> {
    pub(super) stream: &'a Stream,
    pub(super) shape: &'a [usize],
    /// The views that broadcast to the shape.
    pub(super) leaves: &'a [Lie],
    /// The vectors that are gathered from.
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
    /// Returns the expression of a sketch.
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
                // The index is inside the table, because a `u8` counts few enough elements.
                let index =
                    if index.dtype.is_integer() && index.dtype != DType::I8 { index } else { cast(index, DType::U8) };
                let len = number(self.tables[at].places.len() as i128, index.dtype);
                let inside = node(index.dtype, Kind::Two(Two::FloorRem), vec![index, len]);
                node(self.tables[at].dtype, Kind::Gather(at), vec![inside])
            }
        }
    }
}

/// Makes an operator of two values, with the type of the first. No integer is divided by zero.
fn two(op: u8, a: Rc<Node>, b: Rc<Node>) -> Rc<Node> {
    let (dtype, mut b) = (a.dtype, cast(b, a.dtype));
    let op = reference::two(dtype, op);
    if dtype.is_integer() && matches!(op, Two::Div | Two::Rem | Two::FloorDiv | Two::FloorRem) {
        let zero = node(DType::Bool, Kind::Compare(Compare::Eq), vec![b.clone(), number(0, dtype)]);
        b = node(dtype, Kind::Select, vec![zero, number(1, dtype), b]);
    }
    node(dtype, Kind::Two(op), vec![a, b])
}
