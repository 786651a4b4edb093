//! Functions of neighbours.
//!
//! One launch. A lane reads its own vectors, and, once more and from the cache, the item before each of them.

use crate::__algorithms::*;
use crate::algorithms::kernels::algorithm;
use crate::algorithms::run::{Run, check_output};
use crate::algorithms::tuning::Parameter;
use crate::functor::BinaryFn;
use crate::input::Source;
use crate::kernels::device;
use crate::{BufferSliceMut, Element, InputArg, KernelParam, Result};

algorithm! {
    /// Inputs and functions that [`adjacent_difference`] has kernels for.
    adjacent_difference
}

/// Applies a function to each item and its predecessor: `out[i] = f(x[i], x[i - 1])`, and `out[0] = x[0]`.
///
/// With [`Sub`](crate::functor::Sub), the results are differences. An [`inclusive_scan`](crate::algorithms::inclusive_scan) of them by
/// [`Add`](crate::functor::Add) gives the input again. `out` may be longer than the input: the rest of it stays as it is.
///
/// Cost: one launch, one read of the input and one write. Accesses have 16 bytes if the buffers are aligned for that. No temporary memory.
///
/// Ready for numbers with `Sub`. For others, write `instantiate!(kernel_primitives::algorithms::adjacent_difference<f32, MyFn>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::scan` | yes: `net::properties::scan` | of the input: `net::properties::scan` |
///
/// CUB: `DeviceAdjacentDifference::SubtractLeftCopy`. Thrust: `adjacent_difference`. Differences: to the left, out of place.
///
/// ```
/// use kernel_primitives::algorithms::adjacent_difference;
/// use kernel_primitives::functor::Sub;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[1, 4, 9, 16])?;
/// let mut out = stream.buffer_zeroed::<i32>(4)?;
/// adjacent_difference(&stream, &x, Sub, &mut out)?;
/// assert_eq!(out.to_vec()?, [1, 3, 5, 7]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`](crate::Error::LengthMismatch) if `out` is shorter than the input, and the errors of a launch.
pub fn adjacent_difference<'a, 'o, I, S, F, Tag>(
    run: impl Into<Run<'a>>,
    x: I,
    f: F,
    out: impl Into<BufferSliceMut<'o, S::Item>>,
) -> Result<()>
where
    I: InputArg<S>,
    S: Source<Item: Element>,
    F: BinaryFn<S::Item, Output = S::Item> + KernelParam,
    S::Short: AdjacentDifference<F, Tag>,
{
    let (tiles,) = <S::Short as AdjacentDifference<F, Tag>>::kernels();
    let (run, mut out) = (run.into(), out.into());
    let len = run.items("adjacent_difference", &x)?;
    check_output("adjacent_difference", "out", out.len(), len)?;
    let items = const { device::warp_items(device::DIFFERENCE_VECTORS, S::VECTOR) };
    let dims = run.dims_of_warps(len, items, Parameter::DifferenceThreads, size_of::<S::Item>())?;
    device::difference_tiles::launch_entry(tiles, run.stream, dims, x, &mut out, f)
}
