//! What reads bytes and text that the library has not written: each is given damaged input and must say what is wrong with it, or
//! come to a value that is valid. It must not panic, nor take more memory than the input is worth.
//!
//! `KERNEL_PRIMITIVES_NET_CASES` sets the number of inputs of each property, `KERNEL_PRIMITIVES_NET_SEED` chooses others. Readers of
//! `primitives-build` are tested beside them, with the same [damage].

#![allow(missing_docs)]

#[allow(dead_code, reason = "shared with `primitives-build`")]
mod damage;

mod allocation;
mod environment;
mod matrix_market;
mod npy;
mod ops;
mod records;
mod tuning;
