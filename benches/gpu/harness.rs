//! Samples, medians and the report.

use std::ffi::c_int;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use kernel_primitives::{Device, Result, Stream};

use crate::peers::Peers;

/// Launches between two events, unless they take long.
const BATCH: f64 = 8.0;

/// The most samples a row, and the fewest.
const SAMPLES: (f64, f64) = (25.0, 7.0);

/// Milliseconds for the samples of a row, if the fewest take no longer.
const ROW: f64 = 300.0;

/// Milliseconds for one sample of long launches.
const SAMPLE: f64 = 8.0;

/// The groups of rows.
const GROUPS: [&str; 12] = [
    "launch",
    "algorithms",
    "elementwise",
    "block_sort",
    "block",
    "rows",
    "expressions",
    "stencils",
    "sparse",
    "fourier",
    "split",
    "tune",
];

/// The command line.
pub(crate) struct Options {
    pub(crate) peers: Option<String>,
    torch: Option<String>,
    json: Option<String>,
    /// Where the tuning values go that were found to be faster.
    pub(crate) tuning: Option<String>,
    commit: String,
    /// The logarithm of the largest size.
    pub(crate) log2: u32,
    /// Whether to run in the emulator, which checks the algorithms' rows at small sizes.
    pub(crate) emulate: bool,
    /// The groups of rows to measure; all of them if none is named.
    only: Vec<String>,
    /// Beginnings of the names of the algorithms' rows to measure; all of them if none is named.
    rows: Vec<String>,
}

impl Options {
    pub(crate) fn parse() -> Self {
        let mut options = Self {
            peers: None,
            torch: None,
            json: None,
            tuning: None,
            commit: "unknown".into(),
            log2: 30,
            emulate: false,
            only: Vec::new(),
            rows: Vec::new(),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().unwrap_or_else(|| panic!("{argument} takes a value"));
            match argument.as_str() {
                "--peers" => options.peers = Some(value()),
                "--torch" => options.torch = Some(value()),
                "--json" => options.json = Some(value()),
                "--tuning" => options.tuning = Some(value()),
                "--commit" => options.commit = value(),
                "--log2" => options.log2 = value().parse().expect("--log2 takes a number"),
                "--only" => options.only.extend(value().split(',').map(str::to_owned)),
                "--rows" => options.rows.extend(value().split(',').map(str::to_owned)),
                "--emulate" => {
                    options.emulate = true;
                    options.log2 = 12;
                }
                "--bench" => {} // from cargo
                other => panic!(
                    "unknown argument {other}: --peers FILE, --torch FILE, --json FILE, --tuning FILE, --commit HASH, --log2 N, \
                     --emulate, --only {}, --rows NAMES",
                    GROUPS.join(",")
                ),
            }
        }
        for group in &options.only {
            assert!(
                GROUPS.contains(&group.as_str()),
                "--only {group}: there is no such group; there are {}",
                GROUPS.join(",")
            );
        }
        if options.emulate && !options.tunes() {
            options.only = vec!["algorithms".into()];
        }
        options
    }

    /// Whether tuning is asked for, which is none of the groups that are measured unless others are named.
    pub(crate) fn tunes(&self) -> bool {
        self.only.iter().any(|only| only == "tune")
    }

    /// Whether an algorithm's row is to be measured.
    pub(crate) fn wants_row(&self, name: &str) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|beginning| name.starts_with(beginning))
    }

    /// Whether a group of rows is to be measured.
    pub(crate) fn wants(&self, group: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == group)
    }
}

pub(crate) fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    let middle = times.len() / 2;
    if times.len() % 2 == 1 { times[middle] } else { (times[middle - 1] + times[middle]) / 2.0 }
}

/// The time of one run of each contender in milliseconds, between two events on the stream: medians over samples that are taken in turn.
/// Two runs of each go before, of which the second says how many samples there is time for, and how many launches each has. A sample
/// begins with a run that is not timed, which leaves its own data in the caches, and not those of the contender before, and keeps the
/// device busy until the first timed launch comes. Only runs as long as a sample have none: it would change nothing.
pub(crate) fn compare(stream: &Stream, contenders: &mut [&mut dyn FnMut() -> Result<()>]) -> Result<Vec<f64>> {
    let sample = |run: &mut dyn FnMut() -> Result<()>, batch: f64| -> Result<f64> {
        if batch > 1.0 {
            run()?;
        }
        let start = stream.record()?;
        for _ in 0..batch as u32 {
            run()?;
        }
        Ok(stream.record()?.since(&start)?.as_secs_f64() * 1e3 / batch)
    };
    let mut batches = Vec::new();
    let mut total = 0.0;
    for run in contenders.iter_mut() {
        sample(*run, 1.0)?;
        let ms = sample(*run, 1.0)?;
        let batch = (SAMPLE / ms).floor().clamp(1.0, BATCH);
        total += batch * ms;
        batches.push(batch);
    }
    let samples = (ROW / total).floor().clamp(SAMPLES.1, SAMPLES.0) as usize;
    let mut times = vec![Vec::new(); contenders.len()];
    for _ in 0..samples {
        for ((run, times), batch) in contenders.iter_mut().zip(&mut times).zip(&batches) {
            times.push(sample(*run, *batch)?);
        }
    }
    Ok(times.into_iter().map(median).collect())
}

