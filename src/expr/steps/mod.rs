//! Steps: a stencil that is applied many times, with few passes over memory.
//!
//! [`stepped`] finds the tensor that is stepped and checks the footprint; [`passes`] makes the passes, each of one step or of several;
//! [`tile`] says how a kernel of several steps lies over the tensor, and `ptx/steps` writes it.

pub(crate) mod passes;
pub(crate) mod stepped;
#[cfg(test)]
mod tests;
pub(crate) mod tile;

use super::dtype::Scalar;
use super::graph::{Expr, Kind, arguments};

impl<T: Scalar> Expr<T> {
    /// This stencil, applied `count` times: an assignment of its own.
    ///
    /// The expression is one step. The tensor that it reads beside each place is stepped: each step reads the result of the step before
    /// in its place. All results are rounded to the element type, so that they are bit for bit those of `count` assignments between two
    /// tensors. No steps are a copy, and one step is the assignment of the expression.
    ///
    /// Other tensors may be read in their own places, and stay as they are. They have the shape of the stepped tensor, or broadcast to it;
    /// beside an interior stencil they have the shape of the interior.
    ///
    /// The result has the shape of the stepped tensor, also for [`Boundary::Interior`](super::Boundary::Interior): places that have
    /// neighbours outside keep their elements.
    ///
    /// On a GPU a kernel computes several steps with one read and one write of memory, if the neighbours are along one or two axes and the
    /// function is arithmetic, without divisions of integers and without elementary functions. Each warp has a strip of columns: it loads
    /// row after row, and keeps the rows that the next steps need in registers. The host chooses how many steps a kernel takes, by what
    /// its halo costs; more steps are several kernels. For other stencils, and on the CPU, each step is a pass of its own. Passes take
    /// turns between the target and memory of their own, as large as the target. While they run, the target holds the results of earlier
    /// steps.
    ///
    /// A [`SplitTensor`](super::SplitTensor) is stepped into one that is split in the same way. Each step is a pass of its own, before which
    /// devices get the rows of others that a step reads; the host does not wait between steps, unless the step
    /// [gathers](super::gather). All passes are checked and prepared before the first one. Passes take turns between the target and memory
    /// as large as it is, with room around the shards; or between two of these, if the target was made without
    /// [room](super::SplitTensor::uninit_with_halo) for the rows around. A stepped tensor without such room is copied once. Tensors beside an
    /// interior stencil are split as others of their shape: they are copied once to where the places are.
    ///
    /// ```
    /// use kernel_primitives::Device;
    /// use kernel_primitives::expr::{Boundary, Tensor, stencil};
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let stream = Device::auto()?.stream()?;
    /// let u = Tensor::from_slice(&stream, 7, &[0.0f32, 0.0, 0.0, 64.0, 0.0, 0.0, 0.0])?;
    /// let later = Tensor::uninit(&stream, 7)?;
    /// // The heat equation: u + c * (the sum of both neighbours - 2 * u), three times.
    /// let heat = &u + 0.25 * stencil(&u, Boundary::Clamp, |n| n.at(-1) + n.at(1) - 2.0 * n.at(0));
    /// later.assign(heat.steps(3))?;
    /// assert_eq!(later.to_vec()?, [1.0, 6.0, 15.0, 20.0, 15.0, 6.0, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Over several devices:
    ///
    /// ```
    /// use kernel_primitives::expr::{Boundary, SplitTensor, stencil};
    /// use kernel_primitives::{Devices, Split};
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let split = Split::even(&Devices::emulated(3)?)?;
    /// let u = SplitTensor::from_slice(&split, 7, &[0.0f32, 0.0, 0.0, 64.0, 0.0, 0.0, 0.0])?;
    /// let later = SplitTensor::uninit_with_halo(&split, 7, 1)?;
    /// let heat = &u + 0.25 * stencil(&u, Boundary::Clamp, |n| n.at(-1) + n.at(1) - 2.0 * n.at(0));
    /// later.assign(heat.steps(3))?;
    /// assert_eq!(later.to_vec()?, [1.0, 6.0, 15.0, 20.0, 15.0, 6.0, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns none itself. The call that assigns it returns [`Error::Expression`](primitives_host::Error::Expression):
    ///
    /// - `BadStencil` if the expression reads several tensors beside each place, or reads the stepped one other than by the stencil; if
    ///   it is not a stencil, or is one of an interior stencil, or of interior stencils with several footprints; if a step's result
    ///   has another type than the stepped tensor; if steps are inside an expression or beside other assignments; if there are more
    ///   than 2^24 steps.
    /// - `BadShape` if the target has another shape than the stepped tensor.
    /// - `Overlap` if the target has elements in common with the stepped tensor.
    /// - `BadSplit` if the target is split and the stepped tensor is not, or the other way round; if both, or other tensors of the
    ///   step, are split in different ways.
    ///
    /// # Source
    ///
    /// Temporal tiles in registers: AN5D (Matsumura and others, 2020), EBISU (Zhang and others, 2023).
    pub fn steps(self, count: usize) -> Self {
        Self::new(Kind::Steps(count), arguments([self.node]))
    }
}
