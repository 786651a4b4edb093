//! Runs the tests of the copy with one mutant each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::build::cargo;
use crate::{Places, Result};

/// A test of the copy.
struct Test {
    program: String,
    path: String,
    name: String,
    seconds: f64,
    reaches: BTreeSet<u32>,
}

enum Outcome {
    Passed,
    Failed,
    TimedOut,
}

impl Test {
    /// Runs the test with this variable.
    fn run(&self, variable: (&str, &str), limit: Duration) -> Result<Outcome> {
        use std::os::unix::process::CommandExt;
        // The child has a group of its own, so that processes that it starts end with it.
        let mut child = Command::new(&self.path)
            .args(["--exact", &self.name, "--test-threads=1", "-q"])
            .env(variable.0, variable.1)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let start = Instant::now();
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(if status.success() { Outcome::Passed } else { Outcome::Failed });
            }
            if start.elapsed() > limit {
                Command::new("kill").args(["-9", "--", &format!("-{}", child.id())]).status()?;
                child.wait()?;
                return Ok(Outcome::TimedOut);
            }
            let pause = if start.elapsed().as_millis() < 100 { 1 } else { 10 };
            std::thread::sleep(Duration::from_millis(pause));
        }
    }
}

/// Tests each mutant that has no line in the results yet.
pub fn run(places: &Places) -> Result<()> {
    let list = fs::read_to_string(&places.list).map_err(|_| "there is no list of mutants: `prepare` comes first")?;
    let tests = tests(places)?;
    let done = fs::read_to_string(&places.results).unwrap_or_default();
    let done: BTreeSet<_> = done.lines().filter_map(|line| line.rsplitn(3, '\t').nth(2)).collect();
    let mut results = File::options().append(true).create(true).open(&places.results)?;
    // This counts how often a test has caught mutants of a file.
    let mut caught = BTreeMap::<(String, usize), u32>::new();
    for line in list.lines() {
        let (number, fields) = line.split_once('\t').ok_or("the list of mutants is broken")?;
        if done.contains(fields) {
            continue;
        }
        let number: u32 = number.parse()?;
        let file = fields.split('\t').next().unwrap_or_default().to_owned();
        let mut reaching: Vec<_> = (0..tests.len()).filter(|&i| tests[i].reaches.contains(&number)).collect();
        // The quick tests come first, then tests that reach few other places, and tests that have caught other mutants of the file.
        let rank = |i: usize| {
            let times = caught.get(&(file.clone(), i)).copied().unwrap_or(0);
            (tests[i].seconds + 0.02) * (tests[i].reaches.len() as f64 + 10.0) / (1 + 4 * times) as f64
        };
        reaching.sort_by(|&a, &b| rank(a).total_cmp(&rank(b)));
        let start = Instant::now();
        let mut verdict = if reaching.is_empty() { "NOT REACHED".to_owned() } else { "SURVIVED".to_owned() };
        for i in reaching {
            let test = &tests[i];
            let limit = Duration::from_secs_f64(test.seconds * 5.0 + 5.0);
            let how = match test.run(("KERNEL_PRIMITIVES_MUTANT", &number.to_string()), limit)? {
                Outcome::Passed => continue,
                Outcome::Failed => "",
                Outcome::TimedOut => " (no end)",
            };
            verdict = format!("{}::{}{how}", test.program, test.name);
            *caught.entry((file, i)).or_default() += 1;
            break;
        }
        let line = format!("{fields}\t{verdict}\t{:.1}\n", start.elapsed().as_secs_f64());
        print!("{line}");
        results.write_all(line.as_bytes())?;
    }
    show(places)
}

