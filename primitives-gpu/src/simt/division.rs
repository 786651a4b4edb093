//! Integer division that a functor can call: division by zero is a fault, not a panic of `core`.
//!
//! `core`'s panics bring its formatting into a kernel; and a functor has no token to raise a fault by.

use core::panic::Location;

#[cfg(not(target_arch = "nvptx64"))]
use super::emulated;
#[cfg(target_arch = "nvptx64")]
use super::nvptx;
use super::{Fault, FaultKind};

/// Ends the thread and its launch with [`FaultKind::DivisionByZero`] at the caller's place. Outside a kernel it panics.
///
/// It needs no token, so functors can call it; in a kernel it costs the test before it and a call that is never inlined.
#[inline(always)]
#[track_caller]
pub fn division_by_zero() -> ! {
    raise(Fault { kind: FaultKind::DivisionByZero, args: [0; 2] })
}

/// Ends the thread and its launch with [`FaultKind::OutOfBounds`] at the caller's place, as [`division_by_zero`] does.
#[inline(always)]
#[track_caller]
pub fn index_out_of_bounds(index: u64, len: u64) -> ! {
    raise(Fault { kind: FaultKind::OutOfBounds, args: [index, len] })
}

#[track_caller]
fn raise(fault: Fault) -> ! {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: the control of the launch that the thread is of.
    unsafe {
        nvptx::raise(nvptx::control(), fault.kind, fault.args, Location::caller())
    };
    #[cfg(not(target_arch = "nvptx64"))]
    emulated::raise(fault, Location::caller())
}

/// `x / y`, truncated towards zero. A divisor of zero is a fault at the caller's place, see [`division_by_zero`]; the least
/// value divided by −1 wraps to itself.
///
/// ```
/// use kernel_primitives::prelude::*;
/// use kernel_primitives::simt;
///
/// #[derive(Clone, Copy, KernelParam)]
/// struct Quotient;
///
/// impl BinaryFn<i32> for Quotient {
///     type Output = i32;
///     fn apply(&self, x: i32, y: i32) -> i32 {
///         simt::divide(x, y)
///     }
/// }
///
/// assert_eq!((Quotient.apply(-7, 2), Quotient.apply(i32::MIN, -1)), (-3, i32::MIN));
/// ```
#[track_caller]
pub fn divide<T: DivideInt>(x: T, y: T) -> T {
    if y == T::default() {
        division_by_zero();
    }
    x.quotient(y)
}

/// `x % y`, with the sign of `x`. A divisor of zero is a fault at the caller's place, see [`division_by_zero`]; a divisor of
/// −1 gives 0 for all `x`.
///
/// ```
/// use kernel_primitives::simt;
///
/// assert_eq!((simt::remainder(-7, 2), simt::remainder(i64::MIN, -1)), (-1, 0));
/// ```
#[track_caller]
pub fn remainder<T: DivideInt>(x: T, y: T) -> T {
    if y == T::default() {
        division_by_zero();
    }
    x.rest(y)
}

mod sealed {
    /// Division by what is not zero, wrapping.
    #[allow(unreachable_pub, reason = "sealed")]
    pub trait Quotients: Copy + Default + PartialEq {
        fn quotient(self, by: Self) -> Self;
        fn rest(self, by: Self) -> Self;
    }
}

/// The integers that [`divide`] and [`remainder`] take: those of 8 to 64 bits.
pub trait DivideInt: sealed::Quotients {}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl DivideInt for $t {}
        impl sealed::Quotients for $t {
            #[inline(always)]
            fn quotient(self, by: Self) -> Self {
                self.wrapping_div(by)
            }
            #[inline(always)]
            fn rest(self, by: Self) -> Self {
                self.wrapping_rem(by)
            }
        }
    )*};
}
integers!(i8 u8 i16 u16 i32 u32 i64 u64 isize usize);
