"""Writes one folder for each architecture: a tiny random model as transformers saves it, in float32, and what
transformers computes with it.

    python3 make.py [NAME...]     (torch 2.15.0 on a CPU; transformers 4.57.1 and peft 0.17.1 for MODELS, 5.24.0 and 0.21.2
                                   for LATER: without names, those of the installed version)

Each folder has config.json and model.safetensors, and

    reference.json          transformers: its version, of LATER; ids: 2 rows of 24; prompt: the first 12 of row 0; greedy: the 32 tokens that follow it
    reference.safetensors   logits [2, 24, V] of ids, float32, with eager attention

and, for some, adapter/ as PEFT saves it, with reference.safetensors holding the logits of the adapted model.

Norms and biases are random too: a model that left one out would be seen. No greedy step is closer than 1e-2 logits.
"""
import json, os, shutil, sys

os.environ["HF_HUB_OFFLINE"] = "1"
import peft, torch, transformers
import transformers as t
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import (
    Gemma3ForCausalLM, Gemma3TextConfig, GraniteConfig, GraniteForCausalLM, LlamaConfig, LlamaForCausalLM, MistralConfig,
    MistralForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM)

HERE = os.path.dirname(os.path.abspath(__file__))
torch.set_num_threads(1)
ROWS, LENGTH, PROMPT, NEW = 2, 24, 12, 32

SMALL = dict(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=128)


def small(**changes):
    return {**SMALL, **changes}


MODELS = {
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**small(rope_theta=1e6, use_sliding_window=False, sliding_window=16))),
    "qwen2-window": lambda: Qwen2ForCausalLM(Qwen2Config(**small(
        num_hidden_layers=3, use_sliding_window=True, sliding_window=6, max_window_layers=1, tie_word_embeddings=True))),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**small(head_dim=16, rope_theta=1e6, tie_word_embeddings=True))),
    "qwen3_moe": lambda: Qwen3MoeForCausalLM(Qwen3MoeConfig(**small(
        head_dim=16, num_hidden_layers=4, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=24, norm_topk_prob=True,
        decoder_sparse_step=2, mlp_only_layers=[3]))),
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**small(
        rope_theta=500000.0, attention_bias=True, mlp_bias=True, max_position_embeddings=512,
        rope_scaling=dict(  # of the four waves one is short, one between, and two long
            rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=256)))),
    "smollm2": lambda: LlamaForCausalLM(LlamaConfig(**small(
        num_hidden_layers=3, hidden_size=36, num_attention_heads=3, num_key_value_heads=1, rope_theta=100000, rms_norm_eps=1e-5,
        tie_word_embeddings=True))),
    "granite": lambda: GraniteForCausalLM(GraniteConfig(**small(
        embedding_multiplier=3.0, logits_scaling=2.0, residual_multiplier=0.22, attention_multiplier=0.2))),
    "mistral": lambda: MistralForCausalLM(MistralConfig(**small(head_dim=12, sliding_window=7))),
    "gemma3": lambda: Gemma3ForCausalLM(Gemma3TextConfig(**small(
        head_dim=16, num_hidden_layers=3, sliding_window=7, layer_types=["sliding_attention", "sliding_attention", "full_attention"],
        query_pre_attn_scalar=24, rope_theta=1e6, rope_local_base_freq=1e4, rope_scaling=dict(rope_type="linear", factor=8.0),
        bos_token_id=1, eos_token_id=2, pad_token_id=0))),
    "gemma3-caps": lambda: Gemma3ForCausalLM(Gemma3TextConfig(**small(
        head_dim=16, num_hidden_layers=2, sliding_window=7, sliding_window_pattern=2, query_pre_attn_scalar=16,
        attn_logit_softcapping=3.0, final_logit_softcapping=6.0, bos_token_id=1, eos_token_id=2, pad_token_id=0))),
}
VISION = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2)
QWEN_VISION = dict(depth=1, hidden_size=16, intermediate_size=24, num_heads=2, out_hidden_size=32)
SPECIAL = dict(bos_token_id=1, eos_token_id=2, pad_token_id=0)
WINDOWS = ["sliding_attention", "sliding_attention", "full_attention"]


def wrapped(kind, text, vision, **top):
    """A model that reads images, around a text model."""
    config = getattr(t, kind + "Config")(text_config=text, vision_config=vision, **top)
    return getattr(t, kind + "ForConditionalGeneration")(config)


