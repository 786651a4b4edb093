//! Filters of devices, and their operators.

use std::fmt;
use std::ops::{BitAnd, BitOr, Not};
use std::sync::Arc;

use super::variable;
use crate::device::DeviceProperties;
use crate::{Error, Result};

/// A filter keeps some devices of a list, in the order of the list.
///
/// `a & b` applies `b` to the devices that `a` keeps, so `name("H200") & count(2)` keeps the first two devices with that name. `a | b`
/// keeps the devices that `a` or `b` keeps, and `!a` keeps all devices that `a` drops. A closure `|device: &DeviceProperties| …` can
/// replace a filter after an operator, and in calls.
#[derive(Clone)]
pub struct DeviceFilter(Arc<Rule>);

type Test = Box<dyn Fn(&DeviceProperties) -> bool + Send + Sync>;

enum Rule {
    /// A test of each device, and the text of the test.
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

    /// Keeps the devices at several positions.
    pub(super) fn at(positions: Vec<usize>) -> Self {
        Self(Arc::new(Rule::At(positions)))
    }

    /// The positions of the devices that the filter keeps. There is at least one.
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

    /// The positions among `among` that the filter keeps, in their order.
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

/// Converts a closure that returns true for the devices to keep.
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

/// The filter as source text: `name("H200") & count(2)`.
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

/// Keeps devices whose product name contains a text. Upper and lower case are the same: `name("h200")`. The emulator's name is `emulator`.
pub fn name(part: &str) -> DeviceFilter {
    let (text, part) = (format!("name({part:?})"), part.to_lowercase());
    DeviceFilter::each(text, move |device| device.name.to_lowercase().contains(&part))
}

/// Keeps devices with at least this many bytes of memory. An emulator without a limit always passes.
pub fn memory(bytes: usize) -> DeviceFilter {
    DeviceFilter::each(format!("memory({bytes})"), move |device| device.memory_bytes.is_none_or(|has| has >= bytes))
}

/// Keeps devices with at least this compute capability. The emulator has the compute capability of the architecture that it
/// [emulates](crate::EmulatorOptions::arch).
pub fn compute_capability(major: u32, minor: u32) -> DeviceFilter {
    let arch = major.saturating_mul(10).saturating_add(minor);
    DeviceFilter::each(format!("compute_capability({major}, {minor})"), move |device| device.arch >= arch)
}

/// Keeps devices that compute `f64`. All devices that this library supports do, so this filter keeps all devices. To keep only devices that
/// compute `f64` fast, test their [ratio](DeviceProperties::double_precision_ratio), which is 0 if it is unknown:
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

/// Keeps at most the first `most` devices of its input.
pub fn count(most: usize) -> DeviceFilter {
    DeviceFilter(Arc::new(Rule::First(most)))
}

/// Keeps the device at this position of its input. Positions count from 0.
pub fn position(position: usize) -> DeviceFilter {
    DeviceFilter::at(vec![position])
}

/// Keeps devices for which a function is true. The argument of a closure needs no type here.
pub fn matching(test: impl Fn(&DeviceProperties) -> bool + Send + Sync + 'static) -> DeviceFilter {
    DeviceFilter::each("matching(a closure)".into(), test)
}

/// Keeps devices that an environment variable describes, and all devices if the variable is not set. The variable is read when devices are
/// chosen.
///
/// The value is a list of terms, separated by commas. The terms apply one after the other, like filters that are combined by `&`. A term
/// with a value can have several values, separated by `|`. There are at most 256 terms and values:
///
/// | term | filter |
/// |---|---|
/// | `name=H200\|H100` | [`name`], for any of the values |
/// | `memory=16G` | [`memory`], in bytes, or with `K`, `M`, `G` or `T` for powers of 1024 |
/// | `capability=9.0` | [`compute_capability`] |
/// | `position=0\|2` | [`position`], for any of the values |
/// | `count=2` | [`count`] |
/// | `double` | [`double_precision`] |
/// | `gpu`, `emulator` | [`gpu`], [`emulated`] |
///
/// For example, a user sets `SOLVER_DEVICES=memory=40G,count=2` for a program that has `Devices::choose(environment("SOLVER_DEVICES"))`.
///
/// The call that uses the filter returns [`Error::Environment`] if the variable has any other value.
pub fn environment(variable: &'static str) -> DeviceFilter {
    DeviceFilter(Arc::new(Rule::Environment(variable)))
}
