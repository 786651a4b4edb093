//! Tests of memory: calls of one tile without a workspace, and blocks with the shared memory of any architecture.

use std::slice::from_ref;

use kernel_primitives::algorithms::{Parameter, Tuning};
use kernel_primitives::{Device, EmulatorOptions, Stream};

use super::{CASES, Failure, ONE_TILE, SEVERAL_TILES, cases, drive, some_cases};
use crate::case::{Case, Lengths, Mode};
use crate::subject::{Place, Subject, Trial};

/// Limits the number of items. The first case has a usual shape.
fn of_one_tile(n: u64, case: Case, lengths: &Lengths) -> Case {
    let case = if n == 0 { case.shaped(0) } else { case };
    Case { tuning: 0, mode: Mode::Plain, ..case.with_len(ONE_TILE, lengths) }
}

/// Returns the case with the next parameters for which one tile needs no memory, if there are any.
fn without_memory(subject: &Subject, case: &Case) -> Option<Case> {
    let with = |more| Case { params: case.params.wrapping_add(more), ..case.clone() };
    (0..64).map(with).find(|case| !(subject.takes_memory)(case))
}

/// Tests that a call of one tile allocates nothing, and that it is captured without a workspace. If a subject says that all its cases take
/// memory, the test checks that the usual one allocates.
pub fn one_tile(subjects: Vec<Subject>) {
    drive("one_tile", subjects, some_cases(), of_one_tile, |_, subject, case| {
        let found = without_memory(subject, case);
        let allocates = found.is_none();
        let case = found.unwrap_or_else(|| case.clone().shaped(0));
        // This is not a GPU, because all tests share its counts.
        let stream = Device::emulator().stream()?;
        let tuning = Tuning::of(stream.device())?;
        let call = |trial: &mut Trial, stream: &Stream| trial.call(Place { stream, workspace: None, tuning });
        let mut trial = subject.begin(from_ref(&case), &stream)?;
        let before = stream.device().counters();
        call(&mut trial, &stream)?;
        let allocations = stream.device().counters().since(before).allocations;
        if allocations > 0 && !allocates {
            return Err(Failure::from(format!("one tile allocates {allocations} times")));
        }
        if allocations == 0 && allocates && case.len > 0 {
            return Err(Failure::from(
                "one tile allocates nothing, and the subject says that it takes memory".to_owned(),
            ));
        }
        trial.verify()?;
        if allocates {
            return Ok(());
        }
        trial.clear()?;
        let graph = stream.capture(|stream| call(&mut trial, stream))?;
        if graph.launches() == 0 && trial.lens().iter().any(|&len| len > 0) {
            return Err(Failure::from("the graph has no launch".to_owned()));
        }
        graph.launch(&stream)?;
        Ok(trial.verify().map_err(|what| format!("the graph: {what}"))?)
    });
}

/// The shared memory of a block by architecture: of sm_75, of sm_86, sm_89 and sm_120, and of sm_90 and sm_100. A kernel that can fault has
/// 16 bytes of it for itself, which the emulator does not need.
const LIMITS: [usize; 3] = [64 << 10, 99 << 10, 227 << 10];
const OWN: usize = 16;

/// Two or three tiles in most sorting algorithms.
const FEW_TILES: usize = 9000;

/// Begins with few tiles in a usual shape, which run checked, and several tiles of the kernels of many items in one of the usual shapes. If
/// more cases are asked for, they run checked, and both shapes follow. The other cases have few tiles.
fn of_some_tiles(n: u64, case: Case, lengths: &Lengths) -> Case {
    let shape = (case.params % 2) as usize;
    let case = match n {
        0 => case.with_len(FEW_TILES, lengths).shaped(0),
        1 => case.with_len(SEVERAL_TILES, lengths).shaped(shape),
        2 | 3 => case.with_len(SEVERAL_TILES, lengths).shaped(n as usize - 2),
        _ => case.with_len(FEW_TILES, lengths),
    };
    Case { tuning: 0, mode: Mode::Plain, ..case }
}

/// Tests calls on devices whose blocks have little shared memory.
pub fn shared_memory(subjects: Vec<Subject>) {
    drive("shared_memory", subjects, (cases() / 20).max(1), of_some_tiles, |_, subject, case| {
        // These use the kernels of many items, although there are few items.
        let mut tuning = Tuning::of_capability(None);
        tuning.set(Parameter::ScanPipeline, None, 2)?;
        tuning.set(Parameter::MergeSearching, None, 0)?;
        for limit in LIMITS {
            let mut options = EmulatorOptions::default();
            options.max_shared_bytes = limit - OWN;
            options.checked = case.len <= FEW_TILES || cases() > CASES;
            let stream = &Device::emulator_with(options).stream()?;
            assert_eq!(stream.device().properties().max_shared_bytes, limit - OWN);
            let mut trial = subject.begin(from_ref(case), stream)?;
            let called = trial.call(Place { stream, workspace: None, tuning: &tuning });
            let checked = called.map_err(|error| error.to_string()).and_then(|()| trial.verify());
            checked.map_err(|what| format!("with {limit} bytes of shared memory: {what}"))?;
        }
        Ok(())
    });
}
