//! Reads of an input whose shape is broadcast to that of the output.

use core::fmt;

use super::divisor::{FastDivMod, IndexInt};
use crate::element::Element;
use crate::simt::Block;
use crate::view::Global;
use crate::warp::unrolled;

/// The largest number of dimensions of a [`BroadcastConfig`].
pub const MAX_RANK: usize = 9;

/// The reason why an input cannot be broadcast to an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BroadcastError {
    /// There are more than [`MAX_RANK`] dimensions after all possible merges.
    Rank {
        /// The number of dimensions that remain.
        rank: usize,
    },
    /// The input has more dimensions than the output.
    InputRank {
        /// The number of dimensions of the input.
        input: usize,
        /// The number of dimensions of the output.
        output: usize,
    },
    /// An extent of the input is neither 1 nor that of the output.
    Extent {
        /// The dimension of the output, counted from 0, the slowest one.
        axis: usize,
        /// The extent of the input.
        input: usize,
        /// The extent of the output.
        output: usize,
    },
    /// There are more elements than the index type can count.
    Elements {
        /// The number of bits of the index type.
        bits: u32,
    },
}

impl fmt::Display for BroadcastError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Rank { rank } => {
                write!(f, "{rank} dimensions are left after merging; a broadcast has at most {MAX_RANK}")
            }
            Self::InputRank { input, output } => {
                write!(f, "an input of {input} dimensions cannot be broadcast to an output of {output}")
            }
            Self::Extent { axis, input, output } => {
                write!(
                    f,
                    "dimension {axis}: an extent of {input} cannot be broadcast to {output}; it must be 1 or {output}"
                )
            }
            Self::Elements { bits } => {
                write!(f, "the output or the input has 2^{bits} elements or more: use a wider index type, `u64`")
            }
        }
    }
}

impl core::error::Error for BroadcastError {}

#[derive(Clone, Copy, Debug, PartialEq, Eq, crate::KernelParam)]
#[repr(C)]
struct Dimension<I: IndexInt> {
    extent: FastDivMod<I>,
    stride: I,
}

/// Maps the index of an element of the output to the index of an element of the input, which is broadcast to the output.
///
/// It is made on the host, and passed to a kernel by value. Neighbouring dimensions that are broadcast in the same way are merged, so equal
/// shapes cost no division, and a row or a column that is broadcast costs one. `I` counts elements. `u32` is faster, if both arrays have
/// fewer than 2^32.
///
/// Seed: `BroadcastConfig`, which takes the shapes in reverse order and counts in 32 bits.
///
/// ```
/// use kernel_primitives::io::BroadcastConfig;
///
/// // A column [2, 1] over the rows of [2, 3]; shapes are outermost first.
/// let column = BroadcastConfig::<u32>::new(&[2, 3], &[2, 1])?;
/// assert_eq!((0..6).map(|i| column.index(i)).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 1]);
/// // A row [3]: missing dimensions are 1.
/// let row = BroadcastConfig::<u32>::new(&[2, 3], &[3])?;
/// assert_eq!((0..6).map(|i| row.index(i)).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2]);
/// let error = BroadcastConfig::<u32>::new(&[2, 3], &[2]).unwrap_err();
/// assert_eq!(error.to_string(), "dimension 1: an extent of 2 cannot be broadcast to 3; it must be 1 or 3");
/// # Ok::<(), kernel_primitives::io::BroadcastError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, crate::KernelParam)]
#[repr(C)]
pub struct BroadcastConfig<I: IndexInt> {
    /// The fastest dimension first. After `rank`, extents are 1.
    dimensions: [Dimension<I>; MAX_RANK],
    rank: u32,
}

