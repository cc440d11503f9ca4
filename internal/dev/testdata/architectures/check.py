"""Reads with transformers and PEFT what was written here, and compares logits:

    go test ./model -run Export -export DIR && python3 internal/dev/testdata/architectures/check.py DIR

(transformers 4.57.1, torch 2.15.0, peft 0.17.1, on a CPU.) DIR has for each model of this folder: saved/ and merged/, models;
adapter/; and logits.safetensors, what this library computes without and with the adapter.
"""
import json, os, sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

HERE = os.path.dirname(os.path.abspath(__file__))


def load(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def logits(model, ids):
    cap = getattr(model.config, "attn_logit_softcapping", None)
    with torch.no_grad():
        return model(input_ids=ids, use_cache=False, **({} if cap is None else {"softcap": cap})).logits


worst = 0.0
for name in sorted(os.listdir(sys.argv[1])):
    folder = os.path.join(sys.argv[1], name)
    with open(os.path.join(HERE, name, "reference.json")) as f:
        ids = torch.tensor(json.load(f)["ids"])
    ours = load_file(os.path.join(folder, "logits.safetensors"))
    saved = load(os.path.join(folder, "saved"))
    gaps = {"saved": (logits(saved, ids) - ours["plain"]).abs().max().item()}
    adapted = PeftModel.from_pretrained(saved, os.path.join(folder, "adapter")).eval()
    gaps["adapter"] = (logits(adapted, ids) - ours["adapted"]).abs().max().item()
    gaps["merged"] = (logits(load(os.path.join(folder, "merged")), ids) - ours["adapted"]).abs().max().item()
    print(f"{name:14}", "  ".join(f"{k} {v:.2g}" for k, v in gaps.items()), f"  the adapter moves {(ours['adapted'] - ours['plain']).abs().max():.2g}")
    worst = max(worst, *gaps.values())
print(f"worst {worst:.2g}")
assert worst <= 1e-4
