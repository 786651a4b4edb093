//! Where intermediate files lie: a folder that all builds of a package share, whatever their profile, features and target folder,
//! so that each kernel is compiled once.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::Error;
use crate::files;
use crate::store::is_hexadecimal;

/// Names the folder that holds the shared ones; empty for none.
pub(crate) const CACHE: &str = "KERNEL_PRIMITIVES_CACHE";

/// What no build has used for so long is removed.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The bytes of all folders, above which those are emptied that were used longest ago.
const ROOM: u64 = 2 << 30;

/// What was used since then stays, whatever room it takes: these builds are of work that goes on.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// The intermediate files of one package with one set of options. While it is held, no other build has it.
#[derive(Debug)]
pub(crate) struct Work {
    dir: PathBuf,
    _lock: Option<File>,
}

impl Work {
    /// The folder in the user's cache, or in `out_dir` where there is none or nothing can be written to it. Waits for a build that
    /// has it. `key` is what differs between builds whose files have the same names.
    pub(crate) fn open(package: &str, key: impl Hash, out_dir: &Path) -> Result<Self, Error> {
        if let Some(cache) = cache() {
            let dir = cache.join(format!("{package}-{}", files::key(key)));
            if let Ok(lock) = locked(&dir) {
                remove_unused(&cache, SystemTime::now(), ROOM);
                return Ok(Self { dir, _lock: Some(lock) });
            }
        }
        let dir = out_dir.join("kernel-primitives");
        files::create_dir(&dir)?;
        Ok(Self { dir, _lock: None })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }
}

/// The folder that all builds of a user share, if there is one.
pub(crate) fn cache() -> Option<PathBuf> {
    cache_dir(&|name| env::var_os(name))
}

/// The relative path that the user named, which is no folder: the build scripts of a program run in several folders.
pub(crate) fn relative_cache() -> Option<PathBuf> {
    relative(env::var_os(CACHE))
}

fn relative(named: Option<OsString>) -> Option<PathBuf> {
    named.map(PathBuf::from).filter(|dir| !dir.as_os_str().is_empty() && !dir.is_absolute())
}

