//! Tests that misuse does not compile, and that the compiler says what to write instead.
//!
//! Each file below `tests/ui` is a program. A comment `//~ text` says that the compiler reports an error in its line, with that text in its
//! headline, labels or notes. `//~^ text` means the line above, and `//~? text` any place. A file without such comments compiles. No other
//! errors are accepted. Fragments are compared and not whole messages, because the rest changes with the compiler.
//!
//! The compiler makes code of each file, because a check alone would not evaluate assertions in generic functions. It uses a library that
//! was built with the options of this test, which is in general the one that the test has.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::{env, fs, thread};

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

/// A library that was built with the options of this test.
struct Library {
    file: PathBuf,
    /// The folders of its dependencies. Procedural macros are the host's, and may be in another folder than the rest.
    dependencies: BTreeSet<PathBuf>,
    /// What `--target` says. If it says nothing, all is for the host.
    target: Option<String>,
}

impl Library {
    /// Asks cargo, with the options of this test that can be known here. If there were no others, cargo has nothing to build.
    fn find() -> Self {
        // Cargo makes `TARGET/tmp` and `TARGET/PROFILE/deps/TEST`. With `--target` or a setting like it, they are below `TARGET/TRIPLE`.
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
        let known = compiler().args(["--print", "target-list"]).output().expect("the compiler runs");
        let known = String::from_utf8_lossy(&known.stdout);
        let target = known.lines().find(|triple| folder.ends_with(triple)).map(str::to_owned);
        let test = env::current_exe().expect("the file of this test");
        let profile = test.ancestors().nth(2).and_then(Path::file_name).expect("the folder of the profile");
        let features = [("cuda", cfg!(feature = "cuda")), ("tracing", cfg!(feature = "tracing"))];
        let mut cargo = Command::new(cargo());
        cargo.args([
            "test",
            "--no-run",
            "--offline",
            "--message-format=json",
            "--test",
            "compile_fail",
            "--manifest-path",
        ]);
        cargo.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
        if let Some(triple) = &target {
            cargo.arg("--target").arg(triple);
        }
        let root = if target.is_some() { folder.parent().expect("the target folder") } else { folder };
        cargo.arg("--target-dir").arg(root);
        // The folder of the profile `dev` is `debug`.
        if profile != "debug" {
            cargo.arg("--profile").arg(profile);
        }
        for (feature, _) in features.iter().filter(|(_, is_on)| *is_on) {
            cargo.arg("--features").arg(feature);
        }
        let output = cargo.output().expect("cargo runs");
        let (mut found, mut dependencies) = (Vec::new(), BTreeSet::new());
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
            let is_build_script = list(&message["target"]["kind"]).iter().any(|kind| kind == "custom-build");
            if message["reason"] != "compiler-artifact" || is_build_script {
                continue;
            }
            for file in list(&message["filenames"]).iter().map(|file| PathBuf::from(string(file))) {
                let folder = file.parent().expect("a folder");
                let below = folder.join("deps");
                dependencies.insert(if below.is_dir() { below } else { folder.to_owned() });
                let is_rlib = file.extension().is_some_and(|extension| extension == "rlib");
                if is_rlib && message["target"]["name"] == "kernel_primitives" {
                    found.push(file);
                }
            }
        }
        let [file] = <[PathBuf; 1]>::try_from(found).unwrap_or_else(|found| {
            panic!("one library and not {found:?}: {}", String::from_utf8_lossy(&output.stderr))
        });
        Self { file, dependencies, target }
    }
}

