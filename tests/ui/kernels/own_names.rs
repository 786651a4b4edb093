//! Names of a user's own, which generated code must not take for others: a macro, a module, and parameters that are named as matrices are.

#![deny(warnings)]

mod macros {
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

mod algorithms {
    use kernel_primitives::prelude::*;

    #[kernel(equal_len(A, C))]
    #[allow(non_snake_case, non_upper_case_globals)]
    pub fn times<const n: u32>(cx: Block, A: Global<u32>, mut C: GlobalMut<u32>) {
        for i in cx.items(C.len()) {
            C.set(i, n * A[i]);
        }
    }
}

kernel_primitives::instantiate!(crate::algorithms::times::<2>);

fn main() -> kernel_primitives::Result<()> {
    let stream = kernel_primitives::Device::emulator().stream()?;
    macros::shares::launch(&stream, (1, 32))?;
    let (x, mut y) = (stream.buffer_from(&[3u32])?, stream.buffer_zeroed::<u32>(1)?);
    algorithms::times::<2>::launch(&stream, (1, 32), &x, &mut y)
}
