//! Supplies the `libcuda` that `cust_raw` asks the linker for: an archive with nothing in it.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("libcuda.a"), "!<arch>\n").expect("the output folder is writable");
    println!("cargo::rustc-link-search=native={}", out.display());
}
