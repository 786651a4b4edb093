//! The seam on an NVIDIA GPU through Rust CUDA's `cuda_std`, for kernels that rustc_codegen_nvvm compiles.
//!
//! With the feature `rust-cuda` this module takes the place of `nvptx.rs` where the target is `nvptx64`. On the host it is
//! compiled and not used: that checks its types.
//!
//! **None of this was run.** Its types were checked on the host against `cuda_std` 0.2.2, the newest release, whose
//! functions on the host only panic. That release does not compile for the GPU with a current compiler; the repository's
//! version does, with the compiler that Rust CUDA asks for. The module keeps to what the two have in common.
//!
//! They have in common indices, barriers with votes, the barrier of a warp, fences, atomic loads, stores and updates, the
//! address of dynamic shared memory, and `vprintf`. What they have not:
//!
//! | function | here |
//! |---|---|
//! | shuffles, ballots, matches, the active mask, `redux`, compare-and-swap, split barriers, the length of dynamic shared memory | panic |
//! | faults | panic; a panic in `cuda_std` is a trap, after which the context is lost |
//! | `spin` | waits, and does not see that another thread has faulted |
//! | vector accesses | the width is the compiler's choice |

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use cuda_std::atomic::mid;
use cuda_std::cfg::ComputeCapability;
use cuda_std::{io, shared, thread, warp};
use half::{bf16, f16};

use super::atomic::Update;
use super::{Dim3, FaultControl, FaultKind, Place, ReduxOp, Scope, ShuffleMode};

super::seam::check!();

/// Ends the thread that calls what `cuda_std` lacks.
#[cold]
fn lacking(what: &str) -> ! {
    panic!("cuda_std has no {what}")
}

macro_rules! index3 {
    ($($name:ident: $x:ident $y:ident $z:ident;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name() -> Dim3 {
            Dim3::new(thread::$x(), thread::$y(), thread::$z())
        }
    )*};
}
index3! {
    thread_idx: thread_idx_x thread_idx_y thread_idx_z;
    block_idx: block_idx_x block_idx_y block_idx_z;
    block_dim: block_dim_x block_dim_y block_dim_z;
    grid_dim: grid_dim_x grid_dim_y grid_dim_z;
}

/// 800 for all that is newer: `cuda_std` knows no later architecture.
pub(crate) fn arch() -> u32 {
    match ComputeCapability::from_cuda_arch_env() {
        ComputeCapability::Compute80 => 800,
        ComputeCapability::Compute75 => 750,
        _ => 700,
    }
}

#[inline(always)]
pub(crate) fn lane_id() -> u32 {
    warp::lane_id()
}

#[inline(always)]
pub(crate) fn barrier() {
    thread::sync_threads();
}

#[inline(always)]
pub(crate) fn barrier_count(predicate: bool) -> u32 {
    thread::sync_threads_count(predicate.into())
}

#[inline(always)]
pub(crate) fn barrier_all(predicate: bool) -> bool {
    thread::sync_threads_and(predicate.into()) != 0
}

#[inline(always)]
pub(crate) fn barrier_any(predicate: bool) -> bool {
    thread::sync_threads_or(predicate.into()) != 0
}

#[inline(always)]
pub(crate) fn sync_warp(mask: u32) {
    // SAFETY: the lanes of the mask call this together, which is the rule for all operations with a mask.
    unsafe { warp::sync_warp(mask) };
}

pub(crate) fn fence(scope: Scope) {
    match scope {
        Scope::Block => mid::block_thread_fence(AcqRel),
        Scope::Device => mid::device_thread_fence(AcqRel),
        Scope::System => mid::system_thread_fence(AcqRel),
    }
}

#[inline(always)]
pub(crate) fn pause(nanoseconds: u32) {
    thread::nanosleep(nanoseconds);
}

/// `cuda_std` knows no architecture that has it.
#[inline(always)]
pub(crate) fn launch_dependents() {}

/// # Safety
/// None: it is the seam that has one.
#[inline(always)]
pub(crate) unsafe fn spin(_control: *const FaultControl, nanoseconds: u32) {
    thread::nanosleep(nanoseconds);
}

pub(crate) fn shuffle(_mode: ShuffleMode, _mask: u32, _value: u32, _operand: u32, _width: u32) -> u32 {
    lacking("shuffles")
}

