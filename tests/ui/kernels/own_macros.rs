//! A user's macros are not those of generated code.

mod kernels {
    use kernel_primitives::prelude::*;

    #[allow(unused_macros)]
    macro_rules! assert {
        ($($token:tt)*) => {
            compile_error!("this is the user's")
        };
    }

    #[kernel]
    pub fn shares(cx: Block, mut shared: Shared<[u32; 32]>) {
        shared.set(cx.thread_rank() as usize, 1);
    }
}

fn main() -> kernel_primitives::Result<()> {
    kernels::shares::launch(&kernel_primitives::Device::emulator().stream()?, (1, 32))
}
