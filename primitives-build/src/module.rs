//! A kernel module: which file, and what it is called on the host.

use std::path::{Component, Path, PathBuf};

use crate::Error;
use crate::arch::{self, Arch};
use crate::builder::FACADE_PACKAGE;

/// A source file with kernels, with the crate and the module path that it has on the host.
///
/// Both are part of a kernel's name, `crate::module::kernel`, under which the host finds its PTX. By default
/// they are those of a file of the package's library.
///
/// ```no_run
/// use primitives_build::{KernelModule, PtxBuilder};
///
/// # fn main() -> Result<(), primitives_build::Error> {
/// PtxBuilder::new("src/kernels.rs")
///     // An example is a crate of its own.
///     .module(KernelModule::new("examples/quickstart/kernels.rs").crate_name("quickstart"))
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct KernelModule {
    pub(crate) path: PathBuf,
    crate_name: Option<String>,
    module_path: Option<String>,
    archs: Vec<u32>,
}

impl KernelModule {
    /// The module in the file at `path`, relative to the package's folder.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), crate_name: None, module_path: None, archs: Vec::new() }
    }

    /// The crate that declares the module; by default the package's library.
    #[must_use]
    pub fn crate_name(mut self, name: impl Into<String>) -> Self {
        self.crate_name = Some(name.into());
        self
    }

    /// The module's path inside its crate, such as `gpu::kernels`; by default it follows from the file's path
    /// below `src`, and is the file's name for a file elsewhere.
    #[must_use]
    pub fn module_path(mut self, path: impl Into<String>) -> Self {
        self.module_path = Some(path.into());
        self
    }

    /// Builds the module's crate for these architectures alone, of those that the [builder](crate::PtxBuilder::archs) has; for all
    /// of them by default.
    #[must_use]
    pub fn archs(mut self, archs: impl IntoIterator<Item = u32>) -> Self {
        self.archs.extend(archs);
        self
    }

    pub(crate) fn resolve(&self, package: &Package) -> Result<Source, Error> {
        let error = |reason: String| Error::Module { path: self.path.clone(), reason };
        let file = package.root.join(&self.path);
        if !file.is_file() {
            return Err(error(format!("there is no such file in {}", package.root.display())));
        }
        let crate_name = self.crate_name.as_deref().unwrap_or(&package.library).replace('-', "_");
        let segments: Vec<String> = match &self.module_path {
            Some(path) => path.split("::").map(str::to_owned).collect(),
            None => {
                let relative = file.strip_prefix(&package.root).unwrap_or(&self.path);
                derive(relative).ok_or_else(|| {
                    error("cannot tell its module path; name it with `KernelModule::module_path`".into())
                })?
            }
        };
        if let Some(bad) = segments.iter().chain([&crate_name]).find(|name| !is_identifier(name)) {
            return Err(error(format!("`{bad}` is not a Rust identifier")));
        }
        Ok(Source { file, crate_name, segments, archs: arch::resolve(&self.archs)? })
    }
}

impl From<&str> for KernelModule {
    fn from(path: &str) -> Self {
        Self::new(path)
    }
}

impl From<&Path> for KernelModule {
    fn from(path: &Path) -> Self {
        Self::new(path)
    }
}

impl From<PathBuf> for KernelModule {
    fn from(path: PathBuf) -> Self {
        Self::new(path)
    }
}

/// The package whose build script runs.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    pub(crate) root: PathBuf,
    pub(crate) name: String,
    /// The name of its library, if it has one.
    pub(crate) library: String,
    /// The edition of its sources.
    pub(crate) edition: String,
}

impl Package {
    pub(crate) fn new(root: PathBuf, name: String) -> Self {
        let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap_or_default();
        let edition = edition(&manifest, || workspace(&root, &manifest));
        Self { library: library(&manifest, &name), edition, root, name }
    }

    /// The package's features of a list that cargo made. The kernels of the library depend on none of its own, and shall not be compiled
    /// again for each set of these.
    pub(crate) fn features(&self, list: Option<&str>) -> Vec<String> {
        let list = list.filter(|_| self.name != FACADE_PACKAGE).unwrap_or_default();
        let mut features: Vec<String> = list.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        features.sort();
        features
    }
}

/// What `[lib]` calls the library of a manifest, or the package's own name.
fn library(manifest: &str, package: &str) -> String {
    let name = value(manifest, "lib", "name").and_then(quoted);
    name.unwrap_or(package).replace('-', "_")
}

