//! Reductions of expressions: to one value, or along axes.

use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use primitives_host::{Error, ExpressionErrorKind, Result, Split, Stream};

use half::{bf16, f16};
use primitives_gpu::element::{ConvertTo, Ordered};

use super::dtype::{DType, Floating, Numeric, Promote, Scalar, ToWord as _, with_type};
use super::evaluate::{evaluate, mistake, reduce, reduction_text};
use super::functions::Functions;
use super::graph::{Expr, Node, Op, Operand};
use super::layout::shape::{IntoShape, MAX_RANK, Shape};
use super::program::{Lowered, lower};
use super::tensor::Tensor;

/// The operation that combines two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fold {
    Sum,
    Product,
    Min,
    Max,
    /// The index of the first smallest value, or of the first NaN.
    ArgMin,
    /// The index of the first largest value, or of the first NaN.
    ArgMax,
}

impl Fold {
    /// Returns whether the result is an index.
    pub(crate) fn is_arg(self) -> bool {
        matches!(self, Self::ArgMin | Self::ArgMax)
    }
}

/// The operation that is applied to the combined value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Finish {
    Nothing,
    /// Divides by the number of values.
    Mean,
    SquareRoot,
}

/// A reduction without its input. The combined values have the type of the program's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Spec {
    pub(crate) fold: Fold,
    pub(crate) finish: Finish,
    /// The type of the result.
    pub(crate) to: DType,
}

impl Spec {
    /// Returns the bits of the result of a reduction of no elements.
    pub(crate) fn of_nothing(self) -> u64 {
        with_type!(self.to, T => match (self.fold, self.finish) {
            (Fold::ArgMin | Fold::ArgMax, _) => u64::MAX,
            (_, Finish::Mean) => ConvertTo::<T>::convert(f64::NAN).to_word(),
            (Fold::Sum, _) => ConvertTo::<T>::convert(false).to_word(),
            (Fold::Product, _) => ConvertTo::<T>::convert(true).to_word(),
            (Fold::Min, _) => <T as Ordered>::GREATEST.to_word(),
            (Fold::Max, _) => <T as Ordered>::LEAST.to_word(),
        })
    }
}

/// The type in which sums and products are formed: `f32` for the half types, and the type itself for all other types.
pub trait Summed: Numeric {
    /// The type of sums and products.
    type Sum: Numeric;
}
macro_rules! summed {
    ($($t:ty => $sum:ty),*) => { $(impl Summed for $t { type Sum = $sum; })* };
}
summed!(
    i8 => i8, i16 => i16, i32 => i32, i64 => i64, u8 => u8, u16 => u16, u32 => u32, u64 => u64, f16 => f32, bf16 => f32,
    f32 => f32, f64 => f64
);

/// A reduction of an expression over all elements, or along [axes](Self::axes). Its results have type `T`.
///
/// One kernel computes it, reads each operand once, and writes only the results. A reduction is not an [`Operand`]: compute it first, and
/// use its result in an expression, as a [tensor](Self::tensor) or a number.
///
/// Sums, products, means and norms of `f16` and `bf16` are formed in `f32`; integers wrap. For floats, the order in which values are
/// combined depends on the shape, the layout and the device, and is the same in every run. If there are no elements, a sum is 0, a product
/// is 1, a minimum is the greatest value, a maximum is the least value, an index is `u64::MAX`, and a mean is NaN.
///
/// ```
/// use kernel_primitives::Device;
/// use kernel_primitives::expr::{Reductions, Tensor, dot};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = Tensor::from_slice(&stream, [2, 3], &[1.0f32, -2.0, 3.0, 4.0, 5.0, -6.0])?;
/// assert_eq!((&x * &x).sum().item()?, 91.0);
/// assert_eq!(dot(&x, &x).item()?, 91.0);
/// assert_eq!(x.max().axes(&[-1]).tensor()?.to_vec()?, [3.0, 5.0]);
/// assert_eq!(x.arg_min().item()?, 5);
/// assert_eq!(x.mean().axes(&[0]).tensor()?.to_vec()?, [2.5, 1.5, -1.5]);
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is computed before `item`, `tensor` or `assign_to`"]
pub struct ReductionExpr<T> {
    pub(super) root: Arc<Node>,
    pub(super) fold: Fold,
    pub(super) finish: Finish,
    pub(super) axes: Option<Vec<isize>>,
    pub(super) keep: bool,
    /// The stream or split, and the shape, for an expression without a tensor.
    pub(super) over: Option<Over>,
    _result: PhantomData<fn() -> T>,
}

