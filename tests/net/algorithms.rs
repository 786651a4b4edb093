//! The subjects of the algorithms over whole buffers, with a module for each family.

pub mod by_key;
pub mod fourier;
pub mod histogram;
pub mod merge;
pub mod reduce;
pub mod scan;
pub mod search;
pub mod segmented_sort;
pub mod segments;
pub mod select;
pub mod sort;
pub mod sparse;
pub mod top_k;
pub mod transform;
pub mod unique;
