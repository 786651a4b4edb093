//! Uses storage of `candle` as tensors of this library during an operation. You may copy this file into a program that uses both.
//!
//! `candle` calls an operation while the storage of its arguments is locked, and takes the storage of the result. So this library reads
//! operands where `candle` has them, in any layout, and computes the result where `candle` wants it. On the CPU, the emulator's memory is
//! host memory.

use candle_core::{CpuStorage, Error, Layout, Result, Shape};
use kernel_primitives::expr::Tensor;
use kernel_primitives::{Buffer, Stream};

#[cfg(feature = "cuda")]
pub use self::gpu::{adopt, on_gpu};

/// Memory of `candle` as tensors, each of them once: several operands may be views of one.
struct Lent<'a> {
    stream: &'a Stream,
    /// With the addresses.
    whole: Vec<(u64, Tensor<f32>)>,
}

impl<'a> Lent<'a> {
    fn on(stream: &'a Stream) -> Self {
        Self { stream, whole: Vec::new() }
    }

    /// A view of memory of `candle`, without a copy.
    ///
    /// # Safety
    ///
    /// `address` is that of `len` elements on the stream's device; on the host, their provenance is exposed. They stay there until this and
    /// its views are gone and, on a GPU, until the work on them is over. Meanwhile only these views write them, or nobody does. Two calls
    /// with one address name the same memory; two calls with different addresses name memory that does not overlap.
    unsafe fn view(&mut self, address: u64, len: usize, layout: &Layout) -> kernel_primitives::Result<Tensor<f32>> {
        let whole = match self.whole.iter().find(|(known, _)| *known == address) {
            Some((_, whole)) => whole.clone(),
            None => {
                // Memory without elements may have no address, which only `from_raw_owned` takes.
                let buffer = if self.stream.device().is_gpu() && len > 0 {
                    // Dropped without a wait: what `candle` does on the stream comes after the work.
                    // SAFETY: the caller's contract.
                    unsafe { Buffer::from_raw_borrowed(self.stream, address, len)? }
                } else {
                    // SAFETY: the caller's contract; nothing has to be kept.
                    unsafe { Buffer::from_raw_owned(self.stream, address, len, ())? }
                };
                assert!(len == 0 || buffer.address() == address, "the memory is that of `candle`");
                let whole = Tensor::from_buffer(self.stream, len, buffer)?;
                self.whole.push((address, whole.clone()));
                whole
            }
        };
        let strides: Vec<isize> = layout.stride().iter().map(|&stride| stride as isize).collect();
        whole.slice(layout.start_offset() as isize..)?.as_strided(layout.dims(), &strides)
    }
}

/// What `compute` makes of views of the inputs, in new memory of the host.
///
/// # Safety
///
/// `compute` keeps no view, and only reads the first ones.
pub unsafe fn on_host(
    stream: &Stream,
    inputs: &[(&CpuStorage, &Layout)],
    shape: Shape,
    compute: impl FnOnce(&[Tensor<f32>], &Tensor<f32>) -> kernel_primitives::Result<()>,
) -> Result<(CpuStorage, Shape)> {
    if stream.device().is_gpu() {
        candle_core::bail!("tensors on the CPU, and a stream of {}", stream.device());
    }
    let mut out = vec![0.0f32; shape.elem_count()];
    {
        let (mut lent, mut views) = (Lent::on(stream), Vec::new());
        for (storage, layout) in inputs {
            let elements = storage.as_slice::<f32>()?;
            let address = elements.as_ptr().expose_provenance() as u64;
            // SAFETY: the storage is borrowed, and is read; the views are gone at the end of this block.
            views.push(unsafe { lent.view(address, elements.len(), layout) }.map_err(Error::wrap)?);
        }
        let address = out.as_mut_ptr().expose_provenance() as u64;
        // SAFETY: as above; the memory is nobody else's.
        let target = unsafe { lent.view(address, out.len(), &Layout::contiguous(&shape)) }.map_err(Error::wrap)?;
        compute(&views, &target).map_err(Error::wrap)?;
    }
    Ok((CpuStorage::F32(out), shape))
}

#[cfg(feature = "cuda")]
mod gpu {
    use candle_core::backend::BackendStorage;
    use candle_core::cuda::cudarc::driver::{DevicePtr, DevicePtrMut};
    use candle_core::{CudaDevice, CudaStorage, Error, Layout, Result, Shape};
    use kernel_primitives::expr::Tensor;
    use kernel_primitives::{Device, Stream};

    use super::Lent;

    /// The stream that `candle` enqueues its work on.
    ///
    /// # Safety
    ///
    /// The device is one of `new_cuda_with_stream`: the stream of `new_cuda` is another one on each thread. Its stream is adopted once at
    /// a time. If it is captured, the contract is that of [`Stream::is_capturing`], too.
    pub unsafe fn adopt(device: &CudaDevice) -> kernel_primitives::Result<Stream> {
        let theirs = device.cuda_stream();
        // SAFETY: a context of the GPU that the stream keeps: its primary one, which this library holds by itself.
        let device = unsafe { Device::from_raw_context(theirs.context().cu_ctx().cast())? };
        // SAFETY: a stream of that context, which its owner keeps; the caller's contract.
        unsafe { Stream::from_raw_owned(&device, theirs.cu_stream().cast(), theirs) }
    }

    /// What `compute` makes of views of the inputs, in new memory of the GPU. It is only enqueued when this returns.
    ///
    /// # Safety
    ///
    /// `compute` keeps no view, and only reads the first ones. If the stream is one of a GPU, [`adopt`] made it.
    pub unsafe fn on_gpu(
        stream: &Stream,
        inputs: &[(&CudaStorage, &Layout)],
        shape: Shape,
        compute: impl FnOnce(&[Tensor<f32>], &Tensor<f32>) -> kernel_primitives::Result<()>,
    ) -> Result<(CudaStorage, Shape)> {
        let device = inputs[0].0.device().clone();
        let theirs = device.cuda_stream();
        if !stream.device().is_gpu() || stream.as_raw() != theirs.cu_stream().cast() {
            candle_core::bail!("tensors of another device of candle than the stream");
        }
        // SAFETY: all of it is computed before it is read.
        let mut out = unsafe { device.alloc::<f32>(shape.elem_count())? };
        {
            // `cudarc` makes the stream wait for uses on others, and notes these uses at the end of the block.
            let mut reads = Vec::new();
            for (storage, _) in inputs {
                let slice = storage.as_cuda_slice::<f32>()?;
                reads.push((slice.device_ptr(&theirs), slice.len()));
            }
            let len = out.len();
            let (address, _write) = out.device_ptr_mut(&theirs);
            let (mut lent, mut views) = (Lent::on(stream), Vec::new());
            for (((address, _), len), (_, layout)) in reads.iter().zip(inputs) {
                // SAFETY: the storage is borrowed, and is read; the views are gone at the end of this block. Memory of `candle` is freed in
                // the order of the stream.
                views.push(unsafe { lent.view(*address, *len, layout) }.map_err(Error::wrap)?);
            }
            // SAFETY: as above; the memory is nobody else's.
            let target = unsafe { lent.view(address, len, &Layout::contiguous(&shape)) }.map_err(Error::wrap)?;
            compute(&views, &target).map_err(Error::wrap)?;
        }
        Ok((CudaStorage::wrap_cuda_slice(out, device), shape))
    }
}
