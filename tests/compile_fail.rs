//! Tests that misuse does not compile, and that the compiler says what to write instead.
//!
//! Each file below `tests/ui` is a program. A comment `//~ text` says that the compiler reports an error in its line, with that text in its
//! headline, labels or notes. `//~^ text` means the line above, and `//~? text` any place. A file without such comments compiles. It is
//! built, because a compiler that was killed reports no errors either. No other errors are accepted. Fragments are compared and not whole
//! messages, because the rest changes with the compiler.
//!
//! All files are compiled together by one `cargo build`. `cargo check` would not evaluate assertions in generic functions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

/// An error that a file's comment announces.
struct Expected {
    /// `None` for any line.
    line: Option<u64>,
    text: String,
}

fn expectations(source: &str) -> Vec<Expected> {
    let of_line = |(number, line): (usize, &str)| {
        let (_, comment) = line.split_once("//~")?;
        let text = comment.trim_start_matches(['^', '?']);
        let above = (comment.len() - comment.trim_start_matches('^').len()) as u64;
        let line = (!comment.starts_with('?')).then_some(number as u64 + 1 - above);
        Some(Expected { line, text: text.trim().to_owned() })
    };
    source.lines().enumerate().filter_map(of_line).collect()
}

/// Writes a package beside the target folder. It has a program for each case, and the versions that this test was built with.
fn write_package(cases: &[PathBuf]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let package = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile_fail");
    fs::create_dir_all(&package).expect("a folder for the package");
    let mut manifest = format!(
        "[package]\nname = \"compile-fail\"\nversion = \"0.0.0\"\nedition = \"2024\"\nautobins = false\n\n\
         [workspace]\n\n[dependencies]\nkernel-primitives = {{ path = {root:?} }}\n\n\
         [profile.dev]\ndebug = false\nincremental = false\n",
    );
    for case in cases {
        let name = case.file_stem().expect("a file").to_string_lossy();
        write!(manifest, "\n[[bin]]\nname = {name:?}\npath = {case:?}\n").expect("writing to a string");
    }
    fs::write(package.join("Cargo.toml"), manifest).expect("the package's manifest");
    let lock = root.join("Cargo.lock");
    if lock.exists() {
        fs::copy(lock, package.join("Cargo.lock")).expect("the package's lock file");
    }
    package
}

/// An error of the compiler.
struct Found {
    /// The lines of the case that the error points to.
    lines: Vec<u64>,
    /// Headline, labels, notes and help, without the source, which contains the comments.
    text: String,
    /// The whole error as the compiler shows it.
    rendered: String,
}

/// The result of cargo for the package.
#[derive(Default)]
struct Built {
    /// The errors of each program.
    errors: BTreeMap<String, Vec<Found>>,
    /// The programs that exist now.
    programs: BTreeSet<String>,
    /// The other output of cargo, such as the reason why a compiler has ended without an error.
    said: String,
}

fn build(package: &Path) -> Built {
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--offline", "--keep-going", "--message-format=json", "--manifest-path"])
        .arg(package.join("Cargo.toml"))
        .env("CARGO_TARGET_DIR", package.join("target"))
        .env("RUSTFLAGS", "-Awarnings")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .expect("cargo runs");
    let mut built = Built { said: String::from_utf8_lossy(&output.stderr).into_owned(), ..Built::default() };
    let mut finished = false;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: Value = serde_json::from_str(line).expect("a message in JSON");
        finished |= message["reason"] == "build-finished";
        let name = string(&message["target"]["name"]);
        if message["reason"] == "compiler-artifact" && list(&message["target"]["kind"]).iter().any(|kind| kind == "bin")
        {
            built.programs.insert(name);
            continue;
        }
        if message["reason"] != "compiler-message" || message["message"]["level"] != "error" {
            continue;
        }
        let message = &message["message"];
        let (spans, children) = (list(&message["spans"]), list(&message["children"]));
        let headline = string(&message["message"]);
        // The last error counts the others.
        if spans.is_empty() && headline.contains("aborting due to") {
            continue;
        }
        let labels = spans.iter().map(|span| string(&span["label"]));
        let notes = children.iter().map(|note| string(&note["message"]));
        let text = [headline].into_iter().chain(labels).chain(notes).collect::<Vec<_>>().join("\n");
        let primary = spans.iter().filter(|span| span["is_primary"] == true);
        let found =
            Found { lines: primary.filter_map(line_in_case).collect(), text, rendered: string(&message["rendered"]) };
        built.errors.entry(name).or_default().push(found);
    }
    assert!(finished, "cargo failed: {}", built.said);
    built
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the line of a place. If the place is inside a macro of another file, it is the line where the macro is used.
fn line_in_case(span: &Value) -> Option<u64> {
    let outer = &span["expansion"]["span"];
    if outer.is_null() || string(&span["file_name"]).contains("ui") {
        return span["line_start"].as_u64();
    }
    line_in_case(outer)
}