/// The stream or the split on which an expression is reduced, and its extents.
pub(super) enum Over {
    Stream(Stream, Vec<usize>),
    Split(Split, Vec<usize>),
}

/// A mistake in a reduction.
type Mistake = (ExpressionErrorKind, String);

/// Returns the reduced axes, in order. If no axes are given, all axes are reduced.
pub(super) fn axes_of(given: Option<&[isize]>, shape: &Shape) -> Result<Vec<usize>, Mistake> {
    let rank = shape.rank() as isize;
    let Some(given) = given else { return Ok((0..shape.rank()).collect()) };
    let mut axes = Vec::new();
    for &axis in given {
        let at = if axis < 0 { axis + rank } else { axis };
        if !(0..rank).contains(&at) || axes.contains(&(at as usize)) {
            let reason = format!("axis {axis} of shape {shape} is none, or given twice");
            return Err((ExpressionErrorKind::OutOfRange, reason));
        }
        axes.push(at as usize);
    }
    axes.sort_unstable();
    Ok(axes)
}

/// Returns the shape of the results. If `keep` is set, the reduced axes stay with an extent of 1.
pub(super) fn kept_of(shape: &Shape, axes: &[usize], keep: bool) -> Result<Shape, Mistake> {
    let mut kept = Vec::new();
    for (axis, &extent) in shape.iter().enumerate() {
        match (axes.contains(&axis), keep) {
            (false, _) => kept.push(extent),
            (true, true) => kept.push(1),
            (true, false) => {}
        }
    }
    let kept = Shape::new(&kept).unwrap_or(Shape::SCALAR);
    if kept.elements().is_none() {
        let reason = format!("the result, of shape {kept}, has more elements than can be counted");
        return Err((ExpressionErrorKind::BadShape, reason));
    }
    Ok(kept)
}

impl<T: Scalar> ReductionExpr<T> {
    fn new<V>(value: Expr<V>, fold: Fold, finish: Finish) -> Self {
        Self { root: value.node, fold, finish, axes: None, keep: false, over: None, _result: PhantomData }
    }

    /// Reduces along these axes only. Negative axes count from the last.
    pub fn axes(mut self, axes: &[isize]) -> Self {
        self.axes = Some(axes.to_vec());
        self
    }

    /// Keeps the reduced axes with an extent of 1, so that the result broadcasts with the input. In this way, the softmax of each row of a
    /// matrix takes three kernels; [`kernels::softmax_rows`](fn@crate::kernels::softmax_rows) is one kernel.
    ///
    /// ```
    /// use kernel_primitives::Device;
    /// use kernel_primitives::expr::{Reductions, Tensor, exp};
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let stream = Device::auto()?.stream()?;
    /// let x = Tensor::from_slice(&stream, [2, 2], &[3.0f32, 3.0, 1000.0, 1000.0])?;
    /// let y = Tensor::uninit(&stream, [2, 2])?;
    /// let largest = x.max().axes(&[1]).keep_axes().tensor()?; // of shape [2, 1]
    /// let sums = exp(&x - &largest).sum().axes(&[1]).keep_axes().tensor()?;
    /// y.assign(exp(&x - &largest) / &sums)?;
    /// assert!(y.to_vec()?.iter().all(|y| (y - 0.5).abs() < 1e-6));
    /// # Ok(())
    /// # }
    /// ```
    pub fn keep_axes(mut self) -> Self {
        self.keep = true;
        self
    }

