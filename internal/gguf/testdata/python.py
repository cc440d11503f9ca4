# Writes python.gguf with the reference implementation: each type as random blocks, and beside it what the reference makes of
# them, as F32; and metadata of every type.
#
#	python -m venv /tmp/venv && /tmp/venv/bin/pip install gguf==0.19.0 numpy==2.4.6
#	/tmp/venv/bin/python testdata/python.py testdata/python.gguf
import sys

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf import GGUFValueType as V
from gguf import GGUFWriter
from gguf.constants import GGML_QUANT_SIZES
from gguf.quants import dequantize

random = np.random.default_rng(7)

# Where the float16 scales of a block are; the other bytes are any.
HALVES = {
    T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0],
    T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208],
    T.IQ4_NL: [0], T.IQ4_XS: [0], T.MXFP4: [],
}

w = GGUFWriter(sys.argv[1], "llama")
w.add_custom_alignment(64)
for kind, value in {
    V.UINT8: 200, V.INT8: -100, V.UINT16: 60000, V.INT16: -30000, V.UINT32: 4000000000, V.INT32: -2000000000, V.FLOAT32: 0.1,
    V.BOOL: True, V.STRING: "żółw", V.UINT64: 2**64 - 1, V.INT64: -(2**63), V.FLOAT64: 0.1,
}.items():
    w.add_key_value("one." + kind.name.lower(), value, kind)
    w.add_key_value("list." + kind.name.lower(), [value, value], V.ARRAY, sub_type=kind)

w.add_tensor("f32", np.array([[1, -0.0, 1e-45], [np.inf, 3.4028235e38, 1 / 3]], dtype=np.float32))
w.add_tensor("f16", np.array([1, -0.0, 6e-8, 65504, np.inf], dtype=np.float16))
w.add_tensor("cube", np.arange(24, dtype=np.float32).reshape(2, 3, 4))
bf16 = random.standard_normal((2, 8)).astype(np.float32).view(np.uint32) >> 16
w.add_tensor("bf16", bf16.astype(np.uint16).view(np.uint8), raw_dtype=T.BF16)
w.add_tensor("bf16.expected", (bf16 << 16).view(np.float32))
for kind, halves in HALVES.items():
    block, size = GGML_QUANT_SIZES[kind]
    rows, columns = (2, 256 // block)
    raw = random.integers(0, 256, (rows * columns, size), dtype=np.uint8)
    for at in halves:
        raw[:, at : at + 2] = (random.standard_normal(rows * columns) / 10).astype(np.float16)[:, None].view(np.uint8)
    if kind == T.MXFP4:
        raw[:, 0] = np.arange(rows * columns) * 17  # exponents, the two subnormal ones too
        raw[1, 0] = 1
    raw = raw.reshape(rows, columns * size)
    w.add_tensor(kind.name, raw, raw_dtype=kind)
    w.add_tensor(kind.name + ".expected", dequantize(raw, kind).astype(np.float32))

w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
