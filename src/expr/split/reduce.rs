//! Reductions of split tensors, first on each device and then over the devices.

use std::panic::Location;
use std::sync::Arc;

use primitives_host::{Error, ExpressionErrorKind, Result, Split, Stream};

use super::assign::{Brought, Pass, Reads, number, on_device};
use super::copy::copy;
use super::gathers::Gathers;
use super::halo::{Halos, Rooms};
use super::packed::packed;
use super::tensor::SplitTensor;
use super::view::{Rows, row_elements, with_rows};
use crate::expr::dtype::{DType, Scalar, with_type};
use crate::expr::evaluate::{evaluate, mistake, of_nothing, reduce};
use crate::expr::graph::{Kind, Math, Node, Op, View, arguments, convert, function, function_of_two, math, node};
use crate::expr::layout::shape::{IntoShape, MAX_RANK, Shape};
use crate::expr::program::lower;
use crate::expr::reduce::{Finish, Fold, Over, ReductionExpr, Spec, axes_of, kept_of};
use crate::expr::tensor::Tensor;

/// A checked reduction of a split input.
struct Plan {
    place: &'static Location<'static>,
    root: Arc<Node>,
    split: Split,
    bounds: Vec<usize>,
    /// The shape of the input.
    shape: Shape,
    axes: Vec<usize>,
    /// The shape of the results.
    kept: Shape,
    spec: Spec,
    /// The copies of views to contiguous memory.
    copies: Vec<Pass>,
    halos: Halos,
    gathers: Gathers,
    /// The room that the halos use, until all work is enqueued.
    _rooms: Rooms,
}

impl<T: Scalar> ReductionExpr<T> {
    /// Gives the expression a shape and a split. An expression without a tensor, such as random numbers, needs them.
    ///
    /// ```
    /// use kernel_primitives::expr::{Functions, Reductions, le, scalar, square, uniform};
    /// use kernel_primitives::{Devices, Split};
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let split = Split::even(&Devices::emulated(4)?)?;
    /// let inside = le(square(uniform::<f32>(1)) + square(uniform::<f32>(2)), scalar(1.0));
    /// let count = inside.cast::<u64>().sum().over_split(&split, 100_000).item()?;
    /// assert!((4.0 * count as f64 / 1e5 - std::f64::consts::PI).abs() < 0.03);
    /// # Ok(())
    /// # }
    /// ```
    pub fn over_split(mut self, split: &Split, shape: impl IntoShape) -> Self {
        self.over = Some(Over::Split(split.clone(), shape.extents().to_vec()));
        self
    }

    /// Computes a reduction along other axes than the outermost axis into a new tensor. It is split like the input.
    ///
    /// ```
    /// use kernel_primitives::expr::{Reductions, SplitTensor};
    /// use kernel_primitives::{Devices, Split};
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let split = Split::even(&Devices::emulated(2)?)?;
    /// let x = SplitTensor::from_slice(&split, [3, 2], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    /// assert_eq!(x.sum().axes(&[1]).split_tensor()?.to_vec()?, [3.0, 7.0, 11.0]);
    /// assert_eq!(x.sum().axes(&[0]).tensor()?.to_vec()?, [9.0, 12.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] if the input is not split, or if the outermost axis is reduced, so that the results are on one device,
    /// and the errors of [`tensor`](Self::tensor).
    #[track_caller]
    pub fn split_tensor(&self) -> Result<SplitTensor<T>> {
        let place = Location::caller();
        let mut plan = self.plan(place)?;
        if plan.axes.contains(&0) {
            let reason = "the outermost axis is reduced, so that the results are not split: use `tensor`".into();
            return Err(plan.fail(ExpressionErrorKind::BadSplit, reason));
        }
        let result = SplitTensor::made_by(&plan.split, plan.bounds.clone(), plan.kept, &mut |_, stream, shape, _| {
            Tensor::uninit(stream, shape)
        })?;
        plan.pack()?;
        plan.halos.bring(place)?;
        plan.gathers.bring(place, &plan.shape, Rows { split: &plan.split, bounds: &plan.bounds }, &plan.halos)?;
        for (device, first, rows) in plan.rows().shards_or_first() {
            plan.reduce(device, (first, rows), &result.shard(device).view, plan.spec)?;
        }
        Ok(result)
    }

    /// Returns whether [`over_split`](Self::over_split) has given the reduction a split.
    pub(in crate::expr) fn is_over_split(&self) -> bool {
        matches!(self.over, Some(Over::Split(..)))
    }

