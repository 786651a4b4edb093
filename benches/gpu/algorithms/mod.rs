//! Algorithms over whole buffers beside CUB's and Thrust's, and PyTorch's where `torch_peers.py` has a row of the name.
//!
//! A row is an algorithm, its element types, what is special about the input, and a size. All contenders read the same buffers
//! and write the same ones, which are overwritten before each is run once and its results are checked; then they are measured in
//! turn, and our results are checked again.

mod counts;
mod inputs;
mod merges;
mod moves;
mod numbers;
mod runs;
mod selections;
mod sorts;
pub(crate) mod tune;

use kernel_primitives::algorithms::{Run, Workspace, fill};
use kernel_primitives::{Buffer, BufferSlice, BufferSliceMut, Device, Element, Result, Stream};

use crate::harness::{Options, Report, compare, compare_with_peers, least_by_label};
use crate::peers::Peers;
use inputs::Item;

pub(crate) fn run(device: &Device, options: &Options, report: &mut Report) -> Result<()> {
    let stream = device.stream()?;
    let peers = options.peers.as_deref().map(Peers::open);
    let mut bench = Bench::new(&stream, options, report);
    bench.peers = peers.as_ref();
    bench.copy()?;
    bench.rows()
}

/// Logarithms of sizes, to plot over: from where a launch is all there is to far beyond the cache.
const EVERY: &[u32] = &[10, 12, 16, 20, 24, 28, 30];
/// As [`EVERY`], up to a GiB of four bytes.
const MOST: &[u32] = &[10, 12, 16, 20, 24, 28];
/// Of types and inputs beside those that have more.
const SOME: &[u32] = &[10, 16, 20, 28];
/// The input of sorts and merges by an order of which nobody knows that it is that of the numbers.
const OWN: &str = "own order";
/// Where a special input can make a difference.
const LARGE: &[u32] = &[20, 28];
/// Where it matters that the last tile is not a whole one.
const SMALL: &[u32] = &[16, 20];

/// What a row is of.
#[derive(Clone, Copy)]
struct Case<'a> {
    algorithm: &'a str,
    /// The element types, as in the names of the peers' functions.
    types: &'a str,
    /// What is special about the input; nothing if it is empty.
    input: &'a str,
    log2: u32,
}

impl Case<'_> {
    fn len(&self) -> usize {
        (1 << self.log2) - if self.input == "odd length" { 999 } else { 0 }
    }

    fn name(&self) -> String {
        let Self { algorithm, types, input, log2 } = self;
        format!("{algorithm} {types}{}{input} 2^{log2}", if input.is_empty() { "" } else { " " })
    }

    /// The algorithms of peers that do the same. Sorts by the order of the numbers can be sorts by digits.
    fn algorithms(&self) -> impl Iterator<Item = &str> {
        let by_digits = match self.algorithm {
            "sort_by" if self.input != OWN => Some("sort_keys"),
            "sort_pairs_by" if self.input != OWN => Some("sort_pairs"),
            _ => None,
        };
        std::iter::once(self.algorithm).chain(by_digits)
    }

    /// Elements before the first one of inputs and outputs.
    fn offset(&self) -> usize {
        usize::from(self.input == "unaligned")
    }
}

/// Whose result is checked.
#[derive(Clone, Copy, PartialEq)]
enum Who {
    Ours,
    Peer,
}

/// What is wrong with a result.
type Verdict = Result<Option<String>>;

struct Bench<'a> {
    stream: &'a Stream,
    peers: Option<&'a Peers>,
    options: &'a Options,
    report: &'a mut Report,
    workspace: Workspace,
    /// The logarithm of the largest size.
    largest: u32,
    /// The sizes of all rows, whatever they have otherwise.
    sizes: Option<&'a [u32]>,
    /// The logarithm of the length after which an input repeats.
    period: u32,
    /// The bandwidth of a copy on the device, read and written, in GB/s.
    copy: f64,
    /// Where Thrust puts a result that it returns to the host.
    host: Box<u64>,
    /// What times the rows with several tuning values, in place of the peers.
    tuner: Option<tune::Tuner>,
}

impl<'a> Bench<'a> {
    fn new(stream: &'a Stream, options: &'a Options, report: &'a mut Report) -> Self {
        Self {
            stream,
            peers: None,
            options,
            report,
            workspace: Workspace::new(),
            largest: options.log2,
            sizes: options.emulate.then_some(&[10, 12]),
            period: if options.emulate { 10 } else { 22 },
            copy: 0.0,
            host: Box::new(0),
            tuner: None,
        }
    }

    fn rows(&mut self) -> Result<()> {
        numbers::run(self)?;
        selections::run(self)?;
        runs::run(self)?;
        sorts::run(self)?;
        merges::run(self)?;
        counts::run(self)?;
        moves::run(self)
    }
}

