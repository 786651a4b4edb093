#!/usr/bin/env python3
"""PyTorch's times for the rows of benches/gpu/rows.rs, as JSON.

    python3 torch_peers.py --json torch.json

Needs PyTorch and a GPU. Times are device times between two events, medians over 25 samples of 8 calls each, in milliseconds:
as the benchmark takes its own. It is another process, so the two sides' samples are not taken in turn: run it on an
otherwise idle machine, just before the benchmark.
"""

import argparse
import json
import statistics

import torch

BATCH = 8
SAMPLES = 25


def measure(call):
    """Milliseconds of device time of one call."""
    times = []
    for sample in range(SAMPLES + 2):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(BATCH):
            call()
        end.record()
        end.synchronize()
        if sample >= 2:
            times.append(start.elapsed_time(end) / BATCH)
    return statistics.median(times)


def uniform(*shape, dtype=torch.float32):
    """Uniform from -1 to 1."""
    return (torch.rand(*shape, device="cuda") * 2 - 1).to(dtype)


def rows():
    """The names of the rows and their times."""
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", required=True, metavar="FILE")
    path = parser.parse_args().json
    if not torch.cuda.is_available():
        raise SystemExit("PyTorch finds no GPU")
    times = {}
    with torch.no_grad():
        for name, ms in rows():
            print(f"{name:34}  ms {ms:.4f}")
            times[name] = ms
    result = {"torch": torch.__version__, "device": torch.cuda.get_device_name(), "rows": times}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=2)


if __name__ == "__main__":
    main()
