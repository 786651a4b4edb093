//! Launches of kernels whose launch is private, or unsafe.

mod kernels {
    use kernel_primitives::prelude::*;

    /// Reads one element.
    ///
    /// # Safety
    /// `at` is less than the length of `x`.
    #[kernel]
    pub unsafe fn one(_cx: Block, at: u64, x: Global<f32>, mut out: GlobalMut<f32, PerBlock>) {
        out.store(x[at as usize]);
    }

    #[kernel(launch())]
    pub fn of_the_module(_cx: Block, mut out: GlobalMut<f32, PerBlock>) {
        out.store(1.0);
    }

    #[kernel(launch(pub(in crate::kernels)), instantiate(<f32>))]
    pub fn of_a_path<T: Number>(_cx: Block, mut out: GlobalMut<T, PerBlock>) {
        out.store(T::ONE);
    }

    #[kernel]
    pub fn calls(cx: Block, x: Global<f32>, out: GlobalMut<f32, PerBlock>) {
        one(cx, 0, x, out); //~ call to unsafe function
    }
}

use kernel_primitives::functor::Less;
use kernel_primitives::input::Span;
use kernel_primitives::kernels::device::{self, MergePass};
use kernel_primitives::{Buffer, Result, Stream};

fn unsafe_launch(stream: &Stream, x: &Buffer<f32>, out: &mut Buffer<f32>) -> Result<()> {
    kernels::one::launch(stream, (1, 32), 7, x, out) //~ call to unsafe
}

fn private_launch(stream: &Stream, out: &mut Buffer<f32>) -> Result<()> {
    kernels::of_the_module::launch(stream, (1, 32), out) //~ associated function `launch` is private
}

fn private_launch_of_types(stream: &Stream, out: &mut Buffer<f32>) -> Result<()> {
    kernels::of_a_path::<f32>::launch(stream, (1, 32), out) //~ associated function `launch` is private
}

fn of_an_algorithm(stream: &Stream, x: &Buffer<u32>, splits: &mut Buffer<u64>) -> Result<()> {
    type Splits = device::merge_splits<Span<u32>, Span<u32>, Less>;
    Splits::launch(stream, (1, 256), x, x, splits, MergePass { run: 4096, keep: 8192 }, 4096, Less) //~ associated function `launch` is private
}

fn main() {}
