#!/usr/bin/env python3
"""Writes the page of results, the plots, and the figures of the README and of docs/several_devices.md from recorded results.

    python3 benches/report.py                                # writes all of them
    python3 benches/report.py --text                         # writes the pages, and no plots
    python3 benches/report.py --check                        # fails if a page differs, or a plot is of other results
    python3 benches/report.py --json gpu.json --out folder   # writes a page and plots of other results

The recorded results are benches/results/h200.json, which `cargo bench --features cuda --bench gpu` writes, and h100-x2.json beside it,
of several devices (`-- --only split`). The plots need matplotlib (`pip install matplotlib`).
"""

import argparse
import hashlib
import json
import math
import pathlib
import statistics
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benches/results"
README = ROOT / "README.md"
SEVERAL = ROOT / "docs/several_devices.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"

# The peers of algorithms by the prefix of their columns, and those of all rows.
PEERS = {"CUB": "CUB", "Thrust": "Thrust", "torch": "PyTorch"}
ALL_PEERS = {
    **PEERS,
    "torch compiled": "PyTorch, compiled",
    "CuPy": "CuPy",
    "CUDA": "CUDA by hand",
    "tiled": "tiles by hand",
    "cuSPARSE": "cuSPARSE",
    "cuFFT": "cuFFT",
}

# What the peers are made of: the name by which a record may have a version, and the prefixes of the columns. Thrust has CUB's version.
LIBRARIES = {
    "CUB": ("CUB", ["CUB"]),
    "Thrust": ("", ["Thrust"]),
    "kernels by hand in CUDA": ("CUDA", ["CUDA", "tiled"]),
    "cuSPARSE": ("cuSPARSE", ["cuSPARSE"]),
    "cuFFT": ("cuFFT", ["cuFFT"]),
    "PyTorch": ("PyTorch", ["torch", "torch compiled"]),
    "CuPy": ("CuPy", ["CuPy"]),
}

# The peers that a row must have, by the prefixes of their columns. The key is an algorithm or the beginning of another row's name: the
# first that fits counts. PyTorch belongs to the rows of the first input, and to all but OWN of the algorithms in ANY_INPUT.
EXPECTED = {
    **dict.fromkeys(["transform", "fill", "reduce", "inclusive_scan", "adjacent_difference", "select"], ["CUB", "Thrust", "torch"]),
    **dict.fromkeys(["unique", "sort_keys", "sort_by", "lower_bound", "gather", "generate"], ["CUB", "Thrust", "torch"]),
    **dict.fromkeys(["exclusive_scan", "partition", "run_length_encode", "reduce_by_key", "scan_by_key"], ["CUB", "Thrust"]),
    **dict.fromkeys(["sort_pairs", "merge"], ["CUB", "Thrust"]),
    **dict.fromkeys(["top_k", "segmented_sort", "histogram_even", "segmented_reduce"], ["CUB", "torch"]),
    **dict.fromkeys(["sort_pairs_by", "segmented_scan", "elementwise add ", "block "], ["CUB"]),
    "scatter": ["CUB", "Thrust", "torch"],
    "expression, sum of a * b": ["CUB", "torch", "torch compiled"],
    **dict.fromkeys(["softmax ", "layer norm ", "cumsum ", "sum dim "], ["torch", "torch compiled"]),
    "sort dim ": ["torch"],
    **dict.fromkeys([f"expression, {count} operands" for count in (2, 5, 9)], ["CUB", "torch", "torch compiled", "CuPy"]),
    **dict.fromkeys(["expression, uniform", "expression, normal"], ["torch"]),
    "expression, Lorenz": ["CUDA", "Thrust"],
    **dict.fromkeys(["expression, host time", "expression, first evaluation"], []),
    "expression, ": ["torch", "torch compiled"],
    # PyTorch has the matrices that torch_peers.py makes.
    **dict.fromkeys([f"spmv f32 {name}" for name in ("Poisson", "random", "Zipf")], ["cuSPARSE", "torch"]),
    **dict.fromkeys([f"spmv f64 {name}" for name in ("Poisson", "mesh", "band")], ["cuSPARSE", "torch"]),
    "spmm f32 Poisson": ["cuSPARSE", "torch"],
    **dict.fromkeys(["spmv f", "spmm f"], ["cuSPARSE"]),
    "conjugate gradients": ["CuPy"],
    **dict.fromkeys(["fft ", "rfft "], ["cuFFT"]),
    **dict.fromkeys(["stencil, 5 points", "stencil, 7 points"], ["CUDA", "tiled", "torch", "torch compiled"]),
    "stencil, norm ": ["torch", "torch compiled"],
    **dict.fromkeys(["stencil, width 9,", "stencil, width 33,"], ["CUDA", "tiled", "torch", "torch compiled"]),
    "stencil, width ": ["CUDA", "torch"],
}
# Rows of what calls cost on the host, which have no peer among these.
HOST_ROWS = ["first launch", "launch, host time", "graph of 100 launches, host time"]
ANY_INPUT = ["sort_keys", "sort_by", "top_k"]
# An order of the caller's own. PyTorch has none.
OWN = "own order"

