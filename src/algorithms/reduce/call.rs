//! Reductions.

use crate::__algorithms::*;
use crate::algorithms::chained::chained;
use crate::algorithms::kernels::algorithm;
use crate::algorithms::run::{Run, check_output};
use crate::algorithms::tuning::Parameter;
use crate::functor::Reduction;
use crate::input::Source;
use crate::kernels::device;
use crate::{BufferSliceMut, Element, InputArg, KernelParam, Result};

algorithm! {
    /// Inputs and reductions that [`reduce`] has kernels for.
    reduce, "write `instantiate!(kernel_primitives::algorithms::reduce<{Self}, {R}>);` in your kernel module"
}

/// Reduces all items to one: `out[0]` is the reduction by `op`; for an empty input, its result of no items.
///
/// `op` is any [`Reduction`] whose combination is commutative: sums, products, means, norms, extremes
/// ([`MinOf`](crate::functor::MinOf)), their places ([`ArgMin`](crate::functor::ArgMin),
/// [`ArgMax`](crate::functor::ArgMax)), or the user's own. A commutative [`Reducer`](crate::functor::Reducer), as scans take it, is
/// [`ReduceBy`](crate::functor::ReduceBy)`(op)`. Items are anything that [`input`](crate::input) makes: a
/// reduction of `map(zip(&x, &y), of_pair(Mul))` by [`Sum`](crate::functor::Sum) is a dot product.
///
/// **Determinism.** The order of combination depends on the number of items, and on [tuning](crate::algorithms::Tuning) values that the
/// table has the same for all devices. So the same items give the same bits on every run and every device, the emulator included.
///
/// Cost: one read of the input, by one kernel whose blocks meet in a chain ([`grid`](crate::grid)). The chain is cleared before; a
/// [`Workspace`](crate::algorithms::Workspace) saves that. Temporary memory: about twice the accumulators of up to 1056 blocks, or as many
/// as `reduce.blocks` says; none for up to 32 KiB.
///
/// Ready for numbers with `Sum`, `Prod`, `Mean`, `MinOf`, `MaxOf`, `ArgMin` and `ArgMax`. For others:
/// `instantiate!(kernel_primitives::algorithms::reduce<f32, MyReduction>);`.
///
/// CUB: `DeviceReduce::Reduce`, `Sum`, `Min`, `ArgMin`, `TransformReduce`.
///
/// ```
/// use kernel_primitives::algorithms::reduce;
/// use kernel_primitives::functor::MaxOf;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[3, 1, 4, 1, 5])?;
/// let mut largest = stream.buffer_zeroed(1)?;
/// reduce(&stream, x.slice(..3)?, MaxOf, &mut largest)?;
/// assert_eq!(largest.to_vec()?, [4]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`](crate::Error::LengthMismatch) if `out` is empty, and the errors of a launch.
pub fn reduce<'a, 'o, I, S, R, Tag>(
    run: impl Into<Run<'a>>,
    x: I,
    op: R,
    out: impl Into<BufferSliceMut<'o, R::Output>>,
) -> Result<()>
where
    I: InputArg<S>,
    S: Source,
    R: Reduction<S::Item, Output: Element> + KernelParam,
    S::Short: Reduce<R, Tag>,
{
    let (tiles,) = <S::Short as Reduce<R, Tag>>::kernels();
    let (run, mut out) = (run.into(), out.into());
    check_output("reduce", "out", out.len(), 1)?;
    let bytes = size_of::<S::Item>();
    let rounds = run.items("reduce", &x)?.div_ceil(device::REDUCE_THREADS * S::VECTOR * device::REDUCE_VECTORS);
    let most = run.tuning(Parameter::ReduceBlocks, bytes)?;
    let blocks = if rounds <= run.tuning(Parameter::ReduceAlone, bytes)? { 1 } else { rounds.min(most) };
    chained::<R::Accum>(run, blocks, (1, device::REDUCE_THREADS), |stream, dims, chain, launch| {
        device::reduce_tiles::launch_entry(tiles, stream, dims, x, chain, launch, &mut out, op)
    })
}
