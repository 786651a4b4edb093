//! Tests the tables of algorithms, and writes them: `UPDATE_PAGES=1 cargo test --test pages`.

use std::collections::BTreeSet;
use std::path::Path;

use super::quoted;
use super::tables::{check_table, docs_of};

/// Returns what the module of algorithms exports.
pub(super) fn exports() -> BTreeSet<String> {
    let exports = include_str!("../../src/algorithms/mod.rs")
        .split("\npub use ")
        .skip(1)
        .filter_map(|rest| rest.split(';').next());
    exports
        .flat_map(|list| list.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':'))
        .filter(|name| !name.is_empty() && !name.ends_with("::"))
        .map(str::to_owned)
        .collect()
}

/// Returns whether a name is a function's.
fn is_function(name: &str) -> bool {
    name.starts_with(|c: char| c.is_lowercase())
}

/// Returns the functions that the module of algorithms exports.
fn algorithms() -> BTreeSet<String> {
    exports().into_iter().filter(|name| is_function(name)).collect()
}

/// Returns the link of a page to what the module of algorithms exports.
pub(super) fn link(name: &str) -> String {
    format!("[`{name}`]({}crate::algorithms::{name})", if is_function(name) { "fn@" } else { "" })
}

/// Returns the algorithms in the order of the table in the module's docs.
fn listed() -> Vec<String> {
    let docs: String = include_str!("../../src/algorithms/mod.rs")
        .lines()
        .filter_map(|line| Some(line.strip_prefix("//! ")?.to_owned() + "\n"))
        .collect();
    let names = super::rows(&docs).into_iter().flat_map(|row| quoted(row[0]).collect::<Vec<_>>());
    names.filter(|name| is_function(name)).collect()
}

#[test]
fn the_table_of_algorithms_lists_each_once() {
    let (mut listed, exported) = (listed(), algorithms());
    listed.sort();
    assert_eq!(
        listed,
        exported.into_iter().collect::<Vec<_>>(),
        "the rows in `src/algorithms/mod.rs`, and its exports"
    );
}

/// Algorithms without a row in the benchmarks, and similar algorithms that have one.
const UNMEASURED: [(&str, &str); 19] = [
    ("exclusive_scan_by_key", "inclusive_scan_by_key"),
    ("fft_by", "fft"),
    ("fft_in_place", "fft"),
    ("histogram_ranges", "histogram_even"),
    ("ifft_in_place", "ifft"),
    ("irfft", "rfft"),
    ("merge_pairs", "merge"),
    ("segmented_exclusive_scan", "segmented_inclusive_scan"),
    ("segmented_sort_pairs", "segmented_sort"),
    ("select_flagged", "select_if"),
    ("sort_keys_by_bits", "sort_keys"),
    ("sort_pairs_by_bits", "sort_pairs"),
    ("spmm_by", "spmv"),
    ("spmm_with", "spmv_with"),
    ("spmv_by", "spmv"),
    ("stable_partition", "partition"),
    ("top_k_pairs", "top_k"),
    ("unique_by_key", "unique"),
    ("upper_bound", "lower_bound"),
];

#[test]
fn every_algorithm_is_measured_or_like_one_that_is() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/gpu")];
    let mut words = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let source = std::fs::read_to_string(path).expect("a source");
            words.extend(source.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_owned));
        }
    }
    for name in algorithms() {
        let like = UNMEASURED.iter().find(|unmeasured| unmeasured.0 == name).map(|unmeasured| unmeasured.1);
        match like {
            None => {
                assert!(words.contains(&name), "add a row to the benchmarks, or to `UNMEASURED`: (\"{name}\", \"…\"),")
            }
            Some(like) => assert!(words.contains(like) && !words.contains(&name), "`UNMEASURED` is wrong about {name}"),
        }
    }
}

/// Returns the docs of each algorithm, in the order of the table.
pub(super) fn docs() -> Vec<(String, String)> {
    docs_of("src/algorithms", listed())
}

/// The heads of the table of one row in the docs of each algorithm.
const GUARANTEES: &str =
    "| [same bits](crate::docs::guarantees#determinism-and-order) on every run | same bits on every device | order |";