# The sources of the benchmarks, beside this script.
BENCHMARKS = pathlib.Path(__file__).resolve().parent / "gpu/algorithms"

# The families of plots, in order, and the files that measure their algorithms. Algorithms of other files are in a last family, "others".
FAMILIES = {"numbers": ["numbers"], "selections": ["selections", "runs"], "sorts": ["sorts", "merges"]}

# The ensemble of Lorenz systems: rows over size. The summary's table has some of them.
LORENZ = "expression, Lorenz step of one kernel, f64 2^"
LORENZ_IN_TABLE = (16, 20, 23)

# Algorithms that the summary's table shows with all their types.
ALL_TYPES = ["reduce", "inclusive_scan", "sort_keys"]

# Algorithms that the README names, with the size that it names them at.
README_ROWS = ["reduce", "inclusive_scan", "select", "sort_keys"]
LARGE = 28
# A ratio from here on is level: measurements differ by as much.
LEVEL = 0.97

# What plots of ratios show.
FASTEST = "The fastest measured peer's time divided by ours"

# What the first input of an algorithm is.
INPUTS = {
    "transform": "x + y",
    "select": "half kept",
    "partition": "half first",
    "unique": "runs of 16",
    "run_length_encode": "runs of 16",
    "reduce_by_key": "runs of 16",
    "scan_by_key": "runs of 16",
    "sort_keys": "random",
    "sort_pairs": "random",
    "sort_by": "random",
    "sort_pairs_by": "random",
    "merge": "two halves",
    "top_k": "100 of them",
    "segmented_sort": "segments of 1024",
    "histogram_even": "256 bins",
    "segmented_reduce": "segments of 1024",
    "segmented_scan": "segments of 1024",
    "gather": "from anywhere",
    "scatter": "to anywhere",
    "lower_bound": "as many queries",
}


def times(row):
    """The peers' times in milliseconds by their names."""
    return {peer: row[f"{key} ms"] for key, peer in PEERS.items() if f"{key} ms" in row}


def best(row, peers=PEERS):
    """The fastest of these peers and its time by ours, which is not rounded as the times are; nothing if there is no peer."""
    ratios = {peer: row[f"ratio to {key}"] for key, peer in peers.items() if f"ratio to {key}" in row}
    peer = min(ratios, key=ratios.get, default=None)
    return peer and (peer, ratios[peer])


def beside(row, peers):
    """Cells of the peers' times, and of the fastest one's by ours."""
    found = best(row, peers)
    return [*(digits(row[f"{key} ms"]) if f"{key} ms" in row else "" for key in peers), f"{found[1]:.2f}" if found else ""]


def kind(row):
    """The key of EXPECTED that a row belongs to, if there is one."""
    return row.get("algorithm") or next((key for key in EXPECTED if row["name"].startswith(key)), None)


def digits(value):
    """Three digits that count, or four."""
    return f"{value:.{max(0, 3 - len(str(int(value))))}f}" if value >= 1 else f"{value:.{2 - math.floor(math.log10(value))}f}"


def table_if_any(head, rows):
    """A table and the line after it; nothing without rows."""
    return [*table(head, rows), ""] if rows else []


def table(head, rows):
    """Lines of a table, its first column to the left and numbers to the right."""
    align = ["---", *["--:"] * (len(head) - 1)]
    return [f"| {' | '.join(head)} |", f"|{'|'.join(align)}|", *(f"| {' | '.join(cells)} |" for cells in rows)]


