//! Prints the tools that kernels are compiled for the GPU with, or what is missing and how to install it.

fn main() -> Result<(), primitives_build::Error> {
    println!("{}", primitives_build::Toolchain::find()?);
    Ok(())
}
