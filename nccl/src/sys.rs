//! NCCL's functions and types, under the names that `nccl.h` gives them.
//!
//! An enumeration of C is an integer here, with its values as constants: what a newer NCCL returns is a valid value, too. A stream is the
//! driver's `CUstream`, which is also the runtime's `cudaStream_t`.

#![allow(non_camel_case_types, non_snake_case, non_upper_case_globals, reason = "the names are NCCL's")]

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::mem::transmute;
use std::fmt;

use libloading::Library;

use crate::library::{Version, symbol};

/// What nobody makes: communicators are pointers to it.
#[doc(hidden)]
#[repr(C)]
#[derive(Debug)]
pub struct ncclComm {
    _opaque: [u8; 0],
}

/// A communicator: a member of a group.
pub type ncclComm_t = *mut ncclComm;

/// What the members of a group find each other by.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ncclUniqueId {
    /// Bytes without a meaning of their own.
    pub internal: [c_char; 128],
}

const _: () =
    assert!(size_of::<ncclUniqueId>() == 128 && align_of::<ncclUniqueId>() == 1, "another layout than in `nccl.h`");

/// Enumerations: an integer, and constants for its values that are in use.
macro_rules! enumerations {
    ($($(#[$doc:meta])* $type:ident { $($name:ident = $value:literal,)* })*) => {
        $(
            $(#[$doc])*
            #[repr(transparent)]
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub struct $type(pub c_uint);

            #[allow(missing_docs, reason = "as in `nccl.h`")]
            impl $type {
                $(pub const $name: Self = Self($value);)*
            }
        )*
    };
}

enumerations! {
    /// What a call returns. Any number is valid; these are the ones that this workspace names.
    ncclResult_t {
        ncclSuccess = 0,
        ncclUnhandledCudaError = 1,
        ncclSystemError = 2,
        ncclInternalError = 3,
        ncclInvalidArgument = 4,
        ncclInvalidUsage = 5,
        ncclRemoteError = 6,
        ncclInProgress = 7,
    }

    /// An operator of reductions.
    ncclRedOp_t {
        ncclSum = 0,
        ncclProd = 1,
        ncclMax = 2,
        ncclMin = 3,
        ncclAvg = 4,
    }

    /// An element type.
    ncclDataType_t {
        ncclInt8 = 0,
        ncclUint8 = 1,
        ncclInt32 = 2,
        ncclUint32 = 3,
        ncclInt64 = 4,
        ncclUint64 = 5,
        ncclFloat16 = 6,
        ncclFloat32 = 7,
        ncclFloat64 = 8,
        ncclBfloat16 = 9,
    }
}

/// The functions of a list, by their names and parameters in `nccl.h`. Each returns a [`ncclResult_t`].
macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?);)*) => {
        /// NCCL that was opened, from [`load`](crate::load).
        pub struct Nccl {
            $($name: unsafe extern "C" fn($($type),*) -> ncclResult_t,)*
            error_string: unsafe extern "C" fn(ncclResult_t) -> *const c_char,
            version: Version,
            /// Never closed: this is kept for the rest of the process.
            _library: Library,
        }

        impl Nccl {
            /// Looks up all functions of a library of this version. An error is the name of one that it does not have.
            pub(crate) fn new(library: Library, version: Version) -> Result<Self, &'static str> {
                $(
                    let $name = {
                        const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                            Ok(name) => name,
                            Err(_) => panic!("an identifier has no zero inside"),
                        };
                        let address = symbol(&library, NAME).ok_or(stringify!($name))?;
                        // SAFETY: the address is not null, and that of NCCL's function of this name, which has this type in
                        // `nccl.h`. All its values are valid, whatever the version: they are numbers and pointers.
                        unsafe { transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> ncclResult_t>(address) }
                    };
                )*
                let address = symbol(&library, c"ncclGetErrorString").ok_or("ncclGetErrorString")?;
                type ErrorString = unsafe extern "C" fn(ncclResult_t) -> *const c_char;
                // SAFETY: as above.
                let error_string = unsafe { transmute::<*mut c_void, ErrorString>(address) };
                Ok(Self { $($name,)* error_string, version, _library: library })
            }

            $(
                #[doc = concat!("Calls NCCL's `", stringify!($name), "`.")]
                ///
                /// # Safety
                /// As NCCL's documentation says of the function.
                #[allow(clippy::too_many_arguments, reason = "as in `nccl.h`")]
                pub unsafe fn $name(&self, $($argument: $type),*) -> ncclResult_t {
                    // SAFETY: what the function asks of its arguments is asked of our caller. The library is open.
                    unsafe { (self.$name)($($argument),*) }
                }
            )*
        }
    };
}

functions! {
    fn ncclGetUniqueId(uniqueId: *mut ncclUniqueId);

    fn ncclCommInitRank(comm: *mut ncclComm_t, nranks: c_int, commId: ncclUniqueId, rank: c_int);
    fn ncclCommInitAll(comm: *mut ncclComm_t, ndev: c_int, devlist: *const c_int);
    fn ncclCommDestroy(comm: ncclComm_t);
    fn ncclCommAbort(comm: ncclComm_t);
    fn ncclCommGetAsyncError(comm: ncclComm_t, asyncError: *mut ncclResult_t);

    fn ncclReduce(
        sendbuff: *const c_void,
        recvbuff: *mut c_void,
        count: usize,
        datatype: ncclDataType_t,
        op: ncclRedOp_t,
        root: c_int,
        comm: ncclComm_t,
        stream: *mut c_void,
    );
    fn ncclBroadcast(
        sendbuff: *const c_void,
        recvbuff: *mut c_void,
        count: usize,
        datatype: ncclDataType_t,
        root: c_int,
        comm: ncclComm_t,
        stream: *mut c_void,
    );
    fn ncclAllReduce(
        sendbuff: *const c_void,
        recvbuff: *mut c_void,
        count: usize,
        datatype: ncclDataType_t,
        op: ncclRedOp_t,
        comm: ncclComm_t,
        stream: *mut c_void,
    );
    fn ncclAllGather(
        sendbuff: *const c_void,
        recvbuff: *mut c_void,
        sendcount: usize,
        datatype: ncclDataType_t,
        comm: ncclComm_t,
        stream: *mut c_void,
    );
    fn ncclReduceScatter(
        sendbuff: *const c_void,
        recvbuff: *mut c_void,
        recvcount: usize,
        datatype: ncclDataType_t,
        op: ncclRedOp_t,
        comm: ncclComm_t,
        stream: *mut c_void,
    );
    fn ncclSend(
        sendbuff: *const c_void,
        count: usize,
        datatype: ncclDataType_t,
        peer: c_int,
        comm: ncclComm_t,
        stream: *mut c_void,
    );
    fn ncclRecv(
        recvbuff: *mut c_void,
        count: usize,
        datatype: ncclDataType_t,
        peer: c_int,
        comm: ncclComm_t,
        stream: *mut c_void,
    );
    fn ncclGroupStart();
    fn ncclGroupEnd();
}

impl Nccl {
    /// The version of the library.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// What NCCL says that a result means.
    #[must_use]
    pub fn describe(&self, result: ncclResult_t) -> String {
        // SAFETY: the function takes any number, and returns a static string.
        let text = unsafe { (self.error_string)(result) };
        if text.is_null() {
            return format!("NCCL error {}", result.0);
        }
        // SAFETY: as above.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

impl fmt::Debug for Nccl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nccl({})", self.version)
    }
}