    /// Gives the expression a shape and a stream. An expression without a tensor, such as random numbers, needs them. So does an expression
    /// whose only tensor is that of a [`gather`](super::gather). The shapes of all other tensors broadcast with this shape.
    pub fn over(mut self, stream: &Stream, shape: impl IntoShape) -> Self {
        self.over = Some(Over::Stream(stream.clone(), shape.extents().to_vec()));
        self
    }

    /// Computes the reduction into `target`, which must have the shape of the result.
    ///
    /// Cost: one launch. On a GPU, if several blocks share a result, the launch needs temporary memory. The first such launch on a stream
    /// allocates 16 KiB for each multiprocessor of the device, 2.2 MB on an H200. The stream keeps them until it is dropped. Launches that
    /// cannot use this memory allocate their own: launches in captures, those of expressions that can fault, such as integer divisions and
    /// gathers, and some of columns of elements of one or two bytes.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`](primitives_host::Error::Expression) if shapes do not broadcast or fit, if nothing in the expression has
    /// a shape and it is not [`over`](Self::over) one, if an axis does not exist, or if the target overlaps an input, and the errors of
    /// [`Tensor::assign`].
    #[track_caller]
    pub fn assign_to(&self, target: &Tensor<T>) -> Result<()> {
        let (place, lowered) = (Location::caller(), lower([&self.root]));
        if !self.is_split(&lowered) {
            return self.store(place, target, lowered);
        }
        let (results, _) = self.collected(place)?;
        if results.shape() != target.shape() {
            return Err(self.other_shape(place, &results.shape(), target));
        }
        evaluate(place, &[&target.view], &[results.expr().node])
    }

    /// Returns whether the input is split over devices.
    fn is_split(&self, lowered: &Lowered) -> bool {
        self.is_over_split() || matches!(lowered.wrong, Some((ExpressionErrorKind::BadSplit, _)))
    }

    fn other_shape(&self, place: &Location<'_>, kept: &Shape, target: &Tensor<T>) -> Error {
        let reason = format!("the result of shape {kept} is no tensor of shape {}", target.shape());
        mistake(place, ExpressionErrorKind::BadShape, reason, &[&self.root])
    }

    fn store(&self, place: &'static Location<'static>, target: &Tensor<T>, lowered: Lowered) -> Result<()> {
        let (shape, axes, kept) = self.shapes(place, &lowered)?;
        if kept != target.shape() {
            return Err(self.other_shape(place, &kept, target));
        }
        let spec = Spec { fold: self.fold, finish: self.finish, to: T::DTYPE };
        reduce(place, &target.view, &shape, &axes, spec, (&self.root, lowered))
    }

    /// Computes the reduction into a new tensor. If the input is split over devices, the result is on the first device; see
    /// [`split_tensor`](Self::split_tensor) for results that stay split. [`Split::synchronize`] returns faults of the other devices'
    /// kernels.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`assign_to`](Self::assign_to).
    #[track_caller]
    pub fn tensor(&self) -> Result<Tensor<T>> {
        Ok(self.computed(Location::caller())?.0)
    }

    /// Computes the results into a new tensor. Also returns the split on which they were computed, if there is one.
    fn computed(&self, place: &'static Location<'static>) -> Result<(Tensor<T>, Option<Split>)> {
        let lowered = lower([&self.root]);
        if self.is_split(&lowered) {
            let (results, split) = self.collected(place)?;
            return Ok((results, Some(split)));
        }
        let target = self.target(place, &lowered)?;
        self.store(place, &target, lowered)?;
        Ok((target, None))
    }

    /// Makes a tensor for the results.
    fn target(&self, place: &Location<'_>, lowered: &Lowered) -> Result<Tensor<T>> {
        let (_, _, kept) = self.shapes(place, lowered)?;
        let stream = match &self.over {
            Some(Over::Stream(stream, _)) => stream.clone(),
            Some(Over::Split(split, _)) => split.streams()[0].clone(),
            None => lowered.inputs.first().expect("a tensor gives the shape").stream.clone(),
        };
        Tensor::uninit(&stream, kept)
    }

