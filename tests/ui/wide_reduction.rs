//! A reduction of an element that is too large.

use kernel_primitives::prelude::*;

#[derive(Clone, Copy, KernelParam)]
struct First;

impl BinaryFn<[u64; 4]> for First {
    type Output = [u64; 4];
    fn apply(&self, a: [u64; 4], _b: [u64; 4]) -> [u64; 4] {
        a
    }
}

impl Reducer<[u64; 4]> for First {
    fn identity(&self) -> [u64; 4] {
        [0; 4]
    }
}

#[kernel]
fn reduce(
    cx: Block,
    x: Global<[u64; 4]>,
    mut out: GlobalMut<[u64; 4], PerBlock>,
    mut shared: Shared<ReduceStorage<[u64; 4]>>,
) {
    let total = block_reduce(cx, &mut shared, x[cx.thread_rank() as usize], First);
    out.store(total);
}

fn main() -> kernel_primitives::Result<()> {
    let stream = kernel_primitives::Device::emulator().stream()?;
    let x = stream.buffer_zeroed(32)?;
    let mut out = stream.buffer_zeroed(1)?;
    reduce::launch(&stream, (1, 32), &x, &mut out)
}
//~? a reduction's element has at most 16 bytes
//~? a warp exchanges elements of at most 16 bytes
