//! Lists the lines that differ between a GPU and the host, or between two architectures. For each, it says why no test of the emulator
//! misses something that only a GPU runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Types, imports and constructors of one side, such as the host's description of a kernel.
const ONE_SIDE: &str = "of one side alone";
/// An instruction, a register or a function of libdevice, and its replacement on the emulator. The tests that run on both compare the
/// results.
const INSTRUCTION: &str = "an instruction and its emulation";
/// Shows the emulator an access, or lets it check a promise of a GPU's kernel.
const SHOWN: &str = "shown to the emulator";
/// Keeps LLVM or ptxas from a transformation, or spares the host's compiler one. No value changes.
const COMPILER: &str = "for the compiler";
/// A choice by architecture. The emulator takes the place of each architecture; see `EmulatorOptions::arch`.
const ARCHITECTURE: &str = "by architecture, in the emulator too";

/// The number of lines of each file that choose, by reason.
const CHOICES: &[(&str, &[(usize, &str)])] = &[
    ("primitives-gpu/src/block/sorts/merge_sort.rs", &[(1, COMPILER)]),
    ("primitives-gpu/src/block/sorts/radix_rank.rs", &[(1, ARCHITECTURE)]),
    ("primitives-gpu/src/block/sorts/radix_sort.rs", &[(2, COMPILER)]),
    ("primitives-gpu/src/element/arithmetic.rs", &[(3, ONE_SIDE), (6, INSTRUCTION)]),
    ("primitives-gpu/src/element/float.rs", &[(1, ONE_SIDE), (6, INSTRUCTION)]),
    ("primitives-gpu/src/element/halves.rs", &[(1, ONE_SIDE), (10, INSTRUCTION)]),
    ("primitives-gpu/src/element/mod.rs", &[(2, INSTRUCTION)]),
    ("primitives-gpu/src/element/ordered.rs", &[(2, ONE_SIDE), (9, INSTRUCTION)]),
    ("primitives-gpu/src/functor/logic.rs", &[(1, COMPILER)]),
    ("primitives-gpu/src/input/segments.rs", &[(1, ONE_SIDE)]),
    ("primitives-gpu/src/input/span.rs", &[(2, ONE_SIDE)]),
    ("primitives-gpu/src/lib.rs", &[(2, ONE_SIDE)]),
    ("primitives-gpu/src/output.rs", &[(2, ONE_SIDE)]),
    ("primitives-gpu/src/simt/atomic.rs", &[(8, ONE_SIDE), (8, INSTRUCTION)]),
    ("primitives-gpu/src/simt/division.rs", &[(2, ONE_SIDE), (2, INSTRUCTION)]),
    ("primitives-gpu/src/simt/math.rs", &[(9, ONE_SIDE), (4, INSTRUCTION)]),
    ("primitives-gpu/src/simt/mod.rs", &[(14, ONE_SIDE), (4, ARCHITECTURE), (2, SHOWN), (35, INSTRUCTION)]),
    ("primitives-gpu/src/simt/print.rs", &[(1, ONE_SIDE), (3, INSTRUCTION)]),
    ("primitives-gpu/src/simt/warp_ops.rs", &[(3, ONE_SIDE), (2, ARCHITECTURE), (16, INSTRUCTION), (2, COMPILER)]),
    ("primitives-gpu/src/view/elements.rs", &[(1, ONE_SIDE), (2, INSTRUCTION), (11, SHOWN), (2, COMPILER)]),
    ("primitives-gpu/src/view/raw.rs", &[(3, ONE_SIDE), (3, SHOWN), (9, INSTRUCTION), (1, COMPILER)]),
    ("primitives-gpu/src/view/shared.rs", &[(2, ONE_SIDE), (1, SHOWN), (2, INSTRUCTION)]),
    ("primitives-gpu/src/view/shared/array.rs", &[(4, ONE_SIDE), (9, SHOWN), (9, ARCHITECTURE), (2, INSTRUCTION)]),
    ("primitives-gpu/src/view/shared/elements.rs", &[(1, ONE_SIDE), (6, INSTRUCTION)]),
    ("primitives-gpu/src/view/split_barrier.rs", &[(2, ONE_SIDE), (1, ARCHITECTURE), (7, INSTRUCTION)]),
    ("primitives-gpu/src/warp/network.rs", &[(2, COMPILER)]),
    ("primitives-macros/src/function.rs", &[(2, ONE_SIDE)]),
    ("primitives-macros/src/group.rs", &[(1, ONE_SIDE)]),
    ("primitives-macros/src/instance.rs", &[(1, ONE_SIDE)]),
    ("primitives-macros/src/instantiate.rs", &[(1, ONE_SIDE)]),
    ("primitives-macros/src/kernel.rs", &[(1, ONE_SIDE)]),
    ("primitives-macros/src/kernel/launch.rs", &[(3, ONE_SIDE)]),
    ("primitives-macros/src/kernel/members.rs", &[(3, ONE_SIDE)]),
    ("primitives-macros/src/kernel/tests.rs", &[(1, ONE_SIDE)]),
    ("primitives-macros/src/shipped.rs", &[(3, ONE_SIDE)]),
    ("src/algorithms/fourier/block.rs", &[(3, COMPILER)]),
    ("src/algorithms/fourier/mod.rs", &[(12, ONE_SIDE)]),
    ("src/algorithms/mod.rs", &[(6, ONE_SIDE)]),
    ("src/algorithms/sort/kernel/placed.rs", &[(1, COMPILER)]),
    ("src/algorithms/sparse/mod.rs", &[(16, ONE_SIDE)]),
    ("src/algorithms/tile/mod.rs", &[(1, ARCHITECTURE)]),
    ("src/kernels/columns.rs", &[(1, ONE_SIDE)]),
    ("src/kernels/functions.rs", &[(1, ONE_SIDE)]),
    ("src/kernels/mod.rs", &[(2, ONE_SIDE)]),
    ("src/lib.rs", &[(9, ONE_SIDE)]),
];

