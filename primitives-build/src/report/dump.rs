//! What each kernel and device function became, in a folder for people to read.

use std::path::Path;
use std::process::Command;

use crate::Error;
use crate::codegen::{FunctionPtx, Kernel};
use crate::files;
use crate::process;
use crate::report::Report;
use crate::toolchain::Toolchain;

/// Writes each kernel's PTX and SASS and each device function's PTX into `dir`, and the resources of all as
/// `PACKAGE.tsv`; a program with kernels of several packages has one dump. What earlier builds left there stays.
pub(crate) fn write(
    dir: &Path,
    package: &str,
    tools: &Toolchain,
    (kernels, functions): (&[Kernel], &[FunctionPtx]),
    report: &Report,
) -> Result<(), Error> {
    let missing = match (&tools.ptxas, &tools.nvdisasm) {
        (Err(_), _) => Some("ptxas was not found: pip install nvidia-cuda-nvcc, or set KERNEL_PRIMITIVES_PTXAS"),
        (_, Err(_)) => {
            Some("nvdisasm was not found: pip install nvidia-cuda-nvdisasm, or set KERNEL_PRIMITIVES_NVDISASM")
        }
        (Ok(_), Ok(_)) => None,
    };
    if let Some(reason) = missing {
        println!("cargo::warning=no SASS in {}: {reason}", dir.display());
    }
    process::parallel(kernels, |kernel| {
        let (module, name) = kernel.entry.split();
        let base = Path::new(module).join(format!("{name}.{}", kernel.arch.name()));
        files::write(&dir.join(base.with_added_extension("ptx")), &kernel.ptx)?;
        let cubin = report.directory().join(base.with_added_extension("cubin"));
        if let Ok(nvdisasm) = &tools.nvdisasm
            && cubin.is_file()
        {
            let what = format!("disassembling `{}` for {}", kernel.entry.path, kernel.arch.name());
            // The code alone, with source lines where there is a line table.
            let sass = process::run(&what, Command::new(nvdisasm).args(["-c", "-g"]).arg(&cubin))?;
            files::write(&dir.join(base.with_added_extension("sass")), sass.stdout)?;
        }
        Ok(())
    })?;
    for FunctionPtx { function, arch, items } in functions {
        let (module, name) = function.split();
        let text: Vec<&str> = items.iter().map(|item| item.text.as_str()).collect();
        files::write(&dir.join(module).join(format!("{name}.{}.ptx", arch.name())), text.join("\n\n") + "\n")?;
    }
    files::write(&dir.join(format!("{package}.tsv")), report.to_string())
}
