//! Tests tuning values: each candidate gives the results of the table's values, the values of a call and of a file are used, and there are
//! errors.

use std::process::Command;

use kernel_primitives::algorithms::{
    Parameter, Run, TUNING_VARIABLE, Tuning, adjacent_difference, histogram_even, inclusive_scan, lower_bound, merge,
    partition, reduce, scatter, segmented_inclusive_scan, sort_by, sort_keys, top_k, transform, unique,
};
use kernel_primitives::functor::{Greater, Less, LessThan, Square, Sub, Sum, bind_second};
use kernel_primitives::prelude::*;
use kernel_primitives::{Device, EmulatorOptions, Error, Result, Stream};

use crate::support::{stream, values};

/// Returns the results of each tuned algorithm for numbers. Algorithms that differ only by their parameter come one after the other.
fn results(stream: &Stream, len: usize, tuning: &Tuning) -> Result<Vec<Vec<u32>>> {
    let run = || Run::on(stream).tuned(tuning);
    let numbers: Vec<u32> = values::<u32>(len, 9).into_iter().map(|x| x % 1000).collect();
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    let (x, sorted) = (stream.buffer_from(&numbers)?, stream.buffer_from(&sorted)?);
    let bytes: Vec<u8> = numbers.iter().map(|&x| x as u8).collect();
    let new = || stream.buffer_from(&vec![7u32; len]);
    let (mut out, mut results, mut count) = (new()?, Vec::new(), stream.buffer_zeroed::<u64>(1)?);

    let mut squares = stream.buffer_zeroed::<u8>(len)?;
    transform(run(), &stream.buffer_from(&bytes)?, Square, &mut squares)?;
    results.push(squares.to_vec()?.into_iter().map(u32::from).collect());
    adjacent_difference(run(), &x, Sub, &mut out)?;
    results.push(out.to_vec()?);
    let places: Vec<u32> = (0..len as u32).rev().collect();
    scatter(run(), &x, &stream.buffer_from(&places)?, &mut out)?;
    results.push(out.to_vec()?);
    let mut bounds = stream.buffer_zeroed::<u64>(len)?;
    lower_bound(run(), &sorted, &x, &mut bounds)?;
    results.push(bounds.to_vec()?.into_iter().map(|bound| bound as u32).collect());
    let mut sum = stream.buffer_zeroed::<u32>(1)?;
    reduce(run(), &x, Sum, &mut sum)?;
    results.push(sum.to_vec()?);
    inclusive_scan(run(), &x, Add, &mut out)?;
    results.push(out.to_vec()?);
    let ends: Vec<u32> = (0..=len as u32).step_by(50).collect();
    segmented_inclusive_scan(run(), &x, &stream.buffer_from(&ends)?, Add, &mut out)?;
    results.push(out.to_vec()?);
    // This begins inside a vector.
    inclusive_scan(run(), x.slice(1..)?, Add, &mut out.slice_mut(1..)?)?;
    results.push(out.to_vec()?);
    partition(run(), &x, bind_second(LessThan, 500), &mut out, &mut count)?;
    results.push(out.to_vec()?);
    unique(run(), &sorted, &mut out, &mut count)?;
    results.push(out.to_vec()?);
    let mut counts = stream.buffer_zeroed::<u32>(100)?;
    histogram_even(run(), &x, 0, 1000, &mut counts)?;
    results.push(counts.to_vec()?);
    sort_keys(run(), &x, &mut out, Less)?;
    results.push(out.to_vec()?);
    sort_by(run(), &x, Less, &mut out)?;
    results.push(out.to_vec()?);
    let (low, high) = (sorted.slice(..len / 3)?, sorted.slice(len / 3..)?);
    merge(run(), low, high, Less, &mut out)?;
    results.push(out.to_vec()?);
    let floats: Vec<f32> = numbers.iter().map(|&x| x as f32).collect();
    let mut largest = stream.buffer_zeroed::<f32>(10)?;
    top_k(run(), &stream.buffer_from(&floats)?, 10, Greater, &mut largest)?;
    results.push(largest.to_vec()?.into_iter().map(|x| x as u32).collect());
    Ok(results)
}

/// A length for which all candidates differ. It has more than the eight rounds that a block of a reduction may do alone, and more than 65
/// 536 items, the least that the tiles of a block of `top_k` may have.
const LONG: usize = 70_001;

/// Returns a stream, and a stream for [`LONG`] inputs. The second is of an unchecked emulator with several blocks at once, except on a GPU,
/// because the values of some parameters are for each multiprocessor. Checked emulators have one block at once.
fn streams() -> Result<[Stream; 2]> {
    let mut options = EmulatorOptions::default();
    (options.checked, options.threads, options.seed) = (false, 3, Some(1));
    let stream = stream()?;
    let long = if stream.device().is_gpu() { stream.clone() } else { Device::emulator_with(options).stream()? };
    Ok([stream, long])
}

#[test]
fn each_candidate_gives_the_same() -> Result<()> {
    let [stream, long] = streams()?;
    let table = Tuning::of_capability(stream.device().compute_capability());
    for (stream, len) in [(&stream, 1000), (&long, LONG)] {
        let expected = results(stream, len, &table)?;
        assert_eq!(expected[4], [values::<u32>(len, 9).into_iter().map(|x| x % 1000).sum()]);
        let most = Parameter::ALL.iter().map(|parameter| parameter.candidates().len()).max().unwrap_or(0);
        for candidate in 0..most {
            // All parameters are set at once, because each algorithm reads only its own.
            let mut tuning = table.clone();
            for &parameter in Parameter::ALL {
                let candidates = parameter.candidates();
                tuning.set(parameter, None, candidates[candidate.min(candidates.len() - 1)])?;
            }
            assert!(results(stream, len, &tuning)? == expected, "{len} items, with\n{tuning}");
        }
    }
    Ok(())
}

