//! Pages to read.

#[doc = include_str!("../docs/debugging.md")]
pub mod debugging {}
