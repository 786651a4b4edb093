//! The wrapper crate: what turns an ordinary module of the user's crate into a device crate, and the inner
//! cargo run that compiles it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::module::Source;
use crate::plan::{self, Folders, Inputs};
use crate::store::Key;
use crate::toolchain::Compiler;
use crate::{Error, files, process};

mod messages;
#[cfg(test)]
mod tests;

use messages::is_of_damage;

/// `#[kernel]` emits entries only in packages whose name starts so: the facade is compiled for the device as
/// well, as a dependency, and its own kernels must not appear in every user's PTX.
const PACKAGE_PREFIX: &str = "ptx-entries-";

const TARGET: &str = "nvptx64-nvidia-cuda";

/// What every inner cargo run shares.
#[derive(Debug)]
pub(crate) struct Inner<'a> {
    /// Folder for wrappers, the inner target folder and intermediate files.
    pub(crate) work: &'a Path,
    /// The folder where cargo runs, which decides the configuration files that it reads.
    pub(crate) cargo_dir: &'a Path,
    /// The outer package's folder.
    pub(crate) package_root: &'a Path,
    /// The edition of the outer package.
    pub(crate) edition: &'a str,
    /// The folder of `kernel-primitives`.
    pub(crate) facade: &'a Path,
    pub(crate) lock_file: Option<&'a Path>,
    pub(crate) dependencies: &'a [(String, String)],
    /// The features of the outer package that are on.
    pub(crate) features: &'a [String],
    pub(crate) line_info: bool,
    pub(crate) cargo: PathBuf,
    pub(crate) compiler: &'a Compiler,
}

/// A wrapper as it stands on the disk.
#[derive(Debug)]
pub(crate) struct Wrapper<'a> {
    crate_name: &'a str,
    dir: PathBuf,
    linked: Vec<Linked>,
    /// Of all that goes in but the sources.
    pub(crate) key: Key,
}

/// A compiled wrapper.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) bitcode: PathBuf,
    /// The local sources that went in, and the variables.
    pub(crate) inputs: Inputs,
}

/// What the kernels of a source depend on in this crate, beside its version: it may be one under development.
const MAKERS: [&str; 5] = [
    include_str!("wrapper.rs"),
    include_str!("ir.rs"),
    include_str!("unit.rs"),
    include_str!("split.rs"),
    include_str!("codegen.rs"),
];