class Results:
    def __init__(self, path, whole=False):
        def refuse(word):
            raise SystemExit(f"{path.name}: {word} is no time and no ratio")

        text = path.read_bytes()
        self.name, self.hash = path.name, hashlib.sha256(text).hexdigest()
        self.about = json.loads(text, parse_constant=refuse)
        self.rows = self.about.pop("rows")
        # Why rows have no time of a peer: reasons by the peers' columns, by the rows' names or "every row".
        self.missing = self.about.pop("missing", {})
        # Older records say nothing of failures, and were taken beside fewer peers.
        failures = self.about.pop("failures", None)
        if failures:
            raise SystemExit("\n    ".join([f"{path.name}: measurements failed:", *failures]))
        if failures is not None:
            self.require_peers()
        if whole:
            self.require_whole(says_what_failed=failures is not None)
        self.by_name = {row["name"]: row for row in self.rows}
        self.algorithms = {}
        for row in self.rows:
            if "algorithm" in row:
                self.algorithms.setdefault(row["algorithm"], []).append(row)

    def require_peers(self):
        """Ends the program if a row has no time of a peer, and the record has no reason for that."""
        lost = []
        for row in self.rows:
            name, algorithm, key = row["name"], row.get("algorithm"), kind(row)
            if algorithm and algorithm not in EXPECTED:
                lost.append(f"{name}: EXPECTED in {pathlib.Path(__file__).name} has no peers of {algorithm}")
                continue
            reasons = {**self.missing.get("every row", {}), **self.missing.get(name, {})}
            peers = [peer for peer in EXPECTED.get(key, []) if f"ratio to {peer}" not in row and peer not in reasons]
            if row.get("input") and (algorithm not in ANY_INPUT or row["input"] == OWN):
                peers = [peer for peer in peers if peer != "torch"]
            if peers:
                lost.append(f"{name}: no time of {', '.join(peers)}")
        if lost:
            raise SystemExit("\n    ".join([f'{self.name}: peers are lost, and "missing" does not say why:', *lost]))

    def require_whole(self, says_what_failed):
        """Ends the program if the record is of a part of the benchmark."""
        lost = [] if says_what_failed else ["it does not say what failed"]
        lost += [f"its command has {option}" for option in ("--only", "--rows") if option in self.about["command"]]
        kinds = {kind(row) or row["name"] for row in self.rows}
        lost += [f"it has no row of {key}" for key in [*HOST_ROWS, *EXPECTED] if key not in kinds]
        large = {row["algorithm"] for row in self.rows if row.get("log2") == LARGE}
        algorithms = dict.fromkeys(row["algorithm"] for row in self.rows if "algorithm" in row)
        lost += [f"it has no row of {name} at 2^{LARGE}" for name in algorithms if name not in large]
        if lost:
            raise SystemExit("\n    ".join([f"{self.name} is of a part of the benchmark:", *lost]))

    def machine(self):
        device = self.about["device"].split(" (")[0]
        return f"{device}, driver {self.about['driver']}"

    def peers(self):
        """The libraries that rows stand beside, with the versions that the record has."""
        found = {column.removeprefix("ratio to ") for row in self.rows for column in row}
        libraries = [(name, key) for name, (key, columns) in LIBRARIES.items() if not found.isdisjoint(columns)]
        return enumeration([f"{name} {self.about[key]}" if key in self.about else name for name, key in libraries])

    def families(self):
        """Names of families, each with the algorithms that have rows."""
        found = {}
        for family, files in FAMILIES.items():
            text = "".join((BENCHMARKS / f"{file}.rs").read_text(encoding="utf-8") for file in files)
            found[family] = [name for name in self.algorithms if f'"{name}"' in text]
        known = set()
        for family, names in found.items():
            assert known.isdisjoint(names), f"in the files of {family} and of a family before it: {sorted(known & set(names))}"
            known |= set(names)
        found["others"] = [name for name in self.algorithms if name not in known]
        return [(family, names) for family, names in found.items() if names]

    def line(self, algorithm, types=None, input=""):
        """The rows of an algorithm over size, of its first types unless others are named."""
        rows = [row for row in self.algorithms[algorithm] if row["input"] == input]
        types = types or rows[0]["types"]
        return sorted((row for row in rows if row["types"] == types), key=lambda row: row["log2"])

    def types(self, algorithm):
        """Those that are measured with the first input, in order."""
        return list(dict.fromkeys(row["types"] for row in self.algorithms[algorithm] if row["input"] == ""))


def without(reasons):
    return ", ".join(f"no time of {peer} ({reason})" for peer, reason in reasons.items())


def enumeration(names):
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names) or "none"


def title(algorithm, types):
    described = f", {INPUTS[algorithm]}" if algorithm in INPUTS else ""
    return f"{algorithm}, {types.replace('_', ' and ')}{described}"


def prose(text):
    """Lines as long as those of the other pages."""
    return textwrap.fill(text, 124, break_long_words=False, break_on_hyphens=False)


# The page.


