//! Products of sparse matrices and several vectors.

use super::csr::{Csr, CsrIndex};
use super::plan::SpmvMethod;
use super::product::check_operands;
use crate::__algorithms::*;
use crate::algorithms::kernels::algorithm;
use crate::algorithms::run::{Run, grid};
use crate::element::Accumulate;
use crate::functor::{Axpby, Epilogue, PlusTimes, Reduction};
use crate::input::Source;
use crate::kernels::device;
use crate::simt::WARP;
use crate::{BufferSlice, BufferSliceMut, Element, InputArg, KernelParam, Result};

algorithm! {
    /// Matrices, vectors and operators that [`spmm`] and [`spmm_by`] have kernels for. `Self` is the type of the matrix's values, `X` the
    /// type of the vectors, and `I` the type of offsets and columns.
    spmm
}

/// Multiplies a sparse matrix and several vectors at once: `Y = A X`. `X` has a row for each column of the matrix.
///
/// `x` and `y` are in row-major order: the item of vector `v` at column `c` is `x[c * vectors + v]`, and the result of row `r` is `y[r *
/// vectors + v]`. `y` may be longer: the rest of it stays as it is. The elements of `y` have the type of the accumulators, which is `f32`
/// for halves.
///
/// [`spmm_by`] takes any two operators instead of plus and times, and can add to what `y` contains. [`spmm_with`] adds other vectors.
///
/// **Determinism.** The order of combination depends only on the matrix, its [method](Csr::method) and the number of vectors.
///
/// Cost: one launch without temporary memory. How often the launch reads the matrix depends on the vectors. If `x` is aligned to 16 bytes,
/// one read serves up to 128 vectors of items of 4 bytes or less, whose number is a multiple of 4, or up to 64 vectors of 8 bytes, whose
/// number is a multiple of 2. It serves 256 vectors of the first kind if their number is a multiple of 256, or 128 of the second kind if it
/// is a multiple of 128, and if each array has fewer than 2^32 - 129 elements. Otherwise, and for larger items or results, one read serves
/// at most 32 vectors. A row has at most one warp, even if it is long: for rows of very different lengths, [`spmv`](super::spmv()) for each
/// vector may be faster.
///
/// Ready for matrices and vectors of `f32` and `f64` with indices of `u32`. For others, write
/// `instantiate!(kernel_primitives::algorithms::spmm<f16, f32, u64, PlusTimes, Axpby<f32>>);`.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::sparse` | yes: `net::properties::sparse` | fixed by the matrix, its method and the number of vectors; the operator must be commutative |
///
/// cuSPARSE: `cusparseSpMM`. Differences: those of [`spmv`](fn@crate::algorithms::spmv); the vectors are a matrix in rows.
///
/// Reference: Yang, Buluç and Owens, *Design principles for sparse matrix multiplication on the GPU*, 2018.
///
/// ```
/// use kernel_primitives::algorithms::{Csr, spmm};
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let a = Csr::new(&stream, (2, 3), &[0u32, 2, 3], &[0, 2, 1], &[1.0f64, 2.0, 3.0])?;
/// // Two vectors: 10, 20, 30 and 1, 2, 3.
/// let x = stream.buffer_from(&[10.0f64, 1.0, 20.0, 2.0, 30.0, 3.0])?;
/// let mut y = stream.buffer_zeroed::<f64>(4)?;
/// spmm(&stream, &a, &x, 2, &mut y)?;
/// assert_eq!(y.to_vec()?, [70.0, 7.0, 60.0, 6.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::LengthMismatch`](crate::Error::LengthMismatch) if `x` does not have an item for each column and vector or if `y` has
/// fewer elements than rows times vectors, [`Error::LaunchLimit`](crate::Error::LaunchLimit) if there are more than `u32::MAX` vectors, and
/// the errors of a launch.
pub fn spmm<'a, 'y, V, I, J, S, Tag>(
    run: impl Into<Run<'a>>,
    a: &Csr<V, I>,
    x: J,
    vectors: usize,
    y: impl Into<BufferSliceMut<'y, V::Accum>>,
) -> Result<()>
where
    V: Accumulate + Spmm<S::Short, I, PlusTimes, Axpby<V::Accum>, Tag>,
    I: CsrIndex,
    J: InputArg<S>,
    S: Source<Item: Accumulate<Accum = V::Accum>>,
{
    let (overwrite, y): (Axpby<V::Accum>, BufferSliceMut<'_, V::Accum>) = (Axpby::OVERWRITE, y.into());
    products("spmm", run.into(), a, x, vectors, PlusTimes, overwrite, None, y)
}

/// Multiplies a sparse matrix and several vectors with any operators. It computes what [`spmv_by`](super::spmv_by()) computes for each
/// vector, in the layout of [`spmm`].
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::sparse` | yes: `net::properties::sparse` | as `spmm` |
///
/// cuSPARSE: `cusparseSpMM`.
///
/// ```
/// use kernel_primitives::algorithms::{Csr, spmm_by};
/// use kernel_primitives::functor::{Axpby, PlusTimes};
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let a = Csr::new(&stream, (1, 2), &[0u32, 2], &[0, 1], &[1.0f32, 2.0])?;
/// let x = stream.buffer_from(&[10.0f32, 1.0, 20.0, 2.0])?;
/// let mut y = stream.buffer_from(&[100.0f32, 10.0])?;
/// spmm_by(&stream, &a, &x, 2, PlusTimes, Axpby { alpha: -1.0, beta: 1.0 }, &mut y)?;
/// assert_eq!(y.to_vec()?, [50.0, 5.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`spmm`].
pub fn spmm_by<'a, 'y, V, I, J, S, R, E, Tag>(
    run: impl Into<Run<'a>>,
    a: &Csr<V, I>,
    x: J,
    vectors: usize,
    op: R,
    epilogue: E,
    y: impl Into<BufferSliceMut<'y, E::Output>>,
) -> Result<()>
where
    V: Element + Spmm<S::Short, I, R, E, Tag>,
    I: CsrIndex,
    J: InputArg<S>,
    S: Source,
    R: Reduction<(V, S::Item)> + KernelParam,
    E: Epilogue<R::Output> + KernelParam,
{
    products("spmm_by", run.into(), a, x, vectors, op, epilogue, None, y.into())
}

/// Multiplies as [`spmm_by`], but `epilogue` computes the result of row `r` and vector `v` from the reduction of the row and from `z[r *
/// vectors + v]`. The previous contents of `y` are not read.
///
/// With [`Axpby`], this is `Y = alpha A X + beta Z`. The residuals of several linear systems are such a product.
///
/// | [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |
/// |---|---|---|
/// | yes: `net::properties::sparse` | yes: `net::properties::sparse` | as `spmm` |
///
/// cuSPARSE: `cusparseSpMM`.
///
/// ```
/// use kernel_primitives::algorithms::{Csr, spmm_with};
/// use kernel_primitives::functor::{Axpby, PlusTimes};
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let a = Csr::new(&stream, (1, 2), &[0u32, 2], &[0, 1], &[1.0f32, 2.0])?;
/// let x = stream.buffer_from(&[10.0f32, 1.0, 20.0, 2.0])?;
/// let f = stream.buffer_from(&[51.0f32, 5.5])?;
/// let mut residuals = stream.buffer_uninit::<f32>(2)?;
/// spmm_with(&stream, &a, &x, 2, PlusTimes, Axpby { alpha: -1.0, beta: 1.0 }, &f, &mut residuals)?;
/// assert_eq!(residuals.to_vec()?, [1.0, 0.5]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`spmm`], and [`Error::LengthMismatch`](crate::Error::LengthMismatch) if `z` has fewer elements than rows times
/// vectors.
#[allow(clippy::too_many_arguments, reason = "those of `spmm_by`, and `z`")]
pub fn spmm_with<'a, 'z, 'y, V, I, J, S, R, E, Tag>(
    run: impl Into<Run<'a>>,
    a: &Csr<V, I>,
    x: J,
    vectors: usize,
    op: R,
    epilogue: E,
    z: impl Into<BufferSlice<'z, E::Output>>,
    y: impl Into<BufferSliceMut<'y, E::Output>>,
) -> Result<()>
where
    V: Element + Spmm<S::Short, I, R, E, Tag>,
    I: CsrIndex,
    J: InputArg<S>,
    S: Source,
    R: Reduction<(V, S::Item)> + KernelParam,
    E: Epilogue<R::Output> + KernelParam,
{
    products("spmm_with", run.into(), a, x, vectors, op, epilogue, Some(z.into()), y.into())
}

