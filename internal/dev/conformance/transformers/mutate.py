"""Changes each key of config.json, and records what transformers then computes from the same weights.

    python3 mutate.py FOLDER...        (that record.py wrote)

Beside record.json appear mutations.json, for each change the keys of the file and what became of it, and
mutations.safetensors, the logits. Keys are those of the configuration's class and of the file (own), the spellings of
transformers 4 and names of settings that some files have (spelled), and of the first configuration of a family those
of all other families (foreign), which few models read.

A change has one of these outcomes: "logits"; "refused", an error; "undefined", where weights are missing or logits
are not finite. INERT are the keys that transformers' forward pass does not depend on, and why; DORMANT those that it
depends on in some families only. The test reports a key that is in neither list and whose changes have no effect on a
family, for then a feature is off that should be on, and an inert one that has an effect.
"""

import dataclasses, itertools, json, os, pathlib, sys, tempfile

import torch, transformers
from families import FAMILIES
from record import MissingWeights, load, logits
from safetensors.torch import save_file

ABSENT = "(absent)"  # the key is left out

TRAINING = "of training"
HEAD = "of classifiers"
OUTPUT = "says what is returned beside logits"
GENERATION = "of generate, which samples with settings of its own"
INERT = {
    "initializer_range": "of new weights",
    "attention_dropout": TRAINING,
    "residual_dropout": TRAINING,
    "resid_pdrop": TRAINING,
    "embd_pdrop": TRAINING,
    "router_aux_loss_coef": TRAINING,
    "use_cache": "a cache changes no result",
    "pad_token_id": "padding is masked",
    "bos_token_id": GENERATION,
    "eos_token_id": GENERATION,
    "is_encoder_decoder": GENERATION,
    "id2label": HEAD,
    "label2id": HEAD,
    "problem_type": HEAD,
    "output_hidden_states": OUTPUT,
    "return_dict": OUTPUT,
    "output_router_logits": OUTPUT,
    "chunk_size_feed_forward": "the same in pieces",
    "transformers_version": "tells who wrote the file",
    "dtype": "the caller says in which type to compute",
    "architectures": "model_type alone chooses the class",
    "pretraining_tp": "no model of this version reads it",
}
DORMANT = {
    "max_position_embeddings": "no bound; two types of RoPE read it",
    "max_window_layers": "layer_types, which is in the file, wins",
    "tie_word_embeddings": "the head of the file is not read where it is true",
    "use_sliding_window": "layer_types, which is in the file, wins",
    "sliding_window": "without layers that slide",
    "_sliding_window_pattern": "layer_types, which is in the file, wins",
    "attn_logit_softcapping": "left to the caller",
    "intermediate_size": "of layers without experts, of which there may be none",
    "num_experts": "the file names it num_local_experts, or has both",
    "decoder_sparse_step": "mlp_only_layers may say the same",
}

ACTIVATIONS = ["silu", "gelu", "gelu_pytorch_tanh", "gelu_new", "relu", "swish", "nonsense", "", None]
KINDS = ("full_attention", "sliding_attention")


def by_type(value):
    """Other values of the kind of a value."""
    if isinstance(value, bool):
        return [not value, None, 0, 1, "true"]
    if isinstance(value, int):
        return [value + 1, value - 1, 2 * value, 0, 1, 2, -1, value + 0.5, float(value), str(value), None]
    if isinstance(value, float):
        return [2 * value + 0.5, value / 3, 0.0, 1.0, -value, round(value) + 1, str(value), None]
    if isinstance(value, str):
        return ["nonsense", "", None, 1]
    if isinstance(value, list):
        return [value[:-1], value + value[-1:], value[::-1], [], None, 1]
    return [1, 2, 0.5, True, "x", []]


