//! Compiles the GPU kernels of a crate from Rust to PTX, in its build script.
//!
//! A crate keeps its kernels in an ordinary module. On the host that module is part of the crate; for the GPU
//! one call in `build.rs` compiles the same file a second time:
//!
//! ```no_run
//! fn main() -> Result<(), primitives_build::Error> {
//!     primitives_build::PtxBuilder::new("src/kernels.rs").build()?;
//!     Ok(())
//! }
//! ```
//!
//! # What it does
//!
//! 1. Writes a wrapper crate that declares the module under the path it has on the host, and compiles it with
//!    `core` and its dependencies for rustc's `nvptx64-nvidia-cuda` target, to a single module of LLVM bitcode.
//! 2. Links that with a small runtime module and NVIDIA's libdevice.
//! 3. For each architecture, optimises it and generates PTX, both with LLVM's own tools.
//! 4. Cuts the PTX into one module per kernel, and assembles each with ptxas where there is one; and into the items of each
//!    device function.
//!
//! Arithmetic is IEEE: square roots and divisions are correctly rounded, denormals are kept, and multiplications
//! are not contracted with additions unless [`PtxBuilder::fuse_multiply_add`] asks for it.
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
//! | `report.tsv` | registers, shared memory, stack and spills of each kernel: the [`Report`] |
//!
//! # Looking at kernels
//!
//! Two environment variables are for a look at what became of the kernels, without a change of the build script:
//!
//! | variable | what it does |
//! |---|---|
//! | `KERNEL_PRIMITIVES_DUMP=folder` | writes each kernel's PTX and SASS (`crate::module/kernel.sm_90.sass`), and the resources as `package.tsv`; a relative folder is one of the package's |
//! | `KERNEL_PRIMITIVES_LINE_INFO=1` | keeps a line table, see [`PtxBuilder::line_info`]: Nsight Compute and the dumped SASS show lines of Rust |
//!
//! SASS is what nvdisasm makes of a cubin. In a program, a kernel's `info().ptx(&device)` is its PTX.
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
//! The repository's `scripts/setup-device-toolchain.sh` does all of it on Debian and Ubuntu. Tools are looked for
//! in this order:
//!
//! | tool | places |
//! |---|---|
//! | compiler | `KERNEL_PRIMITIVES_RUSTC`; rustup's nightlies; the distribution's; rustup's other toolchains |
//! | LLVM | `KERNEL_PRIMITIVES_LLVM_BIN` (a folder); the compiler's `llvm-tools`; the system's nearest version; `PATH` |
//! | libdevice, ptxas, nvdisasm | `KERNEL_PRIMITIVES_LIBDEVICE`, `KERNEL_PRIMITIVES_PTXAS`, `KERNEL_PRIMITIVES_NVDISASM` (files); `CUDA_HOME`, `CUDA_PATH`, `/usr/local/cuda`, `PATH`; Python wheels |
//!
//! A compiler without its sources, or newer than every LLVM there, is passed over for the next. [`Toolchain::find`]
//! tells what was found, and so does the program `kernel-primitives-doctor` of this crate.

#![warn(missing_docs)]

mod arch;
mod builder;
mod codegen;
mod dump;
mod error;
mod files;
mod ir;
mod module;
mod process;
mod ptx;
mod report;
mod runtime;
mod toolchain;
mod wrapper;

pub use builder::{Cubins, PtxBuilder};
pub use error::{Error, MissingTool};
pub use module::KernelModule;
pub use report::{Report, Usage};
pub use toolchain::Toolchain;
