"""Writes families.json: tokenizer.json files of families without byte-level BPE, built from the small models in
sentencepiece/, and results of Hugging Face's tokenizers for some texts.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install tokenizers==0.23.3
    cd tokenizer/testdata && /tmp/golden/bin/python make_families.py

With a folder DIR as argument, it writes DIR/NAME/tokenizer.json instead, for internal/dev/bench/tokenizer/cases.py.
"""

import base64
import importlib.util
import json
import pathlib
import random
import struct
import sys

import tokenizers

assert tokenizers.__version__ == "0.23.3", tokenizers.__version__

HERE = pathlib.Path(__file__).resolve().parent
SPACE = "▁"


def fields(data):
    """Reads a protobuf message."""
    at = 0

    def varint():
        nonlocal at
        out = shift = 0
        while True:
            b = data[at]
            at += 1
            out |= (b & 127) << shift
            shift += 7
            if b < 128:
                return out

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        elif tag & 7 == 2:
            n = varint()
            yield tag >> 3, data[at : at + n]
            at += n
        else:
            yield tag >> 3, struct.unpack("<f", data[at : at + 4])[0]
            at += 4


def model(name):
    """Returns pieces (text, score, type) and the charsmap of a model."""
    pieces, chars = [], b""
    for field, value in fields((HERE / "sentencepiece" / f"{name}.model").read_bytes()):
        if field == 1:
            piece = {1: b"", 2: 0.0, 3: 1} | dict(fields(value))
            pieces.append((piece[1].decode(), piece[2], piece[3]))
        if field == 3:
            chars = dict(fields(value)).get(2, b"")
    return pieces, base64.b64encode(chars).decode()


def added(pieces, **more):
    out = []
    for i, (text, _, kind) in enumerate(pieces):
        if kind in (2, 3, 4):
            out.append({"id": i, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
                        "normalized": False, "special": kind != 4} | more.get(text, {}))
    return out


def file(pieces, model, normalizer, pre, decoder, post=None, **more):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added(pieces, **more),
            "normalizer": normalizer,
            "pre_tokenizer": pre, "post_processor": post, "decoder": decoder, "model": model}


def unigram(pieces, fallback=False):
    return {"type": "Unigram", "unk_id": next(i for i, p in enumerate(pieces) if p[2] == 2),
            "vocab": [[p[0], p[1]] for p in pieces], "byte_fallback": fallback}


def bpe(pieces, fallback=True, **more):
    ids = {p[0]: i for i, p in enumerate(pieces)}
    merges = []
    for text, score, _ in pieces:
        for at in range(1, len(text)):
            if text[:at] in ids and text[at:] in ids:
                merges.append((-score, ids[text[:at]], ids[text[at:]], text[:at], text[at:]))
    merges.sort()
    return {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": True,
            "byte_fallback": fallback, "ignore_merges": False, "vocab": ids,
            "merges": [[m[3], m[4]] for m in merges]} | more