def ropes(base):
    """Objects of rotary embeddings, of each type, from one of the type "default"."""
    plain = {"rope_type": "default", "rope_theta": base.get("rope_theta", 1e4)}
    yarn = {**plain, "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
    llama3 = {
        **plain,
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    }
    yield from (
        plain,
        {**plain, "rope_theta": 77.0},
        {**plain, "rope_theta": 77},
        {"rope_type": "default"},
        {"rope_theta": 77.0},
    )
    for key in (
        "factor",
        "partial_rotary_factor",
        "attention_factor",
        "mscale",
        "alpha",
        "llama_4_scaling_beta",
        "truncate",
        "type",
        "mrope_section",
        "unknown",
    ):
        for value in (0.5, 2.0, True, "linear", [1, 1, 1]):
            yield {**plain, key: value}
    for factor in (2.0, 3, 1.0, 0.5, 0.0, -1.0, None, "2"):
        yield {**plain, "rope_type": "linear", "factor": factor}
        yield {**plain, "rope_type": "dynamic", "factor": factor}
        yield {**yarn, "factor": factor}
        yield {**llama3, "factor": factor}
    yield {**plain, "rope_type": "linear"}
    yield {**plain, "rope_type": "linear", "factor": 2.0, "original_max_position_embeddings": 16}
    for key, value in itertools.product(
        ("beta_fast", "beta_slow", "mscale", "mscale_all_dim", "attention_factor"), (0.0, 0.7, 4.0)
    ):
        yield {**yarn, key: value}
    yield {**yarn, "truncate": False}
    for key, value in itertools.product(
        ("low_freq_factor", "high_freq_factor", "original_max_position_embeddings"), (1.5, 4, 1, 0, 32, None)
    ):
        yield {**llama3, key: value}
    yield {**plain, "rope_type": "dynamic", "factor": 1.0, "alpha": 1000.0}
    yield {
        **plain,
        "rope_type": "longrope",
        "factor": 2.0,
        "original_max_position_embeddings": 16,
        "short_factor": [1.0, 1.5],
        "long_factor": [2.0, 3.0],
    }
    for name in ("proportional", "mrope", "su", "ntk", "nonsense", "", None):
        yield {**plain, "rope_type": name}


def of_rope(value):
    """Changes of rope_parameters, which some families have for each kind of layer."""
    if all(kind in KINDS for kind in value):
        for kind in value:
            for other in ropes(value[kind]):
                yield {**value, kind: other}
            yield {k: v for k, v in value.items() if k != kind}
            yield {**value, kind: None}
        yield {**value, "linear_attention": {"rope_type": "default", "rope_theta": 1e4}}
        yield value["full_attention"]
    else:
        yield from ropes(value)
        yield {kind: value for kind in KINDS}
    yield from ({}, None, [], "default", ABSENT)


def values(key, value, config):
    """What to put in place of the value of a key of the file."""
    n = config["num_hidden_layers"]
    special = {
        "rope_parameters": lambda: of_rope(value or {}),
        "hidden_act": lambda: ACTIVATIONS,
        "hidden_activation": lambda: ACTIVATIONS,
        "layer_types": lambda: [
            ["full_attention"] * n,
            ["sliding_attention"] * n,
            [KINDS[i % 2] for i in range(n)],
            [KINDS[1 - i % 2] for i in range(n)],
            ["attention"] * n,
            ["chunked_attention"] * n,
            ["linear_attention"] * n,
            ["nonsense"] * n,
            ["full_attention"],
            [],
            None,
        ],
        "architectures": lambda: [
            [config["architectures"][0].replace("ForCausalLM", "Model")],
            ["LlamaForCausalLM"],
            [config["architectures"][0].replace("CausalLM", "SequenceClassification")],
            [],
            None,
            ["Nonsense"],
        ],
        "model_type": lambda: [f.name for f in FAMILIES if f.built] + ["nonsense", "", None],
        "dtype": lambda: ["bfloat16", "float16", "float64", None],
        "sliding_window": lambda: [3, 1, 0, -1, None, 5.0, 10000],
        "mlp_only_layers": lambda: [[], None, [0], [1, 2], [n], [-1], 1],
        "max_position_embeddings": lambda: [2048, 16, 8, 1, 0, -1, None, 8192.0],
        "no_rope_layers": lambda: [[0] * n, [1] * n, []],
    }
    found = list(special.get(key, lambda: by_type(value))())
    distinct = []
    for v in [*found, ABSENT]:
        if json.dumps(v) != json.dumps(value) and not any(json.dumps(v) == json.dumps(d) for d in distinct):
            distinct.append(v)
    return distinct


def spelled(config):
    """Changes of several keys: as transformers 4 writes them, and settings of single files."""
    n = config["num_hidden_layers"]
    rope = config.get("rope_parameters") or {}
    flat = rope.get("full_attention", rope)
    theta, outside = flat.get("rope_theta", 1e4), {"rope_parameters": ABSENT}
    yield outside | {"rope_theta": theta}
    yield outside | {"rope_theta": 77.0}
    yield {"rope_theta": 77.0}
    yield {"rope_theta": None}
    for other in ropes({}):
        scaling = {k: v for k, v in other.items() if k != "rope_theta"}
        yield outside | {"rope_theta": theta, "rope_scaling": scaling}
        if "type" not in scaling and "rope_type" in scaling:
            yield outside | {
                "rope_theta": theta,
                "rope_scaling": {("type" if k == "rope_type" else k): v for k, v in scaling.items()},
            }
    linear = {"rope_type": "linear", "factor": 2.0}
    yield {"rope_scaling": linear}
    yield {"rope_scaling": {**linear, "rope_theta": 77.0}}
    yield {"rope_scaling": {}}
    yield outside | {"rope_scaling": {**linear, "rope_theta": 77.0}, "rope_theta": theta}
    for value in (16, 64, 4096):
        yield {"original_max_position_embeddings": value}
        yield {
            "original_max_position_embeddings": value,
            "rope_parameters": {
                **flat,
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
            },
        }
        yield {
            "original_max_position_embeddings": value,
            "rope_parameters": {
                **flat,
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 32,
            },
        }
    yield outside | {"rope_theta": theta, "partial_rotary_factor": 0.5}
    for key, settings in {
        "torch_dtype": ["float32", "bfloat16"],
        "partial_rotary_factor": [0.5, 1.0],
        "rope_local_base_freq": [77.0],
        "sliding_window_pattern": [2, 1, 6],
        "_sliding_window_pattern": [2],
        "cache_implementation": ["hybrid"],
        "attn_implementation": ["sdpa", "eager"],
        "_attn_implementation": ["sdpa"],
        "experts_implementation": ["eager"],
        "output_attentions": [True],
        "temperature": [0.3],
        "top_k": [5],
        "num_labels": [3],
        "torchscript": [True],
        "use_bfloat16": [True],
        "tie_encoder_decoder": [True],
        "pruned_heads": [{"0": [0]}],
        "name_or_path": ["x"],
        "is_decoder": [False, True],
        "tie_last_hidden_states": [True],
        "auto_map": [{}],
        "unknown_key": [1, None, {"a": [2]}],
        "num_experts": [8],
        "num_local_experts": [8],
        "quantization_config": [{"quant_method": "bitsandbytes", "load_in_4bit": True}, {}],
        "per_layer_config": [
            {},
            {"1": {"rms_norm_eps": 0.5}},
            {"1": {"num_key_value_heads": 1}},
            {"0": {"sliding_window": 3}},
            {"2": {"hidden_act": "gelu"}},
            {"2": {"head_dim": 4}},
            {"1": {"unknown": 1}},
            {"99": {"rms_norm_eps": 0.5}},
        ],
        "use_sliding_window": [True, False],
        "text_config": [{"hidden_size": 8}, {}],
        "vision_config": [{"hidden_size": 8}],
        "num_kv_heads": [1],
        "n_head": [1],
        "n_layer": [1],
        "rotary_dim": [2],
        "attn_temperature_tuning": [True],
    }.items():
        for value in settings:
            if config.get(key, ABSENT) != value:
                yield {key: value}
    yield {"use_sliding_window": True, "sliding_window": 3, "layer_types": ABSENT, "max_window_layers": 1}
    yield {"use_sliding_window": True, "sliding_window": 3, "layer_types": ABSENT, "max_window_layers": n}
    yield {"use_sliding_window": True, "sliding_window": 3, "layer_types": ["sliding_attention"] * n}
    yield {"use_sliding_window": False, "sliding_window": 3, "layer_types": ["sliding_attention"] * n}
    yield {"sliding_window": 3, "layer_types": ABSENT, "sliding_window_pattern": 2}
    yield {"sliding_window": None, "layer_types": ABSENT}
    yield {"num_experts": ABSENT, "num_local_experts": config.get("num_experts", config.get("num_local_experts", 4))}


def foreign(config, own):
    """Keys that other families have."""
    keys = {}
    for family in FAMILIES:
        for field in dataclasses.fields(getattr(transformers, family.config)):
            if field.name not in own and field.name not in config:
                keys.setdefault(field.name, []).append(None if field.default is dataclasses.MISSING else field.default)
    for key, defaults in sorted(keys.items()):
        if key in ("text_config", "vision_config", "audio_config"):
            continue
        kinds = {type(d) for d in defaults}
        if bool in kinds:
            yield from ({key: v} for v in (True, False))
        if int in kinds or kinds == {type(None)}:
            yield from ({key: v} for v in (2, 5))
        if float in kinds:
            yield {key: 0.5}
        if kinds & {str, tuple} or kinds == {type(None)}:
            yield from ({key: v} for v in ("nope", [0, 1]))


def changes(config, family, first):
    own = {f.name: f.default for f in dataclasses.fields(getattr(transformers, family.config))}
    for key in sorted(set(own) | set(config)):
        for value in values(key, config.get(key, own.get(key)), config):
            if not (value == ABSENT and key not in config):
                yield key, {key: value}
    for change in spelled(config):
        yield "spelled", change
    if first:
        for change in foreign(config, own):
            yield "foreign", change


def mutated(config, change):
    out = {k: v for k, v in config.items() if k not in change}
    return out | {k: v for k, v in change.items() if v != ABSENT}


def compute(folder, family, ids):
    """The outcome, why, and the logits."""
    try:
        with torch.no_grad():
            found = logits(load(folder, family.auto), ids)
    except MissingWeights as error:
        return "undefined", str(error), None
    except Exception as error:  # of whatever kind: transformers has many
        return "refused", f"{type(error).__name__}: {error}"[:300], None
    if not torch.isfinite(found).all():
        return "undefined", "logits that are not finite", None
    return "logits", "", found


def mutate(folder):
    record = json.loads((folder / "record.json").read_text())
    family = next(f for f in FAMILIES if f.name == record["family"])
    config, ids = json.loads((folder / "config.json").read_text()), record["rows"][0]
    base = compute(folder, family, ids)[2]
    scale, changed, found = base.abs().max().item(), [], {}
    with tempfile.TemporaryDirectory() as scratch:
        os.symlink(folder.resolve() / "model.safetensors", os.path.join(scratch, "model.safetensors"))
        for of, change in changes(config, family, first=folder.name.endswith("-0")):
            text = json.dumps(mutated(config, change))
            pathlib.Path(scratch, "config.json").write_text(text)
            outcome, why, got = compute(scratch, family, ids)
            moved = 0.0
            if got is not None:
                moved = (got - base).abs().max().item() / scale if got.shape == base.shape else 1.0
                if moved > 0:
                    found[str(len(changed))] = got.contiguous()
            changed.append(
                dict(of=of, change=change, config=text, outcome=outcome, why=why, moved=moved)
                | dict(inert=INERT.get(of, ""), dormant=DORMANT.get(of, ""))
            )
    save_file(found, folder / "mutations.safetensors")
    (folder / "mutations.json").write_text(json.dumps(changed))
    return changed


def main():
    for folder in map(pathlib.Path, sys.argv[1:]):
        changed = mutate(folder)
        count = {o: sum(m["outcome"] == o for m in changed) for o in ("logits", "refused", "undefined")}
        print(f"{folder.name}: {len(changed)} changes, {count}", flush=True)


if __name__ == "__main__":
    main()
