//! Tests limits: the lines of a file, and the files of a folder. A file or folder over a limit has its reason here, or is split by topic.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The most lines of a file.
const LINES: usize = 500;

/// The most files of a folder, without those in its folders.
const FILES: usize = 15;

/// Files with more lines, and the reason.
const LONGER: &[(&str, &str)] = &[("primitives-gpu/src/simt/nvptx.rs", "a list of instructions")];

/// Folders with more files, and the reason.
const LARGER: &[(&str, &str)] = &[];

/// Folders of Rust files. Those in them count, too.
const ROOTS: &[&str] = &[
    "benches",
    "cuda-driver",
    "examples",
    "nccl",
    "prebuilt",
    "primitives-build",
    "primitives-gpu",
    "primitives-host",
    "primitives-macros",
    "src",
    "tests",
];

/// Counts the lines of the Rust files below a folder.
fn count(root: &Path, folder: &Path, lines: &mut BTreeMap<String, usize>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.strip_prefix(root).expect("below the root").to_string_lossy().replace('\\', "/");
        if path.is_dir() {
            // Files that cargo builds there are not ours.
            if !name.ends_with("/target") {
                count(root, &path, lines);
            }
        } else if name.ends_with(".rs") {
            lines.insert(name, fs::read_to_string(&path).expect("a source").lines().count());
        }
    }
}

fn files() -> BTreeMap<String, usize> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut lines = BTreeMap::new();
    for folder in ROOTS {
        count(root, &root.join(folder), &mut lines);
    }
    lines
}

/// Compares the files and folders over a limit with the list that has their reasons.
fn check(sizes: &BTreeMap<String, usize>, most: usize, listed: &[(&str, &str)], list: &str, of: &str) {
    let has_reason = |name: &str| listed.iter().any(|(listed, _)| *listed == name);
    for (name, size) in sizes {
        assert!(
            *size <= most || has_reason(name),
            "{name} has {size} {of}, more than {most}: split it by topic, or add its reason to `{list}`:\n    (\"{name}\", \"…\"),"
        );
    }
    for (name, reason) in listed {
        let size = sizes.get(*name).unwrap_or_else(|| panic!("{name} of `{list}` is not there: remove its line"));
        assert!(*size > most, "{name} has {size} {of}: remove its line from `{list}`");
        assert!(!reason.is_empty(), "{name} has no reason in `{list}`");
    }
}

#[test]
fn a_long_file_has_a_reason() {
    check(&files(), LINES, LONGER, "LONGER", "lines");
}

#[test]
fn a_folder_with_many_files_has_a_reason() {
    let mut folders = BTreeMap::<String, usize>::new();
    for name in files().keys() {
        *folders.entry(name.rsplit_once('/').expect("in a folder").0.to_owned()).or_default() += 1;
    }
    check(&folders, FILES, LARGER, "LARGER", "files");
}

#[test]
fn what_is_over_a_ceiling_without_a_reason_is_told_with_the_line_to_add() {
    let sizes = BTreeMap::from([("src/long.rs".to_owned(), 501), ("src/short.rs".to_owned(), 500)]);
    let message = |listed: &'static [(&str, &str)]| {
        let sizes = sizes.clone();
        let checked = std::panic::catch_unwind(move || check(&sizes, 500, listed, "LONGER", "lines"));
        checked.err().map(|payload| payload.downcast_ref::<String>().expect("a message").clone())
    };
    assert!(message(&[]).is_some_and(|text| text.ends_with("(\"src/long.rs\", \"…\"),")));
    assert_eq!(message(&[("src/long.rs", "a list")]), None);
    assert!(message(&[("src/long.rs", "a list"), ("src/short.rs", "a list")]).is_some_and(|text| text.contains("500")));
    assert!(message(&[("src/gone.rs", "a list"), ("src/long.rs", "a list")]).is_some_and(|text| text.contains("gone")));
}
