//! What an earlier build found in a crate's sources: its kernels, and where their PTX lies in the store.
//!
//! rustc is most of the time of a build in which nothing changed but the folder. A crate's sources are known only once it was
//! compiled, so this takes two steps: what stands in the manifest finds the files that an earlier build read, and their content
//! finds the kernels.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::files;
use crate::store::{Key, Store};

/// So many sets of files are remembered of one crate: those of several branches, say.
const REMEMBERED: usize = 8;

/// Folders that have other names in other checkouts, and what stands for them.
#[derive(Clone, Debug)]
pub(crate) struct Folders(Vec<(PathBuf, &'static str)>);

impl Folders {
    pub(crate) fn new(package: &Path, facade: &Path) -> Self {
        let mut folders = vec![(package.to_owned(), "<package>"), (facade.to_owned(), "<facade>")];
        // One may lie in the other.
        folders.sort_by_key(|(path, _)| std::cmp::Reverse(path.as_os_str().len()));
        Self(folders)
    }

    /// The text without these folders.
    pub(crate) fn portable(&self, text: &str) -> String {
        let without = |text: String, (folder, name): &(PathBuf, &str)| match folder.to_str() {
            Some(folder) => replace_path(&text, folder, name),
            None => text,
        };
        self.0.iter().fold(text.to_owned(), without)
    }

    /// The name of a file in every checkout; its path, if it lies in neither folder.
    fn name(&self, file: &Path) -> Option<String> {
        for (folder, name) in &self.0 {
            if let Ok(rest) = file.strip_prefix(folder) {
                return Some(format!("{name}/{}", rest.to_str()?));
            }
        }
        file.to_str().map(str::to_owned)
    }

    fn real(&self, name: &str) -> PathBuf {
        let rest = |(folder, start): &(PathBuf, &str)| Some(folder.join(name.strip_prefix(start)?.strip_prefix('/')?));
        self.0.iter().find_map(rest).unwrap_or_else(|| name.into())
    }

    fn contain(&self, file: &Path) -> bool {
        self.0.iter().any(|(folder, _)| file.starts_with(folder))
    }
}

/// The text with another name for a folder, wherever that is a whole path or the beginning of one.
fn replace_path(text: &str, folder: &str, name: &str) -> String {
    let is_of_a_name = |c: char| c.is_alphanumeric() || "/_-.".contains(c);
    let (mut out, mut rest, mut before) = (String::with_capacity(text.len()), text, None);
    while let Some(at) = rest.find(folder) {
        let (head, tail) = (&rest[..at], &rest[at + folder.len()..]);
        let begins = head.chars().next_back().or(before).is_none_or(|c| !is_of_a_name(c));
        let ends = tail.chars().next().is_none_or(|c| c == '/' || !is_of_a_name(c));
        out.push_str(head);
        out.push_str(if begins && ends { name } else { folder });
        before = folder.chars().next_back();
        rest = tail;
    }
    out + rest
}

/// The files and variables that a compilation read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inputs {
    pub(crate) files: BTreeSet<PathBuf>,
    /// Names of environment variables.
    pub(crate) variables: BTreeSet<String>,
}

impl Inputs {
    /// Adds the manifests of the packages that the files may be of.
    pub(crate) fn add_manifests(&mut self) {
        let folders: BTreeSet<&Path> = self.files.iter().flat_map(|file| file.ancestors().skip(1)).collect();
        let manifests: Vec<PathBuf> =
            folders.into_iter().map(|folder| folder.join("Cargo.toml")).filter(|path| path.is_file()).collect();
        self.files.extend(manifests);
    }

    /// Whether none was written since then, and none is of `made`, a folder of what the compilation itself made: their content is
    /// what the compiler read, and says all of it.
    pub(crate) fn are_settled(&self, then: SystemTime, made: &Path) -> bool {
        let settled = |file: &PathBuf| fs::metadata(file).is_ok_and(|data| written(&data).is_some_and(|at| at < then));
        self.files.iter().all(|file| !file.starts_with(made) && settled(file))
    }

    /// The key of what they hold now.
    fn key(&self, manifest: Key, folders: &Folders) -> Option<Key> {
        let mut parts = Vec::new();
        for file in &self.files {
            // A folder, which a build script may name, has a content that is not read here.
            if file.is_dir() {
                return None;
            }
            parts.push((folders.name(file)?, fs::read(file).ok()));
        }
        let variables: Vec<_> = self.variables.iter().map(|name| (name, env::var_os(name))).collect();
        Some(Key::of(("inputs", manifest, parts, variables)))
    }

    fn to_text(&self, folders: &Folders) -> Option<String> {
        let mut text = String::new();
        for file in &self.files {
            text.push_str(&format!("file {}\n", folders.name(file)?));
        }
        for name in &self.variables {
            text.push_str(&format!("variable {name}\n"));
        }
        Some(text)
    }

    fn from_text(text: &str, folders: &Folders) -> Option<Self> {
        let mut inputs = Self::default();
        for line in text.lines() {
            match line.split_once(' ')? {
                ("file", path) => inputs.files.insert(folders.real(path)),
                ("variable", name) => inputs.variables.insert(name.to_owned()),
                _ => return None,
            };
        }
        Some(inputs)
    }
}

/// Finds plans in the store.
#[derive(Debug)]
pub(crate) struct Plans<'a> {
    pub(crate) store: &'a Store,
    pub(crate) folders: Folders,
}

