//! Tests readers of bytes and text that the library has not written. Each gets damaged input. It must say what is wrong with the input, or
//! return a valid value. It must not panic, and it must not take more memory than the input justifies.
//!
//! `KERNEL_PRIMITIVES_NET_CASES` sets the number of inputs of each property, and `KERNEL_PRIMITIVES_NET_SEED` chooses other inputs. Readers
//! of `primitives-build` are tested beside them, with the same [damage].

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
