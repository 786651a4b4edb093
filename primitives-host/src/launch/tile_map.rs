//! Descriptions of arrays, by which kernels copy tiles of them.

use crate::Result;
use crate::device::{Backend, Device};

/// A description of an array in the memory of a GPU. A kernel takes it as a parameter of 128 bytes, and copies tiles of the array to shared
/// memory by it (`cp.async.bulk.tensor`).
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct TileMap([u64; 16]);

impl TileMap {
    /// Describes an array of three dimensions, whose elements have 8 bytes. Returns `None` if the device or its driver has no such copies.
    ///
    /// The first dimension is contiguous. `strides` are the distances along the second and the third one, in bytes. They are multiples of 16,
    /// and so is the address. A tile has at most 256 elements along each dimension.
    pub fn of_words(
        device: &Device,
        address: u64,
        extents: [u64; 3],
        strides: [u64; 2],
        tile: [u32; 3],
    ) -> Result<Option<Self>> {
        match &device.backend {
            Backend::Emulator(_) => {
                let _ = (address, extents, strides, tile);
                Ok(None)
            }
            #[cfg(feature = "cuda")]
            Backend::Cuda(context) => Ok(context.tile_map(address, extents, strides, tile)?.map(Self)),
        }
    }
}
