"""Compares `art debug bench device --json` with PyTorch and numpy (OpenBLAS) on the same machine, with the same number of threads.

    go build -o /tmp/art ./cmd/art
    pip install torch==2.15.0 numpy==2.4.6
    python internal/dev/bench/operations/compare.py /tmp/art [--only REGEXP] [--threads 2] [--rounds 3]

The programs run alternately, so that all see the same machine load; the best time of each counts. With a ratio above 1
art is faster than the fastest peer.
"""

import argparse
import json
import os
import re
import subprocess
import time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("art")
parser.add_argument("--only", default="")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--seconds", type=float, default=0.3, help="of a measurement")
options = parser.parse_args()
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "GOMAXPROCS"):
    os.environ[name] = str(options.threads)

import numpy  # noqa: E402  the libraries read the number of threads when they are loaded
import torch  # noqa: E402

torch.set_num_threads(options.threads)
torch.set_grad_enabled(False)


def best(call):
    """The least time of a call, in nanoseconds."""
    call()
    least, end = float("inf"), time.perf_counter() + options.seconds
    while (begin := time.perf_counter()) < end:
        call()
        least = min(least, time.perf_counter() - begin)
    return least * 1e9


def matmul(shape, layout):
    m, k, n = map(int, shape.split("x"))
    a, b, c = torch.randn(m, k), torch.randn(k, n), torch.empty(m, n)
    if layout == "transposed":
        b = torch.randn(n, k).t()
    x, y, z = a.numpy(), b.numpy(), c.numpy()
    yield "torch", lambda: torch.mm(a, b, out=c)
    yield "numpy", lambda: numpy.matmul(x, y, out=z)


def rows(operation, shape):
    r, c = map(int, shape.split("x"))
    x, y, g, p = (torch.randn(r, c) for _ in range(4))
    out, weight, sums, transposed = torch.empty_like(x), torch.randn(c), torch.empty(r), torch.empty(c, r)
    heads, cos, sin = x.view(r, c // 64, 64), torch.randn(r, 1, 64), torch.randn(r, 1, 64)
    parameter = torch.nn.Parameter(p)
    parameter.grad = g
    adam = torch.optim.AdamW([parameter], lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1, fused=True)

    def rope():
        return heads * cos + torch.cat((-heads[..., 32:], heads[..., :32]), dim=-1) * sin

    return {
        "add": lambda: torch.add(x, y, out=out),
        "exp": lambda: torch.exp(x, out=out),
        "sum": lambda: torch.sum(x, dim=1, out=sums),
        "softmax": lambda: torch.softmax(x, dim=1, out=out),
        "rmsnorm": lambda: torch.nn.functional.rms_norm(x, (c,), weight, 1e-6),
        "swiglu": lambda: torch.mul(torch._C._nn.silu(x, out=out), y, out=out),
        "rope": rope,
        "adamw": adam.step,
        "transpose": lambda: transposed.copy_(x.t()),
    }[operation]


def peers(name):
    operation, shape, *layout = name.split("/")
    if operation == "matmul":
        yield from matmul(shape, layout[0])
    else:
        yield "torch", rows(operation, shape)


def ours():
    command = [options.art, "debug", "bench", "device", "--json", "--run", options.only, "--time", f"{options.seconds}s"]
    results = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["results"]
    return {r["name"]: r["best_ns"] for r in results if re.search(options.only, r["name"])}


def main():
    print(f"torch {torch.__version__}, numpy {numpy.__version__}, {options.threads} threads each")
    times = {}
    for _ in range(options.rounds):
        for name, ns in ours().items():
            entry = times.setdefault(name, {"art": float("inf")})
            entry["art"] = min(entry["art"], ns)
            for peer, call in peers(name):
                entry[peer] = min(entry.get(peer, float("inf")), best(call))
    print(f"{'operation':38} {'art us':>10} {'torch us':>10} {'numpy us':>10} {'ratio':>6}")
    for name, t in times.items():
        fastest = min(v for k, v in t.items() if k != "art")
        cells = [f"{t[k] / 1e3:10.1f}" if k in t else " " * 10 for k in ("art", "torch", "numpy")]
        print(f"{name:38} {' '.join(cells)} {fastest / t['art']:6.2f}")


if __name__ == "__main__":
    main()
