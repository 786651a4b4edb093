//! Right programs compile. Thus the other cases fail for the reason that they name.

mod kernels {
    use kernel_primitives::prelude::*;

    #[derive(Clone, Copy, KernelParam)]
    #[repr(C)]
    pub struct Scale(pub f32);

    impl UnaryFn<f32> for Scale {
        type Output = f32;
        fn apply(&self, x: f32) -> f32 {
            self.0 * x
        }
    }

    #[derive(Clone, Copy, Element)]
    #[repr(C)]
    pub struct Pair {
        pub a: u64,
        pub b: [u32; 2],
    }

    #[kernel(equal_len(x, out), instantiate(<Scale, 4>))]
    pub fn apply<F: UnaryFn<f32, Output = f32> + KernelParam, const NX: usize>(
        cx: Block,
        x: Global<f32>,
        mut out: GlobalMut<f32, Tiles<NX>>,
        f: F,
    ) {
        for tile in cx.tiles::<NX>(out.len()) {
            let mut items = init::<f32, NX>(0.0);
            read_data(cx, &mut items, x.tile(tile));
            write_data(cx, out.tile(tile), &elementwise_unary(&items, |x: f32| f.apply(x)));
        }
    }

    #[kernel]
    pub fn rotate(cx: Block, mut pairs: GlobalMut<Pair>) {
        for i in cx.items(pairs.len()) {
            let pair = cx.shuffle_xor(cx.warp_mask(), pairs.get(i), 1, 32);
            pairs.set(i, pair);
        }
    }
}

fn main() -> kernel_primitives::Result<()> {
    let stream = kernel_primitives::Device::emulator().stream()?;
    let x = stream.buffer_from(&[1.0f32; 10])?;
    let mut out = stream.buffer_zeroed(10)?;
    kernels::apply::<kernels::Scale, 4>::launch(&stream, (1, 32), &x, &mut out, kernels::Scale(2.0))?;
    let mut pairs = stream.buffer_zeroed(32)?;
    kernels::rotate::launch(&stream, (1, 32), &mut pairs)
}
