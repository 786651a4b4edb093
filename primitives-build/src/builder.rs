//! [`PtxBuilder`]: from kernel modules to what the host crate includes.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::Error;
use crate::arch::{self, Arch};
use crate::codegen::{self, Code, Compiler, Cubin, FunctionPtx, Kernel, Options};
use crate::files::{self, OutputDir};
use crate::ir::{Entry, Function};
use crate::module::{self, KernelModule, Package, Source};
use crate::plan::{Folders, Plans};
use crate::process;
use crate::report::progress::Progress;
use crate::report::{Report, dump};
use crate::store::work::{self, Work};
use crate::store::{Key, Store};
use crate::toolchain::{self, Ptxas, Toolchain};
use crate::unit;
use crate::wrapper::{Compiled, Inner};

const ARCHS: &str = "KERNEL_PRIMITIVES_ARCHS";
const REPORT_ARCHS: &str = "KERNEL_PRIMITIVES_REPORT_ARCHS";
const DUMP: &str = "KERNEL_PRIMITIVES_DUMP";
const LINE_INFO: &str = "KERNEL_PRIMITIVES_LINE_INFO";
pub(crate) const OUTPUT: &str = "KERNEL_PRIMITIVES_PTX";
const FACADE_DIR: &str = "DEP_KERNEL_PRIMITIVES_MANIFEST_DIR";
pub(crate) const FACADE_PACKAGE: &str = "kernel-primitives";
const FEATURES: &str = "CARGO_CFG_FEATURE";

/// Whether kernels are assembled to cubins beside their PTX.
///
/// A cubin is loaded at once where its architecture fits; PTX is compiled by the driver at the first launch,
/// and kept in the driver's cache. Assembling also yields the resource [`Report`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cubins {
    /// Where ptxas is found and knows the architecture.
    #[default]
    Auto,
    /// PTX only.
    Never,
    /// A missing ptxas, or one that does not know an architecture, is an error.
    Require,
}

/// Compiles kernel modules to PTX in a build script.
///
/// See the [crate's documentation](crate) for what it needs and what it leaves behind.
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `build`"]
pub struct PtxBuilder {
    modules: Vec<KernelModule>,
    facade: Option<PathBuf>,
    dependencies: Vec<(String, String)>,
    archs: Vec<u32>,
    report_archs: Vec<u32>,
    fuse_multiply_add: bool,
    line_info: bool,
    keep_ir: bool,
    cubins: Cubins,
    dump: Option<PathBuf>,
}

impl PtxBuilder {
    /// A builder for the kernels in one file, such as `src/kernels.rs`, and the modules below it.
    pub fn new(module: impl Into<KernelModule>) -> Self {
        Self {
            modules: vec![module.into()],
            facade: None,
            dependencies: Vec::new(),
            archs: Vec::new(),
            report_archs: Vec::new(),
            fuse_multiply_add: false,
            line_info: false,
            keep_ir: false,
            cubins: Cubins::Auto,
            dump: None,
        }
    }

    /// Adds another module, of the same crate or, say, of an example.
    pub fn module(mut self, module: impl Into<KernelModule>) -> Self {
        self.modules.push(module.into());
        self
    }

    /// The folder of the `kernel-primitives` crate, in place of the one that cargo tells.
    pub fn facade(mut self, path: impl Into<PathBuf>) -> Self {
        self.facade = Some(path.into());
        self
    }

    /// Adds a dependency that the kernels use, as a line of `Cargo.toml`: its name, and its value in TOML.
    ///
    /// The crate must be `no_std`. A relative path would count from the build folder, so give it absolute.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), primitives_build::Error> {
    /// primitives_build::PtxBuilder::new("src/kernels.rs")
    ///     .dependency("libm", r#"{ version = "0.2", default-features = false }"#)
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn dependency(mut self, name: impl Into<String>, toml_value: impl Into<String>) -> Self {
        self.dependencies.push((name.into(), toml_value.into()));
        self
    }

    /// Adds an architecture: the compute capability times ten, so 90 for `sm_90`.
    ///
    /// With none added they are 75, 80, 90 and 100. The environment variable `KERNEL_PRIMITIVES_ARCHS`
    /// (`75,90`) goes before both.
    pub fn arch(mut self, arch: u32) -> Self {
        self.archs.push(arch);
        self
    }