impl Inner<'_> {
    /// Writes the wrapper of the modules of one crate.
    pub(crate) fn wrap<'c>(
        &self,
        crate_name: &'c str,
        modules: &[Source],
        folders: &Folders,
    ) -> Result<Wrapper<'c>, Error> {
        let dir = self.work.join(crate_name);
        let tree = Tree::new(modules)?;
        let manifest = self.manifest(crate_name);
        files::write(&dir.join("Cargo.toml"), &manifest)?;
        let mut linked = Vec::new();
        let src = dir.join("src");
        remove_links(&src)?;
        let root = self.root_source(&tree, &src, &mut linked)?;
        files::write(&src.join("lib.rs"), &root)?;
        self.copy_lock_file(&dir)?;

        let flags = self.rustflags();
        let maps: Vec<_> = self.path_maps(&linked);
        let portable: Vec<String> = [manifest, root, format!("{flags:?}"), format!("{maps:?}")]
            .iter()
            .map(|text| folders.portable(text))
            .collect();
        // A line table has absolute paths.
        let absolute = self.line_info.then_some((self.package_root, self.facade));
        let lock = self.lock_file.map(files::read).transpose()?;
        let config = cargo_config(self.line_info, Path::new(""));
        let key = Key::of((MAKERS, portable, absolute, lock, config, self.features, self.compiler.identity()));
        Ok(Wrapper { crate_name, dir, linked, key })
    }

    /// Compiles a crate's wrapper to a single bitcode module, dependencies and `core` included.
    pub(crate) fn compile(&self, wrapper: &Wrapper<'_>) -> Result<Compiled, Error> {
        let Wrapper { crate_name, dir, linked, .. } = wrapper;
        let config = self.work.join("cargo-config.toml");
        let target_dir = self.work.join("target");
        files::write(&config, cargo_config(self.line_info, &target_dir))?;

        let bitcode = self.work.join(format!("{crate_name}.rustc.bc"));
        let mut command = Command::new(&self.cargo);
        command
            .current_dir(self.cargo_dir)
            // Sources are known by their content: the same place can have held others, newer ones too.
            .args(["rustc", "--release", "--lib", "-Zbuild-std=core", "-Zchecksum-freshness", "--color", "never"])
            .args(["--target", TARGET, "--manifest-path"])
            .arg(dir.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(&target_dir)
            .arg("--config")
            .arg(&config)
            .arg("--");
        // The bitcode is all that is wanted: the program `true` makes the link step succeed without a linker.
        command.arg(emit(crate_name)).args(["-C", "linker=true"]).args(self.feature_flags());
        for (from, to) in self.path_maps(linked) {
            let mut flag = std::ffi::OsString::from("--remap-path-prefix=");
            flag.push(from);
            flag.push("=");
            flag.push(to);
            command.arg(flag);
        }
        self.isolate(&mut command);

        // The linker leaves nothing, and cargo would compile anew what is not there. The bitcode, of which cargo knows nothing, must be
        // there too, whole, and of these features, which share the folder with others.
        let artefact = target_dir.join(TARGET).join("release/deps").join(crate_name).with_added_extension("ptx");
        let checksum = bitcode.with_added_extension("sum");
        let features = self.features.join(",");
        let sum_of = |path: &Path| {
            fs::read(path).ok().map(|bytes| Key::of([bytes.as_slice(), features.as_bytes()].concat()).name())
        };
        if sum_of(&bitcode).is_none_or(|sum| fs::read(&checksum).ok() != Some(sum.into())) {
            files::remove(&artefact)?;
            files::remove(&bitcode)?;
        }
        let mut output = process::output(&mut command)?;
        if !output.status.success() && is_of_damage(&String::from_utf8_lossy(&output.stderr)) {
            if target_dir.exists() {
                fs::remove_dir_all(&target_dir).map_err(Error::io("remove", &target_dir))?;
            }
            output = process::output(&mut command)?;
        }
        let Some(sum) = sum_of(&bitcode).filter(|_| output.status.success()) else {
            return Err(Error::Compile {
                crate_name: (*crate_name).to_owned(),
                command: format!("RUSTC={} {}", self.compiler.rustc.display(), process::display(&command)),
                stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            });
        };
        files::write(&checksum, sum)?;
        files::write(&artefact, "")?;
        let dep_info = target_dir.join(TARGET).join("release").join(format!("{crate_name}.d"));
        let variables = plan::variables(&target_dir.join(TARGET).join("release/deps"));
        let mut inputs = Inputs { files: self.sources(&dep_info, dir)?.into_iter().collect(), variables };
        inputs.variables.retain(|name| !is_of_outer_build(name));
        inputs.add_manifests();
        Ok(Compiled { bitcode, inputs })
    }

    /// The flags by which the kernels see the package's features. Cargo is not told of these features, whose names could be those of
    /// dependencies, too.
    fn feature_flags(&self) -> Vec<String> {
        let features = self.features.iter().map(|name| format!("feature={name:?}"));
        // Those that are off are known, too.
        let flags = ["--check-cfg".to_owned(), "cfg(feature, values(any()))".to_owned()];
        flags.into_iter().chain(features.flat_map(|feature| ["--cfg".to_owned(), feature])).collect()
    }

    fn manifest(&self, crate_name: &str) -> String {
        let mut text = format!(
            "# Written by primitives-build.\n\
             [package]\n\
             name = \"{PACKAGE_PREFIX}{crate_name}\"\n\
             version = \"0.0.0\"\n\
             edition = \"{edition}\"\n\
             publish = false\n\n\
             [lib]\n\
             name = \"{crate_name}\"\n\
             # A final artefact, so that link-time optimisation yields the whole program.\n\
             crate-type = [\"cdylib\"]\n\n\
             # Apart from the workspace that the target folder may lie in.\n\
             [workspace]\n\
             # That of this crate, whatever the edition.\n\
             resolver = \"3\"\n\n\
             [dependencies]\n\
             kernel_primitives = {{ package = \"kernel-primitives\", path = {}, default-features = false }}\n",
            toml_string(self.facade),
            edition = self.edition,
        );
        for (name, value) in self.dependencies {
            writeln!(text, "{name} = {value}").expect("writing to a string");
        }
        text
    }

    fn root_source(&self, tree: &Tree<'_>, src: &Path, linked: &mut Vec<Linked>) -> Result<String, Error> {
        // The lints are about the ABI attribute that `#[kernel]` writes, and about things that only the host uses.
        let mut text = String::from(
            "//! Written by primitives-build.\n\
             #![no_std]\n\
             #![feature(abi_ptx)]\n\
             #![allow(unknown_lints, internal_features, unused_features, improper_ctypes_definitions, dead_code)]\n",
        );
        tree.write(&mut text, src, Path::new("src"), linked)?;
        Ok(text)
    }

    /// Paths as they shall appear in panic locations and line tables. A location is the same as on the host,
    /// relative to the package, and free of the build folder; a profiler that opens sources needs them absolute.
    fn path_maps(&self, linked: &[Linked]) -> Vec<(PathBuf, PathBuf)> {
        let shown = |path: &Path| match path.strip_prefix(self.package_root) {
            Ok(relative) if !self.line_info => relative.to_owned(),
            _ => path.to_owned(),
        };
        let mut maps = Vec::new();
        if !self.line_info {
            maps.push((self.package_root.to_owned(), PathBuf::new()));
        }
        // Later maps win over earlier ones.
        for link in linked {
            maps.push((link.shown.clone(), shown(&link.real)));
        }
        maps
    }

    /// Versions are those of the outer build. Cargo then edits the copy, so it is renewed only when the
    /// original has changed.
    fn copy_lock_file(&self, dir: &Path) -> Result<(), Error> {
        let Some(original) = self.lock_file else { return Ok(()) };
        let text = files::read_text(original)?;
        let seen = dir.join("Cargo.lock.outer");
        if fs::read_to_string(&seen).is_ok_and(|old| old == text) && dir.join("Cargo.lock").exists() {
            return Ok(());
        }
        files::write(&dir.join("Cargo.lock"), &text)?;
        files::write(&seen, &text)
    }

    /// Keeps the outer build's settings, made for the host, away from the inner one.
    fn isolate(&self, command: &mut Command) {
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(is_of_outer_build) {
                command.env_remove(&name);
            }
        }
        command
            .env("RUSTC", &self.compiler.rustc)
            // Needed for -Zbuild-std on a stable cargo, and for the features on a stable compiler.
            .env("RUSTC_BOOTSTRAP", "1")
            // This outranks rustflags in the user's cargo configuration.
            .env("CARGO_ENCODED_RUSTFLAGS", self.rustflags());
    }

    /// Flags for every crate that is compiled for the device.
    fn rustflags(&self) -> std::ffi::OsString {
        // Jump threading on MIR copies calls into the branches of a later test, and knows nothing of convergence: a barrier
        // came out once for the lanes of one branch and once for the others, and the block hung. LLVM's own pass is told
        // by the `convergent` attribute.
        let mut flags = std::ffi::OsString::from("-Zmir-enable-passes=-JumpThreading");
        // Each kernel is optimised by itself, on all cores.
        flags.push("\x1f-Cno-prepopulate-passes");
        // `path_maps` reaches the kernels' crate alone. Faults in the library's own code are shown relative to it.
        if !self.line_info {
            flags.push("\x1f--remap-path-prefix=");
            flags.push(self.facade);
            flags.push(if self.facade == self.package_root { "=" } else { "=kernel-primitives" });
        }
        flags
    }

    /// The local files named in cargo's dep-info; links lead back to the user's files.
    fn sources(&self, dep_info: &Path, dir: &Path) -> Result<Vec<PathBuf>, Error> {
        let mut sources: Vec<PathBuf> = parse_dep_info(&files::read_text(dep_info)?)
            .into_iter()
            .filter(|path| *path != dir.join("src/lib.rs"))
            .map(|path| if path.starts_with(dir) { fs::canonicalize(&path).unwrap_or(path) } else { path })
            .collect();
        sources.sort();
        sources.dedup();
        Ok(sources)
    }
}