fn cargo() -> PathBuf {
    env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

/// The compiler that cargo uses.
fn compiler() -> Command {
    let beside = cargo().with_file_name("rustc");
    Command::new(if beside.is_file() { beside } else { "rustc".into() })
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

/// The result of the compiler for a case.
#[derive(Default)]
struct Compiled {
    errors: Vec<Found>,
    /// Whether there is code of the case. A compiler that was killed reports no errors either.
    succeeded: bool,
    /// What the compiler wrote beside its reports.
    said: String,
}

fn compile(case: &Path, library: &Library) -> Compiled {
    let code = Path::new(env!("CARGO_TARGET_TMPDIR")).join(case.file_stem().expect("a file")).with_extension("o");
    let mut rustc = compiler();
    rustc.args(["--edition=2024", "--emit=obj", "--error-format=json", "-Awarnings", "-o"]).arg(code).arg(case);
    rustc.arg(format!("--extern=kernel_primitives={}", library.file.display()));
    rustc.args(library.dependencies.iter().map(|folder| format!("-Ldependency={}", folder.display())));
    if let Some(triple) = &library.target {
        rustc.arg("--target").arg(triple);
    }
    let output = rustc.output().expect("the compiler runs");
    let mut compiled = Compiled { succeeded: output.status.success(), ..Compiled::default() };
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            writeln!(compiled.said, "{line}").expect("writing to a string");
            continue;
        };
        let (spans, children) = (list(&message["spans"]), list(&message["children"]));
        let headline = string(&message["message"]);
        // The last error counts the others.
        if message["level"] != "error" || spans.is_empty() && headline.contains("aborting due to") {
            continue;
        }
        let labels = spans.iter().map(|span| string(&span["label"]));
        let notes = children.iter().map(|note| string(&note["message"]));
        let text = [headline].into_iter().chain(labels).chain(notes).collect::<Vec<_>>().join("\n");
        let primary = spans.iter().filter(|span| span["is_primary"] == true);
        let lines = primary.filter_map(|span| line_in_case(span, case)).collect();
        compiled.errors.push(Found { lines, text, rendered: string(&message["rendered"]) });
    }
    compiled
}

/// Compiles all cases, with as many compilers at once as there are processors.
fn compile_all(cases: &[PathBuf]) -> Vec<Compiled> {
    let library = Library::find();
    let next = AtomicUsize::new(0);
    let some = || {
        let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Relaxed)).filter(|number| *number < cases.len()));
        numbers.map(|number| (number, compile(&cases[number], &library))).collect::<Vec<_>>()
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let mut all = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(some)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
    });
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, compiled)| compiled).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the line of a place in a case. If the place is inside a macro of another file, it is the line where the macro is used.
fn line_in_case(span: &Value, case: &Path) -> Option<u64> {
    let outer = &span["expansion"]["span"];
    let of_case = case.strip_prefix(env!("CARGO_MANIFEST_DIR")).expect("below the root");
    if outer.is_null() || Path::new(&string(&span["file_name"])).ends_with(of_case) {
        return span["line_start"].as_u64();
    }
    line_in_case(outer, case)
}

/// Finds the sources in a folder and in the folders below it.
fn find_sources(folder: &Path, sources: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("a file").path();
        if path.is_dir() {
            find_sources(&path, sources);
        } else if path.extension().is_some_and(|e| e == "rs") {
            sources.push(path);
        }
    }
}

#[test]
fn a_place_in_a_macro_of_another_file_counts_where_it_is_used() {
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui/right_use.rs");
    let of = |file: &str| {
        let used = serde_json::json!({ "file_name": case.to_str(), "line_start": 7, "expansion": null });
        let span = serde_json::json!({ "file_name": file, "line_start": 3, "expansion": { "span": used } });
        line_in_case(&span, &case)
    };
    assert_eq!(of("/builds/louis/primitives/src/lib.rs"), Some(7));
    assert_eq!([of("tests/ui/right_use.rs"), of(case.to_str().expect("text"))], [Some(3); 2]);
}

