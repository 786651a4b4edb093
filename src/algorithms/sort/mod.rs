//! Radix sorts.
//!
//! `sort_tile` sorts keys that fit in one tile. For more keys, `count_digits` counts the digits of all passes, `begin_digits` turns the
//! counts into positions, and `sort_sweep` is launched once for each pass.

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
