#!/usr/bin/env python3
"""PyTorch's times for the rows of benches/gpu/rows.rs, expressions.rs, stencils.rs, sparse/ and algorithms/, as JSON.

    python3 torch_peers.py --json torch.json [--log2 30]

Needs PyTorch and a GPU. Times are those between two events in milliseconds, medians over samples of one or several calls: as
the benchmark takes its own (benches/gpu/harness.rs). A call that waits for a number from the device, such as that of the items
which it keeps, has that wait in its time. It is another process, so the two sides' samples are not taken in turn: run it on an
otherwise idle machine, just before the benchmark.

The JSON says under "missing" which rows have no time of a peer, and why: the largest size may not fit into memory, and CuPy may
not be installed. Anything else that fails is under "failures". Then the program ends with an error, after all rows.
"""

import argparse
import json
import statistics
import sys

import torch

# As in benches/gpu/harness.rs.
BATCH = 8
SAMPLES = (7, 25)
ROW_MS = 300.0
SAMPLE_MS = 8.0

# As in benches/gpu/algorithms/mod.rs.
EVERY = [10, 12, 16, 20, 24, 28, 30]
MOST = [10, 12, 16, 20, 24, 28]
SOME = [10, 16, 20, 28]
LARGE = [20, 28]

# The peers by their columns, with what the names of their times end with: as in benches/gpu/harness.rs.
SUFFIXES = {"torch": "", "torch compiled": ", compiled", "CuPy": ", in CuPy"}