impl Bench<'_> {
    /// What all bandwidths are compared with.
    fn copy(&mut self) -> Result<()> {
        let stream = self.stream;
        let log2 = self.largest.min(28);
        let x = stream.buffer_zeroed::<f32>(1 << log2)?;
        let mut out = stream.buffer_zeroed::<f32>(1 << log2)?;
        let bytes = 8.0 * x.len() as f64;
        let ms = compare(stream, &mut [&mut || out.as_mut_slice().copy_from_device(stream, x.as_slice())])?[0];
        self.copy = bytes / ms / 1e6;
        self.report.row(&format!("copy 2^{log2}"), &[("ms", ms), ("bytes", bytes), ("GB/s", self.copy)]);
        Ok(())
    }

    /// Those of the sizes that are wanted.
    fn sizes(&self, sizes: &[u32]) -> Vec<u32> {
        self.sizes.unwrap_or(sizes).iter().copied().filter(|&log2| log2 <= self.largest).collect()
    }

    /// Whether a row is to be measured.
    fn wants(&self, case: Case<'_>) -> bool {
        self.options.wants_row(&case.name()) && self.tuner.as_ref().is_none_or(|tuner| tuner.wants(case))
    }

    /// The length after which an input of so many items repeats. If it is not whole periods, it does not repeat.
    fn period(&self, len: usize) -> usize {
        let period = 1 << self.period;
        if len.is_multiple_of(period) { period } else { len }
    }

    /// The address of the word in which Thrust returns a result.
    fn host(&mut self) -> u64 {
        &raw mut *self.host as u64
    }

    /// Checks and measures `ours` beside the peers', which are given `buffers`. `bytes` are those of each input, read once, and of
    /// each output, written once; `check` says what is wrong with the outputs.
    fn row<O: Outputs>(
        &mut self,
        case: Case<'_>,
        bytes: usize,
        buffers: &[u64],
        out: &mut O,
        mut ours: impl FnMut(Run<'_>, &mut O) -> Result<()>,
        check: impl Fn(&O, Who) -> Verdict,
    ) -> Result<()> {
        let (stream, name) = (self.stream, case.name());
        if self.tuner.is_some() {
            return self.tune(case, out, ours, check);
        }
        out.overwrite(stream)?;
        let verdict = match ours(Run::on(stream).with(&mut self.workspace), out) {
            Ok(()) => check(out, Who::Ours)?,
            Err(error) => Some(error.to_string()),
        };
        if let Some(wrong) = verdict {
            self.report.failure(format!("{name}, ours: {wrong}"));
            return Ok(());
        }
        let mut peers = Vec::new();
        let libraries = [("cub", "CUB"), ("cub_other", "CUB"), ("thrust", "Thrust")];
        let calls =
            case.algorithms().flat_map(|algorithm| libraries.map(|(library, label)| (algorithm, library, label)));
        for (algorithm, library, label) in calls {
            let Some(library_of) = self.peers else { break };
            let function = format!("{algorithm}_{}", case.types);
            let Some(peer) = library_of.algorithm(library, &function, stream, case.len(), buffers)? else { continue };
            out.overwrite(stream)?;
            let code = peer();
            stream.synchronize()?;
            if library == "thrust" {
                out.returned(*self.host)?;
            }
            let verdict = if code == 0 { check(out, Who::Peer)? } else { Some(format!("error {code}")) };
            match verdict {
                None => peers.push((label, peer)),
                Some(wrong) => self.report.failure(format!("{name}, {label}: {wrong}")),
            }
        }

        let workspace = &mut self.workspace;
        let mut run_ours = || ours(Run::on(stream).with(workspace), out);
        let labelled = peers.iter().map(|(label, peer)| (*label, peer));
        let times = compare_with_peers(stream, &mut [&mut run_ours], labelled)?;

        // What so many runs leave behind, in the workspace for one, changes no result.
        out.overwrite(stream)?;
        ours(Run::on(stream).with(&mut self.workspace), out)?;
        if let Some(wrong) = check(out, Who::Ours)? {
            self.report.failure(format!("{name}, ours after it was measured: {wrong}"));
            return Ok(());
        }

        let (ms, bytes) = (times[0], bytes as f64);
        let bandwidth = bytes / ms / 1e6;
        let mut values = vec![
            ("log2", case.log2.into()),
            ("ms", ms),
            ("bytes", bytes),
            ("GB/s", bandwidth),
            ("of copy", bandwidth / self.copy),
        ];
        for (label, time) in least_by_label(peers.iter().map(|(label, _)| *label).zip(times[1..].iter().copied())) {
            let [ms_key, ratio_key] = match label {
                "CUB" => ["CUB ms", "ratio to CUB"],
                _ => ["Thrust ms", "ratio to Thrust"],
            };
            values.extend([(ms_key, time), (ratio_key, time / ms)]);
        }
        let texts = [("algorithm", case.algorithm), ("types", case.types), ("input", case.input)];
        self.report.row_of(&name, &texts, &values);
        Ok(())
    }

    /// Checks and measures `ours` with the values that the tuner tries.
    fn tune<O: Outputs>(
        &mut self,
        case: Case<'_>,
        out: &mut O,
        mut ours: impl FnMut(Run<'_>, &mut O) -> Result<()>,
        check: impl Fn(&O, Who) -> Verdict,
    ) -> Result<()> {
        let (stream, workspace, name) = (self.stream, &mut self.workspace, case.name());
        let Some(tuner) = &mut self.tuner else { return Ok(()) };
        for (key, tunings) in tuner.trials(case)? {
            for tuning in &tunings {
                out.overwrite(stream)?;
                ours(Run::on(stream).with(workspace).tuned(tuning), out)?;
                if let Some(wrong) = check(out, Who::Ours)? {
                    self.report.failure(format!("{name}, {wrong}, with these values:\n{tuning}"));
                }
            }
            let run = |tuning: &_| ours(Run::on(stream).with(workspace).tuned(tuning), out);
            let times = tune::by_turns(stream, &tunings, run)?;
            tuner.note(&name, key, times, self.report);
        }
        Ok(())
    }
}

/// What all contenders write.
trait Outputs {
    /// Leaves nothing of what another one wrote.
    fn overwrite(&mut self, stream: &Stream) -> Result<()>;

    /// Takes what was returned to the host.
    fn returned(&mut self, _word: u64) -> Result<()> {
        Ok(())
    }
}

impl<T: Element> Outputs for Buffer<T> {
    fn overwrite(&mut self, stream: &Stream) -> Result<()> {
        fill(stream, 0xa5u8, self.as_mut_slice().reinterpret::<u8>()?)
    }
}

impl<A: Element, B: Element> Outputs for (Buffer<A>, Buffer<B>) {
    fn overwrite(&mut self, stream: &Stream) -> Result<()> {
        self.0.overwrite(stream)?;
        self.1.overwrite(stream)
    }
}

/// Outputs of which only a part is used, with how many that are.
struct Counted<O> {
    items: O,
    count: Buffer<u64>,
}

impl<O> Counted<O> {
    fn new(stream: &Stream, items: O) -> Result<Self> {
        Ok(Self { items, count: stream.buffer_uninit(1)? })
    }

    /// What is wrong with the count.
    fn check(&self, expected: usize) -> Verdict {
        let found = self.count.to_vec()?[0];
        Ok((found != expected as u64).then(|| format!("the count is {found} instead of {expected}")))
    }
}

impl<O: Outputs> Outputs for Counted<O> {
    fn overwrite(&mut self, stream: &Stream) -> Result<()> {
        self.items.overwrite(stream)?;
        self.count.overwrite(stream)
    }

    fn returned(&mut self, word: u64) -> Result<()> {
        self.count.copy_from(&[word])
    }
}

/// One result, which Thrust returns to the host.
struct Single<T>(Buffer<T>);

impl<T: Item> Outputs for Single<T> {
    fn overwrite(&mut self, stream: &Stream) -> Result<()> {
        self.0.overwrite(stream)
    }

    fn returned(&mut self, word: u64) -> Result<()> {
        self.0.copy_from(&[T::from_word(word)])
    }
}

/// Parts of a large output that are checked, and how long each is.
const PARTS: (usize, usize) = (16, 1 << 16);

/// What is wrong with items: compared are all of up to 2^22, and of more some parts, the first and the last among them.
fn differs<T: Item>(found: BufferSlice<'_, T>, expected: impl Fn(usize) -> T) -> Verdict {
    let (parts, part) = if found.len() <= 1 << 22 { (1, found.len()) } else { PARTS };
    let mut items = vec![T::of(0); part];
    for i in 0..parts {
        let start = (found.len() - part) * i / (parts - 1).max(1);
        found.slice(start..start + part)?.copy_to(&mut items)?;
        if let Some(at) = (0..part).find(|&i| items[i] != expected(start + i)) {
            let (found, expected) = (items[at], expected(start + at));
            return Ok(Some(format!("{found:?} instead of {expected:?} at {}", start + at)));
        }
    }
    Ok(None)
}

/// The slice of a buffer's items from an offset on.
fn from<T: Element>(buffer: &Buffer<T>, offset: usize) -> Result<BufferSlice<'_, T>> {
    buffer.slice(offset..)
}

/// As [`from`], to write.
fn from_mut<T: Element>(buffer: &mut Buffer<T>, offset: usize) -> Result<BufferSliceMut<'_, T>> {
    buffer.slice_mut(offset..)
}

/// The address of the item at an offset.
fn address<T: Element>(buffer: &Buffer<T>, offset: usize) -> u64 {
    buffer.address() + (offset * size_of::<T>()) as u64
}