impl<I: IndexInt> BroadcastConfig<I> {
    /// Makes the broadcast of an input to an output from their shapes, outermost dimension first, as in NumPy: shapes are aligned at the
    /// fastest dimension, missing dimensions are 1, and an extent of 1 is repeated.
    pub fn new(output: &[usize], input: &[usize]) -> Result<Self, BroadcastError> {
        if input.len() > output.len() {
            return Err(BroadcastError::InputRank { input: input.len(), output: output.len() });
        }
        let unit = Dimension { extent: FastDivMod::new(I::ONE), stride: I::ZERO };
        let mut config = Self { dimensions: [unit; MAX_RANK], rank: 0 };
        // The dimension that is being merged: its extent, its stride, and the stride that would continue it.
        let mut open: Option<(usize, usize, usize)> = None;
        let (mut elements, mut input_elements, mut rank) = (1usize, 1usize, 0);
        let mut push = |(extent, stride, _): (usize, usize, usize)| {
            if let Some(place) = config.dimensions.get_mut(rank) {
                *place = Dimension { extent: FastDivMod::new(I::truncate(extent)), stride: I::truncate(stride) };
            }
            rank += 1;
        };
        // A shape without elements is never indexed, so nothing has to fit.
        let is_empty = output.contains(&0);
        for back in 1..=output.len() {
            let axis = output.len() - back;
            let extent = output[axis];
            let own = if back <= input.len() { input[input.len() - back] } else { 1 };
            if own != extent && own != 1 {
                return Err(BroadcastError::Extent { axis, input: own, output: extent });
            }
            if is_empty {
                continue;
            }
            let too_many = BroadcastError::Elements { bits: 8 * size_of::<I>() as u32 };
            let stride = if own == 1 { 0 } else { input_elements };
            elements = elements.checked_mul(extent).ok_or(too_many)?;
            input_elements = input_elements.checked_mul(own).ok_or(too_many)?;
            if elements.max(input_elements) as u128 >= 1u128 << (8 * size_of::<I>()) {
                return Err(too_many);
            }
            if extent == 1 {
                continue;
            }
            open = Some(match open {
                Some((inner, inner_stride, next)) if stride == next => {
                    let merged = inner * extent;
                    (merged, inner_stride, inner_stride * merged)
                }
                before => {
                    if let Some(before) = before {
                        push(before);
                    }
                    (extent, stride, stride * extent)
                }
            });
        }
        if let Some(last) = open {
            push(last);
        }
        if rank > MAX_RANK {
            return Err(BroadcastError::Rank { rank });
        }
        config.rank = rank as u32;
        Ok(config)
    }

    /// The number of dimensions that remain after merges: 0 for a scalar or if there are no elements, 1 for equal shapes.
    #[inline(always)]
    pub fn rank(&self) -> usize {
        self.rank as usize
    }

    /// Returns the index of the input for `index` of the output.
    pub fn index(&self, index: usize) -> usize {
        let mut rest = I::truncate(index);
        let mut found = I::ZERO;
        if self.rank == 0 {
            return 0;
        }
        // There is no loop, so the dimensions are read from fixed places of the kernel's parameters.
        unrolled!(i < MAX_RANK, {
            let dimension = &self.dimensions[i];
            // The rest of an index inside the output is inside the outermost dimension.
            if i as u32 + 1 == self.rank {
                return found.plus(rest, dimension.stride).to_usize();
            }
            let (quotient, remainder) = dimension.extent.div_mod(rest);
            rest = quotient;
            found = found.plus(remainder, dimension.stride);
        });
        let _ = rest;
        found.to_usize()
    }

    /// Describes the input along `count` elements of the output from `index`, if all of these are in one row of the fastest dimension.
    /// Returns the input's index of the first one, and the step, 0 or 1.
    fn run(&self, index: usize, count: usize) -> Option<(usize, usize)> {
        let fastest = &self.dimensions[0];
        let (_, column) = fastest.extent.div_mod(I::truncate(index));
        let fits = self.rank <= 1 || column.to_usize() + count <= fastest.extent.divisor().to_usize();
        if fits { Some((self.index(index), fastest.stride.to_usize())) } else { None }
    }
}

