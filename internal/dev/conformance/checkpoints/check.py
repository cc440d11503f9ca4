"""Loads with transformers and PEFT what this library has trained, and compares logprobs. A test writes the checkpoints:

    python3 -m venv VENV && VENV/bin/pip install -r internal/dev/conformance/checkpoints/requirements.txt
    ART_PYTHON=VENV/bin/python go test ./backend/local -run TestCheckpoints_Python

Standard input is a JSON object: base, the folder of the base model, and cases, each with a folder, adapter or not, the
messages of a prompt, their ids, those of a reply, and its logprobs as this library computes them. For each case a line of
JSON says how far the logprobs are apart, in nats, and how far the base model is from them.
"""
import json, os, sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from peft import PeftModel, get_peft_model_state_dict
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer


def load(folder):
    """A model all of whose weights are in its folder, and nothing else."""
    model, info = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    tied = {"lm_head.weight"} if model.config.tie_word_embeddings else set()
    assert not info["unexpected_keys"] and not info["mismatched_keys"] and not set(info["missing_keys"]) - tied, info
    return model.eval()


def adapted(base, folder, ids):
    """The base model with an adapter, whose tensors are those of the file, and have gradients on these tokens."""
    model = PeftModel.from_pretrained(load(base), folder, is_trainable=True).eval()
    file = load_file(os.path.join(folder, "adapter_model.safetensors"))
    state = get_peft_model_state_dict(model, save_embedding_layers=False)
    assert set(file) == set(state), set(file) ^ set(state)
    for name, tensor in file.items():
        assert torch.equal(state[name], tensor), name
    model(torch.tensor([ids])).logits.logsumexp(-1).sum().backward()
    trained = {name: p.grad for name, p in model.named_parameters() if p.requires_grad}
    assert len(trained) == len(file), f"{len(file)} tensors, trained are {list(trained)}"
    still = [name for name, g in trained.items() if g is None or not g.abs().max() > 0]
    assert not still, f"without a gradient: {still}"
    return model


@torch.no_grad()
def logprobs(model, prompt, reply):
    logits = model(torch.tensor([prompt + reply])).logits[0, len(prompt) - 1:-1]
    return logits.log_softmax(-1).gather(1, torch.tensor(reply)[:, None])[:, 0]


request = json.load(sys.stdin)
plain = load(request["base"])
for case in request["cases"]:
    folder, prompt, reply = case["folder"], case["prompt"], case["reply"]
    ours = torch.tensor(case["logprobs"])
    model = adapted(request["base"], folder, prompt + reply) if case["adapter"] else load(folder)
    tokens = request["base"] if case["adapter"] else folder
    ids = AutoTokenizer.from_pretrained(tokens).apply_chat_template(case["messages"], add_generation_prompt=True)
    assert list(ids) == prompt, (ids, prompt)
    print(json.dumps({
        "name": case["name"],
        "gap": (logprobs(model, prompt, reply) - ours).abs().max().item(),
        "moved": (logprobs(plain, prompt, reply) - ours).abs().max().item(),
    }))
