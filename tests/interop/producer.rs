//! A library in C that exports arrays of the host's memory by DLPack.

use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kernel_primitives::interop::dlpack::{
    DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor, DlpackElement, DlpackTensor,
};

/// The number of times that memory was given back.
#[derive(Clone, Default)]
pub(crate) struct Count(pub(crate) Arc<AtomicUsize>);

impl Count {
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// The data that a producer of host memory keeps.
pub(crate) struct Produced {
    bytes: Vec<u64>,
    shape: Vec<i64>,
    strides: Vec<i64>,
    count: Count,
}

impl Produced {
    /// Makes the array of some elements. A test may change it before it is managed.
    pub(crate) fn new<T: DlpackElement>(values: &[T], shape: &[i64], count: &Count) -> (Box<Self>, DLTensor) {
        let mut bytes = vec![0u64; size_of_val(values).div_ceil(8) + 1];
        // SAFETY: there is room for these bytes, and the types have no padding.
        unsafe { bytes.as_mut_ptr().cast::<T>().copy_from_nonoverlapping(values.as_ptr(), values.len()) };
        let mut produced =
            Box::new(Self { bytes, shape: shape.to_vec(), strides: vec![0; shape.len()], count: count.clone() });
        let tensor = DLTensor {
            data: produced.bytes.as_mut_ptr().cast(),
            device: DLDevice { device_type: DLDevice::CPU, device_id: 0 },
            ndim: shape.len() as i32,
            dtype: T::TYPE,
            shape: produced.shape.as_mut_ptr(),
            strides: null_mut(),
            byte_offset: 0,
        };
        (produced, tensor)
    }

    pub(crate) fn with_strides(&mut self, strides: &[i64]) -> *mut i64 {
        self.strides = strides.to_vec();
        self.strides.as_mut_ptr()
    }

    pub(crate) fn managed(self: Box<Self>, dl_tensor: DLTensor, flags: u64) -> *mut DLManagedTensorVersioned {
        unsafe extern "C" fn deleter(managed: *mut DLManagedTensorVersioned) {
            // SAFETY: the struct is from the function around this. Both are given back once.
            unsafe {
                let managed = Box::from_raw(managed);
                let produced = Box::from_raw(managed.manager_ctx.cast::<Produced>());
                produced.count.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let version = DLPackVersion { major: 1, minor: 1 };
        let manager_ctx = Box::into_raw(self).cast();
        Box::into_raw(Box::new(DLManagedTensorVersioned {
            version,
            manager_ctx,
            deleter: Some(deleter),
            flags,
            dl_tensor,
        }))
    }

    pub(crate) fn unversioned(self: Box<Self>, dl_tensor: DLTensor) -> *mut DLManagedTensor {
        unsafe extern "C" fn deleter(managed: *mut DLManagedTensor) {
            // SAFETY: as above.
            unsafe {
                let managed = Box::from_raw(managed);
                let produced = Box::from_raw(managed.manager_ctx.cast::<Produced>());
                produced.count.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let manager_ctx = Box::into_raw(self).cast();
        Box::into_raw(Box::new(DLManagedTensor { dl_tensor, manager_ctx, deleter: Some(deleter) }))
    }
}

/// Makes a contiguous array of another library.
pub(crate) fn produced<T: DlpackElement>(values: &[T], shape: &[i64], flags: u64, count: &Count) -> DlpackTensor {
    let (produced, tensor) = Produced::new(values, shape, count);
    // SAFETY: the struct was just made, and nobody else has it.
    unsafe { DlpackTensor::from_raw(produced.managed(tensor, flags)) }.expect("version 1")
}

/// Makes an array with other fields than those of a contiguous array.
pub(crate) fn changed<T: DlpackElement>(
    values: &[T],
    shape: &[i64],
    count: &Count,
    change: impl FnOnce(&mut Produced, &mut DLTensor),
) -> DlpackTensor {
    let (mut produced, mut tensor) = Produced::new(values, shape, count);
    change(&mut produced, &mut tensor);
    // SAFETY: the struct was just made, and nobody else has it.
    unsafe { DlpackTensor::from_raw(produced.managed(tensor, 0)) }.expect("version 1")
}
