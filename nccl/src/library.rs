//! Opening NCCL's library.

use std::ffi::{CStr, OsStr, OsString, c_int, c_void};
use std::mem::transmute;
use std::sync::OnceLock;
use std::{env, error, fmt};

use libloading::Library;

use crate::sys::{Nccl, ncclResult_t};

/// The environment variable that names the library to open instead of `libnccl.so.2`.
///
/// A path, or a name for the dynamic linker to look up. Where it is set (and not empty) nothing else is tried. It is read once, by the first
/// call of [`load`].
pub const LIBRARY_VARIABLE: &str = "KERNEL_PRIMITIVES_LIBNCCL";

/// NCCL's library on Linux.
const DEFAULT_LIBRARY: &str = "libnccl.so.2";

/// The oldest version whose functions are those that are called.
const OLDEST: Version = Version { major: 2, minor: 20, patch: 0 };

/// A version of NCCL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second.
    pub minor: u32,
    /// The third.
    pub patch: u32,
}

impl Version {
    /// The version that `ncclGetVersion` gives as this number: up to 2.8 with a digit less for the major version.
    pub(crate) fn of_code(code: i32) -> Self {
        let code = u32::try_from(code).unwrap_or(0);
        let thousands = if code < 10_000 { 1_000 } else { 10_000 };
        Self { major: code / thousands, minor: code % thousands / 100, patch: code % 100 }
    }
}

/// `2.20.5`.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Why NCCL could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadError {
    library: OsString,
    by_variable: bool,
    cause: String,
}

impl LoadError {
    /// The name or path that was tried.
    #[must_use]
    pub fn library(&self) -> &OsStr {
        &self.library
    }

    /// What the dynamic linker said, or what is wrong with the library.
    #[must_use]
    pub fn cause(&self) -> &str {
        &self.cause
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { library, by_variable, cause } = self;
        write!(f, "cannot open NCCL `{}`: {cause}; ", library.display())?;
        if *by_variable {
            write!(f, "{LIBRARY_VARIABLE} names this library: correct it, or unset it")
        } else {
            write!(
                f,
                "install NCCL {}.{} or later (NVIDIA's package `libnccl2`), or set {LIBRARY_VARIABLE} to the path of a \
                 {DEFAULT_LIBRARY}: the Python wheel `nvidia-nccl-cu13` has one in `nvidia/nccl/lib`",
                OLDEST.major, OLDEST.minor
            )
        }
    }
}

impl error::Error for LoadError {}

/// Opens NCCL, if that has not been done yet. The answer is decided once per process, so later calls are cheap and agree.
///
/// # Errors
///
/// Returns [`LoadError`] if the library cannot be opened, lacks a function, or is older than version 2.20.
pub fn load() -> Result<&'static Nccl, LoadError> {
    static NCCL: OnceLock<Result<Nccl, LoadError>> = OnceLock::new();
    NCCL.get_or_init(open).as_ref().map_err(Clone::clone)
}

fn open() -> Result<Nccl, LoadError> {
    let chosen = env::var_os(LIBRARY_VARIABLE).filter(|name| !name.is_empty());
    let by_variable = chosen.is_some();
    let name = chosen.unwrap_or_else(|| DEFAULT_LIBRARY.into());
    let failed = |cause: String| LoadError { library: name.clone(), by_variable, cause };
    // SAFETY: opening NCCL runs its initialisers, as every program linked to it does before `main`. That the variable names NCCL is up to
    // whoever sets it.
    let library = unsafe { Library::new(&name) }.map_err(|error| failed(describe(&error)))?;
    // First of all: an old one lacks functions, too.
    let version = version(&library).map_err(failed)?;
    if version < OLDEST {
        let wanted = format!("{}.{}", OLDEST.major, OLDEST.minor);
        return Err(failed(format!("its version is {version}, which is older than {wanted}")));
    }
    Nccl::new(library, version).map_err(|function| failed(format!("it has no function {function}")))
}

/// The version that a library says it has.
fn version(library: &Library) -> Result<Version, String> {
    let address = symbol(library, c"ncclGetVersion").ok_or("it has no function ncclGetVersion")?;
    // SAFETY: the address is not null, and that of NCCL's function of this name, which has this type in all versions.
    let get = unsafe { transmute::<*mut c_void, unsafe extern "C" fn(*mut c_int) -> ncclResult_t>(address) };
    let mut code = 0;
    // SAFETY: the function writes the version through the pointer, which is valid.
    match unsafe { get(&raw mut code) } {
        ncclResult_t::ncclSuccess => Ok(Version::of_code(code)),
        ncclResult_t(result) => Err(format!("ncclGetVersion returns {result}")),
    }
}

/// What the dynamic linker says.
fn describe(error: &libloading::Error) -> String {
    match error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// The address of a function of the library, if it has it.
pub(crate) fn symbol(library: &Library, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: only the address is taken.
    let symbol = unsafe { library.get::<*mut c_void>(name) }.ok()?;
    Some(*symbol).filter(|address| !address.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_versions() {
        let text = |code| Version::of_code(code).to_string();
        assert_eq!([text(22_005), text(23_100), text(2_708), text(0)], ["2.20.5", "2.31.0", "2.7.8", "0.0.0"]);
        assert_eq!(text(-1), "0.0.0");
        assert!(Version::of_code(21_805) < OLDEST && Version::of_code(2_804) < OLDEST);
        assert!(Version::of_code(22_000) >= OLDEST && Version::of_code(30_000) >= OLDEST);
    }
}
