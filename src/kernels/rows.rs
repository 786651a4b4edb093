//! Kernels that give each block whole rows of a matrix.
//!
//! If a row fits in the registers of the block, `NX * ROUNDS` elements for each thread, and all rows are aligned for accesses of `NX`
//! elements, the row is read once and written once. Any other row is read three times, and the second and third reads are mostly from the
//! L2 cache. Any block of up to 256 threads is right. [`row_dims`](super::row_dims) chooses a block that holds the row.
//!
//! Of `f16` and `bf16`, a thread can hold 32 or 64 elements: `<f16, 8, 8>` has 64. Then a row has half as many warps, and each warp has as
//! many instructions for addresses and reductions as before. For rows of thousands of elements, these instructions take most of the time.

use kernel_primitives::block::block_reduce;
use kernel_primitives::prelude::*;
use kernel_primitives::view::{RowMut, Rows};

/// The elements of a row that a thread holds at a time: `ROUNDS` groups of `NX` neighbours.
type Held<T, const NX: usize, const ROUNDS: usize> = [[T; NX]; ROUNDS];

/// Reads some rounds of a row from `round`, in vectors. After the end of the row, elements are `padding`.
#[inline(always)]
fn read_vectors<T: Element, const NX: usize, const ROUNDS: usize>(
    from: Global<'_, T>,
    to: &RowMut<'_, '_, T, NX>,
    round: usize,
    padding: T,
) -> Held<T, NX, ROUNDS> {
    let mut held = [[padding; NX]; ROUNDS];
    from.read_vectors(to.first(round), to.stride(), &mut held);
    held
}

/// Reads a round of a row. After the end of the row, elements are `padding`.
#[inline(always)]
fn read_round<T: Element, const NX: usize>(
    from: Global<'_, T>,
    to: &RowMut<'_, '_, T, NX>,
    round: usize,
    padding: T,
) -> Held<T, NX, 1> {
    let mut items = [padding; NX];
    from.read_items(to.first(round), &mut items);
    [items]
}

/// Returns the rounds of a row that the block does not hold.
fn rounds<T: Element, const NX: usize>(row: &RowMut<'_, '_, T, NX>) -> impl Iterator<Item = usize> + use<T, NX> {
    let (len, stride) = (row.len(), row.stride());
    let mut next = 0;
    core::iter::from_fn(move || {
        let round = next;
        next += 1;
        if round * stride < len { Some(round) } else { None }
    })
}

/// Returns the most threads of a block that holds `items` elements for each thread. The registers of two blocks hold the elements and the
/// values that are computed from them. For 32 elements, this was measured on an H200. Fewer bytes need fewer registers, and more threads
/// have more bytes in flight.
const fn most_threads<T>(items: usize) -> u32 {
    match (size_of::<T>(), items * size_of::<T>()) {
        (2, 64) => 384,
        (2 | 4, _) => 320,
        _ => 256,
    }
}

/// Applies `f` to each element.
#[inline(always)]
fn map<A: Copy, B: Copy, const NX: usize, const ROUNDS: usize>(
    held: Held<A, NX, ROUNDS>,
    f: impl Fn(A) -> B,
) -> Held<B, NX, ROUNDS> {
    held.map(|items| items.map(&f))
}

/// Combines all elements. It combines the rounds first, each place by itself, so that there are `NX` short chains instead of a long one.
fn fold<A: Copy, const NX: usize, const ROUNDS: usize>(held: Held<A, NX, ROUNDS>, f: impl Fn(A, A) -> A) -> A {
    let mut places = held[0];
    for items in &held[1..] {
        for (place, &item) in places.iter_mut().zip(items) {
            *place = f(*place, item);
        }
    }
    let mut total = places[0];
    for &place in &places[1..] {
        total = f(total, place);
    }
    total
}