/// The marks of a line that chooses.
const MARKS: [&str; 3] = ["target_arch", "nvptx::arch()", ".arch()"];

#[test]
fn every_choice_by_target_has_its_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeMap::new();
    for folder in ["src", "primitives-gpu/src", "primitives-macros/src"] {
        count(root, &root.join(folder), &mut found);
    }
    for (file, reasons) in CHOICES {
        let listed: usize = reasons.iter().map(|(lines, _)| lines).sum();
        let lines = found.remove(*file).unwrap_or_default();
        assert_eq!(
            lines.len(),
            listed,
            "{file} chooses by target in these lines; say here why, and prefer a choice that the emulator makes both ways:\n{}",
            lines.join("\n")
        );
    }
    assert!(found.is_empty(), "not in the list: {found:#?}");
}

/// Finds the lines that choose, in the files below a folder.
fn count(root: &Path, folder: &Path, found: &mut BTreeMap<String, Vec<String>>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            count(root, &path, found);
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source");
        let chooses =
            |line: &&str| MARKS.iter().any(|mark| line.contains(mark)) && !line.trim_start().starts_with("//");
        // An algorithm's call is code of the host, and is beside its kernels.
        let calls = text.lines().skip(1).map(|line| line.trim() == "pub(crate) mod call;").chain([false]);
        let lines = text.lines().zip(calls).enumerate().filter(|(_, (line, is_call))| chooses(line) && !is_call);
        let lines: Vec<_> = lines.map(|(i, (line, _))| format!("{}: {}", i + 1, line.trim())).collect();
        if !lines.is_empty() {
            let file = path.strip_prefix(root).expect("below the root").to_string_lossy().replace('\\', "/");
            found.insert(file, lines);
        }
    }
}
