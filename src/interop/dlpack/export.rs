//! Tensors for other libraries.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use primitives_host::storage::Storage;
use primitives_host::{Buffer, Error, Result, Stream};

use super::abi::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor, FLAG_READ_ONLY,
};
use super::element::DlpackElement;
use crate::expr::layout::overlap::repeats;
use crate::expr::layout::shape::Layout;
use crate::expr::{MAX_RANK, Scalar, Shape, Tensor};

const TENSOR: &str = "`Tensor::to_dlpack`";
const BUFFER: &str = "`DlpackExport::of_buffer`";
const UNVERSIONED: &str = "`DlpackExport::into_raw_unversioned`";

/// A tensor or a buffer to give to another library. It keeps the memory. If it is dropped, it gives nothing away.
///
/// It becomes a pointer that belongs to the consumer. The consumer calls the deleter once, on any thread. At that time there may be work on
/// the consumer's stream.
pub struct DlpackExport {
    owner: Owner,
    data: u64,
    device: DLDevice,
    dtype: DLDataType,
    rank: i32,
    shape: [i64; MAX_RANK],
    strides: [i64; MAX_RANK],
    is_read_only: bool,
}

impl std::fmt::Debug for DlpackExport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DlpackExport<{}>({:?})", self.dtype, &self.shape[..self.rank as usize])
    }
}

/// The memory, and the stream on which the consumer uses it.
struct Owner {
    storage: ManuallyDrop<Arc<Storage>>,
    stream: Stream,
}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Owner>();
};

impl Drop for Owner {
    /// Frees the memory after the work that is on the consumer's stream now.
    fn drop(&mut self) {
        match self.storage.use_on("the deleter of a DLPack tensor", &self.stream) {
            // SAFETY: the storage is dropped once, and not used afterwards.
            Ok(()) | Err(Error::ContextLost { .. }) => unsafe { ManuallyDrop::drop(&mut self.storage) },
            // The consumer's work is not known, as in a capture. So the memory is never freed.
            Err(_) => {}
        }
    }
}

impl<T: Scalar + DlpackElement> Tensor<T> {
    /// Exports the tensor for another library, without a copy, with the same shape and strides. `stream` is the consumer's stream. Later
    /// work on it sees all work that was enqueued before. See [`interop::dlpack`](crate::interop::dlpack) for the order of work, and an
    /// example.
    ///
    /// The export shares the memory with this tensor and its views. It is read-only if this tensor was imported as read-only, or if it
    /// repeats elements.
    ///
    /// # Errors
    ///
    /// Returns [`Error::WrongDevice`] if `stream` is on another device, [`Error::Capture`] if it captures, [`Error::Dlpack`] for an extent
    /// of more than 2^63 - 1, and, on the emulator, [`Error::InKernel`] in a kernel that uses the memory.
    pub fn to_dlpack(&self, stream: &Stream) -> Result<DlpackExport> {
        DlpackExport::new::<T>(TENSOR, self.view.storage.clone(), &self.view.layout, stream)
    }
}

impl DlpackExport {
    /// Exports a buffer for another library, without a copy, as an array of this shape. `stream` is the consumer's stream, as for
    /// [`Tensor::to_dlpack`].
    ///
    /// ```
    /// use kernel_primitives::interop::dlpack::{DlpackExport, DlpackTensor};
    /// use kernel_primitives::{Complex, Device};
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let stream = Device::auto()?.stream()?;
    /// let buffer = stream.buffer_from(&[Complex { re: 1.0f32, im: -1.0 }; 6])?;
    /// let address = buffer.address();
    /// let pointer = DlpackExport::of_buffer(buffer, &[2, 3], &stream)?.into_raw_unversioned()?;
    /// // SAFETY: just exported, and consumed once.
    /// let again = unsafe { DlpackTensor::from_raw_unversioned(pointer)? }.into_buffer::<Complex<f32>>(&stream)?;
    /// assert_eq!((again.address(), again.len()), (address, 6));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Tensor::to_dlpack`], and [`Error::Dlpack`] if the shape has another number of elements, or more than
    /// [`MAX_RANK`] axes.
    pub fn of_buffer<T: DlpackElement>(buffer: Buffer<T>, shape: &[usize], stream: &Stream) -> Result<Self> {
        let refuse = |reason| Err(Error::Dlpack { call: BUFFER, reason });
        let Some(extents) = Shape::new(shape) else {
            return refuse(format!("a shape of {} axes; there can be {MAX_RANK}", shape.len()));
        };
        if extents.elements() != Some(buffer.len()) {
            return refuse(format!("the shape {extents} does not have the {} elements of the buffer", buffer.len()));
        }
        let storage = Arc::new(Storage::of(buffer));
        if !storage.is_on(stream.device()) {
            return Err(Error::WrongDevice {
                kernel: BUFFER.trim_matches('`').into(),
                argument: "`buffer`".into(),
                stream: stream.device().to_string(),
                buffer: storage.device().to_string(),
            });
        }
        Self::new::<T>(BUFFER, storage, &Layout::contiguous(extents), stream)
    }

