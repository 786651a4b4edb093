//! Tests the shipped kernels after compilation: the width of accesses, no spills, no local memory, and the intended instructions.
#![cfg(feature = "cuda")]

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use primitives_build::Usage;

/// The builder's output folder.
const PTX: &str = env!("KERNEL_PRIMITIVES_PTX");

/// The architectures that releases have PTX for. `scripts/release.sh` asserts on all of them.
const RELEASED: [u32; 4] = [75, 80, 90, 100];

/// The architectures that kernels must start on. `scripts/release.sh` has the architectures without PTX of their own in
/// `KERNEL_PRIMITIVES_REPORT_ARCHS`, so that kernels are assembled for them, too.
const SUPPORTED: [u32; 8] = [75, 80, 86, 87, 89, 90, 100, 120];

/// The architectures that are built: those of `KERNEL_PRIMITIVES_ARCHS`, or all architectures of releases.
static ARCHS: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let (module, kernel) = &shipped()[0];
    let is_built = |arch: &u32| Path::new(PTX).join(module).join(format!("{kernel}.sm_{arch}.ptx")).exists();
    let archs: Vec<u32> = SUPPORTED.into_iter().filter(is_built).collect();
    assert!(!archs.is_empty(), "no PTX of {module}::{kernel}");
    archs
});

/// Returns the kernels of the library, as `(module, kernel)`.
fn shipped() -> Vec<(String, String)> {
    kernels_of("kernel_primitives::")
}

/// Returns the kernels under a module, as `(module, kernel)`.
fn kernels_of(parent: &str) -> Vec<(String, String)> {
    let index = fs::read_to_string(Path::new(PTX).join("index.txt")).expect("the builder wrote an index");
    let kernels: Vec<_> = index
        .lines()
        .filter(|path| path.starts_with(parent))
        .filter_map(|path| path.rsplit_once("::"))
        .map(|(module, kernel)| (module.to_owned(), kernel.to_owned()))
        .collect();
    assert!(!kernels.is_empty(), "no kernels of {parent} in the index");
    kernels
}

/// Returns a kernel's text. It must be for the architecture, and have an entry that ends. A text without instructions would have no
/// forbidden instructions.
fn ptx(module: &str, kernel: &str, arch: u32) -> String {
    let file = Path::new(PTX).join(module).join(format!("{kernel}.sm_{arch}.ptx"));
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let target = format!(".target sm_{arch}");
    let is_whole =
        text.contains(&target) && text.contains(".entry ") && count(&text, "ret;") + count(&text, "exit;") > 0;
    assert!(is_whole, "{}: no kernel for sm_{arch}", file.display());
    text
}

/// Returns how often an instruction with this beginning occurs.
fn count(text: &str, instruction: &str) -> usize {
    text.lines().filter(|line| line.trim_start().starts_with(instruction)).count()
}

/// Returns the beginnings of names of kernels that are exempt. The oldest architecture has half the threads, and there ptxas gives them
/// half the registers. On the next one, rows of halves keep a place in local memory. Other kernels do so if PTX of an older architecture is
/// assembled for them. Many items of one or two bytes, each with a place or a wide total beside it, take more registers than there are.
/// Keys of eight bytes take too many in merges of segments by ranks, and so do such values in reductions by key. Lines of many numbers have
/// 64 registers, and columns 80. The oldest architecture keeps two more words, before its loop and after it.
fn exemptions(sm: u32) -> Vec<String> {
    let names = SPILLING.iter().filter(|(archs, _)| archs.contains(&sm)).flat_map(|(_, names)| *names);
    names.map(|&name| name.to_owned()).chain(exemptions_of_sizes()).collect()
}