/// The least of each label's times, in the order in which the labels come first: a library has several ways to do the same.
pub(crate) fn least_by_label<'l>(times: impl IntoIterator<Item = (&'l str, f64)>) -> Vec<(&'l str, f64)> {
    let mut least: Vec<(&str, f64)> = Vec::new();
    for (label, time) in times {
        match least.iter_mut().find(|(known, _)| *known == label) {
            Some((_, known)) => *known = known.min(time),
            None => least.push((label, time)),
        }
    }
    least
}

/// As [`compare`], of ours and then of peers, by their names. What runs a peer returns CUDA's error.
pub(crate) fn compare_with_peers<'n, 'p, P: Fn() -> c_int + 'p>(
    stream: &Stream,
    ours: &mut [&mut dyn FnMut() -> Result<()>],
    peers: impl IntoIterator<Item = (&'n str, &'p P)>,
) -> Result<Vec<f64>> {
    let mut peers: Vec<_> = peers
        .into_iter()
        .map(|(name, peer)| {
            move || {
                assert_eq!(peer(), 0, "{name} failed");
                Ok(())
            }
        })
        .collect();
    let mut contenders: Vec<&mut dyn FnMut() -> Result<()>> = Vec::new();
    contenders.extend(ours.iter_mut().map(|run| run as &mut dyn FnMut() -> Result<()>));
    contenders.extend(peers.iter_mut().map(|run| run as &mut dyn FnMut() -> Result<()>));
    compare(stream, &mut contenders)
}

/// What was measured.
pub(crate) struct Report {
    /// Texts by name: the machine, and who the peers are.
    about: Vec<(String, String)>,
    rows: Vec<String>,
    /// PyTorch's times in milliseconds by the names of rows, as long as no row has taken them.
    torch: serde_json::Map<String, serde_json::Value>,
    /// Why rows have no time of a peer: reasons by the peers' columns, by the rows' names or "every row".
    missing: serde_json::Map<String, serde_json::Value>,
    failures: Vec<String>,
}

impl Report {
    pub(crate) fn new(device: &Device, options: &Options, until_open: Duration) -> Self {
        let driver = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
        let driver = driver.split_whitespace().find(|word| word.split('.').count() == 3).unwrap_or("unknown");
        println!("{device}, driver {driver}; process start to open device {:.0} ms", until_open.as_secs_f64() * 1e3);
        // Files by their names: where they lie is the machine's affair.
        let command: Vec<_> = std::env::args().skip(1).map(|argument| file_name(&argument).to_owned()).collect();
        let mut report = Self {
            about: [
                ("device", device.to_string()),
                ("driver", driver.to_owned()),
                ("commit", options.commit.clone()),
                ("command", format!("gpu {}", command.join(" "))),
            ]
            .map(|(name, text)| (name.to_owned(), text))
            .into(),
            rows: Vec::new(),
            torch: serde_json::Map::new(),
            missing: serde_json::Map::new(),
            failures: Vec::new(),
        };
        if let Some(path) = &options.torch {
            let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
            let torch: serde_json::Value =
                serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
            report.about("PyTorch", torch["torch"].as_str().unwrap_or("of an unknown version"));
            if let Some(version) = torch["cupy"].as_str() {
                report.about("CuPy", version);
            }
            report.torch = torch["rows"].as_object().cloned().unwrap_or_default();
            report.missing = torch["missing"].as_object().cloned().unwrap_or_default();
            let failed = torch["failures"].as_array().into_iter().flatten().filter_map(|what| what.as_str());
            report.failures.extend(failed.map(|what| format!("PyTorch, {what}")));
        }
        if let Some(path) = &options.peers {
            for (name, version) in Peers::open(path).versions() {
                report.about(name, &version);
            }
        }
        let mut without = serde_json::Map::new();
        for (given, option, columns) in [
            (options.torch.is_some(), "--torch", &["torch", "torch compiled", "CuPy"][..]),
            (options.peers.is_some(), "--peers", &["CUB", "Thrust", "CUDA", "tiled", "cuSPARSE", "cuFFT"][..]),
        ] {
            if !given {
                without.extend(columns.iter().map(|column| ((*column).to_owned(), format!("no {option}").into())));
            }
        }
        if !without.is_empty() {
            report.missing.insert("every row".into(), without.into());
        }
        report
    }

