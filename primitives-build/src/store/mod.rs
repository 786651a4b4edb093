//! What earlier builds made, found by the content of what it was made from.
//!
//! All builds of a user share it: other packages, profiles, target folders and checkouts find the same kernels. An entry that is
//! damaged, or that another program wrote, is no entry; a store that cannot be written to keeps nothing. Then the work is done again.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

pub(crate) mod files;
pub(crate) mod plan;
pub(crate) mod work;

/// An entry that no build has used for so long is removed.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The bytes of all entries, above which those are removed that were used longest ago.
const ROOM: u64 = 2 << 30;

/// An entry's time is set anew if it is older than this: most reads write nothing.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);

const MAGIC: &[u8] = b"kernel-primitives 1\n";

/// The file whose time tells when entries were last removed. No other program has one of this name.
const TRIMMED: &str = "kernel-primitives.trimmed";

/// Names a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key([u64; 2]);

impl Key {
    /// The key of these parts, of this version of the crate.
    ///
    /// It need not be stable between versions of this crate or of the standard library: a key that does not fit only costs the
    /// work again.
    pub(crate) fn of(parts: impl Hash) -> Self {
        Self([1, 2].map(|half: u64| {
            let mut hasher = DefaultHasher::new();
            (half, env!("CARGO_PKG_VERSION"), &parts).hash(&mut hasher);
            hasher.finish()
        }))
    }

    pub(crate) fn name(self) -> String {
        let [high, low] = self.0;
        format!("{high:016x}{low:016x}")
    }

    /// Reads a [name](Self::name).
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let half = |digits: Option<&str>| u64::from_str_radix(digits?, 16).ok();
        let key = Self([half(name.get(..16))?, half(name.get(16..))?]);
        (key.name() == name).then_some(key)
    }
}

/// A folder of entries, or none.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    dir: Option<PathBuf>,
}

impl Store {
    /// The store in a cache folder; without one, a store that keeps nothing.
    pub(crate) fn new(cache: Option<&Path>) -> Self {
        Self { dir: cache.map(|cache| cache.join("content")) }
    }

    /// What was put under this key.
    pub(crate) fn get(&self, key: Key) -> Option<Vec<u8>> {
        let path = self.path(key)?;
        let bytes = fs::read(&path).ok()?;
        let head = bytes.strip_prefix(MAGIC)?.strip_prefix(key.name().as_bytes())?;
        let (sum, content) = head.split_at_checked(8)?;
        if sum != checksum(content) {
            return None;
        }
        let used = fs::metadata(&path).and_then(|data| data.modified());
        if used.is_ok_and(|used| used + FRESH < SystemTime::now()) {
            // What cannot be marked may be removed early, and is made again then.
            let _ = File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        }
        Some(content.to_vec())
    }

    /// Keeps a content, if it can.
    pub(crate) fn put(&self, key: Key, content: &[u8]) {
        let Some(path) = self.path(key) else { return };
        // Under another name until it is whole, which no other build or thread uses.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let unique = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let partial = path.with_extension(unique);
        let write = || {
            fs::create_dir_all(path.parent()?).ok()?;
            let mut file = File::options().write(true).create_new(true).open(&partial).ok()?;
            for part in [MAGIC, key.name().as_bytes(), &checksum(content), content] {
                file.write_all(part).ok()?;
            }
            drop(file);
            fs::rename(&partial, &path).ok()
        };
        if write().is_none() {
            let _ = fs::remove_file(&partial);
        }
    }

    /// Removes what was not used for long, and the oldest entries if all take too much room. Once a day.
    pub(crate) fn trim(&self) {
        let Some(dir) = &self.dir else { return };
        let mark = dir.join(TRIMMED);
        let now = SystemTime::now();
        let recent = fs::metadata(&mark).and_then(|data| data.modified()).is_ok_and(|then| then + FRESH > now);
        if !recent && fs::write(&mark, "").is_ok() {
            trim(dir, now, KEPT, ROOM);
        }
    }

    fn path(&self, key: Key) -> Option<PathBuf> {
        let name = key.name();
        // 256 folders: some file systems are slow where there are many files in one.
        Some(self.dir.as_ref()?.join(&name[..2]).join(&name[2..]))
    }
}

fn checksum(content: &[u8]) -> [u8; 8] {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish().to_le_bytes()
}

