//! The `cu*` symbols: one forwarding function each.
//!
//! A call goes from `cuLaunchKernel`, one jump in assembly, to the Rust function of that name in
//! this module, which reads the driver's function from a static slot, calls it, and passes a code
//! other than success through [`settle_failure`].
//!
//! The symbols come from assembly rather than `#[unsafe(no_mangle)]` for two reasons. They are
//! protected: inside the program or library that is linked they cannot be replaced by those of a
//! `libcuda.so` that something else loaded, and a `cdylib` does not export them. And one assembly
//! block is one object file: a reference to any symbol brings them all, in whatever order the
//! linker meets the crates.

use core::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_ulonglong, c_ushort, c_void};
use core::mem::{MaybeUninit, transmute};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::cell::Cell;

#[allow(clippy::wildcard_imports, reason = "the types of 353 declarations")]
use cust_raw::*;

use crate::table::driver_functions;
use crate::{codes, driver};

const SUCCESS: c_int = CUresult::CUDA_SUCCESS as c_int;
const INVALID_VALUE: c_int = CUresult::CUDA_ERROR_INVALID_VALUE as c_int;
const NOT_INITIALIZED: c_int = CUresult::CUDA_ERROR_NOT_INITIALIZED as c_int;
const NO_DEVICE: c_int = CUresult::CUDA_ERROR_NO_DEVICE as c_int;
const NOT_SUPPORTED: c_int = CUresult::CUDA_ERROR_NOT_SUPPORTED as c_int;
const UNKNOWN: c_int = CUresult::CUDA_ERROR_UNKNOWN as c_int;

thread_local! {
    /// The latest code other than success, as the driver returned it.
    static LAST_ERROR: Cell<Option<c_int>> = const { Cell::new(None) };
    /// The code behind the latest `CUDA_ERROR_UNKNOWN`, where that was put in for another one.
    static LAST_UNMAPPED: Cell<Option<c_int>> = const { Cell::new(None) };
    /// The function that the driver was last found not to have.
    static LAST_MISSING: Cell<Option<&'static CStr>> = const { Cell::new(None) };
}

/// See [`crate::last_error_code`].
pub(crate) fn last_error() -> Option<c_int> {
    LAST_ERROR.get()
}

/// See [`crate::last_unmapped_code`].
pub(crate) fn last_unmapped() -> Option<c_int> {
    LAST_UNMAPPED.get()
}

/// See [`crate::last_missing_function`].
pub(crate) fn last_missing() -> Option<&'static CStr> {
    LAST_MISSING.get()
}

/// Turns what the driver returned into a variant of `cust_raw`'s enum.
#[inline(always)]
fn settle(code: c_int) -> c_int {
    if code == SUCCESS { SUCCESS } else { settle_failure(code) }
}

#[cold]
#[inline(never)]
fn settle_failure(code: c_int) -> c_int {
    LAST_ERROR.set(Some(code));
    if !codes::is_variant(code) {
        LAST_UNMAPPED.set(Some(code));
        return UNKNOWN;
    }
    if code == UNKNOWN {
        LAST_UNMAPPED.set(None);
    }
    code
}

/// Looks a function of the driver up, and keeps what it finds in `slot`.
#[cold]
#[inline(never)]
fn find(name: &CStr, slot: &AtomicPtr<c_void>) -> Option<*mut c_void> {
    let function = driver::symbol(name)?;
    // Release, with the acquire of the forwarding function: whoever jumps to the address sees the
    // library opened and relocated.
    slot.store(function, Ordering::Release);
    Some(function)
}

/// The code to return for a function that is not there.
#[cold]
#[inline(never)]
fn absent(name: &'static CStr) -> c_int {
    if driver::library().is_ok() {
        LAST_MISSING.set(Some(name));
        NOT_SUPPORTED
    } else if name == c"cuInit" {
        NO_DEVICE
    } else {
        NOT_INITIALIZED
    }
}

/// The name of a function as a C string.
macro_rules! c_name {
    ($name:ident) => {
        const {
            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("an identifier has no zero inside"),
            }
        }
    };
}

