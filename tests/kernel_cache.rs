//! Tests the cache of compiled kernels: builds at once, checkouts in several folders, and damaged files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use primitives_build::{Cubins, PtxBuilder};

const KERNELS: &str = "\
//! Two kernels and a device function.
use kernel_primitives::prelude::*;

#[kernel]
pub fn twice(cx: Block, mut y: GlobalMut<f32>) {
    for i in cx.items(y.len()) {
        y.set(i, 2.0 * y.get(i));
    }
}

#[kernel]
pub fn half(cx: Block, mut y: GlobalMut<f32>) {
    for i in cx.items(y.len()) {
        y.set(i, 0.5 * y.get(i));
    }
}

#[device_function]
pub fn square(x: f32) -> f32 {
    x * x
}
";

/// Does the work of a build script. The other tests run it, each time in a process of its own.
#[test]
#[ignore = "is for the processes that the other tests start"]
fn build_script() {
    PtxBuilder::new("src/kernels.rs")
        .facade(env!("CARGO_MANIFEST_DIR"))
        .arch(90)
        .cubins(Cubins::Require)
        .build()
        .unwrap_or_else(|error| panic!("{error}"));
}

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("kernel-cache-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        Self(folder)
    }

    /// Makes a package with kernels.
    fn checkout(&self, name: &str) -> PathBuf {
        let package = self.0.join(name);
        fs::create_dir_all(package.join("src")).unwrap();
        fs::write(package.join("src/kernels.rs"), KERNELS).unwrap();
        fs::write(package.join("Cargo.toml"), "[package]\nname = \"two-kernels\"\n").unwrap();
        fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock"), package.join("Cargo.lock")).unwrap();
        package
    }

    fn cache(&self) -> PathBuf {
        self.0.join("cache")
    }

    /// Starts a build of a package, without features. Its output goes to a folder of this name.
    fn start(&self, package: &Path, out_dir: &str) -> Build {
        self.start_with("", package, out_dir)
    }

    /// Starts a build with these features.
    fn start_with(&self, features: &str, package: &Path, out_dir: &str) -> Build {
        let out_dir = self.0.join(out_dir);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "build_script", "--ignored", "--nocapture"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for name in ["ARCHS", "REPORT_ARCHS", "DUMP", "LINE_INFO", "DIR"] {
            command.env_remove(format!("KERNEL_PRIMITIVES_{name}"));
        }
        command
            .env("CARGO_MANIFEST_DIR", package)
            .env("CARGO_PKG_NAME", "two-kernels")
            .env("CARGO_CFG_FEATURE", features)
            .env("CARGO_NET_OFFLINE", "true");
        command.env("OUT_DIR", &out_dir).env("KERNEL_PRIMITIVES_CACHE", self.cache());
        Build { child: command.spawn().unwrap(), out_dir }
    }

    fn build(&self, package: &Path, out_dir: &str) -> Files {
        self.start(package, out_dir).finish()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Build {
    child: Child,
    out_dir: PathBuf,
}

impl Build {
    /// Returns the files that the build left for the host.
    fn finish(self) -> Files {
        let output = self.child.wait_with_output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
        files(&self.out_dir.join("ptx"))
    }
}

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Returns the files below a folder, by their paths in it.
fn files(folder: &Path) -> Files {
    let mut all = Files::new();
    let mut open = vec![folder.to_owned()];
    while let Some(dir) = open.pop() {
        for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
            } else if path.is_file() {
                all.insert(path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    all
}

/// Returns rustc's files in the cache.
fn inner_targets(cache: &Path) -> Vec<PathBuf> {
    let work = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path().join("target"));
    work.filter(|target| target.exists()).collect()
}

#[test]
fn builds_share_what_is_whole_and_make_the_rest_again() {
    let folder = Folder::new();
    let package = folder.checkout("one");
    // Two builds run at once, of one package in two target folders, with an empty cache.
    let both = ["first", "second"].map(|out_dir| folder.start(&package, out_dir));
    let [first, second] = both.map(Build::finish);
    assert!(first == second);
    let names: Vec<&str> = first.keys().filter_map(|path| path.to_str()).collect();
    for name in ["half.sm_90.ptx", "half.sm_90.cubin", "twice.sm_90.ptx", "twice.sm_90.cubin", "twice.rs"] {
        let name = format!("two_kernels::kernels/{name}");
        assert!(names.contains(&name.as_str()), "{name} is not among {names:?}");
    }
    let ptx = &first[Path::new("two_kernels::kernels/twice.sm_90.ptx")];
    assert!(String::from_utf8_lossy(ptx).contains(".entry two_kernels__kernels__twice("));

    // There is another target folder, and a checkout elsewhere. Neither needs rustc, whose files are removed and do not come back.
    let targets = inner_targets(&folder.cache());
    assert_eq!(targets.len(), 1, "{targets:?}");
    let aside = folder.0.join("rustc's files");
    fs::rename(&targets[0], &aside).unwrap();
    assert!(folder.build(&package, "third") == first);
    let other = folder.checkout("the other one");
    assert!(folder.build(&other, "fourth") == first);
    assert!(inner_targets(&folder.cache()).is_empty());
    fs::rename(&aside, &targets[0]).unwrap();

    // Each entry is damaged in each way.
    let content = folder.cache().join("content");
    let entries =
        || -> Files { files(&content).into_iter().filter(|(path, _)| path.components().count() > 1).collect() };
    let whole = entries();
    assert!(whole.len() >= 7, "PTX of three, cubins of two, a plan and a list of files: {:?}", whole.keys());
    for damage in [|_: &[u8]| Vec::new(), |bytes: &[u8]| bytes[..bytes.len() / 2].to_vec(), |_: &[u8]| vec![b'x'; 100]]
    {
        for (path, bytes) in &whole {
            fs::write(content.join(path), damage(bytes)).unwrap();
        }
        assert!(folder.build(&package, "damaged entries") == first);
        assert!(entries() == whole);
    }

    // rustc's files are damaged where they are needed.
    let work = targets[0].parent().unwrap();
    let of_rustc = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.ends_with(".bc") || name.ends_with(".sum") || name.ends_with(".toml") || name == "lib.rs"
    };
    let names: Vec<PathBuf> =
        files(work).into_keys().filter(|path| !path.starts_with("target")).filter(of_rustc).collect();
    assert!(names.len() >= 5, "{names:?}");
    for path in names {
        let path = work.join(path);
        let bytes = fs::read(&path).unwrap();
        fs::remove_dir_all(&content).unwrap();
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert!(folder.build(&package, "damaged files of rustc") == first, "{}", path.display());
    }
    fs::remove_dir_all(&content).unwrap();
    let library =
        files(&targets[0]).into_keys().find(|path| path.extension().is_some_and(|extension| extension == "rlib"));
    let library = targets[0].join(library.unwrap());
    let bytes = fs::read(&library).unwrap();
    fs::write(&library, &bytes[..bytes.len() / 2]).unwrap();
    assert!(folder.build(&package, "damaged library") == first);

    // An edit is seen.
    fs::write(package.join("src/kernels.rs"), KERNELS.replace("0.5", "0.25")).unwrap();
    let edited = folder.build(&package, "edited");
    let differing: Vec<&Path> =
        first.keys().filter(|path| edited.get(*path) != first.get(*path)).map(|path| path.as_path()).collect();
    assert!(
        differing.iter().all(|path| path.to_string_lossy().contains("half.") || path.ends_with("report.tsv")),
        "{differing:?}"
    );
    assert!(differing.len() >= 2, "{differing:?}");

    // A feature is on in the kernels, too. All sets of features have the same folder of rustc's files.
    let conditional = "
#[cfg(feature = \"more-kernels\")]
#[kernel]
pub fn third(cx: Block, mut y: GlobalMut<f32>) {
    for i in cx.items(y.len()) {
        y.set(i, y.get(i) / if cfg!(feature = \"other\") { 4.0 } else { 3.0 });
    }
}
";
    fs::write(package.join("src/kernels.rs"), format!("{KERNELS}{conditional}")).unwrap();
    let build = |features: &str| folder.start_with(features, &package, "features").finish();
    let third = |files: &Files| files.get(Path::new("two_kernels::kernels/third.sm_90.ptx")).cloned();
    let (without, with) = (build(""), build("default,more-kernels"));
    assert!(without == first);
    assert!(third(&with).is_some() && first.keys().all(|path| with.contains_key(path)));
    assert!(third(&build("more-kernels,other")).is_some_and(|ptx| Some(ptx) != third(&with)));
    assert_eq!(inner_targets(&folder.cache()).len(), 1);
    // Without what earlier builds found in the sources, rustc's files are those of other features.
    for (features, files) in [("", &without), ("default,more-kernels", &with), ("", &without)] {
        fs::remove_dir_all(&content).unwrap();
        assert!(build(features) == *files, "{features}");
    }
}
