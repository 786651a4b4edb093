//! Writing output so that what did not change keeps its time stamp.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::Error;

pub(crate) fn create_dir(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(Error::io("create", path))
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(Error::io("read", path))
}

pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::io("read", path))
}

/// Writes unless the file has that content already.
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Error> {
    let content = content.as_ref();
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        create_dir(parent)?;
    }
    fs::write(path, content).map_err(Error::io("write", path))
}

/// Removes a file, which need not be there: the key of something before that is made anew.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// A key for things made by an earlier run. It need not be stable between versions of this crate or of the
/// standard library: a key that does not fit only costs the work again.
pub(crate) fn key(parts: impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    (env!("CARGO_PKG_VERSION"), parts).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// The folder that the host crate includes from; what an earlier run left and this one did not write goes.
#[derive(Debug)]
pub(crate) struct OutputDir {
    root: PathBuf,
    written: BTreeSet<PathBuf>,
}

impl OutputDir {
    pub(crate) fn new(root: PathBuf) -> Result<Self, Error> {
        create_dir(&root)?;
        Ok(Self { root, written: BTreeSet::new() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.root
    }

    pub(crate) fn write(&mut self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<(), Error> {
        let path = self.root.join(name);
        write(&path, content)?;
        self.written.insert(path);
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<(), Error> {
        sweep(&self.root, &self.written).map(drop)
    }
}

/// Removes the files under `dir` that are not in `keep`, and folders left empty; whether any file is left.
fn sweep(dir: &Path, keep: &BTreeSet<PathBuf>) -> Result<bool, Error> {
    let mut used = false;
    for entry in fs::read_dir(dir).map_err(Error::io("read", dir))? {
        let path = entry.map_err(Error::io("read", dir))?.path();
        if path.is_dir() {
            if sweep(&path, keep)? {
                used = true;
            } else {
                fs::remove_dir(&path).map_err(Error::io("remove", &path))?;
            }
        } else if keep.contains(&path) {
            used = true;
        } else {
            fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
    }
    Ok(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_run_left_is_removed() {
        let root = std::env::temp_dir().join(format!("primitives-build-{}", std::process::id()));
        let mut output = OutputDir::new(root.clone()).unwrap();
        output.write("a::b/old.ptx", "old").unwrap();
        output.write("a::c/old.ptx", "old").unwrap();
        output.write("index.txt", "old").unwrap();
        output.finish().unwrap();

        let mut output = OutputDir::new(root.clone()).unwrap();
        output.write("a::b/new.ptx", "new").unwrap();
        output.write("index.txt", "new").unwrap();
        output.finish().unwrap();

        assert_eq!(read_text(&root.join("index.txt")).unwrap(), "new");
        assert!(root.join("a::b/new.ptx").exists());
        assert!(!root.join("a::b/old.ptx").exists() && !root.join("a::c").exists());
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn keys_differ_with_their_parts() {
        assert_eq!(key(("a", 1)), key(("a", 1)));
        assert_ne!(key(("a", 1)), key(("a", 2)));
    }
}
