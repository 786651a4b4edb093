//! Tests that the text of kernels reaches the process's standard output. A test cannot read the output of its own
//! process. Thus one test launches the kernels, and another test runs this program with only that test.

use std::collections::BTreeSet;
use std::process::Command;

use kernel_primitives::{Result, bf16, f16};

use crate::kernels::printing as kernels;
use crate::support::stream;

const BLOCKS: usize = 3;
const THREADS: usize = 33;
const LEN: usize = 150;

#[test]
fn kernels_that_print_run() -> Result<()> {
    let stream = stream()?;
    // The text must not be in the line that the harness has begun.
    println!();
    let x: Vec<f32> = (0..LEN).map(|i| i as f32 / 4.0 - 10.0).collect();
    let x = stream.buffer_from(&x)?;
    kernels::print_elements::launch(&stream, (BLOCKS as u32, THREADS as u32), &x)?;
    let (half, brain) = (f16::from_f32(-0.375), bf16::from_f32(1e10));
    kernels::print_kinds::launch(&stream, (1, 1), -2, 1 << 63, half, brain, -1.0 / 3.0, true)?;
    stream.synchronize()
}

#[test]
fn lines_are_whole_and_the_same_on_all_machines() {
    let mut expected = BTreeSet::new();
    for i in 0..LEN {
        let (thread, block) = (i % THREADS, i / THREADS % BLOCKS);
        let value = i as f64 / 4.0 - 10.0;
        expected.insert(format!("printed: {thread} of block ({block}, 0, 0): x[{i:03}] = {value:.2}"));
    }
    // The numbers are printed as C's printf does. The bfloat16 nearest to 10^10 is 9,999,220,736.
    expected.insert("printed: -2 9223372036854775808 -0.375 9.99922e+09 -0.333333 true false".to_owned());
    expected.insert("printed: fe 0x8000000000000000 -0.375  | 9.99922e+09| -00000.3|".to_owned());
    expected.insert(format!("printed: [{:<#6x}] [{:<#20X}] [{:<#x}]", -2i8, 1u64 << 63, 1));
    expected.insert("printed: 100 % of {nothing}".to_owned());

    let program = std::env::current_exe().expect("the path of this program");
    let output = Command::new(program)
        .args(["--exact", "host::printing::kernels_that_print_run", "--nocapture", "--test-threads=1"])
        .output()
        .expect("this program runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let mut printed: Vec<_> = text.lines().filter(|line| line.contains("printed:")).collect();
    printed.sort();
    assert_eq!(printed, expected.iter().map(String::as_str).collect::<Vec<_>>());
}
