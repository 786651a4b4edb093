//! The values by which algorithms are fitted to an architecture.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;

use crate::{Device, Error, Result};

/// The environment variable that names a file of tuning values, in the form of [`Tuning::read`].
pub const TUNING_VARIABLE: &str = "KERNEL_PRIMITIVES_TUNING";

/// Classes of items by their bytes: of one, of two, of up to four, of up to eight, and larger ones.
const CLASSES: [usize; 5] = [1, 2, 4, 8, 16];

/// What values a parameter can have.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// Threads of a block: whole warps.
    Threads,
    /// From the first number to the second.
    Range(u32, u32),
}

impl Rule {
    fn accepts(self, value: u32) -> bool {
        match self {
            Self::Threads => value > 0 && value <= 1024 && value.is_multiple_of(32),
            Self::Range(least, most) => (least..=most).contains(&value),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threads => write!(f, "a multiple of 32 up to 1024"),
            Self::Range(least, most) => write!(f, "a number from {least} to {most}"),
        }
    }
}

/// What the table says of a parameter.
struct Row {
    name: &'static str,
    about: &'static str,
    /// A value for each of the [`CLASSES`].
    values: [u32; CLASSES.len()],
    rule: Rule,
    candidates: &'static [u32],
}

/// The table: what can be tuned, the values for every architecture, what values there can be, and which are tried.
macro_rules! table {
    ($($parameter:ident $name:literal $about:literal $values:expr, $rule:expr, $candidates:expr;)*) => {
        /// What can be tuned: a choice that the host makes when it launches an algorithm's kernels, so that one compilation of a kernel
        /// serves all values.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Parameter {
            $(#[doc = concat!("`", $name, "`: ", $about, ".")] $parameter,)*
        }

        impl Parameter {
            /// All of them, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$parameter,)*];
        }

        const TABLE: [Row; Parameter::ALL.len()] = [$(
            Row { name: $name, about: $about, values: $values, rule: $rule, candidates: $candidates },
        )*];
    };
}

use Rule::{Range, Threads};

const BLOCKS: Rule = Range(1, 64);

table! {
    TransformThreads "transform.threads" "the most threads of a block of `transform` and its kin, by the bytes of a result"
        [256; 5], Threads, &[64, 128, 256, 512, 1024];
    DifferenceThreads "difference.threads" "the most threads of a block of `adjacent_difference`"
        [256; 5], Threads, &[64, 128, 256, 512, 1024];
    ScatterThreads "scatter.threads" "the most threads of a block of `scatter`"
        [256; 5], Threads, &[64, 128, 256, 512, 1024];
    SearchThreads "search.threads" "threads of a block of `lower_bound` and `upper_bound`"
        [256; 5], Threads, &[64, 128, 256, 512, 1024];
    ReduceBlocks "reduce.blocks" "the most blocks of `reduce`"
        [1056; 5], Range(1, 65535), &[528, 1024, 1056, 2048, 4096];
    ReduceAlone "reduce.alone" "rounds of 8192 items of four bytes that `reduce` leaves to one block"
        [1; 5], Range(1, 1024), &[1, 2, 4, 8];
    ScanTiles "scan.tiles" "tiles of `inclusive_scan` and `exclusive_scan` below which they are made smaller"
        [1, 1, 256, 1, 1], Range(1, 65535), &[1, 64, 128, 256, 512];
    ScanPipeline "scan.pipeline" "tiles of 28 KiB from which on `inclusive_scan` and `exclusive_scan` of items in memory are a pipeline"
        [1024, 1024, 1024, 4096, 4096], Range(2, 1 << 31), &[512, 1024, 2048, 4096, 8192];
    RunTiles "run.tiles" "tiles of `reduce_by_key`, scans by key or of segments, and `run_length_encode` below which they are made smaller, by the bytes of a key, or of an item of a segment"
        [256; 5], Range(1, 65535), &[64, 128, 192, 256, 384, 512];
    SelectBlocks "select.blocks" "tiles a multiprocessor below which those of `select_if`, `partition` and their kin are made smaller"
        [4; 5], BLOCKS, &[1, 2, 3, 4, 6, 8];
    UniqueBlocks "unique.blocks" "the same of `unique` and `unique_by_key`, by the bytes of a key"
        [4; 5], BLOCKS, &[1, 2, 3, 4, 6, 8];
    HistogramBlocks "histogram.blocks" "the most blocks a multiprocessor of histograms"
        [3; 5], BLOCKS, &[1, 2, 3, 4, 6];
    HistogramCopies "histogram.copies" "the most copies of a block's counters in histograms, to the next lower power of two"
        [32; 5], Range(1, 32), &[4, 8, 16, 32];
    SortBlocks "sort.blocks" "the most blocks a multiprocessor that count digits in `sort_keys` and `sort_pairs`, by the bytes of a key"
        [2; 5], BLOCKS, &[1, 2, 3, 4];
    MergeSearching "merge.searching" "tiles up to which those of `merge` and `sort_by` find their places themselves"
        [1024; 5], Range(0, 1 << 20), &[256, 512, 1024, 2048, 4096];
    TopKBlocks "top_k.blocks" "the most blocks a multiprocessor of `top_k`"
        [2; 5], BLOCKS, &[1, 2, 3, 4];
    TopKTiles "top_k.tiles" "tiles of 2048 items that a block of `top_k` has at least"
        [8; 5], Range(2, 1024), &[2, 4, 8, 16, 32];
}

