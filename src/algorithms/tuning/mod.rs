//! Tuning values, which fit algorithms to an architecture.

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

/// The tuning values of an architecture. Each [`Parameter`] has five values, by the size of an item: one byte, two, up to four, up to
/// eight, and more.
///
/// Tuning values change how fast an algorithm is. They never change whether its result is right. The values of `reduce.*`, `scan.*`,
/// `run.tiles` and `reduce_by_key.tiles` also determine the order in which floating-point numbers are combined, so the table has the same
/// values of these for all architectures.
///
/// **Which values a call uses.** A call uses the values that [`Run::tuned`](super::Run::tuned) gives it. Otherwise it uses those [of the
/// device](Self::of): the values of the table, changed by the file that the environment variable `KERNEL_PRIMITIVES_TUNING` names. A
/// process reads that file once.
///
/// **The table.** `cargo run --example tuning` prints the table and the values that the device at hand uses. `println!("{table}")` prints
/// the result of [`Tuning::table`].
///
/// **How to tune.** In this repository, `cargo bench --features cuda --bench gpu -- --only tune --tuning my.txt` finds values for the GPU
/// at hand. It times the candidates of each parameter in turn, checks their results, shows what each would gain, measures the winners once
/// more, and writes the confirmed values to a file for that variable. The values of the table were found this way.
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
    /// The table's values for an architecture, which is given by its compute capability. The emulator (`None`), and an architecture without
    /// measured values, get the values for all architectures.
    pub fn of_capability(capability: Option<(u32, u32)>) -> Self {
        let mut values = TABLE.map(|row| row.values);
        for &(measured, parameter, bytes, value) in MEASURED {
            if Some(measured) == capability {
                values[parameter as usize][class(bytes)] = value;
            }
        }
        Self { values }
    }

    /// The values for a device: those of the table, changed by the file that the environment variable `KERNEL_PRIMITIVES_TUNING` names.
    ///
    /// # Errors
    /// Returns [`Error::Environment`] if that file cannot be read, is longer than 1 MiB or is not UTF-8, and [`Error::Tuning`] if a line of
    /// it is wrong or has a value that is not possible. Each call of an algorithm without values of its own then returns the same error.
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

    /// Sets the value for items of a size in bytes, or for all sizes.
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

    /// Reads values from a text, and sets those for one architecture and for all architectures.
    ///
    /// A line has an architecture or `all`, a parameter, `=` and the value. A parameter may be followed by `.` and the size of the items in
    /// bytes. Later lines replace the values of earlier ones.
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
    /// Returns [`Error::Tuning`] with the number of the line if a line has another form, an unknown name or a value that is not possible.
    /// This includes lines for other architectures. The values of the lines before it are then set.
    pub fn read(&mut self, text: &str, capability: Option<(u32, u32)>) -> Result<()> {
        for line in lines(text) {
            let Line { architecture, parameter, bytes, value } = line?;
            if architecture.is_none() || architecture == capability {
                self.set(parameter, bytes, value)?;
            }
        }
        Ok(())
    }

    /// The whole table, to print. Each parameter has a row with its values for all architectures. A row below it has the values of each
    /// architecture that differs; a point stands for a value that does not differ.
    pub fn table() -> impl fmt::Display {
        Printed(Self::of_capability(None), architectures())
    }
}

/// The architectures that have measured values, with all their values.
fn architectures() -> Vec<(String, Tuning)> {
    let mut capabilities: Vec<_> = MEASURED.iter().map(|&(capability, ..)| capability).collect();
    capabilities.sort_unstable();
    capabilities.dedup();
    capabilities.into_iter().map(|capability| (name(capability), Tuning::of_capability(Some(capability)))).collect()
}

fn name((major, minor): (u32, u32)) -> String {
    format!("sm_{major}{minor}")
}

/// Prints the table's values for all architectures, and below them the values that differ from these.
impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printed(Self::of_capability(None), vec![("here".into(), self.clone())]).fmt(f)
    }
}

/// The values to print, and other values, of which only the different ones are printed.
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
