//! The structs of C, with the names of `dlpack.h`.

use std::ffi::c_void;

/// The version of the interface. Importers refuse another major version.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLPackVersion {
    /// Changes if the layout changes.
    pub major: u32,
    /// Changes if there are new values.
    pub minor: u32,
}

impl DLPackVersion {
    /// The version of exported arrays.
    pub const CURRENT: Self = Self { major: 1, minor: 0 };
}

/// The device whose memory has the elements.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDevice {
    /// The kind: [`CPU`](Self::CPU), [`CUDA`](Self::CUDA) or another number of `DLDeviceType`.
    pub device_type: i32,
    /// The number among the devices of that kind; 0 for the CPU.
    pub device_id: i32,
}

impl DLDevice {
    /// `kDLCPU`: ordinary memory of the host.
    pub const CPU: i32 = 1;
    /// `kDLCUDA`: memory of an NVIDIA GPU.
    pub const CUDA: i32 = 2;
    /// `kDLCUDAHost`: page-locked memory of the host.
    pub const CUDA_HOST: i32 = 3;
    /// `kDLCUDAManaged`: memory that CUDA moves between the host and GPUs.
    pub const CUDA_MANAGED: i32 = 13;
}

/// An element type: `lanes` values of `bits` bits each.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDataType {
    /// The kind, a number of `DLDataTypeCode`.
    pub code: u8,
    /// The number of bits of a value.
    pub bits: u8,
    /// The number of values of a vector; 1 for other elements.
    pub lanes: u16,
}

impl DLDataType {
    /// `kDLInt`.
    pub const INT: u8 = 0;
    /// `kDLUInt`.
    pub const UINT: u8 = 1;
    /// `kDLFloat`.
    pub const FLOAT: u8 = 2;
    /// `kDLBfloat`.
    pub const BFLOAT: u8 = 4;
    /// `kDLComplex`: two floats. The number of bits counts both.
    pub const COMPLEX: u8 = 5;
    /// `kDLBool`: a byte of 0 or 1.
    pub const BOOL: u8 = 6;
}

/// Shows `float32`, or `float32x4` for vectors. A kind that this library does not have is shown by its number.
impl std::fmt::Display for DLDataType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { code, bits, lanes } = *self;
        match code {
            Self::INT => write!(f, "int{bits}")?,
            Self::UINT => write!(f, "uint{bits}")?,
            Self::FLOAT => write!(f, "float{bits}")?,
            Self::BFLOAT => write!(f, "bfloat{bits}")?,
            Self::COMPLEX => write!(f, "complex{bits}")?,
            Self::BOOL if bits == 8 => f.write_str("bool")?,
            _ => write!(f, "type code {code} of {bits} bits")?,
        }
        if lanes == 1 { Ok(()) } else { write!(f, "x{lanes}") }
    }
}

/// An array: a pointer, shape and strides, without an owner.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLTensor {
    /// The memory, in the device's addresses. The element with all indices 0 is `byte_offset` bytes after it.
    pub data: *mut c_void,
    /// The device that has this memory.
    pub device: DLDevice,
    /// The number of axes.
    pub ndim: i32,
    /// The element type.
    pub dtype: DLDataType,
    /// An extent for each axis.
    pub shape: *mut i64,
    /// A stride for each axis, in elements. It is null if the elements are contiguous and the last index changes first.
    pub strides: *mut i64,
    /// The number of bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// The memory is read-only. This is a bit of [`DLManagedTensorVersioned::flags`].
pub const FLAG_READ_ONLY: u64 = 1;
/// The producer has made a copy, which nobody else has. This is a bit of [`DLManagedTensorVersioned::flags`].
pub const FLAG_IS_COPIED: u64 = 2;

/// An array with an owner: the form before version 1.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    /// The array.
    pub dl_tensor: DLTensor,
    /// Data of the producer.
    pub manager_ctx: *mut c_void,
    /// The function that gives the array back, together with this struct. It is `None` if there is nothing to give back.
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

/// An array with an owner: the form from version 1.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// The version of the fields after `flags`.
    pub version: DLPackVersion,
    /// Data of the producer.
    pub manager_ctx: *mut c_void,
    /// The function that gives the array back, together with this struct. It is `None` if there is nothing to give back.
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
    /// [`FLAG_READ_ONLY`], [`FLAG_IS_COPIED`] and other bits.
    pub flags: u64,
    /// The array.
    pub dl_tensor: DLTensor,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<DLTensor>() == 48 && size_of::<DLManagedTensor>() == 64, "the layout of C on 64 bits");
    assert!(size_of::<DLManagedTensorVersioned>() == 80, "the layout of C on 64 bits");
    assert!(offset_of!(DLTensor, ndim) == 16 && offset_of!(DLTensor, dtype) == 20, "the layout of C on 64 bits");
    assert!(offset_of!(DLTensor, shape) == 24 && offset_of!(DLTensor, byte_offset) == 40, "the layout of C on 64 bits");
    assert!(offset_of!(DLManagedTensorVersioned, flags) == 24, "the layout of C on 64 bits");
    assert!(offset_of!(DLManagedTensorVersioned, dl_tensor) == 32, "the layout of C on 64 bits");
};
