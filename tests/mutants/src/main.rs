//! Mutants of the device code: small intentional mistakes. The tests must see each of them.
//!
//! ```sh
//! cd tests/mutants
//! cargo run -- prepare --density 0.4 --seed 1   # a copy of the repository with mutants, and its tests, built once
//! cargo run -- run                              # a line of results.tsv for each mutant; goes on where it was left
//! cargo run -- show                             # the shares that were caught, and the survivors
//! ```
//!
//! **One build.** A build of each mutant would take longer than its test. So `prepare` rewrites every chosen place of the copy, such as
//! `a < b`, into `(if ::primitives_gpu::mutant(17) { a <= b } else { a < b })`. Here [`mutant`](switch.rs) compares with the number in the
//! environment variable `KERNEL_PRIMITIVES_MUTANT`. If the compiler refuses a place, it is given up. All mutants are in one build, and each
//! run of a test has one of them, or none.
//!
//! **The tests that matter.** First, `run` runs every test by itself without mutants, and notes its time and the places that it reaches.
//! Then a mutant is tested by the tests that reach its place, the quick ones first, until one fails or takes far too long.
//!
//! **Places** are spread over all files of device code: a file with `n` places gets `density` times the root of `n`. `const` items, types,
//! patterns and attributes are left alone. So is code for the GPU only, which the emulator does not run. Bodies of macros count if they
//! read as code.
//!
//! **Results** are in `results.tsv`: one line for each mutant. `equivalent.tsv` has the reasons for survivors that no test can see.

mod build;
mod run;
mod sites;
mod text;

use std::error::Error;
use std::path::PathBuf;

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// The paths of all files.
struct Places {
    /// The repository.
    root: PathBuf,
    /// The copy with mutants.
    copy: PathBuf,
    /// The list of mutants in the copy.
    list: PathBuf,
    /// The tests of the copy: their times and the places that they reach.
    tests: PathBuf,
    results: PathBuf,
    equivalent: PathBuf,
}

impl Places {
    fn find() -> Result<Self> {
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let root = here.ancestors().nth(2).ok_or("the tool lies in tests/mutants of the repository")?.to_owned();
        let scratch = root.join("target/mutants");
        Ok(Self {
            copy: scratch.join("tree"),
            list: scratch.join("mutants.tsv"),
            tests: scratch.join("tests.tsv"),
            results: here.join("results.tsv"),
            equivalent: here.join("equivalent.tsv"),
            root,
        })
    }
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let (mut density, mut seed) = (0.4, 1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or("a value is missing")?;
        match name.as_str() {
            "--density" => density = value.parse()?,
            "--seed" => seed = value.parse()?,
            _ => return Err(format!("`{name}` is no option: there are --density and --seed").into()),
        }
    }
    let places = Places::find()?;
    match command.as_str() {
        "prepare" => build::prepare(&places, density, seed),
        "run" => run::run(&places),
        "show" => run::show(&places),
        _ => Err("usage: mutants prepare [--density 0.4] [--seed 1] | run | show".into()),
    }
}
