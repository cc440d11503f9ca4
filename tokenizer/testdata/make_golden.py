"""Writes golden.json: results of Hugging Face's tokenizers with our own small vocabulary and many settings.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install tokenizers==0.23.3
    cd tokenizer/testdata && /tmp/golden/bin/python make_golden.py

tokenizer.json comes from corpus.txt: ART_UPDATE=1 go test -run Testdata ./internal/dev/cmd/tinymodel
"""

import json
import random

import tokenizers

assert tokenizers.__version__ == "0.23.3", tokenizers.__version__

with open("tokenizer.json", encoding="utf-8") as f:
    BASE = json.load(f)

WORDS = BASE["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]
LLAMA = WORDS.replace(r"\p{N}|", r"\p{N}{1,3}|")


def byte_level(prefix=False, regex=False):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


def split(pattern, behavior, invert=False):
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def steps(*pre):
    return {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [*pre]}}


def added(content, **flags):
    token = {"id": 0, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": False}
    return token | flags


def with_added(*tokens):
    """Adds tokens after those that the base file has."""
    out = list(BASE["added_tokens"])
    for t in tokens:
        out.append(t | {"id": out[-1]["id"] + 1})
    return {"added_tokens": out}


def template(before, after):
    ids = {t["content"]: t["id"] for t in BASE["added_tokens"]}
    special = lambda name: {"SpecialToken": {"id": name, "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    return {
        "type": "TemplateProcessing",
        "single": [*map(special, before), text, *map(special, after)],
        "pair": [text, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {n: {"id": n, "ids": [ids[n]], "tokens": [n]} for n in before + after},
    }


S, E, X = "<|im_start|>", "<|im_end|>", "<|endoftext|>"
SETTINGS = {
    "base": {},
    "nfc": {"normalizer": {"type": "NFC"}},
    "nfc in sequences": {"normalizer": {"type": "Sequence", "normalizers": [
        {"type": "Sequence", "normalizers": []}, {"type": "NFC"}]}},
    "llama words": steps(split({"Regex": LLAMA}, "Isolated"), byte_level()),
    "gpt2 words": {"pre_tokenizer": byte_level(regex=True)},
    "gpt2 words, leading space": {"pre_tokenizer": byte_level(prefix=True, regex=True)},
    "no words": {"pre_tokenizer": byte_level()},
    "digits": steps({"type": "Digits", "individual_digits": False}, byte_level(regex=True)),
    "single digits": steps({"type": "Digits", "individual_digits": True}, byte_level(prefix=True)),
    "ignore merges": {"model": {"ignore_merges": True}},
    "merges as text": {"model": {"merges": [" ".join(m) for m in BASE["model"]["merges"]]}},
    "template": {"post_processor": template([S, X], [E])},
    "template in sequence": {"post_processor": {"type": "Sequence",
                                                "processors": [byte_level(), template([S], [E, X])]}},
    "added tokens": {"normalizer": {"type": "NFC"}} | with_added(
        added("<left>", lstrip=True), added("<right>", rstrip=True),
        added("<both>", lstrip=True, rstrip=True, special=True),
        added("agent", single_word=True), added("board game"), added("board"), added("né", normalized=True),
        added("<norm>", normalized=True, special=True), added("  "),
        added("naïve word", normalized=True, single_word=True)),
}
for behavior in ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]:
    for invert in [False, True]:
        for kind, pattern in [("text", {"String": "a"}), ("regex", {"Regex": r"\s+|a|(?i:THE)"}),
                              ("empty", {"Regex": "b*"})]:
            name = f"split {kind} {behavior}" + (" inverted" if invert else "")
            SETTINGS[name] = steps(split(pattern, behavior, invert), byte_level())

PIECES = [
    "the ", "agent", " board", "board game", "it's", "WE'VE", "I'll", "'\u017f", "don't", "1", "22", "333", "123456",
    "½", "Ⅳ", "٣",
    " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\u0085", "\u200b", "\ufeff", "\0",
    "\x7f",
    "é", "e\u0301", "né", "ne\u0301", "a\u0323\u0302", "q\u0307\u0323", "\u1100\u1161\u11a8", "Å", "ﬁ", "ß", "İ", "ж",
    "日本", "नमस्ते", "สวัสดี", "مرحبا",
    "\u0301" * 40, "a" + "\u0301\u0323" * 20, "😀", "👨\u200d👩\u200d👧", "🏳\ufe0f\u200d🌈", "\U0010ffff", "\ufffd",
    S, E, X, "<|im_", "end|>", "<left>", "<right>", "<both>", "<norm>", "naïve word", "nai\u0308ve word", "x",
    "aaa", "aa aa", "bbb", "ab", "ba", "{\"", "\": ", "://", "...", "!?", "-", "_", "—", "func main() {", "\\n",
    "a" * 60,
]


def text(rng):
    return "".join(rng.choice(PIECES) for _ in range(rng.randint(0, 14)))


def texts(seed, n):
    rng = random.Random(seed)
    return [text(rng) for _ in range(n)]


def patched(patch):
    out = BASE | {k: v for k, v in patch.items() if k != "model"}
    return out | {"model": BASE["model"] | patch.get("model", {})}


def case(tok, s):
    ids = tok.encode(s, add_special_tokens=False).ids
    special = tok.encode(s).ids
    return {"s": s, "ids": ids, "sp": special, "dec": tok.decode(ids, skip_special_tokens=False),
            "decs": tok.decode(ids)}


def broken(tok, seed, n):
    """Random ids, which decode to broken UTF-8."""
    rng = random.Random(seed)
    out = []
    for _ in range(n):
        ids = [rng.randrange(tok.get_vocab_size()) if rng.random() < 0.5 else rng.randrange(256)
               for _ in range(rng.randint(1, 12))]
        out.append({"ids": ids, "dec": tok.decode(ids, skip_special_tokens=False), "decs": tok.decode(ids)})
    return out


def main():
    groups = []
    for i, (name, patch) in enumerate(SETTINGS.items()):
        tok = tokenizers.Tokenizer.from_str(json.dumps(patched(patch)))
        n = 40 if not name.startswith("split") else 10
        groups.append({
            "name": name,
            "patch": patch,
            "cases": [case(tok, s) for s in texts(i, n)],
            "broken": broken(tok, i, 40) if name in ("base", "added tokens") else [],
        })
    with open("golden.json", "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps(g, separators=(",", ":"), ensure_ascii=False) for g in groups) + "\n]\n")
    print(sum(len(g["cases"]) for g in groups), "cases")


if __name__ == "__main__":
    main()
