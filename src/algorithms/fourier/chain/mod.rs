//! Transforms of expressions, with expressions between them and after them.
//!
//! On a GPU, one kernel makes a chain of one or two transforms of contiguous lines, if a block can hold a line. Otherwise each transform
//! replaces a temporary array, and each expression is an assignment.

#[cfg(test)]
mod tests;

use std::panic::Location;
use std::sync::Arc;

use primitives_host::storage::{Storage, temporary};

use super::generated::launch::ComputedLines;
use super::plan::FftPlan;
use super::transform::{FftKind, InPlace, fft_in_place, ifft_in_place};
use crate::algorithms::run::{Run, check_device};
use crate::expr::evaluate::{evaluate, prepare};
use crate::expr::graph::{Kind, Node, View, arguments, rewritten, with_arguments, zero};
use crate::expr::layout::shape::Shape;
use crate::expr::program::{Lowered, lower};
use crate::expr::{ComplexExpr, ComplexOperand, ComplexTensor, Expr, Floating, Tensor};
use crate::{Complex, Error, ExpressionErrorKind, Result};

/// The largest number of transforms in one kernel.
const MOST: usize = 2;

/// Transforms of an expression, with expressions between them. For example: a window, a transform, a product with the spectrum of a filter,
/// and the inverse transform.
///
/// Nothing is computed until the chain is [assigned](Self::assign). Expressions are evaluated over the shape of the plan, and their
/// operands broadcast to it. Transforms go along the axes of the plan, and their results are multiplied by its [scales](FftPlan::scaled).
///
/// **One kernel.** On a GPU, a chain of one or two transforms is one kernel, which reads the operands of the expressions and writes the
/// target, if
///
/// - the plan transforms the last axis alone, its length has no prime factor above 31, and a block holds a line;
/// - the array has fewer than 2^31 numbers;
/// - expressions have no neighbours, gathers, random numbers, device functions of your own, or divisions of integers;
/// - each operand has the same distance between any two successive lines, as contiguous tensors and single lines that broadcast have.
///
/// The kernel is generated when it is first used. The driver compiles it once for a length and a form of expressions. Otherwise, and always
/// on the emulator, each expression and each transform is a call of its own, on a temporary array of as many complex numbers as the plan's
/// shape has. [`separate_reason`](Self::separate_reason) says which way a chain takes, and why.
///
/// **Captures.** A graph keeps the temporary memory of a chain.
///
/// **Determinism.** Results have the same bits on every run, as those of [`fft`](super::fft()). The results of the two ways may differ in
/// the last places.
///
/// **Accuracy.** That of [`fft`](super::fft()).
///
/// ```
/// use kernel_primitives::algorithms::{FftChain, FftPlan};
/// use kernel_primitives::expr::{ComplexExpr, ComplexTensor, Tensor};
/// use kernel_primitives::{Complex, Device};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// // Two lines of four numbers, each turned by one place.
/// let plan = FftPlan::<f32>::new(&stream, &[2, 4], &[1])?.scaled(1.0, 0.25);
/// let x = Tensor::from_slice(&stream, [2, 4], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])?;
/// let window = Tensor::from_slice(&stream, 4, &[1.0f32, 1.0, 1.0, 0.0])?;
/// let turn = [(1.0f32, 0.0), (0.0, -1.0), (-1.0, 0.0), (0.0, 1.0)].map(|(re, im)| Complex::new(re, im));
/// let turn = ComplexTensor::from_slice(&stream, 4, &turn)?;
///
/// let out = Tensor::<f32>::zeros(&stream, [2, 4])?;
/// FftChain::new(&plan, ComplexExpr::real(&x * &window))
///     .forward()
///     .map(|spectrum| spectrum * &turn)
///     .inverse()
///     .assign_by(&out, |y| y.re)?;
/// let expected = [0.0, 1.0, 2.0, 3.0, 0.0, 5.0, 6.0, 7.0];
/// assert!(out.to_vec()?.iter().zip(expected).all(|(y, expected)| (y - expected).abs() < 1e-5));
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is computed before it is assigned"]
pub struct FftChain<'p, T> {
    plan: &'p FftPlan<T>,
    links: Vec<Link<T>>,
    value: ComplexExpr<T>,
}

/// A transform in a chain.
struct Link<T> {
    kind: FftKind,
    of: ComplexExpr<T>,
    /// The placeholder for the results in later expressions.
    result: ComplexExpr<T>,
}

/// Nodes, and their replacements.
type Places = Vec<(Arc<Node>, Arc<Node>)>;

