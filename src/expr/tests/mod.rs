//! What tests of several parts have in common.

pub(super) mod machine;
