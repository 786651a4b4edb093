//! Compiles the GPU kernels of a crate from Rust to PTX, in its build script.
//!
//! A crate keeps its kernels in a file of their own, which is an ordinary module on the host. For the GPU, one call in `build.rs`
//! compiles the same file a second time:
//!
//! ```no_run
//! fn main() -> Result<(), primitives_build::Error> {
//!     primitives_build::PtxBuilder::new("src/kernels.rs").build()?;
//!     Ok(())
//! }
//! ```
//!
//! The published packages of `kernel-primitives` contain that library's kernels, compiled. A build compiles the kernels of your crate alone,
//! and what the variables below say of architectures, line tables and dumps is for those. With `KERNEL_PRIMITIVES_FROM_SOURCE=1`, and where
//! the library is a dependency by `git` or `path`, the first build with its feature `cuda` compiles its kernels too, and the variables are
//! for all. It takes minutes; on a terminal, a line shows how many kernels are done. `KERNEL_PRIMITIVES_ARCHS=90` builds for one
//! architecture, in less than half the time.
//!
//! # What it does
//!
//! 1. It writes a wrapper crate that declares the module under the path it has on the host. It compiles that crate with
//!    `core` and its dependencies for rustc's `nvptx64-nvidia-cuda` target, to a single module of LLVM bitcode.
//!    Nothing is optimised yet.
//! 2. It cuts the module into one for each kernel and device function, optimises each as rustc would, and links it with a small
//!    runtime module and NVIDIA's libdevice.
//! 3. For each architecture, it optimises them once more and generates PTX, both with LLVM's own tools.
//! 4. It cuts the PTX down to what the kernel reaches, and into the items of each device function. Where there is a ptxas, it
//!    assembles each kernel.
//!
//! Steps 2 to 4 use all cores. A kernel's PTX does not depend on the other kernels.
//!
//! Arithmetic is IEEE: square roots and divisions are correctly rounded, denormals are kept, and multiplications
//! are not contracted with additions unless [`PtxBuilder::fuse_multiply_add`] asks for it.
//!
//! # What it is built for
//!
//! The architectures are 75, 80, 90 and 100 unless [`PtxBuilder::arch`] names others: compute capabilities times ten. The environment
//! variable `KERNEL_PRIMITIVES_ARCHS` (`90`, or `75,90`) overrides both, for the kernels of your crate, and for the library's where
//! they are compiled too. PTX also runs on later architectures, where the driver compiles it at the first launch.
//!
//! # What it leaves
//!
//! The variable `KERNEL_PRIMITIVES_PTX` of the crate's compilation (`env!`) names a folder with
//!
//! | file | content |
//! |---|---|
//! | `crate::module/kernel.sm_90.ptx` | a kernel's PTX, with everything it reaches; the entry is `crate__module__kernel` |
//! | `crate::module/kernel.sm_90.cubin` | the same assembled, where [`Cubins`] were made |
//! | `crate::module/kernel.rs` | an expression of type `&[(u32, &str, Option<&[u8]>)]`: architecture, PTX, cubin |
//! | `index.txt` | the kernels' paths, one a line |
//! | `crate::module/function.sm_90.ptx` | a device function's PTX, an item of a module to be written; the symbol is `crate__module__function` |
//! | `functions/….ptx` | what device functions need beside them, an item each: functions that they call, tables |
//! | `crate::module/function.rs` | an expression of type `&[(u32, u32, &[&str])]`: architecture, PTX version, the items, what each needs before it |
//! | `functions.txt` | the device functions' paths, one a line |
//! | `report.tsv` | threads, registers, shared memory, stack and spills of each kernel, and what keeps it from starting: the [`Report`] |
//!
//! If the blocks of a kernel cannot start on an architecture, for lack of shared memory, for example, the build warns.
//!
//! # How often it does it
//!
//! It compiles each kernel once. PTX and cubins lie in the user's cache (`~/.cache/kernel-primitives`), where their content finds
//! them: the IR that a kernel is made from, and the tools. So a build with another profile, other features, another target folder or
//! in another checkout takes them from there, and after an edit only the kernels that changed are compiled. Where a crate's sources
//! are what they were in an earlier build, rustc does not run either. Each package has a folder for rustc's files there. The environment
//! variable `KERNEL_PRIMITIVES_CACHE` names another folder by an absolute path; if it is empty, each build keeps these files to itself.
//! What is damaged is made again.
//!
//! What no build has used for 30 days is removed. If PTX and cubins take more than 2 GiB, those go that were used longest ago. rustc's
//! files are about 300 MB for each package. If they take more than 2 GiB, those that were used longest ago go too, unless a build used
//! them in the last 24 hours.
//!
//! If a build takes longer than a few seconds, and cargo's messages go to a terminal, a line there tells how far it is. On systems other
//! than Unix, there is no such line. `CARGO_TERM_PROGRESS_WHEN=never`, `CI` and `TERM=dumb` turn it off.
//!
//! # Looking at kernels
//!
//! Three environment variables show what became of the kernels, without a change of the build script:
//!
//! | variable | what it does |
//! |---|---|
//! | `KERNEL_PRIMITIVES_DUMP=folder` | writes each kernel's PTX and SASS (`crate::module/kernel.sm_90.sass`), and the resources as `package.tsv`; a relative folder is one of the package's |
//! | `KERNEL_PRIMITIVES_REPORT_ARCHS=86,120` | adds these architectures to the report, see [`PtxBuilder::report_archs`] |
//! | `KERNEL_PRIMITIVES_LINE_INFO=1` | keeps a line table, see [`PtxBuilder::line_info`]: Nsight Compute and the dumped SASS show lines of Rust |
//!
//! nvdisasm makes the SASS from a cubin. In a program, a kernel's `info().ptx(&device)` is its PTX.
//!
//! # What it needs
//!
//! A Rust compiler with the sources of `core`, LLVM's `llvm-dis`, `llvm-link`, `opt` and `llc` of at least the
//! compiler's LLVM version, and libdevice; ptxas and nvdisasm are optional. The outer build stays on its stable toolchain.
//!
//! | | with rustup | on Debian and Ubuntu |
//! |---|---|---|
//! | compiler, LLVM | `rustup toolchain install nightly --component rust-src --component llvm-tools` | `apt-get install rustc-web rust-web-src llvm-22` |
//! | libdevice, ptxas | the CUDA toolkit, or `pip install nvidia-nvvm nvidia-cuda-nvcc` | the same |
//!
//! The repository's `scripts/setup-device-toolchain.sh` installs all of it on Debian and Ubuntu. The build looks for tools in this
//! order:
//!
//! | tool | places |
//! |---|---|
//! | compiler | `KERNEL_PRIMITIVES_RUSTC`; rustup's nightlies; the distribution's; rustup's other toolchains |
//! | LLVM | `KERNEL_PRIMITIVES_LLVM_BIN` (a folder); the compiler's `llvm-tools`; the system's nearest version; `PATH` |
//! | libdevice, ptxas, nvdisasm | `KERNEL_PRIMITIVES_LIBDEVICE`, `KERNEL_PRIMITIVES_PTXAS`, `KERNEL_PRIMITIVES_NVDISASM` (files); `CUDA_HOME`, `CUDA_PATH`, `/usr/local/cuda`, `PATH`; Python wheels |
//!
//! It passes over a compiler without its sources, or one newer than every LLVM there. [`Toolchain::find`] tells what was found, and
//! so does the program `kernel-primitives-doctor` of this crate. In this repository, `cargo run -p kernel-primitives-build --bin
//! kernel-primitives-doctor` runs it. `cargo install --path` of this crate's folder installs it, so that it runs anywhere. It also tells
//! whether NCCL is there, which no build needs: the feature `doctor`, on by default, is for this alone.

#![warn(missing_docs)]

mod builder;
mod codegen;
#[cfg(test)]
#[path = "../../tests/doors/damage.rs"]
#[allow(dead_code, reason = "shared with the tests of other readers")]
mod damage;
mod error;
mod ir;
mod module;
mod prebuilt;
mod ptx;
mod report;
mod runtime;
mod split;
mod store;
mod toolchain;
mod unit;
mod wrapper;

// The files whose text is part of the keys of kernels name these modules so.
use store::{files, plan};
use toolchain::{arch, process};

pub use builder::{Cubins, PtxBuilder};
pub use error::{Error, MissingTool};
pub use module::KernelModule;
pub use prebuilt::{pack, unpack};
pub use report::{Report, Usage};
pub use toolchain::Toolchain;