LATER = {
    "smollm3": lambda: t.SmolLM3ForCausalLM(t.SmolLM3Config(**small(
        num_hidden_layers=4, no_rope_layers=[1, 0, 1, 0], use_sliding_window=True, sliding_window=6, attention_bias=True, mlp_bias=True,
        **SPECIAL))),
    "smollm3-plain": lambda: t.SmolLM3ForCausalLM(t.SmolLM3Config(**small(
        num_hidden_layers=4, no_rope_layer_interval=3, tie_word_embeddings=False, **SPECIAL))),
    "seed_oss": lambda: t.SeedOssForCausalLM(t.SeedOssConfig(**small(
        head_dim=12, attention_out_bias=True, mlp_bias=True, attention_dropout=0.0, residual_dropout=0.0, **SPECIAL))),
    "olmo2": lambda: t.Olmo2ForCausalLM(t.Olmo2Config(**small(attention_bias=True, **SPECIAL))),
    "exaone4": lambda: t.Exaone4ForCausalLM(t.Exaone4Config(**small(
        num_hidden_layers=3, sliding_window=7, layer_types=WINDOWS, **SPECIAL))),
    "exaone4-full": lambda: t.Exaone4ForCausalLM(t.Exaone4Config(**small(
        sliding_window=None, layer_types=["full_attention"] * 2, **SPECIAL))),
    "phi3": lambda: t.Phi3ForCausalLM(t.Phi3Config(**small(sliding_window=7, **SPECIAL))),
    "granitehybrid": lambda: t.GraniteMoeHybridForCausalLM(t.GraniteMoeHybridConfig(**small(
        num_local_experts=0, num_experts_per_tok=0, layer_types=["full_attention"] * 2, position_embedding_type="rope",
        shared_intermediate_size=40, attention_bias=True, embedding_multiplier=3.0, logits_scaling=2.0, residual_multiplier=0.22,
        attention_multiplier=0.2, mamba_n_heads=8, mamba_d_head=8, **SPECIAL))),
    "granitehybrid-nope": lambda: t.GraniteMoeHybridForCausalLM(t.GraniteMoeHybridConfig(**small(
        num_local_experts=0, num_experts_per_tok=0, layer_types=["full_attention"] * 2, shared_intermediate_size=40,
        tie_word_embeddings=True, mamba_n_heads=8, mamba_d_head=8, **SPECIAL))),
    "gemma3-vision": lambda: wrapped(
        "Gemma3", small(head_dim=16, num_hidden_layers=3, sliding_window=7, layer_types=WINDOWS, query_pre_attn_scalar=24,
                        rope_parameters=dict(full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1e6),
                                             sliding_attention=dict(rope_type="default", rope_theta=1e4)), **SPECIAL),
        dict(VISION, image_size=8, patch_size=4), mm_tokens_per_image=4, image_token_index=93, boi_token_index=94, eoi_token_index=95),
    "mistral3-vision": lambda: wrapped(
        "Mistral3", dict(small(head_dim=12, sliding_window=7, **SPECIAL), model_type="mistral"),
        dict(VISION, model_type="pixtral", head_dim=8, image_size=8, patch_size=4), image_token_index=95, tie_word_embeddings=False),
    "qwen2_5_vl": lambda: wrapped(
        "Qwen2_5_VL", small(num_hidden_layers=3, use_sliding_window=True, sliding_window=6, max_window_layers=1,
                            rope_parameters=dict(rope_type="default", rope_theta=1e6, mrope_section=[1, 1, 2]), **SPECIAL),
        dict(QWEN_VISION, fullatt_block_indexes=[0]), image_token_id=93, video_token_id=94, vision_start_token_id=91,
        vision_end_token_id=92),
    "qwen3_vl": lambda: wrapped(
        "Qwen3VL", small(head_dim=16, attention_bias=True,
                         rope_parameters=dict(rope_type="default", rope_theta=5e6, mrope_section=[4, 2, 2], mrope_interleaved=True)),
        dict(QWEN_VISION, deepstack_visual_indexes=[0], num_position_embeddings=4), image_token_id=93, video_token_id=94,
        vision_start_token_id=91, vision_end_token_id=92, tie_word_embeddings=True),
}
VERSIONS = {("4.57.1", "0.17.1"): MODELS, ("5.24.0", "0.21.2"): LATER}
MADE = VERSIONS.get((transformers.__version__, peft.__version__))
assert MADE, "other versions than the fixtures are made with"
ADAPTED = ["qwen3", "llama", "phi3", "gemma3-vision", "qwen2_5_vl"]


