//! Products of sparse matrices and vectors.

use super::by_length;
use super::csr::{Csr, CsrIndex};
use super::path;
use super::plan::SpmvMethod;
use super::planned::Planned;
use super::sell::Sell;
use super::window;
use crate::__algorithms::*;
use crate::__private::Entry;
use crate::algorithms::kernels::algorithm;
use crate::algorithms::run::{Run, check_output, grid};
use crate::element::Accumulate;
use crate::functor::{Axpby, Epilogue, PlusTimes, Reduction};
use crate::input::Source;
use crate::kernels::device;
use crate::simt::WARP;
use crate::{BufferSlice, BufferSliceMut, Element, Error, InputArg, KernelParam, Result, Stream};

algorithm! {
    /// Matrices, vectors and operators that [`spmv`] and [`spmv_by`] have kernels for. `Self` is the type of the matrix's values, `X` the
    /// type of the vector, and `I` the type of offsets and columns.
    spmv
}

mod sealed {
    use super::{Csr, CsrIndex, Element, Sell};

    /// A matrix in its format.
    #[allow(unreachable_pub, reason = "sealed")]
    #[derive(Debug)]
    pub enum Format<'m, V, I> {
        Rows(&'m Csr<V, I>),
        Slices(&'m Sell<V, I>),
    }

    impl<V: Element, I: CsrIndex> Format<'_, V, I> {
        /// The numbers of rows and of columns.
        pub(super) fn shape(&self) -> (usize, usize) {
            match self {
                Self::Rows(a) => (a.rows(), a.columns()),
                Self::Slices(a) => (a.rows(), a.columns()),
            }
        }
    }
}
pub(crate) use sealed::Format;

/// Sparse matrices that [`spmv`] multiplies: [`Csr`], [`Sell`] and [`Planned`].
pub trait SparseMatrix {
    /// The type of values.
    type Value: Element;
    /// The type of offsets and column indices.
    type Index: CsrIndex;

    #[doc(hidden)]
    fn format(&self) -> Format<'_, Self::Value, Self::Index>;

    /// The numbers of rows and of columns.
    fn shape(&self) -> (usize, usize) {
        self.format().shape()
    }
}

impl<V: Element, I: CsrIndex> SparseMatrix for Csr<V, I> {
    type Value = V;
    type Index = I;

    fn format(&self) -> Format<'_, V, I> {
        Format::Rows(self)
    }
}

impl<V: Element, I: CsrIndex> SparseMatrix for Sell<V, I> {
    type Value = V;
    type Index = I;

    fn format(&self) -> Format<'_, V, I> {
        Format::Slices(self)
    }
}

impl<V: Element, I: CsrIndex> SparseMatrix for Planned<V, I> {
    type Value = V;
    type Index = I;

    fn format(&self) -> Format<'_, V, I> {
        match self {
            Self::Rows(a) => Format::Rows(a),
            Self::Slices(a) => Format::Slices(a),
        }
    }
}

