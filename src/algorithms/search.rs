//! Binary searches.

use super::run::{Run, check_output};
use super::tuning::Parameter;
use crate::__private::Instantiated;
use crate::input::Source;
use crate::kernels::device;
use crate::{BufferSliceMut, Dims, InputArg, Ordered, Result};

/// Finds for each query the first place in `sorted` where it could be put without breaking the order: `positions[i]` is the number
/// of items that are less than `queries[i]`.
///
/// `sorted` ascends, and may have items more than once. Floats are compared as `<` does: a query that is NaN gives 0.
/// `positions` may be longer than the queries: the rest of it stays as it is.
///
/// Cost: one launch, a thread a query, each with as many steps as the number of items has binary digits and no branch between
/// them. Queries that ascend, too, find most of what they read in a cache. No temporary memory.
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
/// `positions` is shorter than the queries, and those of a launch.
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
    device::search_tiles<S, Q, false>: Instantiated<Tag>,
{
    let (run, mut positions) = (run.into(), positions.into());
    check_output("lower_bound", positions.len(), queries.items())?;
    let dims = dims(&run, queries.items(), size_of::<S::Item>())?;
    device::search_tiles::<S, Q, false>::launch(run.stream, dims, sorted, queries, &mut positions)
}

/// Finds for each query the last place in `sorted` where it could be put without breaking the order: `positions[i]` is the number
/// of items that are not greater than `queries[i]`.
///
/// As [`lower_bound`], but that a query that is NaN gives the number of items. Thrust: `upper_bound` of many values.
///
/// # Errors
/// As [`lower_bound`].
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
    device::search_tiles<S, Q, true>: Instantiated<Tag>,
{
    let (run, mut positions) = (run.into(), positions.into());
    check_output("upper_bound", positions.len(), queries.items())?;
    let dims = dims(&run, queries.items(), size_of::<S::Item>())?;
    device::search_tiles::<S, Q, true>::launch(run.stream, dims, sorted, queries, &mut positions)
}

/// A thread a query.
fn dims(run: &Run<'_>, queries: usize, bytes: usize) -> Result<Dims> {
    let threads = run.tuning(Parameter::SearchThreads, bytes)?;
    Ok(Dims::new(queries.div_ceil(threads).try_into().unwrap_or(u32::MAX), threads as u32))
}
