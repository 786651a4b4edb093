//! The driver that watches, compiled and opened.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use libloading::{Library, Symbol};
use primitives_host::Stream;

/// The driver, which all tests share: one at a time has it.
pub(crate) struct Fake(Library);

pub(crate) fn fake() -> (&'static Fake, MutexGuard<'static, ()>) {
    static FAKE: OnceLock<Fake> = OnceLock::new();
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let fake = FAKE.get_or_init(|| {
        let library = compile("driver.c", concat!(env!("CARGO_CRATE_NAME"), "_libcuda.so"));
        // SAFETY: the other threads of this process wait for this one, or are the harness, which reads no environment now.
        unsafe {
            std::env::set_var("KERNEL_PRIMITIVES_LIBCUDA", &library);
            std::env::set_var("KERNEL_PRIMITIVES_DEVICES", "gpu");
        }
        Fake::open(&library)
    });
    fake.log();
    (fake, turn)
}

/// Compiles one of the sources beside this file to a library whose name ends so.
pub(crate) fn compile(source: &str, library: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake").join(source);
    // Of this process alone: it opens the library twice by its path, and another run would put one of its own there.
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}_{library}", std::process::id()));
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let arguments = ["-shared", "-fPIC", "-O1", "-pthread", "-o"];
    let status = Command::new(compiler).args(arguments).args([&library, &source]).status().expect("a C compiler");
    assert!(status.success());
    library
}

impl Fake {
    /// A library that [`compile`] has made.
    pub(crate) fn open(library: &Path) -> Self {
        // SAFETY: a library without initialisers.
        Self(unsafe { Library::new(library) }.expect("just made"))
    }

    pub(crate) fn call<R>(&self, name: &str, stream: Option<*mut c_void>) -> R {
        // SAFETY: the functions at the end of the driver's source, which take a stream or nothing.
        unsafe {
            match stream {
                Some(stream) => {
                    self.0.get::<unsafe extern "C" fn(*mut c_void) -> R>(name).expect("its function")(stream)
                }
                None => self.0.get::<unsafe extern "C" fn() -> R>(name).expect("its function")(),
            }
        }
    }

    pub(crate) fn set(&self, name: &str, value: c_int) {
        // SAFETY: as above, with an integer.
        unsafe {
            let function: Symbol<unsafe extern "C" fn(c_int)> = self.0.get(name).expect("its function");
            function(value);
        }
    }

    /// Begins or ends a capture by others.
    pub(crate) fn capture(&self, stream: *mut c_void, captured: bool) {
        // SAFETY: as above, with a stream and an integer.
        unsafe {
            let function: Symbol<unsafe extern "C" fn(*mut c_void, c_int)> = self.0.get("fake_capture").expect("it");
            function(stream, captured.into());
        }
    }

    /// What was noted since the last call, a line a call.
    pub(crate) fn log(&self) -> Vec<String> {
        // SAFETY: the driver keeps the text until the next call, which is of the thread that has the driver.
        let text = unsafe { CStr::from_ptr(self.call::<*const c_char>("fake_log", None)) };
        text.to_string_lossy().lines().map(str::to_owned).collect()
    }

    pub(crate) fn number(&self, stream: &Stream) -> c_int {
        self.call("fake_number", Some(stream.as_raw()))
    }

    #[track_caller]
    pub(crate) fn no_mistakes(&self) {
        assert_eq!(self.call::<c_int>("fake_mistakes", None), 0, "the line of the driver's source that found one");
    }

    /// A stream of others.
    pub(crate) fn raw_stream(&self) -> *mut c_void {
        let mut stream = null_mut();
        // SAFETY: the pointer is valid for the call.
        unsafe {
            let create: Symbol<unsafe extern "C" fn(*mut *mut c_void, u32) -> c_int> =
                self.0.get("cuStreamCreate").expect("it");
            assert_eq!(create(&raw mut stream, 1), 0);
        }
        stream
    }
}
