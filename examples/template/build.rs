//! Compiles the kernel module to PTX when the feature `cuda` is on.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "cuda")]
    primitives_build::PtxBuilder::new("src/kernels.rs").build()?;
    Ok(())
}