/// Multiplies a sparse matrix and a vector: `y = A x`.
///
/// `x` has an item for each column of the matrix, and all of them must be initialised. `y` may have more items than there are rows: the
/// rest of it stays as it is. The elements of `y` have the type of the accumulators, which is `f32` for halves.
///
/// [`spmv_by`] takes any two operators instead of plus and times, and can add to what `y` contains. [`spmv_with`] adds another vector.
///
/// **Determinism.** The order of combination depends only on the matrix and its [method](Csr::method).
///
/// Cost: one read of the matrix, one write of `y`, and for each entry a read of `x`; caches serve items that are near each other. The
/// number of launches depends on the method:
///
/// - [`SpmvMethod::Rows`], [`SpmvMethod::Window`] and a [`Sell`] take one launch.
/// - [`SpmvMethod::ByLength`] takes one launch. If there are rows of more than 8192 entries, it takes two, and temporary memory: a result
///   for every 8192 entries of each of these rows.
/// - [`SpmvMethod::MergePath`] takes two launches, and temporary memory: two results for each 2040 entries and rows, or for fewer if
///   results have more than 8 bytes. If there are no more than these, it takes one launch, without such memory.
///
/// Ready for matrices and vectors of `f32` and `f64` with indices of `u32`. For others, write
/// `instantiate!(kernel_primitives::algorithms::spmv<f16, f32, u64, PlusTimes, Axpby<f32>>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `sparse::products::sums_of_floats_have_the_same_bits_on_every_device_and_run` | yes: `sparse::products::sums_of_floats_have_the_same_bits_on_every_device_and_run` | fixed by the matrix and its method; the operator must be commutative |
///
/// CUB: `DeviceSpmv`, which CUB no longer has. cuSPARSE: `cusparseSpMV`. Differences: any element and index type, any two operators, and an
/// epilogue in the same kernel, for a [`Csr`] or a [`Sell`].
///
/// References: Bell and Garland, 2009, for rows; Merrill and Garland, 2016, for the merge path.
///
/// ```
/// use kernel_primitives::algorithms::{Csr, spmv};
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let a = Csr::new(&stream, (2, 3), &[0u32, 2, 3], &[0, 2, 1], &[1.0f64, 2.0, 3.0])?;
/// let x = stream.buffer_from(&[10.0f64, 20.0, 30.0])?;
/// let mut y = stream.buffer_zeroed::<f64>(2)?;
/// spmv(&stream, &a, &x, &mut y)?;
/// assert_eq!(y.to_vec()?, [70.0, 60.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`] if `x` does not have an item for each column or if `y` has fewer elements than the matrix has rows,
/// and the errors of a launch and of an allocation.
pub fn spmv<'a, 'y, M, V, I, J, S, Tag>(
    run: impl Into<Run<'a>>,
    a: &M,
    x: J,
    y: impl Into<BufferSliceMut<'y, V::Accum>>,
) -> Result<()>
where
    M: SparseMatrix<Value = V, Index = I>,
    V: Accumulate + Spmv<S::Short, I, PlusTimes, Axpby<V::Accum>, Tag>,
    I: CsrIndex,
    J: InputArg<S>,
    S: Source<Item: Accumulate<Accum = V::Accum>>,
{
    let (overwrite, y): (Axpby<V::Accum>, BufferSliceMut<'_, V::Accum>) = (Axpby::OVERWRITE, y.into());
    product("spmv", run.into(), a.format(), x, PlusTimes, overwrite, None, y)
}

/// Multiplies a sparse matrix and a vector with any operators. `op` reduces the pairs `(value, x[column])` of row `r`, and `epilogue`
/// computes `y[r]` from that result and from what `y[r]` contained.
///
/// `op` is a [`Reduction`] of pairs whose combination is commutative: [`PlusTimes`], a [`Semiring`](crate::functor::Semiring) of two
/// operators, or a reduction of your own. The index of an item is its column. No total that `op` combines has an entry twice. `epilogue` is
/// an [`Epilogue`], and runs in the same kernel: [`Axpby`] is the `y = alpha A x + beta y` of BLAS.
///
/// Otherwise this works as [`spmv`].
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::sparse` | yes: `net::properties::sparse` | as `spmv` |
///
/// CUB: `DeviceSpmv`, which CUB no longer has. cuSPARSE: `cusparseSpMV`.
///
/// ```
/// use kernel_primitives::algorithms::{Csr, spmv_by};
/// use kernel_primitives::functor::{Axpby, PlusTimes};
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let a = Csr::new(&stream, (2, 2), &[0u32, 2, 3], &[0, 1, 1], &[1.0f32, 2.0, 3.0])?;
/// let x = stream.buffer_from(&[10.0f32, 20.0])?;
/// // y = y + 2 A x
/// let mut y = stream.buffer_from(&[1.0f32, 0.5])?;
/// spmv_by(&stream, &a, &x, PlusTimes, Axpby { alpha: 2.0, beta: 1.0 }, &mut y)?;
/// assert_eq!(y.to_vec()?, [101.0, 120.5]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`spmv`].
pub fn spmv_by<'a, 'y, M, V, I, J, S, R, E, Tag>(
    run: impl Into<Run<'a>>,
    a: &M,
    x: J,
    op: R,
    epilogue: E,
    y: impl Into<BufferSliceMut<'y, E::Output>>,
) -> Result<()>
where
    M: SparseMatrix<Value = V, Index = I>,
    V: Element + Spmv<S::Short, I, R, E, Tag>,
    I: CsrIndex,
    J: InputArg<S>,
    S: Source,
    R: Reduction<(V, S::Item)> + KernelParam,
    E: Epilogue<R::Output> + KernelParam,
{
    product("spmv_by", run.into(), a.format(), x, op, epilogue, None, y.into())
}

/// Multiplies as [`spmv_by`], but `epilogue` computes `y[r]` from the reduction of row `r` and from `z[r]`. The previous contents of `y`
/// are not read.
///
/// With [`Axpby`], this is `y = alpha A x + beta z`; the residual of a linear system is such a product. It costs one more read, of `z`,
/// than [`spmv`], and no further pass.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::sparse` | yes: `net::properties::sparse` | as `spmv` |
///
/// CUB: `DeviceSpmv`, which CUB no longer has. cuSPARSE: `cusparseSpMV`.
///
/// ```
/// use kernel_primitives::algorithms::{Csr, spmv_with};
/// use kernel_primitives::functor::{Axpby, PlusTimes};
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let a = Csr::new(&stream, (2, 2), &[0u32, 2, 3], &[0, 1, 1], &[1.0f32, 2.0, 3.0])?;
/// let x = stream.buffer_from(&[10.0f32, 20.0])?;
/// let f = stream.buffer_from(&[51.0f32, 60.5])?;
/// let mut residual = stream.buffer_uninit::<f32>(2)?;
/// spmv_with(&stream, &a, &x, PlusTimes, Axpby { alpha: -1.0, beta: 1.0 }, &f, &mut residual)?;
/// assert_eq!(residual.to_vec()?, [1.0, 0.5]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`spmv`], and [`Error::LengthMismatch`] if `z` has fewer elements than the matrix has rows.
pub fn spmv_with<'a, 'z, 'y, M, V, I, J, S, R, E, Tag>(
    run: impl Into<Run<'a>>,
    a: &M,
    x: J,
    op: R,
    epilogue: E,
    z: impl Into<BufferSlice<'z, E::Output>>,
    y: impl Into<BufferSliceMut<'y, E::Output>>,
) -> Result<()>
where
    M: SparseMatrix<Value = V, Index = I>,
    V: Element + Spmv<S::Short, I, R, E, Tag>,
    I: CsrIndex,
    J: InputArg<S>,
    S: Source,
    R: Reduction<(V, S::Item)> + KernelParam,
    E: Epilogue<R::Output> + KernelParam,
{
    product("spmv_with", run.into(), a.format(), x, op, epilogue, Some(z.into()), y.into())
}