    /// Computes the reduction and copies its only result to the host.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`tensor`](Self::tensor), and an error if there is more than one result.
    #[track_caller]
    pub fn item(&self) -> Result<T> {
        let (results, split) = self.computed(Location::caller())?;
        let value = results.item();
        // All devices are done. Each stream has the faults of its own kernels; `item` has returned those of the first stream.
        let faultless = split.map_or(Ok(()), |split| split.check_faults());
        value.and_then(|value| faultless.map(|()| value))
    }

    /// Returns the PTX of the kernel that [`tensor`](Self::tensor) launches on a GPU of an architecture, given as compute capability times
    /// ten. The number of multiprocessors of the GPU is taken to be that of this device.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Tensor::ptx`].
    #[track_caller]
    pub fn ptx(&self, arch: u32) -> Result<String> {
        let place = Location::caller();
        let lowered = lower([&self.root]);
        let (shape, axes, _) = self.shapes(place, &lowered)?;
        let target = self.target(place, &lowered)?;
        let spec = Spec { fold: self.fold, finish: self.finish, to: T::DTYPE };
        reduction_text(place, &target.view, &shape, &axes, spec, (&self.root, &lowered), arch)
    }

    /// Returns the shape of the input, the reduced axes, and the shape of the result.
    fn shapes(&self, place: &Location<'_>, lowered: &Lowered) -> Result<(Shape, Vec<usize>, Shape)> {
        let fail = |kind, reason: String| mistake(place, kind, reason, &[&self.root]);
        if let Some((kind, reason)) = &lowered.wrong {
            return Err(fail(*kind, reason.to_string()));
        }
        if self.over.is_none() && lowered.loaded().next().is_none() {
            let reason = "nothing in the expression has a shape: say with `over` what it is reduced over".into();
            return Err(fail(ExpressionErrorKind::BadShape, reason));
        }
        let mut shape = match &self.over {
            Some(Over::Stream(_, extents) | Over::Split(_, extents)) => Shape::new(extents).ok_or_else(|| {
                fail(
                    ExpressionErrorKind::BadShape,
                    format!("a shape of {} axes; there can be {MAX_RANK}", extents.len()),
                )
            })?,
            None => Shape::SCALAR,
        };
        for view in lowered.loaded() {
            shape = shape.broadcast(&view.layout.shape).ok_or_else(|| {
                let reason = format!("shapes {shape} and {} do not broadcast", view.layout.shape);
                fail(ExpressionErrorKind::BadShape, reason)
            })?;
        }
        let axes = axes_of(self.axes.as_deref(), &shape).map_err(|(kind, reason)| fail(kind, reason))?;
        let kept = kept_of(&shape, &axes, self.keep).map_err(|(kind, reason)| fail(kind, reason))?;
        Ok((shape, axes, kept))
    }
}

impl<T: Scalar> std::fmt::Debug for ReductionExpr<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (texts, operands) = super::describe::describe(&[&self.root]);
        write!(f, "{:?} of {} where {}", self.fold, texts.join(""), operands.join(", "))
    }
}

/// The reductions of tensors and expressions, as methods: `x.sum()`.
pub trait Reductions: Functions {
    /// Returns the sum.
    fn sum(&self) -> ReductionExpr<Self::Item>
    where
        Self::Item: Summed,
    {
        ReductionExpr::new(self.cast::<<Self::Item as Summed>::Sum>(), Fold::Sum, Finish::Nothing)
    }

    /// Returns the product.
    fn product(&self) -> ReductionExpr<Self::Item>
    where
        Self::Item: Summed,
    {
        ReductionExpr::new(self.cast::<<Self::Item as Summed>::Sum>(), Fold::Product, Finish::Nothing)
    }

