"""The families of models that this library is compared with transformers on: how random configurations of each are
drawn.

A row of FAMILIES is all that a new family needs; see Family. Sizes are primes or differ from one another, so that
tensors that are swapped do not fit, and every feature that a family has is on in some of the configurations.
"""

import dataclasses, random
from collections.abc import Callable

CONTEXT = 4096


@dataclasses.dataclass
class Family:
    name: str  # of the row: the model_type, and what is special about the configurations
    config: str  # the class of transformers
    draw: Callable[[random.Random, int], dict]  # the keys of the n-th configuration
    built: bool = False  # whether this library builds it; others must be refused
    auto: str = "AutoModelForCausalLM"
    targets: tuple = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    ends: tuple = ("embed_tokens", "lm_head")  # the embedding and the head, as far as adapters may attach to them
    expert_parameters: tuple = ()  # of adapters on experts, which are refused so far
    centred: bool = False  # norms multiply by 1 + w
    gguf: Callable[[dict, int], dict] | None = None  # makes of the keys of a configuration one that llama.cpp can have


def sizes(rng, head_dim=True, odd=True, layers=4, **more):
    """The sizes that all have. Without head_dim a head has hidden_size / num_attention_heads."""
    heads, kv = rng.choice([(4, 2), (6, 3), (6, 2), (4, 1), (3, 1)])
    keys = dict(
        vocab_size=rng.choice([61, 67, 71, 73]),
        intermediate_size=rng.choice([37, 41, 43, 53] if odd else [40, 44, 52]),
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv,
        max_position_embeddings=CONTEXT,
        rms_norm_eps=rng.choice([1e-6, 1e-5, 1e-2]),
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    if head_dim:
        keys["hidden_size"] = heads * rng.choice([7, 9, 11])
        keys["head_dim"] = rng.choice([6, 8, 10, 16])
    else:
        keys["hidden_size"] = heads * rng.choice([6, 8, 10])
    return {**keys, **more}


def theta(rng, *scalings):
    """rope_parameters with a base, and one of some scalings."""
    return {
        "rope_type": "default",
        "rope_theta": rng.choice([100.0, 1e4, 5e5, 1e6]),
        **(rng.choice(scalings) if scalings else {}),
    }


def windows(rng, layers, full_last=False):
    """layer_types of both kinds."""
    while len(set(kinds := [rng.choice(["sliding_attention", "full_attention"]) for _ in range(layers)])) < 2:
        pass
    if full_last:
        kinds[0], kinds[-1] = "sliding_attention", "full_attention"
    return kinds


LINEAR = {"rope_type": "linear", "factor": 3.0}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
DYNAMIC = {"rope_type": "dynamic", "factor": 2.0}


def longrope(n, original):
    return {
        "rope_type": "longrope",
        "original_max_position_embeddings": original,
        "short_factor": [1.0 + 0.1 * i for i in range(n)],
        "long_factor": [2.0 + 0.7 * i for i in range(n)],
    }


def llama(rng, n, rope=None, **more):
    scaling = [{}, LINEAR, LLAMA3, {}][n % 4] if rope is None else rope
    return sizes(
        rng,
        attention_bias=n % 2 == 0,
        mlp_bias=n % 3 == 0,
        tie_word_embeddings=n == 3,
        rope_parameters=theta(rng, scaling),
        **more,
    )


def llama_longrope(original):
    def draw(rng, n):
        keys = llama(rng, n)
        rope = {**theta(rng), **longrope(keys["head_dim"] // 2, original)}
        if n % 2:
            rope["attention_factor"] = 1.3
        return {**keys, "rope_parameters": rope}

    return draw


def qwen2(rng, n):
    keys = sizes(rng, head_dim=False, tie_word_embeddings=n == 1, rope_parameters=theta(rng))
    if n == 0:
        return {**keys, "use_sliding_window": False, "sliding_window": 5}
    return {**keys, "use_sliding_window": True, "sliding_window": rng.choice([5, 7]), "max_window_layers": n % 3 + 1}


def qwen3(rng, n):
    keys = sizes(
        rng, attention_bias=n % 2 == 1, tie_word_embeddings=n == 2, rope_parameters=theta(rng, LINEAR if n == 3 else {})
    )
    if n % 2:
        return {**keys, "use_sliding_window": True, "sliding_window": 7, "layer_types": windows(rng, 4)}
    return keys


def experts(rng, **more):
    return {
        "num_experts": rng.choice([5, 6, 7]),
        "num_experts_per_tok": rng.choice([2, 3]),
        "moe_intermediate_size": rng.choice([13, 17, 19]),
        **more,
    }


def qwen3_moe(rng, n):
    window = {"use_sliding_window": True, "sliding_window": 6} if n == 3 else {}
    sparse = [
        {},
        {"decoder_sparse_step": 2},
        {"mlp_only_layers": [1]},
        {"mlp_only_layers": [3], "decoder_sparse_step": 2},
    ][n % 4]
    return sizes(
        rng,
        attention_bias=n == 1,
        norm_topk_prob=n % 2 == 0,
        tie_word_embeddings=n == 2,
        rope_parameters=theta(rng),
        **experts(rng, **sparse),
        **window,
    )


def mistral(rng, n):
    return sizes(rng, sliding_window=[7, 5, None, 11][n % 4], tie_word_embeddings=n == 3, rope_parameters=theta(rng))


def multipliers(rng):
    return dict(
        embedding_multiplier=rng.choice([3.0, 2.5]),
        attention_multiplier=rng.choice([0.2, 0.35]),
        residual_multiplier=rng.choice([0.22, 0.6]),
        logits_scaling=rng.choice([2.0, 1.5]),
    )


def granite(rng, n):
    return sizes(
        rng,
        head_dim=False,
        attention_bias=n % 2 == 0,
        mlp_bias=n % 3 == 0,
        tie_word_embeddings=n == 1,
        rope_parameters=theta(rng, LINEAR if n == 2 else {}),
        **multipliers(rng),
    )


def gemma3(rng, n):
    full = {"rope_type": "linear", "factor": 8.0} if n % 2 else {"rope_type": "default"}
    return sizes(
        rng,
        sliding_window=rng.choice([5, 7]),
        layer_types=windows(rng, 4),
        tie_word_embeddings=n != 1,
        attention_bias=n == 2,
        query_pre_attn_scalar=rng.choice([9, 24]),
        attn_logit_softcapping=3.0 if n == 3 else None,
        final_logit_softcapping=4.0 if n >= 2 else None,
        rope_parameters={
            "full_attention": {**full, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e3},
        },
    )


# What llama.cpp has of these families: it knows no sliding windows but Gemma 3's, in five of six layers.


def llama_gguf(keys, n):
    scaling = {**LLAMA3, "original_max_position_embeddings": 8192} if n % 2 else LINEAR
    return keys | {"rope_parameters": {**scaling, "rope_theta": 5e5}}


def qwen2_gguf(keys, n):
    return keys | {"use_sliding_window": False}


def qwen3_gguf(keys, n):
    return keys | {"use_sliding_window": False, "layer_types": None, "attention_bias": False}


def qwen3_moe_gguf(keys, n):
    return keys | {
        "use_sliding_window": False,
        "attention_bias": False,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }


def mistral_gguf(keys, n):
    return keys | {"sliding_window": None}


def granite_gguf(keys, n):
    return keys


def gemma3_gguf(keys, n):
    return keys | {
        "num_hidden_layers": 6,
        "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
        "attention_bias": False,
        "query_pre_attn_scalar": keys["head_dim"],
        "attn_logit_softcapping": None,
    }


# Families that are not built so far.


def delta(rng):
    return dict(
        linear_key_head_dim=8,
        linear_value_head_dim=12,
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        linear_conv_kernel_dim=rng.choice([3, 4]),
    )


def qwen3_5(rng, n):
    return sizes(
        rng,
        **delta(rng),
        attention_bias=n == 1,
        tie_word_embeddings=n == 2,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": [0.5, 0.75][n % 2]},
    ) | {"head_dim": 16}


def qwen3_5_moe(rng, n):
    return {k: v for k, v in qwen3_5(rng, n).items() if k != "intermediate_size"} | experts(
        rng, shared_expert_intermediate_size=23
    )


def qwen3_next(rng, n):
    return qwen3_5(rng, n) | experts(
        rng, shared_expert_intermediate_size=23, norm_topk_prob=n % 2 == 0, mlp_only_layers=[n % 4]
    )


def gpt_oss(rng, n):
    rope = {**YARN, "truncate": n == 3} if n % 2 else {"rope_type": "default"}
    return sizes(
        rng,
        sliding_window=7,
        num_local_experts=6,
        num_experts_per_tok=2,
        swiglu_limit=[7.0, 1.5][n % 2],
        rope_parameters={**rope, "rope_theta": 1e4},
    )


def qwen2_moe(rng, n):
    window = {"use_sliding_window": True, "sliding_window": 7, "max_window_layers": 2} if n % 2 else {}
    return sizes(
        rng,
        head_dim=False,
        norm_topk_prob=n % 2 == 0,
        qkv_bias=n != 3,
        rope_parameters=theta(rng),
        **experts(rng, shared_expert_intermediate_size=23, mlp_only_layers=[1] if n % 3 else []),
        **window,
    )


def mixtral(rng, n):
    return sizes(
        rng,
        num_local_experts=6,
        num_experts_per_tok=rng.choice([2, 3]),
        sliding_window=[7, None][n % 2],
        rope_parameters=theta(rng),
    )


def granitemoe(rng, n):
    return sizes(
        rng,
        head_dim=False,
        num_local_experts=6,
        num_experts_per_tok=rng.choice([2, 3]),
        attention_bias=n == 1,
        rope_parameters=theta(rng),
        **multipliers(rng),
    )


def granitemoehybrid(rng, n):
    keys = sizes(
        rng,
        head_dim=False,
        num_local_experts=0,
        num_experts_per_tok=0,
        layer_types=["full_attention"] * 4,
        position_embedding_type=["rope", None][n % 2],
        shared_intermediate_size=rng.choice([29, 31]),
        tie_word_embeddings=n == 2,
        attention_bias=n == 1,
        rope_parameters=theta(rng),
        **multipliers(rng),
    )
    return keys | {"mamba_n_heads": 2, "mamba_d_head": keys["hidden_size"]}  # validated though no layer has one


def ernie4_5(rng, n):
    return sizes(rng, use_bias=n % 2 == 0, tie_word_embeddings=n != 1, rope_parameters=theta(rng))


def ernie4_5_moe(rng, n):
    return sizes(rng, head_dim=False, use_bias=n % 2 == 0, tie_word_embeddings=n != 1, rope_parameters=theta(rng)) | {
        "moe_num_experts": 6,
        "moe_k": 2,
        "moe_intermediate_size": 17,
        "moe_num_shared_experts": n % 3,
        "moe_layer_start_index": 1,
        "moe_layer_end_index": [-1, 2][n % 2],
        "moe_layer_interval": n % 2 + 1,
    }


def glm4(rng, n):
    return sizes(
        rng,
        attention_bias=n % 2 == 0,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5},
    ) | {"head_dim": [16, 12, 8, 16][n % 4]}


def glm4_moe(rng, n):
    return glm4(rng, n) | {
        "n_routed_experts": 8,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": 17,
        "n_group": [4, 1][n % 2],
        "topk_group": [2, 1][n % 2],
        "routed_scaling_factor": 2.5,
        "use_qk_norm": n % 2 == 0,
        "first_k_dense_replace": 1,
        "n_shared_experts": n % 2 + 1,
        "norm_topk_prob": n != 3,
    }


def glm4_moe_lite(rng, n):
    keys = {k: v for k, v in sizes(rng).items() if k != "head_dim"}
    return keys | {
        "num_key_value_heads": keys["num_attention_heads"],
        "q_lora_rank": [11, None][n % 2],
        "kv_lora_rank": 15,
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 12,
        "v_head_dim": 10,
        "n_routed_experts": 8,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": 17,
        "n_group": 4,
        "topk_group": 2,
    }


def seed_oss(rng, n):
    return sizes(
        rng,
        attention_bias=n != 3,
        attention_out_bias=n % 2 == 0,
        mlp_bias=n % 3 == 0,
        attention_dropout=0.0,
        residual_dropout=0.0,
        rope_parameters=theta(rng),
    )


def hunyuan(rng, n):
    rope = {"rope_type": "dynamic", "alpha": 1000.0, "factor": 1.0} if n % 2 == 0 else {}
    return sizes(rng, attention_bias=n == 1, tie_word_embeddings=n == 2, rope_parameters=theta(rng, rope))


def ministral3(rng, n):
    return sizes(
        rng,
        sliding_window=[None, 7][n % 2],
        tie_word_embeddings=n == 2,
        rope_parameters={
            **YARN,
            "rope_theta": 1e6,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "mscale": 1.0,
            "mscale_all_dim": [1.0, 0.5][n % 2],
            "llama_4_scaling_beta": 0.1,
        },
    )


def phi3(rng, n):
    keys = {k: v for k, v in sizes(rng).items() if k != "head_dim"}
    keys["hidden_size"] = keys["num_attention_heads"] * 8
    rotated, original = [8, 4][n % 2], [64, 8, 16, 64][n % 4]
    return keys | {
        "sliding_window": [None, 7][n // 2],
        "tie_word_embeddings": n == 1,
        "partial_rotary_factor": rotated / 8,
        "original_max_position_embeddings": original,
        "rope_parameters": {
            **longrope(rotated // 2, original),
            "rope_theta": 1e4,
            "partial_rotary_factor": rotated / 8,
        },
    }


def smollm3(rng, n):
    window = {"use_sliding_window": True, "sliding_window": 7} if n == 3 else {}
    layers = (
        {"no_rope_layer_interval": 3}
        if n == 0
        else {"no_rope_layers": [[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 1, 0]][n % 3]}
    )
    return sizes(
        rng,
        head_dim=False,
        attention_bias=n % 2 == 1,
        mlp_bias=n == 2,
        tie_word_embeddings=n != 1,
        rope_parameters=theta(rng),
        **window,
        **layers,
    )


def olmo2(rng, n):
    return sizes(rng, head_dim=False, attention_bias=n % 2 == 1, tie_word_embeddings=n == 2, rope_parameters=theta(rng))


def olmo3(rng, n):
    return olmo2(rng, n) | {
        "sliding_window": 7,
        "layer_types": windows(rng, 4),
        "rope_parameters": {
            "full_attention": {**(YARN if n % 2 else {"rope_type": "default"}), "rope_theta": 1e5},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        },
    }


def exaone4(rng, n):
    if n % 2:
        return sizes(
            rng, head_dim=False, sliding_window=None, layer_types=["full_attention"] * 4, rope_parameters=theta(rng)
        )
    return sizes(
        rng,
        head_dim=False,
        sliding_window=7,
        layer_types=windows(rng, 4),
        tie_word_embeddings=n == 2,
        rope_parameters=theta(rng, LLAMA3),
    )


def lfm2(rng, n):
    keys = {k: v for k, v in sizes(rng, head_dim=False).items() if k != "rms_norm_eps"}
    return keys | {
        "layer_types": [["conv", "full_attention"] * 2, ["full_attention", "conv", "conv", "full_attention"]][n % 2],
        "block_multiple_of": 8,
        "conv_bias": n % 2 == 1,
        "norm_eps": 1e-3,
        "block_auto_adjust_ff_dim": n != 3,
        "rope_parameters": theta(rng),
    }


def gemma4(rng, n):
    keys = sizes(
        rng,
        global_head_dim=[16, 24][n % 2],
        num_global_key_value_heads=1,
        attention_k_eq_v=n != 3,
        hidden_size_per_layer_input=[0, 0, 0, 11][n % 4],
        vocab_size_per_layer_input=61,
        sliding_window=7,
        layer_types=windows(rng, 4, full_last=True),
        final_logit_softcapping=[30.0, None][n % 2],
        num_kv_shared_layers=[0, 2, 0, 0][n % 4],
    )
    keys["head_dim"] = 8
    if n == 2:
        keys |= {"enable_moe_block": True, "num_experts": 6, "top_k_experts": 2, "moe_intermediate_size": 17}
    if n == 1:
        keys |= {"layer_types": ["sliding_attention", "full_attention"] * 2, "use_double_wide_mlp": True}
    return keys | {"vocab_size": 61}


# Text towers of wrappers: a small vision model is beside them.

VISION = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2)


def tower(text, vision, **more):
    return lambda rng, n: {"text_config": text(rng, n), "vision_config": vision, **more}


def mrope(draw):
    """Sections of positions in time, height and width, which are equal for text."""

    def drawn(rng, n):
        keys = draw(rng, n) | {"use_sliding_window": False}
        keys.pop("layer_types", None)
        half = keys.get("head_dim", keys["hidden_size"] // keys["num_attention_heads"]) // 2
        return keys | {
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 1e4,
                "mrope_section": [half - 2 * (half // 3), half // 3, half // 3],
            }
        }

    return drawn


SIGLIP = {**VISION, "model_type": "siglip_vision_model", "image_size": 16, "patch_size": 8}
QWEN = dict(depth=1, hidden_size=16, intermediate_size=24, num_heads=2, patch_size=4)
PIXTRAL = {**VISION, "model_type": "pixtral", "head_dim": 8, "image_size": 16, "patch_size": 8}
IMAGES = "AutoModelForImageTextToText"


def qwen3_plain(rng, n):
    return {k: v for k, v in qwen3(rng, n * 2).items() if k != "tie_word_embeddings"}


STACKED = ("mlp.experts.gate_up_proj", "mlp.experts.down_proj")
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
FUSED = ("qkv_proj", "o_proj", "gate_up_proj", "down_proj")

FAMILIES = [
    Family("llama", "LlamaConfig", llama, built=True, gguf=llama_gguf),
    Family("qwen2", "Qwen2Config", qwen2, built=True, gguf=qwen2_gguf),
    Family("qwen3", "Qwen3Config", qwen3, built=True, gguf=qwen3_gguf),
    Family(
        "qwen3_moe",
        "Qwen3MoeConfig",
        qwen3_moe,
        built=True,
        gguf=qwen3_moe_gguf,
        targets=ATTENTION,
        expert_parameters=STACKED,
    ),
    Family("mistral", "MistralConfig", mistral, built=True, gguf=mistral_gguf),
    Family("granite", "GraniteConfig", granite, built=True, gguf=granite_gguf),
    Family("gemma3_text", "Gemma3TextConfig", gemma3, built=True, gguf=gemma3_gguf, ends=("lm_head",), centred=True),
    Family(
        "llama, yarn",
        "LlamaConfig",
        lambda rng, n: llama(
            rng,
            n,
            {
                **YARN,
                **[
                    {},
                    {"truncate": False, "beta_fast": 8.0, "beta_slow": 2.0},
                    {"mscale": 0.7, "mscale_all_dim": 1.2},
                    {"attention_factor": 0.8},
                ][n % 4],
            },
        ),
    ),
    Family(
        "llama, dynamic", "LlamaConfig", lambda rng, n: llama(rng, n, DYNAMIC, max_position_embeddings=[64, 16][n % 2])
    ),
    Family("llama, longrope, short", "LlamaConfig", llama_longrope(CONTEXT)),
    Family("llama, longrope, long", "LlamaConfig", llama_longrope(8)),
    Family("gemma3", "Gemma3Config", tower(gemma3, SIGLIP, mm_tokens_per_image=4), auto=IMAGES, centred=True),
    Family("mistral3", "Mistral3Config", tower(mistral, PIXTRAL), auto=IMAGES),
    Family("qwen2_5_vl", "Qwen2_5_VLConfig", tower(mrope(qwen2), QWEN | {"out_hidden_size": 16}), auto=IMAGES),
    Family(
        "qwen3_vl",
        "Qwen3VLConfig",
        tower(mrope(qwen3_plain), QWEN | {"out_hidden_size": 16, "deepstack_visual_indexes": [0]}),
        auto=IMAGES,
    ),
    Family("smollm3", "SmolLM3Config", smollm3),
    Family("seed_oss", "SeedOssConfig", seed_oss),
    Family("olmo2", "Olmo2Config", olmo2),
    Family("olmo3", "Olmo3Config", olmo3),
    Family("phi3", "Phi3Config", phi3, targets=FUSED),
    Family("glm4", "Glm4Config", glm4, targets=(*ATTENTION, "gate_up_proj", "down_proj")),
    Family("exaone4", "Exaone4Config", exaone4),
    Family("hunyuan_v1_dense", "HunYuanDenseV1Config", hunyuan),
    Family("ministral3", "Ministral3Config", ministral3),
    Family(
        "granitemoehybrid",
        "GraniteMoeHybridConfig",
        granitemoehybrid,
        targets=(*ATTENTION, "input_linear", "output_linear"),
    ),
    Family("ernie4_5", "Ernie4_5Config", ernie4_5),
    Family("lfm2", "Lfm2Config", lfm2, targets=("q_proj", "k_proj", "v_proj", "out_proj", "in_proj", "w1", "w2", "w3")),
    Family("gemma4_text", "Gemma4TextConfig", gemma4),
    Family("qwen2_moe", "Qwen2MoeConfig", qwen2_moe, targets=ATTENTION, expert_parameters=STACKED),
    Family("mixtral", "MixtralConfig", mixtral, targets=ATTENTION, expert_parameters=STACKED),
    Family("granitemoe", "GraniteMoeConfig", granitemoe, targets=ATTENTION),
    Family("ernie4_5_moe", "Ernie4_5_MoeConfig", ernie4_5_moe, targets=ATTENTION),
    Family("glm4_moe", "Glm4MoeConfig", glm4_moe, targets=ATTENTION),
    Family(
        "glm4_moe_lite", "Glm4MoeLiteConfig", glm4_moe_lite, targets=("q_a_proj", "q_b_proj", "kv_b_proj", "o_proj")
    ),
    Family("gpt_oss", "GptOssConfig", gpt_oss, targets=ATTENTION),
    Family("qwen3_next", "Qwen3NextConfig", qwen3_next, targets=ATTENTION, centred=True),
    Family("qwen3_5_text", "Qwen3_5TextConfig", qwen3_5, centred=True),
    Family("qwen3_5_moe_text", "Qwen3_5MoeTextConfig", qwen3_5_moe, targets=ATTENTION, centred=True),
]