fn replaced(root: &Arc<Node>, places: &[(Arc<Node>, Arc<Node>)]) -> Arc<Node> {
    rewritten(root, &mut |node, new| match places.iter().find(|(from, _)| Arc::ptr_eq(from, node)) {
        Some((_, to)) => to.clone(),
        None => with_arguments(node, new),
    })
}

/// A placeholder for a value. It has no value of its own, so an expression outside its chain is an error.
fn stand_in<T: Floating>() -> Expr<T> {
    let reason = "a number between the transforms of a chain has no value outside of the chain";
    Expr::new(Kind::Wrong(ExpressionErrorKind::BadTransform, reason.into()), arguments([]))
}

/// Returns whether each expression reads only the results of the transform right before it.
fn is_in_order(lowered: &Lowered, transforms: usize) -> bool {
    let (program, results) = (&lowered.program, &lowered.program.results);
    (0..=transforms).all(|phase| {
        let begin = 2 * (transforms + phase);
        let end = if phase < transforms { begin + 2 } else { results.len() };
        let needed = program.needed_by(&results[begin..end]);
        (0..2 * transforms).all(|part| part / 2 + 1 == phase || !needed[results[part] as usize])
    })
}

impl<'p, T: InPlace + Floating> FftChain<'p, T> {
    /// Starts a chain with an expression or a tensor.
    pub fn new(plan: &'p FftPlan<T>, x: impl ComplexOperand<T>) -> Self {
        Self { plan, links: Vec::new(), value: x.complex() }
    }

    fn transformed(mut self, kind: FftKind) -> Self {
        let result = ComplexExpr { re: stand_in(), im: stand_in() };
        self.links.push(Link { kind, of: self.value, result: result.clone() });
        Self { value: result, ..self }
    }

    /// Adds a transform, as [`fft`](super::fft()) computes it.
    pub fn forward(self) -> Self {
        self.transformed(FftKind::Forward)
    }

    /// Adds an inverse transform, as [`ifft`](super::ifft) computes it.
    pub fn inverse(self) -> Self {
        self.transformed(FftKind::Inverse)
    }

    /// Adds a function of each number. The function must use only the number that it gets, and no number of an earlier call if there is a
    /// transform between the two.
    pub fn map(self, f: impl FnOnce(ComplexExpr<T>) -> ComplexExpr<T>) -> Self {
        Self { value: f(self.value), ..self }
    }

    /// Computes the chain into a tensor of the plan's shape, on the stream of the tensor. Expressions may also read this tensor, if they
    /// read each element in its own place. They see its previous contents.
    ///
    /// # Errors
    /// Returns [`Error::Fft`] if the target has another shape than the plan, or if a function uses a number of an earlier call;
    /// [`Error::WrongDevice`] if the plan and the target are on different devices; the errors of [`Tensor::assign`]; and those of an
    /// allocation.
    #[track_caller]
    pub fn assign(self, out: &ComplexTensor<T>) -> Result<()> {
        let roots = [self.value.re.node.clone(), self.value.im.node.clone()];
        self.run("FftChain::assign", Location::caller(), &[&out.re().view, &out.im().view], &roots)
    }

    /// Computes a real function of all numbers into a tensor of the plan's shape: a real or imaginary part, or
    /// [`ComplexExpr::norm_squared`].
    ///
    /// # Errors
    /// Returns the errors of [`assign`](Self::assign).
    #[track_caller]
    pub fn assign_by(self, out: &Tensor<T>, f: impl FnOnce(ComplexExpr<T>) -> Expr<T>) -> Result<()> {
        let root = f(self.value.clone()).node;
        self.run("FftChain::assign_by", Location::caller(), &[&out.view], &[root])
    }

    /// Returns why [`assign`](Self::assign) takes several calls, or `None` if it is one kernel.
    ///
    /// # Errors
    /// Returns the errors of [`assign`](Self::assign) that come before its launches.
    ///
    /// ```
    /// use kernel_primitives::Device;
    /// use kernel_primitives::algorithms::{FftChain, FftPlan};
    /// use kernel_primitives::expr::ComplexTensor;
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let stream = Device::emulator().stream()?;
    /// let plan = FftPlan::<f32>::new(&stream, &[3, 8], &[1])?;
    /// let x = ComplexTensor::zeros(&stream, [3, 8])?;
    /// let reason = FftChain::new(&plan, &x).forward().separate_reason(&x)?;
    /// assert_eq!(reason.as_deref(), Some("the emulator runs compiled kernels"));
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn separate_reason(&self, out: &ComplexTensor<T>) -> Result<Option<String>> {
        let targets = [&out.re().view, &out.im().view];
        let roots = [self.value.re.node.clone(), self.value.im.node.clone()];
        let (shape, lowered) = self.checked("FftChain::separate_reason", Location::caller(), &targets, &roots)?;
        if self.links.is_empty() || self.plan.items() == 0 {
            return Ok(None);
        }
        Ok(match &self.plan.generated {
            _ if self.links.len() > MOST => Some(format!("there are more than {MOST} transforms")),
            Err(reason) => Some(reason.clone()),
            Ok(generated) => generated.refuses(&self.lines(shape, &targets, &lowered)),
        })
    }