    /// Notes something about all rows.
    pub(crate) fn about(&mut self, name: &str, text: &str) {
        println!("{name} {text}");
        self.about.push((name.to_owned(), text.to_owned()));
    }

    /// A row of numbers by name; beside PyTorch's if there is one of the same name, and ours is in milliseconds.
    pub(crate) fn row(&mut self, name: &str, values: &[(&str, f64)]) {
        self.row_of(name, &[], values);
    }

    /// As [`row`](Self::row), with texts that say what it is of.
    pub(crate) fn row_of(&mut self, name: &str, texts: &[(&str, &str)], values: &[(&str, f64)]) {
        let mut values = values.to_vec();
        let ms = values.iter().find(|(key, _)| *key == "ms").map(|&(_, ms)| ms);
        for (suffix, key, ratio) in [
            ("", "torch ms", "ratio to torch"),
            (", compiled", "torch compiled ms", "ratio to torch compiled"),
            (", in CuPy", "CuPy ms", "ratio to CuPy"),
        ] {
            let theirs = self.torch.remove(&format!("{name}{suffix}")).and_then(|ms| ms.as_f64());
            if let (Some(ms), Some(theirs)) = (ms, theirs) {
                values.extend([(key, theirs), (ratio, theirs / ms)]);
            }
        }
        let mut line = format!("{name:34}");
        let mut json = format!("{{\"name\": {}", quoted(name));
        for (key, text) in texts {
            let _ = write!(json, ", {}: {}", quoted(key), quoted(text));
        }
        for (key, value) in values {
            if value.fract() == 0.0 {
                let _ = write!(line, "  {key} {value}");
                let _ = write!(json, ", \"{key}\": {value}");
            } else {
                let _ = write!(line, "  {key} {value:.4}");
                let _ = write!(json, ", \"{key}\": {value:.5}");
            }
        }
        println!("{line}");
        self.rows.push(json + "}");
    }

    /// Runs a group of rows. A panic or an error is a failure: it ends the group, but the rows of all groups are written.
    pub(crate) fn group(&mut self, name: &str, run: impl FnOnce(&mut Self) -> Result<()>) {
        let why = match catch_unwind(AssertUnwindSafe(|| run(self))) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(panic) => match panic.downcast::<String>() {
                Ok(message) => *message,
                Err(panic) => panic.downcast_ref::<&str>().copied().unwrap_or("a panic").to_owned(),
            },
        };
        self.failure(format!("{name}: {why}"));
    }

    /// Notes a wrong result, ours or a peer's; the others are measured all the same.
    pub(crate) fn failure(&mut self, what: String) {
        println!("FAILED {what}");
        self.failures.push(what);
    }

    /// Writes the results, and says whether all were right.
    pub(crate) fn finish(self, options: &Options) -> bool {
        let Self { about, rows, torch, missing, mut failures } = self;
        // Rows of a tuning begin with its parameter.
        for beginning in &options.rows {
            let names = [format!("{{\"name\": \"{beginning}"), format!(", {beginning}")];
            if !rows.iter().any(|row| row.starts_with(&names[0]) || row.contains(&names[1])) {
                failures.push(format!("--rows {beginning}: there is no such row"));
            }
        }
        if !torch.is_empty() {
            println!("PyTorch's rows without one here: {}", torch.keys().cloned().collect::<Vec<_>>().join(", "));
        }
        if let Some(path) = &options.json {
            let about: String =
                about.iter().map(|(name, text)| format!("  {}: {},\n", quoted(name), quoted(text))).collect();
            let failed = serde_json::to_string(&failures).expect("texts");
            let missing = serde_json::to_string(&missing).expect("texts");
            let rows = rows.join(",\n    ");
            let json = format!(
                "{{\n{about}  \"failures\": {failed},\n  \"missing\": {missing},\n  \"rows\": [\n    {rows}\n  ]\n}}\n"
            );
            std::fs::write(path, json).unwrap_or_else(|error| panic!("{path}: {error}"));
        }
        if !failures.is_empty() {
            println!("{} failures:\n    {}", failures.len(), failures.join("\n    "));
        }
        failures.is_empty()
    }
}

/// A text as JSON has it.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text")
}

fn file_name(argument: &str) -> &str {
    argument.rsplit('/').next().unwrap_or(argument)
}
