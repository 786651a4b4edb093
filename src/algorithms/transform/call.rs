//! Functions of each item.
//!
//! Each algorithm is one launch. [`transform`](crate::algorithms::transform()), `generate`, `fill` and `gather` are one kernel with
//! different inputs; `scatter` has its own kernel.

use crate::__algorithms::*;
use crate::__private::Entry;
use crate::algorithms::kernels::algorithm;
use crate::algorithms::run::{Run, check_output};
use crate::algorithms::tuning::Parameter;
use crate::functor::{Identity, UnaryFn};
use crate::input::{Constant, Counting, Permutation, Source, constant, counting, permutation};
use crate::kernels::device;
use crate::output::{Sink, SpanMut};
use crate::{BufferSliceMut, ConvertTo, Element, Error, InputArg, Integer, KernelParam, OutputArg, Result};

algorithm! {
    /// Inputs, functions and outputs that [`transform`] has kernels for.
    transform
}

/// Applies a function to each item: `out[i] = f(x[i])`.
///
/// The input is a buffer, or what [`input`](crate::input) computes. So this algorithm also serves several inputs: `zip(&a, &b)` with
/// [`of_pair`](crate::functor::of_pair)`(Add)`. The output is a buffer, or what [`output`](crate::output) makes of buffers. So it also
/// serves several outputs: a function that returns a pair writes to `zip(&mut a, &mut b)`. [`gather`] and [`generate`] are names for two
/// more uses. `out` may be longer than the input: the rest of it stays as it is. A permutation of places must name each place at most once;
/// for two items that go to one place, see [`scatter`].
///
/// Cost: one launch. Accesses have 16 bytes if the buffers are aligned for that. No temporary memory.
///
/// Ready for numbers with `Identity`, and for pairs of numbers with `of_pair` of `Add`, `Sub` and `Mul`. For others, write
/// `instantiate!(kernel_primitives::algorithms::transform<f32, MyFn, f32>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::transform` | yes, but for elementary functions, whose last bits differ: `net::properties::transform` | of the input: `net::properties::transform` |
///
/// CUB: `DeviceTransform::Transform`, `DeviceFor::ForEach`. Thrust: `transform`, `copy`. Differences: several inputs are zipped, and
/// several outputs; for a kernel of your own, [`kernels::map_unary`](fn@crate::kernels::map_unary),
/// [`map_binary`](fn@crate::kernels::map_binary), [`map_ternary`](fn@crate::kernels::map_ternary) and
/// [`map_any`](fn@crate::kernels::map_any).
///
/// ```
/// use kernel_primitives::algorithms::transform;
/// use kernel_primitives::functor::{Add, of_pair};
/// use kernel_primitives::input::zip;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[1.0f32, 2.0, 3.0])?;
/// let y = stream.buffer_from(&[10.0f32, 20.0, 30.0])?;
/// let mut out = stream.buffer_uninit::<f32>(3)?;
/// transform(&stream, zip(&x, &y), of_pair(Add), &mut out)?;
/// assert_eq!(out.to_vec()?, [11.0, 22.0, 33.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`] if `out` is shorter than the input, and the errors of a launch.
pub fn transform<'a, I, S, F, A, O, Tag>(run: impl Into<Run<'a>>, x: I, f: F, out: A) -> Result<()>
where
    I: InputArg<S>,
    S: Source,
    F: UnaryFn<S::Item> + KernelParam,
    A: OutputArg<O>,
    O: Sink<Item = F::Output>,
    S::Short: Transform<F, O::Short, Tag>,
{
    let (tiles,) = <S::Short as Transform<F, O::Short, Tag>>::kernels();
    transform_by("transform", tiles, run.into(), x, f, out)
}

/// Runs [`transform`] with a kernel.
fn transform_by<I, S, F, A, O>(
    algorithm: &str,
    tiles: Entry<transform_tiles<S, F, O>>,
    run: Run<'_>,
    x: I,
    f: F,
    out: A,
) -> Result<()>
where
    I: InputArg<S>,
    S: Source,
    F: UnaryFn<S::Item> + KernelParam,
    A: OutputArg<O>,
    O: Sink<Item = F::Output>,
{
    let len = run.items(algorithm, &x)?;
    check_output(algorithm, "out", out.places(), len)?;
    let items = const { device::warp_items(device::transform_vectors::<S>(), S::VECTOR) };
    let dims = run.dims_of_warps(len, items, Parameter::TransformThreads, size_of::<F::Output>())?;
    device::transform_tiles::launch_entry(tiles, run.stream, dims, x, out, f)
}

algorithm! {
    /// Functions and outputs that [`generate`] has kernels for.
    generate
}

/// Writes to each place a function of its index: `out[i] = f(i)`.
///
/// ```
/// use kernel_primitives::algorithms::generate;
/// use kernel_primitives::functor::Identity;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let mut indices = stream.buffer_uninit::<u64>(5)?;
/// generate(&stream, Identity, &mut indices)?;
/// assert_eq!(indices.to_vec()?, [0, 1, 2, 3, 4]);
/// # Ok(())
/// # }
/// ```
///
/// Ready for `u64` with `Identity`. For others, write `instantiate!(kernel_primitives::algorithms::generate<MyFn, f32>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::transform` | as `transform` | of the indices: `net::properties::transform` |
///
/// CUB: `DeviceTransform::Generate`, `DeviceFor::Bulk`. Thrust: `tabulate`, `sequence`, and `generate` with a state that is a function of
/// the index, such as the state of [`Philox`](crate::thread::Philox).
///
/// # Errors
/// Returns the errors of a launch.
pub fn generate<'a, F, A, O, Tag>(run: impl Into<Run<'a>>, f: F, out: A) -> Result<()>
where
    F: UnaryFn<u64> + KernelParam,
    A: OutputArg<O>,
    O: Sink<Item = F::Output>,
    F: Generate<O::Short, Tag>,
{
    let (tiles,) = <F as Generate<O::Short, Tag>>::kernels();
    transform_by("generate", tiles, run.into(), counting(0, out.places()), f, out)
}

