//! The driver's functions and types, under the names that `cuda.h` gives them.
//!
//! An enumeration of C is an integer here, with its values as constants: what a newer driver returns or stores is a valid value, too.
//! A handle is a pointer to an opaque type.

#![allow(non_camel_case_types, non_snake_case, reason = "the names are the driver's")]

use core::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_ushort, c_void};
use core::mem::{offset_of, size_of};

use crate::function::driver_functions;

/// Handles, as pointers to types that nobody makes.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident = $opaque:ident;)*) => {
        $(
            #[doc(hidden)]
            #[repr(C)]
            #[derive(Debug)]
            pub struct $opaque {
                _opaque: [u8; 0],
            }

            $(#[$doc])*
            pub type $name = *mut $opaque;
        )*
    };
}

handles! {
    /// A context.
    CUcontext = CUctx_st;
    /// A loaded module.
    CUmodule = CUmod_st;
    /// A kernel of a loaded module.
    CUfunction = CUfunc_st;
    /// A stream; null is the legacy default stream.
    CUstream = CUstream_st;
    /// An event.
    CUevent = CUevent_st;
    /// An array of the texture units.
    CUarray = CUarray_st;
    /// A graph.
    CUgraph = CUgraph_st;
    /// A node of a graph.
    CUgraphNode = CUgraphNode_st;
    /// An executable graph.
    CUgraphExec = CUgraphExec_st;
    /// A pool of stream-ordered memory.
    CUmemoryPool = CUmemPoolHandle_st;
}

/// A device: its number in this process.
pub type CUdevice = c_int;

/// An address in device memory.
pub type CUdeviceptr = u64;

