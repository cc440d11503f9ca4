"""Writes unigram.json: a Unigram file without a "type", as T5's is, with many segmentations of nearly equal score; the
ids of some texts by Hugging Face's tokenizers; and the numbers to which it parses some decimals.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install tokenizers==0.23.3
    cd tokenizer/testdata && /tmp/golden/bin/python make_unigram.py
"""

import json
import pathlib
import random
import struct

import tokenizers

assert tokenizers.__version__ == "0.23.3", tokenizers.__version__

HERE = pathlib.Path(__file__).resolve().parent


def single(x):
    """x as a 32-bit number, which is how SentencePiece stores scores."""
    return struct.unpack("<f", struct.pack("<f", x))[0]


def pieces(rng):
    """Pieces that score what their letters do: only how scores are read, and rounded in sums, tells divisions apart."""
    letters = {c: -rng.randint(2 << 21, 5 << 21) / (1 << 21) for c in "abc"}
    out = {"<unk>": 0.0, "\u2581": single(-1.1)}
    for n, most in (1, 30), (2, 9), (3, 20), (4, 20):
        for _ in range(most):
            text = "".join(rng.choice("abc") for _ in range(n))
            out.setdefault(text, sum(letters[c] for c in text))
    return list(map(list, out.items()))


def file(vocab):
    space = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": False}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
            "pre_tokenizer": space,
            "post_processor": None, "decoder": space, "model": {"unk_id": 0, "vocab": vocab}}


def decimals(rng):
    """Numbers in many notations."""
    yield from """0 -0 -0.0 0e5 1 -12 5e-324 -1e-400 0.1e1 1E2 1.5e+3 18446744073709551615 18446744073709551616
        -9223372036854775809 18446744073709551619.0 184467440737095516159.75 1e22 1e23 8.5e-310 1e308
        123456789012345678901234567890e-25
        -2.0122928619384766 0.30000000000000004 170000000000000000000e288 1e-99999999999 0e99999999999
        3.00000000000000000000000000000000000001e-5""".split()
    for _ in range(150):
        yield repr(single(-rng.uniform(2, 20)))
    for _ in range(50):
        digits = "".join(rng.choice("0123456789") for _ in range(rng.randint(1, 25)))
        yield f"-{rng.randint(0, 30)}.{digits}" + rng.choice(["", "", f"e{rng.randint(-330, 250)}"])


def main():
    rng = random.Random(6)
    data = file(pieces(rng))
    tok = tokenizers.Tokenizer.from_str(json.dumps(data))
    texts = ["".join(rng.choice("aaabbbccc d") for _ in range(rng.randint(2, 60))) for _ in range(60)]
    cases = [{"s": s, "ids": tok.encode(s).ids} for s in texts]
    written = list(decimals(rng))
    raw = json.dumps(file(["NUMBERS"])).replace('"NUMBERS"', ",".join(f'["{i}", {n}]' for i, n in enumerate(written)))
    numbers = json.loads(tokenizers.Tokenizer.from_str(raw).to_str())["model"]["vocab"]
    read = [[w, struct.pack(">d", n).hex()] for w, (_, n) in zip(written, numbers, strict=True)]
    (HERE / "unigram.json").write_text(json.dumps({"file": data, "cases": cases, "numbers": read},
                                                  separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