/// The table of the page has the row of each algorithm's docs. Each test that a row names exists.
#[test]
fn what_is_guaranteed_is_in_the_docs_of_every_algorithm_and_names_tests_that_are_there() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut table = String::new();
    for (name, docs) in docs() {
        let row = docs.split_once(GUARANTEES).and_then(|(_, table)| table.lines().nth(2));
        let row = row.unwrap_or_else(|| panic!("the docs of `{name}` have no table with one row: {GUARANTEES}"));
        table += &format!("| {} {row}\n", link(&name));
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        assert!(cells.len() == 3 && cells.iter().all(|cell| !cell.is_empty()), "{row:?} of {name} has an empty cell");
        for test in cells.into_iter().flat_map(quoted).filter(|test| test.contains("::")) {
            let words: Vec<&str> = test.split("::").collect();
            let found = match words[..] {
                ["net", "properties", family] => {
                    let main = std::fs::read_to_string(tests.join("net/main.rs")).unwrap_or_default();
                    main.lines().any(|line| line.trim().starts_with('[') && line.contains(&format!(" {family}")))
                }
                [binary, ref modules @ .., test] => {
                    let file = if modules.is_empty() { "main".to_owned() } else { modules.join("/") };
                    let file = std::fs::read_to_string(tests.join(binary).join(file + ".rs")).unwrap_or_default();
                    file.contains(&format!("fn {test}()"))
                }
                _ => false,
            };
            assert!(found, "{test}, of the row of {name}, is no test");
        }
    }
    check_table("guarantees.md", "| algorithm | same bits on every run | same bits on every device | order |", &table);
}

/// Returns what the library ships: for each algorithm's arguments, the lists that they are taken from.
fn ready(table: &str) -> Vec<(String, Vec<String>)> {
    let table = table.split("__shipped! {").nth(1).expect("the table");
    let table: String = table.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for part in table.split("for ").skip(1) {
        let (head, body) = part.split_once('{').expect("a body");
        if head.trim_end().ends_with(" share") {
            continue;
        }
        // The text `T in numbers as moved, R in [Min, Max]` is split at the commas that come before a variable.
        let mut lists = Vec::new();
        for variable in head.split(" in ").collect::<Vec<_>>().windows(2) {
            let name = variable[0].rsplit(", ").next().expect("a name").trim();
            let list = variable[1].rsplit_once("], ").map_or(variable[1], |(list, _)| list).trim();
            let list = list.split(" as ").next().expect("a list").split(", ").collect::<Vec<_>>();
            let list = if list[0].starts_with('[') { list } else { list[..1].to_vec() };
            let list: Vec<&str> = list.into_iter().map(|one| one.trim_matches(['[', ']', ' '])).collect();
            lists.push((name, list));
        }
        let body = body.split('}').next().expect("its end");
        let mut depth = 0;
        let algorithms = body.split(|c| {
            depth += (c == '<') as i32 - (c == '>') as i32;
            c == ',' && depth == 0
        });
        for algorithm in algorithms.map(str::trim).filter(|algorithm| !algorithm.is_empty()) {
            let used =
                |name: &str| algorithm.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
            let lists = lists.iter().filter(|(name, _)| used(name)).map(|(name, list)| {
                let list = if list[0] == "numbers" { "numbers".to_owned() } else { format!("`{}`", list.join("`, `")) };
                format!("`{name}`: {}", list.replace("`keys`", "`i32`, `i64`, `u32`, `u64`"))
            });
            let lists = lists.collect::<Vec<_>>().join("; ");
            let name = algorithm.split('<').next().expect("a name");
            match rows.iter_mut().find(|(row, _)| row.split('<').next() == Some(name) && row == algorithm) {
                Some((_, all)) => all.push(lists),
                None => rows.push((algorithm.to_owned(), vec![lists])),
            }
        }
    }
    rows
}

/// The table of the page has all that the library ships, and every algorithm with kernels is in it.
#[test]
fn the_table_of_what_is_ready_is_that_of_the_kernels() {
    let rows = ready(include_str!("../../src/kernels/device/shipped.rs"));
    let mut table = String::new();
    for (algorithm, lists) in &rows {
        let name = algorithm.split('<').next().expect("a name");
        table += &format!("| [`{algorithm}`](crate::algorithms::{name}) | {} |\n", lists.join("<br>or "));
    }
    check_table("ready.md", "| algorithm | for all of |", &table);
    let named: BTreeSet<&str> = rows.iter().filter_map(|(algorithm, _)| algorithm.split('<').next()).collect();
    let all: BTreeSet<&str> = include_str!("../../src/kernels/device/shipped.rs")
        .lines()
        .filter_map(|line| line.trim().strip_prefix('(')?.strip_suffix(" $then:ident $given:tt) => {"))
        .collect();
    assert_eq!(named, all, "the table ships something of every algorithm");
}
