//! What an implementation of the seam on a GPU consists of.

/// Checks that the module it stands in has every function of the seam, with the same signature as any other implementation.
macro_rules! check {
    () => {
        const _: () = {
            let _: [fn() -> $crate::simt::Dim3; 4] = [thread_idx, block_idx, block_dim, grid_dim];
            let _: [fn() -> u32; 4] = [arch, lane_id, active_mask, dynamic_shared_len];
            let _: [fn(); 5] =
                [barrier, copy_async_wait, copy_async_commit, copy_async_wait_but_last, launch_dependents];
            let _: fn(bool) -> u32 = barrier_count;
            let _: [fn(bool) -> bool; 2] = [barrier_all, barrier_any];
            let _: [fn(u32); 2] = [sync_warp, pause];
            let _: unsafe fn(*const $crate::simt::FaultControl, u32) = spin;
            let _: fn($crate::simt::Scope) = fence;
            let _: fn($crate::simt::ShuffleMode, u32, u32, u32, u32) -> u32 = shuffle;
            let _: fn(u32, u32, u32, u32) -> (u32, bool) = shuffle_up_within;
            let _: fn(u32, bool) -> u32 = ballot;
            let _: fn(u32, u64, bool) -> u32 = match_any;
            let _: fn(u32, u64, bool) -> bool = match_all;
            let _: fn($crate::simt::ReduxOp, u32, u32) -> u32 = redux;
            let _: fn() -> *mut u8 = dynamic_shared;
            let _: unsafe fn(*const u64, bool, $crate::simt::Scope, bool) -> u64 = atomic_load;
            let _: unsafe fn(*mut u64, bool, u64, $crate::simt::Scope, bool) = atomic_store;
            let _: unsafe fn(*mut u64, bool, $crate::simt::atomic::Update, u64, $crate::simt::Scope) -> u64 =
                atomic_update;
            let _: unsafe fn(*mut u64, bool, u64, u64, $crate::simt::Scope) -> u64 = atomic_cas;
            let _: [unsafe fn(*mut u8, *const u8, usize); 3] = [load_vector, store_vector, copy_async];
            let _: unsafe fn(*mut u64, u32) = split_barrier_begin;
            let _: unsafe fn(*mut u64) = split_barrier_arrive;
            let _: unsafe fn(*mut u64, u32) -> bool = split_barrier_try;
            let _: [fn(u32) -> u32; 2] = [match_byte, opaque];
            let _: fn(u64) -> *mut u8 = global;
            let _: fn(u16) -> f32 = f16_to_f32;
            let _: [fn(f32) -> u16; 2] = [f32_to_f16, f32_to_bf16];
            let _: [fn(u16, u16) -> u16; 6] = [f16_add, f16_sub, f16_mul, bf16_add, bf16_sub, bf16_mul];
            let _: [fn(u16, u16, u16) -> u16; 2] = [f16_fma, bf16_fma];
            let _: [fn(u32, u32) -> u32; 6] = [f16x2_add, f16x2_sub, f16x2_mul, bf16x2_add, bf16x2_sub, bf16x2_mul];
            let _: [fn(u32, u32, u32) -> u32; 3] = [f16x2_fma, bf16x2_fma, add_three];
            let _: [fn(u16, u16) -> u16; 4] = [f16_minimum, f16_maximum, bf16_minimum, bf16_maximum];
            let _: [fn(u32, u32) -> u32; 4] = [f16x2_minimum, f16x2_maximum, bf16x2_minimum, bf16x2_maximum];
            let _: [fn(f32, f32) -> f32; 2] = [minimum_f32, maximum_f32];
            let _: [fn(f64, f64) -> f64; 2] = [minimum_f64, maximum_f64];
            let _: unsafe fn(*const u8, *const u64) = print;
            let _: fn(*const $crate::simt::FaultControl) = set_control;
            let _: fn() -> *const $crate::simt::FaultControl = control;
            let _: unsafe fn(
                *const $crate::simt::FaultControl,
                $crate::simt::FaultKind,
                [u64; 2],
                $crate::simt::Place,
            ) -> ! = raise;
        };
    };
}
pub(crate) use check;