fn cache_dir(var: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if let Some(named) = var(CACHE) {
        return Some(PathBuf::from(named)).filter(|dir| dir.is_absolute());
    }
    let of = |name: &str| var(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    let user = if cfg!(windows) {
        of("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        of("HOME").map(|home| home.join("Library/Caches"))
    } else {
        of("XDG_CACHE_HOME").or_else(|| of("HOME").map(|home| home.join(".cache")))
    };
    user.map(|dir| dir.join("kernel-primitives"))
}

/// A name that tells these folders from those of others, and is no crate's.
const LOCK: &str = "kernel-primitives.lock";

/// The lock's time stamp tells when the folder was last used.
fn locked(dir: &Path) -> std::io::Result<File> {
    fs::create_dir_all(dir)?;
    let lock = File::options().create(true).truncate(false).write(true).open(dir.join(LOCK))?;
    lock.lock()?;
    lock.set_modified(SystemTime::now())?;
    Ok(lock)
}

/// Empties what was not used for long, and the rest beginning with what was used longest ago, until it takes no more than this room. The
/// lock stays, for which another build may be waiting. Failures are of no account: the next build tries again.
fn remove_unused(cache: &Path, now: SystemTime, room: u64) {
    let entries = fs::read_dir(cache).into_iter().flatten().flatten().filter(is_work);
    let mut folders: Vec<(SystemTime, u64, PathBuf)> = entries
        .filter_map(|entry| {
            let dir = entry.path();
            Some((fs::metadata(dir.join(LOCK)).and_then(|lock| lock.modified()).ok()?, size(&dir), dir))
        })
        .collect();
    folders.sort();
    let mut total: u64 = folders.iter().map(|(_, size, _)| size).sum();
    for (used, size, dir) in folders {
        let is_old = used + KEPT < now || (total > room && used + FRESH < now);
        if !is_old {
            continue;
        }
        let Ok(lock) = File::options().write(true).open(dir.join(LOCK)) else { continue };
        // Another build may have had it in the meantime.
        let is_unused = lock.try_lock().is_ok()
            && lock.metadata().and_then(|data| data.modified()).is_ok_and(|modified| modified == used);
        if is_unused {
            empty(&dir);
            total -= size;
        }
    }
}

/// The bytes of the files below a folder. It follows no links.
fn size(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => size(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

/// Removes all from a folder but its lock.
fn empty(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let _ = match entry.file_type() {
            _ if entry.file_name() == LOCK => Ok(()),
            // What a link leads to is of others.
            Ok(kind) if kind.is_dir() => fs::remove_dir_all(entry.path()),
            _ => fs::remove_file(entry.path()),
        };
    }
}

/// Whether `Work::open` made this: a folder, and no link to one, with a name of this form and a lock.
fn is_work(entry: &fs::DirEntry) -> bool {
    let name = entry.file_name().into_string().unwrap_or_default();
    let is_named = name.rsplit_once('-').is_some_and(|(package, key)| !package.is_empty() && is_hexadecimal(key, 16));
    let is_folder = || entry.file_type().is_ok_and(|kind| kind.is_dir());
    is_named && is_folder() && fs::symlink_metadata(entry.path().join(LOCK)).is_ok_and(|lock| lock.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_folder_goes_before_the_users() {
        let cache = |named: Option<&str>| {
            let home = if cfg!(windows) { "C:\\u" } else { "/u" };
            cache_dir(&|name| match name {
                CACHE => named.map(OsString::from),
                "HOME" | "LOCALAPPDATA" => Some(home.into()),
                _ => None,
            })
        };
        let root = if cfg!(windows) { "C:\\c" } else { "/c" };
        assert_eq!(cache(Some(root)), Some(PathBuf::from(root)));
        assert_eq!(cache(Some("")), None);
        assert_eq!(cache(Some("relative")), None);
        // The build warns of this one alone.
        assert_eq!(relative(Some("relative".into())), Some("relative".into()));
        assert_eq!([Some(root), Some(""), None].map(|named| relative(named.map(OsString::from))), [None, None, None]);
        assert!(cache(None).unwrap().ends_with("kernel-primitives"));
        assert_eq!(cache_dir(&|_| None), None);
    }

    #[test]
    fn a_folder_is_held_by_one_and_emptied_when_unused() {
        let cache = env::temp_dir().join(format!("primitives-build-cache-{}", std::process::id()));
        let (held, unused) = (cache.join("held-0123456789abcdef"), cache.join("un-used-fedcba9876543210"));
        let lock = locked(&held).unwrap();
        drop(locked(&unused).unwrap());
        let files = [&held, &unused].map(|dir| dir.join("target/file"));
        files.iter().for_each(|file| files::write(file, "made").unwrap());
        assert!(matches!(File::open(held.join(LOCK)).unwrap().try_lock(), Err(fs::TryLockError::WouldBlock)));

        remove_unused(&cache, SystemTime::now() + KEPT - Duration::from_secs(60), ROOM);
        assert!(files[0].exists() && files[1].exists());
        remove_unused(&cache, SystemTime::now() + KEPT + Duration::from_secs(60), ROOM);
        assert!(files[0].exists() && !files[1].exists());
        drop(lock);
        fs::remove_dir_all(&cache).unwrap();
    }

    #[test]
    fn folders_go_for_want_of_room_unless_they_are_held_or_were_used_lately() {
        let cache = env::temp_dir().join(format!("primitives-build-room-{}", std::process::id()));
        let _ = fs::remove_dir_all(&cache);
        let now = SystemTime::now();
        let hour = Duration::from_secs(60 * 60);
        // The hours since each was used. The first is held.
        let hours = [200, 100, 50, 2, 1];
        let dirs = [0, 1, 2, 3, 4].map(|i| cache.join(format!("app-{i:016x}")));
        let mut held = None;
        for (dir, hours) in dirs.iter().zip(hours) {
            let lock = locked(dir).unwrap();
            files::write(&dir.join("target/file"), [0; 1000]).unwrap();
            lock.set_modified(now - hour * hours).unwrap();
            held = held.or(Some(lock));
        }
        let there = || dirs.each_ref().map(|dir| dir.join("target/file").exists());
        remove_unused(&cache, now, 5000);
        assert_eq!(there(), [true; 5]);
        remove_unused(&cache, now, 4500);
        assert_eq!(there(), [true, false, true, true, true]);
        remove_unused(&cache, now, 0);
        assert_eq!(there(), [true, false, false, true, true]);
        drop(held);
        remove_unused(&cache, now, 2500);
        assert_eq!(there(), [false, false, false, true, true]);
        fs::remove_dir_all(&cache).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn folders_of_others_and_what_links_lead_to_stay() {
        use std::os::unix::fs::symlink;
        let cache = env::temp_dir().join(format!("primitives-build-others-{}", std::process::id()));
        let _ = fs::remove_dir_all(&cache);
        let made = |dir: &Path| {
            files::write(&dir.join("file"), "made").unwrap();
            dir.join("file")
        };
        let own = cache.join("app-0123456789abcdef");
        drop(locked(&own).unwrap());
        // A copy of the lock makes no folder one of these, and neither does the name.
        let theirs = ["site", "site-2026", "0123456789abcdef", "-0123456789abcdef", "app-0123456789ABCDEF"];
        let theirs = theirs.map(|name| cache.join(name));
        theirs.iter().for_each(|dir| drop(locked(dir).unwrap()));
        let mut files = theirs.map(|dir| made(&dir)).to_vec();
        files.push(made(&cache.join("app-aaaaaaaaaaaaaaaa")));
        // Links: the folder, its lock, and what is in it.
        let elsewhere = cache.join("elsewhere");
        files.push(made(&elsewhere));
        drop(locked(&elsewhere).unwrap());
        symlink(&elsewhere, cache.join("app-bbbbbbbbbbbbbbbb")).unwrap();
        files.push(made(&cache.join("app-cccccccccccccccc")));
        symlink(elsewhere.join(LOCK), cache.join("app-cccccccccccccccc").join(LOCK)).unwrap();
        fs::create_dir(own.join("src")).unwrap();
        symlink(&elsewhere, own.join("src/kernels")).unwrap();
        symlink(&elsewhere, own.join("kernels")).unwrap();
        symlink(elsewhere.join("file"), own.join("kernels.rs")).unwrap();

        remove_unused(&cache, SystemTime::now() + KEPT + Duration::from_secs(60), ROOM);
        assert_eq!(fs::read_dir(&own).unwrap().count(), 1, "the lock alone");
        for file in files {
            assert!(file.exists(), "{}", file.display());
        }
        fs::remove_dir_all(&cache).unwrap();
    }
}
