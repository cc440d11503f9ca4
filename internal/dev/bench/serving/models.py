"""Makes a model of random weights in the shape of a released one, for all programs that are compared: DIR/SHAPE.gguf
for art and llama.cpp, and DIR/SHAPE/ with config.json and model.safetensors, the same weights, for transformers.

    python internal/dev/bench/serving/models.py DIR smollm2-135m|qwen3-0.6b|tiny

Needs numpy, torch, transformers and gguf: see compare.py. The vocabulary is made up, since prompts are lists of ids.
"""

import pathlib
import sys

import gguf
import numpy
import torch
import transformers

LLAMA, QWEN3 = transformers.LlamaConfig, transformers.Qwen3Config
SHAPES = {
    "smollm2-135m": LLAMA(
        vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
        num_key_value_heads=3, head_dim=64, max_position_embeddings=8192, rms_norm_eps=1e-5, rope_theta=1e5,
        tie_word_embeddings=True,
    ),
    "qwen3-0.6b": QWEN3(
        vocab_size=151936, hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16,
        num_key_value_heads=8, head_dim=128, max_position_embeddings=40960, rms_norm_eps=1e-6, rope_theta=1e6,
        tie_word_embeddings=True,
    ),
    "tiny": LLAMA(
        vocab_size=1024, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=4096, rms_norm_eps=1e-5, rope_theta=1e4,
        tie_word_embeddings=True,
    ),
}
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)


def vocabulary(size):
    """Tokens of a byte-level BPE without merges but one: the bytes, invented words, and at the end the special tokens."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    tokens = [chr(b) for b in printable] + [chr(0x100 + i) for i in range(256 - len(printable))] + ["ab"]
    tokens += [f"word{i}" for i in range(size - len(tokens) - 2)] + ["<|im_start|>", "<|im_end|>"]
    kinds = [gguf.TokenType.NORMAL] * (size - 2) + [gguf.TokenType.CONTROL] * 2
    return tokens, kinds


def interleaved(x, heads):
    """Rows of a query or key projection in the order in which llama.cpp rotates them for this architecture."""
    return x.reshape(heads, 2, x.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(x.shape)


def write_gguf(path, config, weights):
    architecture = config.model_type
    kind = {"llama": gguf.MODEL_ARCH.LLAMA, "qwen3": gguf.MODEL_ARCH.QWEN3}[architecture]
    w = gguf.GGUFWriter(path, architecture)
    w.add_name("random")
    w.add_context_length(config.max_position_embeddings)
    w.add_embedding_length(config.hidden_size)
    w.add_block_count(config.num_hidden_layers)
    w.add_feed_forward_length(config.intermediate_size)
    w.add_head_count(config.num_attention_heads)
    w.add_head_count_kv(config.num_key_value_heads)
    w.add_key_length(config.head_dim)
    w.add_value_length(config.head_dim)
    w.add_layer_norm_rms_eps(config.rms_norm_eps)
    w.add_rope_freq_base(config.rope_theta)
    w.add_rope_dimension_count(config.head_dim)
    w.add_vocab_size(config.vocab_size)
    w.add_file_type(gguf.LlamaFileType.ALL_F32)
    tokens, kinds = vocabulary(config.vocab_size)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("qwen2")
    w.add_token_list(tokens)
    w.add_token_types(kinds)
    w.add_token_merges(["a b"])
    w.add_eos_token_id(config.vocab_size - 1)
    w.add_bos_token_id(config.vocab_size - 2)
    w.add_add_bos_token(False)
    w.add_chat_template(TEMPLATE)
    names = gguf.get_tensor_name_map(kind, config.num_hidden_layers)
    for name, x in weights.items():
        data = x.numpy()
        if architecture == "llama" and name.endswith("q_proj.weight"):
            data = interleaved(data, config.num_attention_heads)
        if architecture == "llama" and name.endswith("k_proj.weight"):
            data = interleaved(data, config.num_key_value_heads)
        w.add_tensor(names.get_name(name, (".weight",)), numpy.ascontiguousarray(data))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main():
    folder, shape = pathlib.Path(sys.argv[1]), sys.argv[2]
    if shape not in SHAPES:
        sys.exit(f"{shape}: want one of {', '.join(SHAPES)}")
    config = SHAPES[shape]
    config.eos_token_id, config.bos_token_id, config.pad_token_id = config.vocab_size - 1, config.vocab_size - 2, None
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.save_pretrained(folder / shape)
    weights = {name: x for name, x in model.state_dict().items() if name != "lm_head.weight"}  # it is the embedding
    part = folder / f"{shape}.part"
    write_gguf(part, config, weights)
    part.rename(folder / f"{shape}.gguf")


main()
