//! Stencils: functions of an element's neighbours.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

use primitives_gpu::Element as _;
use primitives_host::ExpressionErrorKind;

use super::neighbour::{Rule, Shift};
use super::weighted::{Taps, converted};
use crate::expr::describe::describe;
use crate::expr::dtype::Scalar;
use crate::expr::graph::{
    Expr, Frame, Inside, Kind, Math, Node, Op, Operand, View, arguments, constant, node, rewritten, scalar,
    with_arguments,
};
use crate::expr::layout::shape::{Layout, MAX_RANK, Shape};
use crate::expr::program::FastMap;
use crate::expr::reduce::Summed;
use crate::expr::split::{Beside, SplitView};

/// The elements that a [`stencil`] reads for neighbours outside the tensor.
///
/// | boundary | `a b c d` goes on as | NumPy's `pad` | SciPy's `ndimage` |
/// |---|---|---|---|
/// | `Clamp` | `a a ∣ a b c d ∣ d d` | `edge` | `nearest` |
/// | `Periodic` | `c d ∣ a b c d ∣ a b` | `wrap` | `grid-wrap` |
/// | `Mirror` | `c b ∣ a b c d ∣ c b` | `reflect` | `mirror` |
/// | `Symmetric` | `b a ∣ a b c d ∣ d c` | `symmetric` | `reflect` |
/// | `Constant(k)` | `k k ∣ a b c d ∣ k k` | `constant` | `grid-constant` |
/// | `Interior` | it does not go on: the result is smaller | | |
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Boundary<T> {
    /// The nearest element, as in VexCL.
    Clamp,
    /// The tensor repeats.
    Periodic,
    /// The tensor is mirrored at its outermost element, which is not repeated. The distance of a neighbour is at most the extent minus one.
    Mirror,
    /// The tensor is mirrored beside its outermost element, which is repeated. The distance of a neighbour is at most the extent.
    Symmetric,
    /// This value. It is a constant of the kernel: another value needs another kernel.
    Constant(T),
    /// The result has only the elements whose neighbours are all inside. If the neighbours along an axis are at distances from `-a` to `b`,
    /// the result's index 0 is the tensor's index `a`, and the result's extent is smaller by `a + b`.
    Interior,
}

/// Distances along the innermost axes: a number, an array, or a slice.
pub trait IntoOffsets {
    #[doc(hidden)]
    fn offsets(&self) -> &[isize];
}

impl IntoOffsets for isize {
    fn offsets(&self) -> &[isize] {
        std::slice::from_ref(self)
    }
}
impl<const N: usize> IntoOffsets for [isize; N] {
    fn offsets(&self) -> &[isize] {
        self
    }
}
impl IntoOffsets for &[isize] {
    fn offsets(&self) -> &[isize] {
        self
    }
}
impl IntoOffsets for Vec<isize> {
    fn offsets(&self) -> &[isize] {
        self
    }
}

