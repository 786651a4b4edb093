//! The seam on an NVIDIA GPU.
//!
//! Special registers are compiler intrinsics. Everything else is a function of the runtime module, which is LLVM IR that
//! `primitives-build` links in and whose functions are inlined always: convergent operations, scoped atomics and address
//! space 3 have no form in Rust. The functions take their scope and operation as numbers that are constants at every
//! call, so the switch over them folds away.

use core::arch::nvptx as sreg;
use core::panic::PanicInfo;

use super::atomic::Update;
pub(crate) use super::warp_ops::{ReduxOp, ShuffleMode};
use super::{Dim3, FaultControl, FaultKind, FaultRecord, Place, Scope};

super::seam::check!();

// SAFETY: the functions of `runtime.ll`, which is linked with every module, with its signatures. The safe ones are defined
// for all values.
unsafe extern "C" {
    safe fn __kp_arch() -> u32;
    safe fn __kp_lane_id() -> u32;
    safe fn __kp_barrier();
    safe fn __kp_barrier_count(predicate: u32) -> u32;
    safe fn __kp_barrier_and(predicate: u32) -> u32;
    safe fn __kp_barrier_or(predicate: u32) -> u32;
    safe fn __kp_sync_warp(mask: u32);
    safe fn __kp_fence(scope: u32);
    safe fn __kp_nanosleep(nanoseconds: u32);
    safe fn __kp_launch_dependents();
    safe fn __kp_shuffle_idx(mask: u32, value: u32, lane: u32, clamp: u32) -> u32;
    safe fn __kp_shuffle_up(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    safe fn __kp_shuffle_up_within(mask: u32, value: u32, delta: u32, clamp: u32) -> u64;
    safe fn __kp_shuffle_down(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    safe fn __kp_shuffle_xor(mask: u32, value: u32, bits: u32, clamp: u32) -> u32;
    safe fn __kp_ballot(mask: u32, predicate: u32) -> u32;
    safe fn __kp_active_mask() -> u32;
    safe fn __kp_match_byte(byte: u32) -> u32;
    safe fn __kp_match_any_32(mask: u32, value: u32) -> u32;
    safe fn __kp_match_any_64(mask: u32, value: u64) -> u32;
    safe fn __kp_match_all_32(mask: u32, value: u32) -> u32;
    safe fn __kp_match_all_64(mask: u32, value: u64) -> u32;
    safe fn __kp_redux(mask: u32, value: u32, op: u32) -> u32;
    safe fn __kp_dynamic_shared() -> *mut u8;
    safe fn __kp_dynamic_shared_len() -> u32;
    fn __kp_update_i32(address: *mut u32, value: u32, op: u32, scope: u32) -> u32;
    fn __kp_update_i64(address: *mut u64, value: u64, op: u32, scope: u32) -> u64;
    fn __kp_cas_i32(address: *mut u32, expected: u32, new: u32, scope: u32) -> u32;
    fn __kp_cas_i64(address: *mut u64, expected: u64, new: u64, scope: u32) -> u64;
    fn __kp_load_i32(address: *const u32, acquire: u32, scope: u32) -> u32;
    fn __kp_load_i64(address: *const u64, acquire: u32, scope: u32) -> u64;
    fn __kp_store_i32(address: *mut u32, value: u32, release: u32, scope: u32);
    fn __kp_store_i64(address: *mut u64, value: u64, release: u32, scope: u32);
    fn __kp_load_16(to: *mut u8, from: *const u8);
    fn __kp_load_8(to: *mut u8, from: *const u8);
    fn __kp_load_4(to: *mut u8, from: *const u8);
    fn __kp_load_2(to: *mut u8, from: *const u8);
    fn __kp_store_16(to: *mut u8, from: *const u8);
    fn __kp_store_8(to: *mut u8, from: *const u8);
    fn __kp_store_4(to: *mut u8, from: *const u8);
    fn __kp_store_2(to: *mut u8, from: *const u8);
    safe fn __kp_set_control(control: *const FaultControl);
    safe fn __kp_control() -> *const FaultControl;
    fn __kp_fault_record(control: *const FaultControl) -> *mut FaultRecord;
    safe fn __kp_kernel_number() -> u32;
    fn __kp_faulted(control: *const FaultControl) -> u32;
    safe fn __kp_exit() -> !;
    safe fn __kp_f16_to_f32(bits: u16) -> f32;
    safe fn __kp_opaque(value: u32) -> u32;
    safe fn __kp_add_three(a: u32, b: u32, c: u32) -> u32;
    fn __kp_copy_async_16(to: *mut u8, from: *const u8);
    fn __kp_copy_async_8(to: *mut u8, from: *const u8);
    fn __kp_copy_async_4(to: *mut u8, from: *const u8);
    safe fn __kp_copy_async_wait();
    safe fn __kp_copy_async_commit();
    safe fn __kp_copy_async_wait_but_last();
    fn __kp_split_barrier_begin(barrier: *mut u64, arrivals: u32);
    fn __kp_split_barrier_arrive(barrier: *mut u64);
    fn __kp_split_barrier_test(barrier: *mut u64, parity: u32) -> u32;
    fn __kp_split_barrier_try(barrier: *mut u64, parity: u32) -> u32;
    safe fn __kp_global(address: u64) -> *mut u8;
    safe fn __kp_f32_to_f16(value: f32) -> u16;
    safe fn __kp_f32_to_bf16(value: f32) -> u16;
    safe fn __kp_f16_add(a: u16, b: u16) -> u16;
    safe fn __kp_f16_sub(a: u16, b: u16) -> u16;
    safe fn __kp_f16_mul(a: u16, b: u16) -> u16;
    safe fn __kp_f16_fma(a: u16, b: u16, c: u16) -> u16;
    safe fn __kp_bf16_add(a: u16, b: u16) -> u16;
    safe fn __kp_bf16_sub(a: u16, b: u16) -> u16;
    safe fn __kp_bf16_mul(a: u16, b: u16) -> u16;
    safe fn __kp_bf16_fma(a: u16, b: u16, c: u16) -> u16;
    safe fn __kp_f16x2_add(a: u32, b: u32) -> u32;
    safe fn __kp_f16x2_sub(a: u32, b: u32) -> u32;
    safe fn __kp_f16x2_mul(a: u32, b: u32) -> u32;
    safe fn __kp_f16x2_fma(a: u32, b: u32, c: u32) -> u32;
    safe fn __kp_bf16x2_add(a: u32, b: u32) -> u32;
    safe fn __kp_bf16x2_sub(a: u32, b: u32) -> u32;
    safe fn __kp_bf16x2_mul(a: u32, b: u32) -> u32;
    safe fn __kp_bf16x2_fma(a: u32, b: u32, c: u32) -> u32;
    safe fn __kp_f16_minimum(a: u16, b: u16) -> u16;
    safe fn __kp_f16_maximum(a: u16, b: u16) -> u16;
    safe fn __kp_bf16_minimum(a: u16, b: u16) -> u16;
    safe fn __kp_bf16_maximum(a: u16, b: u16) -> u16;
    safe fn __kp_f16x2_minimum(a: u32, b: u32) -> u32;
    safe fn __kp_f16x2_maximum(a: u32, b: u32) -> u32;
    safe fn __kp_bf16x2_minimum(a: u32, b: u32) -> u32;
    safe fn __kp_bf16x2_maximum(a: u32, b: u32) -> u32;
    safe fn __kp_minimum_f32(a: f32, b: f32) -> f32;
    safe fn __kp_maximum_f32(a: f32, b: f32) -> f32;
    safe fn __kp_minimum_f64(a: f64, b: f64) -> f64;
    safe fn __kp_maximum_f64(a: f64, b: f64) -> f64;
    // The driver's.
    fn vprintf(format: *const u8, arguments: *const u64) -> i32;
}

macro_rules! index3 {
    ($($name:ident: $x:ident $y:ident $z:ident;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name() -> Dim3 {
            // SAFETY: reads special registers.
            unsafe { Dim3::new(sreg::$x() as u32, sreg::$y() as u32, sreg::$z() as u32) }
        }
    )*};
}
index3! {
    thread_idx: _thread_idx_x _thread_idx_y _thread_idx_z;
    block_idx: _block_idx_x _block_idx_y _block_idx_z;
    block_dim: _block_dim_x _block_dim_y _block_dim_z;
    grid_dim: _grid_dim_x _grid_dim_y _grid_dim_z;
}

/// Compute capability times 100, a constant per architecture: 750, 800, 900.
#[inline(always)]
pub(crate) fn arch() -> u32 {
    __kp_arch()
}

#[inline(always)]
pub(crate) fn lane_id() -> u32 {
    __kp_lane_id()
}

#[inline(always)]
pub(crate) fn barrier() {
    __kp_barrier();
}

#[inline(always)]
pub(crate) fn barrier_count(predicate: bool) -> u32 {
    __kp_barrier_count(predicate as u32)
}

#[inline(always)]
pub(crate) fn barrier_all(predicate: bool) -> bool {
    __kp_barrier_and(predicate as u32) != 0
}

#[inline(always)]
pub(crate) fn barrier_any(predicate: bool) -> bool {
    __kp_barrier_or(predicate as u32) != 0
}

#[inline(always)]
pub(crate) fn sync_warp(mask: u32) {
    __kp_sync_warp(mask);
}

#[inline(always)]
pub(crate) fn fence(scope: Scope) {
    __kp_fence(scope as u32);
}

#[inline(always)]
pub(crate) fn pause(nanoseconds: u32) {
    __kp_nanosleep(nanoseconds);
}

/// Needs sm_90 or later.
#[inline(always)]
pub(crate) fn launch_dependents() {
    __kp_launch_dependents();
}

/// # Safety
/// `control` is that of the thread's launch; so for the next two functions that take one.
pub(crate) unsafe fn spin(control: *const FaultControl, nanoseconds: u32) {
    // SAFETY: the caller's contract.
    if unsafe { __kp_faulted(control) } != 0 {
        __kp_exit();
    }
    __kp_nanosleep(nanoseconds);
}

pub(crate) fn shuffle(mode: ShuffleMode, mask: u32, value: u32, operand: u32, width: u32) -> u32 {
    // The clamp operand: segment mask in bits 8 to 12, limit in bits 0 to 4 (0 for `up`, whose limit is the start).
    let segments = (32 - width) << 8;
    match mode {
        ShuffleMode::Index => __kp_shuffle_idx(mask, value, operand, segments | 31),
        ShuffleMode::Up => __kp_shuffle_up(mask, value, operand, segments),
        ShuffleMode::Down => __kp_shuffle_down(mask, value, operand, segments | 31),
        ShuffleMode::Xor => __kp_shuffle_xor(mask, value, operand, segments | 31),
    }
}

/// The value of the lane `delta` below, and whether there is one in the segment.
#[inline(always)]
pub(crate) fn shuffle_up_within(mask: u32, value: u32, delta: u32, width: u32) -> (u32, bool) {
    let packed = __kp_shuffle_up_within(mask, value, delta, (32 - width) << 8);
    (packed as u32, packed >> 32 != 0)
}

#[inline(always)]
pub(crate) fn ballot(mask: u32, predicate: bool) -> u32 {
    __kp_ballot(mask, predicate as u32)
}

#[inline(always)]
pub(crate) fn match_byte(byte: u32) -> u32 {
    __kp_match_byte(byte)
}

#[inline(always)]
pub(crate) fn active_mask() -> u32 {
    __kp_active_mask()
}

#[inline(always)]
pub(crate) fn match_any(mask: u32, value: u64, wide: bool) -> u32 {
    if wide { __kp_match_any_64(mask, value) } else { __kp_match_any_32(mask, value as u32) }
}

#[inline(always)]
pub(crate) fn match_all(mask: u32, value: u64, wide: bool) -> bool {
    let equal = if wide { __kp_match_all_64(mask, value) } else { __kp_match_all_32(mask, value as u32) };
    equal != 0
}

/// From sm_80 on.
#[inline(always)]
pub(crate) fn redux(op: ReduxOp, mask: u32, value: u32) -> u32 {
    __kp_redux(mask, value, op as u32)
}

#[inline(always)]
pub(crate) fn dynamic_shared() -> *mut u8 {
    __kp_dynamic_shared()
}

#[inline(always)]
pub(crate) fn dynamic_shared_len() -> u32 {
    __kp_dynamic_shared_len()
}

/// # Safety
/// `address` is valid and aligned for 4 bytes, or 8 if `wide`, and accessed atomically only; so for the next three.
pub(crate) unsafe fn atomic_load(address: *const u64, wide: bool, scope: Scope, acquire: bool) -> u64 {
    // SAFETY: the caller's contract.
    unsafe {
        if wide {
            __kp_load_i64(address, acquire as u32, scope as u32)
        } else {
            __kp_load_i32(address.cast(), acquire as u32, scope as u32) as u64
        }
    }
}

/// # Safety
/// As for [`atomic_load`].
pub(crate) unsafe fn atomic_store(address: *mut u64, wide: bool, value: u64, scope: Scope, release: bool) {
    // SAFETY: the caller's contract.
    unsafe {
        if wide {
            __kp_store_i64(address, value, release as u32, scope as u32)
        } else {
            __kp_store_i32(address.cast(), value as u32, release as u32, scope as u32)
        }
    }
}

/// # Safety
/// As for [`atomic_load`].
pub(crate) unsafe fn atomic_update(address: *mut u64, wide: bool, update: Update, value: u64, scope: Scope) -> u64 {
    // SAFETY: the caller's contract.
    unsafe {
        if wide {
            __kp_update_i64(address, value, update as u32, scope as u32)
        } else {
            __kp_update_i32(address.cast(), value as u32, update as u32, scope as u32) as u64
        }
    }
}

/// # Safety
/// As for [`atomic_load`].
pub(crate) unsafe fn atomic_cas(address: *mut u64, wide: bool, expected: u64, new: u64, scope: Scope) -> u64 {
    // SAFETY: the caller's contract.
    unsafe {
        if wide {
            __kp_cas_i64(address, expected, new, scope as u32)
        } else {
            __kp_cas_i32(address.cast(), expected as u32, new as u32, scope as u32) as u64
        }
    }
}

/// Reads `bytes` (2, 4, 8 or 16) by one access into private memory of any alignment.
///
/// # Safety
/// `from` is valid for reads and aligned to `bytes`, `to` is valid for writes.
pub(crate) unsafe fn load_vector(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        match bytes {
            16 => __kp_load_16(to, from),
            8 => __kp_load_8(to, from),
            4 => __kp_load_4(to, from),
            _ => __kp_load_2(to, from),
        }
    }
}

/// Writes `bytes` (2, 4, 8 or 16) by one access from private memory of any alignment.
///
/// # Safety
/// `to` is valid for writes and aligned to `bytes`, `from` is valid for reads.
pub(crate) unsafe fn store_vector(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        match bytes {
            16 => __kp_store_16(to, from),
            8 => __kp_store_8(to, from),
            4 => __kp_store_4(to, from),
            _ => __kp_store_2(to, from),
        }
    }
}

