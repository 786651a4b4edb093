//! Tuning on the GPU at hand: the rows of the algorithms with each candidate of their parameters, by turns.
//!
//! A first pass times the candidates of one parameter at a time. What makes an algorithm faster over all rows with items of a size,
//! and none of them slower, is timed once more in a second pass, all together beside what counts now: chance does not win twice.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kernel_primitives::algorithms::{Parameter, Tuning};
use kernel_primitives::{Device, Result, Stream};

use super::{Bench, Case};
use crate::harness::{Options, Report, compare};

/// The logarithms of the rows' sizes.
const SIZES: &[u32] = &[16, 20, 24, 26];

/// What a value has to gain over all rows, and may lose in one: what is less is noise.
const GAIN: f64 = 1.01;
const LOSS: f64 = 0.98;

/// The bytes of the first type in a row's types, such as `u32_f32`.
fn bytes(types: &str) -> Option<usize> {
    let digits: String = types.chars().skip(1).take_while(char::is_ascii_digit).collect();
    digits.parse::<usize>().ok().map(|bits| bits / 8)
}

/// A parameter for items of some size: by its place in the table.
type Key = (usize, usize);

/// Times of the rows, as many as there are candidates.
pub(super) struct Tuner {
    now: Tuning,
    /// What the second pass compares with `now`.
    best: Option<Tuning>,
    times: BTreeMap<Key, Vec<Vec<f64>>>,
}

impl Tuner {
    /// The parameters that a row is measured for: of ordinary inputs, and in the second pass those that have another value.
    fn parameters(&self, case: Case<'_>) -> impl Iterator<Item = (Parameter, usize)> {
        let bytes = bytes(case.types).filter(|_| case.input.is_empty());
        let own = Parameter::ALL.iter().copied().filter(move |it| it.rows().contains(&case.algorithm));
        let all = bytes.into_iter().flat_map(move |bytes| own.clone().map(move |it| (it, bytes)));
        all.filter(|&(it, bytes)| self.best.as_ref().is_none_or(|best| best.get(it, bytes) != self.now.get(it, bytes)))
    }

    /// Whether a row is measured.
    pub(super) fn wants(&self, case: Case<'_>) -> bool {
        self.parameters(case).next().is_some()
    }

    /// What a row is measured with: for each parameter, its candidates.
    pub(super) fn trials(&self, case: Case<'_>) -> Result<Vec<(Key, Vec<Tuning>)>> {
        let mut trials = Vec::new();
        for (parameter, bytes) in self.parameters(case) {
            let key = (parameter as usize, bytes);
            match &self.best {
                Some(best) => trials.push((key, vec![self.now.clone(), best.clone()])),
                None => {
                    let tuned = |&value| {
                        let mut tuning = self.now.clone();
                        tuning.set(parameter, Some(bytes), value)?;
                        Ok(tuning)
                    };
                    trials.push((key, values(&self.now, key).iter().map(tuned).collect::<Result<_>>()?));
                }
            }
        }
        Ok(trials)
    }

    /// Notes a row's times.
    pub(super) fn note(&mut self, name: &str, key: Key, times: Vec<f64>, report: &mut Report) {
        let parameter = Parameter::ALL[key.0];
        let values = match &self.best {
            None => values(&self.now, key),
            Some(best) => [&self.now, best].map(|tuning| tuning.get(parameter, key.1)).into(),
        };
        let keys: Vec<_> = values.iter().map(|value| format!("{value}: ms")).collect();
        let values: Vec<_> = keys.iter().map(String::as_str).zip(times.iter().copied()).collect();
        let pass = if self.best.is_none() { "tune" } else { "confirm" };
        report.row(&format!("{pass} {}, {name}", parameter.name()), &values);
        self.times.entry(key).or_default().push(times);
    }

    /// For each parameter the gain of each candidate over the first, as a factor: the geometric mean over all rows, and the least of one.
    fn gains(&self) -> BTreeMap<Key, Vec<(f64, f64)>> {
        let gains = |rows: &Vec<Vec<f64>>| {
            let of = |candidate: usize| {
                let ratios = rows.iter().map(|times| times[0] / times[candidate]);
                let mean = ratios.clone().map(f64::ln).sum::<f64>() / rows.len() as f64;
                (mean.exp(), ratios.fold(f64::INFINITY, f64::min))
            };
            (0..rows[0].len()).map(of).collect()
        };
        self.times.iter().map(|(&key, rows)| (key, gains(rows))).collect()
    }
}