/// The architectures, and the kernels that spill on these and not on all.
const SPILLING: &[(&[u32], &[&str])] = &[
    (
        &[75],
        &[
            "layer_norm_rows__",
            "reduce_higher_dim__f32_FirstPass_MaxOf_",
            "reduce_higher_dim__f32_FirstPass_MinOf_",
            "reduce_higher_dim__f32_LastPass_MaxOf_",
            "reduce_higher_dim__f32_LastPass_MinOf_",
            "reduce_higher_dim__f32_MaxOf_",
            "reduce_higher_dim__f32_MinOf_",
        ],
    ),
    (&[75, 80, 86, 87, 89], &["reduce_by_key_tiles__Span_u32_Span_i64_", "reduce_by_key_tiles__Span_u32_Span_u64_"]),
    (&[75, 80], &["reduce_higher_dim__f32_FirstPass_L2_", "reduce_higher_dim__f32_L2_"]),
    (&[75, 86, 87, 89, 90], &["scan_pipeline__Span_i8_M"]),
    (&[80], &["layer_norm_rows__f16_8_8"]),
    (&[80, 120], &["layer_norm_rows__bf16_8_8"]),
    (&[86, 87, 89], &["scan_pipeline__Span_f64_", "scan_pipeline__Span_i64_", "scan_pipeline__Span_u64_"]),
    (&[90], &["scan_pipeline__Span_u8_M"]),
    (
        &[120],
        &[
            "csr_tiles__f32_Span_f32_u32_PlusTimes_Axpby_f32",
            "reduce_by_key_tiles__Span_u64_Span_f64_",
            "reduce_higher_dim__",
            "reduce_tiles__Span_i16_M",
            "reduce_tiles__Span_u16_M",
            "scan_pipeline__Span_u16_Add_",
            "scan_pipeline__Span_u8_Add_",
            "segment_merge_ranks__i64_",
            "segment_merge_ranks__u64_",
            "segment_merge_tiles__",
            "segment_merge_tiles_pairs__u32_u32_",
            "sort_sweep_pairs__",
        ],
    ),
];

/// Returns the exemptions that hold on all architectures.
fn exemptions_of_sizes() -> Vec<String> {
    [
        ("reduce_tiles__Span_", &["i8_", "u8_", "i16_Arg", "u16_Arg", "f16_Arg", "bf16_Arg"][..]),
        ("segment_tiles__Span_", &["i8_", "u8_"]),
        ("reduce_by_key_tiles__Span_u32_Span_", &["f64_M"]),
        ("segment_merge_ranks", &["__f64_", "_pairs__f64_"]),
        ("scan_tiles__Span_", &["i8_M", "u8_M"]),
        (
            "fft_lines__f32_Span_",
            &["Complex_f32_RealPart_SpanMut_f32_true", "Complex_f32_Identity_SpanMut_Complex_f32_true"],
        ),
        ("fft_lines__f32_Span_", &["f32_Identity_SpanMut_Complex_f32_true"]),
        ("fft_lines_in_place__", &["f32_true"]),
    ]
    .into_iter()
    .flat_map(|(name, items)| items.iter().map(move |item| format!("{name}{item}")))
    .collect()
}

/// Returns the report of ptxas, by kernel and architecture: the columns of a row by name.
fn report() -> HashMap<(String, u32), HashMap<String, String>> {
    let report = fs::read_to_string(Path::new(PTX).join("report.tsv")).expect("ptxas was there and reported");
    let mut lines = report.lines().map(|line| line.split('\t').map(str::to_owned).collect::<Vec<_>>());
    let head = lines.next().expect("the report has a head");
    lines
        .map(|row| {
            assert_eq!(row.len(), head.len(), "{row:?}");
            let row: HashMap<String, String> = head.iter().cloned().zip(row).collect();
            ((row["kernel"].clone(), row["arch"].parse().expect("a number")), row)
        })
        .collect()
}

/// Shared memory, threads and registers of a block are within the limits of each architecture. The test does not cover memory that a launch
/// requests in addition to the kernel's `Shared` parameters.
///
/// If an architecture runs the PTX of an older one, the figures of the older one are used, unless the report has its own. Memory and
/// threads are the same, and ptxas limits the registers of a kernel to those of its largest block on any architecture.
#[test]
fn blocks_of_every_kernel_can_start_on_every_architecture() {
    let report = report();
    let mut misfits = Vec::new();
    for (module, name) in shipped() {
        for sm in SUPPORTED.into_iter().filter(|&sm| sm >= ARCHS[0]) {
            let path = format!("{module}::{name}");
            let built = ARCHS.iter().rev().copied().find(|&arch| arch <= sm).expect("an older one");
            let row = [sm, built].into_iter().find_map(|sm| report.get(&(path.clone(), sm)));
            let row = row.unwrap_or_else(|| panic!("{path} was not assembled for sm_{built}"));
            let number = |column: &str| row[column].parse::<u32>().expect("a number");
            let mut usage = Usage::default();
            usage.arch = sm;
            (usage.threads, usage.registers) = (number("threads"), number("registers"));
            (usage.shared, usage.dynamic) = (number("shared"), number("dynamic"));
            if let Some(misfit) = usage.misfit() {
                misfits.push(format!("{path} on sm_{sm}: {misfit}"));
            }
            // Blocks may have any size.
            if usage.threads == 0 && usage.registers > 65536 / 1024 {
                misfits.push(format!("{path} on sm_{sm}: {} registers a thread", usage.registers));
            }
        }
    }
    assert!(misfits.is_empty(), "{} misfits\n{}", misfits.len(), misfits.join("\n"));
}

