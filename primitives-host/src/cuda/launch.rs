//! Launches as the driver takes them.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use primitives_cuda_driver::sys::{
    self, CUdeviceptr, CUfunction, CUlaunchAttribute, CUlaunchAttributeID, CUlaunchConfig, CUstream,
};
use primitives_gpu::Dim3;

use super::module::LoadedKernel;
use super::{Context, call};
use crate::launch::kernel::KernelInfo;
use crate::launch::tile_map::TileAxis;
use crate::{Error, Result};

/// A launch as the driver takes it.
pub(crate) struct KernelCall<'p> {
    kernel: Arc<LoadedKernel>,
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    pub(super) shared_bytes: u32,
    /// The kernel's PTX parameters in order, and a place for the last one.
    params: &'p mut [*mut c_void],
}

impl<'p> KernelCall<'p> {
    /// A launch within the device's limits. `params` are the kernel's parameters in order, null where zero-sized, and one
    /// more for the control, null too.
    pub(crate) fn new(
        context: &Context,
        info: &KernelInfo,
        kernel: Arc<LoadedKernel>,
        (grid, block): (Dim3, Dim3),
        shared_bytes: usize,
        params: &'p mut [*mut c_void],
    ) -> Result<Self> {
        if block.count() > kernel.max_threads as u64 {
            return Err(Error::LaunchLimit {
                kernel: info.name().into(),
                device: context.label().into(),
                what: "the number of threads in a block, given the kernel's registers,",
                asked: block.count(),
                limit: kernel.max_threads as u64,
            });
        }
        context.check_shared(info, &kernel, shared_bytes)?;
        // PTX has no zero-sized parameters: close the gaps.
        let mut kept = 0;
        for at in 0..params.len() {
            if !params[at].is_null() {
                params[kept] = params[at];
                kept += 1;
            }
        }
        Ok(Self { kernel, grid, block, shared_bytes: shared_bytes as u32, params: &mut params[..=kept] })
    }

    /// The parameters for the driver, with the address of the control that the kernel reports to. Of use as long as both
    /// borrows.
    pub(super) fn params(&mut self, control: &CUdeviceptr) -> *mut *mut c_void {
        let last = self.params.len() - 1;
        self.params[last] = ptr::from_ref(control).cast_mut().cast();
        self.params.as_mut_ptr()
    }

    pub(super) fn function(&self) -> CUfunction {
        self.kernel.function
    }

    /// Whether the kernel waits by itself for what was launched before it.
    pub(super) fn waits(&self) -> bool {
        self.kernel.waits
    }

    /// Enqueues the launch. With `overlap`, the kernel may begin while the last blocks of what was launched before it run.
    ///
    /// # Safety
    /// The parameters are the kernel's; memory they point to is alive until the stream has run the kernel. With `overlap`, the kernel
    /// [waits](Self::waits).
    pub(super) unsafe fn run(
        mut self,
        context: &Context,
        (stream, overlap): (CUstream, bool),
        control: CUdeviceptr,
    ) -> Result<()> {
        let mut attribute = CUlaunchAttribute {
            id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            programmaticStreamSerializationAllowed: 1,
            rest: [0; 15],
        };
        let (grid, block, shared) = (self.grid, self.block, self.shared_bytes);
        let config = CUlaunchConfig {
            gridDimX: grid.x,
            gridDimY: grid.y,
            gridDimZ: grid.z,
            blockDimX: block.x,
            blockDimY: block.y,
            blockDimZ: block.z,
            sharedMemBytes: shared,
            hStream: stream,
            attrs: &raw mut attribute,
            numAttrs: 1,
        };
        let (function, params, none) = (self.function(), self.params(&control), ptr::null_mut());
        // SAFETY: the caller's contract; grid, block and shared memory are within the device's limits.
        unsafe {
            if overlap {
                return call!(context, cuLaunchKernelEx(&raw const config, function, params, none));
            }
            call!(
                context,
                cuLaunchKernel(
                    function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream, params, none
                )
            )
        }
    }
}

impl Context {
    /// Returns the words of the description of an array of elements of 8 bytes, or `None` if the driver or the device has no copies of
    /// tiles. See [`TileMap`](crate::__private::TileMap).
    pub(crate) fn tile_map(&self, address: u64, axes: &[TileAxis]) -> Result<Option<[u64; 16]>> {
        if self.properties().compute_capability.is_none_or(|(major, _)| major < 9) {
            return Ok(None);
        }
        self.make_current()?;
        let extents: Vec<u64> = axes.iter().map(|axis| axis.extent).collect();
        let strides: Vec<u64> = axes.iter().skip(1).map(|axis| axis.stride).collect();
        let tile: Vec<u32> = axes.iter().map(|axis| axis.tile).collect();
        let (mut map, apart) = (sys::CUtensorMap { opaque: [0; 16] }, vec![1; axes.len()]);
        // SAFETY: the arrays have an element for each dimension, or one less for the strides; the address is not accessed.
        let code = unsafe {
            sys::cuTensorMapEncodeTiled(
                &raw mut map,
                sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
                axes.len() as u32,
                ptr::without_provenance_mut(address as usize),
                extents.as_ptr(),
                strides.as_ptr(),
                tile.as_ptr(),
                apart.as_ptr(),
                sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
                sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        };
        match code {
            sys::CUresult::CUDA_SUCCESS => Ok(Some(map.opaque)),
            // The second code says that it has no arrays with such axes.
            sys::CUresult::CUDA_ERROR_NOT_SUPPORTED | sys::CUresult::CUDA_ERROR_INVALID_VALUE => Ok(None),
            code => Err(self.error("cuTensorMapEncodeTiled", code)),
        }
    }
}
