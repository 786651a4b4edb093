//! Functions of each item.

use super::run::{Run, check_output};
use crate::__private::Instantiated;
use crate::functor::{Identity, UnaryFn};
use crate::input::{Constant, Source, constant};
use crate::kernels::device;
use crate::{BufferSliceMut, Dims, Element, InputArg, KernelParam, Result};

/// Applies a function to each item: `out[i] = f(x[i])`.
///
/// Items are anything that [`input`](crate::input) makes, so this is also the algorithm of several inputs
/// (`zip(&a, &b)` with [`of_pair`](crate::functor::of_pair)`(Add)`), a gather (`permutation(&x, &indices)` with
/// [`Identity`]), and what others call generate and tabulate (`counting(0, n)`). `out` may be longer than the input: the rest of it
/// stays as it is.
///
/// Cost: one launch; accesses of 16 bytes where the buffers are aligned for them. No temporary memory.
///
/// CUB: `DeviceTransform::Transform`. Thrust: `transform`, `tabulate`, `gather`, `copy`.
///
/// # Errors
/// `out` is shorter than the input, and those of a launch.
pub fn transform<'a, 'o, I, S, F, Tag>(
    run: impl Into<Run<'a>>,
    x: I,
    f: F,
    out: impl Into<BufferSliceMut<'o, F::Output>>,
) -> Result<()>
where
    I: InputArg<S>,
    S: Source,
    F: UnaryFn<S::Item, Output: Element> + KernelParam,
    device::transform_tiles<S, F>: Instantiated<Tag>,
{
    let (run, mut out) = (run.into(), out.into());
    let len = x.items();
    check_output("transform", out.len(), len)?;
    let blocks = len.div_ceil(device::TRANSFORM_THREADS * device::TRANSFORM_VECTORS * S::VECTOR);
    let dims = Dims::new(blocks.try_into().unwrap_or(u32::MAX), device::TRANSFORM_THREADS as u32);
    device::transform_tiles::<S, F>::launch(run.stream, dims, x, &mut out, f)
}

/// Writes one value to all places.
///
/// ```
/// use kernel_primitives::algorithms::fill;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let mut out = stream.buffer_uninit::<f32>(1000)?;
/// fill(&stream, 2.5, &mut out)?;
/// assert_eq!(out.to_vec()?, [2.5; 1000]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of a launch.
pub fn fill<'a, 'o, T, Tag>(run: impl Into<Run<'a>>, value: T, out: impl Into<BufferSliceMut<'o, T>>) -> Result<()>
where
    T: Element + KernelParam,
    device::transform_tiles<Constant<T>, Identity>: Instantiated<Tag>,
{
    let out = out.into();
    transform::<_, Constant<T>, Identity, Tag>(run, constant(value, out.len()), Identity, out)
}
