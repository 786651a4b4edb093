//! Tests the PTX of device functions in modules that are written here, which ptxas must take.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use kernel_primitives::kernels::functions;
use kernel_primitives::{FunctionCode, FunctionImage};
use primitives_build::Toolchain;

use crate::kernels::{ackermann, entry, female, half_of, mixed, prime, quotient, square_f32, square_f64};

fn own() -> Vec<&'static FunctionCode> {
    vec![
        mixed::info().code(),
        half_of::info().code(),
        prime::info().code(),
        quotient::info().code(),
        ackermann::info().code(),
        female::info().code(),
        entry::info().code(),
        square_f32::info().code(),
        square_f64::info().code(),
    ]
}

/// Returns the architectures that are built.
fn archs() -> Vec<u32> {
    let archs: Vec<u32> = functions::all()[0].images().map(|image| image.arch).collect();
    assert!(!archs.is_empty(), "functions were built");
    archs
}

fn image(code: &FunctionCode, arch: u32) -> FunctionImage {
    let image = code.image(arch).unwrap_or_else(|| panic!("{} was built", code.name()));
    assert_eq!(image.arch, arch);
    image
}

/// Writes a module with a kernel that calls each function with values from memory, and stores the results.
fn module(functions: &[&FunctionCode], arch: u32) -> String {
    let images: Vec<FunctionImage> = functions.iter().map(|code| image(code, arch)).collect();
    let version = images.iter().map(|image| image.version).max().expect("a function");
    let mut text = format!(".version {}.{}\n.target sm_{arch}\n.address_size 64\n", version / 10, version % 10);
    let mut taken = HashSet::new();
    for item in images.iter().flat_map(|image| image.items).filter(|item| taken.insert(**item)) {
        text.push_str(item);
    }
    text.push_str(
        ".visible .entry calls(.param .u64 data, .param .u64 control) {\n\
         .reg .b64 %at, %control;\nld.param.u64 %at, [data];\ncvta.to.global.u64 %at, %at;\n",
    );
    if images.iter().any(FunctionImage::can_panic) {
        text.push_str("ld.param.u64 %control, [control];\nst.shared.b64 [kp_control], %control;\n");
    }
    for code in functions {
        text.push_str("{\n.reg .b32 %single;\n.reg .b64 %double;\n");
        let register = |param| if param == ".b32" { "%single" } else { "%double" };
        let (mut arguments, result) = (Vec::new(), code.result().param());
        writeln!(text, ".param {result} result;").unwrap();
        for (i, param) in code.params().iter().map(|ty| ty.param()).enumerate() {
            let register = register(param);
            writeln!(text, "ld.volatile.global{param} {register}, [%at+{}];", 8 * i).unwrap();
            writeln!(text, ".param {param} argument{i};\nst.param{param} [argument{i}], {register};").unwrap();
            arguments.push(format!("argument{i}"));
        }
        let register = register(result);
        writeln!(text, "call (result), {}, ({});", code.symbol(), arguments.join(", ")).unwrap();
        writeln!(text, "ld.param{result} {register}, [result];\nst.volatile.global{result} [%at], {register};\n}}")
            .unwrap();
    }
    text.push_str("ret;\n}\n");
    text
}

/// Returns the report of ptxas.
fn assemble(text: &str, name: &str, arch: u32) -> String {
    static TOOLS: LazyLock<Toolchain> = LazyLock::new(|| Toolchain::find().expect("the tools of the build"));
    let ptxas = TOOLS.ptxas().expect("ptxas");
    // Another run of this test has files of its own. Those of a failure stay.
    let base = format!("{}.functions.{name}.sm_{arch}", std::process::id());
    let base = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(base);
    let (input, cubin) = (base.with_added_extension("ptx"), base.with_added_extension("cubin"));
    std::fs::write(&input, text).unwrap();
    let arch = format!("-arch=sm_{arch}");
    let output =
        Command::new(ptxas).args([&arch, "-v"]).arg(&input).arg("-o").arg(&cubin).output().expect("ptxas runs");
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {messages}", input.display());
    [input, cubin].iter().for_each(|file| std::fs::remove_file(file).unwrap());
    messages
}

/// Returns the names of the functions that a module defines. In a declaration, a semicolon comes before a body.
fn defined(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut head = None;
    for line in text.lines() {
        if let Some((_, name)) = line.split_once(".func ") {
            let name = name.rsplit_once(") ").map_or(name, |(_, name)| name);
            head = name.split('(').next();
        }
        if line.ends_with(';') {
            head = None;
        } else if line == "{" {
            names.extend(head.take());
        }
    }
    names
}

#[test]
fn all_functions_fit_in_one_module() {
    for arch in archs() {
        let all = functions::all().into_iter().chain(own()).collect::<Vec<_>>();
        let text = module(&all, arch);
        let names = defined(&text);
        assert_eq!(names.len(), names.iter().collect::<HashSet<_>>().len(), "{names:?}");
        assert!(all.iter().all(|code| names.contains(&code.symbol())), "{names:?}");
        assemble(&text, "all", arch);
        // In any order, an item that several functions need is there once.
        let reversed = module(&all.into_iter().rev().collect::<Vec<_>>(), arch);
        assemble(&reversed, "reversed", arch);
        assert_eq!(reversed.len(), text.len());
    }
}

#[test]
fn functions_of_f32_need_no_local_memory() {
    let wide = ["sin_f32", "cos_f32", "tan_f32"];
    for arch in archs() {
        for code in functions::all() {
            let name = code.name().rsplit_once("::").unwrap().1;
            if name.ends_with("_f64") || wide.contains(&name) {
                continue;
            }
            let report = assemble(&module(&[code], arch), name, arch);
            assert!(image(code, arch).items.iter().all(|item| !item.contains(".local")), "{name} for sm_{arch}");
            let mut frames = 0;
            for line in report.lines().filter(|line| line.contains("stack")) {
                let frame = line.trim().strip_prefix("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads");
                assert!(frame.is_some(), "{name} for sm_{arch}: {line}");
                frames += 1;
            }
            assert!(frames > 0, "{name} for sm_{arch}: {report}");
        }
    }
}

#[test]
fn only_what_panics_takes_the_control() {
    for arch in archs() {
        for code in functions::all().into_iter().chain(own()) {
            let expected = code.name().ends_with("::quotient");
            assert_eq!(image(code, arch).can_panic(), expected, "{} for sm_{arch}", code.name());
        }
    }
}

#[test]
fn arithmetic_is_not_contracted() {
    for arch in archs() {
        for code in [entry::info().code(), functions::powi_f32::info().code(), functions::uniform_f64::info().code()] {
            let text = image(code, arch).items.concat();
            assert!(!text.contains("fma.") && !text.contains(".approx"), "{} for sm_{arch}:\n{text}", code.name());
        }
    }
}
