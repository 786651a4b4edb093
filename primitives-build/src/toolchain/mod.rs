//! Finding the tools: a Rust compiler with the sources of `core`, LLVM's command-line tools of at least the
//! compiler's LLVM version, NVIDIA's libdevice, and ptxas where there is one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;
use std::{env, fmt, fs};

use crate::Error;
use crate::error::{INSTALL_COMPILER, INSTALL_LIBDEVICE, INSTALL_NVDISASM, INSTALL_PTXAS, MissingTool};

pub(crate) mod arch;
pub(crate) mod process;
#[cfg(test)]
mod tests;

const RUSTC: &str = "KERNEL_PRIMITIVES_RUSTC";
const LLVM_BIN: &str = "KERNEL_PRIMITIVES_LLVM_BIN";
const LIBDEVICE: &str = "KERNEL_PRIMITIVES_LIBDEVICE";
pub(crate) const PTXAS: &str = "KERNEL_PRIMITIVES_PTXAS";
const NVDISASM: &str = "KERNEL_PRIMITIVES_NVDISASM";

/// Variables whose change can change the tools. `PATH` and `HOME` are read too, but they differ between
/// shells and editors without meaning anything, and would have kernels rebuilt at every switch.
pub(crate) const VARIABLES: &[&str] = &[
    RUSTC,
    LLVM_BIN,
    LIBDEVICE,
    PTXAS,
    NVDISASM,
    "RUSTUP_HOME",
    "CUDA_HOME",
    "CUDA_PATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "XDG_DATA_HOME",
];

/// LLVM's programs that take part.
const LLVM_TOOLS: [&str; 4] = ["llvm-dis", "llvm-link", "opt", "llc"];

/// Reads the environment; a parameter, so that tests bring their own.
type Vars<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// A compiler that can build `core` for the GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Compiler {
    pub(crate) rustc: PathBuf,
    pub(crate) release: String,
    pub(crate) llvm: u32,
}

impl Compiler {
    /// What differs if it is another compiler: two nightlies have one release.
    pub(crate) fn identity(&self) -> impl std::hash::Hash {
        (self.rustc.clone(), self.release.clone(), self.llvm, size_and_time(&self.rustc))
    }
}

/// A folder with LLVM's tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Llvm {
    pub(crate) bin: PathBuf,
    pub(crate) version: String,
}

impl Llvm {
    /// The tools that are used.
    pub(crate) fn tools(&self) -> impl Iterator<Item = PathBuf> {
        LLVM_TOOLS.iter().map(|tool| self.bin.join(tool))
    }

    /// What differs if these are other tools, though of one version.
    pub(crate) fn identity(&self) -> impl std::hash::Hash {
        (self.version.clone(), self.tools().map(|tool| size_and_time(&tool)).collect::<Vec<_>>())
    }
}

/// What tells a program from another one at the same place.
fn size_and_time(program: &Path) -> (Option<u64>, Option<SystemTime>) {
    let file = fs::metadata(program).ok();
    (file.as_ref().map(fs::Metadata::len), file.and_then(|file| file.modified().ok()))
}

/// NVIDIA's assembler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ptxas {
    pub(crate) program: PathBuf,
    pub(crate) release: String,
    /// All that it says of its version: a release has several builds.
    pub(crate) version: String,
}

/// The tools of the device side, as [`PtxBuilder`](crate::PtxBuilder) uses them.
///
/// `Display` lists them, one a line: `cargo run -p kernel-primitives-build --bin kernel-primitives-doctor` prints that.
#[derive(Clone, Debug)]
pub struct Toolchain {
    pub(crate) compiler: Compiler,
    pub(crate) llvm: Llvm,
    pub(crate) libdevice: PathBuf,
    pub(crate) ptxas: Result<Ptxas, MissingTool>,
    pub(crate) nvdisasm: Result<PathBuf, MissingTool>,
}