/// Reads a block's part of an input that is broadcast to the output, in the blocked arrangement. Thread `t` gets the items for the output's
/// elements `first + t * NX` to `first + t * NX + NX`.
///
/// - `dst`: the registers of the thread; an item at or after `total` keeps its value.
/// - `src`: the whole input.
/// - `first`: the first element of the block's tile of the output, from [`Tile::start`](crate::view::Tile::start).
/// - `total`: the number of elements of the output, which is the guard.
///
/// If a thread's items are in one row of the output's fastest dimension, they need one index computation. They are then one repeated value,
/// or consecutive values, which are read in accesses of up to 16 bytes if they are aligned. No shared memory, no barrier.
///
/// Seed: `ReadDataBc<T, NX, 1, IsBoundary>(dst, src, block_offset, config, total_num_output, read_lens)`, which computes one index for each
/// item, in 32 bits.
///
/// ```
/// use kernel_primitives::prelude::*;
/// use kernel_primitives::io::{BroadcastConfig, read_data_bc};
///
/// /// out = x + row, the row added to each row of the matrix `x`.
/// #[kernel(equal_len(x, out))]
/// fn add_row(
///     cx: Block,
///     x: Global<f32>,
///     row: Global<f32>,
///     config: BroadcastConfig<u32>,
///     mut out: GlobalMut<f32, Tiles<4>>,
/// ) {
///     for tile in cx.tiles::<4>(out.len()) {
///         let (mut a, mut b) = (init::<f32, 4>(0.0), init::<f32, 4>(0.0));
///         read_data(cx, &mut a, x.tile(tile));
///         read_data_bc(cx, &mut b, row, tile.start(), &config, out.len());
///         write_data(cx, out.tile(tile), &kernel_primitives::thread::elementwise_binary(&a, &b, Add));
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let row = stream.buffer_from(&[10.0f32, 20.0, 30.0])?;
/// let mut out = stream.buffer_zeroed::<f32>(6)?;
/// add_row::launch(&stream, (1, 32), &x, &row, BroadcastConfig::new(&[2, 3], &[3])?, &mut out)?;
/// assert_eq!(out.to_vec()?, [11.0, 22.0, 33.0, 14.0, 25.0, 36.0]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn read_data_bc<T: Element, I: IndexInt, const NX: usize>(
    cx: Block<'_>,
    dst: &mut [T; NX],
    src: Global<'_, T>,
    first: usize,
    config: &BroadcastConfig<I>,
    total: usize,
) {
    let first = first.saturating_add(cx.thread_rank() as usize * NX);
    if total >= NX && first <= total - NX {
        match config.run(first, NX) {
            Some((index, 1)) => return src.slice(index..index.saturating_add(NX)).read_items(0, dst),
            Some((index, _)) => {
                *dst = [src[index]; NX];
                return;
            }
            None => {}
        }
    }
    for (i, item) in dst.iter_mut().enumerate() {
        let index = first.saturating_add(i);
        if index < total {
            *item = src[config.index(index)];
        }
    }
}

/// Reads a block's part of an input that is broadcast to the output, in two dimensions. Item `[y][x]` of thread `t` belongs to the output's
/// element `first + t + x * stride_x + y * stride_y`.
///
/// [`Block::thread_idx`]`.x` numbers the threads. `src`, `first` and `total` are as for [`read_data_bc`]. An item at or after `total` keeps
/// its value.
///
/// Seed: `ReadDataBc<T, NX, NY, IsBoundary>(dst, src, block_offset, config, total_num_output, stride_nx, stride_ny)`.
///
/// ```
/// use kernel_primitives::prelude::*;
/// use kernel_primitives::io::{BroadcastConfig, read_data_bc_2d};
///
/// /// A row of numbers for each row of the output, two of whose elements a thread has.
/// #[kernel]
/// fn repeated(cx: Block, row: Global<u32>, config: BroadcastConfig<u32>, mut out: GlobalMut<[[u32; 2]; 1]>) {
///     let (threads, total) = (cx.block_threads() as usize, out.len() * 2);
///     for i in cx.items(out.len()) {
///         let mut items = [[0; 2]];
///         read_data_bc_2d(cx, &mut items, row, 0, &config, total, threads, 0);
///         out.set(i, items);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = kernel_primitives::Device::emulator().stream()?;
/// let row = stream.buffer_from(&[10u32, 20, 30])?;
/// let config = BroadcastConfig::new(&[2, 3], &[3]).expect("a row");
/// let mut out = stream.buffer_zeroed::<[[u32; 2]; 1]>(3)?;
/// repeated::launch(&stream, (1, 3), &row, config, &mut out)?;
/// assert_eq!(out.to_vec()?, [[[10, 10]], [[20, 20]], [[30, 30]]]);
/// # Ok(())
/// # }
/// ```
#[track_caller]
#[allow(clippy::too_many_arguments, reason = "the seed's")]
pub fn read_data_bc_2d<T: Element, I: IndexInt, const NX: usize, const NY: usize>(
    cx: Block<'_>,
    dst: &mut [[T; NX]; NY],
    src: Global<'_, T>,
    first: usize,
    config: &BroadcastConfig<I>,
    total: usize,
    stride_x: usize,
    stride_y: usize,
) {
    let first = first.saturating_add(cx.thread_idx().x as usize);
    for (y, row) in dst.iter_mut().enumerate() {
        for (x, item) in row.iter_mut().enumerate() {
            let index = first.saturating_add(x.saturating_mul(stride_x)).saturating_add(y.saturating_mul(stride_y));
            if index < total {
                *item = src[config.index(index)];
            }
        }
    }
}