    /// Returns the sum divided by the number of elements.
    fn mean(&self) -> ReductionExpr<Self::Item>
    where
        Self::Item: Summed + Floating,
    {
        ReductionExpr::new(self.cast::<<Self::Item as Summed>::Sum>(), Fold::Sum, Finish::Mean)
    }

    /// Returns the square root of the sum of the squares. It overflows if a square overflows.
    fn norm(&self) -> ReductionExpr<Self::Item>
    where
        Self::Item: Summed + Floating,
    {
        let wide = self.cast::<<Self::Item as Summed>::Sum>();
        let square: Expr<<Self::Item as Summed>::Sum> = Expr::binary(Op::Mul, wide.clone(), wide);
        ReductionExpr::new(square, Fold::Sum, Finish::SquareRoot)
    }

    /// Returns the smallest element, or NaN if there is one.
    fn min(&self) -> ReductionExpr<Self::Item> {
        ReductionExpr::new(self.to_expr(), Fold::Min, Finish::Nothing)
    }

    /// Returns the largest element, or NaN if there is one.
    fn max(&self) -> ReductionExpr<Self::Item> {
        ReductionExpr::new(self.to_expr(), Fold::Max, Finish::Nothing)
    }

    /// Returns the index of the smallest element, or of the first NaN. If several elements are smallest, it is the first of them. The index
    /// counts the reduced elements, outermost axis first.
    fn arg_min(&self) -> ReductionExpr<u64> {
        ReductionExpr::new(self.to_expr(), Fold::ArgMin, Finish::Nothing)
    }

    /// Returns the index of the largest element, or of the first NaN. If several elements are largest, it is the first of them. The index
    /// counts the reduced elements, outermost axis first.
    fn arg_max(&self) -> ReductionExpr<u64> {
        ReductionExpr::new(self.to_expr(), Fold::ArgMax, Finish::Nothing)
    }

    /// Returns whether any element is true.
    fn any(&self) -> ReductionExpr<bool>
    where
        Self: Functions<Item = bool>,
    {
        ReductionExpr::new(self.to_expr(), Fold::Max, Finish::Nothing)
    }

    /// Returns whether all elements are true.
    fn all(&self) -> ReductionExpr<bool>
    where
        Self: Functions<Item = bool>,
    {
        ReductionExpr::new(self.to_expr(), Fold::Min, Finish::Nothing)
    }

    /// Returns how many elements are true.
    fn count(&self) -> ReductionExpr<u64>
    where
        Self: Functions<Item = bool>,
    {
        ReductionExpr::new(self.cast::<u64>(), Fold::Sum, Finish::Nothing)
    }
}
impl<X: Functions> Reductions for X {}

/// Returns the sum of the products of the elements, in their common type.
///
/// ```
/// # use kernel_primitives::{Device, expr::{Tensor, dot}};
/// # fn main() -> kernel_primitives::Result<()> {
/// # let stream = Device::auto()?.stream()?;
/// let x = Tensor::from_slice(&stream, 3, &[1.0f32, 2.0, 3.0])?;
/// let y = Tensor::from_slice(&stream, 3, &[4.0f32, 5.0, 6.0])?;
/// assert_eq!(dot(&x, &y).item()?, 32.0);
/// # Ok(())
/// # }
/// ```
pub fn dot<A, B>(a: A, b: B) -> ReductionExpr<<A::Elem as Promote<B::Elem>>::Output>
where
    A: Operand<Elem: Promote<B::Elem, Output: Summed>>,
    B: Operand,
{
    type Sum<A, B> = <<<A as Operand>::Elem as Promote<<B as Operand>::Elem>>::Output as Summed>::Sum;
    let (a, b) = (a.expr().convert::<Sum<A, B>>(), b.expr().convert::<Sum<A, B>>());
    let product: Expr<Sum<A, B>> = Expr::binary(Op::Mul, a, b);
    ReductionExpr::new(product, Fold::Sum, Finish::Nothing)
}
