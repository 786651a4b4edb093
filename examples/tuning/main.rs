//! The table of tuning values, what counts on the device at hand, and one call with others.
//!
//! ```text
//! cargo run --example tuning
//! KERNEL_PRIMITIVES_TUNING=my.txt cargo run --release --features cuda --example tuning
//! ```

use kernel_primitives::algorithms::{Parameter, Run, TUNING_VARIABLE, Tuning, reduce};
use kernel_primitives::functor::Sum;
use kernel_primitives::{Device, Result};

fn main() -> Result<()> {
    println!("The table:\n\n{}", Tuning::table());

    let device = Device::auto()?;
    let file = std::env::var(TUNING_VARIABLE).map_or(String::new(), |file| format!(", with {file}"));
    let tuning = Tuning::of(&device)?;
    println!("What counts on {device}{file}:\n\n{tuning}");

    // One block alone, whatever the length, needs no memory to meet others in.
    let mut alone = tuning.clone();
    alone.set(Parameter::ReduceAlone, None, 1024)?;
    let stream = device.stream()?;
    let x = stream.buffer_from(&(0..100_000).collect::<Vec<u64>>())?;
    let mut sum = stream.buffer_zeroed::<u64>(1)?;
    for (name, tuning) in [("these values", tuning), ("reduce.alone = 1024", &alone)] {
        let before = device.counters();
        reduce(Run::on(&stream).tuned(tuning), &x, Sum, &mut sum)?;
        let allocations = device.counters().since(before).allocations;
        println!("a sum with {name}: {:?}, and {allocations} allocations", sum.to_vec()?);
        assert_eq!(sum.to_vec()?, [100_000 * 99_999 / 2]);
    }
    Ok(())
}
