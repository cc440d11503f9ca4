"""Writes adapter/, a random adapter of the model internal/dev/testdata/architectures/llama in PEFT's form, with patterns,
rsLoRA, embedding and head, and the same for llama.cpp, in F32 and F16: names by gguf's table, rows of queries and keys in
pairs, the scale of all layers in one alpha.

    python -m venv VENV && VENV/bin/pip install gguf==0.19.0 numpy==2.4.6
    VENV/bin/python internal/basemodel/testdata/adapter.py
"""

import json
import math
import pathlib
import struct

import gguf
import numpy as np

HERE = pathlib.Path(__file__).parent
CONFIG = json.loads((HERE / "../../dev/testdata/architectures/llama/config.json").read_text())
HIDDEN, MLP, VOCABULARY, BLOCKS = (CONFIG[k] for k in ("hidden_size", "intermediate_size", "vocab_size", "num_hidden_layers"))
HEADS = {"q_proj": CONFIG["num_attention_heads"], "k_proj": CONFIG["num_key_value_heads"]}
KV = HEADS["k_proj"] * CONFIG["head_dim"]
SIZES = {  # in, out
    "self_attn.q_proj": (HIDDEN, HIDDEN), "self_attn.k_proj": (HIDDEN, KV), "self_attn.v_proj": (HIDDEN, KV),
    "self_attn.o_proj": (HIDDEN, HIDDEN), "mlp.gate_proj": (HIDDEN, MLP), "mlp.up_proj": (HIDDEN, MLP),
    "mlp.down_proj": (MLP, HIDDEN),
}
RANK, ALPHA, RANKS, ALPHAS = 4, 6, {"down_proj": 2}, {"v_proj": 3}

layers = {"model.embed_tokens": (VOCABULARY, HIDDEN), "lm_head": (HIDDEN, VOCABULARY)}
layers |= {f"model.layers.{i}.{part}": sizes for i in range(BLOCKS) for part, sizes in SIZES.items()}
random = np.random.default_rng(11)


def alpha(name):
    """What llama.cpp divides by the rank: in rsLoRA the scale is alpha over its root."""
    last = name.split(".")[-1]
    rank = RANKS.get(last, RANK)
    return ALPHAS.get(last, ALPHA) / math.sqrt(rank) * rank


peft, ours = {}, {}
table = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, BLOCKS)
common = alpha(min(layers))
for name in sorted(layers):
    last, (inputs, outputs) = name.split(".")[-1], layers[name]
    rank = RANKS.get(last, RANK)
    a = random.standard_normal((rank, inputs)).astype(np.float32)
    b = (random.standard_normal((outputs, rank)) / 4).astype(np.float32)
    suffixes = ("lora_embedding_A", "lora_embedding_B") if last == "embed_tokens" else ("lora_A.weight", "lora_B.weight")
    for suffix, x in zip(suffixes, (a, b)):
        peft[f"base_model.model.{name}.{suffix}"] = x
    if last in HEADS:  # the halves of a head, which RoPE pairs, are interleaved
        b = b.reshape(HEADS[last], 2, -1, rank).transpose(0, 2, 1, 3).reshape(outputs, rank)
    file = table.get_name(name + ".weight", try_suffixes=(".weight",))
    ours[file + ".lora_a"] = np.ascontiguousarray(a.T) if last == "embed_tokens" else a
    ours[file + ".lora_b"] = b * np.float32(alpha(name) / common)

folder = HERE / "adapter"
folder.mkdir(exist_ok=True)
config = {
    "peft_type": "LORA", "base_model_name_or_path": "base", "r": RANK, "lora_alpha": ALPHA, "use_rslora": True,
    "rank_pattern": RANKS, "alpha_pattern": ALPHAS, "target_modules": [*(n.split(".")[-1] for n in SIZES), "embed_tokens", "lm_head"],
}
(folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")
header, at = {}, 0
for key, x in peft.items():
    header[key] = {"dtype": "F32", "shape": x.shape, "data_offsets": [at, at + x.nbytes]}
    at += x.nbytes
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
content = struct.pack("<Q", len(text)) + text + b"".join(x.tobytes() for x in peft.values())
(folder / "adapter_model.safetensors").write_bytes(content)

for kind in (np.float32, np.float16):
    w = gguf.GGUFWriter(HERE / f"adapter-{kind.__name__}.gguf", "llama")
    w.add_type(gguf.GGUFType.ADAPTER)
    w.add_string(gguf.Keys.Adapter.TYPE, "lora")
    w.add_float32(gguf.Keys.Adapter.LORA_ALPHA, common)
    for key, x in ours.items():
        w.add_tensor(key, x.astype(kind))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
