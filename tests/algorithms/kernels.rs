//! Instantiations for types and functors of the tests.

#[allow(dead_code, reason = "each test binary uses a part")]
#[path = "../suite/kernels/types.rs"]
pub mod types;

use kernel_primitives::functor::{Max, Mul, OfPair, Square, Sum};
use kernel_primitives::input::{self, Counting, Span, Strided, Zip};
use kernel_primitives::kernels::device;
use kernel_primitives::prelude::*;

pub use types::*;

pub type Pairs = Zip<Span<f32>, Span<f32>>;
pub type Products = input::Map<Pairs, OfPair<Mul>>;

instantiate!(device::scan_tiles<Span<Map<u32>>, Compose, false>);
instantiate!(device::scan_tiles<Span<Map<u32>>, Compose, true>);
instantiate!(device::scan_tiles<Span<Triangular>, Compose, false>);
instantiate!(device::scan_tiles<Strided<Span<u8>>, Max, false>);
instantiate!(device::scan_tiles<Counting<u64>, Add, false>);
instantiate!(device::reduce_tiles<Products, Sum>);
instantiate!(device::reduce_tiles<Counting<u64>, Sum>);
instantiate!(device::transform_tiles<Pairs, OfPair<Mul>>);
instantiate!(device::transform_tiles<Span<u8>, Square>);

instantiate!(device::sort_tile<bool>, device::count_digits<bool>, device::sort_sweep<bool>);
instantiate!(device::sort_tile_pairs<u32, Sixteen>, device::sort_sweep_pairs<u32, Sixteen>);
instantiate!(device::sort_tile_pairs<u32, Flagged>, device::sort_sweep_pairs<u32, Flagged>);
