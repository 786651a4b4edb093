//! From rustc's bitcode to PTX and cubins: one module per kernel and per device function, each compiled by itself.
//!
//! rustc optimises nothing: it works on one core, and on all kernels at once. Each kernel's module is optimised in the way of rustc's
//! link-time optimisation first, then with the runtime and libdevice for each architecture.

use std::collections::BTreeMap;
use std::fs;
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;
use crate::arch::{self, Arch};
use crate::files;
use crate::ir::{self, Entry, Function};
use crate::process;
use crate::ptx::{self, Cut, FunctionItem, Module};
use crate::report::Usage;
use crate::runtime;
use crate::split::{self, Stage};
use crate::store::{Key, Store};
use crate::toolchain::{Ptxas, Toolchain};
use crate::unit::{Body, Export, Planned, Unit};

/// libdevice and LLVM ask for these by `__nvvm_reflect`. Square roots and divisions are correctly rounded and
/// denormals kept: the emulator computes so, and results are compared bit by bit.
const REFLECT: &[&str] = &["__CUDA_PREC_SQRT=1", "__CUDA_PREC_DIV=1", "__CUDA_FTZ=0"];

/// What the user chose.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) archs: Vec<Arch>,
    pub(crate) fuse_multiply_add: bool,
    pub(crate) line_info: bool,
    pub(crate) keep_ir: bool,
}

/// One kernel's PTX for one architecture.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) entry: Entry,
    pub(crate) arch: Arch,
    pub(crate) ptx: String,
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

/// What became of units.
#[derive(Debug, Default)]
pub(crate) struct Code {
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) functions: Vec<FunctionPtx>,
    pub(crate) cubins: Vec<Cubin>,
    /// Of the units that were made of IR.
    pub(crate) planned: Vec<Planned>,
    /// If it is kept: a file's name and the text in it.
    pub(crate) ir: Vec<(PathBuf, Vec<u8>)>,
}

impl Code {
    pub(crate) fn append(&mut self, mut other: Self) {
        self.kernels.append(&mut other.kernels);
        self.functions.append(&mut other.functions);
        self.cubins.append(&mut other.cubins);
        self.planned.append(&mut other.planned);
        self.ir.append(&mut other.ir);
    }
}

/// Compiles units.
#[derive(Debug)]
pub(crate) struct Compiler<'a> {
    pub(crate) tools: &'a Toolchain,
    pub(crate) options: &'a Options,
    pub(crate) store: &'a Store,
    /// For files that the tools read and write.
    pub(crate) work: &'a Path,
    /// The assembler, and the architectures of the report.
    pub(crate) assembler: Option<(&'a Ptxas, Vec<Arch>)>,
    /// The crate of which the report has more architectures than it is built for.
    pub(crate) library: String,
    runtime: String,
    libdevice: Key,
}