/// What differs on an architecture, as measured there by the command of [`Tuning`]: the compute capability, the parameter, the bytes of
/// the class and the value.
const MEASURED: &[((u32, u32), Parameter, usize, u32)] = &[
    // An H200: `benches/results/tuning-h200.json`.
    (SM_90, Parameter::ScatterThreads, 4, 128),
    (SM_90, Parameter::SearchThreads, 4, 128),
    (SM_90, Parameter::HistogramBlocks, 1, 2),
    (SM_90, Parameter::TopKTiles, 4, 4),
];

const SM_90: (u32, u32) = (9, 0);

impl Parameter {
    fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// Its name in the table and in files, such as `reduce.blocks`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// What it is, in a line.
    pub fn about(self) -> &'static str {
        self.row().about
    }

    /// Values that are worth trying on a GPU.
    pub fn candidates(self) -> &'static [u32] {
        self.row().candidates
    }

    /// What is wrong with a value.
    fn check(self, value: u32) -> Result<(), String> {
        let rule = self.row().rule;
        if rule.accepts(value) { Ok(()) } else { Err(format!("it is {rule}")) }
    }

    /// The one of this name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|parameter| parameter.name() == name)
    }
}

/// The class of items of so many bytes.
fn class(bytes: usize) -> usize {
    CLASSES.iter().position(|&most| bytes <= most).unwrap_or(CLASSES.len() - 1)
}

/// The tuning values of an architecture: for each [`Parameter`] one for items of one byte, of two, of up to four, of up to eight, and
/// of more.
///
/// They change how fast an algorithm is, never whether its result is right. Of floating-point numbers, the values of `reduce.*`,
/// `scan.*` and `run.tiles` say in which order they are combined, so that the table has the same of those for all architectures.
///
/// **Which ones count.** Those of a call that was given some by [`Run::tuned`](super::Run::tuned); else those [of the
/// device](Self::of): the table's, with what the file says that the environment variable `KERNEL_PRIMITIVES_TUNING` names. That file is
/// read once a process.
///
/// **The table.** `cargo run --example tuning` prints it, and what counts on the device at hand; so does `println!("{table}")` of
/// [`Tuning::table`].
///
/// **Tuning.** In this repository, `cargo bench --features cuda --bench gpu -- --only tune --tuning my.txt` times the
/// candidates of each parameter by turns on the GPU at hand, checks their results, shows what each would gain, measures
/// what won once more, and writes what was confirmed into a file for that variable. The shipped values came about so.
///
/// ```
/// use kernel_primitives::algorithms::{Parameter, Run, Tuning, reduce};
/// use kernel_primitives::functor::Sum;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let device = Device::auto()?;
/// let mut tuning = Tuning::of(&device)?.clone();
/// tuning.set(Parameter::ReduceBlocks, None, 512)?;
/// tuning.set(Parameter::ReduceAlone, Some(8), 4)?; // for items of eight bytes alone
/// assert_eq!(tuning.get(Parameter::ReduceAlone, 8), 4);
///
/// let stream = device.stream()?;
/// let x = stream.buffer_from(&vec![1u64; 100_000])?;
/// let mut sum = stream.buffer_zeroed::<u64>(1)?;
/// reduce(Run::on(&stream).tuned(&tuning), &x, Sum, &mut sum)?;
/// assert_eq!(sum.to_vec()?, [100_000]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    values: [[u32; CLASSES.len()]; TABLE.len()],
}