#[test]
fn misuse_does_not_compile_and_the_message_says_why() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    let mut cases = Vec::new();
    find_sources(&folder, &mut cases);
    cases.sort();
    let mut report = String::new();
    for (case, Compiled { errors: found, succeeded, said }) in cases.iter().zip(compile_all(&cases)) {
        let name = case.file_stem().expect("a file").to_string_lossy();
        let source = fs::read_to_string(case).expect("a case");
        let expected = expectations(&source);
        let compiles = expected.is_empty();
        if succeeded != compiles {
            let what = if compiles { "does not compile" } else { "compiles" };
            writeln!(report, "{name} {what}; the compiler says:\n{said}").expect("writing to a string");
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
    assert!(report.is_empty(), "\n{report}");
}

/// A row of the table of algorithms.
struct Row<'a> {
    algorithm: &'a str,
    /// The trait.
    implemented: &'a str,
    /// The parameters of the trait, without `Self`.
    params: Vec<&'a str>,
    /// A parameter with its bound in each.
    bounds: Vec<&'a str>,
}

impl Row<'_> {
    /// Returns whether a parameter is a source or a sink, which has a short name.
    fn has_short_name(&self, param: &str) -> bool {
        self.bounds
            .iter()
            .any(|bound| matches!(bound.split_once(": "), Some((of, "AsSource" | "AsSink")) if of == param))
    }
}

/// Returns the rows of the table of algorithms.
fn rows<'a>(table: &'a str) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    let mut lines = table.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let name = line.strip_prefix('(').and_then(|line| line.strip_suffix(" $then:ident $given:tt) => {"));
        let Some(algorithm) = name else { continue };
        let row = lines.next().and_then(|line| line.split_once("$given ")?.1.strip_suffix("] ["));
        let (implemented, lists) = row.and_then(|row| row.split_once(" [")).expect("a row of the table");
        let [params, bounds] = <[&str; 2]>::try_from(lists.split("] [").collect::<Vec<_>>()).expect("two lists");
        let list = |text: &'a str| text.split(", ").filter(|one| !one.is_empty()).collect();
        rows.push(Row { algorithm, implemented, params: list(params), bounds: list(bounds) });
    }
    assert!(rows.len() > 30, "only {} rows of the table were found", rows.len());
    rows
}

/// Returns the algorithms by the shapes of their rows. A shape is the parameters of the trait with their bounds, and has numbers in place of
/// the names.
fn shapes<'a>(rows: &[Row<'a>]) -> BTreeMap<String, Vec<&'a str>> {
    let mut shapes = BTreeMap::<String, Vec<&str>>::new();
    for Row { algorithm, params, bounds, .. } in rows {
        let mut shape = String::new();
        for piece in
            format!("{} [{}]", params.join(", "), bounds.join(", ")).split_inclusive(|c: char| !c.is_alphanumeric())
        {
            let word = piece.trim_end_matches(|c: char| !c.is_alphanumeric());
            match params.iter().position(|param| *param == word && !word.is_empty()) {
                Some(number) => write!(shape, "{number}").expect("writing to a string"),
                None => shape.push_str(word),
            }
            shape.push_str(&piece[word.len()..]);
        }
        shapes.entry(shape).or_default().push(algorithm);
    }
    shapes
}

/// The error of a call without kernels shows the line that makes them. A macro writes this line from the row of the algorithm, and the compiler
/// puts in the types of the call's bound. There is a case for each shape of row, and the next test reads the bounds of all calls.
#[test]
fn each_shape_of_row_has_a_call_without_kernels() {
    let mut cases = Vec::new();
    find_sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui"), &mut cases);
    let sources: String = cases.iter().map(|case| fs::read_to_string(case).expect("a case")).collect();
    let shown =
        |name: &&str| sources.contains(&format!("//~ write `instantiate!(kernel_primitives::algorithms::{name}<"));
    for (shape, algorithms) in shapes(&rows(include_str!("../src/kernels/device/shipped.rs"))) {
        assert!(algorithms.iter().any(shown), "no case of `tests/ui/algorithms` calls one of {algorithms:?}: {shape}");
    }
}

/// The `where` of a function.
struct Where<'a> {
    function: &'a str,
    /// The bounds with their lines.
    bounds: Vec<(usize, String)>,
}

