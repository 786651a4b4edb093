//! Expressions: graphs of what is to be computed, built by operators and functions.

use std::marker::PhantomData;
use std::sync::Arc;

use primitives_host::storage::Storage;
use primitives_host::{ExpressionErrorKind, Stream};

use super::call::FunctionRef;
use super::dtype::{DType, Scalar};
use super::layout::shape::{Layout, MAX_RANK};
use super::neighbours::neighbour::{Shift, Spare};
use super::neighbours::weighted::Taps;
use super::program::FastMap;
use super::split::{Beside, SplitView};

/// What a node computes of its arguments. The types are those of `primitives_gpu::element`'s traits, whose rules hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    // Of one argument.
    Neg,
    Not,
    Abs,
    Recip,
    Cast,
    IsNan,
    Math(Math),
    // Of two.
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    FloorDiv,
    FloorRem,
    Min,
    Max,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Eq,
    Ne,
    Lt,
    Le,
    Pow,
    Atan2,
    Hypot,
    // Of three.
    Select,
    MulAdd,
}

/// Elementary functions of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Math {
    Sqrt,
    Rsqrt,
    Cbrt,
    Exp,
    Exp2,
    ExpM1,
    Ln,
    Log2,
    Log10,
    Ln1p,
    Sin,
    Cos,
    Tan,
    SinPi,
    CosPi,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
    Erf,
    Erfc,
    Floor,
    Ceil,
    Trunc,
    Round,
    RoundTiesEven,
}

/// The numbers of a distribution, by element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Distribution {
    Uniform,
    Normal,
}

/// A view of memory: a leaf of expressions.
pub(crate) struct View {
    /// One for all views of the memory. Work that is enqueued and graphs hold the memory itself.
    pub(crate) storage: Arc<Storage>,
    pub(crate) stream: Stream,
    pub(crate) layout: Layout,
    pub(crate) dtype: DType,
    /// What the memory has around it, if stencils read that.
    pub(crate) spare: Option<Spare>,
    /// What a stencil read it of, if one did.
    pub(crate) origin: Option<Arc<Origin>>,
}

/// What a stencil read, for its steps.
pub(crate) struct Origin {
    pub(crate) view: Arc<View>,
    /// Where the part lies that an interior stencil reads for all its places.
    pub(crate) inside: Option<Inside>,
}

/// The part of a view that an interior stencil reads for one neighbour; axes are counted from the innermost.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Inside {
    pub(crate) frame: Frame,
    pub(crate) by: [isize; MAX_RANK],
}

/// How many indices at the two ends of each axis, counted from the innermost, are no places of an interior stencil.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    pub(crate) before: [usize; MAX_RANK],
    pub(crate) after: [usize; MAX_RANK],
}

impl View {
    /// Elements of this view as a stencil on it reads them.
    pub(crate) fn read_of(self: &Arc<Self>, layout: Layout, inside: Option<Inside>) -> Self {
        let origin = Some(Arc::new(Origin { view: self.clone(), inside }));
        let (storage, stream) = (self.storage.clone(), self.stream.clone());
        Self { storage, stream, layout, dtype: self.dtype, spare: None, origin }
    }

    /// The same memory with another layout, inside it.
    pub(crate) fn with_layout(&self, layout: Layout) -> Arc<Self> {
        let (storage, stream) = (self.storage.clone(), self.stream.clone());
        Arc::new(Self { storage, stream, layout, dtype: self.dtype, spare: None, origin: None })
    }

    /// Whether both have the same elements in the same order.
    pub(crate) fn same_as(&self, other: &Self) -> bool {
        self.storage.same_as(&other.storage) && self.layout.same_places(&other.layout) && self.dtype == other.dtype
    }
}

#[derive(Clone)]
pub(crate) enum Kind {
    /// An element of a view, at the place that is computed.
    View(Arc<View>),
    /// An element of a tensor that is split over devices, at the place that is computed.
    Split(Arc<SplitView>),
    /// What a stencil reads of such a tensor, around the place that is computed.
    SplitBeside(Arc<SplitView>, Arc<Beside>),
    /// An element of an operand that is given later, by number.
    Parameter(u32),
    /// A value that may be another in the next evaluation.
    Scalar(u64),
    /// A value that is part of the kernel.
    Constant(u64),
    /// The element's number, of the whole or along an axis; `u64`.
    Index(Option<usize>),
    Op(Op),
    /// The element of a view of one axis that the argument counts.
    Gather(Arc<View>),
    /// The same of a vector that is split over devices.
    SplitGather(Arc<SplitView>),
    Random(Distribution),
    Call(FunctionRef),
    /// An element of a view beside the place that is computed.
    Neighbour(Arc<View>, Arc<Shift>),
    /// A weighted sum of a view's elements around the place that is computed.
    Weighted(Arc<View>, Arc<Taps>),
    /// The argument, a stencil, so many times: an assignment of its own.
    Steps(usize),
    /// What has no value, and why: for errors of functions that return expressions.
    Wrong(ExpressionErrorKind, Arc<str>),
}

pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) dtype: DType,
    pub(crate) arguments: Arguments,
}

/// Most arguments of a node: of a call of a device function.
pub(crate) const MAX_ARGUMENTS: usize = 6;

pub(crate) type Arguments = [Option<Arc<Node>>; MAX_ARGUMENTS];

/// These arguments.
pub(crate) fn arguments<const N: usize>(nodes: [Arc<Node>; N]) -> Arguments {
    let mut nodes = nodes.into_iter();
    std::array::from_fn(|_| nodes.next())
}

/// A node.
pub(crate) fn node(kind: Kind, dtype: DType, arguments: Arguments) -> Arc<Node> {
    Arc::new(Node { kind, dtype, arguments })
}

/// The value in another type; itself if it has it.
pub(crate) fn convert(value: Arc<Node>, dtype: DType) -> Arc<Node> {
    if value.dtype == dtype { value } else { node(Kind::Op(Op::Cast), dtype, arguments([value])) }
}

/// A function of a value.
pub(crate) fn function(op: Op, x: Arc<Node>) -> Arc<Node> {
    let dtype = if op == Op::IsNan { DType::Bool } else { x.dtype };
    node(Kind::Op(op), dtype, arguments([x]))
}

/// An elementary function of a value.
pub(crate) fn math(math: Math, x: Arc<Node>) -> Arc<Node> {
    function(Op::Math(math), x)
}

/// A function of two values of one type, in that type.
pub(crate) fn function_of_two(op: Op, a: Arc<Node>, b: Arc<Node>) -> Arc<Node> {
    let dtype = a.dtype;
    node(Kind::Op(op), dtype, arguments([a, b]))
}

/// 0, which has no bits in any type.
pub(crate) fn zero(dtype: DType) -> Arc<Node> {
    node(Kind::Scalar(0), dtype, arguments([]))
}

/// 1, as a part of the kernel.
pub(crate) fn one(dtype: DType) -> Arc<Node> {
    convert(node(Kind::Constant(1), DType::Bool, arguments([])), dtype)
}

/// By how many bits an integer of this type is shifted, in its type. A count that the type does not hold becomes one of more bits than it
/// has, as a negative one is.
pub(crate) fn shift_count(by: Arc<Node>, dtype: DType) -> Arc<Node> {
    if by.dtype.size() <= dtype.size() {
        return convert(by, dtype);
    }
    let unsigned = match by.dtype.size() {
        2 => DType::U16,
        4 => DType::U32,
        _ => DType::U64,
    };
    let many = node(Kind::Constant(64), unsigned, arguments([]));
    convert(node(Kind::Op(Op::Min), unsigned, arguments([convert(by, unsigned), many])), dtype)
}

impl Node {
    pub(crate) fn arguments(&self) -> impl DoubleEndedIterator<Item = &Arc<Node>> {
        self.arguments.iter().flatten()
    }
}

impl Drop for Node {
    /// Without recursion: a long chain would use up the stack.
    fn drop(&mut self) {
        let mut rest: Vec<Arc<Node>> = Vec::new();
        let take = |arguments: &mut Arguments, rest: &mut Vec<Arc<Node>>| {
            for argument in arguments {
                if let Some(node) = argument.take()
                    && Arc::strong_count(&node) == 1
                    && node.arguments.iter().any(Option::is_some)
                {
                    rest.push(node);
                }
            }
        };
        take(&mut self.arguments, &mut rest);
        while let Some(node) = rest.pop() {
            if let Some(mut node) = Arc::into_inner(node) {
                take(&mut node.arguments, &mut rest);
            }
        }
    }
}

/// The graph of `root` made anew: `new` gives a node for one of it and its new arguments, after those of its arguments. Without
/// recursion, as graphs may be deep.
pub(crate) fn rewritten(root: &Arc<Node>, mut new: impl FnMut(&Arc<Node>, Arguments) -> Arc<Node>) -> Arc<Node> {
    let mut done: FastMap<*const Node, Arc<Node>> = FastMap::default();
    let mut open = vec![root];
    while let Some(&node) = open.last() {
        let before = open.len();
        open.extend(node.arguments().filter(|argument| !done.contains_key(&Arc::as_ptr(argument))));
        if open.len() == before {
            open.pop();
            let of = |argument: &Arc<Node>| done[&Arc::as_ptr(argument)].clone();
            let made = new(node, node.arguments.each_ref().map(|argument| argument.as_ref().map(of)));
            done.insert(Arc::as_ptr(node), made);
        }
    }
    done[&Arc::as_ptr(root)].clone()
}