#[test]
fn every_kernel_is_assembled_without_spills_and_local_memory() {
    let report = report();
    for kernel in shipped().iter().chain(&kernels_of("quickstart::")) {
        for &sm in ARCHS.iter() {
            let path = format!("{}::{}", kernel.0, kernel.1);
            assert!(report.contains_key(&(path.clone(), sm)), "{path} was not assembled for sm_{sm}");
        }
    }
    let (mut spilled, mut needed) = (Vec::new(), HashSet::new());
    for ((path, sm), row) in &report {
        let of_those = ["kernel_primitives::", "quickstart::"].iter().any(|library| path.starts_with(library));
        let name = path.rsplit("::").next().expect("a name");
        let found: Vec<_> =
            ["stack", "spill_stores", "spill_loads"].into_iter().filter(|&what| row[what] != "0").collect();
        if !of_those || found.is_empty() {
            continue;
        }
        match exemptions(*sm).into_iter().find(|exempt| name.starts_with(exempt)) {
            Some(exempt) => _ = needed.insert(exempt),
            None => spilled.extend(found.iter().map(|what| format!("{path} for sm_{sm}: {what} {}", row[*what]))),
        }
    }
    spilled.sort();
    assert!(spilled.is_empty(), "{} times local memory\n{}", spilled.len(), spilled.join("\n"));
    // Some exemptions are needed on one architecture only.
    if *ARCHS != RELEASED {
        return;
    }
    let unneeded: Vec<_> =
        ARCHS.iter().copied().flat_map(exemptions).filter(|exempt| !needed.contains(exempt)).collect();
    assert!(unneeded.is_empty(), "exempt and without local memory: {unneeded:?}");
}

#[test]
fn tiles_are_read_and_written_by_16_byte_accesses() {
    for (module, kernel) in shipped() {
        let loads = match kernel.split("__").next() {
            Some("map_unary") => 1,
            Some("map_binary") => 2,
            Some("map_ternary") => 3,
            // This kernel has three inputs.
            Some("map_any") => 3,
            Some("block_reduce") => 1,
            // Rows may start anywhere, and have wide and narrow accesses side by side. Repeated and other rows do, too.
            Some("sort_rows" | "top_k_rows" | "softmax_rows" | "layer_norm_rows" | "cumsum_rows") => continue,
            Some("reduce_rows" | "reduce_higher_dim" | "broadcast_binary") => continue,
            // See the next test but one.
            _ if module.contains("::device::") || module.contains("::algorithms::") => continue,
            _ => panic!("say how many vector loads {kernel} has"),
        };
        let stores = usize::from(kernel.starts_with("map_"));
        for &arch in ARCHS.iter() {
            let text = ptx(&module, &kernel, arch);
            let wide = |access: &str| {
                count(&text, &format!("{access}.global.v4.b32")) + count(&text, &format!("{access}.global.v2.b64"))
            };
            assert_eq!(wide("ld"), loads, "{kernel} for sm_{arch}: 16-byte loads");
            assert_eq!(wide("st"), stores, "{kernel} for sm_{arch}: 16-byte stores");
        }
    }
}

/// These rows start on the boundary of an access: the items of a batch, or of a tile's rounds.
#[test]
fn aligned_rows_are_read_by_16_byte_accesses() {
    for (module, kernel, loads, stores) in [
        ("scan", "cumsum_rows__f32_4_8_false", 8, 8),
        ("scan", "cumsum_rows__f16_8_4_true", 4, 4),
        ("reduce", "reduce_rows__f32_Sum_4", 4, 0),
        ("columns", "reduce_higher_dim__f32_FirstPass_Sum_4", 8, 1),
    ] {
        for &arch in ARCHS.iter() {
            let text = ptx(&format!("kernel_primitives::kernels::{module}"), kernel, arch);
            let wide = |access| ["v4.b32", "v2.b64"].map(|width| count(&text, &format!("{access}.global.{width}")));
            let found = ["ld", "st"].map(|access| wide(access).iter().sum::<usize>());
            // There are also the accesses of items that are read one round at a time.
            assert!(found[0] >= loads && found[1] >= stores, "{kernel} for sm_{arch}: {found:?}");
        }
    }
}