/// Removes entries. Failures are of no account: a later build tries again.
///
/// The user may have named a folder in which other programs keep files. So what `put` did not write stays, and so does all to which a
/// link leads.
fn trim(dir: &Path, now: SystemTime, kept: Duration, room: u64) {
    if !fs::symlink_metadata(dir).is_ok_and(|data| data.is_dir()) {
        return;
    }
    let is_folder = |(name, folder): &(String, fs::DirEntry)| {
        is_hexadecimal(name, 2) && folder.file_type().is_ok_and(|kind| kind.is_dir())
    };
    let files = children(dir).filter(is_folder).flat_map(|(_, folder)| children(&folder.path()));
    let mut entries: Vec<(SystemTime, u64, PathBuf)> = files
        .filter(|(name, _)| is_entry(name))
        .filter_map(|(_, file)| {
            // Of a link, this is what is known of the link itself.
            let data = file.metadata().ok().filter(|data| data.is_file())?;
            Some((data.modified().ok()?, data.len(), file.path()))
        })
        .collect();
    entries.sort();
    let mut total: u64 = entries.iter().map(|(_, length, _)| length).sum();
    for (used, length, path) in entries {
        if (used + kept < now || total > room) && begins_as_entry(&path) {
            let _ = fs::remove_file(path);
            total -= length;
        }
    }
}

/// What a folder has, with the names.
fn children(dir: &Path) -> impl Iterator<Item = (String, fs::DirEntry)> + use<> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry)))
}