def page(results, several=None):
    """With `several`, a section of what was measured on several devices."""
    about = results.about
    lines = [
        f"# Results on an {results.machine()}",
        "",
        prose(
            f"`benches/report.py` made this page from `{results.name}`, which the benchmark wrote at commit "
            f"`{about['commit']}`, by `{about['command']}`. Milliseconds are medians of the time between two events on the stream. Of "
            "short rows, that is also the time in which the host launches. We take our time, CUB's and "
            "Thrust's in turn in one process, on the same buffers. PyTorch's is taken in a process of its own, just before. "
            "The bytes count each input once and each output once, however often an algorithm reads them. So the "
            "share of a copy's bandwidth says how far an algorithm is from what the memory allows. The ratio is the time of the "
            "fastest peer that was measured divided by ours. The tables by family have the times of all of them. The benchmark compares "
            "results with expected ones, large results in parts; it does not see PyTorch's and CuPy's. The peers: "
            f"{results.peers()}."
        ),
        "",
        prose(
            "Thrust allocates its memory in each call, and waits for results that it returns to the host. Its sorts work in "
            "place, so we copy the keys first. PyTorch's sort also returns the places of the keys. PyTorch waits for the device "
            "where the length of its result depends on the input. It has no unsigned integers of 32 and 64 bits: there it sorts "
            "and searches signed ones. The memory of its results comes from a cache of its own. CuPy's conjugate gradients wait for "
            "the residual in each iteration; ours are a graph of two iterations, which looks at no residual."
        ),
        "",
        *(line for name, reasons in results.missing.items() for line in [f"- {name}: {without(reasons)}"]),
        *([""] if results.missing else []),
        "## Summary",
        "",
        *summary(results),
        *behind_a_peer(results),
    ]
    for family, names in results.families():
        lines += [f"## {family.capitalize()}", ""]
        for kind, what in [("throughput", "Throughput over size"), ("ratio", FASTEST)]:
            lines += [f"![{what}](plots/{kind}-{family}.svg)", ""]
        head = ["", "ms", "bytes", "GB/s", "of a copy", *PEERS.values(), "fastest peer", "ratio"]
        rows = []
        for row in (row for name in names for row in results.algorithms[name]):
            peers = times(row)
            peer, ratio = best(row) or ("", None)
            rows.append(
                [
                    row["name"].replace(" 2^", ", 2^"),
                    digits(row["ms"]),
                    f"{row['bytes']:.0f}",
                    digits(row["GB/s"]),
                    f"{row['of copy']:.2f}",
                    *(digits(peers[name]) if name in peers else "" for name in PEERS.values()),
                    peer,
                    f"{ratio:.2f}" if ratio else "",
                ]
            )
        lines += table(head, rows) + [""]
    lines += ["## Expressions, launches, collectives of a block, rows and columns, sparse matrices", ""]
    for row in results.rows:
        if "algorithm" not in row:
            values = ", ".join(
                f"{key} {value}" if isinstance(value, str) else f"{key} {digits(value)}"
                for key, value in row.items()
                if key != "name" and value
            )
            lines.append(f"- {row['name']}: {values}")
    if several:
        lines += ["", "## Several devices", "", *several_devices(several)]
    return "\n".join(lines) + "\n"


# Several devices.


def several_devices(results):
    """One device beside two, and what goes between them."""
    about = results.about
    rows = [row for row in results.rows if "speed-up" in row]
    names = [row["name"].removeprefix("split, ").rsplit(", ", 1) for row in rows]
    if any(count != "2 GPUs" for _, count in names):
        raise SystemExit(f"{results.name}: the table is of two devices")
    lines = [
        prose(
            f"Measured on two {results.machine()}, of one host, at commit `{about['commit']}`, by `{about['command']}`. Calls go "
            "back to back. A time is the host's, until both devices are done, divided by the number of calls: the median of 11 "
            "samples. The speed-up is the time on one device divided by that on two. The bytes count each input once and each "
            "output once."
        ),
        "",
        *table(
            ["", "one device, ms", "two devices, ms", "GB/s of both", "speed-up"],
            [
                [
                    name.replace(" 2^", ", 2^"),
                    digits(row["one GPU ms"]),
                    digits(row["ms"]),
                    digits(row["GB/s"]),
                    f"{row['speed-up']:.2f}",
                ]
                for row, (name, _) in zip(rows, names)
            ],
        ),
        "",
        prose(
            "An inclusive scan of one call alone takes as long on two devices as on one, as the docs of `split::inclusive_scan` "
            "say: the last device waits for all before it. The host waits for none, so that the first begins the next call "
            "meanwhile."
        ),
        "",
    ]
    between = []
    for row in (row for row in results.rows if "speed-up" not in row):
        name = row["name"].removeprefix("split, ").removesuffix(", 2 GPUs").replace(" 2^", ", 2^")
        between.append([name, digits(row["ms"]), digits(row["GB/s"])])
    text = (
        f"The next table has what goes between the devices. NCCL is {about['NCCL']}, with "
        "`NCCL_NVLS_ENABLE=0`. The bytes are those of one device's buffer."
    )
    return [*lines, prose(text), "", *table(["", "ms", "GB/s"], between)]


# The summary.


def of_first_types(results):
    """The large row of each algorithm's first types and first input, where it has a peer."""
    rows = []
    for algorithm in (name for _, names in results.families() for name in names):
        rows += [row for row in results.line(algorithm) if row["log2"] == LARGE and best(row)]
    return rows