/// Returns the kernels of algorithms that have instructions for 16 bytes at a time, as the comments beside them say. For each, there are
/// its name, its loads and stores, and whether copies go from global to shared memory without a register in between, if the architecture
/// has this instruction.
fn accesses() -> Vec<(String, [usize; 2], bool)> {
    fn sources(folder: &Path) -> Vec<String> {
        let paths = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
        let sources = paths.flat_map(|path| match path.is_dir() {
            true => sources(&path),
            false => vec![fs::read_to_string(&path).expect("a source")],
        });
        sources.collect()
    }
    let comments = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/algorithms"));
    let comments = comments.iter().flat_map(|source| source.lines()).filter_map(|line| line.strip_prefix("// PTX: "));
    let read = |comment: &str| {
        let words: Vec<&str> = comment.split(' ').collect();
        let &[kernel, "has", loads, "loads", "and", stores, "stores", "of", "16", ref bytes @ ..] = &words[..] else {
            return None;
        };
        let is_staged = match bytes {
            ["bytes."] => false,
            ["bytes,", "staged."] => true,
            _ => return None,
        };
        Some((kernel.to_owned(), [loads.parse().ok()?, stores.parse().ok()?], is_staged))
    };
    let form = "`// PTX: NAME has N loads and N stores of 16 bytes.`, or at its end `bytes, staged.`";
    comments.map(|comment| read(comment).unwrap_or_else(|| panic!("write {form}: {comment}"))).collect()
}

/// This holds for the vectors of a tile, if buffers are aligned. Sorts read side by side the items on any boundary.
#[test]
fn algorithms_access_16_bytes_at_a_time() {
    let accesses = accesses();
    assert!(accesses.len() > 20, "only {} kernels say what they access", accesses.len());
    for (kernel, [loads, stores], is_staged) in accesses {
        for &arch in ARCHS.iter() {
            let text = ptx("kernel_primitives::kernels::device::shipped", &kernel, arch);
            let wide = |access| ["v4.b32", "v2.b64"].map(|width| count(&text, &format!("{access}.global.{width}")));
            let found = ["ld", "st"].map(|access| wide(access).iter().sum::<usize>());
            // This instruction exists since sm_80.
            let copies = count(&text, "cp.async.cg.shared.global");
            assert_eq!(copies > 0, is_staged && arch >= 80, "{kernel} for sm_{arch}");
            assert!(found[0] + copies >= loads && found[1] >= stores, "{kernel} for sm_{arch}: {found:?}, {copies}");
        }
    }
}

/// A tile may wait for the tiles before it, so these must run or have ended. Blocks take their tiles by a ticket, in the order in which
/// they begin. By the ranks of blocks, they could wait for a block that never begins. No test of the emulator sees this, if only GPUs do
/// so.
#[test]
fn tiles_that_wait_for_others_are_taken_by_a_ticket() {
    const CHAINED: [&str; 11] = [
        "reduce_by_key_tiles",
        "reduce_tiles",
        "run_length_tiles",
        "scan_by_key_tiles",
        "scan_pipeline",
        "scan_tiles",
        "segment_scan_tiles",
        "select_tiles",
        "sort_sweep",
        "sort_sweep_pairs",
        "unique_tiles",
    ];
    let mut found = HashSet::new();
    for (module, kernel) in shipped() {
        let Some(&name) = CHAINED.iter().find(|&&name| kernel.split("__").next() == Some(name)) else { continue };
        found.insert(name);
        let ticket = if name.starts_with("sort_sweep") { "atom.global.add.u32" } else { "atom.global.add.u64" };
        for &arch in ARCHS.iter() {
            let text = ptx(&module, &kernel, arch);
            let mut tickets = text.lines().map(str::trim).filter(|line| line.starts_with(ticket));
            assert!(tickets.any(|line| line.ends_with(", 1;")), "{kernel} for sm_{arch}: no {ticket} of 1");
        }
    }
    assert_eq!(found.len(), CHAINED.len(), "of these alone there are kernels: {found:?}");
}

