//! Tensors of other libraries.

use std::ptr::NonNull;
use std::sync::Arc;

use primitives_host::storage::{Storage, other_emulated_owner};
use primitives_host::{Buffer, Device, Error, Result, Stream};

use super::abi::{DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor};
use super::abi::{FLAG_IS_COPIED, FLAG_READ_ONLY};
use super::element::DlpackElement;
use crate::expr::layout::shape::Layout;
use crate::expr::{MAX_RANK, Scalar, Shape, Tensor};

/// A managed tensor of another library. This type owns it, and gives the memory back when it is dropped.
///
/// [`Tensor::from_dlpack`] and [`into_buffer`](Self::into_buffer) make a tensor or a buffer from it, which gives the memory back in the
/// end.
#[derive(Debug)]
pub struct DlpackTensor(Managed);

#[derive(Debug)]
enum Managed {
    Versioned(NonNull<DLManagedTensorVersioned>),
    Unversioned(NonNull<DLManagedTensor>),
}

// SAFETY: the code that made it has promised that it may be given back on any thread. Nothing in it changes until then.
unsafe impl Send for DlpackTensor {}

fn refuse<T>(call: &'static str, reason: impl Into<String>) -> Result<T> {
    Err(Error::Dlpack { call, reason: reason.into() })
}

const FROM_RAW: &str = "`DlpackTensor::from_raw`";
const FROM_RAW_UNVERSIONED: &str = "`DlpackTensor::from_raw_unversioned`";
const TENSOR: &str = "`Tensor::from_dlpack`";
const BUFFER: &str = "`DlpackTensor::into_buffer`";

impl DlpackTensor {
    /// Takes the struct that a `PyCapsule` with the name `dltensor_versioned` points to. Rename the capsule to `used_dltensor_versioned`,
    /// so that it does not give the memory back a second time.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Dlpack`] if the pointer is null, or if the struct has another major version than 1. In the second case, the struct
    /// is given back.
    ///
    /// # Safety
    ///
    /// - `managed` is null or points to such a struct. Its version, context, deleter and flags are valid. If the version is 1, the other
    ///   fields are valid, too. Nobody else uses the struct from now on.
    /// - Its deleter may be called on any thread.
    /// - Until then, the memory that `dl_tensor` describes exists, on the device that it names. This is all memory from the first element
    ///   to the last one, with the bytes between elements if strides leave gaps, because [`Tensor::as_strided`] reaches them. On a GPU, it
    ///   is in the context of the stream that it is imported on. On the host, it is initialised. If elements are `bool`, all these bytes
    ///   are 0 or 1, and stay so.
    /// - Until then, other code uses the memory only in the order of the work of this library. On a GPU, streams and events give this
    ///   order. On the host, other code accesses the memory only while no work of this library uses it and no closure looks at it. Memory
    ///   that is only read may be read at all times. Another buffer may have a part of the memory in two cases only: if all buffers that
    ///   have this part only read it, or if no two of them are ever in use at once, by one call, by two threads, or by a call in a closure
    ///   that looks at one of them.
    pub unsafe fn from_raw(managed: *mut DLManagedTensorVersioned) -> Result<Self> {
        let Some(managed) = NonNull::new(managed) else { return refuse(FROM_RAW, "the pointer is null") };
        let owned = Self(Managed::Versioned(managed));
        // SAFETY: the fields up to the flags have their places in all versions.
        let DLPackVersion { major, minor } = unsafe { (*managed.as_ptr()).version };
        if major != DLPackVersion::CURRENT.major {
            return refuse(
                FROM_RAW,
                format!("the struct has version {major}.{minor}, not 1: ask the producer for it, `max_version=(1, 0)`"),
            );
        }
        Ok(owned)
    }

    /// Takes the struct that a `PyCapsule` with the name `dltensor` points to, the older form. Rename the capsule to `used_dltensor`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Dlpack`] if the pointer is null.
    ///
    /// # Safety
    ///
    /// The conditions are those of [`from_raw`](Self::from_raw), without version and flags. The memory may be written.
    pub unsafe fn from_raw_unversioned(managed: *mut DLManagedTensor) -> Result<Self> {
        match NonNull::new(managed) {
            Some(managed) => Ok(Self(Managed::Unversioned(managed))),
            None => refuse(FROM_RAW_UNVERSIONED, "the pointer is null"),
        }
    }

    /// Returns the array. The data that its pointers lead to exists as long as this.
    pub fn dl_tensor(&self) -> DLTensor {
        // SAFETY: the struct is valid until it is given back, as the code that made this has promised.
        unsafe {
            match self.0 {
                Managed::Versioned(managed) => (*managed.as_ptr()).dl_tensor,
                Managed::Unversioned(managed) => (*managed.as_ptr()).dl_tensor,
            }
        }
    }

    /// Returns the flags, which are 0 in the older form.
    fn flags(&self) -> u64 {
        match self.0 {
            // SAFETY: as above.
            Managed::Versioned(managed) => unsafe { (*managed.as_ptr()).flags },
            Managed::Unversioned(_) => 0,
        }
    }