def metaspace(scheme="always", split=True):
    return {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": split}


def seq(kind, *parts):
    return {"type": "Sequence", {"n": "normalizers", "p": "pretokenizers", "d": "decoders",
                                 "o": "processors"}[kind]: list(parts)}


def replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


def template(pieces, before, after):
    ids = {p[0]: i for i, p in enumerate(pieces)}
    special = lambda t: {"SpecialToken": {"id": t, "type_id": 0}}
    return {"type": "TemplateProcessing",
            "single": [*map(special, before), {"Sequence": {"id": "A", "type_id": 0}}, *map(special, after)],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {t: {"id": t, "ids": [ids[t]], "tokens": [t]} for t in before + after}}


def families(charsmap):
    """charsmap: with the table of replacements, which is large."""
    uni, chars = model("unigram-nfkc")
    bytes_, _ = model("unigram-bytes")
    sp, _ = model("bpe-bytes")
    plain, _ = model("bpe-trim")
    spaces = replace({"String": " "}, SPACE)
    llama = seq("d", replace({"String": SPACE}, " "), {"type": "ByteFallback"}, {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0})
    precompiled = {"type": "Precompiled", "precompiled_charsmap": chars}
    pair = {"cls": ["<s>", 1], "sep": ["</s>", 2]}
    out = {
        "unigram-metaspace": file(uni, unigram(uni), {"type": "NFKC"}, metaspace(), metaspace(),
                                  template(uni, ["<s>"], ["</s>"]), **{"<mask>": {"lstrip": True, "special": True}}),
        "unigram-trimmed": file(uni, unigram(uni), {"type": "NFKC"},
                                seq("p", {"type": "WhitespaceSplit"}, metaspace()), metaspace(),
                                pair | {"type": "RobertaProcessing", "trim_offsets": True, "add_prefix_space": True},
                                **{"<mask>": {"lstrip": True, "rstrip": True, "special": True}}),
        "unigram-first": file(bytes_, unigram(bytes_, True), {"type": "Nmt"}, metaspace("first"), metaspace("first"),
                              pair | {"type": "BertProcessing"}),
        "unigram-strip": file(uni, unigram(uni),
                              seq("n", {"type": "Strip", "strip_left": True, "strip_right": True},
                                  replace({"Regex": " {2,}"}, " ")),
                              metaspace("first"), metaspace("first")),
        "unigram-lower": file(uni, unigram(uni),
                              seq("n", replace({"String": "``"}, '"'), {"type": "NFKD"}, {"type": "StripAccents"},
                                  {"type": "Lowercase"},
                              replace({"Regex": " {2,}"}, " ")), seq("p", {"type": "WhitespaceSplit"}, metaspace()),
                              metaspace()),
        "unigram-never": file(bytes_, unigram(bytes_, True), {"type": "NFD"}, metaspace("never", False),
                              seq("d", {"type": "ByteFallback"}, metaspace("never"))),
        "llama-legacy": file(sp, bpe(sp), seq("n", {"type": "Prepend", "prepend": SPACE}, spaces), None, llama,
                             template(sp, ["<s>"], [])),
        "llama-first": file(sp, bpe(sp), None, metaspace("first", False), llama, template(sp, ["<s>"], ["</s>"])),
        "gemma": file(sp, bpe(sp), spaces,
                      {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
                      seq("d", replace({"String": SPACE}, " "), {"type": "ByteFallback"}, {"type": "Fuse"})),
        "bpe-unknown": file(plain, bpe(plain, False), spaces, None,
                            seq("d", replace({"String": SPACE}, " "), {"type": "Fuse"},
                                {"type": "Strip", "content": " ", "start": 1, "stop": 0})),
        "bpe-unknown-single": file(plain, bpe(plain, False, fuse_unk=False), spaces,
                                   {"type": "Punctuation", "behavior": "Contiguous"}, None),
        "bpe-dropped": file(plain, bpe(plain, False, unk_token=None), spaces,
                            seq("p", {"type": "Digits", "individual_digits": False}, {"type": "Punctuation"}), None),
        "bpe-whole": file(sp, bpe(sp, ignore_merges=True), spaces, metaspace(), metaspace()),
        "bpe-words": file(plain, bpe(plain, False), {"type": "NFC"}, {"type": "Whitespace"},
                          {"type": "BPEDecoder", "suffix": "e"}),
        "bpe-fixed": file(plain, bpe(plain, False), None,
                          seq("p", {"type": "CharDelimiterSplit", "delimiter": "a"},
                              {"type": "FixedLength", "length": 3}), None),
    }
    if charsmap:
        out["t5"] = file(uni, unigram(uni), seq("n", precompiled, replace({"Regex": " {2,}"}, SPACE)), metaspace(),
                         metaspace(), template(uni, [], ["</s>"]))
        out["xlmr"] = file(uni, unigram(uni), precompiled, seq("p", {"type": "WhitespaceSplit"}, metaspace()),
                           metaspace(), pair | {"type": "RobertaProcessing", "trim_offsets": True,
                                                "add_prefix_space": True},
                           **{"<mask>": {"lstrip": True, "special": True}})
        out["albert"] = file(uni, unigram(uni),
                             seq("n", replace({"String": "``"}, '"'), {"type": "NFKD"}, {"type": "StripAccents"},
                                 {"type": "Lowercase"}, precompiled,
                             replace({"Regex": " {2,}"}, " ")), metaspace(), metaspace(),
                             template(uni, ["<s>"], ["</s>"]))
    base = json.loads((HERE / "tokenizer.json").read_text("utf-8"))
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    digits = {"type": "Split", "pattern": {"Regex": "[0-9][0-9][0-9]"}, "behavior": "Isolated", "invert": False}
    out["falcon"] = base | {"pre_tokenizer": seq("p", {"type": "Punctuation", "behavior": "Contiguous"}, level,
                                                 {"type": "Digits", "individual_digits": False}, digits),
                            "post_processor": level}
    out["byte-normalizer"] = base | {"normalizer": seq("n", {"type": "NFC"}, {"type": "ByteLevel"}),
                                     "pre_tokenizer": None}
    out["roberta"] = base | {"pre_tokenizer": level | {"add_prefix_space": True},
                             "post_processor": {"type": "RobertaProcessing", "cls": ["<think>", 536],
                             "sep": ["</think>", 537], "trim_offsets": True, "add_prefix_space": True}}
    for name in ("NFKC", "NFD", "NFKD", "Lowercase"):
        out["byte-" + name.lower()] = base | {"normalizer": {"type": name}}
    return out


# White space around added tokens that take it.
AROUND = ["T", " T", "  T ", "\n\tTa", "a T b", "a  T\u3000 T", "TT", " T \u0120 T\u0120"]


def cases_module():
    spec = importlib.util.spec_from_file_location("cases",
                                                  HERE.parents[1] / "internal" / "dev" / "bench" / "tokenizer" / "cases.py")
    cases = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cases)
    return cases


def main():
    if len(sys.argv) > 1:
        for name, data in families(True).items():
            folder = pathlib.Path(sys.argv[1]) / f"family-{name}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "tokenizer.json").write_text(json.dumps(data))
        return
    cases, groups = cases_module(), []
    for name, data in families(False).items():
        tok = tokenizers.Tokenizer.from_str(json.dumps(data))
        make = cases.Maker(random.Random(name), [t["content"] for t in data["added_tokens"]])
        texts = [make.text() for _ in range(20)] + [around.replace("T", t["content"]) for t in data["added_tokens"]
                                                    if t["lstrip"] for around in AROUND]
        groups.append({"name": name, "file": data, "cases": [cases.case(tok, text) for text in texts],
                       "broken": cases.broken(tok, make.rng, 10)})
    with open(HERE / "families.json", "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps(g, separators=(",", ":"), ensure_ascii=True) for g in groups) + "\n]\n")


if __name__ == "__main__":
    main()
