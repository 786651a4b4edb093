//! A library in the place of NCCL, compiled with the C compiler that rustc links with.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles the library with these options, and makes it the one to open. Called once a process, before other threads read the environment.
pub(crate) fn compile(options: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/nccl.c");
    // Of this process alone: another run of this test may have the same library open.
    let library = format!("{}_{}_libnccl.so", env!("CARGO_CRATE_NAME"), std::process::id());
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(library);
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let arguments = ["-shared", "-fPIC", "-O1", "-o"];
    let mut command = Command::new(compiler);
    let status = command.args(arguments).args([&library, &source]).args(options).status().expect("a C compiler");
    assert!(status.success());
    // SAFETY: the callers see to it that no other thread reads the environment now.
    unsafe { std::env::set_var(primitives_nccl::LIBRARY_VARIABLE, &library) };
    library
}
