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
    const DEVELOPMENT: [(&str, &str); 15] = [
        ("algorithms", "tests/algorithms/kernels.rs"),
        ("suite", "tests/suite/kernels.rs"),
        ("collectives", "tests/collectives/families.rs"),
        ("sorts", "tests/sorts/kernels.rs"),
        ("functions", "tests/functions/kernels.rs"),
        ("net", "tests/net/kernels.rs"),
        ("net", "tests/net/collectives.rs"),
        ("sparse", "tests/sparse/kernels.rs"),
        ("fourier", "tests/fourier/kernels.rs"),
        ("split", "tests/split/kernels.rs"),
        ("gpu", "benches/gpu/kernels.rs"),
        ("quickstart", "examples/quickstart/kernels.rs"),
        ("lorenz", "examples/lorenz/kernels.rs"),
        ("shortest_paths", "examples/shortest_paths/kernels.rs"),
        ("spectrogram", "examples/spectrogram/kernels.rs"),
    ];

    /// The architectures that most kernels of tests and benchmarks are built for, of those that the library's are: `90`, or `80,90`; or
    /// `none`, and they run on the emulator alone.
    const TEST_ARCHS: &str = "KERNEL_PRIMITIVES_TEST_ARCHS";

    /// Compiles the kernels although the package of compiled ones has them: `1`.
    const FROM_SOURCE: &str = "KERNEL_PRIMITIVES_FROM_SOURCE";

    /// Where the package of compiled kernels has them; a checkout of the repository has none.
    const ARCHIVE: &str = "DEP_KERNEL_PRIMITIVES_PTX_ARCHIVE";

    pub(super) fn build() -> Result<(), Error> {
        println!("cargo::rerun-if-env-changed={FROM_SOURCE}");
        let from_source = std::env::var_os(FROM_SOURCE).is_some_and(|value| !value.is_empty() && value != "0");
        match std::env::var_os(ARCHIVE) {
            Some(archive) if !from_source => primitives_build::unpack(archive.as_ref()),
            _ => compile(),
        }
    }

    fn compile() -> Result<(), Error> {
        println!("cargo::rerun-if-env-changed={TEST_ARCHS}");
        let list = std::env::var(TEST_ARCHS).unwrap_or_default();
        let are_built = list.trim() != "none";
        let test_archs = if are_built { test_archs(&list) } else { Vec::new() };
        let mut builder = PtxBuilder::new("src/kernels/mod.rs").module("src/algorithms/mod.rs");
        if option_env!("CARGO_PRIMARY_PACKAGE").is_some() {
            for (crate_name, path) in DEVELOPMENT {
                if std::path::Path::new(path).exists() {
                    let mut module = KernelModule::new(path).crate_name(crate_name);
                    // The others' PTX is asserted on.
                    if ["algorithms", "collectives", "sorts", "net", "sparse", "fourier", "gpu"].contains(&crate_name) {
                        if !are_built {
                            continue;
                        }
                        module = module.archs(test_archs.clone());
                    }
                    builder = builder.module(module);
                }
            }
        }
        builder.build()?;
        Ok(())
    }

    /// Reads a list as the builder reads that of `KERNEL_PRIMITIVES_ARCHS`: `75,90`; `sm_90` is taken as well.
    fn test_archs(list: &str) -> Vec<u32> {
        let number = |arch: &str| match arch.strip_prefix("sm_").unwrap_or(arch).parse::<u32>() {
            Ok(number) => number,
            Err(_) => panic!("{TEST_ARCHS} has `{arch}`, which is no architecture such as 90"),
        };
        list.split([',', ' ', ';']).filter(|arch| !arch.is_empty()).map(number).collect()
    }
}