    /// Adds several architectures.
    pub fn archs(mut self, archs: impl IntoIterator<Item = u32>) -> Self {
        self.archs.extend(archs);
        self
    }

    /// Adds architectures to the [`Report`]: of the library's kernels, the PTX that runs there, of the newest architecture up to
    /// each, is assembled for them too, so that the report tells whether the kernels fit. No image comes of it.
    ///
    /// The environment variable `KERNEL_PRIMITIVES_REPORT_ARCHS` (`86,89,120`) goes before this.
    pub fn report_archs(mut self, archs: impl IntoIterator<Item = u32>) -> Self {
        self.report_archs.extend(archs);
        self
    }

    /// Contracts `a * b + c` to one instruction with one rounding, as nvcc does. Off by default: results
    /// then have the same bits on the GPU and in the emulator.
    pub fn fuse_multiply_add(mut self, fuse: bool) -> Self {
        self.fuse_multiply_add = fuse;
        self
    }

    /// Keeps a line table, so that Nsight and `compute-sanitizer` show lines of Rust: for an instruction from an inlined
    /// function, that function's.
    ///
    /// The environment variable `KERNEL_PRIMITIVES_LINE_INFO` (`1` or `0`) goes before this.
    pub fn line_info(mut self, keep: bool) -> Self {
        self.line_info = keep;
        self
    }

    /// Leaves each kernel's LLVM IR in `ir/` of the output folder: linked, and optimised for each architecture.
    pub fn keep_ir(mut self, keep: bool) -> Self {
        self.keep_ir = keep;
        self
    }

    /// Writes each kernel's PTX and SASS into a folder, and the resources of all as `package.tsv`; a relative path is one
    /// of the package's. The SASS shows lines of Rust where there is a [line table](Self::line_info).
    ///
    /// The environment variable `KERNEL_PRIMITIVES_DUMP` goes before this.
    pub fn dump(mut self, folder: impl Into<PathBuf>) -> Self {
        self.dump = Some(folder.into());
        self
    }

    /// Whether to make cubins.
    pub fn cubins(mut self, cubins: Cubins) -> Self {
        self.cubins = cubins;
        self
    }

