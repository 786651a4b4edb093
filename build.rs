//! Builds the kernels to PTX when the `cuda` feature is on, and tells dependents' build scripts where this crate lies.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::metadata=manifest_dir={}", std::env::var("CARGO_MANIFEST_DIR")?);
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "cuda")]
    ptx::build()?;
    Ok(())
}

#[cfg(feature = "cuda")]
mod ptx {
    use primitives_build::{Error, KernelModule, PtxBuilder};

    /// Kernels of tests, examples and benchmarks, by the crate name that cargo gives the target. They are built in this
    /// package's own development only: a dependent has no use for them, and a published crate does not contain them.
    const DEVELOPMENT: [(&str, &str); 8] = [
        ("algorithms", "tests/algorithms/kernels.rs"),
        ("suite", "tests/suite/kernels.rs"),
        ("collectives", "tests/collectives/kernels.rs"),
        ("sorts", "tests/sorts/kernels.rs"),
        ("functions", "tests/functions/kernels.rs"),
        ("gpu", "benches/gpu/kernels.rs"),
        ("quickstart", "examples/quickstart/kernels.rs"),
        ("lorenz", "examples/lorenz/kernels.rs"),
    ];

    pub(super) fn build() -> Result<(), Error> {
        let mut builder = PtxBuilder::new("src/kernels/mod.rs");
        if option_env!("CARGO_PRIMARY_PACKAGE").is_some() {
            for (crate_name, path) in DEVELOPMENT {
                if std::path::Path::new(path).exists() {
                    builder = builder.module(KernelModule::new(path).crate_name(crate_name));
                }
            }
        }
        builder.build()?;
        Ok(())
    }
}
