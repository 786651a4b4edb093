//! Reductions and scans of segments.
//!
//! A reduction of few items is one launch, of warps or blocks that have a segment each. Otherwise it is two: tiles of items, whatever
//! segments they have, and what segments have in several tiles. A scan is one launch, in which a tile waits for those before it back to
//! the last one in which a segment begins ([`tile::scan_runs`](super::tile::scan_runs)). Few items in short segments need no
//! tiles: some lanes, a warp or a block have a segment each ([`scan_warps`]).

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
pub(crate) mod scan;
pub(crate) mod scan_warps;
pub(crate) mod warps;
