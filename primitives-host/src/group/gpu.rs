//! The GPU of a member. If two members have the same GPU, this is found when they meet, and the error names both. NCCL refuses them too,
//! but names neither.

use std::fmt;

use crate::device::Device;

/// A GPU among those of all hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gpu {
    /// A hash that identifies the host.
    pub(super) host: u64,
    /// The place in the host: the domain, the bus and the device of PCI.
    pub(super) place: u64,
}

impl Gpu {
    /// `None` in the emulator, or if the system does not identify the host or the GPU.
    #[cfg(feature = "cuda")]
    pub(super) fn of(device: &Device) -> Option<Self> {
        let place = device.context()?.place()?;
        Some(Self { host: hash(&host()?), place })
    }

    #[cfg(not(feature = "cuda"))]
    pub(super) fn of(_device: &Device) -> Option<Self> {
        None
    }
}

/// The bytes that identify the host. They are the same as NCCL's, which also compares the GPUs of members.
#[cfg(feature = "cuda")]
fn host() -> Option<Vec<u8>> {
    use std::os::unix::ffi::OsStringExt;

    if let Some(named) = std::env::var_os("NCCL_HOSTID").filter(|named| !named.is_empty()) {
        return Some(named.into_vec());
    }
    let name = std::fs::read("/proc/sys/kernel/hostname").ok()?;
    let start = std::fs::read("/proc/sys/kernel/random/boot_id").ok()?;
    Some([name, start].concat())
}

/// FNV-1a, which is the same in all programs.
#[cfg(any(feature = "cuda", test))]
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// As NVIDIA's tools write it: `0000:17:00.0`.
impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (domain, bus, device) = (self.place >> 32, (self.place >> 8) & 0xff_ffff, self.place & 0xff);
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.0")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_called_by_its_place() {
        let gpu = |place| Gpu { host: 0, place }.to_string();
        assert_eq!((gpu(0x1700), gpu(0x1_0000_ca01)), ("0000:17:00.0".into(), "0001:ca:01.0".into()));
    }

    #[test]
    fn hosts_have_the_hashes_that_the_function_is_published_with() {
        assert_eq!(
            (hash(b""), hash(b"a"), hash(b"foobar")),
            (0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c, 0x8594_4171_f739_67e8)
        );
    }
}
