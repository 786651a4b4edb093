//! Lists of devices: all devices of a machine, or the devices that filters keep.
//!
//! [`Devices::all`] opens all GPUs of the machine, or the emulator if there is no GPU. [`Devices::choose`] takes filters, which combine by
//! `&`, `|` and `!`:
//!
//! | filter | keeps |
//! |---|---|
//! | [`name`] | devices whose name contains a text |
//! | [`memory`] | devices with at least this many bytes of memory |
//! | [`compute_capability`] | devices with at least this compute capability |
//! | [`double_precision`] | devices that compute `f64` |
//! | [`gpu`], [`emulated`] | GPUs; devices of the emulator |
//! | [`count`], [`position`] | the first few devices; the device at a position |
//! | [`matching`], or a closure | devices for which a function of their [`DeviceProperties`] is true |
//! | [`environment`] | devices that an environment variable describes; the program chooses its name |
//!
//! ```
//! use kernel_primitives::DeviceProperties;
//! use kernel_primitives::devices::{Devices, count, double_precision, memory};
//!
//! # fn main() -> kernel_primitives::Result<()> {
//! let large = memory(1 << 30) & |device: &DeviceProperties| device.max_block_threads >= 1024;
//! let devices = Devices::choose(double_precision() & large & count(2))?;
//! for device in &devices {
//!     println!("{device}");
//! }
//! assert!((1..=2).contains(&devices.len()));
//! # Ok(())
//! # }
//! ```
//!
//! A filter looks at properties. Only the devices that it keeps are opened.

mod candidates;
mod filter;
mod variable;

use std::fmt;
use std::ops::Deref;

pub use self::candidates::DEVICES_VARIABLE;
use self::candidates::{Candidate, candidates};
pub use self::filter::{
    DeviceFilter, compute_capability, count, double_precision, emulated, environment, gpu, matching, memory, name,
    position,
};
use crate::device::Device;
#[allow(unused_imports, reason = "what the docs link")]
use crate::device::DeviceProperties;
use crate::emulator::{EmulatedDevice, EmulatorOptions};
use crate::stream::Stream;
use crate::{Error, Result};

/// The most devices that the emulator has.
const MOST_EMULATED: usize = 1024;

/// A list of different devices: GPUs of one machine, or devices of the emulator. It dereferences to a slice of [`Device`]s.
///
/// See [the module](crate::devices) for the filters.
#[derive(Clone)]
pub struct Devices(Vec<Device>);

impl Devices {
    /// Opens all devices that the environment variable `KERNEL_PRIMITIVES_DEVICES` names:
    ///
    /// | value | devices |
    /// |---|---|
    /// | `auto`, or not set | all GPUs, or the emulator if there is none |
    /// | `gpu` | all GPUs |
    /// | `gpu:0,gpu:2` | these GPUs, in this order |
    /// | `emulator` | the emulator |
    /// | `emulator:4` | four devices of the emulator |
    ///
    /// If it is not set, [`KERNEL_PRIMITIVES_DEVICE`](crate::DEVICE_VARIABLE) names one device, as for [`Device::auto`]: `gpu` is the first
    /// GPU. If this variable is not set either, or is `auto`, the list has all GPUs.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NoGpu`] if GPUs are asked for and there is none, [`Error::NoSuchDevice`] if a number is too large,
    /// [`Error::Environment`] if a variable has any other value, and the errors of [`Device::gpu_at`].
    pub fn all() -> Result<Self> {
        Self::open(candidates()?)
    }

    /// Opens those of [all](Self::all) devices that a filter keeps.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NoSuchDevice`] if the filter keeps no device, and the errors of [`all`](Self::all).
    pub fn choose(filter: impl Into<DeviceFilter>) -> Result<Self> {
        let candidates = candidates()?;
        let properties: Vec<_> = candidates.iter().map(|candidate| candidate.properties.clone()).collect();
        let mut candidates: Vec<_> = candidates.into_iter().map(Some).collect();
        let kept = filter.into().choose(&properties)?;
        Self::open(kept.into_iter().filter_map(|at| candidates[at].take()).collect())
    }

    fn open(candidates: Vec<Candidate>) -> Result<Self> {
        Ok(Self(candidates.into_iter().map(Candidate::open).collect::<Result<_>>()?))
    }

