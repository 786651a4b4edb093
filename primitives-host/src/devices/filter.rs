//! Filters of devices, and how they combine.

use std::fmt;
use std::ops::{BitAnd, BitOr, Not};
use std::sync::Arc;

use super::variable;
use crate::device::DeviceProperties;
use crate::{Error, Result};

/// What keeps some of a list of devices, in the order of the list.
///
/// `a & b` is `b` of what `a` keeps, so that `name("H200") & count(2)` is the first two of that name. `a | b` keeps what either keeps of
/// the list, and `!a` the rest. A closure `|device: &DeviceProperties| …` stands for a filter after an operator, and in calls.
#[derive(Clone)]
pub struct DeviceFilter(Arc<Rule>);

type Test = Box<dyn Fn(&DeviceProperties) -> bool + Send + Sync>;

enum Rule {
    /// Each device for itself; with its text.
    Each(String, Test),
    First(usize),
    At(Vec<usize>),
    Environment(&'static str),
    Both(DeviceFilter, DeviceFilter),
    Either(DeviceFilter, DeviceFilter),
    Other(DeviceFilter),
}

impl DeviceFilter {
    fn each(text: String, test: impl Fn(&DeviceProperties) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(Rule::Each(text, Box::new(test))))
    }

    /// Those at several positions.
    pub(super) fn at(positions: Vec<usize>) -> Self {
        Self(Arc::new(Rule::At(positions)))
    }

    /// The places of the devices that it keeps, of which there is one.
    ///
    /// # Errors
    /// Returns [`Error::NoSuchDevice`] if there is none.
    pub(super) fn choose(&self, devices: &[DeviceProperties]) -> Result<Vec<usize>> {
        let kept = self.kept(devices, &Vec::from_iter(0..devices.len()))?;
        if kept.is_empty() {
            let names = devices.iter().map(|device| format!("{} ({})", device.name, device.number));
            let available = names.collect::<Vec<_>>().join(", ");
            return Err(Error::NoSuchDevice { asked: format!("that passes `{self}`"), available });
        }
        Ok(kept)
    }

    /// Those of some places that it keeps, in their order.
    fn kept(&self, devices: &[DeviceProperties], among: &[usize]) -> Result<Vec<usize>> {
        let those = |keep: &dyn Fn(usize) -> bool| among.iter().copied().filter(|&at| keep(at)).collect();
        Ok(match &*self.0 {
            Rule::Each(_, test) => those(&|at| test(&devices[at])),
            Rule::First(count) => among.iter().copied().take(*count).collect(),
            Rule::At(positions) => {
                let kept = among.iter().enumerate().filter(|(position, _)| positions.contains(position));
                kept.map(|(_, &at)| at).collect()
            }
            &Rule::Environment(name) => match variable::filter(name)? {
                Some(filter) => filter.kept(devices, among)?,
                None => among.to_vec(),
            },
            Rule::Both(a, b) => b.kept(devices, &a.kept(devices, among)?)?,
            Rule::Either(a, b) => {
                let (a, b) = (a.kept(devices, among)?, b.kept(devices, among)?);
                those(&|at| a.contains(&at) || b.contains(&at))
            }
            Rule::Other(a) => {
                let a = a.kept(devices, among)?;
                those(&|at| !a.contains(&at))
            }
        })
    }
}

/// A closure that is true for the devices to keep.
impl<F: Fn(&DeviceProperties) -> bool + Send + Sync + 'static> From<F> for DeviceFilter {
    fn from(test: F) -> Self {
        Self::each("a closure".into(), test)
    }
}

impl<F: Into<DeviceFilter>> BitAnd<F> for DeviceFilter {
    type Output = Self;
    fn bitand(self, other: F) -> Self {
        Self(Arc::new(Rule::Both(self, other.into())))
    }
}

impl<F: Into<DeviceFilter>> BitOr<F> for DeviceFilter {
    type Output = Self;
    fn bitor(self, other: F) -> Self {
        Self(Arc::new(Rule::Either(self, other.into())))
    }
}

impl Not for DeviceFilter {
    type Output = Self;
    fn not(self) -> Self {
        Self(Arc::new(Rule::Other(self)))
    }
}