/// Begins to copy 4, 8 or 16 bytes from global to shared memory; they are there after [`copy_async_wait`]. At once before sm_80.
///
/// # Safety
/// Both are valid and aligned to as many bytes, `from` is in global memory and `to` in shared memory; nobody else accesses that
/// until this thread has waited.
pub(crate) unsafe fn copy_async(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        if arch() < 800 {
            let mut copy = [0u8; 16];
            load_vector(copy.as_mut_ptr(), from, bytes);
            store_vector(to, copy.as_ptr(), bytes);
            return;
        }
        match bytes {
            16 => __kp_copy_async_16(to, from),
            8 => __kp_copy_async_8(to, from),
            _ => __kp_copy_async_4(to, from),
        }
    }
}

/// Waits for what this thread copies.
#[inline(always)]
pub(crate) fn copy_async_wait() {
    if arch() >= 800 {
        __kp_copy_async_wait();
    }
}

/// Makes a group of what this thread copies and has not yet put into one.
#[inline(always)]
pub(crate) fn copy_async_commit() {
    if arch() >= 800 {
        __kp_copy_async_commit();
    }
}

/// Waits for what this thread copies, but not for the last group.
#[inline(always)]
pub(crate) fn copy_async_wait_but_last() {
    if arch() >= 800 {
        __kp_copy_async_wait_but_last();
    }
}

