"""Writes greedy replies of transformers for released models: 32 tokens for eight chats, each with the gap to the second.

    python3 -m venv real && real/bin/pip install torch==2.15.0 transformers==4.57.1 tokenizers==0.22.2 gguf==0.19.0 sentencepiece==0.2.3 protobuf==7.36.2
    python3 internal/dev/bench/realmodels/fetch.py FOLDER smollm2 gemma3
    real/bin/python internal/dev/bench/realmodels/reference.py FOLDER smollm2 gemma3

The weights are those of the GGUF file, which Python's gguf dequantizes to float32. End tokens do not end a reply: all
have 32. Results go to testdata/NAME.json next to this script.
"""

import json
import pathlib
import sys

import gguf
import sentencepiece
import torch
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from models import PROMPTS, path

STEPS = 32


def smollm2(file):
    """The tokenizer of SmolLM2 out of the metadata: byte-level BPE that cuts digits off one by one."""
    fields = gguf.GGUFReader(file).fields
    tokens, merges, kinds = (fields["tokenizer.ggml." + key].contents() for key in ("tokens", "merges", "token_type"))
    bpe = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=[tuple(m.split(" ")) for m in merges]))
    bpe.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    bpe.decoder = decoders.ByteLevel()
    bpe.add_special_tokens([AddedToken(t, normalized=False) for t, kind in zip(tokens, kinds) if kind == gguf.TokenType.CONTROL])
    t = PreTrainedTokenizerFast(tokenizer_object=bpe, chat_template=fields["tokenizer.chat_template"].contents())
    return lambda text: t.apply_chat_template([{"role": "user", "content": text}], add_generation_prompt=True)


def gemma3(file):
    """Gemma's vocabulary as a SentencePiece model. The file has no chat template: it is the model before it learned to chat. The
    turns are those of the chat models. (transformers 4.57.1 cuts this vocabulary into other pieces than its own model does.)"""
    fields = gguf.GGUFReader(file).fields
    proto = sentencepiece_model_pb2.ModelProto()
    for text, score, kind in zip(*(fields["tokenizer.ggml." + key].contents() for key in ("tokens", "scores", "token_type"))):
        proto.pieces.add(piece=text, score=score, type=kind)
    proto.trainer_spec.model_type, proto.trainer_spec.byte_fallback = 2, True  # BPE
    proto.trainer_spec.unk_id, proto.trainer_spec.bos_id, proto.trainer_spec.eos_id, proto.trainer_spec.pad_id = 3, 2, 1, 0
    n = proto.normalizer_spec
    n.name, n.add_dummy_prefix, n.remove_extra_whitespaces, n.escape_whitespaces = "identity", False, False, True
    sp = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    bos, start, end = (sp.piece_to_id(t) for t in ("<bos>", "<start_of_turn>", "<end_of_turn>"))
    return lambda text: [bos, start, *sp.encode("user\n" + text), end, *sp.encode("\n"), start, *sp.encode("model\n")]


@torch.no_grad()
def greedy(model, prompt):
    ids, gaps, cache = [], [], None
    new = torch.tensor([prompt])
    for _ in range(STEPS):
        out = model(new, past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        best = torch.topk(out.logits[0, -1], 2)
        ids.append(best.indices[0].item())
        gaps.append((best.values[0] - best.values[1]).item())
        new = best.indices[:1].reshape(1, 1)
    return ids, gaps


def reference(file, encode):
    model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32, attn_implementation="eager").eval()
    chats = []
    for text in PROMPTS:
        prompt = encode(text)
        ids, gaps = greedy(model, prompt)
        print(text, ids, file=sys.stderr)
        chats.append({"text": text, "prompt": prompt, "ids": ids, "gaps": [float(f"{g:.4g}") for g in gaps]})
    return chats


if __name__ == "__main__":
    for name in sys.argv[2:]:
        file = path(sys.argv[1], name)
        out = pathlib.Path(__file__).with_name("testdata") / f"{name}.json"
        out.parent.mkdir(exist_ok=True)
        rows = ",\n".join(json.dumps(chat) for chat in reference(file, globals()[name](file)))
        out.write_text(f"[\n{rows}\n]\n")
        print(out)
