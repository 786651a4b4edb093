//! Tests that no example has a collective in a loop that some threads of a block may leave early.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::peers::collectives;

/// The folders whose files have examples.
const FOLDERS: [&str; 5] = ["docs", "primitives-gpu/src", "primitives-host/src", "primitives-macros/src", "src"];

/// How the names of the block's methods begin that all threads of a block call, or all lanes of a warp.
const METHODS: [&str; 8] = ["barrier", "sync_warp", "shuffle", "try_shuffle", "ballot", "any", "all", "match_"];

/// The head of a loop over the items of a thread.
const LOOP: &str = " in cx.items(";

/// Returns the files of a folder, and of the folders in it.
fn files(folder: PathBuf) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    paths.flat_map(|path| if path.is_dir() { files(path) } else { vec![path] }).collect()
}

/// Returns the line of an example, without the marks of docs and of hidden lines. Other lines of a source are empty.
fn example(line: &str, is_page: bool) -> &str {
    let line = match is_page {
        true => line,
        false => line.trim_start().strip_prefix("///").map_or("", |line| line.strip_prefix(' ').unwrap_or(line)),
    };
    line.strip_prefix("# ").unwrap_or(line)
}

/// Returns the number of loops over items, and the collectives in them.
fn in_loops(lines: &[&str], collectives: &BTreeSet<String>) -> (usize, Vec<String>) {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let (mut loops, mut found) = (0, Vec::new());
    for (at, line) in lines.iter().enumerate() {
        let Some((_, rest)) = line.split_once(LOOP) else { continue };
        loops += 1;
        let body = lines[at + 1..].iter().take_while(|inner| inner.trim().is_empty() || indent(inner) > indent(line));
        for text in std::iter::once(&rest).chain(body) {
            let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            found.extend(words.filter(|word| collectives.contains(*word)).map(str::to_owned));
            let methods = text.split("cx.").skip(1);
            let methods = methods.filter(|method| METHODS.iter().any(|begin| method.starts_with(begin)));
            found.extend(methods.map(|method| format!("cx.{method}")));
        }
    }
    (loops, found)
}

fn all_collectives() -> BTreeSet<String> {
    let mut names = collectives(include_str!("../../primitives-gpu/src/warp/mod.rs"));
    names.append(&mut collectives(include_str!("../../primitives-gpu/src/block/mod.rs")));
    names
}

#[test]
fn no_example_has_a_collective_in_a_loop_over_items() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (names, mut loops) = (all_collectives(), 0);
    for path in FOLDERS.into_iter().flat_map(|folder| files(root.join(folder))) {
        let is_page = path.extension().is_some_and(|end| end == "md");
        if !is_page && path.extension().is_none_or(|end| end != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a text");
        let lines: Vec<&str> = text.lines().map(|line| example(line, is_page)).collect();
        let (count, found) = in_loops(&lines, &names);
        assert_eq!(found, [""; 0], "in a loop over items, in {path:?}: loop over tiles");
        loops += count;
    }
    assert!(loops > 15, "only {loops} loops were found");
}

#[test]
fn a_collective_in_a_loop_over_items_is_found() {
    let found = |text: &str| in_loops(&text.lines().collect::<Vec<_>>(), &all_collectives());
    assert_eq!(found("for i in cx.items(n) {\n    out.set(i, x[i]);\n}\nlet x = warp_reduce(cx, y, Add);").1, [""; 0]);
    assert_eq!(found("for i in cx.items(n) {\n\n    let x = warp_reduce(cx, y, Add);\n}").1, ["warp_reduce"]);
    assert_eq!(found("for i in cx.items(n) { cx.barrier() }").1, ["cx.barrier() }"]);
}
