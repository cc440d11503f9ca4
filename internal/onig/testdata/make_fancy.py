"""Writes fancy.json: the words into which OpenAI's tiktoken splits texts, by patterns of released encodings, and by
patterns that have a different meaning in other engines.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install tiktoken==0.14.0
    cd internal/onig/testdata && /tmp/golden/bin/python make_fancy.py

tiktoken does not return words, but a word that is a token becomes one id: so the vocabulary for each text has all its
substrings.
"""

import json
import pathlib
import random

import tiktoken

assert tiktoken.__version__ == "0.14.0", tiktoken.__version__

HERE = pathlib.Path(__file__).resolve().parent
CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}"
REST = r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
PATTERNS = {
    "r50k": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    "cl100k-before": CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+" + REST,
    "o200k": rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}]*{LOWER}]+{CONTRACTIONS}?"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{UPPER}]+{LOWER}]*{CONTRACTIONS}?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen": CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "kimi": rf"[\p{{Han}}]+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}&&[^\p{{Han}}]]*{LOWER}&&[^\p{{Han}}]]+{CONTRACTIONS}?"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{UPPER}&&[^\p{{Han}}]]+{LOWER}&&[^\p{{Han}}]]*{CONTRACTIONS}?" + REST,
    "tekken": rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}]*{LOWER}]+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}]+{LOWER}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "possessive": r"\p{N}{2,3}+\p{N}|\p{L}?+\p{L}|\s{1,2}+(?=\S)|(?s:.)",
    "ends": r"^\s+|\s+$|a$|^b|(?s:.)",
    "lines": r"(?m)^\s?\w|\s$|(?s:.)",
    "flags": r"a(?i)b|s|(?-i:k)|(?s).",
    "fold": r"(?i:[a-k]+|\p{L}+|ss)|\P{L}",
    "word": r"\b\w+\b|\W\B|(?s:.)",
    "escapes": r"\x41\xe9?|\pL+|\h+|[\b\t]|(?P<rest>[^\n])|\n",
}
PIECES = ["1415", "12", "3", "٣", "½", " ", "  ", "\t", "\n", "\r\n", "\u00a0",
          "'s", "'S", "'ſ", "'LL", "'x", "a", "b", "Ab", "K", "\u212a", "ß", "ss", "SS", "é", "e\u0301", "\u0345",
          "日本", "语", "ǅ", "ʰ", "\u200d", "_", "!", "...", "/", "-", "😀", "AÉ", "\x08"]


def words(pattern, text):
    data = text.encode()
    parts = {data[i:j] for i in range(len(data)) for j in range(i + 1, len(data) + 1)}
    parts = sorted(parts, key=lambda p: (len(p), p))
    ranks = {p: i for i, p in enumerate(parts)}
    encoding = tiktoken.Encoding("words", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    out = encoding.decode_tokens_bytes(encoding.encode_ordinary(text))
    assert b"".join(out) == data, (pattern, text)
    return out


def main():
    rng, out = random.Random(1), []
    for name, pattern in PATTERNS.items():
        texts = ["1415", "a  \n b  "]
        texts += ["".join(rng.choice(PIECES) for _ in range(rng.randint(1, 8))) for _ in range(40)]
        cases = [[w.decode() for w in words(pattern, t)] for t in texts]
        out.append({"name": name, "pattern": pattern, "cases": cases})
    lines = ",\n".join(json.dumps(g, separators=(",", ":")) for g in out)
    (HERE / "fancy.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
