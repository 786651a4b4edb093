//! Opening the driver's library.

use std::ffi::{CStr, OsStr, OsString, c_int, c_void};
use std::sync::OnceLock;
use std::{env, error, fmt};

use libloading::Library;

use crate::sys::{self, CUresult};

/// The environment variable that names the library to open instead of `libcuda.so.1`.
///
/// A path, or a name for the dynamic linker to look up. Where it is set (and not empty) nothing
/// else is tried. It is read once, at the first use of the driver.
pub const LIBRARY_VARIABLE: &str = "KERNEL_PRIMITIVES_LIBCUDA";

/// The driver's library on Linux. `libcuda.so`, without the number, is the one to link to: on a
/// machine that has only the toolkit it is a stub.
const DEFAULT_LIBRARY: &str = "libcuda.so.1";

/// The library, once opened. It is never closed.
pub(crate) struct Opened {
    library: Library,
    name: OsString,
}

/// The driver's library, opened at the first call.
pub(crate) fn library() -> Result<&'static Opened, &'static LoadError> {
    static LIBRARY: OnceLock<Result<Opened, LoadError>> = OnceLock::new();
    LIBRARY.get_or_init(open).as_ref()
}

fn open() -> Result<Opened, LoadError> {
    let chosen = env::var_os(LIBRARY_VARIABLE).filter(|name| !name.is_empty());
    let by_variable = chosen.is_some();
    let name = chosen.unwrap_or_else(|| DEFAULT_LIBRARY.into());
    let failed = |cause: String| LoadError { library: name.clone(), by_variable, cause };
    // SAFETY: opening the driver runs its initialisers, as every program linked to it does before
    // `main`. That the variable names a CUDA driver is up to whoever sets it.
    let library = unsafe { Library::new(&name) }.map_err(|error| failed(describe(&error)))?;
    // SAFETY: the symbol is only looked for.
    if unsafe { library.get::<*mut c_void>(c"cuInit") }.is_err() {
        return Err(failed(String::from("it has no function cuInit: not a CUDA driver")));
    }
    Ok(Opened { library, name })
}

/// What the dynamic linker says.
fn describe(error: &libloading::Error) -> String {
    match error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// The address of a function of the driver, if the driver can be opened and has it.
pub(crate) fn symbol(name: &CStr) -> Option<*mut c_void> {
    let opened = library().ok()?;
    // SAFETY: only the address is taken; it is called as a function in `sys`. The library stays
    // open for the rest of the process, so the address remains valid.
    let symbol = unsafe { opened.library.get::<*mut c_void>(name) }.ok()?;
    Some(*symbol).filter(|address| !address.is_null())
}

/// The driver that was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DriverInfo {
    library: OsString,
    cuda_version: Option<(u32, u32)>,
}

impl DriverInfo {
    /// The name or path under which the library was opened.
    #[must_use]
    pub fn library(&self) -> &OsStr {
        &self.library
    }

    /// The newest CUDA version that the driver supports, major and minor; `None` if it does not
    /// tell.
    #[must_use]
    pub fn cuda_version(&self) -> Option<(u32, u32)> {
        self.cuda_version
    }
}

/// Why the driver could not be opened.
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

    /// What the dynamic linker said.
    #[must_use]
    pub fn cause(&self) -> &str {
        &self.cause
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { library, by_variable, cause } = self;
        let library = library.display();
        write!(f, "cannot open the CUDA driver `{library}`: {cause}; ")?;
        if *by_variable {
            write!(f, "{LIBRARY_VARIABLE} names this library: correct it, or unset it")
        } else {
            write!(
                f,
                "install the NVIDIA driver of this machine (in a container, make it visible: \
                 `--gpus all`), or set {LIBRARY_VARIABLE} to the path of its {DEFAULT_LIBRARY}"
            )
        }
    }
}

impl error::Error for LoadError {}

/// Opens the driver, if that has not been done yet, and says which one it is.
///
/// The answer is decided once per process, so later calls are cheap and agree. Success means that the
/// library is there, not that there is a device: [`sys::cuInit`] tells that.
///
/// # Errors
///
/// Returns [`LoadError`] if the library cannot be opened, or is no CUDA driver.
pub fn load() -> Result<DriverInfo, LoadError> {
    let opened = library().map_err(Clone::clone)?;
    let mut version: c_int = 0;
    // SAFETY: the function writes the version through the pointer, which is valid; it may be
    // called before `cuInit`.
    let code = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    let version = (code == CUresult::CUDA_SUCCESS).then(|| u32::try_from(version).ok()).flatten();
    Ok(DriverInfo {
        library: opened.name.clone(),
        cuda_version: version.map(|version| (version / 1000, version % 1000 / 10)),
    })
}

/// Whether the driver's library can be opened: [`load`] without the details.
#[must_use]
pub fn is_available() -> bool {
    load().is_ok()
}
