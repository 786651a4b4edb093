//! Tests the macros if `kernel-primitives` has another name: a module re-exports it.

use kernel_primitives::{Device, Dims, Result};

mod inner {
    pub mod gpu {
        pub use kernel_primitives::*;
    }
}

/// Kernels that name the crate only by the module's path. They are only for the emulator. For the GPU, a kernel file is
/// compiled in a package of its own.
mod kernels {
    use super::inner::gpu;
    use gpu::prelude::*;

    #[derive(Clone, Copy, KernelParam)]
    #[kernel_primitives(crate = crate::renamed::inner::gpu)]
    #[repr(C)]
    pub struct Affine {
        pub a: f32,
        pub b: f32,
    }

    impl UnaryFn<f32> for Affine {
        type Output = f32;
        fn apply(&self, x: f32) -> f32 {
            self.a * x + self.b
        }
    }

    #[derive(Clone, Copy, Debug, PartialEq, Element)]
    #[kernel_primitives(crate = super::inner::gpu)]
    #[repr(C)]
    pub struct Pair<T> {
        pub first: T,
        pub second: T,
    }

    #[kernel(crate = crate::renamed::inner::gpu, equal_len(x, out))]
    pub fn renamed_pairs(
        cx: Block,
        f: Affine,
        x: Global<f32>,
        mut out: GlobalMut<Pair<f32>>,
        mut shared: Shared<ReduceStorage<f32>>,
    ) {
        for i in cx.items(out.len()) {
            let total = block_reduce(cx, &mut shared, x[i], Add);
            out.set(i, Pair { first: f.apply(x[i]), second: total });
        }
    }

    #[kernel(crate = gpu)]
    pub fn renamed_map<T: Element, F: UnaryFn<T, Output = T> + KernelParam>(
        cx: Block,
        f: F,
        x: Global<T>,
        mut out: GlobalMut<T>,
    ) {
        for i in cx.items(out.len()) {
            out.set(i, f.apply(x[i]));
        }
    }

    instantiate!(crate = crate::renamed::inner::gpu, renamed_map::<f32, Affine>);

    /// A device function that the host can also call.
    #[device_function(crate = gpu)]
    pub fn renamed_square(x: f32) -> f32 {
        x * x
    }
}

#[test]
fn macros_find_the_crate_where_they_are_told() -> Result<()> {
    let stream = Device::emulator().stream()?;
    let x = stream.buffer_from(&[1.0f32, 2.0, 3.0, 4.0])?;
    let f = kernels::Affine { a: 2.0, b: 1.0 };
    let mut pairs = stream.buffer_zeroed::<kernels::Pair<f32>>(4)?;
    kernels::renamed_pairs::launch(&stream, (1, 4), f, &x, &mut pairs)?;
    let expected = [3.0, 5.0, 7.0, 9.0].map(|first| kernels::Pair { first, second: 10.0 });
    assert_eq!(pairs.to_vec()?, expected);
    let mut out = stream.buffer_zeroed::<f32>(4)?;
    kernels::renamed_map::<f32, kernels::Affine>::launch(&stream, Dims::for_items(4), f, &x, &mut out)?;
    assert_eq!(out.to_vec()?, [3.0, 5.0, 7.0, 9.0]);
    assert_eq!(kernels::renamed_square(3.0), 9.0);
    assert!(kernels::renamed_square::info().name().ends_with("::renamed_square"));
    Ok(())
}
