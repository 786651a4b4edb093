//! Kernels that print.

use kernel_primitives::prelude::*;

/// Prints a line for each element.
#[kernel]
pub fn print_elements(cx: Block, x: Global<f32>) {
    for i in cx.items(x.len()) {
        let (thread, block) = (cx.thread_rank(), cx.block_idx());
        device_println!(cx, "printed: {} of block {}: x[{:03}] = {:.2}", thread, block, i.index(), x[i]);
    }
}

/// Prints a line with a value of each kind, two lines with other forms of values, and a line without values.
#[kernel]
pub fn print_kinds(cx: Block, small: i8, big: u64, half: f16, brain: bf16, double: f64, flag: bool) {
    device_println!(cx, "printed: {} {} {} {} {} {} {}", small, big, half, brain, double, flag, !flag);
    device_println!(cx, "printed: {:x} {:#018X} {:<8.3}| {:8}| {:08.1}|", small, big, half, brain, double);
    device_println!(cx, "printed: [{:<#6x}] [{:<#20X}] [{:<#x}]", small, big, flag as u32);
    device_println!(cx, "printed: 100 % of {{nothing}}");
}
