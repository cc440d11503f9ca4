"""Writes dora/: a random model with biases, its embedding and head apart, with a random DoRA adapter on both and on all
linear layers, as PEFT saves it, and dora.json: what PEFT computes with it in float64, and its gradients.

    python3 dora.py        (made with peft 0.17.1, accelerate 1.10.1, transformers 4.57.1, torch 2.15.0, CPU)
"""
import json, os, torch
from peft import LoraConfig, get_peft_model
from transformers import Qwen2Config, Qwen2ForCausalLM

here = os.path.dirname(os.path.abspath(__file__))
torch.manual_seed(6)
base = Qwen2ForCausalLM(Qwen2Config(
    hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
    vocab_size=40, max_position_embeddings=64, rms_norm_eps=1e-6, rope_theta=10000.0, tie_word_embeddings=False))
for p in base.parameters():
    p.data.normal_(0, 0.3)
base.save_pretrained(os.path.join(here, "dora", "base"))
model = get_peft_model(base, LoraConfig(
    r=3, lora_alpha=5, task_type="CAUSAL_LM", use_dora=True, rank_pattern={"down_proj": 2}, alpha_pattern={"q_proj": 4},
    target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "lm_head", "embed_tokens"]))
model.eval()
short = lambda n: n.removeprefix("base_model.model.").replace(".default", "").removesuffix(".weight")
start = {short(n): p.tolist() for n, p in model.named_parameters() if "magnitude" in n}
for n, p in model.named_parameters():
    if "magnitude" in n:
        p.data.mul_(1 + 0.2 * torch.randn_like(p))
    elif "lora_" in n:
        p.data.normal_(0, 0.3)
model.peft_config["default"].base_model_name_or_path = "test/dora"
model.save_pretrained(os.path.join(here, "dora", "adapter"))
os.remove(os.path.join(here, "dora", "adapter", "README.md"))
os.remove(os.path.join(here, "dora", "base", "generation_config.json"))

model.double()
ids = torch.tensor([[1, 5, 2, 9, 39, 0, 17]])
logits = model(ids).logits[0]
loss = -logits[:-1].log_softmax(-1).gather(1, ids[0, 1:, None]).sum()
loss.backward()
grads = {short(n): p.grad.tolist() for n, p in model.named_parameters() if p.grad is not None and "lora_" in n}
with torch.no_grad():
    merged = model.merge_and_unload()
    assert (logits - merged(ids).logits[0]).abs().max() < 1e-6
json.dump(dict(ids=ids[0].tolist(), logits=logits.tolist(), start=start, grads=grads),
          open(os.path.join(here, "dora.json"), "w"))