/// Makes an expression that computes a function of each element's neighbours.
///
/// `f` is called once, and traced. [`n.at([-1, 0])`](Neighbours::at) is the element one index before, along the axis before the last. If
/// there are fewer offsets than axes, they apply to the innermost axes: a stencil of two axes works on each matrix of a batch. `f` may use
/// all functions of expressions. It may also use other tensors. It reads these at the computed index.
///
/// The result has the shape of `x`, unless the boundary is [`Interior`](Boundary::Interior). It fuses with the expression around it, and
/// you can reduce it.
///
/// `x` is a tensor, or arithmetic of tensors. The kernel computes this arithmetic again for each neighbour. If `x` takes longer to compute,
/// or depends on the index, assign it to a tensor first.
///
/// On a GPU, a thread computes a vector of results, in up to four rows if there are neighbours in other rows. It computes at most eight
/// results if `f` divides integers. It reads each element around the results once, unless these elements take too many registers. Elements
/// that several threads of a block read come from the first-level cache.
///
/// If there are nine or more consecutive neighbours along the innermost axis, and none along another axis, blocks load tiles of rows with
/// their halo into shared memory. A thread computes 6 to 12 consecutive results, and reads each element around them once from shared
/// memory.
///
/// [`steps`](Expr::steps) applies a stencil many times.
///
/// ```
/// use kernel_primitives::Device;
/// use kernel_primitives::expr::{Boundary, Tensor, stencil};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = Tensor::from_slice(&stream, [3, 3], &[0.0f32, 0.0, 0.0, 0.0, 8.0, 0.0, 0.0, 0.0, 4.0])?;
/// let y = Tensor::uninit(&stream, [3, 3])?;
/// let mean = |boundary| {
///     stencil(&x, boundary, |n| 0.25 * (n.at([-1, 0]) + n.at([1, 0]) + n.at([0, -1]) + n.at([0, 1])))
/// };
/// y.assign(mean(Boundary::Clamp))?;
/// assert_eq!(y.to_vec()?, [0.0, 2.0, 0.0, 2.0, 0.0, 3.0, 0.0, 3.0, 2.0]);
///
/// // Differences of elements side by side; there is one less.
/// let d = Tensor::uninit(&stream, [3, 2])?;
/// d.assign(stencil(&x, Boundary::Interior, |n| n.at(1) - n.at(0)))?;
/// assert_eq!(d.to_vec()?, [0.0, 0.0, 8.0, -8.0, 0.0, 4.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// This function returns no errors. The call that evaluates the expression returns
/// [`Error::Expression`](primitives_host::Error::Expression):
///
/// - `BadStencil` if there are more offsets than axes; if a neighbour is farther away than [`Mirror`](Boundary::Mirror) or
///   [`Symmetric`](Boundary::Symmetric) allows; with `Interior`, if no element has all neighbours inside; if `x` has parts that must be
///   assigned first; with [`Constant`](Boundary::Constant), if `x` is not a tensor.
/// - `Overlap` if the target has elements in common with a tensor that the stencil reads. A stencil in place would read elements that are
///   already new.
///
/// # Source
///
/// VexCL's `stencil` and its user-defined stencil operators.
pub fn stencil<X: Operand, R: Operand>(
    x: X,
    boundary: Boundary<X::Elem>,
    f: impl FnOnce(&Neighbours<X::Elem>) -> R,
) -> Expr<R::Elem> {
    let neighbours = Neighbours::new(x.expr().node, boundary);
    let value = neighbours.shaped(f(&neighbours).expr());
    match boundary {
        Boundary::Interior => Expr::of_node(neighbours.interior(value.node)),
        _ => value,
    }
}

/// Makes weighted sums of neighbours along the innermost axis: `Σ weights[k] * x[i + k - origin]`.
///
/// `weights[origin]` is the weight of the element itself. Weights are in the order of the elements that they multiply, as in VexCL and in
/// neural networks; a convolution of signals has them in reverse order. Products are formed and added in the order of the weights, in `f32`
/// for `f16` and `bf16`. Each product and each sum is rounded; [`contract`](Expr::contract) replaces them by multiply-adds.
///
/// The sum is a [`stencil`]: with 9 weights or more, it uses tiles of rows in shared memory. Up to 64 weights are parameters of the kernel,
/// so other values need no other kernel. More than 64 weights are constants of the kernel.
///
/// More than 64 weights are in a table, and the kernel has a loop: a thread reads a vector of weights and a vector of elements at a time,
/// and adds their products to all its results. This holds for a tensor, with a boundary other than [`Interior`](Boundary::Interior), and
/// with distances less than the extent. Otherwise the code has a term for each weight, and the driver compiles thousands of terms slowly.
/// To avoid this, assign arithmetic to a tensor first. Wide sums are limited by arithmetic, and `contract` halves it.
///
/// ```
/// use kernel_primitives::Device;
/// use kernel_primitives::expr::{Boundary, Tensor, convolve};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = Tensor::from_slice(&stream, 4096, &[2.0f32; 4096])?;
/// let y = Tensor::uninit(&stream, 4096)?;
/// // The mean of 2048 elements around each, minus the element.
/// y.assign(convolve(&x, &[1.0 / 2048.0; 2048], 1024, Boundary::Periodic).contract() - &x)?;
/// assert_eq!(y.to_vec()?, [0.0; 4096]);
/// # Ok(())
/// # }
/// ```
///
/// ```
/// use kernel_primitives::Device;
/// use kernel_primitives::expr::{Boundary, Tensor, convolve};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = Tensor::from_slice(&stream, 5, &[0.0f32, 0.0, 4.0, 0.0, 8.0])?;
/// let y = Tensor::uninit(&stream, 5)?;
/// y.assign(convolve(&x, &[0.25, 0.5, 0.25], 1, Boundary::Clamp))?;
/// assert_eq!(y.to_vec()?, [0.0, 1.0, 2.0, 3.0, 6.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// This function returns no errors. The call that evaluates the expression returns the errors of [`stencil`]. On a GPU it also returns
/// [`Error::LaunchLimit`](primitives_host::Error::LaunchLimit) if an interior sum has hundreds of weights, because the kernel has an
/// operand for each weight.
///
/// # Source
///
/// VexCL's `stencil`, whose `center` is `origin`.
pub fn convolve<X: Operand<Elem: Summed>>(
    x: X,
    weights: &[X::Elem],
    origin: isize,
    boundary: Boundary<X::Elem>,
) -> Expr<X::Elem> {
    type Sum<X> = <<X as Operand>::Elem as Summed>::Sum;
    /// The most weights that are parameters of the kernel.
    const FEW: usize = 64;
    let number = if weights.len() <= FEW { scalar } else { constant };
    let x = x.expr();
    if weights.len() > FEW
        && let Some(sum) = Neighbours::new(x.node.clone(), boundary).weighted::<Sum<X>>(weights, origin)
    {
        return sum.convert();
    }
    stencil(x, boundary, |n| {
        let product = |(k, &weight): (isize, &X::Elem)| -> Expr<Sum<X>> {
            let value = match k.checked_sub(origin) {
                Some(by) => n.at(by),
                None => {
                    let reason =
                        format!("weight {k} of a convolution whose origin is {origin} is too far away to count");
                    Expr::of_node(n.no_value(reason))
                }
            };
            Expr::binary(Op::Mul, value.convert::<Sum<X>>(), number(weight).convert::<Sum<X>>())
        };
        let sum = (0..).zip(weights).map(product).reduce(|sum, term| Expr::binary(Op::Add, sum, term));
        sum.map_or_else(|| number(X::Elem::ZERO), |sum| sum.convert())
    })
}

