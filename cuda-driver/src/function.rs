//! A function of the driver, looked up at its first call.

use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::cell::Cell;

use crate::driver;
use crate::sys::CUresult;

thread_local! {
    /// The function that the driver was last found not to have.
    static LAST_MISSING: Cell<Option<&'static CStr>> = const { Cell::new(None) };
}

/// See [`crate::last_missing_function`].
pub(crate) fn last_missing() -> Option<&'static CStr> {
    LAST_MISSING.get()
}

/// A function's name, and its address once it is known.
pub(crate) struct Function {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Function {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The address; never null. If there is none, what the call returns.
    #[inline]
    pub(crate) fn address(&self) -> Result<*mut c_void, CUresult> {
        // Acquire, with the release of `find`: whoever jumps to the address sees the library opened and relocated.
        let address = self.address.load(Ordering::Acquire);
        if address.is_null() { self.find() } else { Ok(address) }
    }

    #[cold]
    #[inline(never)]
    fn find(&self) -> Result<*mut c_void, CUresult> {
        let Some(address) = driver::symbol(self.name) else { return Err(self.absent()) };
        self.address.store(address, Ordering::Release);
        Ok(address)
    }

    /// The code to return for a function that is not there.
    fn absent(&self) -> CUresult {
        if driver::library().is_ok() {
            LAST_MISSING.set(Some(self.name));
            CUresult::CUDA_ERROR_NOT_SUPPORTED
        } else if self.name == c"cuInit" {
            CUresult::CUDA_ERROR_NO_DEVICE
        } else {
            CUresult::CUDA_ERROR_NOT_INITIALIZED
        }
    }
}

/// The functions of a list, by their names and parameters in `cuda.h`. Each returns a [`CUresult`].
macro_rules! driver_functions {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?);)*) => {
        $(
            #[doc = concat!("Calls the driver's `", stringify!($name), "`.")]
            ///
            /// # Safety
            /// As the CUDA driver API says of the function.
            #[allow(clippy::too_many_arguments, reason = "as in `cuda.h`")]
            pub unsafe fn $name($($argument: $type),*) -> CUresult {
                type Pointer = unsafe extern "C" fn($($type),*) -> CUresult;
                const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("an identifier has no zero inside"),
                };
                static FUNCTION: $crate::function::Function = $crate::function::Function::new(NAME);

                match FUNCTION.address() {
                    Ok(address) => {
                        // SAFETY: the address is not null, and that of the driver's function of this name, which has this
                        // type in `cuda.h`. All its values are valid, whatever the driver's version: they are numbers and
                        // pointers.
                        let function = unsafe { core::mem::transmute::<*mut c_void, Pointer>(address) };
                        // SAFETY: what the function asks of its arguments is asked of our caller.
                        unsafe { function($($argument),*) }
                    }
                    Err(code) => code,
                }
            }
        )*
    };
}
pub(crate) use driver_functions;