    /// Computes a reduction of a split input along the outermost axis, and perhaps other axes, into a new tensor on the first device. Also
    /// returns the split on whose streams it is computed.
    pub(in crate::expr) fn collected(&self, place: &'static Location<'static>) -> Result<(Tensor<T>, Split)> {
        let mut plan = self.plan(place)?;
        if !plan.axes.contains(&0) {
            let reason = "the outermost axis is not reduced, so that the results are split: use `split_tensor`".into();
            return Err(plan.fail(ExpressionErrorKind::BadSplit, reason));
        }
        plan.pack()?;
        let home = &plan.split.streams()[0];
        let target = Tensor::<T>::uninit(home, plan.kept)?;
        plan.halos.bring(place)?;
        plan.gathers.bring(place, &plan.shape, Rows { split: &plan.split, bounds: &plan.bounds }, &plan.halos)?;
        plan.collect(home, &target.view)?;
        Ok((target, plan.split))
    }

    fn plan(&self, place: &'static Location<'static>) -> Result<Plan> {
        let root = &self.root;
        let fail = |kind, reason: String| mistake(place, kind, reason, &[root]);
        let reads = Reads::of(root);
        let first = reads.first();
        let (split, bounds, mut shape) = match (&self.over, first) {
            (Some(Over::Split(split, extents)), _) => {
                let shape = Shape::new(extents).ok_or_else(|| {
                    let reason = format!("a shape of {} axes; there can be {MAX_RANK}", extents.len());
                    fail(ExpressionErrorKind::BadShape, reason)
                })?;
                (split.clone(), None, shape)
            }
            (Some(Over::Stream(..)), Some(_)) => {
                let reason = "what is reduced over a stream is split: use `over_split`".into();
                return Err(fail(ExpressionErrorKind::BadSplit, reason));
            }
            (None, Some((split, bounds, shape))) => (split, Some(bounds), shape),
            (_, None) if !reads.gathered_split.is_empty() => {
                let reason =
                    "what is gathered from a split tensor has no shape: say with `over_split` what is reduced".into();
                return Err(fail(ExpressionErrorKind::BadSplit, reason));
            }
            (_, None) => {
                let reason = "nothing in the expression is split over devices: use `tensor`".into();
                return Err(fail(ExpressionErrorKind::BadSplit, reason));
            }
        };
        let shapes = reads.split.iter().map(|view| view.shape);
        let shapes = shapes.chain(reads.beside.iter().map(|(view, beside)| beside.shape(view.shape)));
        for other in shapes.chain(reads.whole.iter().map(|view| view.layout.shape)) {
            shape = shape.broadcast(&other).ok_or_else(|| {
                fail(ExpressionErrorKind::BadShape, format!("shapes {shape} and {other} do not broadcast"))
            })?;
        }
        if shape.rank() == 0 {
            let reason = "a single value has no axis that is split".into();
            return Err(fail(ExpressionErrorKind::BadShape, reason));
        }
        let axes = axes_of(self.axes.as_deref(), &shape).map_err(|(kind, reason)| fail(kind, reason))?;
        let kept = kept_of(&shape, &axes, self.keep).map_err(|(kind, reason)| fail(kind, reason))?;
        let bounds = bounds.unwrap_or_else(|| split.bounds(shape[0]));
        let rows = Rows { split: &split, bounds: &bounds };
        reads.check(place, root, &shape, rows)?;
        let (root, copies) = packed(place, root, rows)?;
        let gathers = Gathers::new(place, &root, rows)?;
        let mut rooms = Rooms::default();
        let halos = Halos::new(place, &Reads::of(&root), rows, &mut rooms)?;
        let spec = Spec { fold: self.fold, finish: self.finish, to: T::DTYPE };
        Ok(Plan { place, root, split, bounds, shape, axes, kept, spec, copies, halos, gathers, _rooms: rooms })
    }
}

impl Plan {
    fn fail(&self, kind: ExpressionErrorKind, reason: String) -> Error {
        mistake(self.place, kind, reason, &[&self.root])
    }

