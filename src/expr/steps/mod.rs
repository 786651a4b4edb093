//! Steps: a stencil that is applied many times, with few passes over memory.
//!
//! [`stepped`] finds the stepped tensor and checks the footprint. [`passes`] makes the passes, each of one step or of several steps.
//! [`tile`] places a kernel of several steps over the tensor, and `ptx/steps` writes the kernel.

pub(crate) mod passes;
pub(crate) mod stepped;
#[cfg(test)]
mod tests;
pub(crate) mod tile;

use super::dtype::Scalar;
use super::graph::{Expr, Kind, arguments};

impl<T: Scalar> Expr<T> {
    /// Applies this stencil `count` times. This is an assignment of its own.
    ///
    /// The expression is one step. The stepped tensor is the tensor that the expression reads beside each place. In its place, each step
    /// reads the result of the step before. All results are rounded to the element type. So they have the same bits as those of `count`
    /// assignments between two tensors. Zero steps are a copy, and one step is the assignment of the expression.
    ///
    /// A step may read other tensors in their own places. They keep their values. They have the shape of the stepped tensor, or broadcast
    /// to it. Beside an interior stencil, they have the shape of the interior.
    ///
    /// The result has the shape of the stepped tensor, also for [`Boundary::Interior`](super::Boundary::Interior). Places that have
    /// neighbours outside keep their elements.
    ///
    /// On a GPU, a kernel computes several steps with one read and one write of memory, if two conditions hold. The neighbours must be
    /// along one or two axes, and the function must be arithmetic, without divisions of integers and without elementary functions. Each
    /// warp has a strip of columns. It loads row after row, and keeps the rows that the next steps need in registers. The host chooses the
    /// number of steps of a kernel by the cost of the kernel's halo. More steps are several kernels. For other stencils, and on the CPU,
    /// each step is a pass of its own. Passes take turns between the target and temporary memory that is as large as the target. While they
    /// run, the target holds the results of earlier steps. If two threads assign steps to one tensor at a time, their passes may mix, and
    /// the tensor then has the result of neither. So let one call return before the next one begins.
    ///
    /// A [`SplitTensor`](super::SplitTensor) is stepped into a tensor that is split in the same way. Each step is a pass of its own. Before
    /// the pass, devices get the rows of other devices that the step reads. The host does not wait between steps, unless the step
    /// [gathers](super::gather). All passes are checked and prepared before the first one. Passes take turns between the target and memory
    /// as large as the target, with room around the shards. If the target was made without [room](super::SplitTensor::uninit_with_halo) for
    /// the rows around, they take turns between two such memories. A stepped tensor without such room is copied once. Tensors beside an
    /// interior stencil are split like other tensors of their shape. They are copied once to the devices that have the places.
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
    /// This returns no error itself. The call that assigns it returns [`Error::Expression`](primitives_host::Error::Expression):
    ///
    /// - `BadStencil` if the expression reads several tensors beside each place, or reads the stepped tensor other than by the stencil.
    ///   Also if the expression is not a stencil, if it is a stencil of an interior stencil, or if it has interior stencils with several
    ///   footprints. Also if a step's result has another type than the stepped tensor, if steps are inside an expression or beside other
    ///   assignments, or if there are more than 2^24 steps.
    /// - `BadShape` if the target has another shape than the stepped tensor.
    /// - `Overlap` if the target has elements in common with the stepped tensor.
    /// - `BadSplit` if one of the target and the stepped tensor is split and the other is not. Also if both are split in different ways, or
    ///   if other tensors of the step are.
    ///
    /// # Source
    ///
    /// The kernels are temporal tiles in registers, as in AN5D (Matsumura and others, 2020) and EBISU (Zhang and others, 2023).
    pub fn steps(self, count: usize) -> Self {
        Self::new(Kind::Steps(count), arguments([self.node]))
    }
}