def summary(results):
    by_name = results.by_name
    lines = [f"![{FASTEST}, for each algorithm](plots/ratios.svg)", ""]
    head = ["whole buffers, the fastest peer's time by ours", "2^10", "2^16", "2^20", "2^28", "ms at 2^28", "GB/s", "of a copy", "fastest peer"]
    rows = []
    for algorithm in (name for _, names in results.families() for name in names):
        every = results.types(algorithm)
        for types in every if algorithm in ALL_TYPES else every[:1]:
            line = {row["log2"]: row for row in results.line(algorithm, types)}
            if 28 not in line:
                continue
            large = line[28]
            ratios = [best(line[log2]) if log2 in line else None for log2 in (10, 16, 20, 28)]
            rows.append(
                [
                    title(algorithm, types) if types == every[0] else f"the same, {types}",
                    *(f"{ratio[1]:.2f}" if ratio else "" for ratio in ratios),
                    digits(large["ms"]),
                    digits(large["GB/s"]),
                    f"{large['of copy']:.2f}",
                    (best(large) or [""])[0],
                ]
            )
    lines += table_if_any(head, rows)

    head = ["2^28 elements, one kernel, `out = x + y`", "ms", "GB/s", "of a copy", "CUB's DeviceTransform, ms", "ratio"]
    rows = []
    for types in ["f32", "f64", "f16", "bf16"]:
        row = by_name.get(f"elementwise add {types} 2^28", {})
        if "CUB ms" in row:
            cells = [digits(row["ms"]), f"{row['GB/s']:.0f}", f"{row['of copy']:.2f}", digits(row["CUB ms"])]
            rows.append([types, *cells, f"{row['ratio to CUB']:.2f}"])
    lines += table_if_any(head, rows)

    shapes = [(128, 4), (256, 4), (128, 8), (256, 8)]
    head = ["a block's collective, throughput by CUB's (threads × items)", *(f"{t} × {n}" for t, n in shapes)]
    rows = []
    for label, name in [
        ("reduction, result in the first thread", "block reduce to first {} {}x{}"),
        ("reduction, result in all threads", "block reduce to all {} {}x{}"),
        ("scan, by the better of CUB's algorithms", "block scan {} {}x{}"),
        ("radix sort", "block sort, radix, {} {} x {}"),
        ("merge sort", "block sort, merge, {} {} x {}"),
        ("bitonic sort, by CUB's faster sort", "block sort, network, {} {} x {}"),
    ]:
        for types in ["f32", "i32"]:
            ratios = [by_name.get(name.format(types, *shape), {}).get("ratio to CUB") for shape in shapes]
            if all(ratios):
                rows.append([f"{label if types == 'f32' else 'the same'}, {types}", *(f"{ratio:.2f}" for ratio in ratios)])
    lines += table_if_any(head, rows)

    peers = {"torch": "PyTorch", "torch compiled": "PyTorch, compiled"}
    head = ["rows and columns", "ms", "GB/s", *(f"{name}, ms" for name in peers.values()), "ratio to the faster one"]
    rows = []
    for label, name in [
        ("softmax, 16384 × 4096, f32", "softmax f32 16384x4096"),
        ("the same, f16", "softmax f16 16384x4096"),
        ("layer norm, 16384 × 4096, f32", "layer norm f32 16384x4096"),
        ("the same, f16", "layer norm f16 16384x4096"),
        ("cumulative sum of rows, 8192 × 8192, f32", "cumsum dim 1 f32 8192x8192"),
        ("sum of rows, 16384 × 16384, f32", "sum dim 1 f32 16384x16384"),
        ("sum of columns, the same", "sum dim 0 f32 16384x16384"),
        ("stable sort of rows, 16384 × 4096, f32", "sort dim 1 f32 16384x4096"),
    ]:
        row = by_name.get(name, {})
        if best(row, peers):
            rows.append([label, digits(row["ms"]), f"{row['GB/s']:.0f}", *beside(row, peers)])
    lines += table_if_any(head, rows)

    head = ["sparse matrix times vector", "ms", "GB/s", "cuSPARSE, ms", "ratio", "residual by product"]
    rows = []
    for row in (row for row in results.rows if row["name"].startswith("spmv ") and "cuSPARSE ms" in row):
        residual = by_name.get(row["name"].replace("spmv ", "spmv residual ", 1), {}).get("of the product")
        cells = [digits(row["ms"]), digits(row["GB/s"]), digits(row["cuSPARSE ms"]), f"{row['ratio to cuSPARSE']:.2f}"]
        rows.append([row["name"].removeprefix("spmv "), *cells, f"{residual:.2f}" if residual else ""])
    lines += table_if_any(head, rows)

    peers = {"CUB": "CUB", "CUDA": "CUDA by hand", "Thrust": "Thrust", "torch": "PyTorch", "torch compiled": "PyTorch, compiled", "CuPy": "CuPy, fused"}
    head = ["expressions, one kernel each", "ms", "GB/s", *(f"{name}, ms" for name in peers.values()), "ratio to the fastest"]
    rows = []
    for row in (row for row in results.rows if row["name"].startswith("expression, ") and "GB/s" in row):
        if row["name"].startswith(LORENZ) and int(row["name"].removeprefix(LORENZ)) not in LORENZ_IN_TABLE:
            continue
        label = row["name"].removeprefix("expression, ").replace("8192x8192", "8192 × 8192")
        rows.append([label, digits(row["ms"]), digits(row["GB/s"]), *beside(row, peers)])
    lines += table_if_any(head, rows)
    if any(row["name"].startswith(LORENZ) for row in results.rows):
        lines += ["![Time for a step of an ensemble of Lorenz systems, over their number](plots/lorenz.svg)", ""]
    return lines + host_times(by_name)


