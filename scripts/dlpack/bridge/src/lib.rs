//! Tensors of `f32` for a program that is not in Rust: imported, exported, multiplied and summed up.
//!
//! A function that fails returns null or a negative number; [`kp_error`] has the words.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

use kernel_primitives::expr::{Reductions, Tensor, scalar};
use kernel_primitives::interop::dlpack::{DLManagedTensor, DLManagedTensorVersioned, DlpackTensor};
use kernel_primitives::{Device, Error, Result, Stream};

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// The consumers' streams, by GPU and number: a stream is adopted once at a time, and these stay.
static CONSUMERS: Mutex<BTreeMap<(usize, i64), Stream>> = Mutex::new(BTreeMap::new());

/// The stream with this number in Python: 1 is the legacy default stream.
///
/// # Safety
/// It is one of the device, and is never destroyed.
unsafe fn consumer(device: &Device, number: i64) -> Result<Stream> {
    let mut consumers = CONSUMERS.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (device.ordinal().unwrap_or_default(), number);
    if let Some(stream) = consumers.get(&key) {
        return Ok(stream.clone());
    }
    let raw = if number == 1 { null_mut() } else { number as usize as *mut c_void };
    // SAFETY: the caller's contract; adopted here alone.
    let stream = unsafe { Stream::from_raw_borrowed(device, raw)? };
    consumers.insert(key, stream.clone());
    Ok(stream)
}

/// The value, or what stands for an error, whose words are kept.
fn or_note<T>(result: Result<T>, failed: T) -> T {
    result.unwrap_or_else(|error: Error| {
        let words = error.to_string().replace('\0', " ");
        ERROR.set(CString::new(words).unwrap_or_default());
        failed
    })
}

/// The words of this thread's last error, until the next one.
#[unsafe(no_mangle)]
pub extern "C" fn kp_error() -> *const c_char {
    ERROR.with_borrow(|words| words.as_ptr())
}

/// A stream of a GPU, or of the emulator for a negative number.
#[unsafe(no_mangle)]
pub extern "C" fn kp_open(ordinal: i32) -> *mut Stream {
    let device = usize::try_from(ordinal).map_or_else(|_| Ok(Device::emulator()), Device::gpu_at);
    or_note(device.and_then(|device| device.stream()).map(|stream| Box::into_raw(Box::new(stream))), null_mut())
}

/// The `CUstream`; null on the emulator.
///
/// # Safety
/// The stream is of [`kp_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kp_handle(stream: *const Stream) -> *mut c_void {
    // SAFETY: the caller's contract.
    unsafe { (*stream).as_raw() }
}

/// A matrix of the numbers from 0 on.
///
/// # Safety
/// The stream is of [`kp_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kp_matrix(stream: *const Stream, rows: usize, columns: usize) -> *mut Tensor<f32> {
    let values: Vec<f32> = (0..rows * columns).map(|value| value as f32).collect();
    // SAFETY: the caller's contract.
    let tensor = Tensor::from_slice(unsafe { &*stream }, [rows, columns], &values);
    or_note(tensor.map(|tensor| Box::into_raw(Box::new(tensor))), null_mut())
}

/// The tensor of a `DLManagedTensorVersioned`, or of a `DLManagedTensor`, which belongs to this from now on.
///
/// # Safety
/// The stream is of [`kp_open`], and the pointer what `DlpackTensor::from_raw` takes, or the older form.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kp_import(stream: *const Stream, managed: *mut c_void, versioned: bool) -> *mut Tensor<f32> {
    // SAFETY: the caller's contract.
    let (stream, other) = unsafe {
        let other = if versioned {
            DlpackTensor::from_raw(managed.cast::<DLManagedTensorVersioned>())
        } else {
            DlpackTensor::from_raw_unversioned(managed.cast::<DLManagedTensor>())
        };
        (&*stream, other)
    };
    let tensor = other.and_then(|other| Tensor::from_dlpack(stream, other));
    or_note(tensor.map(|tensor| Box::into_raw(Box::new(tensor))), null_mut())
}

/// A `DLManagedTensorVersioned`, or a `DLManagedTensor`, of the tensor, for a consumer on the stream with this number in Python: 1 is the
/// legacy default stream, and 0 or less the tensor's own.
///
/// # Safety
/// The tensor is of this library, and the number that of a stream of its device which is never destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kp_export(tensor: *const Tensor<f32>, consumer: i64, versioned: bool) -> *mut c_void {
    // SAFETY: the caller's contract.
    let tensor = unsafe { &*tensor };
    let export = || {
        let stream = if consumer > 0 && tensor.device().is_gpu() {
            // SAFETY: the caller's contract.
            unsafe { self::consumer(tensor.device(), consumer)? }
        } else {
            tensor.stream().clone()
        };
        let export = tensor.to_dlpack(&stream)?;
        Ok(if versioned { export.into_raw().cast() } else { export.into_raw_unversioned()?.cast() })
    };
    or_note(export(), null_mut())
}

/// Multiplies all elements; 0, or -1.
///
/// # Safety
/// The tensor is of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kp_scale(tensor: *const Tensor<f32>, factor: f32) -> i32 {
    // SAFETY: the caller's contract.
    or_note(unsafe { &*tensor }.mul_assign(scalar(factor)).map(|()| 0), -1)
}

/// The sum of all elements, or NaN.
///
/// # Safety
/// The tensor is of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kp_sum(tensor: *const Tensor<f32>) -> f32 {
    // SAFETY: the caller's contract.
    or_note(unsafe { &*tensor }.sum().item(), f32::NAN)
}

/// Drops a tensor.
///
/// # Safety
/// The tensor is of this library, and dropped once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kp_drop(tensor: *mut Tensor<f32>) {
    // SAFETY: the caller's contract.
    drop(unsafe { Box::from_raw(tensor) });
}

/// Drops a stream.
///
/// # Safety
/// The stream is of [`kp_open`], and dropped once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kp_close(stream: *mut Stream) {
    // SAFETY: the caller's contract.
    drop(unsafe { Box::from_raw(stream) });
}
