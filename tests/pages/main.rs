//! Tests the pages of `docs/`: that they name everything that they promise to name. rustdoc tests that their code runs and that their links
//! are right. This file also tests that figures are those of the recorded results, and that each collective says which threads call it.

use std::collections::BTreeSet;
use std::path::Path;

use kernel_primitives::{Device, EmulatorOptions, Error, Result};

mod algorithms;
mod figures;
mod loops;
mod peers;
#[path = "../../docs/first_collective/ranks.rs"]
#[allow(unreachable_pub, reason = "a user's file")]
mod ranks;
mod tables;

/// The names of the published Kernel Primitive API with its helpers and macros. For overloads, there is each signature. The last lines have
/// the names of VexCL's stencils and sparse matrices.
const SEED: &str = "
    ElementwiseAdd ElementwiseAddImpl ReduceHigherDimKernel HigherDimImpl
    KPStream KPDevice _ptr_ __simd__ HOSTDEVICE THREAD_ID_X THREAD_ID_Y THREAD_ID_Z BLOCK_NUM_X BLOCK_NUM_Y BLOCK_NUM_Z
    BLOCK_ID_X BLOCK_ID_Y BLOCK_ID_Z GRID_NUM_X GRID_NUM_Y GRID_NUM_Z VecSizeL VecSizeM VecSizeS IndexType DimConfig SetRem
    VectorType FastDivMod Div Divmod DivModT BroadcastConfig IndexCal IsBoundary
    details::ReadData(dst,src,num) details::WriteData(dst,src,num)
    Init(dst,init_data) Init(dst,init_data,read_lens) Init<T,ArgsT,Index,NX> InitWithDataIndex
    ReadData<T,NX,NY,IsBoundary>(dst,src,num)
    ReadData<Tx,Ty,NX,NY,IsBoundary>(dst,src,size_nx,size_ny,stride_nx,stride_ny)
    ReadData<T,NX,NY,ArgsT,Index,IsBoundary>(dst,src,num,read_lens)
    ReadDataBc<T,NX,NY,IsBoundary>(dst,src,block_offset,config,total_num_output,read_lens)
    ReadDataBc<T,NX,NY,IsBoundary>(dst,src,block_offset,config,total_num_output,stride_nx,stride_ny)
    ReadDataReduce WriteData<T,NX,NY,IsBoundary>(dst,src,num)
    WriteData<Tx,Ty,NX,NY,IsBoundary>(dst,src,size_nx,size_ny,stride_nx,stride_ny)
    OpFunc TransformOp ReduceOp ReduceFunctor initial() details::Exp details::Log MPTypeTrait MPType PADDLE_ENFORCE_NE
    ExpFunctor IdentityFunctor DivideFunctor InverseFunctor SquareFunctor MinFunctor MaxFunctor AddFunctor MulFunctor
    LogicalOrFunctor LogicalAndFunctor SubFunctor DivFunctor FloorDivFunctor
    kReduceMaxThread kWarpSize ReduceMode kGlobalMode kLocalMode reduce_last_dim SharedMemoryIndex FULL_MASK FULL_WARP_MASK
    CREATE_SHFL_MASK CudaShuffleDownSync WarpReduce BlockXReduce BlockYReduce Swap Comparator ComparatorWithIndex
    GetLastPow2 hight_bit ElementwiseUnary ElementwiseBinary ElementwiseTernary ElementwiseAny Arity CycleBinary
    ElementwiseConstant ElementwiseRandom ReturnsCount StateType curandStatePhilox4_32_10_t hiprandStatePhilox4_32_10_t
    Reduce Cumsum SHARED_SIZE_LIMIT CONFLICT_FREE_OFFSET NUM_BANKS LOG_NUM_BANKS
    Sort(out,in,num,monotonic_type) Sort(out,out_index,in,in_index,num,monotonic_type) monotonic_type
    VEX_STENCIL_OPERATOR StencilOperator X[-1] vex::stencil(queue,begin,end,center) x*s
    vex::SpMat vex::SpMatCCSR vex::sparse::matrix vex::sparse::csr vex::sparse::ell vex::sparse::distributed
    y=A*x y+=alpha*(A*x) r=f-A*x vex::make_inline(A*x) vex::multivector
";

/// Returns the cells of the page's tables, row by row, without heads.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let mut rows = Vec::new();
    let mut body = false;
    for line in page.lines() {
        if !line.starts_with('|') {
            body = false;
        } else if line.starts_with("|---") {
            body = true;
        } else if body {
            rows.push(line.trim_matches('|').split(" | ").map(str::trim).collect());
        }
    }
    rows
}