/// As in the source: `name("H200") & count(2)`.
impl fmt::Display for DeviceFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Rule::Each(text, _) => f.write_str(text),
            Rule::First(most) => write!(f, "count({most})"),
            Rule::At(positions) => match positions[..] {
                [position] => write!(f, "position({position})"),
                _ => write!(f, "one of the positions {positions:?}"),
            },
            Rule::Environment(variable) => {
                let value = std::env::var(variable).unwrap_or_default();
                write!(f, "environment({variable:?}), which is {value:?},")
            }
            Rule::Both(a, b) => write!(f, "({a} & {b})"),
            Rule::Either(a, b) => write!(f, "({a} | {b})"),
            Rule::Other(a) => write!(f, "!{a}"),
        }
    }
}

impl fmt::Debug for DeviceFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceFilter({self})")
    }
}

/// Keeps devices whose product's name contains a text, in capital or small letters: `name("h200")`. The emulator's name is `emulator`.
pub fn name(part: &str) -> DeviceFilter {
    let (text, part) = (format!("name({part:?})"), part.to_lowercase());
    DeviceFilter::each(text, move |device| device.name.to_lowercase().contains(&part))
}

/// Keeps devices with at least so many bytes of memory. An emulator without a limit has as many as are asked for.
pub fn memory(bytes: usize) -> DeviceFilter {
    DeviceFilter::each(format!("memory({bytes})"), move |device| device.memory_bytes.is_none_or(|has| has >= bytes))
}

/// Keeps devices of at least this compute capability. The emulator counts as the architecture that it
/// [takes the place of](crate::EmulatorOptions::arch).
pub fn compute_capability(major: u32, minor: u32) -> DeviceFilter {
    let arch = major.saturating_mul(10).saturating_add(minor);
    DeviceFilter::each(format!("compute_capability({major}, {minor})"), move |device| device.arch >= arch)
}

/// Keeps devices that compute `f64`. All that this library runs on do, so that it keeps all. For those that do so fast, ask for their
/// [ratio](DeviceProperties::double_precision_ratio), which is 0 if it is unknown:
/// `matching(|device| (1..=2).contains(&device.double_precision_ratio))`.
pub fn double_precision() -> DeviceFilter {
    DeviceFilter::each("double_precision()".into(), |_| true)
}

/// Keeps GPUs.
pub fn gpu() -> DeviceFilter {
    DeviceFilter::each("gpu()".into(), |device| device.compute_capability.is_some())
}

/// Keeps devices of the emulator.
pub fn emulated() -> DeviceFilter {
    DeviceFilter::each("emulated()".into(), |device| device.compute_capability.is_none())
}

/// Keeps the first so many devices of those that come to it.
pub fn count(most: usize) -> DeviceFilter {
    DeviceFilter(Arc::new(Rule::First(most)))
}

/// Keeps the device at this position of those that come to it, from 0.
pub fn position(position: usize) -> DeviceFilter {
    DeviceFilter::at(vec![position])
}

/// Keeps devices for which a function is true: a closure whose argument needs no type.
pub fn matching(test: impl Fn(&DeviceProperties) -> bool + Send + Sync + 'static) -> DeviceFilter {
    DeviceFilter::each("matching(a closure)".into(), test)
}

/// Keeps devices that an environment variable describes; all if it is not set. It is read when devices are chosen.
///
/// The value is a list of terms with commas between them. A device passes one after the other, as filters that are combined by `&`.
/// Where a term has a value, it can have several with `|` between them:
///
/// | term | filter |
/// |---|---|
/// | `name=H200\|H100` | [`name`], of any |
/// | `memory=16G` | [`memory`], in bytes, or with `K`, `M`, `G` or `T` for powers of 1024 |
/// | `capability=9.0` | [`compute_capability`] |
/// | `position=0\|2` | [`position`], of any |
/// | `count=2` | [`count`] |
/// | `double` | [`double_precision`] |
/// | `gpu`, `emulator` | [`gpu`], [`emulated`] |
///
/// So a user of a program that has `Devices::choose(environment("SOLVER_DEVICES"))` sets `SOLVER_DEVICES=memory=40G,count=2`.
///
/// What chooses devices by it returns [`Error::Environment`] if the variable has another value.
pub fn environment(variable: &'static str) -> DeviceFilter {
    DeviceFilter(Arc::new(Rule::Environment(variable)))
}