def randomize(model):
    """Gives all weights a visible scale."""
    offset = 0.0 if "Gemma" in type(model).__name__ else 1.0
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "visual" in name or "vision" in name or "projector" in name:
                weight.copy_(0.1 * torch.randn_like(weight))
            elif name.endswith("bias"):
                weight.copy_(0.3 * torch.randn_like(weight))
            elif name.endswith("embed_tokens.weight"):  # small beside what layers add: a tied model would repeat its input
                normed = any("input_layernorm" in other for other, _ in model.named_parameters())  # else biases would drown it
                weight.copy_((0.5 * weight.shape[1] ** -0.5 if normed else 1.0) * torch.randn_like(weight))
            elif weight.dim() == 1:
                weight.copy_(offset + 0.3 * torch.randn_like(weight))
            else:
                weight.copy_(torch.randn_like(weight) * 1.6 * weight.shape[1] ** -0.5)


def forward(model, ids):
    """The logits. transformers reads attn_logit_softcapping and leaves it to the caller to hand on."""
    extra = {}
    if transformers.__version__ == "4.57.1" and (cap := getattr(model.config, "attn_logit_softcapping", None)) is not None:
        extra["softcap"] = cap
    with torch.no_grad():
        return model(input_ids=ids, use_cache=False, **extra).logits


def continuation(model, prompt):
    """Greedy tokens, and the smallest lead of a winner."""
    ids, lead = prompt.clone(), float("inf")
    for _ in range(NEW):
        first, second = (top := forward(model, ids)[0, -1].topk(2)).values.tolist()
        lead = min(lead, first - second)
        ids = torch.cat([ids, top.indices[None, :1]], 1)
    return ids[0, prompt.shape[1]:].tolist(), lead


def make(name):
    out = os.path.join(HERE, name)
    for seed in range(100):
        torch.manual_seed(seed)
        model = MADE[name]().eval()
        model.set_attn_implementation("eager")
        randomize(model)
        ids = torch.randint(3, SMALL["vocab_size"] - 5 * (MADE is LATER), (ROWS, LENGTH))  # the last ones may mean images
        greedy, lead = continuation(model, ids[:1, :PROMPT])
        if lead > 1e-2 and len(set(greedy)) > 6 and (MADE is MODELS or max(greedy) < 91):
            break
    else:
        raise SystemExit(f"{name}: every seed has a tie, or repeats itself")
    shutil.rmtree(out, ignore_errors=True)
    model.save_pretrained(out)
    if os.path.exists(path := os.path.join(out, "generation_config.json")):
        os.remove(path)
    save_file(dict(logits=forward(model, ids)), os.path.join(out, "reference.safetensors"))
    with open(os.path.join(out, "reference.json"), "w") as f:
        version = dict(transformers=transformers.__version__) if MADE is LATER else {}
        json.dump(dict(version, seed=seed, ids=ids.tolist(), prompt=ids[0, :PROMPT].tolist(), greedy=greedy), f)
    print(f"{name}: seed {seed}, smallest lead {lead:.3g}")
    if name in ADAPTED:
        adapt(model, ids, os.path.join(out, "adapter"))


def adapt(model, ids, out):
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    if MADE is LATER:  # not those of the part that reads images
        part = r".*\.layers\.\d+\." if not hasattr(model.config, "vision_config") else r".*language_model\.layers\.\d+\."
        targets = part + r"(self_attn|mlp)\.\w+_proj"
    adapted = get_peft_model(model, LoraConfig(r=4, lora_alpha=6, target_modules=targets, task_type="CAUSAL_LM")).eval()
    with torch.no_grad():
        for name, weight in adapted.named_parameters():
            if "lora_" in name:
                weight.copy_(0.2 * torch.randn_like(weight))
    adapted.peft_config["default"].base_model_name_or_path = "base"
    adapted.save_pretrained(out, save_embedding_layers=False)
    os.remove(os.path.join(out, "README.md"))
    path = os.path.join(out, "adapter_config.json")
    with open(path) as f:
        config = json.load(f)
    if isinstance(config["target_modules"], list):
        config["target_modules"].sort()  # PEFT has a set
    with open(path, "w") as f:
        json.dump(config, f, indent=2)
    save_file(dict(logits=forward(adapted, ids)), os.path.join(out, "reference.safetensors"))


for name in sys.argv[1:] or MADE:
    make(name)
