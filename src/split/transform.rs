//! Functions of each item over devices.

use crate::algorithms::Transform;
use crate::functor::UnaryFn;
use crate::{Element, KernelParam, Result, SplitBuffer, algorithms};

/// Applies a function to each item: `out[i] = f(x[i])`. Each item stays on its device.
///
/// It takes the items and functions of [`algorithms::transform`]. For several inputs, use expressions of
/// [`SplitTensor`](crate::expr::SplitTensor)s.
///
/// Cost: that of [`algorithms::transform`] on each device, at the same time. The host does not wait.
///
/// ```
/// use kernel_primitives::functor::Identity;
/// use kernel_primitives::{Devices, Split, SplitBuffer, split};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let devices = Split::even(&Devices::emulated(2)?)?;
/// let x = SplitBuffer::from_slice(&devices, &[3.0f32, 1.0, 4.0])?;
/// let mut copy = SplitBuffer::zeroed(&devices, 3)?;
/// split::transform(&x, Identity, &mut copy)?;
/// assert_eq!(copy.to_vec()?, [3.0, 1.0, 4.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::Split`](crate::Error::Split) if `x` and `out` do not have the same items on the same devices, and the errors of
/// [`algorithms::transform`].
pub fn transform<T, F, U, Tag>(x: &SplitBuffer<T>, f: F, out: &mut SplitBuffer<U>) -> Result<()>
where
    T: Element + Transform<F, U, Tag>,
    F: UnaryFn<T, Output = U> + KernelParam,
    U: Element,
{
    super::check_result("`split::transform`", x, out)?;
    let streams = x.split().streams().iter().enumerate();
    for (device, stream) in streams.filter(|(device, _)| !x.range(*device).is_empty()) {
        algorithms::transform(stream, x.part(device), f, out.part_mut(device))?;
    }
    Ok(())
}