algorithm! {
    /// Inputs, indices and outputs that [`gather`] has kernels for.
    gather
}

/// Collects items by their indices: `out[i] = x[at[i]]`.
///
/// Indices are integers of any type. If an index is out of bounds, the launch faults. This is [`transform`] of [`permutation`]`(x, at)`,
/// which other algorithms can take as an input without a copy.
///
/// ```
/// use kernel_primitives::algorithms::gather;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[10.0f32, 11.0, 12.0])?;
/// let at = stream.buffer_from(&[2u32, 0, 2, 1])?;
/// let mut out = stream.buffer_uninit::<f32>(4)?;
/// gather(&stream, &x, &at, &mut out)?;
/// assert_eq!(out.to_vec()?, [12.0, 10.0, 12.0, 11.0]);
/// # Ok(())
/// # }
/// ```
///
/// Ready for numbers with indices of `u32`. For others, write `instantiate!(kernel_primitives::algorithms::gather<MyItem, u32, MyItem>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::transform` | yes: `net::properties::transform` | of the indices: `net::properties::transform` |
///
/// Thrust: `gather`.
///
/// # Errors
/// Returns the errors of [`transform`].
pub fn gather<'a, I, J, S, P, A, O, Tag>(run: impl Into<Run<'a>>, x: I, at: J, out: A) -> Result<()>
where
    I: InputArg<S>,
    J: InputArg<P>,
    S: Source<Item: Element>,
    P: Source<Item: Integer + ConvertTo<usize>>,
    A: OutputArg<O>,
    O: Sink<Item = S::Item>,
    S::Short: Gather<P::Short, O::Short, Tag>,
{
    let (tiles,) = <S::Short as Gather<P::Short, O::Short, Tag>>::kernels();
    transform_by("gather", tiles, run.into(), permutation(x, at), Identity, out)
}

algorithm! {
    /// Inputs and indices that [`scatter`] has kernels for.
    scatter
}

/// Writes items to the places that indices name: `out[at[i]] = x[i]`.
///
/// Indices are integers of any type. If an index is out of bounds, the launch faults. The other places of `out` stay as they are.
///
/// Each index should come at most once. If two items go to one place, the place holds one of them, and it is unspecified which; for arrays
/// and structs, it may hold parts of both. A checked emulator reports the race.
///
/// Cost: one launch. Reads are contiguous; writes go where the indices say.
///
/// ```
/// use kernel_primitives::algorithms::scatter;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[10.0f32, 11.0, 12.0])?;
/// let at = stream.buffer_from(&[3u32, 0, 2])?;
/// let mut out = stream.buffer_zeroed::<f32>(4)?;
/// scatter(&stream, &x, &at, &mut out)?;
/// assert_eq!(out.to_vec()?, [11.0, 0.0, 12.0, 10.0]);
/// # Ok(())
/// # }
/// ```
///
/// Ready for numbers with indices of `u32`. For others, write `instantiate!(kernel_primitives::algorithms::scatter<MyItem, u32>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes, for places that differ: `net::properties::transform` | yes, for places that differ: `net::properties::transform` | a place that comes twice holds one of its items, unspecified which |
///
/// Thrust: `scatter`.
///
/// # Errors
/// Returns [`Error::LengthMismatch`] if `x` and `at` have different lengths, and the errors of a launch.
pub fn scatter<'a, 'o, I, J, S, A, Tag>(
    run: impl Into<Run<'a>>,
    x: I,
    at: J,
    out: impl Into<BufferSliceMut<'o, S::Item>>,
) -> Result<()>
where
    I: InputArg<S>,
    J: InputArg<A>,
    S: Source<Item: Element>,
    A: Source<Item: Integer + ConvertTo<usize>>,
    S::Short: Scatter<A::Short, Tag>,
{
    let (tiles,) = <S::Short as Scatter<A::Short, Tag>>::kernels();
    let (run, mut out) = (run.into(), out.into());
    let len = run.items("scatter", &x)?;
    if at.items() != len {
        return Err(Error::LengthMismatch {
            kernel: "scatter".into(),
            first: "`x`".into(),
            first_len: len,
            second: "`at`".into(),
            second_len: at.items(),
        });
    }
    let items = const { device::warp_items(device::SCATTER_ITEMS, 1) };
    let dims = run.dims_of_warps(len, items, Parameter::ScatterThreads, size_of::<S::Item>())?;
    device::scatter_tiles::launch_entry(tiles, run.stream, dims, x, at, &mut out)
}

algorithm! {
    /// Values that [`fill`] has kernels for.
    fill
}

/// Writes one value to all places.
///
/// Ready for numbers. For others, write `instantiate!(kernel_primitives::algorithms::fill<MyItem>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::transform` | yes: `net::properties::transform` | one value |
///
/// CUB: `DeviceTransform::Fill`. Thrust: `fill`.
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
/// Returns the errors of a launch.
pub fn fill<'a, 'o, T, Tag>(run: impl Into<Run<'a>>, value: T, out: impl Into<BufferSliceMut<'o, T>>) -> Result<()>
where
    T: Element + KernelParam,
    T: Fill<Tag>,
{
    let (tiles,) = <T as Fill<Tag>>::kernels();
    let out = out.into();
    transform_by("fill", tiles, run.into(), constant(value, out.len()), Identity, out)
}