impl Plans<'_> {
    /// What earlier compilations of this manifest read, with the keys of what stands there now.
    pub(crate) fn find(&self, manifest: Key) -> impl Iterator<Item = (Inputs, Key)> {
        [manifest, self.of_these_folders(manifest)].into_iter().flat_map(move |manifest| {
            self.remembered(manifest).into_iter().filter_map(move |text| {
                let inputs = Inputs::from_text(&text, &self.folders)?;
                let key = inputs.key(manifest, &self.folders)?;
                Some((inputs, key))
            })
        })
    }

    /// The key of what a compilation read, as it stands there now.
    pub(crate) fn key(&self, manifest: Key, inputs: &Inputs) -> Option<Key> {
        inputs.key(self.manifest_of(manifest, inputs), &self.folders)
    }

    /// Remembers what a compilation read.
    pub(crate) fn remember(&self, manifest: Key, inputs: &Inputs) {
        let manifest = self.manifest_of(manifest, inputs);
        let Some(text) = inputs.to_text(&self.folders) else { return };
        let mut all = self.remembered(manifest);
        all.retain(|other| *other != text);
        all.insert(0, text);
        all.truncate(REMEMBERED);
        self.store.put(Key::of(("files", manifest)), all.join("\n").as_bytes());
    }

    /// A file that lies in neither folder has another path in another checkout, which a manifest may name relative to one of them:
    /// then the list holds for these folders alone.
    fn manifest_of(&self, manifest: Key, inputs: &Inputs) -> Key {
        let everywhere = inputs.files.iter().all(|file| self.folders.contain(file));
        if everywhere { manifest } else { self.of_these_folders(manifest) }
    }

    fn of_these_folders(&self, manifest: Key) -> Key {
        Key::of((manifest, &self.folders.0))
    }

    fn remembered(&self, manifest: Key) -> Vec<String> {
        let bytes = self.store.get(Key::of(("files", manifest))).unwrap_or_default();
        // An empty line parts them.
        let text = String::from_utf8(bytes).unwrap_or_default();
        text.split("\n\n").filter(|set| !set.is_empty()).map(|set| format!("{}\n", set.trim_end())).collect()
    }
}

/// When a file was last changed. Some programs set an older time of modification, never one of change.
fn written(data: &fs::Metadata) -> Option<SystemTime> {
    let modified = data.modified().ok()?;
    #[cfg(unix)]
    let modified = {
        use std::os::unix::fs::MetadataExt;
        let changed = Duration::new(data.ctime().try_into().ok()?, data.ctime_nsec().try_into().ok()?);
        modified.max(SystemTime::UNIX_EPOCH + changed)
    };
    Some(modified)
}

/// Names of environment variables in rustc's dep-info files of a folder, and those that build scripts name, whose output cargo keeps
/// beside it.
pub(crate) fn variables(deps: &Path) -> BTreeSet<String> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let dep_infos = entries(deps).filter(|path| path.extension().is_some_and(|extension| extension == "d"));
    let mut found: BTreeSet<String> =
        dep_infos.filter_map(|path| files::read_text(&path).ok()).flat_map(|text| variables_of(&text)).collect();
    for script in entries(&deps.with_file_name("build")) {
        let output = files::read_text(&script.join("output")).unwrap_or_default();
        let named = output.lines().filter_map(|line| {
            line.strip_prefix("cargo::rerun-if-env-changed=")
                .or_else(|| line.strip_prefix("cargo:rerun-if-env-changed="))
        });
        found.extend(named.map(str::to_owned));
    }
    found
}

