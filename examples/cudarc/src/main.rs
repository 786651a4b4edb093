//! Lends a stream and memory of `cudarc` to this library, and takes them back, without a copy.
//!
//! ```text
//! cargo run --release --features cuda --manifest-path examples/cudarc/Cargo.toml
//! ```
//!
//! `cudarc` makes the context, the stream and the memory, and fills the memory. This library sorts it on that stream, and scales the sorted
//! values by an expression. Then `cudarc` has its slices again, and reads the results.

mod queue;

use std::error::Error;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr};
use kernel_primitives::algorithms::sort_keys;
use kernel_primitives::expr::Tensor;
use kernel_primitives::functor::Less;
use kernel_primitives::{Device, Error as LibraryError};

use queue::Queue;

const LEN: usize = 1 << 22;

/// Floats from 0 to 1.
fn random(len: usize) -> Vec<f32> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32
    };
    (0..len).map(|_| next()).collect()
}

fn address(slice: &CudaSlice<f32>, stream: &CudaStream) -> u64 {
    slice.device_ptr(stream).0
}

fn main() -> Result<(), Box<dyn Error>> {
    // Without a driver, `cudarc` would panic.
    match Device::gpu() {
        Ok(device) => println!("device  {device}"),
        Err(error @ LibraryError::NoGpu { .. }) => {
            println!("nothing to show here: {error}");
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    }

    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    let values = random(LEN);
    let keys = stream.clone_htod(&values)?;
    let sorted = stream.alloc_zeros::<f32>(LEN)?;
    let places = [address(&keys, &stream), address(&sorted, &stream)];

    // SAFETY: a stream of a primary context, adopted here alone, which nobody captures.
    let queue = unsafe { Queue::adopt(&stream)? };
    let device = queue.stream().device();
    assert_eq!(device.as_raw_context(), context.cu_ctx().cast());
    assert_eq!(queue.stream().as_raw(), stream.cu_stream().cast());
    println!("context {:p}, stream {:p}", device.as_raw_context(), queue.stream().as_raw());

    let before = device.counters();
    let (keys, keys_loan) = queue.lend(keys)?;
    let (mut sorted, sorted_loan) = queue.lend(sorted)?;
    assert_eq!([keys.address(), sorted.address()], places);
    sort_keys(queue.stream(), &keys, &mut sorted, Less)?;
    let scaled = Tensor::from_buffer(queue.stream(), LEN, sorted)?;
    scaled.assign(&scaled * 2.0 - 1.0)?;
    // This waits for the work.
    drop((keys, scaled));
    let (Ok(keys), Ok(sorted)) = (keys_loan.take_back(), sorted_loan.take_back()) else {
        unreachable!("nothing of this library has the memory");
    };
    let cost = device.counters().since(before);
    assert_eq!([address(&keys, &stream), address(&sorted, &stream)], places);
    println!("keys    {:#x}, sorted {:#x}: before, in between and afterwards", places[0], places[1]);
    println!("        {} launches, {} allocations of temporary memory", cost.launches, cost.allocations);
    assert_eq!([cost.host_to_device_copies, cost.device_to_host_copies, cost.device_copies], [0; 3], "a copy was made");

    assert!(stream.clone_dtoh(&keys)? == values, "the keys stay as they are");
    let mut expected = values;
    expected.sort_by(f32::total_cmp);
    expected.iter_mut().for_each(|value| *value = *value * 2.0 - 1.0);
    assert!(stream.clone_dtoh(&sorted)? == expected, "not what the CPU computes");
    println!("checked against the CPU: {LEN} floats from {} to {}", expected[0], expected[LEN - 1]);
    Ok(())
}
