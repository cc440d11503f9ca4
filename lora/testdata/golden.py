"""Writes peft/: an adapter of a tiny Llama that PEFT made and saved, and golden.json: what PEFT computes with it.

    python3 golden.py        (made with peft 0.10.0, transformers 4.38.2, torch 1.13.0, CPU)
"""
import json, os, torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

here = os.path.dirname(os.path.abspath(__file__))
torch.manual_seed(3)
base = LlamaForCausalLM(LlamaConfig(hidden_size=8, intermediate_size=12, num_hidden_layers=1, num_attention_heads=2,
                                    num_key_value_heads=1, vocab_size=11))
weights = {n: p.detach().clone() for n, p in base.named_parameters()}
model = get_peft_model(base, LoraConfig(
    r=3, lora_alpha=5, task_type="CAUSAL_LM", lora_dropout=0.05,
    target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]))
for n, p in model.named_parameters():
    if "lora_B" in n:
        p.data.normal_()
model.eval()
model.peft_config["default"].base_model_name_or_path = "test/tiny-llama"
model.save_pretrained(os.path.join(here, "peft"))
os.remove(os.path.join(here, "peft", "README.md"))

layers = {}
def record(name):
    def hook(_, args, out): layers[name].update(x=args[0][0].tolist(), y=out[0].tolist())
    return hook
for name, module in model.named_modules():
    if hasattr(module, "lora_A") and hasattr(module, "base_layer"):
        short = name.removeprefix("base_model.model.")
        layers[short] = dict(w=weights[short + ".weight"].tolist())
        module.register_forward_hook(record(short))
with torch.no_grad():
    model(torch.tensor([[1, 5, 2, 9]]))
merged = model.merge_and_unload().state_dict()
for name in layers:
    layers[name]["merged"] = merged[name + ".weight"].tolist()
json.dump(layers, open(os.path.join(here, "golden.json"), "w"))
