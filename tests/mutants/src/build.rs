//! Makes the copy of the repository. It chooses places and rewrites them until the copy compiles, and builds its tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::sites::{Site, rewritten, sites};
use crate::text::Random;
use crate::{Places, Result};

/// Files and folders of device code.
const DEVICE_CODE: [&str; 12] = [
    "primitives-gpu/src/block/",
    "primitives-gpu/src/warp/",
    "primitives-gpu/src/thread/",
    "primitives-gpu/src/io/",
    "primitives-gpu/src/view/",
    "primitives-gpu/src/functor/",
    "primitives-gpu/src/element/",
    "primitives-gpu/src/grid.rs",
    "primitives-gpu/src/input.rs",
    "primitives-gpu/src/input/",
    "primitives-gpu/src/output.rs",
    "src/kernels/",
];

/// Returns whether a file has device code. It does if it is in the folders above, or beside an algorithm's call.
fn is_device_code(file: &str) -> bool {
    let is_kernel = |path: &str| path.contains('/') && !path.contains("/call") && !path.starts_with("sparse/");
    file.ends_with(".rs")
        && (DEVICE_CODE.iter().any(|start| file.starts_with(start))
            || file.strip_prefix("src/algorithms/").is_some_and(is_kernel))
}

/// Test programs of the facade that run device code. Those of small pieces come first. Programs that do not exist are left out.
const PROGRAMS: [&str; 7] = ["collectives", "sorts", "suite", "functions", "net", "algorithms", "expr"];

/// A mutant of the copy.
pub struct Mutant {
    pub number: u32,
    pub site: Site,
}

impl Mutant {
    /// Returns its fields in a table. These name it from one run to the next.
    pub fn fields(&self) -> String {
        let Site { file, line, function, operator, original, .. } = &self.site;
        format!("{file}\t{line}\t{function}\t{operator}\t{original}\t{}", self.site.mutated())
    }
}

/// Makes the copy and builds its tests.
pub fn prepare(places: &Places, density: f64, seed: u64) -> Result<()> {
    copy(places)?;
    let mut sources = BTreeMap::new();
    let mut all = Vec::new();
    for file in tracked(&places.root)? {
        if is_device_code(&file) {
            let source = fs::read_to_string(places.root.join(&file))?;
            all.push(sites(&file, &source)?);
            sources.insert(file, source);
        }
    }
    println!("{} places in {} files", all.iter().map(Vec::len).sum::<usize>(), all.len());

    let mut mutants = choose(all, density, seed);
    let lib = places.copy.join("primitives-gpu/src/lib.rs");
    let text = fs::read_to_string(places.root.join("primitives-gpu/src/lib.rs"))?;
    write(&lib, &(text + include_str!("switch.rs")))?;
    loop {
        let mut written = BTreeMap::new();
        for (file, source) in &sources {
            let own: Vec<_> = mutants.iter().filter(|m| m.site.file == *file).map(|m| (m.number, &m.site)).collect();
            let (text, ranges) = rewritten(source, &own);
            write(&places.copy.join(file), &text)?;
            written.insert(file.clone(), (text, ranges));
        }
        let errors = cargo(places, &["test", "--no-run"])?.errors;
        if errors.is_empty() {
            break;
        }
        let refused = refused(&errors, &written);
        if refused.is_empty() {
            return Err(format!("errors at no mutant's place: {}", errors[0]["rendered"]).into());
        }
        println!("{} of {} places are given up", refused.len(), mutants.len());
        mutants.retain(|mutant| !refused.contains(&mutant.number));
    }
    let lines: Vec<_> = mutants.iter().map(|mutant| format!("{}\t{}\n", mutant.number, mutant.fields())).collect();
    write(&places.list, &lines.concat())?;
    // The places that the tests reach are found again.
    if places.tests.exists() {
        fs::remove_file(&places.tests)?;
    }
    println!("{} mutants are built", mutants.len());
    Ok(())
}

/// Chooses some places of each file, more of a long one, with as many different operators as possible. A file that has not changed keeps
/// its places.
fn choose(files: Vec<Vec<Site>>, density: f64, seed: u64) -> Vec<Mutant> {
    let mut chosen = Vec::new();
    for mut sites in files {
        let Some(first) = sites.first() else { continue };
        let mut random =
            Random(first.file.bytes().fold(seed, |hash, byte| (hash ^ byte as u64).wrapping_mul(0x100_0000_01b3)));
        let own = (density * (sites.len() as f64).sqrt()).round().max(1.0) as usize;
        let mut used = BTreeMap::<&str, usize>::new();
        for _ in 0..own {
            // This is one of the operators that were chosen least often.
            let count = |operator: &str| used.get(operator).copied().unwrap_or(0);
            let Some(least) = sites.iter().map(|site| count(site.operator)).min() else { break };
            let operators: BTreeSet<_> = sites.iter().map(|site| site.operator).filter(|o| count(o) == least).collect();
            let operators: Vec<_> = operators.into_iter().collect();
            let operator = operators[random.below(operators.len())];
            *used.entry(operator).or_default() += 1;
            let of_it: Vec<_> = (0..sites.len()).filter(|&i| sites[i].operator == operator).collect();
            let site = sites.remove(of_it[random.below(of_it.len())]);
            sites.retain(|other| other.range != site.range);
            chosen.push(site);
        }
    }
    chosen.sort_by(|a, b| {
        let key = |site: &Site| (site.file.clone(), site.range.start, std::cmp::Reverse(site.range.end));
        key(a).cmp(&key(b))
    });
    chosen.into_iter().zip(1..).map(|(site, number)| Mutant { number, site }).collect()
}

