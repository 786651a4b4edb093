//! Scans.

use kernel_primitives::prelude::*;
use kernel_primitives::view::Rows;

/// Computes the running sums of each row: `out[r][c] = x[r][0] + … + x[r][c]`. If `EXCLUSIVE`, the last term is left out.
///
/// `x` and `out` have `rows * columns` elements, row by row. It adds in the accumulation type, which is `f32` for `f16` and `bf16`, and
/// rounds the sums to `T` at the end.
///
/// Each block has one row, and at most 320 threads. If there are fewer blocks than rows, it is a fault.
/// [`row_dims`](super::row_dims)`(rows, columns, NX * ROUNDS)` chooses blocks that have the whole row in a tile, if possible. A block goes
/// through a row tile by tile, and reads and writes each element once. If the row is aligned to 16 bytes, it uses
/// [`block_inclusive_scan_rounds`] and accesses of 16 bytes. Otherwise it uses [`block_inclusive_scan_from`], in tiles of `NX` elements for
/// each thread.
///
/// Seed: `Cumsum`, for a block's items.
///
/// ```
/// use kernel_primitives::kernels::{cumsum_rows, row_dims};
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[1.0f32, 2.0, 3.0, 10.0, 20.0, 30.0])?;
/// let mut out = stream.buffer_zeroed::<f32>(6)?;
/// cumsum_rows::<f32, 4, 8, false>::launch(&stream, row_dims(2, 3, 32), 2, 3, &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [1.0, 3.0, 6.0, 10.0, 30.0, 60.0]);
/// cumsum_rows::<f32, 4, 8, true>::launch(&stream, row_dims(2, 3, 32), 2, 3, &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [0.0, 1.0, 3.0, 0.0, 10.0, 30.0]);
/// # Ok(())
/// # }
/// ```
#[kernel(equal_len(x, out), max_threads(320), min_blocks(2), instantiate(
    <f32, 4, 8, false>, <f64, 2, 4, false>, <f16, 8, 4, false>, <bf16, 8, 4, false>, <i32, 4, 8, false>, <i64, 2, 4, false>,
    <f32, 4, 8, true>, <f64, 2, 4, true>, <f16, 8, 4, true>, <bf16, 8, 4, true>, <i32, 4, 8, true>, <i64, 2, 4, true>,
))]
pub fn cumsum_rows<T, const NX: usize, const ROUNDS: usize, const EXCLUSIVE: bool>(
    cx: Block,
    rows: usize,
    columns: usize,
    x: Global<T>,
    mut out: GlobalMut<T, Rows<NX>>,
    mut shared: Shared<ScanStorage<T::Accum>>,
) where
    T: Accumulate,
{
    // Each block has one row. In a loop over rows, the compiler would keep all positions in registers.
    cx.require_at_most(rows, cx.grid_blocks());
    let Some(row) = cx.rows(rows).next() else { return };
    let from = x.row(row.index(), columns);
    // SAFETY: the number of columns is the launch's.
    let mut to = unsafe { out.row(row, columns) };
    // This is the value before the first item. It is +0 if it is the first result, and otherwise a value that keeps −0.
    let mut carry = if EXCLUSIVE { T::Accum::ZERO } else { Add.identity() };
    if from.in_vectors::<NX>() && to.in_vectors() {
        // SAFETY: as above; all threads of the block come here, and nothing of the row was accessed.
        let mut to = unsafe { out.row_by_warps::<ROUNDS>(row, columns) };
        // This has few bits, because it is held together with all the items.
        let mut next = 0u32;
        while next as usize * to.tile() < columns {
            let tile = next as usize;
            let mut items = [[T::ZERO; NX]; ROUNDS];
            to.read_vectors_of(from, tile, &mut items);
            let items = items.map(|items| items.map(T::widen));
            let (sums, total) = if EXCLUSIVE {
                block_exclusive_scan_rounds(cx, &mut shared, &items, carry, Add)
            } else {
                block_inclusive_scan_rounds(cx, &mut shared, &items, carry, Add)
            };
            to.set_vectors(tile, &sums.map(|sums| sums.map(T::narrow)));
            carry = carry.add(total);
            next += 1;
        }
    } else {
        let mut round = 0;
        while round * to.stride() < columns {
            let mut items = [T::ZERO; NX];
            from.read_items(to.first(round), &mut items);
            let items = items.map(T::widen);
            let (sums, total) = if EXCLUSIVE {
                block_exclusive_scan_from(cx, &mut shared, &items, carry, Add)
            } else {
                block_inclusive_scan_from(cx, &mut shared, &items, carry, Add)
            };
            to.set_items(round, &sums.map(T::narrow));
            carry = carry.add(total);
            round += 1;
        }
    }
}
