//! Expressions: graphs of computations, built by operators and functions.

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

/// The operation that a node applies to its arguments. The traits in `primitives_gpu::element` define its types and rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    // Operations with one argument.
    Neg,
    Not,
    Abs,
    Recip,
    Cast,
    IsNan,
    Math(Math),
    // Operations with two arguments.
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
    // Operations with three arguments.
    Select,
    MulAdd,
}

macro_rules! math {
    ($($(#[$doc:meta])* $name:ident $variant:ident $method:ident $functions:tt $real:tt;)*) => {
        /// Functions of one argument: those that are instructions, and those of the table of elementary functions, which are calls.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Math {
            Sqrt,
            Rsqrt,
            Floor,
            Ceil,
            Trunc,
            Round,
            RoundTiesEven,
            $($(#[$doc])* $variant,)*
        }
    };
}
crate::__elementary!(math);

/// A distribution of random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Distribution {
    Uniform,
    Normal,
}

/// A view of memory: a leaf of expressions.
pub(crate) struct View {
    /// All views of the memory share it. Enqueued work and graphs hold the memory itself.
    pub(crate) storage: Arc<Storage>,
    pub(crate) stream: Stream,
    pub(crate) layout: Layout,
    pub(crate) dtype: DType,
    /// The elements around the view in its memory, if stencils read them.
    pub(crate) spare: Option<Spare>,
    /// The view that a stencil reads, if this view is a part of it.
    pub(crate) origin: Option<Box<Origin>>,
}

/// The view that a stencil reads, and where. Steps of the stencil need it.
pub(crate) struct Origin {
    /// The view, or `None` if the stencil reads an interior stencil with fewer results than elements. Such a stencil has no steps. The view
    /// has no origin. So origins make no chain, which would overflow the stack when it is dropped.
    pub(crate) view: Option<Arc<View>>,
    /// The position of the part, for an interior stencil with fewer results than the view has elements.
    pub(crate) inside: Option<Inside>,
}

/// The part of a view that an interior stencil reads for one neighbour. Axes are counted from the innermost.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Inside {
    pub(crate) frame: Frame,
    pub(crate) by: [isize; MAX_RANK],
}

/// The numbers of indices at the two ends of each axis without results of an interior stencil. Axes are counted from the innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    pub(crate) before: [usize; MAX_RANK],
    pub(crate) after: [usize; MAX_RANK],
}

impl View {
    /// Returns the part of this view that a stencil reads, with its origin.
    pub(crate) fn read_of(self: &Arc<Self>, layout: Layout, inside: Option<Inside>) -> Self {
        let inside = inside.filter(|inside| !inside.frame.is_empty());
        let origin = Some(Box::new(Origin { view: self.stencil_origin().cloned(), inside }));
        let (storage, stream) = (self.storage.clone(), self.stream.clone());
        Self { storage, stream, layout, dtype: self.dtype, spare: None, origin }
    }

    /// Returns the view of the origin, if a stencil reads this view: a view without an origin, with the same elements. Returns `None` if
    /// this view is a part that an interior stencil with fewer results than elements reads.
    pub(crate) fn stencil_origin(self: &Arc<Self>) -> Option<&Arc<Self>> {
        match self.origin.as_deref() {
            None => Some(self),
            Some(Origin { view, inside: None }) => view.as_ref(),
            Some(Origin { inside: Some(_), .. }) => None,
        }
    }

    /// Returns a view of the same memory with another layout, which must be inside it.
    pub(crate) fn with_layout(&self, layout: Layout) -> Arc<Self> {
        let (storage, stream) = (self.storage.clone(), self.stream.clone());
        Arc::new(Self { storage, stream, layout, dtype: self.dtype, spare: None, origin: None })
    }

    /// Returns whether both have the same elements in the same order.
    pub(crate) fn same_as(&self, other: &Self) -> bool {
        self.storage.same_as(&other.storage) && self.layout.same_places(&other.layout) && self.dtype == other.dtype
    }
}

#[derive(Clone)]
pub(crate) enum Kind {
    /// The element of a view at the index that is computed.
    View(Arc<View>),
    /// The element of a split tensor at the index that is computed.
    Split(Arc<SplitView>),
    /// The elements that a stencil reads of a split tensor, around the index that is computed.
    SplitBeside(Arc<SplitView>, Arc<Beside>),
    /// An element of an operand that is given later. Operands have numbers.
    Parameter(u32),
    /// A value that may differ in the next evaluation.
    Scalar(u64),
    /// A value that is part of the kernel.
    Constant(u64),
    /// The element's number in the whole tensor, or its index along an axis; `u64`.
    Index(Option<usize>),
    Op(Op),
    /// The element of a vector at the index that the argument gives.
    Gather(Arc<View>),
    /// The element of a vector that is split over devices, at the index that the argument gives.
    SplitGather(Arc<SplitView>),
    Random(Distribution),
    Call(FunctionRef),
    /// An element of a view at a distance from the index that is computed.
    Neighbour(Arc<View>, Arc<Shift>),
    /// A weighted sum of a view's elements around the index that is computed.
    Weighted(Arc<View>, Arc<Taps>),
    /// The argument, which is a stencil, applied this many times. It must be a whole assignment.
    Steps(usize),
    /// A mistake in place of a value, and the reason. Functions that return expressions report errors in this way.
    Wrong(ExpressionErrorKind, Arc<str>),
}

pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) dtype: DType,
    pub(crate) arguments: Arguments,
}

/// The most arguments of a node. A call of a device function can have this number.
pub(crate) const MAX_ARGUMENTS: usize = 6;

