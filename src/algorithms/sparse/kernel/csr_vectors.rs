//! The kernel of products of a matrix in compressed rows and several vectors.

use kernel_primitives::functor::{Epilogue, Reduction};
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;

use super::csr::{CSR_THREADS, Csr, blocks, read};

/// Results that a lane has at a time if there are more vectors than lanes, and entries that it has under way otherwise.
const AT_ONCE: usize = 4;

/// The kernel of [`algorithms::spmm`](kernel_primitives::algorithms::spmm): so many neighbouring `lanes` have a row. `parts` of them, which
/// are neighbours, share the entries for a vector, and the next ones have the next vector. Both are powers of two, up to 32.
///
/// The item of vector `v` at column `c` is `x[c * vectors + v]`, and the result of row `r` is `y[r * vectors + v]`. Lanes of one part and
/// neighbouring vectors read neighbouring items. What the epilogue reads is in `z`, which lies as `y` does, or in `y` if `z` is empty.
///
/// Rows and entries that another launch has changed since the matrix was checked are a fault, or wrong numbers, and no access
/// outside.
#[kernel(launch(pub(crate)), threads(CSR_THREADS), min_blocks(blocks::<R::Accum>([8, 8, 4])))]
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
pub fn csr_row_vectors<V, S, I, R, E>(
    cx: Block,
    offsets: Global<I>,
    columns: Global<I>,
    values: Global<V>,
    x: Input<S>,
    z: Global<E::Output>,
    mut y: GlobalMut<E::Output>,
    op: R,
    epilogue: E,
    vectors: usize,
    lanes: u32,
    parts: u32,
) where
    V: Element,
    S: Source,
    I: Integer + ConvertTo<u64>,
    R: Reduction<(V, S::Item)> + KernelParam,
    E: Epilogue<R::Output> + KernelParam,
{
    let a = Csr { offsets, columns, values };
    let shape = Shape { vectors, lanes, parts };
    if vectors <= shape.width() {
        rows::<V, S, I, R, E, 1, AT_ONCE>(cx, &a, x, z, &mut y, &op, &epilogue, shape);
    } else {
        rows::<V, S, I, R, E, AT_ONCE, 1>(cx, &a, x, z, &mut y, &op, &epilogue, shape);
    }
}

/// How lanes share rows and vectors.
#[derive(Clone, Copy)]
struct Shape {
    vectors: usize,
    lanes: u32,
    parts: u32,
}

impl Shape {
    /// Vectors that the lanes of a row have side by side.
    #[inline(always)]
    fn width(self) -> usize {
        (self.lanes >> self.parts.trailing_zeros()) as usize
    }
}

/// The kernel for lanes that have `RESULTS` at a time, and `AHEAD` entries under way.
#[allow(clippy::too_many_arguments, reason = "a kernel's parameters")]
fn rows<V, S, I, R, E, const RESULTS: usize, const AHEAD: usize>(
    cx: Block,
    a: &Csr<'_, V, I>,
    x: Input<S>,
    z: Global<E::Output>,
    y: &mut GlobalMut<E::Output>,
    op: &R,
    epilogue: &E,
    shape: Shape,
) where
    V: Element,
    S: Source,
    I: Integer + ConvertTo<u64>,
    R: Reduction<(V, S::Item)>,
    E: Epilogue<R::Output>,
{
    let Shape { vectors, lanes, parts } = shape;
    let row = (cx.block_rank() * CSR_THREADS + cx.thread_rank() as usize) >> lanes.trailing_zeros();
    let lane = cx.lane() & (lanes - 1);
    let (own, part, step) = ((lane >> parts.trailing_zeros()) as usize, (lane & (parts - 1)) as usize, parts as usize);
    let (begin, end) = a.bounds(row);
    let mut first = 0;
    while first < vectors {
        let vector = |k: usize| first + own + k * shape.width();
        let mut totals = [op.identity(); RESULTS];
        let mut at = begin.saturating_add(part);
        while at < end {
            // Loads that do not wait for each other.
            let mut entries = [(0, V::ZERO); AHEAD];
            for (i, (column, value)) in entries.iter_mut().enumerate() {
                let entry = at.saturating_add(i * step);
                if entry < end {
                    (*column, *value) = (a.column(entry), a.values[entry]);
                }
            }
            let mut products = [[op.identity(); RESULTS]; AHEAD];
            for (i, products) in products.iter_mut().enumerate() {
                let (column, value) = entries[i];
                for (k, product) in products.iter_mut().enumerate() {
                    if at.saturating_add(i * step) < end && vector(k) < vectors {
                        // A column that was written after the check may be any.
                        let place = column.wrapping_mul(vectors).wrapping_add(vector(k));
                        *product = op.pre((value, x.at(place)), column as u64);
                    }
                }
            }
            for products in &products {
                for (total, &product) in totals.iter_mut().zip(products) {
                    *total = op.combine(*total, product);
                }
            }
            at = at.saturating_add(AHEAD * step);
        }
        for (k, &total) in totals.iter().enumerate() {
            let total = warp_group_reduce(cx, total, op.reducer(), parts);
            if part == 0 && row < a.rows() && vector(k) < vectors {
                let place = row * vectors + vector(k);
                let total = op.post(total, end.saturating_sub(begin) as u64);
                // SAFETY: one lane has the row, the vector and the first part.
                unsafe {
                    let old = read::<R::Output, E>(y, z, place, epilogue);
                    y.write(place, epilogue.apply(total, old));
                }
            }
        }
        first += RESULTS * shape.width();
    }
}
