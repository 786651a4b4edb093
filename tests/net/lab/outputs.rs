//! Tests of outputs that are one shorter than needed, and two small cases of each subject.

use std::slice::from_ref;

use kernel_primitives::{Device, Error};

use super::{Failure, drive, some_cases};
use crate::case::{Case, Lengths};
use crate::subject::{Place, Short, Subject};

/// Limits the number of items. The first case has some.
fn of_few_items(n: u64, case: Case, lengths: &Lengths) -> Case {
    let len = if n == 0 { 100 } else { case.len % 600 };
    case.with_len(len, lengths)
}

/// Tests the error of each output that is one shorter than needed. A call that checks its lengths then names itself and both lengths, and
/// writes nothing.
pub fn short_outputs(subjects: Vec<Subject>) {
    drive("short_outputs", subjects, some_cases(), of_few_items, |lab, subject, case| {
        let ([usual, _], tuning) = (lab.streams(case.mode), case.tuning(&lab.tuning));
        // On a GPU, a fault ends a stream, and the launch of another test may return it.
        let emulator = Device::emulator().stream()?;
        let lens = subject.begin(from_ref(case), usual)?.lens();
        for (output, needed) in lens.into_iter().enumerate().filter(|&(_, len)| len > 0) {
            let short = subject.short(output);
            let stream = match short {
                Short::Any => continue,
                Short::Fault => &emulator,
                Short::Length | Short::Bins => usual,
            };
            let mut trial = subject.begin(from_ref(case), stream)?;
            trial.cut(output);
            let before = trial.printed()?;
            let called = trial.call(Place { stream, workspace: None, tuning: &tuning });
            let called = called.and_then(|()| stream.synchronize());
            let is_right = match (&called, short) {
                (Err(Error::LengthMismatch { kernel, first_len, second_len, .. }), Short::Length) => {
                    subject.covers.contains(&&**kernel) && (*first_len, *second_len) == (needed, needed - 1)
                }
                (Err(Error::LengthMismatch { kernel, .. }), Short::Bins) => {
                    subject.covers.contains(&&**kernel) && needed > 1
                }
                (Err(Error::Bins { algorithm, .. }), Short::Bins) => subject.covers.contains(algorithm) && needed == 1,
                (Err(Error::Fault(_)), Short::Fault) => true,
                _ => false,
            };
            let what = format!("output {output} has {} places for {needed} results", needed - 1);
            match called {
                Ok(()) => return Err(Failure::from(format!("{what}, without an error"))),
                Err(error) if !is_right => return Err(Failure::from(format!("{what}: {error}"))),
                Err(_) if short != Short::Fault && trial.printed()? != before => {
                    return Err(Failure::from(format!("{what}, and the call writes")));
                }
                Err(_) => {}
            }
        }
        Ok(())
    });
}

/// Tests small cases on the device that the environment names, for tools that slow it down.
pub fn sanitize(subjects: Vec<Subject>) {
    drive("sanitize", subjects, 2, of_few_items, |lab, subject, case| {
        let (stream, tuning) = (&lab.usual, case.tuning(&lab.tuning));
        let mut trial = subject.begin(from_ref(case), stream)?;
        trial.call(Place { stream, workspace: None, tuning: &tuning })?;
        Ok(trial.verify()?)
    });
}
