//! Products of split matrices and vectors.

use super::matrix::SplitCsr;
use crate::algorithms::{self, Csr, CsrIndex, Gather, Spmv};
use crate::element::Accumulate;
use crate::functor::{Axpby, Epilogue, PlusTimes, Reduction};
use crate::{BufferSlice, BufferSliceMut, Element, Error, KernelParam, Result, SplitBuffer, Stream};

/// Multiplies a sparse matrix by a vector: `y = A x`. Each device computes the items of `y` that it has.
///
/// It takes the values, items and indices of [`algorithms::spmv`](fn@algorithms::spmv). `x` must be split as the
/// [columns](SplitCsr::column_range) of the matrix, and `y` as its [rows](SplitCsr::range); buffers of the matrix's split are. All items of
/// `x` must be initialised. Work is enqueued on the streams of the matrix's split.
///
/// [`spmv_by`] takes other operators than plus and times, and can add to the elements of `y`. [`spmv_with`] adds another vector.
///
/// **Determinism.** The order of combination depends only on the matrix, on its split, and on the [methods](SplitCsr::set_method) of its
/// parts.
///
/// Cost: that of [`algorithms::spmv`](fn@algorithms::spmv) for the rows of each device, on all devices at the same time. Before that, each
/// device collects the items that other devices read, in one launch, and receives its [halo](SplitCsr::halo), by a copy from each device
/// that has a part of it. A device with a halo also copies its own part of `x`, so that all items are contiguous. The host does not wait.
///
/// Memory: the items that a device sends; if it has a halo, also its part of `x` and the halo. The matrix keeps the memory for the next
/// product with a vector of the same type. If several threads enqueue products at once, each product has its own memory, which the matrix
/// keeps too.
///
/// Ready for matrices and vectors of `f32` and `f64` with indices of `u32`. For others, write
/// `instantiate!(kernel_primitives::algorithms::spmv<MyValue, MyItem, u32, PlusTimes, Axpby<MyValue>>);`, and the same for
/// `gather<MyItem, u32, MyItem>`.
///
/// VexCL: `vex::sparse::distributed`.
///
/// ```
/// use kernel_primitives::split::{self, SplitCsr};
/// use kernel_primitives::{Devices, Split, SplitBuffer};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let devices = Split::even(&Devices::emulated(2)?)?;
/// let a = SplitCsr::new(&devices, (2, 3), &[0u32, 2, 3], &[0, 2, 1], &[1.0f64, 2.0, 3.0])?;
/// let x = SplitBuffer::from_slice(&devices, &[10.0f64, 20.0, 30.0])?;
/// let mut y = SplitBuffer::uninit(&devices, 2)?;
/// split::spmv(&a, &x, &mut y)?;
/// assert_eq!(y.to_vec()?, [70.0, 60.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::Split`], which names both splits, if `x` is not split as the columns of the matrix, or `y` is not split as its rows,
/// [`Error::Capture`] that names this call if the stream of a device that sends or receives items captures, and the errors of
/// [`algorithms::spmv`](fn@algorithms::spmv). After the errors that are named here, nothing is enqueued. After any other error, some devices may have written
/// their items of `y`; one of them is [`Error::Capture`] that names an allocation, if a device whose stream captures needs temporary
/// memory. On GPUs, [`Split::synchronize`](crate::Split::synchronize) of the matrix's split returns faults: see [`split`](crate::split).
pub fn spmv<V, I, T, S, G>(a: &SplitCsr<V, I>, x: &SplitBuffer<T>, y: &mut SplitBuffer<V::Accum>) -> Result<()>
where
    V: Accumulate + Spmv<T, I, PlusTimes, Axpby<V::Accum>, S>,
    I: CsrIndex,
    T: Accumulate<Accum = V::Accum> + Gather<u32, T, G>,
{
    product("`split::spmv`", a, x, y, |_, stream, part, x, y| algorithms::spmv(stream, part, x, y))
}

/// Multiplies a sparse matrix by a vector with any operators. `op` reduces the pairs `(value, x[column])` of row `r`, and `epilogue` of
/// this result and of the old `y[r]` becomes the new `y[r]`.
///
/// See [`spmv`] for the rest. It takes the operators of [`algorithms::spmv_by`](fn@algorithms::spmv_by), with one difference: the index
/// that a [`Reduction`] receives is a column of the device's [part](SplitCsr::part), and not of the whole matrix: [`SplitCsr::column`]
/// converts it.
///
/// ```
/// use kernel_primitives::functor::{Axpby, PlusTimes};
/// use kernel_primitives::split::{self, SplitCsr};
/// use kernel_primitives::{Devices, Split, SplitBuffer};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let devices = Split::even(&Devices::emulated(2)?)?;
/// let a = SplitCsr::new(&devices, (2, 2), &[0u32, 2, 3], &[0, 1, 1], &[1.0f32, 2.0, 3.0])?;
/// let x = SplitBuffer::from_slice(&devices, &[10.0f32, 20.0])?;
/// // y = y + 2 A x
/// let mut y = SplitBuffer::from_slice(&devices, &[1.0f32, 0.5])?;
/// split::spmv_by(&a, &x, PlusTimes, Axpby { alpha: 2.0, beta: 1.0 }, &mut y)?;
/// assert_eq!(y.to_vec()?, [101.0, 120.5]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`spmv`].
pub fn spmv_by<V, I, T, R, E, S, G>(
    a: &SplitCsr<V, I>,
    x: &SplitBuffer<T>,
    op: R,
    epilogue: E,
    y: &mut SplitBuffer<E::Output>,
) -> Result<()>
where
    V: Element + Spmv<T, I, R, E, S>,
    I: CsrIndex,
    T: Element + Gather<u32, T, G>,
    R: Reduction<(V, T)> + KernelParam,
    E: Epilogue<R::Output> + KernelParam,
{
    product("`split::spmv_by`", a, x, y, |_, stream, part, x, y| algorithms::spmv_by(stream, part, x, op, epilogue, y))
}