    /// The program of all expressions, after the checks. Scalars stand for the results of transforms. Errors name the call.
    fn checked(
        &self,
        call: &'static str,
        place: &'static Location<'static>,
        targets: &[&Arc<View>],
        roots: &[Arc<Node>],
    ) -> Result<(Shape, Lowered)> {
        let wrong = |reason: String| Err(Error::Fft { call, reason });
        let shape = targets[0].layout.shape;
        if *shape != *self.plan.shape() {
            return wrong(format!("the target has the shape {shape}, and the plan {:?}", self.plan.shape()));
        }
        check_device(call, "`plan`", &targets[0].stream, self.plan.table.device())?;
        let results = self.links.iter().flat_map(|link| [&link.result.re.node, &link.result.im.node]);
        let places: Places = results.map(|result| (result.clone(), zero(T::DTYPE))).collect();
        let taken = self.links.iter().flat_map(|link| [&link.of.re.node, &link.of.im.node]);
        let values = taken.chain(roots).map(|value| replaced(value, &places));
        let all: Vec<Arc<Node>> = places.iter().map(|(_, scalar)| scalar.clone()).chain(values).collect();
        let lowered = lower(&all);
        prepare(place, targets, &lowered, &|| all[places.len()..].iter().collect())?;
        if !is_in_order(&lowered, self.links.len()) {
            return wrong(
                "a function uses a number from before a later transform: each has that which it gets alone".into(),
            );
        }
        Ok((shape, lowered))
    }

    fn lines<'a>(&self, shape: Shape, targets: &'a [&'a Arc<View>], lowered: &'a Lowered) -> ComputedLines<'a> {
        let of = |link: &Link<T>| (link.kind == FftKind::Inverse, self.plan.scale(link.kind) != T::ONE);
        ComputedLines { shape, targets, lowered, transforms: self.links.iter().map(of).collect() }
    }

    fn run(
        &self,
        call: &'static str,
        place: &'static Location<'static>,
        targets: &[&Arc<View>],
        roots: &[Arc<Node>],
    ) -> Result<()> {
        let (shape, lowered) = self.checked(call, place, targets, roots)?;
        if self.plan.items() == 0 {
            return Ok(());
        }
        if self.links.is_empty() {
            return evaluate(place, targets, roots);
        }
        if self.links.len() <= MOST
            && let Ok(generated) = &self.plan.generated
        {
            let scales: Vec<T> = self.links.iter().map(|link| self.plan.scale(link.kind)).collect();
            if generated.run_computed(&targets[0].stream, &self.lines(shape, targets, &lowered), &scales)? {
                return Ok(());
            }
        }
        self.run_separately(place, targets, roots, shape)
    }

    /// Runs each transform in place, on a temporary array.
    fn run_separately(
        &self,
        place: &'static Location<'static>,
        targets: &[&Arc<View>],
        roots: &[Arc<Node>],
        shape: Shape,
    ) -> Result<()> {
        let stream = &targets[0].stream;
        let mut storage = Storage::of(temporary::<Complex<T>>(stream, self.plan.items())?);
        let mut places = Places::new();
        for Link { kind, of, result } in &self.links {
            let array = ComplexTensor::<T>::at(stream, shape, storage.clone());
            let values = [&of.re, &of.im].map(|part| replaced(&part.node, &places));
            evaluate(place, &[&array.re().view, &array.im().view], &values)?;
            // SAFETY: the memory is that of a buffer of complex numbers; until the call returns nothing uses a clone but work before it.
            let data = unsafe { storage.as_mut_slice::<Complex<T>>() };
            let run = Run::on(stream).kept_by_graph();
            match kind {
                FftKind::Inverse => ifft_in_place(run, self.plan, data)?,
                _ => fft_in_place(run, self.plan, data)?,
            }
            let ComplexExpr { re, im } = array.complex();
            places = vec![(result.re.node.clone(), re.node), (result.im.node.clone(), im.node)];
        }
        let values: Vec<Arc<Node>> = roots.iter().map(|root| replaced(root, &places)).collect();
        evaluate(place, targets, &values)
    }
}