    /// Returns whether the memory is read-only. The older form cannot express that.
    pub fn is_read_only(&self) -> bool {
        self.flags() & FLAG_READ_ONLY != 0
    }

    /// Returns whether the producer has made a copy that no one else has.
    pub fn is_copied(&self) -> bool {
        self.flags() & FLAG_IS_COPIED != 0
    }

    /// Makes a buffer of the elements, without a copy. They must be contiguous, and may have any shape. The first use of the buffer waits
    /// for the work that is on the stream now.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Tensor::from_dlpack`], and [`Error::Dlpack`] if the elements are not contiguous, or are read-only.
    pub fn into_buffer<T: DlpackElement>(self, stream: &Stream) -> Result<Buffer<T>> {
        if self.is_read_only() {
            return refuse(
                BUFFER,
                "the memory is read-only, and a buffer is written: import it with `Tensor::from_dlpack`",
            );
        }
        let view = View::new::<T>(BUFFER, &self.dl_tensor(), stream.device())?;
        if !view.layout.is_contiguous() {
            let reason = format!(
                "the elements of shape {} and strides {:?} do not lie in a row: import them with `Tensor::from_dlpack`",
                view.layout.shape,
                &view.layout.strides[..view.layout.shape.rank()]
            );
            return refuse(BUFFER, reason);
        }
        // SAFETY: the contract of `from_raw`, for memory that exists, as the view has checked. The buffer gives it back.
        unsafe { Buffer::from_raw_owned(stream, view.address, view.elements, self) }
    }
}

impl Drop for DlpackTensor {
    fn drop(&mut self) {
        // SAFETY: this owns the struct, and gives it back once. The contract of `from_raw` allows this on any thread.
        unsafe {
            match self.0 {
                Managed::Versioned(managed) => {
                    if let Some(deleter) = (*managed.as_ptr()).deleter {
                        deleter(managed.as_ptr());
                    }
                }
                Managed::Unversioned(managed) => {
                    if let Some(deleter) = (*managed.as_ptr()).deleter {
                        deleter(managed.as_ptr());
                    }
                }
            }
        }
    }
}

impl<T: Scalar + DlpackElement> Tensor<T> {
    /// Makes a tensor in the memory of another library, without a copy, with the same shape and strides. See
    /// [`interop::dlpack`](crate::interop::dlpack) for the order of work, and an example.
    ///
    /// The memory is given back when the last view of it has been dropped, and the work that uses it is over. If the memory is read-only,
    /// calls that would write it return [`Error::ReadOnly`].
    ///
    /// # Errors
    ///
    /// Returns [`Error::Dlpack`] if the elements are not `T`, if the memory is on another device than the stream, if there are more than
    /// [`MAX_RANK`] axes, or if a field is not valid, and [`Error::Adoption`] on a stream that captures. If there is an error, the memory
    /// is given back.
    pub fn from_dlpack(stream: &Stream, tensor: DlpackTensor) -> Result<Self> {
        let view = View::new::<T>(TENSOR, &tensor.dl_tensor(), stream.device())?;
        let is_read_only = tensor.is_read_only();
        // SAFETY: the contract of `from_raw`, for memory that exists, as the view has checked. The tensor gives it back. Read-only memory
        // is not written.
        let buffer = unsafe { Buffer::<T>::from_raw_owned(stream, view.address, view.elements, tensor)? };
        let storage = if is_read_only { Storage::read_only(buffer) } else { Storage::of(buffer) };
        Ok(Self::at(Arc::new(storage), stream.clone(), view.layout))
    }
}

/// A checked array: a layout in a memory.
struct View {
    /// The address of the memory's first byte.
    address: u64,
    /// The number of elements of the memory.
    elements: usize,
    layout: Layout,
}

