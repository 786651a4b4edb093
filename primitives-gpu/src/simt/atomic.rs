//! Atomics with an order and a scope.

use core::ops::{BitAnd, BitOr, BitXor};
#[cfg(not(target_arch = "nvptx64"))]
use core::panic::Location;

use super::Block;
#[cfg(not(target_arch = "nvptx64"))]
use super::emulated::{Access, AccessKind, Space};
#[cfg(target_arch = "nvptx64")]
use super::nvptx;
use crate::element::Element;

/// The threads that an atomic or a fence affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Scope {
    /// The threads of the block (`.cta`).
    Block = 0,
    /// The threads of the device (`.gpu`).
    Device = 1,
    /// All threads, including those of the host and of other devices (`.sys`).
    System = 2,
}

/// The other accesses that an atomic orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum AtomicOrder {
    /// Nothing.
    Relaxed = 0,
    /// Later accesses stay after it.
    Acquire = 1,
    /// Earlier accesses stay before it.
    Release = 2,
    /// Both: later accesses stay after it, and earlier ones before it.
    AcqRel = 3,
}

impl AtomicOrder {
    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    fn acquires(self) -> bool {
        matches!(self, Self::Acquire | Self::AcqRel)
    }

    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    fn releases(self) -> bool {
        matches!(self, Self::Release | Self::AcqRel)
    }
}

/// The read-modify-write operations. Their numbers are those of the runtime module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs, unreachable_pub, reason = "named by a sealed trait only")]
pub enum Update {
    Add = 0,
    MinSigned = 1,
    MaxSigned = 2,
    MinUnsigned = 3,
    MaxUnsigned = 4,
    And = 5,
    Or = 6,
    Xor = 7,
    Exchange = 8,
    AddFloat = 9,
}

mod sealed {
    use super::Update;

    /// How the bits of a type go through the hardware's 32- and 64-bit atomics.
    #[allow(unreachable_pub, reason = "sealed")]
    pub trait Word: Copy {
        const WIDE: bool;
        const ADD: Update;
        const MIN: Update;
        const MAX: Update;
        fn bits(self) -> u64;
        fn of(bits: u64) -> Self;
        fn sum(self, other: Self) -> Self;
        /// Returns zero of the same sign for a value that an addition in global memory treats as zero.
        fn flushed(self) -> Self;
    }

    macro_rules! words {
        ($($t:ty, $u:ty, $wide:literal, $add:ident, $min:ident, $max:ident, $bits:expr, $of:expr, $sum:expr, $flush:expr;)*) => {$(
            impl Word for $t {
                const WIDE: bool = $wide;
                const ADD: Update = Update::$add;
                const MIN: Update = Update::$min;
                const MAX: Update = Update::$max;
                #[inline(always)]
                fn bits(self) -> u64 { let f: fn($t) -> $u = $bits; f(self) as u64 }
                #[inline(always)]
                fn of(bits: u64) -> Self { let f: fn($u) -> $t = $of; f(bits as $u) }
                #[inline(always)]
                fn sum(self, other: Self) -> Self { let f: fn($t, $t) -> $t = $sum; f(self, other) }
                #[inline(always)]
                fn flushed(self) -> Self { let f: fn($t) -> $t = $flush; f(self) }
            }
        )*};
    }
    words! {
        u32, u32, false, Add, MinUnsigned, MaxUnsigned, |v| v, |b| b, |a, b| a.wrapping_add(b), |v| v;
        i32, u32, false, Add, MinSigned, MaxSigned, |v| v as u32, |b| b as i32, |a, b| a.wrapping_add(b), |v| v;
        u64, u64, true, Add, MinUnsigned, MaxUnsigned, |v| v, |b| b, |a, b| a.wrapping_add(b), |v| v;
        i64, u64, true, Add, MinSigned, MaxSigned, |v| v as u64, |b| b as i64, |a, b| a.wrapping_add(b), |v| v;
        f32, u32, false, AddFloat, Exchange, Exchange, |v| v.to_bits(), f32::from_bits, |a, b| a + b, |v| if v.is_subnormal() { 0f32.copysign(v) } else { v };
        f64, u64, true, AddFloat, Exchange, Exchange, |v| v.to_bits(), f64::from_bits, |a, b| a + b, |v| v;
    }
}
use sealed::Word;