def behind(results):
    """The rows that are more than 3 % behind the fastest peer, with that peer's column and ratio; and the number of rows that have a peer."""
    peers = {key: key for key in ALL_PEERS}
    found = [(row, *best(row, peers)) for row in results.rows if best(row, peers)]
    return [(row, key, ratio) for row, key, ratio in found if ratio < LEVEL], len(found)


def behind_a_peer(results):
    rows, count = behind(results)
    if not rows:
        return []
    text = (
        f"Of all {count} rows beside a peer, these are more than 3 % behind. Below some 6 µs, a launch takes most of the time: from run to run the "
        "ratio of a row varies by 5 %. Up to some 12 µs, peers of two launches, such as scans of 2^20 items of CUB, depend on how "
        "fast the host launches: with a faster host, they can pass ours."
    )
    cells = []
    for row, key, ratio in sorted(rows, key=lambda found: found[2]):
        # Sorts of a block have no time of CUB in older records.
        theirs = row.get(f"{key} ms", row["ms"] * ratio)
        cells.append([row["name"].replace(" 2^", ", 2^"), digits(row["ms"]), digits(theirs), ALL_PEERS[key], f"{ratio:.2f}"])
    head = ["", "ms", "the peer's, ms", "fastest peer", "ratio"]
    return ["## Behind a peer", "", prose(text), "", *table(head, cells), ""]


def launch_time(row):
    """A sentence. Older records compare with another call of the driver than ours, and do not name it."""
    driver = f", the driver's own call {row['driver µs']:.2f} µs" if "driver's call" in row else ""
    return f"A typed launch takes {row['µs']:.2f} µs of host time{driver}."


def host_times(by_name):
    """What calls cost on the host, where all of it was measured."""
    lines = []
    if all(name in by_name for name in ["launch, host time", "graph of 100 launches, host time", "first launch"]):
        launch, graph = by_name["launch, host time"], by_name["graph of 100 launches, host time"]
        first = by_name["first launch"]
        text = (
            f"{launch_time(launch)} A graph of 100 launches takes {graph['µs']:.1f} µs; one by one they take "
            f"{graph['one by one µs']:.0f}. A kernel's first launch takes {first['ms']:.1f} ms from its cubin, and {first['PTX load ms']:.0f} ms where the driver "
            "compiles its PTX."
        )
        lines += [prose(text), ""]
    if "reduction of 2^16, host time" in by_name:
        reduction = by_name["reduction of 2^16, host time"]
        text = (
            f"Calls whose blocks share a result, of 2^16 items: a reduction takes {reduction['µs']:.2f} µs of host time, "
            f"{reduction['µs with a workspace']:.2f} µs with a workspace, and the sum of a tensor {reduction['µs of a tensor']:.2f} µs."
        )
        lines += [prose(text), ""]
    if all(name in by_name for name in ["expression, host time", "expression, first evaluation of a form"]):
        host, form = by_name["expression, host time"], by_name["expression, first evaluation of a form"]
        text = (
            f"An evaluation of an expression of five operands takes {host['µs of 5 operands']:.1f} µs of host time, a prepared one "
            f"{host['µs prepared']:.1f} µs, and a plain launch there {host['µs of a launch']:.1f} µs. The first evaluation of a "
            f"form takes {form['ms']:.0f} ms, with the driver's compilation."
        )
        lines += [prose(text), ""]
    return lines


# The README's figures.


