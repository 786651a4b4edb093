//! Sorts of rows, and the first few elements of each row.

use kernel_primitives::block::{RadixSortStorage, TopKStorage, block_radix_sort_pairs_to_striped, block_top_k_of};
use kernel_primitives::functor::{Direction, Greater, Less};
use kernel_primitives::prelude::*;
use kernel_primitives::view::Rows;

/// Sorts each row of a matrix. The sort is stable. `keys` gets the sorted rows. `indices` gets the place in its row where each key was.
///
/// `x`, `keys` and `indices` are equally long, and have whole rows of `columns` elements. A row has at most `THREADS * ITEMS` elements.
/// Longer rows are a fault that names the limit. Launch blocks of `THREADS` threads, a multiple of 32, at most one for each row. `order` is
/// [`Less`](kernel_primitives::functor::Less) or [`Greater`](kernel_primitives::functor::Greater).
///
/// It makes one pass over memory. A block sorts its row in shared memory with
/// [`block_radix_sort_pairs`](kernel_primitives::block::block_radix_sort_pairs), with the positions as 16-bit values.
///
/// ```
/// use kernel_primitives::functor::Less;
/// use kernel_primitives::kernels::sort_rows;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&[3.0f32, 1.0, 2.0, -1.0, -3.0, -1.0])?;
/// let (mut keys, mut indices) = (stream.buffer_zeroed::<f32>(6)?, stream.buffer_zeroed::<u32>(6)?);
/// sort_rows::<f32, Less, 128, 8>::launch(&stream, (2, 128), &x, 3, &mut keys, &mut indices, Less)?;
/// assert_eq!(keys.to_vec()?, [1.0, 2.0, 3.0, -3.0, -1.0, -1.0]);
/// assert_eq!(indices.to_vec()?, [1, 2, 0, 1, 0, 2]);
/// # Ok(())
/// # }
/// ```
#[kernel(threads(THREADS), min_blocks(512 / THREADS), equal_len(x, keys, indices), instantiate(
    <f32, Less, 128, 8>, <f32, Less, 512, 8>, <f32, Greater, 128, 8>, <f32, Greater, 512, 8>,
    <f16, Less, 128, 8>, <f16, Less, 512, 8>, <f16, Greater, 128, 8>, <f16, Greater, 512, 8>,
    <i32, Less, 128, 8>, <i32, Less, 512, 8>, <i64, Less, 256, 8>, <f64, Less, 256, 8>,
))]
pub fn sort_rows<K, O, const THREADS: usize, const ITEMS: usize>(
    cx: Block,
    x: Global<K>,
    columns: u32,
    mut keys: GlobalMut<K, Rows<1>>,
    mut indices: GlobalMut<u32, Rows<1>>,
    order: O,
    mut shared: Shared<RadixSortStorage<THREADS, ITEMS, K, u16>>,
) where
    K: SortKey,
    O: Direction,
{
    let columns = columns as usize;
    cx.require_at_most(columns, THREADS * ITEMS);
    for row in cx.rows(x.len().checked_div(columns).unwrap_or(0)) {
        let first = cx.thread_rank() as usize * ITEMS;
        let mut key = init::<K, ITEMS>(O::last());
        x.row(row.index(), columns).read_items(first, &mut key);
        let mut position: [u16; ITEMS] = core::array::from_fn(|i| (first + i) as u16);
        // Missing keys stay last: no key comes after them, and they are after their equals.
        let bits = 0..K::SORT_BITS;
        block_radix_sort_pairs_to_striped(cx, &mut shared, &mut key, &mut position, bits, order);
        // SAFETY: the number of columns is the launch's.
        let (mut keys, mut indices) = unsafe { (keys.row(row, columns), indices.row(row, columns)) };
        keys.set_striped(&key);
        indices.set_striped(&elementwise_unary(&position, |position: u16| position as u32));
    }
}

/// Finds the first `k` elements of each row of a matrix, and sorts them. It also returns their indices in the row. With
/// [`Less`](kernel_primitives::functor::Less), these are the smallest elements, and with [`Greater`](kernel_primitives::functor::Greater),
/// the largest. Among equal keys, the key with the lower index comes first.
///
/// `x` has whole rows of `columns` elements, up to 2^32 - 1. `keys` and `indices` have as many rows of `k` elements. `k` is at most
/// `columns`, and at most half of `THREADS * ITEMS`. Otherwise it is a fault. Launch blocks of `THREADS` threads, at most one for each row.
///
/// It makes one pass over memory, with [`block_top_k_of`](kernel_primitives::block::block_top_k_of).
///
/// ```
/// use kernel_primitives::functor::Greater;
/// use kernel_primitives::kernels::top_k_rows;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = stream.buffer_from(&(0..1000).map(|i| (i * 37 % 500) as f32).collect::<Vec<f32>>())?;
/// let (mut keys, mut indices) = (stream.buffer_zeroed::<f32>(6)?, stream.buffer_zeroed::<u32>(6)?);
/// top_k_rows::<f32, Greater, 128, 8, 1024>::launch(&stream, (2, 128), &x, 500, 3, &mut keys, &mut indices, Greater)?;
/// assert_eq!(keys.to_vec()?, [499.0, 498.0, 497.0, 499.0, 498.0, 497.0]);
/// # Ok(())
/// # }
/// ```
#[kernel(threads(THREADS), min_blocks(1024 / THREADS), equal_len(keys, indices), instantiate(
    <f32, Less, 128, 8, 1024>, <f32, Greater, 128, 8, 1024>, <f32, Less, 256, 8, 2048>, <f32, Greater, 256, 8, 2048>,
    <f16, Less, 256, 8, 2048>, <f16, Greater, 256, 8, 2048>, <i32, Less, 256, 8, 2048>, <i32, Greater, 256, 8, 2048>,
))]
pub fn top_k_rows<K, O, const THREADS: usize, const ITEMS: usize, const TILE: usize>(
    cx: Block,
    x: Global<K>,
    columns: u32,
    k: u32,
    mut keys: GlobalMut<K, Rows<ITEMS>>,
    mut indices: GlobalMut<u32, Rows<ITEMS>>,
    order: O,
    mut shared: Shared<TopKStorage<K, TILE>>,
) where
    K: SortKey,
    O: Direction,
{
    let (columns, k) = (columns as usize, k as usize);
    cx.require_at_most(k, columns);
    for row in cx.rows(x.len().checked_div(columns).unwrap_or(0)) {
        let from = x.row(row.index(), columns);
        let (key, index) = block_top_k_of::<ITEMS, TILE, K, O>(cx, &mut shared, from, k, order);
        // SAFETY: the number of results is the launch's.
        let (mut keys, mut indices) = unsafe { (keys.row(row, k), indices.row(row, k)) };
        keys.set_items(0, &key);
        indices.set_items(0, &index);
    }
}
