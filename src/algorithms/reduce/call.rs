//! Reductions.
//!
//! One launch: each block reduces its share, and the last block to finish reduces the results of all blocks. A single block reduces few
//! items.

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
    reduce
}

/// Reduces all items to one result: `out[0]` is the reduction by `op`. For an empty input, it is the result that `op` gives for no items.
///
/// `op` is any [`Reduction`] whose combination is commutative: sums, products, means, norms, extremes ([`MinOf`](crate::functor::MinOf)),
/// their places ([`ArgMin`](crate::functor::ArgMin), [`ArgMax`](crate::functor::ArgMax)), or a reduction of your own.
/// [`ReduceBy`](crate::functor::ReduceBy)`(op)` makes a reduction of a commutative [`Reducer`](crate::functor::Reducer), which scans take.
/// The input is a buffer, or what [`input`](crate::input) computes: a reduction of `map(zip(&x, &y), of_pair(Mul))` by
/// [`Sum`](crate::functor::Sum) is a dot product.
///
/// **Determinism.** The order of combination depends on the number of items, and on [tuning](crate::algorithms::Tuning) values that are the
/// same for all devices in the library's table. So the same items give the same bits on every run and every device, including the emulator.
///
/// Cost: one kernel reads the input once; its blocks meet in a chain ([`grid`](crate::grid)). The chain is cleared first, unless a
/// [`Workspace`](crate::algorithms::Workspace) has room for it. Temporary memory: about two accumulators for each block. There are up to
/// 792 blocks, or as many as the tuning value `reduce.blocks` says. An input of up to 32 KiB needs no temporary memory, if an item has 1,
/// 2, 4, 8 or 16 bytes. An input of other items needs none for up to 2048 items.
///
/// Ready for numbers with `Sum`, `Prod`, `Mean`, `MinOf`, `MaxOf`, `ArgMin` and `ArgMax`. For others, write
/// `instantiate!(kernel_primitives::algorithms::reduce<f32, MyReduction>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::bits` | yes: `net::bits`, `algorithms::reduce::sums_of_floats_have_the_same_bits_on_every_device` | fixed by the number of items; the operator must be commutative |
///
/// CUB: `DeviceReduce::Reduce`, `Sum`, `Min`, `Max`, `ArgMin`, `ArgMax`, `TransformReduce`. Thrust: `reduce`, `transform_reduce`,
/// `min_element`, `max_element`. Differences: any commutative [`Reduction`]; the same bits on every run and device.
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
/// Returns [`Error::LengthMismatch`](crate::Error::LengthMismatch) if `out` is empty, and the errors of a launch and of an allocation.
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