    /// Builds, and prints to cargo where the output is and what it depends on.
    ///
    /// # Errors
    ///
    /// Returns an [`Error`] if a tool is missing, if a kernel does not compile, or if this is not called in a build script.
    pub fn build(self) -> Result<Report, Error> {
        let variable = |name: &'static str| env::var_os(name).ok_or(Error::NotABuildScript { name });
        let name = variable("CARGO_PKG_NAME")?.to_string_lossy().into_owned();
        let package = Package::new(variable("CARGO_MANIFEST_DIR")?.into(), name);
        let out_dir = PathBuf::from(variable("OUT_DIR")?);
        files::create_dir(&out_dir)?;
        // Said first, so that a build that failed for want of tools is tried again when they are named.
        for name in [ARCHS, REPORT_ARCHS, DUMP, LINE_INFO, FACADE_DIR, work::CACHE].iter().chain(toolchain::VARIABLES) {
            println!("cargo::rerun-if-env-changed={name}");
        }
        if let Some(dir) = work::relative_cache() {
            let (name, dir) = (work::CACHE, dir.display());
            println!(
                "cargo::warning={name}={dir} is not an absolute path: this build keeps its intermediate files to itself"
            );
        }

        let archs = architectures(ARCHS, if self.archs.is_empty() { arch::DEFAULT } else { &self.archs })?;
        let mut targets = architectures(REPORT_ARCHS, &self.report_archs)?;
        targets.extend(&archs);
        targets.sort_unstable();
        targets.dedup();
        let mut crates: BTreeMap<String, Vec<Source>> = BTreeMap::new();
        for module in &self.modules {
            let source = module.resolve(&package)?;
            println!("cargo::rerun-if-changed={}", source.file.display());
            crates.entry(source.crate_name.clone()).or_default().push(source);
        }
        let facade = self.facade_dir(&package)?;
        let tools = Toolchain::find()?;
        let line_info = match env::var_os(LINE_INFO) {
            Some(value) if !value.is_empty() => value != "0",
            _ => self.line_info,
        };
        let options = Options { archs, fuse_multiply_add: self.fuse_multiply_add, line_info, keep_ir: self.keep_ir };
        let key =
            (&package.root, &facade, &self.dependencies, &tools.compiler.rustc, line_info, self.fuse_multiply_add);
        let work = Work::open(&package.name, key, &out_dir)?;
        let work = work.path();
        let store = Store::new(work::cache().as_deref());
        let assembler = self.assembler(&tools, work, &targets)?;
        let compiler = Compiler::new(&tools, &options, &store, work, assembler, package.library.clone())?;

        let cargo_dir = process::folder_of_parent().unwrap_or_else(|| out_dir.clone());
        let lock_file = package.root.ancestors().map(|dir| dir.join("Cargo.lock")).find(|path| path.is_file());
        let features = package.features(env::var(FEATURES).ok().as_deref());
        let inner = Inner {
            work,
            cargo_dir: &cargo_dir,
            package_root: &package.root,
            edition: &package.edition,
            facade: &facade,
            lock_file: lock_file.as_deref(),
            dependencies: &self.dependencies,
            features: &features,
            line_info,
            cargo: env::var_os("CARGO").unwrap_or_else(|| "cargo".into()).into(),
            compiler: &tools.compiler,
        };
        let mut inputs: BTreeSet<PathBuf> = lock_file.iter().cloned().collect();
        inputs.insert(facade.join("Cargo.toml"));
        inputs.extend([tools.compiler.rustc.clone(), tools.libdevice.clone()]);
        inputs.extend(tools.llvm.tools());
        inputs.extend(tools.ptxas.as_ref().ok().map(|ptxas| ptxas.program.clone()));
        let progress = Progress::new();
        let plans = Plans { store: &store, folders: Folders::new(&package.root, &facade) };
        // Of crates that were compiled, the contents that were read.
        let mut contents: BTreeMap<&str, Key> = BTreeMap::new();
        // rustc works on one crate at a time, mostly on one core; meanwhile, the other cores compile the kernels of those before.
        let compiled = process::pipeline(
            |give| {
                for (name, modules) in &crates {
                    let archs = module::architectures(modules, &options.archs);
                    if archs.is_empty() {
                        println!(
                            "cargo::warning=`{name}` is built for none of the architectures: its kernels cannot be launched"
                        );
                        continue;
                    }
                    let wrapper = inner.wrap(name, modules, &plans.folders)?;
                    let known = plans
                        .find(wrapper.key)
                        .find_map(|(read, content)| Some((read, compiler.known(name, &archs, content)?)));
                    let (read, units) = match known {
                        Some(known) => known,
                        None => {
                            let started = SystemTime::now();
                            progress.rustc(Some(name));
                            let Compiled { bitcode, inputs: read } = inner.compile(&wrapper)?;
                            progress.rustc(None);
                            let units = unit::units(&tools, name, &archs, &bitcode)?;
                            // In this order: what was read for the key is what the compiler read only if nothing was written until then.
                            if let Some(content) = plans.key(wrapper.key, &read)
                                && read.are_settled(started, work)
                            {
                                plans.remember(wrapper.key, &read);
                                contents.insert(name, content);
                            }
                            (read, units)
                        }
                    };
                    read.variables.iter().for_each(|name| println!("cargo::rerun-if-env-changed={name}"));
                    inputs.extend(read.files);
                    if units.is_empty() {
                        println!("cargo::warning=no kernels and device functions in the kernel modules of `{name}`");
                    }
                    progress.found(units.len());
                    units.into_iter().for_each(&mut *give);
                }
                Ok(())
            },
            |unit| {
                let code = compiler.compile(&unit);
                progress.done();
                code
            },
        )?;
        drop(progress);
        let mut code = Code::default();
        compiled.into_iter().for_each(|unit| code.append(unit));
        let Code { kernels, functions, cubins, planned, ir } = code;
        for units in planned.chunk_by(|a, b| a.crate_name == b.crate_name) {
            if let Some(&content) = contents.get(units[0].crate_name.as_str()) {
                compiler.remember(content, units);
            }
        }

        store.trim();

        let mut output = OutputDir::new(out_dir.join("ptx"))?;
        for (name, text) in ir {
            output.write(name, text)?;
        }
        write_functions(&mut output, &functions)?;
        let report = write_kernels(output, &kernels, cubins)?;
        for usage in report.usage() {
            if let Some(misfit) = usage.misfit() {
                println!("cargo::warning=`{}` cannot start on sm_{}: {misfit}", usage.kernel, usage.arch);
            }
        }
        let dump = env::var_os(DUMP).filter(|folder| !folder.is_empty()).map(PathBuf::from);
        if let Some(folder) = dump.as_ref().or(self.dump.as_ref()) {
            dump::write(&package.root.join(folder), &package.name, &tools, (&kernels, &functions), &report)?;
        }

        println!("cargo::rustc-env={OUTPUT}={}", report.directory().display());
        // A tool named without its folder is no file here, and cargo takes what is missing for changed.
        for input in inputs.iter().filter(|input| input.exists()) {
            println!("cargo::rerun-if-changed={}", input.display());
        }
        Ok(report)
    }

