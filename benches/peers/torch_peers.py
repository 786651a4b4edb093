#!/usr/bin/env python3
"""PyTorch's times for the rows of benches/gpu/rows.rs, expressions.rs, stencils.rs, sparse/ and algorithms/, as JSON.

    python3 torch_peers.py --json torch.json [--log2 30]

Needs PyTorch and a GPU. Times are device times between two events in milliseconds, medians over samples of one or several
calls: as the benchmark takes its own (benches/gpu/harness.rs). A call that waits for a number from the device, such as that
of the items which it keeps, has that wait in its time. It is another process, so the two sides' samples are not taken in turn:
run it on an otherwise idle machine, just before the benchmark.
"""

import argparse
import json
import statistics

import torch

# As in benches/gpu/harness.rs.
BATCH = 8
SAMPLES = (7, 25)
ROW_MS = 100.0
SAMPLE_MS = 8.0

# As in benches/gpu/algorithms/mod.rs.
EVERY = [10, 12, 16, 20, 24, 28, 30]
MOST = [10, 12, 16, 20, 24, 28]
SOME = [10, 16, 20, 28]
LARGE = [20, 28]


def sample(call, batch):
    """Milliseconds of device time of one call, from so many."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(batch):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / batch


def measure(call):
    """The median."""
    sample(call, 1)
    ms = max(sample(call, 1), 1e-3)
    batch = int(min(max(SAMPLE_MS // ms, 1), BATCH))
    samples = int(min(max(ROW_MS // (batch * ms), SAMPLES[0]), SAMPLES[1]))
    return statistics.median(sample(call, batch) for _ in range(samples))


def uniform(*shape, dtype=torch.float32):
    """Uniform from -1 to 1."""
    return (torch.rand(*shape, device="cuda") * 2 - 1).to(dtype)


def rows_and_columns():
    """Of benches/gpu/rows.rs."""
    for name, dtype in [("f32", torch.float32), ("f16", torch.float16)]:
        x = uniform(16384, 4096, dtype=dtype)
        a = uniform(4096, dtype=dtype)
        yield f"softmax {name} 16384x4096", measure(lambda: torch.softmax(x, 1))
        norm = torch.nn.functional.layer_norm
        yield f"layer norm {name} 16384x4096", measure(lambda: norm(x, (4096,), a, a, 1e-5))
    x = uniform(8192, 8192)
    yield "cumsum dim 1 f32 8192x8192", measure(lambda: torch.cumsum(x, 1))
    x = uniform(16384, 16384)
    yield "sum dim 1 f32 16384x16384", measure(lambda: x.sum(1))
    yield "sum dim 0 f32 16384x16384", measure(lambda: x.sum(0))
    x = uniform(16384, 4096)
    # Stable, as the kernel's is.
    yield "sort dim 1 f32 16384x4096", measure(lambda: torch.sort(x, dim=1, stable=True))


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


def algorithms(largest):
    """Of benches/gpu/algorithms/: PyTorch has no unsigned integers of 32 or 64 bits, and an i32 sorts as an u32 does."""

    def row(algorithm, name, sizes, make, input="", label=None):
        for log2 in sizes:
            if log2 > largest:
                continue
            between = f" {input} " if input else " "
            title = f"{algorithm} {label or name}{between}2^{log2}"
            try:
                yield title, measure(make(1 << log2))
            except Exception as error:  # of a type or a size that PyTorch does not take
                print(f"{title}: {str(error).splitlines()[0]}")
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
        yield from row("transform", name, some, add(name))
        yield from row("fill", name, some, into(name, lambda x, out: out.fill_(7)))
        yield from row("reduce", name, most, unary(name, lambda x, total=total: torch.sum(x, dtype=total)))
        cumsum = into(name, lambda x, out, dtype=dtype: torch.cumsum(x, 0, dtype=dtype, out=out))
        yield from row("inclusive_scan", name, most, cumsum)
        yield from row("adjacent_difference", name, SOME, unary(name, lambda x: torch.diff(x)))
        yield from row("select", name, MOST if name == "f32" else SOME, unary(name, lambda x: x[x < 50]))
        yield from row("unique", name, SOME, runs(name, 16))
        keys = MOST if name == "f32" else SOME
        yield from row("sort_keys", name, keys, unary(name, lambda x: torch.sort(x), "keys"))
    yield from row("select", "i32", EVERY, unary("i32", lambda x: x[x < 50]), label="u32")
    yield from row("unique", "i32", MOST, runs("i32", 16), label="u32")
    # PyTorch sorts values of its own along, the places of the keys: a sort of pairs.
    yield from row("sort_keys", "i32", EVERY, unary("i32", lambda x: torch.sort(x), "keys"), label="u32")
    for input in ["constant", "few distinct"]:
        sort = unary("i32", lambda x: torch.sort(x), input)
        yield from row("sort_keys", "i32", LARGE, sort, input, label="u32")
    for name, label, sizes in [("i32", "u32", MOST), ("f32", "f32", SOME), ("i64", "i64", SOME)]:
        sort = unary(name, lambda x: torch.sort(x, stable=True), "keys")
        yield from row("sort_by", name, sizes, sort, label=label)
    for input, k, sizes in [("", 100, MOST), ("k = 10", 10, LARGE), ("k = 1000", 1000, LARGE)]:
        yield from row("top_k", "f32", sizes, unary("f32", lambda x, k=k: torch.topk(x, k), "keys"), input)
    yield from row("histogram_even", "u8", MOST, unary("u8", lambda x: torch.bincount(x, minlength=256)))

    def histogram(n):
        x = torch.rand(n, device="cuda") * 256
        return lambda: torch.histc(x, bins=256, min=0, max=256)

    yield from row("histogram_even", "f32", MOST, histogram)

    def search(name):
        def make(n):
            ordered = (torch.arange(n, device="cuda") * 2).to(TYPES[name])
            queries = torch.randint(2 * n, (n,), device="cuda").to(TYPES[name])
            return lambda: torch.searchsorted(ordered, queries)

        return make

    yield from row("lower_bound", "i32", MOST, search("i32"), label="u32")
    yield from row("lower_bound", "i64", [16, 24], search("i64"), label="u64")
    yield from row("lower_bound", "f64", [16, 24], search("f64"))

    def segments(n):
        x = numbers("f32", n).view(-1, 1024)
        return lambda: torch.sum(x, 1)

    yield from row("segmented_reduce", "f32", MOST, segments)


def expressions(largest):
    """Of benches/gpu/expressions.rs: eager, compiled, and fused by CuPy where that is installed."""
    log2 = min(largest, 28)
    n = 1 << log2
    b, c, d, e, f, g, h, k = (uniform(n) for _ in range(8))
    out = torch.empty(n, device="cuda")

    def two(b, c):
        return b + c

    def five(b, c, d, e, f):
        return b + c * d + torch.sin(e) * f + 10

    def nine(b, c, d, e, f, g, h, k):
        return (b + c * d + torch.sin(e) * f + 10) - g * h / (k + 1)

    cases = [(2, two, (b, c)), (5, five, (b, c, d, e, f)), (9, nine, (b, c, d, e, f, g, h, k))]
    for count, function, inputs in cases:
        name = f"expression, {count} operands, f32 2^{log2}"
        yield name, measure(lambda: function(*inputs))
        try:
            compiled = torch.compile(function)
            yield f"{name}, compiled", measure(lambda: compiled(*inputs))
        except Exception as error:  # without a compiler for the host
            print(f"{name}, compiled: {str(error).splitlines()[0]}")
    try:
        import cupy
    except ImportError:
        cupy = None
    if cupy:
        arrays = [cupy.asarray(x) for x in (b, c, d, e, f, g, h, k)]
        fused = [
            (2, cupy.fuse(kernel_name="two")(lambda b, c: b + c)),
            (5, cupy.fuse(kernel_name="five")(lambda b, c, d, e, f: b + c * d + cupy.sin(e) * f + 10)),
            (
                9,
                cupy.fuse(kernel_name="nine")(lambda b, c, d, e, f, g, h, k: (b + c * d + cupy.sin(e) * f + 10) - g * h / (k + 1)),
            ),
        ]
        stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)
        for count, function in fused:
            inputs = arrays[: {2: 2, 5: 5, 9: 8}[count]]

            def call():
                with stream:
                    function(*inputs)

            yield f"expression, {count} operands, f32 2^{log2}, in CuPy", measure(call)
    yield f"expression, sum of a * b, f32 2^{log2}", measure(lambda: torch.dot(b, c))
    yield f"expression, uniform, f32 2^{log2}", measure(lambda: out.uniform_())
    yield f"expression, normal, f32 2^{log2}", measure(lambda: out.normal_())
    del b, c, d, e, f, g, h, k, out
    torch.cuda.empty_cache()
    side = 8192
    m, row, result = uniform(side, side), uniform(side), torch.empty(side, side, device="cuda")
    named = "expression, {}, f32 8192x8192".format
    yield named("transpose"), measure(lambda: result.copy_(m.t()))
    yield named("m * transposed m"), measure(lambda: torch.mul(m, m.t(), out=result))
    yield named("plus a row"), measure(lambda: torch.add(m, row, out=result))
    yield named("plus a column"), measure(lambda: torch.add(m, row[:, None], out=result))
    half, even = result[:, : side // 2], m[:, ::2]
    yield named("every second column times 2"), measure(lambda: torch.mul(even, 2, out=half))
    yield named("sum of columns of m * m"), measure(lambda: (m * m).sum(0))
    yield named("sum of rows of m * m"), measure(lambda: (m * m).sum(1))


def stencils(largest):
    """Of benches/gpu/stencils.rs, as convolutions, with a border of zeros."""
    log2 = min(largest, 28)

    def convolution(call, weights, *shape):
        x, w = uniform(1, 1, *shape), torch.rand(1, 1, *weights, device="cuda")
        return measure(lambda: call(x, w, padding="same"))

    side = 1 << log2 // 2
    yield f"stencil, 5 points, f32 {side}x{side}", convolution(torch.nn.functional.conv2d, (3, 3), side, side)
    side = 768 if log2 == 28 else 1 << log2 // 3
    yield f"stencil, 7 points, f32 {side}x{side}x{side}", convolution(torch.nn.functional.conv3d, (3, 3, 3), side, side, side)
    for width, n in [(9, 1 << log2), (33, 1 << log2), (2048, 1 << min(log2, 24))]:
        yield f"stencil, width {width}, f32 {n}", convolution(torch.nn.functional.conv1d, (width,), n)


def products():
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
            yield title, measure(lambda: a @ x)
        del a
        torch.cuda.empty_cache()


def sparse():
    """Of benches/gpu/sparse/."""
    yield from products()
    yield from gradients()


def gradients():
    """Of benches/gpu/sparse/: conjugate gradients by CuPy, where that is installed."""
    try:
        import cupy
        from cupyx.scipy.sparse import diags, eye, kron
        from cupyx.scipy.sparse.linalg import cg
    except ImportError:
        return
    n, steps = 128, 50
    line = diags([2.0, -1.0, -1.0], [0, 1, -1], shape=(n, n), format="csr")
    one = eye(n, format="csr")
    a = (kron(kron(line, one), one) + kron(kron(one, line), one) + kron(kron(one, one), line)).tocsr()
    b = cupy.random.default_rng(1).random(n**3)
    times = []
    for _ in range(9):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        cg(a, b, rtol=0.0, atol=0.0, maxiter=steps)
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, end) / steps)
    yield f"conjugate gradients, an iteration, f64 Poisson {n}^3, in CuPy", sorted(times[1:])[len(times) // 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", required=True, metavar="FILE")
    parser.add_argument("--log2", type=int, default=30, metavar="N", help="the logarithm of the largest size")
    parser.add_argument("--only", choices=["algorithms", "rows", "expressions", "stencils", "sparse"], help="one group of rows")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("PyTorch finds no GPU")
    times = {}
    with torch.no_grad():
        for group, rows in [
            ("rows", rows_and_columns()),
            ("expressions", expressions(arguments.log2)),
            ("stencils", stencils(arguments.log2)),
            ("sparse", sparse()),
            ("algorithms", algorithms(arguments.log2)),
        ]:
            if arguments.only not in [None, group]:
                continue
            for name, ms in rows:
                print(f"{name:34}  ms {ms:.4f}", flush=True)
                times[name] = ms
    result = {"torch": torch.__version__, "device": torch.cuda.get_device_name(), "rows": times}
    with open(arguments.json, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=2)


if __name__ == "__main__":
    main()