/// Where rustc writes the bitcode, from the wrapper's folder, in which cargo runs it: in a path of the user's, a comma would end it.
fn emit(crate_name: &str) -> String {
    format!("--emit=llvm-bc=../{crate_name}.rustc.bc")
}

/// Cargo merges the user's configuration files into its own settings; this file goes on the command line and
/// so outranks them.
fn cargo_config(line_info: bool, target_dir: &Path) -> String {
    let debug = if line_info { "\"line-directives-only\"" } else { "false" };
    format!(
        "[build]\n\
         rustc-wrapper = \"\"\n\
         rustc-workspace-wrapper = \"\"\n\
         build-dir = {}\n\
         dep-info-basedir = {}\n\n\
         [profile.release]\n\
         opt-level = 3\n\
         lto = \"fat\"\n\
         codegen-units = 1\n\
         panic = \"abort\"\n\
         debug = {debug}\n\
         strip = false\n\
         debug-assertions = false\n\
         overflow-checks = false\n\
         incremental = false\n",
        toml_string(target_dir),
        // No source is below it, so the paths of sources stay absolute.
        toml_string(&target_dir.join("none")),
    )
}

/// Variables of the outer cargo, and of the build script it runs; where crates come from is kept.
fn is_of_outer_build(name: &str) -> bool {
    const KEPT: &[&str] = &[
        "CARGO_HOME",
        "CARGO_NET_",
        "CARGO_HTTP_",
        "CARGO_REGISTRY_",
        "CARGO_REGISTRIES_",
        "CARGO_SOURCE_",
        "CARGO_MAKEFLAGS",
    ];
    const DROPPED: &[&str] = &["CARGO", "RUSTC", "RUSTDOC", "RUSTFLAGS", "DEP_", "KERNEL_PRIMITIVES_"];
    const EXACTLY: &[&str] = &["RUSTUP_TOOLCHAIN", "OUT_DIR", "TARGET", "HOST", "PROFILE", "OPT_LEVEL", "DEBUG"];
    let starts = |list: &[&str]| list.iter().any(|prefix| name.starts_with(prefix));
    (starts(DROPPED) && !starts(KEPT)) || EXACTLY.contains(&name)
}

