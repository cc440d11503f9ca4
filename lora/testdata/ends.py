"""Writes ends/: a random model, its embedding and head apart, with a random adapter on both and on the layers of a
pattern, as PEFT saves it, and ends.json: the logits that PEFT computes with it.

    python3 ends.py        (made with peft 0.17.1, accelerate 1.10.1, transformers 4.57.1, torch 2.15.0, CPU)
"""
import json, os, sys, torch
from peft import LoraConfig, get_peft_model
from transformers import Qwen3Config, Qwen3ForCausalLM

here = os.path.dirname(os.path.abspath(__file__))
torch.manual_seed(5)
config = Qwen3Config(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
                     num_key_value_heads=1, head_dim=8, vocab_size=40, max_position_embeddings=64, rms_norm_eps=1e-6,
                     rope_theta=10000.0, tie_word_embeddings=False)
base = Qwen3ForCausalLM(config)
for p in base.parameters():
    p.data.normal_(0, 0.3)
base.save_pretrained(os.path.join(here, "ends", "base"))
model = get_peft_model(base, LoraConfig(
    r=3, lora_alpha=5, task_type="CAUSAL_LM", target_modules=r"lm_head|model\.(embed_tokens|layers\.1\..*_proj)"))
for n, p in model.named_parameters():
    if "lora_" in n:
        p.data.normal_(0, 0.3)
model.eval()
model.peft_config["default"].base_model_name_or_path = "test/ends"
model.save_pretrained(os.path.join(here, "ends", "adapter"))
os.remove(os.path.join(here, "ends", "adapter", "README.md"))
os.remove(os.path.join(here, "ends", "base", "generation_config.json"))
ids = [[1, 5, 2, 9, 39, 0, 17]]
with torch.no_grad():
    logits = model(torch.tensor(ids)).logits[0]
    merged = model.merge_and_unload()(torch.tensor(ids)).logits[0]
assert (logits - merged).abs().max() < 1e-4
json.dump(dict(ids=ids[0], logits=logits.tolist()), open(os.path.join(here, "ends.json"), "w"))