/// A file may have any accepted value. The test takes the least and the greatest values of all parameters. It also checks several tiles.
#[test]
fn the_ends_of_what_is_accepted_give_the_same() -> Result<()> {
    let [stream, long] = streams()?;
    let table = Tuning::of_capability(stream.device().compute_capability());
    for (stream, len) in [(&stream, 11), (&stream, 20_001), (&long, LONG)] {
        let expected = results(stream, len, &table)?;
        let ends: [&[u32]; 2] = [&[0, 1, 2, 32], &[u32::MAX, 1 << 31, 1 << 20, 65_535, 1024, 64, 32]];
        for values in ends {
            let mut tuning = table.clone();
            for &parameter in Parameter::ALL {
                let is_accepted = values.iter().any(|&value| tuning.set(parameter, None, value).is_ok());
                assert!(is_accepted, "{}", parameter.name());
            }
            assert!(results(stream, len, &tuning)? == expected, "{len} items, with\n{tuning}");
        }
    }
    Ok(())
}

#[test]
fn the_values_of_a_call_count() -> Result<()> {
    // This is not a GPU, because all tests share its counts.
    let device = &Device::emulator();
    let stream = device.stream()?;
    let x = stream.buffer_from(&(0..10_000).collect::<Vec<u32>>())?;
    let mut out = stream.buffer_zeroed::<u32>(20_000)?;
    for (searching, launches) in [(0, 2), (1024, 1)] {
        let mut tuning = Tuning::of(device)?.clone();
        tuning.set(Parameter::MergeSearching, Some(4), searching)?;
        let before = device.counters();
        merge(Run::on(&stream).tuned(&tuning), &x, &x, Less, &mut out)?;
        assert_eq!(device.counters().since(before).launches, launches);
        assert!(out.to_vec()?.into_iter().eq((0..20_000).map(|i| i / 2)));
    }
    Ok(())
}

#[test]
fn the_table_and_what_differs_from_it_are_printed() -> Result<()> {
    let table = Tuning::table().to_string();
    for &parameter in Parameter::ALL {
        let line = table.lines().find(|line| line.starts_with(&format!("{} ", parameter.name())));
        let line = line.unwrap_or_else(|| panic!("no {}", parameter.name()));
        assert!(line.ends_with(parameter.about()), "{line}");
        let value = Tuning::of_capability(None).get(parameter, 4).to_string();
        assert!(line.split_whitespace().any(|word| word == value), "{line}");
    }
    let mut tuning = Tuning::of_capability(None);
    tuning.set(Parameter::SearchThreads, Some(8), 96)?;
    let text = tuning.to_string();
    let own: Vec<&str> = text.lines().filter(|line| line.contains("here")).collect();
    assert_eq!(own.len(), 1);
    assert_eq!(own[0].split_whitespace().collect::<Vec<_>>(), ["here", ".", ".", ".", "96", "."]);
    Ok(())
}

#[test]
fn a_value_that_no_kernel_accepts_is_an_error() {
    let mut tuning = Tuning::of_capability(None);
    for (parameter, value, what) in [
        (Parameter::TransformThreads, 0, "transform.threads = 0: it is a multiple of 32 up to 1024"),
        (Parameter::ScatterThreads, 2048, "scatter.threads = 2048: it is a multiple of 32"),
        (Parameter::HistogramCopies, 33, "histogram.copies = 33: it is a number from 1 to 32"),
        (Parameter::TopKTiles, 1, "top_k.tiles = 1: it is a number from 2"),
    ] {
        let error = tuning.set(parameter, None, value).unwrap_err();
        assert!(matches!(error, Error::Tuning { .. }) && error.to_string().contains(what), "{error}");
    }
    assert_eq!(tuning, Tuning::of_capability(None));
}

/// Runs in a process with another environment: see [`the_values_of_a_file_count`].
#[test]
fn prints_what_counts() {
    if std::env::var_os("TUNING_CHILD").is_none() {
        return;
    }
    let stream = stream().expect("a device");
    let mut out = stream.buffer_zeroed::<u32>(1).expect("memory");
    match reduce(&stream, &stream.buffer_from(&[1u32, 2]).expect("memory"), Sum, &mut out) {
        Ok(()) => {
            let tuning = Tuning::of(stream.device()).expect("the algorithm had them");
            println!("value {}", tuning.get(Parameter::SelectBlocks, 4));
        }
        Err(error) => println!("error {error}"),
    }
}

#[test]
fn the_values_of_a_file_count() {
    let path = std::env::temp_dir().join(format!("kernel-primitives-tuning-{}.txt", std::process::id()));
    let printed = |text: Option<&str>| {
        match text {
            Some(text) => std::fs::write(&path, text).expect("a file for a while"),
            None => std::fs::remove_file(&path).expect("it was there"),
        }
        let program = std::env::current_exe().expect("this one");
        let output = Command::new(program)
            .args(["--exact", "calls::tuning::prints_what_counts", "--nocapture"])
            .env("TUNING_CHILD", "1")
            .env(TUNING_VARIABLE, &path)
            .output()
            .expect("it starts again");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let text = printed(Some("all select.blocks = 5"));
    assert!(text.contains("value 5"), "{text}");
    let text = printed(Some("all select.blocks = 5\nall select.blocks.4 = lots"));
    assert!(text.contains("line 2, `all select.blocks.4 = lots`: `lots` is no value: it is a number from 1"), "{text}");
    let text = printed(None);
    assert!(text.contains("error") && text.contains(TUNING_VARIABLE) && text.contains("a file of tuning"), "{text}");
    // There is no file at all.
    assert!(Tuning::of(&Device::emulator()).is_ok());
}