impl Tuning {
    /// The table's values for an architecture, by its compute capability; for the emulator, and those of which nothing was measured,
    /// what holds for all.
    pub fn of_capability(capability: Option<(u32, u32)>) -> Self {
        let mut values = TABLE.map(|row| row.values);
        for &(measured, parameter, bytes, value) in MEASURED {
            if Some(measured) == capability {
                values[parameter as usize][class(bytes)] = value;
            }
        }
        Self { values }
    }

    /// The values for a device, with what the file of the environment variable `KERNEL_PRIMITIVES_TUNING` says.
    ///
    /// # Errors
    /// [`Error::Environment`] if that file cannot be read, is longer than 1 MiB or is no UTF-8, and [`Error::Tuning`] if it says what
    /// cannot be: each call of an algorithm without values of its own then gives the same.
    pub fn of(device: &Device) -> Result<&'static Self> {
        static LOADED: OnceLock<Result<Loaded>> = OnceLock::new();
        match LOADED.get_or_init(Loaded::from_environment) {
            Ok(loaded) => Ok(loaded.of(device.compute_capability())),
            Err(error) => Err(error.clone()),
        }
    }

    /// The value for items of so many bytes.
    pub fn get(&self, parameter: Parameter, bytes: usize) -> u32 {
        self.values[parameter as usize][class(bytes)]
    }

    /// Sets the value for items of so many bytes, or for all.
    ///
    /// # Errors
    /// [`Error::Tuning`] unless it is a value that the kernels accept.
    pub fn set(&mut self, parameter: Parameter, bytes: Option<usize>, value: u32) -> Result<()> {
        parameter
            .check(value)
            .map_err(|reason| Error::Tuning { what: format!("{} = {value}", parameter.name()), reason })?;
        match bytes {
            Some(bytes) => self.values[parameter as usize][class(bytes)] = value,
            None => self.values[parameter as usize] = [value; CLASSES.len()],
        }
        Ok(())
    }

    /// Takes values from a text, those of one architecture and those for all.
    ///
    /// A line is an architecture or `all`, a parameter, for items of some size with the bytes behind it, and the value. What comes later
    /// counts.
    ///
    /// ```
    /// use kernel_primitives::algorithms::{Parameter, Tuning};
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let mut tuning = Tuning::of_capability(Some((9, 0)));
    /// tuning.read(
    ///     "# An NVIDIA H200
    ///     all   reduce.alone   = 4
    ///     sm_90 top_k.blocks   = 3
    ///     sm_90 top_k.blocks.8 = 2
    ///     sm_75 top_k.blocks   = 1",
    ///     Some((9, 0)),
    /// )?;
    /// assert_eq!([4, 8].map(|bytes| tuning.get(Parameter::TopKBlocks, bytes)), [3, 2]);
    ///
    /// let error = tuning.read("all top_k.block = 3", None).unwrap_err().to_string();
    /// assert!(error.contains("line 1") && error.contains("`top_k.block` is no parameter"), "{error}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Tuning`] with the line's number if one is of another form, or names what there is not; also of lines for other
    /// architectures. What the lines before say counts then.
    pub fn read(&mut self, text: &str, capability: Option<(u32, u32)>) -> Result<()> {
        for line in lines(text) {
            let Line { architecture, parameter, bytes, value } = line?;
            if architecture.is_none() || architecture == capability {
                self.set(parameter, bytes, value)?;
            }
        }
        Ok(())
    }

    /// The whole table, to be printed: each parameter with its values for all architectures, and below those that differ on one; a point
    /// where they do not.
    pub fn table() -> impl fmt::Display {
        Printed(Self::of_capability(None), architectures())
    }
}