/// In kernels of one dimension, ranks need no index along another one, which takes time to read.
#[test]
fn kernels_of_one_dimension_read_no_index_of_another() {
    const OTHER: [&str; 8] =
        ["%tid.y", "%tid.z", "%ntid.y", "%ntid.z", "%ctaid.y", "%ctaid.z", "%nctaid.y", "%nctaid.z"];
    let device = "kernel_primitives::kernels::device::shipped";
    let kernels = [
        (device, "transform_tiles__Span_u32_Identity_SpanMut_u32"),
        (device, "transform_tiles__Permutation_Span_u32_Span_u32_Identity_SpanMut_u32"),
        (device, "difference_tiles__Span_f32_Sub"),
        ("suite::kernels::launches", "along_x"),
    ];
    for (module, kernel) in kernels {
        for &sm in ARCHS.iter() {
            let text = ptx(module, kernel, sm);
            // A fault has the indices of its thread, whatever they are.
            let (_, entry) = text.split_once(".entry").expect("an entry");
            let read: Vec<_> = OTHER.iter().filter(|index| entry.contains(**index)).collect();
            assert!(read.is_empty() && entry.contains("%tid.x"), "{module}::{kernel} for sm_{sm} reads {read:?}");
        }
    }
}

/// A gather reads all of its indices before it compares them, and items without a branch in between.
#[test]
fn gathers_have_the_items_of_two_vectors_in_flight() {
    let device = "kernel_primitives::kernels::device::shipped";
    for &sm in ARCHS.iter() {
        let text = ptx(device, "transform_tiles__Permutation_Span_u32_Span_u32_Identity_SpanMut_u32", sm);
        let (_, entry) = text.split_once(".entry").expect("an entry");
        let straight = entry.split("bra").map(|part| part.matches("ld.global.b32").count());
        assert_eq!(straight.max(), Some(8), "sm_{sm}");
    }
}

/// If a kernel's text has this, the host lets the kernel begin before the kernel before it has ended. No load is outside of that order.
#[test]
fn kernels_of_new_architectures_wait_for_the_launch_before() {
    for (module, kernel) in shipped() {
        for &sm in ARCHS.iter() {
            let text = ptx(&module, &kernel, sm);
            let body = text.split_once(".entry").and_then(|(_, entry)| entry.split_once('{')).expect("a body").1;
            assert_eq!(body.trim_start().starts_with("griddepcontrol.wait;"), sm >= 90, "{module}::{kernel} sm_{sm}");
            assert!(sm < 90 || !text.contains("ld.global.nc"), "{module}::{kernel} sm_{sm}");
            // The number of blocks says which of its two places has a reduction by key let the next launch begin.
            let launches = if kernel.starts_with("reduce_by_key_tiles__") { 2 } else { 1 };
            let found = ["wait", "launch_dependents"].map(|kind| count(&text, &format!("griddepcontrol.{kind};")));
            assert_eq!(found, if sm >= 90 { [1, launches] } else { [0; 2] }, "{module}::{kernel} sm_{sm}");
        }
    }
}

/// A panic has no token, and finds its stream by this. It takes shared memory and a store, which only panics should cost.
#[test]
fn kernels_that_cannot_panic_do_not_prepare_for_it() {
    let text = |kernel: &str, arch| ptx("suite::kernels::faults", kernel, arch);
    for &arch in ARCHS.iter() {
        for (module, kernel) in shipped() {
            // The mean of no integers is a fault. It is computed by a functor, which has no token.
            let may_fail = kernel.starts_with("reduce_tiles__") && kernel.ends_with("_Mean");
            let is_of_floats = ["f16", "bf16", "f32", "f64"].iter().any(|item| kernel.contains(&format!("_{item}_")));
            let prepares = ptx(&module, &kernel, arch).contains("kp_control");
            assert_eq!(prepares, may_fail && !is_of_floats, "{kernel} for sm_{arch}");
        }
        assert!(text("failed_assertion", arch).contains("st.shared.b64 \t[kp_control]"), "sm_{arch}");
        assert!(!text("dividing__i32", arch).contains("kp_control"), "sm_{arch}");
    }
}

#[test]
fn integers_reduce_by_redux_from_sm_80_on() {
    let module = "kernel_primitives::kernels::reduce";
    for (kernel, instruction) in [
        ("block_reduce__u32_Add_4", "redux.sync.add"),
        ("block_reduce__i32_Min_4", "redux.sync.min.s32"),
        ("block_reduce__u32_Max_4", "redux.sync.max.u32"),
    ] {
        for &arch in ARCHS.iter() {
            let found = count(&ptx(module, kernel, arch), instruction);
            assert_eq!(found > 0, arch >= 80, "{kernel} for sm_{arch}: {instruction}");
        }
    }
}

