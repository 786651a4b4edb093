//! Panics in lanes: they end the launch with an error, and print nothing.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use primitives_gpu::simt::emulated::set_on_lane;

use super::fiber;

thread_local! {
    /// Where the thread's latest panic in a lane happened.
    static LATEST: Cell<Option<PanicPlace>> = const { Cell::new(None) };
}

/// Where a panic happened. Not a `Place`, because the hook's location does not outlive it.
pub(super) struct PanicPlace {
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) column: u32,
}

/// Puts a hook before the one that is there, once a process: it notes the places of panics in lanes, and leaves all other
/// panics to the other hook.
pub(super) fn install_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        set_on_lane(fiber::in_lane);
        let previous = take_hook();
        set_hook(Box::new(move |info| {
            // A program that cannot unwind ends here, and must say why.
            if !fiber::in_lane() || cfg!(panic = "abort") {
                return previous(info);
            }
            let place = info.location().map(|at| PanicPlace {
                file: at.file().to_owned(),
                line: at.line(),
                column: at.column(),
            });
            // A thread that is ending may have destroyed the variable.
            let _ = LATEST.try_with(|latest| latest.set(place));
        }));
    });
}

/// The place of the thread's latest panic in a lane, unless somebody replaced the hook or the thread is ending.
pub(super) fn latest_place() -> Option<PanicPlace> {
    LATEST.try_with(Cell::take).ok().flatten()
}

/// The message of a caught panic.
pub(super) fn message(payload: Box<dyn Any + Send>) -> String {
    let message = match payload.downcast_ref::<&str>() {
        Some(text) => (*text).to_owned(),
        None => payload.downcast_ref::<String>().cloned().unwrap_or_default(),
    };
    // A payload may be of any type, and panic when it is dropped; then it stays where it is.
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
    message
}