/// Computes the products for the call that errors name. The epilogue reads `z`, or `y` if there is no `z`.
#[allow(clippy::too_many_arguments, reason = "those of `spmm_with`, and its name")]
fn products<V, I, J, S, R, E, Tag>(
    call: &'static str,
    run: Run<'_>,
    a: &Csr<V, I>,
    x: J,
    vectors: usize,
    op: R,
    epilogue: E,
    z: Option<BufferSlice<'_, E::Output>>,
    y: BufferSliceMut<'_, E::Output>,
) -> Result<()>
where
    V: Element + Spmm<S::Short, I, R, E, Tag>,
    I: CsrIndex,
    J: InputArg<S>,
    S: Source,
    R: Reduction<(V, S::Item)> + KernelParam,
    E: Epilogue<R::Output> + KernelParam,
{
    let (kernel,) = <V as Spmm<S::Short, I, R, E, Tag>>::kernels();
    let lengths = (run.items(call, &x)?, y.len(), z.map(|z| z.len()));
    let results = check_operands(call, (a.rows(), a.columns()), Some(vectors), lengths)?;
    if results == 0 {
        return Ok(());
    }
    // What is after the results takes no part, so the shape of the launch does not depend on it.
    let (mut y, rest) = y.split_at(results)?;
    let (nothing, _) = rest.split_at(0)?;
    let z = z.unwrap_or(nothing.as_slice());
    let counted = run.counted(call, "the number of vectors", vectors)?;
    let lengths = [a.offsets().len(), a.indices().len(), a.values().len(), lengths.0, results];
    let narrow = lengths.iter().all(|&len| len < device::CSR_NARROW);
    // The neighbouring vectors of a lane, if the kernel finds that `x` is aligned. A lane has one group or two of these.
    let warp = WARP as usize;
    let most = device::csr_lane_vectors::<S::Item, R::Accum>();
    let neighbours = if vectors.is_multiple_of(most) { most } else { 1 };
    let all_groups = vectors / neighbours;
    // A lane has two groups if that leaves no lane without vectors. Then half as many lanes read the entries.
    let pairs = all_groups / 2;
    let full = if pairs < warp { pairs.is_power_of_two() } else { pairs.is_multiple_of(warp) };
    let two = narrow && neighbours > 1 && all_groups.is_multiple_of(2) && full;
    let (of_lane, groups) = if two { (2, pairs) } else { (1, all_groups) };
    let width = groups.min(warp).next_power_of_two();
    let wanted = match a.method() {
        SpmvMethod::Rows { lanes } => lanes as usize,
        SpmvMethod::ByLength | SpmvMethod::Window => a.lengths().lanes() as usize,
        SpmvMethod::MergePath => warp,
    };
    // If lanes read several items at once, fewer lanes have enough reads in flight. Each lane then reads several times before the lanes
    // combine.
    let most = if wanted > warp / 4 || neighbours == 1 {
        warp / width
    } else {
        (warp / 4 / width).min(a.entries() / (16 * a.rows()))
    };
    let parts = if most < 2 { 1 } else { wanted.min(1 << most.ilog2()) };
    let lanes = width * parts;
    let passes = groups.div_ceil(width);
    let blocks = a.rows().saturating_mul(lanes).div_ceil(device::CSR_THREADS).saturating_mul(passes);
    let dims = grid(blocks, device::CSR_THREADS);
    device::csr_row_vectors::launch_entry(
        kernel,
        run.stream,
        dims,
        a.offsets(),
        a.indices(),
        a.values(),
        x,
        z,
        &mut y,
        op,
        epilogue,
        counted,
        a.columns().saturating_sub(1),
        lanes.ilog2(),
        parts.ilog2(),
        of_lane,
        passes as u32,
        u32::from(narrow),
    )
}