/// The architectures for which something was measured, with their values.
fn architectures() -> Vec<(String, Tuning)> {
    let mut capabilities: Vec<_> = MEASURED.iter().map(|&(capability, ..)| capability).collect();
    capabilities.sort_unstable();
    capabilities.dedup();
    capabilities.into_iter().map(|capability| (name(capability), Tuning::of_capability(Some(capability)))).collect()
}

fn name((major, minor): (u32, u32)) -> String {
    format!("sm_{major}{minor}")
}

/// Prints the values, and where they are not those of the table for all architectures, these ones as well.
impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printed(Self::of_capability(None), vec![("here".into(), self.clone())]).fmt(f)
    }
}

/// Values, and others of which only those that differ are shown.
struct Printed(Tuning, Vec<(String, Tuning)>);

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(all, others) = self;
        write!(f, "{:20} {:6}", "parameter", "on")?;
        for bytes in CLASSES {
            write!(f, " {:>6}", format!("{bytes} B"))?;
        }
        writeln!(f, "  what it is")?;
        for &parameter in Parameter::ALL {
            write!(f, "{:20} {:6}", parameter.name(), "all")?;
            let values = all.values[parameter as usize];
            for value in values {
                write!(f, " {value:>6}")?;
            }
            writeln!(f, "  {}", parameter.about())?;
            for (name, other) in others {
                let others = other.values[parameter as usize];
                if others == values {
                    continue;
                }
                write!(f, "{:20} {name:6}", "")?;
                for (other, value) in others.into_iter().zip(values) {
                    write!(f, " {:>6}", if other == value { ".".to_owned() } else { other.to_string() })?;
                }
                writeln!(f)?;
            }
        }
        Ok(())
    }
}

/// A line of a file.
struct Line {
    /// All of them if it is none.
    architecture: Option<(u32, u32)>,
    parameter: Parameter,
    bytes: Option<usize>,
    value: u32,
}

/// Characters of a line that an error shows.
const SHOWN: usize = 100;

/// The lines of a text that say something, or what is wrong with one. A byte order mark, which some editors write, says nothing.
fn lines(text: &str) -> impl Iterator<Item = Result<Line>> {
    text.trim_start_matches('\u{feff}').lines().enumerate().filter_map(|(number, line)| {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            return None;
        }
        let what = || format!("line {}, `{}`", number + 1, shown(line));
        Some(Line::parse(line).map_err(|reason| Error::Tuning { what: what(), reason }))
    })
}

/// Text of a file in a message: short, and with nothing that a terminal takes for a command.
fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// A number in digits alone: no sign.
fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

impl Line {
    /// The line, or what is wrong with it.
    fn parse(line: &str) -> Result<Self, String> {
        let form = || "a line is such as `sm_90 reduce.blocks = 512` or `all reduce.blocks.8 = 512`".to_owned();
        let (before, value) = line.split_once('=').ok_or_else(form)?;
        let (architecture, parameter) = before.trim().split_once(char::is_whitespace).ok_or_else(form)?;
        let (parameter, value) = (parameter.trim(), value.trim());
        let architecture = match architecture {
            "all" => None,
            other => {
                let capability = capability(other);
                Some(capability.ok_or_else(|| format!("`{}` is neither `all` nor such as `sm_90`", shown(other)))?)
            }
        };
        let (name, bytes) = match parameter.rsplit_once('.') {
            Some((name, bytes)) if bytes.starts_with(|c: char| c.is_ascii_digit()) => {
                let class = number(bytes).filter(|bytes| CLASSES.contains(bytes));
                (name, Some(class.ok_or_else(|| format!("`{}` is no size: there are {CLASSES:?}", shown(bytes)))?))
            }
            _ => (parameter, None),
        };
        let parameter = Parameter::named(name).ok_or_else(|| {
            let names: Vec<_> = Parameter::ALL.iter().map(|parameter| parameter.name()).collect();
            format!("`{}` is no parameter: there are {}", shown(name), names.join(", "))
        })?;
        let value =
            number(value).ok_or_else(|| format!("`{}` is no value: it is {}", shown(value), parameter.row().rule))?;
        parameter.check(value)?;
        Ok(Self { architecture, parameter, bytes, value })
    }
}