/// Enumerations: an integer, and constants for its values that are in use.
macro_rules! enumerations {
    ($($(#[$doc:meta])* $type:ident { $($name:ident = $value:literal,)* })*) => {
        $(
            $(#[$doc])*
            #[repr(transparent)]
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub struct $type(pub c_uint);

            #[allow(missing_docs, reason = "as in `cuda.h`")]
            impl $type {
                $(pub const $name: Self = Self($value);)*
            }
        )*
    };
}

enumerations! {
    /// What a call returns. Any number is valid; these are the ones that this workspace names.
    CUresult {
        CUDA_SUCCESS = 0,
        CUDA_ERROR_INVALID_VALUE = 1,
        CUDA_ERROR_OUT_OF_MEMORY = 2,
        CUDA_ERROR_NOT_INITIALIZED = 3,
        CUDA_ERROR_NO_DEVICE = 100,
        CUDA_ERROR_INVALID_DEVICE = 101,
        CUDA_ERROR_ECC_UNCORRECTABLE = 214,
        CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
        CUDA_ERROR_CONTAINED = 226,
        CUDA_ERROR_NOT_READY = 600,
        CUDA_ERROR_ILLEGAL_ADDRESS = 700,
        CUDA_ERROR_LAUNCH_TIMEOUT = 702,
        CUDA_ERROR_ASSERT = 710,
        CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
        CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
        CUDA_ERROR_MISALIGNED_ADDRESS = 716,
        CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
        CUDA_ERROR_INVALID_PC = 718,
        CUDA_ERROR_LAUNCH_FAILED = 719,
        CUDA_ERROR_TENSOR_MEMORY_LEAK = 721,
        CUDA_ERROR_NOT_SUPPORTED = 801,
        CUDA_ERROR_MPS_CLIENT_TERMINATED = 810,
        CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
        CUDA_ERROR_EXTERNAL_DEVICE = 911,
        CUDA_ERROR_UNKNOWN = 999,
    }

    /// A property of a device.
    CUdevice_attribute {
        CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y = 3,
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z = 4,
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y = 6,
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z = 7,
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
        CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
        CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
        CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
        CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
        CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO = 87,
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    }

    /// A property of a kernel.
    CUfunction_attribute {
        CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
        CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
        CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
    }

    /// An option of loading a module.
    CUjit_option {
        CU_JIT_ERROR_LOG_BUFFER = 5,
        CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
    }

    /// A kind of memory.
    CUmemorytype {
        CU_MEMORYTYPE_DEVICE = 2,
    }

    /// Which calls a thread may make while streams are captured.
    CUstreamCaptureMode {
        CU_STREAM_CAPTURE_MODE_RELAXED = 2,
    }

    /// Whether a stream is captured.
    CUstreamCaptureStatus {
        CU_STREAM_CAPTURE_STATUS_NONE = 0,
    }

    /// A setting of a pool.
    CUmemPool_attribute {
        CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4,
    }

    /// A kind of allocation.
    CUmemAllocationType {
        CU_MEM_ALLOCATION_TYPE_PINNED = 1,
    }

    /// How other processes get memory.
    CUmemAllocationHandleType {
        CU_MEM_HANDLE_TYPE_NONE = 0,
    }

    /// Where memory lies.
    CUmemLocationType {
        CU_MEM_LOCATION_TYPE_DEVICE = 1,
    }

    /// The type of the elements of a described array.
    CUtensorMapDataType {
        CU_TENSOR_MAP_DATA_TYPE_FLOAT64 = 8,
    }

    /// The arrangement of the elements of a described array.
    CUtensorMapInterleave {
        CU_TENSOR_MAP_INTERLEAVE_NONE = 0,
    }

    /// The arrangement of a tile in shared memory.
    CUtensorMapSwizzle {
        CU_TENSOR_MAP_SWIZZLE_NONE = 0,
    }

    /// The bytes that a copy of a tile brings to the cache of the second level at once.
    CUtensorMapL2promotion {
        CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2,
    }

    /// What a tile has where the array has no elements.
    CUtensorMapFloatOOBfill {
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0,
    }

    /// What a launch may be told.
    CUlaunchAttributeID {
        CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
    }

    /// What a device may do with memory.
    CUmemAccess_flags {
        CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
    }
}

/// For [`cuStreamCreate`]: the stream does not wait for the legacy default stream, nor that for it.
pub const CU_STREAM_NON_BLOCKING: c_uint = 1;
/// For [`cuEventCreate`]: the event records no time.
pub const CU_EVENT_DISABLE_TIMING: c_uint = 2;
/// For [`cuMemHostAlloc`]: the memory is page-locked for all contexts.
pub const CU_MEMHOSTALLOC_PORTABLE: c_uint = 1;
/// For [`cuMemHostAlloc`]: the memory is mapped into the device's address space.
pub const CU_MEMHOSTALLOC_DEVICEMAP: c_uint = 2;

/// Structures, with their sizes and the offsets of their fields in `cuda.h`.
macro_rules! structures {
    ($($(#[$doc:meta])* $name:ident: $size:literal { $($field:ident: $type:ty = $offset:literal,)* })*) => {
        $(
            $(#[$doc])*
            #[repr(C)]
            #[derive(Clone, Copy, Debug)]
            #[allow(missing_docs, reason = "as in `cuda.h`")]
            pub struct $name {
                $(pub $field: $type,)*
            }

            const _: () = assert!(size_of::<$name>() == $size, "another size than in `cuda.h`");
            $(const _: () = assert!(offset_of!($name, $field) == $offset, "another offset than in `cuda.h`");)*
        )*
    };
}

structures! {
    /// A launch with attributes.
    CUlaunchConfig: 56 {
        gridDimX: c_uint = 0,
        gridDimY: c_uint = 4,
        gridDimZ: c_uint = 8,
        blockDimX: c_uint = 12,
        blockDimY: c_uint = 16,
        blockDimZ: c_uint = 20,
        sharedMemBytes: c_uint = 24,
        hStream: CUstream = 32,
        attrs: *mut CUlaunchAttribute = 40,
        numAttrs: c_uint = 48,
    }

    /// An attribute of a launch. Of the union `CUlaunchAttributeValue` it has the one field that this workspace uses, and the rest of its
    /// bytes.
    CUlaunchAttribute: 72 {
        id: CUlaunchAttributeID = 0,
        pad: [c_uchar; 4] = 4,
        programmaticStreamSerializationAllowed: c_int = 8,
        rest: [c_int; 15] = 12,
    }

    /// The launch of a kernel in a graph (`CUDA_KERNEL_NODE_PARAMS_v1`).
    CUDA_KERNEL_NODE_PARAMS: 56 {
        func: CUfunction = 0,
        gridDimX: c_uint = 8,
        gridDimY: c_uint = 12,
        gridDimZ: c_uint = 16,
        blockDimX: c_uint = 20,
        blockDimY: c_uint = 24,
        blockDimZ: c_uint = 28,
        sharedMemBytes: c_uint = 32,
        kernelParams: *mut *mut c_void = 40,
        extra: *mut *mut c_void = 48,
    }

    /// A fill in a graph (`CUDA_MEMSET_NODE_PARAMS_v1`).
    CUDA_MEMSET_NODE_PARAMS: 40 {
        dst: CUdeviceptr = 0,
        pitch: usize = 8,
        value: c_uint = 16,
        elementSize: c_uint = 20,
        width: usize = 24,
        height: usize = 32,
    }

    /// A copy in a graph (`CUDA_MEMCPY3D_v2`).
    CUDA_MEMCPY3D: 200 {
        srcXInBytes: usize = 0,
        srcY: usize = 8,
        srcZ: usize = 16,
        srcLOD: usize = 24,
        srcMemoryType: CUmemorytype = 32,
        srcHost: *const c_void = 40,
        srcDevice: CUdeviceptr = 48,
        srcArray: CUarray = 56,
        reserved0: *mut c_void = 64,
        srcPitch: usize = 72,
        srcHeight: usize = 80,
        dstXInBytes: usize = 88,
        dstY: usize = 96,
        dstZ: usize = 104,
        dstLOD: usize = 112,
        dstMemoryType: CUmemorytype = 120,
        dstHost: *mut c_void = 128,
        dstDevice: CUdeviceptr = 136,
        dstArray: CUarray = 144,
        reserved1: *mut c_void = 152,
        dstPitch: usize = 160,
        dstHeight: usize = 168,
        WidthInBytes: usize = 176,
        Height: usize = 184,
        Depth: usize = 192,
    }

    /// Where memory lies: on the device `id`.
    CUmemLocation: 8 {
        type_: CUmemLocationType = 0,
        id: c_int = 4,
    }

    /// What the device at `location` may do with memory.
    CUmemAccessDesc: 12 {
        location: CUmemLocation = 0,
        flags: CUmemAccess_flags = 8,
    }

    /// What a pool is made of (`CUmemPoolProps_v1`).
    CUmemPoolProps: 88 {
        allocType: CUmemAllocationType = 0,
        handleTypes: CUmemAllocationHandleType = 4,
        location: CUmemLocation = 8,
        win32SecurityAttributes: *mut c_void = 16,
        maxSize: usize = 24,
        usage: c_ushort = 32,
        gpuDirectRDMACapable: c_uchar = 34,
        reserved: [c_uchar; 53] = 35,
    }
}

/// A description of an array in global memory, by which kernels copy tiles of it. Only the driver knows what its words are.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "as in `cuda.h`")]
pub struct CUtensorMap {
    pub opaque: [u64; 16],
}

driver_functions! {
    fn cuInit(flags: c_uint);
    fn cuDriverGetVersion(driverVersion: *mut c_int);
    fn cuGetErrorName(error: CUresult, pStr: *mut *const c_char);
    fn cuGetErrorString(error: CUresult, pStr: *mut *const c_char);

    fn cuDeviceGetCount(count: *mut c_int);
    fn cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    fn cuDeviceGetName(name: *mut c_char, len: c_int, dev: CUdevice);
    fn cuDeviceTotalMem_v2(bytes: *mut usize, dev: CUdevice);
    fn cuDeviceGetAttribute(pi: *mut c_int, attrib: CUdevice_attribute, dev: CUdevice);
    fn cuDeviceCanAccessPeer(canAccessPeer: *mut c_int, dev: CUdevice, peerDev: CUdevice);
    fn cuDevicePrimaryCtxGetState(dev: CUdevice, flags: *mut c_uint, active: *mut c_int);
    fn cuDevicePrimaryCtxRetain(pctx: *mut CUcontext, dev: CUdevice);
    fn cuDevicePrimaryCtxRelease_v2(dev: CUdevice);

    fn cuCtxCreate_v2(pctx: *mut CUcontext, flags: c_uint, dev: CUdevice);
    fn cuCtxDestroy_v2(ctx: CUcontext);
    fn cuCtxPopCurrent_v2(pctx: *mut CUcontext);
    fn cuCtxGetDevice(device: *mut CUdevice);
    fn cuCtxSetCurrent(ctx: CUcontext);
    fn cuThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode);

    fn cuModuleLoadDataEx(
        module: *mut CUmodule,
        image: *const c_void,
        numOptions: c_uint,
        options: *mut CUjit_option,
        optionValues: *mut *mut c_void,
    );
    fn cuModuleUnload(hmod: CUmodule);
    fn cuModuleGetFunction(hfunc: *mut CUfunction, hmod: CUmodule, name: *const c_char);
    fn cuModuleGetGlobal_v2(dptr: *mut CUdeviceptr, bytes: *mut usize, hmod: CUmodule, name: *const c_char);
    fn cuFuncGetAttribute(pi: *mut c_int, attrib: CUfunction_attribute, hfunc: CUfunction);
    fn cuFuncSetAttribute(hfunc: CUfunction, attrib: CUfunction_attribute, value: c_int);
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        numBlocks: *mut c_int,
        func: CUfunction,
        blockSize: c_int,
        dynamicSMemSize: usize,
    );
    fn cuLaunchKernel(
        f: CUfunction,
        gridDimX: c_uint,
        gridDimY: c_uint,
        gridDimZ: c_uint,
        blockDimX: c_uint,
        blockDimY: c_uint,
        blockDimZ: c_uint,
        sharedMemBytes: c_uint,
        hStream: CUstream,
        kernelParams: *mut *mut c_void,
        extra: *mut *mut c_void,
    );
    fn cuLaunchKernelEx(
        config: *const CUlaunchConfig,
        f: CUfunction,
        kernelParams: *mut *mut c_void,
        extra: *mut *mut c_void,
    );

    fn cuTensorMapEncodeTiled(
        tensorMap: *mut CUtensorMap,
        tensorDataType: CUtensorMapDataType,
        tensorRank: c_uint,
        globalAddress: *mut c_void,
        globalDim: *const u64,
        globalStrides: *const u64,
        boxDim: *const c_uint,
        elementStrides: *const c_uint,
        interleave: CUtensorMapInterleave,
        swizzle: CUtensorMapSwizzle,
        l2Promotion: CUtensorMapL2promotion,
        oobFill: CUtensorMapFloatOOBfill,
    );

    fn cuMemAlloc_v2(dptr: *mut CUdeviceptr, bytesize: usize);
    fn cuMemFree_v2(dptr: CUdeviceptr);
    fn cuMemHostAlloc(pp: *mut *mut c_void, bytesize: usize, flags: c_uint);
    fn cuMemFreeHost(p: *mut c_void);
    fn cuMemPoolCreate(pool: *mut CUmemoryPool, poolProps: *const CUmemPoolProps);
    fn cuMemPoolSetAttribute(pool: CUmemoryPool, attr: CUmemPool_attribute, value: *mut c_void);
    fn cuMemPoolSetAccess(pool: CUmemoryPool, map: *const CUmemAccessDesc, count: usize);
    fn cuMemPoolDestroy(pool: CUmemoryPool);
    fn cuMemAllocFromPoolAsync(dptr: *mut CUdeviceptr, bytesize: usize, pool: CUmemoryPool, hStream: CUstream);
    fn cuMemFreeAsync(dptr: CUdeviceptr, hStream: CUstream);
    fn cuMemcpyHtoDAsync_v2(dstDevice: CUdeviceptr, srcHost: *const c_void, byteCount: usize, hStream: CUstream);
    fn cuMemcpyDtoHAsync_v2(dstHost: *mut c_void, srcDevice: CUdeviceptr, byteCount: usize, hStream: CUstream);
    fn cuMemcpyDtoDAsync_v2(dstDevice: CUdeviceptr, srcDevice: CUdeviceptr, byteCount: usize, hStream: CUstream);
    fn cuMemcpyPeerAsync(
        dstDevice: CUdeviceptr,
        dstContext: CUcontext,
        srcDevice: CUdeviceptr,
        srcContext: CUcontext,
        ByteCount: usize,
        hStream: CUstream,
    );
    fn cuMemsetD8Async(dstDevice: CUdeviceptr, uc: c_uchar, n: usize, hStream: CUstream);
    fn cuMemsetD32Async(dstDevice: CUdeviceptr, ui: c_uint, n: usize, hStream: CUstream);

    fn cuStreamCreate(phStream: *mut CUstream, flags: c_uint);
    fn cuStreamDestroy_v2(hStream: CUstream);
    fn cuStreamGetCtx(hStream: CUstream, pctx: *mut CUcontext);
    fn cuStreamQuery(hStream: CUstream);
    fn cuStreamSynchronize(hStream: CUstream);
    fn cuStreamWaitEvent(hStream: CUstream, hEvent: CUevent, flags: c_uint);
    fn cuStreamIsCapturing(hStream: CUstream, captureStatus: *mut CUstreamCaptureStatus);
    fn cuEventCreate(phEvent: *mut CUevent, flags: c_uint);
    fn cuEventDestroy_v2(hEvent: CUevent);
    fn cuEventRecord(hEvent: CUevent, hStream: CUstream);
    fn cuEventQuery(hEvent: CUevent);
    fn cuEventSynchronize(hEvent: CUevent);
    fn cuEventElapsedTime(pMilliseconds: *mut f32, hStart: CUevent, hEnd: CUevent);

    fn cuGraphCreate(phGraph: *mut CUgraph, flags: c_uint);
    fn cuGraphDestroy(hGraph: CUgraph);
    fn cuGraphAddKernelNode(
        phGraphNode: *mut CUgraphNode,
        hGraph: CUgraph,
        dependencies: *const CUgraphNode,
        numDependencies: usize,
        nodeParams: *const CUDA_KERNEL_NODE_PARAMS,
    );
    fn cuGraphAddMemsetNode(
        phGraphNode: *mut CUgraphNode,
        hGraph: CUgraph,
        dependencies: *const CUgraphNode,
        numDependencies: usize,
        memsetParams: *const CUDA_MEMSET_NODE_PARAMS,
        ctx: CUcontext,
    );
    fn cuGraphAddMemcpyNode(
        phGraphNode: *mut CUgraphNode,
        hGraph: CUgraph,
        dependencies: *const CUgraphNode,
        numDependencies: usize,
        copyParams: *const CUDA_MEMCPY3D,
        ctx: CUcontext,
    );
    fn cuGraphInstantiate_v2(
        phGraphExec: *mut CUgraphExec,
        hGraph: CUgraph,
        phErrorNode: *mut CUgraphNode,
        logBuffer: *mut c_char,
        bufferSize: usize,
    );
    fn cuGraphExecDestroy(hGraphExec: CUgraphExec);
    fn cuGraphLaunch(hGraphExec: CUgraphExec, hStream: CUstream);
}