/// Elements with atomic access: `u32`, `i32`, `u64`, `i64`, `f32`, `f64`.
pub trait AtomicElement: Element + Word {}

/// Elements with atomic minimum, maximum and bitwise operations: the integers among [`AtomicElement`].
pub trait AtomicInt:
    AtomicElement + Ord + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self>
{
}

macro_rules! atomic_elements {
    ($($trait:ident: $($t:ty),*;)*) => {$($(impl $trait for $t {})*)*};
}
atomic_elements! {
    AtomicElement: u32, i32, u64, i64, f32, f64;
    AtomicInt: u32, i32, u64, i64;
}

/// One element for atomic accesses. They are relaxed at device scope (block scope in shared memory), unless set otherwise.
///
/// ```
/// # use kernel_primitives::prelude::*;
/// #[kernel]
/// fn count_negative(cx: Block, x: Global<f32>, counter: GlobalMut<u32, Atomic>) {
///     for i in cx.items(x.len()) {
///         if x[i] < 0.0 {
///             counter.at(0).fetch_add(1);
///         }
///     }
/// }
/// ```
#[derive(Clone, Copy)]
pub struct AtomicRef<'k, T> {
    #[cfg_attr(target_arch = "nvptx64", expect(dead_code, reason = "for the emulator's reports"))]
    cx: Block<'k>,
    address: *mut T,
    order: AtomicOrder,
    scope: Scope,
    shared: bool,
}

impl<'k, T: AtomicElement> AtomicRef<'k, T> {
    /// # Safety
    /// `address` is valid for `'k`, aligned, and every access to it during `'k` goes through atomics.
    #[inline(always)]
    pub(crate) unsafe fn new(cx: Block<'k>, address: *mut T, shared: bool) -> Self {
        let scope = if shared { Scope::Block } else { Scope::Device };
        Self { cx, address, order: AtomicOrder::Relaxed, scope, shared }
    }

    /// The same element with another order. A load with only a release order, or a store with only an acquire order, is relaxed.
    #[inline(always)]
    pub fn order(self, order: AtomicOrder) -> Self {
        Self { order, ..self }
    }

    /// The same element at another scope. In global memory, the scope is at least the device, because other blocks have the element, too.
    #[inline(always)]
    pub fn scope(self, scope: Scope) -> Self {
        let scope = if scope == Scope::Block && !self.shared { Scope::Device } else { scope };
        Self { scope, ..self }
    }

    /// Reads the element.
    #[track_caller]
    pub fn load(self) -> T {
        #[cfg(target_arch = "nvptx64")]
        // SAFETY: `new`'s contract.
        return T::of(unsafe { nvptx::atomic_load(self.address.cast(), T::WIDE, self.scope, self.order.acquires()) });
        #[cfg(not(target_arch = "nvptx64"))]
        {
            self.report(AccessKind::AtomicRead(self.order, self.scope));
            self.update_with(|_| None)
        }
    }

    /// Writes the element.
    #[track_caller]
    pub fn store(self, value: T) {
        #[cfg(target_arch = "nvptx64")]
        // SAFETY: `new`'s contract.
        unsafe {
            nvptx::atomic_store(self.address.cast(), T::WIDE, value.bits(), self.scope, self.order.releases())
        };
        #[cfg(not(target_arch = "nvptx64"))]
        {
            self.report(AccessKind::AtomicWrite(self.order, self.scope));
            self.update_with(|_| Some(value));
        }
    }

    /// Adds `value` (integers wrap) and returns the previous value.
    ///
    /// For `f32` in global memory, GPUs treat subnormal numbers as zeros of their sign: the element, `value` and the sum. So a sum of
    /// subnormal numbers stays zero there. They do not do so in shared memory, nor for `f64`. The emulator does the same as GPUs.
    #[inline(always)]
    #[track_caller]
    pub fn fetch_add(self, value: T) -> T {
        self.update(T::ADD, value, |old| {
            if self.shared { old.sum(value) } else { old.flushed().sum(value.flushed()).flushed() }
        })
    }

    /// Stores `value` and returns the previous value.
    #[inline(always)]
    #[track_caller]
    pub fn exchange(self, value: T) -> T {
        self.update(Update::Exchange, value, |_| value)
    }

