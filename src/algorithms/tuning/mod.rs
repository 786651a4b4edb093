//! The values by which algorithms are fitted to an architecture.

mod file;
mod table;

use std::fmt;
use std::sync::OnceLock;

use crate::{Device, Error, Result};

pub use table::Parameter;

use file::{Line, Loaded, lines};
use table::{CLASSES, MEASURED, TABLE, class};

/// The environment variable that names a file of tuning values, in the form of [`Tuning::read`].
pub const TUNING_VARIABLE: &str = "KERNEL_PRIMITIVES_TUNING";

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
/// candidates of each parameter alternately on the GPU at hand, checks their results, shows what each would gain, measures
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
    /// Returns [`Error::Environment`] if that file cannot be read, is longer than 1 MiB or is not UTF-8, and [`Error::Tuning`] if it has a
    /// value that is not possible. Each call of an algorithm without values of its own then returns the same error.
    pub fn of(device: &Device) -> Result<&'static Self> {
        static LOADED: OnceLock<Result<Loaded>> = OnceLock::new();
        match LOADED.get_or_init(Loaded::from_environment) {
            Ok(loaded) => Ok(loaded.of(device.compute_capability())),
            Err(error) => Err(error.clone()),
        }
    }

    /// The value for items of this size, in bytes.
    pub fn get(&self, parameter: Parameter, bytes: usize) -> u32 {
        self.values[parameter as usize][class(bytes)]
    }

    /// Sets the value for items of this size, in bytes, or for all.
    ///
    /// # Errors
    /// Returns [`Error::Tuning`] if the kernels do not accept the value.
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
    /// A line is an architecture or `all`, a parameter, for items of some size with the bytes after it, and the value. What comes later
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
    /// Returns [`Error::Tuning`] with the line's number if a line has another form or an unknown name, also if it is for another
    /// architecture. The values of the lines before it are then set.
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
