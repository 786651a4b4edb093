//! Tests the files that the builder leaves for people: PTX and SASS with lines of Rust, and the resources.
#![cfg(feature = "cuda")]

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use primitives_build::PtxBuilder;

/// Runs itself as the build script of `examples/template`, because the variables of a build script are those of a process.
#[test]
fn a_dump_has_ptx_and_sass_with_lines_and_the_resources() {
    const FOLDER: &str = "KERNEL_PRIMITIVES_DUMP";
    if env::var_os(FOLDER).is_some() {
        PtxBuilder::new("src/kernels.rs").build().expect("the kernels are built");
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Another run of this test has a folder of its own.
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("dump-{}", std::process::id()));
    let dump = out.join("dump");
    if out.exists() {
        fs::remove_dir_all(&out).expect("nothing is left of an earlier run");
    }
    let output = Command::new(env::current_exe().expect("the path of this program"))
        .arg("--nocapture")
        .env("CARGO_MANIFEST_DIR", root.join("examples/template"))
        .env("CARGO_PKG_NAME", "template")
        .env("DEP_KERNEL_PRIMITIVES_MANIFEST_DIR", root)
        .env("OUT_DIR", &out)
        .env("KERNEL_PRIMITIVES_ARCHS", "90")
        .env("KERNEL_PRIMITIVES_REPORT_ARCHS", "120")
        .env("KERNEL_PRIMITIVES_LINE_INFO", "1")
        .env(FOLDER, &dump)
        .output()
        .expect("this program runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    for variable in [FOLDER, "KERNEL_PRIMITIVES_LINE_INFO", "KERNEL_PRIMITIVES_REPORT_ARCHS"] {
        assert!(said.contains(&format!("cargo::rerun-if-env-changed={variable}\n")), "{said}");
    }

    let source = fs::read_to_string(root.join("examples/template/src/kernels.rs")).expect("the kernels");
    let line = 1 + source.lines().position(|line| line.contains("a * x[i] + y.get(i)")).expect("the kernel's line");
    let read =
        |name: &str| fs::read_to_string(dump.join(name)).unwrap_or_else(|error| panic!("{name}: {error}\n{said}"));

    let ptx = read("template::kernels/axpy.sm_90.ptx");
    let file = ptx.lines().find(|line| line.starts_with(".file") && line.contains("template/src/kernels.rs\""));
    let number = file.and_then(|line| line.split_whitespace().nth(1)).unwrap_or_else(|| panic!("no .file in {ptx}"));
    assert!(ptx.contains(&format!("\t.loc\t{number} {line} ")), "no .loc for line {line} in {ptx}");

    // The product belongs to that line.
    let sass = read("template::kernels/axpy.sm_90.sass");
    let product = sass.find("FMUL").unwrap_or_else(|| panic!("no product in {sass}"));
    let place = sass[..product].lines().rfind(|line| line.contains("//## File")).expect("places in the SASS");
    assert!(place.ends_with(&format!("template/src/kernels.rs\", line {line}")), "{place}");

    let resources = read("template.tsv");
    for kernel in ["axpy", "map_unary__f32_f32_Softsign_4"] {
        for arch in [90, 120] {
            assert!(resources.contains(&format!("\ntemplate::kernels::{kernel}\t{arch}\t90\t")), "{resources}");
        }
        read(&format!("template::kernels/{kernel}.sm_90.sass"));
        assert!(!dump.join(format!("template::kernels/{kernel}.sm_120.sass")).exists(), "for the report alone");
    }
    fs::remove_dir_all(&out).expect("of this run");
}
