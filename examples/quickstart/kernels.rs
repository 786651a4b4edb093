//! The kernel of this example and its two functors.
//!
//! The file is compiled twice: as a module of the example, and for the GPU by the package's build script. So it uses
//! nothing but `kernel_primitives` and `core`.

use kernel_primitives::prelude::*;

/// x ↦ x − from
#[derive(Clone, Copy, KernelParam)]
#[repr(C)]
pub(crate) struct Difference {
    pub(crate) from: f32,
}

impl UnaryFn<f32> for Difference {
    type Output = f32;

    fn apply(&self, x: f32) -> f32 {
        x - self.from
    }
}

/// x ↦ (x − centre)²
#[derive(Clone, Copy, KernelParam)]
#[repr(C)]
pub(crate) struct SquaredDistance {
    pub(crate) centre: f32,
}

impl UnaryFn<f32> for SquaredDistance {
    type Output = f32;

    fn apply(&self, x: f32) -> f32 {
        let distance = x - self.centre;
        distance * distance
    }
}

/// `out[i] = f(x[i])`, and `sums[b]` is the sum of the results that block `b` has written.
///
/// `NX` consecutive items a thread. `sums` has one element a block. Any grid and block are right.
#[kernel(equal_len(x, out), instantiate(<Difference, 4>, <SquaredDistance, 4>))]
pub(crate) fn map_and_sum<F, const NX: usize>(
    cx: Block,
    x: Global<f32>,
    mut out: GlobalMut<f32, Tiles<NX>>,
    mut sums: GlobalMut<f32, PerBlock>,
    f: F,
    mut shared: Shared<ReduceStorage<f32>>,
) where
    F: UnaryFn<f32, Output = f32> + KernelParam,
{
    let mut sum = 0.0;
    for tile in cx.tiles::<NX>(x.len()) {
        let mut items = init::<f32, NX>(0.0);
        read_data(cx, &mut items, x.tile(tile));
        let results = elementwise_unary(&items, f);
        write_data(cx, out.tile(tile), &results);
        // The last tile may be shorter; reading and writing know that, the sum is told.
        let valid = tile.valid_items(cx);
        for (i, &result) in results.iter().enumerate() {
            if i < valid {
                sum += result;
            }
        }
    }
    let sum = block_reduce(cx, &mut shared, sum, Add);
    sums.store(sum);
}