/// Computes the product for the call that errors name. The epilogue reads `z`, or `y` if there is no `z`.
#[allow(clippy::too_many_arguments, reason = "those of `spmv_with`, and its name")]
fn product<V, I, J, S, R, E, Tag>(
    call: &str,
    run: Run<'_>,
    a: Format<'_, V, I>,
    x: J,
    op: R,
    epilogue: E,
    z: Option<BufferSlice<'_, E::Output>>,
    y: BufferSliceMut<'_, E::Output>,
) -> Result<()>
where
    V: Element + Spmv<S::Short, I, R, E, Tag>,
    I: CsrIndex,
    J: InputArg<S>,
    S: Source,
    R: Reduction<(V, S::Item)> + KernelParam,
    E: Epilogue<R::Output> + KernelParam,
{
    let (
        staged_kernel,
        rows_kernel,
        tiles_kernel,
        ends_kernel,
        by_length_kernel,
        giants_kernel,
        window_kernel,
        slices_kernel,
    ) = <V as Spmv<S::Short, I, R, E, Tag>>::kernels();
    let lengths = (run.items(call, &x)?, y.len(), z.map(|z| z.len()));
    let rows = check_operands(call, a.shape(), None, lengths)?;
    if rows == 0 {
        return Ok(());
    }
    let all = y.len();
    let (mut y, nothing) = y.split_at(all)?;
    let z = z.unwrap_or(nothing.as_slice());
    let a = match a {
        Format::Rows(a) => a,
        Format::Slices(a) => {
            return device::sell_rows::launch_entry(
                slices_kernel,
                run.stream,
                grid(rows.div_ceil(device::CSR_THREADS), device::CSR_THREADS),
                &a.slices,
                &a.order,
                &a.lengths,
                &a.indices,
                &a.values,
                x,
                z,
                &mut y,
                op,
                epilogue,
            );
        }
    };
    let lanes = match a.method() {
        SpmvMethod::MergePath => match a.splits().filter(|_| device::csr_path_fits::<R::Accum>()) {
            Some(splits) => {
                let kernels = (tiles_kernel, ends_kernel);
                return path::product(kernels, run, (a, splits), x, (z, &mut y), (op, epilogue));
            }
            None => WARP,
        },
        SpmvMethod::ByLength if device::csr_by_length_fits::<R::Accum>() => {
            return by_length::product((by_length_kernel, giants_kernel), run, a, x, (z, &mut y), (op, epilogue));
        }
        SpmvMethod::ByLength => WARP,
        SpmvMethod::Window => match a.windows() {
            Some(windows) => {
                return window::product(window_kernel, run.stream, (a, windows), x, (z, &mut y), (op, epilogue));
            }
            None => device::CSR_WINDOW_LANES as u32,
        },
        SpmvMethod::Rows { lanes } => lanes,
    };
    by_rows((staged_kernel, rows_kernel), run.stream, (a, lanes), x, (z, &mut y), (op, epilogue))
}

