//! The devices that a program can choose from, as the environment names them.

use super::{MOST_EMULATED, emulated_devices};
#[cfg(feature = "cuda")]
use crate::cuda;
use crate::device::{self, AskedDevice, DEVICE_VARIABLE, Device, DeviceProperties, environment};
use crate::emulator::EmulatedDevice;
use crate::{Error, Result};

/// The environment variable that lists the devices of [`Devices::all`](super::Devices::all): `auto`, `gpu`, `gpu:0,gpu:2`, `emulator` or
/// `emulator:4`.
pub const DEVICES_VARIABLE: &str = "KERNEL_PRIMITIVES_DEVICES";

/// A device that is not opened yet.
pub(super) struct Candidate {
    pub(super) properties: DeviceProperties,
    source: Source,
}

enum Source {
    #[cfg(feature = "cuda")]
    Gpu(usize),
    Emulated(EmulatedDevice, String),
}

impl Candidate {
    pub(super) fn open(self) -> Result<Device> {
        match self.source {
            #[cfg(feature = "cuda")]
            Source::Gpu(ordinal) => Device::gpu_at(ordinal),
            Source::Emulated(device, reason) => Ok(Device::emulated(device, &reason)),
        }
    }
}

/// The devices that the environment asks for.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Auto,
    Gpus,
    /// The GPUs with these numbers.
    Numbered(Vec<usize>),
    /// This number of devices of the emulator.
    Emulated(usize),
}

/// The devices that the environment names.
pub(super) fn candidates() -> Result<Vec<Candidate>> {
    let several = environment(DEVICES_VARIABLE)?;
    let (variable, value, asked) = match several.trim() {
        "" => {
            let one = environment(DEVICE_VARIABLE)?;
            let asked = parse_one(&one);
            (DEVICE_VARIABLE, one, asked)
        }
        _ => {
            let asked = parse(&several);
            (DEVICES_VARIABLE, several, asked)
        }
    };
    match asked.map_err(|expected| Error::Environment { variable, value, expected })? {
        Asked::Emulated(count) => emulated(count, &format!("{variable} asks for it")),
        Asked::Gpus => gpus(),
        Asked::Numbered(numbers) => {
            let all = gpus()?;
            let available = format!("{} GPU(s)", all.len());
            let mut all: Vec<_> = all.into_iter().map(Some).collect();
            let mut take = |number: usize| all.get_mut(number).and_then(Option::take);
            let missing = |number| Error::NoSuchDevice { asked: format!("gpu:{number}"), available: available.clone() };
            numbers.into_iter().map(|number| take(number).ok_or_else(|| missing(number))).collect()
        }
        Asked::Auto => match gpus() {
            Err(Error::NoGpu { reason, .. }) => emulated(1, &reason),
            found => found,
        },
    }
}

fn parse(value: &str) -> Result<Asked, String> {
    let number = |text: &str, prefix: &str| text.strip_prefix(prefix).and_then(device::whole_number);
    match value.trim() {
        "" | "auto" => return Ok(Asked::Auto),
        "gpu" => return Ok(Asked::Gpus),
        "emulator" => return Ok(Asked::Emulated(1)),
        other => match number(other, "emulator:") {
            Some(count) if (1..=MOST_EMULATED).contains(&count) => return Ok(Asked::Emulated(count)),
            Some(count) => return Err(format!("the emulator has 1 to {MOST_EMULATED} devices, not {count}")),
            None => {}
        },
    }
    let mut numbers = Vec::new();
    for part in value.split(',').map(str::trim) {
        match number(part, "gpu:") {
            Some(number) if numbers.contains(&number) => return Err(format!("`{part}` is listed twice")),
            Some(number) => numbers.push(number),
            None => {
                let all = "`auto`, `emulator`, `emulator:N`, `gpu` or a list such as `gpu:0,gpu:2`";
                return Err(format!("`{part}` names no devices, it can be {all}"));
            }
        }
    }
    Ok(Asked::Numbered(numbers))
}

/// The device that the variable for one device asks for. Its values are those of [`Device::auto`]; `auto` means any number of GPUs.
fn parse_one(value: &str) -> Result<Asked, String> {
    Ok(match device::parse(value)? {
        AskedDevice::Auto => Asked::Auto,
        AskedDevice::Emulator => Asked::Emulated(1),
        AskedDevice::Gpu(number) => Asked::Numbered(vec![number]),
    })
}

/// Devices of the emulator with the options that the environment asks for.
fn emulated(count: usize, reason: &str) -> Result<Vec<Candidate>> {
    let devices = emulated_devices(count, Device::emulator_options()?);
    let candidate = |device: EmulatedDevice| {
        let properties = device.properties();
        Candidate { properties, source: Source::Emulated(device, reason.to_owned()) }
    };
    Ok(devices.map(candidate).collect())
}

/// All GPUs. Returns an error if there is none.
fn gpus() -> Result<Vec<Candidate>> {
    #[cfg(feature = "cuda")]
    {
        let all = cuda::all_properties()?;
        if all.is_empty() {
            return Err(Error::NoGpu { reason: "the driver is there but finds no GPU".into(), driver: None });
        }
        let candidate = |(number, properties)| Candidate { properties, source: Source::Gpu(number) };
        Ok(all.into_iter().enumerate().map(candidate).collect())
    }
    #[cfg(not(feature = "cuda"))]
    {
        // The error says why there is no GPU.
        Device::gpu_at(0).map(|_| Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_for_one_device_names_one() {
        assert_eq!(parse_one(""), Ok(Asked::Auto));
        assert_eq!(parse_one("auto"), Ok(Asked::Auto));
        assert_eq!(parse_one("emulator"), Ok(Asked::Emulated(1)));
        assert_eq!(parse_one("gpu"), Ok(Asked::Numbered(vec![0])));
        assert_eq!(parse_one("gpu:3"), Ok(Asked::Numbered(vec![3])));
        for wrong in ["gpu:0,gpu:1", "emulator:2", "gpu:+1", " gpu", "GPU"] {
            assert_eq!(parse_one(wrong), Err("it can be `auto`, `emulator`, `gpu` or `gpu:N`".into()), "{wrong}");
        }
    }

    #[test]
    fn values_of_the_variable() {
        assert_eq!(parse(""), Ok(Asked::Auto));
        assert_eq!(parse(" auto "), Ok(Asked::Auto));
        assert_eq!(parse("gpu"), Ok(Asked::Gpus));
        assert_eq!(parse("gpu:2, gpu:0"), Ok(Asked::Numbered(vec![2, 0])));
        assert_eq!(parse("emulator"), Ok(Asked::Emulated(1)));
        assert_eq!(parse("emulator:8"), Ok(Asked::Emulated(8)));
        for (wrong, part) in [
            ("gpu:1,gpu:1", "`gpu:1` is listed twice"),
            ("emulator:0", "not 0"),
            ("emulator:1025", "not 1025"),
            ("emulator:x", "`emulator:x` names no devices"),
            ("gpu:0,", "`` names no devices"),
            ("gpu,emulator", "`gpu` names no devices"),
            ("gpu:-1", "`gpu:-1` names no devices"),
            ("gpu:+1", "`gpu:+1` names no devices"),
            ("emulator:+4", "`emulator:+4` names no devices"),
        ] {
            assert!(parse(wrong).as_ref().is_err_and(|error| error.contains(part)), "{wrong}: {:?}", parse(wrong));
        }
    }
}