pub(crate) fn shuffle_up_within(_mask: u32, _value: u32, _delta: u32, _width: u32) -> (u32, bool) {
    lacking("shuffles")
}

pub(crate) fn ballot(_mask: u32, _predicate: bool) -> u32 {
    lacking("ballots")
}

pub(crate) fn match_byte(_byte: u32) -> u32 {
    lacking("ballots")
}

pub(crate) fn active_mask() -> u32 {
    lacking("active mask")
}

pub(crate) fn match_any(_mask: u32, _value: u64, _wide: bool) -> u32 {
    lacking("matches")
}

pub(crate) fn match_all(_mask: u32, _value: u64, _wide: bool) -> bool {
    lacking("matches")
}

pub(crate) fn redux(_op: ReduxOp, _mask: u32, _value: u32) -> u32 {
    lacking("redux")
}

#[inline(always)]
pub(crate) fn dynamic_shared() -> *mut u8 {
    shared::dynamic_shared_mem()
}

pub(crate) fn dynamic_shared_len() -> u32 {
    lacking("length of dynamic shared memory")
}

/// The function for a scope, called.
macro_rules! scoped {
    ($scope:expr, $block:ident $device:ident $system:ident $arguments:tt) => {
        match $scope {
            Scope::Block => mid::$block $arguments,
            Scope::Device => mid::$device $arguments,
            Scope::System => mid::$system $arguments,
        }
    };
}

/// # Safety
/// `address` is valid and aligned for 4 bytes, or 8 if `wide`, and accessed atomically only; so for the next three.
pub(crate) unsafe fn atomic_load(address: *const u64, wide: bool, scope: Scope, acquire: bool) -> u64 {
    let (address, order) = (address.cast_mut(), if acquire { Acquire } else { Relaxed });
    // SAFETY: the caller's contract.
    unsafe {
        if wide {
            scoped!(scope, atomic_load_64_block atomic_load_64_device atomic_load_64_system (address, order))
        } else {
            let address = address.cast();
            scoped!(scope, atomic_load_32_block atomic_load_32_device atomic_load_32_system (address, order)).into()
        }
    }
}

/// # Safety
/// As for [`atomic_load`].
pub(crate) unsafe fn atomic_store(address: *mut u64, wide: bool, value: u64, scope: Scope, release: bool) {
    let order = if release { Release } else { Relaxed };
    // SAFETY: the caller's contract.
    unsafe {
        if wide {
            scoped!(scope, atomic_store_64_block atomic_store_64_device atomic_store_64_system (address, order, value));
        } else {
            let (address, value) = (address.cast(), value as u32);
            scoped!(scope, atomic_store_32_block atomic_store_32_device atomic_store_32_system (address, order, value));
        }
    }
}

/// # Safety
/// As for [`atomic_load`].
pub(crate) unsafe fn atomic_update(address: *mut u64, wide: bool, update: Update, value: u64, scope: Scope) -> u64 {
    // SAFETY: the caller's contract.
    unsafe {
        if wide {
            update_64(address, update, value, scope)
        } else {
            update_32(address.cast(), update, value as u32, scope).into()
        }
    }
}