/// Checks the lengths of a product with a matrix of `(rows, columns)`, and returns the number of results. `x` must have an item for each
/// column, and `y` and `z` a place for each row. If there are several `vectors`, this is so for each of them.
pub(super) fn check_operands(
    call: &str,
    (rows, columns): (usize, usize),
    vectors: Option<usize>,
    (x, y, z): (usize, usize, Option<usize>),
) -> Result<usize> {
    let of_vectors = |line: &str| match vectors {
        None => line.to_owned(),
        Some(vectors) => format!("{vectors} vectors of {line}"),
    };
    let each = vectors.unwrap_or(1);
    // If the product overflows, it cannot equal the number of items.
    let needed = columns.checked_mul(each);
    if needed != Some(x) {
        return Err(Error::LengthMismatch {
            kernel: call.into(),
            first: of_vectors("a row of the matrix"),
            first_len: needed.unwrap_or(usize::MAX),
            second: "`x`".into(),
            second_len: x,
        });
    }
    let results = rows.saturating_mul(each);
    check_output(call, "y", y, results)?;
    if let Some(z) = z.filter(|&z| z < results) {
        return Err(Error::LengthMismatch {
            kernel: call.into(),
            first: of_vectors("a column of the matrix"),
            first_len: results,
            second: "`z`".into(),
            second_len: z,
        });
    }
    Ok(results)
}

/// The kernels of products by rows: one for short rows, and one for others.
type RowsKernels<V, S, I, R, E> = (Entry<csr_staged_rows<V, S, I, R, E>>, Entry<csr_rows<V, S, I, R, E>>);

/// Computes the product by rows with one launch, with `lanes` lanes for each row.
fn by_rows<V, I, S, R, E>(
    (staged_kernel, rows_kernel): RowsKernels<V, S, I, R, E>,
    stream: &Stream,
    (a, lanes): (&Csr<V, I>, u32),
    x: impl InputArg<S>,
    (z, y): (BufferSlice<'_, E::Output>, &mut BufferSliceMut<'_, E::Output>),
    (op, epilogue): (R, E),
) -> Result<()>
where
    V: Element,
    I: CsrIndex,
    S: Source,
    R: Reduction<(V, S::Item)> + KernelParam,
    E: Epilogue<R::Output> + KernelParam,
{
    let (offsets, indices, values) = (a.offsets(), a.indices(), a.values());
    let stages = device::csr_stages::<R::Accum>(lanes);
    let lanes = if stages || lanes == 1 { lanes } else { lanes.max(2 * device::CSR_STAGED_LANES) };
    let dims = grid(a.rows().saturating_mul(lanes as usize).div_ceil(device::CSR_THREADS), device::CSR_THREADS);
    if stages {
        return device::csr_staged_rows::launch_entry(
            staged_kernel,
            stream,
            dims,
            offsets,
            indices,
            values,
            x,
            z,
            y,
            op,
            epilogue,
            lanes,
        );
    }
    device::csr_rows::launch_entry(rows_kernel, stream, dims, offsets, indices, values, x, z, y, op, epilogue, lanes)
}