/// Begins a barrier of which each phase takes so many arrivals; on sm_80 and later, as what follows.
///
/// # Safety
/// `barrier` is eight aligned bytes of shared memory for these functions alone; nobody uses it before a block's barrier.
#[inline(always)]
pub(crate) unsafe fn split_barrier_begin(barrier: *mut u64, arrivals: u32) {
    // SAFETY: the caller's contract.
    unsafe { __kp_split_barrier_begin(barrier, arrivals) }
}

/// # Safety
/// `barrier` is one that has begun.
#[inline(always)]
pub(crate) unsafe fn split_barrier_arrive(barrier: *mut u64) {
    // SAFETY: the caller's contract.
    unsafe { __kp_split_barrier_arrive(barrier) }
}

/// Whether the phase of this parity is over, after a while or at once.
///
/// # Safety
/// `barrier` is one that has begun.
pub(crate) unsafe fn split_barrier_try(barrier: *mut u64, parity: u32) -> bool {
    // SAFETY: the caller's contract.
    unsafe {
        if arch() >= 900 {
            __kp_split_barrier_try(barrier, parity) != 0
        } else {
            __kp_split_barrier_test(barrier, parity) != 0
        }
    }
}

#[inline(always)]
pub(crate) fn opaque(value: u32) -> u32 {
    __kp_opaque(value)
}

