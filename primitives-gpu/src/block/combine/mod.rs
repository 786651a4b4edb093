//! Reductions and scans, and their common parts.

pub(super) mod column;
pub(super) mod each;
pub(super) mod partials;
pub(super) mod path;
mod raking;
pub(super) mod reduce;
pub(super) mod scan;
pub(super) mod scan_rounds;
