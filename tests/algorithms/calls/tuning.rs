//! Tests tuning values: the values of a call and of a file are used, and there are errors. The net tests all candidates.

use std::process::Command;

use kernel_primitives::algorithms::{Parameter, Run, TUNING_VARIABLE, Tuning, merge, reduce};
use kernel_primitives::functor::{Less, Sum};
use kernel_primitives::{Device, Error, Result};

use crate::support::stream;

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