pub(crate) type Arguments = [Option<Arc<Node>>; MAX_ARGUMENTS];

/// Makes a list of arguments.
pub(crate) fn arguments<const N: usize>(nodes: [Arc<Node>; N]) -> Arguments {
    let mut nodes = nodes.into_iter();
    std::array::from_fn(|_| nodes.next())
}

/// Makes a node.
pub(crate) fn node(kind: Kind, dtype: DType, arguments: Arguments) -> Arc<Node> {
    Arc::new(Node { kind, dtype, arguments })
}

/// Converts a value to a type. Returns the value itself if it has that type.
pub(crate) fn convert(value: Arc<Node>, dtype: DType) -> Arc<Node> {
    if value.dtype == dtype { value } else { node(Kind::Op(Op::Cast), dtype, arguments([value])) }
}

/// Makes a node for a function of a value.
pub(crate) fn function(op: Op, x: Arc<Node>) -> Arc<Node> {
    let dtype = if op == Op::IsNan { DType::Bool } else { x.dtype };
    node(Kind::Op(op), dtype, arguments([x]))
}

/// Makes a node for an elementary function of a value.
pub(crate) fn math(math: Math, x: Arc<Node>) -> Arc<Node> {
    function(Op::Math(math), x)
}

/// Makes a node for a function of two values of one type, in that type.
pub(crate) fn function_of_two(op: Op, a: Arc<Node>, b: Arc<Node>) -> Arc<Node> {
    let dtype = a.dtype;
    node(Kind::Op(op), dtype, arguments([a, b]))
}

/// Makes the node of 0. All bits of 0 are 0 in every type.
pub(crate) fn zero(dtype: DType) -> Arc<Node> {
    node(Kind::Scalar(0), dtype, arguments([]))
}

/// Makes the node of 1, as a part of the kernel.
pub(crate) fn one(dtype: DType) -> Arc<Node> {
    convert(node(Kind::Constant(1), DType::Bool, arguments([])), dtype)
}

/// Converts a shift count to the type of the shifted integer. A count that does not fit in this type, or that is negative, becomes a count
/// of more bits than the type has.
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
    /// Works without recursion, because a long chain would overflow the stack.
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

/// Rebuilds the graph of `root`. `new` returns the new node for a node and its new arguments. It is called once for each node, and for the
/// arguments first. Works without recursion, because graphs may be deep.
pub(crate) fn rewritten(root: &Arc<Node>, new: &mut dyn FnMut(&Arc<Node>, Arguments) -> Arc<Node>) -> Arc<Node> {
    let mut done: FastMap<*const Node, Arc<Node>> = FastMap::default();
    let mut open = vec![root];
    while let Some(&node) = open.last() {
        // A node that several others have as an argument may be open several times.
        if done.contains_key(&Arc::as_ptr(node)) {
            open.pop();
            continue;
        }
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

/// Returns a node with new arguments, or the node itself if they are its own arguments.
pub(crate) fn with_arguments(node: &Arc<Node>, new: Arguments) -> Arc<Node> {
    let same = node.arguments().zip(new.iter().flatten()).all(|(old, new)| Arc::ptr_eq(old, new));
    if same { node.clone() } else { Arc::new(Node { kind: node.kind.clone(), dtype: node.dtype, arguments: new }) }
}

/// An elementwise computation with results of type `T`.
///
/// Operators and functions build it from [tensors](crate::expr::Tensor), scalars and other expressions. Nothing is computed before you
/// [assign](crate::expr::Tensor::assign) or [reduce](crate::expr::Reductions::sum) the expression. Operators take an expression by value or
/// by reference: write `&x` if you use `x` again. A clone is cheap, and stands for the same computation. If an assignment uses an
/// expression twice, or has equal parts, the kernel computes them once.
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

    /// Makes the expression of a node whose values have type `T`.
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

    /// Converts the expression to type `U`. Returns the expression itself if it has that type.
    pub(crate) fn convert<U: Scalar>(self) -> Expr<U> {
        if T::DTYPE == U::DTYPE {
            return Expr::of_node(self.node);
        }
        Expr::unary(Op::Cast, self)
    }
}

/// Makes a value that is the same for all elements. Expressions that differ only in this value share a kernel.
///
/// Operators take plain numbers; functions need `scalar`: `minimum(&x, scalar(1.0))`.
///
/// ```
/// # use kernel_primitives::{Device, expr::{Reductions, Tensor, constant, minimum, scalar}};
/// let x = Tensor::from_slice(&Device::auto()?.stream()?, 2, &[1.0f32, 3.0])?;
/// assert_eq!((minimum(&x, scalar(2.0f32)) * constant(10.0f32)).sum().item()?, 30.0);
/// # Ok::<(), kernel_primitives::Error>(())
/// ```
pub fn scalar<T: Scalar>(value: T) -> Expr<T> {
    Expr::new(Kind::Scalar(value.to_word()), arguments([]))
}

/// Makes a constant of the kernel: another value needs another kernel. Use it for values that never change; [`scalar`] has an example.
pub fn constant<T: Scalar>(value: T) -> Expr<T> {
    Expr::new(Kind::Constant(value.to_word()), arguments([]))
}

/// An operand of an expression: a [`Tensor`](crate::expr::Tensor) by reference, or an [`Expr`].
///
/// The functions on expressions are methods of operands, and free functions in [`expr`](crate::expr).
pub trait Operand: Sized {
    /// The type of an element.
    type Elem: Scalar;

    /// Returns the operand as an expression.
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
