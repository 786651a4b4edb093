//! From rustc's bitcode to one PTX module per kernel and the items of each device function, and from there to cubins.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;
use crate::arch::Arch;
use crate::files;
use crate::ir::{self, Entry, Exports, Function};
use crate::process;
use crate::ptx::{self, Cut, FunctionItem, Module};
use crate::report::Usage;
use crate::runtime;
use crate::toolchain::{Ptxas, Toolchain};

/// libdevice and LLVM ask for these by `__nvvm_reflect`. Square roots and divisions are correctly rounded and
/// denormals kept: the emulator computes so, and results are compared bit by bit.
const REFLECT: &[&str] = &["__CUDA_PREC_SQRT=1", "__CUDA_PREC_DIV=1", "__CUDA_FTZ=0"];

/// What the user chose.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) archs: Vec<Arch>,
    pub(crate) fuse_multiply_add: bool,
    pub(crate) line_info: bool,
}

/// A crate's kernels, linked with the runtime and libdevice.
#[derive(Debug)]
pub(crate) struct Linked {
    pub(crate) crate_name: String,
    pub(crate) exports: Exports,
    pub(crate) bitcode: PathBuf,
    public: PathBuf,
}

/// One kernel's PTX for one architecture.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) entry: Entry,
    pub(crate) arch: Arch,
    pub(crate) ptx: String,
}

impl Kernel {
    /// Whether it is of this crate.
    pub(crate) fn is_of(&self, crate_name: &str) -> bool {
        self.entry.path.split("::").next() == Some(crate_name)
    }
}

/// One device function's PTX for one architecture: items of a module, what each needs before it.
#[derive(Debug)]
pub(crate) struct FunctionPtx {
    pub(crate) function: Function,
    pub(crate) arch: Arch,
    pub(crate) items: Vec<FunctionItem>,
}

/// A kernel assembled.
#[derive(Debug)]
pub(crate) struct Cubin {
    pub(crate) image: Vec<u8>,
    pub(crate) usage: Usage,
}

/// Names the kernels and links what they need.
pub(crate) fn link(tools: &Toolchain, work: &Path, crate_name: &str, bitcode: &Path) -> Result<Linked, Error> {
    let dis =
        process::run("reading the compiler's bitcode", tools.llvm_tool("llvm-dis").arg(bitcode).args(["-o", "-"]))?;
    let (text, exports) = ir::prepare(&String::from_utf8_lossy(&dis.stdout), crate_name)?;
    let kernels = work.join(format!("{crate_name}.kernels.ll"));
    files::write(&kernels, text)?;
    let runtime = work.join("runtime.ll");
    let runtime_ir = runtime::ir();
    files::write(&runtime, &runtime_ir)?;

    let mut public: Vec<&str> = exports.entries.iter().map(|entry| entry.symbol.as_str()).collect();
    public.extend(exports.functions.iter().map(|function| function.symbol.as_str()));
    public.push(ir::CONTROL_SETTER);
    public.extend(ir::public_variables(&runtime_ir));
    let public_file = work.join(format!("{crate_name}.public.txt"));
    files::write(&public_file, public.join("\n") + "\n")?;

    let linked = work.join(format!("{crate_name}.linked.bc"));
    process::run(
        "linking the kernels with the runtime and libdevice",
        tools
            .llvm_tool("llvm-link")
            .arg("--only-needed")
            .args([&kernels, &runtime, &tools.libdevice])
            .arg("-o")
            .arg(&linked),
    )?;
    Ok(Linked { crate_name: crate_name.to_owned(), exports, bitcode: linked, public: public_file })
}

