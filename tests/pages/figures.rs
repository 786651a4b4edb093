//! Tests that the recorded results are those of a whole run, and that the pages say what the record has.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The peers by the names of their columns, after "ratio to ", and the names of what they are made of.
const PEERS: [(&str, &str); 9] = [
    ("CUB", "CUB"),
    ("Thrust", "Thrust"),
    ("torch", "PyTorch"),
    ("torch compiled", "PyTorch"),
    ("CuPy", "CuPy"),
    ("CUDA", "kernels by hand in CUDA"),
    ("tiled", "kernels by hand in CUDA"),
    ("cuSPARSE", "cuSPARSE"),
    ("cuFFT", "cuFFT"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the text of the record that the pages are made of. Each row has a line.
fn record() -> String {
    std::fs::read_to_string(root().join("benches/results/h200.json")).expect("a record")
}

fn rows() -> Vec<Value> {
    let record: Value = serde_json::from_str(&record()).expect("JSON");
    record["rows"].as_array().expect("rows").clone()
}

/// Returns a page with one line.
fn page(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect("a page").replace('\n', " ")
}

/// Writes a record into a folder of its own, and checks pages against it. Returns nothing if there is no Python.
fn check(name: &str, record: &str, arguments: &[&OsStr]) -> Option<Output> {
    let folder = folder(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    let json = folder.join("gpu.json");
    std::fs::write(&json, record).expect("a file");
    let mut python = Command::new("python3");
    python.arg(root().join("benches/report.py")).args(["--check", "--json"]).arg(&json).args(arguments);
    let output = match python.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        output => Some(output.expect("python3 runs")),
    };
    std::fs::remove_dir_all(folder).expect("its own folder");
    output
}

fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("record-{name}-{}", std::process::id()))
}

#[test]
fn a_record_of_a_part_of_the_benchmark_is_refused() {
    let record = record();
    let without = |part: &str| record.lines().filter(|line| !line.contains(part)).collect::<Vec<_>>().join("\n");
    let cases = [
        ("group", without("{\"name\": \"spmv f"), "it has no row of spmv f"),
        ("size", without("\"log2\": 28,"), "it has no row of reduce at 2^28"),
        ("failures", without("\"failures\": "), "it does not say what failed"),
        ("only", record.replacen("\"gpu ", "\"gpu --only launch ", 1), "its command has --only"),
        (
            "peer",
            record.replace("\"ratio to torch", "\"was"),
            "width 9, f32 268435456: no time of torch, torch compiled",
        ),
        ("number", record.replacen("\"ratio to CUB\": ", "\"ratio to CUB\": NaN, \"was\": ", 1), "NaN is no time"),
    ];
    for (name, text, sentence) in cases {
        assert_ne!(text, record, "{name}");
        let Some(output) = check(name, &text, &[]) else { return println!("python3 is not installed") };
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(sentence), "{name}: {said}");
    }
}

#[test]
fn a_stale_page_in_any_folder_is_named() {
    let out = folder("stale-page");
    let Some(output) = check("of-a-stale-page", &record(), &[OsStr::new("--out"), out.as_os_str()]) else {
        return println!("python3 is not installed");
    };
    let said = String::from_utf8_lossy(&output.stderr);
    let page = out.join("README.md");
    assert!(said.starts_with(&format!("not what the results say: {}", page.display())), "{said}");
    std::fs::remove_dir_all(out).expect("its own folder");
}

#[test]
fn the_readme_counts_all_rows_that_have_a_peer() {
    let best = |row: &Value| {
        let ratios = PEERS.iter().filter_map(|(column, _)| row[format!("ratio to {column}")].as_f64());
        ratios.reduce(f64::min)
    };
    let ratios: Vec<f64> = rows().iter().filter_map(best).collect();
    let behind = ratios.iter().filter(|&&ratio| ratio < 0.97).count();
    let sentence = format!("Of all {} rows beside a peer, [{behind} are more than 3 % behind]", ratios.len());
    assert!(page("README.md").contains(&sentence), "README.md does not say: {sentence}");
}

#[test]
fn block_sorts_by_a_network_stand_beside_the_faster_peer() {
    let rows = rows();
    let time_of_cub = |sort: &str, shape: &str| {
        let name = format!("block sort, {sort}, {shape}");
        let row = rows.iter().find(|row| row["name"] == name.as_str()).expect("a row of each sort");
        row["ms"].as_f64().expect("a time") * row["ratio to CUB"].as_f64().expect("a ratio")
    };
    let shapes = rows.iter().filter_map(|row| row["name"].as_str()?.strip_prefix("block sort, network, "));
    let shapes: Vec<&str> = shapes.collect();
    assert_eq!(shapes.len(), 8, "{shapes:?}");
    for shape in shapes {
        let [network, radix, merge] = ["network", "radix", "merge"].map(|sort| time_of_cub(sort, shape));
        assert!(network <= radix.min(merge) * 1.001, "{shape}: {network} is not the least of {radix} and {merge}");
    }
}

#[test]
fn the_pages_name_all_peers() {
    let rows = rows();
    let pages = [("README.md", "Medians on an "), ("benches/results/README.md", "The peers: ")];
    for (path, begin) in pages {
        let page = page(path);
        let paragraph = page.split_once(begin).and_then(|(_, rest)| rest.split("  ").next()).expect("the paragraph");
        for (column, name) in PEERS {
            let measured = rows.iter().any(|row| row.get(format!("ratio to {column}")).is_some());
            assert!(!measured || paragraph.contains(name), "{path} does not name {name}: {paragraph}");
        }
    }
}

/// The driver has several calls for a launch. A time of the driver can be compared only if the record names the same call as ours.
#[test]
fn the_pages_compare_a_launch_with_a_call_that_the_record_names() {
    let named = rows().iter().any(|row| row.get("driver's call").is_some());
    for path in ["README.md", "benches/results/README.md"] {
        assert_eq!(page(path).contains("the driver's own call"), named, "{path}");
    }
}
