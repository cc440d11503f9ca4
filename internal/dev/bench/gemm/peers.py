"""Times the matmuls of BenchmarkMul of backend/device/cpu/internal/gemm with numpy and PyTorch.

python peers.py [--threads 2] [--only text] [--seconds 0.5]
"""

import argparse
import os
import sys
import time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--only", default="", help="part of a name")
parser.add_argument("--seconds", type=float, default=0.5, help="how long to measure a matmul")
options = parser.parse_args()
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(options.threads)

import numpy  # noqa: E402  the libraries read the number of threads when they are loaded
import torch  # noqa: E402

torch.set_num_threads(options.threads)

# name, m, n, k, whether a and b are stored by columns, batch
JOBS = [
    ("square", 512, 512, 512, False, False, 1),
    ("square", 1024, 1024, 1024, False, False, 1),
    ("square", 1024, 1024, 1024, False, True, 1),
    ("square", 1024, 1024, 1024, True, False, 1),
    ("square", 2048, 2048, 2048, False, False, 1),
    ("layer", 2048, 4864, 896, False, False, 1),
    ("layer", 2048, 896, 4864, False, False, 1),
    ("layer-back", 2048, 896, 4864, False, True, 1),
]
for rows in (2, 4, 8, 16, 32, 64):
    JOBS += [("skinny", rows, 4864, 896, False, False, 1), ("skinny", rows, 4864, 896, False, True, 1)]
JOBS += [
    ("vector", 1, 4864, 896, False, False, 1),
    ("vector", 1, 4864, 896, False, True, 1),
    ("head", 1, 151936, 896, False, False, 1),
    ("head", 1, 151936, 896, False, True, 1),
    ("lora-down", 2048, 8, 896, False, False, 1),
    ("lora-up", 2048, 896, 8, False, False, 1),
    ("lora-down", 2048, 8, 896, False, True, 1),
    ("lora-up", 2048, 896, 8, False, True, 1),
    ("lora-grad", 896, 8, 2048, True, False, 1),
    ("lora-grad", 8, 896, 2048, True, False, 1),
    ("attention", 256, 256, 64, False, True, 14),
    ("attention", 256, 64, 256, False, False, 14),
    ("tiny", 16, 256, 128, False, False, 1),
    ("tiny", 64, 128, 256, False, False, 1),
    ("tiny", 64, 128, 128, False, False, 1),
    ("tiny", 16, 16, 32, False, True, 4),
]


def operand(rows, columns, transposed, batch):
    """A matrix, or a batch of them, in the layout."""
    generator = numpy.random.default_rng(1)
    if transposed:
        x = generator.random((batch, columns, rows), dtype=numpy.float32).transpose(0, 2, 1)
    else:
        x = generator.random((batch, rows, columns), dtype=numpy.float32)
    return x[0] if batch == 1 else x


def seconds(call):
    """The least time of a call: other programs only ever add to it."""
    call()
    start = time.perf_counter()
    call()
    count = max(1, int(20e-6 / max(time.perf_counter() - start, 1e-9)))
    times, end = [], time.perf_counter() + options.seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(count):
            call()
        times.append((time.perf_counter() - start) / count)
    return min(times)


def main():
    blas = numpy.show_config(mode="dicts")["Build Dependencies"]["blas"]
    print(f"python {sys.version.split()[0]}, {options.threads} threads")
    print(f"numpy {numpy.__version__}, {blas['name']} {blas['version']}")
    print(f"torch {torch.__version__}, mkl {torch.backends.mkl.is_available()}, {torch.get_num_threads()} threads")
    for name, m, n, k, a_transposed, b_transposed, batch in JOBS:
        layouts = ["transposed" if t else "plain" for t in (a_transposed, b_transposed)]
        title = f"{name}/{m}x{n}x{k}/{batch}x/{layouts[0]}/{layouts[1]}"
        if options.only not in title:
            continue
        a, b = operand(m, k, a_transposed, batch), operand(k, n, b_transposed, batch)
        c = numpy.empty((m, n) if batch == 1 else (batch, m, n), numpy.float32)
        ta, tb, tc = torch.from_numpy(a), torch.from_numpy(b), torch.from_numpy(c)
        with torch.inference_mode():
            for peer, call in (
                ("numpy", lambda: numpy.matmul(a, b, out=c)),
                ("torch", lambda: torch.matmul(ta, tb, out=tc)),
            ):
                s = seconds(call)
                work, size = 2e-9 * batch * m * n * k, 4e-9 * batch * n * k
                print(f"{title:45} {peer} {s*1e9:12.0f} ns/op {size/s:8.2f} GB/s {work/s:8.2f} GFLOP/s (best)", flush=True)


main()