/// Returns the text between backquotes, without spaces.
fn quoted(cell: &str) -> impl Iterator<Item = String> {
    cell.split('`').skip(1).step_by(2).map(|name| name.replace(' ', ""))
}

#[test]
fn every_name_of_the_published_api_has_its_row() {
    let rows = rows(include_str!("../../docs/seed_map.md"));
    let mapped: BTreeSet<String> = rows.iter().flat_map(|row| quoted(row[0])).collect();
    let published: BTreeSet<String> = SEED.split_whitespace().map(str::to_owned).collect();
    assert_eq!(published.difference(&mapped).collect::<Vec<_>>(), [""; 0], "are not on the page");
    assert_eq!(mapped.difference(&published).collect::<Vec<_>>(), [""; 0], "are no names of the published API");
}

#[test]
fn every_row_of_the_map_is_full_and_links_what_it_names() {
    for row in rows(include_str!("../../docs/seed_map.md")) {
        assert!(row.len() == 3 && row.iter().all(|cell| !cell.is_empty()), "{row:?} has an empty cell");
        assert!(row[1..].iter().any(|cell| cell.contains("[`")) || row[1].ends_with("below"), "{row:?} links nothing");
    }
}

/// Differences that change results: a name of the map, and words of its row.
const DIFFERENCES: [(&str, &str); 4] = [
    ("Cumsum", "`op(earlier, later)`"),
    ("FloorDivFunctor", "A float divided by 0 is infinite or NaN"),
    ("ReadDataReduce", "there no columns were guarded if `NX = 1`"),
    (
        "details::WriteData(dst,src,num)",
        "[`write_data_lens`] writes the elements of a block; the seed has no such function",
    ),
];

#[test]
fn the_map_names_differences_that_change_results() {
    let rows = rows(include_str!("../../docs/seed_map.md"));
    for (name, words) in DIFFERENCES {
        let row = rows.iter().find(|row| quoted(row[0]).any(|quoted| quoted == name)).expect("a row of the map");
        assert!(row[2].contains(words), "the row of {name} does not say: {words}");
    }
}

/// The sentences by which a collective says which threads call it, for a block's folder and for a warp's folder.
const CALLERS: [(&str, &[&str]); 2] = [
    (
        "block",
        &[
            "/// All threads of the block call it: see [divergence](crate::block#divergence).",
            "/// No thread waits for another here: any may call it or not.",
        ],
    ),
    ("warp", &["/// All lanes of the warp call it: see [divergence](crate::warp#divergence)."]),
];

#[test]
fn every_collective_says_which_threads_call_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("primitives-gpu/src");
    let (mut found, mut silent) = (0, Vec::new());
    for (scope, sentences) in CALLERS {
        let mut folders = vec![root.join(scope)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let source = std::fs::read_to_string(path).expect("a source");
                // Methods are indented.
                for (at, before) in source.match_indices("\npub fn ") {
                    let docs = source[..at].rsplit("\n\n").next().unwrap_or_default();
                    found += 1;
                    if !sentences.iter().any(|sentence| docs.contains(sentence)) {
                        silent.extend(source[at + before.len()..].split(['<', '(']).next().map(str::to_owned));
                    }
                }
            }
        }
    }
    assert_eq!(silent, [""; 0], "have none of the sentences that say which threads call them");
    assert!(found > 60, "only {found} collectives were found");
}

/// The variables that the pages name have an effect on the tests that they show.
#[test]
fn tests_on_the_pages_open_the_device_that_the_environment_names() {
    let pages = [include_str!("../../docs/debugging.md"), include_str!("../../docs/first_collective.md")];
    for page in pages {
        let mut tests = page.split("```").skip(1).step_by(2).filter(|block| block.contains("// #[test]"));
        let test = tests.next().expect("a test");
        assert!(test.contains("Device::auto()") && !test.contains("Device::emulator"), "{test}");
        assert_eq!(tests.next(), None);
    }
}

