//! Computation on a thread's own registers: no communication, no shared memory.
//!
//! The items of a thread are an array, `[T; NX]`, or rows, `[[T; NX]; NY]`, for which the functor of the elementwise primitives is
//! [`Each`](crate::block::Each) of a functor of items. All loops have constant limits and unroll. Every function works for the calling
//! thread alone, and any thread may call it or not.

mod compare;
mod elementwise;
mod fft;
mod path;
mod random;
mod reduce;

pub use compare::{compare_exchange, compare_exchange_pairs, last_pow2};
pub(crate) use elementwise::{any, binary, ternary, unary};
pub use elementwise::{
    cycle_binary, elementwise_any, elementwise_binary, elementwise_constant, elementwise_ternary, elementwise_unary,
};
pub(crate) use fft::{is_smooth, minus, plus, swapped};
pub use fft::{thread_fft, thread_ifft};
#[doc(hidden)]
pub use fft::{times, zero};
pub use path::merge_path_rows;
#[doc(hidden)]
pub use random::box_muller;
pub use random::{NormalF32, NormalF64, Philox, UniformF32, UniformF64, elementwise_random, philox4x32_10};
pub use reduce::{thread_reduce, thread_reduce_x, thread_reduce_y};