def sample(call, batch):
    """Milliseconds of one call, from so many."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    if batch > 1:
        # Not timed: the device is busy when the first timed call comes.
        call()
    start.record()
    for _ in range(batch):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / batch


def measure(call):
    """The median, which is the mean of the middle two of an even number."""
    sample(call, 1)
    ms = max(sample(call, 1), 1e-3)
    batch = int(min(max(SAMPLE_MS // ms, 1), BATCH))
    samples = int(min(max(ROW_MS // (batch * ms), SAMPLES[0]), SAMPLES[1]))
    return statistics.median(sample(call, batch) for _ in range(samples))


class Record:
    """Milliseconds by the names of rows, and what has none."""

    def __init__(self):
        self.times, self.missing, self.failures = {}, {}, []

    def take(self, name, make, peer="torch", may_be_too_large=False, per=1):
        """The time of the call that `make` prepares, divided by `per`."""
        title = name + SUFFIXES[peer]
        try:
            ms = measure(make()) / per
        except Exception as error:
            if may_be_too_large and isinstance(error, torch.cuda.OutOfMemoryError):
                self.miss(name, peer, "out of memory")
            else:
                self.fail(title, error)
        else:
            self.times[title] = ms
            print(f"{title:34}  ms {ms:.4f}", flush=True)

    def again(self, name, other):
        """Gives another row the times of a row."""
        self.times.update({other + end: self.times[name + end] for end in SUFFIXES.values() if name + end in self.times})

    def miss(self, name, peer, reason):
        print(f"{name}: no time of {peer}, {reason}", flush=True)
        self.missing.setdefault(name, {})[peer] = reason

    def fail(self, what, error):
        lines = str(error).strip().splitlines() or [""]
        self.failures.append(f"{what}: {type(error).__name__}: {lines[0]}")
        print(f"FAILED {self.failures[-1]}", flush=True)

    def compiled(self, name, function, *arguments, tuned=False):
        """Of a function that is compiled for these arguments, or for the fastest of several ways."""

        def make():
            # Otherwise a function of the same source would be compiled for any shape the second time.
            torch.compiler.reset()
            mode = "max-autotune-no-cudagraphs" if tuned else "default"
            call = torch.compile(function, mode=mode, dynamic=False)
            return lambda: call(*arguments)

        self.take(name, make, "torch compiled")

    def both(self, name, function, *arguments, tuned=False):
        """As it is, and compiled."""
        self.take(name, lambda: lambda: function(*arguments))
        self.compiled(name, function, *arguments, tuned=tuned)


def uniform(*shape, dtype=torch.float32):
    """Uniform from -1 to 1."""
    return (torch.rand(*shape, device="cuda") * 2 - 1).to(dtype)


def rows_and_columns(record, _):
    """Of benches/gpu/rows.rs."""
    for name, dtype in [("f32", torch.float32), ("f16", torch.float16)]:
        x = uniform(16384, 4096, dtype=dtype)
        a = uniform(4096, dtype=dtype)
        norm = torch.nn.functional.layer_norm
        record.both(f"softmax {name} 16384x4096", lambda x: torch.softmax(x, 1), x, tuned=True)
        record.both(f"layer norm {name} 16384x4096", lambda x, a: norm(x, (4096,), a, a, 1e-5), x, a, tuned=True)
    x = uniform(8192, 8192)
    record.both("cumsum dim 1 f32 8192x8192", lambda x: torch.cumsum(x, 1), x)
    x = uniform(16384, 16384)
    record.both("sum dim 1 f32 16384x16384", lambda x: x.sum(1), x, tuned=True)
    record.both("sum dim 0 f32 16384x16384", lambda x: x.sum(0), x, tuned=True)
    x = uniform(16384, 4096)
    # Stable, as the kernel's is.
    record.take("sort dim 1 f32 16384x4096", lambda: lambda: torch.sort(x, dim=1, stable=True))


TYPES = {
    "u8": torch.uint8,
    "i32": torch.int32,
    "i64": torch.int64,
    "f16": torch.float16,
    "f32": torch.float32,
    "f64": torch.float64,
}


def numbers(name, n, input=""):
    """Integers from 0 to 99 as elements of a type, bytes or keys of any value, as an input of this name has them."""
    dtype = TYPES[name]
    if input == "constant":
        return torch.full((n,), 7, dtype=dtype, device="cuda")
    if input == "few distinct":
        return torch.randint(8, (n,), dtype=dtype, device="cuda")
    if input == "keys":
        if dtype.is_floating_point:
            return (torch.rand(n, device="cuda") * 65000 - 32500).to(dtype)
        limits = torch.iinfo(dtype)
        return torch.randint(limits.min, limits.max, (n,), dtype=dtype, device="cuda")
    return torch.randint(256 if name == "u8" else 100, (n,), dtype=dtype, device="cuda")


def algorithms(record, largest):
    """Of benches/gpu/algorithms/. Rows of u32 and u64 are of i32 and i64: PyTorch does not sort or search unsigned ones of these sizes."""

    def row(algorithm, name, sizes, make, input="", label=None):
        for log2 in sizes:
            if log2 > largest:
                continue
            between = f" {input} " if input else " "
            title = f"{algorithm} {label or name}{between}2^{log2}"
            record.take(title, lambda: make(1 << log2), may_be_too_large=log2 == largest)
            if log2 >= 28:
                torch.cuda.empty_cache()

    def unary(name, function, input=""):
        def make(n):
            x = numbers(name, n, input)
            return lambda: function(x)

        return make

    def add(name):
        def make(n):
            x, y, out = numbers(name, n), numbers(name, n), torch.empty(n, dtype=TYPES[name], device="cuda")
            return lambda: torch.add(x, y, out=out)

        return make

    def into(name, function):
        """A function with an output of the input's length."""

        def make(n):
            x = numbers(name, n)
            out = torch.empty_like(x)
            return lambda: function(x, out)

        return make

    def runs(name, length):
        def make(n):
            x = (torch.arange(n, device="cuda") // length % 1000).to(TYPES[name])
            return lambda: torch.unique_consecutive(x)

        return make

    sizes = {
        "f32": (EVERY, EVERY),
        "i32": (SOME, EVERY),
        "f64": (SOME, MOST),
        "i64": (SOME, MOST),
        "f16": (SOME, MOST),
    }
    for name, (some, most) in sizes.items():
        dtype = TYPES[name]
        # f16 is summed up in f32, as ours.
        total = torch.float32 if name == "f16" else dtype
        row("transform", name, some, add(name))
        row("fill", name, some, into(name, lambda x, out: out.fill_(7)))
        row("reduce", name, most, unary(name, lambda x, total=total: torch.sum(x, dtype=total)))
        cumsum = into(name, lambda x, out, dtype=dtype: torch.cumsum(x, 0, dtype=dtype, out=out))
        row("inclusive_scan", name, most, cumsum)
        row("adjacent_difference", name, SOME, unary(name, lambda x: torch.diff(x)))
        row("select", name, MOST if name == "f32" else SOME, unary(name, lambda x: x[x < 50]))
        row("unique", name, SOME, runs(name, 16))
        keys = MOST if name == "f32" else SOME
        row("sort_keys", name, keys, unary(name, lambda x: torch.sort(x), "keys"))
    row("select", "i32", EVERY, unary("i32", lambda x: x[x < 50]), label="u32")
    row("unique", "i32", MOST, runs("i32", 16), label="u32")
    # PyTorch sorts values of its own along, the places of the keys: a sort of pairs.
    row("sort_keys", "i32", EVERY, unary("i32", lambda x: torch.sort(x), "keys"), label="u32")
    row("sort_keys", "i64", MOST, unary("i64", lambda x: torch.sort(x), "keys"), label="u64")
    row("sort_keys", "i64", LARGE, unary("i64", lambda x: torch.sort(x), "few distinct"), "few distinct", label="u64")
    for input in ["constant", "few distinct"]:
        row("sort_keys", "i32", LARGE, unary("i32", lambda x: torch.sort(x), input), input, label="u32")
        row("sort_by", "i32", LARGE, unary("i32", lambda x: torch.sort(x, stable=True), input), input, label="u32")
    for name, label, sizes in [("i32", "u32", MOST), ("f32", "f32", SOME), ("i64", "i64", SOME), ("f16", "f16", SOME)]:
        sort = unary(name, lambda x: torch.sort(x, stable=True), "keys")
        row("sort_by", name, sizes, sort, label=label)
    for input, k, sizes in [("", 100, MOST), ("k = 10", 10, LARGE), ("k = 1000", 1000, LARGE)]:
        row("top_k", "f32", sizes, unary("f32", lambda x, k=k: torch.topk(x, k), "keys"), input)
    row("histogram_even", "u8", MOST, unary("u8", lambda x: torch.bincount(x, minlength=256)))

    def histogram(n):
        x = torch.rand(n, device="cuda") * 256
        return lambda: torch.histc(x, bins=256, min=0, max=256)

    row("histogram_even", "f32", MOST, histogram)

    def search(name):
        def make(n):
            ordered = (torch.arange(n, device="cuda") * 2).to(TYPES[name])
            queries = torch.randint(2 * n, (n,), device="cuda").to(TYPES[name])
            return lambda: torch.searchsorted(ordered, queries)

        return make

    row("lower_bound", "i32", MOST, search("i32"), label="u32")
    row("lower_bound", "i64", [16, 24], search("i64"), label="u64")
    row("lower_bound", "f64", [16, 24], search("f64"))

    def segments(name, function, input=""):
        """Rows of 1024 items."""

        def make(n):
            x = numbers(name, n, input).view(-1, 1024)
            return lambda: function(x)

        return make

    for name, sizes in [("f32", MOST), ("i32", SOME), ("f64", SOME)]:
        dtype = TYPES[name]
        row("segmented_reduce", name, sizes, segments(name, lambda x, dtype=dtype: torch.sum(x, 1, dtype=dtype)))
    row("segmented_sort", "i32", MOST, segments("i32", lambda x: torch.sort(x, dim=1), "keys"), label="u32")

    def arange(n):
        out = torch.empty(n, dtype=torch.int64, device="cuda")
        return lambda: torch.arange(n, out=out)

    row("generate", "i64", SOME, arange, label="u64")

    def gather(n):
        x, out = numbers("f32", n), torch.empty(n, device="cuda")
        at = torch.randperm(n, dtype=torch.int32, device="cuda")
        return lambda: torch.index_select(x, 0, at, out=out)

    def scatter(n):
        # Its places are of 64 bits: it takes no others.
        x, out, at = numbers("f32", n), torch.empty(n, device="cuda"), torch.randperm(n, device="cuda")
        return lambda: out.scatter_(0, at, x)

    row("gather", "f32", SOME, gather)
    row("scatter", "f32", SOME, scatter)


def expressions(record, largest):
    """Of benches/gpu/expressions.rs: eager, compiled, and fused by CuPy where that is installed."""
    log2 = min(largest, 28)
    n = 1 << log2
    b, c, d, e, f, g, h, k = (uniform(n) for _ in range(8))
    out = torch.empty(n, device="cuda")
    named = f"expression, {{}}, f32 2^{log2}".format

    def two(b, c):
        return b + c

    def five(b, c, d, e, f, sin=torch.sin):
        return b + c * d + sin(e) * f + 10

    def nine(b, c, d, e, f, g, h, k, sin=torch.sin):
        return five(b, c, d, e, f, sin) - g * h / (k + 1)

    for count, function, inputs in [(2, two, (b, c)), (5, five, (b, c, d, e, f)), (9, nine, (b, c, d, e, f, g, h, k))]:
        record.both(named(f"{count} operands"), function, *inputs)
    try:
        import cupy
    except ImportError:
        for count in [2, 5, 9]:
            record.miss(named(f"{count} operands"), "CuPy", "not installed")
    else:
        fused = [
            (2, 2, cupy.fuse(kernel_name="two")(two)),
            (5, 5, cupy.fuse(kernel_name="five")(lambda b, c, d, e, f: five(b, c, d, e, f, cupy.sin))),
            (9, 8, cupy.fuse(kernel_name="nine")(lambda b, c, d, e, f, g, h, k: nine(b, c, d, e, f, g, h, k, cupy.sin))),
        ]
        arrays = [cupy.asarray(x) for x in (b, c, d, e, f, g, h, k)]
        stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)
        for count, inputs, function in fused:

            def call():
                with stream:
                    function(*arrays[:inputs])

            record.take(named(f"{count} operands"), lambda: call, "CuPy")
        del arrays
    record.take(named("sum of a * b"), lambda: lambda: torch.dot(b, c))
    record.compiled(named("sum of a * b"), lambda b, c: (b * c).sum(), b, c, tuned=True)
    record.take(named("uniform"), lambda: lambda: out.uniform_())
    record.take(named("normal"), lambda: lambda: out.normal_())
    del b, c, d, e, f, g, h, k, out
    torch.cuda.empty_cache()
    side = 8192
    m, row = uniform(side, side), uniform(side)
    named = f"expression, {{}}, f32 {side}x{side}".format
    record.both(named("transpose"), lambda m: m.t().contiguous(), m, tuned=True)
    record.both(named("m * transposed m"), lambda m: m * m.t(), m, tuned=True)
    record.both(named("plus a row"), lambda m, row: m + row, m, row)
    record.both(named("plus a column"), lambda m, row: m + row[:, None], m, row)
    record.both(named("every second column times 2"), lambda m: m[:, ::2] * 2, m)
    record.both(named("sum of columns of m * m"), lambda m: (m * m).sum(0), m, tuned=True)
    record.both(named("sum of rows of m * m"), lambda m: (m * m).sum(1), m, tuned=True)


