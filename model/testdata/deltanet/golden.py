"""Writes golden.json: what the mixers of transformers compute, and their gradients, in float32, with random weights.

    python -m venv delta && delta/bin/pip install torch==2.15.0 transformers==5.24.0
    delta/bin/python model/testdata/deltanet/golden.py
"""

import json
import pathlib

import torch
from transformers.models.qwen3_5.configuration_qwen3_5 import Qwen3_5TextConfig
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5GatedDeltaNet
from transformers.models.qwen3_next.configuration_qwen3_next import Qwen3NextConfig
from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextGatedDeltaNet

TOKENS, HIDDEN = 70, 8  # more than a chunk of 64
FAMILIES = {"qwen3_5": (Qwen3_5TextConfig, Qwen3_5GatedDeltaNet), "qwen3_next": (Qwen3NextConfig, Qwen3NextGatedDeltaNet)}
SIZES = [(2, 4, 4, 6, 4), (1, 3, 6, 4, 3), (3, 3, 4, 4, 4), (2, 6, 3, 5, 2)]  # key heads, value heads, their sizes, kernel


def rounded(x):
    return [float(f"{v:.8g}") for v in x.flatten().tolist()]


cases = []
for family, (config, mixer) in FAMILIES.items():
    for seed, (key_heads, value_heads, key_dim, value_dim, kernel) in enumerate(SIZES):
        torch.manual_seed(seed)
        c = config(vocab_size=64, hidden_size=HIDDEN, num_hidden_layers=4, num_attention_heads=2, num_key_value_heads=1, head_dim=8,
                   linear_num_key_heads=key_heads, linear_num_value_heads=value_heads, linear_key_head_dim=key_dim,
                   linear_value_head_dim=value_dim, linear_conv_kernel_dim=kernel)
        m = mixer(c, 0).float()
        with torch.no_grad():
            for name, p in m.named_parameters():
                p.copy_(torch.randn_like(p) * 0.3 + (0.5 if p.dim() == 1 else 0))
        x = torch.randn(1, TOKENS, HIDDEN, requires_grad=True)
        weights = torch.randn(1, TOKENS, HIDDEN)
        y = m(x)
        (y * weights).sum().backward()
        cases.append({
            "family": family, "key_heads": key_heads, "value_heads": value_heads, "key_dim": key_dim, "value_dim": value_dim, "kernel": kernel,
            "eps": c.rms_norm_eps, "parameters": {n: rounded(p.detach()) for n, p in m.named_parameters()},
            "x": rounded(x.detach()), "weights": rounded(weights), "y": rounded(y.detach()), "dx": rounded(x.grad),
            "norms": {n: float(p.grad.norm()) for n, p in m.named_parameters()},
        })
pathlib.Path(__file__).with_name("golden.json").write_text(json.dumps(cases) + "\n")
