//! Tests that each function that the library exports for algorithms and collectives has a subject.

use std::collections::BTreeSet;

/// Returns the functions that a module of the library exports: the names in lower case of its public `use` and `fn` items.
fn exported(source: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for item in source.split(';') {
        let Some((before, list)) = item.split_once("pub use ") else { continue };
        // Those of a module inside are indented.
        if !before.is_empty() && !before.ends_with('\n') {
            continue;
        }
        let paths = list.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
        names.extend(paths.filter_map(|path| path.rsplit("::").next()).filter(|name| !name.is_empty()));
    }
    let functions = source.lines().filter_map(|line| line.trim_start_matches("unsafe ").strip_prefix("pub fn "));
    names.extend(functions.filter_map(|line| line.split(['<', '(']).next()));
    let unsafe_functions = source.lines().filter_map(|line| line.strip_prefix("pub unsafe fn "));
    names.extend(unsafe_functions.filter_map(|line| line.split(['<', '(']).next()));
    names.retain(|name| name.starts_with(|c: char| c.is_lowercase()));
    names
}

/// Fails with the names that have no subject.
fn covered(module: &str, source: &str) {
    let subjects = crate::subjects();
    let covered: BTreeSet<&str> = subjects.iter().flat_map(|subject| subject.covers.iter().copied()).collect();
    let missing: Vec<_> = exported(source).into_iter().filter(|name| !covered.contains(name)).collect();
    assert!(missing.is_empty(), "no subject of the net covers these functions of {module}: {}", missing.join(", "));
}

#[test]
fn every_algorithm_is_in_the_net() {
    covered("algorithms", include_str!("../../src/algorithms/mod.rs"));
}

#[test]
fn every_collective_of_a_block_is_in_the_net() {
    covered("block", include_str!("../../primitives-gpu/src/block/mod.rs"));
}

#[test]
fn every_collective_of_a_warp_is_in_the_net() {
    covered("warp", include_str!("../../primitives-gpu/src/warp/mod.rs"));
}

#[test]
fn every_read_and_write_is_in_the_net() {
    covered("io", include_str!("../../primitives-gpu/src/io/mod.rs"));
}

#[test]
fn a_function_without_a_subject_would_be_found() {
    let source =
        "pub use a::{Run, b_c};\npub(crate) use q::{d};\npub use e::f;\npub fn g<T>(x: T) {}\npub const fn h() {}";
    assert_eq!(exported(source).into_iter().collect::<Vec<_>>(), ["b_c", "f", "g"]);
    let grouped = "mod a;\n\npub use {\n    a::b::{C, d},\n    a::b::{e, f},\n    g::h,\n};";
    assert_eq!(exported(grouped).into_iter().collect::<Vec<_>>(), ["d", "e", "f", "h"]);
    let inner = "pub use a::b;\n\nmod c {\n    pub use super::d;\n    pub use super::e::f;\n}\n";
    assert_eq!(exported(inner).into_iter().collect::<Vec<_>>(), ["b"]);
}

/// A case finds its subject by its name, so no two subjects have the same name.
#[test]
fn each_subject_has_a_name_of_its_own() {
    let mut names: Vec<String> = crate::subjects().iter().map(crate::subject::Subject::name).collect();
    names.sort_unstable();
    let twice: Vec<_> = names.windows(2).filter(|two| two[0] == two[1]).collect();
    assert!(twice.is_empty(), "{twice:?}");
}
