"""Writes what transformers computes with each kind of RoPE:

    python3 make.py     (transformers 5.24.0, torch 2.15.0, on a CPU)

    frequencies.json             inverse frequencies and attention factor of many settings, for a context of some tokens
    mutations.json               what is computed of settings with a key changed, or that it fails, also with infinite numbers
    rotated.json                 queries before and after their rotation in families that rotate parts or adjacent pairs
    llama.safetensors, gemma3.safetensors   the weights of two tiny random models
    cases.json                   settings that these are run with: config.json, ids, and greedy tokens
    reference.safetensors        logits.CASE [T, V] of the ids; gradient.CASE of the mean loss of the ids, for the queries of
                                 the last layer; cos.CASE and sin.CASE, of their RoPE at the positions of cases.json
"""
import json, math, os, random

os.environ["HF_HUB_OFFLINE"] = "1"
import torch, transformers
from safetensors.torch import save_file
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, LlamaConfig, LlamaForCausalLM
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.ernie4_5 import modeling_ernie4_5 as ernie
from transformers.models.glm4 import modeling_glm4 as glm
from transformers.models.hunyuan_v1_dense.modeling_hunyuan_v1_dense import HunYuanDenseV1Config, HunYuanDenseV1RotaryEmbedding
from transformers.models.phi3 import modeling_phi3 as phi

assert (transformers.__version__, torch.__version__.split("+")[0]) == ("5.24.0", "2.15.0"), "other versions than these"
HERE = os.path.dirname(os.path.abspath(__file__))
torch.set_num_threads(1)
torch.manual_seed(1)
random.seed(1)


def write(name, value):
    with open(os.path.join(HERE, name), "w") as f:
        json.dump(value, f, indent=1)
        f.write("\n")


def factors(n, most):
    return [round(random.uniform(1, most), 3) for _ in range(n)]


# Frequencies: head_dim, rope_theta, max_position_embeddings, context, settings.
def settings():
    yield 64, 1e4, 2048, 2048, dict(rope_type="linear", factor=2.5)
    yield 128, 5e5, 131072, 131072, dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                         original_max_position_embeddings=8192)
    for context in (1000, 2048, 2049, 5000, 8192):
        yield 64, 1e4, 2048, context, dict(rope_type="dynamic", factor=4.0)
    yield 80, 1e5, 4096, 9000, dict(rope_type="dynamic", factor=3.0, partial_rotary_factor=0.5)
    yarn = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=4096)
    for change in (
        {}, dict(factor=None), dict(attention_factor=0.75), dict(mscale=1.0, mscale_all_dim=1.0), dict(mscale=0.7, mscale_all_dim=0.3),
        dict(mscale=0.7), dict(mscale=0.0, mscale_all_dim=0.5), dict(beta_fast=16.0, beta_slow=2.0), dict(beta_fast=None, beta_slow=0),
        dict(truncate=False), dict(truncate=None), dict(factor=1.0), dict(original_max_position_embeddings=8),
        dict(beta_fast=3.0, beta_slow=3.0, truncate=False), dict(partial_rotary_factor=0.25),
    ):
        yield 128, 1e6, 16384, 16384, {**yarn, **change}
    yield 48, 1.5e5, 131072, 131072, dict(rope_type="yarn", factor=32.0, original_max_position_embeddings=4096, truncate=False)
    long = dict(rope_type="longrope", short_factor=factors(24, 2), long_factor=factors(24, 60), original_max_position_embeddings=4096)
    for context in (4096, 4097):
        for change in ({}, dict(factor=8.0), dict(factor=0.5), dict(attention_factor=1.3), dict(factor=8.0, attention_factor=1.3)):
            yield 48, 1e4, 131072, context, {**long, **change}
    yield 96, 1e4, 131072, 131072, {**long, "partial_rotary_factor": 0.5}
    for part, factor in ((0.25, 1.0), (0.5, 8.0), (1.0, 1.0)):
        yield 64, 1e6, 131072, 131072, dict(rope_type="proportional", partial_rotary_factor=part, factor=factor)


list_ = []
for head, theta, most, context, s in settings():
    config = LlamaConfig(hidden_size=head * 2, num_attention_heads=2, head_dim=head, max_position_embeddings=most,
                         rope_parameters={**s, "rope_theta": theta})
    f, a = ROPE_INIT_FUNCTIONS[s["rope_type"]](config, "cpu", seq_len=context)
    list_.append(dict(head_dim=head, rope_theta=theta, max_position_embeddings=most, context=context, settings=s,
                      frequencies=f.tolist(), attention=float(a)))
