//! Several assignments in one kernel.

use std::panic::Location;
use std::sync::Arc;

use primitives_host::Result;

use super::describe::describe;
use super::evaluate::{evaluate, launch, prepare};
use super::graph::{Node, View};
use super::layout::nest::Nest;
use super::layout::shape::Shape;
use super::program::{Lowered, lower_fixed};
use super::steps::passes::{Options, Schedule, Tiles, steps_among};

/// An assignment for [`assign_all`]: [`Tensor::to`](super::Tensor::to) creates it.
#[must_use = "it is made by `assign_all`, or when it is prepared and run"]
pub struct Assignment {
    target: Arc<View>,
    value: Arc<Node>,
}

impl Assignment {
    pub(crate) fn new(target: Arc<View>, value: Arc<Node>) -> Self {
        Self { target, value }
    }
}

fn apart(assignments: impl IntoIterator<Item = Assignment>) -> (Vec<Arc<View>>, Vec<Arc<Node>>) {
    assignments.into_iter().map(|assignment| (assignment.target, assignment.value)).unzip()
}

/// Makes several assignments to tensors of one shape in one kernel. All values are computed from the elements as they are before the call.
/// The kernel reads and computes once what the values have in common.
///
/// ```
/// use kernel_primitives::Device;
/// use kernel_primitives::expr::{Tensor, assign_all, cos, sin};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = Tensor::from_slice(&stream, 3, &[1.0f32, 0.0, 3.0])?;
/// let y = Tensor::from_slice(&stream, 3, &[0.0f32, 2.0, 4.0])?;
/// let angle = &Tensor::from_slice(&stream, 1, &[std::f32::consts::FRAC_PI_2])?;
/// // All points turned to the left.
/// assign_all([x.to(&x * cos(angle) - &y * sin(angle)), y.to(&x * sin(angle) + &y * cos(angle))])?;
/// assert!(x.to_vec()?.iter().zip([0.0, -2.0, -4.0]).all(|(x, expected)| (x - expected).abs() < 1e-6));
/// assert!(y.to_vec()?.iter().zip([1.0, 0.0, 3.0]).all(|(y, expected)| (y - expected).abs() < 1e-6));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Returns the errors of [`Tensor::assign`](super::Tensor::assign), and [`Error::Expression`](primitives_host::Error::Expression) if the
/// targets have several shapes or overlap.
#[track_caller]
pub fn assign_all(assignments: impl IntoIterator<Item = Assignment>) -> Result<()> {
    let (targets, values) = apart(assignments);
    evaluate(Location::caller(), &targets.iter().collect::<Vec<_>>(), &values)
}

/// Assignments of one kernel that are checked once and run many times. A run does not look at the expressions again. The kernel is for
/// these assignments only, and contains their numbers as constants.
///
/// ```
/// use kernel_primitives::Device;
/// use kernel_primitives::expr::{Prepared, Tensor};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = Tensor::from_slice(&stream, 3, &[1.0f32, 2.0, 3.0])?;
/// let y = Tensor::from_slice(&stream, 3, &[10.0f32, 20.0, 30.0])?;
/// let step = Prepared::new([x.to(&x + &y), y.to(&x - &y)])?;
/// for _ in 0..2 {
///     step.run()?;
/// }
/// assert_eq!(x.to_vec()?, [2.0, 4.0, 6.0]);
/// # Ok(())
/// # }
/// ```
pub struct Prepared {
    targets: Vec<Arc<View>>,
    work: Made,
    shape: Shape,
    text: String,
    place: &'static Location<'static>,
    /// Set by the first run on a GPU.
    #[cfg(feature = "cuda")]
    ready: std::sync::OnceLock<super::gpu::Ready>,
}

/// Checked assignments.
enum Made {
    Kernel(Box<(Lowered, Nest)>),
    Steps(Schedule),
}

impl Prepared {
    /// Checks the assignments, and does all work that does not depend on the elements' values.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`assign_all`] before its launch.
    #[track_caller]
    pub fn new(assignments: impl IntoIterator<Item = Assignment>) -> Result<Self> {
        let place = Location::caller();
        let (targets, values) = apart(assignments);
        let roots: Vec<&Arc<Node>> = values.iter().collect();
        let all: Vec<&Arc<View>> = targets.iter().collect();
        let work = if steps_among(&values).is_some() {
            let options = Options { fixed: true, tiles: Tiles::on(all[0].stream.device().is_gpu()) };
            Made::Steps(Schedule::new(place, &all, &values, options)?)
        } else {
            let lowered = lower_fixed(&values);
            let nest = prepare(place, &all, &lowered, &|| roots.clone())?;
            Made::Kernel(Box::new((lowered, nest)))
        };
        let shape = targets.first().map_or(Shape::SCALAR, |target| target.layout.shape);
        let text = describe(&roots).0.join("; ");
        Ok(Self {
            targets,
            work,
            shape,
            text,
            place,
            #[cfg(feature = "cuda")]
            ready: Default::default(),
        })
    }

    /// Makes the assignments on the stream of the first target, in one kernel. [Steps](super::Expr::steps) may take several kernels. No
    /// other run of these assignments comes between them, but other assignments to the target may.
    ///
    /// # Errors
    ///
    /// Returns the errors of a launch: see [`Tensor::assign`](super::Tensor::assign).
    pub fn run(&self) -> Result<()> {
        if self.targets.is_empty() {
            return Ok(());
        }
        let (lowered, nest) = match &self.work {
            Made::Kernel(kernel) => (&kernel.0, &kernel.1),
            Made::Steps(steps) => return steps.run(),
        };
        let targets: Vec<&Arc<View>> = self.targets.iter().collect();
        #[cfg(feature = "cuda")]
        if nest.elements > 0 && targets[0].stream.device().is_gpu() {
            let ready = match self.ready.get() {
                Some(ready) => ready,
                None => {
                    let operands = super::gpu::Operands::new(&targets, lowered, nest);
                    let ready = operands.ready(&|| self.text.clone())?;
                    self.ready.get_or_init(|| ready)
                }
            };
            return ready.launch(&targets, lowered);
        }
        launch(self.place, &targets, lowered, nest, &|| self.text.clone())
    }

    /// Returns the PTX of the kernel for a GPU of an architecture, given as compute capability times ten. It is empty if there are no
    /// assignments.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Tensor::ptx`](super::Tensor::ptx).
    ///
    /// ```
    /// # use kernel_primitives::{Device, expr::{Prepared, Tensor}};
    /// # fn main() -> kernel_primitives::Result<()> {
    /// # let stream = Device::auto()?.stream()?;
    /// let [x, y] = [Tensor::<f32>::zeros(&stream, 1024)?, Tensor::zeros(&stream, 1024)?];
    /// let swap = Prepared::new([x.to(&y), y.to(&x)])?;
    /// assert_eq!(swap.ptx(90)?.matches("ld.global.v4").count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn ptx(&self, arch: u32) -> Result<String> {
        if self.targets.is_empty() {
            return Ok(String::new());
        }
        let targets: Vec<&Arc<View>> = self.targets.iter().collect();
        match &self.work {
            Made::Kernel(kernel) => super::gpu::Operands::new(&targets, &kernel.0, &kernel.1).text(arch),
            Made::Steps(steps) => steps.text(arch),
        }
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Prepared({} over {})", self.text, self.shape)
    }
}