fn is_hexadecimal(name: &str, digits: usize) -> bool {
    name.len() == digits && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether an entry has such a name, or a file that is no whole entry yet.
fn is_entry(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_unique = |text: &str| text.split_once('-').is_some_and(|(one, two)| is_number(one) && is_number(two));
    match name.split_once('.') {
        Some((name, suffix)) => is_hexadecimal(name, 30) && is_unique(suffix),
        None => is_hexadecimal(name, 30),
    }
}

/// Whether a file begins as an entry does. A file that is no whole entry yet may be shorter than this.
fn begins_as_entry(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut head));
    read.is_ok() && (head == MAGIC || (path.extension().is_some() && MAGIC.starts_with(&head)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn store(name: &str) -> (PathBuf, Store) {
        let dir = std::env::temp_dir().join(format!("primitives-build-store-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        (dir.clone(), Store::new(Some(&dir)))
    }

    #[test]
    fn a_content_comes_back_under_its_key_and_no_other() {
        let (dir, store) = store("get");
        let (one, two) = (Key::of(("a", 1)), Key::of(("a", 2)));
        assert_ne!(one, two);
        assert_eq!(Key::parse(&one.name()), Some(one));
        assert!(
            ["", "é", "0123456789abcdef", "+123456789abcdef0123456789abcdef"]
                .map(Key::parse)
                .iter()
                .all(Option::is_none)
        );
        assert_eq!(store.get(one), None);
        store.put(one, b"content");
        store.put(two, b"");
        assert_eq!((store.get(one).unwrap(), store.get(two).unwrap()), (b"content".to_vec(), Vec::new()));
        // Another folder's store, and none at all, know nothing of it.
        let none = Store::new(None);
        none.put(one, b"content");
        none.trim();
        assert_eq!(none.get(one), None);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_damaged_or_foreign_entry_is_none_and_is_replaced() {
        let (dir, store) = store("damage");
        let (key, other) = (Key::of("k"), Key::of("o"));
        store.put(key, b"content");
        let path = store.path(key).unwrap();
        let whole = fs::read(&path).unwrap();
        let flipped = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            bytes
        };
        let mut damaged: Vec<Vec<u8>> = (0..whole.len()).flat_map(|at| [whole[..at].to_vec(), flipped(at)]).collect();
        damaged.push([&whole[..], b"more"].concat());
        store.put(other, b"of another key");
        damaged.push(fs::read(store.path(other).unwrap()).unwrap());
        for bytes in damaged {
            fs::write(&path, &bytes).unwrap();
            assert_eq!(store.get(key), None, "{bytes:?}");
        }
        store.put(key, b"content");
        assert_eq!(store.get(key).unwrap(), b"content");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_store_that_cannot_be_written_keeps_nothing() {
        let (dir, store) = store("file");
        // A file where the folder should be.
        fs::write(&dir, "").unwrap();
        store.put(Key::of("k"), b"content");
        store.trim();
        assert_eq!(store.get(Key::of("k")), None);
        fs::remove_file(dir).unwrap();
    }

    #[test]
    fn several_builds_put_and_get_at_once() {
        let (dir, store) = store("threads");
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for i in 0..50_u8 {
                        let content = [i; 3000];
                        let found = store.get(Key::of(i));
                        assert!(found.is_none_or(|found| found == content));
                        store.put(Key::of(i), &content);
                        assert_eq!(store.get(Key::of(i)).unwrap(), content);
                    }
                });
            }
        });
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn old_entries_go_and_the_oldest_for_want_of_room() {
        let (dir, store) = store("trim");
        let now = SystemTime::now();
        let keys = [1_u64, 2, 3, 400].map(|days| {
            let key = Key::of(days);
            store.put(key, &[0; 1000]);
            let file = File::options().append(true).open(store.path(key).unwrap()).unwrap();
            file.set_modified(now - Duration::from_secs(days * 24 * 60 * 60)).unwrap();
            key
        });
        let there = || keys.map(|key| store.path(key).unwrap().exists());
        trim(&dir.join("content"), now, KEPT, ROOM);
        assert_eq!(there(), [true, true, true, false]);
        trim(&dir.join("content"), now, KEPT, 2500);
        assert_eq!(there(), [true, true, false, false]);
        // What is read is used.
        assert!(store.get(keys[1]).is_some());
        trim(&dir.join("content"), now, Duration::from_secs(60 * 60), ROOM);
        assert_eq!(there(), [false, true, false, false]);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn files_of_others_stay_though_they_are_old_and_take_room() {
        let (dir, store) = store("others");
        let content = dir.join("content");
        let (now, old) = (SystemTime::now(), SystemTime::now() - Duration::from_secs(400 * 24 * 60 * 60));
        let make = |path: &Path, bytes: &[u8]| {
            files::write(path, bytes).unwrap();
            File::options().append(true).open(path).unwrap().set_modified(old).unwrap();
        };
        store.put(Key::of(1), &[0; 1000]);
        let entry = store.path(Key::of(1)).unwrap();
        let whole = fs::read(&entry).unwrap();
        make(&entry, &whole);
        let name = "0123456789abcdef0123456789abcd";
        // Builds that were ended while they wrote.
        let partial: [(String, &[u8]); 2] =
            [(format!("ab/{name}.12-3"), &whole[..500]), (format!("ab/{name}.12-4"), &[])];
        partial.iter().for_each(|(path, bytes)| make(&content.join(path), bytes));

        let theirs: [(String, &[u8]); 9] = [
            ("posts/hello.md".into(), b"theirs"),
            ("ab/notes.txt".into(), b"theirs"),
            // A store of another program, by the same names.
            (format!("cd/{name}"), b"theirs"),
            (format!("cd/{name}.12-3"), b"theirs"),
            (format!("ef/{name}"), b""),
            // Copies of an entry.
            (format!("abc/{name}"), &whole),
            (format!("ab/{name}.md"), &whole),
            (format!("ba/{}", name.to_uppercase()), &whole),
            (name.into(), &whole),
        ];
        let theirs = theirs.map(|(path, bytes)| (content.join(path), bytes));
        theirs.iter().for_each(|(path, bytes)| make(path, bytes));
        // Links to folders and files of others, which have the names of entries.
        let elsewhere = [dir.join("elsewhere").join(name), dir.join("elsewhere").join("entry")];
        elsewhere.iter().for_each(|path| make(path, &whole));
        #[cfg(unix)]
        let free = (0..256).map(|number| content.join(format!("{number:02x}"))).find(|path| !path.exists()).unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(dir.join("elsewhere"), &free).unwrap();
            std::os::unix::fs::symlink(&elsewhere[1], content.join("ab").join(name)).unwrap();
        }

        trim(&content, now, KEPT, 0);
        assert!(!entry.exists());
        assert!(partial.iter().all(|(path, _)| !content.join(path).exists()));
        for (path, bytes) in &theirs {
            assert_eq!(fs::read(path).unwrap(), *bytes, "{}", path.display());
        }
        assert!(elsewhere.iter().all(|path| path.exists()));
        #[cfg(unix)]
        {
            assert!(free.is_symlink() && content.join("ab").join(name).is_symlink());
            // The folder itself is a link to one that others have.
            let link = dir.join("link");
            std::os::unix::fs::symlink(&content, &link).unwrap();
            make(&entry, &whole);
            trim(&link, now, KEPT, 0);
            assert!(entry.exists());
        }
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn the_mark_of_a_trimmed_store_replaces_no_file_of_others() {
        let (dir, store) = store("mark");
        store.put(Key::of(1), b"content");
        let theirs = dir.join("content/trimmed");
        fs::write(&theirs, "theirs").unwrap();
        store.trim();
        assert!(dir.join("content").join(TRIMMED).exists());
        assert_eq!(fs::read_to_string(theirs).unwrap(), "theirs");
        fs::remove_dir_all(dir).unwrap();
    }
}