/// Optimises and compiles a crate for one architecture, and cuts the result up.
pub(crate) fn compile(
    tools: &Toolchain,
    options: &Options,
    work: &Path,
    linked: &Linked,
    arch: Arch,
) -> Result<(Vec<Kernel>, Vec<FunctionPtx>), Error> {
    let name = arch.name();
    let base = work.join(format!("{}.{name}", linked.crate_name));
    let ptx_file = base.with_added_extension("ptx");
    let optimised = optimised_bitcode(work, &linked.crate_name, arch);
    let cpu = format!("-mcpu={name}");
    let version = format!("-mattr=+ptx{}", arch.ptx);

    let mut opt = tools.llvm_tool("opt");
    // Without -mcpu, opt would leave out the NVPTX passes, which fold the reflect calls.
    opt.args([&cpu, &version, "-passes=internalize,globaldce,default<O3>"]);
    // A thread's items are an array, and an array is in registers only if every index is a constant: loops of a constant
    // length are unrolled, as `#pragma unroll` does elsewhere, up to this size.
    opt.arg("--unroll-threshold=2000");
    // Where two sums of floats are one instruction, it takes loads of 16 bytes apart for that.
    opt.arg("--vectorize-slp=false");
    let mut list = std::ffi::OsString::from("--internalize-public-api-file=");
    list.push(&linked.public);
    opt.arg(list);
    opt.args(REFLECT.iter().map(|value| format!("--nvvm-reflect-add={value}")));
    opt.arg(&linked.bitcode).arg("-o").arg(&optimised);

    let mut llc = tools.llvm_tool("llc");
    llc.args([&cpu, &version, "-O3", "-nvptx-prec-divf32=2", "-nvptx-prec-sqrtf32=1"])
        .arg(format!("-fp-contract={}", if options.fuse_multiply_add { "fast" } else { "off" }))
        .arg(&optimised)
        .arg("-o")
        .arg(&ptx_file);

    let key_file = base.with_added_extension("key");
    let key = files::key((
        files::read(&linked.bitcode)?,
        files::read(&linked.public)?,
        process::display(&opt),
        process::display(&llc),
        &tools.llvm.version,
    ));
    let fresh = fs::read_to_string(&key_file).is_ok_and(|old| old == key) && ptx_file.is_file() && optimised.is_file();
    if !fresh {
        files::remove(&key_file)?;
        process::run(&format!("optimising for {name}"), &mut opt)?;
        process::run(&format!("generating PTX for {name}"), &mut llc)?;
        files::write(&key_file, key)?;
    }

    let fail = |reason| Error::Ptx { crate_name: linked.crate_name.clone(), arch: name.clone(), reason };
    let module = Module::parse(&ptx::respell(&files::read_text(&ptx_file)?)).map_err(fail)?;
    let failed = |path: &str, symbol: &str, cut| match cut {
        Cut::Unresolved(symbol) => Error::Unresolved { kernel: path.to_owned(), symbol },
        Cut::NoEntry => fail(format!("no entry `{symbol}`")),
    };
    let kernels = linked.exports.entries.iter().map(|entry| {
        let ptx = module.cut(&entry.symbol).map_err(|cut| failed(&entry.path, &entry.symbol, cut))?;
        // The host reads the first line when it loads the kernel.
        Ok(Kernel { entry: entry.clone(), arch, ptx: format!("// layout {}\n{ptx}", entry.layout) })
    });
    let mut cutter = module.functions(linked.exports.functions.iter().map(|function| function.symbol.as_str()));
    let functions = linked.exports.functions.iter().map(|function| {
        let items = cutter.cut(&function.symbol).map_err(|cut| failed(&function.path, &function.symbol, cut))?;
        Ok(FunctionPtx { function: function.clone(), arch, items })
    });
    Ok((kernels.collect::<Result<_, Error>>()?, functions.collect::<Result<_, Error>>()?))
}

/// Where [`compile`] leaves the bitcode that `llc` gets.
pub(crate) fn optimised_bitcode(work: &Path, crate_name: &str, arch: Arch) -> PathBuf {
    work.join(format!("{crate_name}.{}.bc", arch.name()))
}

/// Whether ptxas takes the architecture and its PTX version; its message if it does not.
pub(crate) fn probe(ptxas: &Ptxas, work: &Path, arch: Arch) -> Result<(), Error> {
    let file = work.join(format!("probe.{}.ptx", arch.name()));
    let (major, minor) = (arch.ptx / 10, arch.ptx % 10);
    files::write(&file, format!(".version {major}.{minor}\n.target {}\n.address_size 64\n", arch.name()))?;
    let output = process::output(
        Command::new(&ptxas.program)
            .arg(format!("-arch={}", arch.name()))
            .arg(&file)
            .arg("-o")
            .arg(file.with_extension("cubin")),
    )?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::PtxasTooOld {
        ptxas: ptxas.program.clone(),
        release: ptxas.release.clone(),
        arch: arch.name(),
        message: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// Assembles one kernel for an architecture that its PTX runs on, or takes what an earlier run made of the same text.
pub(crate) fn assemble(
    ptxas: &Ptxas,
    options: &Options,
    work: &Path,
    kernel: &Kernel,
    arch: Arch,
) -> Result<Cubin, Error> {
    let dir = work.join("cubin").join(arch.name());
    files::create_dir(&dir)?;
    let input = dir.join(format!("{}.ptx", kernel.entry.symbol));
    let output = input.with_extension("cubin");
    let memo = input.with_extension("memo");
    let mut command = Command::new(&ptxas.program);
    command.arg(format!("-arch={}", arch.name())).args(["-v", "-O3"]);
    if options.line_info {
        command.arg("-lineinfo");
    }
    command.arg(&input).arg("-o").arg(&output);

    let bounds = kernel.entry.bounds;
    let key = files::key((&kernel.ptx, bounds, process::display(&command), &ptxas.release));
    let known = fs::read_to_string(&memo).ok().and_then(|text| {
        let (old, line) = text.trim_end().split_once('\n')?;
        (old == key).then(|| Usage::from_line(line)).flatten()
    });
    if let (Some(usage), Ok(image)) = (known, fs::read(&output)) {
        return Ok(Cubin { image, usage });
    }
    files::remove(&memo)?;
    files::write(&input, &kernel.ptx)?;
    let what = format!("assembling `{}` for {}", kernel.entry.path, arch.name());
    let result = process::run(&what, &mut command)?;
    let mut text = String::from_utf8_lossy(&result.stderr).into_owned();
    text.push_str(&String::from_utf8_lossy(&result.stdout));
    let usage = Usage {
        kernel: kernel.entry.path.clone(),
        arch: arch.sm,
        ptx: kernel.arch.sm,
        threads: bounds.block_threads(),
        dynamic: bounds.shared,
        ..Usage::default()
    };
    let usage = usage.with(&text).ok_or_else(|| Error::Tool {
        what: format!("{what}: reading the report"),
        command: process::display(&command),
        status: "no resource usage in it".to_owned(),
        stderr: text,
    })?;
    let image = files::read(&output)?;
    files::write(&memo, format!("{key}\n{}\n", usage.to_line()))?;
    Ok(Cubin { image, usage })
}