    fn rows(&self) -> Rows<'_> {
        Rows { split: &self.split, bounds: &self.bounds }
    }

    /// Fills the contiguous copies of views.
    fn pack(&mut self) -> Result<()> {
        let Self { root, copies, .. } = self;
        copies.iter_mut().try_for_each(|copy| copy.run(&[root]))
    }

    /// Reduces the rows of a device into a tensor there.
    fn reduce(&self, device: usize, (first, rows): (usize, usize), target: &Arc<View>, spec: Spec) -> Result<()> {
        let brought = Brought { halos: &self.halos, gathers: &self.gathers };
        let root = on_device(&self.root, device, (first, rows), row_elements(&self.shape), brought);
        let lowered = lower([&root]);
        if let Some((kind, reason)) = &lowered.wrong {
            return Err(self.fail(*kind, reason.to_string()));
        }
        reduce(self.place, target, &with_rows(self.shape, rows), &self.axes, spec, (&root, lowered))
    }

    /// Reduces all rows into a tensor of the stream `home`.
    fn collect(&self, home: &Stream, target: &Arc<View>) -> Result<()> {
        let Spec { fold, to, .. } = self.spec;
        let reduced = self.axes.iter().map(|&axis| self.shape[axis]);
        let shards = self.rows().shards_or_first();
        let (device, first, rows) = shards[0];
        let is_of_nothing = reduced.clone().any(|extent| extent == 0);
        // Either nothing is read, or all of it is on the device that has the result.
        if is_of_nothing || device == 0 && shards.len() == 1 {
            return self.reduce(device, (first, rows), target, self.spec);
        }
        // The results of the devices are combined in the type in which they were formed.
        let from = self.root.dtype;
        let mut total: Option<Partial> = None;
        for (device, first, rows) in shards {
            let partial = |fold, to: DType| -> Result<Arc<Node>> {
                let there = self.uninit(&self.split.streams()[device], to)?;
                self.reduce(device, (first, rows), &there, Spec { fold, finish: Finish::Nothing, to })?;
                let here = self.brought(home, there, to)?;
                Ok(node(Kind::View(here), to, arguments([])))
            };
            let next = if fold.is_arg() {
                let best = if fold == Fold::ArgMin { Fold::Min } else { Fold::Max };
                let before = (first as u64).saturating_mul(self.reduced_row());
                let index = function_of_two(Op::Add, partial(fold, DType::U64)?, number(before));
                Partial { value: partial(best, from)?, index: Some(index) }
            } else {
                Partial { value: partial(fold, from)?, index: None }
            };
            total = Some(match total {
                Some(before) => before.combined(next, fold),
                None => next,
            });
        }
        let Some(Partial { value, index }) = total else { return self.store(target, of_nothing(self.spec)) };
        let value = match (index, self.spec.finish) {
            (Some(index), _) => index,
            (None, Finish::Nothing) => value,
            (None, Finish::SquareRoot) => math(Math::Sqrt, value),
            (None, Finish::Mean) => {
                let count = convert(number(reduced.fold(1, |all, extent| all.saturating_mul(extent as u64))), from);
                function_of_two(Op::Div, value, count)
            }
        };
        self.store(target, convert(value, to))
    }

    /// Returns the number of elements of a row that belong to one result.
    fn reduced_row(&self) -> u64 {
        self.axes.iter().skip(1).fold(1u64, |all, &axis| all.saturating_mul(self.shape[axis] as u64))
    }

    fn store(&self, target: &Arc<View>, value: Arc<Node>) -> Result<()> {
        evaluate(self.place, &[target], &[value])
    }

    /// Makes a tensor for results.
    fn uninit(&self, stream: &Stream, dtype: DType) -> Result<Arc<View>> {
        with_type!(dtype, E => Ok(Tensor::<E>::uninit(stream, self.kept)?.view))
    }

    /// Copies results to the device of a stream. Returns the results themselves if they are there already.
    fn brought(&self, home: &Stream, there: Arc<View>, dtype: DType) -> Result<Arc<View>> {
        if there.storage.is_on(home.device()) {
            return Ok(there);
        }
        let here = self.uninit(home, dtype)?;
        let len = self.kept.elements().unwrap_or(usize::MAX);
        with_type!(dtype, E => copy::<E>("`ReductionExpr::tensor`", (&here, 0), (&there, 0), len))?;
        Ok(here)
    }
}

/// The combined result of some devices.
struct Partial {
    value: Arc<Node>,
    /// The index of the value, if the reduction returns an index.
    index: Option<Arc<Node>>,
}

impl Partial {
    /// Combines this result with the result of later devices. If both values are equal, the value with the lower index wins.
    fn combined(self, later: Self, fold: Fold) -> Self {
        let op = match fold {
            Fold::Sum => Op::Add,
            Fold::Product => Op::Mul,
            Fold::Min | Fold::ArgMin => Op::Min,
            Fold::Max | Fold::ArgMax => Op::Max,
        };
        let index = match (self.index, later.index) {
            (Some(first), Some(second)) => {
                let (a, b) = (&self.value, &later.value);
                let (low, high) = if fold == Fold::ArgMin { (b, a) } else { (a, b) };
                let mut is_later = node(Kind::Op(Op::Lt), DType::Bool, arguments([low.clone(), high.clone()]));
                // The first NaN wins over all values.
                if a.dtype.is_float() {
                    let nan = |x: &Arc<Node>| function(Op::IsNan, x.clone());
                    is_later = function_of_two(Op::Or, is_later, nan(b));
                    is_later = function_of_two(Op::And, function(Op::Not, nan(a)), is_later);
                }
                Some(node(Kind::Op(Op::Select), DType::U64, arguments([is_later, second, first])))
            }
            _ => None,
        };
        Self { value: function_of_two(op, self.value, later.value), index }
    }
}
