"""Writes sentencepiece/*.model and *.json: small models of SentencePiece, and ids by its library.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install sentencepiece==0.2.3 tokenizers==0.23.3
    cd tokenizer/testdata && /tmp/golden/bin/python make_sentencepiece.py

With a folder as argument, it reads the *.model there, and writes 3000 texts for each beside it: see
TestReference_SentencePiece.
"""

import importlib.util
import json
import pathlib
import random
import struct
import sys

import sentencepiece

assert sentencepiece.__version__ == "0.2.3", sentencepiece.__version__

HERE = pathlib.Path(__file__).resolve().parent
COMMON = dict(input=str(HERE / "corpus.txt"), hard_vocab_limit=False, character_coverage=0.995, num_threads=1,
              minloglevel=2)
MODELS = {
    "bpe-bytes": dict(model_type="bpe", vocab_size=700, byte_fallback=True, normalization_rule_name="identity",
                      remove_extra_whitespaces=False,
                      user_defined_symbols=["<tool>", "  ", "agent"], split_digits=True,
                      allow_whitespace_only_pieces=True),
    "bpe-trim": dict(model_type="bpe", vocab_size=500, normalization_rule_name="identity"),
    "unigram-nfkc": dict(model_type="unigram", vocab_size=500, user_defined_symbols=["<mask>", "reward"]),
    "unigram-bytes": dict(model_type="unigram", vocab_size=700, byte_fallback=True, normalization_rule_name="identity",
                          pad_id=3),
    "unigram-plain": dict(model_type="unigram", vocab_size=400, normalization_rule_name="identity",
                          add_dummy_prefix=False, bos_id=-1),
}


def maker(seed):
    path = HERE.parents[1] / "internal" / "dev" / "bench" / "tokenizer" / "cases.py"
    spec = importlib.util.spec_from_file_location("cases", path)
    cases = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cases)
    return cases.Maker(random.Random(seed), ["<tool>", "<mask>", "reward", "agent", "<s>", "</s>", "<unk>", "<0x0A>"])


def field(number, value):
    """A field of a protobuf message: an int below 128, a float or bytes."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    if isinstance(value, float):
        return bytes([number << 3 | 5]) + struct.pack("<f", value)
    return bytes([number << 3 | 2, len(value)]) + value


def tied(path, step, count=60):
    """Writes a Unigram model with many segmentations of nearly equal score, which differ by the rounding of their sums.
    With a large step the sums get so large that SentencePiece subtracts from them."""
    rng = random.Random(path.stem)
    pieces = [("<unk>", 0.0, 2), (",", 0.0, 4), ("()", 0.0, 4), ("\u2581", -step, 1)]
    for n, most in (1, 3), (2, 9), (3, 20), (4, 20):
        for _ in range(most):
            text = "".join(rng.choice("abc") for _ in range(n))
            if text not in (p[0] for p in pieces):
                pieces.append((text, -step * n - rng.randint(0, 3) * step / 10, 1))
    data = b"".join(field(1, field(1, t.encode()) + field(2, float(s)) + field(3, kind)) for t, s, kind in pieces)
    trainer, normalizer = field(3, 1) + b"\xc8\x02\x7f" + b"\xd0\x02\x7f", field(1, b"identity")  # no bos, no eos
    path.write_bytes(data + field(2, trainer) + field(3, normalizer))
    record(path, 0, ["".join(rng.choice("aaabbbccc ,()d") for _ in range(rng.randint(2, 60))) for _ in range(count)])


def record(path, count, texts=()):
    sp = sentencepiece.SentencePieceProcessor(model_file=str(path))
    make, lines = maker(path.stem), (HERE / "corpus.txt").read_text("utf-8").splitlines()
    texts = list(texts) or [""] + lines[:count // 10] + [make.text() for _ in range(count)]
    cases = [{"s": s, "ids": sp.encode(s)} for s in texts if "\0" not in s]
    path.with_suffix(".json").write_text(json.dumps(cases, ensure_ascii=True, separators=(",", ":")) + "\n")


def main():
    if len(sys.argv) > 1:
        for path in sorted(pathlib.Path(sys.argv[1]).glob("*.model")):
            record(path, 3000)
        return
    folder = HERE / "sentencepiece"
    folder.mkdir(exist_ok=True)
    for name, options in MODELS.items():
        sentencepiece.SentencePieceTrainer.train(model_prefix=str(folder / name), **COMMON, **options)
        (folder / f"{name}.vocab").unlink()
        record(folder / f"{name}.model", 60)
    tied(folder / "unigram-ties.model", 5.3)
    tied(folder / "unigram-large.model", 7000.7)


if __name__ == "__main__":
    main()
