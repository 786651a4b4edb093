//! Binary searches.

use crate::__algorithms::*;
use crate::algorithms::kernels::algorithm;
use crate::algorithms::run::{Run, check_output, grid};
use crate::algorithms::tuning::Parameter;
use crate::input::Source;
use crate::kernels::device;
use crate::{BufferSliceMut, Dims, InputArg, Ordered, Result};

algorithm! {
    /// Inputs and queries that [`lower_bound`] has kernels for.
    lower_bound, "write `instantiate!(kernel_primitives::algorithms::lower_bound<{Self}, {Q}>);` in your kernel module"
}

/// Finds for each query the first place in `sorted` where it could be put without breaking the order: `positions[i]` is the number
/// of items that are less than `queries[i]`.
///
/// `sorted` ascends, and may have items more than once. Floats are compared as `<` does: a query that is NaN gives 0.
/// `positions` may be longer than the queries: the rest of it stays as it is.
///
/// Cost: one launch, a thread a query, each with as many steps as the number of items has binary digits and no branch between
/// them. Queries that ascend, too, find most of what they read in a cache. No temporary memory.
///
/// Ready for numbers. For others, write `instantiate!(kernel_primitives::algorithms::lower_bound<f32, Counting<f32>>);`.
///
/// Thrust: `lower_bound` of many values.
///
/// ```
/// use kernel_primitives::algorithms::{lower_bound, upper_bound};
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let sorted = stream.buffer_from(&[10, 20, 20, 30])?;
/// let queries = stream.buffer_from(&[20, 35])?;
/// let mut positions = stream.buffer_zeroed::<u64>(2)?;
/// lower_bound(&stream, &sorted, &queries, &mut positions)?;
/// assert_eq!(positions.to_vec()?, [1, 4]);
/// upper_bound(&stream, &sorted, &queries, &mut positions)?;
/// assert_eq!(positions.to_vec()?, [3, 4]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`](crate::Error::LengthMismatch) if `positions` is shorter than the queries, and the errors of a launch.
pub fn lower_bound<'a, 'o, I, J, S, Q, Tag>(
    run: impl Into<Run<'a>>,
    sorted: I,
    queries: J,
    positions: impl Into<BufferSliceMut<'o, u64>>,
) -> Result<()>
where
    I: InputArg<S>,
    J: InputArg<Q>,
    S: Source<Item: Ordered>,
    Q: Source<Item = S::Item>,
    S::Short: LowerBound<Q::Short, Tag>,
{
    let (tiles,) = <S::Short as LowerBound<Q::Short, Tag>>::kernels();
    let (run, mut positions) = (run.into(), positions.into());
    run.items("lower_bound", &sorted)?;
    let len = run.items("lower_bound", &queries)?;
    check_output("lower_bound", "positions", positions.len(), len)?;
    let dims = dims(&run, len, size_of::<S::Item>())?;
    device::search_tiles::launch_entry(tiles, run.stream, dims, sorted, queries, &mut positions)
}

algorithm! {
    /// Inputs and queries that [`upper_bound`] has kernels for.
    upper_bound, "write `instantiate!(kernel_primitives::algorithms::upper_bound<{Self}, {Q}>);` in your kernel module"
}

/// Finds for each query the last place in `sorted` where it could be put without breaking the order: `positions[i]` is the number
/// of items that are not greater than `queries[i]`.
///
/// As [`lower_bound`], except that a query that is NaN gives the number of items. Thrust: `upper_bound` of many values.
///
/// Ready for the same. For others, write `instantiate!(kernel_primitives::algorithms::upper_bound<f32, Counting<f32>>);`.
///
/// # Errors
/// Returns the errors of [`lower_bound`].
pub fn upper_bound<'a, 'o, I, J, S, Q, Tag>(
    run: impl Into<Run<'a>>,
    sorted: I,
    queries: J,
    positions: impl Into<BufferSliceMut<'o, u64>>,
) -> Result<()>
where
    I: InputArg<S>,
    J: InputArg<Q>,
    S: Source<Item: Ordered>,
    Q: Source<Item = S::Item>,
    S::Short: UpperBound<Q::Short, Tag>,
{
    let (tiles,) = <S::Short as UpperBound<Q::Short, Tag>>::kernels();
    let (run, mut positions) = (run.into(), positions.into());
    run.items("upper_bound", &sorted)?;
    let len = run.items("upper_bound", &queries)?;
    check_output("upper_bound", "positions", positions.len(), len)?;
    let dims = dims(&run, len, size_of::<S::Item>())?;
    device::search_tiles::launch_entry(tiles, run.stream, dims, sorted, queries, &mut positions)
}

/// A thread a query.
fn dims(run: &Run<'_>, queries: usize, bytes: usize) -> Result<Dims> {
    let threads = run.tuning(Parameter::SearchThreads, bytes)?;
    Ok(grid(queries.div_ceil(threads), threads))
}
