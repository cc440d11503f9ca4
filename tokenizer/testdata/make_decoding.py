"""Writes decoding/random.json: what Hugging Face's tokenizers decodes ids to, for the two files in decoding/ with other
normalizers, decoders and added tokens.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install tokenizers==0.23.3
    cd tokenizer/testdata && /tmp/golden/bin/python make_decoding.py

With a number as argument, it is the seed.
"""

import json
import pathlib
import random
import sys

import tokenizers

assert tokenizers.__version__ == "0.23.3", tokenizers.__version__

HERE = pathlib.Path(__file__).resolve().parent / "decoding"


def sequence(*normalizers):
    return {"type": "Sequence", "normalizers": [*normalizers]}


def replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


PREPEND = {"type": "Prepend", "prepend": "▁"}
SPACE = replace({"String": " "}, "▁")
NORMALIZERS = {
    "none": None,
    "lowercase": {"type": "Lowercase"},
    "nfkc": {"type": "NFKC"},
    "nfd": {"type": "NFD"},
    "strip accents": sequence({"type": "NFD"}, {"type": "StripAccents"}),
    "prepend": PREPEND,
    "prepend and replace": sequence(PREPEND, SPACE),
    "replace": replace({"String": "l"}, "<b>"),
    "replace by regex": replace({"Regex": "[A-Z]+"}, "x"),
    "strip": {"type": "Strip", "strip_left": True, "strip_right": True},
    "strip left": {"type": "Strip", "strip_left": True, "strip_right": False},
    "byte level": {"type": "ByteLevel"},
    "nfkc, lowercase, strip": sequence({"type": "NFKC"}, {"type": "Lowercase"},
                                       {"type": "Strip", "strip_left": True, "strip_right": True}),
    "bytes of lowercase": sequence({"type": "Lowercase"}, {"type": "ByteLevel"}),
}
BYTES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
DECODERS = {
    "byte level": BYTES,
    "none": None,
    "metaspace": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    "llama": {"type": "Sequence", "decoders": [
        replace({"String": "▁"}, " "), {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    "fuse": {"type": "Fuse"},
}
CONTENTS = ["<s>", "</s>", "HeLLo", "hello", "ÉT", "e\u0301t", "ﬁne", "Ⅳ", " lead", "trail ", " both ", "A B", "<B>", "x", "Ω", "日本", "ＡＢ", "  ",
            "<b>", "▁<s>", "Ġlow", "İ", "new\nline"]


def tokens(rng):
    out = []
    for content in rng.sample(CONTENTS, rng.randint(2, 8)):
        out.append({"content": content, "single_word": False, "lstrip": rng.random() < 0.2, "rstrip": rng.random() < 0.2,
                    "normalized": rng.random() < 0.7, "special": rng.random() < 0.5 and len(content) > 1})  # ours refuses a symbol
    return out


def main():
    rng = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    groups = []
    for base in ("lowercase", "prepend"):
        file = json.loads((HERE / base / "tokenizer.json").read_text(encoding="utf-8"))
        known = {t["content"] for t in file["added_tokens"]} | set(file["model"]["vocab"])
        for normalizer in NORMALIZERS:
            for decoder in rng.sample(sorted(DECODERS), 2):
                size = max([*file["model"]["vocab"].values(), *(t["id"] for t in file["added_tokens"])]) + 1
                added = [dict(t) for t in file["added_tokens"]]
                for t in tokens(rng):
                    if t["content"] not in known:
                        added.append(t | {"id": size})
                        size += 1
                    elif t["content"] in file["model"]["vocab"] and t["content"] not in {a["content"] for a in added}:
                        added.append(t | {"id": file["model"]["vocab"][t["content"]]})
                for t in added[:]:
                    t["normalized"] = rng.random() < 0.8
                patch = {"normalizer": NORMALIZERS[normalizer], "decoder": DECODERS[decoder], "added_tokens": added}
                if "Level" in json.dumps(NORMALIZERS[normalizer]):
                    patch["pre_tokenizer"] = None  # ours refuses both
                try:
                    tok = tokenizers.Tokenizer.from_str(json.dumps(file | patch))
                except Exception as e:  # for example because a token is empty once it is normalized
                    print(base, normalizer, decoder, "is refused:", e)
                    continue
                ids = [t["id"] for t in added]
                cases = [[rng.choice(ids) if rng.random() < 0.6 else rng.randrange(size) for _ in range(rng.randint(1, 6))]
                         for _ in range(12)]
                groups.append({"name": f"{base}: {normalizer}, {decoder}", "base": base, "patch": patch, "cases": [
                    {"ids": c, "dec": tok.decode(c, skip_special_tokens=False), "decs": tok.decode(c)} for c in cases]})
    with open(HERE / "random.json", "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps(g, separators=(",", ":"), ensure_ascii=False) for g in groups) + "\n]\n")
    print(sum(len(g["cases"]) for g in groups), "cases")


if __name__ == "__main__":
    main()