#[inline(always)]
pub(crate) fn add_three(a: u32, b: u32, c: u32) -> u32 {
    __kp_add_three(a, b, c)
}

#[inline(always)]
pub(crate) fn global<T>(address: u64) -> *mut T {
    __kp_global(address).cast()
}

#[inline(always)]
pub(crate) fn f16_to_f32(bits: u16) -> f32 {
    __kp_f16_to_f32(bits)
}

#[inline(always)]
pub(crate) fn f32_to_f16(value: f32) -> u16 {
    __kp_f32_to_f16(value)
}

#[inline(always)]
pub(crate) fn f32_to_bf16(value: f32) -> u16 {
    __kp_f32_to_bf16(value)
}

// Minimum and maximum of halves: on sm_80 and later.
macro_rules! half_arithmetic {
    ($t:ty: $($name:ident = $function:ident($($arg:ident),*);)*) => {$(
        #[inline(always)]
        pub(crate) fn $name($($arg: $t),*) -> $t {
            $function($($arg),*)
        }
    )*};
}
half_arithmetic! { u32:
    f16x2_add = __kp_f16x2_add(a, b);
    f16x2_sub = __kp_f16x2_sub(a, b);
    f16x2_mul = __kp_f16x2_mul(a, b);
    f16x2_fma = __kp_f16x2_fma(a, b, c);
    bf16x2_add = __kp_bf16x2_add(a, b);
    bf16x2_sub = __kp_bf16x2_sub(a, b);
    bf16x2_mul = __kp_bf16x2_mul(a, b);
    bf16x2_fma = __kp_bf16x2_fma(a, b, c);
    f16x2_minimum = __kp_f16x2_minimum(a, b);
    f16x2_maximum = __kp_f16x2_maximum(a, b);
    bf16x2_minimum = __kp_bf16x2_minimum(a, b);
    bf16x2_maximum = __kp_bf16x2_maximum(a, b);
}
half_arithmetic! { u16:
    f16_add = __kp_f16_add(a, b);
    f16_sub = __kp_f16_sub(a, b);
    f16_mul = __kp_f16_mul(a, b);
    f16_fma = __kp_f16_fma(a, b, c);
    bf16_add = __kp_bf16_add(a, b);
    bf16_sub = __kp_bf16_sub(a, b);
    bf16_mul = __kp_bf16_mul(a, b);
    bf16_fma = __kp_bf16_fma(a, b, c);
    f16_minimum = __kp_f16_minimum(a, b);
    f16_maximum = __kp_f16_maximum(a, b);
    bf16_minimum = __kp_bf16_minimum(a, b);
    bf16_maximum = __kp_bf16_maximum(a, b);
}

