//! What can go wrong, each with the way out.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why the kernels could not be built.
///
/// `Debug` prints what `Display` prints, so that a build script whose `main` returns this error shows the
/// message rather than a structure.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A variable that cargo sets for build scripts is missing.
    #[error("the environment has no {name}: `PtxBuilder` must run in a build script, started by cargo")]
    NotABuildScript {
        /// The missing variable.
        name: &'static str,
    },

    /// A file is no archive of compiled kernels, or is damaged.
    #[error("{} holds no compiled kernels that this version reads: {reason}", path.display())]
    Archive {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// The kernel module's path or name cannot be used.
    #[error("kernel module {}: {reason}", path.display())]
    Module {
        /// The path as given.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// The `kernel-primitives` crate was not found.
    #[error(
        "cannot find the sources of the `kernel-primitives` crate: DEP_KERNEL_PRIMITIVES_MANIFEST_DIR is not set\n\
         \x20 cargo sets it for packages that depend on `kernel-primitives` directly: add it to [dependencies],\n\
         \x20 or name the folder with `PtxBuilder::facade(path)`"
    )]
    FacadeNotFound,

    /// An architecture that the builder does not know.
    #[error("unknown GPU architecture `{given}`\n  known: {known}")]
    UnknownArch {
        /// The value as given.
        given: String,
        /// The architectures that exist.
        known: String,
    },

    /// No compiler, or no LLVM tools that fit it.
    #[error("{0}")]
    DeviceCompiler(MissingTool),

    /// NVIDIA's device math library is missing.
    #[error("{0}")]
    Libdevice(MissingTool),

    /// ptxas is missing, and cubins were required.
    #[error("{0}")]
    Ptxas(MissingTool),

    /// ptxas is there but cannot assemble for an architecture, and cubins were required.
    #[error("{} (CUDA {release}) cannot assemble for {arch}:\n{}\n  install a newer CUDA toolkit, or leave {arch} out", ptxas.display(), indent(message))]
    PtxasTooOld {
        /// The assembler in use.
        ptxas: PathBuf,
        /// Its CUDA release.
        release: String,
        /// The architecture it refuses.
        arch: String,
        /// What it said.
        message: String,
    },

    /// The kernels do not compile for the GPU.
    #[error("the kernels of `{crate_name}` do not compile for the GPU:\n\n{}\n\ncommand: {command}", stderr.trim_end())]
    Compile {
        /// The crate whose kernels these are.
        crate_name: String,
        /// The inner cargo call.
        command: String,
        /// Its messages.
        stderr: String,
    },

    /// A tool ended with a failure.
    #[error("{what} failed ({status})\n  command: {command}\n{}", indent(stderr.trim_end()))]
    Tool {
        /// What the tool was to do.
        what: String,
        /// The command line.
        command: String,
        /// How it ended.
        status: String,
        /// What it wrote.
        stderr: String,
    },

    /// A tool could not be started.
    #[error("cannot run {}: {source}", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// The cause.
        source: io::Error,
    },

    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// `read`, `write` and so on.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },

    /// The name of a kernel or device function cannot be a PTX symbol.
    #[error("`{name}`: {reason}")]
    KernelName {
        /// The name as it stands in the compiled module.
        name: String,
        /// What is wrong with it.
        reason: String,
    },

    /// A kernel or device function calls something that has no definition on the device.
    #[error(
        "`{kernel}` calls `{symbol}`, which has no definition on the GPU\n\
         \x20 the compiler puts such calls in for comparing memory, 128-bit arithmetic and the like; rewrite that part"
    )]
    Unresolved {
        /// The kernel or device function.
        kernel: String,
        /// The symbol that nothing defines.
        symbol: String,
    },

    /// The PTX that LLVM wrote was not understood.
    #[error("cannot split the PTX of `{crate_name}` for {arch}: {reason}")]
    Ptx {
        /// The crate whose kernels these are.
        crate_name: String,
        /// The architecture.
        arch: String,
        /// What was found.
        reason: String,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}

/// A tool that was not found: what, where it was looked for, and how to install it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingTool {
    pub(crate) what: &'static str,
    pub(crate) tried: Vec<String>,
    pub(crate) install: &'static str,
}

impl fmt::Display for MissingTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.what)?;
        writeln!(f, "looked at:")?;
        for line in &self.tried {
            writeln!(f, "  - {line}")?;
        }
        write!(f, "{}", self.install)
    }
}

pub(crate) const INSTALL_COMPILER: &str = "\
to install it with rustup:
    rustup toolchain install nightly --component rust-src --component llvm-tools
or on Debian and Ubuntu, beside rustup:
    apt-get install rustc-web rust-web-src llvm-22
or run scripts/setup-device-toolchain.sh of the kernel-primitives repository
tools in other places are named by KERNEL_PRIMITIVES_RUSTC and KERNEL_PRIMITIVES_LLVM_BIN";

pub(crate) const INSTALL_LIBDEVICE: &str = "\
it comes with the CUDA toolkit (set CUDA_HOME if it is not in /usr/local/cuda), or as a Python wheel:
    pip install nvidia-nvvm==13.0.88
or run scripts/setup-device-toolchain.sh of the kernel-primitives repository
a file in another place is named by KERNEL_PRIMITIVES_LIBDEVICE";

pub(crate) const INSTALL_PTXAS: &str = "\
it comes with the CUDA toolkit (set CUDA_HOME if it is not in /usr/local/cuda), or as a Python wheel:
    pip install nvidia-cuda-nvcc==13.0.88
or run scripts/setup-device-toolchain.sh of the kernel-primitives repository
a program in another place is named by KERNEL_PRIMITIVES_PTXAS";

pub(crate) const INSTALL_NVDISASM: &str = "\
it comes with the CUDA toolkit (set CUDA_HOME if it is not in /usr/local/cuda), or as a Python wheel:
    pip install nvidia-cuda-nvdisasm
or run scripts/setup-device-toolchain.sh of the kernel-primitives repository
a program in another place is named by KERNEL_PRIMITIVES_NVDISASM";

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_prints_the_message() {
        let error = Error::FacadeNotFound;
        assert_eq!(format!("{error:?}"), error.to_string());
    }

    #[test]
    fn missing_compiler_says_what_where_and_how() {
        let error = Error::DeviceCompiler(MissingTool {
            what: "no Rust compiler for the GPU was found",
            tried: vec!["/opt/rustc: no such file".into()],
            install: INSTALL_COMPILER,
        });
        let text = error.to_string();
        for part in [
            "no Rust compiler",
            "  - /opt/rustc: no such file",
            "rustup toolchain install nightly --component rust-src --component llvm-tools",
            "apt-get install rustc-web rust-web-src llvm-22",
            "KERNEL_PRIMITIVES_RUSTC",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }

    #[test]
    fn missing_cuda_parts_name_their_wheels() {
        for (install, wheel) in
            [(INSTALL_LIBDEVICE, "nvidia-nvvm==13.0.88"), (INSTALL_PTXAS, "nvidia-cuda-nvcc==13.0.88")]
        {
            assert!(install.contains(wheel) && install.contains("setup-device-toolchain.sh"));
        }
    }
}