/// Finds the cases in a folder and in the folders below it.
fn find_cases(folder: &Path, cases: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the cases") {
        let path = entry.expect("a case").path();
        if path.is_dir() {
            find_cases(&path, cases);
        } else if path.extension().is_some_and(|e| e == "rs") {
            cases.push(path);
        }
    }
}

#[test]
fn misuse_does_not_compile_and_the_message_says_why() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    let mut cases = Vec::new();
    find_cases(&folder, &mut cases);
    cases.sort();
    let Built { mut errors, programs, said } = build(&write_package(&cases));

    let mut report = String::new();
    for case in &cases {
        let name = case.file_stem().expect("a file").to_string_lossy();
        let source = fs::read_to_string(case).expect("a case");
        let found = errors.remove(&*name).unwrap_or_default();
        let expected = expectations(&source);
        let compiles = expected.is_empty();
        if programs.contains(&*name) != compiles {
            let what = if compiles { "is not built" } else { "is built, whatever its errors" };
            writeln!(report, "{name} {what}; cargo says:\n{said}").expect("writing to a string");
        }
        let announces = |expected: &Expected, Found { lines, text, .. }: &Found| {
            expected.line.is_none_or(|line| lines.contains(&line)) && text.contains(&expected.text)
        };
        for expected in expected.iter().filter(|expected| !found.iter().any(|error| announces(expected, error))) {
            let place = expected.line.map_or("any line".to_owned(), |line| format!("line {line}"));
            writeln!(report, "{name}: no error in {place} says: {}", expected.text).expect("writing to a string");
        }
        for Found { rendered, .. } in
            found.iter().filter(|error| !expected.iter().any(|expected| announces(expected, error)))
        {
            writeln!(report, "{name}: an error that no comment announces:\n{rendered}").expect("writing to a string");
        }
    }
    for (name, found) in errors {
        writeln!(report, "{name}, which is no case, does not compile:\n{}", found[0].rendered)
            .expect("writing to a string");
    }
    assert!(report.is_empty(), "\n{report}");
}

/// Returns the algorithms of the table by the shapes of their rows. A shape is the parameters of the trait with their bounds, and has numbers
/// in place of the names.
fn shapes(table: &str) -> BTreeMap<String, Vec<&str>> {
    let mut shapes = BTreeMap::<String, Vec<&str>>::new();
    let mut lines = table.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let name = line.strip_prefix('(').and_then(|line| line.strip_suffix(" $then:ident $given:tt) => {"));
        let Some(name) = name else { continue };
        let row = lines.next().and_then(|row| row.split_once(" [")?.1.strip_suffix(" [")).expect("a row of the table");
        let params: Vec<&str> = row.split(']').next().expect("the parameters").split(", ").collect();
        let mut shape = String::new();
        for piece in row.split_inclusive(|c: char| !c.is_alphanumeric()) {
            let word = piece.trim_end_matches(|c: char| !c.is_alphanumeric());
            match params.iter().position(|param| *param == word && !word.is_empty()) {
                Some(number) => write!(shape, "{number}").expect("writing to a string"),
                None => shape.push_str(word),
            }
            shape.push_str(&piece[word.len()..]);
        }
        shapes.entry(shape).or_default().push(name);
    }
    shapes
}

/// The error of a call without kernels shows the line that makes them. A macro writes this line from the row of the algorithm, so one case for
/// each shape of row is enough.
#[test]
fn each_shape_of_row_has_a_call_without_kernels() {
    let mut cases = Vec::new();
    find_cases(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui"), &mut cases);
    let sources: String = cases.iter().map(|case| fs::read_to_string(case).expect("a case")).collect();
    let shapes = shapes(include_str!("../src/kernels/device/shipped.rs"));
    assert!(shapes.values().flatten().count() > 30, "only these rows were found: {shapes:?}");
    let shown =
        |name: &&str| sources.contains(&format!("//~ write `instantiate!(kernel_primitives::algorithms::{name}<"));
    for (shape, algorithms) in shapes {
        assert!(algorithms.iter().any(shown), "no case of `tests/ui/algorithms` calls one of {algorithms:?} [{shape}");
    }
}