/// Returns the tests with the places that each reaches. It reads them from the notes of an earlier run, if there are any.
fn tests(places: &Places) -> Result<Vec<Test>> {
    let programs = cargo(places, &["test", "--no-run"])?.programs;
    let noted = fs::read_to_string(&places.tests).unwrap_or_default();
    let noted: BTreeMap<_, _> = noted
        .lines()
        .filter_map(|line| {
            let [program, name, rest] = line.splitn(3, '\t').collect::<Vec<_>>()[..] else { return None };
            Some(((program, name), rest))
        })
        .collect();
    let mut notes = File::options().append(true).create(true).open(&places.tests)?;
    let mut tests = Vec::new();
    for (program, path) in programs {
        let listed = Command::new(&path).args(["--list", "--format", "terse"]).output()?;
        for name in String::from_utf8(listed.stdout)?.lines().filter_map(|line| line.strip_suffix(": test")) {
            let mut test = Test {
                program: program.clone(),
                path: path.clone(),
                name: name.to_owned(),
                seconds: 0.0,
                reaches: BTreeSet::new(),
            };
            match noted.get(&(program.as_str(), name)).and_then(|rest| rest.split_once('\t')) {
                Some((seconds, reaches)) => {
                    test.seconds = seconds.parse()?;
                    test.reaches = reaches.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
                }
                None => {
                    look(places, &mut test)?;
                    let reaches: Vec<_> = test.reaches.iter().map(u32::to_string).collect();
                    writeln!(notes, "{program}\t{name}\t{:.3}\t{}", test.seconds, reaches.join(" "))?;
                }
            }
            tests.push(test);
        }
    }
    Ok(tests)
}

/// Measures how long a test takes and which places it reaches. A test that fails without mutants shows nothing about them, and counts as if
/// it reached none.
fn look(places: &Places, test: &mut Test) -> Result<()> {
    let reached = places.tests.with_file_name("reached.txt");
    File::create(&reached)?;
    let path = reached.to_str().ok_or("the folder's name is no UTF-8")?;
    let start = Instant::now();
    match test.run(("KERNEL_PRIMITIVES_REACHED", path), Duration::from_secs(300))? {
        Outcome::Passed => {
            test.seconds = start.elapsed().as_secs_f64();
            test.reaches =
                fs::read_to_string(&reached)?.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        }
        Outcome::Failed => println!("{}::{} fails without mutants", test.program, test.name),
        Outcome::TimedOut => println!("{}::{} has no end without mutants", test.program, test.name),
    }
    Ok(())
}

/// Prints the mutants that were caught, by folders and operators, and the survivors.
pub fn show(places: &Places) -> Result<()> {
    let results = fs::read_to_string(&places.results)?;
    let reasons = fs::read_to_string(&places.equivalent).unwrap_or_default();
    let reasons: BTreeMap<_, _> = reasons.lines().filter_map(|line| line.rsplit_once('\t')).collect();
    let mut shares = BTreeMap::<String, (usize, usize)>::new();
    let mut survivors = Vec::new();
    let mut equivalent = 0;
    for line in results.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<_> = line.split('\t').collect();
        let [file, place, function, operator, original, mutated, verdict, _] = fields[..] else {
            return Err(format!("the line has not eight fields: {line}").into());
        };
        let is_caught = !matches!(verdict, "SURVIVED" | "NOT REACHED");
        let folder = file.trim_start_matches("primitives-gpu/src/").rsplit_once('/').map_or(file, |(folder, _)| folder);
        for key in ["all".to_owned(), format!("in {folder}"), format!("by {operator}")] {
            let (caught, all) = shares.entry(key).or_default();
            *caught += is_caught as usize;
            *all += 1;
        }
        if !is_caught {
            // The line number is left out, because it moves.
            let reason = reasons.get(&*[file, function, operator, original, mutated].join("\t"));
            equivalent += reason.is_some() as usize;
            let reason = reason.map_or("no reason yet", |reason| reason);
            survivors
                .push(format!("{file}:{place} {function}, {operator}: {original} -> {mutated}: {verdict}; {reason}"));
        }
    }
    for (key, (caught, all)) in shares {
        println!("{key:32} {caught:>4} of {all:>4}, {:5.1} %", 100.0 * caught as f64 / all as f64);
    }
    println!("{equivalent} of the survivors have a reason:");
    survivors.iter().for_each(|line| println!("{line}"));
    Ok(())
}