/// A module that is reached through a link in the wrapper.
#[derive(Debug)]
struct Linked {
    /// The path that the compiler sees, relative to the wrapper.
    shown: PathBuf,
    real: PathBuf,
}

/// The wrapper's modules.
#[derive(Debug)]
enum Tree<'a> {
    File(&'a Source),
    Inline(BTreeMap<&'a str, Tree<'a>>),
}

impl<'a> Tree<'a> {
    fn new(modules: &'a [Source]) -> Result<Self, Error> {
        let mut root = Self::Inline(BTreeMap::new());
        for source in modules {
            let overlap = || Error::Module {
                path: source.file.clone(),
                reason: format!(
                    "module `{}::{}` is named twice, or lies inside another kernel module; name the outer one only",
                    source.crate_name,
                    source.segments.join("::"),
                ),
            };
            let mut node = &mut root;
            for segment in &source.segments {
                let Self::Inline(children) = node else { return Err(overlap()) };
                node = children.entry(segment).or_insert_with(|| Self::Inline(BTreeMap::new()));
            }
            match node {
                Self::Inline(children) if children.is_empty() => *node = Self::File(source),
                _ => return Err(overlap()),
            }
        }
        Ok(root)
    }

    /// Writes the declarations; `src` is the folder in the wrapper where a child of this module belongs.
    fn write(&self, text: &mut String, src: &Path, shown: &Path, linked: &mut Vec<Linked>) -> Result<(), Error> {
        let Self::Inline(children) = self else { return Ok(()) };
        for (name, child) in children {
            match child {
                Self::Inline(_) => {
                    writeln!(text, "pub mod {name} {{").expect("writing to a string");
                    child.write(text, &src.join(name), &shown.join(name), linked)?;
                    text.push_str("}\n");
                }
                Self::File(source) => {
                    let folder = source.file.with_extension("");
                    let is_mod = source.file.file_stem().is_some_and(|stem| stem == "mod");
                    if !is_mod && folder.is_dir() {
                        // A file named by `#[path]` looks for its child modules beside itself, an ordinary
                        // module `x.rs` in the folder `x`. With both linked into place, it is ordinary.
                        let file = format!("{name}.rs");
                        link(&source.file, &src.join(&file))?;
                        link(&folder, &src.join(name))?;
                        linked.push(Linked { shown: shown.join(file), real: source.file.clone() });
                        linked.push(Linked { shown: shown.join(name), real: folder });
                        writeln!(text, "pub mod {name};").expect("writing to a string");
                    } else {
                        let path = source.file.to_string_lossy();
                        writeln!(text, "#[path = {path:?}]\npub mod {name};").expect("writing to a string");
                    }
                }
            }
        }
        Ok(())
    }
}

