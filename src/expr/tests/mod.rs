//! What tests of several parts have in common.

pub(crate) mod machine;
mod spare;
