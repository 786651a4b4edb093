//! Tests the examples of the page on debugging.

use kernel_primitives::{Error, Result, Stream};

use super::{emulator, page};

/// A block of code of the page, without the lines that the page hides, and the place of the report below it.
struct Example {
    code: String,
    report: std::ops::Range<usize>,
}

/// Returns the kernels of the page, and the places of their reports.
fn examples(page: &str) -> Vec<Example> {
    let mut examples = Vec::new();
    let mut rest = 0;
    while let Some(at) = page[rest..].find("```\n\n```text\n") {
        let end = rest + at;
        let begin = page[..end].rfind("```\n").unwrap() + "```\n".len();
        let code =
            page[begin..end].lines().filter(|line| !line.starts_with("# ")).map(|line| format!("{line}\n")).collect();
        let report = end + "```\n\n```text\n".len();
        rest = report + page[report..].find("```").unwrap();
        examples.push(Example { code, report: report..rest });
    }
    examples
}

/// Launches a kernel of the page.
fn run_example(kernel: &str, stream: &Stream) -> Result<()> {
    let x = stream.buffer_from(&[1.0f32; 65])?;
    let mut out = stream.buffer_zeroed::<f32>(65)?;
    let mut words = stream.buffer_zeroed::<u32>(64)?;
    match kernel {
        "rotate" => page::rotate::launch(stream, (1, 64), &mut words),
        "block_sums" => {
            page::block_sums::launch(stream, (1, 64), &x, &mut out)?;
            page::block_sums::launch(stream, (2, 64), &stream.buffer_from(&[1.0; 128])?, &mut out)
        }
        "running_sum" => page::running_sum::launch(stream, (10, 1), &x, &mut words, &mut out),
        "smooth" => page::smooth::launch(stream, (1, 64), &x, out.slice_mut(..64)?),
        "accumulate" => page::accumulate::launch(stream, (1, 64), &x, &mut stream.buffer_uninit(65)?),
        "reverse_256" => {
            let (x, mut out) = (stream.buffer_from(&[1.0f32; 256])?, stream.buffer_zeroed::<f32>(256)?);
            page::reverse_256::launch(stream, (1, 64), &x, &mut out)
        }
        "reverse_quads" => {
            let mut quads = stream.buffer_zeroed(16)?;
            page::reverse_quads::launch(stream, (1, 16), x.slice(..64)?, &mut quads)?;
            page::reverse_quads::launch(stream, (1, 16), x.slice(1..)?, &mut quads)
        }
        "differences" => page::differences::launch(stream, (1, 65), &x, &mut out),
        "sums_of_halves" => page::sums_of_halves::launch(stream, (1, 64), &x, &mut out),
        "sum_of_64" => page::sum_of_64::launch(stream, (1, 64), &x, &mut out),
        "largest_of_pairs" => {
            page::largest_of_pairs::launch(stream, (1, 64), &stream.buffer_zeroed(64)?, &mut words)?;
            page::largest_of_pairs::launch(stream, (1, 48), &stream.buffer_zeroed(64)?, words.slice_mut(..48)?)
        }
        "wait_for_all" => page::wait_for_all::launch(stream, (2, 32), &mut words),
        "shares" => {
            let (people, amounts) = (stream.buffer_zeroed::<i32>(64)?, stream.buffer_zeroed::<i32>(64)?);
            page::shares::launch(stream, (1, 64), &amounts, &people, &mut stream.buffer_uninit(64)?)
        }
        other => panic!("the page has a kernel {other} that no test launches"),
    }
}

/// To write the reports into the page, run `UPDATE_DEBUGGING_PAGE=1 cargo test --test suite the_page`.
#[test]
fn the_page_on_debugging_shows_what_is_reported() -> Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/debugging.md");
    let mut text = include_str!("../../../docs/debugging.md").replace('\r', "");
    let source = include_str!("page.rs").replace('\r', "");
    let update = std::env::var_os("UPDATE_DEBUGGING_PAGE").is_some();
    let examples = examples(&text);
    assert_eq!(examples.len(), source.matches("#[kernel]").count());
    // The loop begins at the end, so that the places of the other examples do not change.
    for Example { code, report } in examples.into_iter().rev() {
        let begin = source.find(&code).unwrap_or_else(|| panic!("not in page.rs:\n{code}"));
        let lines_before = source[..begin].lines().count() as u32;
        let kernel = code.split("fn ").nth(1).and_then(|rest| rest.split('(').next()).expect("a function");
        let Err(Error::Fault(fault)) = run_example(kernel, &emulator(None)?) else { panic!("{kernel} has no fault") };
        let mut shown = format!("{fault:?}").trim_start().replace("suite::diagnoses::page::", "my_crate::kernels::");
        // The page counts lines from the kernel's first line.
        let file = fault.file.as_str();
        for line in (1..=source.lines().count() as u32).rev() {
            let here = format!("src/kernels.rs:{}:", line.wrapping_sub(lines_before));
            shown = shown.replace(&format!("{file}:{line}:"), &here);
        }
        if update {
            text.replace_range(report, &shown);
        } else {
            assert_eq!(text[report], shown, "of {kernel}; the test tells how to update the page");
        }
    }
    if update {
        std::fs::write(path, text).expect("the page is written");
    }
    Ok(())
}