/// Functors and kernels that compute by fused operations: `MulAdd`, the functions of libdevice, and products of complex numbers in Fourier
/// transforms. The functions of libdevice are accurate because of the operations after an approximation.
const FUSED: [&str; 12] =
    ["MulAdd", "Exp", "Log", "Tanh", "Sigmoid", "Silu", "Gelu", "PNorm", "LogSumExp", "softmax", "layer", "fft"];

#[test]
fn arithmetic_is_neither_contracted_nor_approximate() {
    for (module, kernel) in shipped() {
        let fused = kernel.split('_').any(|word| FUSED.contains(&word));
        let forbidden = ["sqrt.approx", "div.approx", "div.full"].into_iter();
        let forbidden = forbidden.chain(["fma", "ex2.approx.ftz"].into_iter().filter(|_| !fused));
        for instruction in forbidden {
            for &arch in ARCHS.iter() {
                let text = ptx(&module, &kernel, arch);
                // Before sm_90, bf16 has no other arithmetic: a sum is a fused product with 1.
                let only = if instruction == "fma" && arch == 80 { count(&text, "fma.rn.bf16") } else { 0 };
                let found = count(&text, instruction) - only;
                assert_eq!(found, 0, "{kernel} for sm_{arch}: {instruction}");
            }
        }
    }
}

#[test]
fn halves_are_computed_two_at_a_time() {
    let module = "kernel_primitives::kernels::elementwise";
    for (kernel, instruction, from) in [
        ("map_binary__f16_f16_Add_8", "add.rn.f16x2", 75),
        ("map_binary__f16_f16_Sub_8", "sub.rn.f16x2", 75),
        ("map_binary__f16_f16_Mul_8", "mul.rn.f16x2", 75),
        ("map_ternary__f16_f16_f16_f16_MulAdd_8", "fma.rn.f16x2", 75),
        ("map_binary__bf16_bf16_Add_8", "add.rn.bf16x2", 90),
        ("map_binary__bf16_bf16_Mul_8", "mul.rn.bf16x2", 90),
        ("map_binary__f16_f16_Min_8", "min.NaN.f16x2", 80),
        ("map_binary__f16_f16_Max_8", "max.NaN.f16x2", 80),
        ("map_binary__bf16_bf16_Min_8", "min.NaN.bf16x2", 80),
        ("map_binary__bf16_bf16_Max_8", "max.NaN.bf16x2", 80),
        ("map_unary__f16_f16_Relu_8", "max.NaN.f16x2", 80),
        ("map_unary__bf16_bf16_Relu_8", "max.NaN.bf16x2", 80),
    ] {
        for arch in ARCHS.iter().copied().filter(|&arch| arch >= from) {
            assert_eq!(count(&ptx(module, kernel, arch), instruction), 4, "{kernel} for sm_{arch}: {instruction}");
        }
    }
}

/// A test after a barrier must not split the barrier, because the lanes of a warp would wait at two of them. rustc's jump threading did
/// that to this kernel, whose reduction continues differently for rows that cross a warp's end.
#[test]
fn a_barrier_is_not_copied_into_branches() {
    for &arch in ARCHS.iter() {
        let text = ptx("suite::kernels::block", "rows_reduced__f32_Add", arch);
        // Each of the three cases has one barrier between writing and reading. Before a reuse by turns, there is none.
        assert_eq!(count(&text, "bar.sync") + count(&text, "barrier.sync"), 3, "sm_{arch}");
    }
}

/// Only kernels that print have a call of the driver's `vprintf`, and the code that it needs.
#[test]
fn only_kernels_that_print_call_vprintf() {
    let index = fs::read_to_string(Path::new(PTX).join("index.txt")).expect("the builder wrote an index");
    let mut printing = 0;
    for (module, kernel) in index.lines().filter_map(|path| path.rsplit_once("::")) {
        // `KERNEL_PRIMITIVES_TEST_ARCHS` may leave out some of the tests' kernels.
        let is_built = |arch: &u32| Path::new(PTX).join(module).join(format!("{kernel}.sm_{arch}.ptx")).exists();
        let is_shipped = module.starts_with("kernel_primitives::");
        for arch in ARCHS.iter().copied().filter(|arch| is_shipped || is_built(arch)) {
            let calls = ptx(module, kernel, arch).contains("vprintf");
            assert_eq!(calls, module == "suite::kernels::printing", "{module}::{kernel} for sm_{arch}");
            printing += usize::from(calls);
        }
    }
    assert!(printing > 0, "no kernel prints");
}
