"""Reads with transformers and PEFT what was written here, and compares logits:

    go test ./model -run Export -export DIR && python3 internal/dev/testdata/architectures/check.py DIR

(torch 2.15.0 on a CPU, with transformers 4.57.1 and peft 0.17.1, which leave out what make.py has in LATER, or 5.24.0 and
0.21.2.) DIR has for each model of this folder: saved/ and merged/, models;
adapter/; and logits.safetensors, what this library computes without and with the adapter.
"""
import json, os, sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from peft import PeftModel
from safetensors.torch import load_file
import transformers
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

HERE = os.path.dirname(os.path.abspath(__file__))


def load(folder):
    with open(os.path.join(folder, "config.json")) as f:
        kind = AutoModelForImageTextToText if "vision_config" in json.load(f) else AutoModelForCausalLM
    model, found = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    assert not any(found[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), found
    return model.eval()


def logits(model, ids):
    cap = None if transformers.__version__[0] == "5" else getattr(model.config, "attn_logit_softcapping", None)
    with torch.no_grad():
        return model(input_ids=ids, use_cache=False, **({} if cap is None else {"softcap": cap})).logits


worst = 0.0
for name in sorted(os.listdir(sys.argv[1])):
    folder = os.path.join(sys.argv[1], name)
    with open(os.path.join(HERE, name, "reference.json")) as f:
        reference = json.load(f)
    if name == "gemma3-caps" and transformers.__version__[0] == "5" or reference.get("transformers", "4")[0] > transformers.__version__[0]:
        continue
    ids = torch.tensor(reference["ids"])
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
