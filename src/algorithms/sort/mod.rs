//! Radix sorts.
//!
//! Few keys are one tile, which `sort_tile` sorts. Otherwise `count_digits` counts the digits of all passes, `begin_digits` makes their places of
//! them, and each pass is a `sort_sweep`.

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