def figures(results):
    """A plot and a few numbers."""
    rows = of_first_types(results)
    ratios = {row["algorithm"]: best(row)[1] for row in rows}
    shown = ", ".join(f"{name} {ratios[name]:.2f}" for name in README_ROWS)
    slower = [f"{name} {ratio:.3f}" for name, ratio in ratios.items() if ratio < 1]
    rows_behind, count = behind(results)
    small = [best(row)[1] for name in ratios for row in results.line(name) if row["log2"] == 16 and best(row)]
    lines = [
        f"[![{FASTEST}, for each algorithm](benches/results/plots/ratios.svg)](benches/results/README.md)",
        "",
        prose(
            f"Medians on an {results.machine()}, beside {results.peers()}. A ratio is the time of the fastest "
            f"measured peer divided by ours: above 1 we are faster. At 2^{LARGE} items: {shown}. Behind at that size: "
            f"{', '.join(slower) or 'none'}. At 2^16 items, {sum(ratio >= LEVEL for ratio in small)} of {len(small)} "
            f"algorithms are faster or at most 3 % slower; the median is {statistics.median(small):.2f}. Of all {count} rows beside a "
            f"peer, [{len(rows_behind)} are more than 3 % behind](benches/results/README.md#behind-a-peer). "
            f"{launch_time(results.by_name['launch, host time'])} All rows and plots: [`benches/results/`](benches/results/README.md)."
        ),
    ]
    return "\n".join(lines)


def with_figures(text, lines):
    """A page with other lines between its two marks."""
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{lines}\n{END}{after}"


# The plots: text as text, and colours that can be read on white and on black.

INK = "#808080"
COLOURS = {"ours": "#d9480f", "CUB": "#4c8c2b", "Thrust": "#8a63d2", "PyTorch": "#1c7ed6"}
TYPE_COLOURS = ["#d9480f", "#1c7ed6", "#4c8c2b", "#8a63d2", "#c2255c", "#0c8599", "#b08900"]


def pyplot():
    try:
        import matplotlib
    except ImportError:
        raise SystemExit("the plots need matplotlib: pip install matplotlib") from None
    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams.update(
        {
            "svg.fonttype": "none",
            # The same results make the same file.
            "svg.hashsalt": "kernel-primitives",
            "font.family": "sans-serif",
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "lines.linewidth": 1.4,
            "lines.markersize": 3.5,
            "legend.frameon": False,
            **{f"{key}color": INK for key in ["text.", "axes.edge", "axes.label", "xtick.", "ytick."]},
            "grid.color": INK,
            "grid.alpha": 0.3,
        }
    )
    return plt


class Plots:
    """Where plots go, and the hash of the results that they are of."""

    def __init__(self, plt, folder, hash):
        self.plt, self.folder, self.hash = plt, folder, hash
        folder.mkdir(parents=True, exist_ok=True)

    def save(self, figure, name):
        figure.savefig(self.folder / f"{name}.svg", transparent=True, metadata={"Date": None, "Description": self.hash}, bbox_inches="tight")
        self.plt.close(figure)


def panels(plt, names):
    """A panel an algorithm, three a row."""
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(3.4 * columns, 2.5 * rows + 0.5), squeeze=False)
    for axis in axes.flat[len(names) :]:
        axis.remove()
    for axis in axes.flat[: len(names)]:
        axis.grid(True)
        axis.set_xlabel("items")
    return figure, list(axes.flat[: len(names)])


def legend(figure, lines):
    """One for all panels, of lines by their names."""
    figure.legend(lines.values(), lines.keys(), loc="upper center", ncol=len(lines))
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.4 / figure.get_figheight()))


def sizes_below(axis, exponents):
    exponents = sorted(set(exponents))
    axis.set_xticks(exponents, [f"$2^{{{exponent}}}$" for exponent in exponents])


def throughput(plots, results, family, names):
    figure, axes = panels(plots.plt, names)
    lines = {}
    for axis, algorithm in zip(axes, names):
        rows = results.line(algorithm)
        axis.set_title(title(algorithm, rows[0]["types"]), fontsize=9)
        lines["a copy"] = axis.axhline(rows[-1]["GB/s"] / rows[-1]["of copy"], color=INK, linewidth=1, linestyle="--")
        for who, colour in COLOURS.items():
            found = [(row["log2"], row["bytes"], {"ours": row["ms"], **times(row)}.get(who)) for row in rows]
            points = [(log2, bytes / ms / 1e6) for log2, bytes, ms in found if ms]
            if points:
                (lines[who],) = axis.plot(*zip(*points), marker="o", color=colour, zorder=3 if who == "ours" else 2)
        axis.set_yscale("log")
        axis.set_ylabel("GB/s")
        sizes_below(axis, (row["log2"] for row in rows))
    legend(figure, {who: lines[who] for who in [*COLOURS, "a copy"] if who in lines})
    plots.save(figure, f"throughput-{family}")


