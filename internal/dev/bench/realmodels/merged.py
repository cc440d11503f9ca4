"""Compares merged models that `art model export` wrote with transformers and PEFT: the same logits, within 1e-4 in float32.

    python3 -m venv merged && merged/bin/pip install torch==2.15.0 transformers==4.57.1 peft==0.17.1 gguf==0.19.0
    go build -o art ./cmd/art
    merged/bin/python internal/dev/bench/realmodels/merged.py ./art internal/dev/testdata/architectures/{qwen3,llama} [file.gguf]

For the model of a folder PEFT makes a random adapter, and `art model export` merges it: into one file, into shards, and in
bfloat16. The exported model of a GGUF file is compared with the one that transformers reads from the file.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer

TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def load(folder, **more):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", **more).eval()


@torch.no_grad()
def logits(model):
    torch.manual_seed(2)
    return model(torch.randint(0, model.config.vocab_size, (2, 24))).logits


def report(what, ours, reference, limit):
    far = (ours - reference).abs().max().item()
    print(f"{what}: max |difference| {far:.3g} of logits up to {reference.abs().max().item():.3g}")
    assert far <= limit, "too far"


def adapter(folder, to):
    """An adapter whose B is not zero, as it is after training."""
    torch.manual_seed(1)
    model = get_peft_model(load(folder), LoraConfig(r=4, lora_alpha=8, target_modules=TARGETS, init_lora_weights=False))
    model.save_pretrained(to)


def complete(folder, to):
    """A copy of a folder with a tokenizer of a few letters: the fixtures have none, and `art` asks for one."""
    to.mkdir()
    for name in ["config.json", "model.safetensors"]:
        shutil.copy(folder / name, to)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())[:90]
    Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(letters)}, merges=[])).save(str(to / "tokenizer.json"))
    (to / "tokenizer_config.json").write_text("{}")
    return to


def merged(art, folder, work):
    folder = complete(folder, work / folder.name)
    adapter(folder, work / "adapter")
    reference = logits(PeftModel.from_pretrained(load(folder), work / "adapter"))
    for name, flags in {"one": [], "shards": ["--shard", "40000"], "bfloat16": ["--dtype", "bfloat16"]}.items():
        subprocess.run([art, "model", "export", "--adapter", work / "adapter", *flags, folder, work / name], check=True, stdout=subprocess.DEVNULL)
        model = load(work / name)
        if name != "bfloat16":
            report(f"{folder.name}, {name}", logits(model), reference, 1e-4)
            continue
        rounded = PeftModel.from_pretrained(load(folder), work / "adapter").merge_and_unload().to(torch.bfloat16)
        different = total = 0  # PEFT merges in float32: one rounding may fall otherwise
        for key, value in rounded.state_dict().items():
            different += (value.float() != model.state_dict()[key]).sum().item()
            total += value.numel()
        print(f"{folder.name}, {name}: {different} of {total} numbers are another bfloat16 than PEFT's merge gives")
        assert different <= total / 1000


def exported(art, file, work):
    subprocess.run([art, "model", "export", file, work / "gguf"], check=True, stdout=subprocess.DEVNULL)
    report(file.name, logits(load(work / "gguf")), logits(load(file.parent, gguf_file=file.name)), 1e-4)
    tokenizer = AutoTokenizer.from_pretrained(work / "gguf")
    chat = [{"role": "user", "content": "It is 12:45, isn't it?"}]
    ids = tokenizer.apply_chat_template(chat, add_generation_prompt=True)
    print(tokenizer.decode(ids), ids)
    assert tokenizer.decode(tokenizer.encode("It is 12:45.\n  Äpfel")) == "It is 12:45.\n  Äpfel"


if __name__ == "__main__":
    for source in map(pathlib.Path, sys.argv[2:]):
        with tempfile.TemporaryDirectory() as work:
            (merged if source.is_dir() else exported)(sys.argv[1], source, pathlib.Path(work))
