//! Calls of the program's functions on the host, for items that go between devices.

use std::any::Any;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};

use primitives_host::storage::host_fault;

use crate::{Diagnosis, Error, Result};

/// A call of the library, and its place in the program.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) name: &'static str,
    place: &'static Location<'static>,
}

impl Call {
    /// Makes the call with this name, which is in backticks. Its place is that of the caller of the nearest function with
    /// `#[track_caller]`.
    #[track_caller]
    pub(super) fn of(name: &'static str) -> Self {
        Self { name, place: Location::caller() }
    }

    /// Runs functions of the program on the host. A panic becomes a fault, as in a kernel. The fault has the place of the call, because
    /// only a panic hook learns the place of the panic.
    pub(super) fn run<T>(self, functions: impl FnOnce() -> T) -> Result<T> {
        match catch_unwind(AssertUnwindSafe(functions)) {
            Ok(result) => Ok(result),
            Err(payload) => Err(self.fault(payload)),
        }
    }

    fn fault(self, payload: Box<dyn Any + Send>) -> Error {
        let message = match payload.downcast_ref::<&str>() {
            Some(text) => (*text).to_owned(),
            None => payload.downcast_ref::<String>().cloned().unwrap_or_default(),
        };
        // A payload may have any type, and may panic when it is dropped. Then it is leaked.
        if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(another);
        }
        let mut error = host_fault(self.name.trim_matches('`'), self.place, Diagnosis::Panicked { message });
        if let Error::Fault(fault) = &mut error {
            fault.help = Some(
                "no thread of a kernel panicked: the host called the function, for what goes between devices".into(),
            );
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A payload that panics when it is dropped.
    struct Falls;

    impl Drop for Falls {
        fn drop(&mut self) {
            panic!("falls");
        }
    }

    #[test]
    fn a_panic_is_a_fault_at_the_call() {
        let call = Call::of("`split::sort_by`");
        let fault = |result: Result<()>| match result {
            Err(Error::Fault(fault)) => (fault.kernel.clone(), fault.file.clone(), fault.line, fault.diagnosis.clone()),
            other => panic!("{other:?}"),
        };
        let of = |message: &str| {
            let diagnosis = Diagnosis::Panicked { message: message.into() };
            ("split::sort_by".to_owned(), file!().to_owned(), call.place.line(), diagnosis)
        };
        assert_eq!(fault(call.run(|| panic!("text"))), of("text"));
        let number = 3;
        assert_eq!(fault(call.run(|| panic!("number {number}"))), of("number 3"));
        assert_eq!(fault(call.run(|| std::panic::panic_any(7))), of(""));
        assert_eq!(fault(call.run(|| std::panic::panic_any(Falls))), of(""));
        assert_eq!(call.run(|| 5).ok(), Some(5));
    }
}