macro_rules! updates {
    ($name:ident, $bits:ty: $($update:ident, $t:ty, $block:ident $device:ident $system:ident;)*) => {
        /// # Safety
        /// As for [`atomic_load`].
        unsafe fn $name(address: *mut $bits, update: Update, value: $bits, scope: Scope) -> $bits {
            match update {
                $(Update::$update => {
                    let value = <$t>::from_ne_bytes(value.to_ne_bytes());
                    // SAFETY: the caller's contract.
                    let old: $t = unsafe { scoped!(scope, $block $device $system (address.cast(), Relaxed, value)) };
                    <$bits>::from_ne_bytes(old.to_ne_bytes())
                })*
            }
        }
    };
}
updates! { update_32, u32:
    Add, u32, atomic_fetch_add_u32_block atomic_fetch_add_u32_device atomic_fetch_add_u32_system;
    MinSigned, i32, atomic_fetch_min_i32_block atomic_fetch_min_i32_device atomic_fetch_min_i32_system;
    MaxSigned, i32, atomic_fetch_max_i32_block atomic_fetch_max_i32_device atomic_fetch_max_i32_system;
    MinUnsigned, u32, atomic_fetch_min_u32_block atomic_fetch_min_u32_device atomic_fetch_min_u32_system;
    MaxUnsigned, u32, atomic_fetch_max_u32_block atomic_fetch_max_u32_device atomic_fetch_max_u32_system;
    And, u32, atomic_fetch_and_u32_block atomic_fetch_and_u32_device atomic_fetch_and_u32_system;
    Or, u32, atomic_fetch_or_u32_block atomic_fetch_or_u32_device atomic_fetch_or_u32_system;
    Xor, u32, atomic_fetch_xor_u32_block atomic_fetch_xor_u32_device atomic_fetch_xor_u32_system;
    Exchange, u32, atomic_fetch_exch_u32_block atomic_fetch_exch_u32_device atomic_fetch_exch_u32_system;
    AddFloat, f32, atomic_fetch_add_f32_block atomic_fetch_add_f32_device atomic_fetch_add_f32_system;
}
updates! { update_64, u64:
    Add, u64, atomic_fetch_add_u64_block atomic_fetch_add_u64_device atomic_fetch_add_u64_system;
    MinSigned, i64, atomic_fetch_min_i64_block atomic_fetch_min_i64_device atomic_fetch_min_i64_system;
    MaxSigned, i64, atomic_fetch_max_i64_block atomic_fetch_max_i64_device atomic_fetch_max_i64_system;
    MinUnsigned, u64, atomic_fetch_min_u64_block atomic_fetch_min_u64_device atomic_fetch_min_u64_system;
    MaxUnsigned, u64, atomic_fetch_max_u64_block atomic_fetch_max_u64_device atomic_fetch_max_u64_system;
    And, u64, atomic_fetch_and_u64_block atomic_fetch_and_u64_device atomic_fetch_and_u64_system;
    Or, u64, atomic_fetch_or_u64_block atomic_fetch_or_u64_device atomic_fetch_or_u64_system;
    Xor, u64, atomic_fetch_xor_u64_block atomic_fetch_xor_u64_device atomic_fetch_xor_u64_system;
    Exchange, u64, atomic_fetch_exch_u64_block atomic_fetch_exch_u64_device atomic_fetch_exch_u64_system;
    AddFloat, f64, atomic_fetch_add_f64_block atomic_fetch_add_f64_device atomic_fetch_add_f64_system;
}

/// # Safety
/// As for [`atomic_load`].
pub(crate) unsafe fn atomic_cas(_address: *mut u64, _wide: bool, _expected: u64, _new: u64, _scope: Scope) -> u64 {
    lacking("compare-and-swap")
}

/// Reads `bytes` (2, 4, 8 or 16) into private memory of any alignment.
///
/// # Safety
/// `from` is valid for reads and aligned to `bytes`, `to` is valid for writes.
#[inline(always)]
pub(crate) unsafe fn load_vector(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the caller's contract.
    unsafe { from.copy_to_nonoverlapping(to, bytes) };
}

/// Writes `bytes` (2, 4, 8 or 16) from private memory of any alignment.
///
/// # Safety
/// `to` is valid for writes and aligned to `bytes`, `from` is valid for reads.
#[inline(always)]
pub(crate) unsafe fn store_vector(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the caller's contract.
    unsafe { from.copy_to_nonoverlapping(to, bytes) };
}

/// Copies so many bytes, at once.
///
/// # Safety
/// Both are valid.
#[inline(always)]
pub(crate) unsafe fn copy_async(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the caller's contract.
    unsafe { from.copy_to_nonoverlapping(to, bytes) };
}

#[inline(always)]
pub(crate) fn copy_async_wait() {}

#[inline(always)]
pub(crate) fn copy_async_commit() {}

#[inline(always)]
pub(crate) fn copy_async_wait_but_last() {}

/// # Safety
/// None; so for the next two.
pub(crate) unsafe fn split_barrier_begin(_: *mut u64, _: u32) {
    lacking("split barriers")
}

/// # Safety
/// None.
pub(crate) unsafe fn split_barrier_arrive(_: *mut u64) {
    lacking("split barriers")
}

/// # Safety
/// None.
pub(crate) unsafe fn split_barrier_try(_: *mut u64, _: u32) -> bool {
    lacking("split barriers")
}

#[inline(always)]
pub(crate) fn opaque(value: u32) -> u32 {
    value
}