#[inline(always)]
pub(crate) fn minimum_f32(a: f32, b: f32) -> f32 {
    __kp_minimum_f32(a, b)
}

#[inline(always)]
pub(crate) fn maximum_f32(a: f32, b: f32) -> f32 {
    __kp_maximum_f32(a, b)
}

#[inline(always)]
pub(crate) fn minimum_f64(a: f64, b: f64) -> f64 {
    __kp_minimum_f64(a, b)
}

#[inline(always)]
pub(crate) fn maximum_f64(a: f64, b: f64) -> f64 {
    __kp_maximum_f64(a, b)
}

/// Prints by CUDA's `printf`.
///
/// # Safety
/// `format` is terminated, and `arguments` has as many as it converts, each in eight bytes.
#[inline(always)]
pub(crate) unsafe fn print(format: *const u8, arguments: *const u64) {
    // SAFETY: the caller's contract.
    unsafe { vprintf(format, arguments) };
}

/// Keeps the launch's control for those that call [`control`]. Called by every thread, before all else.
#[inline(always)]
pub(crate) fn set_control(control: *const FaultControl) {
    __kp_set_control(control);
}

/// The launch's control, where no token is at hand.
#[inline(always)]
pub(crate) fn control() -> *const FaultControl {
    __kp_control()
}

