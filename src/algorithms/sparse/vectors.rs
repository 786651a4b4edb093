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
    /// Matrices, vectors and operators that [`spmm`] and [`spmm_by`] have kernels for: `Self` is the type of the matrix's values, `X` of
    /// the vectors, `I` of offsets and columns.
    spmm, "write `instantiate!(kernel_primitives::algorithms::spmm<{Self}, {X}, {I}, {R}, {E}>);` in your kernel module"
}

/// Multiplies a sparse matrix and several vectors at once: `Y = A X`, with a row of `X` for each column of the matrix.
///
/// `x` and `y` are in rows: the item of vector `v` at column `c` is `x[c * vectors + v]`, and the result of row `r` is
/// `y[r * vectors + v]`. `y` may be longer: the rest of it stays as it is. Its elements are of the type that accumulates, which is `f32`
/// for halves.
///
/// [`spmm_by`] takes other operators than plus and times, and adds to what `y` holds. [`spmm_with`] adds other vectors.
///
/// **Determinism.** The order of combination depends on the matrix, its [method](Csr::method) and the number of vectors alone.
///
/// Cost: one launch without temporary memory. If `x` is aligned for 16 bytes, it reads the matrix once for up to 128 vectors of items of 4
/// bytes or less, whose number is a multiple of 4, or 64 vectors of 8 bytes, a multiple of 2; otherwise, and for larger items or results, once for
/// each 32 vectors at most. A row has a warp at most, however long it is: for rows of very different lengths, [`spmv`](super::spmv()) for each
/// vector may be faster.
///
/// Ready for matrices and vectors of `f32` and `f64` with indices of `u32`. For others:
/// `instantiate!(kernel_primitives::algorithms::spmm<f16, f32, u64, PlusTimes, Axpby<f32>>);`.
///
/// Peer: cuSPARSE's `cusparseSpMM`. Reference: Yang, Buluç and Owens, *Design principles for sparse matrix multiplication on the GPU*,
/// 2018.
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
/// Returns [`Error::LengthMismatch`](crate::Error::LengthMismatch) unless `x` has as many items as the matrix columns for each vector, or
/// if `y` has fewer elements than that rows; [`Error::LaunchLimit`](crate::Error::LaunchLimit) for more than `u32::MAX` vectors; and the
/// errors of a launch.
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

/// Multiplies a sparse matrix and several vectors by any operators: as [`spmv_by`](super::spmv_by()) for each vector, in the layout of
/// [`spmm`].
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

/// As [`spmm_by`], but the result of row `r` and vector `v` is `epilogue` of the row's reduction and of `z[r * vectors + v]`. What `y` holds is
/// not read.
///
/// With [`Axpby`] it is `Y = alpha A X + beta Z`, of which the residuals of several linear systems are one.
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
/// Returns the errors of [`spmm`], and [`Error::LengthMismatch`](crate::Error::LengthMismatch) if `z` has fewer elements than the matrix rows
/// for each vector.
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

/// The products, with the name of the call in errors. What the epilogue reads is in `z`, or in `y` if there is no `z`.
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
    // What is after the results takes no part, so that the shape is the same with it and without.
    let (mut y, rest) = y.split_at(results)?;
    let (nothing, _) = rest.split_at(0)?;
    let z = z.unwrap_or(nothing.as_slice());
    let counted = run.counted(call, "the number of vectors", vectors)?;
    let lengths = [a.offsets().len(), a.indices().len(), a.values().len(), lengths.0, results];
    let narrow = lengths.iter().all(|&len| len < device::CSR_NARROW);
    // The vectors of a lane, if the kernel finds `x` aligned: neighbours, of which it has one group or two.
    let warp = WARP as usize;
    let most = device::csr_lane_vectors::<S::Item, R::Accum>();
    let neighbours = if vectors.is_multiple_of(most) { most } else { 1 };
    let all_groups = vectors / neighbours;
    // Two if that leaves no lane without vectors: then half as many lanes read the entries.
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
    // Where lanes read several items at once, fewer of them have enough under way, and each reads several times, before they combine.
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