def ratio(plots, results, family, names):
    figure, axes = panels(plots.plt, names)
    every = list(dict.fromkeys(types for name in names for types in results.types(name)))
    lines = {}
    for axis, algorithm in zip(axes, names):
        axis.set_title(algorithm, fontsize=9)
        axis.axhline(1, color=INK, linewidth=1)
        exponents = []
        for types in results.types(algorithm):
            points = [(row["log2"], best(row)[1]) for row in results.line(algorithm, types) if best(row)]
            if points:
                colour = TYPE_COLOURS[every.index(types) % len(TYPE_COLOURS)]
                (lines[types.replace("_", ", ")],) = axis.plot(*zip(*points), marker="o", color=colour)
                exponents += [log2 for log2, _ in points]
        axis.set_ylabel("fastest measured peer's time / ours")
        sizes_below(axis, exponents)
    legend(figure, lines)
    plots.save(figure, f"ratio-{family}")


def ratios(plots, results):
    """One dot an algorithm and size."""
    names = [name for _, names in results.families() for name in names]
    figure, axis = plots.plt.subplots(figsize=(7.5, 0.32 * len(names) + 1.2))
    shown = {10: "#f59f00", 16: "#4c8c2b", 20: "#1c7ed6", 28: "#d9480f"}
    for log2, colour in shown.items():
        points = []
        for y, name in enumerate(names):
            row = next((row for row in results.line(name) if row["log2"] == log2), None)
            if row and best(row):
                points.append((best(row)[1], y))
        if points:
            axis.scatter(*zip(*points), color=colour, s=28, label=f"$2^{{{log2}}}$ items", zorder=3)
    axis.axvline(1, color=INK, linewidth=1)
    axis.set_xscale("log", base=2)
    ticks = [tick for tick in (0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 12, 16) if axis.get_xlim()[0] <= tick <= axis.get_xlim()[1]]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    peers = [list(dict.fromkeys(peer for row in results.line(name) for peer in times(row))) for name in names]
    labels = [f"{name} {results.line(name)[0]['types'].replace('_', ', ')}" for name in names]
    axis.set_yticks(range(len(names)), [f"{label} ({', '.join(found) or 'no peer'})" for label, found in zip(labels, peers)])
    axis.invert_yaxis()
    axis.grid(True)
    axis.set_xlabel("the fastest measured peer's time divided by ours: above 1 is faster than each peer in brackets")
    axis.legend(ncol=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    plots.save(figure, "ratios")


def lorenz(plots, results):
    """Of a step of the ensemble: one kernel by an expression, and what others take."""
    rows = {int(row["name"].removeprefix(LORENZ)): row for row in results.rows if row["name"].startswith(LORENZ)}
    if not rows:
        return
    figure, axis = plots.plt.subplots(figsize=(7.5, 3.4))
    for key, name, colour in [
        ("Thrust ms", "Thrust, 16 kernels", COLOURS["Thrust"]),
        ("CUDA ms", "CUDA C++ by hand, one kernel", COLOURS["CUB"]),
        ("ms", "an expression, one kernel", COLOURS["ours"]),
    ]:
        points = [(2**log2, 1e3 * row[key]) for log2, row in sorted(rows.items()) if key in row]
        if points:
            axis.plot(*zip(*points), marker="o", color=colour, label=name)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.grid(True)
    axis.set_xlabel("Lorenz systems, f64")
    axis.set_ylabel("µs a step of Runge and Kutta")
    axis.legend()
    plots.save(figure, "lorenz")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page differs, or a plot is of other results")
    parser.add_argument("--text", action="store_true", help="write no plots")
    parser.add_argument("--json", type=pathlib.Path, default=RESULTS / "h200.json", metavar="FILE", help="the results")
    parser.add_argument("--out", type=pathlib.Path, metavar="FOLDER", help="where page and plots go; other pages stay")
    arguments = parser.parse_args()
    # The pages of the repository are of all rows.
    results = Results(arguments.json, whole=not arguments.out)
    folder = arguments.out or RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    if arguments.out:
        texts = {folder / "README.md": page(results)}
    else:
        several = Results(RESULTS / "h100-x2.json")
        texts = {
            folder / "README.md": page(results, several),
            README: with_figures(README.read_text(encoding="utf-8"), figures(results)),
            SEVERAL: with_figures(SEVERAL.read_text(encoding="utf-8"), "\n".join(several_devices(several))),
        }
    if arguments.check:
        stale = [path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
        kinds = [f"{kind}-{family}" for family, _ in results.families() for kind in ("throughput", "ratio")]
        plots = [folder / f"plots/{name}.svg" for name in ["ratios", "lorenz", *kinds]]
        stale += [path for path in plots if not path.exists() or results.hash not in path.read_text(encoding="utf-8")]
        if stale:
            names = ", ".join(str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path) for path in stale)
            sys.exit(f"not what the results say: {names}; python3 benches/report.py writes them")
        return
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    if arguments.text:
        return
    plots = Plots(pyplot(), folder / "plots", results.hash)
    for family, names in results.families():
        throughput(plots, results, family, names)
        ratio(plots, results, family, names)
    ratios(plots, results)
    lorenz(plots, results)


if __name__ == "__main__":
    main()
