//! What an expansion learns from the build it runs in.

use std::collections::HashSet;
use std::env;
use std::fs;
use std::path::Path;

/// Packages that `primitives-build` writes to compile kernel modules for the device have names that start so. Only they
/// get entries: a library's kernels would otherwise appear in the PTX of each of its users.
const ENTRY_PACKAGES: &str = "ptx-entries-";

/// The variable that holds the folder of a crate's compiled kernels.
pub(crate) const PTX_FOLDER: &str = "KERNEL_PRIMITIVES_PTX";

/// The build an expansion runs in.
#[derive(Default)]
pub(crate) struct Environment {
    /// Whether PTX entries are wanted.
    pub(crate) entries: bool,
    /// The entries and device functions of this crate that were compiled to PTX, by the last component of their names.
    pub(crate) images: HashSet<String>,
}

impl Environment {
    /// The environment of the running compiler.
    pub(crate) fn read() -> Self {
        let entries = env::var("CARGO_PKG_NAME").is_ok_and(|name| name.starts_with(ENTRY_PACKAGES));
        Self { entries, images: images().unwrap_or_default() }
    }
}

fn images() -> Option<HashSet<String>> {
    let folder = env::var_os(PTX_FOLDER)?;
    let crate_name = env::var("CARGO_CRATE_NAME").ok()?;
    // A documentation test is a crate of its own, compiled with the variables of the crate that it documents.
    if !compiles(&crate_name, env::args()) {
        return None;
    }
    let index = |name| fs::read_to_string(Path::new(&folder).join(name)).unwrap_or_default();
    Some(names_in(&(index("index.txt") + &index("functions.txt")), &crate_name))
}

/// False if the compiler's arguments show that it compiles another crate: by its name, or by a source without a name, as
/// documentation tests are compiled. Cargo names what it compiles, if need be in a file of arguments, which shows nothing.
fn compiles(crate_name: &str, arguments: impl Iterator<Item = String>) -> bool {
    let mut arguments = arguments.skip(1);
    let mut source = false;
    while let Some(argument) = arguments.next() {
        if argument == "--crate-name" {
            return arguments.next().is_none_or(|name| name == crate_name);
        }
        if let Some(name) = argument.strip_prefix("--crate-name=") {
            return name == crate_name;
        }
        source |= argument == "-" || argument.ends_with(".rs");
    }
    !source
}

/// The last components of the index's lines, `crate::module::name`, that start with `crate_name`.
fn names_in(index: &str, crate_name: &str) -> HashSet<String> {
    let names = index.lines().filter_map(|line| {
        let (first, rest) = line.trim().split_once("::")?;
        (first == crate_name).then(|| rest.rsplit("::").next().unwrap_or(rest).to_owned())
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_gives_the_kernels_of_one_crate() {
        let index = "user::kernels::saxpy\nuser::reduce__f32_Add_4\nother::kernels::scan\n\nuser::a::b::c\n";
        let names = names_in(index, "user");
        assert_eq!(names, ["saxpy", "reduce__f32_Add_4", "c"].map(String::from).into());
    }

    #[test]
    fn another_crate_is_known_by_the_compilers_arguments() {
        let arguments = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>().into_iter();
        assert!(compiles("user", arguments("rustc --crate-name user --edition=2024 src/lib.rs")));
        assert!(compiles("user", arguments("clippy-driver rustc --edition=2024 src/lib.rs --crate-name=user")));
        assert!(compiles("user", arguments("rustc @arguments")));
        assert!(!compiles("user", arguments("rustc --crate-name other src/lib.rs")));
        assert!(!compiles("user", arguments("rustc @cfgs --edition 2024 --crate-type=bin -o rust_out -")));
        assert!(!compiles("user", arguments("rustc @cfgs --crate-type=lib doctest_bundle_2024.rs")));
    }
}