    /// Stores `new` if the element has the bits of `expected`. Returns the previous value, which has the bits of `expected` exactly if
    /// `new` was stored.
    #[track_caller]
    pub fn compare_exchange(self, expected: T, new: T) -> T {
        #[cfg(target_arch = "nvptx64")]
        {
            if self.order.releases() {
                nvptx::fence(self.scope);
            }
            // SAFETY: `new`'s contract.
            let old =
                unsafe { nvptx::atomic_cas(self.address.cast(), T::WIDE, expected.bits(), new.bits(), self.scope) };
            if self.order.acquires() {
                nvptx::fence(self.scope);
            }
            T::of(old)
        }
        #[cfg(not(target_arch = "nvptx64"))]
        {
            // An exchange that fails is a read. In the checked emulator, lanes run one by one.
            let fails = self.cx.lane_state().checked && self.update_with(|_| None).bits() != expected.bits();
            let kind = if fails { AccessKind::AtomicRead } else { AccessKind::AtomicUpdate };
            self.report(kind(self.order, self.scope));
            self.update_with(|old| (old.bits() == expected.bits()).then_some(new))
        }
    }

    #[track_caller]
    fn update(self, update: Update, value: T, host: impl Fn(T) -> T) -> T {
        #[cfg(target_arch = "nvptx64")]
        {
            let _ = host;
            if self.order.releases() {
                nvptx::fence(self.scope);
            }
            // SAFETY: `new`'s contract.
            let old = unsafe { nvptx::atomic_update(self.address.cast(), T::WIDE, update, value.bits(), self.scope) };
            if self.order.acquires() {
                nvptx::fence(self.scope);
            }
            T::of(old)
        }
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let _ = (update, value);
            self.report(AccessKind::AtomicUpdate(self.order, self.scope));
            self.update_with(|old| Some(host(old)))
        }
    }

    #[cfg(not(target_arch = "nvptx64"))]
    #[track_caller]
    fn report(self, kind: AccessKind) {
        let lane = self.cx.lane_state();
        if lane.checked {
            let space = if self.shared { Space::Shared } else { Space::Global };
            let access = Access { kind, space, address: self.address.addr(), len: size_of::<T>() };
            lane.machine.access(lane, access, Location::caller());
        }
    }

    /// Replaces the element by the result of `f`, and repeats this until no other lane interferes. Returns the previous value. The lane
    /// notes it if its bits change.
    #[cfg(not(target_arch = "nvptx64"))]
    fn update_with(self, f: impl Fn(T) -> Option<T>) -> T {
        use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
        macro_rules! swap {
            ($atomic:ty, $bits:ty) => {{
                // SAFETY: `new`'s contract; the size and alignment are those of T.
                let cell = unsafe { <$atomic>::from_ptr(self.address.cast()) };
                let mut old = cell.load(SeqCst);
                while let Some(new) = f(T::of(old as u64)) {
                    let new = new.bits() as $bits;
                    match cell.compare_exchange_weak(old, new, SeqCst, SeqCst) {
                        Ok(_) if new == old => break,
                        Ok(_) => {
                            self.cx.lane_state().changed_memory.set(true);
                            break;
                        }
                        Err(now) => old = now,
                    }
                }
                T::of(old as u64)
            }};
        }
        if T::WIDE { swap!(AtomicU64, u64) } else { swap!(AtomicU32, u32) }
    }
}

/// Minimum, maximum and bitwise operations. Each returns the previous value.
impl<'k, T: AtomicInt> AtomicRef<'k, T> {
    /// Stores the smaller of the element and `value`.
    #[inline(always)]
    #[track_caller]
    pub fn fetch_min(self, value: T) -> T {
        self.update(T::MIN, value, |old| old.min(value))
    }

    /// Stores the larger of the element and `value`.
    #[inline(always)]
    #[track_caller]
    pub fn fetch_max(self, value: T) -> T {
        self.update(T::MAX, value, |old| old.max(value))
    }

    /// Bitwise and.
    #[inline(always)]
    #[track_caller]
    pub fn fetch_and(self, value: T) -> T {
        self.update(Update::And, value, |old| old & value)
    }

    /// Bitwise or.
    #[inline(always)]
    #[track_caller]
    pub fn fetch_or(self, value: T) -> T {
        self.update(Update::Or, value, |old| old | value)
    }

    /// Bitwise exclusive or.
    #[inline(always)]
    #[track_caller]
    pub fn fetch_xor(self, value: T) -> T {
        self.update(Update::Xor, value, |old| old ^ value)
    }
}