/// A tensor that a stencil reads.
enum Source<'a> {
    View(&'a Arc<View>),
    Split(&'a Arc<SplitView>),
}

/// Distances along axes, counted from the innermost.
type By = [isize; MAX_RANK];

/// The neighbours of an element, for the function of a [`stencil`].
pub struct Neighbours<T> {
    source: Arc<Node>,
    shape: Shape,
    /// `None` for [`Boundary::Interior`].
    rule: Option<Rule>,
    /// The mistake in the source, if there is one.
    wrong: Option<String>,
    /// The nodes of all neighbours that `f` has asked for.
    known: RefCell<FastMap<By, Arc<Node>>>,
    _elements: PhantomData<fn() -> T>,
}

impl<T: Scalar> Neighbours<T> {
    fn new(source: Arc<Node>, boundary: Boundary<T>) -> Self {
        let rule = match boundary {
            Boundary::Clamp => Some(Rule::Clamp),
            Boundary::Periodic => Some(Rule::Periodic),
            Boundary::Mirror => Some(Rule::Mirror),
            Boundary::Symmetric => Some(Rule::Symmetric),
            Boundary::Constant(value) => Some(Rule::Constant(value.to_word())),
            Boundary::Interior => None,
        };
        let (shape, mut wrong) = match shape_of(&source) {
            Ok(shape) => (shape, None),
            Err(reason) => (Shape::SCALAR, Some(reason)),
        };
        let is_tensor = matches!(source.kind, Kind::View(_) | Kind::Split(_));
        if let (Some(Rule::Constant(_)), false) = (rule, is_tensor) {
            let reason = "a stencil with a constant outside reads a tensor: assign what it reads to one first";
            wrong.get_or_insert(reason.into());
        }
        Self { source, shape, rule, wrong, known: RefCell::default(), _elements: PhantomData }
    }

    /// Returns the shape of the tensor or the arithmetic that the stencil reads.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the element at these distances along the innermost axes. Distance 1 is the next index, and distance 0 is the element itself.
    pub fn at(&self, offsets: impl IntoOffsets) -> Expr<T> {
        let offsets = offsets.offsets();
        if offsets.len() > self.shape.rank() && self.wrong.is_none() {
            let (given, shape) = (offsets.len(), self.shape);
            let reason =
                format!("{given} offsets, {offsets:?}, along the axes of what a stencil reads, of shape {shape}");
            return Expr::of_node(self.no_value(reason));
        }
        let mut by = [0; MAX_RANK];
        for (by, &offset) in by.iter_mut().zip(offsets.iter().rev()) {
            *by = offset;
        }
        Expr::of_node(self.known.borrow_mut().entry(by).or_insert_with(|| self.neighbour(by)).clone())
    }

    /// Returns the stencil's value. It has the shape of the source, even if `f` reads no neighbour.
    fn shaped<R: Scalar>(&self, value: Expr<R>) -> Expr<R> {
        let known: Vec<_> = self.known.borrow().values().map(Arc::as_ptr).collect();
        let mut reads = false;
        rewritten(&value.node, &mut |node, _| {
            reads |= known.contains(&Arc::as_ptr(node));
            node.clone()
        });
        if reads {
            return value;
        }
        Expr::ternary(Op::Select, constant(true), value, self.at(&[][..]).convert::<R>())
    }

    fn no_value(&self, reason: String) -> Arc<Node> {
        let kind = Kind::Wrong(ExpressionErrorKind::BadStencil, reason.into());
        Arc::new(Node { kind, dtype: T::DTYPE, arguments: arguments([self.source.clone()]) })
    }

    fn neighbour(&self, mut by: By) -> Arc<Node> {
        if let Some(reason) = &self.wrong {
            return self.no_value(reason.clone());
        }
        let Some(rule) = self.rule else {
            return self.no_value("a neighbour of an interior stencil stands outside of the stencil's function".into());
        };
        for (by, &extent) in by.iter_mut().zip(self.shape.iter().rev()) {
            match rule.reduced(*by, extent) {
                Ok(Some(reduced)) => *by = reduced,
                Ok(None) => {
                    let Rule::Constant(word) = rule else { unreachable!("others lead inside") };
                    // The value does not depend on the source, but has its shape.
                    let arguments = arguments([self.source.clone()]);
                    return Arc::new(Node { kind: Kind::Constant(word), dtype: T::DTYPE, arguments });
                }
                Err(why) => {
                    let (by, shape) = (*by, self.shape);
                    return self.no_value(format!(
                        "a neighbour {by} away along an axis of extent {extent}, of what has the shape {shape}: {why}"
                    ));
                }
            }
        }
        // Along axes that the view does not have, or repeats, there is no distance.
        let shift = |shape: &Shape| {
            let mut own = [0; MAX_RANK];
            for ((own, by), &extent) in own.iter_mut().zip(by).zip(shape.iter().rev()) {
                *own = if extent == 1 { 0 } else { by };
            }
            (own != [0; MAX_RANK]).then(|| Arc::new(Shift { by: own, rule }))
        };
        self.moved(|source| match source {
            Source::View(view) => match shift(&view.layout.shape) {
                None => Kind::View(Arc::new(view.read_of(view.layout, None))),
                Some(shift) => Kind::Neighbour(view.clone(), shift),
            },
            Source::Split(view) => match shift(&view.shape) {
                None => Kind::Split(Arc::new(view.read_by_stencil())),
                Some(shift) => Kind::SplitBeside(view.clone(), Arc::new(Beside::Neighbour(shift))),
            },
        })
    }

    /// Returns the weighted sum of elements from `-origin`, computed in a loop, or `None` if the source or the distances do not allow the
    /// loop.
    fn weighted<S: Scalar>(&self, weights: &[T], origin: isize) -> Option<Expr<S>> {
        let (Some(rule), None) = (self.rule, &self.wrong) else { return None };
        let (Kind::View(_) | Kind::Split(_)) = self.source.kind else { return None };
        let first = origin.checked_neg()?;
        let last = first.checked_add_unsigned(weights.len().checked_sub(1)?)?;
        // A rule takes more than one step for longer distances.
        let extent = *self.shape.last()?;
        if first.unsigned_abs().max(last.unsigned_abs()) >= extent {
            return None;
        }
        let weights = weights.iter().map(|weight| converted(weight.to_word(), T::DTYPE, S::DTYPE)).collect();
        let taps = Arc::new(Taps { first, weights, rule, contracted: false });
        let kind = match &self.source.kind {
            Kind::View(view) => Kind::Weighted(view.clone(), taps),
            Kind::Split(view) => Kind::SplitBeside(view.clone(), Arc::new(Beside::Weighted(taps))),
            _ => return None,
        };
        Some(Expr::new(kind, arguments([])))
    }

    /// Returns the source with other leaves for its tensors.
    fn moved(&self, leaf: impl Fn(Source<'_>) -> Kind) -> Arc<Node> {
        rewritten(&self.source, &mut |old, new| match &old.kind {
            Kind::View(view) => node(leaf(Source::View(view)), old.dtype, new),
            Kind::Split(view) => node(leaf(Source::Split(view)), old.dtype, new),
            _ => with_arguments(old, new),
        })
    }

    /// Returns `value` for the elements whose neighbours are all inside. Neighbours become views of the source.
    fn interior(&self, value: Arc<Node>) -> Arc<Node> {
        if self.wrong.is_some() {
            return value;
        }
        let known = self.known.borrow();
        let (mut before, mut after) = ([0usize; MAX_RANK], [0usize; MAX_RANK]);
        for by in known.keys() {
            for (k, by) in by.iter().enumerate() {
                let side = if *by < 0 { &mut before[k] } else { &mut after[k] };
                *side = (*side).max(by.unsigned_abs());
            }
        }
        let mut inside = [0usize; MAX_RANK];
        for (k, &extent) in self.shape.iter().rev().enumerate() {
            let around = before[k].saturating_add(after[k]);
            inside[k] = extent.saturating_sub(around);
            if around > 0 && inside[k] == 0 {
                let reason = format!(
                    "no place has all its neighbours inside: they are {} indices along an axis of extent {extent}, of what has \
                     the shape {}",
                    around.saturating_add(1),
                    self.shape
                );
                let kind = Kind::Wrong(ExpressionErrorKind::BadStencil, reason.into());
                return Arc::new(Node { kind, dtype: value.dtype, arguments: arguments([self.source.clone()]) });
            }
        }
        let frame = Frame { before, after };
        let slice = |view: &Arc<View>, by: &By| {
            let Layout { shape, strides, mut offset } = view.layout;
            let (rank, empty) = (shape.rank(), shape.contains(&0));
            let shape = shape.map(|extents| {
                for (axis, extent) in extents.iter_mut().enumerate() {
                    let k = rank - 1 - axis;
                    if *extent != 1 && !empty {
                        // A repeated axis has the stride 0, and may be longer than `isize` can count.
                        let first = (before[k] as isize).wrapping_add(by[k]);
                        offset = offset.wrapping_add_signed(strides[axis].wrapping_mul(first));
                    }
                    if *extent != 1 {
                        *extent = inside[k];
                    }
                }
            });
            let layout = Layout { shape: shape.unwrap_or(Shape::SCALAR), strides, offset };
            Kind::View(Arc::new(view.read_of(layout, Some(Inside { frame, by: *by }))))
        };
        let part = |source: Source<'_>, by: &By| match source {
            Source::View(view) => slice(view, by),
            Source::Split(view) if frame.is_empty() => Kind::Split(Arc::new(view.read_by_stencil())),
            Source::Split(view) => {
                Kind::SplitBeside(view.clone(), Arc::new(Beside::Inside(Box::new(Inside { frame, by: *by }))))
            }
        };
        // The reason is compared, because a neighbour keeps it if the graph around it is rebuilt.
        let reason = |node: &Node| match &node.kind {
            Kind::Wrong(_, reason) => Some(Arc::as_ptr(reason)),
            _ => None,
        };
        let neighbours = known.iter().filter_map(|(by, node)| Some((reason(node)?, by)));
        let views: FastMap<*const str, Arc<Node>> =
            neighbours.map(|(reason, by)| (reason, self.moved(|source| part(source, by)))).collect();
        rewritten(&value, &mut |node, new| match reason(node).and_then(|reason| views.get(&reason)) {
            Some(view) => view.clone(),
            None => with_arguments(node, new),
        })
    }
}

/// Returns the shape of a stencil's source, or an error if the source cannot be read at a distance.
fn shape_of(source: &Arc<Node>) -> Result<Shape, String> {
    let (mut shape, mut wrong) = (Ok(Shape::SCALAR), None);
    rewritten(source, &mut |node, new| {
        let mut with = |other: Shape| {
            shape = shape.clone().and_then(|shape: Shape| {
                shape.broadcast(&other).ok_or_else(|| format!("shapes {shape} and {other} do not broadcast"))
            });
        };
        match &node.kind {
            Kind::View(view) => with(view.layout.shape),
            Kind::Split(view) => with(view.shape),
            Kind::Scalar(_) | Kind::Constant(_) => {}
            Kind::Op(op) if is_cheap(*op) && !op.divides_integers(node.dtype) => {}
            _ => {
                wrong.get_or_insert_with(|| {
                    format!(
                        "a stencil reads tensors, and arithmetic of tensors that it can do again for each neighbour; assign `{}` \
                         to a tensor first",
                        describe(&[node]).0.join("")
                    )
                });
            }
        }
        with_arguments(node, new)
    });
    wrong.map_or(shape, Err)
}

/// Returns whether an operator takes a few instructions.
pub(in crate::expr) fn is_cheap(op: Op) -> bool {
    match op {
        Op::Math(math) => {
            matches!(math, Math::Sqrt | Math::Floor | Math::Ceil | Math::Trunc | Math::Round | Math::RoundTiesEven)
        }
        op => !matches!(op, Op::Pow | Op::Atan2 | Op::Hypot),
    }
}