/// Writes the fault record, if this is the first fault that it is to hold, and ends the thread.
///
/// The work is never inlined: a check costs a compare and a branch to a call that does not return.
///
/// # Safety
/// As for [`spin`].
pub(crate) unsafe fn raise(control: *const FaultControl, kind: FaultKind, [a, b]: [u64; 2], place: Place) -> ! {
    // The arguments travel in registers: an array would be passed through the stack, and the kernel would have one.
    //
    // # Safety
    // As for `spin`.
    #[cold]
    #[inline(never)]
    unsafe fn outlined(control: *const FaultControl, kind: FaultKind, a: u64, b: u64, place: Place) -> ! {
        // SAFETY: the caller's contract.
        unsafe { report(control, kind, [a, b], Some(place)) }
    }
    // SAFETY: the caller's contract.
    unsafe { outlined(control, kind, a, b, place) }
}

/// # Safety
/// As for [`spin`].
unsafe fn report(control: *const FaultControl, kind: FaultKind, args: [u64; 2], place: Option<Place>) -> ! {
    // SAFETY: the caller's contract: the control's addresses are those of a flag and of a record in mapped memory, which
    // stay until the launch is over. The winner of the exchange is the record's only writer, and the host reads it once the
    // state says that it is complete. The flag decides who wins: not all hosts have atomics in mapped memory.
    unsafe {
        let record = __kp_fault_record(control);
        let flag = core::ptr::with_exposed_provenance_mut::<u32>((*control).faulted as usize);
        if __kp_cas_i32(flag, 0, 1, Scope::Device as u32) == 0 {
            (*record).kind = kind as u32;
            (*record).kernel = __kp_kernel_number();
            (*record).args = args;
            (*record).block = block_idx();
            (*record).thread = thread_idx();
            if let Some(place) = place {
                (*record).line = place.line();
                (*record).column = place.column();
                let file = place.file().as_bytes();
                let keep = file.len().min(super::FAULT_FILE_BYTES);
                let start = file.as_ptr().add(file.len() - keep);
                let mut i = 0;
                while i < keep {
                    (&raw mut (*record).file).cast::<u8>().add(i).write_volatile(start.add(i).read_volatile());
                    i += 1;
                }
                (*record).file_len = keep as u32;
            }
            __kp_store_i32(&raw mut (*record).state, 1, 1, Scope::System as u32);
        }
    }
    __kp_exit()
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    // The location outlives the handler: it is in the module's constant data.
    let place = info.location().map(|at| {
        // SAFETY: a panic's location is a static that the compiler placed in the module.
        unsafe { &*(core::ptr::from_ref(at) as *const core::panic::Location<'static>) }
    });
    // SAFETY: the launch's control.
    unsafe { report(control(), FaultKind::Panic, [0, 0], place) }
}
