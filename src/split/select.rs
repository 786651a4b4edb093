//! Selections over devices.

use crate::algorithms::SelectIf;
use crate::functor::UnaryFn;
use crate::{Buffer, Element, KernelParam, Result, SplitBuffer, algorithms};

/// Selects the items for which `predicate` is true, in the order of the input. A selected item stays on its device, so the split of the
/// result depends on the items; [`SplitBuffer::copy_from_split`] copies the result to another split.
///
/// It takes the items and predicates of [`algorithms::select_if`]. The buffers of the result have room for all items of their device.
///
/// Cost: that of [`algorithms::select_if`] on each device, at the same time. The host waits for the counts.
///
/// ```
/// use kernel_primitives::functor::{GreaterThan, bind_second};
/// use kernel_primitives::{Devices, Split, SplitBuffer, split};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let devices = Split::even(&Devices::emulated(2)?)?;
/// let x = SplitBuffer::from_slice(&devices, &[3, 1, 4, 1, 5, 9, 2, 6])?;
/// let kept = split::select_if(&x, bind_second(GreaterThan, 3))?;
/// assert_eq!((kept.len(), kept.range(0), kept.range(1)), (4, 0..1, 1..4));
/// let mut even = SplitBuffer::zeroed(&devices, kept.len())?;
/// even.copy_from_split(&kept)?;
/// assert_eq!((even.part(0).to_vec()?, even.part(1).to_vec()?), (vec![4, 5], vec![9, 6]));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`algorithms::select_if`].
pub fn select_if<T, P, Tag>(x: &SplitBuffer<T>, predicate: P) -> Result<SplitBuffer<T>>
where
    T: Element + SelectIf<P, Tag>,
    P: UnaryFn<T, Output = bool> + KernelParam,
{
    let mut parts: Vec<(Buffer<T>, Buffer<u64>)> = Vec::new();
    for (device, stream) in x.split().streams().iter().enumerate() {
        let part = x.part(device);
        let (mut kept, mut count) = (stream.buffer_uninit(part.len())?, stream.buffer_zeroed(1)?);
        if !part.is_empty() {
            algorithms::select_if(stream, part, predicate, &mut kept, &mut count)?;
        }
        parts.push((kept, count));
    }
    let mut filled = Vec::new();
    for (kept, count) in parts {
        let len = count.to_vec()?[0] as usize;
        filled.push((kept, len));
    }
    SplitBuffer::of_parts(x.split(), filled)
}
