//! Prints the table of tuning values and the values that the device at hand uses, and makes one call with other values.
//!
//! ```text
//! cargo run --example tuning
//! KERNEL_PRIMITIVES_TUNING=my.txt cargo run --release --features cuda --example tuning
//! ```

use kernel_primitives::algorithms::{Parameter, Run, TUNING_VARIABLE, Tuning, merge};
use kernel_primitives::functor::Less;
use kernel_primitives::{Device, Result};

fn main() -> Result<()> {
    println!("The table:\n\n{}", Tuning::table());

    let device = Device::auto()?;
    let file = std::env::var(TUNING_VARIABLE).ok().filter(|file| !file.is_empty());
    let file = file.map_or(String::new(), |file| format!(", with {file}"));
    let tuning = Tuning::of(&device)?;
    println!("What counts on {device}{file}:\n\n{tuning}");

    // If tiles do not search for their own places, an earlier launch finds these.
    let mut found = tuning.clone();
    found.set(Parameter::MergeSearching, None, 0)?;
    let stream = device.stream()?;
    let x = stream.buffer_from(&(0..50_000).collect::<Vec<u32>>())?;
    let mut out = stream.buffer_zeroed::<u32>(100_000)?;
    for (name, tuning) in [("these values", tuning), ("merge.searching = 0", &found)] {
        let before = device.counters();
        merge(Run::on(&stream).tuned(tuning), &x, &x, Less, &mut out)?;
        println!("a merge with {name}: {} launches", device.counters().since(before).launches);
        assert!(out.to_vec()?.into_iter().eq((0..100_000).map(|i| i / 2)));
    }
    Ok(())
}
