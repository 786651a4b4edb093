//! Benchmarks on a GPU, beside CUB, cuSPARSE, cuFFT and PyTorch.
//!
//! ```text
//! cargo bench --features cuda --bench gpu -- [--peers libpeers.so] [--torch torch.json] [--json results.json] [--log2 30] [--only rows,block]
//!     [--rows scan,"select u32"]
//! cargo bench --features cuda --bench gpu -- --only tune [--tuning my.txt] [--json results.json] [--rows reduce]
//! ```
//!
//! CUB, Thrust, cuSPARSE and cuFFT are a shared library (`benches/peers/*.cu`), so that all run in one process, on the same data, one sample
//! after the other; PyTorch's times are another process's (`benches/peers/torch_peers.py`). A sample is one or several launches
//! between two events; the figures are medians over the samples. Every result is checked, large ones in parts, those of the
//! peers in this process too. After a wrong one the program goes on, and ends with an error. A panic or an error leaves out the rest of a
//! group of rows. `--log2` is the largest size; `--rows` names beginnings of the names of the algorithms' rows to measure.
//!
//! `split` needs two GPUs, and measures several beside one.
//!
//! `tune` times the algorithms' rows with other tuning values than those that count now, and writes a file of what is faster: see
//! `kernel_primitives::algorithms::Tuning`.
//!
//! Without a GPU the program says so and ends; `--emulate` runs the rows of algorithms, or `tune`, in the emulator, at small
//! sizes: it checks the benchmark, and measures nothing.

#![allow(unreachable_pub, reason = "a benchmark exports nothing, and kernels are public")]

#[cfg(feature = "cuda")]
mod algorithms;
#[cfg(feature = "cuda")]
mod block;
#[cfg(feature = "cuda")]
mod block_sort;
#[cfg(feature = "cuda")]
mod elementwise;
#[cfg(feature = "cuda")]
mod expressions;
#[cfg(feature = "cuda")]
mod fourier;
#[cfg(feature = "cuda")]
mod harness;
#[cfg(feature = "cuda")]
mod kernels;
#[cfg(feature = "cuda")]
mod launch;
#[cfg(feature = "cuda")]
mod peers;
#[cfg(feature = "cuda")]
mod rows;
#[cfg(feature = "cuda")]
mod sparse;
#[cfg(feature = "cuda")]
mod split;
#[cfg(feature = "cuda")]
mod stencils;

/// Measures a group of rows.
#[cfg(feature = "cuda")]
type Group = fn(&kernel_primitives::Device, &harness::Options, &mut harness::Report) -> kernel_primitives::Result<()>;

#[cfg(feature = "cuda")]
fn main() {
    let began = std::time::Instant::now();
    let options = harness::Options::parse();
    let device = match kernel_primitives::Device::gpu() {
        _ if options.emulate => kernel_primitives::Device::emulator(),
        Ok(device) => device,
        Err(error) => {
            println!("the GPU benchmarks need a GPU: {error}");
            return;
        }
    };
    let mut report = harness::Report::new(&device, &options, began.elapsed());
    let groups: [(&str, Group); 11] = [
        ("launch", launch::run),
        ("algorithms", algorithms::run),
        ("elementwise", elementwise::run),
        ("block_sort", block_sort::run),
        ("block", block::run),
        ("rows", rows::run),
        ("expressions", expressions::run),
        ("sparse", sparse::run),
        ("stencils", stencils::run),
        ("fourier", fourier::run),
        ("split", split::run),
    ];
    let tune: (&str, Group) = ("tune", algorithms::tune::run);
    let wanted = groups.into_iter().filter(|(name, _)| options.wants(name));
    for (name, run) in wanted.chain(options.tunes().then_some(tune)) {
        report.group(name, |report| run(&device, &options, report));
    }
    if !report.finish(&options) {
        std::process::exit(1);
    }
}

#[cfg(not(feature = "cuda"))]
fn main() {
    println!("the GPU benchmarks need the feature `cuda`: cargo bench --features cuda --bench gpu");
}
