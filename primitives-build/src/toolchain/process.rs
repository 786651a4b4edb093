//! Running tools, and spreading work over cores.

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;

use crate::Error;

/// The command as one could type it, for messages.
pub(crate) fn display(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        line.push(' ');
        let arg = arg.to_string_lossy();
        if arg.contains([' ', '<', '>', '"', '$', '*', ';', '&', '|', '(', ')']) {
            line.push_str(&format!("'{arg}'"));
        } else {
            line.push_str(&arg);
        }
    }
    line
}

/// Runs to the end; only a failure to start is an error.
pub(crate) fn output(command: &mut Command) -> Result<Output, Error> {
    command.output().map_err(|source| Error::Spawn { program: PathBuf::from(command.get_program()), source })
}

/// Runs and requires success; `what` names the step in the error.
pub(crate) fn run(what: &str, command: &mut Command) -> Result<Output, Error> {
    let output = output(command)?;
    if output.status.success() {
        return Ok(output);
    }
    let mut stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    stderr.push_str(&String::from_utf8_lossy(&output.stdout));
    Err(Error::Tool { what: what.to_owned(), command: display(command), status: output.status.to_string(), stderr })
}

/// Standard output of a query, when it succeeds.
pub(crate) fn query(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(text)
}

/// Returns the folder where the parent process runs, which is cargo's if this is a build script. The settings of the whole build are
/// found from there, such as what replaces the registry. `None` if the system does not tell it.
pub(crate) fn folder_of_parent() -> Option<PathBuf> {
    #[cfg(target_os = "linux")]
    return folder_of(std::os::unix::process::parent_id());
    #[cfg(not(target_os = "linux"))]
    None
}

#[cfg(target_os = "linux")]
fn folder_of(process: u32) -> Option<PathBuf> {
    let folder = std::fs::read_link(format!("/proc/{process}/cwd")).ok()?;
    folder.is_dir().then_some(folder)
}

/// Applies `f` to every item on as many threads as cargo gave jobs; results in the items' order, and the
/// first failure in that order.
pub(crate) fn parallel<T: Sync, R: Send>(
    items: &[T],
    f: impl Fn(&T) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    pipeline(
        |give| {
            items.iter().for_each(give);
            Ok(())
        },
        f,
    )
}

/// As [`parallel`], of items that `produce` gives one after the other; each is taken up at once, by the other threads, and in the
/// end by this one too. A failure of `produce` goes before those of items.
pub(crate) fn pipeline<T: Send, R: Send>(
    produce: impl FnOnce(&mut dyn FnMut(T)) -> Result<(), Error>,
    f: impl Fn(T) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    let jobs = env::var("NUM_JOBS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from))
        .max(1);
    let (give, items) = mpsc::channel::<(usize, T)>();
    let items = Mutex::new(items);
    let results: Mutex<BTreeMap<usize, Result<R, Error>>> = Mutex::default();
    let stopped = AtomicBool::new(false);
    // The first failure in the items' order is reported, so nothing behind one is needed.
    let failed = AtomicUsize::new(usize::MAX);
    let panicked = "a worker thread panicked";
    let work = || {
        while !stopped.load(Ordering::Relaxed) {
            // The lock is held while waiting: the others would wait for the same.
            let item = items.lock().expect(panicked).recv();
            let Ok((index, item)) = item else { break };
            if index > failed.load(Ordering::Relaxed) {
                continue;
            }
            let result = f(item);
            if result.is_err() {
                failed.fetch_min(index, Ordering::Relaxed);
            }
            results.lock().expect(panicked).insert(index, result);
        }
    };
    thread::scope(|scope| {
        for _ in 1..jobs {
            scope.spawn(work);
        }
        let mut count = 0;
        let produced = produce(&mut |item| {
            // The receiver lives as long as this function.
            let _ = give.send((count, item));
            count += 1;
        });
        drop(give);
        match &produced {
            Ok(()) => work(),
            Err(_) => stopped.store(true, Ordering::Relaxed),
        }
        produced
    })?;
    results.into_inner().expect(panicked).into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_keeps_the_order_and_reports_the_first_failure() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(parallel(&items, |n| Ok(n * 2)).unwrap()[99], 198);
        let failing = parallel(&items, |&n| {
            if n < 40 { Ok(n) } else { Err(Error::UnknownArch { given: n.to_string(), known: String::new() }) }
        });
        assert!(failing.unwrap_err().to_string().contains("`40`"));
        assert!(parallel(&[], |n: &u32| Ok(*n)).unwrap().is_empty());
        let unknown = || Error::UnknownArch { given: "40".to_owned(), known: String::new() };
        let stopped = pipeline(
            |give| {
                (0..100).for_each(give);
                Err(unknown())
            },
            |n: u32| Ok(n),
        );
        assert!(stopped.unwrap_err().to_string().contains("`40`"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_folder_of_a_process_is_found() {
        let folder = std::env::temp_dir().canonicalize().unwrap();
        let mut child = Command::new("sleep").arg("60").current_dir(&folder).spawn().unwrap();
        let found = folder_of(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, Some(folder));
        // No process has this number.
        assert_eq!(folder_of(u32::MAX), None);
        assert!(folder_of_parent().is_some());
    }

    #[test]
    fn commands_are_shown_quoted_where_needed() {
        let mut command = Command::new("opt");
        command.args(["-passes=a,default<O3>", "x.bc"]);
        assert_eq!(display(&command), "opt '-passes=a,default<O3>' x.bc");
    }
}
