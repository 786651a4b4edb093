//! Several assignments in one kernel.

use std::panic::Location;
use std::sync::Arc;

use primitives_host::Result;

use super::evaluate::{evaluate, launch, prepare};
use super::graph::{Node, Operand, View, describe};
use super::nest::Nest;
use super::program::{Lowered, lower};
use super::shape::Shape;
use super::tensor::Tensor;

/// Assignments that one kernel computes, all from what was there before: what they share is read and computed once.
///
/// The targets have one shape, and memory of their own; a target may be read in its place.
///
/// ```
/// use kernel_primitives::Device;
/// use kernel_primitives::expr::{Assignments, Tensor};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = Tensor::from_slice(&stream, 3, &[1.0f32, 2.0, 3.0])?;
/// let y = Tensor::from_slice(&stream, 3, &[10.0f32, 20.0, 30.0])?;
///
/// Assignments::new().assign(&x, &x + &y).assign(&y, &x - &y).run()?; // one kernel
/// assert_eq!((x.to_vec()?, y.to_vec()?), (vec![11.0, 22.0, 33.0], vec![-9.0, -18.0, -27.0]));
///
/// // As often as wanted, without looking at the expressions again.
/// let swap = Assignments::new().assign(&x, &y).assign(&y, &x).prepare()?;
/// for _ in 0..3 {
///     swap.run()?;
/// }
/// assert_eq!(x.to_vec()?, [-9.0, -18.0, -27.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
#[must_use = "nothing is computed before `run`"]
pub struct Assignments {
    targets: Vec<Arc<View>>,
    roots: Vec<Arc<Node>>,
}

impl Assignments {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// And that of `value` to `target`.
    pub fn assign<T: super::dtype::Scalar>(mut self, target: &Tensor<T>, value: impl Operand<Elem = T>) -> Self {
        self.targets.push(target.view.clone());
        self.roots.push(value.expr().node);
        self
    }

    /// Computes all of them in one kernel, on the stream of the first target.
    ///
    /// # Errors
    ///
    /// As [`Tensor::assign`]; and for targets of several shapes, or that overlap each other.
    #[track_caller]
    pub fn run(&self) -> Result<()> {
        evaluate(Location::caller(), &self.targets.iter().collect::<Vec<_>>(), &self.roots)
    }

    /// Checks and orders all that does not depend on the values, once.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run) before its launch.
    #[track_caller]
    pub fn prepare(self) -> Result<Prepared> {
        let place = Location::caller();
        let lowered = lower(&self.roots);
        let targets: Vec<&Arc<View>> = self.targets.iter().collect();
        let nest = prepare(place, &targets, &lowered, &|| self.roots.iter().collect())?;
        let shape = targets.first().map_or(Shape::SCALAR, |target| target.layout.shape);
        let text = describe(&self.roots.iter().collect::<Vec<_>>()).0.join("; ");
        Ok(Prepared { targets: self.targets, lowered, nest, shape, text, place })
    }
}

/// [`Assignments`] that were checked and ordered: to be run often, in 3 to 5 µs of the host's time on a GPU.
pub struct Prepared {
    targets: Vec<Arc<View>>,
    lowered: Lowered,
    nest: Nest,
    shape: Shape,
    text: String,
    place: &'static Location<'static>,
}

impl Prepared {
    /// Computes the assignments in one kernel, on the stream of the first target.
    ///
    /// # Errors
    ///
    /// Those of a launch, see [`Tensor::assign`].
    pub fn run(&self) -> Result<()> {
        if self.targets.is_empty() {
            return Ok(());
        }
        let targets: Vec<&Arc<View>> = self.targets.iter().collect();
        launch(self.place, &targets, &self.lowered, self.shape, &self.nest, &|| self.text.clone())
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Prepared({} over {})", self.text, self.shape)
    }
}