/// The compute capability of an architecture such as `sm_90`.
fn capability(name: &str) -> Option<(u32, u32)> {
    let number: u32 = number(name.strip_prefix("sm_")?)?;
    (number >= 10).then_some((number / 10, number % 10))
}

/// Bytes of the longest file that is read: a whole table has some thousand.
const LONGEST: u64 = 1 << 20;

/// The values of this process: those of each architecture that the table or the file names, and of all others.
struct Loaded {
    others: Tuning,
    architectures: BTreeMap<(u32, u32), Tuning>,
}

impl Loaded {
    fn from_environment() -> Result<Self> {
        match std::env::var_os(TUNING_VARIABLE) {
            Some(path) if !path.is_empty() => {
                let text = read_file(Path::new(&path)).map_err(|error| Error::Environment {
                    variable: TUNING_VARIABLE,
                    value: path.display().to_string(),
                    expected: format!("it names a file of tuning values: {error}"),
                })?;
                Self::from_text(&text, &path.display().to_string())
            }
            _ => Self::from_text("", ""),
        }
    }

    fn from_text(text: &str, path: &str) -> Result<Self> {
        let measured =
            |&(capability, ..): &((u32, u32), _, _, _)| (capability, Tuning::of_capability(Some(capability)));
        let mut others = Tuning::of_capability(None);
        let mut architectures: BTreeMap<_, _> = MEASURED.iter().map(measured).collect();
        for line in lines(text) {
            let Line { architecture, parameter, bytes, value } = line.map_err(|error| match error {
                Error::Tuning { what, reason } => Error::Tuning { what: format!("{path}, {what}"), reason },
                other => other,
            })?;
            match architecture {
                // Of one of which nothing was measured, what all have so far.
                Some(capability) => {
                    architectures.entry(capability).or_insert_with(|| others.clone()).set(parameter, bytes, value)?;
                }
                None => {
                    others.set(parameter, bytes, value)?;
                    architectures.values_mut().try_for_each(|tuning| tuning.set(parameter, bytes, value))?;
                }
            }
        }
        Ok(Self { others, architectures })
    }

    fn of(&self, capability: Option<(u32, u32)>) -> &Tuning {
        capability.and_then(|capability| self.architectures.get(&capability)).unwrap_or(&self.others)
    }
}