/// Like [`spmv_by`], but `epilogue` takes the row's reduction and `z[r]`. The old elements of `y` are not read.
///
/// With [`Axpby`], this computes `y = alpha A x + beta z`, for example the residual of a linear system. `z` must be split as the rows of
/// the matrix.
///
/// ```
/// use kernel_primitives::functor::{Axpby, PlusTimes};
/// use kernel_primitives::split::{self, SplitCsr};
/// use kernel_primitives::{Devices, Split, SplitBuffer};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let devices = Split::even(&Devices::emulated(2)?)?;
/// let a = SplitCsr::new(&devices, (2, 2), &[0u32, 2, 3], &[0, 1, 1], &[1.0f32, 2.0, 3.0])?;
/// let x = SplitBuffer::from_slice(&devices, &[10.0f32, 20.0])?;
/// let f = SplitBuffer::from_slice(&devices, &[51.0f32, 60.5])?;
/// let mut residual = SplitBuffer::uninit(&devices, 2)?;
/// split::spmv_with(&a, &x, PlusTimes, Axpby { alpha: -1.0, beta: 1.0 }, &f, &mut residual)?;
/// assert_eq!(residual.to_vec()?, [1.0, 0.5]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`spmv`], and [`Error::Split`] if `z` is not split as the rows of the matrix.
pub fn spmv_with<V, I, T, R, E, S, G>(
    a: &SplitCsr<V, I>,
    x: &SplitBuffer<T>,
    op: R,
    epilogue: E,
    z: &SplitBuffer<E::Output>,
    y: &mut SplitBuffer<E::Output>,
) -> Result<()>
where
    V: Element + Spmv<T, I, R, E, S>,
    I: CsrIndex,
    T: Element + Gather<u32, T, G>,
    R: Reduction<(V, T)> + KernelParam,
    E: Epilogue<R::Output> + KernelParam,
{
    let call = "`split::spmv_with`";
    check(call, ("z", z), a, ("rows", a.row_bounds()))?;
    product(call, a, x, y, |device, stream, part, x, y| {
        algorithms::spmv_with(stream, part, x, op, epilogue, z.part(device), y)
    })
}

/// Computes a product. `of_one` multiplies a device's rows by the items that they read.
fn product<V, I, T, U, G>(
    call: &'static str,
    a: &SplitCsr<V, I>,
    x: &SplitBuffer<T>,
    y: &mut SplitBuffer<U>,
    of_one: impl Fn(usize, &Stream, &Csr<V, I>, BufferSlice<'_, T>, BufferSliceMut<'_, U>) -> Result<()>,
) -> Result<()>
where
    V: Element,
    I: CsrIndex,
    T: Element + Gather<u32, T, G>,
    U: Element,
{
    check(call, ("x", x), a, ("columns", a.column_bounds()))?;
    check(call, ("y", y), a, ("rows", a.row_bounds()))?;
    let (streams, exchange) = (a.split().streams(), a.exchange());
    let advice = "a graph is of one device: multiply before the capture, or after it";
    crate::split::not_captured(call, advice, exchange.streams_of(streams))?;
    let mut memory = exchange.memory(streams)?;
    exchange.post(streams, x, &mut memory)?;
    for (device, stream) in streams.iter().enumerate().filter(|(device, _)| !a.range(*device).is_empty()) {
        let input = exchange.input(device, stream, x.part(device), &mut memory)?;
        of_one(device, stream, a.part(device), input, y.part_mut(device))?;
    }
    exchange.keep(memory);
    Ok(())
}

/// Returns an error if a vector is not split by the bounds of the matrix's rows or columns, on its devices.
fn check<V: Element, I: CsrIndex, T: Element>(
    call: &'static str,
    (name, vector): (&str, &SplitBuffer<T>),
    a: &SplitCsr<V, I>,
    (lines, bounds): (&str, &[usize]),
) -> Result<()> {
    let is_split_so = || bounds.windows(2).enumerate().all(|(at, bounds)| vector.range(at) == (bounds[0]..bounds[1]));
    if vector.split().has_devices_of(a.split()) && is_split_so() {
        return Ok(());
    }
    let of_matrix = a.split().describe(bounds);
    let reason = format!("`{name}` is split in another way than the {lines} of the matrix: {vector:?} and {of_matrix}");
    Err(Error::Split { call, reason })
}