impl Toolchain {
    /// Finds the tools.
    ///
    /// # Errors
    ///
    /// Returns [`Error::DeviceCompiler`] or [`Error::Libdevice`] if one of these is missing. The error lists the places that were
    /// searched and the commands that install it. A missing ptxas is no error here.
    pub fn find() -> Result<Self, Error> {
        Self::find_with(&|name| env::var_os(name))
    }

    fn find_with(vars: Vars<'_>) -> Result<Self, Error> {
        // A variable set to nothing counts as not set.
        let vars = &|name: &str| vars(name).filter(|value| !value.is_empty());
        let (compiler, llvm) = find_compiler(vars).map_err(Error::DeviceCompiler)?;
        let places = CudaPlaces::new(vars);
        let libdevice = find_libdevice(vars, &places).map_err(Error::Libdevice)?;
        let ptxas = find_ptxas(vars, &places);
        let nvdisasm = find_nvdisasm(vars, &places);
        Ok(Self { compiler, llvm, libdevice, ptxas, nvdisasm })
    }

    /// Whether ptxas is there, so that cubins and resource reports can be made.
    pub fn has_ptxas(&self) -> bool {
        self.ptxas.is_ok()
    }

    /// Where ptxas is, if it was found.
    pub fn ptxas(&self) -> Option<&Path> {
        self.ptxas.as_ref().ok().map(|ptxas| ptxas.program.as_path())
    }

    pub(crate) fn llvm_tool(&self, name: &str) -> Command {
        Command::new(self.llvm.bin.join(name))
    }
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Compiler { rustc, release, llvm } = &self.compiler;
        writeln!(f, "rustc:     {} ({release}, LLVM {llvm})", rustc.display())?;
        writeln!(f, "LLVM:      {} ({})", self.llvm.bin.display(), self.llvm.version)?;
        writeln!(f, "libdevice: {}", self.libdevice.display())?;
        match &self.ptxas {
            Ok(ptxas) => writeln!(f, "ptxas:     {} (CUDA {})", ptxas.program.display(), ptxas.release)?,
            Err(_) => writeln!(f, "ptxas:     not found; needed only for cubins and resource reports")?,
        }
        match &self.nvdisasm {
            Ok(program) => write!(f, "nvdisasm:  {}", program.display()),
            Err(_) => write!(f, "nvdisasm:  not found; needed only for dumps of SASS"),
        }
    }
}

/// The first compiler that is complete and has LLVM tools to go with it.
fn find_compiler(vars: Vars<'_>) -> Result<(Compiler, Llvm), MissingTool> {
    let mut tried = Vec::new();
    for rustc in rustc_candidates(vars, &mut tried) {
        let found = check_compiler(&rustc).and_then(|(compiler, sysroot, host)| {
            let llvm = find_llvm(vars, compiler.llvm, &sysroot, &host)?;
            Ok((compiler, llvm))
        });
        match found {
            Ok(found) => return Ok(found),
            Err(reason) => tried.push(format!("{}: {reason}", rustc.display())),
        }
    }
    Err(MissingTool {
        what: "no Rust compiler that can build for the GPU was found: it takes a rustc with the sources of \
               `core` (rust-src) and LLVM's llvm-dis, llvm-link, opt and llc",
        tried,
        install: INSTALL_COMPILER,
    })
}