/// A node with these arguments: itself if they are its own.
pub(crate) fn with_arguments(node: &Arc<Node>, new: Arguments) -> Arc<Node> {
    let same = node.arguments().zip(new.iter().flatten()).all(|(old, new)| Arc::ptr_eq(old, new));
    if same { node.clone() } else { Arc::new(Node { kind: node.kind.clone(), dtype: node.dtype, arguments: new }) }
}

/// A computation, element by element, whose results are of type `T`.
///
/// Operators and functions build it from [tensors](crate::expr::Tensor), scalars and other expressions. Nothing is computed before it is
/// [assigned](crate::expr::Tensor::assign) or [reduced](crate::expr::Reductions::sum). Operators take an expression by value or by
/// reference: write `&x` where you use `x` again. A clone is cheap, and is the same computation: an expression that is used twice is
/// computed once, and so are equal parts of one assignment.
pub struct Expr<T> {
    pub(crate) node: Arc<Node>,
    _type: PhantomData<fn() -> T>,
}

impl<T> Clone for Expr<T> {
    fn clone(&self) -> Self {
        Self { node: self.node.clone(), _type: PhantomData }
    }
}

impl<T: Scalar> Expr<T> {
    pub(crate) fn new(kind: Kind, arguments: Arguments) -> Self {
        Self::of_node(Arc::new(Node { kind, dtype: T::DTYPE, arguments }))
    }

    /// A node whose values are of `T`.
    pub(crate) fn of_node(node: Arc<Node>) -> Self {
        Self { node, _type: PhantomData }
    }

    pub(crate) fn unary<A>(op: Op, a: Expr<A>) -> Self {
        Self::new(Kind::Op(op), arguments([a.node]))
    }

    pub(crate) fn binary<A, B>(op: Op, a: Expr<A>, b: Expr<B>) -> Self {
        Self::new(Kind::Op(op), arguments([a.node, b.node]))
    }

    pub(crate) fn ternary<A, B, C>(op: Op, a: Expr<A>, b: Expr<B>, c: Expr<C>) -> Self {
        Self::new(Kind::Op(op), arguments([a.node, b.node, c.node]))
    }

    /// The expression as one of `U`; this one if it is.
    pub(crate) fn convert<U: Scalar>(self) -> Expr<U> {
        if T::DTYPE == U::DTYPE {
            return Expr::of_node(self.node);
        }
        Expr::unary(Op::Cast, self)
    }
}

/// A value in an expression, the same for all elements. Another value makes no other kernel.
///
/// Operators take numbers as they are; this is for functions: `minimum(&x, scalar(1.0))`.
pub fn scalar<T: Scalar>(value: T) -> Expr<T> {
    Expr::new(Kind::Scalar(value.to_word()), arguments([]))
}

/// A value that is a part of the kernel: another value makes another kernel. Use it for what never changes.
pub fn constant<T: Scalar>(value: T) -> Expr<T> {
    Expr::new(Kind::Constant(value.to_word()), arguments([]))
}

/// What stands in an expression: a [`Tensor`](crate::expr::Tensor) by reference, or an [`Expr`].
///
/// Its methods are the functions on expressions; each stands as a free function in [`expr`](crate::expr) too.
pub trait Operand: Sized {
    /// The type of an element.
    type Elem: Scalar;

    /// As an expression.
    fn expr(self) -> Expr<Self::Elem>;
}

impl<T: Scalar> Operand for Expr<T> {
    type Elem = T;
    fn expr(self) -> Self {
        self
    }
}

impl<T: Scalar> Operand for &Expr<T> {
    type Elem = T;
    fn expr(self) -> Expr<T> {
        self.clone()
    }
}

/// The text of an expression, with its views as `x0`, `x1` in the order in which they stand, and what these are.
pub(crate) fn describe(roots: &[&Arc<Node>]) -> (Vec<String>, Vec<String>) {
    let mut leaves: Vec<Leaf<'_>> = Vec::new();
    let texts = roots.iter().map(|root| text(root, &mut leaves, 0, &mut 400)).collect();
    let shapes = leaves.iter().enumerate().map(|(i, leaf)| format!("x{i}: {}", leaf.describe())).collect();
    (texts, shapes)
}

