"""Writes ggufnames.json: what llama.cpp's own table calls the tensors of a checkpoint, for one block of each architecture.

    python -m venv names && names/bin/pip install gguf==0.19.0
    names/bin/python model/testdata/ggufnames.py
"""

import json
import pathlib

import gguf

BLOCK = ["input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]
AFTER = ["post_attention_layernorm"]
NORMS = ["self_attn.q_norm", "self_attn.k_norm"]
SANDWICH = AFTER + ["pre_feedforward_layernorm", "post_feedforward_layernorm"]
EXPERTS = ["mlp.gate", "mlp.experts.gate_proj", "mlp.experts.up_proj", "mlp.experts.down_proj"]
MODELS = {
    "qwen2": (gguf.MODEL_ARCH.QWEN2, BLOCK + AFTER),
    "qwen3": (gguf.MODEL_ARCH.QWEN3, BLOCK + AFTER + NORMS),
    "qwen3moe": (gguf.MODEL_ARCH.QWEN3MOE, BLOCK[:5] + AFTER + NORMS + EXPERTS),
    "llama": (gguf.MODEL_ARCH.LLAMA, BLOCK + AFTER),
    "granite": (gguf.MODEL_ARCH.GRANITE, BLOCK + AFTER),
    "gemma3": (gguf.MODEL_ARCH.GEMMA3, BLOCK + SANDWICH + NORMS),
}

out = {}
for name, (arch, parts) in MODELS.items():
    table = gguf.get_tensor_name_map(arch, 12)
    full = ["model.embed_tokens", "model.norm", "lm_head"] + [f"model.layers.11.{part}" for part in parts]
    out[name] = {table.get_name(checkpoint + ".weight", try_suffixes=(".weight",)): checkpoint + ".weight" for checkpoint in full}
pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps(out, indent=1, sort_keys=True) + "\n")
