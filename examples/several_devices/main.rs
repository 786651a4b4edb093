//! One program for one device and for several. It computes `x = i / n`, `y = sin(2x) + sqrt(1 - x²)`, and sorts the elements of `y`.
//!
//! ```text
//! cargo run --release --example several_devices
//! KERNEL_PRIMITIVES_DEVICES=emulator:4 cargo run --release --example several_devices
//! SOLVER_DEVICES=memory=40G,count=2 cargo run --release --features cuda --example several_devices
//! ```
//!
//! Vectors are split over all devices that filters keep. Each device computes its part. Indices count over the whole vector, so the program
//! is the same for any number of devices. Each device computes a partial mean, and these are combined. After the sort, all devices have
//! equally many elements, and the first device has the smallest. At the end, devices of the emulator with little memory sort more keys than
//! one of them can hold.

use std::time::Instant;

use kernel_primitives::devices::{double_precision, environment};
use kernel_primitives::expr::{Reductions, SplitTensor, element_index, sin, sqrt};
use kernel_primitives::functor::Less;
use kernel_primitives::split::sort_keys;
use kernel_primitives::{Devices, EmulatorOptions, Error, Result, Split, SplitBuffer};

const LEN: usize = 1 << 22;
/// The number of keys, which is larger than one device can hold.
const MANY: usize = 1 << 20;

fn main() -> Result<()> {
    let devices = Devices::choose(environment("SOLVER_DEVICES") & double_precision())?;
    let split = Split::even(&devices)?;
    for (device, range) in devices.iter().zip(split.ranges(LEN)) {
        println!("{device}: elements {range:?}; {}", device.reason());
    }

    let n = LEN as f64;
    let (x, y) = (SplitTensor::<f64>::uninit(&split, LEN)?, SplitTensor::<f64>::uninit(&split, LEN)?);
    // The first round makes and loads the kernels.
    for _ in 0..2 {
        let start = Instant::now();
        x.assign(element_index::<f64>() / n)?;
        y.assign(sin(&x * 2.0) + sqrt(1.0 - &x * &x))?;
        split.synchronize()?;
        println!("{LEN} elements in {:.2?}", start.elapsed());
    }

    let mut values = y.to_vec()?;
    for (i, y) in values.iter().enumerate() {
        let x = i as f64 / n;
        let expected = (2.0 * x).sin() + (1.0 - x * x).sqrt();
        assert!((y - expected).abs() < 1e-14, "element {i}: {y}, not {expected}");
    }
    // The mean is the integral from 0 to 1, except for the first and the last half of a step.
    let integral = (1.0 - f64::cos(2.0)) / 2.0 + std::f64::consts::FRAC_PI_4;
    let mean = y.mean().item()?;
    println!("mean {mean:.9}, integral {integral:.9}");
    assert!((mean - integral).abs() < 1.0 / n);

    let (unsorted, mut sorted) = (SplitBuffer::from_slice(&split, &values)?, SplitBuffer::uninit(&split, LEN)?);
    for _ in 0..2 {
        let start = Instant::now();
        sort_keys(&unsorted, &mut sorted, Less)?;
        split.synchronize()?;
        println!("sorted in {:.2?}", start.elapsed());
    }
    values.sort_by(f64::total_cmp);
    assert!(sorted.to_vec()? == values);
    println!("checked against the CPU");
    more_than_one_device_holds()
}

/// Sorts keys over eight devices. Each device has memory for seven eighths of the keys.
fn more_than_one_device_holds() -> Result<()> {
    let mut options = EmulatorOptions::default();
    (options.memory_bytes, options.checked) = (Some(MANY / 8 * 7 * size_of::<u32>()), false);
    let split = Split::even(&Devices::emulated_with(8, options)?)?;
    let mut keys: Vec<u32> = (0..MANY as u32).map(|i| i.wrapping_mul(2_654_435_761) >> 7).collect();

    let alone = split.streams()[0].buffer_from(&keys);
    let Err(Error::Allocation { .. }) = alone else { panic!("one device holds all keys") };
    let (unsorted, mut sorted) = (SplitBuffer::from_slice(&split, &keys)?, SplitBuffer::uninit(&split, MANY)?);
    sort_keys(&unsorted, &mut sorted, Less)?;
    keys.sort_unstable();
    assert!(sorted.to_vec()? == keys);
    println!("{MANY} keys sorted by 8 devices, of which none has memory for all of them");
    Ok(())
}
