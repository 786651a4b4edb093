//! The whole text of a kernel: its head, its parameters, and its declarations.

use std::fmt::Write;

use super::code::Code;
use crate::expr::ptx::overlap;

/// The name of the entry.
pub(in super::super::super) const ENTRY: &str = "kernel_primitives_fft";

/// The value by which the host checks that a kernel's text was made for its launch.
pub(in super::super) const LAYOUT: u64 = 0x6b70_666f_7572_0001;

/// The bytes of shared memory that a kernel may declare.
const DECLARED: u32 = 48 << 10;

/// Returns the text of a kernel with these numbers of parameters, threads of a block, blocks of a multiprocessor, and bytes of shared
/// memory. Also returns the bytes that a launch has to give.
pub(in super::super) fn module(code: &Code, parameters: usize, bounds: (u32, u32), memory: u32) -> (String, u32) {
    module_of(code, (0..=parameters).map(|number| format!(".param .u64 a{number}")).collect(), bounds, memory)
}

/// Works as [`module`], for a list of all parameters. The last one is the control that every launch passes.
pub(in super::super) fn module_of(
    code: &Code,
    parameters: Vec<String>,
    (threads, blocks): (u32, u32),
    memory: u32,
) -> (String, u32) {
    let (outside, inside) = match memory {
        0 => (String::new(), "    .shared .align 16 .b8 numbers[16];\n".into()),
        1..=DECLARED => (String::new(), format!("    .shared .align 16 .b8 numbers[{memory}];\n")),
        _ => (".extern .shared .align 128 .b8 numbers[];\n".into(), String::new()),
    };
    // These are the device functions that the kernel calls.
    let items: String = code.e.items.iter().flat_map(|item| [*item, "\n"]).collect();
    let (version, target) = (code.e.version, code.e.arch);
    let mut text = format!(
        "// layout {LAYOUT:016x}\n.version {}.{}\n.target sm_{target}\n.address_size 64\n\n{items}{outside}\n.visible .entry {ENTRY}(\n",
        version / 10,
        version % 10
    );
    // The size of clusters is in the text, so that a launch needs no attribute for it.
    let cluster = match code.cluster {
        1 => String::new(),
        cluster => format!(".explicitcluster\n.reqnctapercluster {cluster}, 1, 1\n"),
    };
    // Memory that is read as `global.nc` was written before the plan existed: the host waited for the tables, and no kernel writes them.
    // These kernels have no faults.
    let _ = write!(
        text,
        "    {}\n)\n.maxntid {threads}, 1, 1\n.minnctapersm {blocks}\n{cluster}{{\n{}{inside}\n{}{}}}\n",
        parameters.join(",\n    "),
        code.e.registers(),
        overlap(target),
        code.e.body
    );
    (text, if memory > DECLARED { memory } else { 0 })
}