/// One forwarding function; `otherwise` is what it returns where the driver has no such function.
///
/// Its slot starts with a function of the same type that looks the driver's up, so the way of every
/// later call is one load, one call and one test, with no argument saved.
///
/// The parameters are `MaybeUninit`, which is passed as its content is, because nothing is assumed
/// about the values: an enum of `cust_raw` may hold what only a newer driver knows. The driver's
/// answer is an integer for the same reason.
macro_rules! forward {
    ($name:ident($($argument:ident: $type:ty),*), $otherwise:expr) => {
        // The declaration that callers see.
        const _: unsafe extern "C" fn($($type),*) -> CUresult = cust_raw::$name;

        // # Safety
        // As the driver's function.
        unsafe extern "C" fn $name($($argument: MaybeUninit<$type>),*) -> c_int {
            type Function = unsafe extern "C" fn($(MaybeUninit<$type>),*) -> c_int;
            static SLOT: AtomicPtr<c_void> = AtomicPtr::new(first as Function as *mut c_void);

            // # Safety
            // As the driver's function.
            unsafe extern "C" fn first($($argument: MaybeUninit<$type>),*) -> c_int {
                let Some(function) = find(c_name!($name), &SLOT) else {
                    return $otherwise;
                };
                // SAFETY: the address is that of the driver's function of this name, which is
                // declared with these parameters and returns a `CUresult`, an enum of C of the
                // size of an `int`.
                let function = unsafe { transmute::<*mut c_void, Function>(function) };
                // SAFETY: what the function asks of its arguments is asked of our caller.
                unsafe { function($($argument),*) }
            }

            let function = SLOT.load(Ordering::Acquire);
            // SAFETY: the slot holds `first` or the driver's function, see there.
            let function = unsafe { transmute::<*mut c_void, Function>(function) };
            // SAFETY: what the function asks of its arguments is asked of our caller.
            settle(unsafe { function($($argument),*) })
        }
    };
}

/// The forwarding functions of the list.
macro_rules! forwarders {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(forward!($name($($argument: $type),*), absent(c_name!($name)));)*
    };
}

/// The public symbols, which jump to the forwarding functions.
macro_rules! symbols {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        symbols!(@ cuGetErrorString cuGetErrorName $($name)*);
    };
    (@ $($name:ident)*) => {
        #[cfg(target_arch = "x86_64")]
        symbols!(@ "jmp", $($name)*);
        #[cfg(target_arch = "aarch64")]
        symbols!(@ "b", $($name)*);

        /// How many functions there are: as many as `cust_raw` declares.
        const COUNT: usize = [$(stringify!($name)),*].len();
        const _: () = assert!(COUNT == 353);
    };
    (@ $jump:literal, $($name:ident)*) => {
        core::arch::global_asm!(
            $(concat!(
                ".pushsection .text.", stringify!($name), ",\"ax\",@progbits\n",
                ".balign 16\n",
                ".globl ", stringify!($name), "\n",
                ".protected ", stringify!($name), "\n",
                ".type ", stringify!($name), ",@function\n",
                stringify!($name), ":\n",
                ".cfi_startproc\n",
                $jump, " {", stringify!($name), "}\n",
                ".cfi_endproc\n",
                ".size ", stringify!($name), ", . - ", stringify!($name), "\n",
                ".popsection",
            ),)*
            $($name = sym $name,)*
        );
    };
}

#[allow(
    non_snake_case,
    improper_ctypes_definitions,
    clippy::too_many_arguments,
    reason = "the names, types and parameters are the driver's"
)]
mod functions {
    use super::*;

    driver_functions!(forwarders);

    // `cust` asks for the text when it prints an error, so these answer without a driver too.
    forward!(cuGetErrorString(error: CUresult, pStr: *mut *const c_char), {
        // SAFETY: the caller passes what the function of the driver takes.
        unsafe { own_text(error, pStr, codes::text) }
    });
    forward!(cuGetErrorName(error: CUresult, pStr: *mut *const c_char), {
        // SAFETY: as above.
        unsafe { own_text(error, pStr, codes::name) }
    });

    /// Answers for the driver where there is none.
    ///
    /// # Safety
    ///
    /// `error` holds a number, and `out` null or a pointer that may be written through.
    unsafe fn own_text(
        error: MaybeUninit<CUresult>,
        out: MaybeUninit<*mut *const c_char>,
        text: fn(c_int) -> Option<&'static CStr>,
    ) -> c_int {
        // SAFETY: the enum is `repr(i32)` and, by the contract, initialised; whether it is one of
        // its variants is left open by reading it as a number.
        let code = unsafe { transmute::<MaybeUninit<CUresult>, c_int>(error) };
        // SAFETY: by the contract.
        let out = unsafe { out.assume_init() };
        if out.is_null() {
            return INVALID_VALUE;
        }
        let text = text(code);
        // SAFETY: not null, so by the contract it may be written through.
        unsafe { out.write(text.map_or(ptr::null(), CStr::as_ptr)) };
        if text.is_some() { SUCCESS } else { INVALID_VALUE }
    }

    driver_functions!(symbols);
}
