//! Runs subjects on cases, shrinks failing cases, and reports them.

mod memory;
mod outputs;
mod tuning;

pub use memory::{one_tile, shared_memory};
pub use outputs::{sanitize, short_outputs};
pub use tuning::tuning;

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use kernel_primitives::algorithms::{Tuning, Workspace};
use kernel_primitives::{Device, EmulatorOptions, Error, Result, Stream};

use crate::case::{Case, Lengths, Mode};
use crate::shape::CORNERS;
use crate::subject::{Place, Subject, Trial};

/// The number of cases of a subject in `properties`, unless the environment has another number.
const CASES: u64 = 40;

fn number(variable: &str, otherwise: u64) -> u64 {
    let parse = |text: String| text.parse().unwrap_or_else(|_| panic!("{variable} is a number, and not `{text}`"));
    std::env::var(variable).ok().map_or(otherwise, parse)
}

/// Two streams for each mode, and streams of other devices whose results have the same bits.
struct Lab {
    modes: Vec<[Stream; 2]>,
    others: Vec<Stream>,
    /// A stream of the device that the environment names.
    usual: Stream,
    tuning: Tuning,
    gpu: bool,
}

impl Lab {
    fn new() -> Result<Self> {
        let device = Device::auto()?;
        let mut devices = vec![device.clone()];
        let with = |checked, threads, seed| {
            let mut options = EmulatorOptions::default();
            (options.checked, options.threads, options.seed) = (checked, threads, seed);
            Device::emulator_with(options)
        };
        if !device.is_gpu() {
            devices = vec![with(false, 1, None), with(false, 3, Some(5)), with(true, 1, Some(9))];
        }
        let streams = |device: &Device| Ok([device.stream()?, device.stream()?]);
        let tuning = Tuning::of(&device)?.clone();
        let modes = devices.iter().map(streams).collect::<Result<_>>()?;
        let others = vec![with(false, 2, Some(3)).stream()?, with(false, 5, None).stream()?];
        Ok(Self { modes, others, usual: device.stream()?, tuning, gpu: device.is_gpu() })
    }

    fn streams(&self, mode: Mode) -> &[Stream; 2] {
        self.modes.get(mode as usize).unwrap_or(&self.modes[0])
    }
}

/// The description of a failure.
struct Failure {
    what: String,
    /// Whether the device is lost, so that nothing can be tried after that.
    last: bool,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { last: matches!(error, Error::ContextLost { .. }), what: format!("{error}").replace('\n', " ") }
    }
}

impl From<String> for Failure {
    fn from(what: String) -> Self {
        Self { what, last: false }
    }
}

type Check = fn(&Lab, &Subject, &Case) -> Result<(), Failure>;

/// Returns the case of a number, from the case that was drawn and the subject's lengths.
type Shape = fn(u64, Case, &Lengths) -> Case;

/// Takes the case that was drawn.
fn as_drawn(_: u64, case: Case, _: &Lengths) -> Case {
    case
}

/// A number of items for one tile.
const ONE_TILE: usize = 900;

/// A number of items for several tiles. Scans of four bytes have more than one tile from 19 457 items.
const SEVERAL_TILES: usize = 20_160;

/// Begins with several tiles by the device's tuning values, one tile that runs checked, and several tiles by other tuning values. Those of
/// several tiles have the usual shapes.
fn several_tiles_first(n: u64, case: Case, lengths: &Lengths) -> Case {
    match n {
        0 => Case { tuning: 0, ..case.with_len(SEVERAL_TILES, lengths).shaped(0) },
        1 => Case { tuning: 0, mode: Mode::Checked, ..case.with_len(ONE_TILE, lengths) },
        2 => case.with_len(SEVERAL_TILES, lengths).shaped(1),
        _ => case,
    }
}

/// Begins with one tile that runs checked.
fn one_tile_first(n: u64, case: Case, lengths: &Lengths) -> Case {
    match n {
        0 => Case { tuning: 0, mode: Mode::Checked, ..case.with_len(ONE_TILE, lengths).shaped(0) },
        _ => case,
    }
}

/// The most items of a case of one of the [corners](CORNERS), which may run checked.
const FEW: usize = 2500;

/// Begins with the kinds of blocks that every collective must serve. All of them run checked, except the largest block.
fn corners_first(n: u64, case: Case, lengths: &Lengths) -> Case {
    let params = CORNERS.start + n;
    if !CORNERS.contains(&params) {
        return case;
    }
    let mode = if params + 1 < CORNERS.end { Mode::Checked } else { case.mode };
    Case { params, mode, ..case.with_len(FEW, lengths) }
}

/// Returns the check's answer. A panic is an answer, too.
fn attempt(check: Check, lab: &Lab, subject: &Subject, case: &Case) -> Result<(), Failure> {
    catch_unwind(AssertUnwindSafe(|| check(lab, subject, case))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.into()));
        Err(Failure::from(format!("a panic: {}", text.unwrap_or_default())))
    })
}

