"""Times PyTorch's CPU kernels on the shapes of BenchmarkVec in backend/device/cpu/internal/vec.

    python peers.py [THREADS]

Results go to preallocated tensors where PyTorch allows that, as in the Go benchmark. A line is the name and the
microseconds of the fastest call.
"""

import sys
import time

import torch

threads = int(sys.argv[1]) if len(sys.argv) > 1 else 2
torch.set_num_threads(threads)
torch.manual_seed(1)
print(f"# torch {torch.__version__}, {threads} threads, {torch.backends.cpu.get_cpu_capability()}")


def best(f, seconds=0.3):
    """The least time of a call, in microseconds: other processes disturb the mean."""
    least, end = 1e9, time.perf_counter() + seconds
    while (begin := time.perf_counter()) < end:
        f()
        least = min(least, time.perf_counter() - begin)
    return least * 1e6


def operations(rows, columns):
    x, y = torch.randn(rows, columns), torch.randn(rows, columns)
    out = torch.empty_like(x)
    sums = torch.empty(rows)
    yield "add", lambda: torch.add(x, y, out=out)
    yield "exp", lambda: torch.exp(x, out=out)
    positive = x.abs() + 0.1
    yield "log", lambda: torch.log(positive, out=out)
    yield "sigmoid", lambda: torch.sigmoid(x, out=out)
    yield "tanh", lambda: torch.tanh(x, out=out)
    yield "sin", lambda: torch.sin(x, out=out)
    yield "sum", lambda: torch.sum(x, dim=1, out=sums)
    half = torch.empty(rows, columns, dtype=torch.bfloat16)
    yield "bfloat16", lambda: half.copy_(x)
    transposed = torch.empty(columns, rows)
    yield "transpose", lambda: transposed.copy_(x.t())


for shape in ((2048, 2048), (256, 896)):
    for name, call in operations(*shape):
        with torch.no_grad():
            print(f"{name}/{shape[0]}x{shape[1]} {best(call):.1f}", flush=True)
