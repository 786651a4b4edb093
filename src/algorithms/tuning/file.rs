//! Files of tuning values: how their lines are read, and the file that the environment variable names.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use super::table::{CLASSES, MEASURED, Parameter};
use super::{TUNING_VARIABLE, Tuning};
use crate::{Error, Result};

/// A line of a file.
pub(super) struct Line {
    /// The architecture of the line, or `None` for all architectures.
    pub(super) architecture: Option<(u32, u32)>,
    pub(super) parameter: Parameter,
    pub(super) bytes: Option<usize>,
    pub(super) value: u32,
}

/// The number of characters of a line that an error shows.
const SHOWN: usize = 100;

/// The lines of a text that are not empty, or an error for a line that is wrong. A byte order mark, which some editors write, is skipped.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Result<Line>> {
    text.trim_start_matches('\u{feff}').lines().enumerate().filter_map(|(number, line)| {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            return None;
        }
        let what = || format!("line {}, `{}`", number + 1, shown(line));
        Some(Line::parse(line).map_err(|reason| Error::Tuning { what: what(), reason }))
    })
}

/// Text of a file as a message shows it: short, and without characters that control a terminal.
fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// Reads a number of digits without a sign.
fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

impl Line {
    /// Reads a line, or returns what is wrong with it.
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

/// The largest number of bytes of a file that is read. A file with the whole table has a few thousand.
const LONGEST: u64 = 1 << 20;

/// The values of this process: for each architecture that the table or the file names, and for all others.
pub(super) struct Loaded {
    others: Tuning,
    architectures: BTreeMap<(u32, u32), Tuning>,
}

impl Loaded {
    pub(super) fn from_environment() -> Result<Self> {
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
                // An architecture without measured values starts with those of all architectures so far.
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

    pub(super) fn of(&self, capability: Option<(u32, u32)>) -> &Tuning {
        capability.and_then(|capability| self.architectures.get(&capability)).unwrap_or(&self.others)
    }
}

/// Reads the text of a file, which may be any file. If it is too long, reads only enough to find that out.
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