/// In order of preference: the one that was named, rustup's nightlies, the distribution's, rustup's others
/// (a stable one with rust-src works as well).
fn rustc_candidates(vars: Vars<'_>, tried: &mut Vec<String>) -> Vec<PathBuf> {
    if let Some(rustc) = vars(RUSTC) {
        return vec![rustc.into()];
    }
    let rustup =
        vars("RUSTUP_HOME").map(PathBuf::from).or_else(|| vars("HOME").map(|home| Path::new(&home).join(".rustup")));
    let toolchains = rustup.map(|home| home.join("toolchains"));
    let mut names: Vec<String> = toolchains
        .iter()
        .flat_map(|dir| list(dir))
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    // `nightly-x86_64-…` sorts behind the dated ones: backwards, it is first and the newest date is next.
    names.reverse();
    let (nightly, other): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| name.starts_with("nightly"));
    if nightly.is_empty() {
        let place = toolchains.as_ref().map_or("rustup".into(), |dir| dir.display().to_string());
        tried.push(format!("{place}: no nightly toolchain"));
    }
    let in_rustup = |name: &String| Some(toolchains.as_ref()?.join(name).join("bin/rustc"));

    let mut candidates: Vec<PathBuf> = nightly.iter().filter_map(in_rustup).collect();
    let system = [Path::new("/usr/bin/rustc"), Path::new("/usr/local/bin/rustc")].map(Path::to_owned);
    let path = vars("PATH").unwrap_or_default();
    // rustup's proxies in PATH would only lead to the toolchains listed above.
    let on_path = env::split_paths(&path).filter(|dir| !dir.join("rustup").exists()).map(|dir| dir.join("rustc"));
    let mut seen = Vec::new();
    for rustc in system.into_iter().chain(on_path).filter(|path| path.exists()) {
        let real = fs::canonicalize(&rustc).unwrap_or_else(|_| rustc.clone());
        if !seen.contains(&real) {
            seen.push(real);
            candidates.push(rustc);
        }
    }
    if seen.is_empty() {
        tried.push("/usr/bin/rustc: not there".to_owned());
    }
    candidates.extend(other.iter().filter_map(in_rustup));
    candidates
}

/// The compiler with its sysroot and host, or what it lacks.
fn check_compiler(rustc: &Path) -> Result<(Compiler, PathBuf, String), String> {
    let verbose = process::query(Command::new(rustc).arg("-vV")).ok_or("does not run")?;
    let field = |name: &str| version_field(&verbose, name).ok_or(format!("`rustc -vV` has no `{name}`"));
    let release = field("release")?;
    let llvm_version = field("LLVM version")?;
    let llvm = major(&llvm_version).ok_or(format!("strange LLVM version {llvm_version}"))?;
    let sysroot = process::query(Command::new(rustc).args(["--print", "sysroot"])).ok_or("has no sysroot")?;
    let sysroot = PathBuf::from(sysroot.trim());
    let sources = sysroot.join("lib/rustlib/src/rust");
    if !sources.join("library/core/src/lib.rs").is_file() {
        return Err(format!("rust-src is not installed ({} has no library/core)", sources.display()));
    }
    if let Some(version) = source_version(&sources)
        && version != release.split('-').next().unwrap_or(&release)
    {
        return Err(format!("its rust-src is of version {version}, the compiler of {release}"));
    }
    // rustup's proxy would choose anew in another folder, and is not what an update changes.
    let own = sysroot.join("bin/rustc");
    let is_own = process::query(Command::new(&own).arg("-vV")).is_some_and(|text| text == verbose);
    let rustc = if is_own { own } else { rustc.to_owned() };
    Ok((Compiler { rustc, release, llvm }, sysroot, field("host")?))
}

/// The version of `core`'s sources, where they tell it: a release tarball has a `version` file, Debian names
/// the folder behind the link `rustc-1.96.0`. rustup's component comes with its compiler and says nothing.
fn source_version(sources: &Path) -> Option<String> {
    if let Ok(text) = fs::read_to_string(sources.join("version")) {
        return text.split([' ', '-', '\n']).next().map(str::to_owned);
    }
    let real = fs::canonicalize(sources).ok()?;
    let version = real.file_name()?.to_str()?.strip_prefix("rustc-")?;
    version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
}