/// Returns the mutants at whose places the compiler found errors, by their places in the rewritten files.
fn refused(errors: &[Value], written: &BTreeMap<String, (String, Vec<(u32, Range<usize>)>)>) -> BTreeSet<u32> {
    let mut refused = BTreeSet::new();
    for error in errors {
        let mut spans = Vec::new();
        all_spans(error, &mut spans);
        let mut found = None;
        let mut nearest = None;
        for (file, start, end) in spans {
            let Some((_, ranges)) = written.get(&file) else { continue };
            // This is the innermost mutant around the place, or else the nearest one.
            let around = ranges.iter().filter(|(_, range)| range.start <= start && end <= range.end);
            found = found.or(around.min_by_key(|(_, range)| range.len()).map(|(number, _)| *number));
            let apart = |range: &Range<usize>| range.start.abs_diff(start).min(range.end.abs_diff(end));
            nearest = nearest.or(ranges.iter().min_by_key(|(_, range)| apart(range)).map(|(number, _)| *number));
        }
        refused.extend(found.or(nearest));
    }
    refused
}

/// Finds the file and bytes of each place that a message names, the primary ones first, and of the macros around it.
fn all_spans(message: &Value, found: &mut Vec<(String, usize, usize)>) {
    fn one(span: &Value, found: &mut Vec<(String, usize, usize)>) {
        let number = |name| span[name].as_u64().unwrap_or(0) as usize;
        let file = span["file_name"].as_str().unwrap_or_default().to_owned();
        found.push((file, number("byte_start"), number("byte_end")));
        if span["expansion"].is_object() {
            one(&span["expansion"]["span"], found);
        }
    }
    for primary in [true, false] {
        let spans = message["spans"].as_array().into_iter().flatten();
        spans.filter(|span| span["is_primary"] == primary).for_each(|span| one(span, found));
    }
    for child in message["children"].as_array().into_iter().flatten() {
        all_spans(child, found);
    }
}

/// The output of a build.
#[derive(Default)]
pub struct Built {
    pub errors: Vec<Value>,
    /// The test programs: their names and paths.
    pub programs: Vec<(String, String)>,
}

/// Builds the copy's tests.
pub fn cargo(places: &Places, command: &[&str]) -> Result<Built> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(command).args(["--message-format=json", "-p", "kernel-primitives"]);
    for name in PROGRAMS {
        if places.copy.join("tests").join(name).exists() {
            cargo.args(["--test", name]);
        }
    }
    cargo.current_dir(&places.copy).env("CARGO_TARGET_DIR", places.copy.with_file_name("target"));
    cargo
        .env("RUSTFLAGS", "--cap-lints allow")
        .env("CARGO_PROFILE_TEST_DEBUG", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    let output = cargo.stderr(Stdio::inherit()).output()?;
    let mut built = Built::default();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(said) = serde_json::from_str::<Value>(line) else { continue };
        let message = &said["message"];
        if said["reason"] == "compiler-message" && message["level"] == "error" && !message["spans"][0].is_null() {
            built.errors.push(message.clone());
        }
        if let (Some(path), true) = (said["executable"].as_str(), said["profile"]["test"] == true) {
            let name = said["target"]["name"].as_str().unwrap_or_default().to_owned();
            built.programs.push((name, path.to_owned()));
        }
    }
    if !output.status.success() && built.errors.is_empty() {
        return Err("the copy cannot be built".into());
    }
    built.programs.sort_by_key(|(name, _)| PROGRAMS.iter().position(|program| program == name));
    Ok(built)
}

/// Returns the files that are under version control.
fn tracked(root: &Path) -> Result<Vec<String>> {
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output()?;
    let names = String::from_utf8(output.stdout)?;
    Ok(names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

fn copy(places: &Places) -> Result<()> {
    for file in tracked(&places.root)? {
        let is_rewritten = is_device_code(&file) || file == "primitives-gpu/src/lib.rs";
        if file.starts_with("tests/mutants/") || is_rewritten {
            continue;
        }
        let (from, to) = (places.root.join(&file), places.copy.join(&file));
        if let Ok(bytes) = fs::read(from)
            && fs::read(&to).ok().as_ref() != Some(&bytes)
        {
            fs::create_dir_all(to.parent().expect("a file lies in a folder"))?;
            fs::write(to, bytes)?;
        }
    }
    Ok(())
}

/// Writes a file unless it already has that text, so that nothing is built again without need.
fn write(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).ok().as_deref() != Some(text) {
        fs::create_dir_all(path.parent().expect("a file lies in a folder"))?;
        fs::write(path, text)?;
    }
    Ok(())
}
