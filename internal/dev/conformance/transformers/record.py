"""Draws configurations of families from a seed, and records what transformers and PEFT compute with them.

    python3 record.py SEED CONFIGS FOLDER [FAMILY...]

FOLDER/FAMILY-N is a checkpoint, as save_pretrained writes it in float32, with

    record.json             what is recorded, see Record in record.go
    reference.safetensors   logits of prompts, with each adapter, and after merging it
    adapters/NAME           adapters that PEFT wrote, and beside them their gradients, as adapters: NAME.gradient
    gradient                the gradient of all weights, as a model
"""

import json, os, pathlib, random, sys, warnings

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.filterwarnings("ignore")
import peft, torch, transformers
from families import CONTEXT, FAMILIES
from safetensors.torch import load_file, save_file

assert (transformers.__version__, peft.__version__) == ("5.24.0", "0.21.2"), "see requirements.txt"
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
torch.set_num_threads(1)
NEW = 20  # greedy tokens
EAGER = dict(attn_implementation="eager", experts_implementation="eager")  # of experts grouped_mm is the default


def fill(model, family):
    """Draws all weights: matrices of N(0, 0.3²), vectors around one half."""
    config = model.config.get_text_config()
    multiplier = getattr(config, "embedding_multiplier", None) or 1.0
    if config.model_type.startswith("gemma"):
        multiplier = config.hidden_size**0.5
    with torch.no_grad():
        for name, weight in model.named_parameters():
            norm = weight.dim() == 1 and not name.endswith("bias") and not family.centred
            scale = 0.3 / multiplier if name.endswith("embed_tokens.weight") else 0.3
            weight.copy_(scale * torch.randn_like(weight) + (0.5 if norm else 0.0))
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias") or name.endswith("expert_bias"):
                buffer.copy_(0.1 * torch.randn_like(buffer))


def load(folder, auto="AutoModelForCausalLM"):
    """A model whose weights are all in its folder."""
    model, info = getattr(transformers, auto).from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True, **EAGER
    )
    tied = {"lm_head.weight"} if model.config.tie_word_embeddings else set()
    missing = set(info["missing_keys"]) - tied
    if missing or info["mismatched_keys"]:
        raise MissingWeights(f"without {sorted(missing)[:3]}, of another shape are {list(info['mismatched_keys'])[:3]}")
    return model.eval()


class MissingWeights(Exception):
    """transformers would draw them at random."""


def logits(model, ids):
    """transformers reads attn_logit_softcapping and leaves it to the caller to hand on."""
    cap = getattr(model.config.get_text_config(), "attn_logit_softcapping", None)
    return model(input_ids=torch.tensor([ids]), use_cache=False, **({} if cap is None else {"softcap": cap})).logits[0]


def greedy(model, prompt):
    """The greedy continuation, and how far each of its tokens leads at least, relative to the largest logit."""
    ids, lead = list(prompt), 1.0
    with torch.no_grad():
        for _ in range(NEW):
            last = logits(model, ids)[-1]
            first, second = (top := last.topk(2)).values.tolist()
            lead = min(lead, (first - second) / last.abs().max().item())
            ids.append(top.indices[0].item())
    return ids[len(prompt) :], lead


def prompts(rng, model):
    """Two rows to compare, and a prompt whose greedy continuation has no ties and repeats itself least."""
    vocabulary = model.get_output_embeddings().weight.shape[0]
    draw = lambda n: [rng.randrange(3, vocabulary) for _ in range(n)]
    found = []
    for _ in range(20):
        prompt = draw(13)
        reply, lead = greedy(model, prompt)
        if lead > 5e-4:
            found.append((len(set(reply)), prompt, reply))
        if len(found) == 5:
            break
    distinct, prompt, reply = max(found)
    assert distinct > 3, f"greedy replies have only {distinct} different tokens"
    return [draw(29), draw(24)], prompt, reply


def backward(model, rows):
    """The gradient of a step of REINFORCE on two rows, with the advantages -0.5 and 1.5 all but 5 tokens trained."""
    loss = 0
    for ids, advantage in zip(rows, (-0.5, 1.5)):
        logprobs = logits(model, ids)[:-1].log_softmax(-1).gather(1, torch.tensor(ids[1:])[:, None])[4:, 0]
        loss = loss - advantage * logprobs.sum()
    model.zero_grad()
    loss.backward()


def to_gradients(model, trained):
    with torch.no_grad():
        for parameter in trained:
            parameter.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)