impl Where<'_> {
    /// Returns whether a type is a source or a sink, and not an element, which is a short name of sources and sinks in memory.
    fn is_long_name(&self, name: &str) -> bool {
        let bounded = |bound: &str| {
            let by = bound.strip_prefix(name).and_then(|rest| rest.strip_prefix(": "));
            by.is_some_and(|by| by.starts_with("Source") || by.starts_with("Sink"))
        };
        !name.ends_with("::Short") && (name.contains('<') || self.bounds.iter().any(|(_, bound)| bounded(bound)))
    }
}

/// Returns the bounds of the functions of a source.
fn wheres(source: &str) -> Vec<Where<'_>> {
    let (mut wheres, mut function, mut inside, mut bound) = (Vec::<Where<'_>>::new(), "", false, String::new());
    for (line, code) in source.lines().map(str::trim).enumerate() {
        if let Some((before, after)) = code.split_once("fn ")
            && (before.is_empty() || before.starts_with("pub"))
        {
            function = after.split(['<', '(']).next().expect("a name");
        }
        if code == "where" {
            wheres.push(Where { function, bounds: Vec::new() });
            inside = true;
        } else if code == "{" {
            (inside, bound) = (false, String::new());
        } else if inside {
            bound += code;
            if bound.ends_with(',') && bound.matches('<').count() == bound.replace("->", "").matches('>').count() {
                let bound = std::mem::take(&mut bound).trim_end_matches(',').to_owned();
                wheres.last_mut().expect("the last `where`").bounds.push((line + 1, bound));
            }
        }
    }
    wheres
}

/// Returns the arguments after an opening `<`.
fn arguments(text: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut arguments) = (0, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if depth > 0 => depth -= 1,
            ',' | '>' if depth == 0 => {
                arguments.push(text[begin..at].trim());
                begin = at + 1;
                if c == '>' {
                    break;
                }
            }
            _ => {}
        }
    }
    arguments
}

/// Returns the types of a bound that the row of its trait has as sources or sinks, if the bound has the trait of the row.
fn sources_and_sinks<'a>(row: &Row<'_>, bound: &'a str) -> Option<Vec<&'a str>> {
    let (bounded, by) = bound.split_once(": ")?;
    let name = format!("{}<", row.implemented);
    let is_whole = |&(at, _): &(usize, &str)| !by[..at].ends_with(|c: char| c.is_alphanumeric());
    let (at, _) = by.match_indices(&name).find(is_whole)?;
    let types = [bounded].into_iter().chain(arguments(&by[at + name.len()..]));
    let named = ["Self"].iter().chain(&row.params).zip(types);
    Some(named.filter(|(param, _)| row.has_short_name(param)).map(|(_, of)| of).collect())
}

/// The error of a call without kernels names a source as users write it, `f32` and not `Span<f32>`, if the call's bound has the short name.
#[test]
fn each_call_asks_for_kernels_by_short_names() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    find_sources(&root.join("src/algorithms"), &mut paths);
    paths.sort();
    let rows = rows(include_str!("../src/kernels/device/shipped.rs"));
    let (mut report, mut read) = (String::new(), BTreeSet::new());
    for path in paths {
        let source = fs::read_to_string(&path).expect("a source");
        let path = path.strip_prefix(root).expect("a path below the root").display();
        for of in &wheres(&source) {
            for ((line, bound), row) in of.bounds.iter().flat_map(|bound| rows.iter().map(move |row| (bound, row))) {
                let Some(names) = sources_and_sinks(row, bound) else { continue };
                if of.function == row.algorithm {
                    read.insert(row.algorithm);
                }
                for name in names.into_iter().filter(|name| of.is_long_name(name)) {
                    let function = of.function;
                    writeln!(
                        report,
                        "{path}:{line}: `{bound}` of `{function}` needs `{name}::Short` in place of `{name}`"
                    )
                    .expect("writing to a string");
                }
            }
        }
    }
    for Row { algorithm, implemented, .. } in rows.iter().filter(|row| !read.contains(row.algorithm)) {
        writeln!(report, "no bound of a function `{algorithm}` in `src/algorithms` has the trait `{implemented}`")
            .expect("writing to a string");
    }
    assert!(report.is_empty(), "\n{report}");
}
