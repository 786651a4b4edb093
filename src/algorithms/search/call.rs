//! Binary searches.
//!
//! One launch, with one thread for each query. [`warp_bound`](super::kernel::warp_bound) is the search of a whole warp, which other
//! kernels use.

use crate::__algorithms::*;
use crate::__private::Entry;
use crate::algorithms::kernels::algorithm;
use crate::algorithms::run::{Run, check_output, grid};
use crate::algorithms::tuning::Parameter;
use crate::input::Source;
use crate::kernels::device;
use crate::{BufferSliceMut, InputArg, Ordered, Result};

algorithm! {
    /// Inputs and queries that [`lower_bound`] has kernels for.
    lower_bound
}

/// Finds, for each query, the first place in `sorted` where it could be inserted without breaking the order: `positions[i]` is the number
/// of items that are less than `queries[i]`.
///
/// `sorted` must ascend. It may contain equal items. NaN may only be after all numbers, which is where
/// [`sort_keys`](fn@crate::algorithms::sort_keys) puts it. Floats are compared with `<`, so a query that is NaN gives 0. `positions` may be
/// longer than the queries: the rest of it stays as it is.
///
/// Cost: one launch, with one thread for each query. A thread takes as many steps as the number of items has binary digits, the first five
/// of them among items that its warp has read. If the queries ascend too, they find most of what they read in a cache. No temporary memory.
///
/// Ready for numbers. For others, write `instantiate!(kernel_primitives::algorithms::lower_bound<f32, Counting<f32>>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::search` | yes: `net::properties::search` | of the queries: `net::properties::search` |
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
    let (kernel,) = <S::Short as LowerBound<Q::Short, Tag>>::kernels();
    search("lower_bound", kernel, run.into(), sorted, queries, positions.into())
}

algorithm! {
    /// Inputs and queries that [`upper_bound`] has kernels for.
    upper_bound
}

/// Finds, for each query, the last place in `sorted` where it could be inserted without breaking the order: `positions[i]` is the number of
/// items that are not greater than `queries[i]`.
///
/// NaN at the end of `sorted` is greater than every number. A query that is NaN gives the number of items. Otherwise this works as
/// [`lower_bound`].
///
/// Ready for the same types. For others, write `instantiate!(kernel_primitives::algorithms::upper_bound<f32, Counting<f32>>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::search` | yes: `net::properties::search` | of the queries: `net::properties::search` |
///
/// Thrust: `upper_bound` of many values.
///
/// ```
/// use kernel_primitives::algorithms::upper_bound;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let sorted = stream.buffer_from(&[1.0f32, 2.0, 2.0, 4.0])?;
/// let queries = stream.buffer_from(&[2.0f32, 0.5, f32::NAN])?;
/// let mut positions = stream.buffer_zeroed::<u64>(3)?;
/// upper_bound(&stream, &sorted, &queries, &mut positions)?;
/// assert_eq!(positions.to_vec()?, [3, 0, 4]);
/// # Ok(())
/// # }
/// ```
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
    let (kernel,) = <S::Short as UpperBound<Q::Short, Tag>>::kernels();
    search("upper_bound", kernel, run.into(), sorted, queries, positions.into())
}

/// The search of the call `algorithm`, with one thread for each query.
fn search<I, J, S, Q, const UPPER: bool>(
    algorithm: &str,
    kernel: Entry<search_tiles<S, Q, UPPER>>,
    run: Run<'_>,
    sorted: I,
    queries: J,
    mut positions: BufferSliceMut<'_, u64>,
) -> Result<()>
where
    I: InputArg<S>,
    J: InputArg<Q>,
    S: Source<Item: Ordered>,
    Q: Source<Item = S::Item>,
{
    run.items(algorithm, &sorted)?;
    let len = run.items(algorithm, &queries)?;
    check_output(algorithm, "positions", positions.len(), len)?;
    let threads = run.tuning(Parameter::SearchThreads, size_of::<S::Item>())?;
    let dims = grid(len.div_ceil(threads), threads);
    device::search_tiles::launch_entry(kernel, run.stream, dims, sorted, queries, &mut positions)
}