s = dict(rope_type="dynamic", alpha=1000.0, factor=1.0, beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=1.0)
config = HunYuanDenseV1Config(hidden_size=128, num_attention_heads=2, head_dim=64, rope_parameters={**s, "rope_theta": 1e4})
rotary = HunYuanDenseV1RotaryEmbedding(config)
list_.append(dict(head_dim=64, rope_theta=1e4, max_position_embeddings=config.max_position_embeddings, context=9000, settings=s,
                  frequencies=rotary.inv_freq.tolist(), attention=float(rotary.attention_scaling)))
write("frequencies.json", list_)

# Mutations of a model of 8 numbers a head and 256 positions: each key of each type with each value, in either spelling.
BASES = [
    dict(rope_type="linear", factor=2.0),
    dict(rope_type="dynamic", factor=2.0),
    dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64),
    dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=64, attention_factor=1.1, beta_fast=8.0, beta_slow=2.0,
         mscale=0.7, mscale_all_dim=0.3, truncate=False),
    dict(rope_type="longrope", factor=4.0, original_max_position_embeddings=64, attention_factor=1.1,
         short_factor=[1.0, 1.5, 2.0, 3.0], long_factor=[2.0, 4.0, 8.0, 9.0]),
]
REMOVED = object()
VALUES = [REMOVED, None, 0, -1, 0.5, 1, 3, 128, 1e30, True, False, [1.5, 2.5, 3.5, 4.5], [1, 2]]
COMMON = dict(model_type="llama", vocab_size=64, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
              num_key_value_heads=2, head_dim=8, max_position_embeddings=256, rms_norm_eps=1e-6, hidden_act="silu")


def mutations():
    for base in BASES:
        keys = list(base) + ["type", "rope_theta", "partial_rotary_factor", "alpha", "mrope_section"]
        for spelling in ("rope_scaling", "rope_parameters"):
            for key in keys:
                for value in VALUES + (["default", "linear", "yarn", "su"] if "type" in key else []):
                    yield spelling, {k: v for k, v in {**base, key: value}.items() if v is not REMOVED}, {}
            for key in ("original_max_position_embeddings", "rope_theta", "partial_rotary_factor"):
                for value in VALUES[1:]:
                    yield spelling, base, {key: value}
                    without = {k: v for k, v in base.items() if k not in (key, "attention_factor")}
                    yield spelling, without, {key: value}
                    without.pop("factor")
                    yield spelling, without, {key: value}


list_ = []
for spelling, s, beside in mutations():
    text = json.dumps({"rope_theta": 1e4, **beside, spelling: s})
    case = dict(config=json.loads(text))
    try:
        config = LlamaConfig.from_dict({**COMMON, **json.loads(text)})
        rotary = transformers.models.llama.modeling_llama.LlamaRotaryEmbedding(config)
        cos, _ = rotary(torch.zeros(1), torch.arange(256)[None])  # a call of all positions
        assert cos.shape[-1] == 8, "heads are rotated whole"
        assert rotary.inv_freq.isfinite().all() and math.isfinite(rotary.attention_scaling)
        case.update(frequencies=[float(f"{x:.7g}") for x in rotary.inv_freq.tolist()], attention=float(rotary.attention_scaling))
    except Exception:
        case["fails"] = True
    list_.append(case)
with open(os.path.join(HERE, "mutations.json"), "w") as f:
    short = dict(separators=(",", ":"))
    f.write('{"common":' + json.dumps(COMMON, **short) + ',\n"cases":[\n' + ",\n".join(json.dumps(c, **short) for c in list_) + "\n]}\n")

# Rotation of queries [T, heads, head].
rotated = []
for name, family, part, interleaved in (("glm4", glm, 0.5, True), ("ernie4_5", ernie, 1.0, True), ("phi3", phi, 0.75, False)):
    head, theta, positions = 16, 1e4, torch.arange(5)[None]
    config = dict(glm4=transformers.Glm4Config, ernie4_5=transformers.Ernie4_5Config, phi3=transformers.Phi3Config)[name](
        hidden_size=32, num_attention_heads=2, num_key_value_heads=2, head_dim=head, pad_token_id=0,
        rope_parameters=dict(rope_type="default", rope_theta=theta, partial_rotary_factor=part))
    rotary = dict(glm4="Glm4", ernie4_5="Ernie4_5", phi3="Phi3")[name] + "RotaryEmbedding"
    q = torch.randn(1, 2, 5, head)
    cos, sin = getattr(family, rotary)(config)(q, positions)
    out, _ = family.apply_rotary_pos_emb(q, q, cos, sin)
    rotated.append(dict(family=name, head_dim=head, rope_theta=theta, partial_rotary_factor=part, interleaved=interleaved,
                        queries=q[0].transpose(0, 1).flatten().tolist(), rotated=out[0].transpose(0, 1).flatten().tolist()))
