//! Lends tensors of `candle` to this library. An expression and a reduction over them give tensors of `candle` again, without a copy.
//!
//! ```text
//! cargo run --release --manifest-path examples/candle/Cargo.toml                    # on the CPU
//! cargo run --release --manifest-path examples/candle/Cargo.toml --features cuda    # on a GPU, too; the build needs nvcc
//! ```
//!
//! The operands are halves of a matrix, and their transposes. `candle` makes these views without a copy, and this library reads them
//! without a copy.

mod fused;
mod lend;

use std::error::Error;

use candle_core::{Device, Tensor};
use kernel_primitives::{Device as OurDevice, Error as OurError};

use fused::Fused;

const ROWS: usize = 384;
const COLUMNS: usize = 1024;

/// The largest distance between elements of two tensors of one shape, divided by the largest magnitude in `b`. If a distance is NaN, so is
/// the result.
fn distance(a: &Tensor, b: &Tensor) -> candle_core::Result<f32> {
    let largest = b.abs()?.flatten_all()?.max(0)?.to_scalar::<f32>()?;
    // candle's maximum leaves out NaN. In this order, a NaN without a minus sign is larger than all numbers.
    let distances = (a - b)?.flatten_all()?.to_vec1::<f32>()?.into_iter().map(f32::abs);
    Ok(distances.max_by(f32::total_cmp).unwrap_or(0.0) / largest)
}

fn show(device: &Device) -> Result<(), Box<dyn Error>> {
    // SAFETY: a device with a stream of its own, which is adopted here alone.
    let fused = unsafe { Fused::on(device)? };
    println!("{} for {:?}", fused.device(), device.location());
    let values = (0..ROWS * 2 * COLUMNS).map(|i| (i * 7919 % 2003) as f32 / 250.0 - 4.0).collect();
    let both = Tensor::from_vec(values, (ROWS, 2 * COLUMNS), device)?;
    let (gate, up) = (both.narrow(1, 0, COLUMNS)?, both.narrow(1, COLUMNS, COLUMNS)?);
    let without_rows = fused.swiglu(&gate.narrow(0, 0, 0)?, &up.narrow(0, 0, 0)?)?;
    assert_eq!(without_rows.dims(), [0, COLUMNS]);
    for (what, gate, up) in [("halves of a matrix", &gate, &up), ("their transposes", &gate.t()?, &up.t()?)] {
        let before = fused.device().counters();
        let product = fused.swiglu(gate, up)?;
        let norms = fused.swiglu_norms(gate, up)?;
        let cost = fused.device().counters().since(before);
        assert_eq!(
            [cost.host_to_device_copies, cost.device_to_host_copies, cost.device_copies],
            [0; 3],
            "a copy was made"
        );

        let expected = (gate.silu()? * up)?;
        let expected_norms = expected.sqr()?.sum(1)?.sqrt()?;
        assert_eq!((product.dims(), norms.dims()), (expected.dims(), expected_norms.dims()));
        let off = [distance(&product, &expected)?, distance(&norms, &expected_norms)?];
        println!(
            "{what}, of strides {:?}: {} launches, {} allocations",
            gate.stride(),
            cost.launches,
            cost.allocations
        );
        println!(
            "    SwiGLU {:?} and norms {:?}: {:.1e} and {:.1e} from candle's",
            product.dims(),
            norms.dims(),
            off[0],
            off[1]
        );
        assert!(off.iter().all(|&off| off < 1e-5), "{off:?}");
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    show(&Device::Cpu)?;
    match OurDevice::gpu() {
        Ok(_) => show(&Device::new_cuda_with_stream(0)?),
        Err(error @ OurError::NoGpu { .. }) => {
            println!("not on a GPU: {error}");
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}
