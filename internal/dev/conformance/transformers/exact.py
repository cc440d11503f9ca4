"""Computes long inputs in float64, from the formulas of the models alone.

    python3 exact.py FOLDER...        (that record.py wrote)

transformers is no float64 reference: in that type it still computes norms, routers and tables of RoPE in float32. So
this is an implementation of its own, in NumPy. Beside record.json appear long.json, LENGTH ids and some positions,
and long.safetensors: the logits at these positions, exact and as transformers computes them in float32 (theirs).
"""

import json, math, pathlib, random, sys

import numpy as np

LENGTH = 3001
BLOCK = 256  # queries whose scores are in memory at once


def rms(x, weight, eps, offset=0.0):
    y = x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    return y if weight is None else y * (offset + weight)


def sigmoid(x):
    return 0.5 * (1 + np.tanh(x / 2))


def silu(x):
    return x * sigmoid(x)


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS = {"silu": silu, "gelu_pytorch_tanh": gelu_tanh}


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def linear(x, w, name):
    y = x @ w[name + ".weight"].T
    return y + w[name + ".bias"] if name + ".bias" in w else y


def below(w, prefix):
    return {k[len(prefix) :]: v for k, v in w.items() if k.startswith(prefix)}


def yarn(frequencies, rope, size):
    theta, original, factor = rope["rope_theta"], rope["original_max_position_embeddings"], rope["factor"]
    turns = lambda r: size * math.log(original / (2 * math.pi * r)) / (2 * math.log(theta))
    low, high = turns(rope.get("beta_fast") or 32), turns(rope.get("beta_slow") or 1)
    if rope.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, size - 1)
    if low == high:
        high += 0.001
    keep = 1 - np.clip((np.arange(size // 2) - low) / (high - low), 0, 1)
    scale = lambda k: 1.0 if factor <= 1 else 0.1 * k * math.log(factor) + 1
    attention = rope.get("attention_factor")
    if attention is None:
        both = rope.get("mscale") and rope.get("mscale_all_dim")
        attention = scale(rope["mscale"]) / scale(rope["mscale_all_dim"]) if both else scale(1)
    return frequencies * keep + frequencies / factor * (1 - keep), attention


def frequencies(rope, head, longest, context):
    """The frequencies of the pairs of a head, and what cos and sin are multiplied by."""
    size = int(head * (rope.get("partial_rotary_factor") or 1))
    theta, kind = rope["rope_theta"], rope.get("rope_type", "default")
    f = theta ** (-2 * np.arange(size // 2) / size)
    if kind == "linear":
        return f / rope["factor"], 1.0
    if kind == "llama3":
        waves = rope["original_max_position_embeddings"] * f / (2 * math.pi)
        smooth = np.clip((waves - rope["low_freq_factor"]) / (rope["high_freq_factor"] - rope["low_freq_factor"]), 0, 1)
        return (1 - smooth) * f / rope["factor"] + smooth * f, 1.0
    if kind == "yarn":
        return yarn(f, rope, size)
    if kind == "dynamic" and rope.get("alpha"):
        return (theta * rope["alpha"] ** (head / (head - 2))) ** (-2 * np.arange(size // 2) / size), 1.0
    if kind == "dynamic":
        grown = rope["factor"] * max(longest, context) / context - (rope["factor"] - 1)
        return (theta * grown ** (size / (size - 2))) ** (-2 * np.arange(size // 2) / size), 1.0
    if kind == "longrope":
        original = rope["original_max_position_embeddings"]
        factor = rope.get("factor") or context / original
        attention = rope.get("attention_factor") or (
            1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(original))
        )
        return f / np.array(rope["long_factor" if longest > original else "short_factor"]), attention
    if kind == "proportional":
        rotary = int(rope["partial_rotary_factor"] * head) // 2
        return np.concatenate([theta ** (-2 * np.arange(rotary) / head), np.zeros(head // 2 - rotary)]), 1.0
    assert kind == "default", kind
    return f, 1.0


def rotate(x, f, attention, interleaved):
    """x is [T, heads, head]; only the first pairs of a head, as many as frequencies, are rotated."""
    angle = np.arange(len(x))[:, None, None] * f
    cos, sin, n = np.cos(angle) * attention, np.sin(angle) * attention, len(f)
    part, rest = x[..., : 2 * n], x[..., 2 * n :]
    if interleaved:
        a, b = part[..., 0::2], part[..., 1::2]
        part = np.stack([a * cos - b * sin, b * cos + a * sin], -1).reshape(part.shape)
    else:
        a, b = part[..., :n], part[..., n:]
        part = np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)
    return np.concatenate([part, rest], -1)


def attend(q, k, v, scale, window, cap, sinks=None):
    """q is [T, heads, head], k and v have fewer heads, which several of q share."""
    shared = q.shape[1] // k.shape[1]
    q, k, v = (np.repeat(y, n, 1).swapaxes(0, 1) for y, n in ((q, 1), (k, shared), (v, shared)))
    keys, parts = np.arange(k.shape[1])[None], []
    for first in range(0, q.shape[1], BLOCK):
        block = q[:, first : first + BLOCK]
        scores = block @ k.swapaxes(1, 2) * scale
        if cap:
            scores = cap * np.tanh(scores / cap)
        at = np.arange(first, first + block.shape[1])[:, None]
        scores[:, (keys > at) | (keys <= at - window if window else False)] = -np.inf
        if sinks is not None:
            scores = np.concatenate([scores, np.broadcast_to(sinks[:, None, None], (*scores.shape[:2], 1))], -1)
        parts.append(softmax(scores)[..., : k.shape[1]] @ v)
    return np.concatenate(parts, 1).swapaxes(0, 1).reshape(q.shape[1], -1)


def halves(x):
    return x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]


def mlp(x, w, activation):
    """A gated MLP, under each of the names that families have for its matrices."""
    if "w1.weight" in w:  # LFM2's and Mixtral's
        return linear(activation(linear(x, w, "w1")) * linear(x, w, "w3"), w, "w2")
    if "input_linear.weight" in w:  # Granite's
        gate, up = halves(linear(x, w, "input_linear"))
        return linear(activation(gate) * up, w, "output_linear")
    if "gate_up_proj.weight" in w:  # of Phi-3 and GLM-4
        gate, up = halves(linear(x, w, "gate_up_proj"))
    else:
        gate, up = linear(x, w, "gate_proj"), linear(x, w, "up_proj")
    return linear(activation(gate) * up, w, "down_proj")


def largest(scores, n):
    return np.argsort(-scores, -1, kind="stable")[:, :n]


def route(x, w, c):
    """The experts of each token, and their weights."""
    family, of = c["model_type"], np.take_along_axis
    n = c.get("num_experts_per_tok") or c.get("moe_k")
    if family == "gpt_oss":
        z = linear(x, w, "router")
        chosen = largest(z, n)
        return chosen, softmax(of(z, chosen, -1))
    if family.startswith("granite"):
        z = x @ w["router.layer.weight"].T
        chosen = largest(z, n)
        return chosen, softmax(of(z, chosen, -1))
    z = x @ w["gate.weight"].T
    if family.startswith("glm4_moe"):
        score, groups = sigmoid(z), c["n_group"]
        biased = score + w["gate.e_score_correction_bias"]
        grouped = np.sort(biased.reshape(len(x), groups, -1), -1)[..., -2:].sum(-1)
        kept = np.zeros_like(grouped, bool)
        np.put_along_axis(kept, largest(grouped, c["topk_group"]), True, -1)
        chosen = largest(np.where(np.repeat(kept, z.shape[1] // groups, -1), biased, -np.inf), n)
        weights = of(score, chosen, -1)
        if c["norm_topk_prob"]:
            weights = weights / (weights.sum(-1, keepdims=True) + 1e-20)
        return chosen, weights * c["routed_scaling_factor"]
    p = softmax(z)
    if family == "ernie4_5_moe":
        chosen = largest(p + w["moe_statics.e_score_correction_bias"], n)
        weights = of(p, chosen, -1)
        return chosen, weights / np.maximum(weights.sum(-1, keepdims=True), c["moe_norm_min"])
    chosen = largest(p, n)
    weights = of(p, chosen, -1)
    if family in ("mixtral", "qwen3_5_moe_text") or c.get("norm_topk_prob"):
        weights = weights / weights.sum(-1, keepdims=True)
    return chosen, weights


def expert(x, w, e, c, activation):
    if c["model_type"] == "gpt_oss":
        z = x @ w["experts.gate_up_proj"][e] + w["experts.gate_up_proj_bias"][e]
        limit = c["swiglu_limit"]
        gate, up = np.minimum(z[:, 0::2], limit), np.clip(z[:, 1::2], -limit, limit)
        h = (up + 1) * gate * sigmoid(c.get("swiglu_alpha", 1.702) * gate)
        return h @ w["experts.down_proj"][e] + w["experts.down_proj_bias"][e]
    if "input_linear.weight" in w:
        return mlp(x, {k: w[k][e] for k in ("input_linear.weight", "output_linear.weight")}, activation)
    return mlp(x, below(w, f"experts.{e}."), activation)


def experts(x, w, c, activation):
    chosen, weights = route(x, w, c)
    y = np.zeros_like(x)
    for e in range(chosen.max() + 1):
        rows, place = np.nonzero(chosen == e)
        y[rows] += weights[rows, place, None] * expert(x[rows], w, e, c, activation)
    if "shared_expert.up_proj.weight" in w:
        y += sigmoid(x @ w["shared_expert_gate.weight"].T) * mlp(x, below(w, "shared_expert."), activation)
    if "shared_experts.up_proj.weight" in w:
        y += mlp(x, below(w, "shared_experts."), activation)
    return y


def convolve(u, kernel):
    """Causal and depthwise: kernel [C, n], whose last column meets the newest of u [T, C]."""
    n = kernel.shape[1]
    padded = np.concatenate([np.zeros((n - 1, u.shape[1])), u])
    return sum(padded[j : j + len(u)] * kernel[:, j] for j in range(n))


def short_convolution(x, w):
    b, c, u = np.split(linear(x, w, "in_proj"), 3, -1)
    y = convolve(b * u, w["conv.weight"][:, 0]) + w.get("conv.bias", 0.0)
    return linear(c * y, w, "out_proj")


def delta_net(x, w, c):
    """The gated delta rule, token by token."""
    nk, nv, dk, dv = (c["linear_" + k] for k in ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim"))
    t, shared = len(x), nv // nk
    if "in_proj_qkvz.weight" in w:  # grouped by key heads
        y = (x @ w["in_proj_qkvz.weight"].T).reshape(t, nk, -1)
        q, k, v, z = np.split(y, [dk, 2 * dk, 2 * dk + shared * dv], -1)
        b, a = (part.reshape(t, nv) for part in np.split((x @ w["in_proj_ba.weight"].T).reshape(t, nk, -1), 2, -1))
        u, z = np.concatenate([q.reshape(t, -1), k.reshape(t, -1), v.reshape(t, -1)], -1), z.reshape(t, nv, dv)
    else:
        u, z = x @ w["in_proj_qkv.weight"].T, (x @ w["in_proj_z.weight"].T).reshape(t, nv, dv)
        b, a = x @ w["in_proj_b.weight"].T, x @ w["in_proj_a.weight"].T
    u = silu(convolve(u, w["conv1d.weight"][:, 0]))
    q, k, v = np.split(u, [nk * dk, 2 * nk * dk], -1)
    unit = lambda y: y / np.sqrt((y * y).sum(-1, keepdims=True) + 1e-6)
    q, k = (np.repeat(unit(y.reshape(t, nk, dk)), shared, 1) for y in (q, k))
    q, v, beta = q * dk**-0.5, v.reshape(t, nv, dv), sigmoid(b)
    decay = np.exp(-np.exp(w["A_log"]) * np.logaddexp(0, a + w["dt_bias"]))
    state, out = np.zeros((nv, dk, dv)), np.empty((t, nv, dv))
    for i in range(t):
        state *= decay[i][:, None, None]
        delta = beta[i][:, None] * (v[i] - np.einsum("hk,hkv->hv", k[i], state))
        state += k[i][:, :, None] * delta[:, None]
        out[i] = np.einsum("hk,hkv->hv", q[i], state)
    return (rms(out, w["norm.weight"], c["rms_norm_eps"]) * silu(z)).reshape(t, -1) @ w["out_proj.weight"].T


def latent_attention(x, w, c):
    heads, rank = c["num_attention_heads"], c["kv_lora_rank"]
    plain, rotary, value = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
    if "q_proj.weight" in w:
        q = linear(x, w, "q_proj")
    else:
        q = linear(rms(linear(x, w, "q_a_proj"), w["q_a_layernorm.weight"], 1e-6), w, "q_b_proj")
    q, kv = q.reshape(len(x), heads, -1), linear(x, w, "kv_a_proj_with_mqa")
    f, factor = frequencies(c["rope_parameters"], rotary, len(x), c["max_position_embeddings"])
    key = rotate(kv[:, None, rank:], f, factor, True)
    q = np.concatenate([q[..., :plain], rotate(q[..., plain:], f, factor, True)], -1)
    both = linear(rms(kv[:, :rank], w["kv_a_layernorm.weight"], 1e-6), w, "kv_b_proj").reshape(len(x), heads, -1)
    k = np.concatenate([both[..., :plain], np.broadcast_to(key, (len(x), heads, rotary))], -1)
    return linear(attend(q, k, both[..., plain:], (plain + rotary) ** -0.5, 0, None), w, "o_proj")


INTERLEAVED = {"glm4", "ernie4_5", "ernie4_5_moe"}
CENTRED = {"gemma3_text", "qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"}
POST_NORM = {"olmo2", "olmo3", "exaone4"}
GRANITES = {"granite", "granitemoe", "granitemoehybrid"}


def positioned(c, index, kind):
    """Whether a layer rotates queries and keys."""
    family = c["model_type"]
    if family == "smollm3":
        return bool(c["no_rope_layers"][index])
    if family == "granitemoehybrid":
        return c.get("position_embedding_type") == "rope"
    return not (family == "exaone4" and c.get("sliding_window") and kind == "full_attention")


def attention(x, w, c, index, kind):
    family, t, eps = c["model_type"], len(x), c.get("rms_norm_eps") or c.get("norm_eps")
    heads, head = c["num_attention_heads"], c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]
    offset, gate = float(family in CENTRED), None
    if "qkv_proj.weight" in w:
        q, k, v = np.split(linear(x, w, "qkv_proj"), [heads * head, (heads + c["num_key_value_heads"]) * head], -1)
    else:
        q, k, v = (linear(x, w, name) for name in ("q_proj", "k_proj", "v_proj"))
    if "q_norm.weight" in w and family in ("olmo2", "olmo3"):  # over all heads
        q, k = rms(q, w["q_norm.weight"], eps), rms(k, w["k_norm.weight"], eps)
    if q.shape[-1] == 2 * heads * head:  # of each head a query and a gate
        q, gate = halves(q.reshape(t, heads, 2 * head))
    q, k, v = q.reshape(t, heads, head), k.reshape(t, -1, head), v.reshape(t, -1, head)
    norm = next((n for n in ("norm", "layernorm") if f"q_{n}.weight" in w and family not in ("olmo2", "olmo3")), None)
    if norm:
        q, k = rms(q, w[f"q_{norm}.weight"], eps, offset), rms(k, w[f"k_{norm}.weight"], eps, offset)
    rope = c["rope_parameters"].get(kind, c["rope_parameters"])
    if positioned(c, index, kind):
        f, factor = frequencies(rope, head, t, c["max_position_embeddings"])
        q, k = (rotate(y, f, factor, family in INTERLEAVED) for y in (q, k))
    if "query_layernorm.weight" in w:
        q, k = rms(q, w["query_layernorm.weight"], eps), rms(k, w["key_layernorm.weight"], eps)
    if rope.get("llama_4_scaling_beta"):
        q *= (
            1
            + rope["llama_4_scaling_beta"]
            * np.log1p(np.arange(t) // rope["original_max_position_embeddings"])[:, None, None]
        )
    scale = head**-0.5
    if family in GRANITES:
        scale = c["attention_multiplier"]
    elif family == "gemma3_text":
        scale = c["query_pre_attn_scalar"] ** -0.5
    window = (c.get("sliding_window") or 0) if kind == "sliding_attention" else 0
    y = attend(q, k, v, scale, window, c.get("attn_logit_softcapping"), w.get("sinks"))
    if gate is not None:
        y *= sigmoid(gate.reshape(t, -1))
    return linear(y, w, "out_proj" if "out_proj.weight" in w else "o_proj")


def kinds(c):
    """The kind of each layer. Families without layer_types have the window in all of them."""
    return (
        c.get("layer_types")
        or ["sliding_attention" if c.get("sliding_window") else "full_attention"] * c["num_hidden_layers"]
    )


def mix(x, layer, c, index, kind):
    if kind == "linear_attention":
        return delta_net(x, below(layer, "linear_attn."), c)
    if kind == "conv":
        return short_convolution(x, below(layer, "conv."))
    a = below(layer, "self_attn.")
    return latent_attention(x, a, c) if "kv_b_proj.weight" in a else attention(x, a, c, index, kind)


def feed_forward(x, layer, c, activation):
    m = below(layer, "mlp.") or below(layer, "block_sparse_moe.") or below(layer, "feed_forward.")
    y = below(layer, "shared_mlp.")
    y = mlp(x, y, activation) if y else 0.0
    if not m:
        return y
    sparse = any(k.startswith(("gate.", "router.")) for k in m)
    return y + (experts(x, m, c, activation) if sparse else mlp(x, m, activation))


NORMS = {  # before and after the mixer, before and after the MLP
    "gemma3_text": (
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
    ),
    "glm4": ("input_layernorm", "post_self_attn_layernorm", "post_attention_layernorm", "post_mlp_layernorm"),
    "lfm2": ("operator_norm", None, "ffn_norm", None),
    **{f: (None, "post_attention_layernorm", None, "post_feedforward_layernorm") for f in POST_NORM},
}


def forward(c, w, ids, positions):
    """Logits at some positions. c is the configuration of a text model, and w has the names of its tensors."""
    family, eps = c["model_type"], c.get("rms_norm_eps") or c.get("norm_eps")
    assert family != "gemma4_text", "has no formula here yet"
    offset, residual = float(family in CENTRED), c.get("residual_multiplier", 1.0)
    norms = NORMS.get(family, ("input_layernorm", None, "post_attention_layernorm", None))
    activation = ACTIVATIONS[c.get("hidden_activation") or c.get("hidden_act") or "silu"]
    embedding = w["model.embed_tokens.weight"]
    x = embedding[ids] * (
        math.sqrt(c["hidden_size"]) if family == "gemma3_text" else c.get("embedding_multiplier", 1.0)
    )
    for index, kind in enumerate(kinds(c)):
        layer = below(w, f"model.layers.{index}.")
        norm = lambda y, name: rms(y, layer[name + ".weight"], eps, offset) if name else y
        x = x + residual * norm(mix(norm(x, norms[0]), layer, c, index, kind), norms[1])
        x = x + residual * norm(feed_forward(norm(x, norms[2]), layer, c, activation), norms[3])
    x = rms(x[positions], w.get("model.norm.weight", w.get("model.embedding_norm.weight")), eps, offset)
    z = linear(x, w, "lm_head") if "lm_head.weight" in w else x @ embedding.T + w.get("lm_head.bias", 0.0)
    z = z / c.get("logits_scaling", 1.0)
    cap = c.get("final_logit_softcapping")
    return cap * np.tanh(z / cap) if cap else z


def main():
    import torch
    from families import FAMILIES
    from record import load, logits
    from safetensors.numpy import load_file, save_file

    for folder in map(pathlib.Path, sys.argv[1:]):
        config = json.loads((folder / "config.json").read_text())
        auto = next(f.auto for f in FAMILIES if f.name == json.loads((folder / "record.json").read_text())["family"])
        rng = random.Random(folder.name)
        ids = [rng.randrange(3, config["vocab_size"]) for _ in range(LENGTH)]
        positions = [*range(0, LENGTH - 64, 61), *range(LENGTH - 64, LENGTH)]
        weights = {k: v.astype(np.float64) for k, v in load_file(folder / "model.safetensors").items()}
        exact = forward(config, weights, ids, positions)
        with torch.no_grad():
            theirs = logits(load(folder, auto), ids)[positions].numpy()
        save_file({"exact": exact.astype(np.float32), "theirs": theirs}, folder / "long.safetensors")
        (folder / "long.json").write_text(json.dumps(dict(ids=ids, positions=positions)))
        print(
            f"{folder.name}: transformers differs by {np.abs(exact - theirs).max() / np.abs(exact).max():.1e}",
            flush=True,
        )


if __name__ == "__main__":
    main()