write("rotated.json", rotated)

# Whole models.
SMALL = dict(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             head_dim=16)
SHORT, LONG = factors(8, 2), factors(8, 20)
YARN = dict(rope_type="yarn", factor=8.0, original_max_position_embeddings=16)
LONGROPE = dict(rope_type="longrope", short_factor=SHORT, long_factor=LONG, original_max_position_embeddings=8)
CASES = {  # max_position_embeddings, context, tokens, settings
    "dynamic": (12, 24, 24, dict(rope_type="dynamic", factor=4.0)),
    "dynamic-short": (24, 24, 24, dict(rope_type="dynamic", factor=4.0)),
    "yarn": (128, 128, 24, YARN),
    "yarn-all": (128, 128, 24, {**YARN, "mscale": 0.7, "mscale_all_dim": 0.3, "beta_fast": 4.0, "beta_slow": 0.5, "truncate": False}),
    "yarn-attention": (128, 128, 24, {**YARN, "factor": None, "attention_factor": 0.8}),
    "longrope": (32, 32, 24, LONGROPE),
    "longrope-short": (32, 8, 8, LONGROPE),
    "longrope-factor": (32, 32, 24, {**LONGROPE, "factor": 16.0}),
    "gemma3-yarn": (128, 128, 24, YARN),
    "gemma3-longrope": (32, 32, 24, LONGROPE),
    "gemma3-llama3": (128, 128, 24, dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                         original_max_position_embeddings=32)),
}
POSITIONS = [0, 1, 2, 100, 1000, 3000, 4095, 8191]
weights, cases, reference = {}, {}, {}
for name, (most, context, tokens, s) in CASES.items():
    family = "gemma3" if name.startswith("gemma3") else "llama"
    s = {**s, "rope_theta": 1e4}
    if family == "llama":
        config = LlamaConfig(**SMALL, max_position_embeddings=most, rope_parameters=dict(s))
        model = LlamaForCausalLM(config)
    else:
        config = Gemma3TextConfig(
            **SMALL, max_position_embeddings=most, sliding_window=7, layer_types=["sliding_attention", "full_attention"],
            query_pre_attn_scalar=16, bos_token_id=1, eos_token_id=2, pad_token_id=0,
            rope_parameters=dict(full_attention=dict(s), sliding_attention=dict(rope_type="default", rope_theta=5e3)))
        model = Gemma3ForCausalLM(config)
    model = model.eval()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        for key, w in model.named_parameters():
            if family in weights:
                w.copy_(weights[family][key])
            elif w.dim() == 1:
                w.copy_((0.0 if family == "gemma3" else 1.0) + 0.3 * torch.randn_like(w))
            else:
                w.copy_(torch.randn_like(w) * (0.5 if "embed" in key else 1.6) * w.shape[1] ** -0.5)
    weights.setdefault(family, {k: w.detach().clone() for k, w in model.named_parameters()})
    ids = torch.randint(3, 96, (1, tokens))
    logits = model(input_ids=ids, use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(logits[0, :-1], ids[0, 1:])
    loss.backward()
    reference["logits." + name] = logits[0].detach().clone()
    query = model.model.layers[-1].self_attn.q_proj.weight
    reference["gradient." + name] = query.grad.clone()
    greedy, sequence = [], ids
    if "dynamic" not in name and "short" not in name:  # a longer call has the same frequencies
        for _ in range(8):
            with torch.no_grad():
                top = model(input_ids=sequence, use_cache=False).logits[0, -1].topk(2)
            assert top.values[0] - top.values[1] > 1e-3, name
            greedy.append(top.indices[0].item())
            sequence = torch.cat([sequence, top.indices[None, :1]], 1)
    if family == "llama" and "dynamic" not in name and "short" not in name:
        cos, sin = model.model.rotary_emb(logits, torch.tensor([POSITIONS]))
        reference["cos." + name], reference["sin." + name] = cos[0].clone(), sin[0].clone()
    saved = json.loads(config.to_json_string(use_diff=False))
    keep = ("model_type", "layer_types", "sliding_window", "query_pre_attn_scalar", "rope_parameters", "max_position_embeddings",
            "rms_norm_eps", "hidden_act", "hidden_activation", "attention_bias", "mlp_bias", "tie_word_embeddings", *SMALL)
    cases[name] = dict(weights=family, context=context, ids=ids[0].tolist(), greedy=greedy, loss=loss.item(),
                       config={k: saved[k] for k in keep if k in saved})
for family, w in weights.items():
    save_file(w, os.path.join(HERE, family + ".safetensors"))
save_file(reference, os.path.join(HERE, "reference.safetensors"))
write("cases.json", dict(positions=POSITIONS, cases=cases))
