//! Private and unsafe launches by code that may make them.

mod kernels {
    use kernel_primitives::prelude::*;
    use kernel_primitives::{Buffer, Result, Stream};

    /// Copies one element.
    ///
    /// # Safety
    /// `at` is less than the length of `x`.
    #[kernel(launch(pub(super)), instantiate(<f32>))]
    pub unsafe fn one<T: Element>(_cx: Block, at: u64, x: Global<T>, mut out: GlobalMut<T, PerBlock>) {
        out.store(x[at as usize]);
    }

    /// Writes the first element of `x` for each block.
    #[kernel(launch())]
    pub fn fill(cx: Block, x: Global<f32>, out: GlobalMut<f32, PerBlock>) {
        // SAFETY: there is a block for an element of `out`, so that `x` has an element, too.
        unsafe { one(cx, 0, x, out) }
    }

    pub fn filled(stream: &Stream, x: &Buffer<f32>, out: &mut Buffer<f32>) -> Result<()> {
        fill::launch(stream, (1, 32), x, out)
    }
}

// Other modules instantiate a kernel that they cannot launch.
kernel_primitives::instantiate!(kernels::one::<u32>);
kernel_primitives::instantiate!(
    kernel_primitives::kernels::device::unique_tiles<
        kernel_primitives::input::Span<i8>,
        kernel_primitives::input::Constant<u8>,
        false,
    >
);

fn main() -> kernel_primitives::Result<()> {
    let stream = kernel_primitives::Device::emulator().stream()?;
    let x = stream.buffer_from(&[1.0f32, 2.0])?;
    let mut out = stream.buffer_zeroed(1)?;
    // SAFETY: `x` has two elements.
    unsafe { kernels::one::<f32>::launch(&stream, (1, 32), 1, &x, &mut out) }?;
    kernels::filled(&stream, &x, &mut out)?;
    assert!(kernels::one::<u32>::info().name().ends_with("one::<u32>"));
    assert!(kernels::fill::info().name().ends_with("fill"));
    let (keys, mut found) = (stream.buffer_from(&[1i8, 1, 2])?, stream.buffer_zeroed::<i8>(3)?);
    kernel_primitives::algorithms::unique(&stream, &keys, &mut found, &mut stream.buffer_zeroed(1)?)
}