/// LLVM's tools for bitcode of version `wanted`: newer ones read older bitcode, never the other way.
fn find_llvm(vars: Vars<'_>, wanted: u32, sysroot: &Path, host: &str) -> Result<Llvm, String> {
    let mut places = Vec::new();
    if let Some(bin) = vars(LLVM_BIN) {
        places.push(PathBuf::from(bin));
    } else {
        places.push(sysroot.join("lib/rustlib").join(host).join("bin"));
        let mut system: Vec<PathBuf> = ["/usr/lib", "/usr/lib64", "/usr/local", "/opt"]
            .iter()
            .flat_map(|dir| list(Path::new(dir)))
            .filter(|path| llvm_folder(path).is_some())
            .collect();
        // The nearest version first; folders of older versions are only listed in the message.
        system.sort_by_key(|path| llvm_folder(path).map(|v| (v < wanted, v.abs_diff(wanted))));
        places.extend(system.into_iter().map(|path| path.join("bin")));
        places.extend(env::split_paths(&vars("PATH").unwrap_or_default()).filter(|dir| dir.join("llc").exists()));
    }
    let mut reasons = Vec::new();
    for bin in &places {
        match check_llvm(bin, wanted) {
            Ok(llvm) => return Ok(llvm),
            Err(reason) => reasons.push(format!("{}: {reason}", bin.display())),
        }
    }
    Err(format!("needs LLVM {wanted} or newer for its bitcode\n      {}", reasons.join("\n      ")))
}

/// The version in the name of a folder such as `llvm-22`, `llvm22` or `llvm`.
fn llvm_folder(path: &Path) -> Option<u32> {
    let version = path.file_name()?.to_str()?.strip_prefix("llvm")?.trim_start_matches('-');
    if version.is_empty() { Some(u32::MAX / 2) } else { version.parse().ok() }
}

fn check_llvm(bin: &Path, wanted: u32) -> Result<Llvm, String> {
    let missing: Vec<_> = LLVM_TOOLS.iter().copied().filter(|tool| !bin.join(tool).exists()).collect();
    if !missing.is_empty() {
        return Err(format!("has no {}", missing.join(", ")));
    }
    let text = process::query(Command::new(bin.join("llc")).arg("--version")).ok_or("llc does not run")?;
    let version = llvm_version(&text).ok_or("llc does not tell its version")?;
    if major(&version).is_none_or(|found| found < wanted) {
        return Err(format!("is LLVM {version}"));
    }
    if !text.contains("nvptx64") {
        return Err("was built without the NVPTX target".to_owned());
    }
    Ok(Llvm { bin: bin.to_owned(), version })
}

/// Folders where a CUDA toolkit, or a part of one, may be.
struct CudaPlaces {
    roots: Vec<PathBuf>,
    tried: Vec<String>,
}

impl CudaPlaces {
    fn new(vars: Vars<'_>) -> Self {
        let mut roots = Vec::new();
        let mut tried = Vec::new();
        for name in ["CUDA_HOME", "CUDA_PATH"] {
            match vars(name) {
                Some(path) => roots.push(PathBuf::from(path)),
                None => tried.push(format!("{name}: not set")),
            }
        }
        roots.extend(["/usr/local/cuda", "/opt/cuda", "/usr/lib/nvidia-cuda-toolkit"].map(PathBuf::from));
        for dir in env::split_paths(&vars("PATH").unwrap_or_default()) {
            // A toolkit in PATH is found by its compiler; the folder above `bin` is its root.
            if (dir.join("nvcc").exists() || dir.join("ptxas").exists())
                && let Some(root) = dir.parent()
            {
                roots.push(root.to_owned());
            }
        }
        for site in site_packages(vars) {
            let nvidia = site.join("nvidia");
            tried.push(format!("{}: Python wheels", nvidia.display()));
            let mut parts = list(&nvidia);
            // `cu13` before `cu12`.
            parts.sort();
            parts.reverse();
            roots.extend(parts);
        }
        Self { roots, tried }
    }

    /// The first of `files`, relative to a root, that exists.
    fn find(&self, files: &[&str]) -> Result<PathBuf, Vec<String>> {
        let mut tried = self.tried.clone();
        for root in &self.roots {
            if let Some(path) = files.iter().map(|file| root.join(file)).find(|path| path.is_file()) {
                return Ok(path);
            }
            tried.push(format!("{}: not there", root.join(files[0]).display()));
        }
        Err(tried)
    }
}