/// Computes the softmax of each row: `out[r][c] = exp(x[r][c] − max) / Σ exp(x[r][·] − max)`, where `max` is the maximum of the row.
///
/// `x` and `out` have `rows * columns` elements, row by row. It computes in the accumulation type, which is `f32` for `f16` and `bf16`. If
/// a row has a NaN or a +∞, or has only −∞, its results are NaN. Blocks have up to 256 threads. For `f32`, `f16` and `bf16`, they may have
/// 320.
///
/// ```
/// use kernel_primitives::kernels::{row_dims, softmax_rows};
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[0.0f32, 0.0, 3.0f32.ln(), 0.0])?;
/// let mut out = stream.buffer_zeroed::<f32>(4)?;
/// softmax_rows::<f32, 4, 8>::launch(&stream, row_dims(2, 2, 32), 2, 2, &x, &mut out)?;
/// let expected = [0.5, 0.5, 0.75, 0.25];
/// assert!(out.to_vec()?.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-6));
/// # Ok(())
/// # }
/// ```
#[kernel(equal_len(x, out), max_threads(most_threads::<T>(NX * ROUNDS)), min_blocks(2), instantiate(<f32, 4, 8>, <f64, 2, 4>, <f16, 8, 4>, <bf16, 8, 4>, <f16, 8, 8>, <bf16, 8, 8>))]
pub fn softmax_rows<T, const NX: usize, const ROUNDS: usize>(
    cx: Block,
    rows: usize,
    columns: usize,
    x: Global<T>,
    mut out: GlobalMut<T, Rows<NX>>,
    mut maxima: Shared<ReduceStorage<T::Accum>>,
    mut sums: Shared<ReduceStorage<T::Accum>>,
) where
    T: Accumulate<Accum: Real> + Ordered,
    f64: ConvertTo<T::Accum>,
{
    let fits = columns <= cx.block_threads() as usize * NX * ROUNDS;
    // exp(x − max) = 2^((x − max) log2 e).
    let log2_e: T::Accum = core::f64::consts::LOG2_E.convert();
    for row in cx.rows(rows) {
        let from = x.row(row.index(), columns);
        // SAFETY: the number of columns is the launch's.
        let mut to = unsafe { out.row(row, columns) };
        let is_held = fits && from.in_vectors::<NX>() && to.in_vectors();
        let mut held: Held<T, NX, ROUNDS> = [[T::LEAST; NX]; ROUNDS];
        let mut max = T::LEAST;
        if is_held {
            held = read_vectors(from, &to, 0, T::LEAST);
            max = fold(held, Ordered::maximum);
        } else {
            for round in rounds(&to) {
                max = max.maximum(fold(read_round(from, &to, round, T::LEAST), Ordered::maximum));
            }
        }
        let max = block_reduce(cx, &mut maxima, max.widen(), Max);
        // Padding is −∞, and all elements of a row may be −∞. Relative to 0, their exponentials are 0.
        let base = if max == T::Accum::LEAST { T::Accum::ZERO } else { max };
        let exponential = |x: T| x.widen().sub(base).mul(log2_e).exp2();

        let mut sum = T::Accum::ZERO;
        if is_held {
            sum = fold(map(held, exponential), Arithmetic::add);
        } else {
            for round in rounds(&to) {
                let items = read_round(from, &to, round, T::LEAST);
                sum = sum.add(fold(map(items, exponential), Arithmetic::add));
            }
        }
        let factor = T::Accum::ONE.divide(block_reduce(cx, &mut sums, sum, Add));

        let result = |x: T| T::narrow(exponential(x).mul(factor));
        if is_held {
            to.set_vectors(0, &map(held, result));
        } else {
            for round in rounds(&to) {
                let items = read_round(from, &to, round, T::LEAST);
                to.set_items(round, &map(items, result)[0]);
            }
        }
    }
}

