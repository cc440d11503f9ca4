"""Writes vocabulary.gguf: the vocabulary of tokenizer/testdata/tokenizer.json with a chat template, and no weights.

    python3 -m venv /tmp/gguf && /tmp/gguf/bin/pip install gguf==0.19.0
    cd cmd/art/testdata && /tmp/gguf/bin/python make_gguf.py
"""

import json
import pathlib

import gguf

HERE = pathlib.Path(__file__).resolve().parent
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}:{{ m.content }}{{ eos_token }}{% endfor %}"


def main():
    file = json.loads((HERE / "../../../tokenizer/testdata/tokenizer.json").read_text("utf-8"))
    ids = dict(file["model"]["vocab"])
    kinds = {i: gguf.TokenType.NORMAL for i in ids.values()}
    for added in file["added_tokens"]:
        ids[added["content"]] = added["id"]
        kinds[added["id"]] = gguf.TokenType.CONTROL if added["special"] else gguf.TokenType.USER_DEFINED
    tokens = sorted(ids, key=ids.get)
    assert [ids[t] for t in tokens] == list(range(len(tokens)))
    writer = gguf.GGUFWriter(HERE / "vocabulary.gguf", "qwen3")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("stablelm2")  # the pattern of Qwen 2, without its normalizer
    writer.add_token_list(tokens)
    writer.add_token_types([kinds[i] for i in range(len(tokens))])
    writer.add_token_merges([" ".join(m) if isinstance(m, list) else m for m in file["model"]["merges"]])
    writer.add_eos_token_id(ids["<|im_end|>"])
    writer.add_chat_template(TEMPLATE)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


main()
