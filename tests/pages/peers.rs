//! Tests what the docs of algorithms and collectives say of other libraries, and writes the tables of `docs/from_cub.md`:
//! `UPDATE_PAGES=1 cargo test --test pages`.

use std::collections::BTreeSet;

use super::algorithms;
use super::tables::{check_table, docs_of};

/// The libraries whose names the docs give.
const PEERS: [&str; 5] = ["CUB", "Thrust", "cuSPARSE", "cuFFT", "cuFFTDx"];

/// The paragraph of a collective that other libraries do not have.
const NONE: &str = "CUB has no such collective.";

/// Returns the names of a function in other libraries, and what differs. This is a paragraph of the docs:
/// ``CUB: `DeviceMerge::MergeKeys`. Thrust: `merge`. Differences: …``.
fn peers(docs: &str) -> Option<(String, String)> {
    let begins = |paragraph: &&str| PEERS.iter().any(|peer| paragraph.starts_with(&format!("{peer}: ")));
    let mut paragraphs = docs.split("\n\n").map(str::trim);
    let Some(paragraph) = paragraphs.clone().find(begins) else {
        return paragraphs.any(|paragraph| paragraph == NONE).then(|| ("none".to_owned(), String::new()));
    };
    let paragraph = paragraph.replace('\n', " ");
    let (names, differences) = paragraph.split_once(" Differences: ").unwrap_or((&paragraph, ""));
    let one = |sentence: &str| match sentence.trim_end_matches('.').split_once(": ") {
        Some(("CUB", names)) => names.to_owned(),
        Some((peer, names)) if PEERS.contains(&peer) => format!("{peer}'s {names}"),
        _ => panic!("is no sentence such as \"CUB: `DeviceMerge::MergeKeys`.\": {sentence}"),
    };
    let names = names.split(". ").map(one).collect::<Vec<_>>().join("; ");
    Some((names, differences.trim_end_matches('.').to_owned()))
}

/// The names in other libraries, the links of the functions that have these names, and what differs.
type Row = (String, Vec<String>, Vec<String>);

/// Returns a row for each function. Functions with the same names in other libraries share a row.
fn rows(docs: Vec<(String, String)>, link: impl Fn(&str) -> String) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for (name, docs) in docs {
        let (names, differences) = peers(&docs).unwrap_or_else(|| {
            panic!(
                "no paragraph in the docs of `{name}` begins with the name of a library, of {PEERS:?}: \"CUB: `…`.\"; \
                 nor is one: \"{NONE}\""
            )
        });
        let place = rows.iter().position(|row| row.0 == names).unwrap_or_else(|| {
            rows.push((names, Vec::new(), Vec::new()));
            rows.len() - 1
        });
        rows[place].1.push(link(&name));
        if !differences.is_empty() && !rows[place].2.contains(&differences) {
            rows[place].2.push(differences);
        }
    }
    rows
}

/// Returns the lines of a table.
fn table(rows: &[Row]) -> String {
    let row = |(names, links, differences): &Row| {
        let differences = differences.join("; ");
        format!("| {names} | {} | {differences}{}|\n", links.join(", "), if differences.is_empty() { "" } else { " " })
    };
    rows.iter().map(row).collect()
}

/// The page has a row for each algorithm.
#[test]
fn what_other_libraries_have_is_in_the_docs_of_every_algorithm() {
    let rows = rows(algorithms::docs(), algorithms::link);
    assert!(rows.iter().all(|row| row.0 != "none"), "another library has each algorithm: {rows:?}");
    let mut table = table(&rows);
    // The page needs the paths of names that the docs link without them.
    for name in algorithms::exports() {
        for end in [" ", ",", ";", "."] {
            table = table.replace(&format!("[`{name}`]{end}"), &(algorithms::link(&name) + end));
        }
    }
    check_table("from_cub.md", "| CUB, or another library | algorithm | differences |", &table);
}

/// Returns the functions that a module of collectives exports.
pub(super) fn collectives(source: &str) -> BTreeSet<String> {
    let functions = source.split("\npub fn ").skip(1).filter_map(|rest| rest.split(['<', '(']).next());
    let mut names = super::exported(source);
    names.extend(functions.map(str::to_owned));
    names.retain(|name| name.starts_with(|c: char| c.is_lowercase()));
    names
}

/// The page has a row for each collective, in the order of CUB's names.
#[test]
fn what_other_libraries_have_is_in_the_docs_of_every_collective() {
    let warp = collectives(include_str!("../../primitives-gpu/src/warp/mod.rs"));
    // The module of blocks exports some of these, too.
    let block = collectives(include_str!("../../primitives-gpu/src/block/mod.rs"));
    let block: BTreeSet<String> = block.difference(&warp).cloned().collect();
    assert!(warp.len() > 15 && block.len() > 45, "only {} and {} collectives were found", warp.len(), block.len());
    let scope = |name: &str| if warp.contains(name) { "warp" } else { "block" };
    let docs = docs_of("primitives-gpu/src", block.iter().chain(&warp).cloned());
    let mut rows = rows(docs, |name| format!("[`{name}`](fn@crate::{}::{name})", scope(name)));
    rows.sort_by_key(|row| (row.0 == "none", row.0.clone()));
    check_table("from_cub.md", "| CUB, or another library | collective | differences |", &table(&rows));
}