/// The edition that a manifest names, or that of its workspace. If none is found, it is that of this crate.
fn edition(manifest: &str, workspace: impl FnOnce() -> Option<String>) -> String {
    let own = value(manifest, "package", "edition").unwrap_or_default();
    let inherited = if own.contains("workspace") { workspace() } else { None };
    let value = match &inherited {
        Some(manifest) => value(manifest, "workspace.package", "edition").unwrap_or_default(),
        None => own,
    };
    let is_edition = |text: &&str| text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    quoted(value).filter(is_edition).unwrap_or("2024").to_owned()
}

/// The manifest whose values a package can inherit.
fn workspace(root: &Path, manifest: &str) -> Option<String> {
    let named = value(manifest, "package", "workspace").and_then(quoted).map(|folder| root.join(folder));
    let folders = named.iter().map(PathBuf::as_path).chain(root.ancestors());
    let manifests = folders.filter_map(|folder| std::fs::read_to_string(folder.join("Cargo.toml")).ok());
    manifests.into_iter().find(|text| table(text, "workspace.package").next().is_some())
}

/// The lines of a manifest's table, with its head, and without comments.
fn table<'a>(manifest: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let head = |line: &'a str| line.strip_prefix('[')?.strip_suffix(']');
    let lines = manifest.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let mut is_inside = false;
    lines.filter(move |line| {
        is_inside = head(line).map_or(is_inside, |head| head.trim() == name);
        is_inside
    })
}

/// What is on the line of a key in a manifest's table, after the key.
fn value<'a>(manifest: &'a str, name: &str, key: &str) -> Option<&'a str> {
    table(manifest, name).find_map(|line| {
        let value = line.strip_prefix(key)?.trim_start();
        value.starts_with(['=', '.']).then_some(value)
    })
}

/// The first text in quotes.
fn quoted(value: &str) -> Option<&str> {
    value.split(['"', '\'']).nth(1)
}

/// A kernel module with everything known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) file: PathBuf,
    pub(crate) crate_name: String,
    pub(crate) segments: Vec<String>,
    /// The architectures; none for all of them.
    pub(crate) archs: Vec<Arch>,
}

/// The architectures, of those given, that the modules of one crate are built for.
pub(crate) fn architectures(modules: &[Source], given: &[Arch]) -> Vec<Arch> {
    let is_wanted = |arch: &Arch| modules.iter().any(|source| source.archs.is_empty() || source.archs.contains(arch));
    given.iter().copied().filter(is_wanted).collect()
}