/// To write the report into the page: `UPDATE_PAGES=1 cargo test --test pages`.
#[test]
fn the_first_collective_has_the_race_that_its_page_shows() -> Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/first_collective.md");
    let (page, source) =
        (include_str!("../../docs/first_collective.md"), include_str!("../../docs/first_collective/ranks.rs"));
    assert!(page.contains(source), "the page has another ranks.rs");
    let mended = include_str!("../../docs/first_collective/ranks_mended.rs").replacen("    shared.enter();\n", "", 1);
    assert_eq!(mended, source, "what is mended differs in more than the line that the page says");

    let mut options = EmulatorOptions::default();
    (options.checked, options.seed) = (true, None);
    let stream = Device::emulator_with(options).stream()?;
    let (x, mut out) = (stream.buffer_zeroed(101)?, stream.buffer_zeroed(101)?);
    ranks::ranks::launch(&stream, (1, 100), x.slice(..100)?, out.slice_mut(..100)?)?;
    let Err(Error::Fault(fault)) = ranks::ranks::launch(&stream, (1, 100), &x, &mut out) else { panic!("no race") };
    let report = format!("{fault:?}")
        .trim()
        .replace("pages::ranks::", "my_crate::ranks::")
        .replace("tests/pages/../../docs/first_collective/", "src/");
    let begin = page.find("```text\n").expect("a report") + "```text\n".len();
    let end = begin + page[begin..].find("\n```").expect("its end");
    if std::env::var_os("UPDATE_PAGES").is_some() {
        std::fs::write(path, [&page[..begin], &report, &page[end..]].concat()).expect("the page is written");
    } else {
        assert_eq!(page[begin..end], report, "the test tells how to update the page");
    }
    Ok(())
}

/// To write the figures and the plots: `python3 benches/report.py`. If there is no Python, nothing is checked. `.ci/run` calls the script,
/// and has Python.
#[test]
fn the_figures_are_those_of_the_recorded_results() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/report.py");
    let output = match std::process::Command::new("python3").args([script, "--check"]).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return println!("python3 is not installed"),
        output => output.expect("python3 runs"),
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The pages that are read on the web, with links between files.
const LINKED: [&str; 5] =
    ["README.md", "CONTRIBUTING.md", "examples/README.md", "examples/template/README.md", "benches/results/README.md"];

/// Returns the texts between `](` and `)`.
fn links(page: &str) -> impl Iterator<Item = &str> {
    page.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

#[test]
fn links_between_files_lead_to_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in LINKED {
        let page = std::fs::read_to_string(root.join(name)).expect("a page");
        for link in links(&page).filter(|link| !link.starts_with("http")) {
            let file = root.join(name).parent().expect("a folder").join(link.split('#').next().expect("a path"));
            assert!(file.exists(), "{name} links {link}, which is not there");
        }
    }
}

/// The test looks at text between backquotes that begins with a folder of the repository, except the folder of build outputs.
#[test]
fn the_pages_for_contributors_name_files_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let top: BTreeSet<String> = std::fs::read_dir(root)
        .expect("the repository")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    let mut named = 0;
    for name in ["CONTRIBUTING.md", "docs/architecture.md", "docs/gpu.md"] {
        let page = std::fs::read_to_string(root.join(name)).expect("a page");
        // Blocks of code have paths of users' crates.
        let prose = page.split("```").step_by(2).collect::<String>();
        for path in prose.split('`').skip(1).step_by(2).filter(|path| !path.contains(char::is_whitespace)) {
            if !path.split_once('/').is_some_and(|(first, _)| top.contains(first)) || path.starts_with("target/") {
                continue;
            }
            // `src/kernels.rs` belongs to the template.
            let found = root.join(path).exists() || root.join("examples/template").join(path).exists();
            assert!(found, "{name} names {path}, which is not there");
            named += 1;
        }
    }
    assert!(named > 50, "only {named} paths were found");
}

#[test]
fn the_page_for_contributors_names_every_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("CONTRIBUTING.md")).expect("a page");
    for entry in std::fs::read_dir(root.join("tests")).expect("the tests") {
        let name = format!("`tests/{}`", entry.expect("an entry").file_name().display());
        assert!(page.contains(&name), "CONTRIBUTING.md has no row for {name}");
    }
}

/// Tests that use only one path of the repository: the path of a file to write.
const WRITE_A_PAGE: [&str; 1] = ["suite"];