#[inline(always)]
pub(crate) fn add_three(a: u32, b: u32, c: u32) -> u32 {
    a.wrapping_add(b).wrapping_add(c)
}

#[inline(always)]
pub(crate) fn global<T>(address: u64) -> *mut T {
    address as usize as *mut T
}

#[inline(always)]
pub(crate) fn f16_to_f32(bits: u16) -> f32 {
    f16::from_bits(bits).to_f32()
}

#[inline(always)]
pub(crate) fn f32_to_f16(value: f32) -> u16 {
    f16::from_f32(value).to_bits()
}

#[inline(always)]
pub(crate) fn f32_to_bf16(value: f32) -> u16 {
    bf16::from_f32(value).to_bits()
}

macro_rules! half_arithmetic {
    ($($t:ident, $name:ident($($arg:ident),*) = $value:expr;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name($($arg: u16),*) -> u16 {
            $(let $arg = $t::from_bits($arg).to_f32();)*
            $t::from_f32($value).to_bits()
        }
    )*};
}
half_arithmetic! {
    f16, f16_add(a, b) = a + b;
    f16, f16_sub(a, b) = a - b;
    f16, f16_mul(a, b) = a * b;
    f16, f16_fma(a, b, c) = crate::element::halves::odd_mul_add(a, b, c);
    bf16, bf16_add(a, b) = a + b;
    bf16, bf16_sub(a, b) = a - b;
    bf16, bf16_mul(a, b) = a * b;
    bf16, bf16_fma(a, b, c) = crate::element::halves::odd_mul_add(a, b, c);
    f16, f16_minimum(a, b) = minimum_f32(a, b);
    f16, f16_maximum(a, b) = maximum_f32(a, b);
    bf16, bf16_minimum(a, b) = minimum_f32(a, b);
    bf16, bf16_maximum(a, b) = maximum_f32(a, b);
}

/// Two halves in a word, one operation each.
macro_rules! pairs {
    ($($name:ident($($arg:ident),*) = $single:ident;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name($($arg: u32),*) -> u32 {
            let low = $single($($arg as u16),*) as u32;
            let high = $single($(($arg >> 16) as u16),*) as u32;
            high << 16 | low
        }
    )*};
}
pairs! {
    f16x2_add(a, b) = f16_add;
    f16x2_sub(a, b) = f16_sub;
    f16x2_mul(a, b) = f16_mul;
    f16x2_fma(a, b, c) = f16_fma;
    bf16x2_add(a, b) = bf16_add;
    bf16x2_sub(a, b) = bf16_sub;
    bf16x2_mul(a, b) = bf16_mul;
    bf16x2_fma(a, b, c) = bf16_fma;
    f16x2_minimum(a, b) = f16_minimum;
    f16x2_maximum(a, b) = f16_maximum;
    bf16x2_minimum(a, b) = bf16_minimum;
    bf16x2_maximum(a, b) = bf16_maximum;
}

macro_rules! extrema {
    ($($t:ty: $minimum:ident $maximum:ident;)*) => {$(
        pub(crate) fn $minimum(a: $t, b: $t) -> $t {
            if a.is_nan() || b.is_nan() {
                a + b
            } else if a < b || (a == b && a.is_sign_negative()) {
                a
            } else {
                b
            }
        }

        #[inline(always)]
        pub(crate) fn $maximum(a: $t, b: $t) -> $t {
            -$minimum(-a, -b)
        }
    )*};
}
extrema! {
    f32: minimum_f32 maximum_f32;
    f64: minimum_f64 maximum_f64;
}

/// Prints by CUDA's `printf`.
///
/// # Safety
/// `format` is terminated, and `arguments` has as many as it converts, each in eight bytes.
#[inline(always)]
pub(crate) unsafe fn print(format: *const u8, arguments: *const u64) {
    // SAFETY: the caller's contract.
    unsafe { io::vprintf(format, arguments.cast()) };
}

/// A panic knows no control.
pub(crate) fn set_control(_control: *const FaultControl) {}

pub(crate) fn control() -> *const FaultControl {
    core::ptr::null()
}

/// Ends the thread. The host learns that the launch has failed.
///
/// # Safety
/// None: it is the seam that has one.
#[cold]
pub(crate) unsafe fn raise(_control: *const FaultControl, _kind: FaultKind, _args: [u64; 2], _place: Place) -> ! {
    panic!("the kernel raised a fault")
}
