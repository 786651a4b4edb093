//! Tells the user's terminal how far a long build is: cargo shows nothing of a build script before it ends.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// From one line to the next. A build that is faster than this says nothing.
const INTERVAL: Duration = Duration::from_secs(5);

/// Counts what is done. A thread of its own shows it until this is dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    state: Arc<State>,
    shown: Option<(Sender<()>, JoinHandle<()>)>,
}

#[derive(Debug, Default)]
struct State {
    /// The crate that rustc compiles.
    crate_name: Mutex<Option<String>>,
    found: AtomicUsize,
    done: AtomicUsize,
}

impl Progress {
    /// Shows it on the terminal that the build was started from, if there is one and cargo's own messages go to it. Cargo's own setting of
    /// its progress bar turns it off (`CARGO_TERM_PROGRESS_WHEN=never`), and so do `CI` and `TERM=dumb`, as they do there.
    pub(crate) fn new() -> Self {
        let off = is_off(|name| env::var_os(name));
        // Cargo keeps what a build script writes to its standard streams.
        let terminal =
            if cfg!(unix) && !off && is_shown() { File::options().write(true).open("/dev/tty").ok() } else { None };
        Self::on(terminal, INTERVAL)
    }

    fn on(output: Option<impl Write + Send + 'static>, interval: Duration) -> Self {
        let state = Arc::<State>::default();
        let shown = output.map(|mut output| {
            let (stop, stopped) = mpsc::channel();
            let (state, started) = (state.clone(), Instant::now());
            let show = move || {
                while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                    // Over cargo's own line, which comes again below. What cannot be shown is no failure of the build.
                    let _ = write!(output, "\r\x1b[K{}\n", state.line(started.elapsed().as_secs()));
                }
            };
            (stop, thread::spawn(show))
        });
        Self { state, shown }
    }

    /// rustc begins with a crate, or has done with it.
    pub(crate) fn rustc(&self, crate_name: Option<&str>) {
        *self.state.crate_name.lock().expect("nothing panics while it is held") = crate_name.map(str::to_owned);
    }

    /// There are more kernels to compile.
    pub(crate) fn found(&self, kernels: usize) {
        self.state.found.fetch_add(kernels, Ordering::Relaxed);
    }

    /// A kernel is compiled.
    pub(crate) fn done(&self) {
        self.state.done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether cargo's own messages go to a terminal. Another program that keeps them may have the screen to itself.
fn is_shown() -> bool {
    #[cfg(target_os = "linux")]
    return is_terminal_of(std::os::unix::process::parent_id());
    #[cfg(not(target_os = "linux"))]
    true
}

/// Whether the standard error of a process is a terminal, by its name: to open a pipe may wait.
#[cfg(target_os = "linux")]
fn is_terminal_of(process: u32) -> bool {
    let name = std::fs::read_link(format!("/proc/{process}/fd/2")).unwrap_or_default();
    ["/dev/pts", "/dev/tty", "/dev/console"].iter().any(|begin| name.to_string_lossy().starts_with(begin))
}

/// Whether the environment turns it off.
fn is_off(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let is = |name: &str, value: &str| variable(name).is_some_and(|found| found == value);
    is("CARGO_TERM_PROGRESS_WHEN", "never") || is("TERM", "dumb") || variable("CI").is_some()
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.shown.take() {
            drop(stop);
            // A panic of the thread loses lines, no more.
            let _ = thread.join();
        }
    }
}

impl State {
    fn line(&self, seconds: u64) -> String {
        let (done, found) = (self.done.load(Ordering::Relaxed), self.found.load(Ordering::Relaxed));
        let rustc = match &*self.crate_name.lock().expect("nothing panics while it is held") {
            Some(name) => format!(", rustc compiles those of `{name}`"),
            None => String::new(),
        };
        format!("    GPU kernels: {done} of {found} compiled{rustc} ({seconds} s)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Screen(Arc<Mutex<Vec<u8>>>);

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_tells_the_crate_and_the_kernels() {
        let progress = Progress::on(None::<Screen>, INTERVAL);
        progress.found(2);
        progress.rustc(Some("app"));
        progress.done();
        assert_eq!(progress.state.line(7), "    GPU kernels: 1 of 2 compiled, rustc compiles those of `app` (7 s)");
        progress.rustc(None);
        assert_eq!(progress.state.line(8), "    GPU kernels: 1 of 2 compiled (8 s)");
    }

    #[test]
    fn what_turns_cargos_own_progress_off_turns_it_off() {
        for (set, off) in [
            (&[][..], false),
            (&[("TERM", "xterm"), ("CARGO_TERM_PROGRESS_WHEN", "auto")], false),
            (&[("TERM", "xterm"), ("CARGO_TERM_PROGRESS_WHEN", "never")], true),
            (&[("TERM", "dumb")], true),
            (&[("CI", "")], true),
        ] {
            let variable = |name: &str| set.iter().find(|(set, _)| *set == name).map(|(_, value)| value.into());
            assert_eq!(is_off(variable), off, "{set:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn messages_that_another_program_keeps_are_on_no_terminal() {
        let mut child =
            std::process::Command::new("sleep").arg("60").stderr(std::process::Stdio::null()).spawn().unwrap();
        let shown = is_terminal_of(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!shown);
    }

    #[test]
    fn lines_come_until_it_is_dropped_and_none_from_a_short_build() {
        let screen = Screen::default();
        drop(Progress::on(Some(screen.clone()), Duration::from_secs(3600)));
        assert!(screen.0.lock().unwrap().is_empty());
        let progress = Progress::on(Some(screen.clone()), Duration::from_millis(1));
        while screen.0.lock().unwrap().is_empty() {
            thread::yield_now();
        }
        drop(progress);
        let text = String::from_utf8(screen.0.lock().unwrap().clone()).unwrap();
        assert!(text.starts_with("\r\x1b[K    GPU kernels: 0 of 0 compiled (0 s)\n"), "{text:?}");
    }
}
