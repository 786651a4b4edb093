//! Functions of each item.

use super::run::{Run, check_output};
use super::tuning::Parameter;
use crate::__private::Instantiated;
use crate::functor::{Identity, UnaryFn};
use crate::input::{Constant, Counting, Permutation, Source, constant, counting, permutation};
use crate::kernels::device;
use crate::output::{Sink, SpanMut};
use crate::{BufferSliceMut, ConvertTo, Element, Error, InputArg, Integer, KernelParam, OutputArg, Result};

/// Applies a function to each item: `out[i] = f(x[i])`.
///
/// Items are anything that [`input`](crate::input) makes, so this is also the algorithm of several inputs
/// (`zip(&a, &b)` with [`of_pair`](crate::functor::of_pair)`(Add)`), and places anything that [`output`](crate::output) makes, so it
/// is that of several outputs too: a function with a pair for a result goes to `zip(&mut a, &mut b)`. [`gather`] and [`generate`] are
/// names for two others. `out` may be longer than the input: the rest of it stays as it is. A permutation of places names each at most
/// once: two items for one place race, and the emulator says so.
///
/// For a function of one's own: `instantiate!` of [`transform_tiles`](struct@device::transform_tiles)`<S, F, O>`.
///
/// Cost: one launch; accesses of 16 bytes where the buffers are aligned for them. No temporary memory.
///
/// CUB: `DeviceTransform::Transform`. Thrust: `transform`, `copy`.
///
/// # Errors
/// `out` is shorter than the input, and those of a launch.
pub fn transform<'a, I, S, F, A, O, Tag>(run: impl Into<Run<'a>>, x: I, f: F, out: A) -> Result<()>
where
    I: InputArg<S>,
    S: Source,
    F: UnaryFn<S::Item> + KernelParam,
    A: OutputArg<O>,
    O: Sink<Item = F::Output>,
    device::transform_tiles<S, F, O>: Instantiated<Tag>,
{
    let (run, len) = (run.into(), x.items());
    check_output("transform", out.places(), len)?;
    let items = const { device::warp_items(device::transform_vectors::<S>(), S::VECTOR) };
    let dims = run.dims_of_warps(len, items, Parameter::TransformThreads, size_of::<F::Output>())?;
    device::transform_tiles::<S, F, O>::launch(run.stream, dims, x, out, f)
}

/// Writes a function of its index to each place: `out[i] = f(i)`.
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
/// Thrust: `tabulate`, `sequence`; `generate` with a state that is a function of the index, such as
/// [`Philox`](crate::thread::Philox)'s.
///
/// # Errors
/// Those of a launch.
pub fn generate<'a, F, A, O, Tag>(run: impl Into<Run<'a>>, f: F, out: A) -> Result<()>
where
    F: UnaryFn<u64> + KernelParam,
    A: OutputArg<O>,
    O: Sink<Item = F::Output>,
    device::transform_tiles<Counting<u64>, F, O>: Instantiated<Tag>,
{
    transform::<_, Counting<u64>, F, A, O, Tag>(run, counting(0, out.places()), f, out)
}

/// Collects items by their indices: `out[i] = x[at[i]]`.
///
/// Indices are integers of any type; one that `x` does not have is a fault of the launch. As [`transform`], of
/// [`permutation`]`(x, at)`, which other algorithms take as an input without copying anything.
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
/// Thrust: `gather`.
///
/// # Errors
/// As [`transform`].
pub fn gather<'a, I, J, S, P, A, O, Tag>(run: impl Into<Run<'a>>, x: I, at: J, out: A) -> Result<()>
where
    I: InputArg<S>,
    J: InputArg<P>,
    S: Source<Item: Element>,
    P: Source<Item: Integer + ConvertTo<usize>>,
    A: OutputArg<O>,
    O: Sink<Item = S::Item>,
    device::transform_tiles<Permutation<S, P>, Identity, O>: Instantiated<Tag>,
{
    transform::<_, Permutation<S, P>, Identity, A, O, Tag>(run, permutation(x, at), Identity, out)
}

/// Puts items at indices: `out[at[i]] = x[i]`.
///
/// Indices are integers of any type, each at most once: two items for one place race, and the emulator says so. One
/// that `out` does not have is a fault of the launch. The other places of `out` stay as they are.
///
/// Cost: one launch; reads are side by side, writes where they go.
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
/// Thrust: `scatter`.
///
/// # Errors
/// There are more or fewer indices than items, and those of a launch.
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
    device::scatter_tiles<S, A>: Instantiated<Tag>,
{
    let (run, mut out) = (run.into(), out.into());
    let len = x.items();
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
    device::scatter_tiles::<S, A>::launch(run.stream, dims, x, at, &mut out)
}

/// Writes one value to all places.
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
/// Those of a launch.
pub fn fill<'a, 'o, T, Tag>(run: impl Into<Run<'a>>, value: T, out: impl Into<BufferSliceMut<'o, T>>) -> Result<()>
where
    T: Element + KernelParam,
    device::transform_tiles<Constant<T>, Identity, SpanMut<T>>: Instantiated<Tag>,
{
    let out = out.into();
    transform::<_, Constant<T>, Identity, _, SpanMut<T>, Tag>(run, constant(value, out.len()), Identity, out)
}
