//! Reductions and scans of segments.
//!
//! A reduction of few items is one launch, in which two warps or a block reduce each segment. Otherwise it is two launches: the first
//! reduces tiles of items, whatever segments they have, and the second combines the parts of segments that lie in several tiles. A scan is
//! one launch, in which a tile waits for the tiles before it, back to the last one in which a segment begins
//! ([`tile::scan_runs`](super::tile::scan_runs)). Few items in short segments need no tiles: some lanes, a warp or a block scan each
//! segment ([`scan_warps`]).

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod call;
pub(crate) mod kernel;
pub(crate) mod scan;
pub(crate) mod scan_warps;
pub(crate) mod warps;
