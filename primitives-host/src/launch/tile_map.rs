//! Descriptions of arrays, by which kernels copy tiles of them.

use crate::Result;
use crate::device::{Backend, Device};

/// A description of an array in the memory of a GPU. A kernel takes it as a parameter of 128 bytes, and copies tiles of the array to shared
/// memory by it (`cp.async.bulk.tensor`).
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct TileMap([u64; 16]);

/// An axis of an array that a [`TileMap`] describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileAxis {
    /// The number of elements.
    pub extent: u64,
    /// The distance from an element to the next, in bytes.
    pub stride: u64,
    /// The number of elements of a tile, which is at most 256.
    pub tile: u32,
}

impl TileMap {
    /// Describes an array of two to five axes, whose elements have 8 bytes. Returns `None` if the device or its driver
    /// does not copy tiles of such an array.
    ///
    /// The first axis is contiguous. The strides of the rest are multiples of 16, as is the address, and each is a multiple of the one before.
    /// A copy lays the elements of a tile down one after the other, those along the first axis first.
    pub fn of_words(device: &Device, address: u64, axes: &[TileAxis]) -> Result<Option<Self>> {
        match &device.backend {
            Backend::Emulator(_) => {
                let _ = (address, axes);
                Ok(None)
            }
            #[cfg(feature = "cuda")]
            Backend::Cuda(context) => Ok(context.tile_map(address, axes)?.map(Self)),
        }
    }
}
