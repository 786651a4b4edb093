//! Runs pieces of work on all cores.
//!
//! The caller of [`pieces`] may hold locks, and may be a thread of a work-stealing pool, such as rayon's. A thread that waits inside such a
//! pool runs other work meanwhile, which may need a lock that the same thread holds. Here this cannot happen:
//!
//! - The caller computes only pieces of its own work, and then waits only for pieces of it that helpers have started.
//! - A helper takes work only while it has none, and does not wait inside a piece. The exception is a piece that calls [`pieces`] itself:
//!   its helper is then a caller, which can compute all of its pieces without help.
//!
//! So each wait is for a piece that a thread is computing, and waits form no cycle.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use primitives_host::storage::{Running, resume, running};

/// Computes `count` pieces, each on one thread, with a value that `local` makes once for each thread. The error is always that of the first
/// piece that has one, for any number of threads. Pieces after it may not have been computed.
pub(crate) fn pieces<L, E: Send>(
    count: usize,
    local: impl Fn() -> L + Sync,
    piece: impl Fn(&mut L, usize) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let first: Mutex<Option<(usize, E)>> = Mutex::new(None);
    // Pieces start in order, and all pieces that have started are finished. So the first error is among them.
    let claim = || match failed.load(Ordering::Relaxed) {
        false => Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&at| at < count),
        true => None,
    };
    let run = || {
        let mut own = None;
        while let Some(at) = claim() {
            if let Err(error) = piece(own.get_or_insert_with(&local), at) {
                failed.store(true, Ordering::Relaxed);
                let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
                if first.as_ref().is_none_or(|(earlier, _)| at < *earlier) {
                    *first = Some((at, error));
                }
            }
        }
    };
    match count {
        0 => {}
        1 => run(),
        _ => Crew::get().share(count - 1, &run),
    }
    first.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), |(_, error)| Err(error))
}

/// The helper threads.
struct Crew {
    threads: usize,
    shared: Mutex<Vec<Shared>>,
    /// Notified when there is new work.
    work: Condvar,
    /// Notified when a helper leaves work.
    left: Condvar,
}

/// Work that helpers may join.
struct Shared {
    number: usize,
    /// Takes pieces until there are none. The lifetime is erased, see [`Crew::share`].
    run: &'static (dyn Fn() + Sync),
    /// The launch to which the work belongs.
    launch: Option<Arc<Running>>,
    open: bool,
    helpers: usize,
    panic: Option<Box<dyn Any + Send>>,
}

impl Crew {
    fn get() -> &'static Self {
        static CREW: OnceLock<Crew> = OnceLock::new();
        static HIRED: OnceLock<()> = OnceLock::new();
        let crew = CREW.get_or_init(|| Crew {
            threads: thread::available_parallelism().map_or(0, |cores| cores.get() - 1),
            shared: Mutex::default(),
            work: Condvar::new(),
            left: Condvar::new(),
        });
        HIRED.get_or_init(|| {
            for _ in 0..crew.threads {
                // Without a helper, the caller does its work.
                let _ = thread::Builder::new().name("expressions".to_owned()).spawn(|| crew.help());
            }
        });
        crew
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Shared>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `run` on this thread, and at the same time on up to `helpers` threads.
    fn share(&'static self, helpers: usize, run: &(dyn Fn() + Sync)) {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // SAFETY: helpers call it between joining and leaving, and neither a return nor a panic leaves this function before
        // nobody can join and all have left.
        let run = unsafe { std::mem::transmute::<&(dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(run) };
        self.lock().push(Shared { number, run, launch: running(), open: true, helpers: 0, panic: None });
        (0..helpers.min(self.threads)).for_each(|_| self.work.notify_one());
        let own = catch_unwind(AssertUnwindSafe(run));

        let mut all = self.lock();
        let theirs = loop {
            let at = all.iter().position(|shared| shared.number == number).expect("only its caller removes it");
            all[at].open = false;
            if all[at].helpers == 0 {
                break all.swap_remove(at).panic;
            }
            all = self.left.wait(all).unwrap_or_else(PoisonError::into_inner);
        };
        drop(all);
        if let Some(panic) = own.err().or(theirs) {
            resume_unwind(panic);
        }
    }

    /// Runs the endless loop of a helper.
    fn help(&self) {
        let mut all = self.lock();
        loop {
            let Some(shared) = all.iter_mut().find(|shared| shared.open) else {
                all = self.work.wait(all).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let (number, run, launch) = (shared.number, shared.run, shared.launch.clone());
            shared.helpers += 1;
            drop(all);
            // SAFETY: the caller of `share`, which the launch runs, waits until this helper has left.
            let entered = unsafe { resume(launch) };
            let panic = catch_unwind(AssertUnwindSafe(run)).err();
            drop(entered);
            all = self.lock();
            let shared = all.iter_mut().find(|shared| shared.number == number).expect("it stays while it has helpers");
            // There is no piece left to take.
            shared.open = false;
            shared.helpers -= 1;
            shared.panic = shared.panic.take().or(panic);
            self.left.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_is_computed_once() {
        for count in [0, 1, 2, 3, 100, 10_000] {
            let times: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
            let result: Result<(), ()> = pieces(
                count,
                || (),
                |(), at| {
                    times[at].fetch_add(1, Ordering::Relaxed);
                    Ok(())
                },
            );
            assert_eq!(result, Ok(()));
            assert!(times.iter().all(|times| times.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn the_first_error_is_returned() {
        for _ in 0..100 {
            let result = pieces(1000, || (), |(), at| if at % 100 == 37 { Err(at) } else { Ok(()) });
            assert_eq!(result, Err(37));
        }
    }

    #[test]
    fn pieces_have_pieces() {
        let sum = AtomicUsize::new(0);
        let inner = |outer: usize| {
            pieces(
                50,
                || (),
                |(), at| {
                    sum.fetch_add(outer * at, Ordering::Relaxed);
                    Ok::<_, ()>(())
                },
            )
        };
        assert_eq!(pieces(50, || (), |(), at| inner(at)), Ok(()));
        assert_eq!(sum.into_inner(), 1225 * 1225);
    }

    #[test]
    fn a_panic_of_a_piece_is_the_callers() {
        for at in [0, 1, 57] {
            let result = catch_unwind(|| {
                pieces(100, || (), |(), piece| if piece == at { panic!("piece {at}") } else { Ok::<_, ()>(()) })
            });
            assert_eq!(result.unwrap_err().downcast_ref(), Some(&format!("piece {at}")));
        }
        each_piece_is_computed_once();
    }
}