impl<'a> Compiler<'a> {
    pub(crate) fn new(
        tools: &'a Toolchain,
        options: &'a Options,
        store: &'a Store,
        work: &'a Path,
        assembler: Option<(&'a Ptxas, Vec<Arch>)>,
        library: String,
    ) -> Result<Self, Error> {
        let (runtime, libdevice) = (runtime::ir(), Key::of(files::read(&tools.libdevice)?));
        files::write(&work.join(RUNTIME), &runtime)?;
        // Of a build that failed or was ended; until now, its files could be looked at.
        let _ = fs::remove_dir_all(work.join(UNITS));
        Ok(Self { tools, options, store, work, assembler, library, runtime, libdevice })
    }

    /// Compiles one unit for its architectures, and assembles it for those of the report, unless an earlier build did.
    pub(crate) fn compile(&self, unit: &Unit) -> Result<Code, Error> {
        let folder = self.work.join(UNITS).join(&unit.crate_name).join(unit.symbol());
        let mut code = Code::default();
        match &unit.body {
            Body::Ptx(texts) => {
                for (&arch, text) in unit.archs.iter().zip(texts) {
                    self.add(unit, arch, text, &mut code)?;
                }
            }
            Body::Ir(module) => {
                let ir = module.cut(&unit.export.roots(), Stage::Raw);
                self.compile_ir(unit, &ir, &folder, &mut code)?;
            }
        }
        if let (Some((ptxas, targets)), Export::Kernel(_)) = (&self.assembler, &unit.export) {
            for &target in targets {
                let built = arch::runs_on(&unit.archs, target);
                let Some(kernel) = code.kernels.iter().find(|kernel| Some(kernel.arch) == built) else { continue };
                if target == kernel.arch || unit.crate_name == self.library {
                    let cubin = self.assemble(ptxas, &folder, kernel, target)?;
                    code.cubins.push(cubin);
                }
            }
        }
        // What stays is removed by the next build.
        let _ = fs::remove_dir_all(&folder);
        Ok(code)
    }

    fn compile_ir(&self, unit: &Unit, ir: &str, folder: &Path, code: &mut Code) -> Result<(), Error> {
        let mut linked = None;
        let content = Key::of(ir);
        let keys: Vec<_> = unit.archs.iter().map(|&arch| (arch, self.ptx_key(&unit.export, content, arch))).collect();
        for &(arch, key) in &keys {
            let known = if self.options.keep_ir { None } else { self.store.get(key) };
            let text = match known.and_then(|bytes| String::from_utf8(bytes).ok()) {
                Some(text) => text,
                None => {
                    let linked = match &linked {
                        Some(linked) => linked,
                        None => linked.insert(self.link(unit, ir, folder, code)?),
                    };
                    let text = self.trimmed(unit, arch, self.generate(unit, folder, linked, arch, code)?)?;
                    self.store.put(key, text.as_bytes());
                    text
                }
            };
            self.add(unit, arch, &text, code)?;
        }
        code.planned.push(Planned { crate_name: unit.crate_name.clone(), export: unit.export.clone(), keys });
        Ok(())
    }

    /// Where the store keeps what this code and its tools make of something.
    fn key(&self, of: impl Hash) -> Key {
        Key::of((STEPS, &self.runtime, self.libdevice, self.tools.llvm.identity(), of))
    }

    /// Where the store keeps a unit's PTX.
    fn ptx_key(&self, export: &Export, ir: Key, arch: Arch) -> Key {
        self.key(("ptx", ir, simplify_flags(export), self.opt_flags(export, arch), self.llc_flags(arch)))
    }

    /// Where the store says what the units of a crate are, of this content and for an architecture, and which PTX is theirs.
    fn plan_key(&self, content: Key, arch: Arch) -> Key {
        self.key(("plan", content, self.llc_flags(arch)))
    }

    /// The units of a crate of this content, if an earlier build made the PTX of all of them.
    pub(crate) fn known(&self, crate_name: &str, archs: &[Arch], content: Key) -> Option<Vec<Unit>> {
        if self.options.keep_ir {
            return None;
        }
        let text_of = |key| String::from_utf8(self.store.get(key)?).ok();
        let mut units: Option<Vec<Unit>> = None;
        for &arch in archs {
            let plan = text_of(self.plan_key(content, arch))?;
            let planned: Vec<(Export, Key)> = plan.lines().map(Export::from_line).collect::<Option<_>>()?;
            let units = units.get_or_insert_with(|| {
                let unit = |export: &Export| Unit {
                    crate_name: crate_name.to_owned(),
                    export: export.clone(),
                    archs: archs.to_vec(),
                    body: Body::Ptx(Vec::new()),
                };
                planned.iter().map(|(export, _)| unit(export)).collect()
            });
            if units.len() != planned.len() {
                return None;
            }
            for (unit, (export, key)) in units.iter_mut().zip(planned) {
                let Body::Ptx(texts) = &mut unit.body else { return None };
                if unit.export != export {
                    return None;
                }
                texts.push(text_of(key)?);
            }
        }
        units
    }

    /// Remembers the units of a crate of this content for [`known`](Self::known).
    pub(crate) fn remember(&self, content: Key, units: &[Planned]) {
        let mut plans: BTreeMap<Arch, String> = BTreeMap::new();
        for Planned { export, keys, .. } in units {
            for &(arch, key) in keys {
                plans.entry(arch).or_default().push_str(&export.to_line(key));
            }
        }
        for (arch, lines) in plans {
            self.store.put(self.plan_key(content, arch), lines.as_bytes());
        }
    }

    /// The unit with its functions inlined and its loops of few rounds unrolled, which is the same for each architecture.
    fn simplify(&self, unit: &Unit, ir: &str, folder: &Path) -> Result<String, Error> {
        let (raw, simple) = (folder.join("raw.ll"), folder.join("simple.ll"));
        files::write(&raw, ir)?;
        let mut opt = self.tools.llvm_tool("opt");
        opt.args(simplify_flags(&unit.export)).arg("-S").arg(&raw).arg("-o").arg(&simple);
        process::run(&format!("simplifying {unit}"), &mut opt)?;
        // The architecture is that of the round to come.
        let simple = ir::without_target(&files::read_text(&simple)?);
        Ok(split::Module::parse(simple).cut(&unit.export.roots(), Stage::Simplified))
    }

    /// The unit with what it needs of the runtime and libdevice.
    fn link(&self, unit: &Unit, ir: &str, folder: &Path, code: &mut Code) -> Result<PathBuf, Error> {
        let (kernels, linked) = (folder.join("unit.ll"), folder.join("linked.bc"));
        files::write(&kernels, self.simplify(unit, ir, folder)?)?;
        let mut link = self.tools.llvm_tool("llvm-link");
        link.arg("--only-needed").args([&kernels, &self.work.join(RUNTIME), &self.tools.libdevice]);
        process::run(&format!("linking {unit} with the runtime and libdevice"), link.arg("-o").arg(&linked))?;
        self.keep_ir(unit, &linked, "linked.ll", code)?;
        Ok(linked)
    }

    fn generate(
        &self,
        unit: &Unit,
        folder: &Path,
        linked: &Path,
        arch: Arch,
        code: &mut Code,
    ) -> Result<String, Error> {
        let name = arch.name();
        let (optimised, ptx) = (folder.join(format!("{name}.bc")), folder.join(format!("{name}.llc.ptx")));
        let mut opt = self.tools.llvm_tool("opt");
        opt.args(self.opt_flags(&unit.export, arch)).arg(linked).arg("-o").arg(&optimised);
        process::run(&format!("optimising {unit} for {name}"), &mut opt)?;
        self.keep_ir(unit, &optimised, &format!("{name}.ll"), code)?;
        let mut llc = self.tools.llvm_tool("llc");
        llc.args(self.llc_flags(arch)).arg(&optimised).arg("-o").arg(&ptx);
        process::run(&format!("generating PTX of {unit} for {name}"), &mut llc)?;
        files::read_text(&ptx)
    }

    fn opt_flags(&self, export: &Export, arch: Arch) -> Vec<String> {
        let mut public = export.roots();
        public.extend(ir::public_variables(&self.runtime));
        let mut flags = vec![
            // Without -mcpu, opt would leave out the NVPTX passes, which fold the reflect calls.
            format!("-mcpu={}", arch.name()),
            format!("-mattr=+ptx{}", arch.ptx),
            "-passes=internalize,globaldce,default<O3>".to_owned(),
            // A thread's items are an array, and an array is in registers only if every index is a constant: loops of a constant
            // length are unrolled, as `#pragma unroll` does elsewhere, up to this size.
            "--unroll-threshold=2000".to_owned(),
            NO_SLP.to_owned(),
            format!("--internalize-public-api-list={}", public.join(",")),
        ];
        flags.extend(REFLECT.iter().map(|value| format!("--nvvm-reflect-add={value}")));
        flags
    }

    fn llc_flags(&self, arch: Arch) -> Vec<String> {
        let contract = if self.options.fuse_multiply_add { "fast" } else { "off" };
        vec![
            format!("-mcpu={}", arch.name()),
            format!("-mattr=+ptx{}", arch.ptx),
            "-O3".to_owned(),
            "-nvptx-prec-divf32=2".to_owned(),
            "-nvptx-prec-sqrtf32=1".to_owned(),
            format!("-fp-contract={contract}"),
        ]
    }

    /// What the store has of a unit's PTX: of a kernel, what it needs of what `llc` wrote, so that builds that find it there need not look
    /// at it; of a function, all.
    fn trimmed(&self, unit: &Unit, arch: Arch, text: String) -> Result<String, Error> {
        let Export::Kernel(entry) = &unit.export else { return Ok(text) };
        let ptx = self.parsed(unit, arch, &text)?.cut(&entry.symbol).map_err(|cut| self.uncut(unit, arch, cut))?;
        if arch.sm < 90 {
            return Ok(ptx);
        }
        ptx::with_overlap(&ptx).ok_or_else(|| self.unread(unit, arch, format!("no body of `{}`", entry.symbol)))
    }

    /// Adds the kernel or the function that a text of the store is of.
    fn add(&self, unit: &Unit, arch: Arch, text: &str, code: &mut Code) -> Result<(), Error> {
        match &unit.export {
            Export::Kernel(entry) => {
                // The host reads the first line when it loads the kernel.
                let ptx = format!("// layout {}\n{text}", entry.layout);
                code.kernels.push(Kernel { entry: entry.clone(), arch, ptx });
            }
            Export::Function(function) => {
                let module = self.parsed(unit, arch, text)?;
                let items = module.functions([unit.symbol()].into_iter()).cut(unit.symbol());
                let items = items.map_err(|cut| self.uncut(unit, arch, cut))?;
                code.functions.push(FunctionPtx { function: function.clone(), arch, items });
            }
        }
        Ok(())
    }

    fn parsed(&self, unit: &Unit, arch: Arch, text: &str) -> Result<Module, Error> {
        Module::parse(&ptx::respell(text)).map_err(|reason| self.unread(unit, arch, reason))
    }

    fn uncut(&self, unit: &Unit, arch: Arch, cut: Cut) -> Error {
        match cut {
            Cut::Unresolved(symbol) => Error::Unresolved { kernel: unit.path().to_owned(), symbol },
            Cut::NoEntry => self.unread(unit, arch, format!("no entry `{}`", unit.symbol())),
        }
    }

    fn unread(&self, unit: &Unit, arch: Arch, reason: String) -> Error {
        Error::Ptx { crate_name: unit.crate_name.clone(), arch: arch.name(), reason }
    }

    fn keep_ir(&self, unit: &Unit, bitcode: &Path, name: &str, code: &mut Code) -> Result<(), Error> {
        if self.options.keep_ir {
            let mut dis = self.tools.llvm_tool("llvm-dis");
            let text = process::run("reading bitcode", dis.arg(bitcode).args(["-o", "-"]))?;
            let (module, function) = unit.path().rsplit_once("::").expect("checked when it was named");
            code.ir.push((Path::new("ir").join(module).join(format!("{function}.{name}")), text.stdout));
        }
        Ok(())
    }

    /// Assembles one kernel for an architecture that its PTX runs on, unless an earlier build did.
    fn assemble(&self, ptxas: &Ptxas, folder: &Path, kernel: &Kernel, arch: Arch) -> Result<Cubin, Error> {
        let bounds = kernel.entry.bounds;
        let mut flags = vec![format!("-arch={}", arch.name()), "-v".to_owned(), "-O3".to_owned()];
        if self.options.line_info {
            flags.push("-lineinfo".to_owned());
        }
        let key = Key::of(("cubin", &kernel.ptx, bounds, &kernel.entry.path, &flags, &ptxas.version));
        let known = self.store.get(key).and_then(|content| {
            let end = content.iter().position(|&byte| byte == b'\n')?;
            let usage = Usage::from_line(std::str::from_utf8(&content[..end]).ok()?)?;
            Some(Cubin { image: content[end + 1..].to_vec(), usage })
        });
        if let Some(cubin) = known {
            return Ok(cubin);
        }

        let name = arch.name();
        let (input, output) = (folder.join(format!("{name}.ptx")), folder.join(format!("{name}.cubin")));
        files::write(&input, &kernel.ptx)?;
        let mut command = Command::new(&ptxas.program);
        command.args(&flags).arg(&input).arg("-o").arg(&output);
        let what = format!("assembling `{}` for {name}", kernel.entry.path);
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
        self.store.put(key, &[usage.to_line().as_bytes(), b"\n", &image].concat());
        Ok(Cubin { image, usage })
    }
}

/// The code between a unit's text and its PTX: of another version of it, no result is used.
const STEPS: [&str; 4] =
    [include_str!("codegen.rs"), include_str!("split.rs"), include_str!("ir.rs"), include_str!("ptx/mod.rs")];

/// What is to be inlined is inlined first, so that each loop and array is looked at once, in the kernel itself: bottom up, the same code
/// would be optimised again in each caller, and arrays would stay in memory that a second round is needed for.
fn simplify_flags(export: &Export) -> Vec<String> {
    vec![
        // Without -mcpu, opt would know nothing of the target. No architecture that there is PTX for has less.
        "-mcpu=sm_70".to_owned(),
        format!("-passes=internalize,globaldce,{UNROLL},always-inline,globaldce,default<O3>"),
        NO_SLP.to_owned(),
        format!("--internalize-public-api-list={}", export.roots().join(",")),
    ]
}

/// Loops over a thread's items are unrolled before functions are inlined: what is done to a loop takes time for all of its function.
const UNROLL: &str = "function(sroa,early-cse,simplifycfg,loop(loop-rotate,indvars,loop-unroll-full))";

/// No vectors of a thread's values: where two sums of floats are one instruction, loads of 16 bytes would be taken apart for that. And it
/// takes more time than all else.
const NO_SLP: &str = "--vectorize-slp=false";

/// The folder of units that are being compiled.
const UNITS: &str = "units";

/// The runtime module's file.
const RUNTIME: &str = "runtime.ll";

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