def adapters(rng, family, config):
    """The configurations of adapters: of all linears, two forms of LoRA, of the embedding and the head, of experts."""
    rank, alpha = rng.choice([2, 3, 5]), rng.choice([3, 4, 7])
    linear = dict(r=rank, lora_alpha=alpha, target_modules=list(family.targets))
    some = family.targets[1:3]
    yield "plain", linear | {
        "rank_pattern": {some[0]: rank + 1},
        "alpha_pattern": {rf"layers\.1\..*{some[1]}": alpha + 2.5},
    }
    yield "rslora", linear | {"use_rslora": True}
    yield "dora", linear | {"use_dora": True}
    yield "ends", dict(r=rank, lora_alpha=alpha, target_modules=[*family.ends, family.targets[0]])
    if family.expert_parameters:
        yield "experts", dict(
            r=rank,
            lora_alpha=alpha,
            target_modules=[family.targets[0]],
            target_parameters=list(family.expert_parameters),
        )


def adapt(folder, family, name, keys, rows):
    """Records an adapter, and returns its logits and those after merging, where merging can express it."""
    out = folder / "adapters" / name
    model = peft.get_peft_model(load(folder, family.auto), peft.LoraConfig(task_type="CAUSAL_LM", **keys)).eval()
    trained = [p for p in model.parameters() if p.requires_grad]
    with torch.no_grad():
        for p in trained:
            p.add_(0.15 * torch.randn_like(p)) if p.dim() == 1 else p.copy_(0.15 * torch.randn_like(p))
    model.peft_config["default"].base_model_name_or_path = "base"
    model.save_pretrained(str(out))
    found = {}
    with torch.no_grad():
        for i, ids in enumerate(rows):
            found[f"{name}.{i}"] = logits(model, ids)
    backward(model, rows)
    to_gradients(model, trained)
    model.save_pretrained(str(out) + ".gradient")
    if name != "ends" or not model.config.tie_word_embeddings:
        merged = peft.PeftModel.from_pretrained(load(folder, family.auto), str(out)).merge_and_unload().eval()
        with torch.no_grad():
            for i, ids in enumerate(rows):
                found[f"{name}.merged.{i}"] = logits(merged, ids)
    return found


def drawn(seed, n, family, folder, change=lambda keys, n: keys):
    """Writes a checkpoint, and returns what its weights and inputs are drawn with."""
    rng = random.Random(f"{seed} {family.name} {n}")
    torch.manual_seed(rng.randrange(1 << 31))
    keys = change(family.draw(rng, n), n)
    model = getattr(transformers, family.auto).from_config(getattr(transformers, family.config)(**keys), **EAGER)
    fill(model, family)
    model.save_pretrained(folder)
    return rng


def record_gguf(seed, n, family, folder):
    """For a comparison with llama.cpp: inputs alone."""
    rng = drawn(seed, n, family, folder, family.gguf)
    rows = [[rng.randrange(3, 61) for _ in range(length)] for length in (29, 24)]
    (folder / "record.json").write_text(json.dumps(dict(family=family.name, gguf=True, rows=rows)))


def record(seed, n, family, folder):
    rng = drawn(seed, n, family, folder)
    record = dict(family=family.name, built=family.built, row=FAMILIES.index(family))
    if family.built:
        model = load(folder, family.auto)
        rows, prompt, reply = prompts(rng, model)
        record |= dict(rows=rows, prompt=prompt, greedy=reply, adapters=[])
        found = {}
        with torch.no_grad():
            for i, ids in enumerate(rows):
                found[f"base.{i}"] = logits(model, ids)
        for name, settings in adapters(rng, family, model.config):
            found |= adapt(folder, family, name, settings, rows)
            record["adapters"].append(dict(name=name, built=name != "experts"))
        backward(model, rows)
        to_gradients(model, model.parameters())
        model.save_pretrained(folder / "gradient")
        save_file({k: v.contiguous() for k, v in found.items()}, folder / "reference.safetensors")
    (folder / "record.json").write_text(json.dumps(record))


def main():
    seed, configs, out, names = int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4:]
    unknown = set(names) - {family.name for family in FAMILIES}
    assert not unknown, f"no such families: {unknown}"
    for family in FAMILIES:
        if not names or family.name in names:
            for n in range(configs):
                print(family.name, n, flush=True)
                record(seed, n, family, out / f"{family.name.replace(', ', '-')}-{n}")
                if family.gguf:
                    record_gguf(seed, n, family, out / f"{family.name}-gguf-{n}")


if __name__ == "__main__":
    main()