    fn facade_dir(&self, package: &Package) -> Result<PathBuf, Error> {
        match &self.facade {
            Some(path) => Ok(package.root.join(path)),
            None if package.name == FACADE_PACKAGE => Ok(package.root.clone()),
            None => env::var_os(FACADE_DIR).map(PathBuf::from).ok_or(Error::FacadeNotFound),
        }
    }

    /// ptxas and the architectures it takes, or nothing where no cubins are to be made.
    fn assembler<'a>(
        &self,
        tools: &'a Toolchain,
        work: &Path,
        archs: &[Arch],
    ) -> Result<Option<(&'a Ptxas, Vec<Arch>)>, Error> {
        let ptxas = match (self.cubins, &tools.ptxas) {
            (Cubins::Never, _) => return Ok(None),
            (Cubins::Auto, Err(missing)) => {
                // One that was named is wanted.
                if env::var_os(toolchain::PTXAS).is_some_and(|path| !path.is_empty()) {
                    println!("cargo::warning=no cubins: {}", missing.tried.join(", "));
                }
                return Ok(None);
            }
            (Cubins::Require, Err(missing)) => return Err(Error::Ptxas(missing.clone())),
            (_, Ok(ptxas)) => ptxas,
        };
        let mut known = Vec::new();
        for &arch in archs {
            match codegen::probe(ptxas, work, arch) {
                Ok(()) => known.push(arch),
                Err(Error::PtxasTooOld { release, arch, message, .. }) if self.cubins == Cubins::Auto => {
                    let said = message.lines().next().unwrap_or("it says nothing");
                    println!("cargo::warning=ptxas of CUDA {release} does not assemble for {arch}, PTX only: {said}");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Some((ptxas, known)))
    }
}

/// The architectures that a variable names, or else those of the build script.
fn architectures(variable: &str, given: &[u32]) -> Result<Vec<Arch>, Error> {
    match env::var_os(variable) {
        Some(list) if !list.is_empty() => arch::parse_list(&list.to_string_lossy()),
        _ => arch::resolve(given),
    }
}

/// Where items lie that are of no exported function.
const ITEMS: &str = "functions";

/// Writes what the host includes of device functions: the items, an expression that lists them, and the index.
fn write_functions(output: &mut OutputDir, functions: &[FunctionPtx]) -> Result<(), Error> {
    let by_symbol: BTreeMap<&str, &Function> =
        functions.iter().map(|ptx| (ptx.function.symbol.as_str(), &ptx.function)).collect();
    let mut by_function: BTreeMap<&Function, String> = BTreeMap::new();
    for FunctionPtx { function, arch, items } in functions {
        let mut files = Vec::new();
        for item in items {
            let (folder, file) = match &item.function {
                Some(symbol) => {
                    let (module, name) = by_symbol[symbol.as_str()].split();
                    (module, format!("{name}.{}.ptx", arch.name()))
                }
                None => (ITEMS, format!("{}.ptx", files::key(&item.text))),
            };
            output.write(Path::new(folder).join(&file), &item.text)?;
            files.push(format!("include_str!(\"../{folder}/{file}\")"));
        }
        let images = by_function.entry(function).or_default();
        writeln!(images, "    ({}u32, {}u32, &[{}] as &[&str]),", arch.sm, arch.ptx, files.join(", "))
            .expect("writing to a string");
    }
    let mut index = String::new();
    for (function, images) in by_function {
        let (module, name) = function.split();
        output.write(format!("{module}/{name}.rs"), format!("&[\n{images}]\n"))?;
        writeln!(index, "{}", function.path).expect("writing to a string");
    }
    output.write("functions.txt", index)
}

/// Writes what the host includes: the images, an expression that lists them, the index and the report.
fn write_kernels(mut output: OutputDir, kernels: &[Kernel], cubins: Vec<Cubin>) -> Result<Report, Error> {
    let mut by_entry: BTreeMap<&Entry, Vec<(Arch, bool)>> = BTreeMap::new();
    let of_kernel = |cubin: &Cubin| (cubin.usage.kernel.clone(), cubin.usage.arch);
    let cubins: BTreeMap<(String, u32), Cubin> = cubins.into_iter().map(|cubin| (of_kernel(&cubin), cubin)).collect();
    for kernel in kernels {
        let (module, name) = kernel.entry.split();
        let base = format!("{module}/{name}.{}", kernel.arch.name());
        output.write(format!("{base}.ptx"), &kernel.ptx)?;
        // One for the report alone is of an architecture that has no PTX of its own.
        let cubin = cubins.get(&(kernel.entry.path.clone(), kernel.arch.sm));
        by_entry.entry(&kernel.entry).or_default().push((kernel.arch, cubin.is_some()));
        if let Some(cubin) = cubin {
            output.write(format!("{base}.cubin"), &cubin.image)?;
        }
    }
    let mut index = String::new();
    for (entry, images) in &by_entry {
        let (module, name) = entry.split();
        output.write(format!("{module}/{name}.rs"), images_expression(name, images))?;
        writeln!(index, "{}", entry.path).expect("writing to a string");
    }
    output.write("index.txt", index)?;
    let report = Report {
        directory: output.path().to_owned(),
        kernels: by_entry.into_keys().map(|entry| entry.path.clone()).collect(),
        usage: cubins.into_values().map(|cubin| cubin.usage).collect(),
    };
    output.write("report.tsv", report.to_string())?;
    output.finish()?;
    Ok(report)
}

/// An expression of type `&[(u32, &str, Option<&[u8]>)]`, sorted by architecture; the files stand beside it.
fn images_expression(name: &str, images: &[(Arch, bool)]) -> String {
    let mut text = String::from("&[\n");
    for (arch, has_cubin) in images {
        let file = format!("{name}.{}", arch.name());
        let cubin = if *has_cubin {
            // The cast makes every element of one type: `include_bytes!` gives arrays of different lengths.
            format!("Some(include_bytes!(\"{file}.cubin\") as &[u8])")
        } else {
            "None::<&[u8]>".to_owned()
        };
        writeln!(text, "    ({}u32, include_str!(\"{file}.ptx\"), {cubin}),", arch.sm).expect("writing to a string");
    }
    text.push_str("]\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_one_expression() {
        let images = [(Arch::new(75).unwrap(), false), (Arch::new(90).unwrap(), true)];
        assert_eq!(
            images_expression("saxpy", &images),
            "&[\n    (75u32, include_str!(\"saxpy.sm_75.ptx\"), None::<&[u8]>),\n    \
             (90u32, include_str!(\"saxpy.sm_90.ptx\"), Some(include_bytes!(\"saxpy.sm_90.cubin\") as &[u8])),\n]\n"
        );
    }

    #[test]
    fn facade_is_the_package_itself_or_named() {
        let own = Package::new("/p".into(), FACADE_PACKAGE.into());
        let other = Package::new("/q".into(), "app".into());
        let builder = PtxBuilder::new("src/kernels.rs");
        assert_eq!(builder.facade_dir(&own).unwrap(), Path::new("/p"));
        assert!(matches!(builder.facade_dir(&other), Err(Error::FacadeNotFound)));
        let builder = builder.facade("../facade");
        assert_eq!(builder.facade_dir(&other).unwrap(), Path::new("/q/../facade"));
    }
}