/// Returns the simplest case that fails, and its failure. It takes a few hundred attempts.
fn shrink(check: Check, lab: &Lab, subject: &Subject, mut case: Case, mut failure: Failure) -> (Case, Failure) {
    let mut attempts = 0;
    'simpler: while !failure.last && attempts < 300 {
        for simpler in case.simpler() {
            attempts += 1;
            if let Err(found) = attempt(check, lab, subject, &simpler) {
                (case, failure) = (simpler, found);
                continue 'simpler;
            }
        }
        break;
    }
    (case, failure)
}

/// Makes a seed from the environment's seed, the subject and the number of the case.
fn seed(test: &str, subject: &str, n: u64) -> u64 {
    let seed = number("KERNEL_PRIMITIVES_NET_SEED", 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let text = test.bytes().chain(subject.bytes());
    let hash = text.fold(seed, |hash, byte| (hash ^ byte as u64).wrapping_mul(0x0100_0000_01b3));
    hash.wrapping_add(n.wrapping_mul(0xd6e8_feb8_6659_fd93))
}

/// Checks all subjects, each on this number of cases. Fails with a line for each subject for which a case fails.
fn drive(test: &str, subjects: Vec<Subject>, cases: u64, shape: Shape, check: Check) {
    assert!(!subjects.is_empty(), "net: {test} has no subjects");
    let lab = Lab::new().expect("a device");
    let only = std::env::var("KERNEL_PRIMITIVES_NET_CASE").ok();
    if let Some(only) = &only {
        let is_of = |name: String| only.strip_prefix(&name).is_some_and(|rest| rest.starts_with(" len="));
        let known = crate::subjects().iter().any(|subject| is_of(subject.name()));
        assert!(known, "KERNEL_PRIMITIVES_NET_CASE begins with the name of a subject, and not `{only}`");
    }
    let mut failures = Vec::new();
    for subject in subjects {
        let name = subject.name();
        let mut failed = |case: Case, failure: Failure| {
            let (case, failure) = shrink(check, &lab, &subject, case, failure);
            let line = format!("net: {test}: {}: KERNEL_PRIMITIVES_NET_CASE='{name} {case}'", failure.what);
            println!("{line}");
            failures.push(line);
            failure.last
        };
        if let Some(only) = &only {
            if let Some(case) = only.strip_prefix(&name).and_then(|rest| rest.strip_prefix(" len=")) {
                let case = format!("len={case}").parse().unwrap_or_else(|error| panic!("{only}: {error}"));
                if let Err(Failure { what, .. }) = attempt(check, &lab, &subject, &case) {
                    panic!("net: {test}: {what}: {name} {case}");
                }
            }
            continue;
        }
        let mut done = 0;
        let lengths = &subject.lengths;
        let case = |n| shape(n, Case::draw(seed(test, &name, n), lengths, lab.gpu), lengths);
        let found = (0..cases).map(case).find_map(|case| {
            done += 1;
            attempt(check, &lab, &subject, &case).err().map(|failure| (case, failure))
        });
        println!("net: {test} {name} {done} cases");
        if let Some((case, failure)) = found
            && failed(case, failure)
        {
            break;
        }
    }
    assert!(failures.is_empty(), "{} subjects fail:\n{}", failures.len(), failures.join("\n"));
}

fn cases() -> u64 {
    let cases = number("KERNEL_PRIMITIVES_NET_CASES", CASES);
    assert!(cases > 0, "KERNEL_PRIMITIVES_NET_CASES is 0, so nothing is tested");
    cases
}

fn some_cases() -> u64 {
    (cases() / 8).max(1)
}

/// Tests one call of algorithms against the reference.
pub fn algorithms(subjects: Vec<Subject>) {
    properties(subjects, as_drawn);
}

/// Tests one call of collectives against the reference.
pub fn collectives(subjects: Vec<Subject>) {
    properties(subjects, corners_first);
}

fn properties(subjects: Vec<Subject>, shape: Shape) {
    drive("properties", subjects, cases(), shape, |lab, subject, case| {
        let [stream, _] = lab.streams(case.mode);
        let mut trial = subject.begin(std::slice::from_ref(case), stream)?;
        trial.call(Place { stream, workspace: None, tuning: &case.tuning(&lab.tuning) })?;
        Ok(trial.verify()?)
    });
}

/// Tests a graph that is replayed with other items. A call in between shares its workspace. With the workspace of an earlier call,
/// the capture allocates nothing. Unless more cases are asked for, only the first subject of each function has several tiles.
pub fn captures(subjects: Vec<Subject>) {
    let mut functions = HashSet::new();
    let is_long = |subject: &Subject| functions.insert(subject.covers[0]) || cases() > CASES;
    let (long, short): (Vec<_>, Vec<_>) = subjects.into_iter().partition(is_long);
    captures_of(long, several_tiles_first);
    if !short.is_empty() {
        captures_of(short, one_tile_first);
    }
}

fn captures_of(subjects: Vec<Subject>, shape: Shape) {
    drive("captures", subjects, some_cases(), shape, |lab, subject, case| {
        let [stream, _] = lab.streams(case.mode);
        let tuning = case.tuning(&lab.tuning);
        let mut fills = vec![case.clone(), case.refill(1)];
        fills.extend((cases() > CASES).then(|| case.refill(2)));
        let (mut captured, mut direct) = (subject.begin(&fills, stream)?, subject.begin(&fills[..1], stream)?);
        let mut workspace = Workspace::new();
        let call = |trial: &mut Trial, stream: &Stream, workspace: &mut Workspace| {
            trial.call(Place { stream, workspace: Some(workspace), tuning: &tuning })
        };
        call(&mut direct, stream, &mut workspace)?;
        let before = stream.device().counters();
        let graph = stream.capture(|stream| call(&mut captured, stream, &mut workspace))?;
        let allocations = stream.device().counters().since(before).allocations;
        // A GPU counts what other tests allocate, too.
        if allocations > 0 && !lab.gpu {
            return Err(Failure::from(format!("the capture allocates {allocations} times")));
        }
        for replay in 0..fills.len() {
            if replay > 0 {
                if replay == 1 {
                    call(&mut direct, stream, &mut workspace)?;
                }
                captured.refill()?;
            }
            graph.launch(stream)?;
            captured.verify().map_err(|what| format!("replay {replay}: {what}"))?;
        }
        Ok(direct.verify().map_err(|what| format!("a call between replays: {what}"))?)
    });
}

/// Tests calls of different lengths on two streams, from two threads that pass the workspace on, without a pause.
pub fn workspaces(subjects: Vec<Subject>) {
    drive("workspaces", subjects, some_cases(), as_drawn, |lab, subject, case| {
        let [first, second] = lab.streams(case.mode);
        let tuning = case.tuning(&lab.tuning);
        let other = Case { len: (case.len / 2).max(1) + case.len % 3, ..case.refill(1) };
        let mut trials = vec![subject.begin(std::slice::from_ref(case), first)?, subject.begin(&[other], second)?];
        trials.push(trials[0].twin(first)?);
        trials.push(trials[1].twin(second)?);
        let mut workspace = Workspace::new();
        let mut call = |trial: &mut Trial, stream: &Stream| {
            trial.call(Place { stream, workspace: Some(&mut workspace), tuning: &tuning })
        };
        for (trial, stream) in trials.iter_mut().zip([first, second]) {
            call(trial, stream)?;
        }
        let from_another = thread::scope(|scope| {
            let calls =
                || (trials.iter_mut().skip(2).zip([second, first])).try_for_each(|(trial, stream)| call(trial, stream));
            scope.spawn(calls).join().expect("no panic")
        });
        from_another?;
        for (n, trial) in trials.iter().enumerate() {
            trial.verify().map_err(|what| format!("call {n}: {what}"))?;
        }
        Ok(())
    });
}

/// Tests two threads, each with a stream and results of its own, on the same inputs.
pub fn threads(subjects: Vec<Subject>) {
    drive("threads", subjects, some_cases(), as_drawn, |lab, subject, case| {
        let streams = lab.streams(case.mode);
        let tuning = case.tuning(&lab.tuning);
        let first = subject.begin(std::slice::from_ref(case), &streams[0])?;
        let second = first.twin(&streams[1])?;
        thread::scope(|scope| {
            let calls = [first, second].into_iter().zip(streams).map(|(mut trial, stream)| {
                let tuning = &tuning;
                scope.spawn(move || -> Result<(), Failure> {
                    for _ in 0..2 {
                        trial.call(Place { stream, workspace: None, tuning })?;
                    }
                    Ok(trial.verify()?)
                })
            });
            let calls: Vec<_> = calls.collect();
            calls.into_iter().try_for_each(|call| call.join().expect("no panic"))
        })
    });
}

/// Tests that there are the same bits on every run, with any number of blocks at once, and on every device.
pub fn bits(subjects: Vec<Subject>) {
    let of_floats = subjects.into_iter().filter(|subject| subject.types.contains("reals")).collect();
    drive("bits", of_floats, some_cases(), as_drawn, |lab, subject, case| {
        let mut found = Vec::new();
        for stream in lab.streams(case.mode).iter().chain(&lab.others) {
            let mut trial = subject.begin(std::slice::from_ref(case), stream)?;
            trial.call(Place { stream, workspace: None, tuning: &lab.tuning })?;
            found.push(trial.printed()?);
        }
        match found.iter().position(|bits| *bits != found[0]) {
            Some(other) => Err(Failure::from(format!("run {other} has other bits than the first"))),
            None => Ok(()),
        }
    });
}