/// The text of a file that may be any file: of one that is too long, no more than shows it is read.
fn read_file(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LONGEST {
        return Err(format!("it has more than {LONGEST} bytes"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        format!("line {} is no UTF-8", before.iter().filter(|&&byte| byte == b'\n').count() + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_values_that_kernels_accept() {
        for &parameter in Parameter::ALL {
            let row = parameter.row();
            assert!(row.values.iter().chain(row.candidates).all(|&value| row.rule.accepts(value)), "{}", row.name);
            assert!(row.values.iter().all(|value| row.candidates.contains(value)), "{}: itself is tried too", row.name);
            assert!(row.candidates.is_sorted(), "{}", row.name);
            assert_eq!(Parameter::named(row.name), Some(parameter));
        }
        for &(capability, parameter, bytes, value) in MEASURED {
            let row = parameter.row();
            assert!(row.rule.accepts(value) && CLASSES.contains(&bytes), "{capability:?} {} {value}", row.name);
            assert_ne!(row.values[class(bytes)], value, "{}: as everywhere", row.name);
            let orders = matches!(
                parameter,
                Parameter::ReduceBlocks
                    | Parameter::ReduceAlone
                    | Parameter::ScanTiles
                    | Parameter::ScanPipeline
                    | Parameter::RunTiles
            );
            assert!(!orders, "{}: results are the same on all architectures", row.name);
        }
    }

    #[test]
    fn a_file_holds_for_its_architectures() -> Result<()> {
        let text = "all reduce.blocks = 7\nsm_75 reduce.blocks.2 = 9 # of halves\n sm_120 search.threads = 64";
        let loaded = Loaded::from_text(text, "here.txt")?;
        let blocks = |capability| [1, 2, 3].map(|bytes| loaded.of(capability).get(Parameter::ReduceBlocks, bytes));
        assert_eq!(blocks(None), [7, 7, 7]);
        assert_eq!(blocks(Some((7, 5))), [7, 9, 7]);
        assert_eq!(blocks(Some((9, 0))), [7, 7, 7]);
        assert_eq!(loaded.of(Some((12, 0))).get(Parameter::SearchThreads, 4), 64);
        assert_ne!(loaded.of(Some((9, 0))).get(Parameter::SearchThreads, 4), 64);
        Ok(())
    }

    #[test]
    fn a_line_that_is_wrong_says_what_is() {
        for (line, what) in [
            ("reduce.blocks = 7", "a line is such as"),
            ("all reduce.blocks 7", "a line is such as"),
            ("sm9 reduce.blocks = 7", "`sm9` is neither `all` nor such as `sm_90`"),
            ("all reduce.block = 7", "`reduce.block` is no parameter: there are transform.threads, "),
            ("all reduce.blocks.3 = 7", "`3` is no size: there are [1, 2, 4, 8, 16]"),
            ("all reduce.blocks = many", "`many` is no value: it is a number from 1 to 65535"),
            ("all reduce.blocks = 0", "it is a number from 1 to 65535"),
            ("sm_75 search.threads = 100", "it is a multiple of 32 up to 1024"),
            ("sm_+75 search.threads = 64", "`sm_+75` is neither"),
            ("all search.threads = +64", "`+64` is no value"),
        ] {
            let text = format!("\n# A file\n{line} # so\n");
            let error = Loaded::from_text(&text, "here.txt").err().expect(line).to_string();
            assert!(error.contains(&format!("here.txt, line 3, `{line}`")) && error.contains(what), "{error}");
        }
    }

    #[test]
    fn a_byte_order_mark_and_other_line_ends_do_no_harm() -> Result<()> {
        let loaded = Loaded::from_text("\u{feff}all reduce.blocks = 7\r\nsm_75 reduce.blocks = 9\r\n", "here.txt")?;
        let blocks = [None, Some((7, 5))].map(|capability| loaded.of(capability).get(Parameter::ReduceBlocks, 4));
        assert_eq!(blocks, [7, 9]);
        Ok(())
    }

    #[test]
    fn an_error_shows_no_more_than_the_beginning_of_a_line_and_no_control_characters() {
        let text = format!("all \u{1b}[2J{} = 1", "x".repeat(1 << 16));
        let error = Loaded::from_text(&text, "here.txt").err().expect("no parameter").to_string();
        assert!(error.contains("line 1, `all \\u{1b}[2Jxxx") && error.len() < 1000, "{error}");
        assert!(!error.contains('\u{1b}'));
    }

    #[test]
    fn many_architectures_are_read_in_one_pass() -> Result<()> {
        let words: String = (10..20_000).map(|number| format!("# sm_{number}\n")).collect();
        let text = format!("{words}all reduce.blocks = 7\nsm_199 reduce.blocks.4 = 8\nall reduce.blocks.1 = 9\n");
        let loaded = Loaded::from_text(&text, "here.txt")?;
        assert_eq!(loaded.architectures.len(), 2, "sm_90 of the table and sm_199");
        let blocks = [1, 2, 4].map(|bytes| loaded.of(Some((19, 9))).get(Parameter::ReduceBlocks, bytes));
        assert_eq!(blocks, [9, 7, 8]);
        Ok(())
    }
}