/// What counts now, and the candidates beside it.
fn values(now: &Tuning, (parameter, bytes): Key) -> Vec<u32> {
    let parameter = Parameter::ALL[parameter];
    let first = now.get(parameter, bytes);
    [first].into_iter().chain(parameter.candidates().iter().copied().filter(|&value| value != first)).collect()
}

/// Times each candidate, checked as all rows are, on this device; prints and reports old values, best ones and what those gain; and
/// writes a file of those that a second pass confirms.
pub(crate) fn run(device: &Device, options: &Options, report: &mut Report) -> Result<()> {
    let stream = device.stream()?;
    let now = Tuning::of(device)?.clone();
    let tuner = times(&stream, options, report, Tuner { now, best: None, times: BTreeMap::new() })?;
    let mut best = tuner.now.clone();
    println!("\n{:28}{:>8}{:>8}{:>8}{:>8}", "parameter", "now", "best", "gain", "least");
    for (key, gains) in tuner.gains() {
        let (parameter, values) = (Parameter::ALL[key.0], values(&tuner.now, key));
        let allowed = |&candidate: &usize| gains[candidate].1 >= LOSS;
        let fastest = (0..values.len()).filter(allowed).max_by(|&a, &b| gains[a].0.total_cmp(&gains[b].0)).unwrap_or(0);
        let chosen = if gains[fastest].0 >= GAIN { fastest } else { 0 };
        best.set(parameter, Some(key.1), values[chosen])?;
        let name = format!("{}.{}", parameter.name(), key.1);
        let (gain, least) = gains[chosen];
        println!("{name:28}{:>8}{:>8}{gain:>8.3}{least:>8.3}", values[0], values[chosen]);
    }
    println!();
    let tuner =
        times(&stream, options, report, Tuner { now: tuner.now, best: Some(best.clone()), times: BTreeMap::new() })?;

    let architecture =
        device.compute_capability().map_or("all".to_owned(), |(major, minor)| format!("sm_{major}{minor}"));
    let mut lines = format!("# Tuned on {device}.\n");
    println!("\n{:28}{:>8}{:>8}{:>8}{:>8}", "confirmed", "was", "is", "gain", "least");
    for (key, gains) in tuner.gains() {
        let parameter = Parameter::ALL[key.0];
        let [was, is] = [&tuner.now, &best].map(|tuning| tuning.get(parameter, key.1));
        let (gain, least) = gains[1];
        let name = format!("{}.{}", parameter.name(), key.1);
        report.row(
            &format!("tuned {name}"),
            &[
                ("was", was.into()),
                ("is", is.into()),
                ("gain", gain),
                ("least", least),
                ("rows", tuner.times[&key].len() as f64),
            ],
        );
        if gain >= GAIN && least >= LOSS {
            println!("{name:28}{was:>8}{is:>8}{gain:>8.3}{least:>8.3}");
            let _ = writeln!(lines, "{architecture} {name} = {is} # was {was}; {:.1} % faster", 100.0 * (gain - 1.0));
        }
    }
    println!("\n{lines}");
    if let Some(path) = &options.tuning {
        std::fs::write(path, lines).unwrap_or_else(|error| panic!("{path}: {error}"));
        println!("these lines are in {path}: KERNEL_PRIMITIVES_TUNING={path} makes them count");
    }
    Ok(())
}

/// Runs all rows.
fn times(stream: &Stream, options: &Options, report: &mut Report, tuner: Tuner) -> Result<Tuner> {
    let mut bench = Bench::new(stream, options, report);
    bench.sizes = if options.emulate { bench.sizes } else { Some(SIZES) };
    bench.tuner = Some(tuner);
    bench.rows()?;
    Ok(bench.tuner.expect("it stays"))
}

/// Times contenders that differ in their tuning values alone.
pub(super) fn by_turns(
    stream: &Stream,
    tunings: &[Tuning],
    mut run: impl FnMut(&Tuning) -> Result<()>,
) -> Result<Vec<f64>> {
    let run = std::cell::RefCell::new(&mut run);
    let mut contenders: Vec<_> = tunings.iter().map(|tuning| || run.borrow_mut()(tuning)).collect();
    let mut contenders: Vec<_> = contenders.iter_mut().map(|run| run as &mut dyn FnMut() -> Result<()>).collect();
    compare(stream, &mut contenders)
}