/// Removes the links below `dir`, which lead to the user's files, without following any: with other modules than in an earlier
/// build, one of those could lie where a folder of this one does.
fn remove_links(dir: &Path) -> Result<(), Error> {
    if !dir.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(dir).map_err(Error::io("read", dir))? {
        let entry = entry.map_err(Error::io("read", dir))?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(Error::io("read", dir))?);
        if kind.is_symlink() {
            // On Windows a link to a folder is a folder.
            fs::remove_file(&path).or_else(|_| fs::remove_dir(&path)).map_err(Error::io("remove", &path))?;
        } else if kind.is_dir() {
            remove_links(&path)?;
        }
    }
    Ok(())
}

/// Makes `at` a symbolic link to `real`. There is nothing but folders and files that were written here.
fn link(real: &Path, at: &Path) -> Result<(), Error> {
    if let Some(parent) = at.parent() {
        files::create_dir(parent)?;
    }
    if let Ok(old) = at.symlink_metadata() {
        let removed = if old.is_dir() { fs::remove_dir_all(at) } else { fs::remove_file(at) };
        removed.map_err(Error::io("remove", at))?;
    }
    #[cfg(unix)]
    let result = std::os::unix::fs::symlink(real, at);
    #[cfg(windows)]
    let result = if real.is_dir() {
        std::os::windows::fs::symlink_dir(real, at)
    } else {
        std::os::windows::fs::symlink_file(real, at)
    };
    result.map_err(Error::io("link", at))
}

/// The prerequisites in a makefile-like dep-info file, where a blank in a path is written `\ `.
fn parse_dep_info(text: &str) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for line in text.lines() {
        let Some((_, list)) = line.split_once(": ") else { continue };
        let mut path = String::new();
        let mut chars = list.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' if chars.peek() == Some(&' ') => path.extend(chars.next()),
                ' ' => paths.push(std::mem::take(&mut path)),
                _ => path.push(c),
            }
        }
        paths.push(path);
    }
    paths.into_iter().filter(|path| !path.is_empty()).map(PathBuf::from).collect()
}

fn toml_string(path: &Path) -> String {
    // A basic TOML string: quotes and backslashes escaped.
    let path = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{path}\"")
}
