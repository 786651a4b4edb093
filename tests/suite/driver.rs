//! The CUDA driver's own interface, for objects that are made outside the library.

#![allow(non_snake_case, clippy::too_many_arguments, reason = "the driver's functions")]
#![allow(dead_code, reason = "not every test uses all")]

use std::ffi::{c_char, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use libloading::{Library, Symbol};

/// The driver's library. Only one test has it at a time. If a test captures in the strictest mode, the calls of another
/// test fail.
pub struct Driver(Library, MutexGuard<'static, ()>);

static TURN: Mutex<()> = Mutex::new(());

impl Driver {
    pub fn open() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: this is the driver. If there is a GPU, this library has loaded it already.
        Self(unsafe { Library::new("libcuda.so.1") }.expect("a driver where there is a GPU"), turn)
    }
}

macro_rules! functions {
    ($($name:ident($($argument:ident: $t:ty),*);)*) => {
        impl Driver {
            $(
                /// # Safety
                /// The caller must obey the driver's rules for the function.
                pub unsafe fn $name(&self, $($argument: $t),*) {
                    type Function = unsafe extern "C" fn($($t),*) -> i32;
                    // SAFETY: this is the function's signature; the caller promises the rest.
                    let code = unsafe {
                        let function: Symbol<Function> =
                            self.0.get(concat!(stringify!($name), "\0").as_bytes()).expect("a function of every driver");
                        function($($argument),*)
                    };
                    assert_eq!(code, 0, stringify!($name));
                }
            )*
        }
    };
}
functions! {
    cuInit(flags: u32);
    cuDeviceGet(device: *mut i32, ordinal: i32);
    cuCtxCreate_v2(context: *mut *mut c_void, flags: u32, device: i32);
    cuCtxDestroy_v2(context: *mut c_void);
    cuCtxSetCurrent(context: *mut c_void);
    cuCtxSynchronize();
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemAlloc_v2(address: *mut u64, bytes: usize);
    cuMemFree_v2(address: u64);
    cuMemAllocAsync(address: *mut u64, bytes: usize, stream: *mut c_void);
    cuMemsetD32Async(address: u64, value: u32, count: usize, stream: *mut c_void);
    cuMemcpyDtoH_v2(host: *mut c_void, address: u64, bytes: usize);
    cuStreamCreate(stream: *mut *mut c_void, flags: u32);
    cuStreamDestroy_v2(stream: *mut c_void);
    cuStreamSynchronize(stream: *mut c_void);
    cuStreamBeginCapture_v2(stream: *mut c_void, mode: u32);
    cuStreamEndCapture(stream: *mut c_void, graph: *mut *mut c_void);
    cuGraphInstantiate_v2(
        graph: *mut *mut c_void, from: *mut c_void, node: *mut *mut c_void, log: *mut c_char, bytes: usize
    );
    cuGraphLaunch(graph: *mut c_void, stream: *mut c_void);
    cuGraphExecDestroy(graph: *mut c_void);
    cuGraphDestroy(graph: *mut c_void);
    cuDeviceGetDefaultMemPool(pool: *mut *mut c_void, device: i32);
    cuMemPoolGetAttribute(pool: *mut c_void, attribute: u32, value: *mut c_void);
    cuModuleLoadData(module: *mut *mut c_void, image: *const c_void);
    cuModuleGetFunction(function: *mut *mut c_void, module: *mut c_void, name: *const c_char);
    cuLaunchKernel(
        function: *mut c_void, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        shared: u32, stream: *mut c_void, params: *mut *mut c_void, extra: *mut *mut c_void
    );
}
