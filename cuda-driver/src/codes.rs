//! The error codes of the driver: those that `cust_raw`'s enum has, and those that came after it.

use core::ffi::{CStr, c_int};

macro_rules! codes {
    (known { $($known:ident;)* } newer { $($newer:ident = $value:literal;)* }) => {
        /// The codes of `cust_raw`'s enum, as the numbers that the driver returns.
        mod known {
            $(pub(super) const $known: super::c_int = cust_raw::CUresult::$known as super::c_int;)*
        }

        // The list above is complete: this match would not compile without a variant of the enum.
        const _: fn(cust_raw::CUresult) = |code| match code {
            $(cust_raw::CUresult::$known)|* => {}
        };

        /// Whether `code` is a variant of `cust_raw`'s enum.
        pub(crate) fn is_variant(code: c_int) -> bool {
            matches!(code, $(known::$known)|*)
        }

        /// The name of `code` in `cuda.h`.
        pub(crate) fn name(code: c_int) -> Option<&'static CStr> {
            Some(match code {
                $(known::$known => const { literal(concat!(stringify!($known), "\0")) },)*
                $($value => const { literal(concat!(stringify!($newer), "\0")) },)*
                _ => return None,
            })
        }

        #[cfg(test)]
        const NEWER: &[c_int] = &[$($value),*];
    };
}

/// What `code` means, for programs that print an error where there is no driver.
pub(crate) fn text(code: c_int) -> Option<&'static CStr> {
    Some(match code {
        known::CUDA_SUCCESS => c"no error",
        known::CUDA_ERROR_NO_DEVICE => c"no CUDA driver was found, so there is no device",
        known::CUDA_ERROR_NOT_INITIALIZED => c"the CUDA driver is not initialised",
        _ => return name(code),
    })
}

/// `text`, which ends in a zero, as a C string.
const fn literal(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a name ends in its only zero"),
    }
}

