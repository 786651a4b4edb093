//! GPU architectures and the PTX version each is compiled with.

use crate::Error;

/// An architecture that the builder knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Arch {
    /// Compute capability times ten: 90 is `sm_90`.
    pub(crate) sm: u32,
    /// PTX version times ten.
    pub(crate) ptx: u32,
}

/// The PTX version decides which drivers load the kernels, so each is the lowest that has what its
/// architecture adds: `ex2.f16` for sm_75 (7.0), the bf16 conversions, `redux` and `min.NaN` for sm_80,
/// clusters and bulk copies for sm_90 (8.0), and from sm_100 on the first version that knows the target.
const KNOWN: &[Arch] = &[
    Arch { sm: 75, ptx: 70 },
    Arch { sm: 80, ptx: 71 },
    Arch { sm: 86, ptx: 71 },
    Arch { sm: 87, ptx: 74 },
    Arch { sm: 89, ptx: 78 },
    Arch { sm: 90, ptx: 80 },
    Arch { sm: 100, ptx: 86 },
    Arch { sm: 103, ptx: 88 },
    Arch { sm: 110, ptx: 90 },
    Arch { sm: 120, ptx: 87 },
    Arch { sm: 121, ptx: 88 },
];

/// Built unless the script or the environment says otherwise: PTX runs on every later architecture too,
/// so one a generation covers them all.
pub(crate) const DEFAULT: &[u32] = &[75, 80, 90, 100];

/// What one block can have on an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) threads: u32,
    pub(crate) registers: u32,
    /// Static and dynamic shared memory together, in bytes: without what the system reserves, which the block does not see.
    pub(crate) shared: u32,
}

impl Limits {
    /// Of the technical specifications in NVIDIA's programming guide.
    pub(crate) fn of(sm: u32) -> Self {
        let kib = match sm {
            ..80 => 64,
            80 | 87 => 163,
            81..90 => 99,
            90..120 => 227,
            120.. => 99,
        };
        Self { threads: 1024, registers: 65536, shared: kib * 1024 }
    }
}

impl Arch {
    pub(crate) fn new(sm: u32) -> Result<Self, Error> {
        KNOWN.iter().copied().find(|arch| arch.sm == sm).ok_or_else(|| unknown(&sm.to_string()))
    }

    /// The name that LLVM and ptxas use.
    pub(crate) fn name(self) -> String {
        format!("sm_{}", self.sm)
    }
}

/// Sorts, removes repeats and checks.
pub(crate) fn resolve(list: &[u32]) -> Result<Vec<Arch>, Error> {
    let mut archs = list.iter().map(|&sm| Arch::new(sm)).collect::<Result<Vec<_>, _>>()?;
    archs.sort_unstable();
    archs.dedup();
    Ok(archs)
}

/// The one of `built` whose PTX a device runs: the newest up to its own, as in the host's choice.
pub(crate) fn runs_on(built: &[Arch], device: Arch) -> Option<Arch> {
    built.iter().copied().filter(|arch| arch.sm <= device.sm).max()
}

/// Parses `75,90`; `sm_90` is taken as well.
pub(crate) fn parse_list(text: &str) -> Result<Vec<Arch>, Error> {
    let numbers = text
        .split([',', ' ', ';'])
        .filter(|part| !part.is_empty())
        .map(|part| {
            let digits = part.strip_prefix("sm_").unwrap_or(part);
            digits.parse::<u32>().map_err(|_| unknown(part))
        })
        .collect::<Result<Vec<_>, _>>()?;
    if numbers.is_empty() {
        return Err(unknown(text));
    }
    resolve(&numbers)
}

fn unknown(given: &str) -> Error {
    let known: Vec<_> = KNOWN.iter().map(|arch| arch.sm.to_string()).collect();
    Error::UnknownArch { given: given.to_owned(), known: known.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damage::{Shown, try_all};

    #[test]
    fn list_is_sorted_and_without_repeats() {
        let archs = parse_list("90, sm_75,90").unwrap();
        assert_eq!(archs.iter().map(|a| a.sm).collect::<Vec<_>>(), [75, 90]);
    }

    #[test]
    fn unknown_architecture_lists_the_known_ones() {
        for text in ["91", "ninety", "sm_", ""] {
            let message = parse_list(text).unwrap_err().to_string();
            assert!(message.contains("75, 80, 86"), "{message}");
        }
        assert!(parse_list("91").unwrap_err().to_string().contains("`91`"));
    }

    #[test]
    fn a_device_runs_the_newest_up_to_its_own() {
        let built = parse_list("75,80,90,100").unwrap();
        let on = |sm| runs_on(&built, Arch::new(sm).unwrap()).map(|arch| arch.sm);
        assert_eq!([75, 86, 87, 89, 90, 120].map(on), [75, 80, 80, 80, 90, 100].map(Some));
        assert_eq!(runs_on(&built[1..], built[0]), None);
    }

    #[test]
    fn defaults_are_known_and_versions_never_fall() {
        assert_eq!(resolve(DEFAULT).unwrap().len(), DEFAULT.len());
        assert!(KNOWN.windows(2).all(|pair| pair[0].sm < pair[1].sm));
    }

    #[test]
    fn damaged_lists_are_an_error_or_known_architectures() {
        let valid = [&b"75,90"[..], b"sm_75 sm_120", b"100;103"];
        try_all(
            3000,
            |damage| Shown(damage.damaged(&valid, &["sm_", ",", ";", "75", "121"])),
            |Shown(bytes)| match parse_list(&String::from_utf8_lossy(bytes)) {
                Ok(archs) if archs.is_empty() || !archs.is_sorted() => Err(format!("{archs:?}")),
                Ok(archs) if archs.iter().any(|arch| !KNOWN.contains(arch)) => Err(format!("{archs:?}")),
                Err(error) if !error.to_string().contains("known: 75, 80") => Err(error.to_string()),
                _ => Ok(()),
            },
        );
    }
}
