//! The parts that several tests have in common.

pub(crate) mod machine;
mod spare;