/// The module path of a file, given relative to its package.
fn derive(path: &Path) -> Option<Vec<String>> {
    let mut names = path
        .with_extension("")
        .components()
        .filter(|part| !matches!(part, Component::CurDir))
        .map(|part| match part {
            Component::Normal(name) => name.to_str().map(str::to_owned),
            _ => None,
        })
        .collect::<Option<Vec<_>>>()?;
    let in_library = names.first().is_some_and(|name| name == "src");
    if names.last().is_some_and(|name| name == "mod") {
        names.pop();
    }
    let names = if in_library { names.split_off(1) } else { names.split_off(names.len().checked_sub(1)?) };
    // A crate root is no module: kernels stand in a file of their own.
    let root = names.is_empty() || (in_library && names.len() == 1 && ["lib", "main"].contains(&&*names[0]));
    (!root).then_some(names)
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn derived(path: &str) -> Option<String> {
        derive(Path::new(path)).map(|names| names.join("::"))
    }

    #[test]
    fn module_path_follows_from_the_file() {
        assert_eq!(derived("src/kernels.rs").as_deref(), Some("kernels"));
        assert_eq!(derived("./src/kernels.rs").as_deref(), Some("kernels"));
        assert_eq!(derived("src/kernels/mod.rs").as_deref(), Some("kernels"));
        assert_eq!(derived("src/gpu/kernels.rs").as_deref(), Some("gpu::kernels"));
        assert_eq!(derived("src/gpu/kernels/mod.rs").as_deref(), Some("gpu::kernels"));
        assert_eq!(derived("examples/quickstart/kernels.rs").as_deref(), Some("kernels"));
        assert_eq!(derived("tests/kernels/mod.rs").as_deref(), Some("kernels"));
        assert_eq!(derived("kernels.rs").as_deref(), Some("kernels"));
    }

    #[test]
    fn modules_of_one_crate_are_built_for_what_any_of_them_names() {
        let source = |archs: &[u32]| {
            let archs = arch::resolve(archs).unwrap();
            Source { file: "/k.rs".into(), crate_name: "k".into(), segments: vec![], archs }
        };
        let given = [75, 80, 90].map(|sm| Arch::new(sm).unwrap());
        let of = |modules: &[Source]| architectures(modules, &given).iter().map(|arch| arch.sm).collect::<Vec<_>>();
        assert_eq!(of(&[source(&[90, 120])]), [90]);
        assert_eq!(of(&[source(&[90]), source(&[75])]), [75, 90]);
        assert_eq!(of(&[source(&[90]), source(&[])]), [75, 80, 90]);
        assert!(of(&[source(&[120])]).is_empty());
    }

    #[test]
    fn crate_roots_and_outside_paths_have_none() {
        for path in ["src/lib.rs", "src/main.rs", "src/mod.rs", "../kernels.rs", ""] {
            assert_eq!(derived(path), None, "{path}");
        }
    }

    #[test]
    fn package_name_becomes_the_crate_name() {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let package = Package { root, name: "my-crate".into(), library: "my_crate".into(), edition: "2024".into() };
        let source = KernelModule::new("src/module.rs").resolve(&package).unwrap();
        assert_eq!((&*source.crate_name, &*source.segments), ("my_crate", &["module".to_owned()][..]));
        let source = KernelModule::new("src/lib.rs").crate_name("other").module_path("a::b");
        let source = source.resolve(&package).unwrap();
        assert_eq!((&*source.crate_name, source.segments.join("::").as_str()), ("other", "a::b"));
    }

    #[test]
    fn a_library_may_have_another_name_than_its_package() {
        for (manifest, name) in [
            ("[package]\nname = \"acme-sim\"\n\n[lib]\npath = \"sim.rs\"\nname = \"sim\"\n", "sim"),
            ("[lib]\nname='sim'\n[[bin]]\nname = \"other\"", "sim"),
            ("[lib] # of kernels\nname = 'sim' # short\n", "sim"),
            ("[[bin]]\nname = \"other\"\n# [lib]\nname = \"none\"\n[ lib ]\nname = \"sim\"", "sim"),
            ("[lib]\nnames = \"x\"\n[[bin]]\nname = \"other\"", "acme_sim"),
            ("", "acme_sim"),
        ] {
            assert_eq!(library(manifest, "acme-sim"), name, "{manifest}");
        }
    }

    #[test]
    fn kernels_have_the_edition_of_their_package() {
        let above = "[package]\nedition = \"2015\"\n[workspace]\n[workspace.package] # of all\nedition = '2018'\n";
        for (manifest, expected) in [
            ("[package]\nname = \"a\"\nedition = \"2021\"\n", "2021"),
            ("[package]\nedition='2021' # not \"2018\"\n", "2021"),
            ("[package]\nedition.workspace = true\n", "2018"),
            ("[package]\nedition = { workspace = true }\n", "2018"),
            ("[package]\nname = \"a\"\n[lib]\nedition = \"2015\"\n", "2024"),
            ("[package]\nedition = \"next\"\n", "2024"),
            ("", "2024"),
        ] {
            assert_eq!(edition(manifest, || Some(above.to_owned())), expected, "{manifest}");
        }
        assert_eq!(edition("[package]\nedition.workspace = true\n", || None), "2024");
    }

    #[test]
    fn an_inherited_edition_is_that_of_the_nearest_workspace_or_of_the_one_that_is_named() {
        let root = std::env::temp_dir().join(format!("primitives-build-editions-{}", std::process::id()));
        let write = |name: &str, text: &str| crate::files::write(&root.join(name).join("Cargo.toml"), text).unwrap();
        write("", "[workspace.package]\nedition = \"2018\"\n");
        write("all", "[workspace.package]\nedition = \"2021\"\n");
        write("all/crates", "[package]\nname = \"crates\"\n");
        write("all/crates/app", "[package]\nname = \"app\"\nedition.workspace = true\n");
        write("all/crates/other", "[package]\nworkspace = \"../../..\"\nedition.workspace = true\n");
        for (name, expected) in [("app", "2021"), ("other", "2018"), ("none", "2024")] {
            assert_eq!(Package::new(root.join("all/crates").join(name), name.into()).edition, expected, "{name}");
        }
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn kernels_have_the_features_of_their_package_and_those_of_the_library_none() {
        let package = |name: &str| Package::new("/none".into(), name.into());
        assert_eq!(package("app").features(Some("precise,cuda,f64-sums")), ["cuda", "f64-sums", "precise"]);
        assert!(package("app").features(Some("")).is_empty());
        assert!(package("app").features(None).is_empty());
        assert!(package(FACADE_PACKAGE).features(Some("cuda,default")).is_empty());
    }

    #[test]
    fn wrong_modules_are_refused() {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let package = Package { root, name: "my-crate".into(), library: "my_crate".into(), edition: "2024".into() };
        for (module, part) in [
            (KernelModule::new("src/none.rs"), "no such file"),
            (KernelModule::new("src/lib.rs"), "module_path"),
            (KernelModule::new("src/lib.rs").module_path("a::"), "`` is not a Rust identifier"),
            (KernelModule::new("src/module.rs").crate_name("a b"), "`a b` is not"),
        ] {
            let message = module.resolve(&package).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
