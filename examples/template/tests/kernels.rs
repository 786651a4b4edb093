//! What `src/kernels.rs` has, against plain Rust: on a GPU if the feature `cuda` is on and there is one, else in the emulator.

use kernel_primitives::algorithms::{sort_by, top_k};
use kernel_primitives::functor::Greater;
use kernel_primitives::input::reversed;
use kernel_primitives::kernels::map_unary;
use kernel_primitives::{Device, Dims, Result, UnaryFn};
use template::kernels::{Softsign, axpy, smooth};

/// No multiple of a block or a vector: the last tile is partial.
const LEN: usize = 10_007;

fn ramp() -> Vec<f32> {
    (0..LEN).map(|i| i as f32 * 0.25 - 1000.0).collect()
}

#[test]
fn own_kernel() -> Result<()> {
    let stream = Device::auto()?.stream()?;
    let (x, y) = (ramp(), vec![1.0f32; LEN]);
    let on_device = stream.buffer_from(&x)?;
    let mut out = stream.buffer_from(&y)?;
    axpy::launch(&stream, Dims::for_items(LEN), 3.0, &on_device, &mut out)?;
    let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 3.0 * x + y).collect();
    assert_eq!(out.to_vec()?, expected);
    Ok(())
}

#[test]
fn shipped_kernel_with_own_functor() -> Result<()> {
    let stream = Device::auto()?.stream()?;
    let x = ramp();
    let on_device = stream.buffer_from(&x)?;
    let mut out = stream.buffer_zeroed::<f32>(LEN)?;
    let dims = Dims::for_items(LEN).items_per_thread(4);
    map_unary::<f32, f32, Softsign, 4>::launch(&stream, dims, &on_device, &mut out, Softsign)?;
    let expected: Vec<f32> = x.iter().map(|&x| Softsign.apply(x)).collect();
    assert_eq!(out.to_vec()?, expected);
    Ok(())
}

#[test]
fn algorithms_that_share_kernels() -> Result<()> {
    let stream = Device::auto()?.stream()?;
    let x: Vec<u64> = (0..LEN as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let mut expected = x.clone();
    expected.sort_unstable_by(|a, b| b.cmp(a));
    let on_device = stream.buffer_from(&x)?;
    let (mut sorted, mut largest) = (stream.buffer_zeroed::<u64>(LEN)?, stream.buffer_zeroed::<u64>(2000)?);
    sort_by(&stream, reversed(&on_device), Greater, &mut sorted)?;
    assert_eq!(sorted.to_vec()?, expected);
    // Few are found by kernels of their own; many by those of the sort.
    for k in [10, 2000] {
        top_k(&stream, reversed(&on_device), k, Greater, &mut largest)?;
        assert_eq!(largest.to_vec()?[..k], expected[..k]);
    }
    Ok(())
}

#[test]
fn own_device_function() {
    let code = smooth::info().code();
    let symbol = env!("CARGO_PKG_NAME").replace('-', "_") + "__kernels__smooth";
    assert_eq!((smooth::info().function()(0.25), code.symbol()), (0.15625, symbol.as_str()));
    if cfg!(feature = "cuda") {
        let image = code.images().last().expect("an architecture was built");
        assert!(image.items.last().is_some_and(|item| item.contains(code.symbol())) && !image.can_panic());
    }
}