/// Folders with Python packages: of the setup script, of an active environment, of the system's Python.
fn site_packages(vars: Vars<'_>) -> Vec<PathBuf> {
    let data = vars("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or_else(|| vars("HOME").map(|home| Path::new(&home).join(".local/share")));
    let environments = data
        .map(|data| data.join("kernel-primitives/cuda"))
        .into_iter()
        .chain(vars("VIRTUAL_ENV").map(PathBuf::from))
        .chain(vars("CONDA_PREFIX").map(PathBuf::from));
    let mut sites: Vec<PathBuf> = environments
        .flat_map(|root| list(&root.join("lib")))
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python")))
        .map(|python| python.join("site-packages"))
        .collect();
    let script = "import site\nfor p in [*site.getsitepackages(), site.getusersitepackages()]: print(p)";
    if vars("PATH").is_some()
        && let Some(text) = process::query(Command::new("python3").args(["-c", script]))
    {
        sites.extend(text.lines().map(PathBuf::from));
    }
    sites.retain(|site| site.is_dir());
    sites.dedup();
    sites
}

fn find_libdevice(vars: Vars<'_>, places: &CudaPlaces) -> Result<PathBuf, MissingTool> {
    let missing = |tried| MissingTool {
        what: "NVIDIA's libdevice.10.bc (the device's math functions) was not found",
        tried,
        install: INSTALL_LIBDEVICE,
    };
    if let Some(path) = vars(LIBDEVICE).map(PathBuf::from) {
        let there = path.is_file();
        return there
            .then_some(path.clone())
            .ok_or_else(|| missing(vec![format!("{LIBDEVICE}={}: not a file", path.display())]));
    }
    // Debian's nvidia-cuda-toolkit has no `nvvm` folder between.
    places.find(&["nvvm/libdevice/libdevice.10.bc", "libdevice/libdevice.10.bc"]).map_err(missing)
}

fn find_ptxas(vars: Vars<'_>, places: &CudaPlaces) -> Result<Ptxas, MissingTool> {
    let missing = |tried| MissingTool {
        what: "NVIDIA's ptxas, which cubins are made with, was not found",
        tried,
        install: INSTALL_PTXAS,
    };
    let program = match vars(PTXAS).map(PathBuf::from) {
        Some(program) => program,
        None => places.find(&["bin/ptxas"]).map_err(missing)?,
    };
    let text = process::query(Command::new(&program).arg("--version"))
        .ok_or_else(|| missing(vec![format!("{}: does not run", program.display())]))?;
    let release = cuda_release(&text).unwrap_or_else(|| "unknown".to_owned());
    Ok(Ptxas { program, release, version: text })
}

fn find_nvdisasm(vars: Vars<'_>, places: &CudaPlaces) -> Result<PathBuf, MissingTool> {
    let missing = |tried| MissingTool {
        what: "NVIDIA's nvdisasm, which shows what a cubin contains, was not found",
        tried,
        install: INSTALL_NVDISASM,
    };
    match vars(NVDISASM).map(PathBuf::from) {
        Some(program) if program.is_file() => Ok(program),
        Some(program) => Err(missing(vec![format!("{NVDISASM}={}: not a file", program.display())])),
        None => places.find(&["bin/nvdisasm"]).map_err(missing),
    }
}

/// A field of `rustc -vV`.
fn version_field(text: &str, name: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))?;
    Some(value.trim().to_owned())
}

/// The version in the output of `llc --version`: `Debian LLVM version 22.1.8`.
fn llvm_version(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("LLVM version ")?;
    rest.split_whitespace().next().map(str::to_owned)
}

/// The release in the output of `ptxas --version`: `Cuda compilation tools, release 13.0, V13.0.88`.
fn cuda_release(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("release ")?;
    rest.split([',', ' ', '\n']).next().map(str::to_owned)
}

fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

/// The entries of a folder; none where it cannot be read.
fn list(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