    /// Opens `count` devices of the emulator with default options.
    ///
    /// Each device has its own memory: a launch or a copy that uses a buffer of another device returns [`Error::WrongDevice`], and a
    /// checked launch reports accesses through addresses as [`Diagnosis::OtherDevice`](crate::Diagnosis::OtherDevice). As for GPUs, devices
    /// with the same number are the same device: device 2 of two calls has the same memory. The first device is that of
    /// [`Device::emulator`].
    ///
    /// ```
    /// use kernel_primitives::{Error, devices::Devices};
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let streams = Devices::emulated(2)?.streams()?;
    /// let x = streams[0].buffer_from(&[1, 2, 3])?;
    /// let mut y = streams[1].buffer_zeroed::<i32>(3)?;
    /// let wrong = y.as_mut_slice().copy_from_device(&streams[1], x.as_slice());
    /// assert!(matches!(wrong, Err(Error::WrongDevice { .. })));
    /// y.as_mut_slice().copy_from_peer(&streams[1], x.as_slice())?;
    /// assert_eq!(y.to_vec()?, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Devices`] for 0 devices, and for more than 1024.
    pub fn emulated(count: usize) -> Result<Self> {
        Self::emulated_by("`Devices::emulated`", count, EmulatorOptions::default())
    }

    /// Opens `count` devices of the emulator with these options. A [limit of memory](EmulatorOptions::memory_bytes) applies to each device
    /// of this call.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`emulated`](Self::emulated).
    pub fn emulated_with(count: usize, options: EmulatorOptions) -> Result<Self> {
        Self::emulated_by("`Devices::emulated_with`", count, options)
    }

    fn emulated_by(call: &'static str, count: usize, options: EmulatorOptions) -> Result<Self> {
        if !(1..=MOST_EMULATED).contains(&count) {
            let reason = format!("the emulator has 1 to {MOST_EMULATED} devices, not {count}");
            return Err(Error::Devices { call, reason });
        }
        let several = emulated_devices(count, options);
        Ok(Self(several.map(|device| Device::emulated(device, "the program asks for it")).collect()))
    }

    /// Makes a list of these devices, in this order.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Devices`] if there are no devices, if a device is listed twice, or if the list has both GPUs and devices of the
    /// emulator, between which there are no copies.
    pub fn new(devices: impl IntoIterator<Item = Device>) -> Result<Self> {
        Self::listed_by("`Devices::new`", devices)
    }

    /// As [`new`](Self::new), for another call.
    pub(crate) fn listed_by(call: &'static str, devices: impl IntoIterator<Item = Device>) -> Result<Self> {
        let devices: Vec<Device> = devices.into_iter().collect();
        let refuse = |reason| Err(Error::Devices { call, reason });
        let Some(first) = devices.first() else { return refuse("the list is empty".into()) };
        for (at, device) in devices.iter().enumerate() {
            if devices[..at].iter().any(|earlier| earlier.same_as(device)) {
                return refuse(format!("{device} is listed twice"));
            }
            if device.is_gpu() != first.is_gpu() {
                return refuse(format!("{first} and {device} cannot work together: one is a GPU"));
            }
        }
        Ok(Self(devices))
    }

    /// The devices of this list that a filter keeps.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NoSuchDevice`] if the filter keeps no device, and [`Error::Environment`] if a variable that it reads is invalid.
    pub fn filter(&self, filter: impl Into<DeviceFilter>) -> Result<Self> {
        let properties: Vec<_> = self.iter().map(Device::properties).collect();
        Ok(Self(filter.into().choose(&properties)?.into_iter().map(|at| self[at].clone()).collect()))
    }

    /// Creates a stream on each device.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Device::stream`].
    pub fn streams(&self) -> Result<Vec<Stream>> {
        self.iter().map(Device::stream).collect()
    }
}

/// Devices of the emulator. A single device has no number in its name.
fn emulated_devices(count: usize, options: EmulatorOptions) -> impl Iterator<Item = EmulatedDevice> {
    (0..count).map(move |number| match count {
        1 => EmulatedDevice::only(options.clone()),
        _ => EmulatedDevice::numbered(options.clone(), number),
    })
}

impl Deref for Devices {
    type Target = [Device];
    fn deref(&self) -> &[Device] {
        &self.0
    }
}

impl<'a> IntoIterator for &'a Devices {
    type Item = &'a Device;
    type IntoIter = std::slice::Iter<'a, Device>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for Devices {
    type Item = Device;
    type IntoIter = std::vec::IntoIter<Device>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// The names, separated by commas.
impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, device) in self.iter().enumerate() {
            write!(f, "{}{device}", if at > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Devices({self})")
    }
}
