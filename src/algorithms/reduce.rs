//! Reductions.

use super::run::{Run, check_output};
use super::tuning::Parameter;
use crate::__private::{Again, Instantiated};
use crate::functor::Reduction;
use crate::input::Source;
use crate::kernels::device;
use crate::{BufferSliceMut, Dims, Element, InputArg, KernelParam, Result};

/// Threads of a block.
const THREADS: usize = device::REDUCE_THREADS;

/// Reduces all items to one: `out[0]` is the reduction by `op`, and what that says of none for an empty input.
///
/// `op` is any [`Reduction`] whose combination is commutative: sums, products, means, norms, extremes
/// ([`MinOf`](crate::functor::MinOf)), their places ([`ArgMin`](crate::functor::ArgMin),
/// [`ArgMax`](crate::functor::ArgMax)), or the user's own. Items are anything that [`input`](crate::input) makes: a
/// reduction of `map(zip(&x, &y), of_pair(Mul))` by [`Sum`](crate::functor::Sum) is a dot product.
///
/// **Determinism.** The order of combination depends on the number of items, and on [tuning](super::Tuning) values of
/// which the table has the same for all devices: the same items give the same bits on every run and every device, the
/// emulator included.
///
/// Cost: one read of the input, and for more than some 16 KiB a second small launch. Temporary memory: one accumulator for each
/// of up to 1024 blocks, or as many as `reduce.blocks` says.
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
/// `out` is empty, and those of a launch.
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
    device::reduce_tiles<S, R>: Instantiated<Tag>,
{
    type Kernel<S, R> = device::reduce_tiles<S, R>;
    let (run, mut out) = (run.into(), out.into());
    check_output("reduce", out.len(), 1)?;
    let stream = run.stream;
    let tiles = x.items().div_ceil(THREADS * S::VECTOR * device::REDUCE_VECTORS);
    let one = Dims::new(1, THREADS as u32);
    let bytes = size_of::<S::Item>();
    if tiles <= run.tuning(Parameter::ReduceAlone, bytes)? {
        let mut memory = run.memory(&[])?;
        let (parts, partials) = memory.parts().take::<R::Accum>(0)?.split_at(0)?;
        return Kernel::<S, R>::launch(stream, one, x, &parts, partials, &mut out, op);
    }
    let blocks = tiles.min(run.tuning(Parameter::ReduceBlocks, bytes)?);
    let mut memory = run.memory(&[blocks * size_of::<R::Accum>()])?;
    let partials = memory.parts().take::<R::Accum>(blocks)?;
    let (none, mut partials) = partials.split_at(0)?;
    let (grid, x) = (Dims::new(blocks as u32, THREADS as u32), Again(&x));
    Kernel::<S, R>::launch(stream, grid, Again(&x), &none, &mut partials, &mut out, op)?;
    Kernel::<S, R>::launch(stream, one, x, &partials, none, &mut out, op)
}
