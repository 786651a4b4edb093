//! Tests of tuning values: all of them give the same results.

use std::collections::HashSet;
use std::slice::from_ref;

use kernel_primitives::algorithms::{Parameter, Tuning};

use super::drive;
use crate::case::{Case, Lengths, Mode};
use crate::subject::{Place, Subject};

/// A length for which all candidates differ. It has more than the eight rounds that a block of a reduction may do alone, and more than 65
/// 536 items, the least that the tiles of a block of `top_k` may have.
const LONG: usize = 70_001;

/// Returns the cases, which have usual shapes: three that run checked, and two of [`LONG`] inputs, of which the second begins inside a
/// vector. Each of the long ones has every other of the tuning values. Several blocks of these run at once, because the values of some
/// parameters are for each multiprocessor.
fn of_some_lengths(n: u64, case: Case, lengths: &Lengths) -> Case {
    let checked = |len| Case { mode: Mode::Checked, ..case.clone().with_len(len, lengths).shaped(0) };
    let long = |offset| {
        let case = case.clone().with_len(LONG, lengths).shaped(offset);
        Case { mode: Mode::Shuffled, offset, place: offset, ..case }
    };
    match n {
        0 => checked(11),
        1 => checked(1000),
        2 => checked(20_001),
        3 => long(0),
        _ => long(1),
    }
}

/// Returns the tuning values with the candidates of each parameter. All parameters are set at once, because each algorithm reads only its
/// own.
fn candidates(table: &Tuning) -> Vec<Tuning> {
    let most = Parameter::ALL.iter().map(|parameter| parameter.candidates().len()).max().unwrap_or(0);
    let of = |candidate: usize| {
        let mut tuning = table.clone();
        for &parameter in Parameter::ALL {
            let candidates = parameter.candidates();
            let value = candidates[candidate.min(candidates.len() - 1)];
            tuning.set(parameter, None, value).expect("a candidate is accepted");
        }
        tuning
    };
    (0..most).map(of).collect()
}

/// Returns the least and the greatest values of all parameters. A file of tuning values may have any accepted value.
fn ends(table: &Tuning) -> Vec<Tuning> {
    let ends: [&[u32]; 2] = [&[0, 1, 2, 32], &[u32::MAX, 1 << 31, 1 << 20, 65_535, 1024, 64, 32]];
    let of = |values: &[u32]| {
        let mut tuning = table.clone();
        for &parameter in Parameter::ALL {
            let is_accepted = values.iter().any(|&value| tuning.set(parameter, None, value).is_ok());
            assert!(is_accepted, "{}", parameter.name());
        }
        tuning
    };
    ends.into_iter().map(of).collect()
}

/// Tests the first subject of each function with all candidates and with the ends of what is accepted.
pub fn tuning(mut subjects: Vec<Subject>) {
    let mut functions = HashSet::new();
    subjects.retain(|subject| functions.insert(subject.covers[0]));
    drive("tuning", subjects, 5, of_some_lengths, |lab, subject, case| {
        let [stream, _] = lab.streams(case.mode);
        let mut all = ends(&lab.tuning);
        // Many items take long if they are checked.
        if case.mode != Mode::Checked || case.len <= 1000 {
            all.extend(candidates(&lab.tuning));
        }
        let every = if case.mode == Mode::Checked { 1 } else { 2 };
        let mut trial = subject.begin(from_ref(case), stream)?;
        for tuning in all.iter().skip(case.offset % every).step_by(every) {
            trial.clear()?;
            trial.call(Place { stream, workspace: None, tuning })?;
            trial.verify().map_err(|what| format!("{what}, with {tuning}"))?;
        }
        Ok(())
    });
}