/// A tensor in the text of an expression.
enum Leaf<'a> {
    View(&'a Arc<View>),
    Split(&'a Arc<SplitView>),
}

impl Leaf<'_> {
    fn same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::View(a), Self::View(b)) => a.same_as(b),
            (Self::Split(a), Self::Split(b)) => a.same_as(b),
            _ => false,
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::View(view) => format!("{}{}", view.dtype, view.layout.shape),
            Self::Split(view) => format!("{}{}, split as {}", view.dtype, view.shape, view.describe()),
        }
    }
}

/// Operators bind as in Rust; `binding` is what is around. Long expressions are cut off.
fn text<'a>(node: &'a Node, leaves: &mut Vec<Leaf<'a>>, binding: u8, budget: &mut usize) -> String {
    if *budget == 0 {
        return "…".into();
    }
    *budget -= 1;
    let mut name = |leaf: Leaf<'a>| {
        let at = leaves.iter().position(|known| known.same_as(&leaf)).unwrap_or_else(|| {
            leaves.push(leaf);
            leaves.len() - 1
        });
        format!("x{at}")
    };
    let value =
        |word| super::dtype::with_type!(node.dtype, T => format!("{:?}", <T as super::dtype::ToWord>::from_word(word)));
    let arguments: Vec<&'a Arc<Node>> = node.arguments().collect();
    let infix = |symbol: &str, level: u8, leaves: &mut Vec<Leaf<'a>>, budget: &mut usize| {
        let (a, b) = (text(arguments[0], leaves, level, budget), text(arguments[1], leaves, level + 1, budget));
        if level < binding { format!("({a} {symbol} {b})") } else { format!("{a} {symbol} {b}") }
    };
    let (call, first): (String, Option<String>) = match &node.kind {
        Kind::View(view) => return name(Leaf::View(view)),
        Kind::Split(view) => return name(Leaf::Split(view)),
        Kind::Neighbour(view, shift) => {
            return format!("{}{:?}", name(Leaf::View(view)), shift.offsets(view.layout.shape.rank()));
        }
        Kind::Weighted(view, taps) => {
            return format!("convolve({}, {} weights from {})", name(Leaf::View(view)), taps.weights.len(), taps.first);
        }
        Kind::SplitBeside(view, beside) => {
            let name = name(Leaf::Split(view));
            return beside.describe(&name, view.shape.rank());
        }
        Kind::Wrong(ExpressionErrorKind::BadTransform, _) => return "transformed".into(),
        Kind::Wrong(..) => ("stencil".into(), None),
        Kind::Steps(count) => return format!("({}).steps({count})", text(arguments[0], leaves, 0, budget)),
        Kind::Parameter(number) => return format!("x{number}"),
        Kind::Scalar(word) | Kind::Constant(word) => return value(*word),
        Kind::Index(None) => return "index".into(),
        Kind::Index(Some(axis)) => return format!("index({axis})"),
        Kind::Gather(view) => (name(Leaf::View(view)) + ".gather", None),
        Kind::SplitGather(view) => (name(Leaf::Split(view)) + ".gather", None),
        Kind::Random(Distribution::Uniform) => ("uniform".into(), None),
        Kind::Random(Distribution::Normal) => ("normal".into(), None),
        Kind::Call(function) => (function.0.code().name().rsplit("::").next().unwrap_or_default().into(), None),
        Kind::Op(op) => match op {
            Op::Add => return infix("+", 5, leaves, budget),
            Op::Sub => return infix("-", 5, leaves, budget),
            Op::Mul => return infix("*", 6, leaves, budget),
            Op::Div => return infix("/", 6, leaves, budget),
            Op::Rem => return infix("%", 6, leaves, budget),
            Op::Shl => return infix("<<", 4, leaves, budget),
            Op::Shr => return infix(">>", 4, leaves, budget),
            Op::And => return infix("&", 3, leaves, budget),
            Op::Xor => return infix("^", 2, leaves, budget),
            Op::Or => return infix("|", 1, leaves, budget),
            Op::Eq => return infix("==", 0, leaves, budget),
            Op::Ne => return infix("!=", 0, leaves, budget),
            Op::Lt => return infix("<", 0, leaves, budget),
            Op::Le => return infix("<=", 0, leaves, budget),
            Op::Neg => return format!("-{}", text(arguments[0], leaves, 7, budget)),
            Op::Not => return format!("!{}", text(arguments[0], leaves, 7, budget)),
            Op::Cast => (format!("cast::<{}>", node.dtype), None),
            Op::Math(math) => (format!("{math:?}").to_lowercase(), None),
            other => (format!("{other:?}").to_lowercase(), None),
        },
    };
    let rest = arguments.iter().map(|argument| text(argument, leaves, 0, budget));
    format!("{call}({})", first.into_iter().chain(rest).collect::<Vec<_>>().join(", "))
}