    fn new<T: DlpackElement>(
        call: &'static str,
        storage: Arc<Storage>,
        layout: &Layout,
        stream: &Stream,
    ) -> Result<Self> {
        let rank = layout.shape.rank();
        let (mut shape, mut strides) = ([0; MAX_RANK], [0; MAX_RANK]);
        for axis in 0..rank {
            shape[axis] = i64::try_from(layout.shape[axis]).map_err(|_| Error::Dlpack {
                call,
                reason: format!("axis {axis} of shape {} has more indices than DLPack can say", layout.shape),
            })?;
            strides[axis] = layout.strides[axis] as i64;
        }
        let device = match storage.device().ordinal() {
            None => DLDevice { device_type: DLDevice::CPU, device_id: 0 },
            Some(ordinal) => DLDevice { device_type: DLDevice::CUDA, device_id: ordinal as i32 },
        };
        let is_read_only = storage.is_read_only() || repeats(layout);
        storage.lend(call, stream, !is_read_only)?;
        // Without elements, the offset may have any value, and DLPack requires null.
        let is_empty = layout.shape.contains(&0);
        let data = if is_empty { 0 } else { storage.address() + (layout.offset * size_of::<T>()) as u64 };
        let owner = Owner { storage: ManuallyDrop::new(storage), stream: stream.clone() };
        Ok(Self { owner, data, device, dtype: T::TYPE, rank: rank as i32, shape, strides, is_read_only })
    }

    /// Returns the pointer for a `PyCapsule` with the name `dltensor_versioned`. The owner of the pointer must call the deleter once;
    /// otherwise the memory is never freed.
    pub fn into_raw(self) -> *mut DLManagedTensorVersioned {
        let flags = if self.is_read_only { FLAG_READ_ONLY } else { 0 };
        self.into_held(|dl_tensor, manager_ctx| DLManagedTensorVersioned {
            version: DLPackVersion::CURRENT,
            manager_ctx,
            deleter: Some(delete_versioned),
            flags,
            dl_tensor,
        })
    }

    /// Returns the pointer for a `PyCapsule` with the name `dltensor`, the older form. The owner of the pointer must call the deleter once;
    /// otherwise the memory is never freed.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Dlpack`] if the memory is read-only, which this form cannot express.
    pub fn into_raw_unversioned(self) -> Result<*mut DLManagedTensor> {
        if self.is_read_only {
            let reason = "the memory is read-only or repeats elements, which only the versioned form can say: use `into_raw`, or \
                          export a copy";
            return Err(Error::Dlpack { call: UNVERSIONED, reason: reason.into() });
        }
        Ok(self.into_held(|dl_tensor, manager_ctx| DLManagedTensor {
            dl_tensor,
            manager_ctx,
            deleter: Some(delete_unversioned),
        }))
    }

    /// Allocates the struct that `managed` makes, together with the data that its pointers lead to.
    fn into_held<M>(self, managed: impl FnOnce(DLTensor, *mut c_void) -> M) -> *mut M {
        let Self { owner, data, device, dtype, rank, shape, strides, .. } = self;
        let held = Box::into_raw(Box::new(Held::<M> { managed: None, shape, strides, _owner: owner }));
        // SAFETY: the struct was just allocated, and nobody else uses it. It is filled in where it stays.
        unsafe {
            let dl_tensor = DLTensor {
                data: std::ptr::with_exposed_provenance_mut(data as usize),
                device,
                ndim: rank,
                dtype,
                shape: (&raw mut (*held).shape).cast(),
                strides: (&raw mut (*held).strides).cast(),
                byte_offset: 0,
            };
            let place = &raw mut (*held).managed;
            (*place).insert(managed(dl_tensor, held.cast()))
        }
    }
}

/// The exported struct, the data that its pointers lead to, and the memory.
struct Held<M> {
    managed: Option<M>,
    shape: [i64; MAX_RANK],
    strides: [i64; MAX_RANK],
    _owner: Owner,
}

/// # Safety
/// `managed` must come from [`DlpackExport::into_raw`], and must be given back once.
unsafe extern "C" fn delete_versioned(managed: *mut DLManagedTensorVersioned) {
    // SAFETY: the caller's contract.
    unsafe { delete::<DLManagedTensorVersioned>(managed.as_ref().map(|managed| managed.manager_ctx)) }
}

/// # Safety
/// `managed` must come from [`DlpackExport::into_raw_unversioned`], and must be given back once.
unsafe extern "C" fn delete_unversioned(managed: *mut DLManagedTensor) {
    // SAFETY: the caller's contract.
    unsafe { delete::<DLManagedTensor>(managed.as_ref().map(|managed| managed.manager_ctx)) }
}

/// # Safety
/// The context must be none, or that of an export which becomes `M`. It must not be used afterwards.
unsafe fn delete<M>(context: Option<*mut c_void>) {
    // A panic must end here, because C cannot unwind.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        if let Some(held) = context {
            // SAFETY: the caller's contract: the context comes from `into_held`.
            drop(unsafe { Box::from_raw(held.cast::<Held<M>>()) });
        }
    }));
}