/// Computes the layer normalisation of each row: `out[r][c] = (x[r][c] − mean) / √(variance + epsilon) * scale[c] + shift[c]`. Here `mean`
/// is the mean of the row, and `variance` is the mean of the squares of the differences from it.
///
/// `x` and `out` have `rows * columns` elements, row by row. `scale` and `shift` have `columns` elements. It computes in the accumulation
/// type, which is `f32` for `f16` and `bf16`. It sums the variance from differences from the mean, so that a large mean does not reduce its
/// accuracy. Blocks have up to 256 threads. For `f32`, `f16` and `bf16`, they may have 320.
///
/// ```
/// use kernel_primitives::kernels::{layer_norm_rows, row_dims};
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[1.0f32, 3.0, 10.0, 50.0])?;
/// let (scale, shift) = (stream.buffer_from(&[1.0f32, 2.0])?, stream.buffer_from(&[0.0f32, 0.5])?);
/// let mut out = stream.buffer_zeroed::<f32>(4)?;
/// layer_norm_rows::<f32, 4, 8>::launch(&stream, row_dims(2, 2, 32), 2, 2, 0.0, &x, &scale, &shift, &mut out)?;
/// assert_eq!(out.to_vec()?, [-1.0, 2.5, -1.0, 2.5]);
/// # Ok(())
/// # }
/// ```
#[kernel(
    equal_len(x, out), equal_len(scale, shift), max_threads(most_threads::<T>(NX * ROUNDS)), min_blocks(2),
    instantiate(<f32, 4, 8>, <f64, 2, 4>, <f16, 8, 4>, <bf16, 8, 4>, <f16, 8, 8>, <bf16, 8, 8>)
)]
#[allow(clippy::too_many_arguments, reason = "shape, inputs and output")]
pub fn layer_norm_rows<T, const NX: usize, const ROUNDS: usize>(
    cx: Block,
    rows: usize,
    columns: usize,
    epsilon: T::Accum,
    x: Global<T>,
    scale: Global<T>,
    shift: Global<T>,
    mut out: GlobalMut<T, Rows<NX>>,
    mut sums: Shared<ReduceStorage<T::Accum>>,
    mut square_sums: Shared<ReduceStorage<T::Accum>>,
) where
    T: Accumulate<Accum: Real>,
    usize: ConvertTo<T::Accum>,
{
    let fits = columns <= cx.block_threads() as usize * NX * ROUNDS;
    let (scale, shift) = (scale.slice(..columns), shift.slice(..columns));
    let scales_in_vectors = scale.in_vectors::<NX>() && shift.in_vectors::<NX>();
    let count: T::Accum = columns.convert();
    for row in cx.rows(rows) {
        let from = x.row(row.index(), columns);
        // SAFETY: the number of columns is the launch's.
        let mut to = unsafe { out.row(row, columns) };
        let is_held = fits && from.in_vectors::<NX>() && to.in_vectors() && scales_in_vectors;
        let mut held: Held<T, NX, ROUNDS> = [[T::ZERO; NX]; ROUNDS];
        let mut sum = T::Accum::ZERO;
        if is_held {
            held = read_vectors(from, &to, 0, T::ZERO);
            sum = fold(map(held, T::widen), Arithmetic::add);
        } else {
            for round in rounds(&to) {
                let items = read_round(from, &to, round, T::ZERO);
                sum = sum.add(fold(map(items, T::widen), Arithmetic::add));
            }
        }
        let mean = block_reduce(cx, &mut sums, sum, Add).divide(count);
        let difference = |x: T| x.widen().sub(mean);

        let mut squares = [T::Accum::ZERO; NX];
        if is_held {
            for (round, items) in held.iter().enumerate() {
                // Padding is 0, and must have no difference from the mean.
                let centre = if to.first(round) < columns { mean } else { T::Accum::ZERO };
                for (square, item) in squares.iter_mut().zip(items) {
                    let difference = item.widen().sub(centre);
                    *square = difference.mul_add(difference, *square);
                }
            }
        } else {
            for round in rounds(&to) {
                let [items] = read_round(from, &to, round, T::ZERO);
                let valid = columns.saturating_sub(to.first(round)).min(NX) as u32;
                for (i, square) in squares.iter_mut().enumerate() {
                    let difference = if (i as u32) < valid { difference(items[i]) } else { T::Accum::ZERO };
                    *square = difference.mul_add(difference, *square);
                }
            }
        }
        let sum = fold([squares], Arithmetic::add);
        let variance = block_reduce(cx, &mut square_sums, sum, Add).divide(count);
        let factor = T::Accum::ONE.divide(variance.add(epsilon).sqrt());

        let result =
            |item: T, scale: T, shift: T| T::narrow(difference(item).mul(factor).mul_add(scale.widen(), shift.widen()));
        if is_held {
            for (round, items) in held.iter().enumerate() {
                let [scales] = read_vectors::<_, NX, 1>(scale, &to, round, T::ZERO);
                let [shifts] = read_vectors::<_, NX, 1>(shift, &to, round, T::ZERO);
                to.set_vectors(round, &[core::array::from_fn(|i| result(items[i], scales[i], shifts[i]))]);
            }
        } else {
            for round in rounds(&to) {
                let [items] = read_round(from, &to, round, T::ZERO);
                let [scales] = read_round(scale, &to, round, T::ZERO);
                let [shifts] = read_round(shift, &to, round, T::ZERO);
                to.set_items(round, &core::array::from_fn(|i| result(items[i], scales[i], shifts[i])));
            }
        }
    }
}