codes! {
    known {
        CUDA_SUCCESS;
        CUDA_ERROR_INVALID_VALUE;
        CUDA_ERROR_OUT_OF_MEMORY;
        CUDA_ERROR_NOT_INITIALIZED;
        CUDA_ERROR_DEINITIALIZED;
        CUDA_ERROR_PROFILER_DISABLED;
        CUDA_ERROR_PROFILER_NOT_INITIALIZED;
        CUDA_ERROR_PROFILER_ALREADY_STARTED;
        CUDA_ERROR_PROFILER_ALREADY_STOPPED;
        CUDA_ERROR_STUB_LIBRARY;
        CUDA_ERROR_NO_DEVICE;
        CUDA_ERROR_INVALID_DEVICE;
        CUDA_ERROR_DEVICE_NOT_LICENSED;
        CUDA_ERROR_INVALID_IMAGE;
        CUDA_ERROR_INVALID_CONTEXT;
        CUDA_ERROR_CONTEXT_ALREADY_CURRENT;
        CUDA_ERROR_MAP_FAILED;
        CUDA_ERROR_UNMAP_FAILED;
        CUDA_ERROR_ARRAY_IS_MAPPED;
        CUDA_ERROR_ALREADY_MAPPED;
        CUDA_ERROR_NO_BINARY_FOR_GPU;
        CUDA_ERROR_ALREADY_ACQUIRED;
        CUDA_ERROR_NOT_MAPPED;
        CUDA_ERROR_NOT_MAPPED_AS_ARRAY;
        CUDA_ERROR_NOT_MAPPED_AS_POINTER;
        CUDA_ERROR_ECC_UNCORRECTABLE;
        CUDA_ERROR_UNSUPPORTED_LIMIT;
        CUDA_ERROR_CONTEXT_ALREADY_IN_USE;
        CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
        CUDA_ERROR_INVALID_PTX;
        CUDA_ERROR_INVALID_GRAPHICS_CONTEXT;
        CUDA_ERROR_NVLINK_UNCORRECTABLE;
        CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
        CUDA_ERROR_JIT_COMPILATION_DISABLED;
        CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
        CUDA_ERROR_INVALID_SOURCE;
        CUDA_ERROR_FILE_NOT_FOUND;
        CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
        CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
        CUDA_ERROR_OPERATING_SYSTEM;
        CUDA_ERROR_INVALID_HANDLE;
        CUDA_ERROR_ILLEGAL_STATE;
        CUDA_ERROR_NOT_FOUND;
        CUDA_ERROR_NOT_READY;
        CUDA_ERROR_ILLEGAL_ADDRESS;
        CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
        CUDA_ERROR_LAUNCH_TIMEOUT;
        CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING;
        CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
        CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
        CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
        CUDA_ERROR_CONTEXT_IS_DESTROYED;
        CUDA_ERROR_ASSERT;
        CUDA_ERROR_TOO_MANY_PEERS;
        CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
        CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
        CUDA_ERROR_HARDWARE_STACK_ERROR;
        CUDA_ERROR_ILLEGAL_INSTRUCTION;
        CUDA_ERROR_MISALIGNED_ADDRESS;
        CUDA_ERROR_INVALID_ADDRESS_SPACE;
        CUDA_ERROR_INVALID_PC;
        CUDA_ERROR_LAUNCH_FAILED;
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
        CUDA_ERROR_NOT_PERMITTED;
        CUDA_ERROR_NOT_SUPPORTED;
        CUDA_ERROR_SYSTEM_NOT_READY;
        CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
        CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE;
        CUDA_ERROR_MPS_CONNECTION_FAILED;
        CUDA_ERROR_MPS_RPC_FAILURE;
        CUDA_ERROR_MPS_SERVER_NOT_READY;
        CUDA_ERROR_MPS_MAX_CLIENTS_REACHED;
        CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED;
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        CUDA_ERROR_STREAM_CAPTURE_MERGE;
        CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
        CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
        CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
        CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        CUDA_ERROR_CAPTURED_EVENT;
        CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
        CUDA_ERROR_TIMEOUT;
        CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
        CUDA_ERROR_EXTERNAL_DEVICE;
        CUDA_ERROR_UNKNOWN;
    }
    // From `cuda.h` of CUDA 13.5.
    newer {
        CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER = 36;
        CUDA_ERROR_DEVICE_UNAVAILABLE = 46;
        CUDA_ERROR_MULTICAST_RESOURCE_FULL = 47;
        CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC = 225;
        CUDA_ERROR_CONTAINED = 226;
        CUDA_ERROR_INSUFFICIENT_LOADER_VERSION = 227;
        CUDA_ERROR_LOSSY_QUERY = 402;
        CUDA_ERROR_TENSOR_MEMORY_LEAK = 721;
        CUDA_ERROR_MPS_CLIENT_TERMINATED = 810;
        CUDA_ERROR_CDP_NOT_SUPPORTED = 811;
        CUDA_ERROR_CDP_VERSION_MISMATCH = 812;
        CUDA_ERROR_INVALID_CLUSTER_SIZE = 912;
        CUDA_ERROR_FUNCTION_NOT_LOADED = 913;
        CUDA_ERROR_INVALID_RESOURCE_TYPE = 914;
        CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION = 915;
        CUDA_ERROR_KEY_ROTATION = 916;
        CUDA_ERROR_STREAM_DETACHED = 917;
        CUDA_ERROR_GRAPH_RECAPTURE_FAILURE = 918;
        CUDA_ERROR_FABRIC_NOT_READY = 919;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_codes_are_named_and_are_no_variants() {
        assert_eq!(NEWER.len(), 19);
        for &code in NEWER {
            assert!(!is_variant(code), "{code}");
            assert!(name(code).is_some(), "{code}");
        }
    }

    #[test]
    fn known_codes_are_named() {
        let known: Vec<c_int> = (-1..2000).filter(|&code| is_variant(code)).collect();
        assert_eq!(known.len(), 87);
        assert!(known.iter().all(|&code| name(code).is_some()));
        assert_eq!(name(0), Some(c"CUDA_SUCCESS"));
        assert_eq!(name(999), Some(c"CUDA_ERROR_UNKNOWN"));
        assert_eq!(name(12345), None);
    }
}
