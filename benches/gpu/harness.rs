//! Samples, medians and the report.

use std::fmt::Write as _;
use std::time::Duration;

use kernel_primitives::{Device, Result, Stream};

/// Launches between two events.
const BATCH: u32 = 8;

/// Samples a row.
const SAMPLES: usize = 25;

/// The command line.
pub(crate) struct Options {
    pub(crate) peers: Option<String>,
    pub(crate) torch: Option<String>,
    pub(crate) json: Option<String>,
    pub(crate) commit: String,
    pub(crate) log2: u32,
    /// The groups of rows to measure; all of them if none is named.
    only: Vec<String>,
}

impl Options {
    pub(crate) fn parse() -> Self {
        let mut options =
            Self { peers: None, torch: None, json: None, commit: "unknown".into(), log2: 28, only: Vec::new() };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().unwrap_or_else(|| panic!("{argument} takes a value"));
            match argument.as_str() {
                "--peers" => options.peers = Some(value()),
                "--torch" => options.torch = Some(value()),
                "--json" => options.json = Some(value()),
                "--commit" => options.commit = value(),
                "--log2" => options.log2 = value().parse().expect("--log2 takes a number"),
                "--only" => options.only.extend(value().split(',').map(str::to_owned)),
                "--bench" => {} // from cargo
                other => panic!(
                    "unknown argument {other}: --peers FILE, --torch FILE, --json FILE, --commit HASH, --log2 N, \
                     --only launch,algorithms,elementwise,block_sort,block,rows"
                ),
            }
        }
        options
    }

    /// Whether a group of rows is to be measured.
    pub(crate) fn wants(&self, group: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == group)
    }
}

pub(crate) fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Device time of one run of each contender in milliseconds: medians over samples that are taken in turn.
pub(crate) fn compare(stream: &Stream, contenders: &mut [&mut dyn FnMut() -> Result<()>]) -> Result<Vec<f64>> {
    let mut times = vec![Vec::new(); contenders.len()];
    for sample in 0..SAMPLES + 2 {
        for (run, times) in contenders.iter_mut().zip(&mut times) {
            let start = stream.record()?;
            for _ in 0..BATCH {
                run()?;
            }
            let time = stream.record()?.since(&start)?;
            if sample >= 2 {
                times.push(time.as_secs_f64() * 1e3 / f64::from(BATCH));
            }
        }
    }
    Ok(times.into_iter().map(median).collect())
}

/// What was measured.
pub(crate) struct Report {
    device: String,
    driver: String,
    rows: Vec<String>,
}

impl Report {
    pub(crate) fn new(device: &Device, until_open: Duration) -> Self {
        let driver = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
        let driver =
            driver.split_whitespace().find(|word| word.split('.').count() == 3).unwrap_or("unknown").to_owned();
        println!("{device}, driver {driver}; process start to open device {:.0} ms", until_open.as_secs_f64() * 1e3);
        Self { device: device.to_string(), driver, rows: Vec::new() }
    }

    /// A row of numbers by name.
    pub(crate) fn row(&mut self, name: &str, values: &[(&str, f64)]) {
        let mut line = format!("{name:34}");
        let mut json = format!("{{\"name\": \"{name}\"");
        for (key, value) in values {
            let _ = write!(line, "  {key} {value:.4}");
            let _ = write!(json, ", \"{key}\": {value:.5}");
        }
        println!("{line}");
        self.rows.push(json + "}");
    }

    pub(crate) fn finish(self, options: &Options) {
        let Some(path) = &options.json else { return };
        let Self { device, driver, rows } = self;
        // Files by their names: where they lie is the machine's affair.
        let command: Vec<_> = std::env::args().skip(1).map(|argument| file_name(&argument).to_owned()).collect();
        let json = format!(
            "{{\n  \"device\": \"{device}\",\n  \"driver\": \"{driver}\",\n  \"commit\": \"{}\",\n  \"command\": \"gpu {}\",\n  \"rows\": [\n    {}\n  ]\n}}\n",
            options.commit,
            command.join(" "),
            rows.join(",\n    "),
        );
        std::fs::write(path, json).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
}

fn file_name(argument: &str) -> &str {
    argument.rsplit('/').next().unwrap_or(argument)
}
