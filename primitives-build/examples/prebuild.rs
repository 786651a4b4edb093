//! Compiles the kernels of the library for `scripts/release.sh`, which says the variables of a build script: writes the archive, before
//! its compression, to the file that the argument names.

use primitives_build::{Cubins, PtxBuilder, pack};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let archive = std::env::args_os().nth(1).ok_or("usage: prebuild ARCHIVE")?;
    // A cubin fits one architecture; the driver compiles PTX for any later one, and keeps the result.
    let builder = PtxBuilder::new("src/kernels/mod.rs").module("src/algorithms/mod.rs");
    let report = builder.cubins(Cubins::Never).build()?;
    std::fs::write(archive, pack(report.directory())?)?;
    Ok(())
}
