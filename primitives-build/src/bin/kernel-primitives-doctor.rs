//! Prints the tools that kernels are compiled for the GPU with, or what is missing and how to install it, and whether NCCL is there.

use primitives_build::{Error, Toolchain};

fn main() -> Result<(), Error> {
    let tools = Toolchain::find();
    if let Ok(tools) = &tools {
        println!("{tools}");
    }
    match primitives_nccl::load() {
        Ok(nccl) => println!("NCCL:      {}", nccl.version()),
        Err(error) => println!("NCCL:      needed only by programs that call it: {error}"),
    }
    tools.map(|_| ())
}