def stencils(record, largest):
    """Of benches/gpu/stencils.rs: as slices, and those of a row as convolutions, too. The border is there before the time begins."""
    log2 = min(largest, 28)
    # The fastest of cuDNN's ways. PyTorch lets it round to TF32.
    torch.backends.cudnn.benchmark = True

    def with_border(x, before, after):
        """As if the outermost elements went on."""
        for axis, extent in enumerate(x.shape):
            x = x.index_select(axis, torch.arange(-before, extent + after, device="cuda").clamp(0, extent - 1))
        return x

    def five(p):
        return 0.25 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:])

    def seven(p):
        c = slice(1, -1)
        return p[:-2, c, c] + p[2:, c, c] + p[c, :-2, c] + p[c, 2:, c] + p[c, c, :-2] + p[c, c, 2:] - 6 * p[c, c, c]

    side = 1 << log2 // 2
    p, f = with_border(uniform(side, side), 1, 1), uniform(side, side)
    record.both(f"stencil, 5 points, f32 {side}x{side}", five, p, tuned=True)
    name = f"stencil, norm of a residual of 5 points, f32 {side}x{side}"
    record.both(name, lambda p, f: (f - five(p)).square().sum(), p, f, tuned=True)
    side = 768 if log2 == 28 else 1 << log2 // 3
    p = with_border(uniform(side, side, side), 1, 1)
    record.both(f"stencil, 7 points, f32 {side}x{side}x{side}", seven, p, tuned=True)
    for width, n in [(9, 1 << log2), (33, 1 << log2), (2048, 1 << min(log2, 24))]:
        p = with_border(uniform(n), width // 2, width - 1 - width // 2)
        w = torch.tensor([k % 5 / 8 for k in range(width)], device="cuda")
        name = f"stencil, width {width}, f32 {n}"
        record.take(name, lambda: lambda: torch.nn.functional.conv1d(p[None, None], w[None, None]))
        if width < 100:
            record.compiled(name, lambda p, w: sum(w[k] * p[k : k + n] for k in range(width)), p, w)
        # The same: another row of ours stands beside it, too.
        record.again(name, f"{name}, contracted")
        torch.cuda.empty_cache()


def products(record):
    """Of benches/gpu/sparse/: matrices in compressed rows times a vector or several, of the same patterns with other random numbers."""

    def matrix(lengths, columns, side, dtype):
        offsets = torch.zeros(side + 1, dtype=torch.int64, device="cuda")
        torch.cumsum(lengths, 0, out=offsets[1:])
        values = uniform(len(columns), dtype=dtype)
        return torch.sparse_csr_tensor(offsets.int(), columns.int(), values, size=(side, side))

    def grid(extents, steps, dtype, permuted=False):
        """Each point of a grid with its neighbours at these steps, if they are inside."""
        side = 1
        for extent in extents:
            side *= extent
        row = torch.arange(side, device="cuda")
        of = torch.unravel_index(row, extents)
        columns, inside = [], []
        for step in steps:
            at = [index + by for index, by in zip(of, step)]
            kept = torch.ones(side, dtype=torch.bool, device="cuda")
            number = torch.zeros_like(row)
            for index, extent in zip(at, extents):
                kept &= (index >= 0) & (index < extent)
                number = number * extent + index
            columns.append(number)
            inside.append(kept)
        columns, inside = torch.stack(columns, 1), torch.stack(inside, 1)
        if permuted:
            order = torch.randperm(side, device="cuda")
            # The point in a row, and the number of a point.
            number = torch.empty_like(order)
            number[order] = row
            columns, inside = columns[order], inside[order]
            columns = number[columns.clamp(0, side - 1)]
        return matrix(inside.sum(1), columns[inside], side, dtype)

    def poisson(n, dtype):
        steps = [(-1, 0, 0), (0, -1, 0), (0, 0, -1), (0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)]
        return grid((n, n, n), steps, dtype)

    def mesh(n, dtype):
        return grid((n, n), [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)], dtype, permuted=True)

    def random(side, lengths, dtype):
        return matrix(lengths, torch.randint(side, (int(lengths.sum()),), device="cuda"), side, dtype)

    def sixteen(side, dtype):
        return random(side, torch.full((side,), 16, device="cuda"), dtype)

    def zipf(side, dtype):
        rank = torch.randperm(side, device="cuda") + 1
        return random(side, (7_700_000 // rank).clamp(max=side), dtype)

    def band(side, dtype):
        lengths = torch.randint(5, 45, (side,), device="cuda")
        row = torch.repeat_interleave(torch.arange(side, device="cuda"), lengths)
        columns = (row + torch.randint(-2000, 2001, row.shape, device="cuda")).clamp(0, side - 1)
        return matrix(lengths, columns, side, dtype)

    f32, f64 = torch.float32, torch.float64
    cases = [
        ("f32 Poisson 256^3", lambda: poisson(256, f32), [1]),
        ("f64 Poisson 256^3", lambda: poisson(256, f64), [1]),
        ("f32 Poisson 128^3", lambda: poisson(128, f32), [4, 32]),
        ("f64 Poisson 128^3", lambda: poisson(128, f64), [1]),
        ("f32 random 2^22", lambda: sixteen(1 << 22, f32), [1]),
        ("f32 Zipf 2^20", lambda: zipf(1 << 20, f32), [1]),
        ("f64 mesh 2^22", lambda: mesh(2048, f64), [1]),
        ("f64 band 2^21", lambda: band(1 << 21, f64), [1]),
    ]
    for name, make, counts in cases:
        a = make()
        for count in counts:
            x = uniform(a.shape[1], dtype=a.dtype) if count == 1 else uniform(a.shape[1], count, dtype=a.dtype)
            title = f"spmv {name}" if count == 1 else f"spmm {name}, {count} vectors"
            record.take(title, lambda: lambda: a @ x)
        del a
        torch.cuda.empty_cache()


def sparse(record, _):
    """Of benches/gpu/sparse/."""
    products(record)
    gradients(record)


def gradients(record):
    """Of benches/gpu/sparse/: conjugate gradients by CuPy, where that is installed."""
    n, steps = 128, 50
    name = f"conjugate gradients, an iteration, f64 Poisson {n}^3"
    try:
        import cupy
        from cupyx.scipy.sparse import diags, eye, kron
        from cupyx.scipy.sparse.linalg import cg
    except ImportError:
        record.miss(name, "CuPy", "not installed")
        return
    line = diags([2.0, -1.0, -1.0], [0, 1, -1], shape=(n, n), format="csr")
    one = eye(n, format="csr")
    a = (kron(kron(line, one), one) + kron(kron(one, line), one) + kron(kron(one, one), line)).tocsr()
    b = cupy.random.default_rng(1).random(n**3)
    # On the same stream as the events.
    record.take(name, lambda: lambda: cg(a, b, rtol=0.0, atol=0.0, maxiter=steps), "CuPy", per=steps)


GROUPS = {"rows": rows_and_columns, "expressions": expressions, "stencils": stencils, "sparse": sparse, "algorithms": algorithms}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", required=True, metavar="FILE")
    parser.add_argument("--log2", type=int, default=30, metavar="N", help="the logarithm of the largest size")
    parser.add_argument("--only", choices=GROUPS, help="one group of rows")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("PyTorch finds no GPU")
    record = Record()
    with torch.no_grad():
        for name, group in GROUPS.items():
            if arguments.only not in [None, name]:
                continue
            try:
                group(record, arguments.log2)
            except Exception as error:  # what all rows after it need
                record.fail(f"the group {name}", error)
            torch.cuda.empty_cache()
    result = {"torch": torch.__version__, "device": torch.cuda.get_device_name()}
    if "cupy" in sys.modules:
        result["cupy"] = sys.modules["cupy"].__version__
    result |= {"failures": record.failures, "missing": record.missing, "rows": record.times}
    with open(arguments.json, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=2)
    if record.failures:
        sys.exit("\n    ".join([f"{len(record.failures)} failed:", *record.failures]))


if __name__ == "__main__":
    main()