/// The script names the tests that would not find cargo or the sources where a bundle runs.
#[test]
fn the_bundle_leaves_out_tests_that_need_the_repository() {
    fn needs_it(path: &Path) -> bool {
        if path.is_dir() {
            return std::fs::read_dir(path).expect("a folder").any(|entry| needs_it(&entry.expect("an entry").path()));
        }
        let source = std::fs::read_to_string(path).expect("a source");
        let variables = ["MANIFEST_DIR", "TARGET_TMPDIR"].map(|name| format!("env!(\"CARGO_{name}\")"));
        variables.iter().any(|variable| source.contains(variable)) || source.contains("env!(\"KERNEL_PRIMITIVES_PTX\")")
    }
    let script = include_str!("../../scripts/bundle.sh");
    let list = script.split("stay_here='").nth(1).and_then(|rest| rest.split('\'').next()).expect("the list");
    let listed: BTreeSet<String> = list.split_whitespace().map(str::to_owned).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let tests = std::fs::read_dir(root).expect("the tests").map(|entry| entry.expect("an entry").path());
    let tests = tests.filter(|path| path.extension().is_some_and(|end| end == "rs") || path.join("main.rs").exists());
    let needing: BTreeSet<String> = tests
        .filter(|path| needs_it(path))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .filter(|name| !WRITE_A_PAGE.contains(&&**name))
        .collect();
    assert_eq!(listed, needing, "`stay_here` of scripts/bundle.sh");
}

/// A folder with a file `BUILD` may be a package of Bazel. A cargo that fails stands in for a long build.
#[cfg(unix)]
#[test]
fn the_bundle_replaces_only_what_its_script_made() {
    use std::os::unix::fs::PermissionsExt;
    let root = std::env::temp_dir().join(format!("bundle-script-{}", std::process::id()));
    let (tools, folder) = (root.join("tools"), root.join("folder"));
    for folder in [&tools, &folder] {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    let cargo = tools.join("cargo");
    std::fs::write(&cargo, "#!/bin/sh\necho no build >&2\nexit 1\n").expect("a program");
    std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).expect("a program");
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap_or_default());
    let errors = || {
        let mut script = std::process::Command::new("bash");
        script.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/bundle.sh")).arg(&folder).env("PATH", &path);
        let output = script.output().expect("bash");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    std::fs::write(folder.join("BUILD"), "theirs").expect("a file");
    let text = errors();
    assert!(text.contains("was not made by this script") && !text.contains("no build"), "{text}");
    assert!(folder.join("BUILD").exists());
    std::fs::write(folder.join(".bundle-of-kernel-primitives"), "").expect("a file");
    let text = errors();
    assert!(text.contains("no build"), "{text}");
    std::fs::remove_dir_all(root).expect("a folder");
}

#[test]
fn every_example_has_its_row() {
    let rows = rows(include_str!("../../examples/README.md"));
    let listed: BTreeSet<String> = rows.iter().flat_map(|row| quoted(row[0])).collect();
    let examples = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/examples")).expect("the examples");
    let there: BTreeSet<String> = examples
        .map(|entry| entry.expect("an entry").path())
        // It may also be a crate of its own.
        .filter(|path| path.join("main.rs").exists() || path.join("Cargo.toml").exists())
        .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    assert_eq!(listed, there);
}

/// Returns the exports of a crate's root: the names of its `pub use` and `pub mod` that are not hidden.
fn exported(source: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in source.match_indices("\npub ") {
        let (before, item) = (source[..at].lines().next_back().unwrap_or_default(), &source[at + "\npub ".len()..]);
        if before.contains("doc(hidden)") {
            continue;
        }
        if let Some(module) = item.strip_prefix("mod ") {
            names.extend(module.split([';', ' ']).next().map(str::to_owned));
        } else if let Some(path) = item.strip_prefix("use ") {
            let list = path.split(';').next().and_then(|path| path.rsplit("::").next()).expect("a path");
            let list = list.trim_matches(['{', '}', '\n', ' ']).split(',').map(str::trim);
            names.extend(list.filter(|name| !name.is_empty()).map(str::to_owned));
        }
    }
    names
}

/// The lists of `src/lib.rs` are written by hand. They must have every public item of the two crates.
#[test]
fn the_crate_re_exports_all_that_its_parts_export() {
    let parts = [include_str!("../../primitives-gpu/src/lib.rs"), include_str!("../../primitives-host/src/lib.rs")];
    let mut expected: BTreeSet<String> = parts.into_iter().flat_map(exported).collect();
    // This is a macro, which is at the root by itself.
    expected.insert("device_println".to_owned());
    let facade = include_str!("../../src/lib.rs");
    let listed: BTreeSet<String> = facade
        .match_indices("\npub use primitives_")
        .flat_map(|(at, _)| {
            let list = facade[at..].split_once(';').expect("it ends").0.split_once("::").expect("a path").1;
            list.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty())
        })
        .map(str::to_owned)
        .filter(|name| !name.starts_with("__"))
        .collect();
    let missing: Vec<_> = expected.difference(&listed).collect();
    let unknown: Vec<_> = listed.difference(&expected).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "missing in src/lib.rs: {missing:?}; not exported: {unknown:?}");
}
