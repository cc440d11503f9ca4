"""Writes golden.json: ids of some texts by OpenAI's tiktoken. The vocabularies are taken from tokenizer.json files of
the same models, which internal/dev/bench/tokenizer/vocabularies.py DIR gpt4 gpt4o fetches.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install tiktoken==0.14.0
    cd tokenizer/openai/testdata && /tmp/golden/bin/python make_golden.py DIR
"""

import importlib.util
import json
import pathlib
import random
import sys

import tiktoken

assert tiktoken.__version__ == "0.14.0", tiktoken.__version__

HERE = pathlib.Path(__file__).resolve().parent
CL100K = "|".join([
    r"""'(?i:[sdmt]|ll|ve|re)""", r"""[^\r\n\p{L}\p{N}]?+\p{L}++""", r"""\p{N}{1,3}+""",
    r""" ?[^\s\p{L}\p{N}]++[\r\n]*+""", r"""\s++$""", r"""\s*[\r\n]""", r"""\s+(?!\S)""", r"""\s"""])
O200K = "|".join([
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
    r"""\p{N}{1,3}""", r""" ?[^\s\p{L}\p{N}]+[\r\n/]*""", r"""\s*[\r\n]+""", r"""\s+(?!\S)""", r"""\s+"""])


def alphabet():
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}


def ranks(path, count):
    letters = alphabet()
    vocab = json.loads(path.read_text("utf-8"))["model"]["vocab"]
    return {bytes(letters[c] for c in text): i for text, i in vocab.items() if i < count}


def maker():
    spec = importlib.util.spec_from_file_location("cases",
                                                  HERE.parents[2] / "internal" / "dev" / "bench" / "tokenizer" / "cases.py")
    cases = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cases)
    return cases.Maker(random.Random(1), ["<|endoftext|>"])


def main():
    folder, make = pathlib.Path(sys.argv[1]), maker()
    o200k = ranks(folder / "gpt4o" / "tokenizer.json", 199998)
    encodings = {
        "cl100k_base": tiktoken.Encoding("cl100k_base", pat_str=CL100K,
                                         mergeable_ranks=ranks(folder / "gpt4" / "tokenizer.json", 100256),
                                         special_tokens={"<|endoftext|>": 100257}),
        "o200k_base": tiktoken.Encoding("o200k_base", pat_str=O200K, mergeable_ranks=o200k,
                                        special_tokens={"<|endoftext|>": 199999}),
        "o200k_harmony": tiktoken.Encoding("o200k_harmony", pat_str=O200K, mergeable_ranks=o200k,
                                           special_tokens={"<|endoftext|>": 199999}),
    }
    texts = ["", "\n \n", "a\x7fb", " \n  \n\n x \r\n",
             "don't DON'T"] + [make.text() for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 120)]
    out = {n: [{"s": s, "ids": e.encode(s, allowed_special="all")} for s in texts] for n, e in encodings.items()}
    (HERE / "golden.json").write_text(json.dumps(out, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