fn variables_of(dep_info: &str) -> Vec<String> {
    let named = dep_info.lines().filter_map(|line| line.strip_prefix("# env-dep:"));
    named.map(|named| named.split_once('=').map_or(named, |(name, _)| name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of files, a store beside it, and both in a folder of the test's own.
    fn checkout(test: &str, name: &str) -> PathBuf {
        let root = env::temp_dir().join(format!("primitives-build-plan-{test}-{}", std::process::id())).join(name);
        files::write(&root.join("src/kernels.rs"), "kernels").unwrap();
        files::write(&root.join("Cargo.toml"), "manifest").unwrap();
        root
    }

    fn inputs(root: &Path) -> Inputs {
        let mut inputs = Inputs { files: [root.join("src/kernels.rs")].into(), variables: ["PATH".to_owned()].into() };
        inputs.add_manifests();
        inputs
    }

    #[test]
    fn the_same_sources_are_found_in_another_folder_and_others_are_not() {
        let (one, two) = (checkout("found", "one"), checkout("found", "the other one"));
        let store = Store::new(one.parent());
        let plans = |root: &Path| Plans { store: &store, folders: Folders::new(root, root) };
        let manifest = Key::of("manifest");
        assert_eq!(plans(&one).find(manifest).count(), 0);
        plans(&one).remember(manifest, &inputs(&one));
        let key = plans(&one).key(manifest, &inputs(&one)).unwrap();
        let found: Vec<_> = plans(&two).find(manifest).collect();
        assert_eq!(found, [(inputs(&two), key)]);
        assert_eq!(found[0].0.files, [two.join("Cargo.toml"), two.join("src/kernels.rs")].into());

        // Another content, of a source or of a manifest, and a file that is gone: other keys.
        let mut keys = vec![key];
        for (file, text) in [("src/kernels.rs", "changed"), ("Cargo.toml", "changed")] {
            files::write(&two.join(file), text).unwrap();
            keys.extend(plans(&two).find(manifest).map(|(_, key)| key));
        }
        files::remove(&two.join("src/kernels.rs")).unwrap();
        keys.extend(plans(&two).find(manifest).map(|(_, key)| key));
        let different: BTreeSet<String> = keys.iter().map(|key| format!("{key:?}")).collect();
        assert_eq!((keys.len(), different.len()), (4, 4));
        assert_eq!(plans(&two).find(Key::of("another")).count(), 0);
        fs::remove_dir_all(one.parent().unwrap()).unwrap();
    }

    #[test]
    fn several_sets_of_files_are_remembered_the_last_first() {
        let root = checkout("several", "one");
        let store = Store::new(root.parent());
        let plans = Plans { store: &store, folders: Folders::new(&root, &root) };
        let manifest = Key::of("manifest");
        let set = |i: usize| Inputs { files: [root.join(format!("src/{i}.rs"))].into(), ..Inputs::default() };
        for i in [0, 1, 2, 3, 4, 5, 6, 7, 8, 3] {
            plans.remember(manifest, &set(i));
        }
        let found: Vec<_> = plans.find(manifest).map(|(inputs, _)| inputs).collect();
        assert_eq!(found, [3, 8, 7, 6, 5, 4, 2, 1].map(set));
        fs::remove_dir_all(root.parent().unwrap()).unwrap();
    }

    #[test]
    fn files_that_change_under_the_compiler_are_not_settled() {
        let root = checkout("settled", "one");
        let inputs = inputs(&root);
        let (before, after) =
            (SystemTime::now() - Duration::from_secs(60), SystemTime::now() + Duration::from_secs(60));
        assert!(inputs.are_settled(after, &root.join("made")));
        assert!(!inputs.are_settled(before, &root.join("made")));
        assert!(!inputs.are_settled(after, &root.join("src")));
        // A copy that keeps the time of another file.
        let file = fs::File::options().append(true).open(root.join("src/kernels.rs")).unwrap();
        file.set_modified(before - Duration::from_secs(60)).unwrap();
        #[cfg(unix)]
        assert!(!inputs.are_settled(before, &root.join("made")));
        fs::remove_file(root.join("src/kernels.rs")).unwrap();
        assert!(!inputs.are_settled(after, &root.join("made")));
        fs::remove_dir_all(root.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_folder_has_no_content_that_a_key_could_be_of() {
        let root = checkout("folder", "one");
        let store = Store::new(root.parent());
        let plans = Plans { store: &store, folders: Folders::new(&root, &root) };
        let (manifest, inputs) =
            (Key::of("manifest"), Inputs { files: [root.join("src")].into(), ..Inputs::default() });
        assert!(plans.key(manifest, &inputs).is_none());
        plans.remember(manifest, &inputs);
        assert_eq!(plans.find(manifest).count(), 0);
        fs::remove_dir_all(root.parent().unwrap()).unwrap();
    }

    #[test]
    fn folders_inside_one_another_keep_their_names() {
        let folders = Folders::new(Path::new("/f/tests/user"), Path::new("/f"));
        let text = "/f/tests/user/src/k.rs /f/src/lib.rs";
        assert_eq!(folders.portable(text), "<package>/src/k.rs <facade>/src/lib.rs");
        assert_eq!(folders.real("<package>/src/k.rs"), Path::new("/f/tests/user/src/k.rs"));
        assert_eq!(folders.real("<facade>/src/lib.rs"), Path::new("/f/src/lib.rs"));
        assert_eq!(folders.real("/other"), Path::new("/other"));
    }

    #[test]
    fn a_folder_whose_name_comes_again_is_found_again() {
        let folders = Folders::new(Path::new("/src"), Path::new("/f"));
        for path in ["/src/src/kernels.rs", "/src/Cargo.toml", "/srcs/lib.rs", "/x/src/lib.rs"] {
            assert_eq!(folders.real(&folders.name(Path::new(path)).unwrap()), Path::new(path));
        }
        let text = "lib = { path = \"/src/src\" } \"/srcs\" \"/x/src/lib.rs\" \"/src\" /src";
        let portable = "lib = { path = \"<package>/src\" } \"/srcs\" \"/x/src/lib.rs\" \"<package>\" <package>";
        assert_eq!(folders.portable(text), portable);
    }

    #[test]
    fn a_sibling_of_the_package_is_that_of_the_checkout() {
        let (one, two) = (checkout("sibling", "one/app"), checkout("sibling", "two/app"));
        let library = |root: &Path| root.parent().unwrap().join("lib/src/lib.rs");
        let store = Store::new(one.ancestors().nth(2));
        let plans = |root: &Path| Plans { store: &store, folders: Folders::new(root, root) };
        let manifest = Key::of("lib = { path = \"<package>/../lib\" }");
        for root in [&one, &two] {
            files::write(&library(root), root.to_str().unwrap()).unwrap();
            let inputs = Inputs { files: [library(root)].into(), ..Inputs::default() };
            assert_eq!(plans(root).find(manifest).count(), 0, "the other checkout's list");
            plans(root).remember(manifest, &inputs);
            let key = plans(root).key(manifest, &inputs).unwrap();
            assert_eq!(plans(root).find(manifest).collect::<Vec<_>>(), [(inputs, key)]);
        }
        fs::remove_dir_all(one.ancestors().nth(2).unwrap()).unwrap();
    }

    #[test]
    fn variables_are_read_from_the_output_of_build_scripts() {
        let root = checkout("scripts", "release");
        files::write(&root.join("deps/a.d"), "a.ptx: a.rs\n\n# env-dep:SIZE=32\n").unwrap();
        files::write(&root.join("build/one-1/output"), "cargo::rerun-if-env-changed=ONE\ncargo:rustc-cfg=x\n").unwrap();
        files::write(&root.join("build/two-1/output"), "cargo:rerun-if-env-changed=TWO\n").unwrap();
        let names: Vec<String> = variables(&root.join("deps")).into_iter().collect();
        assert_eq!(names, ["ONE", "SIZE", "TWO"]);
        fs::remove_dir_all(root.parent().unwrap()).unwrap();
    }

    #[test]
    fn variables_are_read_from_dep_info() {
        let text = "a.ptx: a.rs\n\n# env-dep:SIZE=32\n# env-dep:UNSET\n";
        assert_eq!(variables_of(text), ["SIZE", "UNSET"]);
    }
}
