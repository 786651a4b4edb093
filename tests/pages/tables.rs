//! Makes tables of pages from the docs of functions.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Returns the docs of functions, each by its name. Each is once in the sources below a folder.
pub(super) fn docs_of(folder: &str, names: impl IntoIterator<Item = String>) -> Vec<(String, String)> {
    let mut sources = String::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            match path.is_dir() {
                true => folders.push(path),
                false => sources += &std::fs::read_to_string(path).expect("a source"),
            }
        }
    }
    let of = |name: String| {
        let heads = ["<", "("].map(|end| format!("\npub fn {name}{end}"));
        let found: Vec<usize> =
            heads.iter().flat_map(|head| sources.match_indices(head.as_str())).map(|(at, _)| at).collect();
        let &[begin] = &found[..] else { panic!("`{folder}` has {} public functions `{name}`", found.len()) };
        // An attribute may have several lines. An empty line comes before the docs.
        let before = sources[..begin].lines().rev().take_while(|line| !line.is_empty()).collect::<Vec<_>>();
        let docs = before.into_iter().rev().filter_map(|line| line.strip_prefix("///"));
        (name, docs.map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned() + "\n").collect())
    };
    names.into_iter().map(of).collect()
}

/// Writes the rows of a page's table, or tests that they are those. `head` is the line of its heads.
pub(super) fn check_table(page: &str, head: &str, rows: &str) {
    // A page with two tables is written by two tests.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(page);
    let text = std::fs::read_to_string(&path).expect("a page");
    let (before, after) = text.split_once(&format!("\n{head}\n")).expect("the heads of a table");
    let (marks, after) = after.split_once('\n').expect("a table");
    let found: String = after.split_inclusive('\n').take_while(|line| line.starts_with('|')).collect();
    if std::env::var_os("UPDATE_PAGES").is_some() {
        let text = format!("{before}\n{head}\n{marks}\n{rows}{}", &after[found.len()..]);
        std::fs::write(path, text).expect("the page is written");
    } else {
        assert_eq!(found, rows, "`UPDATE_PAGES=1 cargo test --test pages` writes this table of docs/{page}");
    }
}