impl View {
    fn new<T: DlpackElement>(call: &'static str, tensor: &DLTensor, device: &Device) -> Result<Self> {
        check_device(call, tensor.device, device)?;
        if tensor.dtype != T::TYPE {
            let old = if T::TYPE == bool::TYPE && tensor.dtype == u8::TYPE {
                "; older producers say so of bool: import it as u8"
            } else {
                ""
            };
            return refuse(call, format!("`dtype` is {}, not {}{old}", tensor.dtype, T::TYPE));
        }
        let layout = layout(call, tensor)?;
        let size = size_of::<T>();
        if layout.shape.contains(&0) {
            return Ok(Self { address: 0, elements: 0, layout: Layout { offset: 0, ..layout } });
        }
        if tensor.data.is_null() {
            return refuse(call, format!("`data` is null, but the shape {} has elements", layout.shape));
        }
        let Some(first) = (tensor.data.expose_provenance() as u64).checked_add(tensor.byte_offset) else {
            return refuse(call, format!("`byte_offset`, {}, leads out of the addresses", tensor.byte_offset));
        };
        if !first.is_multiple_of(align_of::<T>() as u64) {
            let reason = format!(
                "the first element is at {first:#x}, which is not aligned to the {} bytes of {}: let the producer make a copy",
                align_of::<T>(),
                T::TYPE
            );
            return refuse(call, reason);
        }
        // The sums count elements from the first one. Strides of 64 bits and a countable number of elements keep these sums within 128
        // bits. Sums of bytes might need more.
        let (mut low, mut high) = (0i128, 0i128);
        for (&extent, &stride) in layout.shape.iter().zip(&layout.strides) {
            let reach = stride as i128 * (extent as i128 - 1);
            if reach < 0 { low += reach } else { high += reach }
        }
        let fits = high - low < isize::MAX as i128 / size as i128;
        let place = |element: i128| i128::from(first) + element * size as i128;
        if !fits || place(low) <= 0 || place(high + 1) > i128::from(u64::MAX) {
            let strides = &layout.strides[..layout.shape.rank()];
            return refuse(
                call,
                format!("`shape` {} and `strides` {strides:?} lead out of the addresses", layout.shape),
            );
        }
        let (offset, elements) = ((-low) as usize, (high - low + 1) as usize);
        let address = place(low) as u64;
        if let Some(owner) = other_emulated_owner(device, address) {
            let reason = format!(
                "`data` is memory of device {owner} of the emulator, but the stream is on {device}: use a stream of that device, or copy the \
                 elements with `BufferSliceMut::copy_from_peer`"
            );
            return refuse(call, reason);
        }
        Ok(Self { address, elements, layout: Layout { offset, ..layout } })
    }
}

fn check_device(call: &'static str, of: DLDevice, device: &Device) -> Result<()> {
    let DLDevice { device_type, device_id } = of;
    let fits = match (device.ordinal(), device_type) {
        (None, DLDevice::CPU) => device_id == 0,
        (None, DLDevice::CUDA_HOST) => true,
        (Some(ordinal), DLDevice::CUDA) => usize::try_from(device_id) == Ok(ordinal),
        // All GPUs can access this memory, for any device number.
        (Some(_), DLDevice::CUDA_MANAGED) => true,
        _ => false,
    };
    if fits {
        return Ok(());
    }
    let (name, advice) = match device_type {
        DLDevice::CPU => ("the CPU", "use a stream of `Device::emulator`, or copy the array to the GPU before"),
        DLDevice::CUDA | DLDevice::CUDA_MANAGED => {
            ("CUDA", "use a stream of `Device::gpu_at`, or copy the array before")
        }
        DLDevice::CUDA_HOST => {
            ("the CPU, page-locked", "use a stream of `Device::emulator`, or copy the array to the GPU before")
        }
        _ => ("a kind that this library has not", "copy the array to the CPU or to CUDA before"),
    };
    let reason =
        format!("`device` is type {device_type} ({name}), number {device_id}, but the stream is on {device}: {advice}");
    refuse(call, reason)
}

/// Reads the shape and the strides, and checks each by itself.
fn layout(call: &'static str, tensor: &DLTensor) -> Result<Layout> {
    let rank = match usize::try_from(tensor.ndim) {
        Ok(rank) if rank <= MAX_RANK => rank,
        Ok(rank) => return refuse(call, format!("`ndim` is {rank}; a tensor can have {MAX_RANK} axes")),
        Err(_) => return refuse(call, format!("`ndim` is {}", tensor.ndim)),
    };
    if rank > 0 && tensor.shape.is_null() {
        return refuse(call, format!("`shape` is null, but `ndim` is {rank}"));
    }
    let mut extents = [0; MAX_RANK];
    for (axis, extent) in extents[..rank].iter_mut().enumerate() {
        // SAFETY: the contract of `from_raw`: there are as many extents as axes.
        let given = unsafe { tensor.shape.add(axis).read() };
        match usize::try_from(given) {
            Ok(given) => *extent = given,
            Err(_) => return refuse(call, format!("`shape[{axis}]` is {given}")),
        }
    }
    let extents = &extents[..rank];
    let shape = Shape::new(extents).filter(|shape| shape.elements().is_some_and(|count| count <= isize::MAX as usize));
    let Some(shape) = shape else {
        return refuse(call, format!("`shape` is {extents:?}, which are more elements than can be counted"));
    };
    let mut layout = Layout::contiguous(shape);
    if !tensor.strides.is_null() {
        for axis in 0..rank {
            // SAFETY: the contract of `from_raw`: there are as many strides as axes.
            let stride = unsafe { tensor.strides.add(axis).read() };
            // If there is at most one index, a step is never taken, and may have any size.
            layout.strides[axis] = if shape[axis] > 1 && !shape.contains(&0) {
                match isize::try_from(stride) {
                    Ok(stride) => stride,
                    Err(_) => return refuse(call, format!("`strides[{axis}]` is {stride}")),
                }
            } else {
                layout.strides[axis]
            };
        }
    }
    Ok(layout)
}
